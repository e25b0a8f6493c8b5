/* uar_plugin_run.h - what a handler may do with its run, as lines to the server. Part of
 * uar_plugin.c, which is the only one to include it. */
#ifndef UAR_PLUGIN_RUN_H
#define UAR_PLUGIN_RUN_H

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "uar/plugin.h"
#include "uar_plugin_json.h"

enum { LINE_BYTES = 1048576, NAME_MAX_BYTES = 256, KEPT_MAX = 10000 };

struct run;

/* The conversation with the server. */
struct wire {
	const struct uarp_plugin *plugin;
	int out; /* standard output as it was */
	size_t line_max;
	pthread_mutex_t writing;
	pthread_mutex_t lock; /* guards what follows, and the runs */
	pthread_cond_t work;
	struct run *runs;  /* all of them */
	struct run *queue; /* those without a thread, oldest first */
	unsigned idle, queued;
	int64_t last_id;
	bool over;
};

struct block {
	struct block *next;
	max_align_t bytes[];
};

struct run {
	struct uarp_run base; /* first: the port gets it back by a cast */
	struct wire *wire;
	struct run *next, *behind;
	struct json args;
	struct uarp_info info;
	struct block *memory;
	uarp_entry_fn *fn;
	atomic_bool cancelled;
	char reason[NAME_MAX_BYTES];
	int64_t asked; /* id of the request that waits; 0: none */
	bool refused;  /* what came back */
	char id[NAME_MAX_BYTES], error[64];
	struct text kept; /* "id","id" */
	unsigned kept_count;
	const char *result;
	struct uarp_failure failure; /* code NULL: none was told */
	pthread_cond_t told;
};

static struct run *run_of(struct uarp_run *base)
{
	return (struct run *)(void *)base;
}

/* --- lines out ----------------------------------------------------------------------- */

static void begin(struct text *t, const char *method, int64_t id)
{
	char number[32];

	add_c(t, "{\"jsonrpc\":\"2.0\",");
	if (id) {
		snprintf(number, sizeof number, "\"id\":%lld,", (long long)id);
		add_c(t, number);
	}
	if (method) {
		add_c(t, "\"method\":\"");
		add_c(t, method);
		add_c(t, "\",\"params\":{");
	}
}

static void key(struct text *t, const char *name)
{
	if (t->n && t->p[t->n - 1] != '{')
		add_c(t, ",");
	add_string(t, name, strlen(name));
	add_c(t, ":");
}

static void put_text(struct text *t, const char *name, const char *value)
{
	if (!value)
		return;
	key(t, name);
	add_string(t, value, strlen(value));
}

static void put_number(struct text *t, const char *name, double value)
{
	char number[40];

	if (!(value >= 0))
		return;
	snprintf(number, sizeof number, "%.17g", value);
	for (char *c = number; *c; c++) /* whatever the locale says */
		*c = *c == ',' ? '.' : *c;
	key(t, name);
	add_c(t, number);
}

static bool put_json(struct text *t, const char *name, const char *json, size_t n)
{
	key(t, name);
	return add_json(t, json, n);
}

/* Writes the line and frees it. NULL, or the code of the refusal. */
static const char *send_line(struct wire *w, struct text *t)
{
	const char *code = t->bad ? "TRANSPORT_ERROR" : NULL;
	size_t at = 0;

	add_c(t, "\n");
	if (!code && t->n > w->line_max)
		code = "PAYLOAD_TOO_LARGE";
	pthread_mutex_lock(&w->writing);
	while (!code && at < t->n) {
		ssize_t n = write(w->out, t->p + at, t->n - at);

		if (n > 0)
			at += (size_t)n;
		else
			code = "TRANSPORT_ERROR";
	}
	pthread_mutex_unlock(&w->writing);
	free(t->p);
	return code;
}

/* --- questions -------------------------------------------------------------------------- */

static int refuse(struct run *r, const char *code)
{
	snprintf(r->error, sizeof r->error, "%s", code);
	return -1;
}

static const struct uarp_info *ctx_info(struct uarp_run *base)
{
	return &run_of(base)->info;
}

static void *ctx_alloc(struct uarp_run *base, size_t size)
{
	struct run *r = run_of(base);
	struct block *b = size < SIZE_MAX / 2 ? calloc(1, sizeof *b + (size ? size : 1)) : NULL;

	if (!b)
		return NULL;
	b->next = r->memory;
	r->memory = b;
	return b->bytes;
}

static char *keep(struct run *r, const char *p, size_t n)
{
	char *out = ctx_alloc(&r->base, n + 1);

	if (out && n)
		memcpy(out, p, n);
	return out;
}

/* A string value decoded; NULL when it is none. */
static const char *string_of(struct run *r, struct json j)
{
	char *out = j.p && *j.p == '"' ? ctx_alloc(&r->base, (size_t)(j.end - j.p)) : NULL;

	if (out)
		decode(j, out);
	return out;
}

