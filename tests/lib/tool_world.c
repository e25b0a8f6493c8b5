/* tool_world.c - a model and tools without a will of their own. */
#include "tool_world.h"

#include <stdarg.h>

#include "base/alloc.h"
#include "event/limits.h"
#include "memory_store.h"
#include "test.h"

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };

/* --- the model ------------------------------------------------------------------------ */

static void add(char *out, size_t size, const char *fmt, ...) UAR_PRINTF(3, 4);
static void add(char *out, size_t size, const char *fmt, ...)
{
	size_t n = strlen(out);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out + n, size - n, fmt, ap);
	va_end(ap);
}

static void write_part(struct tool_world *w, const struct uar_model_part *p)
{
	if (p->kind == UAR_PART_CALL)
		add(w->told, sizeof w->told, " [%.*s %.*s %.*s]", UAR_FMT(p->id), UAR_FMT(p->name),
		    UAR_FMT(p->text));
	else if (p->kind == UAR_PART_RESULT)
		add(w->told, sizeof w->told, " <%.*s>", UAR_FMT(p->id));
	else if (p->kind == UAR_PART_OPAQUE)
		add(w->told, sizeof w->told, " {%.*s %.*s}", UAR_FMT(p->name), UAR_FMT(p->text));
}

static void write_told(struct tool_world *w, const struct uar_model_request *r)
{
	w->told[0] = 0;
	w->told_tools = r->tool_count;
	for (size_t i = 0; i < r->message_count; i++) {
		const struct uar_model_message *m = &r->messages[i];

		add(w->told, sizeof w->told, "%c:%.*s", "SUAT"[m->role],
		    UAR_FMT(uar_model_text_of(m)));
		for (size_t k = 0; k < m->part_count; k++)
			write_part(w, &m->parts[k]);
		add(w->told, sizeof w->told, "\n");
	}
}

static uar_err model_start(struct uar_model *m, const struct uar_model_request *r,
			   const struct uar_model_events *events, struct uar_model_call **out,
			   struct uar_error *error)
{
	struct tool_world *w = UAR_OWNER(m, struct tool_world, model);

	(void)error;
	CHECK(!w->called);
	w->says = *events;
	w->called = true;
	w->calls++;
	write_told(w, r);
	*out = (struct uar_model_call *)w;
	return UAR_OK;
}

static void model_cancel(struct uar_model *m, struct uar_model_call *call)
{
	(void)m;
	((struct tool_world *)call)->called = false;
}

static void model_pause(struct uar_model *m, struct uar_model_call *call, bool paused)
{
	(void)m, (void)call, (void)paused;
}

static const struct uar_model_ops model_ops = { 2,	     sizeof model_ops, NULL,
						model_start, model_cancel,     model_pause,
						NULL };

/* "name arguments", a line each. */
static size_t read_calls(const char *calls, struct uar_model_tool_call *out)
{
	static char ids[TOOL_WORLD_CALLS * 4][24];
	uar_str rest = uar_str_c(calls);
	size_t n = 0;

	while (rest.n) {
		uar_str line = uar_str_n(rest.p, uar_str_find(rest, '\n'));
		size_t name = uar_str_find(line, ' ');

		snprintf(ids[n], sizeof ids[n], "p%zu", n); /* the same in each round */
		out[n] = (struct uar_model_tool_call){ uar_str_c(ids[n]), uar_str_n(line.p, name),
						       uar_str_from(line, name + 1) };
		n++;
		rest = uar_str_from(rest, line.n + 1);
	}
	return n;
}

