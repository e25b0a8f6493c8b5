/* check_log.c - the rules of a log, held against a store or a server's streams. */
#include "app/check_log.h"

#include "app/limits.h"
#include "app/remote.h"
#include "app/text.h"
#include "base/alloc.h"
#include "base/map.h"
#include "http/limits.h"

static void keep_first(void *ctx, const struct uar_violation *v)
{
	struct uar_log_check *k = ctx;

	if (!k->first.rule)
		k->first = *v;
}

uar_err uar_log_check_init(struct uar_log_check *k)
{
	*k = (struct uar_log_check){ .validator = NULL };
	return uar_validator_create(keep_first, k, &k->validator);
}

void uar_log_check_fini(struct uar_log_check *k)
{
	uar_validator_destroy(k->validator);
	k->validator = NULL;
}

void uar_log_check_report(const struct uar_log_check *k, struct uar_buf *notes,
			  struct uar_buf *problems)
{
	struct uar_validated n = uar_validator_counts(k->validator);
	const struct uar_violation *v = &k->first;

	uar_buf_printf(notes,
		       "log            %llu events of %llu sessions, %llu runs, %llu tool calls, "
		       "%llu questions\n",
		       (unsigned long long)n.events, (unsigned long long)n.sessions,
		       (unsigned long long)n.runs, (unsigned long long)n.tool_calls,
		       (unsigned long long)n.actions);
	if (!v->rule)
		return;
	uar_buf_printf(problems, "log: rule %s: %s\n", v->rule, v->text);
	if (v->sequence)
		uar_buf_printf(problems, "     %s, event %s, sequence %llu\n", v->type, v->event_id,
			       (unsigned long long)v->sequence);
	uar_buf_printf(problems, "     session %s%s%s\n", v->session_id,
		       v->run_id[0] ? ", run " : "", v->run_id);
	if (n.violations > 1)
		uar_buf_printf(problems, "     and %llu more\n",
			       (unsigned long long)n.violations - 1);
}

/* --- a server ------------------------------------------------------------------------- */

enum { SESSIONS_AT_MOST = 100000 };

struct session_names {
	struct uar_arena arena;
	struct uar_map known;
	uar_str *ids;
	size_t count;
};

struct server_check {
	struct uar_cli *cli;
	struct uar_api api;
	struct uar_log_check log;
	struct session_names names;
	struct uar_arena event;
};

static uar_err add_name(struct session_names *s, uar_str id, struct uar_error *error)
{
	uar_err e;

	if (!uar_str_is_id(id) || uar_map_get(&s->known, id))
		return UAR_OK;
	if (s->count == SESSIONS_AT_MOST)
		return uar_error_set(error, UAR_ETOOBIG, "the server has more than %d sessions",
				     SESSIONS_AT_MOST);
	s->ids[s->count] = uar_arena_str(&s->arena, id);
	if (!s->ids[s->count].p)
		return UAR_ENOMEM;
	e = uar_map_put(&s->known, s->ids[s->count], &s->ids[s->count]);
	s->count += !e;
	return e;
}

enum { CURSOR_BYTES = 256 };

/* One page of sessions, also of those without a run; *cursor is where the next one begins, or
 * empty. */
static uar_err read_names(struct server_check *k, char cursor[CURSOR_BYTES],
			  struct uar_error *error)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_HTTP_TARGET);
	struct uar_remote_answer a = { .root = NULL };
	const struct uar_json *sessions;
	uar_str last = UAR_STR("");
	uar_err e;

	uar_buf_add_str(&path, UAR_STR("/api/sessions?kind=any&limit=100"));
	if (cursor[0]) {
		uar_buf_add_str(&path, UAR_STR("&cursor="));
		uar_api_escape(&path, uar_str_c(cursor));
	}
	e = uar_remote_ask(k->cli, &(struct uar_api_request){ .method = "GET", .path = path.p }, &a,
			   error);
	cursor[0] = 0;
	sessions = e ? NULL : uar_json_get(a.root, UAR_STR("sessions"));
	for (const struct uar_json *s = uar_json_at(sessions, 0); s && !e; s = s->next)
		e = add_name(&k->names, uar_json_text(s, "session_id"), error);
	last = e ? last : uar_json_text(a.root, "next_cursor");
	if (last.n < CURSOR_BYTES)
		snprintf(cursor, CURSOR_BYTES, "%.*s", UAR_FMT(last));
	uar_remote_answer_fini(&a);
	uar_buf_fini(&path);
	return e;
}

