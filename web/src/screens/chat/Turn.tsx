// Turn.tsx - one run of a conversation: what was asked, and everything that its events say.
import {useQuery} from '@tanstack/react-query';
import {Bot, Brain, ChevronLeft, ChevronRight, CircleHelp, CheckCircle2, FileText, LoaderCircle, OctagonX, Paperclip, Pencil, RefreshCw, RotateCcw, User, Wrench} from 'lucide-react';
import {createContext, lazy, memo, type ReactNode, Suspense, useContext, useEffect, useState} from 'react';
import {Ask, type AskLike} from '../../components/Ask';
import {SourceCard, safeUrl, sourceName} from '../../components/Cite';
import {A, CopyButton} from '../../components/ui';
import {ask as askServer, askJson} from '../../lib/api';
import type {Artifact, Block, Source} from '../../lib/fold';
import {bytes, clock, count, exact, money, plain, pretty, span} from '../../lib/format';
import {patiently} from '../../lib/patient';
import {complain} from '../../lib/say';
import {type Talk, type Turn, endingOf, wholeMessage} from '../../lib/talk';
import type {Action} from '../../lib/types';
import {leads} from '../../routes';

const Markdown = lazy(() => patiently(() => import('../../components/Markdown')).then((m) => ({default: function Text({text, done, sources}: {text: string; done: boolean; sources: Source[]}) {
	return <m.Sources.Provider value={sources}><m.Markdown text={text} done={done} /></m.Sources.Provider>;
}})));

const SHOWN = 2000; // characters of a value; the rest is a click away

/** What a turn needs of its screen. `again` says a message instead of a turn's (null: the same), as a fork. */
export const Around = createContext<{open: (a: Artifact) => void; pending: Map<string, Action>; pendingKnown: boolean; retry: (t: Turn) => void; again: ((t: Turn, message: string | null) => Promise<void>) | null}>(
	{open() {}, pending: new Map(), pendingKnown: false, retry() {}, again: null});

interface Span { kind: string; state: string; key?: string; first_at: number; last_at: number; name: string; detail?: string; first: number }

/** Times of tools and of thinking, and restarts: they are in the log, not in the stream. */
function useSpans(turn: Turn): Span[] {
	const wanted = !!turn.outcome && turn.fold.blocks.some((b) => b.kind === 'tool' || b.kind === 'reasoning' || b.kind === 'superseded');
	const {data} = useQuery({queryKey: ['timeline', turn.id], enabled: wanted, staleTime: Infinity, queryFn: () => askJson<{spans: Span[]}>(`api/runs/${encodeURIComponent(turn.id)}/timeline`)});
	return data?.spans ?? [];
}

/** The number of an event, a link to it; inside of what opens by a click a link has no place. */
function EventLink({turn, event, bare}: {turn: Turn; event: number; bare?: boolean}) {
	const to = `runs/${turn.id}/events?e=${event}`;
	return !bare && leads(`runs/${turn.id}/events`) ? <A className="mono f11 t3 event" to={to} title={`Event ${event} of the log`}>#{event}</A> : <span className="mono f11 t3 event">#{event}</span>;
}

/** A value with its head; the whole of a long one is read when it is asked for. */
function Value({label, value, blob, run}: {label: string; value: unknown; blob?: string; run: string}) {
	const [all, setAll] = useState<string | null>(null);
	const text = all ?? pretty(value);
	const cut = all === null && (text.length > SHOWN || !!blob);
	return <div className="value"><div className="row f11 t3"><span>{label}</span><span className="grow" /><CopyButton text={text} icon /></div>
		<pre className="exact" tabIndex={0}>{cut ? text.slice(0, SHOWN) : text.slice(0, 2000000)}</pre>
		{cut && <button type="button" className="btn small" onClick={async () => {
			if (!blob) {
				setAll(text);
				return;
			}
			try {
				setAll(await (await askServer(`api/runs/${encodeURIComponent(run)}/blobs/${blob.replace('blob://', '')}`)).text());
			} catch (e) {
				complain('It could not be read whole', e);
			}
		}}>Open all{blob ? '' : ` (${bytes(text.length)})`}</button>}
	</div>;
}

