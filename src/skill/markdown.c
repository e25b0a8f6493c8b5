/* markdown.c - a SKILL.md file becomes the JSON of a skill. */
#include "agent/source.h"
#include "json/jw.h"
#include "skill/skill.h"

enum { DESCRIPTION_BYTES = 1024 }; /* of one that is taken from the body */

/* The text between two lines of "---", and what follows them. */
static bool cut_front_matter(uar_str text, uar_str *out_front, uar_str *out_body)
{
	uar_str rest = text, line;
	const char *begin;

	if (uar_str_starts(rest, UAR_STR("\xef\xbb\xbf")))
		rest = uar_str_from(rest, 3);
	line = uar_str_trim(uar_str_cut(rest, '\n', &rest));
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	if (!uar_str_is(line, "---"))
		return false;
	begin = rest.p;
	while (rest.n) {
		const char *here = rest.p;

		line = uar_str_cut(rest, '\n', &rest);
		if (line.n && line.p[line.n - 1] == '\r')
			line.n--;
		if (uar_str_is(line, "---")) {
			*out_front = uar_str_n(begin, (size_t)(here - begin));
			*out_body = rest;
			return true;
		}
	}
	return false;
}

static char fold_byte(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return c == ' ' ? '_' : c;
}

static void put_id(struct uar_jw *w, uar_str name)
{
	char id[UAR_LIMIT_SKILL_ID + 1];
	size_t n = name.n < sizeof id ? name.n : sizeof id;

	for (size_t i = 0; i < n; i++)
		id[i] = fold_byte(name.p[i]);
	uar_jw_str(w, "skill_id", uar_str_n(id, n));
}

static void put_value(struct uar_jw *w, const char *key, const struct uar_json *j)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_SKILL_BYTES);

	uar_json_write(&text, j);
	uar_jw_raw(w, key, uar_buf_str(&text));
	if (text.err)
		w->err = w->err ? w->err : text.err;
	uar_buf_fini(&text);
}

/* A list stays one; "a, b" becomes one. */
static void put_list(struct uar_jw *w, const char *key, const struct uar_json *j)
{
	uar_str rest = j->kind == UAR_JSON_STRING ? j->text : UAR_STR("");

	if (j->kind != UAR_JSON_STRING) {
		put_value(w, key, j);
		return;
	}
	uar_jw_arr(w, key);
	while (rest.n) {
		uar_str word = uar_str_trim(uar_str_cut(rest, ',', &rest));

		if (word.n)
			uar_jw_str(w, NULL, word);
	}
	uar_jw_close(w);
}

static void put_triggers(struct uar_jw *w, const struct uar_json *j)
{
	if (j->kind == UAR_JSON_OBJECT) {
		put_value(w, "triggers", j);
		return;
	}
	uar_jw_obj(w, "triggers");
	put_list(w, "keywords", j);
	uar_jw_close(w);
}

/* Numbers are fine as versions: YAML reads 1.0 as one. */
static void put_version(struct uar_jw *w, const struct uar_json *j)
{
	uar_jw_str(w, "version", j->text);
}

static bool is_own(uar_str key)
{
	static const char *const own[] = { "title",	     "description", "enabled",
					   "tool_templates", "constraints", "requires",
					   "post_processing" };

	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (uar_str_is(key, own[i]))
			return true;
	return false;
}

static void put_member(struct uar_jw *w, const struct uar_json *m)
{
	if (uar_str_is(m->key, "name"))
		put_id(w, uar_str_trim(m->text));
	else if (uar_str_is(m->key, "version"))
		put_version(w, m);
	else if (uar_str_is(m->key, "triggers"))
		put_triggers(w, m);
	else if (uar_str_is(m->key, "tools") || uar_str_is(m->key, "allowed-tools"))
		put_list(w, "preferred_tools", m);
	else if (is_own(m->key)) {
		char key[32];

		snprintf(key, sizeof key, "%.*s", UAR_FMT(m->key));
		put_value(w, key, m);
	}
}

static bool is_foreign(uar_str key)
{
	static const char *const known[] = { "name",  "version",       "triggers",
					     "tools", "allowed-tools", "preferred_tools" };

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (uar_str_is(key, known[i]))
			return false;
	return !is_own(key);
}

/* The first lines of the body that are no heading, as one. */
static void put_paragraph(struct uar_jw *w, uar_str body)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_SKILL_BYTES);

	while (body.n) {
		uar_str line = uar_str_trim(uar_str_cut(body, '\n', &body));

		if (line.n && line.p[line.n - 1] == '\r')
			line.n--;
		if (!line.n && text.n)
			break;
		if (!line.n || line.p[0] == '#')
			continue;
		if (text.n)
			uar_buf_add_char(&text, ' ');
		uar_buf_add_str(&text, line);
	}
	uar_jw_str(w, "description", uar_str_utf8_prefix(uar_buf_str(&text), DESCRIPTION_BYTES));
	uar_buf_fini(&text);
}

/* What only other programs know, and the folder, which nothing in the file may name. */
static void put_metadata(struct uar_jw *w, const struct uar_json *front, uar_str folder)
{
	uar_jw_obj(w, "metadata");
	if (folder.n)
		uar_jw_str(w, "folder", folder);
	for (const struct uar_json *m = uar_json_first(front); m; m = m->next)
		if (is_foreign(m->key) && !uar_str_is(m->key, "folder")) {
			struct uar_buf text = uar_buf_make(UAR_LIMIT_SKILL_BYTES);

			uar_json_write(&text, m);
			uar_jw_put_raw(w, m->key, uar_buf_str(&text));
			uar_buf_fini(&text);
		}
	uar_jw_close(w);
}

