/* http_parse.c - the strict HTTP/1.x request reader.
 *
 * There is one way to write each thing: CRLF ends a line, one space parts the
 * request line, a name touches its colon, Content-Length is digits, the only
 * transfer coding is `chunked`, a chunk has a size and nothing else. Folding,
 * chunk extensions and trailers are refused: nobody needs them from a client,
 * and they are where two readers come to disagree. */
#include "http/http_parse.h"
#include "http/limits.h"

#include <endian.h>

static const char *const method_names[UAR_HTTP_METHOD_COUNT] = {
	[UAR_HTTP_GET] = "GET",		[UAR_HTTP_HEAD] = "HEAD",   [UAR_HTTP_POST] = "POST",
	[UAR_HTTP_PUT] = "PUT",		[UAR_HTTP_PATCH] = "PATCH", [UAR_HTTP_DELETE] = "DELETE",
	[UAR_HTTP_OPTIONS] = "OPTIONS",
};

const char *uar_http_method_name(enum uar_http_method m)
{
	return m < UAR_HTTP_METHOD_COUNT ? method_names[m] : "?";
}

/* --- characters -------------------------------------------------------------- */

/* C: never in a head (but see CR, LF)  T: token  U: request target  H: host */
enum { C = 1, T = 2, U = 4, H = 8, ANY = T | U | H };

/* clang-format off */
static const unsigned char classes[256] = {
	[0 ... 8] = C, [10 ... 31] = C, [127] = C,
	['0' ... '9'] = ANY, ['A' ... 'Z'] = ANY, ['a' ... 'z'] = ANY,
	['!'] = ANY, ['$'] = ANY, ['%'] = ANY, ['&'] = ANY, ['\''] = ANY, ['*'] = ANY, ['+'] = ANY,
	['-'] = ANY, ['.'] = ANY, ['_'] = ANY, ['~'] = ANY,
	['('] = U | H, [')'] = U | H, [':'] = U | H, [';'] = U | H, ['='] = U | H,
	['['] = U | H, [']'] = U | H,
	['^'] = T | U, ['`'] = T | U, ['|'] = T | U,
	['#'] = T,
	[','] = U, ['/'] = U, ['?'] = U, ['@'] = U, ['{'] = U, ['}'] = U,
};
/* clang-format on */

static bool all_are(uar_str s, unsigned char class)
{
	for (size_t i = 0; i < s.n; i++)
		if (!(classes[(unsigned char)s.p[i]] & class))
			return false;
	return s.n > 0;
}

/* --- the end of the head ------------------------------------------------------ */

static uar_err check_control(uar_str in, size_t i, struct uar_error *error)
{
	char c = in.p[i];

	if (c == '\n' && i > 0 && in.p[i - 1] == '\r')
		return UAR_OK;
	if (c == '\r')
		return UAR_OK; /* what follows it is checked when it is there */
	if (c == '\n')
		return uar_error_set(error, UAR_ESYNTAX, "a line of the head ends without CR");
	return uar_error_set(error, UAR_ESYNTAX, "control character 0x%02x in the head",
			     (unsigned char)c);
}

static uar_err head_too_long(uar_str in, struct uar_error *error)
{
	if (uar_str_find(uar_str_n(in.p, UAR_LIMIT_HTTP_HEAD), '\n') == UAR_LIMIT_HTTP_HEAD)
		return uar_error_set(error, UAR_EURITOOLONG, "the request line does not end");
	return uar_error_set(error, UAR_EHEADERS, "the head has more than %d bytes",
			     UAR_LIMIT_HTTP_HEAD);
}

/* How many of the eight bytes at p, counted from the first, are printable ASCII. A
 * borrow or carry between bytes only follows a byte that is not. */
static size_t count_plain(const char *p)
{
	const uint64_t ones = UINT64_MAX / 255;
	uint64_t x, odd;

	memcpy(&x, p, sizeof x);
	x = le64toh(x);
	odd = ((x - ones * 0x20) | x | (x + ones)) & ones * 0x80;
	return odd ? (size_t)__builtin_ctzll(odd) / 8 : 8;
}

