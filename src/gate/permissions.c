/* permissions.c - evaluate_permission, resolve_permission, and which modes may be set. */
#include "core/permission.h"
#include "engine/control.h"
#include "gate/control.h"
#include "gate/gate_int.h"
#include "work/work.h"

struct evaluating {
	struct uar_evaluate_op op;
	struct uar_control in;
	struct uar_control_op noting;
};

static void noted(struct uar_control_op *op)
{
	struct call *c = op->ctx;

	if (op->err)
		gate_problem(c, op->err, &op->error);
	else
		gate_answer_result(c, op->result, op);
}

static uar_err note(struct call *c, struct evaluating *x)
{
	struct uar_evaluate_op *op = &x->op;

	x->in.kind = UAR_CTL_RECORD_PERMISSION;
	x->in.record_permission = (struct uar_ctl_record_permission){
		.thread_id = op->thread_id,
		.session_id = op->session_id,
		.turn_id = op->turn_id,
		.agent_id = op->agent_id,
		.tool_id = uar_arena_str(&c->arena, op->tool_id),
		.tool_name = uar_arena_str(&c->arena, op->tool_name),
		.decision = uar_arena_str(&c->arena, uar_buf_str(&op->decision)),
	};
	if (!x->in.record_permission.decision.p || !x->in.record_permission.tool_id.p ||
	    !x->in.record_permission.tool_name.p)
		return UAR_ENOMEM;
	x->noting = (struct uar_control_op){ .in = &x->in, .done = noted, .ctx = c };
	return uar_runtime_control(c->g->o.runtime, &x->noting);
}

static void evaluated(struct uar_evaluate_op *op)
{
	struct evaluating *x = UAR_OWNER(op, struct evaluating, op);
	struct call *c = op->ctx;
	uar_err e = op->err;

	if (!e)
		e = note(c, x);
	uar_buf_fini(&op->decision);
	if (e)
		gate_problem(c, e, op->err ? &op->error : &x->noting.error);
}

uar_err gate_evaluate_permission(struct call *c, const struct uar_control *in,
				 struct uar_error *error)
{
	struct evaluating *x = uar_arena_alloc(&c->arena, sizeof *x);
	const struct uar_ctl_evaluate_permission *p = &in->evaluate_permission;

	uar_err e = x ? gate_check_mode(c, p->mode, error) : UAR_ENOMEM;

	if (e)
		return e;
	*x = (struct evaluating){ .in = { .owner = c->owner,
					  .outcome_id = in->outcome_id,
					  .fingerprint = in->fingerprint } };
	x->op = (struct uar_evaluate_op){
		.owner = c->owner,
		.session_id = p->session_id,
		.thread_id = p->thread_id,
		.turn_id = p->turn_id,
		.agent_id = p->agent_id,
		.tool = p->tool,
		.arguments = p->arguments,
		.permit = { uar_permission_mode_parse(p->mode),
			    uar_control_given(in, "interactive") && !p->interactive },
		.done = evaluated,
		.ctx = c,
	};
	c->op = x;
	return uar_workers_evaluate(c->g->o.work, &x->op);
}

/* The operator allows what asks less. */
uar_err gate_check_mode(const struct call *c, uar_str mode, struct uar_error *error)
{
	if (uar_workers_allow_mode(c->g->o.work, uar_permission_mode_parse(mode)))
		return UAR_OK;
	uar_error_where(error, "/mode");
	return uar_error_set(
		error, UAR_EFORBIDDEN,
		"the operator has not allowed the mode %.*s: see permissions.allow_modes",
		UAR_FMT(mode));
}
