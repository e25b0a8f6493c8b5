/* peer_tell.c - turns what the peer says into commands of the run, and answers into messages. */
#include "work/peer_int.h"

#include "base/header.h"
#include "core/limits.h"
#include "event/limits.h"
#include "json/limits.h"
#include "json/schema.h"
#include "work/tool_echo.h"

/* --- news ------------------------------------------------------------------------------------ */

static enum uar_peer_found found_of(enum uar_remote_state s)
{
	switch (s) {
	case UAR_REMOTE_UNKNOWN: return UAR_PEER_NOT_LOOKED;
	case UAR_REMOTE_SUBMITTED: return UAR_PEER_IDLE;
	case UAR_REMOTE_WORKING: return UAR_PEER_RUNNING;
	case UAR_REMOTE_INPUT_REQUIRED:
	case UAR_REMOTE_AUTH_REQUIRED: return UAR_PEER_WAITING;
	case UAR_REMOTE_COMPLETED:
	case UAR_REMOTE_FAILED:
	case UAR_REMOTE_CANCELED:
	case UAR_REMOTE_REJECTED: return UAR_PEER_UNDELIVERED;
	case UAR_REMOTE_STATE_COUNT: break;
	}
	return UAR_PEER_NOT_LOOKED;
}

static enum uar_peer_delivery delivery_of(const struct peer_worker *w)
{
	if (w->doing == PEER_FOLLOWS)
		return UAR_PEER_SUBSCRIPTION;
	return w->doing == PEER_SENDS && w->can.streams ? UAR_PEER_STREAMING : UAR_PEER_POLLING;
}

void rt_peer_step(struct peer_worker *w, enum uar_peer_step step, enum uar_peer_found found)
{
	struct uar_command c = { .kind = UAR_CMD_PEER };

	c.peer.step = step;
	c.peer.found = found;
	c.peer.number = w->ask.number;
	rt_send(w->base.run, &c);
}

/* Values of secrets that come back are hidden. */
static uar_str hidden(struct peer_worker *w, uar_str text, struct uar_buf *b)
{
	*b = uar_buf_make(4 * text.n + 64);
	return uar_secrets_hide(&w->used, text, b) && !b->err ? uar_buf_str(b) : text;
}

void rt_peer_lost(struct peer_worker *w, const char *why, int64_t wait_us)
{
	struct uar_command c = { .kind = UAR_CMD_PEER };
	struct uar_buf b;

	c.peer.step = UAR_PEER_LOST;
	c.peer.found = UAR_PEER_UNREACHABLE;
	c.peer.text = hidden(w, uar_str_c(why), &b);
	c.peer.wait_us = wait_us;
	w->doing = PEER_RESTS;
	rt_send(w->base.run, &c);
	uar_buf_fini(&b);
}

void rt_peer_fail(struct peer_worker *w, const char *code, const char *category, uar_str why)
{
	struct uar_command c = { .kind = UAR_CMD_FAIL };
	struct uar_buf b;

	c.fail = (struct uar_failure){ uar_str_c(code), hidden(w, why, &b), uar_str_c(category),
				       false };
	w->doing = PEER_RESTS;
	rt_send(w->base.run, &c);
	uar_buf_fini(&b);
}

void rt_peer_warn(struct peer_worker *w, const char *code, const char *why)
{
	struct uar_command c = { .kind = UAR_CMD_NOTE };
	struct uar_buf b;

	c.note = (struct uar_note){ .kind = UAR_NOTE_WARNING,
				    .code = uar_str_c(code),
				    .text = hidden(w, uar_str_c(why), &b) };
	rt_send(w->base.run, &c);
	uar_buf_fini(&b);
}

void rt_peer_missing(struct peer_worker *w)
{
	rt_peer_step(w, UAR_PEER_STATUS, UAR_PEER_MISSING);
	rt_peer_fail(w, "PEER_TASK_MISSING", "lost",
		     UAR_STR("the peer does not have the task any more"));
}

