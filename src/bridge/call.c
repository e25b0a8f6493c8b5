/* call.c - one run of the library, read from the loop through its descriptor. */
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/limits.h"
#include "bridge/bridge_int.h"
#include "bridge/limits.h"

void bridge_call_free(struct uar_agent_call *c)
{
	uar_poll_stop(c->poll);
	uar_list_remove(&c->node);
	uaa_cancel_unref(c->cancel);
	uaa_run_unref(c->run);
	uar_arena_fini(&c->scratch);
	bridge_agent_unref(c->agent);
	uar_free(c);
}

/* The processes are gone: the last word, or none when nobody listens. */
static void settle(struct uar_agent_call *c)
{
	uaa_completion *completion = NULL;
	uaa_error *error = NULL;
	uaa_status s = uaa_run_wait(c->run, 0, &completion, &error);

	if (s == UAA_AGAIN)
		return;
	if (!c->dying)
		bridge_tell_end(c, completion, error);
	uaa_completion_unref(completion);
	uaa_error_unref(error);
	bridge_call_free(c);
}

static void on_readable(void *ctx)
{
	struct uar_agent_call *c = ctx;
	uaa_status s = UAA_OK;
	uaa_event *ev;

	for (int n = 0; n < UAR_LIMIT_AGENT_TURN && !c->ended && !c->paused; n++) {
		s = uaa_run_next(c->run, 0, &ev);
		if (s == UAA_AGAIN)
			return;
		c->ended = s != UAA_OK;
		if (c->ended)
			break;
		bridge_tell(c, ev);
		uaa_event_unref(ev);
	}
	if (c->ended)
		settle(c);
}

/* --- starting --------------------------------------------------------------------- */

static uar_err put_extension(uaa_request *r, const char *key, struct uar_buf *json)
{
	uar_err e = json->err;

	if (!e && uaa_request_set_extension_json(r, uaa_str_c(key), bridge_pub(uar_buf_str(json))))
		e = UAR_EINVALID;
	uar_buf_clear(json);
	return e;
}

static uar_err put_word(uaa_request *r, const char *key, uar_str word, struct uar_buf *b)
{
	struct uar_jw w = uar_jw_begin(b);

	if (!word.n)
		return UAR_OK;
	uar_jw_str(&w, NULL, word);
	b->err = uar_jw_end(&w);
	return put_extension(r, key, b);
}

static uar_err put_dirs(uaa_request *r, const struct uar_definition_backend *d, struct uar_buf *b)
{
	struct uar_jw w = uar_jw_begin(b);

	if (!d->add_dir_count)
		return UAR_OK;
	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "dirs");
	for (size_t i = 0; i < d->add_dir_count; i++)
		uar_jw_str(&w, NULL, d->add_dirs[i]);
	uar_jw_close(&w);
	uar_jw_close(&w);
	b->err = uar_jw_end(&w);
	return put_extension(r, "agent_api.exec.add_dirs.v1", b);
}

static uar_err put_session(uaa_request *r, const struct uar_agent_request *q, struct uar_buf *b)
{
	struct uar_jw w = uar_jw_begin(b);

	if (q->session == UAR_SESSION_NEW)
		return UAR_OK;
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "selector", "id");
	uar_jw_str(&w, "id", q->session_id);
	uar_jw_close(&w);
	b->err = uar_jw_end(&w);
	return put_extension(r,
			     q->session == UAR_SESSION_FORK ? "agent_api.session.fork.v1"
							    : "agent_api.session.resume.v1",
			     b);
}

static uar_err put_options(uaa_request *r, const struct bridge_agent *a,
			   const struct uar_agent_request *q)
{
	const struct uar_definition_backend *d = &a->entry->def.backend;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_AGENT_DEFINITION);
	uar_err e = UAR_OK;

	if (a->interactive) {
		uar_buf_add_str(&b, UAR_STR("false"));
		e = put_extension(r, "agent_api.exec.non_interactive", &b);
	}
	if (!e)
		e = put_word(r, "agent_api.config.model.v1", d->model, &b);
	if (!e)
		e = put_dirs(r, d, &b);
	if (!e)
		e = put_session(r, q, &b);
	if (!e)
		e = put_word(r, "backend.codex.exec.approval_policy", d->approval_policy, &b);
	if (!e)
		e = put_word(r, "backend.codex.exec.sandbox_mode", d->sandbox_mode, &b);
	uar_buf_fini(&b);
	return e;
}

static uar_err make_request(const struct bridge_agent *a, const struct uar_agent_request *q,
			    uaa_request **out)
{
	uaa_request *r = uaa_request_new();
	uar_err e = r ? UAR_OK : UAR_ENOMEM;

	if (!e && uaa_request_set_prompt(r, bridge_pub(q->prompt)))
		e = UAR_EINVALID;
	if (!e && q->working_dir.n && uaa_request_set_working_dir(r, bridge_pub(q->working_dir)))
		e = UAR_EINVALID;
	if (!e && uaa_request_set_timeout_ms(r, 0)) /* the runtime keeps the time */
		e = UAR_ENOMEM;
	if (!e)
		e = put_options(r, a, q);
	if (e)
		uaa_request_unref(r);
	else
		*out = r;
	return e;
}

static uar_err refused(uaa_status s, uaa_error *why, struct uar_error *error)
{
	uar_err e = s == UAA_E_NOMEM			? UAR_ENOMEM
		    : s == UAA_E_UNSUPPORTED_CAPABILITY ? UAR_ENOTIMPL
		    : s == UAA_E_INVALID_REQUEST	? UAR_EINVALID
							: UAR_ECHILD;

	if (why)
		uar_error_set(error, e, "%s", uaa_error_display(why).ptr);
	uaa_error_unref(why);
	return e;
}

