/* a2a_wire.h - the public A2A protocol, versions 1.0 and 0.3: requests read, runs shown as tasks.
 *
 * A task is one run of UAR and has its id; a context is a thread. Both versions and both
 * bindings (JSON-RPC, HTTP+JSON) share this reader and this encoder: they differ in names,
 * in the shape of parts and in the envelope. */
#ifndef UAR_PROTO_A2A_WIRE_H
#define UAR_PROTO_A2A_WIRE_H

#include "event/client.h"
#include "event/record.h"
#include "proto/dialect.h"

enum uar_a2a_op {
	UAR_A2A_SEND,
	UAR_A2A_STREAM,
	UAR_A2A_GET,
	UAR_A2A_LIST,
	UAR_A2A_CANCEL,
	UAR_A2A_SUBSCRIBE,
	UAR_A2A_PUSH_SET, /* of configurations of push notifications */
	UAR_A2A_PUSH_GET,
	UAR_A2A_PUSH_LIST,
	UAR_A2A_PUSH_DELETE,
	UAR_A2A_CARD,
	UAR_A2A_OP_COUNT, /* there is none of that name */
};
/* The operation of a JSON-RPC method; *out_old: it is named as 0.3 does. */
enum uar_a2a_op uar_a2a_op_of(uar_str method, bool *out_old);

/* "A2A-Version" as a request has it, or empty. UAR_ENOTIMPL: it is not spoken here. */
UAR_MUST_CHECK uar_err uar_a2a_version(uar_str header, bool *out_old);

/* Where notifications of a task go, as a client says it. Its strings can be headers. */
struct uar_a2a_push {
	uar_str id; /* empty: none was given */
	uar_str url, token, scheme, credentials;
	bool old; /* it is told as 0.3 does */
};
bool uar_a2a_is_push_id(uar_str id);
/* A TaskPushNotificationConfig of 1.0, a PushNotificationConfig of 0.3. `where`: its pointer. */
UAR_MUST_CHECK uar_err uar_a2a_read_push(const struct uar_json *j, bool old, const char *where,
					 struct uar_a2a_push *out, struct uar_error *error);
/* As the version shows it: of 0.3 with its task around it. */
void uar_a2a_put_push(struct uar_jw *w, const char *key, uar_str task_id, bool old,
		      const struct uar_a2a_push *push);
/* What is kept of it, as JSON, and back. */
void uar_a2a_keep_push(struct uar_jw *w, const struct uar_a2a_push *push);
void uar_a2a_kept_push(const struct uar_json *j, struct uar_a2a_push *out);

/* What SendMessage asks for. Strings are of the tree or of the arena. */
struct uar_a2a_input {
	uar_str message_id, context_id, task_id; /* the last two may be empty */
	uar_str text;				 /* text parts, a line end between two */
	const struct uar_json *data;		 /* of the last data part; NULL: none */
	uar_str client;				 /* JSON for the input UAR_CLIENT_INPUT, or empty */
	bool blocking;				 /* answered when the task rests or is over */
	bool notify;				 /* notifications go where `push` says */
	struct uar_a2a_push push;
	int64_t history_length; /* -1: not said */
};
UAR_MUST_CHECK uar_err uar_a2a_read_send(const struct uar_json *params, struct uar_arena *arena,
					 bool old, struct uar_a2a_input *out,
					 struct uar_error *error);
/* A member by its name in camelCase or in snake_case; NULL: there is none. */
const struct uar_json *uar_a2a_member(const struct uar_json *j, const char *camel,
				      const char *snake);
/* A member that may be absent or null, which leaves *out as it is. EINVALID: it is of another
 * kind; `name` is its name in camelCase, `where` the pointer of the object. */
UAR_MUST_CHECK uar_err uar_a2a_text(const struct uar_json *member, const char *where,
				    const char *name, uar_str *out, struct uar_error *error);
UAR_MUST_CHECK uar_err uar_a2a_bool(const struct uar_json *member, const char *where,
				    const char *name, bool *out, struct uar_error *error);
UAR_MUST_CHECK uar_err uar_a2a_int(const struct uar_json *member, const char *where,
				   const char *name, int64_t *out, struct uar_error *error);

/* A run as a task: `answer` writes the task, encode a stream of it. Of the options it takes
 * old_peer, rpc_id, history_length and wrapped. */
extern const struct uar_dialect uar_a2a;

/* The states of the protocol and the runs that are in each, by the words of their rows. */
enum uar_a2a_state {
	UAR_A2A_UNSPECIFIED, /* no state, which no task has */
	UAR_A2A_SUBMITTED,
	UAR_A2A_WORKING,
	UAR_A2A_INPUT_REQUIRED,
	UAR_A2A_AUTH_REQUIRED,
	UAR_A2A_COMPLETED,
	UAR_A2A_FAILED,
	UAR_A2A_CANCELED,
	UAR_A2A_REJECTED,
	UAR_A2A_STATE_COUNT, /* there is none of that name */
};
struct uar_a2a_state_info {
	const char *name, *old;			  /* in 1.0, in 0.3 */
	const char *const *status, *const *waits; /* as struct uar_run_find takes them */
};
extern const struct uar_a2a_state_info uar_a2a_state_info[UAR_A2A_STATE_COUNT];
enum uar_a2a_state uar_a2a_state_parse(uar_str name); /* of either version */
enum uar_a2a_state uar_a2a_state_of(uar_str status, uar_str waits);

/* The reason of an answer that a message has brought: this and its id. */
#define UAR_A2A_ANSWERED "message "

/* What the protocol calls its errors. */
enum uar_a2a_error {
	UAR_A2A_TASK_NOT_FOUND,
	UAR_A2A_TASK_NOT_CANCELABLE,
	UAR_A2A_PUSH_NOT_SUPPORTED,
	UAR_A2A_UNSUPPORTED,
	UAR_A2A_CONTENT_TYPE,
	UAR_A2A_VERSION,
	UAR_A2A_PARSE,
	UAR_A2A_REQUEST,
	UAR_A2A_METHOD,
	UAR_A2A_PARAMS,
	UAR_A2A_FORBIDDEN,
	UAR_A2A_BUSY,
	UAR_A2A_INTERNAL,
};
/* The error of the protocol that an error of UAR is. */
enum uar_a2a_error uar_a2a_error_of(uar_err e);
int uar_a2a_error_http(enum uar_a2a_error which);
struct uar_a2a_problem {
	enum uar_a2a_error which;
	uar_str text, where; /* `where`: pointer of the member, or empty */
	uar_str rpc_id;	     /* JSON text; empty: the HTTP+JSON binding */
	bool rpc;
};
void uar_a2a_problem(struct uar_buf *out, const struct uar_a2a_problem *p);
/* The body of a problem that is found before the request is read: of the HTTP+JSON binding. */
void uar_a2a_early_problem(struct uar_buf *out, int status, const char *code,
			   const struct uar_error *error);
/* The same where JSON-RPC is spoken; who may not come in gets the status and the form above. */
void uar_a2a_early_rpc_problem(struct uar_buf *out, int status, const char *code,
			       const struct uar_error *error);

/* What an agent's card says. */
struct uar_a2a_card {
	uar_str id, name, description, version;
	uar_str url;		     /* of both bindings, without a slash at its end */
	const struct uar_json *tags; /* a list of texts, or NULL */
	bool old;		     /* with the members of 0.3, too */
};
void uar_a2a_put_card(struct uar_jw *w, const char *key, const struct uar_a2a_card *card);

#endif
