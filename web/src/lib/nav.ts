// nav.ts - the address is the state: which view, which filters.
import {useLocation, useSearchParams} from 'wouter';
import {BASE, view} from './base';

/** Goes to a view: go('c/ID'), go('') is home. */
export function go(path: string, o: {replace?: boolean} = {}): void {
	history[o.replace ? 'replaceState' : 'pushState'](null, '', view(path));
}

/** The path of the view, without the prefix: '' or 'c/ID'. */
export function useView(): string {
	const [path] = useLocation();
	return viewOf(path);
}

export function viewOf(path: string): string {
	const rest = path.startsWith(BASE) ? path.slice(BASE.length) : '';
	return rest.replace(/^ui\/?/, '').replace(/\/$/, '');
}

/** A member of the query, kept in the address; '' takes it out. */
export function useFilter(name: string): [string, (value: string) => void] {
	const [params, set] = useSearchParams();
	return [params.get(name) ?? '', (value) => set((old) => {
		const fresh = new URLSearchParams(old);
		if (value)
			fresh.set(name, value);
		else
			fresh.delete(name);
		return fresh;
	}, {replace: true})];
}
