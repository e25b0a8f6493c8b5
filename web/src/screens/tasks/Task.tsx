// Task.tsx - one task: what it is for, what it waits for, its attempts, what may be done.
import {Archive, Check, ListPlus, Pause, Play, RotateCcw, Square, X} from 'lucide-react';
import {useState} from 'react';
import {Facts, Part} from '../../components/Split';
import {A, Ago, Bones, Dialog, ProblemNote, State} from '../../components/ui';
import {askJson, command} from '../../lib/api';
import {money, seconds, span} from '../../lib/format';
import {useShortcuts} from '../../lib/keys';
import {client} from '../../lib/query';
import {complain, toast} from '../../lib/say';
import {type Edge, OVER, type Snapshot, type Task, type TaskItem, tasksOf, useTask, useTaskRuns, wordOf} from './data';

const LIVE = ['queued', 'running', 'cancel_requested'];
const renew = () => Promise.all(['sessions', 'runs'].map((k) => client.invalidateQueries({queryKey: [k]})));

/** One command; its word while it is under way. */
function useAct(): [string, (name: string, what: string, body: object) => Promise<boolean>] {
	const [busy, set] = useState('');
	return [busy, async (name, what, body) => {
		set(name);
		try {
			await (name.startsWith('api/') ? askJson(name, {method: 'POST', body}) : command(name, body));
			await renew();
			return true;
		} catch (e) {
			complain(what, e);
			return false;
		} finally {
			set('');
		}
	}];
}

function CancelDialog({task, kids, act, close}: {task: TaskItem; kids: number; act: (below: boolean) => Promise<boolean>; close: () => void}) {
	const [below, setBelow] = useState(true);
	const [busy, setBusy] = useState(false);
	return <Dialog title={`Cancel ${wordOf(task)}`} close={close}><p>It stops at its next step. What it has done stays; a cancelled task cannot go on.</p>
		{kids > 0 && <label className="row"><input type="checkbox" checked={below} onChange={(e) => setBelow(e.target.checked)} />Also the {kids === 1 ? 'task' : `${kids} tasks`} below it</label>}
		<div className="row"><button type="button" className="btn danger" disabled={busy} onClick={async () => { setBusy(true); if (await act(below)) close(); else setBusy(false); }}>{busy ? 'Cancelling' : 'Cancel the task'}</button><button type="button" className="btn" onClick={close}>Keep it</button></div></Dialog>;
}

function CompleteDialog({task, act, close}: {task: Task; act: (facts: object[]) => Promise<boolean>; close: () => void}) {
	const [facts, set] = useState<Record<string, string>>(Object.fromEntries((task.acceptance ?? []).map((a) => [a.id, task.accepted_facts?.find((f) => f.id === a.id)?.status ?? 'met'])));
	const [busy, setBusy] = useState(false);
	return <Dialog title={`Complete ${wordOf(task)}`} close={close}><p className="t2">Say of each fact whether it holds. The server completes the task only when all are met or do not apply.</p>
		{(task.acceptance ?? []).map((a) => <div className="field" key={a.id}><label htmlFor={`fact-${a.id}`}>{a.text}</label><select id={`fact-${a.id}`} className="select" value={facts[a.id]} onChange={(e) => set({...facts, [a.id]: e.target.value})}><option value="met">Met</option><option value="not_applicable">Does not apply</option><option value="unmet">Not met</option><option value="unknown">Not known</option></select></div>)}
		<div className="row"><button type="button" className="btn main-act" disabled={busy} onClick={async () => { setBusy(true); if (await act(Object.entries(facts).map(([id, status]) => ({id, status})))) close(); else setBusy(false); }}>{busy ? 'Completing' : 'Complete the task'}</button><button type="button" className="btn" onClick={close}>Not yet</button></div></Dialog>;
}

