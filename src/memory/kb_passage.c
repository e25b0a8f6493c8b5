/* kb_passage.c - passages of a document, and their addresses. */
#include "memory/kb_int.h"

uar_err kb_read_passage(sqlite3_stmt *st, struct uar_arena *arena, struct uar_kb_hit *out)
{
	uar_str *const to[] = { &out->collection, &out->document, &out->title, &out->source,
				&out->heading,	  &out->text,	  &out->sha256 };

	*out = (struct uar_kb_hit){ .line = sqlite3_column_int64(st, 7),
				    .page = sqlite3_column_int64(st, 8),
				    .chunk = sqlite3_column_int64(st, 9),
				    .position = sqlite3_column_int64(st, 10) };
	return kb_copy_texts(st, to, ARRAY_LEN(to), arena);
}

static uar_err read_locked(struct uar_kb *kb, const struct uar_kb_reading *r,
			   struct uar_arena *arena, struct uar_kb_hits *out,
			   struct uar_error *error)
{
	uar_str by[] = { kb_owner(&r->place.owner, arena), r->place.collection, r->document,
			 r->sha256 };
	sqlite3_stmt *st = NULL;
	uar_err e = kb_prepare(kb,
			       KB_PASSAGE " d.owner = ?1 AND d.collection = ?2 AND d.name = ?3"
					  " AND (?4 = '' OR c.sha256 = ?4)"
					  " AND (?5 = 0 OR c.id = ?5) AND c.n >= ?6"
					  " AND (NOT ?8 OR NOT EXISTS (SELECT 1 FROM collections k"
					  " WHERE k.owner = d.owner AND k.name = d.collection AND"
					  " shares_word(d.labels, iif(json_valid(k.policy),"
					  " json_extract(k.policy, '$.deny_labels'), ''))))"
					  " ORDER BY c.n LIMIT ?7",
			       &st, error);

	if (!e) {
		kb_bind_texts(st, by, ARRAY_LEN(by));
		sqlite3_bind_int64(st, 5, r->chunk);
		sqlite3_bind_int64(st, 6, r->from);
		sqlite3_bind_int(st, 7, UAR_LIMIT_KB_PAGE);
		sqlite3_bind_int(st, 8, r->by_policy);
	}
	while (!e && out->n < UAR_LIMIT_KB_PAGE && kb_step(kb, st, &e, error))
		e = kb_read_passage(st, arena, &out->at[out->n++]);
	sqlite3_finalize(st);
	return e;
}

uar_err uar_kb_passages(struct uar_kb *kb, const struct uar_kb_reading *r, struct uar_arena *arena,
			struct uar_kb_hits *out, struct uar_error *error)
{
	struct uar_kb_hits list = { .at = uar_arena_alloc(arena,
							  UAR_LIMIT_KB_PAGE * sizeof *list.at) };
	uar_err e = UAR_ENOMEM;

	kb = kb->reader;
	pthread_mutex_lock(&kb->lock);
	if (list.at)
		e = read_locked(kb, r, arena, &list, error);
	pthread_mutex_unlock(&kb->lock);
	if (!e)
		*out = list;
	return e;
}

/* Slashes would be steps of the path, and an address is ASCII. */
static char *put_name(char *to, uar_str name)
{
	static const char digits[] = "0123456789ABCDEF";

	for (size_t i = 0; i < name.n && i < UAR_LIMIT_KB_NAME; i++) {
		unsigned char b = (unsigned char)name.p[i];

		if (b != '/' && b < 0x80) {
			*to++ = (char)b;
			continue;
		}
		*to++ = '%';
		*to++ = digits[b >> 4];
		*to++ = digits[b & 15];
	}
	return to;
}

void uar_kb_passage_path(const struct uar_kb_hit *h, char out[UAR_KB_PATH])
{
	static const char before[] = "/api/kb/", between[] = "/documents/";
	char *to = (char *)memcpy(out, before, sizeof before - 1) + sizeof before - 1;

	to = put_name(to, h->collection);
	to = (char *)memcpy(to, between, sizeof between - 1) + sizeof between - 1;
	to = put_name(to, h->document);
	snprintf(to, (size_t)(out + UAR_KB_PATH - to), "?passage=%.*s", UAR_FMT(h->sha256));
}
