// page.js - UAR's own page: sign in by the one-time link, talk to an agent, watch
// and reopen runs.
//
// What arrives is data, never markup: it is shown through text nodes alone. What
// is shown is a fold of the run's events, so a page that was there from the start
// and one that came later show the same; the cursor is the last event's id, and
// a broken connection is taken up behind it.

/** @typedef {{agent_id: string, title: string, description: string, entry: string}} Agent */
/** @typedef {{run_id: string, agent_id: string, status: string, session_id: string,
 *   conversation_id: string, created_at: number}} RunRecord */
/** @typedef {{type: string, data: any}} RunEvent */
/** @typedef {{kind: string, text: string, id?: string, title?: string, state?: string, input?: string,
 *   element?: HTMLElement, body?: HTMLElement, drawn?: number, folded?: boolean}} Block */
// (drawn: characters on the screen, -1: draw all anew)
/** @typedef {{ok: boolean, code: string, message: string}} Outcome */
/** @typedef {'waiting' | 'live' | 'away' | 'over' | 'gone'} RunState */

const TOKEN_KEY = 'uar.token';
const LONG_REASONING = 600; // characters; longer ones fold away when the answer begins
const SHOWN_MAX = 20000; // characters of one tool value
const SILENCE_MS = 45000; // without even a heartbeat the connection counts as dead
const AWAY_HINT_MS = 10000;
const HISTORY_MAX = 50; // runs of a conversation that are opened again
const MESSAGES_MAX = 4 << 20; // bytes of a session read to find what was asked
const LIST_PAGE = 30;
const LIST_EVERY_MS = 10000;

/** @template {HTMLElement} T @param {string} id @returns {T} */
function by(id) {
	return /** @type {T} */ (document.getElementById(id));
}

const page = {
	line: by('line'),
	said: by('said'),
	app: by('app'),
	signIn: by('sign-in'),
	signInWhy: by('sign-in-why'),
	signInForm: /** @type {HTMLFormElement} */ (by('sign-in-form')),
	token: /** @type {HTMLInputElement} */ (by('token')),
	runs: by('runs'),
	runList: by('run-list'),
	moreRuns: /** @type {HTMLButtonElement} */ (by('more-runs')),
	showRuns: by('show-runs'),
	newTalk: by('new-talk'),
	talk: by('talk'),
	latest: by('latest'),
	composer: /** @type {HTMLFormElement} */ (by('composer')),
	agent: /** @type {HTMLSelectElement} */ (by('agent')),
	about: by('agent-about'),
	recordingChoice: by('recording-choice'),
	recording: /** @type {HTMLSelectElement} */ (by('recording')),
	message: /** @type {HTMLTextAreaElement} */ (by('message')),
	send: /** @type {HTMLButtonElement} */ (by('send')),
	cancel: /** @type {HTMLButtonElement} */ (by('cancel')),
};

// --- asking the server ---------------------------------------------------------

let token = sessionStorage.getItem(TOKEN_KEY) ?? '';

/** What the server refused, in its own words. */
class Problem extends Error {
	/** @param {number} status @param {string} code @param {string} detail */
	constructor(status, code, detail) {
		super(detail);
		this.status = status;
		this.code = code;
	}

	/** Asking again as it is cannot help. */
	get final() {
		return this.status >= 400 && this.status < 500 && this.status !== 408 && this.status !== 429;
	}
}

/** @param {Response} response */
async function problemOf(response) {
	const body = await response.json().catch(() => ({}));
	return new Problem(response.status, body.code ?? `HTTP ${response.status}`, body.detail ?? response.statusText);
}

/** Paths are relative, so that the page also works below a prefix.
 * @param {string} path @param {{body?: object, headers?: Record<string, string>, signal?: AbortSignal}} [o] */
async function ask(path, o = {}) {
	const headers = {...o.headers};
	if (token)
		headers.Authorization = `Bearer ${token}`;
	if (o.body)
		headers['Content-Type'] = 'application/json';
	const response = await fetch(path, {
		method: o.body ? 'POST' : 'GET',
		headers,
		body: o.body && JSON.stringify(o.body),
		signal: o.signal,
		cache: 'no-store',
		credentials: 'omit',
	});
	if (!response.ok)
		throw await problemOf(response);
	return response;
}

