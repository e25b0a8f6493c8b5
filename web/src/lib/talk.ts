// talk.ts - the conversation that is shown: its runs, what is sent, what is followed. Leaving it stops its
// connections, never its runs.
import {keepModel, optionsOf} from './choice';
import {Problem, ask, askJson, command, insist} from './api';
import {Fold, type Outcome} from './fold';
import {numberOf, read} from './live';
import {client} from './query';
import {say} from './say';
import type {Agent, RunRecord, Thread} from './types';

const PAGE = 20; // runs of a conversation that are opened at once
const READERS = 3; // connections for what is over; what lives has one

export function randomHex(bytes: number): string {
	return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (b) => b.toString(16).padStart(2, '0')).join('');
}

/** What was written elsewhere and begins a conversation. */
export interface Opening { agent: Agent; message: string; inputs: Record<string, unknown> }
let opening: Opening | null = null;
export function open(with_: Opening): void {
	opening = with_;
}
export function takeOpening(): Opening | null {
	const it = opening;
	opening = null;
	return it;
}

export type Line = 'unsent' | 'sending' | 'accepted' | 'live' | 'away' | 'over';

/** One run of the conversation. */
export class Turn {
	fold = new Fold();
	line: Line;
	version = 0;
	cancelling = false;
	followed = false;
	/** Was over when it was opened: no news. */
	old = false;
	/** Why it was not sent. */
	refusal: Problem | null = null;
	/** The whole message was read, or was written here. */
	whole: boolean;
	messageRef = '';
	/** Names of the images and documents beside the message. */
	files: string[] = [];
	/** Ends when the message was read. */
	read: Promise<void> = Promise.resolve();

	constructor(public id: string, public agent: string, public message: string, public record: RunRecord | null) {
		this.line = id ? 'accepted' : 'sending';
		this.whole = !id;
	}

	get outcome(): Outcome | null {
		return this.fold.outcome;
	}

	get root(): string {
		return this.record?.root_run_id ?? this.id;
	}
}

let unsent = 0;
addEventListener('beforeunload', (e) => {
	if (unsent)
		e.preventDefault();
});

export class Talk {
	turns: Turn[] = [];
	session = '';
	/** Where earlier runs are; null: all are here. */
	earlier: string | null = null;
	loading = false;
	problem: unknown = null;
	version = 0;
	/** Threads that this one was forked from: of each it shares the runs up to `run`, which has that turn. */
	private shared: {thread: string; turn: string; run: string}[] = [];
	readonly left = new AbortController();
	private sends = Promise.resolve();
	private reading = 0;
	private waiting: (() => void)[] = [];
	private watchers = new Set<() => void>();
	private due = 0;
	private dirty = new Set<Turn>();

	constructor(public conversation: string) {}

	subscribe = (fn: () => void) => { this.watchers.add(fn); return () => { this.watchers.delete(fn); }; };

	/** Draws at most once a frame; a page that is not seen has no frames. */
	changed(turn?: Turn): void {
		if (turn)
			this.dirty.add(turn);
		if (this.due)
			return;
		const draw = () => {
			this.due = 0;
			for (const t of this.dirty)
				t.version++;
			this.dirty.clear();
			this.version++;
			this.watchers.forEach((fn) => fn());
		};
		this.due = document.hidden ? window.setTimeout(draw, 100) : requestAnimationFrame(draw);
	}

	/** Opens what there is of a session: the newest runs, oldest first. */
	async open(session: string): Promise<void> {
		this.session = session;
		this.loading = true;
		this.changed();
		try {
			const [answer, known] = await Promise.all([
				insist<{runs: RunRecord[]; next_before: string | null}>(`api/runs?limit=${PAGE}&session_id=${encodeURIComponent(session)}`, {signal: this.left.signal}),
				insist<{threads: {items: Thread[]}}>(`api/sessions/${encodeURIComponent(session)}`, {signal: this.left.signal})]);
			this.conversation ||= answer.runs.find((r) => !r.parent_run_id || r.attempt > 1)?.conversation_id ?? '';
			this.shared = lineage(known.threads.items, this.conversation);
			this.earlier = answer.next_before;
			this.take(answer.runs);
			while (!this.turns.length && this.earlier && !this.left.signal.aborted) // the newest runs are of other threads
				await this.readEarlier();
		} catch (e) {
			if (!this.left.signal.aborted)
				this.problem = e;
		}
		this.loading = false;
		this.changed();
	}

