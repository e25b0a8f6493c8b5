/* gate.h - the endpoints: authenticate, decode, call the runtime, encode.
 *
 * No run logic lives here. Who is asking is settled from the head alone, before
 * a byte of the body is read; what a request names is looked up as (owner, id). */
#ifndef UAR_GATE_GATE_H
#define UAR_GATE_GATE_H

#include "http/http.h"
#include "mail/mail.h"
#include "read/read.h"
#include "work/work.h"

struct uar_gate;
struct uar_mcp_relay;
struct uar_knowledge;

struct uar_gate_options {
	struct uar_sched *sched;
	struct uar_runtime *runtime;
	struct uar_reader *reader;
	struct uar_mailer *mailer;
	struct uar_workers *work;
	struct uar_knowledge *knowledge; /* NULL: none */
	const struct uar_rand *rand;
	const struct uar_log *log;
	struct uar_owner owner; /* of the holder of the token; strings outlive the gate */
	const char *token;
	const char *const *allowed_hosts; /* besides loopback and the bound address */
	size_t allowed_host_count;
	const char *const *allowed_origins; /* besides the page's own */
	size_t allowed_origin_count;
	struct uar_mcp_relay *const *relays; /* MCP servers that clients may use; they outlive it */
	size_t relay_count;
	const char *fixtures_dir;
	const char *data_dir; /* whose sizes are shown; NULL: none */
	struct {
		size_t body;
		size_t tenant_requests; /* and streams, under way; 0: any number */
	} max;
	int64_t sync_wait_us; /* bound of a wait for the end of a run */
	bool plugin_trigger;  /* the old route is served */
	struct {
		const char *public_url; /* of this server for others; empty: as they call it */
		const char *agent;	/* whose card the origin has; empty: the first one */
		bool old_cards; /* those who do not ask for 1.0 get the members of 0.3, too */
	} a2a;
	struct {
		/* Adds what others count, in the text format of /metrics; NULL: nothing. */
		void (*metrics)(void *ctx, struct uar_buf *out);
		/* Writes the answer of GET /api/admin/settings; NULL: there are none. */
		uar_err (*settings)(void *ctx, struct uar_buf *out);
		void *ctx;
	} told; /* by who made it */
	/* May change while it runs: */
	int64_t heartbeat_us;
	bool cancel_as_done;
};

UAR_MUST_CHECK uar_err uar_gate_create(const struct uar_gate_options *o, struct uar_gate **out);
/* After the HTTP server and the store, before the runtime; NULL is fine. Whatever
 * was still under way is forgotten. */
void uar_gate_destroy(struct uar_gate *g);
/* What the HTTP server calls. */
struct uar_http_handler uar_gate_handler(struct uar_gate *g);
/* Handles a request that the program itself makes, as the holder of the token: method, path,
 * query, body, arena and answer are set. It is answered now or later, but always
 * before uar_gate_destroy returns or not at all. */
void uar_gate_request(struct uar_gate *g, struct uar_http_request *r);
/* The server whose numbers /metrics shows, and by whose address it may be called. */
void uar_gate_set_http(struct uar_gate *g, struct uar_http *http);
void uar_gate_reload(struct uar_gate *g, int64_t heartbeat_us, bool cancel_as_done);
/* Ends every stream with a hint when to come back, answers who waits for the end
 * of a run; new streams are refused. */
void uar_gate_drain(struct uar_gate *g);
/* A fresh one-time code for the link of a person; replaces the one before. */
const char *uar_gate_link_code(struct uar_gate *g);

#endif
