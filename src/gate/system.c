/* system.c - health, readiness, version, the one-time link. */
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "memory/know.h"
#include "work/definition_store.h"

enum { LINK_VALID_US = 600000000 };

static void answer_status(struct call *c, int http_status, const char *status)
{
	struct uar_buf b = uar_buf_make(256);
	struct uar_jw w = uar_jw_begin(&b);
	size_t broken = gate_broken_agents(c->g);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "status", status);
	if (broken)
		uar_jw_int(&w, "broken_agents", (int64_t)broken);
	uar_jw_close(&w);
	gate_answer_json(c, http_status, &b, &w);
}

void gate_health(struct call *c)
{
	answer_status(c, 200, "ok");
}

/* What somebody keeps who comes later is read then: that makes the server no less ready. */
static bool has_started(struct uar_gate *g)
{
	g->own.started |=
		gate_book_loaded(g->own.book) && uar_workers_definitions_loaded(g->o.work);
	return g->own.started;
}

void gate_ready(struct call *c)
{
	struct uar_reader_stats s;

	uar_reader_stats(c->g->o.reader, &s);
	if (s.health == UAR_STORAGE_BROKEN)
		answer_status(c, 503, "storage broken");
	else if (s.health == UAR_STORAGE_DAMAGED)
		answer_status(c, 503, "storage damaged");
	else if (uar_knowledge_is_broken(c->g->o.knowledge))
		answer_status(c, 503, "knowledge storage broken");
	else if (!s.space)
		answer_status(c, 503, "storage full");
	else if (uar_runtime_short_of_memory(c->g->o.runtime))
		answer_status(c, 503, "out of memory");
	else if (!uar_runtime_ready(c->g->o.runtime))
		answer_status(c, 503, c->g->draining ? "draining" : "recovering");
	else if (!has_started(c->g))
		answer_status(c, 503, "reading definitions");
	else
		answer_status(c, 200, "ready");
}

void gate_version(struct call *c)
{
	struct uar_buf b = uar_buf_make(1024);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "name", "uar");
	uar_jw_cstr(&w, "version", UAR_VERSION);
	uar_jw_cstr(&w, "event_schema_version", UAR_EVENT_SCHEMA_VERSION);
	uar_jw_cstr(&w, "runtime_id", uar_reader_runtime_id(c->g->o.reader));
	uar_jw_int(&w, "incarnation", (int64_t)gate_incarnation(c->g));
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}

/* --- the one-time link of the page ---------------------------------------------- */

const char *uar_gate_link_code(struct uar_gate *g)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	unsigned char raw[LINK_CODE];

	g->o.rand->fill(g->o.rand->ctx, raw, sizeof raw);
	for (size_t i = 0; i < LINK_CODE; i++)
		g->link.code[i] = alphabet[raw[i] & 63];
	g->link.code[LINK_CODE] = 0;
	g->link.until_us = uar_clock_mono(g->o.sched->clock) + LINK_VALID_US;
	return g->link.code;
}

/* 258 random bits: guessing is hopeless, and the right one works once. */
static bool take_code(struct uar_gate *g, uar_str given)
{
	bool right = uar_str_eq_secret(given, uar_str_c(g->link.code)) &&
		     uar_clock_mono(g->o.sched->clock) < g->link.until_us;

	if (right)
		g->link.code[0] = 0;
	return right;
}

void gate_new_link(struct call *c)
{
	struct uar_buf b = uar_buf_make(1024);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "code", uar_gate_link_code(c->g));
	uar_jw_int(&w, "valid_seconds", LINK_VALID_US / 1000000);
	uar_jw_close(&w);
	gate_answer_json(c, 201, &b, &w);
}

void gate_link(struct call *c)
{
	static const struct uar_json_field fields[] = { { "code", UAR_FIELD_STR, true, 0 } };
	struct uar_buf b = uar_buf_make(1024);
	struct uar_jw w = uar_jw_begin(&b);
	struct uar_error error = { 0 };
	uar_str code = UAR_STR("");
	uar_err e = uar_json_read(c->body, fields, 1, true, &code, &error);

	if (!e && !take_code(c->g, code))
		e = uar_error_set(&error, UAR_EUNAUTHORIZED, "the link was used or has expired");
	if (e) {
		gate_problem(c, e, &error);
		return;
	}
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "token", c->g->o.token);
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}
