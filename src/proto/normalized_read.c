/* normalized_read.c - the way back from normalized variants to event classes. */
#include "proto/normalized_read.h"

#include "json/jw.h"
#include "json/limits.h"

#define MESSAGE "message" /* the id of all text: a recording has none */

struct reading {
	const struct uar_json *data;
	struct uar_arena *arena;
	struct uar_event *out;
	size_t count;
	uint64_t number;
	int64_t time_us;
	struct uar_buf payload;
	struct uar_jw w;
};

static const struct uar_json *get(const struct reading *r, const char *key)
{
	return uar_json_get(r->data, uar_str_c(key));
}

static uar_str text(const struct reading *r, const char *key)
{
	return uar_json_str(get(r, key), UAR_STR(""));
}

static void open_payload(struct reading *r)
{
	uar_buf_clear(&r->payload);
	r->w = uar_jw_begin(&r->payload);
	uar_jw_obj(&r->w, NULL);
}

static void put_tree(struct reading *r, const char *key, const char *from)
{
	if (get(r, from))
		uar_jw_tree(&r->w, key, get(r, from));
}

static void put_text(struct reading *r, const char *key, const char *from)
{
	uar_jw_str(&r->w, key, text(r, from));
}

static uar_err close_event(struct reading *r, enum uar_event_class cls)
{
	struct uar_event *ev = &r->out[r->count++];
	uar_err e;

	uar_jw_close(&r->w);
	e = uar_jw_end(&r->w);
	*ev = (struct uar_event){ .cls = cls, .run_sequence = r->number, .time_us = r->time_us };
	ev->payload = uar_arena_str(r->arena, uar_buf_str(&r->payload));
	ev->ids[UAR_ID_RUN] = ev->ids[UAR_ID_THREAD] = ev->ids[UAR_ID_SESSION] = text(r, "run_id");
	ev->ids[UAR_ID_TOOL_CALL] = text(r, "tool_call_id");
	ev->ids[UAR_ID_ARTIFACT] = text(r, "artifact_id");
	ev->ids[UAR_ID_ACTION] = text(r, "form_id");
	return e ? e : ev->payload.p ? UAR_OK : UAR_ENOMEM;
}

/* --- one variant each ----------------------------------------------------------------------- */

static uar_err read_start(struct reading *r)
{
	open_payload(r);
	put_text(r, "agent_id", "agent_id");
	return close_event(r, UAR_EV_TASK_QUEUED);
}

static uar_err read_text(struct reading *r, enum uar_event_class cls)
{
	open_payload(r);
	uar_jw_cstr(&r->w, "message_id", MESSAGE);
	put_text(r, "text", "text_delta");
	return close_event(r, cls);
}

static uar_err read_chat(struct reading *r)
{
	return read_text(r, UAR_EV_MODEL_DELTA);
}

static uar_err read_reasoning(struct reading *r)
{
	return read_text(r, UAR_EV_REASONING_DELTA);
}

static uar_err read_citation(struct reading *r)
{
	open_payload(r);
	put_tree(r, "citations", "sources");
	return close_event(r, UAR_EV_CONTEXT_RESOLVED);
}

static uar_err read_memory(struct reading *r)
{
	open_payload(r);
	put_tree(r, "recalled", "items");
	return close_event(r, UAR_EV_CONTEXT_RESOLVED);
}

static uar_err read_tool_start(struct reading *r)
{
	uar_err e;

	open_payload(r);
	put_text(r, "tool_name", "tool");
	e = close_event(r, UAR_EV_TOOL_STARTED);
	if (e)
		return e;
	open_payload(r);
	put_text(r, "tool_name", "tool");
	put_tree(r, "args", "input");
	uar_jw_bool(&r->w, "final", true);
	return close_event(r, UAR_EV_TOOL_ARGS);
}

static uar_err read_tool_delta(struct reading *r)
{
	open_payload(r);
	put_tree(r, "partial", "delta");
	return close_event(r, UAR_EV_TOOL_PROGRESS);
}

