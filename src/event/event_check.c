/* event_check.c - what an event must satisfy before it may be appended.
 *
 * Runs for every event in every build: a fact that breaks its contract must
 * never become durable, because it can never be taken back. */
#include "event/event_int.h"
#include "event/limits.h"

/* An id that is there asks for those of what it belongs to. */
static const uint32_t belongs_to[UAR_ID_COUNT] = {
	[UAR_ID_THREAD] = UAR_ID_BIT(UAR_ID_SESSION),
	[UAR_ID_TURN] = UAR_ID_BIT(UAR_ID_THREAD),
	[UAR_ID_TASK] = UAR_ID_BIT(UAR_ID_SESSION),
	[UAR_ID_RUN] = UAR_ID_BIT(UAR_ID_TASK) | UAR_ID_BIT(UAR_ID_ATTEMPT),
	[UAR_ID_ATTEMPT] = UAR_ID_BIT(UAR_ID_RUN),
	[UAR_ID_TOOL_CALL] = UAR_ID_BIT(UAR_ID_STEP),
	[UAR_ID_JOB_ITEM] = UAR_ID_BIT(UAR_ID_JOB),
	[UAR_ID_SPAN] = UAR_ID_BIT(UAR_ID_TRACE),
};

static const unsigned char field_bytes[UAR_ID_COUNT] = {
#define I(NAME, FIELD) [UAR_ID_##NAME] = sizeof(FIELD) - 1,
#include "event/ids.def"
#undef I
};

static void set_where(const struct uar_event *ev, struct uar_error *error, const char *member,
		      const char *pointer)
{
	uar_error_where(error, "%.*s#/%s%s", UAR_FMT(uar_event_type(ev)), member, pointer);
}

static uar_err refuse_id(const struct uar_event *ev, enum uar_id id, const char *why,
			 struct uar_error *error)
{
	uar_err e = uar_error_set(error, UAR_EINVALID, "%s %s", uar_id_field(id), why);

	set_where(ev, error, uar_id_field(id), "");
	return e;
}

static bool id_valid(enum uar_id id, uar_str s)
{
	if (id == UAR_ID_TRACE)
		return uar_event_is_trace(s);
	if (id == UAR_ID_SPAN)
		return s.n == 16 && uar_str_is_hex(s);
	return uar_str_is_id(s);
}

static bool is_same(uar_str a, uar_str b)
{
	return a.p == b.p && a.n == b.n;
}

/* Adds to `needs` what the ids that are there belong to. */
static uar_err check_each_id(const struct uar_event *ev, const struct uar_event *before,
			     uint32_t *needs, struct uar_error *error)
{
	for (unsigned i = 0; i < UAR_ID_COUNT; i++) {
		if (!ev->ids[i].n)
			continue;
		if (!is_same(ev->ids[i], before->ids[i]) && !id_valid(i, ev->ids[i]))
			return refuse_id(ev, i, "is not valid", error);
		*needs |= belongs_to[i];
	}
	return UAR_OK;
}

/* Most events have the ids of the one before, which has passed: only what their own
 * class asks for can be missing then. */
static uar_err check_ids(const struct uar_event *ev, const struct uar_event *before,
			 struct uar_error *error)
{
	uint32_t needs = uar_event_info[ev->cls].ids;
	uar_err e = UAR_OK;

	if (ev->run_sequence)
		needs |= UAR_ID_BIT(UAR_ID_RUN);
	if (memcmp(ev->ids, before->ids, sizeof ev->ids) != 0)
		e = check_each_id(ev, before, &needs, error);
	while (needs && ev->ids[__builtin_ctz(needs)].n)
		needs &= needs - 1;
	if (!e && needs)
		e = refuse_id(ev, (enum uar_id)__builtin_ctz(needs), "is missing", error);
	return e;
}

/* Type, event id and time: what every event has. */
static uar_err check_head(const struct uar_event *ev, struct uar_error *error)
{
	const char *member = NULL;

	if ((unsigned)ev->cls >= UAR_EV_COUNT ||
	    (ev->cls == UAR_EV_VENDOR && uar_event_class_of(ev->type) != UAR_EV_VENDOR) ||
	    (ev->cls < UAR_EV_VENDOR && ev->type.n && !uar_str_eq(ev->type, uar_event_type(ev))))
		return uar_error_set(error, UAR_EINVALID, "unknown event class or wrong type");
	if (!uar_uuid_valid(ev->event_id) || ev->event_id.p[14] != '7')
		member = "event_id";
	else if (!uar_time_usable(ev->time_us))
		member = "timestamp";
	if (!member)
		return UAR_OK;
	uar_error_set(error, UAR_EINVALID, "%s is not valid", member);
	set_where(ev, error, member, "");
	return UAR_EINVALID;
}

static size_t id_escapes(uar_str s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++)
		n += s.p[i] == '"' || s.p[i] == '\\';
	return n;
}

