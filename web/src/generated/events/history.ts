// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Err, Who } from "./envelope.js";

export interface HistoryReconstructedPayload {
  source: "log" | "snapshot" | "snapshot_and_log";
  through_sequence: number;
  turns: number;
  degraded: boolean;
  missing: string[];
  duration_ms: number;
}

/** A session or thread was rebuilt from the log after a restart. */
export interface HistoryReconstructed extends Envelope {
  type: "history.reconstructed";
  session_id: string;
  thread_id: string;
  payload: HistoryReconstructedPayload;
}

export interface HistoryRollbackCompletedPayload {
  rollback_id: string;
  status: "completed" | "failed";
  removed_turn_ids: string[];
  surviving_baseline: {
    turn_id: string;
    sequence: number;
  };
  read_models_repaired: string[];
  error?: Err;
}

/** Taking back turns ended; the point that survives is named. */
export interface HistoryRollbackCompleted extends Envelope {
  type: "history.rollback.completed";
  session_id: string;
  thread_id: string;
  payload: HistoryRollbackCompletedPayload;
}

export interface HistoryRollbackStartedPayload {
  rollback_id: string;
  target: {
    turn_id?: string;
    sequence?: number;
  };
  removed_turn_ids: string[];
  affected: {
    tool_call_ids: string[];
    artifact_ids: string[];
    subagent_ids: string[];
    job_ids: string[];
  };
  requested_by: Who;
}

/** Turns of a thread are about to be taken back. */
export interface HistoryRollbackStarted extends Envelope {
  type: "history.rollback.started";
  session_id: string;
  thread_id: string;
  payload: HistoryRollbackStartedPayload;
}

export interface HistoryWindowLoadedPayload {
  cursor?: string;
  next_cursor: string | null;
  from_sequence: number;
  to_sequence: number;
  count: number;
  truncated: boolean;
  stale: boolean;
}

/** A page of history was read for a client. */
export interface HistoryWindowLoaded extends Envelope {
  type: "history.window.loaded";
  session_id: string;
  thread_id: string;
  payload: HistoryWindowLoadedPayload;
}
