// base.ts - where the page lives. The server may be behind a prefix that it does not know itself,
// so the address of this very file, BASE/page/NAME, says it.
export const BASE: string = import.meta.env.DEV ? '/' : new URL(/* @vite-ignore */ '../', import.meta.url).pathname;

/** The address of something of the server: a path such as "api/runs", with or without a slash before it. */
export function at(path: string): string {
	return BASE + path.replace(/^\//, '');
}

/** The address of a view: '' is home, 'c/ID' a conversation. */
export function view(path: string): string {
	return path === '' ? BASE : `${BASE}ui/${path}`;
}
