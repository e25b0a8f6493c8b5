/* time.c - time.now. */
#include "tool/internal_int.h"

/* "+02:30", as the schema has checked it. */
static int64_t seconds_of(uar_str offset)
{
	const char *p = offset.p;
	int64_t minutes;

	if (offset.n != 6)
		return 0;
	minutes = ((p[1] - '0') * 10 + (p[2] - '0')) * 60 + (p[4] - '0') * 10 + (p[5] - '0');
	return p[0] == '-' ? -minutes * 60 : minutes * 60;
}

void uar_tool_time_now(struct uar_tool_job *j)
{
	uar_str offset = uar_json_text(j->input, "utc_offset");
	char text[UAR_TIME_TEXT + 8];
	struct uar_jw w = uar_jw_begin(&j->out);

	uar_time_format(j->now_us + seconds_of(offset) * 1000000, text);
	if (offset.n == 6) /* in place of the Z */
		memcpy(text + UAR_TIME_TEXT - 1, offset.p, 6);
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "time", uar_str_n(text, offset.n == 6 ? UAR_TIME_TEXT + 5 : UAR_TIME_TEXT));
	uar_jw_int(&w, "unix_seconds", j->now_us / 1000000);
	uar_jw_close(&w);
	if (uar_jw_end(&w) && !j->out.err)
		uar_tool_fail(j, "execution", "the result cannot be written");
}
