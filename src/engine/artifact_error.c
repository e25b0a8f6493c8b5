/* artifact_error.c - what the preview of an artifact reports, told to the run that made it. */
#include "engine/engine_int.h"

static void reported(struct cmd *cmd, uar_err e, const struct uar_error *error,
		     const struct uar_run *run)
{
	struct uar_artifact_error_op *op = cmd->ctx;

	(void)run;
	op->err = e;
	if (e && error)
		op->error = *error;
	op->done(op);
}

uar_err uar_runtime_artifact_error(struct uar_runtime *rt, struct uar_artifact_error_op *op)
{
	struct live_run *r = rt_run_find(rt, &op->owner, op->run_id);
	struct cmd *cmd;
	uar_err e;

	if (!r || !r->committed)
		return UAR_ESTATE;
	cmd = rt_cmd_make(r, UAR_CMD_NOTE);
	if (!cmd)
		return UAR_ENOMEM;
	cmd->c.note = (struct uar_note){ .kind = UAR_NOTE_ARTIFACT_ERROR,
					 .text = op->message,
					 .metadata = op->details,
					 .artifact_id = op->artifact_id };
	cmd->done = reported;
	cmd->ctx = op;
	e = rt_cmd_send(cmd);
	if (e)
		rt_cmd_free(cmd);
	return e;
}
