// Formula.tsx - KaTeX as MathML, which browsers draw themselves: no fonts, no style. Loaded when there is one.
import {useEffect, useRef} from 'react';
import {whole} from '../lib/format';
import {patiently} from '../lib/patient';

export function Formula({text, display}: {text: string; display?: boolean}) {
	const ref = useRef<HTMLSpanElement>(null);
	useEffect(() => {
		let gone = false;
		void patiently(() => import('katex')).then(({default: katex}) => {
			if (gone || !ref.current)
				return;
			try {
				katex.render(whole(text), ref.current, {output: 'mathml', displayMode: display, throwOnError: true, trust: false, maxExpand: 200, maxSize: 20, strict: 'ignore'});
			} catch {
				ref.current.textContent = text;
			}
		});
		return () => { gone = true; };
	}, [text, display]);
	return <span ref={ref} className={display ? 'formula display' : 'formula'}>{text}</span>;
}
