// Panel.tsx - an artifact beside the conversation: preview in the sealed frame, code, versions, changes, download.
import {useQuery} from '@tanstack/react-query';
import {Download, OctagonX, ShieldCheck, X} from 'lucide-react';
import {lazy, Suspense, useEffect, useState} from 'react';
import {Frame, type Report} from '../../components/Frame';
import {CopyButton, Segment} from '../../components/ui';
import {ask, askJson} from '../../lib/api';
import type {Artifact} from '../../lib/fold';
import {bytes, plain} from '../../lib/format';
import {useShortcuts} from '../../lib/keys';
import {patiently} from '../../lib/patient';
import {download} from '../../lib/save';
import {say} from '../../lib/say';

const Markdown = lazy(() => patiently(() => import('../../components/Markdown')).then((m) => ({default: m.Markdown})));
const Code = lazy(() => patiently(() => import('../../components/Code')).then((m) => ({default: m.Code})));

type Look = 'preview' | 'code' | 'changes';
const ENDINGS: Record<string, string> = {html: 'html', svg: 'svg', mermaid: 'mmd', markdown: 'md', python: 'py', javascript: 'js', typescript: 'ts', json: 'json', sql: 'sql', css: 'css', c: 'c', sh: 'sh', bash: 'sh', yaml: 'yaml', csv: 'csv'};

function kindOf(a: Artifact): string {
	return (['html', 'svg', 'mermaid', 'markdown'].includes(a.artifact_type) ? a.artifact_type : a.language || a.artifact_type || '').toLowerCase();
}

/** A name that no system takes for something else; the type is always plain bytes of text. */
export function fileName(a: Artifact): string {
	const stem = a.title.normalize('NFKC').replace(/[^\p{L}\p{N}._ -]+/gu, '_').replace(/\.{2,}/g, '.').replace(/^[. _]+|[. _]+$/g, '').slice(0, 80) || 'artifact';
	const ending = (Object.hasOwn(ENDINGS, kindOf(a)) && ENDINGS[kindOf(a)]) || 'txt';
	return stem.toLowerCase().endsWith(`.${ending}`) ? stem : `${stem}.${ending}`;
}

function useContent(a: Artifact): {content: string | null; error: unknown} {
	const ref = a.content_ref?.replace('blob://', '') ?? '';
	const {data, error} = useQuery({queryKey: ['blob', ref], enabled: ref !== '', staleTime: Infinity,
		queryFn: async () => (await ask(`api/runs/${encodeURIComponent(a.run)}/blobs/${ref}`)).text()});
	return {content: ref ? data ?? null : a.content, error};
}

function Changes({before, now}: {before: string; now: string}) {
	const {data} = useQuery({queryKey: ['diff', before, now], staleTime: Infinity, gcTime: 0, queryFn: async () => (await import('diff')).diffLines(before, now)});
	return <div className="diff" role="group" aria-label="Changes" tabIndex={0}>{(data ?? []).flatMap((part, p) => part.value.replace(/\n$/, '').split('\n').map((line, i) => {
		const sign = part.added ? '+' : part.removed ? '-' : ' ';
		return <div key={`${p}.${i}`} data-sign={sign}><b>{sign}</b><code>{line}</code></div>;
	}))}</div>;
}

function Preview({artifact, content}: {artifact: Artifact; content: string}) {
	const [errors, setErrors] = useState<string[]>([]);
	const kind = kindOf(artifact);
	const report: Report = (what, message, details) => {
		if (what === 'shown')
			return;
		const text = what === 'blocked' ? `Blocked: ${message}` : message;
		setErrors((now) => [...now, text].slice(-20));
		say('The preview reported an error.');
		askJson(`api/runs/${encodeURIComponent(artifact.run)}/artifacts/${encodeURIComponent(artifact.artifact_id)}/errors`, {body: {message: text.slice(0, 1000), details}}).catch(() => {});
	};
	useEffect(() => setErrors([]), [artifact, content]);
	return <div className="preview">
		{kind === 'html' || kind === 'svg' || kind === 'mermaid' ? <Frame kind={kind} content={content} title={`Preview of ${artifact.title}`} report={report} />
			: <div className="preview-text"><Suspense fallback={null}><Markdown text={content} done /></Suspense></div>}
		{kind !== 'markdown' && <p className="f12 t2 row"><ShieldCheck size={14} aria-hidden className="k-ok" />Runs in a sealed frame: no access to this page; requests are blocked</p>}
		{errors.length > 0 && <div className="problem" role="alert"><strong><OctagonX size={14} aria-hidden />The preview reported {errors.length === 1 ? 'an error' : `${errors.length} errors`}</strong>{errors.map((e, i) => <code key={i} className="f12">{plain(e)}</code>)}</div>}
	</div>;
}

export function Panel({artifact, versions, show, close}: {artifact: Artifact; versions: Artifact[]; show: (a: Artifact) => void; close: () => void}) {
	const kind = kindOf(artifact), previews = ['html', 'svg', 'mermaid', 'markdown'].includes(kind);
	const [look, setLook] = useState<Look>('preview');
	const at = versions.indexOf(artifact), before = at > 0 ? versions[at - 1] : null;
	const {content, error} = useContent(artifact);
	const earlier = useContent(before ?? artifact);
	const now: Look = look === 'preview' && !previews ? 'code' : look === 'changes' && !before ? 'code' : look;
	useShortcuts([{keys: ']', does: 'Close the panel', run: close}, {keys: 'Escape', does: 'Close the panel', run: close}]);
	return <aside className="panel" aria-label="Artifact">
		<header className="top"><h2 className="cut">{plain(artifact.title)}</h2><span className="grow" />
			{versions.length > 1 && <select className="select pick" aria-label="Version" value={at} onChange={(e) => show(versions[Number(e.target.value)])}>{versions.map((_, i) => <option key={i} value={i}>v{i + 1}</option>)}</select>}
			<button type="button" className="btn quiet icon" aria-label="Close the panel" title="Close (])" onClick={close}><X size={16} aria-hidden /></button></header>
		<div className="panel-bar row wrap"><Segment label="View" value={now} set={setLook} options={[...(previews ? [['preview', 'Preview'] as [Look, string]] : []), ['code', 'Code'], ...(before ? [['changes', `Changes v${at} to v${at + 1}`] as [Look, string]] : [])]} />
			<span className="grow" /><span className="f11 t3">{content === null ? '' : bytes(new Blob([content]).size)} <span className="mono">#{artifact.event}</span></span>
			{content !== null && <><CopyButton text={content} icon /><button type="button" className="btn quiet icon" aria-label={`Download ${fileName(artifact)}`} title="Download" onClick={() => download(fileName(artifact), content)}><Download size={15} aria-hidden /></button></>}</div>
		<div className="panel-body scroll">{error ? <p className="wrong">The content could not be read.</p> : content === null ? <p className="t3">Reading it</p>
			: now === 'preview' ? <Preview key={`${artifact.run} ${artifact.event}`} artifact={artifact} content={content} />
				: now === 'changes' && earlier.content !== null ? <Changes before={earlier.content} now={content} />
					: <Suspense fallback={null}><Code text={content} language={kind === 'mermaid' ? 'text' : kind} closed name={fileName(artifact)} /></Suspense>}</div>
	</aside>;
}
