/* entry_plugin.c - a run at a plugin: its place, its reports, its end.
 *
 * Reports of progress are gathered: at most one each 100 ms goes to the engine,
 * and the last one always does, before the end at the latest. Items are made
 * durable in the order in which they came; the end waits for all of them. */
#include "event/limits.h"
#include "work/limits.h"
#include "work/plugin_refs.h"

enum { PROGRESS_EVERY_US = 100000, PROGRESS_ITEM_EVERY_US = 500000, PROGRESS_ITEM_BYTES = 2048 };

struct plugin_worker {
	struct worker base;
	struct input_load *input;
	struct uar_entry_call *call; /* NULL: not started, or over */
	struct uar_buf args;
	struct export_queue exports;
	struct uar_timer flush;
	struct uar_run_progress gathered;
	int64_t gathered_count;
	int64_t last_sent_us;	    /* monotonic; INT64_MIN: never */
	int64_t last_item_us;	    /* of progress; likewise */
	struct uar_arena end_arena; /* of what follows */
	struct uar_entry_end end;
	struct uar_export result; /* no id: none */
	struct refs_set refs;
	bool loaded, ended, held;
};

static struct uar_entries *entries_of(const struct plugin_worker *w)
{
	return rt_work(w->base.run)->o.entries;
}

static struct uar_sched *sched_of(const struct plugin_worker *w)
{
	return rt_sched(rt_engine(w->base.run));
}

static void fail(struct plugin_worker *w, uar_err e, const char *why)
{
	struct uar_command c = { .kind = UAR_CMD_FAIL };

	c.fail = (struct uar_failure){ uar_str_c(uar_err_token(e)), uar_str_c(why),
				       UAR_STR("execution"), uar_err_retryable(e) };
	rt_send(w->base.run, &c);
}

/* When commits or blobs are slower than the plugin, it waits. */
static void set_held(struct plugin_worker *w)
{
	bool hold = !rt_export_has_room(&w->exports) || !rt_has_room(rt_agg(w->base.run));

	if (!w->call || hold == w->held)
		return;
	w->held = hold;
	entries_of(w)->ops->pause(w->call, hold);
}

/* --- progress ------------------------------------------------------------------- */

static void forget_gathered(struct plugin_worker *w)
{
	w->gathered = (struct uar_run_progress){ -1, -1, -1, -1, "", "", "" };
	w->gathered_count = 0;
}

/* For those who only look at items. It is no result, and may be left out. */
static void export_progress(struct plugin_worker *w)
{
	const struct uar_run_progress *g = &w->gathered;
	int64_t now = uar_clock_mono(sched_of(w)->clock);
	struct uar_export x = { .type = UAR_STR("json"),
				.role = UAR_STR("progress"),
				.label = UAR_STR("progress"),
				.category = UAR_STR("system"),
				.mime = UAR_STR("application/json") };
	struct uar_buf b = uar_buf_make(PROGRESS_ITEM_BYTES);
	struct uar_jw j = uar_jw_begin(&b);

	if (!rt_work(w->base.run)->o.export_progress ||
	    (w->last_item_us != INT64_MIN && now - w->last_item_us < PROGRESS_ITEM_EVERY_US))
		return;
	uar_jw_obj(&j, NULL);
	if (g->value >= 0)
		uar_jw_double(&j, "progress", g->value);
	if (g->stage[0])
		uar_jw_cstr(&j, "stage", g->stage);
	if (g->message[0])
		uar_jw_cstr(&j, "message", g->message);
	uar_jw_close(&j);
	x.content = uar_buf_str(&b);
	if (uar_jw_end(&j) == UAR_OK &&
	    rt_export_add(&w->exports, &x, UAR_STR_NONE, 0, NULL) == UAR_OK)
		w->last_item_us = now;
	uar_buf_fini(&b);
}

