/* relay_pass.c - requests of clients on their way through a relay. */
#include "base/alloc.h"
#include "mcp/relay_int.h"

void relay_free_passage(struct uar_mcp_passage *p)
{
	uar_list_remove(&p->node);
	uar_timer_stop(p->r->sched, &p->timer);
	p->r->passage_count--;
	uar_free(p);
}

static void finish(struct uar_mcp_passage *p, const struct uar_mcp_passed *passed)
{
	struct uar_mcp_passage_events events = p->events;

	relay_free_passage(p);
	events.done(events.ctx, passed);
}

void relay_fail(struct uar_mcp_passage *p, uar_err e, const char *reason)
{
	finish(p, &(struct uar_mcp_passed){ .err = e, .reason = reason });
}

void relay_fail_all(struct uar_mcp_relay *r, uar_err e, const char *reason)
{
	struct uar_list all;

	uar_list_init(&all);
	uar_list_move_all(&r->passages, &all);
	while (!uar_list_empty(&all))
		relay_fail(UAR_OWNER(all.next, struct uar_mcp_passage, node), e, reason);
}

struct uar_mcp_passage *relay_find(struct uar_mcp_relay *r, uar_str id)
{
	UAR_LIST_EACH (it, &r->passages) {
		struct uar_mcp_passage *p = UAR_OWNER(it, struct uar_mcp_passage, node);

		if (uar_str_is(id, p->id))
			return p;
	}
	return NULL;
}

void relay_take_answer(struct uar_mcp_passage *p, const struct uar_mcp_message *m)
{
	struct uar_mcp_passed passed = { .result = m->result };

	if (m->kind == UAR_MCP_ERROR) {
		passed.code = m->error.code;
		passed.message = m->error.message;
		passed.data = m->error.data;
	}
	finish(p, &passed);
}

static int64_t limit_us(const struct uar_mcp_relay *r)
{
	int64_t own = r->o.setting->server.timeout_us;

	return own ? own : UAR_LIMIT_MCP_CALL_MS * 1000LL;
}

static void timed_out(struct uar_timer *t)
{
	struct uar_mcp_passage *p = UAR_OWNER(t, struct uar_mcp_passage, timer);

	relay_drop(p->r, p->id, "timed out");
	relay_fail(p, UAR_ETIMEOUT, "the server did not answer in time");
}

/* Which request a notification belongs to: progress has its id as the token; what is logged
 * has none over pipes, so that it goes to each that wants it. */
static void notify_one(struct uar_mcp_passage *p, const struct uar_mcp_message *m)
{
	int64_t left = p->until_us - uar_clock_mono(p->r->sched->clock);
	int64_t limit = limit_us(p->r);

	if (uar_timer_set(p->r->sched, &p->timer, left < limit ? left : limit))
		timed_out(&p->timer);
	else
		p->events.notified(p->events.ctx, m->method, m->params);
}

static void take_progress(struct uar_mcp_relay *r, const struct uar_mcp_message *m)
{
	const struct uar_json *token = uar_json_get(m->params, UAR_STR("progressToken"));
	struct uar_mcp_passage *p;
	char id[RELAY_ID] = "";

	if (token && token->kind == UAR_JSON_INT)
		snprintf(id, sizeof id, "%lld", (long long)token->i);
	p = relay_find(r, uar_str_c(id));
	if (p)
		notify_one(p, m);
}

/* Whose request the log line belongs to: that of its stream. Where all share one stream, nobody
 * can tell when several are open, and no client may read another's lines. */
static struct uar_mcp_passage *passage_meant(struct uar_mcp_relay *r, uar_str of)
{
	struct uar_list *first = r->passages.next;

	if (of.n)
		return relay_find(r, of);
	return !uar_list_empty(&r->passages) && first->next == &r->passages
		       ? UAR_OWNER(first, struct uar_mcp_passage, node)
		       : NULL;
}

