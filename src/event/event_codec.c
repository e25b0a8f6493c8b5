/* event_codec.c - the envelope as JSON, and back.
 *
 * Members are written in one fixed order, and the reader looks for the next
 * member where the last one was found: reading our own rows compares each key
 * once. Anything else is found too, only slower. */
#include "event/event.h"

#include "base/sha256.h"
#include "event/limits.h"
#include "json/limits.h"

enum member {
	MEMBER_TYPE,
	MEMBER_EVENT_ID,
	MEMBER_TIMESTAMP,
	MEMBER_SEQUENCE,
	MEMBER_RUN_SEQUENCE,
	MEMBER_SCHEMA_VERSION,
	MEMBER_IDS,
	MEMBER_PAYLOAD = MEMBER_IDS + UAR_ID_COUNT,
	MEMBER_REFS,
	MEMBER_COUNT
};

#define NAME(LITERAL)                                                                              \
	{                                                                                          \
		LITERAL, sizeof(LITERAL) - 1                                                       \
	}
static const uar_str members[MEMBER_COUNT] = {
	[MEMBER_TYPE] = NAME("type"),
	[MEMBER_EVENT_ID] = NAME("event_id"),
	[MEMBER_TIMESTAMP] = NAME("timestamp"),
	[MEMBER_SEQUENCE] = NAME("sequence"),
	[MEMBER_RUN_SEQUENCE] = NAME("run_sequence"),
	[MEMBER_SCHEMA_VERSION] = NAME("schema_version"),
#define I(ID, FIELD) [MEMBER_IDS + UAR_ID_##ID] = NAME(FIELD),
#include "event/ids.def"
#undef I
	[MEMBER_PAYLOAD] = NAME("payload"),
	[MEMBER_REFS] = NAME("refs"),
};

static void write_head(struct uar_jw *w, const char *key, const struct uar_event *ev, uint32_t omit)
{
	uar_jw_obj(w, key);
	uar_jw_str(w, "type", uar_event_type(ev));
	uar_jw_str(w, "event_id", ev->event_id);
	if (!(omit & UAR_OMIT_TIME))
		uar_jw_time(w, "timestamp", ev->time_us);
}

static void write_rest(struct uar_jw *w, const struct uar_event *ev, uint32_t omit)
{
	for (unsigned i = 0; i < UAR_ID_COUNT; i++)
		if (ev->ids[i].n && !(omit & UAR_ID_BIT(i)))
			uar_jw_put_str(w, members[MEMBER_IDS + i], ev->ids[i]);
	uar_jw_raw(w, "payload", ev->payload);
	if (ev->refs.n)
		uar_jw_raw(w, "refs", ev->refs);
	uar_jw_close(w);
}

void uar_event_write(struct uar_jw *w, const char *key, const struct uar_event *ev, uint32_t omit)
{
	write_head(w, key, ev, omit);
	if (ev->sequence)
		uar_jw_u64(w, "sequence", ev->sequence);
	if (ev->run_sequence)
		uar_jw_u64(w, "run_sequence", ev->run_sequence);
	uar_jw_str(w, "schema_version", UAR_STR(UAR_EVENT_SCHEMA_VERSION));
	write_rest(w, ev, omit);
}

void uar_event_write_stored(struct uar_jw *w, const struct uar_event *ev, uint32_t omit)
{
	write_head(w, NULL, ev, omit);
	write_rest(w, ev, omit | UAR_ID_BIT(UAR_ID_RUNTIME));
}

/* --- reading --------------------------------------------------------------- */

uar_err uar_event_payload(const struct uar_event *ev, struct uar_arena *arena,
			  const struct uar_json **out, struct uar_error *error)
{
	static const struct uar_json_limits limits = { .depth = UAR_LIMIT_EVENT_DEPTH };
	const struct uar_json *tree = ev->tree;

	if (!tree || tree->text.p != ev->payload.p || tree->text.n != ev->payload.n)
		return uar_json_parse(ev->payload, &limits, arena, out, error);
	*out = tree;
	return UAR_OK;
}

uar_err uar_event_blob(const struct uar_event *ev, const char *ref, struct uar_arena *arena,
		       uar_str *out)
{
	static const uar_str scheme = UAR_STR("blob://");
	const struct uar_json *refs = NULL;
	uar_str at;
	uar_err e = UAR_OK;

	if (ev->refs.n)
		e = uar_json_parse(ev->refs, NULL, arena, &refs, NULL);
	if (e)
		return e == UAR_ENOMEM ? e : UAR_ECORRUPT;
	at = uar_json_str(uar_json_get(refs, uar_str_c(ref)), UAR_STR_NONE);
	if (uar_str_starts(at, scheme) && at.n != scheme.n + UAR_SHA256_TEXT)
		return UAR_ECORRUPT;
	*out = uar_str_starts(at, scheme) ? uar_str_from(at, scheme.n) : UAR_STR_NONE;
	return UAR_OK;
}

struct reader {
	struct uar_arena *arena;
	struct uar_event ev;
	struct uar_error *error;
};

