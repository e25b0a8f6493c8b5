// Versions.tsx - what a definition was, and what changed.
import {useQuery} from '@tanstack/react-query';
import {useState} from 'react';
import {Ago, Bones, Empty, ProblemNote} from '../../components/ui';
import {askJson} from '../../lib/api';
import {seconds} from '../../lib/format';
import {useFilter} from '../../lib/nav';

interface Version { version: number; change: string; revision: string | null; at: string }

const textOf = (definition: unknown) => JSON.stringify(definition, null, 2);

function Changes({before, now}: {before: string; now: string}) {
	const {data} = useQuery({queryKey: ['diff', before, now], staleTime: Infinity, gcTime: 0, queryFn: async () => (await import('diff')).diffLines(before, now)});
	return <div className="diff" role="group" aria-label="Changes" tabIndex={0}>{(data ?? []).flatMap((part, p) => part.value.replace(/\n$/, '').split('\n').map((line, i) => {
		const sign = part.added ? '+' : part.removed ? '-' : ' ';
		return <div key={`${p} ${i}`} data-sign={sign}><b aria-label={sign === '+' ? 'added' : sign === '-' ? 'removed' : undefined} role={sign === ' ' ? undefined : 'img'}>{sign}</b><code>{line}</code></div>;
	}))}</div>;
}

export function Versions({id, current, restore}: {id: string; current: unknown; restore: (text: string) => void}) {
	const [chosen, choose] = useFilter('version');
	const list = useQuery({queryKey: ['agent', id, 'versions'], queryFn: () => askJson<{versions: Version[]; more: boolean}>(`api/agents/${encodeURIComponent(id)}/versions`)});
	const number = Number(chosen) || 0;
	const one = useQuery({queryKey: ['agent', id, 'version', number], enabled: number > 0, staleTime: Infinity, queryFn: () => askJson<{definition: unknown}>(`api/agents/${encodeURIComponent(id)}?version=${number}`)});
	const [raw, setRaw] = useState(false);
	if (list.isPending)
		return <Bones rows={3} />;
	if (list.error)
		return <ProblemNote what="The versions could not be read" error={list.error} retry={() => void list.refetch()} />;
	if (!list.data.versions.length)
		return <Empty title="No versions are kept"><p>Versions are of agents that are kept in the database. A file is what it says now; a run keeps the revision that it began with.</p></Empty>;
	return <div className="agents-versions">
		<ul className="card">{list.data.versions.map((v, i) => <li key={v.version}><button type="button" className="item agents-version" aria-current={v.version === number} disabled={v.change === 'removed'} onClick={() => choose(v.version === number ? '' : String(v.version))}>
			<strong>v{v.version}</strong><span className="grow t2">{v.change === 'removed' ? 'removed' : i === 0 ? 'in force' : 'put'}</span>{v.revision && <span className="mono f11 t3">{v.revision.slice(0, 12)}</span>}<span className="f12 t3"><Ago at={seconds(v.at)} /></span></button></li>)}</ul>
		{list.data.more && <p className="f12 t3">There are earlier versions.</p>}
		{number > 0 && (one.error ? <ProblemNote what={`Version ${number} could not be read`} error={one.error} /> : !one.data ? <Bones rows={4} /> : <section className="agents-was"><div className="part-head"><h3>Version {number}{raw ? '' : ', and what changed since'}</h3><span className="grow" />
			<button type="button" className="btn small" aria-pressed={raw} onClick={() => setRaw(!raw)}>{raw ? 'Changes' : 'Whole'}</button><button type="button" className="btn small" onClick={() => restore(textOf(one.data.definition))}>Edit this version</button></div>
			{raw || textOf(one.data.definition) === textOf(current) ? <pre className="json" tabIndex={0}>{textOf(one.data.definition)}</pre> : <Changes before={textOf(one.data.definition)} now={textOf(current)} />}</section>)}
	</div>;
}
