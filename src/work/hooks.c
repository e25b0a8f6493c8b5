/* hooks.c - calls the hooks of a point, one after the other. */
#include "work/hooks_int.h"

#include "core/limits.h"
#include "core/redact.h"
#include "engine/limits.h"
#include "event/sizes.h"
#include "json/limits.h"
#include "tool/toolbox.h"
#include "work/definitions.h"
#include "work/limits.h"
#include "work/tool_form.h"

static struct uar_hooks *setting(const struct live_run *r)
{
	return rt_work(r)->o.hooks;
}

/* The hooks that the definition of the run asks for; NULL: none. */
static const struct uar_json *names_of(const struct live_run *r)
{
	const struct uar_definition *d = rt_definition(r);

	return d ? uar_json_pointer(d->json, UAR_STR("/policy/hooks")) : NULL;
}

static bool is_named(const struct live_run *r, uar_str id)
{
	for (const struct uar_json *n = uar_json_first(names_of(r)); n; n = n->next)
		if (uar_str_eq(uar_json_str(n, UAR_STR("")), id))
			return true;
	return false;
}

static bool is_for(const struct uar_hook *k, const struct live_run *r)
{
	return (!k->agents.n || uar_pattern_fits(k->agents, rt_state(r)->what.agent_id)) &&
	       (!k->optional || is_named(r, k->id));
}

uar_err rt_hooks_check(const struct live_run *r, struct uar_error *error)
{
	for (const struct uar_json *n = uar_json_first(names_of(r)); n; n = n->next) {
		const struct uar_hook *k = NULL;
		uar_str id = uar_json_str(n, UAR_STR(""));
		size_t i = 0;

		while ((k = uar_hooks_at(setting(r), i)) && !uar_str_eq(k->id, id))
			i++;
		if (!k || !is_for(k, r))
			return uar_error_set(error, UAR_EFORBIDDEN,
					     "the definition wants the hook \"%.*s\", which the "
					     "setting hooks does not have for this agent",
					     UAR_FMT(uar_str_utf8_prefix(id, 64)));
	}
	return UAR_OK;
}

bool rt_hooks_wanted(const struct live_run *r)
{
	const struct uar_hook *k;

	for (size_t i = 0; (k = uar_hooks_at(setting(r), i)); i++)
		if (is_for(k, r))
			return true;
	return false;
}

void rt_hooks_close(struct hooks *h)
{
	if (!h)
		return;
	rt_hooks_load_cancel(h->load);
	uar_hook_cancel(h->now.call);
	rt_aside_cancel(h->now.aside);
	uar_arena_fini(&h->now.arena);
	uar_arena_fini(&h->arena);
	uar_free(h);
}

bool rt_hooks_is_first_run(const struct hooks *h)
{
	return h->first_run;
}

/* --- which are called ----------------------------------------------------------------------- */

static bool concerns(const struct hooks *h, const struct uar_hook *k, const struct hook_ask *a)
{
	if (!(k->points & 1u << a->point) || !is_for(k, h->run))
		return false;
	return !k->tools || !a->tool || uar_tool_is_named(a->tool, k->tools);
}

static const struct hook_fact *answered(const struct hooks *h, uar_str id, const struct hook_ask *a)
{
	UAR_LIST_EACH (it, &h->facts) {
		const struct hook_fact *f = UAR_OWNER(it, struct hook_fact, node);

		if (f->point == a->point && uar_str_eq(f->id, id) &&
		    uar_str_eq(f->subject, a->subject))
			return f;
	}
	return NULL;
}

static const struct uar_hook *next_hook(const struct hooks *h, const struct hook_ask *a, size_t *at)
{
	const struct uar_hook *k;

	for (; (k = uar_hooks_at(setting(h->run), *at)); ++*at)
		if (concerns(h, k, a) && !answered(h, k->id, a))
			return k;
	return NULL;
}

bool rt_hooks_pending(const struct hooks *h, const struct hook_ask *a)
{
	size_t at = 0;

	return h && next_hook(h, a, &at) != NULL;
}

/* --- what they are told --------------------------------------------------------------------- */

