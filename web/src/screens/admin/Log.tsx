// Log.tsx - the server's log as it is written: those lines that it keeps, then live.
import {useVirtualizer} from '@tanstack/react-virtual';
import {ArrowDown, Pause, Play} from 'lucide-react';
import {useEffect, useMemo, useRef, useState} from 'react';
import {Find, Pick} from '../../components/Split';
import {CopyButton, Empty, ProblemNote} from '../../components/ui';
import {pause} from '../../lib/api';
import {clock, exact, seconds} from '../../lib/format';
import {useShortcuts} from '../../lib/keys';
import {read} from '../../lib/live';
import {useFilter} from '../../lib/nav';

const KEPT = 5000;
interface Line { id: string; at: number; level: string; what: string; rest: string; text: string }

/** TIME LEVEL WHAT REST, or an object of JSON. */
export function lineOf(id: string, text: string): Line {
	if (text.startsWith('{')) {
		try {
			const {time, level, event, msg, ...rest} = JSON.parse(text);
			return {id, at: seconds(time), level: String(level ?? ''), what: String(event ?? msg ?? ''), rest: Object.entries(rest).map(([k, v]) => `${k}=${typeof v === 'string' ? v : JSON.stringify(v)}`).join(' '), text};
		} catch { /* as it is */ }
	}
	const parts = /^(\S+) (\w+) (\S+) ?([\s\S]*)$/.exec(text);
	return parts ? {id, at: seconds(parts[1]), level: parts[2], what: parts[3], rest: parts[4], text} : {id, at: NaN, level: '', what: '', rest: text, text};
}

const RANK: Record<string, number> = {debug: 0, info: 1, warn: 2, error: 3};

function useLog(): {lines: Line[]; state: string; error: unknown} {
	const [lines, set] = useState<Line[]>([]);
	const [state, setState] = useState('connecting');
	const [error, fail] = useState<unknown>(null);
	useEffect(() => {
		const over = new AbortController();
		let fresh: string[] = [], due = 0, next = 0;
		const draw = () => {
			due = 0;
			const some = fresh;
			fresh = [];
			set((old) => {
				const known = new Set(old.map((l) => l.text));
				return [...old, ...some.filter((text) => !known.has(text)).map((text) => lineOf(String(next++), text))].slice(-KEPT);
			});
		};
		// Numbers of lines begin anew with the server: after a broken connection all that it keeps is read again.
		const listen = async () => {
			while (!over.signal.aborted) {
				const once = new AbortController();
				const stop = () => once.abort();
				over.signal.addEventListener('abort', stop);
				await read({path: 'api/admin/log', signal: once.signal, state: (s) => { setState(s); if (s === 'away') once.abort(); }, take: (frames) => {
					fresh.push(...frames.map((f) => String(f.data.line ?? '')));
					due ||= requestAnimationFrame(draw);
				}});
				over.signal.removeEventListener('abort', stop);
				await pause(500, over.signal);
			}
		};
		listen().catch(fail);
		return () => { over.abort(); cancelAnimationFrame(due); };
	}, []);
	return {lines, state, error};
}

export function Log() {
	const {lines, state, error} = useLog();
	const [q, setQ] = useFilter('q');
	const [level, setLevel] = useFilter('level');
	const [held, hold] = useState<Line[] | null>(null);
	const [atEnd, setAtEnd] = useState(true);
	const box = useRef<HTMLDivElement>(null);
	const shown = useMemo(() => (held ?? lines).filter((l) => (RANK[l.level] ?? 3) >= (RANK[level] ?? 0) && l.text.toLowerCase().includes(q.toLowerCase())), [lines, held, q, level]);
	const virtual = useVirtualizer({count: shown.length, getScrollElement: () => box.current, estimateSize: () => 24, overscan: 20, getItemKey: (i) => shown[i].id});
	useEffect(() => {
		if (atEnd && shown.length)
			virtual.scrollToIndex(shown.length - 1, {align: 'end'});
	}, [shown.length, atEnd]); // eslint-disable-line
	const toggle = () => hold(held ? null : lines);
	useShortcuts([{keys: 'Space', does: held ? 'Follow the log' : 'Pause the log', run: toggle}]);
	return <>
		<div className="admin-tools"><Find label="Find in the log" value={q} set={setQ} /><Pick label="Level" value={level} set={setLevel} options={[['', 'All levels'], ['info', 'Info and above'], ['warn', 'Warnings and errors'], ['error', 'Errors']]} />
			<button type="button" className="btn" aria-pressed={held !== null} onClick={toggle}>{held ? <><Play size={13} aria-hidden />Follow{lines.length > held.length ? ` (${lines.length - held.length} new)` : ''}</> : <><Pause size={13} aria-hidden />Pause</>}</button>
			<CopyButton label="Copy" small={false} text={() => shown.map((l) => l.text).join('\n')} />
			<span className="grow" /><span className="f12 t3" role="status">{error ? '' : held ? 'Paused' : state === 'live' ? 'Live' : 'Connecting'}, {shown.length} {shown.length === 1 ? 'line' : 'lines'}</span></div>
		{error ? <div className="page"><ProblemNote what="The log could not be followed" error={error} /></div>
			: shown.length === 0 ? <Empty title={lines.length ? 'No line fits' : 'Nothing was logged yet'}><p>{lines.length ? 'Another level or other words may.' : 'Lines appear here as the server writes them.'}</p></Empty>
				: <div className="scroll admin-log" ref={box} tabIndex={0} role="log" aria-live="off" aria-label="Lines of the log" onScroll={(e) => { const b = e.currentTarget; setAtEnd(b.scrollHeight - b.scrollTop - b.clientHeight < 40); }}>
					<div style={{height: virtual.getTotalSize(), position: 'relative'}}>{virtual.getVirtualItems().map((item) => {
						const l = shown[item.index];
						return <div key={item.key} data-index={item.index} ref={virtual.measureElement} className="admin-line" data-level={l.level} style={{transform: `translateY(${item.start}px)`}}>
							<time className="num t3" title={Number.isFinite(l.at) ? exact(l.at) : undefined}>{Number.isFinite(l.at) ? clock(l.at) : ''}</time><span className="admin-level">{l.level}</span><span className="admin-what">{l.what}</span><span className="admin-rest">{l.rest}</span></div>;
					})}</div></div>}
		{!atEnd && shown.length > 0 && <button type="button" className="btn admin-jump" onClick={() => virtual.scrollToIndex(shown.length - 1, {align: 'end'})}><ArrowDown size={13} aria-hidden />Latest</button>}
	</>;
}
