// Waterfall.tsx - the run in time: a lane for each kind, what ran at once side by side, restarts through all.
import {Minus, Plus} from 'lucide-react';
import {useMemo, useRef, useState} from 'react';
import {money, span as length} from '../../lib/format';
import {useNow} from '../../lib/hooks';
import type {Timeline} from './data';
import {KindIcon, NAMES, STATES, type Kind, type Span} from './words';

const LANES: Kind[] = ['wait', 'model', 'tool', 'ask', 'sub', 'process', 'artifact', 'error'];

/** Spans of a kind in as few rows as they need: those that overlap are in different ones. */
export function pack(spans: Span[], end: number): Span[][] {
	const rows: {until: number; spans: Span[]}[] = [];
	for (const s of [...spans].sort((a, b) => a.first_at - b.first_at || a.first - b.first)) {
		const until = Math.max(s.last_at ?? end, s.first_at);
		const free = rows.find((r) => r.until < s.first_at || (r.until === s.first_at && until > s.first_at && r.spans.every((o) => o.first !== s.first && (o.last ?? Infinity) <= s.first)));
		if (free) {
			free.spans.push(s);
			free.until = until;
		} else {
			rows.push({until, spans: [s]});
		}
	}
	return rows.map((r) => r.spans);
}

function step(total: number, room: number): number {
	for (let unit = 0.001; ; unit *= 10)
		for (const n of [1, 2, 5])
			if (total / (unit * n) <= room)
				return unit * n;
}

function title(s: Span, end: number): string {
	return [s.name, s.state === 'ended' ? length((s.last_at ?? end) - s.first_at) : `${STATES[s.state] ?? s.state}, ${length((s.last_at ?? end) - s.first_at)}`, s.detail,
		s.output_tokens !== undefined ? `${s.input_tokens} tokens in, ${s.output_tokens} out` : '', s.cost ? money(s.cost) : '', `event ${s.first}${s.last && s.last !== s.first ? ` to ${s.last}` : ''}`].filter(Boolean).join(' · ');
}

export function Waterfall({t, chosen, choose, following}: {t: Timeline; chosen: number; choose: (n: number) => void; following?: boolean}) {
	const [zoom, setZoom] = useState(1);
	const now = useNow(t.over || !following ? 3600 : 0.5);
	const ref = useRef<HTMLDivElement>(null);
	const end = t.over ? t.last_at : Math.max(t.last_at, following ? now : t.last_at);
	const total = Math.max(end - t.first_at, 0.001);
	const at = (time: number) => `${((time - t.first_at) / total) * 100}%`;
	const lanes = useMemo(() => LANES.map((kind) => ({kind, rows: pack(t.spans.filter((s) => s.kind === kind), t.last_at)})).filter((l) => l.rows.length), [t]);
	const restarts = t.spans.filter((s) => s.kind === 'restart');
	const tick = step(total, 9 * zoom);
	const digits = tick < 0.01 ? 3 : tick < 0.1 ? 2 : tick < 1 ? 1 : 0;
	return <section className="run-water" aria-label="Timeline">
		<div className="run-water-tools row"><span className="f12 t3 grow">{t.left_out > 0 ? `${t.left_out} more spans are in the events below only` : `${length(total)}, ${t.spans.length} spans`}</span>
			<div className="segment" role="group" aria-label="Zoom">
				<button type="button" aria-label="Narrower" onClick={() => setZoom(Math.max(1, zoom / 2))}><Minus size={13} aria-hidden /></button>
				<button type="button" onClick={() => setZoom(1)}>Fit</button>
				<button type="button" aria-label="Wider" onClick={() => setZoom(Math.min(64, zoom * 2))}><Plus size={13} aria-hidden /></button></div></div>
		<div className="run-water-body">
			<div className="run-lane-names">{lanes.map((l) => l.rows.map((_, i) => <div key={`${l.kind}${i}`} className="run-lane-name" data-kind={l.kind}>
				{i === 0 ? <><KindIcon kind={l.kind} /><span>{NAMES[l.kind]}</span></> : i === 1 ? <span className="t3">{l.rows.length} at once</span> : null}</div>))}</div>
			<div className="run-water-scroll" ref={ref} tabIndex={0} role="group" aria-label="Spans in time, scrolls">
				<div className="run-track" data-track style={{width: `${zoom * 100}%`}}>
					<div className="run-ticks" aria-hidden>{Array.from({length: Math.floor(total / tick) + 1}, (_, i) => <span key={i} style={{left: at(t.first_at + i * tick)}}>{(i * tick).toFixed(digits)} s</span>)}</div>
					{lanes.map((l) => l.rows.map((row, i) => <div key={`${l.kind}${i}`} className="run-lane" data-lane={l.kind}>{row.map((s) => {
						const until = Math.max(s.last_at ?? end, s.first_at);
						return <button key={s.first} type="button" className="run-span" data-kind={s.kind} data-state={s.state} data-first={s.first} aria-pressed={chosen === s.first || chosen === s.last}
							style={{left: at(s.first_at), width: `max(3px, ${((until - s.first_at) / total) * 100}%)`}} title={title(s, end)} aria-label={`${NAMES[s.kind]} ${title(s, end)}`}
							onClick={() => choose(s.first)}><span className="cut">{s.name}</span></button>;
					})}</div>))}
					{restarts.map((s) => <button key={s.first} type="button" className="run-restart" title={title(s, end)} aria-label={`Server restarted, event ${s.first}`} style={{left: at(s.first_at), width: `max(6px, ${(((s.last_at ?? end) - s.first_at) / total) * 100}%)`}} onClick={() => choose(s.first)} />)}
					{!t.over && <i className="run-now" style={{left: at(end)}} />}
				</div>
			</div>
		</div>
	</section>;
}
