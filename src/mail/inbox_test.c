/* inbox_test.c - messages are kept once, in order, with what they ask for, however often
 * the process is killed meanwhile. */
#include "mail/mail.h"

#include "base/alloc.h"
#include "event/limits.h"
#include "mail/limits.h"
#include "facts.h"
#include "memory_store.h"
#include "stage.h"
#include "test.h"

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };
static const struct uar_owner stranger = { UAR_STR("t"), UAR_STR("w"), UAR_STR("v") };

struct world {
	struct uar_pump pump;
	struct uar_store *store;
	struct uar_model *model;
	struct uar_runtime *rt;
	struct uar_stage_parts parts;
	const char *fixtures;
	bool drained;
};

static void rise(struct world *w)
{
	w->rt = uar_stage_rise(&w->pump, (struct uar_stage_options){ .parts = &w->parts,
								     .store = w->store,
								     .scripted = w->model,
								     .fixtures_dir = w->fixtures });
}

static void write_fixture(const struct world *w, const char *name, const char *text)
{
	char path[400];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s.jsonl", w->fixtures, name);
	f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0);
	CHECK(f && fclose(f) == 0);
}

#define DELTA(MS) "{\"at_ms\":" MS ",\"type\":\"ChatDelta\",\"data\":{\"text_delta\":\"x\"}}\n"

/* A run of one fixture takes an hour, one of the other a few turns. */
static void open_world(struct world *w)
{
	*w = (struct world){ .fixtures = uar_test_dir() };
	write_fixture(w, "slow", DELTA("3600000"));
	write_fixture(w, "quick", DELTA("0") DELTA("0") DELTA("0") DELTA("0"));
	uar_stage_open(&w->pump, &w->store, &w->model);
	rise(w);
}

static void close_world(struct world *w)
{
	uar_stage_close(&w->pump, w->store, w->rt, w->model);
}

static void die(struct world *w, size_t keep)
{
	uar_stage_die(&w->pump, w->store, w->rt, keep, &w->model);
}

/* --- what is asked -------------------------------------------------------------------- */

struct sent {
	struct uar_mail mail;
	bool done;
};

static void delivered(struct uar_mail *m)
{
	struct sent *s = m->ctx;

	CHECK(!s->done);
	s->done = true;
}

/* The fingerprint of these messages is their content. */
static struct uar_mail mail_of(const char *id, const char *content)
{
	return (struct uar_mail){
		.owner = owner,
		.agent_id = UAR_STR("fixture"),
		.message_id = uar_str_c(id),
		.fingerprint = uar_str_c(content),
		.content = uar_str_c(content),
		.preview = UAR_STR("p"),
		.native_ids = UAR_STR("{}"),
		.done = delivered,
	};
}

static uar_err post(struct world *w, struct sent *s)
{
	s->mail.ctx = s;
	s->done = false;
	return uar_mailer_deliver(w->parts.mailer, &s->mail);
}

static uar_err deliver(struct world *w, struct sent *s)
{
	uar_err e = post(w, s);

	if (e)
		return e;
	uar_pump_until(&w->pump, &s->done);
	return s->mail.err;
}

struct guest {
	struct uar_run_create op;
	bool done;
};

static void created(struct uar_run_create *op)
{
	UAR_OWNER(op, struct guest, op)->done = true;
}

static void create(struct world *w, const char *agent, char out[UAR_LIMIT_ID_BYTES + 1])
{
	struct guest g = { .op = { .owner = owner,
				   .agent_id = uar_str_c(agent),
				   .message = UAR_STR("hello"),
				   .done = created } };

	if (strcmp(agent, "fixture") == 0)
		g.op.inputs = UAR_STR("{\"fixture\":\"slow\",\"pace\":\"recorded\"}");
	CHECK_INT(uar_runtime_create_run(w->rt, &g.op), UAR_OK);
	uar_pump_until(&w->pump, &g.done);
	CHECK_INT(g.op.err, UAR_OK);
	memcpy(out, g.op.run_id, sizeof g.op.run_id);
	uar_stage_settle(&w->pump);
}

/* --- what is there ---------------------------------------------------------------------- */

