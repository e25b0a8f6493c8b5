// Rail.tsx - the rail, and on a phone the bar at the bottom.
import {CircleHelp, Ellipsis, Monitor, Moon, Plus, Search, Sun} from 'lucide-react';
import {useEffect, useState} from 'react';
import {ago, seconds, stateOf} from '../lib/format';
import {useNow} from '../lib/hooks';
import {useLine} from '../lib/line';
import {useView} from '../lib/nav';
import {useActions, useSessions} from '../lib/query';
import {setTheme, theme, type Theme} from '../lib/theme';
import type {Session} from '../lib/types';
import {useNav} from '../lib/sections';
import {NAV, exists} from '../routes';
import {A, State} from './ui';

/** The state of a conversation: what of it is at work. */
export function sessionState(s: Session): {status: string; word: string} {
	const status = s.waiting_runs > 0 ? 'waiting_permission' : s.live_runs > 0 ? 'running' : String(s.last_status ?? (s.runs ? 'unknown' : 'accepted'));
	return {status, word: s.runs ? stateOf(status).word : 'No turn yet'};
}

/** Begun by somebody: not that of an item of a job or of a child agent, which are found at their job, their run and among all conversations. */
export const isOwn = (s: Session) => !/^uar-(job|sub)\./.test(s.session_id);

export const titleOf = (s: Session) => s.title || (s.agent_id ? `Run of ${s.agent_id}` : 'Untitled');

function Conversations() {
	const {data} = useSessions();
	const now = useNow(10);
	const current = useView().split('/');
	return <ul>{(data?.sessions ?? []).filter((s) => s.status !== 'archived' && isOwn(s)).map((s) => {
		const {status, word} = sessionState(s);
		const age = ago(seconds(s.updated_at), now);
		return <li key={s.session_id}><A to={`c/${s.session_id}`} aria-current={current[0] === 'c' && current[1] === s.session_id ? 'page' : undefined}>
			<State status={status} bare />
			<span className="grow"><span className="cut">{titleOf(s)}</span>
				<span className="cut f11 t3">{status === 'succeeded' ? age : `${word} · ${age}`}</span></span>
		</A></li>;
	})}</ul>;
}

function ThemeButton() {
	const [now, set] = useState<Theme>(theme);
	useEffect(() => {
		const fn = () => set(theme());
		addEventListener('uar:theme', fn);
		return () => removeEventListener('uar:theme', fn);
	}, []);
	const next: Theme = now === 'system' ? 'light' : now === 'light' ? 'dark' : 'system';
	const Icon = now === 'system' ? Monitor : now === 'light' ? Sun : Moon;
	return <button type="button" className="btn quiet icon small" aria-label={`Theme: ${now}. Change to ${next}`} title={`Theme: ${now}`} onClick={() => setTheme(next)}><Icon size={15} aria-hidden /></button>;
}

/** How many questions wait, as the server says. */
function useWaiting(): number {
	const {data} = useActions();
	return data?.total ?? data?.actions.length ?? 0;
}

function isCurrent(path: string, view: string): boolean {
	return path === '' ? view === '' : view === path || view.startsWith(`${path}/`) || view.startsWith(`${path}?`);
}

export function Rail({palette, sheet, onNavigate}: {palette: () => void; sheet: () => void; onNavigate: () => void}) {
	const view = useView();
	const waiting = useWaiting();
	const line = useLine();
	const nav = useNav();
	return <aside className="rail" onClick={(e) => { if ((e.target as HTMLElement).closest('a')) onNavigate(); }}>
		<div className="rail-head"><span className="logo" aria-hidden><svg width="12" height="12" viewBox="0 0 12 12" fill="none" stroke="currentColor" strokeWidth="1.6" strokeLinecap="round"><path d="M2 2.5h8M2 6h5M2 9.5h8" /></svg></span>
			<span className="grow wide">UAR</span>
			{exists('chat') && <A to="c" className="btn quiet icon small wide" aria-label="New chat" title="New chat (C)"><Plus size={16} aria-hidden /></A>}</div>
		<button type="button" className="rail-search" onClick={palette} title="Search or jump to"><Search size={14} aria-hidden /><span className="grow cut wide">Search or jump to</span><kbd>Ctrl K</kbd></button>
		<nav aria-label="Sections">{nav.map((r) => {
			const Icon = r.icon!;
			return <A key={r.screen} to={r.path} title={r.title} aria-current={isCurrent(r.path, view) ? 'page' : undefined}>
				<Icon size={16} aria-hidden /><span className="grow wide">{r.title}</span>
				{r.screen === 'inbox' && waiting > 0 && <span className="badge ask">{waiting}<span className="unseen"> waiting</span></span>}</A>;
		})}</nav>
		<div className="rail-part"><h2 className="f11">Conversations</h2>{exists('conversations') && <A className="link" to="conversations" title="All, with search and the archive">All</A>}</div>
		<div className="rail-talk" tabIndex={-1}><Conversations /></div>
		<div className="rail-foot"><span className="dot" data-bad={line.good ? undefined : ''} /><span className="grow wide">{line.good ? 'Live' : 'Reconnecting'}</span>
			<ThemeButton /><button type="button" className="btn quiet icon small" aria-label="Shortcuts" title="Shortcuts (?)" onClick={sheet}><CircleHelp size={15} aria-hidden /></button></div>
	</aside>;
}

export function BottomBar({more, toggle}: {more: boolean; toggle: () => void}) {
	const view = useView();
	const waiting = useWaiting();
	return <nav className="bottom" aria-label="Sections, phone">{NAV.filter((r) => r.nav?.phone).map((r) => {
		const Icon = r.icon!;
		return <A key={r.screen} to={r.path} aria-current={isCurrent(r.path, view) && !more ? 'page' : undefined}><Icon size={20} aria-hidden />{r.title}
			{r.screen === 'inbox' && waiting > 0 && <span className="badge ask">{waiting}</span>}</A>;
	})}<button type="button" aria-expanded={more} onClick={toggle}><Ellipsis size={20} aria-hidden />More</button></nav>;
}
