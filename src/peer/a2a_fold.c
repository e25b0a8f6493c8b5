/* a2a_fold.c - folds the snapshots and updates of a remote task into its state, in the words of
 * A2A 1.0 and 0.3. */
#include "peer/a2a_int.h"

#include <stdio.h>

#include "base/base64.h"

static const struct uar_json *get(const struct uar_json *j, const char *key)
{
	return uar_json_get(j, uar_str_c(key));
}

void a2a_task_init(struct a2a_task *t)
{
	memset(t, 0, sizeof *t);
	uar_arena_init(&t->arena, UAR_LIMIT_PEER_TASK);
	uar_arena_init(&t->status, UAR_LIMIT_PEER_TASK);
	t->text = uar_buf_make(UAR_LIMIT_PEER_TEXT);
	t->native = t->said = t->task_id = t->context_id = UAR_STR("");
}

static void drop_artifacts(struct a2a_task *t)
{
	for (size_t i = 0; i < t->artifact_count; i++)
		uar_buf_fini(&t->artifacts[i].text);
	t->artifact_count = t->part_count = 0;
	t->is_behind = false;
}

void a2a_task_fini(struct a2a_task *t)
{
	drop_artifacts(t);
	uar_buf_fini(&t->text);
	uar_arena_fini(&t->arena);
	uar_arena_fini(&t->status);
}

/* --- words ----------------------------------------------------------------------------------- */

static const struct {
	const char *now, *before;
} words[UAR_REMOTE_STATE_COUNT] = {
	[UAR_REMOTE_UNKNOWN] = { "TASK_STATE_UNSPECIFIED", "unknown" },
	[UAR_REMOTE_SUBMITTED] = { "TASK_STATE_SUBMITTED", "submitted" },
	[UAR_REMOTE_WORKING] = { "TASK_STATE_WORKING", "working" },
	[UAR_REMOTE_INPUT_REQUIRED] = { "TASK_STATE_INPUT_REQUIRED", "input-required" },
	[UAR_REMOTE_AUTH_REQUIRED] = { "TASK_STATE_AUTH_REQUIRED", "auth-required" },
	[UAR_REMOTE_COMPLETED] = { "TASK_STATE_COMPLETED", "completed" },
	[UAR_REMOTE_FAILED] = { "TASK_STATE_FAILED", "failed" },
	[UAR_REMOTE_CANCELED] = { "TASK_STATE_CANCELED", "canceled" },
	[UAR_REMOTE_REJECTED] = { "TASK_STATE_REJECTED", "rejected" },
};

static enum uar_remote_state state_of(uar_str word)
{
	for (int s = 0; s < UAR_REMOTE_STATE_COUNT; s++)
		if (uar_str_is(word, words[s].now) || uar_str_is(word, words[s].before))
			return (enum uar_remote_state)s;
	return UAR_REMOTE_UNKNOWN;
}

static uar_err set_id(struct a2a_task *t, size_t which, uar_str id, uar_str *out)
{
	if (!id.n)
		return UAR_OK;
	if (id.n >= sizeof t->ids[which] || !uar_str_is_visible(id))
		return UAR_EINVALID;
	memcpy(t->ids[which], id.p, id.n);
	t->ids[which][id.n] = 0;
	*out = uar_str_n(t->ids[which], id.n);
	return UAR_OK;
}

uar_err a2a_task_expect(struct a2a_task *t, uar_str task_id)
{
	return set_id(t, 0, task_id, &t->task_id);
}

/* Another task's events do not concern this one. */
static uar_err take_ids(struct a2a_task *t, uar_str task_id, uar_str context_id)
{
	uar_err e;

	if (t->task_id.n && task_id.n && !uar_str_eq(t->task_id, task_id)) {
		t->has_strays = true;
		return UAR_ESKIP;
	}
	e = set_id(t, 0, task_id, &t->task_id);
	return e ? e : set_id(t, 1, context_id, &t->context_id);
}

/* --- parts ----------------------------------------------------------------------------------- */

static uar_err copy_json(struct uar_arena *arena, const struct uar_json *j, uar_str *out)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_PEER_ANSWER);
	uar_err e;

	uar_json_write(&b, j);
	e = b.err;
	if (!e) {
		*out = uar_arena_str(arena, uar_buf_str(&b));
		e = out->p ? UAR_OK : UAR_ETOOBIG;
	}
	uar_buf_fini(&b);
	return e;
}

