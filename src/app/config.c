/* config.c - collects the settings from flags, environment, file and defaults.
 *
 * Sources are laid over each other from the weakest to the strongest. All of
 * them are always read and checked: a bad value in the file is a problem even
 * where a flag overrides it. */
#include "app/config.h"

#include <stdio.h>

#include "app/limits.h"
#include "app/nearest.h"
#include "base/alloc.h"
#include "base/file.h"

const struct uar_config_row uar_config_rows[UAR_CONFIG_COUNT] = {
#define C(FIELD, KEY, TYPE, FORM, DEFAULT, ALIAS, RELOAD, DOC)                                     \
	{                                                                                          \
		.key = KEY,                                                                        \
		.form = FORM,                                                                      \
		.initial = DEFAULT,                                                                \
		.alias = ALIAS,                                                                    \
		.doc = DOC,                                                                        \
		.type = UAR_CONFIG_##TYPE,                                                         \
		.reload = RELOAD,                                                                  \
		.offset = offsetof(struct uar_config, FIELD),                                      \
	},
#include "app/config.def"
#undef C
};

/* --- rows -------------------------------------------------------------------- */
static bool same_key(uar_str given, uar_str key)
{
	if (given.n != key.n)
		return false;
	for (size_t i = 0; i < key.n; i++)
		if ((given.p[i] == '-' ? '_' : given.p[i]) != key.p[i])
			return false;
	return true;
}

static const struct uar_config_row *find_row(uar_str key)
{
	for (size_t i = 0; i < UAR_CONFIG_COUNT; i++)
		if (same_key(key, uar_str_c(uar_config_rows[i].key)))
			return &uar_config_rows[i];
	return NULL;
}

const struct uar_config_row *uar_config_find(uar_str key, bool *out_in_file)
{
	const struct uar_config_row *row = find_row(key);

	if (out_in_file)
		*out_in_file = false;
	if (row || !out_in_file || key.n < 5 ||
	    !same_key(uar_str_from(key, key.n - 5), UAR_STR("_file")))
		return row;
	row = find_row(uar_str_n(key.p, key.n - 5));
	if (!row || row->type != UAR_CONFIG_SECRET)
		return NULL;
	*out_in_file = true;
	return row;
}

const char *uar_config_nearest(uar_str key)
{
	struct uar_nearest n;

	uar_nearest_init(&n, key);
	for (size_t i = 0; i < UAR_CONFIG_COUNT; i++)
		uar_nearest_consider(&n, uar_config_rows[i].key);
	return n.best;
}

/* --- loading ------------------------------------------------------------------- */
struct loader {
	struct uar_config_set *set;
	struct uar_buf *problems;
	struct uar_buf warnings; /* only problems for who is strict, or if there are others */
	bool bad;
	bool misused; /* a flag's value is among the problems */
	bool nomem;
	const char *doubt[UAR_CONFIG_COUNT]; /* what is wrong with an alias */
};

static void problem(struct loader *l, const char *where, const char *text)
{
	uar_buf_printf(l->problems, "%s%s%s\n", where, *where ? ": " : "", text);
	l->bad = true;
}

/* Where a value came from; its text is kept for listings. */
struct place {
	enum uar_config_source source;
	const char *where;
};

static void take(struct loader *l, const struct uar_config_row *row, struct place at, uar_err e,
		 const struct uar_error *error)
{
	size_t i = (size_t)(row - uar_config_rows);
	uar_str where = uar_arena_str(&l->set->arena, uar_str_c(at.where));

	if (e == UAR_ENOMEM || !where.p) {
		l->nomem = true;
		return;
	}
	if (e) {
		problem(l, at.where, uar_error_text(error));
		l->misused |= at.source == UAR_CONFIG_FROM_FLAG;
		return;
	}
	l->set->origin[i].source = at.source;
	l->set->origin[i].where = where.p;
}

