// Cite.tsx - a numbered mark; its card has title, passage and address.
import * as Ariakit from '@ariakit/react';
import type {Source} from '../lib/fold';
import {plain} from '../lib/format';
import {leads} from '../routes';
import {A} from './ui';

/** An address that a person may open: others are shown as text. */
export function safeUrl(url: unknown): string | null {
	try {
		const u = new URL(String(url));
		return u.protocol === 'https:' || u.protocol === 'http:' ? u.href : null;
	} catch {
		return null;
	}
}

/** The view of a passage of a collection, if that is what the address names. */
export function passageView(url: unknown): string | null {
	const found = /^\/api\/kb\/([^/?]+)\/documents\/([^/?]+)\?(?:passage|chunk)=(\w+)$/.exec(String(url ?? ''));
	const view = found && `knowledge/${found[1]}?document=${found[2]}&passage=${found[3]}`;
	return view && leads(view) ? view : null;
}

/** Where in its document a passage is. */
function whereOf(source: Source): string {
	return [typeof source.page === 'number' ? `page ${source.page}` : '', typeof source.line === 'number' ? `line ${source.line}` : ''].filter(Boolean).join(', ');
}

export function sourceName(source: Source | undefined): string {
	return source ? plain(String(source.title ?? source.url ?? source.document_id ?? 'Untitled source')) : 'Unknown source';
}

export function SourceCard({source}: {source: Source | undefined}) {
	const url = safeUrl(source?.url), passage = passageView(source?.url);
	return <div className="source">
		<strong>{sourceName(source)}</strong>
		{source?.snippet && <blockquote>{plain(String(source.snippet))}</blockquote>}
		{!source && <p>The answer names a source that the run did not give.</p>}
		{source && passage ? <span className="row f12"><A className="link" to={passage}>Open the passage</A><span className="t3">{whereOf(source)}</span></span> : url ? <a className="link f12" href={url} target="_blank" rel="noopener noreferrer">{new URL(url).host}</a> : source?.url ? <span className="mono f12">{plain(String(source.url))}</span> : null}
	</div>;
}

export function Cite({number, source}: {number: number; source: Source | undefined}) {
	return <Ariakit.PopoverProvider>
		<Ariakit.PopoverDisclosure className="cite" data-unknown={source ? undefined : ''} aria-label={`Source ${number}: ${sourceName(source)}`}>{source ? number : '?'}</Ariakit.PopoverDisclosure>
		<Ariakit.Popover className="menu cite-card" gutter={4} portal unmountOnHide aria-label={`Source ${number}`}><SourceCard source={source} /></Ariakit.Popover>
	</Ariakit.PopoverProvider>;
}
