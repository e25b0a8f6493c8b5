// data.ts - what the screens of workflows read: the types of nodes, the graph of a run, what fits what.
import {useQuery} from '@tanstack/react-query';
import {Bot, Clock, CornerDownRight, Flag, FormInput, GitFork, Merge, Play, Repeat, ShieldQuestion, Shapes, Sparkles, SquareTerminal, type LucideIcon} from 'lucide-react';
import {useEffect, useState} from 'react';
import {Problem as Refusal, askJson} from '../../lib/api';
import {seconds, span} from '../../lib/format';
import {type Definition, type FlowNode, type PortRef, circle, edgesOf, keyOf, nameOf, nodesOf} from './doc';

export interface Port { name: string; type: string; many?: boolean; list?: boolean; required?: boolean; named?: boolean }
export interface NodeType { type: string; title: string; group: string; doc: string; config_schema: Record<string, any>; inputs: {port: string; type: string; many?: boolean}[]; outputs: {port: string; type: string}[]; ports_from: string | null }
export type Types = Map<string, NodeType>;
export interface Problem { severity: 'error' | 'warning'; code: string; pointer: string; node?: string; edge?: number; message: string; next_step?: string }
export interface Flow { workflow_id: string; title: string; description?: string; source: string; revision: string; version?: number; file?: string; nodes: number; edges: number; definition?: Definition }
export interface Child { subagent_id: string; session_id: string; run_id: string | null }
export interface Item { index: number; status: string; tool_call_id?: string; child?: Child; events?: {first: number; last: number}; error?: {category?: string; message?: string} }
export interface RunNode { id: string; type: string; title?: string; status: string; taken?: string[]; started_at?: string | number; ended_at?: string | number; events?: {first: number; last: number}; tool_call_id?: string; action_id?: string; child?: Child; output?: unknown; error?: {category?: string; message?: string}; adopted_from?: string; items?: {total: number; completed: number; failed: number; running: number; list: Item[]} }
export interface RunFlow { run_id: string; workflow_id: string; revision: string; status: string; through: number; workflow: Definition['workflow']; nodes: RunNode[]; edges: {index: number; taken: boolean | null}[] }

const LOOKS: Record<string, {Icon: LucideIcon; kind: string}> = {
	input: {Icon: Play, kind: 'plain'}, model: {Icon: Sparkles, kind: 'model'}, agent: {Icon: Bot, kind: 'sub'}, tool: {Icon: SquareTerminal, kind: 'tool'}, condition: {Icon: GitFork, kind: 'plain'}, loop: {Icon: Repeat, kind: 'plain'},
	form: {Icon: FormInput, kind: 'ask'}, approval: {Icon: ShieldQuestion, kind: 'ask'}, wait: {Icon: Clock, kind: 'wait'}, transform: {Icon: Shapes, kind: 'plain'}, join: {Icon: Merge, kind: 'plain'}, output: {Icon: Flag, kind: 'plain'},
};
export const lookOf = (type: string) => LOOKS[type] ?? {Icon: CornerDownRight, kind: 'plain'};
export const GROUPS: [string, string][] = [['think', 'Think'], ['act', 'Act'], ['decide', 'Decide'], ['repeat', 'Repeat and spread'], ['wait', 'Wait'], ['shape', 'Shape']];

export const useNodeTypes = () => useQuery({queryKey: ['workflows', 'types'], staleTime: Infinity, gcTime: Infinity,
	queryFn: async () => (await askJson<{node_types: NodeType[]}>('api/workflows-node-types')).node_types, select: (all): Types => new Map(all.map((t) => [t.type, t]))});
export const useFlows = () => useQuery({queryKey: ['workflows', 'list'], queryFn: () => askJson<{workflows: Flow[]}>('api/workflows')});
const pathOf = (id: string) => `api/workflows/${encodeURIComponent(id)}`;
export const useFlow = (id: string) => useQuery({queryKey: ['workflow', id], enabled: id !== '', refetchOnMount: 'always', queryFn: () => askJson<Flow & {definition: Definition}>(pathOf(id))});
export const useVersions = (id: string) => useQuery({queryKey: ['workflow', id, 'versions'], queryFn: () => askJson<{versions: {version: number; change: string; revision: string | null; at: string}[]; more: boolean}>(`${pathOf(id)}/versions`)});
export const versionOf = async (id: string, version: number) => (await askJson<{definition: Definition}>(`${pathOf(id)}?version=${version}`)).definition;
export const keep = (doc: Definition) => askJson<{workflow_id: string; version: number; revision: string; changed: boolean}>(pathOf(doc.id), {method: 'PUT', body: doc});
export const drop = (id: string) => askJson<unknown>(pathOf(id), {method: 'DELETE'});

/** The graph of a run; null where the run is of no workflow. */
export const useRunFlow = (id: string) => useQuery({queryKey: ['graph', id], enabled: id !== '', placeholderData: (old) => old,
	queryFn: () => askJson<RunFlow>(`api/runs/${encodeURIComponent(id)}/workflow`).catch((e) => { if (e instanceof Refusal && e.status === 404) return null; throw e; })});

