// StateAt.tsx - the run as it stood behind an event, as the server computes it from the log.
import {keepPreviousData, useQuery} from '@tanstack/react-query';
import {ProblemNote} from '../../components/ui';
import {askJson} from '../../lib/api';
import {exact, whole} from '../../lib/format';
import {KindIcon} from './words';
import './run.css';

interface Message { kind: string; id: string; text: string; calls?: {id: string; name: string; args: string; complete: boolean; ended: boolean}[]; call_id?: string; error?: string | null }
export interface Moment {
	run_id: string;
	at: number;
	time: number;
	end: string;
	end_code: string | null;
	end_message: string | null;
	step: string | null;
	waiting: boolean;
	messages: Message[];
	actions: {id: string; name?: string; prompt?: string}[];
	usage: {provider: string; model: string; input_tokens: number; output_tokens: number}[];
}

export const useMoment = (id: string, at: number) => useQuery({queryKey: ['state', id, at], enabled: id !== '' && at > 0, staleTime: Infinity, placeholderData: keepPreviousData,
	queryFn: () => askJson<Moment>(`api/runs/${encodeURIComponent(id)}/state?at=${at}`)});

const LONG = 2000;
const WHO: Record<string, string> = {user: 'You', text: 'Answer', reasoning: 'Reasoning', result: 'Result'};

function Said({m}: {m: Message}) {
	const cut = m.text.length > LONG;
	return <li className="run-said" data-said={m.kind}>
		<span className="f12 t3 row"><KindIcon kind={m.kind === 'user' ? 'person' : m.kind === 'result' ? m.error ? 'error' : 'tool' : m.kind === 'reasoning' ? 'text' : 'model'} />{WHO[m.kind] ?? m.kind}</span>
		{cut ? <details><summary>{whole(m.text.slice(0, 400))} <span className="link">Open all</span></summary><p>{whole(m.text)}</p></details> : m.text && <p>{whole(m.text)}</p>}
		{m.calls?.map((c) => <p key={c.id} className="run-call"><KindIcon kind="tool" /><span className="mono">{c.name}</span><span className="mono t3 cut grow">{whole(c.args.slice(0, 400))}</span><span className="f12 t3">{c.ended ? 'ended' : c.complete ? 'at work' : 'arguments are coming'}</span></p>)}
	</li>;
}

export function Saw({moment}: {moment: Moment}) {
	return <ol className="run-saw">{moment.messages.map((m) => <Said key={m.id} m={m} />)}
		{moment.actions.map((a) => <li key={a.id} className="run-said" data-said="ask"><span className="row"><KindIcon kind="ask" />{a.prompt ?? a.name ?? 'A question'} <span className="badge ask">was open at this moment</span></span></li>)}</ol>;
}

const ENDS: Record<string, string> = {live: 'At work', done: 'Succeeded', cancelled: 'Cancelled', failed: 'Failed'};

export function Standing({moment}: {moment: Moment}) {
	const answer = moment.messages.filter((m) => m.kind === 'text').reduce((n, m) => n + m.text.length, 0);
	const calls = moment.messages.flatMap((m) => m.calls ?? []);
	return <dl className="run-standing">
		<dt>State</dt><dd>{moment.waiting ? 'Waits for you' : ENDS[moment.end] ?? moment.end}{moment.end_code && ` (${moment.end_code})`}</dd>
		{moment.end_message && <><dt>Why</dt><dd>{moment.end_message}</dd></>}
		<dt>Step</dt><dd>{moment.step ?? 'none'}</dd>
		<dt>Answer</dt><dd className="num">{answer} characters</dd>
		<dt>Tools</dt><dd className="num">{calls.length} called, {calls.filter((c) => c.ended).length} ended</dd>
		<dt>Waits for you</dt><dd className="num">{moment.actions.length || 'nothing'}</dd>
		<dt>Tokens</dt><dd className="num">{moment.usage.length ? moment.usage.map((u) => `${u.input_tokens} in, ${u.output_tokens} out (${u.model})`).join('; ') : 'none yet'}</dd>
		<dt>Time</dt><dd className="num">{moment.time ? exact(moment.time) : 'unknown'}</dd>
	</dl>;
}

export function StateAt({id, at}: {id: string; at: number}) {
	const {data, error, refetch} = useMoment(id, at);
	if (error)
		return <div className="page"><ProblemNote what="The state could not be read" error={error} retry={() => void refetch()} /></div>;
	return <div className="page run-talk">{data ? <Saw moment={data} /> : <p className="t3">Reading</p>}</div>;
}
