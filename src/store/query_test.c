/* query_test.c - what the port promises about lists, threads and blobs. */
#include "event/limits.h"
#include "store/world_test.h"

static size_t list(struct world *w, struct uar_runs_query *q)
{
	size_t n;

	q->owner = uar_facts_owner;
	q->limit = q->limit ? q->limit : 100;
	CHECK_INT(uar_facts_runs(&w->pump, w->store, q), UAR_OK);
	n = q->row_count;
	uar_store_query_fini(q);
	return n;
}
#define LIST(...) list(w, &(struct uar_runs_query){ __VA_ARGS__ })

BOTH(lists_filter_and_turn_pages, "")
{
	enum { N = 30 };
	struct uar_facts f[N];
	struct uar_runs_query q;
	char before[40] = "";
	size_t seen_rows = 0;

	for (size_t i = 0; i < N; i++) {
		struct uar_run_row row;

		CHECK_INT(begin(w, &f[i], i + 1), UAR_OK);
		row = uar_facts_row(&f[i], i % 3 ? "running" : "completed", i % 3 == 0);
		row.plugin_id = i % 2 ? UAR_STR("p1") : UAR_STR("p2");
		row.entry_id = i % 5 ? UAR_STR("e1") : UAR_STR("e2");
		row.agent_id = i % 10 ? UAR_STR("a1") : UAR_STR("a2");
		row.root_run_id = uar_str_c(f[i / 10 * 10].run);
		CHECK_INT(set_row(w, &f[i], &row), UAR_OK);
	}
	CHECK_INT(LIST(.limit = 100), N);
	CHECK_INT(LIST(.status = UAR_STR("completed")), 10);
	CHECK_INT(LIST(.status = UAR_STR("none")), 0);
	CHECK_INT(LIST(.plugin_id = UAR_STR("p1")), 15);
	CHECK_INT(LIST(.entry_id = UAR_STR("e2")), 6);
	CHECK_INT(LIST(.agent_id = UAR_STR("a2")), 3);
	CHECK_INT(LIST(.root_run_id = uar_str_c(f[10].run)), 10);
	CHECK_INT(LIST(.task_id = uar_str_c(f[7].task)), 1);
	CHECK_INT(LIST(.session_id = uar_str_c(f[7].session)), 1);
	CHECK_INT(LIST(.session_id = UAR_STR("none")), 0);
	CHECK_INT(LIST(.thread_id = uar_str_c(f[7].thread)), 1);
	CHECK_INT(LIST(.thread_id = uar_str_c(f[7].thread), .agent_id = UAR_STR("a2")), 0);
	CHECK_INT(LIST(.thread_id = uar_str_c(f[7].thread), .session_id = uar_str_c(f[8].session)),
		  0);
	CHECK_INT(LIST(.thread_id = UAR_STR("none")), 0);
	CHECK_INT(LIST(.status = UAR_STR("completed"), .plugin_id = UAR_STR("p2")), 5);
	CHECK_INT(LIST(.root_run_id = uar_str_c(f[10].run), .status = UAR_STR("running")), 7);
	CHECK_INT(LIST(.task_id = uar_str_c(f[7].task), .session_id = uar_str_c(f[7].session),
		       .root_run_id = uar_str_c(f[0].run), .status = UAR_STR("running"),
		       .plugin_id = UAR_STR("p1"), .entry_id = UAR_STR("e1"),
		       .agent_id = UAR_STR("a1"), .thread_id = uar_str_c(f[7].thread)),
		  1);
	CHECK_INT(LIST(.prefix = uar_str_n(f[15].run, 35)), 15);
	CHECK_INT(LIST(.prefix = uar_str_c(f[15].run)), 1);
	CHECK_INT(LIST(.prefix = UAR_STR("0190"), .limit = 100), N);
	CHECK_INT(LIST(.prefix = UAR_STR("0190"), .plugin_id = UAR_STR("p1")), 15);
	CHECK_INT(LIST(.prefix = UAR_STR("0191")), 0);
	do {
		q = (struct uar_runs_query){ .owner = uar_facts_owner,
					     .before = uar_str_c(before),
					     .limit = 7 };
		CHECK_INT(uar_facts_runs(&w->pump, w->store, &q), UAR_OK);
		for (size_t i = 0; i < q.row_count; i++)
			CHECK_STR(q.rows[i].run_id, f[N - 1 - seen_rows - i].run);
		seen_rows += q.row_count;
		if (q.row_count)
			snprintf(before, sizeof before, "%.*s",
				 UAR_FMT(q.rows[q.row_count - 1].run_id));
		CHECK_INT(q.more, seen_rows < N);
		uar_store_query_fini(&q);
	} while (seen_rows < N && q.more);
	CHECK_INT(seen_rows, N);
	q = (struct uar_runs_query){ .owner = uar_facts_owner, .before = UAR_STR("x"), .limit = 7 };
	CHECK_INT(uar_facts_runs(&w->pump, w->store, &q), UAR_ECURSOR);
	uar_store_query_fini(&q);
	q = (struct uar_runs_query){ .owner = uar_facts_stranger,
				     .before = uar_str_c(before),
				     .limit = 7 };
	CHECK_INT(uar_facts_runs(&w->pump, w->store, &q), UAR_ECURSOR);
	uar_store_query_fini(&q);
	for (size_t i = 0; i < N; i++)
		uar_facts_fini(&f[i]);
}

