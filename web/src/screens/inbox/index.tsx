// Inbox: everything that waits for a person, over all runs, answered in place; then what was answered.
import {useQuery} from '@tanstack/react-query';
import {useEffect, useRef} from 'react';
import {Ask, From} from '../../components/Ask';
import {A, Bones, Empty, ProblemNote, Top} from '../../components/ui';
import {askJson} from '../../lib/api';
import {useTitle} from '../../lib/hooks';
import {useShortcuts} from '../../lib/keys';
import {useFilter} from '../../lib/nav';
import {useActions, useSessions} from '../../lib/query';
import type {Action} from '../../lib/types';
import './inbox.css';

const ANSWERED = 20;

export default function Inbox() {
	const {data, error, isPending, refetch} = useActions();
	const answered = useQuery({queryKey: ['actions', 'answered'], queryFn: () => askJson<{actions: Action[]}>(`api/actions?status=resolved&limit=${ANSWERED}`)});
	const titles = new Map((useSessions().data?.sessions ?? []).map((s) => [s.session_id, s.title]));
	const [wanted] = useFilter('action');
	const list = useRef<HTMLDivElement>(null);
	const waiting = data?.actions ?? [];
	useTitle(waiting.length ? `${waiting.length} waiting · Inbox` : 'Inbox');
	useEffect(() => {
		if (wanted && waiting.length)
			list.current?.querySelector<HTMLElement>(`[data-action="${CSS.escape(wanted)}"]`)?.scrollIntoView({block: 'center'});
	}, [wanted, waiting.length > 0]); // eslint-disable-line
	const cards = () => [...list.current?.querySelectorAll<HTMLElement>('.question[data-state=pending]') ?? []];
	const current = () => cards().find((c) => c.contains(document.activeElement)) ?? cards()[0];
	const move = (by: number) => {
		const all = cards(), at = all.findIndex((c) => c.contains(document.activeElement));
		all[Math.max(0, Math.min(all.length - 1, at + by))]?.focus();
	};
	useShortcuts([{keys: 'J', does: 'Next question', run: () => move(1)}, {keys: 'K', does: 'Question before', run: () => move(-1)},
		{keys: 'A', does: 'Allow once', run: () => current()?.querySelector<HTMLElement>('[data-allow]')?.click()},
		{keys: 'D', does: 'Deny', run: () => current()?.querySelector<HTMLElement>('[data-deny]')?.click()}]);
	return <><Top title="Inbox" about={waiting.length ? `${data?.total ?? waiting.length} waiting` : undefined} />
		<div className="scroll"><div className="page inbox" ref={list}>
			{isPending ? <Bones /> : error ? <ProblemNote what="The questions could not be read" error={error} retry={() => refetch()} /> : waiting.length === 0
				? <div className="card"><Empty title="Nothing waits for you"><p>What an agent may not do alone is asked here, and goes on as soon as you have answered.</p><A className="btn" to="c">New chat</A></Empty></div>
				: waiting.map((a) => <Ask key={a.action_id} action={a} state="pending" over={false} where={<From action={a} title={titles.get(a.session_id)} />} />)}
			{(answered.data?.actions.length ?? 0) > 0 && <section className="inbox-done"><h2 className="part-head">Answered</h2>{answered.data?.actions.map((a) => <Ask key={a.action_id} action={a} state={String(a.decision ?? a.status)} over />)}</section>}
		</div></div></>;
}
