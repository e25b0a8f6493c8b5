/* view_sandbox.c - folds boundaries, processes and violations, and shows where commands run. */
#include "core/view_int.h"

/* --- fold ------------------------------------------------------------------------------------ */

static void applied(struct fold_step *s)
{
	struct uar_sview_sandbox *b = view_item(s, UAR_SVIEW_SANDBOX, view_str(s, "profile_id"));

	if (!b)
		return;
	view_place(s, &b->thread_id, &b->turn_id, &b->run_id);
	VIEW_TAKE(s, sandbox, b, mode);
	VIEW_TAKE(s, sandbox, b, cwd);
	VIEW_TAKE_JSON(s, sandbox, b, read_roots);
	VIEW_TAKE_JSON(s, sandbox, b, write_roots);
	VIEW_TAKE_JSON(s, sandbox, b, network);
	VIEW_TAKE_JSON(s, sandbox, b, process_limits);
	VIEW_TAKE(s, sandbox, b, platform);
	VIEW_TAKE_JSON(s, sandbox, b, gaps);
	VIEW_KEEP(s, sandbox, b, environment_ref, view_ref(s, "environment_ref"));
	b->enforced = view_bool(s, "enforced");
	b->applied++;
	b->at = s->ev->time_us;
}

static void violated(struct fold_step *s)
{
	struct uar_sview_violation *v =
		view_item(s, UAR_SVIEW_VIOLATION, view_str(s, "violation_id"));

	if (!v)
		return;
	view_place(s, &v->thread_id, &v->turn_id, &v->run_id);
	VIEW_KEEP(s, violation, v, process_id, s->ev->ids[UAR_ID_PROCESS]);
	VIEW_TAKE(s, violation, v, profile_id);
	VIEW_TAKE(s, violation, v, kind);
	VIEW_TAKE(s, violation, v, target);
	VIEW_TAKE(s, violation, v, attempted);
	VIEW_TAKE(s, violation, v, action_taken);
	v->at = s->ev->time_us;
}

static void started(struct fold_step *s, struct uar_sview_process *p)
{
	view_place(s, &p->thread_id, &p->turn_id, &p->run_id);
	VIEW_KEEP(s, process, p, tool_call_id, s->ev->ids[UAR_ID_TOOL_CALL]);
	VIEW_KEEP(s, process, p, command, view_str(s, "command_summary"));
	VIEW_TAKE(s, process, p, cwd);
	VIEW_TAKE(s, process, p, profile_id);
	VIEW_TAKE(s, process, p, network);
	VIEW_KEEP(s, process, p, status, UAR_STR("running"));
	p->tty = view_bool(s, "tty");
	p->destructive = view_bool(s, "destructive");
	p->started_at = s->ev->time_us;
	p->item.open = true;
}

static void ended(struct fold_step *s, struct uar_sview_process *p)
{
	const struct uar_json *error = uar_json_get(s->p, UAR_STR("error"));
	bool lost = uar_str_is(uar_json_text(error, "code"), "LOST");
	bool failed = s->ev->cls == UAR_EV_PROCESS_FAILED;

	VIEW_KEEP(s, process, p, status,
		  s->ev->cls == UAR_EV_PROCESS_COMPLETED ? UAR_STR("completed")
		  : lost				 ? UAR_STR("lost")
		  : failed				 ? UAR_STR("failed")
							 : UAR_STR("terminated"));
	VIEW_KEEP(s, process, p, reason, view_str(s, failed ? "stage" : "reason"));
	p->ended_with = view_int(s, "exit_code", -1) + 1;
	p->ended_at = s->ev->time_us;
	p->item.open = false;
}

static void process_changed(struct fold_step *s)
{
	struct uar_sview_process *p = view_named(s, UAR_SVIEW_PROCESS, UAR_ID_PROCESS);

	if (!p)
		return;
	switch (s->ev->cls) {
	case UAR_EV_PROCESS_STARTED: started(s, p); break;
	case UAR_EV_PROCESS_OUTPUT: p->output_bytes += view_int(s, "bytes", 0); break;
	case UAR_EV_PROCESS_INPUT: p->input_bytes += view_int(s, "bytes", 0); break;
	default: ended(s, p); break;
	}
}