function brief(value: unknown): string {
	if (value && typeof value === 'object' && !Array.isArray(value)) {
		const texts = Object.values(value).filter((v) => typeof v === 'string' || typeof v === 'number');
		return plain(texts.join(' ').slice(0, 200));
	}
	return plain(pretty(value ?? '').slice(0, 200));
}

const STATES: Record<string, [string, ReactNode]> = {
	running: ['running', <LoaderCircle size={14} className="spin k-run" aria-hidden />], ok: ['ok', <CheckCircle2 size={14} className="k-ok" aria-hidden />],
	failed: ['failed', <OctagonX size={14} className="k-err" aria-hidden />], uncertain: ['uncertain: it may have happened', <CircleHelp size={14} className="k-ask" aria-hidden />],
};

function Tool({turn, block, spans, over}: {turn: Turn; block: Block; spans: Span[]; over: boolean}) {
	const found = spans.find((s) => s.kind === 'tool' && s.key === block.id);
	const state = block.state === 'running' && over ? 'uncertain' : block.state ?? 'running';
	const [word, icon] = STATES[state] ?? [state, null];
	return <details className="tool" data-state={state} open={state === 'failed' || undefined}>
		<summary className="row">{icon}<span className="unseen">{word}</span><span className="mono tool-name">{plain(block.title ?? '')}</span>
			<span className="mono f12 t3 cut grow">{brief(block.input)}</span>
			{state === 'failed' && <span className="badge err">failed</span>}{state === 'uncertain' && <span className="badge ask">uncertain</span>}{state === 'running' && <span className="f12 t2">running</span>}
			{found && <span className="f12 t3 num">{span(found.last_at - found.first_at)}</span>}<EventLink turn={turn} event={block.event} bare /><ChevronRight size={14} className="chev t3" aria-hidden /></summary>
		<div className="tool-body"><EventLink turn={turn} event={block.event} /><Value label="Arguments" value={block.input ?? {}} blob={block.inputRef} run={turn.id} />
			{block.state === 'running' ? block.text && <Value label="So far" value={block.text} run={turn.id} /> : <Value label={block.state === 'ok' ? 'Result' : 'What went wrong'} value={block.output ?? 'unknown'} blob={block.outputRef} run={turn.id} />}</div>
	</details>;
}

function Tools({turn, blocks, spans, over}: {turn: Turn; blocks: Block[]; spans: Span[]; over: boolean}) {
	const rows = blocks.map((b) => <Tool key={b.key} turn={turn} block={b} spans={spans} over={over} />);
	if (blocks.length === 1)
		return <div className="tools">{rows}</div>;
	const failed = blocks.filter((b) => b.state === 'failed').length, running = over ? 0 : blocks.filter((b) => b.state === 'running').length;
	const mine = spans.filter((s) => s.kind === 'tool' && blocks.some((b) => b.id === s.key));
	const took = mine.length ? Math.max(...mine.map((s) => s.last_at)) - Math.min(...mine.map((s) => s.first_at)) : NaN;
	return <details className="tools group" open={blocks.length <= 6 || undefined}>
		<summary className="row"><Wrench size={14} className="k-tool" aria-hidden /><strong>{blocks.length} tool calls</strong>
			<span className="f12 t3 cut grow">{[running ? `${running} running` : '', Number.isFinite(took) ? `${span(took)} in all` : ''].filter(Boolean).join(', ')}</span>
			{failed > 0 && <span className="badge err">{failed} failed</span>}<ChevronRight size={14} className="chev t3" aria-hidden /></summary>
		{rows}</details>;
}

function Reasoning({turn, block, live, spans}: {turn: Turn; block: Block; live: boolean; spans: Span[]}) {
	const model = spans.filter((s) => s.kind === 'model').findLast((s) => s.first <= block.event);
	return <details className="reasoning"><summary className="row t2"><Brain size={14} className={live ? 'k-model pulse' : 'k-model'} aria-hidden />{live ? 'Thinking' : 'Thought'}
		<span className="f12 t3">{count(block.text.length)} characters{model && !live ? `, in a call of ${span(model.last_at - model.first_at)}` : ''}</span><EventLink turn={turn} event={block.event} bare /><ChevronRight size={14} className="chev t3" aria-hidden /></summary>
	<p className="gone">{block.text}</p></details>;
}

