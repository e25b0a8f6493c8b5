// screen.js - the parts of the page, and what is said beside the conversation. What
// arrives is data, never markup: it is shown through text nodes alone.

const AWAY_HINT_MS = 10000;

/** @template {HTMLElement} T @param {string} id @returns {T} */
function by(id) {
	return /** @type {T} */ (document.getElementById(id));
}

export const page = {
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

/** @param {string} tag @param {string} [className] @param {string} [text] */
export function make(tag, className = '', text = '') {
	const element = document.createElement(tag);
	if (className)
		element.className = className;
	if (text)
		element.append(text);
	return element;
}

export function nearEnd() {
	const t = page.talk;
	return t.scrollHeight - t.scrollTop - t.clientHeight < 80;
}

export function toEnd() {
	page.talk.scrollTop = page.talk.scrollHeight;
}

/** Who reads the end still does when a phone is turned or its keyboard comes up. */
export function keepEnd() {
	const size = () => `${page.talk.clientWidth} ${page.talk.clientHeight}`;
	let atEnd = true, known = '';
	page.talk.addEventListener('scroll', () => {
		if (size() === known) // else the browser scrolled, because of the new size
			atEnd = nearEnd();
	}, {passive: true});
	new ResizeObserver(() => {
		known = size();
		if (atEnd)
			toEnd();
		page.latest.hidden = nearEnd();
	}).observe(page.talk);
}

/** For those who listen instead of looking: each thing once. @param {string} words */
export function say(words) {
	page.said.textContent = words;
}

let awaySince = 0;

/** @param {boolean} good */
export function showLine(good) {
	if (good)
		awaySince = 0;
	else if (!awaySince)
		awaySince = performance.now();
	const long = !good && performance.now() - awaySince > AWAY_HINT_MS;
	page.line.dataset.state = good ? 'good' : long ? 'lost' : 'bad';
	page.line.textContent = good ? 'Connected' : long
		? 'No answer. A server that was started again may have a new address: open the link it printed.'
		: 'Reconnecting…';
}
