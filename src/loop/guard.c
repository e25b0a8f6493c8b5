/* guard.c - networks that are not public, and what an operator allows of them. */
#include "loop/guard.h"

#include <arpa/inet.h>
#include <strings.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/arena.h"

struct network {
	unsigned char ip[16];
	unsigned bits;
};

/* V4(a, b, c, d, bits): an IPv4 network as it lies in IPv6. */
#define V4(A, B, C, D, BITS)                                                                       \
	{                                                                                          \
		{ [10] = 0xff, 0xff, A, B, C, D }, 96 + (BITS)                                     \
	}

/* The registries of special addresses (RFC 6890 and after), and what carries an IPv4 address. */
static const struct network closed[] = {
	V4(0, 0, 0, 0, 8),		    /* this network */
	V4(10, 0, 0, 0, 8),		    /* private */
	V4(100, 64, 0, 0, 10),		    /* of carriers; metadata of a cloud */
	V4(127, 0, 0, 0, 8),		    /* loopback */
	V4(168, 63, 129, 16, 32),	    /* a cloud's platform */
	V4(169, 254, 0, 0, 16),		    /* link-local; metadata of clouds */
	V4(172, 16, 0, 0, 12),		    /* private */
	V4(192, 0, 0, 0, 24),		    /* protocol assignments */
	V4(192, 0, 2, 0, 24),		    /* documentation */
	V4(192, 31, 196, 0, 24),	    /* AS112 */
	V4(192, 52, 193, 0, 24),	    /* AMT */
	V4(192, 88, 99, 0, 24),		    /* 6to4 relays */
	V4(192, 168, 0, 0, 16),		    /* private */
	V4(192, 175, 48, 0, 24),	    /* AS112 */
	V4(198, 18, 0, 0, 15),		    /* benchmarks */
	V4(198, 51, 100, 0, 24),	    /* documentation */
	V4(203, 0, 113, 0, 24),		    /* documentation */
	V4(224, 0, 0, 0, 4),		    /* multicast */
	V4(240, 0, 0, 0, 4),		    /* reserved, broadcast */
	{ { 0 }, 96 },			    /* ::, ::1, IPv4-compatible */
	{ { [8] = 0xff, 0xff }, 96 },	    /* IPv4-translated */
	{ { 0x00, 0x64, 0xff, 0x9b }, 32 }, /* translated IPv4, local and well-known */
	{ { 0x01, 0x00 }, 64 },		    /* discard */
	{ { 0x20, 0x01, 0x00 }, 23 },	    /* Teredo, ORCHID and other protocols */
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32 }, /* documentation */
	{ { 0x20, 0x02 }, 16 },		    /* 6to4 */
	{ { 0x3f, 0xff, 0x00 }, 20 },	    /* documentation */
	{ { 0x5f, 0x00 }, 16 },		    /* segment routing */
	{ { 0xfc }, 7 },		    /* private */
	{ { 0xfe, 0x80 }, 9 },		    /* link-local, site-local */
	{ { 0xff }, 8 },		    /* multicast */
};

struct entry {
	bool is_name;
	uar_str name;
	struct network network;
	uint16_t port; /* 0: any */
};

struct uar_guard {
	struct uar_arena arena;
	struct entry *at;
	size_t count;
};

static bool within(const unsigned char ip[16], const struct network *n)
{
	unsigned whole = n->bits / 8, rest = n->bits % 8;

	if (memcmp(ip, n->ip, whole) != 0)
		return false;
	return !rest || ((ip[whole] ^ n->ip[whole]) >> (8 - rest)) == 0;
}

static bool is_v4(const unsigned char ip[16])
{
	static const struct network mapped = { { [10] = 0xff, 0xff }, 96 };

	return within(ip, &mapped);
}

/* --- what is allowed ------------------------------------------------------------------ */

static bool read_bits(uar_str text, struct entry *e)
{
	unsigned base = is_v4(e->network.ip) ? 96 : 0;
	uint64_t bits;

	if (uar_str_u64(text, &bits) || bits > 128 - base)
		return false;
	e->network.bits = base + (unsigned)bits;
	return true;
}

static bool read_entry(uar_str text, struct entry *out)
{
	uar_str bits, host = uar_str_cut(text, '/', &bits);
	struct uar_address a;
	struct entry e = { .network.bits = 128 };

	if (!uar_address_read_host(host, &a))
		return false;
	e.port = a.port;
	e.is_name = !uar_address_is_ip(&a);
	e.name = a.host;
	memcpy(e.network.ip, a.ip, sizeof a.ip);
	if (host.n < text.n && (e.is_name || a.has_port || !read_bits(bits, &e)))
		return false;
	for (size_t i = 0; e.is_name && i < a.host.n; i++)
		if ((unsigned char)a.host.p[i] <= ' ' || strchr("[]@/\\*?#%", a.host.p[i]))
			return false;
	*out = e;
	return true;
}

bool uar_guard_is_entry(uar_str text)
{
	struct entry e;

	return read_entry(text, &e);
}

