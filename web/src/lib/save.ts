// save.ts - a text becomes a file of the person; its type is plain bytes, so that nothing opens it by itself.
export function download(name: string, text: string): void {
	const url = URL.createObjectURL(new Blob([text], {type: 'application/octet-stream'}));
	Object.assign(document.createElement('a'), {href: url, download: name}).click();
	setTimeout(() => URL.revokeObjectURL(url), 10000);
}
