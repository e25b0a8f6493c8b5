// Builder.tsx - a workflow on the canvas: palette, graph, settings, problems, versions; and its runs, live.
import {AlertTriangle, ChevronDown, CircleCheck, Ellipsis, OctagonX, Play, Plus, Redo2, Save, Undo2, X} from 'lucide-react';
import {lazy, Suspense, useEffect, useMemo, useRef, useState} from 'react';
import {useQuery} from '@tanstack/react-query';
import {A, Ago, Bones, Dialog, Menu, MenuItem, ProblemNote, Segment, State, Tabs, Top} from '../../components/ui';
import {Problem as Refusal, askJson} from '../../lib/api';
import {seconds} from '../../lib/format';
import {useMedia, useTitle} from '../../lib/hooks';
import {useShortcuts} from '../../lib/keys';
import {go, useFilter} from '../../lib/nav';
import {patiently} from '../../lib/patient';
import {client, useRun} from '../../lib/query';
import {download} from '../../lib/save';
import {complain, say, toast} from '../../lib/say';
import type {RunRecord} from '../../lib/types';
import {useFollow} from '../run/data';
import {AddDialog, ConnectDialog, Palette} from './Add';
import type {CanvasHandle} from './Canvas';
import {type Definition, type FlowEdge, type FlowNode, type Place, type PortRef, added, below, changed, connected, doubled, edgesOf, freeId, keyOf, moved, nameOf, nodesOf, placesOf, titleOf, useHistory, without} from './doc';
import {BRIDGE, FIRST, type Flow, type Problem, type Types, drop, keep, portsOf, typeName, useCheck, useFlow, useNodeTypes, useVersions, versionOf, wouldFit, wrongType} from './data';
import {FlowInspector, NodeInspector} from './Inspector';
import {LiveGraph, NodeList} from './Live';

const Canvas = lazy(() => patiently(() => import('./Canvas')));
const SchemaForm = lazy(() => patiently(() => import('../../components/SchemaForm')));
const NONE: string[] = [];

/** What was not saved yet, kept in this browser. */
const DRAFTS = 'uar.flow.draft.';
interface Draft { base: string; doc: Definition }
function draftOf(id: string): Draft | null {
	try {
		return JSON.parse(localStorage.getItem(DRAFTS + id) ?? 'null');
	} catch {
		return null;
	}
}
function keepDraft(id: string, draft: Draft | null): void {
	try {
		if (draft)
			localStorage.setItem(DRAFTS + id, JSON.stringify(draft));
		else
			localStorage.removeItem(DRAFTS + id);
	} catch {
		// the browser has no room: it is not kept
	}
}

const own = (flow: Flow) => flow.source === 'database' || flow.version !== undefined;

function Problems({problems, choose, ready}: {problems: Problem[]; ready: boolean; choose: (p: Problem) => void}) {
	if (!problems.length)
		return <p className="flow-none t2">{ready ? <><CircleCheck size={14} aria-hidden className="k-ok" />No problem.</> : 'Checking'}</p>;
	return <ul className="flow-problems" aria-label="Problems">{problems.map((p, i) => <li key={i}><button type="button" data-severity={p.severity} onClick={() => choose(p)}>{p.severity === 'error' ? <OctagonX size={14} className="k-err" aria-label="Error" /> : <AlertTriangle size={14} className="k-ask" aria-label="Warning" />}
		<span><span>{p.message}</span>{p.next_step && <span className="t2"> {p.next_step}</span>} <span className="mono f11 t3">{p.code}</span></span></button></li>)}</ul>;
}

function Versions({id, take}: {id: string; take: (version: number) => void}) {
	const {data, error} = useVersions(id);
	if (error || !data?.versions.length)
		return <p className="flow-none t2">{error ? 'The versions could not be read.' : data ? 'No version is kept yet.' : 'Reading'}</p>;
	return <ul className="flow-versions" aria-label="Versions">{data.versions.map((v, i) => <li key={v.version} className="item"><strong>v{v.version}</strong><span className="t2">{v.change === 'removed' ? 'removed' : i === 0 ? 'in use' : ''}</span><span className="grow f12 t3"><Ago at={seconds(v.at)} /></span>
		{v.change !== 'removed' && <button type="button" className="btn small" aria-label={`Edit version ${v.version}`} onClick={() => take(v.version)}>Edit this version</button>}</li>)}</ul>;
}

