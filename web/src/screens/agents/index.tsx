// Agents: which there are, whether they can run, and their definitions.
import {useQuery} from '@tanstack/react-query';
import {Bot, MessageSquare, Plus, Trash2} from 'lucide-react';
import {useMemo, useState} from 'react';
import {Health} from '../../components/Health';
import {Facts, Find, Part, Pick, Split} from '../../components/Split';
import {A, Bones, Dialog, Empty, Id, ProblemNote, Tabs, Top} from '../../components/ui';
import {ask, askJson} from '../../lib/api';
import {useTitle} from '../../lib/hooks';
import {useShortcuts} from '../../lib/keys';
import {go, useFilter} from '../../lib/nav';
import {client, useAgents} from '../../lib/query';
import {complain, toast} from '../../lib/say';
import {policyOf} from '../../lib/tools';
import type {Agent} from '../../lib/types';
import {exists, leads} from '../../routes';
import '../../styles/ask.css';
import './agents.css';
import {Editor, useChecked} from './Editor';
import {Versions} from './Versions';

const NEW = `version: "1.0"
kind: agent
id: my_agent
metadata:
  title: My agent
  description: What it is good for
runtime: {entry: llm.chat}
policy:
  tools:
    allow: ["internal:time.now"]
prompt:
  system: |
    You answer in one paragraph.
`;

interface Definition extends Agent { definition?: Record<string, any>; source?: string; file?: string; version?: number; revision?: string; inactive?: {pointer: string; why: string}[] }
interface Instance {
	artifact: {source: string}; provider_policy: {from: string; default?: {provider: string; model: string}; rules?: any; models?: {provider: string; model: string; role?: string}[]};
	memory?: {conversation?: {enabled: boolean; max_turns?: number}; collections?: {collection: string; found: boolean; documents: number}[]};
	tool_registry?: {state: string; tools?: {tool_id: string; name: string; policy: string}[]}; skill_registry?: {enabled: boolean; skills: {skill_id: string; enabled: boolean}[]};
}

const can = (a: Agent) => a.runnable !== false;
function Can({agent}: {agent: Agent}) {
	return agent.runnable === undefined ? null : can(agent) ? <Health kind="ok" word="Ready" /> : <Health kind="off" word="Not yet" title={agent.reason} />;
}

const SOURCES: Record<string, string> = {'built in': 'part of the program', builtin: 'part of the program', file: 'a file', directory: 'a file', database: 'the database', url: 'a registry', registry: 'a registry', program: 'a program of this machine'};
const kindOf = (a: Agent) => a.entry.startsWith('backend.') ? 'program' : String(a.source ?? 'built in');

function modelOf(p: Instance['provider_policy']): string {
	const one = p.rules?.default ?? p.default;
	return one ? `${one.provider ? `${one.provider}/` : ''}${one.model || 'its own'}` : p.from === 'none' ? 'none' : 'the server’s default';
}

function Overview({agent}: {agent: Definition}) {
	const {data: i, error, isPending} = useQuery({queryKey: ['agent', agent.agent_id, 'instance'], queryFn: () => askJson<Instance>(`api/agents/${encodeURIComponent(agent.agent_id)}/instance`)});
	const tools = i?.tool_registry?.tools ?? [];
	const skills = (i?.skill_registry?.skills ?? []).filter((s) => s.enabled);
	return <><p>{agent.description || <span className="t3">It has no description.</span>}</p>
		{!can(agent) && <div className="problem" role="note"><strong>It cannot run yet</strong><span>{agent.reason}</span>{agent.next_step && <span>{agent.next_step}</span>}</div>}
		<Facts rows={[['Id', <Id value={agent.agent_id} short={false} />], ['What runs it', <span className="mono f12">{agent.entry}</span>], ['Comes from', <>{SOURCES[i?.artifact.source ?? kindOf(agent)] ?? i?.artifact.source ?? kindOf(agent)}{agent.file && <span className="mono f12"> {agent.file}</span>}</>],
			['Version', agent.version ? `v${agent.version}` : undefined], ['Revision', agent.revision ? <Id value={agent.revision} /> : undefined],
			['Model', i ? <>{modelOf(i.provider_policy)}{(i.provider_policy.rules?.fallbacks?.length ?? 0) > 0 && <span className="t3">, then {i.provider_policy.rules.fallbacks.map((f: any) => f.model).join(', ')}</span>}</> : undefined],
			['Earlier turns', i?.memory?.conversation ? i.memory.conversation.enabled ? i.memory.conversation.max_turns ? `the last ${i.memory.conversation.max_turns}` : 'all that fit' : 'not told to the model' : undefined],
			['Knowledge', i?.memory?.collections?.length ? i.memory.collections.map((c) => `${c.collection} (${c.found ? `${c.documents} documents` : 'not found'})`).join(', ') : undefined],
			['Skills', i?.skill_registry?.enabled ? skills.map((s) => s.skill_id).join(', ') || 'none' : undefined]]} />
		{error ? <ProblemNote what="What it is made of could not be read" error={error} /> : isPending ? <Bones rows={3} /> : <Part title="Tools" about={tools.length ? `${tools.length} that its model may ask for` : 'none'}>{tools.length > 0 && <ul className="agents-tools">{tools.map((t) => <li key={t.tool_id}><A className="mono f12 cut grow" to={`tools/${encodeURIComponent(t.tool_id)}`}>{t.name}</A><Health {...policyOf(t.policy)} /></li>)}</ul>}</Part>}
	</>;
}

