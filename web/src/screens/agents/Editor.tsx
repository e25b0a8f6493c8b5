// Editor.tsx - a definition as text, checked by the server while it is written: what is wrong, on which line.
import {useQuery} from '@tanstack/react-query';
import {OctagonX, RotateCcw, Save} from 'lucide-react';
import {useDeferredValue, useEffect, useMemo, useRef, useState} from 'react';
import {Health} from '../../components/Health';
import {CopyButton, ProblemNote} from '../../components/ui';
import {askJson} from '../../lib/api';
import {useShortcuts} from '../../lib/keys';
import {client} from '../../lib/query';
import {say, toast} from '../../lib/say';

export interface Checked { good: boolean; problems: {line: number | null; pointer: string; message: string}[]; agent_id?: string; revision?: string; inactive?: {pointer: string; why: string}[]; definition?: Record<string, any>; prompt?: {system: string; message: string} | null }

const LINE = 20, ABOVE = 8; // px: of a line, and above the first
export const formatOf = (text: string) => (/^\s*(\{|\/\/|\/\*)/.test(text) ? 'json' : 'yaml');

/** What the server says of a text; the answer before stays until the next is there. */
export function useChecked(text: string) {
	const [settled, settle] = useState(text);
	useEffect(() => {
		const timer = setTimeout(() => settle(text), 250);
		return () => clearTimeout(timer);
	}, [text]);
	const query = useQuery({queryKey: ['check', settled], enabled: settled.trim() !== '', staleTime: Infinity, gcTime: 30000, placeholderData: (before) => before,
		queryFn: () => askJson<Checked>('api/agents-check', {body: {text: settled, format: formatOf(settled)}})});
	return {...query, current: settled === text && !query.isFetching && !query.isPlaceholderData};
}

function Area({text, set, lines, wrong, area, describedBy}: {text: string; set: (t: string) => void; lines: number; wrong: Set<number>; area: React.RefObject<HTMLTextAreaElement | null>; describedBy: string}) {
	const [top, setTop] = useState(0);
	const shown = useDeferredValue(lines);
	return <div className="agents-editor">
		<div className="agents-gutter" aria-hidden><div style={{transform: `translateY(${-top}px)`}}>{Array.from({length: shown}, (_, i) => <div key={i} data-wrong={wrong.has(i + 1) ? '' : undefined}>{i + 1}</div>)}</div></div>
		<div className="agents-marks" aria-hidden>{[...wrong].map((n) => <i key={n} style={{top: ABOVE + (n - 1) * LINE - top}} />)}</div>
		<textarea ref={area} className="mono" aria-label="Definition" aria-invalid={wrong.size > 0} aria-describedby={describedBy} spellCheck={false} autoCapitalize="off" autoComplete="off" wrap="off" value={text} onChange={(e) => set(e.target.value)} onScroll={(e) => setTop(e.currentTarget.scrollTop)}
			onKeyDown={(e) => {
				if (e.key === 'Enter' && !e.ctrlKey && !e.metaKey && !e.nativeEvent.isComposing) { // the next line begins where this one does
					const t = e.currentTarget, at = t.selectionStart, begin = text.lastIndexOf('\n', at - 1) + 1;
					const indent = /^[ \t]*/.exec(text.slice(begin, at))?.[0] ?? '';
					if (indent) {
						e.preventDefault();
						t.setRangeText(`\n${indent}`, at, t.selectionEnd, 'end');
						set(t.value);
					}
				}
			}} /></div>;
}

export function Editor({first, known, version, file, saved}: {first: string; known: string; version?: number; file?: string; saved: (id: string) => void}) {
	const [text, setText] = useState(first);
	const [busy, setBusy] = useState(false);
	const [refused, setRefused] = useState<unknown>(null);
	const area = useRef<HTMLTextAreaElement>(null);
	const {data, error, current} = useChecked(text);
	const changed = text !== first;
	const lines = useMemo(() => text.split('\n').length, [text]);
	const wrong = useMemo(() => new Set((data?.problems ?? []).flatMap((p) => p.line ? [p.line] : [])), [data]);
	const id = data?.agent_id ?? '';
	const taken = file !== undefined && id === known;
	const ready = current && data?.good === true && !busy && !taken && (changed || known === '');
	const heard = useRef('');
	useEffect(() => {
		const words = data?.problems[0] ? `Line ${data.problems[0].line ?? '?'}: ${data.problems[0].message}` : data?.good ? 'No problem' : '';
		if (current && words && words !== heard.current && changed)
			say(words);
		heard.current = words;
	}, [data, current]); // eslint-disable-line
	const jump = (n: number | null) => {
		const t = area.current;
		if (!t || !n)
			return;
		const begin = text.split('\n').slice(0, n - 1).reduce((sum, l) => sum + l.length + 1, 0);
		t.focus();
		t.setSelectionRange(begin, begin + (text.split('\n')[n - 1]?.length ?? 0));
		t.scrollTop = Math.max(0, (n - 4) * LINE);
	};
	const [wanted, want] = useState(false);
	const save = async () => {
		if (!ready || !data?.definition) {
			want(!current && !busy); // what was typed just now is checked first
			return;
		}
		want(false);
		setBusy(true);
		setRefused(null);
		try {
			const answer = await askJson<{version: number; changed: boolean}>(`api/agents/${encodeURIComponent(id)}`, {method: 'PUT', body: data.definition});
			toast('ok', answer.changed ? `${id} is kept as version ${answer.version}` : `${id} says this already, in version ${answer.version}`);
			await Promise.all(['agents', 'agent'].map((k) => client.invalidateQueries({queryKey: [k]})));
			saved(id);
		} catch (e) {
			setRefused(e);
		}
		setBusy(false);
	};
	useEffect(() => {
		if (wanted && current)
			void save();
	}, [wanted, current]); // eslint-disable-line
	useShortcuts([{keys: 'Ctrl S', does: 'Save the definition', run: () => void save()}, {keys: 'E', does: 'Go to the problem', run: () => jump(data?.problems[0]?.line ?? null)}]);
	return <div className="agents-edit">
		<div className="row wrap agents-bar"><span className="badge">{formatOf(text).toUpperCase()}</span>
			<span id="agents-verdict" role="status">{error ? <Health kind="unknown" word="Not checked" /> : !data ? <Health kind="busy" word="Checking" /> : !current ? <Health kind="busy" word="Checking" /> : data.good ? <Health kind="ok" word="No problem" /> : <Health kind="err" word={`${data.problems.length} ${data.problems.length === 1 ? 'problem' : 'problems'}`} />}</span>
			<span className="grow" /><CopyButton text={() => text} />
			{changed && <button type="button" className="btn small" onClick={() => setText(first)}><RotateCcw size={12} aria-hidden />Discard</button>}</div>
		<Area text={text} set={setText} lines={lines} wrong={wrong} area={area} describedBy="agents-verdict" />
		{data && !data.good && <ul className="agents-problems" aria-label="Problems">{data.problems.map((p, i) => <li key={i}><button type="button" onClick={() => jump(p.line)}><OctagonX size={14} aria-hidden /><span><span className="mono f12">{p.line ? `line ${p.line}` : ''} {p.pointer}</span> {p.message}</span></button></li>)}</ul>}
		{data?.good && (data.inactive?.length ?? 0) > 0 && <ul className="agents-problems" data-soft="" aria-label="Without effect in this version">{data.inactive!.map((p) => <li key={p.pointer} className="f12 t2"><span className="mono">{p.pointer}</span> has no effect: {p.why}</li>)}</ul>}
		{error && <ProblemNote what="The definition could not be checked" error={error} />}
		{refused !== null && <ProblemNote what="It was not saved" error={refused} />}
		<div className="row wrap"><button type="button" className="btn main-act" disabled={!ready} onClick={() => void save()}><Save size={14} aria-hidden />{busy ? 'Saving' : known && id === known ? `Save as version ${(version ?? 0) + 1}` : id ? `Save as ${id}` : 'Save'}</button>
			<span className="f12 t3 grow">{taken ? <>This agent is the file <span className="mono">{file}</span>: change that, or give another id to keep a copy here.</> : known && id === known ? 'Runs at work keep the version they began with.' : 'It is kept in the database of the server, with all its versions.'}</span></div>
	</div>;
}
