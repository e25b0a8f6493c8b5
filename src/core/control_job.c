/* control_job.c - jobs: one agent does the same to many items, some of them at once.
 *
 * Items that were never started have no row: the job's cursor says where they begin. The end of an
 * item and the start of the next are one append, so a job never has a free place that nobody knows
 * of. An attempt at an item is a run in a session of its own, submitted by the shell under the turn
 * id that the item's row names: doing it again does nothing. */
#include "core/control_int.h"

#include "core/limits.h"
#include "json/schema.h"

enum { PROGRESS_STEPS = 100, LISTED_ITEMS = 100 };

static bool is_over(const struct uar_row_job *j)
{
	return !uar_str_is(j->row.status, "running");
}

/* --- facts ----------------------------------------------------------------------------------- */

static void tell(struct ctl *c, struct uar_row_job *j, const struct uar_row_job_item *i)
{
	struct uar_jw *w;

	if (c->waits || c->e.err)
		return;
	if (!j->row.session_id.n)
		j->row.session_id = c->e.s->session_id;
	w = ctl_result(c);
	uar_jw_obj(w, "job");
	uar_job_write(w, j);
	uar_jw_close(w);
	if (i) {
		uar_jw_obj(w, "item");
		uar_job_item_write(w, i);
		uar_jw_close(w);
	}
	ctl_result_end(c);
}

static void emit_job(struct ctl *c, const struct uar_row_job *j, enum uar_event_class cls)
{
	uar_emit_name(&c->e, UAR_ID_JOB, j->row.id);
	uar_emit_name(&c->e, UAR_ID_THREAD, j->row.tag);
	uar_emit_name(&c->e, UAR_ID_TASK, j->row.parent);
	uar_emit(&c->e, cls, EMIT_SESSION);
}

static void emit_item(struct ctl *c, const struct uar_row_job *j, const struct uar_row_job_item *i,
		      enum uar_event_class cls)
{
	uar_emit_name(&c->e, UAR_ID_JOB_ITEM, i->row.id);
	emit_job(c, j, cls);
}

static uar_str item_id(struct ctl *c, const struct uar_row_job *j, int64_t index)
{
	return ctl_print(c, uar_arena_printf(c->e.env->arena, "%.*s.%lld", UAR_FMT(j->row.id),
					     (long long)index));
}

static void emit_created(struct ctl *c, const struct uar_row_job *j)
{
	struct uar_jw *w = uar_emit_begin(&c->e);
	uar_str doc = j->document;

	uar_jw_str(w, "job_kind", j->job_kind);
	uar_jw_cstr(w, "source", "api");
	uar_jw_str(w, "agent_id", j->agent_id);
	uar_jw_int(w, "item_count", j->item_count);
	if (j->item_count <= LISTED_ITEMS) {
		uar_jw_arr(w, "items");
		for (int64_t i = 0; i < j->item_count; i++) {
			uar_jw_obj(w, NULL);
			uar_jw_str(w, "job_item_id", item_id(c, j, i));
			uar_jw_int(w, "index", i);
			uar_jw_close(w);
		}
		uar_jw_close(w);
	}
	if (j->max_runtime_ms)
		uar_jw_int(w, "max_runtime_ms", j->max_runtime_ms);
	uar_jw_cstr(w, "status", "created");
	uar_emit_refs(&c->e,
		      uar_arena_printf(c->e.env->arena,
				       "{\"instruction_ref\":\"blob://%.*s\",\"input_refs\":"
				       "[\"blob://%.*s\"]%s%.*s%s}",
				       UAR_FMT(doc), UAR_FMT(doc),
				       j->has_schema ? ",\"output_schema_ref\":\"blob://" : "",
				       j->has_schema ? (int)doc.n : 0, doc.p ? doc.p : "",
				       j->has_schema ? "\"" : ""));
	emit_job(c, j, UAR_EV_JOB_CREATED);
}

