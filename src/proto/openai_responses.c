/* openai_responses.c - a run as one response: streamed events, or the response object. */
#include "proto/openai_int.h"

typedef const struct uar_view_change change_t;

/* What the output of a response consists of. */
struct openai_item {
	const struct uar_view_message *message;
	const struct uar_view_call *call; /* NULL: the message itself */
	int64_t index;
	struct openai_item *next;
};

/* --- the response object ---------------------------------------------------------------------- */

static const char *status_of(const struct openai *a)
{
	if (a->handed)
		return "completed";
	switch (a->view.end) {
	case UAR_VIEW_LIVE: break;
	case UAR_VIEW_DONE:
		return strcmp(openai_finish_reason(a), "stop") == 0 ? "completed" : "incomplete";
	case UAR_VIEW_CANCELLED: return "cancelled";
	case UAR_VIEW_FAILED: return "failed";
	}
	return openai_waits_for_client(a) ? "completed" : a->begun ? "in_progress" : "queued";
}

static void put_usage(const struct openai *a, struct uar_jw *w)
{
	struct uar_view_usage u = openai_usage(a);

	if (!a->view.end && !openai_waits_for_client(a)) {
		uar_jw_null(w, "usage");
		return;
	}
	uar_jw_obj(w, "usage");
	uar_jw_int(w, "input_tokens", u.input);
	uar_jw_obj(w, "input_tokens_details");
	uar_jw_int(w, "cached_tokens", u.cached > 0 ? u.cached : 0);
	uar_jw_close(w);
	uar_jw_int(w, "output_tokens", u.output);
	uar_jw_obj(w, "output_tokens_details");
	uar_jw_int(w, "reasoning_tokens", 0);
	uar_jw_close(w);
	uar_jw_int(w, "total_tokens", u.total);
	uar_jw_close(w);
}

static void put_annotations(struct uar_jw *w, const struct uar_view_message *m)
{
	struct openai_cites cites = { .n = 0 };
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = openai_find_cites(m, &arena, &cites);
	uar_jw_arr(w, "annotations");
	for (size_t i = 0; i < cites.n; i++)
		openai_put_cite(w, NULL, &cites.at[i]);
	uar_jw_close(w);
	uar_arena_fini(&arena);
	w->err = w->err ? w->err : e;
}

static void put_text_part(struct uar_jw *w, const char *key, uar_str text,
			  const struct uar_view_message *m)
{
	uar_jw_obj(w, key);
	uar_jw_cstr(w, "type", "output_text");
	uar_jw_str(w, "text", text);
	put_annotations(w, m);
	uar_jw_arr(w, "logprobs");
	uar_jw_close(w);
	uar_jw_close(w);
}

static void put_summary_part(struct uar_jw *w, const char *key, uar_str text)
{
	uar_jw_obj(w, key);
	uar_jw_cstr(w, "type", "summary_text");
	uar_jw_str(w, "text", text);
	uar_jw_close(w);
}

/* `whole`: with its text; else as it begins. */
static void put_message_item(const struct openai *a, struct uar_jw *w,
			     const struct uar_view_message *m, bool whole)
{
	bool reasoning = m->kind == UAR_VIEW_REASONING;

	uar_jw_str(w, "id", m->id);
	uar_jw_cstr(w, "type", reasoning ? "reasoning" : "message");
	uar_jw_cstr(w, "status", whole && m != a->view.open ? "completed" : "in_progress");
	if (!reasoning)
		uar_jw_cstr(w, "role", "assistant");
	uar_jw_arr(w, reasoning ? "summary" : "content");
	if (whole && reasoning)
		put_summary_part(w, NULL, uar_buf_str(&m->text));
	else if (whole)
		put_text_part(w, NULL, uar_buf_str(&m->text), m);
	uar_jw_close(w);
}

static const struct uar_view_message *result_of(const struct openai *a,
						const struct uar_view_call *call)
{
	const struct uar_view_message *m = a->view.first;

	while (m && (m->kind != UAR_VIEW_RESULT || m->call != call))
		m = m->next;
	return m;
}

/* A function of the client, or a tool of ours with what came of it. */
static void put_call_item(const struct openai *a, struct uar_jw *w, const struct uar_view_call *c)
{
	const struct uar_view_message *result = result_of(a, c);

	uar_jw_str(w, "id", c->id);
	uar_jw_cstr(w, "type", c->client ? "function_call" : "mcp_call");
	uar_jw_cstr(w, "status",
		    c->client	      ? c->complete ? "completed" : "in_progress"
		    : !c->ended	      ? "in_progress"
		    : result->error.n ? "failed"
				      : "completed");
	if (c->client)
		uar_jw_str(w, "call_id", c->id);
	else
		uar_jw_cstr(w, "server_label", "uar");
	uar_jw_str(w, "name", c->name);
	uar_jw_str(w, "arguments", uar_buf_str(&c->args));
	if (c->client)
		return;
	if (result && !result->error.n)
		uar_jw_str(w, "output", uar_buf_str(&result->text));
	else
		uar_jw_null(w, "output");
	if (result && result->error.n)
		uar_jw_str(w, "error", result->error);
	else
		uar_jw_null(w, "error");
}

