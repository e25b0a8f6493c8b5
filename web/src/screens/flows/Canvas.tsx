// Canvas.tsx - the graph: nodes with ports, connections between them. The same to edit and to watch. It is a part
// of its own, loaded with the first workflow that is opened.
import {Background, BackgroundVariant, Handle, MiniMap, Position, ReactFlow, ReactFlowProvider, ViewportPortal, applyNodeChanges, useConnection, useReactFlow, type Connection, type Edge, type FinalConnectionState, type Node, type NodeChange, type NodeProps, type Viewport} from '@xyflow/react';
import '@xyflow/react/dist/base.css';
import {AlertTriangle, Minus, OctagonX, Plus} from 'lucide-react';
import {createContext, memo, type ReactNode, useContext, useEffect, useImperativeHandle, useMemo, useRef, useState, type Ref} from 'react';
import {State} from '../../components/ui';
import {plain} from '../../lib/format';
import {type Definition, type FlowNode, type Place, type PortRef, edgesOf, inOrder, keyOf, nameOf, placesOf} from './doc';
import {DRAGGED, type NodeState, type Port, type Problem, type Types, aboutOf, lookOf, portsOf, typeName, typeWords, wouldFit} from './data';



interface Data extends Record<string, unknown> { node: FlowNode; inputs: Port[]; outputs: Port[]; problems: Problem[]; state?: NodeState; about: string; label: string; edit: boolean }
type Box = Node<Data, 'box'>;

const Act = createContext<{answer?: (id: string) => ReactNode}>({});

function Ports({ports, kind, edit}: {ports: Port[]; kind: 'target' | 'source'; edit: boolean}) {
	return <>{ports.map((p, i) => <Handle key={p.name} id={p.name} type={kind} position={kind === 'target' ? Position.Top : Position.Bottom} isConnectable={edit} className="flow-port" data-list={p.list ? '' : undefined} data-needed={p.required ? '' : undefined}
		title={`${p.name}: ${typeWords(p)}${p.required ? ', needed' : ''}`} style={{left: `${(i + 1) / (ports.length + 1) * 100}%`}}>{ports.length > 1 || p.named ? <span className="flow-port-name">{p.name}</span> : null}</Handle>)}</>;
}

const BoxView = memo(function BoxView({data, selected}: NodeProps<Box>) {
	const {node, state, problems} = data, {Icon, kind} = lookOf(node.type), worst = problems.find((p) => p.severity === 'error') ?? problems[0];
	const {answer} = useContext(Act);
	return <div className="flow-box" data-kind={kind} data-on={selected ? '' : undefined} data-state={state?.look} data-wrong={worst?.severity}>
		<Ports ports={data.inputs} kind="target" edit={data.edit} />
		<span className="flow-icon"><Icon size={15} aria-hidden /></span><b className="cut">{plain(nameOf(node))}</b>
		<span className="flow-mark">{state ? <State status={state.word} bare={['ok', 'pending', 'skipped'].includes(state.look)} /> : worst ? worst.severity === 'error' ? <OctagonX size={14} className="k-err" aria-hidden /> : <AlertTriangle size={14} className="k-ask" aria-hidden /> : null}</span>
		<small className="cut">{state?.said ? plain(state.said) : data.about}</small>
		{state?.error && <p className="flow-said" data-bad>{plain(state.error)}</p>}
		{answer && state?.look === 'waits' && answer(node.id)}
		<Ports ports={data.outputs} kind="source" edit={data.edit} />
	</div>;
});
const NODES = {box: BoxView};

export interface CanvasHandle { fit: () => void; focus: (id: string) => void; centre: () => Place }

export interface CanvasProps {
	doc: Definition; types: Types; picked: string[]; pick: (ids: string[]) => void; wires: string[]; pickWires: (keys: string[]) => void; name: string; ref?: Ref<CanvasHandle>;
	problems?: Problem[]; states?: Map<string, NodeState>; answer?: (id: string) => ReactNode;
	edit?: {move: (to: Map<string, Place>) => void; connect: (from: PortRef, to: PortRef) => void; drop: (type: string, at: Place) => void; refuse: (from: PortRef, to: PortRef, why: string) => void};
	children?: ReactNode;
}

