/* process.c - the facts of processes that tools start, and of the boundaries that they run in.
 *
 * The boundary and the process are facts in the append that begins the call: nothing of it runs
 * before. A process ends once, by itself or with its run or the server. */
#include "core/emit.h"
#include "core/sizes.h"
#include "event/row.h"

enum { SIGTERM_NUMBER = 15 };

static size_t find(const struct uar_run_processes *p, uar_str id)
{
	size_t i = 0;

	while (i < p->open_count && !uar_str_is(id, p->open[i].process_id))
		i++;
	return i;
}

const struct uar_open_process *uar_process_open(const struct uar_run_processes *p, uar_str id)
{
	size_t i = find(p, id);

	return i < p->open_count ? &p->open[i] : NULL;
}

/* --- rows ------------------------------------------------------------------------------------ */

static void put_row(struct emit *e, const struct uar_open_process *p, const char *status)
{
	bool open = strcmp(status, "running") == 0;
	struct uar_row_process row = {
		.row = { .kind = UAR_ROW_PROCESS,
			 .id = uar_str_c(p->process_id),
			 .session_id = e->s->session_id,
			 .parent = e->r->id.run_id,
			 .tag = e->r->id.thread_id,
			 .status = uar_str_c(status),
			 .open = false, /* its run is what is looked after at a start */
			 .rank = p->started_us,
			 .created_us = p->started_us,
			 .updated_us = e->env->now_us },
		.turn_id = e->r->id.turn_id,
		.tool_call_id = uar_str_c(p->call_id),
		.command = uar_str_c(p->command),
		.cwd = uar_str_c(p->cwd),
		.profile_id = uar_str_c(p->profile_id),
		.tty = p->tty,
		.output_bytes = p->output_bytes,
		.ended_at = open ? 0 : e->env->now_us,
	};

	if (!e->err)
		uar_emit_row(e, &row);
}

/* --- it begins ------------------------------------------------------------------------------- */

/* The members of an object that the shell has written. */
static const struct uar_json *put_members(struct emit *e, struct uar_jw *w, uar_str object)
{
	const struct uar_json *j = NULL;

	if (!e->err)
		e->err = uar_json_parse(object, NULL, e->env->arena, &j, e->error);
	if (j)
		uar_jw_members(w, object);
	return j;
}

void uar_core_sandbox_applied(struct emit *e, const struct uar_tool_begin *t)
{
	const struct uar_json *j;
	struct uar_jw *w;

	if (!t->sandbox.n || t->category.n)
		return;
	w = uar_emit_begin(e);
	j = put_members(e, w, t->sandbox);
	uar_jw_obj(w, "scope");
	uar_jw_str(w, "tool_call_id", t->call_id);
	uar_jw_close(w);
	uar_emit_refs(e, uar_arena_printf(e->env->arena, "{\"environment_ref\":\"env://%.*s\"}",
					  UAR_FMT(uar_json_text(j, "profile_id"))));
	uar_emit(e, UAR_EV_SANDBOX_APPLIED, EMIT_RUN);
}

/* Names the next event after the process and its call. */
static void name(struct emit *e, const struct uar_open_process *p)
{
	uar_emit_name(e, UAR_ID_PROCESS, uar_emit_own(e, p->process_id));
	uar_emit_name(e, UAR_ID_TOOL_CALL, uar_emit_own(e, p->call_id));
	uar_emit_name(e, UAR_ID_STEP, uar_emit_own(e, p->step_id));
}

void uar_core_process_started(struct emit *e, const struct uar_tool_begin *t, uar_str decision_id)
{
	const struct uar_open_tool *tool;
	const struct uar_open_process *p;
	const struct uar_json *j;
	struct uar_jw *w;
	uar_str profile;

	if (!t->process.n || t->category.n || e->err)
		return;
	tool = uar_core_open_tool(e, t->call_id);
	w = uar_emit_begin(e);
	j = put_members(e, w, t->process);
	uar_jw_str(w, "decision_id", decision_id);
	uar_jw_time(w, "started_at", e->env->now_us);
	profile = uar_json_text(j, "profile_id");
	uar_emit_refs(e, t->args_blob.n ? uar_arena_printf(e->env->arena,
							   "{\"environment_ref\":\"env://%.*s\","
							   "\"argv_ref\":\"blob://%.*s\"}",
							   UAR_FMT(profile), UAR_FMT(t->args_blob))
					: uar_arena_printf(e->env->arena,
							   "{\"environment_ref\":\"env://%.*s\"}",
							   UAR_FMT(profile)));
	uar_emit_name(e, UAR_ID_PROCESS, t->process_id);
	if (tool)
		uar_core_name_tool(e, tool);
	uar_emit(e, UAR_EV_PROCESS_STARTED, EMIT_RUN);
	p = e->err ? NULL : uar_process_open(&uar_run_rare(e->r)->processes, t->process_id);
	if (p)
		put_row(e, p, "running");
}

