/* validate_task.c - the statuses of tasks: what the rows say is what the events lead to. */
#include "core/validate_int.h"

#include <stdio.h>

#include "base/alloc.h"
#include "event/limits.h"

struct seen_task {
	struct seen_task *next; /* of all, to be freed */
	char status[UAR_LIMIT_STATUS_BYTES];
	size_t key_bytes;
	char key[];
};

enum { KEY_BYTES = 4 + 4 * UAR_LIMIT_ID_BYTES };

/* Two owners may have tasks of the same id. */
static uar_str name_task(char key[KEY_BYTES], const struct uar_owner *owner, uar_str id)
{
	int n = snprintf(key, KEY_BYTES, "%.*s/%.*s/%.*s/%.*s", UAR_FMT(owner->tenant),
			 UAR_FMT(owner->workspace), UAR_FMT(owner->user), UAR_FMT(id));

	return uar_str_n(key, n < 0 ? 0 : n < KEY_BYTES ? (size_t)n : KEY_BYTES - 1);
}

static uar_err make_task(struct seen_tasks *t, uar_str key, struct seen_task **out)
{
	struct seen_task *s = uar_zalloc(sizeof *s + key.n);
	uar_err e;

	if (!s)
		return UAR_ENOMEM;
	memcpy(s->key, key.p, key.n);
	s->key_bytes = key.n;
	e = uar_map_put(&t->map, uar_str_n(s->key, key.n), s);
	if (e) {
		uar_free(s);
		return e;
	}
	s->next = t->all;
	t->all = s;
	*out = s;
	return UAR_OK;
}

static bool tells_status(const struct uar_event *ev)
{
	static const bool tells[UAR_EV_COUNT] = {
		[UAR_EV_TASK_CREATED] = true,	[UAR_EV_TASK_ACCEPTED] = true,
		[UAR_EV_TASK_QUEUED] = true,	[UAR_EV_TASK_STARTED] = true,
		[UAR_EV_TASK_WAITING] = true,	[UAR_EV_TASK_BLOCKED] = true,
		[UAR_EV_TASK_PAUSED] = true,	[UAR_EV_TASK_RESUMED] = true,
		[UAR_EV_TASK_RETRYING] = true,	[UAR_EV_TASK_CANCEL_REQUESTED] = true,
		[UAR_EV_TASK_CANCELLED] = true, [UAR_EV_TASK_TIMED_OUT] = true,
		[UAR_EV_TASK_FAILED] = true,	[UAR_EV_TASK_LOST] = true,
		[UAR_EV_TASK_COMPLETED] = true, [UAR_EV_TASK_ARCHIVED] = true,
	};

	return (ev->cls < UAR_EV_COUNT && tells[ev->cls]) ||
	       uar_str_is(uar_event_type(ev), "vendor.uar.task.followed");
}

/* A task that comes with a run has no row: one that a command has made begins without a run. */
static bool makes_task(const struct uar_event *ev)
{
	return ev->cls == UAR_EV_TASK_CREATED && !ev->ids[UAR_ID_RUN].n;
}

uar_err validate_task_event(struct seen_tasks *t, const struct uar_event *ev,
			    struct uar_arena *scratch)
{
	const struct uar_owner owner = { ev->ids[UAR_ID_TENANT], ev->ids[UAR_ID_WORKSPACE],
					 ev->ids[UAR_ID_USER] };
	const struct uar_json *p = NULL;
	struct seen_task *s = NULL;
	char key[KEY_BYTES];
	uar_str name;
	uar_err e = UAR_OK;

	if (!ev->ids[UAR_ID_TASK].n || !tells_status(ev))
		return UAR_OK;
	name = name_task(key, &owner, ev->ids[UAR_ID_TASK]);
	s = uar_map_get(&t->map, name);
	if (!s && makes_task(ev))
		e = make_task(t, name, &s);
	if (!s)
		return e;
	e = uar_event_payload(ev, scratch, &p, NULL);
	if (!e)
		snprintf(s->status, sizeof s->status, "%.*s",
			 UAR_FMT(uar_json_str(uar_json_get(p, UAR_STR("status")), UAR_STR_NONE)));
	return e == UAR_ENOMEM ? e : UAR_OK; /* a broken payload was told by its schema */
}

const char *validate_task_status(const struct seen_tasks *t, const struct uar_row *row)
{
	char key[KEY_BYTES];
	const struct seen_task *s = uar_map_get(&t->map, name_task(key, &row->owner, row->id));

	return s ? s->status : NULL;
}

void validate_tasks_fini(struct seen_tasks *t)
{
	while (t->all) {
		struct seen_task *s = t->all;

		t->all = s->next;
		uar_free(s);
	}
	uar_map_fini(&t->map);
}
