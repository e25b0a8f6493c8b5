/* past_cut.c - which part of a conversation is condensed, and what it says. */
#include "work/past.h"

/* The newest message that does not stay, when the newer ones have at most `keep` bytes. */
static const struct past_message *first_to_go(const struct past *p, const struct live_run *r,
					      size_t keep)
{
	const struct past_message *m = NULL;
	size_t bytes = 0;

	while ((m = rt_past_before(p, r, m))) {
		bytes += m->text.n;
		if (bytes > keep)
			return m;
	}
	return NULL;
}

/* Turns stay whole: what stays begins with a question. */
const struct past_message *rt_past_cut(const struct past *p, const struct live_run *r, size_t keep)
{
	const struct past_message *cut = first_to_go(p, r, keep), *older = cut;

	while (older && older->role == UAR_MODEL_USER)
		older = rt_past_before(p, r, older);
	if (cut && !older) /* the first question alone is too long: all of it goes */
		older = rt_past_before(p, r, NULL);
	return older && older->ended && !older->summary ? older : NULL;
}

static const char *name_of(const struct past_message *m)
{
	if (m->role == UAR_MODEL_SYSTEM)
		return "before";
	return m->role == UAR_MODEL_USER ? "user" : "assistant";
}

size_t rt_past_bytes(const struct past *p, const struct past_message *last)
{
	size_t bytes = 0;

	UAR_LIST_EACH (it, &p->said) {
		const struct past_message *m = UAR_OWNER(it, struct past_message, node);

		bytes += m->text.n;
		if (m == last)
			break;
	}
	return bytes;
}

void rt_past_write(const struct past *p, const struct past_message *last, size_t most,
		   struct uar_buf *out)
{
	size_t skip = rt_past_bytes(p, last);

	skip = skip > most ? skip - most : 0;
	UAR_LIST_EACH (it, &p->said) {
		const struct past_message *m = UAR_OWNER(it, struct past_message, node);

		if (skip >= m->text.n) {
			skip -= m->text.n;
		} else {
			uar_buf_printf(out, "%s: %.*s\n\n", name_of(m), UAR_FMT(m->text));
			skip = 0;
		}
		if (m == last)
			break;
	}
}

void rt_past_turns(struct uar_jw *w, const char *key, const struct past *p,
		   const struct past_message *last)
{
	uar_jw_arr(w, key);
	UAR_LIST_EACH (it, &p->said) {
		const struct past_message *m = UAR_OWNER(it, struct past_message, node);

		if (m->turn_id[0])
			uar_jw_cstr(w, NULL, m->turn_id);
		if (m == last)
			break;
	}
	uar_jw_close(w);
}
