/* view_int.h - how the folds of view_*.c find and change items. */
#ifndef UAR_CORE_VIEW_INT_H
#define UAR_CORE_VIEW_INT_H

#include "core/view.h"

/* One event on its way into a view. */
struct fold_step {
	struct uar_sview *v;
	const struct uar_event *ev;
	const struct uar_json *p; /* payload */
};
typedef void view_fold_fn(struct fold_step *s);

/* Bytes that a member may have: VIEW_MAX_<view>_<member>. */
#define F(VIEW, TYPE, NAME, MAX, DOC) VIEW_MAX_##VIEW##_##NAME = MAX,
enum {
#include "core/view.def"
	VIEW_MAX_END
};
/* A member of an item from a text; from a member of the payload, as text or as JSON. */
#define VIEW_KEEP(S, VIEW, ITEM, NAME, TEXT)                                                       \
	view_keep((S)->v, &(ITEM)->NAME, TEXT, VIEW_MAX_##VIEW##_##NAME)
#define VIEW_TAKE(S, VIEW, ITEM, NAME) view_take(S, &(ITEM)->NAME, #NAME, VIEW_MAX_##VIEW##_##NAME)
#define VIEW_TAKE_JSON(S, VIEW, ITEM, NAME)                                                        \
	view_take_json(S, &(ITEM)->NAME, #NAME, VIEW_MAX_##VIEW##_##NAME)

struct uar_sview_info {
	const char *name;
	size_t size, max;
	struct uar_fields fields;
};
extern const struct uar_sview_info uar_sview_info[UAR_SVIEW_COUNT];

/* The item; NULL: there is none. */
void *view_find(const struct uar_sview *v, enum uar_sview_kind kind, uar_str key);
/* The item, made when there is none; NULL: no memory (v->err). Valid until the next call. */
void *view_item(struct fold_step *s, enum uar_sview_kind kind, uar_str key);
/* The item that the event names by an id; NULL: the event has no such id. */
void *view_named(struct fold_step *s, enum uar_sview_kind kind, enum uar_id id);
/* It is one that the view omits. */
void view_drop(struct uar_sview *v, enum uar_sview_kind kind, const void *item);
struct uar_sview_shell *view_shell(struct fold_step *s);
/* The i-th item, the oldest first. */
const void *view_at(const struct uar_sview *v, enum uar_sview_kind kind, size_t i);

/* Keeps a copy of the text, cut to the bytes that its member may have. */
void view_keep(struct uar_sview *v, uar_str *to, uar_str text, size_t max);
/* The same of a member of the payload; what is not there changes nothing. */
void view_take(struct fold_step *s, uar_str *to, const char *name, size_t max);
/* JSON text of a member; longer than max: nothing is kept. */
void view_take_json(struct fold_step *s, uar_str *to, const char *name, size_t max);
uar_str view_str(const struct fold_step *s, const char *name);
int64_t view_int(const struct fold_step *s, const char *name, int64_t fallback);
bool view_bool(const struct fold_step *s, const char *name);
/* The ref of the event; empty: none. */
uar_str view_ref(struct fold_step *s, const char *name);
/* thread_id, turn_id and run_id of the event. */
void view_place(struct fold_step *s, uar_str *thread_id, uar_str *turn_id, uar_str *run_id);

/* The folds; each ignores classes that do not concern it. */
void view_fold_session(struct fold_step *s);
void view_fold_thread(struct fold_step *s);
void view_fold_turn(struct fold_step *s);
void view_fold_step(struct fold_step *s);
void view_fold_permission(struct fold_step *s); /* decisions and policies */
void view_fold_work(struct fold_step *s);	/* actions, calls, incidents, outputs */
void view_fold_sandbox(struct fold_step *s);	/* boundaries, processes */
void view_fold_task(struct fold_step *s);
void view_fold_channel(struct fold_step *s);
void view_fold_fanout(struct fold_step *s);   /* child agents, jobs and their items */
void view_fold_routing(struct fold_step *s);  /* models, costs, limits */
void view_fold_material(struct fold_step *s); /* artifacts, context, tools, evidence */

/* view_state.c */
const char *view_thread_status(const struct uar_sview_show *s, const struct uar_sview_thread *t);
size_t view_count_open(const struct uar_sview *v, enum uar_sview_kind kind);
void view_put_json(struct uar_jw *w, const char *key, uar_str json, const char *otherwise);

#endif
