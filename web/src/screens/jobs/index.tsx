// Jobs: one agent does the same to many items. What is done, what failed, and doing one again.
import {useInfiniteQuery} from '@tanstack/react-query';
import {CircleAlert, Layers, RotateCcw, Square} from 'lucide-react';
import {useState} from 'react';
import {Facts, Part, Pick, Split} from '../../components/Split';
import {A, Ago, Bones, Dialog, Empty, ProblemNote, State, Top} from '../../components/ui';
import {command} from '../../lib/api';
import {count, plain, seconds, span} from '../../lib/format';
import {useTitle} from '../../lib/hooks';
import {useFilter} from '../../lib/nav';
import {client} from '../../lib/query';
import {complain, toast} from '../../lib/say';
import './jobs.css';

interface Counts { pending: number; running: number; completed: number; failed: number; reported: number }
interface Job { job_id: string; session_id: string; agent_id: string; job_kind: string; status: string; status_reason: string | null; instruction: string; concurrency: number; max_runtime_ms: number; item_count: number; counts: Counts;
	last_error: {message?: string} | null; created_at: string; started_at: string | null; ended_at: string | null }
interface Item { job_item_id: string; index: number; status: string; attempt: number; run_id: string | null; output: string | null; last_error: {message?: string; code?: string} | null; retryable: boolean }

const PAGE = 50;
const STATES: [string, string][] = [['', 'All'], ['running', 'Running'], ['completed', 'Completed'], ['failed', 'Failed'], ['cancelled', 'Cancelled']];
const nextOf = (last: {next_cursor: string | null}) => last.next_cursor ?? undefined;
const renew = () => void client.invalidateQueries({queryKey: ['runs', 'jobs']});
const of = (status: string) => status === 'pending' || status === 'created' ? 'queued' : status;

/** Reported: there is an answer, and it is not of the form that was asked for. */
function Stand({status}: {status: string}) {
	return status === 'reported' ? <span className="state" data-kind="lost" title={status}><CircleAlert size={14} aria-hidden />Not as asked</span> : <State status={of(status)} />;
}

function Bar({j}: {j: Job}) {
	const {completed, failed, reported, running} = j.counts, total = Math.max(j.item_count, 1);
	return <span className="jobs-bar" role="img" aria-label={`${completed} of ${j.item_count} done, ${failed} failed, ${reported} not as asked, ${running} at work`}>
		<i data-look="ok" style={{width: `${completed / total * 100}%`}} /><i data-look="ask" style={{width: `${reported / total * 100}%`}} /><i data-look="err" style={{width: `${failed / total * 100}%`}} /><i data-look="run" style={{width: `${running / total * 100}%`}} /></span>;
}

/** The items of a job: those that were begun, then the rest. */
function Items({job}: {job: Job}) {
	const list = useInfiniteQuery({queryKey: ['runs', 'jobs', job.job_id, 'items'], initialPageParam: '', getNextPageParam: nextOf,
		queryFn: ({pageParam}) => command<{items: Item[]; next_cursor: string | null}>('get_job', {job_id: job.job_id, limit: PAGE, ...(pageParam ? {cursor: pageParam} : {})})});
	const [busy, setBusy] = useState('');
	const again = async (i: Item) => {
		setBusy(i.job_item_id);
		try {
			await command('retry_job_item', {job_id: job.job_id, job_item_id: i.job_item_id});
			toast('ok', `Item ${i.index + 1} is done again`);
		} catch (e) {
			complain('It was not done again', e);
		}
		setBusy('');
		renew();
	};
	const items = list.data?.pages.flatMap((p) => p.items) ?? [];
	return <Part title="Items" about={`${count(job.item_count)}, ${job.concurrency} at once`}>
		{list.isPending ? <Bones rows={4} /> : list.error ? <ProblemNote what="The items could not be read" error={list.error} retry={() => void list.refetch()} />
			: <ul className="card" aria-label="Items">{items.map((i) => <li key={i.job_item_id} className="item" data-item={i.index}><span className="mono f12 t3 num">{i.index + 1}</span><Stand status={i.status} />
				<span className="grow cut t2">{plain(String(i.last_error?.message ?? i.output ?? '').slice(0, 300))}</span>{i.attempt > 1 && <span className="badge">attempt {i.attempt}</span>}
				{(i.status === 'failed' || i.status === 'reported') && job.status !== 'cancelled' && <button type="button" className="btn" disabled={busy !== ''} aria-label={`Do item ${i.index + 1} again`} onClick={() => void again(i)}><RotateCcw size={13} aria-hidden />Again</button>}
				{i.run_id && <A className="btn" to={`runs/${i.run_id}`} aria-label={`Run of item ${i.index + 1}`}>Run</A>}</li>)}</ul>}
		{list.hasNextPage && <p><button type="button" className="btn" disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>More items</button></p>}
	</Part>;
}

