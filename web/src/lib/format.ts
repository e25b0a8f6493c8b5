// format.ts - numbers, times and words as people read them.

/** "25 s", "6 min", "3 h", "2 d". */
export function span(seconds: number): string {
	if (!Number.isFinite(seconds) || seconds < 0)
		return 'unknown';
	if (seconds < 1)
		return `${Math.round(seconds * 1000)} ms`;
	if (seconds < 10)
		return `${seconds.toFixed(1)} s`;
	if (seconds < 90)
		return `${Math.round(seconds)} s`;
	if (seconds < 5400)
		return `${Math.round(seconds / 60)} min`;
	if (seconds < 129600)
		return `${Math.round(seconds / 3600)} h`;
	return `${Math.round(seconds / 86400)} d`;
}

/** How long ago, short: "now", "25 s", "6 min", "1 h", "Monday", "3 Nov". */
export function ago(at: number, now = Date.now() / 1000): string {
	const past = now - at;
	if (past < 5)
		return 'now';
	if (past < 10)
		return `${Math.floor(past)} s`;
	if (past < 86400)
		return span(past);
	const date = new Date(at * 1000);
	if (past < 172800)
		return 'Yesterday';
	if (past < 6 * 86400)
		return date.toLocaleDateString(undefined, {weekday: 'long'});
	return date.toLocaleDateString(undefined, {day: 'numeric', month: 'short', year: past > 300 * 86400 ? 'numeric' : undefined});
}

export function exact(at: number): string {
	return new Date(at * 1000).toLocaleString(undefined, {dateStyle: 'medium', timeStyle: 'medium'});
}

export function clock(at: number): string {
	return new Date(at * 1000).toLocaleTimeString();
}

/** Seconds of an ISO time or of a number of seconds. */
export function seconds(value: string | number | null | undefined): number {
	return typeof value === 'number' ? value : value ? Date.parse(value) / 1000 : NaN;
}

export function money(value: number): string {
	return `$${value === 0 ? '0.00' : value < 0.01 ? value.toFixed(4) : value < 1 ? value.toFixed(3) : value.toFixed(2)}`;
}

export function count(value: number): string {
	return value.toLocaleString('en-US');
}

export function bytes(value: number): string {
	return value < 1000 ? `${value} B` : value < 1e6 ? `${(value / 1000).toFixed(1)} KB` : value < 1e9 ? `${(value / 1e6).toFixed(1)} MB` : `${(value / 1e9).toFixed(1)} GB`;
}

/** Who decides reads what is there: characters that cannot be seen, or that turn the direction of others, are
 * written as escapes. */
export function plain(text: string): string {
	return text.replace(/(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu,
		(c) => `\\u{${c.codePointAt(0)?.toString(16)}}`);
}

/** Whole characters: half of a pair is shown as a mark, so that it cannot break what follows. */
export function whole(text: string): string {
	return text.isWellFormed?.() === false ? text.toWellFormed() : text;
}

export function pretty(value: unknown): string {
	return typeof value === 'string' ? value : JSON.stringify(value, null, 2) ?? '';
}

/** The states of a run, in words: what the server says is in `status`, finer in `engine_status`. */
export function stateOf(status: string, engine = ''): {word: string; kind: StateKind} {
	const table: Record<string, [string, StateKind]> = {
		queued: ['Queued', 'queued'], preparing: ['Preparing', 'running'], running: ['Running', 'running'], streaming: ['Running', 'running'],
		retrying: ['Trying again', 'running'], waiting_input: ['Waits for you', 'waits'], waiting_permission: ['Waits for you', 'waits'],
		draft: ['Draft', 'queued'], accepted: ['Ready to start', 'queued'], archived: ['Archived', 'cancelled'], waiting_resource: ['Waits for a place', 'queued'], blocked: ['Blocked', 'waits'], paused: ['Paused', 'queued'],
		cancelling: ['Stopping', 'stopping'], cancel_requested: ['Stopping', 'stopping'], completed: ['Succeeded', 'ok'],
		pending: ['To come', 'queued'], waiting: ['Waits', 'waits'], skipped: ['Skipped', 'cancelled'],
		succeeded: ['Succeeded', 'ok'], failed: ['Failed', 'failed'], lost: ['Lost', 'lost'], timed_out: ['Timed out', 'timeout'],
		timeout: ['Timed out', 'timeout'], cancelled: ['Cancelled', 'cancelled'], canceled: ['Cancelled', 'cancelled'],
	};
	const found = table[engine] ?? table[status];
	return found ? {word: found[0], kind: found[1]} : {word: status || 'Unknown', kind: 'lost'};
}
export type StateKind = 'queued' | 'running' | 'waits' | 'stopping' | 'ok' | 'failed' | 'timeout' | 'lost' | 'cancelled';
