// draw.js - runs on the screen: what is new is added, at most once a frame.
import {makeForm} from './form.js';
import {WAITS, plain} from './run.js';
import {make, nearEnd, page, say, showLine, toEnd} from './screen.js';

/** @typedef {import('./run.js').Run} Run */
/** @typedef {import('./run.js').Block} Block */
/** @typedef {import('./run.js').RunState} RunState */

const LONG_REASONING = 600; // characters; longer ones fold away when the answer begins

/** What drawing needs of the rest of the page, which fills it in.
 * @type {{shows: (run: Run) => boolean, drawn: () => void, decide: (run: Run, question: Block, decision: string, values?: object) => void,
 *   read: (path: string) => Promise<string | null>}} */
export const around = {shows: () => true, drawn() {}, decide() {}, read: async () => null};

/** @type {Set<Run>} */
const toDraw = new Set();

/** @param {Run} run */
export function drawSoon(run) {
	if (toDraw.size === 0)
		requestAnimationFrame(drawAll);
	toDraw.add(run);
}

function drawAll() {
	const follows = nearEnd();
	for (const run of toDraw)
		if (around.shows(run))
			draw(run);
	toDraw.clear();
	if (follows)
		toEnd();
	around.drawn();
}

/** @param {Run} run */
function draw(run) {
	run.elements ??= makeTurn(run);
	for (const block of run.dropped.splice(0))
		block.element?.remove();
	run.blocks.forEach((block, i) => {
		if (!block.element)
			run.elements?.blocks.append(makeBlock(run, block));
		drawBlock(block);
		if (block.kind === 'ask')
			drawQuestion(run, block);
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

// Maps, because they are asked with words from outside, and an object has more members than its own.
const OFFERS = new Map([['allow', 'Allow'], ['allow_for_session', 'Allow for this session'],
	['allow_always', 'Allow always'], ['deny', 'Deny']]);
const AGAIN = new Map([['allow', 'Repeat it'], ['deny', 'Do not repeat it']]);
const DECIDED = new Map([['allow', 'allowed'], ['allow_for_session', 'allowed for this session'],
	['allow_always', 'allowed always'], ['deny', 'denied'], ['submit', 'answered'], ['decline', 'declined'],
	['cancel', 'not answered']]);

/** What the server takes as an answer. The focus moves to the question, because the
 * buttons go. @param {Run} run @param {Block} block */
function decisions(run, block) {
	const row = make('p', 'decisions'), offers = block.repeat ? AGAIN : OFFERS;
	for (const decision of (block.decisions ?? ['allow', 'deny']).filter((d) => offers.has(d))) {
		const button = make('button', '', offers.get(decision));
		button.setAttribute('aria-label', `${offers.get(decision)}: ${block.title}`);
		button.addEventListener('click', () => {
			block.element?.focus();
			around.decide(run, block, decision);
		});
		row.append(button);
	}
	return row;
}

/** @param {Run} run @param {Block} block */
function makeQuestion(run, block) {
	const card = make('section', 'card ask'), head = make('h3', '', block.title);
	const details = /** @type {HTMLDetailsElement} */ (make('details'));
	card.tabIndex = -1;
	card.setAttribute('aria-label', `Question: ${block.title}`);
	head.append(make('span', 'state'));
	details.open = true;
	block.body = make('pre');
	block.body.tabIndex = 0;
	details.append(make('summary', '', 'What it is about'), block.body, ...wholeOf(block));
	card.append(head, details, decisions(run, block));
	return card;
}

/** Fields and two buttons. A schema that is too long for an event is fetched first. @param {Run} run @param {Block} block */
function makeFormCard(run, block) {
	const card = make('section', 'card ask'), head = make('h3', '', block.title), row = make('div', 'decisions');
	const place = make('div'), wrong = make('p', 'wrong'), submit = make('button', '', 'Submit'), decline = make('button', '', 'Decline');
	let form = makeForm(block.form);
	const send = () => {
		card.focus();
		try {
			around.decide(run, block, 'submit', form.values());
		} catch (e) {
			block.wrong = String(e);
		}
	};
	const show = () => {
		place.replaceChildren(form.element);
		form.element.addEventListener('submit', (e) => { e.preventDefault(); send(); });
	};
	card.tabIndex = -1;
	card.setAttribute('aria-label', `Form: ${block.title}`);
	head.append(make('span', 'state'));
	submit.addEventListener('click', () => form.element.reportValidity() && send());
	decline.addEventListener('click', () => { card.focus(); around.decide(run, block, 'decline'); });
	row.append(submit, decline);
	show();
	if (block.rest)
		around.read(block.rest).then((text) => {
			form = makeForm(JSON.parse(text ?? '{}'));
			show();
		});
	block.body = make('pre');
	block.body.hidden = true;
	card.append(head, place, wrong, block.body, row);
	return card;
}

/** @param {Run} run @param {Block} block */
function drawForm(run, block) {
	const card = /** @type {HTMLElement} */ (block.element), waits = !run.outcome && block.state === WAITS;
	const wrong = /** @type {HTMLElement} */ (card.querySelector('.wrong'));
	/** @type {HTMLElement} */ (card.querySelector('form')).hidden = !waits;
	wrong.textContent = waits ? block.wrong ?? '' : '';
	wrong.hidden = !wrong.textContent;
}

/** Open while it waits; what was decided is history, a click away. @param {Run} run @param {Block} block */
function drawQuestion(run, block) {
	const card = /** @type {HTMLElement} */ (block.element), waits = !run.outcome && block.state === WAITS;
	const row = /** @type {HTMLElement} */ (card.lastElementChild);
	const state = /** @type {HTMLElement} */ (card.querySelector('.state'));
	state.textContent = waits ? (block.answering ? 'answering…' : 'waits for you')
		: DECIDED.get((block.state === WAITS ? 'cancel' : block.state) ?? '') ?? block.state ?? '';
	state.dataset.state = waits ? WAITS : block.state;
	row.hidden = !waits;
	for (const button of row.querySelectorAll('button'))
		button.disabled = Boolean(block.answering);
	if (block.form)
		drawForm(run, block);
	if (!waits && !block.folded && !block.form) {
		/** @type {HTMLDetailsElement} */ (card.querySelector('details')).open = false;
		block.folded = true;
	}
}

/** Nobody should allow what he has not seen: the rest is a click away. @param {Block} block */
function wholeOf(block) {
	if (!block.rest)
		return [];
	const row = make('p', 'note', `The beginning of ${block.bytes} bytes. `), button = make('button', '', 'Show all');
	button.addEventListener('click', async () => {
		const text = await around.read(block.rest ?? '');
		if (text === null)
			return;
		block.text = plain(text);
		drawBlock(block);
		row.remove();
	});
	row.append(button);
	return [row];
}

/** @param {Run} run @param {Block} block */
function makeBlock(run, block) {
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
		block.element = block.form ? makeFormCard(run, block) : makeQuestion(run, block);
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
	if (state instanceof HTMLElement && block.kind !== 'ask') {
		state.textContent = block.state ?? '';
		state.dataset.state = block.state;
		body.hidden = block.kind === 'tool' && !block.text;
	}
}

/** What was said may look complete, and is not. */
const CUTS = new Map([['length', 'the model came to the limit of its output'],
	['max_tokens', 'the model came to the limit of its output'], ['content_filter', 'the provider holds back the rest']]);

/** @param {Run} run @returns {[string, string]} words and how they look */
function endingOf(run) {
	if (run.outcome?.ok) {
		const cut = CUTS.get(run.outcome.code);
		return cut ? [`Done, but cut: ${cut}`, 'wait'] : ['Done', ''];
	}
	if (run.outcome?.code === 'CANCELED')
		return ['Cancelled', ''];
	if (run.outcome && run.state === 'unsent')
		return [`Not sent. ${run.outcome.code}: ${run.outcome.message}`, 'bad'];
	if (run.outcome)
		return [`${run.outcome.code}: ${run.outcome.message}`, 'bad'];
	if (!run.id)
		return ['Sending…', ''];
	if (run.state === 'away')
		return ['Reconnecting…', 'wait'];
	if (run.cancelling)
		return ['Cancelling…', 'wait'];
	if (run.question && !run.question.answering)
		return ['Waits for your answer', 'wait'];
	return [run.blocks.length ? 'Running' : 'Waiting', ''];
}

/** @param {Run} run @param {HTMLElement} element */
function drawEnding(run, element) {
	const [words, look] = endingOf(run);
	if (element.textContent !== words)
		element.textContent = words;
	element.dataset.state = look;
}

/** @param {Run} run @param {RunState} state */
export function setState(run, state) {
	const was = run.state;
	run.state = state;
	if (state === 'live' || state === 'away')
		showLine(state === 'live');
	if (state === 'away' && was !== 'away')
		say('Connection lost, reconnecting.');
	if (state === 'live' && was === 'away')
		say('Connected again.');
	if (state === 'over' && !run.old)
		say(run.outcome?.ok ? `${run.agent} answered: ${run.answer.slice(0, 500)}` : endingOf(run)[0]);
	drawSoon(run);
}
