/* store_bench.c - the store against bare SQLite on the same disk.
 *
 *	store_bench [DIR [SECONDS]]
 *
 * 64 producers, each with one append under way, through the port; then a bare
 * loop that inserts as many rows of as many bytes into the same tables with the
 * same indexes, in durable commits of the same size and with the same folding of
 * the log, from one thread and without looking at what it writes: no check, no
 * encoding, no checksum, no hand-over. Then a paced load for the latency of an
 * acknowledgement; then replay. */
#include <sqlite3.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "event/limits.h"
#include "loop/loop.h"
#include "store/store.h"

enum { PRODUCERS = 64, ROUNDS = 15, PACED = 20000, PACE_SESSIONS = 512, SAMPLES = 1 << 20 };

static const struct uar_owner owner = { { "acme", 4 }, { "main", 4 }, { "ann", 3 } };

struct producer {
	struct bench *b;
	struct uar_append a;
	struct uar_event ev[2];
	struct uar_run_row row;
	char session[40], thread[40], turn[40], task[40], run[40], id[40], payload[256];
	char *index; /* the digit in the payload that changes */
	uint64_t seq, run_seq;
	int64_t sent;
	bool busy;
};

struct bench {
	struct uar_loop *loop;
	struct uar_sched *sched;
	struct uar_store *store;
	struct producer *producers;
	size_t producer_count, open;
	int64_t until;
	bool stopping;
	uint64_t acked, failed, late, body_bytes;
	uint32_t *sample;
	size_t samples;
	struct uar_timer timer;
	size_t next;
	int64_t paced_from;
	uint64_t paced_sent;
	struct uar_read read;
	uint64_t replayed;
};

static int64_t now(void)
{
	return uar_clock_mono(&uar_clock_system);
}

static int64_t cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000ll + u.ru_utime.tv_usec +
	       u.ru_stime.tv_usec;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static double percentile(struct bench *b, double p)
{
	if (!b->samples)
		return 0;
	qsort(b->sample, b->samples, sizeof *b->sample, compare);
	return b->sample[(size_t)((double)(b->samples - 1) * p)] / 1000.0;
}

/* --- producers -------------------------------------------------------------------- */
static void name(char out[40], unsigned kind, unsigned long long n)
{
	snprintf(out, 40, "0190b4a0-%04x-7000-8000-%012llx", kind, n);
}

/* The next name of the same kind; cheap, since producers are not what is measured. */
static void name_next(char id[40])
{
	char *p = id + UAR_UUID_TEXT;

	while (*--p == 'f')
		*p = '0';
	*p = *p == '9' ? 'a' : (char)(*p + 1);
}

static struct uar_event event_of(struct producer *p, enum uar_event_class cls)
{
	struct uar_event ev = { .cls = cls,
				.sequence = p->seq + 1,
				.time_us = uar_clock_wall(&uar_clock_system) };

	name_next(p->id);
	ev.event_id = uar_str_c(p->id);
	ev.ids[UAR_ID_RUNTIME] = uar_str_c(p->b->store->runtime_id);
	ev.ids[UAR_ID_TENANT] = owner.tenant;
	ev.ids[UAR_ID_WORKSPACE] = owner.workspace;
	ev.ids[UAR_ID_USER] = owner.user;
	ev.ids[UAR_ID_SESSION] = uar_str_c(p->session);
	return ev;
}

static struct uar_event delta(struct producer *p)
{
	struct uar_event ev = event_of(p, UAR_EV_MODEL_DELTA);

	*p->index = (char)('0' + (p->run_seq & 7));
	ev.payload = uar_str_c(p->payload);
	ev.run_sequence = p->run_seq + 1;
	ev.ids[UAR_ID_THREAD] = uar_str_c(p->thread);
	ev.ids[UAR_ID_TURN] = uar_str_c(p->turn);
	ev.ids[UAR_ID_TASK] = uar_str_c(p->task);
	ev.ids[UAR_ID_RUN] = ev.ids[UAR_ID_ATTEMPT] = uar_str_c(p->run);
	return ev;
}

static void send(struct producer *p, void (*done)(struct uar_append *))
{
	bool first = p->seq == 0;

	p->ev[0] = first ? event_of(p, UAR_EV_SESSION_CREATED) : delta(p);
	if (first)
		p->ev[0].payload = UAR_STR("{\"source\":\"api\",\"created_at\":"
					   "\"2026-01-02T03:04:05.000006Z\",\"metadata\":{}}");
	p->a = (struct uar_append){ .owner = owner,
				    .session_id = uar_str_c(p->session),
				    .after = p->seq,
				    .events = p->ev,
				    .event_count = 1,
				    .run = first ? &p->row : NULL,
				    .done = done };
	p->sent = now();
	if (p->b->store->ops->append(p->b->store, &p->a)) {
		p->b->failed++;
		return;
	}
	p->seq++;
	p->run_seq += !first;
	p->busy = true;
	p->b->open++;
}