static enum uarp_kind kind_of(struct json j)
{
	switch (*j.p) {
	case '"': return UARP_STRING;
	case '{': return UARP_OBJECT;
	case '[': return UARP_ARRAY;
	case 't':
	case 'f': return UARP_BOOL;
	case 'n': return UARP_NULL;
	default: return UARP_NUMBER;
	}
}

static enum uarp_kind ctx_arg(struct uarp_run *base, const char *pointer, struct uarp_value *out)
{
	struct run *r = run_of(base);
	struct json j = find(r->args, pointer), k, v;
	const char *at = j.p;

	*out = (struct uarp_value){ .kind = UARP_ABSENT, .text = "" };
	if (!j.p)
		return UARP_ABSENT;
	out->text = *j.p == '"' ? string_of(r, j) : keep(r, j.p, (size_t)(j.end - j.p));
	if (!out->text) {
		out->text = "";
		return UARP_ABSENT;
	}
	out->size = strlen(out->text);
	out->kind = kind_of(j);
	for (at++; is_box(j) && next_child(j, &at, &k, &v);)
		out->count++;
	if (out->kind == UARP_NUMBER) {
		out->number = number_of(j);
		out->integer = integer_of(j);
	} else if (out->kind == UARP_BOOL) {
		out->integer = *j.p == 't';
	}
	return out->kind;
}

static const char *ctx_quote(struct uarp_run *base, const char *value)
{
	struct text t = { NULL, 0, 0, false };
	const char *out = NULL;

	if (value)
		add_string(&t, value, strlen(value));
	if (value && !t.bad)
		out = keep(run_of(base), t.p, t.n);
	free(t.p);
	return out;
}

static const char *ctx_error(struct uarp_run *base)
{
	return run_of(base)->error;
}

static int ctx_cancelled(struct uarp_run *base)
{
	return atomic_load_explicit(&run_of(base)->cancelled, memory_order_acquire);
}

static const char *ctx_cancel_reason(struct uarp_run *base)
{
	return ctx_cancelled(base) ? run_of(base)->reason : "";
}

static int ctx_wait(struct uarp_run *base, double seconds)
{
	struct run *r = run_of(base);
	struct timespec end;
	double whole = seconds > 0 ? floor(seconds < 1e9 ? seconds : 1e9) : 0;
	int late = 0;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += (time_t)whole;
	end.tv_nsec += seconds > 0 && seconds < 1e9 ? (long)((seconds - whole) * 1e9) : 0;
	end.tv_sec += end.tv_nsec / 1000000000L;
	end.tv_nsec %= 1000000000L;
	pthread_mutex_lock(&r->wire->lock);
	while (!late && !atomic_load(&r->cancelled))
		late = pthread_cond_timedwait(&r->told, &r->wire->lock, &end);
	pthread_mutex_unlock(&r->wire->lock);
	return ctx_cancelled(base);
}

/* --- what a handler tells ------------------------------------------------------------------ */

static int ctx_report(struct uarp_run *base, const struct uarp_report *p, size_t size)
{
	struct run *r = run_of(base);
	struct text t = { NULL, 0, 0, false };
	const char *code;

	(void)size;
	begin(&t, "run.progress", 0);
	put_text(&t, "run_id", r->info.run_id);
	put_number(&t, "progress", p->progress);
	put_number(&t, "eta_seconds", p->eta_seconds);
	put_number(&t, "step", (double)p->step);
	put_number(&t, "step_total", (double)p->step_total);
	put_text(&t, "message", p->message);
	put_text(&t, "stage", p->stage);
	if (p->metrics && !put_json(&t, "metrics", p->metrics, strlen(p->metrics))) {
		free(t.p);
		return refuse(r, "INVALID_ARGUMENT");
	}
	add_c(&t, "}}");
	code = send_line(r->wire, &t);
	return code ? refuse(r, code) : 0;
}

static void ctx_log(struct uarp_run *base, enum uarp_level level, const char *message)
{
	static const char *const levels[] = { "debug", "info", "warn", "error" };
	struct run *r = run_of(base);
	struct text t = { NULL, 0, 0, false };

	begin(&t, "log", 0);
	put_text(&t, "run_id", r->info.run_id);
	put_text(&t, "level", (unsigned)level < 4 ? levels[level] : "info");
	put_text(&t, "message", message);
	add_c(&t, "}}");
	send_line(r->wire, &t);
}

/* The content under the name of its type. */
static bool put_content(struct text *t, const struct uarp_item *x, size_t n)
{
	if (x->upload) {
		put_text(t, "upload", x->upload);
		return true;
	}
	if (!strcmp(x->type, "json"))
		return put_json(t, "json", x->data, n);
	key(t, x->type);
	if (!strcmp(x->type, "binary")) {
		add_c(t, "\"");
		add_base64(t, x->data, n);
		add_c(t, "\"");
		return true;
	}
	if (!is_utf8(x->data, n) || memchr(x->data, 0, n))
		return false;
	add_string(t, x->data, n);
	return true;
}

