/* control.h - commands of the control plane through the engine: the session is found, the
 * rows that the decision needs are loaded, core decides, the facts and rows are appended,
 * then the caller is answered and effects begin.
 *
 * Commands of one session are decided one after the other, and no batch of its runs is
 * decided in between. */
#ifndef UAR_ENGINE_CONTROL_H
#define UAR_ENGINE_CONTROL_H

#include "core/control.h"
#include "engine/engine.h"

struct uar_control_op {
	const struct uar_control *in; /* with its strings in place until done */
	void (*done)(struct uar_control_op *op);
	void *ctx; /* the caller's */
	/* The engine's own: a request for a run that is made ready, and the thread of the run. */
	struct creation *creation;
	const char *thread_id, *thread_session; /* "": the thread has none yet */
	bool new_thread;
	uar_str make_session; /* the id of a session that is made; empty: a new one */
	/* out; strings are valid inside done */
	uar_err err;
	struct uar_error error;
	uar_str result;	   /* JSON object */
	uar_str event_ids; /* JSON array; empty: those of `events` */
	const struct uar_event *events;
	size_t event_count;
	uar_str session_id;
};
/* For commands of mode CHANGE that core decides. The operation stays in place until done. */
UAR_MUST_CHECK uar_err uar_runtime_control(struct uar_runtime *rt, struct uar_control_op *op);

#endif
