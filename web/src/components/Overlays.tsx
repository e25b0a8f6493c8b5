// Overlays.tsx - what lies above the page: banner, notes, shortcuts, the palette, and what is said aloud.
import {CheckCircle2, LoaderCircle, OctagonX, WifiOff, X} from 'lucide-react';
import {useQuery} from '@tanstack/react-query';
import {useDeferredValue, useEffect, useRef, useState} from 'react';
import {askJson} from '../lib/api';
import {clock} from '../lib/format';
import {shortcuts} from '../lib/keys';
import {line, useLine} from '../lib/line';
import {go} from '../lib/nav';
import {closeToast, useSpoken, useToasts} from '../lib/say';
import {setTheme} from '../lib/theme';
import type {RunRecord, Session} from '../lib/types';
import {exists} from '../routes';
import {useNav} from '../lib/sections';
import {titleOf} from './Rail';
import {Dialog} from './ui';

/** Only a line that stays away is told: after half a second. */
export function Banner() {
	const state = useLine();
	const [shown, show] = useState(false);
	useEffect(() => {
		if (state.good) {
			show(false);
			return;
		}
		const timer = setTimeout(() => show(true), 500);
		return () => clearTimeout(timer);
	}, [state.good]);
	if (!shown || state.good)
		return null;
	return <div className="banner" role="status"><WifiOff size={14} aria-hidden />
		<span className="grow">{navigator.onLine ? 'Reconnecting' : 'No network'}. The server has not answered since {clock(state.since / 1000)}, try {state.tries}. What is shown stays; actions wait.</span>
		<button type="button" className="btn small" onClick={line.tryNow}>Try now</button></div>;
}

export function Toasts() {
	const all = useToasts();
	const spoken = useSpoken();
	return <>
		<div className="toasts">{all.map((t) => <div className="toast" data-kind={t.kind} key={t.id} role={t.kind === 'err' ? 'alert' : undefined}>
			{t.kind === 'ok' ? <CheckCircle2 size={16} aria-hidden /> : t.kind === 'err' ? <OctagonX size={16} aria-hidden /> : <LoaderCircle size={16} className="spin" aria-hidden />}
			<div className="grow"><div>{t.text}</div>{t.detail && <div className="f12 t2">{t.detail}</div>}</div>
			<button type="button" className="btn quiet icon small" aria-label="Close" onClick={() => closeToast(t.id)}><X size={14} aria-hidden /></button></div>)}</div>
		<p className="unseen" role="status" aria-live="polite" data-spoken>{spoken}</p>
	</>;
}

export function ShortcutSheet({close}: {close: () => void}) {
	const list = shortcuts();
	return <Dialog title="Shortcuts" close={close}><dl className="keys">{list.map((s) => [<dt key={`${s.keys}t`}>{s.does}</dt>, <dd key={`${s.keys}d`}>{s.keys.split(' ').map((k, i) => k === 'then' ? <span key={i} className="t3 f11"> then </span> : <kbd key={i}>{k}</kbd>)}</dd>])}</dl>
		<p className="f12 t3">No shortcut works while you type.</p></Dialog>;
}

interface Entry { key: string; title: string; about: string; run: () => void }

export function Palette({close, sheet}: {close: () => void; sheet: () => void}) {
	const nav = useNav();
	const [text, set] = useState('');
	const [at, setAt] = useState(0);
	const wanted = useDeferredValue(text.trim());
	const ref = useRef<HTMLDialogElement>(null);
	const sessions = useQuery({queryKey: ['palette', 'sessions', wanted], queryFn: () => askJson<{sessions: Session[]}>(`api/sessions?limit=8${wanted ? `&title=${encodeURIComponent(wanted)}` : ''}`)});
	const runs = useQuery({queryKey: ['palette', 'runs', wanted], enabled: wanted.length > 1, retry: false,
		queryFn: () => askJson<{runs: RunRecord[]}>(`api/runs?limit=6&q=${encodeURIComponent(wanted)}`)});
	useEffect(() => {
		const dialog = ref.current!;
		const before = document.activeElement as HTMLElement | null;
		dialog.showModal();
		return () => { dialog.close(); before?.focus?.(); };
	}, []);
	const actions: Entry[] = [
		...(exists('chat') ? [{key: 'new', title: 'New chat', about: 'C', run: () => go('c')}] : []),
		...nav.map((r) => ({key: `go ${r.screen}`, title: `Go to ${r.title}`, about: `G ${r.nav!.key}`, run: () => go(r.path)})),
		...(['light', 'dark', 'system'] as const).map((t) => ({key: `theme ${t}`, title: `Theme: ${t}`, about: '', run: () => setTheme(t)})),
		{key: 'sheet', title: 'Shortcuts', about: '?', run: sheet},
		...(exists('conversations') ? [{key: 'talks', title: wanted ? `Search what was said: ${wanted}` : 'All conversations and the archive', about: '', run: () => go(`conversations${wanted ? `?q=${encodeURIComponent(wanted)}` : ''}`)}] : []),
	].filter((e) => e.title.toLowerCase().includes(wanted.toLowerCase()));
	const entries: Entry[] = [
		...(sessions.data?.sessions ?? []).map((s) => ({key: s.session_id, title: titleOf(s), about: 'Conversation', run: () => go(`c/${s.session_id}`)})),
		...(wanted.length > 1 ? runs.data?.runs ?? [] : []).map((r) => ({key: r.run_id, title: String(r.title ?? r.run_id), about: `Run of ${r.agent_id}`, run: () => go(exists('run') ? `runs/${r.run_id}` : `c/${r.session_id}`)})),
		...actions,
	];
	const chosen = Math.min(at, entries.length - 1);
	const run = (e: Entry) => { close(); e.run(); };
	return <dialog ref={ref} className="palette" aria-label="Search or jump to" onCancel={(e) => { e.preventDefault(); close(); }} onClick={(e) => { if (e.target === ref.current) close(); }}>
		<input autoFocus role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={entries[chosen] ? `palette-${chosen}` : undefined} aria-label="Search conversations, runs and actions"
			placeholder="Search conversations, runs and actions" value={text} onChange={(e) => { set(e.target.value); setAt(0); }}
			onKeyDown={(e) => {
				if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
					e.preventDefault();
					setAt(Math.max(0, Math.min(entries.length - 1, chosen + (e.key === 'ArrowDown' ? 1 : -1))));
				} else if (e.key === 'Enter' && entries[chosen]) {
					e.preventDefault();
					run(entries[chosen]);
				}
			}} />
		<ul role="listbox" id="palette-list" aria-label="Results">{entries.map((e, i) => <li key={e.key} id={`palette-${i}`} role="option" aria-selected={i === chosen} onClick={() => run(e)} onMouseMove={() => setAt(i)}>
			<span className="grow cut">{e.title}</span><span className="f11 t3">{e.about}</span></li>)}</ul>
	</dialog>;
}
