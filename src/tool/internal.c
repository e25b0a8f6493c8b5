/* internal.c - the registry of the tools in the program, and the life of their calls.
 *
 * A function that cannot block runs in the loop's next turn, any other on a worker. The
 * worker owns the job while it is at work; a call that nobody waits for any more is
 * freed when the worker has let go of it, perhaps after the registry itself. */
#include "tool/internal_int.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/sha256.h"
#include "event/sizes.h"
#include "json/schema.h"
#include "tool/limits.h"

enum { TIMEOUT_US = 30 * 1000 * 1000 };

static const struct row {
	uar_tool_fn *fn;
	const char *tool_id, *name, *description, *tags, *input, *output;
	enum uar_tool_effect effect;
	bool destructive, ask, files;
} rows[] = {
#define JSON(...) #__VA_ARGS__
#define T(FN, NAME, EFFECT, DESTRUCTIVE, ASK, FILES, DESCRIPTION, TAGS, INPUT, OUTPUT)             \
	{ uar_tool_##FN, "internal:" NAME,  NAME,	 DESCRIPTION, TAGS, INPUT,                 \
	  OUTPUT,	 UAR_TOOL_##EFFECT, DESTRUCTIVE, ASK,	      FILES },
#include "tool/internal.def"
#undef T
#undef JSON
};

struct entry {
	struct uar_tool tool;
	const struct row *row;
	struct uar_arena arena; /* of the schema's document */
	struct uar_schema *schema;
	char model_name[UAR_LIMIT_TOOL_NAME + 1];
};

struct internal {
	struct uar_tools base; /* first: the ops get it back by a cast */
	struct uar_sched *sched;
	char *files_dir, *skills_dir; /* or NULL */
	char *others_dir;	      /* NULL: all calls see files_dir */
	struct uar_arena own;	      /* of the owner */
	struct uar_owner owner;
	struct uar_list calls;
	struct uar_list hung; /* calls that were given up, while a worker has them */
	size_t count;
	struct entry entries[ARRAY_LEN(rows)];
};

enum stage { WAITING, AT_WORK, CHANGING, DROPPED };

struct uar_tool_call {
	struct uar_list node;
	struct internal *tools;
	const struct entry *entry;
	bool unheard; /* nobody waits for it; the two above may be gone */
	struct uar_tool_events events;
	uar_tool_fn *fn;
	bool blocks; /* it is a worker's */
	struct uar_task task;
	struct uar_work work;
	struct uar_timer timer;
	atomic_int stage; /* of the work */
	struct uar_tool_job job;
	struct uar_arena arena; /* input and copies */
	uar_str input, run_id;
};

static struct internal *internal_of(struct uar_tools *t)
{
	return (struct internal *)(void *)t;
}

/* --- the life of a call ----------------------------------------------------------- */

void uar_tool_fail(struct uar_tool_job *j, const char *category, const char *fmt, ...)
{
	va_list args;

	if (j->category)
		return;
	j->category = category;
	va_start(args, fmt);
	vsnprintf(j->error.text, sizeof j->error.text, fmt, args);
	va_end(args);
}

static void call_free(struct uar_tool_call *c)
{
	uar_buf_fini(&c->job.out);
	uar_arena_fini(&c->arena);
	uar_free(c);
}

/* A worker is about to change something: it may, unless the call was given up before. */
static bool may_change(struct uar_tool_job *j)
{
	struct uar_tool_call *c = UAR_OWNER(j, struct uar_tool_call, job);
	int stage = AT_WORK;

	return atomic_compare_exchange_strong(&c->stage, &stage, CHANGING) || stage == CHANGING;
}

/* What has not begun does not begin, what has changed nothing will not. Where it was. */
static enum stage give_up(struct uar_tool_call *c)
{
	int stage = atomic_load(&c->stage);

	while ((stage == WAITING || stage == AT_WORK) &&
	       !atomic_compare_exchange_weak(&c->stage, &stage, DROPPED)) {}
	return (enum stage)stage;
}

/* Nobody hears of it from here on. */
static void forget(struct uar_tool_call *c)
{
	uar_list_remove(&c->node);
	uar_timer_stop(c->tools->sched, &c->timer);
	c->unheard = true;
}

/* The same for one that was given up, whose worker may still have it. */
static void leave_behind(struct uar_tool_call *c, enum stage was)
{
	forget(c);
	if (was == AT_WORK || was == CHANGING)
		uar_list_add_last(&c->tools->hung, &c->node);
}

static void run(struct uar_tool_call *c)
{
	struct uar_tool_job *j = &c->job;

	if (uar_json_parse(c->input, NULL, &c->arena, &j->input, &j->error)) {
		uar_tool_fail(j, "execution", "%s", "out of memory"); /* it was parsed before */
		return;
	}
	c->fn(j);
	if (j->category)
		return;
	if (j->out.err == UAR_ETOOBIG)
		uar_tool_fail(j, "result_too_large", "the result is larger than %d bytes",
			      UAR_LIMIT_TOOL_OUTPUT);
	else if (j->out.err)
		uar_tool_fail(j, "execution", "%s", uar_err_text(j->out.err));
}

static void report(struct uar_tool_call *c)
{
	const struct uar_tool_job *j = &c->job;
	struct uar_tool_events events = c->events;
	struct uar_tool_result r = { .ok = !j->category, .retryable = j->retryable };

	if (r.ok)
		r.output = uar_buf_str(&j->out);
	else
		r.category = uar_str_c(j->category), r.message = uar_str_c(j->error.text);
	forget(c);
	events.done(events.ctx, &r);
	call_free(c);
}

static void on_task(struct uar_task *t)
{
	struct uar_tool_call *c = UAR_OWNER(t, struct uar_tool_call, task);

	run(c);
	report(c);
}

static void on_worker(struct uar_work *w)
{
	struct uar_tool_call *c = UAR_OWNER(w, struct uar_tool_call, work);
	int waiting = WAITING;

	if (atomic_compare_exchange_strong(&c->stage, &waiting, AT_WORK))
		run(c);
}

static void on_worked(struct uar_work *w)
{
	struct uar_tool_call *c = UAR_OWNER(w, struct uar_tool_call, work);

	if (c->unheard) {
		uar_list_remove(&c->node);
		call_free(c);
	} else {
		report(c);
	}
}

/* Too late; its worker still has it. */
static void on_timer(struct uar_timer *t)
{
	struct uar_tool_call *c = UAR_OWNER(t, struct uar_tool_call, timer);
	const struct uar_tool *tool = &c->entry->tool;
	struct uar_tool_events events = c->events;
	struct uar_tool_result r = { .category = UAR_STR("timeout") };
	enum stage was = give_up(c);
	char message[120];

	leave_behind(c, was);
	snprintf(message, sizeof message, "no result after %lld ms; it %s",
		 (long long)(tool->timeout_us / 1000),
		 was == WAITING	  ? "never began"
		 : was == AT_WORK ? "had begun, and is given up before it changed anything"
				  : "had begun and may still take effect");
	r.message = uar_str_c(message);
	r.retryable = was != CHANGING || tool->effect != UAR_TOOL_ONCE;
	events.done(events.ctx, &r);
}

/* --- the port ---------------------------------------------------------------------- */

static const struct uar_tool *at(struct uar_tools *tools, size_t index)
{
	struct internal *t = internal_of(tools);

	return index < t->count ? &t->entries[index].tool : NULL;
}

static const struct entry *entry_of(const struct internal *t, const struct uar_tool *tool)
{
	for (size_t i = 0; tool && i < t->count; i++)
		if (uar_str_eq(t->entries[i].tool.tool_id, tool->tool_id))
			return &t->entries[i];
	return NULL;
}

static uar_err check(struct uar_tools *tools, const struct uar_tool *tool, uar_str input,
		     struct uar_error *error)
{
	static const struct uar_json_limits limits = { .bytes = UAR_LIMIT_TOOL_INPUT };
	const struct entry *entry = entry_of(internal_of(tools), tool);
	const struct uar_json *j;
	struct uar_arena arena;
	uar_err e;

	if (!entry)
		return uar_error_set(error, UAR_ENOTFOUND, "there is no such tool");
	uar_arena_init(&arena, 0);
	e = uar_json_parse(input, &limits, &arena, &j, error);
	if (e && e != UAR_ENOMEM)
		e = UAR_EINVALID;
	else if (!e)
		e = uar_schema_validate(entry->schema, j, &arena, error);
	if (e && error)
		error->code = e;
	uar_arena_fini(&arena);
	return e;
}

/* What one user writes no other one reads. */
static uar_str files_of(const struct internal *t, struct uar_arena *arena,
			const struct uar_tool_caller *caller)
{
	char text[3 * UAR_LIMIT_ID_BYTES + 3], sha256[UAR_SHA256_TEXT + 1];
	const struct uar_owner *o = caller ? &caller->owner : NULL;

	if (!t->files_dir || !t->others_dir || !o || uar_owner_eq(o, &t->owner))
		return uar_arena_str(arena, uar_str_c(t->files_dir));
	snprintf(text, sizeof text, "%.*s\n%.*s\n%.*s", UAR_FMT(o->tenant), UAR_FMT(o->workspace),
		 UAR_FMT(o->user));
	uar_sha256_hex(uar_str_c(text), sha256);
	return uar_arena_printf(arena, "%s%.32s", t->others_dir, sha256);
}

static struct uar_tool_call *call_create(struct internal *t, const struct entry *entry,
					 const struct uar_tool_request *r,
					 const struct uar_tool_events *events)
{
	struct uar_tool_call *c = uar_zalloc(sizeof *c);

	if (!c)
		return NULL;
	uar_arena_init(&c->arena, 0);
	c->tools = t;
	c->entry = entry;
	c->events = *events;
	c->fn = entry->row->fn;
	c->blocks = entry->row->files;
	c->task.fn = on_task;
	c->work.work = on_worker;
	c->work.done = on_worked;
	c->timer.fn = on_timer;
	c->input = uar_arena_str(&c->arena, r->input);
	c->run_id = uar_arena_str(&c->arena, r->run_id);
	c->job.key = uar_arena_str(&c->arena, r->key);
	c->job.may_change = may_change;
	c->job.files_dir = files_of(t, &c->arena, r->caller).p;
	c->job.skills_dir = uar_arena_str(&c->arena, uar_str_c(t->skills_dir)).p;
	c->job.now_us = uar_clock_wall(t->sched->clock);
	c->job.out = uar_buf_make(UAR_LIMIT_TOOL_OUTPUT);
	if (!c->input.p || !c->job.key.p || !c->job.files_dir || !c->job.skills_dir ||
	    !c->run_id.p) {
		call_free(c);
		return NULL;
	}
	uar_list_add_last(&t->calls, &c->node);
	return c;
}

static void too_many_hang(struct uar_tool_job *j)
{
	j->retryable = true;
	uar_tool_fail(j, "dependency",
		      "%d earlier calls hang, as in a file system that does not answer: no "
		      "further one is begun until one of them is over",
		      UAR_LIMIT_TOOLS_HUNG);
}

/* One run must not take all threads with it. Calls without a run count together. */
static bool has_many_hung(struct internal *t, uar_str run_id)
{
	size_t n = 0;

	UAR_LIST_EACH (it, &t->hung)
		n += uar_str_eq(UAR_OWNER(it, struct uar_tool_call, node)->run_id, run_id);
	return n >= UAR_LIMIT_TOOLS_HUNG;
}

/* To a worker with a limit in time, or into the next turn. */
static uar_err begin(struct internal *t, struct uar_tool_call *c)
{
	uar_err e;

	if (c->blocks && has_many_hung(t, c->run_id)) {
		c->blocks = false;
		c->fn = too_many_hang;
	}
	if (!c->blocks) {
		uar_post(t->sched, &c->task);
		return UAR_OK;
	}
	e = uar_timer_set(t->sched, &c->timer, c->entry->tool.timeout_us);
	return e ? e : uar_work_begin(t->sched, &c->work);
}

static uar_err start(struct uar_tools *tools, const struct uar_tool_request *r,
		     const struct uar_tool_events *events, struct uar_tool_call **out,
		     struct uar_error *error)
{
	struct internal *t = internal_of(tools);
	uar_err e = check(tools, r->tool, r->input, error);
	struct uar_tool_call *c;

	if (e)
		return e;
	c = call_create(t, entry_of(t, r->tool), r, events);
	e = c ? begin(t, c) : UAR_ENOMEM;
	if (e) {
		if (c) {
			forget(c);
			call_free(c);
		}
		return uar_error_set(error, e, "%s",
				     e == UAR_EBUSY ? "no thread is free for it, and too much "
						      "waits or hangs"
						    : uar_err_text(e));
	}
	*out = c;
	return UAR_OK;
}

static void cancel(struct uar_tools *tools, struct uar_tool_call *c)
{
	struct internal *t = internal_of(tools);

	if (c->blocks) {
		leave_behind(c, give_up(c));
		return;
	}
	forget(c);
	uar_unpost(t->sched, &c->task);
	call_free(c);
}

static bool withdraw(struct uar_tools *tools, struct uar_tool_call *c)
{
	enum stage was = c->blocks ? give_up(c) : WAITING;

	if (was == CHANGING)
		return false;
	if (c->blocks)
		leave_behind(c, was);
	else
		cancel(tools, c);
	return true;
}

static void destroy(struct uar_tools *tools)
{
	struct internal *t = internal_of(tools);

	while (!uar_list_empty(&t->calls))
		cancel(tools, UAR_OWNER(t->calls.next, struct uar_tool_call, node));
	while (!uar_list_empty(&t->hung))
		uar_list_remove(t->hung.next); /* their workers free them */
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uar_schema_destroy(t->entries[i].schema);
		uar_arena_fini(&t->entries[i].arena);
	}
	uar_free(t->files_dir);
	uar_free(t->others_dir);
	uar_arena_fini(&t->own);
	uar_free(t->skills_dir);
	uar_free(t);
}