/** The input of a test: what was given before is there again. */
function Input({doc, run, close}: {doc: Definition; run: (inputs: unknown) => Promise<void>; close: () => void}) {
	const key = `uar.flow.input.${doc.id}`;
	const [busy, setBusy] = useState(false);
	const [wrong, setWrong] = useState<Refusal | null>(null);
	const first = useMemo(() => { try { return JSON.parse(localStorage.getItem(key) ?? 'null') ?? undefined; } catch { return undefined; } }, [key]);
	const schema = doc.schemas?.inputs ?? {type: 'object', required: ['message'], properties: {message: {type: 'string', title: 'Message'}}};
	return <Dialog title={`Run ${titleOf(doc)}`} close={close}><Suspense fallback={<Bones rows={2} />}><SchemaForm id="flow-input" open schema={schema} first={first} busy={busy} wrong={wrong} verb={busy ? 'Starting' : 'Run'} submit={(values) => {
		setBusy(true);
		setWrong(null);
		localStorage.setItem(key, JSON.stringify(values ?? {}));
		run(values ?? {}).catch((e) => {
			setBusy(false);
			if (e instanceof Refusal && e.where.startsWith('/inputs'))
				setWrong(new Refusal(e.status, e.code, e.message, e.where.replace('/inputs', '/payload')));
			else
				complain('It was not started', e);
		});
	}} /></Suspense></Dialog>;
}

/** Runs of the workflow, the newest first. */
function Runs({id, chosen, choose}: {id: string; chosen: string; choose: (run: string) => void}) {
	const {data} = useQuery({queryKey: ['runs', 'of workflow', id], queryFn: () => askJson<{runs: RunRecord[]}>(`api/runs?agent_id=${encodeURIComponent(id)}&limit=20`)});
	if (!data?.runs.length)
		return data ? <span className="t3 f12">No run yet</span> : null;
	return <Menu className="btn" button={<>{data.runs.find((r) => r.run_id === chosen) ? <>Run of <Ago at={data.runs.find((r) => r.run_id === chosen)!.created_at} /></> : 'Runs'}<ChevronDown size={13} aria-hidden /></>}>
		{data.runs.map((r) => <MenuItem key={r.run_id} onClick={() => choose(r.run_id)}><State status={r.status} engine={r.engine_status} /><span className="grow" /><Ago at={r.created_at} /></MenuItem>)}</Menu>;
}

function Watch({id}: {id: string}) {
	const run = useRun(id);
	useFollow(id, !!run.data && ['queued', 'running', 'cancel_requested'].includes(run.data.status));
	return <LiveGraph id={id} />;
}

const AS: Record<string, string> = {list: 'As a list', object: 'As an object', text: 'As text'};
interface Refused { from: PortRef; to: PortRef; why: string }

