/* store.c - the port's helpers and the checks every implementation makes. */
#include "base/alloc.h"
#include "event/limits.h"
#include "store/limits.h"
#include "store/store_int.h"

static uar_err bad(struct uar_error *error, size_t i, const char *why)
{
	uar_error_set(error, UAR_EINVALID, "event %zu of the append: %s", i, why);
	return UAR_EINVALID;
}

bool uar_owner_is_valid(const struct uar_owner *o)
{
	return uar_str_is_id(o->tenant) && uar_str_is_id(o->workspace) && uar_str_is_id(o->user);
}

uar_str uar_store_append_run(const struct uar_append *a)
{
	if (a->run)
		return a->run->run_id;
	for (size_t i = 0; i < a->event_count; i++)
		if (a->events[i].ids[UAR_ID_RUN].n)
			return a->events[i].ids[UAR_ID_RUN];
	return UAR_STR_NONE;
}

/* Is the event at its place: right owner, right session, right run? */
static uar_err check_place(const struct uar_append *a, size_t i, const char *runtime_id,
			   struct uar_error *error)
{
	const struct uar_event *ev = &a->events[i];
	uar_str runtime = ev->ids[UAR_ID_RUNTIME];
	struct uar_owner whose = { ev->ids[UAR_ID_TENANT], ev->ids[UAR_ID_WORKSPACE],
				   ev->ids[UAR_ID_USER] };

	if (ev->sequence != a->after + 1 + i)
		return bad(error, i, "its sequence leaves a gap");
	if (runtime.n && !uar_str_is(runtime, runtime_id))
		return bad(error, i, "another runtime_id");
	if (!uar_owner_eq(&whose, &a->owner))
		return bad(error, i, "another owner");
	if (!uar_str_eq(ev->ids[UAR_ID_SESSION], a->session_id))
		return bad(error, i, "another session_id");
	return UAR_OK;
}

static uar_err check_events(const struct uar_append *a, const char *runtime_id,
			    struct uar_arena *scratch, struct uar_error *error)
{
	uar_str run = uar_store_append_run(a);
	uint64_t run_sequence = 0;
	struct uar_event known = { 0 }; /* ids that are looked at elsewhere */

	known.ids[UAR_ID_RUNTIME] = a->events[0].ids[UAR_ID_RUNTIME];
	known.ids[UAR_ID_TENANT] = a->owner.tenant;
	known.ids[UAR_ID_WORKSPACE] = a->owner.workspace;
	known.ids[UAR_ID_USER] = a->owner.user;
	known.ids[UAR_ID_SESSION] = a->session_id;
	for (size_t i = 0; i < a->event_count; i++) {
		const struct uar_event *ev = &a->events[i];
		uar_str own = ev->ids[UAR_ID_RUN];
		uar_err e = check_place(a, i, runtime_id, error);

		if (e)
			return e;
		if (!own.n != !ev->run_sequence)
			return bad(error, i, "run_sequence and run_id come together");
		if (own.n && !uar_str_eq(own, run))
			return bad(error, i, "another run_id");
		if (own.n && run_sequence && ev->run_sequence != run_sequence + 1)
			return bad(error, i, "its run_sequence leaves a gap");
		run_sequence = own.n ? ev->run_sequence : run_sequence;
		e = uar_event_check_next(ev, i ? ev - 1 : &known, scratch, error);
		uar_arena_reset(scratch);
		if (e)
			return e;
	}
	return UAR_OK;
}

static bool id_or_none(uar_str s)
{
	return s.n == 0 || uar_str_is_id(s);
}

static uar_err check_run(const struct uar_append *a, struct uar_error *error)
{
	const struct uar_run_row *r = a->run;

	if (!uar_owner_eq(&r->owner, &a->owner) || !uar_str_eq(r->session_id, a->session_id))
		return uar_error_set(error, UAR_EINVALID,
				     "the run's row is of another owner or session");
	if (!uar_str_is_id(r->run_id) || !id_or_none(r->thread_id) || !id_or_none(r->turn_id) ||
	    !id_or_none(r->task_id) || !id_or_none(r->root_run_id) || !id_or_none(r->parent_run_id))
		return uar_error_set(error, UAR_EINVALID,
				     "the run's row has an id that is not one");
	if (!r->status.n || r->status.n > UAR_LIMIT_STATUS_BYTES)
		return uar_error_set(error, UAR_EINVALID, "the run's row has no status");
	return UAR_OK;
}

