/* hook.c - the hooks of a CLI: programs of its user that it calls at certain points.
 *
 * What they print is the user's and stays there; told is which point it was, how it
 * went on and how long it took. */
#include "backend/map.h"

#include "base/clock.h"

static const struct {
	const char *name, *point; /* the CLI's name, the catalogue's */
} points[] = {
	{ "sessionStart", "session_start" },	 { "userPromptSubmit", "user_prompt_submit" },
	{ "preToolUse", "pre_tool_use" },	 { "permissionRequest", "permission_request" },
	{ "postToolUse", "post_tool_use" },	 { "postToolUseFailure", "post_tool_failure" },
	{ "postModelRequest", "post_sampling" }, { "stop", "stop" },
};

/* NULL: the catalogue has no such point. One CLI begins names with a capital, the
 * other does not. */
static const char *point_of(uar_str name)
{
	for (size_t i = 0; i < ARRAY_LEN(points) && name.n; i++)
		if ((name.p[0] | 0x20) == points[i].name[0] &&
		    uar_str_is(uar_str_from(name, 1), points[i].name + 1))
			return points[i].point;
	return NULL;
}

static struct uab_hook *find(struct uab_map *m, uar_str id)
{
	for (size_t i = 0; i < m->hook_count; i++)
		if (uar_str_is(id, m->hooks[i].id))
			return &m->hooks[i];
	return NULL;
}

/* {"hook":{"id":...,"point":...}} and, once it is over, `outcome` and `duration_ms`. */
static void tell(struct uab_map *m, const char *message, const struct uab_hook *h,
		 const char *outcome, int64_t duration_ms)
{
	struct uar_buf data = uar_buf_make(1024);
	struct uar_jw w = uar_jw_begin(&data);
	uaa_event_spec s = { .kind = UAA_EV_STATUS,
			     .channel = UAB_STR("status"),
			     .message = uaa_str_c(message) };

	uar_jw_obj(&w, NULL);
	uar_jw_obj(&w, "hook");
	uar_jw_cstr(&w, "id", h->id);
	uar_jw_cstr(&w, "point", h->point);
	if (outcome) {
		uar_jw_cstr(&w, "outcome", outcome);
		uar_jw_int(&w, "duration_ms", duration_ms);
	}
	uar_jw_close(&w);
	uar_jw_close(&w);
	if (uar_jw_end(&w) == UAR_OK) {
		s.data_json = uab_pub(uar_buf_str(&data));
		m->port->emit(m->port->ctx, &s, false);
	}
	uar_buf_fini(&data);
}

void uab_hook_started(struct uab_map *m, uar_str id, uar_str point)
{
	struct uab_hook h = { .point = point_of(point),
			      .began_us = uar_clock_mono(&uar_clock_system) };

	uab_put(h.id, sizeof h.id, id);
	if (!h.point || !id.n || id.n >= sizeof h.id || find(m, id)) { /* or it could never end */
		uab_status(m, "hook");
		return;
	}
	if (m->hook_count == ARRAY_LEN(m->hooks)) { /* forget the oldest */
		memmove(m->hooks, m->hooks + 1, sizeof m->hooks - sizeof m->hooks[0]);
		m->hook_count--;
	}
	m->hooks[m->hook_count++] = h;
	tell(m, "hook started", &h, NULL, 0);
}

void uab_hook_ended(struct uab_map *m, uar_str id, enum uab_hook_end how, int64_t duration_ms)
{
	struct uab_hook *h = find(m, id);
	struct uab_hook was;

	if (!h) /* of a point that the catalogue does not have */
		return;
	was = *h;
	m->hook_count--;
	memmove(h, h + 1, (size_t)(m->hooks + m->hook_count - h) * sizeof *h);
	if (duration_ms < 0)
		duration_ms = (uar_clock_mono(&uar_clock_system) - was.began_us) / 1000;
	tell(m, how == UAB_HOOK_FAILS ? "hook failed" : "hook completed", &was,
	     how == UAB_HOOK_BLOCKS ? "block" : "continue", duration_ms);
}
