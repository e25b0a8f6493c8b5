/* grant.c - permissions for more than one call: given with an answer, taken back by a command.
 *
 * A grant is a row and a fact, policy.changed, of the session in which it was given. */
#include "core/action_int.h"
#include "core/control_int.h"
#include "core/permit.h"

static void policy_changed(struct emit *e, const struct uar_row_grant *g, const char *what)
{
	bool agent = uar_str_is(g->scope, "agent");
	struct uar_jw *w = uar_emit_begin(e);
	uar_str text = uar_arena_printf(e->env->arena, "%s %.*s", what, UAR_FMT(g->row.tag));

	uar_jw_str(w, "policy_id", g->row.id);
	uar_jw_cstr(w, "scope", agent ? "agent" : "session");
	uar_jw_cstr(w, "version", g->revoked_at ? "2" : "1");
	uar_jw_arr(w, "changed");
	uar_jw_str(w, NULL, text);
	uar_jw_close(w);
	uar_emit_who(w, "changed_by", "user", e->s->owner.user);
	uar_jw_time(w, "effective_at", e->env->now_us);
	uar_emit(e, UAR_EV_POLICY_CHANGED, EMIT_SESSION);
}

/* For these arguments alone? The answer says so: {"arguments": "same"}. */
static bool for_same(struct emit *e, const struct uar_answer *a)
{
	const struct uar_json *values = NULL;

	if (!a->values.n || uar_json_parse(a->values, NULL, e->env->arena, &values, NULL))
		return false;
	return uar_str_is(uar_json_text(values, "arguments"), "same");
}

bool uar_core_grants(const struct uar_open_action *open, const struct uar_answer *a)
{
	return a->source == UAR_ANSWER_RESPOND && open->tool_id[0] &&
	       open->type == UAR_ACTION_PERMISSION &&
	       (a->verdict == UAR_VERDICT_ALLOW_SESSION || a->verdict == UAR_VERDICT_ALLOW_ALWAYS);
}

void uar_core_grant(struct emit *e, const struct uar_open_action *open, const struct uar_answer *a,
		    uar_str action_id)
{
	bool agent = a->verdict == UAR_VERDICT_ALLOW_ALWAYS;
	struct uar_row_grant g = {
		.row = { .kind = UAR_ROW_GRANT,
			 .id = action_id,
			 .session_id = e->s->session_id,
			 .parent = agent ? e->r->what.agent_id : e->r->id.thread_id,
			 .tag = uar_str_c(open->tool_id),
			 .status = UAR_STR("active"),
			 .rank = e->env->now_us,
			 .created_us = e->env->now_us,
			 .updated_us = e->env->now_us },
		.scope = agent ? UAR_STR("agent") : UAR_STR("thread"),
		.action_id = action_id,
		.granted_by = uar_arena_printf(e->env->arena, "{\"type\":\"user\",\"id\":\"%.*s\"}",
					       UAR_FMT(e->s->owner.user)),
		.tool_version = uar_str_c(open->tool_version),
		.args_sha256 = for_same(e, a) ? uar_str_c(open->args_digest) : UAR_STR_NONE,
	};

	if (!e->err)
		policy_changed(e, &g, "granted");
	uar_emit_row(e, &g);
}

/* --- revoke_grant ---------------------------------------------------------------------- */

void ctl_revoke_grant(struct ctl *c)
{
	struct uar_row_grant *g = ctl_row(c, UAR_ROW_GRANT, c->in->revoke_grant.grant_id);
	struct uar_jw *w;

	if (!g && !c->waits)
		ctl_refuse(c, UAR_ENOTFOUND, "/grant_id", "no grant has that id");
	if (!g)
		return;
	if (uar_str_is(g->row.status, "active")) {
		ctl_change(c, g);
		g->row.status = UAR_STR("revoked");
		g->revoked_at = c->e.env->now_us;
		policy_changed(&c->e, g, "revoked");
	}
	w = ctl_result(c);
	uar_jw_obj(w, "grant");
	uar_grant_write(w, g);
	uar_jw_close(w);
	ctl_result_end(c);
}
