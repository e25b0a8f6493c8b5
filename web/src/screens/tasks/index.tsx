// Tasks: sessions with their threads and tasks; what depends on what, each attempt, and what may be done.
import {MessageSquare, Pause, Play, Plus} from 'lucide-react';
import {useMemo, useState} from 'react';
import {Facts, Find, Part, Pick, Split} from '../../components/Split';
import {A, Ago, Bones, Dialog, Empty, ProblemNote, Segment, State, Top} from '../../components/ui';
import {command} from '../../lib/api';
import {seconds} from '../../lib/format';
import {useTitle} from '../../lib/hooks';
import {useShortcuts} from '../../lib/keys';
import {go, useFilter} from '../../lib/nav';
import {client, useAgents} from '../../lib/query';
import {complain, toast} from '../../lib/say';
import type {Session} from '../../lib/types';
import {leads} from '../../routes';
import {type Snapshot, type Task, tasksOf, threadWord, useFollow, useSessionPages, useSnapshot, useSnapshots, useTaskPages, wordOf} from './data';
import {TaskView} from './Task';
import {type Chosen, Tree} from './Tree';
import './tasks.css';

function NewTask({session, close}: {session: string; close: () => void}) {
	const agents = useAgents().data?.agents.filter((a) => a.runnable !== false) ?? [];
	const [objective, setObjective] = useState(''), [title, setTitle] = useState(''), [agent, setAgent] = useState('');
	const [here, setHere] = useState(session !== ''), [start, setStart] = useState(true);
	const [busy, setBusy] = useState(false);
	const [wrong, setWrong] = useState<unknown>(null);
	const [key] = useState(() => crypto.randomUUID());
	const make = async () => {
		setBusy(true);
		setWrong(null);
		try {
			const {task} = await command<{task: Task}>('create_task', {objective, ...(title && {title}), ...(agent && {agent_id: agent, input: {message: objective}}), ...(here && session && {session_id: session}), idempotency_key: key});
			close();
			go(`tasks/${task.session_id}?task=${task.task_id}`);
			toast('ok', 'The task was made');
			if (start && agent)
				await command('start_task', {task_id: task.task_id}).catch((e) => complain('Its first attempt was not started', e));
			void client.invalidateQueries({queryKey: ['sessions']});
		} catch (e) {
			setWrong(e);
			setBusy(false);
		}
	};
	return <Dialog title="New task" close={close}><form className="tasks-form" onSubmit={(e) => { e.preventDefault(); void make(); }}>
		<div className="field"><label htmlFor="task-objective">What shall be reached</label><textarea id="task-objective" className="area" rows={3} required maxLength={2048} value={objective} onChange={(e) => setObjective(e.target.value)} /></div>
		<div className="field"><label htmlFor="task-title">Title</label><input id="task-title" className="input" maxLength={512} value={title} onChange={(e) => setTitle(e.target.value)} /></div>
		<div className="field"><label htmlFor="task-agent">Who does it</label><select id="task-agent" className="select" value={agent} onChange={(e) => setAgent(e.target.value)}><option value="">nobody yet</option>{agents.map((a) => <option key={a.agent_id} value={a.agent_id}>{a.title}</option>)}</select></div>
		{session && <label className="row"><input type="checkbox" checked={here} onChange={(e) => setHere(e.target.checked)} />In the session that is chosen</label>}
		{agent && <label className="row"><input type="checkbox" checked={start} onChange={(e) => setStart(e.target.checked)} />Start it at once</label>}
		{wrong !== null && <ProblemNote what="The task was not made" error={wrong} />}
		<div className="row"><button type="submit" className="btn main-act" disabled={busy || !objective.trim()}>{busy ? 'Making it' : 'Make the task'}</button><button type="button" className="btn" onClick={close}>Cancel</button></div>
	</form></Dialog>;
}

function QueueAct({thread, paused}: {thread: string; paused: boolean}) {
	const [busy, setBusy] = useState(false);
	return <button type="button" className="btn" disabled={busy} onClick={async () => {
		setBusy(true);
		try {
			await command(paused ? 'resume_queue' : 'pause_queue', {thread_id: thread});
			await client.invalidateQueries({queryKey: ['sessions']});
		} catch (e) {
			complain(paused ? 'The queue does not go on' : 'The queue was not paused', e);
		}
		setBusy(false);
	}}>{paused ? <Play size={13} aria-hidden /> : <Pause size={13} aria-hidden />}{busy ? (paused ? 'Resuming' : 'Pausing') : paused ? 'Resume the queue' : 'Pause the queue'}</button>;
}

