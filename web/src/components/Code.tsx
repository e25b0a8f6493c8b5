// Code.tsx - code with its language and a copy button; coloured once its fence is closed. Mermaid is drawn in
// the sealed frame.
import {toJsxRuntime} from 'hast-util-to-jsx-runtime';
import {type ReactNode, useEffect, useState} from 'react';
import {Fragment, jsx, jsxs} from 'react/jsx-runtime';
import {patiently} from '../lib/patient';
import {CopyButton} from './ui';
import {Frame} from './Frame';

const COLOURED_TO = 60000; // characters
type Colours = (language: string, text: string) => ReactNode;
let colours: Colours | null = null;
let coming: Promise<Colours> | null = null;

function load(): Promise<Colours> {
	coming ??= patiently(() => import('../lib/colours')).then(({lowlight}) => {
		colours = (language, text) => lowlight.registered(language)
			? toJsxRuntime(lowlight.highlight(language, text) as any, {Fragment, jsx: jsx as any, jsxs: jsxs as any}) as ReactNode : text;
		return colours;
	});
	return coming;
}

function useColours(text: string, language: string, on: boolean): ReactNode {
	const [, again] = useState(0);
	const wanted = on && language !== '' && text.length <= COLOURED_TO;
	useEffect(() => {
		if (wanted && !colours)
			void load().then(() => again((n) => n + 1));
	}, [wanted]);
	return wanted && colours ? colours(language.toLowerCase(), text) : text;
}

function Diagram({text}: {text: string}) {
	const [failed, fail] = useState('');
	if (failed)
		return <><p className="f12 t3">The diagram could not be drawn: {failed}</p><Plain text={text} language="mermaid" closed={false} /></>;
	return <figure className="diagram"><Frame kind="mermaid" content={text} title="Diagram" grow report={(kind, message) => { if (kind === 'failed') fail(message.split('\n')[0]); }} />
		<details className="f12"><summary className="t3">Source</summary><Plain text={text} language="mermaid" closed={false} /></details></figure>;
}

function Plain({text, language, closed, name}: {text: string; language: string; closed: boolean; name?: string}) {
	return <div className="code"><header><span>{language || 'text'}</span>{name && <span className="t3 cut">{name}</span>}<span className="grow" /><CopyButton text={text} /></header>
		<pre tabIndex={0} dir="ltr"><code>{useColours(text, language, closed)}</code></pre></div>;
}

export function Code(p: {text: string; language: string; closed: boolean; name?: string}) {
	return p.language === 'mermaid' && p.closed && p.text.trim() ? <Diagram text={p.text} /> : <Plain {...p} />;
}
