/* tooled.c - calls of internal tools, one at a time. */
#include "tooled.h"

#include "json/schema.h"
#include "tool/limits.h"
#include "test.h"

bool tooled_init(struct tooled *f, const char *files_dir)
{
	struct uar_internal_tools_options o = { .files_dir = files_dir };

	*f = (struct tooled){ .output = uar_buf_make(UAR_LIMIT_TOOL_OUTPUT + 1),
			      .message = uar_buf_make(1024) };
	if (!CHECK(uar_loop_create(&uar_clock_system, &f->loop) == UAR_OK))
		return false;
	o.sched = uar_loop_sched(f->loop);
	return CHECK(uar_internal_tools_create(&o, &f->tools, NULL) == UAR_OK);
}

void tooled_fini(struct tooled *f)
{
	uar_tools_destroy(f->tools);
	uar_loop_destroy(f->loop);
	uar_buf_fini(&f->output);
	uar_buf_fini(&f->message);
}

static void on_done(void *ctx, const struct uar_tool_result *r)
{
	struct tooled *f = ctx;

	f->dones++;
	f->call = NULL;
	f->ok = r->ok;
	f->retryable = r->retryable;
	uar_buf_clear(&f->output);
	uar_buf_clear(&f->message);
	uar_buf_add_str(&f->output, r->output);
	uar_buf_add_str(&f->message, r->message);
	snprintf(f->category, sizeof f->category, "%.*s", UAR_FMT(r->category));
	CHECK(r->ok ? r->category.n == 0 : r->category.n > 0 && r->message.n > 0);
	uar_loop_stop(f->loop);
}

struct uar_tool_events tooled_events(struct tooled *f)
{
	return (struct uar_tool_events){ .done = on_done, .ctx = f };
}

static uar_err begin(struct tooled *f, const char *tool_id, const char *input,
		     struct uar_error *error)
{
	struct uar_tool_events events = tooled_events(f);
	struct uar_tool_request r = { .tool = uar_tools_find(f->tools, NULL, uar_str_c(tool_id)),
				      .input = uar_str_c(input),
				      .key = UAR_STR("key"),
				      .run_id = UAR_STR("run") };
	unsigned before = f->dones;
	uar_err e = f->tools->ops->start(f->tools, &r, &events, &f->call, error);

	CHECK(f->dones == before);
	return e;
}

bool tooled_start(struct tooled *f, const char *tool_id, const char *input)
{
	struct uar_error error = { 0 };
	uar_err e = begin(f, tool_id, input, &error);

	return CHECK_MSG(e == UAR_OK, "%s %s: %s", tool_id, input, error.text);
}

bool tooled_try(struct tooled *f, const char *tool_id, const char *input)
{
	uar_err e = begin(f, tool_id, input, NULL);

	if (!e)
		uar_loop_run(f->loop);
	return !e;
}

bool tooled_call(struct tooled *f, const char *tool_id, const char *input)
{
	const struct uar_tool *tool = uar_tools_find(f->tools, NULL, uar_str_c(tool_id));
	struct uar_arena arena = { 0 };
	const struct uar_json *j = NULL;
	bool fine;

	if (!tooled_start(f, tool_id, input))
		return false;
	uar_loop_run(f->loop);
	fine = CHECK_MSG(f->ok, "%s %s: %s", tool_id, input, f->message.p ? f->message.p : "");
	if (fine)
		fine = CHECK(uar_json_parse(uar_buf_str(&f->output), NULL, &arena, &j, NULL) ==
			     UAR_OK) &&
		       CHECK(uar_schema_check_text(tool->output_schema, j, NULL) == UAR_OK);
	uar_arena_fini(&arena);
	return fine;
}

bool tooled_fails(struct tooled *f, const char *tool_id, const char *input, const char *category,
		  const char *word)
{
	if (!tooled_start(f, tool_id, input))
		return false;
	uar_loop_run(f->loop);
	return CHECK_MSG(!f->ok && strcmp(f->category, category) == 0 &&
				 strstr(f->message.p, word) != NULL,
			 "%s %s: %s, %s %s", tool_id, input, f->ok ? "fine" : "failed", f->category,
			 f->ok ? f->output.p : f->message.p);
}
