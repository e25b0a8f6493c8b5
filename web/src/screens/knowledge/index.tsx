// Knowledge: collections of documents that agents can search.
import {ChevronRight, Plus} from 'lucide-react';
import {useState} from 'react';
import {A, Bones, Empty, Menu, MenuItem, ProblemNote, Top} from '../../components/ui';
import {count} from '../../lib/format';
import {useTitle} from '../../lib/hooks';
import {go} from '../../lib/nav';
import {complain, toast} from '../../lib/say';
import {Add} from './Add';
import {Collection} from './Collection';
import {checkIndex, rebuildIndex, renew, useCollections} from './data';
import {Progress} from './Progress';
import './knowledge.css';

async function check(): Promise<void> {
	try {
		const a = await checkIndex();
		if (a.ok)
			toast('ok', 'The index is what the documents make it', `${count(a.documents)} documents, ${count(a.passages)} passages`);
		else
			toast('err', 'The index is damaged. Make it anew.', a.damage);
	} catch (e) {
		complain('The index could not be checked', e);
	}
}

async function rebuild(): Promise<void> {
	try {
		await rebuildIndex();
		await renew();
		toast('ok', 'The index is made anew from the documents');
	} catch (e) {
		complain('The index could not be made anew', e);
	}
}

function Collections() {
	useTitle('Knowledge');
	const {data, error, isPending, refetch} = useCollections();
	const [adding, add] = useState(false);
	return <><Top title="Knowledge"><Menu className="btn" label="The index" button="Index"><MenuItem onClick={() => void check()}>Check the index</MenuItem><MenuItem onClick={() => void rebuild()}>Make the index anew</MenuItem></Menu>
		<button type="button" className="btn main-act" onClick={() => add(true)}><Plus size={14} aria-hidden />Add documents</button></Top>
	<div className="scroll"><div className="page kb-page">
		{error ? <ProblemNote what="Knowledge could not be read" error={error} retry={() => void refetch()} /> : isPending ? <Bones rows={3} /> : <>
			<Progress index={data.index} collections={data.collections} />
			{data.collections.length === 0 ? <div className="card"><Empty title="No collection yet"><p>Documents that agents can search are kept in collections. Add some here, or with <code>uar kb add NAME PATH</code>.</p></Empty></div>
				: <div className="card" role="group" aria-label="Collections">{data.collections.map((c) => <A key={c.collection} className="item" data-collection={c.collection} to={`knowledge/${encodeURIComponent(c.collection)}`}>
					<span className="grow"><strong className="cut kb-block">{c.collection}</strong><span className="f12 t3 cut kb-block">{count(c.documents)} {c.documents === 1 ? 'document' : 'documents'}, {count(c.passages)} {c.passages === 1 ? 'passage' : 'passages'} · vectors of {c.embedding}</span></span>
					{c.pending > 0 && <span className="badge">{c.pending} being indexed</span>}{c.failed > 0 && <span className="badge err">{c.failed} failed</span>}<ChevronRight size={14} className="t3" aria-hidden /></A>)}</div>}</>}
	</div></div>
	{adding && <Add collection="" close={() => add(false)} done={(name) => { add(false); go(`knowledge/${encodeURIComponent(name)}`); }} />}</>;
}

export default function Knowledge({params}: {params: Record<string, string>}) {
	return params.source ? <Collection key={params.source} name={params.source} /> : <Collections />;
}
