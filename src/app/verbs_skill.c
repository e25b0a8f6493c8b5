/* verbs_skill.c - `uar skill`: new and added skills, what there is, what a message activates. */
#include "app/verbs_skill.h"

#include <errno.h>
#include <sys/stat.h>

#include "app/cli.h"
#include "app/datadir.h"
#include "app/limits.h"
#include "app/remote.h"
#include "app/skill_copy.h"
#include "app/text.h"
#include "base/embed.h"
#include "base/file.h"
#include "json/limits.h"
#include "skill/book.h"

UAR_EMBED(uar_skill_template, "sdk/templates/SKILL.md");

enum { WIDE = 28, BRIEF = 72 };

void uar_skills_dir(const struct uar_config *c, struct uar_buf *out)
{
	if (c->skills_dir[0])
		uar_buf_add_str(out, uar_str_c(c->skills_dir));
	else
		uar_buf_printf(out, "%s/skills", c->data);
}

static double number(const struct uar_json *j, const char *key)
{
	return uar_json_double(uar_json_get(j, uar_str_c(key)), 0);
}

/* The directory, made if it is the default one. */
static void need_dir(struct uar_cli *cli, struct uar_buf *out)
{
	struct uar_error error = { 0 };

	uar_skills_dir(&cli->config->value, out);
	if (!out->err && !uar_datadir_create(cli->config->value.data, &error))
		(void)mkdir(out->p, 0700); /* or what is written there fails, which is told */
}

static int tell_written(struct uar_cli *cli, uar_str id, uar_str path)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_jw w = uar_jw_begin(&text);
	int status;

	if (cli->args->option[UAR_OPT_JSON]) {
		uar_jw_obj(&w, NULL);
		uar_jw_str(&w, "skill_id", id);
		uar_jw_str(&w, "path", path);
		uar_jw_close(&w);
		text.err = uar_jw_end(&w);
	} else {
		uar_buf_add_str(&text, UAR_STR("wrote "));
		uar_text_clean(&text, path, false);
		uar_buf_printf(&text, "\nuse it with: uar skill test \"a message\"; agents with "
				      "policy.skills choose it by themselves");
	}
	uar_buf_add_char(&text, '\n');
	status = uar_cli_write(cli, &text);
	uar_buf_fini(&text);
	return status;
}

/* --- new -------------------------------------------------------------------------------------- */

static bool is_skill_name(uar_str s)
{
	bool good = s.n >= 1 && s.n <= UAR_LIMIT_SKILL_ID;

	for (size_t i = 0; i < s.n && good; i++)
		good = (s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '0' && s.p[i] <= '9') ||
		       (i > 0 && strchr("._-", s.p[i]));
	return good;
}

static void fill_in(struct uar_buf *out, uar_str name)
{
	static const uar_str mark = UAR_STR("@NAME@");
	uar_str text = UAR_EMBEDDED(uar_skill_template);

	while (text.n) {
		size_t at = uar_str_find(text, '@');

		uar_buf_add(out, text.p, at);
		text = uar_str_from(text, at);
		if (uar_str_starts(text, mark)) {
			uar_buf_add_str(out, name);
			text = uar_str_from(text, mark.n);
		} else if (text.n) {
			uar_buf_add_char(out, '@');
			text = uar_str_from(text, 1);
		}
	}
}

static int make_skill(struct uar_cli *cli, const char *name)
{
	struct uar_buf dir = uar_buf_make(UAR_LIMIT_URI_BYTES);
	struct uar_buf path = uar_buf_make(UAR_LIMIT_URI_BYTES);
	struct uar_buf text = uar_buf_make(UAR_LIMIT_SKILL_BYTES);
	struct uar_error error = { 0 };
	int status;
	uar_err e;

	if (!is_skill_name(uar_str_c(name)))
		return uar_cli_fail(cli, UAR_EXIT_USAGE,
				    "\"%.80s\" cannot be the id of a skill: small letters, digits, "
				    "and inside also . _ -",
				    name);
	need_dir(cli, &dir);
	uar_buf_printf(&path, "%s/%s/SKILL.md", dir.p, name);
	fill_in(&text, uar_str_c(name));
	e = path.err ? path.err : text.err;
	if (!e)
		e = uar_skill_write_new(dir.p, name, uar_buf_str(&text), &error);
	status = e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error)
		   : tell_written(cli, uar_str_c(name), uar_buf_str(&path));
	uar_buf_fini(&dir);
	uar_buf_fini(&path);
	uar_buf_fini(&text);
	return status;
}

