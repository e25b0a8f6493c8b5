// MCP servers: how they are, what they offer, the last error; those of the database can be added and removed.
import {useQuery} from '@tanstack/react-query';
import {Cable, LogIn, Plus, RefreshCw, Trash2} from 'lucide-react';
import {useEffect, useState} from 'react';
import {Health, type HealthKind} from '../../components/Health';
import {Facts, Part, Split} from '../../components/Split';
import {A, Bones, Dialog, Empty, ProblemNote, Top} from '../../components/ui';
import {Problem, ask, askJson} from '../../lib/api';
import {useTitle} from '../../lib/hooks';
import {useShortcuts} from '../../lib/keys';
import {go} from '../../lib/nav';
import {client} from '../../lib/query';
import {complain, toast} from '../../lib/say';
import {effectOf, policyOf, useTools} from '../../lib/tools';
import './servers.css';

export interface McpServer { name: string; origin: string; agent_id?: string; state: string; reason?: string; revision?: string; tools: number; login_url?: string; stderr?: string; server?: Record<string, any> }

const STATES: Record<string, {kind: HealthKind; word: string}> = {connected: {kind: 'ok', word: 'Connected'}, connecting: {kind: 'busy', word: 'Connecting'}, failed: {kind: 'err', word: 'Down'}, login_required: {kind: 'ask', word: 'Wants a login'}, disabled: {kind: 'off', word: 'Switched off'}};
const stateOf = (s: McpServer) => STATES[s.state] ?? {kind: 'unknown' as const, word: s.state || 'Unknown'};
const ORIGINS: Record<string, string> = {settings: 'the settings of the server', database: 'the database, added here or by the API', agent: 'the definition of an agent'};
const how = (s: McpServer) => s.server?.url ? String(s.server.url) : [s.server?.command, ...(Array.isArray(s.server?.args) ? s.server.args : [])].filter(Boolean).join(' ');
const LOOK_MS = 3000;

const useServers = () => useQuery({queryKey: ['servers'], queryFn: () => askJson<{servers: McpServer[]}>('api/mcp/servers'),
	// Only while one is on its way: no event of the log says when it has come.
	refetchInterval: (q) => (q.state.data?.servers.some((s) => s.state === 'connecting' || s.state === 'login_required') ? LOOK_MS : false)});

const EXAMPLE = '{\n  "command": "npx",\n  "args": ["-y", "@modelcontextprotocol/server-everything"]\n}';

/** One server as other programs write it; a whole `mcpServers` object is taken apart. */
function readServer(text: string, name: string): {name: string; server: object} {
	const json = JSON.parse(text);
	const several = json.mcpServers ?? json.mcp_servers;
	if (!several)
		return {name, server: json};
	const [first] = Object.entries(several) as [string, object][];
	if (!first)
		throw new Error('mcpServers names no server');
	return {name: name || first[0], server: first[1]};
}

function Add({close}: {close: () => void}) {
	const [name, setName] = useState('');
	const [text, setText] = useState(EXAMPLE);
	const [busy, setBusy] = useState(false);
	const [wrong, setWrong] = useState<unknown>(null);
	const add = async () => {
		setBusy(true);
		setWrong(null);
		try {
			const one = readServer(text, name.trim());
			if (!one.name)
				throw new Error('Give it a name: its tools are mcp:NAME/TOOL.');
			await ask(`api/mcp/servers/${encodeURIComponent(one.name)}`, {method: 'PUT', body: one.server});
			toast('ok', `${one.name} is kept and being connected`);
			await client.invalidateQueries({queryKey: ['servers']});
			close();
			go(`servers/${encodeURIComponent(one.name)}`);
		} catch (e) {
			setWrong(e instanceof SyntaxError ? new Error(`This is not JSON: ${e.message}`) : e);
		}
		setBusy(false);
	};
	return <Dialog title="Add an MCP server" close={close}>
		<form className="servers-form" onSubmit={(e) => { e.preventDefault(); void add(); }}>
			<div className="field"><label htmlFor="server-name">Name</label><input id="server-name" className="input" value={name} onChange={(e) => setName(e.target.value)} autoComplete="off" placeholder="everything" /></div>
			<div className="field"><label htmlFor="server-json">Server, as JSON</label><textarea id="server-json" className="area mono" rows={8} spellCheck={false} value={text} onChange={(e) => setText(e.target.value)} />
				<p className="f12 t3">A command with args and env, or a url with headers; what other programs have below mcpServers fits as it is. A secret is a name: {'${secret:NAME}'}.</p></div>
			{wrong !== null && <ProblemNote what="It was not added" error={wrong} />}
			<div className="row"><button type="submit" className="btn main-act" disabled={busy}>{busy ? 'Adding' : 'Add and connect'}</button><button type="button" className="btn" onClick={close}>Cancel</button></div>
		</form></Dialog>;
}

