// data.ts - what the screen of skills reads.
import {useQuery} from '@tanstack/react-query';
import {askJson} from '../../lib/api';
import type {RunRecord} from '../../lib/types';

export interface Skill {
	skill_id: string;
	version: string;
	title: string;
	description: string;
	enabled: boolean;
	origin: string;
	revision: string;
	folder?: string;
	stored_version?: number;
	updated_at?: string;
	metrics: {successes: number; failures: number};
	score?: number;
	method?: string;
}

export interface SkillText {
	skill_id?: string;
	description?: string;
	triggers?: {keywords?: string[]; patterns?: string[]; semantic?: string[]};
	prompt_overlay?: string;
	preferred_tools?: string[];
	tool_templates?: Record<string, unknown>;
	constraints?: {allow?: string[]; deny?: string[]};
	requires?: Record<string, string[]>;
	post_processing?: Record<string, unknown>[];
	metadata?: Record<string, unknown>;
	[more: string]: unknown;
}

export interface Choice {
	skill_id: string;
	version: string;
	title: string;
	score: number;
	selection_method: string;
	similarity: number;
	freshness: number;
	success_rate: number;
	preference: number;
	gate?: string;
	active?: boolean;
}

export interface Trial {
	candidates: Choice[];
	injected: {skill_id: string; prompt_overlay: string; preferred_tools: string[]}[];
	tools: string[];
	tools_removed: string[];
}

export interface Version { stored_version: number; change: string; revision: string | null; at: string }

const path = (id: string) => `api/skills/${encodeURIComponent(id)}`;

export const useSkills = (q: string) => useQuery({queryKey: ['skills', q], placeholderData: (old) => old,
	queryFn: () => askJson<{skills: Skill[]; broken: {folder: string; error: string}[]}>(`api/skills${q ? `?q=${encodeURIComponent(q)}` : ''}`)});

export const useSkill = (id: string) => useQuery({queryKey: ['skill', id], queryFn: () => askJson<Skill & {skill: SkillText}>(path(id))});

export const useVersions = (id: string, on: boolean) => useQuery({queryKey: ['skill', id, 'versions'], enabled: on,
	queryFn: () => askJson<{versions: Version[]; more: boolean}>(`${path(id)}/versions`)});

export const useVersion = (id: string, version: number) => useQuery({queryKey: ['skill', id, 'version', version], enabled: version > 0, staleTime: Infinity,
	queryFn: () => askJson<{skill: SkillText}>(`${path(id)}?version=${version}`)});

export const useTrial = (message: string, agent: string) => useQuery({queryKey: ['skills-test', message, agent], enabled: message !== '', staleTime: 0,
	queryFn: () => askJson<Trial>('api/skills-test', {body: {message, ...(agent ? {agent_id: agent} : {})}})});

export const useRecent = (on: boolean) => useQuery({queryKey: ['runs', 'recent'], enabled: on, queryFn: () => askJson<{runs: RunRecord[]}>('api/runs?limit=50')});

/** What the log says that a run was told: the first context of it. */
export const useChosen = (run: string) => useQuery({queryKey: ['chosen-skills', run], enabled: run !== '',
	queryFn: async () => {
		const page = await askJson<{events: {run_sequence: number; payload: {selected_skills?: Choice[]; narrowed_by?: string[]}}[]}>(
			`api/runs/${encodeURIComponent(run)}/events?types=context.resolved&limit=20`);
		const first = page.events[0];
		return first ? {number: first.run_sequence, skills: first.payload.selected_skills ?? [], narrowed: first.payload.narrowed_by ?? []} : null;
	}});

export const save = (id: string, text: SkillText) => askJson<{stored_version: number; changed: boolean}>(path(id), {method: 'PUT', body: text});
export const remove = (id: string) => askJson(path(id), {method: 'DELETE'});
