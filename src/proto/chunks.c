/* chunks.c - the bare chunks of the AG-UI adapter: a short name and its data. */
#include "proto/agui.h"

#include "proto/normalized.h"
#include "event/sizes.h"

static const struct {
	const char *type, *name;
} names[] = {
	{ "RunStart", "run.start" },
	{ "ChatDelta", "chat.delta" },
	{ "ReasoningDelta", "thinking.delta" },
	{ "Citation", "citation" },
	{ "MemoryRecall", "memory" },
	{ "ToolStart", "tool.start" },
	{ "ToolDelta", "tool.delta" },
	{ "ToolEnd", "tool.end" },
	{ "Artifact", "artifact" },
	{ "artifact.error", "artifact.error" },
	{ "ui.form.request", "ui.form.request" },
	{ "RunDone", "run.done" },
	{ "Error", "error" },
};

static const char *chunk_name(uar_str type)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (uar_str_is(type, names[i].type))
			return names[i].name;
	return "meta";
}

/* The run is named by the stream; text is the `delta`; an artifact is the data itself. */
static void put_data(struct uar_jw *w, const struct uar_json *data)
{
	const struct uar_json *artifact = uar_json_get(data, UAR_STR("artifact"));

	if (artifact) {
		uar_jw_tree(w, NULL, artifact);
		return;
	}
	uar_jw_obj(w, NULL);
	for (const struct uar_json *m = data->count ? data->first : NULL; m; m = m->next) {
		if (uar_str_is(m->key, "run_id"))
			continue;
		uar_jw_key(w, uar_str_is(m->key, "text_delta") ? UAR_STR("delta") : m->key);
		uar_jw_tree(w, NULL, m);
	}
	uar_jw_close(w);
}

uar_err uar_chunk_encode(const struct uar_event *ev, uint64_t incarnation,
			 struct uar_arena *scratch, struct uar_buf *out)
{
	static const struct uar_normalized_options plain = { 0 };
	struct uar_buf text = uar_buf_make(UAR_LIMIT_EVENT_BYTES * 4);
	struct uar_frames f = { .out = out, .incarnation = incarnation };
	const struct uar_json *j = NULL;
	struct uar_jw w;
	uar_err e = uar_normalized_encode(ev, &plain, scratch, &text);

	if (!e)
		e = uar_json_parse(uar_buf_str(&text), NULL, scratch, &j, NULL);
	if (!e) {
		f.run_sequence = ev->run_sequence;
		uar_frame_open(&f, chunk_name(uar_json_text(j, "type")));
		w = uar_jw_begin(out);
		put_data(&w, uar_json_get(j, UAR_STR("data")));
		e = uar_frame_close(&f, &w);
	}
	uar_buf_fini(&text);
	return e;
}
