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
#include "mcp/limits.h"
#include "mcp/era.h"
#include "mcp/relay.h"
#include "proto/view.h"
#include "read/stream.h"

enum { MCP_STREAM = 12 }; /* bytes of the name of a stream */
/* What belongs to no request is said on this stream. */
#define MCP_STREAM_OWN "0"
/* The extension of 2026-07-28 for calls whose answer is asked for later. */
#define MCP_TASKS "io.modelcontextprotocol/tasks"

struct mcp_session {
	struct uar_list node; /* in gate_mcp.sessions; the one used last is the last */
	struct gate_mcp *m;
	struct uar_arena arena;
	struct uar_owner owner;
	uar_str id, version;
	uint64_t sequence;	       /* of the last record that is known to be durable */
	unsigned streams;	       /* that were named */
	size_t users;		       /* requests, works and records under way */
	uar_str caps, info;	       /* JSON objects: what the client can do, and is; or empty */
	unsigned can;		       /* of enum mcp_can */
	const char *level;	       /* of what is logged for it; NULL: it did not say */
	struct uar_list subscriptions; /* mcp_watch.c */
	size_t subscription_count;
	bool closed;
};

/* What a client says that it can do. */
enum mcp_can { MCP_ELICITS = 1, MCP_SAMPLES = 2, MCP_HAS_ROOTS = 4 };