/** @param {string} path @param {object} [body] @param {AbortSignal} [signal] */
async function askJson(path, body, signal) {
	return (await ask(path, {body, signal})).json();
}

/** Ends early when the signal fires or the network is back. @param {number} ms @param {AbortSignal} signal */
function pause(ms, signal) {
	return new Promise((done) => {
		const over = new AbortController();
		const end = () => { over.abort(); clearTimeout(timer); done(undefined); };
		const timer = setTimeout(end, ms);
		signal.addEventListener('abort', end, {signal: over.signal});
		window.addEventListener('online', end, {signal: over.signal});
	});
}

/** Asks until there is an answer; only a refusal is thrown.
 * @param {() => Promise<any>} request @param {AbortSignal} signal */
async function insist(request, signal) {
	for (let wait = 300; ; wait = Math.min(wait * 1.6, 3000)) {
		try {
			const answer = await request();
			showLine(true);
			return answer;
		} catch (e) {
			if (signal.aborted || (e instanceof Problem && e.final))
				throw e;
		}
		showLine(false);
		await pause(wait, signal);
	}
}

/** Server-Sent Events of a body; returns when it ends, throws when it breaks.
 * @param {ReadableStream<any>} body @param {() => void} alive called for every sign of life
 * @returns {AsyncGenerator<{id: number, event: RunEvent}>} */
async function* events(body, alive) {
	const reader = body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = '', id = 0, data = '';
	try {
		for (;;) {
			const {value, done} = await reader.read();
			if (done)
				return;
			alive();
			const lines = (rest + value).split('\n');
			rest = lines.pop() ?? '';
			for (const line of lines) {
				if (line.startsWith('data: '))
					data += line.slice(6);
				else if (line.startsWith('id: '))
					id = Number(line.slice(4));
				else if (line === '' && data) {
					yield {id, event: JSON.parse(data)};
					data = '';
				}
			}
		}
	} finally {
		reader.cancel().catch(() => {});
	}
}

// --- a run is the fold of its events --------------------------------------------

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

