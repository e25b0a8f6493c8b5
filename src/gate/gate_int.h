/* gate_int.h - what the files of gate/ share. */
#ifndef UAR_GATE_GATE_INT_H
#define UAR_GATE_GATE_INT_H

#include "agent/definition.h"
#include "base/address.h"
#include "base/alloc.h"
#include "base/sha256.h"
#include "event/client.h"
#include "gate/credentials.h"
#include "gate/gate.h"
#include "json/jw.h"
#include "proto/dialect.h"

struct a2a_call;
struct call;
struct channel;
typedef void route_fn(struct call *c);

enum { ROUTE_PARAMS = 3, LINK_CODE = 43 };
enum gate_body { GATE_BODY_NONE, GATE_BODY_MAYBE, GATE_BODY_JSON, GATE_BODY_TEXT, GATE_BODY_BYTES };
struct route {
	enum uar_http_method method;
	const char *path;
	route_fn *fn;
	bool open;
	enum gate_body body;
	unsigned scope;	   /* that its callers need; 0: any will do */
	const char *query; /* the names it takes, a space between two */
	const char *grant; /* a token for what its path names will do: "run"; NULL: none */
};

/* An open stream, embedded in its owner: what heartbeats and the end need. */
struct gate_stream {
	struct uar_list node; /* in g->streams, once open */
	struct uar_gate *g;
	struct uar_http_stream *http;	     /* NULL: not open */
	void (*drop)(struct gate_stream *s); /* the answer has ended: free the owner */
	void (*leave)(
		struct gate_stream *s); /* it ends before its run does; NULL: nothing is said */
	/* The reader has taken nothing for a whole heartbeat and its buffer is full: ends the
	 * stream with a frame that says so; NULL: it is cut when it has stalled too long. */
	void (*lag)(struct gate_stream *s);
	struct gate_tenant *counted; /* among whose requests it is; NULL: nobody's */
	const struct gate_key *key;  /* with which it was opened; NULL: it was another credential */
	int64_t until_us;	     /* that credential ends then; 0: never */
	bool full, taken;	     /* at the last ping; since then something was taken */
	/* What it is, when it is no text/event-stream: nothing but its own frames is sent then. */
	const char *type;
	char requested[64]; /* a cursor that is of another incarnation; empty: there is none */
};

/* How events of a run or a session are shown. */
enum gate_dialect { GATE_NORMALIZED, GATE_ENVELOPE, GATE_EXPORTS, GATE_CHUNKS };

/* The frame that was made last: readers of one stream share it. */
struct frame_cache {
	struct uar_frame *frame;
	char first[UAR_UUID_TEXT + 1]; /* event_id of the first event in it */
	size_t n;
	enum gate_dialect dialect;
};

/* Where an item was found lately. */
struct download_hint {
	char run_id[UAR_LIMIT_ID_BYTES + 1];
	char item_id[UAR_SHA256_TEXT + 1]; /* or a hash, which other runs may refer to, too */
	uint64_t before;		   /* run_sequence of the event before the item's */
};

/* Reports about artifacts of some runs, since when. */
struct gate_report_window {
	int64_t since_us;
	unsigned count;
};

/* Bytes on their way out, with hints for those who read one in many ranges. */
struct downloads {
	struct uar_list list;
	struct gate_report_window reports[64]; /* artifact_errors.c */
	struct download_hint hint[16];
	size_t next;
	struct gate_page *page; /* page.c: files that were unpacked; NULL: none */
};

struct gate_routes {
	struct uar_arena arena;
	struct segment *root; /* routes.c */
};

/* What the server is bound to. */
struct gate_bound {
	bool is_ip;	      /* no: a Unix socket, or not known yet */
	bool any;	      /* every address of the machine */
	unsigned char ip[16]; /* as in struct uar_address */
};

