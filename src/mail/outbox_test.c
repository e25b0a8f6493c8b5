/* outbox_test.c - messages leave in order until each is answered, whatever the peer, the
 * disk and the process do meanwhile. */
#include "mail/mail_int.h"

#include "facts.h"
#include "leap.h"
#include "stage.h"
#include "event/limits.h"
#include "memory_store.h"
#include "test.h"

enum { HEARD = 400 };

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };

/* A peer that answers as it is told, a turn later or not at all. */
struct fake {
	struct uar_peers base;
	struct uar_sched *sched;
	struct uar_task task;
	struct uar_delivery *d; /* it has not answered yet */
	bool silent;
	unsigned failures;    /* so many answers are none */
	const char *refuse;   /* a message that contains this */
	char heard[HEARD][8]; /* messages, in order */
	size_t count;
};

struct world {
	struct leap leap;
	struct uar_pump pump;
	struct uar_store *store;
	struct uar_model *model;
	struct uar_runtime *rt;
	struct uar_stage_parts parts;
	struct fake peer;
	bool drained;
};

static void answer(struct uar_task *t)
{
	struct fake *f = UAR_OWNER(t, struct fake, task);
	struct uar_delivery *d = f->d;
	char text[64];

	f->d = NULL;
	snprintf(text, sizeof text, "%.*s", UAR_FMT(d->message));
	d->how = f->failures				? UAR_DELIVERY_FAILED
		 : f->refuse && strstr(text, f->refuse) ? UAR_DELIVERY_REFUSED
							: UAR_DELIVERED;
	f->failures -= f->failures > 0;
	snprintf(d->reason, sizeof d->reason, "because");
	d->done(d);
}

/* A message of these tests begins with {"n":"NAME"... */
static uar_err deliver(struct uar_peers *base, struct uar_delivery *d)
{
	struct fake *f = UAR_OWNER(base, struct fake, base);
	uar_str name = uar_str_from(d->message, 6);

	CHECK(!f->d && uar_str_is(d->peer, "right") && f->count < HEARD);
	snprintf(f->heard[f->count++], sizeof f->heard[0], "%.*s", (int)uar_str_find(name, '"'),
		 name.p);
	f->d = d;
	f->task.fn = answer;
	if (!f->silent)
		uar_post(f->sched, &f->task);
	return UAR_OK;
}

static void cancel(struct uar_peers *base, struct uar_delivery *d)
{
	struct fake *f = UAR_OWNER(base, struct fake, base);

	CHECK(f->d == d);
	f->d = NULL;
	uar_unpost(f->sched, &f->task);
}

static uar_str name_at(struct uar_peers *base, size_t index)
{
	(void)base;
	return index ? UAR_STR_NONE : UAR_STR("right");
}

static const struct uar_peers_ops ops = {
	.abi = 1, .size = sizeof ops, .at = name_at, .deliver = deliver, .cancel = cancel
};

static void rise(struct world *w)
{
	w->rt = uar_stage_rise(&w->pump, (struct uar_stage_options){ .parts = &w->parts,
								     .store = w->store,
								     .scripted = w->model,
								     .peers = &w->peer.base });
	uar_mailer_wake_outboxes(w->parts.mailer, &owner);
}

static void open_world(struct world *w)
{
	*w = (struct world){ .peer = { .base = { .ops = &ops }, .sched = &w->pump.sched } };
	uar_stage_open(&w->pump, &w->store, &w->model);
	leap_init(&w->leap);
	w->pump.sched.clock = &w->leap.clock;
	rise(w);
}

static void close_world(struct world *w)
{
	uar_stage_close(&w->pump, w->store, w->rt, w->model);
}

static void die(struct world *w, size_t keep)
{
	uar_stage_die(&w->pump, w->store, w->rt, keep, &w->model);
	CHECK(!w->peer.d); /* whoever dies does not wait for an answer */
}

/* Until nothing is left to do, and no wait either. */
static void settle(struct world *w)
{
	for (int i = 0; i < 12; i++) {
		uar_stage_settle(&w->pump);
		leap_ahead(&w->leap, &w->pump.sched, 120000000);
	}
	uar_stage_settle(&w->pump);
}

struct sent {
	struct uar_mail mail;
	char id[8], content[32];
	bool done;
};

static void kept(struct uar_mail *m)
{
	((struct sent *)m->ctx)->done = true;
}

static uar_err post(struct world *w, struct sent *s, const char *id)
{
	snprintf(s->id, sizeof s->id, "%s", id);
	snprintf(s->content, sizeof s->content, "{\"n\":\"%s\"}", id);
	s->done = false;
	s->mail = (struct uar_mail){
		.owner = owner,
		.agent_id = UAR_STR("bob"),
		.peer = UAR_STR("right"),
		.message_id = uar_str_c(s->id),
		.fingerprint = uar_str_c(s->content),
		.content = uar_str_c(s->content),
		.preview = UAR_STR("p"),
		.native_ids = UAR_STR("{}"),
		.done = kept,
		.ctx = s,
	};
	return uar_mailer_deliver(w->parts.mailer, &s->mail);
}

