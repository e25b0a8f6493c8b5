/* mcp_ask.c - what a call needs from its client: forms, models, roots.
 *
 * In a session each question is a request of the server, said on the stream of the call; the
 * client posts its answer. Without a session the result of the call asks, and the client calls
 * again with its answers and a state that it cannot change. */
#include "gate/mcp_int.h"

enum { STATE_SECONDS = 86400 };
#define FOR_EVER 253402300799LL /* the end of the year 9999 */

struct question {
	struct uar_list node; /* in mcp_work.questions */
	char id[UAR_UUID_TEXT + 3];
	uar_str key;
	uar_str answer; /* JSON text; empty: there is none yet */
};

/* --- what a client can do -------------------------------------------------------------------- */

static const struct {
	const char *method, *capability;
	unsigned can;
} askable[] = { { "elicitation/create", "elicitation", MCP_ELICITS },
		{ "sampling/createMessage", "sampling", MCP_SAMPLES },
		{ "roots/list", "roots", MCP_HAS_ROOTS } };

unsigned mcp_can(const struct uar_json *capabilities)
{
	unsigned can = 0;

	for (size_t i = 0; i < ARRAY_LEN(askable); i++)
		if (uar_json_get(capabilities, uar_str_c(askable[i].capability)))
			can |= askable[i].can;
	return can;
}

unsigned mcp_can_for(uar_str method)
{
	for (size_t i = 0; i < ARRAY_LEN(askable); i++)
		if (uar_str_is(method, askable[i].method))
			return askable[i].can;
	return 0;
}

/* --- in a session ---------------------------------------------------------------------------- */

static uar_err ask_one(struct mcp_work *k, const struct uar_json *j)
{
	struct question *q = uar_arena_alloc(&k->arena, sizeof *q);
	uar_str method = uar_json_text(j, "method");
	const struct uar_json *params = uar_json_get(j, UAR_STR("params"));
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE),
		       text = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	char id[UAR_UUID_TEXT + 1];
	uar_err e = q ? UAR_OK : UAR_ENOMEM;

	if (!e) {
		uar_uuid_next(&k->m->ids, id);
		snprintf(q->id, sizeof q->id, "\"%s\"", id);
		q->key = uar_arena_str(&k->arena, j->key);
		if (params)
			uar_json_write(&text, params);
		e = q->key.p ? text.err : UAR_ENOMEM;
	}
	if (!e)
		e = uar_mcp_write_request(&b, uar_str_c(q->id), method, uar_buf_str(&text));
	if (!e) {
		uar_list_add_last(&k->questions, &q->node);
		mcp_work_say(k, uar_buf_str(&b));
	}
	uar_buf_fini(&text);
	uar_buf_fini(&b);
	return e;
}

uar_err mcp_ask(struct mcp_work *k, const struct uar_json *questions)
{
	uar_err e = UAR_OK;

	uar_list_init(&k->questions);
	for (const struct uar_json *j = uar_json_first(questions); j && !e; j = j->next)
		e = ask_one(k, j);
	return e;
}

static void hand_over(struct mcp_work *k)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_jw w = uar_jw_begin(&b);
	const struct uar_json *answers = NULL;
	uar_str text;
	uar_err e;

	uar_jw_obj(&w, NULL);
	UAR_LIST_EACH (it, &k->questions) {
		struct question *q = UAR_OWNER(it, struct question, node);

		uar_jw_key(&w, q->key);
		uar_jw_raw(&w, NULL, q->answer);
	}
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	text = e ? UAR_STR_NONE : uar_arena_str(&k->arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	uar_list_init(&k->questions);
	if (!text.p || uar_json_parse(text, NULL, &k->arena, &answers, NULL))
		answers = NULL;
	k->ops->answered(k, answers);
}

static bool all_answered(const struct mcp_work *k)
{
	UAR_LIST_EACH (it, &k->questions)
		if (!UAR_OWNER(it, struct question, node)->answer.n)
			return false;
	return true;
}

static struct question *find_question(struct mcp_session *s, uar_str id, struct mcp_work **of)
{
	UAR_LIST_EACH (it, &s->m->works) {
		struct mcp_work *k = UAR_OWNER(it, struct mcp_work, node);

		if (k->s != s || k->settled)
			continue;
		UAR_LIST_EACH (at, &k->questions) {
			struct question *q = UAR_OWNER(at, struct question, node);

			*of = k;
			if (uar_str_is(id, q->id))
				return q;
		}
	}
	return NULL;
}

