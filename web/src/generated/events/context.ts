// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Err } from "./envelope.js";

export interface ContextCompactionCompletedPayload {
  compaction_id: string;
  method: string;
  affected_turn_ids: string[];
  tokens_before: number;
  tokens_after: number;
  summary_preview: string;
  preserved: {
    action_ids: string[];
    incident_ids: string[];
    artifact_refs: string[];
    evidence_refs: string[];
  };
  loss_notes?: string[];
}

/** Older context was condensed; what had to survive is listed. */
export interface ContextCompactionCompleted extends Envelope {
  type: "context.compaction.completed";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ContextCompactionCompletedPayload;
}

export interface ContextCompactionFailedPayload {
  compaction_id: string;
  error: Err;
  fallback: "none" | "truncate" | "block";
}

/** Condensing older context failed; the fallback is named. */
export interface ContextCompactionFailed extends Envelope {
  type: "context.compaction.failed";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ContextCompactionFailedPayload;
}

export interface ContextCompactionStartedPayload {
  compaction_id: string;
  trigger: "token_limit" | "manual" | "policy";
  affected_turn_ids: string[];
  tokens_before: number;
}

/** Older context is about to be condensed. */
export interface ContextCompactionStarted extends Envelope {
  type: "context.compaction.started";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ContextCompactionStartedPayload;
}

export interface ContextResolvedPayload {
  items: {
    kind: "memory" | "knowledge" | "file" | "policy" | "instruction" | "history" | "skill" | "tool_summary";
    ref: string;
    title?: string;
    score?: number;
    tokens?: number;
  }[];
  omissions: {
    ref: string;
    reason: string;
  }[];
  missing: {
    question: string;
    severity: string;
  }[];
  budget: {
    max_tokens: number;
    used_tokens: number;
  };
  selected_skills: {
    skill_id: string;
    version: string;
    score: number;
    revision?: string;
    title?: string;
    selection_method?: "keyword" | "pattern" | "similarity";
    origin?: "builtin" | "file" | "user";
    similarity?: number;
    freshness?: number;
    success_rate?: number;
    preference?: number;
  }[];
  narrowed_by?: string[];
  prompt_sections: {
    name: string;
    sha256: string;
    tokens: number;
  }[];
  citations?: {
    title: string;
    url: string;
    snippet?: string;
  }[];
  recalled?: {
    key: string;
    value: string;
    source: string;
  }[];
}

/** What goes into the prompt of a turn is settled: items, omissions, skills, budget. */
export interface ContextResolved extends Envelope {
  type: "context.resolved";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: ContextResolvedPayload;
}
