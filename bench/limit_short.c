/* limit_short.c - what a short run costs with nothing but epoll, send and SQLite.
 *
 *	limit_short DIR CREATED STREAM RECORD ROW_BYTES
 *
 * Answers the three requests of a short run with the bytes of three files: a POST
 * with CREATED, once a row of ROW_BYTES is committed (one table, one thread that
 * commits all that waits, synchronous=FULL), GET .../stream with STREAM as one
 * chunk, any other GET with RECORD. It looks at nothing else and keeps no index: the
 * floor under what a server can cost on this machine. Prints where it listens as the
 * server does. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/client.h"
#include "lib/measure.h"

enum { MAX_WAITING = 1024 };

struct waiting { /* sockets whose POST is answered after a commit */
	int fd[MAX_WAITING];
	size_t n;
};

struct limit {
	int epoll, listener, wake;
	struct bench_bytes created, stream, record; /* whole answers */
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct waiting asked, committed; /* guarded by the lock, as is the next */
	size_t under_way;		 /* asked for and not answered yet */
	sqlite3 *db;
	sqlite3_stmt *begin, *add, *commit;
	char *row;
	int row_bytes;
};

/* --- answers -------------------------------------------------------------------- */

static struct bench_bytes file_bytes(const char *path)
{
	struct bench_bytes b = { 0 };
	char part[4096];
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f)
		bench_die("%s: %s", path, strerror(errno));
	while ((n = fread(part, 1, sizeof part, f)) > 0)
		bench_bytes_add(&b, part, n);
	fclose(f);
	return b;
}

static struct bench_bytes answer(const char *path, bool stream)
{
	struct bench_bytes body = file_bytes(path), all = { 0 };
	char head[256];
	int n = stream ? snprintf(head, sizeof head,
				  "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
				  "Transfer-Encoding: chunked\r\n\r\n%zx\r\n",
				  body.n)
		       : snprintf(head, sizeof head,
				  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
				  "Content-Length: %zu\r\n\r\n",
				  body.n);

	bench_bytes_add(&all, head, (size_t)n);
	bench_bytes_add(&all, body.p, body.n);
	if (stream)
		bench_bytes_add(&all, "\r\n0\r\n\r\n", 7);
	free(body.p);
	return all;
}

static void reply(int fd, const struct bench_bytes *b)
{
	if (send(fd, b->p, b->n, MSG_NOSIGNAL) != (ssize_t)b->n)
		bench_die("send: %s", strerror(errno));
}

/* --- commits ---------------------------------------------------------------------- */

static sqlite3_stmt *prepare(struct limit *l, const char *sql)
{
	sqlite3_stmt *st;

	if (sqlite3_prepare_v2(l->db, sql, -1, &st, NULL))
		bench_die("%s: %s", sql, sqlite3_errmsg(l->db));
	return st;
}

static void step(struct limit *l, sqlite3_stmt *st)
{
	if (sqlite3_step(st) != SQLITE_DONE)
		bench_die("%s", sqlite3_errmsg(l->db));
	sqlite3_reset(st);
}

static void open_log(struct limit *l, const char *dir)
{
	char path[512];

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
	l->row = bench_alloc(NULL, (size_t)l->row_bytes + 1);
	memset(l->row, 'x', (size_t)l->row_bytes);
	sqlite3_bind_text(l->add, 1, l->row, l->row_bytes, SQLITE_STATIC);
}

static void take(struct limit *l, struct waiting *out)
{
	pthread_mutex_lock(&l->lock);
	while (l->asked.n == 0)
		pthread_cond_wait(&l->work, &l->lock);
	*out = l->asked;
	l->asked.n = 0;
	pthread_mutex_unlock(&l->lock);
}

