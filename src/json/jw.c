/* jw.c - the writer. Every member is one reservation and straight copying, as
 * long as its text needs no escape; the careful path is taken byte by byte only
 * from the first byte that does. */
#include "json/jw.h"

#include <math.h>

#include "base/clock.h"
#include "json/json_int.h"

enum {
	MAX_LEVELS = 64, /* bits of is_object */
};

struct uar_jw uar_jw_begin(struct uar_buf *out)
{
	return (struct uar_jw){ .out = out };
}

uar_err uar_jw_end(struct uar_jw *w)
{
	if (w->err)
		return w->err;
	if (w->out->err)
		return w->out->err;
	return w->next == UAR_JW_NOTHING ? UAR_OK : UAR_EINVALID;
}

static inline void set_end(struct uar_buf *b, char *p)
{
	b->n = (size_t)(p - b->p);
	*p = 0;
}

/* --- text --- */

/* What is written for a byte that may not stand between quotes as it is. */
static uar_str escape(unsigned char c, char out[6])
{
	static const char hex[] = "0123456789abcdef", names[] = "btn?fr";
	const char six[6] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };

	if (!c || c >= 0x80)
		return UAR_STR("\xEF\xBF\xBD"); /* ill-formed, and the reader refuses NUL */
	memcpy(out, six, sizeof six);
	if (c == '"' || c == '\\')
		out[1] = (char)c;
	else if (c >= 8 && c <= 13 && c != 11)
		out[1] = names[c - 8];
	return uar_str_n(out, out[1] == 'u' ? 6 : 2);
}

/* Text from its first special byte on, then the closing quote. */
UAR_RARELY static void add_careful(struct uar_buf *b, uar_str s)
{
	const char *p = s.p, *end = s.p + s.n;
	char six[6];

	while (p < end) {
		const char *plain = uar_json_text_end(s.p, p, end);

		uar_buf_add(b, p, (size_t)(plain - p));
		p = plain;
		if (p < end)
			uar_buf_add_str(b, escape((unsigned char)*p++, six));
	}
	uar_buf_add_char(b, '"');
}

uar_str uar_jw_fitting(uar_str s, size_t room)
{
	const char *p = s.p, *end;
	char six[6];

	if (!s.n)
		return s;
	end = s.p + s.n;
	while (p < end && room) {
		const char *plain = uar_json_text_end(s.p, p, end);
		size_t n = (size_t)(plain - p) < room ? (size_t)(plain - p) : room;

		p += n;
		room -= n;
		n = p < end && p == plain ? escape((unsigned char)*p, six).n : 0;
		if (n > room)
			break;
		p += n > 0;
		room -= n;
	}
	return uar_str_utf8_prefix(s, (size_t)(p - s.p));
}

