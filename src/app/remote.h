/* remote.h - what the client verbs share: find the server, ask it, follow a run. */
#ifndef UAR_APP_REMOTE_H
#define UAR_APP_REMOTE_H

#include "app/api_client.h"
#include "app/cli.h"

/* --url or $UAR_URL, else the server that the data directory names. The token of
 * the data directory is sent to servers of this machine only. */
UAR_MUST_CHECK uar_err uar_remote_find(const struct uar_cli *cli, struct uar_api *out,
				       struct uar_error *error);

/* A record or list: the answer's text and its tree. */
struct uar_remote_answer {
	struct uar_buf text;
	struct uar_arena arena;
	const struct uar_json *root;
};
void uar_remote_answer_fini(struct uar_remote_answer *a);
/* Asks the server that uar_remote_find names; `a` needs fini also after an error. */
UAR_MUST_CHECK uar_err uar_remote_ask(const struct uar_cli *cli, const struct uar_api_request *r,
				      struct uar_remote_answer *a, struct uar_error *error);
/* Asks and prints the answer as it is with --json, else what `put` makes of it; the exit status. */
typedef void uar_remote_put_fn(struct uar_buf *out, const struct uar_json *root);
int uar_remote_show(struct uar_cli *cli, const struct uar_api_request *r, uar_remote_put_fn *put);
UAR_MUST_CHECK uar_err uar_remote_record(const struct uar_cli *cli, uar_str run_id,
					 struct uar_remote_answer *a, struct uar_error *error);
/* The run that a person means: its id, or the beginning of it when no other run of
 * theirs begins so. UAR_EINVALID: several do. What fits nothing stays as it is. */
UAR_MUST_CHECK uar_err uar_remote_run_id(const struct uar_cli *cli, const char *word,
					 char out[UAR_LIMIT_ID_BYTES + 1], struct uar_error *error);
/* "/api/runs/ID" + `rest`, escaped. */
void uar_remote_run_path(struct uar_buf *out, uar_str run_id, const char *rest);
bool uar_remote_is_terminal(uar_str status);

struct uar_remote_follow {
	uar_str run_id;
	uint64_t after;	 /* begin after this event */
	bool to_the_end; /* false: only what is there now */
	bool patient;	 /* keep trying although no connection has worked yet */
	bool progress;	 /* reports of progress as well */
	bool (*show)(void *ctx, uar_str data); /* one event's JSON; false: nobody reads any more */
	/* The server is not there: bring it back, or say why to stop trying. NULL: wait. */
	uar_err (*revive)(void *ctx, struct uar_error *error);
	void *ctx;
};
/* Shows each event once and in order; comes back through broken connections and
 * restarts of the server. Says on the error stream what it waits for. */
UAR_MUST_CHECK uar_err uar_remote_follow(struct uar_cli *cli, const struct uar_remote_follow *f,
					 struct uar_error *error);

/* verbs_stream.c: what verbs that start runs share. */
/* The words after the agent, or standard input. */
UAR_MUST_CHECK uar_err uar_remote_message(struct uar_cli *cli, struct uar_buf *out,
					  struct uar_error *error);
/* --timeout as seconds; untouched when it was not given. */
UAR_MUST_CHECK uar_err uar_remote_timeout(struct uar_cli *cli, double *out,
					  struct uar_error *error);
/* "idempotency_key": the one given, or one of our own, which makes it safe to ask again when
 * the answer was lost. */
void uar_remote_put_key(const struct uar_cli *cli, struct uar_jw *w);
/* POSTs until there is an answer; a body with a key makes that safe. */
UAR_MUST_CHECK uar_err uar_remote_create(struct uar_cli *cli, const char *path, uar_str body,
					 char run_id[UAR_LIMIT_ID_BYTES + 1],
					 struct uar_error *error);
int uar_remote_exit_status(struct uar_cli *cli, const char *run_id);

#endif
