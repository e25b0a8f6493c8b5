/* kb_matrix.c - the vectors of a collection in memory, compared one by one with a query.
 *
 * Exact: every vector is looked at. New passages are read behind those that are there; when one
 * was removed the whole is read again. A call reads a slice: a large collection is compared in part
 * until all of it was read, and who searches is told so. */
#include "memory/kb_int.h"

typedef float lanes __attribute__((vector_size(16)));

float kb_dot(const float *a, const float *b, size_t n)
{
	lanes sum[4] = { { 0 } };
	float out = 0;
	size_t i = 0;

	for (; i + 16 <= n; i += 16)
		for (size_t k = 0; k < 4; k++) {
			lanes x, y;

			memcpy(&x, a + i + 4 * k, sizeof x);
			memcpy(&y, b + i + 4 * k, sizeof y);
			sum[k] += x * y;
		}
	sum[0] += sum[1] + sum[2] + sum[3];
	for (size_t k = 0; k < 4; k++)
		out += sum[0][k];
	for (; i < n; i++)
		out += a[i] * b[i];
	return out;
}

static void free_matrix(struct kb_matrix *m)
{
	uar_free(m->key);
	uar_free(m->chunk);
	uar_free(m->document);
	uar_free(m->at);
	*m = (struct kb_matrix){ .key = NULL };
}

void kb_matrices_free(struct uar_kb *kb)
{
	for (size_t i = 0; i < ARRAY_LEN(kb->matrix); i++)
		free_matrix(&kb->matrix[i]);
}

static size_t row_bytes(const struct kb_matrix *m)
{
	return m->dims * sizeof *m->at + sizeof *m->chunk + sizeof *m->document;
}

static size_t bytes_of(const struct kb_matrix *m)
{
	return m->room * row_bytes(m);
}

/* The one with that key, or the least recently used place for it. */
static struct kb_matrix *place_for(struct uar_kb *kb, const char *key)
{
	struct kb_matrix *oldest = &kb->matrix[0];

	for (size_t i = 0; i < ARRAY_LEN(kb->matrix); i++) {
		struct kb_matrix *m = &kb->matrix[i];

		if (m->key && !strcmp(m->key, key))
			return m;
		if (m->used < oldest->used)
			oldest = m;
	}
	free_matrix(oldest);
	return oldest;
}

static void make_room(struct uar_kb *kb, const struct kb_matrix *keep)
{
	size_t all = 0;

	for (size_t i = 0; i < ARRAY_LEN(kb->matrix); i++)
		all += bytes_of(&kb->matrix[i]);
	for (size_t i = 0; i < ARRAY_LEN(kb->matrix) && all > UAR_LIMIT_KB_MATRIX_BYTES; i++)
		if (&kb->matrix[i] != keep) {
			all -= bytes_of(&kb->matrix[i]);
			free_matrix(&kb->matrix[i]);
		}
}

/* Rows that a collection of such vectors may have in memory. */
static size_t most_rows(const struct kb_matrix *m)
{
	return UAR_LIMIT_KB_MATRIX_BYTES / row_bytes(m);
}

static bool grow(struct kb_matrix *m)
{
	size_t twice = m->room ? m->room * 2 : 256, most = most_rows(m);
	size_t room = twice < most ? twice : most;
	int64_t *chunk = uar_realloc(m->chunk, room * sizeof *chunk);
	int64_t *document;
	float *at;

	if (!chunk)
		return false;
	m->chunk = chunk;
	document = uar_realloc(m->document, room * sizeof *document);
	if (!document)
		return false;
	m->document = document;
	at = uar_realloc(m->at, room * m->dims * sizeof *at);
	if (!at)
		return false;
	m->at = at;
	m->room = room;
	return true;
}

/* Vectors are kept with length 1. */
static void add_row(struct kb_matrix *m, sqlite3_stmt *st)
{
	float *to = m->at + m->n * m->dims;
	float length;

	memcpy(to, sqlite3_column_blob(st, 2), m->dims * sizeof *to);
	length = kb_dot(to, to, m->dims);
	if (!(length > 0))
		return;
	length = 1 / __builtin_sqrtf(length);
	for (size_t i = 0; i < m->dims; i++)
		to[i] *= length;
	m->chunk[m->n] = sqlite3_column_int64(st, 0);
	m->document[m->n++] = sqlite3_column_int64(st, 1);
}

static uar_err load(struct uar_kb *kb, const struct kb_matrix_of *of, struct kb_matrix *m,
		    struct uar_error *error)
{
	uar_str by[] = { of->owner, of->collection, of->model };
	size_t had = m->n;
	sqlite3_stmt *st = NULL;
	uar_err e = kb_prepare(
		kb,
		"SELECT c.id, c.document, v.vector FROM ix.chunks c JOIN documents d ON"
		" d.id = c.document JOIN ix.vectors v ON v.model = ?3 AND v.sha256 = c.sha256"
		" WHERE d.owner = ?1 AND d.collection = ?2 AND c.id > ?4 ORDER BY c.id LIMIT ?5",
		&st, error);