static void emit_started(struct ctl *c, const struct uar_row_job *j)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_cstr(w, "status", "running");
	uar_jw_int(w, "concurrency", j->concurrency);
	uar_jw_time(w, "started_at", j->started_at);
	emit_job(c, j, UAR_EV_JOB_STARTED);
}

/* Of many items each hundredth part of the way is told, and the last one. */
static void emit_progress(struct ctl *c, const struct uar_row_job *j)
{
	int64_t done = ctl_items_done(j), step = j->item_count / PROGRESS_STEPS;
	struct uar_jw *w;

	if (step > 1 && done % step && done != j->item_count)
		return;
	w = uar_emit_begin(&c->e);
	ctl_put_counts(w, j);
	uar_jw_str(w, "cursor",
		   ctl_print(c, uar_arena_printf(c->e.env->arena, "%lld", (long long)j->cursor)));
	uar_jw_double(w, "progress", j->item_count ? (double)done / (double)j->item_count : 1);
	emit_job(c, j, UAR_EV_JOB_PROGRESS);
}

/* --- the start of items ---------------------------------------------------------------------- */

/* The instruction, and below it the input of the item. */
static uar_str message_of(struct ctl *c, const struct uar_row_job_input *in, int64_t index)
{
	const struct uar_json *items = NULL, *at;
	struct uar_buf text = uar_buf_make(UAR_LIMIT_JOB_ITEM_BYTES);
	uar_str value, out = UAR_STR_NONE;
	uar_err e = uar_json_parse(in->items, NULL, c->e.env->arena, &items, c->e.error);

	at = uar_json_first(items);
	for (int64_t i = 0; at && i < index; i++)
		at = at->next;
	if (e || !at) {
		ctl_fail(c, e ? e : UAR_ECORRUPT);
		return out;
	}
	if (at->kind != UAR_JSON_STRING)
		uar_json_write(&text, at);
	value = at->kind == UAR_JSON_STRING ? at->text : uar_buf_str(&text);
	out = uar_arena_printf(c->e.env->arena, "%.*s%s%.*s", UAR_FMT(in->instruction),
			       value.n && in->instruction.n ? "\n\n" : "", UAR_FMT(value));
	uar_buf_fini(&text);
	return ctl_print(c, out);
}

static void start_attempt(struct ctl *c, struct uar_row_job *j, struct uar_row_job_item *i)
{
	struct uar_jw *w;

	ctl_change(c, i);
	i->attempt++;
	i->row.status = UAR_STR("running");
	i->row.open = true;
	i->cancel = false;
	i->run_id = i->output = i->output_ref = i->last_error = UAR_STR_NONE;
	i->started_at = c->e.env->now_us;
	i->ended_at = 0;
	i->thread_id =
		ctl_print(c, uar_arena_printf(c->e.env->arena, UAR_JOB_THREAD "%.*s.%lld.%lld",
					      UAR_FMT(j->row.id), (long long)i->row.rank,
					      (long long)i->attempt));
	i->turn_id =
		ctl_print(c, uar_arena_printf(c->e.env->arena, "%.*s.1", UAR_FMT(i->thread_id)));
	ctl_change(c, j);
	j->running++;
	j->row.open = true;
	w = uar_emit_begin(&c->e);
	uar_jw_int(w, "index", i->row.rank);
	uar_jw_int(w, "attempt", i->attempt);
	uar_jw_str(w, "assigned_thread_id", i->thread_id);
	uar_jw_cstr(w, "status", "running");
	uar_emit_refs(&c->e, uar_arena_printf(c->e.env->arena, "{\"input_ref\":\"input://%.*s/0\"}",
					      UAR_FMT(i->turn_id)));
	emit_item(c, j, i, UAR_EV_JOB_ITEM_STARTED);
}

