/* system.c - health, readiness, version, metrics, agents, the one-time link. */
#include "gate/gate_int.h"

#include <unistd.h>

enum { TEXT_BYTES = 65536, LINK_VALID_US = 600000000 };

static void answer_status(struct call *c, int http_status, const char *status)
{
	struct uar_buf b = uar_buf_make(256);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "status", status);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	gate_answer(c, http_status, &b);
	uar_buf_fini(&b);
}

void gate_health(struct call *c)
{
	answer_status(c, 200, "ok");
}

void gate_ready(struct call *c)
{
	struct uar_store *store = uar_runtime_store(c->g->o.runtime);
	struct uar_store_stats s;

	store->ops->stats(store, &s);
	if (s.health == UAR_STORE_BROKEN)
		answer_status(c, 503, "storage broken");
	else if (s.health == UAR_STORE_FULL && !s.space)
		answer_status(c, 503, "storage full");
	else if (!uar_runtime_ready(c->g->o.runtime))
		answer_status(c, 503, c->g->draining ? "draining" : "recovering");
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
	uar_jw_cstr(&w, "runtime_id", uar_runtime_store(c->g->o.runtime)->runtime_id);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	gate_answer(c, 200, &b);
	uar_buf_fini(&b);
}

void gate_list_agents(struct call *c)
{
	struct uar_buf b = uar_buf_make(TEXT_BYTES);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "agents");
	for (size_t i = 0; uar_agent_at(i); i++) {
		const struct uar_agent *a = uar_agent_at(i);

		uar_jw_obj(&w, NULL);
		uar_jw_cstr(&w, "agent_id", a->id);
		uar_jw_cstr(&w, "title", a->title);
		uar_jw_cstr(&w, "description", a->doc);
		uar_jw_cstr(&w, "entry", uar_entry_name(a->entry));
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	gate_answer(c, 200, &b);
	uar_buf_fini(&b);
}

/* --- metrics ------------------------------------------------------------------- */

static void metric(struct uar_buf *b, const char *name, const char *kind, uint64_t value,
		   const char *help)
{
	uar_buf_printf(b, "# HELP uar_%s %s\n# TYPE uar_%s %s\nuar_%s %llu\n", name, help, name,
		       kind, name, (unsigned long long)value);
}

static void run_metrics(struct uar_buf *b, struct uar_runtime *rt)
{
	struct uar_runtime_stats s;

	uar_runtime_stats(rt, &s);
	metric(b, "runs_created_total", "counter", s.created, "Runs created.");
	uar_buf_printf(b,
		       "# HELP uar_runs_ended_total Runs that ended.\n"
		       "# TYPE uar_runs_ended_total counter\n"
		       "uar_runs_ended_total{status=\"succeeded\"} %llu\n"
		       "uar_runs_ended_total{status=\"failed\"} %llu\n"
		       "uar_runs_ended_total{status=\"canceled\"} %llu\n"
		       "uar_runs_ended_total{status=\"timeout\"} %llu\n",
		       (unsigned long long)s.completed, (unsigned long long)s.failed,
		       (unsigned long long)s.cancelled, (unsigned long long)s.timed_out);
	metric(b, "runs_recovered_total", "counter", s.recovered, "Runs found at start.");
	metric(b, "runs_live", "gauge", s.live_runs, "Runs in memory.");
	metric(b, "sessions_live", "gauge", s.sessions, "Sessions in memory.");
	metric(b, "commands_total", "counter", s.commands, "Commands to the engine.");
	metric(b, "commands_refused_total", "counter", s.refused, "Commands the tables refused.");
	metric(b, "deltas_merged_total", "counter", s.merged, "Deltas merged while they waited.");
	metric(b, "events_total", "counter", s.events, "Events appended.");
}

static void store_metrics(struct uar_buf *b, struct uar_store *store)
{
	struct uar_store_stats s;

	store->ops->stats(store, &s);
	metric(b, "store_commits_total", "counter", s.commits, "Durable commits.");
	metric(b, "store_appends_total", "counter", s.appends, "Appends in them.");
	metric(b, "store_commit_microseconds_total", "counter", s.commit_us_total,
	       "Time spent committing.");
	metric(b, "store_commit_microseconds_max", "gauge", s.commit_us_max, "Longest commit.");
	metric(b, "store_reads_total", "counter", s.reads, "Reads.");
	metric(b, "store_queued", "gauge", s.queued, "Appends that wait for a commit.");
	metric(b, "store_health", "gauge", (uint64_t)s.health, "0 fine, 1 full, 2 broken.");
}

static void http_metrics(struct uar_buf *b, const struct uar_gate *g)
{
	struct uar_http_stats s = { 0 };
	struct uar_bus_stats bus;

	if (g->http)
		uar_http_stats(g->http, &s);
	uar_bus_stats(uar_runtime_bus(g->o.runtime), &bus);
	metric(b, "http_connections", "gauge", s.open, "Open connections.");
	metric(b, "http_streams", "gauge", s.streams, "Open streams.");
	metric(b, "http_accepted_total", "counter", s.accepted, "Connections accepted.");
	metric(b, "http_requests_total", "counter", s.requests, "Requests.");
	metric(b, "http_refused_total", "counter", s.refused, "Requests refused by the reader.");
	metric(b, "http_sent_bytes_total", "counter", s.bytes_out, "Bytes sent.");
	metric(b, "bus_delivered_total", "counter", bus.delivered,
	       "Events handed to live readers.");
}

static void process_metrics(struct uar_buf *b, const struct uar_gate *g)
{
	unsigned long size = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f) {
		if (fscanf(f, "%lu %lu", &size, &resident) != 2)
			resident = 0;
		fclose(f);
	}
	metric(b, "resident_memory_bytes", "gauge",
	       (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE), "Resident memory.");
	metric(b, "uptime_seconds", "counter",
	       (uint64_t)(uar_clock_mono(g->o.sched->clock) - g->started_us) / 1000000,
	       "Time since start.");
}

void gate_metrics(struct call *c)
{
	struct uar_buf b = uar_buf_make(TEXT_BYTES);

	run_metrics(&b, c->g->o.runtime);
	store_metrics(&b, uar_runtime_store(c->g->o.runtime));
	http_metrics(&b, c->g);
	process_metrics(&b, c->g);
	if (b.err)
		gate_problem(c, b.err, NULL);
	else
		gate_answer_type(c, 200, "text/plain; version=0.0.4", uar_buf_str(&b));
	uar_buf_fini(&b);
}

/* --- the one-time link of the page ---------------------------------------------- */

const char *uar_gate_link_code(struct uar_gate *g)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	unsigned char raw[LINK_CODE];

	g->o.rand->fill(g->o.rand->ctx, raw, sizeof raw);
	for (size_t i = 0; i < LINK_CODE; i++)
		g->code[i] = alphabet[raw[i] & 63];
	g->code[LINK_CODE] = 0;
	g->code_until_us = uar_clock_mono(g->o.sched->clock) + LINK_VALID_US;
	return g->code;
}

/* 258 random bits: guessing is hopeless, and the right one works once. */
static bool take_code(struct uar_gate *g, uar_str given)
{
	bool right = uar_str_eq_secret(given, uar_str_c(g->code)) &&
		     uar_clock_mono(g->o.sched->clock) < g->code_until_us;

	if (right)
		g->code[0] = 0;
	return right;
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
	b.err = uar_jw_end(&w);
	gate_answer(c, 200, &b);
	uar_buf_fini(&b);
}
