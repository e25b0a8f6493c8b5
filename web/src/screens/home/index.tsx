// Home: what can be asked, what goes on, what waits.
import {Ban, Bot, ChevronRight, FolderOpen, MessageSquare} from 'lucide-react';
import {isOwn, sessionState, titleOf} from '../../components/Rail';
import {A, Ago, Bones, Empty, ProblemNote, State, Top} from '../../components/ui';
import {seconds} from '../../lib/format';
import {useTitle} from '../../lib/hooks';
import {go} from '../../lib/nav';
import {useActions, useAgents, useSessions} from '../../lib/query';
import {heading} from '../../lib/fold';
import type {Agent} from '../../lib/types';
import {Talk, open} from '../../lib/talk';
import {leads} from '../../routes';
import {Composer} from '../chat/Composer';
import './home.css';

const RECENT = 8, WAITING = 4;

function Card({agent}: {agent: Agent}) {
	return <A className="home-card" to={`c?agent=${encodeURIComponent(agent.agent_id)}`}>
		<div className="row"><span className="home-ava" aria-hidden><Bot size={14} /></span><strong className="cut grow">{agent.title}</strong>{agent.model ? <span className="f11 t3 mono cut">{agent.model}</span> : null}</div>
		<p className="f12 t2 home-about">{agent.description}</p>
		{agent.takes_working_dir && <p className="f11 t3 row"><FolderOpen size={12} aria-hidden />works in a directory</p>}</A>;
}

/** Why it cannot run, and what to do about it. */
function Unable({agents}: {agents: Agent[]}) {
	return <div className="card home-unable">{agents.map((a) => <div key={a.agent_id} className="home-card" data-off=""><span className="row"><Ban size={14} aria-hidden className="t3" /><span className="strong grow cut">{a.title}</span><span className="f12 t3">cannot run yet</span></span>
		<span className="f12 t2 home-why">{a.reason ?? ''} {a.next_step ?? ''}</span></div>)}</div>;
}

const nothing = new Talk('home');

/** What is written here begins a conversation. */
function Start() {
	return <section className="home-start" aria-label="Start a conversation">
		<Composer id="start-message" talk={nothing} version={0} active={undefined} first="" wanted="" queued={[]} stop={() => undefined} start="Start" hint="What shall be done?"
			send={(agent, message, inputs) => { open({agent, message, inputs}); go('c'); }} /></section>;
}

export default function Home() {
	const agents = useAgents(), sessions = useSessions(), actions = useActions();
	useTitle('Home');
	const list = sessions.data?.sessions.filter((s) => s.status !== 'archived' && isOwn(s)) ?? [];
	const waiting = actions.data?.actions ?? [];
	const able = (agents.data?.agents ?? []).filter((a) => a.runnable !== false), unable = (agents.data?.agents ?? []).filter((a) => a.runnable === false);
	return <><Top title="Home"><A className="btn" to="c"><MessageSquare size={14} aria-hidden />New chat</A></Top>
		<div className="scroll"><div className="page home">
			<Start />
			<div className="home-left">{waiting.length > 0 && <section><div className="part-head"><h2>Waits for you</h2><span className="badge ask">{waiting.length}</span><span className="grow" />{leads('inbox') && <A className="link f12" to="inbox">Inbox</A>}</div>
				<div className="card">{waiting.slice(0, WAITING).map((a) => <A key={a.action_id} className="item" to={leads('inbox') ? `inbox?action=${encodeURIComponent(a.action_id)}` : `c/${a.session_id}`}>
					<State status="waiting_permission" bare /><span className="grow cut">{heading(a.prompt)}</span><span className="f12 t3">{a.agent_id}</span><span className="f12 t3"><Ago at={a.requested_at} /></span><ChevronRight size={14} className="t3" aria-hidden /></A>)}</div></section>}
			<section><div className="part-head"><h2>Recent conversations</h2></div>
				{sessions.isPending ? <Bones /> : sessions.error ? <ProblemNote what="The conversations could not be read" error={sessions.error} /> : list.length === 0
					? <div className="card"><Empty title="No conversation yet"><p>The demo needs no key and no network.</p>
						<button type="button" className="btn main-act" onClick={() => go('c?agent=demo')}>Talk to the demo</button></Empty></div>
					: <div className="card">{list.slice(0, RECENT).map((s) => {
						const {status, word} = sessionState(s);
						return <A key={s.session_id} className="item" to={`c/${s.session_id}`}><State status={status} bare /><span className="grow"><span className="cut strong">{titleOf(s)}</span>
							<span className="cut f11 t3">{[word, s.agent_id, s.runs === 1 ? '1 turn' : s.runs ? `${s.runs} turns` : ''].filter(Boolean).join(' · ')}</span></span><span className="f12 t3"><Ago at={seconds(s.updated_at)} /></span></A>;
					})}</div>}</section></div>
			<section><div className="part-head"><h2>Agents</h2><span className="f12 t3">{able.length} can run</span><span className="grow" />{leads('agents') && <A className="link f12" to="agents">Manage</A>}</div>
				{agents.isPending ? <Bones /> : agents.error ? <ProblemNote what="The agents could not be read" error={agents.error} /> : <div className="home-cards">{able.map((a) => <Card key={a.agent_id} agent={a} />)}</div>}
				{unable.length > 0 && <Unable agents={unable} />}
				{(agents.data?.broken ?? []).map((b, i) => <ProblemNote key={i} what={`A definition is broken: ${b.agent_id ?? b.file ?? ''}`} error={b.error ?? 'unknown'} />)}
			</section>
		</div></div></>;
}
