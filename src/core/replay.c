/* replay.c - one recorded normalized event becomes the log facts it stands for.
 *
 * The inverse of proto/normalized: a fixture that runs through here and is
 * shown again gives the events it was made of. */
#include "base/sha256.h"
#include "core/emit.h"

static uar_str field(const struct uar_json *data, const char *key, uar_str fallback)
{
	return uar_json_str(uar_json_get(data, uar_str_c(key)), fallback);
}

/* The long value of the line is not in it but in a blob. */
static bool is_spilled(const struct emit *e)
{
	return e->replay->blob.n > 0;
}

static void refer(struct emit *e, const char *ref)
{
	uar_emit_refer(e, ref, e->replay->blob);
}

/* Says what became of it, before the fact that refers to it. */
static void put_aside(struct emit *e, const char *kind, uar_str id, const struct uar_json *kept)
{
	const struct uar_replay *p = e->replay;

	if (is_spilled(e))
		uar_core_spilled(e,
				 &(struct spilled){ .owner = kind,
						    .id = id,
						    .media_type = p->blob_json ? "application/json"
									       : "text/plain",
						    .kept = uar_json_str(kept, UAR_STR("")),
						    .tail = p->tail,
						    .blob = p->blob,
						    .bytes = p->blob_bytes });
}

static void replay_nothing(struct emit *e, const struct uar_json *data)
{
	(void)e, (void)data;
}

static void replay_chat(struct emit *e, const struct uar_json *data)
{
	uar_core_delta(e, UAR_EV_MODEL_DELTA, field(data, "text_delta", UAR_STR("")));
}

static void replay_reasoning(struct emit *e, const struct uar_json *data)
{
	uar_core_delta(e, UAR_EV_REASONING_DELTA, field(data, "text_delta", UAR_STR("")));
}

/* context.resolved with the one list that the event brings. */
static void context(struct emit *e, const char *key, const struct uar_json *list)
{
	static const char *const empty[] = { "items", "omissions", "missing" };
	struct uar_jw *w;

	if (!list) {
		e->err = uar_error_set(e->error, UAR_EINVALID, "line %lld has no list of %s",
				       (long long)e->line, key);
		return;
	}
	w = uar_emit_begin(e);
	for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
		uar_jw_arr(w, empty[i]);
		uar_jw_close(w);
	}
	uar_jw_obj(w, "budget");
	uar_jw_int(w, "max_tokens", 0);
	uar_jw_int(w, "used_tokens", 0);
	uar_jw_close(w);
	uar_jw_arr(w, "selected_skills");
	uar_jw_close(w);
	uar_jw_arr(w, "prompt_sections");
	uar_jw_close(w);
	uar_jw_tree(w, key, list);
	uar_emit(e, UAR_EV_CONTEXT_RESOLVED, EMIT_RUN);
}

static void replay_citation(struct emit *e, const struct uar_json *data)
{
	context(e, "citations", uar_json_get(data, UAR_STR("sources")));
}

static void replay_memory(struct emit *e, const struct uar_json *data)
{
	context(e, "recalled", uar_json_get(data, UAR_STR("items")));
}

static uar_str call_id(const struct uar_json *data)
{
	return field(data, "tool_call_id", UAR_STR("call"));
}

/* The call a line goes on with; a recording that never started it is refused. */
static const struct uar_open_tool *open_tool(struct emit *e, const struct uar_json *data)
{
	const struct uar_open_tool *tool = uar_core_open_tool(e, call_id(data));

	if (!tool)
		e->err = uar_error_set(e->error, UAR_EINVALID,
				       "line %lld: no tool call %.*s is open", (long long)e->line,
				       UAR_FMT(call_id(data)));
	return tool;
}

