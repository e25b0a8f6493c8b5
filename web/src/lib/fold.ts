// fold.ts - a run as the page shows it: the fold of its events, and nothing else.
import {plain, pretty} from './format';

export type BlockKind = 'text' | 'reasoning' | 'tool' | 'artifact' | 'sources' | 'memory' | 'ask' | 'note' | 'navigate' | 'superseded';

export interface Source { title?: string; url?: string; snippet?: string; document_id?: string; [more: string]: unknown }

export interface Artifact {
	artifact_id: string;
	artifact_type: string;
	title: string;
	content: string;
	language?: string;
	content_ref?: string;
	truncated?: boolean;
	run: string;
	event: number;
}

export interface Block {
	kind: BlockKind;
	key: string;
	/** The number of the event that began it. */
	event: number;
	/** Renewed with each change: what is drawn from it is drawn again. */
	rev: number;
	text: string;
	id?: string;
	title?: string;
	/** Of a tool: running, ok, failed. Of a question: pending, or how it was decided. */
	state?: string;
	input?: unknown;
	inputRef?: string;
	output?: unknown;
	outputRef?: string;
	sources?: Source[];
	items?: any[];
	artifact?: Artifact;
	/** What a question says of itself. */
	ask?: Record<string, any>;
	errors?: string[];
}

export interface Outcome { ok: boolean; code: string; message: string }

/** The text without its last `bytes` bytes of UTF-8. */
function withoutTail(text: string, bytes: number): string {
	const all = new TextEncoder().encode(text);
	return new TextDecoder().decode(all.subarray(0, Math.max(0, all.length - bytes)));
}

const bytesOf = (text: string) => new TextEncoder().encode(text).length;

/** Of a heading: its beginning and its end, where the question is. */
export function heading(text: string): string {
	const shown = plain(text);
	return shown.length > 160 ? `${shown.slice(0, 100)} … ${shown.slice(-50)}` : shown;
}

export class Fold {
	blocks: Block[] = [];
	outcome: Outcome | null = null;
	/** The newest phase that the server named. */
	phase: {status: string; title: string} | null = null;
	seen = 0;
	first = 0;
	private made = 0;

	reset(): void {
		this.blocks = [];
		this.seen = 0;
		this.outcome = null;
	}

	take(number: number, event: {type: string; data: any}): void {
		const d = event.data ?? {};
		this.seen = number;
		this.first ||= number;
		switch (event.type) {
		case 'ChatDelta': this.append('text', String(d.text_delta ?? '')); break;
		case 'ReasoningDelta': this.append('reasoning', String(d.text_delta ?? '')); break;
		case 'ToolStart':
			this.push('tool', {id: d.tool_call_id, title: String(d.tool ?? 'tool'), state: 'running', input: d.input, inputRef: d.input_ref});
			break;
		case 'ToolDelta': this.change('tool', d.tool_call_id, (b) => { b.text = pretty(d.delta); }); break;
		case 'ToolEnd':
			this.change('tool', d.tool_call_id, (b) => { b.output = d.output; b.outputRef = d.output_ref; b.state = d.ok ? 'ok' : 'failed'; });
			break;
		case 'Artifact': this.push('artifact', {id: d.artifact?.artifact_id, title: d.artifact?.title || 'Artifact', artifact: {...d.artifact,
			title: d.artifact?.title || 'Artifact', content: String(d.artifact?.content ?? ''), run: String(d.run_id), event: number}}); break;
		case 'Citation': this.push('sources', {sources: Array.isArray(d.sources) ? d.sources : []}); break;
		case 'MemoryRecall': this.push('memory', {items: Array.isArray(d.items) ? d.items : []}); break;
		case 'ui.form.request': this.push('ask', {id: d.form_id, title: heading(String(d.title ?? '')), state: 'pending',
			ask: {...d, action_type: 'form', action_id: d.form_id, schema: d.schema, decisions: ['submit', 'decline']}}); break;
		case 'ui.navigate': this.push('navigate', {title: String(d.title ?? ''), text: String(d.target ?? '')}); break;
		case 'artifact.error': this.change('artifact', d.artifact_id, (b) => { b.errors = [...b.errors ?? [], String(d.message ?? '')]; }); break;
		case 'meta': this.meta(d); break;
		case 'Error': this.outcome = {ok: false, code: String(d.code), message: String(d.message ?? '')}; break;
		case 'RunDone': this.outcome = {ok: true, code: String(d.finish_reason ?? ''), message: ''}; break;
		}
	}

	private push(kind: BlockKind, more: Partial<Block>): Block {
		const block: Block = {kind, key: `${kind}${this.made++}`, event: this.seen, rev: 0, text: '', ...more};
		this.blocks.push(block);
		return block;
	}

	private append(kind: 'text' | 'reasoning', delta: string): void {
		const last = this.blocks.at(-1);
		if (last?.kind === kind) {
			last.text += delta;
			last.rev++;
		} else {
			this.push(kind, {text: delta});
		}
	}

	private change(kind: BlockKind, id: string, how: (b: Block) => void): void {
		const block = this.blocks.findLast((b) => b.kind === kind && b.id === id);
		if (!block)
			return;
		how(block);
		block.rev++;
	}

	private meta(d: any): void {
		if (d.action_id) {
			if (this.blocks.some((b) => b.kind === 'ask' && b.id === d.action_id))
				this.change('ask', d.action_id, (b) => { b.state = String(d.decision ?? d.status ?? ''); b.ask = {...b.ask, result: d.result, source: d.source}; });
			else
				this.push('ask', {id: d.action_id, title: heading(String(d.title ?? '')), state: d.status === 'pending' ? 'pending' : String(d.decision ?? d.status), ask: d});
			return;
		}
		this.phase = {status: String(d.status ?? ''), title: String(d.title ?? '')};
		if (typeof d.metadata?.superseded_bytes === 'number')
			this.supersede(d.metadata.superseded_bytes, String(d.title ?? ''));
		else if (d.metadata)
			this.push('note', {text: `${d.title ? `${d.title}: ` : ''}${pretty(d.metadata)}`});
	}

	/** A call was cut off by a restart and is made again: so much of the text, and the reasoning of that call,
	 * no longer count. */
	private supersede(bytes: number, title: string): void {
		let gone = '';
		for (let b = this.blocks.at(-1); b; b = this.blocks.at(-1)) {
			if (b.kind !== 'reasoning' && !(b.kind === 'text' && bytes > 0))
				break;
			const has = b.kind === 'text' ? bytesOf(b.text) : 0;
			if (has > bytes) {
				const kept = withoutTail(b.text, bytes);
				gone = b.text.slice(kept.length) + gone;
				b.text = kept;
				b.rev++;
				break;
			}
			bytes -= has;
			gone = (b.kind === 'text' ? b.text : '') + gone;
			this.blocks.pop();
		}
		this.push('superseded', {text: gone, title});
	}

	get question(): Block | undefined {
		return this.outcome ? undefined : this.blocks.find((b) => b.kind === 'ask' && b.state === 'pending');
	}

	get answer(): string {
		return this.blocks.filter((b) => b.kind === 'text').map((b) => b.text).join('\n\n');
	}

	get sources(): Source[] {
		return this.blocks.flatMap((b) => b.sources ?? []);
	}
}
