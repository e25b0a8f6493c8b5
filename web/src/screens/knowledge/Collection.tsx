// Collection.tsx - one collection: search with scores, documents, relations, how it is searched.
import {CheckCircle2, LoaderCircle, OctagonX, Plus, Search, Trash2} from 'lucide-react';
import {type FormEvent, useEffect, useState} from 'react';
import {A, Ago, Bones, Empty, ProblemNote, Segment, Tabs, Top} from '../../components/ui';
import {bytes, count, seconds} from '../../lib/format';
import {useTitle} from '../../lib/hooks';
import {useShortcuts} from '../../lib/keys';
import {go, useFilter} from '../../lib/nav';
import {complain, toast} from '../../lib/say';
import {Add} from './Add';
import {type Collection as Facts, type Document, type Passage, removeCollection, removeDocument, renew, setPolicy, useCollections, useDocuments, useRelations, useSearch} from './data';
import {Progress} from './Progress';
import {Reader, RemoveDialog, keep, place} from './Reader';

function Hit({p, at, best}: {p: Passage; at: number; best: number}) {
	return <li><A className="kb-hit" data-document={p.document_id} to={`knowledge/${encodeURIComponent(p.collection)}${keep({document: p.document_id, passage: p.sha256})}`}>
		<span className="row wrap"><span className="kb-no">{at}</span><strong className="cut">{p.title}</strong><span className="f12 t3 cut">{place(p)}</span><span className="grow" />{p.related && <span className="badge">by a relation</span>}</span>
		<span className="kb-snippet t2">{p.text}</span>
		<span className="kb-scores f12"><span className="kb-score"><span className="t3">Score</span><i aria-hidden><b style={{width: `${best > 0 ? Math.round(p.score / best * 100) : 0}%`}} /></i><span className="num">{p.score.toFixed(4)}</span></span>
			<span><span className="t3">Words</span> <span className="num">{p.keyword > 0 ? p.keyword.toPrecision(2) : 'not found'}</span></span><span><span className="t3">Vector</span> <span className="num">{p.similarity > 0 ? p.similarity.toFixed(3) : 'not found'}</span></span></span>
	</A></li>;
}

function Find({collection}: {collection: string}) {
	const [q, setQ] = useFilter('q');
	const [mode, setMode] = useFilter('mode');
	const [expand, setExpand] = useFilter('expand');
	const [text, type] = useState(q);
	const how = mode || 'hybrid';
	const found = useSearch(collection, q, how, expand === '1');
	useEffect(() => type(q), [q]);
	const submit = (e: FormEvent) => { e.preventDefault(); setQ(text.trim()); };
	return <section className="kb-find" aria-label="Search">
		<form className="kb-search" role="search" onSubmit={submit}><label className="kb-words grow"><Search size={14} aria-hidden /><span className="unseen">Search this collection</span>
			<input className="input" type="search" value={text} placeholder="Search" onChange={(e) => type(e.target.value)} /></label>
		<Segment label="Search by" value={how} options={[['hybrid', 'Both'], ['keyword', 'Words'], ['vector', 'Vectors']]} set={(v) => setMode(v === 'hybrid' ? '' : v)} />
		<label className="kb-check f12"><input type="checkbox" checked={expand === '1'} onChange={(e) => setExpand(e.target.checked ? '1' : '')} />follow relations</label>
		<button type="submit" className="btn main-act" disabled={!text.trim()}>Search</button></form>
		{found.error ? <ProblemNote what="It could not be searched" error={found.error} /> : q && found.isPending ? <Bones rows={3} />
			: q && found.data ? found.data.passages.length === 0 ? <p className="t2" role="status">Nothing is found for “{q}”.</p>
				: <><p className="f12 t2" role="status">{found.data.passages.length} {found.data.passages.length === 1 ? 'passage' : 'passages'}, the best first.</p><ol className="card" aria-label="Passages">{found.data.passages.map((p, i) => <Hit key={p.chunk} p={p} at={i + 1} best={found.data.passages[0].score} />)}</ol></> : null}
	</section>;
}

const STATES: Record<string, [string, string, typeof CheckCircle2]> = {ready: ['Ready', 'ok', CheckCircle2], pending: ['Being indexed', 'running', LoaderCircle], failed: ['Failed', 'failed', OctagonX]};

