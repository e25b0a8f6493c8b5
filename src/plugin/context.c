/* context.c - what handlers of a library may do, on their own threads.
 *
 * Everything a handler says becomes the message that a process would have sent,
 * and is read by the same code: one set of limits, one set of errors. */
#include "base/base64.h"
#include "event/limits.h"
#include "json/limits.h"
#include "plugin/library_int.h"

enum { REPORT_BYTES = 65536, LINE_MAX_BYTES = UAR_LIMIT_PLUGIN_LINE };

static struct job *job_of(struct uarp_run *run)
{
	return (struct job *)(void *)run;
}

static int refuse(struct job *j, const char *code)
{
	j->error = code;
	return -1;
}

static int refuse_with(struct job *j, uar_err e)
{
	const char *token = uar_err_token(e);

	if (e == UAR_ESTATE)
		token = "RUN_NOT_RUNNING";
	else if (strcmp(token, "VALIDATION_ERROR") == 0)
		token = "INVALID_ARGUMENT";
	return refuse(j, token);
}

/* --- messages ---------------------------------------------------------------------- */

/* One message in the making: its text, then what was read from it. */
struct draft {
	struct job *job;
	struct uar_buf text;
	struct uar_jw w;
	struct uar_arena arena;
	struct uar_message message;
	struct uar_error error;
	uar_err err;
};

static void draft_begin(struct draft *d, struct job *j, const char *method)
{
	*d = (struct draft){ .job = j, .text = uar_buf_make(LINE_MAX_BYTES) };
	uar_arena_init(&d->arena, 0);
	d->w = uar_jw_begin(&d->text);
	uar_jw_obj(&d->w, NULL);
	uar_jw_cstr(&d->w, "jsonrpc", "2.0");
	uar_jw_cstr(&d->w, "method", method);
	uar_jw_obj(&d->w, "params");
	uar_jw_cstr(&d->w, "run_id", j->info.run_id);
}

static void draft_fini(struct draft *d)
{
	uar_buf_fini(&d->text);
	uar_arena_fini(&d->arena);
}

static void put_bytes(struct draft *d, const char *key, uar_str text)
{
	if (!text.p || !uar_utf8_valid(text))
		d->err = UAR_EUTF8;
	else
		uar_jw_str(&d->w, key, text);
}

static void put_text(struct draft *d, const char *key, const char *text)
{
	if (text)
		put_bytes(d, key, uar_str_c(text));
}

static void put_json(struct draft *d, const char *key, uar_str text)
{
	struct uar_json_limits limits = { .bytes = LINE_MAX_BYTES };
	const struct uar_json *tree;
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = text.p ? uar_json_parse(text, &limits, &arena, &tree, &d->error) : UAR_EINVALID;
	if (e)
		d->err = e;
	else
		uar_jw_tree(&d->w, key, tree);
	uar_arena_fini(&arena);
}

static void put_object(struct draft *d, const char *key, const char *text)
{
	if (text)
		put_json(d, key, uar_str_c(text));
}

/* Reads the finished message back; what it means is in d->message. */
static uar_err draft_end(struct draft *d)
{
	while (d->w.depth)
		uar_jw_close(&d->w);
	if (!d->err)
		d->err = uar_jw_end(&d->w);
	if (!d->err)
		d->err = d->text.err;
	if (!d->err)
		d->err = uar_message_read(uar_buf_str(&d->text), &d->arena, &d->message, &d->error);
	return d->err;
}

/* Hands the message to the loop and waits for what becomes of it. */
static uar_err send(struct job *j, const struct uar_message *m)
{
	struct job_mail mail = { .message = m };
	struct library *l = j->library;

	pthread_mutex_lock(&l->lock);
	if (l->closed || j->lost) {
		pthread_mutex_unlock(&l->lock);
		return UAR_ESTATE;
	}
	j->mail = &mail;
	library_post(l, j);
	while (!mail.answered)
		pthread_cond_wait(&j->told, &l->lock);
	j->mail = NULL;
	pthread_mutex_unlock(&l->lock);
	return mail.result;
}