function Editor({flow, types, run, setRun}: {flow: Flow & {definition: Definition}; types: Types; run: string; setRun: (id: string) => void}) {
	const draft = useMemo(() => draftOf(flow.workflow_id), []); // eslint-disable-line
	const h = useHistory(draft?.doc ?? flow.definition), {doc} = h;
	const [saved, setSaved] = useState({text: JSON.stringify(flow.definition), revision: draft?.base ?? flow.revision, version: flow.version});
	const check = useCheck(doc);
	const [picked, pick] = useState<string[]>(NONE), [wires, pickWires] = useState<string[]>(NONE);
	const [open, setOpen] = useState<'' | 'add' | 'connect' | 'input' | 'remove' | 'copy'>('');
	const [panel, setPanel] = useState(false), [drawer, setDrawer] = useState<'problems' | 'versions'>('problems'), [shown, show] = useState(() => innerWidth > 1100);
	const [refused, refuse] = useState<Refused | null>(null);
	const [busy, setBusy] = useState('');
	const small = useMedia('(max-width: 640px)'), canvas = useRef<CanvasHandle>(null);
	const dirty = useMemo(() => JSON.stringify(doc) !== saved.text, [doc, saved.text]);
	const node = picked.length === 1 ? nodesOf(doc).find((n) => n.id === picked[0]) : undefined;
	const id = flow.workflow_id, mine = own(flow);
	useEffect(() => keepDraft(id, dirty ? {base: saved.revision, doc} : null), [doc, dirty, saved.revision, id]);
	useEffect(() => {
		if (draft && draft.base !== flow.revision)
			toast('wait', 'This draft is of an earlier version', 'The workflow was saved since. The menu takes the draft back.');
	}, []); // eslint-disable-line

	const done = (next: Definition, what: string, together?: string) => {
		h.change(next, what, together);
		if (!together)
			say(what);
	};
	const choose = (nodeId: string) => { pick(nodeId ? [nodeId] : NONE); pickWires(NONE); };
	const add = (type: string, at?: Place) => {
		const title = typeName(types, type), nodeId = freeId(doc, type === 'input' ? 'start' : type === 'output' ? 'end' : type);
		const again = /_(\d+)$/.exec(nodeId)?.[1];
		const fresh: FlowNode = {id: nodeId, type, title: again ? `${title} ${again}` : title, config: structuredClone(FIRST[type] ?? {}), position: at ?? below(doc, node?.id ?? '')};
		let next = added(doc, fresh), to = '';
		if (node && !at) {
			const into = portsOf(types, fresh, next).inputs;
			for (const p of portsOf(types, node, doc).outputs.filter((o) => o.name !== 'error'))
				for (const q of into)
					if (!to && wouldFit(next, types, {node: node.id, port: p.name}, {node: nodeId, port: q.name}) === '' && !(edgesOf(doc).some((e) => e.from.node === node.id && e.from.port === p.name) && portsOf(types, node, doc).outputs.length > 1)) {
						next = connected(next, {node: node.id, port: p.name}, {node: nodeId, port: q.name});
						to = nameOf(node);
					}
		}
		done(next, `${title} was added${to ? ` after ${to}` : ''}`);
		choose(nodeId);
		setTimeout(() => canvas.current?.focus(nodeId), 60);
	};
	const titleFor = (ref: PortRef) => { const n = nodesOf(doc).find((x) => x.id === ref.node); return n ? nameOf(n) : ref.node; };
	const connect = (from: PortRef, to: PortRef) => { refuse(null); done(connected(doc, from, to), `${titleFor(from)} is connected to ${titleFor(to)}`); };
	const deny = (from: PortRef, to: PortRef, why: string) => { refuse({from, to, why}); say(`Not connected: ${why}`); };
	/** A transform between the two makes what is wanted. */
	const bridge = (r: Refused) => {
		const b = nodesOf(doc).find((n) => n.id === r.to.node)!, want = portsOf(types, b, doc).inputs.find((p) => p.name === r.to.port)!.type;
		const nodeId = freeId(doc, 'transform');
		const next = added(doc, {id: nodeId, type: 'transform', title: AS[want] ?? 'Shape it', config: {value: BRIDGE[want] ?? '{{/in}}'}, position: below(doc, r.from.node)});
		refuse(null);
		done(connected(connected(next, r.from, {node: nodeId, port: 'in'}), {node: nodeId, port: 'out'}, r.to), 'A transform was put between');
	};
	const remove = () => {
		if (!picked.length && !wires.length)
			return;
		done(without(doc, new Set(picked), new Set(wires)), picked.length ? `${picked.length === 1 && node ? nameOf(node) : `${picked.length} nodes`} removed` : 'The connection was removed');
		choose('');
	};
	const double = () => {
		const [next, ids] = doubled(doc, picked);
		if (ids.length) {
			done(next, ids.length === 1 ? 'The node was doubled' : `${ids.length} nodes were doubled`);
			pick(ids);
		}
	};
	const undo = () => { const what = h.undo(); if (what) say(`Taken back: ${what}`); };
	const redo = () => { const what = h.redo(); if (what) say(`Done again: ${what}`); };
	const lead = (p: Problem) => {
		const at = p.node ?? (p.edge === undefined ? undefined : edgesOf(doc)[p.edge]?.from.node);
		if (p.edge !== undefined && edgesOf(doc)[p.edge]) {
			pick(NONE);
			pickWires([keyOf(edgesOf(doc)[p.edge])]);
		} else if (at) {
			choose(at);
		} else {
			setPanel(true);
		}
		if (at)
			setTimeout(() => canvas.current?.focus(at), 60);
	};
	const seen = useRef(-1);
	const nextProblem = () => {
		if (check.problems.length)
			lead(check.problems[seen.current = (seen.current + 1) % check.problems.length]);
	};

	/** True when the server has it. */
	const save = async (as = doc): Promise<boolean> => {
		setBusy('save');
		try {
			const now = as.id === id ? await askJson<Flow>(`api/workflows/${encodeURIComponent(id)}`) : null;
			if (now && now.revision !== saved.revision) {
				setSaved({...saved, revision: now.revision});
				toast('err', `It was saved elsewhere meanwhile${now.version ? `, as version ${now.version}` : ''}`, 'Nothing was overwritten. Save again to put this one on top; the other one stays among the versions.');
				return false;
			}
			const answer = await keep(as);
			setSaved({text: JSON.stringify(as), revision: answer.revision, version: answer.version});
			toast('ok', answer.changed === false ? `It says this already, in version ${answer.version}` : `Saved as version ${answer.version}`);
			say(`Saved as version ${answer.version}`);
			for (const name of ['workflows', 'workflow', 'agents'])
				void client.invalidateQueries({queryKey: [name], refetchType: name === 'workflow' ? 'none' : 'active'});
			void client.invalidateQueries({queryKey: ['workflow', id, 'versions']});
			if (as.id !== id) {
				keepDraft(id, null);
				go(`flows/${encodeURIComponent(as.id)}`);
			}
			return true;
		} catch (e) {
			complain('It was not saved', e);
			return false;
		} finally {
			setBusy('');
		}
	};
	const start = async (inputs: unknown) => {
		if (dirty && !(await save()))
			throw new Error('The workflow could not be saved first.');
		const made = await askJson<{run_id: string}>('api/runs', {body: {agent_id: id, inputs}});
		setOpen('');
		void client.invalidateQueries({queryKey: ['runs']});
		say('The run was started');
		setRun(made.run_id);
	};
	const canRun = check.errors.length === 0 && (mine || !dirty);
	useShortcuts([{keys: 'Ctrl S', does: 'Save', run: () => { if (dirty && !busy) void (mine ? save() : setOpen('copy')); }}, {keys: 'Ctrl Enter', does: 'Run with an input', run: () => { if (canRun) setOpen('input'); }},
		{keys: 'N', does: 'Add a node', run: () => setOpen('add')}, {keys: 'C', does: 'Connect the node', run: () => { if (node) setOpen('connect'); }}, {keys: 'Delete', does: 'Remove what is chosen', run: remove}, {keys: 'Backspace', does: 'Remove what is chosen', run: remove},
		{keys: 'Ctrl Z', does: 'Undo', run: undo, text: true, repeats: true}, {keys: 'Ctrl Shift Z', does: 'Redo', run: redo, text: true, repeats: true}, {keys: 'Ctrl D', does: 'Double', run: double, text: true},
		{keys: '1', does: 'Show the whole graph', run: () => canvas.current?.fit()}, {keys: 'E', does: 'Next problem', run: nextProblem}, {keys: 'Escape', does: 'Choose nothing', run: () => { choose(''); refuse(null); }}]);
	useClipboard(doc, picked, (next, ids) => { done(next, ids.length === 1 ? 'The node was put in' : `${ids.length} nodes were put in`); pick(ids); });

	const words = `${check.errors.length} ${check.errors.length === 1 ? 'error' : 'errors'}`, warnings = check.problems.length - check.errors.length;
	const acts = <><button type="button" className="btn quiet icon" aria-label="Undo" title={h.canUndo ? `Undo: ${h.canUndo} (Ctrl Z)` : 'Nothing to undo'} disabled={!h.canUndo} onClick={undo}><Undo2 size={15} aria-hidden /></button>
		<button type="button" className="btn quiet icon" aria-label="Redo" title={h.canRedo ? `Redo: ${h.canRedo} (Ctrl Shift Z)` : 'Nothing to redo'} disabled={!h.canRedo} onClick={redo}><Redo2 size={15} aria-hidden /></button></>;
	return <>
		<Top title={<><A className="t3 run-crumb" to="flows">Flows / </A>{titleOf(doc)}</>} about={<span className="badge flow-draft">{dirty ? `Draft${saved.version ? `, from v${saved.version}` : ''}` : saved.version ? `v${saved.version}` : flow.source}</span>}>
			{!small && acts}
			<span className="flow-wide"><Runs id={id} chosen={run} choose={setRun} /></span>
			<button type="button" className="btn flow-check" aria-pressed={shown && drawer === 'problems'} onClick={() => { show(!(shown && drawer === 'problems')); setDrawer('problems'); }}>
				{check.errors.length ? <OctagonX size={14} className="k-err" aria-hidden /> : <CircleCheck size={14} className="k-ok" aria-hidden />}<span>{check.errors.length ? words : 'No error'}</span>{warnings > 0 && <span className="t3 flow-wide">{warnings} {warnings === 1 ? 'warning' : 'warnings'}</span>}</button>
			<button type="button" className="btn" disabled={!canRun} title={canRun ? 'Run (Ctrl Enter)' : mine ? 'The errors must go first' : 'Save a copy first'} onClick={() => setOpen('input')}><Play size={13} aria-hidden />Run</button>
			<button type="button" className="btn main-act" disabled={!!busy || (mine ? !dirty || check.errors.length > 0 : false)} onClick={() => mine ? void save() : setOpen('copy')}><Save size={13} aria-hidden />{busy ? 'Saving' : mine ? 'Save' : 'Copy'}</button>
			<Menu label="More" button={<Ellipsis size={15} aria-hidden />}>
				<MenuItem onClick={() => setPanel(true)}>Settings of the workflow</MenuItem><MenuItem onClick={() => { done(moved(doc, placesOf(doc, true)), 'Put in order'); setTimeout(() => canvas.current?.fit(), 60); }}>Put in order</MenuItem>
				<MenuItem onClick={() => { show(true); setDrawer('versions'); }}>Versions</MenuItem><MenuItem onClick={() => download(`${id}.json`, JSON.stringify(doc, null, 2))}>Download as JSON</MenuItem><MenuItem onClick={() => setOpen('copy')}>Save a copy…</MenuItem>
				{dirty && <MenuItem onClick={() => { h.change(JSON.parse(saved.text), 'The draft was taken back'); say('The draft was taken back'); }}>Take the draft back</MenuItem>}
				{mine && <MenuItem onClick={() => setOpen('remove')}>Remove…</MenuItem>}</Menu>
		</Top>
		<div className="flow-grid" data-edit="" data-panel={node || panel ? '' : undefined}>
			{!small && <Palette types={types} add={add} />}
			<div className="flow-middle">
				{small ? <NodeList doc={doc} types={types} chosen={picked[0] ?? ''} choose={choose} />
					: <Suspense fallback={<Bones rows={4} />}><Canvas key={id} ref={canvas} name={`Workflow: ${nodesOf(doc).length} nodes, ${edgesOf(doc).length} connections`} doc={doc} types={types} problems={check.problems} picked={picked} pick={(ids) => { pick(ids); if (ids.length) pickWires(NONE); }} wires={wires} pickWires={(keys) => { pickWires(keys); }}
						edit={{move: (to) => h.change(moved(doc, to), 'Moved', `move ${[...to.keys()].join()}`), connect, drop: (type, at) => add(type, at), refuse: deny}}>
						<button type="button" className="btn flow-add" onClick={() => setOpen('add')}><Plus size={13} aria-hidden />Add <kbd>N</kbd></button></Canvas></Suspense>}
				{refused && <div className="flow-refused" role="alert"><OctagonX size={14} aria-hidden /><span className="grow">{refused.why}.</span>{wrongType(refused.why) && <button type="button" className="btn small" onClick={() => bridge(refused)}>Put a transform between</button>}<button type="button" className="btn quiet icon small" aria-label="Close" onClick={() => refuse(null)}><X size={13} aria-hidden /></button></div>}
				{small && <div className="flow-small">{acts}<button type="button" className="btn" onClick={() => setOpen('add')}><Plus size={13} aria-hidden />Add</button>{node && <button type="button" className="btn" onClick={() => setOpen('connect')}>Connect</button>}<Runs id={id} chosen={run} choose={setRun} /></div>}
				{shown && <section className="flow-drawer" aria-label="Problems and versions"><div className="row"><Tabs label="Below the graph" value={drawer} options={[['problems', `Problems ${check.problems.length}`], ['versions', 'Versions']]} set={setDrawer} /><span className="grow" /><button type="button" className="btn quiet icon" aria-label="Close the drawer" onClick={() => show(false)}><X size={14} aria-hidden /></button></div>
					<div className="scroll" tabIndex={-1}>{drawer === 'problems' ? check.error ? <ProblemNote what="It could not be checked" error={check.error} /> : <Problems problems={check.problems} ready={check.ready} choose={lead} />
						: <Versions id={id} take={(v) => void versionOf(id, v).then((d) => done(d, `Version ${v} was taken`), (e) => complain('The version could not be read', e))} />}</div></section>}
			</div>
			{node ? <NodeInspector doc={doc} types={types} node={node} problems={check.problems.filter((p) => p.node === node.id)} change={(patch, what, together) => done(changed(doc, node.id, patch), what, together)} cut={(e: FlowEdge) => done(without(doc, new Set(), new Set([keyOf(e)])), 'The connection was removed')} connect={() => setOpen('connect')} remove={remove} double={double} close={() => choose('')} />
				: panel ? <FlowInspector doc={doc} flow={{...flow, version: saved.version}} change={done} close={() => setPanel(false)} /> : null}
		</div>
		{open === 'add' && <AddDialog types={types} after={node ? nameOf(node) : ''} add={add} close={() => setOpen('')} />}
		{open === 'connect' && node && <ConnectDialog doc={doc} types={types} node={node} connect={connect} refuse={deny} close={() => setOpen('')} />}
		{open === 'input' && <Input doc={doc} run={start} close={() => setOpen('')} />}
		{open === 'copy' && <CopyDialog doc={doc} save={save} close={() => setOpen('')} />}
		{open === 'remove' && <Remove flow={flow} close={() => setOpen('')} />}
	</>;
}

