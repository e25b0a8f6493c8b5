/* client.c - calls to the outside: their life, limits and errors.
 *
 * Two hubs. Plain http and https hosts known to speak HTTP/1.1 alone go to
 * `wide`, where every call may have a connection. Other https hosts go to
 * `shared`, which caps the connections to a host so that HTTP/2 multiplexes
 * (without the cap libcurl opens nearly one a call). The first HTTP/1 status line
 * from such a host moves it, with the calls that wait for a connection, to `wide`.
 *
 * libcurl forbids adding and removing inside its callbacks. What is cancelled
 * there waits in `cancelled` until libcurl has returned. */
#include "loop/client.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "loop/client_int.h"
#include "loop/curl_hub.h"

enum {
	IDLE_TIMEOUT_US = 60 * 1000 * 1000,
	ROUND_BYTES = 65536, /* of one call, before the others get their turn */
};

struct origin { /* an https host without HTTP/2 */
	struct uar_list node;
	uar_str name; /* "https://host:port"; after the struct */
};

struct uar_client {
	struct uar_loop *loop;
	struct uar_sched *sched;
	const struct uar_curl *curl; /* NULL before the first call */
	struct uar_hub wide, shared;
	struct uar_list calls;	   /* under way, or over and paused */
	struct uar_list ended;	   /* `done` is due */
	struct uar_list cancelled; /* to be freed once libcurl has returned */
	struct uar_list origins;
	size_t origin_count;
	uint64_t round; /* of libcurl */
	bool learned;	/* an origin was added: move the calls that wait */
	char *ca_file;
};

struct receiver {
	uar_err (*data)(void *ctx, uar_str bytes);
	void (*done)(void *ctx, uar_err e, int status, uar_str body, const char *reason);
	void *ctx;
};

struct share { /* of a round of libcurl */
	uint64_t round;
	size_t bytes;
};

struct uar_call {
	struct uar_list node;
	struct uar_client *client;
	struct uar_hub *hub; /* NULL: in none */
	CURL *easy;
	struct curl_slist *headers;
	uar_str origin;
	struct uar_timer idle;
	struct uar_task resume;
	int64_t idle_us, last_us; /* limit; when the last byte came */
	size_t head_bytes;
	struct share share;  /* the last round that brought bytes */
	struct uar_buf body; /* of an answer that is not 2xx */
	struct receiver to;
	int status;
	uar_err err; /* ours; decides over libcurl's */
	CURLcode code;
	bool paused, held; /* asked to; libcurl holds bytes back */
	bool sent;	   /* has a connection */
	bool over, cancelled;
	char reason[CURL_ERROR_SIZE];
	char text[]; /* address, body */
};

/* --- which hub -------------------------------------------------------------- */

static uar_str origin_of(uar_str url)
{
	size_t n = uar_str_starts(url, UAR_STR("https://")) ? 8 : 7;

	while (n < url.n && !strchr("/?#", url.p[n]))
		n++;
	return uar_str_n(url.p, n < url.n ? n : url.n);
}

static bool is_known(const struct uar_client *c, uar_str name)
{
	UAR_LIST_EACH (it, &c->origins)
		if (uar_str_eq(UAR_OWNER(it, struct origin, node)->name, name))
			return true;
	return false;
}

static void forget(struct uar_client *c, struct origin *o)
{
	uar_list_remove(&o->node);
	uar_free(o);
	c->origin_count--;
}

/* Inside libcurl: only remembers. Out of memory just means to learn it later. */
static void learn(struct uar_client *c, uar_str name)
{
	struct origin *o = is_known(c, name) ? NULL : uar_alloc(sizeof *o + name.n);

	if (!o)
		return;
	if (c->origin_count >= UAR_LIMIT_CLIENT_ORIGINS)
		forget(c, UAR_OWNER(c->origins.next, struct origin, node));
	memcpy(o + 1, name.p, name.n);
	o->name = uar_str_n((char *)(o + 1), name.n);
	uar_list_add_last(&c->origins, &o->node);
	c->origin_count++;
	c->learned = true;
}

static uar_err join(struct uar_call *call)
{
	struct uar_client *c = call->client;
	bool wide = !uar_str_starts(call->origin, UAR_STR("https:")) || is_known(c, call->origin);
	struct uar_hub *h = wide ? &c->wide : &c->shared;
	long version = wide ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS;
	uar_err e;

	c->curl->easy_setopt(call->easy, CURLOPT_HTTP_VERSION, version);
	c->curl->easy_setopt(call->easy, CURLOPT_PIPEWAIT, wide ? 0L : 1L);
	e = uar_hub_add(h, call->easy);
	if (!e)
		call->hub = h;
	return e;
}

