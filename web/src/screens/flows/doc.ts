// doc.ts - a workflow as a document, and its changes: each gives a new document, so that undo is the one before.
import {useCallback, useRef, useState} from 'react';

export interface PortRef { node: string; port: string }
export interface Place { x: number; y: number }
export interface FlowNode { id: string; type: string; title?: string; config?: Record<string, any>; position?: Place; [more: string]: unknown }
export interface FlowEdge { from: PortRef; to: PortRef; [more: string]: unknown }
export interface Definition { id: string; metadata?: {title?: string; description?: string; [more: string]: unknown}; schemas?: {inputs?: Record<string, any>; outputs?: Record<string, any>}; workflow: {nodes: FlowNode[]; edges: FlowEdge[]; [more: string]: unknown}; [more: string]: unknown }

export const NODE_WIDTH = 232;
const ROW = 132, COLUMN = 264, STEP = 12; // px: from row to row, from column to column, of the grid

export const nodesOf = (d: Definition) => d.workflow?.nodes ?? [];
/** A port may be left out. */
export const edgesOf = (d: Definition): FlowEdge[] => (d.workflow?.edges ?? []).map((e) => e.from.port && e.to.port ? e : {...e, from: {...e.from, port: e.from.port || 'out'}, to: {...e.to, port: e.to.port || 'in'}});
export const keyOf = (e: FlowEdge) => `${e.from.node}.${e.from.port}>${e.to.node}.${e.to.port}`;
export const nameOf = (n: FlowNode) => n.title || n.id;
export const titleOf = (d: Definition) => d.metadata?.title || d.id;

function graph(d: Definition, nodes: FlowNode[], edges = edgesOf(d)): Definition {
	return {...d, workflow: {...d.workflow, nodes, edges}};
}

/** model, model_2, model_3 … */
export function freeId(d: Definition, wanted: string): string {
	const taken = new Set(nodesOf(d).map((n) => n.id)), stem = wanted.replace(/_\d+$/, '');
	for (let i = 1; ; i++) {
		const id = i === 1 ? stem : `${stem}_${i}`;
		if (!taken.has(id))
			return id;
	}
}

export const added = (d: Definition, node: FlowNode) => graph(d, [...nodesOf(d), node]);

export const changed = (d: Definition, id: string, patch: Partial<FlowNode>) => graph(d, nodesOf(d).map((n) => n.id === id ? tidy({...n, ...patch}) : n));

/** Members without a value are left out. */
function tidy<T extends object>(value: T): T {
	return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined && v !== '')) as T;
}

export const connected = (d: Definition, from: PortRef, to: PortRef): Definition => edgesOf(d).some((e) => keyOf(e) === keyOf({from, to})) ? d : graph(d, nodesOf(d), [...edgesOf(d), {from, to}]);

export function without(d: Definition, nodes: Set<string>, edges: Set<string> = new Set()): Definition {
	return graph(d, nodesOf(d).filter((n) => !nodes.has(n.id)), edgesOf(d).filter((e) => !edges.has(keyOf(e)) && !nodes.has(e.from.node) && !nodes.has(e.to.node)));
}

export const moved = (d: Definition, to: Map<string, Place>) => graph(d, nodesOf(d).map((n) => to.has(n.id) ? {...n, position: {x: Math.round(to.get(n.id)!.x), y: Math.round(to.get(n.id)!.y)}} : n));

/** Nodes once more, with the connections among them. */
export function doubled(d: Definition, ids: string[], source = d): [Definition, string[]] {
	const names = new Map<string, string>(), places = placesOf(source);
	let next = d;
	for (const n of nodesOf(source).filter((x) => ids.includes(x.id))) {
		const id = freeId(next, n.id), at = places.get(n.id)!;
		names.set(n.id, id);
		next = added(next, {...structuredClone(n), id, position: {x: at.x + 3 * STEP, y: at.y + 3 * STEP}});
	}
	for (const e of edgesOf(source))
		if (names.has(e.from.node) && names.has(e.to.node))
			next = connected(next, {...e.from, node: names.get(e.from.node)!}, {...e.to, node: names.get(e.to.node)!});
	return [next, [...names.values()]];
}

