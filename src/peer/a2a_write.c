/* a2a_write.c - the requests of a caller, in the words of each version and binding, and what an
 * error of the protocol means. */
#include "peer/a2a_int.h"

#include "loop/limits.h"

static const struct {
	const char *now, *before; /* before: NULL: there is none */
} methods[A2A_OP_COUNT] = {
	[A2A_SEND] = { "SendMessage", "message/send" },
	[A2A_STREAM] = { "SendStreamingMessage", "message/stream" },
	[A2A_GET] = { "GetTask", "tasks/get" },
	[A2A_LIST] = { "ListTasks", NULL },
	[A2A_FOLLOW] = { "SubscribeToTask", "tasks/resubscribe" },
	[A2A_CANCEL] = { "CancelTask", "tasks/cancel" },
};

static void put_part(struct uar_jw *w, bool old, const char *key, uar_str value)
{
	bool text = strcmp(key, "text") == 0;

	uar_jw_obj(w, NULL);
	if (old)
		uar_jw_cstr(w, "kind", key);
	if (text)
		uar_jw_str(w, key, value);
	else
		uar_jw_raw(w, key, value);
	uar_jw_close(w);
}

static void put_message(struct uar_jw *w, const struct uar_remote_message *m, bool old)
{
	uar_jw_obj(w, "message");
	if (old)
		uar_jw_cstr(w, "kind", "message");
	uar_jw_str(w, "messageId", m->message_id);
	uar_jw_cstr(w, "role", old ? "user" : "ROLE_USER");
	if (m->task_id.n)
		uar_jw_str(w, "taskId", m->task_id);
	if (m->context_id.n)
		uar_jw_str(w, "contextId", m->context_id);
	uar_jw_arr(w, "parts");
	if (m->text.n || !m->data.n)
		put_part(w, old, "text", m->text);
	if (m->data.n)
		put_part(w, old, "data", m->data);
	uar_jw_close(w);
	uar_jw_close(w);
}

static void put_configuration(struct uar_jw *w, bool old)
{
	uar_jw_obj(w, "configuration");
	if (old)
		uar_jw_bool(w, "blocking", false);
	else
		uar_jw_bool(w, "returnImmediately", true);
	uar_jw_close(w);
}

/* Members of the parameters, but the tenant. */
static void put_params(struct uar_jw *w, const struct a2a_card *card, const struct a2a_ask *ask)
{
	switch (ask->op) {
	case A2A_SEND:
	case A2A_STREAM:
		put_message(w, ask->message, card->old);
		put_configuration(w, card->old);
		return;
	case A2A_LIST:
		uar_jw_int(w, "pageSize", 50);
		uar_jw_str(w, "pageToken", ask->page);
		uar_jw_int(w, "historyLength", UAR_LIMIT_PEER_HISTORY);
		if (ask->since_us)
			uar_jw_time(w, "statusTimestampAfter", ask->since_us);
		return;
	case A2A_GET: uar_jw_int(w, "historyLength", UAR_LIMIT_PEER_HISTORY); break;
	case A2A_FOLLOW:
	case A2A_CANCEL:
	case A2A_OP_COUNT: break;
	}
	uar_jw_str(w, "id", ask->task_id);
}

static uar_err write_rpc(const struct a2a_card *card, const struct a2a_ask *ask,
			 struct a2a_request *r)
{
	const char *method = card->old ? methods[ask->op].before : methods[ask->op].now;
	struct uar_jw w = uar_jw_begin(&r->body);

	if (!method)
		return UAR_EINVALID;
	r->method = "POST";
	uar_buf_add_str(&r->url, card->url);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "jsonrpc", "2.0");
	uar_jw_u64(&w, "id", ask->id);
	uar_jw_cstr(&w, "method", method);
	uar_jw_obj(&w, "params");
	if (card->tenant.n)
		uar_jw_str(&w, "tenant", card->tenant);
	put_params(&w, card, ask);
	uar_jw_close(&w);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static void put_encoded(struct uar_buf *out, uar_str s)
{
	static const char digits[] = "0123456789ABCDEF";

	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
			     c == '-' || c == '_' || c == '.' || c == '~';

		if (!plain)
			uar_buf_add_char(out, '%');
		uar_buf_add_char(out, plain ? (char)c : digits[c >> 4]);
		if (!plain)
			uar_buf_add_char(out, digits[c & 15]);
	}
}

static void put_task(struct a2a_request *r, uar_str id, const char *verb)
{
	uar_buf_add_str(&r->url, UAR_STR("/tasks/"));
	put_encoded(&r->url, id);
	uar_buf_add_str(&r->url, uar_str_c(verb));
}

static uar_err write_send(const struct a2a_card *card, const struct a2a_ask *ask,
			  struct a2a_request *r)
{
	struct uar_jw w = uar_jw_begin(&r->body);