function Acts({task, full, kids}: {task: TaskItem; full?: Task; kids: number}) {
	const [busy, act] = useAct();
	const [open, setOpen] = useState('');
	const id = task.task_id, s = full?.status ?? task.status, run = task.current_attempt?.run_id;
	const over = OVER.includes(s), stopping = s === 'cancelling' || full?.cancel_requested === true && !over;
	const spread = {propagation: kids ? 'all' : 'none'};
	const start = () => void act('start_task', 'No attempt was started', {task_id: id});
	const retry = () => void (task.implicit ? act(`api/runs/${run}/retry`, 'No new attempt was started', {}) : act('retry_task', 'No new attempt was started', {task_id: id})).then((good) => { if (good) toast('ok', 'A new attempt has started'); });
	const pause = () => void act('pause_task', 'It was not paused', {task_id: id, ...spread});
	const resume = () => void act('resume_task', 'It does not go on', {task_id: id, ...spread});
	const canRetry = over && s !== 'cancelled' && s !== 'archived', idle = !(full?.attempts ?? []).some((a) => LIVE.includes(a.status)), canStart = !task.implicit && (s === 'accepted' || s === 'queued' && full !== undefined && idle), can = full?.can, canPause = !task.implicit && (can ? can.includes('pause_task') : idle && ['accepted', 'queued', 'waiting_input', 'blocked'].includes(s)) && !stopping;
	useShortcuts([{keys: 'S', does: 'Start or retry the task', run: () => canStart ? start() : canRetry ? retry() : undefined}, {keys: 'Z', does: 'Pause or resume the task', run: () => s === 'paused' ? resume() : canPause ? pause() : undefined}, {keys: 'X', does: 'Cancel the task', run: () => { if (!over && !stopping) setOpen('cancel'); }}]);
	return <span className="tasks-acts">
		{s === 'draft' && <button type="button" className="btn" disabled={busy !== ''} onClick={() => void act('update_task', 'It was not accepted', {task_id: id, status: 'accepted'})}><Check size={13} aria-hidden />{busy ? 'Accepting' : 'Accept'}</button>}
		{canStart && <button type="button" className="btn main-act" disabled={busy !== '' || !full?.agent_id} title={full?.agent_id ? undefined : 'It names no agent'} onClick={start}><Play size={13} aria-hidden />{busy === 'start_task' ? 'Starting' : 'Start'}</button>}
		{!task.implicit && s === 'waiting_input' && (full?.acceptance?.length ?? 0) > 0 && <button type="button" className="btn main-act" onClick={() => setOpen('complete')}><Check size={13} aria-hidden />Complete</button>}
		{s === 'paused' && <button type="button" className="btn" disabled={busy !== ''} onClick={resume}><Play size={13} aria-hidden />{busy ? 'Resuming' : 'Resume'}</button>}
		{canPause && <button type="button" className="btn" disabled={busy !== ''} onClick={pause}><Pause size={13} aria-hidden />{busy === 'pause_task' ? 'Pausing' : 'Pause'}</button>}
		{!over && <button type="button" className="btn" disabled={busy !== '' || stopping} onClick={() => setOpen('cancel')}><Square size={13} aria-hidden />{stopping ? 'Stopping' : 'Cancel'}</button>}
		{canRetry && (!task.implicit || run) && <button type="button" className="btn" disabled={busy !== ''} onClick={retry}><RotateCcw size={13} aria-hidden />{busy.includes('retry') ? 'Starting' : 'Retry'}</button>}
		{!task.implicit && over && s !== 'archived' && <button type="button" className="btn quiet" disabled={busy !== ''} onClick={() => void act('update_task', 'It was not archived', {task_id: id, status: 'archived'})}><Archive size={13} aria-hidden />Archive</button>}
		{open === 'cancel' && <CancelDialog task={task} kids={kids} close={() => setOpen('')} act={(below) => task.implicit ? act(`api/runs/${run}/cancel`, 'It was not cancelled', {}) : act('cancel_task', 'It was not cancelled', {task_id: id, propagation: below && kids ? 'all' : 'none'})} />}
		{open === 'complete' && full && <CompleteDialog task={full} close={() => setOpen('')} act={(acceptance) => act('complete_task', 'It was not completed', {task_id: id, acceptance})} />}
	</span>;
}

