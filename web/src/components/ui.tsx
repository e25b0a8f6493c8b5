// ui.tsx - the small components that every screen uses.
import * as Ariakit from '@ariakit/react';
import {Ban, CheckCircle2, CircleDashed, CircleHelp, Clock, Copy, Diamond, LoaderCircle, OctagonX, Square, X, type LucideIcon} from 'lucide-react';
import {type ComponentProps, type MouseEvent, type ReactNode, useEffect, useRef, useState} from 'react';
import {Problem} from '../lib/api';
import {view} from '../lib/base';
import {ago, exact, stateOf, type StateKind} from '../lib/format';
import {useNow} from '../lib/hooks';
import {go} from '../lib/nav';
import {say} from '../lib/say';

/** A link to a view of the page: <A to="c/ID">. */
export function A({to, onClick, ...rest}: {to: string} & ComponentProps<'a'>) {
	return <a href={view(to)} {...rest} onClick={(e: MouseEvent<HTMLAnchorElement>) => {
		onClick?.(e);
		if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey)
			return;
		e.preventDefault();
		go(to);
	}} />;
}

const ICONS: Record<StateKind, LucideIcon> = {queued: CircleDashed, running: LoaderCircle, waits: Diamond, stopping: Square, ok: CheckCircle2,
	failed: OctagonX, timeout: Clock, lost: CircleHelp, cancelled: Ban};

/** The state of a run: icon, colour and word; the server's own word is in the tooltip. */
export function State({status, engine, bare}: {status: string; engine?: string; bare?: boolean}) {
	const {word, kind} = stateOf(status, engine);
	const Icon = ICONS[kind];
	return <span className="state" data-kind={kind} title={engine || status}>
		<Icon size={14} aria-hidden className={kind === 'running' ? 'spin' : undefined} />
		{bare ? <span className="unseen">{word}</span> : word}
	</span>;
}

/** How long ago, the exact time on hover. */
export function Ago({at}: {at: number}) {
	const now = useNow(10);
	return Number.isFinite(at) ? <time className="num" dateTime={new Date(at * 1000).toISOString()} title={exact(at)}>{ago(at, now)}</time> : <span>unknown</span>;
}

export function CopyButton({text, label = 'Copy', small = true, quiet = true, icon}: {text: string | (() => string); label?: string; small?: boolean; quiet?: boolean; icon?: boolean}) {
	const [done, set] = useState(false);
	return <button type="button" className={`btn${small ? ' small' : ''}${quiet ? ' quiet' : ''}${icon ? ' icon' : ''}`} aria-label={icon ? label : undefined} title={icon ? label : undefined} onClick={async () => {
		await navigator.clipboard.writeText(typeof text === 'string' ? text : text());
		set(true);
		say('Copied');
		setTimeout(() => set(false), 1500);
	}}>{done ? <CheckCircle2 size={14} aria-hidden /> : <Copy size={14} aria-hidden />}{icon ? null : done ? 'Copied' : label}</button>;
}

/** An id in mono that a click copies. */
export function Id({value, short = true}: {value: string; short?: boolean}) {
	return <button type="button" className={`mono f11 t3${short ? ' id' : ''}`} title={`${value}: click to copy`} onClick={() => { void navigator.clipboard.writeText(value); say('Copied'); }}>
		{short && value.length > 12 ? `…${value.slice(-8)}` : value}</button>;
}

/** A sentence, what is kept, the next step; the code small. */
export function ProblemNote({what, error, retry}: {what: string; error: unknown; retry?: () => void}) {
	const p = error instanceof Problem ? error : null;
	return <div className="problem" role="alert">
		<strong><OctagonX size={14} aria-hidden />{what}</strong>
		<span>{error instanceof Error ? error.message : String(error)}</span>
		<span className="row f11 t3">{p && <span className="mono">{p.code}{p.where ? ` at ${p.where}` : ''}</span>}
			{retry && <button type="button" className="btn small" onClick={retry}>Try again</button>}</span>
	</div>;
}

export function Empty({title, children}: {title: string; children?: ReactNode}) {
	return <div className="empty"><h2>{title}</h2>{children}</div>;
}

/** Grey bars of the same geometry, after 200 ms. */
export function Bones({rows = 3}: {rows?: number}) {
	return <div aria-hidden className="card">{Array.from({length: rows}, (_, i) => <div className="item" key={i}><div className="bone grow" /></div>)}</div>;
}

export function Top({title, children, about}: {title: ReactNode; children?: ReactNode; about?: ReactNode}) {
	return <header className="top"><h1 className="cut">{title}</h1>{about && <span className="t3 f12 cut">{about}</span>}<span className="grow" />{children}</header>;
}

export function Segment<T extends string>({label, value, options, set}: {label: string; value: T; options: [T, ReactNode][]; set: (v: T) => void}) {
	return <div className="segment" role="group" aria-label={label}>{options.map(([v, text]) =>
		<button key={v} type="button" aria-pressed={v === value} onClick={() => set(v)}>{text}</button>)}</div>;
}

/** Tabs whose selection is kept by the caller (usually in the address). */
export function Tabs<T extends string>({label, value, options, set}: {label: string; value: T; options: [T, ReactNode][]; set: (v: T) => void}) {
	const move = (e: React.KeyboardEvent, i: number) => {
		const next = e.key === 'ArrowRight' ? i + 1 : e.key === 'ArrowLeft' ? i - 1 : -1;
		if (next < 0 || next >= options.length)
			return;
		set(options[next][0]);
		(e.currentTarget.parentElement?.children[next] as HTMLElement | undefined)?.focus();
	};
	return <div className="tabs" role="tablist" aria-label={label}>{options.map(([v, text], i) =>
		<button key={v} type="button" role="tab" aria-selected={v === value} tabIndex={v === value ? 0 : -1} onClick={() => set(v)} onKeyDown={(e) => move(e, i)}>{text}</button>)}</div>;
}

/** A button that opens a menu. Items are <MenuItem>. */
export function Menu({button, label, className = 'btn quiet icon', children}: {button: ReactNode; label?: string; className?: string; children: ReactNode}) {
	return <Ariakit.MenuProvider>
		<Ariakit.MenuButton className={className} aria-label={label} title={label}>{button}</Ariakit.MenuButton>
		<Ariakit.Menu className="menu" gutter={4} portal unmountOnHide>{children}</Ariakit.Menu>
	</Ariakit.MenuProvider>;
}

export function MenuItem({children, onClick, disabled}: {children: ReactNode; onClick: () => void; disabled?: boolean}) {
	return <Ariakit.MenuItem onClick={onClick} disabled={disabled}>{children}</Ariakit.MenuItem>;
}

/** The browser's own dialog: it keeps the focus inside and gives it back. */
export function Dialog({title, close, children, className}: {title: string; close: () => void; children: ReactNode; className?: string}) {
	const ref = useRef<HTMLDialogElement>(null);
	useEffect(() => {
		const dialog = ref.current!;
		const before = document.activeElement as HTMLElement | null;
		dialog.showModal();
		dialog.querySelector<HTMLElement>('[data-first]')?.focus(); // autoFocus comes too early, and the browser takes the button that closes
		return () => { dialog.close(); before?.focus?.(); };
	}, []);
	return <dialog ref={ref} className={className} aria-label={title} onCancel={(e) => { e.preventDefault(); close(); }}
		onClick={(e) => { if (e.target === ref.current) close(); }}>
		<div className="dialog-head"><h2>{title}</h2><button type="button" className="btn quiet icon" aria-label="Close" onClick={close}><X size={16} aria-hidden /></button></div>
		<div className="dialog-body">{children}</div>
	</dialog>;
}