void tool_world_says(struct tool_world *w, const char *text, const char *calls)
{
	struct uar_model_tool_call list[TOOL_WORLD_CALLS * 4];
	struct uar_model_result r = { .calls = list,
				      .call_count = read_calls(calls, list),
				      .stop_reason =
					      calls[0] ? UAR_STR("tool_calls") : UAR_STR("stop"),
				      .parts = w->parts,
				      .part_count = w->part_count,
				      .usage = { 3, 4, 7, -1, -1, -1 } };

	if (!CHECK(w->called))
		return;
	w->called = false;
	w->parts = NULL;
	w->part_count = 0;
	if (text[0])
		w->says.text(w->says.ctx, uar_str_c(text));
	w->says.done(w->says.ctx, &r);
	uar_stage_settle(&w->pump);
}

/* --- the tools ------------------------------------------------------------------------- */

#define TOOL(NAME, EFFECT, ASK)                                                                    \
	{                                                                                          \
		.tool_id = UAR_STR("internal:" NAME), .name = UAR_STR(NAME),                       \
		.model_name = UAR_STR(NAME), .description = UAR_STR("A tool."),                    \
		.version = UAR_STR("7"), .transport = UAR_STR("internal"),                         \
		.input_schema = UAR_STR("{}"), .tags = UAR_STR("[\"t\"]"),                         \
		.effect = UAR_TOOL_##EFFECT, .ask = ASK                                            \
	}

static const struct uar_tool rows[] = {
	TOOL("look", READ_ONLY, false),
	TOOL("peek", READ_ONLY, false),
	TOOL("see", READ_ONLY, false),
	TOOL("stare", READ_ONLY, false),
	TOOL("put", IDEMPOTENT, false),
	TOOL("send", ONCE, false),
	TOOL("write", ONCE, true),
	{ .tool_id = UAR_STR("internal:login"),
	  .name = UAR_STR("login"),
	  .model_name = UAR_STR("login"),
	  .description = UAR_STR("A tool."),
	  .version = UAR_STR("7"),
	  .transport = UAR_STR("internal"),
	  .input_schema = UAR_STR("{\"type\":\"object\",\"required\":[\"user\",\"password\"],"
				  "\"properties\":{\"user\":{\"type\":\"string\"},"
				  "\"password\":{\"type\":\"string\"}}}"),
	  .tags = UAR_STR("[]"),
	  .effect = UAR_TOOL_ONCE },
	{ .tool_id = UAR_STR("internal:confirm"),
	  .name = UAR_STR("confirm"),
	  .model_name = UAR_STR("confirm"),
	  .description = UAR_STR("A tool."),
	  .version = UAR_STR("7"),
	  .transport = UAR_STR("internal"),
	  .input_schema = UAR_STR("{}"),
	  .tags = UAR_STR("[]"),
	  .effect = UAR_TOOL_READ_ONLY,
	  .by = UAR_TOOL_BY_CLIENT },
	{ .tool_id = UAR_STR("other:secret"),
	  .name = UAR_STR("secret"),
	  .model_name = UAR_STR("secret"),
	  .transport = UAR_STR("mcp"),
	  .version = UAR_STR("1") },
};

static const struct uar_tool *tools_at(struct uar_tools *t, size_t index)
{
	(void)t;
	return index < ARRAY_LEN(rows) ? &rows[index] : NULL;
}

static uar_err tools_check(struct uar_tools *t, const struct uar_tool *tool, uar_str input,
			   struct uar_error *error)
{
	(void)t;
	if (!input.n || input.p[0] != '{')
		return uar_error_set(error, UAR_EINVALID, "not an object");
	if (uar_str_is(tool->name, "login") && !memmem(input.p, input.n, "\"password\"", 10))
		return uar_error_set(error, UAR_ESCHEMA, "required");
	if (!uar_str_starts(input, UAR_STR("{\"bad\"")))
		return UAR_OK;
	uar_error_where(error, "/bad");
	return uar_error_set(error, UAR_ESCHEMA, "must not be there");
}

static uar_err tools_start(struct uar_tools *t, const struct uar_tool_request *r,
			   const struct uar_tool_events *events, struct uar_tool_call **out,
			   struct uar_error *error)
{
	struct tool_world *w = UAR_OWNER(t, struct tool_world, tools);
	struct uar_tool_call *c = w->at;

