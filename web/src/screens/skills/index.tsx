// Skills: what there is, what each says, and why one is chosen.
import {Plus, Search} from 'lucide-react';
import {useEffect, useRef, useState} from 'react';
import {A, Ago, Bones, Dialog, Empty, ProblemNote, Top} from '../../components/ui';
import {seconds} from '../../lib/format';
import {useTitle} from '../../lib/hooks';
import {useShortcuts} from '../../lib/keys';
import {go, useFilter} from '../../lib/nav';
import {type Skill, useSkills} from './data';
import {Editor, ORIGINS, Panel} from './Panel';
import {Why} from './Why';
import './skills.css';

const FIRST = {skill_id: 'my_skill', title: 'My skill', description: 'When it is of use, in one sentence.', triggers: {keywords: ['walnut']},
	prompt_overlay: '## My skill\n\n- What the model shall do.\n'};

function Row({skill, at}: {skill: Skill; at: boolean}) {
	const {successes, failures} = skill.metrics;
	return <A className="skills-row" aria-current={at ? 'true' : undefined} data-skill={skill.skill_id} to={`skills/${encodeURIComponent(skill.skill_id)}${location.search}`}>
		<span className="skills-name"><strong className="cut">{skill.title}</strong><span className="mono f11 t3 cut">{skill.skill_id}</span></span>
		<span className="skills-about t2 cut">{skill.description}</span>
		<span className="skills-origin">{ORIGINS[skill.origin] ?? skill.origin}{skill.enabled ? '' : <span className="badge ask">off</span>}</span>
		<span className="skills-version num">{skill.version}{skill.stored_version ? <span className="t3"> v{skill.stored_version}</span> : null}</span>
		<span className="skills-score num">{skill.score !== undefined ? skill.score.toFixed(3) : successes + failures ? `${successes} of ${successes + failures}` : <span className="t3">not used</span>}</span>
		<span className="skills-when t3">{skill.updated_at ? <Ago at={seconds(skill.updated_at)} /> : null}</span>
	</A>;
}

function Find() {
	const [q, set] = useFilter('q');
	const [text, type] = useState(q);
	const timer = useRef(0);
	useEffect(() => type(q), [q]);
	return <label className="skills-find"><Search size={14} aria-hidden /><span className="unseen">Find skills</span>
		<input className="input" type="search" placeholder="Find" value={text} onChange={(e) => {
			type(e.target.value);
			clearTimeout(timer.current);
			const next = e.target.value.trim();
			timer.current = window.setTimeout(() => set(next), 250);
		}} /></label>;
}

function List({at}: {at: string}) {
	const [q] = useFilter('q');
	const {data, error, isPending, refetch} = useSkills(q);
	if (error)
		return <ProblemNote what="The skills could not be read" error={error} retry={() => void refetch()} />;
	if (isPending)
		return <Bones rows={4} />;
	return <>{data.broken.map((b) => <ProblemNote key={b.folder} what={`The folder ${b.folder} is broken; what it said before stays in use`} error={b.error} />)}
		{data.skills.length === 0 ? <div className="card"><Empty title="No skill fits"><p>Skills are found by keywords, patterns and by what they mean.</p></Empty></div>
			: <div className="card" role="group" aria-label="Skills"><div className="skills-row skills-head f12 t2" aria-hidden><span>Name</span><span className="skills-about">What for</span><span className="skills-origin">Where</span><span className="skills-version">Version</span><span className="skills-score">{q ? 'Score' : 'Succeeded'}</span><span className="skills-when">Changed</span></div>
				{data.skills.map((s) => <Row key={s.skill_id} skill={s} at={s.skill_id === at} />)}</div>}</>;
}

export default function Skills({params}: {params: Record<string, string>}) {
	const id = params.skill ?? '';
	const [making, make] = useState(false);
	useTitle(id ? `${id}, skill` : 'Skills');
	useShortcuts([{keys: '/', does: 'Find skills', run: () => document.querySelector<HTMLInputElement>('.skills-find input')?.focus()},
		...(id ? [{keys: 'Escape', does: 'Close the skill', run: () => go(`skills${location.search}`)}] : [])]);
	return <div className="skills" data-open={id ? '' : undefined}>
		<div className="skills-main"><Top title="Skills"><Find /><button type="button" className="btn" onClick={() => make(true)}><Plus size={14} aria-hidden />New skill</button></Top>
			<div className="scroll"><div className="page skills-page"><Why /><List at={id} /></div></div></div>
		{id && <Panel key={id} id={id} />}
		{making && <Dialog title="New skill" close={() => make(false)} className="skills-new"><Editor id="" text={FIRST} done={(name) => { make(false); go(`skills/${encodeURIComponent(name)}`); }} /></Dialog>}
	</div>;
}
