// run.js - a run as the page shows it: the fold of its events, and nothing else.

/** @typedef {import('./server.js').RunEvent} RunEvent */
/** @typedef {{kind: string, text: string, id?: string, title?: string, state?: string, input?: string,
 *   rest?: string, bytes?: number, decisions?: string[], form?: any, wrong?: string, repeat?: boolean, answering?: string, element?: HTMLElement, body?: HTMLElement, drawn?: number, folded?: boolean}} Block */
// (drawn: characters on the screen, -1: draw all anew; rest: where the whole of a text that was cut is; state of
// a question: WAITS, then what was decided; form: JSON Schema of the values that it asks for; wrong: why they were refused; answering: what a person here decided and the server has not confirmed)
/** @typedef {{ok: boolean, code: string, message: string}} Outcome */
// (code of one that is ok: why its answer may be cut)
/** @typedef {'waiting' | 'live' | 'away' | 'over' | 'gone' | 'unsent'} RunState */

const SHOWN_MAX = 20000; // characters of one tool value
export const WAITS = 'waits';

/** @param {any} value */
function brief(value) {
	const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2) ?? '';
	return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}\n… (${text.length} characters)` : text;
}

/** The text without its last `bytes` bytes of UTF-8. @param {string} text @param {number} bytes */
function withoutTail(text, bytes) {
	const all = new TextEncoder().encode(text);
	return new TextDecoder().decode(all.subarray(0, Math.max(0, all.length - bytes)));
}

/** @param {string} text */
function bytesOf(text) {
	return new TextEncoder().encode(text).length;
}

/** Of a heading: its beginning and its end, where the question is. @param {string} text */
function heading(text) {
	return text.length > 160 ? `${text.slice(0, 100)} … ${text.slice(-50)}` : text;
}

/** Whoever decides reads what is there: characters that cannot be seen, or that turn the direction of others,
 * are written as escapes. @param {string} text */
export function plain(text) {
	return text.replace(/(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu,
		(c) => `\\u{${c.codePointAt(0)?.toString(16)}}`);
}

export class Run {
	/** @param {string} id '' until the server has it @param {string} agent @param {string} message */
	constructor(id, agent, message) {
		this.id = id;
		this.agent = agent;
		this.message = message;
		/** @type {Block[]} */
		this.blocks = [];
		/** @type {Block[]} */
		this.dropped = [];
		this.cursor = ''; // id of the last event: NUMBER or INCARNATION-NUMBER
		this.seen = 0; // its number
		/** @type {RunState} */
		this.state = 'waiting';
		/** @type {Outcome | null} */
		this.outcome = null;
		this.cancelling = false;
		this.old = false; // was over when it was opened: no news
		/** @type {Record<string, HTMLElement> | null} */
		this.elements = null;
	}

	/** The server was restored from another copy: what was shown may never have happened in it. */
	reset() {
		this.dropped.push(...this.blocks);
		this.blocks = [];
		this.cursor = '';
		this.seen = 0;
	}

	/** @param {RunEvent} event */
	fold(event) {
		const d = event.data ?? {};
		switch (event.type) {
		case 'ChatDelta': this.append('text', d.text_delta); break;
		case 'ReasoningDelta': this.append('reasoning', d.text_delta); break;
		case 'ToolStart':
			this.blocks.push({kind: 'tool', text: '', id: d.tool_call_id, title: d.tool, state: 'running', input: brief(d.input)});
			break;
		case 'ToolDelta': this.tool(d.tool_call_id, (b) => { b.text = brief(d.delta); }); break;
		case 'ToolEnd':
			this.tool(d.tool_call_id, (b) => { b.text = brief(d.output); b.state = d.ok ? 'ok' : 'failed'; });
			break;
		case 'Artifact':
			this.blocks.push({kind: 'artifact', text: String(d.artifact?.content ?? ''), title: d.artifact?.title || 'Artifact',
				state: d.artifact?.language || d.artifact?.artifact_type || ''});
			break;
		case 'Citation': this.note(`Sources: ${(d.sources ?? []).map((/** @type {any} */ s) => s?.title ?? s?.url ?? brief(s)).join(', ')}`); break;
		case 'MemoryRecall': this.note(`Remembered: ${brief(d.items)}`); break;
		case 'ui.form.request': this.form(d); break;
		case 'ui.navigate': this.note(`Shows: ${plain(String(d.title ?? ''))} ${plain(String(d.target ?? ''))}`); break;
		case 'artifact.error': this.note(`Preview failed: ${d.message ?? ''}`); break;
		case 'meta':
			if (d.action_id)
				this.asks(d);
			else
				this.meta(d.metadata);
			break;
		case 'Error': this.outcome = {ok: false, code: String(d.code), message: String(d.message ?? '')}; break;
		case 'RunDone': this.outcome = {ok: true, code: String(d.finish_reason ?? ''), message: ''}; break;
		}
	}

	/** @param {string} kind @param {string} [delta] */
	append(kind, delta = '') {
		const last = this.blocks.at(-1);
		if (last?.kind === kind)
			last.text += delta;
		else
			this.blocks.push({kind, text: delta});
	}

	/** @param {string} text */
	note(text) {
		this.blocks.push({kind: 'note', text});
	}

	/** @param {string} id @param {(b: Block) => void} change */
	tool(id, change) {
		const block = this.blocks.findLast((b) => b.kind === 'tool' && b.id === id);
		if (block)
			change(block);
	}

	/** Asked, or answered by whomever. @param {any} d */
	asks(d) {
		const block = this.blocks.findLast((b) => b.kind === 'ask' && b.id === d.action_id);
		if (block)
			block.state = String(d.decision ?? d.status ?? '');
		else if (d.action_type === 'tool_permission')
			this.blocks.push({kind: 'ask', text: plain(brief(d.scope?.input ?? d.scope?.input_preview)), id: d.action_id,
				title: heading(plain(String(d.title ?? ''))), state: WAITS, rest: d.scope?.input_url, bytes: d.scope?.input_bytes,
				decisions: d.decisions, repeat: d.scope?.repeat});
	}

	/** Values that a person has to give. @param {any} d */
	form(d) {
		const blob = String(d.schema_ref ?? '').replace('blob://', '');
		this.blocks.push({kind: 'ask', text: '', id: d.form_id, title: heading(plain(String(d.title ?? ''))), state: WAITS,
			form: d.schema ?? {}, rest: blob && `/api/runs/${encodeURIComponent(this.id)}/blobs/${blob}`});
	}

	/** @param {any} metadata */
	meta(metadata) {
		if (typeof metadata?.superseded_bytes === 'number')
			this.supersede(metadata.superseded_bytes);
		else if (metadata)
			this.note(brief(metadata));
	}

	/** A call was cut off by a restart and is made again: so much of the text, and the
	 * reasoning of that call, no longer count. @param {number} bytes */
	supersede(bytes) {
		for (let b = this.blocks.at(-1); b; b = this.blocks.at(-1)) {
			if (b.kind !== 'reasoning' && !(b.kind === 'text' && bytes > 0))
				return;
			const has = b.kind === 'text' ? bytesOf(b.text) : 0;
			if (has > bytes) {
				b.text = withoutTail(b.text, bytes);
				b.drawn = -1;
				return;
			}
			bytes -= has;
			this.blocks.pop();
			this.dropped.push(b);
		}
	}

	/** What somebody has to decide before the run goes on. */
	get question() {
		return this.outcome ? undefined : this.blocks.find((b) => b.kind === 'ask' && b.state === WAITS);
	}

	get answer() {
		return this.blocks.filter((b) => b.kind === 'text').map((b) => b.text).join('\n');
	}
}
