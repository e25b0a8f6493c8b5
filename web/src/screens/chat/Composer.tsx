// Composer.tsx - what is said next, to whom, where; the queue on top, money beside Stop.
import {useQuery} from '@tanstack/react-query';
import {ArrowDown, ArrowUp, ArrowUpToLine, FolderOpen, Paperclip, Pencil, Square, X} from 'lucide-react';
import {type ReactNode, type Ref, useEffect, useImperativeHandle, useRef, useState} from 'react';
import {askJson, command} from '../../lib/api';
import {bytes, count, money} from '../../lib/format';
import {client, useAgents} from '../../lib/query';
import {complain, toast} from '../../lib/say';
import type {Talk, Turn} from '../../lib/talk';
import type {Agent} from '../../lib/types';
import {Attached, type Attachment} from './Attached';
import {ModelPick} from './Model';
import './composer.css';

const FILE_MAX = 256000; // bytes of a file whose text goes with a message
const MEDIA_MAX = 4000000; // bytes of images and documents of a message, together
const MEDIA = /^(image\/(png|jpeg|gif|webp)|application\/pdf)$/;

function base64(file: File): Promise<string> {
	return new Promise((done, fail) => {
		const reader = new FileReader();
		reader.onload = () => done(String(reader.result).replace(/^[^,]*,/, ''));
		reader.onerror = () => fail(reader.error);
		reader.readAsDataURL(file);
	});
}

export interface ComposerHandle { focus: () => void; attach: (files: FileList) => void; fill: (text: string) => void; say: (agent: string, message: string) => void }

/** Agents that can run; the recordings only where there are some. */
export function useChoices(): {agents: Agent[]; recordings: string[]} {
	const agents = useAgents().data?.agents ?? [];
	const recordings = useQuery({queryKey: ['fixtures'], queryFn: () => askJson<{fixtures: string[]}>('api/fixtures'), staleTime: 60000}).data?.fixtures ?? [];
	return {agents: agents.filter((a) => a.runnable !== false && (a.entry !== 'fixture' || recordings.length > 0)), recordings};
}

interface Queued { queued_turn_id: string; run_id: string; input_preview?: string; position?: number }

function Queue({session, thread, queued}: {session: string; thread: string; queued: Queued[]}) {
	const [busy, setBusy] = useState('');
	const [editing, setEditing] = useState<{id: string; text: string} | null>(null);
	const change = async (name: string, turn: string, more: object = {}) => {
		setBusy(turn);
		try {
			await command(name, {session_id: session, thread_id: thread, queued_turn_id: turn, ...more});
		} catch (e) {
			complain('The queue did not change', e);
		}
		setBusy('');
		for (const key of ['threads', 'runs'])
			void client.invalidateQueries({queryKey: [key]});
	};
	return <ul className="queue" aria-label="Queue"><li className="t2 f12">Next in this conversation<span className="grow" />starts when this turn ends</li>
		{queued.map((q, i) => {
			const id = q.queued_turn_id, off = busy === id;
			const act = (label: string, icon: ReactNode, run: () => void, none = false) => <button type="button" className="btn quiet icon small" aria-label={label} title={label} disabled={off || none} onClick={run}>{icon}</button>;
			if (editing?.id === id)
				return <li key={id}><form className="row grow" onSubmit={(e) => { e.preventDefault(); void change('edit_queued_turn', id, {message: editing.text.trim()}); setEditing(null); }}>
					<input className="input grow" aria-label="Message in the queue" autoFocus value={editing.text} onChange={(e) => setEditing({id, text: e.target.value})} onKeyDown={(e) => { if (e.key === 'Escape') setEditing(null); }} />
					<button type="submit" className="btn small" disabled={!editing.text.trim()}>Save</button></form></li>;
			return <li key={id}><span className="num t3">{i + 1}</span><span className="cut grow">{q.input_preview || 'A turn'}</span>
				{act('Move up', <ArrowUp size={14} aria-hidden />, () => change('promote_queued_turn', id, {position: i}), i === 0)}
				{act('Move down', <ArrowDown size={14} aria-hidden />, () => change('promote_queued_turn', id, {position: i + 2}), i === queued.length - 1)}
				{i > 0 && act('Move to the front', <ArrowUpToLine size={14} aria-hidden />, () => change('promote_queued_turn', id))}
				{(q.input_preview ?? '').length < 200 && act('Edit in the queue', <Pencil size={13} aria-hidden />, () => setEditing({id, text: q.input_preview ?? ''}))}
				{act('Remove from the queue', <X size={14} aria-hidden />, () => change('remove_queued_turn', id))}</li>;
		})}</ul>;
}

