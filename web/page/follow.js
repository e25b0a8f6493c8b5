// follow.js - keeps a run up to date: the cursor is the last event's id, and a broken
// connection is taken up behind it.
import {Problem, ask, events, pause} from './server.js';

/** @typedef {import('./run.js').Run} Run */
/** @typedef {{changed: (run: Run) => void, state: (run: Run, state: import('./run.js').RunState) => void,
 *   refused: (e: unknown) => void}} Watcher */

const SILENCE_MS = 45000; // without even a heartbeat the connection counts as dead

/** One connection: from the cursor to the end of the body. @param {Run} run @param {AbortSignal} signal @param {Watcher} to */
async function listen(run, signal, to) {
	const dead = new AbortController();
	let silence = setTimeout(() => dead.abort(), SILENCE_MS);
	const alive = () => {
		clearTimeout(silence);
		silence = setTimeout(() => dead.abort(), SILENCE_MS);
	};
	const stop = () => dead.abort();
	signal.addEventListener('abort', stop);
	try {
		const headers = /** @type {Record<string, string>} */ (run.cursor ? {'Last-Event-ID': run.cursor} : {});
		const response = await ask(`api/runs/${encodeURIComponent(run.id)}/stream`, {headers, signal: dead.signal});
		if (!response.body)
			return;
		to.state(run, 'live');
		for await (const {name, id, event} of events(response.body, alive)) {
			const number = Number(id.slice(id.lastIndexOf('-') + 1));
			if (name === 'resync') {
				run.reset();
			} else if (number > run.seen) {
				run.fold(event);
				run.cursor = id;
				run.seen = number;
			} else {
				continue;
			}
			to.changed(run);
		}
	} finally {
		clearTimeout(silence);
		signal.removeEventListener('abort', stop);
	}
}

/** Follows a run to its end, through broken connections and restarts of the server.
 * @param {Run} run @param {AbortSignal} signal @param {Watcher} to */
export async function follow(run, signal, to) {
	for (let wait = 300; !run.outcome && !signal.aborted; wait = Math.min(wait * 1.6, 3000)) {
		const before = run.seen;
		try {
			await listen(run, signal, to);
		} catch (e) {
			if (e instanceof Problem && e.final && !signal.aborted) {
				run.outcome = {ok: false, code: e.code, message: e.message};
				to.refused(e);
			}
		}
		if (run.outcome || signal.aborted)
			break;
		if (run.seen > before)
			wait = 300;
		to.state(run, 'away');
		await pause(wait, signal);
	}
	to.state(run, signal.aborted ? 'gone' : 'over');
}