static void send_progress(struct plugin_worker *w)
{
	const struct uar_run_progress *g = &w->gathered;
	struct uar_command c = { .kind = UAR_CMD_PROGRESS };

	uar_timer_stop(sched_of(w), &w->flush);
	if (!w->gathered_count)
		return;
	c.progress = (struct uar_progress){
		.value = g->value,
		.eta_seconds = g->eta_seconds,
		.step = g->step,
		.step_total = g->step_total,
		.coalesced = w->gathered_count - 1,
		.stage = uar_str_c(g->stage),
		.message = uar_str_c(g->message),
		.metrics = uar_str_c(g->metrics),
	};
	rt_send(w->base.run, &c);
	export_progress(w);
	forget_gathered(w);
	w->last_sent_us = uar_clock_mono(sched_of(w)->clock);
}

static void on_flush(struct uar_timer *t)
{
	send_progress(UAR_OWNER(t, struct plugin_worker, flush));
}

static void keep(char *out, size_t size, uar_str s)
{
	if (s.n)
		snprintf(out, size, "%.*s", UAR_FMT(uar_str_utf8_prefix(s, size - 1)));
}

static void gather(struct plugin_worker *w, const struct uar_progress *p)
{
	struct uar_run_progress *g = &w->gathered;

	if (p->value >= 0)
		g->value = p->value;
	if (p->eta_seconds >= 0)
		g->eta_seconds = p->eta_seconds;
	if (p->step >= 0)
		g->step = p->step;
	if (p->step_total >= 0)
		g->step_total = p->step_total;
	keep(g->stage, sizeof g->stage, p->stage);
	keep(g->message, sizeof g->message, p->message);
	keep(g->metrics, sizeof g->metrics, p->metrics);
	w->gathered_count++;
}

static void on_progress(void *ctx, const struct uar_progress *p)
{
	struct plugin_worker *w = ctx;
	int64_t now = uar_clock_mono(sched_of(w)->clock), due = 0;

	gather(w, p);
	if (w->last_sent_us != INT64_MIN)
		due = w->last_sent_us + PROGRESS_EVERY_US - now;
	if (due <= 0)
		send_progress(w);
	else if (w->gathered_count == 1 && uar_timer_set(sched_of(w), &w->flush, due))
		send_progress(w);
}

/* --- the end ----------------------------------------------------------------------- */

static bool knows(struct plugin_worker *w)
{
	for (const struct uar_json *id = uar_json_at(w->end.refs, 0); id; id = id->next)
		if (!rt_export_known(&w->exports, id->text))
			return false;
	return true;
}

static void send_end(struct plugin_worker *w)
{
	struct uar_command c = { .kind = UAR_CMD_FINISH };
	const struct uar_entry_end *end = &w->end;
	bool stopped = end->how == UAR_ENTRY_HOW_STOPPED;

	if (end->how == UAR_ENTRY_HOW_FINISHED) {
		c.export = w->result;
	} else {
		c.kind = UAR_CMD_FAIL;
		/* While it is being cancelled the table makes "cancelled" of any failure. */
		c.fail = (struct uar_failure){
			stopped ? UAR_STR("PLUGIN_ERROR") : end->code,
			stopped ? UAR_STR("the plugin gave up without having been asked to")
			: end->message.n ? end->message
					 : UAR_STR("the plugin failed"),
			UAR_STR("execution"), end->retryable
		};
		c.details = end->details;
	}
	c.result_refs = w->refs.refs;
	rt_send(w->base.run, &c);
}

static void on_refs_done(void *ctx, uar_err e)
{
	struct plugin_worker *w = ctx;

	if (e)
		fail(w, e, "the result could not be stored");
	else
		send_end(w);
}

/* What counts as the result: the returned value, then the items that were named,
 * or all of them when the run went well and named none. */
static uar_err name_results(struct plugin_worker *w)
{
	bool finished = w->end.how == UAR_ENTRY_HOW_FINISHED;
	struct refs_source from = { .exports = &w->exports,
				    .result_id = finished ? w->result.id : UAR_STR_NONE,
				    .named = w->end.refs,
				    .all = finished };

	w->refs.arena = &w->end_arena;
	w->refs.done = on_refs_done;
	w->refs.ctx = w;
	return rt_refs_begin(&w->refs, &from);
}

