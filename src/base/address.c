/* address.c - hosts, ports, IP literals and paths of sockets; see address.h. */
#include "base/address.h"

#include <arpa/inet.h>
#include <sys/un.h>

_Static_assert(UAR_SOCKET_PATH == sizeof(((struct sockaddr_un *)0)->sun_path), "of this system");

static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

static bool in_brackets(uar_str s)
{
	return s.n > 2 && s.p[0] == '[' && s.p[s.n - 1] == ']';
}

uar_str uar_address_bare(const struct uar_address *a)
{
	uar_str s = a->host;

	return a->kind != UAR_ADDRESS_UNIX && in_brackets(s) ? uar_str_n(s.p + 1, s.n - 2) : s;
}

/* A NUL inside would end the text for inet_pton, not for us. */
static void read_ip(struct uar_address *a)
{
	uar_str s = uar_address_bare(a);
	bool v6 = s.n != a->host.n;
	char text[INET6_ADDRSTRLEN];

	if (s.n >= sizeof text || memchr(s.p, 0, s.n))
		return;
	memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	if (inet_pton(v6 ? AF_INET6 : AF_INET, text, v6 ? a->ip : a->ip + sizeof mapped) != 1)
		return;
	if (!v6)
		memcpy(a->ip, mapped, sizeof mapped);
	a->kind = v6 ? UAR_ADDRESS_IPV6 : UAR_ADDRESS_IPV4;
}

/* "" or ":PORT" */
static bool read_port(uar_str s, struct uar_address *a)
{
	uint64_t port;

	if (!s.n)
		return true;
	if (s.p[0] != ':' || uar_str_u64(uar_str_from(s, 1), &port) || port > UINT16_MAX)
		return false;
	a->has_port = true;
	a->port = (uint16_t)port;
	return true;
}

bool uar_address_read_host(uar_str text, struct uar_address *out)
{
	struct uar_address a = { .kind = UAR_ADDRESS_NAME };
	bool brackets = text.n && text.p[0] == '[';
	size_t end = uar_str_find(text, brackets ? ']' : ':');

	if (brackets)
		end++;
	if (!end || end > text.n || !read_port(uar_str_from(text, end), &a))
		return false;
	a.host = uar_str_n(text.p, end);
	if (brackets && !in_brackets(a.host))
		return false;
	read_ip(&a);
	*out = a;
	return true;
}

static bool read_socket(uar_str path, struct uar_address *out)
{
	if (!path.n || path.n >= UAR_SOCKET_PATH || memchr(path.p, 0, path.n))
		return false;
	*out = (struct uar_address){ .kind = UAR_ADDRESS_UNIX, .host = path };
	return true;
}

bool uar_address_read_bound(uar_str text, struct uar_address *out)
{
	struct uar_address a;

	if (uar_str_starts(text, UAR_STR("unix:")))
		return read_socket(uar_str_from(text, 5), out);
	if (!uar_address_read_host(text, &a) || !a.has_port)
		return false;
	if (uar_str_is(a.host, "localhost")) {
		a.host = UAR_STR("127.0.0.1");
		read_ip(&a);
	}
	if (!uar_address_is_ip(&a))
		return false;
	*out = a;
	return true;
}

bool uar_address_is_ip(const struct uar_address *a)
{
	return a->kind == UAR_ADDRESS_IPV4 || a->kind == UAR_ADDRESS_IPV6;
}

static bool is_v4(const struct uar_address *a)
{
	return uar_address_is_ip(a) && memcmp(a->ip, mapped, sizeof mapped) == 0;
}

bool uar_address_is_any(const struct uar_address *a)
{
	static const unsigned char zero[16];

	if (is_v4(a))
		return memcmp(a->ip + sizeof mapped, zero, 4) == 0;
	return uar_address_is_ip(a) && memcmp(a->ip, zero, sizeof zero) == 0;
}

bool uar_address_is_local(const struct uar_address *a)
{
	static const unsigned char one[16] = { [15] = 1 };

	switch (a->kind) {
	case UAR_ADDRESS_NAME: return uar_str_eq_nocase(a->host, UAR_STR("localhost"));
	case UAR_ADDRESS_IPV4:
	case UAR_ADDRESS_IPV6:
		return is_v4(a) ? a->ip[12] == 127 : memcmp(a->ip, one, sizeof one) == 0;
	case UAR_ADDRESS_UNIX: return true;
	}
	return false;
}

/* The next character, decoded as often as it is encoded. */
static char decoded_at(uar_str s, size_t *at)
{
	char c = s.p[(*at)++];

	while (c == '%' && *at + 2 <= s.n && uar_hex_digit(s.p[*at]) >= 0 &&
	       uar_hex_digit(s.p[*at + 1]) >= 0) {
		c = (char)(uar_hex_digit(s.p[*at]) * 16 + uar_hex_digit(s.p[*at + 1]));
		*at += 2;
	}
	return c;
}

bool uar_address_climbs(uar_str address)
{
	size_t at = 0, dots = 0, others = 0;

	while (at < address.n && address.p[at] != '?' && address.p[at] != '#') {
		bool slash = address.p[at] == '/' || address.p[at] == '\\';
		char c = decoded_at(address, &at);

		if (!slash) {
			dots += c == '.';
			others += c != '.';
			continue;
		}
		if (!others && (dots == 1 || dots == 2))
			return true;
		dots = others = 0;
	}
	return !others && (dots == 1 || dots == 2);
}
