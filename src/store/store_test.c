/* store_test.c - what the port promises about appends, asked of every implementation. */
#include "store/world_test.h"

#include "base/alloc.h"
#include "memory_store.h"

BOTH(append_and_read_back, "EVT-004")
{
	struct uar_facts f;

	CHECK_INT(begin(w, &f, 1), UAR_OK);
	CHECK_INT(go_on(w, &f, 1), UAR_OK);
	CHECK_INT(go_on(w, &f, 700), UAR_OK);
	for (int i = 0; i < 50; i++)
		CHECK_INT(go_on(w, &f, 3), UAR_OK);
	CHECK(uar_facts_all_there(&w->pump, w->store, &f));
	uar_facts_fini(&f);
}

BOTH(pages_begin_at_any_cursor, "")
{
	struct uar_facts f;

	CHECK_INT(begin(w, &f, 1), UAR_OK);
	for (size_t i = 1; i < 12; i++)
		CHECK_INT(go_on(w, &f, i), UAR_OK);
	for (uint64_t after = 0; after < f.run_seq + 3; after++) {
		struct uar_read r = {
			.owner = f.owner, .run_id = uar_str_c(f.run), .after = after, .limit = 7
		};
		uint64_t left = after < f.run_seq ? f.run_seq - after : 0;

		CHECK_INT(uar_facts_read(&w->pump, w->store, &r), UAR_OK);
		CHECK_INT(r.event_count, left < 7 ? left : 7);
		CHECK_INT(r.more, left > 7);
		for (size_t i = 0; i < r.event_count; i++) {
			CHECK_INT(r.events[i].run_sequence, after + 1 + i);
			CHECK_INT(r.events[i].sequence, after + 4 + i);
			CHECK_STR(r.events[i].ids[UAR_ID_ATTEMPT], f.run);
			CHECK_STR(r.events[i].ids[UAR_ID_RUNTIME], w->store->runtime_id);
		}
		uar_store_read_fini(&r);
	}
	uar_facts_fini(&f);
}

BOTH(the_guard_refuses_a_stale_decision, "EVT-004")
{
	struct uar_facts f, again;
	struct uar_store_stats st;
	struct one o;

	CHECK_INT(begin(w, &f, 1), UAR_OK);
	CHECK_INT(go_on(w, &f, 2), UAR_OK);
	/* The same place once more, a gap, a session that is not there, one that is. */
	rewind_to(&f, 3, 0);
	CHECK_INT(uar_facts_append(&w->pump, w->store, &one_delta(&f, &o)->a), UAR_ECONFLICT);
	rewind_to(&f, 10, 2);
	CHECK_INT(uar_facts_append(&w->pump, w->store, &one_delta(&f, &o)->a), UAR_ECONFLICT);
	rewind_to(&f, 5, 2);
	uar_facts_init(&again, w->store, 2);
	again.seq = 1;
	CHECK_INT(uar_facts_append(&w->pump, w->store, &one_delta(&again, &o)->a), UAR_ECONFLICT);
	CHECK(o.a.error.text[0]);
	uar_facts_fini(&again);
	uar_facts_init(&again, w->store, 1);
	CHECK_INT(uar_facts_begin(&w->pump, w->store, &again), UAR_ECONFLICT);
	uar_facts_fini(&again);
	w->store->ops->stats(w->store, &st);
	CHECK_INT(st.conflicts, 4);
	CHECK_INT(st.appends, 2);
	CHECK_INT(st.events, 5);
	CHECK(uar_facts_all_there(&w->pump, w->store, &f));
	uar_facts_fini(&f);
}