function SessionView({snapshot, listed, thread, choose}: {snapshot: Snapshot; listed?: Session; thread: string; choose: (c: Chosen) => void}) {
	const s = snapshot.session, id = s.session_id;
	const one = snapshot.threads.items.find((t) => t.thread_id === thread);
	const tasks = tasksOf(snapshot).filter((t) => !thread || t.thread_id === thread);
	const queue = snapshot.queue && (!thread || snapshot.queue.thread_id === thread) ? snapshot.queue : null;
	const title = one ? threadWord(one) : s.title || listed?.title || 'Untitled';
	return <><header className="split-head"><h2>{title}</h2>{one && <State status={one.status} />}<span className="grow" />
		{queue && <QueueAct thread={queue.thread_id} paused={queue.resume_state === 'paused'} />}
		{s.counts.turns > 0 && leads(`c/${id}`) && <A className="btn" to={thread && snapshot.active_thread?.thread_id !== thread ? `c/${id}/${thread}` : `c/${id}`}><MessageSquare size={13} aria-hidden />Chat</A>}</header>
	<div className="scroll" tabIndex={-1}><div className="split-body">
		<Facts rows={one ? [['Thread of', <A className="link" to={`tasks/${id}`}>{s.title || listed?.title || 'Untitled'}</A>], ['Turns', String(one.turn_count)], ['Changed', <Ago at={seconds(one.updated_at)} />]]
			: [['Threads', String(s.counts.threads)], ['Turns', String(s.counts.turns)], ['Tasks', String(s.counts.tasks)], ['Artifacts', s.counts.artifacts ? String(s.counts.artifacts) : undefined], ['Incidents', s.counts.incidents ? String(s.counts.incidents) : undefined], ['Agent', s.agent_id ?? listed?.agent_id], ['Made', <Ago at={seconds(s.created_at)} />], ['Changed', <Ago at={seconds(s.updated_at)} />]]} />
		{queue && (queue.length > 0 || queue.resume_state === 'paused') && <Part title="Queue" about={queue.resume_state === 'paused' ? `paused${queue.pause_reason ? `: ${queue.pause_reason}` : ''}` : `${queue.length} waiting`}>{queue.queued_turns.length > 0 && <ol className="card">{queue.queued_turns.map((q, i) => <li key={i} className="item"><State status="queued" bare /><span className="grow cut">{q.input_preview || 'a turn'}</span><span className="t3 f12">{q.agent_id}</span></li>)}</ol>}</Part>}
		<Part title="Tasks" about={tasks.length ? undefined : 'none'}>{tasks.length > 0 && <div className="card">{tasks.map((t) => <A key={t.task_id} className="item" to={`tasks/${id}?task=${t.task_id}`} onClick={(e) => { if (!e.metaKey && !e.ctrlKey && !e.shiftKey) { e.preventDefault(); choose({session: id, thread: '', task: t.task_id}); } }}><State status={t.status} bare /><span className="grow"><span className="cut strong tasks-line">{wordOf(t)}</span>{t.last_error?.message && <span className="cut f12 tasks-line tasks-err">{t.last_error.message}</span>}</span>{t.implicit && <span className="badge">turn</span>}<span className="f12 t3"><Ago at={seconds(t.created_at)} /></span></A>)}</div>}</Part>
	</div></div></>;
}

function TaskList({status, chosen, choose}: {status: string; chosen: string; choose: (c: Chosen) => void}) {
	const {data, error, isPending, hasNextPage, isFetchingNextPage, fetchNextPage, refetch} = useTaskPages(status);
	const tasks = data?.pages.flatMap((p) => p.tasks) ?? [];
	if (isPending)
		return <Bones rows={6} />;
	if (error)
		return <div className="page"><ProblemNote what="The tasks could not be read" error={error} retry={() => void refetch()} /></div>;
	if (!tasks.length)
		return <Empty title={status ? 'No task is so' : 'No task yet'}><p>{status ? 'Another state may have some.' : 'A task outlives its attempts: it can wait for others, be paused and tried again.'}</p></Empty>;
	return <div className="split-rows" tabIndex={-1}><ul aria-label="Tasks">{tasks.map((t) => <li key={t.task_id}><A className="split-row" aria-current={t.task_id === chosen} to={`tasks/${t.session_id}?task=${t.task_id}`} onClick={(e) => { if (!e.metaKey && !e.ctrlKey && !e.shiftKey) { e.preventDefault(); choose({session: t.session_id, thread: '', task: t.task_id}); } }}><State status={t.status} bare /><span className="grow"><span className="cut strong">{wordOf(t)}</span><span className="cut f11 t3">{t.status_reason ?? t.agent_id ?? ''}</span></span>{t.attempt_count > 1 && <span className="f11 t3">{t.attempt_count} tries</span>}<span className="f11 t3"><Ago at={seconds(t.updated_at as string)} /></span></A></li>)}</ul>
		{hasNextPage && <button type="button" className="btn tasks-older" disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>{isFetchingNextPage ? 'Reading' : 'Older tasks'}</button>}</div>;
}

