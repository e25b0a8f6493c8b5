/* normalized.c - the map from event classes to normalized variants. */
#include "proto/normalized.h"

#include "proto/exports.h"

struct put {
	struct uar_jw w;
	const struct uar_event *ev;
	const struct uar_json *p; /* payload; NULL for a bare one */
	const struct uar_normalized_options *o;
	struct uar_arena *scratch;
};

static const struct uar_json *get(const struct put *x, const char *key)
{
	return uar_json_get(x->p, uar_str_c(key));
}

static uar_str text(const struct put *x, const char *key)
{
	return uar_json_str(get(x, key), UAR_STR(""));
}

static void open_data(struct put *x, const char *type)
{
	uar_jw_obj(&x->w, NULL);
	uar_jw_cstr(&x->w, "type", type);
	uar_jw_obj(&x->w, "data");
	uar_jw_str(&x->w, "run_id", x->ev->ids[UAR_ID_RUN]);
}

static uar_err close_data(struct put *x)
{
	uar_jw_close(&x->w);
	uar_jw_close(&x->w);
	return uar_jw_end(&x->w);
}

static void tree_or_null(struct put *x, const char *key, const struct uar_json *j)
{
	if (j)
		uar_jw_tree(&x->w, key, j);
	else
		uar_jw_null(&x->w, key);
}

/* What is shown is the beginning of something that lies apart: says where. */
static void put_ref(struct put *x, const char *ref, const char *as)
{
	const struct uar_json *refs = NULL;
	uar_str at;

	if (!x->ev->refs.n || uar_json_parse(x->ev->refs, NULL, x->scratch, &refs, NULL))
		return;
	at = uar_json_text(refs, ref);
	if (!uar_str_starts(at, UAR_STR("blob://")))
		return;
	uar_jw_str(&x->w, as, at);
	uar_jw_bool(&x->w, "truncated", true);
}

static uar_err put_start(struct put *x)
{
	uar_str agent = text(x, "agent_id");

	open_data(x, "RunStart");
	uar_jw_str(&x->w, "agent_id", agent.n ? agent : text(x, "entry_id"));
	return close_data(x);
}

static uar_err put_delta(struct put *x)
{
	uar_str delta = text(x, "text");

	if (!delta.n)
		return UAR_ESKIP;
	open_data(x, x->ev->cls == UAR_EV_MODEL_DELTA ? "ChatDelta" : "ReasoningDelta");
	uar_jw_str(&x->w, "text_delta", delta);
	return close_data(x);
}

static uar_err put_context(struct put *x)
{
	const struct uar_json *citations = get(x, "citations");
	const struct uar_json *recalled = get(x, "recalled");

	if (citations) {
		open_data(x, "Citation");
		uar_jw_tree(&x->w, "sources", citations);
	} else if (recalled) {
		open_data(x, "MemoryRecall");
		uar_jw_tree(&x->w, "items", recalled);
	} else {
		return UAR_ESKIP;
	}
	return close_data(x);
}

static void put_more_of_tool(struct put *x, bool name)
{
	const struct uar_json *index = x->o->full ? get(x, "call_index") : NULL;

	if (x->o->full && name)
		uar_jw_str(&x->w, "tool", text(x, "tool_name"));
	if (index)
		uar_jw_tree(&x->w, "call_index", index);
}

/* The call is shown once its arguments are final. */
static uar_err put_tool_args(struct put *x)
{
	if (!uar_json_bool(get(x, "final"), false))
		return UAR_ESKIP;
	open_data(x, "ToolStart");
	uar_jw_str(&x->w, "tool_call_id", x->ev->ids[UAR_ID_TOOL_CALL]);
	uar_jw_str(&x->w, "tool", text(x, "tool_name"));
	tree_or_null(x, "input", get(x, "args"));
	put_ref(x, "args_ref", "input_ref");
	put_more_of_tool(x, false);
	return close_data(x);
}

