/* a2ui.c - changes of a run's view as A2UI messages. */
#include "proto/a2ui_int.h"

#include "base/sizes.h"
#include "event/sizes.h"

typedef const struct uar_view_change change_t;

enum {
	GROWN_PART = 16,   /* text is sent again when it has grown by such a part of itself */
	PAUSE_US = 100000, /* and this long after it was sent last */
};

/* --- messages ------------------------------------------------------------------------------- */

void a2ui_open(struct a2ui *a, const char *key, uar_str surface)
{
	uar_frame_open(a->out, NULL);
	a->w = uar_jw_begin(a->out->out);
	uar_jw_obj(&a->w, NULL);
	uar_jw_cstr(&a->w, "version", UAR_A2UI_VERSION);
	uar_jw_obj(&a->w, key);
	uar_jw_str(&a->w, "surfaceId", surface);
}

uar_err a2ui_close(struct a2ui *a)
{
	uar_jw_close(&a->w);
	uar_jw_close(&a->w);
	return uar_frame_close(a->out, &a->w);
}

void a2ui_open_components(struct a2ui *a, uar_str surface)
{
	a2ui_open(a, "updateComponents", surface);
	uar_jw_arr(&a->w, "components");
}

uar_err a2ui_close_components(struct a2ui *a)
{
	uar_jw_close(&a->w);
	return a2ui_close(a);
}

uar_err a2ui_create(struct a2ui *a, uar_str surface, bool sends_model)
{
	uar_err e = a->rejoined ? a2ui_delete(a, surface) : UAR_OK;

	if (e)
		return e;
	a2ui_open(a, "createSurface", surface);
	uar_jw_str(&a->w, "catalogId", a->o.catalog.n ? a->o.catalog : UAR_STR(UAR_A2UI_CATALOG));
	if (sends_model)
		uar_jw_bool(&a->w, "sendDataModel", true);
	return a2ui_close(a);
}

uar_err a2ui_delete(struct a2ui *a, uar_str surface)
{
	a2ui_open(a, "deleteSurface", surface);
	return a2ui_close(a);
}

static uar_str run_surface(const struct a2ui *a, char out[UAR_LIMIT_ID_BYTES + 8])
{
	int n = snprintf(out, UAR_LIMIT_ID_BYTES + 8, "run-%.*s",
			 UAR_FMT(uar_str_utf8_prefix(a->view.run_id, UAR_LIMIT_ID_BYTES)));

	return uar_str_n(out, (size_t)n);
}

/* Data of the run's surface at a path; its value follows as the member "value". */
static void open_data(struct a2ui *a, const char *path)
{
	char surface[UAR_LIMIT_ID_BYTES + 8];

	a2ui_open(a, "updateDataModel", run_surface(a, surface));
	uar_jw_cstr(&a->w, "path", path);
}

static uar_err put_text_at(struct a2ui *a, const char *path, uar_str text)
{
	open_data(a, path);
	uar_jw_str(&a->w, "value", text);
	return a2ui_close(a);
}

static uar_err set_status(struct a2ui *a, const char *status)
{
	if (strcmp(a->status, status) == 0)
		return UAR_OK;
	a->status = status;
	return put_text_at(a, "/status", uar_str_c(status));
}

/* --- sections ------------------------------------------------------------------------------- */

static struct a2ui_section *find_section(const struct a2ui *a, enum a2ui_kind kind,
					 const struct uar_view_message *m)
{
	struct a2ui_section *s = a->sections;

	while (s && (s->kind != kind || s->message != m))
		s = s->next;
	return s;
}

static unsigned count_sections(const struct a2ui *a, enum a2ui_kind kind)
{
	unsigned n = 0;

	for (const struct a2ui_section *s = a->sections; s; s = s->next)
		if (s->kind == kind)
			n = s->number + 1;
	return n;
}

static struct a2ui_section *make_section(struct a2ui *a, enum a2ui_kind kind,
					 const struct uar_view_message *m)
{
	struct a2ui_section **at = &a->sections, *s = uar_arena_alloc(&a->view.arena, sizeof *s);

	if (!s)
		return NULL;
	*s = (struct a2ui_section){ .kind = kind, .number = count_sections(a, kind), .message = m };
	while (*at)
		at = &(*at)->next;
	*at = s;
	return s;
}

