/* view_state.c - the state that a run shares with its client: what the client sent with its
 * message, and what the model merged into it with the tool state.merge.
 *
 * A merge (RFC 7386) always applies, whatever the state is; readers are told of it as a JSON
 * Patch (RFC 6902) of what has changed. */
#include "proto/view_int.h"

#include "event/client.h"
#include "event/sizes.h"
#include "proto/limits.h"

/* --- merging --------------------------------------------------------------------------------- */

static void write_merged(struct uar_jw *w, const struct uar_json *from,
			 const struct uar_json *change);

/* A value of a change that takes the place of another one, or of none. */
static void write_new(struct uar_jw *w, const struct uar_json *change)
{
	write_merged(w, NULL, change);
}

static const struct uar_json *member_of(const struct uar_json *j, uar_str key)
{
	return j && j->kind == UAR_JSON_OBJECT ? uar_json_get(j, key) : NULL;
}

static void write_merged(struct uar_jw *w, const struct uar_json *from,
			 const struct uar_json *change)
{
	if (change->kind != UAR_JSON_OBJECT) {
		uar_jw_tree(w, NULL, change);
		return;
	}
	uar_jw_obj(w, NULL);
	for (const struct uar_json *m =
		     uar_json_first(from && from->kind == UAR_JSON_OBJECT ? from : NULL);
	     m; m = m->next) {
		const struct uar_json *c = member_of(change, m->key);

		if (c && c->kind == UAR_JSON_NULL)
			continue;
		uar_jw_key(w, m->key);
		if (c)
			write_merged(w, m, c);
		else
			uar_jw_tree(w, NULL, m);
	}
	for (const struct uar_json *c = uar_json_first(change); c; c = c->next) {
		if (c->kind == UAR_JSON_NULL || member_of(from, c->key))
			continue;
		uar_jw_key(w, c->key);
		write_new(w, c);
	}
	uar_jw_close(w);
}

/* --- the same as a patch -------------------------------------------------------------------- */

static void add_step(struct uar_buf *path, uar_str key)
{
	uar_buf_add_char(path, '/');
	for (size_t i = 0; i < key.n; i++) {
		if (key.p[i] == '~')
			uar_buf_add_str(path, UAR_STR("~0"));
		else if (key.p[i] == '/')
			uar_buf_add_str(path, UAR_STR("~1"));
		else
			uar_buf_add_char(path, key.p[i]);
	}
}

static void put_operation(struct uar_jw *w, const char *op, const struct uar_buf *path,
			  const struct uar_json *value)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "op", op);
	uar_jw_str(w, "path", uar_buf_str(path));
	if (value) {
		uar_jw_key(w, UAR_STR("value"));
		write_new(w, value);
	}
	uar_jw_close(w);
}

static void put_operations(struct uar_jw *w, struct uar_buf *path, const struct uar_json *from,
			   const struct uar_json *change)
{
	for (const struct uar_json *c = uar_json_first(change); c; c = c->next) {
		const struct uar_json *old = member_of(from, c->key);
		size_t n = path->n;

		add_step(path, c->key);
		if (c->kind == UAR_JSON_NULL && old)
			put_operation(w, "remove", path, NULL);
		else if (c->kind == UAR_JSON_OBJECT && old && old->kind == UAR_JSON_OBJECT)
			put_operations(w, path, old, c);
		else if (c->kind != UAR_JSON_NULL && !(old && uar_json_equal(old, c)))
			put_operation(w, old ? "replace" : "add", path, c);
		path->n = n;
	}
}

/* --- the fold ------------------------------------------------------------------------------- */

uar_err uar_view_set_state(struct uar_view *v, uar_str json)
{
	return view_set_text(v, &v->state, json);
}

/* Inputs that are longer than their event has room for are not seen here. */
uar_err view_fold_client_state(struct view_fold *f)
{
	const struct uar_json *part = uar_json_at(view_member(f, "input_parts"), 1);
	uar_str text = uar_json_text(part, "preview");
	const struct uar_json *inputs = NULL, *state;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	uar_err e = UAR_OK;

	if (!text.n || uar_json_parse(text, NULL, f->scratch, &inputs, NULL))
		return UAR_OK;
	state = uar_json_get(uar_json_get(inputs, UAR_STR(UAR_CLIENT_INPUT)), UAR_STR("state"));
	if (state) {
		uar_json_write(&b, state);
		e = b.err ? b.err : uar_view_set_state(f->v, uar_buf_str(&b));
	}
	uar_buf_fini(&b);
	return e;
}

static uar_err merge(struct view_fold *f, const struct uar_json *change)
{
	struct uar_buf merged = uar_buf_make(UAR_LIMIT_VIEW_TEXT);
	struct uar_buf patch = uar_buf_make(UAR_LIMIT_EVENT_BYTES * 2);
	struct uar_buf path = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	struct uar_jw w = uar_jw_begin(&merged), p = uar_jw_begin(&patch);
	const struct uar_json *from = NULL;
	bool whole = false;
	uar_err e = UAR_OK;

	if (f->v->state.n)
		e = uar_json_parse(uar_buf_str(&f->v->state), NULL, f->scratch, &from, NULL);
	if (!e) {
		write_merged(&w, from, change);
		e = uar_jw_end(&w);
	}
	if (!e) {
		uar_jw_arr(&p, NULL);
		put_operations(&p, &path, from, change);
		uar_jw_close(&p);
		e = uar_jw_end(&p);
		if (!e)
			e = path.err;
		whole = e == UAR_ETOOBIG; /* each operation repeats its path */
		if (whole)
			e = UAR_OK;
	}
	if (!e && (whole || patch.n > 2)) {
		struct uar_view_change told = { .kind = UAR_VIEW_STATE_CHANGED,
						.text = uar_buf_str(&patch),
						/* only an object can be patched by members */
						.first = whole || !from ||
							 from->kind != UAR_JSON_OBJECT };

		e = uar_view_set_state(f->v, uar_buf_str(&merged));
		if (!e)
			e = view_tell(f, told);
	}
	uar_buf_fini(&merged);
	uar_buf_fini(&patch);
	uar_buf_fini(&path);
	return e;
}

uar_err view_fold_merge(struct view_fold *f, const struct uar_view_call *c)
{
	const struct uar_json *args = NULL, *change;

	if (c->client || !uar_str_is(c->name, "state.merge") ||
	    uar_json_parse(uar_buf_str(&c->args), NULL, f->scratch, &args, NULL))
		return UAR_OK;
	change = uar_json_get(args, UAR_STR("changes"));
	return change && change->kind == UAR_JSON_OBJECT ? merge(f, change) : UAR_OK;
}
