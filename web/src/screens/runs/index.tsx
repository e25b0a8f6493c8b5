// Runs: a table whose filters are in the address; attempts at the same work are one group.
import {useVirtualizer} from '@tanstack/react-virtual';
import {ArrowDown, ArrowUp, ChevronDown, ChevronRight, Search, X} from 'lucide-react';
import {memo, useEffect, useRef, useState} from 'react';
import {Ago, A, Bones, CopyButton, Empty, Menu, MenuItem, ProblemNote, State, Top} from '../../components/ui';
import {count, money, span, stateOf} from '../../lib/format';
import {useKept, useMedia, useNow, useTitle} from '../../lib/hooks';
import {useShortcuts} from '../../lib/keys';
import {go, useFilter} from '../../lib/nav';
import {useAgents} from '../../lib/query';
import type {RunRecord} from '../../lib/types';
import {Bulk} from './Bulk';
import {NAMES, useAttempts, useRuns, useTotals, wordOf, type Filters} from './data';
import './runs.css';

const STATES: [string, string][] = [['', 'All'], ['waiting', 'Waits for you'], ['running', 'Running'], ['queued', 'Queued'],
	['failed', 'Failed'], ['timeout', 'Timed out'], ['succeeded', 'Succeeded'], ['canceled', 'Cancelled']];
const CHOICES: Record<string, [string, string][]> = {
	since: [['1h', 'Last hour'], ['24h', 'Last 24 hours'], ['7d', 'Last 7 days'], ['30d', 'Last 30 days']],
	longer: [['1', 'Over 1 s'], ['10', 'Over 10 s'], ['60', 'Over 1 min'], ['600', 'Over 10 min']],
	cost: [['0.001', 'Over $0.001'], ['0.01', 'Over $0.01'], ['0.1', 'Over $0.10'], ['1', 'Over $1']],
};

/** Every filter, from the address. */
function useFilters(): [Filters, (name: keyof Filters, value: string) => void] {
	const all = Object.fromEntries(NAMES.map((n) => [n, useFilter(n)])) as Record<keyof Filters, [string, (v: string) => void]>;
	return [Object.fromEntries(NAMES.map((n) => [n, all[n][0]])) as unknown as Filters, (name, value) => all[name][1](value)];
}

/** What is typed goes to the address a moment later. */
function Words({value, set, label, holder}: {value: string; set: (v: string) => void; label: string; holder: string}) {
	const [text, type] = useState(value);
	const timer = useRef(0);
	useEffect(() => type(value), [value]);
	return <label className="runs-words"><Search size={14} aria-hidden /><span className="unseen">{label}</span>
		<input className="input" type="search" placeholder={holder} value={text} onChange={(e) => {
			type(e.target.value);
			clearTimeout(timer.current);
			const next = e.target.value.trim();
			timer.current = window.setTimeout(() => set(next), 250);
		}} onKeyDown={(e) => { if (e.key === 'Enter') { clearTimeout(timer.current); set(text.trim()); } }} /></label>;
}

function Choice({name, label, value, options, set}: {name: string; label: string; value: string; options: [string, string][]; set: (v: string) => void}) {
	const chosen = options.find(([v]) => v === value)?.[1] ?? value;
	return <span className="runs-choice" data-set={value ? '' : undefined}>
		<Menu className="btn" label={`${label}${value ? `: ${chosen}` : ''}`} button={<>{value ? `${label}: ${chosen}` : label}<ChevronDown size={13} aria-hidden /></>}>
			{options.map(([v, text]) => <MenuItem key={v} onClick={() => set(v)}>{text}</MenuItem>)}
			{value && <MenuItem onClick={() => set('')}>Any</MenuItem>}
		</Menu>
		{value && <button type="button" className="btn icon" aria-label={`Without ${name}`} onClick={() => set('')}><X size={13} aria-hidden /></button>}
	</span>;
}

