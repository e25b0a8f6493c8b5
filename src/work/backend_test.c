/* backend_test.c - the worker of agents that are programs, over a host that the
 * test plays: what is recorded before what, when the host is held, how runs end. */
#include "engine/engine.h"

#include "base/alloc.h"
#include "engine/limits.h"
#include "event/limits.h"
#include "memory_store.h"
#include "stage.h"
#include "test.h"

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };

/* The host: one agent, one call, and a memory of what was asked of it. */
struct host {
	struct uar_agents port;
	struct uar_agent_events events;
	struct uar_agent_request request; /* its strings are copied below */
	char session_id[64];
	bool started, cancelled, stopped, paused;
	int pauses;
	char answers[256]; /* "id=verdict " of each */
};

static const struct uar_agent_info info = {
	.agent_id = UAR_STR("coder"),
	.title = UAR_STR("Coder"),
	.description = UAR_STR(""),
	.entry = UAR_STR("backend.codex"),
	.kind = UAR_STR("codex"),
	.can_resume = true,
	.can_fork = true,
};

static const struct uar_agent_info *host_at(struct uar_agents *h, size_t index)
{
	(void)h;
	return index ? NULL : &info;
}

static uar_err host_start(struct uar_agents *h, const struct uar_agent_request *r,
			  const struct uar_agent_events *events, struct uar_agent_call **out,
			  struct uar_error *error)
{
	struct host *host = (struct host *)h;

	(void)error;
	host->request = *r;
	snprintf(host->session_id, sizeof host->session_id, "%.*s", UAR_FMT(r->session_id));
	host->events = *events;
	host->started = true;
	*out = (struct uar_agent_call *)h;
	return UAR_OK;
}

static uar_err host_respond(struct uar_agent_call *c, uar_str id, enum uar_verdict verdict)
{
	struct host *h = (struct host *)c;
	size_t n = strlen(h->answers);

	snprintf(h->answers + n, sizeof h->answers - n, "%.*s=%d ", UAR_FMT(id), (int)verdict);
	return UAR_OK;
}

static void host_cancel(struct uar_agent_call *c)
{
	((struct host *)c)->cancelled = true;
}

static void host_stop(struct uar_agent_call *c)
{
	((struct host *)c)->stopped = true;
}

static void host_pause(struct uar_agent_call *c, bool paused)
{
	struct host *h = (struct host *)c;

	CHECK(h->paused != paused);
	h->paused = paused;
	h->pauses += paused;
}

static const struct uar_agents_ops host_ops = {
	.abi = 1,
	.size = sizeof host_ops,
	.at = host_at,
	.start = host_start,
	.respond = host_respond,
	.cancel = host_cancel,
	.stop = host_stop,
	.pause = host_pause,
};

struct world {
	struct uar_pump pump;
	struct uar_store *store;
	struct uar_model *model;
	struct uar_runtime *rt;
	struct host host;
	struct uar_run_create op;
	struct uar_run_answer_op answer;
	struct uar_run_cancel_op cancel;
	struct uar_watch watch;
	bool created, answered, cancelled, ended;
	size_t warnings, questions;
};

static void on_commit(void *ctx, const struct uar_commit *c)
{
	struct world *w = ctx;

	for (size_t i = 0; i < c->event_count; i++) {
		w->ended |= c->events[i].cls == UAR_EV_TURN_COMPLETED ||
			    c->events[i].cls == UAR_EV_TURN_FAILED;
		w->warnings += c->events[i].cls == UAR_EV_RUNTIME_WARNING;
		w->questions += c->events[i].cls == UAR_EV_ACTION_REQUIRED;
	}
}

static void rise(struct world *w)
{
	w->host = (struct host){ .port = { &host_ops } };
	w->rt = uar_stage_rise(&w->pump, (struct uar_stage_options){ .store = w->store,
								     .scripted = w->model,
								     .agents = &w->host.port });
	w->watch = (struct uar_watch){ .fn = on_commit, .ctx = w };
	uar_runtime_watch(w->rt, &w->watch);
}

static void open_world(struct world *w)
{
	*w = (struct world){ .created = false };
	uar_stage_open(&w->pump, &w->store, &w->model);
	rise(w);
}

static void close_world(struct world *w)
{
	uar_stage_close(&w->pump, w->store, w->rt, w->model);
}

static void on_created(struct uar_run_create *op)
{
	UAR_OWNER(op, struct world, op)->created = true;
}