static void take_text(struct loader *l, const struct uar_config_row *row, struct place at,
		      uar_str text)
{
	struct uar_error error = { 0 };
	uar_err e = uar_config_parse(row, text, &l->set->arena, &l->set->value, &error);

	take(l, row, at, e, &error);
}

static void problem_file(struct loader *l, const char *where, const char *path,
			 const struct uar_error *why)
{
	char text[UAR_LIMIT_ERROR_TEXT];

	snprintf(text, sizeof text, "cannot read %.200s: %.99s", path, why->text);
	problem(l, where, text);
}

/* A secret kept in a file of its own; line ends after it do not count. */
static void take_secret_file(struct loader *l, const struct uar_config_row *row, struct place at,
			     const char *path)
{
	struct uar_buf buf = uar_buf_make(UAR_LIMIT_CONFIG_BYTES);
	struct uar_error why = { 0 };
	uar_err e = uar_file_read(path, &buf, &why);
	uar_str text = uar_buf_str(&buf);

	while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
		text.n--;
	if (e)
		problem_file(l, at.where, path, &why);
	else
		take_text(l, row, at, text.n ? text : UAR_STR(""));
	uar_buf_fini(&buf);
}

static void take_given(struct loader *l, const struct uar_config_row *row, bool in_file,
		       struct place at, const char *value)
{
	if (in_file)
		take_secret_file(l, row, at, value);
	else
		take_text(l, row, at, uar_str_c(value));
}

static const char *keep(struct loader *l, const char *base, const char *rest)
{
	uar_str s = uar_arena_printf(&l->set->arena, "%s%s", base, rest);

	l->nomem |= !s.p;
	return s.p;
}

static void load_defaults(struct loader *l)
{
	for (size_t i = 0; i < UAR_CONFIG_COUNT; i++)
		take_text(l, &uar_config_rows[i],
			  (struct place){ UAR_CONFIG_FROM_DEFAULT, "default" },
			  uar_str_c(uar_config_rows[i].initial));
}

/* What is wrong with one is only told if nothing stronger takes its place and it is used. */
static void load_alias(struct loader *l, size_t i, const char *value)
{
	const struct uar_config_row *row = &uar_config_rows[i];
	struct uar_error error = { 0 };
	uar_err e = uar_config_parse(row, uar_str_c(value), &l->set->arena, &l->set->value, &error);

	if (!e || e == UAR_ENOMEM)
		take(l, row, (struct place){ UAR_CONFIG_FROM_ENV, row->alias }, e, &error);
	else
		l->doubt[i] = keep(l, uar_error_text(&error), "");
}

static void load_aliases(struct loader *l)
{
	for (size_t i = 0; i < UAR_CONFIG_COUNT && !l->set->input.client; i++) {
		const char *alias = uar_config_rows[i].alias;
		const char *value = *alias ? uar_config_env(l->set->input.env, alias) : NULL;

		if (value)
			load_alias(l, i, value);
	}
}

static void settle_aliases(struct loader *l)
{
	for (size_t i = 0; i < UAR_CONFIG_COUNT; i++)
		if (l->doubt[i] && l->set->origin[i].source < UAR_CONFIG_FROM_ENV &&
		    uar_config_alias_matters(&uar_config_rows[i], &l->set->value))
			problem(l, uar_config_rows[i].alias, l->doubt[i]);
}

/* --- environment -------------------------------------------------------------- */
/* "UAR_LOG_LEVEL=x" -> name "UAR_LOG_LEVEL", key "log_level", value "x". */
struct variable {
	char name[80], key[80];
	const char *value;
};

static bool read_variable(const char *entry, struct variable *out)
{
	const char *eq = strchr(entry, '=');
	size_t n = eq ? (size_t)(eq - entry) : 0;

	if (n < 5 || n >= sizeof out->name || strncmp(entry, "UAR_", 4))
		return false;
	memcpy(out->name, entry, n);
	out->name[n] = '\0';
	for (size_t i = 4; i <= n; i++) {
		char c = out->name[i];

		out->key[i - 4] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
	}
	out->value = eq + 1;
	return true;
}

