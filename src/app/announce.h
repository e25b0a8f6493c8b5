/* announce.h - how a server says where it is: its URL, a line of JSON, words for a person. */
#ifndef UAR_APP_ANNOUNCE_H
#define UAR_APP_ANNOUNCE_H

#include "base/buf.h"

struct uar_announcement {
	const char *url;     /* as uar_api_init takes it */
	const char *link;    /* opens the page once */
	const char *socket;  /* the path of the Unix socket it listens on; NULL: none */
	const char *program; /* as it was called */
	const char *full;    /* what a full disk means; NULL: it is not */
	const char *data;
	bool data_by_flag; /* then other commands have to be told, too */
	uar_str token;
};

/* The URL of a server at "HOST:PORT", or at the Unix socket where that is not NULL. */
UAR_MUST_CHECK uar_err uar_announce_url(const char *address, const char *socket, char *out,
					size_t size);
/* Each appends one whole announcement to `out`, or fails with the error of the buffer. */
UAR_MUST_CHECK uar_err uar_announce_json(const struct uar_announcement *a, struct uar_buf *out);
UAR_MUST_CHECK uar_err uar_announce_text(const struct uar_announcement *a, struct uar_buf *out);

#endif
