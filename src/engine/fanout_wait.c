/* fanout_wait.c - those who wait for child agents, and what a job was given before its session is
 * found. */
#include "core/limits.h"
#include "engine/fanout_int.h"
#include "engine/limits.h"

/* --- waiting --------------------------------------------------------------------------------- */

struct waiting {
	struct rt_op under_way;
	struct uar_runtime *rt;
	struct uar_subagents_wait *w; /* NULL: nobody waits any more */
	struct uar_arena arena;
	struct uar_owner owner; /* copies: who waits may leave while a row is looked for */
	uar_str ids[UAR_LIMIT_WAIT_SUBAGENTS];
	size_t count;
	struct uar_timer limit;
	struct uar_task look;
	struct uar_rows_query rows; /* of the one that is looked at */
	struct uar_buf list;
	size_t at, rested;
	bool looking, again, timed_out;
};

static void look(struct waiting *x);

static void free_waiting(struct waiting *x)
{
	uar_timer_stop(x->rt->o.sched, &x->limit);
	uar_unpost(x->rt->o.sched, &x->look);
	if (x->w)
		uar_list_remove(&x->w->node);
	uar_store_rows_fini(&x->rows);
	uar_buf_fini(&x->list);
	uar_arena_fini(&x->arena);
	x->rt->fanout.waiting--;
	uar_free(x);
}

static void drop_waiting(struct rt_op *under_way)
{
	struct waiting *x = UAR_OWNER(under_way, struct waiting, under_way);

	if (x->w)
		x->w->internal = NULL;
	free_waiting(x);
}

static void finish(struct waiting *x, uar_err e, const struct uar_error *error)
{
	struct uar_subagents_wait *w = x->w;

	if (w) {
		w->err = e;
		if (error)
			w->error = *error;
		w->error.code = e;
		w->json = uar_buf_make(UAR_LIMIT_WAIT_SUBAGENTS_BYTES);
		uar_buf_printf(&w->json, "{\"subagents\":[%.*s],\"timed_out\":%s",
			       UAR_FMT(uar_buf_str(&x->list)), x->timed_out ? "true" : "false");
		if (w->answer_bytes)
			uar_buf_printf(&w->json, ",\"answers_cut_at\":%zu", w->answer_bytes);
		uar_buf_add_char(&w->json, '}');
		if (!e && w->json.err)
			w->err = w->json.err;
	}
	rt_op_end(&x->under_way);
	free_waiting(x);
	if (w)
		w->done(w);
}

static void looked(struct waiting *x)
{
	bool enough = x->w && (x->w->any ? x->rested > 0 : x->rested == x->count);

	x->looking = false;
	if (!x->w)
		finish(x, UAR_OK, NULL);
	else if (enough)
		finish(x, UAR_OK, NULL);
	else if (x->again)
		look(x);
	else if (x->timed_out || !x->w->timeout_us || x->rt->draining) {
		x->timed_out = true;
		finish(x, UAR_OK, NULL);
	}
}

static uar_err keep_row(struct waiting *x, const struct uar_row *row)
{
	struct uar_row_subagent s;
	struct uar_buf one = uar_buf_make(UAR_LIMIT_CONTROL_RESULT);
	struct uar_jw w = uar_jw_begin(&one);
	uar_err e = uar_row_unpack(row, &x->rows.arena, &s, sizeof s, NULL);

	if (!e && !s.answer_bytes)
		s.answer_bytes = (int64_t)s.answer.n;
	if (!e && x->w && x->w->answer_bytes)
		s.answer = uar_str_utf8_prefix(s.answer, x->w->answer_bytes);
	if (!e) {
		uar_jw_obj(&w, NULL);
		uar_subagent_write(&w, &s);
		uar_jw_close(&w);
		e = uar_jw_end(&w);
		x->rested += uar_subagent_at_rest(&s);
	}
	uar_buf_printf(&x->list, "%s%.*s", x->list.n ? "," : "", UAR_FMT(uar_buf_str(&one)));
	uar_buf_fini(&one);
	return e ? e : x->list.err;
}

static void look_at_next(struct waiting *x);

static void row_found(struct uar_rows_query *q)
{
	struct waiting *x = UAR_OWNER(q, struct waiting, rows);
	struct uar_error error = q->error;
	uar_err e = q->err;

	if (!e)
		e = keep_row(x, &q->rows[0]);
	else if (x->w && e == UAR_ENOTFOUND)
		uar_error_set(&error, e, "there is no subagent %.*s", UAR_FMT(x->ids[x->at]));
	uar_store_rows_fini(q);
	x->at++;
	if (e)
		finish(x, e, &error);
	else
		look_at_next(x);
}

static void look_at_next(struct waiting *x)
{
	struct uar_store *store = x->rt->o.store;
	uar_err e;

	if (!x->w || x->at == x->count) {
		looked(x);
		return;
	}
	x->rows = (struct uar_rows_query){
		.owner = x->owner, .kind = UAR_ROW_SUBAGENT, .id = x->ids[x->at], .done = row_found
	};
	e = store->ops->rows(store, &x->rows);
	if (e)
		finish(x, e, NULL);
}

