/* peer.h - other runtimes that are reached over HTTP: POST /api/a2a/inbox of each. */
#ifndef UAR_PEER_PEER_H
#define UAR_PEER_PEER_H

#include "event/peer.h"
#include "loop/client.h"

struct uar_peers_options {
	struct uar_client *client;    /* outlives them */
	const char *const *addresses; /* "NAME=URL" each */
	size_t address_count;
	const char *tokens;   /* "NAME=TOKEN,..." */
	const char *own_name; /* or empty */
};
/* UAR_ECONFIG: what is wrong is in error->text, which has no token. */
UAR_MUST_CHECK uar_err uar_peers_http_create(const struct uar_peers_options *o,
					     struct uar_peers **out, struct uar_error *error);
void uar_peers_destroy(struct uar_peers *p); /* NULL is fine */

/* "NAME=URL", the name as recipients have it behind their @. */
UAR_MUST_CHECK bool uar_peer_address_read(uar_str text, uar_str *out_name, uar_str *out_url);

#endif
