/* entry_backend.c - backend.*: a run at an agent that is a program of its own.
 *
 * The request is recorded before the program starts. Everything it says goes
 * through the engine first; when commits are slower than it is, its events wait
 * outside of memory. What it wants to be allowed is a fact before anybody
 * decides, and the decision is a fact before the program hears it. */
#include "base/sha256.h"
#include "event/sizes.h"
#include "work/backend_permit.h"
#include "work/dir_look.h"
#include "work/backend_session.h"
#include "work/limits.h"

struct pending {
	struct backend_worker *w;
	struct uar_timer expiry;
	int64_t number; /* 0: free */
	char id[UAR_LIMIT_AGENT_ASK_ID];
};

struct backend_worker {
	struct worker base;
	struct input_load *input;
	struct session_find *find;
	struct uar_agent_call *call; /* NULL: not started, or over */
	struct uar_buf prompt;
	struct uar_arena arena; /* what the inputs say */
	uar_str working_dir, session_id;
	enum uar_agent_session session;
	struct pending asks[UAR_OPEN_ACTIONS];
	size_t open;
	int64_t asked;
	struct kept_input *kept; /* a question whose input is being put aside */
	bool held, over;
	bool can_resume, forgets;
};

/* What a run may be told besides its message. */
struct wishes {
	uar_str working_dir, session, session_id;
};

static const struct uar_json_field wish_fields[] = {
	{ "working_dir", UAR_FIELD_STR, false, offsetof(struct wishes, working_dir) },
	{ "session", UAR_FIELD_STR, false, offsetof(struct wishes, session) },
	{ "session_id", UAR_FIELD_STR, false, offsetof(struct wishes, session_id) },
};

static uar_err read_wishes(uar_str inputs, struct uar_arena *arena, struct wishes *out,
			   struct uar_error *error)
{
	const struct uar_json *j;
	uar_err e;

	if (!inputs.n)
		return UAR_OK;
	e = uar_json_parse(inputs, NULL, arena, &j, error);
	if (!e)
		e = uar_json_read(j, wish_fields, ARRAY_LEN(wish_fields), true, out, error);
	return e;
}

static uar_err wrong(struct uar_error *error, const char *member, const char *why)
{
	uar_error_where(error, "/inputs/%s", member);
	return uar_error_set(error, UAR_EINVALID, "inputs.%s: %s", member, why);
}

static uar_err check_dir(const struct uar_agent_info *info, uar_str dir, struct uar_error *error)
{
	if (!dir.n)
		return info->needs_working_dir ? wrong(error, "working_dir",
						       "this agent has none of its own: name one")
					       : UAR_OK;
	if (!info->takes_working_dir)
		return wrong(error, "working_dir", "this agent has its own and takes no other");
	if (dir.p[0] != '/')
		return wrong(error, "working_dir", "an absolute path is wanted");
	return UAR_OK;
}

static uar_err check_session(const struct uar_agent_info *info, const struct wishes *w,
			     struct uar_error *error)
{
	bool resume = uar_str_is(w->session, "resume"), fork = uar_str_is(w->session, "fork");

	if (w->session.n && !resume && !fork && !uar_str_is(w->session, "new") &&
	    !uar_str_is(w->session, "auto"))
		return wrong(error, "session", "one of auto, new, resume, fork");
	if ((resume && !info->can_resume) || (fork && !info->can_fork))
		return wrong(error, "session", "this agent cannot do that");
	if (w->session_id.n && !resume && !fork)
		return wrong(error, "session_id", "goes with session resume or fork");
	return UAR_OK;
}

uar_err rt_backend_check(const struct uar_agent *agent, uar_str inputs, struct uar_error *error)
{
	struct wishes w = { UAR_STR_NONE, UAR_STR_NONE, UAR_STR_NONE };
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = read_wishes(inputs, &arena, &w, error);
	if (!e)
		e = check_dir(agent->info, w.working_dir, error);
	if (!e)
		e = check_session(agent->info, &w, error);
	uar_arena_fini(&arena);
	return e;
}

/* --- a directory that is not there is refused, not tried --------------------------- */

uar_err rt_backend_look(const struct uar_agents *host, uar_str inputs, struct dir_look **out)
{
	struct wishes w = { UAR_STR_NONE, UAR_STR_NONE, UAR_STR_NONE };
	struct uar_arena arena;
	uar_err e;

	*out = NULL;
	uar_arena_init(&arena, 0);
	e = read_wishes(inputs, &arena, &w, NULL);
	if (!e && w.working_dir.n && host->ops->check_dir) {
		*out = rt_dir_look_make(host, w.working_dir);
		e = *out ? UAR_OK : UAR_ENOMEM;
	}
	uar_arena_fini(&arena);
	return e;
}

