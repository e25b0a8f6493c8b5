// Rights.tsx - what a run's conversation may do and did: its mode, what rules decided, permissions that hold, the
// boundary of its commands, and its processes, which can be given input and ended.
import {useQuery} from '@tanstack/react-query';
import {Keyboard, ShieldAlert, Square, Terminal} from 'lucide-react';
import {useState} from 'react';
import {Grants} from '../../components/Grants';
import {Facts, Part} from '../../components/Split';
import {A, Ago, Bones, Dialog, Empty, ProblemNote, State} from '../../components/ui';
import {askJson, command} from '../../lib/api';
import {bytes, plain, seconds, span} from '../../lib/format';
import {client} from '../../lib/query';
import {complain, toast} from '../../lib/say';
import type {RunRecord} from '../../lib/types';

interface Process { process_id: string; run_id: string; command: string; cwd: string; network?: string; tty: boolean; destructive: boolean; status: string; reason?: string; exit_code?: number; output_bytes: number; input_bytes: number; started_at: string; ended_at?: string }
interface Profile { profile_id: string; mode: string; cwd?: string; write_roots: string[]; read_roots: string[]; network: unknown; process_limits: Record<string, number>; enforced: boolean; gaps: unknown[]; applied: number }
interface Summary {
	permission_sandbox_summary: {decisions: {decision_id: string; run_id: string; name: string; resource?: string; status: string; decision_source?: string; decision_reason?: string; mode?: string; destructive: boolean; at: string}[]; policies: {policy_id: string; scope: string; mode?: string; at: string}[]; omitted: number;
		sandbox?: {profiles: Profile[]; violations: {violation_id: string; kind: string; target: string; attempted?: string; action_taken?: string; run_id?: string; at: string}[]}};
	execution_environment?: {active_processes: Process[]; ended_processes: Process[]};
}

const MODES: [string, string][] = [['default', 'As tools and rules say'], ['untrusted', 'Ask for all but reads'], ['on_request', 'Ask for the network and what cannot be undone'], ['on_failure', 'Ask again after a failure'], ['plan', 'Read and plan only'], ['never', 'Never ask: deny instead'], ['auto', 'Let a classifier decide'], ['bypass', 'Ask nothing']];
const SOURCES: Record<string, string> = {host_policy: 'the operator’s rules', rule: 'a rule', mode: 'the mode', classifier: 'the classifier', human: 'a person', hook: 'a hook'};
const ENDS: Record<string, string> = {running: 'running', completed: 'completed', failed: 'failed', terminated: 'cancelled', terminating: 'cancel_requested', lost: 'lost'};

const modeOf = (network: unknown) => typeof network === 'string' ? network : String((network as {mode?: string} | null)?.mode ?? 'unknown');
const LOOK_MS = 1000; // a process may outlive its run, whose stream then says nothing of it
const renew = () => void client.invalidateQueries({queryKey: ['rights']});

/** What a process reads; a secret is not written to the log. */
function Input({p, close}: {p: Process; close: () => void}) {
	const [text, set] = useState(''), [secret, hide] = useState(false), [busy, setBusy] = useState(false);
	return <Dialog title="Input of the process" close={close}><form className="field" onSubmit={(e) => {
		e.preventDefault();
		setBusy(true);
		command('write_process_stdin', {process_id: p.process_id, input: `${text}\n`, ...(secret ? {secret: true} : {})}).then(() => { toast('ok', 'The process has it'); renew(); close(); }, (x) => { complain('It was not written', x); setBusy(false); });
	}}><code className="cut">{plain(p.command)}</code><label htmlFor="run-stdin">One line</label><input id="run-stdin" className="input mono" data-first type={secret ? 'password' : 'text'} value={text} onChange={(e) => set(e.target.value)} />
		<label className="row"><input type="checkbox" checked={secret} onChange={(e) => hide(e.target.checked)} />It is a secret: do not record it</label>
		<div className="row"><button type="submit" className="btn main-act" disabled={busy}>{busy ? 'Writing' : 'Write it'}</button></div></form></Dialog>;
}

function Row({p, write}: {p: Process; write: () => void}) {
	const [busy, setBusy] = useState(false), at = seconds(p.started_at), end = p.ended_at ? seconds(p.ended_at) : NaN, runs = p.status === 'running' || p.status === 'terminating';
	const stop = async () => {
		setBusy(true);
		try {
			await command('terminate_process', {process_id: p.process_id, reason: 'ended on the page'});
			toast('ok', 'It is being ended');
		} catch (e) {
			complain('It was not ended', e);
			setBusy(false);
		}
		renew();
	};
	return <li className="item run-process" data-process={p.process_id}><Terminal size={16} aria-hidden className="t3" /><span className="grow"><code className="block">{plain(p.command)}</code>
		<span className="block f12 t3">{[p.cwd, p.network && p.network !== 'none' ? `network: ${p.network}` : 'no network', p.tty ? 'with a terminal' : '', `${bytes(p.output_bytes)} out`, p.input_bytes ? `${bytes(p.input_bytes)} in` : '', Number.isFinite(end) ? span(Math.max(0, end - at)) : '', p.exit_code !== undefined ? `exit code ${p.exit_code}` : '', p.reason].filter(Boolean).join(' · ')}</span></span>
		{p.destructive && <span className="badge err">may destroy</span>}<State status={ENDS[p.status] ?? p.status} /><span className="f12 t3"><Ago at={at} /></span>
		{runs && <><button type="button" className="btn" aria-label={`Write to ${p.command}`} onClick={write}><Keyboard size={13} aria-hidden />Write…</button><button type="button" className="btn danger" disabled={busy || p.status === 'terminating'} aria-label={`End ${p.command}`} onClick={() => void stop()}><Square size={12} aria-hidden />{busy ? 'Ending' : 'End'}</button></>}</li>;
}

