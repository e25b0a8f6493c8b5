/* verbs_workflow.c - `uar workflow check`: all that is wrong with a workflow, by line. */
#include "agent/definition.h"
#include "agent/limits.h"
#include "agent/source.h"
#include "app/cli.h"
#include "app/limits.h"
#include "base/alloc.h"
#include "base/file.h"
#include "flow/flow.h"

struct checked {
	const char *file;
	uar_str json; /* every value on the line that it has in the file */
	struct uar_flow_problems problems;
	struct uar_definition definition; /* when nothing is wrong */
};

static void put_text(struct uar_buf *out, const struct checked *c)
{
	for (size_t i = 0; i < c->problems.count; i++) {
		const struct uar_flow_problem *p = &c->problems.at[i];

		uar_buf_printf(out, "%s:%zu %s: %s%s. %s\n", c->file,
			       uar_source_line(c->json, uar_str_c(p->pointer)), p->pointer,
			       p->warning ? "warning: " : "", p->message, p->next_step);
	}
	if (!c->problems.errors)
		uar_buf_printf(out, "%s: workflow %.*s is right, revision %.12s\n", c->file,
			       UAR_FMT(c->definition.info.agent_id), c->definition.revision);
}

static uar_err put_json(struct uar_buf *out, const struct checked *c)
{
	struct uar_jw w = uar_jw_begin(out);
	uar_err e;

	uar_jw_obj(&w, NULL);
	uar_flow_write_problems(&w, &c->problems);
	uar_jw_arr(&w, "lines");
	for (size_t i = 0; i < c->problems.count; i++)
		uar_jw_u64(&w, NULL,
			   uar_source_line(c->json, uar_str_c(c->problems.at[i].pointer)));
	uar_jw_close(&w);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	uar_buf_add_char(out, '\n');
	return e;
}

static int tell(struct uar_cli *cli, const struct checked *c)
{
	struct uar_buf out = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	uar_err e = UAR_OK;
	int status;

	if (cli->args->option[UAR_OPT_JSON])
		e = put_json(&out, c);
	else
		put_text(&out, c);
	if (e && !out.err)
		out.err = e;
	status = uar_cli_write(cli, &out);
	uar_buf_fini(&out);
	return status == UAR_EXIT_OK && c->problems.errors ? UAR_EXIT_FAILED : status;
}

static int fail(struct uar_cli *cli, const char *file, uar_err e, const struct uar_error *error)
{
	return uar_cli_fail_as(cli, UAR_EXIT_FAILED, e, "%s%s%s",
			       error->where[0] ? error->where : file, ": ", uar_error_text(error));
}

/* The graph first: of what is wrong with it all is told. */
static int check_text(struct uar_cli *cli, struct checked *c, uar_str source)
{
	const struct uar_json *j = NULL;
	struct uar_error error = { 0 };
	struct uar_arena arena;
	int status;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(c->json, NULL, &arena, &j, NULL);
	if (!e && uar_json_get(j, UAR_STR("workflow")))
		uar_flow_check(j, NULL, &c->problems);
	if (e || !c->problems.errors)
		e = uar_definition_read_file(c->file, source, &c->definition, &error);
	if (!e && !c->problems.errors && !uar_str_is(c->definition.info.entry, "workflow.run")) {
		uar_definition_fini(&c->definition);
		e = uar_error_set(&error, UAR_ESCHEMA,
				  "this agent is no workflow: runtime.entry is not workflow.run");
	}
	status = e ? fail(cli, c->file, e, &error) : tell(cli, c);
	if (!e && !c->problems.errors)
		uar_definition_fini(&c->definition);
	uar_arena_fini(&arena);
	return status;
}

int uar_verb_workflow(struct uar_cli *cli)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_AGENT_DEFINITION);
	struct uar_buf json = uar_buf_make(2 * UAR_LIMIT_AGENT_DEFINITION);
	const char *path = cli->args->word[1];
	const char *slash = strrchr(path, '/');
	struct uar_error error = { 0 };
	struct checked *c;
	uar_err e;
	int status;

	if (strcmp(cli->args->word[0], "check") != 0)
		return uar_cli_fail(cli, UAR_EXIT_USAGE, "workflow %s: it can check",
				    cli->args->word[0]);
	c = uar_zalloc(sizeof *c);
	e = c ? uar_file_read(path, &text, &error) : UAR_ENOMEM;
	if (!e)
		e = uar_source_read(uar_str_c(path), uar_buf_str(&text), &json, &error);
	if (c) {
		c->file = slash ? slash + 1 : path;
		c->json = uar_buf_str(&json);
	}
	status = e ? fail(cli, path, e, &error) : check_text(cli, c, uar_buf_str(&text));
	uar_free(c);
	uar_buf_fini(&text);
	uar_buf_fini(&json);
	return status;
}
