// Why.tsx - which skills a message would choose, or a run has chosen, and why.
import {Ban, CheckCircle2, ChevronRight, CircleDashed} from 'lucide-react';
import {type FormEvent, useEffect, useState} from 'react';
import {A, Bones, ProblemNote, Segment} from '../../components/ui';
import {useFilter} from '../../lib/nav';
import {useAgents} from '../../lib/query';
import {leads} from '../../routes';
import {type Choice, type Trial, useChosen, useRecent, useTrial} from './data';

const GATES: Record<string, string> = {passed: 'Passed', rank: 'Others ranked higher', disabled: 'It is switched off',
	scope: 'Not for this tenant or workspace', capability: 'The model lacks a capability', tool: 'A tool that it needs is missing'};
const METHODS: Record<string, string> = {keyword: 'a keyword', pattern: 'a pattern', similarity: 'what it means'};

const percent = (v: number) => `${Math.round((Number.isFinite(v) ? v : 0) * 100)} %`;

function Factor({name, value}: {name: string; value: number}) {
	return <span className="skills-factor"><span className="t3">{name}</span><i aria-hidden><b style={{width: `${Math.round(Math.max(0, Math.min(1, value || 0)) * 100)}%`}} /></i><span className="num">{percent(value)}</span></span>;
}

function Candidate({c, trial}: {c: Choice; trial: boolean}) {
	const active = trial ? c.active : true;
	const gate = c.gate ?? 'passed';
	const Icon = active ? CheckCircle2 : gate === 'rank' ? CircleDashed : Ban;
	return <li className="skills-candidate" data-active={active ? '' : undefined} data-skill={c.skill_id}>
		<div className="row wrap"><span className="state" data-kind={active ? 'ok' : 'queued'}><Icon size={14} aria-hidden />{active ? 'Chosen' : 'Left out'}</span>
			<A className="strong cut" to={`skills/${encodeURIComponent(c.skill_id)}${location.search}`}>{c.title || c.skill_id}</A><span className="mono f11 t3">{c.skill_id} {c.version}</span>
			<span className="grow" /><span className="num f12">score {c.score.toFixed(3)}</span></div>
		<p className="f12 t2">Found by {METHODS[c.selection_method] ?? c.selection_method}. {active ? '' : `${GATES[gate] ?? gate}.`}</p>
		<div className="skills-factors f12"><Factor name="Similarity" value={c.similarity} /><Factor name="Freshness" value={c.freshness} /><Factor name="Success" value={c.success_rate} /><Factor name="Preference" value={c.preference} /></div>
	</li>;
}

function Names({title, list, empty}: {title: string; list: string[]; empty: string}) {
	return <details className="skills-names f12"><summary><ChevronRight size={14} className="t3" aria-hidden /><strong>{title}</strong><span className="t3">{list.length}</span></summary>
		{list.length ? <p className="mono f11">{list.join('  ')}</p> : <p className="t3">{empty}</p>}</details>;
}

function Outcome({trial}: {trial: Trial}) {
	const active = trial.candidates.filter((c) => c.active).length;
	return <div className="skills-outcome" aria-live="polite">
		<p className="f12 t2">{trial.candidates.length === 0 ? 'No skill is a candidate: no keyword or pattern is in the message, and none is similar enough.'
			: `${trial.candidates.length} ${trial.candidates.length === 1 ? 'candidate' : 'candidates'}, ${active} chosen.`}</p>
		{trial.candidates.length > 0 && <ol className="card" aria-label="Candidates">{trial.candidates.map((c) => <Candidate key={c.skill_id} c={c} trial />)}</ol>}
		{trial.injected.length > 0 && <section aria-label="What the model is told"><h3 className="f12">What the model is told</h3>
			{trial.injected.map((i) => <pre className="skills-overlay" key={i.skill_id} tabIndex={0} aria-label={`Overlay of ${i.skill_id}`}>{i.prompt_overlay || '(no text)'}{i.preferred_tools.length ? `\npreferred_tools: ${i.preferred_tools.join(', ')}` : ''}</pre>)}</section>}
		<Names title="Tools that remain" list={trial.tools} empty="none" />
		<Names title="Tools that the skills take away" list={trial.tools_removed} empty="none" />
	</div>;
}