#ifdef __SSE2__
static inline __m128i load_16(const char *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline void store_16(char *to, __m128i v)
{
	_mm_storeu_si128((__m128i *)(void *)to, v);
}

static inline bool all_set(__m128i v)
{
	return _mm_movemask_epi8(v) == 0xffff;
}

/* 16 bytes or more: the last sixteen may overlap those before. */
static bool copy_long(char *to, const char *p, size_t n)
{
	__m128i last = load_16(p + n - 16), plain = uar_json_plain_16(last);

	for (size_t i = 0; i < n - 16; i += 16) {
		__m128i v = load_16(p + i);

		store_16(to + i, v);
		plain = _mm_and_si128(plain, uar_json_plain_16(v));
	}
	store_16(to + n - 16, last);
	return all_set(plain);
}

/* 8 to 15 bytes: the first eight and the last eight overlap. */
static inline bool copy_8(char *to, const char *p, size_t n)
{
	uint64_t head, tail;

	memcpy(&head, p, 8);
	memcpy(&tail, p + n - 8, 8);
	memcpy(to, &head, 8);
	memcpy(to + n - 8, &tail, 8);
	return all_set(uar_json_plain_16(_mm_set_epi64x((long long)tail, (long long)head)));
}

static inline bool copy_4(char *to, const char *p, size_t n)
{
	uint32_t head, tail;
	uint64_t both;

	memcpy(&head, p, 4);
	memcpy(&tail, p + n - 4, 4);
	memcpy(to, &head, 4);
	memcpy(to + n - 4, &tail, 4);
	both = (uint64_t)tail << 32 | head;
	return all_set(uar_json_plain_16(_mm_set1_epi64x((long long)both)));
}

/* Fewer than 16 bytes. */
static inline bool copy_short(char *to, const char *p, size_t n)
{
	bool plain = true;

	if (n >= 8)
		return copy_8(to, p, n);
	if (n >= 4)
		return copy_4(to, p, n);
	for (size_t i = 0; i < n; i++) {
		plain &= !uar_json_special(p[i]);
		to[i] = p[i];
	}
	return plain;
}

/* Copies and checks in one pass, reading nothing outside of p[0..n). False: some
 * byte is special and what was copied does not count. */
static inline bool copy_plain(char *to, const char *p, size_t n)
{
	return n >= 16 ? copy_long(to, p, n) : copy_short(to, p, n);
}

/* Line ends between tokens would end a line of a stream: what JSON calls blank is a space. */
static inline void copy_on_one_line(char *to, const char *p, size_t n)
{
	size_t i = 0;

	for (; n - i >= 16; i += 16)
		store_16(to + i, _mm_max_epu8(load_16(p + i), _mm_set1_epi8(' ')));
	for (; i < n; i++)
		to[i] = (unsigned char)p[i] < ' ' ? ' ' : p[i];
}
#else
static inline bool copy_plain(char *to, const char *p, size_t n)
{
	if (n)
		memcpy(to, p, n);
	return uar_json_plain_end(p, p, p + n) == p + n;
}
#define copy_short copy_plain

static inline void copy_on_one_line(char *to, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (unsigned char)p[i] < ' ' ? ' ' : p[i];
}
#endif

static inline char *room(struct uar_buf *b, size_t n)
{
	return uar_buf_fits(b, n) ? b->p + b->n : uar_buf_reserve(b, n);
}

/* Quoted text at p, where there is room for it unescaped. */
static inline void put_text(struct uar_buf *b, char *p, uar_str s)
{
	*p++ = '"';
	if (copy_plain(p, s.p, s.n)) {
		p[s.n] = '"';
		set_end(b, p + s.n + 1);
		return;
	}
	set_end(b, p);
	add_careful(b, s);
}

static void add_text(struct uar_buf *b, uar_str s)
{
	char *p = room(b, s.n + 2);

	if (p)
		put_text(b, p, s);
}

/* --- places --- */

/* What went wrong first is what is reported, also when it went wrong in the buffer. */
UAR_RARELY static char *refuse(struct uar_jw *w, uar_err e)
{
	if (!w->err && !w->out->err)
		w->err = e;
	w->next = UAR_JW_NOTHING;
	return NULL;
}

static inline bool in_object(const struct uar_jw *w)
{
	return w->is_object & 1;
}

/* What belongs behind a value, or first into a level. */
static inline enum uar_jw_next usual_next(const struct uar_jw *w)
{
	return in_object(w) ? UAR_JW_MEMBER : w->depth ? UAR_JW_VALUE : UAR_JW_NOTHING;
}

static char *place(struct uar_jw *w, uar_str key, size_t extra);

UAR_RARELY static char *place_after_growth(struct uar_jw *w, uar_str key, size_t extra, size_t need)
{
	return uar_buf_reserve(w->out, need) ? place(w, key, extra) : NULL;
}

/* A long key, or one with escapes, from its first character on, which stands at p. */
UAR_RARELY static char *put_other_key(struct uar_buf *b, char *p, uar_str key, size_t extra)
{
	set_end(b, p);
	add_careful(b, key);
	uar_buf_add_char(b, ':');
	return room(b, extra);
}

/* Writes comma, quoted key and colon. There is room for `extra` bytes behind them: the
 * caller writes the value there and sets the end. NULL when none belongs here or the
 * buffer is full. */
static char *place(struct uar_jw *w, uar_str key, size_t extra)
{
	struct uar_buf *b = w->out;
	bool comma = w->comma;
	size_t need = comma + extra + (key.p ? key.n + 3 : 0);
	char *p;

	if (w->next != (key.p ? UAR_JW_MEMBER : UAR_JW_VALUE))
		return refuse(w, UAR_EINVALID);
	if (!uar_buf_fits(b, need))
		return place_after_growth(w, key, extra, need);
	w->comma = true;
	p = b->p + b->n;
	*p = ',';
	p += comma;
	if (!key.p) {
		w->next = usual_next(w);
		return p;
	}
	*p++ = '"';
	if (key.n >= 16 || !copy_short(p, key.p, key.n))
		return put_other_key(b, p, key, extra);
	memcpy(p + key.n, "\":", 2);
	return p + key.n + 2;
}

void uar_jw_key(struct uar_jw *w, uar_str key)
{
	char *p = place(w, uar_str_n(key.p ? key.p : "", key.n), 0);

	if (!p)
		return;
	set_end(w->out, p);
	w->comma = false;
	w->next = UAR_JW_VALUE;
}

static inline void open_level(struct uar_jw *w, uar_str key, bool object)
{
	char *p = place(w, key, 1);

	if (!p)
		return;
	if (w->depth == MAX_LEVELS) {
		refuse(w, UAR_EDEPTH);
		return;
	}
	*p = object ? '{' : '[';
	set_end(w->out, p + 1);
	w->is_object = w->is_object << 1 | object;
	w->depth++;
	w->next = usual_next(w);
	w->comma = false;
}

void uar_jw_put_obj(struct uar_jw *w, uar_str key)
{
	open_level(w, key, true);
}

void uar_jw_put_arr(struct uar_jw *w, uar_str key)
{
	open_level(w, key, false);
}

void uar_jw_close(struct uar_jw *w)
{
	bool open = w->depth && w->next == usual_next(w);
	char *p = open ? room(w->out, 1) : refuse(w, UAR_EINVALID);

	if (p) {
		*p = in_object(w) ? '}' : ']';
		set_end(w->out, p + 1);
	}
	if (!w->depth)
		return;
	w->is_object >>= 1;
	w->depth--;
	w->next = p ? usual_next(w) : UAR_JW_NOTHING;
	w->comma = true;
}

/* --- values --- */

void uar_jw_put_str(struct uar_jw *w, uar_str key, uar_str s)
{
	char *p = place(w, key, s.n + 2);

	if (p)
		put_text(w->out, p, s);
}

static inline void add_value(struct uar_jw *w, uar_str key, uar_str text)
{
	char *p = place(w, key, text.n);

	if (!p)
		return;
	memcpy(p, text.p, text.n);
	set_end(w->out, p + text.n);
}

void uar_jw_put_null(struct uar_jw *w, uar_str key)
{
	add_value(w, key, UAR_STR("null"));
}

void uar_jw_put_bool(struct uar_jw *w, uar_str key, bool v)
{
	add_value(w, key, v ? UAR_STR("true") : UAR_STR("false"));
}

static inline void add_number(struct uar_jw *w, uar_str key, uint64_t magnitude, bool negative)
{
	char digits[1 + UAR_U64_DIGITS];
	size_t n = uar_digits(digits + sizeof digits, magnitude);

	if (negative)
		digits[sizeof digits - ++n] = '-';
	add_value(w, key, uar_str_n(digits + sizeof digits - n, n));
}

void uar_jw_put_int(struct uar_jw *w, uar_str key, int64_t v)
{
	add_number(w, key, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, v < 0);
}

void uar_jw_u64(struct uar_jw *w, const char *key, uint64_t v)
{
	add_number(w, uar_str_c(key), v, false);
}

void uar_jw_double(struct uar_jw *w, const char *key, double v)
{
	char text[UAR_JSON_NUMBER_TEXT];

	if (isfinite(v))
		add_value(w, uar_str_c(key), uar_str_n(text, uar_json_double_format(v, text)));
	else
		uar_jw_null(w, key);
}

void uar_jw_put_time(struct uar_jw *w, uar_str key, int64_t wall_us)
{
	char text[UAR_TIME_TEXT + 1];

	uar_time_format(wall_us, text);
	uar_jw_put_str(w, key, uar_str_n(text, UAR_TIME_TEXT));
}

void uar_jw_seconds(struct uar_jw *w, const char *key, int64_t wall_us)
{
	uint64_t magnitude = wall_us < 0 ? 0 - (uint64_t)wall_us : (uint64_t)wall_us;
	char text[32], *end = text + sizeof text;
	uint64_t micros = magnitude % 1000000;
	size_t n = 7;

	for (int i = 1; i <= 6; i++, micros /= 10)
		end[-i] = (char)('0' + micros % 10);
	end[-7] = '.';
	n += uar_digits(end - 7, magnitude / 1000000);
	if (wall_us < 0)
		*(end - ++n) = '-';
	add_value(w, uar_str_c(key), uar_str_n(end - n, n));
}

void uar_jw_put_raw(struct uar_jw *w, uar_str key, uar_str json)
{
	char *p = json.n ? place(w, key, json.n) : refuse(w, UAR_EINVALID);

	if (!p)
		return;
	copy_on_one_line(p, json.p, json.n);
	set_end(w->out, p + json.n);
}

void uar_jw_members(struct uar_jw *w, uar_str object)
{
	char *p;

	if (w->next != UAR_JW_MEMBER || object.n < 2) {
		refuse(w, UAR_EINVALID);
		return;
	}
	p = room(w->out, object.n);
	if (!p)
		return;
	*p = ',';
	p += w->comma;
	memcpy(p, object.p + 1, object.n - 2);
	set_end(w->out, p + object.n - 2);
	w->comma = true;
}

/* --- trees --- */

static void write_number(struct uar_buf *out, const struct uar_json *j)
{
	struct uar_jw w = uar_jw_begin(out);

	if (j->text.n)
		uar_buf_add_str(out, j->text);
	else if (j->kind == UAR_JSON_INT)
		uar_jw_int(&w, NULL, j->i);
	else
		uar_jw_double(&w, NULL, j->d);
}

/* Recursion is as deep as the tree, which the reader bounds. */
static void write_children(struct uar_buf *out, const struct uar_json *j)
{
	bool object = j->kind == UAR_JSON_OBJECT;

	uar_buf_add_char(out, object ? '{' : '[');
	for (const struct uar_json *c = j->first; c && !out->err; c = c->next) {
		if (c != j->first)
			uar_buf_add_char(out, ',');
		if (object) {
			add_text(out, c->key);
			uar_buf_add_char(out, ':');
		}
		uar_json_write(out, c);
	}
	uar_buf_add_char(out, object ? '}' : ']');
}

void uar_json_write(struct uar_buf *out, const struct uar_json *j)
{
	if (!j) {
		uar_buf_add(out, "null", 4);
		return;
	}
	switch (j->kind) {
	case UAR_JSON_NULL: uar_buf_add(out, "null", 4); break;
	case UAR_JSON_BOOL: uar_buf_add_str(out, j->b ? UAR_STR("true") : UAR_STR("false")); break;
	case UAR_JSON_INT:
	case UAR_JSON_DOUBLE: write_number(out, j); break;
	case UAR_JSON_STRING: add_text(out, j->text); break;
	case UAR_JSON_ARRAY:
	case UAR_JSON_OBJECT: write_children(out, j); break;
	}
}

void uar_jw_tree(struct uar_jw *w, const char *key, const struct uar_json *j)
{
	char *p = place(w, uar_str_c(key), 0);

	if (!p)
		return;
	set_end(w->out, p);
	uar_json_write(w->out, j);
}
