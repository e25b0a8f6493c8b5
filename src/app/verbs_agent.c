/* verbs_agent.c - `uar agent`: a new definition, whether one is right, what one amounts to. */
#include <errno.h>
#include <poll.h>
#include <sys/stat.h>

#include "agent/prompt.h"
#include "agent/registry.h"
#include "agent/source.h"
#include "app/agent_openapi.h"
#include "app/author.h"
#include "app/datadir.h"
#include "app/limits.h"
#include "app/remote.h"
#include "app/text.h"
#include "app/verbs_agent.h"
#include "tool/http_source.h"
#include "base/embed.h"
#include "json/limits.h"
#include "work/work.h"

UAR_EMBED(uar_agent_template, "sdk/templates/agent.yaml");

/* How long a running server may take to notice a new file, and how often it is asked. */
enum { NOTICE_MS = 5000, LOOK_MS = 50 };

/* --- new ------------------------------------------------------------------------------ */

static bool is_agent_name(uar_str s)
{
	bool good = s.n >= 1 && s.n <= UAR_LIMIT_AGENT_ID;

	for (size_t i = 0; i < s.n && good; i++)
		good = (s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= 'A' && s.p[i] <= 'Z') ||
		       (s.p[i] >= '0' && s.p[i] <= '9') || (i > 0 && strchr("._:-", s.p[i]));
	return good;
}

void uar_agents_dir(const struct uar_config *c, struct uar_buf *out)
{
	if (c->agents_dir[0])
		uar_buf_add_str(out, uar_str_c(c->agents_dir));
	else
		uar_buf_printf(out, "%s/agents", c->data);
}

static void fill_in(struct uar_buf *out, uar_str name, uar_str file)
{
	static const uar_str name_mark = UAR_STR("@NAME@"), file_mark = UAR_STR("@FILE@");
	uar_str text = UAR_EMBEDDED(uar_agent_template);

	while (text.n) {
		size_t at = uar_str_find(text, '@');

		uar_buf_add(out, text.p, at);
		text = uar_str_from(text, at);
		if (uar_str_starts(text, name_mark)) {
			uar_buf_add_str(out, name);
			text = uar_str_from(text, name_mark.n);
		} else if (uar_str_starts(text, file_mark)) {
			uar_text_shell(out, file);
			text = uar_str_from(text, file_mark.n);
		} else if (text.n) {
			uar_buf_add_char(out, '@');
			text = uar_str_from(text, 1);
		}
	}
}

static int write_new(struct uar_cli *cli, const struct uar_buf *path, const struct uar_buf *text)
{
	FILE *f = path->err || text->err ? NULL : fopen(path->p, "wxe");
	bool good = f && fwrite(text->p, 1, text->n, f) == text->n;

	if (f && fclose(f) == 0 && good)
		return UAR_EXIT_OK;
	return uar_cli_fail(cli, UAR_EXIT_FAILED, "%s: %s", path->p ? path->p : "",
			    strerror(errno));
}

enum notice { NO_SERVER, NOTICED, NOT_YET };

static bool is_not_yet(uar_err e)
{
	return e == UAR_ENOTFOUND || e == UAR_EBUSY; /* it is busy while it reads definitions */
}

/* Waits until the server of the data directory knows the agent, so that what follows in a script
 * finds it. One that cannot be asked counts as none: the file is written in any case. */