static void leave(struct uar_call *call)
{
	if (call->hub)
		uar_hub_remove(call->hub, call->easy);
	call->hub = NULL;
}

/* --- the end of a call ------------------------------------------------------- */

static void call_destroy(struct uar_call *call)
{
	struct uar_client *c = call->client;

	uar_list_remove(&call->node);
	uar_timer_stop(c->sched, &call->idle);
	uar_unpost(c->sched, &call->resume);
	leave(call);
	if (call->easy)
		c->curl->easy_cleanup(call->easy);
	c->curl->slist_free_all(call->headers);
	uar_buf_fini(&call->body);
	uar_free(call);
}

/* Puts it among those whose `done` is due. */
static void end(struct uar_call *call, CURLcode code)
{
	long status = 0;

	if (call->over || call->cancelled)
		return;
	call->over = true;
	call->code = code;
	call->client->curl->easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	call->status = (int)status;
	leave(call);
	uar_list_remove(&call->node);
	uar_list_add_last(&call->client->ended, &call->node);
}

static uar_err error_of(CURLcode code)
{
	switch ((int)code) {
	case CURLE_OK: return UAR_OK;
	case CURLE_OPERATION_TIMEDOUT: return UAR_ETIMEOUT;
	case CURLE_OUT_OF_MEMORY: return UAR_ENOMEM;
	case CURLE_URL_MALFORMAT: return UAR_EINVALID;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE: return UAR_EFORBIDDEN;
	default: return UAR_ENET;
	}
}

static void deliver(struct uar_call *call)
{
	/* An error answer cut at its limit is an answer all the same. */
	bool cut = call->body.err == UAR_ETOOBIG;
	uar_err e = call->err ? call->err : cut ? UAR_OK : error_of(call->code);
	const char *reason = "";

	if (call->err)
		reason = uar_err_text(call->err);
	else if (e)
		reason = call->reason[0] ? call->reason
					 : call->client->curl->easy_strerror(call->code);
	uar_list_remove(&call->node);
	uar_timer_stop(call->client->sched, &call->idle);
	if (call->to.done)
		call->to.done(call->to.ctx, e, call->status, uar_buf_str(&call->body), reason);
	call_destroy(call);
}

static void move_waiting(struct uar_client *c)
{
	c->learned = false;
	UAR_LIST_EACH (it, &c->calls) {
		struct uar_call *call = UAR_OWNER(it, struct uar_call, node);

		if (call->hub != &c->shared || call->sent || !is_known(c, call->origin))
			continue;
		leave(call);
		if (join(call))
			end(call, CURLE_OUT_OF_MEMORY);
	}
}

/* libcurl is off the stack: do what had to wait for that. */
static void settle(void *ctx)
{
	struct uar_client *c = ctx;

	c->round++;
	if (c->learned)
		move_waiting(c);
	while (!uar_list_empty(&c->cancelled))
		call_destroy(UAR_OWNER(c->cancelled.next, struct uar_call, node));
	while (!uar_list_empty(&c->ended)) {
		struct uar_call *call = UAR_OWNER(c->ended.next, struct uar_call, node);

		if (call->paused) {
			uar_list_remove(&call->node);
			uar_list_add_last(&c->calls, &call->node);
		} else {
			deliver(call);
		}
	}
}

static void on_ended(void *ctx, CURL *easy, CURLcode code)
{
	struct uar_client *c = ctx;
	char *call = NULL;

	c->curl->easy_getinfo(easy, CURLINFO_PRIVATE, &call);
	end((struct uar_call *)(void *)call, code);
}

static void on_idle(struct uar_timer *t)
{
	struct uar_call *call = UAR_OWNER(t, struct uar_call, idle);
	struct uar_client *c = call->client;
	int64_t left = call->last_us + call->idle_us - uar_clock_mono(c->sched->clock);

	if (call->over) /* and paused */
		return;
	if (call->paused)
		left = call->idle_us;
	if (left > 0 && uar_timer_set(c->sched, t, left) == UAR_OK)
		return;
	call->err = UAR_ETIMEOUT;
	end(call, CURLE_OPERATION_TIMEDOUT);
	settle(c);
}

/* --- libcurl's callbacks ----------------------------------------------------- */

static int on_sending(void *ctx, char *ip, char *local_ip, int port, int local_port)
{
	struct uar_call *call = ctx;

	(void)ip, (void)local_ip, (void)port, (void)local_port;
	call->sent = true;
	return CURL_PREREQFUNC_OK;
}

