/* numbers.c - what commits say about runs, counted by plugin, entry and status.
 *
 * Every commit passes by once. Entries are counted apart up to a limit; those
 * beyond it share the row "other", so a caller cannot make the metrics grow. */
#include "gate/numbers.h"

#include "gate/gate_int.h"
#include "gate/health.h"
#include "gate/limits.h"

enum { SLOTS = 256, LABELS = 2 * UAR_LIMIT_ID_BYTES * 2 + 64 };
_Static_assert((int)SLOTS > (int)UAR_LIMIT_METRIC_SERIES, "a free slot ends every search");

enum ended { SUCCEEDED, FAILED, CANCELED, TIMEOUT, ENDED_COUNT };
static const char *const ended_names[ENDED_COUNT] = { "succeeded", "failed", "canceled",
						      "timeout" };

struct series {
	char plugin[UAR_LIMIT_ID_BYTES + 1], entry[UAR_LIMIT_ID_BYTES + 1];
	uint64_t created, retried, cancels, progress, exports;
	uint64_t ended[ENDED_COUNT];
	uint64_t live[UAR_STATUS_COUNT]; /* scratch of one answer */
	struct histogram duration, queued;
};

struct numbers {
	struct series *slots[SLOTS];
	struct series other;
	size_t count;
	struct histogram first_token, model, tool, hook, permission, export;
	uint64_t model_failures, input_tokens, output_tokens, time_limits;
	double cost_usd;
	struct health *health;
	struct uar_arena scratch; /* of a payload */
};

/* --- counting ------------------------------------------------------------------------ */

static struct series *make_series(struct numbers *n, uar_str plugin, uar_str entry)
{
	struct series *s;

	if (n->count >= UAR_LIMIT_METRIC_SERIES)
		return NULL;
	s = uar_zalloc(sizeof *s);
	if (!s)
		return NULL;
	n->count++;
	snprintf(s->plugin, sizeof s->plugin, "%.*s", UAR_FMT(plugin));
	snprintf(s->entry, sizeof s->entry, "%.*s", UAR_FMT(entry));
	return s;
}

static struct series *series_of(struct numbers *n, const struct uar_run *run)
{
	uar_str plugin = run->what.plugin_id, entry = run->what.entry_id;
	size_t at = uar_str_hash(plugin, uar_str_hash(entry, 0)) % SLOTS;
	struct series *s;

	for (; (s = n->slots[at]); at = (at + 1) % SLOTS)
		if (uar_str_is(plugin, s->plugin) && uar_str_is(entry, s->entry))
			return s;
	n->slots[at] = make_series(n, plugin, entry);
	return n->slots[at] ? n->slots[at] : &n->other;
}

static enum ended ended_of(enum uar_status status)
{
	switch (status) {
	case UAR_STATUS_COMPLETED: return SUCCEEDED;
	case UAR_STATUS_CANCELLED: return CANCELED;
	case UAR_STATUS_TIMED_OUT: return TIMEOUT;
	default: return FAILED;
	}
}

static void count_end(struct numbers *n, struct series *s, const struct uar_run *run)
{
	int64_t from = run->at.started_us ? run->at.started_us : run->at.created_us;

	s->ended[ended_of(run->status)]++;
	gate_histogram_add(&s->duration, run->at.finished_us - from);
	n->input_tokens += (uint64_t)run->call.input_tokens;
	n->output_tokens += (uint64_t)run->call.output_tokens;
}

/* A number that only the event has. Such events are rare beside deltas. */
static double told(struct numbers *n, const struct uar_event *ev, const char *key)
{
	const struct uar_json *p = NULL;
	double v = 0;

	if (uar_event_payload(ev, &n->scratch, &p, NULL) == UAR_OK)
		v = uar_json_double(uar_json_get(p, uar_str_c(key)), 0);
	uar_arena_reset(&n->scratch);
	return v;
}

static void count_model(struct numbers *n, const struct uar_run *run, const struct uar_event *ev)
{
	const struct uar_json *p = NULL;

	if (uar_event_payload(ev, &n->scratch, &p, NULL) == UAR_OK) {
		n->cost_usd += uar_json_double(uar_json_get(p, UAR_STR("cost_usd")), 0);
		gate_health_add(n->health, ev, p);
	}
	uar_arena_reset(&n->scratch);
	n->model_failures += ev->cls == UAR_EV_MODEL_FAILED;
	gate_histogram_add(&n->model, ev->time_us - run->call.requested_us);
	if (run->call.first_us)
		gate_histogram_add(&n->first_token, run->call.first_us - run->call.requested_us);
}

