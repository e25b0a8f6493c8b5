/* again.c - settings to members of server.json, and those to a command line. See again.h. */
#include "app/again.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "app/datadir.h"
#include "app/limits.h"

enum { NAME_BYTES = 80, OWN_WORDS = 9 };

/* --- keeping ---------------------------------------------------------------------- */

static void put_path(struct uar_buf *out, const char *path)
{
	char here[PATH_MAX];

	if (*path && *path != '/' && getcwd(here, sizeof here))
		uar_buf_printf(out, "%s/", here);
	uar_buf_printf(out, "%s", path);
}

/* "UAR_OPENAI_API_KEY" of "openai_api_key". */
static void variable_name(char out[NAME_BYTES], uar_str key, const char *end)
{
	snprintf(out, NAME_BYTES, "UAR_%.*s%s", UAR_FMT(key), end);
	for (char *c = out; *c; c++)
		if (*c >= 'a' && *c <= 'z')
			*c = (char)(*c - 32);
}

/* The file that held a secret; NULL: it was given as it is. */
static const char *secret_file(const struct uar_config_set *set, size_t i)
{
	const struct uar_config_row *row = &uar_config_rows[i];
	const char *path = NULL;
	char name[NAME_BYTES];

	for (size_t f = 0; f < set->input.flag_count; f++)
		if (set->input.flags[f].row == row)
			path = set->input.flags[f].in_file ? set->input.flags[f].value : NULL;
	if (set->origin[i].source == UAR_CONFIG_FROM_FLAG)
		return path;
	variable_name(name, uar_str_c(row->key), "_FILE");
	return strcmp(set->origin[i].where, name) ? NULL : uar_config_env(set->input.env, name);
}

static void put_secret(struct uar_jw *w, const struct uar_config_set *set, size_t i)
{
	const char *path = secret_file(set, i);
	struct uar_buf value = uar_buf_make(PATH_MAX * 2);
	char key[NAME_BYTES];

	if (path) {
		snprintf(key, sizeof key, "%s_file", uar_config_rows[i].key);
		put_path(&value, path);
		uar_jw_str(w, key, uar_buf_str(&value));
	} else {
		uar_jw_null(w, uar_config_rows[i].key);
	}
	uar_buf_fini(&value);
}

static void put_plain(struct uar_jw *w, const struct uar_config_set *set, size_t i)
{
	const struct uar_config_row *row = &uar_config_rows[i];
	struct uar_buf value = uar_buf_make(UAR_LIMIT_CONFIG_BYTES), path = value;
	uar_str text, prefix = UAR_STR("");

	uar_config_format(row, &set->value, &value);
	text = value.n ? uar_buf_str(&value) : UAR_STR("");
	if (uar_str_starts(text, UAR_STR("unix:")))
		prefix = UAR_STR("unix:");
	if (prefix.n || !strcmp(row->form, "path")) {
		uar_buf_add_str(&path, prefix);
		put_path(&path, text.n ? text.p + prefix.n : "");
		text = path.n ? uar_buf_str(&path) : UAR_STR("");
	}
	uar_jw_str(w, row->key, text);
	if (!w->err)
		w->err = value.err ? value.err : path.err;
	uar_buf_fini(&value);
	uar_buf_fini(&path);
}

/* Who starts it again names the directory. How long it stays has to be said, wherever it was
 * said: one that stays for ever would be left behind. */
static bool is_kept(const struct uar_config_set *set, size_t i, enum uar_config_source source)
{
	const struct uar_config_row *row = &uar_config_rows[i];

	if (!strcmp(row->key, "data"))
		return false;
	if (!strcmp(row->key, "idle_exit_seconds"))
		return source == UAR_CONFIG_FROM_FLAG;
	return set->origin[i].source == source && (strcmp(set->origin[i].where, row->alias) ||
						   uar_config_alias_matters(row, &set->value));
}

static void put_source(struct uar_jw *w, const struct uar_config_set *set,
		       enum uar_config_source source, const char *file)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_CONFIG_BYTES);

	if (file) {
		put_path(&path, file);
		uar_jw_str(w, "config", uar_buf_str(&path));
	}
	for (size_t i = 0; i < UAR_CONFIG_COUNT; i++) {
		if (!is_kept(set, i, source))
			continue;
		if (uar_config_rows[i].type == UAR_CONFIG_SECRET)
			put_secret(w, set, i);
		else
			put_plain(w, set, i);
	}
	if (!w->err)
		w->err = path.err;
	uar_buf_fini(&path);
}

