/* openai_mould.c - knows an event again that differs from the last in its text alone.
 *
 * While a model speaks, its provider fills one string after the other into a frame
 * that stays the same. What that frame says has been read with the event before, and
 * saying it again changes nothing; so only the string is looked at. */
#include "model/openai_int.h"

bool uar_openai_mould_fits(const struct uar_openai_mould *m, uar_str event, uar_str *out_text)
{
	size_t around = m->before + m->after;
	uar_str text;

	if (around == 0 || event.n < around)
		return false;
	text = uar_str_n(event.p + m->before, event.n - around);
	if (memcmp(event.p, m->bytes, m->before) != 0 ||
	    memcmp(text.p + text.n, m->bytes + m->before, m->after) != 0 ||
	    !uar_json_is_plain(text))
		return false;
	*out_text = text;
	return true;
}

void uar_openai_mould_make(struct uar_openai_mould *m, uar_str event, uar_str text)
{
	uintptr_t first = (uintptr_t)event.p, at = (uintptr_t)text.p;

	m->before = m->after = 0;
	if (at < first || at - first >= event.n || event.n - text.n > sizeof m->bytes)
		return; /* it had escapes and lies elsewhere, or the rest is too long */
	m->before = at - first;
	m->after = event.n - text.n - m->before;
	memcpy(m->bytes, event.p, m->before);
	memcpy(m->bytes + m->before, text.p + text.n, m->after);
}