static void put_item(const struct openai *a, struct uar_jw *w, const char *key,
		     const struct openai_item *item, bool whole)
{
	uar_jw_obj(w, key);
	if (item->call)
		put_call_item(a, w, item->call);
	else
		put_message_item(a, w, item->message, whole);
	uar_jw_close(w);
}

static void put_settings(const struct openai *a, struct uar_jw *w)
{
	uar_jw_null(w, "instructions");
	uar_jw_null(w, "max_output_tokens");
	uar_jw_obj(w, "metadata");
	uar_jw_close(w);
	uar_jw_bool(w, "parallel_tool_calls", true);
	uar_jw_str_or_null(w, "previous_response_id", a->o.previous_id);
	uar_jw_bool(w, "store", !a->hidden);
	uar_jw_null(w, "temperature");
	uar_jw_obj(w, "text");
	uar_jw_obj(w, "format");
	uar_jw_cstr(w, "type", "text");
	uar_jw_close(w);
	uar_jw_close(w);
	uar_jw_cstr(w, "tool_choice", "auto");
	uar_jw_arr(w, "tools");
	uar_jw_close(w);
	uar_jw_null(w, "top_p");
	uar_jw_cstr(w, "truncation", "disabled");
}

static void put_end(struct openai *a, struct uar_jw *w)
{
	if (a->view.end == UAR_VIEW_FAILED && !a->handed)
		openai_put_failure(a, w, "error");
	else
		uar_jw_null(w, "error");
	if (a->view.end == UAR_VIEW_DONE && !a->handed &&
	    strcmp(openai_finish_reason(a), "stop") != 0) {
		uar_jw_obj(w, "incomplete_details");
		uar_jw_cstr(w, "reason",
			    strcmp(openai_finish_reason(a), "length") == 0 ? "max_output_tokens"
									   : "content_filter");
		uar_jw_close(w);
	} else {
		uar_jw_null(w, "incomplete_details");
	}
}

static void put_response(struct openai *a, struct uar_jw *w, const char *key)
{
	uar_jw_obj(w, key);
	openai_put_id(a, w, UAR_OPENAI_RESPONSE_ID);
	uar_jw_cstr(w, "object", "response");
	uar_jw_int(w, "created_at", a->created_us / 1000000);
	uar_jw_cstr(w, "status", status_of(a));
	put_end(a, w);
	uar_jw_str(w, "model", a->o.model);
	uar_jw_arr(w, "output");
	for (const struct openai_item *i = a->items; i; i = i->next)
		put_item(a, w, NULL, i, true);
	uar_jw_close(w);
	if (a->view.thread_id.n) {
		uar_jw_obj(w, "conversation");
		uar_jw_str(w, "id", a->view.thread_id);
		uar_jw_close(w);
	}
	put_settings(a, w);
	put_usage(a, w);
	uar_jw_close(w);
}

/* --- frames --------------------------------------------------------------------------------- */

static void open_event(struct openai *a, const char *type)
{
	a->frame_start = a->out->out->n;
	uar_frame_open(a->out, type);
	a->w = uar_jw_begin(a->out->out);
	uar_jw_obj(&a->w, NULL);
	uar_jw_cstr(&a->w, "type", type);
	uar_jw_int(&a->w, "sequence_number", a->number++);
}

/* What the reader has already is made, as the numbers say, and left out. */
static uar_err close_event(struct openai *a)
{
	uar_err e;

	uar_jw_close(&a->w);
	e = uar_frame_close(a->out, &a->w);
	if (!e && a->number <= a->o.skip)
		a->out->out->n = a->frame_start;
	return e;
}

static uar_err put_state(struct openai *a, const char *type)
{
	open_event(a, type);
	put_response(a, &a->w, "response");
	return close_event(a);
}

static uar_err put_item_event(struct openai *a, const char *type, const struct openai_item *item,
			      bool whole)
{
	open_event(a, type);
	uar_jw_int(&a->w, "output_index", item->index);
	put_item(a, &a->w, "item", item, whole);
	return close_event(a);
}

