// data.ts - what the screen of knowledge reads and sends.
import {useInfiniteQuery, useQuery} from '@tanstack/react-query';
import {askJson} from '../../lib/api';
import {client} from '../../lib/query';

export interface Collection {
	collection: string;
	documents: number;
	passages: number;
	pending: number;
	failed: number;
	embedding: string;
	policy: {mode?: string; top_k?: number; deny_labels?: string; citation_required?: boolean; expand?: boolean};
}
export interface Index { state: string; was_damaged: boolean; document_id: string | null; passages_done: number; passages_total: number }
export interface Document {
	document_id: string;
	collection: string;
	title: string;
	source: string;
	media_type: string;
	labels: string;
	bytes: number;
	passages: number;
	sha256: string;
	state: string;
	error?: string;
	updated_at: string;
}
export interface Passage {
	chunk: number;
	sha256: string;
	position: number;
	collection: string;
	document_id: string;
	title: string;
	source: string;
	heading: string;
	page: number;
	line: number;
	text: string;
	score: number;
	keyword: number;
	similarity: number;
	related: boolean;
}
export interface Relation { from: string; kind: string; to: string; document_id: string; by: string; at: string }

const AT_WORK = 700; // ms between two looks while documents are pending; there is no stream of the index

export const pathOf = (collection: string) => `api/kb/${encodeURIComponent(collection)}`;
const documentPath = (collection: string, id: string) => `${pathOf(collection)}/documents/${encodeURIComponent(id)}`;

/** How many documents wait, of all collections. */
export const pendingOf = (list: Collection[] | undefined) => (list ?? []).reduce((n, c) => n + c.pending, 0);

export const useCollections = () => useQuery({queryKey: ['kb'], queryFn: () => askJson<{index: Index; collections: Collection[]}>('api/kb'),
	refetchInterval: (q) => q.state.data && (q.state.data.index.state === 'working' || pendingOf(q.state.data.collections) > 0) ? AT_WORK : false});

export const useDocuments = (collection: string) => useInfiniteQuery({queryKey: ['kb', collection, 'documents'], initialPageParam: '',
	queryFn: ({pageParam}) => askJson<{documents: Document[]; more: boolean}>(`${pathOf(collection)}/documents${pageParam ? `?after=${encodeURIComponent(pageParam)}` : ''}`),
	getNextPageParam: (page) => page.more ? page.documents.at(-1)?.document_id : undefined, 
	refetchInterval: (q) => q.state.data?.pages.some((p) => p.documents.some((d) => d.state === 'pending')) ? AT_WORK : false});

export const useSearch = (collection: string, query: string, mode: string, expand: boolean) => useQuery({queryKey: ['kb', collection, 'search', query, mode, expand], enabled: query !== '',
	queryFn: () => askJson<{passages: Passage[]}>(`${pathOf(collection)}/search`, {body: {query, mode, k: 10, expand}})});

export const useDocument = (collection: string, id: string) => useQuery({queryKey: ['kb', collection, 'document', id], queryFn: () => askJson<Document>(documentPath(collection, id))});

export const usePassage = (collection: string, id: string, passage: string) => useQuery({queryKey: ['kb', collection, 'passage', id, passage], enabled: passage !== '',
	queryFn: () => askJson<Document & {passage: Passage}>(`${documentPath(collection, id)}?${passage.length === 64 ? 'passage' : 'chunk'}=${encodeURIComponent(passage)}`)});

const PAGE = 200;
/** The passages around one: the page of answers that holds it. */
export const usePassages = (collection: string, id: string, from: number, on: boolean) => useQuery({queryKey: ['kb', collection, 'passages', id, from], enabled: on, placeholderData: (old) => old,
	queryFn: () => askJson<{passages: Passage[]; more: boolean}>(`${documentPath(collection, id)}/passages?from=${from}`)});
export const pageBefore = (from: number) => Math.max(0, from - PAGE);
export const pageAfter = (from: number) => from + PAGE;

export const useRelations = (collection: string, entity: string) => useQuery({queryKey: ['kb', collection, 'relations', entity], enabled: entity !== '',
	queryFn: () => askJson<{relations: Relation[]}>(`${pathOf(collection)}/relations?entity=${encodeURIComponent(entity)}&depth=2`)});

export interface Draft { document_id?: string; title?: string; source?: string; text?: string; content?: string; url?: string; labels?: string }
export const put = (collection: string, draft: Draft) => askJson<{document_id: string; change: string; state?: string; passages_written: number; passages_kept: number}>(`${pathOf(collection)}/documents`, {method: 'PUT', body: draft});
export const removeDocument = (collection: string, id: string) => askJson(documentPath(collection, id), {method: 'DELETE'});
export const removeCollection = (collection: string) => askJson<{documents_removed: number}>(pathOf(collection), {method: 'DELETE'});
export const setPolicy = (collection: string, policy: Collection['policy']) => askJson(pathOf(collection), {method: 'PUT', body: policy});
export const checkIndex = () => askJson<{ok: boolean; damage?: string; documents: number; passages: number}>('api/kb-index/check', {method: 'POST'});
export const rebuildIndex = () => askJson('api/kb-index/rebuild', {method: 'POST'});

export const renew = () => client.invalidateQueries({queryKey: ['kb']});

/** A name that the server takes: letters, digits and . _ - / */
export const nameOf = (name: string) => name.replace(/[^\p{L}\p{N}._/-]/gu, '_').slice(-100);

export function base64(bytes: Uint8Array): string {
	let text = '';
	for (let i = 0; i < bytes.length; i += 0x8000)
		text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
	return btoa(text);
}
