/* check_views.h - `uar check --log`: are the stored snapshots of sessions what their events lead
 * to? */
#ifndef UAR_APP_CHECK_VIEWS_H
#define UAR_APP_CHECK_VIEWS_H

#include "base/arena.h"
#include "base/map.h"
#include "core/view.h"
#include "event/row.h"

struct uar_view_check {
	struct uar_arena arena;
	struct uar_map stored;	       /* snapshots, by owner and session */
	const struct stored_view *now; /* of the session under way; NULL: none is left to judge */
	struct uar_sview view;
	size_t wanted, right;
	struct uar_buf *problems;
};
void uar_view_check_init(struct uar_view_check *k, struct uar_buf *problems);
void uar_view_check_fini(struct uar_view_check *k);
/* Keeps what a row says of its snapshot; the events come later, in a visit of their own. A snapshot
 * that is damaged or of another version is not judged: the server folds it anew. UAR_ENOMEM is the
 * only error, here and below. */
UAR_MUST_CHECK uar_err uar_view_check_row(struct uar_view_check *k, const struct uar_row *row);
/* The events of a session, from its first one on. */
UAR_MUST_CHECK uar_err uar_view_check_event(struct uar_view_check *k, const struct uar_event *ev);

#endif
