/* oauth_text.c - addresses, scopes, encodings of an authorization. */
#include "base/base64.h"
#include "base/sha256.h"
#include "mcp/oauth_int.h"

uar_str oauth_origin(uar_str url)
{
	size_t at = uar_str_find(url, ':');
	size_t host = at + 3 < url.n ? at + 3 : url.n;
	uar_str rest = uar_str_from(url, host);
	size_t end = uar_str_find(rest, '/');
	size_t query = uar_str_find(rest, '?');

	return uar_str_n(url.p, host + (query < end ? query : end));
}

uar_str oauth_path(uar_str url)
{
	uar_str rest = uar_str_from(url, oauth_origin(url).n);

	rest.n = uar_str_find(rest, '?');
	rest.n = uar_str_find(rest, '#');
	while (rest.n && rest.p[rest.n - 1] == '/')
		rest.n--;
	return rest;
}

static bool is_loopback_host(uar_str host)
{
	if (uar_str_eq_nocase(host, UAR_STR("localhost")) || uar_str_is(host, "[::1]"))
		return true;
	for (size_t i = 0; i < host.n; i++)
		if (host.p[i] != '.' && (host.p[i] < '0' || host.p[i] > '9'))
			return false;
	return uar_str_starts(host, UAR_STR("127."));
}

bool oauth_is_loopback(uar_str url)
{
	uar_str scheme = UAR_STR("http://");
	uar_str host = oauth_origin(url);
	size_t port;

	if (!uar_str_starts(host, scheme) || uar_str_find(host, '@') < host.n)
		return false;
	host = uar_str_from(host, scheme.n);
	host.n = uar_str_find(host, '#');
	port = host.n;
	while (port && host.p[port - 1] >= '0' && host.p[port - 1] <= '9')
		port--;
	if (port && host.p[port - 1] == ':')
		host.n = port - 1;
	return is_loopback_host(host);
}

bool uar_mcp_resource_matches(uar_str resource, uar_str url)
{
	uar_str above = oauth_path(resource), path = oauth_path(url);

	return uar_str_eq_nocase(oauth_origin(resource), oauth_origin(url)) &&
	       uar_str_starts(path, above) && (path.n == above.n || path.p[above.n] == '/');
}

void oauth_encode(struct uar_buf *b, uar_str value)
{
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    c == '-' || c == '.' || c == '_' || c == '~')
			uar_buf_add_char(b, (char)c);
		else
			uar_buf_printf(b, "%%%02X", c);
	}
}

void oauth_put(struct uar_buf *b, const char *name, uar_str value)
{
	if (b->n && b->p[b->n - 1] != '?')
		uar_buf_add_char(b, '&');
	uar_buf_printf(b, "%s=", name);
	oauth_encode(b, value);
}

/* Base64 for addresses, without padding. */
static uar_str encode_bytes(struct uar_arena *arena, const unsigned char *raw, size_t n)
{
	struct uar_buf b = uar_buf_make(256);
	uar_str out = UAR_STR_NONE;

	uar_base64_encode(&b, uar_str_n((const char *)raw, n));
	while (b.n && b.p[b.n - 1] == '=')
		b.n--;
	for (size_t i = 0; i < b.n; i++)
		b.p[i] = (char)(b.p[i] == '+' ? '-' : b.p[i] == '/' ? '_' : b.p[i]);
	if (!b.err)
		out = uar_arena_str(arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	return out;
}

uar_str oauth_random(struct uar_mcp_auth *a)
{
	unsigned char raw[32];

	a->o.rand->fill(a->o.rand->ctx, raw, sizeof raw);
	return encode_bytes(&a->arena, raw, sizeof raw);
}

uar_str oauth_challenge(struct uar_mcp_auth *a, uar_str verifier)
{
	char hex[UAR_SHA256_TEXT + 1];
	unsigned char raw[UAR_SHA256_TEXT / 2];

	uar_sha256_hex(verifier, hex);
	for (size_t i = 0; i < sizeof raw; i++)
		raw[i] = (unsigned char)(uar_hex_digit(hex[2 * i]) * 16 +
					 uar_hex_digit(hex[2 * i + 1]));
	return encode_bytes(&a->arena, raw, sizeof raw);
}

bool oauth_has_word(uar_str words, uar_str word)
{
	while (words.n) {
		uar_str rest = UAR_STR_NONE, one = uar_str_cut(words, ' ', &rest);

		if (uar_str_eq(one, word))
			return true;
		words = rest;
	}
	return false;
}

bool oauth_lists(const struct uar_json *list, const char *word)
{
	for (const struct uar_json *j = uar_json_first(list); j; j = j->next)
		if (uar_str_is(uar_json_str(j, UAR_STR("")), word))
			return true;
	return false;
}

uar_str oauth_join(struct uar_arena *a, const struct uar_json *list)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_OAUTH_TEXT);
	uar_str out;

	for (const struct uar_json *j = uar_json_first(list); j; j = j->next) {
		if (b.n)
			uar_buf_add_char(&b, ' ');
		uar_buf_add_str(&b, uar_json_str(j, UAR_STR("")));
	}
	out = b.err ? UAR_STR_NONE : uar_arena_str(a, uar_buf_str(&b));
	uar_buf_fini(&b);
	return out;
}

uar_str oauth_union(struct uar_arena *a, uar_str x, uar_str y)
{
	struct uar_buf b = uar_buf_make(2 * UAR_LIMIT_MCP_OAUTH_TEXT);
	uar_str out;

	uar_buf_add_str(&b, x);
	while (y.n) {
		uar_str rest = UAR_STR_NONE, one = uar_str_cut(y, ' ', &rest);

		if (one.n && !oauth_has_word(uar_buf_str(&b), one))
			uar_buf_printf(&b, "%s%.*s", b.n ? " " : "", UAR_FMT(one));
		y = rest;
	}
	out = b.err ? UAR_STR_NONE : uar_arena_str(a, uar_buf_str(&b));
	uar_buf_fini(&b);
	return out;
}

/* --- the challenge -------------------------------------------------------------------------- */

/* One value, in quotes or not; *at is moved behind it. */
static uar_str read_value(uar_str header, size_t *at, struct uar_arena *arena)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_OAUTH_TEXT);
	bool quoted = *at < header.n && header.p[*at] == '"', ends;
	uar_str out;

	*at += quoted;
	for (; *at < header.n; (*at)++) {
		char c = header.p[*at];

		if (quoted ? c == '"' : c == ',' || c == ' ')
			break;
		if (quoted && c == '\\' && *at + 1 < header.n)
			c = header.p[++*at];
		uar_buf_add_char(&b, c);
	}
	ends = !quoted || *at < header.n;
	*at += quoted;
	out = b.err || !ends ? UAR_STR_NONE : uar_arena_str(arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	return out;
}

uar_str uar_mcp_challenge_param(uar_str header, const char *name, struct uar_arena *arena)
{
	size_t at = 0;

	while (at < header.n) {
		size_t start, end;
		uar_str value;

		while (at < header.n && (header.p[at] == ' ' || header.p[at] == ','))
			at++;
		start = at;
		while (at < header.n && header.p[at] != '=' && header.p[at] != ' ' &&
		       header.p[at] != ',')
			at++;
		end = at;
		if (at >= header.n || header.p[at] != '=')
			continue; /* the name of a scheme */
		at++;
		value = read_value(header, &at, arena);
		if (uar_str_eq_nocase(uar_str_n(header.p + start, end - start), uar_str_c(name)))
			return value;
	}
	return UAR_STR_NONE;
}
