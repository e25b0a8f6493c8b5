/* a2a_int.h - cards, tasks and requests of A2A; for peer/ alone. Pure. */
#ifndef UAR_PEER_A2A_INT_H
#define UAR_PEER_A2A_INT_H

#include "event/remote.h"
#include "json/jw.h"
#include "peer/limits.h"

/* --- a2a_card.c ------------------------------------------------------------------------------ */

/* A message with an id that the agent knows makes no second task. */
#define UAR_A2A_IDEMPOTENT "urn:uar:a2a:idempotent-send"

struct a2a_card {
	uar_str url, tenant; /* tenant: or empty */
	bool rest, old;	     /* HTTP+JSON, else JSON-RPC; version 0.3, else 1.0 */
	bool streams, idempotent;
};
/* Strings are the arena's. error: why the agent cannot be called. */
UAR_MUST_CHECK uar_err a2a_card_read(uar_str text, uar_str card_url, const struct uar_json *hosts,
				     struct uar_arena *arena, struct a2a_card *out,
				     struct uar_error *error);

/* An address of a folder is that of the card in it. NULL: there is no memory. */
uar_str a2a_card_address(uar_str url, struct uar_arena *arena);

/* --- a2a_cards.c: cards that were read, so that they need not be read again ----------------- */

struct a2a_kept_card {
	const char *url, *etag, *text; /* url NULL: free; etag may be empty */
	int64_t checked_us;
};
struct a2a_cards {
	struct a2a_kept_card at[UAR_LIMIT_PEER_CARDS];
};
struct a2a_kept_card *a2a_cards_find(struct a2a_cards *c, uar_str url); /* NULL: it is not there */
/* Copies it. What cannot be kept is read again. */
void a2a_cards_keep(struct a2a_cards *c, const struct a2a_kept_card *card);
void a2a_cards_forget(struct a2a_cards *c, uar_str url);
void a2a_cards_fini(struct a2a_cards *c);

/* --- a2a_fold.c ------------------------------------------------------------------------------ */

struct a2a_artifact {
	uar_str id, name;
	struct uar_buf text;
};

/* A task as its events tell it. */
struct a2a_task {
	struct uar_arena arena;	 /* of what it delivers */
	struct uar_arena status; /* of its status, which comes anew */
	uar_str task_id, context_id;
	char ids[2][256];
	enum uar_remote_state state;
	uar_str native, said;
	const struct uar_json *data;
	struct a2a_artifact artifacts[UAR_LIMIT_PEER_ARTIFACTS];
	size_t artifact_count;
	struct uar_remote_part parts[UAR_LIMIT_PEER_PARTS + UAR_LIMIT_PEER_ARTIFACTS];
	size_t part_count;
	struct uar_buf text; /* of all artifacts, in order */
	unsigned text_made;
	unsigned joins; /* of text, for artifacts that are not the last */
	bool is_behind; /* text: it is joined when the task is over */
	bool pieces;	/* it came as updates: the task itself is worth asking for */
	bool has_history, knows;
	bool has_strays; /* another task was spoken of */
};
void a2a_task_init(struct a2a_task *t);
void a2a_task_fini(struct a2a_task *t);
/* Its id is known, or empty. */
UAR_MUST_CHECK uar_err a2a_task_expect(struct a2a_task *t, uar_str task_id);
/* One answer or event, in either version: a task, a message, a change. UAR_EINVALID: it is none of
 * them; UAR_ETOOBIG: it delivers more than is taken. What concerns another task is left out.
 * `message_id`: is it among the history? Or empty. */
UAR_MUST_CHECK uar_err a2a_task_take(struct a2a_task *t, const struct uar_json *j,
				     uar_str message_id);
/* The same of an object that is a task. */
UAR_MUST_CHECK uar_err a2a_task_take_task(struct a2a_task *t, const struct uar_json *j,
					  uar_str message_id);
/* The view borrows from the task, until the next change. */
UAR_MUST_CHECK uar_err a2a_task_view(struct a2a_task *t, struct uar_remote_view *out);

/* --- a2a_write.c ----------------------------------------------------------------------------- */

enum a2a_op { A2A_SEND, A2A_STREAM, A2A_GET, A2A_LIST, A2A_FOLLOW, A2A_CANCEL, A2A_OP_COUNT };
struct a2a_ask {
	enum a2a_op op;
	uint64_t id; /* of the request */
	const struct uar_remote_message *message;
	uar_str task_id, page;
	int64_t since_us;
};
struct a2a_request {
	const char *method;
	struct uar_buf url, body;
};
/* Fini is needed on success only. UAR_EINVALID: this version has no such operation. */
UAR_MUST_CHECK uar_err a2a_request_write(const struct a2a_card *card, const struct a2a_ask *ask,
					 struct a2a_request *out);
void a2a_request_fini(struct a2a_request *r);
/* What an error of the protocol means, by its code or its reason. */
enum uar_remote_how a2a_error_of(const struct uar_json *error, const char **out_text,
				 struct uar_arena *arena);

/* The same of a status of HTTP, when the answer does not say it in the words of the protocol, and
 * of a call that had no answer. */
enum uar_remote_how a2a_how_of_status(int status);
enum uar_remote_how a2a_how_of_error(uar_err e);
const char *a2a_why_broken(uar_err e);

#endif
