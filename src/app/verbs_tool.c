/* verbs_tool.c - tools: what there is; tool: call one, or make a recorded call again. */
#include "app/cli.h"
#include "app/limits.h"
#include "app/remote.h"
#include "app/text.h"
#include "event/sizes.h"

enum { WORD = 96 };

static int finish(struct uar_cli *cli, uar_err e, const struct uar_error *error,
		  struct uar_buf *out)
{
	int status =
		e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, error) : uar_cli_write(cli, out);

	uar_buf_fini(out);
	return status;
}

/* --- tools ---------------------------------------------------------------------------------- */

static void put_tools(struct uar_buf *out, const struct uar_json *list)
{
	for (const struct uar_json *t = uar_json_at(list, 0); t; t = t->next) {
		uar_text_brief(out, uar_json_text(t, "tool_id"), UAR_LIMIT_TOOL_NAME);
		uar_buf_printf(out, "  %.*s, %.*s  ", UAR_FMT(uar_json_text(t, "effect")),
			       UAR_FMT(uar_json_text(t, "policy")));
		uar_text_brief(out, uar_json_text(t, "description"), WORD);
		uar_buf_add_char(out, '\n');
	}
}

int uar_verb_tools(struct uar_cli *cli)
{
	struct uar_buf out = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e = uar_remote_ask(
		cli, &(struct uar_api_request){ .method = "GET", .path = "/api/tools" }, &a,
		&error);

	if (!e && cli->args->option[UAR_OPT_JSON])
		uar_buf_printf(&out, "%.*s\n", UAR_FMT(uar_buf_str(&a.text)));
	else if (!e)
		put_tools(&out, uar_json_get(a.root, UAR_STR("tools")));
	uar_remote_answer_fini(&a);
	return finish(cli, e, &error, &out);
}

/* --- a call --------------------------------------------------------------------------------- */

/* Whose own tools are meant as well; empty: nobody's. */
struct definer {
	uar_str agent_id, revision;
};

struct wanted_call {
	uar_str tool_id, arguments;
	struct definer of;
};

static uar_err ask_call(struct uar_cli *cli, const struct wanted_call *call,
			struct uar_remote_answer *a, struct uar_error *error)
{
	struct uar_buf body = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_jw w = uar_jw_begin(&body);
	const struct uar_json *args = NULL;
	struct uar_arena arena = { 0 };
	uar_err e = uar_json_parse(call->arguments, NULL, &arena, &args, error);

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "tool_id", call->tool_id);
	if (call->of.revision.n) {
		uar_jw_str(&w, "agent_id", call->of.agent_id);
		uar_jw_str(&w, "revision", call->of.revision);
	}
	if (!e)
		uar_jw_tree(&w, "arguments", args);
	uar_jw_close(&w);
	if (!e)
		e = uar_jw_end(&w);
	if (!e)
		e = uar_remote_ask(cli,
				   &(struct uar_api_request){ .method = "POST",
							      .path = "/api/tools/call",
							      .body = uar_buf_str(&body) },
				   a, error);
	uar_arena_fini(&arena);
	uar_buf_fini(&body);
	return e;
}

static int call_tool(struct uar_cli *cli)
{
	const struct uar_args *args = cli->args;
	struct wanted_call call = { .tool_id = uar_str_c(args->word[1]),
				    .arguments =
					    uar_str_c(args->words > 2 ? args->word[2] : "{}") };
	struct uar_buf out = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e = ask_call(cli, &call, &a, &error);
	const struct uar_json *failure = e ? NULL : uar_json_get(a.root, UAR_STR("error"));

	if (!e && args->option[UAR_OPT_JSON])
		uar_buf_printf(&out, "%.*s\n", UAR_FMT(uar_buf_str(&a.text)));
	else if (failure)
		e = uar_error_set(&error, UAR_EINVALID, "%.*s: %.*s",
				  UAR_FMT(uar_json_text(failure, "failure_category")),
				  UAR_FMT(uar_json_text(failure, "message")));
	else if (!e) {
		uar_json_write(&out, uar_json_get(a.root, UAR_STR("output")));
		uar_buf_add_char(&out, '\n');
	}
	uar_remote_answer_fini(&a);
	return finish(cli, e, &error, &out);
}

