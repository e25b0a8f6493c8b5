// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Json } from "./envelope.js";

export interface ArtifactChangedPayload {
  op: "created" | "updated" | "version_created" | "exported" | "failed" | "deleted";
  artifact_type: string;
  title: string;
  version: number;
  status: "planned" | "streaming" | "draft" | "ready" | "failed" | "deleted";
  language?: string;
  mime?: string;
  bytes: number;
  /** empty while there are no bytes */
  sha256: string;
  preview?: string;
  /** of the type a2ui: its messages, when the preview is not all of it */
  interface?: { [key: string]: Json }[];
  issue_count: number;
  metadata: { [key: string]: Json };
}

/** A deliverable was created, changed, exported or deleted; its bytes are referenced. */
export interface ArtifactChanged extends Envelope {
  type: "artifact.changed";
  session_id: string;
  task_id: string;
  run_id: string;
  attempt_id: string;
  artifact_id: string;
  payload: ArtifactChangedPayload;
}
