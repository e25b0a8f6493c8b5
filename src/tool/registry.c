/* registry.c - copies of what the sources list, and the calls that go to them.
 *
 * A tool and its schemas are one entry with a count of holders; the list of a source holds
 * each of its entries once, a call under way once more. */
#include "tool/registry.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "json/jw.h"
#include "json/schema.h"
#include "tool/limits.h"

struct entry {
	struct uar_tool tool; /* first: the port's users hand it back */
	size_t holders;
	struct uar_arena arena; /* of its strings and the documents of its schemas */
	struct uar_schema *input, *output;
	char model_name[UAR_LIMIT_TOOL_NAME + 1];
};

struct source {
	struct uar_list node;
	struct uar_tools *tools;
	struct entry **at;
	size_t count;
};

struct registry {
	struct uar_tools base; /* first */
	struct uar_sched *sched;
	struct registry *below; /* NULL: none */
	struct uar_list sources, calls;
	uint64_t generation;
};

struct call {
	struct uar_list node;
	struct registry *registry;
	struct uar_tools *source; /* NULL: it was removed, `broken` tells */
	struct entry *entry;
	struct uar_tool_call *inner;
	struct uar_tool_events events;
	struct uar_task broken;
};

static struct registry *registry_of(struct uar_tools *t)
{
	return (struct registry *)(void *)t;
}

static struct entry *entry_of(const struct uar_tool *tool)
{
	return UAR_OWNER(tool, struct entry, tool);
}

static struct call *call_of(struct uar_tool_call *c)
{
	return (struct call *)(void *)c;
}

/* --- entries ---------------------------------------------------------------------------- */

static void drop(struct entry *e)
{
	if (!e || --e->holders)
		return;
	uar_schema_destroy(e->input);
	uar_schema_destroy(e->output);
	uar_arena_fini(&e->arena);
	uar_free(e);
}

static void drop_all(struct entry **at, size_t count)
{
	for (size_t i = 0; i < count; i++)
		drop(at[i]);
	uar_free(at);
}

enum { STRINGS = 16 };

static void strings_of(struct uar_tool *t, uar_str *out[STRINGS])
{
	uar_str *const all[STRINGS] = { &t->tool_id,	   &t->name,	      &t->description,
					&t->version,	   &t->transport,     &t->input_schema,
					&t->output_schema, &t->tags,	      &t->auth,
					&t->capabilities,  &t->runtime_owner, &t->state_reason,
					&t->own_of,	   &t->owner.tenant,  &t->owner.workspace,
					&t->owner.user };

	memcpy(out, all, sizeof all);
}

static bool is_same(struct uar_tool *a, struct uar_tool *b)
{
	uar_str *x[STRINGS], *y[STRINGS];

	strings_of(a, x);
	strings_of(b, y);
	for (size_t i = 0; i < STRINGS; i++)
		if (!uar_str_eq(*x[i], *y[i]))
			return false;
	return a->effect == b->effect && a->destructive == b->destructive && a->ask == b->ask &&
	       a->may_ask == b->may_ask && a->timeout_us == b->timeout_us && a->state == b->state &&
	       a->by == b->by;
}

static uar_err compile(struct entry *e, uar_str text, struct uar_schema **out,
		       struct uar_error *error)
{
	const struct uar_json *document;
	uar_err err = text.n ? uar_json_parse(text, NULL, &e->arena, &document, error) : UAR_OK;

	return err || !text.n ? err : uar_schema_create(document, NULL, out, error);
}

/* Out of memory is the registry's misfortune, anything else the tool's. */
static uar_err compile_both(struct entry *e)
{
	struct uar_error error = { 0 };
	uar_err err = compile(e, e->tool.input_schema, &e->input, &error);
	const char *which = "input";

	if (!err) {
		err = compile(e, e->tool.output_schema, &e->output, &error);
		which = "output";
	}
	if (!err || err == UAR_ENOMEM)
		return err;
	e->tool.state = UAR_TOOL_UNAVAILABLE;
	e->tool.state_reason = uar_arena_printf(&e->arena, "its %s schema cannot be used: %s",
						which, uar_error_text(&error));
	return e->tool.state_reason.p ? UAR_OK : UAR_ENOMEM;
}