static void put(struct world *w, const char *id)
{
	struct sent s;

	CHECK_INT(post(w, &s, id), UAR_OK);
	uar_pump_until(&w->pump, &s.done);
	CHECK_INT(s.mail.err, UAR_OK);
}

static bool heard(const struct world *w, size_t i, const char *id)
{
	return CHECK_MSG(i < w->peer.count && strcmp(w->peer.heard[i], id) == 0,
			 "%zu: %s instead of %s", i,
			 i < w->peer.count ? w->peer.heard[i] : "nothing", id);
}

/* What was answered, as the log has it: "delivered", "refused". */
static size_t count_answers(struct world *w, const char *word)
{
	struct uar_read r = { .owner = owner,
			      .session_id = UAR_STR("uar.outbox:right"),
			      .limit = UAR_LIMIT_READ_PAGE };
	size_t n = 0;

	(void)uar_facts_read(&w->pump, w->store, &r); /* none: there is no outbox yet */
	for (size_t i = 0; i < r.event_count; i++) {
		const struct uar_json *payload = NULL;

		CHECK(!uar_event_payload(&r.events[i], &r.arena, &payload, NULL));
		n += uar_str_starts(
			uar_json_str(uar_json_get(payload, UAR_STR("preview")), UAR_STR("")),
			uar_str_c(word));
	}
	uar_store_read_fini(&r);
	return n;
}

TEST(messages_leave_in_order_and_once, "A2A-01")
{
	struct sent s[20];
	struct world w;
	char id[8];

	open_world(&w);
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof id, "m%d", i);
		CHECK_INT(post(&w, &s[i], id), UAR_OK);
	}
	settle(&w);
	CHECK_INT(w.peer.count, 20);
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof id, "m%d", i);
		CHECK(s[i].done && !s[i].mail.err);
		heard(&w, (size_t)i, id);
	}
	CHECK_INT(count_answers(&w, "delivered: because"), 20);
	die(&w, 0);
	rise(&w);
	settle(&w);
	put(&w, "late");
	settle(&w);
	CHECK_INT(w.peer.count, 21);
	close_world(&w);
}

TEST(what_nobody_answers_is_sent_again, "A2A-01")
{
	struct world w;

	open_world(&w);
	w.peer.failures = 7;
	put(&w, "a");
	put(&w, "b");
	settle(&w);
	CHECK_INT(w.peer.count, 9);
	for (size_t i = 0; i < 8; i++)
		heard(&w, i, "a");
	heard(&w, 8, "b");
	close_world(&w);
}

TEST(what_is_refused_lets_the_next_one_pass, "A2A-01")
{
	struct world w;

	open_world(&w);
	w.peer.refuse = "\"b\"";
	put(&w, "a");
	put(&w, "b");
	put(&w, "c");
	settle(&w);
	CHECK_INT(w.peer.count, 3);
	CHECK_INT(count_answers(&w, "refused: because"), 1);
	CHECK_INT(count_answers(&w, "delivered"), 2);
	close_world(&w);
}

TEST(an_unknown_peer_is_refused, "A2A-01")
{
	struct sent s;
	struct world w;

	open_world(&w);
	CHECK_INT(post(&w, &s, "a"), UAR_OK);
	s.mail.peer = UAR_STR("left");
	CHECK_INT(uar_mailer_deliver(w.parts.mailer, &s.mail), UAR_ENOTFOUND);
	uar_pump_until(&w.pump, &s.done);
	close_world(&w);
}

/* The peer has each message that was acknowledged, the first copies in order, and what
 * was answered before the process died is not sent again. */
TEST(a_kill_at_any_moment_loses_nothing, "A2A-01")
{
	for (size_t keep = 0; keep < 3; keep++)
		for (int turns = 0; turns < 40; turns++) {
			struct sent a, b;
			size_t answered;
			struct world w;

			open_world(&w);
			w.peer.failures = (unsigned)turns % 3;
			CHECK_INT(post(&w, &a, "a"), UAR_OK);
			CHECK_INT(post(&w, &b, "b"), UAR_OK);
			for (int i = 0; i < turns; i++) {
				uar_pump_turn(&w.pump);
				leap_ahead(&w.leap, &w.pump.sched, 1000000);
			}
			die(&w, keep);
			answered = count_answers(&w, "delivered");
			w.peer.failures = 0;
			w.peer.count = 0;
			rise(&w);
			settle(&w);
			CHECK_MSG(w.peer.count <= 2 - answered, "%zu %d", keep, turns);
			if (b.done && answered == 0)
				CHECK(w.peer.count == 2 && heard(&w, 0, "a") && heard(&w, 1, "b"));
			if (a.done)
				CHECK(count_answers(&w, "delivered") >= 1);
			if (b.done)
				CHECK_INT(count_answers(&w, "delivered"), 2);
			close_world(&w);
		}
}

