/* skill_script.c - a script is a child in its skill's folder: no shell between, no secrets in its
 * environment, its output bounded. Each call is asked for, and none is made twice. */
#include "tool/skill_script.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/list.h"
#include "json/limits.h"
#include "json/schema.h"
#include "loop/child.h"
#include "tool/internal_int.h"

enum { TIMEOUT_US = 120 * 1000 * 1000, ENV_BYTES = 8192, FIXED_ARGS = 3 };

static const char input_schema[] =
	"{\"type\":\"object\",\"required\":[\"folder\",\"path\"],\"properties\":{"
	"\"folder\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":200,\"pattern\":"
	"\"^[^/.][^/]*$\",\"description\":\"Of the skill, as its text says.\"},"
	"\"path\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":1024,\"description\":"
	"\"In that folder, such as scripts/convert.py.\"},"
	"\"arguments\":{\"type\":\"array\",\"maxItems\":64,\"items\":{\"type\":\"string\","
	"\"maxLength\":4096}},"
	"\"input\":{\"type\":\"string\",\"maxLength\":65536,\"description\":\"Its standard "
	"input.\"}},\"additionalProperties\":false}";
static const char output_schema[] =
	"{\"type\":\"object\",\"required\":[\"status\",\"output\",\"errors\"],\"properties\":{"
	"\"status\":{\"type\":\"integer\"},\"output\":{\"type\":\"string\"},\"errors\":{\"type\":"
	"\"string\"},\"truncated\":{\"type\":\"boolean\"}}}";

static const struct uar_tool skill_run = {
	.tool_id = UAR_STR("internal:skill.run"),
	.name = UAR_STR("skill.run"),
	.model_name = UAR_STR("internal__skill_run"),
	.description = UAR_STR("Runs a script in the folder of a skill, when a person allows it, "
			       "and gives its status and what it wrote."),
	.version = UAR_STR("1"),
	.transport = UAR_STR("internal"),
	.tags = UAR_STR("[\"skills\"]"),
	.capabilities = UAR_STR("[\"process\"]"),
	.input_schema = { input_schema, sizeof input_schema - 1 },
	.output_schema = { output_schema, sizeof output_schema - 1 },
	.effect = UAR_TOOL_ONCE,
	.destructive = true,
	.ask = true,
	.timeout_us = TIMEOUT_US,
};

struct scripts {
	struct uar_tools base; /* first: the ops get it back by a cast */
	struct uar_loop *loop;
	struct uar_list calls;
	char dir[UAR_LIMIT_URI_BYTES];
};

struct uar_tool_call {
	struct uar_list node;
	struct scripts *tools;
	struct uar_tool_events events;
	bool unheard; /* its end is waited for, and told to no one */
	struct uar_child *child;
	struct uar_timer timer;
	struct uar_buf output, errors;
	bool truncated;
};

static struct scripts *scripts_of(struct uar_tools *t)
{
	return (struct scripts *)(void *)t;
}

static void free_call(struct uar_tool_call *c)
{
	uar_list_remove(&c->node);
	uar_timer_stop(uar_loop_sched(c->tools->loop), &c->timer);
	uar_child_destroy(c->child);
	uar_buf_fini(&c->output);
	uar_buf_fini(&c->errors);
	uar_free(c);
}

/* --- what it writes ------------------------------------------------------------------------- */

static void keep(struct uar_tool_call *c, struct uar_buf *to, uar_str bytes)
{
	size_t room = to->max - to->n;

	if (bytes.n > room) {
		c->truncated = true;
		bytes.n = room;
	}
	uar_buf_add_str(to, bytes);
}

static void on_output(void *ctx, uar_str bytes)
{
	struct uar_tool_call *c = ctx;

	keep(c, &c->output, bytes);
}

static void on_errors(void *ctx, uar_str bytes)
{
	struct uar_tool_call *c = ctx;

	keep(c, &c->errors, bytes);
}

static void put_text(struct uar_jw *w, const char *key, const struct uar_buf *b)
{
	uar_str text = uar_tool_whole_text(uar_buf_str(b), true);

	uar_jw_str(w, key, text.p ? text : UAR_STR("(it is no text)"));
}

