/* rows_test.c - what the port promises about rows of declared kinds, and sessions. */
#include "event/limits.h"
#include "store/world_test.h"

static bool told;

static void rows_done(struct uar_rows_query *q)
{
	(void)q;
	told = true;
}

static uar_err ask(struct world *w, struct uar_rows_query *q)
{
	uar_err e;

	q->owner = q->owner.tenant.n ? q->owner : uar_facts_owner;
	q->limit = q->limit ? q->limit : 100;
	q->done = rows_done;
	told = false;
	e = w->store->ops->rows(w->store, q);
	if (e)
		return e;
	uar_pump_until(&w->pump, &told);
	return q->err;
}

static size_t count(struct world *w, struct uar_rows_query *q)
{
	size_t n;

	CHECK_INT(ask(w, q), UAR_OK);
	n = q->row_count;
	uar_store_rows_fini(q);
	return n;
}
#define COUNT(...) count(w, &(struct uar_rows_query){ .kind = UAR_ROW_TASK, __VA_ARGS__ })

static struct uar_row task_row(const char *id)
{
	return (struct uar_row){ .kind = UAR_ROW_TASK,
				 .id = uar_str_c(id),
				 .status = UAR_STR("running"),
				 .created_us = 5,
				 .updated_us = 7,
				 .body = UAR_STR("{\"title\":\"x\"}") };
}

static uar_err put(struct world *w, struct uar_facts *f, const struct uar_row *rows, size_t n)
{
	struct one o;
	uar_err e;

	one_delta(f, &o);
	o.a.rows = rows;
	o.a.row_count = n;
	e = uar_facts_append(&w->pump, w->store, &o.a);
	if (e)
		rewind_to(f, f->seq - 1, f->run_seq - 1);
	return e;
}

BOTH(a_row_is_written_with_its_events, "")
{
	struct uar_rows_query q = { .kind = UAR_ROW_TASK, .id = UAR_STR("t1") };
	struct uar_row row = task_row("t1");
	struct uar_facts f;

	REQUIRE(begin(w, &f, 1) == UAR_OK);
	CHECK_INT(ask(w, &q), UAR_ENOTFOUND);
	CHECK_STR(uar_str_c(q.error.text), "no task t1");
	row.parent = UAR_STR("t0");
	row.tag = UAR_STR("th");
	row.open = row.fresh = true;
	row.due_us = 99;
	row.rank = -3;
	CHECK_INT(put(w, &f, &row, 1), UAR_OK);
	CHECK_INT(ask(w, &q), UAR_OK);
	REQUIRE(q.row_count == 1);
	CHECK_STR(q.rows[0].session_id, f.session);
	CHECK_STR(q.rows[0].parent, "t0");
	CHECK_STR(q.rows[0].tag, "th");
	CHECK_STR(q.rows[0].body, "{\"title\":\"x\"}");
	CHECK(q.rows[0].open);
	CHECK_INT(q.rows[0].due_us, 99);
	CHECK_INT(q.rows[0].rank, -3);
	CHECK_INT(q.rows[0].through, f.seq);
	CHECK(uar_owner_eq(&q.rows[0].owner, &uar_facts_owner));
	uar_store_rows_fini(&q);
	CHECK_INT(put(w, &f, &row, 1), UAR_ECONFLICT); /* it is not fresh any more */
	row.fresh = false;
	row.status = UAR_STR("completed");
	CHECK_INT(put(w, &f, &row, 1), UAR_OK);
	CHECK_INT(COUNT(.status = UAR_STR("completed")), 1);
	CHECK_INT(COUNT(.status = UAR_STR("running")), 0);
	row.removed = true;
	CHECK_INT(put(w, &f, &row, 1), UAR_OK);
	CHECK_INT(put(w, &f, &row, 1), UAR_OK);
	CHECK_INT(ask(w, &q), UAR_ENOTFOUND);
	uar_facts_fini(&f);
}

BOTH(an_append_that_is_refused_writes_no_row, "")
{
	struct uar_row rows[] = { task_row("t1"), task_row("t2") };
	struct uar_facts f, other;
	struct one o;

	REQUIRE(begin(w, &f, 1) == UAR_OK);
	REQUIRE(begin(w, &other, 2) == UAR_OK);
	one_delta(&f, &o);
	o.a.after++;
	o.ev.sequence++;
	o.a.rows = rows;
	o.a.row_count = 2;
	CHECK_INT(uar_facts_append(&w->pump, w->store, &o.a), UAR_ECONFLICT);
	rewind_to(&f, f.seq - 1, f.run_seq - 1);
	CHECK_INT(COUNT(.limit = 10), 0);
	CHECK_INT(put(w, &f, rows, 1), UAR_OK);
	CHECK_INT(put(w, &other, rows, 2), UAR_ECONFLICT); /* t1 lives in another session */
	CHECK_INT(COUNT(.limit = 10), 1);
	rows[0].removed = true;
	CHECK_INT(put(w, &other, rows, 1), UAR_ECONFLICT);
	CHECK_INT(COUNT(.limit = 10), 1);
	rows[0].foreign = true;
	CHECK_INT(put(w, &other, rows, 1), UAR_OK);
	CHECK_INT(COUNT(.limit = 10), 0);
	rows[0].removed = rows[0].foreign = false;
	CHECK_INT(put(w, &f, rows, 1), UAR_OK);
	rows[0].id = UAR_STR("");
	CHECK_INT(put(w, &f, rows, 1), UAR_EINVALID);
	rows[0] = task_row("t3");
	rows[0].body = UAR_STR_NONE;
	CHECK_INT(put(w, &f, rows, 1), UAR_EINVALID);
	uar_facts_fini(&f);
	uar_facts_fini(&other);
}

