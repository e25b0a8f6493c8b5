// page.js - UAR's own page: sign in by the one-time link, talk to an agent, watch and
// reopen runs. A page that was there from the start and one that came later show the
// same, because what is shown is a fold of the run's events (run.js).
import {around, drawSoon, setState} from './draw.js';
import {follow} from './follow.js';
import {Run} from './run.js';
import {keepEnd, make, nearEnd, page, say, showLine, toEnd} from './screen.js';
import {Problem, ask, askJson, events, insist, onLine, setToken, signedIn} from './server.js';

/** @typedef {{agent_id: string, title: string, description: string, entry: string}} Agent */
/** @typedef {{run_id: string, agent_id: string, status: string, session_id: string,
 *   engine_status: string, conversation_id: string, created_at: number, finished_at: number | null}} RunRecord */

const HISTORY_MAX = 50; // runs of a conversation that are opened again
const MESSAGES_MAX = 4 << 20; // bytes of a session read to find what was asked
const LIST_PAGE = 30;
const LIST_EVERY_MS = 10000;
const WAITING = ['waiting_permission', 'waiting_input']; // for somebody
/** What works without a key, for who has nothing to say yet: agent, words, message. */
const TRIALS = [['demo', 'Say hello to the demo', 'Hello'],
	['tools', 'See a tool ask first', 'tool fs.write {"path": "hello.txt", "text": "Hello from UAR"}']];
const always = new AbortController().signal; // for what has to arrive, whatever is on the screen by then

// --- the conversation ----------------------------------------------------------------

/** What is on the screen; leaving it for another one stops its connections, never its runs. */
class Talk {
	/** @param {string} id '' until that of an old one is known */
	constructor(id) {
		this.id = id;
		/** @type {Run[]} */
		this.runs = [];
		this.left = new AbortController();
		/** The server lets the runs of a conversation take turns, so one connection is enough. */
		this.queue = Promise.resolve();
		/** What is said first is sent first. */
		this.sends = Promise.resolve();
	}

	/** @param {Run} run */
	show(run) {
		this.runs.push(run);
		drawSoon(run);
	}

	/** @param {Run} run one that is shown */
	follow(run) {
		const watcher = {changed: drawSoon, state: setState, refused};
		this.queue = this.queue.then(() => follow(run, this.left.signal, watcher)).then(() => listRuns());
	}

	get active() {
		return this.runs.find((r) => r.id && !r.outcome);
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
	showTitle();
}

/** @param {string} runId */
function addressOf(runId) {
	return runId ? `#run=${encodeURIComponent(runId)}` : location.pathname + location.search;
}

/** The address names the run, so that a reload opens it again. @param {string} runId */
function remember(runId) {
	history.replaceState(null, '', addressOf(runId));
}

/** A step that Back takes back. @param {string} runId '' for a new conversation */
function goTo(runId) {
	if (addressOf(runId) !== location.hash)
		history.pushState(null, '', addressOf(runId));
	goWhere(runId);
}

/** @param {string | null} runId */
function goWhere(runId) {
	const shown = talk.runs.find((r) => r.id === runId);
	if (!runId)
		startTalk();
	else if (shown)
		shown.elements?.turn.scrollIntoView();
	else
		openRun(runId);
}

function startTalk() {
	leaveFor(new Talk(`page-${randomHex(12)}`));
	welcome();
	listRuns();
	page.message.focus();
}

function welcome() {
	const box = make('div', 'welcome');
	const row = make('p');
	for (const [agent, words, message] of TRIALS.filter(([agent]) => agents.some((a) => a.agent_id === agent))) {
		const button = make('button', '', words);
		button.addEventListener('click', () => tryOut(agent, message));
		row.append(button);
	}
	box.append(make('strong', '', 'What shall be done?'), 'Runs go on when you leave, and are here when you come back.', row);
	page.talk.replaceChildren(box);
}

/** @param {string} agent @param {string} message */
function tryOut(agent, message) {
	page.agent.value = agent;
	page.message.value = message;
	showAgent();
	send();
	page.message.focus();
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
	} catch {
		signal.throwIfAborted(); // else they are shown without what was asked
	}
	enough.abort();
	return found;
}

/** @param {string} runId */
async function openRun(runId) {
	const here = new Talk(''), signal = here.left.signal;
	leaveFor(here);
	page.talk.append(make('p', 'note', 'Opening…'));
	try {
		const record = /** @type {RunRecord} */ (await insist(`api/runs/${encodeURIComponent(runId)}`, signal));
		const list = await insist(`api/runs?limit=${HISTORY_MAX}&session_id=${encodeURIComponent(record.session_id)}`, signal);
		const records = /** @type {RunRecord[]} */ (list.runs).reverse();
		const asked = await messagesOf(records, signal);
		here.id = record.conversation_id;
		page.talk.replaceChildren();
		for (const r of records) {
			const run = new Run(r.run_id, r.agent_id, asked.get(r.run_id) ?? '');
			run.old = r.finished_at !== null;
			here.show(run);
			here.follow(run);
		}
		if ([...page.agent.options].some((o) => o.value === record.agent_id))
			page.agent.value = record.agent_id;
		showAgent();
		listRuns();
	} catch (e) {
		if (signal.aborted)
			return;
		if (!(e instanceof Problem && e.status === 401)) {
			remember('');
			startTalk();
		}
		refused(e);
	}
}