function TryMessage() {
	const [message, setMessage] = useFilter('message');
	const [agent, setAgent] = useFilter('agent');
	const [text, type] = useState(message);
	const agents = useAgents();
	const trial = useTrial(message, agent);
	useEffect(() => type(message), [message]);
	const submit = (e: FormEvent) => {
		e.preventDefault();
		if (text.trim() === message)
			void trial.refetch();
		setMessage(text.trim());
	};
	return <><form className="skills-try" onSubmit={submit}>
		<div className="field grow"><label htmlFor="skills-message">Message</label>
			<input id="skills-message" className="input" value={text} placeholder="search docs" onChange={(e) => type(e.target.value)} /></div>
		<div className="field"><label htmlFor="skills-agent">Agent</label>
			<select id="skills-agent" className="select" value={agent} onChange={(e) => setAgent(e.target.value)}><option value="">None: every tool</option>
				{(agents.data?.agents ?? []).map((a) => <option key={a.agent_id} value={a.agent_id}>{a.title || a.agent_id}</option>)}</select></div>
		<button type="submit" className="btn main-act" disabled={!text.trim()}>Test</button>
	</form>
	{trial.error ? <ProblemNote what="It could not be tested" error={trial.error} /> : message && trial.data ? <Outcome trial={trial.data} /> : message ? <Bones rows={2} /> : null}</>;
}

function OfRun() {
	const [run, set] = useFilter('run');
	const runs = useRecent(true);
	const chosen = useChosen(run);
	return <><div className="field"><label htmlFor="skills-run">Run</label>
		<select id="skills-run" className="select" value={run} onChange={(e) => set(e.target.value)}><option value="">Choose a run</option>
			{run && !runs.data?.runs.some((r) => r.run_id === run) && <option value={run}>{run}</option>}
			{(runs.data?.runs ?? []).map((r) => <option key={r.run_id} value={r.run_id}>{`${r.title || 'Untitled'} · ${r.agent_id}`}</option>)}</select></div>
	{chosen.error ? <ProblemNote what="The run could not be read" error={chosen.error} />
		: run && chosen.isSuccess ? <div className="skills-outcome" aria-live="polite">
			{!chosen.data ? <p className="f12 t2">Its log has no context: the agent is not one that UAR asks a model for.</p> : <>
				<p className="f12 t2">{chosen.data.skills.length === 0 ? 'No skill was chosen.' : `${chosen.data.skills.length} chosen before the model was called.`} {leads(`runs/${run}`) && <A className="link" to={`runs/${run}?e=${chosen.data.number}`}>Event #{chosen.data.number}</A>}</p>
				{chosen.data.skills.length > 0 && <ol className="card" aria-label="Chosen skills">{chosen.data.skills.map((c) => <Candidate key={c.skill_id} c={c} trial={false} />)}</ol>}
				{chosen.data.narrowed.length > 0 && <p className="f12">Tools were narrowed by <span className="mono">{chosen.data.narrowed.join(', ')}</span>.</p>}</>}
		</div> : null}</>;
}

export function Why() {
	const [of, set] = useFilter('of');
	const [run] = useFilter('run');
	const way = of === 'run' || (run && !of) ? 'run' : 'message';
	return <section className="card skills-why" aria-label="Why skills are chosen">
		<div className="row wrap"><h2 className="grow">Why a skill is chosen</h2>
			<Segment label="What is looked at" value={way} options={[['message', 'A message'], ['run', 'A run']]} set={set} /></div>
		{way === 'run' ? <OfRun /> : <TryMessage />}
	</section>;
}
