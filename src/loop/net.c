/* net.c - the thread on which libcurl runs, and what goes to and fro.
 *
 * To the thread go orders: bits in the transfer, which is on a list while it has
 * any. To the loop go pieces (net_answer.c) and ends, all of one turn of the thread at once.
 *
 * Two hubs. Plain http and https hosts known to speak HTTP/1.1 alone go to
 * `wide`, where every call may have a connection. Other https hosts go to
 * `shared`, which caps the connections to a host so that HTTP/2 multiplexes
 * (without the cap libcurl opens nearly one a call). The first HTTP/1 status line
 * from such a host moves it, with the calls that wait for a connection, to `wide`.
 *
 * The loop of the thread runs on the system's clock, as libcurl does. */
#include "loop/net_int.h"

#include "base/alloc.h"
#include "loop/limits.h"

enum order {
	START = 1,
	GO_ON = 2, /* the inbox has room again */
	STOP = 4,
};

struct origin { /* an https host without HTTP/2 */
	struct uar_list node;
	uar_str name; /* "https://host:port"; after the struct */
};

/* --- to the loop -------------------------------------------------------------- */

static void send_mail(struct uar_net *n)
{
	n->mail.round++;
	uar_done_push(n->mail.done, &n->mail.tasks);
}

static void on_send(struct uar_task *t)
{
	send_mail(UAR_OWNER(t, struct uar_net, mail.send));
}

void uar_net_tell(struct uar_net *n, struct uar_task *t)
{
	uar_list_add_last(&n->mail.tasks, &t->node);
	uar_post(uar_loop_sched(n->loop), &n->mail.send);
}

/* --- which hub -------------------------------------------------------------- */

static bool is_known(const struct uar_net *n, uar_str name)
{
	UAR_LIST_EACH (it, &n->origins)
		if (uar_str_eq(UAR_OWNER(it, struct origin, node)->name, name))
			return true;
	return false;
}

static void forget(struct uar_net *n, struct origin *o)
{
	uar_list_remove(&o->node);
	uar_free(o);
	n->origin_count--;
}

void uar_net_learn(struct uar_net *n, uar_str name)
{
	struct origin *o = is_known(n, name) ? NULL : uar_alloc(sizeof *o + name.n);

	if (!o)
		return;
	if (n->origin_count >= UAR_LIMIT_CLIENT_ORIGINS)
		forget(n, UAR_OWNER(n->origins.next, struct origin, node));
	memcpy(o + 1, name.p, name.n);
	o->name = uar_str_n((char *)(o + 1), name.n);
	uar_list_add_last(&n->origins, &o->node);
	n->origin_count++;
	n->learned = true;
}

static uar_err join(struct uar_transfer *t)
{
	struct uar_net *n = t->net;
	uar_str origin = t->request.origin;
	bool wide = !uar_str_starts(origin, UAR_STR("https:")) || is_known(n, origin);
	struct uar_hub *h = wide ? &n->wide : &n->shared;
	long version = wide ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS;
	uar_err e;

	n->curl->easy_setopt(t->easy, CURLOPT_HTTP_VERSION, version);
	n->curl->easy_setopt(t->easy, CURLOPT_PIPEWAIT, wide ? 0L : 1L);
	e = uar_hub_add(h, t->easy);
	if (!e)
		t->hub = h;
	return e;
}

static void leave(struct uar_transfer *t)
{
	if (t->hub)
		uar_hub_remove(t->hub, t->easy);
	t->hub = NULL;
}

/* --- streams that are given up ---------------------------------------------------------------- */

/* The peer must learn at once that the transfer has ended. libcurl closes a connection of
 * HTTP/1.1. On HTTP/2 it resets the stream, but from 7.88 to 8.14 the reset stays in its
 * buffer until another stream of the connection sends. So a connection without other
 * transfers is closed; otherwise one of the others is made to send. */

void uar_net_give_up(struct uar_transfer *t)
{
	t->net->curl->easy_setopt(t->easy, CURLOPT_FORBID_REUSE, 1L);
}

/* A pause that ends at once says nothing but what is in the buffer. One who is held
 * will speak when he goes on. */
static void speak_on(struct uar_net *n, const struct uar_way *way)
{
	UAR_LIST_EACH (it, &n->transfers) {
		struct uar_transfer *t = UAR_OWNER(it, struct uar_transfer, node);

		if (t->hub != &n->shared || !t->sent || t->held || !uar_way_same(&t->way, way))
			continue;
		if (!n->curl->easy_pause(t->easy, CURLPAUSE_SEND) &&
		    !n->curl->easy_pause(t->easy, CURLPAUSE_CONT))
			return; /* else it has no connection at the moment */
	}
}

