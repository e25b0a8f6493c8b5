/* flow.c - workflow.run: the step at which llm.chat would call its model.
 *
 * The rounds of the log have the calls and their results; from these flow/ computes the state of
 * the nodes and the next calls. Both are recorded in one append. The worker that begins after it
 * makes the calls as if a model had asked for them. */
#include "base/seal.h"
#include "core/limits.h"
#include "flow/flow.h"
#include "json/limits.h"
#include "json/schema.h"
#include "tool/limits.h"
#include "work/definitions.h"
#include "work/llm_int.h"
#include "work/tool_form.h"

struct looking {
	struct llm *w;
	struct uar_arena arena;
	struct uar_flow *flow;
	struct uar_flow_ask ask;
	struct uar_flow_step *before, *now;
};

/* --- the state so far ----------------------------------------------------------------------- */

/* All inputs in one object. */
static uar_err read_inputs(struct looking *k)
{
	struct uar_buf b = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	const struct uar_json *rest = NULL;
	uar_str given = rt_llm_inputs(k->w), message = uar_buf_str(&k->w->message);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e = given.n ? uar_json_parse(given, NULL, &k->arena, &rest, NULL) : UAR_OK;

	uar_jw_obj(&w, NULL);
	if (message.n)
		uar_jw_str(&w, "message", message);
	for (const struct uar_json *m = uar_json_first(rest); m && !e; m = m->next) {
		if (uar_str_starts(m->key, UAR_STR("$")) || uar_str_is(m->key, "message"))
			continue;
		uar_jw_key(&w, m->key);
		uar_jw_tree(&w, NULL, m);
	}
	uar_jw_close(&w);
	if (!e)
		e = uar_jw_end(&w);
	if (!e)
		e = uar_json_parse_copy(uar_buf_str(&b), NULL, &k->arena, &k->ask.inputs, NULL);
	uar_buf_fini(&b);
	return e;
}

static uar_err read_calls(struct looking *k)
{
	const struct rounds *s = k->w->rounds;
	size_t n = 0, most = 0;
	struct uar_flow_call *at;

	for (size_t i = 0; s && i < s->count; i++)
		most += s->at[i].call_count;
	at = uar_arena_alloc(&k->arena, (most + 1) * sizeof *at);
	if (!at)
		return UAR_ENOMEM;
	for (size_t i = 0; s && i < s->count; i++) {
		k->ask.calls.open_from = n;
		for (size_t c = 0; c < s->at[i].call_count; c++)
			at[n++] = (struct uar_flow_call){ s->at[i].calls[c].provider_id,
							  s->at[i].calls[c].ended,
							  s->at[i].calls[c].failed,
							  s->at[i].calls[c].told };
	}
	k->ask.calls.at = at;
	k->ask.calls.count = n;
	k->ask.made_us = s ? s->made_us : 0;
	return UAR_OK;
}

/* The step that was recorded with the last round, computed again for its time. */
static uar_err look_back(struct looking *k)
{
	struct uar_flow_ask then = k->ask;

	then.now_us = then.made_us;
	return k->ask.made_us ? uar_flow_step(&then, &k->arena, &k->before) : UAR_OK;
}

static uar_err look(struct looking *k, struct uar_error *error)
{
	const struct uar_definition *d = rt_definition(k->w->base.run);
	uar_err e;

	k->flow = uar_arena_alloc(&k->arena, sizeof *k->flow);
	if (!d || !k->flow)
		return d ? UAR_ENOMEM : UAR_ECORRUPT;
	k->ask.flow = k->flow;
	k->ask.now_us = uar_clock_wall(rt_sched(rt_engine(k->w->base.run))->clock);
	e = uar_flow_read(d->json, k->flow, error);
	if (!e)
		e = read_inputs(k);
	if (!e)
		e = read_calls(k);
	if (!e)
		e = look_back(k);
	k->ask.calls.open_from = k->ask.calls.count;
	return e ? e : uar_flow_step(&k->ask, &k->arena, &k->now);
}

/* --- a plan --------------------------------------------------------------------------------- */

static bool has_secrets(const struct toolset *set, const struct uar_flow_step *s)
{
	bool found = false;

	for (size_t i = 0; i < s->want_count && !found; i++) {
		const struct uar_tool *t =
			uar_tools_find(set->registry, set->owner, s->wants[i].tool_id);
		struct uar_buf hidden = uar_buf_make(UAR_LIMIT_JSON_BYTES);

		found = t && rt_form_hides(t->input_schema, s->wants[i].args, &hidden) != UAR_ESKIP;
		uar_buf_fini(&hidden);
	}
	return found;
}