/** How far from a beginning each node is; those of a circle come last. */
function ranks(d: Definition): Map<string, number> {
	const rank = new Map<string, number>(), open = new Map(nodesOf(d).map((n) => [n.id, 0]));
	for (const e of edgesOf(d))
		if (open.has(e.to.node) && open.has(e.from.node))
			open.set(e.to.node, open.get(e.to.node)! + 1);
	const ready = [...open].filter(([, n]) => n === 0).map(([id]) => id);
	ready.forEach((id) => rank.set(id, 0));
	for (let id = ready.shift(); id !== undefined; id = ready.shift())
		for (const e of edgesOf(d).filter((x) => x.from.node === id && open.has(x.to.node))) {
			rank.set(e.to.node, Math.max(rank.get(e.to.node) ?? 0, rank.get(id)! + 1));
			open.set(e.to.node, open.get(e.to.node)! - 1);
			if (open.get(e.to.node) === 0)
				ready.push(e.to.node);
		}
	const last = Math.max(-1, ...rank.values()) + 1;
	return new Map(nodesOf(d).map((n) => [n.id, open.get(n.id) === 0 ? rank.get(n.id) ?? 0 : last]));
}

/** Where each node is: where it was put, else below those that lead to it. */
export function placesOf(d: Definition, anew = false): Map<string, Place> {
	const rank = ranks(d), rows = new Map<number, string[]>();
	for (const n of nodesOf(d))
		rows.set(rank.get(n.id)!, [...rows.get(rank.get(n.id)!) ?? [], n.id]);
	return new Map(nodesOf(d).map((n) => {
		const row = rows.get(rank.get(n.id)!)!;
		return [n.id, !anew && n.position ? n.position : {x: (row.indexOf(n.id) - (row.length - 1) / 2) * COLUMN, y: rank.get(n.id)! * ROW}];
	}));
}

/** Along the flow: what comes first stands first. */
export function inOrder(d: Definition): FlowNode[] {
	const rank = ranks(d), at = placesOf(d);
	return [...nodesOf(d)].sort((a, b) => rank.get(a.id)! - rank.get(b.id)! || at.get(a.id)!.x - at.get(b.id)!.x);
}

/** The nodes of the circle that a connection would close. */
export function circle(d: Definition, from: string, to: string): string[] | null {
	const seen = new Set<string>();
	const way = (id: string): string[] | null => {
		if (id === from)
			return [id];
		if (seen.has(id))
			return null;
		seen.add(id);
		for (const e of edgesOf(d).filter((x) => x.from.node === id)) {
			const rest = way(e.to.node);
			if (rest)
				return [id, ...rest];
		}
		return null;
	};
	return way(to);
}

/** A place below a node where no other one is. */
export function below(d: Definition, id: string): Place {
	const places = placesOf(d), own = places.get(id) ?? [...places.values()].sort((a, b) => b.y - a.y)[0] ?? {x: 0, y: -ROW};
	for (let column = 0; ; column++) {
		const at = {x: own.x + column * COLUMN, y: own.y + ROW};
		if (![...places.values()].some((p) => Math.abs(p.x - at.x) < NODE_WIDTH && Math.abs(p.y - at.y) < ROW - STEP))
			return at;
	}
}

const KEPT = 200; // steps that can be taken back

export interface History { doc: Definition; change: (next: Definition, what: string, together?: string) => void; undo: () => string; redo: () => string; canUndo: string; canRedo: string; reset: (doc: Definition) => void; steps: number }

/** What was done, to take back. Steps with the same `together` that follow each other at once are one. */
export function useHistory(first: Definition): History {
	const [state, set] = useState({before: [] as {doc: Definition; what: string}[], doc: first, after: [] as {doc: Definition; what: string}[]});
	const now = useRef(state), last = useRef({key: '', at: 0});
	const put = useCallback((next: typeof state) => { now.current = next; set(next); }, []);
	return {
		doc: state.doc, steps: state.before.length, canUndo: state.before.at(-1)?.what ?? '', canRedo: state.after.at(-1)?.what ?? '',
		change: (doc, what, together = '') => {
			const s = now.current, joins = together !== '' && together === last.current.key && Date.now() - last.current.at < 1500 && s.before.length > 0;
			if (doc === s.doc)
				return;
			last.current = {key: together, at: Date.now()};
			put({before: joins ? s.before : [...s.before, {doc: s.doc, what}].slice(-KEPT), doc, after: []});
		},
		undo: () => {
			const s = now.current, step = s.before.at(-1);
			last.current.key = '';
			if (step)
				put({before: s.before.slice(0, -1), doc: step.doc, after: [...s.after, {doc: s.doc, what: step.what}]});
			return step?.what ?? '';
		},
		redo: () => {
			const s = now.current, step = s.after.at(-1);
			last.current.key = '';
			if (step)
				put({before: [...s.before, {doc: s.doc, what: step.what}], doc: step.doc, after: s.after.slice(0, -1)});
			return step?.what ?? '';
		},
		reset: (doc) => { last.current.key = ''; put({before: [], doc, after: []}); },
	};
}
