// page_driver.mjs - a real browser on a leash.
//
// usage: node page_driver.mjs PLAYWRIGHT_CORE CHROMIUM SAFETY_MS
// Reads one JSON string a line: the body of an async function that gets `page` and
// `seen`, what the page did besides being shown. Answers {"value"} or {"error"}, one
// line each. Ends with its input.
import {createInterface} from 'node:readline';
import {createRequire} from 'node:module';

const [where, executablePath, safety] = process.argv.slice(2);
const {chromium} = createRequire(import.meta.url)(where);
const AsyncFunction = (async () => {}).constructor;
const browser = await chromium.launch({executablePath, args: ['--no-sandbox', '--disable-gpu']});
const page = await (await browser.newContext({viewport: {width: 1280, height: 800}})).newPage();
const seen = {hosts: new Set(), dialogs: 0, errors: [], violations: []};

page.setDefaultTimeout(Number(safety));
page.on('request', (r) => {
	if (!r.url().startsWith('data:'))
		seen.hosts.add(new URL(r.url()).host);
});
page.on('dialog', (d) => { seen.dialogs++; d.dismiss(); });
page.on('pageerror', (e) => seen.errors.push(String(e)));
page.on('console', (m) => {
	if (/Content.Security.Policy|Trusted/i.test(m.text()))
		seen.violations.push(m.text());
});

console.log(JSON.stringify({value: browser.version()}));
for await (const line of createInterface({input: process.stdin})) {
	try {
		const value = await new AsyncFunction('page', 'seen', JSON.parse(line))(page, seen);
		console.log(JSON.stringify({value: value ?? null}));
	} catch (e) {
		console.log(JSON.stringify({error: String(e?.stack ?? e)}));
	}
}
await browser.close();