static void send_news(struct peer_worker *w, const struct uar_remote_view *v, bool link)
{
	struct uar_command c = { .kind = UAR_CMD_PEER };
	struct uar_buf b;

	c.peer = (struct uar_peer_news){
		.step = link ? UAR_PEER_LINKED : UAR_PEER_STATUS,
		.found = found_of(v->state),
		.delivery = delivery_of(w),
		.task_id = v->task_id,
		.context_id = v->context_id,
		.card_ref = uar_json_str(uar_json_pointer(rt_definition(w->base.run)->json,
							  UAR_STR("/runtime/peer/card_url")),
					 UAR_STR("")),
		.status = v->native,
		.text = hidden(w, v->said, &b),
	};
	rt_send(w->base.run, &c);
	uar_buf_fini(&b);
}

static bool says_new(const struct peer_worker *w, const struct uar_remote_view *v)
{
	return w->doubtful || v->state != w->seen.state || !uar_str_is(v->native, w->seen.native) ||
	       !uar_str_eq(v->said, w->seen.question);
}

/* The same of JSON, in the arena of what was told; NULL: there is no memory. */
static uar_str without_secrets(struct peer_worker *w, uar_str json)
{
	struct uar_buf b = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	uar_str out = UAR_STR_NONE;
	size_t count = 0;

	if (!w->used.values.n)
		return uar_arena_str(&w->seen.told, json);
	if (!rt_echo_hide(&w->used, json, &b, &count))
		out = uar_arena_str(&w->seen.told, uar_buf_str(&b));
	uar_buf_fini(&b);
	return out;
}

static bool keep_question(struct peer_worker *w, const struct uar_remote_view *v)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_JSON_BYTES);

	uar_arena_reset(&w->seen.told);
	w->seen.data = NULL;
	w->seen.question = uar_arena_str(&w->seen.told, v->said);
	if (v->data) {
		uar_str copy;

		uar_json_write(&text, v->data);
		copy = text.err ? UAR_STR_NONE : without_secrets(w, uar_buf_str(&text));
		if (!copy.p || uar_json_parse(copy, NULL, &w->seen.told, &w->seen.data, NULL))
			w->seen.data = NULL;
	}
	uar_buf_fini(&text);
	return w->seen.question.p != NULL;
}

/* --- text ------------------------------------------------------------------------------------ */

static bool goes_on(const struct peer_worker *w, const struct uar_remote_view *v)
{
	struct uar_sha256 told = w->said.hash;
	char before[UAR_SHA256_TEXT + 1], now[UAR_SHA256_TEXT + 1];

	if (w->said.unknown || v->text.n < w->said.bytes)
		return false;
	if (!w->said.bytes || v->text_made == w->said.made)
		return true;
	uar_sha256_end(&told, before);
	uar_sha256_hex(uar_str_n(v->text.p, w->said.bytes), now);
	return strcmp(before, now) == 0;
}

/* Replaced text is recorded as a whole. After PEER_AGAIN replacements only the last one is, when
 * the task is over. */
static bool is_held_back(const struct peer_worker *w, const struct uar_remote_view *v)
{
	return w->said.again >= UAR_LIMIT_PEER_AGAIN && w->said.bytes &&
	       v->text_made != w->said.made && !uar_remote_over(v->state);
}

static void begin_anew(struct peer_worker *w)
{
	unsigned again = w->said.again + 1;

	rt_peer_step(w, UAR_PEER_AGAIN, UAR_PEER_NOT_LOOKED);
	w->said = (struct peer_said){ .again = again };
	uar_sha256_init(&w->said.hash);
}

/* Text that may be the beginning of a secret is held back until more of it comes. */
static bool tell_more(struct peer_worker *w, uar_str more, bool is_last)
{
	struct uar_buf b = uar_buf_make(4 * more.n + 64);
	size_t told = more.n;
	uar_err e;

	if (is_last)
		uar_secrets_hide(&w->used, more, &b);
	else
		told = uar_secrets_hide_piece(&w->used, more, &b);
	e = b.err;
	if (!e) {
		uar_sha256_add(&w->said.hash, uar_str_n(more.p, told));
		w->said.bytes += told;
		rt_send_text(w->base.run, UAR_CMD_TEXT, uar_buf_str(&b));
	}
	uar_buf_fini(&b);
	return !e;
}

