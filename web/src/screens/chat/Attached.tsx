// Attached.tsx - what goes with the next message: small, and whole in a dialog.
import {FileText, X} from 'lucide-react';
import {useState} from 'react';
import {Dialog} from '../../components/ui';
import {bytes, plain} from '../../lib/format';

/** Text goes into the message, the rest beside it. */
export interface Attachment { name: string; size: number; text: string; type?: string; data?: string }

const SHOWN = 20000; // characters of a text in its preview
const isImage = (f: Attachment) => !!f.type?.startsWith('image/');
const urlOf = (f: Attachment) => `data:${f.type};base64,${f.data}`;

function Whole({file, close}: {file: Attachment; close: () => void}) {
	return <Dialog title={plain(file.name)} close={close} className="attached-whole">{isImage(file) ? <img src={urlOf(file)} alt={file.name} />
		: <pre className="exact" tabIndex={0}>{plain(file.text.slice(0, SHOWN))}</pre>}
	<p className="f12 t3">{bytes(file.size)}{file.text.length > SHOWN ? ', its beginning. All of it goes with the message.' : isImage(file) ? ', goes beside the message' : ', its text goes into the message'}</p></Dialog>;
}

export function Attached({files, remove}: {files: Attachment[]; remove: (i: number) => void}) {
	const [open, set] = useState<Attachment | null>(null);
	return <><ul className="attached" aria-label="Attached">{files.map((f, i) => {
		const look = isImage(f) ? <img src={urlOf(f)} alt="" /> : <FileText size={16} aria-hidden />;
		const words = <span className="attached-words"><span className="cut strong">{f.name}</span><span className="cut f11 t3">{f.data ? isImage(f) ? '' : 'PDF · ' : 'text · '}{bytes(f.size)}</span></span>;
		return <li key={i}>{f.data && !isImage(f) ? <span className="attached-file">{look}{words}</span>
			: <button type="button" className="attached-file" aria-label={`Preview of ${f.name}`} title="Preview" onClick={() => set(f)}>{look}{words}</button>}
			<button type="button" className="attached-x" aria-label={`Remove ${f.name}`} title="Remove" onClick={() => remove(i)}><X size={13} aria-hidden /></button></li>;
	})}</ul>{open && <Whole file={open} close={() => set(null)} />}</>;
}
