// Replay: any run or fixture, event by event. Nothing is executed: states come from the log.
import {ChevronDown, Pause, Play, SkipBack, SkipForward} from 'lucide-react';
import {useEffect, useMemo, useRef, useState} from 'react';
import {A, Bones, Empty, Menu, MenuItem, ProblemNote, Segment, State, Top, Ago} from '../../components/ui';
import {askJson} from '../../lib/api';
import {exact, pretty} from '../../lib/format';
import {useMedia, useTitle} from '../../lib/hooks';
import {useShortcuts} from '../../lib/keys';
import {go, useFilter} from '../../lib/nav';
import {useRun} from '../../lib/query';
import {complain} from '../../lib/say';
import type {Frame} from '../../lib/live';
import type {RunRecord} from '../../lib/types';
import {useQuery} from '@tanstack/react-query';
import {Saw, Standing, useMoment, type Moment} from '../run/StateAt';
import {useBlocks, useTimeline, type Timeline} from '../run/data';
import {KindIcon, NAMES, detailOf, wordOfEvent, type LogEvent, type Span} from '../run/words';
import {useAttempts, wordOf} from '../runs/data';
import {compare, type Difference} from './compare';
import {DIALECTS, eventOf, useFixture, useFixtures, useFrames, type Dialect} from './frames';
import './replay.css';

const SPEEDS: [string, string][] = [['1', '1×'], ['4', '4×'], ['10', '10×'], ['max', 'Max']];

/** What is played: how many events, where its marks are, how long it took from one to the next. */
interface Tape { last: number; spans: Span[]; gap: (n: number) => number; failed: number[] }

function tapeOf(t: Timeline): Tape {
	const mean = (t.last_at - t.first_at) / Math.max(1, t.last);
	return {last: t.last, spans: t.spans, gap: () => mean, failed: t.spans.filter((s) => s.kind === 'error' || s.state === 'failed').map((s) => s.last ?? s.first)};
}

/** Marks above the axis, which is events and not time. */
function Scrubber({tape, at, set}: {tape: Tape; at: number; set: (n: number) => void}) {
	const where = (n: number) => `${tape.last > 1 ? (n - 1) / (tape.last - 1) * 100 : 0}%`;
	const marks = tape.spans.filter((s) => s.kind !== 'wait').slice(0, 400);
	return <div className="replay-scrub">
		<div className="replay-marks" aria-hidden>{marks.map((s) => <i key={s.first} data-kind={s.state === 'failed' ? 'error' : s.kind} data-past={s.first <= at ? '' : undefined} title={`${NAMES[s.kind]} ${s.name} #${s.first}`}
			style={{left: where(s.first), width: `max(4px, calc(${where(s.last ?? tape.last)} - ${where(s.first)}))`}} onClick={() => set(s.first)} />)}</div>
		<input type="range" min={1} max={tape.last} step={1} value={at} aria-label="Event" aria-valuetext={`Event ${at} of ${tape.last}`} onChange={(e) => set(Number(e.target.value))} />
		<div className="row f11 t3 num"><span>#1</span><span className="grow" /><span>#{tape.last}</span></div>
	</div>;
}

/** Steps by itself: at the pace of the record times the speed, or as fast as states come. */
function usePlay(tape: Tape | null, at: number, set: (n: number) => void, speed: string, busy: boolean): [boolean, (v: boolean) => void] {
	const [playing, setPlaying] = useState(false);
	const now = useRef(at);
	now.current = at;
	useEffect(() => {
		if (!playing || !tape || busy)
			return;
		if (now.current >= tape.last) {
			setPlaying(false);
			return;
		}
		const wait = speed === 'max' ? 0 : Math.min(1000, Math.max(16, tape.gap(now.current) * 1000 / Number(speed)));
		const timer = setTimeout(() => set(Math.min(tape.last, now.current + (speed === 'max' ? Math.max(1, Math.ceil(tape.last / 400)) : 1))), wait);
		return () => clearTimeout(timer);
	}, [playing, at, tape, speed, busy]);
	return [playing, setPlaying];
}

