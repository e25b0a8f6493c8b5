// Inspector.tsx - one node: its settings as a form, its connections, what it may use; or the workflow itself.
import {Copy, Link2, Trash2, X} from 'lucide-react';
import {lazy, Suspense, useMemo, useState} from 'react';
import {Facts} from '../../components/Split';
import {A, Bones, Id, Tabs} from '../../components/ui';
import {plain} from '../../lib/format';
import {patiently} from '../../lib/patient';
import {useAgents} from '../../lib/query';
import {say} from '../../lib/say';
import {useTools} from '../../lib/tools';
import {type Definition, type FlowEdge, type FlowNode, edgesOf, keyOf, nameOf, nodesOf} from './doc';
import {type Flow, type NodeType, type Problem, type Types, lookOf, portsOf, typeName, typeWords, valuesFor} from './data';

const LiveForm = lazy(() => patiently(async () => ({default: (await import('../../components/SchemaForm')).LiveForm})));

/** The schema of the settings, with what this server has to choose from. */
function useSchema(t: NodeType | undefined, node: FlowNode, types: Types): Record<string, any> {
	const agents = useAgents().data?.agents, tools = useTools().data?.tools;
	const kind = node.type === 'loop' ? String(node.config?.do ?? '') : node.type, tool = String((node.type === 'loop' ? node.config?.with?.tool : node.config?.tool) ?? '');
	return useMemo(() => {
		const choose = (schema: Record<string, any> | undefined, of: string): Record<string, any> => {
			const p = {...schema?.properties};
			if (of === 'agent' && p.agent)
				p.agent = {...p.agent, examples: agents?.map((a) => a.agent_id).filter((id) => id)};
			if (of === 'tool' && p.tool)
				p.tool = {...p.tool, examples: tools?.map((x) => x.tool_id)};
			const takes = tools?.find((x) => x.tool_id === tool)?.input_schema;
			if (of === 'tool' && p.arguments && takes?.properties) // what a template gives is known when it runs
				p.arguments = {...p.arguments, type: 'object', required: takes.required, properties: Object.fromEntries(Object.entries(takes.properties as Record<string, any>).map(([name, s]) => [name, {title: name, description: s.description, ...(s.type === 'string' ? {type: 'string'} : {})}]))};
			return {...schema, properties: p};
		};
		const own = choose(t?.config_schema, node.type);
		if (node.type === 'loop' && own.properties.with && types.has(kind))
			own.properties.with = {title: `What is done for each: ${typeName(types, kind)}`, ...choose(types.get(kind)!.config_schema, kind)};
		const {$schema: _, $id: __, ...rest} = own;
		return rest;
	}, [t, node.type, kind, tool, agents, tools]);
}

const said = (p: Problem) => <li key={`${p.code} ${p.pointer}`} className="flow-problem-said" data-severity={p.severity}>{p.message}{p.next_step && <span className="t2"> {p.next_step}</span>}</li>;

function Settings({doc, types, node, problems, change}: {doc: Definition; types: Types; node: FlowNode; problems: Problem[]; change: (patch: Partial<FlowNode>, what: string, together: string) => void}) {
	const t = types.get(node.type), schema = useSchema(t, node, types);
	const empty = !Object.keys(schema.properties ?? {}).length;
	return <>{problems.length > 0 && <ul className="flow-problems-own">{problems.map(said)}</ul>}
		<div className="field"><label htmlFor="flow-title">Name</label><input id="flow-title" className="input" maxLength={120} placeholder={node.id} value={node.title ?? ''} onChange={(e) => change({title: e.target.value || undefined}, 'The name was changed', `title ${node.id}`)} /></div>
		{t?.doc && <p className="f12 t2">{t.doc}</p>}
		{empty ? <p className="f12 t3">There is nothing to set.</p> : <Suspense fallback={<Bones rows={2} />}><LiveForm key={`${node.id} ${node.type}`} id={`flow ${node.id}`} schema={schema} values={node.config ?? {}} change={(config: Record<string, any>) => change({config}, 'The settings were changed', `config ${node.id}`)} /></Suspense>}
		{!empty && <details className="flow-values"><summary className="link f12">Values it can use</summary><ul>{valuesFor(doc, types, node.id).map(([pointer, words]) => <li key={pointer} className="row f12"><code className="cut">{`{{${pointer}}}`}</code><span className="t3 cut grow">{words}</span>
			<button type="button" className="btn quiet icon small" aria-label={`Copy ${pointer}`} title="Copy" onClick={() => { void navigator.clipboard.writeText(`{{${pointer}}}`); say('Copied'); }}><Copy size={13} aria-hidden /></button></li>)}</ul></details>}
	</>;
}

