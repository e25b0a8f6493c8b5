// Ask.tsx - a question to a person, the same in chat and inbox: what exactly is asked, and the answers that the
// server takes. Nothing is shown as decided before the server has said so.
import {useQuery} from '@tanstack/react-query';
import {Ban, CheckCircle2, ChevronDown, Diamond, FileText, LoaderCircle, ShieldQuestion} from 'lucide-react';
import {lazy, type ReactNode, Suspense, useEffect, useRef, useState} from 'react';
import {Problem, ask as askServer, askJson, insist} from '../lib/api';
import {heading} from '../lib/fold';
import {ago, bytes, clock, exact, plain, pretty, span} from '../lib/format';
import {useNow} from '../lib/hooks';
import {patiently} from '../lib/patient';
import {client} from '../lib/query';
import {complain, say, toast} from '../lib/say';
import type {Action} from '../lib/types';
import {A, Menu, MenuItem} from './ui';
import '../styles/ask.css';
import '../styles/form.css';

const SchemaForm = lazy(() => patiently(() => import('./SchemaForm')));

const DECIDED = new Map([['allow', 'Allowed once'], ['allow_for_session', 'Allowed in this conversation'], ['allow_always', 'Always allowed'],
	['deny', 'Denied'], ['submit', 'Answered'], ['decline', 'Declined'], ['cancel', 'Not answered'], ['pending', 'Not answered'], ['expired', 'Expired, not answered']]);

/** Answers that are on their way, kept until the server has them: also when the person looks elsewhere. */
const answering = new Map<string, string>();

/** The first answer counts. One that the network swallowed is given again. */
export async function respond(id: string, body: {decision: string; reason?: string; payload?: unknown}): Promise<void> {
	answering.set(id, body.decision);
	try {
		await insist('api/control/respond_action', {body: {action_id: id, ...body}});
		say('The server has your answer.');
	} catch (e) {
		if (!(e instanceof Problem && e.code === 'ACTION_RESOLVED'))
			throw e;
		toast('wait', 'It was answered already', 'The first answer counts; it is shown on the card.');
	} finally {
		answering.delete(id);
		for (const name of ['actions', 'sessions', 'runs'])
			void client.invalidateQueries({queryKey: [name]});
	}
}

const STEADY_MS = 600; // so long a question has to stand still before a pointer can answer it
const LOOK_MS = 100;

/** Has the card been where it is for a while? Who aims at one question is not to hit another that came under the pointer. */
function useSteady(ref: {current: HTMLElement | null}, waits: boolean): {steady: boolean; stands: () => boolean} {
	const [steady, set] = useState(false);
	const seen = useRef({top: NaN, at: 0});
	const look = () => {
		const now = performance.now();
		let top = ref.current?.getBoundingClientRect().top ?? NaN;
		for (let e = ref.current?.parentElement; e; e = e.parentElement)
			top += e.scrollTop; // scrolling is the reader's own doing
		if (!(Math.abs(top - seen.current.top) < 4))
			seen.current = {top, at: now};
		return now - seen.current.at >= STEADY_MS;
	};
	useEffect(() => {
		if (!waits)
			return;
		set(look());
		const timer = setInterval(() => set(look()), LOOK_MS);
		return () => clearInterval(timer);
	}, [waits]); // eslint-disable-line
	return {steady, stands: look};
}

function hostOf(value: unknown): string | null {
	try {
		return typeof value === 'string' ? new URL(value).host || null : null;
	} catch {
		return null;
	}
}

const FILE = ['path', 'file_path', 'filename', 'file'];
const TEXT = ['text', 'content', 'new_string', 'new_text', 'newText', 'new'];
const OLD = ['old_string', 'old_text', 'oldText', 'old'];
const COMMAND = ['command', 'cmd', 'argv'];
const DIFF = ['diff', 'patch', 'unified_diff'];
const FACTS = new Map([['cwd', 'Where'], ['working_dir', 'Where'], ['working_directory', 'Where'], ['host', 'Host'], ['hostname', 'Host'], ['domain', 'Host'], ['port', 'Port'], ['method', 'Method'],
	['description', 'Why'], ['reason', 'Why'], ['justification', 'Why'], ['destination', 'To'], ['to', 'To'], ['new_path', 'To']]);