static void count_event(struct numbers *n, struct series *s, const struct uar_commit *c,
			const struct uar_event *ev)
{
	const struct uar_run *run = c->run;

	switch ((int)ev->cls) {
	case UAR_EV_TASK_ATTEMPT_STARTED:
		gate_histogram_add(&s->queued, run->at.started_us - run->at.created_us);
		break;
	case UAR_EV_TASK_ATTEMPT_COMPLETED:
	case UAR_EV_TASK_ATTEMPT_FAILED: count_end(n, s, run); break;
	case UAR_EV_TASK_CANCEL_REQUESTED: s->cancels++; break;
	case UAR_EV_TASK_PROGRESS: s->progress++; break;
	case UAR_EV_ARTIFACT_CHANGED: s->exports++; break;
	case UAR_EV_MODEL_COMPLETED:
	case UAR_EV_MODEL_FAILED: count_model(n, run, ev); break;
	case UAR_EV_TOOL_RESULT:
	case UAR_EV_TOOL_FAILED:
		gate_histogram_add(&n->tool, (int64_t)(told(n, ev, "duration_ms") * 1000));
		break;
	case UAR_EV_HOOK_COMPLETED:
	case UAR_EV_HOOK_FAILED:
		gate_histogram_add(&n->hook, (int64_t)(told(n, ev, "duration_ms") * 1000));
		break;
	case UAR_EV_ACTION_RESOLVED:
		gate_histogram_add(&n->permission, (int64_t)(told(n, ev, "waited_ms") * 1000));
		break;
	case UAR_EV_TASK_TIMED_OUT: n->time_limits++; break;
	default: break;
	}
}

void gate_numbers_count(struct numbers *n, const struct uar_commit *c)
{
	struct series *s = series_of(n, c->run);

	if (c->added) {
		s->created++;
		s->retried += c->run->what.attempt > 1;
	}
	for (size_t i = 0; i < c->event_count; i++)
		count_event(n, s, c, &c->events[i]);
}

/* --- writing --------------------------------------------------------------------------- */

struct labels {
	struct uar_buf text;
};

static const char *labels_of(struct labels *l, const struct series *s)
{
	uar_buf_clear(&l->text);
	gate_metric_label(&l->text, "plugin", uar_str_c(s->plugin));
	uar_buf_add_char(&l->text, ',');
	gate_metric_label(&l->text, "entry", uar_str_c(s->entry));
	return l->text.p ? l->text.p : "";
}

/* Rows in order of their slots, the shared one last; NULL past the end. */
static struct series *next_series(struct numbers *n, size_t *at)
{
	while (*at < SLOTS)
		if (n->slots[(*at)++])
			return n->slots[*at - 1];
	return (*at)++ == SLOTS && n->other.created ? &n->other : NULL;
}

static void put_counter(struct numbers *n, struct uar_buf *b, const char *name, size_t offset,
			const char *help)
{
	struct labels l = { uar_buf_make(LABELS) };
	const struct series *s;
	size_t at = 0;

	gate_metric_head(b, name, "counter", help);
	while ((s = next_series(n, &at))) {
		uint64_t value;

		memcpy(&value, (const char *)s + offset, sizeof value);
		uar_buf_printf(b, "uar_%s{%s} %llu\n", name, labels_of(&l, s),
			       (unsigned long long)value);
	}
	uar_buf_fini(&l.text);
}

static void put_histograms(struct numbers *n, struct uar_buf *b, const char *name, size_t offset,
			   const char *help)
{
	struct labels l = { uar_buf_make(LABELS) };
	const struct series *s;
	size_t at = 0;

	gate_metric_head(b, name, "histogram", help);
	while ((s = next_series(n, &at)))
		gate_histogram_write(b, name, labels_of(&l, s),
				     (const struct histogram *)((const char *)s + offset));
	uar_buf_fini(&l.text);
}

static void put_ended(struct numbers *n, struct uar_buf *b)
{
	struct labels l = { uar_buf_make(LABELS) };
	const struct series *s;
	size_t at = 0;

	gate_metric_head(b, "runs_ended_total", "counter", "Runs that ended, by outcome.");
	while ((s = next_series(n, &at)))
		for (int i = 0; i < ENDED_COUNT; i++)
			if (s->ended[i])
				uar_buf_printf(b, "uar_runs_ended_total{%s,status=\"%s\"} %llu\n",
					       labels_of(&l, s), ended_names[i],
					       (unsigned long long)s->ended[i]);
	uar_buf_fini(&l.text);
}

static void count_live(void *ctx, const struct uar_run *run)
{
	series_of(ctx, run)->live[run->status]++;
}