/* --- questions ------------------------------------------------------------------------ */

static const struct uarp_info *ctx_info(struct uarp_run *run)
{
	return &job_of(run)->info;
}

static void *ctx_alloc(struct uarp_run *run, size_t size)
{
	return uar_arena_alloc(&job_of(run)->arena, size ? size : 1);
}

static const struct uar_json *args_of(struct job *j)
{
	if (!j->args && uar_json_parse(uar_str_c(j->info.args), NULL, &j->arena, &j->args, NULL))
		j->args = NULL;
	return j->args;
}

static int64_t whole(double d)
{
	return d >= 9223372036854775807.0    ? INT64_MAX
	       : d <= -9223372036854775808.0 ? INT64_MIN
					     : (int64_t)d;
}

static void fill_value(struct uarp_value *out, const struct uar_json *v)
{
	static const enum uarp_kind kinds[] = {
		[UAR_JSON_NULL] = UARP_NULL,	 [UAR_JSON_BOOL] = UARP_BOOL,
		[UAR_JSON_INT] = UARP_NUMBER,	 [UAR_JSON_DOUBLE] = UARP_NUMBER,
		[UAR_JSON_STRING] = UARP_STRING, [UAR_JSON_ARRAY] = UARP_ARRAY,
		[UAR_JSON_OBJECT] = UARP_OBJECT,
	};

	out->kind = kinds[v->kind];
	out->count = v->kind == UAR_JSON_ARRAY || v->kind == UAR_JSON_OBJECT ? v->count : 0;
	out->number = uar_json_double(v, 0);
	out->integer = v->kind == UAR_JSON_BOOL	    ? v->b
		       : v->kind == UAR_JSON_DOUBLE ? whole(v->d)
						    : uar_json_int(v, 0);
}

static enum uarp_kind ctx_arg(struct uarp_run *run, const char *pointer, struct uarp_value *out)
{
	struct job *j = job_of(run);
	const struct uar_json *v = uar_json_pointer(args_of(j), uar_str_c(pointer));
	struct uar_buf json = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_str text;

	*out = (struct uarp_value){ .kind = UARP_ABSENT, .text = "" };
	if (!v)
		return UARP_ABSENT;
	if (v->kind == UAR_JSON_STRING) {
		text = v->text;
	} else {
		uar_json_write(&json, v);
		text = uar_buf_str(&json);
	}
	text = uar_arena_str(&j->arena, text);
	if (text.p) {
		fill_value(out, v);
		out->text = text.p;
		out->size = text.n;
	}
	uar_buf_fini(&json);
	return out->kind;
}

static const char *ctx_quote(struct uarp_run *run, const char *text)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	const char *out = NULL;

	if (text) {
		uar_jw_str(&w, NULL, uar_str_c(text));
		if (uar_jw_end(&w) == UAR_OK)
			out = uar_arena_str(&job_of(run)->arena, uar_buf_str(&b)).p;
	}
	uar_buf_fini(&b);
	return out;
}

static const char *ctx_error(struct uarp_run *run)
{
	return job_of(run)->error;
}

static int ctx_cancelled(struct uarp_run *run)
{
	return atomic_load_explicit(&job_of(run)->cancelled, memory_order_acquire);
}

static const char *ctx_cancel_reason(struct uarp_run *run)
{
	return ctx_cancelled(run) ? job_of(run)->reason : "";
}

static int ctx_wait(struct uarp_run *run, double seconds)
{
	struct job *j = job_of(run);
	struct timespec end;
	double whole_seconds = seconds > 0 ? (double)(int64_t)(seconds < 1e9 ? seconds : 1e9) : 0;
	int late = 0;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += (time_t)whole_seconds;
	end.tv_nsec += seconds > 0 && seconds < 1e9 ? (long)((seconds - whole_seconds) * 1e9) : 0;
	if (end.tv_nsec >= 1000000000L) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000L;
	}
	pthread_mutex_lock(&j->library->lock);
	while (!late && !atomic_load(&j->cancelled))
		late = pthread_cond_timedwait(&j->told, &j->library->lock, &end);
	pthread_mutex_unlock(&j->library->lock);
	return ctx_cancelled(run);
}

