/* history_test.c - what a model is told of the conversation so far. */
#include "work/history.h"

#include "stage.h"
#include "event/limits.h"
#include "memory_store.h"
#include "work/limits.h"
#include "test.h"

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };

/* A model that remembers what it was told and answers with the number of the call.
 * While it is held it says "half" and nothing more. */
struct parrot {
	struct uar_model base;
	struct uar_task task;
	struct uar_model_events events;
	struct uar_buf told; /* "u:question a:answer u:next" of the last call */
	struct uar_sched *sched;
	unsigned calls;
	bool busy, hold;
};

static void speak(struct uar_task *t)
{
	struct parrot *p = UAR_OWNER(t, struct parrot, task);
	struct uar_model_result result = { .stop_reason = UAR_STR("stop"),
					   .usage = { 1, 1, 2, -1, -1, -1 } };
	char answer[32];

	snprintf(answer, sizeof answer, "A%u", p->calls);
	p->events.text(p->events.ctx, p->hold ? UAR_STR("half") : uar_str_c(answer));
	if (p->hold)
		return;
	p->busy = false;
	p->events.done(p->events.ctx, &result);
}

static uar_err start(struct uar_model *m, const struct uar_model_request *r,
		     const struct uar_model_events *events, struct uar_model_call **out,
		     struct uar_error *error)
{
	struct parrot *p = UAR_OWNER(m, struct parrot, base);

	(void)error;
	p->events = *events;
	p->calls++;
	p->busy = true;
	uar_buf_clear(&p->told);
	for (size_t i = 0; i < r->message_count; i++)
		uar_buf_printf(&p->told, "%s%c:%.*s", i ? " " : "", "sua"[r->messages[i].role],
			       UAR_FMT(uar_model_text_of(&r->messages[i])));
	uar_post(p->sched, &p->task);
	*out = (struct uar_model_call *)p;
	return UAR_OK;
}

static void cancel(struct uar_model *m, struct uar_model_call *call)
{
	struct parrot *p = UAR_OWNER(m, struct parrot, base);

	(void)call;
	p->busy = false;
	uar_unpost(p->sched, &p->task);
}

static void pause_call(struct uar_model *m, struct uar_model_call *call, bool paused)
{
	(void)m, (void)call, (void)paused;
}

static const struct uar_model_ops ops = { 2, sizeof ops, NULL, start, cancel, pause_call, NULL };

struct world {
	struct uar_pump pump;
	struct uar_store *store;
	struct parrot parrot;
	struct uar_runtime *rt;
	struct uar_stage_parts parts;
};

static void rise(struct world *w)
{
	struct uar_stage_options o = { .parts = &w->parts,
				       .store = w->store,
				       .scripted = &w->parrot.base,
				       .provider = &w->parrot.base,
				       .provider_model = "p" };

	w->rt = uar_stage_rise(&w->pump, o);
}

static void open_world(struct world *w)
{
	*w = (struct world){ .parrot = { .base = { &ops, "parrot" }, .task = { .fn = speak } } };
	uar_stage_open(&w->pump, &w->store, NULL);
	w->parrot.sched = &w->pump.sched;
	w->parrot.told = uar_buf_make(1 << 22);
	rise(w);
}

static void close_world(struct world *w)
{
	uar_stage_close(&w->pump, w->store, w->rt, NULL);
	uar_buf_fini(&w->parrot.told);
}

static void created(struct uar_run_create *op)
{
	CHECK_INT(op->err, UAR_OK);
}

static void stopped(struct uar_run_cancel_op *op)
{
	CHECK_INT(op->err, UAR_OK);
}

static void ask(struct world *w, struct uar_run_create *op, const char *talk, uar_str message)
{
	*op = (struct uar_run_create){ .owner = owner,
				       .agent_id = UAR_STR("assistant"),
				       .message = message,
				       .conversation_id = uar_str_c(talk),
				       .done = created };
	CHECK_INT(uar_runtime_create_run(w->rt, op), UAR_OK);
}

static void settle(struct world *w)
{
	while (uar_pump_turn(&w->pump))
		;
}

#define SYS "s:You are a helpful assistant. "

TEST(a_turn_is_told_what_was_said_before_it, "")
{
	struct uar_run_create op[3];
	struct world w;

	open_world(&w);
	ask(&w, &op[0], "talk", UAR_STR("one"));
	settle(&w);
	CHECK_STR(uar_buf_str(&w.parrot.told), SYS "u:one");
	ask(&w, &op[1], "other", UAR_STR("elsewhere"));
	settle(&w);
	CHECK_STR(uar_buf_str(&w.parrot.told), SYS "u:elsewhere");
	ask(&w, &op[2], "talk", UAR_STR("two"));
	settle(&w);
	CHECK_STR(uar_buf_str(&w.parrot.told), SYS "u:one a:A1 u:two");
	close_world(&w);
}

