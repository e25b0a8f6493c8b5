/* openai_chat.c - a run as one chat completion, in chunks or whole. */
#include "proto/openai_int.h"

#include "event/sizes.h"

typedef const struct uar_view_change change_t;

static void put_head(struct openai *a, struct uar_jw *w, const char *object)
{
	openai_put_id(a, w, UAR_OPENAI_CHAT_ID);
	uar_jw_cstr(w, "object", object);
	uar_jw_int(w, "created", a->created_us / 1000000);
	uar_jw_str(w, "model", a->o.model);
}

static void put_usage(struct openai *a, struct uar_jw *w)
{
	struct uar_view_usage u = openai_usage(a);

	uar_jw_obj(w, "usage");
	uar_jw_int(w, "prompt_tokens", u.input);
	uar_jw_int(w, "completion_tokens", u.output);
	uar_jw_int(w, "total_tokens", u.total);
	if (u.cached >= 0) {
		uar_jw_obj(w, "prompt_tokens_details");
		uar_jw_int(w, "cached_tokens", u.cached);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

/* --- chunks ---------------------------------------------------------------------------------- */

static void open_chunk(struct openai *a)
{
	uar_frame_open(a->out, NULL);
	a->w = uar_jw_begin(a->out->out);
	uar_jw_obj(&a->w, NULL);
	put_head(a, &a->w, "chat.completion.chunk");
	uar_jw_arr(&a->w, "choices");
	uar_jw_obj(&a->w, NULL);
	uar_jw_int(&a->w, "index", 0);
	uar_jw_obj(&a->w, "delta");
}

/* The delta is complete. */
static uar_err close_chunk(struct openai *a, const char *finish_reason)
{
	uar_jw_close(&a->w);
	uar_jw_null(&a->w, "logprobs");
	if (finish_reason)
		uar_jw_cstr(&a->w, "finish_reason", finish_reason);
	else
		uar_jw_null(&a->w, "finish_reason");
	uar_jw_close(&a->w);
	uar_jw_close(&a->w);
	if (a->o.usage)
		uar_jw_null(&a->w, "usage");
	uar_jw_close(&a->w);
	return uar_frame_close(a->out, &a->w);
}

static uar_err put_role(struct openai *a)
{
	open_chunk(a);
	uar_jw_cstr(&a->w, "role", "assistant");
	uar_jw_cstr(&a->w, "content", "");
	return close_chunk(a, NULL);
}

static uar_err put_text_chunk(struct openai *a, enum uar_view_kind kind, uar_str text)
{
	open_chunk(a);
	uar_jw_str(&a->w, kind == UAR_VIEW_TEXT ? "content" : "reasoning_content", text);
	return close_chunk(a, NULL);
}

/* What was folded so far, as the run has it now. */
static uar_err stop_folding(struct openai *a)
{
	uar_err e = a->view.cut ? UAR_ETOOBIG : put_role(a);

	a->folding = false;
	a->begun = true;
	for (const struct uar_view_message *m = openai_first(a); m && !e; m = m->next)
		if ((m->kind == UAR_VIEW_TEXT || m->kind == UAR_VIEW_REASONING) && m->text.n)
			e = put_text_chunk(a, m->kind, uar_buf_str(&m->text));
	return e;
}

/* Calls that are handed to the client so far, without this one. */
static int64_t count_calls_before(const struct openai *a, const struct uar_view_call *call)
{
	int64_t n = 0;

	for (const struct uar_view_message *m = a->view.first; m; m = m->next)
		for (const struct uar_view_call *c = m->calls; c && c != call; c = c->next)
			n += openai_is_client_call(a, c) && !c->ended;
	return n;
}

static void put_call(struct uar_jw *w, const struct uar_view_call *call, int64_t index)
{
	uar_jw_obj(w, NULL);
	if (index >= 0)
		uar_jw_int(w, "index", index);
	uar_jw_str(w, "id", call->id);
	uar_jw_cstr(w, "type", "function");
	uar_jw_obj(w, "function");
	uar_jw_str(w, "name", call->name);
	uar_jw_str(w, "arguments", uar_buf_str(&call->args));
	uar_jw_close(w);
	uar_jw_close(w);
}

static uar_err put_call_chunk(struct openai *a, const struct uar_view_call *call)
{
	open_chunk(a);
	uar_jw_arr(&a->w, "tool_calls");
	put_call(&a->w, call, count_calls_before(a, call));
	uar_jw_close(&a->w);
	return close_chunk(a, NULL);
}

static uar_err put_calls(struct openai *a)
{
	uar_err e = UAR_OK;

	for (const struct uar_view_message *m = a->view.first; m; m = m->next)
		for (const struct uar_view_call *c = m->calls; c && !e; c = c->next)
			if (openai_is_client_call(a, c) && !c->ended)
				e = put_call_chunk(a, c);
	return e;
}

static uar_err put_usage_chunk(struct openai *a)
{
	uar_frame_open(a->out, NULL);
	a->w = uar_jw_begin(a->out->out);
	uar_jw_obj(&a->w, NULL);
	put_head(a, &a->w, "chat.completion.chunk");
	uar_jw_arr(&a->w, "choices");
	uar_jw_close(&a->w);
	put_usage(a, &a->w);
	uar_jw_close(&a->w);
	return uar_frame_close(a->out, &a->w);
}

static uar_err put_done(struct openai *a)
{
	uar_buf_add_str(a->out->out, UAR_STR("data: [DONE]\n\n"));
	a->out->closed = true;
	a->over = true;
	return a->out->out->err;
}

/* Those of all texts that this request shows, as one text; how many there are. */
static size_t put_cites(struct openai *a, struct uar_jw *w, bool count_only)
{
	int64_t before = 0;
	size_t n = 0;

	for (const struct uar_view_message *m = openai_first(a); m; m = m->next) {
		struct openai_cites cites = { .n = 0 };
		struct uar_arena arena;
		uar_str text = uar_buf_str(&m->text);

		if (m->kind != UAR_VIEW_TEXT)
			continue;
		uar_arena_init(&arena, 0);
		if (openai_find_cites(m, &arena, &cites))
			w->err = UAR_ENOMEM;
		for (size_t i = 0; i < cites.n && !count_only; i++)
			openai_put_chat_cite(w, &cites.at[i], before);
		n += cites.n;
		for (size_t i = 0; i < text.n; i++)
			before += ((unsigned char)text.p[i] & 0xc0) != 0x80;
		uar_arena_fini(&arena);
	}
	return n;
}

static void put_annotations(struct openai *a, struct uar_jw *w)
{
	if (!put_cites(a, w, true))
		return;
	uar_jw_arr(w, "annotations");
	put_cites(a, w, false);
	uar_jw_close(w);
}

static uar_err finish(struct openai *a)
{
	uar_err e;

	open_chunk(a);
	put_annotations(a, &a->w);
	e = close_chunk(a, openai_finish_reason(a));
	if (!e && a->o.usage)
		e = put_usage_chunk(a);
	return e ? e : put_done(a);
}

static uar_err fail(struct openai *a)
{
	uar_err e;

	uar_frame_open(a->out, NULL);
	a->w = uar_jw_begin(a->out->out);
	uar_jw_obj(&a->w, NULL);
	openai_put_failure(a, &a->w, "error");
	uar_jw_close(&a->w);
	e = uar_frame_close(a->out, &a->w);
	return e ? e : put_done(a);
}

static bool ends_request(const struct openai *a, change_t *c)
{
	return c->kind == UAR_VIEW_ENDED || openai_hands_over(a, c);
}

static uar_err on_change(void *ctx, change_t *c)
{
	struct openai *a = ctx;
	uar_err e = UAR_OK;

	a->part += openai_hands_over(a, c);
	if (a->folding && !ends_request(a, c))
		return UAR_OK;
	if (a->folding) {
		e = stop_folding(a);
	} else if (!a->begun) {
		a->begun = true;
		e = put_role(a);
	}
	if (e || a->over)
		return e;
	switch (c->kind) {
	case UAR_VIEW_MESSAGE_GREW: return put_text_chunk(a, c->message->kind, c->text);
	case UAR_VIEW_WAITING:
		if (!openai_waits_for_client(a))
			return openai_put_waiting(a);
		e = put_calls(a);
		return e ? e : finish(a);
	case UAR_VIEW_ENDED: return a->view.end == UAR_VIEW_DONE ? finish(a) : fail(a);
	default: return UAR_OK;
	}
}

static uar_err encode(void *state, const struct uar_event *ev, struct uar_arena *scratch,
		      struct uar_frames *out)
{
	struct openai *a = state;
	uar_err e;

	out->run_sequence = 0; /* chunks have no ids */
	e = openai_encode(a, ev, scratch, out, on_change);
	if (e || !a->folding || ev->run_sequence < a->o.fold_until)
		return e;
	a->out = out;
	e = stop_folding(a);
	if (!e && a->view.waiting)
		e = openai_put_waiting(a);
	a->out = NULL;
	return e;
}

/* A reader that goes on with a run is shown what follows. */
static uar_err join(void *state, struct uar_frames *out)
{
	struct openai *a = state;
	uar_err e;

	a->out = out;
	a->begun = true;
	a->over = false;
	a->told = a->view.last;
	a->shown = a->part;
	e = put_role(a);
	a->out = NULL;
	return e;
}

static uar_err leave(void *state, struct uar_frames *out)
{
	struct uar_error error = { .code = UAR_EDRAINING };

	(void)state;
	uar_buf_add_str(out->out, UAR_STR("data: "));
	uar_openai_error(out->out, 503, "UNAVAILABLE", &error);
	uar_buf_add_str(out->out, UAR_STR("\n\n"));
	return out->out->err;
}

/* --- the whole -------------------------------------------------------------------------------- */

static void put_text(struct openai *a, struct uar_jw *w, const char *key, enum uar_view_kind kind)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_EVENT_BYTES + a->view.bytes * 2);

	for (const struct uar_view_message *m = openai_first(a); m; m = m->next)
		if (m->kind == kind)
			uar_buf_add_str(&text, uar_buf_str(&m->text));
	if (text.n)
		uar_jw_str(w, key, uar_buf_str(&text));
	else if (kind == UAR_VIEW_TEXT)
		uar_jw_null(w, key);
	w->err = w->err ? w->err : text.err;
	uar_buf_fini(&text);
}

