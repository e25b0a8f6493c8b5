/* server.c - life of the server, its deadlines, and who goes on in the next turn. */
#include "http/http_int.h"

#include "base/alloc.h"
#include "base/rand.h"
#include "http/limits.h"
#include "loop/loop.h"

enum {
	HEAD_TIMEOUT_S = 10,
	BODY_TIMEOUT_S = 30,
	IDLE_TIMEOUT_S = 75,
	STALL_TIMEOUT_S = 60,
	LINGER_TIMEOUT_S = 2,
	SECOND_US = 1000000,
};

/* --- deadlines -------------------------------------------------------------------------------- */

/* All waits of one kind are equally long, so a list in order of arrival is in
 * order of due time: setting one costs a move in a list, and one timer watches
 * the first of each. */

static void arm_sweep(struct uar_http *h, int64_t now)
{
	int64_t due = INT64_MAX;

	for (int i = 0; i < DUE_COUNT; i++)
		if (!uar_list_empty(&h->due[i].conns)) {
			struct uar_http_stream *c =
				UAR_OWNER(h->due[i].conns.next, struct uar_http_stream, due);

			due = c->due_us < due ? c->due_us : due;
		}
	if (due == INT64_MAX || (h->sweep.heap_index && h->sweep.due_us <= due))
		return;
	/* Without memory for the timer the next arrival tries again. */
	if (uar_timer_set(h->sched, &h->sweep, due - now))
		return;
}

static void on_sweep(struct uar_timer *t)
{
	struct uar_http *h = UAR_OWNER(t, struct uar_http, sweep);
	int64_t now = uar_clock_mono(h->sched->clock);

	for (int i = 0; i < DUE_COUNT; i++) {
		struct uar_list *list = &h->due[i].conns;

		while (!uar_list_empty(list)) {
			struct uar_http_stream *c =
				UAR_OWNER(list->next, struct uar_http_stream, due);

			if (c->due_us > now)
				break;
			uar_http_set_due(c, DUE_NONE);
			uar_http_conn_expire(c);
		}
	}
	if (!h->destroyed)
		arm_sweep(h, now);
}

void uar_http_set_due(struct uar_http_stream *c, enum deadline class)
{
	struct uar_http *h = c->server;
	bool first;
	int64_t now;

	uar_list_remove(&c->due);
	c->due_class = (unsigned char)class;
	if (class == DUE_NONE)
		return;
	now = uar_clock_mono(h->sched->clock);
	c->due_us = now + h->due[class].timeout_us;
	first = uar_list_empty(&h->due[class].conns);
	uar_list_add_last(&h->due[class].conns, &c->due);
	if (first || !h->sweep.heap_index)
		arm_sweep(h, now);
}

/* --- the ready list ---------------------------------------------------------------- */

static void serve_waiting(struct uar_http *h)
{
	struct uar_list *waiting = &h->intake.waiting;

	h->intake.serving = true;
	while (!uar_list_empty(waiting) && uar_http_takes_requests(h)) {
		struct uar_http_stream *c = UAR_OWNER(waiting->next, struct uar_http_stream, ready);

		uar_list_remove(&c->ready);
		uar_http_conn_resume(c);
	}
	h->intake.serving = false;
	if (!uar_list_empty(waiting))
		uar_post(h->sched, &h->ready_task);
}

static void on_ready(struct uar_task *t)
{
	struct uar_http *h = UAR_OWNER(t, struct uar_http, ready_task);
	struct uar_list now;

	uar_list_init(&now);
	uar_list_move_all(&h->ready, &now);
	while (!uar_list_empty(&now)) {
		struct uar_http_stream *c = UAR_OWNER(now.next, struct uar_http_stream, ready);

		uar_list_remove(&c->ready);
		uar_http_conn_resume(c);
	}
	serve_waiting(h);
}

static void resume_later(struct uar_http_stream *c, struct uar_list *list)
{
	if (c->state == CONN_CLOSED || !uar_list_empty(&c->ready))
		return;
	uar_list_add_last(list, &c->ready);
	uar_post(c->server->sched, &c->server->ready_task);
}

void uar_http_make_ready(struct uar_http_stream *c)
{
	resume_later(c, &c->server->ready);
}

void uar_http_wait_turn(struct uar_http_stream *c)
{
	resume_later(c, &c->server->intake.waiting);
}

bool uar_http_takes_requests(struct uar_http *h)
{
	uint64_t turn = uar_loop_turn(h->loop);

	if (h->intake.turn != turn) {
		h->intake.turn = turn;
		h->intake.begun = 0;
	}
	return h->intake.begun < UAR_LIMIT_HTTP_TURN &&
	       (h->intake.serving || uar_list_empty(&h->intake.waiting));
}

/* --- exchanges --------------------------------------------------------------------- */

struct exchange *uar_http_exchange_take(struct uar_http_stream *c)
{
	struct uar_http *h = c->server;
	struct exchange *x;

	if (!uar_list_empty(&h->spare.exchanges)) {
		x = UAR_OWNER(h->spare.exchanges.next, struct exchange, spare);
		uar_list_remove(&x->spare);
		h->spare.count--;
	} else {
		x = uar_zalloc(sizeof *x);
		if (!x)
			return NULL;
		uar_arena_init(&x->arena, UAR_LIMIT_HTTP_ARENA);
		uar_list_init(&x->spare);
	}
	x->conn = c;
	x->taken = x->expects = x->complete = false;
	x->into = NULL;
	x->r = (struct uar_http_request){ .arena = &x->arena, .peer = uar_str_c(c->peer) };
	return x;
}

static void exchange_destroy(struct exchange *x)
{
	uar_buf_fini(&x->body);
	uar_arena_fini(&x->arena);
	uar_free(x);
}