static void start_fresh(struct ctl *c, struct uar_row_job *j, const struct uar_row_job_input *in)
{
	uar_str message = message_of(c, in, j->cursor);
	struct uar_row_job_item *i =
		c->e.err ? NULL : ctl_new_row(c, UAR_ROW_JOB_ITEM, item_id(c, j, j->cursor));

	if (!i)
		return;
	i->row.parent = j->row.id;
	i->row.rank = j->cursor;
	i->agent_id = j->agent_id;
	i->parent_thread_id = j->row.tag.n ? j->row.tag : j->row.session_id;
	i->message = message;
	i->budgets = j->budgets;
	j->cursor++;
	start_attempt(c, j, i);
}

/* The first index that waits for another attempt, taken from the list; < 0: none waits. */
static int64_t take_again(struct ctl *c, struct uar_row_job *j)
{
	const struct uar_json *list = NULL, *first;
	uar_str rest;

	if (!j->again.n || uar_json_parse(j->again, NULL, c->e.env->arena, &list, NULL) ||
	    !(first = uar_json_first(list)))
		return -1;
	rest = uar_str_from(j->again, 1);
	(void)uar_str_cut(rest, first->next ? ',' : ']', &rest);
	j->again = first->next
			   ? ctl_print(c, uar_arena_printf(c->e.env->arena, "[%.*s", UAR_FMT(rest)))
			   : UAR_STR_NONE;
	return uar_json_int(first, -1);
}

static struct uar_row_job_item *item_at(struct ctl *c, const struct uar_row_job *j, int64_t index)
{
	return ctl_row(c, UAR_ROW_JOB_ITEM, item_id(c, j, index));
}

/* As many as there are free places. */
static void start_items(struct ctl *c, struct uar_row_job *j)
{
	const struct uar_row_job_input *in =
		j->cursor < j->item_count ? ctl_row(c, UAR_ROW_JOB_INPUT, j->row.id) : NULL;

	while (!c->waits && !c->e.err && j->running < j->concurrency) {
		int64_t index = take_again(c, j);
		struct uar_row_job_item *i = index >= 0 ? item_at(c, j, index) : NULL;

		if (i)
			start_attempt(c, j, i);
		else if (index < 0 && in && j->cursor < j->item_count)
			start_fresh(c, j, in);
		else if (index < 0)
			return;
	}
}

/* --- create ---------------------------------------------------------------------------------- */

/* How many items there are; < 0: refused. */
static int64_t count_items(struct ctl *c, uar_str items)
{
	const struct uar_json *list = NULL;
	int64_t n = 0;
	uar_err e = uar_json_parse(items, NULL, c->e.env->arena, &list, c->e.error);

	if (e)
		ctl_fail(c, e);
	for (const struct uar_json *i = uar_json_first(list); i; i = i->next, n++)
		if (i->text.n > UAR_LIMIT_JOB_ITEM_BYTES)
			ctl_refuse(c, UAR_ETOOBIG, "/items", "an item has more than %d bytes",
				   UAR_LIMIT_JOB_ITEM_BYTES);
	if (n < 1 || n > UAR_LIMIT_JOB_ITEMS)
		ctl_refuse(c, UAR_EINVALID, "/items", "a job has 1 to %d items",
			   UAR_LIMIT_JOB_ITEMS);
	return n;
}

static void check_create(struct ctl *c)
{
	const struct uar_ctl_create_job *in = &c->in->create_job;
	const struct uar_json *schema = NULL;
	struct uar_schema *compiled = NULL;
	uar_err e = UAR_OK;

	if (in->concurrency < 0 || in->concurrency > UAR_LIMIT_JOB_CONCURRENCY)
		ctl_refuse(c, UAR_EINVALID, "/concurrency", "concurrency is 1 to %d",
			   UAR_LIMIT_JOB_CONCURRENCY);
	if (c->in->active && c->in->active->status == UAR_STATUS_CANCELLING)
		ctl_refuse(c, UAR_ESTATE, "/thread_id",
			   "the turn is being cancelled: it starts no jobs");
	if (in->max_runtime_ms < 0)
		ctl_refuse(c, UAR_EINVALID, "/max_runtime_ms", "a time is not negative");
	if (in->output_schema.n && !c->e.err)
		e = uar_json_parse(in->output_schema, NULL, c->e.env->arena, &schema, c->e.error);
	if (!e && schema)
		e = uar_schema_create(schema, NULL, &compiled, c->e.error);
	if (e == UAR_ENOMEM)
		ctl_fail(c, e);
	else if (e)
		ctl_refuse(c, UAR_EINVALID, "/output_schema", "it is no usable JSON Schema");
	uar_schema_destroy(compiled);
}

