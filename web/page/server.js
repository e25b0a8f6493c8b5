// server.js - asking the server: the token, refusals in its own words, patience with
// a network that breaks, and event streams.

/** @typedef {{type: string, data: any}} RunEvent */

const TOKEN_KEY = 'uar.token';

let token = sessionStorage.getItem(TOKEN_KEY) ?? '';
/** @type {(good: boolean) => void} */
let tellLine = () => {};

/** @param {(good: boolean) => void} fn is told whether the server answers */
export function onLine(fn) {
	tellLine = fn;
}

export function signedIn() {
	return token !== '';
}

/** @param {string} value '' forgets it */
export function setToken(value) {
	token = value;
	if (value)
		sessionStorage.setItem(TOKEN_KEY, value);
	else
		sessionStorage.removeItem(TOKEN_KEY);
}

/** What the server refused, in its own words. */
export class Problem extends Error {
	/** @param {number} status @param {string} code @param {string} detail @param {string} [where] pointer into what was sent */
	constructor(status, code, detail, where = '') {
		super(detail);
		this.where = where;
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
	return new Problem(response.status, body.code ?? `HTTP ${response.status}`, body.detail ?? response.statusText, body.where);
}

/** Paths are relative, so that the page also works below a prefix.
 * @param {string} path @param {{body?: object, headers?: Record<string, string>, signal?: AbortSignal}} [o] */
export async function ask(path, o = {}) {
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
export async function askJson(path, body, signal) {
	return (await ask(path, {body, signal})).json();
}

/** Ends early when the signal fires or the network is back. @param {number} ms @param {AbortSignal} signal */
export function pause(ms, signal) {
	return new Promise((done) => {
		const over = new AbortController();
		const end = () => { over.abort(); clearTimeout(timer); done(undefined); };
		const timer = setTimeout(end, ms);
		signal.addEventListener('abort', end, {signal: over.signal});
		window.addEventListener('online', end, {signal: over.signal});
		if (signal.aborted)
			end();
	});
}

/** Asks until there is an answer; throws a refusal, and whatever there is once the signal fired: no answer comes after that.
 * @param {string} path @param {AbortSignal} signal @param {object} [body] */
export async function insist(path, signal, body) {
	for (let wait = 300; ; wait = Math.min(wait * 1.6, 3000)) {
		try {
			const answer = await askJson(path, body, signal);
			signal.throwIfAborted();
			tellLine(true);
			return answer;
		} catch (e) {
			if (signal.aborted || (e instanceof Problem && e.final))
				throw e;
		}
		tellLine(false);
		await pause(wait, signal);
	}
}

/** Server-Sent Events of a body; returns when it ends, throws when it breaks.
 * @param {ReadableStream<any>} body @param {() => void} alive called for every sign of life
 * @returns {AsyncGenerator<{name: string, id: string, event: RunEvent}>} */
export async function* events(body, alive) {
	const reader = body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = '', name = '', id = '', data = '';
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
					id = line.slice(4);
				else if (line.startsWith('event: '))
					name = line.slice(7);
				else if (line === '' && data) {
					yield {name, id, event: JSON.parse(data)};
					name = data = '';
				}
			}
		}
	} finally {
		reader.cancel().catch(() => {});
	}
}