/* Submitted all at once, they are answered one after the other, each with the
 * answers to the ones before it and none of the questions after it. */
TEST(queued_turns_are_told_the_answers_they_waited_for, "")
{
	struct uar_run_create op[3];
	struct world w;

	open_world(&w);
	ask(&w, &op[0], "talk", UAR_STR("one"));
	ask(&w, &op[1], "talk", UAR_STR("two"));
	ask(&w, &op[2], "talk", UAR_STR("three"));
	settle(&w);
	CHECK_INT(w.parrot.calls, 3);
	CHECK_STR(uar_buf_str(&w.parrot.told), SYS "u:one a:A1 u:two a:A2 u:three");
	close_world(&w);
}

/* One that was cancelled while it waited was never told to a model, nor is it afterwards; the
 * answer that was under way keeps its own question. */
TEST(a_turn_that_was_cancelled_in_the_queue_is_not_told, "CTL-03")
{
	struct uar_run_cancel_op stop = { .owner = owner, .done = stopped };
	struct uar_run_create op[3];
	struct world w;

	open_world(&w);
	w.parrot.hold = true;
	ask(&w, &op[0], "talk", UAR_STR("one"));
	settle(&w); /* "half" is in the log */
	ask(&w, &op[1], "talk", UAR_STR("two"));
	settle(&w);
	stop.run_id = uar_str_c(op[1].run_id);
	CHECK_INT(uar_runtime_cancel_run(w.rt, &stop), UAR_OK);
	settle(&w);
	CHECK_INT(w.parrot.calls, 1);
	w.parrot.hold = false;
	speak(&w.parrot.task);
	settle(&w);
	ask(&w, &op[2], "talk", UAR_STR("three"));
	settle(&w);
	CHECK_STR(uar_buf_str(&w.parrot.told), SYS "u:one a:halfA1 u:three");
	close_world(&w);
}

TEST(an_answer_that_was_cut_off_is_told_only_as_it_was_at_last, "")
{
	struct uar_run_create op[2];
	struct world w;

	open_world(&w);
	w.parrot.hold = true;
	ask(&w, &op[0], "talk", UAR_STR("one"));
	settle(&w); /* "half" is in the log */
	uar_store_memory_crash(w.store, 0);
	uar_runtime_destroy(w.rt);
	w.parrot.hold = false;
	rise(&w);
	settle(&w);
	CHECK_INT(w.parrot.calls, 2);
	CHECK_STR(uar_buf_str(&w.parrot.told), SYS "u:one");
	ask(&w, &op[1], "talk", UAR_STR("two"));
	settle(&w);
	CHECK_STR(uar_buf_str(&w.parrot.told), SYS "u:one a:A2 u:two");
	close_world(&w);
}

struct look {
	struct uar_read r;
	bool done;
};

static void looked(struct uar_read *r)
{
	UAR_OWNER(r, struct look, r)->done = true;
}

/* The run's log says what its model was not told; NULL: there is nothing to say. */
static void check_omission(struct world *w, const char *run_id, const char *reason)
{
	struct look l = { .r = { .owner = owner,
				 .run_id = uar_str_c(run_id),
				 .limit = UAR_LIMIT_READ_PAGE,
				 .done = looked } };
	const struct uar_json *p = NULL;

	CHECK_INT(w->store->ops->read(w->store, &l.r), UAR_OK);
	uar_pump_until(&w->pump, &l.done);
	for (size_t i = 0; i < l.r.event_count; i++)
		if (l.r.events[i].cls == UAR_EV_CONTEXT_RESOLVED)
			CHECK_INT(uar_json_parse(l.r.events[i].payload, NULL, &l.r.arena, &p, NULL),
				  UAR_OK);
	CHECK((p != NULL) == (reason != NULL));
	if (p && reason)
		CHECK(uar_str_starts(
			uar_json_str(uar_json_pointer(p, UAR_STR("/omissions/0/reason")),
				     UAR_STR("")),
			uar_str_c(reason)));
	uar_store_read_fini(&l.r);
}

TEST(the_oldest_of_a_long_conversation_is_left_out, "")
{
	struct uar_run_create op;
	struct world w;
	char want[64];

	open_world(&w);
	for (int i = 1; i <= UAR_LIMIT_HISTORY_MESSAGES; i++) {
		char message[16];

		snprintf(message, sizeof message, "Q%d", i);
		ask(&w, &op, "talk", uar_str_c(message));
		settle(&w);
	}
	/* 127 questions and answers came before the last one; 128 messages are kept. */
	snprintf(want, sizeof want, SYS "u:Q64 a:A64 u:Q65 ");
	CHECK(uar_str_starts(uar_buf_str(&w.parrot.told), uar_str_c(want)));
	CHECK(uar_str_ends(uar_buf_str(&w.parrot.told), UAR_STR(" a:A127 u:Q128")));
	check_omission(&w, op.run_id, "126 older messages with ");
	close_world(&w);
}

