/* client.c - calls to the outside as their callers see them: callbacks, limits, errors.
 *
 * All of it runs on the loop. What talks to peers is a transfer inside the call
 * (net.h), on a thread of its own, which the first call starts. A call lives until
 * its transfer is over, and longer while it is paused: `over` says so, nothing
 * comes after it. One that is cancelled or has failed lives on unseen until then;
 * what still comes is thrown away. */
#include "loop/client.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "loop/limits.h"
#include "loop/net.h"

enum { IDLE_TIMEOUT_US = 60 * 1000 * 1000 };
static const int64_t forever_us = INT64_MAX;

struct uar_client {
	struct uar_sched *sched;
	struct uar_net *net; /* NULL before the first call, as the next */
	const struct uar_curl *curl;
	struct uar_list calls;
	char *ca_file;
	struct uar_guard *guard; /* NULL: what is public passes */
};

struct receiver {
	void (*header)(void *ctx, uar_str name, uar_str value);
	uar_err (*data)(void *ctx, uar_str bytes);
	void (*done)(void *ctx, uar_err e, int status, uar_str body, const char *reason);
	void *ctx;
};

struct uar_call {
	struct uar_transfer transfer;
	struct uar_guarded guarded;
	struct uar_list node;
	struct uar_client *client;
	struct uar_list inbox; /* of uar_piece, not read yet */
	struct uar_timer limit;
	struct uar_task resume;
	int64_t idle_us, last_us;  /* limit, not above 0: none; when the last byte came */
	int64_t end_us, paused_us; /* when all of it has to be over; since when it is paused */
	struct receiver to;
	int status;
	uar_err err; /* ours; decides over the transfer's */
	const char *failure;
	bool paused; /* asked to */
	bool cancelled, over;
	bool reading; /* its callback is on the stack */
	char text[];  /* address, method */
};

static struct uar_call *call_of(struct uar_transfer *t)
{
	return UAR_OWNER(t, struct uar_call, transfer);
}

/* --- the end of a call ------------------------------------------------------- */

static void empty_inbox(struct uar_call *call)
{
	while (!uar_list_empty(&call->inbox)) {
		struct uar_piece *p = UAR_OWNER(call->inbox.next, struct uar_piece, task.node);

		uar_list_remove(&p->task.node);
		uar_free(p);
	}
}

static void rest(struct uar_call *call)
{
	uar_timer_stop(call->client->sched, &call->limit);
	uar_unpost(call->client->sched, &call->resume);
	empty_inbox(call);
}