static bool row_columns_valid(const struct uar_row *r)
{
	return uar_str_is_id(r->id) && id_or_none(r->parent) && r->tag.n <= UAR_LIMIT_ROW_TAG &&
	       r->status.n && r->status.n <= UAR_LIMIT_STATUS_BYTES && r->due_us >= 0 &&
	       r->body.n && r->body.n <= UAR_LIMIT_ROW_BYTES;
}

static uar_err check_rows(const struct uar_append *a, struct uar_error *error)
{
	if (a->row_count > UAR_LIMIT_APPEND_ROWS)
		return uar_error_set(error, UAR_ETOOBIG, "%zu rows in one append", a->row_count);
	for (size_t i = 0; i < a->row_count; i++) {
		const struct uar_row *r = &a->rows[i];

		if ((unsigned)r->kind >= UAR_ROW_COUNT || !row_columns_valid(r))
			return uar_error_set(error, UAR_EINVALID,
					     "row %zu of the append has a column that is not valid",
					     i);
	}
	return UAR_OK;
}

uar_err uar_store_check(const struct uar_append *a, const char *runtime_id,
			struct uar_arena *scratch, struct uar_error *error)
{
	uar_err e;

	if (!uar_owner_is_valid(&a->owner) || !uar_str_is_id(a->session_id))
		return uar_error_set(error, UAR_EINVALID, "an append needs an owner and a session");
	if (a->event_count == 0)
		return uar_error_set(error, UAR_EINVALID, "an append without events");
	if (a->event_count > UAR_LIMIT_APPEND_EVENTS || a->after > INT64_MAX - a->event_count)
		return uar_error_set(error, UAR_ETOOBIG, "%zu events in one append",
				     a->event_count);
	if (a->evict_count > UAR_LIMIT_EVICT_RUNS)
		return uar_error_set(error, UAR_ETOOBIG, "%zu runs to evict in one append",
				     a->evict_count);
	if (a->key && (!a->key->scope.n || !a->key->key.n))
		return uar_error_set(error, UAR_EINVALID,
				     "an idempotency key without scope or key");
	e = a->run ? check_run(a, error) : UAR_OK;
	if (!e && a->row_count)
		e = check_rows(a, error);
	return e ? e : check_events(a, runtime_id, scratch, error);
}

uar_err uar_store_check_read(const struct uar_read *r)
{
	if (r->limit == 0 || r->limit > UAR_LIMIT_READ_PAGE || !r->run_id.n == !r->session_id.n)
		return UAR_EINVALID;
	return UAR_OK;
}

uar_err uar_store_check_runs(const struct uar_runs_query *q)
{
	if (!q->run_id.n && (q->limit == 0 || q->limit > UAR_LIMIT_LIST_PAGE))
		return UAR_EINVALID;
	return UAR_OK;
}

uar_err uar_store_check_rows(const struct uar_rows_query *q)
{
	if ((unsigned)q->kind >= UAR_ROW_COUNT)
		return UAR_EINVALID;
	return !q->id.n && (q->limit == 0 || q->limit > UAR_LIMIT_LIST_PAGE) ? UAR_EINVALID
									     : UAR_OK;
}

uar_str uar_store_rows_cursor(struct uar_arena *arena, enum uar_rows_order order,
			      const struct uar_row *last)
{
	int64_t value = order == UAR_ROWS_RANK ? last->rank : last->updated_us;

	return uar_arena_printf(arena, "%lld.%.*s", (long long)value, UAR_FMT(last->id));
}

bool uar_store_rows_cursor_read(uar_str text, int64_t *out_value, uar_str *out_id)
{
	const char *dot = text.n ? memchr(text.p, '.', text.n) : NULL;
	char number[24];
	size_t n = dot ? (size_t)(dot - text.p) : 0;
	char *end;

	if (!n || n >= sizeof number)
		return false;
	memcpy(number, text.p, n);
	number[n] = 0;
	*out_value = strtoll(number, &end, 10);
	*out_id = uar_str_from(text, n + 1);
	return !*end && out_id->n;
}

uar_err uar_store_check_thread(const struct uar_thread_query *q)
{
	return !q->thread_id.n == !q->session_id.n ? UAR_EINVALID : UAR_OK;
}

bool uar_store_is_sha256(const char sha256[65])
{
	return strnlen(sha256, 65) == 64 && uar_str_is_hex(uar_str_n(sha256, 64));
}

