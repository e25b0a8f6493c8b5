/* agui_input.c - reads a RunAgentInput. */
#include "proto/agui_int.h"
#include "json/limits.h"
#include "proto/limits.h"

static const struct uar_json *find_member(const struct uar_json *j, const char *key)
{
	const struct uar_json *m = uar_json_get(j, uar_str_c(key));

	return m && m->kind == UAR_JSON_NULL ? NULL : m;
}

static uar_err refuse(struct uar_error *error, const char *where, const char *why)
{
	uar_error_where(error, "%s", where);
	return uar_error_set(error, UAR_EINVALID, "%s", why);
}

bool uar_agui_is_input(const struct uar_json *body)
{
	return find_member(body, "messages") && !find_member(body, "inputs");
}

/* --- ids ------------------------------------------------------------------------------ */

static uar_err read_id(const struct uar_json *body, const char *key, uar_str *out,
		       struct uar_error *error)
{
	const struct uar_json *j = find_member(body, key);

	if (!j)
		return UAR_OK;
	*out = uar_json_str(j, UAR_STR(""));
	if (uar_str_is_id(*out) && out->n <= UAR_LIMIT_AGUI_ID)
		return UAR_OK;
	uar_error_where(error, "/%s", key);
	return uar_error_set(error, UAR_EINVALID,
			     "%s: a string of 1 to %d visible ASCII characters", key,
			     UAR_LIMIT_AGUI_ID);
}

/* A newer minor version is as good; another major one is another protocol. */
static uar_err read_version(const struct uar_json *body, bool *out_old, struct uar_error *error)
{
	const struct uar_json *j = find_member(body, "protocolVersion");
	uar_str version = uar_json_str(j, UAR_STR(""));

	*out_old = !j || uar_str_starts(version, UAR_STR("0."));
	if (*out_old || uar_str_starts(version, UAR_STR("1.")))
		return UAR_OK;
	return refuse(error, "/protocolVersion", "this server speaks AG-UI 1.x and 0.x");
}

/* --- messages ---------------------------------------------------------------------------- */

static const struct uar_json *last_of_user(const struct uar_json *messages)
{
	const struct uar_json *last = NULL;

	for (const struct uar_json *m = messages->count ? messages->first : NULL; m; m = m->next)
		if (uar_str_is(uar_json_str(find_member(m, "role"), UAR_STR("")), "user"))
			last = m;
	return last;
}

/* A string, or the text parts of a list with line ends between them. */
uar_err agui_content_text(const struct uar_json *message, struct uar_arena *arena, uar_str *out)
{
	const struct uar_json *content = find_member(message, "content");
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);

	*out = uar_json_str(content, UAR_STR(""));
	if (!content || content->kind != UAR_JSON_ARRAY)
		return UAR_OK;
	for (const struct uar_json *p = content->count ? content->first : NULL; p; p = p->next) {
		uar_str text = uar_json_str(find_member(p, "text"), UAR_STR(""));

		if (!text.n ||
		    !uar_str_is(uar_json_str(find_member(p, "type"), UAR_STR("")), "text"))
			continue;
		if (b.n)
			uar_buf_add_char(&b, '\n');
		uar_buf_add_str(&b, text);
	}
	*out = b.err ? UAR_STR_NONE : uar_arena_str(arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	return out->p ? UAR_OK : UAR_ENOMEM;
}

/* The messages up to `last` as the client has them; members without a value are left
 * out, which strict clients refuse. */
static uar_err keep_history(const struct uar_json *messages, const struct uar_json *last,
			    struct uar_arena *arena, uar_str *out)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);

	for (const struct uar_json *m = messages->count ? messages->first : NULL; m; m = m->next) {
		struct uar_jw w;

		if (b.n)
			uar_buf_add_char(&b, ',');
		w = uar_jw_begin(&b);
		uar_jw_obj(&w, NULL);
		for (const struct uar_json *v = m->first; v; v = v->next) {
			if (v->kind == UAR_JSON_NULL)
				continue;
			uar_jw_key(&w, v->key);
			uar_jw_tree(&w, NULL, v);
		}
		uar_jw_close(&w);
		if (uar_jw_end(&w) || m == last)
			break;
	}
	*out = b.err ? UAR_STR_NONE : uar_arena_str(arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	return out->p ? UAR_OK : UAR_ENOMEM;
}

