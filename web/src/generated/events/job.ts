// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Err, Json, Timestamp, Who } from "./envelope.js";

export interface JobCancelledPayload {
  reason: string;
  cancelled_by: Who;
  /** completed items stay completed */
  counts: { [key: string]: Json };
  status: "cancelled";
}

/** A job was stopped; finished items stay finished. */
export interface JobCancelled extends Envelope {
  type: "job.cancelled";
  session_id: string;
  job_id: string;
  payload: JobCancelledPayload;
}

export interface JobCompletedPayload {
  counts: { [key: string]: Json };
  duration_ms: number;
  status: "completed";
}

/** A job is over and has worked through its items. */
export interface JobCompleted extends Envelope {
  type: "job.completed";
  session_id: string;
  job_id: string;
  payload: JobCompletedPayload;
}

export interface JobCreatedPayload {
  job_kind: string;
  source: string;
  item_count: number;
  /** absent when the list was too long and is referenced instead */
  items?: {
    job_item_id: string;
    index: number;
  }[];
  max_runtime_ms?: number;
  status: "created";
}

/** A batch or background job exists, with its items. */
export interface JobCreated extends Envelope {
  type: "job.created";
  session_id: string;
  job_id: string;
  payload: JobCreatedPayload;
}

export interface JobFailedPayload {
  failure_category: string;
  error: Err;
  counts: { [key: string]: Json };
  status: "failed";
}

/** A job failed as a whole. */
export interface JobFailed extends Envelope {
  type: "job.failed";
  session_id: string;
  job_id: string;
  payload: JobFailedPayload;
}

export interface JobItemCompletedPayload {
  index: number;
  attempt: number;
  duration_ms: number;
  status: "completed";
}

/** One item of a job is done. */
export interface JobItemCompleted extends Envelope {
  type: "job.item.completed";
  session_id: string;
  job_id: string;
  job_item_id: string;
  payload: JobItemCompletedPayload;
}

export interface JobItemFailedPayload {
  index: number;
  attempt: number;
  failure_category: string;
  error: Err;
  retryable: boolean;
  assigned_thread_id?: string;
  status: "failed";
}

/** One item of a job failed. */
export interface JobItemFailed extends Envelope {
  type: "job.item.failed";
  session_id: string;
  job_id: string;
  job_item_id: string;
  payload: JobItemFailedPayload;
}

export interface JobItemStartedPayload {
  index: number;
  attempt: number;
  assigned_thread_id?: string;
  item_kind?: string;
  status: "running";
}

/** Work on one item of a job began. */
export interface JobItemStarted extends Envelope {
  type: "job.item.started";
  session_id: string;
  job_id: string;
  job_item_id: string;
  payload: JobItemStartedPayload;
}

export interface JobProgressPayload {
  counts: {
    pending: number;
    running: number;
    completed: number;
    failed: number;
    reported: number;
  };
  cursor?: string;
  progress: number;
}

/** The counts of a job changed. */
export interface JobProgress extends Envelope {
  type: "job.progress";
  session_id: string;
  job_id: string;
  payload: JobProgressPayload;
}

export interface JobStartedPayload {
  status: "running";
  concurrency: number;
  started_at: Timestamp;
}

/** A job began to work on its items. */
export interface JobStarted extends Envelope {
  type: "job.started";
  session_id: string;
  job_id: string;
  payload: JobStartedPayload;
}
