/* tool_loop.c - the calls of a round, one after the other or side by side.
 *
 * Each call that is under way has a place. A place sends TOOL_BEGIN, and when that
 * is durable starts the tool; its end is sent as TOOL_OVER, and when that is durable
 * the place is free. Values too long for an event are put aside before. */
#include "work/tool_loop_int.h"

#include "core/limits.h"
#include "json/limits.h"
#include "work/definitions.h"
#include "work/limits.h"
#include "work/skills.h"
#include "work/spill.h"
#include "work/tool_form.h"
#include "work/tool_sample.h"

static struct uar_runtime *rt_of(const struct tool_loop *l)
{
	return rt_engine(l->o.run);
}

void rt_place_clear(struct place *p)
{
	uar_tools_let_go(p->loop->set.registry, p->tool);
	uar_buf_fini(&p->line);
	uar_buf_fini(&p->output);
	uar_buf_fini(&p->held);
	uar_buf_fini(&p->merged);
	uar_buf_fini(&p->hidden);
	uar_buf_fini(&p->form);
	uar_buf_fini(&p->title);
	uar_buf_fini(&p->permission);
	rt_place_unbind(p);
	*p = (struct place){ .loop = p->loop };
}

void rt_place_free(struct place *p)
{
	struct tool_loop *l = p->loop;

	rt_place_clear(p);
	l->busy--;
	l->alone = false;
}

struct place *rt_place_of(const struct tool_loop *l, uar_str call_id)
{
	for (size_t i = 0; l && i < PLACES; i++)
		if (l->places[i].call && uar_str_eq(l->places[i].call->id, call_id))
			return (struct place *)&l->places[i];
	return NULL;
}

/* --- values in events ----------------------------------------------------------------------- */

/* Models put line ends between tokens, which an event must not have. */
uar_err rt_place_read_args(struct place *p)
{
	uar_str shown = p->input;
	uar_err e;

	p->hidden = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	e = rt_form_hides(p->tool ? p->tool->input_schema : UAR_STR_NONE, p->input, &p->hidden);
	if (!e)
		shown = uar_buf_str(&p->hidden);
	p->args_json = rt_place_fits(
		shown, true, p->plan == ASK_FORM ? UAR_LIMIT_CLIENT_ARGS : UAR_LIMIT_TOOL_INLINE,
		&p->line);
	p->args = p->args_json ? uar_buf_str(&p->line) : shown;
	return e == UAR_ESKIP ? UAR_OK : e;
}

/* --- the beginning of a call ------------------------------------------------------------------ */

/* Whom the run may start: those that policy.agents names. A workflow names them one by one, and
 * starts no others. */
static const struct uar_json *agents_of(const struct tool_loop *l, const struct uar_definition *d)
{
	static const struct uar_json any = { .kind = UAR_JSON_STRING, .text = { "*", 1 } };
	static const struct uar_json all = { .kind = UAR_JSON_ARRAY, .count = 1, .first = &any };

	if (rt_state(l->o.run)->what.entry == UAR_ENTRY_WORKFLOW)
		return &all;
	return d ? uar_json_get(uar_json_get(d->json, UAR_STR("policy")), UAR_STR("agents")) : NULL;
}

