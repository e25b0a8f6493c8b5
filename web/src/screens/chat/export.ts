// export.ts - a conversation as a file: all of it, also what was not on the screen.
import {download} from '../../lib/save';
import {type Talk, type Turn, endingOf, wholeMessage} from '../../lib/talk';

function markdownOf(title: string, turns: Turn[]): string {
	return `# ${title}\n\n${turns.map((t) => `## You\n\n${t.message}\n\n## ${t.agent}\n\n${t.fold.blocks.map((b) => b.kind === 'text' ? b.text : b.kind === 'tool' ? `> Tool ${b.title}: ${b.state}` : '').filter(Boolean).join('\n\n') || `(${endingOf(t).words})`}`).join('\n\n')}\n`;
}

/** Everything that was said before, read to its end. */
async function readAll(talk: Talk): Promise<void> {
	while (talk.earlier && !talk.problem && !talk.left.signal.aborted)
		await talk.openEarlier();
	const ready = () => talk.left.signal.aborted || talk.turns.every((t) => !t.old || t.line === 'over');
	if (!ready())
		await new Promise<void>((done) => {
			const stop = talk.subscribe(() => {
				if (ready()) {
					stop();
					done();
				}
			});
		});
	for (const turn of talk.turns)
		await wholeMessage(turn);
}

export async function exportTalk(talk: Talk, title: string, form: 'md' | 'json'): Promise<void> {
	await readAll(talk);
	const name = (title || 'conversation').replace(/[^\p{L}\p{N} _-]+/gu, '_').slice(0, 60);
	download(`${name}.${form}`, form === 'md' ? markdownOf(title, talk.turns)
		: JSON.stringify(talk.turns.map((t) => ({message: t.message, run: t.record, blocks: t.fold.blocks})), null, 2));
}
