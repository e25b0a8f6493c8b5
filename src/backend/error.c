/* error.c - the five errors of the contract and that of a wrong call, each with its line of
 * display. */
#include "backend/int.h"

#include <sys/wait.h>

struct uaa_error {
	atomic_int refs;
	uaa_status code;
	uaa_cause cause;
	bool has_status;
	int wait_status;
	struct uar_buf kind, what, display;
	struct uar_buf words, withheld;
};

enum { DISPLAY_BYTES = 2 * UAA_MAX_MESSAGE, DISPLAY_GROWTH = 7 }; /* \u0001 for one byte */

/* Keys come from callers: what would steer a terminal or break a line is written as \u00xx. */
static void add_visible(struct uar_buf *out, uar_str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		unsigned char next = i + 1 < s.n ? (unsigned char)s.p[i + 1] : 0;

		if (c < 0x20 || c == 0x7f) {
			uar_buf_printf(out, "\\u%04x", c);
		} else if (c == 0xc2 && next >= 0x80 && next < 0xa0) {
			uar_buf_printf(out, "\\u%04x", next);
			i++;
		} else {
			uar_buf_add(out, s.p + i, 1);
		}
	}
}

static void render(struct uaa_error *e)
{
	const char *head = NULL;

	switch (e->code) {
	case UAA_E_UNKNOWN_BACKEND:
		uar_buf_printf(&e->display, "unknown backend: ");
		add_visible(&e->display, uar_buf_str(&e->kind));
		return;
	case UAA_E_UNSUPPORTED_CAPABILITY:
		uar_buf_printf(&e->display, "unsupported capability for ");
		add_visible(&e->display, uar_buf_str(&e->kind));
		uar_buf_printf(&e->display, ": ");
		break;
	case UAA_E_INVALID_AGENT_KIND: head = "invalid agent kind: "; break;
	case UAA_E_INVALID_REQUEST: head = "invalid request: "; break;
	case UAA_E_ARG: head = "invalid argument: "; break;
	default: head = "backend error: "; break;
	}
	uar_buf_add_str(&e->display, uar_str_c(head));
	add_visible(&e->display, uar_buf_str(&e->what));
}

static void destroy(struct uaa_error *e)
{
	uar_buf_fini(&e->kind);
	uar_buf_fini(&e->what);
	uar_buf_fini(&e->display);
	uar_buf_fini(&e->words);
	uar_buf_fini(&e->withheld);
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

static uaa_error *make(uaa_status code, uaa_str agent_kind, uaa_str what)
{
	struct uaa_error *e = uar_zalloc(sizeof *e);

	if (!e)
		return NULL;
	e->refs = 1;
	e->code = code;
	e->kind = uar_buf_make(DISPLAY_BYTES);
	e->what = uar_buf_make(DISPLAY_BYTES);
	e->display = uar_buf_make(DISPLAY_GROWTH * DISPLAY_BYTES);
	e->words = e->withheld = uar_buf_make(DISPLAY_BYTES);
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

uaa_error *uaa_error_new(uaa_status code, uaa_str agent_kind, uaa_str what)
{
	bool known = code >= UAA_E_UNKNOWN_BACKEND && code <= UAA_E_BACKEND;

	return known ? make(code, agent_kind, what) : NULL;
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

/* The last bytes that fit: the reason stands at the end. */
static uar_str tail_of(uar_str s, size_t max)
{
	if (s.n > max)
		s = uar_str_from(s, s.n - max);
	while (s.n && ((unsigned char)s.p[0] & 0xc0) == 0x80)
		s = uar_str_from(s, 1);
	return s;
}

uaa_error *uab_error_detailed(uaa_cause cause, uaa_str message, const struct uab_details *d)
{
	uaa_error *e = uab_error_caused(cause, message);

	if (!e)
		return NULL;
	e->has_status = d->has_status;
	e->wait_status = d->wait_status;
	if (d->words.n) /* a third: what is no UTF-8 grows by that much */
		put_text(&e->words, uab_pub(tail_of(d->words, UAA_MAX_MESSAGE / 3)),
			 UAA_MAX_MESSAGE);
	if (d->withheld.n)
		put_text(&e->withheld, uab_pub(d->withheld), UAA_MAX_MESSAGE);
	if (!e->words.err && !e->withheld.err)
		return e;
	destroy(e);
	return NULL;
}

bool uab_error_status(const uaa_error *e, int *out)
{
	if (!e || !e->has_status)
		return false;
	*out = e->wait_status;
	return true;
}

bool uaa_error_exited(const uaa_error *e, int *out_code)
{
	int status;

	if (!uab_error_status(e, &status) || !WIFEXITED(status))
		return false;
	if (out_code)
		*out_code = WEXITSTATUS(status);
	return true;
}

bool uaa_error_signaled(const uaa_error *e, int *out_signal)
{
	int status;

	if (!uab_error_status(e, &status) || !WIFSIGNALED(status))
		return false;
	if (out_signal)
		*out_signal = WTERMSIG(status);
	return true;
}

uaa_str uaa_error_words(const uaa_error *e)
{
	return e && e->words.n ? field(&e->words) : UAB_NONE;
}

uaa_str uaa_error_withheld(const uaa_error *e)
{
	return e && e->withheld.n ? field(&e->withheld) : UAB_NONE;
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
		uaa_error *e = make(code, uab_pub(kind), uab_pub(what));

		if (!e)
			return UAA_E_NOMEM;
		*out = e;
	}
	return code;
}

uaa_status uab_wrong(uaa_error **out, const char *message)
{
	return uab_fail(out, UAA_E_ARG, UAR_STR_NONE, uar_str_c(message));
}

uaa_status uab_invalid(uaa_error **out, const char *message)
{
	return uab_fail(out, UAA_E_INVALID_REQUEST, UAR_STR_NONE, uar_str_c(message));
}
