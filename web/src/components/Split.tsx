// Split.tsx - a list of things beside the one that is chosen; on a narrow page one at a time.
import {ArrowLeft, Search} from 'lucide-react';
import {type ReactNode, useEffect, useRef, useState} from 'react';
import '../styles/split.css';
import {A} from './ui';

export function Split({label, tools, list, chosen, back, children}: {label: string; tools?: ReactNode; list: ReactNode; chosen: boolean; back: string; children: ReactNode}) {
	return <div className="split-view" data-chosen={chosen ? '' : undefined}>
		<section className="split-list" aria-label={label}>{tools && <div className="split-tools">{tools}</div>}{list}</section>
		<section className="split-main" aria-label="Details"><A className="split-back btn quiet" to={back}><ArrowLeft size={14} aria-hidden />{label}</A>{children}</section>
	</div>;
}

/** Words to filter by; what is typed goes on at once, into the address a moment later. */
export function Find({label, value, set}: {label: string; value: string; set: (v: string) => void}) {
	const [typed, type] = useState(value);
	const sent = useRef(value);
	const latest = useRef(set);
	latest.current = set;
	useEffect(() => {
		if (value !== sent.current) {
			sent.current = value;
			type(value);
		}
	}, [value]);
	useEffect(() => {
		if (typed === sent.current)
			return;
		const timer = setTimeout(() => { sent.current = typed; latest.current(typed); }, 150);
		return () => clearTimeout(timer);
	}, [typed]);
	return <label className="find"><Search size={14} aria-hidden /><span className="unseen">{label}</span>
		<input type="search" className="input" placeholder={label} value={typed} onChange={(e) => type(e.target.value)} /></label>;
}

export function Pick({label, value, options, set}: {label: string; value: string; options: [string, string][]; set: (v: string) => void}) {
	return <select className="select pick" aria-label={label} title={label} value={value} data-set={value ? '' : undefined} onChange={(e) => set(e.target.value)}>
		{options.map(([v, word]) => <option key={v} value={v}>{word}</option>)}</select>;
}

/** Facts in two columns; those without a value are left out. */
export function Facts({rows}: {rows: [string, ReactNode][]}) {
	return <dl className="fact-list">{rows.filter(([, v]) => v !== undefined && v !== null && v !== '').map(([name, value]) => [<dt key={`${name}t`}>{name}</dt>, <dd key={`${name}d`}>{value}</dd>])}</dl>;
}

export function Part({title, about, children, acts}: {title: string; about?: ReactNode; children: ReactNode; acts?: ReactNode}) {
	return <section className="part"><div className="part-head"><h2>{title}</h2>{about && <span className="t3 f12">{about}</span>}<span className="grow" />{acts}</div>{children}</section>;
}