bool uar_store_copy_ids(struct uar_arena *arena, const uar_str *in, size_t n, uar_str **out)
{
	uar_str *ids = n ? uar_arena_alloc(arena, n * sizeof *ids) : NULL;
	bool good = !n || ids;

	for (size_t i = 0; i < n && good; i++) {
		ids[i] = uar_arena_str(arena, in[i]);
		good = ids[i].p != NULL;
	}
	*out = ids;
	return good;
}

bool uar_store_copy_rows(struct uar_arena *arena, const struct uar_row *in, size_t n,
			 struct uar_row **out)
{
	struct uar_row *rows = n ? uar_arena_alloc(arena, n * sizeof *rows) : NULL;
	bool good = !n || rows;

	for (size_t i = 0; i < n && good; i++)
		good = uar_row_copy(arena, &in[i], &rows[i]);
	*out = rows;
	return good;
}

uar_str uar_store_key(struct uar_arena *arena, const struct uar_owner *o, uar_str id)
{
	const uar_str part[] = { o->tenant, o->workspace, o->user, id };
	size_t n = 0;
	char *p = uar_arena_bytes(arena, o->tenant.n + o->workspace.n + o->user.n + id.n + 4);

	if (!p)
		return UAR_STR_NONE;
	for (size_t i = 0; i < ARRAY_LEN(part); i++) {
		if (part[i].n)
			memcpy(p + n, part[i].p, part[i].n);
		n += part[i].n;
		p[n++] = '\x1f';
	}
	return uar_str_n(p, n - 1);
}

bool uar_store_copy_key(struct uar_arena *arena, const struct uar_key_row *in,
			struct uar_key_row *out)
{
	*out = (struct uar_key_row){
		.scope = uar_arena_str(arena, in->scope),
		.key = uar_arena_str(arena, in->key),
		.fingerprint = uar_arena_str(arena, in->fingerprint),
		.made = uar_arena_str(arena, in->made),
	};
	return out->scope.p && out->key.p && out->fingerprint.p && out->made.p;
}

void uar_store_destroy(struct uar_store *s)
{
	if (s)
		s->ops->destroy(s);
}

uar_err uar_store_missing(uar_str run_id, uar_str session_id, struct uar_error *error)
{
	bool run = run_id.n > 0;

	return uar_error_set(
		error, UAR_ENOTFOUND, "no %s %.*s", run ? "run" : "session",
		UAR_FMT(uar_str_utf8_prefix(run ? run_id : session_id, UAR_LIMIT_ID_BYTES)));
}

void uar_store_read_fini(struct uar_read *r)
{
	uar_arena_fini(&r->arena);
	r->events = NULL;
	r->event_count = 0;
}

void uar_store_query_fini(struct uar_runs_query *q)
{
	uar_arena_fini(&q->arena);
	q->rows = NULL;
	q->row_count = 0;
}

void uar_store_rows_fini(struct uar_rows_query *q)
{
	uar_arena_fini(&q->arena);
	q->rows = NULL;
	q->row_count = 0;
}

void uar_store_sessions_fini(struct uar_sessions_query *q)
{
	uar_arena_fini(&q->arena);
	q->sessions = NULL;
	q->count = 0;
}

void uar_store_session_list_fini(struct uar_session_list *q)
{
	uar_arena_fini(&q->arena);
	q->rows = NULL;
	q->row_count = 0;
}

void uar_store_blob_get_fini(struct uar_blob_get *b)
{
	uar_arena_fini(&b->arena);
	b->bytes = UAR_STR_NONE;
}

/* --- sets of hashes -------------------------------------------------------------------- */

uar_err uar_store_hash_add(struct uar_map *map, const char *sha256)
{
	char *own;
	uar_err e;

	if (uar_map_get(map, uar_str_n(sha256, 64)))
		return UAR_OK;
	own = uar_alloc(65);
	if (!own)
		return UAR_ENOMEM;
	memcpy(own, sha256, 64);
	own[64] = 0;
	e = uar_map_put(map, uar_str_n(own, 64), own);
	if (e)
		uar_free(own);
	return e;
}

void uar_store_hashes_fini(struct uar_map *map)
{
	char *own;
	size_t at = 0;

	while ((own = uar_map_next(map, &at)))
		uar_free(own);
	uar_map_fini(map);
}
