/* a2a_input.c - what a request of the public A2A protocol asks for, in both versions. */
#include "proto/a2a_wire.h"

#include "base/base64.h"
#include "base/sizes.h"
#include "json/limits.h"
#include "proto/attachment.h"
#include "proto/limits.h"

static const struct {
	const char *name;
	enum uar_a2a_op op;
	bool old;
} methods[] = {
	{ "SendMessage", UAR_A2A_SEND, false },
	{ "SendStreamingMessage", UAR_A2A_STREAM, false },
	{ "GetTask", UAR_A2A_GET, false },
	{ "ListTasks", UAR_A2A_LIST, false },
	{ "CancelTask", UAR_A2A_CANCEL, false },
	{ "SubscribeToTask", UAR_A2A_SUBSCRIBE, false },
	{ "GetExtendedAgentCard", UAR_A2A_CARD, false },
	{ "CreateTaskPushNotificationConfig", UAR_A2A_PUSH_SET, false },
	{ "GetTaskPushNotificationConfig", UAR_A2A_PUSH_GET, false },
	{ "ListTaskPushNotificationConfigs", UAR_A2A_PUSH_LIST, false },
	{ "DeleteTaskPushNotificationConfig", UAR_A2A_PUSH_DELETE, false },
	{ "message/send", UAR_A2A_SEND, true },
	{ "message/stream", UAR_A2A_STREAM, true },
	{ "tasks/get", UAR_A2A_GET, true },
	{ "tasks/list", UAR_A2A_LIST, true },
	{ "tasks/cancel", UAR_A2A_CANCEL, true },
	{ "tasks/resubscribe", UAR_A2A_SUBSCRIBE, true },
	{ "agent/getAuthenticatedExtendedCard", UAR_A2A_CARD, true },
	{ "tasks/pushNotificationConfig/set", UAR_A2A_PUSH_SET, true },
	{ "tasks/pushNotificationConfig/get", UAR_A2A_PUSH_GET, true },
	{ "tasks/pushNotificationConfig/list", UAR_A2A_PUSH_LIST, true },
	{ "tasks/pushNotificationConfig/delete", UAR_A2A_PUSH_DELETE, true },
};

enum uar_a2a_op uar_a2a_op_of(uar_str method, bool *out_old)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (uar_str_is(method, methods[i].name)) {
			*out_old = methods[i].old;
			return methods[i].op;
		}
	return UAR_A2A_OP_COUNT;
}

/* A patch version never appears on the wire, but "1.0.1" does no harm. */
uar_err uar_a2a_version(uar_str header, bool *out_old)
{
	if (!header.n || uar_str_is(header, "0.3") || uar_str_starts(header, UAR_STR("0.3."))) {
		*out_old = true;
		return UAR_OK;
	}
	if (!uar_str_is(header, "1.0") && !uar_str_starts(header, UAR_STR("1.0.")))
		return UAR_ENOTIMPL;
	*out_old = false;
	return UAR_OK;
}

const struct uar_json *uar_a2a_member(const struct uar_json *j, const char *camel,
				      const char *snake)
{
	const struct uar_json *m = uar_json_get(j, uar_str_c(camel));

	return m ? m : uar_json_get(j, uar_str_c(snake));
}

static bool is_there(const struct uar_json *member)
{
	return member && member->kind != UAR_JSON_NULL;
}

static uar_err refuse_kind(const char *where, const char *name, const char *kind,
			   struct uar_error *error)
{
	uar_error_where(error, "%s/%s", where, name);
	return uar_error_set(error, UAR_EINVALID, "%s is %s", name, kind);
}

uar_err uar_a2a_text(const struct uar_json *member, const char *where, const char *name,
		     uar_str *out, struct uar_error *error)
{
	if (is_there(member) && member->kind != UAR_JSON_STRING)
		return refuse_kind(where, name, "a text", error);
	if (is_there(member))
		*out = member->text;
	return UAR_OK;
}

uar_err uar_a2a_bool(const struct uar_json *member, const char *where, const char *name, bool *out,
		     struct uar_error *error)
{
	if (is_there(member) && member->kind != UAR_JSON_BOOL)
		return refuse_kind(where, name, "true or false", error);
	if (is_there(member))
		*out = member->b;
	return UAR_OK;
}

uar_err uar_a2a_int(const struct uar_json *member, const char *where, const char *name,
		    int64_t *out, struct uar_error *error)
{
	if (is_there(member) && member->kind != UAR_JSON_INT)
		return refuse_kind(where, name, "a whole number", error);
	if (is_there(member))
		*out = member->i;
	return UAR_OK;
}