struct uar_gate {
	struct uar_gate_options o;
	struct uar_http *http;
	struct gate_bound bound;
	struct gate_routes routes;
	struct uar_list calls;		/* of struct call */
	struct uar_list streams;	/* of struct gate_stream, the longest unpinged first */
	size_t stream_count, pings_due; /* the latter for gate_streams_tick */
	struct uar_timer tick;
	struct uar_frame *ping;
	struct frame_cache cache;
	struct uar_buf buf;	  /* scratch of encoders */
	struct uar_arena scratch; /* likewise */
	struct channel *runs, *exports;
	struct numbers *numbers;    /* numbers.c */
	struct downloads downloads; /* content.c */
	size_t uploads;		    /* under way */
	struct gate_mcp *mcp;	    /* mcp_session.c */
	struct gate_log *log;	    /* admin.c: readers of the log; NULL: there were none */
	struct uar_list fetches;    /* a2a.c: long messages on their way from the disk */
	struct uar_watch watch;
	struct {
		char code[LINK_CODE + 1]; /* empty: used */
		int64_t until_us;
	} link;
	struct {
		struct gate_book *book; /* credentials.c */
		int64_t started_us;
		bool started; /* keys and definitions were read once */
	} own;
	bool draining;
};

/* One request on its way to its answer. */
struct call {
	struct uar_list node; /* in g->calls */
	/* Who is asking, as the credential says; of an open route: nobody, with no scope. */
	struct uar_owner owner; /* every look-up is one of this owner; strings outlive the call */
	unsigned scopes;	/* of enum gate_scope */
	struct gate_user *user; /* NULL: nobody, or the holder of the server's token */
	struct gate_tenant *counted; /* among whose requests it is; NULL: nobody's */
	struct gate_key *key;	     /* that was shown, or NULL */
	int64_t until_us;	     /* the credential ends then; 0: never */
	struct uar_gate *g;
	struct uar_http_request *r; /* NULL: the peer went away */
	const struct route *route;
	uar_str params[ROUTE_PARAMS]; /* percent-decoded */
	const struct uar_json *body;  /* JSON routes: parsed */
	struct uar_arena arena;	      /* lives until the call is freed */
	void *op;		      /* the handler's */
	struct a2a_call *a2a;	      /* A2A: how a problem is told; NULL: as usual */
	/* What the handler may be told while its operation is under way: */
	void (*gone)(struct call *c);  /* the peer left: frees c; NULL: freed when op ends */
	void (*hurry)(struct call *c); /* the server goes: answer now; NULL: it will soon */
	void (*drop)(struct call *c);  /* op will never end: frees what it owns besides c */
};
void gate_call_free(struct call *c);

struct uar_agent;
/* agents.c: members of an object. */
void gate_put_workflow(struct uar_jw *w, const struct uar_agent *a);
/* workflows.c: likewise. */
void gate_put_workflow_facts(struct uar_jw *w, const struct uar_agent *a);

/* Each answers and frees the call. */
void gate_answer(struct call *c, int status, struct uar_buf *json);
/* With what the writer has made; the buffer is freed. */
void gate_answer_json(struct call *c, int status, struct uar_buf *json, struct uar_jw *w);
void gate_answer_headers(struct call *c, int status, struct uar_buf *json,
			 const struct uar_http_header *headers, size_t n);
/* With what a reader has made, which is freed; or why it could not. */
void gate_answer_read(struct call *c, uar_err e, const struct uar_error *error,
		      struct uar_buf *json);
void gate_answer_type(struct call *c, int status, const char *type, uar_str body);
void gate_problem(struct call *c, uar_err e, const struct uar_error *error);
/* The same with one more member, JSON text. */
void gate_problem_more(struct call *c, uar_err e, const struct uar_error *error, const char *key,
		       uar_str json);

/* routes.c */
uar_err gate_routes_init(struct gate_routes *r);
void gate_routes_fini(struct gate_routes *r);
const struct route *gate_route(const struct gate_routes *r, enum uar_http_method method,
			       uar_str path, uar_str *params, bool *out_path_known);
/* The methods of a path, or of all paths for "*": "GET, HEAD, OPTIONS". */
void gate_route_allow(const struct gate_routes *r, uar_str path, struct uar_buf *out);

/* access.c */
/* From "127.0.0.1:80", "[::]:80", "unix:/path". */
void gate_bound_read(struct gate_bound *out, uar_str address);
uar_err gate_check_host(const struct uar_gate *g, const struct uar_http_request *r,
			struct uar_error *error);
/* What a browser shows of that refusal. */
void gate_host_page(struct uar_buf *out, int status, const char *code,
		    const struct uar_error *error);