static void on_exited(void *ctx, int status)
{
	struct uar_tool_call *c = ctx;
	struct uar_tool_events events = c->events;
	struct uar_buf out = uar_buf_make(UAR_LIMIT_TOOL_OUTPUT);
	struct uar_jw w = uar_jw_begin(&out);
	bool unheard = c->unheard;
	struct uar_tool_result r = { .category = UAR_STR("result_too_large"),
				     .message = UAR_STR("what it wrote is too long") };

	uar_jw_obj(&w, NULL);
	uar_jw_int(&w, "status", status);
	put_text(&w, "output", &c->output);
	put_text(&w, "errors", &c->errors);
	uar_jw_bool(&w, "truncated", c->truncated);
	uar_jw_close(&w);
	if (!uar_jw_end(&w))
		r = (struct uar_tool_result){ .ok = true, .output = uar_buf_str(&out) };
	free_call(c);
	if (!unheard)
		events.done(events.ctx, &r);
	uar_buf_fini(&out);
}

static void on_timer(struct uar_timer *t)
{
	struct uar_tool_call *c = UAR_OWNER(t, struct uar_tool_call, timer);
	struct uar_tool_events events = c->events;
	struct uar_tool_result r = { .category = UAR_STR("timeout"),
				     .message = UAR_STR("the script took too long and is ended") };

	c->unheard = true;
	uar_child_kill(c->child);
	events.done(events.ctx, &r);
}

/* --- the command ---------------------------------------------------------------------------- */

struct command {
	char folder[UAR_LIMIT_URI_BYTES * 2], path[UAR_LIMIT_TOOL_PATH + 3];
	char env_path[ENV_BYTES], env_home[UAR_LIMIT_URI_BYTES * 2 + 8];
	const char *argv[64 + FIXED_ARGS];
	const char *env[4];
	uar_str input;
};

/* By its ending; NULL: the file itself is the program. */
static const char *interpreter_of(const char *path, mode_t mode)
{
	static const struct {
		const char *ending, *program;
	} known[] = {
		{ ".py", "python3" }, { ".sh", "sh" }, { ".js", "node" }, { ".mjs", "node" }
	};

	for (size_t i = 0; !(mode & S_IXUSR) && i < ARRAY_LEN(known); i++)
		if (uar_str_ends(uar_str_c(path), uar_str_c(known[i].ending)))
			return known[i].program;
	return NULL;
}

/* Behind the fence of the skill's folder, which the kernel holds. */
static uar_err find_script(struct command *m, const char *path, mode_t *out_mode,
			   struct uar_error *error)
{
	int dir = open(m->folder, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;
	struct stat st;

	if (dir < 0)
		return uar_error_set(error, UAR_EINVALID, "there is no skill in this folder");
	fd = uar_tool_open_beneath(dir, path, O_PATH);
	close(dir);
	if (fd < 0)
		return uar_error_set(error, UAR_EINVALID,
				     "there is no such script in the folder of the skill");
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return uar_error_set(error, UAR_EINVALID, "this is not a file");
	}
	close(fd);
	*out_mode = st.st_mode;
	return UAR_OK;
}

static uar_err add_arguments(struct command *m, size_t n, const struct uar_json *list,
			     struct uar_arena *arena)
{
	for (const struct uar_json *a = uar_json_at(list, 0); a; a = a->next) {
		uar_str text = uar_arena_str(arena, a->text); /* ends with 0 */

		if (!text.p || memchr(a->text.p, 0, a->text.n))
			return text.p ? UAR_EINVALID : UAR_ENOMEM;
		m->argv[n++] = text.p;
	}
	m->argv[n] = NULL;
	return UAR_OK;
}

static void set_environment(struct command *m)
{
	const char *path = getenv("PATH");

	snprintf(m->env_path, sizeof m->env_path, "PATH=%s", path ? path : "/usr/bin:/bin");
	snprintf(m->env_home, sizeof m->env_home, "HOME=%s", m->folder);
	m->env[0] = m->env_path;
	m->env[1] = m->env_home;
	m->env[2] = "LANG=C.UTF-8";
	m->env[3] = NULL;
}

static uar_err read_command(const struct scripts *t, uar_str input, struct uar_arena *arena,
			    struct command *m, struct uar_error *error)
{
	const struct uar_json *j = NULL;
	uar_str folder, path;
	const char *program;
	mode_t mode = 0;
	size_t n = 0;
	uar_err e = uar_json_parse(input, NULL, arena, &j, error);

	if (e)
		return e;
	folder = uar_json_text(j, "folder");
	path = uar_json_text(j, "path");
	m->input = uar_json_text(j, "input");
	if (memchr(path.p, 0, path.n) || memchr(folder.p, 0, folder.n) ||
	    path.n > UAR_LIMIT_TOOL_PATH)
		return uar_error_set(error, UAR_EINVALID, "this is not a path");
	snprintf(m->folder, sizeof m->folder, "%s/%.*s", t->dir, UAR_FMT(folder));
	snprintf(m->path, sizeof m->path, "./%.*s", UAR_FMT(path));
	e = find_script(m, m->path + 2, &mode, error);
	if (e)
		return e;
	program = interpreter_of(m->path, mode);
	if (program)
		m->argv[n++] = program;
	m->argv[n++] = m->path;
	set_environment(m);
	return add_arguments(m, n, uar_json_get(j, UAR_STR("arguments")), arena);
}