struct part {
	enum uar_remote_part_kind kind;
	uar_str text, title, mime; /* text: of TEXT, LINK; base64 of FILE */
	const struct uar_json *data;
};

/* False: it is none that is known. */
static bool read_part(const struct uar_json *j, struct part *out)
{
	const struct uar_json *file = get(j, "file"), *from = file ? file : j;
	uar_str raw = uar_json_text(from, file ? "bytes" : "raw");
	uar_str url = uar_json_text(from, file ? "uri" : "url");

	*out = (struct part){ .title = uar_json_text(from, file ? "name" : "filename"),
			      .mime = uar_json_text(from, file ? "mimeType" : "mediaType") };
	if (get(j, "text")) {
		out->kind = UAR_REMOTE_TEXT;
		out->text = uar_json_text(j, "text");
	} else if (get(j, "data")) {
		out->kind = UAR_REMOTE_DATA;
		out->data = get(j, "data");
	} else if (raw.n || url.n) {
		out->kind = raw.n ? UAR_REMOTE_FILE : UAR_REMOTE_LINK;
		out->text = raw.n ? raw : url;
	} else {
		return false;
	}
	return true;
}

/* --- the status ------------------------------------------------------------------------------ */

static uar_err take_message(struct a2a_task *t, const struct uar_json *message)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_PEER_TEXT);
	struct part p;
	uar_err e = UAR_OK;

	for (const struct uar_json *j = uar_json_first(get(message, "parts")); j && !e;
	     j = j->next) {
		if (!read_part(j, &p))
			continue;
		if (p.kind == UAR_REMOTE_TEXT && text.n)
			uar_buf_add_char(&text, '\n');
		if (p.kind == UAR_REMOTE_TEXT)
			uar_buf_add_str(&text, p.text);
		if (p.kind == UAR_REMOTE_DATA && !t->data) {
			uar_str copy = UAR_STR("");

			e = copy_json(&t->status, p.data, &copy);
			if (!e)
				e = uar_json_parse(copy, NULL, &t->status, &t->data, NULL);
		}
	}
	if (!e)
		e = text.err;
	if (!e) {
		t->said = uar_arena_str(&t->status, uar_buf_str(&text));
		e = t->said.p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(&text);
	return e;
}

/* A task that is over stays as it is. */
static uar_err take_status(struct a2a_task *t, const struct uar_json *status)
{
	uar_str word = uar_json_text(status, "state");

	if (uar_remote_over(t->state))
		return UAR_OK;
	uar_arena_reset(&t->status);
	t->data = NULL;
	t->said = UAR_STR("");
	t->state = state_of(word);
	t->native = uar_arena_str(&t->status, uar_str_utf8_prefix(word, 31));
	if (!t->native.p)
		return UAR_ENOMEM;
	return take_message(t, get(status, "message"));
}

/* --- artifacts ------------------------------------------------------------------------------- */

static struct a2a_artifact *find_artifact(struct a2a_task *t, uar_str id)
{
	for (size_t i = 0; i < t->artifact_count; i++)
		if (uar_str_eq(t->artifacts[i].id, id))
			return &t->artifacts[i];
	return NULL;
}

static uar_err add_artifact(struct a2a_task *t, uar_str id, struct a2a_artifact **out)
{
	struct a2a_artifact *a = &t->artifacts[t->artifact_count];

	if (t->artifact_count == UAR_LIMIT_PEER_ARTIFACTS)
		return UAR_ETOOBIG;
	*a = (struct a2a_artifact){ .id = uar_arena_str(&t->arena, id),
				    .name = UAR_STR(""),
				    .text = uar_buf_make(UAR_LIMIT_PEER_TEXT) };
	if (!a->id.p)
		return UAR_ETOOBIG;
	t->artifact_count++;
	*out = a;
	return UAR_OK;
}

/* It comes anew. */
static void empty_artifact(struct a2a_task *t, struct a2a_artifact *a)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->part_count; i++)
		if (!uar_str_eq(t->parts[i].artifact_id, a->id))
			t->parts[kept++] = t->parts[i];
	t->part_count = kept;
	uar_buf_clear(&a->text);
}

