/* source.c - comments and last commas become blanks; nothing moves to another line. */
#include "agent/source_int.h"

static const struct {
	const char *ending;
	bool yaml;
} formats[] = {
	{ ".json", false },
	{ ".jsonc", false },
	{ ".yaml", true },
	{ ".yml", true },
};

bool uar_source_is_named(uar_str file)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (uar_str_ends(file, uar_str_c(formats[i].ending)))
			return true;
	return false;
}

static bool is_yaml(uar_str file)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (uar_str_ends(file, uar_str_c(formats[i].ending)))
			return formats[i].yaml;
	return false;
}

/* --- JSON with comments -------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Behind the string that begins at i. */
static size_t skip_string(uar_str s, size_t i)
{
	for (i++; i < s.n && s.p[i] != '"'; i++)
		if (s.p[i] == '\\')
			i++;
	return i < s.n ? i + 1 : s.n;
}

/* Behind the comment that begins at i; i itself: none begins there. */
static size_t skip_comment(uar_str s, size_t i)
{
	if (i + 1 >= s.n || s.p[i] != '/')
		return i;
	if (s.p[i + 1] == '/')
		return i + uar_str_find(uar_str_from(s, i), '\n');
	if (s.p[i + 1] != '*')
		return i;
	for (i += 2; i + 1 < s.n; i++)
		if (s.p[i] == '*' && s.p[i + 1] == '/')
			return i + 2;
	return s.n;
}

static void add_blanks(struct uar_buf *out, uar_str comment)
{
	for (size_t i = 0; i < comment.n; i++)
		uar_buf_add_char(out, is_blank(comment.p[i]) ? comment.p[i] : ' ');
}

/* The place of the last comma, when nothing but blanks came after it. */
static void close_bracket(struct uar_buf *out, size_t comma)
{
	if (comma < out->n && !out->err)
		out->p[comma] = ' ';
}

static void strip_comments(uar_str s, struct uar_buf *out)
{
	size_t comma = SIZE_MAX;

	for (size_t i = 0; i < s.n;) {
		size_t end = skip_comment(s, i);
		char c = s.p[i];

		if (end > i) {
			add_blanks(out, uar_str_n(s.p + i, end - i));
			i = end;
			continue;
		}
		if (c == '}' || c == ']')
			close_bracket(out, comma);
		if (c == ',')
			comma = out->n;
		else if (!is_blank(c))
			comma = SIZE_MAX;
		end = c == '"' ? skip_string(s, i) : i + 1;
		uar_buf_add(out, s.p + i, end - i);
		i = end;
	}
}

uar_err uar_source_read(uar_str file, uar_str text, struct uar_buf *out, struct uar_error *error)
{
	if (uar_str_starts(text, UAR_STR("\xef\xbb\xbf"))) /* as editors of Windows begin a file */
		text = uar_str_from(text, 3);
	if (is_yaml(file))
		return uar_source_yaml(text, out, error);
	strip_comments(text, out);
	return out->err;
}

/* --- the line of a pointer --------------------------------------------------------------- */

struct walk {
	uar_str json;
	size_t at;
};

static void skip_blanks(struct walk *w)
{
	while (w->at < w->json.n &&
	       (is_blank(w->json.p[w->at]) || w->json.p[w->at] == ',' || w->json.p[w->at] == ':'))
		w->at++;
}

static void skip_value(struct walk *w)
{
	size_t depth = 0;

	skip_blanks(w);
	while (w->at < w->json.n) {
		char c = w->json.p[w->at];

		if (depth == 0 && (c == ',' || c == '}' || c == ']' || is_blank(c)))
			return;
		if (c == '"') {
			w->at = skip_string(w->json, w->at);
		} else {
			depth += c == '{' || c == '[';
			depth -= c == '}' || c == ']';
			w->at++;
		}
		if (depth == 0 && (c == '"' || c == '}' || c == ']'))
			return;
	}
}

/* Escapes of keys are not undone: such a key is not found, and its object is named. */
static bool is_key(uar_str quoted, uar_str token)
{
	size_t k = 1;

	for (size_t i = 0; i < token.n; i++) {
		char c = token.p[i];

		if (c == '~' && i + 1 < token.n)
			c = token.p[++i] == '1' ? '/' : '~';
		if (k + 1 >= quoted.n || quoted.p[k++] != c)
			return false;
	}
	return k + 1 == quoted.n;
}

/* To the key of the member, or to the item; false: it is not there. */
static bool enter(struct walk *w, uar_str token)
{
	bool object = w->at < w->json.n && w->json.p[w->at] == '{';
	uint64_t item = 0;

	if (!object && (w->at >= w->json.n || w->json.p[w->at] != '[' || uar_str_u64(token, &item)))
		return false;
	for (w->at++;; skip_value(w)) {
		size_t start;

		skip_blanks(w);
		start = w->at;
		if (start >= w->json.n || w->json.p[start] == '}' || w->json.p[start] == ']')
			return false;
		if (!object && item-- == 0)
			return true;
		if (!object)
			continue;
		w->at = skip_string(w->json, start);
		if (is_key(uar_str_n(w->json.p + start, w->at - start), token)) {
			skip_blanks(w);
			return true;
		}
	}
}

static size_t line_at(uar_str json, size_t at)
{
	size_t line = 1;

	for (size_t i = 0; i < at && i < json.n; i++)
		line += json.p[i] == '\n';
	return line;
}

size_t uar_source_line(uar_str json, uar_str pointer)
{
	struct walk w = { json, 0 };
	uar_str rest = uar_str_from(pointer, 1);
	size_t found;

	skip_blanks(&w);
	found = w.at;
	while (rest.n) {
		uar_str token = uar_str_cut(rest, '/', &rest);

		if (!enter(&w, token))
			break;
		found = w.at;
	}
	return line_at(json, found);
}
