/* mcp_offer.c - what servers of others offer through UAR.
 *
 * A request for what a relay lists goes there and its answer comes back, in the form of the
 * client's era. What the server asks the client for is passed on: as a result that asks, or, in
 * a session, as requests of the server. */
#include "gate/mcp_int.h"

struct offer_work {
	struct mcp_work work;
	struct uar_mcp_relay *relay;
	struct uar_mcp_passage *passage;
	enum uar_mcp_method method;
	uar_str name, caps, info, level, request;
	const struct uar_json *params; /* its own copy */
	unsigned can, rounds;
	bool again, has_tasks;
	uar_str state, answers;
	uar_str task_id; /* as the client has it, of a request about a task; or empty */
};

static struct offer_work *offer_of(struct mcp_work *k)
{
	return UAR_OWNER(k, struct offer_work, work);
}

/* --- lists ----------------------------------------------------------------------------------- */

static const char *const list_names[UAR_MCP_LISTS] = { "name", "name", "uri", "uriTemplate" };

static uar_str name_of(const struct uar_json *item, enum uar_mcp_list list)
{
	return uar_json_text(item, list_names[list]);
}

static bool is_shown(const struct uar_mcp_relay *r, const struct uar_json *item,
		     enum uar_mcp_list list)
{
	return list != UAR_MCP_TOOLS || uar_mcp_relay_offers(r, name_of(item, list));
}

/* The first of that name counts. */
static const struct uar_json *find_item(const struct uar_gate *g, enum uar_mcp_list list,
					uar_str name, struct uar_mcp_relay **of)
{
	for (size_t i = 0; i < g->o.relay_count; i++) {
		const struct uar_json *all = uar_mcp_relay_list(g->o.relays[i], list);

		for (const struct uar_json *j = uar_json_first(all); j; j = j->next)
			if (uar_str_eq(name_of(j, list), name) &&
			    is_shown(g->o.relays[i], j, list)) {
				*of = g->o.relays[i];
				return j;
			}
	}
	return NULL;
}

void mcp_put_offered(struct uar_jw *w, const struct mcp_exchange *x, enum uar_mcp_list list)
{
	const struct uar_gate *g = x->c->g;
	struct uar_mcp_relay *of;

	for (size_t i = 0; i < g->o.relay_count; i++) {
		const struct uar_json *all = uar_mcp_relay_list(g->o.relays[i], list);

		for (const struct uar_json *j = uar_json_first(all); j; j = j->next)
			if (find_item(g, list, name_of(j, list), &of) == j)
				uar_jw_tree(w, NULL, j);
	}
}

/* "a/{x}/b": the text before the first brace, and behind the last one. */
static bool fits_template(uar_str pattern, uar_str uri)
{
	size_t head = uar_str_find(pattern, '{'), tail = pattern.n;

	if (head == pattern.n)
		return uar_str_eq(pattern, uri);
	while (tail && pattern.p[tail - 1] != '}')
		tail--;
	return uri.n >= head + (pattern.n - tail) &&
	       uar_str_starts(uri, uar_str_n(pattern.p, head)) &&
	       uar_str_ends(uri, uar_str_from(pattern, tail));
}

static struct uar_mcp_relay *find_resource(const struct uar_gate *g, uar_str uri)
{
	struct uar_mcp_relay *of;

	if (find_item(g, UAR_MCP_RESOURCES, uri, &of))
		return of;
	for (size_t i = 0; i < g->o.relay_count; i++) {
		const struct uar_json *all = uar_mcp_relay_list(g->o.relays[i], UAR_MCP_TEMPLATES);

		for (const struct uar_json *j = uar_json_first(all); j; j = j->next)
			if (fits_template(name_of(j, UAR_MCP_TEMPLATES), uri))
				return g->o.relays[i];
	}
	return NULL;
}

bool mcp_is_offered(const struct uar_gate *g, uar_str uri)
{
	return find_resource(g, uri) != NULL;
}

static bool is_task_method(enum uar_mcp_method m)
{
	return m == UAR_MCP_M_TASKS_GET || m == UAR_MCP_M_TASKS_UPDATE ||
	       m == UAR_MCP_M_TASKS_CANCEL;
}

