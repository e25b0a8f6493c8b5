/* verbs_author.c - `uar plugin`: a new plugin, or what is wrong with one. */
#include <errno.h>
#include <sys/stat.h>

#include "app/author.h"
#include "app/limits.h"
#include "app/text.h"
#include "json/limits.h"

enum { ID_MAX = 62 };

/* The last part of the path. */
static uar_str name_of(const char *folder)
{
	uar_str rest = uar_str_c(folder), name = UAR_STR("");

	while (rest.n) {
		uar_str part = uar_str_cut(rest, '/', &rest);

		if (part.n)
			name = part;
	}
	return name;
}

static bool is_taken(uar_str s)
{
	return uar_str_starts(s, UAR_STR("uar.")) || uar_str_starts(s, UAR_STR("backend."));
}

/* What plugin.schema.json says about ids. */
static bool is_name(uar_str s)
{
	bool good = s.n >= 1 && s.n <= ID_MAX;

	for (size_t i = 0; i < s.n && good; i++)
		good = (s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '0' && s.p[i] <= '9') ||
		       (i > 0 && strchr("._-", s.p[i]));
	return good;
}

static void fill_in(struct uar_buf *out, uar_str text, uar_str name, const char *command)
{
	while (text.n) {
		size_t at = uar_str_find(text, '@');

		uar_buf_add(out, text.p, at);
		text = uar_str_from(text, at);
		if (uar_str_starts(text, UAR_STR("@NAME@"))) {
			uar_buf_add_str(out, name);
			text = uar_str_from(text, 6);
		} else if (uar_str_starts(text, UAR_STR("@COMMAND@"))) {
			uar_buf_add_str(out, uar_str_c(command));
			text = uar_str_from(text, 9);
		} else if (text.n) {
			uar_buf_add_char(out, '@');
			text = uar_str_from(text, 1);
		}
	}
}

static bool write_file(const char *path, const struct uar_buf *text)
{
	FILE *f = fopen(path, "wxe");
	bool good = f && fwrite(text->p, 1, text->n, f) == text->n;

	return f && fclose(f) == 0 && good;
}

/* The folder of the file, when it has one of its own. */
static void make_parent(const char *folder, const char *path)
{
	const char *slash = strchr(path, '/');
	struct uar_buf b = uar_buf_make(UAR_LIMIT_URI_BYTES);

	if (slash) {
		uar_buf_printf(&b, "%s/%.*s", folder, (int)(slash - path), path);
		if (!b.err)
			(void)mkdir(b.p, 0777); /* or the file cannot be written, which is told */
	}
	uar_buf_fini(&b);
}

static int write_files(struct uar_cli *cli, const char *folder, const char *lang)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_URI_BYTES);
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	struct uar_author_file file;
	int status = UAR_EXIT_OK;
	size_t at = 0;

	while (status == UAR_EXIT_OK && uar_author_next(lang, &at, &file)) {
		uar_buf_clear(&path);
		uar_buf_clear(&text);
		uar_buf_printf(&path, "%s/%s", folder, file.path);
		fill_in(&text, file.text, name_of(folder), uar_author_command(lang));
		make_parent(folder, file.path);
		if (path.err || text.err || !write_file(path.p, &text))
			status = uar_cli_fail(cli, UAR_EXIT_FAILED, "%s/%s: %s", folder, file.path,
					      strerror(errno));
	}
	uar_buf_fini(&path);
	uar_buf_fini(&text);
	return status;
}

/* To be pasted into a shell. */
static void tell_next(struct uar_buf *out, const char *folder, bool make)
{
	static const char *const more[] = { "", " count --args '{\"text\": \"one three\"}'" };

	uar_buf_add_str(out, UAR_STR("wrote "));
	uar_text_clean(out, uar_str_c(folder), false);
	uar_buf_add_str(out, UAR_STR(". Next:\n"));
	if (make) {
		uar_buf_add_str(out, UAR_STR("  make -C "));
		uar_text_shell(out, uar_str_c(folder));
		uar_buf_add_char(out, '\n');
	}
	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		uar_buf_add_str(out, UAR_STR("  uar plugin check "));
		uar_text_shell(out, uar_str_c(folder));
		uar_buf_printf(out, "%s\n", more[i]);
	}
	uar_buf_add_str(out, UAR_STR("and put the folder into `plugins` of the data directory, or "
				     "name its parent with --plugins-dir.\n"));
}

static int tell(struct uar_cli *cli, const char *folder, const char *lang)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_jw w = uar_jw_begin(&text);
	int status;

	if (cli->args->option[UAR_OPT_JSON]) {
		uar_jw_obj(&w, NULL);
		uar_jw_str(&w, "plugin_id", name_of(folder));
		uar_jw_cstr(&w, "folder", folder);
		uar_jw_cstr(&w, "lang", lang);
		uar_jw_close(&w);
		if (uar_jw_end(&w) == UAR_OK)
			uar_buf_add_char(&text, '\n');
	} else {
		tell_next(&text, folder, !strcmp(lang, "c"));
	}
	status = uar_cli_write(cli, &text);
	uar_buf_fini(&text);
	return status;
}

static int make_new(struct uar_cli *cli, const char *folder)
{
	const char *lang = cli->args->option[UAR_OPT_LANG];
	int status;

	if (!lang || !uar_author_command(lang))
		return uar_cli_fail(cli, UAR_EXIT_USAGE, "--lang takes python, c or ts");
	if (is_taken(name_of(folder)))
		return uar_cli_fail(cli, UAR_EXIT_USAGE,
				    "ids that begin with uar. or backend. are taken");
	if (!is_name(name_of(folder)))
		return uar_cli_fail(cli, UAR_EXIT_USAGE,
				    "\"%.*s\" cannot be the id of a plugin: small letters, digits, "
				    "and inside also . _ -",
				    UAR_FMT(uar_str_utf8_prefix(name_of(folder), 80)));
	if (mkdir(folder, 0777))
		return uar_cli_fail(cli, UAR_EXIT_FAILED, "%s: %s", folder, strerror(errno));
	status = write_files(cli, folder, lang);
	return status == UAR_EXIT_OK ? tell(cli, folder, lang) : status;
}

int uar_verb_plugin(struct uar_cli *cli)
{
	const struct uar_args *args = cli->args;
	const char *entry = args->words > 2 ? args->word[2] : NULL;

	if (!strcmp(args->word[0], "new") && !entry)
		return make_new(cli, args->word[1]);
	if (!strcmp(args->word[0], "check"))
		return uar_author_check(cli, args->word[1], entry);
	return uar_cli_fail(cli, UAR_EXIT_USAGE,
			    "usage: uar plugin new FOLDER --lang LANGUAGE, or uar plugin check "
			    "FOLDER [ENTRY]");
}