function Remove({server, close}: {server: McpServer; close: () => void}) {
	const [busy, setBusy] = useState(false);
	const remove = async () => {
		setBusy(true);
		try {
			await ask(`api/mcp/servers/${encodeURIComponent(server.name)}`, {method: 'DELETE'});
			toast('ok', `${server.name} was removed`);
			close();
			go('servers');
			void client.invalidateQueries({queryKey: ['servers']});
		} catch (e) {
			complain(`${server.name} was not removed`, e);
			setBusy(false);
		}
	};
	return <Dialog title={`Remove ${server.name}`} close={close}><p>Its connection ends, agents lose its {server.tools} tools, and its login is forgotten. Runs that call one of them are told that it is gone.</p>
		<div className="row"><button type="button" className="btn danger" disabled={busy} onClick={() => void remove()}>{busy ? 'Removing' : `Remove ${server.name}`}</button><button type="button" className="btn" onClick={close}>Keep it</button></div></Dialog>;
}

function Detail({server}: {server: McpServer}) {
	const state = stateOf(server);
	const tools = useTools();
	const [removing, setRemoving] = useState(false);
	const [busy, setBusy] = useState(false);
	const own = (tools.data?.tools ?? []).filter((t) => t.tool_id.startsWith(`mcp:${server.name}/`));
	const login = async () => {
		setBusy(true);
		try {
			const answer = await askJson<{login_url?: string; url?: string}>(`api/mcp/servers/${encodeURIComponent(server.name)}/login`, {method: 'POST', body: {}});
			const url = answer.login_url ?? answer.url ?? server.login_url;
			if (url && /^https?:/.test(url))
				window.open(url, '_blank', 'noopener,noreferrer');
			void client.invalidateQueries({queryKey: ['servers']});
		} catch (e) {
			complain('The login did not begin', e);
		}
		setBusy(false);
	};
	const again = async () => {
		setBusy(true);
		try {
			await ask(`api/mcp/servers/${encodeURIComponent(server.name)}`, {method: 'PUT', body: server.server});
			await client.invalidateQueries({queryKey: ['servers']});
		} catch (e) {
			complain('It was not connected again', e);
		}
		setBusy(false);
	};
	const hidden = JSON.stringify(server.server ?? {}).includes('<redacted>');
	return <><header className="split-head"><h2>{server.name}</h2><Health {...state} title={server.state} /><span className="grow" />
		{server.state === 'login_required' && <button type="button" className="btn main-act" disabled={busy} onClick={() => void login()}><LogIn size={13} aria-hidden />{busy ? 'Asking' : 'Log in'}</button>}
		{server.origin === 'database' && !hidden && server.state !== 'connected' && <button type="button" className="btn" disabled={busy} onClick={() => void again()}><RefreshCw size={13} aria-hidden />{busy ? 'Connecting' : 'Connect again'}</button>}
		{server.origin === 'database' && <button type="button" className="btn danger" onClick={() => setRemoving(true)}><Trash2 size={13} aria-hidden />Remove</button>}</header>
	<div className="scroll" tabIndex={-1}><div className="split-body">
		{server.reason && <div className="problem" role="note"><strong>{state.word}</strong><span>{server.reason}</span></div>}
		<Facts rows={[['How it is reached', <span className="mono f12">{how(server) || 'unknown'}</span>], ['Comes from', ORIGINS[server.origin] ?? server.origin], ['Agent', server.agent_id], ['Protocol', server.revision], ['Tools', String(server.tools)]]} />
		{server.stderr && <Part title="What it said last" about="its standard error"><pre className="json" tabIndex={0}>{server.stderr}</pre></Part>}
		<Part title="Tools" about={`${own.length} that models may ask for`}>{own.length ? <div className="card">{own.map((t) => <A key={t.tool_id} className="item" to={`tools/${encodeURIComponent(t.tool_id)}`}><span className="grow"><span className="cut mono strong servers-line">{t.name}</span><span className="cut f12 t3 servers-line">{t.description}</span></span><span className="f12 t3 servers-effect">{effectOf(t)}</span><Health {...policyOf(t.policy)} /></A>)}</div>
			: <p className="t3">None now.</p>}</Part>
		<Part title="Setting" about="values that may be keys are hidden"><pre className="json" tabIndex={0}>{JSON.stringify(server.server ?? {}, null, 2)}</pre></Part>
	</div></div>{removing && <Remove server={server} close={() => setRemoving(false)} />}</>;
}

