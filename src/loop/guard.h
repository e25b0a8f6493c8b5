/* guard.h - which addresses may be called when a definition, a model or a peer names them.
 *
 * A name is looked up once, by whoever connects, and the guard judges the address that
 * is about to be connected to, so neither a spelling of an address nor a name server that changes
 * its mind leads around it. Only addresses of the public Internet pass: nothing of this machine,
 * its networks, or what carries such an address inside (IPv4 in IPv6). The operator may allow more.
 *
 * Immutable: any thread may ask. */
#ifndef UAR_LOOP_GUARD_H
#define UAR_LOOP_GUARD_H

#include "base/str.h"

struct uar_guard;

/* `allow`: what passes besides, each NAME, IPV4, [IPV6], maybe with :PORT, or a network such as
 * 10.0.0.0/8 or [fd00::]/8. A name that is allowed is not judged by its addresses.
 * UAR_EINVALID: one of them is none of it. */
UAR_MUST_CHECK uar_err uar_guard_create(const char *const *allow, size_t count,
					struct uar_guard **out, struct uar_error *error);
void uar_guard_destroy(struct uar_guard *g); /* NULL is fine */
/* Can that be an entry of `allow`? */
bool uar_guard_is_entry(uar_str text);
/* ip: 16 bytes, IPv4 as ::ffff:a.b.c.d. NULL for g: what nobody allowed specially. */
bool uar_guard_passes(const struct uar_guard *g, const unsigned char ip[16], uint16_t port);
/* Is the host of the URL allowed by its name? */
bool uar_guard_passes_name(const struct uar_guard *g, uar_str url);
/* Is its host an address that does not pass, or none at all? localhost and the names below it are
 * such addresses, and so are all spellings of one. Other names are judged by where they lead. */
bool uar_guard_bars(const struct uar_guard *g, uar_str url);

#endif