static enum notice wait_noticed(const struct uar_cli *cli, uar_str name)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_URI_BYTES);
	struct uar_buf answer = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	struct uar_api_request ask = { .method = "GET" };
	struct uar_server_info info = { .pid = 0 };
	struct uar_error error = { 0 };
	int64_t end = uar_clock_mono(cli->clock) + NOTICE_MS * 1000LL;
	unsigned asked = 0;
	struct uar_api api;
	uar_err e = uar_datadir_server(cli->config->value.data, &info, &error);

	if (!e)
		e = info.url[0] ? uar_remote_find(cli, &api, &error) : UAR_ENOTFOUND;
	if (e || !api.local)
		return NO_SERVER;
	api.answer_ms = NOTICE_MS;
	uar_buf_add_str(&path, UAR_STR("/api/agents/"));
	uar_api_escape(&path, name);
	ask.path = path.p;
	e = path.err ? path.err : UAR_ENOTFOUND;
	while (is_not_yet(e) && uar_clock_mono(cli->clock) < end) {
		if (asked++)
			(void)poll(NULL, 0, LOOK_MS);
		uar_buf_clear(&answer);
		e = uar_api_call(&api, &ask, &answer, &error);
	}
	uar_buf_fini(&path);
	uar_buf_fini(&answer);
	return is_not_yet(e) ? NOT_YET : e ? NO_SERVER : NOTICED;
}

static void put_new(struct uar_buf *out, uar_str name, uar_str path, enum notice n)
{
	static const char *const told[] = {
		[NO_SERVER] = "",
		[NOTICED] = "\nthe running server knows it",
		[NOT_YET] = ("\nthe running server does not know it yet: does it read this "
			     "directory? On SIGHUP it reads again"),
	};

	uar_buf_add_str(out, UAR_STR("wrote "));
	uar_text_clean(out, path, false);
	uar_buf_add_str(out, uar_str_c(told[n]));
	uar_buf_add_str(out, UAR_STR("\nedit it, then: uar chat "));
	uar_buf_add_str(out, name);
}

static int tell_new(struct uar_cli *cli, uar_str name, const struct uar_buf *path, enum notice n)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_jw w = uar_jw_begin(&text);
	int status;

	if (cli->args->option[UAR_OPT_JSON]) {
		uar_jw_obj(&w, NULL);
		uar_jw_str(&w, "agent_id", name);
		uar_jw_str(&w, "file", uar_buf_str(path));
		if (n != NO_SERVER)
			uar_jw_bool(&w, "noticed", n == NOTICED);
		uar_jw_close(&w);
		text.err = uar_jw_end(&w);
	} else {
		put_new(&text, name, uar_buf_str(path), n);
	}
	uar_buf_add_char(&text, '\n');
	status = uar_cli_write(cli, &text);
	uar_buf_fini(&text);
	return status;
}

/* A name is a file of the agents directory; what has a slash or an ending is a path. */
static int make_agent(struct uar_cli *cli, const char *word)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_URI_BYTES);
	struct uar_buf text = uar_buf_make(UAR_LIMIT_AGENT_DEFINITION);
	const char *slash = strrchr(word, '/');
	uar_str name = uar_str_c(slash ? slash + 1 : word);
	bool is_path = slash || uar_source_is_named(name);
	struct uar_error error = { 0 };
	int status;

	if (uar_source_is_named(name))
		name.n = (size_t)(strrchr(name.p, '.') - name.p);
	if (!is_agent_name(name))
		return uar_cli_fail(cli, UAR_EXIT_USAGE,
				    "\"%.*s\" cannot be the id of an agent: letters, digits, and "
				    "inside also . _ : -",
				    UAR_FMT(uar_str_utf8_prefix(name, 80)));
	if (uar_agent_find(name))
		return uar_cli_fail(cli, UAR_EXIT_USAGE,
				    "an agent %.*s is part of the program; choose another id",
				    UAR_FMT(name));
	if (slash && !uar_source_is_named(uar_str_c(slash + 1)))
		return uar_cli_fail(cli, UAR_EXIT_USAGE,
				    "\"%s\" is neither the id of an agent nor a path that ends "
				    "with .yaml or .json",
				    word);
	if (!is_path) {
		uar_agents_dir(&cli->config->value, &path);
		if (!path.err && !uar_datadir_create(cli->config->value.data, &error))
			(void)mkdir(path.p,
				    0700); /* or the file cannot be written, which is told */
	}
	uar_buf_printf(&path, is_path ? "%s" : "/%s.yaml", word);
	fill_in(&text, name, uar_buf_str(&path));
	status = write_new(cli, &path, &text);
	if (status == UAR_EXIT_OK)
		status = tell_new(cli, name, &path, is_path ? NO_SERVER : wait_noticed(cli, name));
	uar_buf_fini(&path);
	uar_buf_fini(&text);
	return status;
}