	uar_buf_add_str(&r->url,
			uar_str_c(ask->op == A2A_SEND ? "/message:send" : "/message:stream"));
	uar_jw_obj(&w, NULL);
	put_params(&w, card, ask);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static void put_list(struct a2a_request *r, const struct a2a_ask *ask)
{
	struct uar_buf since = uar_buf_make(64);
	struct uar_jw w = uar_jw_begin(&since);

	uar_buf_printf(&r->url, "/tasks?pageSize=50&historyLength=%d", UAR_LIMIT_PEER_HISTORY);
	uar_jw_time(&w, NULL, ask->since_us);
	if (uar_jw_end(&w) == UAR_OK && since.n > 2 && ask->since_us) {
		uar_buf_add_str(&r->url, UAR_STR("&statusTimestampAfter="));
		put_encoded(&r->url, uar_str_n(since.p + 1, since.n - 2));
	}
	if (ask->page.n) {
		uar_buf_add_str(&r->url, UAR_STR("&pageToken="));
		put_encoded(&r->url, ask->page);
	}
	uar_buf_fini(&since);
}

static uar_err write_rest(const struct a2a_card *card, const struct a2a_ask *ask,
			  struct a2a_request *r)
{
	r->method = ask->op == A2A_GET || ask->op == A2A_LIST ? "GET" : "POST";
	uar_buf_add_str(&r->url, card->url);
	if (card->tenant.n) {
		uar_buf_add_char(&r->url, '/');
		put_encoded(&r->url, card->tenant);
	}
	switch (ask->op) {
	case A2A_SEND:
	case A2A_STREAM: return write_send(card, ask, r);
	case A2A_LIST: put_list(r, ask); break;
	case A2A_GET:
		put_task(r, ask->task_id, "");
		uar_buf_printf(&r->url, "?historyLength=%d", UAR_LIMIT_PEER_HISTORY);
		break;
	case A2A_FOLLOW: put_task(r, ask->task_id, ":subscribe"); break;
	case A2A_CANCEL: put_task(r, ask->task_id, ":cancel"); break;
	case A2A_OP_COUNT: break;
	}
	return UAR_OK;
}

uar_err a2a_request_write(const struct a2a_card *card, const struct a2a_ask *ask,
			  struct a2a_request *out)
{
	struct a2a_request r = { .url = uar_buf_make(UAR_LIMIT_CLIENT_URL),
				 .body = uar_buf_make(2 * UAR_LIMIT_PEER_ANSWER) };
	uar_err e = card->rest ? write_rest(card, ask, &r) : write_rpc(card, ask, &r);

	if (!e)
		e = r.url.err ? r.url.err : r.body.err;
	if (e)
		a2a_request_fini(&r);
	else
		*out = r;
	return e;
}

void a2a_request_fini(struct a2a_request *r)
{
	uar_buf_fini(&r->url);
	uar_buf_fini(&r->body);
}

/* --- errors ---------------------------------------------------------------------------------- */

static const struct {
	int64_t code;
	const char *reason;
	enum uar_remote_how how;
} errors[] = {
	{ -32001, "TASK_NOT_FOUND", UAR_REMOTE_NOT_THERE },
	{ -32002, "TASK_NOT_CANCELABLE", UAR_REMOTE_UNSUPPORTED },
	{ -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED", UAR_REMOTE_UNSUPPORTED },
	{ -32004, "UNSUPPORTED_OPERATION", UAR_REMOTE_UNSUPPORTED },
	{ -32601, "METHOD_NOT_FOUND", UAR_REMOTE_UNSUPPORTED },
};

static uar_str reason_of(const struct uar_json *error)
{
	static const char *const lists[] = { "details", "data" };

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		const struct uar_json *list = uar_json_get(error, uar_str_c(lists[i]));

		for (const struct uar_json *d = uar_json_first(list); d; d = d->next) {
			uar_str reason = uar_json_text(d, "reason");

			if (reason.n)
				return reason;
		}
	}
	return UAR_STR("");
}

enum uar_remote_how a2a_error_of(const struct uar_json *error, const char **out_text,
				 struct uar_arena *arena)
{
	int64_t code = uar_json_int(uar_json_get(error, UAR_STR("code")), 0);
	uar_str reason = reason_of(error);
	uar_str text = uar_arena_printf(
		arena, "the peer refused: %.*s",
		UAR_FMT(uar_str_utf8_prefix(uar_json_text(error, "message"), 200)));

	*out_text = text.p ? text.p : "the peer refused";
	for (size_t i = 0; i < ARRAY_LEN(errors); i++)
		if (code == errors[i].code || uar_str_is(reason, errors[i].reason))
			return errors[i].how;
	return UAR_REMOTE_REFUSED;
}

enum uar_remote_how a2a_how_of_status(int status)
{
	if (status == 408 || status == 425 || status == 429 || status >= 500)
		return UAR_REMOTE_UNREACHABLE;
	return UAR_REMOTE_REFUSED;
}

enum uar_remote_how a2a_how_of_error(uar_err e)
{
	return e == UAR_EFORBIDDEN		       ? UAR_REMOTE_REFUSED
	       : e == UAR_ENOMEM		       ? UAR_REMOTE_NO_MEMORY
	       : e == UAR_EINVALID || e == UAR_ETOOBIG ? UAR_REMOTE_BROKEN
						       : UAR_REMOTE_UNREACHABLE;
}

const char *a2a_why_broken(uar_err e)
{
	return e == UAR_ETOOBIG	   ? "the peer delivers more than the limit"
	       : e == UAR_EINVALID ? "the answer of the peer violates the protocol"
				   : uar_err_text(e);
}
