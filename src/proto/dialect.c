/* dialect.c - frames and cursors that all dialects share. */
#include "proto/dialect.h"

void uar_frame_open(struct uar_frames *f, const char *event)
{
	f->count++;
	if (event) {
		uar_buf_add_str(f->out, UAR_STR("event: "));
		uar_buf_add_str(f->out, uar_str_c(event));
		uar_buf_add_char(f->out, '\n');
	}
	if (f->run_sequence) {
		uar_buf_add_str(f->out, UAR_STR("id: "));
		if (f->incarnation > 1) {
			uar_buf_add_u64(f->out, f->incarnation);
			uar_buf_add_char(f->out, '-');
		}
		uar_buf_add_u64(f->out, f->run_sequence);
		uar_buf_add_char(f->out, '.');
		uar_buf_add_u64(f->out, f->count);
		uar_buf_add_char(f->out, '\n');
	}
	uar_buf_add_str(f->out, UAR_STR("data: "));
}

/* JSON has no line ends of its own, so one data line holds it. */
uar_err uar_frame_close(struct uar_frames *f, struct uar_jw *w)
{
	uar_err e = uar_jw_end(w);

	uar_buf_add_str(f->out, UAR_STR("\n\n"));
	return e ? e : f->out->err;
}

bool uar_frame_next(uar_str *rest, uar_str *out_json)
{
	const uar_str mark = UAR_STR("data: ");
	uar_str line = UAR_STR_NONE;

	while (rest->n && !uar_str_starts(line, mark))
		line = uar_str_cut(*rest, '\n', rest);
	*out_json = uar_str_from(line, mark.n);
	return uar_str_starts(line, mark);
}

uar_err uar_cursor_read(uar_str text, struct uar_cursor *out)
{
	uar_str rest = UAR_STR_NONE, head = uar_str_cut(text, '.', &rest);
	bool whole = head.n == text.n;
	uint64_t sequence, k = UINT32_MAX;

	if (uar_str_u64(head, &sequence) || (!whole && uar_str_u64(rest, &k)) || k > UINT32_MAX)
		return UAR_ECURSOR;
	out->run_sequence = sequence;
	out->k = (uint32_t)k;
	return UAR_OK;
}