/* The rows that `owner` is shown, all of them its own. */
static size_t list_of_owner(struct world *w, struct uar_owner owner, struct uar_runs_query q)
{
	size_t n;

	q.owner = owner;
	q.limit = 100;
	CHECK_INT(uar_facts_runs(&w->pump, w->store, &q), UAR_OK);
	for (size_t i = 0; i < q.row_count; i++)
		CHECK_STR(q.rows[i].owner.user, owner.user.p);
	n = q.row_count;
	uar_store_query_fini(&q);
	return n;
}

/* Filters choose the index; the owner is asked for whichever it is. */
BOTH(lists_show_the_runs_of_their_owner_alone, "")
{
	enum { MINE = 2, ALL = 5 };
	struct uar_facts f[ALL];

	for (size_t i = 0; i < ALL; i++) {
		struct uar_run_row row;

		uar_facts_init(&f[i], w->store, i + 1);
		f[i].owner = i < MINE ? uar_facts_owner : uar_facts_stranger;
		CHECK_INT(uar_facts_begin(&w->pump, w->store, &f[i]), UAR_OK);
		row = uar_facts_row(&f[i], "running", false);
		row.plugin_id = UAR_STR("p1");
		row.entry_id = UAR_STR("e1");
		row.agent_id = UAR_STR("a1");
		CHECK_INT(set_row(w, &f[i], &row), UAR_OK);
	}
	for (size_t i = 0; i < 2; i++) {
		struct uar_owner o = i ? uar_facts_stranger : uar_facts_owner;
		const struct uar_facts *other = i ? &f[0] : &f[MINE];
		size_t want = i ? ALL - MINE : MINE;

#define COUNT(...) list_of_owner(w, o, (struct uar_runs_query){ __VA_ARGS__ })
		CHECK_INT(COUNT(.limit = 100), want);
		CHECK_INT(COUNT(.status = UAR_STR("running")), want);
		CHECK_INT(COUNT(.plugin_id = UAR_STR("p1")), want);
		CHECK_INT(COUNT(.entry_id = UAR_STR("e1")), want);
		CHECK_INT(COUNT(.agent_id = UAR_STR("a1")), want);
		CHECK_INT(COUNT(.prefix = UAR_STR("0190")), want);
		CHECK_INT(COUNT(.evicted = true), want);
		CHECK_INT(COUNT(.task_id = uar_str_c(other->task)), 0);
		CHECK_INT(COUNT(.session_id = uar_str_c(other->session)), 0);
		CHECK_INT(COUNT(.thread_id = uar_str_c(other->thread)), 0);
		CHECK_INT(COUNT(.root_run_id = uar_str_c(other->run)), 0);
		CHECK_INT(COUNT(.prefix = uar_str_c(other->run)), 0);
#undef COUNT
	}
	for (size_t i = 0; i < ALL; i++)
		uar_facts_fini(&f[i]);
}