static void keep_input(struct ctl *c)
{
	const struct uar_ctl_create_job *in = &c->in->create_job;
	struct uar_row_job_input *row;

	row = c->e.err ? NULL : ctl_new_row(c, UAR_ROW_JOB_INPUT, in->job_id);
	if (!row)
		return;
	row->row.status = UAR_STR("given");
	row->row.parent = in->job_id;
	row->instruction = in->instruction;
	row->items = in->items;
	row->output_schema = in->output_schema;
}

static struct uar_row_job *make_job(struct ctl *c, const struct ctl_ancestry *a, int64_t items)
{
	const struct uar_ctl_create_job *in = &c->in->create_job;
	struct uar_row_job *j = ctl_new_row(c, UAR_ROW_JOB, in->job_id);

	if (!j)
		return NULL;
	j->row.status = UAR_STR("running");
	j->row.parent = in->task_id;
	j->row.tag = in->thread_id;
	j->row.session_id = c->e.s->session_id;
	j->row.due_us = in->max_runtime_ms ? c->e.env->now_us + in->max_runtime_ms * 1000 : 0;
	j->agent_id = in->agent_id;
	j->job_kind = in->job_kind.n ? in->job_kind : UAR_STR("batch");
	j->instruction = uar_str_utf8_prefix(in->instruction, 512);
	j->document = c->in->message.blob;
	j->has_schema = in->output_schema.n > 0;
	j->concurrency = in->concurrency ? in->concurrency : 8;
	j->max_runtime_ms = in->max_runtime_ms;
	j->item_count = items;
	j->depth = a->depth;
	j->root_session_id = a->root_session_id;
	j->run_id = c->in->active ? c->in->active->id.run_id : UAR_STR_NONE;
	j->on_parent_end = in->on_parent_end.n ? in->on_parent_end : UAR_STR("close");
	j->started_at = c->e.env->now_us;
	j->budgets = ctl_budgets(c);
	return j;
}

/* The shell has given the job an id when the caller did not. */
void ctl_create_job(struct ctl *c)
{
	const struct uar_ctl_create_job *in = &c->in->create_job;
	struct uar_row_job *j = ctl_row(c, UAR_ROW_JOB, in->job_id);
	struct uar_row_task *t;
	struct ctl_ancestry a;
	int64_t items;

	if (c->waits || !ctl_check_child_id(c, in->job_id, "/job_id"))
		return;
	if (j) {
		tell(c, j, NULL);
		return;
	}
	t = ctl_delegating_task(c, in->task_id);
	a = ctl_ancestry(c);
	items = count_items(c, in->items);
	check_create(c);
	if (c->waits || c->e.err)
		return;
	keep_input(c);
	j = make_job(c, &a, items);
	if (!j)
		return;
	emit_created(c, j);
	if (t)
		ctl_delegate(c, t, "job", in->job_id);
	emit_started(c, j);
	start_items(c, j);
	emit_progress(c, j);
	tell(c, j, NULL);
}

/* --- the end of an item ---------------------------------------------------------------------- */

static void end_job(struct ctl *c, struct uar_row_job *j, const char *status)
{
	ctl_change(c, j);
	j->row.status = uar_str_c(status);
	j->row.due_us = 0;
	j->ended_at = c->e.env->now_us;
}

