// Keys.tsx - the keys that were given to people and programs: who they are for, what they may do, when they were used.
import {useInfiniteQuery} from '@tanstack/react-query';
import {KeyRound, Plus} from 'lucide-react';
import {useState} from 'react';
import {Part} from '../../components/Split';
import {Ago, Bones, CopyButton, Dialog, Empty, ProblemNote} from '../../components/ui';
import {Problem, ask, askJson} from '../../lib/api';
import {exact, seconds} from '../../lib/format';
import {client} from '../../lib/query';
import {complain, say, toast} from '../../lib/say';

interface Key { credential_id: string; label: string; tenant: string; workspace: string; user: string; scopes: string[]; status: string; created_at: string; expires_at: string | null; last_used_at: string | null; revoked_at?: string }

const SCOPES: [string, string][] = [['read', 'look at what there is'], ['run', 'start and cancel runs, call tools'], ['answer', 'answer what runs ask'], ['define', 'change agents, skills, servers, documents'],
	['metrics', 'read the counters of all tenants'], ['admin', 'this page, keys of every tenant included']];
const TERMS: [string, string][] = [['2592000', '30 days'], ['7776000', '90 days'], ['31536000', '1 year'], ['', 'No end']];
const PAGE = 50;

function renew(): void {
	void client.invalidateQueries({queryKey: ['admin', 'credentials']});
}

/** The secret is in this answer and nowhere else. */
function Made({token, close}: {token: string; close: () => void}) {
	return <Dialog title="The key is made" close={close}><p>It is shown this once: the server keeps its digest only. Give it to whoever shall use it, over a way that others cannot read.</p>
		<div className="row"><input className="input mono grow" readOnly aria-label="Token" value={token} onFocus={(e) => e.target.select()} /><CopyButton text={token} small={false} quiet={false} /></div>
		<div><button type="button" className="btn main-act" onClick={close}>I have it</button></div></Dialog>;
}