static uar_err begin(struct uar_agent_call *c, const struct uar_agent_request *q,
		     struct uar_error *error)
{
	uaa_controlled_run run = { NULL, NULL };
	uaa_request *request;
	uaa_error *why = NULL;
	uaa_status s;
	uar_err e = make_request(c->agent, q, &request);

	if (e)
		return e;
	s = uaa_gateway_run_control(c->agent->gateway, c->agent->kind, request, &run, &why);
	uaa_request_unref(request);
	if (s)
		return refused(s, why, error);
	c->run = run.run;
	c->cancel = run.cancel;
	if (uaa_run_fd(c->run) < 0)
		return uar_error_set(error, UAR_ECHILD, "out of descriptors");
	return uar_poll_start(c->b->o.loop, uaa_run_fd(c->run), on_readable, c, &c->poll);
}

static uar_err call_start(struct uar_agents *h, const struct uar_agent_request *q,
			  const struct uar_agent_events *events, struct uar_agent_call **out,
			  struct uar_error *error)
{
	struct uar_bridge *b = (struct uar_bridge *)h;
	struct bridge_agent *a = bridge_find(b->set, q->agent_id);
	struct uar_agent_call *c;
	uar_err e;

	if (!a)
		return uar_error_set(error, UAR_ENOTFOUND, "agent %.*s is not defined",
				     UAR_FMT(q->agent_id));
	c = uar_zalloc(sizeof *c);
	if (!c)
		return UAR_ENOMEM;
	c->b = b;
	c->agent = bridge_agent_ref(a);
	c->events = *events;
	uar_list_init(&c->node);
	uar_arena_init(&c->scratch, 0);
	e = begin(c, q, error);
	if (e) {
		bridge_call_free(c); /* dropping a run stops it */
		return e;
	}
	uar_list_add_last(&b->calls, &c->node);
	*out = c;
	return UAR_OK;
}

/* --- while it runs -------------------------------------------------------------------- */

static void remember_denied(struct uar_agent_call *c, uar_str ask_id)
{
	c->denied_by_us += 2; /* the library says so, and then the program */
	for (size_t i = 0; i < ARRAY_LEN(c->asks); i++)
		if (uar_str_is(ask_id, c->asks[i].id)) {
			memcpy(c->denied[c->denied_at++ % ARRAY_LEN(c->denied)], c->asks[i].call_id,
			       BRIDGE_ID);
			return;
		}
}

static uar_err call_respond(struct uar_agent_call *c, uar_str ask_id, enum uar_verdict verdict)
{
	uaa_decision d = verdict == UAR_VERDICT_ALLOW		? UAA_DECISION_ALLOW
			 : verdict == UAR_VERDICT_ALLOW_SESSION ? UAA_DECISION_ALLOW_FOR_SESSION
								: UAA_DECISION_DENY;

	if (uaa_run_respond(c->run, bridge_pub(ask_id), d, NULL))
		return UAR_ENOTFOUND;
	if (d == UAA_DECISION_DENY)
		remember_denied(c, ask_id);
	return UAR_OK;
}

static void call_pause(struct uar_agent_call *c, bool paused)
{
	if (c->cancelled || paused == c->paused)
		return;
	c->paused = paused;
	uar_poll_pause(c->poll, paused);
}

static void call_cancel(struct uar_agent_call *c)
{
	call_pause(c, false);
	c->cancelled = true;
	uaa_cancel_request(c->cancel);
}

/* It is kept until its processes are gone, for the sake of an orderly end. */
static void call_stop(struct uar_agent_call *c)
{
	call_cancel(c);
	uaa_run_close_events(c->run);
	c->ended = c->dying = true;
	uar_list_remove(&c->node);
	uar_list_add_last(&c->b->dying, &c->node);
}

static const struct uar_agent_info *agent_at(struct uar_agents *h, size_t index)
{
	struct uar_bridge *b = (struct uar_bridge *)h;

	return index < b->set->count ? &b->set->at[index]->entry->def.info : NULL;
}

static uar_err check_dir(uar_str dir, struct uar_error *error)
{
	char path[PATH_MAX];
	struct stat st;

	if (dir.n >= sizeof path)
		return uar_error_set(error, UAR_EINVALID, "not a path");
	memcpy(path, dir.p, dir.n);
	path[dir.n] = 0;
	if (stat(path, &st))
		return uar_error_set(error, UAR_EINVALID, "%.200s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return uar_error_set(error, UAR_EINVALID, "%.200s: not a directory", path);
	if (access(path, X_OK))
		return uar_error_set(error, UAR_EINVALID, "%.200s: %s", path, strerror(errno));
	return UAR_OK;
}

/* Codex can be told never to ask. */
static bool asks(struct uar_agents *h, uar_str agent_id)
{
	struct uar_bridge *b = (struct uar_bridge *)h;
	const struct bridge_agent *a = bridge_find(b->set, agent_id);

	return a && a->interactive && !uar_str_is(a->entry->def.backend.approval_policy, "never");
}

const struct uar_agents_ops bridge_ops = {
	.abi = 1,
	.size = sizeof bridge_ops,
	.at = agent_at,
	.start = call_start,
	.respond = call_respond,
	.cancel = call_cancel,
	.stop = call_stop,
	.pause = call_pause,
	.check_dir = check_dir,
	.asks = asks,
	.check_program = bridge_check_program,
};