BOTH(rows_of_another_owner_do_not_exist, "")
{
	struct uar_rows_query q = { .kind = UAR_ROW_TASK,
				    .id = UAR_STR("t1"),
				    .owner = uar_facts_stranger };
	struct uar_row row = task_row("t1");
	struct uar_facts f, theirs;

	REQUIRE(begin(w, &f, 1) == UAR_OK);
	uar_facts_init(&theirs, w->store, 2);
	theirs.owner = uar_facts_stranger;
	REQUIRE(uar_facts_begin(&w->pump, w->store, &theirs) == UAR_OK);
	CHECK_INT(put(w, &f, &row, 1), UAR_OK);
	CHECK_INT(ask(w, &q), UAR_ENOTFOUND);
	CHECK_INT(COUNT(.owner = uar_facts_stranger), 0);
	row.fresh = true;
	CHECK_INT(put(w, &theirs, &row, 1), UAR_OK); /* the same id, below another owner */
	CHECK_INT(COUNT(.owner = uar_facts_stranger), 1);
	CHECK_INT(COUNT(.limit = 9), 1);
	uar_facts_fini(&f);
	uar_facts_fini(&theirs);
}

BOTH(lists_of_rows_filter_and_turn_pages, "")
{
	enum { N = 20 };
	struct uar_row rows[N];
	struct uar_rows_query q;
	char ids[N][8], cursor[64] = "";
	struct uar_facts f;
	size_t seen = 0;

	REQUIRE(begin(w, &f, 1) == UAR_OK);
	for (size_t i = 0; i < N; i++) {
		snprintf(ids[i], sizeof ids[i], "t%02zu", i);
		rows[i] = task_row(ids[i]);
		rows[i].updated_us = (int64_t)(i / 2); /* two of each */
		rows[i].rank = (int64_t)(N - i);
		rows[i].parent = i % 4 ? UAR_STR("p1") : UAR_STR_NONE;
		rows[i].tag = i % 5 ? UAR_STR_NONE : UAR_STR("a");
		rows[i].status = i % 2 ? UAR_STR("running") : UAR_STR("failed");
		rows[i].open = i < 3;
	}
	CHECK_INT(put(w, &f, rows, N), UAR_OK);
	CHECK_INT(COUNT(.parent = UAR_STR("p1")), 15);
	CHECK_INT(COUNT(.tag = UAR_STR("a")), 4);
	CHECK_INT(COUNT(.status = UAR_STR("failed")), 10);
	CHECK_INT(COUNT(.status = UAR_STR("failed"), .parent = UAR_STR("p1")), 5);
	CHECK_INT(COUNT(.open = UAR_ROWS_OPEN), 3);
	CHECK_INT(COUNT(.open = UAR_ROWS_CLOSED), 17);
	CHECK_INT(COUNT(.session_id = uar_str_c(f.session)), N);
	CHECK_INT(COUNT(.session_id = UAR_STR("none")), 0);
	CHECK_INT(count(w, &(struct uar_rows_query){ .kind = UAR_ROW_EDGE }), 0);
	do {
		q = (struct uar_rows_query){ .kind = UAR_ROW_TASK,
					     .after = uar_str_c(cursor),
					     .limit = 3 };
		REQUIRE(ask(w, &q) == UAR_OK);
		for (size_t i = 0; i < q.row_count; i++)
			CHECK_STR(q.rows[i].id, ids[N - 1 - seen - i]);
		seen += q.row_count;
		CHECK_INT(q.more, seen < N);
		snprintf(cursor, sizeof cursor, "%.*s", UAR_FMT(q.next));
		uar_store_rows_fini(&q);
	} while (seen < N && q.more);
	CHECK_INT(seen, N);
	for (seen = 0, cursor[0] = 0; seen < N;) {
		q = (struct uar_rows_query){ .kind = UAR_ROW_TASK,
					     .order = UAR_ROWS_RANK,
					     .after = uar_str_c(cursor),
					     .limit = 7 };
		REQUIRE(ask(w, &q) == UAR_OK);
		REQUIRE(q.row_count > 0);
		for (size_t i = 0; i < q.row_count; i++)
			CHECK_STR(q.rows[i].id, ids[N - 1 - seen - i]);
		snprintf(cursor, sizeof cursor, "%.*s", UAR_FMT(q.next));
		seen += q.row_count;
		uar_store_rows_fini(&q);
	}
	q = (struct uar_rows_query){ .kind = UAR_ROW_TASK, .after = UAR_STR("x.y") };
	CHECK_INT(ask(w, &q), UAR_ECURSOR);
	uar_facts_fini(&f);
}