BOTH(what_is_wrong_in_itself_is_refused_at_once, "")
{
	struct uar_facts f;
	struct one o;
	struct uar_store *s = w->store;

	CHECK_INT(begin(w, &f, 1), UAR_OK);
#define REFUSED(SPOIL)                                                                             \
	do {                                                                                       \
		rewind_to(&f, 3, 0);                                                               \
		one_delta(&f, &o);                                                                 \
		SPOIL;                                                                             \
		CHECK_INT(s->ops->append(s, &o.a), UAR_EINVALID);                                  \
		CHECK_INT(o.a.error.code, UAR_EINVALID);                                           \
		CHECK(o.a.error.text[0]);                                                          \
	} while (0)
	REFUSED(o.a.event_count = 0);
	REFUSED(o.a.session_id = UAR_STR_NONE);
	REFUSED(o.a.owner.tenant = UAR_STR_NONE);
	REFUSED(o.ev.sequence++);
	REFUSED(o.ev.run_sequence = 0);
	REFUSED(o.ev.ids[UAR_ID_USER] = UAR_STR("bob"));
	REFUSED(o.ev.ids[UAR_ID_TENANT] = UAR_STR("evil"));
	REFUSED(o.ev.ids[UAR_ID_SESSION] = UAR_STR("other"));
	REFUSED(o.ev.ids[UAR_ID_RUNTIME] = UAR_STR("other"));
	rewind_to(&f, 3, 0);
	one_delta(&f, &o);
	o.ev.payload = UAR_STR("[1]");
	CHECK(s->ops->append(s, &o.a) != UAR_OK);
	rewind_to(&f, 3, 0);
	CHECK_INT(go_on(w, &f, 1), UAR_OK);
	CHECK(uar_facts_all_there(&w->pump, s, &f));
	uar_facts_fini(&f);
}

struct many {
	struct uar_append a;
	struct uar_event ev;
	struct uar_run_row row;
	struct uar_key_row key;
	size_t *done;
};

static void many_done(struct uar_append *a)
{
	++*UAR_OWNER(a, struct many, a)->done;
}

struct counted_read {
	struct uar_read r;
	size_t *done;
};

static void count_read(struct uar_read *r)
{
	++*UAR_OWNER(r, struct counted_read, r)->done;
}

/* Many more than are kept at a time for a loop that is busy elsewhere. */
BOTH(a_thousand_reads_at_once_are_all_answered, "")
{
	enum { READS = 1000 };
	struct counted_read *reads = uar_zalloc(READS * sizeof *reads);
	struct uar_facts f;
	size_t done = 0;

	REQUIRE(reads);
	CHECK_INT(begin(w, &f, 1), UAR_OK);
	for (size_t i = 0; i < READS; i++) {
		reads[i].r = (struct uar_read){ .owner = f.owner,
						.session_id = uar_str_c(f.session),
						.limit = 10,
						.done = count_read };
		reads[i].done = &done;
		CHECK_INT(w->store->ops->read(w->store, &reads[i].r), UAR_OK);
	}
	uar_pump_count(&w->pump, &done, READS);
	for (size_t i = 0; i < READS; i++) {
		CHECK_INT(reads[i].r.err, UAR_OK);
		CHECK_INT((long long)reads[i].r.event_count, 3);
		uar_store_read_fini(&reads[i].r);
	}
	uar_free(reads);
	uar_facts_fini(&f);
}

/* Appends that do not wait for each other: the next follows what the last will be. */
BOTH(sessions_interleave_and_appends_pipeline, "")
{
	enum { SESSIONS = 20, ROUNDS = 30 };
	struct uar_facts f[SESSIONS];
	struct many *m = uar_zalloc(SESSIONS * ROUNDS * sizeof *m);
	size_t done = 0;

	for (size_t i = 0; i < SESSIONS; i++)
		CHECK_INT(begin(w, &f[i], i + 1), UAR_OK);
	for (size_t i = 0; i < SESSIONS * ROUNDS; i++) {
		struct uar_facts *of = &f[i % SESSIONS];

		m[i].done = &done;
		m[i].a = (struct uar_append){ .owner = of->owner,
					      .session_id = uar_str_c(of->session),
					      .after = of->seq,
					      .events = &m[i].ev,
					      .event_count = 1,
					      .done = many_done };
		m[i].ev = uar_facts_delta(of, "hello");
		CHECK_INT(w->store->ops->append(w->store, &m[i].a), UAR_OK);
	}
	uar_pump_count(&w->pump, &done, SESSIONS * ROUNDS);
	for (size_t i = 0; i < SESSIONS * ROUNDS; i++)
		CHECK_INT(m[i].a.err, UAR_OK);
	for (size_t i = 0; i < SESSIONS; i++) {
		CHECK(uar_facts_all_there(&w->pump, w->store, &f[i]));
		uar_facts_fini(&f[i]);
	}
	uar_free(m);
}