	if (w->refuse)
		return uar_error_set(error, UAR_EBUSY, "too much to do");
	while (c->at_work && c < w->at + TOOL_WORLD_CALLS - 1)
		c++;
	CHECK(!c->at_work);
	uar_free((char *)c->input.p);
	*c = (struct uar_tool_call){ .events = *events, .at_work = true };
	c->input = uar_str_n(uar_alloc(r->input.n + 1), r->input.n);
	memcpy((char *)c->input.p, r->input.p, r->input.n);
	snprintf(c->name, sizeof c->name, "%.*s", UAR_FMT(r->tool->name));
	snprintf(c->key, sizeof c->key, "%.*s", UAR_FMT(r->key));
	w->started++;
	*out = c;
	return UAR_OK;
}

static void tools_cancel(struct uar_tools *t, struct uar_tool_call *call)
{
	(void)t;
	CHECK(call->at_work);
	call->at_work = false;
	call->cancelled = true;
}

static bool tools_withdraw(struct uar_tools *t, struct uar_tool_call *call)
{
	struct tool_world *w = UAR_OWNER(t, struct tool_world, tools);

	if (w->waits)
		tools_cancel(t, call);
	return w->waits;
}

static const struct uar_tools_ops tools_ops = {
	.abi = 1,
	.size = sizeof tools_ops,
	.at = tools_at,
	.check = tools_check,
	.start = tools_start,
	.cancel = tools_cancel,
	.withdraw = tools_withdraw,
};

static struct uar_tool_call *find(const struct tool_world *w, const char *name, size_t *out_count)
{
	const struct uar_tool_call *found = NULL;

	for (size_t i = 0; i < TOOL_WORLD_CALLS; i++)
		if (w->at[i].at_work && strcmp(w->at[i].name, name) == 0) {
			found = &w->at[i];
			(*out_count)++;
		}
	return (struct uar_tool_call *)found;
}

size_t tool_world_busy(const struct tool_world *w, const char *name)
{
	size_t n = 0;

	(void)find(w, name, &n);
	return n;
}

void tool_world_ends(struct tool_world *w, const char *name, bool ok, const char *output)
{
	size_t n = 0, colon;
	struct uar_tool_call *c = find(w, name, &n);
	uar_str text = uar_str_c(output);
	struct uar_tool_result r = { .ok = ok, .output = text };

	if (!CHECK_MSG(c != NULL, "%s is not at work", name))
		return;
	if (!ok) {
		colon = uar_str_find(text, ':');
		r = (struct uar_tool_result){ .category = uar_str_n(text.p, colon),
					      .message = uar_str_from(text, colon + 2) };
	}
	c->at_work = false;
	c->events.done(c->events.ctx, &r);
	uar_stage_settle(&w->pump);
}

/* --- the world --------------------------------------------------------------------------- */

static void rise(struct tool_world *w)
{
	w->rt = uar_stage_rise(&w->pump, (struct uar_stage_options){ .store = w->store,
								     .seal = &w->seal,
								     .scripted = &w->model,
								     .tools = &w->tools });
	uar_stage_settle(&w->pump);
}

void tool_world_open(struct tool_world *w)
{
	*w = (struct tool_world){ .model = { &model_ops, "scripted" }, .tools = { &tools_ops } };
	uar_stage_open(&w->pump, &w->store, NULL);
	rise(w);
}

void tool_world_close(struct tool_world *w)
{
	uar_stage_close(&w->pump, w->store, w->rt, NULL);
	for (size_t i = 0; i < TOOL_WORLD_CALLS; i++)
		uar_free((char *)w->at[i].input.p);
}

void tool_world_die(struct tool_world *w)
{
	uar_store_memory_crash(w->store, 0);
	uar_runtime_destroy(w->rt);
	w->called = false;
	rise(w);
}

static void set(void *ctx)
{
	*(bool *)ctx = true;
}