	if (e)
		return e;
	m->more = false;
	kb_bind_texts(st, by, ARRAY_LEN(by));
	sqlite3_bind_int64(st, 4, m->n ? m->chunk[m->n - 1] : 0);
	sqlite3_bind_int64(st, 5, UAR_LIMIT_KB_SCAN + 1);
	while (kb_step(kb, st, &e, error)) {
		size_t dims = (size_t)sqlite3_column_bytes(st, 2) / sizeof(float);

		if (!m->dims)
			m->dims = dims;
		if (dims != m->dims || !dims)
			continue;
		m->cut = m->n >= UAR_LIMIT_KB_SCAN || m->n >= most_rows(m);
		m->more = !m->cut && m->n - had == kb->slice;
		if (m->cut || m->more)
			break;
		if (m->n == m->room && !grow(m)) {
			e = UAR_ENOMEM;
			break;
		}
		add_row(m, st);
	}
	sqlite3_finalize(st);
	return e;
}

static uar_err look_for_missing(struct uar_kb *kb, const struct kb_matrix_of *of,
				struct kb_matrix *m, struct uar_error *error)
{
	uar_str by[] = { of->owner, of->collection, of->model };
	sqlite3_stmt *st = NULL;
	uar_err e =
		kb_prepare(kb,
			   "SELECT 1 FROM documents d JOIN ix.indexed i ON i.document = d.id"
			   " WHERE d.owner = ?1 AND d.collection = ?2 AND i.model <> ?3 LIMIT 1",
			   &st, error);

	if (e)
		return e;
	kb_bind_texts(st, by, ARRAY_LEN(by));
	m->missing = kb_step(kb, st, &e, error);
	sqlite3_finalize(st);
	return e;
}

static uar_err load_slice(struct uar_kb *kb, const struct kb_matrix_of *of, struct kb_matrix *m,
			  struct uar_error *error)
{
	uar_err e = load(kb, of, m, error);

	return e || m->more ? e : look_for_missing(kb, of, m, error);
}

static uar_err read_version(struct uar_kb *kb, const struct kb_matrix_of *of, int64_t out[2],
			    struct uar_error *error)
{
	uar_str by[] = { of->owner, of->collection };
	sqlite3_stmt *st = NULL;
	uar_err e = kb_prepare(kb,
			       "SELECT version, removals FROM ix.versions WHERE owner = ?1 AND"
			       " collection = ?2",
			       &st, error);

	out[0] = out[1] = 0;
	if (e)
		return e;
	kb_bind_texts(st, by, ARRAY_LEN(by));
	if (kb_step(kb, st, &e, error)) {
		out[0] = sqlite3_column_int64(st, 0);
		out[1] = sqlite3_column_int64(st, 1);
	}
	sqlite3_finalize(st);
	return e;
}

uar_err kb_matrix_get(struct uar_kb *kb, const struct kb_matrix_of *of, struct kb_matrix **out,
		      struct uar_error *error)
{
	struct uar_arena arena;
	struct kb_matrix *m;
	int64_t version[2];
	uar_err e = read_version(kb, of, version, error);
	uar_str key;

	if (e)
		return e;
	uar_arena_init(&arena, 0);
	key = uar_arena_printf(&arena, "%.*s\x1e%.*s\x1e%.*s", UAR_FMT(of->owner),
			       UAR_FMT(of->collection), UAR_FMT(of->model));
	m = key.p ? place_for(kb, key.p) : NULL;
	if (m && m->key && m->removals != version[1])
		free_matrix(m);
	if (m && !m->key)
		m->key = uar_strdup_n(key.p, key.n);
	uar_arena_fini(&arena);
	if (!m || !m->key)
		return UAR_ENOMEM;
	m->used = ++kb->uses;
	if (m->version != version[0])
		e = load_slice(kb, of, m, error);
	if (e) {
		free_matrix(m);
		return e;
	}
	m->version = m->more ? -1 : version[0]; /* of all that is there */
	m->removals = version[1];
	make_room(kb, m);
	*out = m;
	return UAR_OK;
}

uar_err uar_kb_load_more(struct uar_kb *writer, bool *out_more)
{
	struct uar_kb *kb = writer->reader;
	uar_err e = UAR_OK;

	*out_more = false;
	pthread_mutex_lock(&kb->lock);
	for (size_t i = 0; i < ARRAY_LEN(kb->matrix) && !e; i++) {
		struct kb_matrix *m = &kb->matrix[i];
		struct kb_matrix_of of;
		struct uar_arena arena;
		uar_str rest;

		if (!m->key || !m->more)
			continue;
		uar_arena_init(&arena, 0);
		rest = uar_arena_str(&arena, uar_str_c(m->key));
		of.owner = uar_str_cut(rest, '\x1e', &rest);
		of.collection = uar_str_cut(rest, '\x1e', &of.model);
		e = rest.p ? kb_matrix_get(kb, &of, &m, NULL) : UAR_ENOMEM;
		*out_more |= !e && m->more;
		uar_arena_fini(&arena);
	}
	pthread_mutex_unlock(&kb->lock);
	return e;
}