static uar_err copy(const struct uar_tool *tool, struct entry **out)
{
	struct entry *e = uar_zalloc(sizeof *e);
	uar_str *strings[STRINGS];
	uar_err err;

	if (!e)
		return UAR_ENOMEM;
	e->holders = 1;
	e->tool = *tool;
	strings_of(&e->tool, strings);
	err = uar_arena_strs(&e->arena, strings, STRINGS) ? compile_both(e) : UAR_ENOMEM;
	if (err) {
		drop(e);
		return err;
	}
	*out = e;
	return UAR_OK;
}

/* --- lists ------------------------------------------------------------------------------- */

static struct source *source_of(struct registry *r, const struct uar_tools *tools)
{
	UAR_LIST_EACH (it, &r->sources)
		if (UAR_OWNER(it, struct source, node)->tools == tools)
			return UAR_OWNER(it, struct source, node);
	return NULL;
}

struct naming {
	const struct registry *registry;
	const struct uar_tool *tool;  /* that is to have a name */
	const struct source *renewed; /* its old list does not count, */
	struct entry **at;	      /* its new one does */
	size_t count;
};

/* Does somebody see both? */
static bool meet(const struct uar_tool *a, const struct uar_tool *b)
{
	return uar_tool_is_for(a, &b->owner) || !b->owner.tenant.n;
}

static bool has_name(struct entry **at, size_t count, const struct uar_tool *tool, uar_str name)
{
	for (size_t i = 0; i < count; i++)
		if (uar_str_eq(at[i]->tool.model_name, name) && meet(&at[i]->tool, tool))
			return true;
	return false;
}

static bool is_taken(void *ctx, uar_str name)
{
	const struct naming *n = ctx;

	UAR_LIST_EACH (it, &n->registry->sources) {
		const struct source *s = UAR_OWNER(it, struct source, node);

		if (s != n->renewed && has_name(s->at, s->count, n->tool, name))
			return true;
	}
	return has_name(n->at, n->count, n->tool, name) ||
	       (n->registry->below &&
		uar_tools_by_model_name(&n->registry->below->base, &n->tool->owner, name));
}

static struct entry *find_id(struct entry **at, size_t count, const struct uar_tool *tool)
{
	for (size_t i = 0; i < count; i++)
		if (uar_str_eq(at[i]->tool.tool_id, tool->tool_id) &&
		    uar_owner_eq(&at[i]->tool.owner, &tool->owner))
			return at[i];
	return NULL;
}

/* The same tool again is the same entry. */
static uar_err list_one(const struct source *old, const struct uar_tool *tool, struct naming *n)
{
	struct entry *e = find_id(old->at, old->count, tool);
	struct uar_tool as = *tool;
	uar_err err;

	if (find_id(n->at, n->count, tool))
		return UAR_OK; /* it lists it twice: the first counts */
	if (e && is_same(&e->tool, &as)) {
		e->holders++;
		n->at[n->count++] = e;
		return UAR_OK;
	}
	err = copy(tool, &e);
	if (err)
		return err;
	n->tool = tool;
	/* Clients know their tools by the names that they gave them. */
	uar_tool_name_for_models(tool->by == UAR_TOOL_BY_CLIENT ? tool->name : tool->tool_id,
				 is_taken, n, e->model_name);
	e->tool.model_name = uar_str_c(e->model_name);
	n->at[n->count++] = e;
	return UAR_OK;
}

