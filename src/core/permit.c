/* permit.c - the order of what decides about a call. */
#include "core/permit.h"

#include "json/jw.h"

enum uar_permit uar_core_permit(const struct uar_permit_facts *f)
{
	if (!f->known)
		return UAR_PERMIT_UNKNOWN;
	if (f->off || !f->surfaced)
		return UAR_PERMIT_DENIED;
	if (!f->ready)
		return UAR_PERMIT_UNAVAILABLE;
	if (f->denied)
		return UAR_PERMIT_REJECTED;
	return UAR_PERMIT_ALLOWED;
}

bool uar_grant_covers(const struct uar_row_grant *g, const struct uar_grant_call *call)
{
	bool agent = uar_str_is(g->scope, "agent");

	return uar_str_is(g->row.status, "active") && uar_str_eq(g->row.tag, call->tool_id) &&
	       uar_str_eq(g->row.parent, agent ? call->agent_id : call->thread_id) &&
	       (!g->tool_version.n || uar_str_eq(g->tool_version, call->tool_version)) &&
	       (!g->args_sha256.n ||
		(call->args_digest.n && uar_str_eq(g->args_sha256, call->args_digest)));
}

void uar_grant_write(struct uar_jw *w, const struct uar_row_grant *g)
{
	bool agent = uar_str_is(g->scope, "agent");

	uar_jw_str(w, "grant_id", g->row.id);
	uar_jw_cstr(w, "scope", agent ? "agent" : "conversation");
	uar_jw_str(w, agent ? "agent_id" : "conversation_id", g->row.parent);
	uar_jw_str(w, "tool_id", g->row.tag);
	if (g->tool_version.n)
		uar_jw_str(w, "tool_version", g->tool_version);
	uar_jw_cstr(w, "arguments", g->args_sha256.n ? "same" : "any");
	uar_jw_str(w, "action_id", g->action_id);
	uar_jw_str(w, "session_id", g->row.session_id);
	uar_jw_str(w, "status", g->row.status);
	if (g->granted_by.n)
		uar_jw_raw(w, "granted_by", g->granted_by);
	uar_jw_seconds(w, "granted_at", g->row.created_us);
	if (g->revoked_at)
		uar_jw_seconds(w, "revoked_at", g->revoked_at);
}