static void begin_of_owner(struct world *w, struct uar_owner owner, uint64_t number)
{
	struct uar_facts f;

	uar_facts_init(&f, w->store, number);
	f.owner = owner;
	CHECK_INT(uar_facts_begin(&w->pump, w->store, &f), UAR_OK);
	uar_facts_fini(&f);
}

/* The same id of another owner is another thing, or none. */
BOTH(owners_do_not_see_each_other, "TEN-01")
{
	struct uar_facts f, foreign;
	struct one o;

	CHECK_INT(begin(w, &f, 1), UAR_OK);
	for (int i = 0; i < 3; i++) {
		struct uar_owner other = f.owner;
		struct uar_read r = { .run_id = uar_str_c(f.run), .limit = 1 };
		struct uar_runs_query q = { .run_id = uar_str_c(f.run) };
		struct uar_thread_query t = { .thread_id = uar_str_c(f.thread) };

		*(i == 0 ? &other.tenant : i == 1 ? &other.workspace : &other.user) = UAR_STR("x");
		begin_of_owner(w, other, 10 + (uint64_t)i); /* an owner that the store knows */
		r.owner = q.owner = t.owner = other;
		CHECK_INT(uar_facts_read(&w->pump, w->store, &r), UAR_ENOTFOUND);
		CHECK_INT(r.event_count, 0);
		uar_store_read_fini(&r);
		r = (struct uar_read){ .session_id = uar_str_c(f.session),
				       .limit = 1,
				       .owner = other };
		CHECK_INT(uar_facts_read(&w->pump, w->store, &r), UAR_ENOTFOUND);
		uar_store_read_fini(&r);
		CHECK_INT(uar_facts_runs(&w->pump, w->store, &q), UAR_ENOTFOUND);
		uar_store_query_fini(&q);
		q = (struct uar_runs_query){ .owner = other, .limit = 10 };
		CHECK_INT(uar_facts_runs(&w->pump, w->store, &q), UAR_OK);
		CHECK_INT(q.row_count, 1);
		uar_store_query_fini(&q);
		CHECK_INT(uar_facts_thread(&w->pump, w->store, &t), UAR_ENOTFOUND);
	}
	/* A stranger who goes on with the session finds none; one who begins it has his own. */
	uar_facts_init(&foreign, w->store, 1);
	foreign.owner = uar_facts_stranger;
	foreign.seq = f.seq;
	CHECK_INT(uar_facts_append(&w->pump, w->store, &one_delta(&foreign, &o)->a), UAR_ECONFLICT);
	uar_facts_fini(&foreign);
	uar_facts_init(&foreign, w->store, 1);
	foreign.owner = uar_facts_stranger;
	CHECK_INT(uar_facts_begin(&w->pump, w->store, &foreign), UAR_OK);
	CHECK_INT(uar_facts_go_on(&w->pump, w->store, &foreign, 4), UAR_OK);
	CHECK(uar_facts_all_there(&w->pump, w->store, &foreign));
	CHECK(uar_facts_all_there(&w->pump, w->store, &f));
	uar_facts_fini(&foreign);
	uar_facts_fini(&f);
}

static uar_err claim(struct world *w, uint64_t number, const struct uar_key_row *key,
		     struct uar_owner owner, struct uar_append *a)
{
	struct uar_facts f;
	struct uar_event ev[3];
	struct uar_run_row row;
	uar_err e;

	uar_facts_init(&f, w->store, number);
	f.owner = owner;
	row = uar_facts_row(&f, "queued", false);
	*a = (struct uar_append){ .owner = owner,
				  .session_id = uar_str_c(f.session),
				  .events = ev,
				  .run = &row,
				  .key = key };
	a->event_count = uar_facts_opening(&f, ev);
	e = uar_facts_append(&w->pump, w->store, a);
	uar_facts_fini(&f);
	return e;
}