	async openEarlier(): Promise<void> {
		if (!this.earlier || this.loading)
			return;
		this.loading = true;
		this.changed();
		try {
			await this.readEarlier();
		} catch (e) {
			if (!this.left.signal.aborted)
				this.problem = e;
		}
		this.loading = false;
		this.changed();
	}

	private async readEarlier(): Promise<void> {
		const answer = await insist<{runs: RunRecord[]; next_before: string | null}>(
			`api/runs?limit=${PAGE}&session_id=${encodeURIComponent(this.session)}&before=${encodeURIComponent(this.earlier ?? '')}`, {signal: this.left.signal});
		this.earlier = answer.next_before;
		this.take(answer.runs);
	}

	/** Of this thread, or of one that it was forked from and before the fork. */
	private has(record: RunRecord): boolean {
		if (record.conversation_id === this.conversation)
			return true;
		const from = this.shared.find((s) => s.thread === record.conversation_id);
		return !!from?.run && record.run_id <= from.run;
	}

	/** Records of the server, newest first: those that are not here are opened, the others renewed. */
	take(records: RunRecord[]): void {
		const fresh: Turn[] = [];
		for (const from of this.shared)
			from.run ||= records.find((r) => r.turn_id === from.turn)?.run_id ?? '';
		for (const record of [...records].reverse()) {
			const known = this.turns.find((t) => t.id === record.run_id);
			if (known) {
				known.record = record;
				this.follow(known);
				this.changed(known);
				continue;
			}
			if (this.turns.some((t) => t.line === 'sending') && this.turns.every((t) => t.record === null || t.record.created_at < record.created_at))
				continue; // it may be the one whose answer is still under way
			if (record.run_id < (this.earlier ?? '') || record.parent_run_id && record.attempt === 1)
				continue;
			this.conversation ||= record.conversation_id;
			if (!this.has(record))
				continue; // another thread of the session
			const turn = new Turn(record.run_id, record.agent_id, '', record);
			turn.old = record.finished_at !== null;
			fresh.push(turn);
		}
		if (!fresh.length)
			return;
		this.turns = [...this.turns, ...fresh].sort((a, b) => !a.id || !b.id ? (a.id ? -1 : b.id ? 1 : 0) : a.id < b.id ? -1 : 1);
		for (const turn of fresh) {
			turn.read = this.readMessage(turn);
			this.follow(turn);
		}
		this.changed();
	}

	/** What was asked is in the log of the run. */
	private async readMessage(turn: Turn): Promise<void> {
		try {
			const answer = await insist<{events: any[]}>(`api/runs/${encodeURIComponent(turn.id)}/events?limit=1&types=turn.submitted`, {signal: this.left.signal});
			const part = answer.events[0]?.payload?.input_parts?.[0];
			turn.message = String(part?.preview ?? turn.record?.title ?? '');
			turn.messageRef = String(answer.events[0]?.refs?.input_ref ?? '');
			const files = answer.events[0]?.payload?.metadata?.context?.files;
			turn.files = Array.isArray(files) ? files.map(String) : [];
			turn.whole = !turn.messageRef.startsWith('blob://') || new TextEncoder().encode(turn.message).length >= Number(part?.bytes ?? 0);
		} catch {
			turn.message = String(turn.record?.title ?? '');
		}
		this.changed(turn);
	}

	/** Runs of a conversation take turns: one that waits for its turn needs no connection. */
	follow(turn: Turn, status = turn.record?.status): void {
		if (turn.followed || status === 'queued')
			return;
		turn.followed = true;
		void (turn.old ? this.seat(() => this.readTurn(turn)) : this.readTurn(turn));
	}

	private async seat(fn: () => Promise<void>): Promise<void> {
		while (this.reading >= READERS)
			await new Promise<void>((go) => this.waiting.push(go));
		this.reading++;
		try {
			await fn();
		} finally {
			this.reading--;
			this.waiting.shift()?.();
		}
	}

