/* mcp_servers.c - the MCP servers that agents use: listed, kept in the database, logged in at. */
#include "gate/kept.h"
#include "gate/limits.h"
#include "tool/mcp_host.h"

static struct uar_mcp_host *host_of(struct call *c)
{
	struct uar_mcp_host *h = uar_workers_mcp(c->g->o.work);

	if (!h)
		gate_problem(c, UAR_ENOTIMPL, NULL);
	return h;
}

/* --- looking -------------------------------------------------------------------------------- */

void gate_mcp_list_servers(struct call *c)
{
	const struct uar_mcp_host *h = host_of(c);
	struct uar_buf b = uar_buf_make(UAR_LIMIT_TOOLS_ANSWER);
	struct uar_jw w = uar_jw_begin(&b);
	const struct uar_mcp_hosted *s;

	if (!h)
		return;
	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "servers");
	for (size_t i = 0; (s = uar_mcp_host_at(h, i)); i++) {
		if (!uar_mcp_hosted_is_for(s, &c->owner))
			continue;
		uar_jw_obj(&w, NULL);
		uar_mcp_hosted_write(&w, s);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}

/* NULL: the call was answered. */
static struct uar_mcp_hosted *server_of(struct call *c)
{
	const struct uar_mcp_host *h = host_of(c);
	struct uar_mcp_hosted *s = h ? uar_mcp_host_find(h, &c->owner, c->params[0]) : NULL;
	struct uar_error error = { 0 };

	if (h && !s && !uar_workers_definitions_loaded(c->g->o.work))
		gate_problem(c, uar_error_set(&error, UAR_EBUSY, "MCP servers are being read"),
			     &error);
	else if (h && !s)
		gate_problem(c,
			     uar_error_set(&error, UAR_ENOTFOUND,
					   "no MCP server is named \"%.*s\"; GET /api/mcp/servers "
					   "lists them",
					   UAR_FMT(uar_str_utf8_prefix(c->params[0], 64))),
			     &error);
	return s;
}

static void answer_server(struct call *c, int status, const struct uar_mcp_hosted *s)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_TOOLS_ANSWER);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_mcp_hosted_write(&w, s);
	uar_jw_close(&w);
	gate_answer_json(c, status, &b, &w);
}

void gate_mcp_get_server(struct call *c)
{
	const struct uar_mcp_hosted *s = server_of(c);

	if (s)
		answer_server(c, 200, s);
}

/* --- changes -------------------------------------------------------------------------------- */

static void changed(struct uar_definition_change *op)
{
	struct call *c = op->ctx;
	const struct uar_mcp_hosted *s;
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);

	if (op->err) {
		gate_problem(c, op->err, &op->error);
		return;
	}
	s = op->text.p ? uar_mcp_host_find(uar_workers_mcp(c->g->o.work), &c->owner, op->id) : NULL;
	if (s) {
		answer_server(c, op->created ? 201 : 200, s);
		return;
	}
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "name", op->id);
	uar_jw_bool(&w, "removed", !op->text.p);
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}

void gate_mcp_put_server(struct call *c)
{
	if (host_of(c))
		gate_put_kept(c, GATE_KEPT_MCP, changed);
}

void gate_mcp_remove_server(struct call *c)
{
	const struct uar_mcp_hosted *s = server_of(c);
	struct uar_error error = { 0 };

	if (!s)
		return;
	if (uar_mcp_hosted_origin(s) == UAR_MCP_OF_DATABASE) {
		gate_remove_kept(c, GATE_KEPT_MCP, changed);
		return;
	}
	gate_problem(c,
		     uar_error_set(&error, UAR_EFORBIDDEN,
				   uar_mcp_hosted_origin(s) == UAR_MCP_OF_SETTINGS
					   ? "the server \"%s\" is written in the setting "
					     "mcp_servers: remove it there"
					   : "the server \"%s\" is written in an agent's "
					     "definition: remove it there",
				   uar_mcp_hosted_name(s)),
		     &error);
}

/* --- logins --------------------------------------------------------------------------------- */

void gate_mcp_login(struct call *c)
{
	struct uar_mcp_hosted *s = server_of(c);

	if (!s)
		return; /* and the call is freed */
	if (c->body && uar_json_bool(uar_json_get(c->body, UAR_STR("again")), false))
		uar_mcp_hosted_log_out(s);
	answer_server(c, 200, s);
}

static void show_page(struct call *c, int status, const char *title, const char *text)
{
	struct uar_buf b = uar_buf_make(4096);

	uar_buf_printf(&b,
		       "<!doctype html><meta charset=\"utf-8\"><title>%s</title>"
		       "<h1>%s</h1><p>%s</p>",
		       title, title, text);
	if (b.err)
		gate_problem(c, b.err, NULL);
	else
		gate_answer_type(c, status, "text/html; charset=utf-8", uar_buf_str(&b));
	uar_buf_fini(&b);
}

/* Nobody shows a token here: the state, which was made for one login, is what admits. */
void gate_mcp_callback(struct call *c)
{
	struct uar_mcp_host *h = host_of(c);
	struct uar_mcp_returned r = { UAR_STR_NONE, UAR_STR_NONE, UAR_STR_NONE, UAR_STR_NONE };
	const char *name = "";
	uar_err e;

	if (!h)
		return;
	e = gate_query_str(c, "state", &r.state);
	if (!e)
		e = gate_query_str(c, "code", &r.code);
	if (!e)
		e = gate_query_str(c, "iss", &r.iss);
	if (!e)
		e = gate_query_str(c, "error", &r.error);
	if (!e)
		e = uar_mcp_host_redirected(h, &r, &name);
	if (e == UAR_ENOTFOUND)
		show_page(c, 404, "Not known",
			  "No login waits for this answer, or it was used before. Begin again "
			  "where you came from.");
	else if (e)
		gate_problem(c, e, NULL);
	else if (r.error.n)
		show_page(c, 200, "Not logged in",
			  "The login was declined. You can close this page.");
	else
		show_page(c, 200, "Thank you",
			  "The login is being finished. You can close this page.");
}