/* --- check ----------------------------------------------------------------------------------- */

static void put_inactive(struct uar_buf *out, const struct uar_definition *d)
{
	struct uar_definition_inactive row;

	for (size_t i = 0; uar_definition_inactive(d, i, &row); i++)
		uar_buf_printf(out, "  inactive %s: %s\n", row.pointer, row.why);
}

static void put_inactive_json(struct uar_jw *w, const struct uar_definition *d)
{
	struct uar_definition_inactive row;

	uar_jw_obj(w, NULL);
	uar_jw_str(w, "agent_id", d->info.agent_id);
	uar_jw_cstr(w, "revision", d->revision);
	uar_jw_arr(w, "inactive");
	for (size_t i = 0; uar_definition_inactive(d, i, &row); i++) {
		uar_jw_obj(w, NULL);
		uar_jw_cstr(w, "pointer", row.pointer);
		uar_jw_cstr(w, "why", row.why);
		uar_jw_close(w);
	}
	uar_jw_close(w);
	uar_jw_close(w);
}

static int check_agent(struct uar_cli *cli, const char *file)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_jw w = uar_jw_begin(&text);
	struct uar_error error = { 0 };
	struct uar_definition d;
	uar_err e = uar_definition_load(file, &d, &error);
	int status;

	if (e)
		return uar_cli_fail_as(cli, UAR_EXIT_FAILED, e, "%s%s%s",
				       error.where[0] ? error.where : file, ": ",
				       uar_error_text(&error));
	if (cli->args->option[UAR_OPT_JSON]) {
		put_inactive_json(&w, &d);
		text.err = uar_jw_end(&w);
		uar_buf_add_char(&text, '\n');
	} else {
		uar_buf_printf(&text, "%s: agent %.*s is right, revision %.12s\n", file,
			       UAR_FMT(d.info.agent_id), d.revision);
		put_inactive(&text, &d);
	}
	status = uar_cli_write(cli, &text);
	uar_definition_fini(&d);
	uar_buf_fini(&text);
	return status;
}

/* All files of the agents directory, for `uar check`. */
void uar_agents_check(const struct uar_config *c, struct uar_buf *notes, struct uar_buf *problems)
{
	struct uar_registry_options o = { 0 };
	struct uar_buf dir = uar_buf_make(UAR_LIMIT_URI_BYTES);
	struct uar_registry *r = NULL;
	struct uar_error error = { 0 };
	const struct uar_registry_broken *b;
	size_t count = 0;
	uar_err e;

	uar_agents_dir(c, &dir);
	e = dir.err ? dir.err : uar_registry_create(&o, &r);
	if (!e)
		e = uar_registry_read_dir(r, dir.p, &error);
	if (e)
		uar_buf_printf(problems, "agents: %s\n", uar_error_text(&error));
	for (size_t i = 0; !e && (b = uar_registry_broken_at(r, i)); i++) {
		uar_text_clean(problems, uar_str_c(b->text), false);
		uar_buf_add_char(problems, '\n');
	}
	while (!e && uar_registry_at(r, count))
		count++;
	if (count)
		uar_buf_printf(notes, "%zu agent%s defined by files\n", count,
			       count == 1 ? " is" : "s are");
	uar_registry_destroy(r);
	uar_buf_fini(&dir);
}

/* --- show ----------------------------------------------------------------------------------- */

