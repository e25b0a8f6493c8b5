/* fanout.h - child agents and jobs over the control plane. */
#ifndef UAR_GATE_FANOUT_H
#define UAR_GATE_FANOUT_H

#include "core/control.h"
#include "gate/gate_int.h"

bool gate_reads_fanout(enum uar_control_kind kind);
UAR_MUST_CHECK uar_err gate_read_fanout(struct call *c, const struct uar_control *in,
					struct uar_error *error);

#endif