static uar_err put_tool_progress(struct put *x)
{
	const struct uar_json *partial = get(x, "partial");

	open_data(x, "ToolDelta");
	uar_jw_str(&x->w, "tool_call_id", x->ev->ids[UAR_ID_TOOL_CALL]);
	tree_or_null(x, "delta", partial ? partial : get(x, "message"));
	put_ref(x, "partial_output_ref", "delta_ref");
	return close_data(x);
}

static uar_err put_tool_end(struct put *x)
{
	const struct uar_json *output = get(x, "preview");

	open_data(x, "ToolEnd");
	uar_jw_str(&x->w, "tool_call_id", x->ev->ids[UAR_ID_TOOL_CALL]);
	tree_or_null(x, "output", output ? output : get(x, "error"));
	uar_jw_bool(&x->w, "ok", x->ev->cls == UAR_EV_TOOL_RESULT);
	put_ref(x, "output_ref", "output_ref");
	put_more_of_tool(x, true);
	return close_data(x);
}

static uar_err put_artifact(struct put *x)
{
	uar_str language = text(x, "language");

	open_data(x, "Artifact");
	uar_jw_obj(&x->w, "artifact");
	uar_jw_str(&x->w, "artifact_id", x->ev->ids[UAR_ID_ARTIFACT]);
	uar_jw_str(&x->w, "artifact_type", text(x, "artifact_type"));
	uar_jw_str(&x->w, "title", text(x, "title"));
	if (uar_export_is_served(x->p))
		uar_export_item_url(&x->w, "content", x->ev);
	else
		uar_jw_str(&x->w, "content", text(x, "preview"));
	if (language.n)
		uar_jw_str(&x->w, "language", language);
	tree_or_null(x, "metadata", get(x, "metadata"));
	if (uar_json_int(get(x, "version"), 1) > 1)
		uar_jw_int(&x->w, "version", uar_json_int(get(x, "version"), 1));
	put_ref(x, "read_ref", "content_ref");
	uar_jw_close(&x->w);
	return close_data(x);
}

static uar_err put_warning(struct put *x)
{
	const struct uar_json *details = get(x, "details");

	if (!uar_str_is(text(x, "code"), "ARTIFACT_PREVIEW_ERROR"))
		return UAR_ESKIP;
	open_data(x, "artifact.error");
	uar_jw_str(&x->w, "artifact_id", x->ev->ids[UAR_ID_ARTIFACT]);
	uar_jw_str(&x->w, "message", text(x, "message"));
	if (details)
		uar_jw_tree(&x->w, "details", details);
	return close_data(x);
}

/* What somebody who decides has to see. */
static void put_question(struct put *x)
{
	static const char *const keys[] = { "action_type", "status", "tool_name", "decisions",
					    "schema",	   "scope",  "timeout_at" };

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct uar_json *j = get(x, keys[i]);

		if (j)
			uar_jw_tree(&x->w, keys[i], j);
	}
}

/* Only a denial has a variant of its own. */
static uar_err put_denied(struct put *x)
{
	open_data(x, "ToolCallDenied");
	uar_jw_str(&x->w, "action_id", x->ev->ids[UAR_ID_ACTION]);
	if (x->ev->ids[UAR_ID_TOOL_CALL].n)
		uar_jw_str(&x->w, "tool_call_id", x->ev->ids[UAR_ID_TOOL_CALL]);
	uar_jw_str(&x->w, "reason", text(x, "reason"));
	return close_data(x);
}

static uar_err put_resolved(struct put *x)
{
	if (x->o->full && uar_str_is(text(x, "decision"), "deny"))
		return put_denied(x);
	open_data(x, "meta");
	uar_jw_str(&x->w, "action_id", x->ev->ids[UAR_ID_ACTION]);
	uar_jw_str(&x->w, "status", text(x, "status"));
	uar_jw_str(&x->w, "decision", text(x, "decision"));
	uar_jw_str(&x->w, "result", text(x, "result"));
	uar_jw_str(&x->w, "source", text(x, "source"));
	return close_data(x);
}