/* What is there now is looked at when somebody asks, so it is never out of step. */
static void put_live(struct numbers *n, struct uar_buf *b)
{
	struct labels l = { uar_buf_make(LABELS) };
	struct series *s;
	size_t at = 0;

	gate_metric_head(b, "runs", "gauge",
			 "Runs that are not over; those queued are the depth of the queue.");
	while ((s = next_series(n, &at)))
		for (int i = 0; i < UAR_STATUS_COUNT; i++) {
			if (s->live[i])
				uar_buf_printf(b, "uar_runs{%s,status=\"%s\"} %llu\n",
					       labels_of(&l, s), uar_status_text(i),
					       (unsigned long long)s->live[i]);
			s->live[i] = 0;
		}
	uar_buf_fini(&l.text);
}

void gate_numbers_write(struct numbers *n, struct uar_runtime *rt, struct uar_buf *b)
{
	uar_runtime_each_run(rt, count_live, n);
	put_live(n, b);
	put_counter(n, b, "runs_started_total", offsetof(struct series, created), "Runs created.");
	put_counter(n, b, "runs_retried_total", offsetof(struct series, retried),
		    "Of them: further attempts.");
	put_counter(n, b, "run_cancels_total", offsetof(struct series, cancels),
		    "Cancels asked for.");
	put_counter(n, b, "run_progress_total", offsetof(struct series, progress),
		    "Reports of progress that were kept.");
	put_counter(n, b, "exports_total", offsetof(struct series, exports), "Export items.");
	put_ended(n, b);
	put_histograms(n, b, "run_duration_seconds", offsetof(struct series, duration),
		       "From the start of a run to its end.");
	put_histograms(n, b, "run_queue_seconds", offsetof(struct series, queued),
		       "From the creation of a run to its start.");
	gate_metric_head(b, "model_call_seconds", "histogram", "Calls of models.");
	gate_histogram_write(b, "model_call_seconds", "", &n->model);
	gate_metric_head(b, "model_first_token_seconds", "histogram",
			 "From a call of a model to its first token.");
	gate_histogram_write(b, "model_first_token_seconds", "", &n->first_token);
	gate_metric_head(b, "tool_seconds", "histogram", "Calls of tools, from start to end.");
	gate_histogram_write(b, "tool_seconds", "", &n->tool);
	gate_metric_head(b, "hook_seconds", "histogram",
			 "Hooks that agents reported, from start to end.");
	gate_histogram_write(b, "hook_seconds", "", &n->hook);
	gate_metric_head(b, "permission_wait_seconds", "histogram",
			 "From a question to its answer.");
	gate_histogram_write(b, "permission_wait_seconds", "", &n->permission);
	gate_metric_head(
		b, "export_seconds", "histogram",
		"From a request for items or the content of one to the end of the answer.");
	gate_histogram_write(b, "export_seconds", "", &n->export);
	gate_metric(b, "run_time_limits_total", "counter", n->time_limits,
		    "Runs that reached their time limit.");
	gate_metric_head(b, "model_cost_usd_total", "counter",
			 "What calls cost, where it is known.");
	uar_buf_printf(b, "uar_model_cost_usd_total %.6f\n", n->cost_usd);
	gate_metric(b, "model_failures_total", "counter", n->model_failures,
		    "Calls of models that failed.");
	gate_metric(b, "model_input_tokens_total", "counter", n->input_tokens,
		    "Tokens given to models by runs that ended.");
	gate_metric(b, "model_output_tokens_total", "counter", n->output_tokens,
		    "Tokens that models gave.");
}

const struct health *gate_numbers_health(const struct numbers *n)
{
	return n->health;
}

void gate_numbers_export(struct numbers *n, int64_t us)
{
	gate_histogram_add(&n->export, us);
}

/* --- life --------------------------------------------------------------------------------- */

struct numbers *gate_numbers_create(void)
{
	struct numbers *n = uar_zalloc(sizeof *n);

	if (!n)
		return NULL;
	n->health = gate_health_create();
	if (!n->health) {
		uar_free(n);
		return NULL;
	}
	uar_arena_init(&n->scratch, 0);
	snprintf(n->other.plugin, sizeof n->other.plugin, "other");
	snprintf(n->other.entry, sizeof n->other.entry, "other");
	return n;
}

void gate_numbers_destroy(struct numbers *n)
{
	for (size_t i = 0; n && i < SLOTS; i++)
		uar_free(n->slots[i]);
	if (n) {
		gate_health_destroy(n->health);
		uar_arena_fini(&n->scratch);
	}
	uar_free(n);
}