/** The second fact of a row: why it ended or what it does now, in the server's words. */
function Fact({run}: {run: RunRecord}) {
	const asked = (run.actions as {prompt: string}[] | undefined)?.[0]?.prompt;
	if (run.error)
		return <span className="runs-fact err cut" title={run.error.code}>{run.error.message || run.error.code}</span>;
	if (asked)
		return <span className="runs-fact cut">{asked}</span>;
	const now = run.message ?? (run.finished_at === null && run.step_total ? `${run.step} of ${run.step_total}` : null);
	return now ? <span className="runs-fact cut">{String(now)}</span> : null;
}

function Duration({run, longest}: {run: RunRecord; longest: number}) {
	const now = useNow(run.finished_at === null ? 1 : 3600);
	const took = run.duration ?? (run.started_at === null ? null : (run.finished_at ?? now) - run.started_at);
	if (took === null)
		return <span className="t3">not yet</span>;
	const {kind} = stateOf(run.status, run.engine_status);
	return <><i className="runs-bar" data-kind={kind} style={{width: `${Math.max(3, Math.min(56, Math.sqrt(took / longest) * 56))}px`}} /><span className="num">{span(Math.max(0, took))}</span></>;
}

interface RowProps {
	run: RunRecord; longest: number; at: boolean; chosen: boolean; choose: (v: boolean) => void;
	attempts?: number; open?: boolean; toggle?: () => void; child?: boolean;
}

const Row = memo(function Row({run, longest, at, chosen, choose, attempts, open, toggle, child}: RowProps) {
	return <div className="runs-row" role="row" data-chosen={chosen ? '' : undefined} data-at={at ? '' : undefined} data-child={child ? '' : undefined} data-run={run.run_id}>
		<span role="cell" className="runs-pick">{!child && <input type="checkbox" aria-label={`Select ${wordOf(run)}`} checked={chosen} onChange={(e) => choose(e.target.checked)} />}</span>
		<span role="cell" className="runs-state"><State status={run.status} engine={run.engine_status} /></span>
		<span role="cell" className="runs-title"><A className="cut" to={`runs/${run.run_id}`}>{child ? `Attempt ${run.attempt}` : wordOf(run)}</A>
			{attempts !== undefined && attempts > 1 && <button type="button" className="btn small" aria-expanded={open} onClick={toggle}>
				{open ? <ChevronDown size={13} aria-hidden /> : <ChevronRight size={13} aria-hidden />}{attempts} attempts</button>}
			<Fact run={run} /></span>
		<span role="cell" className="runs-agent cut">{run.agent_id}</span>
		<span role="cell" className="runs-when"><Ago at={run.started_at ?? run.created_at} /></span>
		<span role="cell" className="runs-took"><Duration run={run} longest={longest} /></span>
		<span role="cell" className="runs-cost num">{typeof run.cost === 'number' ? money(run.cost) : <span className="t3">unknown</span>}</span>
		<span role="cell" className="runs-tokens num">{typeof run.tokens === 'number' ? count(run.tokens) : <span className="t3">unknown</span>}</span>
	</div>;
});

/** Attempts of one root that are not in the list themselves. */
function Attempts({root, longest}: {root: string; longest: number}) {
	const {data, error} = useAttempts(root);
	if (error)
		return <ProblemNote what="The attempts could not be read" error={error} />;
	return <>{(data ?? []).map((r) => <Row key={r.run_id} run={r} longest={longest} at={false} chosen={false} choose={() => {}} child />)}</>;
}

const HEADS: [string, string, string][] = [['status', 'State', 'runs-state'], ['title', 'What was asked', 'runs-title'], ['agent_id', 'Agent', 'runs-agent'],
	['created_at', 'Started', 'runs-when'], ['duration', 'Duration', 'runs-took'], ['cost', 'Cost', 'runs-cost'], ['tokens', 'Tokens', 'runs-tokens']];

function Head({sort, set, all, pick}: {sort: string; set: (v: string) => void; all: boolean; pick: (v: boolean) => void}) {
	const now = sort || '-created_at';
	return <div className="runs-row runs-head" role="row">
		<span role="columnheader" className="runs-pick"><input type="checkbox" aria-label="Select all that are shown" checked={all} onChange={(e) => pick(e.target.checked)} /></span>
		{HEADS.map(([key, title, cls]) => {
			const up = now === key, down = now === `-${key}`;
			return <span key={key} role="columnheader" className={cls} aria-sort={up ? 'ascending' : down ? 'descending' : 'none'}>
				<button type="button" onClick={() => set(down ? key : `-${key}`)}>{title}{up ? <ArrowUp size={12} aria-hidden /> : down ? <ArrowDown size={12} aria-hidden /> : null}</button></span>;
		})}</div>;
}

