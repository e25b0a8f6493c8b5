// Live.tsx - a run of a workflow: the graph as the run uses it, the state of each node from the log, and one node
// with its events, its child run, its items and its question.
import {X} from 'lucide-react';
import {lazy, Suspense, useMemo, useRef} from 'react';
import {Ask} from '../../components/Ask';
import {Facts} from '../../components/Split';
import {A, Ago, Bones, CopyButton, Empty, ProblemNote, State} from '../../components/ui';
import {plain, pretty, seconds, span} from '../../lib/format';
import {useMedia} from '../../lib/hooks';
import {useShortcuts} from '../../lib/keys';
import {useFilter} from '../../lib/nav';
import {patiently} from '../../lib/patient';
import {useActions} from '../../lib/query';
import type {CanvasHandle} from './Canvas';
import {type Definition, inOrder, nameOf} from './doc';
import {type Item, type NodeState, type RunFlow, type RunNode, type Types, aboutOf, lookOf, stateOfNode, typeName, useNodeTypes, useRunFlow} from './data';
import './flows.css';

const Canvas = lazy(() => patiently(() => import('./Canvas')));
const NONE: string[] = [];

/** A run of its own, or, until it is over, its conversation. */
function ChildLink({child, of}: {child: {session_id: string; run_id: string | null}; of: string}) {
	return child.run_id ? <A className="link" to={`runs/${child.run_id}`} aria-label={`Run of ${of}`}>Its run</A> : <A className="link" to={`c/${child.session_id}`} aria-label={`Conversation of ${of}`}>Its conversation</A>;
}

const Events = ({run, events}: {run: string; events: {first: number; last: number}}) => <A className="link mono" to={`runs/${run}?e=${events.first}`}>#{events.first}{events.last > events.first ? ` to #${events.last}` : ''}</A>;

function Items({run, items}: {run: string; items: NonNullable<RunNode['items']>}) {
	const row = (i: Item) => <li key={i.index} className="item" data-item={i.index}><span className="num t3">{i.index + 1}</span><span className="grow"><State status={i.status} />{i.error?.message && <span className="block f12 k-err">{plain(i.error.message)}</span>}</span>
		{i.child && <ChildLink child={i.child} of={`item ${i.index + 1}`} />}{i.events && <Events run={run} events={i.events} />}</li>;
	return <section><h3 className="f12">{items.completed} of {items.total} done{items.failed ? `, ${items.failed} failed` : ''}</h3><ul className="card" aria-label="Items">{items.list.map(row)}</ul></section>;
}

function Question({id}: {id: string}) {
	const action = useActions().data?.actions.find((a) => a.action_id === id);
	return action ? <Ask action={action} state="pending" over={false} /> : <p className="f12">A question waits: <A className="link" to={`inbox?action=${encodeURIComponent(id)}`}>answer it in the inbox</A>.</p>;
}

function NodePanel({run, n, doc, types, close}: {run: RunFlow; n: RunNode; doc: Definition; types: Types; close: () => void}) {
	const state = stateOfNode(n), {Icon, kind} = lookOf(n.type), own = doc.workflow.nodes.find((x) => x.id === n.id);
	const took = n.started_at && n.ended_at ? seconds(n.ended_at) - seconds(n.started_at) : NaN;
	const out = n.output === undefined ? '' : pretty(n.output);
	return <aside className="flow-panel" aria-label={`Node ${n.title || n.id}`}><header><span className="flow-icon" data-kind={kind}><Icon size={16} aria-hidden /></span><b className="cut grow">{plain(n.title || n.id)}</b><State status={state.word} />
		<button type="button" className="btn quiet icon" aria-label="Close the node" title="Close (Escape)" onClick={close}><X size={15} aria-hidden /></button></header>
	<div className="flow-panel-body scroll">
		{n.action_id && <Question id={n.action_id} />}
		{n.error && <div className="problem" role="note"><strong>It failed</strong><span>{plain(n.error.message ?? '')}</span><span className="mono f11 t3">{n.error.category}</span></div>}
		<Facts rows={[['What it is', typeName(types, n.type)], ['Set to', own && aboutOf(types, own)], ['Started', n.started_at ? <Ago at={seconds(n.started_at)} /> : ''], ['Took', Number.isFinite(took) ? span(Math.max(0, took)) : ''], ['Went on by', n.taken?.length && (n.taken.length > 1 || n.taken[0] !== 'out') ? n.taken.join(', ') : ''],
			['Events', n.events && <Events run={run.run_id} events={n.events} />], ['Child run', n.child && <ChildLink child={n.child} of={n.title || n.id} />], ['Taken from', n.adopted_from && <A className="link" to={`runs/${n.adopted_from}/graph?node=${encodeURIComponent(n.id)}`}>the attempt before</A>]]} />
		{n.items && <Items run={run.run_id} items={n.items} />}
		{out && <section><div className="part-head"><h3 className="f12">What it gave</h3><span className="grow" /><CopyButton text={out} /></div><pre className="json" tabIndex={0}>{plain(out)}</pre></section>}
	</div></aside>;
}