TEST(a_cancelled_wait_for_the_past_is_harmless_at_any_moment, "")
{
	for (int turns = 0; turns < 20; turns++) {
		struct uar_run_create op[2];
		struct world w;

		open_world(&w);
		ask(&w, &op[0], "talk", UAR_STR("one"));
		settle(&w);
		ask(&w, &op[1], "talk", UAR_STR("two"));
		for (int i = 0; i < turns; i++)
			uar_pump_turn(&w.pump);
		close_world(&w);
	}
}

/* Long texts are told whole up to a limit, above it by their beginning, and the log
 * says so; before and after a restart. */
TEST(long_texts_are_told_from_where_they_lie, "")
{
	static const size_t sizes[] = { 3000, 200000, UAR_LIMIT_HISTORY_TEXT,
					UAR_LIMIT_HISTORY_TEXT + 5 };
	char *text = uar_alloc(UAR_LIMIT_HISTORY_TEXT + 5);

	memset(text, 'q', UAR_LIMIT_HISTORY_TEXT + 5);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		size_t kept = sizes[i] > UAR_LIMIT_HISTORY_TEXT ? UAR_LIMIT_HISTORY_TEXT : sizes[i];
		struct uar_buf want = uar_buf_make(1 << 22);
		struct uar_run_create op[3];
		struct world w;

		uar_buf_printf(&want, SYS "u:");
		uar_buf_add(&want, text, kept);
		uar_buf_add_str(&want, UAR_STR(" a:A1 u:two"));
		open_world(&w);
		ask(&w, &op[0], "talk", uar_str_n(text, sizes[i]));
		settle(&w);
		ask(&w, &op[1], "talk", UAR_STR("two"));
		settle(&w);
		CHECK(uar_str_eq(uar_buf_str(&w.parrot.told), uar_buf_str(&want)));
		check_omission(&w, op[1].run_id,
			       kept < sizes[i] ? "the first 524288 of the 524293 bytes of its "
						 "question are told"
					       : NULL);
		uar_store_memory_crash(w.store, 0);
		uar_runtime_destroy(w.rt);
		rise(&w);
		uar_buf_add_str(&want, UAR_STR(" a:A2 u:three"));
		ask(&w, &op[2], "talk", UAR_STR("three"));
		settle(&w);
		CHECK(uar_str_eq(uar_buf_str(&w.parrot.told), uar_buf_str(&want)));
		uar_buf_fini(&want);
		close_world(&w);
	}
	uar_free(text);
}

/* A turn reads what is new since the last one, not the whole conversation. */
TEST(a_turn_reads_only_what_is_new, "")
{
	struct uar_store_stats before, after;
	struct uar_run_create op;
	struct world w;
	uint64_t upto = 0;

	open_world(&w);
	for (int i = 0; i < 40; i++) {
		struct past *p;

		ask(&w, &op, "talk", UAR_STR("again"));
		settle(&w);
		p = uar_list_empty(&w.parts.workers->pasts.list)
			    ? NULL
			    : UAR_OWNER(w.parts.workers->pasts.list.prev, struct past, node);
		CHECK((i > 0) == (p != NULL));
		if (!p)
			continue;
		CHECK_INT(w.parts.workers->pasts.count, 1);
		CHECK(p->upto > upto);
		upto = p->upto;
	}
	/* Bytes of a page do not grow with the conversation: one page, however long. */
	w.store->ops->stats(w.store, &before);
	ask(&w, &op, "talk", UAR_STR("last"));
	settle(&w);
	w.store->ops->stats(w.store, &after);
	CHECK(after.reads - before.reads <= 3); /* its session, its queue, the page */
	close_world(&w);
}

TEST(only_so_many_conversations_are_remembered, "")
{
	struct uar_run_create op;
	struct world w;

	open_world(&w);
	for (int i = 0; i < UAR_LIMIT_HISTORY_THREADS + 5; i++) {
		char talk[16];

		snprintf(talk, sizeof talk, "talk-%d", i);
		ask(&w, &op, talk, UAR_STR("one"));
		settle(&w);
		ask(&w, &op, talk, UAR_STR("two"));
		settle(&w);
	}
	CHECK_INT(w.parts.workers->pasts.count, UAR_LIMIT_HISTORY_THREADS);
	ask(&w, &op, "talk-0", UAR_STR("three"));
	settle(&w);
	CHECK_STR(uar_buf_str(&w.parrot.told), SYS "u:one a:A1 u:two a:A2 u:three");
	close_world(&w);
}