static void start_tool(struct place *p)
{
	struct tool_loop *l = p->loop;
	char key[2 * (UAR_LIMIT_ID_BYTES + 1)];
	const struct uar_definition *d = rt_definition(l->o.run);
	bool alone = rt_place_unattended(p);
	struct uar_tool_caller caller = {
		.owner = rt_agg_session(rt_agg(l->o.run))->owner,
		.agent_id = rt_state(l->o.run)->what.agent_id,
		.conversation_id = uar_str_c(rt_thread_id(l->o.run)),
		.memory = d ? uar_json_get(d->json, UAR_STR("memory")) : NULL,
		.agents = agents_of(l, d),
	};
	struct uar_tool_request request = { .tool = p->tool,
					    .input = p->input,
					    .run_id = uar_str_c(rt_run_id(l->o.run)),
					    .caller = &caller,
					    .sandbox = uar_buf_str(&p->bound.plan.sandbox),
					    .process_id = uar_str_c(p->bound.process_id) };
	struct uar_tool_events events = { .progress = rt_place_progress,
					  .done = rt_place_told,
					  .ctx = p,
					  .asked = alone ? NULL : rt_place_ask,
					  .unasked = alone ? NULL : rt_place_unask };
	struct uar_error error = { 0 };
	uar_err e;

	if (!rt_skills_reach(rt_llm_skills(l->o.run), p->tool->tool_id, p->input)) {
		rt_place_send_failed(p, UAR_STR("value_invalid"),
				     UAR_STR("there is no skill in a folder of this name, or "
					     "it is not active"),
				     false);
		return;
	}
	snprintf(key, sizeof key, "%s/%.*s", rt_run_id(l->o.run), UAR_FMT(p->call->id));
	request.key = uar_str_c(key);
	e = l->set.registry->ops->start(l->set.registry, &request, &events, &p->at_work, &error);
	if (!e)
		return;
	error.code = e;
	p->at_work = NULL;
	rt_place_send_failed(p, UAR_STR("execution"), uar_str_c(uar_error_text(&error)),
			     uar_err_retryable(e));
}

/* The client of the run sees it in the run's events. */
static void navigate(struct place *p)
{
	struct uar_command c = { .kind = UAR_CMD_NOTE };
	struct uar_tool_result shown = { .ok = true, .output = UAR_STR("{\"shown\":true}") };
	struct uar_buf about = uar_buf_make(UAR_LIMIT_TOOL_INLINE * 2);

	uar_buf_printf(&about, "{\"ui\":\"navigate\",\"tool_call_id\":\"%.*s\",\"navigate\":%.*s}",
		       UAR_FMT(p->call->id), UAR_FMT(p->args));
	c.note = (struct uar_note){ .kind = UAR_NOTE_PHASE,
				    .code = UAR_STR("tool_loop"),
				    .text = UAR_STR("Shows another view"),
				    .metadata = uar_buf_str(&about) };
	if (!about.err)
		rt_send(p->loop->o.run, &c);
	uar_buf_fini(&about);
	rt_place_done(p, &shown);
}

static void search_tools(struct place *p)
{
	struct uar_buf out = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_tool_result found = { .category = UAR_STR("execution") };
	uar_err e = rt_toolset_search(&p->loop->set, p->input, &out);

	found.ok = !e;
	found.output = uar_buf_str(&out);
	found.message = uar_str_c(uar_err_text(e));
	rt_place_done(p, &found);
	uar_buf_fini(&out);
}

static void perform(struct place *p)
{
	struct uar_tool_result given = { .ok = true, .output = p->call->values };

	if (p->tool->by == UAR_TOOL_BY_START)
		start_tool(p);
	else if (p->tool->by == UAR_TOOL_BY_NAVIGATE)
		navigate(p);
	else if (p->tool->by == UAR_TOOL_BY_ARTIFACT)
		rt_place_make_artifact(p);
	else if (p->tool->by == UAR_TOOL_BY_SEARCH)
		search_tools(p);
	else
		rt_place_done(p, &given);
}

/* Durable: now it may happen, unless the run is being stopped. */
static void begun(const struct rt_sent *s)
{
	struct tool_loop *l = s->err || !s->run ? NULL : rt_llm_tool_loop(s->run);
	struct place *p = rt_place_of(l, s->command->begin.call_id);

	if (!p || s->state->status != UAR_STATUS_RUNNING)
		return;
	if (p->plan == REFUSE)
		rt_place_ended(p, &(struct uar_tool_over){ .category = s->command->begin.category,
							   .message = s->command->begin.message });
	else if (rt_place_is_orphan(p))
		rt_place_cancel_orphan(p);
	else
		perform(p);
}

