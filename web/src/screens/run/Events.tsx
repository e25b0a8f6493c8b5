// Events.tsx - the log of a run: a list of any length, a filter, a search, and the event itself.
import {useVirtualizer} from '@tanstack/react-virtual';
import {ChevronDown, Search} from 'lucide-react';
import {useEffect, useMemo, useRef, useState} from 'react';
import {CopyButton, Menu, MenuItem, ProblemNote, Segment, A} from '../../components/ui';
import {count, exact, seconds} from '../../lib/format';
import {useShortcuts} from '../../lib/keys';
import {useFilter} from '../../lib/nav';
import {pieces, quiet, useBlocks, useChosen, type Timeline} from './data';
import {KindIcon, PIECES, detailOf, extraOf, kindOf, wordOfEvent, type LogEvent} from './words';

const GROUPS: [string, string, (t: string) => boolean][] = [['errors', 'Errors', (t) => kindOf(t) === 'error'], ['model', 'Model', (t) => /^(model|reasoning)\./.test(t)],
	['tool', 'Tools', (t) => t.startsWith('tool.')], ['ask', 'Approvals', (t) => /^(action|permission)\./.test(t)], ['run', 'Run and task', (t) => /^(run|task|turn|thread)\./.test(t)]];

function Row({e, t, on, choose}: {e: LogEvent; t: Timeline; on: boolean; choose: (n: number) => void}) {
	const kind = kindOf(e.type);
	return <button type="button" className="run-event" data-kind={kind} data-event={e.run_sequence} aria-current={on ? 'true' : undefined} onClick={() => choose(e.run_sequence)}>
		<span className="mono f11 t3">#{e.run_sequence}</span><span className="mono f11 t3 run-offset">+{Math.max(0, seconds(e.timestamp) - t.first_at).toFixed(3)}</span>
		<span className="run-word cut" title={e.type}><KindIcon kind={kind} />{wordOfEvent(e.type)}</span><span className="cut t2">{detailOf(e)}</span><span className="num f11 t3 run-extra">{extraOf(e)}</span></button>;
}

/** Rows of a list with something left out; a gap in the numbers is text that is folded. */
type Item = {event: LogEvent} | {from: number; to: number};
function withGaps(events: LogEvent[], through: number): Item[] {
	const out: Item[] = [];
	let before = 0;
	for (const event of events) {
		if (event.run_sequence > before + 1)
			out.push({from: before + 1, to: event.run_sequence - 1});
		out.push({event});
		before = event.run_sequence;
	}
	if (through > before)
		out.push({from: before + 1, to: through});
	return out;
}

interface ListProps { id: string; t: Timeline; chosen: number; choose: (n: number) => void }

