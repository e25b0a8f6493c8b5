// Inbox: everything that waits for a person, over all runs, answered in place; then what was answered.
import {useQuery} from '@tanstack/react-query';
import {useEffect, useRef} from 'react';
import {Ask, From} from '../../components/Ask';
import {Grants} from '../../components/Grants';
import {A, Bones, Empty, ProblemNote, Top} from '../../components/ui';
import {askJson} from '../../lib/api';
import {useTitle} from '../../lib/hooks';
import {useShortcuts} from '../../lib/keys';
import {useFilter} from '../../lib/nav';
import {useActions, useSessions} from '../../lib/query';
import type {Action} from '../../lib/types';
import './inbox.css';

const ANSWERED = 20;

/** What is shown, in order. A question that was answered stays where it is, as high as it was, until nothing waits: no
 * other one moves under the finger that answered. */
function usePlaces(waiting: Action[], answered: Action[] | undefined, reading: boolean, height: (id: string) => number): {action: Action; place: number}[] {
	const shown = useRef<{action: Action; place: number}[]>([]);
	const now = new Map(waiting.map((a) => [a.action_id, a]));
	const past = new Map((answered ?? []).map((a) => [a.action_id, a]));
	const before = shown.current.flatMap(({action: a, place}) => {
		const stays = now.get(a.action_id), done = past.get(a.action_id);
		if (stays)
			return [{action: stays, place: 0}];
		return done ? [{action: done, place: place || height(a.action_id)}] : reading ? [{action: a, place}] : [];
	});
	const known = new Set(before.map((s) => s.action.action_id));
	shown.current = waiting.length ? [...before, ...waiting.filter((a) => !known.has(a.action_id)).map((action) => ({action, place: 0}))] : [];
	return shown.current;
}

export default function Inbox() {
	const {data, error, isPending, refetch} = useActions();
	const answered = useQuery({queryKey: ['actions', 'answered'], queryFn: () => askJson<{actions: Action[]}>(`api/actions?status=resolved&limit=${ANSWERED}`)});
	const titles = new Map((useSessions().data?.sessions ?? []).map((s) => [s.session_id, s.title]));
	const [wanted] = useFilter('action');
	const list = useRef<HTMLDivElement>(null);
	const waiting = data?.actions ?? [];
	const places = usePlaces(waiting, answered.data?.actions, answered.isFetching, (id) => list.current?.querySelector<HTMLElement>(`[data-action="${CSS.escape(id)}"]`)?.offsetHeight ?? 0);
	const kept = new Set(places.filter((p) => p.place).map((p) => p.action.action_id));
	const done = answered.data?.actions.filter((a) => !kept.has(a.action_id)) ?? [];
	useTitle(waiting.length ? `${waiting.length} waiting · Inbox` : 'Inbox');
	useEffect(() => {
		if (wanted && waiting.length)
			list.current?.querySelector<HTMLElement>(`[data-action="${CSS.escape(wanted)}"]`)?.scrollIntoView({block: 'center'});
	}, [wanted, waiting.length > 0]); // eslint-disable-line
	const cards = () => [...list.current?.querySelectorAll<HTMLElement>('.question[data-state=pending]') ?? []];
	/** A key answers only the question that has the focus; without one it chooses the first. */
	const press = (button: string) => {
		const card = cards().find((c) => c.contains(document.activeElement));
		if (card)
			card.querySelector<HTMLElement>(button)?.click();
		else
			cards()[0]?.focus();
	};
	const move = (by: number) => {
		const all = cards(), at = all.findIndex((c) => c.contains(document.activeElement));
		all[Math.max(0, Math.min(all.length - 1, at + by))]?.focus();
	};
	useShortcuts([{keys: 'J', does: 'Next question', run: () => move(1), repeats: true}, {keys: 'K', does: 'Question before', run: () => move(-1), repeats: true},
		{keys: 'A', does: 'Allow once', run: () => press('[data-allow]')},
		{keys: 'D', does: 'Deny', run: () => press('[data-deny]')}]);
	return <><Top title="Inbox" about={waiting.length ? `${data?.total ?? waiting.length} waiting` : undefined} />
		<div className="scroll"><div className="page inbox" ref={list}>
			{isPending ? <Bones /> : error ? <ProblemNote what="The questions could not be read" error={error} retry={() => refetch()} /> : waiting.length === 0
				? <div className="card"><Empty title="Nothing waits for you"><p>What an agent may not do alone is asked here, and goes on as soon as you have answered.</p><A className="btn" to="c">New chat</A></Empty></div>
				: places.map(({action: a, place}) => <Ask key={a.action_id} action={a} state={place ? String(a.decision ?? a.status) : 'pending'} over={!!place} place={place} where={<From action={a} title={titles.get(a.session_id)} />} />)}
			<Grants titles={titles} />
			{done.length > 0 && <section className="inbox-done"><h2 className="part-head">Answered</h2>{done.map((a) => <Ask key={a.action_id} action={a} state={String(a.decision ?? a.status)} over />)}</section>}
		</div></div></>;
}
