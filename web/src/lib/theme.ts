// theme.ts - light, dark, or as the system says; kept in this browser.
import {useSyncExternalStore} from 'react';

export type Theme = 'system' | 'light' | 'dark';
const KEY = 'uar.theme';

export function theme(): Theme {
	const kept = localStorage.getItem(KEY);
	return kept === 'light' || kept === 'dark' ? kept : 'system';
}

export function setTheme(value: Theme): void {
	if (value === 'system')
		localStorage.removeItem(KEY);
	else
		localStorage.setItem(KEY, value);
	applyTheme();
	dispatchEvent(new Event('uar:theme'));
}

export function applyTheme(): void {
	const value = theme();
	if (value === 'system')
		delete document.documentElement.dataset.theme;
	else
		document.documentElement.dataset.theme = value;
}

export function isDark(): boolean {
	const value = theme();
	return value === 'dark' || (value === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
}

const system = matchMedia('(prefers-color-scheme: dark)');
function hear(fn: () => void): () => void {
	addEventListener('uar:theme', fn);
	system.addEventListener('change', fn);
	return () => {
		removeEventListener('uar:theme', fn);
		system.removeEventListener('change', fn);
	};
}

export const useDark = () => useSyncExternalStore(hear, isDark);
