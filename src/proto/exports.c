/* exports.c - artifact.changed of type export.* becomes an ExportItem. */
#include "proto/exports.h"

#include "base/base64.h"

static uar_str text(const struct uar_export_item *x, const char *key)
{
	return uar_json_str(uar_json_get(x->p, uar_str_c(key)), UAR_STR(""));
}

static uar_str blob_of(const struct uar_event *ev)
{
	static const char lead[] = "{\"read_ref\":\"blob://";
	uar_str refs = ev->refs;

	if (!uar_str_starts(refs, uar_str_c(lead)))
		return UAR_STR_NONE;
	refs = uar_str_from(refs, sizeof lead - 1);
	return uar_str_n(refs.p, uar_str_find(refs, '"'));
}

uar_err uar_export_item_read(const struct uar_event *ev, struct uar_arena *arena,
			     struct uar_export_item *out)
{
	static const char lead[] = "export.";
	struct uar_export_item x = { .ev = ev };
	uar_str type;
	uar_err e;

	if (ev->cls != UAR_EV_ARTIFACT_CHANGED)
		return UAR_ESKIP;
	e = uar_event_payload(ev, arena, &x.p, NULL);
	if (e)
		return e;
	type = text(&x, "artifact_type");
	if (!uar_str_starts(type, uar_str_c(lead)))
		return UAR_ESKIP;
	x.type = uar_str_from(type, sizeof lead - 1);
	x.content = text(&x, "preview");
	x.blob = blob_of(ev);
	x.result = uar_str_is(text(&x, "role"), "result");
	x.upload = uar_str_is(text(&x, "role"), "upload") && x.blob.n;
	*out = x;
	return UAR_OK;
}

static void put_optional(struct uar_jw *w, const char *key, uar_str s)
{
	if (s.n)
		uar_jw_str(w, key, s);
	else
		uar_jw_null(w, key);
}

static void put_metadata(struct uar_jw *w, const struct uar_export_item *x)
{
	const struct uar_json *metadata = uar_json_get(x->p, UAR_STR("metadata"));
	uar_str trace = x->ev->ids[UAR_ID_TRACE];

	uar_jw_obj(w, "metadata");
	for (const struct uar_json *m = metadata ? metadata->first : NULL; m; m = m->next) {
		if (trace.n && uar_str_is(m->key, "trace_id"))
			continue;
		uar_jw_key(w, m->key);
		uar_jw_tree(w, NULL, m);
	}
	if (trace.n)
		uar_jw_str(w, "trace_id", trace);
	uar_jw_close(w);
}

static void put_head(struct uar_jw *w, const struct uar_export_item *x)
{
	uar_str category = text(x, "category");

	uar_jw_str(w, "export_item_id", x->ev->ids[UAR_ID_ARTIFACT]);
	uar_jw_str(w, "run_id", x->ev->ids[UAR_ID_RUN]);
	uar_jw_str(w, "type", x->type);
	uar_jw_seconds(w, "created_at", x->ev->time_us);
	uar_jw_str(w, "category", category.n ? category : UAR_STR("user"));
	put_optional(w, "label", text(x, "label"));
	put_optional(w, "description", text(x, "description"));
	put_optional(w, "mime", text(x, "mime"));
	uar_jw_int(w, "bytes", uar_json_int(uar_json_get(x->p, UAR_STR("bytes")), 0));
	put_metadata(w, x);
}

void uar_export_item_notice(struct uar_jw *w, const char *key, const struct uar_export_item *x)
{
	uar_jw_obj(w, key);
	put_head(w, x);
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
	uar_str content = x->blob.n ? bytes : x->content;

	uar_jw_obj(w, key);
	put_head(w, x);
	uar_jw_str(w, "sha256", text(x, "sha256"));
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
