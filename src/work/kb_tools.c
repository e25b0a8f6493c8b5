/* kb_tools.c - the source of the tools over knowledge, and the life of their calls. */
#include "work/kb_tools.h"

#include "base/alloc.h"
#include "tool/limits.h"
#include "work/kb_tools_int.h"

enum { TIMEOUT_US = 60 * 1000 * 1000 };

static const struct row {
	kb_tool_fn *fn;
	struct uar_tool tool;
} rows[] = {
#define JSON(...) #__VA_ARGS__
#define T(FN, NAME, EFFECT, DESTRUCTIVE, ASK, DESCRIPTION, INPUT, OUTPUT)                          \
	{ kb_tool_##FN,                                                                            \
	  { .tool_id = UAR_STR("internal:" NAME),                                                  \
	    .name = UAR_STR(NAME),                                                                 \
	    .description = UAR_STR(DESCRIPTION),                                                   \
	    .version = UAR_STR("1"),                                                               \
	    .transport = UAR_STR("internal"),                                                      \
	    .input_schema = UAR_STR(INPUT),                                                        \
	    .output_schema = UAR_STR(OUTPUT),                                                      \
	    .tags = UAR_STR("[\"knowledge\"]"),                                                    \
	    .capabilities = UAR_STR("[\"knowledge\"]"),                                            \
	    .effect = UAR_TOOL_##EFFECT,                                                           \
	    .destructive = (DESTRUCTIVE),                                                          \
	    .ask = (ASK),                                                                          \
	    .timeout_us = TIMEOUT_US } },
#include "work/kb_tools.def"
#undef T
#undef JSON
};

struct source {
	struct uar_tools base; /* first: the ops get it back by a cast */
	struct uar_knowledge *k;
	struct uar_list calls;
};

static struct source *source_of(struct uar_tools *t)
{
	return (struct source *)(void *)t;
}

static const struct uar_tool *at(struct uar_tools *t, size_t index)
{
	(void)t;
	return index < ARRAY_LEN(rows) ? &rows[index].tool : NULL;
}

/* --- the end of a call ---------------------------------------------------------------------- */

static void report(struct uar_tool_call *c, const struct uar_tool_result *r)
{
	struct uar_buf out = c->out;

	if (!c->unheard) {
		uar_list_remove(&c->node);
		c->events.done(c->events.ctx, r);
	}
	uar_know_free(&c->search.job);
	uar_buf_fini(&out);
}

void kb_tool_fail(struct uar_tool_call *c, uar_err e, const struct uar_error *error)
{
	struct uar_tool_result r = { .category = UAR_STR("execution"),
				     .message = uar_str_c(error->text[0] ? error->text
									 : uar_err_text(e)),
				     .retryable = uar_err_retryable(e) };

	report(c, &r);
}

void kb_tool_end(struct uar_tool_call *c, struct uar_jw *w)
{
	struct uar_tool_result r = { .ok = true };
	struct uar_error error = { 0 };
	uar_err e = uar_jw_end(w);

	if (e) {
		uar_error_set(&error, e, "the result is larger than %d bytes",
			      UAR_LIMIT_TOOL_OUTPUT);
		kb_tool_fail(c, e, &error);
		return;
	}
	r.output = uar_buf_str(&c->out);
	report(c, &r);
}

/* --- the port ------------------------------------------------------------------------------- */

/* A definition may have been read from something else than JSON: there is no text to copy. */
static uar_err copy_memory(struct uar_tool_call *c, struct uar_error *error)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_TOOL_INPUT);
	uar_str text;

	uar_json_write(&b, c->caller.memory);
	text = b.err ? UAR_STR_NONE : uar_arena_str(&c->search.job.arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	return text.p ? uar_json_parse(text, NULL, &c->search.job.arena, &c->caller.memory, error)
		      : UAR_ENOMEM;
}

static uar_err copy_request(struct uar_tool_call *c, const struct uar_tool_request *r,
			    struct uar_error *error)
{
	struct uar_arena *arena = &c->search.job.arena;
	uar_str *const texts[] = { &c->caller.owner.tenant,    &c->caller.owner.workspace,
				   &c->caller.owner.user,      &c->caller.agent_id,
				   &c->caller.conversation_id, &c->run_id };
	uar_str input = uar_arena_str(arena, r->input);
	uar_err e;

	c->caller = *r->caller;
	c->run_id = r->run_id;
	if (!uar_arena_strs(arena, texts, ARRAY_LEN(texts)) || !input.p)
		return UAR_ENOMEM;
	e = uar_json_parse(input, NULL, arena, &c->input, error);
	return e || !c->caller.memory ? e : copy_memory(c, error);
}

