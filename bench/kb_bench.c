/* kb_bench.c - documents in and passages out: what the knowledge base costs, beside what it stands
 * on (FTS5 alone) and another search by vectors (sqlite-vec, with the vectors of the same
 *passages).
 *
 *	kb_bench DIR [--passages N] [--queries N] [--vec EXTENSION]
 *
 * Prints name=value lines; times are of one thread, in microseconds. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "lib/measure.h"
#include "memory/kb.h"
#include "skill/embed.h"

enum { WORDS = 20000, IN_PASSAGE = 90, IN_DOCUMENT = 100, IN_QUERY = 4, TOP = 5 };

static const struct uar_owner owner = { UAR_STR("bench"), UAR_STR("bench"), UAR_STR("bench") };
static uint64_t state = 88172645463325252u;

static unsigned draw(unsigned below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 11) % below;
}

/* Few words are frequent, most are rare, as in texts. */
static void put_word(struct uar_buf *b)
{
	static const char *const parts[] = { "ba",  "cor", "den", "fi",	 "gul", "har", "jo",
					     "kem", "lis", "mo",  "nar", "pel", "ra",  "sti",
					     "tor", "ul",  "ve",  "wim", "yar", "zo" };
	unsigned n = draw(1 + draw(1 + draw(WORDS)));

	for (int i = 0; i < 2 || n; i++, n /= 20)
		uar_buf_add_str(b, uar_str_c(parts[n % 20]));
}

static void put_words(struct uar_buf *b, int count)
{
	for (int i = 0; i < count; i++) {
		put_word(b);
		uar_buf_add_char(b, ' ');
	}
}

static void write_document(struct uar_buf *b, int64_t passages)
{
	b->n = 0;
	for (int64_t i = 0; i < passages; i++) {
		uar_buf_add_str(b, UAR_STR("# "));
		put_words(b, 3);
		uar_buf_add_char(b, '\n');
		put_words(b, IN_PASSAGE);
		uar_buf_add_char(b, '\n');
	}
	if (b->err)
		bench_die("no memory for a document");
}

static double cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int64_t ingest(struct uar_kb *kb, int64_t passages)
{
	struct uar_buf text = uar_buf_make(1 << 20);
	struct uar_kb_result result;
	struct uar_error error = { 0 };
	int64_t bytes = 0, us = 0;
	double cpu = 0;
	char name[32];

	for (int64_t done = 0; done < passages; done += IN_DOCUMENT) {
		struct uar_kb_document d = { .collection = UAR_STR("b"),
					     .media_type = UAR_STR("text/markdown") };
		int64_t started;

		snprintf(name, sizeof name, "d%lld", (long long)done);
		write_document(&text,
			       passages - done < IN_DOCUMENT ? passages - done : IN_DOCUMENT);
		d.id = d.title = uar_str_c(name);
		d.bytes = uar_buf_str(&text);
		started = bench_now_us();
		cpu -= cpu_us();
		if (uar_kb_put(kb, &owner, &d, &result, &error) || !result.indexed)
			bench_die("a document is refused: %s", error.text);
		us += bench_now_us() - started;
		cpu += cpu_us();
		bytes += (int64_t)text.n;
	}
	uar_buf_fini(&text);
	bench_put("ingest_mb_per_s", (double)bytes / (double)(us ? us : 1));
	bench_put("ingest_cpu_s_per_mb", cpu / (double)(bytes ? bytes : 1));
	bench_put("ingest_bytes", (double)bytes);
	return bytes;
}

/* `cpu`: the time of the processor when the first of them began. */
static void tell(const char *what, struct bench_samples *s, double cpu)
{
	char name[64];

	snprintf(name, sizeof name, "%s_cpu_us", what);
	bench_put(name, (cpu_us() - cpu) / (double)(s->n ? s->n : 1));
	snprintf(name, sizeof name, "%s_p50_us", what);
	bench_put(name, (double)bench_percentile(s, 0.5));
	snprintf(name, sizeof name, "%s_p99_us", what);
	bench_put(name, (double)bench_percentile(s, 0.99));
	bench_samples_fini(s);
}