static void send(struct world *w, const char *inputs)
{
	w->created = w->host.started = w->ended = false;
	w->op = (struct uar_run_create){ .owner = owner,
					 .agent_id = UAR_STR("coder"),
					 .message = UAR_STR("hi"),
					 .inputs = uar_str_c(inputs),
					 .conversation_id = UAR_STR("talk"),
					 .done = on_created };
	CHECK_INT(uar_runtime_create_run(w->rt, &w->op), UAR_OK);
	uar_pump_until(&w->pump, &w->created);
	CHECK_INT(w->op.err, UAR_OK);
}

/* Until the program runs. */
static void begin(struct world *w, const char *inputs)
{
	send(w, inputs);
	uar_pump_until(&w->pump, &w->host.started);
}

static void settle(struct world *w)
{
	uar_stage_settle(&w->pump);
}

static void ask_whole(struct world *w, const char *id, enum uar_verdict verdict, uar_str whole)
{
	struct uar_ask a = { .id = uar_str_c(id),
			     .kind = UAR_STR("command"),
			     .tool_name = UAR_STR("Bash"),
			     .call_id = UAR_STR(""),
			     .prompt = UAR_STR("Bash: ls"),
			     .input = UAR_STR("{\"command\":\"ls\"}"),
			     .input_bytes = 16,
			     .whole = whole,
			     .verdict = verdict,
			     .rule = UAR_STR("rules/0") };

	w->host.events.ask(w->host.events.ctx, &a);
}

static void ask(struct world *w, const char *id, enum uar_verdict verdict)
{
	ask_whole(w, id, verdict, UAR_STR_NONE);
}

static void on_answered(struct uar_run_answer_op *op)
{
	UAR_OWNER(op, struct world, answer)->answered = true;
}

static uar_err respond(struct world *w, int number, enum uar_verdict verdict)
{
	static char id[160];
	uar_err e;

	snprintf(id, sizeof id, "%s.%d", w->op.run_id, number);
	w->answered = false;
	w->answer =
		(struct uar_run_answer_op){ .owner = owner,
					    .action_id = uar_str_c(id),
					    .decision = uar_str_c(uar_verdict_info[verdict].text),
					    .done = on_answered };
	e = uar_runtime_answer(w->rt, &w->answer);
	if (e)
		return e;
	uar_pump_until(&w->pump, &w->answered);
	return w->answer.err;
}

static void end_saying(struct world *w, enum uar_agent_how how, const char *message)
{
	struct uar_agent_end e = { .how = how,
				   .code = UAR_STR("TRANSPORT_ERROR"),
				   .category = UAR_STR("execution"),
				   .message = uar_str_c(message),
				   .input_tokens = 1,
				   .output_tokens = 2 };

	w->host.events.done(w->host.events.ctx, &e);
	settle(w);
}

static void end(struct world *w, enum uar_agent_how how)
{
	end_saying(w, how, "gone");
}

struct look {
	struct uar_runs_query q;
	bool done;
};

static void looked(struct uar_runs_query *q)
{
	UAR_OWNER(q, struct look, q)->done = true;
}

static const char *status(struct world *w)
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

/* Until the run is over; what is tried again later is waited for. */
static const char *outcome(struct world *w)
{
	if (strcmp(status(w), "running") == 0)
		uar_pump_until(&w->pump, &w->ended);
	return status(w);
}

static void on_cancelled(struct uar_run_cancel_op *op)
{
	UAR_OWNER(op, struct world, cancel)->cancelled = true;
}

static void cancel(struct world *w)
{
	w->cancelled = false;
	w->cancel = (struct uar_run_cancel_op){ .owner = owner,
						.run_id = uar_str_c(w->op.run_id),
						.done = on_cancelled };
	CHECK_INT(uar_runtime_cancel_run(w->rt, &w->cancel), UAR_OK);
	uar_pump_until(&w->pump, &w->cancelled);
}

/* --- tests ------------------------------------------------------------------------------ */

TEST(an_answer_is_durable_before_the_program_hears_it, "")
{
	struct world w;

	open_world(&w);
	begin(&w, "");
	CHECK_STR(uar_str_c(status(&w)), "running");
	ask(&w, "a", UAR_VERDICT_ALLOW); /* by policy */
	CHECK_STR(uar_str_c(w.host.answers), "");
	settle(&w);
	CHECK_STR(uar_str_c(w.host.answers), "a=1 ");
	ask(&w, "b", UAR_VERDICT_ASK);
	settle(&w);
	CHECK_INT(respond(&w, 2, UAR_VERDICT_ALLOW), UAR_ENOTFOUND);
	CHECK_STR(uar_str_c(w.host.answers), "a=1 ");
	CHECK_INT(respond(&w, 1, UAR_VERDICT_DENY), UAR_OK);
	CHECK_STR(uar_str_c(w.host.answers), "a=1 b=4 ");
	CHECK_INT(respond(&w, 1, UAR_VERDICT_ALLOW), UAR_ERESOLVED);
	end(&w, UAR_AGENT_FINISHED);
	CHECK_STR(uar_str_c(status(&w)), "succeeded");
	CHECK_INT(respond(&w, 1, UAR_VERDICT_ALLOW), UAR_ERESOLVED);
	CHECK_INT(respond(&w, 2, UAR_VERDICT_ALLOW), UAR_ENOTFOUND);
	close_world(&w);
}

