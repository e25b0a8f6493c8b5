// live.ts - the live reader: Server-Sent Events over fetch (a token in the header, never in an address), a
// cursor, and patience. Every live view uses it.
import {Problem, ask, pause} from './api';
import {line} from './line';

export interface Frame { name: string; id: string; data: any }

/** The frames of a body; returns when it ends, throws when it breaks. */
export async function* frames(body: ReadableStream<Uint8Array>, alive: () => void): AsyncGenerator<Frame[]> {
	const reader = body.pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>).getReader();
	let rest = '', name = '', id = '', data = '';
	try {
		for (;;) {
			const {value, done} = await reader.read();
			if (done)
				return;
			alive();
			const found: Frame[] = [];
			const lines = (rest + value).split('\n');
			rest = lines.pop() ?? '';
			for (const one of lines) {
				if (one.startsWith('data: ')) {
					data += one.slice(6);
				} else if (one.startsWith('id: ')) {
					id = one.slice(4);
				} else if (one.startsWith('event: ')) {
					name = one.slice(7);
				} else if (one === '' && data) {
					found.push({name, id, data: JSON.parse(data)});
					name = data = '';
				}
			}
			if (found.length)
				yield found;
		}
	} finally {
		reader.cancel().catch(() => {});
	}
}

export interface Reader {
	path: string;
	/** Where to go on: the id of the last frame that was taken. */
	cursor?: string;
	signal: AbortSignal;
	/** All frames that came together; true: it is over, nothing is to be read any more. */
	take: (frames: Frame[]) => boolean | void;
	/** 'live' when connected, 'away' when the connection broke and is tried again. */
	state?: (state: 'live' | 'away') => void;
	/** Reads what is there and ends with the body. */
	once?: boolean;
}

const SILENCE_MS = 45000; // without even a heartbeat the connection counts as dead

async function listen(r: Reader, cursor: {id: string}): Promise<boolean> {
	const dead = new AbortController();
	let silence = setTimeout(() => dead.abort(), SILENCE_MS);
	const alive = () => {
		clearTimeout(silence);
		silence = setTimeout(() => dead.abort(), SILENCE_MS);
	};
	const stop = () => dead.abort();
	r.signal.addEventListener('abort', stop);
	try {
		const response = await ask(r.path, {headers: cursor.id ? {'Last-Event-ID': cursor.id} : {}, signal: dead.signal});
		if (!response.body)
			return false;
		r.state?.('live');
		for await (const some of frames(response.body, alive)) {
			cursor.id = some.at(-1)!.id;
			if (r.signal.aborted || r.take(some))
				return true;
		}
		return false;
	} finally {
		clearTimeout(silence);
		r.signal.removeEventListener('abort', stop);
	}
}

/** Reads until take() says that it is over, the signal fires, or the server refuses (thrown). Broken
 * connections and restarts of the server are taken up behind the last frame. */
export async function read(r: Reader): Promise<void> {
	const cursor = {id: r.cursor ?? ''};
	for (let wait = 300; !r.signal.aborted; wait = Math.min(wait * 1.6, 3000)) {
		const before = cursor.id;
		try {
			if (await listen(r, cursor) || r.once)
				return;
		} catch (e) {
			if (r.signal.aborted)
				return;
			if (e instanceof Problem && e.final)
				throw e;
			line.lost();
		}
		if (r.signal.aborted)
			return;
		if (cursor.id !== before)
			wait = 300;
		r.state?.('away');
		await pause(wait, r.signal);
	}
}

/** The number in a cursor: NUMBER or INCARNATION-NUMBER. */
export function numberOf(id: string): number {
	return Number(id.slice(id.lastIndexOf('-') + 1));
}