BOTH(runs_that_wait_are_listed_in_pages, "")
{
	enum { N = 9 };
	struct uar_facts f[N];
	struct uar_runs_query q = { .owner = uar_facts_owner, .waiting = true, .limit = 2 };

	for (size_t i = 0; i < N; i++) {
		struct uar_run_row row;

		CHECK_INT(begin(w, &f[i], i + 1), UAR_OK);
		row = uar_facts_row(&f[i], "running", false);
		row.listed.waits = i % 3 ? UAR_STR_NONE : UAR_STR("permission");
		row.listed.title = UAR_STR("say hello");
		row.listed.input_tokens = (int64_t)i;
		CHECK_INT(set_row(w, &f[i], &row), UAR_OK);
	}
	CHECK_INT(LIST(.waiting = true), 3);
	CHECK_INT(LIST(.waiting = true, .status = UAR_STR("queued")), 0);
	CHECK_INT(uar_facts_runs(&w->pump, w->store, &q), UAR_OK);
	CHECK_INT(q.row_count, 2);
	CHECK(q.more);
	CHECK_STR(q.rows[1].run_id, f[3].run);
	CHECK_STR(q.rows[1].listed.waits, "permission");
	CHECK_STR(q.rows[1].listed.title, "say hello");
	CHECK_INT(q.rows[1].listed.input_tokens, 3);
	uar_store_query_fini(&q);
	CHECK_INT(LIST(.waiting = true, .before = uar_str_c(f[3].run)), 1);
	for (size_t i = 0; i < N; i++)
		uar_facts_fini(&f[i]);
}

BOTH(runs_that_are_not_over_are_listed, "")
{
	enum { N = 3 };
	struct uar_facts f[N];

	for (size_t i = 0; i < N; i++) {
		struct uar_run_row row;

		CHECK_INT(begin(w, &f[i], i + 1), UAR_OK);
		row = uar_facts_row(&f[i], i ? "queued" : "completed", i == 0);
		CHECK_INT(set_row(w, &f[i], &row), UAR_OK);
	}
	CHECK_INT(LIST(.live = true), N - 1);
	CHECK_INT(LIST(.live = true, .session_id = uar_str_c(f[0].session)), 0);
	CHECK_INT(LIST(.live = true, .session_id = uar_str_c(f[1].session)), 1);
	for (size_t i = 0; i < N; i++)
		uar_facts_fini(&f[i]);
}

BOTH(threads_lead_to_their_session, "ID-03")
{
	struct uar_facts f, thief;
	struct uar_thread_query q = { .owner = uar_facts_owner };
	struct uar_event ev[3];
	struct uar_append a;

	CHECK_INT(begin(w, &f, 1), UAR_OK);
	CHECK_INT(go_on(w, &f, 4), UAR_OK);
	q.thread_id = uar_str_c(f.thread);
	CHECK_INT(uar_facts_thread(&w->pump, w->store, &q), UAR_OK);
	CHECK_STR(uar_str_c(q.found_session), f.session);
	CHECK_INT(q.last_sequence, 7);
	q.thread_id = UAR_STR("none");
	CHECK_INT(uar_facts_thread(&w->pump, w->store, &q), UAR_ENOTFOUND);
	q.thread_id = UAR_STR_NONE;
	q.session_id = uar_str_c(f.session);
	CHECK_INT(uar_facts_thread(&w->pump, w->store, &q), UAR_OK);
	CHECK_INT(q.last_sequence, 7);
	q.session_id = UAR_STR_NONE;
	CHECK_INT(w->store->ops->thread(w->store, &q), UAR_EINVALID);
	/* Two sessions want the same thread: the second decides again. */
	uar_facts_init(&thief, w->store, 2);
	snprintf(thief.thread, sizeof thief.thread, "%s", f.thread);
	a = (struct uar_append){ .owner = thief.owner,
				 .session_id = uar_str_c(thief.session),
				 .events = ev };
	a.event_count = uar_facts_opening(&thief, ev);
	CHECK_INT(uar_facts_append(&w->pump, w->store, &a), UAR_ECONFLICT);
	/* The same session may say it again. */
	a = (struct uar_append){ .owner = f.owner,
				 .session_id = uar_str_c(f.session),
				 .after = f.seq,
				 .events = &ev[1],
				 .event_count = 1 };
	uar_facts_opening(&f, ev);
	ev[1].sequence = a.after + 1;
	CHECK_INT(uar_facts_append(&w->pump, w->store, &a), UAR_OK);
	uar_facts_fini(&thief);
	uar_facts_fini(&f);
}

static void count_live(void *ctx, const struct uar_run_row *row)
{
	CHECK(!row->terminal);
	CHECK(row->session_id.n && row->owner.tenant.n);
	CHECK_INT(row->last_run_sequence, 1);
	++*(size_t *)ctx;
}