/* The first byte from i on that may be more than a part of a line. */
static size_t skip_plain(uar_str in, size_t i, size_t n)
{
	size_t plain = 8;

	for (; plain == 8 && n - i > 8; i += plain)
		plain = count_plain(in.p + i);
	return i;
}

uar_err uar_http_find_head(uar_str in, size_t *at, size_t *out_length, struct uar_error *error)
{
	size_t n = in.n < UAR_LIMIT_HTTP_HEAD ? in.n : UAR_LIMIT_HTTP_HEAD, i = *at;
	uar_err e;

	for (; i < n; i++) {
		if (i == 0 || in.p[i - 1] != '\r')
			i = skip_plain(in, i, n);
		else if (in.p[i] != '\n')
			return uar_error_set(error, UAR_ESYNTAX, "CR without LF in the head");
		if (!(classes[(unsigned char)in.p[i]] & C))
			continue;
		e = check_control(in, i, error);
		if (e)
			return e;
		if (in.p[i] == '\n' && i >= 3 && in.p[i - 2] == '\n') {
			*at = i + 1;
			*out_length = i + 1;
			return UAR_OK;
		}
	}
	*at = i;
	if (n == UAR_LIMIT_HTTP_HEAD)
		return head_too_long(in, error);
	*out_length = 0;
	return UAR_OK;
}

/* --- the request line ----------------------------------------------------------- */

static uar_err parse_version(uar_str v, struct uar_http_head *h, struct uar_error *error)
{
	if (uar_str_eq(v, UAR_STR("HTTP/1.1"))) {
		h->keep_alive = true;
		return UAR_OK;
	}
	if (uar_str_eq(v, UAR_STR("HTTP/1.0"))) {
		h->http10 = true;
		return UAR_OK;
	}
	if (v.n == 8 && uar_str_starts(v, UAR_STR("HTTP/")) && v.p[6] == '.' && v.p[5] >= '0' &&
	    v.p[5] <= '9' && v.p[7] >= '0' && v.p[7] <= '9')
		return uar_error_set(error, UAR_EVERSION, "%.*s is not spoken here, HTTP/1.1 is",
				     UAR_FMT(v));
	return uar_error_set(error, UAR_ESYNTAX, "the request line has no HTTP version");
}

static uar_err parse_method(uar_str name, struct uar_http_head *h, struct uar_error *error)
{
	for (int m = 0; m < UAR_HTTP_METHOD_COUNT; m++)
		if (uar_str_is(name, method_names[m])) {
			h->method = (enum uar_http_method)m;
			return UAR_OK;
		}
	return uar_error_set(error, UAR_ENOTIMPL, "method %.*s is not known",
			     name.n < 32 ? (int)name.n : 32, name.p);
}

static uar_err parse_target(uar_str target, struct uar_http_head *h, struct uar_error *error)
{
	if (target.n > UAR_LIMIT_HTTP_TARGET)
		return uar_error_set(error, UAR_EURITOOLONG, "the target has more than %d bytes",
				     UAR_LIMIT_HTTP_TARGET);
	h->target = h->path = target;
	h->query = UAR_STR("");
	if (uar_str_eq(target, UAR_STR("*")) && h->method == UAR_HTTP_OPTIONS)
		return UAR_OK;
	if (target.p[0] != '/')
		return uar_error_set(error, UAR_ESYNTAX, "the target does not begin with /");
	if (!all_are(target, U))
		return uar_error_set(error, UAR_ESYNTAX,
				     "the target holds a character that must be escaped");
	h->path = uar_str_cut(target, '?', &h->query);
	return UAR_OK;
}

static uar_err parse_request_line(uar_str line, struct uar_http_head *h, struct uar_error *error)
{
	uar_str method, target, version, rest;
	uar_err e;

	method = uar_str_cut(line, ' ', &rest);
	target = uar_str_cut(rest, ' ', &version);
	if (!all_are(method, T) || target.n == 0)
		return uar_error_set(error, UAR_ESYNTAX, "the request line is not well formed");
	e = parse_version(version, h, error);
	if (!e)
		e = parse_method(method, h, error);
	if (!e)
		e = parse_target(target, h, error);
	return e;
}

