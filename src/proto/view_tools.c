/* view_tools.c - tool calls, activities and actions in the fold of a run. */
#include "proto/view_int.h"
#include "event/sizes.h"
#include "proto/limits.h"

/* --- tool calls ----------------------------------------------------------------------------- */

static struct uar_view_call *find_call(const struct uar_view *v, uar_str id,
				       struct uar_view_message **out_message)
{
	for (struct uar_view_message *m = v->first; m; m = m->next)
		for (struct uar_view_call *c = m->calls; c; c = c->next)
			if (uar_str_eq(c->id, id)) {
				*out_message = m;
				return c;
			}
	return NULL;
}

/* The message that the next call belongs to: the text that the model wrote before it,
 * else one that is made for it. */
static struct uar_view_message *call_owner(struct view_fold *f, uar_str call_id)
{
	struct uar_view_message *m = f->v->parent;

	if (m)
		return m;
	m = view_make_message(f->v, UAR_VIEW_TEXT, call_id);
	if (!m)
		return NULL;
	m->bare = true;
	view_insert_message(f->v, NULL, m);
	return m;
}

/* The call of the event, which begins with it if it is not known yet. */
static uar_err begin_call(struct view_fold *f, uar_str id, struct uar_view_call **out)
{
	uar_str name = view_text(f, "tool_name");
	struct uar_view_message *m;
	struct uar_view_call **at, *c = find_call(f->v, id, &m);
	uar_err e;

	*out = c;
	if (c)
		return UAR_OK;
	e = view_close_message(f);
	m = e ? NULL : call_owner(f, id);
	c = m ? uar_arena_alloc(&f->v->arena, sizeof *c) : NULL;
	if (!c)
		return e ? e : UAR_ENOMEM;
	c->args = uar_buf_make(UAR_LIMIT_VIEW_TEXT);
	for (at = &m->calls; *at;)
		at = &(*at)->next;
	*at = *out = c;
	e = view_keep_str(f->v, id, &c->id);
	if (!e)
		e = view_keep_str(f->v, name.n ? name : UAR_STR("tool"), &c->name);
	if (e)
		return e;
	return view_tell(f, (struct uar_view_change){
				    .kind = UAR_VIEW_CALL_STARTED, .message = m, .call = c });
}

static uar_err add_args(struct view_fold *f, struct uar_view_call *c, uar_str text)
{
	uar_err e = text.n ? view_keep_text(f->v, &c->args, text) : UAR_OK;

	if (e || !text.n)
		return e;
	return view_tell(
		f, (struct uar_view_change){ .kind = UAR_VIEW_CALL_ARGS, .call = c, .text = text });
}

/* All arguments, unless pieces of them were told before. */
static uar_err view_complete_call(struct view_fold *f, struct uar_view_call *c,
				  const struct uar_json *args)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EVENT_BYTES * 2);
	uar_err e = UAR_OK;

	if (c->complete)
		return UAR_OK;
	if (!c->args.n) {
		if (args)
			uar_json_write(&b, args);
		else
			uar_buf_add_str(&b, UAR_STR("{}"));
		e = b.err ? b.err : add_args(f, c, uar_buf_str(&b));
	}
	uar_buf_fini(&b);
	c->complete = true;
	if (e)
		return e;
	return view_tell(f, (struct uar_view_change){ .kind = UAR_VIEW_CALL_COMPLETE, .call = c });
}

uar_err view_fold_tool_started(struct view_fold *f)
{
	struct uar_view_call *c;

	return begin_call(f, f->ev->ids[UAR_ID_TOOL_CALL], &c);
}

uar_err view_fold_tool_args(struct view_fold *f)
{
	struct uar_view_call *c = NULL;
	uar_err e = begin_call(f, f->ev->ids[UAR_ID_TOOL_CALL], &c);

	if (!e && !c->complete)
		e = add_args(f, c, view_text(f, "delta"));
	if (!e && uar_json_bool(view_member(f, "final"), false))
		e = view_complete_call(f, c, view_member(f, "args"));
	return e;
}

