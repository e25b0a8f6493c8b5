/* busy.c - another program holds the write lock of the database.
 *
 * Nobody but UAR has to write uar.db, but nothing keeps a shell from beginning a transaction
 * and leaving it open. SQLite asks here whether to try once more, with a transaction that has
 * not begun: whatever the answer, nothing is half done. It is waited for a while, as most such
 * transactions are short; somebody is told when this one is not; then what waits is refused.
 * Once it was, others are refused sooner, until the lock was had again: an episode. */
#include "store/sqlite/sqlite_int.h"

#include <errno.h>

enum {
	TELL_US = 1000000,
	REFUSE_US = 1000 * SQ_BUSY_MS,
	PAUSE_US = 1000, /* doubled each time, */
	PAUSES = 6,	 /* so often */
};

void sq_busy_init(struct sq_busy *b, const struct uar_log *log)
{
	pthread_condattr_t attr;

	*b = (struct sq_busy){ .log = log };
	pthread_mutex_init(&b->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&b->wake, &attr);
	pthread_condattr_destroy(&attr);
}

void sq_busy_fini(struct sq_busy *b)
{
	pthread_cond_destroy(&b->wake);
	pthread_mutex_destroy(&b->lock);
}

/* False when nobody is to wait any more. */
static bool pause_until(struct sq_busy *b, int64_t at)
{
	struct timespec until = { at / 1000000, at % 1000000 * 1000 };
	bool on;
	int rc = 0;

	pthread_mutex_lock(&b->lock);
	while (!b->stop && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&b->wake, &b->lock, &until);
	on = !b->stop;
	pthread_mutex_unlock(&b->lock);
	return on;
}

static void tell(struct sq_busy *b)
{
	if (!b->told)
		uar_log(b->log, UAR_LOG_WARN, "store.held",
			{ "detail", uar_str_c(uar_err_text(UAR_EHELD)) },
			{ "text", UAR_STR("nothing can be written until it has ended its "
					  "transaction") });
	b->told = true;
}

/* SQLite's busy handler; `tries` of this wait have failed before. */
static int on_busy(void *ctx, int tries)
{
	struct sq_busy *b = ctx;
	int64_t now = uar_clock_mono(&uar_clock_system);

	if (tries == 0)
		b->since = now;
	if (now - b->since >= TELL_US)
		tell(b);
	if (now - b->since >= (b->refused ? TELL_US : REFUSE_US)) {
		b->refused = true;
		return 0;
	}
	return pause_until(b, now + (PAUSE_US << (tries < PAUSES ? tries : PAUSES)));
}

void sq_busy_watch(struct sq_busy *b, sqlite3 *db)
{
	sqlite3_busy_handler(db, on_busy, b);
}

void sq_busy_over(struct sq_busy *b)
{
	if (b->told)
		uar_log(b->log, UAR_LOG_INFO, "store.released",
			{ "detail", UAR_STR("the write lock is free again") });
	b->told = b->refused = false;
}

void sq_busy_stop(struct sq_busy *b)
{
	pthread_mutex_lock(&b->lock);
	b->stop = true;
	pthread_mutex_unlock(&b->lock);
	pthread_cond_signal(&b->wake);
}
