/* mcp_resources.c - runs as resources, agents as prompts.
 *
 * uar://runs/RUN_ID is the record of a run, as GET /api/runs/RUN_ID shows it. */
#include "gate/mcp_int.h"
#include "proto/runs.h"

#define RUN_URI "uar://runs/"

struct run_lookup {
	struct mcp_exchange *x;
	struct uar_run_list q;
	uar_str uri;
};

static bool has_cursor(struct mcp_exchange *x)
{
	if (!uar_json_get(x->m.params, UAR_STR("cursor")))
		return false;
	mcp_answer_error(x, 200, UAR_MCP_INVALID_PARAMS, "there is no such page", UAR_STR_NONE);
	return true;
}

static void begin_lookup(struct mcp_exchange *x, struct run_lookup *k)
{
	uar_err e;

	k->x = x;
	k->q.owner = x->c->owner;
	x->c->op = k;
	e = uar_reader_runs(x->c->g->o.reader, &k->q);
	if (e)
		mcp_answer_problem(x, e, NULL);
}

/* --- the list ------------------------------------------------------------------------------- */

static void put_run(struct uar_jw *w, const struct uar_run_row *row)
{
	char uri[sizeof RUN_URI + UAR_LIMIT_ID_BYTES];

	snprintf(uri, sizeof uri, RUN_URI "%.*s", UAR_FMT(row->run_id));
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "uri", uri);
	uar_jw_str(w, "name", row->run_id);
	uar_jw_str(w, "title", row->agent_id.n ? row->agent_id : row->entry_id);
	uar_jw_str(w, "description", row->status);
	uar_jw_cstr(w, "mimeType", "application/json");
	uar_jw_close(w);
}

static void runs_listed(struct uar_run_list *q)
{
	struct mcp_exchange *x = UAR_OWNER(q, struct run_lookup, q)->x;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_ANSWER);
	struct uar_error error = q->error;
	uar_err e = q->err;
	struct uar_jw w;

	if (e) {
		uar_run_list_fini(q);
		mcp_answer_problem(x, e, &error);
		return;
	}
	w = mcp_result_begin(x, &b);
	uar_jw_arr(&w, "resources");
	if (!q->before.p)
		mcp_put_offered(&w, x, UAR_MCP_RESOURCES);
	for (size_t i = 0; i < q->row_count; i++)
		put_run(&w, &q->rows[i]);
	uar_jw_close(&w);
	if (q->more && q->row_count)
		uar_jw_str(&w, "nextCursor", q->rows[q->row_count - 1].run_id);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	uar_run_list_fini(q);
	mcp_answer_result(x, &b);
}

void mcp_list_resources(struct mcp_exchange *x)
{
	struct run_lookup *k = uar_arena_alloc(&x->c->arena, sizeof *k);

	if (!k) {
		mcp_answer_problem(x, UAR_ENOMEM, NULL);
		return;
	}
	k->q.limit = UAR_LIMIT_MCP_LIST;
	k->q.before = uar_json_str(uar_json_get(x->m.params, UAR_STR("cursor")), UAR_STR_NONE);
	k->q.done = runs_listed;
	begin_lookup(x, k);
}

void mcp_list_templates(struct mcp_exchange *x)
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w;

	if (has_cursor(x))
		return;
	w = mcp_result_begin(x, &b);
	uar_jw_arr(&w, "resourceTemplates");
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "uriTemplate", RUN_URI "{run_id}");
	uar_jw_cstr(&w, "name", "run");
	uar_jw_cstr(&w, "title", "The record of a run");
	uar_jw_cstr(&w, "mimeType", "application/json");
	uar_jw_close(&w);
	mcp_put_offered(&w, x, UAR_MCP_TEMPLATES);
	uar_jw_close(&w);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	mcp_answer_result(x, &b);
}

/* --- one ------------------------------------------------------------------------------------ */

static void answer_missing(struct mcp_exchange *x, uar_str uri)
{
	struct uar_buf b = uar_buf_make(16384);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "uri", uar_str_utf8_prefix(uri, 2048));
	uar_jw_close(&w);
	if (uar_jw_end(&w))
		uar_buf_clear(&b);
	mcp_answer_error(x, 200,
			 x->v.era == UAR_MCP_ERA_MODERN ? UAR_MCP_INVALID_PARAMS
							: UAR_MCP_RESOURCE_NOT_FOUND,
			 "there is no such resource", uar_buf_str(&b));
	uar_buf_fini(&b);
}