const STATES: [string, string][] = [['', 'Any state'], ['accepted', 'Ready to start'], ['blocked', 'Blocked'], ['running', 'Running'], ['waiting_input', 'Waits for you'], ['paused', 'Paused'], ['completed', 'Succeeded'], ['failed', 'Failed'], ['cancelled', 'Cancelled'], ['draft', 'Draft'], ['archived', 'Archived']];

export default function Tasks({params}: {params: Record<string, string>}) {
	const session = params.session ?? '';
	const [task] = useFilter('task'), [thread] = useFilter('thread'), [q, setQ] = useFilter('q'), [live, setLive] = useFilter('live'), [view, setView] = useFilter('view'), [state, setState] = useFilter('state');
	const [making, setMaking] = useState(false);
	const [opened, setOpened] = useState<Set<string>>(() => new Set(session ? [session] : []));
	const [shut, setShut] = useState('');
	const pages = useSessionPages(q, live);
	const snapshot = useSnapshot(session);
	const listed = pages.data?.pages.flatMap((p) => p.sessions) ?? [];
	const own = snapshot.data?.session;
	const sessions = useMemo(() => own && !listed.some((s) => s.session_id === own.session_id) && !q && !live
		? [{session_id: own.session_id, title: own.title, agent_id: own.agent_id ?? '', status: own.status, runs: own.counts.turns, live_runs: 0, waiting_runs: 0, created_at: own.created_at, updated_at: own.updated_at} as Session, ...listed] : listed, [pages.data, own?.session_id]); // eslint-disable-line
	const open = useMemo(() => { const all = new Set(opened); if (session && shut !== session) all.add(session); return all; }, [opened, session, shut]);
	const snapshots = useSnapshots([...open]);
	const chosenTask = task ? tasksOf(snapshot.data).find((t) => t.task_id === task) : undefined;
	useTitle(chosenTask ? `${wordOf(chosenTask)} · Tasks` : 'Tasks');
	useFollow(session, snapshot.data ? String(snapshot.data.cursor) : '');
	const choose = (c: Chosen) => {
		const query = new URLSearchParams({...(view && {view}), ...(state && {state}), ...(q && {q}), ...(live && {live}), ...(c.thread && {thread: c.thread}), ...(c.task && {task: c.task})}).toString();
		setShut('');
		go(`tasks/${c.session}${query ? `?${query}` : ''}`);
	};
	const toggle = (id: string) => {
		setShut(open.has(id) && id === session ? id : '');
		setOpened((o) => { const n = new Set(o); if (open.has(id)) n.delete(id); else n.add(id); return n; });
	};
	useShortcuts([{keys: 'N', does: 'New task', run: () => setMaking(true)}]);
	const flat = view === 'tasks';
	return <><Top title="Tasks"><button type="button" className="btn" onClick={() => setMaking(true)}><Plus size={14} aria-hidden />New task</button></Top>
		<Split label="Tasks" back={`tasks${view ? `?view=${view}` : ''}`} chosen={session !== ''} tools={<><Segment label="View" value={flat ? 'tasks' : 'tree'} options={[['tree', 'Sessions'], ['tasks', 'Tasks']]} set={(v) => setView(v === 'tree' ? '' : v)} />
			{flat ? <Pick label="State" value={state} set={setState} options={STATES} /> : <><Find label="Find a session" value={q} set={setQ} /><Pick label="Which sessions" value={live} set={setLive} options={[['', 'All'], ['1', 'At work']]} /></>}</>}
			list={flat ? <TaskList status={state} chosen={task} choose={choose} /> : pages.isPending ? <Bones rows={6} /> : pages.error ? <div className="page"><ProblemNote what="The sessions could not be read" error={pages.error} retry={() => void pages.refetch()} /></div>
				: sessions.length === 0 ? <Empty title={q || live ? 'No session fits' : 'No session yet'}><p>{q || live ? 'Other words, or all of them, may.' : 'A conversation or a task makes one.'}</p>{!q && !live && <button type="button" className="btn main-act" onClick={() => setMaking(true)}>New task</button>}</Empty>
					: <Tree sessions={sessions} snapshots={snapshots} opened={open} toggle={toggle} chosen={{session, thread, task}} choose={choose} more={() => { if (pages.hasNextPage && !pages.isFetching) void pages.fetchNextPage(); }} busy={pages.isFetching} />}>
			{!session ? <Empty title="Choose a session or a task"><p>Threads, tasks, their attempts and what waits for what.</p></Empty>
				: snapshot.error ? <div className="page"><ProblemNote what="This session could not be read" error={snapshot.error} retry={() => void snapshot.refetch()} /></div>
					: !snapshot.data ? <div className="page"><Bones rows={5} /></div>
						: task ? <TaskView key={task} id={task} snapshot={snapshot.data} choose={(id) => choose({session, thread: '', task: id})} /> : <SessionView snapshot={snapshot.data} listed={listed.find((s) => s.session_id === session)} thread={thread} choose={choose} />}
		</Split>{making && <NewTask session={session} close={() => setMaking(false)} />}</>;
}
