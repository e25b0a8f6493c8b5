/* exports.c - artifact.changed of type export.* becomes an ExportItem. */
#include "proto/exports.h"

#include "base/base64.h"
#include "base/sha256.h"
#include "event/limits.h"
#include "proto/limits.h"

static uar_str text(const struct uar_export_item *x, const char *key)
{
	return uar_json_text(x->p, key);
}

void uar_answer_text_init(struct uar_answer_text *a)
{
	*a = (struct uar_answer_text){ .text = uar_buf_make(UAR_LIMIT_ANSWER_BYTES) };
}

void uar_answer_text_fini(struct uar_answer_text *a)
{
	uar_buf_fini(&a->text);
}

/* A call that was made again has another message: what came before is void. */
uar_err uar_answer_text_feed(struct uar_answer_text *a, const struct uar_event *ev,
			     struct uar_arena *scratch)
{
	const struct uar_json *p;
	uar_str id, delta;
	uar_err e;

	if (ev->cls != UAR_EV_MODEL_DELTA)
		return UAR_OK;
	e = uar_event_payload(ev, scratch, &p, NULL);
	if (e)
		return e;
	id = uar_json_text(p, "message_id");
	delta = uar_json_text(p, "text");
	if (!uar_str_is(id, a->message_id)) {
		snprintf(a->message_id, sizeof a->message_id, "%.*s", UAR_FMT(id));
		uar_buf_clear(&a->text);
		a->cut = false;
	}
	if (!a->cut && a->text.n + delta.n > UAR_LIMIT_ANSWER_BYTES) {
		delta = uar_str_utf8_prefix(delta, UAR_LIMIT_ANSWER_BYTES - a->text.n);
		uar_buf_add_str(&a->text, delta);
		a->cut = true;
	} else if (!a->cut) {
		uar_buf_add_str(&a->text, delta);
	}
	return a->text.err;
}

/* The end of an agent's run stands for what it said. */
static uar_err read_answer(const struct uar_event *ev, struct uar_arena *arena,
			   struct uar_export_item *out)
{
	struct uar_export_item x = { .ev = ev, .type = UAR_STR("text"), .answer = true };
	const struct uar_json *end;
	uar_err e = uar_event_payload(ev, arena, &end, NULL);

	if (e)
		return e;
	x.p = uar_json_get(end, UAR_STR("answer"));
	x.id = uar_json_text(x.p, "message_id");
	if (!x.id.n)
		return UAR_ESKIP;
	*out = x;
	return UAR_OK;
}

/* Of others with an address the blob is that address. */
bool uar_export_is_served(const struct uar_json *payload)
{
	uar_str role = uar_json_text(payload, "role");
	uar_str type = uar_json_text(payload, "artifact_type");

	return uar_str_is(role, "upload") ||
	       (uar_str_is(role, "result") && uar_str_is(type, "export.binary_url"));
}

uar_err uar_export_item_read(const struct uar_event *ev, struct uar_arena *arena,
			     struct uar_export_item *out)
{
	static const char lead[] = "export.";
	struct uar_export_item x = { .ev = ev };
	uar_str type;
	uar_err e;

	if (ev->cls == UAR_EV_TASK_ATTEMPT_COMPLETED)
		return read_answer(ev, arena, out);
	if (ev->cls != UAR_EV_ARTIFACT_CHANGED)
		return UAR_ESKIP;
	x.id = ev->ids[UAR_ID_ARTIFACT];
	e = uar_event_payload(ev, arena, &x.p, NULL);
	if (e)
		return e;
	type = text(&x, "artifact_type");
	if (!uar_str_starts(type, uar_str_c(lead)))
		return UAR_ESKIP;
	x.type = uar_str_from(type, sizeof lead - 1);
	x.content = text(&x, "preview");
	e = uar_event_blob(ev, "read_ref", arena, &x.blob);
	if (e)
		return e;
	x.blob_id = text(&x, "blob_id");
	x.result = uar_str_is(text(&x, "role"), "result");
	x.upload = x.blob.n && uar_export_is_served(x.p);
	*out = x;
	return UAR_OK;
}

static int64_t size_of(const struct uar_export_item *x)
{
	return uar_json_int(uar_json_get(x->p, UAR_STR("bytes")), 0);
}

