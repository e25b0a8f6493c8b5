/* mcp_resources.c - runs and what they made as resources, agents as prompts.
 *
 * uar://runs/RUN_ID is the record of a run, as GET /api/runs/RUN_ID shows it. A list has the runs,
 * the newest first, and behind each of them its artifacts (mcp_artifacts.c). */
#include "event/limits.h"
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

/* A page has a number of runs, fewer if their events are many. Its cursor is "NUMBER~RUN_ID": the
 * page goes on in that run behind that event, or with the run behind it, for 0. */
struct resource_list {
	struct mcp_exchange *x;
	struct uar_run_list q;
	struct uar_events_read read;
	struct uar_list artifacts; /* of struct listed */
	size_t artifact_count, reads;
	size_t row;	/* whose events are read; those before it are done */
	uint64_t after; /* the last event of it that was */
	bool inside;	/* the page before has shown the first run */
};

struct listed {
	struct uar_list node;
	size_t row;
	struct mcp_artifact a;
};

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

static void put_artifact(struct uar_jw *w, uar_str run_id, const struct mcp_artifact *a)
{
	struct uar_buf uri = uar_buf_make(UAR_LIMIT_MCP_URI);

	mcp_artifact_uri(&uri, run_id, a->id);
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "uri", uar_buf_str(&uri));
	uar_jw_str(w, "name", a->id);
	if (a->title.n)
		uar_jw_str(w, "title", a->title);
	uar_jw_str(w, "description", a->type);
	uar_jw_str(w, "mimeType", a->mime);
	uar_jw_close(w);
	uar_buf_fini(&uri);
}

/* The rows that are shown: a run whose events were read in part is one of them. */
static size_t rows_shown(const struct resource_list *k)
{
	return k->row + (k->row < k->q.row_count && k->after);
}

static void put_page(struct uar_jw *w, struct resource_list *k)
{
	struct uar_list *at = k->artifacts.next;

	for (size_t i = 0; i < rows_shown(k); i++) {
		const struct uar_run_row *row = &k->q.rows[i];

		if (i || !k->inside)
			put_run(w, row);
		for (; at != &k->artifacts && UAR_OWNER(at, struct listed, node)->row == i;
		     at = at->next)
			put_artifact(w, row->run_id, &UAR_OWNER(at, struct listed, node)->a);
	}
}

static void put_cursor(struct uar_jw *w, const struct resource_list *k)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_ID_BYTES + 32);
	size_t n = rows_shown(k);

	if (n && (k->row < k->q.row_count || k->q.more || k->inside)) {
		uar_buf_printf(&b, "%llu~%.*s", (unsigned long long)k->after,
			       UAR_FMT(k->q.rows[n - 1].run_id));
		uar_jw_str(w, "nextCursor", uar_buf_str(&b));
	}
	uar_buf_fini(&b);
}

static void answer_list(struct resource_list *k)
{
	struct mcp_exchange *x = k->x;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_ANSWER);
	struct uar_run_list q = k->q;
	struct uar_jw w = mcp_result_begin(x, &b);

	uar_jw_arr(&w, "resources");
	if (!uar_json_get(x->m.params, UAR_STR("cursor")))
		mcp_put_offered(&w, x, UAR_MCP_RESOURCES);
	put_page(&w, k);
	uar_jw_close(&w);
	put_cursor(&w, k);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	mcp_answer_result(x, &b);
	uar_run_list_fini(&q);
}

static void fail_list(struct resource_list *k, uar_err e, const struct uar_error *error)
{
	struct uar_run_list q = k->q;
	struct uar_error why = error ? *error : (struct uar_error){ 0 };

	if (e == UAR_ENOTFOUND || e == UAR_ECURSOR)
		mcp_answer_error(k->x, 200, UAR_MCP_INVALID_PARAMS, "there is no such page",
				 UAR_STR_NONE);
	else
		mcp_answer_problem(k->x, e, &why);
	uar_run_list_fini(&q);
}

static struct listed *find_listed(struct resource_list *k, uar_str id)
{
	UAR_LIST_EACH (it, &k->artifacts) {
		struct listed *l = UAR_OWNER(it, struct listed, node);

		if (l->row == k->row && uar_str_eq(l->a.id, id))
			return l;
	}
	return NULL;
}

/* A later version takes the place of the one before. */
static uar_err keep_artifact(struct resource_list *k, const struct mcp_artifact *a)
{
	struct uar_arena *arena = &k->x->c->arena;
	struct listed *l = find_listed(k, a->id);

	if (!l && k->inside && !k->row && a->version > 1)
		return UAR_OK; /* its first version is on an earlier page */
	if (!l) {
		l = uar_arena_alloc(arena, sizeof *l);
		if (!l)
			return UAR_ENOMEM;
		uar_list_add_last(&k->artifacts, &l->node);
		k->artifact_count++;
	}
	l->row = k->row;
	l->a = (struct mcp_artifact){
		.id = uar_arena_str(arena, a->id),
		.type = uar_arena_str(arena, uar_str_utf8_prefix(a->type, 64)),
		.title = uar_arena_str(arena, uar_str_utf8_prefix(a->title, 256)),
		.mime = uar_arena_str(arena, a->mime),
	};
	return l->a.id.p && l->a.type.p && l->a.title.p && l->a.mime.p ? UAR_OK : UAR_ENOMEM;
}

