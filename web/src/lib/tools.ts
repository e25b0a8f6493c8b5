// tools.ts - what models may ask for, in words.
import {useQuery} from '@tanstack/react-query';
import {askJson} from './api';
import type {HealthKind} from '../components/Health';

export interface Tool {
	tool_id: string; name: string; model_name: string; description: string; version: string; transport: string; policy: string; effect: string;
	is_destructive?: boolean; tags?: string[]; timeout_ms?: number; input_schema?: Record<string, any>; output_schema?: Record<string, any> | null; runtime_owner?: string; interrupt_behavior?: string;
	[more: string]: unknown;
}

export const useTools = () => useQuery({queryKey: ['tools'], queryFn: () => askJson<{generation: number; tools: Tool[]}>('api/tools'), staleTime: 5000});

export const EFFECTS: Record<string, string> = {read_only: 'reads only', idempotent: 'changes, repeatable', once: 'changes, once only'};
export const effectOf = (t: Tool) => EFFECTS[t.effect] ?? t.effect;

/** What is so for every agent; a policy may forbid more. */
export function policyOf(policy: string): {kind: HealthKind; word: string} {
	switch (policy) {
	case 'allowed': return {kind: 'ok', word: 'Allowed'};
	case 'sandboxed': return {kind: 'ok', word: 'Allowed, fenced in'};
	case 'ask': return {kind: 'ask', word: 'Asks you'};
	case 'denied': return {kind: 'off', word: 'Denied'};
	default: return {kind: 'err', word: policy === 'unavailable' ? 'Not available' : policy};
	}
}