static void put_metadata(struct uar_jw *w, const struct uar_export_item *x)
{
	const struct uar_json *metadata = uar_json_get(x->p, UAR_STR("metadata"));
	uar_str trace = x->ev->ids[UAR_ID_TRACE];

	if (!trace.n)
		trace = text(x, "trace_id");
	uar_jw_obj(w, "metadata");
	for (const struct uar_json *m = metadata ? metadata->first : NULL; m; m = m->next) {
		if (trace.n && uar_str_is(m->key, "trace_id"))
			continue;
		uar_jw_key(w, m->key);
		uar_jw_tree(w, NULL, m);
	}
	if (trace.n)
		uar_jw_str(w, "trace_id", trace);
	if (x->answer && size_of(x) > UAR_LIMIT_ANSWER_BYTES) {
		uar_jw_bool(w, "truncated", true);
		uar_jw_int(w, "total_bytes", size_of(x));
	}
	uar_jw_close(w);
}

/* `bytes`: of the content that it has here. */
static void put_head(struct uar_jw *w, const struct uar_export_item *x, int64_t bytes)
{
	uar_str category = text(x, "category");

	uar_jw_str(w, "export_item_id", x->id);
	uar_jw_str(w, "run_id", x->ev->ids[UAR_ID_RUN]);
	uar_jw_str(w, "type", x->type);
	uar_jw_seconds(w, "created_at", x->ev->time_us);
	uar_jw_str(w, "category", category.n ? category : UAR_STR("user"));
	uar_jw_str_or_null(w, "label", x->answer ? UAR_STR("answer") : text(x, "label"));
	uar_jw_str_or_null(w, "description", text(x, "description"));
	uar_jw_str_or_null(w, "mime", x->answer ? UAR_STR("text/plain") : text(x, "mime"));
	uar_jw_int(w, "bytes", bytes);
	put_metadata(w, x);
}

void uar_export_item_notice(struct uar_jw *w, const char *key, const struct uar_export_item *x)
{
	int64_t bytes = size_of(x);

	if (x->answer && bytes > UAR_LIMIT_ANSWER_BYTES)
		bytes = UAR_LIMIT_ANSWER_BYTES;
	uar_jw_obj(w, key);
	put_head(w, x, bytes);
	uar_jw_close(w);
}

static void put_binary(struct uar_jw *w, uar_str bytes)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EXPORT_BYTES * 2);

	uar_base64_encode(&b, bytes);
	uar_jw_str(w, "binary", uar_buf_str(&b));
	uar_buf_fini(&b);
}

void uar_export_item_url(struct uar_jw *w, const char *key, const struct uar_event *ev)
{
	struct uar_buf b = uar_buf_make(1024);

	uar_buf_printf(&b, "/runs/%.*s/export/%.*s/content", UAR_FMT(ev->ids[UAR_ID_RUN]),
		       UAR_FMT(ev->ids[UAR_ID_ARTIFACT]));
	uar_jw_str(w, key, uar_buf_str(&b));
	uar_buf_fini(&b);
}

void uar_export_item_write(struct uar_jw *w, const char *key, const struct uar_export_item *x,
			   uar_str bytes)
{
	static const char *const plain[] = { "text", "url", "binary_url" };
	uar_str content = x->blob.n || x->answer ? bytes : x->content;
	char sha256[UAR_SHA256_TEXT + 1];

	uar_jw_obj(w, key);
	put_head(w, x, x->answer ? (int64_t)content.n : size_of(x));
	if (x->answer)
		uar_sha256_hex(content, sha256);
	uar_jw_str(w, "sha256", x->answer ? uar_str_c(sha256) : text(x, "sha256"));
	if (x->upload)
		uar_export_item_url(w, "binary_url", x->ev);
	for (size_t i = 0; i < ARRAY_LEN(plain) && !x->upload; i++)
		if (uar_str_is(x->type, plain[i]))
			uar_jw_str(w, plain[i], content);
	if (uar_str_is(x->type, "json"))
		uar_jw_raw(w, "json", content.n ? content : UAR_STR("null"));
	else if (uar_str_is(x->type, "binary") && x->blob.n)
		put_binary(w, bytes);
	else if (uar_str_is(x->type, "binary"))
		uar_jw_str(w, "binary", content);
	uar_jw_close(w);
}
