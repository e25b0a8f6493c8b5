// Grants.tsx - permissions that a person gave for more than one call.
import {useQuery} from '@tanstack/react-query';
import {KeyRound} from 'lucide-react';
import {useState} from 'react';
import {askJson, command} from '../lib/api';
import {client} from '../lib/query';
import {complain, toast} from '../lib/say';
import {A, Ago, ProblemNote} from './ui';
import '../styles/grants.css';

interface Grant { grant_id: string; scope: string; agent_id?: string; conversation_id?: string; tool_id: string; arguments: string; session_id: string; granted_at: number; granted_by?: {id?: string} }

/** Permissions that hold for more than one call; each can be taken back. `of`: those of one conversation alone. */
export function Grants({titles, of = ''}: {titles: Map<string, string | null>; of?: string}) {
	const {data, error, refetch} = useQuery({queryKey: ['actions', 'grants', of], queryFn: () => askJson<{grants: Grant[]; next_cursor: string | null}>(`api/grants?limit=50${of ? `&conversation_id=${encodeURIComponent(of)}` : ''}`)});
	const [busy, setBusy] = useState('');
	const revoke = async (g: Grant) => {
		setBusy(g.grant_id);
		try {
			await command('revoke_grant', {grant_id: g.grant_id});
			toast('ok', 'Taken back', `${g.tool_id} is asked about again.`);
		} catch (e) {
			complain('It was not taken back', e);
		}
		setBusy('');
		void client.invalidateQueries({queryKey: ['actions']});
	};
	if (error)
		return <ProblemNote what="The permissions could not be read" error={error} retry={() => refetch()} />;
	if (!data?.grants.length)
		return null;
	return <section className="grants"><h2 className="part-head">Permissions that you gave</h2><ul className="card">{data.grants.map((g) => <li key={g.grant_id} className="item grant">
		<KeyRound size={15} aria-hidden className="t3" /><span className="grow"><span className="mono cut">{g.tool_id}</span>
			<span className="f12 t2">{g.scope === 'agent' ? `Always, for ${g.agent_id}` : <>In <A className="link" to={`c/${g.session_id}`}>{titles.get(g.session_id) || 'a conversation'}</A></>}{g.arguments === 'same' ? ', with these very arguments' : ''}, since <Ago at={g.granted_at} /></span></span>
		<button type="button" className="btn" disabled={busy === g.grant_id} aria-label={`Take back: ${g.tool_id}`} onClick={() => revoke(g)}>{busy === g.grant_id ? 'Taking back' : 'Take back'}</button></li>)}</ul>
		{data.next_cursor && <p className="f12 t3">There are more: <code>uar grants</code> lists them all.</p>}</section>;
}