static uar_err add_part(struct a2a_task *t, const struct a2a_artifact *a, const struct part *p)
{
	struct uar_remote_part *to = &t->parts[t->part_count];
	uar_str content = p->text;
	uar_err e = UAR_OK;

	if (t->part_count == UAR_LIMIT_PEER_PARTS)
		return UAR_ETOOBIG;
	if (p->kind == UAR_REMOTE_FILE)
		e = uar_base64_decode(&t->arena, p->text, &content);
	else if (p->kind == UAR_REMOTE_DATA)
		e = copy_json(&t->arena, p->data, &content);
	else
		content = uar_arena_str(&t->arena, content);
	if (e)
		return e == UAR_ENOMEM ? UAR_ETOOBIG : e;
	*to = (struct uar_remote_part){ .kind = p->kind,
					.artifact_id = a->id,
					.title = uar_arena_str(&t->arena, p->title),
					.mime = uar_arena_str(&t->arena, p->mime),
					.content = content };
	if (!to->title.p || !to->mime.p || !content.p)
		return UAR_ETOOBIG;
	if (!to->title.n)
		to->title = a->name;
	t->part_count++;
	return UAR_OK;
}

/* Joins the texts of all artifacts anew, after a change that did not only append at the end. */
static uar_err join_text(struct a2a_task *t)
{
	uar_buf_clear(&t->text);
	t->text_made++;
	t->is_behind = false;
	for (size_t i = 0; i < t->artifact_count; i++) {
		uar_str text = uar_buf_str(&t->artifacts[i].text);

		if (text.n && t->text.n)
			uar_buf_add_str(&t->text, UAR_STR("\n\n"));
		uar_buf_add_str(&t->text, text);
	}
	return t->text.err;
}

/* Is the text of all artifacts within its limit, though it is not joined? */
static uar_err check_text(const struct a2a_task *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->artifact_count; i++)
		n += t->artifacts[i].text.n ? t->artifacts[i].text.n + (n ? 2 : 0) : 0;
	return n > UAR_LIMIT_PEER_TEXT ? UAR_ETOOBIG : UAR_OK;
}

/* An artifact that is not the last one has changed. A peer may do that with each byte. */
static uar_err rejoin_text(struct a2a_task *t)
{
	if (t->is_behind || t->joins == UAR_LIMIT_PEER_JOINS) {
		t->is_behind = true;
		return check_text(t);
	}
	t->joins++;
	return join_text(t);
}

static uar_err take_parts(struct a2a_task *t, struct a2a_artifact *a, const struct uar_json *parts,
			  bool last)
{
	struct part p;
	uar_err e = UAR_OK;

	for (const struct uar_json *j = uar_json_first(parts); j && !e; j = j->next) {
		if (!read_part(j, &p))
			continue;
		if (p.kind != UAR_REMOTE_TEXT) {
			e = add_part(t, a, &p);
			continue;
		}
		if (last && !a->text.n && t->text.n && p.text.n)
			uar_buf_add_str(&t->text, UAR_STR("\n\n"));
		uar_buf_add_str(&a->text, p.text);
		if (last)
			uar_buf_add_str(&t->text, p.text);
		e = a->text.err ? a->text.err : t->text.err;
	}
	return e;
}

static uar_err take_artifact(struct a2a_task *t, const struct uar_json *j, bool append)
{
	struct a2a_artifact *a = find_artifact(t, uar_json_text(j, "artifactId"));
	uar_str name = uar_json_text(j, "name");
	bool last = !t->is_behind && (!a || (append && a == &t->artifacts[t->artifact_count - 1]));
	uar_err e = UAR_OK;

	if (!a)
		e = add_artifact(t, uar_json_text(j, "artifactId"), &a);
	else if (!append)
		empty_artifact(t, a);
	if (e)
		return e;
	if (name.n && !a->name.n)
		a->name = uar_arena_str(&t->arena, name);
	if (!a->name.p)
		return UAR_ETOOBIG;
	e = take_parts(t, a, get(j, "parts"), last);
	return e || last ? e : rejoin_text(t);
}

static uar_err take_artifacts(struct a2a_task *t, const struct uar_json *list)
{
	uar_err e = UAR_OK;

	drop_artifacts(t);
	uar_arena_reset(&t->arena);
	uar_buf_clear(&t->text); /* the text of a snapshot before this one */
	for (const struct uar_json *j = uar_json_first(list); j && !e; j = j->next)
		e = take_artifact(t, j, false);
	return e ? e : join_text(t);
}

/* --- events ---------------------------------------------------------------------------------- */

static void look_through(struct a2a_task *t, const struct uar_json *history, uar_str message_id)
{
	t->has_history |= uar_json_first(history) != NULL;
	for (const struct uar_json *m = uar_json_first(history); m && message_id.n; m = m->next)
		t->knows |= uar_str_eq(uar_json_text(m, "messageId"), message_id);
}