/** Searches that people keep, in this browser. */
function Views() {
	const [kept, keep] = useKept('views', '[]');
	let views: [string, string][] = [];
	try {
		views = JSON.parse(kept);
	} catch { /* a damaged note of this browser is no note */ }
	const now = location.search;
	return <Menu className="btn" label="Saved views" button={<>Saved views<ChevronDown size={13} aria-hidden /></>}>
		{views.map(([name, query]) => <MenuItem key={name} onClick={() => go(`runs${query}`)}>{name}</MenuItem>)}
		{now && <MenuItem onClick={() => {
			const name = [...new URLSearchParams(now).values()].join(', ');
			keep(JSON.stringify([...views.filter(([, q]) => q !== now), [name, now]].slice(-20)));
		}}>Save this view</MenuItem>}
		{views.some(([, q]) => q === now) && <MenuItem onClick={() => keep(JSON.stringify(views.filter(([, q]) => q !== now)))}>Forget this view</MenuItem>}
		{!now && !views.length && <MenuItem disabled onClick={() => {}}>Set a filter, then save it here</MenuItem>}
	</Menu>;
}

function StateTabs({filters, set}: {filters: Filters; set: (v: string) => void}) {
	const totals = useTotals(filters);
	return <div className="tabs" role="tablist" aria-label="State">{STATES.map(([value, title]) => {
		const total = totals[value];
		return <button key={value} type="button" role="tab" aria-selected={filters.state === value} onClick={() => set(value)}>{title}
			{total !== undefined && <span className="t3 num f12">{total > 1000 ? '1,000+' : total}</span>}</button>;
	})}</div>;
}

/** Rows in their order, each root once: its newest attempt that is listed. */
function grouped(runs: RunRecord[]): {run: RunRecord; attempts: number}[] {
	const seen = new Map<string, {run: RunRecord; attempts: number}>();
	for (const run of runs) {
		const group = seen.get(run.root_run_id);
		if (group)
			group.attempts = Math.max(group.attempts, run.attempt);
		else
			seen.set(run.root_run_id, {run, attempts: run.attempt});
	}
	return [...seen.values()];
}

