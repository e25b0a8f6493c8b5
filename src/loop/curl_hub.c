/* curl_hub.c - libcurl's sockets and timeouts on libuv. */
#include "loop/curl_hub.h"

#include <uv.h>

#include "base/alloc.h"
#include "loop/limits.h"

struct watch { /* one socket of libcurl's; freed by its close callback */
	uv_poll_t poll;
	struct uar_hub *hub;
	curl_socket_t fd;
	int events; /* asked for */
};

static void collect(struct uar_hub *h)
{
	CURLMsg *m;
	int left;

	while ((m = h->curl->multi_info_read(h->multi, &left))) {
		CURL *easy = m->easy_handle;
		CURLcode code = m->data.result;

		if (m->msg == CURLMSG_DONE)
			h->ended(h->ctx, easy, code);
	}
	h->after(h->ctx);
}

static void act(struct uar_hub *h, curl_socket_t fd, int what)
{
	int running;

	h->curl->multi_socket_action(h->multi, fd, what, &running);
	collect(h);
}

static void on_timer(struct uar_timer *t)
{
	act(UAR_OWNER(t, struct uar_hub, timer), CURL_SOCKET_TIMEOUT, 0);
}

static void on_task(struct uar_task *t)
{
	act(UAR_OWNER(t, struct uar_hub, task), CURL_SOCKET_TIMEOUT, 0);
}

/* libuv gives up on a socket in error; what the peer sent before is still there
 * to be read, and reading tells the true reason. So it goes on until libcurl
 * lets go of the socket. */
static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct watch *w = UAR_OWNER(poll, struct watch, poll);
	int what = 0;

	if (status < 0)
		events = w->events;
	if (events & UV_READABLE)
		what |= CURL_CSELECT_IN;
	if (events & UV_WRITABLE)
		what |= CURL_CSELECT_OUT;
	act(w->hub, w->fd, what);
	if (status < 0 && w->events && !uv_is_closing((uv_handle_t *)poll))
		uv_poll_start(poll, w->events, on_poll);
}

static void free_watch(uv_handle_t *handle)
{
	uar_free(UAR_OWNER(handle, struct watch, poll));
}

static struct watch *watch_create(struct uar_hub *h, curl_socket_t fd)
{
	struct watch *w = uar_zalloc(sizeof *w);

	if (!w)
		return NULL;
	w->hub = h;
	w->fd = fd;
	if (uv_poll_init_socket(uar_loop_uv(h->loop), &w->poll, fd) != 0) {
		uar_free(w);
		return NULL;
	}
	return w;
}

/* A socket that cannot be watched is left alone: the timeouts of its transfer
 * end it. Reporting an error here would end every transfer of the hub. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx)
{
	struct uar_hub *h = ctx;
	struct watch *w = socket_ctx;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (w)
			uv_close((uv_handle_t *)&w->poll, free_watch);
		h->curl->multi_assign(h->multi, fd, NULL);
		return 0;
	}
	if (!w)
		w = watch_create(h, fd);
	if (!w)
		return 0;
	h->curl->multi_assign(h->multi, fd, w);
	w->events = 0;
	if (what & CURL_POLL_IN)
		w->events |= UV_READABLE;
	if (what & CURL_POLL_OUT)
		w->events |= UV_WRITABLE;
	if (w->events)
		uv_poll_start(&w->poll, w->events, on_poll);
	else
		uv_poll_stop(&w->poll);
	return 0;
}

static int on_timeout(CURLM *multi, long ms, void *ctx)
{
	struct uar_hub *h = ctx;
	struct uar_sched *s = uar_loop_sched(h->loop);

	(void)multi;
	if (ms < 0)
		uar_timer_stop(s, &h->timer);
	else if (uar_timer_set(s, &h->timer, (int64_t)ms * 1000))
		uar_post(s, &h->task); /* early is harmless, an error would end everything */
	return 0;
}

uar_err uar_hub_init(struct uar_hub *h, long per_host)
{
	const struct uar_curl *c = h->curl;
	CURLM *m = c->multi_init();
	CURLMcode bad = CURLM_OK;

	h->multi = m;
	h->timer = (struct uar_timer){ .fn = on_timer };
	h->task = (struct uar_task){ .fn = on_task };
	if (!m)
		return UAR_ENOMEM;
	bad |= c->multi_setopt(m, CURLMOPT_SOCKETFUNCTION, on_socket);
	bad |= c->multi_setopt(m, CURLMOPT_SOCKETDATA, h);
	bad |= c->multi_setopt(m, CURLMOPT_TIMERFUNCTION, on_timeout);
	bad |= c->multi_setopt(m, CURLMOPT_TIMERDATA, h);
	bad |= c->multi_setopt(m, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
	bad |= c->multi_setopt(m, CURLMOPT_MAX_HOST_CONNECTIONS, per_host);
	bad |= c->multi_setopt(m, CURLMOPT_MAXCONNECTS, (long)UAR_LIMIT_CLIENT_IDLE_CONNECTIONS);
	return bad ? UAR_EINTERNAL : UAR_OK;
}

void uar_hub_fini(struct uar_hub *h)
{
	if (!h->multi)
		return;
	h->curl->multi_cleanup(h->multi);
	uar_timer_stop(uar_loop_sched(h->loop), &h->timer);
	uar_unpost(uar_loop_sched(h->loop), &h->task);
	h->multi = NULL;
}

uar_err uar_hub_add(struct uar_hub *h, CURL *easy)
{
	return h->curl->multi_add_handle(h->multi, easy) == CURLM_OK ? UAR_OK : UAR_ENOMEM;
}

void uar_hub_remove(struct uar_hub *h, CURL *easy)
{
	h->curl->multi_remove_handle(h->multi, easy);
}

CURLcode uar_hub_resume(struct uar_hub *h, CURL *easy)
{
	return h->curl->easy_pause(easy, CURLPAUSE_CONT);
}
