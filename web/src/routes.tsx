// routes.tsx - every view and where it is. A screen exists when its folder has an index.tsx: then it is
// reachable and, with `nav`, linked; a row whose folder is missing is nowhere on the page.
import {Bot, Brain, BookOpen, Cable, Home, Inbox, Layers, ListTree, List, MessageSquare, RotateCcw, SlidersHorizontal, Sparkles, Workflow, Wrench, type LucideIcon} from 'lucide-react';
import {type ComponentType, lazy} from 'react';
import {patiently} from './lib/patient';

export interface Route {
	/** Below /ui/; ':name' takes a segment, '' is home. */
	path: string;
	/** The folder below screens/. */
	screen: string;
	title: string;
	icon?: LucideIcon;
	/** In the rail, in this order; `key` is the second key of "G then …". */
	nav?: {key: string; phone?: boolean; group?: 'work' | 'set'};
}

export const TABLE: Route[] = [
	{path: '', screen: 'home', title: 'Home', icon: Home, nav: {key: 'H', phone: true}},
	{path: 'c', screen: 'chat', title: 'Chat', icon: MessageSquare, nav: {key: 'C', phone: true}},
	{path: 'c/:session', screen: 'chat', title: 'Chat'},
	{path: 'c/:session/:thread', screen: 'chat', title: 'Chat'},
	{path: 'conversations', screen: 'conversations', title: 'Conversations'},
	{path: 'inbox', screen: 'inbox', title: 'Inbox', icon: Inbox, nav: {key: 'I', phone: true}},
	{path: 'runs', screen: 'runs', title: 'Runs', icon: List, nav: {key: 'R', phone: true}},
	{path: 'runs/:run', screen: 'run', title: 'Run'},
	{path: 'runs/:run/:tab', screen: 'run', title: 'Run'},
	{path: 'replay', screen: 'replay', title: 'Replay', icon: RotateCcw, nav: {key: 'P'}},
	{path: 'replay/:what', screen: 'replay', title: 'Replay'},
	{path: 'tasks', screen: 'tasks', title: 'Tasks', icon: ListTree, nav: {key: 'T'}},
	{path: 'tasks/:session', screen: 'tasks', title: 'Tasks'},
	{path: 'jobs', screen: 'jobs', title: 'Jobs', icon: Layers, nav: {key: 'J'}},
	{path: 'jobs/:job', screen: 'jobs', title: 'Jobs'},
	{path: 'flows', screen: 'flows', title: 'Flows', icon: Workflow, nav: {key: 'F'}},
	{path: 'flows/:flow', screen: 'flows', title: 'Flows'},
	{path: 'agents', screen: 'agents', title: 'Agents', icon: Bot, nav: {key: 'A', group: 'set'}},
	{path: 'agents/:agent', screen: 'agents', title: 'Agents'},
	{path: 'models', screen: 'models', title: 'Models', icon: Brain, nav: {key: 'M', group: 'set'}},
	{path: 'tools', screen: 'tools', title: 'Tools', icon: Wrench, nav: {key: 'O', group: 'set'}},
	{path: 'tools/:tool', screen: 'tools', title: 'Tools'},
	{path: 'servers', screen: 'servers', title: 'MCP servers', icon: Cable, nav: {key: 'V', group: 'set'}},
	{path: 'servers/:server', screen: 'servers', title: 'MCP servers'},
	{path: 'skills', screen: 'skills', title: 'Skills', icon: Sparkles, nav: {key: 'S', group: 'set'}},
	{path: 'skills/:skill', screen: 'skills', title: 'Skills'},
	{path: 'knowledge', screen: 'knowledge', title: 'Knowledge', icon: BookOpen, nav: {key: 'K', group: 'set'}},
	{path: 'knowledge/:source', screen: 'knowledge', title: 'Knowledge'},
	{path: 'admin', screen: 'admin', title: 'Admin', icon: SlidersHorizontal, nav: {key: 'D', group: 'set'}},
];

type Module = {default: ComponentType<{params: Record<string, string>}>};
const found = import.meta.glob<Module>('./screens/*/index.tsx');

export function exists(screen: string): boolean {
	return `./screens/${screen}/index.tsx` in found;
}

const loaded = new Map<string, ComponentType<{params: Record<string, string>}>>();
export function screenOf(name: string): ComponentType<{params: Record<string, string>}> {
	let made = loaded.get(name);
	if (!made) {
		made = lazy(() => patiently(found[`./screens/${name}/index.tsx`]));
		loaded.set(name, made);
	}
	return made;
}

export const ROUTES = TABLE.filter((r) => exists(r.screen));
export const NAV = ROUTES.filter((r) => r.nav);

/** The row of a path and its parameters. */
export function match(path: string): {route: Route; params: Record<string, string>} | null {
	const parts = path.split('/');
	for (const route of ROUTES) {
		const wanted = route.path.split('/');
		const params: Record<string, string> = {};
		if (wanted.length === parts.length && wanted.every((w, i) => w.startsWith(':') ? parts[i] !== '' && (params[w.slice(1)] = decode(parts[i]), true) : w === parts[i]))
			return {route, params};
	}
	return null;
}

function decode(part: string): string {
	try {
		return decodeURIComponent(part);
	} catch {
		return part;
	}
}

/** Whether a link to that view leads anywhere: match('runs/x') of a screen that is not there is null. */
export function leads(path: string): boolean {
	return match(path.split('?')[0]) !== null;
}
