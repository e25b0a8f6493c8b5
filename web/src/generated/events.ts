// Written by tools/gen-events from src/event; do not edit.

export * from "./events/envelope.js";
export * from "./events/action.js";
export * from "./events/artifact.js";
export * from "./events/channel.js";
export * from "./events/context.js";
export * from "./events/cost.js";
export * from "./events/evidence.js";
export * from "./events/history.js";
export * from "./events/hook.js";
export * from "./events/job.js";
export * from "./events/limit.js";
export * from "./events/model.js";
export * from "./events/output.js";
export * from "./events/permission.js";
export * from "./events/policy.js";
export * from "./events/process.js";
export * from "./events/queue.js";
export * from "./events/quota.js";
export * from "./events/rate_limit.js";
export * from "./events/reasoning.js";
export * from "./events/routing.js";
export * from "./events/run.js";
export * from "./events/runtime.js";
export * from "./events/sandbox.js";
export * from "./events/session.js";
export * from "./events/snapshot.js";
export * from "./events/subagent.js";
export * from "./events/task.js";
export * from "./events/thread.js";
export * from "./events/tool.js";
export * from "./events/turn.js";

import type { VendorEvent } from "./events/envelope.js";
import type * as action from "./events/action.js";
import type * as artifact from "./events/artifact.js";
import type * as channel from "./events/channel.js";
import type * as context from "./events/context.js";
import type * as cost from "./events/cost.js";
import type * as evidence from "./events/evidence.js";
import type * as history from "./events/history.js";
import type * as hook from "./events/hook.js";
import type * as job from "./events/job.js";
import type * as limit from "./events/limit.js";
import type * as model from "./events/model.js";
import type * as output from "./events/output.js";
import type * as permission from "./events/permission.js";
import type * as policy from "./events/policy.js";
import type * as process from "./events/process.js";
import type * as queue from "./events/queue.js";
import type * as quota from "./events/quota.js";
import type * as rate_limit from "./events/rate_limit.js";
import type * as reasoning from "./events/reasoning.js";
import type * as routing from "./events/routing.js";
import type * as run from "./events/run.js";
import type * as runtime from "./events/runtime.js";
import type * as sandbox from "./events/sandbox.js";
import type * as session from "./events/session.js";
import type * as snapshot from "./events/snapshot.js";
import type * as subagent from "./events/subagent.js";
import type * as task from "./events/task.js";
import type * as thread from "./events/thread.js";
import type * as tool from "./events/tool.js";
import type * as turn from "./events/turn.js";

export type StandardEvent =
  | action.ActionRequired
  | action.ActionResolved
  | artifact.ArtifactChanged
  | channel.ChannelConnected
  | channel.ChannelDisconnected
  | channel.ChannelMessage
  | channel.ChannelPermissionForwarded
  | channel.ChannelPermissionReturned
  | channel.ChannelResumed
  | context.ContextCompactionCompleted
  | context.ContextCompactionFailed
  | context.ContextCompactionStarted
  | context.ContextResolved
  | cost.CostEstimated
  | cost.CostRecorded
  | evidence.EvidenceChanged
  | history.HistoryReconstructed
  | history.HistoryRollbackCompleted
  | history.HistoryRollbackStarted
  | history.HistoryWindowLoaded
  | hook.HookCompleted
  | hook.HookFailed
  | hook.HookStarted
  | job.JobCancelled
  | job.JobCompleted
  | job.JobCreated
  | job.JobFailed
  | job.JobItemCompleted
  | job.JobItemFailed
  | job.JobItemStarted
  | job.JobProgress
  | job.JobStarted
  | limit.LimitChanged
  | model.ModelCompleted
  | model.ModelDelta
  | model.ModelFailed
  | model.ModelRequested
  | output.OutputExpired
  | output.OutputRedacted
  | output.OutputSpilled
  | output.OutputTruncated
  | permission.PermissionEvaluated
  | permission.PermissionRequested
  | permission.PermissionResolved
  | policy.PolicyChanged
  | process.ProcessCompleted
  | process.ProcessFailed
  | process.ProcessInput
  | process.ProcessOutput
  | process.ProcessStarted
  | process.ProcessTerminated
  | queue.QueueChanged
  | quota.QuotaBlocked
  | quota.QuotaLow
  | rate_limit.RateLimitHit
  | reasoning.ReasoningDelta
  | reasoning.ReasoningSummary
  | routing.RoutingCandidatesResolved
  | routing.RoutingDecided
  | routing.RoutingFallbackApplied
  | routing.RoutingNotPossible
  | routing.RoutingSingleCandidate
  | run.RunStatus
  | runtime.RuntimeError
  | runtime.RuntimeWarning
  | sandbox.SandboxApplied
  | sandbox.SandboxViolation
  | session.SessionCreated
  | session.SessionUpdated
  | snapshot.SnapshotRepaired
  | snapshot.SnapshotUpdated
  | subagent.SubagentClosed
  | subagent.SubagentCompleted
  | subagent.SubagentFailed
  | subagent.SubagentInput
  | subagent.SubagentSpawned
  | subagent.SubagentStatus
  | task.TaskAccepted
  | task.TaskArchived
  | task.TaskAttemptCompleted
  | task.TaskAttemptFailed
  | task.TaskAttemptStarted
  | task.TaskBlocked
  | task.TaskCancelRequested
  | task.TaskCancelled
  | task.TaskCompleted
  | task.TaskCreated
  | task.TaskDelegated
  | task.TaskDependencyUpdated
  | task.TaskFailed
  | task.TaskLost
  | task.TaskPaused
  | task.TaskProfileResolved
  | task.TaskProgress
  | task.TaskQueued
  | task.TaskResumed
  | task.TaskRetrying
  | task.TaskStarted
  | task.TaskTimedOut
  | task.TaskUpdated
  | task.TaskWaiting
  | thread.ThreadStarted
  | thread.ThreadUpdated
  | tool.ToolArgs
  | tool.ToolCatalogResolved
  | tool.ToolFailed
  | tool.ToolProgress
  | tool.ToolResult
  | tool.ToolStarted
  | turn.TurnCompleted
  | turn.TurnFailed
  | turn.TurnStarted
  | turn.TurnSubmitted;

