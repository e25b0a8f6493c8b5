// Markdown.tsx - Markdown to elements, without HTML text in between: parsed, sanitized, drawn. What is
// finished is frozen; only the last block of a text that grows is parsed again.
import {fromMarkdown} from 'mdast-util-from-markdown';
import {gfmFromMarkdown} from 'mdast-util-gfm';
import {mathFromMarkdown} from 'mdast-util-math';
import {toHast} from 'mdast-util-to-hast';
import {gfm} from 'micromark-extension-gfm';
import {math} from 'micromark-extension-math';
import {defaultSchema, sanitize, type Schema} from 'hast-util-sanitize';
import {toJsxRuntime} from 'hast-util-to-jsx-runtime';
import {type ComponentProps, createContext, memo, type ReactNode, useContext, useRef} from 'react';
import {Fragment, jsx, jsxs} from 'react/jsx-runtime';
import {whole} from '../lib/format';
import type {Source} from '../lib/fold';
import {Cite} from './Cite';
import {Code} from './Code';
import {Formula} from './Formula';

const PLAIN_FROM = 200000; // characters of one block; longer ones are shown as they are
const PART = 12; // blocks that are drawn together
const DEEP = 60; // lists and quotes inside each other

/** What numbers in square brackets refer to. */
export const Sources = createContext<Source[]>([]);

const SCHEMA: Schema = {
	...defaultSchema,
	tagNames: [...(defaultSchema.tagNames ?? []).filter((t) => !['picture', 'source', 'img'].includes(t)), 'cite'],
	attributes: {...defaultSchema.attributes, code: [['className', /^language-./, 'math-inline', 'math-display']], cite: ['value'], a: ['href', 'title', 'dataFootnoteRef', 'dataFootnoteBackref']},
	protocols: {href: ['http', 'https', 'mailto']},
};

interface Node { type: string; value?: string; url?: string; alt?: string | null; children?: Node[]; position?: any; data?: any; lang?: string }

/** HTML is text, images are links, numbers in brackets are citations. */
function tame(node: Node, depth = 0): void {
	if (!node.children)
		return;
	if (depth > DEEP) {
		node.children = [{type: 'text', value: '…'}];
		return;
	}
	node.children = node.children.flatMap((child): Node[] => {
		if (child.type === 'html')
			return [node.type === 'root' ? {type: 'paragraph', children: [{type: 'text', value: child.value}], position: child.position} : {type: 'text', value: child.value}];
		if (child.type === 'image' || child.type === 'imageReference')
			return [{type: 'link', url: child.url ?? '', children: [{type: 'text', value: `Image: ${child.alt || child.url || 'without a name'}`}]} as Node];
		if (child.type === 'text' && /\[\d{1,3}\]/.test(child.value ?? '') && node.type !== 'link')
			return (child.value ?? '').split(/(\[\d{1,3}\])/).filter(Boolean).map((part): Node => /^\[\d{1,3}\]$/.test(part)
				? {type: 'cite', data: {hName: 'cite', hProperties: {value: part.slice(1, -1)}}, children: [{type: 'text', value: part}]} : {type: 'text', value: part});
		return [child];
	});
	node.children.forEach((child) => tame(child, depth + 1));
}

function parse(text: string): Node {
	return fromMarkdown(text, {
		extensions: [gfm(), math({singleDollarTextMath: false})],
		mdastExtensions: [gfmFromMarkdown(), mathFromMarkdown()],
	}) as Node;
}

function textOf(node: any): string {
	return node.type === 'text' ? node.value : (node.children ?? []).map(textOf).join('');
}

function Link({href, children}: ComponentProps<'a'>) {
	return href ? <a className="link" href={href} target="_blank" rel="noopener noreferrer">{children}</a> : <>{children}</>;
}

function CiteMark({value, children}: {value?: string; children?: ReactNode}) {
	const sources = useContext(Sources);
	const number = Number(value);
	return sources.length ? <Cite number={number} source={sources[number - 1]} /> : <>{children}</>;
}

const closedFence = createContext(true);

function Pre({node}: {node?: any}) {
	const closed = useContext(closedFence);
	const code = node?.children?.[0];
	const name = String(code?.properties?.className?.[0] ?? '');
	const text = textOf(code ?? node).replace(/\n$/, '');
	if (name === 'math-display' || (code?.properties?.className ?? []).includes('math-display'))
		return <Formula text={text} display />;
	return <Code text={text} language={name.replace(/^language-/, '')} closed={closed} />;
}

