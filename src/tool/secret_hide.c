/* secret_hide.c - values that were used, and the forms in which services give them back. */
#include "base/base64.h"
#include "tool/limits.h"
#include "tool/secret.h"

enum { SHORT = 4, SHORT_CODED = 8 }; /* what is shorter would hide innocent text */

static void note(struct uar_secrets_used *u, uar_str form, size_t least)
{
	if (form.n < least || memchr(form.p, 0, form.n))
		return;
	for (size_t at = 0; at < u->values.n;) {
		uar_str value = uar_str_c(u->values.p + at);

		if (uar_str_eq(value, form))
			return;
		at += value.n + 1;
	}
	uar_buf_add_str(&u->values, form);
	uar_buf_add_char(&u->values, 0);
}

static void drop(struct uar_buf *b)
{
	if (b->p)
		explicit_bzero(b->p, b->cap);
	uar_buf_fini(b);
}

/* Behind `before` other bytes, as in "user:password"; what the bytes beside it decide is left out.
 */
static void note_base64(struct uar_secrets_used *u, uar_str value, size_t before)
{
	struct uar_buf raw = uar_buf_make(UAR_LIMIT_SECRET_BYTES + 4);
	struct uar_buf b = uar_buf_make(2 * UAR_LIMIT_SECRET_BYTES + 8);
	size_t from = (before * 8 + 5) / 6, to = (before + value.n) * 8 / 6;

	uar_buf_add(&raw, "\0\0", before);
	uar_buf_add_str(&raw, value);
	uar_base64_encode(&b, uar_buf_str(&raw));
	if (!b.err && to <= b.n && from < to) {
		note(u, uar_str_n(b.p + from, to - from), SHORT_CODED);
		for (size_t i = 0; i < b.n; i++)
			b.p[i] = b.p[i] == '+' ? '-' : b.p[i] == '/' ? '_' : b.p[i];
		note(u, uar_str_n(b.p + from, to - from), SHORT_CODED);
	}
	drop(&raw);
	drop(&b);
}

void uar_secrets_note(struct uar_secrets_used *u, uar_str value)
{
	if (!u->values.max)
		u->values = uar_buf_make(UAR_LIMIT_SECRETS_USED);
	note(u, value, SHORT);
	if (value.n < SHORT)
		return;
	for (size_t before = 0; before < 3; before++)
		note_base64(u, value, before);
}

/* --- what comes back ---------------------------------------------------------------------- */

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* How many bytes of the text stand for the byte, as it is, percent-encoded or escaped in JSON; 0:
 * it is another one. */
static size_t stands_for(uar_str text, char byte)
{
	int high = text.n > 2 ? digit_of(text.p[1]) : -1;
	int low = text.n > 2 ? digit_of(text.p[2]) : -1;

	if (!text.n)
		return 0;
	if (text.p[0] == '%' && high >= 0 && low >= 0 &&
	    (unsigned char)byte == (unsigned)(high * 16 + low))
		return 3;
	if (text.p[0] == byte || (text.p[0] == '+' && byte == ' '))
		return 1;
	return text.n > 1 && text.p[0] == '\\' && text.p[1] == byte ? 2 : 0;
}

/* Bytes of the text that are the value; 0: it does not begin so. */
static size_t length_in(uar_str text, uar_str value)
{
	size_t at = 0;

	for (size_t i = 0; i < value.n; i++) {
		size_t n = stands_for(uar_str_from(text, at), value.p[i]);

		/* In JSON a backslash is two. */
		if (value.p[i] == '\\' && n == 1 && at + 1 < text.n && text.p[at + 1] == '\\' &&
		    (i + 1 == value.n || value.p[i + 1] != '\\'))
			n = 2;
		if (!n)
			return 0;
		at += n;
	}
	return at;
}

/* The longest value that begins there. */
static size_t value_at(const struct uar_secrets_used *u, uar_str rest)
{
	size_t found = 0;

	for (size_t at = 0; at < u->values.n;) {
		uar_str value = uar_str_c(u->values.p + at);
		size_t n = length_in(rest, value);

		found = n > found ? n : found;
		at += value.n + 1;
	}
	return found;
}

/* Could bytes behind the text make a value of it, or a longer one? */
static bool may_become(uar_str text, uar_str value)
{
	size_t at = 0;

	for (size_t i = 0; i < value.n; i++) {
		uar_str rest = uar_str_from(text, at);
		size_t n;

		if (!rest.n || (rest.n < 3 && rest.p[0] == '%') ||
		    (rest.n < 2 && rest.p[0] == '\\'))
			return true;
		n = stands_for(rest, value.p[i]);
		if (!n)
			return false;
		at += n;
	}
	return false;
}

static bool is_unfinished(const struct uar_secrets_used *u, uar_str rest)
{
	for (size_t at = 0; at < u->values.n;) {
		uar_str value = uar_str_c(u->values.p + at);

		if (rest.n < 3 * value.n && may_become(rest, value))
			return true;
		at += value.n + 1;
	}
	return false;
}

size_t uar_secrets_hide_piece(const struct uar_secrets_used *u, uar_str text, struct uar_buf *out)
{
	size_t from = 0, i = 0;

	while (u->values.n && i < text.n) {
		uar_str rest = uar_str_from(text, i);
		size_t n = value_at(u, rest);

		if (is_unfinished(u, rest))
			break;
		if (n) {
			uar_buf_add(out, text.p + from, i - from);
			uar_buf_add_str(out, UAR_STR("<redacted>"));
			from = i + n;
		}
		i += n ? n : 1;
	}
	if (!u->values.n)
		i = text.n;
	uar_buf_add(out, text.p + from, i - from);
	return i;
}

size_t uar_secrets_hide(const struct uar_secrets_used *u, uar_str text, struct uar_buf *out)
{
	size_t from = 0, found = 0;

	for (size_t i = 0; u->values.n && i < text.n;) {
		size_t n = value_at(u, uar_str_from(text, i));

		if (!n) {
			i++;
			continue;
		}
		uar_buf_add(out, text.p + from, i - from);
		uar_buf_add_str(out, UAR_STR("<redacted>"));
		i += n;
		from = i;
		found++;
	}
	uar_buf_add_str(out, uar_str_from(text, from));
	return found;
}
