// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Err, Json, Who } from "./envelope.js";

export interface SubagentClosedPayload {
  status: "closed";
  reason: string;
  closed_by: Who;
  released: boolean;
}

/** A child agent was closed and, if so marked, its resources are free again. */
export interface SubagentClosed extends Envelope {
  type: "subagent.closed";
  session_id: string;
  thread_id: string;
  subagent_id: string;
  payload: SubagentClosedPayload;
}

export interface SubagentCompletedPayload {
  status: "completed";
  summary_preview?: string;
  duration_ms: number;
}

/** A child agent finished its work. */
export interface SubagentCompleted extends Envelope {
  type: "subagent.completed";
  session_id: string;
  thread_id: string;
  subagent_id: string;
  payload: SubagentCompletedPayload;
}

export interface SubagentFailedPayload {
  status: "failed";
  failure_category: string;
  error: Err;
  retryable: boolean;
}

/** A child agent failed. */
export interface SubagentFailed extends Envelope {
  type: "subagent.failed";
  session_id: string;
  thread_id: string;
  subagent_id: string;
  payload: SubagentFailedPayload;
}

export interface SubagentInputPayload {
  kind: "text" | "json";
  preview: string;
  source: Who;
  index: number;
}

/** Input was handed to a child agent. */
export interface SubagentInput extends Envelope {
  type: "subagent.input";
  session_id: string;
  thread_id: string;
  subagent_id: string;
  payload: SubagentInputPayload;
}

export interface SubagentSpawnedPayload {
  parent: {
    session_id: string;
    thread_id: string;
    turn_id: string;
    task_id?: string;
    run_id?: string;
  };
  child_session_id?: string;
  child_thread_id: string;
  child_task_id?: string;
  role: string;
  nickname?: string;
  isolation: { [key: string]: Json };
  model_policy?: { [key: string]: Json };
  origin_tool?: string;
  status: "spawned";
}

/** A child agent was started for a turn. */
export interface SubagentSpawned extends Envelope {
  type: "subagent.spawned";
  session_id: string;
  thread_id: string;
  turn_id: string;
  subagent_id: string;
  payload: SubagentSpawnedPayload;
}

export interface SubagentStatusPayload {
  status: "pending" | "running" | "waiting" | "blocked" | "completed" | "failed" | "closed" | "lost";
  previous_status?: string;
  reason?: string;
}

/** A child agent changed its status. */
export interface SubagentStatus extends Envelope {
  type: "subagent.status";
  session_id: string;
  thread_id: string;
  subagent_id: string;
  payload: SubagentStatusPayload;
}