static uar_err put_record(struct uar_jw *w, const struct run_lookup *k)
{
	struct uar_buf record = uar_buf_make(UAR_LIMIT_RECORD_BYTES);
	struct uar_jw inner = uar_jw_begin(&record);
	uar_err e;

	uar_runs_write(&inner, NULL, &k->q.rows[0]);
	e = uar_jw_end(&inner);
	uar_jw_arr(w, "contents");
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "uri", k->uri);
	uar_jw_cstr(w, "mimeType", "application/json");
	uar_jw_str(w, "text", uar_buf_str(&record));
	uar_jw_close(w);
	uar_jw_close(w);
	uar_buf_fini(&record);
	return e;
}

static void run_read(struct uar_run_list *q)
{
	struct run_lookup *k = UAR_OWNER(q, struct run_lookup, q);
	struct mcp_exchange *x = k->x;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_ANSWER);
	struct uar_error error = q->error;
	uar_err e = q->err;
	struct uar_jw w;

	if (!e) {
		w = mcp_result_begin(x, &b);
		e = put_record(&w, k);
		uar_jw_close(&w);
		b.err = uar_jw_end(&w);
	}
	uar_run_list_fini(q);
	if (!e) {
		mcp_answer_result(x, &b);
		return;
	}
	uar_buf_fini(&b);
	if (e == UAR_ENOTFOUND)
		answer_missing(x, k->uri);
	else
		mcp_answer_problem(x, e, &error);
}

void mcp_read_resource(struct mcp_exchange *x)
{
	struct run_lookup *k = uar_arena_alloc(&x->c->arena, sizeof *k);
	uar_str uri = uar_json_str(uar_json_get(x->m.params, UAR_STR("uri")), UAR_STR(""));
	uar_str run_id = uar_str_from(uri, sizeof RUN_URI - 1);

	if (!k) {
		mcp_answer_problem(x, UAR_ENOMEM, NULL);
	} else if (!uar_str_starts(uri, UAR_STR(RUN_URI)) || !uar_str_is_id(run_id)) {
		if (!mcp_offer_request(x))
			answer_missing(x, uri);
	} else {
		k->uri = uri;
		k->q.run_id = run_id;
		k->q.limit = 1;
		k->q.done = run_read;
		begin_lookup(x, k);
	}
}

/* --- prompts -------------------------------------------------------------------------------- */

static void put_prompt(struct uar_jw *w, const struct uar_agent *a)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "name", a->id);
	uar_jw_cstr(w, "title", a->title);
	uar_jw_cstr(w, "description", a->doc ? a->doc : "");
	uar_jw_arr(w, "arguments");
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "name", "message");
	uar_jw_cstr(w, "description", "What the agent is to do.");
	uar_jw_bool(w, "required", true);
	uar_jw_close(w);
	uar_jw_close(w);
	uar_jw_close(w);
}

/* Agents that have instructions: those are what a client can use of them without a run. */
void mcp_list_prompts(struct mcp_exchange *x)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_ANSWER);
	const struct uar_agent *a;
	struct uar_jw w;

	if (has_cursor(x))
		return;
	w = mcp_result_begin(x, &b);
	uar_jw_arr(&w, "prompts");
	for (size_t i = 0; (a = uar_workers_agent_at(x->c->g->o.work, i)); i++)
		if (a->instructions && a->instructions[0] &&
		    uar_workers_shows(x->c->g->o.work, &x->c->owner, a))
			put_prompt(&w, a);
	mcp_put_offered(&w, x, UAR_MCP_PROMPTS);
	uar_jw_close(&w);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	mcp_answer_result(x, &b);
}

static void put_message(struct uar_jw *w, uar_str text)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "role", "user");
	uar_jw_obj(w, "content");
	uar_jw_cstr(w, "type", "text");
	uar_jw_str(w, "text", text);
	uar_jw_close(w);
	uar_jw_close(w);
}

void mcp_get_prompt(struct mcp_exchange *x)
{
	uar_str name = uar_json_str(uar_json_get(x->m.params, UAR_STR("name")), UAR_STR(""));
	const struct uar_agent *a = uar_workers_agent(x->c->g->o.work, &x->c->owner, name);
	const struct uar_json *arguments = uar_json_get(x->m.params, UAR_STR("arguments"));
	uar_str message = uar_json_str(uar_json_get(arguments, UAR_STR("message")), UAR_STR_NONE);
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_ANSWER);
	struct uar_jw w;

	if ((!a || !a->instructions) && mcp_offer_request(x))
		return;
	if (!a || !a->instructions || !message.p) {
		mcp_answer_error(x, 200, UAR_MCP_INVALID_PARAMS,
				 message.p ? "there is no such prompt"
					   : "the argument message is required",
				 UAR_STR_NONE);
		return;
	}
	w = mcp_result_begin(x, &b);
	uar_jw_cstr(&w, "description", a->title);
	uar_jw_arr(&w, "messages");
	put_message(&w, uar_str_c(a->instructions));
	put_message(&w, message);
	uar_jw_close(&w);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	mcp_answer_result(x, &b);
}
