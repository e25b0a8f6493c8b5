/* a2a.c - the reader and the writer of messages between agents.
 *
 * Strict where a mistake would be lost otherwise: an unknown member of the message or of
 * its capabilities is refused. Open where agents talk to each other: the payload has a
 * type and whatever else, an attachment may say more than we know of. */
#include "proto/a2a.h"

#include "base/base64.h"
#include "event/limits.h"
#include "event/peer.h"
#include "json/limits.h"
#include "proto/limits.h"

struct capabilities {
	const struct uar_json *tools, *models;
};

struct raw {
	struct uar_a2a_message m;
	const struct uar_json *capabilities;
};

static const struct uar_json_field fields[] = {
	{ "message_id", UAR_FIELD_ID, true, offsetof(struct raw, m.message_id) },
	{ "from_agent", UAR_FIELD_ID, true, offsetof(struct raw, m.from_agent) },
	{ "to_agent", UAR_FIELD_ID, true, offsetof(struct raw, m.to_agent) },
	{ "conversation_id", UAR_FIELD_ID, true, offsetof(struct raw, m.conversation_id) },
	{ "payload", UAR_FIELD_OBJECT, true, offsetof(struct raw, m.payload) },
	{ "capabilities", UAR_FIELD_OBJECT, true, offsetof(struct raw, capabilities) },
	{ "attachments", UAR_FIELD_ARRAY, false, offsetof(struct raw, m.attachments) },
};

static const struct uar_json_field capability_fields[] = {
	{ "tools", UAR_FIELD_ARRAY, false, offsetof(struct capabilities, tools) },
	{ "models", UAR_FIELD_ARRAY, false, offsetof(struct capabilities, models) },
};

/* The members of an attachment that the public protocol knows, too. */
struct attachment {
	uar_str filename, media_type, url, data;
};

static const struct uar_json_field attachment_fields[] = {
	{ "filename", UAR_FIELD_STR, false, offsetof(struct attachment, filename) },
	{ "media_type", UAR_FIELD_STR, false, offsetof(struct attachment, media_type) },
	{ "url", UAR_FIELD_STR, false, offsetof(struct attachment, url) },
	{ "data", UAR_FIELD_STR, false, offsetof(struct attachment, data) },
};

struct payload {
	uar_str type, run_id, reason;
};

static const struct uar_json_field payload_fields[] = {
	{ "type", UAR_FIELD_STR, true, offsetof(struct payload, type) },
};

static const struct uar_json_field cancel_fields[] = {
	{ "run_id", UAR_FIELD_ID, true, offsetof(struct payload, run_id) },
	{ "reason", UAR_FIELD_STR, false, offsetof(struct payload, reason) },
};

/* What is wrong inside a member is named from the message's root. */
static uar_err inside(struct uar_error *error, uar_err e, const char *lead)
{
	char where[UAR_LIMIT_ERROR_WHERE];

	if (e && error) {
		memcpy(where, error->where, sizeof where);
		uar_error_where(error, "%s%s", lead, where);
	}
	return e;
}

/* --- the recipient ----------------------------------------------------------------------- */

static uar_err split_recipient(struct uar_a2a_message *m, struct uar_error *error)
{
	size_t at = uar_str_find(m->to_agent, '@');

	m->agent = uar_str_n(m->to_agent.p, at);
	m->peer = uar_str_from(m->to_agent, at + 1);
	if (m->agent.n && m->agent.n <= UAR_LIMIT_A2A_AGENT &&
	    (at == m->to_agent.n || uar_peer_name_valid(m->peer)))
		return UAR_OK;
	uar_error_where(error, "/to_agent");
	return uar_error_set(error, UAR_EINVALID,
			     "to_agent: an agent of at most %d bytes, or agent@peer",
			     UAR_LIMIT_A2A_AGENT);
}

/* --- its members --------------------------------------------------------------------------- */

static uar_err check_names(const struct uar_json *list, const char *name, struct uar_error *error)
{
	size_t i = 0;

	for (const struct uar_json *s = list ? list->first : NULL; s; s = s->next, i++)
		if (s->kind != UAR_JSON_STRING || !s->text.n) {
			uar_error_where(error, "/capabilities/%s/%zu", name, i);
			return uar_error_set(error, UAR_EINVALID, "must be a string, not empty");
		}
	return UAR_OK;
}

static uar_err read_capabilities(const struct uar_json *j, struct uar_a2a_message *m,
				 struct uar_error *error)
{
	struct capabilities c = { 0 };
	uar_err e =
		uar_json_read(j, capability_fields, ARRAY_LEN(capability_fields), true, &c, error);

	if (e)
		return inside(error, e, "/capabilities");
	e = check_names(c.tools, "tools", error);
	if (!e)
		e = check_names(c.models, "models", error);
	m->tools = c.tools;
	m->models = c.models;
	return e;
}

static uar_err check_attachment(const struct uar_json *j, struct uar_error *error)
{
	struct attachment a = { .data = UAR_STR_NONE };
	struct uar_arena arena = { 0 };
	uar_str ignored;
	uar_err e =
		uar_json_read(j, attachment_fields, ARRAY_LEN(attachment_fields), false, &a, error);

	if (!e && a.data.n) {
		e = uar_base64_decode(&arena, a.data, &ignored);
		uar_arena_fini(&arena);
		if (e == UAR_EINVALID) {
			uar_error_where(error, "/data");
			uar_error_set(error, e, "data must be base64");
		}
	}
	return e;
}