/* The longest form in which the event is ever written, to the byte. */
static size_t written_bytes(const struct uar_event *ev)
{
	static const char frame[] =
		"{'type':'','event_id':'','timestamp':'2026-01-02T03:04:05.000006Z',"
		"'sequence':18446744073709551615,'run_sequence':18446744073709551615,"
		"'schema_version':'" UAR_EVENT_SCHEMA_VERSION "','payload':}";
	uar_str type = uar_event_type(ev);
	size_t n = sizeof frame - 1 + type.n + id_escapes(type) + ev->event_id.n + ev->payload.n;

	if (ev->refs.n)
		n += sizeof ",'refs':" - 1 + ev->refs.n;
	for (unsigned i = 0; i < UAR_ID_COUNT; i++)
		if (ev->ids[i].n)
			n += sizeof "'':''," - 1 + field_bytes[i] + ev->ids[i].n +
			     id_escapes(ev->ids[i]);
	return n;
}

/* Most events are far below the limit; the exact count is for the others. */
static uar_err check_size(const struct uar_event *ev, struct uar_error *error)
{
	size_t head = 1024 + UAR_ID_COUNT * (2 * UAR_LIMIT_ID_BYTES + 32);

	if (ev->payload.n <= UAR_LIMIT_EVENT_BYTES && ev->refs.n <= UAR_LIMIT_EVENT_BYTES &&
	    (head + ev->payload.n + ev->refs.n <= UAR_LIMIT_EVENT_BYTES ||
	     written_bytes(ev) <= UAR_LIMIT_EVENT_BYTES))
		return UAR_OK;
	uar_error_set(error, UAR_ETOOBIG, "larger than %d bytes", UAR_LIMIT_EVENT_BYTES);
	set_where(ev, error, "payload", "");
	return UAR_ETOOBIG;
}

/* One check: what is asked about, and where to put things. */
struct check {
	const struct uar_event *ev;
	struct uar_arena *scratch;
	struct uar_error *error;
};

/* What `member` holds must be an object; says so where reading it went wrong, too. */
static uar_err check_object(const struct check *c, const char *member, uar_err read,
			    const struct uar_json *j)
{
	uar_err e = read;

	if (!e && j->kind != UAR_JSON_OBJECT)
		e = uar_error_set(c->error, UAR_EINVALID, "%s is no object", member);
	if (e)
		set_where(c->ev, c->error, member, "");
	return e;
}

static uar_err check_schema(const struct check *c, const struct uar_json *payload)
{
	const struct uar_schema *schema;
	char pointer[UAR_LIMIT_ERROR_WHERE];
	uar_err e = uar_event_schema_get(c->ev->cls, &schema, c->error);

	if (!e)
		e = uar_schema_validate(schema, payload, c->scratch, c->error);
	if (e && c->error) {
		memcpy(pointer, c->error->where, sizeof pointer);
		set_where(c->ev, c->error, "payload", pointer);
	}
	return e;
}

static uar_err check_payload(const struct check *c)
{
	const struct uar_json *payload = NULL;
	uar_err e = uar_event_payload(c->ev, c->scratch, &payload, c->error);

	e = check_object(c, "payload", e, payload);
	return e || c->ev->cls == UAR_EV_VENDOR ? e : check_schema(c, payload);
}

/* "scheme://..." */
static bool is_ref(const struct uar_json *j)
{
	size_t colon;

	if (j->kind != UAR_JSON_STRING)
		return false;
	colon = uar_str_find(j->text, ':');
	return colon > 0 && uar_str_starts(uar_str_from(j->text, colon), UAR_STR("://"));
}

static bool ref_valid(const struct uar_json *member)
{
	if (uar_str_ends(member->key, UAR_STR("_ref")))
		return is_ref(member);
	if (!uar_str_ends(member->key, UAR_STR("_refs")) || member->kind != UAR_JSON_ARRAY)
		return false;
	for (const struct uar_json *j = member->first; j; j = j->next)
		if (!is_ref(j))
			return false;
	return true;
}

static uar_err check_refs(const struct check *c)
{
	static const struct uar_json_limits limits = { .depth = UAR_LIMIT_EVENT_DEPTH };
	const struct uar_json *refs = NULL;
	uar_err e;

	if (c->ev->refs.n == 0)
		return UAR_OK;
	e = uar_json_parse(c->ev->refs, &limits, c->scratch, &refs, c->error);
	e = check_object(c, "refs", e, refs);
	for (const struct uar_json *j = e ? NULL : refs->first; j && !e; j = j->next) {
		if (ref_valid(j))
			continue;
		e = uar_error_set(c->error, UAR_EINVALID, "%.*s is no reference",
				  UAR_FMT(uar_str_utf8_prefix(j->key, 64)));
		set_where(c->ev, c->error, "refs", "");
	}
	return e;
}

uar_err uar_event_check(const struct uar_event *ev, struct uar_arena *scratch,
			struct uar_error *error)
{
	static const struct uar_event none;

	return uar_event_check_next(ev, &none, scratch, error);
}

uar_err uar_event_check_next(const struct uar_event *ev, const struct uar_event *before,
			     struct uar_arena *scratch, struct uar_error *error)
{
	const struct check c = { ev, scratch, error };
	uar_err e = check_head(ev, error);

	if (!e)
		e = check_ids(ev, before, error);
	if (!e)
		e = check_size(ev, error);
	if (!e)
		e = check_payload(&c);
	if (!e)
		e = check_refs(&c);
	return e;
}