/** What the server says of the document; the answer before stays until the next is there. */
export function useCheck(doc: Definition) {
	const [settled, settle] = useState(doc);
	useEffect(() => {
		const timer = setTimeout(() => settle(doc), 250);
		return () => clearTimeout(timer);
	}, [doc]);
	const query = useQuery({queryKey: ['workflow-check', settled], staleTime: Infinity, gcTime: 10000, placeholderData: (before) => before,
		queryFn: () => askJson<{good: boolean; problems: Problem[]}>('api/workflows-check', {body: {definition: settled}})});
	const problems = query.data?.problems ?? [];
	return {problems, errors: problems.filter((p) => p.severity === 'error'), error: query.error, ready: query.data !== undefined, current: settled === doc && !query.isFetching && !query.isPlaceholderData};
}

const JSON_TYPES: Record<string, string> = {string: 'text', integer: 'number', number: 'number', boolean: 'boolean', array: 'list', object: 'object'};
const WORDS: Record<string, [one: string, upper: string]> = {any: ['any value', 'Any value'], text: ['text', 'Text'], number: ['a number', 'A number'], boolean: ['yes or no', 'Yes or no'], list: ['a list', 'A list'], object: ['an object', 'An object']};
const said = (type: string) => WORDS[type] ?? [type, type];
export const typeWords = (p: Port) => said(p.type)[0];

const POINTER = /^\{\{\s*\/[^{}]*\}\}$/;
function typeOfTemplate(value: unknown): string {
	if (typeof value === 'string')
		return POINTER.test(value.trim()) ? 'any' : 'text';
	return Array.isArray(value) ? 'list' : value && typeof value === 'object' ? 'object' : typeof value === 'number' ? 'number' : typeof value === 'boolean' ? 'boolean' : 'any';
}

/** What the settings of a node make of a port that could give anything else. */
function typeOf(node: FlowNode, port: string, type: string): string {
	const c = node.config ?? {};
	if (port !== 'out')
		return type;
	if (node.type === 'model' || node.type === 'agent')
		return c.output === 'json' || c.on_error === 'continue' ? 'any' : type;
	if (node.type === 'transform')
		return typeOfTemplate(c.value);
	return type;
}

function given(doc: Definition | undefined): [string, string][] {
	const inputs = doc?.schemas?.inputs;
	if (!inputs)
		return [['message', 'text']];
	return Object.entries((inputs.properties ?? {}) as Record<string, any>).map(([name, s]) => [name, JSON_TYPES[Array.isArray(s?.type) ? '' : s?.type] ?? 'any']);
}

export function portsOf(types: Types, node: FlowNode, doc?: Definition): {inputs: Port[]; outputs: Port[]} {
	const t = types.get(node.type), make = (p: {port: string; type: string; many?: boolean}): Port => {
		const type = typeOf(node, p.port, p.type);
		return {name: p.port, type, many: p.many, list: type === 'list', named: p.port !== 'in' && p.port !== 'out'};
	};
	const outputs = (t?.outputs ?? []).map(make);
	if (t?.ports_from === 'inputs')
		outputs.push(...given(doc).filter(([name]) => !outputs.some((p) => p.name === name)).map(([name, type]) => ({name, type, list: type === 'list', named: true})));
	if (t?.ports_from === 'on_error' && node.config?.on_error === 'port' && !outputs.some((p) => p.name === 'error'))
		outputs.push({name: 'error', type: 'object', named: true});
	return {inputs: (t?.inputs ?? []).map(make), outputs};
}

/** Empty when the connection may be made, else why not. */
export function wouldFit(doc: Definition, types: Types, from: PortRef, to: PortRef): string {
	const a = nodesOf(doc).find((n) => n.id === from.node), b = nodesOf(doc).find((n) => n.id === to.node);
	const out = a && portsOf(types, a, doc).outputs.find((p) => p.name === from.port), into = b && portsOf(types, b, doc).inputs.find((p) => p.name === to.port);
	if (!a || !b || !out || !into)
		return 'There is no such port';
	if (edgesOf(doc).some((e) => keyOf(e) === keyOf({from, to})))
		return 'They are connected already';
	const round = circle(doc, a.id, b.id);
	if (round)
		return `It would go round in a circle: ${[a.id, ...round].map((id) => nameOf(nodesOf(doc).find((n) => n.id === id)!)).join(', ')}`;
	return out.type === 'any' || into.type === 'any' || out.type === into.type ? '' : `${said(out.type)[1]} does not fit ${said(into.type)[0]}`;
}

/** Is it the type alone that does not fit? */
export const wrongType = (why: string) => why.includes(' does not fit ');

/** What makes the type that is wanted of any value. */
export const BRIDGE: Record<string, unknown> = {list: ['{{/in}}'], object: {value: '{{/in}}'}, text: 'Text: {{/in}}'};

const short = (v: unknown, most = 60) => (typeof v === 'string' ? v : JSON.stringify(v) ?? '').split('\n')[0].slice(0, most);
export const typeName = (types: Types, type: string) => types.get(type)?.title ?? type;

