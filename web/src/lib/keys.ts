// keys.ts - shortcuts: none fires while a person types, none takes a key of the browser. A key that is held
// fires once, unless the shortcut only moves.
import {useLayoutEffect, useRef} from 'react';

/** `text`: a Ctrl shortcut that a field has of its own, such as undo, is left to it. */
export interface Shortcut { keys: string; does: string; run: () => void; group?: string; repeats?: boolean; text?: boolean }

const stack: Shortcut[][] = [];
const CHORD_MS = 1200; // the second key follows the first so soon, by the times of the keys: a busy page is no slow hand
let chord = '';
let chordAt = 0;

function typing(target: EventTarget | null): boolean {
	const e = target as HTMLElement | null;
	return !!e?.closest?.('input, textarea, select, [contenteditable=true], [role=textbox]');
}

/** "Ctrl K", "Ctrl Shift Z", "G then H", "?", "[" */
function matches(keys: string, e: KeyboardEvent): boolean {
	const mod = e.ctrlKey || e.metaKey;
	if (keys.startsWith('Ctrl '))
		return mod && !e.altKey && e.shiftKey === keys.startsWith('Ctrl Shift ') && e.key.toLowerCase() === keys.slice(keys.lastIndexOf(' ') + 1).toLowerCase();
	if (mod || e.altKey)
		return false;
	if (keys.includes(' then '))
		return `${chord} then ${e.key.toUpperCase()}` === keys;
	return chord === '' && (keys.length === 1 ? e.key.toLowerCase() === keys.toLowerCase() && (/[a-z]/i.test(keys) ? !e.shiftKey : true) : e.key === (keys === 'Space' ? ' ' : keys));
}

addEventListener('keydown', (e) => {
	if (e.defaultPrevented || e.isComposing)
		return;
	if (e.timeStamp - chordAt > CHORD_MS)
		chord = '';
	const all = stack.flat().reverse();
	const inDialog = !!document.querySelector('dialog[open]');
	for (const s of all) {
		if (!matches(s.keys, e) || ((typing(e.target) || inDialog) && (s.text || !s.keys.startsWith('Ctrl '))))
			continue;
		e.preventDefault();
		chord = '';
		if (!e.repeat || s.repeats)
			s.run();
		return;
	}
	chord = '';
	if (!typing(e.target) && !inDialog && !e.ctrlKey && !e.metaKey && !e.altKey && all.some((s) => s.keys.startsWith(`${e.key.toUpperCase()} then `))) {
		chord = e.key.toUpperCase();
		chordAt = e.timeStamp;
	}
});

/** The shortcuts of a screen, for as long as it is shown; the newest wins, those of the page are below all others. */
export function useShortcuts(list: Shortcut[], page = false): void {
	const now = useRef(list);
	now.current = list;
	const names = list.map((s) => s.keys).join('|');
	useLayoutEffect(() => {
		const mine = now.current.map((s, i) => ({...s, run: () => now.current[i]?.run()}));
		stack.splice(page ? 0 : stack.length, 0, mine);
		return () => { stack.splice(stack.indexOf(mine), 1); };
	}, [names]);
}

/** All that work now, for the sheet. */
export function shortcuts(): Shortcut[] {
	return stack.flat();
}