const firsts = (edges: Edge[], id: string) => edges.filter((e) => e.status !== 'removed').flatMap((e) => e.kind === 'blocks' && e.target_id === id ? [e.source_id] : e.kind === 'blocked_by' && e.source_id === id ? [e.target_id] : []);
const laters = (edges: Edge[], id: string) => edges.filter((e) => e.status !== 'removed').flatMap((e) => e.kind === 'blocks' && e.source_id === id ? [e.target_id] : e.kind === 'blocked_by' && e.target_id === id ? [e.source_id] : []);

function Depends({task, edges, all, choose}: {task: TaskItem; edges: Edge[]; all: TaskItem[]; choose: (id: string) => void}) {
	const [busy, act] = useAct();
	const before = firsts(edges, task.task_id), after = laters(edges, task.task_id);
	const others = all.filter((t) => t.task_id !== task.task_id && !t.implicit && !before.includes(t.task_id) && !after.includes(t.task_id));
	const card = (id: string, cut?: () => void) => {
		const t = all.find((x) => x.task_id === id);
		return <li key={id} className="tasks-node" data-status={t?.status}><button type="button" className="tasks-node-go" onClick={() => choose(id)}><State status={t?.status ?? ''} /><span>{t ? wordOf(t) : id}</span></button>
			{cut && <button type="button" className="btn quiet icon small" aria-label={`No longer wait for ${t ? wordOf(t) : id}`} title="No longer wait for it" disabled={busy !== ''} onClick={cut}><X size={13} aria-hidden /></button>}</li>;
	};
	return <Part title="Depends on" about="what must end first, and what waits for it"><div className="card tasks-graph">
		<ul aria-label="Must end first">{before.length ? before.map((id) => card(id, task.implicit || OVER.includes(task.status) ? undefined : () => void act('unlink_tasks', 'The relation stays', {from: id, to: task.task_id, kind: 'blocks'}))) : <li className="t3 f12">nothing</li>}</ul>
		<div className="tasks-arrow" aria-hidden data-on={before.length ? '' : undefined} />
		<div className="tasks-node" data-me=""><State status={task.status} /><span>{wordOf(task)}</span></div>
		<div className="tasks-arrow" aria-hidden data-on={after.length ? '' : undefined} />
		<ul aria-label="Waits for it">{after.length ? after.map((id) => card(id)) : <li className="t3 f12">nothing</li>}</ul></div>
	{!task.implicit && !OVER.includes(task.status) && others.length > 0 && <label className="row tasks-link"><ListPlus size={14} aria-hidden className="t3" /><span className="f12 t2">Wait for</span><select className="select" aria-label="Wait for another task" disabled={busy !== ''} value="" onChange={(e) => void act('link_tasks', 'The relation was not made', {from: e.target.value, to: task.task_id, kind: 'blocks'})}><option value="">another task</option>{others.map((t) => <option key={t.task_id} value={t.task_id}>{wordOf(t)}</option>)}</select></label>}</Part>;
}