uar_err rt_backend_looked(const struct dir_look *job, struct uar_error *error)
{
	return job->err ? wrong(error, "working_dir", uar_error_text(&job->error)) : UAR_OK;
}

/* --- what goes through the engine -------------------------------------------------- */

static struct uar_agents *host_of(const struct backend_worker *w)
{
	return rt_work(w->base.run)->o.agents;
}

static struct uar_sched *sched_of(const struct backend_worker *w)
{
	return rt_sched(rt_engine(w->base.run));
}

static void fail(struct backend_worker *w, uar_err e, const char *why)
{
	rt_send_fail(w->base.run, e, "execution", why);
}

/* It is heard when there is room for what it says, and for what it asks. */
static void set_held(struct backend_worker *w)
{
	bool hold = w->open == UAR_OPEN_ACTIONS || w->kept || !rt_has_room(rt_agg(w->base.run));

	if (!w->call || hold == w->held)
		return;
	w->held = hold;
	host_of(w)->ops->pause(w->call, hold);
}

static void send(struct backend_worker *w, const struct uar_command *c)
{
	rt_send(w->base.run, c);
	set_held(w);
}

static void on_text(void *ctx, uar_str delta)
{
	struct backend_worker *w = ctx;

	rt_send_text(w->base.run, UAR_CMD_TEXT, delta);
	set_held(w);
}

static void on_tool(void *ctx, const struct uar_tool_report *t)
{
	struct uar_command c = { .kind = UAR_CMD_TOOL };

	c.tool = *t;
	send(ctx, &c);
}

static void on_note(void *ctx, const struct uar_note *n)
{
	struct uar_command c = { .kind = UAR_CMD_NOTE };

	c.note = *n;
	send(ctx, &c);
}

static void warn(struct backend_worker *w, const char *code, const char *text)
{
	struct uar_note n = { .kind = UAR_NOTE_WARNING,
			      .code = uar_str_c(code),
			      .text = uar_str_c(text) };

	on_note(w, &n);
}

static void on_session(void *ctx, uar_str session_id)
{
	struct backend_worker *w = ctx;
	struct uar_command c = { .kind = UAR_CMD_SESSION };

	c.text = session_id;
	if (session_id.n < UAR_TEXT_SESSION)
		send(w, &c);
	else
		warn(w, "SESSION_NOT_KEPT",
		     "the agent's session id is too long: its conversation cannot be continued");
}

/* --- approvals ------------------------------------------------------------------------ */

static const struct worker_ops backend_ops;

static struct backend_worker *worker_of(const struct live_run *r)
{
	struct worker *w = r ? rt_worker(r) : NULL;

	return w && w->ops == &backend_ops ? (struct backend_worker *)w : NULL;
}

static void tell(struct backend_worker *w, uar_str ask_id, enum uar_verdict verdict)
{
	if (w->call && host_of(w)->ops->respond(w->call, ask_id, verdict))
		warn(w, "ANSWER_TOO_LATE", "the agent does not wait for that answer any more");
}

/* The policy's decision is durable. */
static void evaluated(const struct rt_sent *s)
{
	struct backend_worker *w = worker_of(s->run);

	if (w && !s->err)
		tell(w, s->command->ask.id, s->command->ask.verdict);
}

static struct pending *find_pending(struct backend_worker *w, int64_t number)
{
	for (size_t i = 0; i < ARRAY_LEN(w->asks); i++)
		if (w->asks[i].number == number)
			return &w->asks[i];
	return NULL;
}

static void backend_answer(struct worker *base, const struct uar_answer *answer)
{
	struct backend_worker *w = (struct backend_worker *)base;
	struct pending *p = find_pending(w, answer->number);

	if (!p)
		return;
	uar_timer_stop(sched_of(w), &p->expiry);
	p->number = 0;
	w->open--;
	tell(w, uar_str_c(p->id), answer->verdict);
	set_held(w);
}

static void expired_recorded(const struct rt_sent *s)
{
	struct backend_worker *w = worker_of(s->run);

	if (w && !s->err)
		backend_answer(&w->base, &s->command->answer);
}