void view_fold_sandbox(struct fold_step *s)
{
	switch (s->ev->cls) {
	case UAR_EV_SANDBOX_APPLIED: applied(s); break;
	case UAR_EV_SANDBOX_VIOLATION: violated(s); break;
	case UAR_EV_PROCESS_STARTED:
	case UAR_EV_PROCESS_OUTPUT:
	case UAR_EV_PROCESS_INPUT:
	case UAR_EV_PROCESS_COMPLETED:
	case UAR_EV_PROCESS_FAILED:
	case UAR_EV_PROCESS_TERMINATED: process_changed(s); break;
	default: break;
	}
}

/* --- shown ------------------------------------------------------------------------------------ */

struct scope {
	uar_str thread_id, turn_id; /* empty: any */
};

static bool is_of(const struct scope *scope, uar_str thread_id, uar_str turn_id)
{
	return (!scope->thread_id.n || uar_str_eq(scope->thread_id, thread_id)) &&
	       (!scope->turn_id.n || uar_str_eq(scope->turn_id, turn_id));
}

static void write_profile(struct uar_jw *w, const char *key, const struct uar_sview_sandbox *b)
{
	uar_jw_obj(w, key);
	uar_jw_str(w, "profile_id", b->item.key);
	uar_jw_str_or_null(w, "mode", b->mode);
	uar_jw_str_or_null(w, "cwd", b->cwd);
	view_put_json(w, "read_roots", b->read_roots, "[]");
	view_put_json(w, "write_roots", b->write_roots, "[]");
	view_put_json(w, "network", b->network, "null");
	view_put_json(w, "process_limits", b->process_limits, "{}");
	uar_jw_str_or_null(w, "environment_ref", b->environment_ref);
	uar_jw_str_or_null(w, "platform", b->platform);
	uar_jw_bool(w, "enforced", b->enforced);
	view_put_json(w, "gaps", b->gaps, "[]");
	uar_jw_int(w, "applied", b->applied);
	uar_jw_time_or_null(w, "at", b->at);
	uar_jw_close(w);
}

static void write_violations(struct uar_jw *w, const struct uar_sview *v, uar_str profile_id)
{
	uar_jw_arr(w, "violations");
	for (size_t i = 0; i < v->lists[UAR_SVIEW_VIOLATION].count; i++) {
		const struct uar_sview_violation *x = view_at(v, UAR_SVIEW_VIOLATION, i);

		if (profile_id.n && !uar_str_eq(profile_id, x->profile_id))
			continue;
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "violation_id", x->item.key);
		uar_jw_str_or_null(w, "profile_id", x->profile_id);
		uar_jw_str_or_null(w, "process_id", x->process_id);
		uar_jw_str_or_null(w, "run_id", x->run_id);
		uar_jw_str_or_null(w, "kind", x->kind);
		uar_jw_str_or_null(w, "target", x->target);
		uar_jw_str_or_null(w, "attempted", x->attempted);
		uar_jw_str_or_null(w, "action_taken", x->action_taken);
		uar_jw_time_or_null(w, "at", x->at);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

void uar_sview_write_sandbox(struct uar_jw *w, const char *key, const struct uar_sview_show *s)
{
	const struct uar_sview *v = s->view;

	uar_jw_obj(w, key);
	uar_jw_arr(w, "profiles");
	for (size_t i = 0; i < v->lists[UAR_SVIEW_SANDBOX].count; i++)
		write_profile(w, NULL, view_at(v, UAR_SVIEW_SANDBOX, i));
	uar_jw_close(w);
	write_violations(w, v, UAR_STR_NONE);
	uar_jw_int(w, "violations_omitted", v->lists[UAR_SVIEW_VIOLATION].omitted);
	uar_jw_close(w);
}

/* After a restart: what is left of a process that the server took with it. */
static void write_left(struct uar_jw *w, const struct uar_sview_process *p)
{
	uar_jw_obj(w, "left");
	uar_jw_bool(w, "may_exist", false);
	uar_jw_int(w, "durable_output_bytes", p->output_bytes);
	uar_jw_arr(w, "gone");
	uar_jw_cstr(w, NULL, "stdin");
	uar_jw_cstr(w, NULL, "output that was not recorded");
	uar_jw_close(w);
	uar_jw_arr(w, "actions");
	uar_jw_cstr(w, NULL, "read_output");
	uar_jw_cstr(w, NULL, "start_again");
	uar_jw_close(w);
	uar_jw_close(w);
}

/* Where what the log has of its output is read. */
static void write_output_ref(struct uar_jw *w, const struct uar_sview_process *p)
{
	char ref[UAR_LIMIT_ID_BYTES * 2 + sizeof "output:///"];

	snprintf(ref, sizeof ref, "output://%.*s/%.*s", UAR_FMT(p->run_id), UAR_FMT(p->item.key));
	uar_jw_cstr(w, "output_ref", ref);
}

static void write_process(struct uar_jw *w, const struct uar_sview_process *p)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "process_id", p->item.key);
	uar_jw_str_or_null(w, "run_id", p->run_id);
	uar_jw_str_or_null(w, "turn_id", p->turn_id);
	uar_jw_str_or_null(w, "tool_call_id", p->tool_call_id);
	uar_jw_str_or_null(w, "command", p->command);
	uar_jw_str_or_null(w, "cwd", p->cwd);
	uar_jw_str_or_null(w, "profile_id", p->profile_id);
	uar_jw_str_or_null(w, "network", p->network);
	uar_jw_bool(w, "tty", p->tty);
	uar_jw_bool(w, "destructive", p->destructive);
	uar_jw_str_or_null(w, "status", p->status);
	uar_jw_str_or_null(w, "reason", p->reason);
	if (p->ended_with)
		uar_jw_int(w, "exit_code", p->ended_with - 1);
	if (p->run_id.n)
		write_output_ref(w, p);
	uar_jw_int(w, "output_bytes", p->output_bytes);
	uar_jw_int(w, "input_bytes", p->input_bytes);
	uar_jw_time_or_null(w, "started_at", p->started_at);
	uar_jw_time_or_null(w, "ended_at", p->ended_at);
	if (uar_str_is(p->status, "lost"))
		write_left(w, p);
	uar_jw_close(w);
}