static const char *policy_of(const struct place *p)
{
	return p->tool ? rt_toolset_policy(&p->loop->set, p->tool) : "unavailable";
}

/* The model is told the message alone: it has to say which argument is meant. */
static void put_refusal(const struct place *p, struct uar_tool_begin *b,
			char told[UAR_TEXT_MESSAGE + 1])
{
	const char *where = p->why.where, *text = uar_error_text(&p->why);

	b->category = p->category;
	b->message = uar_str_c(text);
	if (!uar_str_is(p->category, "schema_invalid"))
		return;
	b->wrong_at = uar_str_c(where);
	b->wrong = b->message;
	if (!where[0])
		return;
	snprintf(told, UAR_TEXT_MESSAGE + 1, "at %s: %s", where, text);
	b->message = uar_str_c(told);
}

static void send_begin(struct place *p, uar_str args_blob)
{
	const struct round_call *call = p->call;
	const struct uar_tool *t = p->tool;
	struct uar_command c = { .kind = UAR_CMD_TOOL_BEGIN };
	char told[UAR_TEXT_MESSAGE + 1], schema[UAR_SHA256_TEXT + 1];

	c.begin = (struct uar_tool_begin){
		.call_id = call->id,
		.tool_id = t ? t->tool_id : uar_str_utf8_prefix(call->name, UAR_TEXT_CODE),
		.name = t ? t->name : uar_str_utf8_prefix(call->name, UAR_TEXT_CODE),
		.version = t ? t->version : UAR_STR("unknown"),
		.transport = t ? t->transport : UAR_STR("unknown"),
		.effect = uar_tool_effect_name(t ? t->effect : UAR_TOOL_READ_ONLY),
		.policy = policy_of(p),
		.args = p->args_json ? p->args : rt_spill_beginning(p->args),
		.args_blob = args_blob,
		.args_bytes = (int64_t)p->args.n,
		.args_json = p->args_json,
		.destructive = t && t->destructive,
		.again = p->plan == RUN_AGAIN,
		.now_us = uar_clock_wall(rt_sched(rt_engine(p->loop->o.run))->clock),
		.action = call->action,
		.permission = uar_buf_str(&p->permission),
		.changed_by = call->changed_by,
		.changed_blob = call->changed_blob,
		.sandbox = uar_buf_str(&p->bound.plan.sandbox),
		.process = uar_buf_str(&p->bound.plan.process),
		.process_id = uar_str_c(p->bound.process_id),
	};
	if (t && t->input_schema.n) {
		uar_sha256_hex(uar_toolbox_schema(p->loop->set.box, t), schema);
		c.begin.schema = uar_str_c(schema);
	}
	if (p->plan == REFUSE)
		put_refusal(p, &c.begin, told);
	if (!rt_send_asked(p->loop->o.run, &c, begun, NULL))
		rt_lose(p->loop->o.run, UAR_ENOMEM);
}

static void form_stored(void *ctx, uar_err e, uar_str sha256)
{
	struct place *p = ctx;

	p->aside = NULL;
	if (e)
		rt_send_fail(p->loop->o.run, e, "execution", uar_err_text(e));
	else
		rt_place_send_form(p, sha256, UAR_STR_NONE);
}

static uar_err begin_form(struct place *p)
{
	if (p->title.err == UAR_ETOOBIG)
		p->title.err = UAR_OK; /* what there is of it is shown */
	if (p->form.err || p->title.err)
		return p->form.err ? p->form.err : p->title.err;
	if (p->form.n > UAR_LIMIT_ASK_SCHEMA)
		return rt_aside_begin(rt_of(p->loop), uar_buf_str(&p->form), form_stored, p,
				      &p->aside);
	rt_place_send_form(p, UAR_STR_NONE, UAR_STR_NONE);
	return UAR_OK;
}

