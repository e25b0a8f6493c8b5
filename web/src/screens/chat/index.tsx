// The conversation: what was said, what happened, what is said next.
import {useQuery} from '@tanstack/react-query';
import {ArrowDown, Ellipsis, Pencil} from 'lucide-react';
import {useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore} from 'react';
import {A, Bones, Dialog, Empty, Menu, MenuItem, ProblemNote, State} from '../../components/ui';
import {askJson, command} from '../../lib/api';
import {chosenModel, keepModel} from '../../lib/choice';
import type {Artifact} from '../../lib/fold';
import {useTitle} from '../../lib/hooks';
import {useShortcuts} from '../../lib/keys';
import {useLine} from '../../lib/line';
import {go, useFilter} from '../../lib/nav';
import {client, useActions, useAgents} from '../../lib/query';
import {complain, say, toast} from '../../lib/say';
import {Talk, type Turn, endingOf, forkAndSay, randomHex, takeOpening, wholeMessage} from '../../lib/talk';
import type {Agent, RunRecord, Thread} from '../../lib/types';
import {Composer, type ComposerHandle, useChoices} from './Composer';
import {Panel} from './Panel';
import {exportTalk} from './export';
import {Around, Group} from './Turn';
import '../../styles/prose.css';
import './chat.css';

const NEAR = 80; // pixels: who is so near to the end stays there
const HAND_MS = 1500; // a scroll so long after a wheel, a finger or a key is theirs
/** What works without a key, for who has nothing to say yet. */
const TRIALS: [string, string, string][] = [['demo', 'Say hello to the demo', 'Hello'],
	['tools', 'See a tool ask first', 'tool fs.write {"path": "hello.txt", "text": "Hello from UAR"}']];

let shown: Talk | null = null;

/** The conversation of the address. One that was begun here keeps its object when it gets its address. */
function useTalk(session: string, thread: string): Talk {
	const talk = useMemo(() => {
		if (shown && session && shown.session === session && (!thread || shown.conversation === thread) && !shown.left.signal.aborted)
			return shown;
		shown?.left.abort();
		shown = new Talk(session ? thread : `page-${randomHex(12)}`);
		if (session)
			void shown.open(session);
		return shown;
	}, [session, thread]);
	useSyncExternalStore(talk.subscribe, () => talk.version);
	return talk;
}

interface Snapshot { session: {title: string | null; status: string}; queue: {thread_id: string; queued_turns: any[]} | null; threads: {items: Thread[]} }

/** Attempts at the same message stand together, by the run that was the first. */
function groupsOf(turns: Turn[]): Turn[][] {
	const groups = new Map<string, Turn[]>();
	turns.forEach((t, i) => {
		const key = t.root || `unsent ${i}`;
		groups.set(key, [...groups.get(key) ?? [], t]);
	});
	return [...groups.values()];
}

/** Threads that part at a group: those that were forked behind the turn before it, and the one they came from. */
function branchesOf(groups: Turn[][], i: number, threads: Thread[]): {at: number; threads: string[]} | null {
	const mine = groups[i][0].record?.conversation_id, before = groups[i - 1]?.at(-1)?.record;
	if (!mine || (i > 0 && !before))
		return null;
	const forks = (before ? threads.filter((t) => t.forked_turn_id && groups[i - 1].some((x) => x.record?.turn_id === t.forked_turn_id)) : threads.filter((t) => !t.parent_thread_id && t.origin === 'new'))
		.sort((a, b) => a.created_at < b.created_at ? -1 : 1).map((t) => t.thread_id);
	const all = before ? [before.conversation_id, ...forks.filter((t) => t !== before.conversation_id)] : forks;
	return all.length > 1 ? {at: Math.max(0, all.indexOf(mine)), threads: all} : null;
}

function Welcome({start, first}: {start: (agent: string, message: string) => void; first: boolean}) {
	const {agents} = useChoices();
	return <Empty title="What shall be done?"><p>Runs go on when you leave, and are here when you come back.</p>
		{first && <div className="row wrap">{TRIALS.filter(([a]) => agents.some((x) => x.agent_id === a)).map(([agent, words, message]) => <button key={agent} type="button" className="btn" onClick={() => start(agent, message)}>{words}</button>)}</div>}</Empty>;
}

