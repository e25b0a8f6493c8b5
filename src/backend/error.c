/* error.c - the five errors of the contract, each with its one line of display. */
#include "backend/int.h"

struct uaa_error {
	atomic_int refs;
	uaa_status code;
	uaa_cause cause;
	struct uar_buf kind, what, display;
};

enum { DISPLAY_BYTES = 2 * UAA_MAX_MESSAGE };

static void render(struct uaa_error *e)
{
	const char *head = NULL;

	switch (e->code) {
	case UAA_E_UNKNOWN_BACKEND:
		uar_buf_printf(&e->display, "unknown backend: ");
		uar_buf_add_str(&e->display, uar_buf_str(&e->kind));
		return;
	case UAA_E_UNSUPPORTED_CAPABILITY:
		uar_buf_printf(&e->display, "unsupported capability for ");
		uar_buf_add_str(&e->display, uar_buf_str(&e->kind));
		uar_buf_printf(&e->display, ": ");
		break;
	case UAA_E_INVALID_AGENT_KIND: head = "invalid agent kind: "; break;
	case UAA_E_INVALID_REQUEST: head = "invalid request: "; break;
	default: head = "backend error: "; break;
	}
	uar_buf_add_str(&e->display, uar_str_c(head));
	uar_buf_add_str(&e->display, uar_buf_str(&e->what));
}

static void destroy(struct uaa_error *e)
{
	uar_buf_fini(&e->kind);
	uar_buf_fini(&e->what);
	uar_buf_fini(&e->display);
	uar_free(e);
}

static void put_text(struct uar_buf *b, uaa_str s, size_t max)
{
	struct uar_buf clean = uar_buf_make(3 * s.len + 1);

	uab_lossy(uab_str(s), &clean);
	uab_truncate(uar_buf_str(&clean), max, b);
	if (clean.err)
		b->err = clean.err;
	uar_buf_fini(&clean);
	uar_buf_add(b, "", 0); /* so that even an empty text has memory behind it */
}

uaa_error *uaa_error_new(uaa_status code, uaa_str agent_kind, uaa_str what)
{
	struct uaa_error *e;

	if (code < UAA_E_UNKNOWN_BACKEND || code > UAA_E_BACKEND)
		return NULL;
	e = uar_zalloc(sizeof *e);
	if (!e)
		return NULL;
	e->refs = 1;
	e->code = code;
	e->kind = uar_buf_make(DISPLAY_BYTES);
	e->what = uar_buf_make(DISPLAY_BYTES);
	e->display = uar_buf_make(3 * DISPLAY_BYTES);
	if (code <= UAA_E_UNSUPPORTED_CAPABILITY)
		put_text(&e->kind, agent_kind, UAA_MAX_MESSAGE);
	if (code != UAA_E_UNKNOWN_BACKEND)
		put_text(&e->what, what, UAA_MAX_MESSAGE);
	render(e);
	if (e->kind.err || e->what.err || e->display.err) {
		destroy(e);
		return NULL;
	}
	return e;
}

static uaa_str field(const struct uar_buf *b)
{
	return uab_pub(uar_buf_str(b));
}

uaa_status uaa_error_code(const uaa_error *e)
{
	return e ? e->code : UAA_E_NOMEM;
}

uaa_cause uaa_error_cause(const uaa_error *e)
{
	return e ? e->cause : UAA_CAUSE_UNKNOWN;
}

uaa_error *uab_error_caused(uaa_cause cause, uaa_str message)
{
	uaa_error *e = uaa_error_new(UAA_E_BACKEND, UAB_NONE, message);

	if (e)
		e->cause = cause;
	return e;
}

uaa_str uaa_error_agent_kind(const uaa_error *e)
{
	return e && e->code <= UAA_E_UNSUPPORTED_CAPABILITY ? field(&e->kind) : UAB_NONE;
}

uaa_str uaa_error_capability(const uaa_error *e)
{
	return e && e->code == UAA_E_UNSUPPORTED_CAPABILITY ? field(&e->what) : UAB_NONE;
}

uaa_str uaa_error_message(const uaa_error *e)
{
	return e && e->code >= UAA_E_INVALID_AGENT_KIND ? field(&e->what) : UAB_NONE;
}

uaa_str uaa_error_display(const uaa_error *e)
{
	return e ? field(&e->display) : UAB_STR("out of memory");
}

uaa_error *uaa_error_ref(uaa_error *e)
{
	if (e)
		atomic_fetch_add(&e->refs, 1);
	return e;
}

void uaa_error_unref(uaa_error *e)
{
	if (e && atomic_fetch_sub(&e->refs, 1) == 1)
		destroy(e);
}

uaa_status uab_fail(uaa_error **out, uaa_status code, uar_str kind, uar_str what)
{
	if (out) {
		uaa_error *e = uaa_error_new(code, uab_pub(kind), uab_pub(what));

		if (!e)
			return UAA_E_NOMEM;
		*out = e;
	}
	return code;
}

uaa_status uab_invalid(uaa_error **out, const char *message)
{
	return uab_fail(out, UAA_E_INVALID_REQUEST, UAR_STR_NONE, uar_str_c(message));
}