uar_err uar_guard_create(const char *const *allow, size_t count, struct uar_guard **out,
			 struct uar_error *error)
{
	struct uar_guard *g = uar_zalloc(sizeof *g);
	uar_err e = UAR_OK;

	if (!g)
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	g->at = uar_arena_alloc(&g->arena, (count + 1) * sizeof *g->at);
	if (!g->at)
		e = uar_error_set(error, UAR_ENOMEM, "out of memory");
	for (; !e && g->count < count; g->count++) {
		uar_str text = uar_arena_str(&g->arena, uar_str_c(allow[g->count]));

		if (!text.p)
			e = uar_error_set(error, UAR_ENOMEM, "out of memory");
		else if (!read_entry(text, &g->at[g->count]))
			e = uar_error_set(error, UAR_EINVALID,
					  "\"%.100s\" is neither a host nor a network", text.p);
	}
	if (e) {
		uar_guard_destroy(g);
		return e;
	}
	*out = g;
	return UAR_OK;
}

void uar_guard_destroy(struct uar_guard *g)
{
	if (!g)
		return;
	uar_arena_fini(&g->arena);
	uar_free(g);
}

/* --- judgement --------------------------------------------------------------------------- */

bool uar_guard_passes(const struct uar_guard *g, const unsigned char ip[16], uint16_t port)
{
	bool is_closed = false;

	for (size_t i = 0; g && i < g->count; i++) {
		const struct entry *e = &g->at[i];

		if (!e->is_name && (!e->port || e->port == port) && within(ip, &e->network))
			return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(closed) && !is_closed; i++)
		is_closed = within(ip, &closed[i]);
	return !is_closed;
}

static uint16_t port_of(uar_str url, const struct uar_address *a)
{
	if (a->has_port)
		return a->port;
	return url.n > 6 && uar_str_eq_nocase(uar_str_n(url.p, 6), UAR_STR("https:")) ? 443 : 80;
}

/* The host of the URL; false: there is none that can be judged. */
static bool host_of(uar_str url, struct uar_address *out)
{
	size_t slash = uar_str_find(url, '/');
	uar_str rest = uar_str_from(url, slash + 2 < url.n ? slash + 2 : url.n);
	size_t n = 0;

	while (n < rest.n && !strchr("/?#\\", rest.p[n]))
		n++;
	return !memchr(rest.p, '@', n) && uar_address_read_host(uar_str_n(rest.p, n), out);
}

bool uar_guard_passes_name(const struct uar_guard *g, uar_str url)
{
	struct uar_address a;

	if (!g || !host_of(url, &a))
		return false;
	for (size_t i = 0; i < g->count; i++) {
		const struct entry *e = &g->at[i];

		if (e->is_name && (!e->port || e->port == port_of(url, &a)) &&
		    e->name.n == a.host.n && strncasecmp(e->name.p, a.host.p, a.host.n) == 0)
			return true;
	}
	return false;
}

/* Such names are of this machine, whatever a name server says (RFC 6761). */
static bool is_localhost(uar_str name)
{
	static const char suffix[] = ".localhost";
	size_t n = sizeof suffix - 1;

	return uar_str_eq_nocase(name, UAR_STR("localhost")) ||
	       (name.n > n &&
		uar_str_eq_nocase(uar_str_from(name, name.n - n), uar_str_n(suffix, n)));
}

/* What inet_aton takes: 127.1, 2130706433, 0x7f.1; in brackets an address with a zone. */
static bool read_odd_ip(const struct uar_address *a, uar_str host, unsigned char ip[16])
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
	bool v6 = host.n && host.p[0] == '[';
	uar_str s = v6 ? uar_address_bare(a) : host;
	char text[256];
	struct in_addr v4;

	if (v6)
		s.n = uar_str_find(s, '%');
	if (s.n >= sizeof text || memchr(s.p, 0, s.n))
		return false;
	memcpy(text, s.p, s.n);
	text[s.n] = 0;
	if (v6)
		return inet_pton(AF_INET6, text, ip) == 1;
	if (!inet_aton(text, &v4))
		return false;
	memcpy(ip, mapped, sizeof mapped);
	memcpy(ip + sizeof mapped, &v4, sizeof v4);
	return true;
}

bool uar_guard_bars(const struct uar_guard *g, uar_str url)
{
	static const unsigned char loopback[][16] = { { [10] = 0xff, 0xff, 127, 0, 0, 1 },
						      { [15] = 1 } };
	struct uar_address a;
	uar_str host;
	uint16_t port;

	if (!host_of(url, &a))
		return true;
	if (uar_guard_passes_name(g, url))
		return false;
	port = port_of(url, &a);
	host = a.host;
	host.n -= host.p[host.n - 1] == '.'; /* the root of all names */
	if (is_localhost(host))
		return !uar_guard_passes(g, loopback[0], port) &&
		       !uar_guard_passes(g, loopback[1], port);
	return (uar_address_is_ip(&a) || read_odd_ip(&a, host, a.ip)) &&
	       !uar_guard_passes(g, a.ip, port);
}