static uar_err check_messages(const struct uar_json *messages, struct uar_error *error)
{
	if (!messages || messages->kind != UAR_JSON_ARRAY)
		return refuse(error, "/messages", "messages: a list");
	for (const struct uar_json *m = messages->count ? messages->first : NULL; m; m = m->next)
		if (m->kind != UAR_JSON_OBJECT || !m->count)
			return refuse(error, "/messages", "each message is an object with a role");
	return UAR_OK;
}

/* What the user did with an interface that the agent has made. */
static const struct uar_json *find_action(const struct uar_json *body)
{
	const struct uar_json *forwarded = find_member(body, "forwardedProps");
	const struct uar_json *action =
		find_member(find_member(forwarded, "a2uiAction"), "userAction");

	return action && action->kind == UAR_JSON_OBJECT ? action : NULL;
}

/* It is the message of the run, in words and values. */
static uar_err read_action(const struct uar_json *action, const struct uar_json *messages,
			   struct uar_arena *arena, struct uar_agui_input *out)
{
	const struct uar_json *context = find_member(action, "context");
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_str name = uar_json_str(find_member(action, "name"), UAR_STR(""));
	uar_str surface = uar_json_str(find_member(action, "surfaceId"), UAR_STR(""));

	uar_buf_printf(&b, "The user chose \"%.*s\" on the interface \"%.*s\".", UAR_FMT(name),
		       UAR_FMT(surface));
	if (context && context->kind == UAR_JSON_OBJECT && context->count) {
		uar_buf_add_str(&b, UAR_STR("\n"));
		uar_json_write(&b, context);
	}
	out->message = b.err ? UAR_STR_NONE : uar_arena_str(arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	return out->message.p ? keep_history(messages, NULL, arena, &out->history) : UAR_ENOMEM;
}

static uar_err read_messages(const struct uar_json *body, struct uar_arena *arena,
			     struct uar_agui_input *out, struct uar_error *error)
{
	const struct uar_json *messages = find_member(body, "messages");
	const struct uar_json *last;
	uar_err e = check_messages(messages, error);

	if (e)
		return e;
	if (find_action(body))
		return read_action(find_action(body), messages, arena, out);
	last = last_of_user(messages);
	e = agui_content_text(last, arena, &out->message);
	return e ? e : keep_history(messages, last, arena, &out->history);
}

/* --- the rest ------------------------------------------------------------------------------ */

static uar_err keep_state(const struct uar_json *state, struct uar_arena *arena, uar_str *out)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);

	if (!state)
		return UAR_OK;
	uar_json_write(&b, state);
	*out = b.err ? UAR_STR_NONE : uar_arena_str(arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	return out->p ? UAR_OK : UAR_ENOMEM;
}

static void read_forwarded(const struct uar_json *body, struct uar_agui_input *out)
{
	const struct uar_json *forwarded = find_member(body, "forwardedProps");
	const struct uar_json *inputs = find_member(forwarded, "inputs");

	out->agent_id = uar_json_str(find_member(forwarded, "agent_id"), UAR_STR(""));
	if (inputs && inputs->kind == UAR_JSON_OBJECT)
		out->inputs = inputs;
}

uar_err uar_agui_input_read(const struct uar_json *body, struct uar_arena *arena,
			    struct uar_agui_input *out, struct uar_error *error)
{
	const struct uar_json *resume;
	uar_err e = UAR_OK;

	*out = (struct uar_agui_input){ 0 };
	if (!body || body->kind != UAR_JSON_OBJECT)
		return refuse(error, "", "a RunAgentInput is an object");
	e = read_id(body, "threadId", &out->thread_id, error);
	if (!e)
		e = read_id(body, "runId", &out->run_id, error);
	if (!e)
		e = read_version(body, &out->old_peer, error);
	if (!e)
		e = read_messages(body, arena, out, error);
	if (!e)
		e = uar_agui_client_read(body, arena, out, error);
	if (e)
		return e;
	read_forwarded(body, out);
	resume = find_member(body, "resume");
	if (resume && resume->kind == UAR_JSON_ARRAY && resume->count)
		out->resume = resume;
	return keep_state(find_member(body, "state"), arena, &out->state);
}
