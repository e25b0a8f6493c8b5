// Models: providers, and how the calls of their models went.
import {useMutation, useQuery} from '@tanstack/react-query';
import {Brain, Stethoscope} from 'lucide-react';
import {Health} from '../../components/Health';
import {Ago, Bones, ProblemNote, Top} from '../../components/ui';
import {askJson} from '../../lib/api';
import {count, seconds, span} from '../../lib/format';
import {useTitle} from '../../lib/hooks';
import {useShortcuts} from '../../lib/keys';
import {say} from '../../lib/say';
import '../../styles/split.css';
import './models.css';

interface Model { model: string; known: boolean; tools: boolean; images: boolean; reasoning: boolean; context_tokens: number; input_usd_per_mtok: number; output_usd_per_mtok: number; calls: number; failures: number; health: string; last_at?: string; last_error?: {failure_category: string; message: string; at: string}; first_token_ms: number[] }
interface Provider { provider: string; dialect: string; url: string | null; models: Model[] }
interface Models { default: {provider: string; model: string}; providers: Provider[] }
interface Check { provider: string; status: string; took_ms: number; http_status?: number; message?: string; models: string[] }

function median(list: number[]): number {
	return [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
}

/** The latest calls, the last on the right. */
function Spark({values}: {values: number[]}) {
	const most = Math.max(...values, 1);
	return <span className="models-spark" role="img" aria-label={`First word of the latest ${values.length} calls: ${span(Math.min(...values) / 1000)} to ${span(most / 1000)}`}>{values.map((v, i) => <i key={i} style={{height: `${Math.max(8, v / most * 100)}%`}} title={span(v / 1000)} />)}</span>;
}

function abilities(m: Model): string {
	const can = [m.tools && 'tools', m.images && 'images', m.reasoning && 'reasoning'].filter(Boolean).join(', ');
	const price = m.input_usd_per_mtok || m.output_usd_per_mtok ? `$${m.input_usd_per_mtok} in, $${m.output_usd_per_mtok} out a million tokens` : '';
	return [m.known ? can || 'text alone' : 'not in the list of known models', m.context_tokens ? `${count(m.context_tokens)} tokens` : '', price].filter(Boolean).join(' · ');
}

function ModelRow({m, chosen}: {m: Model; chosen: boolean}) {
	return <li className="models-row" data-model={m.model}>
		<div className="models-name"><span className="strong mono cut">{m.model}</span>{chosen && <span className="badge">default</span>}<span className="f12 t3 models-can">{abilities(m)}</span></div>
		<div className="models-times">{m.first_token_ms.length > 0 ? <><Spark values={m.first_token_ms} /><span className="num f12 t2" title="Median time to the first word of the latest calls">{span(median(m.first_token_ms) / 1000)}</span></> : <span className="t3 f12">no answer yet</span>}</div>
		<div className="num f12 t2 models-count">{count(m.calls)} {m.calls === 1 ? 'call' : 'calls'}{m.failures ? `, ${count(m.failures)} failed` : ''}</div>
		<div className="models-health">{m.health === 'failing' ? <Health kind="err" word="Failing" /> : m.failures ? <Health kind="ask" word="Had failures" /> : <Health kind="ok" word="Healthy" />}</div>
		{m.last_error && <p className="f12 models-error" data-now={m.health === 'failing' ? '' : undefined}>{m.last_error.message} <span className="mono">{m.last_error.failure_category}</span>, <Ago at={seconds(m.last_error.at)} /></p>}
	</li>;
}

function ProviderCard({p, standard}: {p: Provider; standard: Models['default']}) {
	const check = useMutation({mutationFn: () => askJson<Check>('api/models/check', {body: {provider: p.provider}}), onSuccess: (c) => say(c.status === 'ok' ? `${p.provider} answers` : `${p.provider} fails: ${c.message ?? ''}`)});
	const c = check.data;
	const unused = standard.provider === p.provider && !p.models.some((m) => m.model === standard.model);
	return <section className="card models-card" aria-label={p.provider}>
		<header className="models-head"><Brain size={16} aria-hidden className="models-icon" /><h2>{p.provider}</h2><span className="badge">{p.dialect}</span>{p.url && <span className="mono f12 t3 cut">{p.url}</span>}<span className="grow" />
			<button type="button" className="btn" data-check disabled={check.isPending} onClick={() => check.mutate()}><Stethoscope size={13} aria-hidden />{check.isPending ? 'Asking' : 'Check now'}</button></header>
		{check.error && <div className="models-note"><ProblemNote what="It could not be asked" error={check.error} /></div>}
		{c && <div className="models-note" role="status">{c.status === 'ok' ? <><Health kind="ok" word={p.url ? `It answers, after ${c.took_ms} ms` : 'Part of the program: always there'} />{c.models.length > 0 && <details className="f12"><summary className="link">{count(c.models.length)} models offered</summary><ul className="models-offered mono">{c.models.map((m) => <li key={m}>{m}</li>)}</ul></details>}</>
			: <><Health kind="err" word="It does not answer as it should" /><p className="f12">{c.message}{c.http_status ? ` (status ${c.http_status})` : ''}. {c.http_status === 401 || c.http_status === 403 ? 'Look at the key that the setting names.' : 'Look at the address, the network and whether the provider runs.'}</p></>}</div>}
		<ul>{p.models.map((m) => <ModelRow key={m.model} m={m} chosen={standard.provider === p.provider && standard.model === m.model} />)}
			{unused && <li className="models-row"><div className="models-name"><span className="strong mono cut">{standard.model}</span><span className="badge">default</span></div><span className="t3 f12 models-idle">not called since the server was started</span></li>}
			{!p.models.length && !unused && <li className="models-row t3 f12">No call since the server was started.</li>}</ul>
	</section>;
}

export default function ModelsScreen() {
	useTitle('Models');
	const {data, error, isPending, refetch} = useQuery({queryKey: ['runs', 'models'], queryFn: () => askJson<Models>('api/models')});
	useShortcuts([{keys: 'E', does: 'Check the providers', run: () => document.querySelectorAll<HTMLElement>('[data-check]').forEach((b) => b.click())}]);
	const alone = data?.providers.every((p) => !p.url);
	return <><Top title="Models" about={data ? `${data.providers.length} ${data.providers.length === 1 ? 'provider' : 'providers'}` : undefined} />
		<div className="scroll"><div className="page models">
			{isPending ? <Bones rows={5} /> : error ? <ProblemNote what="The models could not be read" error={error} retry={() => void refetch()} /> : <>
				{alone && <div className="card models-hint"><h2>No provider is configured</h2><p className="t2">Agents use the scripted model, which needs no key. To use another, start the server with one of these:</p>
					<pre className="json" tabIndex={0}>{'OPENAI_API_KEY=… UAR_MODEL=openai/gpt-5 uar serve\nANTHROPIC_API_KEY=… UAR_MODEL=anthropic/claude-sonnet-4-5 uar serve\nOLLAMA_HOST=127.0.0.1 UAR_MODEL=ollama/qwen3 uar serve'}</pre></div>}
				{[...data.providers].sort((a, b) => Number(!a.url) - Number(!b.url)).map((p) => <ProviderCard key={p.provider} p={p} standard={data.default} />)}
				<p className="f12 t3">Calls are counted since the server was started. Which models an agent may use is in its definition.</p></>}
		</div></div></>;
}
