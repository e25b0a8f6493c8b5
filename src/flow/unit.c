/* unit.c - the calls of a run: their state in the log, and the calls to make. */
#include "flow/step_int.h"

enum { WAIT_SECONDS = 600 };

const struct uar_json flow_null = { .kind = UAR_JSON_NULL };

const struct uar_json *flow_take_json(struct flow_run *r, uar_err e, struct uar_buf *b)
{
	const struct uar_json *j = NULL;

	if (!e)
		e = uar_json_parse_copy(uar_buf_str(b), NULL, r->arena, &j, NULL);
	if (e == UAR_ENOMEM)
		r->err = e;
	uar_buf_fini(b);
	return j;
}

const struct uar_json *flow_edge_value(const struct flow_run *r, const struct uar_flow_edge *e)
{
	const struct uar_flow_state *n = &r->step->nodes[e->from];
	const struct uar_json *v = uar_flow_port_value(&r->scope, e->from, e->port);

	if (v || n->status != UAR_FLOW_COMPLETED)
		return v;
	/* An input that was not given is null; its edge is taken all the same. */
	return r->f->nodes[e->from].type == UAR_FLOW_INPUT ? &flow_null : NULL;
}

/* --- calls of the log ----------------------------------------------------------------------- */

uar_str flow_key(struct flow_run *r, const char *stage, uar_str id, int item)
{
	uar_str key = item < 0 ? uar_arena_printf(r->arena, "%s:%.*s", stage, UAR_FMT(id))
			       : uar_arena_printf(r->arena, "%s:%.*s#%d", stage, UAR_FMT(id), item);

	if (!key.p)
		r->err = UAR_ENOMEM;
	return key.p ? key : UAR_STR("");
}

const struct flow_told *flow_find_call(const struct flow_run *r, uar_str key)
{
	for (size_t i = 0; i < r->call_count; i++)
		if (uar_str_eq(r->calls[i].call->key, key))
			return &r->calls[i];
	return NULL;
}

static uar_str child_of(const struct flow_told *spawn)
{
	return uar_flow_setting(uar_json_get(spawn->json, UAR_STR("subagent")), "subagent_id");
}

static const struct uar_json *children_of(const struct flow_told *t)
{
	return uar_str_is(t->call->key, "wait") && !t->call->failed
		       ? uar_json_get(t->json, UAR_STR("subagents"))
		       : NULL;
}

/* Does the record have the whole answer? */
static bool is_whole(const struct uar_json *child)
{
	int64_t bytes = uar_json_int(uar_json_get(child, UAR_STR("answer_bytes")), 0);

	return bytes <= (int64_t)uar_flow_setting(child, "answer").n;
}

/* The record of a child that is at rest; NULL: it is not. *out_cut: it is, but a wait for several
 * children has cut its answer, so that it has to be waited for alone. */
static const struct uar_json *find_rest(const struct flow_run *r, uar_str child, bool *out_cut)
{
	*out_cut = false;
	for (size_t i = 0; i < r->call_count; i++) {
		const struct uar_json *list = children_of(&r->calls[i]);

		for (const struct uar_json *s = uar_json_first(list); s; s = s->next) {
			if (!uar_str_eq(uar_flow_setting(s, "subagent_id"), child) ||
			    !uar_json_bool(uar_json_get(s, UAR_STR("recoverable")), false))
				continue;
			if (list->count == 1 || is_whole(s))
				return s;
			*out_cut = true;
		}
	}
	return NULL;
}

static const struct uar_json *rested(const struct flow_run *r, uar_str child)
{
	bool cut;

	return find_rest(r, child, &cut);
}

static void note_child(struct flow_run *r, const struct flow_told *t)
{
	uar_str id = child_of(t);
	bool cut;

	if (!uar_str_starts(t->call->key, UAR_STR("spawn:")) || t->call->failed)
		return;
	if (!t->call->ended) {
		r->spawned++;
	} else if (id.n && !find_rest(r, id, &cut) && r->child_count < UAR_LIMIT_FLOW_CHILDREN) {
		if (cut)
			r->cut = id;
		r->children[r->child_count++] = id;
		r->spawned++;
	}
}

void flow_read_calls(struct flow_run *r, const struct uar_flow_calls *calls)
{
	static const struct uar_json_limits limits = { .foreign = true };

	r->calls = uar_arena_alloc(r->arena, (calls->count + 1) * sizeof *r->calls);
	if (!r->calls) {
		r->err = UAR_ENOMEM;
		return;
	}
	for (size_t i = 0; i < calls->count && !r->err; i++) {
		struct flow_told *t = &r->calls[r->call_count++];
		bool open = i >= calls->open_from || !calls->at[i].ended;
		uar_err e = UAR_OK;

		t->call = &calls->at[i];
		if (open && calls->at[i].ended) {
			struct uar_flow_call *copy = uar_arena_alloc(r->arena, sizeof *copy);

			r->err = copy ? UAR_OK : UAR_ENOMEM;
			if (!copy)
				return;
			*copy = calls->at[i];
			copy->ended = copy->failed = false;
			t->call = copy;
		}
		r->unended += open;
		if (!open || uar_str_starts(t->call->key, UAR_STR("sleep:")))
			e = uar_json_parse(calls->at[i].told, &limits, r->arena, &t->json, NULL);
		if (e == UAR_ENOMEM)
			r->err = e;
	}
	for (size_t i = 0; i < r->call_count; i++)
		note_child(r, &r->calls[i]);
}