void relay_take_notice(struct uar_mcp_relay *r, const struct uar_mcp_message *m, uar_str of)
{
	struct uar_mcp_passage *p;

	if (uar_str_is(m->method, "notifications/progress")) {
		take_progress(r, m);
		return;
	}
	p = passage_meant(r, of);
	if (p)
		notify_one(p, m);
}

void uar_mcp_passage_cancel(struct uar_mcp_passage *p)
{
	relay_drop(p->r, p->id, "cancelled");
	relay_free_passage(p);
}

/* --- out ------------------------------------------------------------------------------------- */

void relay_put_envelope(struct uar_jw *w, const struct uar_mcp_passing *p, const char *token)
{
	uar_jw_obj(w, "_meta");
	uar_jw_cstr(w, UAR_MCP_META "protocolVersion", UAR_MCP_MODERN);
	uar_jw_raw(w, UAR_MCP_META "clientCapabilities",
		   p->capabilities.n ? p->capabilities : UAR_STR("{}"));
	if (p->info.n) {
		uar_jw_raw(w, UAR_MCP_META "clientInfo", p->info);
	} else {
		uar_jw_obj(w, UAR_MCP_META "clientInfo");
		uar_jw_cstr(w, "name", "uar");
		uar_jw_cstr(w, "version", UAR_VERSION);
		uar_jw_close(w);
	}
	if (p->log_level.n)
		uar_jw_str(w, UAR_MCP_META "logLevel", p->log_level);
	if (p->progress)
		uar_jw_raw(w, "progressToken", uar_str_c(token));
	uar_jw_close(w);
}

static bool is_own(uar_str key)
{
	return uar_str_is(key, "_meta") || uar_str_is(key, "requestState") ||
	       uar_str_is(key, "inputResponses");
}

static void put_params(struct uar_jw *w, const struct uar_mcp_passing *p, const char *token)
{
	bool task = uar_str_starts(p->method, UAR_STR("tasks/"));

	uar_jw_obj(w, NULL);
	for (const struct uar_json *j = uar_json_first(p->params); j; j = j->next)
		if (task && uar_str_is(j->key, "taskId")) {
			uar_jw_str(w, "taskId", p->name); /* as the server has it */
		} else if (!is_own(j->key)) {
			uar_jw_key(w, j->key);
			uar_jw_tree(w, NULL, j);
		}
	if (p->again && p->answers.n)
		uar_jw_raw(w, "inputResponses", p->answers);
	if (p->again && p->state.p)
		uar_jw_str(w, "requestState", p->state);
	relay_put_envelope(w, p, token);
	uar_jw_close(w);
}

static uar_err send_passage(struct uar_mcp_passage *p, const struct uar_mcp_passing *passing)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e;

	put_params(&w, passing, p->id);
	b.err = uar_jw_end(&w);
	e = relay_send(p->r, p->id, passing->method, passing->name, &b);
	uar_buf_fini(&b);
	return e;
}

uar_err uar_mcp_relay_pass(struct uar_mcp_relay *r, const struct uar_mcp_passing *passing,
			   const struct uar_mcp_passage_events *events,
			   struct uar_mcp_passage **out)
{
	int64_t limit = limit_us(r), most = UAR_LIMIT_MCP_CALL_MAX_MS * 1000LL;
	struct uar_mcp_passage *p;
	uar_err e;

	if (!r->has_been_ready)
		return UAR_ENET;
	if (r->passage_count >= UAR_LIMIT_MCP_CALLS)
		return UAR_EBUSY;
	p = uar_zalloc(sizeof *p);
	if (!p)
		return UAR_ENOMEM;
	*p = (struct uar_mcp_passage){ .r = r, .events = *events, .timer.fn = timed_out };
	p->until_us = uar_clock_mono(r->sched->clock) + (limit > most ? limit : most);
	uar_list_add_last(&r->passages, &p->node);
	r->passage_count++;
	relay_next_id(r, p->id);
	e = send_passage(p, passing);
	if (!e)
		e = uar_timer_set(r->sched, &p->timer, limit);
	if (e)
		relay_free_passage(p);
	else
		*out = p;
	return e;
}