function Prompt({definition}: {definition: Record<string, any>}) {
	const text = useMemo(() => JSON.stringify(definition), [definition]);
	const {data, error} = useChecked(text);
	if (error)
		return <ProblemNote what="The prompt could not be made" error={error} />;
	if (!data)
		return <Bones rows={4} />;
	if (!data.prompt)
		return <Empty title="This agent has no prompt of ours"><p>A program of its own is given the message as it is.</p></Empty>;
	return <><p className="t2 f12">What a run that brings nothing but a message tells the model. Skills, tools and knowledge are added by the run.</p>
		<Part title="System"><pre className="json" tabIndex={0}>{data.prompt.system}</pre></Part><Part title="Message"><pre className="json" tabIndex={0}>{data.prompt.message}</pre></Part></>;
}

function Remove({agent, close}: {agent: Definition; close: () => void}) {
	const [busy, setBusy] = useState(false);
	const remove = async () => {
		setBusy(true);
		try {
			await ask(`api/agents/${encodeURIComponent(agent.agent_id)}`, {method: 'DELETE'});
			toast('ok', `${agent.title} was removed`);
			close();
			go('agents');
			void client.invalidateQueries({queryKey: ['agents']});
		} catch (e) {
			complain(`${agent.title} was not removed`, e);
			setBusy(false);
		}
	};
	return <Dialog title={`Remove ${agent.title}`} close={close}><p>No new run can name it. Its versions stay, and runs at work go on.</p><div className="row"><button type="button" className="btn danger" disabled={busy} onClick={() => void remove()}>{busy ? 'Removing' : `Remove ${agent.title}`}</button><button type="button" className="btn" onClick={close}>Keep it</button></div></Dialog>;
}

type Tab = 'overview' | 'definition' | 'versions' | 'prompt';

function Detail({id}: {id: string}) {
	const listed = useAgents().data?.agents.find((a) => a.agent_id === id);
	const {data, error, isPending, refetch} = useQuery({queryKey: ['agent', id], queryFn: () => askJson<Definition>(`api/agents/${encodeURIComponent(id)}`)});
	const [tab, setTab] = useFilter('tab');
	const [draft, setDraft] = useState<{text: string; n: number} | null>(null);
	const [removing, setRemoving] = useState(false);
	if (isPending)
		return <div className="page"><Bones rows={5} /></div>;
	if (error)
		return <div className="page"><ProblemNote what="This agent could not be read" error={error} retry={() => void refetch()} /></div>;
	const agent: Definition = {...listed, ...data};
	const tabs: [Tab, string][] = [['overview', 'Overview'], ['definition', 'Definition'], ['versions', 'Versions'], ['prompt', 'Prompt']];
	const now = (tabs.some(([t]) => t === tab) ? tab : 'overview') as Tab;
	const text = data.definition ? JSON.stringify(data.definition, null, 2) : '';
	return <><header className="split-head"><h2>{agent.title}</h2>{agent.version ? <span className="t3">v{agent.version}</span> : null}<Can agent={agent} /><span className="grow" />
		{exists('chat') && can(agent) && <A className="btn" to={`c?agent=${encodeURIComponent(id)}`}><MessageSquare size={13} aria-hidden />New chat</A>}
		{data.source === 'database' && <button type="button" className="btn danger" onClick={() => setRemoving(true)}><Trash2 size={13} aria-hidden />Remove</button>}
		<Tabs label="Parts of the agent" value={now} options={tabs} set={(t) => setTab(t === 'overview' ? '' : t)} /></header>
	<div className="scroll" tabIndex={-1}><div className="split-body">
		{now === 'overview' ? <Overview agent={agent} /> : !data.definition ? <Empty title="It has no definition"><p>This agent is part of the program or a program of this machine. Your own agent is a definition: a model, a prompt, tools.</p><A className="btn" to="agents?new=1">New agent</A></Empty>
			: now === 'definition' ? <Editor key={`${id} ${data.revision} ${draft?.n ?? 0}`} first={draft?.text ?? text} known={id} version={data.version} file={data.source === 'database' ? undefined : data.file ?? String(data.source)} saved={(made) => { setDraft(null); if (made !== id) go(`agents/${encodeURIComponent(made)}?tab=definition`); }} />
				: now === 'versions' ? <Versions id={id} current={data.definition} restore={(t) => { setDraft({text: t, n: (draft?.n ?? 0) + 1}); setTab('definition'); }} /> : <Prompt definition={data.definition} />}
	</div></div>{removing && <Remove agent={agent} close={() => setRemoving(false)} />}</>;
}