function Table({filters, set}: {filters: Filters; set: (name: keyof Filters, value: string) => void}) {
	const list = useRuns(filters);
	const rows = grouped(list.runs);
	const [open, setOpen] = useState<Set<string>>(new Set());
	const [chosen, setChosen] = useState<Map<string, RunRecord>>(new Map());
	const [at, setAt] = useState(-1);
	const ref = useRef<HTMLDivElement>(null);
	const narrow = useMedia('(max-width: 1100px)');
	const longest = Math.max(1, ...list.runs.map((r) => r.duration ?? 0));
	const virtual = useVirtualizer({count: rows.length, getScrollElement: () => ref.current, overscan: 12,
		estimateSize: () => narrow ? 52 : 36, getItemKey: (i) => rows[i].run.run_id});
	const items = virtual.getVirtualItems();
	const last = items.at(-1)?.index ?? 0;
	useEffect(() => {
		if (last >= rows.length - 20)
			list.more();
	}, [last, rows.length, list.more]);
	useEffect(() => virtual.measure(), [narrow]);
	const move = (by: number) => {
		const next = Math.max(0, Math.min(rows.length - 1, at + by));
		setAt(next);
		virtual.scrollToIndex(next);
	};
	useShortcuts([{keys: 'J', does: 'Next run', run: () => move(1)}, {keys: 'K', does: 'Previous run', run: () => move(-1)},
		{keys: 'Enter', does: 'Open the run', run: () => { if (rows[at]) go(`runs/${rows[at].run.run_id}`); }},
		{keys: 'X', does: 'Select the run', run: () => { if (rows[at]) choose(rows[at].run, !chosen.has(rows[at].run.run_id)); }},
		{keys: '/', does: 'Search', run: () => document.querySelector<HTMLInputElement>('.runs-words input')?.focus()}]);
	const choose = (run: RunRecord, on: boolean) => setChosen((old) => {
		const fresh = new Map(old);
		if (on)
			fresh.set(run.run_id, run);
		else
			fresh.delete(run.run_id);
		return fresh;
	});
	const toggle = (root: string) => setOpen((old) => { const fresh = new Set(old); if (!fresh.delete(root)) fresh.add(root); return fresh; });
	if (list.error && !rows.length)
		return <div className="page"><ProblemNote what="The runs could not be read" error={list.error} retry={list.again} /></div>;
	if (list.loading)
		return <div className="page"><Bones rows={8} /></div>;
	if (!rows.length) {
		const some = NAMES.some((n) => n !== 'sort' && filters[n]);
		return <Empty title={some ? 'No run fits these filters' : 'No run yet'}>
			{some ? <button type="button" className="btn" onClick={() => go('runs')}>Show all runs</button>
				: <><p>Runs of agents and plugins are listed here. The demo needs no model.</p><A className="btn" to="c?agent=demo">Try the demo</A></>}</Empty>;
	}
	return <>
		<div className="runs-table" role="table" aria-label="Runs" aria-rowcount={-1}>
			<Head sort={filters.sort} set={(v) => set('sort', v)} all={rows.every((r) => chosen.has(r.run.run_id))} pick={(on) => setChosen(on ? new Map(rows.map((r) => [r.run.run_id, r.run])) : new Map())} />
			<div className="scroll" ref={ref} tabIndex={0} aria-label="Runs, scrolls" role="rowgroup"><div style={{height: virtual.getTotalSize(), position: 'relative'}} role="presentation">
				{items.map((item) => {
					const {run, attempts} = rows[item.index];
					return <div key={item.key} ref={virtual.measureElement} data-index={item.index} role="presentation" className="runs-group" style={{transform: `translateY(${item.start}px)`}}>
						<Row run={run} longest={longest} at={item.index === at} chosen={chosen.has(run.run_id)} choose={(on) => choose(run, on)} attempts={attempts} open={open.has(run.root_run_id)} toggle={() => toggle(run.root_run_id)} />
						{open.has(run.root_run_id) && <Attempts root={run.root_run_id} longest={longest} />}
					</div>;
				})}</div>
				{list.fetching && <p className="runs-more t3 f12">Reading older runs</p>}
			</div>
		</div>
		{list.partial && <p className="runs-note f12" role="status">The search index is still being filled: older runs may be missing. They appear by themselves.</p>}
		{chosen.size > 0 && <Bulk runs={[...chosen.values()]} close={() => setChosen(new Map())} />}
	</>;
}

export default function Runs() {
	useTitle('Runs');
	const [filters, set] = useFilters();
	const agents = useAgents();
	return <>
		<Top title="Runs"><Views /><CopyButton text={() => location.href} label="Copy link" small={false} /></Top>
		<StateTabs filters={filters} set={(v) => set('state', v)} />
		<div className="runs-filters">
			<Words label="Words of the message or the answer" holder="Words of message or answer" value={filters.q} set={(v) => set('q', v)} />
			<Choice name="agent" label="Agent" value={filters.agent} options={(agents.data?.agents ?? []).map((a) => [a.agent_id, a.title || a.agent_id])} set={(v) => set('agent', v)} />
			<Choice name="time" label="Started" value={filters.since} options={CHOICES.since} set={(v) => set('since', v)} />
			<Choice name="duration" label="Duration" value={filters.longer} options={CHOICES.longer} set={(v) => set('longer', v)} />
			<Choice name="cost" label="Cost" value={filters.cost} options={CHOICES.cost} set={(v) => set('cost', v)} />
			<Words label="Error code" holder="Error code" value={filters.error} set={(v) => set('error', v)} />
		</div>
		<Table key={JSON.stringify(filters)} filters={filters} set={set} />
	</>;
}
