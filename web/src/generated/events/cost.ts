// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Model, Usage } from "./envelope.js";

export interface CostEstimatedPayload {
  currency: string;
  amount?: number;
  estimated_cost_class: "free" | "low" | "medium" | "high" | "unknown";
  basis: string;
  selected: Model;
}

/** What a model request is expected to cost. */
export interface CostEstimated extends Envelope {
  type: "cost.estimated";
  payload: CostEstimatedPayload;
}

export interface CostRecordedPayload {
  currency: string;
  amount: number;
  usage: Usage;
  cumulative: {
    run: number;
    task?: number;
    session?: number;
  };
  is_estimate: boolean;
  selected: Model;
}

/** What a model request did cost, and the sums so far. */
export interface CostRecorded extends Envelope {
  type: "cost.recorded";
  payload: CostRecordedPayload;
}