static void put_message(struct openai *a, struct uar_jw *w)
{
	uar_jw_obj(w, "message");
	uar_jw_cstr(w, "role", "assistant");
	put_text(a, w, "content", UAR_VIEW_TEXT);
	put_text(a, w, "reasoning_content", UAR_VIEW_REASONING);
	uar_jw_null(w, "refusal");
	put_annotations(a, w);
	if (openai_waits_for_client(a)) {
		uar_jw_arr(w, "tool_calls");
		for (const struct uar_view_message *m = a->view.first; m; m = m->next)
			for (const struct uar_view_call *c = m->calls; c; c = c->next)
				if (openai_is_client_call(a, c) && !c->ended)
					put_call(w, c, -1);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static uar_err answer(void *state, struct uar_buf *out, int *out_status)
{
	struct openai *a = state;
	struct uar_jw w = uar_jw_begin(out);

	*out_status = 200;
	uar_jw_obj(&w, NULL);
	if (a->view.end == UAR_VIEW_FAILED || a->view.end == UAR_VIEW_CANCELLED) {
		*out_status = openai_failure_status(a);
		openai_put_failure(a, &w, "error");
	} else {
		put_head(a, &w, "chat.completion");
		uar_jw_arr(&w, "choices");
		uar_jw_obj(&w, NULL);
		uar_jw_int(&w, "index", 0);
		put_message(a, &w);
		uar_jw_null(&w, "logprobs");
		uar_jw_cstr(&w, "finish_reason", openai_finish_reason(a));
		uar_jw_close(&w);
		uar_jw_close(&w);
		put_usage(a, &w);
	}
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

const struct uar_dialect uar_openai_chat = {
	.name = "openai-chat",
	.state_size = sizeof(struct openai),
	.begin = openai_begin,
	.encode = encode,
	.join = join,
	.leave = leave,
	.answer = answer,
	.end = openai_end,
};