function Mode({run, policies}: {run: RunRecord; policies: Summary['permission_sandbox_summary']['policies']}) {
	const own = policies.findLast((p) => p.scope === 'session' && p.mode)?.mode ?? '';
	const [busy, setBusy] = useState(false);
	const set = async (mode: string) => {
		setBusy(true);
		try {
			await command('update_permissions', {session_id: run.session_id, mode});
			toast('ok', 'The mode holds from the next round of tools on');
		} catch (e) {
			complain('The mode was not changed', e);
		}
		setBusy(false);
		renew();
	};
	return <Part title="Mode" about="what holds where no rule and no hook has decided"><div className="field"><label htmlFor="run-mode">For this conversation</label><select id="run-mode" className="select" disabled={busy} value={own} onChange={(e) => void set(e.target.value)}>
		{!own && <option value="">As the agent and the configuration say</option>}{MODES.map(([m, words]) => <option key={m} value={m}>{m}: {words}</option>)}</select></div></Part>;
}

export function Rights({run}: {run: RunRecord}) {
	const {data, error, isPending, refetch} = useQuery({queryKey: ['rights', run.run_id], queryFn: () => askJson<Summary>(`api/sessions/${encodeURIComponent(run.session_id)}?include=permissions`),
		refetchInterval: (q) => q.state.data?.execution_environment?.active_processes.length ? LOOK_MS : false});
	const [writing, write] = useState<Process | null>(null);
	if (isPending)
		return <div className="page"><Bones rows={5} /></div>;
	if (error)
		return <div className="page"><ProblemNote what="The permissions could not be read" error={error} retry={() => void refetch()} /></div>;
	const s = data.permission_sandbox_summary, env = data.execution_environment, processes = [...env?.active_processes ?? [], ...env?.ended_processes ?? []], profile = s.sandbox?.profiles.at(-1), violations = s.sandbox?.violations ?? [];
	return <div className="page evidence">
		{processes.length > 0 && <Part title="Processes" about={`${env?.active_processes.length ?? 0} at work`}><ul className="card" aria-label="Processes">{processes.map((p) => <Row key={`${p.process_id} ${p.status}`} p={p} write={() => write(p)} />)}</ul></Part>}
		{profile && <Part title="Boundary of commands" about={profile.enforced ? 'kept by the kernel' : 'not enforced'}><div className="card run-boundary"><Facts rows={[['Mode', profile.mode], ['Directory', profile.cwd && <code>{profile.cwd}</code>], ['May write', profile.mode === 'read_only' ? 'nothing' : profile.write_roots.join(', ') || 'the workspace'], ['Network', modeOf(profile.network)],
			['Limits', Object.entries(profile.process_limits ?? {}).map(([k, v]) => `${k} ${v}`).join(', ')], ['Not enforced', profile.gaps.map((g) => typeof g === 'string' ? g : JSON.stringify(g)).join(', ')]]} /></div></Part>}
		{violations.length > 0 && <Part title="Attempts to get out"><ul className="card" aria-label="Attempts to get out">{violations.map((v) => <li key={v.violation_id} className="item"><ShieldAlert size={16} aria-hidden className="k-err" /><span className="grow"><span>{v.kind}: <code>{plain(v.target)}</code></span><span className="block f12 t3">{[v.attempted, v.action_taken].filter(Boolean).join(' · ')}</span></span><span className="f12 t3"><Ago at={seconds(v.at)} /></span></li>)}</ul></Part>}
		<Mode run={run} policies={s.policies} />
		<Grants titles={new Map()} of={run.conversation_id} />
		<Part title="What was decided" about="of the conversation, the newest last">{s.decisions.length ? <ul className="card" aria-label="Decisions">{s.decisions.map((d) => <li key={d.decision_id} className="item"><span className="grow"><span className="row wrap"><code>{plain(d.name)}</code>{d.destructive && <span className="badge err">cannot be undone</span>}</span>
			<span className="block f12 t3">{[d.decision_source && `by ${SOURCES[d.decision_source] ?? d.decision_source}`, d.decision_reason && plain(d.decision_reason), d.mode && `mode ${d.mode}`].filter(Boolean).join(' · ')}</span></span><span className={`badge ${/^(allow)/.test(d.status) ? 'ok' : /^(den)/.test(d.status) ? 'err' : 'ask'}`}>{d.status}</span>
			{d.run_id && d.run_id !== run.run_id ? <A className="link f12" to={`runs/${d.run_id}`}>Its run</A> : null}<span className="f12 t3"><Ago at={seconds(d.at)} /></span></li>)}</ul>
			: <div className="card"><Empty title="Nothing was decided yet"><p>Each call of a tool is decided by rules, hooks, the mode and people; the decisions are shown here.</p></Empty></div>}
		{s.omitted > 0 && <p className="f12 t3">{s.omitted} earlier ones are in the events.</p>}</Part>
		{writing && <Input p={writing} close={() => write(null)} />}
	</div>;
}
