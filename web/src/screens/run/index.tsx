// A run: what it is about, where its time went, its timeline and its log, what it did, its record.
import {MessageSquare, Pause, Play, RotateCcw, Square} from 'lucide-react';
import {lazy, Suspense, useState} from 'react';
import {A, Bones, CopyButton, Id, ProblemNote, State, Tabs, Top} from '../../components/ui';
import {askJson} from '../../lib/api';
import {count, exact, money, span} from '../../lib/format';
import {useNow, useTitle} from '../../lib/hooks';
import {go, useFilter} from '../../lib/nav';
import {patiently} from '../../lib/patient';
import {client, useAgents, useRun} from '../../lib/query';
import {complain, toast} from '../../lib/say';
import type {RunRecord} from '../../lib/types';
import {leads} from '../../routes';
import {useAttempts, wordOf} from '../runs/data';
import {Events, Json} from './Events';
import {Children, useChildren} from './Children';
import {Evidence} from './Evidence';
import {Rights} from './Rights';
import {StateAt} from './StateAt';
import {Waterfall} from './Waterfall';
import {useFollow, useTimeline, type Timeline} from './data';
import {KindIcon, NAMES, STATES, type Kind} from './words';
import './run.css';

const LiveGraph = lazy(() => patiently(async () => ({default: (await import('../flows/Live')).LiveGraph})));

const LIVE = ['queued', 'running', 'cancel_requested'];

/** How long each kind took; what overlaps counts once. */
function shares(t: Timeline, now: number): [Kind, number][] {
	const kinds: Kind[] = ['model', 'tool', 'ask', 'restart', 'wait'];
	return kinds.map((kind): [Kind, number] => {
		let until = -Infinity, sum = 0;
		for (const s of t.spans.filter((x) => x.kind === kind).sort((a, b) => a.first_at - b.first_at)) {
			const end = s.last_at ?? now;
			sum += Math.max(0, end - Math.max(until, s.first_at));
			until = Math.max(until, end);
		}
		return [kind, sum];
	}).filter(([, v]) => v > 0);
}

function Went({t}: {t: Timeline}) {
	const clock = useNow(5);
	const now = t.spans.some((s) => s.kind === 'ask' && s.last_at === null) ? Math.max(t.last_at, clock) : t.last_at; // a question that waits goes on
	const total = Math.max(now - t.first_at, 0.001);
	const all = shares(t, now);
	return <div className="run-went"><dt>Where the time went</dt><dd><div className="run-stack" role="img" aria-label={all.map(([k, v]) => `${NAMES[k]} ${Math.round(v / total * 100)} percent`).join(', ') || 'nothing yet'}>
		{all.map(([k, v]) => <i key={k} data-kind={k} style={{width: `${v / total * 100}%`}} />)}</div>
	<span className="row wrap f11">{all.map(([k, v]) => <em key={k} data-kind={k}>{k === 'ask' ? 'You' : NAMES[k]} {Math.round(v / total * 100)} %</em>)}</span></dd></div>;
}

/** The states in order, from what the log has: waits, restarts, questions, and work between them. */
function Trail({run, t}: {run: RunRecord; t: Timeline}) {
	const steps = t.spans.filter((s) => s.kind === 'wait' || s.kind === 'ask' || s.kind === 'restart').sort((a, b) => a.first - b.first).slice(-8);
	return <ol className="run-trail" aria-label="States">{steps.map((s) => <li key={s.first} data-kind={s.kind}><KindIcon kind={s.kind} size={13} />
		<span>{s.kind === 'ask' ? s.state === 'open' ? 'Waits for you' : `Asked: ${s.name}` : s.kind === 'restart' ? 'Restart' : s.name}</span><span className="num t3">{s.last_at !== null ? span(s.last_at - s.first_at) : 'now'}</span></li>)}
	<li className="now"><State status={run.status} engine={run.engine_status} /></li></ol>;
}

function Attempts({run}: {run: RunRecord}) {
	const {data} = useAttempts(run.root_run_id);
	if (!data || data.length < 2)
		return null;
	return <nav className="run-attempts" aria-label="Attempts"><span className="t3 f12">Attempts</span>{data.map((r) => <A key={r.run_id} to={`runs/${r.run_id}`} className="btn small" aria-current={r.run_id === run.run_id ? 'page' : undefined} title={r.error?.message}>
		<State status={r.status} engine={r.engine_status} bare />{r.attempt}</A>)}</nav>;
}