struct gate_mcp {
	struct uar_gate *g;
	struct uar_map by_id; /* of struct mcp_session */
	struct uar_list sessions;
	struct uar_list works;	   /* of struct mcp_work */
	struct uar_list loads;	   /* of struct load */
	struct uar_list records;   /* of struct record */
	struct uar_list fetches;   /* mcp_reader.c */
	struct uar_list listeners; /* of struct listener */
	struct uar_list tasks;	   /* of struct mcp_task */
	struct uar_watch watch;	   /* of runs that are subscribed to */
	struct uar_timer flush;	   /* what changed is said */
	size_t watched;		   /* subscriptions of any kind */
	unsigned changed;	   /* bits of lists */
	uint64_t generation;	   /* of agents and tools, as it was last looked at */
	bool flushing, ending;
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
void mcp_answer_empty(struct mcp_exchange *x);	  /* a result without members */
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
struct uar_frame *mcp_frame(uar_str message); /* of SSE, without an id; NULL: out of memory */

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
/* There is no such resource, or it is of somebody else. */
void mcp_answer_missing(struct mcp_exchange *x, uar_str uri);
void mcp_list_prompts(struct mcp_exchange *x);
void mcp_get_prompt(struct mcp_exchange *x);

/* --- mcp_artifacts.c: what runs make --------------------------------------------------- */

struct mcp_artifact_name {
	uar_str run_id, artifact_id;
};
void mcp_artifact_uri(struct uar_buf *out, uar_str run_id, uar_str artifact_id);
/* False: it is not the address of an artifact. */
bool mcp_artifact_parse(struct uar_arena *arena, uar_str uri, struct mcp_artifact_name *out);

/* A version of one, as its event says it; borrows from the event and the arena. */
struct mcp_artifact {
	uar_str id, type, title, mime;
	uar_str blob; /* sha256 of its bytes; or empty, and they are: */
	uar_str text;
	bool encoded; /* that is base64 */
	int64_t version;
};
/* UAR_ESKIP: the event is about none that has bytes. */
UAR_MUST_CHECK uar_err mcp_artifact_read(const struct uar_event *ev, struct uar_arena *arena,
					 struct mcp_artifact *out);

struct mcp_artifact_look {
	struct mcp_exchange *x;
	uar_str uri;
	struct mcp_artifact_name name;
	uint64_t at; /* run_sequence of the event of its current version */
	void (*found)(struct mcp_artifact_look *k);
	/* its own */
	uint64_t after;
	struct uar_events_read read;
	struct mcp_artifact a;
	struct uar_blob_read get;
};
/* False: `uri` is not the address of an artifact. Else `found` is called if the caller has it, and
 * if not the exchange is answered. */
bool mcp_artifact_look(struct mcp_exchange *x, uar_str uri,
		       void (*found)(struct mcp_artifact_look *k));
bool mcp_read_artifact(struct mcp_exchange *x, uar_str uri); /* likewise; answers */

/* --- mcp_work.c: a call that takes longer ----------------------------------------------- */

struct mcp_work;
struct mcp_work_ops {
	/* The call is in the log, if it has a session: now it may happen. */
	uar_err (*begin)(struct mcp_work *k);
	/* Nothing more is said. `cancels`: what is under way is not wanted either. */
	void (*abandon)(struct mcp_work *k, bool cancels);
	bool (*busy)(const struct mcp_work *k); /* something will call back */
	void (*fini)(struct mcp_work *k);	/* frees it */
	/* The client has answered all that was asked; NULL: it refuses to. */
	void (*answered)(struct mcp_work *k, const struct uar_json *answers);
};
struct mcp_work {
	struct uar_list node; /* in gate_mcp.works */
	const struct mcp_work_ops *ops;
	struct gate_mcp *m;
	struct mcp_session *s;	 /* NULL: it has none */
	struct mcp_exchange *x;	 /* whose answer has not begun; NULL: it has */
	struct gate_stream base; /* without a session: the answer, once something was said */
	struct uar_arena arena;
	struct uar_owner owner;
	uar_str id, token; /* JSON texts */
	char stream[MCP_STREAM];
	struct uar_timer grace;
	struct uar_list questions; /* mcp_ask.c */
	unsigned under_way;	   /* operations that will call back */
	bool begun;
	bool settled; /* nothing more is said */
};
struct mcp_work_about {
	struct gate_mcp *m;
	struct mcp_session *s; /* or NULL */
	const struct uar_owner *owner;
	uar_str id, token;
};
/* False: there are too many, and the exchange is answered. */
bool mcp_work_admit(struct mcp_exchange *x, struct mcp_work_about *about);
/* False: out of memory, and it is freed. */
bool mcp_work_init(struct mcp_work *k, const struct mcp_work_ops *ops,
		   const struct mcp_work_about *about);
void mcp_work_attach(struct mcp_work *k, struct mcp_exchange *x);
/* Records the call and begins it; `run_id` may be empty. */
void mcp_work_begin(struct mcp_work *k, uar_str run_id);
/* It has not begun, and will not. */
void mcp_work_fail(struct mcp_work *k, uar_err e, const struct uar_error *error);
void mcp_work_free(struct mcp_work *k);
void mcp_work_free_if_done(struct mcp_work *k);
/* A message before the answer. */
void mcp_work_say(struct mcp_work *k, uar_str message);
void mcp_work_notify(struct mcp_work *k, const char *method, struct uar_buf *params);
/* The one answer; nothing happens if there is one. */
void mcp_work_say_error(struct mcp_work *k, int64_t code, const char *text, uar_str data);
void mcp_work_say_result(struct mcp_work *k, struct uar_buf *result);
/* The client does not want the answer of its request any more. `answer`: it gets one that
 * says so. */
void mcp_work_cancel(struct mcp_session *s, uar_str id, bool answer);
/* A call of the session that the log has no answer for: it goes on. */
UAR_MUST_CHECK uar_err mcp_work_resume(struct mcp_session *s, const struct mcp_stored *r);
/* The session is over: nothing is said in it any more. */
void mcp_works_end(struct mcp_session *s);
void mcp_works_fini(struct gate_mcp *m);

/* --- mcp_run.c: a run that answers a call ----------------------------------------------- */

void mcp_run_start(struct mcp_exchange *x, const struct uar_agent *agent);
UAR_MUST_CHECK uar_err mcp_run_resume(struct mcp_session *s, const struct mcp_stored *r);

/* --- mcp_question.c: what a run asks people for ------------------------------------------- */

/* Can clients show it? Else the inbox alone has it. */
bool mcp_question_fits(const struct uar_view_action *a, struct uar_arena *scratch);
/* A member: its key, then {method, params}. */
void mcp_put_question(struct uar_jw *w, const struct uar_view_action *a, struct uar_arena *scratch);
/* An answer of the client on its way to the run. */
struct mcp_reply {
	struct uar_list node;
	uar_str action_id, decision;
	const struct uar_json *values;
};
/* Adds those of `answers` that say something; the tree stays in place as long as they. */
UAR_MUST_CHECK uar_err mcp_replies_read(const struct uar_json *answers, struct uar_arena *arena,
					struct uar_list *out);

/* --- mcp_task.c: runs as tasks ------------------------------------------------------------- */

bool mcp_has_tasks(const struct uar_json *capabilities); /* of a client; NULL is fine */
void mcp_get_task(struct mcp_exchange *x);
void mcp_update_task(struct mcp_exchange *x);
void mcp_cancel_task(struct mcp_exchange *x);

/* What a run is as a task. It belongs to mcp_task.c and is gone after `done`. */
struct mcp_task {
	struct uar_list node; /* in gate_mcp.tasks */
	struct gate_mcp *m;
	struct uar_arena arena, scratch;
	struct uar_owner owner;
	struct uar_run_list q;
	struct uar_stream *follow;
	struct uar_view view;
	bool elicits; /* in: what the run asks is shown */
	void (*done)(struct mcp_task *t);
	void *ctx;
	uar_err err; /* out; UAR_OK: mcp_put_task writes it */
	bool brief;  /* its result is left out */
};
struct mcp_task_asked {
	struct gate_mcp *m;
	const struct uar_owner *owner;
	uar_str run_id; /* copied, as is the owner */
	bool elicits, brief;
	void (*done)(struct mcp_task *t);
	void *ctx;
};
/* Calls back in a later turn of the loop. */
UAR_MUST_CHECK uar_err mcp_task_look(const struct mcp_task_asked *asked, struct mcp_task **out);
void mcp_put_task(struct uar_jw *w, const struct mcp_task *t); /* members */
void mcp_tasks_fini(struct gate_mcp *m);

/* --- mcp_task_watch.c: tasks that a held request names ------------------------------------- */

struct mcp_task_watch {
	struct gate_mcp *m;
	struct gate_stream *base;      /* where changes are said */
	const struct uar_owner *owner; /* stays in place, as does `id` */
	uar_str id;		       /* JSON text: of the request */
	struct uar_list tasks;
	size_t count;
	bool elicits; /* what tasks ask is shown to it */
};
void mcp_task_watch_init(struct mcp_task_watch *w, struct gate_mcp *m, struct gate_stream *base);
void mcp_task_watch_fini(struct mcp_task_watch *w);
/* Takes taskIds of the filter, from clients that have tasks. */
UAR_MUST_CHECK uar_err mcp_task_watch_read(struct mcp_task_watch *w, const struct mcp_exchange *x,
					   const struct uar_json *filter);
void mcp_task_watch_put(const struct mcp_task_watch *w, struct uar_jw *out); /* those it has */
void mcp_task_watch_mark(struct mcp_task_watch *w, const struct uar_owner *owner, uar_str run_id);
void mcp_task_watch_flush(struct mcp_task_watch *w); /* says what is marked */

/* --- mcp_ask.c: what a call needs from its client ---------------------------------------- */

unsigned mcp_can(const struct uar_json *capabilities); /* NULL: nothing */
/* Which capability a question of a server needs; 0: there is no such question. */
unsigned mcp_can_for(uar_str method);
/* Asks the client of a session: `questions` has a {method, params} by key. */
UAR_MUST_CHECK uar_err mcp_ask(struct mcp_work *k, const struct uar_json *questions);
void mcp_take_response(struct mcp_session *s, const struct uar_mcp_message *m);
/* A state that only this server writes, for this owner and this request. */
UAR_MUST_CHECK uar_err mcp_state_write(const struct mcp_work *k, uar_str request, uar_str state,
				       struct uar_buf *out);
/* The same for the id of a task of another server; it does not grow old. */
UAR_MUST_CHECK uar_err mcp_task_id_write(const struct mcp_work *k, uar_str task,
					 struct uar_buf *out);
UAR_MUST_CHECK uar_err mcp_task_id_read(const struct call *c, uar_str id, uar_str *out);
/* UAR_EINVALID: it is none, of another request, or too old. */
UAR_MUST_CHECK uar_err mcp_state_read(const struct mcp_exchange *x, uar_str request, uar_str *out);

/* --- mcp_offer.c: what servers of others offer ------------------------------------------- */

/* The name of a level of the log, as it stays in place; NULL: there is no such level. */
const char *mcp_level(uar_str name);
/* Each writes what the relays list. */
void mcp_put_offered(struct uar_jw *w, const struct mcp_exchange *x, enum uar_mcp_list list);
/* False: no relay has what the request names. */
bool mcp_offer_request(struct mcp_exchange *x);
bool mcp_is_offered(const struct uar_gate *g, uar_str uri); /* a resource */

/* --- mcp_headers.c ------------------------------------------------------------------------- */

/* False: a header contradicts an argument that the schema marks, and the exchange is answered. */
bool mcp_check_params(struct mcp_exchange *x, const struct uar_json *schema);

/* --- mcp_watch.c: what changes ------------------------------------------------------------ */

void mcp_watch_init(struct gate_mcp *m);
void mcp_watch_fini(struct gate_mcp *m);
void mcp_flush_soon(struct gate_mcp *m); /* what changed is said */
void mcp_listen(struct mcp_exchange *x);
void mcp_subscribe(struct mcp_exchange *x);
void mcp_unsubscribe(struct mcp_exchange *x);
void mcp_session_forget_subscriptions(struct mcp_session *s);
/* What its records say. */
UAR_MUST_CHECK uar_err mcp_session_subscribe(struct mcp_session *s, uar_str uri);
void mcp_session_unsubscribe(struct mcp_session *s, uar_str uri);
/* The session was not in memory: what changed meanwhile is not known. */
void mcp_session_catch_up(struct mcp_session *s);

#endif
