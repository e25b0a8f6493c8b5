// page_driver.mjs - a real browser on a leash.
//
// usage: node page_driver.mjs PLAYWRIGHT_CORE CHROMIUM SAFETY_MS
// Reads one JSON value a line. An object {width, height, dark, phone} opens a page in a
// profile of its own and closes the one before; the answer is the browser's version. A
// string is the body of an async function that gets `page` and `seen`, what the page did
// besides being shown. Answers {"value"} or {"error"}, one line each. Ends with its input.
import {createInterface} from 'node:readline';
import {createRequire} from 'node:module';

const [where, executablePath, safety] = process.argv.slice(2);
const {chromium} = createRequire(import.meta.url)(where);
const AsyncFunction = (async () => {}).constructor;
// A sealed frame has a process of its own, as in the Chromium that people use.
const args = ['--no-sandbox', '--disable-gpu', '--site-per-process', '--enable-features=IsolateSandboxedIframes'];
const browser = await chromium.launch({executablePath, args});
const own = new Set(Object.keys(globalThis));
let context, page, seen;

async function open({width, height, dark, phone}) {
	await context?.close();
	// What scripts of the page before have kept is gone with it.
	for (const name of Object.keys(globalThis).filter((n) => !own.has(n)))
		delete globalThis[name];
	context = await browser.newContext({viewport: {width, height}, colorScheme: dark ? 'dark' : 'light', hasTouch: phone, isMobile: phone, deviceScaleFactor: phone ? 2 : 1});
	page = await context.newPage();
	page.setDefaultTimeout(Number(safety));
	seen = watch(context);
	return browser.version();
}

function watch(context) {
	const seen = {hosts: new Set(), dialogs: 0, errors: [], violations: [], frames: false};
	const open = new Map();
	context.on('request', (r) => {
		if (/^(data|blob|about):/.test(r.url()))
			return;
		const {host} = new URL(r.url());
		open.set(host, (open.get(host) ?? 0) + 1);
		seen.hosts.add(host);
	});
	context.on('requestfailed', (r) => {
		// What the policy refused was never sent.
		if (r.failure()?.errorText !== 'csp')
			return;
		const {host} = new URL(r.url());
		open.set(host, open.get(host) - 1);
		if (!open.get(host))
			seen.hosts.delete(host);
	});
	context.on('dialog', (d) => { seen.dialogs++; d.dismiss(); });
	context.on('weberror', (e) => seen.errors.push(String(e.error())));
	context.on('console', (m) => {
		// What a sealed frame was refused is no fault of the page.
		if (/Content.Security.Policy|Trusted/i.test(m.text()) && !/frame\.html/.test(m.location().url) && !seen.frames)
			seen.violations.push(m.text());
	});
	return seen;
}

for await (const line of createInterface({input: process.stdin})) {
	try {
		const said = JSON.parse(line);
		const value = typeof said === 'string' ? await new AsyncFunction('page', 'seen', said)(page, seen) : await open(said);
		console.log(JSON.stringify({value: value ?? null}));
	} catch (e) {
		console.log(JSON.stringify({error: String(e?.stack ?? e)}));
	}
}
await browser.close();
