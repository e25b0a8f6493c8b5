// Written by tools/gen-events from src/event; do not edit.

import type { Envelope, Json, Timestamp, Who } from "./envelope.js";

export interface ChannelConnectedPayload {
  transport: "websocket" | "sse" | "json_rpc" | "grpc" | "http_json" | "stdio" | "in_process" | (string & {});
  peer_role: "client" | "host" | "worker" | "remote_runtime" | "peer_agent" | "tool_server";
  peer_id?: string;
  native_protocol?: "a2a" | "mcp" | "json_rpc" | (string & {});
  account_ref?: string;
  capabilities: string[];
  resume_supported: boolean;
  last_ack_sequence: number;
}

/** A peer is reachable over a channel. */
export interface ChannelConnected extends Envelope {
  type: "channel.connected";
  channel_id: string;
  payload: ChannelConnectedPayload;
}

export interface ChannelDisconnectedPayload {
  reason_code: string;
  clean: boolean;
  last_sent_sequence: number;
  last_ack_sequence: number;
  retryable: boolean;
  resume_until?: Timestamp;
}

/** A channel is gone, on purpose or not. */
export interface ChannelDisconnected extends Envelope {
  type: "channel.disconnected";
  channel_id: string;
  payload: ChannelDisconnectedPayload;
}

export interface ChannelMessagePayload {
  message_id: string;
  direction: "in" | "out";
  kind: "a2a" | "notice" | "status" | "protocol";
  preview: string;
  bytes: number;
  native_ids?: { [key: string]: Json };
  /** the message itself, while it is small; else content_ref has it */
  content?: { [key: string]: Json };
  /** what the message asked of this runtime, and what became of it */
  effect?: {
    kind: "cancel";
    run_id?: string;
    result: "requested" | "over" | "unknown";
  };
}

/** A message that is no turn passed over a channel. */
export interface ChannelMessage extends Envelope {
  type: "channel.message";
  channel_id: string;
  payload: ChannelMessagePayload;
}

export interface ChannelPermissionForwardedPayload {
  decision_id: string;
  to_channel_id: string;
  requesting_peer: string;
  target: {
    kind: "tool" | "process" | "action" | "peer_task";
    id: string;
  };
  timeout_at?: Timestamp;
}

/** A permission request was passed on over a channel. */
export interface ChannelPermissionForwarded extends Envelope {
  type: "channel.permission_forwarded";
  session_id: string;
  thread_id: string;
  turn_id: string;
  action_id: string;
  channel_id: string;
  payload: ChannelPermissionForwardedPayload;
}

export interface ChannelPermissionReturnedPayload {
  decision_id: string;
  outcome: "allowed" | "denied" | "timed_out" | "cancelled";
  decided_side: "local" | "remote";
  decided_by: Who;
  source: "response" | "timeout" | "policy_deny" | "auth_failure";
  channel_scoped: boolean;
}

/** The decision about a forwarded permission request came back. */
export interface ChannelPermissionReturned extends Envelope {
  type: "channel.permission_returned";
  session_id: string;
  thread_id: string;
  turn_id: string;
  action_id: string;
  channel_id: string;
  payload: ChannelPermissionReturnedPayload;
}

export interface ChannelResumedPayload {
  mode: "replay" | "snapshot" | "snapshot_and_replay";
  from_sequence: number;
  to_sequence: number;
  replayed: number;
  gap: boolean;
}

/** A peer came back and caught up from its cursor. */
export interface ChannelResumed extends Envelope {
  type: "channel.resumed";
  channel_id: string;
  payload: ChannelResumedPayload;
}