static void note(struct bench *b, struct producer *p)
{
	p->busy = false;
	b->open--;
	b->acked += !p->a.err;
	b->failed += p->a.err != UAR_OK;
	if (b->samples < SAMPLES)
		b->sample[b->samples++] = (uint32_t)(now() - p->sent);
}

static void again(struct uar_append *a)
{
	struct producer *p = UAR_OWNER(a, struct producer, a);
	struct bench *b = p->b;

	note(b, p);
	if (now() < b->until)
		send(p, again);
	else if (!b->open)
		uar_loop_stop(b->loop);
}

static void make_producers(struct bench *b, size_t n, unsigned base)
{
	b->producers = uar_zalloc(n * sizeof *b->producers);
	b->producer_count = n;
	for (size_t i = 0; i < n; i++) {
		struct producer *p = &b->producers[i];

		p->b = b;
		name(p->session, base, i);
		name(p->thread, base + 1, i);
		name(p->turn, base + 2, i);
		name(p->task, base + 3, i);
		name(p->run, base + 4, i);
		name(p->id, 9, (unsigned long long)i << 32);
		snprintf(p->payload, sizeof p->payload,
			 "{\"message_id\":\"msg_0190b4a0\",\"index\":0,\"kind\":\"text\",\"text\":"
			 "\"a piece of an answer as models send them\"}");
		p->index = strstr(p->payload, "\"index\":") + 8;
		p->row = (struct uar_run_row){ .owner = owner,
					       .run_id = uar_str_c(p->run),
					       .session_id = uar_str_c(p->session),
					       .thread_id = uar_str_c(p->thread),
					       .turn_id = uar_str_c(p->turn),
					       .task_id = uar_str_c(p->task),
					       .status = UAR_STR("running"),
					       .started_us = 1700000000000000,
					       .detail = UAR_STR("{}") };
	}
}

struct result {
	double events, cpu, batch;
};

static struct result flat_out(struct bench *b, unsigned round, double seconds)
{
	struct uar_store_stats before, after;
	int64_t start, cpu = cpu_us();
	struct result r;

	make_producers(b, PRODUCERS, 0x1000 + 16 * round);
	b->store->ops->stats(b->store, &before);
	b->acked = b->samples = 0;
	start = now();
	b->until = start + (int64_t)(seconds * 1e6);
	for (size_t i = 0; i < b->producer_count; i++)
		send(&b->producers[i], again);
	uar_loop_run(b->loop);
	b->store->ops->stats(b->store, &after);
	r.events = (double)b->acked / ((double)(now() - start) / 1e6);
	r.cpu = (double)(cpu_us() - cpu) / (double)b->acked;
	r.batch =
		(double)(after.appends - before.appends) / (double)(after.commits - before.commits);
	b->body_bytes = (after.bytes - before.bytes) / (after.events - before.events);
	printf("port      %8.0f events/s  %5.2f us CPU  batch %.1f  ack p50 %.2f p99 %.2f ms"
	       "  commit mean %.2f max %.2f ms  %llu failed\n",
	       r.events, r.cpu, r.batch, percentile(b, 0.5), percentile(b, 0.99),
	       (double)(after.commit_us_total - before.commit_us_total) /
		       (double)(after.commits - before.commits) / 1000.0,
	       (double)after.commit_us_max / 1000.0, (unsigned long long)b->failed);
	uar_free(b->producers);
	return r;
}

/* --- the raw limit ------------------------------------------------------------------ */
static void must(int rc, sqlite3 *db)
{
	if (rc != SQLITE_OK && rc != SQLITE_DONE && rc != SQLITE_ROW) {
		fprintf(stderr, "%s\n", sqlite3_errmsg(db));
		exit(1);
	}
}

static int frames;
static int on_wal(void *ctx, sqlite3 *db, const char *db_name, int n)
{
	(void)ctx, (void)db, (void)db_name;
	frames = n;
	return SQLITE_OK;
}

static void insert(sqlite3_stmt *st, uint64_t n, const char *body, size_t body_n)
{
	sqlite3_bind_int64(st, 1, (int64_t)n);
	sqlite3_bind_int64(st, 2, (int64_t)(n % PRODUCERS));
	sqlite3_bind_int64(st, 3, (int64_t)(n / PRODUCERS));
	sqlite3_bind_int64(st, 4, (int64_t)(n % PRODUCERS));
	sqlite3_bind_int64(st, 5, (int64_t)(n / PRODUCERS));
	sqlite3_bind_int64(st, 6, 1);
	sqlite3_bind_int64(st, 7, 1700000000000000 + (int64_t)n);
	sqlite3_bind_null(st, 8);
	sqlite3_bind_text(st, 9, body, (int)body_n, SQLITE_STATIC);
	sqlite3_bind_int64(st, 10, (int64_t)(n * 2654435761u % 4294967291u));
	sqlite3_bind_int64(st, 11, (int64_t)(n * 2246822519u % 4294967291u));
}

