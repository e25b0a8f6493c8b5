/* query_runs_test.c - lists of runs: what a reader keeps prepared for the next one. */
#include "store/world_test.h"

#include "store/sizes.h"
#include "store/sqlite/sqlite_int.h"

static uar_err open_one_reader(struct world *w)
{
	struct uar_store_options o = { .sched = &w->pump.sched,
				       .dir = uar_test_dir(),
				       .readers = 1 };

	uar_pump_init(&w->pump);
	w->sqlite = true;
	return uar_store_sqlite_create(&o, &w->store, NULL);
}

/* The filters of each bit that is set, of a run that is there. */
static size_t list(struct world *w, const struct uar_facts *f, unsigned set)
{
	const struct uar_run_row row = uar_facts_row(f, "queued", false);
	const uar_str value[] = { row.session_id, row.task_id,	 row.root_run_id,
				  row.status,	  row.plugin_id, row.entry_id,
				  row.agent_id,	  row.run_id,	 row.thread_id };
	struct uar_runs_query q = { .owner = f->owner, .limit = 10 };
	uar_str *filter[] = { &q.session_id, &q.task_id,  &q.root_run_id, &q.status,   &q.plugin_id,
			      &q.entry_id,   &q.agent_id, &q.prefix,	  &q.thread_id };
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(filter); i++)
		if (set & 1u << i)
			*filter[i] = value[i];
	q.evicted = set & 1u << ARRAY_LEN(filter);
	CHECK_INT(uar_facts_runs(&w->pump, w->store, &q), UAR_OK);
	n = q.row_count;
	uar_store_query_fini(&q);
	return n;
}

static const struct sq_reader *reader_of(const struct world *w)
{
	return &UAR_OWNER(w->store, struct sq_store, base)->readers.reader[0];
}

static size_t statements(const struct world *w)
{
	sqlite3 *db = reader_of(w)->conn.db;
	size_t n = 0;

	for (sqlite3_stmt *st = NULL; (st = sqlite3_next_stmt(db, st));)
		n++;
	return n;
}

/* How often a statement has run that no other list has pushed out; 0: it is gone. */
static int most_runs(const struct world *w)
{
	const struct sq_reader *rd = reader_of(w);
	int most = 0;

	for (size_t i = 0; i < ARRAY_LEN(rd->lists); i++) {
		int n = rd->lists[i].st
				? sqlite3_stmt_status(rd->lists[i].st, SQLITE_STMTSTATUS_RUN, 0)
				: 0;

		most = n > most ? n : most;
	}
	return most;
}

/* Clients choose the filters: what they may choose must not stay for ever. */
TEST(every_kind_of_list_is_answered_and_few_are_kept, "")
{
	enum { KINDS = 1 << 10 };
	struct world w;
	struct uar_facts f;

	REQUIRE(open_one_reader(&w) == UAR_OK);
	REQUIRE(begin(&w, &f, 1) == UAR_OK);
	for (unsigned set = 0; set < KINDS; set++) {
		CHECK_INT(list(&w, &f, set), 1);
		CHECK_INT(list(&w, &f, 0), 1); /* wanted all the time, so it stays */
	}
	CHECK(statements(&w) <= SQ_COUNT + UAR_LIMIT_LIST_STATEMENTS);
	CHECK(most_runs(&w) >= KINDS);
	close_world(&w);
	uar_facts_fini(&f);
}