static void write_processes(struct uar_jw *w, const char *key, const struct uar_sview *v,
			    const struct scope *scope, bool open)
{
	uar_jw_arr(w, key);
	for (size_t i = 0; i < v->lists[UAR_SVIEW_PROCESS].count; i++) {
		const struct uar_sview_process *p = view_at(v, UAR_SVIEW_PROCESS, i);

		if (p->item.open == open && is_of(scope, p->thread_id, p->turn_id))
			write_process(w, p);
	}
	uar_jw_close(w);
}

/* The boundary that was applied last; NULL: none was. */
static const struct uar_sview_sandbox *last_profile(const struct uar_sview *v,
						    const struct scope *scope)
{
	const struct uar_sview_sandbox *last = NULL;

	for (size_t i = 0; i < v->lists[UAR_SVIEW_SANDBOX].count; i++) {
		const struct uar_sview_sandbox *b = view_at(v, UAR_SVIEW_SANDBOX, i);

		if (is_of(scope, b->thread_id, b->turn_id) &&
		    (!last || b->item.sequence > last->item.sequence))
			last = b;
	}
	return last;
}

void uar_sview_write_environment(struct uar_jw *w, const char *key, const struct uar_sview_show *s,
				 uar_str thread_id, uar_str turn_id)
{
	const struct scope scope = { thread_id, turn_id };
	const struct uar_sview_sandbox *b = last_profile(s->view, &scope);

	uar_jw_obj(w, key);
	uar_jw_cstr(w, "state", !b ? "not_applicable" : s->stale ? "stale" : "available");
	uar_jw_str_or_null(w, "cwd", b ? b->cwd : UAR_STR_NONE);
	uar_jw_raw(w, "workspace_roots",
		   !b		      ? UAR_STR("[]")
		   : b->write_roots.n ? b->write_roots
		   : b->read_roots.n  ? b->read_roots
				      : UAR_STR("[]"));
	uar_jw_arr(w, "environment_refs");
	if (b && b->environment_ref.n)
		uar_jw_str(w, NULL, b->environment_ref);
	uar_jw_close(w);
	view_put_json(w, "process_limits", b ? b->process_limits : UAR_STR_NONE, "{}");
	if (b)
		write_profile(w, "sandbox", b);
	else
		uar_jw_null(w, "sandbox");
	write_processes(w, "active_processes", s->view, &scope, true);
	write_processes(w, "ended_processes", s->view, &scope, false);
	uar_jw_close(w);
}