/* An event about a part of an item: all have these members. */
static void open_part(struct openai *a, const char *type, const struct openai_item *item)
{
	open_event(a, type);
	uar_jw_str(&a->w, "item_id", item->call ? item->call->id : item->message->id);
	uar_jw_int(&a->w, "output_index", item->index);
	if (!item->call)
		uar_jw_int(&a->w,
			   item->message->kind == UAR_VIEW_TEXT ? "content_index" : "summary_index",
			   0);
}

/* --- items ---------------------------------------------------------------------------------- */

static struct openai_item *find_item(const struct openai *a, const struct uar_view_message *m,
				     const struct uar_view_call *call)
{
	struct openai_item *i = a->items;

	while (i && (call ? i->call != call : i->call || i->message != m))
		i = i->next;
	return i;
}

static struct openai_item *add_item(struct openai *a, const struct uar_view_message *m,
				    const struct uar_view_call *call)
{
	struct openai_item **at = &a->items, *i = uar_arena_alloc(&a->view.arena, sizeof *i);

	if (!i)
		return NULL;
	while (*at)
		at = &(*at)->next;
	*i = (struct openai_item){ m, call, a->item_count++, NULL };
	*at = i;
	return i;
}

static void put_part(struct openai *a, const struct openai_item *i, uar_str text)
{
	if (i->message->kind == UAR_VIEW_TEXT)
		put_text_part(&a->w, "part", text, i->message);
	else
		put_summary_part(&a->w, "part", text);
}

static uar_err on_message_started(struct openai *a, change_t *c)
{
	bool text = c->message->kind == UAR_VIEW_TEXT;
	struct openai_item *i = add_item(a, c->message, NULL);
	uar_err e = i ? put_item_event(a, "response.output_item.added", i, false) : UAR_ENOMEM;

	if (e)
		return e;
	open_part(a, text ? "response.content_part.added" : "response.reasoning_summary_part.added",
		  i);
	put_part(a, i, UAR_STR(""));
	return close_event(a);
}

static uar_err on_message_grew(struct openai *a, change_t *c)
{
	bool text = c->message->kind == UAR_VIEW_TEXT;
	struct openai_item *i = find_item(a, c->message, NULL);

	open_part(a, text ? "response.output_text.delta" : "response.reasoning_summary_text.delta",
		  i);
	uar_jw_str(&a->w, "delta", c->text);
	if (text) {
		uar_jw_arr(&a->w, "logprobs");
		uar_jw_close(&a->w);
	}
	return close_event(a);
}

static uar_err tell_annotations(struct openai *a, const struct openai_item *item)
{
	struct openai_cites cites = { .n = 0 };
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = openai_find_cites(item->message, &arena, &cites);
	for (size_t i = 0; i < cites.n && !e; i++) {
		open_part(a, "response.output_text.annotation.added", item);
		uar_jw_int(&a->w, "annotation_index", (int64_t)i);
		openai_put_cite(&a->w, "annotation", &cites.at[i]);
		e = close_event(a);
	}
	uar_arena_fini(&arena);
	return e;
}

static uar_err on_message_ended(struct openai *a, change_t *c)
{
	bool text = c->message->kind == UAR_VIEW_TEXT;
	struct openai_item *i = find_item(a, c->message, NULL);
	uar_str whole = uar_buf_str(&c->message->text);
	uar_err e;

	if (!i)
		return UAR_OK;
	e = text ? tell_annotations(a, i) : UAR_OK;
	if (e)
		return e;
	open_part(a, text ? "response.output_text.done" : "response.reasoning_summary_text.done",
		  i);
	uar_jw_str(&a->w, "text", whole);
	if (text) {
		uar_jw_arr(&a->w, "logprobs");
		uar_jw_close(&a->w);
	}
	e = close_event(a);
	if (e)
		return e;
	open_part(a, text ? "response.content_part.done" : "response.reasoning_summary_part.done",
		  i);
	put_part(a, i, whole);
	e = close_event(a);
	return e ? e : put_item_event(a, "response.output_item.done", i, true);
}

/* Whose call it is shows when its arguments are complete. */
static uar_err add_call(struct openai *a, const struct uar_view_call *call)
{
	struct openai_item *i = find_item(a, NULL, call);

	if (i)
		return UAR_OK;
	i = add_item(a, NULL, call);
	return i ? put_item_event(a, "response.output_item.added", i, false) : UAR_ENOMEM;
}

/* A call of the client's tools was an item when it was handed over: its result is no item. */
static uar_err on_call_ended(struct openai *a, change_t *c)
{
	uar_err e = c->call->client ? UAR_OK : add_call(a, c->call);

	if (e || c->call->client)
		return e;
	return put_item_event(a, "response.output_item.done", find_item(a, NULL, c->call), true);
}

