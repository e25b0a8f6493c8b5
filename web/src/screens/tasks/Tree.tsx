// Tree.tsx - sessions, their threads, their tasks: one virtual tree, complete by keyboard.
import {useVirtualizer} from '@tanstack/react-virtual';
import {ChevronDown, ChevronRight, FolderTree, MessageSquare} from 'lucide-react';
import {useEffect, useMemo, useRef, useState} from 'react';
import {sessionState} from '../../components/Rail';
import {State} from '../../components/ui';
import type {Session} from '../../lib/types';
import {type Snapshot, type TaskItem, type ThreadItem, tasksOf, threadWord, wordOf} from './data';

export interface Chosen { session: string; thread: string; task: string }
type Row = {key: string; level: number; session: string; open?: boolean} & ({kind: 'session'; it: Session} | {kind: 'thread'; it: ThreadItem; n: number} | {kind: 'task'; it: TaskItem} | {kind: 'note'; text: string});

function below(s: Snapshot, folded: Set<string>, session: string): Row[] {
	const tasks = tasksOf(s), known = new Set(tasks.map((t) => t.task_id));
	const children = (id: string) => tasks.filter((t) => t.parent_task_id === id);
	const rows: Row[] = [];
	const put = (t: TaskItem, level: number) => {
		const kids = children(t.task_id), key = `t ${t.task_id}`;
		rows.push({kind: 'task', key, level, session, it: t, open: kids.length ? !folded.has(key) : undefined});
		if (kids.length && !folded.has(key))
			kids.forEach((k) => put(k, level + 1));
	};
	const tops = tasks.filter((t) => !t.parent_task_id || !known.has(t.parent_task_id));
	const shown = new Set(s.threads.items.map((t) => t.thread_id));
	for (const t of tops.filter((x) => !x.thread_id || !shown.has(x.thread_id)))
		put(t, 2);
	for (const thread of s.threads.items) {
		const own = tops.filter((t) => t.thread_id === thread.thread_id), key = `h ${thread.thread_id}`;
		rows.push({kind: 'thread', key, level: 2, session, it: thread, n: own.length, open: own.length ? !folded.has(key) : undefined});
		if (!folded.has(key))
			own.forEach((t) => put(t, 3));
	}
	const left = (s.tasks?.omitted ?? 0) + s.threads.omitted;
	if (left)
		rows.push({kind: 'note', key: `n ${session}`, level: 2, session, text: `${left} older are not shown`});
	if (!rows.length)
		rows.push({kind: 'note', key: `n ${session}`, level: 2, session, text: 'Nothing here yet'});
	return rows;
}

