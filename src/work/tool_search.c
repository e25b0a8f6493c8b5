/* tool_search.c - many tools of MCP servers: a model is told of those that it has searched for.
 *
 * What was found is in the log, as the results of earlier searches of the run. */
#include "work/limits.h"
#include "work/rounds.h"

#include "json/jw.h"

#define SEARCH_TOOL "internal:tools.search"

static bool is_remote(const struct uar_tool *t)
{
	return uar_str_is(t->transport, "mcp");
}

bool rt_toolset_is_lazy(const struct toolset *s)
{
	const struct uar_tool *t;
	size_t n = 0;

	for (size_t i = 0; s->registry && s->policy && n <= UAR_LIMIT_MCP_TOLD &&
			   (t = s->registry->ops->at(s->registry, i));
	     i++)
		n += is_remote(t) && rt_tool_is_ready(t) && rt_toolset_has(s, t);
	return n > UAR_LIMIT_MCP_TOLD;
}

static bool names(uar_str told, uar_str model_name)
{
	char quoted[UAR_LIMIT_TOOL_NAME + 3];
	int n = snprintf(quoted, sizeof quoted, "\"%.*s\"", UAR_FMT(model_name));

	return told.n && n > 0 && memmem(told.p, told.n, quoted, (size_t)n);
}

bool rt_toolset_holds_back(const struct toolset *s, const struct uar_tool *t)
{
	const struct uar_tool *search = uar_tools_find(s->registry, s->owner, UAR_STR(SEARCH_TOOL));

	if (!is_remote(t) || !search)
		return false;
	for (size_t i = 0; s->rounds && i < s->rounds->count; i++)
		for (size_t k = 0; k < s->rounds->at[i].call_count; k++) {
			const struct round_call *c = &s->rounds->at[i].calls[k];

			if (uar_str_eq(c->name, t->model_name) ||
			    (uar_str_eq(c->name, search->model_name) && c->ended && !c->failed &&
			     names(c->told, t->model_name)))
				return false;
		}
	return true;
}

/* --- searching ------------------------------------------------------------------------------ */

static bool has_word(uar_str text, uar_str word)
{
	for (size_t i = 0; word.n && i + word.n <= text.n; i++)
		if (strncasecmp(text.p + i, word.p, word.n) == 0)
			return true;
	return false;
}

/* A word in the name counts for more than one in the description. */
static unsigned rate(const struct uar_tool *t, uar_str query)
{
	unsigned score = 0;

	while (query.n) {
		uar_str word = uar_str_cut(query, ' ', &query);

		score += has_word(t->tool_id, word) ? 3 : has_word(t->description, word) ? 1 : 0;
	}
	return score;
}

struct found {
	const struct uar_tool *tool;
	unsigned score;
};

/* The best first; of equals the one that is listed first. */
static size_t place(struct found *all, size_t n, struct found f)
{
	size_t at = n;

	while (at > 0 && all[at - 1].score < f.score)
		at--;
	if (at == UAR_LIMIT_TOOLS_FOUND)
		return n;
	n += n < UAR_LIMIT_TOOLS_FOUND;
	memmove(all + at + 1, all + at, (n - at - 1) * sizeof *all);
	all[at] = f;
	return n;
}

static void put_found(struct uar_jw *w, const struct found *f)
{
	uar_jw_obj(w, NULL);
	uar_jw_str(w, "name", f->tool->model_name);
	uar_jw_str(w, "tool_id", f->tool->tool_id);
	uar_jw_str(w, "description", uar_str_utf8_prefix(f->tool->description, UAR_TEXT_REASON));
	uar_jw_close(w);
}

uar_err rt_toolset_search(const struct toolset *s, uar_str args, struct uar_buf *out)
{
	struct found all[UAR_LIMIT_TOOLS_FOUND];
	struct uar_jw w = uar_jw_begin(out);
	const struct uar_json *j = NULL;
	struct uar_arena arena = { 0 };
	const struct uar_tool *t;
	uar_str query = UAR_STR("");
	size_t n = 0;
	uar_err e = uar_json_parse(args, NULL, &arena, &j, NULL);

	if (!e)
		query = uar_json_text(j, "query");
	for (size_t i = 0; !e && (t = s->registry->ops->at(s->registry, i)); i++) {
		unsigned score = is_remote(t) && rt_tool_is_ready(t) && rt_toolset_has(s, t)
					 ? rate(t, query)
					 : 0;

		if (score)
			n = place(all, n, (struct found){ t, score });
	}
	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "tools");
	for (size_t i = 0; i < n; i++)
		put_found(&w, &all[i]);
	uar_jw_close(&w);
	uar_jw_close(&w);
	uar_arena_fini(&arena);
	return e ? e : uar_jw_end(&w);
}