uar_err uar_again_put(const struct uar_config_set *set, struct uar_buf *out)
{
	const char *flag = set->input.file;
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_obj(&w, "flags");
	put_source(&w, set, UAR_CONFIG_FROM_FLAG, flag);
	uar_jw_close(&w);
	uar_jw_obj(&w, "env");
	put_source(&w, set, UAR_CONFIG_FROM_ENV,
		   flag ? NULL : uar_config_env(set->input.env, "UAR_CONFIG"));
	uar_jw_close(&w);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

/* --- coming back -------------------------------------------------------------------- */

struct plan {
	const struct uar_cli *cli;
	struct uar_arena *arena;
	struct uar_error *error;
	const char **argv, **env;
	size_t words, variables;
	uar_err e;
};

static void add(struct plan *p, const char **list, size_t *count, uar_str text)
{
	if (text.p)
		list[(*count)++] = text.p;
	else
		p->e = UAR_ENOMEM;
}

static bool caller_has(const struct plan *p, uar_str key, const char *end)
{
	char name[NAME_BYTES];

	variable_name(name, key, end);
	return uar_config_env(p->cli->env, name) != NULL;
}

/* In the environment of the caller, whatever its form. */
static bool caller_sets(const struct plan *p, const struct uar_config_row *row)
{
	uar_str key = uar_str_c(row->key);

	return caller_has(p, key, "") ||
	       (row->type == UAR_CONFIG_SECRET && caller_has(p, key, "_FILE")) ||
	       (*row->alias && uar_config_env(p->cli->env, row->alias));
}

/* Not on the command line, where everybody could read it. */
static void need_secret(struct plan *p, const struct uar_config_row *row)
{
	const char *token = p->cli->config->value.token;
	char name[NAME_BYTES];

	variable_name(name, uar_str_c(row->key), "");
	if (caller_sets(p, row))
		return;
	if (!strcmp(row->key, "token") && *token)
		add(p, p->env, &p->variables, uar_arena_printf(p->arena, "%s=%s", name, token));
	else
		p->e = uar_error_set(p->error, UAR_ECONFIG,
				     "the server that was here had been given %s, which is not "
				     "kept: set %s, or start it yourself with `uar serve`",
				     row->key, name);
}

static void add_flag(struct plan *p, const struct uar_json *m)
{
	uar_str flag = uar_arena_printf(p->arena, "--%.*s=%.*s", UAR_FMT(m->key), UAR_FMT(m->text));

	if (uar_str_is(m->key, "config") && p->cli->args->option[UAR_OPT_CONFIG])
		return;
	for (char *c = (char *)(uintptr_t)flag.p; c && *c != '='; c++)
		if (*c == '_')
			*c = '-';
	add(p, p->argv, &p->words, flag);
}

static void add_variable(struct plan *p, const struct uar_config_row *row, const struct uar_json *m)
{
	char name[NAME_BYTES];

	if (row ? caller_sets(p, row) : caller_has(p, m->key, ""))
		return;
	variable_name(name, m->key, "");
	add(p, p->env, &p->variables,
	    uar_arena_printf(p->arena, "%s=%.*s", name, UAR_FMT(m->text)));
}

static void add_members(struct plan *p, const struct uar_json *kept, bool as_flags)
{
	const struct uar_json *m = kept ? kept->first : NULL;

	for (size_t n = 0; m && !p->e; m = m->next) {
		bool in_file;
		const struct uar_config_row *row = uar_config_find(m->key, &in_file);

		if (n++ > UAR_CONFIG_COUNT || m->key.n > NAME_BYTES - 10)
			p->e = uar_error_set(p->error, UAR_ECORRUPT, "server.json: too much in it");
		else if (m->kind == UAR_JSON_NULL && row)
			need_secret(p, row);
		else if (m->kind == UAR_JSON_STRING && as_flags)
			add_flag(p, m);
		else if (m->kind == UAR_JSON_STRING)
			add_variable(p, row, m);
	}
}

static void add_own(struct plan *p, const char *idle)
{
	const char *config = p->cli->args->option[UAR_OPT_CONFIG];
	const char *own[OWN_WORDS] = { "uar",
				       "serve",
				       "--json",
				       "--data",
				       p->cli->config->value.data,
				       idle ? "--idle-exit-seconds" : NULL,
				       idle };

	for (size_t i = 0; own[i]; i++)
		p->argv[p->words++] = own[i];
	if (config) {
		p->argv[p->words++] = "--config";
		p->argv[p->words++] = config;
	}
	for (char *const *v = p->cli->env; v && *v; v++)
		p->env[p->variables++] = *v;
}

static uar_err make_room(struct plan *p)
{
	size_t there = 0, most = (size_t)UAR_CONFIG_COUNT + 2;

	while (p->cli->env && p->cli->env[there])
		there++;
	p->argv = uar_arena_alloc(p->arena, (OWN_WORDS + most + 1) * sizeof *p->argv);
	p->env = uar_arena_alloc(p->arena, (there + 2 * most + 1) * sizeof *p->env);
	return p->argv && p->env ? UAR_OK : UAR_ENOMEM;
}

/* NULL: there was none, or one of a version that kept nothing. UAR_ECONFIG: what it had was too
 * much to be kept. */
static uar_err find_kept(struct plan *p, const struct uar_json **out)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_SERVER_FILE);
	const struct uar_json *root = NULL, *kept = NULL;
	struct uar_error unheard = { 0 };
	const char *data = p->cli->config->value.data;
	uar_str copy = UAR_STR("");

	if (uar_datadir_passing(data) && uar_datadir_server_text(data, &text, &unheard) == UAR_OK)
		copy = uar_arena_str(p->arena, uar_buf_str(&text));
	uar_buf_fini(&text);
	if (copy.n && uar_json_parse(copy, NULL, p->arena, &root, NULL) == UAR_OK)
		kept = uar_json_get(root, UAR_STR("again"));
	if (kept && kept->kind != UAR_JSON_OBJECT)
		return uar_error_set(p->error, UAR_ECONFIG,
				     "the server that was here had more settings than can be kept: "
				     "start it yourself with `uar serve`");
	*out = kept;
	return UAR_OK;
}

uar_err uar_again_plan(const struct uar_cli *cli, const char *idle, bool own, struct uar_arena *a,
		       struct uar_again *out, struct uar_error *error)
{
	struct plan p = { .cli = cli, .arena = a, .error = error };
	const struct uar_json *kept = NULL;

	p.e = make_room(&p);
	if (!p.e)
		p.e = find_kept(&p, &kept);
	if (p.e)
		return p.e;
	add_own(&p, kept ? NULL : idle);
	add_members(&p, uar_json_get(kept, UAR_STR("flags")), true);
	if (!own)
		add_members(&p, uar_json_get(kept, UAR_STR("env")), false);
	if (p.e)
		return p.e;
	out->argv = p.argv;
	out->env = p.env;
	return UAR_OK;
}