/** Tokens and money of the runs that are shown. */
function Meter({talk}: {talk: Talk}) {
	const records = talk.turns.map((t) => t.record).filter((r) => r !== null);
	const tokens = records.reduce((n, r) => n + (r.tokens ?? 0), 0), cost = records.reduce((n, r) => n + (r.cost ?? 0), 0);
	if (!tokens && !cost)
		return null;
	return <span className="meter num f12 t2" title="Of the turns that are shown, as the server counts them">{cost ? `${money(cost)} · ` : ''}{count(tokens)} tokens</span>;
}

export function Composer({talk, active, send, stop, queued, ref, first, wanted, id = 'message', hint, start}: {id?: string; hint?: string; start?: string; talk: Talk; version: number; active: Turn | undefined; first: string; wanted: string;
	send: (agent: Agent, message: string, inputs: Record<string, unknown>) => void; stop: (turn: Turn) => void; queued: Queued[]; ref?: Ref<ComposerHandle>}) {
	const {agents, recordings} = useChoices();
	const [chosen, choose] = useState('');
	const [text, setText] = useState('');
	const [recording, setRecording] = useState('');
	const [folder, setFolder] = useState('');
	const [files, setFiles] = useState<Attachment[]>([]);
	const [over, setOver] = useState(false);
	const area = useRef<HTMLTextAreaElement>(null);
	const picker = useRef<HTMLInputElement>(null);
	const stopping = !!active && (active.cancelling || !!active.record?.cancel_requested);
	const agent = agents.find((a) => a.agent_id === chosen) ?? agents.find((a) => a.agent_id === (first || wanted)) ?? agents.find((a) => a.agent_id === 'demo') ?? agents[0];
	const replays = agent?.entry === 'fixture';
	const ready = !!agent && (replays ? recordings.length > 0 : text.trim() !== '' || files.length > 0);
	useEffect(() => {
		const a = area.current;
		if (!a)
			return;
		a.style.height = 'auto';
		a.style.height = `${Math.min(a.scrollHeight, 240)}px`;
	}, [text]);
	const hadStop = useRef(false);
	useEffect(() => { // the focus does not go with the button
		if (hadStop.current && (!active || stopping) && (document.activeElement === document.body || document.activeElement?.matches('.stop')))
			area.current?.focus();
		hadStop.current = !!active;
	}, [active, stopping]);
	const give = (to: Agent, message: string) => {
		const media = files.filter((f) => f.data);
		const whole = [message, ...files.filter((f) => !f.data).map((f) => `File ${f.name}:\n\n\`\`\`\n${f.text}\n\`\`\``)].filter(Boolean).join('\n\n');
		send(to, to.entry === 'fixture' ? recording || recordings[0] : whole,
			to.entry === 'fixture' ? {fixture: recording || recordings[0], pace: 'recorded'} : {message: whole || media.map((f) => f.name).join(', '),
				...(media.length ? {attachments: media.map((f) => ({type: f.type!.startsWith('image/') ? 'image' : 'file', media_type: f.type, name: f.name, data: f.data}))} : {}), ...(to.takes_working_dir && folder.trim() ? {working_dir: folder.trim()} : {})});
		setText('');
		setFiles([]);
	};
	useImperativeHandle(ref, () => ({
		focus: () => area.current?.focus(),
		attach: (list) => { if (!replays) void take(list); },
		fill: (t) => setText((now) => now || t),
		say: (id, message) => {
			const to = agents.find((a) => a.agent_id === id);
			if (to) {
				choose(id);
				give(to, message);
			}
		},
	}));
	const take = async (list: FileList | null) => {
		let room = MEDIA_MAX - files.reduce((n, f) => n + (f.data ? f.size : 0), 0);
		for (const file of [...list ?? []]) { // the list empties with its field
			if (MEDIA.test(file.type)) {
				if (file.size > room) {
					toast('err', `${file.name} was not attached`, `It has ${bytes(file.size)}; images and documents of one message have at most ${bytes(MEDIA_MAX)}.`);
					continue;
				}
				room -= file.size;
				const data = await base64(file);
				setFiles((now) => [...now, {name: file.name, size: file.size, text: '', type: file.type, data}]);
				continue;
			}
			const content = file.size <= FILE_MAX ? await file.text() : '';
			if (file.size > FILE_MAX || content.includes('\0'))
				toast('err', `${file.name} was not attached`, file.size > FILE_MAX ? `It has ${bytes(file.size)}; at most ${bytes(FILE_MAX)} of text go with a message.` : 'Text, images (PNG, JPEG, GIF, WebP) and PDF can go with a message.');
			else
				setFiles((now) => [...now, {name: file.name, size: file.size, text: content}]);
		}
	};
	return <div className="dock">
		{queued.length > 0 && <Queue session={talk.session} thread={talk.conversation} queued={queued} />}
		<form className="composer" onSubmit={(e) => { e.preventDefault(); if (ready && agent) give(agent, text.trim()); }}
			data-drop={over ? '' : undefined} onDragOver={(e) => { e.preventDefault(); setOver(!replays); }} onDragLeave={() => setOver(false)}
			onDrop={(e) => { e.preventDefault(); e.stopPropagation(); setOver(false); if (!replays) void take(e.dataTransfer.files); }}>
			{files.length > 0 && <Attached files={files} remove={(i) => setFiles(files.filter((_, n) => n !== i))} />}
			<textarea id={id} ref={area} rows={1} aria-label="Message" value={replays ? '' : text} disabled={replays} dir="auto"
				placeholder={replays ? 'The recording is replayed as it was.' : active ? 'Add a message: it runs after this turn' : hint ?? 'Say something. Enter sends, Shift+Enter makes a new line.'}
				onChange={(e) => setText(e.target.value)}
				onKeyDown={(e) => {
					if (e.key !== 'Enter' || e.shiftKey || e.nativeEvent.isComposing)
						return;
					e.preventDefault();
					if (ready && agent)
						give(agent, text.trim());
				}}
				onPaste={(e) => { if (e.clipboardData.files.length) { e.preventDefault(); void take(e.clipboardData.files); } }} />
			<div className="composer-bar"><div className="composer-tools">
				<input ref={picker} type="file" multiple hidden onChange={(e) => { void take(e.target.files); e.target.value = ''; }} />
				<button type="button" className="btn quiet icon" aria-label="Attach a file" title="Attach text, an image or a PDF" disabled={replays} onClick={() => picker.current?.click()}><Paperclip size={15} aria-hidden /></button>
				<select className="select pick" aria-label="Agent" value={agent?.agent_id ?? ''} title={agent?.description} onChange={(e) => choose(e.target.value)}>{agents.map((a) => <option key={a.agent_id} value={a.agent_id}>{a.title}</option>)}</select>
				{agent && <ModelPick key={agent.agent_id} agent={agent} conversation={talk.conversation} />}
				{replays && <select className="select pick" aria-label="Recording" value={recording || recordings[0]} onChange={(e) => setRecording(e.target.value)}>{recordings.map((r) => <option key={r}>{r}</option>)}</select>}
				{agent?.takes_working_dir && <label className="row folder"><FolderOpen size={15} aria-hidden /><span className="unseen">Working directory</span><input className="input mono" placeholder="/path/of/the/project" value={folder} onChange={(e) => setFolder(e.target.value)} spellCheck={false} /></label>}
				</div><Meter talk={talk} />
				{active && <button type="button" className="btn stop" disabled={stopping} onClick={() => stop(active)}><Square size={13} aria-hidden />{stopping ? 'Stopping' : 'Stop'}</button>}
				{start ? <button type="submit" className="btn main-act" disabled={!ready}>{start}<kbd aria-hidden>Enter</kbd></button>
					: <button type="submit" className="btn main-act icon" disabled={!ready} aria-label={active ? 'Add to the queue' : 'Send'} title={active ? 'Add to the queue (Enter)' : 'Send (Enter)'}><ArrowUp size={16} aria-hidden /></button>}
			</div>
		</form>
	</div>;
}