void uar_http_exchange_give(struct uar_http *h, struct exchange *x)
{
	if (!x)
		return;
	/* One that grew large goes back to the heap: few need that much again. */
	if (h->destroyed || h->spare.count == UAR_LIMIT_HTTP_SPARE_REQUESTS ||
	    x->arena.used > UAR_LIMIT_HTTP_READ) {
		exchange_destroy(x);
		return;
	}
	uar_buf_fini(&x->body);
	uar_arena_reset(&x->arena);
	uar_list_add_last(&h->spare.exchanges, &x->spare);
	h->spare.count++;
}

/* --- life -------------------------------------------------------------------------- */

static void on_drained(struct uar_task *t)
{
	struct uar_http *h = UAR_OWNER(t, struct uar_http, drain.task);

	h->drain.done(h->drain.ctx);
}

static void set_timeouts(struct uar_http *h, const struct uar_http_options *o)
{
	static const int defaults[DUE_COUNT] = {
		[DUE_HEAD] = HEAD_TIMEOUT_S,	 [DUE_BODY] = BODY_TIMEOUT_S,
		[DUE_IDLE] = IDLE_TIMEOUT_S,	 [DUE_STALL] = STALL_TIMEOUT_S,
		[DUE_LINGER] = LINGER_TIMEOUT_S,
	};
	const int64_t asked[DUE_COUNT] = {
		[DUE_HEAD] = o->head_timeout_us,
		[DUE_BODY] = o->body_timeout_us,
		[DUE_IDLE] = o->idle_timeout_us,
		[DUE_STALL] = o->stall_timeout_us,
	};

	for (int i = 0; i < DUE_COUNT; i++) {
		h->due[i].timeout_us = asked[i] ? asked[i] : (int64_t)defaults[i] * SECOND_US;
		uar_list_init(&h->due[i].conns);
	}
}

static void init(struct uar_http *h, struct uar_loop *loop, const struct uar_http_options *o)
{
	h->loop = loop;
	h->sched = uar_loop_sched(loop);
	h->handler = o->handler;
	h->max_connections = o->max_connections ? o->max_connections : UAR_LIMIT_HTTP_CONNECTIONS;
	h->max_per_address = o->max_per_address;
	h->handles = 1; /* the owner's */
	h->stamp.second = INT64_MIN;
	h->listener.fd = h->listener.spare_fd = -1;
	uar_list_init(&h->conns);
	uar_list_init(&h->ready);
	uar_list_init(&h->intake.waiting);
	uar_list_init(&h->spare.exchanges);
	h->ready_task.fn = on_ready;
	h->drain.task.fn = on_drained;
	h->sweep.fn = on_sweep;
	h->problem = uar_buf_make(UAR_LIMIT_HTTP_PROBLEM);
	set_timeouts(h, o);
}

static uar_err init_memory(struct uar_http *h)
{
	uar_map_init(&h->addresses, uar_rand_u64(&uar_rand_system));
	/* Taken now, so that no answer fails for want of memory. */
	h->last_chunk = uar_http_last_chunk();
	if (!h->last_chunk || !uar_buf_reserve(&h->problem, UAR_LIMIT_HTTP_PROBLEM))
		return UAR_ENOMEM;
	return UAR_OK;
}

uar_err uar_http_create(struct uar_loop *loop, const struct uar_http_options *o,
			struct uar_http **out, struct uar_error *error)
{
	struct uar_http *h = uar_zalloc(sizeof *h);
	uar_err e;

	if (!h)
		return uar_error_set(error, UAR_ENOMEM, "no memory for the HTTP server");
	init(h, loop, o);
	e = init_memory(h);
	if (!e)
		e = uar_http_listen(h, o->listen, error);
	else
		uar_error_set(error, e, "no memory for the HTTP server");
	if (e) {
		uar_http_destroy(h);
		return e;
	}
	*out = h;
	return UAR_OK;
}

void uar_http_released(struct uar_http *h)
{
	if (--h->handles > 0)
		return;
	uar_map_fini(&h->addresses);
	uar_frame_unref(h->last_chunk);
	uar_buf_fini(&h->problem);
	uar_free(h);
}

void uar_http_destroy(struct uar_http *h)
{
	if (!h)
		return;
	h->destroyed = true;
	uar_http_unlisten(h);
	UAR_LIST_EACH (node, &h->conns)
		uar_http_conn_close(UAR_OWNER(node, struct uar_http_stream, node));
	UAR_LIST_EACH (node, &h->spare.exchanges)
		exchange_destroy(UAR_OWNER(node, struct exchange, spare));
	uar_list_init(&h->spare.exchanges);
	uar_timer_stop(h->sched, &h->sweep);
	uar_unpost(h->sched, &h->ready_task);
	uar_unpost(h->sched, &h->drain.task);
	uar_http_released(h);
}

const char *uar_http_address(const struct uar_http *h)
{
	return h->listener.address;
}

const char *uar_http_local_address(const struct uar_http *h)
{
	return h->listener.local;
}

void uar_http_stats(const struct uar_http *h, struct uar_http_stats *out)
{
	*out = h->stats;
}

void uar_http_check_drained(struct uar_http *h)
{
	if (h->drain.on && !h->destroyed && h->stats.open == 0 && h->drain.done)
		uar_post(h->sched, &h->drain.task);
}

void uar_http_drain(struct uar_http *h, void (*done)(void *ctx), void *ctx)
{
	h->drain.on = true;
	h->drain.done = done;
	h->drain.ctx = ctx;
	uar_http_unlisten(h);
	UAR_LIST_EACH (node, &h->conns)
		uar_http_conn_drain(UAR_OWNER(node, struct uar_http_stream, node));
	uar_http_check_drained(h);
}
