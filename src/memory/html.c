/* html.c - the words of an HTML page. It need not be valid: tags are skipped, blocks end lines. */
#include "memory/chunk.h"

static bool starts_fold(uar_str s, const char *word)
{
	size_t i = 0;

	for (; word[i] && i < s.n; i++) {
		char c = s.p[i] >= 'A' && s.p[i] <= 'Z' ? (char)(s.p[i] - 'A' + 'a') : s.p[i];

		if (c != word[i])
			return false;
	}
	return !word[i];
}

/* Behind the end tag of an element whose content is no text. */
static uar_str skip_element(uar_str rest, const char *end_tag)
{
	while (rest.n && !starts_fold(rest, end_tag))
		rest = uar_str_from(rest, 1);
	return rest;
}

static bool ends_line(uar_str tag)
{
	static const char *const blocks[] = { "p",  "div",     "br",	     "li",    "tr",
					      "h1", "h2",      "h3",	     "h4",    "h5",
					      "h6", "section", "article",    "table", "ul",
					      "ol", "pre",     "blockquote", "title" };
	uar_str name = tag.n && tag.p[0] == '/' ? uar_str_from(tag, 1) : tag;

	for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
		size_t n = strlen(blocks[i]);

		if (starts_fold(name, blocks[i]) &&
		    (name.n == n || name.p[n] == ' ' || name.p[n] == '/' || name.p[n] == '\n'))
			return true;
	}
	return false;
}

/* Headings stay headings: passages are cut and named by them. */
static void put_block(struct uar_buf *out, uar_str tag)
{
	if (tag.n > 1 && (tag.p[0] == 'h' || tag.p[0] == 'H') && tag.p[1] >= '1' && tag.p[1] <= '6')
		uar_buf_printf(out, "\n\n%.*s ", tag.p[1] - '0', "######");
	else
		uar_buf_add_str(out, UAR_STR("\n"));
}

static uar_str take_tag(uar_str rest, struct uar_buf *out)
{
	uar_str tag, after;

	if (starts_fold(rest, "<!--")) {
		rest = skip_element(rest, "-->");
		return uar_str_from(rest, 3);
	}
	tag = uar_str_cut(uar_str_from(rest, 1), '>', &after);
	if (starts_fold(tag, "script"))
		return skip_element(after, "</script");
	if (starts_fold(tag, "style"))
		return skip_element(after, "</style");
	if (ends_line(tag))
		put_block(out, tag);
	return after;
}

static void put_code_point(struct uar_buf *out, uint32_t c)
{
	char b[4];
	size_t n = 0;

	if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = 0xfffd;
	if (c < 0x80) {
		b[n++] = (char)c;
	} else if (c < 0x800) {
		b[n++] = (char)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		b[n++] = (char)(0xe0 | c >> 12);
		b[n++] = (char)(0x80 | (c >> 6 & 0x3f));
	} else {
		b[n++] = (char)(0xf0 | c >> 18);
		b[n++] = (char)(0x80 | (c >> 12 & 0x3f));
		b[n++] = (char)(0x80 | (c >> 6 & 0x3f));
	}
	if (c >= 0x80)
		b[n++] = (char)(0x80 | (c & 0x3f));
	uar_buf_add_str(out, uar_str_n(b, n));
}

static uint32_t number_of(uar_str digits, uint32_t base)
{
	uint32_t v = 0;

	for (size_t i = 0; i < digits.n && v < 0x110000; i++) {
		char c = digits.p[i];
		uint32_t d = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
			     : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10
			     : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10
						    : 99;

		if (d >= base)
			return 0;
		v = v * base + d;
	}
	return v;
}

static uar_str take_entity(uar_str rest, struct uar_buf *out)
{
	static const struct {
		const char *name;
		uint32_t c;
	} names[] = { { "amp", '&' },	   { "lt", '<' },	{ "gt", '>' },
		      { "quot", '"' },	   { "apos", '\'' },	{ "nbsp", ' ' },
		      { "mdash", 0x2014 }, { "ndash", 0x2013 }, { "copy", 0xa9 },
		      { "hellip", 0x2026 } };
	size_t n = uar_str_find(rest, ';');
	uar_str word = n < rest.n && n <= 10 ? uar_str_n(rest.p + 1, n - 1) : UAR_STR("");

	if (word.n > 1 && word.p[0] == '#') {
		bool hex = word.p[1] == 'x' || word.p[1] == 'X';

		put_code_point(out, number_of(uar_str_from(word, hex ? 2 : 1), hex ? 16 : 10));
		return uar_str_from(rest, n + 1);
	}
	for (size_t i = 0; i < ARRAY_LEN(names) && word.n; i++)
		if (uar_str_is(word, names[i].name)) {
			put_code_point(out, names[i].c);
			return uar_str_from(rest, n + 1);
		}
	uar_buf_add_char(out, '&');
	return uar_str_from(rest, 1);
}

void uar_html_text(uar_str html, struct uar_buf *out)
{
	while (html.n && !out->err) {
		size_t n = 0;

		while (n < html.n && html.p[n] != '<' && html.p[n] != '&')
			n++;
		uar_buf_add_str(out, uar_str_n(html.p, n));
		html = uar_str_from(html, n);
		if (html.n && html.p[0] == '<')
			html = take_tag(html, out);
		else if (html.n)
			html = take_entity(html, out);
	}
}