/* --- the end of a transfer ------------------------------------------------------- */

static void look_at_answer(struct uar_transfer *t)
{
	const struct uar_curl *c = t->net->curl;
	curl_off_t seconds = 0;
	long status = 0;

	c->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	c->easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &seconds);
	t->outcome.status = (int)status;
	if (seconds > 0 && seconds <= INT64_MAX / 1000000)
		t->outcome.retry_after_us = (int64_t)seconds * 1000000;
}

static void let_go(struct uar_transfer *t)
{
	uar_list_remove(&t->node);
	leave(t);
	if (t->easy)
		t->net->curl->easy_cleanup(t->easy);
	t->easy = NULL;
}

/* libcurl keeps a line of a head until it is whole, up to a limit of its own, and says past that
 * that it has no memory (later versions: that something is too large). */
static bool is_long_line(const struct uar_transfer *t, CURLcode code)
{
	enum { TOO_LARGE = 100 };

	/* No status yet: not a byte of a body. */
	return (code == CURLE_OUT_OF_MEMORY || (int)code == TOO_LARGE) && t->sent &&
	       !t->outcome.err && !t->outcome.status;
}

static void end(struct uar_transfer *t, CURLcode code)
{
	struct uar_net *n = t->net;
	bool reset = code && t->hub == &n->shared && t->sent;

	t->outcome.code = code;
	if (is_long_line(t, code))
		t->outcome.err = UAR_EHEADERS;
	if (t->easy)
		look_at_answer(t);
	if (reset)
		uar_net_give_up(t);
	let_go(t);
	if (reset)
		speak_on(n, &t->way);
	pthread_mutex_lock(&n->orders.lock);
	t->deaf = true;
	uar_list_remove(&t->order);
	pthread_mutex_unlock(&n->orders.lock);
	uar_net_tell(n, &t->over);
}

/* --- streams that are refused ----------------------------------------------------------------- */

/* How many streams a connection takes is in the first words of its host. Until libcurl
 * has read them everybody who waits for a connection gets on it, and the host refuses
 * those who are too many. HTTP/2 promises that it has not looked at them, so libcurl tries
 * again on a new connection, where the same may happen; after five times it gives up. Of
 * a crowd at a host that takes two streams somebody is refused more often than that.
 *
 * libcurl has no code for it. It reports that reading failed and says why in these words, when
 * nothing else has gone wrong in any of the tries: the first words stay. The same words with
 * another code tell of connections that were closed, and then the request may have been read.
 * Should it find other words the call fails as before, and its caller may repeat it. */
bool uar_net_is_refusal(CURLcode code, const char *reason)
{
	return code == CURLE_RECV_ERROR &&
	       uar_str_starts(uar_str_c(reason), UAR_STR("Connection died, tried "));
}

static bool was_refused(const struct uar_transfer *t, CURLcode code)
{
	return t->hub == &t->net->shared && !t->head_bytes &&
	       uar_net_is_refusal(code, t->outcome.reason);
}

static uar_err begin_again(struct uar_transfer *t)
{
	t->refused++;
	t->sent = false;
	t->outcome.reason[0] = '\0';
	leave(t);
	return join(t);
}

static void on_ended(void *ctx, CURL *easy, CURLcode code)
{
	struct uar_net *n = ctx;
	struct uar_transfer *t;
	char *private = NULL;

	n->curl->easy_getinfo(easy, CURLINFO_PRIVATE, &private);
	t = (struct uar_transfer *)(void *)private;
	if (!was_refused(t, code) || t->refused >= UAR_LIMIT_CLIENT_REFUSED)
		end(t, code);
	else if (begin_again(t))
		end(t, CURLE_OUT_OF_MEMORY);
}

/* libcurl is off the stack: do what had to wait for that. */
static void settle(void *ctx)
{
	struct uar_net *n = ctx;

	if (!n->learned)
		return;
	n->learned = false;
	UAR_LIST_EACH (it, &n->transfers) {
		struct uar_transfer *t = UAR_OWNER(it, struct uar_transfer, node);

		if (t->hub != &n->shared || t->sent || !is_known(n, t->request.origin))
			continue;
		leave(t);
		if (join(t))
			end(t, CURLE_OUT_OF_MEMORY);
	}
}

/* --- libcurl's callbacks ----------------------------------------------------- */