/* --- reports ---------------------------------------------------------------------------- */

static bool keep_text(struct uar_arena *a, uar_str s, uar_str *out)
{
	uar_str kept = s.n ? uar_arena_str(a, s) : UAR_STR("");

	if (s.n && kept.p)
		*out = kept;
	return kept.p != NULL;
}

/* Lays a report over one that the loop has not taken yet. False: no memory. */
static bool merge(struct job_report *r, const struct uar_progress *p)
{
	if (!keep_text(&r->arena, p->stage, &r->progress.stage) ||
	    !keep_text(&r->arena, p->message, &r->progress.message) ||
	    !keep_text(&r->arena, p->metrics, &r->progress.metrics))
		return false;
	if (p->value >= 0)
		r->progress.value = p->value;
	if (p->eta_seconds >= 0)
		r->progress.eta_seconds = p->eta_seconds;
	if (p->step >= 0)
		r->progress.step = p->step;
	if (p->step_total >= 0)
		r->progress.step_total = p->step_total;
	return true;
}

static struct job_report empty_report(void)
{
	struct job_report r = { .pending = true };

	uar_arena_init(&r.arena, REPORT_BYTES);
	r.progress = (struct uar_progress){
		.value = -1, .eta_seconds = -1, .step = -1, .step_total = -1
	};
	return r;
}

/* Lays one report over another. What was replaced stays in the arena, so a full
 * one is exchanged for one with what still counts. */
static uar_err gather(struct job_report *r, const struct uar_progress *p)
{
	struct job_report next;

	if (!r->pending)
		*r = empty_report();
	if (merge(r, p))
		return UAR_OK;
	next = empty_report();
	if (!merge(&next, &r->progress) || !merge(&next, p)) {
		uar_arena_fini(&next.arena);
		return UAR_ENOMEM;
	}
	uar_arena_fini(&r->arena);
	*r = next;
	return UAR_OK;
}

static uar_err send_report(struct job *j, const struct uar_progress *p)
{
	struct library *l = j->library;
	uar_err e = UAR_ESTATE;

	pthread_mutex_lock(&l->lock);
	if (!l->closed && !j->lost) {
		e = gather(&j->report, p);
		library_post(l, j);
	}
	pthread_mutex_unlock(&l->lock);
	return e;
}

static int ctx_report(struct uarp_run *run, const struct uarp_report *r, size_t size)
{
	struct job *j = job_of(run);
	struct draft d;
	uar_err e;

	(void)size; /* has never grown */
	draft_begin(&d, j, "run.progress");
	if (r->progress >= 0)
		uar_jw_double(&d.w, "progress", r->progress);
	if (r->eta_seconds >= 0)
		uar_jw_double(&d.w, "eta_seconds", r->eta_seconds);
	if (r->step >= 0)
		uar_jw_int(&d.w, "step", r->step);
	if (r->step_total >= 0)
		uar_jw_int(&d.w, "step_total", r->step_total);
	put_text(&d, "message", r->message);
	put_text(&d, "stage", r->stage);
	put_object(&d, "metrics", r->metrics);
	e = draft_end(&d);
	if (!e)
		e = send_report(j, &d.message.progress);
	draft_fini(&d);
	return e ? refuse_with(j, e) : 0;
}

static void ctx_log(struct uarp_run *run, enum uarp_level level, const char *message)
{
	static const char *const levels[] = { "debug", "info", "warn", "error" };
	struct job *j = job_of(run);
	struct draft d;

	draft_begin(&d, j, "log");
	uar_jw_cstr(&d.w, "level", (size_t)level < ARRAY_LEN(levels) ? levels[level] : "info");
	uar_jw_str(&d.w, "message", uar_str_c(message)); /* ill-formed UTF-8 is mended */
	if (draft_end(&d) == UAR_OK && send(j, &d.message))
		refuse(j, "RUN_NOT_RUNNING");
	draft_fini(&d);
}

