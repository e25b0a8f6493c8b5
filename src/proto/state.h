/* state.h - a run as it stood at one of its events: messages, calls, open questions, usage.
 * One JSON value; as a stream it is empty. */
#ifndef UAR_PROTO_STATE_H
#define UAR_PROTO_STATE_H

#include "proto/dialect.h"

extern const struct uar_dialect uar_state;

#endif