/* Is it an origin of the settings, besides the page's own? */
bool gate_allows_origin(const struct uar_gate *g, uar_str origin);
uar_err gate_check_origin(const struct uar_gate *g, const struct uar_http_request *r,
			  struct uar_error *error);
/* A token that admits to one run or upload for a while: "EXPIRES.MAC", or "EXPIRES.WHO.MAC"
 * where it is not the server's own owner who gave it. */
enum {
	GRANT_WHO = 2 * (3 * UAR_LIMIT_ID_BYTES + 3 + GATE_KEY_ID),
	GRANT = GRANT_WHO + 96,
	GRANT_SECONDS = 3600
};
bool gate_grant(const struct call *c, const char *what, uar_str id, int64_t expires,
		char out[GRANT]);
/* Does the request show the token of what it names, as ?WHAT_token? Then the call is of whoever
 * gave it. */
bool gate_check_grant(struct call *c, const struct uar_http_request *r, const char *what,
		      uar_str id);
uar_err gate_check_token(const struct uar_gate *g, const struct uar_http_request *r,
			 struct uar_error *error);
/* UAR_EFORBIDDEN: the credential of the call is not for that. */
UAR_MUST_CHECK uar_err gate_check_scope(const struct call *c, unsigned scope,
					struct uar_error *error);
/* uar_runtime_answer() for a credential that may answer; another gets EFORBIDDEN. */
UAR_MUST_CHECK uar_err gate_give_answer(const struct call *c, struct uar_run_answer_op *op);
/* The caller is the holder of the token. */
void gate_identify_own(struct call *c);
/* Owner and scopes of the call, whose route and params are known, from the credential of r. */
uar_err gate_identify(struct call *c, const struct uar_http_request *r, struct uar_error *error);

/* query.c */
/* Whether the route takes what the query says: known names, once each, readable. */
uar_err gate_check_query(const struct route *route, const struct uar_http_request *r,
			 struct uar_error *error);
/* What a bad cursor came from: "?after", "?before", "Last-Event-ID", ... */
const char *gate_cursor_source(const struct uar_http_request *r);
uar_err gate_query_u64(struct call *c, const char *name, uint64_t fallback, uint64_t *out,
		       struct uar_error *error);
uar_err gate_query_str(struct call *c, const char *name, uar_str *out);
/* "waiting" is no status of a record but what lists and channels take as one. */
#define GATE_WAITING "waiting"
/* run_find.c: how a list of runs is sorted, bounded, counted and searched. Strings go to the
 * arena of the call. */
UAR_MUST_CHECK uar_err gate_decode_find(struct call *c, struct uar_run_find *out,
					struct uar_error *error);
uar_err gate_check_status(uar_str status, struct uar_error *error); /* empty is fine */
uar_err gate_query_flag(struct call *c, const char *name, bool *out, struct uar_error *error);
/* The number of the last event seen; 0 when none is named. UAR_ERESYNC: it is of another
 * incarnation, and *out is 0. */
uar_err gate_cursor(struct call *c, uint64_t *out, struct uar_error *error);
/* The cursor of the request as it stands there. */
void gate_cursor_text(struct call *c, char *out, size_t room);
/* The same of a file, whose lines have numbers alone. */
uar_err gate_line_cursor(struct call *c, uint64_t *out, struct uar_error *error);

/* runs.c: what creators of runs share */
uar_err gate_text_of(struct call *c, const struct uar_json *j, uar_str *out);
/* The text for an agent: a string, which all but fixtures need. `member` of the
 * body holds the inputs. */
uar_err gate_agent_message(const struct call *c, uar_str agent_id, const struct uar_json *inputs,
			   const char *member, uar_str *out, struct uar_error *error);
/* All but the message; none leave *out empty. */
uar_err gate_other_inputs(struct call *c, const struct uar_json *inputs, uar_str *out);
/* What a request asks for: what two with the same key must have in common. */
struct gate_meaning {
	uar_str plugin_id, entry_id, conversation_id;	 /* the last may be empty */
	const struct uar_json *args, *context, *options; /* or NULL */
};
uar_err gate_fingerprint(struct call *c, const struct gate_meaning *m, uar_str *out);
int64_t gate_timeout_us(const struct uar_json *j);
/* permissions.c */
struct uar_control;
UAR_MUST_CHECK uar_err gate_evaluate_permission(struct call *c, const struct uar_control *in,
						struct uar_error *error);