static uar_err list(struct registry *r, struct source *s, struct uar_error *error)
{
	struct naming n = { .registry = r, .renewed = s };
	const struct uar_tool *tool;
	size_t count = 0;
	uar_err e = UAR_OK;

	while (s->tools->ops->at(s->tools, count))
		if (++count > UAR_LIMIT_SOURCE_TOOLS)
			return uar_error_set(error, UAR_ETOOBIG, "it has more than %d tools",
					     UAR_LIMIT_SOURCE_TOOLS);
	n.at = uar_zalloc((count + 1) * sizeof *n.at);
	if (!n.at)
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	for (size_t i = 0; i < count && !e && (tool = s->tools->ops->at(s->tools, i)); i++)
		e = list_one(s, tool, &n);
	if (e) {
		drop_all(n.at, n.count);
		return uar_error_set(error, e, "%s", uar_err_text(e));
	}
	drop_all(s->at, s->count);
	s->at = n.at;
	s->count = n.count;
	r->generation++;
	return UAR_OK;
}

/* --- the port: look-ups -------------------------------------------------------------------- */

static const struct uar_tool *at(struct uar_tools *t, size_t index)
{
	UAR_LIST_EACH (it, &registry_of(t)->sources) {
		const struct source *s = UAR_OWNER(it, struct source, node);

		if (index < s->count)
			return &s->at[index]->tool;
		index -= s->count;
	}
	return registry_of(t)->below ? at(&registry_of(t)->below->base, index) : NULL;
}

static uint64_t generation(struct uar_tools *t)
{
	const struct registry *r = registry_of(t);

	return r->generation + (r->below ? generation(&r->below->base) : 0);
}

static void hold(struct uar_tools *t, const struct uar_tool *tool)
{
	(void)t;
	entry_of(tool)->holders++;
}

static void let_go(struct uar_tools *t, const struct uar_tool *tool)
{
	(void)t;
	drop(entry_of(tool));
}

static uar_err validate(const struct uar_schema *schema, uar_str json, size_t max,
			struct uar_error *error)
{
	struct uar_json_limits limits = { .bytes = max };
	const struct uar_json *j;
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(json, &limits, &arena, &j, error);
	if (e && e != UAR_ENOMEM)
		e = UAR_EINVALID;
	else if (!e && schema)
		e = uar_schema_validate(schema, j, &arena, error);
	if (!e && !schema && j->kind != UAR_JSON_OBJECT)
		e = uar_error_set(error, UAR_ESCHEMA, "it is no object");
	if (e && error)
		error->code = e;
	uar_arena_fini(&arena);
	return e;
}

static uar_err check(struct uar_tools *t, const struct uar_tool *tool, uar_str input,
		     struct uar_error *error)
{
	(void)t;
	if (!tool)
		return uar_error_set(error, UAR_ENOTFOUND, "there is no such tool");
	return validate(entry_of(tool)->input, input, UAR_LIMIT_TOOL_INPUT, error);
}

/* --- the port: calls ------------------------------------------------------------------------ */

static void forget(struct call *c)
{
	uar_list_remove(&c->node);
	uar_unpost(c->registry->sched, &c->broken);
	drop(c->entry);
	uar_free(c);
}

static void on_progress(void *ctx, uar_str json)
{
	const struct call *c = ctx;

	if (c->events.progress)
		c->events.progress(c->events.ctx, json);
}

static void on_asked(void *ctx, const struct uar_tool_question *q)
{
	const struct call *c = ctx;

	c->events.asked(c->events.ctx, q);
}

static void on_unasked(void *ctx, bool settled)
{
	const struct call *c = ctx;

	if (c->events.unasked)
		c->events.unasked(c->events.ctx, settled);
}

/* It was executed, whatever it says: the failure tells so. */
static void judge_output(const struct call *c, struct uar_tool_result *r, char *text, size_t size)
{
	struct uar_error error = { 0 };

	if (!r->ok || !c->entry->output || (!r->output.n && r->part_count))
		return;
	if (!validate(c->entry->output, r->output.n ? r->output : UAR_STR("null"),
		      UAR_LIMIT_TOOL_OUTPUT, &error))
		return;
	snprintf(text, size, "it was executed, and its result is not what its schema says%s%s: %s",
		 error.where[0] ? ", at " : "", error.where, uar_error_text(&error));
	*r = (struct uar_tool_result){ .category = UAR_STR("execution"),
				       .message = uar_str_c(text) };
}