/* A run that fails anyway keeps its own reason. */
static void refuse_foreign_refs(struct plugin_worker *w)
{
	w->end.refs = NULL;
	if (w->end.how != UAR_ENTRY_HOW_FINISHED)
		return;
	w->end.how = UAR_ENTRY_HOW_BROKE;
	w->end.code = UAR_STR("PLUGIN_ERROR");
	w->end.message = UAR_STR("result_refs names an item that the run did not export");
	w->end.details = UAR_STR_NONE;
	w->end.retryable = false;
}

/* The queue says that everything before the end is on its way. */
static void on_exports_done(void *ctx, const struct uar_export *result, uar_err e)
{
	struct plugin_worker *w = ctx;

	if (!knows(w))
		refuse_foreign_refs(w);
	if (!e && result)
		e = rt_export_copy(&w->end_arena, result, &w->result);
	if (!e)
		e = name_results(w);
	if (e != UAR_EBUSY)
		on_refs_done(w, e);
}

static uar_err keep_end(struct plugin_worker *w, const struct uar_entry_end *end)
{
	struct uar_arena *a = &w->end_arena;
	struct uar_buf refs = uar_buf_make(UAR_LIMIT_PLUGIN_LINE);
	uar_str text;
	uar_err e = UAR_OK;

	w->end = *end;
	w->end.result = uar_arena_str(a, end->result);
	w->end.code = uar_arena_str(a, end->code);
	w->end.message = uar_arena_str(a, end->message);
	w->end.details = uar_arena_str(a, end->details);
	if (end->refs) {
		uar_json_write(&refs, end->refs);
		text = refs.err ? UAR_STR_NONE : uar_arena_str(a, uar_buf_str(&refs));
		e = text.p ? uar_json_parse(text, NULL, a, &w->end.refs, NULL) : UAR_ENOMEM;
	}
	uar_buf_fini(&refs);
	if (!w->end.result.p || !w->end.code.p || !w->end.message.p || !w->end.details.p)
		e = UAR_ENOMEM;
	return e;
}

static void on_done(void *ctx, const struct uar_entry_end *end)
{
	struct plugin_worker *w = ctx;
	uar_err e = keep_end(w, end);

	w->call = NULL;
	w->ended = true;
	send_progress(w); /* may become an item, and none may come after the end */
	if (!e)
		e = rt_export_finish(&w->exports, w->end.result);
	if (e)
		fail(w, e, uar_err_text(e));
}

/* --- items ------------------------------------------------------------------------------ */

static void refuse(struct plugin_worker *w, uint64_t ticket, uar_err e, const struct uar_error *why)
{
	struct uar_entry_answer a = { .ticket = ticket, .err = e, .why = uar_str_c(why->text) };

	entries_of(w)->ops->answer(w->call, &a);
}

static void on_exported(void *ctx, const struct uar_export *x, uar_str raw, uint64_t ticket)
{
	struct plugin_worker *w = ctx;
	struct uar_error why = { 0 };
	uar_err e = rt_export_add(&w->exports, x, raw, ticket, &why);

	if (e)
		refuse(w, ticket, e, &why);
	else
		set_held(w);
}

static void on_uploaded(void *ctx, const struct uar_piece *p, uint64_t ticket)
{
	struct plugin_worker *w = ctx;
	struct uar_error why = { 0 };
	uar_err e = rt_export_piece(&w->exports, p, ticket, &why);

	if (e)
		refuse(w, ticket, e, &why);
}

static void on_stored(void *ctx, const struct uar_entry_answer *a)
{
	struct plugin_worker *w = ctx;

	if (w->call && (a->ticket || a->err))
		entries_of(w)->ops->answer(w->call, a);
	set_held(w);
}

/* --- the start ---------------------------------------------------------------------------- */

static int64_t time_left(const struct live_run *r)
{
	int64_t end = rt_state(r)->at.started_us + rt_state(r)->what.timeout_us;
	int64_t left = end - uar_clock_wall(rt_sched(rt_engine(r))->clock);

	if (!rt_state(r)->at.started_us) /* it begins when a process is ready */
		return rt_state(r)->what.timeout_us;
	return rt_state(r)->what.timeout_us == 0 ? 0 : left > 1000 ? left : 1000;
}