static void emit_over(struct ctl *c, const struct uar_row_job *j)
{
	struct uar_jw *w = uar_emit_begin(&c->e);
	int64_t took = c->e.env->now_us - j->started_at;

	ctl_put_counts(w, j);
	uar_jw_int(w, "duration_ms", took > 0 ? took / 1000 : 0);
	uar_jw_cstr(w, "status", "completed");
	emit_job(c, j, UAR_EV_JOB_COMPLETED);
}

static void fail_job(struct ctl *c, struct uar_row_job *j, const struct uar_failure *f)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_str(w, "failure_category", f->category);
	uar_emit_error(w, "error", f, UAR_STR_NONE);
	ctl_put_counts(w, j);
	uar_jw_cstr(w, "status", "failed");
	emit_job(c, j, UAR_EV_JOB_FAILED);
	j->last_error = ctl_error_text(c, f);
	j->status_reason = f->message;
	end_job(c, j, "failed");
}

/* Nothing is under way and nothing is left. A job of which not one item was done has failed. */
static void end_if_done(struct ctl *c, struct uar_row_job *j)
{
	const struct uar_failure f = { .code = UAR_STR("JOB_FAILED"),
				       .message = UAR_STR("no item was completed"),
				       .category = UAR_STR("execution"),
				       .retryable = true };

	if (j->running)
		return;
	j->row.open = false;
	if (is_over(j) || ctl_items_done(j) < j->item_count)
		return;
	if (j->completed) {
		emit_over(c, j);
		end_job(c, j, "completed");
	} else {
		fail_job(c, j, &f);
	}
}

/* Does the answer keep to the schema of the job? Without one each does. */
static bool answer_fits(struct ctl *c, const struct uar_row_job *j)
{
	const struct uar_row_job_input *in =
		j->has_schema ? ctl_row(c, UAR_ROW_JOB_INPUT, j->row.id) : NULL;
	const struct uar_json *schema = NULL, *answer = NULL;
	struct uar_schema *compiled = NULL;
	struct uar_arena *arena = c->e.env->arena;
	uar_err e;

	if (!in)
		return true;
	e = uar_json_parse(in->output_schema, NULL, arena, &schema, NULL);
	if (!e)
		e = uar_schema_create(schema, NULL, &compiled, NULL);
	if (!e)
		e = uar_json_parse(c->in->settle_job_item.answer, NULL, arena, &answer, NULL);
	if (!e)
		e = uar_schema_validate(compiled, answer, arena, NULL);
	uar_schema_destroy(compiled);
	if (e == UAR_ENOMEM)
		ctl_fail(c, e);
	return !e;
}

static void complete_item(struct ctl *c, struct uar_row_job *j, struct uar_row_job_item *i)
{
	int64_t took = c->e.env->now_us - i->started_at;
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_int(w, "index", i->row.rank);
	uar_jw_int(w, "attempt", i->attempt);
	uar_jw_int(w, "duration_ms", took > 0 ? took / 1000 : 0);
	uar_jw_cstr(w, "status", "completed");
	uar_emit_refs(&c->e, uar_arena_printf(c->e.env->arena, "{\"output_refs\":[%s%.*s%s]}",
					      i->output_ref.n ? "\"" : "", UAR_FMT(i->output_ref),
					      i->output_ref.n ? "\"" : ""));
	emit_item(c, j, i, UAR_EV_JOB_ITEM_COMPLETED);
	i->row.status = UAR_STR("completed");
	j->completed++;
}

static void fail_item(struct ctl *c, struct uar_row_job *j, struct uar_row_job_item *i,
		      const struct uar_failure *f)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_int(w, "index", i->row.rank);
	uar_jw_int(w, "attempt", i->attempt);
	uar_jw_str(w, "failure_category", f->category);
	uar_emit_error(w, "error", f, UAR_STR_NONE);
	uar_jw_bool(w, "retryable", f->retryable);
	uar_jw_str(w, "assigned_thread_id", i->thread_id);
	uar_jw_cstr(w, "status", "failed");
	emit_item(c, j, i, UAR_EV_JOB_ITEM_FAILED);
	i->last_error = ctl_error_text(c, f);
	i->retryable = f->retryable;
}