static uar_err check_attachments(const struct uar_json *list, struct uar_error *error)
{
	size_t i = 0;

	if (list && list->count > UAR_LIMIT_A2A_ATTACHMENTS) {
		uar_error_where(error, "/attachments");
		return uar_error_set(error, UAR_ETOOBIG, "a message has at most %d attachments",
				     UAR_LIMIT_A2A_ATTACHMENTS);
	}
	for (const struct uar_json *a = list ? list->first : NULL; a; a = a->next, i++) {
		uar_err e = check_attachment(a, error);
		char lead[40];

		snprintf(lead, sizeof lead, "/attachments/%zu", i);
		if (e)
			return inside(error, e, lead);
	}
	return UAR_OK;
}

/* Only the type of a payload is looked at, but for the one that asks this runtime. */
static uar_err read_payload(struct uar_a2a_message *m, struct uar_error *error)
{
	struct payload p = { .type = UAR_STR_NONE };
	uar_err e = uar_json_read(m->payload, payload_fields, ARRAY_LEN(payload_fields), false, &p,
				  error);

	if (!e && !p.type.n) {
		uar_error_where(error, "/type");
		e = uar_error_set(error, UAR_EINVALID, "type must not be empty");
	}
	if (!e && uar_str_is(p.type, "cancel"))
		e = uar_json_read(m->payload, cancel_fields, ARRAY_LEN(cancel_fields), false, &p,
				  error);
	m->type = p.type;
	m->cancel_run = p.run_id;
	m->cancel_reason = p.reason;
	return inside(error, e, "/payload");
}

uar_err uar_a2a_read(const struct uar_json *j, struct uar_a2a_message *out, struct uar_error *error)
{
	struct raw raw = { .capabilities = NULL };
	uar_err e = uar_json_read(j, fields, ARRAY_LEN(fields), true, &raw, error);

	if (!e)
		e = split_recipient(&raw.m, error);
	if (!e)
		e = read_payload(&raw.m, error);
	if (!e)
		e = read_capabilities(raw.capabilities, &raw.m, error);
	if (!e)
		e = check_attachments(raw.m.attachments, error);
	if (!e)
		*out = raw.m;
	return e;
}

/* --- out again ------------------------------------------------------------------------------- */

static void put_list(struct uar_jw *w, const char *key, const struct uar_json *list)
{
	if (list) {
		uar_jw_tree(w, key, list);
		return;
	}
	uar_jw_arr(w, key);
	uar_jw_close(w);
}

void uar_a2a_write(struct uar_jw *w, const char *key, const struct uar_a2a_message *m)
{
	uar_jw_obj(w, key);
	uar_jw_str(w, "message_id", m->message_id);
	uar_jw_str(w, "from_agent", m->from_agent);
	uar_jw_str(w, "to_agent", m->to_agent);
	uar_jw_str(w, "conversation_id", m->conversation_id);
	uar_jw_tree(w, "payload", m->payload);
	uar_jw_obj(w, "capabilities");
	put_list(w, "tools", m->tools);
	put_list(w, "models", m->models);
	uar_jw_close(w);
	if (m->attachments)
		uar_jw_tree(w, "attachments", m->attachments);
	uar_jw_close(w);
}

uar_err uar_a2a_fingerprint(const struct uar_a2a_message *m, char out[UAR_SHA256_TEXT + 1])
{
	const uar_str ids[] = { m->message_id, m->from_agent, m->to_agent, m->conversation_id };
	const struct uar_json *trees[] = { m->payload, m->tools, m->models, m->attachments };
	struct uar_buf b = uar_buf_make(2 * UAR_LIMIT_JSON_BYTES);
	uar_err e;

	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		uar_buf_add_str(&b, ids[i]);
		uar_buf_add_char(&b, 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(trees); i++) {
		if (trees[i] && trees[i]->count) /* none are as good as an empty list */
			uar_json_write_canonical(&b, trees[i]);
		uar_buf_add_char(&b, 0);
	}
	e = b.err;
	if (!e)
		uar_sha256_hex(uar_buf_str(&b), out);
	uar_buf_fini(&b);
	return e;
}

uar_err uar_a2a_preview(const struct uar_a2a_message *m, struct uar_buf *out)
{
	uar_str text = uar_json_text(m->payload, "text");
	struct uar_buf whole = uar_buf_make(2 * UAR_LIMIT_JSON_BYTES);
	uar_err e = UAR_OK;

	if (!text.n) {
		uar_json_write(&whole, m->payload);
		text = uar_buf_str(&whole);
		e = whole.err;
	}
	if (!e)
		uar_buf_add_str(out, uar_str_utf8_prefix(text, UAR_LIMIT_A2A_PREVIEW));
	uar_buf_fini(&whole);
	return e ? e : out->err;
}

/* --- from the log ---------------------------------------------------------------------- */

static bool has(const struct uar_json *payload, const char *key, const char *value)
{
	return uar_str_is(uar_json_text(payload, key), value);
}

uar_err uar_a2a_stored_read(const struct uar_event *ev, struct uar_arena *arena,
			    struct uar_a2a_stored *out)
{
	const struct uar_json *payload, *content;
	struct uar_a2a_stored s = { UAR_STR_NONE, UAR_STR_NONE };
	uar_err e;

	if (ev->cls != UAR_EV_CHANNEL_MESSAGE)
		return UAR_ESKIP;
	e = uar_event_payload(ev, arena, &payload, NULL);
	if (e)
		return e;
	if (!has(payload, "kind", "a2a") || !has(payload, "direction", "in"))
		return UAR_ESKIP;
	content = uar_json_get(payload, UAR_STR("content"));
	if (content)
		s.message = content->text;
	else
		e = uar_event_blob(ev, "content_ref", arena, &s.blob);
	if (!e && !content && !s.blob.n)
		e = UAR_ECORRUPT;
	if (!e)
		*out = s;
	return e;
}
