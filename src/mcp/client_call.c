/* client_call.c - requests to a server, from the first message to their one end.
 *
 * A call may take several requests: the server asks for input, wants a token, or makes a task
 * of it. Each has an id of its own. */
#include "base/alloc.h"
#include "mcp/client_int.h"

void client_free_call(struct uar_mcp_call *call)
{
	client_drop_asks(call);
	uar_list_remove(&call->node);
	uar_timer_stop(call->c->sched, &call->timer);
	call->c->call_count--;
	uar_buf_fini(&call->name);
	uar_buf_fini(&call->params);
	uar_buf_fini(&call->state);
	uar_buf_fini(&call->responses);
	uar_buf_fini(&call->task);
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

void client_forget(struct uar_mcp_client *c, const char *id, const char *why)
{
	struct uar_buf b = uar_buf_make(1024);
	struct uar_jw w = uar_jw_begin(&b);

	if (!c->o.server.url || c->era == UAR_MCP_ERA_LEGACY) {
		uar_jw_obj(&w, NULL);
		uar_jw_raw(&w, "requestId", uar_str_c(id));
		uar_jw_cstr(&w, "reason", why);
		uar_jw_close(&w);
		b.err = uar_jw_end(&w);
		client_notify(c, "notifications/cancelled", &b);
		uar_buf_fini(&b);
	}
	c->link->ops->forget(c->link, uar_str_c(id));
}

static void tell_cancelled(struct uar_mcp_call *call, const char *why)
{
	struct uar_mcp_client *c = call->c;

	if (!c->link)
		return;
	if (call->task.n) {
		client_task_cancel(call);
		c->link->ops->forget(c->link, uar_str_c(call->id));
	} else {
		client_forget(c, call->id, why);
	}
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

	if (call->polls) {
		client_task_poll(call);
		return;
	}
	tell_cancelled(call, "timed out");
	client_fail_call(
		call, UAR_ETIMEOUT,
		"the server did not answer in time; whether the call had an effect is unknown");
}

static void wait_at_most(struct uar_mcp_call *call, int64_t limit)
{
	int64_t left = call->until_us - uar_clock_mono(call->c->sched->clock);

	if (call->timer.fn == call_abandoned)
		return;
	if (uar_timer_set(call->c->sched, &call->timer, left < limit ? left : limit))
		call_timed_out(&call->timer);
}

/* Progress is a sign of life, up to the limit of a call in all. */
void client_keep_waiting(struct uar_mcp_call *call)
{
	if (!call->polls && !call->open_asks)
		wait_at_most(call, call_limit_us(call->c));
}

void client_rest_call(struct uar_mcp_call *call)
{
	wait_at_most(call, INT64_MAX);
}

/* --- requests ------------------------------------------------------------------------------- */

static uar_err write_params(const struct uar_mcp_call *call, struct uar_buf *b)
{
	struct uar_jw w = uar_jw_begin(b);

	uar_jw_obj(&w, NULL);
	if (call->params.n > 2)
		uar_jw_members(&w, uar_buf_str(&call->params));
	if (call->state.n)
		uar_jw_raw(&w, "requestState", uar_buf_str(&call->state));
	if (call->responses.n) {
		uar_jw_obj(&w, "inputResponses");
		uar_jw_members(&w, uar_buf_str(&call->responses));
		uar_jw_close(&w);
	}
	client_put_envelope(&w, call->c, call->token);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

uar_err client_send_call(struct uar_mcp_call *call)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	uar_err e = write_params(call, &b);

	if (!e)
		e = client_request(call->c, call->id, call->method, &b, uar_buf_str(&call->name));
	uar_buf_fini(&b);
	return e;
}

void client_call_again(struct uar_mcp_call *call)
{
	uar_err e;

	client_next_id(call->c, call->id);
	e = call->c->link ? client_send_call(call) : UAR_ENET;
	if (e)
		client_fail_call(call, e, uar_err_text(e));
	else
		client_keep_waiting(call);
}

static void take_questions(struct uar_mcp_call *call, const struct uar_json *result)
{
	const struct uar_json *state = uar_json_get(result, UAR_STR("requestState"));
	const struct uar_json *requests = uar_json_get(result, UAR_STR("inputRequests"));

	uar_buf_clear(&call->state);
	uar_buf_clear(&call->responses);
	if (state)
		uar_json_write(&call->state, state);
	if (call->state.err || ++call->rounds > UAR_LIMIT_MCP_ASK_ROUNDS)
		client_fail_call(call, UAR_ETOOBIG, "the server asks for input without an end");
	else if (!requests || !requests->count)
		client_call_again(call);
	else if (!client_ask_all(call, requests))
		client_fail_call(call, UAR_EPROVIDER,
				 "the server asks for something that is not offered here");
}

static void take_result(struct uar_mcp_call *call, const struct uar_json *result)
{
	uar_str type =
		uar_json_str(uar_json_get(result, UAR_STR("resultType")), UAR_STR("complete"));
	struct uar_mcp_call_result r = { .result = result };

	if (call->task.n) {
		client_task_answered(call, result);
	} else if (uar_str_is(type, "input_required")) {
		take_questions(call, result);
	} else if (uar_str_is(type, "task")) {
		client_task_begin(call, result);
	} else if (uar_str_is(type, "complete")) {
		client_finish_call(call, &r);
	} else {
		client_fail_call(call, UAR_EPROVIDER,
				 "the server answered with a kind of result that is not known");
	}
}

void client_take_answer(struct uar_mcp_call *call, const struct uar_mcp_message *m)
{
	struct uar_mcp_call_result r = { .err = UAR_EPROVIDER,
					 .code = m->error.code,
					 .reason = m->error.message };

	if (m->kind == UAR_MCP_RESULT) {
		take_result(call, m->result);
	} else if (m->error.code == UAR_MCP_HEADER_MISMATCH && call->lists == LISTED &&
		   call->c->era == UAR_MCP_ERA_MODERN) {
		call->lists = LISTS_AGAIN; /* it was refused unread: the tool may have changed */
		client_list_again(call->c);
	} else {
		client_finish_call(call, &r);
	}
}

/* --- life ----------------------------------------------------------------------------------- */

static uar_err copy_params(struct uar_mcp_call *call, uar_str params)
{
	struct uar_json_limits limits = { .depth = UAR_LIMIT_MCP_DEPTH, .foreign = true };
	const struct uar_json *j = NULL;
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(params.n ? params : UAR_STR("{}"), &limits, &arena, &j, NULL);
	if (!e && j->kind != UAR_JSON_OBJECT)
		e = UAR_EINVALID;
	if (!e)
		uar_json_write(&call->params, j);
	uar_arena_fini(&arena);
	return e ? e : call->params.err;
}

static struct uar_mcp_call *make_call(struct uar_mcp_client *c,
				      const struct uar_mcp_call_events *events)
{
	int64_t limit = call_limit_us(c), most = UAR_LIMIT_MCP_CALL_MAX_MS * 1000LL;
	struct uar_mcp_call *call = uar_zalloc(sizeof *call);

	if (!call)
		return NULL;
	*call = (struct uar_mcp_call){ .c = c, .events = *events, .timer.fn = call_timed_out };
	call->name = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	call->params = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	call->state = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	call->responses = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	call->task = uar_buf_make(UAR_LIMIT_MCP_METHOD * 8);
	call->until_us = uar_clock_mono(c->sched->clock) + (limit > most ? limit : most);
	uar_list_init(&call->asks);
	uar_list_add_last(&c->calls, &call->node);
	c->call_count++;
	return call;
}

uar_err uar_mcp_client_request(struct uar_mcp_client *c, const struct uar_mcp_request *r,
			       const struct uar_mcp_call_events *events, struct uar_mcp_call **out)
{
	struct uar_mcp_call *call;
	uar_err e;

	if (c->state != STATE_READY && !(c->state == STATE_LISTING && c->tools))
		return UAR_ENET;
	if (c->call_count >= UAR_LIMIT_MCP_CALLS)
		return UAR_EBUSY;
	call = make_call(c, events);
	if (!call)
		return UAR_ENOMEM;
	call->method = r->method;
	uar_buf_add_str(&call->name, r->name);
	e = copy_params(call, r->params);
	client_next_id(c, call->id);
	memcpy(call->token, call->id, sizeof call->token);
	if (!e)
		e = call->name.err ? call->name.err : client_send_call(call);
	if (!e)
		e = uar_timer_set(c->sched, &call->timer, call_limit_us(c));
	if (e)
		client_free_call(call);
	else
		*out = call;
	return e;
}

uar_err uar_mcp_client_call(struct uar_mcp_client *c, uar_str tool, uar_str arguments,
			    const struct uar_mcp_call_events *events, struct uar_mcp_call **out)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_jw w = uar_jw_begin(&b);
	struct uar_mcp_request r = { .method = "tools/call", .name = tool };
	uar_err e;

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "name", tool);
	uar_jw_raw(&w, "arguments", arguments.n ? arguments : UAR_STR("{}"));
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	r.params = uar_buf_str(&b);
	if (!e)
		e = uar_mcp_client_request(c, &r, events, out);
	uar_buf_fini(&b);
	return e;
}