static uar_err put_action(struct put *x)
{
	bool form = uar_str_is(text(x, "action_type"), "form");
	bool permission = uar_str_is(text(x, "action_type"), "tool_permission");

	open_data(x, form			? "ui.form.request"
		     : permission && x->o->full ? "ToolCallApprovalRequired"
						: "meta");
	uar_jw_str(&x->w, form ? "form_id" : "action_id", x->ev->ids[UAR_ID_ACTION]);
	uar_jw_str(&x->w, "title", text(x, "prompt"));
	if (form)
		tree_or_null(x, "schema", get(x, "schema"));
	else
		put_question(x);
	put_ref(x, "schema_ref", "schema_ref");
	if (x->ev->ids[UAR_ID_TOOL_CALL].n)
		uar_jw_str(&x->w, "tool_call_id", x->ev->ids[UAR_ID_TOOL_CALL]);
	return close_data(x);
}

/* Where whoever shows the run is to go. */
static uar_err put_navigate(struct put *x, const struct uar_json *metadata)
{
	const struct uar_json *to = uar_json_get(metadata, UAR_STR("navigate"));
	const struct uar_json *title = uar_json_get(to, UAR_STR("title"));

	open_data(x, "ui.navigate");
	uar_jw_str(&x->w, "target", uar_json_text(to, "target"));
	if (title)
		uar_jw_tree(&x->w, "title", title);
	uar_jw_str(&x->w, "tool_call_id", uar_json_text(metadata, "tool_call_id"));
	return close_data(x);
}

static uar_err put_skill(struct put *x, const struct uar_json *skill)
{
	open_data(x, "SkillActivated");
	for (const struct uar_json *m = uar_json_first(skill); m; m = m->next) {
		uar_jw_key(&x->w, m->key);
		uar_jw_tree(&x->w, NULL, m);
	}
	return close_data(x);
}

/* Phases are shown on demand; a note with data of its own always is. */
static uar_err put_status(struct put *x)
{
	const struct uar_json *metadata = get(x, "metadata");

	if (uar_str_is(uar_json_text(metadata, "ui"), "navigate"))
		return put_navigate(x, metadata);
	if (x->o->full && uar_json_get(metadata, UAR_STR("skill")))
		return put_skill(x, uar_json_get(metadata, UAR_STR("skill")));
	if (!metadata && !x->o->meta && !x->o->full)
		return UAR_ESKIP;
	open_data(x, !metadata && x->o->full ? "RuntimeStep" : "meta");
	uar_jw_str(&x->w, "phase", text(x, "phase"));
	uar_jw_str(&x->w, "status", text(x, "status"));
	uar_jw_str(&x->w, "title", text(x, "title"));
	if (metadata)
		uar_jw_tree(&x->w, "metadata", metadata);
	return close_data(x);
}

static uar_err put_progress(struct put *x)
{
	if (!x->o->meta)
		return UAR_ESKIP;
	open_data(x, "meta");
	uar_jw_cstr(&x->w, "kind", "progress");
	uar_jw_tree(&x->w, "progress", x->p);
	return close_data(x);
}

/* Most answers are complete, and their payload is not read. */
static uar_err put_done(struct put *x)
{
	static const char reason[] = "\"finish_reason\":";
	const struct uar_json *usage;
	uar_err e = UAR_OK;

	if (!x->p &&
	    (x->o->full || memmem(x->ev->payload.p, x->ev->payload.n, reason, sizeof reason - 1)))
		e = uar_event_payload(x->ev, x->scratch, &x->p, NULL);
	if (e)
		return e;
	usage = x->o->full ? get(x, "usage") : NULL;
	open_data(x, usage ? "RunDoneWithUsage" : "RunDone");
	if (x->p && text(x, "finish_reason").n)
		uar_jw_str(&x->w, "finish_reason", text(x, "finish_reason"));
	if (usage)
		uar_jw_tree(&x->w, "usage", usage);
	return close_data(x);
}

