/* base64.c - three bytes are four letters. */
#include "base/base64.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void uar_base64_encode(struct uar_buf *out, uar_str s)
{
	const unsigned char *p = (const unsigned char *)s.p;

	for (size_t i = 0; i < s.n; i += 3) {
		size_t n = s.n - i < 3 ? s.n - i : 3;
		uint32_t v = (uint32_t)p[i] << 16 | (n > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
			     (n > 2 ? p[i + 2] : 0);
		char four[4] = { letters[v >> 18], letters[v >> 12 & 63],
				 n > 1 ? letters[v >> 6 & 63] : '=',
				 n > 2 ? letters[v & 63] : '=' };

		uar_buf_add(out, four, 4);
	}
}

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Four letters to `n` bytes; the bits behind the last byte must be zero. */
static bool decode_group(const char *p, size_t n, char *out)
{
	uint32_t v = 0;

	for (size_t i = 0; i < 4; i++) {
		int one = i <= n ? value_of(p[i]) : p[i] == '=' ? 0 : -1;

		if (one < 0)
			return false;
		v = v << 6 | (uint32_t)one;
	}
	for (size_t i = 0; i < n; i++)
		out[i] = (char)(v >> (16 - 8 * i));
	return n == 3 || (v & (n == 2 ? 0xffu : 0xffffu)) == 0;
}

uar_err uar_base64_decode(struct uar_arena *a, uar_str text, uar_str *out)
{
	char *bytes = uar_arena_bytes(a, text.n / 4 * 3 + 1);
	size_t n = 0;

	if (!bytes)
		return UAR_ENOMEM;
	if (text.n % 4)
		return UAR_EINVALID;
	for (size_t i = 0; i < text.n; i += 4) {
		size_t take = 3;

		if (i + 4 == text.n && text.p[i + 3] == '=')
			take = text.p[i + 2] == '=' ? 1 : 2;
		if (!decode_group(text.p + i, take, bytes + n))
			return UAR_EINVALID;
		n += take;
	}
	*out = uar_str_n(bytes, n);
	return UAR_OK;
}