static bool may_start(struct emit *e, const struct uar_json *data)
{
	if (!uar_core_open_tool(e, call_id(data)) &&
	    uar_run_rare(e->r)->tools.open_count < UAR_OPEN_TOOLS)
		return true;
	e->err = uar_error_set(e->error, UAR_EINVALID,
			       "line %lld: tool call %.*s is open already, or %d others are",
			       (long long)e->line, UAR_FMT(call_id(data)), UAR_OPEN_TOOLS);
	return false;
}

static void tool_started(struct emit *e, const struct uar_json *data, uar_str tool)
{
	const struct uar_json *input = uar_json_get(data, UAR_STR("input"));
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_str(w, "tool_id", tool);
	uar_jw_str(w, "tool_name", tool);
	uar_jw_cstr(w, "tool_version", "fixture");
	uar_jw_cstr(w, "transport", "internal");
	uar_jw_cstr(w, "environment_id", "fixture");
	uar_jw_int(w, "call_index", uar_run_rare(e->r)->tools.calls);
	if (input && input->kind == UAR_JSON_OBJECT) {
		uar_jw_tree(w, "safe_args", input);
	} else {
		uar_jw_obj(w, "safe_args");
		uar_jw_close(w);
	}
	uar_jw_cstr(w, "policy", "allowed");
	uar_jw_bool(w, "is_read_only", true);
	uar_jw_bool(w, "is_destructive", false);
	uar_jw_cstr(w, "status", "running");
	if (is_spilled(e))
		refer(e, "args_ref");
	uar_emit_name(e, UAR_ID_TOOL_CALL, call_id(data));
	uar_emit_name(e, UAR_ID_STEP, uar_emit_id(e));
	uar_emit(e, UAR_EV_TOOL_STARTED, EMIT_RUN);
}

static void replay_tool_start(struct emit *e, const struct uar_json *data)
{
	const struct uar_json *input = uar_json_get(data, UAR_STR("input"));
	uar_str name = field(data, "tool", UAR_STR("tool"));
	const struct uar_open_tool *tool;
	struct uar_jw *w;

	if (!may_start(e, data))
		return;
	put_aside(e, "tool", call_id(data), input);
	tool_started(e, data, name);
	tool = e->err ? NULL : open_tool(e, data);
	if (!tool)
		return;
	w = uar_emit_begin(e);
	uar_jw_int(w, "index", 0);
	if (input)
		uar_jw_tree(w, "args", input);
	uar_jw_str(w, "tool_name", name);
	uar_jw_bool(w, "final", true);
	uar_jw_bool(w, "valid", true);
	if (is_spilled(e))
		refer(e, "args_ref");
	uar_core_name_tool(e, tool);
	uar_emit(e, UAR_EV_TOOL_ARGS, EMIT_RUN);
}

static void replay_tool_delta(struct emit *e, const struct uar_json *data)
{
	const struct uar_json *delta = uar_json_get(data, UAR_STR("delta"));
	const struct uar_open_tool *tool = open_tool(e, data);
	struct uar_jw *w;

	if (!tool)
		return;
	put_aside(e, "tool", call_id(data), delta);
	w = uar_emit_begin(e);
	uar_jw_int(w, "index", tool->index);
	if (delta)
		uar_jw_tree(w, "partial", delta);
	if (is_spilled(e))
		refer(e, "partial_output_ref");
	uar_core_name_tool(e, tool);
	uar_emit(e, UAR_EV_TOOL_PROGRESS, EMIT_RUN);
}

static void tool_result(struct emit *e, const struct uar_open_tool *tool,
			const struct uar_json *output)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "tool_name", tool->name);
	uar_jw_bool(w, "ok", true);
	uar_jw_cstr(w, "status", "completed");
	if (output)
		uar_jw_tree(w, "preview", output);
	else
		uar_jw_null(w, "preview");
	uar_jw_bool(w, "empty", !output || output->kind == UAR_JSON_NULL);
	uar_jw_bool(w, "truncated", is_spilled(e));
	uar_jw_int(w, "output_bytes",
		   is_spilled(e) ? e->replay->blob_bytes
		   : output	 ? (int64_t)output->text.n
				 : 0);
	uar_jw_int(w, "duration_ms", uar_core_tool_ms(e, tool));
	uar_jw_cstr(w, "persistence", is_spilled(e) ? "preview_and_persist" : "inline");
	if (is_spilled(e))
		refer(e, "output_ref");
	uar_core_name_tool(e, tool);
	uar_emit(e, UAR_EV_TOOL_RESULT, EMIT_RUN);
}