static uar_err show_section(struct a2ui *a, const struct a2ui_section *s)
{
	char surface[UAR_LIMIT_ID_BYTES + 8];
	uar_err e;

	a2ui_open_components(a, run_surface(a, surface));
	a2ui_put_root(a);
	e = a2ui_put_section(a, s);
	return e ? e : a2ui_close_components(a);
}

static uar_err add_section(struct a2ui *a, enum a2ui_kind kind, const struct uar_view_message *m,
			   struct a2ui_section **out)
{
	*out = make_section(a, kind, m);
	return *out ? UAR_OK : UAR_ENOMEM;
}

/* --- messages of the run -------------------------------------------------------------------- */

static void text_path(const struct a2ui_section *s, char out[32])
{
	snprintf(out, 32, "/%s/%u", s->kind == A2UI_TEXT ? "text" : "reasoning", s->number);
}

static uar_err flush_text(struct a2ui *a, const struct uar_view_message *m)
{
	enum a2ui_kind kind = m->kind == UAR_VIEW_TEXT ? A2UI_TEXT : A2UI_REASONING;
	const struct a2ui_section *s = find_section(a, kind, m);
	char path[32];

	if (!s || a->shown == m->text.n)
		return UAR_OK;
	a->shown = m->text.n;
	a->shown_us = a->time_us;
	text_path(s, path);
	return put_text_at(a, path, uar_buf_str(&m->text));
}

static uar_err on_message_started(struct a2ui *a, change_t *c)
{
	bool text = c->message->kind == UAR_VIEW_TEXT;
	struct a2ui_section *s = NULL;
	uar_err e = add_section(a, text ? A2UI_TEXT : A2UI_REASONING, c->message, &s);
	char path[32];

	if (e)
		return e;
	a->shown = 0;
	a->shown_us = 0;
	text_path(s, path);
	e = put_text_at(a, path, UAR_STR(""));
	return e ? e : show_section(a, s);
}

static uar_err on_message_grew(struct a2ui *a, change_t *c)
{
	size_t n = c->message->text.n;

	if (a->time_us - a->shown_us < PAUSE_US || (n - a->shown) * GROWN_PART < n)
		return UAR_OK;
	return flush_text(a, c->message);
}

static uar_err on_message_ended(struct a2ui *a, change_t *c)
{
	return flush_text(a, c->message);
}

/* --- tools ---------------------------------------------------------------------------------- */

static unsigned call_number(const struct a2ui *a, const struct uar_view_call *call)
{
	unsigned n = 0;

	for (const struct uar_view_message *m = a->view.first; m; m = m->next)
		for (const struct uar_view_call *c = m->calls; c; c = c->next) {
			if (c == call)
				return n;
			n++;
		}
	return n;
}

static uar_err put_call(struct a2ui *a, const struct uar_view_call *call)
{
	char path[32];

	snprintf(path, sizeof path, "/tools/%u", call_number(a, call));
	open_data(a, path);
	a2ui_put_tool(&a->w, "value", a, call);
	return a2ui_close(a);
}

static uar_err on_call(struct a2ui *a, change_t *c)
{
	struct a2ui_section *s = find_section(a, A2UI_TOOLS, NULL);
	uar_err e = put_call(a, c->call);

	if (e || s)
		return e;
	e = add_section(a, A2UI_TOOLS, NULL, &s);
	return e ? e : show_section(a, s);
}

/* --- activities ----------------------------------------------------------------------------- */

/* What a tool says while it works is its output until it ends. */
static uar_err put_progress(struct a2ui *a, const struct uar_view_message *m)
{
	uar_str id = uar_str_from(m->id, strlen("tool:"));

	for (const struct uar_view_message *o = a->view.first; o; o = o->next)
		for (const struct uar_view_call *c = o->calls; c; c = c->next)
			if (uar_str_eq(c->id, id))
				return put_call(a, c);
	return UAR_OK;
}

static uar_err show_made(struct a2ui *a, const struct uar_view_message *m, bool again)
{
	const struct uar_json *artifact = NULL;
	uar_err e;

	if (!uar_str_is(m->activity_type, "uar.artifact"))
		return UAR_ESKIP;
	e = uar_json_parse(uar_buf_str(&m->text), NULL, a->scratch, &artifact, NULL);
	if (e)
		return e;
	return a2ui_is_made(artifact) ? a2ui_show_made(a, artifact, again) : UAR_ESKIP;
}

