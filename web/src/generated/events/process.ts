// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Err, Timestamp, Who } from "./envelope.js";

export interface ProcessCompletedPayload {
  exit_code: number | null;
  signal: number | null;
  duration_ms: number;
  stdout_bytes: number;
  stderr_bytes: number;
  status: "completed";
}

/** A process ended by itself. */
export interface ProcessCompleted extends Envelope {
  type: "process.completed";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  process_id: string;
  payload: ProcessCompletedPayload;
}

export interface ProcessFailedPayload {
  stage: "spawn" | "sandbox" | "permission" | "timeout" | "transport";
  error: Err;
  exit_code?: number;
  duration_ms: number;
}

/** A process could not be started or kept running. */
export interface ProcessFailed extends Envelope {
  type: "process.failed";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  process_id: string;
  payload: ProcessFailedPayload;
}

export interface ProcessInputPayload {
  bytes: number;
  eof: boolean;
  source: Who;
  /** without secrets */
  preview?: string;
}

/** Bytes that were written to a process. */
export interface ProcessInput extends Envelope {
  type: "process.input";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  process_id: string;
  payload: ProcessInputPayload;
}

export interface ProcessOutputPayload {
  stream: "stdout" | "stderr" | "pty";
  index: number;
  offset: number;
  bytes: number;
  encoding: "utf8" | "base64";
  text?: string;
  data?: string;
  truncated: boolean;
}

/** Bytes that a process wrote. */
export interface ProcessOutput extends Envelope {
  type: "process.output";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  process_id: string;
  payload: ProcessOutputPayload;
}

export interface ProcessStartedPayload {
  /** without secrets */
  command_summary: string;
  subcommands: string[];
  cwd: string;
  tty: boolean;
  pid?: number;
  profile_id: string;
  network: string;
  destructive: boolean;
  decision_id?: string;
  justification?: string;
  started_at: Timestamp;
}

/** A child process was started inside its sandbox profile. */
export interface ProcessStarted extends Envelope {
  type: "process.started";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  process_id: string;
  payload: ProcessStartedPayload;
}

export interface ProcessTerminatedPayload {
  reason: "user" | "policy" | "parent_cancelled" | "shutdown" | "timeout";
  terminated_by: Who;
  signal: number;
  /** a second, harder signal was needed */
  escalated: boolean;
  exit_code?: number;
  duration_ms: number;
}

/** A process was stopped from outside. */
export interface ProcessTerminated extends Envelope {
  type: "process.terminated";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  process_id: string;
  payload: ProcessTerminatedPayload;
}
