/* llm_hooks.c - hooks around the message, the tools and the answer of a model. */
#include "work/llm_hooks.h"
#include "work/tool_loop_int.h"

struct llm_hooks {
	struct llm *w;
	struct hooks *hooks;
	void (*then)(struct llm *w);
	size_t call;		/* of the last round */
	struct uar_command end; /* of the answer, that waits; its strings are in the arena */
	struct uar_arena arena;
	bool held, stopping;
	char request[UAR_UUID_TEXT + 1];
};

struct hooks *rt_llm_hooks(const struct live_run *r)
{
	const struct llm *w = rt_llm_of(r);

	return w && w->hooks ? w->hooks->hooks : NULL;
}

void rt_llm_hooks_free(struct llm *w)
{
	struct llm_hooks *k = w->hooks;

	if (!k)
		return;
	rt_hooks_close(k->hooks);
	uar_arena_fini(&k->arena);
	uar_free(k);
	w->hooks = NULL;
}

static uar_err result_of(const struct llm_hooks *k, enum uar_hook_point point, uar_str subject,
			 struct uar_arena *arena, struct hook_result *out)
{
	return rt_hooks_result(k->hooks, point, subject, arena, out);
}

/* The run ends with what the hook said. True: it does. */
static bool blocks(struct llm_hooks *k, enum uar_hook_point point, uar_str subject)
{
	struct uar_command c = { .kind = UAR_CMD_FAIL };
	struct hook_result r = { .reason = UAR_STR("") };
	struct uar_arena arena;
	char text[UAR_TEXT_MESSAGE];
	uar_err e;

	uar_arena_init(&arena, 0);
	e = result_of(k, point, subject, &arena, &r);
	if (!e && uar_hook_says(r.outcome) == UAR_SAYS_DENY) {
		snprintf(text, sizeof text, "the hook %.*s stops the run at %s%s%.*s",
			 UAR_FMT(r.hook_id), uar_hook_point_name(point), r.reason.n ? ": " : "",
			 UAR_FMT(r.reason));
		c.fail = (struct uar_failure){ UAR_STR("HOOK_BLOCKED"), uar_str_c(text),
					       UAR_STR("hook_blocked"), false };
		rt_send(k->w->base.run, &c);
	} else if (e) {
		rt_llm_fail(k->w, e, uar_err_text(e));
	}
	uar_arena_fini(&arena);
	return e || c.fail.code.n;
}

static void call(struct llm_hooks *k, const struct hook_ask *a, void (*done)(void *ctx))
{
	uar_err e;

	if (!rt_hooks_pending(k->hooks, a)) {
		done(k);
		return;
	}
	e = rt_hooks_call(k->hooks, a, done, k);
	if (e)
		rt_llm_fail(k->w, e, uar_err_text(e));
}

/* --- the message ---------------------------------------------------------------------------- */

static void prompt_submitted(void *ctx)
{
	struct llm_hooks *k = ctx;

	if (!blocks(k, UAR_HOOK_USER_PROMPT_SUBMIT, UAR_STR("")))
		k->then(k->w);
}

static void session_started(void *ctx)
{
	const struct hook_ask next = { .point = UAR_HOOK_USER_PROMPT_SUBMIT };
	struct llm_hooks *k = ctx;

	if (!blocks(k, UAR_HOOK_SESSION_START, UAR_STR("")))
		call(k, &next, prompt_submitted);
}

static void opened(void *ctx, uar_err e)
{
	const struct hook_ask first = { .point = UAR_HOOK_SESSION_START };
	struct llm_hooks *k = ctx;

	if (e)
		rt_llm_fail(k->w, e, "what hooks have answered cannot be read");
	else if (rt_hooks_is_first_run(k->hooks))
		call(k, &first, session_started);
	else
		session_started(k);
}

uar_err rt_llm_hooks_begin(struct llm *w, void (*then)(struct llm *w))
{
	struct llm_hooks *k = rt_hooks_wanted(w->base.run) ? uar_zalloc(sizeof *k) : NULL;
	uar_err e;

	if (!k)
		return rt_hooks_wanted(w->base.run) ? UAR_ENOMEM : UAR_ESKIP;
	uar_arena_init(&k->arena, 0);
	k->w = w;
	k->then = then;
	e = rt_hooks_open(w->base.run, opened, k, &k->hooks);
	if (e)
		uar_free(k);
	else
		w->hooks = k;
	return e;
}

uar_err rt_llm_hooks_prompt(struct llm *w)
{
	static const enum uar_hook_point points[] = { UAR_HOOK_SESSION_START,
						      UAR_HOOK_USER_PROMPT_SUBMIT };
	const struct uar_json *j = NULL;
	struct uar_arena arena;
	uar_err e = UAR_OK;

	if (!w->hooks)
		return UAR_OK;
	uar_arena_init(&arena, 0);
	for (size_t i = 0; i < ARRAY_LEN(points) && !e; i++) {
		struct hook_result r;

		e = result_of(w->hooks, points[i], UAR_STR(""), &arena, &r);
		if (!e && r.input.n && !uar_json_parse(r.input, NULL, &arena, &j, NULL) &&
		    j->kind == UAR_JSON_STRING) {
			uar_buf_clear(&w->message);
			uar_buf_add_str(&w->message, j->text);
		}
		if (!e && r.context.n)
			uar_buf_printf(&w->message, "\n\n%.*s", UAR_FMT(r.context));
	}
	uar_arena_fini(&arena);
	return e ? e : w->message.err;
}

/* --- the tools ------------------------------------------------------------------------------ */

static struct hook_ask ask_after(const struct llm *w, const struct round_call *c)
{
	struct toolset set = rt_toolset_of(w->base.run);