/* --- it goes on ------------------------------------------------------------------------------- */

static void output(struct emit *e, const struct uar_open_process *p,
		   const struct uar_process_news *n)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_str(w, "stream", n->stream);
	uar_jw_int(w, "index", p->index);
	uar_jw_int(w, "offset", n->offset);
	uar_jw_int(w, "bytes", n->bytes);
	uar_jw_cstr(w, "encoding", n->base64 ? "base64" : "utf8");
	uar_jw_str(w, n->base64 ? "data" : "text", n->text);
	uar_jw_bool(w, "truncated", n->truncated);
	name(e, p);
	uar_emit(e, UAR_EV_PROCESS_OUTPUT, EMIT_RUN);
}

static void input(struct emit *e, const struct uar_open_process *p,
		  const struct uar_process_news *n)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_int(w, "bytes", n->bytes);
	uar_jw_bool(w, "eof", n->end);
	uar_jw_obj(w, "source");
	uar_jw_str(w, "type", n->by_type);
	if (n->by.n)
		uar_jw_str(w, "id", n->by);
	uar_jw_close(w);
	if (n->text.n)
		uar_jw_str(w, "preview", n->text);
	name(e, p);
	uar_emit(e, UAR_EV_PROCESS_INPUT, EMIT_RUN);
}

static void violation(struct emit *e, const struct uar_open_process *p,
		      const struct uar_process_news *n)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_str(w, "violation_id", uar_emit_id(e));
	uar_jw_cstr(w, "profile_id", p->profile_id);
	uar_jw_str(w, "kind", n->violation);
	uar_jw_str(w, "target", n->target);
	uar_jw_str(w, "attempted", n->attempted);
	uar_jw_cstr(w, "action_taken", "denied");
	name(e, p);
	uar_emit(e, UAR_EV_SANDBOX_VIOLATION, EMIT_RUN);
}

/* --- it ends -------------------------------------------------------------------------------- */

static int64_t took_ms(const struct emit *e, const struct uar_open_process *p)
{
	int64_t took = e->env->now_us - p->started_us;

	return took > 0 ? took / 1000 : 0;
}

/* Names its end after it, and says where its output is. */
static void name_end(struct emit *e, const struct uar_open_process *p)
{
	name(e, p);
	uar_core_refer_process(e, uar_emit_own(e, p->process_id));
}

static void tell_cut(struct emit *e, const struct uar_open_process *p,
		     const struct uar_process_news *n)
{
	int64_t wrote = n->stdout_bytes + n->stderr_bytes;

	if (wrote > p->output_bytes)
		uar_core_process_cut(e, uar_emit_own(e, p->process_id), wrote, p->output_bytes);
}

static void completed(struct emit *e, const struct uar_open_process *p,
		      const struct uar_process_news *n)
{
	struct uar_jw *w;

	tell_cut(e, p, n);
	put_row(e, p, "completed");
	w = uar_emit_begin(e);
	if (n->exit_code >= 0)
		uar_jw_int(w, "exit_code", n->exit_code);
	else
		uar_jw_null(w, "exit_code");
	if (n->signal > 0)
		uar_jw_int(w, "signal", n->signal);
	else
		uar_jw_null(w, "signal");
	uar_jw_int(w, "duration_ms", took_ms(e, p));
	uar_jw_int(w, "stdout_bytes", n->stdout_bytes);
	uar_jw_int(w, "stderr_bytes", n->stderr_bytes);
	uar_jw_cstr(w, "status", "completed");
	name_end(e, p);
	uar_emit(e, UAR_EV_PROCESS_COMPLETED, EMIT_RUN);
}

static void failed(struct emit *e, const struct uar_open_process *p,
		   const struct uar_process_news *n, uar_str details)
{
	const struct uar_failure f = { n->code, n->message, n->category, false };
	struct uar_jw *w;

	tell_cut(e, p, n);
	put_row(e, p, uar_str_is(n->code, "LOST") ? "lost" : "failed");
	w = uar_emit_begin(e);
	uar_jw_str(w, "stage", n->stage);
	uar_emit_error(w, "error", &f, details);
	uar_jw_int(w, "duration_ms", took_ms(e, p));
	name_end(e, p);
	uar_emit(e, UAR_EV_PROCESS_FAILED, EMIT_RUN);
}

static void terminated(struct emit *e, const struct uar_open_process *p,
		       const struct uar_process_news *n)
{
	struct uar_jw *w;

	tell_cut(e, p, n);
	put_row(e, p, "terminated");
	w = uar_emit_begin(e);
	uar_jw_str(w, "reason", n->reason);
	uar_jw_obj(w, "terminated_by");
	uar_jw_str(w, "type", n->by_type);
	if (n->by.n)
		uar_jw_str(w, "id", n->by);
	uar_jw_close(w);
	uar_jw_int(w, "signal", n->signal);
	uar_jw_bool(w, "escalated", n->escalated);
	if (n->exit_code >= 0)
		uar_jw_int(w, "exit_code", n->exit_code);
	uar_jw_int(w, "duration_ms", took_ms(e, p));
	name_end(e, p);
	uar_emit(e, UAR_EV_PROCESS_TERMINATED, EMIT_RUN);
}