static void on_expiry(struct uar_timer *t)
{
	struct pending *p = UAR_OWNER(t, struct pending, expiry);
	struct live_run *r = p->w->base.run;
	struct uar_command c = { .kind = UAR_CMD_ANSWER };

	c.answer = (struct uar_answer){ .number = p->number,
					.verdict = UAR_VERDICT_DENY,
					.source = UAR_ANSWER_TIMEOUT,
					.reason = UAR_STR("nobody answered in time") };
	if (!rt_send_asked(r, &c, expired_recorded, NULL))
		(void)uar_timer_set(rt_sched(rt_engine(p->w->base.run)), t, UAR_RETRY_US);
}

static void ask_person(struct backend_worker *w, const struct uar_ask *a)
{
	struct uar_command c = { .kind = UAR_CMD_ASK };
	struct pending *p = find_pending(w, 0);

	if (!p || a->id.n >= sizeof p->id) { /* the host is held before there are too many */
		tell(w, a->id, UAR_VERDICT_DENY);
		warn(w, "NOT_ASKED", "an approval could not be asked for and was denied");
		return;
	}
	p->w = w;
	p->number = ++w->asked;
	snprintf(p->id, sizeof p->id, "%.*s", UAR_FMT(a->id));
	w->open++;
	p->expiry.fn = on_expiry;
	c.ask = *a;
	c.ask.number = p->number;
	send(w, &c);
	if (a->timeout_us && uar_timer_set(sched_of(w), &p->expiry, a->timeout_us))
		rt_lose(w->base.run, UAR_ENOMEM);
}

/* --- what is too long for an event ---------------------------------------------------- */

/* The question waits until its input is durable, and the program until it is asked. */
struct kept_input {
	struct rt_op under_way;
	struct uar_blob_put put;
	struct backend_worker *w; /* NULL: the run is gone */
	struct uar_arena arena;
	struct uar_ask ask;
};

static void free_kept(struct kept_input *k)
{
	uar_arena_fini(&k->arena);
	uar_free(k);
}

static void drop_kept(struct rt_op *under_way)
{
	free_kept(UAR_OWNER(under_way, struct kept_input, under_way));
}

static const char NOT_KEPT[] = "only the beginning of the question is kept";

static void input_stored(struct uar_blob_put *put)
{
	struct kept_input *k = UAR_OWNER(put, struct kept_input, put);
	struct backend_worker *w = k->w;

	if (w)
		w->kept = NULL;
	if (w && w->call) {
		if (put->err)
			warn(w, "INPUT_NOT_KEPT", NOT_KEPT);
		else
			k->ask.blob = uar_str_c(put->sha256);
		ask_person(w, &k->ask);
		set_held(w);
	}
	rt_op_end(&k->under_way);
	free_kept(k);
}

static bool copy_ask(struct kept_input *k, const struct uar_ask *a)
{
	uar_str *const all[] = { &k->ask.id,	 &k->ask.kind,	&k->ask.tool_name, &k->ask.call_id,
				 &k->ask.prompt, &k->ask.input, &k->ask.whole,	   &k->ask.rule };
	bool ok = true;

	k->ask = *a;
	for (size_t i = 0; i < ARRAY_LEN(all) && ok; i++) {
		*all[i] = uar_arena_str(&k->arena, *all[i]);
		ok = all[i]->p != NULL;
	}
	return ok;
}

static uar_err keep_input(struct backend_worker *w, const struct uar_ask *a)
{
	struct uar_runtime *rt = rt_engine(w->base.run);
	struct kept_input *k = uar_zalloc(sizeof *k);
	uar_err e;

	if (!k)
		return UAR_ENOMEM;
	uar_arena_init(&k->arena, 0);
	e = copy_ask(k, a) ? UAR_OK : UAR_ENOMEM;
	k->put = (struct uar_blob_put){ .bytes = k->ask.whole, .done = input_stored };
	if (!e)
		e = rt_store(rt)->ops->blob_put(rt_store(rt), &k->put);
	if (e) {
		free_kept(k);
		return e;
	}
	k->w = w;
	w->kept = k;
	rt_op_begin(rt, &k->under_way, drop_kept);
	set_held(w);
	return UAR_OK;
}

static void take_ask(struct backend_worker *w, const struct uar_ask *a)
{
	struct uar_command c = { .kind = UAR_CMD_ASK };

	if (a->verdict == UAR_VERDICT_ASK) {
		if (a->whole.n && !w->kept && !keep_input(w, a))
			return; /* asked when it is stored */
		if (a->whole.n)
			warn(w, "INPUT_NOT_KEPT", NOT_KEPT);
		ask_person(w, a);
		return;
	}
	c.ask = *a;
	if (!rt_send_asked(w->base.run, &c, evaluated, NULL))
		rt_lose(w->base.run, UAR_ENOMEM);
	set_held(w);
}