	private async readTurn(turn: Turn): Promise<void> {
		const {fold} = turn;
		try {
			await read({
				path: `api/runs/${encodeURIComponent(turn.id)}/stream?meta=1`,
				signal: this.left.signal,
				state: (state) => {
					if (state === 'live' && turn.line === 'away')
						say('Connected again.');
					if (state === 'away' && turn.line !== 'away' && !fold.outcome)
						say('Connection lost, reconnecting.');
					turn.line = state;
					this.changed(turn);
				},
				take: (some) => {
					for (const f of some) {
						if (f.name === 'resync')
							fold.reset();
						else if (numberOf(f.id) > fold.seen)
							fold.take(numberOf(f.id), f.data);
					}
					this.changed(turn);
					return fold.outcome !== null;
				},
			});
		} catch (e) {
			if (e instanceof Problem)
				fold.outcome = {ok: false, code: e.code, message: e.message};
		}
		if (this.left.signal.aborted)
			return;
		turn.line = 'over';
		this.changed(turn);
		if (!turn.old) {
			say(fold.outcome?.ok ? `${turn.agent} answered: ${fold.answer.slice(0, 500)}` : endingOf(turn).words);
			void this.renew(turn);
			for (const name of ['sessions', 'actions', 'runs', 'threads'])
				void client.invalidateQueries({queryKey: [name]});
		}
	}

	private async renew(turn: Turn): Promise<void> {
		try {
			turn.record = await askJson<RunRecord>(`api/runs/${encodeURIComponent(turn.id)}`, {signal: this.left.signal});
			this.changed(turn);
		} catch { /* the list brings it */ }
	}

	/** What is said first is sent first. A request whose answer was lost is sent again and counts once; also when
	 * the person looks at something else by then. `placed` gets the session of the first. */
	send(agent: string, message: string, inputs: object, done: (turn: Turn) => void): Turn {
		const turn = new Turn('', agent, message, null);
		turn.files = ((inputs as {attachments?: {name: string}[]}).attachments ?? []).map((a) => a.name);
		this.turns = [...this.turns, turn];
		this.changed(turn);
		this.sends = this.sends.then(() => this.submit(turn, inputs)).then(() => done(turn));
		return turn;
	}

	private async submit(turn: Turn, inputs: object): Promise<void> {
		const body = {agent_id: turn.agent, conversation_id: this.conversation, inputs, idempotency_key: randomHex(16), ...optionsOf(this.conversation, turn.agent),
			...(turn.files.length ? {context: {files: turn.files.slice(0, 20).map((n) => n.slice(0, 60))}} : {})};
		unsent++;
		try {
			const made = await insist<{run_id: string; status: string}>('api/runs', {body});
			turn.id = made.run_id;
			turn.line = 'accepted';
			this.turns = this.turns.filter((t) => t === turn || t.id !== turn.id); // the list may have been quicker
			this.changed(turn);
			if (!this.left.signal.aborted)
				this.follow(turn, made.status);
			const record = await insist<RunRecord>(`api/runs/${encodeURIComponent(turn.id)}`);
			turn.record ??= record;
			if (!this.left.signal.aborted)
				this.follow(turn);
			this.session ||= record.session_id;
		} catch (e) {
			turn.line = 'unsent';
			turn.refusal = e instanceof Problem ? e : new Problem(0, 'UNKNOWN', String(e));
			say(`Not sent: ${turn.refusal.message}`);
		} finally {
			unsent--;
		}
		void client.invalidateQueries({queryKey: ['sessions']});
		this.changed(turn);
	}

	/** Another attempt at a run that is over. */
	async retry(turn: Turn): Promise<void> {
		const made = await askJson<{run_id: string}>(`api/runs/${encodeURIComponent(turn.id)}/retry`, {body: {}});
		const record = await insist<RunRecord>(`api/runs/${encodeURIComponent(made.run_id)}`, {signal: this.left.signal});
		this.take([record]);
	}

	/** It holds, also when the person looks at something else by then. */
	async cancel(turn: Turn): Promise<void> {
		turn.cancelling = true;
		this.changed(turn);
		try {
			await insist(`api/runs/${encodeURIComponent(turn.id)}/cancel`, {body: {reason: 'cancelled on the page'}});
		} catch (e) {
			turn.cancelling = false;
			this.changed(turn);
			throw e;
		}
	}

