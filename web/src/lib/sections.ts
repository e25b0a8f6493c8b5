// sections.ts - what the rail leads to on this server: an older one has no jobs.
import {useQuery} from '@tanstack/react-query';
import {NAV} from '../routes';
import {Problem, command} from './api';

export function useNav(): typeof NAV {
	const jobs = useQuery({queryKey: ['has', 'jobs'], staleTime: Infinity, gcTime: Infinity, retry: (_, e) => !(e instanceof Problem), queryFn: () => command('list_jobs', {limit: 1}).then(() => true)});
	return jobs.data ? NAV : NAV.filter((r) => r.screen !== 'jobs');
}