/* "SERVER~ID", sealed. */
static struct uar_mcp_relay *find_task(const struct mcp_exchange *x, uar_str *out_id)
{
	const struct uar_gate *g = x->c->g;
	uar_str task, server;

	if (mcp_task_id_read(x->c, uar_json_text(x->m.params, "taskId"), &task))
		return NULL;
	server = uar_str_cut(task, '~', out_id);
	for (size_t i = 0; i < g->o.relay_count; i++)
		if (uar_str_is(server, uar_mcp_relay_name(g->o.relays[i])))
			return g->o.relays[i];
	return NULL;
}

static struct uar_mcp_relay *find_relay(const struct mcp_exchange *x)
{
	const struct uar_gate *g = x->c->g;
	const struct uar_json *params = x->m.params;
	struct uar_mcp_relay *of = NULL;
	uar_str id;

	if (is_task_method(x->v.method))
		return find_task(x, &id);
	if (x->v.method == UAR_MCP_M_RESOURCES_READ)
		return find_resource(g, uar_json_text(params, "uri"));
	if (x->v.method == UAR_MCP_M_COMPLETE) {
		params = uar_json_get(params, UAR_STR("ref"));
		if (uar_json_text(params, "uri").n)
			return find_resource(g, uar_json_text(params, "uri"));
	}
	return find_item(g, x->v.method == UAR_MCP_M_TOOLS_CALL ? UAR_MCP_TOOLS : UAR_MCP_PROMPTS,
			 uar_json_text(params, "name"), &of)
		       ? of
		       : NULL;
}

/* --- the result ------------------------------------------------------------------------------ */

static bool is_of_era(uar_str key)
{
	static const char *const keys[] = { "_meta", "resultType", "cacheScope", "requestState" };

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (uar_str_is(key, keys[i]))
			return true;
	return false;
}

static void put_meta(struct uar_jw *w, const struct uar_json *meta, bool modern)
{
	uar_jw_obj(w, "_meta");
	if (modern)
		mcp_put_server_info(w, UAR_MCP_META "serverInfo");
	for (const struct uar_json *j = uar_json_first(meta); j; j = j->next)
		if (!uar_str_starts(j->key, UAR_STR(UAR_MCP_META))) {
			uar_jw_key(w, j->key);
			uar_jw_tree(w, NULL, j);
		}
	uar_jw_close(w);
}

static uar_str result_type(const struct uar_json *result)
{
	return uar_json_str(uar_json_get(result, UAR_STR("resultType")), UAR_STR("complete"));
}

static bool is_task(const struct uar_json *result)
{
	return uar_str_is(result_type(result), "task");
}

/* The id by which the client asks for the task again. */
static uar_err put_task_id(struct uar_jw *w, struct offer_work *o, uar_str id)
{
	struct uar_buf task = uar_buf_make(UAR_LIMIT_MCP_URI), b = uar_buf_make(UAR_LIMIT_MCP_URI);
	uar_err e = UAR_OK;

	if (!o->task_id.n) {
		uar_buf_printf(&task, "%s~%.*s", uar_mcp_relay_name(o->relay), UAR_FMT(id));
		e = task.err ? task.err : mcp_task_id_write(&o->work, uar_buf_str(&task), &b);
	}
	if (!e)
		uar_jw_str(w, "taskId", o->task_id.n ? o->task_id : uar_buf_str(&b));
	uar_buf_fini(&b);
	uar_buf_fini(&task);
	return e;
}

static uar_err put_members(struct uar_jw *w, struct offer_work *o, const struct uar_json *result)
{
	bool modern = !o->work.s, of_task = is_task(result) || is_task_method(o->method);
	uar_err e = UAR_OK;

	for (const struct uar_json *j = uar_json_first(result); j && !e; j = j->next) {
		if (is_of_era(j->key) || (!modern && uar_str_is(j->key, "ttlMs")))
			continue;
		if (of_task && uar_str_is(j->key, "taskId")) {
			e = put_task_id(w, o, uar_json_str(j, UAR_STR("")));
			continue;
		}
		uar_jw_key(w, j->key);
		uar_jw_tree(w, NULL, j);
	}
	return e;
}

