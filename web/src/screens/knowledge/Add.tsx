// Add.tsx - documents in: files, a page of the web, or text.
import {Upload} from 'lucide-react';
import {type DragEvent, type FormEvent, useRef, useState} from 'react';
import {Dialog, ProblemNote, Segment} from '../../components/ui';
import {Problem} from '../../lib/api';
import {bytes} from '../../lib/format';
import {say} from '../../lib/say';
import {type Draft, base64, nameOf, put, renew} from './data';

interface Sent { name: string; size?: number; words: string; bad?: boolean }
type Way = 'files' | 'page' | 'text';

async function draftOf(file: File): Promise<Draft> {
	const raw = new Uint8Array(await file.arrayBuffer());
	const name = nameOf(file.webkitRelativePath || file.name);
	return {document_id: name, title: file.name, source: file.webkitRelativePath || file.name, content: base64(raw)};
}

export function Add({collection, close, done}: {collection: string; close: () => void; done: (collection: string) => void}) {
	const [name, setName] = useState(collection);
	const [way, choose] = useState<Way>('files');
	const [text, type] = useState('');
	const [title, setTitle] = useState('');
	const [files, setFiles] = useState<File[]>([]);
	const [labels, setLabels] = useState('');
	const [sent, tell] = useState<Sent[]>([]);
	const [busy, wait] = useState(false);
	const [error, fail] = useState<unknown>(null);
	const input = useRef<HTMLInputElement>(null);
	const one = async (draft: Draft | Promise<Draft>, what: string, size?: number): Promise<boolean> => {
		try {
			const d = await draft;
			const a = await put(name.trim(), labels.trim() ? {...d, labels: labels.trim()} : d);
			tell((all) => [...all, {name: what, size, words: a.change === 'unchanged' ? 'as before' : a.state === 'ready' ? `ready, ${a.passages_written} passages written, ${a.passages_kept} kept` : 'kept, being indexed'}]);
			return true;
		} catch (e) {
			tell((all) => [...all, {name: what, size, words: e instanceof Problem ? `${e.message} (${e.code})` : String(e), bad: true}]);
			return false;
		}
	};
	const send = async (e: FormEvent) => {
		e.preventDefault();
		wait(true);
		fail(null);
		tell([]);
		let good = 0, all = 0;
		if (way === 'files')
			for (const f of files) {
				all++;
				good += await one(draftOf(f), f.name, f.size) ? 1 : 0;
			}
		else {
			all = 1;
			good = await one(way === 'page' ? {url: text.trim()} : {document_id: nameOf(title.trim() || 'note'), title: title.trim() || 'note', text}, way === 'page' ? text.trim() : title.trim() || 'note') ? 1 : 0;
		}
		await renew();
		wait(false);
		say(`${good} of ${all} documents are kept`);
		if (good === all)
			done(name.trim());
	};
	const drop = (e: DragEvent) => {
		e.preventDefault();
		setFiles([...e.dataTransfer.files]);
	};
	const ready = name.trim() !== '' && (way === 'files' ? files.length > 0 : text.trim() !== '');
	return <Dialog title={collection ? `Add to ${collection}` : 'Add documents'} close={close}><form className="kb-add" onSubmit={(e) => void send(e)}>
		{!collection && <div className="field"><label htmlFor="kb-name">Collection</label><input id="kb-name" className="input" value={name} placeholder="handbook" onChange={(e) => setName(nameOf(e.target.value))} /></div>}
		<Segment label="What is added" value={way} options={[['files', 'Files'], ['page', 'A page'], ['text', 'Text']]} set={(v) => { choose(v); type(''); }} />
		{way === 'files' && <div className="kb-drop" onDragOver={(e) => e.preventDefault()} onDrop={drop}>
			<input ref={input} className="unseen" id="kb-files" type="file" multiple tabIndex={-1} aria-label="Files" onChange={(e) => setFiles([...(e.target.files ?? [])])} />
			<button type="button" className="btn" onClick={() => input.current?.click()}><Upload size={14} aria-hidden />Choose files</button>
			<span className="f12 t2">{files.length ? files.map((f) => f.name).slice(0, 5).join(', ') + (files.length > 5 ? ` and ${files.length - 5} more` : '') : 'or drop them here: text, Markdown, HTML, code, PDF'}</span></div>}
		{way === 'page' && <div className="field"><label htmlFor="kb-url">Address</label><input id="kb-url" className="input" type="url" value={text} placeholder="https://example.org/rules.html" onChange={(e) => type(e.target.value)} /></div>}
		{way === 'text' && <><div className="field"><label htmlFor="kb-title">Title</label><input id="kb-title" className="input" value={title} onChange={(e) => setTitle(e.target.value)} /></div>
			<div className="field"><label htmlFor="kb-text">Text</label><textarea id="kb-text" className="area" rows={8} value={text} onChange={(e) => type(e.target.value)} /></div></>}
		<div className="field"><label htmlFor="kb-labels">Labels</label><input id="kb-labels" className="input" value={labels} onChange={(e) => setLabels(e.target.value)} aria-describedby="kb-labels-hint" />
			<span id="kb-labels-hint" className="f12 t3">Words. A search can leave out documents with a label.</span></div>
		{sent.length > 0 && <ul className="card kb-sent" aria-label="What became of them">{sent.map((s, i) => <li key={i} className="item"><span className="grow cut">{s.name}</span>{s.size !== undefined && <span className="f12 t3 num">{bytes(s.size)}</span>}<span className={s.bad ? 'wrong' : 'f12 t2'}>{s.words}</span></li>)}</ul>}
		{error !== null && <ProblemNote what="It was not kept" error={error} />}
		<div className="row"><button type="submit" className="btn main-act" disabled={!ready || busy}>{busy ? 'Adding' : 'Add'}</button></div>
	</form></Dialog>;
}
