/* event.c - events under their bounds: split, cut, replace, and never anything
 * that its kind forbids. */
#include "backend/int.h"

#define OVERSIZE "{\"dropped\":{\"reason\":\"oversize\"}}"

struct uaa_event *uab_event_new(const uaa_kind *agent, const uaa_event_spec *s)
{
	const uaa_str from[] = { agent->id, s->channel, s->text, s->message, s->data_json };
	size_t size = sizeof(struct uaa_event);
	struct uaa_event *ev;
	char *at;

	for (size_t i = 0; i < ARRAY_LEN(from); i++)
		size += from[i].ptr ? from[i].len + 1 : 0;
	ev = uar_alloc(size);
	if (!ev)
		return NULL;
	*ev = (struct uaa_event){ .kind = s->kind, .size = size };
	ev->refs = 1;
	at = ev->bytes;
	uaa_str *const to[] = { &ev->agent, &ev->channel, &ev->text, &ev->message, &ev->data };
	for (size_t i = 0; i < ARRAY_LEN(from); i++) {
		if (!from[i].ptr)
			continue;
		*to[i] = (uaa_str){ at, from[i].len };
		if (from[i].len)
			memcpy(at, from[i].ptr, from[i].len);
		at += from[i].len;
		*at++ = 0;
	}
	return ev;
}

bool uab_bound_data(uaa_str json, bool trusted, struct uar_buf *out, uaa_str *result)
{
	struct uar_arena arena;
	bool fits = true;

	if (!json.ptr) {
		*result = UAB_NONE;
		return true;
	}
	if (trusted && json.len <= UAA_MAX_DATA) {
		*result = json;
		return true;
	}
	if (!trusted) {
		*out = uar_buf_make(UAA_MAX_DATA);
		uar_arena_init(&arena, 0);
		fits = uab_compact(uab_str(json), &arena, out);
		uar_arena_fini(&arena);
		if (out->err == UAR_ENOMEM)
			return false;
	}
	if (trusted || !fits) {
		*result = UAB_STR(OVERSIZE);
		return true;
	}
	*result = uab_pub(uar_buf_str(out));
	return true;
}

/* Text that is ours to cut: valid UTF-8 and within its bound. */
static uaa_str clean_text(uaa_str s, struct uar_buf *buf)
{
	if (!s.ptr || uar_utf8_valid(uab_str(s)))
		return s;
	*buf = uar_buf_make(3 * s.len + 1);
	uab_lossy(uab_str(s), buf);
	return uab_pub(uar_buf_str(buf));
}

static uaa_str bound_message(uaa_str s, struct uar_buf *buf)
{
	if (!s.ptr || s.len <= UAA_MAX_MESSAGE)
		return s;
	*buf = uar_buf_make(UAA_MAX_MESSAGE);
	uab_truncate(uab_str(s), UAA_MAX_MESSAGE, buf);
	return uab_pub(uar_buf_str(buf));
}

static bool put_text(const uaa_kind *agent, uaa_event_spec s, uab_event_put *put, void *ctx)
{
	uar_str rest = uab_str(s.text);

	do {
		size_t n = uab_split(rest, UAA_MAX_TEXT);
		struct uaa_event *ev;

		s.text = (uaa_str){ rest.p, n };
		ev = uab_event_new(agent, &s);
		if (!ev || !put(ctx, ev))
			return false;
		rest = uar_str_from(rest, n);
	} while (rest.n);
	return true;
}

static bool put_one(const uaa_kind *agent, const uaa_event_spec *s, uab_event_put *put, void *ctx)
{
	struct uaa_event *ev = uab_event_new(agent, s);

	return ev && put(ctx, ev);
}

/* The rules of each kind: what it must and must not carry. */
static void apply_kind(uaa_event_spec *s)
{
	if (s->kind < UAA_EV_TEXT_OUTPUT || s->kind > UAA_EV_UNKNOWN)
		s->kind = UAA_EV_UNKNOWN;
	if (s->kind == UAA_EV_TEXT_OUTPUT) {
		s->message = UAB_NONE;
		if (!s->text.ptr)
			s->text = UAB_STR("");
	} else {
		s->text = UAB_NONE;
	}
	if (s->kind == UAA_EV_ERROR && !s->message.ptr)
		s->message = UAB_STR("error");
	if (s->channel.len > UAA_MAX_CHANNEL || !uar_utf8_valid(uab_str(s->channel)))
		s->channel = UAB_NONE;
}

bool uab_event_make(const uaa_kind *agent, const uaa_event_spec *in, bool trusted,
		    uab_event_put *put, void *ctx)
{
	struct uar_buf text = { 0 }, message = { 0 }, cut = { 0 }, data = { 0 };
	uaa_event_spec s = *in;
	bool ok;

	apply_kind(&s);
	if (!trusted) /* else it comes from the JSON reader, which takes no other */
		s.text = clean_text(s.text, &text);
	s.message = bound_message(clean_text(s.message, &message), &cut);
	ok = uab_bound_data(s.data_json, trusted, &data, &s.data_json);
	ok = ok && !text.err && !message.err && !cut.err;
	if (ok && s.kind == UAA_EV_TEXT_OUTPUT)
		ok = put_text(agent, s, put, ctx);
	else if (ok)
		ok = put_one(agent, &s, put, ctx);
	uar_buf_fini(&text);
	uar_buf_fini(&message);
	uar_buf_fini(&cut);
	uar_buf_fini(&data);
	return ok;
}

/* --- what a reader sees --- */

uaa_event_kind uaa_event_get_kind(const uaa_event *ev)
{
	return ev ? ev->kind : UAA_EV_UNKNOWN;
}

uaa_str uaa_event_agent_kind(const uaa_event *ev)
{
	return ev ? ev->agent : UAB_NONE;
}

uaa_str uaa_event_channel(const uaa_event *ev)
{
	return ev ? ev->channel : UAB_NONE;
}

uaa_str uaa_event_text(const uaa_event *ev)
{
	return ev ? ev->text : UAB_NONE;
}

uaa_str uaa_event_message(const uaa_event *ev)
{
	return ev ? ev->message : UAB_NONE;
}

uaa_str uaa_event_data_json(const uaa_event *ev)
{
	return ev ? ev->data : UAB_NONE;
}

uaa_event *uaa_event_ref(uaa_event *ev)
{
	if (ev)
		atomic_fetch_add(&ev->refs, 1);
	return ev;
}

void uaa_event_unref(uaa_event *ev)
{
	if (ev && atomic_fetch_sub(&ev->refs, 1) == 1)
		uar_free(ev);
}
