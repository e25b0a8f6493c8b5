// Panel.tsx - one skill: what it says, what it needs, its versions; one of the database can be changed.
import {X} from 'lucide-react';
import {type ReactNode, useState} from 'react';
import {A, Ago, Bones, CopyButton, Dialog, ProblemNote, Tabs} from '../../components/ui';
import {seconds} from '../../lib/format';
import {go, useFilter} from '../../lib/nav';
import {client} from '../../lib/query';
import {complain, toast} from '../../lib/say';
import {type Skill, type SkillText, remove, save, useSkill, useVersion, useVersions} from './data';

export const ORIGINS: Record<string, string> = {builtin: 'Built in', file: 'Folder', user: 'Database'};

function Fact({name, children}: {name: string; children: ReactNode}) {
	return <div className="skills-fact"><dt className="t3">{name}</dt><dd>{children}</dd></div>;
}

const words = (list: string[] | undefined) => list?.length ? list.map((w) => <code key={w} className="skills-word">{w}</code>) : null;

function Overview({skill, text}: {skill: Skill; text: SkillText}) {
	const t = text.triggers ?? {};
	return <div className="skills-body">
		<p>{skill.description}</p>
		<dl className="skills-facts f12">
			<Fact name="Where">{ORIGINS[skill.origin] ?? skill.origin}{skill.folder ? <> <span className="mono">{skill.folder}</span></> : null}{skill.enabled ? '' : ', switched off'}</Fact>
			<Fact name="Outcomes">{skill.metrics.successes + skill.metrics.failures === 0 ? 'not used yet' : `${skill.metrics.successes} of ${skill.metrics.successes + skill.metrics.failures} runs succeeded`}</Fact>
			{t.keywords?.length ? <Fact name="Keywords">{words(t.keywords)}</Fact> : null}
			{t.patterns?.length ? <Fact name="Patterns">{words(t.patterns)}</Fact> : null}
			{t.semantic?.length ? <Fact name="Means the same">{t.semantic.join('; ')}</Fact> : null}
			{text.preferred_tools?.length ? <Fact name="Prefers tools">{words(text.preferred_tools)}</Fact> : null}
			{text.constraints?.allow?.length ? <Fact name="Leaves only">{words(text.constraints.allow)}</Fact> : null}
			{text.constraints?.deny?.length ? <Fact name="Takes away">{words(text.constraints.deny)}</Fact> : null}
			{Object.entries(text.requires ?? {}).map(([k, v]) => <Fact key={k} name={`Needs ${k}`}>{words(v)}</Fact>)}
			{text.post_processing?.length ? <Fact name="Checks answers">{text.post_processing.map((r, i) => <code key={i} className="skills-word">{JSON.stringify(r)}</code>)}</Fact> : null}
			{Object.entries(text.tool_templates ?? {}).map(([k, v]) => <Fact key={k} name={`Calls ${k}`}><code className="skills-word">{JSON.stringify(v)}</code></Fact>)}
			<Fact name="Revision"><span className="mono">{skill.revision.slice(0, 12)}</span></Fact>
		</dl>
		<h3 className="f12">What the model is told</h3>
		<pre className="skills-overlay" tabIndex={0} aria-label="Overlay">{text.prompt_overlay || '(no text)'}</pre>
	</div>;
}

function Versions({skill}: {skill: Skill}) {
	const list = useVersions(skill.skill_id, skill.origin === 'user');
	const [at, set] = useState(0);
	const one = useVersion(skill.skill_id, at);
	const back = async () => {
		try {
			const done = await save(skill.skill_id, one.data!.skill);
			toast('ok', done.changed ? `Kept as version ${done.stored_version}` : 'It is the version in use');
			await client.invalidateQueries({queryKey: ['skill', skill.skill_id]});
		} catch (e) {
			complain('It was not put back', e);
		}
	};
	if (skill.origin !== 'user')
		return <div className="skills-body"><p className="t2">{skill.origin === 'file' ? 'Versions of a folder are kept where the folder is kept, such as in Git. A run keeps the text that it began with.' : 'It changes with the program.'}</p></div>;
	if (list.error)
		return <div className="skills-body"><ProblemNote what="The versions could not be read" error={list.error} /></div>;
	return <div className="skills-body"><ol className="card" aria-label="Versions">{(list.data?.versions ?? []).map((v) => <li key={v.stored_version} className="item">
		<strong className="num">v{v.stored_version}</strong><span className="grow t2">{v.change === 'removed' ? 'Removed' : v.stored_version === skill.stored_version ? 'In use' : 'Kept'}</span><span className="f12 t3"><Ago at={seconds(v.at)} /></span>
		{v.change !== 'removed' && <button type="button" className="btn small" aria-expanded={at === v.stored_version} aria-label={`Show version ${v.stored_version}`} onClick={() => set(at === v.stored_version ? 0 : v.stored_version)}>Show</button>}</li>)}</ol>
	{at > 0 && one.data && <section aria-label={`Version ${at}`}><div className="row"><h3 className="f12 grow">Version {at}</h3><CopyButton text={() => JSON.stringify(one.data.skill, null, 2)} />
		{at !== skill.stored_version && <button type="button" className="btn small" onClick={() => void back()}>Use it again</button>}</div>
		<pre className="skills-overlay" tabIndex={0} aria-label={`Text of version ${at}`}>{JSON.stringify(one.data.skill, null, 2)}</pre></section>}
	{one.error && <ProblemNote what="The version could not be read" error={one.error} />}</div>;
}