/* Without secrets, and not longer than a reader wants to be told. */
static uar_err show_args(const struct hook_ask *a, struct uar_buf *out)
{
	uar_err e = rt_form_hides(a->tool ? a->tool->input_schema : UAR_STR_NONE, a->args, out);

	if (e == UAR_ESKIP) {
		uar_buf_clear(out);
		uar_buf_add_str(out, a->args);
		e = out->err;
	}
	return e;
}

static void put_args(struct uar_jw *w, const struct hook_ask *a, struct uar_arena *arena)
{
	struct uar_buf shown = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	const struct uar_json *j = NULL;

	if (!show_args(a, &shown) && shown.n <= UAR_LIMIT_HOOK_ARGUMENTS &&
	    !uar_json_parse(uar_buf_str(&shown), NULL, arena, &j, NULL))
		uar_jw_tree(w, "arguments", j);
	else
		uar_jw_null(w, "arguments");
	uar_jw_int(w, "arguments_bytes", (int64_t)a->args.n);
	uar_buf_fini(&shown);
}

static void put_call(struct uar_jw *w, const struct uar_hook *k, const struct hook_ask *a,
		     struct uar_arena *arena)
{
	bool over = a->point == UAR_HOOK_POST_TOOL_USE || a->point == UAR_HOOK_POST_TOOL_FAILURE;

	uar_jw_obj(w, "tool");
	uar_jw_str(w, "tool_call_id", a->subject);
	uar_jw_str(w, "tool_id", a->tool ? a->tool->tool_id : a->tool_name);
	uar_jw_str(w, "name", a->tool ? a->tool->name : a->tool_name);
	uar_jw_bool(w, "is_read_only", a->tool && a->tool->effect == UAR_TOOL_READ_ONLY);
	uar_jw_bool(w, "is_destructive", a->tool && a->tool->destructive);
	put_args(w, a, arena);
	uar_jw_close(w);
	if (!over)
		return;
	uar_jw_obj(w, "result");
	uar_jw_bool(w, "ok", a->ok);
	uar_jw_int(w, "bytes", a->output_bytes);
	if (k->wants_output)
		uar_jw_str(w, "output", uar_str_utf8_prefix(a->output, UAR_LIMIT_HOOK_ARGUMENTS));
	uar_jw_close(w);
}

static uar_err write_input(struct hooks *h, const struct uar_hook *k, struct uar_buf *out)
{
	const struct hook_ask *a = &h->now.ask;
	const struct uar_run *run = rt_state(h->run);
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "hook_id", k->id);
	uar_jw_cstr(&w, "hook_point", uar_hook_point_name(a->point));
	uar_jw_cstr(&w, "run_id", rt_run_id(h->run));
	uar_jw_str(&w, "session_id", rt_agg_session(rt_agg(h->run))->session_id);
	uar_jw_cstr(&w, "thread_id", rt_thread_id(h->run));
	uar_jw_str(&w, "turn_id", run->id.turn_id);
	uar_jw_str(&w, "agent_id", run->what.agent_id);
	if (a->point == UAR_HOOK_USER_PROMPT_SUBMIT) {
		uar_jw_obj(&w, "prompt");
		uar_jw_str(&w, "text", uar_run_message_preview(run));
		uar_jw_int(&w, "bytes", run->what.message_bytes);
		uar_jw_close(&w);
	}
	if (a->tool_name.n)
		put_call(&w, k, a, &h->now.arena);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

/* --- the walk ------------------------------------------------------------------------------- */

static void call_next(struct hooks *h);

static struct hooks *hooks_of(const struct rt_sent *s)
{
	struct hooks *h = s->err || !s->run ? NULL : rt_llm_hooks(s->run);

	return h && h->now.busy ? h : NULL;
}

static void give_up(struct hooks *h, uar_err e)
{
	rt_send_fail(h->run, e, "execution", "a hook cannot be called");
}

static struct uar_note begin_note(const struct hooks *h, enum uar_note_kind kind)
{
	const struct hook_ask *a = &h->now.ask;
	const struct uar_hook *k = uar_hooks_at(setting(h->run), h->now.at);
	bool sampling = a->point == UAR_HOOK_POST_SAMPLING;
	int64_t now = uar_clock_mono(rt_sched(rt_engine(h->run))->clock);
	struct uar_note n = { .kind = kind, .code = uar_str_c(uar_hook_point_name(a->point)) };