/* --- add -------------------------------------------------------------------------------------- */

/* A folder with a SKILL.md goes into the skills directory, with all that is beside it. */
static int add_folder(struct uar_cli *cli, const char *from)
{
	struct uar_buf dir = uar_buf_make(UAR_LIMIT_URI_BYTES);
	struct uar_buf path = uar_buf_make(UAR_LIMIT_URI_BYTES);
	char id[UAR_LIMIT_SKILL_ID + 1] = "";
	struct uar_error error = { 0 };
	uar_err e;
	int status;

	need_dir(cli, &dir);
	e = dir.err ? dir.err : uar_skill_copy(from, dir.p, id, &error);
	uar_buf_printf(&path, "%s/%s", dir.p, id);
	status = e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error)
		   : tell_written(cli, uar_str_c(id), uar_buf_str(&path));
	uar_buf_fini(&dir);
	uar_buf_fini(&path);
	return status;
}

static uar_err put_skill(struct uar_cli *cli, uar_str text, struct uar_remote_answer *a,
			 struct uar_error *error)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_URI_BYTES);
	struct uar_skill s;
	uar_err e = uar_skill_read(text, &s, error);

	if (e)
		return e;
	uar_buf_add_str(&path, UAR_STR("/api/skills/"));
	uar_api_escape(&path, s.skill_id);
	e = uar_remote_ask(
		cli, &(struct uar_api_request){ .method = "PUT", .path = path.p, .body = s.text },
		a, error);
	uar_skill_fini(&s);
	uar_buf_fini(&path);
	return e;
}

/* A JSON file is kept by the server. */
static int add_file(struct uar_cli *cli, const char *file)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_SKILL_BYTES);
	struct uar_buf out = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e = uar_file_read(file, &text, &error);
	int status;

	if (!e)
		e = put_skill(cli, uar_buf_str(&text), &a, &error);
	if (!e && cli->args->option[UAR_OPT_JSON])
		uar_buf_printf(&out, "%.*s\n", UAR_FMT(uar_buf_str(&a.text)));
	else if (!e)
		uar_buf_printf(&out, "skill %.*s is kept, version %lld\n",
			       UAR_FMT(uar_json_text(a.root, "skill_id")),
			       (long long)uar_json_int(
				       uar_json_get(a.root, UAR_STR("stored_version")), 0));
	status = e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error) : uar_cli_write(cli, &out);
	uar_remote_answer_fini(&a);
	uar_buf_fini(&text);
	uar_buf_fini(&out);
	return status;
}

static int add_skill(struct uar_cli *cli, const char *path)
{
	return uar_str_ends(uar_str_c(path), UAR_STR(".json")) ? add_file(cli, path)
							       : add_folder(cli, path);
}

/* --- check ------------------------------------------------------------------------------------ */

void uar_skills_check(const struct uar_config *c, struct uar_buf *notes, struct uar_buf *problems)
{
	struct uar_buf dir = uar_buf_make(UAR_LIMIT_URI_BYTES);
	const struct uar_skill_broken *b;
	struct uar_skill_book *book = NULL;
	const struct uar_skill_entry *s;
	struct uar_error error = { 0 };
	size_t count = 0;
	uar_err e;

	uar_skills_dir(c, &dir);
	e = dir.err ? dir.err : uar_skill_book_create(NULL, NULL, &book);
	if (!e)
		e = uar_skill_book_read_dir(book, dir.p, &error);
	if (e)
		uar_buf_printf(problems, "skills: %s\n", uar_error_text(&error));
	for (size_t i = 0; !e && (b = uar_skill_book_broken_at(book, i)); i++) {
		uar_text_clean(problems, uar_str_c(b->folder), false);
		uar_buf_add_str(problems, UAR_STR("/SKILL.md: "));
		uar_text_clean(problems, uar_str_c(b->text), false);
		uar_buf_add_char(problems, '\n');
	}
	for (size_t i = 0; !e && (s = uar_skill_book_at(book, i)); i++)
		count += s->skill.origin == UAR_SKILL_FILE;
	if (count)
		uar_buf_printf(notes, "%zu skill%s in the skills directory\n", count,
			       count == 1 ? " is" : "s are");
	uar_skill_book_destroy(book);
	uar_buf_fini(&dir);
}