/* How many messages of this id are kept. */
static size_t count(struct world *w, const struct uar_owner *who, const char *id)
{
	struct uar_read r = { .owner = *who,
			      .session_id = UAR_STR("uar.inbox:fixture"),
			      .limit = UAR_LIMIT_READ_PAGE };
	size_t n = 0;

	(void)uar_facts_read(&w->pump, w->store, &r); /* none: there is no inbox yet */
	for (size_t i = 0; i < r.event_count; i++) {
		const struct uar_json *payload = NULL;

		CHECK_INT(r.events[i].sequence, i + 1);
		CHECK(!uar_event_payload(&r.events[i], &r.arena, &payload, NULL));
		n += uar_str_is(
			uar_json_str(uar_json_get(payload, UAR_STR("message_id")), UAR_STR("")),
			id);
	}
	uar_store_read_fini(&r);
	return n;
}

/* Or is asked to stop, which is as durable. */
static bool is_cancelled(struct world *w, const char *run_id)
{
	struct uar_runs_query q = { .owner = owner, .run_id = uar_str_c(run_id), .limit = 1 };
	bool yes = !uar_facts_runs(&w->pump, w->store, &q) &&
		   (uar_str_is(q.rows[0].status, "canceled") ||
		    uar_str_is(q.rows[0].status, "cancel_requested"));

	uar_store_query_fini(&q);
	return yes;
}

/* --- kept ----------------------------------------------------------------------------------- */

TEST(messages_are_kept_in_the_order_they_came, "A2A-03")
{
	struct sent s[40];
	char ids[40][8];
	struct world w;

	open_world(&w);
	for (int i = 0; i < 40; i++) {
		snprintf(ids[i], sizeof ids[i], "m%d", i);
		s[i] = (struct sent){ .mail = mail_of(ids[i], "{}") };
		CHECK_INT(post(&w, &s[i]), UAR_OK);
		CHECK(!s[i].done); /* never inside the call */
	}
	uar_stage_settle(&w.pump);
	for (int i = 0; i < 40; i++) {
		CHECK(s[i].done && !s[i].mail.err && !s[i].mail.existed);
		CHECK_INT(s[i].mail.sequence, i + 2);
		CHECK_INT(s[i].mail.effect, UAR_MESSAGE_EFFECT_NONE);
	}
	close_world(&w);
}

TEST(one_id_is_one_message_of_one_agent_and_owner, "A2A-03 A2A-04")
{
	struct sent s[64], other = { .mail = mail_of("m", "{\"other\":1}") };
	size_t first = 0;
	struct world w;

	open_world(&w);
	for (int i = 0; i < 64; i++) {
		s[i] = (struct sent){ .mail = mail_of("m", "{}") };
		CHECK_INT(post(&w, &s[i]), UAR_OK);
	}
	uar_stage_settle(&w.pump);
	for (int i = 0; i < 64; i++) {
		CHECK(s[i].done && !s[i].mail.err && s[i].mail.sequence == 2);
		first += !s[i].mail.existed;
	}
	CHECK_INT(first, 1);
	CHECK_INT(deliver(&w, &other), UAR_EKEYREUSED);
	other.mail.run_id = UAR_STR("r");
	CHECK_INT(deliver(&w, &other), UAR_EKEYREUSED);
	other = (struct sent){ .mail = mail_of("m", "{\"other\":1}") };
	other.mail.owner = stranger;
	CHECK_INT(deliver(&w, &other), UAR_OK);
	other.mail.owner = owner;
	other.mail.agent_id = UAR_STR("somebody");
	CHECK_INT(deliver(&w, &other), UAR_OK);
	CHECK_INT(count(&w, &owner, "m"), 1);
	CHECK_INT(count(&w, &stranger, "m"), 1);
	close_world(&w);
}

TEST(a_name_that_no_inbox_can_have_is_refused, "")
{
	char name[UAR_LIMIT_A2A_AGENT + 2], session[UAR_LIMIT_ID_BYTES + 1];

	memset(name, 'x', sizeof name);
	CHECK_INT(uar_inbox_session(uar_str_n(name, UAR_LIMIT_A2A_AGENT), session), UAR_OK);
	CHECK_INT(uar_inbox_session(uar_str_n(name, UAR_LIMIT_A2A_AGENT + 1), session),
		  UAR_EINVALID);
	CHECK_INT(uar_inbox_session(UAR_STR(""), session), UAR_EINVALID);
	CHECK_INT(uar_inbox_session(UAR_STR("a b"), session), UAR_EINVALID);
	CHECK_INT(uar_inbox_session(UAR_STR("a@b"), session), UAR_EINVALID);
}

