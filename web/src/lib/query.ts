// query.ts - what is read from the server, by name; the live reader of runs keeps lists right.
import {QueryClient, useQuery} from '@tanstack/react-query';
import {Problem, ask, askJson, pause, signedIn} from './api';
import {frames} from './live';
import {line} from './line';
import type {Action, Agent, RunRecord, Session} from './types';

export const client = new QueryClient({
	defaultOptions: {
		queries: {
			staleTime: 5000,
			refetchOnWindowFocus: false,
			networkMode: 'always',
			retry: (count, e) => !(e instanceof Problem && e.final) && count < 1000,
			retryDelay: (count) => Math.min(300 * 1.6 ** count, 3000),
		},
		mutations: {networkMode: 'always', retry: false},
	},
});

export const useAgents = () => useQuery({queryKey: ['agents'], queryFn: () => askJson<{agents: Agent[]; broken?: {agent_id?: string; file?: string; error?: string}[]}>('api/agents'), staleTime: 30000});

export const useSessions = () => useQuery({queryKey: ['sessions', 'recent'],
	queryFn: () => askJson<{sessions: Session[]; next_cursor: string | null}>('api/sessions?limit=40')});

export const useActions = () => useQuery({queryKey: ['actions', 'pending'],
	queryFn: () => askJson<{actions: Action[]; total: number}>('api/actions?limit=50')});

export const useVersion = () => useQuery({queryKey: ['version'], queryFn: () => askJson<Record<string, string>>('version'), staleTime: Infinity});

export const useRun = (id: string) => useQuery({queryKey: ['run', id], queryFn: () => askJson<RunRecord>(`api/runs/${encodeURIComponent(id)}`), enabled: id !== ''});

type Changed = (change: {run_id: string; status: string}[]) => void;
const listeners = new Set<Changed>();

/** Is called with runs that have changed, at most once a frame or so. */
export function onRuns(fn: Changed): () => void {
	listeners.add(fn);
	return () => listeners.delete(fn);
}

let due = 0;
/** Lists are read anew at most twice a second, however many runs change. */
function renewLists(): void {
	if (due)
		return;
	due = window.setTimeout(() => {
		due = 0;
		for (const name of ['sessions', 'actions', 'runs', 'threads'])
			void client.invalidateQueries({queryKey: [name]});
	}, 350);
}

/** One connection for all lists: /channels/runs says which run changed, the records are read anew. While the
 * page cannot be seen it holds no connection, as a browser has six for a server. */
export async function watchRuns(signal: AbortSignal): Promise<void> {
	for (let wait = 300; !signal.aborted; wait = Math.min(wait * 1.6, 3000)) {
		if (!signedIn())
			return;
		const mine = new AbortController();
		const stop = () => mine.abort();
		signal.addEventListener('abort', stop);
		let silence = 0;
		const alive = () => { clearTimeout(silence); silence = window.setTimeout(stop, 45000); };
		try {
			const response = await ask('channels/runs', {signal: mine.signal});
			renewLists();
			alive();
			wait = 300;
			for await (const some of frames(response.body!, alive)) {
				listeners.forEach((fn) => fn(some.map((f) => f.data)));
				renewLists();
			}
		} catch (e) {
			if (e instanceof Problem && e.final)
				return;
			if (!signal.aborted)
				line.lost();
		} finally {
			clearTimeout(silence);
			signal.removeEventListener('abort', stop);
		}
		await pause(wait, signal);
	}
}
