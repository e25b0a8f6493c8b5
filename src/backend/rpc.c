/* rpc.c - JSON-RPC towards an agent. */
#include "backend/limits.h"
#include "backend/rpc.h"
#include "loop/limits.h"

void uab_rpc_init(struct uab_rpc *r, struct uab_map *m, bool versioned)
{
	*r = (struct uab_rpc){ .map = m, .versioned = versioned };
}

static void begin(struct uab_rpc *r)
{
	r->buf = uar_buf_make(UAR_LIMIT_AGENT_INPUT);
	r->w = uar_jw_begin(&r->buf);
	uar_jw_obj(&r->w, NULL);
	if (r->versioned)
		uar_jw_cstr(&r->w, "jsonrpc", "2.0");
}

int64_t uab_rpc_open(struct uab_rpc *r, const char *method, bool notify)
{
	begin(r);
	if (!notify)
		uar_jw_int(&r->w, "id", ++r->last_id);
	uar_jw_cstr(&r->w, "method", method);
	uar_jw_obj(&r->w, "params");
	return r->last_id;
}

void uab_rpc_reply(struct uab_rpc *r, const char *wire_id)
{
	begin(r);
	uar_jw_raw(&r->w, "id", uar_str_c(wire_id));
	uar_jw_obj(&r->w, "result");
}

void uab_rpc_close(struct uab_rpc *r)
{
	uar_jw_close(&r->w);
	uar_jw_close(&r->w);
	if (uar_jw_end(&r->w) == UAR_OK)
		uab_send(r->map, &r->buf);
	else
		uab_failed(r->map, "%s backend error: message too large", r->map->kind);
	uar_buf_fini(&r->buf);
}

void uab_rpc_refuse(struct uab_rpc *r, const char *wire_id)
{
	begin(r);
	uar_jw_raw(&r->w, "id", uar_str_c(wire_id));
	uar_jw_obj(&r->w, "error");
	uar_jw_int(&r->w, "code", -32601);
	uar_jw_cstr(&r->w, "message", "method not found");
	uab_rpc_close(r);
}

bool uab_rpc_wire_id(const struct uar_json *j, char *out, size_t size)
{
	const struct uar_json *id = uab_get(j, "id");
	struct uar_buf b = uar_buf_make(size - 1);
	bool ok;

	if (!id || (id->kind != UAR_JSON_INT && id->kind != UAR_JSON_STRING))
		return false;
	uar_json_write(&b, id);
	ok = !b.err && b.n > 0;
	uab_put(out, size, ok ? uar_buf_str(&b) : UAR_STR(""));
	uar_buf_fini(&b);
	return ok;
}

void uab_rpc_text(struct uab_rpc *r, uar_str text)
{
	uar_jw_obj(&r->w, NULL);
	uar_jw_cstr(&r->w, "type", "text");
	uar_jw_str(&r->w, "text", text);
}

bool uab_rpc_answers(const struct uar_json *j, int64_t *waiting)
{
	if (!*waiting || uar_json_int(uab_get(j, "id"), -1) != *waiting)
		return false;
	*waiting = 0;
	return true;
}

void uab_rpc_ask(struct uab_rpc *r, struct uab_ask *a, const struct uar_json *input,
		 const struct uar_json *extra)
{
	struct uar_buf in = uar_buf_make(UAR_LIMIT_AGENT_LINE), ex = in;

	if (input)
		uar_json_write(&in, input);
	if (extra)
		uar_json_write(&ex, extra);
	a->input = uar_buf_str(&in);
	a->extra = uar_buf_str(&ex);
	if (in.err || ex.err)
		uab_rpc_refuse(r, a->wire_id);
	else
		uab_ask(r->map, a);
	uar_buf_fini(&in);
	uar_buf_fini(&ex);
}
