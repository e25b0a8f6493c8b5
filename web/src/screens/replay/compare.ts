// compare.ts - where two runs differ first. Ids and times always do, so they are not compared.
import {pageOf} from '../run/data';
import type {LogEvent} from '../run/words';

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g;
const OWN = /(_ms|_at|attempt|sha256|revision|root_run_id|parent_run_id|cause)$/;

/** The facts of an event that two runs of the same work share. */
export function factsOf(e: LogEvent): string {
	return `${e.type} ${JSON.stringify(e.payload, (key, value) => OWN.test(key) ? undefined : value).replace(UUID, 'ID').replace(TIME, 'TIME')}`;
}

export interface Difference { same: number; left: LogEvent | null; right: LogEvent | null; scanned: number }

/** Reads both side by side until they differ; `null` members: that run has ended. */
export async function compare(left: string, right: string, signal: AbortSignal, progress: (n: number) => void): Promise<Difference> {
	for (let after = 0; ; ) {
		const [a, b] = await Promise.all([pageOf(left, `after=${after}&limit=500`), pageOf(right, `after=${after}&limit=500`)]);
		const n = Math.min(a.events.length, b.events.length);
		for (let i = 0; i < n; i++)
			if (factsOf(a.events[i]) !== factsOf(b.events[i]))
				return {same: after + i, left: a.events[i], right: b.events[i], scanned: after + i + 1};
		after += n;
		progress(after);
		if (signal.aborted || n === 0 || a.events.length !== b.events.length)
			return {same: after, left: a.events[n] ?? null, right: b.events[n] ?? null, scanned: after};
	}
}