static size_t on_header(char *p, size_t size, size_t n, void *ctx)
{
	struct uar_call *call = ctx;

	n *= size;
	call->last_us = uar_clock_mono(call->client->sched->clock);
	call->head_bytes += n;
	if (call->cancelled)
		return 0;
	if (call->head_bytes > UAR_LIMIT_CLIENT_HEAD) {
		call->err = UAR_EHEADERS;
		return 0;
	}
	if (call->hub == &call->client->shared &&
	    uar_str_starts(uar_str_n(p, n), UAR_STR("HTTP/1")))
		learn(call->client, call->origin);
	return n;
}

/* libcurl reads a fast peer for as long as it sends. Each call gets its share of
 * a round and goes on in the next turn of the loop. */
static bool has_had_its_share(struct uar_call *call, size_t n)
{
	struct share *s = &call->share;

	if (s->round != call->client->round)
		*s = (struct share){ call->client->round, 0 };
	if (s->bytes > ROUND_BYTES)
		return true;
	s->bytes += n;
	return false;
}

static size_t on_error_body(struct uar_call *call, const char *p, size_t n)
{
	size_t room = call->body.max - call->body.n;

	uar_buf_add(&call->body, p, n < room ? n : room);
	if (n > room)
		call->body.err = UAR_ETOOBIG;
	return call->body.err ? 0 : n;
}

static size_t on_body(char *p, size_t size, size_t n, void *ctx)
{
	struct uar_call *call = ctx;
	long status = call->status;

	n *= size;
	if (call->cancelled)
		return 0;
	if (!status)
		call->client->curl->easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	call->status = (int)status;
	call->last_us = uar_clock_mono(call->client->sched->clock);
	if (status < 200 || status > 299)
		return on_error_body(call, p, n);
	if (call->paused || has_had_its_share(call, n)) {
		call->held = true;
		if (!call->paused)
			uar_post(call->client->sched, &call->resume);
		return CURL_WRITEFUNC_PAUSE;
	}
	if (call->to.data)
		call->err = call->to.data(call->to.ctx, uar_str_n(p, n));
	return call->err || call->cancelled ? 0 : n;
}

/* --- the start of a call ----------------------------------------------------- */

static CURLcode set_callbacks(struct uar_call *call)
{
	const struct uar_curl *c = call->client->curl;
	CURL *h = call->easy;
	CURLcode bad = CURLE_OK;

	bad |= c->easy_setopt(h, CURLOPT_PRIVATE, call);
	bad |= c->easy_setopt(h, CURLOPT_HTTPHEADER, call->headers);
	bad |= c->easy_setopt(h, CURLOPT_ERRORBUFFER, call->reason);
	bad |= c->easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
	bad |= c->easy_setopt(h, CURLOPT_WRITEDATA, call);
	bad |= c->easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
	bad |= c->easy_setopt(h, CURLOPT_HEADERDATA, call);
	bad |= c->easy_setopt(h, CURLOPT_PREREQFUNCTION, on_sending);
	bad |= c->easy_setopt(h, CURLOPT_PREREQDATA, call);
	return bad;
}

static uar_err set_up(struct uar_call *call, const struct uar_call_options *o, char *body)
{
	struct uar_client *c = call->client;
	struct uar_client_request r = { o, call->text, call->origin, body, c->ca_file };
	uar_err e;

	call->easy = c->curl->easy_init();
	if (!call->easy)
		return UAR_ENOMEM;
	e = uar_client_headers(c->curl, o->headers, &call->headers);
	if (!e && (uar_client_prepare(c->curl, call->easy, &r) || set_callbacks(call)))
		e = UAR_ENOMEM;
	if (!e && call->idle_us > 0)
		e = uar_timer_set(c->sched, &call->idle, call->idle_us);
	return e ? e : join(call);
}

static void on_resume(struct uar_task *t)
{
	struct uar_call *call = UAR_OWNER(t, struct uar_call, resume);
	struct uar_client *c = call->client;
	CURLcode code;

	if (call->paused)
		return;
	if (call->over) {
		deliver(call);
		return;
	}
	call->held = false;
	code = uar_hub_resume(call->hub, call->easy);
	if (code) /* libcurl says so here and nowhere else */
		end(call, code);
	settle(c);
}

static struct uar_call *call_create(struct uar_client *c, const struct uar_call_options *o,
				    uar_str url, char **out_body)
{
	struct uar_call *call = uar_alloc(sizeof *call + url.n + 1 + o->body.n);

	if (!call)
		return NULL;
	memset(call, 0, sizeof *call);
	memcpy(call->text, url.p, url.n + 1);
	*out_body = call->text + url.n + 1;
	if (o->body.n)
		memcpy(*out_body, o->body.p, o->body.n);
	call->client = c;
	call->origin = origin_of(uar_str_n(call->text, url.n));
	call->idle.fn = on_idle;
	call->resume.fn = on_resume;
	call->idle_us = o->idle_timeout_us ? o->idle_timeout_us : IDLE_TIMEOUT_US;
	call->last_us = uar_clock_mono(c->sched->clock);
	call->body =
		uar_buf_make(o->max_error_body ? o->max_error_body : UAR_LIMIT_CLIENT_ERROR_BODY);
	call->to = (struct receiver){ o->data, o->done, o->ctx };
	uar_list_add_last(&c->calls, &call->node);
	return call;
}

