// Conversations: all of them, searched by title and by what was said, with those in the archive.
import {keepPreviousData, useInfiniteQuery, useQuery} from '@tanstack/react-query';
import {Archive, ArchiveRestore, Search} from 'lucide-react';
import {useEffect, useRef, useState} from 'react';
import {sessionState, titleOf} from '../../components/Rail';
import {A, Ago, Bones, Empty, ProblemNote, Segment, State, Top} from '../../components/ui';
import {askJson, command} from '../../lib/api';
import {seconds} from '../../lib/format';
import {useTitle} from '../../lib/hooks';
import {useShortcuts} from '../../lib/keys';
import {useFilter} from '../../lib/nav';
import {client} from '../../lib/query';
import {complain, toast} from '../../lib/say';
import type {RunRecord, Session} from '../../lib/types';
import './conversations.css';

const PAGE = 40, FOUND = 40;

async function archive(s: Session, archived: boolean): Promise<void> {
	try {
		await command('update_session', {session_id: s.session_id, archived});
		toast('ok', archived ? 'Archived' : 'Taken out of the archive');
	} catch (e) {
		complain('It was not changed', e);
	}
	for (const name of ['sessions', 'threads'])
		void client.invalidateQueries({queryKey: [name]});
}

function Row({s, said}: {s: Session; said?: string}) {
	const {status, word} = sessionState(s);
	const kept = s.status === 'archived', title = titleOf(s);
	return <li className="item talks-row"><A className="row grow" to={`c/${s.session_id}`}><State status={status} bare /><span className="grow"><span className="cut strong">{title}</span>
		<span className="cut f11 t3">{[word, s.agent_id, s.runs === 1 ? '1 turn' : s.runs ? `${s.runs} turns` : '', said && said !== title ? `“${said}”` : ''].filter(Boolean).join(' · ')}</span></span></A>
	<span className="f12 t3"><Ago at={seconds(s.updated_at)} /></span>
	<button type="button" className="btn quiet icon" aria-label={kept ? `Take ${title} out of the archive` : `Archive ${title}`} title={kept ? 'Take out of the archive' : 'Archive'} onClick={() => archive(s, !kept)}>
		{kept ? <ArchiveRestore size={15} aria-hidden /> : <Archive size={15} aria-hidden />}</button></li>;
}

/** Conversations in which these words were said, by their runs: the newest first. */
function useSaid(words: string) {
	return useQuery({queryKey: ['sessions', 'said', words], enabled: words.length > 1, placeholderData: keepPreviousData, queryFn: async () => {
		const {runs, search_state} = await askJson<{runs: RunRecord[]; search_state?: string}>(`api/runs?limit=${FOUND}&q=${encodeURIComponent(words)}`);
		const first = new Map<string, RunRecord>();
		for (const r of runs)
			if (!first.has(r.session_id))
				first.set(r.session_id, r);
		const found = await Promise.all([...first.values()].slice(0, 20).map(async (r) => {
			const {session} = await askJson<{session: Session & {counts: {turns: number}}}>(`api/sessions/${encodeURIComponent(r.session_id)}`);
			const said = String(r.title ?? '');
			return {said, s: {...session, title: session.title ?? said, runs: session.counts.turns, live_runs: 0, waiting_runs: 0, last_status: r.status}};
		}));
		return {found, partial: search_state === 'partial'};
	}});
}

export default function Conversations() {
	const [q, setQ] = useFilter('q');
	const [kept, setKept] = useFilter('archived');
	const [text, type] = useState(q);
	const timer = useRef(0), field = useRef<HTMLInputElement>(null);
	useTitle('Conversations');
	useEffect(() => type(q), [q]);
	useShortcuts([{keys: '/', does: 'Search in the conversations', run: () => field.current?.focus()}]);
	const list = useInfiniteQuery({queryKey: ['sessions', 'all', q, kept], initialPageParam: '', getNextPageParam: (last: {next_cursor: string | null}) => last.next_cursor ?? undefined,
		queryFn: ({pageParam}) => askJson<{sessions: Session[]; next_cursor: string | null}>(`api/sessions?limit=${PAGE}&status=${kept ? 'archived' : 'active'}${q ? `&title=${encodeURIComponent(q)}` : ''}${pageParam ? `&cursor=${encodeURIComponent(pageParam)}` : ''}`)});
	const said = useSaid(kept ? '' : q);
	const titled = list.data?.pages.flatMap((p) => p.sessions) ?? [];
	const more = (said.data?.found ?? []).filter(({s}) => q && !kept && !titled.some((t) => t.session_id === s.session_id));
	return <><Top title="Conversations"><A className="btn main-act" to="c">New chat</A></Top>
		<div className="scroll"><div className="page talks">
			<div className="row wrap"><label className="talks-find grow"><Search size={14} aria-hidden /><span className="unseen">Words of a title, a message or an answer</span>
				<input ref={field} className="input" type="search" placeholder="Search titles and what was said" value={text} onChange={(e) => {
					type(e.target.value);
					clearTimeout(timer.current);
					const next = e.target.value.trim();
					timer.current = window.setTimeout(() => setQ(next), 250);
				}} /></label>
				<Segment label="Which" value={kept ? '1' : ''} options={[['', 'Active'], ['1', 'Archived']]} set={setKept} /></div>
			{list.isPending ? <Bones /> : list.error ? <ProblemNote what="The conversations could not be read" error={list.error} retry={() => list.refetch()} />
				: titled.length + more.length === 0 ? <div className="card"><Empty title={q ? 'No conversation has these words' : kept ? 'The archive is empty' : 'No conversation yet'}>
					<p>{q ? 'Titles, messages and answers were searched.' : kept ? 'Archive a conversation to have it out of the way. Nothing of it is lost.' : 'The demo needs no key and no network.'}</p>
					{!kept && !q && <A className="btn" to="c?agent=demo">Talk to the demo</A>}</Empty></div>
					: <ul className="card">{titled.map((s) => <Row key={s.session_id} s={s} />)}{more.map(({s, said: words}) => <Row key={s.session_id} s={s} said={words} />)}</ul>}
			{said.data?.partial && q && <p className="f12 t3">The index of words is not complete yet; search again in a moment.</p>}
			{list.hasNextPage && <button type="button" className="btn" disabled={list.isFetchingNextPage} onClick={() => list.fetchNextPage()}>Older conversations</button>}
		</div></div></>;
}
