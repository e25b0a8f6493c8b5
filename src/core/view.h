/* view.h - the read models of a session: one pure fold of its events.
 *
 *	view = fold(view, event)          from nothing, or from a snapshot
 *	snapshot = write(view)            canonical: equal views are equal bytes
 *	read model = write_x(view)        what a client is shown
 *
 * A view is bounded whatever the length of the log: view.def names how many items of each
 * kind are kept. Fold of a snapshot and the events behind it equals the fold from the first
 * event, byte for byte. A read model states what it does not know (unknown, unavailable,
 * stale, blocked, not_applicable) and infers no success. */
#ifndef UAR_CORE_VIEW_H
#define UAR_CORE_VIEW_H

#include "event/event.h"
#include "event/fields.h"

enum { UAR_SVIEW_VERSION = 9 };

enum uar_sview_kind {
#define VIEW(KIND, NAME, MAX, DOC) UAR_SVIEW_##KIND,
#include "core/view.def"
	UAR_SVIEW_COUNT
};

/* What every item begins with. */
struct uar_sview_item {
	uar_str key;
	bool open;
	int64_t sequence; /* of the last event that changed it */
};

#define VIEW(KIND, NAME, MAX, DOC)                                                                 \
	struct uar_sview_##NAME {                                                                  \
		struct uar_sview_item item;
#define F(VIEW, TYPE, NAME, MAX, DOC) UAR_F_C_##TYPE NAME;
#define END(KIND, NAME)                                                                            \
	}                                                                                          \
	;
#include "core/view.def"

struct uar_sview_list {
	char *items; /* structs of the kind, in the order in which they were made */
	size_t count, room;
	int64_t omitted; /* items that made room for newer ones */
};

struct uar_sview {
	struct uar_arena arena;	  /* of all strings and lists */
	struct uar_arena scratch; /* of one event */
	struct uar_sview_list lists[UAR_SVIEW_COUNT];
	uint64_t through; /* the last sequence that is folded in */
	uar_err err;	  /* the first failure; the view is unusable */
};

void uar_sview_init(struct uar_sview *v);
void uar_sview_fini(struct uar_sview *v);
/* Folds the next event of the session. UAR_ECORRUPT: a sequence is missing; the view stays
 * what it was. UAR_ENOMEM: it is unusable. */
UAR_MUST_CHECK uar_err uar_sview_fold(struct uar_sview *v, const struct uar_event *ev);
/* The view as one JSON object, for a snapshot. */
UAR_MUST_CHECK uar_err uar_sview_write(const struct uar_sview *v, struct uar_buf *out);
/* Reads such an object into a view that was initialized. UAR_ECORRUPT: it is none;
 * UAR_ENEWER: of another version. The view then has to be initialized again. */
UAR_MUST_CHECK uar_err uar_sview_read(struct uar_sview *v, uar_str json, struct uar_error *error);

/* --- read models ------------------------------------------------------------------------ */

/* What the reader knows beyond the view. */
struct uar_sview_show {
	const struct uar_sview *view;
	bool stale; /* events behind the view exist and could not be read */
	uar_str stale_reason;
	uint64_t last_sequence; /* of the session, when it is stale */
};
/* Each writes one member of the open object. */
void uar_sview_write_session(struct uar_jw *w, const char *key, const struct uar_sview_show *s);
void uar_sview_write_threads(struct uar_jw *w, const char *key, const struct uar_sview_show *s);
void uar_sview_write_thread(struct uar_jw *w, const char *key, const struct uar_sview_show *s,
			    uar_str thread_id);
void uar_sview_write_steps(struct uar_jw *w, const char *key, const struct uar_sview_show *s);
void uar_sview_write_pending(struct uar_jw *w, const char *key, const struct uar_sview_show *s,
			     uar_str thread_id);
void uar_sview_write_queue(struct uar_jw *w, const char *key, const struct uar_sview_show *s,
			   uar_str thread_id);
void uar_sview_write_tasks(struct uar_jw *w, const char *key, const struct uar_sview_show *s);
void uar_sview_write_permissions(struct uar_jw *w, const char *key, const struct uar_sview_show *s);
void uar_sview_write_artifacts(struct uar_jw *w, const char *key, const struct uar_sview_show *s);
void uar_sview_write_context(struct uar_jw *w, const char *key, const struct uar_sview_show *s,
			     uar_str thread_id);
void uar_sview_write_routing(struct uar_jw *w, const char *key, const struct uar_sview_show *s,
			     uar_str thread_id);
void uar_sview_write_inventory(struct uar_jw *w, const char *key, const struct uar_sview_show *s,
			       uar_str thread_id);
/* What was exported of a thread, or of the whole session. */
void uar_sview_write_evidence(struct uar_jw *w, const char *key, const struct uar_sview_show *s,
			      uar_str thread_id);
void uar_sview_write_channels(struct uar_jw *w, const char *key, const struct uar_sview_show *s);
/* Child agents and jobs of a session. */
void uar_sview_write_fanout(struct uar_jw *w, const char *key, const struct uar_sview_show *s);
/* Where commands run: folders, limits, processes; of a thread or a turn alone when one is named. */
void uar_sview_write_environment(struct uar_jw *w, const char *key, const struct uar_sview_show *s,
				 uar_str thread_id, uar_str turn_id);
/* The boundaries that tools and commands ran in, and what they denied. */
void uar_sview_write_sandbox(struct uar_jw *w, const char *key, const struct uar_sview_show *s);
/* How each read model of a session stands: available, stale, not_applicable, unavailable. */
void uar_sview_write_states(struct uar_jw *w, const char *key, const struct uar_sview_show *s);
/* Freshness: {"state", "through_sequence", "last_sequence", "reason"}. */
void uar_sview_write_freshness(struct uar_jw *w, const char *key, const struct uar_sview_show *s);

/* A thread of the view; NULL: it has none of that id. */
const struct uar_sview_thread *uar_sview_thread(const struct uar_sview *v, uar_str thread_id);
/* The thread at work, or the one that changed last; NULL: there is none. */
const struct uar_sview_thread *uar_sview_active(const struct uar_sview *v);

#endif