export default function Servers({params}: {params: Record<string, string>}) {
	const {data, error, isPending, refetch} = useServers();
	const [adding, setAdding] = useState(false);
	const server = data?.servers.find((s) => s.name === params.server);
	const list = data?.servers ?? [];
	useTitle(server ? `${server.name} · MCP servers` : 'MCP servers');
	const states = list.map((s) => s.state).join();
	useEffect(() => { void client.invalidateQueries({queryKey: ['tools']}); }, [states]);
	const move = (by: number) => {
		const next = list[Math.max(0, Math.min(list.length - 1, list.findIndex((s) => s.name === params.server) + by))];
		if (next)
			go(`servers/${encodeURIComponent(next.name)}`);
	};
	const can = !error;
	useShortcuts([{keys: 'J', does: 'Next server', run: () => move(1)}, {keys: 'K', does: 'Server before', run: () => move(-1)}, ...(can ? [{keys: 'N', does: 'Add an MCP server', run: () => setAdding(true)}] : [])]);
	return <><Top title="MCP servers" about={data ? `${list.filter((s) => s.state === 'connected').length} of ${list.length} connected` : undefined}>{can && <button type="button" className="btn" onClick={() => setAdding(true)}><Plus size={14} aria-hidden />Add</button>}</Top>
		<Split label="MCP servers" back="servers" chosen={!!params.server} list={isPending ? <Bones rows={4} /> : error ? <div className="page">{error instanceof Problem && error.status === 404 ? <ProblemNote what="This server lists no MCP servers" error={error} /> : <ProblemNote what="The servers could not be read" error={error} retry={() => void refetch()} />}</div>
			: list.length === 0 ? <Empty title="No MCP server yet"><p>Tools of other programs: files, databases, services.</p><button type="button" className="btn main-act" onClick={() => setAdding(true)}><Plus size={14} aria-hidden />Add an MCP server</button></Empty>
				: <div className="split-rows" tabIndex={-1}><ul aria-label="MCP servers">{list.map((s) => <li key={`${s.origin} ${s.agent_id ?? ''} ${s.name}`}><A className="split-row" to={`servers/${encodeURIComponent(s.name)}`} aria-current={s.name === params.server}><Cable size={15} aria-hidden className="t3" /><span className="grow"><span className="cut strong">{s.name}</span><span className="cut f11 t3">{s.tools} tools{s.reason ? ` · ${s.reason}` : ''}</span></span><Health {...stateOf(s)} /></A></li>)}</ul></div>}>
			{server ? <Detail key={server.name} server={server} /> : params.server && data ? <Empty title="There is no such server"><A className="btn" to="servers">All servers</A></Empty> : <Empty title="Choose a server"><p>Its state, its last error and its tools.</p></Empty>}
		</Split>{adding && <Add close={() => setAdding(false)} />}</>;
}
