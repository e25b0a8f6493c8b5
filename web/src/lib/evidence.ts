// evidence.ts - checks a document of an export by itself: every link of its chain, its content, its id. What was exported
// is not asked of the server, so a file from anywhere can be checked.

class Digits { constructor(readonly text: string) {} }
type Node = string | boolean | null | Digits | Node[] | Map<string, Node>;

const TOKEN = /\s*(?:("[^"\\]*(?:\\.[^"\\]*)*")|(-?\d[\d.eE+-]*)|([{}[\],:])|(true|false|null))/y;

/** JSON whose numbers keep their text: large ones are not rounded. */
function parse(text: string): Node {
	JSON.parse(text); // refuses what is not JSON
	TOKEN.lastIndex = 0;
	const next = () => TOKEN.exec(text)!;
	const value = (m: RegExpExecArray): Node => {
		if (m[1] !== undefined)
			return JSON.parse(m[1]);
		if (m[2] !== undefined)
			return new Digits(m[2]);
		if (m[4] !== undefined)
			return m[4] === 'null' ? null : m[4] === 'true';
		if (m[3] === '[') {
			const list: Node[] = [];
			for (let t = next(); t[3] !== ']'; t = next())
				if (t[3] !== ',')
					list.push(value(t));
			return list;
		}
		const members = new Map<string, Node>();
		for (let t = next(); t[3] !== '}'; t = next()) {
			if (t[3] === ',')
				continue;
			const key = JSON.parse(t[1]);
			if (members.has(key))
				throw new SyntaxError(`the member ${key} is there twice`);
			next(); // the colon
			members.set(key, value(next()));
		}
		return members;
	};
	return value(next());
}

/** By value: 1.50 and 15e-1 are the same text. */
function digits(text: string): string {
	const [, sign, whole, part = '', power = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text)!;
	const all = (whole + part).replace(/^0+/, ''), short = all.replace(/0+$/, '');
	return short ? `${sign}${short}e${Number(power) - part.length + all.length - short.length}` : '0e0';
}

/** The order of UTF-8. */
function before(a: string, b: string): number {
	const x = [...a], y = [...b];
	for (let i = 0; i < Math.min(x.length, y.length); i++)
		if (x[i] !== y[i])
			return x[i].codePointAt(0)! - y[i].codePointAt(0)!;
	return x.length - y.length;
}

/** The one text that equal values share. */
function canonical(n: Node): string {
	if (n instanceof Map)
		return `{${[...n.keys()].sort(before).map((k) => `${JSON.stringify(k)}:${canonical(n.get(k)!)}`).join()}}`;
	return n instanceof Digits ? digits(n.text) : Array.isArray(n) ? `[${n.map(canonical).join()}]` : JSON.stringify(n);
}

async function sha256(text: string): Promise<string> {
	const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
	return Array.from(hash, (b) => b.toString(16).padStart(2, '0')).join('');
}

const of = (n: Node | undefined, key: string): Node | undefined => n instanceof Map ? n.get(key) : undefined;
const text = (n: Node | undefined, key: string): string => { const v = of(n, key); return typeof v === 'string' ? v : v instanceof Digits ? v.text : ''; };

/** What was found: `event` is the first that is not what was exported. */
export interface Verdict { good: boolean; words: string; kind: string; events: number; id: string; event?: {at: number; type: string; sequence: string; run: string; number: string} }

/** A browser gives digests only to pages that came over HTTPS or from this machine. */
export const canCheck = () => !!globalThis.crypto?.subtle;

const MEMBERS = ['session_id', 'task_id', 'thread_id', 'turn_id'];

export async function check(file: string): Promise<Verdict> {
	const v: Verdict = {good: false, words: '', kind: '', events: 0, id: ''};
	const bad = (words: string): Verdict => ({...v, words});
	let root: Node;
	try {
		root = parse(file);
	} catch (e) {
		return bad(`It is not JSON: ${(e as Error).message}`);
	}
	if (text(root, 'format') !== 'uar.evidence/1')
		return bad('It is no document of the format uar.evidence/1.');
	const content = of(root, 'content'), scope = of(content, 'scope'), timeline = of(root, 'timeline');
	v.kind = text(content, 'kind');
	v.id = text(root, 'evidence_id');
	if (!['evidence', 'replay', 'review'].includes(v.kind) || !Array.isArray(timeline) || !timeline.length)
		return bad('It has no timeline, or its kind is unknown.');
	const ids = MEMBERS.filter((m) => m === 'session_id' || text(scope, m));
	const level = ['turn', 'thread', 'task'].find((l) => ids.includes(`${l}_id`)) ?? 'session';
	const where = `{${[`"level":${JSON.stringify(level)}`, ...ids.map((m) => `"${m}":${JSON.stringify(text(scope, m))}`)].join()}}`;
	let link = await sha256(`uar.evidence/1\n${where}`);
	for (const line of timeline) {
		const event = v.kind === 'review' ? line : of(line, 'event');
		v.events++;
		if (v.kind === 'review')
			link = text(line, 'link'); // the events are not in it
		else if (event instanceof Map)
			link = await sha256(`${link}\n${canonical(event)}`);
		if (!(event instanceof Map) || text(line, 'link') !== link)
			return {...bad(`Event ${v.events} of ${timeline.length} is not what was exported.`),
				event: {at: v.events, type: text(event, 'type'), sequence: text(event, 'sequence'), run: text(event, 'run_id'), number: text(event, 'run_sequence')}};
	}
	if (text(root, 'chain_head') !== link)
		return bad('Events are missing at the end: chain_head is not the last link.');
	const sum = await sha256(`${link}\n${canonical(content!)}`);
	if (text(of(content, 'facts'), 'events') !== String(v.events) || text(root, 'sha256') !== sum)
		return bad('Its content is not what was exported: sha256 is of another one.');
	if (v.id !== `evidence-${(await sha256(`${v.kind}\n${where}\n${sum}`)).slice(0, 32)}`)
		return bad('Its evidence_id is that of another scope or content.');
	return {...v, good: true, words: v.kind === 'review' ? 'The review is as it was made. It refers to events and does not have them.' : 'Every event and the content are as they were exported.'};
}