/** Nodes as text: copied here, pasted into this or another workflow. */
function useClipboard(doc: Definition, picked: string[], put: (next: Definition, ids: string[]) => void): void {
	const now = useRef({doc, picked, put});
	now.current = {doc, picked, put};
	useEffect(() => {
		const free = (e: ClipboardEvent) => !(e.target as HTMLElement)?.closest?.('input, textarea, dialog');
		const copy = (e: ClipboardEvent) => {
			const {doc: d, picked: p} = now.current;
			if (!p.length || !free(e) || !getSelection()?.isCollapsed)
				return;
			e.preventDefault();
			e.clipboardData?.setData('text/plain', JSON.stringify({nodes: nodesOf(d).filter((n) => p.includes(n.id)), edges: edgesOf(d).filter((x) => p.includes(x.from.node) && p.includes(x.to.node))}));
			say(p.length === 1 ? 'The node was copied' : `${p.length} nodes were copied`);
		};
		const paste = (e: ClipboardEvent) => {
			if (!free(e))
				return;
			try {
				const w = JSON.parse(e.clipboardData?.getData('text/plain') ?? '') as Definition['workflow'];
				if (Array.isArray(w.nodes) && Array.isArray(w.edges) && w.nodes.length && w.nodes.every((n) => typeof n.id === 'string' && typeof n.type === 'string')) {
					e.preventDefault();
					const [next, ids] = doubled(now.current.doc, w.nodes.map((n) => n.id), {id: '', workflow: w});
					now.current.put(next, ids);
				}
			} catch {
				// some other text
			}
		};
		document.addEventListener('copy', copy);
		document.addEventListener('paste', paste);
		return () => { document.removeEventListener('copy', copy); document.removeEventListener('paste', paste); };
	}, []);
}