/* --- what the server says ------------------------------------------------------------------- */

static void put_padded(struct uar_buf *out, uar_str text)
{
	size_t before = out->n;

	uar_text_brief(out, text, UAR_LIMIT_SKILL_ID);
	do
		uar_buf_add_char(out, ' ');
	while (out->n - before < WIDE && !out->err);
}

static void put_list(struct uar_buf *out, const struct uar_json *root)
{
	const struct uar_json *list = uar_json_get(root, UAR_STR("skills"));
	const struct uar_json *broken = uar_json_get(root, UAR_STR("broken"));

	for (const struct uar_json *s = uar_json_at(list, 0); s; s = s->next) {
		const struct uar_json *m = uar_json_get(s, UAR_STR("metrics"));

		put_padded(out, uar_json_text(s, "skill_id"));
		uar_buf_printf(out, "%-8.*s %s %3.0f ok %3.0f failed  ",
			       UAR_FMT(uar_json_text(s, "origin")),
			       uar_json_bool(uar_json_get(s, UAR_STR("enabled")), true) ? "on "
											: "off",
			       number(m, "successes"), number(m, "failures"));
		uar_text_brief(out, uar_json_text(s, "description"), BRIEF);
		uar_buf_add_char(out, '\n');
	}
	for (const struct uar_json *b = uar_json_at(broken, 0); b; b = b->next) {
		uar_buf_add_str(out, UAR_STR("broken  "));
		uar_text_clean(out, uar_json_text(b, "folder"), false);
		uar_buf_add_str(out, UAR_STR("/SKILL.md: "));
		uar_text_clean(out, uar_json_text(b, "error"), false);
		uar_buf_add_char(out, '\n');
	}
}

static void put_line(struct uar_buf *out, const char *name, uar_str value)
{
	if (!value.n)
		return;
	uar_buf_printf(out, "%-12s", name);
	uar_text_clean(out, value, false);
	uar_buf_add_char(out, '\n');
}

static void put_shown(struct uar_buf *out, const struct uar_json *root)
{
	static const char *const keys[] = { "skill_id", "version", "title",    "description",
					    "origin",	"folder",  "revision", "updated_at" };
	static const char *const parts[] = { "triggers",    "preferred_tools", "tool_templates",
					     "constraints", "requires",	       "post_processing" };
	const struct uar_json *skill = uar_json_get(root, UAR_STR("skill"));
	const struct uar_json *m = uar_json_get(root, UAR_STR("metrics"));

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		put_line(out, keys[i], uar_json_text(root, keys[i]));
	uar_buf_printf(out, "%-12s%.0f ok, %.0f failed\n", "runs", number(m, "successes"),
		       number(m, "failures"));
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		const struct uar_json *p = uar_json_get(skill, uar_str_c(parts[i]));

		if (!p)
			continue;
		uar_buf_printf(out, "%-16s", parts[i]);
		uar_json_write(out, p);
		uar_buf_add_char(out, '\n');
	}
	uar_buf_add_str(out, UAR_STR("\n--- overlay\n"));
	uar_text_clean(out, uar_json_text(skill, "prompt_overlay"), true);
	uar_buf_add_char(out, '\n');
}

