// api.ts - asking the server: the token, refusals in its own words, patience with a network that breaks.
import {BASE, at} from './base';
import {line} from './line';

const TOKEN_KEY = 'uar.token';
let token = sessionStorage.getItem(TOKEN_KEY) ?? '';
const watchers = new Set<() => void>();

/** Tabs of this origin: one that has no token gets it from another. Nothing of it is stored or sent; an artifact's frame
 * has no origin and hears nothing. */
const tabs = new BroadcastChannel(`uar ${BASE}`);
tabs.onmessage = ({data}) => {
	if (data?.ask && token)
		tabs.postMessage({token});
	else if (typeof data?.token === 'string' && data.token && !token && data.token !== refused)
		setToken(data.token, false);
};
let refused = '';

/** Ends when another tab has answered, or soon. */
export function askTabs(): Promise<void> {
	return new Promise((done) => {
		if (token)
			return done();
		const over = onToken(() => { over(); done(); });
		setTimeout(() => { over(); done(); }, 200);
		tabs.postMessage({ask: true});
	});
}

export function signedIn(): boolean {
	return token !== '';
}

/** '' forgets it. */
export function setToken(value: string, tell = true): void {
	if (!value)
		refused = token;
	token = value;
	if (value && tell)
		tabs.postMessage({token: value});
	if (value)
		sessionStorage.setItem(TOKEN_KEY, value);
	else
		sessionStorage.removeItem(TOKEN_KEY);
	watchers.forEach((fn) => fn());
}

export function onToken(fn: () => void): () => void {
	watchers.add(fn);
	return () => watchers.delete(fn);
}

/** What the server refused, in its own words. */
export class Problem extends Error {
	constructor(readonly status: number, readonly code: string, detail: string, readonly where = '') {
		super(detail);
		this.name = 'Problem';
	}

	/** Asking again as it is cannot help. */
	get final(): boolean {
		return this.status >= 400 && this.status < 500 && this.status !== 408 && this.status !== 429;
	}
}

async function problemOf(response: Response): Promise<Problem> {
	const body = await response.json().catch(() => ({}));
	return new Problem(response.status, body.code ?? `HTTP ${response.status}`, body.detail ?? response.statusText, body.where);
}

export interface Ask {
	method?: string;
	body?: unknown;
	headers?: Record<string, string>;
	signal?: AbortSignal;
}

/** Throws a Problem when the server refuses, a TypeError when it does not answer. A 401 signs out: the
 * sign-in page then says why and comes back to the same address. */
export async function ask(path: string, o: Ask = {}): Promise<Response> {
	const headers: Record<string, string> = {...o.headers};
	if (token)
		headers.Authorization = `Bearer ${token}`;
	if (o.body !== undefined)
		headers['Content-Type'] = 'application/json';
	const mine = token;
	let response: Response;
	try {
		response = await fetch(at(path), {
			method: o.method ?? (o.body === undefined ? 'GET' : 'POST'),
			headers,
			body: o.body === undefined ? undefined : JSON.stringify(o.body),
			signal: o.signal,
			cache: path.includes('/blobs/') ? 'default' : 'no-store',
			credentials: 'omit',
		});
	} catch (e) {
		if (!o.signal?.aborted)
			line.lost();
		throw e;
	}
	line.found();
	if (!response.ok) {
		const problem = await problemOf(response);
		if (problem.status === 401 && mine && mine === token) {
			expired = true;
			setToken('');
		}
		throw problem;
	}
	return response;
}

let expired = false;
/** The token that was used is not valid any more. */
export function wasExpired(): boolean {
	return expired;
}

export async function askJson<T>(path: string, o: Ask = {}): Promise<T> {
	return (await ask(path, o)).json() as Promise<T>;
}

/** A command of the control plane: its result. */
export async function command<T = Record<string, unknown>>(name: string, body: object): Promise<T> {
	return (await askJson<{result: T}>(`api/control/${name}`, {body})).result;
}

/** Asks until there is an answer: only for what may be repeated (an idempotency key, or a read). */
export async function insist<T>(path: string, o: Ask = {}): Promise<T> {
	for (let wait = 300; ; wait = Math.min(wait * 1.6, 3000)) {
		try {
			return await askJson<T>(path, o);
		} catch (e) {
			if (o.signal?.aborted || (e instanceof Problem && e.final))
				throw e;
		}
		await pause(wait, o.signal);
	}
}

/** Ends early when the signal fires, the network is back, or a person asks to try now. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
	return new Promise((done) => {
		const over = new AbortController();
		const end = () => { over.abort(); clearTimeout(timer); done(); };
		const timer = setTimeout(end, ms);
		signal?.addEventListener('abort', end, {signal: over.signal});
		addEventListener('online', end, {signal: over.signal});
		addEventListener('uar:try', end, {signal: over.signal});
		if (signal?.aborted)
			end();
	});
}

/** Exchanges the code of the one-time link, which leaves the address before anything is asked. True when
 * there was one. */
export async function takeLink(): Promise<boolean> {
	const code = new URLSearchParams(location.hash.slice(1)).get('code');
	if (code === null)
		return false;
	history.replaceState(history.state, '', location.pathname + location.search);
	const answer = await askJson<{token: string}>('api/link', {body: {code}});
	expired = false;
	setToken(answer.token);
	return true;
}

/** Tries a token before it is kept. */
export async function tryToken(value: string): Promise<void> {
	const response = await fetch(at('version'), {headers: {Authorization: `Bearer ${value}`}, credentials: 'omit', cache: 'no-store'});
	if (!response.ok)
		throw await problemOf(response);
	expired = false;
	setToken(value);
}