const short = (f: Frame): string => {
	const d = f.data;
	if (d?.version)
		return Object.keys(d).filter((k) => k !== 'version').map((k) => `${k} ${d[k]?.path ?? ''}`).join(' ');
	return `${d?.type ?? ''} ${d?.data?.text_delta ?? d?.delta ?? d?.data?.title ?? d?.data?.tool ?? d?.toolCallName ?? ''}`;
};

function Cell({some, open}: {some: Frame[]; open: boolean}) {
	if (!some.length)
		return <span className="t3">nothing is sent</span>;
	return <>{some.map((f) => open ? <pre key={f.id} className="replay-frame" tabIndex={0}>{pretty(f.data).slice(0, 1500)}</pre> : <div key={f.id} className="cut mono f11">{short(f)}</div>)}</>;
}

function Frames({what, at, last, set, names, found}: {what: string; at: number; last: number; set: (n: number) => void; names: Map<number, string>; found: (n: number) => string}) {
	const {data, error, refetch} = useFrames(what, at, last);
	const narrow = useMedia('(max-width: 1100px)');
	const [only, setOnly] = useFilter('dialect');
	const shown = DIALECTS.filter(([d]) => only ? d === only : !narrow || d === 'normalized');
	const by = useMemo(() => {
		const map = new Map<number, Record<Dialect, Frame[]>>();
		for (const [d] of DIALECTS)
			for (const f of data?.[d] ?? []) {
				const n = eventOf(f.id);
				if (!map.has(n))
					map.set(n, {normalized: [], 'ag-ui': [], a2ui: []});
				map.get(n)![d].push(f);
			}
		return map;
	}, [data]);
	const ref = useRef<HTMLDivElement>(null);
	useEffect(() => { ref.current?.querySelector('[aria-current=true]')?.scrollIntoView({block: 'nearest'}); }, [at, by]);
	const from = Math.max(1, at - 12), to = Math.min(last, at + 12);
	return <section className="replay-frames" aria-label="Frames">
		<div className="replay-tools row"><Segment label="Dialect" value={only} options={[['', 'All'], ...DIALECTS] as [string, string][]} set={setOnly} /><span className="f12 t3 grow">what clients of each dialect were sent</span></div>
		{error ? <ProblemNote what="The frames could not be read" error={error} retry={() => void refetch()} /> : <div className="scroll" ref={ref} tabIndex={0} role="group" aria-label="Frames, scrolls">
			<table className="replay-table"><thead><tr><th scope="col">Event</th>{shown.map(([d, name]) => <th key={d} scope="col">{name}</th>)}</tr></thead>
				<tbody>{Array.from({length: Math.max(0, to - from + 1)}, (_, i) => from + i).map((n) => {
					const row = by.get(n);
					return <tr key={n} data-n={n} aria-current={n === at ? 'true' : undefined} onClick={() => set(n)}>
						<th scope="row"><button type="button" className="mono f11 link" onClick={() => set(n)}>#{n}</button><div className="f11 t3 cut">{names.get(n) ?? found(n)}</div></th>
						{shown.map(([d]) => <td key={d}><Cell some={row?.[d] ?? []} open={n === at} /></td>)}</tr>;
				})}</tbody></table></div>}
	</section>;
}