TEST(what_the_disk_refuses_is_not_there, "")
{
	struct sent s = { .mail = mail_of("m", "{}") };
	struct world w;

	open_world(&w);
	uar_store_memory_fail_next(w.store, UAR_EDISKFULL);
	CHECK_INT(deliver(&w, &s), UAR_EDISKFULL);
	CHECK_INT(count(&w, &owner, "m"), 0);
	CHECK_INT(deliver(&w, &s), UAR_OK);
	CHECK(!s.mail.existed);
	CHECK_INT(count(&w, &owner, "m"), 1);
	close_world(&w);
}

/* --- what it asks for -------------------------------------------------------------------- */

TEST(a_cancel_says_what_became_of_it, "RUN-07 A2A-06")
{
	char live[UAR_LIMIT_ID_BYTES + 1], over[UAR_LIMIT_ID_BYTES + 1];
	struct sent s = { .mail = mail_of("m", "{}") };
	struct world w;

	open_world(&w);
	create(&w, "fixture", live);
	create(&w, "echo", over);
	s.mail.run_id = uar_str_c(over);
	CHECK_INT(deliver(&w, &s), UAR_OK);
	CHECK_INT(s.mail.effect, UAR_MESSAGE_EFFECT_UNKNOWN); /* it is not the fixture's */
	s.mail.message_id = UAR_STR("m2");
	s.mail.agent_id = UAR_STR("echo");
	CHECK_INT(deliver(&w, &s), UAR_OK);
	CHECK_INT(s.mail.effect, UAR_MESSAGE_EFFECT_OVER);
	s.mail.message_id = UAR_STR("m3");
	s.mail.run_id = uar_str_c(live);
	CHECK_INT(deliver(&w, &s), UAR_OK);
	CHECK_INT(s.mail.effect, UAR_MESSAGE_EFFECT_UNKNOWN);
	s.mail.agent_id = UAR_STR("fixture");
	s.mail.owner = stranger;
	CHECK_INT(deliver(&w, &s), UAR_OK);
	CHECK_INT(s.mail.effect, UAR_MESSAGE_EFFECT_UNKNOWN);
	uar_stage_settle(&w.pump);
	CHECK(!is_cancelled(&w, live));
	s.mail.owner = owner;
	CHECK_INT(deliver(&w, &s), UAR_OK);
	CHECK_INT(s.mail.effect, UAR_MESSAGE_EFFECT_REQUESTED);
	uar_stage_settle(&w.pump);
	CHECK(is_cancelled(&w, live));
	CHECK_INT(deliver(&w, &s), UAR_OK);
	CHECK(s.mail.existed);
	CHECK_INT(s.mail.effect, UAR_MESSAGE_EFFECT_REQUESTED); /* as it was then */
	close_world(&w);
}

/* The end of the run is on its way to the disk when the cancel comes. */
TEST(a_cancel_that_comes_too_late_says_so, "RUN-07 A2A-06")
{
	for (int turns = 0; turns < 8; turns++) {
		struct guest g = { .op = { .owner = owner,
					   .agent_id = UAR_STR("fixture"),
					   .message = UAR_STR("hello"),
					   .inputs = UAR_STR("{\"fixture\":\"quick\"}"),
					   .done = created } };
		struct sent s = { .mail = mail_of("m", "{}") };
		struct world w;

		open_world(&w);
		CHECK_INT(uar_runtime_create_run(w.rt, &g.op), UAR_OK);
		uar_pump_until(&w.pump, &g.done);
		for (int i = 0; i < turns; i++)
			uar_pump_turn(&w.pump);
		s.mail.run_id = uar_str_c(g.op.run_id);
		/* so that it comes before what is on its way */
		uar_store_memory_hold(w.store, true);
		CHECK_INT(post(&w, &s), UAR_OK);
		for (int i = 0; i < 8; i++)
			uar_pump_turn(&w.pump);
		uar_store_memory_hold(w.store, false);
		uar_pump_until(&w.pump, &s.done);
		CHECK_INT(s.mail.err, UAR_OK);
		uar_stage_settle(&w.pump);
		CHECK_INT(s.mail.effect, is_cancelled(&w, g.op.run_id)
						 ? UAR_MESSAGE_EFFECT_REQUESTED
						 : UAR_MESSAGE_EFFECT_OVER);
		close_world(&w);
	}
}