/* The start is committed before the process is told of the run: what was begun is known
 * after a crash. */
static void on_ready(void *ctx)
{
	struct plugin_worker *w = ctx;
	struct live_run *r = w->base.run;
	struct uar_command start = { .kind = UAR_CMD_START };

	if (rt_is_draining(rt_engine(r)))
		return; /* the next start does it */
	if (rt_state(r)->status == UAR_STATUS_QUEUED)
		rt_send(r, &start);
	else
		entries_of(w)->ops->begin(w->call);
}

static void plugin_begin(struct worker *base)
{
	struct plugin_worker *w = (struct plugin_worker *)base;

	if (w->call)
		entries_of(w)->ops->begin(w->call);
}

/* They fitted when the run was made; the manifest may be another one since. */
static uar_err check_args(const struct plugin_worker *w, struct uar_error *error)
{
	const struct uar_run_what *what = &rt_state(w->base.run)->what;
	struct uar_entries *entries = entries_of(w);
	struct uar_error why = { 0 };
	const struct uar_json *args;
	struct uar_arena scratch;
	uar_err e;

	if (!w->args.n)
		return UAR_OK;
	uar_arena_init(&scratch, 0);
	e = uar_json_parse(uar_buf_str(&w->args), NULL, &scratch, &args, &why);
	if (!e)
		e = entries->ops->check(entries, what->plugin_id, what->entry_id, args, &why);
	uar_arena_fini(&scratch);
	if (!e || e == UAR_ENOTFOUND) /* what is gone is told by who gives places */
		return UAR_OK;
	return uar_error_set(error, e,
			     "%.200s: %.400s; the plugin has changed since the run was made",
			     why.where, uar_error_text(&why));
}

static uar_err give(struct plugin_worker *w, struct uar_error *error)
{
	struct live_run *r = w->base.run;
	const struct uar_run *run = rt_state(r);
	struct uar_entries *entries = entries_of(w);
	struct uar_entry_events events = { on_progress, on_exported, on_done,
					   w,		on_uploaded, on_ready };
	struct uar_entry_request request = {
		.run_id = run->id.run_id,
		.root_run_id = run->id.root_run_id,
		.parent_run_id = run->id.parent_run_id,
		.task_id = run->id.task_given ? run->id.task_id : UAR_STR_NONE,
		.trace_id = run->id.trace_id,
		.entry_id = run->what.entry_id,
		.args = uar_buf_str(&w->args),
		.attempt = run->what.attempt,
		.timeout_us = time_left(r),
		.restarted = rt_is_restarted(r),
	};
	uar_err e = entries->ops->start(entries, rt_slot(r), &request, &events, &w->call, error);

	uar_buf_fini(&w->args);
	return e;
}

static void try_start(struct plugin_worker *w)
{
	struct live_run *r = w->base.run;
	struct uar_error error = { 0 };
	uar_err e = UAR_ENOTFOUND;

	if (!w->loaded)
		return;
	if (!rt_plugin_place(&rt_work(r)->port, r, rt_state(r)->what.plugin_id,
			     rt_state(r)->what.entry_id))
		return; /* after a restart: again in the queue */
	if (rt_slot(r)->granted) {
		e = check_args(w, &error);
		if (!e)
			e = give(w, &error);
	} else {
		uar_error_set(&error, e, "plugin %.*s with entry %.*s is not installed",
			      UAR_FMT(rt_state(r)->what.plugin_id),
			      UAR_FMT(rt_state(r)->what.entry_id));
	}
	if (e)
		fail(w, e, uar_error_text(&error));
}

static void input_ready(void *ctx, uar_err e, uar_str text)
{
	struct plugin_worker *w = ctx;

	w->input = NULL;
	w->loaded = true;
	uar_buf_add_str(&w->args, text);
	if (!e)
		e = w->args.err;
	if (e)
		fail(w, e, uar_err_text(e));
	else
		try_start(w);
}