/* --- sessions ------------------------------------------------------------------------- */

static void sessions_done(struct uar_sessions_query *q)
{
	(void)q;
	told = true;
}

static uar_err ask_sessions(struct world *w, struct uar_sessions_query *q)
{
	uar_err e;

	q->done = sessions_done;
	told = false;
	e = w->store->ops->sessions(w->store, q);
	if (e)
		return e;
	uar_pump_until(&w->pump, &told);
	return q->err;
}

BOTH(open_sessions_are_listed_in_pages, "")
{
	enum { N = 7 };
	struct uar_facts f[N];
	struct uar_row row = task_row("t1");
	char cursor[64] = "";
	struct uar_sessions_query q;
	size_t seen = 0;

	for (size_t i = 0; i < N; i++) {
		struct uar_run_row ended;

		REQUIRE(begin(w, &f[i], i + 1) == UAR_OK);
		ended = uar_facts_row(&f[i], "completed", true);
		if (i != 2 && i != 4)
			CHECK_INT(set_row(w, &f[i], &ended), UAR_OK);
	}
	row.open = true;
	CHECK_INT(put(w, &f[2], &row, 1), UAR_OK); /* a run and a row: once */
	row.id = UAR_STR("t5");
	CHECK_INT(put(w, &f[5], &row, 1), UAR_OK); /* a row alone */
	row.id = UAR_STR("t6");
	row.open = false;
	CHECK_INT(put(w, &f[6], &row, 1), UAR_OK);
	do {
		q = (struct uar_sessions_query){ .limit = 2, .after = uar_str_c(cursor) };
		REQUIRE(ask_sessions(w, &q) == UAR_OK);
		for (size_t i = 0; i < q.count; i++) {
			bool known = uar_str_is(q.sessions[i].session_id, f[2].session) ||
				     uar_str_is(q.sessions[i].session_id, f[4].session) ||
				     uar_str_is(q.sessions[i].session_id, f[5].session);

			CHECK(known);
			CHECK(uar_owner_eq(&q.sessions[i].owner, &uar_facts_owner));
		}
		seen += q.count;
		snprintf(cursor, sizeof cursor, "%.*s", UAR_FMT(q.next));
		uar_store_sessions_fini(&q);
	} while (q.more);
	CHECK_INT(seen, 3);
	for (size_t i = 0; i < N; i++)
		uar_facts_fini(&f[i]);
}

BOTH(the_session_that_is_due_first_comes_first, "")
{
	struct uar_sessions_query q = { .which = UAR_SESSIONS_DUE, .limit = 10 };
	struct uar_row rows[] = { task_row("t1"), task_row("t2"), task_row("t3") };
	struct uar_facts a, b;

	REQUIRE(begin(w, &a, 1) == UAR_OK);
	REQUIRE(begin(w, &b, 2) == UAR_OK);
	REQUIRE(ask_sessions(w, &q) == UAR_OK);
	CHECK_INT(q.count, 0);
	uar_store_sessions_fini(&q);
	rows[0].due_us = 50;
	rows[1].due_us = 20;
	CHECK_INT(put(w, &a, rows, 2), UAR_OK);
	rows[2].due_us = 30;
	CHECK_INT(put(w, &b, rows + 2, 1), UAR_OK);
	REQUIRE(ask_sessions(w, &q) == UAR_OK);
	REQUIRE(q.count == 2);
	CHECK_STR(q.sessions[0].session_id, a.session);
	CHECK_INT(q.sessions[0].due_us, 20);
	CHECK_STR(q.sessions[1].session_id, b.session);
	CHECK_INT(q.sessions[1].due_us, 30);
	uar_store_sessions_fini(&q);
	uar_facts_fini(&a);
	uar_facts_fini(&b);
}

/* Keys of commands are free again after a while, and their rows do not pile up. */
TEST(sqlite_outcomes_are_forgotten, "CTL-45")
{
	const int64_t now = 1700000000000000, kept = (int64_t)UAR_LIMIT_OUTCOME_SECONDS * 1000000;
	struct uar_rows_query all = { .kind = UAR_ROW_OUTCOME };
	struct uar_facts f;
	struct world w;
	char id[16];

	open_world(&w, true);
	REQUIRE(begin(&w, &f, 1) == UAR_OK);
	for (int i = 0; i < 30; i++) {
		struct uar_row row = { .kind = UAR_ROW_OUTCOME,
				       .status = UAR_STR("done"),
				       .body = UAR_STR("{}") };

		snprintf(id, sizeof id, "o%d", i);
		row.id = uar_str_c(id);
		row.updated_us = row.created_us = i % 3 ? now : now - kept - 1000;
		CHECK_INT(put(&w, &f, &row, 1), UAR_OK);
		CHECK_INT(count(&w, &all), i + 1 - (i / 3 + 1));
		all = (struct uar_rows_query){ .kind = UAR_ROW_OUTCOME };
	}
	uar_facts_fini(&f);
	close_world(&w);
}