/* --- the registry -------------------------------------------------------------------- */

static bool is_taken(void *ctx, uar_str name)
{
	return uar_tools_by_model_name(ctx, NULL, name) != NULL;
}

static uar_err add(struct internal *t, const struct row *row, struct uar_error *error)
{
	struct entry *entry = &t->entries[t->count];
	const struct uar_json *document;
	uar_err e;

	*entry = (struct entry){ .row = row };
	uar_tool_name_for_models(uar_str_c(row->tool_id), is_taken, &t->base, entry->model_name);
	entry->tool = (struct uar_tool){
		.tool_id = uar_str_c(row->tool_id),
		.name = uar_str_c(row->name),
		.model_name = uar_str_c(entry->model_name),
		.description = uar_str_c(row->description),
		.version = UAR_STR("1"),
		.transport = UAR_STR("internal"),
		.input_schema = uar_str_c(row->input),
		.output_schema = uar_str_c(row->output),
		.tags = uar_str_c(row->tags),
		.effect = row->effect,
		.destructive = row->destructive,
		.ask = row->ask,
		.capabilities = uar_str_c(row->files ? "[\"files\"]" : "[]"),
		.state = row->files ? UAR_TOOL_SANDBOXED : UAR_TOOL_AVAILABLE,
		.timeout_us = TIMEOUT_US,
		.by = row->fn == uar_tool_ui_form	 ? UAR_TOOL_BY_FORM
		      : row->fn == uar_tool_ui_navigate	 ? UAR_TOOL_BY_NAVIGATE
		      : row->fn == uar_tool_tools_search ? UAR_TOOL_BY_SEARCH
		      : row->fn == uar_tool_artifact_put ? UAR_TOOL_BY_ARTIFACT
							 : UAR_TOOL_BY_START,
	};
	e = uar_json_parse(entry->tool.input_schema, NULL, &entry->arena, &document, error);
	if (!e)
		e = uar_schema_create(document, NULL, &entry->schema, error);
	if (!e)
		t->count++;
	return e;
}