/* Killed after every number of turns, with none, one or two of what was being committed. */
TEST(a_kill_never_leaves_a_cancel_without_its_effect, "RUN-07 A2A-06")
{
	size_t unkept = 0, kept = 0;

	for (size_t keep = 0; keep < 3; keep++)
		for (int turns = 0; turns < 24; turns++) {
			char run_id[UAR_LIMIT_ID_BYTES + 1];
			struct sent s = { .mail = mail_of("m", "{}") };
			bool there;
			struct world w;

			open_world(&w);
			create(&w, "fixture", run_id);
			s.mail.run_id = uar_str_c(run_id);
			s.mail.reason = UAR_STR("why");
			CHECK_INT(post(&w, &s), UAR_OK);
			for (int i = 0; i < turns; i++)
				uar_pump_turn(&w.pump);
			die(&w, keep);
			rise(&w);
			uar_stage_settle(&w.pump);
			there = count(&w, &owner, "m") == 1;
			CHECK_MSG(!there || is_cancelled(&w, run_id), "%zu %d", keep, turns);
			CHECK_MSG(there || !s.done, "%zu %d", keep, turns);
			kept += there;
			unkept += !there && is_cancelled(&w, run_id);
			CHECK_INT(deliver(&w, &s), UAR_OK);
			CHECK(s.mail.existed == there);
			uar_stage_settle(&w.pump);
			CHECK(is_cancelled(&w, run_id));
			CHECK_INT(count(&w, &owner, "m"), 1);
			close_world(&w);
		}
	CHECK_MSG(kept > 0 && unkept > 0, "%zu %zu", kept, unkept); /* both were met */
}

/* --- in the middle of it ---------------------------------------------------------------------- */

static void drained(void *ctx)
{
	((struct world *)ctx)->drained = true;
}

TEST(a_drain_or_an_end_in_the_middle_is_clean, "")
{
	static char large[UAR_LIMIT_A2A_INLINE + 64];

	memset(large, 'x', sizeof large);
	memcpy(large, "{\"x\":\"", 6);
	memcpy(large + sizeof large - 3, "\"}", 3);
	for (int turns = 0; turns < 24; turns++) {
		char run_id[UAR_LIMIT_ID_BYTES + 1];
		struct sent s[3] = { { .mail = mail_of("m", "{}") },
				     { .mail = mail_of("n", large) },
				     { .mail = mail_of("o", "{}") } };
		struct world w;

		open_world(&w);
		create(&w, "fixture", run_id);
		s[0].mail.run_id = uar_str_c(run_id);
		for (int i = 0; i < 3; i++)
			CHECK_INT(post(&w, &s[i]), UAR_OK);
		for (int i = 0; i < turns; i++)
			uar_pump_turn(&w.pump);
		if (turns % 2) {
			struct sent late = { .mail = mail_of("p", "{}") };

			uar_runtime_drain(w.rt, drained, &w);
			CHECK_INT(post(&w, &late), UAR_EDRAINING);
			uar_pump_until(&w.pump, &w.drained);
			CHECK(s[0].done && s[1].done && s[2].done);
		}
		close_world(&w);
	}
}

static unsigned long asked, refused;

static int refuse(void *ctx)
{
	(void)ctx;
	return ++asked == refused;
}

/* The nth allocation fails, for every n: the message is refused, or kept with its effect. */
TEST(a_shortage_of_memory_is_told, "")
{
	bool reached = true;

	for (refused = 1; reached; refused++) {
		char run_id[UAR_LIMIT_ID_BYTES + 1];
		struct sent s = { .mail = mail_of("m", "{}") };
		struct world w;
		uar_err e;

		open_world(&w);
		create(&w, "fixture", run_id);
		s.mail.run_id = uar_str_c(run_id);
		asked = 0;
		uar_alloc_set_hook(refuse, NULL);
		e = deliver(&w, &s);
		uar_alloc_set_hook(NULL, NULL);
		reached = asked >= refused;
		CHECK_MSG(!e || e == UAR_ENOMEM || e == UAR_EBUSY, "%lu: %s", refused,
			  uar_err_name(e));
		uar_stage_settle(&w.pump);
		CHECK(count(&w, &owner, "m") == (e ? 0 : 1));
		CHECK(e || is_cancelled(&w, run_id));
		CHECK_INT(deliver(&w, &s), UAR_OK);
		CHECK_INT(count(&w, &owner, "m"), 1);
		close_world(&w);
	}
	CHECK_MSG(refused > 5, "only %lu", refused);
}
