// patient.ts - parts of the page that are loaded when they are needed: a server that is away for a moment is
// waited for, as everywhere else.
import {pause} from './api';
import {at} from './base';

const CSS = /^Unable to preload CSS for (\S+)/;

/** A style that did not come is not asked for again by the loader: it is here. */
function style(url: string): Promise<void> {
	return new Promise((done, failed) => {
		const link = Object.assign(document.createElement('link'), {rel: 'stylesheet', href: new URL(url, location.href).href});
		link.onload = () => done();
		link.onerror = () => { link.remove(); failed(new Error(`no ${url}`)); };
		document.head.append(link);
	});
}

export async function patiently<T>(load: () => Promise<T>): Promise<T> {
	const missing = new Set<string>();
	for (let wait = 300, tries = 0; ; wait = Math.min(wait * 1.6, 3000), tries++) {
		try {
			for (const url of missing) {
				await style(url);
				missing.delete(url);
			}
			return await load();
		} catch (e) {
			const css = CSS.exec((e as Error).message ?? '')?.[1];
			if (css)
				missing.add(css);
			const there = await fetch(at('ui'), {method: 'HEAD', cache: 'no-store'}).then((r) => r.ok, () => false);
			if (there && tries > 8)
				throw e; // the server answers and has no such file: it is of another version
		}
		await pause(wait);
	}
}
