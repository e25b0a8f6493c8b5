#include "lib/bare.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/measure.h"

struct rows {
	struct bare_row *v;
	size_t n, cap;
};

struct bare_log {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct rows asked, committed; /* guarded by the lock */
	struct rows batch;	      /* the committing thread's */
	struct rows taken;	      /* the asking thread's */
	int wake;
	sqlite3 *db;
	sqlite3_stmt *begin, *add, *commit;
};

/* --- the log ---------------------------------------------------------------------- */

static sqlite3_stmt *prepare(struct bare_log *l, const char *sql)
{
	sqlite3_stmt *st;

	if (sqlite3_prepare_v2(l->db, sql, -1, &st, NULL))
		bench_die("%s: %s", sql, sqlite3_errmsg(l->db));
	return st;
}

static void step(struct bare_log *l, sqlite3_stmt *st)
{
	if (sqlite3_step(st) != SQLITE_DONE)
		bench_die("%s", sqlite3_errmsg(l->db));
	sqlite3_reset(st);
}

static void open_table(struct bare_log *l, const char *dir, int row_bytes)
{
	char path[512], *row = bench_alloc(NULL, (size_t)row_bytes + 1);

	snprintf(path, sizeof path, "%s/limit.db", dir);
	if (sqlite3_open(path, &l->db) ||
	    sqlite3_exec(l->db,
			 "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=0;"
			 "CREATE TABLE log(pos INTEGER PRIMARY KEY, body TEXT)",
			 NULL, NULL, NULL))
		bench_die("%s: %s", path, sqlite3_errmsg(l->db));
	l->begin = prepare(l, "BEGIN IMMEDIATE");
	l->add = prepare(l, "INSERT INTO log(body) VALUES(?1)");
	l->commit = prepare(l, "COMMIT");
	memset(row, 'x', (size_t)row_bytes);
	sqlite3_bind_text(l->add, 1, row, row_bytes, SQLITE_STATIC);
}

static void push(struct rows *r, const struct bare_row *v, size_t n)
{
	if (r->n + n > r->cap) {
		r->cap = 2 * (r->n + n);
		r->v = bench_alloc(r->v, r->cap * sizeof *r->v);
	}
	memcpy(r->v + r->n, v, n * sizeof *v);
	r->n += n;
}

static void swap(struct rows *a, struct rows *b)
{
	struct rows t = *a;

	*a = *b;
	*b = t;
	b->n = 0;
}

static void take_batch(struct bare_log *l)
{
	pthread_mutex_lock(&l->lock);
	while (l->asked.n == 0)
		pthread_cond_wait(&l->work, &l->lock);
	swap(&l->batch, &l->asked);
	pthread_mutex_unlock(&l->lock);
}

static void hand_back(struct bare_log *l)
{
	uint64_t one = 1;

	pthread_mutex_lock(&l->lock);
	push(&l->committed, l->batch.v, l->batch.n);
	pthread_mutex_unlock(&l->lock);
	if (write(l->wake, &one, sizeof one) != sizeof one)
		bench_die("eventfd: %s", strerror(errno));
}

static void *commit_all(void *arg)
{
	struct bare_log *l = arg;

	for (;;) {
		take_batch(l);
		step(l, l->begin);
		for (size_t i = 0; i < l->batch.n; i++)
			step(l, l->add);
		step(l, l->commit);
		hand_back(l);
	}
	return NULL;
}

struct bare_log *bare_log_start(const char *dir, int row_bytes, int wake)
{
	static struct bare_log log = { .lock = PTHREAD_MUTEX_INITIALIZER,
				       .work = PTHREAD_COND_INITIALIZER };
	pthread_t thread;

	log.wake = wake;
	open_table(&log, dir, row_bytes);
	if (pthread_create(&thread, NULL, commit_all, &log))
		bench_die("no thread");
	return &log;
}

void bare_log_add(struct bare_log *l, struct bare_row row)
{
	pthread_mutex_lock(&l->lock);
	push(&l->asked, &row, 1);
	pthread_mutex_unlock(&l->lock);
	pthread_cond_signal(&l->work);
}

size_t bare_log_take(struct bare_log *l, const struct bare_row **out)
{
	uint64_t n;

	if (read(l->wake, &n, sizeof n) != sizeof n)
		return 0;
	pthread_mutex_lock(&l->lock);
	swap(&l->taken, &l->committed);
	pthread_mutex_unlock(&l->lock);
	*out = l->taken.v;
	return l->taken.n;
}

/* --- sockets ---------------------------------------------------------------------- */

void bare_watch(int epoll, int fd, uint64_t data)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = data };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev))
		bench_die("epoll_ctl: %s", strerror(errno));
}

int bare_listen(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof a;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 4096) ||
	    getsockname(fd, (struct sockaddr *)&a, &size))
		bench_die("listen: %s", strerror(errno));
	printf("{\"url\":\"http://127.0.0.1:%d\",\"token\":\"none\",\"pid\":%d}\n",
	       ntohs(a.sin_port), (int)getpid());
	fflush(stdout);
	return fd;
}

int bare_accept(int listener)
{
	int on = 1, fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	return fd;
}

void bare_send(int fd, const char *p, size_t n)
{
	if (send(fd, p, n, MSG_NOSIGNAL) != (ssize_t)n)
		bench_die("send: %s", strerror(errno));
}

/* --- the loop --------------------------------------------------------------------- */

void bare_start(struct bare_server *s, const char *dir, int row_bytes)
{
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	bare_watch(s->epoll, s->wake, (uint64_t)s->wake);
	s->log = bare_log_start(dir, row_bytes, s->wake);
	s->listener = bare_listen();
	bare_watch(s->epoll, s->listener, (uint64_t)s->listener);
}

static void on_connection(struct bare_server *s, const struct bare_handler *h)
{
	int fd;

	while ((fd = bare_accept(s->listener)) >= 0) {
		if (h->opened)
			h->opened(h->ctx, fd);
		bare_watch(s->epoll, fd, (uint64_t)fd);
	}
}

static void on_committed(struct bare_server *s, const struct bare_handler *h)
{
	const struct bare_row *rows;
	size_t n = bare_log_take(s->log, &rows);

	if (n)
		h->committed(h->ctx, rows, n);
}

void bare_serve(struct bare_server *s, const struct bare_handler *h)
{
	struct epoll_event evs[512];

	for (;;) {
		int n = epoll_wait(s->epoll, evs, 512, -1);

		for (int i = 0; i < n; i++) {
			int fd = evs[i].data.fd;

			if (fd == s->listener)
				on_connection(s, h);
			else if (fd == s->wake)
				on_committed(s, h);
			else
				h->readable(h->ctx, fd);
		}
	}
}
