/* mcp_artifacts.c - artifacts as resources: their addresses, where the log has them, their bytes.
 *
 * uar://runs/RUN_ID/artifacts/ARTIFACT_ID is the current version of what a run made. Nothing
 * lists artifacts: the events of the run are read, as its owner, like everything else. */
#include "agent/blocks.h"
#include "base/base64.h"
#include "base/sha256.h"
#include "event/limits.h"
#include "gate/content.h"
#include "gate/mcp_int.h"
#include "proto/exports.h"

#define RUN_URI "uar://runs/"
#define BETWEEN "/artifacts/"

/* --- addresses ------------------------------------------------------------------------------- */

/* As the expansion of a URI template does it. */
static void add_escaped(struct uar_buf *out, uar_str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		    (c && strchr("-._~", c)))
			uar_buf_add_char(out, c);
		else
			uar_buf_printf(out, "%%%02X", (unsigned char)c);
	}
}

void mcp_artifact_uri(struct uar_buf *out, uar_str run_id, uar_str artifact_id)
{
	uar_buf_add_str(out, UAR_STR(RUN_URI));
	add_escaped(out, run_id);
	uar_buf_add_str(out, UAR_STR(BETWEEN));
	add_escaped(out, artifact_id);
}

/* An artifact has one address: what is escaped otherwise names none. */
bool mcp_artifact_parse(struct uar_arena *arena, uar_str uri, struct mcp_artifact_name *out)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_URI);
	uar_str rest = uar_str_from(uri, sizeof RUN_URI - 1), run_id;
	struct mcp_artifact_name name = { 0 };
	const char *at;
	bool same;

	if (uri.n > UAR_LIMIT_MCP_URI || !uar_str_starts(uri, UAR_STR(RUN_URI)))
		return false;
	at = memmem(rest.p, rest.n, BETWEEN, sizeof BETWEEN - 1);
	if (!at)
		return false;
	run_id = uar_str_n(rest.p, (size_t)(at - rest.p));
	rest = uar_str_from(rest, run_id.n + sizeof BETWEEN - 1);
	if (uar_http_decode(arena, run_id, &name.run_id) ||
	    uar_http_decode(arena, rest, &name.artifact_id) || !uar_str_is_id(name.run_id) ||
	    !uar_str_is_id(name.artifact_id))
		return false;
	mcp_artifact_uri(&b, name.run_id, name.artifact_id);
	same = uar_str_eq(uar_buf_str(&b), uri);
	uar_buf_fini(&b);
	if (same)
		*out = name;
	return same;
}

/* --- what an event says of one -------------------------------------------------------------- */

/* Without parameters. */
static uar_str media_type(struct uar_arena *arena, const struct uar_json *p, uar_str export)
{
	uar_str mime = uar_json_text(p, "mime"), rest, found;
	struct uar_buf b = uar_buf_make(512);

	if (!mime.n && !export.n)
		mime = uar_str_c(uar_artifact_mime(uar_json_text(p, "artifact_type"),
						   uar_json_text(p, "language")));
	gate_content_type(&b, export.n ? export : UAR_STR("text"), mime);
	found = uar_arena_str(arena, uar_str_trim(uar_str_cut(uar_buf_str(&b), ';', &rest)));
	if (b.err)
		found = UAR_STR("application/octet-stream");
	uar_buf_fini(&b);
	return found;
}

uar_err mcp_artifact_read(const struct uar_event *ev, struct uar_arena *arena,
			  struct mcp_artifact *out)
{
	static const char lead[] = "export.";
	struct mcp_artifact a = { .id = ev->ids[UAR_ID_ARTIFACT] };
	uar_str export = UAR_STR("");
	const struct uar_json *p;
	bool address;
	uar_err e;

	if (ev->cls != UAR_EV_ARTIFACT_CHANGED || !uar_str_is_id(a.id))
		return UAR_ESKIP;
	e = uar_event_payload(ev, arena, &p, NULL);
	if (!e)
		e = uar_event_blob(ev, "read_ref", arena, &a.blob);
	if (e)
		return e;
	if (!a.blob.n && uar_json_text(p, "sha256").n != UAR_SHA256_TEXT)
		return UAR_ESKIP; /* that something changed; nothing was kept of it */
	a.type = uar_json_text(p, "artifact_type");
	a.title = uar_json_text(p, "title");
	a.text = uar_json_text(p, "preview");
	a.version = uar_json_int(uar_json_get(p, UAR_STR("version")), 1);
	if (uar_str_starts(a.type, uar_str_c(lead)))
		export = uar_str_from(a.type, sizeof lead - 1);
	address = (uar_str_is(export, "url") || uar_str_is(export, "binary_url")) &&
		  !(a.blob.n && uar_export_is_served(p));
	a.encoded = !a.blob.n && uar_str_is(export, "binary");
	a.mime = address ? UAR_STR("text/uri-list") : media_type(arena, p, export);
	if (!a.mime.p)
		return UAR_ENOMEM;
	*out = a;
	return UAR_OK;
}

