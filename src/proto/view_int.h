/* view_int.h - what the files of the view's fold share. */
#ifndef UAR_PROTO_VIEW_INT_H
#define UAR_PROTO_VIEW_INT_H

#include "proto/view.h"

struct view_fold {
	struct uar_view *v;
	const struct uar_event *ev;
	const struct uar_json *p;
	struct uar_arena *scratch;
};

const struct uar_json *view_member(const struct view_fold *f, const char *key);
uar_str view_text(const struct view_fold *f, const char *key);
uar_err view_tell(const struct view_fold *f, struct uar_view_change change);
uar_err view_tell_kind(const struct view_fold *f, enum uar_view_change_kind kind);
uar_err view_keep_str(struct uar_view *v, uar_str s, uar_str *out);
uar_err view_keep_text(struct uar_view *v, struct uar_buf *to, uar_str text);
uar_err view_keep_json(struct view_fold *f, const struct uar_json *j, uar_str *out);
struct uar_view_message *view_make_message(struct uar_view *v, enum uar_view_kind kind, uar_str id);
void view_insert_message(struct uar_view *v, struct uar_view_message *at,
			 struct uar_view_message *m);
uar_err view_close_message(struct view_fold *f);
struct uar_view_message *view_find_message(const struct uar_view *v, uar_str id);
uar_err view_set_text(struct uar_view *v, struct uar_buf *to, uar_str text);
uar_err view_fold_tool_started(struct view_fold *f);
uar_err view_fold_tool_args(struct view_fold *f);
uar_err view_fold_tool_end(struct view_fold *f);
uar_err view_fold_tool_progress(struct view_fold *f);
uar_err view_fold_artifact(struct view_fold *f);
uar_err view_fold_context(struct view_fold *f);
uar_err view_fold_asked(struct view_fold *f);
uar_err view_fold_answered(struct view_fold *f);
uar_err view_fold_waiting(struct view_fold *f);
uar_err view_fold_resumed(struct view_fold *f);
/* view_state.c */
uar_err view_fold_client_state(struct view_fold *f);
/* A call that was made and has succeeded may have changed the state. */
uar_err view_fold_merge(struct view_fold *f, const struct uar_view_call *c);
uar_err view_close_calls(struct view_fold *f);

#endif