static void search(struct uar_kb *kb, enum uar_kb_mode mode, char (*queries)[200], int64_t n)
{
	struct bench_samples s = { 0 };
	double cpu = cpu_us();
	uar_str name = UAR_STR("b");
	struct uar_error error = { 0 };
	struct uar_kb_hits hits;
	struct uar_arena arena;

	for (int64_t i = -1; i < n; i++) { /* the first one reads the vectors into memory */
		struct uar_kb_query q = { .owner = owner,
					  .collections = &name,
					  .collection_count = 1,
					  .text = uar_str_c(queries[i < 0 ? 0 : i]),
					  .mode = mode,
					  .k = TOP };
		int64_t started = bench_now_us();

		uar_arena_init(&arena, 0);
		if (uar_kb_search(kb, &q, &arena, &hits, &error))
			bench_die("a search failed: %s", error.text);
		if (i >= 0)
			bench_sample(&s, bench_now_us() - started);
		else
			cpu = cpu_us();
		if (i < 0 && mode == UAR_KB_HYBRID)
			bench_put("first_query_us", (double)(bench_now_us() - started));
		uar_arena_fini(&arena);
	}
	tell(uar_kb_mode_names[mode], &s, cpu);
}

/* --- beside it ------------------------------------------------------------------------------ */

static void must(sqlite3 *db, int rc)
{
	if (rc != SQLITE_OK && rc != SQLITE_DONE && rc != SQLITE_ROW)
		bench_die("SQLite: %s", sqlite3_errmsg(db));
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *st = NULL;

	must(db, sqlite3_prepare_v2(db, sql, -1, &st, NULL));
	return st;
}

/* The rows of a query, all of them; how many. */
static int drain(sqlite3 *db, sqlite3_stmt *st)
{
	int rc, n = 0;

	while ((rc = sqlite3_step(st)) == SQLITE_ROW)
		n++;
	must(db, rc);
	sqlite3_reset(st);
	return n;
}

/* The same words in the same index, without anything around it. */
static void search_fts5(const char *dir, char (*queries)[200], int64_t n)
{
	struct bench_samples s = { 0 };
	double cpu = cpu_us();
	sqlite3_stmt *st;
	sqlite3 *db = NULL;
	char path[600], match[400];

	snprintf(path, sizeof path, "%s/index.db", dir);
	must(db, sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL));
	st = prepare(db, "SELECT c.text FROM (SELECT rowid FROM words WHERE words MATCH ?1 ORDER BY"
			 " rank LIMIT 5) w JOIN chunks c ON c.id = w.rowid");
	for (int64_t i = 0; i < n; i++) {
		size_t used = 0;
		uar_str rest = uar_str_c(queries[i]);
		int64_t started = bench_now_us();

		while (rest.n) {
			uar_str w = uar_str_cut(rest, ' ', &rest);

			if (w.n)
				used += (size_t)snprintf(match + used, sizeof match - used,
							 "%s\"%.*s\"", used ? " OR " : "",
							 UAR_FMT(w));
		}
		must(db, sqlite3_bind_text(st, 1, match, (int)used, SQLITE_STATIC));
		(void)drain(db, st);
		bench_sample(&s, bench_now_us() - started);
	}
	sqlite3_finalize(st);
	sqlite3_close(db);
	tell("fts5", &s, cpu);
}

