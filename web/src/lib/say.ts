// say.ts - what a screen reader is to hear, once each, and the notes at the edge of the page.
import {useSyncExternalStore} from 'react';

export interface Toast { id: number; kind: 'ok' | 'err' | 'wait'; text: string; detail?: string }

let toasts: Toast[] = [];
let spoken = '';
let next = 1;
const watchers = new Set<() => void>();
const changed = () => watchers.forEach((fn) => fn());
const subscribe = (fn: () => void) => { watchers.add(fn); return () => { watchers.delete(fn); }; };

/** For the live region. */
export function say(text: string): void {
	spoken = text;
	changed();
}

/** At most three; errors stay until they are closed. */
export function toast(kind: Toast['kind'], text: string, detail?: string): number {
	const id = next++;
	toasts = [...toasts, {id, kind, text, detail}].slice(-3);
	if (kind === 'err')
		say(text);
	if (kind === 'ok')
		setTimeout(() => closeToast(id), 4000);
	changed();
	return id;
}

export function closeToast(id: number): void {
	toasts = toasts.filter((t) => t.id !== id);
	changed();
}

/** A refusal, as a note: what was tried, the server's sentence, its code. */
export function complain(what: string, e: unknown): void {
	const code = (e as {code?: string}).code;
	toast('err', what, `${e instanceof Error ? e.message : String(e)}${code ? ` (${code})` : ''}`);
}

export const useToasts = () => useSyncExternalStore(subscribe, () => toasts);
export const useSpoken = () => useSyncExternalStore(subscribe, () => spoken);