	n.hook.id = k->id;
	n.hook.own = true;
	n.hook.read_only = k->read_only;
	n.hook.fail_open = k->fail_open;
	n.hook.handler = k->handler;
	n.hook.timeout_ms = k->timeout_us / 1000;
	n.hook.call_id = sampling ? UAR_STR_NONE : a->subject;
	n.hook.model_request = sampling ? a->subject : UAR_STR_NONE;
	n.hook.duration_ms = (now - h->now.started_us) / 1000;
	return n;
}

static void send_note(struct hooks *h, const struct uar_note *n, rt_sent_fn *done)
{
	struct uar_command c = { .kind = UAR_CMD_NOTE, .note = *n };

	if (!rt_send_asked(h->run, &c, done, NULL))
		rt_lose(h->run, UAR_ENOMEM);
}

/* Its answer is durable: now it acts. */
static void noted(const struct rt_sent *s)
{
	struct hooks *h = hooks_of(s);

	if (!h)
		return;
	uar_list_add_last(&h->facts, &h->now.fact->node);
	h->now.fact = NULL;
	h->now.at++;
	call_next(h);
}

static struct hook_fact *make_fact(struct hooks *h)
{
	const struct hook_ask *a = &h->now.ask;
	const struct uar_hook *k = uar_hooks_at(setting(h->run), h->now.at);

	return rt_hooks_new_fact(h, a->point, k->id, a->subject);
}

static void fail(struct hooks *h, const char *why)
{
	const struct uar_hook *k = uar_hooks_at(setting(h->run), h->now.at);
	struct uar_note n = begin_note(h, UAR_NOTE_HOOK_FAILED);

	h->now.fact = make_fact(h);
	if (!h->now.fact) {
		rt_lose(h->run, UAR_ENOMEM);
		return;
	}
	h->now.fact->outcome = k->fail_open ? UAR_HOOK_CONTINUE : UAR_HOOK_BLOCK;
	h->now.fact->reason = UAR_STR("the hook failed");
	n.text = uar_str_c(why);
	send_note(h, &n, noted);
}

static void put_ref(struct uar_jw *w, const char *key, const char *sha256, bool list)
{
	char ref[80];

	if (!sha256[0])
		return;
	snprintf(ref, sizeof ref, "blob://%s", sha256);
	if (list)
		uar_jw_arr(w, key);
	uar_jw_cstr(w, list ? NULL : key, ref);
	if (list)
		uar_jw_close(w);
}

static void send_end(struct hooks *h)
{
	struct uar_note n = begin_note(h, UAR_NOTE_HOOK_ENDED);
	const struct hook_fact *f = h->now.fact;
	struct uar_buf refs = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	struct uar_jw w = uar_jw_begin(&refs);
	bool any = false;

	uar_jw_obj(&w, NULL);
	put_ref(&w, "updated_input_ref", f->blob[HOOK_INPUT], false);
	put_ref(&w, "updated_tool_output_ref", f->blob[HOOK_OUTPUT], false);
	put_ref(&w, "additional_context_refs", f->blob[HOOK_CONTEXT], true);
	put_ref(&w, "audit_refs", f->blob[HOOK_AUDIT], true);
	uar_jw_close(&w);
	refs.err = uar_jw_end(&w);
	for (int i = 0; i < HOOK_BLOBS; i++)
		any |= f->blob[i][0] != 0;
	n.text = h->now.answer.reason;
	n.hook.outcome = uar_str_c(uar_hook_outcome_name(f->outcome));
	n.hook.suppress = f->suppress;
	n.hook.changed = h->now.changed;
	n.hook.refs = any ? uar_buf_str(&refs) : UAR_STR_NONE;
	if (refs.err)
		give_up(h, refs.err);
	else
		send_note(h, &n, noted);
	uar_buf_fini(&refs);
}

/* --- what it wrote is kept first ------------------------------------------------------------ */

static void keep_next(struct hooks *h);

