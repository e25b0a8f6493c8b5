/* openai.c - what chat completions and responses have in common. */
#include "proto/openai_int.h"

#include "base/sizes.h"

/* --- errors ------------------------------------------------------------------------------- */

static const char *error_type(int status)
{
	return status == 401   ? "authentication_error"
	       : status == 403 ? "permission_error"
	       : status == 429 ? "rate_limit_error"
	       : status >= 500 ? "server_error"
			       : "invalid_request_error";
}

/* "/messages/0" is "messages.0"; headers and queries keep their names. */
static void put_param(struct uar_jw *w, const char *where)
{
	char param[sizeof((struct uar_error *)0)->where];
	size_t n = 0;

	if (where[0] != '/') {
		uar_jw_null(w, "param");
		return;
	}
	for (const char *p = where + 1; *p; p++)
		param[n++] = *p == '/' ? '.' : *p;
	uar_jw_str(w, "param", uar_str_n(param, n));
}

void uar_openai_error(struct uar_buf *out, int status, const char *code,
		      const struct uar_error *error)
{
	struct uar_jw w = uar_jw_begin(out);
	bool model = status == 404 && strcmp(error->where, "/model") == 0;
	uar_err e;

	uar_jw_obj(&w, NULL);
	uar_jw_obj(&w, "error");
	uar_jw_cstr(&w, "message", error->text[0] ? error->text : uar_err_text(error->code));
	uar_jw_cstr(&w, "type", error_type(status));
	put_param(&w, error->where);
	uar_jw_cstr(&w, "code", model ? "model_not_found" : code);
	uar_jw_close(&w);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	out->err = out->err ? out->err : e;
}

int openai_failure_status(const struct openai *a)
{
	uar_str code = a->view.end_code;

	if (a->view.end == UAR_VIEW_CANCELLED)
		return 409;
	if (uar_str_is(code, "RATE_LIMITED"))
		return 429;
	return uar_str_is(code, "TIMEOUT") ? 504 : 502;
}

void openai_put_failure(struct openai *a, struct uar_jw *w, const char *key)
{
	bool cancelled = a->view.end == UAR_VIEW_CANCELLED;
	uar_str message = a->view.end_message;

	uar_jw_obj(w, key);
	uar_jw_str(w, "message",
		   message.n   ? message
		   : cancelled ? UAR_STR("the run was cancelled")
			       : UAR_STR("the run failed"));
	uar_jw_cstr(w, "type", error_type(openai_failure_status(a)));
	uar_jw_null(w, "param");
	uar_jw_str(w, "code", cancelled ? UAR_STR("cancelled") : a->view.end_code);
	uar_jw_close(w);
}

/* --- the run ---------------------------------------------------------------------------------- */

void openai_put_id(const struct openai *a, struct uar_jw *w, const char *prefix)
{
	char id[UAR_LIMIT_ID_BYTES + 48];
	uar_str run = uar_str_utf8_prefix(a->view.run_id, UAR_LIMIT_ID_BYTES);
	int n = a->shown ? snprintf(id, sizeof id, "%s%.*s.%lld", prefix, UAR_FMT(run),
				    (long long)a->shown + 1)
			 : snprintf(id, sizeof id, "%s%.*s", prefix, UAR_FMT(run));

	uar_jw_str(w, "id", uar_str_n(id, (size_t)n));
}

bool openai_hands_over(const struct openai *a, const struct uar_view_change *c)
{
	return c->kind == UAR_VIEW_WAITING && openai_waits_for_client(a);
}

const struct uar_view_message *openai_first(const struct openai *a)
{
	return a->told ? a->told->next : a->view.first;
}

bool openai_is_client_call(const struct openai *a, const struct uar_view_call *call)
{
	(void)a;
	return call->client;
}

bool openai_waits_for_client(const struct openai *a)
{
	const struct uar_view_action *x = a->view.actions;

	for (; x; x = x->next)
		if (!uar_str_is(x->type, "client_tool"))
			return false;
	return a->view.actions && a->view.waiting;
}

const char *openai_finish_reason(const struct openai *a)
{
	uar_str reason = a->view.finish_reason;

	if (openai_waits_for_client(a))
		return "tool_calls";
	if (uar_str_is(reason, "length"))
		return "length";
	return uar_str_is(reason, "content_filter") ? "content_filter" : "stop";
}

struct uar_view_usage openai_usage(const struct openai *a)
{
	struct uar_view_usage sum = { .cached = -1 };

	for (const struct uar_view_usage *u = a->view.usage; u; u = u->next) {
		sum.input += u->input;
		sum.output += u->output;
		sum.total += u->total;
		if (u->cached >= 0)
			sum.cached = u->cached + (sum.cached > 0 ? sum.cached : 0);
	}
	return sum;
}

/* One line: a prompt may hold any character. */
uar_err openai_put_waiting(struct openai *a)
{
	for (const struct uar_view_action *x = a->view.actions; x; x = x->next) {
		uar_buf_printf(a->out->out, ": waiting for action %.*s: ", UAR_FMT(x->id));
		for (size_t i = 0; i < x->prompt.n; i++)
			uar_buf_add_char(a->out->out, (unsigned char)x->prompt.p[i] < 0x20
							      ? ' '
							      : x->prompt.p[i]);
		uar_buf_add_str(a->out->out, UAR_STR("\n\n"));
	}
	return a->out->out->err;
}

bool uar_openai_hides(const struct uar_event *ev, struct uar_arena *scratch)
{
	static const char mark[] = "\"store\":false";
	const struct uar_json *p = NULL;

	if (ev->cls != UAR_EV_TURN_SUBMITTED ||
	    !memmem(ev->payload.p, ev->payload.n, mark, sizeof mark - 1) ||
	    uar_event_payload(ev, scratch, &p, NULL))
		return false;
	return !uar_json_bool(uar_json_pointer(p, UAR_STR("/metadata/context/store")), true);
}

uar_err openai_begin(void *state, const struct uar_dialect_options *o)
{
	struct openai *a = state;

	*a = (struct openai){ .o = *o, .folding = o->fold_until > 0, .shown = o->part };
	uar_view_init(&a->view);
	return UAR_OK;
}

void openai_end(void *state)
{
	struct openai *a = state;

	uar_view_fini(&a->view);
}

uar_err openai_encode(struct openai *a, const struct uar_event *ev, struct uar_arena *scratch,
		      struct uar_frames *out, uar_view_fn *changed)
{
	uar_err e;

	if (!a->created_us)
		a->created_us = ev->time_us;
	a->hidden = a->hidden || uar_openai_hides(ev, scratch);
	a->out = out;
	e = uar_view_apply(&a->view, ev, scratch, changed, a);
	a->out = NULL;
	return e;
}
