/* client_call.c - calls of tools of a server, from their request to their one end. */
#include "base/alloc.h"
#include "mcp/client_int.h"

void client_free_call(struct uar_mcp_call *call)
{
	uar_list_remove(&call->node);
	uar_timer_stop(call->c->sched, &call->timer);
	call->c->call_count--;
	uar_free(call);
}

void client_finish_call(struct uar_mcp_call *call, const struct uar_mcp_call_result *r)
{
	struct uar_mcp_call_events events = call->events;

	client_free_call(call);
	events.done(events.ctx, r);
}

void client_fail_call(struct uar_mcp_call *call, uar_err e, const char *reason)
{
	struct uar_mcp_call_result r = { .err = e, .reason = uar_str_c(reason) };

	client_finish_call(call, &r);
}

void client_fail_calls(struct uar_mcp_client *c, uar_err e, const char *reason)
{
	struct uar_list all;

	uar_list_init(&all);
	uar_list_move_all(&c->calls, &all);
	while (!uar_list_empty(&all))
		client_fail_call(UAR_OWNER(all.next, struct uar_mcp_call, node), e, reason);
}

struct uar_mcp_call *client_find_call(struct uar_mcp_client *c, uar_str id)
{
	UAR_LIST_EACH (it, &c->calls) {
		struct uar_mcp_call *call = UAR_OWNER(it, struct uar_mcp_call, node);

		if (uar_str_is(id, call->id))
			return call;
	}
	return NULL;
}

static void tell_cancelled(struct uar_mcp_call *call, const char *why)
{
	struct uar_mcp_client *c = call->c;
	struct uar_buf b = uar_buf_make(1024);
	struct uar_jw w = uar_jw_begin(&b);

	if (!c->link)
		return;
	if (!c->o.server.url || c->era == UAR_MCP_ERA_LEGACY) {
		uar_jw_obj(&w, NULL);
		uar_jw_raw(&w, "requestId", uar_str_c(call->id));
		uar_jw_cstr(&w, "reason", why);
		uar_jw_close(&w);
		b.err = uar_jw_end(&w);
		client_notify(c, "notifications/cancelled", &b);
		uar_buf_fini(&b);
	}
	c->link->ops->forget(c->link, uar_str_c(call->id));
}

static void call_timed_out(struct uar_timer *t);

void uar_mcp_call_cancel(struct uar_mcp_call *call)
{
	tell_cancelled(call, "cancelled");
	client_free_call(call);
}

static void call_abandoned(struct uar_timer *t)
{
	client_fail_call(UAR_OWNER(t, struct uar_mcp_call, timer), UAR_ECANCELED,
			 "cancelled; whether the call had an effect is unknown");
}

void uar_mcp_call_abandon(struct uar_mcp_call *call)
{
	if (call->timer.fn == call_abandoned)
		return;
	tell_cancelled(call, "cancelled");
	call->timer.fn = call_abandoned;
	if (uar_timer_set(call->c->sched, &call->timer, 0))
		call->timer.fn = call_timed_out; /* which is still set */
}

static int64_t call_limit_us(const struct uar_mcp_client *c)
{
	return c->o.server.timeout_us ? c->o.server.timeout_us : UAR_LIMIT_MCP_CALL_MS * 1000LL;
}

static void call_timed_out(struct uar_timer *t)
{
	struct uar_mcp_call *call = UAR_OWNER(t, struct uar_mcp_call, timer);

	tell_cancelled(call, "timed out");
	client_fail_call(
		call, UAR_ETIMEOUT,
		"the server did not answer in time; whether the call had an effect is unknown");
}

/* Progress is a sign of life, up to the limit of a call in all. */
void client_keep_waiting(struct uar_mcp_call *call)
{
	int64_t left = call->until_us - uar_clock_mono(call->c->sched->clock);
	int64_t limit = call_limit_us(call->c);

	if (uar_timer_set(call->c->sched, &call->timer, left < limit ? left : limit))
		call_timed_out(&call->timer);
}

static uar_err send_call(struct uar_mcp_call *call, uar_str tool, uar_str arguments)
{
	struct uar_mcp_client *c = call->c;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e;

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "name", tool);
	uar_jw_raw(&w, "arguments", arguments.n ? arguments : UAR_STR("{}"));
	client_put_envelope(&w, c, call->id);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	e = client_request(c, call->id, "tools/call", &b, tool);
	uar_buf_fini(&b);
	return e;
}

uar_err uar_mcp_client_call(struct uar_mcp_client *c, uar_str tool, uar_str arguments,
			    const struct uar_mcp_call_events *events, struct uar_mcp_call **out)
{
	int64_t limit = call_limit_us(c);
	struct uar_mcp_call *call;
	uar_err e;

	if (c->state != STATE_READY && !(c->state == STATE_LISTING && c->tools))
		return UAR_ENET;
	if (c->call_count >= UAR_LIMIT_MCP_CALLS)
		return UAR_EBUSY;
	call = uar_zalloc(sizeof *call);
	if (!call)
		return UAR_ENOMEM;
	*call = (struct uar_mcp_call){ .c = c, .events = *events, .timer.fn = call_timed_out };
	call->until_us =
		uar_clock_mono(c->sched->clock) + (limit > UAR_LIMIT_MCP_CALL_MAX_MS * 1000LL
							   ? limit
							   : UAR_LIMIT_MCP_CALL_MAX_MS * 1000LL);
	uar_list_add_last(&c->calls, &call->node);
	c->call_count++;
	client_next_id(c, call->id);
	e = send_call(call, tool, arguments);
	if (!e)
		e = uar_timer_set(c->sched, &call->timer, limit);
	if (e)
		client_free_call(call);
	else
		*out = call;
	return e;
}