static struct result raw_limit(struct bench *b, const char *dir, double batch, double seconds)
{
	char path[1024], *body = uar_alloc(b->body_bytes + 1);
	sqlite3 *db;
	sqlite3_stmt *st;
	uint64_t n = 0;
	int64_t start, cpu;
	struct result r = { .batch = batch };

	snprintf(path, sizeof path, "%s/uar.db", dir);
	memset(body, 'x', b->body_bytes);
	must(sqlite3_open(path, &db), db);
	must(sqlite3_exec(db,
			  "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
			  "PRAGMA secure_delete=0; PRAGMA cache_size=-16384; DELETE FROM log",
			  NULL, NULL, NULL),
	     db);
	sqlite3_wal_hook(db, on_wal, NULL);
	must(sqlite3_prepare_v2(db, "INSERT INTO log VALUES(?,?,?,?,?,?,?,?,?,?,?,0,0)", -1, &st,
				NULL),
	     db);
	start = now();
	cpu = cpu_us();
	while (now() - start < (int64_t)(seconds * 1e6)) {
		must(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), db);
		for (int i = 0; i < (int)(batch + 0.5); i++) {
			insert(st, ++n, body, b->body_bytes);
			must(sqlite3_step(st), db);
			sqlite3_reset(st);
		}
		must(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), db);
		if (frames >= 1000) /* as the store does */
			must(sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL,
						       NULL),
			     db);
	}
	r.events = (double)n / ((double)(now() - start) / 1e6);
	r.cpu = (double)(cpu_us() - cpu) / (double)n;
	sqlite3_finalize(st);
	sqlite3_close(db);
	uar_free(body);
	printf("raw       %8.0f events/s  %5.2f us CPU  batch %.1f\n", r.events, r.cpu, r.batch);
	return r;
}

/* --- a paced load --------------------------------------------------------------------- */
static void paced_done(struct uar_append *a)
{
	struct producer *p = UAR_OWNER(a, struct producer, a);
	struct bench *b = p->b;

	note(b, p);
	if (b->stopping && !b->open)
		uar_loop_stop(b->loop);
}

static void tick(struct uar_timer *t)
{
	struct bench *b = UAR_OWNER(t, struct bench, timer);
	int64_t at = now();
	uint64_t due = (uint64_t)((at - b->paced_from) * PACED / 1000000);

	if (at >= b->until) {
		b->stopping = true;
		if (!b->open)
			uar_loop_stop(b->loop);
		return;
	}
	for (; b->paced_sent < due; b->paced_sent++) {
		struct producer *p = &b->producers[b->next++ % b->producer_count];

		if (p->busy)
			b->late++;
		else
			send(p, paced_done);
	}
	if (uar_timer_set(b->sched, t, 1000))
		exit(1);
}

static void paced(struct bench *b, double seconds)
{
	make_producers(b, PACE_SESSIONS, 0x2000);
	b->acked = b->samples = b->late = b->failed = 0;
	b->stopping = false;
	b->paced_from = now();
	b->paced_sent = 0;
	b->until = b->paced_from + (int64_t)(seconds * 1e6);
	b->timer.fn = tick;
	if (uar_timer_set(b->sched, &b->timer, 1000))
		exit(1);
	uar_loop_run(b->loop);
	printf("paced %u/s: acked %.0f/s  ack p50 %.2f p99 %.2f p99.9 %.2f ms  %llu late %llu "
	       "failed\n",
	       PACED, (double)b->acked / seconds, percentile(b, 0.5), percentile(b, 0.99),
	       percentile(b, 0.999), (unsigned long long)b->late, (unsigned long long)b->failed);
	uar_free(b->producers);
}

/* --- replay ------------------------------------------------------------------------------ */
static void next_page(struct uar_read *r)
{
	struct bench *b = UAR_OWNER(r, struct bench, read);
	bool more = r->more && !r->err;

	b->replayed += r->event_count;
	if (r->err)
		fprintf(stderr, "replay: %s\n", uar_error_text(&r->error));
	if (r->event_count)
		r->after = r->events[r->event_count - 1].run_sequence;
	uar_store_read_fini(r);
	if (!more || b->store->ops->read(b->store, r))
		uar_loop_stop(b->loop);
}

