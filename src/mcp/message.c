/* message.c - JSON-RPC 2.0 as the Model Context Protocol narrows it. */
#include "mcp/message.h"

static uar_err refuse(struct uar_error *error, const char *where, const char *text)
{
	uar_error_where(error, "%s", where);
	return uar_error_set(error, UAR_EINVALID, "%s", text);
}

/* A string or an integer, kept as the JSON that it was. */
static uar_err read_id(const struct uar_json *j, struct uar_arena *arena, uar_str *out)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_ID + 1);
	uar_err e;

	if (j->kind != UAR_JSON_STRING && j->kind != UAR_JSON_INT)
		return UAR_EINVALID;
	uar_json_write(&b, j);
	e = b.err == UAR_ETOOBIG || b.n > UAR_LIMIT_MCP_ID ? UAR_EINVALID : b.err;
	if (!e) {
		uar_str copy = uar_arena_str(arena, uar_buf_str(&b));

		e = copy.p ? UAR_OK : UAR_ENOMEM;
		if (!e)
			*out = copy;
	}
	uar_buf_fini(&b);
	return e;
}

static uar_err read_method(const struct uar_json *root, struct uar_mcp_message *m,
			   struct uar_error *error)
{
	const struct uar_json *params = uar_json_get(root, UAR_STR("params"));

	m->method = uar_json_str(uar_json_get(root, UAR_STR("method")), UAR_STR_NONE);
	if (!m->method.n || m->method.n > UAR_LIMIT_MCP_METHOD)
		return refuse(error, "/method", "a method is a short string");
	if (params && params->kind != UAR_JSON_OBJECT)
		return refuse(error, "/params", "params are an object");
	m->params = params;
	m->kind = m->id.n ? UAR_MCP_REQUEST : UAR_MCP_NOTIFICATION;
	return UAR_OK;
}

static uar_err read_failure(const struct uar_json *failure, struct uar_mcp_message *m,
			    struct uar_error *error)
{
	const struct uar_json *code = uar_json_get(failure, UAR_STR("code"));

	if (!code || code->kind != UAR_JSON_INT)
		return refuse(error, "/error/code", "an error has an integer as its code");
	m->kind = UAR_MCP_ERROR;
	m->error.code = code->i;
	m->error.message = uar_json_text(failure, "message");
	m->error.data = uar_json_get(failure, UAR_STR("data"));
	if (!m->id.n)
		m->id = UAR_STR("null");
	return UAR_OK;
}

static uar_err read_answer(const struct uar_json *root, struct uar_mcp_message *m,
			   struct uar_error *error)
{
	const struct uar_json *result = uar_json_get(root, UAR_STR("result"));
	const struct uar_json *failure = uar_json_get(root, UAR_STR("error"));

	if (failure && !result)
		return read_failure(failure, m, error);
	if (!result || failure)
		return refuse(error, "", "neither a request, a notification nor an answer");
	if (result->kind != UAR_JSON_OBJECT)
		return refuse(error, "/result", "a result is an object");
	if (!m->id.n)
		return refuse(error, "/id", "an answer names its request");
	m->kind = UAR_MCP_RESULT;
	m->result = result;
	return UAR_OK;
}

static uar_err read_members(const struct uar_json *root, struct uar_arena *arena,
			    struct uar_mcp_message *m, struct uar_error *error)
{
	const struct uar_json *id = uar_json_get(root, UAR_STR("id"));
	bool failed = uar_json_get(root, UAR_STR("error")) != NULL;
	uar_err e = UAR_OK;

	if (id && !(failed && id->kind == UAR_JSON_NULL))
		e = read_id(id, arena, &m->id);
	if (e == UAR_EINVALID)
		return refuse(error, "/id", "an id is a short string or an integer");
	if (e)
		return e;
	if (!uar_str_is(uar_json_text(root, "jsonrpc"), "2.0"))
		return refuse(error, "/jsonrpc", "\"jsonrpc\" is \"2.0\"");
	return uar_json_get(root, UAR_STR("method")) ? read_method(root, m, error)
						     : read_answer(root, m, error);
}

uar_err uar_mcp_message_read(uar_str text, struct uar_arena *arena, struct uar_mcp_message *out,
			     struct uar_error *error)
{
	struct uar_json_limits limits = { .depth = UAR_LIMIT_MCP_DEPTH,
					  .nodes = UAR_LIMIT_MCP_VALUES,
					  .bytes = UAR_LIMIT_MCP_MESSAGE,
					  .foreign = true };
	struct uar_mcp_message m = { 0 };
	const struct uar_json *root;
	uar_err e = uar_json_parse(text, &limits, arena, &root, error);

	out->id = UAR_STR("null");
	if (e)
		return e;
	if (root->kind != UAR_JSON_OBJECT)
		return refuse(error, "", "one message is one JSON object; there are no batches");
	e = read_members(root, arena, &m, error);
	if (!e)
		*out = m;
	else if (m.id.n)
		out->id = m.id;
	return e;
}

/* --- out -------------------------------------------------------------------------------- */

static struct uar_jw begin(struct uar_buf *out, uar_str id)
{
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "jsonrpc", "2.0");
	if (id.n)
		uar_jw_raw(&w, "id", id);
	return w;
}

static uar_err end(struct uar_jw *w)
{
	uar_jw_close(w);
	return uar_jw_end(w);
}

uar_err uar_mcp_write_request(struct uar_buf *out, uar_str id, uar_str method, uar_str params)
{
	struct uar_jw w = begin(out, id);

	uar_jw_str(&w, "method", method);
	if (params.n)
		uar_jw_raw(&w, "params", params);
	return end(&w);
}

uar_err uar_mcp_write_notification(struct uar_buf *out, uar_str method, uar_str params)
{
	return uar_mcp_write_request(out, UAR_STR_NONE, method, params);
}

uar_err uar_mcp_write_result(struct uar_buf *out, uar_str id, uar_str result)
{
	struct uar_jw w = begin(out, id);

	uar_jw_raw(&w, "result", result);
	return end(&w);
}

uar_err uar_mcp_write_error(struct uar_buf *out, uar_str id, int code, uar_str message,
			    uar_str data)
{
	struct uar_jw w = begin(out, id.n ? id : UAR_STR("null"));

	uar_jw_obj(&w, "error");
	uar_jw_int(&w, "code", code);
	uar_jw_str(&w, "message", message);
	if (data.n)
		uar_jw_raw(&w, "data", data);
	uar_jw_close(&w);
	return end(&w);
}
