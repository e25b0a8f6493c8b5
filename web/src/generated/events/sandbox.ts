// Written by tools/gen-events from src/event; do not edit.

import type { Envelope } from "./envelope.js";

export interface SandboxAppliedPayload {
  profile_id: string;
  mode: string;
  cwd: string;
  read_roots: string[];
  write_roots: string[];
  network: {
    mode: "none" | "allowlist" | "full";
    allow?: string[];
  };
  process_limits: {
    cpu_s?: number;
    memory_bytes?: number;
    files?: number;
    processes?: number;
    wall_ms?: number;
  };
  platform: string;
  enforced: boolean;
  /** limits asked for but not enforceable here */
  gaps: string[];
}

/** The boundary in which a tool or process really runs, with what could not be enforced. */
export interface SandboxApplied extends Envelope {
  type: "sandbox.applied";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: SandboxAppliedPayload;
}

export interface SandboxViolationPayload {
  violation_id: string;
  profile_id: string;
  kind: "filesystem" | "network" | "process" | "permission" | "resource";
  target: string;
  attempted: string;
  action_taken: "denied" | "killed" | "logged";
  decision_id?: string;
}

/** A tool or process hit its boundary. */
export interface SandboxViolation extends Envelope {
  type: "sandbox.violation";
  session_id: string;
  thread_id: string;
  turn_id: string;
  payload: SandboxViolationPayload;
}