function Whole({id, t, chosen, choose}: ListProps) {
	const ref = useRef<HTMLDivElement>(null);
	const virtual = useVirtualizer({count: t.last, getScrollElement: () => ref.current, estimateSize: () => 28, overscan: 20});
	const items = virtual.getVirtualItems();
	const {found, error} = useBlocks(id, (items[0]?.index ?? 0) + 1, (items.at(-1)?.index ?? 0) + 1, t.last);
	useEffect(() => { if (chosen) virtual.scrollToIndex(chosen - 1, {align: 'auto'}); }, [chosen]);
	return <>{error && <ProblemNote what="Some events could not be read" error={error} />}<div className="run-events scroll" ref={ref} tabIndex={0} role="group" aria-label="Events"><div style={{height: virtual.getTotalSize(), position: 'relative'}}>{items.map((item) => {
		const e = found.get(item.index + 1);
		return <div key={item.key} className="run-at" style={{transform: `translateY(${item.start}px)`}}>{e ? <Row e={e} t={t} on={chosen === e.run_sequence} choose={choose} />
			: <div className="run-event"><span className="mono f11 t3">#{item.index + 1}</span></div>}</div>;
	})}</div></div></>;
}

function Chosen({id, t, chosen, choose, types, q, gaps, unfold}: ListProps & {types: string[]; q: string; gaps: boolean; unfold: (n: number) => void}) {
	const ref = useRef<HTMLDivElement>(null);
	const list = useChosen(id, types, q, t.last);
	const items = useMemo<Item[]>(() => gaps ? withGaps(list.events, list.more ? list.events.at(-1)?.run_sequence ?? 0 : list.through) : list.events.map((event) => ({event})), [list.events.length, list.through, gaps, list.more]);
	const virtual = useVirtualizer({count: items.length, getScrollElement: () => ref.current, estimateSize: () => 28, overscan: 20});
	const shown = virtual.getVirtualItems();
	const last = shown.at(-1)?.index ?? 0;
	const where = items.findIndex((i) => 'event' in i ? i.event.run_sequence === chosen : i.from <= chosen && chosen <= i.to);
	useEffect(() => {
		if (list.more && !list.fetching && (last >= items.length - 30 || (chosen > list.through && where < 0)))
			void list.next();
	}, [last, items.length, list.more, list.fetching, chosen, where]);
	useEffect(() => { if (where >= 0) virtual.scrollToIndex(where, {align: 'auto'}); }, [where]);
	if (list.error)
		return <ProblemNote what="The events could not be read" error={list.error} />;
	return <div className="run-events scroll" ref={ref} tabIndex={0} role="group" aria-label="Events">
		{!items.length && !list.fetching && <p className="empty">No event fits.</p>}
		<div style={{height: virtual.getTotalSize(), position: 'relative'}}>{shown.map((v) => {
			const item = items[v.index];
			return <div key={v.key} className="run-at" style={{transform: `translateY(${v.start}px)`}}>{'event' in item ? <Row e={item.event} t={t} on={chosen === item.event.run_sequence} choose={choose} />
				: <button type="button" className="run-event" data-kind="text" onClick={() => unfold(item.from)}><span className="mono f11 t3">#{item.from}{item.to > item.from ? `–${item.to}` : ''}</span><span className="run-offset" />
					<span className="run-word"><KindIcon kind="text" />Text</span><span className="t3 cut">{item.to - item.from + 1} {item.to > item.from ? 'pieces' : 'piece'}</span></button>}</div>;
		})}</div></div>;
}

/** JSON as lines, with colours; the values are text nodes, so that nothing of them is run. */
export function Json({value}: {value: unknown}) {
	const text = JSON.stringify(value, null, 2) ?? '';
	const parts = text.length > 60000 ? [text] : text.split(/("(?:[^"\\]|\\.)*"(?:\s*:)?|\b-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b|\btrue\b|\bfalse\b|\bnull\b)/);
	return <pre className="run-json" tabIndex={0}>{parts.map((p, i) => i % 2 === 0 ? p : <span key={i} className={p.endsWith(':') ? 'jk' : p.startsWith('"') ? 'js' : 'jn'}>{p}</span>)}</pre>;
}

function Inspector({id, n, choose, last}: {id: string; n: number; choose: (n: number) => void; last: number}) {
	const {found, error} = useBlocks(id, n, n, last);
	const [view, setView] = useState<'json' | 'payload'>('json');
	const e = found.get(n);
	return <aside className="run-inspector" aria-label={`Event ${n}`}>
		<header className="row"><strong>Event #{n}</strong><span className="mono f12 t2 cut grow">{e?.type}</span>
			<Segment label="Show" value={view} options={[['json', 'JSON'], ['payload', 'Payload']]} set={setView} />
			<CopyButton icon label="Copy the event" text={() => JSON.stringify(e, null, 2)} /></header>
		<p className="f12 t3 row">{e && <span>{exact(seconds(e.timestamp))}</span>}<span className="grow" /><button type="button" className="btn small" disabled={n <= 1} onClick={() => choose(n - 1)}>Before</button><button type="button" className="btn small" disabled={n >= last} onClick={() => choose(n + 1)}>Next</button>
			<A className="btn small" to={`replay/${id}?at=${n}`}>Replay here</A></p>
		{error ? <ProblemNote what="The event could not be read" error={error} /> : e ? <Json value={view === 'json' ? e : e.payload} /> : <p className="t3">Reading</p>}
	</aside>;
}

export function Events({id, t, chosen, choose}: ListProps) {
	const [group, setGroup] = useFilter('kind');
	const [q, setQ] = useFilter('find');
	const [all, setAll] = useFilter('pieces');
	const [text, type] = useState(q);
	const timer = useRef(0);
	const wanted = GROUPS.find(([g]) => g === group)?.[2];
	const types = wanted ? Object.keys(t.types).filter(wanted) : q ? Object.keys(t.types) : quiet(t.types);
	const folded = pieces(t.types);
	useShortcuts([{keys: 'J', does: 'Next event', run: () => choose(Math.min(t.last, chosen + 1))}, {keys: 'K', does: 'Event before', run: () => choose(Math.max(1, chosen - 1))},
		{keys: '/', does: 'Search in the events', run: () => document.querySelector<HTMLInputElement>('.run-find input')?.focus()},
		{keys: 'E', does: 'Next error', run: () => { const s = t.spans.find((x) => x.first > chosen && (x.kind === 'error' || x.state === 'failed')) ?? t.spans.find((x) => x.kind === 'error' || x.state === 'failed'); if (s) choose(s.last ?? s.first); }}]);
	return <section className="run-log">
		<div className="run-list">
			<div className="run-tools"><label className="run-find"><Search size={14} aria-hidden /><span className="unseen">Search in the events</span><input className="input" type="search" placeholder={`Search in ${count(t.last)} events`} value={text} onChange={(e) => {
				type(e.target.value);
				clearTimeout(timer.current);
				const next = e.target.value.trim();
				timer.current = window.setTimeout(() => setQ(next), 300);
			}} /></label>
				<Menu className="btn" button={<>{GROUPS.find(([g]) => g === group)?.[1] ?? 'All kinds'}<ChevronDown size={13} aria-hidden /></>}>
					<MenuItem onClick={() => setGroup('')}>All kinds</MenuItem>{GROUPS.filter(([, , fits]) => Object.keys(t.types).some(fits)).map(([g, name]) => <MenuItem key={g} onClick={() => setGroup(g)}>{name}</MenuItem>)}</Menu>
				<span className="grow" />
				{!wanted && !q && folded > 0 && <button type="button" className="btn quiet" aria-pressed={all === '1'} onClick={() => setAll(all ? '' : '1')}>{all ? 'Fold text pieces' : `${count(folded)} text pieces folded`}</button>}</div>
			{!wanted && !q && (all || !folded) ? <Whole id={id} t={t} chosen={chosen} choose={choose} />
				: <Chosen key={`${group} ${q}`} id={id} t={t} chosen={chosen} choose={choose} types={types} q={q} gaps={!wanted && !q} unfold={(n) => { setAll('1'); setTimeout(() => choose(n)); }} />}
		</div>
		{chosen > 0 && <Inspector id={id} n={chosen} choose={choose} last={t.last} />}
	</section>;
}
export {PIECES};