/* --- the port ------------------------------------------------------------------------------- */

static const struct uar_tool *at(struct uar_tools *tools, size_t index)
{
	(void)tools;
	return index ? NULL : &skill_run;
}

static uar_err check(struct uar_tools *tools, const struct uar_tool *tool, uar_str input,
		     struct uar_error *error)
{
	static const struct uar_json_limits limits = { .bytes = UAR_LIMIT_TOOL_INPUT };
	const struct uar_json *j;
	struct uar_arena arena;
	uar_err e;

	(void)tools, (void)tool;
	uar_arena_init(&arena, 0);
	e = uar_json_parse(input, &limits, &arena, &j, error);
	if (e && e != UAR_ENOMEM)
		e = UAR_EINVALID;
	else if (!e)
		e = uar_schema_check_text(skill_run.input_schema, j, error);
	if (e && error)
		error->code = e;
	uar_arena_fini(&arena);
	return e;
}

static uar_err start_child(struct uar_tool_call *c, const struct command *m,
			   struct uar_error *error)
{
	struct uar_child_options o = { .argv = m->argv,
				       .env = m->env,
				       .cwd = m->folder,
				       .output = on_output,
				       .errors = on_errors,
				       .exited = on_exited,
				       .ctx = c };
	uar_err e = uar_child_start(c->tools->loop, &o, &c->child, error);

	if (!e && m->input.n)
		e = uar_child_write(c->child, m->input);
	if (!e)
		uar_child_end_input(c->child);
	return e ? e : uar_timer_set(uar_loop_sched(c->tools->loop), &c->timer, TIMEOUT_US);
}

static uar_err start(struct uar_tools *tools, const struct uar_tool_request *r,
		     const struct uar_tool_events *events, struct uar_tool_call **out,
		     struct uar_error *error)
{
	struct command *m = uar_zalloc(sizeof *m);
	struct uar_tool_call *c = uar_zalloc(sizeof *c);
	struct uar_arena arena;
	uar_err e = m && c ? check(tools, r->tool, r->input, error) : UAR_ENOMEM;

	uar_arena_init(&arena, 0);
	if (!e)
		e = read_command(scripts_of(tools), r->input, &arena, m, error);
	if (c) {
		c->tools = scripts_of(tools);
		c->events = *events;
		c->timer.fn = on_timer;
		c->output = uar_buf_make(UAR_LIMIT_SCRIPT_OUTPUT);
		c->errors = uar_buf_make(UAR_LIMIT_SCRIPT_OUTPUT);
		uar_list_add_last(&c->tools->calls, &c->node);
	}
	if (!e)
		e = start_child(c, m, error);
	if (!e)
		*out = c;
	else if (c)
		free_call(c);
	uar_arena_fini(&arena);
	uar_free(m);
	return e;
}

static void cancel(struct uar_tools *tools, struct uar_tool_call *c)
{
	(void)tools;
	c->unheard = true;
	uar_child_kill(c->child);
}

/* It may have changed something from its first moment on: it is ended, and `done` tells so. */
static bool withdraw(struct uar_tools *tools, struct uar_tool_call *c)
{
	(void)tools;
	uar_child_kill(c->child);
	return false;
}

static void destroy(struct uar_tools *tools)
{
	struct scripts *t = scripts_of(tools);

	while (!uar_list_empty(&t->calls))
		free_call(UAR_OWNER(t->calls.next, struct uar_tool_call, node));
	uar_free(t);
}

static const struct uar_tools_ops script_ops = {
	.abi = 1,
	.size = sizeof(struct uar_tools_ops),
	.destroy = destroy,
	.at = at,
	.check = check,
	.start = start,
	.cancel = cancel,
	.withdraw = withdraw,
};

uar_err uar_skill_script_create(struct uar_loop *loop, const char *skills_dir,
				struct uar_tools **out)
{
	struct scripts *t = uar_zalloc(sizeof *t);

	if (!t)
		return UAR_ENOMEM;
	t->base.ops = &script_ops;
	t->loop = loop;
	uar_list_init(&t->calls);
	snprintf(t->dir, sizeof t->dir, "%s", skills_dir);
	*out = &t->base;
	return UAR_OK;
}