class Run {
	/** @param {string} id @param {string} agent @param {string} message */
	constructor(id, agent, message) {
		this.id = id;
		this.agent = agent;
		this.message = message;
		/** @type {Block[]} */
		this.blocks = [];
		/** @type {Block[]} */
		this.dropped = [];
		this.cursor = 0;
		/** @type {RunState} */
		this.state = 'waiting';
		/** @type {Outcome | null} */
		this.outcome = null;
		this.cancelling = false;
		/** @type {Record<string, HTMLElement> | null} */
		this.elements = null;
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
		case 'ui.form.request': this.note(`Asks: ${d.title ?? ''}`); break;
		case 'artifact.error': this.note(`Preview failed: ${d.message ?? ''}`); break;
		case 'meta':
			if (d.action_id)
				this.question(d);
			else
				this.meta(d.metadata);
			break;
		case 'Error': this.outcome = {ok: false, code: String(d.code), message: String(d.message ?? '')}; break;
		case 'RunDone': this.outcome = {ok: true, code: '', message: ''}; break;
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
	question(d) {
		const block = this.blocks.findLast((b) => b.kind === 'ask' && b.id === d.action_id);
		if (block)
			block.state = String(d.decision ?? d.status ?? '');
		else if (d.action_type === 'tool_permission')
			this.blocks.push({kind: 'ask', text: brief(d.scope?.input ?? d.scope?.input_preview), id: d.action_id,
				title: String(d.title ?? ''), state: 'waits for you'});
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

	get answer() {
		return this.blocks.filter((b) => b.kind === 'text').map((b) => b.text).join('\n');
	}
}

/** One connection: from the cursor to the end of the body. @param {Run} run @param {AbortSignal} signal */
async function listen(run, signal) {
	const dead = new AbortController();
	let silence = setTimeout(() => dead.abort(), SILENCE_MS);
	const alive = () => {
		clearTimeout(silence);
		silence = setTimeout(() => dead.abort(), SILENCE_MS);
	};
	const stop = () => dead.abort();
	signal.addEventListener('abort', stop);
	try {
		const headers = /** @type {Record<string, string>} */ (run.cursor ? {'Last-Event-ID': String(run.cursor)} : {});
		const response = await ask(`api/runs/${encodeURIComponent(run.id)}/stream`, {headers, signal: dead.signal});
		if (!response.body)
			return;
		setState(run, 'live');
		for await (const {id, event} of events(response.body, alive)) {
			if (id <= run.cursor)
				continue;
			run.fold(event);
			run.cursor = id;
			drawSoon(run);
		}
	} finally {
		clearTimeout(silence);
		signal.removeEventListener('abort', stop);
	}
}

/** Follows a run to its end, through broken connections and restarts of the server.
 * @param {Run} run @param {AbortSignal} signal */
async function follow(run, signal) {
	for (let wait = 300; !run.outcome && !signal.aborted; wait = Math.min(wait * 1.6, 3000)) {
		const before = run.cursor;
		try {
			await listen(run, signal);
		} catch (e) {
			if (e instanceof Problem && e.final && !signal.aborted) {
				run.outcome = {ok: false, code: e.code, message: e.message};
				refused(e);
			}
		}
		if (run.outcome || signal.aborted)
			break;
		if (run.cursor > before)
			wait = 300;
		setState(run, 'away');
		await pause(wait, signal);
	}
	setState(run, signal.aborted ? 'gone' : 'over');
}

// --- drawing ----------------------------------------------------------------------

/** @param {string} tag @param {string} [className] @param {string} [text] */
function make(tag, className = '', text = '') {
	const element = document.createElement(tag);
	if (className)
		element.className = className;
	if (text)
		element.append(text);
	return element;
}

/** @type {Set<Run>} */
const toDraw = new Set();

/** @param {Run} run */
function drawSoon(run) {
	if (toDraw.size === 0)
		requestAnimationFrame(drawAll);
	toDraw.add(run);
}

function drawAll() {
	const follows = nearEnd();
	for (const run of toDraw)
		if (talk.runs.includes(run))
			draw(run);
	toDraw.clear();
	if (follows)
		toEnd();
	showDeeds();
}

function nearEnd() {
	const t = page.talk;
	return t.scrollHeight - t.scrollTop - t.clientHeight < 80;
}

function toEnd() {
	page.talk.scrollTop = page.talk.scrollHeight;
}

/** @param {Run} run */
function draw(run) {
	run.elements ??= makeTurn(run);
	for (const block of run.dropped.splice(0))
		block.element?.remove();
	run.blocks.forEach((block, i) => {
		if (!block.element)
			run.elements?.blocks.append(makeBlock(block));
		drawBlock(block);
		if (block.kind === 'reasoning' && i < run.blocks.length - 1)
			foldAway(block);
	});
	drawEnding(run, run.elements.ending);
}

/** Once; a person may open it again. @param {Block} block */
function foldAway(block) {
	if (!block.folded && block.text.length > LONG_REASONING)
		/** @type {HTMLDetailsElement} */ (block.element).open = false;
	block.folded = true;
}

/** @param {Run} run */
function makeTurn(run) {
	const turn = make('article', 'turn');
	turn.setAttribute('aria-label', `Run of ${run.agent}`);
	if (run.message)
		turn.append(make('p', 'mine', run.message));
	const blocks = make('div', 'blocks'), ending = make('p', 'ending');
	turn.append(blocks, ending);
	page.talk.append(turn);
	return {turn, blocks, ending};
}

/** The first answer counts, so a second click harms nobody. @param {Block} block */
function decisions(block) {
	const row = make('p', 'decisions');
	for (const [decision, word] of [['allow', 'Allow'], ['deny', 'Deny']]) {
		const button = make('button', '', word);
		button.addEventListener('click', () =>
			askJson('api/control/respond_action', {action_id: block.id, decision}).catch(refused));
		row.append(button, ' ');
	}
	return row;
}

/** @param {Block} block */
function makeBlock(block) {
	if (block.kind === 'reasoning') {
		const details = /** @type {HTMLDetailsElement} */ (make('details', 'reasoning'));
		details.open = true;
		block.body = make('p');
		details.append(make('summary', '', 'Thinking'), block.body);
		block.element = details;
	} else if (block.kind === 'tool' || block.kind === 'artifact') {
		block.element = make('section', `card ${block.kind}`);
		const head = make('h3', '', block.title);
		head.append(make('span', 'state'));
		block.body = make('pre');
		block.body.tabIndex = 0;
		block.element.append(head);
		if (block.input)
			block.element.append(make('pre', 'input', block.input));
		block.element.append(block.body);
	} else if (block.kind === 'ask') {
		block.element = make('section', 'card ask');
		const head = make('h3', '', block.title);
		head.append(make('span', 'state'));
		block.body = make('pre');
		block.body.tabIndex = 0;
		block.element.append(head, block.body, decisions(block));
	} else {
		block.element = block.body = make('p', block.kind === 'text' ? 'answer' : 'note');
	}
	block.drawn = 0;
	return block.element;
}

/** Text only grows, but for what was superseded: what is new is appended. @param {Block} block */
function drawBlock(block) {
	const body = /** @type {HTMLElement} */ (block.body), drawn = block.drawn ?? 0;
	const flows = block.kind === 'text' || block.kind === 'reasoning';
	if (flows && drawn >= 0 && block.text.length > drawn) {
		if (body.lastChild instanceof Text)
			body.lastChild.appendData(block.text.slice(drawn));
		else
			body.append(block.text.slice(drawn));
	} else if (body.textContent !== block.text) {
		body.textContent = block.text;
	}
	block.drawn = block.text.length;
	const state = block.element?.querySelector('.state');
	if (state instanceof HTMLElement) {
		state.textContent = block.state ?? '';
		state.dataset.state = block.state;
		body.hidden = block.kind === 'tool' && !block.text;
		if (block.kind === 'ask')
			/** @type {HTMLElement} */ (block.element?.lastElementChild).hidden = block.state !== 'waits for you';
	}
}

/** @param {Run} run @returns {[string, string]} words and how they look */
function endingOf(run) {
	if (run.outcome?.ok)
		return ['Done', ''];
	if (run.outcome?.code === 'CANCELED')
		return ['Cancelled', ''];
	if (run.outcome)
		return [`${run.outcome.code}: ${run.outcome.message}`, 'bad'];
	if (run.state === 'away')
		return ['Reconnecting…', 'wait'];
	if (run.cancelling)
		return ['Cancelling…', 'wait'];
	return [run.blocks.length ? 'Running' : 'Waiting', ''];
}

/** @param {Run} run @param {HTMLElement} element */
function drawEnding(run, element) {
	const [words, look] = endingOf(run);
	if (element.textContent !== words)
		element.textContent = words;
	element.dataset.state = look;
}

/** For those who listen instead of looking: each thing once. @param {string} words */
function say(words) {
	page.said.textContent = words;
}

let awaySince = 0;

/** @param {boolean} good */
function showLine(good) {
	if (good)
		awaySince = 0;
	else if (!awaySince)
		awaySince = performance.now();
	const long = !good && performance.now() - awaySince > AWAY_HINT_MS;
	page.line.dataset.state = good ? 'good' : 'bad';
	page.line.textContent = good ? 'Connected' : long
		? 'No answer. A server that was started again may have a new address: open the link it printed.'
		: 'Reconnecting…';
}

/** @param {Run} run @param {RunState} state */
function setState(run, state) {
	const was = run.state;
	run.state = state;
	if (state === 'live' || state === 'away')
		showLine(state === 'live');
	if (state === 'away' && was !== 'away')
		say('Connection lost, reconnecting.');
	if (state === 'over')
		say(run.outcome?.ok ? `${run.agent} answered: ${run.answer.slice(0, 500)}` : endingOf(run)[0]);
	drawSoon(run);
}

// --- the conversation ----------------------------------------------------------------

/** What is on the screen; leaving it for another one stops its connections, never its runs. */
class Talk {
	/** @param {string} id */
	constructor(id) {
		this.id = id;
		/** @type {Run[]} */
		this.runs = [];
		this.left = new AbortController();
		/** The server lets the runs of a conversation take turns, so one connection is enough. */
		this.queue = Promise.resolve();
	}

	/** @param {Run} run */
	add(run) {
		this.runs.push(run);
		drawSoon(run);
		this.queue = this.queue.then(() => follow(run, this.left.signal)).then(() => listRuns());
	}

	get active() {
		return this.runs.find((r) => !r.outcome);
	}
}

/** @param {number} bytes */
function randomHex(bytes) {
	return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (b) => b.toString(16).padStart(2, '0')).join('');
}

let talk = new Talk(`page-${randomHex(12)}`);

/** @param {Talk} next */
function leaveFor(next) {
	talk.left.abort();
	talk = next;
	page.talk.replaceChildren();
	showDeeds();
}

/** The address names the run, so that a reload opens it again. @param {string} runId */
function remember(runId) {
	history.replaceState(null, '', runId ? `#run=${encodeURIComponent(runId)}` : location.pathname + location.search);
}

function startTalk() {
	leaveFor(new Talk(`page-${randomHex(12)}`));
	remember('');
	welcome();
	listRuns();
	page.message.focus();
}

function welcome() {
	const box = make('div', 'welcome');
	box.append(make('strong', '', 'What shall be done?'), 'Runs go on when you leave, and are here when you come back.');
	page.talk.replaceChildren(box);
}

/** The messages that were asked, by run: they are in the session's log.
 * @param {RunRecord[]} records oldest first @param {AbortSignal} signal */
async function messagesOf(records, signal) {
	const found = /** @type {Map<string, string>} */ (new Map());
	const path = `api/sessions/${encodeURIComponent(records[0].session_id)}/events`;
	const enough = new AbortController();
	let bytes = 0;
	signal.addEventListener('abort', () => enough.abort());
	try {
		const response = await ask(path, {signal: enough.signal});
		for await (const {event} of response.body ? events(response.body, () => {}) : []) {
			const e = /** @type {any} */ (event);
			bytes += JSON.stringify(e.payload ?? '').length;
			if (e.type === 'turn.submitted')
				found.set(e.run_id, String(e.payload?.input_parts?.[0]?.preview ?? ''));
			if (bytes > MESSAGES_MAX || records.every((r) => found.has(r.run_id)))
				break;
		}
	} catch (e) {
		if (signal.aborted)
			throw e;
	}
	enough.abort();
	return found;
}

/** @param {string} runId */
async function openRun(runId) {
	leaveFor(new Talk(''));
	const signal = talk.left.signal;
	remember(runId);
	try {
		const record = /** @type {RunRecord} */ (await insist(() => askJson(`api/runs/${encodeURIComponent(runId)}`), signal));
		const list = await insist(() => askJson(`api/runs?limit=${HISTORY_MAX}&session_id=${encodeURIComponent(record.session_id)}`), signal);
		const records = /** @type {RunRecord[]} */ (list.runs).reverse();
		const asked = await messagesOf(records, signal);
		talk.id = record.conversation_id;
		for (const r of records)
			talk.add(new Run(r.run_id, r.agent_id, asked.get(r.run_id) ?? ''));
		if ([...page.agent.options].some((o) => o.value === record.agent_id))
			page.agent.value = record.agent_id;
		showAgent();
		listRuns();
	} catch (e) {
		if (!signal.aborted)
			refused(e);
	}
}

/** @param {object} body */
async function create(body) {
	const key = randomHex(16); // a request whose answer was lost is sent again, and counts once
	return insist(() => askJson('api/runs', {...body, idempotency_key: key}), talk.left.signal);
}

async function send() {
	const message = page.message.value.trim(), agent = chosen();
	if (!agent || (!message && agent.entry !== 'fixture'))
		return;
	const here = talk, inputs = agent.entry === 'fixture' ? {fixture: page.recording.value, pace: 'recorded'} : {message};
	if (here.runs.length === 0)
		page.talk.replaceChildren();
	page.message.value = '';
	showDeeds();
	try {
		const made = await create({agent_id: agent.agent_id, conversation_id: here.id, inputs});
		if (here !== talk)
			return;
		remember(made.run_id);
		here.add(new Run(made.run_id, agent.agent_id, message || page.recording.value));
		toEnd();
		listRuns();
	} catch (e) {
		if (here !== talk)
			return;
		page.message.value ||= message;
		refused(e);
	}
}

async function cancel() {
	const run = talk.active;
	if (!run)
		return;
	run.cancelling = true;
	drawSoon(run);
	try {
		await insist(() => askJson(`api/runs/${encodeURIComponent(run.id)}/cancel`, {reason: 'cancelled on the page'}), talk.left.signal);
	} catch (e) {
		run.cancelling = false;
		refused(e);
	}
}

/** @param {unknown} e */
function refused(e) {
	if (e instanceof Problem && e.status === 401) {
		signOut('The token is not valid any more.');
		return;
	}
	const words = e instanceof Problem ? `${e.code}: ${e.message}` : String(e);
	const note = make('p', 'ending', words);
	note.dataset.state = 'bad';
	page.talk.append(note);
	toEnd();
	say(words);
}

// --- lists and choices -----------------------------------------------------------------

/** @type {Agent[]} */
let agents = [];
/** @type {RunRecord[]} */
let listed = [];
let older = '';

function chosen() {
	return agents.find((a) => a.agent_id === page.agent.value);
}

function showAgent() {
	const agent = chosen();
	page.about.textContent = agent?.description ?? '';
	page.recordingChoice.hidden = agent?.entry !== 'fixture';
	page.message.disabled = agent?.entry === 'fixture'; // it says what was recorded
	showDeeds();
}

function showDeeds() {
	const active = talk.active;
	page.send.disabled = !page.message.value.trim() && chosen()?.entry !== 'fixture';
	page.cancel.hidden = !active;
	page.cancel.disabled = active?.cancelling ?? false;
	page.cancel.textContent = active?.cancelling ? 'Cancelling…' : 'Cancel';
	page.latest.hidden = nearEnd();
}

/** @param {number} seconds since 1970 */
function ago(seconds) {
	const s = Math.max(0, Date.now() / 1000 - seconds);
	for (const [unit, size] of /** @type {[string, number][]} */ ([['d', 86400], ['h', 3600], ['min', 60]]))
		if (s >= size)
			return `${Math.floor(s / size)} ${unit}`;
	return 'now';
}

/** @param {RunRecord} record */
function makeRow(record) {
	const item = make('li'), button = make('button');
	const status = make('span', 'status', record.status.replace('_', ' '));
	const time = make('time', '', ago(record.created_at));
	const exact = new Date(record.created_at * 1000);
	status.dataset.status = record.status;
	time.setAttribute('datetime', exact.toISOString());
	time.title = exact.toLocaleString();
	button.setAttribute('type', 'button');
	if (talk.runs.some((r) => r.id === record.run_id))
		button.setAttribute('aria-current', 'true');
	button.append(make('span', 'agent', record.agent_id), status, time);
	button.addEventListener('click', () => { closeRuns(); openRun(record.run_id); });
	item.append(button);
	return item;
}

function drawRuns() {
	const focused = [...page.runList.querySelectorAll('button')].indexOf(/** @type {any} */ (document.activeElement));
	page.runList.replaceChildren(...listed.map(makeRow));
	if (listed.length === 0)
		page.runList.append(make('li', 'none', 'None yet. Say something to the demo agent: it needs no key.'));
	page.moreRuns.hidden = !older;
	if (focused >= 0)
		page.runList.querySelectorAll('button')[focused]?.focus();
}

/** The newest runs in place of what was listed of them; failing is no harm, it is asked again. */
async function listRuns() {
	try {
		const answer = await askJson(`api/runs?limit=${LIST_PAGE}`);
		const oldest = answer.runs.at(-1)?.run_id ?? '';
		const kept = listed.filter((r) => r.run_id < oldest); // ids rise with time
		if (kept.length === 0)
			older = answer.next_before ?? '';
		listed = [...answer.runs, ...kept];
		drawRuns();
	} catch (e) {
		if (e instanceof Problem && e.status === 401)
			refused(e);
	}
}

async function listOlder() {
	try {
		const answer = await askJson(`api/runs?limit=${LIST_PAGE}&before=${encodeURIComponent(older)}`);
		listed = [...listed, ...answer.runs];
		older = answer.next_before ?? '';
		drawRuns();
	} catch (e) {
		refused(e);
	}
}

function closeRuns() {
	page.runs.classList.remove('open');
	page.showRuns.setAttribute('aria-expanded', 'false');
}

async function loadAgents() {
	const signal = new AbortController().signal;
	const answer = await insist(() => askJson('api/agents'), signal);
	const recordings = (await insist(() => askJson('api/fixtures'), signal)).fixtures;
	agents = answer.agents.filter((/** @type {Agent} */ a) => a.entry !== 'fixture' || recordings.length);
	page.agent.replaceChildren(...agents.map((a) => new Option(a.title, a.agent_id)));
	page.recording.replaceChildren(...recordings.map((/** @type {string} */ n) => new Option(n, n)));
	if (agents.some((a) => a.agent_id === 'demo'))
		page.agent.value = 'demo';
	showAgent();
}

// --- signing in ---------------------------------------------------------------------------

/** @param {string} why */
function signOut(why) {
	token = '';
	sessionStorage.removeItem(TOKEN_KEY);
	talk.left.abort();
	for (const e of [page.app, page.newTalk, page.showRuns])
		e.hidden = true;
	if (why)
		page.signInWhy.replaceChildren(`${why} Open the link that `, make('code', '', 'uar serve'), ' prints at its start.');
	page.line.textContent = '';
	page.signIn.hidden = false;
	page.token.focus();
	say(why);
}

/** @param {string} value */
function signIn(value) {
	token = value;
	sessionStorage.setItem(TOKEN_KEY, token);
}

/** The code leaves the address, and with it the history, before it is used. @param {string} code */
async function takeCode(code) {
	history.replaceState(null, '', location.pathname + location.search);
	const never = new AbortController().signal;
	signIn((await insist(() => askJson('api/link', {code}), never)).token);
}

async function enter() {
	const wanted = new URLSearchParams(location.hash.slice(1));
	const code = wanted.get('code'), run = wanted.get('run');
	try {
		if (code)
			await takeCode(code);
		if (!token) {
			signOut('');
			return;
		}
		await loadAgents();
	} catch (e) {
		signOut(code ? 'That link was used already or has expired.' : 'The token is not valid any more.');
		return;
	}
	page.signIn.hidden = true;
	for (const e of [page.app, page.newTalk, page.showRuns])
		e.hidden = false;
	if (run)
		openRun(run);
	else
		startTalk();
}

// --- what a person does ----------------------------------------------------------------------

page.composer.addEventListener('submit', (e) => { e.preventDefault(); send(); });
page.message.addEventListener('keydown', (e) => {
	if (e.key !== 'Enter' || e.shiftKey || e.isComposing)
		return;
	e.preventDefault();
	send();
});
page.message.addEventListener('input', showDeeds);
page.agent.addEventListener('change', showAgent);
page.cancel.addEventListener('click', cancel);
page.newTalk.addEventListener('click', startTalk);
page.moreRuns.addEventListener('click', listOlder);
page.latest.addEventListener('click', () => { toEnd(); page.message.focus(); });
page.talk.addEventListener('scroll', () => { page.latest.hidden = nearEnd(); }, {passive: true});
page.showRuns.addEventListener('click', () => {
	page.showRuns.setAttribute('aria-expanded', String(page.runs.classList.toggle('open')));
});
page.signInForm.addEventListener('submit', (e) => {
	e.preventDefault();
	signIn(page.token.value.trim());
	page.token.value = '';
	enter();
});
window.addEventListener('hashchange', () => {
	if (new URLSearchParams(location.hash.slice(1)).has('code'))
		enter();
});
setInterval(() => {
	if (token && !page.app.hidden && document.visibilityState === 'visible')
		listRuns();
}, LIST_EVERY_MS);
enter();
