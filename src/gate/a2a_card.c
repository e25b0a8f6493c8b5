/* a2a_card.c - cards of agents: what an A2A client reads before it calls.
 *
 * A card is public, so it is that of an agent that comes with the server or from its files; a
 * definition that somebody keeps in the database is known to its owner alone. */
#include "agent/registry.h"
#include "base/sha256.h"
#include "gate/a2a_int.h"
#include "gate/limits.h"

/* As clients reach this server: the setting, else as this one has. */
static uar_str base_url(struct call *c)
{
	uar_str set = uar_str_c(c->g->o.a2a.public_url ? c->g->o.a2a.public_url : "");
	uar_str host = c->r->fields[UAR_HTTP_HOST];

	while (set.n && set.p[set.n - 1] == '/')
		set.n--;
	return set.n ? set : uar_arena_printf(&c->arena, "http://%.*s", UAR_FMT(host));
}

static bool allows(const struct uar_agent *a)
{
	return !a->definition || uar_definition_allows(&a->definition->def, UAR_PROTOCOL_A2A);
}

static bool is_public(const struct uar_agent *a)
{
	return allows(a) && (!a->definition || a->definition->source != UAR_AGENT_FROM_DATABASE);
}

/* The one that the setting names; else the first from a file, else the first. */
static const struct uar_agent *default_agent(struct call *c)
{
	const struct uar_workers *work = c->g->o.work;
	const struct uar_agent *first = NULL, *a;
	const char *set = c->g->o.a2a.agent;

	for (size_t i = 0; (a = uar_workers_agent_at(work, i)); i++) {
		if (!is_public(a) || (set && set[0] && strcmp(a->id, set) != 0))
			continue;
		if (!first || (!first->definition && a->definition))
			first = a;
	}
	return first;
}

static const struct uar_agent *named_agent(struct call *c, uar_str id)
{
	const struct uar_agent *a;

	for (size_t i = 0; (a = uar_workers_agent_at(c->g->o.work, i)); i++)
		if (uar_str_is(id, a->id) && is_public(a))
			return a;
	return NULL;
}

static uar_err write_card(struct call *c, struct uar_jw *w, const char *key,
			  const struct uar_agent *a, bool old)
{
	const struct uar_json *def = a->definition ? a->definition->def.json : NULL;
	struct uar_a2a_card card = {
		.id = uar_str_c(a->id),
		.name = uar_str_c(a->title && a->title[0] ? a->title : a->id),
		.description = uar_str_c(a->doc && a->doc[0] ? a->doc : a->id),
		.version = a->definition ? uar_str_n(a->definition->def.revision, 12)
					 : UAR_STR(UAR_VERSION),
		.url = uar_arena_printf(&c->arena, "%.*s/a2a/%s", UAR_FMT(base_url(c)), a->id),
		.tags = uar_json_pointer(def, UAR_STR("/metadata/tags")),
		.old = old,
	};

	if (!card.url.p)
		return UAR_ENOMEM;
	uar_a2a_put_card(w, key, &card);
	return UAR_OK;
}

/* Unlike other answers it may be kept: it is the same for everybody. */
static void answer_card(struct call *c, uar_str body)
{
	struct uar_http_request *r = c->r;
	char sha[UAR_SHA256_TEXT + 1], etag[UAR_SHA256_TEXT + 3];
	uar_str given = uar_http_header(r, "if-none-match");
	struct uar_http_header headers[] = {
		{ UAR_STR("ETag"), UAR_STR("") },
		{ UAR_STR("Cache-Control"), UAR_STR("max-age=60") },
		{ UAR_STR("Vary"), UAR_STR("A2A-Version") },
		{ UAR_STR("Last-Modified"), UAR_STR("") },
	};
	time_t started = (time_t)(c->g->own.started_us / 1000000);
	char modified[64];
	struct tm tm;

	uar_sha256_hex(body, sha);
	snprintf(etag, sizeof etag, "\"%s\"", sha);
	headers[0].value = uar_str_c(etag);
	gmtime_r(&started, &tm);
	strftime(modified, sizeof modified, "%a, %d %b %Y %H:%M:%S GMT", &tm);
	headers[3].value = uar_str_c(modified);
	if (uar_str_is(given, etag))
		uar_http_respond(r,
				 &(struct uar_http_response){ .status = 304,
							      .headers = headers,
							      .header_count = ARRAY_LEN(headers) });
	else
		uar_http_respond(r,
				 &(struct uar_http_response){ .status = 200,
							      .content_type = "application/json",
							      .body = body,
							      .headers = headers,
							      .header_count = ARRAY_LEN(headers) });
	gate_call_free(c);
}

static void show_card(struct call *c, const struct uar_agent *a)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_RECORD_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	struct uar_error error = { 0 };
	bool old = true;
	uar_err e = UAR_OK;

	if (!a)
		e = uar_error_set(&error, UAR_ENOTFOUND, "there is no agent with a public card");
	else if (uar_a2a_version(uar_http_header(c->r, "a2a-version"), &old))
		old = false;
	if (!e)
		e = write_card(c, &w, NULL, a, old && c->g->o.a2a.old_cards);
	if (!e)
		e = uar_jw_end(&w);
	if (e)
		gate_problem(c, e, &error);
	else
		answer_card(c, uar_buf_str(&b));
	uar_buf_fini(&b);
}

void gate_a2a_card(struct call *c)
{
	show_card(c, c->params[0].n ? named_agent(c, c->params[0]) : default_agent(c));
}

void gate_a2a_extended_card(struct a2a_call *k)
{
	struct call *c = k->c;
	const struct uar_agent *a = uar_workers_agent(c->g->o.work, &c->owner, k->agent_id);
	struct uar_buf b = uar_buf_make(UAR_LIMIT_RECORD_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e;

	if (k->rpc) {
		uar_jw_obj(&w, NULL);
		uar_jw_cstr(&w, "jsonrpc", "2.0");
		uar_jw_raw(&w, "id", k->id);
	}
	e = write_card(c, &w, k->rpc ? "result" : NULL, a, k->old);
	if (k->rpc)
		uar_jw_close(&w);
	b.err = e ? e : uar_jw_end(&w);
	gate_answer(c, 200, &b);
	uar_buf_fini(&b);
}