function CopyDialog({doc, save, close}: {doc: Definition; save: (as: Definition) => Promise<boolean>; close: () => void}) {
	const [name, set] = useState(`${doc.id}_copy`);
	const good = /^[A-Za-z0-9_-]{1,64}$/.test(name);
	return <Dialog title="Save a copy" close={close}><form className="field" onSubmit={(e) => { e.preventDefault(); if (good) void save({...doc, id: name, metadata: {...doc.metadata, title: `${titleOf(doc)}, copy`}}).then((ok) => { if (ok) close(); }); }}>
		<label htmlFor="flow-copy">Id of the copy</label><input id="flow-copy" className="input mono" data-first value={name} onChange={(e) => set(e.target.value)} />{!good && <p className="wrong">Letters, digits, _ and - alone.</p>}
		<div className="row"><button type="submit" className="btn main-act" disabled={!good}>Save the copy</button></div></form></Dialog>;
}

function Remove({flow, close}: {flow: Flow; close: () => void}) {
	return <Dialog title={`Remove ${flow.title || flow.workflow_id}?`} close={close}><p>It can no longer be started. Runs at work go on, and its versions stay.</p><div className="row"><button type="button" className="btn danger" onClick={() => void drop(flow.workflow_id).then(() => {
		keepDraft(flow.workflow_id, null);
		for (const n of ['workflows', 'workflow', 'agents'])
			void client.invalidateQueries({queryKey: [n]});
		toast('ok', 'Removed');
		go('flows');
	}, (e) => complain('It was not removed', e))}>Remove</button><button type="button" className="btn" onClick={close}>Keep it</button></div></Dialog>;
}

