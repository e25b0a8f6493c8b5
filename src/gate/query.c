/* query.c - the part of a target behind '?': checked whole, then looked up by name. */
#include "gate/cursor.h"
#include "gate/gate_int.h"

static bool takes(const struct route *route, uar_str name)
{
	uar_str names = uar_str_c(route->query);

	if (uar_str_is(names, "*")) /* whatever: the page reads it, not the server */
		return true;
	while (names.n)
		if (uar_str_eq(uar_str_cut(names, ' ', &names), name))
			return true;
	return false;
}

static uar_err refuse(struct uar_error *error, uar_str name, const char *why)
{
	name = uar_str_utf8_prefix(name, UAR_LIMIT_ERROR_WHERE / 2);
	uar_error_where(error, "?%.*s", UAR_FMT(name));
	return uar_error_set(error, UAR_EINVALID, "%s", why);
}

static bool comes_again(uar_str rest, uar_str name)
{
	uar_str other, value;

	while (uar_http_query_cut(&rest, &other, &value))
		if (uar_str_eq(other, name))
			return true;
	return false;
}

uar_err gate_check_query(const struct route *route, const struct uar_http_request *r,
			 struct uar_error *error)
{
	uar_str rest = r->query, name, value, text;
	uar_err e;

	while (uar_http_query_cut(&rest, &name, &value)) {
		if (!takes(route, name)) /* an escaped name is not one of ours either */
			return refuse(error, name, "this route has no such parameter");
		if (comes_again(rest, name))
			return refuse(error, name, "given twice");
		e = uar_http_decode(r->arena, value, &text);
		if (e == UAR_ENOMEM)
			return e;
		if (e || !uar_utf8_valid(text))
			return refuse(error, name, "a broken escape, or not UTF-8");
	}
	return UAR_OK;
}

static bool has(const struct uar_http_request *r, const char *name)
{
	return comes_again(r->query, uar_str_c(name));
}

const char *gate_cursor_source(const struct uar_http_request *r)
{
	if (r->fields[UAR_HTTP_LAST_EVENT_ID].n)
		return "Last-Event-ID";
	if (has(r, "before"))
		return "?before";
	if (has(r, "cursor"))
		return "?cursor";
	return has(r, "after") || !has(r, "last_event_id") ? "?after" : "?last_event_id";
}

uar_err gate_query_str(struct call *c, const char *name, uar_str *out)
{
	return uar_http_query(c->r, name, out);
}

uar_err gate_query_u64(struct call *c, const char *name, uint64_t fallback, uint64_t *out,
		       struct uar_error *error)
{
	uar_str text;
	uar_err e = uar_http_query(c->r, name, &text);

	*out = fallback;
	if (!e && text.p)
		e = uar_str_u64(text, out);
	if (!e)
		return UAR_OK;
	uar_error_where(error, "?%s", name);
	return uar_error_set(error, UAR_EINVALID, "%s must be a whole number", name);
}

/* The words of records, each once (the same ones stand together), and that of those that wait. */
static void list_statuses(struct uar_buf *out)
{
	const char *before = "";

	for (int s = 0; s < UAR_STATUS_COUNT; s++) {
		const char *word = uar_status_record((enum uar_status)s);

		if (strcmp(word, before) != 0)
			uar_buf_printf(out, "%s, ", word);
		before = word;
	}
	uar_buf_printf(out, GATE_WAITING);
}

uar_err gate_check_status(uar_str status, struct uar_error *error)
{
	struct uar_buf known = uar_buf_make(UAR_LIMIT_ERROR_TEXT);
	uar_err e;

	if (!status.n || uar_str_is(status, GATE_WAITING) || uar_status_record_parse(status))
		return UAR_OK;
	list_statuses(&known);
	uar_error_where(error, "?status");
	e = uar_error_set(error, UAR_EINVALID, "no run has the status \"%.*s\"; one of %s",
			  UAR_FMT(uar_str_utf8_prefix(status, 64)), known.p ? known.p : "");
	uar_buf_fini(&known);
	return e;
}

uar_err gate_line_cursor(struct call *c, uint64_t *out, struct uar_error *error)
{
	uar_str header = c->r->fields[UAR_HTTP_LAST_EVENT_ID];
	uar_err e = gate_query_u64(c, "last_event_id", 0, out, error);

	if (!e)
		e = gate_query_u64(c, "after", *out, out, error);
	if (e || !header.n)
		return e;
	return uar_str_u64(header, out) ? UAR_ECURSOR : UAR_OK;
}

static uar_err query_cursor(struct call *c, const char *name, uint64_t *out,
			    struct uar_error *error)
{
	uar_str text;
	uar_err e = gate_query_str(c, name, &text);

	if (!e && text.p)
		e = gate_cursor_parse(text, gate_incarnation(c->g), out);
	if (e != UAR_ECURSOR)
		return e;
	uar_error_where(error, "?%s", name);
	return uar_error_set(error, UAR_EINVALID,
			     "%s must be a whole number, or the id of an event", name);
}

/* Last-Event-ID wins, since a browser sends it on its own reconnects; `after` is newer than
 * `last_event_id`. */
uar_err gate_cursor(struct call *c, uint64_t *out, struct uar_error *error)
{
	uar_str header = c->r->fields[UAR_HTTP_LAST_EVENT_ID], after;
	uint64_t number = 0;
	uar_err e = query_cursor(c, "last_event_id", &number, error);

	if (!e || e == UAR_ERESYNC) {
		uar_err bad = gate_query_str(c, "after", &after);

		if (bad)
			return bad;
		if (after.p)
			e = query_cursor(c, "after", &number, error);
	}
	if ((!e || e == UAR_ERESYNC) && header.n)
		e = gate_cursor_parse(header, gate_incarnation(c->g), &number);
	*out = e ? 0 : number;
	return e;
}

void gate_cursor_text(struct call *c, char *out, size_t room)
{
	uar_str text = c->r->fields[UAR_HTTP_LAST_EVENT_ID];

	if (!text.n && (gate_query_str(c, "after", &text) || !text.n) &&
	    gate_query_str(c, "last_event_id", &text))
		text = UAR_STR_NONE;
	snprintf(out, room, "%.*s", UAR_FMT(text));
}

uar_err gate_query_flag(struct call *c, const char *name, bool *out, struct uar_error *error)
{
	uar_str text = UAR_STR_NONE;
	uar_err e = gate_query_str(c, name, &text);

	*out = uar_str_is(text, "1");
	if (e || !text.p || *out || uar_str_is(text, "0"))
		return e;
	uar_error_where(error, "?%s", name);
	return uar_error_set(error, UAR_EINVALID, "%s is 0 or 1", name);
}