function Wires({doc, types, node, cut, connect}: {doc: Definition; types: Types; node: FlowNode; cut: (e: FlowEdge) => void; connect: () => void}) {
	const {inputs, outputs} = portsOf(types, node, doc), names = new Map(nodesOf(doc).map((n) => [n.id, nameOf(n)]));
	const row = (e: FlowEdge, other: string, port: string) => <li key={keyOf(e)} className="row"><span className="grow cut">{names.get(other) ?? other} <span className="mono f11 t3">{port}</span></span>
		<button type="button" className="btn quiet icon small" aria-label={`Remove the connection ${names.get(e.from.node) ?? e.from.node} to ${names.get(e.to.node) ?? e.to.node}`} title="Remove" onClick={() => cut(e)}><X size={13} aria-hidden /></button></li>;
	return <>{inputs.map((p) => <section key={`in ${p.name}`}><h3 className="f12">Into <span className="mono">{p.name}</span> <span className="t3">{typeWords(p)}</span></h3><ul>{edgesOf(doc).filter((e) => e.to.node === node.id && e.to.port === p.name).map((e) => row(e, e.from.node, e.from.port))}</ul></section>)}
		{outputs.map((p) => <section key={`out ${p.name}`}><h3 className="f12">From <span className="mono">{p.name}</span> <span className="t3">{typeWords(p)}</span></h3><ul>{edgesOf(doc).filter((e) => e.from.node === node.id && e.from.port === p.name).map((e) => row(e, e.to.node, e.to.port))}</ul></section>)}
		<div><button type="button" className="btn" onClick={connect}><Link2 size={13} aria-hidden />Connect <kbd>C</kbd></button></div></>;
}

function Raw({value, set}: {value: object; set: (v: any) => void}) {
	const [text, type] = useState(() => JSON.stringify(value, null, 2));
	const [bad, setBad] = useState('');
	return <><textarea className="area mono" aria-label="As JSON" rows={18} spellCheck={false} value={text} onChange={(e) => { type(e.target.value); setBad(''); }} />{bad && <p className="wrong" role="alert">{bad}</p>}
		<div><button type="button" className="btn" onClick={() => {
			try {
				set(JSON.parse(text));
			} catch (e) {
				setBad(`This is not JSON: ${(e as Error).message}`);
			}
		}}>Apply</button></div></>;
}

type Tab = 'settings' | 'wires' | 'json';

export function NodeInspector(o: {doc: Definition; types: Types; node: FlowNode; problems: Problem[]; change: (patch: Partial<FlowNode>, what: string, together: string) => void; cut: (e: FlowEdge) => void; connect: () => void; remove: () => void; double: () => void; close: () => void}) {
	const [tab, setTab] = useState<Tab>('settings');
	const {Icon, kind} = lookOf(o.node.type);
	return <aside className="flow-panel" aria-label={`Settings of ${nameOf(o.node)}`}>
		<header><span className="flow-icon" data-kind={kind}><Icon size={16} aria-hidden /></span><b className="cut">{plain(nameOf(o.node))}</b><span className="t3 f12 cut grow">{typeName(o.types, o.node.type)}</span>
			<button type="button" className="btn quiet icon" aria-label="Double the node" title="Double (Ctrl D)" onClick={o.double}><Copy size={14} aria-hidden /></button>
			<button type="button" className="btn quiet icon" aria-label="Remove the node" title="Remove (Delete)" onClick={o.remove}><Trash2 size={14} aria-hidden /></button>
			<button type="button" className="btn quiet icon" aria-label="Close the settings" title="Close (Escape)" onClick={o.close}><X size={15} aria-hidden /></button></header>
		<Tabs label="Parts of the node" value={tab} options={[['settings', 'Settings'], ['wires', 'Connections'], ['json', 'JSON']]} set={setTab} />
		<div className="flow-panel-body scroll">{tab === 'settings' ? <Settings key={o.node.id} {...o} /> : tab === 'wires' ? <Wires {...o} /> : <Raw key={o.node.id} value={o.node.config ?? {}} set={(config) => o.change({config}, 'The settings were changed', '')} />}</div>
	</aside>;
}

const OWN = {type: 'object', properties: {title: {type: 'string', title: 'Name', maxLength: 120}, description: {type: 'string', title: 'What it is for', maxLength: 2000},
	inputs: {type: 'object', title: 'Input', description: 'JSON Schema of what a run is given; each of its properties is a port of the beginning.'}, outputs: {type: 'object', title: 'Output', description: 'JSON Schema of what it gives.'}}};

export function FlowInspector({doc, flow, change, close}: {doc: Definition; flow: Flow; change: (next: Definition, what: string, together: string) => void; close: () => void}) {
	const values = {title: doc.metadata?.title, description: doc.metadata?.description, inputs: doc.schemas?.inputs, outputs: doc.schemas?.outputs};
	const set = (v: typeof values) => {
		const {inputs: _, outputs: __, ...schemas} = doc.schemas ?? {}, next = {...schemas, ...(v.inputs ? {inputs: v.inputs} : {}), ...(v.outputs ? {outputs: v.outputs} : {})};
		const {schemas: ___, ...rest} = doc, {title: t, description: d, ...metadata} = doc.metadata ?? {};
		change({...rest, metadata: {...metadata, ...(v.title ? {title: v.title} : {}), ...(v.description ? {description: v.description} : {})}, ...(Object.keys(next).length ? {schemas: next} : {})} as Definition, 'The workflow was changed', 'workflow');
	};
	return <aside className="flow-panel" aria-label="Settings of the workflow"><header><b className="cut grow">The workflow</b><button type="button" className="btn quiet icon" aria-label="Close the settings" onClick={close}><X size={15} aria-hidden /></button></header>
		<div className="flow-panel-body scroll"><Suspense fallback={<Bones rows={3} />}><LiveForm id="flow" schema={OWN} values={JSON.parse(JSON.stringify(values))} change={set} /></Suspense>
			<Facts rows={[['Id', <Id value={doc.id} short={false} />], ['Kept in', flow.file ? <span className="mono f12">{flow.file}</span> : flow.source], ['Version', flow.version ? `v${flow.version}` : ''], ['As an agent', <A className="link" to={`agents/${encodeURIComponent(doc.id)}`}>{doc.id}</A>]]} /></div></aside>;
}