/* The state that the client sends back is one of UAR. */
static uar_err put_state(struct uar_jw *w, struct offer_work *o, const struct uar_json *result)
{
	const struct uar_json *state = uar_json_get(result, UAR_STR("requestState"));
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	uar_err e = UAR_OK;

	if (state && state->kind == UAR_JSON_STRING) {
		e = mcp_state_write(&o->work, o->request, state->text, &b);
		uar_jw_str(w, "requestState", uar_buf_str(&b));
	}
	uar_buf_fini(&b);
	return e;
}

static void say_result(struct offer_work *o, const struct uar_json *result)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_jw w = uar_jw_begin(&b);
	bool modern = !o->work.s;
	uar_err e = UAR_OK;

	uar_jw_obj(&w, NULL);
	if (modern)
		uar_jw_str(&w, "resultType", result_type(result));
	if (modern || uar_json_get(result, UAR_STR("_meta")))
		put_meta(&w, uar_json_get(result, UAR_STR("_meta")), modern);
	e = put_members(&w, o, result);
	if (modern && uar_mcp_methods[o->method].cached) {
		if (!uar_json_get(result, UAR_STR("ttlMs")))
			uar_jw_int(&w, "ttlMs", 0);
		uar_jw_cstr(&w, "cacheScope", "private");
	}
	if (modern && !e && !is_task(result))
		e = put_state(&w, o, result);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	if (!b.err)
		b.err = e;
	mcp_work_say_result(&o->work, &b);
	uar_buf_fini(&b);
}

static const char *cap_words[] = { "elicitation", "sampling", "roots" };

/* NULL: the client can answer all that is asked; else what it lacks. */
static const char *missing_capability(const struct offer_work *o, const struct uar_json *questions)
{
	for (const struct uar_json *j = uar_json_first(questions); j; j = j->next) {
		unsigned can = mcp_can_for(uar_json_text(j, "method"));

		if (!can)
			return "";
		if (!(o->can & can))
			return cap_words[can == MCP_ELICITS ? 0 : can == MCP_SAMPLES ? 1 : 2];
	}
	return NULL;
}

static void refuse_question(struct offer_work *o, const char *missing)
{
	char data[96];

	if (!missing[0]) {
		mcp_work_say_error(&o->work, UAR_MCP_INTERNAL_ERROR,
				   "the server behind this tool asks what no client answers",
				   UAR_STR_NONE);
		return;
	}
	snprintf(data, sizeof data, "{\"requiredCapabilities\":{\"%s\":{}}}", missing);
	mcp_work_say_error(&o->work, UAR_MCP_MISSING_CAPABILITY,
			   "the client lacks a capability that this request needs",
			   uar_str_c(data));
}

static void take_questions(struct offer_work *o, const struct uar_json *result)
{
	const struct uar_json *questions = uar_json_get(result, UAR_STR("inputRequests"));
	const struct uar_json *state = uar_json_get(result, UAR_STR("requestState"));
	const char *missing = missing_capability(o, questions);
	uar_err e = UAR_OK;

	if (missing) {
		refuse_question(o, missing);
		return;
	}
	if (!o->work.s) {
		say_result(o, result);
		return;
	}
	o->state = state ? uar_arena_str(&o->work.arena, uar_json_str(state, UAR_STR("")))
			 : UAR_STR_NONE;
	if (++o->rounds > UAR_LIMIT_MCP_ROUNDS)
		mcp_work_say_error(&o->work, UAR_MCP_INTERNAL_ERROR,
				   "the server asked too many times", UAR_STR_NONE);
	else if (uar_json_first(questions))
		e = mcp_ask(&o->work, questions);
	else
		o->work.ops->answered(&o->work, questions); /* it wants to be asked again */
	if (e)
		mcp_work_say_error(&o->work, UAR_MCP_INTERNAL_ERROR, uar_err_text(e), UAR_STR_NONE);
}

static void say_failure(struct offer_work *o, const struct uar_mcp_passed *p)
{
	struct uar_buf text = uar_buf_make(4096), data = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);

	uar_buf_add_str(&text,
			uar_str_utf8_prefix(p->err ? uar_str_c(p->reason) : p->message, 2048));
	uar_buf_add_char(&text, 0);
	if (!p->err && p->data)
		uar_json_write(&data, p->data);
	mcp_work_say_error(&o->work, p->err ? UAR_MCP_INTERNAL_ERROR : p->code,
			   text.err ? "" : text.p, data.err ? UAR_STR_NONE : uar_buf_str(&data));
	uar_buf_fini(&data);
	uar_buf_fini(&text);
}