static bool tell_text(struct peer_worker *w, const struct uar_remote_view *v)
{
	if (!v->text.n || is_held_back(w, v))
		return true;
	if (!goes_on(w, v)) {
		begin_anew(w);
		w->news = true;
	}
	w->said.made = v->text_made;
	if (v->text.n <= w->said.bytes)
		return true;
	w->news = true;
	return tell_more(w, uar_str_from(v->text, w->said.bytes), uar_remote_over(v->state));
}

/* --- updates --------------------------------------------------------------------------------- */

static void artifacts_kept(void *ctx, uar_err e, uar_str json)
{
	struct peer_worker *w = ctx;

	w->load.keeping = NULL;
	uar_buf_clear(&w->made);
	uar_buf_add_str(&w->made, json);
	if (e || w->made.err) {
		rt_send_fail(w->base.run, e ? e : w->made.err, "execution",
			     "what the peer delivered cannot be kept");
		return;
	}
	w->kept = true;
	if (w->doing == PEER_RESTS)
		rt_peer_conclude(w);
}

static bool keep_artifacts(struct peer_worker *w, const struct uar_remote_view *v)
{
	struct peer_delivery d = { .view = v, .secrets = &w->used };
	uar_err e;

	rt_peer_artifacts_cancel(w->load.keeping);
	w->load.keeping = NULL;
	w->kept = false;
	e = rt_peer_artifacts_keep(w->base.run, &d, artifacts_kept, w, &w->load.keeping);
	if (e)
		rt_send_fail(w->base.run, e, "execution", uar_err_text(e));
	return !e;
}

static bool ids_fit(const struct uar_remote_view *v)
{
	return v->task_id.n <= UAR_LIMIT_PEER_ID && v->context_id.n <= UAR_LIMIT_PEER_ID;
}

bool rt_peer_tell(struct peer_worker *w, const struct uar_remote_view *v)
{
	bool link = v->task_id.n && !w->task_id[0];

	if (!ids_fit(v)) {
		rt_peer_fail(w, "PEER_INVALID", "peer",
			     UAR_STR("the ids that the peer gives are longer than 128 bytes"));
		return false;
	}
	if (link) {
		snprintf(w->task_id, sizeof w->task_id, "%.*s", UAR_FMT(v->task_id));
		snprintf(w->context_id, sizeof w->context_id, "%.*s", UAR_FMT(v->context_id));
	}
	if (link || says_new(w, v)) {
		send_news(w, v, link);
		w->news = true;
		w->doubtful = false;
		w->seen.state = v->state;
		snprintf(w->seen.native, sizeof w->seen.native, "%.*s", UAR_FMT(v->native));
		if (!keep_question(w, v)) {
			rt_send_fail(w->base.run, UAR_ENOMEM, "execution", "out of memory");
			return false;
		}
	}
	if (!tell_text(w, v)) {
		rt_send_fail(w->base.run, UAR_ENOMEM, "execution", "out of memory");
		return false;
	}
	if (!uar_remote_over(v->state))
		return true;
	w->seen.over = true;
	return keep_artifacts(w, v);
}

/* --- the end --------------------------------------------------------------------------------- */

void rt_peer_conclude(struct peer_worker *w)
{
	struct uar_command c = { .kind = UAR_CMD_PEER };
	struct uar_command finish = { .kind = UAR_CMD_FINISH };

	c.peer.step = UAR_PEER_MADE;
	c.peer.artifacts = uar_buf_str(&w->made);
	if (w->seen.state == UAR_REMOTE_COMPLETED && !w->said.bytes && !w->said.unknown &&
	    w->seen.question.n && !tell_more(w, w->seen.question, true)) {
		rt_send_fail(w->base.run, UAR_ENOMEM, "execution", "out of memory");
		return;
	}
	if (w->made.n > 2)
		rt_send(w->base.run, &c);
	if (w->seen.state == UAR_REMOTE_COMPLETED)
		rt_send(w->base.run, &finish);
	else if (w->seen.state == UAR_REMOTE_CANCELED)
		rt_peer_fail(w, "PEER_CANCELED", "cancelled",
			     w->seen.question.n ? w->seen.question
						: UAR_STR("the peer cancelled the task"));
	else if (w->seen.state == UAR_REMOTE_REJECTED)
		rt_peer_fail(w, "PEER_REJECTED", "rejected",
			     w->seen.question.n ? w->seen.question
						: UAR_STR("the peer rejected the task"));
	else
		rt_peer_fail(w, "PEER_FAILED", "peer",
			     w->seen.question.n ? w->seen.question
						: UAR_STR("the task of the peer failed"));
}