static void replay_tool_end(struct emit *e, const struct uar_json *data)
{
	static const struct uar_failure f = { UAR_STR("TOOL_ERROR"), UAR_STR("the tool failed"),
					      UAR_STR("execution"), false };
	const struct uar_json *output = uar_json_get(data, UAR_STR("output"));
	const struct uar_open_tool *tool = open_tool(e, data);

	if (!tool)
		return;
	put_aside(e, "tool", call_id(data), output);
	if (uar_json_bool(uar_json_get(data, UAR_STR("ok")), true))
		tool_result(e, tool, output);
	else
		uar_core_tool_failed(e, tool, "failed", &f, output);
}

static void replay_artifact(struct emit *e, const struct uar_json *data)
{
	const struct uar_json *a = uar_json_get(data, UAR_STR("artifact"));
	const struct uar_json *metadata = uar_json_get(a, UAR_STR("metadata"));
	uar_str content = field(a, "content", UAR_STR(""));
	uar_str language = field(a, "language", UAR_STR_NONE);
	uar_str id = field(a, "artifact_id", UAR_STR("artifact"));
	int64_t named = uar_json_int(uar_json_get(a, UAR_STR("version")), 1);
	int64_t version = named > 1 ? named : 1;
	char sha256[UAR_SHA256_TEXT + 1];
	struct uar_jw *w;

	put_aside(e, "artifact", id, uar_json_get(a, UAR_STR("content")));
	w = uar_emit_begin(e);
	uar_sha256_hex(content, sha256);
	uar_jw_cstr(w, "op", version > 1 ? "version_created" : "created");
	uar_jw_str(w, "artifact_type", field(a, "artifact_type", UAR_STR("text")));
	uar_jw_str(w, "title", field(a, "title", UAR_STR("")));
	uar_jw_int(w, "version", version);
	uar_jw_cstr(w, "status", "ready");
	if (language.n)
		uar_jw_str(w, "language", language);
	uar_jw_int(w, "bytes", is_spilled(e) ? e->replay->blob_bytes : (int64_t)content.n);
	uar_jw_str(w, "sha256", is_spilled(e) ? e->replay->blob : uar_str_c(sha256));
	uar_jw_str(w, "preview", content);
	uar_jw_int(w, "issue_count", 0);
	if (metadata && metadata->kind == UAR_JSON_OBJECT) {
		uar_jw_tree(w, "metadata", metadata);
	} else {
		uar_jw_obj(w, "metadata");
		uar_jw_close(w);
	}
	if (is_spilled(e))
		refer(e, "read_ref");
	uar_emit_name(e, UAR_ID_ARTIFACT, id);
	uar_emit(e, UAR_EV_ARTIFACT_CHANGED, EMIT_RUN);
}

/* A status that a note may bring along: one of work, none that waits or ends. */
static uar_str note_status(const struct uar_json *data)
{
	uar_str text = field(data, "status", UAR_STR(""));
	enum uar_status s = uar_status_parse(text);

	return s >= UAR_STATUS_PREPARING && s <= UAR_STATUS_RETRYING ? text : UAR_STR("streaming");
}