/* --- a call made again ---------------------------------------------------------------------- */

/* What the log says of the call. */
struct recorded {
	const char *run_id, *call_id;
	struct uar_buf tool_id, version, environment, arguments, output;
	struct uar_buf agent_id, revision; /* whose definition the run began with; empty: none */
	bool started, whole, ended, failed, over;
};

static void keep(struct uar_buf *to, uar_str text)
{
	uar_buf_clear(to);
	uar_buf_add_str(to, text);
}

static void keep_tree(struct uar_buf *to, const struct uar_json *j)
{
	uar_buf_clear(to);
	if (j)
		uar_json_write(to, j);
}

static void note(struct recorded *r, uar_str type, const struct uar_json *payload)
{
	const struct uar_json *args = uar_json_get(payload, UAR_STR("args"));

	if (uar_str_is(type, "tool.started")) {
		r->started = true;
		keep(&r->tool_id, uar_json_text(payload, "tool_id"));
		keep(&r->version, uar_json_text(payload, "tool_version"));
		keep(&r->environment, uar_json_text(payload, "environment_id"));
	} else if (uar_str_is(type, "tool.args")) {
		r->whole = args && args->kind == UAR_JSON_OBJECT;
		keep_tree(&r->arguments, args);
	} else if (uar_str_is(type, "tool.result") || uar_str_is(type, "tool.failed")) {
		r->ended = true;
		r->failed = uar_str_is(type, "tool.failed");
		keep_tree(&r->output, uar_json_get(payload, UAR_STR("preview")));
		r->whole &= !uar_json_bool(uar_json_get(payload, UAR_STR("truncated")), false);
	}
}

static void note_revision(struct recorded *r, const struct uar_json *event)
{
	uar_str ref = uar_json_text(uar_json_get(event, UAR_STR("refs")), "definition_ref");

	if (uar_str_starts(ref, UAR_STR("blob://")))
		keep(&r->revision, uar_str_from(ref, sizeof "blob://" - 1));
}

/* UAR_ESKIP: enough is known. */
static uar_err look(void *ctx, const struct uar_sse_event *ev)
{
	struct recorded *r = ctx;
	const struct uar_json *j = NULL;
	struct uar_arena arena = { 0 };
	uar_str type;

	if (uar_json_parse(ev->data, NULL, &arena, &j, NULL))
		j = NULL;
	type = uar_json_text(j, "type");
	if (uar_str_is(uar_json_text(j, "tool_call_id"), r->call_id))
		note(r, type, uar_json_get(j, UAR_STR("payload")));
	if (uar_str_is(uar_json_text(j, "run_id"), r->run_id))
		note_revision(r, j);
	if (uar_str_is(uar_json_text(j, "run_id"), r->run_id) &&
	    (uar_str_is(type, "turn.completed") || uar_str_is(type, "turn.failed")))
		r->over = true;
	uar_arena_fini(&arena);
	return r->ended || r->over ? UAR_ESKIP : UAR_OK;
}

static uar_err read_log(struct uar_cli *cli, struct recorded *r, struct uar_error *error)
{
	struct uar_buf path = uar_buf_make(4 * (size_t)UAR_LIMIT_ID_BYTES);
	struct uar_remote_answer record = { .root = NULL };
	struct uar_api api;
	uar_err e = uar_remote_record(cli, uar_str_c(r->run_id), &record, error);

	if (!e)
		e = uar_remote_find(cli, &api, error);
	if (!e) {
		keep(&r->agent_id, uar_json_text(record.root, "agent_id"));
		uar_buf_add_str(&path, UAR_STR("/api/sessions/"));
		uar_api_escape(&path, uar_json_text(record.root, "session_id"));
		uar_buf_add_str(&path, UAR_STR("/events?stored=1"));
		e = uar_api_stream(&api,
				   &(struct uar_api_request){ .method = "GET", .path = path.p },
				   look, r, error);
	}
	uar_remote_answer_fini(&record);
	uar_buf_fini(&path);
	if (e == UAR_ESKIP || !e)
		e = r->started && r->ended
			    ? UAR_OK
			    : uar_error_set(error, UAR_ENOTFOUND,
					    "the run has no such call, or it has no end");
	if (!e && (r->failed || !r->whole))
		e = uar_error_set(error, UAR_EINVALID, "%s",
				  r->failed ? "the call failed: there is no result to compare with"
					    : "its arguments or result lie beside the log, or hold "
					      "what is not recorded");
	if (!e && strstr(r->arguments.p ? r->arguments.p : "", "<redacted>"))
		e = uar_error_set(error, UAR_EINVALID,
				  "its arguments had secrets, which are not recorded");
	return e;
}

