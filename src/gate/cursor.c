/* cursor.c - how a place in the log is written for clients. */
#include "gate/cursor.h"

void gate_cursor_put(struct uar_buf *out, uint64_t incarnation, uint64_t number)
{
	if (incarnation > 1) {
		uar_buf_add_u64(out, incarnation);
		uar_buf_add_str(out, UAR_STR("-"));
	}
	uar_buf_add_u64(out, number);
}

uar_err gate_cursor_parse(uar_str text, uint64_t incarnation, uint64_t *out)
{
	uint64_t of = 1, number = 0;
	uar_str rest = UAR_STR_NONE;
	size_t dash = uar_str_find(text, '-');

	if (dash < text.n) {
		uar_str first = uar_str_cut(text, '-', &rest);

		if (uar_str_u64(first, &of) || of < 2)
			return UAR_ECURSOR;
		text = rest;
	}
	if (uar_str_u64(text, &number))
		return UAR_ECURSOR;
	if (number && of != incarnation)
		return UAR_ERESYNC;
	*out = number;
	return UAR_OK;
}

uar_err gate_cursor_parse_frame(uar_str text, uint64_t incarnation, struct uar_cursor *out)
{
	uar_str rest = UAR_STR_NONE, head = uar_str_cut(text, '.', &rest);
	size_t dash = uar_str_find(head, '-');
	struct uar_cursor at;
	uar_err e = uar_cursor_read(dash < head.n ? uar_str_from(text, dash + 1) : text, &at);

	if (!e)
		e = gate_cursor_parse(head, incarnation, &at.run_sequence);
	if (!e)
		*out = at;
	return e;
}
