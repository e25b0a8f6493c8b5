/* check_views.c - stored snapshots of sessions, and what their events lead to. */
#include "app/check_views.h"

#include "base/sha256.h"
#include "event/limits.h"

struct stored_view {
	uint64_t through;
	char sha256[UAR_SHA256_TEXT + 1]; /* of its bytes */
};

void uar_view_check_init(struct uar_view_check *k, struct uar_buf *problems)
{
	*k = (struct uar_view_check){ .problems = problems };
	uar_arena_init(&k->arena, 0);
	uar_map_init(&k->stored, 0);
	uar_sview_init(&k->view);
}

void uar_view_check_fini(struct uar_view_check *k)
{
	uar_sview_fini(&k->view);
	uar_map_fini(&k->stored);
	uar_arena_fini(&k->arena);
}

static uar_str name_session(struct uar_arena *arena, const struct uar_owner *o, uar_str id)
{
	return uar_arena_printf(arena, "%.*s/%.*s/%.*s/%.*s", UAR_FMT(o->tenant),
				UAR_FMT(o->workspace), UAR_FMT(o->user), UAR_FMT(id));
}

static bool is_usable(uar_str model)
{
	struct uar_sview view;
	bool usable;

	uar_sview_init(&view);
	usable = !uar_sview_read(&view, model, NULL);
	uar_sview_fini(&view);
	return usable;
}

uar_err uar_view_check_row(struct uar_view_check *k, const struct uar_row *row)
{
	struct uar_row_snapshot snap;
	struct stored_view *s;
	struct uar_arena scratch;
	uar_str key;
	uar_err e;

	uar_arena_init(&scratch, 0);
	e = uar_row_unpack(row, &scratch, &snap, sizeof snap, NULL);
	if (e || !is_usable(snap.model)) {
		uar_arena_fini(&scratch);
		return e == UAR_ENOMEM ? e : UAR_OK;
	}
	s = uar_arena_alloc(&k->arena, sizeof *s);
	key = name_session(&k->arena, &row->owner, row->id);
	if (s && key.p) {
		s->through = (uint64_t)snap.through;
		uar_sha256_hex(snap.model, s->sha256);
		e = uar_map_put(&k->stored, key, s);
		k->wanted += !e;
	} else {
		e = UAR_ENOMEM;
	}
	uar_arena_fini(&scratch);
	return e;
}

/* The first event of another session: is one of its snapshots stored? */
static uar_err begin_session(struct uar_view_check *k, const struct uar_event *ev)
{
	const struct uar_owner owner = { ev->ids[UAR_ID_TENANT], ev->ids[UAR_ID_WORKSPACE],
					 ev->ids[UAR_ID_USER] };
	struct uar_arena scratch;
	uar_str key;

	uar_arena_init(&scratch, 0);
	key = name_session(&scratch, &owner, ev->ids[UAR_ID_SESSION]);
	k->now = key.p ? uar_map_get(&k->stored, key) : NULL;
	uar_arena_fini(&scratch);
	uar_sview_fini(&k->view);
	uar_sview_init(&k->view);
	return key.p ? UAR_OK : UAR_ENOMEM;
}

static uar_err compare(struct uar_view_check *k, uar_str session_id)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_ROW_BYTES);
	char sha256[UAR_SHA256_TEXT + 1];
	uar_err e = uar_sview_write(&k->view, &text);

	uar_sha256_hex(uar_buf_str(&text), sha256);
	if (!e && strcmp(sha256, k->now->sha256))
		uar_buf_printf(k->problems,
			       "log: rule snapshot: the stored snapshot of session %.*s at "
			       "sequence %llu is not what its events lead to; get_session with "
			       "\"verify\" mends it\n",
			       UAR_FMT(session_id), (unsigned long long)k->now->through);
	else if (!e)
		k->right++;
	uar_buf_fini(&text);
	k->now = NULL;
	return e;
}

uar_err uar_view_check_event(struct uar_view_check *k, const struct uar_event *ev)
{
	uar_err e = ev->sequence == 1 ? begin_session(k, ev) : UAR_OK;

	if (e || !k->now)
		return e;
	e = uar_sview_fold(&k->view, ev);
	if (e == UAR_ECORRUPT) { /* events before it are gone */
		k->now = NULL;
		return UAR_OK;
	}
	return !e && ev->sequence == k->now->through ? compare(k, ev->ids[UAR_ID_SESSION]) : e;
}