BOTH(a_key_belongs_to_one_request, "")
{
	struct uar_key_row key = { UAR_STR("runs"), UAR_STR("k1"), UAR_STR("print"),
				   UAR_STR("run-1") };
	struct uar_thread_query t = { .owner = uar_facts_owner };
	struct uar_facts f;
	struct uar_append a;

	CHECK_INT(claim(w, 1, &key, uar_facts_owner, &a), UAR_OK);
	CHECK_INT(claim(w, 2, &key, uar_facts_owner, &a), UAR_EEXISTS);
	key.fingerprint = UAR_STR("other");
	key.made = UAR_STR("run-2");
	CHECK_INT(claim(w, 3, &key, uar_facts_owner, &a), UAR_EEXISTS);
	/* Another scope, another key, another owner: free. */
	key.scope = UAR_STR("turns");
	CHECK_INT(claim(w, 4, &key, uar_facts_owner, &a), UAR_OK);
	key.scope = UAR_STR("runs");
	key.key = UAR_STR("k2");
	CHECK_INT(claim(w, 5, &key, uar_facts_owner, &a), UAR_OK);
	key.key = UAR_STR("k1");
	CHECK_INT(claim(w, 6, &key, uar_facts_stranger, &a), UAR_OK);
	/* Who lost left nothing behind. */
	uar_facts_init(&f, w->store, 2);
	t.session_id = uar_str_c(f.session);
	CHECK_INT(uar_facts_thread(&w->pump, w->store, &t), UAR_ENOTFOUND);
	uar_facts_fini(&f);
}

BOTH(a_key_is_looked_up_below_its_owner, "RUN-40")
{
	struct uar_key_row key = { UAR_STR("runs"), UAR_STR("k1"), UAR_STR("print"),
				   UAR_STR("run-1") };
	struct uar_key_query q = { .owner = uar_facts_owner,
				   .scope = UAR_STR("runs"),
				   .key = UAR_STR("k1") };
	struct uar_append a;

	CHECK_INT(uar_facts_key(&w->pump, w->store, &q), UAR_ENOTFOUND);
	CHECK_INT(claim(w, 1, &key, uar_facts_owner, &a), UAR_OK);
	CHECK_INT(uar_facts_key(&w->pump, w->store, &q), UAR_OK);
	CHECK_STR(uar_str_c(q.fingerprint), "print");
	CHECK_STR(uar_str_c(q.made), "run-1");
	q.scope = UAR_STR("retry");
	CHECK_INT(uar_facts_key(&w->pump, w->store, &q), UAR_ENOTFOUND);
	q.scope = UAR_STR("runs");
	q.owner = uar_facts_stranger;
	CHECK_INT(uar_facts_key(&w->pump, w->store, &q), UAR_ENOTFOUND);
}

static struct uar_key_row seen;
static void look_at_taken(struct uar_append *a)
{
	static char text[2][48];

	if (a->err == UAR_EEXISTS) {
		snprintf(text[0], sizeof text[0], "%.*s", UAR_FMT(a->taken.fingerprint));
		snprintf(text[1], sizeof text[1], "%.*s", UAR_FMT(a->taken.made));
		seen.fingerprint = uar_str_c(text[0]);
		seen.made = uar_str_c(text[1]);
	}
	many_done(a);
}

BOTH(of_64_duplicates_one_wins, "")
{
	enum { N = 64 };
	struct many *m = uar_zalloc(N * sizeof *m);
	struct uar_facts f[N];
	struct uar_event ev[N][3];
	size_t done = 0, won = 0;

	seen = (struct uar_key_row){ .scope = UAR_STR_NONE };
	for (size_t i = 0; i < N; i++) {
		uar_facts_init(&f[i], w->store, 100 + i);
		m[i].done = &done;
		m[i].row = uar_facts_row(&f[i], "queued", false);
		m[i].key = (struct uar_key_row){ UAR_STR("runs"), UAR_STR("same"), UAR_STR("print"),
						 uar_str_c(f[i].run) };
		m[i].a = (struct uar_append){ .owner = f[i].owner,
					      .session_id = uar_str_c(f[i].session),
					      .events = ev[i],
					      .run = &m[i].row,
					      .key = &m[i].key,
					      .done = look_at_taken };
		m[i].a.event_count = uar_facts_opening(&f[i], ev[i]);
		CHECK_INT(w->store->ops->append(w->store, &m[i].a), UAR_OK);
	}
	uar_pump_count(&w->pump, &done, N);
	for (size_t i = 0; i < N; i++) {
		won += m[i].a.err == UAR_OK;
		CHECK(m[i].a.err == UAR_OK || m[i].a.err == UAR_EEXISTS);
	}
	CHECK_INT(won, 1);
	CHECK_INT(m[0].a.err, UAR_OK);
	CHECK_STR(seen.fingerprint, "print");
	CHECK_STR(seen.made, f[0].run);
	for (size_t i = 0; i < N; i++)
		uar_facts_fini(&f[i]);
	uar_free(m);
}