TEST(an_answer_of_somebody_else_finds_nothing, "")
{
	struct world w;

	open_world(&w);
	begin(&w, "");
	ask(&w, "a", UAR_VERDICT_ASK);
	settle(&w);
	CHECK_INT(respond(&w, 1, UAR_VERDICT_ALLOW), UAR_OK);
	ask(&w, "b", UAR_VERDICT_ASK);
	settle(&w);
	w.answered = false;
	w.answer.action_id.n--; /* "RUN." is no id */
	CHECK_INT(uar_runtime_answer(w.rt, &w.answer), UAR_ENOTFOUND);
	w.answer.action_id.n++;
	w.answer.owner.user = UAR_STR("v");
	CHECK_INT(uar_runtime_answer(w.rt, &w.answer), UAR_OK);
	uar_pump_until(&w.pump, &w.answered);
	CHECK_INT(w.answer.err, UAR_ENOTFOUND);
	CHECK_STR(uar_str_c(w.host.answers), "a=1 ");
	close_world(&w);
}

static void count_waiting(void *ctx, const struct uar_run *run)
{
	(void)run;
	++*(size_t *)ctx;
}

static size_t waiting_of(struct world *w, struct uar_owner asker)
{
	size_t n = 0;

	uar_runtime_each_waiting(w->rt, &asker, count_waiting, &n);
	return n;
}

TEST(open_questions_are_listed_for_their_owner_alone, "")
{
	struct world w;

	open_world(&w);
	begin(&w, "");
	CHECK_INT(waiting_of(&w, owner), 0);
	ask(&w, "a", UAR_VERDICT_ASK);
	settle(&w);
	CHECK_INT(waiting_of(&w, owner), 1);
	CHECK_INT(waiting_of(&w, (struct uar_owner){ owner.tenant, owner.workspace, UAR_STR("v") }),
		  0);
	CHECK_INT(waiting_of(&w, (struct uar_owner){ owner.tenant, UAR_STR("v"), owner.user }), 0);
	CHECK_INT(waiting_of(&w, (struct uar_owner){ UAR_STR("v"), owner.workspace, owner.user }),
		  0);
	CHECK_INT(respond(&w, 1, UAR_VERDICT_ALLOW), UAR_OK);
	CHECK_INT(waiting_of(&w, owner), 0);
	close_world(&w);
}

TEST(a_question_whose_input_is_not_kept_says_so, "")
{
	struct world w;

	open_world(&w);
	begin(&w, "");
	ask_whole(&w, "a", UAR_VERDICT_ASK, UAR_STR("{\"command\":\"ls\"}"));
	ask_whole(&w, "b", UAR_VERDICT_ASK, UAR_STR("{\"command\":\"rm\"}")); /* one at a time */
	settle(&w);
	CHECK_INT(w.questions, 2);
	CHECK_INT(w.warnings, 1);
	close_world(&w);
}

TEST(a_host_with_four_open_questions_is_held, "")
{
	static const char *const ids[] = { "a", "b", "c", "d" };
	struct world w;

	open_world(&w);
	begin(&w, "");
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		CHECK(!w.host.paused);
		ask(&w, ids[i], UAR_VERDICT_ASK);
	}
	CHECK(w.host.paused);
	settle(&w);
	CHECK(w.host.paused);
	CHECK_INT(respond(&w, 3, UAR_VERDICT_ALLOW_SESSION), UAR_OK);
	CHECK(!w.host.paused);
	CHECK_STR(uar_str_c(w.host.answers), "c=2 ");
	end(&w, UAR_AGENT_BROKE); /* with three that nobody will answer */
	CHECK_STR(uar_str_c(status(&w)), "failed");
	CHECK_INT(respond(&w, 1, UAR_VERDICT_ALLOW), UAR_ERESOLVED);
	close_world(&w);
}

