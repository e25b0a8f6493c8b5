/* address.h - where something listens or is called: text that names a host or a socket.
 *
 * Only reads: no name is ever looked up, so a name is whatever is no address. An IPv4
 * address has the form ::ffff:a.b.c.d in `ip`: the same address is the same 16 bytes. */
#ifndef UAR_BASE_ADDRESS_H
#define UAR_BASE_ADDRESS_H

#include "base/str.h"

enum { UAR_SOCKET_PATH = 108 }; /* bytes of the path of a Unix socket, with its NUL */

enum uar_address_kind {
	UAR_ADDRESS_NAME, /* not judged further; maybe in brackets */
	UAR_ADDRESS_IPV4,
	UAR_ADDRESS_IPV6,
	UAR_ADDRESS_UNIX,
};

struct uar_address { /* the text is borrowed */
	enum uar_address_kind kind;
	uar_str host; /* as written, with brackets; of a Unix socket: its path */
	unsigned char ip[16];
	bool has_port;
	uint16_t port; /* 0: none */
};

/* HOST or HOST:PORT, as in URLs: a host with a colon in it stands in brackets. */
UAR_MUST_CHECK bool uar_address_read_host(uar_str text, struct uar_address *out);
/* What a server can be bound to: IPV4:PORT, [IPV6]:PORT, unix:PATH, or localhost:PORT,
 * which is 127.0.0.1. */
UAR_MUST_CHECK bool uar_address_read_bound(uar_str text, struct uar_address *out);
bool uar_address_is_ip(const struct uar_address *a);
bool uar_address_is_any(const struct uar_address *a); /* 0.0.0.0, [::] */
/* Loopback, the name localhost or a Unix socket: nobody else's machine. */
bool uar_address_is_local(const struct uar_address *a);
/* The host without its brackets. */
uar_str uar_address_bare(const struct uar_address *a);
/* Has the path of an address (up to '?' or '#') a segment "." or ".."? Percent-encoded dots
 * count, encoded twice as well; '\\' is a slash, an encoded slash is none. */
bool uar_address_climbs(uar_str address);

#endif