function Attempts({task, full}: {task: TaskItem; full?: Task}) {
	const runs = useTaskRuns(task.task_id);
	const known = new Map((runs.data ?? []).map((r) => [r.run_id, r]));
	const list = full?.attempts?.length ? [...full.attempts].sort((a, b) => b.attempt_count - a.attempt_count).map((a) => ({id: a.run_id, n: a.attempt_count, status: a.status, what: a.last_error?.message ?? a.completion_summary ?? '', agent: a.agent_id, from: seconds(a.started_at), to: seconds(a.ended_at)}))
		: (runs.data ?? []).map((r) => ({id: r.run_id, n: r.attempt, status: r.status, what: r.error?.message ?? '', agent: r.agent_id, from: r.started_at ?? NaN, to: r.finished_at ?? NaN}));
	if (runs.isPending && !list.length)
		return <Part title="Attempts"><Bones rows={2} /></Part>;
	return <Part title="Attempts" about={list.length ? undefined : 'none yet'}>{runs.error && !list.length ? <ProblemNote what="The attempts could not be read" error={runs.error} /> : list.length > 0 && <div className="card" tabIndex={0} role="group" aria-label="Attempts"><table className="grid-table"><thead><tr><th>#</th><th>State</th><th>What happened</th><th>Agent</th><th className="end">Duration</th><th className="end">Cost</th></tr></thead><tbody>
		{list.map((a) => {
			const r = known.get(a.id);
			return <tr key={a.id} data-run={a.id}><td><A className="link" to={`runs/${a.id}`}>{a.n}</A></td><td><State status={r?.status ?? a.status} engine={r?.engine_status} /></td><td className="tasks-what">{a.what && a.what !== 'succeeded' ? a.what : r?.title ?? ''}</td><td>{a.agent}</td><td className="end num">{Number.isFinite(a.from) ? span(Math.max(0, (Number.isFinite(a.to) ? a.to : Date.now() / 1000) - a.from)) : 'not started'}</td><td className="end num">{typeof r?.cost === 'number' ? money(r.cost) : ''}</td></tr>;
		})}</tbody></table></div>}</Part>;
}

const FACTS: Record<string, string> = {met: 'Met', unmet: 'Not met', not_applicable: 'Does not apply', unknown: 'Not known'};

export function TaskView({id, snapshot, choose}: {id: string; snapshot: Snapshot; choose: (id: string) => void}) {
	const all = tasksOf(snapshot);
	const listed = all.find((t) => t.task_id === id);
	const record = useTask(id, !listed?.implicit);
	const full = record.data;
	const task: TaskItem | undefined = full ? {...listed, ...full} : listed;
	if (!task)
		return record.error ? <div className="page"><ProblemNote what="This task could not be read" error={record.error} /></div> : <div className="page"><Bones rows={5} /></div>;
	const kids = all.filter((t) => t.parent_task_id === id).length;
	const edges = full?.relationships ?? snapshot.tasks?.graph ?? [];
	return <><header className="split-head"><h2>{wordOf(task)}</h2><State status={task.status} /><span className="grow" /><Acts task={task} full={full} kids={kids} /></header>
		<div className="scroll" tabIndex={-1}><div className="split-body">
			{task.title && <p className="tasks-objective">{task.objective}</p>}
			{full?.last_error && <ProblemNote what={full.last_error.code ?? 'It failed'} error={full.last_error.message ?? 'It did not say why.'} />}
			{typeof task.progress === 'number' && <div className="tasks-progress"><progress max={1} value={task.progress} aria-label="Progress" /><span className="num f12">{Math.round(task.progress * 100)} %</span><span className="f12 t2">{full?.current_step ?? full?.message ?? task.phase ?? ''}</span></div>}
			<Facts rows={[['Why it stands so', full?.status_reason ?? task.waiting_on?.description], ['Done by', full?.agent_id ?? undefined], ['Asked by', full?.requested_by ? `${full.requested_by.type} ${full.requested_by.id}` : undefined], ['Priority', full?.priority ?? undefined], ['Kind', task.implicit ? 'a turn of a conversation' : 'a task that was made by a command'], ['Made', <Ago at={seconds(task.created_at)} />], ['Ended', task.ended_at ? <Ago at={seconds(task.ended_at)} /> : undefined]]} />
			<Depends task={task} edges={edges} all={all} choose={choose} />
			<Attempts task={task} full={full} />
			{(full?.acceptance?.length ?? 0) > 0 && <Part title="Done when"><ul className="card">{full!.acceptance!.map((a) => {
				const fact = full!.accepted_facts?.find((f) => f.id === a.id);
				return <li key={a.id} className="item"><State status={fact?.status === 'met' ? 'completed' : fact?.status === 'unmet' ? 'failed' : 'queued'} bare /><span className="grow">{a.text}</span><span className="t3 f12">{fact ? FACTS[fact.status] ?? fact.status : 'Not declared yet'}</span></li>;
			})}</ul></Part>}
		</div></div></>;
}
