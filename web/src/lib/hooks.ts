// hooks.ts - small things that several screens need.
import {useEffect, useState, useSyncExternalStore} from 'react';

/** The time in seconds, renewed every `every` seconds. */
export function useNow(every = 10): number {
	const [now, set] = useState(() => Date.now() / 1000);
	useEffect(() => {
		const timer = setInterval(() => set(Date.now() / 1000), every * 1000);
		return () => clearInterval(timer);
	}, [every]);
	return now;
}

export function useTitle(title: string): void {
	useEffect(() => {
		document.title = title ? `${title} · UAR` : 'UAR';
	}, [title]);
}

/** Whether a media query holds. */
export function useMedia(query: string): boolean {
	return useSyncExternalStore((fn) => {
		const m = matchMedia(query);
		m.addEventListener('change', fn);
		return () => m.removeEventListener('change', fn);
	}, () => matchMedia(query).matches);
}

/** A value of this browser, such as a folded rail. */
export function useKept(key: string, first: string): [string, (value: string) => void] {
	const [value, set] = useState(() => localStorage.getItem(`uar.${key}`) ?? first);
	return [value, (v) => { localStorage.setItem(`uar.${key}`, v); set(v); }];
}