function Cancel({job, close}: {job: Job; close: () => void}) {
	const [busy, setBusy] = useState(false);
	return <Dialog title="Cancel this job?" close={close}><p>Items that are completed stay completed. Those at work are asked to stop, the others never start.</p>
		<div className="row"><button type="button" className="btn danger" disabled={busy} onClick={async () => {
			setBusy(true);
			try {
				await command('cancel_job', {job_id: job.job_id, reason: 'cancelled on the page'});
				renew();
				close();
			} catch (e) {
				complain('The job was not cancelled', e);
				setBusy(false);
			}
		}}>{busy ? 'Cancelling' : 'Cancel the job'}</button><button type="button" className="btn" onClick={close}>Let it run</button></div></Dialog>;
}

function Detail({job}: {job: Job}) {
	const [leaving, setLeaving] = useState(false);
	const took = job.started_at ? (job.ended_at ? seconds(job.ended_at) : Date.now() / 1000) - seconds(job.started_at) : NaN;
	return <><header className="split-head"><h2 className="cut">{plain(job.instruction.split('\n')[0].slice(0, 120))}</h2><State status={of(job.status)} /><span className="grow" />
		{job.status === 'running' && <button type="button" className="btn" onClick={() => setLeaving(true)}><Square size={13} aria-hidden />Cancel…</button>}</header>
	<div className="scroll" tabIndex={-1}><div className="split-body"><Bar j={job} />
		<Facts rows={[['Done by', job.agent_id], ['Items', `${count(job.counts.completed)} done, ${count(job.counts.failed)} failed,${job.counts.reported ? ` ${count(job.counts.reported)} not as asked,` : ''} ${count(job.counts.running)} at work, ${count(job.counts.pending)} to come`],
			['Started', job.started_at ? <Ago at={seconds(job.started_at)} /> : 'not yet'], ['Duration', Number.isFinite(took) ? span(Math.max(0, took)) : ''], ['Limit', job.max_runtime_ms ? span(job.max_runtime_ms / 1000) : 'none'],
			['Why it ended', job.last_error?.message ?? job.status_reason], ['Conversation', <A className="link" to={`c/${job.session_id}`}>Open</A>]]} />
		<Part title="What is done to each"><pre className="json" tabIndex={0}>{plain(job.instruction)}</pre></Part>
		<Items key={job.job_id} job={job} /></div></div>{leaving && <Cancel job={job} close={() => setLeaving(false)} />}</>;
}

export default function Jobs({params}: {params: Record<string, string>}) {
	const [status, setStatus] = useFilter('status');
	const list = useInfiniteQuery({queryKey: ['runs', 'jobs', status], initialPageParam: '', getNextPageParam: nextOf, retry: false,
		queryFn: ({pageParam}) => command<{jobs: Job[]; next_cursor: string | null}>('list_jobs', {limit: PAGE, ...(status ? {status} : {}), ...(pageParam ? {cursor: pageParam} : {})})});
	const jobs = list.data?.pages.flatMap((p) => p.jobs) ?? [];
	const job = jobs.find((j) => j.job_id === params.job);
	useTitle(job ? `${job.instruction.slice(0, 40)} · Jobs` : 'Jobs');
	const suffix = status ? `?status=${status}` : '';
	return <><Top title="Jobs" about="one agent, many items" />
		<Split label="Jobs" back={`jobs${suffix}`} chosen={!!params.job} tools={<Pick label="State" value={status} set={setStatus} options={STATES} />} list={list.isPending ? <Bones rows={4} /> : list.error ? <div className="page"><ProblemNote what="The jobs could not be read" error={list.error} retry={() => void list.refetch()} /></div>
			: jobs.length === 0 ? <Empty title={status ? 'No job is in this state' : 'No job yet'}><p>The command <code>create_job</code> has one agent do the same to many items.</p></Empty>
				: <div className="split-rows" tabIndex={-1}><ul aria-label="Jobs">{jobs.map((j) => <li key={j.job_id}><A className="split-row" to={`jobs/${encodeURIComponent(j.job_id)}${suffix}`} aria-current={j.job_id === params.job}><Layers size={15} aria-hidden className="t3" />
					<span className="grow"><span className="cut strong jobs-line">{plain(j.instruction.split('\n')[0].slice(0, 120))}</span><span className="cut f11 t3 jobs-line">{j.agent_id} · {count(j.counts.completed)} of {count(j.item_count)}{j.counts.failed ? ` · ${count(j.counts.failed)} failed` : ''}</span></span><State status={of(j.status)} bare /></A></li>)}</ul>
					{list.hasNextPage && <p><button type="button" className="btn" onClick={() => void list.fetchNextPage()}>Older jobs</button></p>}</div>}>
			{job ? <Detail key={job.job_id} job={job} /> : params.job && list.isSuccess ? <Empty title="There is no such job in this list"><A className="btn" to="jobs">All jobs</A></Empty> : <Empty title="Choose a job"><p>Its items, what each gave, and what failed.</p></Empty>}
		</Split></>;
}