static void put_line(struct uar_buf *out, const char *name, uar_str value)
{
	if (!value.n)
		return;
	uar_buf_printf(out, "%-12s", name);
	uar_text_clean(out, value, false);
	uar_buf_add_char(out, '\n');
}

static void put_model(struct uar_buf *out, const char *name, const struct uar_definition_model *m)
{
	char text[256];

	snprintf(text, sizeof text, "%.*s/%.*s", UAR_FMT(m->provider), UAR_FMT(m->model));
	put_line(out, name, m->model.n ? uar_str_c(text) : UAR_STR("the server's default"));
}

/* As a run would be told it that brings no input but <message>. */
static void put_prompt(struct uar_buf *out, const struct uar_definition *d)
{
	struct uar_prompt_inputs in = { .def = d, .message = UAR_STR("<message>") };
	struct uar_prompt_text text = { 0 };
	struct uar_buf values = uar_buf_make(UAR_LIMIT_AGENT_DEFINITION);
	struct uar_jw w = uar_jw_begin(&values);
	struct uar_error error = { 0 };
	struct uar_arena arena;
	const struct uar_json *v = d->prompt.variables;

	uar_arena_init(&arena, 0);
	uar_jw_obj(&w, NULL);
	for (v = v ? v->first : NULL; v; v = v->next)
		if (!uar_json_get(v, UAR_STR("default"))) {
			uar_jw_key(&w, v->key);
			uar_jw_str(&w, NULL, uar_arena_printf(&arena, "<%.*s>", UAR_FMT(v->key)));
		}
	uar_jw_close(&w);
	if (!uar_jw_end(&w) &&
	    !uar_json_parse(uar_buf_str(&values), NULL, &arena, &in.values, NULL) &&
	    !uar_prompt_assemble(&in, &text, &error)) {
		uar_buf_add_str(out, UAR_STR("\n--- prompt\n"));
		uar_text_clean(out, uar_buf_str(&text.system), true);
		uar_buf_add_str(out, UAR_STR("--- message\n"));
		uar_text_clean(out, uar_buf_str(&text.message), true);
		uar_buf_add_char(out, '\n');
	}
	uar_prompt_fini(&text);
	uar_buf_fini(&values);
	uar_arena_fini(&arena);
}

/* What it brings along: requests, and documents of services. */
static void put_own_tools(struct uar_buf *out, const struct uar_definition *d)
{
	const struct uar_json *tools = uar_json_get(d->json, UAR_STR("tools"));
	struct uar_http_tools_options o = { .http = uar_json_get(tools, UAR_STR("http")),
					    .openapi = uar_json_get(tools, UAR_STR("openapi")) };
	struct uar_error unheard = { 0 };
	struct uar_tools *source = NULL;
	const struct uar_tool *t;

	if ((o.http || o.openapi) && !uar_http_tools_create(&o, &source, &unheard))
		for (size_t i = 0; (t = source->ops->at(source, i)); i++)
			put_line(out, "own tool", t->tool_id);
	uar_tools_destroy(source);
}

static void put_definition(struct uar_buf *out, const struct uar_definition *d)
{
	put_model(out, "model", &d->routing.chosen);
	for (size_t i = 0; i < d->routing.fallback_count; i++)
		put_model(out, "fallback", &d->routing.fallbacks[i]);
	put_line(out, "tools", d->tools.allow);
	put_own_tools(out, d);
	put_line(out, "denied", d->tools.deny);
	put_line(out, "asked for", d->tools.ask);
	put_inactive(out, d);
	if (uar_str_is(d->info.entry, "llm.chat"))
		put_prompt(out, d);
}