function New({close, made}: {close: () => void; made: (token: string) => void}) {
	const [user, setUser] = useState('');
	const [tenant, setTenant] = useState('');
	const [label, setLabel] = useState('');
	const [scopes, setScopes] = useState(['read', 'run', 'answer']);
	const [term, setTerm] = useState(TERMS[0][0]);
	const [busy, setBusy] = useState(false);
	const [error, setError] = useState<unknown>(null);
	const send = async () => {
		setBusy(true);
		setError(null);
		try {
			const key = await askJson<Key & {token: string}>('api/admin/credentials', {body: {user: user.trim(), ...(tenant.trim() ? {tenant: tenant.trim()} : {}), ...(label.trim() ? {label: label.trim()} : {}), scopes, ...(term ? {expires_seconds: Number(term)} : {})}});
			renew();
			made(key.token);
		} catch (e) {
			setError(e);
			setBusy(false);
		}
	};
	return <Dialog title="A new key" close={close}><form className="admin-form" onSubmit={(e) => { e.preventDefault(); void send(); }}>
		<div className="field"><label htmlFor="key-user">User</label><input id="key-user" className="input" required maxLength={128} autoFocus value={user} onChange={(e) => setUser(e.target.value)} /></div>
		<div className="field"><label htmlFor="key-tenant">Tenant (left out: the server's own)</label><input id="key-tenant" className="input" maxLength={128} value={tenant} onChange={(e) => setTenant(e.target.value)} /></div>
		<div className="field"><label htmlFor="key-label">What it is for</label><input id="key-label" className="input" maxLength={128} value={label} onChange={(e) => setLabel(e.target.value)} /></div>
		<fieldset className="field"><legend>What it may do</legend>{SCOPES.map(([scope, words]) => <label key={scope} className="admin-check"><input type="checkbox" checked={scopes.includes(scope)}
			onChange={(e) => setScopes(e.target.checked ? [...scopes, scope] : scopes.filter((s) => s !== scope))} /><span className="mono">{scope}</span><span className="f12 t2">{words}</span></label>)}</fieldset>
		<div className="field"><label htmlFor="key-term">How long it holds</label><select id="key-term" className="select" value={term} onChange={(e) => setTerm(e.target.value)}>{TERMS.map(([v, words]) => <option key={v} value={v}>{words}</option>)}</select></div>
		{error !== null && <ProblemNote what="No key was made" error={error} />}
		<div className="row"><button type="submit" className="btn main-act" disabled={busy || !user.trim() || !scopes.length}>{busy ? 'Making it' : 'Make the key'}</button><button type="button" className="btn" onClick={close}>Cancel</button></div></form></Dialog>;
}

/** It cannot be undone, so it is asked. */
function Revoke({k, close}: {k: Key; close: () => void}) {
	const [busy, setBusy] = useState(false);
	const go = async () => {
		setBusy(true);
		try {
			await ask(`api/admin/credentials/${encodeURIComponent(k.credential_id)}`, {method: 'DELETE'});
			toast('ok', 'Revoked', 'Whatever it had opened has ended.');
			renew();
			close();
		} catch (e) {
			complain('It was not revoked', e);
			setBusy(false);
		}
	};
	return <Dialog title={`Revoke the key of ${k.user}?`} close={close}><p>It admits nobody from now on, and the streams that it has opened end. Runs that it has started go on. A revoked key cannot be used again.</p>
		<div className="row"><button type="button" className="btn danger" disabled={busy} onClick={() => void go()}>{busy ? 'Revoking' : 'Revoke'}</button><button type="button" className="btn" onClick={close}>Keep it</button></div></Dialog>;
}

/** What holds now; the time of day decides about the end. */
function holds(k: Key): [string, string] {
	if (k.status === 'revoked')
		return ['err', 'revoked'];
	return k.expires_at && seconds(k.expires_at) * 1000 < Date.now() ? ['ask', 'expired'] : ['ok', k.status === 'active' ? 'valid' : k.status];
}

function Row({k, revoke}: {k: Key; revoke: () => void}) {
	const [look, word] = holds(k), who = `${k.tenant}/${k.user}`;
	return <li className="item admin-key"><KeyRound size={16} aria-hidden className="t3" />
		<span className="grow"><span className="row wrap"><span className="strong">{who}</span>{k.label && <span className="t2 cut">{k.label}</span>}<span className={`badge ${look}`}>{word}</span></span>
			<span className="block f11 t3"><span className="mono">{k.credential_id}</span> · {k.scopes.join(', ')}</span>
			<span className="block f11 t3">made <Ago at={seconds(k.created_at)} /> · {k.last_used_at ? <span title="The server keeps the day">last used <Ago at={seconds(k.last_used_at)} /></span> : 'not used yet'}{k.expires_at && ` · until ${exact(seconds(k.expires_at))}`}</span></span>
		{k.status !== 'revoked' && <button type="button" className="btn danger" aria-label={`Revoke the key of ${who}`} onClick={revoke}>Revoke…</button>}</li>;
}

const useKeys = () => useInfiniteQuery({queryKey: ['admin', 'credentials'], initialPageParam: '', getNextPageParam: (last: {next_cursor?: string | null}) => last.next_cursor ?? undefined,
	queryFn: ({pageParam}) => askJson<{credentials: Key[]; next_cursor?: string | null}>(`api/admin/credentials?limit=${PAGE}${pageParam ? `&cursor=${encodeURIComponent(pageParam)}` : ''}`)});

/** Whether this server has one token only. */
export function useOneToken(): boolean {
	const {error} = useKeys();
	return error instanceof Problem && error.status === 404;
}

export function Keys() {
	const [making, setMaking] = useState(false);
	const [token, setToken] = useState('');
	const [leaving, setLeaving] = useState<Key | null>(null);
	const list = useKeys(), one = useOneToken();
	const keys = list.data?.pages.flatMap((p) => p.credentials) ?? [];
	if (one)
		return null;
	return <Part title="Keys" about="for other people and programs; each sees only what is its own" acts={<button type="button" className="btn" onClick={() => setMaking(true)}><Plus size={14} aria-hidden />New key</button>}>
		{list.isPending ? <Bones rows={3} /> : list.error ? <ProblemNote what="The keys could not be read" error={list.error} retry={() => void list.refetch()} />
			: keys.length ? <ul className="card" aria-label="Keys">{keys.map((k) => <Row key={k.credential_id} k={k} revoke={() => setLeaving(k)} />)}</ul>
				: <div className="card"><Empty title="No key was given out"><p>The token of the server is the only one there is.</p></Empty></div>}
		{list.hasNextPage && <p><button type="button" className="btn" disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>Older keys</button></p>}
		{making && <New close={() => setMaking(false)} made={(t) => { setMaking(false); setToken(t); say('The key was made'); }} />}
		{token && <Made token={token} close={() => setToken('')} />}
		{leaving && <Revoke k={leaving} close={() => setLeaving(null)} />}
	</Part>;
}