/** Stays at the end with who reads there, until they scroll up. */
function useEnd(talk: Talk) {
	const ref = useRef<HTMLDivElement>(null);
	const follows = useRef(true);
	const [away, setAway] = useState(false);
	const toEnd = useCallback(() => {
		follows.current = true;
		setAway(false);
		ref.current?.scrollTo({top: ref.current.scrollHeight});
	}, []);
	useLayoutEffect(() => { follows.current = true; setAway(false); }, [talk]);
	useEffect(() => {
		const box = ref.current;
		if (!box)
			return;
		let last = box.scrollTop, height = box.scrollHeight, hand = -Infinity;
		const near = () => box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
		const keep = () => {
			if (follows.current)
				box.scrollTop = box.scrollHeight;
			last = box.scrollTop;
			height = box.scrollHeight;
		};
		const seen = () => { // a scroll that no hand made comes from what grew or shrank
			if (near())
				follows.current = true;
			else if (box.scrollTop < last - 2 && performance.now() - hand < HAND_MS)
				follows.current = false;
			if (box.scrollHeight !== height)
				watch();
			keep();
			setAway(!follows.current);
		};
		const touched = () => { hand = performance.now(); };
		for (const name of ['wheel', 'touchmove', 'pointerdown', 'keydown'])
			box.addEventListener(name, touched, {passive: true});
		const grown = new ResizeObserver(keep);
		box.addEventListener('scroll', seen, {passive: true});
		// What is in the box may be replaced, by the conversation once it is read. What shrinks and has its old
		// size again before the frame is painted is no change to the observer, unless it observes anew.
		const watch = () => {
			grown.disconnect();
			for (const e of [box, ...box.children])
				grown.observe(e);
		};
		const replaced = new MutationObserver(watch);
		replaced.observe(box, {childList: true});
		watch();
		return () => {
			box.removeEventListener('scroll', seen);
			for (const name of ['wheel', 'touchmove', 'pointerdown', 'keydown'])
				box.removeEventListener(name, touched);
			replaced.disconnect();
			grown.disconnect();
		};
	}, [talk]);
	return {ref, away, toEnd};
}

/** Earlier runs are opened when their place is seen; what is read stays where it is. */
function Earlier({talk, box}: {talk: Talk; box: React.RefObject<HTMLDivElement | null>}) {
	const ref = useRef<HTMLDivElement>(null);
	const {earlier, loading} = talk;
	useEffect(() => {
		if (!earlier || loading || !ref.current)
			return;
		const watch = new IntersectionObserver((seen) => {
			if (!seen.some((s) => s.isIntersecting) || !box.current)
				return;
			const el = box.current, below = el.scrollHeight - el.scrollTop;
			void talk.openEarlier().then(() => requestAnimationFrame(() => requestAnimationFrame(() => { el.scrollTop = el.scrollHeight - below; })));
		}, {root: box.current, rootMargin: '200px'});
		watch.observe(ref.current);
		return () => watch.disconnect();
	}, [earlier, loading, talk, box]);
	return earlier ? <div ref={ref} className="earlier f12 t3">{loading ? 'Reading what was before' : <button type="button" className="btn small" onClick={() => talk.openEarlier()}>Earlier turns</button>}</div> : null;
}

/** So that a tab among others says what it is about and whether it needs a person. */
function useTabTitle(title: string, active: Turn | undefined): void {
	const state = !active ? '' : active.line === 'away' ? 'Reconnecting' : active.fold.question ? 'Waits for you' : 'Running';
	useTitle([state, title || 'Chat'].filter(Boolean).join(' · '));
}

/** A question is said once, also to who looks elsewhere. */
function useVoice(active: Turn | undefined): void {
	const question = active?.fold.question;
	useEffect(() => {
		if (question && active) {
			say(`${active.agent} asks: ${question.title}`);
			for (const name of ['actions', 'sessions'])
				void client.invalidateQueries({queryKey: [name]});
		}
	}, [question?.id]); // eslint-disable-line
}

function Heading({talk, title, active, rename}: {talk: Talk; title: string; active: Turn | undefined; rename: (title: string) => void}) {
	const [editing, setEditing] = useState<string | null>(null);
	if (editing !== null)
		return <form className="row grow" onSubmit={(e) => { e.preventDefault(); rename(editing.trim()); setEditing(null); }}>
			<input className="input" aria-label="Title" autoFocus maxLength={200} value={editing} onChange={(e) => setEditing(e.target.value)} onKeyDown={(e) => { if (e.key === 'Escape') setEditing(null); }} />
			<button type="submit" className="btn small" disabled={!editing.trim()}>Rename</button></form>;
	const waits = active && endingOf(active);
	return <><h1 className="cut" dir="auto">{title || 'New chat'}</h1>
		{talk.session && <button type="button" className="btn quiet icon small" aria-label="Rename" title="Rename" onClick={() => setEditing(title)}><Pencil size={13} aria-hidden /></button>}
		<span className="grow" />
		{active && <span className="chat-state">{waits?.look === 'wait' ? <State status={active.fold.question ? 'waiting_permission' : active.cancelling ? 'cancelling' : 'lost'} engine={active.record?.engine_status} /> : <State status={active.record?.status ?? 'running'} engine={active.record?.engine_status} />}</span>}</>;
}

