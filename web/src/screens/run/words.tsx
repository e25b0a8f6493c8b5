// words.tsx - the language of the log: one icon, colour and word for each kind of event, everywhere.
import {Activity, Bot, CircleDashed, CircleHelp, Cog, FileText, GitBranch, Hourglass, OctagonX, ShieldQuestion, Sparkles, SquareTerminal, Text, User, type LucideIcon} from 'lucide-react';

export type Kind = 'model' | 'tool' | 'ask' | 'wait' | 'sub' | 'process' | 'restart' | 'artifact' | 'error' | 'text' | 'person' | 'plain';
export const ICONS: Record<Kind, LucideIcon> = {model: Sparkles, tool: SquareTerminal, ask: ShieldQuestion, wait: Hourglass, sub: GitBranch, process: Cog,
	restart: Activity, artifact: FileText, error: OctagonX, text: Text, person: User, plain: CircleDashed};
export const NAMES: Record<Kind, string> = {model: 'Model', tool: 'Tools', ask: 'Approval', wait: 'Wait', sub: 'Subagent', process: 'Process', restart: 'Restart',
	artifact: 'Artifact', error: 'Failed', text: 'Text', person: 'Person', plain: 'Run'};

export interface LogEvent {
	type: string;
	event_id: string;
	timestamp: string;
	run_sequence: number;
	tool_call_id?: string;
	action_id?: string;
	payload: Record<string, any>;
	[more: string]: unknown;
}

export interface Span {
	kind: Kind;
	state: string;
	name: string;
	detail?: string;
	key?: string;
	first: number;
	first_at: number;
	last: number | null;
	last_at: number | null;
	input_tokens?: number;
	output_tokens?: number;
	cost?: number;
	ttft_ms?: number;
}

/** Pieces of a text; many of them are one row. */
export const PIECES = ['model.delta', 'reasoning.delta', 'tool.delta'];

const WORDS: Record<string, [Kind, string]> = {
	'turn.submitted': ['person', 'Message'], 'task.created': ['plain', 'Task made'], 'task.queued': ['wait', 'Queued'], 'task.attempt.started': ['plain', 'Attempt started'],
	'task.attempt.completed': ['plain', 'Attempt ended'], 'task.attempt.failed': ['error', 'Attempt failed'], 'task.completed': ['plain', 'Task ended'], 'task.failed': ['error', 'Task failed'], 'task.started': ['plain', 'Task started'], 'task.cancelled': ['plain', 'Task cancelled'],
	'thread.started': ['plain', 'Thread started'], 'thread.updated': ['plain', 'Thread changed'], 'turn.cancelled': ['plain', 'Turn cancelled'], 'queue.changed': ['wait', 'Queue changed'],
	'run.cancel_requested': ['plain', 'Stop asked for'], 'cost.estimated': ['model', 'Cost estimated'], 'cost.recorded': ['model', 'Cost'],
	'turn.started': ['plain', 'Turn started'], 'turn.completed': ['plain', 'Turn ended'], 'turn.failed': ['error', 'Turn failed'], 'run.status': ['plain', 'Phase'],
	'model.requested': ['model', 'Model called'], 'model.completed': ['model', 'Model answered'], 'model.failed': ['error', 'Model failed'],
	'model.delta': ['text', 'Text'], 'reasoning.delta': ['text', 'Reasoning'], 'reasoning.summary': ['text', 'Reasoning'],
	'tool.started': ['tool', 'Tool started'], 'tool.args': ['tool', 'Arguments'], 'tool.result': ['tool', 'Tool result'], 'tool.failed': ['error', 'Tool failed'], 'tool.delta': ['text', 'Tool output'],
	'tool.catalog.resolved': ['tool', 'Tools offered'], 'permission.evaluated': ['ask', 'Rule decided'], 'action.requested': ['ask', 'Approval asked'], 'action.resolved': ['ask', 'Approval answered'],
	'action.expired': ['ask', 'Approval expired'], 'artifact.created': ['artifact', 'Artifact'], 'context.resolved': ['plain', 'Context'], 'history.reconstructed': ['restart', 'Server restarted'],
};

export function kindOf(type: string): Kind {
	const known = WORDS[type]?.[0];
	if (known)
		return known;
	if (/fail|error|lost|timed_out/.test(type))
		return 'error';
	const room = type.split('.')[0];
	return room === 'model' || room === 'reasoning' ? 'model' : room === 'tool' ? 'tool' : room === 'permission' || room === 'action' ? 'ask' : room === 'artifact' ? 'artifact'
		: room === 'subagent' ? 'sub' : room === 'process' ? 'process' : room === 'queue' ? 'wait' : 'plain';
}

export function wordOfEvent(type: string): string {
	return WORDS[type]?.[1] ?? type;
}

const short = (v: unknown) => typeof v === 'string' ? v : v === undefined ? '' : JSON.stringify(v);

/** What a row says besides its word. */
export function detailOf(e: LogEvent): string {
	const p = e.payload ?? {};
	switch (e.type) {
	case 'turn.submitted': return (p.input_parts ?? []).map((part: {preview?: string}) => part.preview ?? '').join(' ');
	case 'run.status': return p.title ?? p.phase ?? '';
	case 'model.requested': return `${p.model}, ${p.message_count ?? '?'} messages, ${p.tool_count ?? 0} tools`;
	case 'model.completed': return `${p.effective_model ?? p.model}: ${p.stop_reason ?? ''}`;
	case 'model.delta': case 'reasoning.delta': case 'reasoning.summary': return short(p.text);
	case 'tool.started': return `${p.tool_name} ${short(p.safe_args)}`;
	case 'tool.args': return `${p.tool_name ?? ''} ${short(p.args)}`;
	case 'tool.result': return `${p.tool_name} ${short(p.preview)}`;
	case 'tool.failed': return `${p.tool_name}: ${p.message ?? ''}`;
	case 'permission.evaluated': return `${p.action?.name ?? ''}: ${p.decision ?? ''}`;
	case 'action.requested': return p.prompt ?? p.action_type ?? '';
	default: return p.message ?? p.error?.message ?? p.title ?? p.reason ?? p.status ?? '';
	}
}

/** The last column: how long, how much. */
export function extraOf(e: LogEvent): string {
	const p = e.payload ?? {};
	if (e.type === 'model.requested' && p.input_tokens_estimate !== undefined)
		return `about ${p.input_tokens_estimate} tokens in`;
	if (e.type === 'model.completed')
		return [p.latency_ms !== undefined ? `${p.latency_ms} ms` : '', p.usage?.output_tokens !== undefined ? `${p.usage.output_tokens} out` : ''].filter(Boolean).join(', ');
	if (p.duration_ms !== undefined)
		return `${p.duration_ms} ms`;
	return '';
}

export function KindIcon({kind, size = 14}: {kind: Kind; size?: number}) {
	const Icon = ICONS[kind] ?? Bot;
	return <Icon size={size} aria-hidden />;
}

export const STATES: Record<string, string> = {open: 'at work', ended: 'ended', failed: 'failed', denied: 'denied', cut: 'cut off', superseded: 'superseded: no longer counts', uncertain: 'uncertain: it may have happened'};
export {CircleHelp};
