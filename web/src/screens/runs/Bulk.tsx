// Bulk.tsx - one act for many runs: asked once, each answered by itself.
import {Download, RotateCcw, Square, X} from 'lucide-react';
import {useState} from 'react';
import {Dialog, State} from '../../components/ui';
import {Problem, ask, askJson} from '../../lib/api';
import {go} from '../../lib/nav';
import {client} from '../../lib/query';
import {say} from '../../lib/say';
import type {RunRecord} from '../../lib/types';
import {exists} from '../../routes';
import {wordOf} from './data';

type Act = 'cancel' | 'retry';
interface Outcome { ok?: string; problem?: string; run?: RunRecord }
const LIVE = ['queued', 'running', 'cancel_requested'];

async function perform(act: Act, run: RunRecord): Promise<Outcome> {
	try {
		const done = await askJson<RunRecord>(`api/runs/${run.run_id}/${act}`, {method: 'POST', headers: act === 'retry' ? {'Idempotency-Key': `page-${run.run_id}-${run.attempt}`} : {}});
		return {run: done, ok: act === 'retry' ? `Attempt ${done.attempt ?? ''} started`.replace('  ', ' ') : undefined};
	} catch (e) {
		return {problem: e instanceof Problem ? `${e.message} (${e.code})` : 'The server did not answer. Whether it happened shows in the list.'};
	}
}

function Ask({act, runs, close}: {act: Act; runs: RunRecord[]; close: () => void}) {
	const [outcomes, set] = useState<Map<string, Outcome | null>>(new Map());
	const busy = [...outcomes.values()].includes(null);
	const begun = outcomes.size > 0;
	const verb = act === 'cancel' ? 'Cancel' : 'Retry';
	const start = async () => {
		set(new Map(runs.map((r) => [r.run_id, null])));
		let good = 0;
		for (const run of runs) {
			const outcome = await perform(act, run);
			good += outcome.problem ? 0 : 1;
			set((m) => new Map(m).set(run.run_id, outcome));
		}
		say(`${good} of ${runs.length} done`);
		void client.invalidateQueries({queryKey: ['runs']});
	};
	return <Dialog title={`${verb} ${runs.length} ${runs.length === 1 ? 'run' : 'runs'}`} close={close}>
		{!begun && <p>{act === 'cancel' ? 'What they have done stays. A cancelled run cannot go on; it can be tried again.' : 'Each gets a new attempt with the same input. The old ones stay as they are.'}</p>}
		<ul className="runs-outcomes">{runs.map((r) => {
			const o = outcomes.get(r.run_id);
			return <li key={r.run_id} className="item"><span className="grow cut">{wordOf(r)}</span>
				{o === null ? <span className="t3">{act === 'cancel' ? 'Cancelling' : 'Starting'}</span>
					: o?.problem ? <span className="wrong">{o.problem}</span>
						: o ? o.ok ?? <State status={o.run?.status ?? ''} engine={o.run?.engine_status} /> : <State status={r.status} engine={r.engine_status} />}</li>;
		})}</ul>
		<div className="row">{!begun ? <button type="button" className="btn danger" onClick={() => void start()}>{verb} {runs.length} {runs.length === 1 ? 'run' : 'runs'}</button>
			: <button type="button" className="btn" disabled={busy} onClick={close}>Close</button>}</div>
	</Dialog>;
}

/** The records and their events, as one file of lines. */
async function save(runs: RunRecord[]): Promise<void> {
	const parts: string[] = [];
	for (const run of runs) {
		parts.push(JSON.stringify({record: run}), '\n');
		for (let after: number | null = 0; after !== null;) {
			const page: {events: unknown[]; next_after: number | null} = await (await ask(`api/runs/${run.run_id}/events?limit=1000&after=${after}`)).json();
			parts.push(...page.events.map((e) => `${JSON.stringify({event: e})}\n`));
			after = page.next_after;
		}
	}
	const link = document.createElement('a');
	link.href = URL.createObjectURL(new Blob(parts, {type: 'application/x-ndjson'}));
	link.download = runs.length === 1 ? `run-${runs[0].run_id}.jsonl` : `runs-${runs.length}.jsonl`;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

export function Bulk({runs, close}: {runs: RunRecord[]; close: () => void}) {
	const [act, setAct] = useState<Act | null>(null);
	const live = runs.filter((r) => LIVE.includes(r.status)), over = runs.filter((r) => !LIVE.includes(r.status));
	return <div className="runs-bulk" role="toolbar" aria-label="Selected runs">
		<span>{runs.length} selected</span>
		<button type="button" className="btn" disabled={!live.length} onClick={() => setAct('cancel')}><Square size={13} aria-hidden />Cancel</button>
		<button type="button" className="btn" disabled={!over.length} onClick={() => setAct('retry')}><RotateCcw size={13} aria-hidden />Retry</button>
		{exists('replay') && <button type="button" className="btn" disabled={runs.length !== 2} onClick={() => go(`replay/${runs[0].run_id}?with=${runs[1].run_id}`)}>Compare</button>}
		<button type="button" className="btn" onClick={() => void save(runs)}><Download size={13} aria-hidden />Export</button>
		<button type="button" className="btn quiet icon" aria-label="Select none" onClick={close}><X size={14} aria-hidden /></button>
		{act && <Ask act={act} runs={act === 'cancel' ? live : over} close={() => { setAct(null); close(); }} />}
	</div>;
}