BOTH(live_runs_are_found_at_start, "")
{
	struct uar_facts f;
	size_t live = 0;

	for (uint64_t i = 1; i <= 10; i++) {
		struct uar_run_row row;

		CHECK_INT(begin(w, &f, i), UAR_OK);
		row = uar_facts_row(&f, i % 5 ? "completed" : "running", i % 5 != 0);
		CHECK_INT(set_row(w, &f, &row), UAR_OK);
		uar_facts_fini(&f);
	}
	CHECK_INT(w->store->ops->each_live(w->store, count_live, &live, NULL), UAR_OK);
	CHECK_INT(live, 2);
}

BOTH(blobs_are_kept_by_their_hash, "")
{
	struct uar_blob_put p = { .bytes = UAR_STR("hello") };
	struct uar_blob_get g = { .limit = 100 };

	CHECK_INT(uar_facts_put(&w->pump, w->store, &p), UAR_OK);
	CHECK_STR(uar_str_c(p.sha256),
		  "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
	CHECK_INT(uar_facts_put(&w->pump, w->store, &p), UAR_OK);
	memcpy(g.sha256, p.sha256, sizeof g.sha256);
	CHECK_INT(uar_facts_get(&w->pump, w->store, &g), UAR_OK);
	CHECK_STR(g.bytes, "hello");
	CHECK_INT(g.total, 5);
	uar_store_blob_get_fini(&g);
	g.offset = 1;
	g.limit = 3;
	CHECK_INT(uar_facts_get(&w->pump, w->store, &g), UAR_OK);
	CHECK_STR(g.bytes, "ell");
	CHECK_INT(g.total, 5);
	uar_store_blob_get_fini(&g);
	g.offset = 99;
	CHECK_INT(uar_facts_get(&w->pump, w->store, &g), UAR_OK);
	CHECK_INT(g.bytes.n, 0);
	uar_store_blob_get_fini(&g);
	g.sha256[0] = '3';
	CHECK_INT(uar_facts_get(&w->pump, w->store, &g), UAR_ENOTFOUND);
	uar_store_blob_get_fini(&g);
	memcpy(g.sha256, "../../../../../../etc/passwd", 28);
	CHECK_INT(w->store->ops->blob_get(w->store, &g), UAR_EINVALID);
	p.bytes = UAR_STR_NONE;
	CHECK_INT(uar_facts_put(&w->pump, w->store, &p), UAR_OK);
	memcpy(g.sha256, p.sha256, sizeof g.sha256);
	g.offset = 0;
	CHECK_INT(uar_facts_get(&w->pump, w->store, &g), UAR_OK);
	CHECK_INT(g.total, 0);
	uar_store_blob_get_fini(&g);
}

BOTH(nothing_begins_while_draining, "")
{
	struct uar_facts f;
	struct one o;
	struct uar_read r = { .session_id = UAR_STR("s"), .limit = 1 };

	CHECK_INT(begin(w, &f, 1), UAR_OK);
	uar_facts_drain(&w->pump, w->store);
	CHECK_INT(w->store->ops->append(w->store, &one_delta(&f, &o)->a), UAR_EDRAINING);
	CHECK_INT(w->store->ops->read(w->store, &r), UAR_EDRAINING);
	uar_facts_fini(&f);
}

BOTH(bad_questions_are_refused_at_once, "")
{
	struct uar_read r = { .limit = 1 };
	struct uar_runs_query q = { .limit = 0 };

	CHECK_INT(w->store->ops->read(w->store, &r), UAR_EINVALID);
	r.run_id = r.session_id = UAR_STR("both");
	CHECK_INT(w->store->ops->read(w->store, &r), UAR_EINVALID);
	r.run_id = UAR_STR_NONE;
	r.limit = 0;
	CHECK_INT(w->store->ops->read(w->store, &r), UAR_EINVALID);
	r.limit = UAR_LIMIT_READ_PAGE + 1;
	CHECK_INT(w->store->ops->read(w->store, &r), UAR_EINVALID);
	CHECK_INT(w->store->ops->runs(w->store, &q), UAR_EINVALID);
	q.limit = UAR_LIMIT_LIST_PAGE + 1;
	CHECK_INT(w->store->ops->runs(w->store, &q), UAR_EINVALID);
}
