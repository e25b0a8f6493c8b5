// Add.tsx - the palette of nodes, and the dialogs of the keyboard: add a node, connect two.
import {Ban, Plus} from 'lucide-react';
import {useMemo, useRef, useState} from 'react';
import {Dialog} from '../../components/ui';
import {type Definition, type FlowNode, type PortRef, inOrder, nameOf} from './doc';
import {DRAGGED, GROUPS, type Types, lookOf, portsOf, typeWords, wouldFit} from './data';

function grouped(types: Types, q = ''): [string, string[]][] {
	const fits = [...types.values()].filter((t) => `${t.title} ${t.type} ${t.doc}`.toLowerCase().includes(q.trim().toLowerCase()));
	const known = new Set(GROUPS.map(([g]) => g));
	return [...GROUPS, ['', 'Others'] as [string, string]].map(([g, word]): [string, string[]] => [word, fits.filter((t) => g ? t.group === g : !known.has(t.group)).map((t) => t.type)]).filter(([, list]) => list.length > 0);
}

/** Click adds a node behind the chosen one; drag puts it anywhere. */
export function Palette({types, add}: {types: Types; add: (type: string) => void}) {
	return <div className="flow-palette scroll" role="region" aria-label="Add a node" tabIndex={0}>{grouped(types).map(([word, list]) => <section key={word}><h2 className="f11">{word}</h2><ul>{list.map((type) => {
		const t = types.get(type)!, {Icon, kind} = lookOf(type);
		return <li key={type}><button type="button" draggable className="flow-pick" data-kind={kind} title={t.doc} aria-label={`Add ${t.title}`} onClick={() => add(type)} onDragStart={(e) => { e.dataTransfer.setData(DRAGGED, type); e.dataTransfer.effectAllowed = 'copy'; }}><span className="flow-icon"><Icon size={14} aria-hidden /></span>{t.title}</button></li>;
	})}</ul></section>)}</div>;
}

/** A list that is chosen from by typing and with the arrows. */
function Choose<T>({title, label, rows, row, idOf, take, close, none}: {title: string; label: string; rows: (q: string) => T[]; row: (t: T) => React.ReactNode; idOf: (t: T) => string; take: (t: T) => void; close: () => void; none: string}) {
	const [q, set] = useState(''), [at, setAt] = useState(0);
	const shown = useMemo(() => rows(q), [q]); // eslint-disable-line
	const now = Math.min(at, shown.length - 1), list = useRef<HTMLUListElement>(null);
	const move = (to: number) => {
		const next = Math.max(0, Math.min(shown.length - 1, to));
		setAt(next);
		list.current?.children[next]?.scrollIntoView({block: 'nearest'});
	};
	return <Dialog title={title} close={close}><input className="input" data-first role="combobox" aria-expanded="true" aria-controls="flow-choices" aria-activedescendant={shown[now] ? `flow-choice-${now}` : undefined} aria-label={label} placeholder={label} value={q} onChange={(e) => { set(e.target.value); setAt(0); }} onKeyDown={(e) => {
		if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
			e.preventDefault();
			move(now + (e.key === 'ArrowDown' ? 1 : -1));
		} else if (e.key === 'Enter' && shown[now]) {
			e.preventDefault();
			take(shown[now]);
		}
	}} />
	{shown.length === 0 ? <p className="t2">{none}</p> : <ul ref={list} className="flow-choices" role="listbox" id="flow-choices" aria-label={title}>{shown.map((t, i) => <li key={idOf(t)} id={`flow-choice-${i}`} role="option" aria-selected={i === now} onMouseMove={() => setAt(i)} onClick={() => take(t)}>{row(t)}</li>)}</ul>}</Dialog>;
}

export function AddDialog({types, after, add, close}: {types: Types; after: string; add: (type: string) => void; close: () => void}) {
	return <Choose title={after ? `Add a node after ${after}` : 'Add a node'} label="Which node" rows={(q) => grouped(types, q).flatMap(([, list]) => list)} idOf={(t) => t} none="No node is called so." take={(type) => { close(); add(type); }} close={close} row={(type) => {
		const t = types.get(type)!, {Icon, kind} = lookOf(type);
		return <span className="row"><span className="flow-icon" data-kind={kind}><Icon size={14} aria-hidden /></span><b>{t.title}</b><span className="t3 f12 cut">{t.doc}</span></span>;
	}} />;
}

interface Way { from: PortRef; to: PortRef; words: string; why: string }

/** All ways from and to a node, those that fit first; the others say why they do not. */
function waysOf(doc: Definition, types: Types, node: FlowNode): Way[] {
	const out: Way[] = [];
	for (const other of inOrder(doc).filter((n) => n.id !== node.id)) {
		for (const [a, b] of [[node, other], [other, node]])
			for (const p of portsOf(types, a, doc).outputs)
				for (const q of portsOf(types, b, doc).inputs) {
					const from = {node: a.id, port: p.name}, to = {node: b.id, port: q.name};
					out.push({from, to, words: `${nameOf(a)} ${p.name === 'out' ? '' : `${p.name} `}(${typeWords(p)}) to ${nameOf(b)}${q.name === 'in' ? '' : ` ${q.name}`}`, why: wouldFit(doc, types, from, to)});
				}
	}
	const onward = (w: Way) => w.from.node === node.id ? 0 : 1;
	return out.sort((a, b) => Number(a.why !== '') - Number(b.why !== '') || onward(a) - onward(b));
}

export function ConnectDialog({doc, types, node, connect, refuse, close}: {doc: Definition; types: Types; node: FlowNode; connect: (from: PortRef, to: PortRef) => void; refuse: (from: PortRef, to: PortRef, why: string) => void; close: () => void}) {
	const all = useMemo(() => waysOf(doc, types, node), []); // eslint-disable-line
	return <Choose title={`Connect ${nameOf(node)}`} label="With which node" rows={(q) => all.filter((w) => w.words.toLowerCase().includes(q.trim().toLowerCase()))} idOf={(w) => `${w.from.node}.${w.from.port}>${w.to.node}.${w.to.port}`} none="There is no other node with a port." close={close}
		take={(w) => { close(); if (w.why) refuse(w.from, w.to, w.why); else connect(w.from, w.to); }} row={(w) => <span className="flow-way" data-off={w.why ? '' : undefined}><span className="row">{w.why ? <Ban size={13} aria-hidden /> : <Plus size={13} aria-hidden />}<span>{w.words}</span></span>{w.why && <span className="f12 t3">{w.why}</span>}</span>} />;
}