static int write_shown(struct uar_cli *cli, const struct uar_json *root)
{
	static const char *const keys[] = { "agent_id", "title",    "description", "entry",
					    "source",	"revision", "file" };
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	struct uar_buf json = uar_buf_make(UAR_LIMIT_AGENT_DEFINITION);
	const struct uar_json *definition = uar_json_get(root, UAR_STR("definition"));
	struct uar_error error = { 0 };
	struct uar_definition d;
	int status;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		put_line(&text, keys[i], uar_json_text(root, keys[i]));
	if (definition)
		uar_json_write(&json, definition);
	if (definition && !uar_definition_read(uar_buf_str(&json), &d, &error)) {
		put_definition(&text, &d);
		uar_definition_fini(&d);
	}
	status = uar_cli_write(cli, &text);
	uar_buf_fini(&text);
	uar_buf_fini(&json);
	return status;
}

/* --- instance ------------------------------------------------------------------------------- */

static void put_ids(struct uar_buf *out, const char *name, const struct uar_json *list,
		    const char *key)
{
	uar_buf_printf(out, "%s:", name);
	for (const struct uar_json *j = uar_json_at(list, 0); j; j = j->next) {
		uar_buf_add_char(out, ' ');
		uar_text_clean(out, uar_json_text(j, key), false);
	}
	uar_buf_add_char(out, '\n');
}

/* One line for each part that the instance is made of. */
static int write_instance(struct uar_cli *cli, const struct uar_json *root)
{
	static const char *const parts[] = { "artifact", "provider_policy", "memory", "event_bus" };
	const struct uar_json *tools = uar_json_get(root, UAR_STR("tool_registry"));
	const struct uar_json *skills = uar_json_get(root, UAR_STR("skill_registry"));
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	int status;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		uar_buf_printf(&text, "%s: ", parts[i]);
		uar_json_write(&text, uar_json_get(root, uar_str_c(parts[i])));
		uar_buf_add_char(&text, '\n');
	}
	put_ids(&text, "tool_registry", uar_json_get(tools, UAR_STR("tools")), "tool_id");
	put_ids(&text, "skill_registry", uar_json_get(skills, UAR_STR("skills")), "skill_id");
	status = uar_cli_write(cli, &text);
	uar_buf_fini(&text);
	return status;
}

static int show_agent(struct uar_cli *cli, const char *id, bool instance)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_URI_BYTES);
	struct uar_remote_answer a = { .root = NULL };
	struct uar_api_request ask = { .method = "GET" };
	struct uar_error error = { 0 };
	uar_err e;
	int status;

	uar_buf_add_str(&path, UAR_STR("/api/agents/"));
	uar_api_escape(&path, uar_str_c(id));
	if (instance)
		uar_buf_add_str(&path, UAR_STR("/instance"));
	ask.path = path.p;
	e = uar_remote_ask(cli, &ask, &a, &error);
	if (e) {
		status = uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error);
	} else if (cli->args->option[UAR_OPT_JSON]) {
		uar_buf_add_char(&a.text, '\n');
		status = uar_cli_write(cli, &a.text);
	} else {
		status = instance ? write_instance(cli, a.root) : write_shown(cli, a.root);
	}
	uar_remote_answer_fini(&a);
	uar_buf_fini(&path);
	return status;
}

int uar_verb_agent(struct uar_cli *cli)
{
	const char *what = cli->args->word[0], *which = cli->args->word[1];

	if (!strcmp(what, "openapi"))
		return uar_agent_openapi(cli);
	if (cli->args->words > 2)
		return uar_cli_fail(cli, UAR_EXIT_USAGE, "agent %s takes one word", what);
	if (!strcmp(what, "new"))
		return make_agent(cli, which);
	if (!strcmp(what, "check"))
		return check_agent(cli, which);
	if (!strcmp(what, "show"))
		return show_agent(cli, which, false);
	if (!strcmp(what, "instance"))
		return show_agent(cli, which, true);
	return uar_cli_fail(
		cli, UAR_EXIT_USAGE,
		"usage: uar agent new NAME, uar agent check FILE, uar agent show AGENT, "
		"uar agent instance AGENT, or uar agent openapi DOCUMENT [OPERATION...]");
}