static void on_ask(void *ctx, const struct uar_ask *a)
{
	struct backend_worker *w = ctx;
	struct uar_buf text = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	struct uar_ask judged = *a;

	rt_backend_judge(w->base.run, &judged, &text);
	take_ask(w, &judged);
	uar_buf_fini(&text);
}

/* A program that asks nobody before it acts keeps to its own settings alone. */
static void warn_not_enforced(struct backend_worker *w)
{
	struct uar_agents *h = host_of(w);

	if (rt_backend_governed(w->base.run) && h->ops->size == sizeof *h->ops && h->ops->asks &&
	    !h->ops->asks(h, rt_state(w->base.run)->what.agent_id))
		warn(w, "POLICY_NOT_ENFORCED",
		     "not_enforced: the program does not ask before it acts, so rules of the host, "
		     "the mode and interactive do not bind it");
}

/* --- the end --------------------------------------------------------------------------- */

static void send_finished(struct backend_worker *w, const struct uar_agent_end *end)
{
	struct uar_command c = { .kind = UAR_CMD_MODEL_DONE };

	c.model = (struct uar_model_end){
		.stop_reason = UAR_STR("stop"),
		.input_tokens = end->input_tokens,
		.output_tokens = end->output_tokens,
		.total_tokens = -1,
		.has_cost = end->has_cost,
		.cost_usd = end->cost_usd,
	};
	rt_send(w->base.run, &c);
}

static void on_done(void *ctx, const struct uar_agent_end *end)
{
	struct backend_worker *w = ctx;
	struct uar_command c = { .kind = UAR_CMD_FAIL };
	struct uar_command stopped = { .kind = UAR_CMD_STOPPED };

	w->call = NULL;
	w->over = true;
	if (end->how == UAR_AGENT_FINISHED) {
		send_finished(w, end);
	} else if (end->how == UAR_AGENT_STOPPED) {
		rt_send(w->base.run, &stopped);
	} else {
		/* While it is being cancelled the table makes "cancelled" of any failure. */
		if (uar_str_starts(end->message, UAR_STR("termination failed")))
			on_note(w, &(struct uar_note){ .kind = UAR_NOTE_WARNING,
						       .code = UAR_STR("TERMINATION_FAILED"),
						       .text = end->message });
		c.fail = (struct uar_failure){ end->code, end->message, end->category,
					       end->retryable };
		rt_send(w->base.run, &c);
	}
}

/* --- the start -------------------------------------------------------------------------- */

static void prepared(struct backend_worker *w)
{
	struct uar_command c = { .kind = UAR_CMD_PREPARED };
	char sha256[UAR_SHA256_TEXT + 1];

	uar_sha256_hex(uar_buf_str(&w->prompt), sha256);
	c.prepared.message_count = 1;
	c.prepared.prompt_bytes = (int64_t)w->prompt.n;
	c.prepared.prompt_sha256 = uar_str_c(sha256);
	c.prepared.now_us = uar_clock_wall(rt_sched(rt_engine(w->base.run))->clock);
	rt_send(w->base.run, &c);
}

/* Nothing known: "auto" begins a new session, whoever named one is told. */
static void session_found(void *ctx, uar_err e, uar_str id)
{
	struct backend_worker *w = ctx;
	bool asked_for = w->session != UAR_SESSION_NEW;

	w->find = NULL;
	if (!e && id.n && !asked_for && !w->can_resume) {
		w->forgets = true; /* there is an earlier one that it cannot continue */
		id = UAR_STR_NONE;
	}
	if (!e && id.n) {
		w->session_id = uar_arena_str(&w->arena, id);
		if (!asked_for)
			w->session = UAR_SESSION_RESUME;
		e = w->session_id.p ? UAR_OK : UAR_ENOMEM;
	}
	if (e)
		fail(w, e, uar_err_text(e));
	else if (asked_for && !id.n)
		fail(w, UAR_ENOTFOUND, "no earlier session of this agent in the conversation");
	else
		prepared(w);
}

static void choose_session(struct backend_worker *w, uar_str wanted)
{
	struct live_run *r = w->base.run;
	uar_err e;

	if (w->session_id.n || uar_str_is(wanted, "new") ||
	    (w->session == UAR_SESSION_NEW && rt_is_first_of_thread(r))) {
		prepared(w);
		return;
	}
	e = rt_session_find(r, session_found, w, &w->find);
	if (e)
		fail(w, e, uar_err_text(e));
}