/* UAR_EBUSY: the page is full before all events were looked at. */
static uar_err keep_artifacts(struct resource_list *k)
{
	struct uar_arena scratch;
	uar_err e = UAR_OK;

	uar_arena_init(&scratch, 0);
	for (size_t i = 0; i < k->read.event_count && !e; i++) {
		struct mcp_artifact a;

		if (k->artifact_count >= UAR_LIMIT_MCP_LIST_ARTIFACTS) {
			e = UAR_EBUSY;
			break;
		}
		e = mcp_artifact_read(&k->read.events[i], &scratch, &a);
		if (!e)
			e = keep_artifact(k, &a);
		else if (e == UAR_ESKIP)
			e = UAR_OK;
		k->after = k->read.events[i].run_sequence;
		uar_arena_reset(&scratch);
	}
	uar_arena_fini(&scratch);
	return e;
}

static void list_on(struct resource_list *k);

static void events_listed(struct uar_events_read *r)
{
	struct resource_list *k = UAR_OWNER(r, struct resource_list, read);
	struct uar_error error = r->error;
	uar_err e = r->err == UAR_ENOTFOUND ? UAR_OK : r->err; /* the run went meanwhile */
	bool full;

	if (!e)
		e = keep_artifacts(k);
	full = e == UAR_EBUSY;
	if (!e && !r->more) {
		k->row++;
		k->after = 0;
	}
	uar_events_read_fini(r);
	if (e && !full)
		fail_list(k, e, &error);
	else if (full)
		answer_list(k);
	else
		list_on(k);
}

/* One request reads so much and no more. */
static void list_on(struct resource_list *k)
{
	uar_err e;

	if (k->row >= k->q.row_count || k->reads >= UAR_LIMIT_MCP_LIST_READS ||
	    k->artifact_count >= UAR_LIMIT_MCP_LIST_ARTIFACTS) {
		answer_list(k);
		return;
	}
	k->reads++;
	k->read = (struct uar_events_read){ .owner = k->x->c->owner,
					    .run_id = k->q.rows[k->row].run_id,
					    .after = k->after,
					    .limit = UAR_LIMIT_READ_PAGE,
					    .done = events_listed };
	e = uar_reader_events(k->x->c->g->o.reader, &k->read);
	if (e)
		fail_list(k, e, NULL);
}

static void runs_listed(struct uar_run_list *q)
{
	struct resource_list *k = UAR_OWNER(q, struct resource_list, q);
	struct uar_error error = q->error;

	if (q->err)
		fail_list(k, q->err, &error);
	else
		list_on(k);
}

/* UAR_ECURSOR: it is none. */
static uar_err read_cursor(struct resource_list *k)
{
	const struct uar_json *j = uar_json_get(k->x->m.params, UAR_STR("cursor"));
	uar_str run_id = UAR_STR_NONE;

	if (!j)
		return UAR_OK;
	if (uar_str_u64(uar_str_cut(uar_json_str(j, UAR_STR("")), '~', &run_id), &k->after) ||
	    !uar_str_is_id(run_id))
		return UAR_ECURSOR;
	k->inside = k->after > 0;
	if (k->inside)
		k->q.run_id = run_id;
	else
		k->q.before = run_id;
	return UAR_OK;
}

void mcp_list_resources(struct mcp_exchange *x)
{
	struct resource_list *k = uar_arena_alloc(&x->c->arena, sizeof *k);
	uar_err e;

	if (!k) {
		mcp_answer_problem(x, UAR_ENOMEM, NULL);
		return;
	}
	*k = (struct resource_list){
		.x = x,
		.q = { .owner = x->c->owner, .limit = UAR_LIMIT_MCP_LIST, .done = runs_listed },
	};
	uar_list_init(&k->artifacts);
	x->c->op = k;
	e = read_cursor(k);
	if (!e)
		e = uar_reader_runs(x->c->g->o.reader, &k->q);
	if (e)
		fail_list(k, e, NULL);
}

static void put_template(struct uar_jw *w, const char *uri, const char *name, const char *title)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "uriTemplate", uri);
	uar_jw_cstr(w, "name", name);
	uar_jw_cstr(w, "title", title);
}

void mcp_list_templates(struct mcp_exchange *x)
{
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w;

	if (has_cursor(x))
		return;
	w = mcp_result_begin(x, &b);
	uar_jw_arr(&w, "resourceTemplates");
	put_template(&w, RUN_URI "{run_id}", "run", "The record of a run");
	uar_jw_cstr(&w, "mimeType", "application/json");
	uar_jw_close(&w);
	put_template(&w, RUN_URI "{run_id}/artifacts/{artifact_id}", "artifact",
		     "What a run made, in its current version");
	uar_jw_close(&w);
	mcp_put_offered(&w, x, UAR_MCP_TEMPLATES);
	uar_jw_close(&w);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	mcp_answer_result(x, &b);
}

/* --- one ------------------------------------------------------------------------------------ */

void mcp_answer_missing(struct mcp_exchange *x, uar_str uri)
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
		mcp_answer_missing(x, k->uri);
	else
		mcp_answer_problem(x, e, &error);
}

void mcp_read_resource(struct mcp_exchange *x)
{
	struct run_lookup *k = uar_arena_alloc(&x->c->arena, sizeof *k);
	uar_str uri = uar_json_text(x->m.params, "uri");
	uar_str run_id = uar_str_from(uri, sizeof RUN_URI - 1);

	if (!k) {
		mcp_answer_problem(x, UAR_ENOMEM, NULL);
	} else if (mcp_read_artifact(x, uri)) {
		return;
	} else if (!uar_str_starts(uri, UAR_STR(RUN_URI)) || !uar_str_is_id(run_id)) {
		if (!mcp_offer_request(x))
			mcp_answer_missing(x, uri);
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
	uar_str name = uar_json_text(x->m.params, "name");
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