/* --- where it is ------------------------------------------------------------------------------ */

static void look_ended(struct mcp_artifact_look *k, uar_err e, const struct uar_error *error)
{
	if (!e)
		k->found(k);
	else if (e == UAR_ENOTFOUND)
		mcp_answer_missing(k->x, k->uri);
	else
		mcp_answer_problem(k->x, e, error);
}

static void events_looked_at(struct uar_events_read *r);

static uar_err look_on(struct mcp_artifact_look *k)
{
	k->read = (struct uar_events_read){ .owner = k->x->c->owner,
					    .run_id = k->name.run_id,
					    .after = k->after,
					    .limit = UAR_LIMIT_READ_PAGE,
					    .done = events_looked_at };
	return uar_reader_events(k->x->c->g->o.reader, &k->read);
}

static void events_looked_at(struct uar_events_read *r)
{
	struct mcp_artifact_look *k = UAR_OWNER(r, struct mcp_artifact_look, read);
	struct uar_error error = r->error;
	uar_err e = r->err;
	bool more = !e && r->more;

	for (size_t i = 0; i < r->event_count && !e; i++) {
		const struct uar_event *ev = &r->events[i];

		k->after = ev->run_sequence;
		if (ev->cls == UAR_EV_ARTIFACT_CHANGED &&
		    uar_str_eq(ev->ids[UAR_ID_ARTIFACT], k->name.artifact_id))
			k->at = ev->run_sequence;
	}
	uar_events_read_fini(r);
	if (more)
		e = look_on(k);
	if (!more || e)
		look_ended(k, e ? e : k->at ? UAR_OK : UAR_ENOTFOUND, &error);
}

bool mcp_artifact_look(struct mcp_exchange *x, uar_str uri,
		       void (*found)(struct mcp_artifact_look *k))
{
	struct mcp_artifact_look *k;
	struct mcp_artifact_name name;
	uar_err e;

	if (!mcp_artifact_parse(&x->c->arena, uri, &name))
		return false;
	k = uar_arena_alloc(&x->c->arena, sizeof *k);
	e = k ? UAR_OK : UAR_ENOMEM;
	if (!e) {
		*k = (struct mcp_artifact_look){ .x = x, .uri = uri, .name = name, .found = found };
		x->c->op = k;
		e = look_on(k);
	}
	if (e)
		mcp_answer_problem(x, e, NULL);
	return true;
}

/* --- its bytes -------------------------------------------------------------------------------- */

static bool is_text(uar_str mime)
{
	static const char *const kinds[] = { "application/json",       "application/xml",
					     "application/javascript", "application/yaml",
					     "application/x-ndjson",   "application/toml" };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (uar_str_is(mime, kinds[i]))
			return true;
	return uar_str_starts(mime, UAR_STR("text/")) || uar_str_ends(mime, UAR_STR("+json")) ||
	       uar_str_ends(mime, UAR_STR("+xml"));
}

/* Clients that have the token can have it over HTTP, whole or in ranges. */
static void answer_too_large(struct mcp_artifact_look *k, uint64_t size)
{
	struct uar_buf url = uar_buf_make(1024), data = uar_buf_make(16384),
		       text = uar_buf_make(2048);
	struct uar_jw w = uar_jw_begin(&data);

	uar_buf_add_str(&url, UAR_STR("/api/runs/"));
	add_escaped(&url, k->name.run_id);
	uar_buf_printf(&url, "/blobs/%.*s", UAR_FMT(k->a.blob));
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "uri", k->uri);
	uar_jw_u64(&w, "size", size);
	uar_jw_int(&w, "limit", UAR_LIMIT_MCP_RESOURCE);
	uar_jw_str(&w, "url", uar_buf_str(&url));
	uar_jw_close(&w);
	if (uar_jw_end(&w))
		uar_buf_clear(&data);
	uar_buf_printf(&text,
		       "the artifact is too large for a resource (%llu bytes, at most %d that fit "
		       "into one answer): read it with GET %.*s",
		       (unsigned long long)size, UAR_LIMIT_MCP_RESOURCE,
		       UAR_FMT(uar_buf_str(&url)));
	uar_buf_add_char(&text, 0);
	mcp_answer_error(k->x, 200, UAR_MCP_INVALID_PARAMS, text.err ? "too large" : text.p,
			 uar_buf_str(&data));
	uar_buf_fini(&text);
	uar_buf_fini(&data);
	uar_buf_fini(&url);
}