static uar_str text_of(const struct uar_json *j, const char *camel, const char *snake)
{
	return uar_json_str(uar_a2a_member(j, camel, snake), UAR_STR(""));
}

/* --- parts ------------------------------------------------------------------------------------ */

struct parts {
	struct uar_a2a_input *in;
	struct uar_arena *arena;
	struct uar_buf text;
	struct uar_jw *w; /* attachments */
	size_t attached;
	struct uar_error *error;
};

static uar_err refuse_part(struct parts *p, size_t i, const char *why)
{
	uar_error_where(p->error, "/message/parts/%zu", i);
	return uar_error_set(p->error, UAR_EINVALID, "%s", why);
}

/* Bytes or an address: flat in 1.0, in `file` in 0.3. */
static uar_err take_file(struct parts *p, size_t i, const struct uar_json *part)
{
	const struct uar_json *file = uar_json_get(part, UAR_STR("file"));
	const struct uar_json *from = file ? file : part;
	uar_str media = file ? text_of(file, "mimeType", "mime_type")
			     : text_of(part, "mediaType", "media_type");
	uar_str data = file ? text_of(file, "bytes", "fileWithBytes") : text_of(part, "raw", "raw");
	uar_str url = file ? text_of(file, "uri", "fileWithUri") : text_of(part, "url", "url");
	struct uar_attachment a = { .name = text_of(from, file ? "name" : "filename", "name") };
	uar_str ignored;

	if (p->attached == UAR_LIMIT_A2A_ATTACHMENTS)
		return refuse_part(p, i, "a message has at most 64 files");
	if (data.n && uar_base64_decode(p->arena, data, &ignored))
		return refuse_part(p, i, "bytes are base64 with padding");
	a.image = uar_str_starts(media, UAR_STR("image/"));
	a.data = data;
	a.url = data.n ? UAR_STR("") : url;
	a.media_type = media.n ? media : UAR_STR("application/octet-stream");
	if (!uar_attachment_is_usable(&a))
		return refuse_part(p, i, "a file part has bytes in base64, or an http address");
	uar_attachment_put(p->w, &a);
	p->attached++;
	return UAR_OK;
}

static uar_err take_part(struct parts *p, size_t i, const struct uar_json *part)
{
	const struct uar_json *text = uar_json_get(part, UAR_STR("text"));
	const struct uar_json *data = uar_json_get(part, UAR_STR("data"));

	if (text && text->kind == UAR_JSON_STRING) {
		if (p->text.n)
			uar_buf_add_char(&p->text, '\n');
		uar_buf_add_str(&p->text, text->text);
		return p->text.err;
	}
	if (data) {
		/* 0.3 as ProtoJSON has it inside of itself once more. */
		const struct uar_json *inner = uar_json_get(data, UAR_STR("data"));

		p->in->data = inner && data->count == 1 ? inner : data;
		return UAR_OK;
	}
	if (uar_json_get(part, UAR_STR("file")) || uar_json_get(part, UAR_STR("raw")) ||
	    uar_json_get(part, UAR_STR("url")))
		return take_file(p, i, part);
	return refuse_part(p, i, "a part has text, data, raw or url");
}

static uar_err take_parts(struct parts *p, const struct uar_json *message)
{
	const struct uar_json *list = uar_a2a_member(message, "parts", "content");
	size_t i = 0;
	uar_err e = UAR_OK;

	if (!list || list->kind != UAR_JSON_ARRAY || !list->count) {
		uar_error_where(p->error, "/message/parts");
		return uar_error_set(p->error, UAR_EINVALID, "a message has at least one part");
	}
	for (const struct uar_json *part = list->first; part && !e; part = part->next)
		e = take_part(p, i++, part);
	return e;
}

/* Data without text is told to the agent as its JSON. */
static uar_err keep_text(struct parts *p)
{
	if (!p->text.n && p->in->data)
		uar_json_write(&p->text, p->in->data);
	if (!p->text.n && p->attached)
		uar_buf_add_str(&p->text, UAR_STR(UAR_ATTACHED));
	if (p->text.err)
		return p->text.err;
	if (!p->text.n)
		return refuse_part(p, 0, "a message has something to say");
	p->in->text = uar_arena_str(p->arena, uar_buf_str(&p->text));
	return p->in->text.p ? UAR_OK : UAR_ENOMEM;
}