static bool is_equal(const struct recorded *r, const struct uar_json *output)
{
	const struct uar_json *before = NULL;
	struct uar_arena arena = { 0 };
	bool same =
		uar_json_parse(uar_buf_str(&r->output), NULL, &arena, &before, NULL) == UAR_OK &&
		output && uar_json_equal(before, output);

	uar_arena_fini(&arena);
	return same;
}

static void put_replay(struct uar_buf *out, const struct recorded *r, const struct uar_json *now)
{
	const struct uar_json *output = uar_json_get(now, UAR_STR("output"));
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "tool_id", uar_buf_str(&r->tool_id));
	uar_jw_str(&w, "recorded_version", uar_buf_str(&r->version));
	uar_jw_str(&w, "version", uar_json_text(now, "version"));
	uar_jw_str(&w, "recorded_environment_id", uar_buf_str(&r->environment));
	uar_jw_raw(&w, "arguments", uar_buf_str(&r->arguments));
	uar_jw_raw(&w, "recorded_output", uar_buf_str(&r->output));
	if (output)
		uar_jw_tree(&w, "output", output);
	else
		uar_jw_null(&w, "output");
	uar_jw_bool(&w, "equal", is_equal(r, output));
	uar_jw_close(&w);
	if (uar_jw_end(&w) && !out->err)
		out->err = UAR_EINVALID;
	uar_buf_add_char(out, '\n');
}

static uar_err replay(struct uar_cli *cli, struct recorded *r, struct uar_buf *out,
		      struct uar_error *error)
{
	struct uar_remote_answer a = { .root = NULL };
	uar_err e = read_log(cli, r, error);

	if (!e)
		e = ask_call(cli,
			     &(struct wanted_call){
				     uar_buf_str(&r->tool_id),
				     uar_buf_str(&r->arguments),
				     { uar_buf_str(&r->agent_id), uar_buf_str(&r->revision) } },
			     &a, error);
	if (!e && cli->args->option[UAR_OPT_JSON])
		put_replay(out, r, a.root);
	else if (!e)
		uar_buf_printf(out, "%.*s %.*s: %s\n", UAR_FMT(uar_buf_str(&r->tool_id)),
			       UAR_FMT(uar_buf_str(&r->arguments)),
			       is_equal(r, uar_json_get(a.root, UAR_STR("output")))
				       ? "the same result"
				       : "another result");
	uar_remote_answer_fini(&a);
	return e;
}

static int replay_call(struct uar_cli *cli)
{
	char run_id[UAR_LIMIT_ID_BYTES + 1];
	struct recorded r = { .run_id = run_id, .call_id = cli->args->word[2] };
	struct uar_buf *const bufs[] = { &r.tool_id, &r.version,  &r.environment, &r.arguments,
					 &r.output,  &r.agent_id, &r.revision };
	struct uar_buf out = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_error error = { 0 };
	uar_err e;

	for (size_t i = 0; i < ARRAY_LEN(bufs); i++)
		*bufs[i] = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	e = uar_remote_run_id(cli, cli->args->word[1], run_id, &error);
	if (!e)
		e = replay(cli, &r, &out, &error);
	for (size_t i = 0; i < ARRAY_LEN(bufs); i++)
		uar_buf_fini(bufs[i]);
	return finish(cli, e, &error, &out);
}

int uar_verb_tool(struct uar_cli *cli)
{
	const struct uar_args *args = cli->args;

	if (!strcmp(args->word[0], "call"))
		return call_tool(cli);
	if (!strcmp(args->word[0], "replay") && args->words == 3)
		return replay_call(cli);
	return uar_cli_fail(cli, UAR_EXIT_USAGE,
			    "uar tool call TOOL [JSON], or uar tool replay RUN CALL");
}