	return (struct hook_ask){
		.point = c->failed ? UAR_HOOK_POST_TOOL_FAILURE : UAR_HOOK_POST_TOOL_USE,
		.subject = c->id,
		.tool = rt_toolset_named(&set, c->name),
		.tool_name = c->name,
		.args = c->args,
		.output = c->told,
		.output_bytes = c->told_bytes,
		.ok = !c->failed,
	};
}

static void after_next(void *ctx)
{
	struct llm_hooks *k = ctx;
	const struct rounds *s = k->w->rounds;
	const struct round *last = s->count ? &s->at[s->count - 1] : NULL;

	while (last && k->call < last->call_count) {
		const struct round_call *c = &last->calls[k->call];
		struct hook_ask a = ask_after(k->w, c);

		if (rt_hooks_pending(k->hooks, &a)) {
			uar_err e = rt_hooks_call(k->hooks, &a, after_next, k);

			if (e)
				rt_llm_fail(k->w, e, uar_err_text(e));
			return;
		}
		if (blocks(k, a.point, c->id))
			return;
		k->call++;
	}
	k->then(k->w);
}

static void call_told(void *ctx)
{
	struct tool_loop *l = ctx;

	l->hooking = false;
	if (!l->leaving)
		rt_tool_loop_advance(l);
}

/* They are called when their call is over, one after the other, and before a further call begins.
 */
bool rt_tool_loop_hooks_after(struct tool_loop *l)
{
	struct llm *w = rt_llm_of(l->o.run);

	if (!w || !w->hooks || l->hooking)
		return l->hooking;
	for (size_t i = 0; i < l->round->call_count; i++) {
		const struct round_call *c = &l->round->calls[i];
		struct hook_ask a = ask_after(w, c);

		if (!c->ended)
			continue;
		l->hooking = rt_hooks_pending(w->hooks->hooks, &a);
		if (l->hooking) {
			uar_err e = rt_hooks_call(w->hooks->hooks, &a, call_told, l);

			if (e)
				rt_llm_fail(w, e, uar_err_text(e));
		}
		if (l->hooking || blocks(w->hooks, a.point, c->id))
			return true;
	}
	return false;
}

/* Those that were not called so far, because the server stopped. */
bool rt_llm_hooks_after(struct llm *w, void (*then)(struct llm *w))
{
	if (!w->hooks)
		return false;
	w->hooks->then = then;
	w->hooks->call = 0;
	after_next(w->hooks);
	return true;
}

/* What was said to a call before it was made, and after. */
static uar_err tell_call(struct llm *w, struct round_call *c)
{
	static const enum uar_hook_point points[] = { UAR_HOOK_PRE_TOOL_USE,
						      UAR_HOOK_PERMISSION_REQUEST,
						      UAR_HOOK_POST_TOOL_USE,
						      UAR_HOOK_POST_TOOL_FAILURE };
	struct uar_arena *arena = &w->rounds->arena;

	for (size_t i = 0; i < ARRAY_LEN(points) && c->ended; i++) {
		struct hook_result r;
		uar_err e = result_of(w->hooks, points[i], c->id, arena, &r);

		if (e)
			return e;
		if (r.suppress) {
			c->told = UAR_STR("(a hook withholds the output)");
			c->media.count = 0;
		}
		if (r.output.n)
			c->told = uar_arena_str(arena, r.output);
		if (r.context.n)
			c->told = uar_arena_printf(arena, "%.*s\n%.*s", UAR_FMT(c->told),
						   UAR_FMT(r.context));
		if (!c->told.p)
			return UAR_ENOMEM;
	}
	return UAR_OK;
}

uar_err rt_llm_hooks_tell(struct llm *w)
{
	uar_err e = UAR_OK;

	for (size_t i = 0; w->hooks && w->rounds && i < w->rounds->count && !e; i++)
		for (size_t k = 0; k < w->rounds->at[i].call_count && !e; k++)
			e = tell_call(w, &w->rounds->at[i].calls[k]);
	return e;
}

/* --- the answer ----------------------------------------------------------------------------- */

static void send_held(struct llm_hooks *k)
{
	k->held = false;
	rt_send(k->w->base.run, &k->end);
	uar_arena_reset(&k->arena);
}

static void stopped(void *ctx)
{
	struct llm_hooks *k = ctx;

	if (!blocks(k, UAR_HOOK_STOP, UAR_STR("")))
		send_held(k);
}

static void sampled(void *ctx)
{
	const struct hook_ask stop = { .point = UAR_HOOK_STOP };
	struct llm_hooks *k = ctx;

	if (blocks(k, UAR_HOOK_POST_SAMPLING, uar_str_c(k->request)))
		return;
	if (k->stopping)
		call(k, &stop, stopped);
	else
		send_held(k);
}

bool rt_llm_hooks_hold(struct llm *w, const struct uar_command *end)
{
	struct llm_hooks *k = w->hooks;
	struct hook_ask a = { .point = UAR_HOOK_POST_SAMPLING };

	if (!k || k->held || w->role != UAR_ROLE_EXECUTE ||
	    (end->kind != UAR_CMD_MODEL_DONE && end->kind != UAR_CMD_MODEL_CALLS))
		return false;
	k->end = *end;
	k->held = true;
	k->stopping = end->kind == UAR_CMD_MODEL_DONE;
	snprintf(k->request, sizeof k->request, "%s", rt_state(w->base.run)->call.request_id);
	a.subject = uar_str_c(k->request);
	if (!uar_command_own(&k->end, &k->arena)) {
		rt_llm_fail(w, UAR_ENOMEM, uar_err_text(UAR_ENOMEM));
		return true;
	}
	call(k, &a, sampled);
	return true;
}
