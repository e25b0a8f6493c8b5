/* kb_cover.c - covers(words): how much of a query a passage has, 0 to 1, for FTS5.
 *
 * Each word counts by how rare it is: a name or a number that stands in one passage alone says more
 * than a word of many, and words that no passage has say that this query is not about words. */
#include "memory/kb_int.h"

#include <math.h>

#include "base/alloc.h"

/* What the words of a query weigh: the same for all passages of it. */
struct weights {
	int n;
	double all, at[]; /* their sum; of each */
};

static int count_row(const Fts5ExtensionApi *api, Fts5Context *fts, void *ctx)
{
	(void)api, (void)fts;
	++*(int64_t *)ctx;
	return SQLITE_OK;
}

static int make_weights(const Fts5ExtensionApi *api, Fts5Context *fts, struct weights **out)
{
	int n = api->xPhraseCount(fts);
	struct weights *w = uar_zalloc(sizeof *w + (size_t)n * sizeof *w->at);
	sqlite3_int64 rows = 0;
	int rc = w ? api->xRowCount(fts, &rows) : SQLITE_NOMEM;

	for (int i = 0; i < n && rc == SQLITE_OK; i++) {
		int64_t having = 0;

		rc = api->xQueryPhrase(fts, i, &having, count_row);
		w->at[i] = log(1 + ((double)(rows - having) + 0.5) / ((double)having + 0.5));
		w->all += w->at[i];
	}
	if (w)
		w->n = n;
	if (rc == SQLITE_OK)
		rc = api->xSetAuxdata(fts, w, uar_free); /* on an error it frees it, too */
	else
		uar_free(w);
	*out = rc == SQLITE_OK ? w : NULL;
	return rc;
}

static void covers(const Fts5ExtensionApi *api, Fts5Context *fts, sqlite3_context *result, int argc,
		   sqlite3_value **argv)
{
	struct weights *w = api->xGetAuxdata(fts, 0);
	uint64_t seen = 0; /* a query has at most 64 words */
	int n = 0, rc = w ? SQLITE_OK : make_weights(api, fts, &w);
	double had = 0;

	(void)argc, (void)argv;
	if (rc == SQLITE_OK)
		rc = api->xInstCount(fts, &n);
	for (int i = 0; i < n && rc == SQLITE_OK; i++) {
		int phrase, column, offset;

		rc = api->xInst(fts, i, &phrase, &column, &offset);
		if (rc == SQLITE_OK && phrase < w->n && phrase < 64 && !(seen >> phrase & 1)) {
			seen |= UINT64_C(1) << phrase;
			had += w->at[phrase];
		}
	}
	if (rc == SQLITE_OK)
		sqlite3_result_double(result, w->all > 0 ? had / w->all : 0);
	else
		sqlite3_result_error_code(result, rc);
}

static uar_str value_text(sqlite3_value *v)
{
	const char *p = (const char *)sqlite3_value_text(v);

	return p ? uar_str_n(p, (size_t)sqlite3_value_bytes(v)) : UAR_STR("");
}

static bool has_word(uar_str words, uar_str word)
{
	while (words.n)
		if (uar_str_eq(uar_str_cut(words, ' ', &words), word))
			return true;
	return false;
}

/* Have two lists of words one in common? */
static void shares_word(sqlite3_context *result, int argc, sqlite3_value **argv)
{
	uar_str a = value_text(argv[0]), b = value_text(argv[1]);
	bool shares = false;

	(void)argc;
	while (a.n && b.n && !shares) {
		uar_str word = uar_str_cut(a, ' ', &a);

		shares = word.n && has_word(b, word);
	}
	sqlite3_result_int(result, shares);
}

uar_err kb_add_covers(struct uar_kb *kb, struct uar_error *error)
{
	fts5_api *api = NULL;
	sqlite3_stmt *st = NULL;
	uar_err e = kb_prepare(kb, "SELECT fts5(?1)", &st, error);

	if (e)
		return e;
	sqlite3_bind_pointer(st, 1, (void *)&api, "fts5_api_ptr", NULL);
	(void)sqlite3_step(st);
	sqlite3_finalize(st);
	if (!api || api->xCreateFunction(api, "covers", NULL, covers, NULL) != SQLITE_OK)
		return uar_error_set(error, UAR_EINTERNAL, "this SQLite has no FTS5");
	if (sqlite3_create_function_v2(kb->db, "shares_word", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
				       NULL, shares_word, NULL, NULL, NULL) != SQLITE_OK)
		return UAR_ENOMEM;
	return UAR_OK;
}