static uar_err plugin_start(struct worker *base, struct uar_error *error)
{
	struct plugin_worker *w = (struct plugin_worker *)base;

	if (!entries_of(w))
		return uar_error_set(error, UAR_ENOTFOUND, "no plugins are installed");
	rt_export_init(&w->exports, base->run);
	w->exports.stored = on_stored;
	w->exports.finished = on_exports_done;
	w->exports.ctx = w;
	return rt_input_load(base->run, input_ready, w, &w->input);
}

static void plugin_call_model(struct worker *w)
{
	(void)w;
}

static void plugin_flow(struct worker *base)
{
	set_held((struct plugin_worker *)base);
}

/* Not given to a process yet: there is nobody to wait for. */
static void plugin_cancel(struct worker *base)
{
	struct plugin_worker *w = (struct plugin_worker *)base;
	struct uar_command stopped = { .kind = UAR_CMD_STOPPED };

	w->held = false; /* the host lets a cancelled one speak */
	if (w->call)
		entries_of(w)->ops->cancel(
			w->call, uar_str_c(uar_run_rare(rt_state(base->run))->cancel.reason));
	else if (!w->ended)
		rt_send(base->run, &stopped);
}

static void plugin_stop(struct worker *base)
{
	struct plugin_worker *w = (struct plugin_worker *)base;

	rt_input_cancel(w->input);
	if (w->call)
		entries_of(w)->ops->stop(w->call, UAR_STR("the run is over"));
	uar_timer_stop(sched_of(w), &w->flush);
	rt_refs_cancel(&w->refs);
	rt_export_fini(&w->exports);
	uar_buf_fini(&w->args);
	uar_arena_fini(&w->end_arena);
	uar_free(w);
}

static const struct worker_ops plugin_ops = { "plugin",	   plugin_start, plugin_call_model,
					      plugin_flow, plugin_stop,	 plugin_cancel,
					      NULL,	   plugin_begin, NULL };

uar_err rt_plugin_make(struct live_run *r, struct worker **out)
{
	struct plugin_worker *w = uar_zalloc(sizeof *w);

	(void)r;
	if (!w)
		return UAR_ENOMEM;
	w->base.ops = &plugin_ops;
	w->args = uar_buf_make(UAR_LIMIT_HTTP_BODY);
	w->flush.fn = on_flush;
	w->last_sent_us = w->last_item_us = INT64_MIN;
	forget_gathered(w);
	uar_arena_init(&w->end_arena, 0);
	*out = &w->base;
	return UAR_OK;
}

/* --- places ---------------------------------------------------------------------------------- */

static void place_ready(struct uar_entry_slot *slot)
{
	struct live_run *r = rt_slot_run(slot);

	if (rt_is_draining(rt_engine(r)))
		return;
	if (rt_worker(r))
		try_start((struct plugin_worker *)rt_worker(r));
	else
		rt_start_queued(r);
}

bool rt_plugin_place(struct rt_workers *port, struct live_run *r, uar_str plugin_id,
		     uar_str entry_id)
{
	struct uar_entries *entries = UAR_OWNER(port, struct uar_workers, port)->o.entries;
	struct uar_entry_slot *slot = rt_slot(r);

	if (!entries || slot->granted)
		return true;
	if (slot->plugin)
		return false;
	slot->ready = place_ready;
	return entries->ops->ask(entries, plugin_id, entry_id, slot) != UAR_EBUSY;
}

static void make_early(struct live_run *r)
{
	struct uar_error error = { 0 };
	uar_err e = rt_worker_start(r, &error);

	error.code = e;
	if (e)
		rt_send_fail(r, e, "execution", uar_error_text(&error));
}

bool rt_plugin_may_begin(struct rt_workers *port, struct live_run *r, uar_str plugin_id,
			 uar_str entry_id)
{
	if (rt_worker(r))
		return false; /* it says when */
	if (!rt_plugin_place(port, r, plugin_id, entry_id))
		return false;
	if (!rt_slot(r)->granted || !rt_slot(r)->cold)
		return true;
	if (rt_is_committed(r))
		make_early(r);
	return false;
}

void rt_plugin_leave(struct rt_workers *port, struct live_run *r)
{
	struct uar_entries *entries = UAR_OWNER(port, struct uar_workers, port)->o.entries;

	if (entries)
		entries->ops->leave(entries, rt_slot(r));
}
