// Health.tsx - whether something works: icon, colour and word.
import {CheckCircle2, CircleDashed, CircleHelp, LoaderCircle, OctagonX, ShieldAlert, Ban, type LucideIcon} from 'lucide-react';

export type HealthKind = 'ok' | 'err' | 'ask' | 'wait' | 'busy' | 'off' | 'unknown';
const ICONS: Record<HealthKind, LucideIcon> = {ok: CheckCircle2, err: OctagonX, ask: ShieldAlert, wait: CircleDashed, busy: LoaderCircle, off: Ban, unknown: CircleHelp};

export function Health({kind, word, title}: {kind: HealthKind; word: string; title?: string}) {
	const Icon = ICONS[kind];
	return <span className="health" data-kind={kind === 'busy' || kind === 'off' || kind === 'unknown' ? 'wait' : kind} title={title}>
		<Icon size={14} aria-hidden className={kind === 'busy' ? 'spin' : undefined} />{word}</span>;
}