/* Its transfer is over, or was never begun, or its thread is gone. */
static void call_destroy(struct uar_call *call)
{
	rest(call);
	uar_list_remove(&call->node);
	call->client->curl->slist_free_all(call->transfer.request.headers);
	uar_buf_fini(&call->transfer.outcome.body);
	uar_buf_fini(&call->transfer.head);
	uar_free(call->transfer.spare);
	uar_free(call->transfer.body);
	uar_free(call);
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

/* The catalogue's words are about requests that come to us. */
static const char *reason_of(uar_err e)
{
	return e == UAR_EHEADERS ? "the head of the answer is larger than its limit"
				 : uar_err_text(e);
}

static void deliver(struct uar_call *call)
{
	const struct uar_outcome *o = &call->transfer.outcome;
	bool barred = call->guarded.refused && o->code;
	uar_err ours = call->err ? call->err : o->err ? o->err : barred ? UAR_EFORBIDDEN : UAR_OK;
	/* An error answer cut at its limit is an answer all the same. */
	bool cut = o->body.err == UAR_ETOOBIG;
	uar_err e = ours ? ours : cut ? UAR_OK : error_of(o->code);
	const char *reason;

	call->failure = "";
	if (ours == UAR_EFORBIDDEN && barred)
		call->failure = "the address is not public, and calls to it are not allowed "
				"(outbound_allow)";
	else if (ours)
		call->failure = reason_of(ours);
	else if (e)
		call->failure = call->client->curl->easy_strerror(o->code);
	reason = e && !ours && o->reason[0] ? o->reason : call->failure;
	if (call->to.done)
		call->to.done(call->to.ctx, e, o->status, uar_buf_str(&o->body), reason);
	call_destroy(call);
}

/* `done` comes when the transfer is over. */
static void fail(struct uar_call *call, uar_err e)
{
	call->err = e;
	rest(call);
	if (!call->over)
		uar_net_stop(&call->transfer);
}

/* How long it may still last unless a byte comes. */
static int64_t time_left(const struct uar_call *call)
{
	int64_t now = uar_clock_mono(call->client->sched->clock);
	int64_t idle_end = call->idle_us > 0 ? call->last_us + call->idle_us : forever_us;
	int64_t end = idle_end < call->end_us ? idle_end : call->end_us;

	return end == forever_us ? end : end - now;
}

static uar_err set_limit(struct uar_call *call)
{
	int64_t left = time_left(call);

	return left == forever_us ? UAR_OK : uar_timer_set(call->client->sched, &call->limit, left);
}

static void on_limit(struct uar_timer *t)
{
	struct uar_call *call = UAR_OWNER(t, struct uar_call, limit);

	if (time_left(call) <= 0 || set_limit(call))
		fail(call, UAR_ETIMEOUT);
}

/* --- what comes in ----------------------------------------------------------- */

static bool may_read(const struct uar_call *call)
{
	return !call->paused && !call->cancelled && !call->err && !uar_list_empty(&call->inbox);
}

static bool is_deaf(const struct uar_call *call)
{
	return call->cancelled || call->err;
}

static void read_head(struct uar_call *call, uar_str lines)
{
	while (lines.n && !is_deaf(call)) {
		uar_str line = uar_str_cut(lines, '\n', &lines), value, name;

		if (line.n && line.p[line.n - 1] == '\r')
			line.n--;
		name = uar_str_cut(line, ':', &value);
		if (name.n && name.n < line.n)
			call->to.header(call->to.ctx, uar_str_trim(name), uar_str_trim(value));
	}
}

static void read_piece(struct uar_call *call)
{
	struct uar_piece *p = UAR_OWNER(call->inbox.next, struct uar_piece, task.node);
	uar_err e = UAR_OK;

	uar_list_remove(&p->task.node);
	if (p->n) /* or it is a sign of life alone */
		call->status = p->status;
	if (p->head)
		read_head(call, uar_str_n(p->bytes, p->n));
	else if (p->n && call->to.data)
		e = call->to.data(call->to.ctx, uar_str_n(p->bytes, p->n));
	if (e && !call->cancelled)
		fail(call, e);
	if (is_deaf(call))
		uar_free(p);
	else
		uar_net_read(&call->transfer, p);
}

/* The callbacks that are due. The call may be gone afterwards. */
static void look(struct uar_call *call)
{
	call->reading = true;
	while (may_read(call))
		read_piece(call);
	call->reading = false;
	if (call->over && call->cancelled)
		call_destroy(call);
	else if (call->over && !call->paused)
		deliver(call);
}

static void on_piece(struct uar_task *t)
{
	struct uar_piece *p = UAR_OWNER(t, struct uar_piece, task);
	struct uar_call *call = call_of(p->of);

	if (is_deaf(call)) {
		uar_free(p);
		return;
	}
	call->last_us = uar_clock_mono(call->client->sched->clock);
	uar_list_add_last(&call->inbox, &t->node);
	look(call);
}

static void on_over(struct uar_task *t)
{
	struct uar_call *call = call_of(UAR_OWNER(t, struct uar_transfer, over));

	call->over = true;
	uar_timer_stop(call->client->sched, &call->limit);
	look(call);
}

static void on_resume(struct uar_task *t)
{
	look(UAR_OWNER(t, struct uar_call, resume));
}

/* --- the start of a call ----------------------------------------------------- */

static uar_str origin_of(uar_str url)
{
	size_t n = uar_str_starts(url, UAR_STR("https://")) ? 8 : 7;

	while (n < url.n && !strchr("/?#", url.p[n]))
		n++;
	return uar_str_n(url.p, n < url.n ? n : url.n);
}

static void set_request(struct uar_call *call, const struct uar_call_options *o)
{
	struct uar_client_request *r = &call->transfer.request;
	size_t url = strlen(o->url), method = strlen(o->method);
	char *p = call->text;

	memcpy(p, o->url, url + 1);
	r->url = p;
	r->origin = origin_of(uar_str_n(p, url));
	p += url + 1;
	memcpy(p, o->method, method + 1);
	r->method = p;
	r->body = call->transfer.body ? uar_str_n(call->transfer.body, o->body.n) : UAR_STR("");
	r->connect_timeout_us = o->connect_timeout_us;
	r->once = o->once;
	r->ca_file = call->client->ca_file;
	if (!o->guarded || uar_guard_passes_name(call->client->guard, uar_str_c(o->url)))
		return;
	call->guarded.guard = call->client->guard;
	r->guarded = &call->guarded;
}

static int64_t total_limit(const struct uar_call_options *o)
{
	return o->total_timeout_us ? o->total_timeout_us
				   : UAR_LIMIT_CLIENT_CALL_SECONDS * 1000000LL;
}

static struct uar_call *call_create(struct uar_client *c, const struct uar_call_options *o)
{
	size_t text = strlen(o->url) + 1 + strlen(o->method) + 1;
	struct uar_call *call = uar_alloc(sizeof *call + text);
	char *body = call && o->body.n ? uar_strdup_n(o->body.p, o->body.n) : NULL;

	if (!call || (o->body.n && !body)) {
		uar_free(call);
		return NULL;
	}
	memset(call, 0, sizeof *call);
	call->transfer.body = body;
	call->client = c;
	set_request(call, o);
	call->limit.fn = on_limit;
	call->resume.fn = on_resume;
	call->transfer.over.fn = on_over;
	call->idle_us = o->idle_timeout_us ? o->idle_timeout_us : IDLE_TIMEOUT_US;
	call->last_us = uar_clock_mono(c->sched->clock);
	call->end_us = o->total_timeout_us < 0 ? forever_us : call->last_us + total_limit(o);
	call->transfer.outcome.body =
		uar_buf_make(o->max_error_body ? o->max_error_body : UAR_LIMIT_CLIENT_ERROR_BODY);
	call->transfer.wants_head = o->header != NULL;
	call->transfer.head = uar_buf_make(UAR_LIMIT_CLIENT_HEAD);
	call->to = (struct receiver){ o->header, o->data, o->done, o->ctx };
	uar_list_init(&call->inbox);
	uar_list_add_last(&c->calls, &call->node);
	return call;
}

static uar_err start(struct uar_call *call, const char *const *headers)
{
	struct uar_client *c = call->client;
	uar_err e = uar_client_headers(c->curl, headers, &call->transfer.request.headers);

	if (!e)
		e = set_limit(call);
	if (!e)
		uar_net_start(c->net, &call->transfer);
	return e;
}

uar_err uar_client_call(struct uar_client *c, const struct uar_call_options *o,
			struct uar_call **out, struct uar_error *error)
{
	struct uar_call *call;
	uar_err e = uar_client_check_url(uar_str_c(o->url), error);

	if (!e && !c->net)
		e = uar_net_create(c->sched, on_piece, &c->net, error);
	if (e)
		return e;
	c->curl = uar_net_curl(c->net);
	call = call_create(c, o);
	if (!call)
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	e = start(call, o->headers);
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
	if (!call)
		return;
	call->cancelled = true;
	rest(call);
	if (!call->over)
		uar_net_stop(&call->transfer);
	else if (!call->reading)
		call_destroy(call);
}

static void go_on(struct uar_call *call)
{
	int64_t now = uar_clock_mono(call->client->sched->clock);

	call->last_us = now;
	if (call->end_us != forever_us)
		call->end_us += now - call->paused_us;
	if (call->over || !uar_list_empty(&call->inbox))
		uar_post(call->client->sched, &call->resume);
	if (!call->over && !is_deaf(call) && set_limit(call))
		fail(call, UAR_ENOMEM);
}

void uar_call_pause(struct uar_call *call, bool paused)
{
	if (call->paused == paused)
		return;
	call->paused = paused;
	if (!paused) {
		go_on(call);
		return;
	}
	call->paused_us = uar_clock_mono(call->client->sched->clock);
	uar_timer_stop(call->client->sched, &call->limit);
}

int uar_call_status(const struct uar_call *call)
{
	return call->status;
}

int64_t uar_call_retry_after_us(const struct uar_call *call)
{
	return call->over ? call->transfer.outcome.retry_after_us : 0;
}

const char *uar_call_failure(const struct uar_call *call)
{
	return call->failure;
}

/* --- the client ---------------------------------------------------------------- */

uar_err uar_client_create(struct uar_loop *l, const char *ca_file, struct uar_client **out)
{
	struct uar_client *c = uar_zalloc(sizeof *c);

	if (!c)
		return UAR_ENOMEM;
	c->sched = uar_loop_sched(l);
	uar_list_init(&c->calls);
	if (ca_file && *ca_file && !(c->ca_file = uar_strdup_n(ca_file, strlen(ca_file)))) {
		uar_client_destroy(c);
		return UAR_ENOMEM;
	}
	*out = c;
	return UAR_OK;
}

void uar_client_set_guard(struct uar_client *c, struct uar_guard *g)
{
	uar_guard_destroy(c->guard);
	c->guard = g;
}

bool uar_client_bars(const struct uar_client *c, uar_str url)
{
	return uar_guard_bars(c->guard, url);
}

void uar_client_destroy(struct uar_client *c)
{
	if (!c)
		return;
	uar_net_destroy(c->net);
	while (!uar_list_empty(&c->calls))
		call_destroy(UAR_OWNER(c->calls.next, struct uar_call, node));
	uar_guard_destroy(c->guard);
	uar_free(c->ca_file);
	uar_free(c);
}

struct uar_sched *uar_client_sched(const struct uar_client *c)
{
	return c->sched;
}
