// line.ts - whether the server answers; one state for the whole page.
import {useSyncExternalStore} from 'react';

export interface Line { good: boolean; since: number; tries: number }

let state: Line = {good: true, since: Date.now(), tries: 0};
const watchers = new Set<() => void>();

function set(next: Line): void {
	state = next;
	watchers.forEach((fn) => fn());
}

export const line = {
	lost(): void { set({good: false, since: state.good ? Date.now() : state.since, tries: state.tries + 1}); },
	found(): void {
		if (!state.good)
			set({good: true, since: Date.now(), tries: 0});
	},
	tryNow(): void { dispatchEvent(new Event('uar:try')); },
};

export function useLine(): Line {
	return useSyncExternalStore((fn) => { watchers.add(fn); return () => watchers.delete(fn); }, () => state);
}