static void kept(void *ctx, uar_err e, uar_str sha256)
{
	struct hooks *h = ctx;

	h->now.aside = NULL;
	if (e) {
		give_up(h, e);
		return;
	}
	snprintf(h->now.fact->blob[h->now.part], 65, "%.*s", UAR_FMT(sha256));
	h->now.part++;
	keep_next(h);
}

static void keep_next(struct hooks *h)
{
	uar_err e;

	while (h->now.part < HOOK_BLOBS && !h->now.fact->text[h->now.part].n)
		h->now.part++;
	if (h->now.part == HOOK_BLOBS) {
		send_end(h);
		return;
	}
	e = rt_aside_begin(rt_engine(h->run), h->now.fact->text[h->now.part], kept, h,
			   &h->now.aside);
	if (e)
		give_up(h, e);
}

static uar_err keep_json(struct hooks *h, const struct uar_json *j, uar_str *out)
{
	struct uar_buf text = uar_buf_make(2 * (size_t)UAR_LIMIT_HOOK_ANSWER);
	uar_err e;

	if (j)
		uar_json_write(&text, j);
	e = text.err;
	if (!e && text.n) {
		*out = uar_arena_str(&h->arena, uar_buf_str(&text));
		e = out->p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(&text);
	return e;
}

/* The names of members that are other ones than it was shown. */
static uar_err list_changed(struct hooks *h, const struct uar_json *input)
{
	struct uar_buf shown = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	struct uar_buf list = uar_buf_make(UAR_LIMIT_PREVIEW_BYTES);
	struct uar_jw w = uar_jw_begin(&list);
	const struct uar_json *was = NULL;
	uar_err e = show_args(&h->now.ask, &shown);

	if (e || uar_json_parse(uar_buf_str(&shown), NULL, &h->now.arena, &was, NULL))
		was = NULL;
	uar_jw_arr(&w, NULL);
	for (const struct uar_json *m = uar_json_first(input); m; m = m->next) {
		const struct uar_json *o = uar_json_get(was, m->key);

		if ((!o || !uar_json_equal(o, m)) &&
		    list.n + m->key.n < UAR_LIMIT_PREVIEW_BYTES / 2)
			uar_jw_str(&w, NULL, m->key);
	}
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	if (!e) {
		h->now.changed = uar_arena_str(&h->now.arena, uar_buf_str(&list));
		e = h->now.changed.p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(&shown);
	uar_buf_fini(&list);
	return e;
}

/* Only where it means something. */
static const char *misplaced(const struct hook_ask *a, const struct uar_hook_answer *o)
{
	bool changes = a->point == UAR_HOOK_PRE_TOOL_USE || a->point == UAR_HOOK_USER_PROMPT_SUBMIT;

	if (o->input && !changes)
		return "it changes the input at a point that has none";
	if (o->input && a->point == UAR_HOOK_PRE_TOOL_USE && o->input->kind != UAR_JSON_OBJECT)
		return "updated_input is no object";
	if (o->input && a->point == UAR_HOOK_USER_PROMPT_SUBMIT &&
	    o->input->kind != UAR_JSON_STRING)
		return "updated_input is no text";
	if ((o->output || o->suppress) && a->point != UAR_HOOK_POST_TOOL_USE &&
	    a->point != UAR_HOOK_POST_TOOL_FAILURE)
		return "it changes the output at a point that has none";
	return NULL;
}

static void take_answer(struct hooks *h)
{
	const struct uar_hook_answer *a = &h->now.answer;
	const char *wrong = misplaced(&h->now.ask, a);
	struct hook_fact *f;
	uar_err e;

	if (wrong) {
		fail(h, wrong);
		return;
	}
	f = h->now.fact = make_fact(h);
	if (!f) {
		rt_lose(h->run, UAR_ENOMEM);
		return;
	}
	f->outcome = a->outcome;
	f->suppress = a->suppress;
	f->reason = a->reason.n ? uar_arena_str(&h->arena, a->reason) : UAR_STR("");
	e = keep_json(h, a->input, &f->text[HOOK_INPUT]);
	if (!e)
		e = keep_json(h, a->output, &f->text[HOOK_OUTPUT]);
	if (!e && a->input && h->now.ask.tool_name.n)
		e = list_changed(h, a->input);
	if (a->context.n)
		f->text[HOOK_CONTEXT] = uar_arena_str(&h->arena, a->context);
	if (a->audit.n)
		f->text[HOOK_AUDIT] = uar_arena_str(&h->arena, a->audit);
	h->now.part = HOOK_INPUT;
	if (e)
		give_up(h, e);
	else
		keep_next(h);
}

static void on_answer(void *ctx, uar_err e, uar_str answer, const char *why)
{
	struct hooks *h = ctx;
	struct uar_error error = { 0 };
	char text[200];
	uar_str own = e ? UAR_STR("") : uar_arena_str(&h->now.arena, answer);

	h->now.call = NULL;
	if (!e)
		e = own.p ? uar_hook_answer_read(own, &h->now.arena, &h->now.answer, &error)
			  : UAR_ENOMEM;
	if (!e) {
		take_answer(h);
		return;
	}
	if (error.code || error.text[0]) {
		snprintf(text, sizeof text, "its answer is none: %.60s %.100s", error.where,
			 uar_error_text(&error));
		why = text;
	}
	fail(h, why && why[0] ? why : uar_err_text(e));
}

/* That it is called is durable. */
static void started(const struct rt_sent *s)
{
	struct hooks *h = hooks_of(s);
	struct uar_buf input;
	const struct uar_hook *k;
	uar_err e;

	if (!h)
		return;
	k = uar_hooks_at(setting(h->run), h->now.at);
	input = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	e = write_input(h, k, &input);
	if (!e)
		e = uar_hook_start(k, uar_buf_str(&input), on_answer, h, &h->now.call);
	uar_buf_fini(&input);
	if (e)
		fail(h, uar_err_text(e));
}

static void call_next(struct hooks *h)
{
	void (*done)(void *ctx) = h->now.done;
	struct uar_note n;

	uar_arena_reset(&h->now.arena);
	h->now.changed = UAR_STR_NONE;
	if (next_hook(h, &h->now.ask, &h->now.at)) {
		h->now.started_us = uar_clock_mono(rt_sched(rt_engine(h->run))->clock);
		n = begin_note(h, UAR_NOTE_HOOK_STARTED);
		send_note(h, &n, started);
		return;
	}
	h->now.busy = false;
	done(h->now.ctx);
}

uar_err rt_hooks_call(struct hooks *h, const struct hook_ask *a, void (*done)(void *ctx), void *ctx)
{
	if (h->now.busy)
		return UAR_EBUSY;
	h->now.ask = *a;
	h->now.at = 0;
	h->now.done = done;
	h->now.ctx = ctx;
	h->now.busy = true;
	call_next(h);
	return UAR_OK;
}

/* --- all together --------------------------------------------------------------------------- */

uar_err rt_hooks_result(const struct hooks *h, enum uar_hook_point point, uar_str subject,
			struct uar_arena *arena, struct hook_result *out)
{
	struct hook_result r = { .reason = UAR_STR("") };

	UAR_LIST_EACH (it, &h->facts) {
		const struct hook_fact *f = UAR_OWNER(it, struct hook_fact, node);

		if (f->point != point || !uar_str_eq(f->subject, subject))
			continue;
		if (f->outcome > r.outcome) {
			r.outcome = f->outcome;
			r.hook_id = f->id;
			r.reason = f->reason;
		}
		r.suppress |= f->suppress;
		if (f->text[HOOK_INPUT].n) {
			r.input = f->text[HOOK_INPUT];
			r.input_hook = f->id;
			r.input_blob = uar_str_c(f->blob[HOOK_INPUT]);
		}
		if (f->text[HOOK_OUTPUT].n)
			r.output = f->text[HOOK_OUTPUT];
		if (!f->text[HOOK_CONTEXT].n)
			continue;
		r.context = uar_arena_printf(arena, "%.*s[%.*s] %.*s\n", UAR_FMT(r.context),
					     UAR_FMT(f->id), UAR_FMT(f->text[HOOK_CONTEXT]));
		if (!r.context.p)
			return UAR_ENOMEM;
	}
	*out = r;
	return UAR_OK;
}
