// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Err, Json, Usage } from "./envelope.js";

export interface ModelCompletedPayload {
  provider: string;
  model: string;
  /** the model that answered, when the provider says so */
  effective_model?: string;
  stop_reason: string;
  usage: Usage;
  output_chars: number;
  ttft_ms?: number;
  latency_ms: number;
  /** tools that the model asks for before it goes on */
  tool_call_count?: number;
  tool_calls?: {
    /** the tool_call_id */
    id: string;
    provider_id: string;
    name: string;
    /** as the model wrote them */
    arguments: string;
  }[];
  status: "completed";
}

/** A model finished its answer; usage and latency are known. */
export interface ModelCompleted extends Envelope {
  type: "model.completed";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ModelCompletedPayload;
}

export interface ModelDeltaPayload {
  message_id: string;
  index: number;
  kind: "text" | "structured";
  /** with kind text */
  text?: string;
  /** with kind structured */
  json?: Json;
}

/** A piece of a model's answer, as text or as a structured value. */
export interface ModelDelta extends Envelope {
  type: "model.delta";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ModelDeltaPayload;
}

export interface ModelFailedPayload {
  provider: string;
  model: string;
  failure_category: "provider_error" | "limit" | "timeout" | "cancelled" | "network" | "auth" | "invalid_request";
  message: string;
  error: Err;
  retryable: boolean;
  http_status?: number;
  /** what the call used until then */
  usage?: Usage;
  status: "failed";
}

/** A model request failed, in a category that says whether to try again. */
export interface ModelFailed extends Envelope {
  type: "model.failed";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ModelFailedPayload;
}

export interface ModelRequestedPayload {
  provider: string;
  model: string;
  provider_selector?: string;
  stream: boolean;
  message_count: number;
  tool_count: number;
  prompt_sha256: string;
  input_tokens_estimate?: number;
  role?: "plan" | "execute" | "candidate" | "rank" | "summarize" | "sample";
  status: "started";
}

/** A request goes out to a model provider. */
export interface ModelRequested extends Envelope {
  type: "model.requested";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ModelRequestedPayload;
}