BOTH(a_run_row_is_replaced_until_it_ends, "")
{
	struct uar_facts f;
	struct uar_run_row row;
	struct uar_runs_query q;

	CHECK_INT(begin(w, &f, 1), UAR_OK);
	row = uar_facts_row(&f, "running", false);
	row.started_us = 7;
	row.attempt = 2;
	row.agent_id = UAR_STR("other");
	row.detail = UAR_STR("{\"title\":\"new\"}");
	CHECK_INT(set_row(w, &f, &row), UAR_OK);
	q = (struct uar_runs_query){ .owner = f.owner, .run_id = uar_str_c(f.run) };
	CHECK_INT(uar_facts_runs(&w->pump, w->store, &q), UAR_OK);
	REQUIRE(q.row_count == 1);
	CHECK_STR(q.rows[0].status, "running");
	CHECK_STR(q.rows[0].session_id, f.session);
	CHECK_STR(q.rows[0].thread_id, f.thread);
	CHECK_STR(q.rows[0].turn_id, f.turn);
	CHECK_STR(q.rows[0].task_id, f.task);
	CHECK_STR(q.rows[0].plugin_id, "core");
	CHECK_STR(q.rows[0].entry_id, "llm.chat");
	CHECK_STR(q.rows[0].agent_id, "other");
	CHECK_STR(q.rows[0].root_run_id, f.run);
	CHECK_STR(q.rows[0].parent_run_id, "");
	CHECK_STR(q.rows[0].detail, "{\"title\":\"new\"}");
	CHECK_STR(q.rows[0].owner.user, "ann");
	CHECK_INT(q.rows[0].attempt, 2);
	CHECK_INT(q.rows[0].started_us, 7);
	CHECK_INT(q.rows[0].terminal, false);
	CHECK_INT(q.rows[0].last_run_sequence, 1);
	uar_store_query_fini(&q);

	/* What it is made of never changes, nor does its end. */
	row.turn_id = UAR_STR("elsewhere");
	CHECK_INT(set_row(w, &f, &row), UAR_EINVALID);
	row = uar_facts_row(&f, "completed", true);
	CHECK_INT(set_row(w, &f, &row), UAR_OK);
	row.terminal = false;
	CHECK_INT(set_row(w, &f, &row), UAR_ESTATE);
	row = uar_facts_row(&f, "failed", true);
	CHECK_INT(set_row(w, &f, &row), UAR_ESTATE);
	row = uar_facts_row(&f, "completed", true);
	row.detail = UAR_STR("{}");
	CHECK_INT(set_row(w, &f, &row), UAR_OK);
	CHECK(uar_facts_all_there(&w->pump, w->store, &f));
	uar_facts_fini(&f);
}

BOTH(events_of_a_run_need_its_row, "")
{
	struct uar_facts f, other;
	struct one o;

	CHECK_INT(begin(w, &f, 1), UAR_OK);
	CHECK_INT(begin(w, &other, 2), UAR_OK);
	one_delta(&f, &o);
	o.ev.ids[UAR_ID_RUN] = o.ev.ids[UAR_ID_ATTEMPT] = UAR_STR("nobody");
	CHECK_INT(uar_facts_append(&w->pump, w->store, &o.a), UAR_ENOTFOUND);
	o.ev.ids[UAR_ID_RUN] = o.ev.ids[UAR_ID_ATTEMPT] = uar_str_c(other.run);
	CHECK_INT(uar_facts_append(&w->pump, w->store, &o.a), UAR_EINVALID);
	o.ev.ids[UAR_ID_RUN] = o.ev.ids[UAR_ID_ATTEMPT] = uar_str_c(f.run);
	o.ev.run_sequence = 2;
	CHECK_INT(uar_facts_append(&w->pump, w->store, &o.a), UAR_ECONFLICT);
	o.ev.run_sequence = 1;
	CHECK_INT(uar_facts_append(&w->pump, w->store, &o.a), UAR_OK);
	CHECK(uar_facts_all_there(&w->pump, w->store, &f));
	uar_facts_fini(&f);
	uar_facts_fini(&other);
}

