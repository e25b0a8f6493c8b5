/* uar_plugin_json.h - the little JSON that uar_plugin.c needs: text that grows, values
 * that are checked and read where they stand, strings that are written. Part of
 * uar_plugin.c, which is the only one to include it. */
#ifndef UAR_PLUGIN_JSON_H
#define UAR_PLUGIN_JSON_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

/* --- text that grows; the first failure sticks --------------------------------------- */

struct text {
	char *p;
	size_t n, cap;
	bool bad;
};

static void add(struct text *t, const char *bytes, size_t n)
{
	if (!t->bad && t->n + n + 1 > t->cap) {
		size_t cap = (t->n + n + 1) * 2;
		char *p = realloc(t->p, cap);

		t->bad = !p;
		t->p = p ? p : t->p;
		t->cap = p ? cap : t->cap;
	}
	if (t->bad)
		return;
	if (n)
		memcpy(t->p + t->n, bytes, n);
	t->n += n;
	t->p[t->n] = 0;
}

static void add_c(struct text *t, const char *s)
{
	add(t, s, strlen(s));
}

/* Bytes of the well-formed UTF-8 sequence at p; 0: there is none. */
static size_t utf8_at(const char *text, const char *end)
{
	static const struct {
		unsigned char first, last, low, high; /* of the first byte, of the second */
		size_t n;
	} rows[] = {
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	const unsigned char *p = (const unsigned char *)text;
	size_t i = 0, n;

	if (*p < 0x80)
		return 1;
	while (i<sizeof rows / sizeof *rows && * p> rows[i].last)
		i++;
	if (i == sizeof rows / sizeof *rows || *p < rows[i].first)
		return 0;
	n = rows[i].n;
	if (n > (size_t)(end - text) || p[1] < rows[i].low || p[1] > rows[i].high)
		return 0;
	for (i = 2; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

static bool is_utf8(const char *p, size_t n)
{
	for (const char *end = p + n; p < end; p += n)
		if (!(n = utf8_at(p, end)))
			return false;
	return true;
}

/* As a JSON string; bytes that are no UTF-8 become U+FFFD. */
static void add_string(struct text *t, const char *p, size_t n)
{
	const char *end = p + n;
	char escape[8];

	add(t, "\"", 1);
	for (size_t step; p < end; p += step) {
		step = utf8_at(p, end);
		if (!step) {
			add_c(t, "\xef\xbf\xbd");
			step = 1;
		} else if ((unsigned char)*p < 0x20 || *p == '"' || *p == '\\') {
			snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*p);
			add_c(t, escape);
		} else {
			add(t, p, step);
		}
	}
	add(t, "\"", 1);
}

static void add_base64(struct text *t, const unsigned char *p, size_t n)
{
	static const char set[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < n; i += 3) {
		size_t left = n - i;
		unsigned v = (unsigned)p[i] << 16 | (left > 1 ? (unsigned)p[i + 1] << 8 : 0) |
			     (left > 2 ? p[i + 2] : 0u);
		char out[4] = { set[v >> 18], set[v >> 12 & 63], left > 1 ? set[v >> 6 & 63] : '=',
				left > 2 ? set[v & 63] : '=' };

		add(t, out, 4);
	}
}

/* --- JSON that is read where it stands -------------------------------------------------- */

struct json {
	const char *p, *end; /* the value, without space around it */
};
static const struct json NOTHING = { NULL, NULL };

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
		p++;
	return p;
}

static int hex4(const char *p, const char *end)
{
	int v = 0;

	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int c = p[i] | 0x20;
		int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

		if (d < 0 || (c < 'a' && p[i] != c))
			return -1;
		v = v * 16 + d;
	}
	return v;
}

/* After the escape that begins at p, or NULL. */
static const char *skip_escape(const char *p, const char *end)
{
	int unit;

	if (end - p < 2 || !p[1] || !strchr("\"\\/bfnrtu", p[1]))
		return NULL;
	if (p[1] != 'u')
		return p + 2;
	unit = hex4(p + 2, end);
	if (unit <= 0 || (unit >= 0xdc00 && unit <= 0xdfff))
		return NULL;
	p += 6;
	if (unit < 0xd800 || unit > 0xdbff)
		return p;
	if (end - p < 6 || p[0] != '\\' || p[1] != 'u') /* the other half must follow */
		return NULL;
	unit = hex4(p + 2, end);
	return unit >= 0xdc00 && unit <= 0xdfff ? p + 6 : NULL;
}

