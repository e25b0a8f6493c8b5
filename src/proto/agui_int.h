/* agui_int.h - what the files of the AG-UI encoder share. */
#ifndef UAR_PROTO_AGUI_INT_H
#define UAR_PROTO_AGUI_INT_H

#include "proto/agui.h"
#include "proto/agui_input.h"
#include "proto/view.h"

struct agui {
	struct uar_view view;
	struct uar_dialect_options o;
	unsigned segment;	/* AG-UI runs that have begun */
	uar_str segment_name;	/* what the client calls the one that is open; empty: nothing */
	bool running;		/* one is open */
	bool in_list;		/* messages of a snapshot are written */
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
/* agui_surface.c: what an artifact shows besides, when it is an interface: an event, or a message
 * of the snapshot that is open. */
uar_err agui_surface(struct agui *a, const struct uar_view_message *m);
uar_err agui_messages(struct agui *a, bool activities);
uar_err agui_state(struct agui *a);
void agui_next_segment(struct agui *a); /* the next AG-UI run is open */
uar_err agui_started(struct agui *a);
uar_err agui_finished(struct agui *a);
uar_err agui_interrupted(struct agui *a);
/* Is all that the run waits for results of the client's tools? */
bool agui_waits_for_client(const struct agui *a);
uar_err agui_failed(struct agui *a, const char *code, uar_str message);
/* agui_client.c: the tools of the client, what it says besides, and results of its tools. */
UAR_MUST_CHECK uar_err uar_agui_client_read(const struct uar_json *body, struct uar_arena *arena,
					    struct uar_agui_input *out, struct uar_error *error);
/* agui_input.c: the text of a message's content. */
UAR_MUST_CHECK uar_err agui_content_text(const struct uar_json *message, struct uar_arena *arena,
					 uar_str *out);

#endif
