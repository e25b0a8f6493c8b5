/* wire_int.h - a provider that is reached over HTTP; for files of model/ alone. */
#ifndef UAR_MODEL_WIRE_INT_H
#define UAR_MODEL_WIRE_INT_H

#include "loop/client.h"
#include "model/reply_int.h"

struct uar_wire {
	struct uar_model base; /* first: the ops get it back by a cast */
	const struct uar_dialect *dialect;
	struct uar_client *client;
	struct uar_sched *sched;
	struct uar_list calls;
	struct uar_list embeddings; /* wire_embed.c */
	struct uar_list listings;   /* wire_list.c */
	struct uar_reply_scratch scratch;
	char *provider, *url, *list_url, *embed_url;
	char **headers; /* of each request, NULL-terminated */
	uar_str key;	/* inside one of them; empty: none */
	bool legacy;	/* it may not know the newer names of members */
};

extern const struct uar_model_ops uar_wire_ops; /* wire.c */
/* wire_embed.c */
uar_err uar_wire_embed(struct uar_model *m, const struct uar_model_embed *r,
		       struct uar_error *error);
void uar_wire_end_embeddings(struct uar_wire *m);
void uar_wire_end_listings(struct uar_wire *m); /* wire_list.c */
void uar_wire_free(struct uar_wire *m);		/* one without calls */

#endif
