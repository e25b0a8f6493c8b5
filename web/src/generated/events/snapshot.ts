// Written by tools/gen-events from src/event; do not edit.

import type { Envelope } from "./envelope.js";

export interface SnapshotRepairedPayload {
  read_models: string[];
  reason: string;
  gap?: {
    from_sequence: number;
    to_sequence: number;
  };
  stale: boolean;
  repair_status: "repaired" | "partial" | "failed";
}

/** Read models that disagreed with the log were rebuilt. */
export interface SnapshotRepaired extends Envelope {
  type: "snapshot.repaired";
  payload: SnapshotRepairedPayload;
}

export interface SnapshotUpdatedPayload {
  read_models: string[];
  through_sequence: number;
  status: "updated" | "stale" | "recovered";
  source: string;
}

/** Stored read models now stand for the log up to a sequence number. */
export interface SnapshotUpdated extends Envelope {
  type: "snapshot.updated";
  payload: SnapshotUpdatedPayload;
}
