// Model.tsx - which model answers, where the agent leaves a choice.
import {useQuery} from '@tanstack/react-query';
import {useEffect, useState} from 'react';
import {askJson} from '../../lib/api';
import {useModel} from '../../lib/choice';
import type {Agent, Model} from '../../lib/types';

const OTHER = '\0';
const nameOf = (m: Model) => `${m.provider}/${m.model}`;

export function ModelPick({agent, conversation}: {agent: Agent; conversation: string}) {
	const [model, choose] = useModel(conversation, agent.agent_id);
	const [typed, setTyped] = useState<string | null>(null);
	const offer = useQuery({queryKey: ['agent', agent.agent_id], enabled: agent.entry === 'llm.chat', staleTime: 30000,
		queryFn: () => askJson<Agent>(`api/agents/${encodeURIComponent(agent.agent_id)}`)}).data?.models;
	const names = offer?.choices.map(nameOf) ?? [];
	const gone = !!offer && !offer.open && model !== '' && !names.includes(model);
	useEffect(() => { // the agent is another one by now
		if (gone)
			choose('');
	}, [gone]); // eslint-disable-line react-hooks/exhaustive-deps
	if (!offer || (!offer.open && names.length < 2))
		return null;
	const take = () => {
		choose((typed ?? '').trim());
		setTyped(null);
	};
	if (typed !== null)
		return <input className="input mono pick-model" aria-label="Name of the model" placeholder="PROVIDER/MODEL" autoFocus maxLength={160} spellCheck={false} value={typed} onChange={(e) => setTyped(e.target.value)} onBlur={take}
			onKeyDown={(e) => {
				if (e.key === 'Escape')
					setTyped(null);
				if (e.key !== 'Enter')
					return;
				e.preventDefault(); // it is the name that ends here, not the message
				take();
			}} />;
	return <select className="select pick t2" aria-label="Model" title="Which model answers in this conversation" value={model} onChange={(e) => { if (e.target.value === OTHER) setTyped(model); else choose(e.target.value); }}>
		<option value="">Default ({offer.default.model})</option>
		{[...names, ...(model && !names.includes(model) ? [model] : [])].map((n) => <option key={n} value={n}>{n}</option>)}
		{offer.open && <option value={OTHER}>Another model…</option>}</select>;
}