let unsent = 0;

/** A request whose answer was lost is sent again, and counts once; also when the person looks at something else by then.
 * @param {object} body */
async function create(body) {
	const key = randomHex(16);
	unsent++;
	try {
		return await insist('api/runs', always, {...body, idempotency_key: key});
	} finally {
		unsent--;
	}
}

/** @param {Talk} here @param {Run} run that is shown and not sent yet @param {object} inputs */
async function submit(here, run, inputs) {
	try {
		const made = await create({agent_id: run.agent, conversation_id: here.id, inputs});
		run.id = made.run_id;
		if (here === talk) {
			remember(run.id);
			here.follow(run);
		}
		listRuns();
	} catch (e) {
		notSent(here, run, e);
	}
	drawSoon(run);
}

/** What was said stays on the screen, beside why it went no further. @param {Talk} here @param {Run} run @param {unknown} e */
function notSent(here, run, e) {
	if (here !== talk || !(e instanceof Problem) || e.status === 401) {
		refused(e);
		return;
	}
	run.outcome = {ok: false, code: e.code, message: e.message};
	run.state = 'unsent';
	page.message.value ||= run.message;
	say(`Not sent: ${e.message}`);
}

function send() {
	const message = page.message.value.trim(), agent = chosen(), here = talk;
	if (!here.id || !agent || (!message && agent.entry !== 'fixture'))
		return;
	const inputs = agent.entry === 'fixture' ? {fixture: page.recording.value, pace: 'recorded'} : {message};
	const run = new Run('', agent.agent_id, message || page.recording.value);
	if (here.runs.length === 0)
		page.talk.replaceChildren();
	page.message.value = '';
	closeRuns();
	here.show(run);
	toEnd();
	here.sends = here.sends.then(() => submit(here, run, inputs));
}

/** It holds, as decide() does, also when the person looks at something else by then. */
async function cancel() {
	const here = talk, run = here.active;
	if (!run)
		return;
	run.cancelling = true;
	drawSoon(run);
	try {
		await insist(`api/runs/${encodeURIComponent(run.id)}/cancel`, always, {reason: 'cancelled on the page'});
	} catch (e) {
		run.cancelling = false;
		drawSoon(run);
		refusedIn(here, e);
	}
}

/** The first answer counts, whoever gave it: the run's events tell which. One that the network swallowed is given
 * again, also when the person looks at something else by then. @type {typeof around.decide} */
async function decide(run, question, decision, values) {
	const here = talk;
	question.answering = decision;
	question.wrong = '';
	drawSoon(run);
	try {
		await insist('api/control/respond_action', always, {action_id: question.id, decision, payload: values});
	} catch (e) {
		question.answering = '';
		if (question.form && e instanceof Problem && e.status === 400)
			question.wrong = `${e.where.replace('/payload', '')} ${e.message}`.trim();
		drawSoon(run);
		if (!question.wrong && !(e instanceof Problem && e.code === 'ACTION_RESOLVED'))
			refusedIn(here, e);
	}
}

/** So that a tab among others tells what it is about and whether it needs somebody. */
function showTitle() {
	const run = talk.active, about = talk.runs[0]?.message.slice(0, 60) ?? '';
	const state = !run ? '' : run.state === 'away' ? 'Reconnecting' : run.question ? 'Waits for you' : 'Running';
	document.title = [state, about, 'UAR'].filter(Boolean).join(' · ');
}

let asked = '';