UAR_MUST_CHECK uar_err gate_check_mode(const struct call *c, uar_str mode, struct uar_error *error);
uar_err gate_take_key(struct call *c, uar_str *key, struct uar_error *error);
/* Answers with the run's record. */
void gate_answer_run(struct call *c, uar_str run_id, int status);

/* channels.c */
uar_err gate_channels_init(struct uar_gate *g);
void gate_channels_fini(struct uar_gate *g);

/* numbers.c */
struct numbers *gate_numbers_create(void);
void gate_numbers_destroy(struct numbers *n); /* NULL is fine */
void gate_numbers_count(struct numbers *n, const struct uar_commit *c);
struct health;
const struct health *gate_numbers_health(const struct numbers *n); /* gate/health.h */
void gate_numbers_export(struct numbers *n, int64_t us); /* how long one took to be read */
void gate_numbers_write(struct numbers *n, struct uar_runtime *rt, struct uar_buf *out);

/* uploads.c */
void gate_upload_piece(struct call *c, bool last);

/* channel_stream.c: answers with the stream of a channel: a snapshot, then events. */
void gate_stream_channel(struct call *c, uar_str channel_id);

/* a2a_public.c: answers with the problem as its binding says it. */
void gate_a2a_refuse(struct call *c, uar_err e, const struct uar_error *error);
/* a2a.c */
void gate_a2a_fini(struct uar_gate *g); /* the store is gone */

/* admin.c */
void gate_page_destroy(struct gate_page *p); /* NULL is fine */
void gate_log_destroy(struct gate_log *l);   /* its streams are gone; NULL is fine */

/* mcp_session.c */
struct gate_mcp *gate_mcp_create(struct uar_gate *g); /* NULL: out of memory */
void gate_mcp_destroy(struct gate_mcp *m);	      /* the store is gone; NULL is fine */
void gate_mcp_tick(struct gate_mcp *m);		      /* mcp_watch.c */

/* content.c */
void gate_downloads_end(struct uar_gate *g);  /* cuts them: readers resume with a range */
void gate_downloads_fini(struct uar_gate *g); /* the HTTP server is gone */

/* streams.c */
/* Answers the call with an open stream; on an error it is still there, but for
 * UAR_ESKIP: HEAD was answered, no stream follows. */
uar_err gate_stream_open(struct gate_stream *s, struct call *c,
			 const struct uar_http_stream_events *events);
/* Ends the answer, or cuts it where what came is not all of it; on_closed does not follow. */
void gate_stream_finish(struct gate_stream *s, uar_err why, const struct uar_error *error);
/* Tells the reader that its cursor is of another incarnation and that all events follow. */
UAR_MUST_CHECK uar_err gate_stream_resync(struct gate_stream *s);
uint64_t gate_incarnation(const struct uar_gate *g);
void gate_stream_forget(struct gate_stream *s); /* out of the list; the HTTP part is gone */
void gate_stream_events(struct call *c, uar_str run_id, enum gate_dialect dialect);
/* Items of a run after this event of it. */
void gate_stream_exports(struct call *c, uar_str run_id, uint64_t after);
/* item_cursor.c: the same after the item of this id; both strings stay in place. */
void gate_stream_after_item(struct call *c, uar_str run_id, uar_str item_id);
void gate_streams_tick(struct uar_timer *t);
void gate_streams_end(struct uar_gate *g);
void gate_streams_cut(struct uar_gate *g, const struct gate_key *key); /* those it has opened */
void gate_cache_clear(struct uar_gate *g);
/* agents.c: definitions that cannot be used as they are. */
size_t gate_broken_agents(const struct uar_gate *g);
/* actions.c: the command respond_action. */
/* permission: it answers a permission alone */
void gate_respond_action(struct call *c, bool permission);

/* protocols.c */
/* UAR_EFORBIDDEN: the definition of the agent switches the dialect off. */
UAR_MUST_CHECK uar_err gate_check_protocol(const struct call *c, uar_str agent_id,
					   enum uar_protocol protocol, struct uar_error *error);