static const struct row *row_of(const struct uar_tool *tool)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (uar_str_eq(rows[i].tool.tool_id, tool->tool_id))
			return &rows[i];
	return NULL;
}

/* A job that cannot begin is gone: what its caller hears is kept aside. */
static void go_on(struct uar_tool_call *c)
{
	struct uar_tool_events events = c->events;
	struct uar_tool_result busy = { .category = UAR_STR("execution"),
					.message = UAR_STR("no thread is free for it"),
					.retryable = true };
	struct uar_list *before = c->node.prev;

	uar_list_remove(&c->node);
	if (uar_know_begin(&c->search.job))
		events.done(events.ctx, &busy);
	else
		uar_list_add_last(before->next, &c->node);
}

/* The page is there: the rest is a worker's. */
static void on_page(struct uar_know_page *p)
{
	struct uar_tool_call *c = p->ctx;
	struct uar_arena *arena = &c->search.job.arena;
	struct uar_error error = p->error;
	uar_err e = p->err;

	c->fetching = false;
	if (!e) {
		c->document.bytes = uar_arena_str(arena, uar_buf_str(&p->bytes));
		if (!c->document.media_type.n)
			c->document.media_type = uar_arena_str(arena, uar_str_c(p->media_type));
		e = c->document.bytes.p && c->document.media_type.p ? UAR_OK : UAR_ENOMEM;
	}
	uar_know_page_free(p);
	if (e || c->unheard) {
		kb_tool_fail(c, e, &error);
		return;
	}
	go_on(c);
}

/* On an error the job is gone. */
static uar_err begin(struct source *s, struct uar_tool_call *c, struct uar_error *error)
{
	uar_err e;

	if (c->url.p) {
		e = uar_know_fetch(s->k, c->url, on_page, c, error);
		c->fetching = !e;
		if (e)
			uar_know_free(&c->search.job);
	} else {
		e = c->searches ? uar_know_search_begin(&c->search)
				: uar_know_begin(&c->search.job);
	}
	return e;
}

static uar_err start(struct uar_tools *t, const struct uar_tool_request *r,
		     const struct uar_tool_events *events, struct uar_tool_call **out,
		     struct uar_error *error)
{
	struct source *s = source_of(t);
	const struct row *row = row_of(r->tool);
	struct uar_tool_call *c;
	uar_err e;

	if (!row || !r->caller)
		return uar_error_set(error, UAR_EFORBIDDEN, "this call has no owner");
	c = uar_know_job_new(s->k, sizeof *c);
	if (!c)
		return uar_error_set(error, UAR_EBUSY, "the knowledge base has too much to do");
	c->events = *events;
	c->read_only = row->tool.effect == UAR_TOOL_READ_ONLY;
	c->out = uar_buf_make(UAR_LIMIT_TOOL_OUTPUT);
	e = copy_request(c, r, error);
	if (!e)
		e = row->fn(c, error);
	if (e) {
		uar_know_free(&c->search.job);
		return e;
	}
	e = begin(s, c, error);
	if (e)
		return e;
	uar_list_add_last(&s->calls, &c->node);
	*out = c;
	return UAR_OK;
}

static void cancel(struct uar_tools *t, struct uar_tool_call *c)
{
	(void)t;
	uar_list_remove(&c->node);
	c->unheard = true;
	if (!c->fetching)
		uar_know_cancel(&c->search.job);
}

static bool withdraw(struct uar_tools *t, struct uar_tool_call *c)
{
	if (!c->read_only)
		return false;
	cancel(t, c);
	return true;
}

static void destroy(struct uar_tools *t)
{
	struct source *s = source_of(t);

	while (!uar_list_empty(&s->calls))
		cancel(t, UAR_OWNER(s->calls.next, struct uar_tool_call, node));
	uar_free(s);
}

static const struct uar_tools_ops kb_ops = {
	.abi = 1,
	.size = sizeof(struct uar_tools_ops),
	.destroy = destroy,
	.at = at,
	.start = start,
	.cancel = cancel,
	.withdraw = withdraw,
};

uar_err uar_kb_tools_create(struct uar_knowledge *k, struct uar_tools **out)
{
	struct source *s = uar_zalloc(sizeof *s);

	if (!s)
		return UAR_ENOMEM;
	s->base.ops = &kb_ops;
	s->k = k;
	uar_list_init(&s->calls);
	*out = &s->base;
	return UAR_OK;
}
