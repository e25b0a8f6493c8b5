// Reader.tsx - a document, passage by passage; the one that a citation or a search names is marked.
import {X} from 'lucide-react';
import {useEffect, useRef, useState} from 'react';
import {A, Ago, Bones, Dialog, ProblemNote} from '../../components/ui';
import {Problem} from '../../lib/api';
import {bytes, count, seconds} from '../../lib/format';
import {complain, toast} from '../../lib/say';
import {go, useFilter} from '../../lib/nav';
import {type Passage, pageAfter, pageBefore, removeDocument, renew, useDocument, usePassage, usePassages} from './data';

export function place(p: Passage): string {
	return [p.page > 1 || p.source.endsWith('.pdf') || p.document_id.endsWith('.pdf') ? `page ${p.page}` : '', p.heading, `line ${p.line}`].filter(Boolean).join(' · ');
}

function Text({p, marked}: {p: Passage; marked: boolean}) {
	const ref = useRef<HTMLLIElement>(null);
	useEffect(() => {
		if (marked)
			ref.current?.scrollIntoView({block: 'center'});
	}, [marked]);
	return <li ref={ref} className="kb-passage" data-marked={marked ? '' : undefined} aria-current={marked ? 'true' : undefined}>
		<span className="f11 t3">{marked && <strong className="kb-mark">This passage</strong>}{place(p)}</span><p>{p.text}</p></li>;
}

export function RemoveDialog({what, words, act, close}: {what: string; words: string; act: () => Promise<unknown>; close: () => void}) {
	const [busy, wait] = useState(false);
	const start = async () => {
		wait(true);
		try {
			await act();
			await renew();
			toast('ok', `${what} is removed`);
		} catch (e) {
			complain('It was not removed', e);
		}
		close();
	};
	return <Dialog title={`Remove ${what}`} close={close}><p>{words}</p><div className="row"><button type="button" className="btn danger" disabled={busy} onClick={() => void start()}>{busy ? 'Removing' : 'Remove'}</button></div></Dialog>;
}

export function Reader({collection, id}: {collection: string; id: string}) {
	const [wanted] = useFilter('passage');
	const doc = useDocument(collection, id);
	const named = usePassage(collection, id, wanted);
	const [from, setFrom] = useState(-1);
	const start = from >= 0 ? from : wanted && named.data ? Math.floor(named.data.passage.position / 200) * 200 : 0;
	const list = usePassages(collection, id, start, !wanted || named.isSuccess || named.isError || from >= 0);
	const [removing, ask] = useState(false);
	const back = `knowledge/${encodeURIComponent(collection)}${keep()}`;
	const gone = named.error instanceof Problem && named.error.status === 404;
	const d = doc.data;
	return <aside className="kb-panel" aria-label={`Document ${id}`}>
		<header className="top"><h2 className="cut">{d?.title || id}</h2><span className="grow" />
			{d && <button type="button" className="btn danger" onClick={() => ask(true)}>Remove</button>}
			<A className="btn quiet icon" aria-label="Close" to={back}><X size={16} aria-hidden /></A></header>
		{d && <p className="kb-about f12 t2"><span className="mono">{d.document_id}</span> · {d.media_type || 'text/plain'} · {bytes(d.bytes)} · {count(d.passages)} {d.passages === 1 ? 'passage' : 'passages'} · <Ago at={seconds(d.updated_at)} />{d.labels ? ` · labels ${d.labels}` : ''}{d.source && d.source !== d.title ? <> · from <span className="mono">{d.source}</span></> : null}</p>}
		<div className="scroll" tabIndex={0} role="region" aria-label="Passages, scrolls">
			{doc.error ? <div className="kb-body"><ProblemNote what="The document could not be read" error={doc.error} /></div> : null}
			{d?.state === 'failed' ? <div className="kb-body"><ProblemNote what="It could not be indexed" error={d.error ?? 'unknown'} /></div> : null}
			{d?.state === 'pending' ? <p className="kb-body t2">It is being indexed. Its passages appear here when it is ready.</p> : null}
			{gone ? <p className="kb-note f12" role="status">The passage is not in the document any more: it was changed since it was cited.</p> : named.error ? <div className="kb-body"><ProblemNote what="The passage could not be read" error={named.error} /></div> : null}
			{start > 0 && <div className="kb-body"><button type="button" className="btn" onClick={() => setFrom(pageBefore(start))}>Passages before</button></div>}
			{list.error && !doc.error ? <div className="kb-body"><ProblemNote what="The passages could not be read" error={list.error} /></div>
				: list.data ? <ol className="kb-text">{list.data.passages.map((p) => <Text key={p.chunk} p={p} marked={wanted !== '' && (p.sha256 === wanted || String(p.chunk) === wanted)} />)}</ol> : doc.error ? null : <div className="kb-body"><Bones rows={5} /></div>}
			{list.data?.more && <div className="kb-body"><button type="button" className="btn" onClick={() => setFrom(pageAfter(start))}>Passages after</button></div>}
		</div>
		{removing && <RemoveDialog what={id} words="Its passages, vectors and relations go, too. Answers that cited it keep their quotations." close={() => ask(false)}
			act={async () => { await removeDocument(collection, id); go(back); }} />}
	</aside>;
}

/** The query of the address without the document. */
export function keep(more: Record<string, string> = {}): string {
	const q = new URLSearchParams(location.search);
	q.delete('document');
	q.delete('passage');
	for (const [k, v] of Object.entries(more))
		q.set(k, v);
	const text = q.toString();
	return text ? `?${text}` : '';
}
