// choice.ts - the model that a person has chosen for an agent in a conversation, kept in this browser only.
import {useState} from 'react';

const KEY = 'uar.models', MOST = 50; // choices that are kept, the newest last
type Kept = [conversation: string, agent: string, model: string];

function all(): Kept[] {
	try {
		const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
		return Array.isArray(kept) ? kept as Kept[] : [];
	} catch {
		return [];
	}
}

/** "provider/model"; empty: the agent's own. */
export function chosenModel(conversation: string, agent: string): string {
	return all().find(([c, a]) => c === conversation && a === agent)?.[2] ?? '';
}

export function keepModel(conversation: string, agent: string, model: string): void {
	const others = all().filter(([c, a]) => c !== conversation || a !== agent);
	localStorage.setItem(KEY, JSON.stringify([...others, ...(model && conversation ? [[conversation, agent, model]] : [])].slice(-MOST)));
}

/** Options of a message, as far as the person has chosen any. */
export function optionsOf(conversation: string, agent: string): {options?: {model: string}} {
	const model = chosenModel(conversation, agent);
	return model ? {options: {model}} : {};
}

export function useModel(conversation: string, agent: string): [string, (model: string) => void] {
	const [, draw] = useState(0);
	return [chosenModel(conversation, agent), (model) => { keepModel(conversation, agent, model); draw((n) => n + 1); }];
}