void mcp_take_response(struct mcp_session *s, const struct uar_mcp_message *m)
{
	struct mcp_work *k;
	struct question *q = find_question(s, m->id, &k);
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);

	if (!q || q->answer.n)
		return; /* nothing asked for it, or it was answered */
	if (m->kind == UAR_MCP_ERROR) {
		uar_list_init(&k->questions);
		k->ops->answered(k, NULL);
		return;
	}
	uar_json_write(&b, m->result);
	if (!b.err)
		q->answer = uar_arena_str(&k->arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	if (all_answered(k))
		hand_over(k);
}

/* --- a state that the client keeps ------------------------------------------------------------ */

/* "MAC.EXPIRES.STATE". */
static bool sign(const struct uar_gate *g, const struct uar_owner *o, uar_str request, uar_str rest,
		 char mac[UAR_SHA256_TEXT + 1])
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	bool ok;

	uar_buf_printf(&b, "mcp-state %.*s %.*s %.*s %zu %.*s ", UAR_FMT(o->tenant),
		       UAR_FMT(o->workspace), UAR_FMT(o->user), request.n, UAR_FMT(request));
	uar_buf_add_str(&b, rest);
	ok = !b.err && uar_hmac_sha256_hex(uar_str_c(g->o.token), uar_buf_str(&b), mac);
	uar_buf_fini(&b);
	return ok;
}

static uar_err seal(const struct mcp_work *k, uar_str request, int64_t until, uar_str state,
		    struct uar_buf *out)
{
	struct uar_buf rest = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	char mac[UAR_SHA256_TEXT + 1];
	uar_err e;

	uar_buf_printf(&rest, "%lld.", (long long)until);
	uar_buf_add_str(&rest, state);
	e = rest.err;
	if (!e && !sign(k->m->g, &k->owner, request, uar_buf_str(&rest), mac))
		e = UAR_ENOMEM;
	if (!e) {
		uar_buf_printf(out, "%s.", mac);
		uar_buf_add_str(out, uar_buf_str(&rest));
		e = out->err;
	}
	uar_buf_fini(&rest);
	return e;
}

uar_err mcp_state_write(const struct mcp_work *k, uar_str request, uar_str state,
			struct uar_buf *out)
{
	int64_t now = uar_clock_wall(k->m->g->o.sched->clock) / 1000000;

	return seal(k, request, now + STATE_SECONDS, state, out);
}

uar_err mcp_task_id_write(const struct mcp_work *k, uar_str task, struct uar_buf *out)
{
	return seal(k, UAR_STR("task"), FOR_EVER, task, out);
}

static bool same_mac(uar_str given, const char *mac)
{
	unsigned char differs = 0;

	if (given.n != UAR_SHA256_TEXT)
		return false;
	for (size_t i = 0; i < UAR_SHA256_TEXT; i++)
		differs |= (unsigned char)(given.p[i] ^ mac[i]);
	return !differs;
}

static uar_err unseal(const struct call *c, uar_str request, uar_str sealed, uar_str *out)
{
	char mac[UAR_SHA256_TEXT + 1];
	uar_str given, rest, state;
	uint64_t until;

	given = uar_str_cut(sealed, '.', &rest);
	if (!sign(c->g, &c->owner, request, rest, mac) || !same_mac(given, mac))
		return UAR_EINVALID;
	if (uar_str_u64(uar_str_cut(rest, '.', &state), &until) ||
	    (int64_t)until < uar_clock_wall(c->g->o.sched->clock) / 1000000)
		return UAR_EINVALID;
	*out = state;
	return UAR_OK;
}

uar_err mcp_state_read(const struct mcp_exchange *x, uar_str request, uar_str *out)
{
	const struct uar_json *j = uar_json_get(x->m.params, UAR_STR("requestState"));

	*out = UAR_STR_NONE;
	return j ? unseal(x->c, request, uar_json_str(j, UAR_STR("")), out) : UAR_OK;
}

uar_err mcp_task_id_read(const struct call *c, uar_str id, uar_str *out)
{
	return unseal(c, UAR_STR("task"), id, out);
}