/** The same as a list, along the flow: for a phone, and for who prefers to read. */
export function NodeList({doc, types, states, chosen, choose}: {doc: Definition; types: Types; states?: Map<string, NodeState>; chosen: string; choose: (id: string) => void}) {
	return <div className="scroll"><ol className="flow-list" aria-label="Nodes">{inOrder(doc).map((n) => {
		const {Icon, kind} = lookOf(n.type), state = states?.get(n.id);
		return <li key={n.id}><button type="button" className="item" aria-current={n.id === chosen ? 'true' : undefined} data-state={state?.look} onClick={() => choose(n.id)}><span className="flow-icon" data-kind={kind}><Icon size={16} aria-hidden /></span>
			<span className="grow"><span className="strong cut">{plain(nameOf(n))}</span><span className={`f12 cut ${state?.error ? 'k-err' : 't3'}`}>{plain(state?.error ?? state?.said ?? aboutOf(types, n))}</span></span>{state && <State status={state.word} />}</button></li>;
	})}</ol></div>;
}

/** How many are in which state, in words. */
function Counts({run}: {run: RunFlow}) {
	const of = (...all: string[]) => run.nodes.filter((n) => all.includes(n.status)).length;
	const parts: [number, string][] = [[of('completed'), 'done'], [of('running'), 'at work'], [of('waiting'), 'waiting'], [of('failed'), 'failed'], [of('skipped'), 'skipped'], [of('cancelled'), 'cancelled'], [of('pending'), 'to come']];
	return <p className="flow-counts f12 t2" role="status">{parts.filter(([n]) => n > 0).map(([n, word]) => `${n} ${word}`).join(', ')}</p>;
}

export function LiveGraph({id}: {id: string}) {
	const {data: run, error, isPending, refetch} = useRunFlow(id), types = useNodeTypes();
	const [chosen, choose] = useFilter('node');
	const small = useMedia('(max-width: 640px)'), canvas = useRef<CanvasHandle>(null);
	const doc = useMemo((): Definition | null => run ? {id: run.workflow_id, workflow: run.workflow} : null, [run?.revision, run?.run_id]); // eslint-disable-line
	const states = useMemo(() => new Map((run?.nodes ?? []).map((n) => [n.id, stateOfNode(n)])), [run]);
	const picked = useMemo(() => chosen ? [chosen] : NONE, [chosen]);
	useShortcuts([{keys: '1', does: 'Show the whole graph', run: () => canvas.current?.fit()}, {keys: 'Escape', does: 'Close the node', run: () => choose('')},
		{keys: 'W', does: 'Next node that waits or failed', run: () => {
			const all = (run?.nodes ?? []).filter((n) => n.status === 'waiting' || n.status === 'failed'), next = all[(all.findIndex((n) => n.id === chosen) + 1) % Math.max(1, all.length)];
			if (next) {
				choose(next.id);
				canvas.current?.focus(next.id);
			}
		}}]);
	if (error || types.error)
		return <div className="page"><ProblemNote what="The graph of the run could not be read" error={error ?? types.error} retry={() => void refetch()} /></div>;
	if (isPending || !types.data)
		return <div className="page"><Bones rows={4} /></div>;
	if (!run || !doc)
		return <Empty title="This run is of no workflow"><A className="btn" to={`runs/${id}`}>The run</A></Empty>;
	const node = run.nodes.find((n) => n.id === chosen);
	return <div className="flow-grid" data-panel={node ? '' : undefined}><div className="flow-middle"><Counts run={run} />
		{small ? <NodeList doc={doc} types={types.data} states={states} chosen={chosen} choose={choose} />
			: <Suspense fallback={<Bones rows={4} />}><Canvas key={run.run_id} ref={canvas} name={`Graph of the run: ${run.nodes.length} nodes`} doc={doc} types={types.data} states={states} picked={picked} pick={(ids) => choose(ids.at(-1) ?? '')} wires={NONE} pickWires={() => {}}
				answer={(n) => <p className="flow-said"><button type="button" className="btn small nodrag" onClick={(e) => { e.stopPropagation(); choose(n); }}>Answer here</button></p>} /></Suspense>}</div>
	{node && <NodePanel key={node.id} run={run} n={node} doc={doc} types={types.data} close={() => choose('')} />}</div>;
}
