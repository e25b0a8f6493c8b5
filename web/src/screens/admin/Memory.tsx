// Memory.tsx - what agents keep with memory.put, by scope; each of it can be forgotten.
import {useQuery} from '@tanstack/react-query';
import {Trash2} from 'lucide-react';
import {useMemo, useState} from 'react';
import {Find, Part} from '../../components/Split';
import {Ago, Bones, Dialog, Empty, ProblemNote} from '../../components/ui';
import {ask, askJson} from '../../lib/api';
import {plain, seconds} from '../../lib/format';
import {useFilter} from '../../lib/nav';
import {client} from '../../lib/query';
import {complain, toast} from '../../lib/say';

interface Kept { scope: string; scope_id: string; key: string; value: string; source: string; updated_at: string; expires_at?: string }

const WORDS: Record<string, string> = {user: 'For you, by every agent', agent: 'Of one agent', session: 'Of one conversation', thread: 'Of one thread'};

export function Memory() {
	const {data, error, isPending, refetch} = useQuery({queryKey: ['memory'], queryFn: () => askJson<{memories: Kept[]}>('api/memory')});
	const [q, setQ] = useFilter('q');
	const [going, setGoing] = useState<Kept | null>(null);
	const [busy, setBusy] = useState(false);
	const groups = useMemo(() => {
		const by = new Map<string, Kept[]>();
		for (const m of data?.memories ?? [])
			if (`${m.key} ${m.value} ${m.scope_id}`.toLowerCase().includes(q.toLowerCase()))
				by.set(m.scope, [...by.get(m.scope) ?? [], m]);
		return [...by];
	}, [data, q]);
	if (isPending)
		return <Bones rows={4} />;
	if (error)
		return <ProblemNote what="The memory could not be read" error={error} retry={() => void refetch()} />;
	const forget = async (m: Kept) => {
		setBusy(true);
		try {
			await ask(`api/memory?${new URLSearchParams({scope: m.scope, scope_id: m.scope_id, key: m.key})}`, {method: 'DELETE'});
			toast('ok', 'Forgotten');
			setGoing(null);
		} catch (e) {
			complain('It was not forgotten', e);
		}
		setBusy(false);
		void client.invalidateQueries({queryKey: ['memory']});
	};
	return <>
		<div className="row wrap"><Find label="Find in the memory" value={q} set={setQ} /><span className="t3 f12">{data.memories.length} kept</span></div>
		{groups.length === 0 && <div className="card"><Empty title={data.memories.length ? 'Nothing fits' : 'Nothing is kept'}><p>Agents keep things here with the tool <code>memory.put</code>.</p></Empty></div>}
		{groups.map(([scope, list]) => <Part key={scope} title={WORDS[scope] ?? scope} about={String(list.length)}><ul className="card" aria-label={WORDS[scope] ?? scope}>{list.map((m) => <li key={`${m.scope_id} ${m.key}`} className="item memory">
			<span className="grow"><span className="row"><code className="strong">{plain(m.key)}</code>{scope !== 'user' && m.scope_id && <span className="f11 t3 mono cut">{plain(m.scope_id)}</span>}</span><span className="t2 memory-value">{plain(m.value)}</span></span>
			<span className="f12 t3">{m.expires_at ? <>until <Ago at={seconds(m.expires_at)} /></> : <Ago at={seconds(m.updated_at)} />}</span>
			<button type="button" className="btn quiet icon" aria-label={`Forget ${m.key}`} title="Forget" onClick={() => setGoing(m)}><Trash2 size={14} aria-hidden /></button></li>)}</ul></Part>)}
		{going && <Dialog title={`Forget ${going.key}`} close={() => setGoing(null)}><p>Agents no longer get it. Runs that have read it keep what they said.</p>
			<div className="row"><button type="button" className="btn danger" disabled={busy} onClick={() => void forget(going)}>{busy ? 'Forgetting' : 'Forget it'}</button><button type="button" className="btn" onClick={() => setGoing(null)}>Keep it</button></div></Dialog>}
	</>;
}