function ArtifactChip({turn, block}: {turn: Turn; block: Block}) {
	const {open} = useContext(Around);
	const a = block.artifact!;
	return <div className="artifact-chip"><button type="button" className="item" onClick={() => open(a)}><FileText size={16} aria-hidden /><span className="grow"><span className="cut strong">{plain(a.title)}</span>
		<span className="cut f11 t3">{plain(a.language || a.artifact_type)} · {bytes(a.content.length)}{a.truncated ? ' and more' : ''}</span></span><span className="f12 t2">Open</span></button>
	<EventLink turn={turn} event={block.event} />
	{(block.errors ?? []).map((e, i) => <p key={i} className="wrong artifact-error"><OctagonX size={14} aria-hidden />Preview failed: {plain(e)}</p>)}</div>;
}

/** An agent may point at a view or an address; it is the person who goes there. */
function Navigate({title, target}: {title: string; target: string}) {
	const here = target.replace(/^\/(ui\/)?/, ''), url = safeUrl(target);
	const words = plain(title || target);
	return <p className="note f12 t2">Shows: {target.startsWith('/') && leads(here) ? <A className="link" to={here}>{words}</A>
		: url ? <a className="link" href={url} target="_blank" rel="noopener noreferrer">{words}</a> : words} <span className="mono t3">{plain(target)}</span></p>;
}

function SourcesList({block, from}: {block: Block; from: number}) {
	return <details className="sources" open><summary className="row f12 t2"><strong>Sources</strong> {block.sources?.length}<ChevronRight size={14} className="chev t3" aria-hidden /></summary>
		<ol start={from + 1}>{(block.sources ?? []).map((s, i) => <li key={i}><details><summary><span className="cite-no">{from + i + 1}</span>{sourceName(s)}</summary><SourceCard source={s} /></details></li>)}</ol></details>;
}

function AskBlock({turn, block, over}: {turn: Turn; block: Block; over: boolean}) {
	const {pending, pendingKnown} = useContext(Around);
	const listed = pending.get(block.id ?? '');
	const settled = useQuery({queryKey: ['actions', 'run', turn.id], enabled: block.state !== 'pending', staleTime: 10000,
		queryFn: () => askJson<{actions: Action[]}>(`api/actions?status=resolved&run_id=${encodeURIComponent(turn.id)}`)});
	const answered = settled.data?.actions.find((a) => a.action_id === block.id);
	const base = {...(block.ask as AskLike), ...listed, ...answered, run_id: turn.id} as AskLike;
	// what waits is what the server lists as waiting; a list that was not read yet decides nothing
	const stale = block.state === 'pending' && pendingKnown && !listed && turn.old;
	return <Ask action={{...base, scope: listed?.scope ?? (block.ask?.scope as any), schema_ref: block.ask?.schema_ref}} state={block.state ?? 'pending'} over={over || stale} event={block.event} />;
}

const BlockView = memo(function BlockView({turn, block, last, over, sources, spans}: {turn: Turn; block: Block; rev: number; last: boolean; over: boolean; sources: Source[]; spans: Span[]}) {
	switch (block.kind) {
	case 'text': return <div className="answer"><Suspense fallback={<p className="prose plain-text">{block.text}</p>}><Markdown text={block.text} done={over || !last} sources={sources} /></Suspense></div>;
	case 'reasoning': return <Reasoning turn={turn} block={block} live={last && !over} spans={spans} />;
	case 'artifact': return <ArtifactChip turn={turn} block={block} />;
	case 'memory': return <details className="note f12 t2"><summary>Remembered {block.items?.length === 1 ? 'one thing' : `${block.items?.length} things`}</summary><ul>{(block.items ?? []).map((item, i) => <li key={i}>{plain(String(item?.value ?? pretty(item)))}{item?.source ? <span className="t3"> ({plain(String(item.source))})</span> : null}</li>)}</ul></details>;
	case 'ask': return <AskBlock turn={turn} block={block} over={over} />;
	case 'superseded': return <><div className="cutline f12"><span><strong>Server restarted</strong> <span className="t2">{plain(block.title ?? '')}</span></span><EventLink turn={turn} event={block.event} /></div>
		{block.text && <details className="superseded f12 t3"><summary>Superseded: {count(block.text.length)} characters no longer count. Show</summary><p className="gone">{block.text}</p></details>}</>;
	case 'navigate': return <Navigate title={block.title ?? ''} target={block.text} />;
	default: return <p className="note f12 t2">{plain(block.text)}</p>;
	}
}, (a, b) => a.rev === b.rev && a.block === b.block && a.last === b.last && a.over === b.over && a.spans === b.spans && a.sources.length === b.sources.length);