TEST(a_host_that_is_faster_than_commits_is_held, "")
{
	struct world w;
	size_t sent = 0;

	open_world(&w);
	begin(&w, "");
	while (!w.host.paused && sent < 100000000) {
		w.host.events.text(w.host.events.ctx, UAR_STR("0123456789abcdef"));
		sent += 16;
	}
	CHECK(w.host.paused && sent <= UAR_LIMIT_RUN_PENDING_BYTES);
	settle(&w);
	CHECK(!w.host.paused);
	end(&w, UAR_AGENT_FINISHED);
	CHECK_STR(uar_str_c(status(&w)), "succeeded");
	close_world(&w);
}

/* Whatever it says weighs, not its text alone. */
TEST(a_host_that_is_faster_with_its_notes_is_held, "")
{
	static char text[2000];
	struct uar_note n = { .kind = UAR_NOTE_WARNING,
			      .code = UAR_STR("X"),
			      .text = uar_str_n(text, sizeof text) };
	struct world w;
	size_t sent = 0;

	memset(text, 'x', sizeof text);
	open_world(&w);
	begin(&w, "");
	while (!w.host.paused && sent < UAR_LIMIT_RUN_PENDING) {
		w.host.events.note(w.host.events.ctx, &n);
		sent++;
	}
	CHECK(w.host.paused && sent * sizeof text <= UAR_LIMIT_RUN_PENDING_BYTES);
	settle(&w);
	CHECK(!w.host.paused);
	CHECK_INT(w.warnings, sent);
	end(&w, UAR_AGENT_FINISHED);
	CHECK_STR(uar_str_c(status(&w)), "succeeded");
	close_world(&w);
}

TEST(a_cancelled_run_ends_when_its_program_has, "")
{
	struct world w;

	open_world(&w);
	begin(&w, "");
	ask(&w, "a", UAR_VERDICT_ASK);
	settle(&w);
	cancel(&w);
	settle(&w);
	CHECK(w.host.cancelled && !w.host.stopped);
	CHECK_STR(uar_str_c(status(&w)), "cancel_requested");
	CHECK_INT(respond(&w, 1, UAR_VERDICT_ALLOW), UAR_ERESOLVED);
	end(&w, UAR_AGENT_STOPPED);
	CHECK_STR(uar_str_c(status(&w)), "canceled");
	CHECK_STR(uar_str_c(w.host.answers), "");
	close_world(&w);
}

/* Cancelled or failed: that its processes may be there is in the log. */
TEST(a_program_that_may_still_be_there_is_warned_of, "")
{
	for (int cancelled = 0; cancelled < 2; cancelled++) {
		struct world w;

		open_world(&w);
		begin(&w, "");
		if (cancelled)
			cancel(&w);
		settle(&w);
		end_saying(&w, UAR_AGENT_BROKE, "termination failed: they may survive");
		CHECK_STR(uar_str_c(status(&w)), cancelled ? "canceled" : "failed");
		CHECK_INT(w.warnings, 1);
		close_world(&w);
	}
}

TEST(the_next_turn_goes_on_in_the_same_session, "")
{
	struct world w;

	open_world(&w);
	begin(&w, "");
	CHECK_INT(w.host.request.session, UAR_SESSION_NEW);
	w.host.events.session(w.host.events.ctx, UAR_STR("s-1"));
	end(&w, UAR_AGENT_BROKE); /* what failed is no reason to forget */
	begin(&w, "");
	CHECK_INT(w.host.request.session, UAR_SESSION_RESUME);
	CHECK_STR(uar_str_c(w.host.session_id), "s-1");
	w.host.events.session(w.host.events.ctx, UAR_STR("s-2"));
	end(&w, UAR_AGENT_FINISHED);
	begin(&w, "{\"session\":\"fork\"}");
	CHECK_INT(w.host.request.session, UAR_SESSION_FORK);
	CHECK_STR(uar_str_c(w.host.session_id), "s-2");
	end(&w, UAR_AGENT_FINISHED);
	begin(&w, "{\"session\":\"new\"}");
	CHECK_INT(w.host.request.session, UAR_SESSION_NEW);
	end(&w, UAR_AGENT_FINISHED);
	begin(&w, "{\"session\":\"resume\",\"session_id\":\"s-9\"}");
	CHECK_STR(uar_str_c(w.host.session_id), "s-9");
	end(&w, UAR_AGENT_FINISHED);
	close_world(&w);
}