/** Those who look elsewhere or listen are told of a question as well. */
function noticeQuestion() {
	const run = talk.active, question = run?.question, id = question?.id ?? '';
	if (id === asked)
		return;
	asked = id;
	if (run && question)
		say(`${run.agent} asks: ${question.title}`);
	listRuns();
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

/** Of what was done in a conversation: another one is no place to read it. @param {Talk} here @param {unknown} e */
function refusedIn(here, e) {
	if (here === talk || (e instanceof Problem && e.status === 401))
		refused(e);
}

// --- lists and choices -----------------------------------------------------------------

/** @type {Agent[]} */
let agents = [];
/** @type {RunRecord[]} */
let listed = [];
let older = ''; // where the list goes on
let listings = 0, newest = 0; // how often it was asked for, and which of those answers is shown

function chosen() {
	return agents.find((a) => a.agent_id === page.agent.value);
}

function showAgent() {
	const agent = chosen();
	page.about.textContent = page.about.title = agent?.description ?? '';
	page.recordingChoice.hidden = agent?.entry !== 'fixture';
	page.message.disabled = agent?.entry === 'fixture'; // it says what was recorded
	page.message.placeholder = page.message.disabled ? 'The recording is replayed as it was.'
		: 'Say something. Enter sends, Shift+Enter makes a new line.';
	showDeeds();
}

function showDeeds() {
	const active = talk.active;
	page.send.disabled = !talk.id || (!page.message.value.trim() && chosen()?.entry !== 'fixture');
	if (document.activeElement === page.cancel && (!active || active.cancelling))
		page.message.focus(); // the focus does not go with the button
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
	const waits = WAITING.includes(record.engine_status);
	const status = make('span', 'status', waits ? 'waits for you' : record.status.replace('_', ' '));
	const time = make('time', '', ago(record.created_at));
	const exact = new Date(record.created_at * 1000);
	status.dataset.status = waits ? 'waiting' : record.status;
	time.setAttribute('datetime', exact.toISOString());
	time.title = exact.toLocaleString();
	button.setAttribute('type', 'button');
	button.dataset.run = record.run_id;
	if (talk.runs.some((r) => r.id === record.run_id))
		button.setAttribute('aria-current', 'true');
	button.append(make('span', 'agent', record.agent_id), status, time);
	button.addEventListener('click', () => { closeRuns(); goTo(record.run_id); });
	item.append(button);
	return item;
}

/** Anew only when something changed: what is under a finger or has the focus stays. */
function drawRuns() {
	const rows = listed.length ? listed.map(makeRow)
		: [make('li', 'none', 'None yet. Say something to the demo agent: it needs no key.')];
	const drawn = page.runList.children, focus = document.activeElement;
	const focused = focus instanceof HTMLElement ? focus.dataset.run : '';
	page.moreRuns.hidden = !older;
	if (rows.length === drawn.length && rows.every((row, i) => row.isEqualNode(drawn[i])))
		return;
	page.runList.replaceChildren(...rows);
	if (focused)
		[...page.runList.querySelectorAll('button')].find((b) => b.dataset.run === focused)?.focus();
}

/** The newest runs in place of what was listed of them; failing is no harm, it is asked again. What was
 * listed before is kept if nothing is missing in between. */
async function listRuns() {
	const mine = ++listings;
	try {
		const answer = await askJson(`api/runs?limit=${LIST_PAGE}`);
		if (mine < newest)
			return;
		newest = mine;
		const oldest = answer.runs.at(-1)?.run_id ?? ''; // ids rise with time
		const kept = listed.some((r) => r.run_id >= oldest) ? listed.filter((r) => r.run_id < oldest) : [];
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
	const before = older;
	try {
		const answer = await insist(`api/runs?limit=${LIST_PAGE}&before=${encodeURIComponent(before)}`, always);
		if (before !== older) // it was asked for twice, or the list began anew
			return;
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
	const answer = await insist('api/agents', always);
	const recordings = (await insist('api/fixtures', always)).fixtures;
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
	setToken('');
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

/** The code leaves the address, and with it the history, before it is used. @param {string} code */
async function takeCode(code) {
	history.replaceState(null, '', location.pathname + location.search);
	setToken((await insist('api/link', always, {code})).token);
}

async function enter() {
	const wanted = new URLSearchParams(location.hash.slice(1));
	const code = wanted.get('code'), run = wanted.get('run');
	try {
		if (code)
			await takeCode(code);
		if (!signedIn()) {
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
page.newTalk.addEventListener('click', () => { closeRuns(); goTo(''); });
page.moreRuns.addEventListener('click', listOlder);
page.latest.addEventListener('click', () => { toEnd(); page.message.focus(); });
page.talk.addEventListener('scroll', () => { page.latest.hidden = nearEnd(); }, {passive: true});
page.runs.addEventListener('keydown', (e) => {
	if (e.key !== 'Escape' || !page.runs.classList.contains('open'))
		return;
	closeRuns();
	page.showRuns.focus();
});
page.showRuns.addEventListener('click', () => {
	page.showRuns.setAttribute('aria-expanded', String(page.runs.classList.toggle('open')));
});
page.signInForm.addEventListener('submit', (e) => {
	e.preventDefault();
	setToken(page.token.value.trim());
	page.token.value = '';
	enter();
});
window.addEventListener('hashchange', () => {
	const wanted = new URLSearchParams(location.hash.slice(1));
	if (wanted.has('code'))
		enter();
	else if (!page.app.hidden)
		goWhere(wanted.get('run'));
});
window.addEventListener('beforeunload', (e) => {
	if (unsent)
		e.preventDefault();
});
setInterval(() => {
	if (signedIn() && !page.app.hidden && document.visibilityState === 'visible')
		listRuns();
}, LIST_EVERY_MS);
onLine(showLine);
keepEnd();
around.shows = (run) => talk.runs.includes(run);
around.drawn = () => { showDeeds(); showTitle(); noticeQuestion(); };
around.read = async (path) => {
	const here = talk;
	try {
		return await (await ask(path.replace(/^\//, ''))).text();
	} catch (e) {
		refusedIn(here, e);
		return null;
	}
};
around.decide = decide;
enter();