static void hand_back(struct limit *l, const struct waiting *batch)
{
	uint64_t one = 1;

	pthread_mutex_lock(&l->lock);
	memcpy(l->committed.fd + l->committed.n, batch->fd, batch->n * sizeof *batch->fd);
	l->committed.n += batch->n;
	pthread_mutex_unlock(&l->lock);
	if (write(l->wake, &one, sizeof one) != sizeof one)
		bench_die("eventfd: %s", strerror(errno));
}

static void *commit_all(void *arg)
{
	struct limit *l = arg;
	struct waiting batch;

	for (;;) {
		take(l, &batch);
		step(l, l->begin);
		for (size_t i = 0; i < batch.n; i++)
			step(l, l->add);
		step(l, l->commit);
		hand_back(l, &batch);
	}
	return NULL;
}

/* --- requests --------------------------------------------------------------------- */

static void ask_commit(struct limit *l, int fd)
{
	pthread_mutex_lock(&l->lock);
	if (l->under_way++ == MAX_WAITING)
		bench_die("too many clients");
	l->asked.fd[l->asked.n++] = fd;
	pthread_mutex_unlock(&l->lock);
	pthread_cond_signal(&l->work);
}

static void on_committed(struct limit *l)
{
	struct waiting done;
	uint64_t n;

	if (read(l->wake, &n, sizeof n) != sizeof n)
		return;
	pthread_mutex_lock(&l->lock);
	done = l->committed;
	l->committed.n = 0;
	l->under_way -= done.n;
	pthread_mutex_unlock(&l->lock);
	for (size_t i = 0; i < done.n; i++)
		reply(done.fd[i], &l->created);
}

/* The client sends a request in one piece and waits for the answer. */
static void on_request(struct limit *l, int fd)
{
	char request[4096];
	ssize_t n = recv(fd, request, sizeof request - 1, 0);

	if (n <= 0) {
		close(fd);
		return;
	}
	request[n] = 0;
	if (memcmp(request, "POST", 4) == 0)
		ask_commit(l, fd);
	else
		reply(fd, strstr(request, "/stream") ? &l->stream : &l->record);
}

static void watch(struct limit *l, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &ev))
		bench_die("epoll_ctl: %s", strerror(errno));
}

static void on_connection(struct limit *l)
{
	int fd, on = 1;

	while ((fd = accept4(l->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		watch(l, fd);
	}
}

static void listen_any(struct limit *l)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof a;

	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	l->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (bind(l->listener, (struct sockaddr *)&a, sizeof a) || listen(l->listener, 4096) ||
	    getsockname(l->listener, (struct sockaddr *)&a, &size))
		bench_die("listen: %s", strerror(errno));
	watch(l, l->listener);
	watch(l, l->wake);
	printf("{\"url\":\"http://127.0.0.1:%d\",\"token\":\"none\",\"pid\":%d}\n",
	       ntohs(a.sin_port), (int)getpid());
	fflush(stdout);
}

static void serve(struct limit *l)
{
	struct epoll_event evs[512];

	for (;;) {
		int n = epoll_wait(l->epoll, evs, 512, -1);

		for (int i = 0; i < n; i++) {
			int fd = evs[i].data.fd;

			if (fd == l->listener)
				on_connection(l);
			else if (fd == l->wake)
				on_committed(l);
			else
				on_request(l, fd);
		}
	}
}

int main(int argc, char **argv)
{
	static struct limit l = { .lock = PTHREAD_MUTEX_INITIALIZER,
				  .work = PTHREAD_COND_INITIALIZER };
	pthread_t writer;

	if (argc != 6)
		bench_die("usage: limit_short DIR CREATED STREAM RECORD ROW_BYTES");
	signal(SIGPIPE, SIG_IGN);
	l.created = answer(argv[2], false);
	l.stream = answer(argv[3], true);
	l.record = answer(argv[4], false);
	l.row_bytes = (int)strtol(argv[5], NULL, 10);
	open_log(&l, argv[1]);
	if (pthread_create(&writer, NULL, commit_all, &l))
		bench_die("no thread");
	listen_any(&l);
	serve(&l);
	return 0;
}