export function Tree({sessions, snapshots, opened, toggle, chosen, choose, more, busy}: {sessions: Session[]; snapshots: Map<string, {data?: Snapshot; error: unknown}>; opened: Set<string>; toggle: (id: string) => void; chosen: Chosen; choose: (c: Chosen) => void; more: () => void; busy: boolean}) {
	const [folded, setFolded] = useState<Set<string>>(new Set());
	const box = useRef<HTMLDivElement>(null);
	const rows = useMemo(() => sessions.flatMap((s): Row[] => {
		const open = opened.has(s.session_id), snap = snapshots.get(s.session_id);
		const head: Row = {kind: 'session', key: `s ${s.session_id}`, level: 1, session: s.session_id, it: s, open};
		return !open ? [head] : [head, ...(snap?.data ? below(snap.data, folded, s.session_id) : [{kind: 'note' as const, key: `n ${s.session_id}`, level: 2, session: s.session_id, text: snap?.error ? 'It could not be read' : 'Reading'}])];
	}), [sessions, snapshots, opened, folded]);
	const wanted = chosen.task ? `t ${chosen.task}` : chosen.thread ? `h ${chosen.thread}` : chosen.session ? `s ${chosen.session}` : '';
	const [at, setAt] = useState(wanted);
	useEffect(() => { if (wanted) setAt(wanted); }, [wanted]);
	const index = Math.max(0, rows.findIndex((r) => r.key === at));
	const virtual = useVirtualizer({count: rows.length, getScrollElement: () => box.current, estimateSize: () => 34, overscan: 15, getItemKey: (i) => rows[i].key});
	const items = virtual.getVirtualItems();
	const last = items.at(-1)?.index ?? 0;
	useEffect(() => { if (rows.length && last >= rows.length - 5) more(); }, [last, rows.length, busy]); // eslint-disable-line
	const fold = (r: Row) => r.kind === 'session' ? toggle(r.session) : setFolded((f) => { const n = new Set(f); if (!n.delete(r.key)) n.add(r.key); return n; });
	const pick = (r: Row) => {
		if (r.kind === 'note')
			return;
		setAt(r.key);
		choose({session: r.session, thread: r.kind === 'thread' ? r.it.thread_id : '', task: r.kind === 'task' ? r.it.task_id : ''});
	};
	const step = (i: number) => {
		const r = rows[Math.max(0, Math.min(rows.length - 1, i))];
		if (r) {
			setAt(r.key);
			virtual.scrollToIndex(rows.indexOf(r));
		}
	};
	const key = (e: React.KeyboardEvent) => {
		const r = rows[index];
		const act: Record<string, () => void> = {
			ArrowDown: () => step(index + 1), ArrowUp: () => step(index - 1), Home: () => step(0), End: () => step(rows.length - 1),
			ArrowRight: () => r?.open === false ? fold(r) : step(index + 1),
			ArrowLeft: () => r?.open ? fold(r) : step(rows.slice(0, index).findLastIndex((x) => x.level < (r?.level ?? 1))),
			Enter: () => r && pick(r), ' ': () => r && pick(r),
		};
		if (act[e.key] && !e.ctrlKey && !e.metaKey && !e.altKey) {
			e.preventDefault();
			e.stopPropagation();
			act[e.key]();
		}
	};
	return <div className="split-rows tasks-tree" ref={box} tabIndex={0} role="tree" aria-label="Sessions, threads and tasks" aria-activedescendant={rows[index] && items.some((i) => i.index === index) ? `tree-${index}` : undefined} onKeyDown={key}>
		<div style={{height: virtual.getTotalSize(), position: 'relative'}} role="presentation">{items.map((item) => {
			const r = rows[item.index];
			return <div key={item.key} id={`tree-${item.index}`} ref={virtual.measureElement} data-index={item.index} role="treeitem" aria-level={r.level} aria-expanded={r.open} aria-selected={r.key === wanted} data-at={item.index === index ? '' : undefined} data-kind-of={r.kind} data-id={r.kind === 'note' ? undefined : r.kind === 'session' ? r.session : r.kind === 'thread' ? r.it.thread_id : r.it.task_id}
				className="split-row tasks-row" style={{transform: `translateY(${item.start}px)`, paddingLeft: 8 + (r.level - 1) * 18}} onClick={() => { if (r.kind === 'session' && !r.open) fold(r); pick(r); }}>
				{r.open === undefined ? <span className="tasks-fold" /> : <span className="tasks-fold" onClick={(e) => { e.stopPropagation(); fold(r); setAt(r.key); }}>{r.open ? <ChevronDown size={14} aria-hidden /> : <ChevronRight size={14} aria-hidden />}</span>}
				{r.kind === 'session' ? <><FolderTree size={14} aria-hidden className="t3" /><span className="cut strong grow">{r.it.title || `Run of ${r.it.agent_id}`}</span>{r.it.live_runs > 0 || r.it.waiting_runs > 0 ? <State status={sessionState(r.it).status} bare /> : null}<span className="num f11 t3" title="Turns">{r.it.runs}</span></>
					: r.kind === 'thread' ? <><MessageSquare size={14} aria-hidden className="t3" /><span className="cut grow">{threadWord(r.it)}</span><span className="num f11 t3" title="Turns">{r.it.turn_count}</span></>
						: r.kind === 'task' ? <><State status={r.it.status} bare /><span className="cut grow">{wordOf(r.it)}</span>{(r.it.current_attempt?.attempt ?? 0) > 1 && <span className="f11 t3">{r.it.current_attempt!.attempt} tries</span>}</>
							: <span className="f12 t3">{r.text}</span>}</div>;
		})}</div></div>;
}
