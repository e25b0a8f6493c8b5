/* control.h - what the files of the control plane's door share. */
#ifndef UAR_GATE_CONTROL_H
#define UAR_GATE_CONTROL_H

#include "engine/control.h"
#include "gate/gate_int.h"

/* Answers a command: {"ok", "result", "event_ids"}; op NULL: no events. */
void gate_answer_result(struct call *c, uar_str result, const struct uar_control_op *op);
/* sessions.c: commands that read. An error: nothing was answered yet. */
UAR_MUST_CHECK uar_err gate_read_session(struct call *c, const struct uar_ctl_get_session *in,
					 struct uar_error *error);
UAR_MUST_CHECK uar_err gate_read_inventory(struct call *c,
					   const struct uar_ctl_get_tool_inventory *in,
					   struct uar_error *error);
UAR_MUST_CHECK uar_err gate_read_environment(struct call *c,
					     const struct uar_ctl_get_execution_environment *in,
					     struct uar_error *error);
UAR_MUST_CHECK uar_err gate_read_thread(struct call *c, const struct uar_ctl_get_thread_read *in,
					struct uar_error *error);

#endif