static void put_part(struct uar_jw *w, const struct uar_tool_part *p)
{
	static const char *const kinds[] = {
		[UAR_TOOL_TEXT] = "text", [UAR_TOOL_IMAGE] = "image", [UAR_TOOL_FILE] = "file"
	};
	struct uar_buf data = uar_buf_make(UAR_LIMIT_TOOL_OUTPUT);

	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "type", kinds[p->kind]);
	if (p->kind == UAR_TOOL_TEXT)
		uar_jw_str(w, "text", p->text);
	if (p->media_type.n)
		uar_jw_str(w, "media_type", p->media_type);
	if (p->name.n)
		uar_jw_str(w, "name", p->name);
	if (p->url.n)
		uar_jw_str(w, "url", p->url);
	if (p->bytes.n) {
		uar_base64_encode(&data, p->bytes);
		uar_jw_int(w, "bytes", (int64_t)p->bytes.n);
		if (data.err)
			uar_jw_bool(w, "omitted", true);
		else
			uar_jw_str(w, "data", uar_buf_str(&data));
	}
	uar_jw_close(w);
	uar_buf_fini(&data);
}

/* Parts alone are a result as well: what is recorded names each of them. */
static void write_parts(struct uar_tool_result *r, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);

	if (!r->ok || r->output.n || !r->part_count)
		return;
	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "parts");
	for (size_t i = 0; i < r->part_count; i++)
		put_part(&w, &r->parts[i]);
	uar_jw_close(&w);
	uar_jw_close(&w);
	if (uar_jw_end(&w) || out->err)
		*r = (struct uar_tool_result){ .category = UAR_STR("result_too_large"),
					       .message =
						       UAR_STR("it was executed, and its result is "
							       "too large") };
	else
		r->output = uar_buf_str(out);
}

static void on_done(void *ctx, const struct uar_tool_result *result)
{
	struct call *c = ctx;
	struct uar_tool_events events = c->events;
	struct uar_tool_result r = *result;
	struct uar_buf parts = uar_buf_make(2 * UAR_LIMIT_TOOL_OUTPUT);
	char text[UAR_LIMIT_ERROR_TEXT];

	judge_output(c, &r, text, sizeof text);
	write_parts(&r, &parts);
	forget(c);
	events.done(events.ctx, &r);
	uar_buf_fini(&parts);
}

static void on_broken(struct uar_task *t)
{
	struct call *c = UAR_OWNER(t, struct call, broken);
	struct uar_tool_events events = c->events;
	struct uar_tool_result r = { .category = UAR_STR("dependency"),
				     .message = UAR_STR("what executes the tool is gone: it may "
							"have happened") };

	forget(c);
	events.done(events.ctx, &r);
}

static struct uar_tools *find_source(struct registry *r, const struct uar_tool *tool)
{
	UAR_LIST_EACH (it, &r->sources) {
		const struct source *s = UAR_OWNER(it, struct source, node);

		if (find_id(s->at, s->count, tool))
			return s->tools;
	}
	return NULL;
}

static uar_err start(struct uar_tools *t, const struct uar_tool_request *request,
		     const struct uar_tool_events *events, struct uar_tool_call **out,
		     struct uar_error *error)
{
	struct registry *r = registry_of(t);
	struct uar_tool_events ours = { .progress = on_progress,
					.done = on_done,
					.asked = events->asked ? on_asked : NULL,
					.unasked = on_unasked };
	struct uar_tools *source = request->tool ? find_source(r, request->tool) : NULL;
	uar_err e = check(t, request->tool, request->input, error);
	struct call *c;

	if (!e && !source && r->below)
		return start(&r->below->base, request, events, out, error);
	if (!e && !source)
		e = uar_error_set(error, UAR_ENOTFOUND, "the tool is not there any more");
	if (e)
		return e;
	c = uar_zalloc(sizeof *c);
	if (!c)
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	*c = (struct call){ .registry = r, .source = source, .events = *events };
	c->entry = entry_of(request->tool);
	c->entry->holders++;
	c->broken.fn = on_broken;
	uar_list_add_last(&r->calls, &c->node);
	ours.ctx = c;
	e = source->ops->start(source, request, &ours, &c->inner, error);
	if (e)
		forget(c);
	else
		*out = (struct uar_tool_call *)(void *)c;
	return e;
}

