/* a2a_error.c - errors and cards of the public A2A protocol. */
#include "proto/a2a_wire.h"

static const struct {
	int code, http;
	const char *status, *reason;
} errors[] = {
	[UAR_A2A_TASK_NOT_FOUND] = { -32001, 404, "NOT_FOUND", "TASK_NOT_FOUND" },
	[UAR_A2A_TASK_NOT_CANCELABLE] = { -32002, 400, "FAILED_PRECONDITION",
					  "TASK_NOT_CANCELABLE" },
	[UAR_A2A_PUSH_NOT_SUPPORTED] = { -32003, 400, "FAILED_PRECONDITION",
					 "PUSH_NOTIFICATION_NOT_SUPPORTED" },
	[UAR_A2A_UNSUPPORTED] = { -32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION" },
	[UAR_A2A_CONTENT_TYPE] = { -32005, 415, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED" },
	[UAR_A2A_VERSION] = { -32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED" },
	[UAR_A2A_PARSE] = { -32700, 400, "INVALID_ARGUMENT", "PARSE_ERROR" },
	[UAR_A2A_REQUEST] = { -32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST" },
	[UAR_A2A_METHOD] = { -32601, 404, "NOT_FOUND", "METHOD_NOT_FOUND" },
	[UAR_A2A_PARAMS] = { -32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS" },
	[UAR_A2A_FORBIDDEN] = { -32004, 403, "PERMISSION_DENIED", "UNSUPPORTED_OPERATION" },
	[UAR_A2A_BUSY] = { -32603, 503, "UNAVAILABLE", "UNAVAILABLE" },
	[UAR_A2A_INTERNAL] = { -32603, 500, "INTERNAL", "INTERNAL" },
};

enum uar_a2a_error uar_a2a_error_of(uar_err e)
{
	switch (e) {
	case UAR_ENOTFOUND: return UAR_A2A_TASK_NOT_FOUND;
	case UAR_EFORBIDDEN: return UAR_A2A_FORBIDDEN;
	case UAR_EMEDIATYPE: return UAR_A2A_CONTENT_TYPE;
	case UAR_ESTATE:
	case UAR_EWAITING:
	case UAR_ERESOLVED: return UAR_A2A_UNSUPPORTED;
	default: break;
	}
	if (uar_err_http(e) == 503 || uar_err_http(e) == 429)
		return UAR_A2A_BUSY;
	return uar_err_http(e) < 500 ? UAR_A2A_PARAMS : UAR_A2A_INTERNAL;
}

int uar_a2a_error_http(enum uar_a2a_error which)
{
	return errors[which].http;
}

static void put_details(struct uar_jw *w, const char *key, const struct uar_a2a_problem *p)
{
	uar_jw_arr(w, key);
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "@type", "type.googleapis.com/google.rpc.ErrorInfo");
	uar_jw_cstr(w, "reason", errors[p->which].reason);
	uar_jw_cstr(w, "domain", "a2a-protocol.org");
	uar_jw_close(w);
	if (p->where.n) {
		uar_jw_obj(w, NULL);
		uar_jw_cstr(w, "@type", "type.googleapis.com/google.rpc.BadRequest");
		uar_jw_arr(w, "fieldViolations");
		uar_jw_obj(w, NULL);
		uar_jw_str(w, "field", p->where);
		uar_jw_str(w, "description", p->text);
		uar_jw_close(w);
		uar_jw_close(w);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

void uar_a2a_problem(struct uar_buf *out, const struct uar_a2a_problem *p)
{
	struct uar_jw w = uar_jw_begin(out);
	uar_err e;

	uar_jw_obj(&w, NULL);
	if (p->rpc) {
		uar_jw_cstr(&w, "jsonrpc", "2.0");
		uar_jw_raw(&w, "id", p->rpc_id.n ? p->rpc_id : UAR_STR("null"));
	}
	uar_jw_obj(&w, "error");
	uar_jw_int(&w, "code", p->rpc ? errors[p->which].code : errors[p->which].http);
	if (!p->rpc)
		uar_jw_cstr(&w, "status", errors[p->which].status);
	uar_jw_str(&w, "message", p->text);
	put_details(&w, p->rpc ? "data" : "details", p);
	uar_jw_close(&w);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	out->err = out->err ? out->err : e;
}

void uar_a2a_early_problem(struct uar_buf *out, int status, const char *code,
			   const struct uar_error *error)
{
	struct uar_jw w = uar_jw_begin(out);
	uar_err e;

	uar_jw_obj(&w, NULL);
	uar_jw_obj(&w, "error");
	uar_jw_int(&w, "code", status);
	uar_jw_cstr(&w, "status",
		    status == 401   ? "UNAUTHENTICATED"
		    : status == 403 ? "PERMISSION_DENIED"
		    : status == 404 ? "NOT_FOUND"
		    : status >= 500 ? "UNAVAILABLE"
				    : "INVALID_ARGUMENT");
	uar_jw_cstr(&w, "message", uar_error_text(error));
	uar_jw_arr(&w, "details");
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "@type", "type.googleapis.com/google.rpc.ErrorInfo");
	uar_jw_cstr(&w, "reason", status == 415 ? "CONTENT_TYPE_NOT_SUPPORTED" : code);
	uar_jw_cstr(&w, "domain", "a2a-protocol.org");
	uar_jw_close(&w);
	uar_jw_close(&w);
	uar_jw_close(&w);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	out->err = out->err ? out->err : e;
}

void uar_a2a_early_rpc_problem(struct uar_buf *out, int status, const char *code,
			       const struct uar_error *error)
{
	struct uar_a2a_problem p = { .rpc = true, .text = uar_str_c(uar_error_text(error)) };

	if (status == 401 || status == 403 || status == 404) {
		uar_a2a_early_problem(out, status, code, error);
		return;
	}
	p.which = status == 415			   ? UAR_A2A_CONTENT_TYPE
		  : status >= 500 || status == 429 ? UAR_A2A_BUSY
						   : UAR_A2A_REQUEST;
	uar_a2a_problem(out, &p);
}

/* --- cards ------------------------------------------------------------------------------------ */

static void put_interface(struct uar_jw *w, uar_str url, const char *binding, const char *version)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "url", url);
	uar_jw_cstr(w, "protocolBinding", binding);
	uar_jw_cstr(w, "protocolVersion", version);
	uar_jw_close(w);
}

/* Clients of 0.3 look for their own members; those of 1.0 that are strict refuse them. */
static void put_old_members(struct uar_jw *w, const struct uar_a2a_card *card)
{
	uar_jw_cstr(w, "protocolVersion", "0.3.0");
	uar_jw_str(w, "url", card->url);
	uar_jw_cstr(w, "preferredTransport", "JSONRPC");
	uar_jw_arr(w, "additionalInterfaces");
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "url", card->url);
	uar_jw_cstr(w, "transport", "JSONRPC");
	uar_jw_close(w);
	uar_jw_close(w);
	uar_jw_bool(w, "supportsAuthenticatedExtendedCard", true);
	uar_jw_raw(w, "security", UAR_STR("[{\"bearer\":[]}]"));
}

static void put_security(struct uar_jw *w, bool old)
{
	uar_jw_obj(w, "securitySchemes");
	uar_jw_obj(w, "bearer");
	if (old) {
		uar_jw_cstr(w, "type", "http");
		uar_jw_cstr(w, "scheme", "bearer");
	}
	uar_jw_raw(w, "httpAuthSecurityScheme", UAR_STR("{\"scheme\":\"bearer\"}"));
	uar_jw_close(w);
	uar_jw_close(w);
	uar_jw_raw(w, "securityRequirements",
		   UAR_STR("[{\"schemes\":{\"bearer\":{\"list\":[]}}}]"));
}

static void put_skill(struct uar_jw *w, const struct uar_a2a_card *card)
{
	uar_jw_arr(w, "skills");
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "id", card->id);
	uar_jw_str(w, "name", card->name);
	uar_jw_str(w, "description", card->description);
	uar_jw_arr(w, "tags");
	for (const struct uar_json *t = uar_json_first(card->tags); t; t = t->next)
		uar_jw_tree(w, NULL, t);
	if (!uar_json_first(card->tags))
		uar_jw_str(w, NULL, card->id);
	uar_jw_close(w);
	uar_jw_close(w);
	uar_jw_close(w);
}

/* A caller that does not know whether a message has arrived may send it again. */
static void put_idempotence(struct uar_jw *w)
{
	uar_jw_arr(w, "extensions");
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "uri", "urn:uar:a2a:idempotent-send");
	uar_jw_cstr(w, "description", "A message whose messageId is known makes no second task.");
	uar_jw_bool(w, "required", false);
	uar_jw_close(w);
	uar_jw_close(w);
}

void uar_a2a_put_card(struct uar_jw *w, const char *key, const struct uar_a2a_card *card)
{
	uar_jw_obj(w, key);
	uar_jw_str(w, "name", card->name);
	uar_jw_str(w, "description", card->description);
	uar_jw_str(w, "version", card->version);
	uar_jw_arr(w, "supportedInterfaces");
	put_interface(w, card->url, "JSONRPC", "1.0");
	put_interface(w, card->url, "HTTP+JSON", "1.0");
	put_interface(w, card->url, "JSONRPC", "0.3");
	uar_jw_close(w);
	uar_jw_obj(w, "capabilities");
	uar_jw_bool(w, "streaming", true);
	uar_jw_bool(w, "pushNotifications", true);
	if (!card->old)
		uar_jw_bool(w, "extendedAgentCard", true);
	put_idempotence(w);
	uar_jw_close(w);
	uar_jw_raw(w, "defaultInputModes", UAR_STR("[\"text/plain\",\"application/json\"]"));
	uar_jw_raw(w, "defaultOutputModes", UAR_STR("[\"text/plain\",\"application/json\"]"));
	put_skill(w, card);
	put_security(w, card->old);
	if (card->old)
		put_old_members(w, card);
	uar_jw_close(w);
}