static uar_err read_tool_end(struct reading *r)
{
	bool ok = uar_json_bool(get(r, "ok"), true);

	open_payload(r);
	put_tree(r, "preview", "output");
	return close_event(r, ok ? UAR_EV_TOOL_RESULT : UAR_EV_TOOL_FAILED);
}

static uar_err read_artifact(struct reading *r)
{
	const struct uar_json *whole = r->data;
	uar_err e;

	r->data = get(r, "artifact");
	open_payload(r);
	put_text(r, "artifact_type", "artifact_type");
	put_text(r, "title", "title");
	put_text(r, "preview", "content");
	put_tree(r, "language", "language");
	put_tree(r, "metadata", "metadata");
	e = close_event(r, UAR_EV_ARTIFACT_CHANGED);
	r->data = whole;
	return e;
}

static uar_err read_artifact_error(struct reading *r)
{
	open_payload(r);
	uar_jw_cstr(&r->w, "code", "ARTIFACT_PREVIEW_ERROR");
	put_text(r, "message", "message");
	put_tree(r, "details", "details");
	return close_event(r, UAR_EV_RUNTIME_WARNING);
}

static uar_err read_form(struct reading *r)
{
	open_payload(r);
	uar_jw_cstr(&r->w, "action_type", "form");
	put_text(r, "prompt", "title");
	put_tree(r, "schema", "schema");
	return close_event(r, UAR_EV_ACTION_REQUIRED);
}

/* Other notes concern the run that was recorded. */
static uar_err read_meta(struct reading *r)
{
	const struct uar_json *metadata = get(r, "metadata");
	const struct uar_json *bytes = uar_json_get(metadata, UAR_STR("superseded_bytes"));

	if (!bytes)
		return UAR_OK;
	open_payload(r);
	uar_jw_obj(&r->w, "metadata");
	uar_jw_cstr(&r->w, "superseded_message_id", MESSAGE);
	uar_jw_tree(&r->w, "superseded_bytes", bytes);
	uar_jw_close(&r->w);
	return close_event(r, UAR_EV_RUN_STATUS);
}

static uar_err read_done(struct reading *r)
{
	open_payload(r);
	put_tree(r, "finish_reason", "finish_reason");
	return close_event(r, UAR_EV_TASK_ATTEMPT_COMPLETED);
}

static uar_err read_error(struct reading *r)
{
	open_payload(r);
	uar_jw_cstr(&r->w, "status", "failed");
	put_text(r, "message", "message");
	uar_jw_obj(&r->w, "error");
	put_text(r, "code", "code");
	uar_jw_close(&r->w);
	return close_event(r, UAR_EV_TASK_ATTEMPT_FAILED);
}

static const struct {
	const char *type;
	uar_err (*read)(struct reading *r);
} variants[] = {
	{ "RunStart", read_start },
	{ "ChatDelta", read_chat },
	{ "ReasoningDelta", read_reasoning },
	{ "Citation", read_citation },
	{ "MemoryRecall", read_memory },
	{ "ToolStart", read_tool_start },
	{ "ToolDelta", read_tool_delta },
	{ "ToolEnd", read_tool_end },
	{ "Artifact", read_artifact },
	{ "artifact.error", read_artifact_error },
	{ "ui.form.request", read_form },
	{ "meta", read_meta },
	{ "RunDone", read_done },
	{ "Error", read_error },
};

uar_err uar_normalized_read(const struct uar_json *line, uint64_t number, struct uar_arena *arena,
			    struct uar_event out[UAR_NORMALIZED_EVENTS], size_t *out_count)
{
	uar_str type = uar_json_text(line, "type");
	struct reading r = { .data = uar_json_get(line, UAR_STR("data")),
			     .arena = arena,
			     .out = out,
			     .number = number,
			     .payload = uar_buf_make(UAR_LIMIT_JSON_BYTES * 2) };
	uar_err e = UAR_OK;

	r.time_us = (1 + uar_json_int(uar_json_get(line, UAR_STR("at_ms")), 0)) * 1000;
	for (size_t i = 0; i < ARRAY_LEN(variants) && !r.count && !e; i++)
		if (uar_str_is(type, variants[i].type))
			e = variants[i].read(&r);
	uar_buf_fini(&r.payload);
	*out_count = r.count;
	return e;
}
