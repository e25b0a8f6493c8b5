// How the page is built: relative addresses, so that it works below any prefix, names with a
// hash, so that a browser keeps files for good, and the licences of all that is inside.
import react from '@vitejs/plugin-react';
import {existsSync, readFileSync, readdirSync, writeFileSync, copyFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {defineConfig, type Plugin} from 'vite';

const DEPTHS = 4; // a path of the page below /ui has at most so many segments

/** The folder of the package that a module belongs to. */
function packageOf(id: string): string | null {
	const at = id.lastIndexOf('node_modules/');
	if (at < 0)
		return null;
	const parts = id.slice(at + 13).split('/');
	return id.slice(0, at + 13) + parts.slice(0, parts[0].startsWith('@') ? 2 : 1).join('/');
}

function licenceOf(folder: string): [string, string] {
	const about = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
	const file = readdirSync(folder).sort().find((name) => /^(licen[cs]e|copying)/i.test(name));
	const text = file ? readFileSync(join(folder, file), 'utf8').replace(/\r/g, '').trim() : `Licence: ${about.license}`;
	return [`${about.name} ${about.version} (${about.license})`, text];
}

/** Everything that a package is made of, for one that comes as a finished file. */
function dependenciesOf(folder: string, into: Set<string>): void {
	if (into.has(folder))
		return;
	into.add(folder);
	const about = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
	for (const name of Object.keys(about.dependencies ?? {})) {
		for (let at = folder; at !== dirname(at); at = dirname(at)) {
			const found = join(at, 'node_modules', name);
			if (existsSync(join(found, 'package.json'))) {
				dependenciesOf(found, into);
				break;
			}
		}
	}
}

/** LICENSES, and index.html once for each depth of path that it is served at. */
function finish(): Plugin {
	const folders = new Set<string>();
	let out = '';
	return {
		name: 'finish',
		apply: 'build',
		configResolved(config) { out = config.build.outDir; },
		generateBundle(_, bundle) {
			for (const chunk of Object.values(bundle)) {
				if (chunk.type !== 'chunk')
					continue;
				for (const id of Object.keys(chunk.modules)) {
					const folder = packageOf(id);
					if (folder)
						folders.add(folder);
				}
			}
		},
		closeBundle() {
			const root = join(import.meta.dirname, 'node_modules');
			dependenciesOf(join(root, 'mermaid'), folders);
			const all = [...folders].map(licenceOf).sort((a, b) => a[0] < b[0] ? -1 : 1);
			const seen = new Map(all);
			writeFileSync(join(out, 'LICENSES'), 'What the built page contains besides the code of UAR itself, with the licence of each.\n\n' +
				[...seen].map(([name, text]) => `${'-'.repeat(78)}\n${name}\n\n${text}\n`).join('\n'));
			const html = readFileSync(join(out, 'index.html'), 'utf8');
			for (let depth = 1; depth < DEPTHS; depth++)
				writeFileSync(join(out, `index-${depth}.html`), html.replaceAll('"./page/', `"${'../'.repeat(depth)}page/`));
			copyFileSync(join(import.meta.dirname, 'frame.html'), join(out, 'page', 'frame.html'));
		},
	};
}

const server = process.env.UAR_URL ?? 'http://127.0.0.1:8080';
const toServer = {
	target: server,
	changeOrigin: true,
	configure: (proxy: {on: (name: string, fn: (request: {removeHeader: (name: string) => void}) => void) => void}) =>
		proxy.on('proxyReq', (request) => request.removeHeader('origin')),
};

export default defineConfig({
	base: './',
	plugins: [react(), finish()],
	// Its other form decodes by innerHTML, which Trusted Types forbid.
	resolve: {alias: {'decode-named-character-reference': join(import.meta.dirname, 'node_modules/decode-named-character-reference/index.js')}},
	build: {
		outDir: process.env.UAR_WEB_OUT ?? join(import.meta.dirname, 'dist'),
		emptyOutDir: true,
		assetsDir: 'page',
		assetsInlineLimit: 0,
		modulePreload: {polyfill: false},
		target: 'es2022',
		reportCompressedSize: false,
		chunkSizeWarningLimit: 4000,
	},
	server: {
		proxy: Object.fromEntries(['/api', '/channels', '/runs', '/version', '/ready', '/metrics', '/plugins', '/uploads', '/page/frame.html']
			.map((path) => [path, toServer])),
	},
});