static void passed(void *ctx, const struct uar_mcp_passed *p)
{
	struct offer_work *o = ctx;

	o->passage = NULL;
	if (p->err || !p->result)
		say_failure(o, p);
	else if (uar_str_is(result_type(p->result), "input_required"))
		take_questions(o, p->result);
	else if (is_task(p->result) && !o->has_tasks)
		mcp_work_say_error(&o->work, UAR_MCP_INTERNAL_ERROR,
				   "the server made a task of a call whose client knows none",
				   UAR_STR_NONE);
	else
		say_result(o, p->result);
	mcp_work_free_if_done(&o->work);
}

/* --- on its way ------------------------------------------------------------------------------ */

static const char *const levels[] = { "debug", "info",	   "notice", "warning",
				      "error", "critical", "alert",  "emergency" };

static size_t level_of(uar_str name)
{
	size_t i = 0;

	while (i < ARRAY_LEN(levels) && !uar_str_is(name, levels[i]))
		i++;
	return i;
}

const char *mcp_level(uar_str name)
{
	size_t i = level_of(name);

	return i < ARRAY_LEN(levels) ? levels[i] : NULL;
}

static void pass_on(struct offer_work *o, uar_str method, const struct uar_json *params)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_jw w = uar_jw_begin(&b);
	bool progress = uar_str_is(method, "notifications/progress");

	uar_jw_obj(&w, NULL);
	if (progress)
		uar_jw_raw(&w, "progressToken", o->work.token);
	for (const struct uar_json *j = uar_json_first(params); j; j = j->next)
		if (!uar_str_is(j->key, "progressToken") && !uar_str_is(j->key, "_meta")) {
			uar_jw_key(&w, j->key);
			uar_jw_tree(&w, NULL, j);
		}
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	mcp_work_notify(&o->work, progress ? "notifications/progress" : "notifications/message",
			&b);
	uar_buf_fini(&b);
}

static void notified(void *ctx, uar_str method, const struct uar_json *params)
{
	struct offer_work *o = ctx;

	if (uar_str_is(method, "notifications/progress")
		    ? o->work.token.n > 0
		    : o->level.n && level_of(uar_json_text(params, "level")) >= level_of(o->level))
		pass_on(o, method, params);
}

static uar_err begin_offer(struct mcp_work *k)
{
	struct offer_work *o = offer_of(k);
	struct uar_mcp_passage_events events = { notified, passed, o };
	struct uar_mcp_passing p = { .method = uar_str_c(uar_mcp_methods[o->method].method),
				     .name = o->name,
				     .params = o->params,
				     .capabilities = o->caps,
				     .info = o->info,
				     .log_level = o->level,
				     .progress = k->token.n > 0,
				     .again = o->again,
				     .state = o->state,
				     .answers = o->answers };

	return uar_mcp_relay_pass(o->relay, &p, &events, &o->passage);
}

static void abandon_offer(struct mcp_work *k, bool cancels)
{
	struct offer_work *o = offer_of(k);

	(void)cancels;
	if (o->passage)
		uar_mcp_passage_cancel(o->passage);
	o->passage = NULL;
}

static bool offer_busy(const struct mcp_work *k)
{
	return UAR_OWNER(k, const struct offer_work, work)->passage != NULL;
}

static void free_offer(struct mcp_work *k)
{
	abandon_offer(k, true);
	uar_free(offer_of(k));
}

static void offer_answered(struct mcp_work *k, const struct uar_json *answers)
{
	struct offer_work *o = offer_of(k);
	uar_err e = UAR_OK;

	if (answers) {
		o->again = true;
		o->answers = answers->text;
		e = begin_offer(k);
	}
	if (e || !answers)
		mcp_work_say_error(k, UAR_MCP_INTERNAL_ERROR,
				   e ? uar_err_text(e) : "the client refused to answer",
				   UAR_STR_NONE);
	mcp_work_free_if_done(k);
}

/* --- the beginning --------------------------------------------------------------------------- */

static const struct mcp_work_ops offer_ops = { begin_offer, abandon_offer, offer_busy, free_offer,
					       offer_answered };

static uar_str text_of(const struct uar_json *j)
{
	return j && j->kind == UAR_JSON_OBJECT ? j->text : UAR_STR_NONE;
}

