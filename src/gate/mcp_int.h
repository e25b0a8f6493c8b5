/* mcp_int.h - what the files of the MCP endpoints share.
 *
 * A session of the legacy era is a channel of the log (mail/mail.h): a record that opens it, one
 * for each call that a run answers, and each message that the server says. Who reads it is a
 * cursor over those records, so a stream can be resumed, also after a restart. A request of the
 * modern era has no session: what concerns it goes to the answer that is open for it. */
#ifndef UAR_GATE_MCP_INT_H
#define UAR_GATE_MCP_INT_H

#include "base/map.h"
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "mcp/era.h"
#include "proto/view.h"
#include "read/stream.h"

enum { MCP_STREAM = 12 }; /* bytes of the name of a stream */
/* What belongs to no request is said on this stream. */
#define MCP_STREAM_OWN "0"

struct mcp_session {
	struct uar_list node; /* in gate_mcp.sessions; the one used last is the last */
	struct gate_mcp *m;
	struct uar_arena arena;
	struct uar_owner owner;
	uar_str id, version;
	uint64_t sequence; /* of the last record that is known to be durable */
	unsigned streams;  /* that were named */
	size_t users;	   /* requests, works and records under way */
	bool elicits;	   /* the client shows forms */
	bool closed;
};

struct gate_mcp {
	struct uar_gate *g;
	struct uar_map by_id; /* of struct mcp_session */
	struct uar_list sessions;
	struct uar_list works;	 /* of struct mcp_work */
	struct uar_list loads;	 /* of struct load */
	struct uar_list records; /* of struct record */
	struct uar_list fetches; /* mcp_reader.c */
	struct uar_uuid ids;
	size_t work_count;
};

/* One message from a client, on its way to its answer; in the arena of its call. */
struct mcp_exchange {
	struct call *c;
	struct mcp_session *s; /* NULL: it needs none */
	struct uar_mcp_message m;
	struct uar_mcp_verdict v;
	bool wants_stream, wants_json; /* what the client accepts */
	bool hybrid;		       /* it came to /api/mcp/sessions/:id/messages */
	void *op;		       /* of the method */
};

/* --- mcp_session.c --------------------------------------------------------------------- */

/* Records are made durable in their order; `done` may be NULL. */
struct mcp_record {
	const char *kind;   /* "open", "request", "message", "settled", "close" */
	uar_str stream, id; /* JSON text of the request; or empty */
	uar_str run_id;	    /* of a request */
	uar_str token;	    /* JSON text of a progress token, of a request */
	uar_str message;    /* JSON text; of an open one what the session is */
	bool settles;	    /* nothing more is said on its stream */
	void (*done)(void *ctx, uar_err e, uint64_t sequence);
	void *ctx;
};
UAR_MUST_CHECK uar_err mcp_record_add(struct mcp_session *s, const struct mcp_record *r);
/* A record of the log as it was written; UAR_ESKIP: the event is none. Of a long one `blob` is
 * set and the rest is in there. */
struct mcp_stored {
	uar_str kind, stream, id, run_id, token, message;
	uar_str blob;
	bool settles; /* nothing more is said on its stream */
};
UAR_MUST_CHECK uar_err mcp_stored_read(const struct uar_event *ev, struct uar_arena *arena,
				       struct mcp_stored *out);
/* Adds what the text holds that a blob has. */
UAR_MUST_CHECK uar_err mcp_stored_parse(uar_str text, struct uar_arena *arena,
					struct mcp_stored *out);

/* Opens a session; `done` in the loop's next turn or later. The opener uses it until
 * mcp_session_release. */
struct mcp_opening {
	struct call *c;
	const struct uar_json *params; /* of initialize; may be NULL */
	void (*done)(struct mcp_opening *o);
	/* out */
	uar_err err;
	struct mcp_session *s;
};
UAR_MUST_CHECK uar_err mcp_session_open(struct mcp_opening *o);
/* Finds a session of the caller, in memory or in the log, then calls `then`, perhaps at once.
 * UAR_ENOTFOUND: there is none. The caller uses it until mcp_session_release. */
typedef void mcp_found_fn(void *ctx, struct mcp_session *s, uar_err e);
void mcp_session_find(struct call *c, uar_str id, mcp_found_fn *then, void *ctx);
void mcp_session_release(struct mcp_session *s); /* NULL is fine */
/* A name for a further stream of the session. */
void mcp_stream_name(struct mcp_session *s, char out[MCP_STREAM]);

/* --- mcp_reader.c ---------------------------------------------------------------------- */

struct mcp_reading {
	uar_str stream; /* shown alone; empty: all of them */
	uint64_t after; /* sequence of the last record that the reader has */
	bool primed;	/* begins with an id and no data, so that the reader can resume */
};
/* Answers the call with the records of the session; releases neither. */
void mcp_reader_open(struct call *c, struct mcp_session *s, const struct mcp_reading *r);
/* "stream~cursor", as frames have it. */
UAR_MUST_CHECK uar_err mcp_cursor_parse(const struct uar_gate *g, uar_str text, uar_str *stream,
					uint64_t *after);
void mcp_readers_fini(struct gate_mcp *m);

/* --- mcp_answer.c ---------------------------------------------------------------------- */

/* Each answers the exchange and frees its call. */
void mcp_answer_error(struct mcp_exchange *x, int status, int code, const char *text, uar_str data);
void mcp_answer_result(struct mcp_exchange *x, struct uar_buf *result);
void mcp_answer_bare(struct call *c, int status); /* no body */
/* A problem of UAR: of storage, memory, limits. */
void mcp_answer_problem(struct mcp_exchange *x, uar_err e, const struct uar_error *error);
/* Opens the object of a result with what its era asks for; uar_jw_close ends it. */
struct uar_jw mcp_result_begin(const struct mcp_exchange *x, struct uar_buf *out);
/* A run that is over as the result of a call. */
UAR_MUST_CHECK uar_err mcp_write_run(const struct uar_view *v, uar_str run_id, enum uar_mcp_era era,
				     struct uar_buf *out);
void mcp_put_server_info(struct uar_jw *w, const char *key);
bool mcp_accepts(const struct uar_http_request *r, const char *type);

/* --- methods --------------------------------------------------------------------------- */

/* Each answers, now or later. */
void mcp_dispatch(struct mcp_exchange *x);		     /* mcp_methods.c */
void mcp_put_initialized(struct uar_jw *w, uar_str version); /* members of that result */
/* The revision that the server speaks with who asks for that one. */
uar_str mcp_negotiate(uar_str asked);
void mcp_list_tools(struct mcp_exchange *x); /* mcp_tools.c */
void mcp_call_tool(struct mcp_exchange *x);
/* A call that failed, for the model to read. */
void mcp_answer_failed(struct mcp_exchange *x, uar_str text);
void mcp_list_resources(struct mcp_exchange *x); /* mcp_resources.c */
void mcp_list_templates(struct mcp_exchange *x);
void mcp_read_resource(struct mcp_exchange *x);
void mcp_list_prompts(struct mcp_exchange *x);
void mcp_get_prompt(struct mcp_exchange *x);

/* --- mcp_work.c: a run that answers a call --------------------------------------------- */

void mcp_work_start(struct mcp_exchange *x, const struct uar_agent *agent);
/* The client does not want the answer of its request any more. `answer`: it is told so. */
void mcp_work_cancel(struct mcp_session *s, uar_str id, bool answer);
/* A call of the session that the log has no answer for: it goes on. */
UAR_MUST_CHECK uar_err mcp_work_resume(struct mcp_session *s, const struct mcp_stored *r);
void mcp_works_fini(struct gate_mcp *m);

#endif
