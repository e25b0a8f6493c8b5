// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Json, Timestamp } from "./envelope.js";

export interface SessionCreatedPayload {
  source: "api" | "ag_ui" | "a2a" | "agent_api" | "plugin" | "channel" | "fixture" | "import";
  title?: string;
  agent_id?: string;
  created_at: Timestamp;
  metadata: { [key: string]: Json };
}

/** A session exists from here on and can own threads. */
export interface SessionCreated extends Envelope {
  type: "session.created";
  session_id: string;
  payload: SessionCreatedPayload;
}

export interface SessionUpdatedPayload {
  changed: string[];
  title?: string;
  status?: "active" | "idle" | "archived";
  active_thread_ids?: string[];
  pinned_thread_ids?: string[];
  metadata?: { [key: string]: Json };
}

/** Title, status, thread lists or metadata of a session changed. */
export interface SessionUpdated extends Envelope {
  type: "session.updated";
  session_id: string;
  payload: SessionUpdatedPayload;
}