/* --- items -------------------------------------------------------------------------------- */

static void put_content(struct draft *d, const struct uarp_item *x, uar_str data)
{
	struct uar_buf b = uar_buf_make(LINE_MAX_BYTES);

	if (x->upload) {
		put_text(d, "upload", x->upload);
	} else if (strcmp(x->type, "json") == 0) {
		put_json(d, "json", data);
	} else if (strcmp(x->type, "binary") != 0) {
		put_bytes(d, x->type, data);
	} else if (!data.p && data.n) {
		d->err = UAR_EINVALID;
	} else {
		uar_base64_encode(&b, data);
		d->err = b.err;
		uar_jw_str(&d->w, "binary", uar_buf_str(&b));
	}
	uar_buf_fini(&b);
}

static const char *ctx_put(struct uarp_run *run, const struct uarp_item *item, size_t size)
{
	struct job *j = job_of(run);
	struct uarp_item whole = UARP_ITEM;
	const struct uarp_item *x = &whole;
	struct draft d;
	uar_str data;
	uar_err e = UAR_EINVALID;

	/* A library may be older, and its struct shorter, or newer. */
	memcpy(&whole, item, size < sizeof whole ? size : sizeof whole);
	if (!x->type || (!x->data && !x->upload && x->size == UARP_STRLEN)) {
		refuse_with(j, e);
		return NULL;
	}
	data = x->size == UARP_STRLEN ? uar_str_c(x->data) : uar_str_n(x->data, x->size);
	draft_begin(&d, j, "run.export");
	put_text(&d, "type", x->type);
	put_content(&d, x, data);
	put_text(&d, "description", x->description);
	put_text(&d, "label", x->label);
	put_text(&d, "category", x->category);
	put_text(&d, "mime", x->mime);
	put_object(&d, "metadata", x->metadata);
	e = draft_end(&d);
	if (!e)
		e = send(j, &d.message);
	draft_fini(&d);
	if (e)
		refuse_with(j, e);
	return e ? NULL : j->export_id;
}

/* Made without a text between: the bytes stay where they are until they are taken. */
static int ctx_upload(struct uarp_run *run, const char *name, int64_t offset, const void *data,
		      size_t size)
{
	struct job *j = job_of(run);
	struct uar_message m = { .kind = UAR_MESSAGE_UPLOAD };
	uar_err e = UAR_EINVALID;

	m.piece = (struct uar_piece){ uar_str_c(name), offset, uar_str_n(data, size) };
	if (size > UAR_LIMIT_UPLOAD_PIECE)
		e = UAR_ETOOBIG;
	else if (uar_str_is_id(m.piece.name) && offset >= 0 && (data || !size))
		e = send(j, &m);
	return e ? refuse_with(j, e) : 0;
}

static int ctx_keep(struct uarp_run *run, const char *id)
{
	struct job *j = job_of(run);
	struct uar_json *node;
	uar_str text = UAR_STR_NONE;

	if (!id || j->kept.count >= UAR_LIMIT_RUN_EXPORTS)
		return refuse_with(j, UAR_EINVALID);
	node = uar_arena_alloc(&j->arena, sizeof *node);
	if (node)
		text = uar_arena_str(&j->arena, uar_str_c(id));
	if (!text.p)
		return refuse_with(j, UAR_ENOMEM);
	node->kind = UAR_JSON_STRING;
	node->text = text;
	if (j->kept.last)
		j->kept.last->next = node;
	else
		j->kept.first = node;
	j->kept.last = node;
	j->kept.count++;
	return 0;
}

/* --- the end ---------------------------------------------------------------------------------- */

static const char *copy(struct job *j, const char *text)
{
	return text ? uar_arena_str(&j->arena, uar_str_c(text)).p : NULL;
}

