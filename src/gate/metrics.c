/* metrics.c - /metrics, in the text format of Prometheus. */
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "gate/numbers.h"

#include <unistd.h>

/* Microseconds; from what costs a commit to what takes an afternoon. */
static const struct {
	int64_t us;
	const char *text;
} bounds[HISTOGRAM_BOUNDS] = {
	{ 1000, "0.001" },	{ 5000, "0.005" },  { 10000, "0.01" },	  { 50000, "0.05" },
	{ 100000, "0.1" },	{ 500000, "0.5" },  { 1000000, "1" },	  { 5000000, "5" },
	{ 10000000, "10" },	{ 60000000, "60" }, { 300000000, "300" }, { 1800000000, "1800" },
	{ 7200000000, "7200" },
};

void gate_histogram_add(struct histogram *h, int64_t us)
{
	size_t i = 0;

	if (us < 0)
		us = 0;
	while (i < HISTOGRAM_BOUNDS && us > bounds[i].us)
		i++;
	h->below[i]++;
	h->count++;
	h->sum_us += us;
}

void gate_histogram_write(struct uar_buf *out, const char *name, const char *labels,
			  const struct histogram *h)
{
	const char *comma = labels[0] ? "," : "";
	unsigned long long sofar = 0;

	for (size_t i = 0; i <= HISTOGRAM_BOUNDS; i++) {
		sofar += h->below[i];
		uar_buf_printf(out, "uar_%s_bucket{%s%sle=\"%s\"} %llu\n", name, labels, comma,
			       i < HISTOGRAM_BOUNDS ? bounds[i].text : "+Inf", sofar);
	}
	uar_buf_printf(out, "uar_%s_sum{%s} %.6f\n", name, labels, (double)h->sum_us / 1e6);
	uar_buf_printf(out, "uar_%s_count{%s} %llu\n", name, labels, (unsigned long long)h->count);
}

void gate_metric_head(struct uar_buf *out, const char *name, const char *kind, const char *help)
{
	uar_buf_printf(out, "# HELP uar_%s %s\n# TYPE uar_%s %s\n", name, help, name, kind);
}

void gate_metric_label(struct uar_buf *out, const char *name, uar_str value)
{
	uar_buf_printf(out, "%s=\"", name);
	for (size_t i = 0; i < value.n; i++) {
		if (value.p[i] == '"' || value.p[i] == '\\')
			uar_buf_add_char(out, '\\');
		uar_buf_add_char(out, value.p[i]);
	}
	uar_buf_add_char(out, '"');
}

void gate_metric(struct uar_buf *out, const char *name, const char *kind, uint64_t value,
		 const char *help)
{
	gate_metric_head(out, name, kind, help);
	uar_buf_printf(out, "uar_%s %llu\n", name, (unsigned long long)value);
}

static void run_metrics(struct uar_buf *b, const struct uar_gate *g)
{
	struct uar_runtime_stats s;

	uar_runtime_stats(g->o.runtime, &s);
	gate_metric(b, "runs_created_total", "counter", s.created, "Runs created.");
	gate_metric(b, "runs_recovered_total", "counter", s.recovered, "Runs found at start.");
	gate_metric(b, "runs_evicted_total", "counter", s.evicted,
		    "Ended runs that are no longer kept.");
	gate_metric(b, "blobs_swept_total", "counter", s.swept,
		    "Blobs unlinked, as only evicted runs referred to them.");
	gate_metric(b, "runs_live", "gauge", s.live_runs, "Runs in memory.");
	gate_metric(b, "runs_parked", "gauge", s.parked,
		    "Runs that wait outside of memory, for an answer or their turn.");
	gate_metric(b, "sessions_live", "gauge", s.sessions, "Sessions in memory.");
	gate_metric(b, "commands_total", "counter", s.commands, "Commands to the engine.");
	gate_metric(b, "commands_refused_total", "counter", s.refused,
		    "Commands the tables refused.");
	gate_metric(b, "deltas_merged_total", "counter", s.merged,
		    "Deltas merged while they waited.");
	gate_metric(b, "events_total", "counter", s.events, "Events appended.");
	gate_numbers_write(g->numbers, g->o.runtime, b);
}

static void store_metrics(struct uar_buf *b, const struct uar_reader_stats *s)
{
	gate_metric(b, "store_commits_total", "counter", s->commits, "Durable commits.");
	gate_metric(b, "store_appends_total", "counter", s->appends, "Appends in them.");
	gate_metric(b, "store_commit_microseconds_total", "counter", s->commit_us_total,
		    "Time spent committing.");
	gate_metric(b, "store_commit_microseconds_max", "gauge", s->commit_us_max,
		    "Longest commit.");
	gate_metric(b, "store_fold_failures_total", "counter", s->fold_failures,
		    "Failed attempts to fold the write-ahead log into the file.");
	gate_metric(b, "store_reads_total", "counter", s->reads, "Reads.");
	gate_metric(b, "store_queued", "gauge", s->queued, "Appends that wait for a commit.");
	gate_metric(b, "store_health", "gauge", (uint64_t)s->health, "0 fine, 1 full, 2 broken.");
}

static void http_metrics(struct uar_buf *b, const struct uar_gate *g,
			 const struct uar_reader_stats *read)
{
	struct uar_http_stats s = { 0 };

	if (g->http)
		uar_http_stats(g->http, &s);
	gate_metric(b, "http_connections", "gauge", s.open, "Open connections.");
	gate_metric(b, "http_streams", "gauge", s.streams, "Open streams.");
	gate_metric(b, "http_accepted_total", "counter", s.accepted, "Connections accepted.");
	gate_metric(b, "http_requests_total", "counter", s.requests, "Requests.");
	gate_metric(b, "http_refused_total", "counter", s.refused,
		    "Requests refused by the reader.");
	gate_metric(b, "http_sent_bytes_total", "counter", s.bytes_out, "Bytes sent.");
	gate_metric(b, "bus_delivered_total", "counter", read->delivered,
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
	gate_metric(b, "resident_memory_bytes", "gauge",
		    (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE), "Resident memory.");
	gate_metric(b, "uptime_seconds", "counter",
		    (uint64_t)(uar_clock_mono(g->o.sched->clock) - g->own.started_us) / 1000000,
		    "Time since start.");
}

void gate_metrics(struct call *c)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_METRICS_BYTES);
	struct uar_reader_stats read;

	uar_reader_stats(c->g->o.reader, &read);
	run_metrics(&b, c->g);
	store_metrics(&b, &read);
	http_metrics(&b, c->g, &read);
	process_metrics(&b, c->g);
	if (c->g->o.told.metrics)
		c->g->o.told.metrics(c->g->o.told.ctx, &b);
	if (b.err)
		gate_problem(c, b.err, NULL);
	else
		gate_answer_type(c, 200, "text/plain; version=0.0.4", uar_buf_str(&b));
	uar_buf_fini(&b);
}