	/** The run that is at work, or the next that will be. */
	get active(): Turn | undefined {
		return this.turns.find((t) => t.id && !t.outcome && t.line !== 'unsent' && !t.old && t.record?.status !== 'queued')
			?? this.turns.find((t) => t.id && !t.outcome && t.line !== 'unsent' && !t.old);
	}
}


/** The threads that a thread was forked from, the nearest first, each with the last turn that is shared. */
function lineage(threads: Thread[], thread: string): {thread: string; turn: string; run: string}[] {
	const out: {thread: string; turn: string; run: string}[] = [];
	for (let t = threads.find((x) => x.thread_id === thread); t?.parent_thread_id && t.forked_turn_id && out.length < threads.length; ) {
		out.push({thread: t.parent_thread_id, turn: t.forked_turn_id, run: ''});
		const parent: string = t.parent_thread_id;
		t = threads.find((x) => x.thread_id === parent);
	}
	return out;
}

/** The message of a turn, all of it. */
export async function wholeMessage(turn: Turn): Promise<string> {
	await turn.read;
	if (turn.whole || !turn.messageRef.startsWith('blob://'))
		return turn.message;
	turn.message = await (await ask(`api/runs/${encodeURIComponent(turn.id)}/blobs/${turn.messageRef.slice(7)}`)).text();
	turn.whole = true;
	return turn.message;
}

/** Says something else, or the same again, behind the turn `before`: a thread that shares what was said until
 * then; the old one stays as it is. Without `before` it is a new thread of the session. Returns the thread. */
export async function forkAndSay(session: string, from: string, before: Turn | undefined, agent: string, message: string): Promise<string> {
	const chosen = optionsOf(from, agent);
	if (!before?.record) {
		const made = await command<{thread_id: string}>('submit_turn', {session_id: session, agent_id: agent, message, idempotency_key: randomHex(16), ...chosen});
		keepModel(made.thread_id, agent, chosen.options?.model ?? '');
		return made.thread_id;
	}
	const thread = `page-${randomHex(12)}`;
	await command('fork_thread', {session_id: session, thread_id: before.record.conversation_id, turn_id: before.record.turn_id, new_thread_id: thread});
	await insist('api/runs', {body: {agent_id: agent, conversation_id: thread, inputs: {message}, idempotency_key: randomHex(16), ...chosen}});
	keepModel(thread, agent, chosen.options?.model ?? '');
	return thread;
}

/** What was said may look complete, and is not. */
const CUTS = new Map([['length', 'the model came to the limit of its output'],
	['max_tokens', 'the model came to the limit of its output'], ['content_filter', 'the provider holds back the rest']]);

/** The state of a turn in words, from facts of the server only. */
export function endingOf(turn: Turn): {words: string; look: '' | 'wait' | 'bad' | 'ok'} {
	const {outcome} = turn;
	if (turn.refusal)
		return {words: `Not sent. ${turn.refusal.code}: ${turn.refusal.message}`, look: 'bad'};
	if (outcome?.ok) {
		const cut = CUTS.get(outcome.code);
		return cut ? {words: `Done, but cut: ${cut}`, look: 'wait'} : {words: 'Done', look: 'ok'};
	}
	if (outcome)
		return outcome.code === 'CANCELED' ? {words: 'Cancelled', look: ''} : {words: `${outcome.code}: ${outcome.message}`, look: 'bad'};
	if (turn.line === 'sending')
		return {words: 'Sending', look: ''};
	if (turn.line === 'away')
		return {words: 'Reconnecting', look: 'wait'};
	if (turn.cancelling || turn.record?.cancel_requested)
		return {words: 'Stopping', look: 'wait'};
	if (turn.fold.question)
		return {words: 'Waits for your answer', look: 'wait'};
	if (turn.record?.status === 'queued' && !turn.fold.blocks.length)
		return {words: 'Queued', look: ''};
	if (!turn.fold.blocks.length)
		return turn.fold.phase ? {words: `Preparing: ${turn.fold.phase.title}`, look: ''} : {words: 'Accepted', look: ''};
	return {words: turn.fold.phase?.status === 'retrying' ? 'Trying again' : 'Running', look: ''};
}