interface Change { before?: string; after?: string; diff?: string }
interface Seen { facts: [string, string][]; command?: string; changes: Change[]; rest: Record<string, unknown> }

/** As a shell would need it, so that it is seen where one word ends. */
const word = (v: unknown) => /^[\w./=:@%+-]+$/.test(String(v)) ? String(v) : `'${String(v).replaceAll('\'', '\'\\\'\'')}'`;

/** Members of one change of a text; nothing when there are others, too. */
function changeOf(input: Record<string, unknown>): Change | null {
	const own = Object.entries(input).filter(([, v]) => typeof v === 'string') as [string, string][];
	const before = own.find(([n]) => OLD.includes(n)), after = own.find(([n]) => TEXT.includes(n)), diff = own.find(([n]) => DIFF.includes(n));
	const used = [before, after, diff].filter((x) => x !== undefined).length;
	return used && used === Object.keys(input).length ? {before: before?.[1], after: after?.[1], diff: diff?.[1]} : null;
}

/** The parts of an input that have a form of their own; all others stay as JSON. */
function look(input: unknown): Seen {
	const seen: Seen = {facts: [], changes: [], rest: {}}, change: Record<string, unknown> = {};
	if (typeof input === 'string')
		return {...seen, command: input};
	if (!input || typeof input !== 'object' || Array.isArray(input))
		return {...seen, rest: input === undefined ? {} : {input}};
	const members = input as Record<string, unknown>, args = COMMAND.some((n) => typeof members[n] === 'string') && Array.isArray(members.args) ? members.args : [];
	for (const [name, value] of Object.entries(members)) {
		const edits = name === 'edits' && Array.isArray(value) ? value.map((v) => v && typeof v === 'object' ? changeOf(v) : null) : [];
		if (COMMAND.includes(name) && seen.command === undefined && (typeof value === 'string' || Array.isArray(value)))
			seen.command = [...Array.isArray(value) ? value.map(word) : [value], ...args.map(word)].join(' ');
		else if (name === 'args' && args.length)
			continue; // of the command
		else if (FILE.includes(name) && typeof value === 'string')
			seen.facts.push(['File', value]);
		else if (name === 'url' && typeof value === 'string')
			seen.facts.push(['Address', value], ...(hostOf(value) ? [['Host', hostOf(value)!] as [string, string]] : []));
		else if (FACTS.has(name) && (typeof value === 'string' || typeof value === 'number'))
			seen.facts.push([FACTS.get(name)!, String(value)]);
		else if ([...OLD, ...TEXT, ...DIFF].includes(name) && typeof value === 'string' && !Object.keys(change).some((n) => [OLD, TEXT, DIFF].some((l) => l.includes(n) && l.includes(name))))
			change[name] = value;
		else if (edits.length && edits.every((e) => e !== null))
			seen.changes.push(...edits);
		else
			seen.rest[name] = value;
	}
	const own = changeOf(change);
	return own ? {...seen, changes: [own, ...seen.changes]} : seen;
}

const lines = (text: string, cut = true) => (cut ? text.replace(/\n$/, '') : text).split('\n');

/** The lines that both have at the beginning and at the end are no change. */
function rowsOf({before, after, diff}: Change): [string, string][] {
	if (diff !== undefined)
		return lines(diff).map((l) => [l[0] === '+' || l[0] === '-' ? l[0] : ' ', l.replace(/^[+-]/, '')]);
	const same = before === undefined || after === undefined || before.endsWith('\n') === after.endsWith('\n'); // else the last line break is what changes
	const x = before === undefined ? [] : lines(before, same), y = after === undefined ? [] : lines(after, same);
	let head = 0, tail = 0;
	while (head < Math.min(x.length, y.length) && x[head] === y[head])
		head++;
	while (tail < Math.min(x.length, y.length) - head && x[x.length - 1 - tail] === y[y.length - 1 - tail])
		tail++;
	const row = (sign: string) => (l: string): [string, string] => [sign, l];
	return [...x.slice(0, head).map(row(' ')), ...x.slice(head, x.length - tail).map(row('-')), ...y.slice(head, y.length - tail).map(row('+')), ...y.slice(y.length - tail).map(row(' '))];
}

