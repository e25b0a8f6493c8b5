/* busy_test.c - what the port refuses while too much waits, and that it takes more afterwards. */
#include <pthread.h>
#include <sqlite3.h>

#include "base/alloc.h"
#include "store/limits.h"
#include "store/world_test.h"

/* --- reads ------------------------------------------------------------------------------ */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static size_t lists_done, looks_done;

/* Called by SQLite on the way through every statement: while the gate is locked, so is
 * every reader that has something to do. */
static int pass_gate(void *ctx)
{
	(void)ctx;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	return 0;
}

static int watch_connection(sqlite3 *db, const char **error, const void *api)
{
	(void)error, (void)api;
	sqlite3_progress_handler(db, 1, pass_gate, NULL);
	return SQLITE_OK;
}

__attribute__((constructor)) static void watch_all_connections(void)
{
	sqlite3_auto_extension((void (*)(void))watch_connection);
}

static void list_done(struct uar_runs_query *q)
{
	CHECK_INT(q->err, UAR_OK);
	lists_done++;
}

static void look_done(struct uar_thread_query *q)
{
	CHECK_INT(q->err, UAR_OK);
	looks_done++;
}

/* Looks until one is refused, with a place for each; how many were taken. */
static size_t look_until_refused(struct world *w, const struct uar_facts *f,
				 struct uar_thread_query *q, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uar_err e;

		q[i] = (struct uar_thread_query){ .owner = f->owner,
						  .session_id = uar_str_c(f->session),
						  .done = look_done };
		e = w->store->ops->thread(w->store, &q[i]);
		if (e) {
			CHECK_INT(e, UAR_EBUSY);
			return i;
		}
	}
	return n;
}

/* The lists keep the threads busy, if there are any. */
BOTH(reads_beyond_the_queue_are_refused, "")
{
	enum { THREADS = 2, MOST = UAR_LIMIT_READ_QUEUE + THREADS + 1 };
	struct uar_runs_query lists[THREADS];
	struct uar_thread_query *looks = uar_zalloc(MOST * sizeof *looks), once_more;
	struct uar_facts f;
	size_t taken;

	lists_done = looks_done = 0;
	REQUIRE(looks && begin(w, &f, 1) == UAR_OK);
	pthread_mutex_lock(&gate);
	for (size_t i = 0; i < THREADS; i++) {
		lists[i] =
			(struct uar_runs_query){ .owner = f.owner, .limit = 10, .done = list_done };
		CHECK_INT(w->store->ops->runs(w->store, &lists[i]), UAR_OK);
	}
	taken = look_until_refused(w, &f, looks, MOST);
	pthread_mutex_unlock(&gate);
	CHECK(taken >= UAR_LIMIT_READ_QUEUE - THREADS && taken <= UAR_LIMIT_READ_QUEUE);
	uar_pump_count(&w->pump, &lists_done, THREADS);
	uar_pump_count(&w->pump, &looks_done, taken);
	CHECK_INT(look_until_refused(w, &f, &once_more, 1), 1);
	uar_pump_count(&w->pump, &looks_done, taken + 1);
	for (size_t i = 0; i < THREADS; i++)
		uar_store_query_fini(&lists[i]);
	uar_facts_fini(&f);
	uar_free(looks);
}

/* --- appends ---------------------------------------------------------------------------- */

static size_t appends_done;

static void append_done(struct uar_append *a)
{
	CHECK_INT(a->err, UAR_OK);
	appends_done++;
}

/* As many events as an append may have, each as long as they get: so much of the queue that
 * the third one of them has no place. */
struct large {
	struct uar_facts facts;
	struct uar_append append;
	struct uar_event *events;
};

static uar_err make_large(struct world *w, struct large *l, uint64_t number)
{
	static char text[8000];
	struct uar_event first;

	memset(text, 'x', sizeof text - 1);
	l->events = uar_zalloc(UAR_LIMIT_APPEND_EVENTS * sizeof *l->events);
	if (!l->events || begin(w, &l->facts, number))
		return UAR_ENOMEM;
	l->append = (struct uar_append){ .owner = l->facts.owner,
					 .session_id = uar_str_c(l->facts.session),
					 .after = l->facts.seq,
					 .events = l->events,
					 .event_count = UAR_LIMIT_APPEND_EVENTS,
					 .done = append_done };
	first = uar_facts_delta(&l->facts, text);
	l->events[0] = first;
	for (size_t i = 1; i < UAR_LIMIT_APPEND_EVENTS; i++) {
		l->events[i] = uar_facts_delta(&l->facts, "x");
		l->events[i].payload = first.payload; /* once is enough */
	}
	return UAR_OK;
}

BOTH(appends_beyond_the_bytes_of_the_queue_are_refused, "")
{
	enum { N = 3 };
	struct large l[N];
	size_t taken = 0;
	uar_err e = UAR_OK;

	appends_done = 0;
	for (size_t i = 0; i < N; i++)
		REQUIRE(make_large(w, &l[i], i + 1) == UAR_OK);
	while (taken < N && !(e = w->store->ops->append(w->store, &l[taken].append)))
		taken++;
	CHECK_INT(e, UAR_EBUSY);
	CHECK(taken > 0 && taken < N);
	uar_pump_count(&w->pump, &appends_done, taken);
	CHECK_INT(w->store->ops->append(w->store, &l[N - 1].append), UAR_OK);
	uar_pump_count(&w->pump, &appends_done, taken + 1);
	for (size_t i = 0; i < N; i++) {
		uar_facts_fini(&l[i].facts);
		uar_free(l[i].events);
	}
}