static uar_err refuse(struct reader *r, uar_err code, size_t member, const char *why)
{
	uar_error_set(r->error, code, "%s: %s", members[member].p, why);
	uar_error_where(r->error, "/%s", members[member].p);
	return code;
}

/* The member of that name, first looked for at `start`; MEMBER_COUNT: unknown. */
static size_t find_member(uar_str key, size_t start)
{
	for (size_t i = 0; i < MEMBER_COUNT; i++) {
		size_t at = start + i < MEMBER_COUNT ? start + i : start + i - MEMBER_COUNT;

		if (members[at].n == key.n && memcmp(members[at].p, key.p, key.n) == 0)
			return at;
	}
	return MEMBER_COUNT;
}

static uar_err read_string(struct reader *r, size_t member, const struct uar_json *j)
{
	struct uar_event *ev = &r->ev;
	uar_str major, rest;

	if (j->kind != UAR_JSON_STRING || j->text.n == 0)
		return refuse(r, UAR_ECORRUPT, member, "a string is wanted");
	if (member >= MEMBER_IDS) {
		ev->ids[member - MEMBER_IDS] = j->text;
	} else if (member == MEMBER_EVENT_ID) {
		ev->event_id = j->text;
	} else if (member == MEMBER_TYPE) {
		ev->cls = uar_event_class_of(j->text);
		ev->type = j->text;
		if (ev->cls == UAR_EV_COUNT)
			return refuse(r, UAR_ECORRUPT, member, "unknown class");
	} else if (member == MEMBER_TIMESTAMP) {
		if (uar_time_parse(j->text, &ev->time_us))
			return refuse(r, UAR_ECORRUPT, member, "no RFC 3339 time");
	} else {
		major = uar_str_cut(j->text, '.', &rest);
		if (!uar_str_eq(major, UAR_STR("1")))
			return refuse(r, UAR_ENEWER, member, "not known here");
	}
	return UAR_OK;
}

static uar_err read_sequence(struct reader *r, size_t member, const struct uar_json *j)
{
	if (j->kind != UAR_JSON_INT || j->i < 1)
		return refuse(r, UAR_ECORRUPT, member, "a number from 1 is wanted");
	if (member == MEMBER_SEQUENCE)
		r->ev.sequence = (uint64_t)j->i;
	else
		r->ev.run_sequence = (uint64_t)j->i;
	return UAR_OK;
}

/* The source text of an object; written anew when the tree has none. */
static uar_err read_object(struct reader *r, size_t member, const struct uar_json *j)
{
	uar_str *out = member == MEMBER_PAYLOAD ? &r->ev.payload : &r->ev.refs;
	struct uar_buf buf = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_err e;

	if (j->kind != UAR_JSON_OBJECT)
		return refuse(r, UAR_ECORRUPT, member, "an object is wanted");
	*out = j->text;
	if (member == MEMBER_PAYLOAD)
		r->ev.tree = j;
	if (out->n)
		return UAR_OK;
	uar_json_write(&buf, j);
	e = buf.err;
	if (!e) {
		*out = uar_arena_str(r->arena, uar_buf_str(&buf));
		e = out->p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(&buf);
	return e ? refuse(r, e, member, uar_err_text(e)) : UAR_OK;
}

static uar_err read_member(struct reader *r, size_t member, const struct uar_json *j)
{
	if (member == MEMBER_SEQUENCE || member == MEMBER_RUN_SEQUENCE)
		return read_sequence(r, member, j);
	if (member >= MEMBER_PAYLOAD)
		return read_object(r, member, j);
	return read_string(r, member, j);
}

/* `missing`: members that must be there. */
static uar_err read_members(struct reader *r, const struct uar_json *object, uint64_t missing)
{
	size_t at = 0;

	for (const struct uar_json *j = object->first; j; j = j->next) {
		size_t member = find_member(j->key, at);
		uar_err e;

		if (member == MEMBER_COUNT)
			continue;
		e = read_member(r, member, j);
		if (e)
			return e;
		missing &= ~(1ull << member);
		at = member + 1;
	}
	if (missing)
		return refuse(r, UAR_ECORRUPT, (size_t)__builtin_ctzll(missing), "missing");
	return UAR_OK;
}

uar_err uar_event_read(const struct uar_json *j, const struct uar_event *base,
		       struct uar_arena *arena, struct uar_event *out, struct uar_error *error)
{
	struct reader r = { .arena = arena, .error = error };
	uint64_t wanted = 1ull << MEMBER_TYPE | 1ull << MEMBER_EVENT_ID | 1ull << MEMBER_PAYLOAD;
	uar_err e;

	if (!j || j->kind != UAR_JSON_OBJECT)
		return uar_error_set(error, UAR_ECORRUPT, "an event is an object");
	if (base) {
		memcpy(r.ev.ids, base->ids, sizeof r.ev.ids);
		r.ev.time_us = base->time_us;
	} else {
		wanted |= 1ull << MEMBER_TIMESTAMP;
	}
	e = read_members(&r, j, wanted);
	if (!e)
		*out = r.ev;
	return e;
}
