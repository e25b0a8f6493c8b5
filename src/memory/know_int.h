/* know_int.h - what the files of the service share. */
#ifndef UAR_MEMORY_KNOW_INT_H
#define UAR_MEMORY_KNOW_INT_H

#include "base/alloc.h"
#include "base/buf.h"
#include "loop/child.h"
#include "loop/loop.h"
#include "memory/know.h"
#include "model/models.h"

struct index_job;
struct know_indexer {
	bool busy, again;	/* at work; told to look once more */
	int64_t after;		/* the row before the next one */
	struct index_job *held; /* waits for a program or a provider */
	struct uar_child *child;
	struct uar_buf text; /* what the program says */
	struct uar_timer timer;
	bool late;
	bool failed, slow, retry; /* one has no vectors; the timer is for it; it is tried again */
	int64_t retry_us;	  /* how long the last such wait was */
	/* The embedder that does not answer; empty: none. Until it is asked again, after a pause,
	 * documents that need it get their words alone. */
	char silent[UAR_LIMIT_KB_NAME + 1];
	size_t done, total;
	char document[UAR_LIMIT_KB_NAME + 1];
	char *owner; /* of that document; NULL: none is known */
};

struct uar_knowledge {
	struct uar_kb *kb;
	struct uar_knowledge_options o;
	struct uar_sched *sched;
	size_t jobs;  /* not freed */
	bool loading; /* vectors are being read into memory */
	bool dead;    /* destroyed: the last job frees the rest */
	bool broken;  /* as uar_knowledge_is_broken */
	char *dir;
	struct know_indexer index;
	struct know_watcher *watcher; /* know_watch.c; NULL: no folder is watched */
};

/* know_index.c */
void know_index_stop(struct uar_knowledge *k);
/* The provider of "PROVIDER/MODEL" and its name of the model. */
UAR_MUST_CHECK uar_err know_embedder(const struct uar_knowledge *k, uar_str name,
				     struct uar_model_target *out, struct uar_error *error);
/* know_policy.c */
UAR_MUST_CHECK uar_err know_apply_policy(struct uar_kb *kb, struct uar_know_search *s);
/* know_watch.c */
UAR_MUST_CHECK uar_err know_watch_start(struct uar_knowledge *k);
void know_watch_stop(struct uar_knowledge *k);
void know_watch_free(struct know_watcher *w); /* NULL is fine */

#endif
