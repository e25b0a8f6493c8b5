/* call.c - one run at a process: started, reported, cancelled, over. */
#include "json/limits.h"
#include "plugin/plugin_int.h"

static struct uar_sched *sched_of(const struct uar_entry_call *c)
{
	return uar_loop_sched(c->plugin->host->o.loop);
}

static void put_id(struct uar_jw *w, const char *key, uar_str id)
{
	if (id.n)
		uar_jw_str(w, key, id);
}

/* The parameters of run.start, kept until a process is ready for them. */
static uar_err keep_start(struct uar_entry_call *c, const struct uar_entry_request *r)
{
	struct uar_jw w;

	c->start = uar_buf_make(UAR_LIMIT_JSON_BYTES * 2);
	w = uar_jw_begin(&c->start);
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "run_id", r->run_id);
	uar_jw_str(&w, "entry_id", r->entry_id);
	uar_jw_raw(&w, "args", r->args.n ? r->args : UAR_STR("{}"));
	uar_jw_int(&w, "attempt", r->attempt);
	put_id(&w, "root_run_id", r->root_run_id);
	put_id(&w, "parent_run_id", r->parent_run_id);
	put_id(&w, "task_id", r->task_id);
	put_id(&w, "trace_id", r->trace_id);
	if (r->timeout_us)
		uar_jw_double(&w, "timeout_seconds", (double)r->timeout_us / 1e6);
	if (r->restarted)
		uar_jw_bool(&w, "restarted", true);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static void on_grace_over(struct uar_timer *t);

uar_err call_make(struct plugin *p, const struct uar_entry_request *r,
		  const struct uar_entry_events *events, struct uar_entry_call **out,
		  struct uar_error *error)
{
	struct uar_entry_call *c = uar_zalloc(sizeof *c);
	uar_err e;

	if (!c)
		return UAR_ENOMEM;
	c->plugin = p;
	c->entry = uar_manifest_entry(&p->m, r->entry_id);
	c->events = *events;
	c->heard = true;
	c->grace.fn = on_grace_over;
	uar_list_init(&c->node);
	snprintf(c->run_id, sizeof c->run_id, "%.*s", UAR_FMT(r->run_id));
	snprintf(c->trace_id, sizeof c->trace_id, "%.*s", UAR_FMT(r->trace_id));
	e = !c->entry ? UAR_ENOTFOUND : p->library ? library_start(c, r, error) : keep_start(c, r);
	if (e) {
		call_free(c);
		return e;
	}
	*out = c;
	return UAR_OK;
}

void call_free(struct uar_entry_call *c)
{
	uar_timer_stop(sched_of(c), &c->grace);
	uar_list_remove(&c->node);
	uar_buf_fini(&c->start);
	uar_free(c);
}

static void send_start(struct uar_entry_call *c)
{
	struct process *s = c->process;
	struct uar_buf *b = &c->plugin->host->buf;
	struct uar_jw w;

	if (c->state != CALL_WAITING)
		return;
	process_mark_start(s, c);
	c->request = ++s->last_request;
	c->state = CALL_RUNNING;
	uar_buf_clear(b);
	w = uar_jw_begin(b);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "jsonrpc", "2.0");
	uar_jw_u64(&w, "id", c->request);
	uar_jw_cstr(&w, "method", "run.start");
	uar_jw_raw(&w, "params", uar_buf_str(&c->start));
	process_send(s, &w);
	uar_buf_fini(&c->start);
	if (uar_timer_set(sched_of(c), &c->grace, c->plugin->m.answer_timeout_us))
		plugin_note(c->plugin, UAR_LOG_ERROR, "plugin.no_timer", c, UAR_STR(""));
}

void call_ready(struct uar_entry_call *c)
{
	if (c->state != CALL_WAITING)
		return;
	if (c->heard && c->events.ready)
		c->events.ready(c->events.ctx);
	else
		send_start(c);
}

void call_begin(struct uar_entry_call *c)
{
	if (c->process && c->process->state == PROCESS_READY)
		send_start(c);
}

void call_answered(struct uar_entry_call *c)
{
	if (c->answered)
		return;
	c->answered = true;
	if (c->state == CALL_RUNNING)
		uar_timer_stop(sched_of(c), &c->grace);
}

/* A process that does not answer is stopped, or hangs: its other runs will not hear
 * from it, either. What it wrote while nobody read counts as said, and what is in the
 * pipe by now is read before the second look. */
static void not_answered(struct uar_entry_call *c)
{
	struct process *s = c->process;

	if (!s->pauses && c->looked) {
		process_kill(s, "it did not answer run.start in time");
		return;
	}
	c->looked = !s->pauses;
	if (uar_timer_set(sched_of(c), &c->grace, c->looked ? 0 : c->plugin->m.answer_timeout_us))
		process_kill(s, "out of memory");
}