static void look(struct waiting *x)
{
	x->looking = true;
	x->again = false;
	x->at = x->rested = 0;
	uar_buf_clear(&x->list);
	look_at_next(x);
}

static void look_task(struct uar_task *t)
{
	struct waiting *x = UAR_OWNER(t, struct waiting, look);

	if (x->looking)
		x->again = true;
	else if (x->w)
		look(x);
	else
		finish(x, UAR_OK, NULL);
}

static void time_over(struct uar_timer *t)
{
	struct waiting *x = UAR_OWNER(t, struct waiting, limit);

	x->timed_out = true;
	if (!x->looking)
		look(x);
}

static bool keep_question(struct waiting *x, const struct uar_subagents_wait *w)
{
	bool kept =
		w->count <= ARRAY_LEN(x->ids) && uar_owner_copy(&x->arena, &w->owner, &x->owner);

	x->count = w->count;
	for (size_t i = 0; i < w->count && kept; i++) {
		x->ids[i] = uar_arena_str(&x->arena, w->ids[i]);
		kept = x->ids[i].p != NULL;
	}
	return kept;
}

uar_err uar_runtime_wait_subagents(struct uar_runtime *rt, struct uar_subagents_wait *w)
{
	uar_err e = rt_takes_new(rt);
	struct waiting *x;

	if (!e && rt->fanout.waiting >= UAR_LIMIT_SUBAGENT_WAITERS)
		e = uar_error_set(&w->error, UAR_EBUSY, "%d calls wait for subagents already",
				  UAR_LIMIT_SUBAGENT_WAITERS);
	if (e)
		return e;
	x = uar_zalloc(sizeof *x);
	if (!x)
		return UAR_ENOMEM;
	x->rt = rt;
	x->w = w;
	x->limit.fn = time_over;
	x->look.fn = look_task;
	x->list = uar_buf_make(UAR_LIMIT_WAIT_SUBAGENTS_BYTES);
	uar_arena_init(&x->arena, 0);
	rt->fanout.waiting++;
	w->internal = x;
	uar_list_init(&w->node);
	uar_list_add_last(&rt->fanout.waiters, &w->node);
	if (!keep_question(x, w) ||
	    (w->timeout_us && uar_timer_set(rt->o.sched, &x->limit, w->timeout_us))) {
		free_waiting(x);
		return UAR_ENOMEM;
	}
	rt_op_begin(rt, &x->under_way, drop_waiting);
	uar_post(rt->o.sched, &x->look);
	return UAR_OK;
}

void uar_runtime_leave_subagents(struct uar_subagents_wait *w)
{
	struct waiting *x = w->internal;

	if (!x)
		return; /* the engine is gone */
	uar_list_remove(&w->node);
	x->w = NULL;
	if (x->looking)
		return; /* its row is under way */
	rt_op_end(&x->under_way);
	free_waiting(x);
}

void rt_fanout_rested(struct uar_runtime *rt, const struct uar_owner *owner, uar_str subagent_id)
{
	UAR_LIST_EACH (it, &rt->fanout.waiters) {
		struct uar_subagents_wait *w = UAR_OWNER(it, struct uar_subagents_wait, node);
		struct waiting *x = w->internal;

		for (size_t i = 0; i < w->count && rt_same_owner(&w->owner, owner); i++)
			if (uar_str_eq(w->ids[i], subagent_id)) {
				uar_post(rt->o.sched, &x->look);
				break;
			}
	}
}

/* A drain begins: nobody is kept waiting. */
void rt_fanout_drain(struct uar_runtime *rt)
{
	UAR_LIST_EACH (it, &rt->fanout.waiters) {
		struct waiting *x = UAR_OWNER(it, struct uar_subagents_wait, node)->internal;

		uar_post(rt->o.sched, &x->look);
	}
}

/* --- what a job was given -------------------------------------------------------------------- */

uar_err rt_control_prepare_job(struct rt_control *c)
{
	struct uar_ctl_create_job *in = &c->in.create_job;
	struct uar_store *store = c->rt->o.store;
	struct uar_buf text = uar_buf_make(2 * UAR_LIMIT_CONTROL_RESULT);
	struct uar_jw w = uar_jw_begin(&text);
	char id[UAR_UUID_TEXT + 1];
	uar_str bytes;
	uar_err e;

	if (!in->job_id.n) {
		uar_uuid_next(&c->rt->ids, id);
		in->job_id = uar_arena_str(&c->runs.kept, uar_str_c(id));
	}
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "instruction", in->instruction);
	uar_jw_raw(&w, "items", in->items);
	if (in->output_schema.n)
		uar_jw_raw(&w, "output_schema", in->output_schema);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	bytes = e ? UAR_STR_NONE : uar_arena_str(&c->runs.kept, uar_buf_str(&text));
	uar_buf_fini(&text);
	if (e || !bytes.p || !in->job_id.p)
		return e ? e : UAR_ENOMEM;
	c->runs.text = (struct uar_blob_put){ .bytes = bytes, .done = rt_control_stored };
	return store->ops->blob_put(store, &c->runs.text);
}
