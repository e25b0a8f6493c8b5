// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Json, Model } from "./envelope.js";

export interface RoutingCandidatesResolvedPayload {
  candidate_set_id: string;
  candidate_count: number;
  candidates: {
    provider: string;
    model: string;
    capabilities: string[];
    context_tokens: number;
    cost_class: string;
    latency_class: string;
    score: number;
  }[];
  excluded: {
    provider: string;
    model: string;
    reason: string;
  }[];
  hard_constraints: string[];
  preferences: string[];
  gaps: {
    credentials: string[];
    quota: string[];
    network: string[];
  };
}

/** The models that may serve a request, and why others may not. */
export interface RoutingCandidatesResolved extends Envelope {
  type: "routing.candidates.resolved";
  payload: RoutingCandidatesResolvedPayload;
}

export interface RoutingDecidedPayload {
  decision_id: string;
  routing_mode: string;
  decision_source: string;
  decision_reason: string;
  selected: Model;
  requested?: Model;
  role?: string;
  chosen_index?: number;
  candidate_count: number;
  fallback_chain: Model[];
  capability_gap: string[];
  requires_user_override: boolean;
  limit_state_snapshot: { [key: string]: Json };
}

/** A model was chosen, with the chain of fallbacks behind it. */
export interface RoutingDecided extends Envelope {
  type: "routing.decided";
  payload: RoutingDecidedPayload;
}

export interface RoutingFallbackAppliedPayload {
  decision_id: string;
  from: Model;
  to: Model;
  reason: string;
  failed_model_request_id: string;
  chain_index: number;
  remaining: number;
}

/** The next model of the chain takes over after a failure. */
export interface RoutingFallbackApplied extends Envelope {
  type: "routing.fallback.applied";
  payload: RoutingFallbackAppliedPayload;
}

export interface RoutingNotPossiblePayload {
  reason_code: string;
  routing_mode: string;
  candidate_count: 0;
  gaps: { [key: string]: Json };
  decision_source: string;
  status: "blocked";
}

/** No model can serve the request. */
export interface RoutingNotPossible extends Envelope {
  type: "routing.not_possible";
  payload: RoutingNotPossiblePayload;
}

export interface RoutingSingleCandidatePayload {
  task_kind?: string;
  candidate_count: 1;
  selected: Model;
  decision_source: string;
  decision_reason: string;
  capability_gap: string[];
  cost_state: { [key: string]: Json };
  limit_state: { [key: string]: Json };
}

/** Only one model can serve the request, so nothing was chosen. */
export interface RoutingSingleCandidate extends Envelope {
  type: "routing.single_candidate";
  payload: RoutingSingleCandidatePayload;
}
