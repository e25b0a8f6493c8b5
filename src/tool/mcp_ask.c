/* mcp_ask.c - what an MCP server asks while it works on a call: one question after the other. */
#include "json/jw.h"
#include "loop/loop.h"
#include "mcp/elicit.h"
#include "tool/limits.h"
#include "tool/mcp_int.h"

static uar_str message_of(const struct uar_mcp_ask *a)
{
	return uar_json_text(a->params, "message");
}

static void write_about(const struct mcp_tool_call *k, uar_str url, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "server", k->t->o.setting->server.name);
	if (url.n)
		uar_jw_str(&w, "url", url);
	uar_jw_close(&w);
	out->err = uar_jw_end(&w);
}

static void ask_later(struct mcp_tool_call *k)
{
	if (k->waiting_count)
		uar_post(uar_loop_sched(k->t->o.loop), &k->next);
}

/* The messages are shown as the server wrote them. The call may end inside. */
static void ask_model(struct mcp_tool_call *k, struct uar_mcp_ask *a)
{
	struct uar_buf about = uar_buf_make(UAR_LIMIT_MCP_MESSAGE), prompt = uar_buf_make(512);
	struct uar_jw w = uar_jw_begin(&about);
	struct uar_tool_question q = { .type = UAR_ACTION_PERMISSION, .kind = UAR_STR("sampling") };

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "server", k->t->o.setting->server.name);
	for (const struct uar_json *m = uar_json_first(a->params); m; m = m->next)
		if (!uar_str_is(m->key, "server") && !uar_str_is(m->key, "_meta")) {
			uar_jw_key(&w, m->key);
			uar_jw_tree(&w, NULL, m);
		}
	uar_jw_close(&w);
	about.err = uar_jw_end(&w);
	uar_buf_printf(&prompt, "The MCP server %s wants to ask the model of the run",
		       k->t->o.setting->server.name);
	k->open = a;
	if (about.err || prompt.err) {
		k->open = NULL;
		ask_later(k);
		uar_mcp_ask_refuse(a, "the request is too long");
	} else {
		q.about = uar_buf_str(&about);
		q.prompt = uar_buf_str(&prompt);
		k->events.asked(k->events.ctx, &q);
	}
	uar_buf_fini(&about);
	uar_buf_fini(&prompt);
}

/* The address is shown whole and never asked for here. The call may end inside. */
static void ask_person(struct mcp_tool_call *k, struct uar_mcp_ask *a)
{
	const struct uar_json *schema = uar_json_get(a->params, UAR_STR("requestedSchema"));
	bool login = a->kind == UAR_MCP_LOGIN;
	uar_str url = login ? uar_str_c(a->url) : uar_json_text(a->params, "url");
	struct uar_buf form = uar_buf_make(UAR_LIMIT_MCP_FORM), about = uar_buf_make(65536);
	struct uar_tool_question q = { .type = login   ? UAR_ACTION_CREDENTIAL
					       : url.n ? UAR_ACTION_INPUT
						       : UAR_ACTION_FORM,
				       .kind = login ? UAR_STR("login") : UAR_STR("elicitation"),
				       .prompt = login ? UAR_STR("The MCP server wants a login: "
								 "open the address")
						       : message_of(a),
				       .timeout_us =
					       login ? k->t->o.setting->server.oauth.login_us : 0 };

	if (schema && !url.n)
		uar_json_write(&form, schema);
	write_about(k, url, &about);
	k->open = a;
	if (form.err || about.err || (!form.n && !url.n)) {
		k->open = NULL;
		ask_later(k);
		uar_mcp_ask_refuse(a, NULL); /* a form that is too long, or none */
	} else {
		q.schema = uar_buf_str(&form);
		q.about = uar_buf_str(&about);
		k->events.asked(k->events.ctx, &q);
	}
	uar_buf_fini(&form);
	uar_buf_fini(&about);
}

void mcp_on_asked(void *ctx, struct uar_mcp_ask *a)
{
	struct mcp_tool_call *k = ctx;

	if (k->waiting_count < ARRAY_LEN(k->waiting)) /* the client has no more */
		k->waiting[k->waiting_count++] = a;
	ask_later(k);
}

void mcp_ask_next(struct uar_task *t)
{
	struct mcp_tool_call *k = UAR_OWNER(t, struct mcp_tool_call, next);
	struct uar_mcp_ask *next = k->waiting[0];

	if (k->open || !k->waiting_count)
		return;
	memmove(k->waiting, k->waiting + 1, --k->waiting_count * sizeof next);
	if (next->kind == UAR_MCP_SAMPLE)
		ask_model(k, next);
	else
		ask_person(k, next);
}

void mcp_on_unasked(void *ctx, struct uar_mcp_ask *a)
{
	struct mcp_tool_call *k = ctx;

	for (size_t i = 0; i < k->waiting_count; i++)
		if (k->waiting[i] == a) {
			memmove(k->waiting + i, k->waiting + i + 1,
				(--k->waiting_count - i) * sizeof a);
			return;
		}
	if (k->open != a)
		return;
	k->open = NULL;
	if (k->events.unasked)
		k->events.unasked(k->events.ctx, a->kind == UAR_MCP_LOGIN && !a->failed);
	ask_later(k);
}

static void accept_form(struct uar_mcp_ask *a, uar_str values)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	const struct uar_json *j = NULL;
	struct uar_arena arena = { 0 };

	if (values.n && uar_json_parse(values, NULL, &arena, &j, NULL))
		j = NULL;
	if (uar_str_is(uar_json_text(a->params, "mode"), "url"))
		uar_mcp_ask_answer(a, UAR_STR("{\"action\":\"accept\"}"));
	else if (!uar_mcp_elicit_accept(a->params, j, &b))
		uar_mcp_ask_answer(a, uar_buf_str(&b));
	else
		uar_mcp_ask_refuse(a, NULL);
	uar_buf_fini(&b);
	uar_arena_fini(&arena);
}

static void refuse(struct uar_mcp_ask *a, uar_str reason)
{
	char why[UAR_LIMIT_MCP_METHOD * 4];

	snprintf(why, sizeof why, "%.*s", UAR_FMT(reason));
	uar_mcp_ask_refuse(a, why[0] ? why : NULL);
}

/* The call may end inside: what is asked next is posted before. */
void mcp_answer(struct uar_tools *base, struct uar_tool_call *call,
		const struct uar_tool_answer *said)
{
	struct mcp_tool_call *k = (struct mcp_tool_call *)(void *)call;
	struct uar_mcp_ask *a = k->open;

	(void)base;
	if (!a || (a->kind == UAR_MCP_LOGIN && said->verdict == UAR_VERDICT_SUBMIT))
		return; /* the login itself is the answer */
	k->open = NULL;
	ask_later(k);
	if (said->verdict == UAR_VERDICT_SUBMIT && a->kind == UAR_MCP_SAMPLE)
		uar_mcp_ask_answer(a, said->values);
	else if (said->verdict == UAR_VERDICT_SUBMIT)
		accept_form(a, said->values);
	else if (said->verdict == UAR_VERDICT_CANCEL && a->kind == UAR_MCP_ELICIT)
		uar_mcp_ask_answer(a, UAR_STR("{\"action\":\"cancel\"}"));
	else
		refuse(a, said->reason);
}