static int on_sending(void *ctx, char *ip, char *local_ip, int port, int local_port)
{
	struct uar_transfer *t = ctx;

	t->sent = true;
	t->way = (struct uar_way){ .local_port = local_port, .remote_port = port };
	snprintf(t->way.local, sizeof t->way.local, "%s", local_ip);
	snprintf(t->way.remote, sizeof t->way.remote, "%s", ip);
	return uar_client_may_send(&t->request, ip, port) ? CURL_PREREQFUNC_OK
							  : CURL_PREREQFUNC_ABORT;
}

/* --- orders -------------------------------------------------------------------- */

static CURLcode set_callbacks(const struct uar_curl *c, CURL *h, struct uar_transfer *t)
{
	CURLcode bad = CURLE_OK;

	bad |= c->easy_setopt(h, CURLOPT_PRIVATE, t);
	bad |= c->easy_setopt(h, CURLOPT_ERRORBUFFER, t->outcome.reason);
	bad |= c->easy_setopt(h, CURLOPT_WRITEFUNCTION, uar_net_on_body);
	bad |= c->easy_setopt(h, CURLOPT_WRITEDATA, t);
	bad |= c->easy_setopt(h, CURLOPT_HEADERFUNCTION, uar_net_on_header);
	bad |= c->easy_setopt(h, CURLOPT_HEADERDATA, t);
	bad |= c->easy_setopt(h, CURLOPT_PREREQFUNCTION, on_sending);
	bad |= c->easy_setopt(h, CURLOPT_PREREQDATA, t);
	return bad;
}

static void begin(struct uar_transfer *t)
{
	struct uar_net *n = t->net;

	uar_list_add_last(&n->transfers, &t->node);
	t->easy = n->curl->easy_init();
	if (!t->easy || uar_client_prepare(n->curl, t->easy, &t->request) ||
	    set_callbacks(n->curl, t->easy, t) || join(t))
		end(t, CURLE_OUT_OF_MEMORY);
}

static void go_on(struct uar_transfer *t)
{
	CURLcode code;

	if (!t->held || atomic_load(&t->unread) >= UAR_LIMIT_CLIENT_INBOX)
		return;
	t->held = false;
	code = uar_hub_resume(t->hub, t->easy);
	if (code) /* libcurl says so here and nowhere else */
		end(t, code);
}

static void obey(struct uar_transfer *t, unsigned orders)
{
	if (orders & STOP)
		end(t, CURLE_ABORTED_BY_CALLBACK);
	else if (orders & START)
		begin(t);
	else
		go_on(t);
}

/* One at a time: an end takes the transfer off the list. */
static struct uar_transfer *next_order(struct uar_net *n, unsigned *out_orders)
{
	struct net_orders *o = &n->orders;
	struct uar_transfer *t = NULL;

	pthread_mutex_lock(&o->lock);
	if (o->leave) {
		uar_loop_stop(n->loop);
	} else if (uar_list_empty(&o->transfers)) {
		o->posted = false;
	} else {
		t = UAR_OWNER(o->transfers.next, struct uar_transfer, order);
		uar_list_remove(&t->order);
		*out_orders = t->orders;
		t->orders = 0;
	}
	pthread_mutex_unlock(&o->lock);
	return t;
}

static void on_wake(struct uar_task *task)
{
	struct uar_net *n = UAR_OWNER(task, struct uar_net, orders.wake);
	struct uar_transfer *t = NULL;
	unsigned orders;

	for (int i = 0; i < UAR_LIMIT_CLIENT_ORDERS && (t = next_order(n, &orders)); i++)
		obey(t, orders);
	if (t) /* there may be more */
		uar_post(uar_loop_sched(n->loop), task);
	settle(n);
	send_mail(n);
}

/* `t` NULL: the thread itself is to leave. */
static void order(struct uar_net *n, struct uar_transfer *t, unsigned what)
{
	struct net_orders *o = &n->orders;
	bool wake = false;

	pthread_mutex_lock(&o->lock);
	if (!t) {
		o->leave = true;
	} else if (!t->deaf) {
		if (!t->orders)
			uar_list_add_last(&o->transfers, &t->order);
		t->orders |= what;
	}
	if (!o->posted && (o->leave || !uar_list_empty(&o->transfers)))
		wake = o->posted = true;
	pthread_mutex_unlock(&o->lock);
	if (wake)
		uar_post_remote(uar_loop_sched(n->loop), &o->wake);
}