function InlineCode({node, children, className}: {node?: any; children?: ReactNode; className?: string}) {
	return className?.includes('math') ? <Formula text={textOf(node)} /> : <code dir="ltr">{children}</code>;
}

const COMPONENTS: any = {
	a: Link, pre: Pre, code: InlineCode, cite: CiteMark,
	table: ({children}: {children?: ReactNode}) => <div className="wide-table" tabIndex={0}><table>{children}</table></div>,
	input: (p: ComponentProps<'input'>) => <input type="checkbox" checked={!!p.checked} disabled aria-label={p.checked ? 'done' : 'open'} readOnly />,
	h1: ({children}: any) => <h3>{children}</h3>, h2: ({children}: any) => <h3>{children}</h3>,
	h3: ({children}: any) => <h4>{children}</h4>, h4: ({children}: any) => <h4>{children}</h4>, h5: ({children}: any) => <h4>{children}</h4>, h6: ({children}: any) => <h4>{children}</h4>,
};

function draw(tree: Node): ReactNode {
	tame(tree);
	const safe = sanitize(toHast(tree as any), SCHEMA);
	return toJsxRuntime(safe as any, {Fragment, jsx: jsx as any, jsxs: jsxs as any, components: COMPONENTS, passNode: true, ignoreInvalidStyle: true});
}

/** \\(x\\) and \\[x\\], as models write formulas; code stays as it is. */
function formulas(text: string): string {
	return /`|~~~/.test(text) ? text : text.replace(/\\\(([^\n]+?)\\\)/g, (_, x) => `$$${x}$$`).replace(/\\\[([\s\S]+?)\\\]/g, (_, x) => `\n$$\n${x.trim()}\n$$\n`);
}

/** One block: the same text is never parsed twice. */
const Block = memo(function Block({text, closed}: {text: string; closed: boolean}) {
	let drawn: ReactNode;
	try {
		drawn = text.length > PLAIN_FROM ? <p>{text}</p> : draw(parse(formulas(text)));
	} catch {
		drawn = <p>{text}</p>;
	}
	return <closedFence.Provider value={closed}>{drawn}</closedFence.Provider>;
});

/** Where the top-level blocks of a text begin: all but the last are finished. */
function cuts(text: string): number[] {
	if (text.length > PLAIN_FROM)
		return [];
	try {
		return (parse(text).children ?? []).map((c) => c.position.start.offset as number).slice(1);
	} catch {
		return [];
	}
}

/** Some blocks that follow each other: what is out of sight is neither laid out nor painted. */
const Part = memo(function Part({blocks, from, tail, done}: {blocks: string[]; from: number; tail: number; done: boolean}) {
	return <div className="prose-part">{blocks.map((b, i) => <Block key={from + i} text={b} closed={i !== tail || done} />)}</div>;
}, (a, b) => a.tail === b.tail && a.done === b.done && a.blocks.length === b.blocks.length && a.blocks.every((x, i) => x === b.blocks[i]));

export function Markdown({text, done}: {text: string; done: boolean}) {
	const kept = useRef<{blocks: string[]; length: number; all: string}>({blocks: [], length: 0, all: ''});
	const k = kept.current;
	const now = whole(text);
	if (!now.startsWith(k.all.slice(0, k.length)) || now.length < k.length) {
		k.blocks = [];
		k.length = 0;
	}
	if (now !== k.all) {
		const tail = now.slice(k.length);
		let from = 0;
		for (const at of cuts(tail)) {
			k.blocks.push(tail.slice(from, at));
			from = at;
		}
		k.length += from;
		k.all = now;
	}
	const tail = now.slice(k.length);
	if (done && /^ {0,3}\[[^\]\n]+\]:/m.test(now)) // what is defined at the end is used before it
		return <div className="prose" dir="auto"><Block text={now} closed /></div>;
	const all = tail ? [...k.blocks, tail] : k.blocks;
	const parts = Array.from({length: Math.ceil(all.length / PART)}, (_, i) => all.slice(i * PART, i * PART + PART));
	return <div className="prose" dir="auto">{parts.map((part, i) => {
		const from = i * PART, open = from + part.length > k.blocks.length;
		return <Part key={i} blocks={part} from={from} tail={open ? part.length - 1 : -1} done={done} />;
	})}</div>;
}