typedef void gate_allowed_fn(struct call *c, void *ctx);
/* Goes on with `then` if the agent of the run that the path names allows the dialect; else
 * answers. */
void gate_with_protocol(struct call *c, enum uar_protocol protocol, gate_allowed_fn *then,
			void *ctx);

/* view_stream.c */
struct gate_view {
	const struct uar_dialect *dialect;
	struct uar_dialect_options options; /* strings stay in place until the stream is open */
	struct uar_cursor cursor;	    /* 0.0: from the first event on */
	uar_str after_action;		    /* not empty: from the answer to that action on */
	bool one_segment;		    /* ends where a request of the dialect ends */
	bool stored;			    /* an answer waits for nothing that is not stored yet */
	bool proto;			    /* AG-UI: in its protobuf binding */
	bool resync; /* the cursor is of another incarnation: send `resync`, then all of the run */
	int64_t wait_us; /* an answer comes after so long at the latest; 0: when it is complete */
};
/* The cursor of a request for such a stream; the header counts before the query. *out has the
 * default. UAR_ERESYNC: the cursor is of another incarnation than that. */
uar_err gate_view_cursor(struct call *c, uint64_t incarnation, struct uar_cursor *out,
			 struct uar_error *error);
/* Reads the cursor into view->cursor. One of another incarnation sets view->resync and the start of
 * the run; the binary binding cannot send `resync` and gets UAR_ERESYNC. */
uar_err gate_view_take_cursor(struct call *c, struct gate_view *view, struct uar_error *error);
/* Answers with the run in a dialect that remembers what it has shown. */
void gate_stream_view(struct call *c, uar_str run_id, const struct gate_view *view);
/* streams.c: the run as chunks. Uses view->cursor and view->resync alone. */
void gate_stream_chunks(struct call *c, uar_str run_id, const struct gate_view *view);

/* client_results.c: results of the client's tools, then the run from there on. */
struct gate_results {
	const struct uar_client_result *first; /* at least one */
	struct gate_view view;		       /* its strings are the call's */
	bool stream;			       /* else the run is answered with as one value */
	bool all;			       /* none may be missing */
	bool create_after;		       /* another run follows instead of the old one */
	bool ag_ui;			       /* the agent of the run has to allow it */
	const char *where;		       /* the member of the body that holds them */
	/* They are of no run of the caller: it is another one that is asked for. */
	void (*create)(struct call *c, void *ctx);
	void *ctx;
};
bool gate_has_results(const struct uar_client_result *first); /* of calls that may be ours */
void gate_bring_results(struct call *c, const struct gate_results *o);

/* agui_resume.c: answers interrupts, then shows the run, or creates the one that a new message of
 * the user asks for. */
struct gate_resume {
	const struct uar_json *entries; /* at least one */
	uar_str thread_id;		/* that the client names, or empty */
	uar_str message;		/* the last one of the user, or empty */
	struct gate_view view;		/* its strings are the call's */
	void (*create)(struct call *c, void *ctx);
	void *ctx;
};
void gate_agui_resume(struct call *c, const struct gate_resume *o);

/* agui.c: does the client name the protobuf binding among what it accepts? */
bool gate_accepts_proto(const struct call *c);

/* agui_capabilities.c: what the agent can do, as a member of an object. */
void gate_put_capabilities(struct uar_jw *w, const char *key, const struct call *c,
			   const struct uar_agent *a);

/* view_answer.c: answers with the run as one JSON value, when the dialect's request is complete
 * or, with `until`, as the run was at that event. The strings of the options are the call's. */
void gate_answer_view(struct call *c, uar_str run_id, const struct gate_view *view, uint64_t until);

/* runs.c: a run as POST /api/runs describes it, but for `done` and `ctx`. */
uar_err gate_decode_create(struct call *c, struct uar_run_create *op, struct uar_error *error);
/* The member "waits_behind", if the run is queued behind one that waits for an answer: who starts
 * it would else wait for what only a person ends. */
void gate_put_held_up(struct uar_jw *w, const struct call *c, const char *run_id);

#define R(METHOD, PATH, HANDLER, ACCESS, BODY, QUERY, DOC) route_fn gate_##HANDLER;
#include "gate/route.def"
#undef R

#endif
