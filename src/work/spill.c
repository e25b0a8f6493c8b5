/* spill.c - which value of a recorded event may be long, and how it is put aside. */
#include "core/limits.h"
#include "engine/limits.h"
#include "work/limits.h"
#include "work/spill.h"

static const struct place {
	const char *type, *inside, *key; /* inside: a member of data; NULL: data itself */
} places[] = {
	{ "Artifact", "artifact", "content" },
	{ "ToolStart", NULL, "input" },
	{ "ToolDelta", NULL, "delta" },
	{ "ToolEnd", NULL, "output" },
};

static const struct place *place_of(const struct uar_json *event)
{
	uar_str type = uar_json_text(event, "type");

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (uar_str_is(type, places[i].type))
			return &places[i];
	return NULL;
}

uar_str rt_spill_beginning(uar_str s)
{
	return uar_jw_fitting(uar_str_utf8_prefix(s, UAR_LIMIT_PREVIEW_BYTES),
			      UAR_LIMIT_PREVIEW_WRITTEN);
}

uar_str rt_spill_end(uar_str s)
{
	size_t from = s.n > UAR_LIMIT_OUTPUT_HEAD ? s.n - UAR_LIMIT_OUTPUT_HEAD : 0;

	while (from < s.n && ((unsigned char)s.p[from] & 0xc0) == 0x80)
		from++;
	return uar_str_from(s, from);
}

const struct uar_json *rt_spill_of(const struct uar_json *event)
{
	const struct place *place = place_of(event);
	const struct uar_json *at = uar_json_get(event, UAR_STR("data")), *value;

	if (!place)
		return NULL;
	if (place->inside)
		at = uar_json_get(at, uar_str_c(place->inside));
	value = uar_json_get(at, uar_str_c(place->key));
	if (!value)
		return NULL;
	if (value->kind == UAR_JSON_STRING)
		return rt_spill_beginning(value->text).n < value->text.n ? value : NULL;
	return value->text.n > UAR_LIMIT_PREVIEW_WRITTEN ? value : NULL;
}

uar_err rt_spill_bytes(const struct uar_json *value, struct uar_buf *out)
{
	if (value->kind == UAR_JSON_STRING)
		uar_buf_add_str(out, value->text);
	else
		uar_json_write(out, value);
	return out->err;
}

/* The members of an object, the long one cut. */
static void copy_members(struct uar_jw *w, const struct uar_json *object,
			 const struct uar_json *value, uar_str beginning)
{
	for (const struct uar_json *m = object->first; m; m = m->next) {
		uar_jw_key(w, m->key);
		if (m == value)
			uar_jw_str(w, NULL, beginning);
		else
			uar_jw_tree(w, NULL, m);
	}
}

uar_err rt_spill_shorten(const struct uar_json *event, const struct uar_json *value, uar_str bytes,
			 struct uar_buf *out)
{
	const struct place *place = place_of(event);
	const struct uar_json *data = uar_json_get(event, UAR_STR("data"));
	uar_str beginning = rt_spill_beginning(bytes);
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "type", place->type);
	uar_jw_obj(&w, "data");
	if (place->inside) {
		uar_jw_obj(&w, place->inside);
		copy_members(&w, uar_json_get(data, uar_str_c(place->inside)), value, beginning);
		uar_jw_close(&w);
	} else {
		copy_members(&w, data, value, beginning);
	}
	uar_jw_close(&w);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

/* --- on its way -------------------------------------------------------------------------- */

struct spill {
	struct rt_op under_way;
	struct uar_blob_put put;
	struct uar_buf bytes, line;
	bool json;
	spill_done_fn *done; /* NULL: cancelled */
	void *ctx;
};

static void free_spill(struct spill *s)
{
	uar_buf_fini(&s->bytes);
	uar_buf_fini(&s->line);
	uar_free(s);
}

static void drop(struct rt_op *under_way)
{
	free_spill(UAR_OWNER(under_way, struct spill, under_way));
}

static void stored(struct uar_blob_put *put)
{
	struct spill *s = UAR_OWNER(put, struct spill, put);
	struct uar_replay r = { .blob = uar_str_c(put->sha256),
				.tail = rt_spill_end(uar_buf_str(&s->bytes)),
				.blob_bytes = (int64_t)s->bytes.n,
				.blob_json = s->json };

	if (s->done)
		s->done(s->ctx, put->err, &r, uar_buf_str(&s->line));
	rt_op_end(&s->under_way);
	free_spill(s);
}

uar_err rt_spill_begin(struct uar_runtime *rt, const struct uar_json *event, spill_done_fn *done,
		       void *ctx, struct spill **out)
{
	const struct uar_json *value = rt_spill_of(event);
	struct spill *s = uar_zalloc(sizeof *s);
	uar_err e;

	if (!s)
		return UAR_ENOMEM;
	s->bytes = uar_buf_make(UAR_LIMIT_FIXTURE_BYTES);
	s->line = uar_buf_make(UAR_LIMIT_RUN_PENDING_BYTES);
	s->json = value->kind != UAR_JSON_STRING;
	s->done = done;
	s->ctx = ctx;
	e = rt_spill_bytes(value, &s->bytes);
	if (!e)
		e = rt_spill_shorten(event, value, uar_buf_str(&s->bytes), &s->line);
	if (!e) {
		s->put = (struct uar_blob_put){ .bytes = uar_buf_str(&s->bytes), .done = stored };
		e = rt_store(rt)->ops->blob_put(rt_store(rt), &s->put);
	}
	if (e) {
		free_spill(s);
		return e;
	}
	rt_op_begin(rt, &s->under_way, drop);
	*out = s;
	return UAR_OK;
}

void rt_spill_cancel(struct spill *s)
{
	if (s)
		s->done = NULL;
}
