/* know.h - the knowledge base beside the loop: what blocks is done by workers, documents that
 * wait are indexed one after the other.
 *
 * A call is a job: made, filled, begun; its `run` is on a worker, its `done` on the loop, never
 * inside begin, and not at all after cancel. `done` frees the job (uar_know_free) when it needs its
 * arena no more; one that is cancelled is freed by itself. */
#ifndef UAR_MEMORY_KNOW_H
#define UAR_MEMORY_KNOW_H

#include "base/buf.h"
#include "base/log.h"
#include "base/sched.h"
#include "memory/kb.h"

struct uar_client;
struct uar_loop;
struct uar_models;
struct uar_knowledge;

struct uar_knowledge_options {
	struct uar_loop *loop;
	const char *dir;		 /* made if it is not there */
	const char *embedding;		 /* "PROVIDER/MODEL" of new collections; empty: built in */
	const struct uar_models *models; /* outlive it */
	struct uar_client *client;	 /* for pages that are fetched; NULL: none are */
	const struct uar_log *log;
	const char *watch_dir;	/* whose files are documents; empty: none */
	struct uar_owner owner; /* of those; strings outlive it */
	char *const *env;	/* of programs that read documents */
};
UAR_MUST_CHECK uar_err uar_knowledge_create(const struct uar_knowledge_options *o,
					    struct uar_knowledge **out, struct uar_error *error);
/* Calls under way end without callbacks; NULL is fine. */
void uar_knowledge_destroy(struct uar_knowledge *k);
/* A sync failed: changes are refused until the server starts again. NULL is fine. */
bool uar_knowledge_is_broken(const struct uar_knowledge *k);

struct uar_know_job {
	struct uar_work work;
	struct uar_knowledge *k;
	void (*run)(struct uar_kb *kb, struct uar_know_job *j);
	void (*done)(struct uar_know_job *j);
	void *ctx; /* the caller's */
	struct uar_arena arena;
	uar_err err; /* what run says */
	struct uar_error error;
};
/* Of `size` bytes, zeroed, the job first. NULL: no memory, or UAR_LIMIT_KB_JOBS are there. */
void *uar_know_job_new(struct uar_knowledge *k, size_t size);
/* On an error the job is gone. */
UAR_MUST_CHECK uar_err uar_know_begin(struct uar_know_job *j);
void uar_know_free(struct uar_know_job *j);	     /* one that was not begun; NULL is fine */
void uar_know_cancel(struct uar_know_job *j);	     /* NULL is fine */
int64_t uar_know_now(const struct uar_knowledge *k); /* wall clock */

/* UAR_EINVALID: no provider of that name embeds. */
UAR_MUST_CHECK uar_err uar_know_check_embedding(const struct uar_knowledge *k, uar_str name,
						struct uar_error *error);

/* A search, with what providers have to say about the query. */
struct uar_know_search {
	struct uar_know_job job;
	struct uar_kb_query q; /* its strings are in the arena */
	struct uar_kb_hits hits;
	uar_str models[UAR_LIMIT_KB_MODELS];
	struct uar_kb_vector vectors[UAR_LIMIT_KB_MODELS];
	size_t model_count, asked;
	bool by_policy;	 /* collections say how they are searched, where the query does not */
	bool mode_given; /* the query says its mode */
	bool missed;	 /* an embedder had no vector: words alone found what it would have */
	bool cite;	 /* out: one of them says that an answer has to name its sources */
	void (*then)(struct uar_know_job *j); /* the caller's `done`, after the first step */
};
/* On an error the job is gone. */
UAR_MUST_CHECK uar_err uar_know_search_begin(struct uar_know_search *s);

/* The bytes of a page, for a document. The address is judged by the client's guard. */
struct uar_know_page {
	struct uar_knowledge *k;
	void (*done)(struct uar_know_page *p); /* frees it */
	void *ctx;
	uar_err err;
	struct uar_error error;
	struct uar_buf bytes;
	char media_type[128];
};
UAR_MUST_CHECK uar_err uar_know_fetch(struct uar_knowledge *k, uar_str url,
				      void (*done)(struct uar_know_page *p), void *ctx,
				      struct uar_error *error);
void uar_know_page_free(struct uar_know_page *p);

/* Documents may be pending: indexes them. */
void uar_know_wake(struct uar_knowledge *k);
struct uar_know_progress {
	bool busy;
	char document[UAR_LIMIT_KB_NAME + 1];
	size_t done, total; /* passages of it that have a vector; 0, 0: not known */
	bool damaged;	    /* the index was, at the start, and has been made anew */
};
/* Of a document of another owner nothing is told but that there is work. */
void uar_know_progress(const struct uar_knowledge *k, const struct uar_owner *owner,
		       struct uar_know_progress *out);

#endif