void uar_core_process_news(struct emit *e, const struct uar_process_news *n)
{
	const struct uar_open_process *p =
		uar_process_open(&uar_run_rare(e->r)->processes, n->process_id);

	switch (n->kind) {
	case UAR_PROCESS_OUTPUT: output(e, p, n); break;
	case UAR_PROCESS_INPUT: input(e, p, n); break;
	case UAR_PROCESS_COMPLETED: completed(e, p, n); break;
	case UAR_PROCESS_FAILED: failed(e, p, n, UAR_STR_NONE); break;
	case UAR_PROCESS_TERMINATED: terminated(e, p, n); break;
	case UAR_PROCESS_VIOLATION: violation(e, p, n); break;
	}
}

void uar_core_close_processes(struct emit *e, const struct uar_failure *f)
{
	bool timed_out = uar_str_is(f->category, "timeout");

	while (uar_run_rare(e->r)->processes.open_count && !e->err) {
		const struct uar_process_news n = {
			.reason = timed_out ? UAR_STR("timeout") : UAR_STR("parent_cancelled"),
			.by_type = UAR_STR("runtime"),
			.signal = SIGTERM_NUMBER,
			.exit_code = -1,
		};

		terminated(e, &uar_run_rare(e->r)->processes.open[0], &n);
	}
}

/* The supervisor has ended it with the server. What it wrote so far is in the log. */
void uar_core_lose_processes(struct emit *e)
{
	static const struct uar_process_news n = {
		.stage = UAR_STR("transport"),
		.code = UAR_STR("LOST"),
		.message = UAR_STR("the server stopped while the process ran, and ended it"),
		.category = UAR_STR("lost"),
	};

	while (uar_run_rare(e->r)->processes.open_count && !e->err) {
		const struct uar_open_process *p = &uar_run_rare(e->r)->processes.open[0];

		failed(e, p, &n,
		       uar_arena_printf(e->env->arena,
					"{\"may_exist\":false,\"durable_output_bytes\":%lld,"
					"\"gone\":[\"stdin\",\"output that was not recorded\"],"
					"\"actions\":[\"read_output\",\"start_again\"]}",
					(long long)p->output_bytes));
	}
}

/* --- fold ----------------------------------------------------------------------------------- */

static uar_str member(const struct uar_json *p, const char *key)
{
	return uar_json_str(uar_json_get(p, uar_str_c(key)), UAR_STR_NONE);
}

static uar_err fold_started(struct uar_run_processes *all, const struct uar_event *ev,
			    const struct uar_json *p)
{
	struct uar_open_process *new = &all->open[all->open_count];

	if (all->open_count == UAR_LIMIT_OPEN_PROCESSES ||
	    uar_process_open(all, ev->ids[UAR_ID_PROCESS]))
		return UAR_ECORRUPT;
	*new = (struct uar_open_process){ .started_us = ev->time_us };
	uar_core_keep(new->process_id, sizeof new->process_id, ev->ids[UAR_ID_PROCESS]);
	uar_core_keep(new->call_id, sizeof new->call_id, ev->ids[UAR_ID_TOOL_CALL]);
	uar_core_keep(new->step_id, sizeof new->step_id, ev->ids[UAR_ID_STEP]);
	uar_core_keep(new->command, sizeof new->command, member(p, "command_summary"));
	uar_core_keep(new->cwd, sizeof new->cwd, member(p, "cwd"));
	uar_core_keep(new->profile_id, sizeof new->profile_id, member(p, "profile_id"));
	new->tty = uar_json_bool(uar_json_get(p, UAR_STR("tty")), false);
	all->open_count++;
	return UAR_OK;
}

uar_err uar_core_fold_process(struct uar_run *r, const struct uar_event *ev,
			      const struct uar_json *p)
{
	struct uar_run_rare *rare = uar_core_change_rare(r);
	struct uar_run_processes *all = rare ? &rare->processes : NULL;
	size_t i = all ? find(all, ev->ids[UAR_ID_PROCESS]) : 0;

	if (!rare)
		return UAR_ENOMEM;
	if (ev->cls == UAR_EV_PROCESS_STARTED)
		return fold_started(all, ev, p);
	if (i == all->open_count)
		return UAR_ECORRUPT;
	if (ev->cls == UAR_EV_PROCESS_OUTPUT) {
		all->open[i].index++;
		all->open[i].output_bytes += uar_json_int(uar_json_get(p, UAR_STR("bytes")), 0);
		return UAR_OK;
	}
	all->open_count--;
	memmove(&all->open[i], &all->open[i + 1], (all->open_count - i) * sizeof all->open[0]);
	return UAR_OK;
}