/* --- what is wanted ------------------------------------------------------------------------- */

bool flow_want(struct flow_run *r, uar_str key, uar_str tool_id, uar_str args)
{
	struct uar_flow_step *s = r->step;

	if (!key.p || !args.p)
		r->err = UAR_ENOMEM;
	if (r->err || s->want_count + r->unended >= UAR_LIMIT_FLOW_CALLS)
		return false;
	s->wants[s->want_count++] = (struct uar_flow_want){ key, tool_id, args };
	return true;
}

static int64_t patience(const struct flow_run *r)
{
	int64_t left = r->until_us ? (r->until_us - r->now_us) / 1000000 + 1 : WAIT_SECONDS;

	return left < 1 ? 1 : left < WAIT_SECONDS ? left : WAIT_SECONDS;
}

void flow_want_children(struct flow_run *r)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_FLOW_VALUE);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "subagent_ids");
	for (size_t i = 0; i < r->child_count; i++)
		if (!r->cut.n || uar_str_eq(r->cut, r->children[i]))
			uar_jw_str(&w, NULL, r->children[i]);
	uar_jw_close(&w);
	uar_jw_cstr(&w, "mode", "any");
	uar_jw_int(&w, "timeout_seconds", patience(r));
	uar_jw_close(&w);
	if (uar_jw_end(&w))
		r->err = UAR_ENOMEM;
	else
		(void)flow_want(r, UAR_STR("wait"), UAR_STR("internal:agent.wait"),
				uar_arena_str(r->arena, uar_buf_str(&b)));
	uar_buf_fini(&b);
}

/* --- one of them ---------------------------------------------------------------------------- */

static void unit_fails(struct flow_unit *u, const char *category, uar_str message)
{
	u->state = FLOW_UNIT_FAILED;
	u->category = uar_str_c(category);
	u->message = message;
}

static void take_failure(struct flow_unit *u, const struct flow_told *t)
{
	const struct uar_json *error = uar_json_get(t->json, UAR_STR("error"));

	u->state = FLOW_UNIT_FAILED;
	u->category = uar_json_str(uar_json_get(error, UAR_STR("category")), UAR_STR("execution"));
	u->message = uar_json_str(uar_json_get(error, UAR_STR("message")), UAR_STR("it failed"));
}

static const struct uar_json *text_value(struct flow_run *r, uar_str text)
{
	struct uar_json *j = uar_arena_alloc(r->arena, sizeof *j);

	if (!j) {
		r->err = UAR_ENOMEM;
		return &flow_null;
	}
	*j = (struct uar_json){ .kind = UAR_JSON_STRING, .text = text };
	return j;
}

static void look_at_call(struct flow_run *r, struct flow_unit *u)
{
	const struct flow_told *t = flow_find_call(r, flow_key(r, "call", u->id, u->item));

	if (!t)
		return;
	u->state = FLOW_UNIT_BUSY;
	if (t->call->ended && t->call->failed) {
		take_failure(u, t);
	} else if (t->call->ended && !t->json) { /* a hook replaced it by a text */
		u->state = FLOW_UNIT_DONE;
		u->value = text_value(r, t->call->told);
	} else if (t->call->ended) {
		u->state = FLOW_UNIT_DONE;
		u->value = t->json;
	}
}

static void take_answer(struct flow_run *r, struct flow_unit *u, uar_str answer)
{
	static const struct uar_json_limits limits = { .foreign = true };
	const struct uar_json *j = NULL;
	uar_err e;

	u->state = FLOW_UNIT_DONE;
	if (!uar_str_is(uar_flow_setting(u->config, "output"), "json")) {
		u->value = text_value(r, answer);
		return;
	}
	e = uar_json_parse(answer, &limits, r->arena, &j, NULL);
	u->value = j;
	if (e == UAR_ENOMEM)
		r->err = e;
	else if (e)
		unit_fails(u, "value_invalid", UAR_STR("the answer is not JSON"));
}

static void take_child(struct flow_run *r, struct flow_unit *u, const struct uar_json *child)
{
	uar_str status = uar_flow_setting(child, "status");
	uar_str why = uar_flow_setting(uar_json_get(child, UAR_STR("last_error")), "message");

	if (uar_str_is(status, "completed") && !is_whole(child))
		unit_fails(
			u, "result_too_large",
			uar_arena_printf(r->arena,
					 "the answer has %lld bytes, and the first %zu are kept",
					 (long long)uar_json_int(
						 uar_json_get(child, UAR_STR("answer_bytes")), 0),
					 uar_flow_setting(child, "answer").n));
	else if (uar_str_is(status, "completed"))
		take_answer(r, u, uar_flow_setting(child, "answer"));
	else
		unit_fails(
			u, "dependency",
			why.n ? why
			      : uar_arena_printf(r->arena, "the agent is %.*s", UAR_FMT(status)));
}