export default function Agents({params}: {params: Record<string, string>}) {
	const {data, error, isPending, refetch} = useAgents();
	const [q, setQ] = useFilter('q'), [from, setFrom] = useFilter('from'), [fresh] = useFilter('new');
	const chosen = params.agent ?? '';
	const agents = data?.agents ?? [];
	useTitle(chosen ? `${agents.find((a) => a.agent_id === chosen)?.title ?? chosen} · Agents` : fresh ? 'New agent' : 'Agents');
	const sources = [...new Set(agents.map(kindOf))];
	const shown = agents.filter((a) => (!from || kindOf(a) === from) && `${a.agent_id} ${a.title} ${a.description}`.toLowerCase().includes(q.toLowerCase()));
	const suffix = q || from ? `?${new URLSearchParams({...(q && {q}), ...(from && {from})})}` : '';
	const move = (by: number) => {
		const next = shown[Math.max(0, Math.min(shown.length - 1, shown.findIndex((a) => a.agent_id === chosen) + by))];
		if (next)
			go(`agents/${encodeURIComponent(next.agent_id)}${suffix}`);
	};
	useShortcuts([{keys: 'J', does: 'Next agent', run: () => move(1)}, {keys: 'K', does: 'Agent before', run: () => move(-1)}, {keys: 'N', does: 'New agent', run: () => go('agents?new=1')}]);
	return <><Top title="Agents" about={data ? agents.some((a) => !can(a)) ? `${agents.filter(can).length} can run, ${agents.filter((a) => !can(a)).length} cannot yet` : String(agents.length) : undefined}><A className="btn" to="agents?new=1"><Plus size={14} aria-hidden />New agent</A></Top>
		<Split label="Agents" back={`agents${suffix}`} chosen={chosen !== '' || fresh !== ''} tools={<><Find label="Find an agent" value={q} set={setQ} />{sources.length > 1 && <Pick label="Source" value={from} set={setFrom} options={[['', 'All sources'], ...sources.map((s) => [s, SOURCES[s] ?? s] as [string, string])]} />}</>}
			list={isPending ? <Bones rows={5} /> : error ? <div className="page"><ProblemNote what="The agents could not be read" error={error} retry={() => void refetch()} /></div> : <div className="split-rows" tabIndex={-1}>
				{(data.broken ?? []).map((b, i) => <ProblemNote key={i} what={`A definition is broken: ${b.agent_id ?? b.file ?? ''}`} error={b.error ?? 'unknown'} />)}
				{shown.length === 0 ? <Empty title="No agent fits" /> : <ul aria-label="Agents">{shown.map((a) => <li key={a.agent_id}><A className="split-row" to={`agents/${encodeURIComponent(a.agent_id)}${suffix}`} aria-current={a.agent_id === chosen}><Bot size={15} aria-hidden className={can(a) ? 'agents-icon' : 't3'} /><span className="grow"><span className="cut strong">{a.title}</span><span className="cut f11 t3">{a.description || a.agent_id}</span></span>{!can(a) && <Can agent={a} />}</A></li>)}</ul>}</div>}>
			{chosen ? <Detail key={chosen} id={chosen} /> : fresh ? <><header className="split-head"><h2>New agent</h2></header><div className="scroll" tabIndex={-1}><div className="split-body"><Editor first={NEW} known="" saved={(id) => go(`agents/${encodeURIComponent(id)}`)} /></div></div></>
				: <Empty title="Choose an agent"><p>An agent is a definition: a model, a prompt, tools, limits.</p>{leads('agents') && <A className="btn" to="agents?new=1">New agent</A>}</Empty>}
		</Split></>;
}