uar_err a2a_task_take_task(struct a2a_task *t, const struct uar_json *j, uar_str message_id)
{
	uar_err e;

	if (!uar_json_text(j, "id").n || !get(j, "status"))
		return UAR_EINVALID;
	e = take_ids(t, uar_json_text(j, "id"), uar_json_text(j, "contextId"));
	if (e)
		return e == UAR_ESKIP ? UAR_OK : e;
	look_through(t, get(j, "history"), message_id);
	e = take_artifacts(t, get(j, "artifacts"));
	return e ? e : take_status(t, get(j, "status"));
}

static uar_err take_status_update(struct a2a_task *t, const struct uar_json *j)
{
	uar_err e = take_ids(t, uar_json_text(j, "taskId"), uar_json_text(j, "contextId"));

	if (e)
		return e == UAR_ESKIP ? UAR_OK : e;
	t->pieces = true;
	e = get(j, "status") ? take_status(t, get(j, "status")) : UAR_EINVALID;
	return !e && t->is_behind && uar_remote_over(t->state) ? join_text(t) : e;
}

static uar_err take_artifact_update(struct a2a_task *t, const struct uar_json *j)
{
	uar_err e = take_ids(t, uar_json_text(j, "taskId"), uar_json_text(j, "contextId"));

	if (e || uar_remote_over(t->state))
		return e == UAR_ESKIP ? UAR_OK : e;
	t->pieces = true;
	if (!get(j, "artifact"))
		return UAR_EINVALID;
	return take_artifact(t, get(j, "artifact"), uar_json_bool(get(j, "append"), false));
}

/* An answer without a task is complete. */
static uar_err take_reply(struct a2a_task *t, const struct uar_json *j)
{
	uar_err e = set_id(t, 1, uar_json_text(j, "contextId"), &t->context_id);
	struct a2a_artifact *a = NULL;

	if (e || !get(j, "parts"))
		return e ? e : UAR_EINVALID;
	drop_artifacts(t);
	e = add_artifact(t, UAR_STR("message"), &a);
	if (!e)
		e = take_parts(t, a, get(j, "parts"), true);
	t->state = UAR_REMOTE_COMPLETED;
	t->native = UAR_STR("message");
	return e;
}

uar_err a2a_task_take(struct a2a_task *t, const struct uar_json *j, uar_str message_id)
{
	static const struct {
		const char *now, *before;
	} kinds[] = { { "task", "task" },
		      { "message", "message" },
		      { "statusUpdate", "status-update" },
		      { "artifactUpdate", "artifact-update" } };
	uar_str kind = uar_json_text(j, "kind");
	const struct uar_json *body = NULL;
	size_t i = 0;

	for (; i < ARRAY_LEN(kinds) && !body; i++)
		body = uar_str_is(kind, kinds[i].before) ? j : get(j, kinds[i].now);
	if (!body || body->kind != UAR_JSON_OBJECT)
		return UAR_EINVALID;
	switch (i - 1) {
	case 0: return a2a_task_take_task(t, body, message_id);
	case 1: return take_reply(t, body);
	case 2: return take_status_update(t, body);
	default: return take_artifact_update(t, body);
	}
}

/* --- what is shown --------------------------------------------------------------------------- */

/* The text of an artifact is one more part, once the task is over. */
static uar_err list_texts(struct a2a_task *t, size_t *out_count)
{
	size_t n = t->part_count;

	for (size_t i = 0; i < t->artifact_count; i++) {
		const struct a2a_artifact *a = &t->artifacts[i];

		if (a->text.n)
			t->parts[n++] =
				(struct uar_remote_part){ .kind = UAR_REMOTE_TEXT,
							  .artifact_id = a->id,
							  .title = a->name,
							  .mime = UAR_STR("text/plain"),
							  .content = uar_buf_str(&a->text) };
	}
	*out_count = n;
	return UAR_OK;
}

uar_err a2a_task_view(struct a2a_task *t, struct uar_remote_view *out)
{
	*out = (struct uar_remote_view){ .task_id = t->task_id,
					 .context_id = t->context_id,
					 .state = t->state,
					 .native = t->native,
					 .text = uar_buf_str(&t->text),
					 .text_made = t->text_made,
					 .said = t->said,
					 .data = t->data,
					 .has_history = t->has_history,
					 .knows = t->knows,
					 .parts = t->parts };
	return uar_remote_over(t->state) ? list_texts(t, &out->part_count) : UAR_OK;
}