/* What a tool gave back, as text: a string as it is, anything else as JSON. */
static uar_err tell_output(struct view_fold *f, struct uar_view_message *m)
{
	const struct uar_json *j = view_member(f, "preview");
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EVENT_BYTES * 2);
	uar_err e;

	if (!j || j->kind == UAR_JSON_NULL)
		uar_buf_add_str(&b, m->error);
	else if (j->kind == UAR_JSON_STRING)
		uar_buf_add_str(&b, j->text);
	else
		uar_json_write(&b, j);
	e = b.err ? b.err : view_keep_text(f->v, &m->text, uar_buf_str(&b));
	if (!e)
		e = view_tell(f, (struct uar_view_change){ .kind = UAR_VIEW_CALL_ENDED,
							   .message = m,
							   .call = m->call,
							   .text = uar_buf_str(&b) });
	uar_buf_fini(&b);
	return e;
}

static uar_err put_failure(struct view_fold *f, struct uar_view_message *m)
{
	const struct uar_json *error = view_member(f, "error");
	uar_str message = view_text(f, "message");
	uar_err e;

	if (f->ev->cls != UAR_EV_TOOL_FAILED)
		return UAR_OK;
	e = view_keep_str(f->v, message.n ? message : UAR_STR("failed"), &m->error);
	if (e)
		return e;
	return view_keep_str(f->v, uar_json_text(error, "code"), &m->code);
}

uar_err view_fold_tool_end(struct view_fold *f)
{
	struct uar_view_call *c = NULL;
	struct uar_view_message *at = NULL, *m = NULL;
	uar_err e = begin_call(f, f->ev->ids[UAR_ID_TOOL_CALL], &c);
	uar_str id;

	if (!e)
		e = view_complete_call(f, c, NULL);
	if (e || c->ended)
		return e;
	c->ended = true;
	find_call(f->v, c->id, &at);
	while (at && at->next && at->next->kind == UAR_VIEW_RESULT)
		at = at->next;
	id = uar_arena_printf(f->scratch, "result:%.*s", UAR_FMT(c->id));
	m = id.p ? view_make_message(f->v, UAR_VIEW_RESULT, id) : NULL;
	if (!m)
		return UAR_ENOMEM;
	m->call = c;
	view_insert_message(f->v, at, m);
	e = put_failure(f, m);
	if (!e)
		e = tell_output(f, m);
	return e || m->error.n ? e : view_fold_merge(f, c);
}

uar_err view_close_calls(struct view_fold *f)
{
	uar_err e = UAR_OK;

	for (struct uar_view_message *m = f->v->first; m && !e; m = m->next)
		for (struct uar_view_call *c = m->calls; c && !e; c = c->next)
			e = view_complete_call(f, c, NULL);
	return e;
}

/* --- activities ----------------------------------------------------------------------------- */

/* Gives the activity of that id the content of `b`, which is freed. */
static uar_err set_activity(struct view_fold *f, uar_str id, const char *type, struct uar_buf *b)
{
	struct uar_view_message *m = id.p ? view_find_message(f->v, id) : NULL;
	struct uar_view_change change = { .kind = UAR_VIEW_ACTIVITY_CHANGED, .first = !m };
	uar_err e = b->err ? b->err : id.p ? UAR_OK : UAR_ENOMEM;

	if (!e && !m) {
		m = view_make_message(f->v, UAR_VIEW_ACTIVITY, id);
		e = m ? UAR_OK : UAR_ENOMEM;
		if (!e) {
			m->activity_type = uar_str_c(type);
			view_insert_message(f->v, NULL, m);
		}
	}
	if (!e)
		e = view_set_text(f->v, &m->text, uar_buf_str(b));
	if (!e) {
		change.message = m;
		change.text = uar_buf_str(b);
		e = view_tell(f, change);
	}
	uar_buf_fini(b);
	return e;
}