function Row({d, at, remove}: {d: Document; at: boolean; remove: () => void}) {
	const [word, kind, Icon] = STATES[d.state] ?? [d.state, 'lost', OctagonX];
	return <li className="kb-row" data-at={at ? '' : undefined} data-document={d.document_id}>
		<A className="kb-title" to={`knowledge/${encodeURIComponent(d.collection)}${keep({document: d.document_id})}`}><strong className="cut">{d.title}</strong><span className="mono f11 t3 cut">{d.document_id}</span></A>
		<span className="state kb-state" data-kind={kind} title={d.error}><Icon size={14} aria-hidden className={kind === 'running' ? 'spin' : undefined} />{word}</span>
		<span className="kb-size num t2">{bytes(d.bytes)}</span><span className="kb-count num t2">{count(d.passages)}</span><span className="kb-when t3"><Ago at={seconds(d.updated_at)} /></span>
		<button type="button" className="btn quiet icon" aria-label={`Remove ${d.document_id}`} title="Remove" onClick={remove}><Trash2 size={14} aria-hidden /></button>
		{d.error && <span className="kb-error wrong">{d.error}</span>}
	</li>;
}

function Documents({collection, at}: {collection: string; at: string}) {
	const list = useDocuments(collection);
	const [removing, ask] = useState('');
	const all = list.data?.pages.flatMap((p) => p.documents) ?? [];
	if (list.error)
		return <ProblemNote what="The documents could not be read" error={list.error} retry={() => void list.refetch()} />;
	if (list.isPending)
		return <Bones rows={4} />;
	if (!all.length)
		return <div className="card"><Empty title="No document"><p>Add files, a page or text.</p></Empty></div>;
	return <><ol className="card kb-documents" aria-label="Documents"><li className="kb-row kb-head f12 t2" aria-hidden><span>Document</span><span className="kb-state">State</span><span className="kb-size">Size</span><span className="kb-count">Passages</span><span className="kb-when">Changed</span><span /></li>
		{all.map((d) => <Row key={d.document_id} d={d} at={d.document_id === at} remove={() => ask(d.document_id)} />)}</ol>
	{list.hasNextPage && <button type="button" className="btn" disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>{list.isFetchingNextPage ? 'Reading' : 'More documents'}</button>}
	{removing && <RemoveDialog what={removing} words="Its passages, vectors and relations go, too. Answers that cited it keep their quotations." act={() => removeDocument(collection, removing)} close={() => ask('')} />}</>;
}

function Relations({collection}: {collection: string}) {
	const [entity, set] = useFilter('entity');
	const [text, type] = useState(entity);
	const {data, error} = useRelations(collection, entity);
	useEffect(() => type(entity), [entity]);
	return <section className="kb-find" aria-label="Relations"><form className="kb-search" onSubmit={(e) => { e.preventDefault(); set(text.trim()); }}>
		<label className="kb-words grow"><Search size={14} aria-hidden /><span className="unseen">Entity</span><input className="input" value={text} placeholder="An entity, such as a name" onChange={(e) => type(e.target.value)} /></label>
		<button type="submit" className="btn main-act" disabled={!text.trim()}>Show relations</button></form>
	{error ? <ProblemNote what="The relations could not be read" error={error} /> : data ? data.relations.length === 0 ? <p className="t2" role="status">No relation of “{entity}” is known.</p>
		: <ul className="card" aria-label="Relations of the entity">{data.relations.map((r, i) => <li key={i} className="item kb-relation"><span className="grow"><strong>{r.from}</strong> {r.kind} <strong>{r.to}</strong></span>
			{r.document_id && <A className="link f12" to={`knowledge/${encodeURIComponent(collection)}${keep({document: r.document_id})}`}>{r.document_id}</A>}<span className="f12 t3 cut">{r.by === 'api' ? 'put by API' : r.by}</span></li>)}</ul> : null}
	</section>;
}