/** Tool calls that follow each other are one group. */
function grouped(blocks: Block[]): (Block | Block[])[] {
	const out: (Block | Block[])[] = [];
	for (const b of blocks) {
		const last = out.at(-1);
		if (b.kind === 'tool' && Array.isArray(last))
			last.push(b);
		else
			out.push(b.kind === 'tool' ? [b] : b);
	}
	return out;
}

/** Says something else in its place: what follows is another branch, this one stays. */
function EditMessage({turn, close}: {turn: Turn; close: () => void}) {
	const {again} = useContext(Around);
	const [text, setText] = useState<string | null>(turn.whole ? turn.message : null);
	const [busy, setBusy] = useState(false);
	useEffect(() => {
		if (text === null)
			wholeMessage(turn).then(setText, (e) => { complain('The message could not be read whole', e); close(); });
	}, []); // eslint-disable-line
	return <form className="mine-edit" onSubmit={(e) => {
		e.preventDefault();
		if (!text?.trim() || busy || !again)
			return;
		setBusy(true);
		void again(turn, text.trim()).finally(() => setBusy(false));
	}}>
		<textarea className="input" aria-label="Message, edited" dir="auto" autoFocus disabled={text === null || busy} value={text ?? ''} rows={Math.min(12, (text ?? '').split('\n').length + 1)}
			onChange={(e) => setText(e.target.value)} onKeyDown={(e) => { if (e.key === 'Escape') close(); }} />
		<div className="row"><button type="submit" className="btn main-act" disabled={!text?.trim() || busy}>{busy ? 'Sending' : 'Send as a branch'}</button><button type="button" className="btn" onClick={close}>Cancel</button>
			<span className="f12 t3">What was said before is shared; this version stays.</span></div></form>;
}

function Message({turn, over}: {turn: Turn; over: boolean}) {
	const {again} = useContext(Around);
	const [whole, setWhole] = useState('');
	const [editing, setEditing] = useState(false);
	const text = whole || turn.message;
	if (editing)
		return <div className="mine"><EditMessage turn={turn} close={() => setEditing(false)} /></div>;
	return <div className="mine"><div className="mine-text" dir="auto">{text}</div>
		{turn.files.length > 0 && <ul className="row wrap" aria-label="Attached">{turn.files.map((f, i) => <li key={i} className="badge sent-file"><Paperclip size={12} aria-hidden />{f}</li>)}</ul>}
		{!turn.whole && !whole && turn.messageRef.startsWith('blob://') && <button type="button" className="btn small" onClick={async () => {
			try {
				setWhole(await wholeMessage(turn));
			} catch (e) {
				complain('The message could not be read whole', e);
			}
		}}>Show all</button>}
		{again && over && turn.id && <button type="button" className="btn quiet icon small mine-act" aria-label="Edit the message" title="Edit and send as a branch" onClick={() => setEditing(true)}><Pencil size={13} aria-hidden /></button>}</div>;
}

/** What it cost, as far as the server knows it. */
function Facts({turn}: {turn: Turn}) {
	const r = turn.record;
	if (!turn.outcome || !r)
		return null;
	return <span className="f11 t3 num">{[typeof r.duration === 'number' ? span(r.duration) : 'time unknown', typeof r.tokens === 'number' && r.tokens > 0 ? `${count(r.tokens)} tokens` : 'tokens unknown', r.cost ? money(r.cost) : ''].filter(Boolean).join(' · ')}</span>;
}