function Facts({run, t}: {run: RunRecord; t?: Timeline}) {
	const live = LIVE.includes(run.status);
	const now = useNow(live ? 1 : 3600);
	const took = run.duration ?? (run.started_at ? (run.finished_at ?? now) - run.started_at : null);
	const models = t?.spans.filter((s) => s.kind === 'model') ?? [];
	const names = [...new Set(models.map((s) => s.name))];
	const dear = models.filter((s) => s.cost).sort((a, b) => (b.cost ?? 0) - (a.cost ?? 0))[0];
	return <dl className="run-facts">
		<div><dt>Duration</dt><dd className="num">{took === null ? 'not started' : span(Math.max(0, took))}</dd></div>
		<div><dt>Agent</dt><dd>{leads(`agents/${run.agent_id}`) ? <A className="link" to={`agents/${encodeURIComponent(run.agent_id)}`}>{run.agent_id}</A> : run.agent_id}</dd></div>
		<div><dt>Model</dt><dd>{names.length ? <>{names.join(', ')} <span className="t3">{models.length} {models.length === 1 ? 'call' : 'calls'}</span></> : <span className="t3">none</span>}</dd></div>
		<div><dt>Tokens</dt><dd className="num">{run.usage ? `${count(run.usage.input_tokens)} in, ${count(run.usage.output_tokens)} out${run.usage.estimated ? ', in part estimated' : ''}` : <span className="t3">unknown</span>}</dd></div>
		<div><dt>Cost</dt><dd className="num">{typeof run.cost === 'number' ? money(run.cost) : <span className="t3">unknown</span>}{dear && <span className="t3"> most: #{dear.first}</span>}</dd></div>
		<div><dt>Events</dt><dd className="num">{t ? count(t.last) : <span className="t3">unknown</span>}</dd></div>
		<div className="run-started"><dt>Started</dt><dd className="num">{exact(run.started_at ?? run.created_at)}</dd></div>
		{t && <Went t={t} />}
	</dl>;
}

/** What tools did to the world, each with its events. */
function Effects({t, choose}: {t: Timeline; choose: (n: number) => void}) {
	const tools = t.spans.filter((s) => s.kind === 'tool' || s.kind === 'process' || s.kind === 'sub');
	if (!tools.length)
		return <p className="empty">This run used no tool.</p>;
	return <div className="page"><div className="card">{tools.map((s) => <button key={s.first} type="button" className="item run-effect" data-state={s.state} onClick={() => choose(s.first)}>
		<KindIcon kind={s.state === 'failed' ? 'error' : s.kind} /><span className="mono">{s.name}</span><span className="grow cut t2">{s.detail}</span>
		<span className="badge" data-state={s.state}>{STATES[s.state] ?? s.state}</span><span className="num f12 t3">{s.last_at !== null ? span(s.last_at - s.first_at) : ''}</span><span className="mono f11 t3">#{s.first}</span></button>)}</div></div>;
}

function Acts({run}: {run: RunRecord}) {
	const [busy, setBusy] = useState('');
	const act = async (what: 'cancel' | 'retry') => {
		setBusy(what);
		try {
			const done = await askJson<RunRecord>(`api/runs/${run.run_id}/${what}`, {method: 'POST', headers: what === 'retry' ? {'Idempotency-Key': `page-${run.run_id}-${run.attempt}`} : {}});
			if (what === 'retry') {
				toast('ok', 'A new attempt has started');
				go(`runs/${done.run_id}`);
			} else {
				client.setQueryData(['run', run.run_id], done);
			}
			void client.invalidateQueries({queryKey: ['runs']});
		} catch (e) {
			complain(what === 'retry' ? 'No new attempt was started' : 'The run was not cancelled', e);
		}
		setBusy('');
	};
	if (!LIVE.includes(run.status))
		return <button type="button" className="btn" disabled={busy !== ''} onClick={() => void act('retry')}><RotateCcw size={13} aria-hidden />{busy ? 'Starting' : 'Retry'}</button>;
	const asked = run.cancel_requested === true;
	return <button type="button" className="btn" disabled={busy !== '' || asked} onClick={() => void act('cancel')}><Square size={13} aria-hidden />{busy || asked ? 'Stopping' : 'Cancel run'}</button>;
}

type Tab = 'timeline' | 'graph' | 'talk' | 'effects' | 'children' | 'rights' | 'evidence' | 'raw';

export default function Run({params}: {params: Record<string, string>}) {
	const id = params.run;
	const tab = (params.tab ?? 'timeline') as Tab;
	const run = useRun(id);
	const t = useTimeline(id);
	const children = useChildren(run.data);
	const isFlow = useAgents().data?.agents.some((a) => a.agent_id === run.data?.agent_id && a.kind === 'workflow') || tab === 'graph';
	const [e, setE] = useFilter('e');
	const live = run.data ? LIVE.includes(run.data.status) : false;
	const [following, follow] = useFollow(id, live);
	useTitle(run.data ? wordOf(run.data) : 'Run');
	if (run.error)
		return <><Top title="Run" /><div className="page"><ProblemNote what="This run could not be read" error={run.error} retry={() => void run.refetch()} /><p className="row"><A className="btn" to="runs">All runs</A></p></div></>;
	if (!run.data)
		return <><Top title="Run" /><div className="page"><Bones rows={6} /></div></>;
	const r = run.data;
	const choose = (n: number) => { if (tab !== 'timeline') go(`runs/${id}?e=${n}`); else setE(String(n)); };
	return <>
		<Top title={<><A className="t3 run-crumb" to="runs">Runs / </A>{wordOf(r)}</>}>
			<span className="run-top"><State status={r.status} engine={r.engine_status} /><Id value={r.run_id} /></span>
			{leads(`replay/${id}`) && <A className="btn quiet" aria-label="Replay" to={`replay/${id}`}><Play size={13} aria-hidden /><span className="run-wide">Replay</span></A>}
			{leads(`c/${r.session_id}`) && <A className="btn quiet" aria-label="Chat" to={`c/${r.session_id}`}><MessageSquare size={13} aria-hidden /><span className="run-wide">Chat</span></A>}
			<Acts run={r} />
		</Top>
		<div className="run-body scroll">
			{r.error && <div className="run-error"><ProblemNote what={r.error.code} error={r.error.message || 'It did not say why.'} /></div>}
			<section className="run-head">{t.data && <Trail run={r} t={t.data} />}<Attempts run={r} /></section>
			<Facts run={r} t={t.data} />
			<div className="run-tabs"><Tabs label="Views of the run" value={tab} options={[['timeline', 'Timeline'], ...(isFlow ? [['graph', 'Graph'] as [Tab, string]] : []), ['talk', 'Conversation'], ['effects', 'Effects'], ...(children.data?.length || tab === 'children' ? [['children', 'Child agents'] as [Tab, string]] : []), ['rights', 'Permissions'], ['evidence', 'Evidence'], ['raw', 'Raw record']]} set={(v) => go(v === 'timeline' ? `runs/${id}` : `runs/${id}/${v}`, {replace: true})} />
				{live && <button type="button" className="btn small" aria-pressed={following} onClick={() => follow(!following)}>{following ? <><Pause size={12} aria-hidden />Following</> : <><Play size={12} aria-hidden />Paused</>}</button>}</div>
			{tab === 'graph' ? <div className="run-graph"><Suspense fallback={<Bones rows={5} />}><LiveGraph id={id} /></Suspense></div> : tab === 'rights' ? <Rights run={r} /> : tab === 'evidence' ? <Evidence run={r} /> : tab === 'children' ? <Children run={r} /> : t.error ? <div className="page"><ProblemNote what="The timeline could not be read" error={t.error} retry={() => void t.refetch()} /></div>
				: !t.data ? <Bones rows={5} />
					: tab === 'timeline' ? <><Waterfall t={t.data} chosen={Number(e) || 0} choose={choose} following={following} /><Events key={id} id={id} t={t.data} chosen={Number(e) || 0} choose={choose} /></>
						: tab === 'talk' ? <StateAt id={id} at={t.data.last} />
							: tab === 'effects' ? <Effects t={t.data} choose={choose} />
								: <div className="page"><div className="row"><span className="grow" /><CopyButton text={() => JSON.stringify(r, null, 2)} label="Copy the record" /></div><Json value={r} /></div>}
		</div>
	</>;
}