uar_err view_fold_tool_progress(struct view_fold *f)
{
	const struct uar_json *partial = view_member(f, "partial");
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EVENT_BYTES * 2);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e;

	partial = partial ? partial : view_member(f, "message");
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "tool_call_id", f->ev->ids[UAR_ID_TOOL_CALL]);
	if (partial)
		uar_jw_tree(&w, "delta", partial);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	b.err = b.err ? b.err : e;
	return set_activity(
		f, uar_arena_printf(f->scratch, "tool:%.*s", UAR_FMT(f->ev->ids[UAR_ID_TOOL_CALL])),
		"uar.tool", &b);
}

/* Where the whole content can be read when it is longer than an event. */
static void put_content_url(struct view_fold *f, struct uar_jw *w)
{
	const struct uar_json *refs = NULL;
	uar_str at;

	if (!f->ev->refs.n || uar_json_parse(f->ev->refs, NULL, f->scratch, &refs, NULL))
		return;
	at = uar_json_text(refs, "read_ref");
	if (!uar_str_starts(at, UAR_STR("blob://")))
		return;
	uar_jw_str(w, "url",
		   uar_arena_printf(f->scratch, "/api/runs/%.*s/blobs/%.*s",
				    UAR_FMT(f->ev->ids[UAR_ID_RUN]), UAR_FMT(uar_str_from(at, 7))));
	uar_jw_bool(w, "truncated", true);
}

/* An interface is in its event as a value; `whole` is that as text. */
static void write_artifact(struct view_fold *f, struct uar_jw *w, uar_str whole)
{
	static const char *const optional[] = { "language", "metadata", "mime", "version" };

	uar_jw_obj(w, NULL);
	uar_jw_str(w, "artifact_id", f->ev->ids[UAR_ID_ARTIFACT]);
	uar_jw_str(w, "artifact_type", view_text(f, "artifact_type"));
	uar_jw_str(w, "title", view_text(f, "title"));
	uar_jw_str(w, "content", whole.n ? whole : view_text(f, "preview"));
	for (size_t i = 0; i < ARRAY_LEN(optional); i++) {
		const struct uar_json *j = view_member(f, optional[i]);

		if (j && j->kind != UAR_JSON_NULL)
			uar_jw_tree(w, optional[i], j);
	}
	if (!whole.n)
		put_content_url(f, w);
	uar_jw_close(w);
}

uar_err view_fold_artifact(struct view_fold *f)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EVENT_BYTES * 2);
	struct uar_buf whole = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e;

	if (view_member(f, "interface"))
		uar_json_write(&whole, view_member(f, "interface"));
	write_artifact(f, &w, uar_buf_str(&whole));
	e = uar_jw_end(&w);
	b.err = b.err ? b.err : whole.err ? whole.err : e;
	uar_buf_fini(&whole);
	return set_activity(
		f,
		uar_arena_printf(f->scratch, "artifact:%.*s", UAR_FMT(f->ev->ids[UAR_ID_ARTIFACT])),
		"uar.artifact", &b);
}

static uar_err recall_memory(struct view_fold *f, const struct uar_json *items)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EVENT_BYTES * 2);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e;

	uar_jw_obj(&w, NULL);
	uar_jw_tree(&w, "items", items);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	b.err = b.err ? b.err : e;
	return set_activity(f,
			    uar_arena_printf(f->scratch, "memory:%llu",
					     (unsigned long long)f->ev->run_sequence),
			    "uar.memory", &b);
}

static uar_err cite_sources(struct view_fold *f, const struct uar_json *sources)
{
	for (const struct uar_json *j = sources->count ? sources->first : NULL; j; j = j->next) {
		if (f->v->cited.n)
			uar_buf_add_char(&f->v->cited, ',');
		uar_json_write(&f->v->cited, j);
	}
	if (f->v->cited.err)
		return f->v->cited.err;
	return view_tell(f, (struct uar_view_change){ .kind = UAR_VIEW_CITED, .json = sources });
}