static uar_err on_event(void *ctx, const struct uar_sse_event *sse)
{
	struct server_check *k = ctx;
	const struct uar_json *j;
	struct uar_event ev;
	uar_err e;

	if (!sse->data.n)
		return UAR_OK;
	e = uar_json_parse(sse->data, NULL, &k->event, &j, NULL);
	if (!e)
		e = uar_event_read(j, NULL, &k->event, &ev, NULL);
	if (!e)
		e = uar_validator_event(k->log.validator, &ev);
	uar_arena_reset(&k->event);
	return e;
}

static uar_err check_session(struct server_check *k, uar_str id, struct uar_error *error)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_HTTP_TARGET);
	uar_err e;

	uar_buf_add_str(&path, UAR_STR("/api/sessions/"));
	uar_api_escape(&path, id);
	uar_buf_add_str(&path, UAR_STR("/events?stored=1"));
	e = uar_api_stream(&k->api, &(struct uar_api_request){ .method = "GET", .path = path.p },
			   on_event, k, error);
	uar_buf_fini(&path);
	return e;
}

static uar_err check_sessions(struct server_check *k, struct uar_error *error)
{
	char cursor[CURSOR_BYTES] = "";
	uar_err e = uar_remote_find(k->cli, &k->api, error);

	do {
		if (!e)
			e = read_names(k, cursor, error);
	} while (!e && cursor[0]);
	for (size_t i = 0; i < k->names.count && !e; i++)
		e = check_session(k, k->names.ids[i], error);
	return e;
}

static int tell(struct server_check *k, uar_err e, struct uar_error *error)
{
	struct uar_buf notes = uar_buf_make(UAR_LIMIT_CONFIG_PROBLEMS);
	struct uar_buf problems = uar_buf_make(UAR_LIMIT_CONFIG_PROBLEMS);
	struct uar_buf clean = uar_buf_make(2 * (size_t)UAR_LIMIT_CONFIG_PROBLEMS);
	int status;

	uar_log_check_report(&k->log, &notes, &problems);
	fprintf(k->cli->out, "server         %s\n%.*s", k->api.url, UAR_FMT(uar_buf_str(&notes)));
	uar_text_clean(&clean, uar_buf_str(&problems), true);
	fprintf(k->cli->err, "%.*s", UAR_FMT(uar_buf_str(&clean)));
	status = e	      ? uar_cli_fail_with(k->cli, UAR_EXIT_FAILED, e, error)
		 : problems.n ? UAR_EXIT_FAILED
			      : UAR_EXIT_OK;
	if (!e)
		fprintf(k->cli->out, "%s\n", problems.n ? "the log breaks a rule" : "ok");
	uar_buf_fini(&clean);
	uar_buf_fini(&problems);
	uar_buf_fini(&notes);
	return status;
}

int uar_log_check_server(struct uar_cli *cli)
{
	struct server_check k = { .cli = cli };
	struct uar_error error = { 0 };
	uar_err e = uar_log_check_init(&k.log);
	int status;

	uar_arena_init(&k.names.arena, 0);
	uar_arena_init(&k.event, 0);
	uar_map_init(&k.names.known, 0);
	k.names.ids = e ? NULL : uar_alloc(SESSIONS_AT_MOST * sizeof *k.names.ids);
	if (!k.names.ids)
		e = UAR_ENOMEM;
	if (!e)
		e = check_sessions(&k, &error);
	status = k.log.validator ? tell(&k, e, &error)
				 : uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error);
	uar_log_check_fini(&k.log);
	uar_map_fini(&k.names.known);
	uar_free(k.names.ids);
	uar_arena_fini(&k.names.arena);
	uar_arena_fini(&k.event);
	return status;
}
