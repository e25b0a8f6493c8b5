// Admin: what the owner of a server looks at. Everything is read from it; nothing is guessed.
import {useMutation, useQuery} from '@tanstack/react-query';
import {Link2, RefreshCw} from 'lucide-react';
import {useMemo} from 'react';
import {Health} from '../../components/Health';
import {Facts, Find, Part, Pick} from '../../components/Split';
import {Ago, Bones, CopyButton, Id, ProblemNote, Tabs, Top} from '../../components/ui';
import {askJson} from '../../lib/api';
import {at} from '../../lib/base';
import {bytes, count} from '../../lib/format';
import {useTitle} from '../../lib/hooks';
import {useFilter} from '../../lib/nav';
import {useVersion} from '../../lib/query';
import {say} from '../../lib/say';
import './admin.css';
import {Log} from './Log';
import {Keys, useOneToken} from './Keys';
import {Memory} from './Memory';
import {Rows} from './Rows';

interface Storage { data_dir: string; database_bytes: number; write_ahead_bytes: number; blob_bytes: number; other_bytes: number; files: number; complete: boolean; free_bytes: number; total_bytes: number; health: string; commits: number; appends: number; reads: number; queued: number; commit_ms_mean: number; commit_ms_max: number }
interface Setting { name: string; value?: string | string[]; set?: boolean; source: string; where: string; reloadable: boolean; about: string }
interface Limit { name: string; room: string; value: number; about: string }

/** This page, as another device has to call it. */
const here = () => new URL(at(''), location.href).href;

const useSettings = () => useQuery({queryKey: ['admin', 'settings'], queryFn: () => askJson<{settings: Setting[]; limits: Limit[]}>('api/admin/settings'), staleTime: 10000});

const PARTS: [keyof Storage & `${string}_bytes`, string, string][] = [['database_bytes', 'Database', 'model'], ['write_ahead_bytes', 'Write-ahead log', 'tool'], ['blob_bytes', 'Blobs', 'sub'], ['other_bytes', 'Other files', 'wait']];

function StorageView() {
	const {data: d, error, isPending, refetch, isFetching, dataUpdatedAt} = useQuery({queryKey: ['admin', 'storage'], queryFn: () => askJson<Storage>('api/admin/storage'), staleTime: 0});
	if (isPending)
		return <Bones rows={4} />;
	if (error)
		return <ProblemNote what="The storage could not be read" error={error} retry={() => void refetch()} />;
	const own = PARTS.reduce((n, [key]) => n + d[key], 0);
	return <Part title="Storage" about={<>{bytes(own)} in {count(d.files)} files{d.complete ? '' : ', not all of them counted'}</>}
		acts={<><span className="f12 t3">read <Ago at={dataUpdatedAt / 1000} /></span><button type="button" className="btn small" disabled={isFetching} onClick={() => void refetch()}><RefreshCw size={12} aria-hidden className={isFetching ? 'spin' : undefined} />{isFetching ? 'Reading' : 'Read again'}</button></>}>
		<div className="card admin-storage">
			<div className="admin-bar" aria-hidden>{PARTS.map(([key, , kind]) => <i key={key} data-kind={kind} style={{width: `${own ? d[key] / own * 100 : 0}%`}} />)}</div>
			<ul className="admin-parts">{PARTS.map(([key, word, kind]) => <li key={key}><i className="admin-dot" data-kind={kind} aria-hidden />{word} <span className="num t2">{bytes(d[key])}</span></li>)}</ul>
			<Facts rows={[['Health', d.health === 'fine' ? <Health kind="ok" word="Fine" /> : <Health kind="err" word={d.health === 'full' ? 'The disk is full: nothing new is accepted' : 'Broken: see the log'} title={d.health} />],
				['Free on the disk', <span className="num">{bytes(d.free_bytes)} of {bytes(d.total_bytes)}</span>],
				['Commits', <span className="num">{count(d.commits)}, {d.commit_ms_mean.toFixed(1)} ms on average, {d.commit_ms_max.toFixed(0)} ms the longest</span>],
				['Reads', <span className="num">{count(d.reads)}{d.queued ? `, ${count(d.queued)} wait` : ''}</span>],
				['Directory', <span className="mono f12">{d.data_dir}</span>]]} /></div>
	</Part>;
}

function Overview() {
	const version = useVersion();
	const v = version.data;
	return <><Part title="Server"><div className="card admin-storage">{version.error ? <ProblemNote what="The version could not be read" error={version.error} /> : v ? <Facts rows={[['Version', `${v.name} ${v.version}`], ['Event schema', v.event_schema_version],
		['Id of the data', <Id value={String(v.runtime_id)} short={false} />], ['Incarnation', String(v.incarnation)], ['Address', <span className="mono f12">{here()}</span>]]} /> : <Bones rows={2} />}</div></Part>
	<StorageView /></>;
}

