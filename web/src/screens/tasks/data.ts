// data.ts - sessions with their threads and tasks, as the server's read models have them, and live.
import {useInfiniteQuery, useQueries, useQuery} from '@tanstack/react-query';
import {useEffect} from 'react';
import {askJson} from '../../lib/api';
import {read} from '../../lib/live';
import {client} from '../../lib/query';
import type {RunRecord, Session} from '../../lib/types';

export interface TaskItem {
	task_id: string; parent_task_id: string | null; thread_id: string | null; title: string | null; objective: string; status: string; implicit?: boolean;
	current_attempt?: {run_id: string; attempt: number; status: string} | null; progress?: number | null; phase?: string | null; waiting_on?: {kind: string; description: string} | null;
	last_error?: {code?: string; message?: string} | null; created_at: string; ended_at: string | null;
	[more: string]: unknown;
}
export interface Edge { kind: string; source_id: string; target_id: string; status: string }
export interface ThreadItem { thread_id: string; title: string | null; status: string; archived: boolean; turn_count: number; parent_thread_id: string | null; updated_at: string; last_outcome?: {input_preview?: string} | null }
export interface Snapshot {
	session: {session_id: string; title: string | null; status: string; agent_id: string | null; counts: Record<string, number>; created_at: string; updated_at: string};
	threads: {items: ThreadItem[]; omitted: number};
	tasks?: Record<'active' | 'waiting' | 'failed' | 'lost' | 'terminal', TaskItem[]> & {graph: Edge[]; omitted: number};
	active_thread?: {thread_id: string} | null;
	queue?: Queue | null; cursor: number | string;
}
export interface Queue { thread_id: string; length: number; resume_state: string; pause_reason: string | null; queued_turns: {queued_turn_id?: string; turn_id?: string; input_preview?: string; agent_id?: string}[] }
export interface Task extends TaskItem {
	session_id: string; status_reason: string | null; priority: string | null; agent_id: string | null; requested_by?: {type: string; id: string} | null; message?: string | null; current_step?: string | null;
	acceptance?: {id: string; text: string}[]; accepted_facts?: {id: string; status: string}[]; cancel_requested: boolean; attempt_count: number; can?: string[];
	attempts?: {run_id: string; attempt_count: number; status: string; agent_id: string; error_code: string | null; completion_summary?: string | null; last_error?: {message?: string} | null; started_at: string | null; ended_at: string | null}[];
	relationships?: Edge[];
}

export const wordOf = (t: {title: string | null; objective: string}) => t.title || t.objective || 'Untitled';
export const threadWord = (t: ThreadItem) => t.title || t.last_outcome?.input_preview || 'Thread';
export const OVER = ['completed', 'failed', 'cancelled', 'timed_out', 'lost', 'archived'];

export function tasksOf(s: Snapshot | undefined): TaskItem[] {
	const t = s?.tasks;
	return t ? [...t.active, ...t.waiting, ...t.failed, ...t.lost, ...t.terminal].sort((a, b) => (a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : a.task_id < b.task_id ? -1 : 1)) : [];
}

const PAGE = 50;
/** All sessions, page by page. */
export function useSessionPages(q: string, live: string) {
	return useInfiniteQuery({queryKey: ['sessions', 'pages', q, live], initialPageParam: '',
		queryFn: ({pageParam}) => askJson<{sessions: Session[]; next_cursor: string | null}>(`api/sessions?limit=${PAGE}${q ? `&title=${encodeURIComponent(q)}` : ''}${live ? '&live=1' : ''}${pageParam ? `&cursor=${encodeURIComponent(pageParam)}` : ''}`),
		getNextPageParam: (last) => last.next_cursor});
}

export function useTaskPages(status: string) {
	return useInfiniteQuery({queryKey: ['sessions', 'tasks', status], initialPageParam: '',
		queryFn: ({pageParam}) => askJson<{tasks: Task[]; next_cursor: string | null}>(`api/tasks?limit=${PAGE}${status ? `&status=${status}` : ''}${pageParam ? `&cursor=${encodeURIComponent(pageParam)}` : ''}`),
		getNextPageParam: (last) => last.next_cursor});
}

const snapshot = (id: string) => ({queryKey: ['sessions', 'tree', id], queryFn: () => askJson<Snapshot>(`api/sessions/${encodeURIComponent(id)}?include=tasks`)});
export const useSnapshot = (id: string) => useQuery({...snapshot(id), enabled: id !== ''});

export function useSnapshots(ids: string[]): Map<string, {data?: Snapshot; error: unknown}> {
	const all = useQueries({queries: ids.map(snapshot)});
	return new Map(ids.map((id, i) => [id, {data: all[i].data, error: all[i].error}]));
}

/** A task that was made by a command; one that is a turn has no record of its own. */
export const useTask = (id: string, explicit: boolean) => useQuery({queryKey: ['sessions', 'task', id], enabled: explicit && id !== '', queryFn: async () => (await askJson<{task: Task}>(`api/tasks/${encodeURIComponent(id)}`)).task});

export const useTaskRuns = (id: string) => useQuery({queryKey: ['runs', 'of-task', id], enabled: id !== '', queryFn: async () =>
	(await askJson<{runs: RunRecord[]}>(`api/runs?task_id=${encodeURIComponent(id)}&limit=100`)).runs.sort((a, b) => b.attempt - a.attempt || b.created_at - a.created_at)});

/** The events of the session that is shown: each change of it is read anew, soon. */
export function useFollow(id: string, cursor: string): void {
	const from = cursor === '' ? '' : id;
	useEffect(() => {
		if (!from)
			return;
		const over = new AbortController();
		let due = 0;
		read({path: `api/sessions/${encodeURIComponent(from)}/events`, cursor, signal: over.signal, take: () => {
			due ||= window.setTimeout(() => {
				due = 0;
				void client.invalidateQueries({queryKey: ['sessions', 'tree', from]});
				void client.invalidateQueries({queryKey: ['sessions', 'task']});
				void client.invalidateQueries({queryKey: ['sessions', 'tasks']});
			}, 200);
		}}).catch(() => {});
		return () => { over.abort(); clearTimeout(due); };
	}, [from]); // eslint-disable-line
}
