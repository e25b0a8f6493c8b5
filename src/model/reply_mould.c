/* reply_mould.c - knows an event again that differs from the last in its text alone.
 *
 * While a model speaks, its provider fills one string after the other into a frame
 * that stays the same. What that frame says has been read with the event before, and
 * saying it again changes nothing; so only the string is looked at. */
#include "model/reply_int.h"

bool uar_reply_mould_fits(const struct uar_reply_mould *m, const struct uar_sse_event *ev,
			  uar_str *out_text)
{
	size_t around = m->before + m->after;
	uar_str text, event = ev->data;

	if (around == 0 || event.n < around ||
	    !uar_str_eq(ev->event, uar_str_n(m->name, m->name_n)))
		return false;
	text = uar_str_n(event.p + m->before, event.n - around);
	if (memcmp(event.p, m->bytes, m->before) != 0 ||
	    memcmp(text.p + text.n, m->bytes + m->before, m->after) != 0 ||
	    !uar_json_is_plain(text))
		return false;
	*out_text = text;
	return true;
}

void uar_reply_mould_make(struct uar_reply_mould *m, const struct uar_sse_event *ev, uar_str text)
{
	uar_str event = ev->data;
	uintptr_t first = (uintptr_t)event.p, at = (uintptr_t)text.p;

	m->before = m->after = 0;
	if (at < first || at - first >= event.n || event.n - text.n > sizeof m->bytes ||
	    ev->event.n > sizeof m->name)
		return; /* it had escapes and lies elsewhere, or the rest is too long */
	m->name_n = ev->event.n;
	if (m->name_n)
		memcpy(m->name, ev->event.p, m->name_n);
	m->before = at - first;
	m->after = event.n - text.n - m->before;
	memcpy(m->bytes, event.p, m->before);
	memcpy(m->bytes + m->before, text.p + text.n, m->after);
}
