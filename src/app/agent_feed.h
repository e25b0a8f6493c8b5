/* agent_feed.h - definitions of a registry service: fetched again and again, kept on disk.
 *
 * The service answers GET with {"agents": [DEFINITION, ...]}. Its ETag is sent back, so that what
 * has not changed is not sent again. Without the service the last answer counts, also after a
 * restart. */
#ifndef UAR_APP_AGENT_FEED_H
#define UAR_APP_AGENT_FEED_H

#include "base/log.h"
#include "loop/client.h"

struct uar_agent_feed;
struct uar_registry;

struct uar_agent_feed_options {
	struct uar_loop *loop;
	struct uar_client *client;
	struct uar_registry *registry;
	const struct uar_log *log;
	const char *url, *token; /* token empty: none is sent */
	const char *cache;	 /* path of the file that keeps the last answer */
	int64_t every_us;
	void (*changed)(void *ctx); /* the registry has other definitions now */
	void *ctx;
};

/* Reads the kept answer at once, then asks. Strings are copied. */
UAR_MUST_CHECK uar_err uar_agent_feed_create(const struct uar_agent_feed_options *o,
					     struct uar_agent_feed **out);
void uar_agent_feed_destroy(struct uar_agent_feed *f); /* NULL is fine */

#endif
