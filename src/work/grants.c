/* grants.c - grants of a conversation, then those of an agent. */
#include "work/grants.h"

#include "base/sha256.h"
#include "event/limits.h"
#include "json/limits.h"

/* What is read, in this order. */
enum part { POLICIES, OF_THREAD, OF_AGENT, PARTS };

struct grants_load {
	struct rt_op under_way;
	struct grants_ask ask;
	bool cancelled;
	struct uar_rows_query rows;
	struct grants *grants;
	grants_ready_fn *ready;
	void *ctx;
	enum part part;
	char agent_id[UAR_LIMIT_ID_BYTES + 1], thread_id[UAR_LIMIT_ID_BYTES + 1];
	char session_id[UAR_LIMIT_ID_BYTES + 1];
};

void rt_grants_free(struct grants *g)
{
	if (!g)
		return;
	uar_arena_fini(&g->arena);
	uar_free(g);
}

static void free_load(struct grants_load *l)
{
	uar_store_rows_fini(&l->rows);
	rt_grants_free(l->grants);
	uar_free(l);
}

static void drop(struct rt_op *under_way)
{
	free_load(UAR_OWNER(under_way, struct grants_load, under_way));
}

static void finish(struct grants_load *l, uar_err e)
{
	struct grants *g = l->grants;
	struct agg *a = l->ask.agg;

	if (!l->cancelled && !e)
		l->grants = NULL;
	if (!l->cancelled)
		l->ready(l->ctx, e, e ? NULL : g);
	rt_op_end(&l->under_way);
	free_load(l);
	if (a)
		rt_agg_drop(a);
}

static void rows_ready(struct uar_rows_query *q);

static uar_err ask(struct grants_load *l)
{
	struct uar_store *store = rt_store(l->ask.rt);

	l->rows = (struct uar_rows_query){
		.owner = *l->ask.owner,
		.kind = l->part == POLICIES ? UAR_ROW_POLICY : UAR_ROW_GRANT,
		.parent = uar_str_c(l->part == POLICIES	   ? l->session_id
				    : l->part == OF_THREAD ? l->thread_id
							   : l->agent_id),
		.status = UAR_STR("active"),
		.limit = UAR_LIMIT_LIST_PAGE,
		.done = rows_ready,
	};
	return store->ops->rows(store, &l->rows);
}

static uar_err take_grants(struct grants_load *l)
{
	struct grants *g = l->grants;
	size_t n = g->count + l->rows.row_count;
	struct uar_row_grant *at = uar_arena_alloc(&g->arena, (n + 1) * sizeof *at);
	uar_err e = at ? UAR_OK : UAR_ENOMEM;

	if (!e && g->count)
		memcpy(at, g->at, g->count * sizeof *at);
	g->at = at;
	for (size_t i = 0; i < l->rows.row_count && !e; i++) {
		struct uar_row_grant typed;

		e = uar_row_unpack(&l->rows.rows[i], &l->rows.arena, &typed, sizeof typed, NULL);
		if (!e && !uar_row_copy_typed(&g->arena, &typed, &at[g->count]))
			e = UAR_ENOMEM;
		g->count += !e;
	}
	return e;
}

static uar_err take_policy(struct grants_load *l, const struct uar_row_policy *row)
{
	bool thread = uar_str_is(row->scope, "thread");
	struct stored_policy *p = thread ? &l->grants->thread : &l->grants->session;
	uar_str rules = row->rules.n ? uar_arena_str(&l->grants->arena, row->rules) : UAR_STR("[]");

	if (thread && !uar_str_is(row->thread_id, l->thread_id))
		return UAR_OK; /* of another thread */
	if (!rules.p)
		return UAR_ENOMEM;
	p->mode = uar_permission_mode_parse(row->mode);
	p->unattended = row->unattended;
	return uar_json_parse(rules, NULL, &l->grants->arena, &p->rules, NULL);
}

static uar_err take_policies(struct grants_load *l)
{
	uar_err e = UAR_OK;

	for (size_t i = 0; i < l->rows.row_count && !e; i++) {
		struct uar_row_policy typed;

		e = uar_row_unpack(&l->rows.rows[i], &l->rows.arena, &typed, sizeof typed, NULL);
		if (!e)
			e = take_policy(l, &typed);
	}
	l->ask.policies_alone &= !l->rows.row_count;
	return e;
}

static void rows_ready(struct uar_rows_query *q)
{
	struct grants_load *l = UAR_OWNER(q, struct grants_load, rows);
	uar_err e = q->err;
	bool more;

	if (!e && !l->cancelled)
		e = l->part == POLICIES ? take_policies(l) : take_grants(l);
	l->part++;
	more = !e && !l->cancelled && l->part < PARTS && !l->ask.policies_alone;
	uar_store_rows_fini(q);
	if (more)
		e = ask(l);
	if (e || !more)
		finish(l, e);
}

struct grants_ask rt_grants_of(const struct live_run *r)
{
	return (struct grants_ask){
		.rt = rt_engine(r),
		.owner = &rt_agg_session(rt_agg(r))->owner,
		.session_id = rt_agg_session(rt_agg(r))->session_id,
		.thread_id = uar_str_c(rt_thread_id(r)),
		.agent_id = rt_state(r)->what.agent_id,
		.agg = rt_agg(r),
	};
}

uar_err rt_grants_load(const struct grants_ask *whose, grants_ready_fn *ready, void *ctx,
		       struct grants_load **out)
{
	struct grants_load *l = uar_zalloc(sizeof *l);
	uar_err e = UAR_ENOMEM;

	if (!l)
		return UAR_ENOMEM;
	l->grants = uar_zalloc(sizeof *l->grants);
	if (l->grants) {
		uar_arena_init(&l->grants->arena, 0);
		l->ask = *whose;
		l->ready = ready;
		l->ctx = ctx;
		snprintf(l->agent_id, sizeof l->agent_id, "%.*s", UAR_FMT(whose->agent_id));
		snprintf(l->thread_id, sizeof l->thread_id, "%.*s", UAR_FMT(whose->thread_id));
		snprintf(l->session_id, sizeof l->session_id, "%.*s", UAR_FMT(whose->session_id));
		e = ask(l);
	}
	if (e) {
		free_load(l);
		return e;
	}
	if (whose->agg)
		rt_agg_hold(whose->agg);
	rt_op_begin(whose->rt, &l->under_way, drop);
	*out = l;
	return UAR_OK;
}

void rt_grants_cancel(struct grants_load *l)
{
	if (l)
		l->cancelled = true;
}

uar_str rt_grants_find(const struct grants *g, const struct uar_grant_call *call)
{
	for (size_t i = 0; g && i < g->count; i++)
		if (uar_grant_covers(&g->at[i], call))
			return g->at[i].row.id;
	return UAR_STR_NONE;
}

void rt_grants_digest(const struct uar_runtime *rt, uar_str args, char out[UAR_LIMIT_DIGEST + 1])
{
	const struct uar_seal_key *key = rt_seal(rt);
	struct uar_buf text = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	const struct uar_json *value = NULL;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (!uar_json_parse(args, NULL, &arena, &value, NULL))
		uar_json_write_canonical(&text, value);
	if (!value || text.err ||
	    !uar_hmac_sha256_hex(uar_str_n((const char *)key->bytes, sizeof key->bytes),
				 uar_buf_str(&text), out))
		out[0] = 0;
	uar_buf_fini(&text);
	uar_arena_fini(&arena);
}