function Diff({change}: {change: Change}) {
	return <div className="diff" tabIndex={0} role="group" aria-label="Changes">{rowsOf(change).map(([sign, text], i) => <div key={i} data-sign={sign}><b>{sign}</b><code>{plain(text)}</code></div>)}</div>;
}

/** No one is to allow what cannot be seen: the rest is a click away. */
function useWhole(action: AskLike): {input: unknown; text: string | null; cut: boolean; more: () => void; busy: boolean} {
	const scope = action.scope ?? {};
	const [text, set] = useState<string | null>(null);
	const [busy, setBusy] = useState(false);
	const cut = !!scope.input_url && scope.input === undefined && text === null;
	return {
		input: scope.input, text, cut, busy,
		more: () => {
			setBusy(true);
			askServer(String(scope.input_url).replace(/^\//, '')).then((r) => r.text()).then(set, (e) => complain('It could not be read whole', e)).finally(() => setBusy(false));
		},
	};
}

/** What a question has, from the list of the server or from the stream of its run. */
export type AskLike = Pick<Action, 'action_id' | 'action_type' | 'scope' | 'schema' | 'decisions' | 'tool_name'> & Partial<Action> & {title?: string; schema_ref?: string};

function What({action}: {action: AskLike}) {
	const {input, text, cut, more, busy} = useWhole(action);
	const scope = action.scope ?? {};
	const seen = look(text ?? input);
	const preview = input === undefined && text === null ? String(scope.input_preview ?? '') : null;
	const json = Object.keys(seen.rest).length ? pretty(seen.rest) : '';
	return <>
		{seen.facts.length > 0 && <dl className="facts">{seen.facts.map(([name, value]) => [<dt key={`${name}t`}>{name}</dt>, <dd key={`${name}d`} className={name === 'Why' ? '' : 'mono'}>{plain(value)}</dd>])}</dl>}
		{preview !== null && preview !== '' && <pre className="exact" tabIndex={0}>{plain(preview)}</pre>}
		{seen.command !== undefined && <pre className="exact" tabIndex={0}>{plain(seen.command)}</pre>}
		{seen.changes.map((change, i) => <Diff key={i} change={change} />)}
		{json && <pre className="exact" tabIndex={0}>{plain(json)}</pre>}
		{cut && <p className="f12 t2 row wrap">The beginning of {bytes(Number(scope.input_bytes ?? NaN))}. <button type="button" className="btn small" disabled={busy} onClick={more}>Show all</button></p>}
	</>;
}

function Since({action}: {action: AskLike}) {
	const now = useNow(5);
	if (!action.requested_at)
		return null;
	return <span className="f12 t2 num" title={exact(action.requested_at)}>since {ago(action.requested_at, now)}
		{action.expires_at ? `, ${action.expires_at > now ? `expires in ${span(action.expires_at - now)}` : 'expired'}` : ''}</span>;
}

function Decisions({action, title, decide, busy, place}: {action: AskLike; title: string; place: {steady: boolean; stands: () => boolean}; decide: (decision: string, o?: {reason?: string; payload?: unknown}) => void; busy: string}) {
	const [denying, setDenying] = useState(false);
	const [reason, setReason] = useState('');
	const meant = (e: {detail: number}) => e.detail === 0 || place.stands(); // a key is pressed at the focus, wherever that is
	const offers = new Set(action.decisions ?? ['allow', 'deny']);
	const same = !!(action.schema?.properties as any)?.arguments;
	const repeat = !!action.scope?.repeat;
	const more: [string, string, unknown][] = [
		...(offers.has('allow_for_session') ? [['allow_for_session', 'Allow in this conversation', undefined] as [string, string, unknown],
			...(same ? [['allow_for_session', 'In this conversation, these very arguments', {arguments: 'same'}] as [string, string, unknown]] : [])] : []),
		...(offers.has('allow_always') ? [['allow_always', 'Always allow for this agent', undefined] as [string, string, unknown],
			...(same ? [['allow_always', 'Always, these very arguments', {arguments: 'same'}] as [string, string, unknown]] : [])] : []),
	];
	if (denying)
		return <form className="ask-deny" onSubmit={(e) => { e.preventDefault(); decide('deny', {reason: reason.trim() || undefined}); }}>
			<div className="field"><label htmlFor={`why-${action.action_id}`}>Why not? The agent reads it (may be empty)</label>
				<input id={`why-${action.action_id}`} className="input" autoFocus maxLength={500} value={reason} onChange={(e) => setReason(e.target.value)} onKeyDown={(e) => { if (e.key === 'Escape') setDenying(false); }} /></div>
			<div className="ask-acts"><button type="submit" className="btn danger" disabled={!!busy}>Deny</button><button type="button" className="btn" onClick={() => setDenying(false)}>Back</button></div>
		</form>;
	return <div className="ask-acts">
		{offers.has('allow') && <span className="split">
			<button type="button" data-allow className="btn main-act" disabled={!!busy} aria-label={`${repeat ? 'Repeat it' : 'Allow once'}: ${title}`} aria-disabled={!place.steady || undefined} onClick={(e) => { if (meant(e)) decide('allow'); }}>
				{busy.startsWith('allow') && <LoaderCircle size={14} className="spin" aria-hidden />}{repeat ? 'Repeat it' : 'Allow once'}</button>
			{more.length > 0 && !repeat && <Menu className="btn main-act" label="Allow for longer" button={<ChevronDown size={14} aria-hidden />}>
				{more.map(([decision, words, payload], i) => <MenuItem key={i} onClick={() => decide(decision, {payload})}>{words}</MenuItem>)}</Menu>}
		</span>}
		{offers.has('deny') && <button type="button" data-deny className="btn danger" disabled={!!busy} aria-label={`${repeat ? 'Do not repeat it' : 'Deny'}: ${title}`} onClick={() => setDenying(true)}>{repeat ? 'Do not repeat it' : 'Deny…'}</button>}
		<span className="f12 t3 grow ask-after">{repeat ? 'It may have happened already.' : 'If you deny, the agent is told and goes on without it.'}</span>
	</div>;
}

/** A schema that is too long for an event is read first. */
function useSchema(action: AskLike): {schema: object | null; error: unknown} {
	const ref = String(action.schema_ref ?? '').replace('blob://', '');
	const run = action.run_id ?? action.action_id.slice(0, action.action_id.lastIndexOf('.'));
	const q = useQuery({queryKey: ['schema', ref], enabled: ref !== '', staleTime: Infinity,
		queryFn: () => askJson<object>(`api/runs/${encodeURIComponent(run)}/blobs/${ref}`)});
	return {schema: ref ? q.data ?? null : action.schema ?? {}, error: q.error};
}

function Form({action, decide, busy, wrong}: {action: AskLike; decide: (decision: string, o?: {payload?: unknown}) => void; busy: string; wrong: Problem | null}) {
	const {schema, error} = useSchema(action);
	if (error)
		return <p className="wrong">The form could not be read.</p>;
	if (!schema)
		return <p className="t3">Reading the form</p>;
	return <Suspense fallback={<p className="t3">Opening the form</p>}><SchemaForm id={action.action_id} schema={schema} busy={!!busy} wrong={wrong}
		submit={(values) => decide('submit', {payload: values})}
		more={<button type="button" className="btn" disabled={!!busy} onClick={() => decide('decline')}>Decline</button>} /></Suspense>;
}

/** Who answered, and when; what was decided is history, a click away. */
function Settled({action, state: decided, title, place}: {action: AskLike; state: string; title: string; place?: number}) {
	const state = action.source === 'timeout' ? 'expired' : decided; // nobody said no
	const who = action.resolved_by?.id ? `by ${action.resolved_by.type === 'user' && action.resolved_by.id === 'local' ? 'you' : action.resolved_by.id}` : '';
	const no = ['deny', 'decline', 'cancel', 'pending', 'expired'].includes(state);
	return <details className="question settled" data-action={action.action_id} data-state={state} tabIndex={-1} open={place ? true : undefined} style={place ? {minHeight: place} : undefined}>
		<summary className="row">{no ? <Ban size={14} aria-hidden className="t3" /> : <CheckCircle2 size={14} aria-hidden className="ok" />}
			<span className="ask-state">{DECIDED.get(state) ?? plain(state)}</span><span className="cut grow t2">{title}</span>
			<span className="f11 t3 num" title={action.resolved_at ? exact(action.resolved_at) : undefined}>{[who, action.resolved_at ? clock(action.resolved_at) : '', action.source === 'grant' ? 'by a permission given before' : ''].filter(Boolean).join(' · ')}</span></summary>
		<div className="ask-body">{action.reason && <p>Reason: {plain(String(action.reason))}</p>}<What action={action} />
			{action.payload !== undefined && action.payload !== null && <pre className="exact" tabIndex={0}>{plain(pretty(action.payload))}</pre>}</div>
	</details>;
}

export function Ask({action, state, over, where, event, place}: {action: AskLike; state: string; over: boolean; where?: ReactNode; event?: number; place?: number}) {
	const [busy, setBusy] = useState(answering.get(action.action_id) ?? '');
	const [wrong, setWrong] = useState<Problem | null>(null);
	const ref = useRef<HTMLElement>(null);
	const had = useRef(false);
	const form = action.action_type === 'form';
	const title = heading(String(action.prompt ?? action.title ?? ''));
	const waits = state === 'pending' && !over;
	const still = useSteady(ref, waits);
	useEffect(() => { // the buttons go: the focus stays at the question
		if (!waits && had.current)
			document.querySelector<HTMLElement>(`[data-action="${CSS.escape(action.action_id)}"]`)?.focus();
	}, [waits, action.action_id]);
	if (!waits)
		return <Settled action={action} state={state} title={title} place={place} />;
	const decide = (decision: string, o: {reason?: string; payload?: unknown} = {}) => {
		had.current = true;
		setBusy(decision);
		setWrong(null);
		ref.current?.focus();
		respond(action.action_id, {decision, ...o}).catch((e) => {
			setBusy('');
			if (form && e instanceof Problem && e.status === 400)
				setWrong(e);
			else
				complain('The answer was not taken', e);
		});
	};
	const Icon = form ? FileText : ShieldQuestion;
	return <section ref={ref} className="question" data-action={action.action_id} data-state="pending" tabIndex={-1} aria-label={`${form ? 'Form' : 'Question'}: ${title}`}>
		<header><span className="state" data-kind="waits"><Diamond size={14} aria-hidden /><span className="ask-state">{busy ? 'Answering' : 'Waits for you'}</span></span>
			<span className="t2 f12 mono cut">{plain(String(action.tool_name ?? action.kind ?? ''))}</span><span className="grow" />
			<Since action={action} />{event ? <span className="mono f11 t3">#{event}</span> : null}</header>
		<div className="ask-body">
			<h3><Icon size={14} aria-hidden />{title}</h3>
			{where}
			{action.scope?.destructive && <p className="f12 ask-warn">It may change or delete things.</p>}
			{form ? <Form action={action} decide={decide} busy={busy} wrong={wrong} /> : <What action={action} />}
		</div>
		{!form && <Decisions action={action} title={title} decide={decide} busy={busy} place={still} />}
	</section>;
}

/** Where a question comes from, for a list of many. */
export function From({action, title}: {action: Action; title?: string | null}) {
	return <p className="f12 t2 cut">{action.agent_id} in <A className="link" to={`c/${action.session_id}`}>{title || 'this conversation'}</A></p>;
}
