// Children.tsx - child agents of a run's conversation, and theirs: who was asked what, how it stands, what it answered.
import {useQuery} from '@tanstack/react-query';
import {GitBranch} from 'lucide-react';
import {A, Ago, Bones, Empty, ProblemNote, State} from '../../components/ui';
import {command} from '../../lib/api';
import {plain, seconds} from '../../lib/format';
import type {RunRecord} from '../../lib/types';

export interface Child {
	subagent_id: string; parent: {session_id: string; thread_id: string; run_id?: string}; child_session_id: string; run_id: string | null; agent_id: string; role: string; nickname: string | null;
	status: string; status_reason: string | null; depth: number; turns: number; open_turns: number; answer: string | null; last_error: {code?: string; message?: string} | null; created_at: string;
}

/** Those of the whole conversation: a child may outlive the run that started it. */
export const useChildren = (run: RunRecord | undefined) => useQuery({queryKey: ['runs', 'children', run?.session_id], enabled: !!run, retry: false,
	queryFn: async () => (await command<{subagents: Child[]}>('list_subagents', {session_id: run!.session_id})).subagents});

const WORDS: Record<string, [string, string]> = {spawned: ['queued', 'About to start'], running: ['running', 'Running'], waiting: ['waiting_permission', 'Waits for you'], completed: ['completed', 'Succeeded'],
	failed: ['failed', 'Failed'], cancelled: ['cancelled', 'Cancelled'], closed: ['cancelled', 'Closed']};

/** Each below the one that started it. */
function below(all: Child[], session: string): Child[] {
	return all.filter((c) => c.parent.session_id === session);
}

function Branch({all, c, run}: {all: Child[]; c: Child; run: string}) {
	const mine = below(all, c.child_session_id), [state] = WORDS[c.status] ?? [c.status];
	return <li><div className="item child" data-child={c.subagent_id}><GitBranch size={16} aria-hidden className="k-sub" />
		<span className="grow"><span className="row wrap"><span className="strong">{plain(c.nickname || c.role || c.agent_id)}</span><span className="f12 t3">{c.agent_id}{c.turns > 1 ? `, ${c.turns} turns` : ''}{c.parent.run_id === run ? ', of this run' : ''}</span></span>
			{(c.answer || c.last_error?.message || c.status_reason) && <span className="block f12 t2 child-said">{plain(String(c.last_error?.message ?? c.answer ?? c.status_reason).slice(0, 300))}</span>}</span>
		<span title={c.status}><State status={state} /></span><span className="f12 t3"><Ago at={seconds(c.created_at)} /></span>
		{c.run_id && <A className="btn" to={`runs/${c.run_id}`} aria-label={`Run of ${plain(c.nickname || c.agent_id)}`}>Run</A>}</div>
		{mine.length > 0 && <ul className="children">{mine.map((x) => <Branch key={x.subagent_id} all={all} c={x} run={run} />)}</ul>}</li>;
}

export function Children({run}: {run: RunRecord}) {
	const {data, error, isPending, refetch} = useChildren(run);
	return <div className="page evidence"><section><div className="part-head"><h2>Child agents</h2><span className="t3 f12">of this conversation, and theirs</span></div>
		{isPending ? <Bones rows={3} /> : error ? <ProblemNote what="The child agents could not be read" error={error} retry={() => void refetch()} />
			: data.length ? <ul className="card" aria-label="Child agents">{below(data, run.session_id).map((c) => <Branch key={c.subagent_id} all={data} c={c} run={run.run_id} />)}</ul>
				: <div className="card"><Empty title="No child agent"><p>An agent may start others where its definition allows it; each has a conversation of its own.</p></Empty></div>}</section></div>;
}
