/* timeline.h - a run as spans of time: what it did when, what that cost, and the number of the
 * event at each end. One JSON value; as a stream it is empty. */
#ifndef UAR_PROTO_TIMELINE_H
#define UAR_PROTO_TIMELINE_H

#include "proto/dialect.h"

extern const struct uar_dialect uar_timeline;

#endif