/* So many wait that the last answer is far back in the log. */
TEST(a_long_queue_is_found_again, "A2A-01")
{
	struct world w;
	char id[8];

	open_world(&w);
	put(&w, "first");
	settle(&w);
	w.peer.silent = true;
	for (int i = 0; i < 300; i++) {
		snprintf(id, sizeof id, "m%d", i);
		put(&w, id);
	}
	uar_stage_settle(&w.pump);
	CHECK_INT(w.peer.count, 2);
	die(&w, 0);
	w.peer.silent = false;
	w.peer.count = 0;
	rise(&w);
	settle(&w);
	CHECK_INT(w.peer.count, 300);
	heard(&w, 0, "m0");
	heard(&w, 299, "m299");
	close_world(&w);
}

TEST(what_the_disk_does_not_take_is_tried_again, "A2A-01")
{
	struct world w;

	open_world(&w);
	put(&w, "a");
	while (!w.peer.d)
		uar_pump_turn(&w.pump);
	uar_store_memory_fail_next(w.store, UAR_EDISKFULL); /* of the answer */
	settle(&w);
	CHECK_INT(w.peer.count, 2);
	CHECK_INT(count_answers(&w, "delivered"), 1);
	close_world(&w);
}

/* A store in which one event is damaged: it cannot be read, or what it says makes no sense. */
enum { UNREAD, NO_JSON, NO_CONTENT, DAMAGES };

static struct {
	const struct uar_store_ops *sound;
	struct uar_store_ops ops;
	void (*done)(struct uar_read *r);
	unsigned how;
	uint64_t at;
} damage;

static void read_damaged(struct uar_read *r)
{
	bool all = damage.how == UNREAD && damage.at > r->after && damage.at <= r->after + r->limit;

	r->done = damage.done;
	for (size_t i = 0; i < r->event_count; i++) {
		struct uar_event *ev = (struct uar_event *)&r->events[i];

		if (ev->sequence != damage.at || all)
			continue;
		ev->tree = NULL;
		ev->payload = damage.how == NO_JSON
				      ? UAR_STR("{\"kind\":")
				      : UAR_STR("{\"message_id\":\"b\",\"kind\":\"a2a\","
						"\"direction\":\"out\"}");
	}
	if (all) {
		uar_store_read_fini(r);
		r->event_count = 0;
		r->err = UAR_ECORRUPT;
	}
	r->done(r);
}

static uar_err damaged_read(struct uar_store *s, struct uar_read *r)
{
	damage.done = r->done;
	r->done = read_damaged;
	return damage.sound->read(s, r);
}

static void set_damage(struct world *w, unsigned how, uint64_t at)
{
	damage.sound = w->store->ops;
	damage.ops = *w->store->ops;
	damage.ops.read = damaged_read;
	damage.how = how;
	damage.at = at;
	w->store->ops = &damage.ops;
}

TEST(what_cannot_be_read_holds_up_nobody, "A2A-01")
{
	for (unsigned how = 0; how < DAMAGES; how++)
		for (int restart = 0; restart < 2; restart++) {
			struct sent s[3];
			struct world w;

			open_world(&w);
			w.peer.silent = true;
			for (int i = 0; i < 3; i++)
				CHECK_INT(post(&w, &s[i], &"a\0b\0c"[2 * i]), UAR_OK);
			settle(&w);
			die(&w, 0);
			w.peer.silent = false;
			w.peer.count = 0;
			set_damage(&w, how, s[1].mail.sequence);
			rise(&w);
			settle(&w);
			if (restart) { /* the damage is still there, and passed */
				die(&w, 0);
				rise(&w);
				settle(&w);
			}
			CHECK_INT(w.peer.count, 2);
			heard(&w, 0, "a");
			heard(&w, 1, "c");
			w.store->ops = damage.sound;
			CHECK_INT(count_answers(&w, "refused: what is stored is damaged"), 1);
			CHECK_INT(count_answers(&w, "delivered"), 2);
			close_world(&w);
		}
}

static void drained(void *ctx)
{
	((struct world *)ctx)->drained = true;
}

TEST(a_drain_waits_for_no_peer, "A2A-01")
{
	for (int turns = 0; turns < 24; turns++) {
		struct sent s;
		struct world w;

		open_world(&w);
		w.peer.silent = turns % 2;
		w.peer.failures = turns % 3 == 0;
		CHECK_INT(post(&w, &s, "a"), UAR_OK);
		for (int i = 0; i < turns; i++)
			uar_pump_turn(&w.pump);
		uar_runtime_drain(w.rt, drained, &w);
		uar_pump_until(&w.pump, &w.drained);
		CHECK(!w.peer.d);
		close_world(&w);
	}
}