function Policy({facts}: {facts: Facts}) {
	const [mode, setMode] = useState(facts.policy.mode ?? 'hybrid');
	const [k, setK] = useState(String(facts.policy.top_k ?? 5));
	const [deny, setDeny] = useState(facts.policy.deny_labels ?? '');
	const [cite, setCite] = useState(facts.policy.citation_required === true);
	const [expand, setExpand] = useState(facts.policy.expand === true);
	const [removing, ask] = useState(false);
	const save = async (e: FormEvent) => {
		e.preventDefault();
		try {
			await setPolicy(facts.collection, {mode, top_k: Number(k), deny_labels: deny.trim(), citation_required: cite, expand});
			await renew();
			toast('ok', 'Kept');
		} catch (x) {
			complain('It was not kept', x);
		}
	};
	return <form className="kb-policy" onSubmit={(e) => void save(e)} aria-label="How agents search it">
		<p className="t2">For agents that use this collection, where they do not say it themselves. Vectors are of <span className="mono">{facts.embedding}</span>.</p>
		<div className="field"><label htmlFor="kb-mode">Search by</label><select id="kb-mode" className="select" value={mode} onChange={(e) => setMode(e.target.value)}><option value="hybrid">Words and vectors</option><option value="keyword">Words</option><option value="vector">Vectors</option></select></div>
		<div className="field"><label htmlFor="kb-k">Passages at most</label><input id="kb-k" className="input" type="number" min={1} max={50} value={k} onChange={(e) => setK(e.target.value)} /></div>
		<div className="field"><label htmlFor="kb-deny">Labels that are left out</label><input id="kb-deny" className="input" value={deny} onChange={(e) => setDeny(e.target.value)} /></div>
		<label className="kb-check"><input type="checkbox" checked={cite} onChange={(e) => setCite(e.target.checked)} />An answer has to name its sources</label>
		<label className="kb-check"><input type="checkbox" checked={expand} onChange={(e) => setExpand(e.target.checked)} />Follow relations</label>
		<div className="row"><button type="submit" className="btn main-act">Save</button><span className="grow" /><button type="button" className="btn danger" onClick={() => ask(true)}>Remove collection</button></div>
		{removing && <RemoveDialog what={facts.collection} words={`${facts.documents} documents with their passages, vectors and relations. This cannot be undone.`} close={() => ask(false)}
			act={async () => { await removeCollection(facts.collection); go('knowledge'); }} />}
	</form>;
}

export function Collection({name}: {name: string}) {
	const {data, error} = useCollections();
	const [tab, set] = useFilter('tab');
	const [document_] = useFilter('document');
	const [adding, add] = useState(false);
	const facts = data?.collections.find((c) => c.collection === name);
	useTitle(`${name}, knowledge`);
	useShortcuts([{keys: '/', does: 'Search', run: () => document.querySelector<HTMLInputElement>('.kb-words input')?.focus()},
		...(document_ ? [{keys: 'Escape', does: 'Close the document', run: () => go(`knowledge/${encodeURIComponent(name)}${keep()}`)}] : [])]);
	const now = ['relations', 'policy'].includes(tab) ? tab : '';
	return <div className="kb" data-open={document_ ? '' : undefined}>
		<div className="kb-main"><Top title={<><A className="t3 kb-crumb" to="knowledge">Knowledge / </A>{name}</>}><button type="button" className="btn" onClick={() => add(true)}><Plus size={14} aria-hidden />Add</button></Top>
			<Tabs label="Collection" value={now} options={[['', 'Search and documents'], ['relations', 'Relations'], ['policy', 'How it is searched']]} set={set} />
			<div className="scroll"><div className="page kb-page">
				{error ? <ProblemNote what="The collection could not be read" error={error} /> : null}
				{data && <Progress index={data.index} collections={facts ? [facts] : []} />}
				{data && !facts ? <div className="card"><Empty title="There is no such collection"><A className="btn" to="knowledge">All collections</A></Empty></div>
					: now === 'relations' ? <Relations collection={name} /> : now === 'policy' ? facts ? <Policy key={JSON.stringify(facts.policy)} facts={facts} /> : <Bones rows={4} />
						: <><Find collection={name} /><Documents collection={name} at={document_} /></>}
			</div></div></div>
		{document_ && <Reader key={document_} collection={name} id={document_} />}
		{adding && <Add collection={name} close={() => add(false)} done={() => add(false)} />}
	</div>;
}