/* Runs that never got so far as to have a session fill more than a page. */
TEST(a_session_older_than_a_page_is_found, "")
{
	struct world w;

	open_world(&w);
	begin(&w, "");
	w.host.events.session(w.host.events.ctx, UAR_STR("s-1"));
	end(&w, UAR_AGENT_FINISHED);
	for (int i = 0; i <= UAR_LIMIT_LIST_PAGE; i++) {
		begin(&w, "{\"session\":\"new\"}");
		end(&w, UAR_AGENT_BROKE);
	}
	begin(&w, "");
	CHECK_INT(w.host.request.session, UAR_SESSION_RESUME);
	CHECK_STR(uar_str_c(w.host.session_id), "s-1");
	end(&w, UAR_AGENT_FINISHED);
	close_world(&w);
}

/* The store, but whoever asks for the runs of a thread waits. */
static const struct uar_store_ops *quick;
static struct uar_runs_query *late;
static bool is_late;

static uar_err runs_later(struct uar_store *s, struct uar_runs_query *q)
{
	if (!q->thread_id.n)
		return quick->runs(s, q);
	late = q;
	is_late = true;
	return UAR_OK;
}

/* A reader thread may carry the look-up out when the run is no more. */
TEST(a_look_for_a_session_outlives_its_run, "")
{
	struct uar_store_ops slow;
	struct world w;

	open_world(&w);
	begin(&w, "");
	end(&w, UAR_AGENT_FINISHED);
	quick = w.store->ops;
	slow = *quick;
	slow.runs = runs_later;
	w.store->ops = &slow;
	is_late = false;
	send(&w, "");
	uar_pump_until(&w.pump, &is_late);
	cancel(&w);
	settle(&w);
	CHECK_STR(uar_str_c(status(&w)), "canceled");
	w.store->ops = quick;
	CHECK_STR(late->thread_id, "talk");
	CHECK_INT(quick->runs(w.store, late), UAR_OK);
	settle(&w);
	CHECK(!w.host.started);
	close_world(&w);
}

/* Nobody is asked what a program that is gone wanted to know. */
static void settle_unasked(struct world *w)
{
	size_t waiting = 0;

	do
		uar_runtime_each_waiting(w->rt, &owner, count_waiting, &waiting);
	while (uar_pump_turn(&w->pump));
	CHECK_INT(waiting, 0);
}

TEST(a_restart_loses_what_was_at_work_or_waited, "")
{
	for (int parked = 0; parked < 2; parked++) {
		struct world w;

		open_world(&w);
		begin(&w, "");
		w.host.events.text(w.host.events.ctx, UAR_STR("half"));
		if (parked)
			ask(&w, "a", UAR_VERDICT_ASK);
		settle(&w);
		uar_stage_die(&w.pump, w.store, w.rt, 0, &w.model);
		CHECK(w.host.stopped);
		rise(&w);
		settle_unasked(&w);
		CHECK_STR(uar_str_c(outcome(&w)), "failed");
		CHECK(!w.host.started);
		CHECK_INT(respond(&w, 1, UAR_VERDICT_ALLOW),
			  parked ? UAR_ERESOLVED : UAR_ENOTFOUND);
		close_world(&w);
	}
}

/* --- memory that runs out ----------------------------------------------------------------- */

static unsigned long asked, fail_at;

static int refuse(void *ctx)
{
	(void)ctx;
	return ++asked == fail_at;
}

/* One life with one failed allocation: it ends, and nothing is left behind. */
static bool life(unsigned long n)
{
	struct world w;

	open_world(&w);
	begin(&w, "");
	asked = 0;
	fail_at = n;
	uar_alloc_set_hook(refuse, NULL);
	w.host.events.session(w.host.events.ctx, UAR_STR("s-1"));
	w.host.events.text(w.host.events.ctx, UAR_STR("hello"));
	ask(&w, "a", UAR_VERDICT_DENY);
	ask(&w, "b", UAR_VERDICT_ASK);
	settle(&w);
	(void)respond(&w, 1, UAR_VERDICT_ALLOW);
	settle(&w);
	uar_alloc_set_hook(NULL, NULL);
	if (strcmp(status(&w), "running") == 0)
		end(&w, UAR_AGENT_FINISHED);
	CHECK_MSG(strcmp(outcome(&w), "succeeded") == 0 || strcmp(status(&w), "failed") == 0,
		  "allocation %lu: %s", n, status(&w));
	close_world(&w);
	return asked >= n;
}

TEST(a_failed_allocation_fails_the_run_or_nothing, "")
{
	unsigned long n = 1;

	while (life(n) && n < 10000)
		n++;
	CHECK_MSG(n > 10, "%lu", n);
}
