// Tools: what models may ask for, with schemas; one can be tried alone.
import {lazy, Suspense, useMemo, useRef, useState} from 'react';
import {useVirtualizer} from '@tanstack/react-virtual';
import {Health} from '../../components/Health';
import {Facts, Find, Part, Pick, Split} from '../../components/Split';
import {A, Bones, CopyButton, Empty, ProblemNote, Top} from '../../components/ui';
import {Problem, askJson, command} from '../../lib/api';
import {span} from '../../lib/format';
import {useTitle} from '../../lib/hooks';
import {useShortcuts} from '../../lib/keys';
import {go, useFilter} from '../../lib/nav';
import {patiently} from '../../lib/patient';
import {complain, say} from '../../lib/say';
import {EFFECTS, effectOf, policyOf, type Tool, useTools} from '../../lib/tools';
import {exists, leads} from '../../routes';
import '../../styles/ask.css';
import '../../styles/form.css';
import './tools.css';

const SchemaForm = lazy(() => patiently(() => import('../../components/SchemaForm')));
interface Outcome { ok: boolean; output?: unknown; error?: {failure_category: string; message: string; retryable: boolean}; took: number }
const SHOWN = 20000;

function Shown({value}: {value: unknown}) {
	const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2) ?? '';
	const [all, open] = useState(false);
	return <><div className="row"><span className="grow" /><CopyButton text={text} /></div><pre className="json" tabIndex={0}>{all ? text : text.slice(0, SHOWN)}</pre>
		{text.length > SHOWN && !all && <button type="button" className="btn small" onClick={() => open(true)}>Open all {text.length} characters</button>}</>;
}

/** What changes nothing is called at once; anything else by a run, which writes it down first and asks. */
function Try({tool}: {tool: Tool}) {
	const [busy, setBusy] = useState(false);
	const [wrong, setWrong] = useState<Problem | null>(null);
	const [outcome, setOutcome] = useState<Outcome | null>(null);
	const reads = tool.effect === 'read_only', usable = tool.policy !== 'denied' && tool.policy !== 'unavailable';
	const schema = tool.input_schema && Object.keys(tool.input_schema).length ? tool.input_schema : {type: 'object'};
	const call = async (values: unknown) => {
		const began = performance.now();
		const answer = await askJson<Omit<Outcome, 'took'>>('api/tools/call', {body: {tool_id: tool.tool_id, arguments: values ?? {}}});
		setOutcome({...answer, took: (performance.now() - began) / 1000});
		say(answer.ok ? 'The tool has ended' : `The tool has failed: ${answer.error?.message ?? ''}`);
	};
	const run = async (values: unknown) => {
		const made = await command<{session_id: string}>('submit_turn', {agent_id: 'tools', message: `tool ${tool.tool_id} ${JSON.stringify(values ?? {})}`});
		go(`c/${made.session_id}`);
	};
	const submit = async (values: unknown) => {
		setBusy(true);
		setWrong(null);
		setOutcome(null);
		try {
			await (reads ? call(values) : run(values));
		} catch (e) {
			if (e instanceof Problem && e.where.startsWith('/arguments'))
				setWrong(new Problem(e.status, e.code, e.message, e.where.replace('/arguments', '/payload')));
			else
				complain('The tool was not called', e);
		}
		setBusy(false);
	};
	if (!usable)
		return <p className="t2">It cannot be called: {policyOf(tool.policy).word.toLowerCase()}.</p>;
	return <div className="card tools-try">
		{!reads && <p className="t2 f12">This tool changes something. It is called by a run of the agent Tools, which writes it down before it happens{tool.policy === 'ask' ? ' and asks you first' : ''}.</p>}
		<Suspense fallback={<Bones rows={2} />}><SchemaForm key={tool.tool_id} id={tool.tool_id} schema={schema} submit={(v) => void submit(v)} busy={busy || (!reads && !exists('chat'))} wrong={wrong} verb={busy ? (reads ? 'Running' : 'Starting') : reads ? 'Run it alone' : 'Run it in a conversation'} /></Suspense>
		{outcome && <div className="tools-outcome" role="status">{outcome.ok ? <Health kind="ok" word={`Ended, ${span(outcome.took)}`} /> : <><Health kind="err" word={`Failed, ${span(outcome.took)}`} /><p>{outcome.error?.message} <span className="mono f11 t3">{outcome.error?.failure_category}</span></p></>}
			{outcome.ok && <Shown value={outcome.output} />}</div>}
	</div>;
}

