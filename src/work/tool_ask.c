/* tool_ask.c - what is asked about calls: may it be done, what is missing, do it for us. */
#include "work/permission.h"
#include "work/spill.h"
#include "work/tool_loop_int.h"

enum { SUBJECT = 60 };

/* What answers the question for a call, and what of the arguments a grant holds for. */
enum {
	GRANTABLE = UAR_VERDICT_BIT(ALLOW) | UAR_VERDICT_BIT(ALLOW_SESSION) |
		    UAR_VERDICT_BIT(ALLOW_ALWAYS) | UAR_VERDICT_BIT(DENY)
};
#define GRANT_SCHEMA                                                                               \
	"{\"type\":\"object\",\"properties\":{\"arguments\":{\"enum\":[\"any\",\"same\"],"         \
	"\"description\":\"which calls allow_for_session and allow_always hold for\"}},"           \
	"\"additionalProperties\":false}"

/* Two servers may have tools of one name: those of MCP are shown with their server. */
static uar_str shown_name(const struct place *p)
{
	const struct uar_tool *t = p->tool;

	return uar_str_utf8_prefix(uar_str_is(t->transport, "mcp") ? t->tool_id : t->name,
				   (p->plan == ASK ? 2 : 1) * UAR_LIMIT_TOOL_NAME);
}

void rt_place_send_ask(struct place *p, uar_str args_blob)
{
	struct tool_loop *l = p->loop;
	const struct round_call *call = p->call;
	struct uar_command c = { .kind = UAR_CMD_ASK };
	char prompt[PROMPT], subject[SUBJECT];

	rt_call_subject(p->args, uar_str_is(p->tool->tool_id, "internal:skill.run"), SUBJECT,
			subject);
	snprintf(prompt, sizeof prompt, "%.*s%s%s", UAR_FMT(shown_name(p)), subject,
		 p->plan == ASK ? ""
				: " had begun when the server stopped and may have happened: "
				  "repeat it?");
	c.ask = (struct uar_ask){
		.number = uar_run_rare(rt_state(l->o.run))->actions.count + 1,
		.kind = UAR_STR("tool"),
		.tool_name = p->tool->name,
		.call_id = call->id,
		.prompt = uar_str_c(prompt),
		.input = args_blob.n ? rt_spill_beginning(p->args) : p->args,
		.input_bytes = (int64_t)p->args.n,
		.blob = args_blob,
		.verdict = UAR_VERDICT_ASK,
		.timeout_us = rt_work(l->o.run)->o.action_timeout_us,
		.tool_id = p->tool->tool_id,
		/* Another server may have the name one day. */
		.tool_version =
			uar_str_is(p->tool->transport, "mcp") ? p->tool->version : UAR_STR_NONE,
		.repeat = p->plan == ASK_AGAIN,
		.offered = p->plan == ASK ? GRANTABLE : 0,
		.schema = p->plan == ASK ? UAR_STR(GRANT_SCHEMA) : UAR_STR_NONE,
		.args_sha256 = uar_str_c(p->args_digest),
		.destructive = p->tool->destructive,
		.permission = uar_buf_str(&p->permission),
		.changed_blob = call->changed_blob,
	};
	l->asked = true; /* what is left is for whoever reads the answer */
	rt_send(l->o.run, &c);
}

void rt_place_send_form(struct place *p, uar_str schema_blob, uar_str more)
{
	struct tool_loop *l = p->loop;
	bool client = p->tool->by == UAR_TOOL_BY_CLIENT;
	bool asked = p->tool->by == UAR_TOOL_BY_FORM; /* its arguments are the form */
	struct uar_command c = { .kind = UAR_CMD_ASK };

	c.ask = (struct uar_ask){
		.number = uar_run_rare(rt_state(l->o.run))->actions.count + 1,
		.type = client ? UAR_ACTION_CLIENT_TOOL : UAR_ACTION_FORM,
		.kind = client ? UAR_STR("client_tool") : UAR_STR("form"),
		.tool_name = p->tool->name,
		.call_id = p->call->id,
		.prompt = uar_str_utf8_prefix(uar_buf_str(&p->title), PROMPT - 1),
		.schema = schema_blob.n ? UAR_STR_NONE : uar_buf_str(&p->form),
		.schema_blob = schema_blob,
		.more = more,
		.verdict = UAR_VERDICT_ASK,
		.timeout_us = rt_work(l->o.run)->o.action_timeout_us,
		.tool_id = p->tool->tool_id,
	};
	if (!asked) {
		c.ask.input = p->args_json ? p->args : rt_spill_beginning(p->args);
		c.ask.input_bytes = (int64_t)p->args.n;
	}
	l->asked = true;
	rt_send(l->o.run, &c);
}

/* The first call is asked for, the others with it. */
static uar_err put_further(struct place *p, struct uar_jw *w)
{
	uar_err e = rt_place_read_args(p);

	uar_jw_obj(w, NULL);
	uar_jw_str(w, "call_id", p->call->id);
	uar_jw_str(w, "tool_id", p->tool->tool_id);
	uar_jw_str(w, "tool_name", p->tool->name);
	uar_jw_raw(w, "input", p->args_json ? p->args : UAR_STR("{}"));
	uar_jw_close(w);
	return e;
}

static uar_err list_further(struct tool_loop *l, size_t first, struct uar_buf *out)
{
	struct place *p = &l->places[1];
	struct uar_jw w = uar_jw_begin(out);
	size_t n = uar_run_rare(rt_state(l->o.run))->actions.open_count + 1;
	uar_err e = UAR_OK, end;

	uar_jw_arr(&w, NULL);
	for (size_t i = first + 1; i < l->round->call_count && n < UAR_OPEN_ACTIONS && !e; i++) {
		if (!l->round->calls[i].for_client)
			continue;
		p->call = &l->round->calls[i];
		rt_place_plan(p);
		e = put_further(p, &w);
		rt_place_clear(p);
		n++;
	}
	uar_jw_close(&w);
	end = uar_jw_end(&w);
	return e ? e : end;
}

/* Everything else of the round is over: what is left is for the client, all of it at once as far
 * as there is room for questions. */
void rt_tool_hand_over(struct tool_loop *l)
{
	struct uar_buf more = uar_buf_make(UAR_OPEN_ACTIONS * (UAR_LIMIT_CLIENT_ARGS + 1024));
	struct place *p = &l->places[0];
	size_t first = 0;
	uar_err e;

	while (!l->round->calls[first].for_client)
		first++;
	p->call = &l->round->calls[first];
	rt_place_plan(p);
	e = rt_place_read_args(p);
	if (!e)
		e = list_further(l, first, &more);
	if (e)
		rt_send_fail(l->o.run, e, "execution", uar_err_text(e));
	else
		rt_place_send_form(p, UAR_STR_NONE,
				   l->for_client > 1 ? uar_buf_str(&more) : UAR_STR_NONE);
	rt_place_clear(p);
	uar_buf_fini(&more);
}