function Ending({turn, last}: {turn: Turn; last: boolean}) {
	const {retry, again} = useContext(Around);
	const [busy, setBusy] = useState(false);
	const {words, look} = endingOf(turn);
	const failed = turn.outcome && !turn.outcome.ok && turn.id;
	return <div className="ending row wrap" data-state={look}>
		{!turn.outcome && !turn.refusal && look !== 'wait' && <LoaderCircle size={13} className="spin k-run" aria-hidden />}
		<span className="ending-words">{words}</span><Facts turn={turn} />
		{turn.outcome && turn.fold.answer && <CopyButton text={() => turn.fold.answer} icon label="Copy the answer" />}
		{failed && last && <button type="button" className="btn small" onClick={() => retry(turn)}><RotateCcw size={13} aria-hidden />Try again</button>}
		{again && turn.outcome?.ok && turn.id && last && <button type="button" className="btn quiet icon small" aria-label="Regenerate the answer" title="Regenerate: another answer, as a branch" disabled={busy}
			onClick={() => { setBusy(true); void again(turn, null).finally(() => setBusy(false)); }}><RefreshCw size={13} aria-hidden className={busy ? 'spin' : undefined} /></button>}
		{turn.id && leads(`runs/${turn.id}`) && <A className="f12 link" to={`runs/${turn.id}`}>Run</A>}
	</div>;
}

export const RunView = memo(function RunView({turn, name, attempts, last}: {turn: Turn; version: number; name: string; attempts: number; last: boolean}) {
	const {fold} = turn, over = turn.outcome !== null;
	const sources = fold.sources, spans = useSpans(turn);
	let cited = 0;
	const attempt = turn.record?.attempt ?? 1;
	return <article className="run" data-run={turn.id} aria-label={`Run of ${name}`} aria-busy={!over}>
		<header className="who"><span className="ava agent"><Bot size={13} aria-hidden /></span><strong>{name}</strong>
			{turn.record?.created_at ? <time className="t3 f12" title={exact(turn.record.created_at)}>{clock(turn.record.created_at)}</time> : null}
			{attempts > 1 && <span className="badge attempt">attempt {attempt} of {attempts}</span>}<span className="grow" />{fold.first ? <EventLink turn={turn} event={fold.first} /> : null}</header>
		<div className="blocks">
			{grouped(fold.blocks).map((b) => {
				if (Array.isArray(b))
					return <Tools key={b[0].key} turn={turn} blocks={b} spans={spans} over={over} />;
				if (b.kind === 'sources') {
					const from = cited;
					cited += b.sources?.length ?? 0;
					return <SourcesList key={b.key} block={b} from={from} />;
				}
				return <BlockView key={b.key} turn={turn} block={b} rev={b.rev} last={b === fold.blocks.at(-1)} over={over} sources={sources} spans={spans} />;
			})}
		</div>
		<Ending turn={turn} last={last} />
	</article>;
}, (a, b) => a.version === b.version && a.turn === b.turn && a.name === b.name && a.attempts === b.attempts && a.last === b.last);

/** Versions of a message: the threads that part here. */
export interface Branches { at: number; threads: string[]; go: (thread: string) => void }

function Branch({b}: {b: Branches}) {
	return <span className="branches row f12 t2" role="group" aria-label="Versions">
		<button type="button" className="btn quiet icon small" aria-label="Version before" disabled={b.at <= 0} onClick={() => b.go(b.threads[b.at - 1])}><ChevronLeft size={14} aria-hidden /></button>
		<span className="num">{b.at + 1} of {b.threads.length}</span>
		<button type="button" className="btn quiet icon small" aria-label="Next version" disabled={b.at >= b.threads.length - 1} onClick={() => b.go(b.threads[b.at + 1])}><ChevronRight size={14} aria-hidden /></button></span>;
}

/** A message and the attempts to answer it; those that failed stay. */
export function Group({turns, nameOf, branches}: {talk: Talk; turns: Turn[]; nameOf: (agent: string) => string; branches: Branches | null}) {
	const newest = turns[turns.length - 1];
	return <section className="turn" data-root={newest.root}>
		{turns[0].message && <><header className="who"><span className="ava"><User size={13} aria-hidden /></span><strong>You</strong>{branches && <Branch b={branches} />}</header><Message turn={turns[0]} over={newest.outcome !== null} /></>}
		{turns.slice(0, -1).map((t) => <details key={t.id} className="earlier-attempt"><summary className="row f12 t2"><RotateCcw size={13} aria-hidden />Attempt {t.record?.attempt ?? '?'}: <span className="cut grow">{endingOf(t).words}</span></summary>
			<RunView turn={t} version={t.version} name={nameOf(t.agent)} attempts={turns.length} last={false} /></details>)}
		<RunView turn={newest} version={newest.version} name={nameOf(newest.agent)} attempts={turns.length} last />
	</section>;
}