static uar_err put_bytes(struct uar_jw *w, const struct mcp_artifact *a, uar_str bytes)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_ANSWER);
	uar_err e;

	if (a->encoded) {
		uar_jw_str(w, "blob", bytes);
	} else if (is_text(a->mime) && uar_utf8_valid(bytes)) {
		uar_jw_str(w, "text", bytes);
	} else {
		uar_base64_encode(&b, bytes);
		uar_jw_str(w, "blob", uar_buf_str(&b));
	}
	e = b.err;
	uar_buf_fini(&b);
	return e;
}

static void answer_bytes(struct mcp_artifact_look *k, uar_str bytes)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_ANSWER);
	struct uar_jw w = mcp_result_begin(k->x, &b);
	uar_err e, end;

	uar_jw_arr(&w, "contents");
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "uri", k->uri);
	uar_jw_str(&w, "mimeType", k->a.mime);
	e = put_bytes(&w, &k->a, bytes);
	uar_jw_close(&w);
	uar_jw_close(&w);
	uar_jw_close(&w);
	end = uar_jw_end(&w);
	b.err = e ? e : end;
	if (b.err == UAR_ETOOBIG && k->a.blob.n) { /* escaped it is longer */
		uar_buf_fini(&b);
		answer_too_large(k, bytes.n);
	} else {
		mcp_answer_result(k->x, &b);
	}
}

static void blob_read(struct uar_blob_read *get)
{
	struct mcp_artifact_look *k = UAR_OWNER(get, struct mcp_artifact_look, get);
	struct uar_error error = get->error;
	uar_err e = get->err;
	uint64_t total = get->total;

	if (e == UAR_ENOTFOUND) /* it is not kept any more */
		mcp_answer_missing(k->x, k->uri);
	else if (e)
		mcp_answer_problem(k->x, e, &error);
	else if (total > UAR_LIMIT_MCP_RESOURCE)
		answer_too_large(k, total);
	else
		answer_bytes(k, get->bytes);
}

/* The exchange is gone when blob_read returns, and what it was read with goes with it. */
static void blob_ready(struct uar_blob_read *get)
{
	struct uar_blob_read own = *get;

	blob_read(get);
	uar_blob_read_fini(&own);
}

static uar_err take_event(struct mcp_artifact_look *k, const struct uar_event *ev)
{
	struct uar_arena *arena = &k->x->c->arena;
	uar_err e = mcp_artifact_read(ev, arena, &k->a);

	if (e)
		return e == UAR_ESKIP ? UAR_ENOTFOUND : e;
	k->a.text = uar_arena_str(arena, k->a.text);
	k->a.blob = uar_arena_str(arena, k->a.blob);
	return k->a.text.p && k->a.blob.p ? UAR_OK : UAR_ENOMEM;
}

static void event_read(struct uar_events_read *r)
{
	struct mcp_artifact_look *k = UAR_OWNER(r, struct mcp_artifact_look, read);
	struct uar_error error = r->error;
	uar_err e = r->err;

	if (!e)
		e = r->event_count ? take_event(k, &r->events[0]) : UAR_ENOTFOUND;
	uar_events_read_fini(r);
	if (!e && !k->a.blob.n) {
		answer_bytes(k, k->a.text);
		return;
	}
	if (!e && k->a.blob.n != UAR_SHA256_TEXT)
		e = UAR_ECORRUPT;
	if (!e) {
		k->get = (struct uar_blob_read){ .limit = UAR_LIMIT_MCP_RESOURCE,
						 .done = blob_ready };
		memcpy(k->get.sha256, k->a.blob.p, UAR_SHA256_TEXT);
		e = uar_reader_blob(k->x->c->g->o.reader, &k->get);
	}
	if (e)
		look_ended(k, e, &error);
}

/* The event of the current version is read once more: it alone is kept. */
static void read_current(struct mcp_artifact_look *k)
{
	uar_err e;

	k->read = (struct uar_events_read){ .owner = k->x->c->owner,
					    .run_id = k->name.run_id,
					    .after = k->at - 1,
					    .limit = 1,
					    .done = event_read };
	e = uar_reader_events(k->x->c->g->o.reader, &k->read);
	if (e)
		look_ended(k, e, NULL);
}

bool mcp_read_artifact(struct mcp_exchange *x, uar_str uri)
{
	return mcp_artifact_look(x, uri, read_current);
}