static void cancel(struct uar_tools *t, struct uar_tool_call *call)
{
	struct call *c = call_of(call);

	(void)t;
	if (c->source)
		c->source->ops->cancel(c->source, c->inner);
	forget(c);
}

static bool withdraw(struct uar_tools *t, struct uar_tool_call *call)
{
	struct call *c = call_of(call);

	(void)t;
	if (!c->source || !c->source->ops->withdraw(c->source, c->inner))
		return false;
	forget(c);
	return true;
}

static void answer(struct uar_tools *t, struct uar_tool_call *call, const struct uar_tool_answer *a)
{
	struct call *c = call_of(call);

	(void)t;
	if (c->source && c->source->ops->answer)
		c->source->ops->answer(c->source, c->inner, a);
}

/* --- sources come and go ---------------------------------------------------------------------- */

static void remove_source(struct registry *r, struct source *s)
{
	UAR_LIST_EACH (it, &r->calls) {
		struct call *c = UAR_OWNER(it, struct call, node);

		if (c->source != s->tools)
			continue;
		c->source->ops->cancel(c->source, c->inner);
		c->source = NULL;
		uar_post(r->sched, &c->broken);
	}
	uar_list_remove(&s->node);
	drop_all(s->at, s->count);
	uar_tools_destroy(s->tools);
	uar_free(s);
	r->generation++;
}

static void destroy(struct uar_tools *t)
{
	struct registry *r = registry_of(t);

	while (!uar_list_empty(&r->calls))
		cancel(t,
		       (struct uar_tool_call *)(void *)UAR_OWNER(r->calls.next, struct call, node));
	while (!uar_list_empty(&r->sources))
		remove_source(r, UAR_OWNER(r->sources.next, struct source, node));
	uar_free(r);
}

static const struct uar_tools_ops registry_ops = {
	.abi = 1,
	.size = sizeof(struct uar_tools_ops),
	.destroy = destroy,
	.at = at,
	.check = check,
	.start = start,
	.cancel = cancel,
	.answer = answer,
	.withdraw = withdraw,
	.generation = generation,
	.hold = hold,
	.let_go = let_go,
};

uar_err uar_tool_registry_create(struct uar_sched *sched, struct uar_tools *below,
				 struct uar_tools **out)
{
	struct registry *r = uar_zalloc(sizeof *r);

	if (!r)
		return UAR_ENOMEM;
	r->base.ops = &registry_ops;
	r->sched = sched;
	r->below = below ? registry_of(below) : NULL;
	uar_list_init(&r->sources);
	uar_list_init(&r->calls);
	*out = &r->base;
	return UAR_OK;
}

uar_err uar_tool_registry_add(struct uar_tools *registry, struct uar_tools *source,
			      struct uar_error *error)
{
	struct registry *r = registry_of(registry);
	struct source *s = uar_zalloc(sizeof *s);
	uar_err e;

	if (!s)
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	s->tools = source;
	uar_list_add_last(&r->sources, &s->node);
	e = list(r, s, error);
	if (e) {
		uar_list_remove(&s->node);
		uar_free(s);
	}
	return e;
}

uar_err uar_tool_registry_changed(struct uar_tools *registry, struct uar_tools *source,
				  struct uar_error *error)
{
	struct source *s = source_of(registry_of(registry), source);

	return s ? list(registry_of(registry), s, error)
		 : uar_error_set(error, UAR_ENOTFOUND, "it is no source of this registry");
}

void uar_tool_registry_remove(struct uar_tools *registry, struct uar_tools *source)
{
	struct source *s = source_of(registry_of(registry), source);

	if (s)
		remove_source(registry_of(registry), s);
}