static bool has_files_of(const struct internal *t, const struct row *row)
{
	return !row->files || (row->fn == uar_tool_skill_read ? t->skills_dir : t->files_dir);
}

static const struct uar_tools_ops internal_ops = {
	.abi = 1,
	.size = sizeof(struct uar_tools_ops),
	.destroy = destroy,
	.at = at,
	.check = check,
	.start = start,
	.cancel = cancel,
	.withdraw = withdraw,
};

static bool take_owner(struct internal *t, const struct uar_internal_tools_options *o)
{
	if (!o->owner || !o->others_dir)
		return true;
	t->others_dir = uar_strdup_n(o->others_dir, strlen(o->others_dir));
	return t->others_dir && uar_owner_copy(&t->own, o->owner, &t->owner);
}

uar_err uar_internal_tools_create(const struct uar_internal_tools_options *o,
				  struct uar_tools **out, struct uar_error *error)
{
	struct internal *t = uar_zalloc(sizeof *t);
	uar_err e = t ? UAR_OK : UAR_ENOMEM;

	if (e)
		return uar_error_set(error, e, "out of memory");
	t->base.ops = &internal_ops;
	t->sched = o->sched;
	uar_list_init(&t->calls);
	uar_list_init(&t->hung);
	if (o->files_dir)
		t->files_dir = uar_strdup_n(o->files_dir, strlen(o->files_dir));
	if (o->skills_dir)
		t->skills_dir = uar_strdup_n(o->skills_dir, strlen(o->skills_dir));
	if (!take_owner(t, o)) {
		destroy(&t->base);
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	}
	if ((o->files_dir && !t->files_dir) || (o->skills_dir && !t->skills_dir))
		e = uar_error_set(error, UAR_ENOMEM, "out of memory");
	for (size_t i = 0; i < ARRAY_LEN(rows) && !e; i++)
		if (has_files_of(t, &rows[i]))
			e = add(t, &rows[i], error);
	if (e) {
		destroy(&t->base);
		return e;
	}
	*out = &t->base;
	return UAR_OK;
}