static void fill_vec(sqlite3 *db, const char *dir)
{
	float v[UAR_EMBED_DIMENSIONS];
	sqlite3_stmt *in, *out;
	char sql[700];
	int rc;

	snprintf(sql, sizeof sql, "ATTACH '%s/index.db' AS ix", dir);
	must(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
	snprintf(sql, sizeof sql,
		 "CREATE VIRTUAL TABLE v USING vec0(embedding float[%d] distance_metric=cosine)",
		 UAR_EMBED_DIMENSIONS);
	must(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
	must(db, sqlite3_exec(db, "BEGIN", NULL, NULL, NULL));
	out = prepare(db, "SELECT id, text FROM ix.chunks");
	in = prepare(db, "INSERT INTO v (rowid, embedding) VALUES (?1, ?2)");
	while ((rc = sqlite3_step(out)) == SQLITE_ROW) {
		uar_str text = uar_str_n((const char *)sqlite3_column_text(out, 1),
					 (size_t)sqlite3_column_bytes(out, 1));

		if (uar_embed_text(text, v))
			continue;
		must(db, sqlite3_bind_int64(in, 1, sqlite3_column_int64(out, 0)));
		must(db, sqlite3_bind_blob(in, 2, v, sizeof v, SQLITE_STATIC));
		(void)drain(db, in);
	}
	must(db, rc);
	sqlite3_finalize(in);
	sqlite3_finalize(out);
	must(db, sqlite3_exec(db, "COMMIT", NULL, NULL, NULL));
}

/* Five nearest passages by sqlite-vec, with their texts, as the vector mode brings them. */
static void search_vec(const char *dir, const char *extension, char (*queries)[200], int64_t n)
{
	struct bench_samples s = { 0 };
	double cpu = cpu_us();
	float v[UAR_EMBED_DIMENSIONS];
	char path[600], *why = NULL;
	sqlite3 *db = NULL;
	sqlite3_stmt *st;

	snprintf(path, sizeof path, "%s/vec.db", dir);
	must(db, sqlite3_open(path, &db));
	must(db, sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL));
	if (sqlite3_load_extension(db, extension, "sqlite3_vec_init", &why))
		bench_die("%s: %s", extension, why);
	fill_vec(db, dir);
	st = prepare(db,
		     "SELECT c.text FROM (SELECT rowid, distance FROM v WHERE embedding MATCH ?1"
		     " AND k = 5) n JOIN ix.chunks c ON c.id = n.rowid ORDER BY n.distance");
	for (int64_t i = -1; i < n; i++) {
		int64_t started = bench_now_us();

		if (uar_embed_text(uar_str_c(queries[i < 0 ? 0 : i]), v))
			continue;
		must(db, sqlite3_bind_blob(st, 1, v, sizeof v, SQLITE_STATIC));
		if (!drain(db, st))
			bench_die("sqlite-vec found nothing");
		if (i >= 0)
			bench_sample(&s, bench_now_us() - started);
		else
			cpu = cpu_us();
	}
	sqlite3_finalize(st);
	sqlite3_close(db);
	tell("sqlite_vec", &s, cpu);
}

int main(int argc, char **argv)
{
	const char *dir = argc > 1 ? argv[1] : NULL;
	int64_t passages = bench_number(argv, "--passages", 10000);
	int64_t n = bench_number(argv, "--queries", 200);
	const char *extension = bench_option(argv, "--vec", "");
	char(*queries)[200] = bench_alloc(NULL, (size_t)n * sizeof *queries);
	struct uar_error error = { 0 };
	struct uar_kb *kb = NULL;
	int64_t before = bench_rss_kb(0);

	if (!dir || uar_kb_open(dir, NULL, &kb, &error))
		bench_die("usage: kb_bench DIR [--passages N] [--queries N] [--vec FILE] %s",
			  error.text);
	(void)ingest(kb, passages);
	for (int64_t i = 0; i < n; i++) {
		struct uar_buf b = uar_buf_make(200);

		put_words(&b, IN_QUERY);
		snprintf(queries[i], sizeof queries[i], "%.*s", (int)b.n, b.p);
		uar_buf_fini(&b);
	}
	for (int mode = 0; mode < UAR_KB_MODE_COUNT; mode++)
		search(kb, (enum uar_kb_mode)mode, queries, n);
	bench_put("memory_kb", (double)(bench_rss_kb(0) - before));
	uar_kb_close(kb);
	search_fts5(dir, queries, n);
	if (extension[0])
		search_vec(dir, extension, queries, n);
	free(queries);
	return 0;
}