static int show_skill(struct uar_cli *cli, const char *id)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_URI_BYTES);
	int status;

	uar_buf_add_str(&path, UAR_STR("/api/skills/"));
	uar_api_escape(&path, uar_str_c(id));
	status = uar_remote_show(cli, &(struct uar_api_request){ .method = "GET", .path = path.p },
				 put_shown);
	uar_buf_fini(&path);
	return status;
}

static void put_names(struct uar_buf *out, const char *title, const struct uar_json *list)
{
	if (!uar_json_at(list, 0))
		return;
	uar_buf_printf(out, "\n%s\n", title);
	for (const struct uar_json *t = uar_json_at(list, 0); t; t = t->next) {
		uar_buf_add_str(out, UAR_STR("  "));
		uar_text_clean(out, t->text, false);
		uar_buf_add_char(out, '\n');
	}
}

static void put_trial(struct uar_buf *out, const struct uar_json *root)
{
	const struct uar_json *all = uar_json_get(root, UAR_STR("candidates"));
	const struct uar_json *injected = uar_json_get(root, UAR_STR("injected"));

	if (!uar_json_at(all, 0))
		uar_buf_add_str(out, UAR_STR("no skill is a candidate\n"));
	for (const struct uar_json *c = uar_json_at(all, 0); c; c = c->next) {
		bool active = uar_json_bool(uar_json_get(c, UAR_STR("active")), false);

		uar_buf_add_str(out, active ? UAR_STR("* ") : UAR_STR("  "));
		put_padded(out, uar_json_text(c, "skill_id"));
		uar_buf_printf(out,
			       "score %.3f  gate %-10.*s  by %-10.*s  similarity %.2f  "
			       "freshness %.2f  success %.2f  preference %.2f\n",
			       number(c, "score"), UAR_FMT(uar_json_text(c, "gate")),
			       UAR_FMT(uar_json_text(c, "selection_method")),
			       number(c, "similarity"), number(c, "freshness"),
			       number(c, "success_rate"), number(c, "preference"));
	}
	for (const struct uar_json *i = uar_json_at(injected, 0); i; i = i->next) {
		uar_buf_printf(out, "\n--- injected: %.*s\n",
			       UAR_FMT(uar_json_text(i, "skill_id")));
		uar_text_clean(out, uar_json_text(i, "prompt_overlay"), true);
		uar_buf_add_char(out, '\n');
	}
	put_names(out, "tools that remain", uar_json_get(root, UAR_STR("tools")));
	put_names(out, "tools that the skills take away",
		  uar_json_get(root, UAR_STR("tools_removed")));
}

static int try_message(struct uar_cli *cli, const char *message)
{
	struct uar_buf body = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_jw w = uar_jw_begin(&body);
	const char *agent = cli->args->option[UAR_OPT_AGENT];
	int status;

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "message", message);
	if (agent)
		uar_jw_cstr(&w, "agent_id", agent);
	uar_jw_close(&w);
	if (uar_jw_end(&w))
		status = uar_cli_fail(cli, UAR_EXIT_FAILED, "the message is too long");
	else
		status = uar_remote_show(cli,
					 &(struct uar_api_request){ .method = "POST",
								    .path = "/api/skills-test",
								    .body = uar_buf_str(&body) },
					 put_trial);
	uar_buf_fini(&body);
	return status;
}

int uar_verb_skill(struct uar_cli *cli)
{
	static const struct {
		const char *name;
		int (*fn)(struct uar_cli *cli, const char *word);
	} parts[] = {
		{ "new", make_skill },
		{ "add", add_skill },
		{ "show", show_skill },
		{ "test", try_message },
	};
	const struct uar_args *args = cli->args;

	if (!strcmp(args->word[0], "list") && args->words == 1)
		return uar_remote_show(
			cli, &(struct uar_api_request){ .method = "GET", .path = "/api/skills" },
			put_list);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (!strcmp(args->word[0], parts[i].name) && args->words == 2)
			return parts[i].fn(cli, args->word[1]);
	return uar_cli_fail(cli, UAR_EXIT_USAGE,
			    "usage: uar skill list, uar skill new NAME, uar skill add PATH, uar "
			    "skill show SKILL, or uar skill test MESSAGE");
}
