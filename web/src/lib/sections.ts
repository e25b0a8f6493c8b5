// sections.ts - what the rail leads to on this server: an older one has no jobs or no workflows.
import {useQuery} from '@tanstack/react-query';
import {NAV} from '../routes';
import {Problem, askJson, command} from './api';

const ASKS: Record<string, () => Promise<unknown>> = {jobs: () => command('list_jobs', {limit: 1}), flows: () => askJson('api/workflows')};

function useHas(what: string): boolean {
	return useQuery({queryKey: ['has', what], staleTime: Infinity, gcTime: Infinity, retry: (_, e) => !(e instanceof Problem), queryFn: () => ASKS[what]().then(() => true)}).data === true;
}

export function useNav(): typeof NAV {
	const has: Record<string, boolean> = {jobs: useHas('jobs'), flows: useHas('flows')};
	return NAV.filter((r) => has[r.screen] !== false);
}
