// Cite.tsx - a numbered mark; its card has title, passage and address.
import * as Ariakit from '@ariakit/react';
import type {Source} from '../lib/fold';
import {plain} from '../lib/format';

/** An address that a person may open: others are shown as text. */
export function safeUrl(url: unknown): string | null {
	try {
		const u = new URL(String(url));
		return u.protocol === 'https:' || u.protocol === 'http:' ? u.href : null;
	} catch {
		return null;
	}
}

export function sourceName(source: Source | undefined): string {
	return source ? plain(String(source.title ?? source.url ?? source.document_id ?? 'Untitled source')) : 'Unknown source';
}

export function SourceCard({source}: {source: Source | undefined}) {
	const url = safeUrl(source?.url);
	return <div className="source">
		<strong>{sourceName(source)}</strong>
		{source?.snippet && <blockquote>{plain(String(source.snippet))}</blockquote>}
		{!source && <p>The answer names a source that the run did not give.</p>}
		{url ? <a className="link f12" href={url} target="_blank" rel="noopener noreferrer">{new URL(url).host}</a> : source?.url ? <span className="mono f12">{plain(String(source.url))}</span> : null}
	</div>;
}

export function Cite({number, source}: {number: number; source: Source | undefined}) {
	return <Ariakit.PopoverProvider>
		<Ariakit.PopoverDisclosure className="cite" data-unknown={source ? undefined : ''} aria-label={`Source ${number}: ${sourceName(source)}`}>{source ? number : '?'}</Ariakit.PopoverDisclosure>
		<Ariakit.Popover className="menu cite-card" gutter={4} portal unmountOnHide aria-label={`Source ${number}`}><SourceCard source={source} /></Ariakit.Popover>
	</Ariakit.PopoverProvider>;
}