/** What a person hears of a node: kind, name, state, what leads to it and from it. */
function labelOf(doc: Definition, types: Types, n: FlowNode, problems: Problem[], state?: NodeState): string {
	const names = new Map(doc.workflow.nodes.map((x) => [x.id, nameOf(x)]));
	const to = edgesOf(doc).filter((e) => e.from.node === n.id).map((e) => names.get(e.to.node) ?? e.to.node), from = edgesOf(doc).filter((e) => e.to.node === n.id).map((e) => names.get(e.from.node) ?? e.from.node);
	return [`${typeName(types, n.type)}: ${nameOf(n)}`, state ? state.say : '', from.length ? `after ${from.join(', ')}` : '', to.length ? `leads to ${to.join(', ')}` : 'leads nowhere', problems.length ? `${problems.length} ${problems.length === 1 ? 'problem' : 'problems'}: ${problems[0].message}` : ''].filter(Boolean).join('. ');
}

/** While a connection is drawn: why it does not fit what is under the pointer. */
function Tip({doc, types}: {doc: Definition; types: Types}) {
	const c = useConnection();
	if (!c.inProgress || !c.toHandle || !c.fromHandle || c.isValid)
		return null;
	const [from, to] = c.fromHandle.type === 'source' ? [c.fromHandle, c.toHandle] : [c.toHandle, c.fromHandle];
	const why = wouldFit(doc, types, {node: from.nodeId, port: from.id ?? ''}, {node: to.nodeId, port: to.id ?? ''});
	return why ? <ViewportPortal><div className="flow-tip" role="status" style={{transform: `translate(${c.to.x + 14}px, ${c.to.y - 60}px)`}}><b><OctagonX size={13} aria-hidden />{why}</b></div></ViewportPortal> : null;
}

const viewKey = (id: string) => `uar.flow.view.${id}`;
function viewOf(id: string): Viewport | undefined {
	try {
		return JSON.parse(sessionStorage.getItem(viewKey(id)) ?? 'null') ?? undefined;
	} catch {
		return undefined;
	}
}

const edgeLook = (states: Map<string, NodeState> | undefined, from: string, to: string) => {
	if (!states)
		return undefined;
	const a = states.get(from)?.look, b = states.get(to)?.look;
	return b === 'skipped' || a === 'skipped' ? 'skipped' : !a || a === 'pending' || !b || b === 'pending' ? 'pending' : b === 'running' || b === 'waits' ? 'live' : a === 'failed' ? 'failed' : 'done';
};