static uar_err on_activity(struct a2ui *a, change_t *c)
{
	bool memory = uar_str_is(c->message->activity_type, "uar.memory");
	enum a2ui_kind kind = memory ? A2UI_MEMORY : A2UI_ARTIFACT;
	struct a2ui_section *s = find_section(a, kind, c->message);
	bool known = s;
	char path[32];
	uar_err e = UAR_OK;

	if (uar_str_is(c->message->activity_type, "uar.tool"))
		return put_progress(a, c->message);
	e = show_made(a, c->message, !c->first);
	if (e != UAR_ESKIP)
		return e;
	e = UAR_OK;
	if (!known)
		e = add_section(a, kind, c->message, &s);
	if (e)
		return e;
	snprintf(path, sizeof path, "/%s/%u", memory ? "memory" : "artifacts", s->number);
	open_data(a, path);
	e = memory ? a2ui_put_memory(&a->w, "value", c->message)
		   : a2ui_put_artifact(&a->w, "value", c->message);
	if (!e)
		e = a2ui_close(a);
	return e || known ? e : show_section(a, s);
}

static uar_err on_cited(struct a2ui *a, change_t *c)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EVENT_BYTES * 2);
	struct a2ui_section *s = NULL;
	uar_err e = add_section(a, A2UI_SOURCES, NULL, &s);

	uar_json_write(&b, c->json);
	if (!e)
		e = b.err;
	if (!e) {
		s->json = uar_arena_str(&a->view.arena, uar_buf_str(&b));
		e = s->json.p ? show_section(a, s) : UAR_ENOMEM;
	}
	uar_buf_fini(&b);
	return e;
}

/* --- the run -------------------------------------------------------------------------------- */

static uar_err show_surface(struct a2ui *a)
{
	char name[UAR_LIMIT_ID_BYTES + 8];
	uar_str surface = run_surface(a, name);
	uar_err e = a2ui_create(a, surface, false);

	if (e)
		return e;
	open_data(a, "/");
	e = a2ui_put_model(a, "value");
	if (!e)
		e = a2ui_close(a);
	if (e)
		return e;
	a2ui_open_components(a, surface);
	a2ui_put_root(a);
	for (const struct a2ui_section *s = a->sections; s && !e; s = s->next)
		e = a2ui_put_section(a, s);
	return e ? e : a2ui_close_components(a);
}

static uar_err on_started(struct a2ui *a, change_t *c)
{
	(void)c;
	a->begun = true;
	return show_surface(a);
}

static uar_err on_superseded(struct a2ui *a, change_t *c)
{
	struct a2ui_section **at = &a->sections;
	char surface[UAR_LIMIT_ID_BYTES + 8];

	(void)c;
	while (*at) {
		const struct uar_view_message *m = a->view.first;

		while (m && m != (*at)->message)
			m = m->next;
		if ((*at)->kind == A2UI_TEXT && !m)
			*at = (*at)->next;
		else
			at = &(*at)->next;
	}
	a2ui_open_components(a, run_surface(a, surface));
	a2ui_put_root(a);
	return a2ui_close_components(a);
}

static uar_err on_asked(struct a2ui *a, change_t *c)
{
	return a2ui_ask(a, c->action);
}

static uar_err on_answered(struct a2ui *a, change_t *c)
{
	uar_str surface = a2ui_action_surface(a->scratch, c->action);

	return surface.p ? a2ui_delete(a, surface) : UAR_ENOMEM;
}

static uar_err on_waiting(struct a2ui *a, change_t *c)
{
	(void)c;
	return set_status(a, "waiting for input");
}

static uar_err on_resumed(struct a2ui *a, change_t *c)
{
	(void)c;
	return set_status(a, "running");
}

/* Questions that are open go away with the run. */
static uar_err close_questions(struct a2ui *a)
{
	uar_err e = UAR_OK;

	for (const struct uar_view_action *x = a->view.actions; x && !e; x = x->next) {
		uar_str surface = a2ui_action_surface(a->scratch, x);

		e = surface.p ? a2ui_delete(a, surface) : UAR_ENOMEM;
	}
	return e;
}