function Access() {
	const one = useOneToken();
	const settings = useSettings();
	const token = settings.data?.settings.find((s) => s.name === 'token');
	const link = useMutation({mutationFn: () => askJson<{code: string}>('api/links', {body: {}}), onSuccess: () => say('A new link was made')});
	const address = link.data ? `${here()}#code=${link.data.code}` : '';
	return <>
		<Part title="Token of the server" about="who has it may do everything on this server">
			<div className="card admin-storage"><Facts rows={[['What it may do', one ? 'Everything. This server has one owner, and one token' : 'Everything: it is the key of who runs this server'],
				['Where it is', token ? token.set ? `Given by the ${token.source === 'file' ? 'configuration file' : token.source} (${token.where})` : <>Made by the server, in the file <code>token</code> of its data directory</> : <span className="t3">unknown</span>],
				['In this page', 'In the tabs of this browser, until the last one is closed'],
				['To change it', <>Set another <code>token</code> and start the server again. Pages and programs must then sign in anew</>]]} />
			{settings.error && <ProblemNote what="The settings could not be read" error={settings.error} />}</div></Part>
		<Keys />
		<Part title="One-time link" about="opens this page on another device, once">
			<div className="card admin-storage">
				<p className="t2">A new link makes the one before void. On a terminal <code>uar open --qr</code> draws it for a phone.</p>
				<div><button type="button" className="btn main-act" disabled={link.isPending} onClick={() => link.mutate()}><Link2 size={14} aria-hidden />{link.isPending ? 'Making a link' : 'New link'}</button></div>
				{link.error && <ProblemNote what="No link was made" error={link.error} />}
				{address && <div className="row wrap"><input className="input mono grow" readOnly aria-label="One-time link" value={address} onFocus={(e) => e.target.select()} /><CopyButton text={address} small={false} quiet={false} /></div>}
			</div></Part>
		<Part title="Tokens of single things"><p className="t2">A run's token admits to this run alone, an upload's to this upload: the server makes them for plugins, derived from its token, and lists none.</p></Part>
	</>;
}

function Settings() {
	const {data, error, isPending, refetch} = useSettings();
	const [q, setQ] = useFilter('q');
	const [from, setFrom] = useFilter('from');
	const rows = useMemo(() => (data?.settings ?? []).filter((s) => (!from || (from === 'changed' ? s.source !== 'default' : s.source === from)) && `${s.name} ${s.about}`.toLowerCase().includes(q.toLowerCase())), [data, q, from]);
	if (isPending)
		return <Bones rows={8} />;
	if (error)
		return <ProblemNote what="The settings could not be read" error={error} retry={() => void refetch()} />;
	return <><div className="row wrap"><Find label="Find a setting" value={q} set={setQ} /><Pick label="Where it comes from" value={from} set={setFrom} options={[['', 'All sources'], ['changed', 'Changed'], ['flag', 'Flag'], ['environment', 'Environment'], ['file', 'File'], ['default', 'Default']]} /><span className="t3 f12">{rows.length} of {data.settings.length}</span></div>
		<Rows label="Settings" count={rows.length} size={52} none="No setting fits." row={(i) => {
			const s = rows[i];
			return <div className="admin-row"><div className="admin-name"><code>{s.name}</code>{s.source !== 'default' && <span className="badge" title={s.where}>{s.where}</span>}{s.reloadable && <span className="f11 t3" title="SIGHUP reads it again">reloads</span>}</div>
				<div className="admin-value mono f12 cut" title={String(s.value ?? '')}>{s.set !== undefined ? (s.set ? 'set, not shown' : 'not set') : Array.isArray(s.value) ? s.value.join(', ') || 'none' : s.value || 'empty'}</div>
				<div className="admin-about t3 f12 cut" title={s.about}>{s.about}</div></div>;
		}} /></>;
}

function Limits() {
	const {data, error, isPending, refetch} = useSettings();
	const [q, setQ] = useFilter('q');
	const [room, setRoom] = useFilter('room');
	const rooms = useMemo(() => [...new Set((data?.limits ?? []).map((l) => l.room))], [data]);
	const rows = useMemo(() => (data?.limits ?? []).filter((l) => (!room || l.room === room) && `${l.name} ${l.about}`.toLowerCase().includes(q.toLowerCase())), [data, q, room]);
	if (isPending)
		return <Bones rows={8} />;
	if (error)
		return <ProblemNote what="The limits could not be read" error={error} retry={() => void refetch()} />;
	return <><div className="row wrap"><Find label="Find a limit" value={q} set={setQ} /><Pick label="Part of the program" value={room} set={setRoom} options={[['', 'All parts'], ...rooms.map((r) => [r, r] as [string, string])]} /><span className="t3 f12">{rows.length} of {data.limits.length}</span></div>
		<Rows label="Limits" count={rows.length} size={52} none="No limit fits." row={(i) => {
			const l = rows[i];
			return <div className="admin-row"><div className="admin-name"><code>{l.name}</code><span className="f11 t3">{l.room}</span></div><div className="admin-value num">{count(l.value)}</div><div className="admin-about t3 f12 cut" title={l.about}>{l.about}</div></div>;
		}} /></>;
}

type Tab = 'overview' | 'access' | 'memory' | 'settings' | 'limits' | 'log';
const TABS: [Tab, string][] = [['overview', 'Overview'], ['access', 'Access'], ['memory', 'Memory'], ['settings', 'Settings'], ['limits', 'Limits'], ['log', 'Live log']];

export default function Admin() {
	const [tab, setTab] = useFilter('tab');
	const now = (TABS.some(([t]) => t === tab) ? tab : 'overview') as Tab;
	useTitle(`${TABS.find(([t]) => t === now)![1]} · Admin`);
	return <><Top title="Admin" /><Tabs label="Parts of admin" value={now} options={TABS} set={(t) => setTab(t === 'overview' ? '' : t)} />
		{now === 'log' ? <Log /> : <div className={now === 'settings' || now === 'limits' ? 'admin-full' : 'scroll'}><div className="page admin">
			{now === 'overview' ? <Overview /> : now === 'access' ? <Access /> : now === 'memory' ? <Memory /> : now === 'settings' ? <Settings /> : <Limits />}</div></div>}</>;
}