static void look_at_child(struct flow_run *r, struct flow_unit *u)
{
	const struct flow_told *t = flow_find_call(r, flow_key(r, "spawn", u->id, u->item));
	const struct uar_json *child = t ? rested(r, child_of(t)) : NULL;

	if (!t)
		return;
	u->state = FLOW_UNIT_BUSY;
	if (t->call->ended && t->call->failed)
		take_failure(u, t);
	else if (child)
		take_child(r, u, child);
}

void flow_unit_look(struct flow_run *r, struct flow_unit *u)
{
	if (u->type == UAR_FLOW_AGENT || u->type == UAR_FLOW_MODEL)
		look_at_child(r, u);
	else
		look_at_call(r, u);
}

/* --- it begins ------------------------------------------------------------------------------ */

/* The text of a template. */
static uar_str fill_text(struct flow_run *r, uar_str text, const char *otherwise)
{
	struct uar_json t = { .kind = UAR_JSON_STRING,
			      .text = text.n ? text : uar_str_c(otherwise) };
	const struct uar_json *v = NULL;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_FLOW_VALUE);
	uar_str out;

	r->err = uar_flow_fill(&r->scope, &t, r->arena, &v);
	if (v && v->kind != UAR_JSON_STRING)
		uar_json_write(&b, v);
	out = v && v->kind == UAR_JSON_STRING ? v->text : uar_arena_str(r->arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	return out;
}

static void write_spawn(struct flow_run *r, const struct flow_unit *u, struct uar_jw *w)
{
	bool model = u->type == UAR_FLOW_MODEL;

	uar_jw_str(w, "agent_id", model ? UAR_STR("model") : uar_flow_setting(u->config, "agent"));
	uar_jw_str(
		w, "message",
		fill_text(r, uar_flow_setting(u->config, model ? "prompt" : "message"), "{{/in}}"));
	uar_jw_cstr(w, "role", "node");
	uar_jw_str(w, "nickname", u->id);
}

static void write_ask(struct flow_run *r, const struct flow_unit *u, struct uar_jw *w)
{
	uar_str title = fill_text(r, uar_flow_setting(u->config, "title"), "?");

	uar_jw_str(w, "title", uar_str_utf8_prefix(title, 200));
	if (u->type == UAR_FLOW_FORM)
		uar_jw_tree(w, "schema", uar_json_get(u->config, UAR_STR("schema")));
	else
		uar_jw_raw(w, "schema",
			   UAR_STR("{\"type\":\"object\",\"required\":[\"decision\"],"
				   "\"properties\":{\"decision\":{\"type\":\"string\","
				   "\"title\":\"Decision\",\"enum\":[\"approve\",\"decline\"]}}}"));
}

static void begin_tool(struct flow_run *r, struct flow_unit *u)
{
	const struct uar_json *t = uar_json_get(u->config, UAR_STR("arguments"));
	uar_str args = UAR_STR("{}");
	uar_err e = t ? uar_flow_fill_text(&r->scope, t, r->arena, &args) : UAR_OK;

	if (e == UAR_ENOMEM)
		r->err = e;
	else if (e)
		unit_fails(u, "value_invalid", UAR_STR("the arguments are too long"));
	else if (flow_want(r, flow_key(r, "call", u->id, u->item),
			   uar_flow_setting(u->config, "tool"), args))
		u->state = FLOW_UNIT_BUSY;
}

static void begin_written(struct flow_run *r, struct flow_unit *u)
{
	bool child = u->type == UAR_FLOW_AGENT || u->type == UAR_FLOW_MODEL;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_FLOW_VALUE);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e;

	uar_jw_obj(&w, NULL);
	if (child)
		write_spawn(r, u, &w);
	else
		write_ask(r, u, &w);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	if (r->err && r->err != UAR_ENOMEM) {
		r->err = UAR_OK;
		e = UAR_ETOOBIG;
	}
	if (e && e != UAR_ENOMEM)
		unit_fails(u, "value_invalid", UAR_STR("its message or form is too long"));
	else if (e || r->err)
		r->err = UAR_ENOMEM;
	else if (flow_want(r, flow_key(r, child ? "spawn" : "call", u->id, u->item),
			   child ? UAR_STR("internal:agent.spawn")
				 : UAR_STR("internal:ui.form.request"),
			   uar_arena_str(r->arena, uar_buf_str(&b)))) {
		u->state = FLOW_UNIT_BUSY;
		r->spawned += child;
	}
	uar_buf_fini(&b);
}

void flow_unit_begin(struct flow_run *r, struct flow_unit *u)
{
	bool child = u->type == UAR_FLOW_AGENT || u->type == UAR_FLOW_MODEL;

	if (r->err || u->state != FLOW_UNIT_NEW || (child && r->spawned >= UAR_LIMIT_FLOW_CHILDREN))
		return;
	if (u->type == UAR_FLOW_TOOL)
		begin_tool(r, u);
	else
		begin_written(r, u);
}