function CompareWith({left, right, tape, set}: {left: string; right: string; tape: Tape; set: (n: number) => void}) {
	const [d, setD] = useState<Difference | null>(null);
	const [read, setRead] = useState(0);
	const [error, setError] = useState<unknown>(null);
	const [, setWith] = useFilter('with');
	useEffect(() => {
		const over = new AbortController();
		setD(null);
		setError(null);
		compare(left, right, over.signal, setRead).then((x) => { if (!over.signal.aborted) setD(x); }, setError);
		return () => over.abort();
	}, [left, right]);
	const line = (sign: string, e: LogEvent | null) => <div className="replay-diff mono f12" data-sign={sign}><span>{sign}</span><span>{e ? `#${e.run_sequence} ${e.type}` : 'ended before'}</span><span className="cut grow">{e ? detailOf(e) : ''}</span></div>;
	return <section className="replay-compare" aria-label="Comparison" role="status">
		<div className="row"><strong>Compared with</strong><A className="link mono f12" to={`replay/${right}`}>…{right.slice(-8)}</A><span className="grow t2">{error ? null : !d ? `same for ${read} events so far` : !d.left && !d.right ? `the same in all ${d.same} events` : <>same for {d.same} events, first difference at <button type="button" className="link" onClick={() => set(Math.min(tape.last, d.same + 1))}>#{d.same + 1}</button></>}</span>
			<button type="button" className="btn small" onClick={() => setWith('')}>Close</button></div>
		{error ? <ProblemNote what="The runs could not be compared" error={error} /> : d && (d.left || d.right) ? <>{line('-', d.left)}{line('+', d.right)}</> : null}
	</section>;
}

function Controls({tape, at, set, busy, time}: {tape: Tape; at: number; set: (n: number) => void; busy: boolean; time?: number}) {
	const [speed, setSpeed] = useFilter('speed');
	const [playing, play] = usePlay(tape, at, set, speed || '1', busy);
	const to = (n: number) => { play(false); set(Math.max(1, Math.min(tape.last, n))); };
	const start = () => { if (at >= tape.last) set(1); play(!playing); };
	useShortcuts([{keys: 'Space', does: 'Play or pause', run: start}, {keys: 'ArrowRight', does: 'Step', run: () => to(at + 1)}, {keys: 'ArrowLeft', does: 'Step back', run: () => to(at - 1)},
		{keys: 'Home', does: 'First event', run: () => to(1)}, {keys: 'End', does: 'Last event', run: () => to(tape.last)},
		{keys: 'E', does: 'Next error', run: () => { const n = tape.failed.find((x) => x > at) ?? tape.failed[0]; if (n) to(n); }}]);
	return <div className="replay-controls"><div className="row wrap">
		<button type="button" className="btn icon" aria-label="Step back" disabled={at <= 1} onClick={() => to(at - 1)}><SkipBack size={14} aria-hidden /></button>
		<button type="button" className="btn main-act" onClick={start}>{playing ? <><Pause size={14} aria-hidden />Pause</> : <><Play size={14} aria-hidden />Play</>}</button>
		<button type="button" className="btn icon" aria-label="Step" disabled={at >= tape.last} onClick={() => to(at + 1)}><SkipForward size={14} aria-hidden /></button>
		<Segment label="Speed" value={speed || '1'} options={SPEEDS} set={(v) => setSpeed(v === '1' ? '' : v)} />
		<span className="grow" /><span className="num"><strong className="mono replay-now">#{at}</strong> <span className="t3">of {tape.last}{time ? `, ${exact(time)}` : ''}</span></span></div>
	<Scrubber tape={tape} at={at} set={to} /></div>;
}

function RunReplay({id}: {id: string}) {
	const run = useRun(id);
	const t = useTimeline(id);
	const [n, setN] = useFilter('at');
	const [other, setOther] = useFilter('with');
	const attempts = useAttempts(run.data?.root_run_id ?? '');
	const tape = useMemo(() => t.data ? tapeOf(t.data) : null, [t.data]);
	const at = Math.max(1, Math.min(tape?.last ?? 1, Number(n) || 1));
	const moment = useMoment(id, tape ? at : 0);
	const {found} = useBlocks(id, Math.max(1, at - 12), at + 12, tape?.last ?? 0);
	const set = (v: number) => setN(String(v));
	useTitle('Replay');
	const error = run.error ?? t.error;
	if (error)
		return <><Top title="Replay" /><div className="page"><ProblemNote what="This run could not be read" error={error} /><p><A className="btn" to="replay">Choose another</A></p></div></>;
	if (!tape || !run.data)
		return <><Top title="Replay" /><div className="page"><Bones rows={6} /></div></>;
	const rest = (attempts.data ?? []).filter((r) => r.run_id !== id);
	return <>
		<Top title={<><A className="t3 run-crumb" to="replay">Replay / </A>{wordOf(run.data)}</>} about="recorded run, nothing is executed">
			<A className="btn quiet" to={`runs/${id}?e=${at}`}>Open the run</A>
			{rest.length > 0 && <Menu className="btn" button={<>Compare<ChevronDown size={13} aria-hidden /></>}>{rest.map((r) => <MenuItem key={r.run_id} onClick={() => setOther(r.run_id)}>Attempt {r.attempt}</MenuItem>)}</Menu>}
		</Top>
		<Controls tape={tape} at={at} set={set} busy={moment.isFetching} time={moment.data?.at === at ? moment.data.time : undefined} />
		<div className="replay-body"><section className="replay-left scroll" tabIndex={0} aria-label="State">
			<h2>What people saw at #{at}</h2>
			{moment.error ? <ProblemNote what="The state could not be read" error={moment.error} /> : moment.data ? <div data-moment={moment.isPlaceholderData ? '' : at}><Saw moment={moment.data} /><h2>State at #{at}</h2><Standing moment={moment.data} /></div> : <p className="t3">Reading</p>}
		</section>
		<Frames what={id} at={at} last={tape.last} set={set} names={new Map()} found={(k) => { const e = found.get(k); return e ? wordOfEvent(e.type) : ''; }} /></div>
		{other && <CompareWith left={id} right={other} tape={tape} set={set} />}
	</>;
}

/** What the lines of a recording add up to, as any client adds them. */
function folded(lines: Frame[], at: number): Moment {
	const m: Moment = {run_id: '', at, time: 0, end: 'live', end_code: null, end_message: null, step: null, waiting: false, messages: [], actions: [], usage: []};
	const add = (kind: string, text: string) => { const last = m.messages.at(-1); if (last?.kind === kind) last.text += text; else m.messages.push({kind, id: `${m.messages.length}`, text}); };
	for (const {data} of lines.slice(0, at)) {
		const d = data.data ?? {};
		if (data.type === 'ChatDelta')
			add('text', d.text_delta);
		else if (data.type === 'ReasoningDelta')
			add('reasoning', d.text_delta);
		else if (data.type === 'ToolStart')
			m.messages.push({kind: 'call', id: d.tool_call_id, text: '', calls: [{id: d.tool_call_id, name: d.tool, args: JSON.stringify(d.input), complete: true, ended: false}]});
		else if (data.type === 'ToolEnd')
			m.messages.flatMap((x) => x.calls ?? []).filter((c) => c.id === d.tool_call_id).forEach((c) => { c.ended = true; });
		else if (data.type === 'RunDone')
			m.end = 'done';
		else if (data.type === 'Error')
			Object.assign(m, {end: 'failed', end_code: d.code, end_message: d.message});
	}
	return m;
}

function FixtureReplay({name}: {name: string}) {
	const lines = useFixture(name);
	const [n, setN] = useFilter('at');
	const [busy, setBusy] = useState(false);
	useTitle(`Fixture ${name}`);
	const tape = useMemo<Tape | null>(() => lines.data?.length ? {last: lines.data.length, gap: () => 0.25, failed: lines.data.flatMap((f, i) => f.data?.type === 'Error' ? [i + 1] : []),
		spans: lines.data.flatMap((f, i): Span[] => { const type = f.data?.type; const kind = type === 'ToolStart' ? 'tool' : type === 'Error' ? 'error' : type === 'Artifact' ? 'artifact' : type === 'ui.form.request' ? 'ask' : null;
			return kind ? [{kind, state: 'ended', name: type, first: i + 1, first_at: 0, last: i + 1, last_at: 0}] : []; })} : null, [lines.data]);
	if (lines.error)
		return <><Top title="Replay" /><div className="page"><ProblemNote what="This recording could not be read" error={lines.error} /><p><A className="btn" to="replay">Choose another</A></p></div></>;
	if (!tape || !lines.data)
		return <><Top title="Replay" /><div className="page"><Bones rows={6} /></div></>;
	const at = Math.max(1, Math.min(tape.last, Number(n) || 1));
	const set = (v: number) => setN(String(v));
	const run = async () => {
		setBusy(true);
		try {
			const made = await askJson<{run_id: string}>('api/runs', {body: {agent_id: 'fixture', inputs: {fixture: name, pace: 'recorded'}, idempotency_key: crypto.randomUUID()}});
			go(`runs/${made.run_id}`);
		} catch (e) {
			complain('The run was not started', e);
		}
		setBusy(false);
	};
	const moment = folded(lines.data, at);
	return <>
		<Top title={<><A className="t3 run-crumb" to="replay">Replay / </A>{name}</>} about="recorded stream, nothing is executed"><button type="button" className="btn" disabled={busy} onClick={() => void run()}><Play size={13} aria-hidden />{busy ? 'Starting' : 'Play as a run'}</button></Top>
		<Controls tape={tape} at={at} set={set} busy={false} />
		<div className="replay-body"><section className="replay-left scroll" tabIndex={0} aria-label="State"><h2>What people saw at #{at}</h2><Saw moment={moment} />{moment.end !== 'live' && <p className="t2">{moment.end === 'done' ? 'Succeeded' : `Failed: ${moment.end_message} (${moment.end_code})`}</p>}</section>
			<Frames what={`fixture:${name}`} at={at} last={tape.last} set={set} names={new Map(lines.data.map((f, i) => [i + 1, String(f.data?.type ?? '')]))} found={() => ''} /></div>
	</>;
}

function Choose() {
	useTitle('Replay');
	const fixtures = useFixtures();
	const runs = useQuery({queryKey: ['runs', 'replay'], queryFn: () => askJson<{runs: RunRecord[]}>('api/runs?limit=30')});
	return <><Top title="Replay" about="any run or recorded stream, event by event" /><div className="scroll"><div className="page">
		<div className="part-head"><h2>Recorded streams</h2></div>
		{fixtures.error ? <ProblemNote what="The recordings could not be read" error={fixtures.error} /> : fixtures.data?.fixtures.length ? <div className="card">{fixtures.data.fixtures.map((f) => <A key={f} className="item" to={`replay/fixture:${f}`}><KindIcon kind="artifact" /><span className="grow">{f}</span></A>)}</div>
			: <p className="t3">None. The setting <code>fixtures_dir</code> names a folder of them; <code>uar fixture record</code> makes one of a run.</p>}
		<div className="part-head replay-gap"><h2>Runs</h2></div>
		{runs.error ? <ProblemNote what="The runs could not be read" error={runs.error} /> : runs.data?.runs.length ? <div className="card">{runs.data.runs.map((r) => <A key={r.run_id} className="item" to={`replay/${r.run_id}`}><State status={r.status} engine={r.engine_status} bare /><span className="grow cut">{wordOf(r)}</span><span className="f12 t3">{r.agent_id}</span><span className="f12 t3"><Ago at={r.created_at} /></span></A>)}</div>
			: runs.data ? <Empty title="No run yet"><p>Every run can be replayed as soon as it has begun.</p></Empty> : <Bones />}
	</div></div></>;
}

export default function Replay({params}: {params: Record<string, string>}) {
	const what = params.what ?? '';
	return what === '' ? <Choose /> : what.startsWith('fixture:') ? <FixtureReplay key={what} name={what.slice(8)} /> : <RunReplay key={what} id={what} />;
}