static uar_err read_parts(const struct uar_json *message, struct uar_arena *arena,
			  struct uar_a2a_input *out, struct uar_error *error)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	struct parts p = { .in = out,
			   .arena = arena,
			   .text = uar_buf_make(UAR_LIMIT_JSON_BYTES),
			   .w = &w,
			   .error = error };
	uar_err e, written;

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "attachments");
	e = take_parts(&p, message);
	uar_jw_close(&w);
	uar_jw_close(&w);
	written = uar_jw_end(&w);
	if (!e)
		e = keep_text(&p);
	if (!e && p.attached) {
		e = written;
		out->client = e ? UAR_STR_NONE : uar_arena_str(arena, uar_buf_str(&b));
		if (!e && !out->client.p)
			e = UAR_ENOMEM;
	}
	uar_buf_fini(&p.text);
	uar_buf_fini(&b);
	return e;
}

/* --- the message ------------------------------------------------------------------------------ */

static uar_err take_id(const struct uar_json *member, const char *name, bool needed, uar_str *out,
		       struct uar_error *error)
{
	uar_err e = uar_a2a_text(member, "/message", name, out, error);

	if (e || (!out->n && !needed) || uar_str_is_id(*out))
		return e;
	uar_error_where(error, "/message/%s", name);
	return uar_error_set(error, UAR_EINVALID, "an id is 1 to %d visible ASCII characters",
			     UAR_LIMIT_ID_BYTES);
}

static uar_err check_role(const struct uar_json *message, struct uar_error *error)
{
	uar_str role = UAR_STR("");
	uar_err e = uar_a2a_text(uar_json_get(message, UAR_STR("role")), "/message", "role", &role,
				 error);

	if (e)
		return e;
	if (!role.n || uar_str_is(role, "user") || uar_str_is(role, "ROLE_USER"))
		return UAR_OK;
	uar_error_where(error, "/message/role");
	return uar_error_set(error, UAR_EINVALID, "a message to an agent has the role of the user");
}

/* In both versions a request that says nothing waits. */
static uar_err read_waiting(const struct uar_json *c, bool old, struct uar_a2a_input *out,
			    struct uar_error *error)
{
	const struct uar_json *at_once =
		uar_a2a_member(c, "returnImmediately", "return_immediately");
	bool leaves = false;
	uar_err e;

	out->blocking = true;
	if (old)
		return uar_a2a_bool(uar_json_get(c, UAR_STR("blocking")), "/configuration",
				    "blocking", &out->blocking, error);
	e = uar_a2a_bool(at_once, "/configuration", "returnImmediately", &leaves, error);
	out->blocking = !leaves;
	return e;
}

static uar_err read_configuration(const struct uar_json *c, bool old, struct uar_a2a_input *out,
				  struct uar_error *error)
{
	const struct uar_json *push =
		old ? uar_a2a_member(c, "pushNotificationConfig", "push_notification")
		    : uar_a2a_member(c, "taskPushNotificationConfig",
				     "task_push_notification_config");
	uar_err e = read_waiting(c, old, out, error);

	if (!e)
		e = uar_a2a_int(uar_a2a_member(c, "historyLength", "history_length"),
				"/configuration", "historyLength", &out->history_length, error);
	out->notify = is_there(push);
	if (e || !out->notify)
		return e;
	return uar_a2a_read_push(push, old,
				 old ? "/configuration/pushNotificationConfig"
				     : "/configuration/taskPushNotificationConfig",
				 &out->push, error);
}

uar_err uar_a2a_read_send(const struct uar_json *params, struct uar_arena *arena, bool old,
			  struct uar_a2a_input *out, struct uar_error *error)
{
	const struct uar_json *message = uar_json_get(params, UAR_STR("message"));
	struct uar_a2a_input in = { .history_length = -1 };
	uar_err e;

	if (!message || message->kind != UAR_JSON_OBJECT) {
		uar_error_where(error, "/message");
		return uar_error_set(error, UAR_EINVALID, "message is required");
	}
	e = read_configuration(uar_json_get(params, UAR_STR("configuration")), old, &in, error);
	if (!e)
		e = take_id(uar_a2a_member(message, "messageId", "message_id"), "messageId", true,
			    &in.message_id, error);
	if (!e)
		e = take_id(uar_a2a_member(message, "contextId", "context_id"), "contextId", false,
			    &in.context_id, error);
	if (!e)
		e = take_id(uar_a2a_member(message, "taskId", "task_id"), "taskId", false,
			    &in.task_id, error);
	if (!e)
		e = check_role(message, error);
	if (!e)
		e = read_parts(message, arena, &in, error);
	if (!e)
		*out = in;
	return e;
}