static int ctx_fail(struct uarp_run *run, const struct uarp_failure *f, size_t size)
{
	struct job *j = job_of(run);

	(void)size; /* has never grown */
	j->failed = (struct uarp_failure){ copy(j, f->code ? f->code : "PLUGIN_ERROR"),
					   copy(j, f->message), copy(j, f->details), f->retriable };
	return UARP_FAILED;
}

static int ctx_result(struct uarp_run *run, const char *json)
{
	struct job *j = job_of(run);
	struct uarp_failure bad = { .code = "PLUGIN_ERROR" };
	struct draft d;
	uar_err e;

	draft_begin(&d, j, "run.result");
	put_json(&d, "result", uar_str_c(json));
	e = draft_end(&d);
	if (!e)
		j->result = uar_arena_str(&j->arena, d.message.end.result);
	else
		bad.message =
			uar_arena_printf(&j->arena, "the result is not JSON, or too large: %s%s%s",
					 d.error.where, d.error.where[0] ? ": " : "",
					 d.error.text[0] ? d.error.text : uar_err_text(e))
				.p;
	draft_fini(&d);
	if (e || !j->result.p) {
		refuse_with(j, e);
		return ctx_fail(run, &bad, sizeof bad);
	}
	return UARP_OK;
}

/* The failure as a message, so that its limits are those of the wire. */
static bool told(struct job *j, const struct uarp_failure *f)
{
	struct uar_entry_end *end = &j->end.end;
	struct draft d;
	bool good;

	draft_begin(&d, j, "run.error");
	put_text(&d, "code", f->code);
	put_text(&d, "message", f->message);
	put_object(&d, "details", f->details);
	uar_jw_bool(&d.w, "retriable", f->retriable);
	good = draft_end(&d) == UAR_OK;
	*end = d.message.end;
	end->code = uar_arena_str(&j->arena, end->code);
	end->message = uar_arena_str(&j->arena, end->message);
	end->details = uar_arena_str(&j->arena, end->details);
	draft_fini(&d);
	return good && end->code.p && end->message.p && end->details.p;
}

/* Whatever it says, the run ends: if need be without details, code or words. */
static void read_failure(struct job *j, const struct uarp_failure *f)
{
	struct uarp_failure brief = *f;

	brief.details = NULL;
	if (told(j, f) || told(j, &brief))
		return;
	brief.code = "PLUGIN_ERROR";
	brief.message =
		uar_arena_printf(
			&j->arena, "%.*s (code must be visible ASCII)",
			UAR_FMT(uar_str_utf8_prefix(
				uar_str_c(f->message ? f->message : "the entry failed"), 400)))
			.p;
	if (brief.message && told(j, &brief))
		return;
	j->end.end = (struct uar_entry_end){
		.how = UAR_ENTRY_HOW_BROKE,
		.code = UAR_STR("PLUGIN_ERROR"),
		.message = UAR_STR("the entry failed in a way that cannot be told"),
	};
}

static void read_refs(struct job *j)
{
	struct uar_json *list = j->kept.first ? uar_arena_alloc(&j->arena, sizeof *list) : NULL;

	if (!list)
		return;
	list->kind = UAR_JSON_ARRAY;
	list->count = j->kept.count;
	list->first = j->kept.first;
	j->end.end.refs = list;
}

void job_execute(struct job *j)
{
	int status = j->fn(&j->base);
	struct uarp_failure said = { "CANCELED", "the entry gave in to the cancel", NULL, 0 };

	if (status == UARP_OK) {
		j->end.end = (struct uar_entry_end){ .how = UAR_ENTRY_HOW_FINISHED,
						     .result = j->result };
		if (j->result.n && uar_json_parse(j->result, NULL, &j->arena, &j->end.value, NULL))
			j->end.value = NULL;
	} else if (status == UARP_CANCELED) {
		read_failure(j, &said);
	} else {
		said = (struct uarp_failure){ "PLUGIN_ERROR", "the entry failed", NULL, 0 };
		read_failure(j, j->failed.code ? &j->failed : &said);
	}
	read_refs(j);
}

const struct uarp_ops job_ops = {
	.abi = UARP_ABI,
	.size = sizeof job_ops,
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