static bool put_item(struct text *t, const struct uarp_item *x)
{
	size_t n = x->size;

	if (!x->type || (!x->data && n && !x->upload))
		return false;
	if (n == UARP_STRLEN)
		n = x->data ? strlen(x->data) : 0;
	put_text(t, "type", x->type);
	if (!put_content(t, x, n))
		return false;
	put_text(t, "description", x->description);
	put_text(t, "label", x->label);
	put_text(t, "category", x->category);
	put_text(t, "mime", x->mime);
	return !x->metadata || put_json(t, "metadata", x->metadata, strlen(x->metadata));
}

/* The id of a request of this run; 0: nobody will answer any more. */
static int64_t ask(struct run *r)
{
	struct wire *w = r->wire;
	int64_t id;

	pthread_mutex_lock(&w->lock);
	id = r->asked = w->over ? 0 : ++w->last_id;
	pthread_mutex_unlock(&w->lock);
	return id;
}

/* Sends a request and waits for its answer. False: refused, and r->error says why. */
static bool request(struct run *r, struct text *t)
{
	const char *code = send_line(r->wire, t);
	struct wire *w = r->wire;
	bool refused;

	pthread_mutex_lock(&w->lock);
	while (!code && r->asked)
		pthread_cond_wait(&r->told, &w->lock);
	r->asked = 0;
	refused = code || r->refused;
	pthread_mutex_unlock(&w->lock);
	if (code)
		refuse(r, code);
	return !refused;
}

static const char *ctx_put(struct uarp_run *base, const struct uarp_item *item, size_t size)
{
	struct run *r = run_of(base);
	struct uarp_item x = UARP_ITEM;
	struct text t = { NULL, 0, 0, false };
	int64_t id = ask(r);

	/* The handler may be built with an older header, whose struct is shorter. */
	memcpy(&x, item, size < sizeof x ? size : sizeof x);
	if (!id) {
		refuse(r, "TRANSPORT_ERROR");
		return NULL;
	}
	begin(&t, "run.export", id);
	put_text(&t, "run_id", r->info.run_id);
	if (!put_item(&t, &x)) {
		free(t.p);
		refuse(r, "INVALID_ARGUMENT");
		return NULL;
	}
	add_c(&t, "}}");
	return request(r, &t) ? r->id : NULL;
}

static int ctx_upload(struct uarp_run *base, const char *name, int64_t offset, const void *data,
		      size_t size)
{
	struct run *r = run_of(base);
	struct text t = { NULL, 0, 0, false };
	int64_t id = ask(r);

	if (!id)
		return refuse(r, "TRANSPORT_ERROR");
	begin(&t, "run.upload", id);
	put_text(&t, "run_id", r->info.run_id);
	put_text(&t, "upload", name);
	put_number(&t, "offset", (double)offset);
	key(&t, "data");
	add_c(&t, "\"");
	add_base64(&t, data, size);
	add_c(&t, "\"}}");
	return request(r, &t) ? 0 : -1;
}

static int ctx_keep(struct uarp_run *base, const char *id)
{
	struct run *r = run_of(base);

	if (!id || r->kept_count >= KEPT_MAX)
		return refuse(r, "INVALID_ARGUMENT");
	if (r->kept_count)
		add_c(&r->kept, ",");
	add_string(&r->kept, id, strlen(id));
	if (r->kept.bad)
		return refuse(r, "TRANSPORT_ERROR");
	r->kept_count++;
	return 0;
}

static const char *copy(struct run *r, const char *s)
{
	return s ? keep(r, s, strlen(s)) : NULL;
}

static int ctx_fail(struct uarp_run *base, const struct uarp_failure *f, size_t size)
{
	struct run *r = run_of(base);

	(void)size;
	r->failure =
		(struct uarp_failure){ copy(r, f->code ? f->code : "PLUGIN_ERROR"),
				       copy(r, f->message), copy(r, f->details), f->retriable };
	return UARP_FAILED;
}

static int ctx_result(struct uarp_run *base, const char *json)
{
	struct run *r = run_of(base);
	struct uarp_failure bad = { "PLUGIN_ERROR", "the result is not JSON", NULL, 0 };
	struct text t = { NULL, 0, 0, false };
	bool good = json && add_json(&t, json, strlen(json)) && !t.bad;

	if (good)
		r->result = keep(r, t.p, t.n);
	free(t.p);
	return good && r->result ? UARP_OK : ctx_fail(base, &bad, sizeof bad);
}

static const struct uarp_ops run_ops = {
	.abi = UARP_ABI,
	.size = sizeof run_ops,
	.info = ctx_info,
	.arg = ctx_arg,
	.alloc = ctx_alloc,
	.quote = ctx_quote,
	.report = ctx_report,
	.put = ctx_put,
	.error = ctx_error,
	.keep = ctx_keep,
	.cancelled = ctx_cancelled,
	.cancel_reason = ctx_cancel_reason,
	.wait = ctx_wait,
	.log = ctx_log,
	.result = ctx_result,
	.fail = ctx_fail,
	.upload = ctx_upload,
};

#endif
