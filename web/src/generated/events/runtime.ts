// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Err, Json } from "./envelope.js";

export interface RuntimeErrorPayload {
  code: string;
  message: string;
  component: string;
  fatal: boolean;
  error: Err;
}

/** The runtime itself failed at something. */
export interface RuntimeError extends Envelope {
  type: "runtime.error";
  payload: RuntimeErrorPayload;
}

export interface RuntimeWarningPayload {
  code: string;
  message: string;
  component: string;
  dedupe_key?: string;
  details?: { [key: string]: Json };
}

/** Something is wrong that does not stop the work. */
export interface RuntimeWarning extends Envelope {
  type: "runtime.warning";
  payload: RuntimeWarningPayload;
}