static void settle(struct ctl *c, struct uar_row_job *j, struct uar_row_job_item *i)
{
	const struct uar_ctl_settle_job_item *in = &c->in->settle_job_item;
	const struct uar_failure wrong = { .code = UAR_STR("OUTPUT_INVALID"),
					   .message = UAR_STR("the answer does not keep to the "
							      "output schema of the job"),
					   .category = UAR_STR("output"),
					   .retryable = true };
	bool ended = uar_str_is(in->status, "completed"), plain = uar_str_is(in->status, "failed");
	const struct uar_failure f = {
		.code = in->code.n ? in->code : UAR_STR("FAILED"),
		.message = in->message.n ? in->message : in->status,
		.category = plain ? UAR_STR("execution") : in->status,
		.retryable = in->retryable || !plain,
	};

	if (ended && answer_fits(c, j)) {
		complete_item(c, j, i);
	} else if (ended) {
		fail_item(c, j, i, &wrong);
		i->row.status = UAR_STR("reported");
		j->reported++;
	} else {
		fail_item(c, j, i, &f);
		i->row.status = UAR_STR("failed");
		j->failed++;
	}
}

static struct uar_row_job *job(struct ctl *c, uar_str id)
{
	struct uar_row_job *j = ctl_row(c, UAR_ROW_JOB, id);

	if (!j && !c->waits)
		ctl_refuse(c, UAR_ENOTFOUND, "/job_id", "there is no job %.*s", UAR_FMT(id));
	return j;
}

/* It may have been settled before: then nothing is left to do. */
void ctl_settle_job_item(struct ctl *c)
{
	const struct uar_ctl_settle_job_item *in = &c->in->settle_job_item;
	struct uar_row_job *j = job(c, in->job_id);
	struct uar_row_job_item *i;
	int64_t index = -1;
	uar_str id;

	if (!j || !uar_thread_job(in->turn_id, &id, &index))
		return;
	i = item_at(c, j, index);
	if (!i || !i->row.open || !uar_str_eq(i->turn_id, in->turn_id))
		return;
	ctl_change(c, i);
	ctl_change(c, j);
	i->row.open = false;
	i->run_id = in->run_id;
	i->output = in->answer;
	i->output_ref = in->output_ref;
	i->ended_at = c->e.env->now_us;
	j->running--;
	settle(c, j, i);
	if (!is_over(j))
		start_items(c, j);
	if (c->waits)
		return;
	emit_progress(c, j);
	end_if_done(c, j);
}

/* --- cancel, expire, retry ------------------------------------------------------------------- */

/* The runs of its items are asked to stop, by the shell. */
static void stop_items(struct ctl *c, const struct uar_row_job *j)
{
	const struct uar_need need = { .kind = UAR_ROW_JOB_ITEM,
				       .parent = j->row.id,
				       .open = true };
	const struct uar_loaded *items = j->running ? ctl_load(c, &need) : NULL;

	for (size_t k = 0; items && k < items->count && !c->e.err; k++) {
		struct uar_row_job_item *i = ctl_row_of(c, &items->rows[k]);

		if (i)
			((struct uar_row_job_item *)ctl_change(c, i))->cancel = true;
	}
}