export default function Builder({id}: {id: string}) {
	const flow = useFlow(id), types = useNodeTypes();
	const [run, setRun] = useFilter('run');
	const [, setNode] = useFilter('node');
	const [first, setFirst] = useState<(Flow & {definition: Definition}) | null>(null);
	const record = useRun(run);
	useEffect(() => {
		setFirst(null);
		if (!run)
			void flow.refetch({cancelRefetch: false});
	}, [run, id]); // eslint-disable-line
	useEffect(() => { // what is being edited is not changed under the hand
		if (!run && !first && flow.data && !flow.isFetching)
			setFirst(flow.data);
	}, [run, first, flow.data, flow.isFetching]);
	useTitle(flow.data ? `${flow.data.title || id} · Flows` : 'Flows');
	if (flow.error || types.error)
		return <><Top title="Flows" /><div className="page"><ProblemNote what="This workflow could not be read" error={flow.error ?? types.error} retry={() => { void flow.refetch(); void types.refetch(); }} /><p><A className="btn" to="flows">All workflows</A></p></div></>;
	if (run)
		return <><Top title={<><A className="t3 run-crumb" to="flows">Flows / </A>{flow.data?.title || id}</>} about={record.data && <State status={record.data.status} engine={record.data.engine_status} />}>
			<Segment label="Edit or watch" value="run" options={[['edit', 'Edit'], ['run', 'Run']]} set={(v) => { if (v === 'edit') go(`flows/${encodeURIComponent(id)}`, {replace: true}); }} /><span className="flow-wide"><Runs id={id} chosen={run} choose={(r) => { setNode(''); setRun(r); }} /></span><A className="btn" to={`runs/${run}`}>The run</A></Top>
		<Watch key={run} id={run} /></>;
	if (!first || !types.data)
		return <><Top title="Flows" /><div className="page"><Bones rows={5} /></div></>;
	return <Editor key={first.workflow_id} flow={first} types={types.data} run={run} setRun={setRun} />;
}