/* --- questions ------------------------------------------------------------------------------- */

static const char text_schema[] =
	"{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\",\"title\":\"Answer\","
	"\"minLength\":1}},\"required\":[\"text\"],\"additionalProperties\":false}";

/* The peer's own schema, when it has one that can be used. */
static bool write_schema(const struct peer_worker *w, struct uar_buf *out)
{
	const struct uar_json *s = uar_json_get(w->seen.data, UAR_STR("schema"));
	struct uar_schema *compiled = NULL;
	bool ok = s && s->kind == UAR_JSON_OBJECT && !uar_schema_create(s, NULL, &compiled, NULL);

	uar_schema_destroy(compiled);
	if (ok)
		uar_json_write(out, s);
	return ok && !out->err;
}

static uar_str one_line(struct peer_worker *w, uar_str text)
{
	uar_str line =
		uar_arena_str(&w->seen.told, uar_str_utf8_prefix(text, UAR_LIMIT_PEER_PROMPT));

	for (size_t i = 0; i < line.n; i++)
		if ((unsigned char)line.p[i] < 0x20 || line.p[i] == 0x7f)
			((char *)line.p)[i] = ' ';
	return line;
}

static void send_ask(struct peer_worker *w, struct uar_ask *a)
{
	struct uar_command c = { .kind = UAR_CMD_ASK };

	a->number = uar_run_rare(rt_state(w->base.run))->actions.count + 1;
	a->verdict = UAR_VERDICT_ASK;
	a->input_bytes = (int64_t)a->input.n;
	a->timeout_us = rt_work(w->base.run)->o.action_timeout_us;
	c.ask = *a;
	w->doing = PEER_RESTS;
	rt_send(w->base.run, &c);
}

void rt_peer_ask(struct peer_worker *w)
{
	bool auth = w->seen.state == UAR_REMOTE_AUTH_REQUIRED;
	struct uar_buf schema = uar_buf_make(UAR_LIMIT_ASK_SCHEMA);
	bool own = !auth && write_schema(w, &schema);
	struct uar_buf shown;
	struct uar_ask a = {
		.type = auth ? UAR_ACTION_PERMISSION : UAR_ACTION_INPUT,
		.kind = uar_str_c(auth ? UAR_PEER_ASK_AUTH : UAR_PEER_ASK_INPUT),
		.tool_name = UAR_STR("peer"),
		.input = own ? UAR_STR("{\"schema\":true}") : UAR_STR("{\"schema\":false}"),
		.schema = auth	? UAR_STR("")
			  : own ? uar_buf_str(&schema)
				: uar_str_c(text_schema),
		.offered = auth ? UAR_VERDICT_BIT(ALLOW) | UAR_VERDICT_BIT(DENY) : 0,
	};

	a.prompt = one_line(w, hidden(w, w->seen.question, &shown));
	if (!a.prompt.n)
		a.prompt = auth ? UAR_STR("The peer needs an authorization")
				: UAR_STR("The peer needs an input");
	send_ask(w, &a);
	uar_buf_fini(&shown);
	uar_buf_fini(&schema);
}

void rt_peer_ask_again(struct peer_worker *w)
{
	struct uar_ask a = {
		.type = UAR_ACTION_PERMISSION,
		.kind = UAR_STR(UAR_PEER_ASK_AGAIN),
		.tool_name = UAR_STR("peer"),
		.input = UAR_STR("{}"),
		.prompt = UAR_STR("It is not known whether the peer has got the message, and "
				  "the peer cannot tell. Send it again?"),
		.offered = UAR_VERDICT_BIT(ALLOW) | UAR_VERDICT_BIT(DENY),
	};

	rt_peer_step(w, UAR_PEER_LOOKED, UAR_PEER_NOT_LOOKED);
	send_ask(w, &a);
}