static void unknown_variable(struct loader *l, const struct variable *v)
{
	char text[UAR_LIMIT_ERROR_TEXT];
	const char *near = uar_config_nearest(uar_str_c(v->key));
	size_t n = (size_t)snprintf(text, sizeof text, "there is no such setting");

	if (near) {
		n += (size_t)snprintf(text + n, sizeof text - n, ", did you mean UAR_");
		for (; *near && n < sizeof text - 2; near++)
			text[n++] = *near >= 'a' && *near <= 'z' ? (char)(*near - 32) : *near;
		text[n++] = '?';
		text[n] = '\0';
	}
	if (l->set->input.strict)
		problem(l, v->name, text);
	else
		uar_buf_printf(&l->warnings, "%s: %s\n", v->name, text);
}

static void load_env(struct loader *l)
{
	struct variable v;
	bool in_file;

	for (char *const *at = l->set->input.env; at && *at; at++) {
		const struct uar_config_row *row;

		if (!read_variable(*at, &v) || !*v.value) /* an empty one counts as absent */
			continue;
		row = uar_config_find(uar_str_c(v.key), &in_file);
		if (!row && !uar_config_is_foreign(uar_str_c(v.key), uar_str_c(v.value)))
			unknown_variable(l, &v);
		else if (row)
			take_given(l, row, in_file, (struct place){ UAR_CONFIG_FROM_ENV, v.name },
				   v.value);
	}
}

/* --- flags -------------------------------------------------------------------- */
static void load_flag(struct loader *l, const struct uar_config_flag *f)
{
	char where[80];

	snprintf(where, sizeof where, "--%s%s", f->row->key, f->in_file ? "-file" : "");
	for (char *c = where; *c; c++)
		if (*c == '_')
			*c = '-';
	take_given(l, f->row, f->in_file, (struct place){ UAR_CONFIG_FROM_FLAG, where }, f->value);
}

static void load_flags(struct loader *l)
{
	for (size_t i = 0; i < l->set->input.flag_count; i++)
		load_flag(l, &l->set->input.flags[i]);
}

/* --- file --------------------------------------------------------------------- */
/* "FILE:LINE:COLUMN" of a key; the tree borrows its strings from the text unless
 * they had escapes, then only the file can be named. */
static void place_in_file(const char *path, uar_str text, uar_str key, struct uar_buf *out)
{
	size_t line = 1, column = 1;

	uar_buf_clear(out);
	uar_buf_printf(out, "%s", path);
	if (key.p < text.p || key.p > text.p + text.n)
		return;
	for (const char *p = text.p; p < key.p; p++, column++)
		if (*p == '\n') {
			line++;
			column = 0;
		}
	uar_buf_printf(out, ":%zu:%zu", line, column - 1); /* where its quote stands */
}

