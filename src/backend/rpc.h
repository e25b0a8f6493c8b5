/* rpc.h - writing JSON-RPC messages, one a line. */
#ifndef UAR_BACKEND_RPC_H
#define UAR_BACKEND_RPC_H

#include "backend/map.h"

struct uab_rpc {
	struct uab_map *map;
	bool versioned; /* says "jsonrpc":"2.0" */
	int64_t last_id;
	struct uar_buf buf;
	struct uar_jw w; /* between open and close */
};

void uab_rpc_init(struct uab_rpc *r, struct uab_map *m, bool versioned);
/* Opens a request (its id is returned) or, with `notify`, a notification; the
 * caller then writes members of `params`. */
int64_t uab_rpc_open(struct uab_rpc *r, const char *method, bool notify);
/* Opens the answer to a request of the other side; members of `result` follow. */
void uab_rpc_reply(struct uab_rpc *r, const char *wire_id);
void uab_rpc_close(struct uab_rpc *r);
void uab_rpc_refuse(struct uab_rpc *r, const char *wire_id); /* method not found */
/* Opens `{"type":"text","text":...` as an item of an array; the caller closes it. */
void uab_rpc_text(struct uab_rpc *r, uar_str text);
/* Is it the answer to the request that waits? Then none waits any more. */
bool uab_rpc_answers(const struct uar_json *j, int64_t *waiting);
/* Asks with these as exact input and what the answer needs; what is too large is
 * refused. Either may be NULL. */
void uab_rpc_ask(struct uab_rpc *r, struct uab_ask *a, const struct uar_json *input,
		 const struct uar_json *extra);
/* The id of a message as JSON text; false when there is none that fits. */
bool uab_rpc_wire_id(const struct uar_json *j, char *out, size_t size);

#endif