/* After the string that begins at p, or NULL. */
static const char *skip_string(const char *p, const char *end)
{
	for (p++; p && p < end && *p != '"';) {
		size_t n = utf8_at(p, end);

		if (!n || (unsigned char)*p < 0x20)
			return NULL;
		p = *p == '\\' ? skip_escape(p, end) : p + n;
	}
	return p && p < end ? p + 1 : NULL;
}

static const char *skip_digits(const char *p, const char *end)
{
	const char *start = p;

	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p > start ? p : NULL;
}

static const char *skip_number(const char *p, const char *end)
{
	const char *start = p;
	char copy[64];

	p += *p == '-';
	if (p < end && *p == '0')
		p++;
	else
		p = skip_digits(p, end);
	if (p && p < end && *p == '.')
		p = skip_digits(p + 1, end);
	if (p && p < end && (*p | 0x20) == 'e') {
		p++;
		p += p < end && (*p == '+' || *p == '-');
		p = skip_digits(p, end);
	}
	if (p && (size_t)(p - start) < sizeof copy) { /* too large for a double: no number */
		memcpy(copy, start, (size_t)(p - start));
		copy[p - start] = 0;
		if (isinf(strtod(copy, NULL)))
			return NULL;
	}
	return p;
}

static const char *skip_value(const char *p, const char *end, int depth);

static const char *skip_member(const char *p, const char *end, int depth)
{
	p = p < end && *p == '"' ? skip_string(p, end) : NULL;
	p = p ? skip_space(p, end) : NULL;
	return p && p < end && *p == ':' ? skip_value(skip_space(p + 1, end), end, depth) : NULL;
}

static const char *skip_container(const char *p, const char *end, int depth)
{
	char close = *p == '{' ? '}' : ']';

	if (depth >= DEPTH_MAX)
		return NULL;
	p = skip_space(p + 1, end);
	if (p < end && *p == close)
		return p + 1;
	for (;;) {
		p = close == '}' ? skip_member(p, end, depth + 1) : skip_value(p, end, depth + 1);
		p = p ? skip_space(p, end) : NULL;
		if (!p || p >= end)
			return NULL;
		if (*p == close)
			return p + 1;
		if (*p != ',')
			return NULL;
		p = skip_space(p + 1, end);
	}
}

/* After the value that begins at p, or NULL when there is none. */
static const char *skip_value(const char *p, const char *end, int depth)
{
	static const char *const words[] = { "true", "false", "null" };

	if (p >= end)
		return NULL;
	if (*p == '"')
		return skip_string(p, end);
	if (*p == '{' || *p == '[')
		return skip_container(p, end, depth);
	for (size_t i = 0; i < 3; i++)
		if ((size_t)(end - p) >= strlen(words[i]) && !memcmp(p, words[i], strlen(words[i])))
			return p + strlen(words[i]);
	return skip_number(p, end);
}

/* The whole text as one value; NOTHING when it is not JSON. */
static struct json read_json(const char *text, size_t n)
{
	const char *end = text + n, *start = skip_space(text, end), *after;

	after = skip_value(start, end, 0);
	return after && skip_space(after, end) == end ? (struct json){ start, after } : NOTHING;
}

/* The next element of a container, with its key (NOTHING in an array). `at` begins
 * as the container's first byte plus one. */
static bool next_child(struct json box, const char **at, struct json *key, struct json *value)
{
	const char *p = skip_space(*at, box.end);

	if (p < box.end && *p == ',')
		p = skip_space(p + 1, box.end);
	if (p >= box.end - 1)
		return false;
	*key = NOTHING;
	if (*box.p == '{') {
		*key = (struct json){ p, skip_string(p, box.end) };
		p = skip_space(skip_space(key->end, box.end) + 1, box.end);
	}
	*value = (struct json){ p, skip_value(p, box.end, 0) };
	*at = value->end;
	return true;
}

static bool is_box(struct json j)
{
	return j.p && (*j.p == '{' || *j.p == '[');
}

static size_t put_utf8(char *out, unsigned c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 63));
		out[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 63));
	out[2] = (char)(0x80 | (c >> 6 & 63));
	out[3] = (char)(0x80 | (c & 63));
	return 4;
}