/* "spawn:NODE#2" is for NODE; "wait" for none. */
static void put_index(struct uar_jw *w, const char *id, uar_str key)
{
	uar_str item, node, stage = uar_str_cut(key, ':', &node);
	uint64_t number;

	node = uar_str_cut(node, '#', &item);
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "id", id);
	uar_jw_str(w, "stage", stage);
	if (node.n)
		uar_jw_str(w, "node", node);
	if (item.n && !uar_str_u64(item, &number))
		uar_jw_u64(w, "item", number);
	uar_jw_close(w);
}

static uar_err write_calls(struct looking *k, const struct toolset *set, struct uar_buf *calls,
			   struct uar_buf *index)
{
	struct uar_jw c = uar_jw_begin(calls), x = uar_jw_begin(index);
	uar_err e;

	uar_jw_arr(&c, NULL);
	uar_jw_arr(&x, NULL);
	for (size_t i = 0; i < k->now->want_count; i++) {
		const struct uar_flow_want *want = &k->now->wants[i];
		const struct uar_tool *t = uar_tools_find(set->registry, set->owner, want->tool_id);
		char id[UAR_UUID_TEXT + 1];

		uar_uuid_next(rt_ids(rt_engine(k->w->base.run)), id);
		uar_jw_obj(&c, NULL);
		uar_jw_cstr(&c, "id", id);
		uar_jw_str(&c, "provider_id", want->key);
		uar_jw_str(&c, "name", t ? t->model_name : want->tool_id);
		uar_jw_str(&c, "arguments", want->args);
		uar_jw_close(&c);
		put_index(&x, id, want->key);
	}
	uar_jw_close(&c);
	uar_jw_close(&x);
	e = uar_jw_end(&c);
	return e ? e : uar_jw_end(&x);
}

static void send_plan(struct llm *w, uar_str calls, uar_str blob)
{
	struct uar_command c = { .kind = UAR_CMD_PLAN };

	c.plan = (struct uar_plan){ .nodes = uar_buf_str(&w->plan_nodes),
				    .calls = calls,
				    .blob = blob,
				    .index = uar_buf_str(&w->plan_index),
				    .made_us = w->plan_us };
	rt_send(w->base.run, &c);
}

static void calls_stored(void *ctx, uar_err e, uar_str sha256)
{
	struct llm *w = ctx;

	w->plan = NULL;
	if (e)
		rt_send_fail(w->base.run, e, "execution", uar_err_text(e));
	else
		send_plan(w, UAR_STR(""), sha256);
}

static uar_err seal_calls(struct llm *w, struct uar_buf *calls)
{
	struct uar_runtime *rt = rt_engine(w->base.run);
	struct uar_buf sealed = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	uar_err e = uar_seal(rt_seal(rt), rt_rand(rt), uar_buf_str(calls),
			     uar_str_c(rt_run_id(w->base.run)), &sealed);

	uar_buf_fini(calls);
	*calls = sealed;
	return e;
}

/* Changes of nodes and the next calls are recorded together. */
static uar_err plan(struct looking *k)
{
	struct llm *w = k->w;
	struct toolset set = rt_toolset_of(w->base.run);
	struct uar_buf calls = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	bool sealed = has_secrets(&set, k->now);
	uar_err e = write_calls(k, &set, &calls, &w->plan_index);

	w->plan_us = k->ask.now_us;
	if (!e && sealed)
		e = seal_calls(w, &calls);
	if (!e && (sealed || calls.n > UAR_LIMIT_TOOL_CALLS_INLINE))
		e = rt_aside_begin(rt_engine(w->base.run), uar_buf_str(&calls), calls_stored, w,
				   &w->plan);
	else if (!e)
		send_plan(w, k->now->want_count ? uar_buf_str(&calls) : UAR_STR(""), UAR_STR(""));
	uar_buf_fini(&calls);
	return e;
}

/* --- the end -------------------------------------------------------------------------------- */

static void fail_node(struct looking *k)
{
	const struct uar_flow_node *f = &k->flow->nodes[k->now->culprit];
	const struct uar_flow_state *n = &k->now->nodes[k->now->culprit];
	struct uar_command c = { .kind = UAR_CMD_FAIL };
	char text[UAR_TEXT_MESSAGE];

	snprintf(text, sizeof text, "node %.*s: %.*s", UAR_FMT(f->id),
		 UAR_FMT(uar_str_utf8_prefix(n->message,
					     sizeof text - UAR_LIMIT_FLOW_NODE_ID - 16)));
	c.fail = (struct uar_failure){ UAR_STR("NODE_FAILED"), uar_str_c(text),
				       UAR_STR("execution"), false };
	rt_send(k->w->base.run, &c);
}