static void unknown_key(struct loader *l, const char *where, uar_str key)
{
	char text[UAR_LIMIT_ERROR_TEXT];
	const char *near = uar_config_nearest(key);
	uar_str shown = uar_str_utf8_prefix(key, 60);

	snprintf(text, sizeof text, "there is no setting \"%.*s\"%s%s%s", UAR_FMT(shown),
		 near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
	problem(l, where, text);
}

static void take_member(struct loader *l, const char *where, const struct uar_json *member)
{
	struct uar_error error = { 0 };
	struct place at = { UAR_CONFIG_FROM_FILE, where };
	bool in_file;
	const struct uar_config_row *row = uar_config_find(member->key, &in_file);

	if (!row || uar_str_find(member->key, '-') < member->key.n) {
		unknown_key(l, where, member->key);
	} else if (!in_file) {
		uar_err e =
			uar_config_parse_json(row, member, &l->set->arena, &l->set->value, &error);

		take(l, row, at, e, &error);
	} else if (member->kind != UAR_JSON_STRING || memchr(member->text.p, 0, member->text.n)) {
		problem(l, where, "expected the path of a file that holds the secret");
	} else {
		uar_str path = uar_arena_str(&l->set->arena, member->text);

		l->nomem |= !path.p;
		if (path.p)
			take_secret_file(l, row, at, path.p);
	}
}

static void take_object(struct loader *l, const char *path, uar_str text,
			const struct uar_json *object)
{
	struct uar_buf where = uar_buf_make(UAR_LIMIT_CONFIG_BYTES);

	for (const struct uar_json *m = object->first; m; m = m->next) {
		place_in_file(path, text, m->key, &where);
		if (where.err)
			l->nomem = true;
		else if (!uar_str_is(m->key, "$schema"))
			take_member(l, where.p, m);
	}
	uar_buf_fini(&where);
}

static void take_document(struct loader *l, const char *path, uar_str text)
{
	struct uar_arena tree;
	struct uar_error error = { 0 };
	const struct uar_json *root = NULL;
	uar_err e;

	uar_arena_init(&tree, 0);
	e = uar_json_parse(text, NULL, &tree, &root, &error);
	if (e == UAR_ENOMEM) {
		l->nomem = true;
	} else if (e) {
		uar_buf_printf(l->problems, "%s:%s%s%s\n", path, error.where,
			       *error.where ? ": " : " ", uar_error_text(&error));
		l->bad = true;
	} else if (root->kind != UAR_JSON_OBJECT) {
		problem(l, path, "expected one JSON object with settings as its members");
	} else {
		take_object(l, path, text, root);
	}
	uar_arena_fini(&tree);
}

static void load_file(struct loader *l, const char *path, bool must_exist)
{
	struct uar_buf buf = uar_buf_make(UAR_LIMIT_CONFIG_BYTES);
	struct uar_error why = { 0 };
	uar_err e = uar_file_read(path, &buf, &why);

	if (e == UAR_ENOTFOUND && !must_exist) {
		uar_buf_fini(&buf);
		return;
	}
	if (e) {
		problem_file(l, "", path, &why);
	} else {
		l->set->file = path;
		take_document(l, path, buf.n ? uar_buf_str(&buf) : UAR_STR(""));
	}
	uar_buf_fini(&buf);
}

/* --- the data directory and its file --------------------------------------------- */
static const char *default_data(struct loader *l)
{
	const char *xdg = uar_config_env(l->set->input.env, "XDG_DATA_HOME");
	const char *home = uar_config_env(l->set->input.env, "HOME");

	if (xdg && *xdg == '/')
		return keep(l, xdg, "/uar");
	if (home && *home == '/')
		return keep(l, home, "/.local/share/uar");
	return NULL;
}

/* Where the data directory is before any file was read. */
static const char *early_data(struct loader *l)
{
	const struct uar_config_row *row = find_row(UAR_STR("data"));
	const struct uar_config_input *in = &l->set->input;
	const char *env = uar_config_env(in->env, "UAR_DATA");

	for (size_t i = in->flag_count; i-- > 0;)
		if (in->flags[i].row == row && *in->flags[i].value)
			return in->flags[i].value;
	return env ? env : default_data(l);
}

static void load_any_file(struct loader *l)
{
	const char *path = l->set->input.file, *data;

	if (!path)
		path = uar_config_env(l->set->input.env, "UAR_CONFIG");
	if (path) {
		load_file(l, path, true);
		return;
	}
	data = early_data(l);
	path = data ? keep(l, data, "/config.json") : NULL;
	if (!path)
		return;
	load_file(l, path, false);
	if (l->set->origin[find_row(UAR_STR("data")) - uar_config_rows].source ==
	    UAR_CONFIG_FROM_FILE)
		problem(l, path, "data: the file inside the data directory cannot move it");
}

static void settle_data(struct loader *l)
{
	const char *data;

	if (l->nomem || *l->set->value.data)
		return;
	data = default_data(l);
	if (data)
		l->set->value.data = data;
	else if (!l->nomem)
		problem(l, "data", "neither XDG_DATA_HOME nor HOME is set, name one with --data");
}

/* What somebody misspelt may be the reason of the problems. */
static void settle_warnings(struct loader *l)
{
	uar_str text = l->warnings.n ? uar_buf_str(&l->warnings) : UAR_STR("");

	l->nomem |= l->warnings.err == UAR_ENOMEM;
	if (l->bad)
		uar_buf_add_str(l->problems, text);
	else
		l->set->warnings = keep(l, text.p, "");
	uar_buf_fini(&l->warnings);
}

uar_err uar_config_load(const struct uar_config_input *in, struct uar_config_set **out,
			struct uar_buf *problems)
{
	struct uar_config_set *set = uar_zalloc(sizeof *set);
	struct loader l = { .set = set,
			    .problems = problems,
			    .warnings = uar_buf_make(UAR_LIMIT_CONFIG_PROBLEMS) };

	if (!set)
		return UAR_ENOMEM;
	uar_arena_init(&set->arena, 0);
	set->input = *in;
	load_defaults(&l);
	load_any_file(&l);
	load_aliases(&l);
	load_env(&l);
	load_flags(&l);
	if (!l.nomem)
		settle_aliases(&l);
	settle_data(&l);
	settle_warnings(&l);
	if (l.nomem || l.bad) {
		uar_config_destroy(set);
		return l.nomem ? UAR_ENOMEM : l.misused ? UAR_EINVALID : UAR_ECONFIG;
	}
	*out = set;
	return UAR_OK;
}

void uar_config_destroy(struct uar_config_set *set)
{
	if (!set)
		return;
	uar_arena_fini(&set->arena);
	uar_free(set);
}

/* --- reload ------------------------------------------------------------------------ */
/* Puts the old value back by writing it as text would be read again. */
static uar_err keep_old(const struct uar_config_row *row, const struct uar_config_set *old,
			struct uar_config_set *set)
{
	size_t i = (size_t)(row - uar_config_rows);
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CONFIG_BYTES);
	const char *secret = NULL;
	uar_str where;
	uar_err e;

	if (row->type == UAR_CONFIG_SECRET)
		secret = *(const char *const *)(const void *)((const char *)&old->value +
							      row->offset);
	else
		uar_config_format(row, &old->value, &text);
	e = text.err;
	if (!e)
		e = uar_config_parse(row, secret ? uar_str_c(secret) : uar_buf_str(&text),
				     &set->arena, &set->value, NULL);
	uar_buf_fini(&text);
	where = uar_arena_str(&set->arena, uar_str_c(old->origin[i].where));
	if (e || !where.p)
		return e ? e : UAR_ENOMEM;
	set->origin[i].source = old->origin[i].source;
	set->origin[i].where = where.p;
	return UAR_OK;
}

uar_err uar_config_reload(const struct uar_config_set *old, struct uar_config_set **out,
			  struct uar_config_changes *changes, struct uar_buf *problems)
{
	struct uar_config_changes found = { .count = 0 };
	struct uar_config_set *set = NULL;
	uar_err e = uar_config_load(&old->input, &set, problems);

	for (size_t i = 0; !e && i < UAR_CONFIG_COUNT; i++) {
		const struct uar_config_row *row = &uar_config_rows[i];

		if (uar_config_same(row, &old->value, &set->value))
			continue;
		found.of[found.count].row = row;
		found.of[found.count++].applied = row->reload;
		if (!row->reload)
			e = keep_old(row, old, set);
	}
	if (e) {
		uar_config_destroy(set);
		return e;
	}
	*changes = found;
	*out = set;
	return UAR_OK;
}