static uar_err put_cancelled(struct put *x)
{
	open_data(x, "Cancelled");
	uar_jw_str(&x->w, "reason", text(x, "message"));
	return close_data(x);
}

static uar_err put_alert(struct put *x)
{
	if (!x->o->full)
		return UAR_ESKIP;
	open_data(x, "BudgetAlert");
	uar_jw_cstr(&x->w, "kind", uar_event_info[x->ev->cls].type);
	uar_jw_tree(&x->w, "details", x->p);
	return close_data(x);
}

static uar_err put_failed(struct put *x)
{
	bool cancelled = uar_str_is(text(x, "status"), "cancelled");

	if (cancelled && x->o->full)
		return put_cancelled(x);
	if (cancelled && x->o->cancel_as_done)
		return put_done(x);
	open_data(x, "Error");
	uar_jw_str(
		&x->w, "code",
		uar_json_str(uar_json_get(get(x, "error"), UAR_STR("code")), UAR_STR("INTERNAL")));
	uar_jw_str(&x->w, "message", text(x, "message"));
	return close_data(x);
}

static const struct {
	uar_err (*put)(struct put *x);
	bool bare; /* shows nothing of the payload, which is not read for it */
} shown[UAR_EV_COUNT] = {
	[UAR_EV_TASK_QUEUED] = { .put = put_start },
	[UAR_EV_MODEL_DELTA] = { .put = put_delta },
	[UAR_EV_REASONING_DELTA] = { .put = put_delta },
	[UAR_EV_CONTEXT_RESOLVED] = { .put = put_context },
	[UAR_EV_TOOL_ARGS] = { .put = put_tool_args },
	[UAR_EV_TOOL_PROGRESS] = { .put = put_tool_progress },
	[UAR_EV_TOOL_RESULT] = { .put = put_tool_end },
	[UAR_EV_TOOL_FAILED] = { .put = put_tool_end },
	[UAR_EV_ARTIFACT_CHANGED] = { .put = put_artifact },
	[UAR_EV_RUNTIME_WARNING] = { .put = put_warning },
	[UAR_EV_ACTION_REQUIRED] = { .put = put_action },
	[UAR_EV_ACTION_RESOLVED] = { .put = put_resolved },
	[UAR_EV_RUN_STATUS] = { .put = put_status },
	[UAR_EV_TASK_PROGRESS] = { .put = put_progress },
	[UAR_EV_QUOTA_LOW] = { .put = put_alert },
	[UAR_EV_QUOTA_BLOCKED] = { .put = put_alert },
	[UAR_EV_LIMIT_CHANGED] = { .put = put_alert },
	[UAR_EV_RATE_LIMIT_HIT] = { .put = put_alert },
	[UAR_EV_TASK_ATTEMPT_COMPLETED] = { .put = put_done, .bare = true },
	[UAR_EV_TASK_ATTEMPT_FAILED] = { .put = put_failed },
};

bool uar_normalized_shows(const struct uar_event *ev)
{
	return shown[ev->cls].put && ev->run_sequence;
}

uar_err uar_normalized_encode(const struct uar_event *ev, const struct uar_normalized_options *o,
			      struct uar_arena *scratch, struct uar_buf *out)
{
	struct put x = { .ev = ev, .o = o, .scratch = scratch };
	uar_err e = UAR_OK;

	if (!uar_normalized_shows(ev))
		return UAR_ESKIP;
	if (!shown[ev->cls].bare)
		e = uar_event_payload(ev, scratch, &x.p, NULL);
	x.w = uar_jw_begin(out);
	return e ? e : shown[ev->cls].put(&x);
}
