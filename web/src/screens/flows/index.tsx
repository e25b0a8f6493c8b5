// Flows: the workflows of this server, a new one, and each on its canvas.
import {Plus, Workflow} from 'lucide-react';
import {lazy, Suspense, useState} from 'react';
import {Find} from '../../components/Split';
import {A, Bones, Dialog, Empty, ProblemNote, Top} from '../../components/ui';
import {plain} from '../../lib/format';
import {useTitle} from '../../lib/hooks';
import {useShortcuts} from '../../lib/keys';
import {go, useFilter} from '../../lib/nav';
import {patiently} from '../../lib/patient';
import {client} from '../../lib/query';
import {complain, say} from '../../lib/say';
import {firstOf, keep, useFlows} from './data';
import './flows.css';
import '../run/run.css';

const Builder = lazy(() => patiently(() => import('./Builder')));
const SOURCES: Record<string, string> = {'built in': 'part of the program', builtin: 'part of the program', file: 'a file', directory: 'a file', database: 'the database', url: 'a registry', registry: 'a registry'};

/** It is kept at once, and runs as it is. */
function New({taken, close}: {taken: Set<string>; close: () => void}) {
	const [name, set] = useState('');
	const [busy, setBusy] = useState(false);
	const stem = name.trim().toLowerCase().replace(/[^a-z0-9]+/g, '_').replace(/^_+|_+$/g, '').slice(0, 48) || 'workflow';
	const make = async () => {
		let id = stem;
		for (let i = 2; taken.has(id); i++)
			id = `${stem}_${i}`;
		setBusy(true);
		try {
			await keep(firstOf(id, name.trim() || 'New workflow'));
			for (const n of ['workflows', 'agents'])
				void client.invalidateQueries({queryKey: [n]});
			say('The workflow was made');
			go(`flows/${id}`);
		} catch (e) {
			complain('It was not made', e);
			setBusy(false);
		}
	};
	return <Dialog title="New workflow" close={close}><form className="field" onSubmit={(e) => { e.preventDefault(); void make(); }}><label htmlFor="flow-new">Name</label>
		<input id="flow-new" className="input" data-first maxLength={120} placeholder="New workflow" value={name} onChange={(e) => set(e.target.value)} /><p className="f12 t3">It begins with three nodes that run as they are.</p>
		<div className="row"><button type="submit" className="btn main-act" disabled={busy}>{busy ? 'Making it' : 'Make it'}</button></div></form></Dialog>;
}

function List() {
	const {data, error, isPending, refetch} = useFlows();
	const [q, setQ] = useFilter('q');
	const [making, setMaking] = useState(false);
	useTitle('Flows');
	useShortcuts([{keys: 'N', does: 'New workflow', run: () => setMaking(true)}]);
	const all = data?.workflows ?? [], shown = all.filter((f) => `${f.workflow_id} ${f.title} ${f.description ?? ''}`.toLowerCase().includes(q.toLowerCase()));
	return <><Top title="Flows" about="work in steps, as a graph"><button type="button" className="btn" onClick={() => setMaking(true)}><Plus size={14} aria-hidden />New workflow</button></Top>
		<div className="scroll"><div className="page flow-page">
			{isPending ? <Bones rows={4} /> : error ? <ProblemNote what="The workflows could not be read" error={error} retry={() => void refetch()} />
				: all.length === 0 ? <div className="card"><Empty title="No workflow yet"><p>A workflow joins models, agents, tools, forms and waits into one run: each step is kept, and goes on after a restart.</p><button type="button" className="btn main-act" onClick={() => setMaking(true)}><Plus size={14} aria-hidden />New workflow</button></Empty></div>
					: <>{all.length > 5 && <Find label="Find a workflow" value={q} set={setQ} />}{shown.length === 0 ? <Empty title="No workflow fits" /> : <ul className="card" aria-label="Workflows">{shown.map((f) => <li key={f.workflow_id}><A className="item" to={`flows/${encodeURIComponent(f.workflow_id)}`}><Workflow size={16} aria-hidden className="t3" />
						<span className="grow"><span className="strong cut">{plain(f.title || f.workflow_id)}</span><span className="f12 t3 cut">{f.description ? plain(f.description) : f.workflow_id}</span></span><span className="f12 t3 flow-wide">{f.nodes} nodes</span><span className="f12 t3">{f.version ? `v${f.version}` : SOURCES[f.source] ?? f.source}</span></A></li>)}</ul>}</>}
		</div></div>{making && <New taken={new Set(all.map((f) => f.workflow_id))} close={() => setMaking(false)} />}</>;
}

export default function Flows({params}: {params: Record<string, string>}) {
	return params.flow ? <Suspense fallback={<div className="page"><Bones rows={5} /></div>}><Builder key={params.flow} id={params.flow} /></Suspense> : <List />;
}
