// Evidence.tsx - exports of what happened: packs of evidence, replay cases, reviews. They are made by the server from
// its log, kept, downloaded, and checked here, in the browser.
import {useQuery} from '@tanstack/react-query';
import {CheckCircle2, Download, FileSearch, OctagonX, ShieldCheck} from 'lucide-react';
import {useRef, useState} from 'react';
import {A, Bones, Empty, Id, ProblemNote, Segment} from '../../components/ui';
import {ask, askJson, command} from '../../lib/api';
import {canCheck, check, type Verdict} from '../../lib/evidence';
import {bytes, count} from '../../lib/format';
import {download} from '../../lib/save';
import {client} from '../../lib/query';
import {complain, say, toast} from '../../lib/say';
import type {RunRecord} from '../../lib/types';

const KINDS: [string, string, string][] = [['evidence', 'Evidence', 'proves what happened: the events with their links, calls, failures, decisions'],
	['replay', 'Replay case', 'does it again: the events, inputs, tools, and the read models they fold into'],
	['review', 'Review', 'for who judges: ends, failures, decisions, and references to their events']];
const NAMES = new Map(KINDS.map(([k, name]) => [k, name]));
const LEVELS: Record<string, string> = {turn: 'a turn', thread: 'a thread', session: 'the conversation', task: 'a task'};
const KEPT = 32; // as many as the server lists

interface Export { evidence_id: string; kind: string; status: string; sha256: string; scope: {level?: string; turn_id?: string; thread_id?: string}; known_gaps: {signal: string; reason: string}[] }
interface Made { evidence_id: string; existed: boolean; events: number; bytes: number }
type Scope = 'turn' | 'thread' | 'session';

function scopeWords(e: Export, run: RunRecord): string {
	const {level = 'session', turn_id, thread_id} = e.scope;
	return level === 'turn' && turn_id === run.turn_id ? 'this run\'s turn' : level === 'thread' && thread_id === run.conversation_id ? 'this thread' : LEVELS[level] ?? level;
}

