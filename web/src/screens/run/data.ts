// data.ts - what the screen of a run reads: its timeline, its events by number, what they look like at work.
import {useInfiniteQuery, useQueries, useQuery} from '@tanstack/react-query';
import {useEffect, useState} from 'react';
import {askJson} from '../../lib/api';
import {read} from '../../lib/live';
import {client} from '../../lib/query';
import {PIECES, type LogEvent, type Span} from './words';

export interface Timeline {
	run_id: string;
	events: number;
	last: number;
	first_at: number;
	last_at: number;
	over: boolean;
	types: Record<string, number>;
	spans: Span[];
	left_out: number;
}
export interface EventPage { events: LogEvent[]; through: number; next_after: number | null }

export const useTimeline = (id: string) => useQuery({queryKey: ['timeline', id], enabled: id !== '', queryFn: () => askJson<Timeline>(`api/runs/${encodeURIComponent(id)}/timeline`)});

export const pageOf = (id: string, query: string) => askJson<EventPage>(`api/runs/${encodeURIComponent(id)}/events?${query}`);

/** While the run is at work its stream says that there is more; what is shown is read anew, twice a second at most. */
export function useFollow(id: string, live: boolean): [boolean, (v: boolean) => void] {
	const [following, set] = useState(true);
	useEffect(() => {
		if (!live || !following || !id)
			return;
		const over = new AbortController();
		let due = 0;
		const renew = () => {
			due = 0;
			for (const name of ['timeline', 'run', 'tail', 'state', 'graph', 'rights'])
				void client.invalidateQueries({queryKey: [name, id]});
		};
		void read({path: `api/runs/${encodeURIComponent(id)}/stream?meta=1`, signal: over.signal, take: (some) => {
			due ||= window.setTimeout(renew, 500);
			return some.some((f) => f.data?.type === 'RunDone' || f.data?.type === 'Error');
		}}).catch(() => {});
		return () => { clearTimeout(due); over.abort(); };
	}, [id, live, following]);
	return [following, set];
}

export const BLOCK = 200;

/** Events have numbers without a gap, so any block of them can be read by itself. */
export function useBlocks(id: string, from: number, to: number, last: number) {
	const first = Math.floor(Math.max(0, from - 1) / BLOCK), end = Math.floor(Math.max(0, Math.min(to, last) - 1) / BLOCK);
	const blocks = Array.from({length: Math.max(0, end - first + 1)}, (_, i) => first + i);
	const all = useQueries({queries: blocks.map((b) => {
		const whole = (b + 1) * BLOCK <= last;
		return {queryKey: [whole ? 'block' : 'tail', id, b, whole ? 0 : last], staleTime: whole ? Infinity : 0, placeholderData: (old: EventPage | undefined) => old,
			queryFn: () => pageOf(id, `after=${b * BLOCK}&limit=${BLOCK}`)};
	})});
	const found = new Map<number, LogEvent>();
	for (const one of all)
		for (const e of one.data?.events ?? [])
			found.set(e.run_sequence, e);
	return {found, error: all.find((a) => a.error)?.error};
}

/** The rows of a list that leaves events out: those of some types, those with a text, or all but pieces of text. */
export function useChosen(id: string, types: string[], q: string, last: number) {
	const query = useInfiniteQuery({queryKey: ['chosen', id, types.join(), q], enabled: types.length > 0, initialPageParam: 0, staleTime: Infinity,
		queryFn: ({pageParam}) => pageOf(id, `after=${pageParam}&limit=1000&types=${types.join(',')}${q ? `&q=${encodeURIComponent(q)}` : ''}`),
		getNextPageParam: (page) => page.next_after});
	const events = query.data?.pages.flatMap((p) => p.events) ?? [];
	const through = query.data?.pages.at(-1)?.through ?? 0;
	// What has been appended meanwhile is read behind the last page.
	const tail = useQuery({queryKey: ['tail', id, 'chosen', types.join(), q, through], enabled: types.length > 0 && query.isSuccess && !query.hasNextPage && through < last,
		queryFn: () => pageOf(id, `after=${through}&limit=1000&types=${types.join(',')}${q ? `&q=${encodeURIComponent(q)}` : ''}`), placeholderData: (old) => old});
	const seen = events.at(-1)?.run_sequence ?? 0;
	return {events: [...events, ...(tail.data?.events ?? []).filter((e) => e.run_sequence > seen)], through, more: query.hasNextPage, fetching: query.isFetching, next: query.fetchNextPage, error: query.error};
}

export const quiet = (types: Record<string, number>) => Object.keys(types).filter((t) => !PIECES.includes(t));
export const pieces = (types: Record<string, number>) => PIECES.reduce((n, t) => n + (types[t] ?? 0), 0);