/* --- messages to the peer -------------------------------------------------------------------- */

static bool is_given(const struct peer_answers *a)
{
	return uar_str_is(a->decision, "submit") || uar_str_is(a->decision, "allow");
}

/* A text if the peer asked without a schema, its data if with one, else the decision as both. */
static uar_err write_answer(const struct peer_answers *a, struct uar_buf *text,
			    struct uar_buf *data)
{
	struct uar_jw w = uar_jw_begin(data);
	const struct uar_json *values = NULL;
	struct uar_arena arena = { 0 };
	uar_err e = UAR_OK;

	if (is_given(a) && !a->auth && a->values.n) {
		e = uar_json_parse(a->values, NULL, &arena, &values, NULL);
		if (!e && a->text)
			uar_buf_add_str(text, uar_json_text(values, "text"));
		else
			uar_buf_add_str(data, a->values);
		uar_arena_fini(&arena);
		return e ? e : text->err ? text->err : data->err;
	}
	uar_buf_add_str(text, a->decision);
	if (a->reason.n)
		uar_buf_printf(text, ": %.*s", UAR_FMT(a->reason));
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "decision", a->decision);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	return e ? e : text->err;
}

uar_err rt_peer_answer_with(struct peer_worker *w, const struct peer_answers *a)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_HTTP_BODY);
	struct uar_buf data = uar_buf_make(UAR_LIMIT_HTTP_BODY);
	uar_err e = write_answer(a, &text, &data);

	if (!e) {
		w->message.text = uar_arena_str(&w->arena, uar_buf_str(&text));
		w->message.data = uar_arena_str(&w->arena, uar_buf_str(&data));
		e = w->message.text.p && w->message.data.p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(&text);
	uar_buf_fini(&data);
	return e;
}

/* Credentials go to the address that the card names. */
uar_err rt_peer_headers(struct peer_worker *w, uar_str url, struct uar_error *error)
{
	struct live_run *r = w->base.run;
	const struct uar_json *list =
		uar_json_pointer(rt_definition(r)->json, UAR_STR("/runtime/peer/headers"));
	struct uar_secrets_ask ask = { .secrets = rt_work(r)->o.secrets,
				       .agent = rt_state(r)->what.agent_id,
				       .url = url,
				       .tenant = rt_agg_session(rt_agg(r))->owner.tenant,
				       .only_granted = !rt_definition_is_from_file(r) };
	const char *lines[UAR_LIMIT_PEER_HEADERS + 1];
	struct uar_arena arena = { 0 };
	size_t n = 0;
	uar_err e = UAR_OK;

	for (const struct uar_json *h = uar_json_first(list); h && !e && n < UAR_LIMIT_PEER_HEADERS;
	     h = h->next) {
		struct uar_buf line = uar_buf_make(UAR_LIMIT_PEER_HEADER);

		uar_buf_printf(&line, "%.*s: ", UAR_FMT(h->key));
		if (uar_header_is_of_connection(h->key)) /* of an older definition */
			e = uar_error_set(error, UAR_EINVALID, UAR_HEADER_OF_CONNECTION);
		if (!e)
			e = uar_secrets_expand(&ask, h->text, &line, &w->used, error);
		if (!e && (line.err || strpbrk(line.p, "\r\n")))
			e = uar_error_set(error, UAR_EINVALID,
					  "a header of the peer has a line "
					  "end, or is too long");
		lines[n] = e ? NULL : uar_arena_str(&arena, uar_buf_str(&line)).p;
		if (!e && !lines[n++])
			e = UAR_ENOMEM;
		if (line.p)
			explicit_bzero(line.p, line.cap);
		uar_buf_fini(&line);
	}
	lines[n] = NULL;
	if (!e)
		e = rt_work(r)->o.remotes->ops->set_headers(w->remote, lines);
	uar_arena_fini(&arena);
	return e;
}