/* --- the end ------------------------------------------------------------------------ */

void call_end(struct uar_entry_call *c, const struct uar_entry_end *end)
{
	struct plugin *p = c->plugin;
	struct uar_entry_events events = c->events;
	bool heard = c->heard;

	process_leave(c);
	call_free(c);
	p->granted--;
	p->host->stats.running--;
	if (heard)
		events.done(events.ctx, end);
	plugin_pump(p);
	plugin_less_used(p);
}

void call_break(struct uar_entry_call *c, uar_err code, const char *why)
{
	bool transport = code == UAR_ECHILD || code == UAR_ENOTFOUND;
	struct uar_entry_end end = {
		.how = UAR_ENTRY_HOW_BROKE,
		.code = uar_str_c(transport ? uar_err_token(UAR_ECHILD) : "PLUGIN_ERROR"),
		.message = uar_str_c(why),
		.retryable = code == UAR_ECHILD,
	};

	call_end(c, &end);
}

void call_fail(struct uar_entry_call *c, const struct uar_entry_end *said, const char *why)
{
	struct uar_entry_end end = *said;
	char text[512 + UAR_LIMIT_ERROR_TEXT]; /* a message has 500 at most */

	if (!end.message.n) {
		call_break(c, UAR_EINVALID, why);
		return;
	}
	snprintf(text, sizeof text, "%.*s (%s)", UAR_FMT(end.message), why);
	end.how = UAR_ENTRY_HOW_BROKE;
	end.message = uar_str_c(text);
	end.refs = NULL;
	call_end(c, &end);
}

/* --- what it says --------------------------------------------------------------------- */

uar_err call_check_result(struct uar_entry_call *c, const struct uar_json *result, char *why,
			  size_t size)
{
	struct uar_error error = { 0 };
	struct uar_arena scratch;
	uar_err e;

	if (!c->entry->result || !result)
		return UAR_OK;
	uar_arena_init(&scratch, 0);
	e = uar_schema_validate(c->entry->result, result, &scratch, &error);
	uar_arena_fini(&scratch);
	if (e)
		snprintf(why, size, "the result breaks its schema at %.80s: %.160s",
			 error.where[0] ? error.where : "/", uar_error_text(&error));
	return e;
}

static void on_result(struct uar_entry_call *c, const struct uar_message *m)
{
	struct uar_error error = { 0 };
	char why[UAR_LIMIT_ERROR_TEXT];

	if (call_check_result(c, m->value, why, sizeof why)) {
		uar_error_set(&error, UAR_ESCHEMA, "%s", why);
		process_reply(c->process, m->id, UAR_ESCHEMA, &error);
		call_break(c, UAR_EINVALID, why);
		return;
	}
	process_reply(c->process, m->id, UAR_OK, NULL);
	c->process->served = true;
	call_end(c, &m->end);
}

/* Tickets are the ids of requests plus one, which must be whole numbers then. */
static void on_export(struct uar_entry_call *c, const struct uar_message *m)
{
	struct uar_error error = { 0 };
	uint64_t ticket = m->id ? (uint64_t)m->id->i + 1 : 0;

	if (m->id && (m->id->kind != UAR_JSON_INT || m->id->i < 0)) {
		uar_error_set(&error, UAR_EINVALID, "ids of requests are whole numbers from 0");
		process_reply(c->process, m->id, UAR_EINVALID, &error);
	} else if (!c->heard) {
		process_reply(c->process, m->id, UAR_ESTATE, NULL);
	} else if (m->kind == UAR_MESSAGE_UPLOAD) {
		c->events.uploaded(c->events.ctx, &m->piece, ticket);
	} else {
		c->events.exported(c->events.ctx, &m->export, m->raw, ticket);
	}
}

static void on_start_reply(struct uar_entry_call *c, const struct uar_message *m)
{
	char why[UAR_LIMIT_ERROR_TEXT];

	if (!m->error)
		return;
	snprintf(why, sizeof why, "the plugin refused the run: %.*s",
		 UAR_FMT(uar_str_utf8_prefix(m->text, 200)));
	call_break(c, UAR_EINVALID, why);
}