/* --- the header fields ------------------------------------------------------------ */

struct reader {
	struct uar_http_head *h;
	struct uar_error *error;
};

static uar_err bad_field(struct reader *r, uar_err code, const char *name, const char *why)
{
	uar_error_where(r->error, "%s", name);
	return uar_error_set(r->error, code, "%s", why);
}

static uar_err read_host(struct reader *r, uar_str v)
{
	if (!all_are(v, H))
		return bad_field(r, UAR_ESYNTAX, "Host", "the host is empty or not well formed");
	return UAR_OK;
}

static uar_err read_length(struct reader *r, uar_str v)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] < '0' || v.p[i] > '9')
			return bad_field(r, UAR_ESYNTAX, "Content-Length", "digits only");
	if (v.n == 0)
		return bad_field(r, UAR_ESYNTAX, "Content-Length", "digits only");
	if (v.n > 18 || uar_str_u64(v, &r->h->length))
		return bad_field(r, UAR_ETOOBIG, "Content-Length", "no body is that long");
	r->h->framing = UAR_HTTP_LENGTH;
	return UAR_OK;
}

static uar_err read_coding(struct reader *r, uar_str v)
{
	if (r->h->http10)
		return bad_field(r, UAR_ESYNTAX, "Transfer-Encoding", "not in HTTP/1.0");
	if (!uar_str_eq_nocase(v, UAR_STR("chunked")))
		return bad_field(r, UAR_ENOTIMPL, "Transfer-Encoding",
				 "`chunked` is the only transfer coding");
	r->h->framing = UAR_HTTP_CHUNKED;
	return UAR_OK;
}

static uar_err read_expect(struct reader *r, uar_str v)
{
	if (!uar_str_eq_nocase(v, UAR_STR("100-continue")))
		return bad_field(r, UAR_EEXPECT, "Expect",
				 "`100-continue` is the only expectation");
	r->h->expect_continue = !r->h->http10;
	return UAR_OK;
}

static uar_err read_connection(struct reader *r, uar_str v)
{
	while (v.n) {
		uar_str option = uar_str_trim(uar_str_cut(v, ',', &v));

		if (uar_str_eq_nocase(option, UAR_STR("close")))
			r->h->keep_alive = false;
	}
	return UAR_OK;
}

/* Fields that mean something here. `once`: two of them would leave it open which
 * one a program in front of us believed. `framing`: not every reader knows that a
 * tab may stand beside a value. */
static const struct field {
	uar_str name;
	bool once, framing;
	uar_err (*read)(struct reader *r, uar_str value);
} fields[UAR_HTTP_FIELD_COUNT] = {
	[UAR_HTTP_HOST] = { { "host", 4 }, true, false, read_host },
	[UAR_HTTP_CONTENT_LENGTH] = { { "content-length", 14 }, true, true, read_length },
	[UAR_HTTP_TRANSFER_ENCODING] = { { "transfer-encoding", 17 }, true, true, read_coding },
	[UAR_HTTP_EXPECT] = { { "expect", 6 }, true, false, read_expect },
	[UAR_HTTP_CONNECTION] = { { "connection", 10 }, false, false, read_connection },
	[UAR_HTTP_AUTHORIZATION] = { { "authorization", 13 }, true, false, NULL },
	[UAR_HTTP_CONTENT_TYPE] = { { "content-type", 12 }, true, false, NULL },
	[UAR_HTTP_ORIGIN] = { { "origin", 6 }, true, false, NULL },
	[UAR_HTTP_IDEMPOTENCY_KEY] = { { "idempotency-key", 15 }, true, false, NULL },
	[UAR_HTTP_LAST_EVENT_ID] = { { "last-event-id", 13 }, true, false, NULL },
};

/* Case is one bit, which the names above have set wherever it matters. It makes one
 * of their bytes of no other but CR, which no line holds: what is named like a field
 * is a token. */
