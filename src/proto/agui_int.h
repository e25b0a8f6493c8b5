/* agui_int.h - what the files of the AG-UI encoder share. */
#ifndef UAR_PROTO_AGUI_INT_H
#define UAR_PROTO_AGUI_INT_H

#include "proto/agui.h"
#include "proto/view.h"

struct agui {
	struct uar_view view;
	struct uar_dialect_options o;
	unsigned segment;	/* AG-UI runs that have begun */
	bool running;		/* one is open */
	bool step;		/* STEP_STARTED was sent, STEP_FINISHED not yet */
	struct uar_frames *out; /* while an event is encoded */
	int64_t time_us;	/* of that event; 0: none */
	struct uar_jw w;
};

/* agui_frame.c: one AG-UI event each. */
void agui_open(struct agui *a, const char *event, const char *type);
uar_err agui_close(struct agui *a);
/* Members of the event that is open. */
void agui_put_cited(struct agui *a, const struct uar_view_message *m);
void agui_put_outcome(struct agui *a, const struct uar_view_message *m);
uar_err agui_messages(struct agui *a, bool activities);
uar_err agui_state(struct agui *a);
uar_err agui_started(struct agui *a);
uar_err agui_finished(struct agui *a);
uar_err agui_interrupted(struct agui *a);
uar_err agui_failed(struct agui *a, const char *code, uar_str message);

#endif