/* Ids that are not the run's own come back exactly as they went in. */
BOTH(odd_ids_survive, "")
{
	struct uar_facts f;
	struct uar_event ev[6];
	struct uar_append a;
	struct uar_read r;

	CHECK_INT(begin(w, &f, 1), UAR_OK);
	a = (struct uar_append){ .owner = f.owner,
				 .session_id = uar_str_c(f.session),
				 .after = f.seq,
				 .events = ev,
				 .event_count = 6 };
	for (int i = 0; i < 6; i++)
		ev[i] = uar_facts_delta(&f, "hello");
	ev[1].ids[UAR_ID_ATTEMPT] = UAR_STR("own-attempt");
	ev[2].ids[UAR_ID_TURN] = UAR_STR("other-turn");
	ev[3].ids[UAR_ID_TASK] = UAR_STR("other-task");
	ev[3].ids[UAR_ID_THREAD] = UAR_STR("other-thread");
	ev[4].ids[UAR_ID_STEP] = UAR_STR("step");
	ev[4].ids[UAR_ID_MODEL_REQUEST] = UAR_STR("request");
	ev[4].ids[UAR_ID_TRACE] = UAR_STR("0123456789abcdef0123456789abcdef");
	ev[4].refs = UAR_STR("{\"raw_ref\":\"raw://request\"}");
	CHECK_INT(uar_facts_append(&w->pump, w->store, &a), UAR_OK);
	r = (struct uar_read){ .owner = f.owner, .run_id = uar_str_c(f.run), .limit = 10 };
	CHECK_INT(uar_facts_read(&w->pump, w->store, &r), UAR_OK);
	REQUIRE(r.event_count == 6);
	for (int i = 0; i < 6; i++) {
		for (int id = 0; id < UAR_ID_COUNT; id++)
			CHECK_MSG(uar_str_eq(r.events[i].ids[id], ev[i].ids[id]), "%d %s", i,
				  uar_id_field((enum uar_id)id));
		CHECK(uar_str_eq(r.events[i].refs, ev[i].refs));
		CHECK_INT(r.events[i].sequence, ev[i].sequence);
	}
	uar_store_read_fini(&r);
	uar_facts_fini(&f);
}

/* --- the memory store's own doors ------------------------------------------------ */
TEST(memory_faults_on_demand, "")
{
	struct world w;
	struct uar_facts f;
	struct uar_store_stats st;

	open_world(&w, false);
	CHECK_INT(begin(&w, &f, 1), UAR_OK);
	uar_store_memory_fail_next(w.store, UAR_EDISKFULL);
	CHECK_INT(go_on(&w, &f, 1), UAR_EDISKFULL);
	w.store->ops->stats(w.store, &st);
	CHECK_INT(st.health, UAR_STORE_FULL);
	rewind_to(&f, 3, 0);
	CHECK_INT(go_on(&w, &f, 1), UAR_OK);
	w.store->ops->stats(w.store, &st);
	CHECK_INT(st.health, UAR_STORE_FINE);
	CHECK(uar_facts_all_there(&w.pump, w.store, &f));
	uar_store_memory_fail_next(w.store, UAR_ESYNC);
	CHECK_INT(go_on(&w, &f, 1), UAR_ESYNC);
	CHECK_INT(go_on(&w, &f, 1), UAR_ESYNC);
	uar_store_memory_crash(w.store, 0);
	rewind_to(&f, 4, 1);
	uar_store_memory_fail_next(w.store, UAR_EUNKNOWN);
	CHECK_INT(go_on(&w, &f, 1), UAR_EUNKNOWN);
	CHECK_INT(go_on(&w, &f, 1), UAR_ESYNC);
	uar_store_memory_crash(w.store, 0);
	rewind_to(&f, 5, 2);
	CHECK(uar_facts_all_there(&w.pump, w.store, &f)); /* it had happened */
	uar_facts_fini(&f);
	close_world(&w);
}

