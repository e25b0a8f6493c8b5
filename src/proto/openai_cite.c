/* openai_cite.c - sources as annotations of a text: each "[2]" in it is a url_citation, and a
 * source that the text does not name is one at its end. */
#include "proto/openai_int.h"

#include "proto/limits.h"

static const struct uar_json *find_source(const struct uar_json *list, uint64_t number)
{
	uint64_t at = 1;

	for (const struct uar_json *j = uar_json_at(list, 0); j; j = j->next, at++)
		if ((uint64_t)uar_json_int(uar_json_get(j, UAR_STR("number")), (int64_t)at) ==
		    number)
			return j;
	return NULL;
}

static bool is_marked(const struct openai_cites *c, const struct uar_json *source)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->at[i].source == source)
			return true;
	return false;
}

static void add_cite(struct openai_cites *c, const struct uar_json *source, int64_t start,
		     int64_t end)
{
	if (c->n < UAR_LIMIT_OPENAI_CITES)
		c->at[c->n++] = (struct openai_cite){ source, start, end };
}

/* The number of a "[12]" that the text begins with; its length, 0: it is none. */
static size_t read_mark(uar_str text, uint64_t *out)
{
	uar_str rest, digits = uar_str_cut(uar_str_from(text, 1), ']', &rest);

	if (digits.n > 4 || digits.n + 2 > text.n || uar_str_u64(digits, out))
		return 0;
	return text.p[digits.n + 1] == ']' ? digits.n + 2 : 0;
}

/* Positions count characters, as the API does. */
static int64_t mark_all(uar_str text, const struct uar_json *list, struct openai_cites *out)
{
	int64_t position = 0;
	uint64_t number = 0;

	for (size_t i = 0; i < text.n; i++) {
		size_t n = text.p[i] == '[' ? read_mark(uar_str_from(text, i), &number) : 0;
		const struct uar_json *source = n ? find_source(list, number) : NULL;

		if (source)
			add_cite(out, source, position, position + (int64_t)n);
		position += ((unsigned char)text.p[i] & 0xc0) != 0x80;
	}
	return position;
}

uar_err openai_find_cites(const struct uar_view_message *m, struct uar_arena *arena,
			  struct openai_cites *out)
{
	uar_str text = uar_buf_str(&m->text);
	const struct uar_json *list = NULL;
	uar_err e = UAR_OK;
	uar_str json;

	*out = (struct openai_cites){ .n = 0 };
	if (!m->cited.n)
		return UAR_OK;
	json = uar_arena_printf(arena, "[%.*s]", UAR_FMT(uar_buf_str(&m->cited)));
	out->at = uar_arena_alloc(arena, UAR_LIMIT_OPENAI_CITES * sizeof *out->at);
	e = json.p && out->at ? uar_json_parse(json, NULL, arena, &list, NULL) : UAR_ENOMEM;
	if (e)
		return e;
	out->end = mark_all(text, list, out);
	for (const struct uar_json *j = uar_json_at(list, 0); j; j = j->next)
		if (!is_marked(out, j))
			add_cite(out, j, out->end, out->end);
	return UAR_OK;
}

static void put_members(struct uar_jw *w, const struct openai_cite *c, int64_t before)
{
	uar_jw_int(w, "start_index", before + c->start);
	uar_jw_int(w, "end_index", before + c->end);
	uar_jw_str(w, "title", uar_json_text(c->source, "title"));
	uar_jw_str(w, "url", uar_json_text(c->source, "url"));
}

void openai_put_cite(struct uar_jw *w, const char *key, const struct openai_cite *c)
{
	uar_jw_obj(w, key);
	uar_jw_cstr(w, "type", "url_citation");
	put_members(w, c, 0);
	uar_jw_close(w);
}

void openai_put_chat_cite(struct uar_jw *w, const struct openai_cite *c, int64_t before)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "type", "url_citation");
	uar_jw_obj(w, "url_citation");
	put_members(w, c, before);
	uar_jw_close(w);
	uar_jw_close(w);
}
