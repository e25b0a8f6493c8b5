/* control_process.c - input for processes, and their end, asked for from outside of their run.
 *
 * A process whose run or server is gone is unavailable: the answer says so with what is left of
 * it, and the log has a warning. */
#include "core/control_int.h"

enum { PREVIEW = 512 };

static void put_left(struct uar_jw *w, const struct uar_row_process *row)
{
	uar_jw_str(w, "process_status", row->row.status);
	uar_jw_bool(w, "may_exist", false);
	uar_jw_int(w, "durable_output_bytes", row->output_bytes);
	uar_jw_arr(w, "actions");
	uar_jw_cstr(w, NULL, "read_output");
	uar_jw_cstr(w, NULL, "start_again");
	uar_jw_close(w);
}

static void warn(struct ctl *c, const struct uar_row_process *row)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_cstr(w, "code", "PROCESS_UNAVAILABLE");
	uar_jw_cstr(w, "message", "the process is not there any more");
	uar_jw_cstr(w, "component", "process");
	uar_jw_obj(w, "details");
	uar_jw_str(w, "process_id", row->row.id);
	uar_jw_str(w, "run_id", row->row.parent);
	put_left(w, row);
	uar_jw_close(w);
	uar_emit_name(&c->e, UAR_ID_THREAD, row->row.tag);
	uar_emit(&c->e, UAR_EV_RUNTIME_WARNING, EMIT_SESSION);
}

static void answer_unavailable(struct ctl *c, const struct uar_row_process *row)
{
	struct uar_jw *w;

	warn(c, row);
	w = ctl_result(c);
	uar_jw_str(w, "process_id", row->row.id);
	uar_jw_cstr(w, "status", "unavailable");
	put_left(w, row);
	ctl_result_end(c);
}

static void answer(struct ctl *c, uar_str process_id, const char *status, int64_t bytes)
{
	struct uar_jw *w = ctl_result(c);

	uar_jw_str(w, "process_id", process_id);
	uar_jw_cstr(w, "status", status);
	if (bytes >= 0)
		uar_jw_int(w, "bytes", bytes);
	ctl_result_end(c);
}

/* Is it alive in the run that the shell brought? */
static bool is_open(const struct ctl *c, uar_str process_id)
{
	return c->in->target &&
	       uar_process_open(&uar_run_rare(c->in->target)->processes, process_id);
}

static struct uar_row_process *find_row(struct ctl *c, uar_str process_id)
{
	struct uar_row_process *row = ctl_row(c, UAR_ROW_PROCESS, process_id);

	if (!row && !c->waits)
		ctl_refuse(c, UAR_ENOTFOUND, "/process_id", "there is no process %.*s",
			   UAR_FMT(process_id));
	return row;
}

void ctl_write_process_stdin(struct ctl *c)
{
	const struct uar_ctl_write_process_stdin *in = &c->in->write_process_stdin;
	struct uar_row_process *row = find_row(c, in->process_id);
	struct uar_command command = { .kind = UAR_CMD_PROCESS };

	if (!row)
		return;
	if (!is_open(c, in->process_id)) {
		answer_unavailable(c, row);
		return;
	}
	command.process = (struct uar_process_news){
		.kind = UAR_PROCESS_INPUT,
		.process_id = in->process_id,
		.text = in->secret ? UAR_STR_NONE : uar_str_utf8_prefix(in->input, PREVIEW),
		.bytes = (int64_t)in->input.n,
		.end = in->eof,
		.by_type = UAR_STR("user"),
		.by = c->in->owner.user,
	};
	ctl_decide_run(c, UAR_CONTROL_TARGET, &command);
	c->u->order_process = true;
	answer(c, in->process_id, "written", (int64_t)in->input.n);
}

/* What is over stays what it is. That it was ended is told when it is gone. */
void ctl_terminate_process(struct ctl *c)
{
	const struct uar_ctl_terminate_process *in = &c->in->terminate_process;
	struct uar_row_process *row = find_row(c, in->process_id);

	if (!row)
		return;
	if (is_open(c, in->process_id)) {
		c->u->order_process = true;
		answer(c, in->process_id, "terminating", -1);
	} else if (uar_str_is(row->row.status, "running") || uar_str_is(row->row.status, "lost")) {
		answer_unavailable(c, row);
	} else {
		answer(c, in->process_id,
		       uar_str_is(row->row.status, "completed") ? "completed"
		       : uar_str_is(row->row.status, "failed")	? "failed"
								: "terminated",
		       -1);
	}
}
