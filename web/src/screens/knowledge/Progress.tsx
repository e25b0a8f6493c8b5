// Progress.tsx - how far the index is.
import {LoaderCircle} from 'lucide-react';
import {type Collection, type Index, pendingOf} from './data';

export function Progress({index, collections}: {index: Index; collections: Collection[]}) {
	const waiting = pendingOf(collections);
	if (!waiting)
		return index.was_damaged ? <p className="kb-note f12" role="status">The index was found damaged when the server started, and has been made anew from the documents.</p> : null;
	const known = index.document_id !== null && index.passages_total > 0;
	return <div className="kb-progress" role="status"><span className="state" data-kind="running"><LoaderCircle size={14} aria-hidden className="spin" />{waiting === 1 ? 'One document is being indexed' : `${waiting} documents are being indexed`}</span>
		{index.document_id && <span className="mono f12 t2 cut">{index.document_id}</span>}
		{known && <><progress max={index.passages_total} value={index.passages_done} aria-label="Passages that have a vector" /><span className="num f12 t2">{index.passages_done} of {index.passages_total} passages</span></>}
	</div>;
}