static uar_err load(struct uar_client *c, struct uar_error *error)
{
	const struct uar_curl *curl;
	uar_err e = c->curl ? UAR_OK : uar_curl_load(&curl, error);

	if (e || c->curl)
		return e;
	c->wide = (struct uar_hub){
		.curl = curl, .loop = c->loop, .ended = on_ended, .after = settle, .ctx = c
	};
	c->shared = c->wide;
	e = uar_hub_init(&c->wide, 0);
	if (!e)
		e = uar_hub_init(&c->shared, UAR_LIMIT_CLIENT_HOST_CONNECTIONS);
	if (e) {
		uar_hub_fini(&c->wide);
		uar_hub_fini(&c->shared);
		return uar_error_set(error, e, "libcurl cannot be set up");
	}
	c->curl = curl;
	return UAR_OK;
}

uar_err uar_client_call(struct uar_client *c, const struct uar_call_options *o,
			struct uar_call **out, struct uar_error *error)
{
	uar_str url = uar_str_c(o->url);
	struct uar_call *call;
	char *body;
	uar_err e = uar_client_check_url(url, error);

	if (!e)
		e = load(c, error);
	if (e)
		return e;
	call = call_create(c, o, url, &body);
	if (!call)
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	e = set_up(call, o, body);
	if (e) {
		call_destroy(call);
		return uar_error_set(error, e, "%s",
				     e == UAR_EINVALID ? "a header has a control character in it"
						       : uar_err_text(e));
	}
	*out = call;
	return UAR_OK;
}

void uar_call_cancel(struct uar_call *call)
{
	struct uar_client *c;

	if (!call)
		return;
	c = call->client;
	if (!c->wide.busy && !c->shared.busy) {
		call_destroy(call);
		return;
	}
	call->cancelled = true;
	uar_timer_stop(c->sched, &call->idle);
	uar_unpost(c->sched, &call->resume);
	uar_list_remove(&call->node);
	uar_list_add_last(&c->cancelled, &call->node);
}

void uar_call_pause(struct uar_call *call, bool paused)
{
	if (call->paused == paused)
		return;
	call->paused = paused;
	call->last_us = uar_clock_mono(call->client->sched->clock);
	if (!paused && (call->held || call->over))
		uar_post(call->client->sched, &call->resume);
}

int uar_call_status(const struct uar_call *call)
{
	return call->status;
}

int64_t uar_call_retry_after_us(const struct uar_call *call)
{
	curl_off_t seconds = 0;

	call->client->curl->easy_getinfo(call->easy, CURLINFO_RETRY_AFTER, &seconds);
	if (seconds < 0 || seconds > INT64_MAX / 1000000)
		return 0;
	return (int64_t)seconds * 1000000;
}

/* --- the client ---------------------------------------------------------------- */

uar_err uar_client_create(struct uar_loop *l, struct uar_client **out)
{
	struct uar_client *c = uar_zalloc(sizeof *c);
	const char *ca = getenv("SSL_CERT_FILE");

	if (!c)
		return UAR_ENOMEM;
	c->loop = l;
	c->sched = uar_loop_sched(l);
	uar_list_init(&c->calls);
	uar_list_init(&c->ended);
	uar_list_init(&c->cancelled);
	uar_list_init(&c->origins);
	if (ca && *ca && !(c->ca_file = uar_strdup_n(ca, strlen(ca)))) {
		uar_client_destroy(c);
		return UAR_ENOMEM;
	}
	*out = c;
	return UAR_OK;
}

void uar_client_destroy(struct uar_client *c)
{
	if (!c)
		return;
	uar_list_move_all(&c->ended, &c->calls);
	uar_list_move_all(&c->cancelled, &c->calls);
	while (!uar_list_empty(&c->calls))
		call_destroy(UAR_OWNER(c->calls.next, struct uar_call, node));
	while (!uar_list_empty(&c->origins))
		forget(c, UAR_OWNER(c->origins.next, struct origin, node));
	uar_hub_fini(&c->wide);
	uar_hub_fini(&c->shared);
	uar_free(c->ca_file);
	uar_free(c);
}

struct uar_sched *uar_client_sched(const struct uar_client *c)
{
	return c->sched;
}