static uar_err check_answer(const struct looking *k, struct uar_error *error)
{
	const struct uar_definition *d = rt_definition(k->w->base.run);
	static const struct uar_json nothing = { .kind = UAR_JSON_NULL };
	struct uar_schema *s = NULL;
	struct uar_arena scratch;
	uar_err e;

	if (!d || !d->schemas.outputs)
		return UAR_OK;
	uar_arena_init(&scratch, 0);
	e = uar_schema_create(d->schemas.outputs, NULL, &s, error);
	if (!e)
		e = uar_schema_validate(s, k->now->answer ? k->now->answer : &nothing, &scratch,
					error);
	uar_schema_destroy(s);
	uar_arena_fini(&scratch);
	return e;
}

static void refuse_answer(struct looking *k, const struct uar_error *error)
{
	struct uar_command c = { .kind = UAR_CMD_FAIL };
	char text[UAR_TEXT_MESSAGE];

	snprintf(text, sizeof text, "the output does not match schemas.outputs: %s%s%s",
		 error->where, error->where[0] ? ": " : "", uar_error_text(error));
	c.fail = (struct uar_failure){ UAR_STR(UAR_OUTPUT_INVALID), uar_str_c(text),
				       UAR_STR("execution"), false };
	rt_send(k->w->base.run, &c);
}

/* A text is answered as it is, any other value as JSON. */
static uar_err say(struct looking *k)
{
	static const struct uar_command finish = { .kind = UAR_CMD_FINISH };
	struct live_run *r = k->w->base.run;
	const struct uar_json *v = k->now->answer;
	struct uar_buf b = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	uar_str rest;
	uar_err e;

	if (v && v->kind == UAR_JSON_STRING)
		uar_buf_add_str(&b, v->text);
	else if (v && v->kind != UAR_JSON_NULL)
		uar_json_write(&b, v);
	rest = uar_str_from(uar_buf_str(&b), (size_t)rt_state(r)->call.chars);
	while (!b.err && rest.n) {
		uar_str piece = uar_str_utf8_prefix(rest, UAR_LIMIT_DELTA_COMMAND);

		(void)rt_send_text(r, UAR_CMD_TEXT, piece);
		rest = uar_str_from(rest, piece.n);
	}
	if (!b.err)
		rt_send(r, &finish);
	e = b.err;
	uar_buf_fini(&b);
	return e;
}

static uar_err finish(struct looking *k)
{
	struct uar_error error = { 0 };
	uar_err e = check_answer(k, &error);

	if (e == UAR_ENOMEM)
		return e;
	if (!e)
		return say(k);
	refuse_answer(k, &error);
	return UAR_OK;
}

static void rest(struct looking *k)
{
	struct uar_command c = { .kind = UAR_CMD_PLAN };

	c.plan.due_us = k->now->until_us;
	rt_send(k->w->base.run, &c);
}

static uar_err too_many(struct looking *k)
{
	rt_send_fail(k->w->base.run, UAR_ETOOBIG, "limit",
		     "the workflow has made more rounds of calls than it may");
	return UAR_OK;
}

static uar_err go_on(struct looking *k)
{
	struct llm *w = k->w;
	size_t changes = 0;
	uar_err e = uar_flow_write_changes(k->flow, k->before, k->now, &w->plan_nodes, &changes);

	if (e)
		return e;
	if ((changes || k->now->want_count) && w->rounds &&
	    w->rounds->count >= UAR_LIMIT_FLOW_ROUNDS)
		return too_many(k);
	if (changes || k->now->want_count)
		return plan(k);
	switch (k->now->verdict) {
	case UAR_FLOW_RESTS: rest(k); return UAR_OK;
	case UAR_FLOW_BROKE: fail_node(k); return UAR_OK;
	case UAR_FLOW_DONE: return finish(k);
	case UAR_FLOW_GOES_ON: break;
	}
	return UAR_EINTERNAL;
}

void rt_flow_go_on(struct llm *w)
{
	struct looking k = { .w = w };
	struct uar_error error = { 0 };
	uar_err e;

	w->plan_nodes = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	w->plan_index = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_arena_init(&k.arena, 0);
	e = look(&k, &error);
	if (!e)
		e = go_on(&k);
	if (e)
		rt_send_fail(w->base.run, e, "execution",
			     error.text[0] ? error.text : uar_err_text(e));
	uar_arena_fini(&k.arena);
}