void tool_world_restart(struct tool_world *w)
{
	bool drained = false;

	uar_runtime_drain(w->rt, set, &drained);
	uar_pump_until(&w->pump, &drained);
	tool_world_die(w);
}

static void on_created(struct uar_run_create *op)
{
	CHECK_INT(op->err, UAR_OK);
	UAR_OWNER(op, struct tool_world, op)->created = true;
}

void tool_world_ask(struct tool_world *w, const char *message)
{
	w->created = false;
	w->op = (struct uar_run_create){ .owner = owner,
					 .agent_id = UAR_STR("tools"),
					 .message = uar_str_c(message),
					 .conversation_id = UAR_STR("talk"),
					 .done = on_created };
	CHECK_INT(uar_runtime_create_run(w->rt, &w->op), UAR_OK);
	uar_pump_until(&w->pump, &w->created);
	uar_pump_until(&w->pump, &w->called);
}

static void on_answered(struct uar_run_answer_op *op)
{
	UAR_OWNER(op, struct tool_world, answer)->answered = true;
}

uar_err tool_world_answer(struct tool_world *w, int number, enum uar_verdict verdict,
			  const char *reason)
{
	static char id[160];
	uar_err e;

	snprintf(id, sizeof id, "%s.%d", w->op.run_id, number);
	w->answered = false;
	w->answer =
		(struct uar_run_answer_op){ .owner = owner,
					    .action_id = uar_str_c(id),
					    .reason = uar_str_c(reason),
					    .decision = uar_str_c(uar_verdict_info[verdict].text),
					    .done = on_answered };
	e = uar_runtime_answer(w->rt, &w->answer);
	if (e)
		return e;
	uar_pump_until(&w->pump, &w->answered);
	uar_stage_settle(&w->pump);
	return w->answer.err;
}

static void on_cancelled(struct uar_run_cancel_op *op)
{
	UAR_OWNER(op, struct tool_world, cancel)->cancelled = true;
}

uar_err tool_world_submit(struct tool_world *w, int number, const char *values)
{
	static char id[160];
	const struct uar_json *tree = NULL;
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	CHECK_INT(uar_json_parse(uar_str_c(values), NULL, &arena, &tree, NULL), UAR_OK);
	snprintf(id, sizeof id, "%s.%d", w->op.run_id, number);
	w->answered = false;
	w->answer = (struct uar_run_answer_op){ .owner = owner,
						.action_id = uar_str_c(id),
						.decision = UAR_STR("submit"),
						.values = tree,
						.done = on_answered };
	e = uar_runtime_answer(w->rt, &w->answer);
	if (!e) {
		uar_pump_until(&w->pump, &w->answered);
		uar_stage_settle(&w->pump);
		e = w->answer.err;
	}
	uar_arena_fini(&arena);
	return e;
}

uar_str tool_world_input(const struct tool_world *w, const char *name)
{
	size_t n = 0;
	const struct uar_tool_call *c = find(w, name, &n);

	return c ? c->input : UAR_STR("");
}

void tool_world_cancel(struct tool_world *w)
{
	w->cancelled = false;
	w->cancel = (struct uar_run_cancel_op){ .owner = owner,
						.run_id = uar_str_c(w->op.run_id),
						.done = on_cancelled };
	CHECK_INT(uar_runtime_cancel_run(w->rt, &w->cancel), UAR_OK);
	uar_pump_until(&w->pump, &w->cancelled);
	uar_stage_settle(&w->pump);
}

/* --- what the log says ---------------------------------------------------------------------- */

struct reading {
	struct uar_read r;
	bool done;
};

static void read_done(struct uar_read *r)
{
	UAR_OWNER(r, struct reading, r)->done = true;
}