function Graph({doc, types, picked, pick, wires, pickWires, name, problems, states, edit, answer, children, ref}: CanvasProps) {
	const flow = useReactFlow();
	const box = useRef<HTMLDivElement>(null);
	const [kept] = useState(() => viewOf(`${doc.id}${edit ? '' : '.run'}`));
	const made = useMemo(() => {
		const at = placesOf(doc);
		return inOrder(doc).map((node): Box => {
			const own = (problems ?? []).filter((p) => p.node === node.id), state = states?.get(node.id);
			return {id: node.id, type: 'box', position: at.get(node.id)!, draggable: !!edit, selected: picked.includes(node.id), ariaRole: 'group', ariaLabel: labelOf(doc, types, node, own, state), domAttributes: {'aria-roledescription': undefined} as any,
				data: {node, ...portsOf(types, node, doc), problems: own, state, edit: !!edit, label: nameOf(node), about: aboutOf(types, node)}};
		});
	}, [doc, types, problems, states, edit !== undefined, picked]);
	const [drawn, draw] = useState<Box[]>(made);
	useEffect(() => draw((before) => {
		const old = new Map(before.map((n) => [n.id, n.measured]));
		return made.map((n) => ({...n, measured: old.get(n.id)}));
	}), [made]);
	const edges = useMemo(() => edgesOf(doc).map((e): Edge => ({id: keyOf(e), source: e.from.node, sourceHandle: e.from.port, target: e.to.node, targetHandle: e.to.port, focusable: false, selected: wires.includes(keyOf(e)), className: `flow-edge ${edgeLook(states, e.from.node, e.to.node) ?? ''}`, interactionWidth: 24})), [doc, wires, states]);
	useImperativeHandle(ref, () => ({
		fit: () => void flow.fitView({padding: 0.15, maxZoom: 1}),
		focus: (id) => {
			const n = flow.getNode(id), on = box.current?.querySelector<HTMLElement>(`.react-flow__node[data-id="${CSS.escape(id)}"]`), r = on?.getBoundingClientRect(), c = box.current?.getBoundingClientRect();
			if (n && r && c && (r.left < c.left || r.right > c.right || r.top < c.top || r.bottom > c.bottom))
				void flow.setCenter(n.position.x + r.width / flow.getZoom() / 2, n.position.y + r.height / flow.getZoom() / 2, {zoom: Math.max(flow.getZoom(), 0.6)});
			on?.focus();
		},
		centre: () => {
			const r = box.current!.getBoundingClientRect();
			return flow.screenToFlowPosition({x: r.left + r.width / 2, y: r.top + r.height / 2});
		},
	}));
	const onNodes = (changes: NodeChange<Box>[]) => {
		draw((before) => applyNodeChanges(changes.filter((c) => c.type !== 'select' && c.type !== 'remove'), before));
		const chosen = changes.filter((c) => c.type === 'select');
		if (chosen.length)
			pick([...new Set([...picked.filter((id) => !chosen.some((c) => c.id === id && !c.selected)), ...chosen.filter((c) => c.selected).map((c) => c.id)])]);
		const over = changes.flatMap((c) => c.type === 'position' && c.position && !c.dragging ? [[c.id, c.position] as [string, Place]] : []);
		if (over.length)
			edit?.move(new Map(over));
	};
	const ends = (c: Connection | Edge): [PortRef, PortRef] => [{node: c.source, port: c.sourceHandle ?? ''}, {node: c.target, port: c.targetHandle ?? ''}];
	const refused = (_: unknown, c: FinalConnectionState) => {
		if (!c.fromHandle || !c.toHandle || c.isValid)
			return;
		const [from, to] = c.fromHandle.type === 'source' ? [c.fromHandle, c.toHandle] : [c.toHandle, c.fromHandle];
		const a = {node: from.nodeId, port: from.id ?? ''}, b = {node: to.nodeId, port: to.id ?? ''}, why = wouldFit(doc, types, a, b);
		if (why)
			edit?.refuse(a, b, why);
	};
	return <Act.Provider value={{answer}}><div className="flow-canvas" ref={box} onDragOver={edit && ((e) => { if (e.dataTransfer.types.includes(DRAGGED)) e.preventDefault(); })}
		onDrop={edit && ((e) => { const type = e.dataTransfer.getData(DRAGGED); if (type) { e.preventDefault(); edit.drop(type, flow.screenToFlowPosition({x: e.clientX, y: e.clientY})); } })}>
		<ReactFlow nodes={drawn} edges={edges} nodeTypes={NODES} onNodesChange={onNodes} onEdgesChange={(all) => { const c = all.filter((x) => x.type === 'select'); if (c.length) pickWires(c.filter((x) => x.selected).map((x) => x.id)); }}
			onConnect={edit && ((c) => edit.connect(...ends(c)))} onConnectEnd={refused} isValidConnection={(c) => wouldFit(doc, types, ...ends(c)) === ''} nodesConnectable={!!edit} nodesDraggable={!!edit} connectionRadius={28}
			deleteKeyCode={null} selectionKeyCode="Shift" multiSelectionKeyCode={['Shift', 'Control', 'Meta']} panActivationKeyCode={null} fitView={!kept} fitViewOptions={{padding: 0.15, maxZoom: 1}} defaultViewport={kept} minZoom={0.2} maxZoom={2} onMoveEnd={(_, v) => sessionStorage.setItem(viewKey(`${doc.id}${edit ? '' : '.run'}`), JSON.stringify(v))}
			proOptions={{hideAttribution: true}} zoomOnDoubleClick={false} snapToGrid snapGrid={[12, 12]} aria-label={name} role="application" ariaLabelConfig={{'node.a11yDescription.default': edit ? 'Enter opens it, arrows move it, C connects it, Delete removes it.' : 'Enter opens it.', 'node.a11yDescription.keyboardDisabled': 'Enter opens it.', 'minimap.ariaLabel': 'Overview'}}>
			<Background variant={BackgroundVariant.Dots} gap={24} size={1} />
			<MiniMap className="flow-map" pannable zoomable nodeClassName={(n) => `flow-map-node ${(n.data as Data).problems.some((p) => p.severity === 'error') ? 'wrong' : ''}`} />
			{edit && <Tip doc={doc} types={types} />}
		</ReactFlow>
		<div className="flow-zoom"><div className="segment" role="group" aria-label="Zoom"><button type="button" aria-label="Smaller" title="Smaller (-)" onClick={() => void flow.zoomOut()}><Minus size={13} aria-hidden /></button>
			<button type="button" title="Show all (1)" onClick={() => void flow.fitView({padding: 0.15, maxZoom: 1})}>Fit</button><button type="button" aria-label="Larger" title="Larger (+)" onClick={() => void flow.zoomIn()}><Plus size={13} aria-hidden /></button></div>{children}</div>
	</div></Act.Provider>;
}

export default function Canvas(props: CanvasProps) {
	return <ReactFlowProvider><Graph {...props} /></ReactFlowProvider>;
}
