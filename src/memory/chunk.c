/* chunk.c - lines are gathered until a passage is full or a heading begins. */
#include "memory/chunk.h"

#include <string.h>

struct cutter {
	enum uar_chunk_kind kind;
	uar_chunk_fn *fn;
	void *ctx;
	uar_str heading;
	const char *begin; /* of the passage; NULL: it has no line yet */
	const char *end;
	size_t line, page;	   /* of its first line */
	size_t now_line, now_page; /* of the line under way */
};

static uar_str without_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t' || *p == '\f'))
		p++;
	while (end > p && (end[-1] == ' ' || end[-1] == '\n' || end[-1] == '\r' ||
			   end[-1] == '\t' || end[-1] == '\f'))
		end--;
	return uar_str_n(p, (size_t)(end - p));
}

/* One long line is cut between characters. */
static uar_err give_pieces(struct cutter *c, uar_str text)
{
	uar_err e = UAR_OK;

	while (text.n && !e) {
		uar_str piece = uar_str_utf8_prefix(text, UAR_LIMIT_KB_CHUNK_MAX);
		struct uar_chunk chunk = { piece, c->heading, c->line, c->page };

		if (!piece.n)
			break; /* no UTF-8; the caller has checked */
		e = c->fn(c->ctx, &chunk);
		text = uar_str_from(text, piece.n);
	}
	return e;
}

static uar_err finish_passage(struct cutter *c)
{
	uar_str text = c->begin ? without_blanks(c->begin, c->end) : UAR_STR("");

	c->begin = NULL;
	return text.n ? give_pieces(c, text) : UAR_OK;
}

/* "int main(void)" or "class Tree:", at the left. */
static bool is_definition(uar_str line, uar_str *out)
{
	char last;

	line = uar_str_n(line.p, without_blanks(line.p, line.p + line.n).n);
	if (line.n < 4 || line.n > 200)
		return false;
	last = line.p[line.n - 1];
	if (!((line.p[0] >= 'a' && line.p[0] <= 'z') || (line.p[0] >= 'A' && line.p[0] <= 'Z')))
		return false;
	if (last != '{' && last != ':' && last != ')')
		return false;
	while (line.n && strchr("{: ", line.p[line.n - 1]))
		line.n--;
	*out = line;
	return line.n > 0;
}

/* "## Title" gives "Title". */
static bool is_heading(const struct cutter *c, uar_str line, uar_str *out)
{
	size_t n = 0;

	if (c->kind == UAR_CHUNK_CODE)
		return is_definition(line, out);
	if (c->kind == UAR_CHUNK_TEXT)
		return false;
	while (n < line.n && line.p[n] == '#')
		n++;
	if (n == 0 || n > 6 || n == line.n || line.p[n] != ' ')
		return false;
	*out = uar_str_trim(uar_str_from(line, n));
	if (out->n && out->p[out->n - 1] == '\r')
		out->n--;
	return true;
}

static bool is_blank(uar_str line)
{
	return without_blanks(line.p, line.p + line.n).n == 0;
}

static uar_err add_line(struct cutter *c, uar_str line, const char *end)
{
	size_t have = c->begin ? (size_t)(c->end - c->begin) : 0;
	uar_str heading;
	uar_err e = UAR_OK;

	if (is_heading(c, line, &heading)) {
		/* Small functions stay together. */
		if (c->kind != UAR_CHUNK_CODE || have >= UAR_LIMIT_KB_CHUNK / 2 || !have) {
			e = finish_passage(c);
			c->heading = heading;
		}
	} else if (have && ((is_blank(line) && have >= UAR_LIMIT_KB_CHUNK) ||
			    have + line.n > UAR_LIMIT_KB_CHUNK_MAX)) {
		e = finish_passage(c);
	}
	if (e || (!c->begin && is_blank(line)))
		return e;
	if (!c->begin) {
		c->begin = line.p;
		c->line = c->now_line;
		c->page = c->now_page;
	}
	c->end = end;
	return UAR_OK;
}

uar_err uar_chunk_text(uar_str text, enum uar_chunk_kind kind, uar_chunk_fn *fn, void *ctx)
{
	struct cutter c = { .kind = kind,
			    .fn = fn,
			    .ctx = ctx,
			    .heading = UAR_STR(""),
			    .now_line = 1,
			    .now_page = 1 };
	const char *end = text.p + text.n;
	uar_err e = UAR_OK;

	while (text.n && !e) {
		size_t n = uar_str_find(text, '\n');
		uar_str line = uar_str_n(text.p, n);

		for (size_t i = 0; i < line.n && !e; i++) {
			if (line.p[i] == '\f') {
				e = finish_passage(&c);
				c.now_page++;
			}
		}
		if (e)
			break;
		text = uar_str_from(text, n + 1);
		e = add_line(&c, line, text.n ? text.p : end);
		c.now_line++;
	}
	return e ? e : finish_passage(&c);
}
