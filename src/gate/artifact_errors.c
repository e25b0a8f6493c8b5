/* artifact_errors.c - errors that the preview of an artifact has caught.
 *
 * A page that shows an artifact in a sandbox reports what its console says. Such a page may
 * report without end: each run has so many in a minute. */
#include "engine/control.h"
#include "engine/limits.h"
#include "gate/gate_int.h"
#include "gate/limits.h"

enum { WINDOW_US = 60000000 };

struct reporting {
	struct uar_artifact_error_op op;
	struct uar_run_list known;
	struct uar_control in;
	struct uar_control_op control;
	struct call *c;
};

/* False: the run has reported enough for now. Runs may share a place, which is harmless. */
static bool take_place(struct uar_gate *g, uar_str run_id)
{
	struct gate_report_window *w;
	int64_t now = uar_clock_mono(g->o.sched->clock);
	unsigned hash = 0;

	for (size_t i = 0; i < run_id.n; i++)
		hash = hash * 31 + (unsigned char)run_id.p[i];
	w = &g->downloads.reports[hash % ARRAY_LEN(g->downloads.reports)];
	if (!w->count || now - w->since_us > WINDOW_US)
		*w = (struct gate_report_window){ .since_us = now };
	return w->count++ < UAR_LIMIT_ARTIFACT_ERRORS;
}

static void answer_accepted(struct call *c)
{
	struct uar_buf b = uar_buf_make(256);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "status", "recorded");
	uar_jw_close(&w);
	gate_answer_json(c, 202, &b, &w);
}

/* --- a run that is over ------------------------------------------------------------------ */

static void recorded(struct uar_control_op *op)
{
	struct reporting *k = op->ctx;

	if (op->err)
		gate_problem(k->c, op->err, &op->error);
	else
		answer_accepted(k->c);
}

static uar_err record_late(struct reporting *k, uar_str session_id, struct uar_error *error)
{
	struct uar_ctl_record_artifact_error *in = &k->in.record_artifact_error;
	uar_err e;

	k->in = (struct uar_control){ .kind = UAR_CTL_RECORD_ARTIFACT_ERROR, .owner = k->c->owner };
	in->session_id = uar_arena_str(&k->c->arena, session_id);
	in->run_id = k->op.run_id;
	in->artifact_id = k->op.artifact_id;
	in->message = k->op.message;
	in->details = k->op.details;
	k->control = (struct uar_control_op){ .in = &k->in, .done = recorded, .ctx = k };
	if (!in->session_id.p)
		return UAR_ENOMEM;
	e = uar_runtime_control(k->c->g->o.runtime, &k->control);
	if (e)
		*error = k->control.error;
	return e;
}

static void found_run(struct uar_run_list *q)
{
	struct reporting *k = UAR_OWNER(q, struct reporting, known);
	struct uar_error error = q->error;
	uar_err e = q->err;

	if (!e)
		e = record_late(k, q->rows[0].session_id, &error);
	uar_run_list_fini(q);
	if (e)
		gate_problem(k->c, e, &error);
}

static uar_err look_up(struct reporting *k)
{
	k->known = (struct uar_run_list){
		.owner = k->c->owner, .run_id = k->op.run_id, .limit = 1, .done = found_run
	};
	return uar_reader_runs(k->c->g->o.reader, &k->known);
}

/* --- a run at work ------------------------------------------------------------------------- */

static void reported(struct uar_artifact_error_op *op)
{
	struct reporting *k = op->ctx;
	uar_err e = op->err == UAR_ESTATE ? look_up(k) : op->err;

	if (!op->err)
		answer_accepted(k->c);
	else if (e)
		gate_problem(k->c, e, &op->error);
}

static uar_err decode(struct call *c, struct reporting *k, struct uar_error *error)
{
	struct body {
		uar_str message;
		const struct uar_json *details;
	} body = { .details = NULL };
	static const struct uar_json_field fields[] = {
		{ "message", UAR_FIELD_STR, true, offsetof(struct body, message) },
		{ "details", UAR_FIELD_OBJECT, false, offsetof(struct body, details) },
	};
	uar_err e = uar_json_read(c->body, fields, ARRAY_LEN(fields), true, &body, error);

	if (e)
		return e;
	k->op.message = uar_str_utf8_prefix(body.message, UAR_TEXT_MESSAGE);
	if (body.details)
		e = gate_text_of(c, body.details, &k->op.details);
	if (e || k->op.details.n <= UAR_LIMIT_PREVIEW_BYTES)
		return e;
	uar_error_where(error, "/details");
	return uar_error_set(error, UAR_ETOOBIG, "details may have %d bytes",
			     UAR_LIMIT_PREVIEW_BYTES);
}

void gate_artifact_error(struct call *c)
{
	struct reporting *k = uar_arena_alloc(&c->arena, sizeof *k);
	struct uar_error error = { 0 };
	uar_err e = k ? decode(c, k, &error) : UAR_ENOMEM;

	if (!e && !take_place(c->g, c->params[0]))
		e = uar_error_set(&error, UAR_ERATELIMIT, "at most %d reports of a run in a minute",
				  UAR_LIMIT_ARTIFACT_ERRORS);
	if (e) {
		gate_problem(c, e, &error);
		return;
	}
	k->c = c;
	k->op.owner = c->owner;
	k->op.run_id = c->params[0];
	k->op.artifact_id = c->params[1];
	k->op.done = reported;
	k->op.ctx = k;
	c->op = k;
	e = uar_runtime_artifact_error(c->g->o.runtime, &k->op);
	if (e == UAR_ESTATE)
		e = look_up(k);
	if (e)
		gate_problem(c, e, &k->op.error);
}
