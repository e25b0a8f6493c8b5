// Frame.tsx - the sealed frame: an origin of its own, no requests, nothing of this page. It is given one piece of
// content by message and says by message what went wrong in it.
import {useEffect, useRef, useState} from 'react';
import {at} from '../lib/base';
import {patiently} from '../lib/patient';
import {isDark, useDark} from '../lib/theme';
import mermaidUrl from 'mermaid/dist/mermaid.min.js?url';

export type Report = (kind: 'error' | 'blocked' | 'failed' | 'shown', message: string, details: Record<string, unknown>) => void;

const REPORTS_MAX = 20; // of one preview; one that fails in a loop is not to fill the log
let library: Promise<string> | null = null;

function mermaid(): Promise<string> {
	library ??= patiently(async () => (await fetch(mermaidUrl)).text());
	return library;
}

export function Frame({kind, content, title, grow, report}: {kind: 'html' | 'svg' | 'mermaid'; content: string; title: string; grow?: boolean; report?: Report}) {
	const ref = useRef<HTMLIFrameElement>(null);
	const [height, setHeight] = useState(grow ? 160 : 0);
	const dark = useDark();
	const tell = useRef(report);
	tell.current = report;
	useEffect(() => {
		let reports = 0;
		const hear = async (e: MessageEvent) => {
			const frame = ref.current;
			if (!frame || e.source !== frame.contentWindow || e.data?.uar !== 'frame')
				return;
			const {kind: what, message, details} = e.data;
			if (what === 'ready')
				frame.contentWindow?.postMessage({uar: 'show', kind, content, dark: isDark(), libraries: kind === 'mermaid' ? [await mermaid()] : []}, '*');
			else if (what === 'size' && grow && Number.isFinite(details?.height))
				setHeight(Math.min(4000, Math.max(40, Number(details.height))));
			else if (['error', 'blocked', 'failed', 'shown'].includes(what) && reports++ < REPORTS_MAX)
				tell.current?.(what, String(message), details && typeof details === 'object' ? details : {});
		};
		addEventListener('message', hear);
		return () => removeEventListener('message', hear);
	}, [kind, content, grow]);
	return <iframe key={kind === 'mermaid' ? `${dark} ${content}` : content} ref={ref} className="frame" title={title} sandbox="allow-scripts" src={at('page/frame.html')} referrerPolicy="no-referrer" style={grow ? {height} : undefined} />;
}