/** The skill as JSON; what is wrong with it the server says. */
export function Editor({id, text, done}: {id: string; text: SkillText; done: (id: string) => void}) {
	const [value, type] = useState(() => JSON.stringify(text, null, 2));
	const [error, fail] = useState<unknown>(null);
	const [busy, wait] = useState(false);
	const send = async () => {
		wait(true);
		fail(null);
		try {
			const parsed = JSON.parse(value) as SkillText;
			const name = id || String(parsed.skill_id ?? '');
			const kept = await save(name, parsed);
			toast('ok', kept.changed ? `Kept as version ${kept.stored_version}` : 'Nothing has changed');
			void client.invalidateQueries({queryKey: ['skills']});
			await client.invalidateQueries({queryKey: ['skill', name]});
			done(name);
		} catch (e) {
			fail(e);
		}
		wait(false);
	};
	return <div className="skills-body"><div className="field"><label htmlFor="skills-json">Skill as JSON</label>
		<textarea id="skills-json" className="area mono f12" rows={18} spellCheck={false} value={value} onChange={(e) => type(e.target.value)} /></div>
	{error !== null && <ProblemNote what="It was not kept" error={error} />}
	<div className="row"><button type="button" className="btn main-act" disabled={busy} onClick={() => void send()}>{busy ? 'Saving' : 'Save'}</button>
		<span className="f12 t3">Runs at work keep the text that they began with.</span></div></div>;
}

function Remove({id, close}: {id: string; close: () => void}) {
	const go_on = async () => {
		try {
			await remove(id);
			toast('ok', `${id} is removed`);
			void client.invalidateQueries({queryKey: ['skills']});
			go('skills');
		} catch (e) {
			complain('It was not removed', e);
		}
		close();
	};
	return <Dialog title={`Remove ${id}`} close={close}><p>No message chooses it any more. Its versions stay, and it can be kept again.</p>
		<div className="row"><button type="button" className="btn danger" onClick={() => void go_on()}>Remove skill</button></div></Dialog>;
}

function withoutTab(): string {
	const q = new URLSearchParams(location.search);
	q.delete('tab');
	return q.size ? `?${q}` : '';
}

export function Panel({id}: {id: string}) {
	const {data, error, refetch} = useSkill(id);
	const [tab, set] = useFilter('tab');
	const [removing, ask] = useState(false);
	const mine = data?.origin === 'user';
	const tabs: [string, ReactNode][] = [['', 'What it says'], ['versions', 'Versions'], ...(mine ? [['edit', 'Change'] as [string, ReactNode]] : [])];
	const now = tabs.some(([t]) => t === tab) ? tab : '';
	return <aside className="skills-panel" aria-label={`Skill ${id}`}>
		<header className="top"><h2 className="cut">{data?.title || id}</h2><span className="mono f11 t3 cut">{id}{data ? ` ${data.version}` : ''}</span><span className="grow" />
			{mine && <button type="button" className="btn danger" onClick={() => ask(true)}>Remove</button>}
			<A className="btn quiet icon" aria-label="Close" to={`skills${withoutTab()}`}><X size={16} aria-hidden /></A></header>
		<Tabs label="Skill" value={now} options={tabs} set={set} />
		<div className="scroll" tabIndex={0} role="region" aria-label={`${id}, scrolls`}>
			{error ? <div className="skills-body"><ProblemNote what="The skill could not be read" error={error} retry={() => void refetch()} /></div>
				: !data ? <div className="skills-body"><Bones rows={4} /></div>
					: now === 'versions' ? <Versions skill={data} /> : now === 'edit' ? <Editor key={data.revision} id={id} text={data.skill} done={() => set('')} /> : <Overview skill={data} text={data.skill} />}
		</div>
		{removing && <Remove id={id} close={() => ask(false)} />}
	</aside>;
}