static void begin(struct place *p, uar_str args_blob)
{
	switch (p->plan) {
	case ASK:
	case ASK_AGAIN: rt_place_send_ask(p, args_blob); break;
	case ASK_FORM: break; /* begin_form */
	case GIVE_UP:
		rt_place_send_failed(p, p->category, uar_str_c(uar_error_text(&p->why)), false);
		break;
	case RUN:
	case RUN_AGAIN:
	case REFUSE: send_begin(p, args_blob); break;
	}
}

static void args_stored(void *ctx, uar_err e, uar_str sha256)
{
	struct place *p = ctx;

	p->aside = NULL;
	if (e)
		rt_send_fail(p->loop->o.run, e, "execution", uar_err_text(e));
	else
		begin(p, sha256);
}

static void begin_place(struct place *p)
{
	bool told_before = p->plan == RUN_AGAIN || p->plan == GIVE_UP;
	bool asks = p->plan == ASK || p->plan == ASK_AGAIN;
	uar_err e = UAR_OK;

	if (p->plan == ASK_FORM)
		e = begin_form(p);
	else if (told_before || (asks ? p->args_json : p->args.n <= UAR_LIMIT_TOOL_INLINE))
		begin(p, UAR_STR_NONE);
	else
		e = rt_aside_begin(rt_of(p->loop), p->args, args_stored, p, &p->aside);
	if (e)
		rt_send_fail(p->loop->o.run, e, "execution", uar_err_text(e));
}

/* --- the round ------------------------------------------------------------------------------ */

static struct place *free_place(struct tool_loop *l)
{
	size_t n = rt_toolset_at_once(&l->set);

	for (size_t i = 0; i < n; i++)
		if (!l->places[i].call)
			return &l->places[i];
	return NULL;
}

/* False: it has to wait. */
static bool take(struct tool_loop *l, struct round_call *c)
{
	struct place *p = l->alone || l->hooking ? NULL : free_place(l);
	uar_err e;

	if (!p || (!c->started && !rt_tool_loop_broke(l) &&
		   rt_tool_loop_hooks(l, c, UAR_HOOK_PRE_TOOL_USE)))
		return false;
	p->call = c;
	rt_place_plan(p);
	if (p->plan == ASK && rt_tool_loop_hooks(l, c, UAR_HOOK_PERMISSION_REQUEST)) {
		rt_place_clear(p);
		return false;
	}
	if (p->plan == ASK_FORM && p->tool->by == UAR_TOOL_BY_CLIENT) {
		c->for_client = true;
		l->for_client++;
		rt_place_clear(p);
		return true;
	}
	if (l->busy && !rt_place_is_sociable(p)) {
		rt_place_clear(p);
		return false;
	}
	l->busy++;
	l->alone = !rt_place_is_sociable(p);
	e = rt_place_read_args(p);
	if (e)
		rt_send_fail(l->o.run, e, "execution", uar_err_text(e));
	else
		begin_place(p);
	return true;
}

/* The client is not asked for calls whose sibling has failed meanwhile. */
static bool take_back(struct tool_loop *l)
{
	bool broke = l->for_client && rt_tool_loop_broke(l);

	for (size_t i = 0; broke && i < l->round->call_count; i++)
		l->round->calls[i].for_client = false;
	if (broke)
		l->for_client = l->next = 0;
	return broke;
}

/* In their order. False: one has to wait. */
static bool begin_calls(struct tool_loop *l)
{
	while (l->next < l->round->call_count && !l->asked && !l->leaving) {
		struct round_call *c = &l->round->calls[l->next];

		if (!c->ended && !take(l, c))
			return false;
		l->next++;
	}
	return true;
}

void rt_tool_loop_advance(struct tool_loop *l)
{
	if (!l->leaving && rt_tool_loop_hooks_after(l))
		return;
	if (!begin_calls(l) || l->busy || (l->asked && !l->leaving))
		return;
	if (!l->leaving && take_back(l))
		rt_tool_loop_advance(l);
	else if (!l->leaving && l->for_client)
		rt_tool_hand_over(l);
	else
		uar_post(rt_sched(rt_of(l)), &l->finished);
}