/** The second line of a node: what it is set to do. */
export function aboutOf(types: Types, n: FlowNode): string {
	const c = n.config ?? {};
	switch (n.type) {
	case 'model': return c.model ?? (short(c.prompt) || 'no prompt yet');
	case 'agent': return c.agent ?? 'no agent yet';
	case 'tool': return c.tool ?? 'no tool yet';
	case 'condition': return ((c.all ?? c.any ?? []) as {pointer?: string; op?: string; value?: unknown}[]).map((t) => `${t.pointer ?? '?'} ${t.op ?? '?'} ${t.value === undefined ? '' : short(t.value, 20)}`.trim()).join(c.all ? ' and ' : ' or ') || 'no test yet';
	case 'loop': return `${c.do ?? '?'} for each${c.at_once ? `, ${c.at_once} at once` : ''}`;
	case 'form': case 'approval': return short(c.title) || 'asks a person';
	case 'wait': return c.seconds === undefined ? 'no time yet' : span(Number(c.seconds));
	case 'transform': return short(c.value) || 'no value yet';
	default: return typeName(types, n.type);
	}
}

export interface NodeState { look: string; word: string; say: string; said?: string; error?: string; node: RunNode }

const LOOK_OF: Record<string, [look: string, word: string, say: string]> = {pending: ['pending', 'pending', 'to come'], running: ['running', 'running', 'running'], waiting: ['waits', 'waiting_permission', 'waits for you'],
	completed: ['ok', 'completed', 'done'], failed: ['failed', 'failed', 'failed'], skipped: ['skipped', 'skipped', 'skipped'], cancelled: ['cancelled', 'cancelled', 'cancelled']};

export function stateOfNode(n: RunNode): NodeState {
	const [look, word, say] = n.status === 'waiting' && n.type === 'wait' ? ['running', 'waiting', 'waits'] : LOOK_OF[n.status] ?? ['pending', n.status, n.status];
	const took = n.started_at && n.ended_at ? seconds(n.ended_at) - seconds(n.started_at) : NaN, i = n.items;
	const parts = [i ? `${i.completed} of ${i.total}${i.failed ? `, ${i.failed} failed` : ''}${i.running ? `, ${i.running} at work` : ''}` : n.output !== undefined && look !== 'skipped' ? short(n.output) : '', Number.isFinite(took) && took > 0.05 ? span(took) : '', n.adopted_from ? 'from the attempt before' : ''];
	return {look, word, say, said: parts.filter(Boolean).join(' · ') || undefined, error: n.error?.message, node: n};
}

/** How a new node is set: as little as makes it whole, where that can be known. */
export const FIRST: Record<string, Record<string, unknown>> = {model: {prompt: '{{/in}}'}, condition: {all: [{pointer: '/in', op: 'exists'}]}, loop: {do: 'agent', with: {agent: 'echo', message: '{{/item}}'}}, approval: {title: 'May it go on?'}, wait: {seconds: 60}, transform: {value: '{{/in}}'},
	form: {title: 'What is missing?', schema: {type: 'object', required: ['answer'], properties: {answer: {type: 'string', title: 'Answer'}}}}};

/** A workflow that runs as it is, without a model. */
export function firstOf(id: string, title: string): Definition {
	return {version: '1.0', kind: 'agent', id, metadata: {title}, runtime: {entry: 'workflow.run'},
		schemas: {inputs: {type: 'object', required: ['message'], properties: {message: {type: 'string', title: 'Message'}}}},
		workflow: {nodes: [{id: 'start', type: 'input', title: 'Start', position: {x: 0, y: 0}}, {id: 'answer', type: 'agent', title: 'Answer', config: {agent: 'echo', message: '{{/in}}'}, position: {x: 0, y: 120}}, {id: 'end', type: 'output', title: 'End', position: {x: 0, y: 240}}],
			edges: [{from: {node: 'start', port: 'message'}, to: {node: 'answer', port: 'in'}}, {from: {node: 'answer', port: 'out'}, to: {node: 'end', port: 'in'}}]}};
}

/** Pointers to what a node may use: its input, the inputs of the run, what nodes before it gave. */
export function valuesFor(doc: Definition, types: Types, id: string): [pointer: string, words: string][] {
	const before = new Set<string>(), follow = (to: string): void => {
		for (const e of edgesOf(doc).filter((x) => x.to.node === to && !before.has(x.from.node))) {
			before.add(e.from.node);
			follow(e.from.node);
		}
	};
	follow(id);
	before.delete(id);
	return [['/in', 'what comes in'], ...given(doc).map(([name, type]): [string, string] => [`/inputs/${name}`, `input of the run, ${said(type)[0]}`]),
		...nodesOf(doc).filter((n) => before.has(n.id) && n.type !== 'input').flatMap((n) => portsOf(types, n, doc).outputs.map((p): [string, string] => [`/nodes/${n.id}/${p.name}`, `${nameOf(n)}, ${typeWords(p)}`]))];
}

/** What a node of the palette is called while it is dragged. */
export const DRAGGED = 'application/x-uar-node';