static void input_ready(void *ctx, uar_err e, uar_str text)
{
	struct backend_worker *w = ctx;
	struct wishes wishes = { UAR_STR_NONE, UAR_STR_NONE, UAR_STR_NONE };

	w->input = NULL;
	uar_buf_add_str(&w->prompt, text);
	if (!e)
		e = w->prompt.err;
	if (!e)
		e = read_wishes(rt_state(w->base.run)->what.inputs, &w->arena, &wishes, NULL);
	if (e) {
		fail(w, e, uar_err_text(e));
		return;
	}
	w->working_dir = wishes.working_dir;
	w->session_id = wishes.session_id;
	if (uar_str_is(wishes.session, "resume"))
		w->session = UAR_SESSION_RESUME;
	if (uar_str_is(wishes.session, "fork"))
		w->session = UAR_SESSION_FORK;
	choose_session(w, wishes.session);
}

static uar_err backend_start(struct worker *base, struct uar_error *error)
{
	struct backend_worker *w = (struct backend_worker *)base;
	uar_str id = rt_state(base->run)->what.agent_id;
	const struct uar_agent *agent = uar_workers_agent(
		rt_work(base->run), &rt_agg_session(rt_agg(base->run))->owner, id);

	if (!agent || !agent->info)
		return uar_error_set(error, UAR_ENOTFOUND, "agent %.*s is not defined any more",
				     UAR_FMT(id));
	w->can_resume = agent->info->can_resume;
	return rt_input_load(base->run, input_ready, w, &w->input);
}

/* The request is durable: the program may begin. */
static void backend_call_model(struct worker *base)
{
	struct backend_worker *w = (struct backend_worker *)base;
	struct uar_agent_events events = {
		on_text, on_tool, on_note, on_session, on_ask, on_done, w
	};
	struct uar_agent_request request = {
		.agent_id = rt_state(base->run)->what.agent_id,
		.prompt = uar_buf_str(&w->prompt),
		.working_dir = w->working_dir,
		.session = w->session,
		.session_id = w->session_id,
	};
	struct uar_error error = { 0 };
	uar_err e = host_of(w)->ops->start(host_of(w), &request, &events, &w->call, &error);

	if (e) {
		error.code = e;
		fail(w, e, uar_error_text(&error));
		uar_buf_fini(&w->prompt);
		return;
	}
	warn_not_enforced(w);
	if (w->forgets)
		warn(w, "SESSION_NOT_RESUMED",
		     "the agent cannot continue its session: it begins a new one");
	uar_buf_fini(&w->prompt);
}

static void backend_flow(struct worker *base)
{
	set_held((struct backend_worker *)base);
}

static void backend_cancel(struct worker *base)
{
	struct backend_worker *w = (struct backend_worker *)base;
	struct uar_command stopped = { .kind = UAR_CMD_STOPPED };

	for (size_t i = 0; i < ARRAY_LEN(w->asks); i++)
		uar_timer_stop(sched_of(w), &w->asks[i].expiry);
	if (w->call)
		host_of(w)->ops->cancel(w->call);
	else if (!w->over)
		rt_send(base->run, &stopped);
}

static void backend_stop(struct worker *base)
{
	struct backend_worker *w = (struct backend_worker *)base;

	rt_input_cancel(w->input);
	rt_session_cancel(w->find);
	if (w->kept)
		w->kept->w = NULL;
	for (size_t i = 0; i < ARRAY_LEN(w->asks); i++)
		uar_timer_stop(sched_of(w), &w->asks[i].expiry);
	if (w->call)
		host_of(w)->ops->stop(w->call);
	uar_buf_fini(&w->prompt);
	uar_arena_fini(&w->arena);
	uar_free(w);
}

static const struct worker_ops backend_ops = { "backend",      backend_start, backend_call_model,
					       backend_flow,   backend_stop,  backend_cancel,
					       backend_answer, NULL,	      NULL };

uar_err rt_backend_make(struct live_run *r, struct worker **out)
{
	struct backend_worker *w = uar_zalloc(sizeof *w);

	(void)r;
	if (!w)
		return UAR_ENOMEM;
	w->base.ops = &backend_ops;
	w->prompt = uar_buf_make(UAR_LIMIT_HTTP_BODY);
	uar_arena_init(&w->arena, 0);
	*out = &w->base;
	return UAR_OK;
}