void call_message(struct uar_entry_call *c, const struct uar_message *m)
{
	call_answered(c);
	switch (m->kind) {
	case UAR_MESSAGE_REPLY: on_start_reply(c, m); break;
	case UAR_MESSAGE_PROGRESS:
		process_reply(c->process, m->id, UAR_OK, NULL);
		if (c->heard)
			c->events.progress(c->events.ctx, &m->progress);
		break;
	case UAR_MESSAGE_EXPORT:
	case UAR_MESSAGE_UPLOAD: on_export(c, m); break;
	case UAR_MESSAGE_RESULT: on_result(c, m); break;
	case UAR_MESSAGE_ERROR:
		process_reply(c->process, m->id, UAR_OK, NULL);
		c->process->served = true;
		call_end(c, &m->end);
		break;
	case UAR_MESSAGE_LOG: break; /* the process's */
	}
}

/* Nobody waits for the answer: the log has it, once for the run. */
static void note_refused(struct uar_entry_call *c, const struct uar_error *error)
{
	char text[UAR_LIMIT_ERROR_TEXT];

	if (c->refused)
		return;
	c->refused = true;
	snprintf(text, sizeof text, "an item was refused: %.280s", uar_error_text(error));
	plugin_says(c->plugin, UAR_LOG_WARN, "plugin.refused", c, uar_str_c(text));
}

void call_answer(struct uar_entry_call *c, const struct uar_entry_answer *a)
{
	struct uar_error error = { .code = a->err };
	struct uar_json request = { .kind = UAR_JSON_INT, .i = (int64_t)a->ticket - 1 };
	struct uar_buf *b = &c->plugin->host->buf;
	struct uar_jw w;

	if (a->ticket && c->plugin->library)
		library_answer(c, a);
	if (a->err && a->why.n)
		uar_error_set(&error, a->err, "%.*s", UAR_FMT(a->why));
	if (a->err && !a->ticket)
		note_refused(c, &error);
	if (!a->ticket || !c->process)
		return;
	if (a->err) {
		process_reply(c->process, &request, a->err, &error);
		return;
	}
	uar_buf_clear(b);
	w = uar_jw_begin(b);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "jsonrpc", "2.0");
	uar_jw_int(&w, "id", request.i);
	uar_jw_obj(&w, "result");
	if (a->id.n)
		uar_jw_str(&w, "export_item_id", a->id);
	process_send(c->process, &w);
}

void call_pause(struct uar_entry_call *c, bool paused)
{
	if (!c->process || (!paused && !c->pauses))
		return;
	c->pauses += paused ? 1u : -1u;
	process_pause(c->process, paused);
}

/* --- cancel ------------------------------------------------------------------------------ */

/* Other runs of the process go on: it takes no more and ends with the last of
 * them. A process of its own is ended now, and the run is over when it is. */
static void on_grace_over(struct uar_timer *t)
{
	struct uar_entry_call *c = UAR_OWNER(t, struct uar_entry_call, grace);
	struct uar_entry_end stopped = { .how = UAR_ENTRY_HOW_STOPPED,
					 .code = UAR_STR("CANCELED") };
	struct process *s = c->process;
	static const char why[] = "a run did not stop when it was told to";

	if (c->state == CALL_RUNNING) {
		not_answered(c);
		return;
	}
	if (!c->request) { /* it was never given to a process */
		call_end(c, &stopped);
		return;
	}
	plugin_note(c->plugin, UAR_LOG_WARN, "plugin.ignored_cancel", c, uar_str_c(c->run_id));
	if (s->call_count == 1) {
		process_kill(s, why);
		return;
	}
	process_spend(s, why);
	call_end(c, &stopped);
}

void call_cancel(struct uar_entry_call *c, uar_str reason)
{
	struct uar_jw w;

	if (c->plugin->library) {
		library_cancel(c, reason);
		return;
	}
	if (c->state == CALL_CANCELLING)
		return;
	c->state = CALL_CANCELLING;
	if (!c->request) { /* not inside the call that asked */
		if (uar_timer_set(sched_of(c), &c->grace, 0))
			plugin_note(c->plugin, UAR_LOG_ERROR, "plugin.no_timer", c, UAR_STR(""));
		return;
	}
	while (c->pauses) /* what it says now decides how it ends */
		call_pause(c, false);
	w = process_begin(c->process, "run.cancel", 0);
	uar_jw_cstr(&w, "run_id", c->run_id);
	if (reason.n)
		uar_jw_str(&w, "reason", reason);
	uar_jw_double(&w, "grace_seconds", (double)c->plugin->m.cancel_grace_us / 1e6);
	process_send(c->process, &w);
	process_doubt(c->process);
	if (uar_timer_set(sched_of(c), &c->grace, c->plugin->m.cancel_grace_us))
		process_kill(c->process, "out of memory");
}

void call_stop(struct uar_entry_call *c, uar_str reason)
{
	c->heard = false;
	call_cancel(c, reason);
	if (c->plugin->library)
		library_deaf(c);
}