/* What a model call was cut off in is taken back: it leaves a gap in the indexes. */
static uar_err on_superseded(struct openai *a)
{
	struct openai_item **at = &a->items;

	while (*at) {
		const struct uar_view_message *m = a->view.first;

		while (m && m != (*at)->message)
			m = m->next;
		if (m || (*at)->call)
			at = &(*at)->next;
		else
			*at = (*at)->next;
	}
	return UAR_OK;
}

/* --- the run -------------------------------------------------------------------------------- */

static uar_err begin_response(struct openai *a)
{
	uar_err e;

	a->begun = true;
	e = put_state(a, "response.created");
	return e ? e : put_state(a, "response.in_progress");
}

static uar_err finish(struct openai *a)
{
	const char *status = status_of(a);

	a->out->closed = true;
	a->over = true;
	return put_state(a, strcmp(status, "completed") == 0	? "response.completed"
			    : strcmp(status, "incomplete") == 0 ? "response.incomplete"
								: "response.failed");
}

static uar_err hand_over_call(struct openai *a, const struct uar_view_call *call)
{
	uar_err e = add_call(a, call);
	struct openai_item *i = find_item(a, NULL, call);

	if (e)
		return e;
	open_part(a, "response.function_call_arguments.done", i);
	uar_jw_str(&a->w, "name", call->name);
	uar_jw_str(&a->w, "arguments", uar_buf_str(&call->args));
	e = close_event(a);
	return e ? e : put_item_event(a, "response.output_item.done", i, true);
}

static uar_err on_waiting(struct openai *a)
{
	uar_err e = UAR_OK;

	if (!openai_waits_for_client(a))
		return openai_put_waiting(a);
	for (const struct uar_view_message *m = a->view.first; m; m = m->next)
		for (const struct uar_view_call *c = m->calls; c && !e; c = c->next)
			if (openai_is_client_call(a, c) && !c->ended)
				e = hand_over_call(a, c);
	a->handed = true;
	return e ? e : finish(a);
}

static uar_err on_change(void *ctx, change_t *c)
{
	struct openai *a = ctx;
	bool earlier = a->part < a->shown;
	uar_err e;

	a->part += openai_hands_over(a, c);
	if (earlier)
		return UAR_OK;
	e = a->begun ? UAR_OK : begin_response(a);
	if (e || a->over)
		return e;
	switch (c->kind) {
	case UAR_VIEW_MESSAGE_STARTED: return on_message_started(a, c);
	case UAR_VIEW_MESSAGE_GREW: return on_message_grew(a, c);
	case UAR_VIEW_MESSAGE_ENDED: return on_message_ended(a, c);
	case UAR_VIEW_CALL_ENDED: return on_call_ended(a, c);
	case UAR_VIEW_SUPERSEDED: return on_superseded(a);
	case UAR_VIEW_WAITING: return on_waiting(a);
	case UAR_VIEW_ENDED: return finish(a);
	default: return UAR_OK;
	}
}

static uar_err encode(void *state, const struct uar_event *ev, struct uar_arena *scratch,
		      struct uar_frames *out)
{
	return openai_encode(state, ev, scratch, out, on_change);
}

/* A reader that goes on with a run is shown what follows. */
static uar_err join(void *state, struct uar_frames *out)
{
	struct openai *a = state;
	uar_err e;

	a->out = out;
	a->over = a->handed = false;
	a->shown = a->part;
	a->items = NULL;
	a->item_count = a->number = 0;
	e = begin_response(a);
	a->out = NULL;
	return e;
}

static uar_err leave(void *state, struct uar_frames *out)
{
	struct openai *a = state;
	uar_err e;

	a->out = out;
	open_event(a, "error");
	uar_jw_cstr(&a->w, "code", "UNAVAILABLE");
	uar_jw_cstr(&a->w, "message",
		    "the stream ends before the run does; GET the response later");
	uar_jw_null(&a->w, "param");
	e = close_event(a);
	a->out = NULL;
	return e;
}

static uar_err answer(void *state, struct uar_buf *out, int *out_status)
{
	struct uar_jw w = uar_jw_begin(out);

	const struct openai *a = state;
	struct uar_error missing = { .code = UAR_ENOTFOUND };

	if (a->part < a->shown) {
		*out_status = 404;
		uar_openai_error(out, 404, "NOT_FOUND", &missing);
		return out->err;
	}
	*out_status = 200; /* a response that failed says so itself */
	put_response(state, &w, NULL);
	return uar_jw_end(&w);
}

const struct uar_dialect uar_openai_responses = {
	.name = "openai-responses",
	.state_size = sizeof(struct openai),
	.begin = openai_begin,
	.encode = encode,
	.join = join,
	.leave = leave,
	.answer = answer,
	.end = openai_end,
};