uar_err view_fold_context(struct view_fold *f)
{
	const struct uar_json *sources = view_member(f, "citations");
	const struct uar_json *items = view_member(f, "recalled");
	uar_err e = UAR_OK;

	if (items && items->kind == UAR_JSON_ARRAY)
		e = recall_memory(f, items);
	if (!e && sources && sources->kind == UAR_JSON_ARRAY)
		e = cite_sources(f, sources);
	return e;
}

/* --- actions -------------------------------------------------------------------------------- */

/* A call that has not begun yet is named in the scope only. */
static uar_str asked_call(const struct view_fold *f)
{
	uar_str id = f->ev->ids[UAR_ID_TOOL_CALL];

	return id.n ? id : uar_json_text(view_member(f, "scope"), "tool_call_id");
}

static uar_err keep_action(struct view_fold *f, struct uar_view_action *a)
{
	struct {
		uar_str *to, from;
	} texts[] = { { &a->id, f->ev->ids[UAR_ID_ACTION] },
		      { &a->type, view_text(f, "action_type") },
		      { &a->prompt, view_text(f, "prompt") },
		      { &a->call_id, asked_call(f) },
		      { &a->expires_at, view_text(f, "timeout_at") } };
	const struct uar_json *schema = view_member(f, "schema");
	uar_err e = UAR_OK;

	for (size_t i = 0; i < ARRAY_LEN(texts) && !e; i++)
		e = view_keep_str(f->v, texts[i].from, texts[i].to);
	if (!e && schema && schema->kind == UAR_JSON_OBJECT)
		e = view_keep_json(f, schema, &a->schema);
	if (!e)
		e = view_keep_json(f, uar_json_get(view_member(f, "scope"), UAR_STR("input")),
				   &a->input);
	return e ? e : view_keep_json(f, view_member(f, "decisions"), &a->decisions);
}

uar_err view_fold_asked(struct view_fold *f)
{
	struct uar_view_action **at = &f->v->actions;
	struct uar_view_call *c = NULL;
	uar_str call_id = asked_call(f);
	uar_err e = view_close_message(f);

	if (!e && call_id.n)
		e = begin_call(f, call_id, &c);
	if (!e && c)
		e = view_complete_call(f, c,
				       uar_json_get(view_member(f, "scope"), UAR_STR("input")));
	if (e)
		return e;
	if (c)
		c->client = uar_str_is(view_text(f, "action_type"), "client_tool");
	while (*at)
		at = &(*at)->next;
	*at = uar_arena_alloc(&f->v->arena, sizeof **at);
	e = *at ? keep_action(f, *at) : UAR_ENOMEM;
	if (!e)
		e = view_tell(f, (struct uar_view_change){ .kind = UAR_VIEW_ASKED, .action = *at });
	if (e || !f->v->waiting)
		return e;
	return view_tell_kind(f, UAR_VIEW_WAITING);
}

uar_err view_fold_answered(struct view_fold *f)
{
	struct uar_view_action **at = &f->v->actions, *gone;

	while (*at && !uar_str_eq((*at)->id, f->ev->ids[UAR_ID_ACTION]))
		at = &(*at)->next;
	if (!*at)
		return UAR_OK;
	gone = *at;
	*at = gone->next;
	if (view_text(f, "continues_as").n) {
		uar_err e = view_keep_str(f->v, view_text(f, "continues_as"), &f->v->continued);

		if (e)
			return e;
	}
	return view_tell(f, (struct uar_view_change){ .kind = UAR_VIEW_ANSWERED, .action = gone });
}

/* A run that waits for a resource is not asked anything. */
uar_err view_fold_waiting(struct view_fold *f)
{
	uar_err e;

	if (!f->v->actions)
		return UAR_OK;
	e = view_close_message(f);
	f->v->waiting = true;
	return e ? e : view_tell_kind(f, UAR_VIEW_WAITING);
}

uar_err view_fold_resumed(struct view_fold *f)
{
	if (!f->v->waiting)
		return UAR_OK;
	f->v->waiting = false;
	return view_tell_kind(f, UAR_VIEW_RESUMED);
}