static void finished(struct uar_task *t)
{
	struct tool_loop *l = UAR_OWNER(t, struct tool_loop, finished);

	l->o.done(l->o.ctx);
}

/* Without the rules of the session no call is made. */
static void grants_ready(void *ctx, uar_err e, struct grants *g)
{
	struct tool_loop *l = ctx;

	l->grants_load = NULL;
	l->grants = g;
	if (e)
		rt_send_fail(l->o.run, e, "dependency", "the permissions cannot be read");
	else
		rt_tool_loop_advance(l);
}

/* Has a call to be allowed, and was not yet? */
static bool needs_grants(const struct tool_loop *l)
{
	if (rt_permission_is_governed(l->o.run))
		return true;
	for (size_t i = 0; i < l->round->call_count; i++) {
		const struct round_call *c = &l->round->calls[i];
		const struct uar_tool *t =
			c->ended || c->started || c->allowed || c->denied
				? NULL
				: uar_tools_by_model_name(l->set.registry, l->set.owner, c->name);

		if (t && rt_toolset_asks(&l->set, t))
			return true;
	}
	return false;
}

uar_err rt_tool_loop_begin(const struct tool_loop_options *o, struct tool_loop **out)
{
	struct tool_loop *l = uar_zalloc(sizeof *l);
	struct grants_ask whose;
	uar_err e;

	if (!l)
		return UAR_ENOMEM;
	l->o = *o;
	l->set = rt_toolset_of(o->run);
	l->round = &o->rounds->at[o->rounds->count - 1];
	l->finished.fn = finished;
	for (size_t i = 0; i < PLACES; i++)
		l->places[i].loop = l;
	whose = rt_grants_of(o->run);
	whose.policies_alone = !needs_grants(l);
	e = rt_grants_load(&whose, grants_ready, l, &l->grants_load);
	if (e)
		uar_free(l);
	else
		*out = l;
	return e;
}

/* Is it open in the log, and has this life of it not begun? */
static bool is_announced(const struct place *p)
{
	const struct uar_run_tools *tools = &uar_run_rare(rt_state(p->loop->o.run))->tools;

	return p->plan == RUN && uar_tool_open(tools, p->call->id);
}

/* True: its end has to be waited for. */
static bool leave_place(struct place *p)
{
	struct uar_tools *registry = p->loop->set.registry;

	if (p->ending)
		return true;
	rt_sample_drop(p, true);
	rt_aside_cancel(p->aside);
	p->aside = NULL;
	if (p->at_work && p->tool->effect == UAR_TOOL_READ_ONLY)
		registry->ops->cancel(registry, p->at_work);
	else if (p->at_work && !registry->ops->withdraw(registry, p->at_work))
		return true;
	else if (is_announced(p)) {
		p->at_work = NULL;
		rt_place_send_failed(p, UAR_STR("cancelled"),
				     UAR_STR("cancelled before it changed anything"), false);
		return true;
	}
	rt_place_free(p);
	return false;
}

bool rt_tool_loop_leave(struct tool_loop *l)
{
	bool waits = false;

	l->leaving = true;
	rt_grants_cancel(l->grants_load);
	l->grants_load = NULL;
	uar_unpost(rt_sched(rt_of(l)), &l->finished);
	for (size_t i = 0; i < PLACES; i++)
		if (l->places[i].call && leave_place(&l->places[i]))
			waits = true;
	return waits;
}

void rt_tool_loop_stop(struct tool_loop *l)
{
	if (!l)
		return;
	rt_grants_cancel(l->grants_load);
	rt_grants_free(l->grants);
	uar_unpost(rt_sched(rt_of(l)), &l->finished);
	for (size_t i = 0; i < PLACES; i++) {
		struct place *p = &l->places[i];

		rt_aside_cancel(p->aside);
		rt_sample_drop(p, false);
		if (p->at_work)
			l->set.registry->ops->cancel(l->set.registry, p->at_work);
		rt_place_clear(p);
	}
	uar_free(l);
}