TEST(memory_dies_and_comes_back, "")
{
	struct world w;
	struct uar_facts f;
	struct many m[4] = { 0 };
	size_t done = 0;

	open_world(&w, false);
	CHECK_INT(begin(&w, &f, 1), UAR_OK);
	for (int i = 0; i < 4; i++) {
		m[i].done = &done;
		m[i].a = (struct uar_append){ .owner = f.owner,
					      .session_id = uar_str_c(f.session),
					      .after = f.seq,
					      .events = &m[i].ev,
					      .event_count = 1,
					      .done = many_done };
		m[i].ev = uar_facts_delta(&f, "hello");
		CHECK_INT(w.store->ops->append(w.store, &m[i].a), UAR_OK);
	}
	CHECK_INT(uar_store_memory_waiting(w.store), 4);
	uar_store_memory_crash(w.store, 2);
	while (uar_pump_turn(&w.pump))
		;
	CHECK_INT(done, 0);
	rewind_to(&f, f.seq - 2, f.run_seq - 2);
	CHECK(uar_facts_all_there(&w.pump, w.store, &f));
	CHECK_INT(go_on(&w, &f, 1), UAR_OK);
	uar_facts_fini(&f);
	close_world(&w);
}

/* Two runs of one session, event by event; each is read alone from any cursor. */
static void check_cursor(struct world *w, const struct uar_facts *f, uint64_t after)
{
	struct uar_read r = {
		.owner = f->owner, .run_id = uar_str_c(f->run), .after = after, .limit = 5
	};
	uint64_t left = after < f->run_seq ? f->run_seq - after : 0;

	CHECK_INT(uar_facts_read(&w->pump, w->store, &r), UAR_OK);
	CHECK_INT(r.event_count, left < 5 ? left : 5);
	CHECK_INT(r.more, left > 5);
	for (size_t i = 0; i < r.event_count; i++) {
		CHECK_INT(r.events[i].run_sequence, after + 1 + i);
		CHECK_STR(r.events[i].ids[UAR_ID_RUN], f->run);
	}
	uar_store_read_fini(&r);
}

BOTH(runs_of_one_session_are_read_apart, "")
{
	struct uar_rand_seeded seed;
	struct uar_rand rand = uar_rand_seed(&seed, 3);
	struct uar_facts f[2];
	struct uar_run_row row;
	struct uar_runs_query q;

	CHECK_INT(begin(w, &f[0], 1), UAR_OK);
	uar_facts_init(&f[1], w->store, 2);
	snprintf(f[1].session, sizeof f[1].session, "%s", f[0].session);
	f[1].seq = f[0].seq;
	row = uar_facts_row(&f[1], "running", false);
	CHECK_INT(set_row(w, &f[1], &row), UAR_OK);
	for (int i = 0; i < 60; i++) {
		struct uar_facts *one = &f[uar_rand_below(&rand, 2)];

		one->seq = f[0].seq > f[1].seq ? f[0].seq : f[1].seq;
		CHECK_INT(go_on(w, one, 1 + uar_rand_below(&rand, 4)), UAR_OK);
		check_cursor(w, one, uar_rand_below(&rand, one->run_seq + 2));
	}
	for (int i = 0; i < 300; i++) {
		struct uar_facts *one = &f[uar_rand_below(&rand, 2)];

		check_cursor(w, one, uar_rand_below(&rand, one->run_seq + 2));
	}
	for (int i = 0; i < 2; i++) {
		for (uint64_t after = 0; after <= f[i].run_seq; after += 5)
			check_cursor(w, &f[i], after);
		q = (struct uar_runs_query){ .owner = f[i].owner, .run_id = uar_str_c(f[i].run) };
		CHECK_INT(uar_facts_runs(&w->pump, w->store, &q), UAR_OK);
		CHECK_INT(q.rows[0].last_run_sequence, f[i].run_seq);
		uar_store_query_fini(&q);
	}
	/* One ends; what still comes of it is counted all the same. */
	f[0].seq = f[0].seq > f[1].seq ? f[0].seq : f[1].seq;
	row = uar_facts_row(&f[0], "completed", true);
	CHECK_INT(set_row(w, &f[0], &row), UAR_OK);
	CHECK_INT(go_on(w, &f[0], 2), UAR_OK);
	q = (struct uar_runs_query){ .owner = f[0].owner, .run_id = uar_str_c(f[0].run) };
	CHECK_INT(uar_facts_runs(&w->pump, w->store, &q), UAR_OK);
	CHECK_INT(q.rows[0].last_run_sequence, f[0].run_seq);
	uar_store_query_fini(&q);
	check_cursor(w, &f[0], f[0].run_seq - 3);
	uar_facts_fini(&f[0]);
	uar_facts_fini(&f[1]);
}
