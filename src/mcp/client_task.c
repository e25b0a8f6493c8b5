/* client_task.c - a call that the server has made a task of (2026-07-28): it is asked how the
 * task stands until that is over. */
#include "mcp/client_int.h"

enum { POLL_MS = 1000, POLL_LEAST_MS = 50, POLL_MOST_MS = 30000 };

static void ask_about(struct uar_mcp_call *call, const char *method, bool responses)
{
	struct uar_mcp_client *c = call->c;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "taskId", uar_buf_str(&call->task));
	if (responses) {
		uar_jw_obj(&w, "inputResponses");
		if (call->responses.n)
			uar_jw_members(&w, uar_buf_str(&call->responses));
		uar_jw_close(&w);
	}
	client_put_envelope(&w, c, NULL);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	client_next_id(c, call->id);
	b.err = client_request(c, call->id, method, &b, uar_buf_str(&call->task));
	if (b.err)
		client_fail_call(call, b.err, uar_err_text(b.err));
	else
		client_keep_waiting(call);
	uar_buf_fini(&b);
}

static void poll_later(struct uar_mcp_call *call, const struct uar_json *task)
{
	int64_t ms = uar_json_int(uar_json_get(task, UAR_STR("pollIntervalMs")), POLL_MS);
	int64_t left = call->until_us - uar_clock_mono(call->c->sched->clock);

	ms = ms < POLL_LEAST_MS ? POLL_LEAST_MS : ms > POLL_MOST_MS ? POLL_MOST_MS : ms;
	call->polls = left > ms * 1000;
	if (uar_timer_set(call->c->sched, &call->timer, call->polls ? ms * 1000 : left))
		client_fail_call(call, UAR_ENOMEM, uar_err_text(UAR_ENOMEM));
}

void client_task_poll(struct uar_mcp_call *call)
{
	call->polls = false;
	ask_about(call, "tasks/get", false);
}

void client_task_begin(struct uar_mcp_call *call, const struct uar_json *task)
{
	uar_buf_add_str(&call->task, uar_json_text(task, "taskId"));
	if (call->task.err || !call->task.n)
		client_fail_call(call, UAR_EPROVIDER, "the server made a task without an id");
	else
		client_task_answered(call, task);
}

static void fail_task(struct uar_mcp_call *call, const struct uar_json *error)
{
	struct uar_mcp_call_result r = {
		.err = UAR_EPROVIDER,
		.code = uar_json_int(uar_json_get(error, UAR_STR("code")), 0),
		.reason = uar_json_str(uar_json_get(error, UAR_STR("message")),
				       UAR_STR("the task failed")),
	};

	client_finish_call(call, &r);
}

void client_task_answered(struct uar_mcp_call *call, const struct uar_json *task)
{
	uar_str status = uar_json_text(task, "status");
	const struct uar_json *questions = uar_json_get(task, UAR_STR("inputRequests"));
	struct uar_mcp_call_result r = { .result = uar_json_get(task, UAR_STR("result")) };

	if (uar_str_is(status, "completed") && r.result) {
		client_finish_call(call, &r);
	} else if (uar_str_is(status, "failed")) {
		fail_task(call, uar_json_get(task, UAR_STR("error")));
	} else if (uar_str_is(status, "cancelled")) {
		client_fail_call(call, UAR_ECANCELED, "the server cancelled the task");
	} else if (uar_str_is(status, "input_required") && questions && questions->count &&
		   ++call->rounds <= UAR_LIMIT_MCP_ASK_ROUNDS) {
		uar_buf_clear(&call->responses);
		if (!client_ask_all(call, questions))
			client_fail_call(call, UAR_EPROVIDER,
					 "the task asks for something that is not offered here");
	} else {
		poll_later(call, task);
	}
}

void client_task_update(struct uar_mcp_call *call)
{
	ask_about(call, "tasks/update", true);
}

/* Nothing waits for what the server says to it. */
void client_task_cancel(struct uar_mcp_call *call)
{
	struct uar_mcp_client *c = call->c;
	struct uar_buf b = uar_buf_make(65536);
	struct uar_jw w = uar_jw_begin(&b);
	char id[24];

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "taskId", uar_buf_str(&call->task));
	client_put_envelope(&w, c, NULL);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	client_next_id(c, id);
	b.err = client_request(c, id, "tasks/cancel", &b, uar_buf_str(&call->task));
	uar_buf_fini(&b);
}