/* All of it: no test writes more than a page. */
static void read_log(struct tool_world *w, struct reading *l)
{
	*l = (struct reading){ .r = { .owner = owner,
				      .run_id = uar_str_c(w->op.run_id),
				      .limit = UAR_LIMIT_READ_PAGE,
				      .done = read_done } };
	CHECK_INT(w->store->ops->read(w->store, &l->r), UAR_OK);
	uar_pump_until(&w->pump, &l->done);
	CHECK_INT(l->r.err, UAR_OK);
	CHECK(!l->r.more);
}

/* Whatever else the payload has of interest. */
static const char *detail_of(enum uar_event_class cls)
{
	switch (cls) {
	case UAR_EV_RUN_STATUS: return "phase";
	case UAR_EV_PERMISSION_EVALUATED: return "decision";
	case UAR_EV_ACTION_RESOLVED: return "result";
	case UAR_EV_TOOL_STARTED:
	case UAR_EV_TOOL_RESULT: return "tool_name";
	case UAR_EV_TOOL_FAILED:
	case UAR_EV_MODEL_FAILED: return "failure_category";
	case UAR_EV_TASK_ATTEMPT_FAILED: return "status";
	default: return NULL;
	}
}

static bool of_interest(const struct uar_event *ev)
{
	static const char *const families[] = { "model.",
						"tool.",
						"permission.evaluated",
						"action.",
						"task.attempt.completed",
						"task.attempt.failed",
						"output." };

	for (size_t i = 0; i < ARRAY_LEN(families); i++)
		if (uar_str_starts(ev->type, uar_str_c(families[i])))
			return true;
	return false;
}

const char *tool_world_log(struct tool_world *w)
{
	static char out[8192];
	struct reading l;

	out[0] = 0;
	read_log(w, &l);
	for (size_t i = 0; i < l.r.event_count; i++) {
		const struct uar_event *ev = &l.r.events[i];
		const char *detail = detail_of(ev->cls);
		const struct uar_json *p = NULL;

		CHECK_INT(uar_event_payload(ev, &l.r.arena, &p, NULL), UAR_OK);
		p = detail ? uar_json_get(p, uar_str_c(detail)) : NULL;
		if (of_interest(ev) || (p && uar_str_is(p->text, "tool_loop")))
			add(out, sizeof out, "%s%.*s%s%.*s", out[0] ? " " : "", UAR_FMT(ev->type),
			    p ? ":" : "", UAR_FMT(uar_json_str(p, UAR_STR(""))));
	}
	uar_store_read_fini(&l.r);
	return out;
}

static const char *nth(struct tool_world *w, enum uar_event_class cls, size_t n, bool refs)
{
	static char out[UAR_LIMIT_EVENT_BYTES + 1];
	struct reading l;

	out[0] = 0;
	read_log(w, &l);
	for (size_t i = 0; i < l.r.event_count; i++) {
		const struct uar_event *ev = &l.r.events[i];

		if (ev->cls == cls && n-- == 0)
			snprintf(out, sizeof out, "%.*s", UAR_FMT(refs ? ev->refs : ev->payload));
	}
	uar_store_read_fini(&l.r);
	return out;
}

const char *tool_world_fact(struct tool_world *w, enum uar_event_class cls, size_t n)
{
	return nth(w, cls, n, false);
}

const char *tool_world_refs(struct tool_world *w, enum uar_event_class cls, size_t n)
{
	return nth(w, cls, n, true);
}

struct look {
	struct uar_runs_query q;
	bool done;
};

static void looked(struct uar_runs_query *q)
{
	UAR_OWNER(q, struct look, q)->done = true;
}

const char *tool_world_status(struct tool_world *w)
{
	struct look l = { .q = { .owner = owner,
				 .run_id = uar_str_c(w->op.run_id),
				 .limit = 1,
				 .done = looked } };
	const char *found = "unknown";

	CHECK_INT(w->store->ops->runs(w->store, &l.q), UAR_OK);
	uar_pump_until(&w->pump, &l.done);
	if (!l.q.err)
		found = uar_status_record_parse(l.q.rows[0].status);
	uar_store_query_fini(&l.q);
	return found;
}