static void replay(struct bench *b, unsigned base, const char *what)
{
	char run[40];
	int64_t start, took, cpu = cpu_us();

	name(run, base + 4, 0);
	b->replayed = 0;
	b->read = (struct uar_read){ .owner = owner,
				     .run_id = uar_str_c(run),
				     .limit = UAR_LIMIT_READ_PAGE,
				     .done = next_page };
	start = now();
	if (b->store->ops->read(b->store, &b->read))
		exit(1);
	uar_loop_run(b->loop);
	took = now() - start;
	printf("replay    %8.0f events/s  %5.2f us CPU  (%llu events, %s)\n",
	       (double)b->replayed / ((double)took / 1e6),
	       (double)(cpu_us() - cpu) / (double)b->replayed, (unsigned long long)b->replayed,
	       what);
}

/* A run whose appends held 32 events each, as a busy disk makes them. */
static void fill_done(struct uar_append *a)
{
	struct producer *p = UAR_OWNER(a, struct producer, a);

	if (a->err) {
		fprintf(stderr, "fill: %s\n", uar_error_text(&a->error));
		exit(1);
	}
	p->busy = false;
	uar_loop_stop(p->b->loop);
}

static void fill(struct bench *b, size_t events)
{
	enum { EACH = 32 };
	struct uar_event *ev = uar_zalloc(EACH * sizeof *ev);
	struct producer *p;

	make_producers(b, 1, 0x3000);
	p = &b->producers[0];
	send(p, fill_done);
	uar_loop_run(b->loop);
	for (size_t n = 0; n < events; n += EACH) {
		uint64_t after = p->seq;

		for (size_t i = 0; i < EACH; i++, p->seq++, p->run_seq++)
			ev[i] = delta(p);
		p->a = (struct uar_append){ .owner = owner,
					    .session_id = uar_str_c(p->session),
					    .after = after,
					    .events = ev,
					    .event_count = EACH,
					    .done = fill_done };
		if (b->store->ops->append(b->store, &p->a)) {
			fprintf(stderr, "fill: %s\n", uar_error_text(&p->a.error));
			exit(1);
		}
		uar_loop_run(b->loop);
	}
	uar_free(ev);
	uar_free(b->producers);
}

static void count_live(void *ctx, const struct uar_run_row *row)
{
	*(size_t *)ctx += !row->terminal;
}

static void open_store(struct bench *b, const char *dir)
{
	struct uar_store_options o = { .dir = dir, .sched = b->sched };
	struct uar_error error = { 0 };

	if (uar_store_sqlite_create(&o, &b->store, &error)) {
		fprintf(stderr, "%s\n", error.text);
		exit(1);
	}
}

static void start_up(struct bench *b, const char *dir)
{
	size_t live = 0;
	int64_t start = now();

	open_store(b, dir);
	if (b->store->ops->each_live(b->store, count_live, &live, NULL))
		exit(1);
	printf("start-up  %.2f ms to open and find %zu live runs\n", (double)(now() - start) / 1000,
	       live);
}

int main(int argc, char **argv)
{
	struct bench b = { 0 };
	char top[256], dir[300], raw_dir[300];
	double seconds = argc > 2 ? strtod(argv[2], NULL) : 3;
	struct result port, raw;

	snprintf(top, sizeof top, "%s/uar-store-bench-XXXXXX", argc > 1 ? argv[1] : "/tmp");
	if (!mkdtemp(top) || uar_loop_create(&uar_clock_system, &b.loop))
		return 1;
	b.sched = uar_loop_sched(b.loop);
	b.sample = uar_alloc(SAMPLES * sizeof *b.sample);
	snprintf(dir, sizeof dir, "%s/port", top);
	snprintf(raw_dir, sizeof raw_dir, "%s/raw", top);
	open_store(&b, raw_dir); /* for its schema */
	uar_store_destroy(b.store);
	open_store(&b, dir);
	for (unsigned i = 0; i < ROUNDS; i++) { /* in turn, as a disk has moods */
		port = flat_out(&b, i, seconds / ROUNDS);
		raw = raw_limit(&b, raw_dir, port.batch, seconds / ROUNDS);
		printf("ratio     %.2f of raw events/s, %.2f of raw CPU; %llu bytes a body\n",
		       port.events / raw.events, port.cpu / raw.cpu,
		       (unsigned long long)b.body_bytes);
	}
	paced(&b, seconds);
	replay(&b, 0x1000, "one event a row");
	fill(&b, argc > 3 ? 1000000 : 100000);
	replay(&b, 0x3000, "32 events a row");
	uar_store_destroy(b.store);
	start_up(&b, dir);
	uar_store_destroy(b.store);
	uar_loop_destroy(b.loop);
	uar_free(b.sample);
	printf("left in %s\n", top);
	return 0;
}