/* Decodes a string value into `out`, which has room for its bytes; the length. */
static size_t decode(struct json s, char *out)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	size_t n = 0;

	for (const char *p = s.p + 1; p < s.end - 1;) {
		const char *plain;
		unsigned c;

		if (*p != '\\') {
			out[n++] = *p++;
			continue;
		}
		plain = strchr(from, p[1]);
		if (p[1] != 'u') {
			out[n++] = plain ? to[plain - from] : p[1];
			p += 2;
			continue;
		}
		c = (unsigned)hex4(p + 2, s.end);
		p += 6;
		if (c >= 0xd800 && c < 0xdc00) {
			c = 0x10000 + ((c - 0xd800) << 10) +
			    ((unsigned)hex4(p + 2, s.end) - 0xdc00);
			p += 6;
		}
		n += put_utf8(out + n, c);
	}
	out[n] = 0;
	return n;
}

static bool key_is(struct json key, const char *name, size_t n)
{
	char small[256];

	return key.p && (size_t)(key.end - key.p) <= sizeof small && decode(key, small) == n &&
	       !memcmp(small, name, n);
}

static struct json child(struct json box, const char *name, size_t n)
{
	const char *at = box.p + 1;
	struct json key, value;
	size_t index = 0;

	while (is_box(box) && next_child(box, &at, &key, &value)) {
		char number[24];

		snprintf(number, sizeof number, "%zu", index++);
		if (key.p ? key_is(key, name, n) : strlen(number) == n && !memcmp(number, name, n))
			return value;
	}
	return NOTHING;
}

static struct json member(struct json box, const char *name)
{
	return box.p ? child(box, name, strlen(name)) : NOTHING;
}

/* What a JSON Pointer names. */
static struct json find(struct json j, const char *pointer)
{
	char name[256];

	while (j.p && *pointer) {
		size_t n = 0;

		if (*pointer++ != '/')
			return NOTHING;
		for (; *pointer && *pointer != '/' && n < sizeof name; pointer++) {
			char c = *pointer;

			if (c == '~' && (pointer[1] == '0' || pointer[1] == '1'))
				c = *++pointer == '0' ? '~' : '/';
			name[n++] = c;
		}
		j = child(j, name, n);
	}
	return j;
}

static double number_of(struct json j)
{
	char copy[64] = "0";

	if (j.p && (size_t)(j.end - j.p) < sizeof copy) {
		memcpy(copy, j.p, (size_t)(j.end - j.p));
		copy[j.end - j.p] = 0;
	}
	return strtod(copy, NULL);
}

static int64_t integer_of(struct json j)
{
	double d = number_of(j);
	char *end;
	long long exact;
	char copy[64] = "0";

	if (j.p && (size_t)(j.end - j.p) < sizeof copy)
		memcpy(copy, j.p, (size_t)(j.end - j.p));
	exact = strtoll(copy, &end, 10);
	if (*end == 0)
		return exact;
	return d >= 9223372036854775807.0    ? INT64_MAX
	       : d <= -9223372036854775808.0 ? INT64_MIN
					     : (int64_t)d;
}

/* --- what is sent ------------------------------------------------------------------------ */

/* The server refuses objects that have the same key twice. */
static bool has_twins(struct json box)
{
	struct json keys[256], key, value;
	const char *at = box.p + 1;
	size_t n = 0;

	while (is_box(box) && next_child(box, &at, &key, &value)) {
		size_t size = (size_t)(key.end - key.p);

		for (size_t i = 0; key.p && i < n; i++)
			if ((size_t)(keys[i].end - keys[i].p) == size &&
			    !memcmp(keys[i].p, key.p, size))
				return true;
		if (key.p && n < sizeof keys / sizeof *keys)
			keys[n++] = key;
		if (is_box(value) && has_twins(value))
			return true;
	}
	return false;
}

/* JSON that a handler gave; false when it is none. */
static bool add_json(struct text *t, const char *json, size_t n)
{
	struct json j = json ? read_json(json, n) : NOTHING;

	if (!j.p || (is_box(j) && has_twins(j)))
		return false;
	for (const char *p = j.p; p < j.end; p++) /* one message is one line */
		add(t, *p == '\n' || *p == '\r' ? " " : p, 1);
	return true;
}

#endif
