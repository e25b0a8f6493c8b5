/* text.c - cleaning, cutting and colouring for terminals. */
#include "app/limits.h"
#include "app/text.h"

/* Marks that turn the direction of text: a line could read as what it is not. */
static bool turns_text(const char *p, size_t len)
{
	uint32_t c = 0;

	if (len != 2 && len != 3)
		return false;
	uar_utf8_decode(uar_str_n(p, len), &c);
	return c == 0x61C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
	       (c >= 0x2066 && c <= 0x2069);
}

/* Bytes of the well-formed character at p that may be shown; 0: none. */
static size_t shown_bytes(const char *p, size_t n)
{
	unsigned char c = (unsigned char)p[0];
	size_t len = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;

	if (c < 0x20 || c == 0x7f || len > n || !uar_utf8_valid(uar_str_n(p, len)))
		return 0;
	if (c == 0xC2 && (unsigned char)p[1] < 0xA0) /* C1: U+0080..U+009F */
		return 0;
	return turns_text(p, len) ? 0 : len;
}

void uar_text_clean(struct uar_buf *out, uar_str s, bool lines)
{
	for (size_t i = 0; i < s.n;) {
		size_t len = shown_bytes(s.p + i, s.n - i);
		bool space = s.p[i] == '\n' || s.p[i] == '\t';

		if (len)
			uar_buf_add(out, s.p + i, len);
		else if (space)
			uar_buf_add_char(out, lines ? s.p[i] : ' ');
		else if ((unsigned char)s.p[i] < 0x80 || i == 0 ||
			 ((unsigned char)s.p[i] & 0xC0) != 0x80)
			uar_buf_add_char(out, '?'); /* once for a broken sequence */
		i += len ? len : 1;
	}
}

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       uar_str_find(UAR_STR("/._-+:@%,"), c) < 9;
}

/* As bytes that a terminal shows and a shell turns back. */
static void escape_for_shell(struct uar_buf *out, uar_str word)
{
	uar_buf_add_str(out, UAR_STR("$'"));
	for (size_t i = 0, len; i < word.n; i += len ? len : 1) {
		len = shown_bytes(word.p + i, word.n - i);
		if (!len)
			uar_buf_printf(out, "\\%03o", (unsigned char)word.p[i]);
		else if (word.p[i] == '\'' || word.p[i] == '\\')
			uar_buf_printf(out, "\\%c", word.p[i]);
		else
			uar_buf_add(out, word.p + i, len);
	}
	uar_buf_add_char(out, '\'');
}

static bool is_shown(uar_str s)
{
	for (size_t i = 0, len; i < s.n; i += len) {
		len = shown_bytes(s.p + i, s.n - i);
		if (!len)
			return false;
	}
	return true;
}

void uar_text_shell(struct uar_buf *out, uar_str word)
{
	size_t n = 0;

	while (n < word.n && is_plain(word.p[n]))
		n++;
	if (word.n && n == word.n) {
		uar_buf_add_str(out, word);
		return;
	}
	if (!is_shown(word)) {
		escape_for_shell(out, word);
		return;
	}
	uar_buf_add_char(out, '\'');
	for (size_t i = 0; i < word.n; i++) {
		if (word.p[i] == '\'')
			uar_buf_add_str(out, UAR_STR("'\\'")); /* out, a quote, in again */
		uar_buf_add_char(out, word.p[i]);
	}
	uar_buf_add_char(out, '\'');
}

void uar_text_value(struct uar_buf *out, const struct uar_json *value)
{
	struct uar_buf json = uar_buf_make(UAR_LIMIT_CLI_ANSWER);

	if (value && value->kind == UAR_JSON_STRING) {
		uar_text_clean(out, value->text, true);
	} else if (value) {
		uar_json_write(&json, value);
		uar_text_clean(out, uar_buf_str(&json), false);
	}
	uar_buf_fini(&json);
}

void uar_text_brief(struct uar_buf *out, uar_str s, size_t max)
{
	uar_str cut = uar_str_utf8_prefix(s, max);

	uar_text_clean(out, cut, false);
	if (cut.n < s.n)
		uar_buf_add_str(out, UAR_STR("..."));
}

void uar_text_span(struct uar_buf *out, double seconds)
{
	double s = seconds > 0 ? seconds : 0;

	if (s < 10)
		uar_buf_printf(out, "%.1fs", s);
	else if (s < 120)
		uar_buf_printf(out, "%.0fs", s);
	else if (s < 7200)
		uar_buf_printf(out, "%.0fm", s / 60);
	else if (s < 172800)
		uar_buf_printf(out, "%.0fh", s / 3600);
	else
		uar_buf_printf(out, "%.0fd", s < 1e12 ? s / 86400 : 1e7);
}

const char *uar_text_on(enum uar_text_style style, bool colour)
{
	static const char *const codes[] = {
		[UAR_STYLE_NONE] = "",		[UAR_STYLE_DIM] = "\033[2m",
		[UAR_STYLE_BOLD] = "\033[1m",	[UAR_STYLE_RED] = "\033[31m",
		[UAR_STYLE_GREEN] = "\033[32m", [UAR_STYLE_YELLOW] = "\033[33m",
		[UAR_STYLE_CYAN] = "\033[36m",
	};

	return colour ? codes[style] : "";
}

const char *uar_text_off(enum uar_text_style style, bool colour)
{
	return colour && style != UAR_STYLE_NONE ? "\033[0m" : "";
}

enum uar_text_style uar_text_status_style(uar_str status)
{
	static const struct {
		const char *name;
		enum uar_text_style style;
	} rows[] = {
		{ "queued", UAR_STYLE_DIM },
		{ "running", UAR_STYLE_CYAN },
		{ "cancel_requested", UAR_STYLE_YELLOW },
		{ "succeeded", UAR_STYLE_GREEN },
		{ "failed", UAR_STYLE_RED },
		{ "canceled", UAR_STYLE_YELLOW },
		{ "timeout", UAR_STYLE_RED },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (uar_str_is(status, rows[i].name))
			return rows[i].style;
	return UAR_STYLE_NONE;
}