static void take_client(struct offer_work *o, const struct mcp_exchange *x)
{
	const struct uar_json *caps = uar_mcp_meta(&x->m, "clientCapabilities");

	if (x->s) {
		o->can = x->s->can;
		o->caps = x->s->caps;
		o->info = x->s->info;
		o->level = uar_str_c(x->s->level ? x->s->level : "info");
	} else {
		o->can = mcp_can(caps);
		o->has_tasks = mcp_has_tasks(caps);
		o->caps = text_of(caps);
		o->info = text_of(uar_mcp_meta(&x->m, "clientInfo"));
		o->level = uar_json_str(uar_mcp_meta(&x->m, "logLevel"), UAR_STR_NONE);
	}
	if (level_of(o->level) == ARRAY_LEN(levels))
		o->level = UAR_STR_NONE;
}

static uar_err copy_request(struct offer_work *o, const struct mcp_exchange *x)
{
	struct uar_arena *a = &o->work.arena;
	uar_str *const all[] = { &o->name, &o->caps, &o->info, &o->level, &o->task_id };
	uar_str text = x->m.params ? uar_arena_str(a, x->m.params->text) : UAR_STR_NONE;

	o->method = x->v.method;
	o->name =
		uar_json_text(x->m.params, o->method == UAR_MCP_M_RESOURCES_READ ? "uri" : "name");
	if (is_task_method(o->method)) {
		o->task_id = uar_json_text(x->m.params, "taskId");
		find_task(x, &o->name);
	}
	take_client(o, x);
	if (!uar_arena_strs(a, all, ARRAY_LEN(all)))
		return UAR_ENOMEM;
	o->request =
		uar_arena_printf(a, "%s %.*s", uar_mcp_methods[o->method].method, UAR_FMT(o->name));
	if (!o->request.p)
		return UAR_ENOMEM;
	return text.n ? uar_json_parse(text, NULL, a, &o->params, NULL) : UAR_OK;
}

/* A client of the modern era that calls again. */
static uar_err read_again(struct offer_work *o, const struct mcp_exchange *x)
{
	const struct uar_json *answers = uar_json_get(o->params, UAR_STR("inputResponses"));
	uar_err e = mcp_state_read(x, o->request, &o->state);

	if (e)
		return e;
	if (o->state.p) {
		o->state = uar_arena_str(&o->work.arena, o->state);
		e = o->state.p ? UAR_OK : UAR_ENOMEM;
	}
	o->again = answers || o->state.p;
	o->answers = text_of(answers);
	return e;
}

static void start_offer(struct mcp_exchange *x, struct offer_work *o)
{
	uar_err e = copy_request(o, x);

	if (!e && !x->s)
		e = read_again(o, x);
	if (e == UAR_EINVALID) {
		mcp_work_say_error(&o->work, UAR_MCP_INVALID_PARAMS,
				   "requestState is not of this request, or is too old",
				   UAR_STR_NONE);
		mcp_work_free_if_done(&o->work);
	} else if (e) {
		mcp_work_fail(&o->work, e, NULL);
	} else {
		mcp_work_begin(&o->work, UAR_STR_NONE);
	}
}

static bool heads_agree(struct mcp_exchange *x)
{
	struct uar_mcp_relay *of;
	const struct uar_json *tool;

	if (x->v.method != UAR_MCP_M_TOOLS_CALL)
		return true;
	tool = find_item(x->c->g, UAR_MCP_TOOLS, uar_json_text(x->m.params, "name"), &of);
	return mcp_check_params(x, uar_json_get(tool, UAR_STR("inputSchema")));
}

bool mcp_offer_request(struct mcp_exchange *x)
{
	struct uar_mcp_relay *relay = find_relay(x);
	struct mcp_work_about about;
	struct offer_work *o;

	if (!relay)
		return false;
	if (!heads_agree(x) || !mcp_work_admit(x, &about))
		return true;
	o = uar_zalloc(sizeof *o);
	if (!o || !mcp_work_init(&o->work, &offer_ops, &about)) {
		mcp_answer_problem(x, UAR_ENOMEM, NULL);
		return true;
	}
	o->relay = relay;
	mcp_work_attach(&o->work, x);
	start_offer(x, o);
	return true;
}