function Detail({tool}: {tool: Tool}) {
	const policy = policyOf(tool.policy);
	const server = /^mcp:([^/]+)\//.exec(tool.tool_id)?.[1];
	return <><header className="split-head"><h2 className="mono">{tool.name}</h2><Health {...policy} /><span className="t3 f12">{effectOf(tool)}</span></header>
		<div className="scroll" tabIndex={-1}><div className="split-body">
			<p>{tool.description || <span className="t3">It does not say what it does.</span>}</p>
			<Facts rows={[['Id', <span className="mono f12">{tool.tool_id}</span>], ['Models call it', <span className="mono f12">{tool.model_name}</span>], ['Effect', effectOf(tool)], ['Permission', policy.word],
				['Comes from', server && leads(`servers/${server}`) ? <A className="link" to={`servers/${encodeURIComponent(server)}`}>MCP server {server}</A> : tool.transport === 'internal' ? 'part of the program' : tool.transport], ['Version', tool.version],
				['Time limit', tool.timeout_ms ? span(tool.timeout_ms / 1000) : undefined], ['Tags', tool.tags?.join(', ')]]} />
			<Part title="Try it"><Try key={tool.tool_id} tool={tool} /></Part>
			<Part title="Arguments" about="JSON Schema" acts={<CopyButton text={() => JSON.stringify(tool.input_schema, null, 2)} />}><pre className="json" tabIndex={0}>{JSON.stringify(tool.input_schema ?? {}, null, 2)}</pre></Part>
			{tool.output_schema && <Part title="Result" about="JSON Schema"><pre className="json" tabIndex={0}>{JSON.stringify(tool.output_schema, null, 2)}</pre></Part>}
		</div></div></>;
}

function List({tools, chosen, suffix}: {tools: Tool[]; chosen: string; suffix: string}) {
	const box = useRef<HTMLDivElement>(null);
	const virtual = useVirtualizer({count: tools.length, getScrollElement: () => box.current, estimateSize: () => 48, overscan: 10, getItemKey: (i) => tools[i].tool_id});
	const at = tools.findIndex((t) => t.tool_id === chosen);
	const move = (by: number) => {
		const next = tools[Math.max(0, Math.min(tools.length - 1, at + by))];
		if (next) {
			go(`tools/${encodeURIComponent(next.tool_id)}${suffix}`, {replace: at >= 0});
			virtual.scrollToIndex(tools.indexOf(next));
		}
	};
	useShortcuts([{keys: 'J', does: 'Next tool', run: () => move(1)}, {keys: 'K', does: 'Tool before', run: () => move(-1)}]);
	return <div className="split-rows" ref={box} tabIndex={-1}><ul style={{height: virtual.getTotalSize(), position: 'relative'}} aria-label="Tools">{virtual.getVirtualItems().map((item) => {
		const t = tools[item.index], policy = policyOf(t.policy);
		return <li key={item.key} ref={virtual.measureElement} data-index={item.index} className="tools-at" style={{transform: `translateY(${item.start}px)`}}>
			<A className="split-row" to={`tools/${encodeURIComponent(t.tool_id)}${suffix}`} aria-current={t.tool_id === chosen}><span className="grow"><span className="cut mono strong">{t.name}</span><span className="cut f11 t3">{t.transport === 'internal' ? effectOf(t) : `${t.tool_id.split('/')[0]} · ${effectOf(t)}`}</span></span><Health kind={policy.kind} word={policy.word.split(',')[0]} /></A></li>;
	})}</ul></div>;
}

export default function Tools({params}: {params: Record<string, string>}) {
	const {data, error, isPending, refetch} = useTools();
	const [q, setQ] = useFilter('q'), [from, setFrom] = useFilter('from'), [effect, setEffect] = useFilter('effect');
	const tool = data?.tools.find((t) => t.tool_id === params.tool);
	useTitle(tool ? `${tool.name} · Tools` : 'Tools');
	const sources = useMemo(() => [...new Set((data?.tools ?? []).map((t) => t.transport))], [data]);
	const shown = useMemo(() => (data?.tools ?? []).filter((t) => (!from || t.transport === from) && (!effect || t.effect === effect) && `${t.tool_id} ${t.description} ${t.tags?.join(' ')}`.toLowerCase().includes(q.toLowerCase())), [data, q, from, effect]);
	const suffix = location.search;
	return <><Top title="Tools" about={data ? `${shown.length === data.tools.length ? '' : `${shown.length} of `}${data.tools.length}` : undefined} />
		<Split label="Tools" back={`tools${suffix}`} chosen={!!params.tool} tools={<><Find label="Find a tool" value={q} set={setQ} />
			<Pick label="Source" value={from} set={setFrom} options={[['', 'All sources'], ...sources.map((s) => [s, s === 'internal' ? 'Part of the program' : s === 'mcp' ? 'MCP servers' : s.toUpperCase()] as [string, string])]} />
			<Pick label="Effect" value={effect} set={setEffect} options={[['', 'Any effect'], ...Object.entries(EFFECTS)]} /></>}
			list={isPending ? <Bones rows={6} /> : error ? <div className="page"><ProblemNote what="The tools could not be read" error={error} retry={() => void refetch()} /></div>
				: shown.length === 0 ? <Empty title="No tool fits"><button type="button" className="btn" onClick={() => go('tools')}>Show all tools</button></Empty> : <List tools={shown} chosen={params.tool ?? ''} suffix={suffix} />}>
			{tool ? <Detail key={tool.tool_id} tool={tool} /> : params.tool && data ? <Empty title="There is no such tool"><p>Its server may be away, or its definition was removed.</p><A className="btn" to="tools">All tools</A></Empty>
				: <Empty title="Choose a tool"><p>What it takes, what it does to the world, and a form to try it alone.</p></Empty>}
		</Split></>;
}