static void put_skill(struct uar_jw *w, const struct uar_json *front, uar_str folder, uar_str body)
{
	bool foreign = false;

	uar_jw_obj(w, NULL);
	if (folder.n && !uar_json_get(front, UAR_STR("name")))
		put_id(w, folder);
	if (folder.n && !uar_json_get(front, UAR_STR("description")))
		put_paragraph(w, body);
	for (const struct uar_json *m = uar_json_first(front); m; m = m->next) {
		put_member(w, m);
		foreign |= is_foreign(m->key);
	}
	uar_jw_str(w, "prompt_overlay", uar_str_trim(body));
	if (foreign || folder.n)
		put_metadata(w, front, folder);
	uar_jw_close(w);
}

/* --- front matter that is no YAML ------------------------------------------------------------- */

/* "key: text" at the beginning of a line, where the text is plain: neither quoted nor a list, an
 * object, a block or a reference. */
static bool is_plain_member(uar_str line, uar_str *out_key, uar_str *out_text)
{
	uar_str text, key = uar_str_cut(line, ':', &text);

	for (size_t i = 0; i < key.n; i++) {
		char c = key.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_'))
			return false;
	}
	text = uar_str_trim(text);
	if (text.n && text.p[text.n - 1] == '\r')
		text.n--;
	*out_key = key;
	*out_text = text;
	return key.n && text.n && !strchr("\"'[{|>&*!", text.p[0]);
}

static bool breaks_yaml(uar_str text)
{
	return strchr("@`%", text.p[0]) || text.p[text.n - 1] == ':' ||
	       memmem(text.p, text.n, ": ", 2);
}

/* Other programs take "description: Use it when: ...", which YAML does not: texts are quoted, the
 * other lines stay. */
static void quote_members(uar_str front, struct uar_buf *out)
{
	while (front.n) {
		uar_str line = uar_str_cut(front, '\n', &front), key, text;

		if (is_plain_member(line, &key, &text) && breaks_yaml(text)) {
			uar_buf_add_str(out, key);
			uar_buf_add_str(out, UAR_STR(": '"));
			for (size_t i = 0; i < text.n; i++) {
				if (text.p[i] == '\'')
					uar_buf_add_char(out, '\'');
				uar_buf_add_char(out, text.p[i]);
			}
			uar_buf_add_char(out, '\'');
		} else {
			uar_buf_add_str(out, line);
		}
		uar_buf_add_char(out, '\n');
	}
}

/* What is wrong is told of the text as it is. */
static uar_err read_front(uar_str front, struct uar_buf *out, struct uar_error *error)
{
	struct uar_buf quoted = uar_buf_make(2 * UAR_LIMIT_SKILL_BYTES);
	uar_err e = uar_source_read(UAR_STR("SKILL.yaml"), front, out, error);
	uar_err again = e;

	if (e == UAR_ESYNTAX) {
		uar_buf_clear(out);
		quote_members(front, &quoted);
		again = quoted.err ? quoted.err
				   : uar_source_read(UAR_STR("SKILL.yaml"), uar_buf_str(&quoted),
						     out, NULL);
	}
	uar_buf_fini(&quoted);
	return again ? e : UAR_OK;
}

/* The front matter as JSON, and with the body as a skill. */
static uar_err convert(uar_str front, uar_str folder, uar_str body, struct uar_buf *out,
		       struct uar_error *error)
{
	struct uar_buf json = uar_buf_make(UAR_LIMIT_SKILL_BYTES);
	struct uar_jw w = uar_jw_begin(out);
	const struct uar_json *tree;
	struct uar_arena arena;
	uar_err e = read_front(front, &json, error);

	uar_arena_init(&arena, 0);
	if (!e)
		e = uar_json_parse(uar_buf_str(&json), NULL, &arena, &tree, error);
	if (!e && tree->kind != UAR_JSON_OBJECT)
		e = uar_error_set(error, UAR_EINVALID, "the front matter has no members");
	if (!e) {
		put_skill(&w, tree, folder, body);
		e = uar_jw_end(&w);
	}
	uar_arena_fini(&arena);
	uar_buf_fini(&json);
	return e;
}

uar_err uar_skill_read_folder(uar_str folder, uar_str text, struct uar_skill *out,
			      struct uar_error *error)
{
	struct uar_buf json = uar_buf_make(UAR_LIMIT_SKILL_BYTES);
	uar_str front, body;
	uar_err e;

	if (text.n > UAR_LIMIT_SKILL_BYTES)
		return uar_error_set(error, UAR_ETOOBIG, "a skill has at most %d bytes",
				     UAR_LIMIT_SKILL_BYTES);
	if (!cut_front_matter(text, &front, &body))
		return uar_error_set(error, UAR_EINVALID,
				     "the file does not begin with front matter: a line of ---, "
				     "members such as name and description, a line of ---");
	e = convert(front, folder, body, &json, error);
	if (!e)
		e = uar_skill_read(uar_buf_str(&json), out, error);
	uar_buf_fini(&json);
	return e;
}

uar_err uar_skill_read_markdown(uar_str text, struct uar_skill *out, struct uar_error *error)
{
	return uar_skill_read_folder(UAR_STR(""), text, out, error);
}
