// data.ts - the list of runs: pages from the server, renewed where runs change.
import {useInfiniteQuery, useQuery} from '@tanstack/react-query';
import {useCallback, useEffect, useMemo, useState} from 'react';
import {askJson} from '../../lib/api';
import {onRuns} from '../../lib/query';
import type {RunRecord} from '../../lib/types';

export const NAMES = ['state', 'q', 'agent', 'since', 'longer', 'cost', 'error', 'root', 'sort'] as const;
export type Filters = Record<(typeof NAMES)[number], string>;
interface Page { runs: RunRecord[]; next_before: string | null; total?: number; search_state?: string }

const PAGE = 100;
const SECONDS: Record<string, number> = {'1h': 3600, '24h': 86400, '7d': 7 * 86400, '30d': 30 * 86400};

export function wordOf(run: RunRecord): string {
	return run.title || (run.entry_id && run.entry_id !== run.agent_id ? `${String(run.plugin_id)} ${String(run.entry_id)}` : `Run of ${run.agent_id}`);
}

/** The query of a list; a relative time is fixed to the minute, so that pages belong together. */
export function queryOf(f: Filters, more: Record<string, string> = {}): string {
	const q = new URLSearchParams();
	const put = (name: string, value: string) => { if (value) q.set(name, value); };
	put('status', f.state);
	put('q', f.q);
	put('agent_id', f.agent);
	put('error_code', f.error);
	put('root_run_id', f.root);
	put('min_duration', f.longer);
	put('min_cost', f.cost);
	put('sort', f.sort);
	if (SECONDS[f.since])
		q.set('min_created_at', String(Math.floor(Date.now() / 60000) * 60 - SECONDS[f.since]));
	for (const [name, value] of Object.entries(more))
		q.set(name, value);
	return q.toString().replaceAll('+', '%20');
}

const read = (f: Filters, more: Record<string, string>) => askJson<Page>(`api/runs?${queryOf(f, more)}`);

/** The first page is renewed whenever runs change, further ones are kept; a run of those that changes is
 * read by itself. */
export function useRuns(f: Filters) {
	const key = JSON.stringify(f);
	const head = useQuery({queryKey: ['runs', 'head', key], queryFn: () => read(f, {limit: String(PAGE)})});
	const rest = useInfiniteQuery({queryKey: ['older', key], initialPageParam: head.data?.next_before ?? '', staleTime: Infinity, enabled: false,
		queryFn: ({pageParam}) => read(f, {limit: String(PAGE), before: pageParam}), getNextPageParam: (last: Page) => last.next_before});
	const [changed, setChanged] = useState<Map<string, RunRecord>>(new Map());
	const older = useMemo(() => rest.data?.pages.flatMap((p) => p.runs) ?? [], [rest.data]);
	const runs = useMemo(() => {
		const first = head.data?.runs ?? [];
		const seen = new Set(first.map((r) => r.run_id));
		return [...first, ...older.filter((r) => !seen.has(r.run_id)).map((r) => changed.get(r.run_id) ?? r)];
	}, [head.data, older, changed]);
	useEffect(() => onRuns((changes) => {
		const known = new Set(older.map((r) => r.run_id));
		for (const {run_id} of changes.filter((c) => known.has(c.run_id)).slice(0, 8))
			void askJson<RunRecord>(`api/runs/${run_id}`).then((r) => setChanged((m) => new Map(m).set(run_id, r)), () => {});
	}), [older]);
	const ready = head.data?.next_before != null;
	const more = useCallback(() => {
		if (ready && !rest.isFetching && (!rest.data || rest.hasNextPage))
			void rest.fetchNextPage();
	}, [ready, rest.isFetching, rest.data, rest.hasNextPage]);
	return {runs, more, fetching: rest.isFetching, loading: head.isPending && !head.error, error: head.error ?? rest.error, again: () => void head.refetch(), partial: head.data?.search_state === 'partial'};
}

/** How many are in the states that ask for attention, and under the chosen one. Ended ones are not counted
 * by themselves: there may be millions. */
export function useTotals(f: Filters): Record<string, number | undefined> {
	const wanted = ['waiting', 'running', 'queued'];
	const {data} = useQuery({queryKey: ['runs', 'totals', JSON.stringify(f)], staleTime: 2000, queryFn: async () => {
		const all = await Promise.all(wanted.map((state) => read({...f, state}, {limit: '1', count: '1'})));
		return Object.fromEntries(wanted.map((state, i) => [state, all[i].total]));
	}});
	return data ?? {};
}

/** Attempts at the same work, the first first. */
export function useAttempts(root: string) {
	return useQuery({queryKey: ['runs', 'attempts', root], enabled: root !== '', queryFn: async () =>
		(await askJson<Page>(`api/runs?root_run_id=${encodeURIComponent(root)}&limit=100`)).runs.sort((a, b) => a.attempt - b.attempt)});
}