static bool is_named(uar_str name, uar_str field)
{
	if (name.n != field.n)
		return false;
	for (size_t i = 0; i < name.n; i++)
		if ((name.p[i] | 0x20) != field.p[i])
			return false;
	return true;
}

static const struct field *find_field(uar_str name)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (is_named(name, fields[i].name))
			return &fields[i];
	return NULL;
}

/* `beside`: the value with the blanks around it. */
static uar_err read_field(struct reader *r, const struct field *f, uar_str value, uar_str beside)
{
	uar_str *place = &r->h->fields[f - fields];

	/* A value that is empty is one too: its .p is set. */
	if (f->once && place->p)
		return bad_field(r, UAR_ESYNTAX, f->name.p, "given more than once");
	if (!place->p)
		*place = value;
	if (f->framing && uar_str_find(beside, '\t') < beside.n)
		return bad_field(r, UAR_ESYNTAX, f->name.p, "a tab beside the value");
	return f->read ? f->read(r, value) : UAR_OK;
}

static uar_err parse_field(struct reader *r, uar_str line)
{
	size_t colon = uar_str_find(line, ':');
	uar_str name = uar_str_n(line.p, colon), beside, value;
	const struct field *field = find_field(name);

	if (line.p[0] == ' ' || line.p[0] == '\t')
		return uar_error_set(r->error, UAR_ESYNTAX, "a folded header line");
	if (colon == line.n)
		return uar_error_set(r->error, UAR_ESYNTAX, "a header line without a colon");
	if (!field && !all_are(name, T))
		return uar_error_set(r->error, UAR_ESYNTAX, "a header name is not a token");
	if (r->h->header_count == UAR_LIMIT_HTTP_HEADERS)
		return uar_error_set(r->error, UAR_EHEADERS, "more than %d header fields",
				     UAR_LIMIT_HTTP_HEADERS);
	beside = uar_str_from(line, colon + 1);
	value = uar_str_trim(beside);
	r->h->headers[r->h->header_count++] = (struct uar_http_header){ name, value };
	return field ? read_field(r, field, value, beside) : UAR_OK;
}

static uar_err check_fields(struct reader *r)
{
	const uar_str *given = r->h->fields;

	if (!given[UAR_HTTP_HOST].p && !r->h->http10)
		return bad_field(r, UAR_ESYNTAX, "Host", "missing");
	if (given[UAR_HTTP_CONTENT_LENGTH].p && given[UAR_HTTP_TRANSFER_ENCODING].p)
		return bad_field(r, UAR_ESYNTAX, "Content-Length",
				 "together with Transfer-Encoding");
	return UAR_OK;
}

/* Cuts the next line off; the head is known to consist of CRLF lines. */
static uar_str next_line(uar_str *rest)
{
	uar_str line = uar_str_cut(*rest, '\n', rest);

	line.n--;
	return line;
}

uar_err uar_http_parse_head(uar_str head, struct uar_http_head *out, struct uar_error *error)
{
	struct reader r = { .h = out, .error = error };
	uar_str rest = head, line;
	uar_err e;

	/* Not the whole struct: clearing the header array would cost more than reading. */
	out->framing = UAR_HTTP_NO_BODY;
	out->length = 0;
	out->http10 = out->keep_alive = out->expect_continue = false;
	out->header_count = 0;
	memset(out->fields, 0, sizeof out->fields);
	e = parse_request_line(next_line(&rest), out, error);
	while (!e && (line = next_line(&rest)).n > 0)
		e = parse_field(&r, line);
	return e ? e : check_fields(&r);
}

/* --- the body --------------------------------------------------------------------- */

enum chunk_state {
	CHUNK_SIZE,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	LAST_CR,
	LAST_LF,
	BODY_DONE
};
enum { CHUNK_DIGITS = 8 }; /* hex digits of a chunk size */