/** What a check has found, in words that are announced. */
function Found({v, expected}: {v: Verdict; expected?: string}) {
	const other = v.good && expected !== undefined && v.id !== expected;
	const good = v.good && !other;
	return <div className="evidence-found" data-good={good ? '' : undefined} role="status">
		{good ? <CheckCircle2 size={14} aria-hidden /> : <OctagonX size={14} aria-hidden />}
		<div className="grow"><strong>{good ? 'Verified' : 'Not verified'}</strong> <span>{other ? 'It is in itself right, but it is another document than the one that the server names.' : v.words}</span>
			{v.event && <span className="block f12">{v.event.type ? <span className="mono">{v.event.type}</span> : 'The event'}{v.event.sequence && <> with sequence {v.event.sequence}</>}
				{v.event.run && v.event.number && <>: <A className="link" to={`runs/${v.event.run}?e=${v.event.number}`}>event #{v.event.number} of the log</A></>}</span>}
			{v.good && <span className="block f12 t2">{NAMES.get(v.kind)} of {count(v.events)} events, <span className="mono">{v.id}</span></span>}</div></div>;
}

const NO_CHECK = 'This page came over plain HTTP from another machine, where browsers give no digests. Use uar verify FILE.';

function Item({e, run}: {e: Export; run: RunRecord}) {
	const [verdict, set] = useState<Verdict | null>(null);
	const [busy, setBusy] = useState('');
	const read = async (what: string, use: (text: string) => Promise<void> | void) => {
		setBusy(what);
		try {
			await use(await (await ask(`api/evidence/${encodeURIComponent(e.evidence_id)}`)).text());
		} catch (x) {
			complain('The document could not be read', x);
		}
		setBusy('');
	};
	const name = NAMES.get(e.kind) ?? e.kind;
	return <li className="evidence-item" data-evidence={e.evidence_id}><div className="item">
		<ShieldCheck size={16} aria-hidden className="t3" /><span className="grow"><span className="strong">{name}</span> <span className="t2">of {scopeWords(e, run)}</span>
			{e.status !== 'ready' && <span className="badge ask">{e.status === 'partial' ? 'gaps are known' : e.status}</span>}
			<span className="block f11 t3 cut"><Id value={e.evidence_id} />{e.known_gaps.length > 0 && <> {e.known_gaps.length === 1 ? '1 gap' : `${e.known_gaps.length} gaps`}: {e.known_gaps.map((g) => g.signal).join(', ')}</>}</span></span>
		<button type="button" className="btn" disabled={busy !== '' || !canCheck()} title={canCheck() ? undefined : NO_CHECK} aria-label={`Check ${name} ${e.evidence_id.slice(-8)}`} onClick={() => void read('check', async (text) => set(await check(text)))}>{busy === 'check' ? 'Checking' : 'Check'}</button>
		<button type="button" className="btn icon" disabled={busy !== ''} aria-label={`Download ${name} ${e.evidence_id.slice(-8)}`} title="Download" onClick={() => void read('save', (text) => download(`${e.kind}-${e.evidence_id.slice(-8)}.json`, text))}><Download size={15} aria-hidden /></button></div>
		{verdict && <Found v={verdict} expected={e.evidence_id} />}</li>;
}

/** A file that somebody brings: it need not be of this server. */
function File_() {
	const input = useRef<HTMLInputElement>(null);
	const [verdict, set] = useState<Verdict | null>(null);
	return <section><div className="part-head"><h2>A file</h2><span className="t3 f12 cut">of any server; it stays in this browser</span><span className="grow" />
		<input ref={input} type="file" accept=".json,application/json" hidden aria-label="File to check" onChange={async (e) => { const file = e.target.files?.[0]; e.target.value = ''; if (file) set(await check(await file.text())); }} />
		<button type="button" className="btn" disabled={!canCheck()} onClick={() => input.current?.click()}><FileSearch size={14} aria-hidden />Check a file</button></div>
		{!canCheck() && <p className="f12 t2">{NO_CHECK}</p>}
		{verdict && <Found v={verdict} />}</section>;
}

export function Evidence({run}: {run: RunRecord}) {
	const [scope, setScope] = useState<Scope>('turn');
	const [busy, setBusy] = useState('');
	const {data, error, isPending, refetch} = useQuery({queryKey: ['threads', run.session_id, 'evidence'], queryFn: async () =>
		(await askJson<{evidence_summary: {evidence: Export[]}}>(`api/sessions/${encodeURIComponent(run.session_id)}`)).evidence_summary.evidence});
	const make = async (kind: string) => {
		setBusy(kind);
		try {
			const made = await command<Made>(`export_${kind}`, {session_id: run.session_id, ...(scope === 'session' ? {} : {thread_id: run.conversation_id}), ...(scope === 'turn' ? {turn_id: run.turn_id} : {})});
			toast('ok', made.existed ? 'It was there already: nothing has happened since' : `${NAMES.get(kind)} made`, `${count(made.events)} events, ${bytes(made.bytes)}`);
			say(made.existed ? 'The same document as before' : `${NAMES.get(kind)} was made`);
			await client.invalidateQueries({queryKey: ['threads', run.session_id]});
		} catch (e) {
			complain('Nothing was exported', e);
		}
		setBusy('');
	};
	const list = [...data ?? []].reverse();
	return <div className="page evidence">
		<section><div className="part-head wrap"><h2>Make an export</h2><span className="grow" />
			<Segment label="What of" value={scope} options={[['turn', 'This turn'], ['thread', 'This thread'], ['session', 'The conversation']]} set={setScope} /></div>
			<div className="card">{KINDS.map(([kind, name, about]) => <div key={kind} className="item"><span className="grow"><span className="strong">{name}</span> <span className="f12 t2">{about}</span></span>
				<button type="button" className="btn" disabled={busy !== ''} aria-label={`Make: ${name}`} onClick={() => void make(kind)}>{busy === kind ? 'Making' : 'Make'}</button></div>)}</div></section>
		<section><div className="part-head"><h2>Earlier exports</h2><span className="t3 f12">of this conversation{list.length >= KEPT ? `, the newest ${KEPT}` : ''}</span></div>
			{isPending ? <Bones rows={3} /> : error ? <ProblemNote what="The exports could not be read" error={error} retry={() => void refetch()} />
				: list.length ? <ul className="card" aria-label="Earlier exports">{list.map((e) => <Item key={e.evidence_id} e={e} run={run} />)}</ul> : <div className="card"><Empty title="Nothing was exported yet"><p>An export is one file that can be checked without a server.</p></Empty></div>}</section>
		<File_ />
	</div>;
}