/** What "delete" can mean where nothing that was recorded is taken back. */
function Leave({close, archive}: {close: () => void; archive: () => void}) {
	return <Dialog title="A conversation is not deleted" close={close}>
		<p>UAR keeps what happened in a log that is only added to, and has no command that takes something out of it. You can archive the conversation: it leaves the lists, its runs and files stay, and it can be taken out of the archive.</p>
		<p className="t2">To keep less, the setting <code>keep_runs</code> of the server evicts the runs that ended first.</p>
		<div className="row"><button type="button" className="btn main-act" onClick={archive}>Archive it</button><button type="button" className="btn" onClick={close}>Leave it as it is</button></div></Dialog>;
}

export default function Chat({params}: {params: Record<string, string>}) {
	const talk = useTalk(params.session ?? '', params.thread ?? '');
	const {active} = talk;
	const agents = useAgents().data?.agents ?? [];
	const nameOf = useCallback((id: string) => agents.find((a) => a.agent_id === id)?.title ?? id, [agents]);
	const composer = useRef<ComposerHandle>(null);
	const {ref: box, away, toEnd} = useEnd(talk);
	const [artifact, setArtifact] = useState<Artifact | null>(null);
	const [wanted] = useFilter('agent');
	const line = useLine();
	const {session} = talk;
	const snapshot = useQuery({queryKey: ['threads', session], enabled: session !== '' && !talk.problem, queryFn: () => askJson<Snapshot>(`api/sessions/${encodeURIComponent(session)}`)});
	const records = useQuery({queryKey: ['runs', 'session', session], enabled: session !== '' && !talk.problem && !talk.loading,
		queryFn: () => askJson<{runs: RunRecord[]}>(`api/runs?limit=20&session_id=${encodeURIComponent(session)}`)});
	useEffect(() => {
		if (records.data && !talk.loading)
			talk.take(records.data.runs);
	}, [records.data, talk, talk.loading]);
	const waiting = useActions();
	const pending = useMemo(() => new Map((waiting.data?.actions ?? []).map((a) => [a.action_id, a])), [waiting.data]);
	const firstMessage = talk.turns[0]?.message.split('\n')[0].slice(0, 80) ?? '';
	const title = snapshot.data?.session.title ?? (firstMessage || (talk.turns[0]?.id && !talk.loading ? `Run of ${nameOf(talk.turns[0].agent)}` : ''));
	useTabTitle(title, active);
	useVoice(active);
	useEffect(() => { composer.current?.focus(); setArtifact(null); }, [talk]);
	const queued = (snapshot.data?.queue?.thread_id === talk.conversation ? snapshot.data?.queue.queued_turns ?? [] : []) as {queued_turn_id: string; run_id: string; input_preview?: string}[];

	const send = useCallback((agent: Agent, message: string, inputs: Record<string, unknown>) => {
		talk.send(agent.agent_id, message, inputs, (turn) => {
			if (turn.refusal && shown === talk)
				composer.current?.fill(message);
			if (talk.session && shown === talk && !location.pathname.includes(`/c/${talk.session}`))
				go(`c/${talk.session}`, {replace: true});
		});
		toEnd();
	}, [talk, toEnd]);
	useEffect(() => {
		const begun = params.session ? null : takeOpening();
		if (begun) {
			keepModel(talk.conversation, begun.agent.agent_id, chosenModel('home', begun.agent.agent_id));
			keepModel('home', begun.agent.agent_id, '');
			send(begun.agent, begun.message, begun.inputs);
		}
	}, [params.session, send, talk]);
	const stop = (turn: Turn) => { talk.cancel(turn).catch((e) => complain('It was not stopped', e)); };
	const retry = useCallback((turn: Turn) => { talk.retry(turn).catch((e) => complain('No new attempt was made', e)); }, [talk]);
	/** Another message in the place of one, or the same again: a thread of its own from there on. */
	const again = useCallback(async (turn: Turn, message: string | null) => {
		try {
			const all = groupsOf(talk.turns), i = all.findIndex((g) => g.includes(turn));
			if (i === 0 && talk.earlier)
				await talk.openEarlier();
			const now = groupsOf(talk.turns), at = now.findIndex((g) => g.includes(turn));
			const thread = await forkAndSay(talk.session, talk.conversation, now[at - 1]?.at(-1), turn.agent, message ?? await wholeMessage(turn));
			await client.invalidateQueries({queryKey: ['threads']});
			if (shown === talk)
				go(`c/${talk.session}/${thread}`);
			say('A branch was made');
		} catch (e) {
			complain('No branch was made', e);
		}
	}, [talk]);
	const change = async (what: string, body: object) => {
		try {
			await command('update_session', {session_id: session, ...body});
			toast('ok', what);
		} catch (e) {
			complain(`${what}: refused`, e);
		}
		for (const name of ['sessions', 'threads'])
			void client.invalidateQueries({queryKey: [name]});
	};
	const decide = (selector: string) => box.current?.querySelector<HTMLElement>(`.question[data-state=pending] ${selector}`)?.click();
	useShortcuts([{keys: 'A', does: 'Allow once', run: () => decide('[data-allow]')}, {keys: 'D', does: 'Deny', run: () => decide('[data-deny]')},
		{keys: '/', does: 'Write a message', run: () => composer.current?.focus()}]);
	const groups = groupsOf(talk.turns);
	const artifacts = talk.turns.flatMap((t) => t.fold.blocks.flatMap((b) => b.artifact ? [b.artifact] : []));
	const versions = artifact ? artifacts.filter((a) => a.artifact_id === artifact.artifact_id || (a.title === artifact.title && a.artifact_type === artifact.artifact_type)) : [];
	const around = useMemo(() => ({open: setArtifact, pending, pendingKnown: waiting.isSuccess, retry, again: session ? again : null}), [pending, waiting.isSuccess, retry, again, session]);
	const threads = (snapshot.data?.threads.items ?? []).filter((t) => !t.archived);
	const branches = (i: number) => {
		const found = threads.length > 1 ? branchesOf(groups, i, threads) : null;
		return found && {...found, go: (thread: string) => go(`c/${session}/${thread}`)};
	};
	const [leaving, setLeaving] = useState(false);
	const save = (form: 'md' | 'json') => { exportTalk(talk, title, form).catch((e) => complain('It was not exported', e)); };

	return <div className="chat" data-panel={artifact ? '' : undefined}>
		<div className="talk" onDragOver={(e) => e.preventDefault()} onDrop={(e) => { e.preventDefault(); composer.current?.attach(e.dataTransfer.files); }}>
			<header className="top"><Heading talk={talk} title={title} active={active} rename={(t) => change('Renamed', {title: t})} />
				{session && <Menu label="More" button={<Ellipsis size={16} aria-hidden />}>
					<MenuItem onClick={() => change(snapshot.data?.session.status === 'archived' ? 'Taken out of the archive' : 'Archived', {archived: snapshot.data?.session.status !== 'archived'})}>{snapshot.data?.session.status === 'archived' ? 'Take out of the archive' : 'Archive'}</MenuItem>
					<MenuItem onClick={() => save('md')}>Export as Markdown</MenuItem>
					<MenuItem onClick={() => save('json')}>Export as JSON</MenuItem>
					{snapshot.data?.session.status !== 'archived' && <MenuItem onClick={() => setLeaving(true)}>Delete…</MenuItem>}</Menu>}</header>
			<div className="scroll thread" ref={box} tabIndex={0} role="region" aria-label="Conversation"><div className="flow">
				{talk.problem ? <><ProblemNote what="This conversation could not be opened" error={talk.problem} /><A className="btn" to="c">New chat</A></> : null}
				<Earlier talk={talk} box={box} />
				{talk.loading && !talk.turns.length && <Bones rows={4} />}
				{!talk.loading && !talk.turns.length && !talk.problem && <Welcome first start={(agent, message) => composer.current?.say(agent, message)} />}
				<Around.Provider value={around}>{groups.map((g, i) => <Group key={g[0].root || `new ${talk.turns.indexOf(g[0])}`} talk={talk} turns={g} nameOf={nameOf} branches={branches(i)} />)}</Around.Provider>
			</div></div>
			{away && <button type="button" className="btn latest" onClick={() => { toEnd(); composer.current?.focus(); }}><ArrowDown size={14} aria-hidden />Jump to latest</button>}
			{!line.good && active && <p className="unseen">Reconnecting</p>}
			<Composer ref={composer} talk={talk} version={talk.version} active={active} first={talk.turns.at(-1)?.agent ?? ''} wanted={wanted} send={send} stop={stop} queued={queued} />
		</div>
		{leaving && <Leave close={() => setLeaving(false)} archive={() => { setLeaving(false); void change('Archived', {archived: true}); }} />}
		{artifact && <Panel artifact={artifact} versions={versions.includes(artifact) ? versions : [artifact]} show={setArtifact} close={() => setArtifact(null)} />}
	</div>;
}