void uar_http_body_init(struct uar_http_body *b, const struct uar_http_head *head, uint64_t max)
{
	*b = (struct uar_http_body){ .framing = head->framing, .max = max, .room = max };
	if (head->framing == UAR_HTTP_LENGTH)
		b->left = head->length;
}

uar_err uar_http_too_big(uint64_t max, struct uar_error *error)
{
	if (max == 0)
		return uar_error_set(error, UAR_ETOOBIG, "this request takes no body");
	return uar_error_set(error, UAR_ETOOBIG, "the body has more than %llu bytes",
			     (unsigned long long)max);
}

/* Moves what is there, at most b->left bytes, as far as `out` takes them. */
static uar_err move_data(struct uar_http_body *b, uar_str *in, struct uar_buf *out,
			 struct uar_error *error)
{
	size_t n = in->n < b->left ? in->n : (size_t)b->left;

	if (b->left > b->room)
		return uar_http_too_big(b->max, error);
	if (n > out->max - out->n)
		n = out->max - out->n;
	uar_buf_add(out, in->p, n);
	b->left -= n;
	b->room -= n;
	*in = uar_str_from(*in, n);
	return out->err;
}

static uar_err chunk_size(struct uar_http_body *b, char c, struct uar_error *error)
{
	int digit = uar_hex_digit(c);

	if (digit >= 0 && b->digits < CHUNK_DIGITS) {
		b->digits++;
		b->left = b->left * 16 + (unsigned)digit;
		return UAR_OK;
	}
	if (c != '\r' || b->digits == 0)
		return uar_error_set(error, UAR_ESYNTAX,
				     c == ';' ? "chunk extensions are not taken"
					      : "a chunk size is not well formed");
	b->state = CHUNK_SIZE_LF;
	return b->left > b->room ? uar_http_too_big(b->max, error) : UAR_OK;
}

/* One byte of the lines between the chunks. */
static uar_err chunk_byte(struct uar_http_body *b, char c, struct uar_error *error)
{
	static const struct {
		char want;
		enum chunk_state next;
	} steps[] = {
		[CHUNK_SIZE_LF] = { '\n', CHUNK_DATA }, [CHUNK_DATA_CR] = { '\r', CHUNK_DATA_LF },
		[CHUNK_DATA_LF] = { '\n', CHUNK_SIZE }, [LAST_CR] = { '\r', LAST_LF },
		[LAST_LF] = { '\n', BODY_DONE },
	};

	if (b->state == CHUNK_SIZE)
		return chunk_size(b, c, error);
	if (c != steps[b->state].want)
		return uar_error_set(error, UAR_ESYNTAX,
				     b->state == LAST_CR ? "trailers are not taken"
							 : "a chunk is not well formed");
	b->digits = 0;
	if (b->state == CHUNK_SIZE_LF && b->left == 0)
		b->state = LAST_CR;
	else
		b->state = (unsigned char)steps[b->state].next;
	return UAR_OK;
}

static uar_err feed_chunks(struct uar_http_body *b, uar_str *in, struct uar_buf *out,
			   struct uar_error *error)
{
	uar_err e = UAR_OK;

	while (!e && in->n && b->state != BODY_DONE) {
		if (b->state == CHUNK_DATA && out->n == out->max)
			break;
		if (b->state == CHUNK_DATA) {
			e = move_data(b, in, out, error);
			if (b->left == 0)
				b->state = CHUNK_DATA_CR;
			continue;
		}
		e = chunk_byte(b, in->p[0], error);
		*in = uar_str_from(*in, 1);
	}
	return e;
}

uar_err uar_http_body_feed(struct uar_http_body *b, uar_str *in, struct uar_buf *out,
			   bool *out_done, struct uar_error *error)
{
	uar_err e = UAR_OK;

	if (b->framing == UAR_HTTP_CHUNKED)
		e = feed_chunks(b, in, out, error);
	else if (b->framing == UAR_HTTP_LENGTH)
		e = move_data(b, in, out, error);
	if (!e)
		*out_done = b->framing == UAR_HTTP_CHUNKED ? b->state == BODY_DONE : b->left == 0;
	return e;
}