/* Text that was taken back is that of this run, whatever its message was called. */
static bool put_superseded(struct emit *e, struct uar_jw *w, const struct uar_json *metadata)
{
	const struct uar_json *bytes = uar_json_get(metadata, UAR_STR("superseded_bytes"));

	if (!bytes || !e->r->call.message_id[0])
		return false;
	uar_jw_obj(w, "metadata");
	uar_core_put_superseded(w, uar_str_c(e->r->call.message_id), uar_json_int(bytes, 0));
	uar_jw_close(w);
	return true;
}

/* A phase as our own streams show it, or any other note, kept whole. */
static void replay_meta(struct emit *e, const struct uar_json *data)
{
	bool phase = field(data, "phase", UAR_STR("")).n > 0;
	const struct uar_json *metadata = phase ? uar_json_get(data, UAR_STR("metadata")) : data;
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_str(w, "phase", phase ? field(data, "phase", UAR_STR("")) : UAR_STR("replay"));
	uar_jw_str(w, "status", phase ? note_status(data) : UAR_STR("streaming"));
	uar_jw_str(w, "title", field(data, "title", UAR_STR("Recorded note")));
	if (!put_superseded(e, w, metadata) && metadata && metadata->kind == UAR_JSON_OBJECT)
		uar_jw_tree(w, "metadata", metadata);
	uar_emit(e, UAR_EV_RUN_STATUS, EMIT_RUN);
}

static void replay_done(struct emit *e, const struct uar_json *data)
{
	(void)data;
	uar_core_end_by(e, NULL);
}

static void replay_error(struct emit *e, const struct uar_json *data)
{
	struct uar_failure f = { field(data, "code", UAR_STR("INTERNAL")),
				 field(data, "message", UAR_STR("recorded failure")),
				 UAR_STR("execution"), false };

	uar_core_end_by(e, &f);
}

static const struct replay {
	const char *type;
	void (*fn)(struct emit *e, const struct uar_json *data);
	enum uar_run_input input;
} replays[] = {
	{ "RunStart", replay_nothing, UAR_IN_STEP },
	{ "ChatDelta", replay_chat, UAR_IN_OUTPUT },
	{ "ReasoningDelta", replay_reasoning, UAR_IN_OUTPUT },
	{ "Citation", replay_citation, UAR_IN_STEP },
	{ "MemoryRecall", replay_memory, UAR_IN_STEP },
	{ "ToolStart", replay_tool_start, UAR_IN_OUTPUT },
	{ "ToolDelta", replay_tool_delta, UAR_IN_STEP },
	{ "ToolEnd", replay_tool_end, UAR_IN_STEP },
	{ "Artifact", replay_artifact, UAR_IN_STEP },
	{ "meta", replay_meta, UAR_IN_STEP },
	{ "Error", replay_error, UAR_IN_FAILED },
	{ "RunDone", replay_done, UAR_IN_FINISHED },
};

static const struct replay *replay_of(const struct uar_json *event)
{
	uar_str type = field(event, "type", UAR_STR(""));

	for (size_t i = 0; i < ARRAY_LEN(replays); i++)
		if (uar_str_is(type, replays[i].type))
			return &replays[i];
	return NULL;
}

enum uar_run_input uar_core_replay_input(const struct uar_json *event)
{
	const struct replay *replay = replay_of(event);
	const struct uar_json *data = uar_json_get(event, UAR_STR("data"));

	if (!replay) /* it is refused once the run may go on at all */
		return UAR_IN_STEP;
	if (replay->fn == replay_chat || replay->fn == replay_reasoning)
		return field(data, "text_delta", UAR_STR("")).n ? UAR_IN_OUTPUT : UAR_IN_STEP;
	return replay->input;
}

void uar_core_replay(struct emit *e, const struct uar_json *event)
{
	const struct replay *replay = replay_of(event);

	if (replay)
		replay->fn(e, uar_json_get(event, UAR_STR("data")));
	else
		e->err = uar_error_set(
			e->error, UAR_EINVALID, "line %lld: a fixture run cannot replay %.*s",
			(long long)e->line, UAR_FMT(field(event, "type", UAR_STR(""))));
}