export type UarEvent = StandardEvent | VendorEvent;
export type EventType = StandardEvent["type"];
export type EventOf<T extends EventType> = Extract<StandardEvent, { type: T }>;

export const eventTypes: readonly EventType[] = [
  "action.required",
  "action.resolved",
  "artifact.changed",
  "channel.connected",
  "channel.disconnected",
  "channel.message",
  "channel.permission_forwarded",
  "channel.permission_returned",
  "channel.resumed",
  "context.compaction.completed",
  "context.compaction.failed",
  "context.compaction.started",
  "context.resolved",
  "cost.estimated",
  "cost.recorded",
  "evidence.changed",
  "history.reconstructed",
  "history.rollback.completed",
  "history.rollback.started",
  "history.window.loaded",
  "hook.completed",
  "hook.failed",
  "hook.started",
  "job.cancelled",
  "job.completed",
  "job.created",
  "job.failed",
  "job.item.completed",
  "job.item.failed",
  "job.item.started",
  "job.progress",
  "job.started",
  "limit.changed",
  "model.completed",
  "model.delta",
  "model.failed",
  "model.requested",
  "output.expired",
  "output.redacted",
  "output.spilled",
  "output.truncated",
  "permission.evaluated",
  "permission.requested",
  "permission.resolved",
  "policy.changed",
  "process.completed",
  "process.failed",
  "process.input",
  "process.output",
  "process.started",
  "process.terminated",
  "queue.changed",
  "quota.blocked",
  "quota.low",
  "rate_limit.hit",
  "reasoning.delta",
  "reasoning.summary",
  "routing.candidates.resolved",
  "routing.decided",
  "routing.fallback.applied",
  "routing.not_possible",
  "routing.single_candidate",
  "run.status",
  "runtime.error",
  "runtime.warning",
  "sandbox.applied",
  "sandbox.violation",
  "session.created",
  "session.updated",
  "snapshot.repaired",
  "snapshot.updated",
  "subagent.closed",
  "subagent.completed",
  "subagent.failed",
  "subagent.input",
  "subagent.spawned",
  "subagent.status",
  "task.accepted",
  "task.archived",
  "task.attempt.completed",
  "task.attempt.failed",
  "task.attempt.started",
  "task.blocked",
  "task.cancel_requested",
  "task.cancelled",
  "task.completed",
  "task.created",
  "task.delegated",
  "task.dependency.updated",
  "task.failed",
  "task.lost",
  "task.paused",
  "task.profile.resolved",
  "task.progress",
  "task.queued",
  "task.resumed",
  "task.retrying",
  "task.started",
  "task.timed_out",
  "task.updated",
  "task.waiting",
  "thread.started",
  "thread.updated",
  "tool.args",
  "tool.catalog.resolved",
  "tool.failed",
  "tool.progress",
  "tool.result",
  "tool.started",
  "turn.completed",
  "turn.failed",
  "turn.started",
  "turn.submitted",
];