void ctl_cancel_job(struct ctl *c)
{
	const struct uar_ctl_cancel_job *in = &c->in->cancel_job;
	struct uar_row_job *j = job(c, in->job_id);
	struct uar_jw *w;

	if (!j)
		return;
	if (is_over(j)) {
		tell(c, j, NULL);
		return;
	}
	stop_items(c, j);
	if (c->waits)
		return;
	ctl_change(c, j);
	j->status_reason = in->reason.n ? in->reason : UAR_STR("requested");
	j->row.open = j->running > 0;
	w = uar_emit_begin(&c->e);
	uar_jw_str(w, "reason", j->status_reason);
	ctl_put_who(w, "cancelled_by", c->in);
	ctl_put_counts(w, j);
	uar_jw_cstr(w, "status", "cancelled");
	emit_job(c, j, UAR_EV_JOB_CANCELLED);
	end_job(c, j, "cancelled");
	tell(c, j, NULL);
}

void ctl_expire_job(struct ctl *c)
{
	const struct uar_failure f = { .code = UAR_STR("JOB_TIMEOUT"),
				       .message = UAR_STR("the job took longer than it may"),
				       .category = UAR_STR("timeout"),
				       .retryable = true };
	struct uar_row_job *j = job(c, c->in->expire_job.job_id);

	if (!j || is_over(j) || !j->row.due_us || j->row.due_us > c->e.env->now_us)
		return;
	stop_items(c, j);
	if (c->waits)
		return;
	ctl_change(c, j);
	fail_job(c, j, &f);
	j->row.open = j->running > 0;
}

static void wait_for_place(struct ctl *c, struct uar_row_job *j, struct uar_row_job_item *i)
{
	uar_str list = j->again.n ? uar_str_n(j->again.p, j->again.n - 1) : UAR_STR("[");

	ctl_change(c, i);
	i->row.status = UAR_STR("pending");
	ctl_change(c, j);
	j->again = ctl_print(c, uar_arena_printf(c->e.env->arena, "%.*s%s%lld]", UAR_FMT(list),
						 j->again.n ? "," : "", (long long)i->row.rank));
}

/* Its output was none, so another one is no duplicate. */
static void take_back(struct uar_row_job *j, const struct uar_row_job_item *i)
{
	if (uar_str_is(i->row.status, "reported"))
		j->reported--;
	else
		j->failed--;
}

static bool may_retry(struct ctl *c, const struct uar_row_job *j, const struct uar_row_job_item *i)
{
	if (!i || !uar_str_eq(i->row.parent, j->row.id))
		ctl_refuse(c, UAR_ENOTFOUND, "/job_item_id", "the job has started no such item");
	else if (!uar_str_is(i->row.status, "failed") && !uar_str_is(i->row.status, "reported"))
		ctl_refuse(c, UAR_ESTATE, "/job_item_id", "the item is %.*s",
			   UAR_FMT(i->row.status));
	else if (uar_str_is(j->row.status, "cancelled"))
		ctl_refuse(c, UAR_ESTATE, "/job_id", "the job was cancelled: its cancel holds");
	if (j->row.parent.n)
		ctl_check_holds(c, j->row.parent, "/job_id");
	return !c->e.err && !c->waits;
}

void ctl_retry_job_item(struct ctl *c)
{
	const struct uar_ctl_retry_job_item *in = &c->in->retry_job_item;
	struct uar_row_job *j = job(c, in->job_id);
	struct uar_row_job_item *i = j ? ctl_row(c, UAR_ROW_JOB_ITEM, in->job_item_id) : NULL;

	if (!j || c->waits || !may_retry(c, j, i))
		return;
	ctl_change(c, j);
	take_back(j, i);
	if (is_over(j)) {
		j->row.status = UAR_STR("running");
		j->last_error = j->status_reason = UAR_STR_NONE;
		j->started_at = c->e.env->now_us;
		j->ended_at = 0;
		j->row.due_us = j->max_runtime_ms ? c->e.env->now_us + j->max_runtime_ms * 1000 : 0;
		emit_started(c, j);
	}
	if (j->running < j->concurrency)
		start_attempt(c, j, i);
	else
		wait_for_place(c, j, i);
	start_items(c, j);
	if (c->waits)
		return;
	emit_progress(c, j);
	tell(c, j, i);
}