static uar_err on_ended(struct a2ui *a, change_t *c)
{
	static const char *const words[] = { [UAR_VIEW_LIVE] = "running",
					     [UAR_VIEW_DONE] = "done",
					     [UAR_VIEW_CANCELLED] = "cancelled",
					     [UAR_VIEW_FAILED] = "failed" };
	struct a2ui_section *s = NULL;
	uar_err e = close_questions(a);

	(void)c;
	if (!e && a->view.end == UAR_VIEW_FAILED) {
		e = add_section(a, A2UI_FAILURE, NULL, &s);
		if (!e)
			e = put_text_at(a, "/error", a->view.end_message);
		if (!e)
			e = show_section(a, s);
	}
	a->out->closed = true;
	return e ? e : set_status(a, words[a->view.end]);
}

static uar_err (*const shown[UAR_VIEW_ENDED + 1])(struct a2ui *a, change_t *c) = {
	[UAR_VIEW_STARTED] = on_started,
	[UAR_VIEW_MESSAGE_STARTED] = on_message_started,
	[UAR_VIEW_MESSAGE_GREW] = on_message_grew,
	[UAR_VIEW_MESSAGE_ENDED] = on_message_ended,
	[UAR_VIEW_CALL_STARTED] = on_call,
	[UAR_VIEW_CALL_COMPLETE] = on_call,
	[UAR_VIEW_CALL_ENDED] = on_call,
	[UAR_VIEW_ACTIVITY_CHANGED] = on_activity,
	[UAR_VIEW_CITED] = on_cited,
	[UAR_VIEW_SUPERSEDED] = on_superseded,
	[UAR_VIEW_ASKED] = on_asked,
	[UAR_VIEW_ANSWERED] = on_answered,
	[UAR_VIEW_WAITING] = on_waiting,
	[UAR_VIEW_RESUMED] = on_resumed,
	[UAR_VIEW_ENDED] = on_ended,
};

static uar_err on_change(void *ctx, change_t *c)
{
	return shown[c->kind] ? shown[c->kind](ctx, c) : UAR_OK; /* the rest has no place */
}

/* --- the dialect ---------------------------------------------------------------------------- */

static uar_err begin(void *state, const struct uar_dialect_options *o)
{
	struct a2ui *a = state;

	*a = (struct a2ui){ .o = *o, .status = "running" };
	uar_view_init(&a->view);
	return UAR_OK;
}

static void end(void *state)
{
	struct a2ui *a = state;

	uar_view_fini(&a->view);
}

static uar_err encode(void *state, const struct uar_event *ev, struct uar_arena *scratch,
		      struct uar_frames *out)
{
	struct a2ui *a = state;
	uar_err e;

	a->out = out;
	a->scratch = scratch;
	a->time_us = ev->time_us;
	e = uar_view_apply(&a->view, ev, scratch, on_change, a);
	a->out = NULL;
	a->scratch = NULL;
	a->rejoined = false;
	return e;
}

static uar_err show_again(struct a2ui *a)
{
	uar_err e = show_surface(a);

	for (const struct uar_view_message *m = a->view.first; m && !e; m = m->next)
		if (m->kind == UAR_VIEW_ACTIVITY) {
			e = show_made(a, m, true);
			e = e == UAR_ESKIP ? UAR_OK : e;
		}
	for (const struct uar_view_action *x = a->view.actions; x && !e; x = x->next)
		e = a2ui_ask(a, x);
	return e;
}

/* A reader may have the surfaces already, and may not: they are deleted first. */
static uar_err join(void *state, struct uar_frames *out)
{
	struct uar_arena arena;
	struct a2ui *a = state;
	uar_err e;

	a->rejoined = true;
	if (!a->begun)
		return UAR_OK;
	if (a->view.cut)
		return UAR_ETOOBIG;
	uar_arena_init(&arena, 0);
	a->out = out;
	a->scratch = &arena;
	e = show_again(a);
	if (a->view.open)
		a->shown = a->view.open->text.n;
	a->out = NULL;
	a->scratch = NULL;
	uar_arena_fini(&arena);
	return e;
}

/* The protocol has no word for it. */
static uar_err leave(void *state, struct uar_frames *out)
{
	(void)state;
	(void)out;
	return UAR_OK;
}

const struct uar_dialect uar_a2ui = {
	.name = "a2ui",
	.state_size = sizeof(struct a2ui),
	.begin = begin,
	.encode = encode,
	.join = join,
	.leave = leave,
	.end = end,
};