void uar_net_start(struct uar_net *n, struct uar_transfer *t)
{
	t->net = n;
	uar_list_init(&t->node);
	uar_list_init(&t->order);
	order(n, t, START);
}

void uar_net_stop(struct uar_transfer *t)
{
	order(t->net, t, STOP);
}

/* The one who makes room in a full inbox says so. The thread may find it full on
 * an old number; then it gets the order after that. */
void uar_net_read(struct uar_transfer *t, struct uar_piece *p)
{
	size_t size = uar_piece_size(p), before = atomic_fetch_sub(&t->unread, size);

	uar_free(p->cap == UAR_LIMIT_CLIENT_SPARE ? atomic_exchange(&t->spare, p) : p);
	if (before >= UAR_LIMIT_CLIENT_INBOX && before - size < UAR_LIMIT_CLIENT_INBOX)
		order(t->net, t, GO_ON);
}

/* --- life ---------------------------------------------------------------------- */

static void *net_main(void *ctx)
{
	struct uar_net *n = ctx;

	uar_loop_run(n->loop);
	while (!uar_list_empty(&n->transfers))
		let_go(UAR_OWNER(n->transfers.next, struct uar_transfer, node));
	return NULL;
}

static uar_err make_hubs(struct uar_net *n)
{
	uar_err e;

	n->wide = (struct uar_hub){
		.curl = n->curl, .loop = n->loop, .ended = on_ended, .after = settle, .ctx = n
	};
	n->shared = n->wide;
	e = uar_hub_init(&n->wide, 0);
	return e ? e : uar_hub_init(&n->shared, UAR_LIMIT_CLIENT_HOST_CONNECTIONS);
}

static uar_err start(struct uar_net *n, struct uar_sched *sched)
{
	uar_err e = uar_loop_create(&uar_clock_system, &n->loop);

	if (!e)
		e = make_hubs(n);
	n->mail.done = e ? NULL : uar_done_create(sched);
	if (!n->mail.done || pthread_create(&n->thread, NULL, net_main, n))
		return e ? e : UAR_ENOMEM;
	pthread_setname_np(n->thread, "uar-net");
	n->running = true;
	return UAR_OK;
}

uar_err uar_net_create(struct uar_sched *sched, uar_task_fn *piece, struct uar_net **out,
		       struct uar_error *error)
{
	const struct uar_curl *curl;
	uar_err e = uar_curl_load(&curl, error);
	struct uar_net *n;

	if (e)
		return e;
	n = uar_zalloc(sizeof *n);
	if (!n)
		return uar_error_set(error, UAR_ENOMEM, "%s", uar_err_text(UAR_ENOMEM));
	n->curl = curl;
	n->mail.piece = piece;
	n->mail.send.fn = on_send;
	n->orders.wake.fn = on_wake;
	uar_list_init(&n->mail.tasks);
	uar_list_init(&n->orders.transfers);
	uar_list_init(&n->transfers);
	uar_list_init(&n->origins);
	pthread_mutex_init(&n->orders.lock, NULL);
	e = start(n, sched);
	if (e) {
		uar_net_destroy(n);
		return uar_error_set(error, e, "libcurl cannot be set up");
	}
	*out = n;
	return UAR_OK;
}

/* Pieces are nobody's yet, ends belong to their owners. */
static void discard_mail(struct uar_net *n)
{
	if (n->mail.done)
		uar_done_take(n->mail.done, &n->mail.tasks);
	while (!uar_list_empty(&n->mail.tasks)) {
		struct uar_task *t = UAR_OWNER(n->mail.tasks.next, struct uar_task, node);

		uar_list_remove(&t->node);
		if (t->fn == n->mail.piece)
			uar_free(UAR_OWNER(t, struct uar_piece, task));
	}
	uar_done_destroy(n->mail.done);
}

void uar_net_destroy(struct uar_net *n)
{
	if (!n)
		return;
	if (n->running) {
		order(n, NULL, 0);
		pthread_join(n->thread, NULL);
	}
	discard_mail(n);
	while (!uar_list_empty(&n->origins))
		forget(n, UAR_OWNER(n->origins.next, struct origin, node));
	uar_hub_fini(&n->wide);
	uar_hub_fini(&n->shared);
	if (n->loop)
		uar_unpost(uar_loop_sched(n->loop), &n->mail.send);
	uar_loop_destroy(n->loop);
	pthread_mutex_destroy(&n->orders.lock);
	uar_free(n);
}

const struct uar_curl *uar_net_curl(const struct uar_net *n)
{
	return n->curl;
}
