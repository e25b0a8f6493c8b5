// frames.ts - what clients of each dialect were sent around an event.
import {keepPreviousData, useQuery} from '@tanstack/react-query';
import {askJson, ask} from '../../lib/api';
import {frames, type Frame} from '../../lib/live';

export type Dialect = 'normalized' | 'ag-ui' | 'a2ui';
export const DIALECTS: [Dialect, string][] = [['normalized', 'Normalized'], ['ag-ui', 'AG-UI'], ['a2ui', 'A2UI']];
const AROUND = 40;
const QUIET_MS = 700; // a run at work says nothing more for the moment

/** The event that a frame belongs to: its id is NUMBER, NUMBER.PART, or one of these behind an incarnation. */
export function eventOf(id: string): number {
	return Math.floor(Number(id.slice(id.lastIndexOf('-') + 1)));
}

function pathOf(what: string, dialect: Dialect, after: number): string {
	const cursor = after > 0 ? `after=${after}` : '';
	if (what.startsWith('fixture:'))
		return `api/fixtures/${encodeURIComponent(what.slice(8))}/stream?dialect=${dialect}`;
	const run = encodeURIComponent(what);
	return dialect === 'normalized' ? `api/runs/${run}/stream?meta=1&${cursor}` : `api/${dialect}/runs/${run}/stream?${cursor}`;
}

/** Frames of the events behind `after`, up to `to`. */
async function readFrames(what: string, dialect: Dialect, after: number, to: number): Promise<Frame[]> {
	const over = new AbortController();
	const out: Frame[] = [];
	let timer = 0;
	const alive = () => { clearTimeout(timer); timer = window.setTimeout(() => over.abort(), QUIET_MS); };
	try {
		const response = await ask(pathOf(what, dialect, after).replace(/[?&]$/, ''), {signal: over.signal});
		alive();
		for await (const some of frames(response.body!, alive)) {
			out.push(...some.filter((f) => eventOf(f.id) <= to));
			if (some.some((f) => eventOf(f.id) > to))
				break;
		}
	} catch (e) {
		if (!over.signal.aborted)
			throw e;
	} finally {
		clearTimeout(timer);
		over.abort();
	}
	return out;
}

/** All dialects, in a window that moves in steps, so that stepping asks rarely. */
export function useFrames(what: string, at: number, last: number) {
	const fixture = what.startsWith('fixture:');
	const step = Math.floor(at / AROUND);
	const after = fixture ? 0 : Math.max(0, (step - 1) * AROUND), to = fixture ? last : Math.min(last, (step + 2) * AROUND);
	return useQuery({queryKey: ['frames', what, after, to], enabled: last > 0, staleTime: Infinity, placeholderData: keepPreviousData, queryFn: async () => {
		const all = await Promise.all(DIALECTS.map(([d]) => readFrames(what, d, after, to)));
		return Object.fromEntries(DIALECTS.map(([d], i) => [d, all[i]])) as Record<Dialect, Frame[]>;
	}});
}

export const useFixtures = () => useQuery({queryKey: ['fixtures'], queryFn: () => askJson<{fixtures: string[]}>('api/fixtures')});

/** A recorded stream whole: its lines are its events. */
export const useFixture = (name: string) => useQuery({queryKey: ['fixture', name], enabled: name !== '', staleTime: Infinity,
	queryFn: () => readFrames(`fixture:${name}`, 'normalized', 0, Infinity)});
