/* kb.h - knowledge: documents, their passages, vectors and relations, by owner and collection.
 *
 * Two SQLite files beside the log. documents.db is what was given: documents, relations,
 * memories. index.db is computed from it: passages, their words (FTS5) and vectors. A document
 * is kept in one transaction and its passages are written in another one: a search sees all
 * passages of a document or none. What is in index.db can be made again (uar_kb_rebuild), and is
 * when the file is damaged.
 *
 * Every call blocks and may be made from any thread; those that change something take turns, and
 * so do those that read. Strings of results live in the arena that the caller gives. */
#ifndef UAR_MEMORY_KB_H
#define UAR_MEMORY_KB_H

#include "base/arena.h"
#include "base/sha256.h"
#include "event/record.h"
#include "memory/limits.h"

#define UAR_KB_BUILTIN "builtin" /* the name of the embedder that is part of the program */

struct uar_kb;
/* `model` names the embedder of new collections; NULL: the built-in one. */
UAR_MUST_CHECK uar_err uar_kb_open(const char *dir, const char *model, struct uar_kb **out,
				   struct uar_error *error);
void uar_kb_close(struct uar_kb *kb); /* NULL is fine */
/* The index was found damaged and is made anew; documents are pending until then. */
bool uar_kb_was_damaged(const struct uar_kb *kb);

/* An owner as one text, for comparisons. */
uar_str uar_kb_owner_text(const struct uar_owner *o, struct uar_arena *arena);

struct uar_kb_place {
	struct uar_owner owner;
	uar_str collection;
};

enum uar_kb_state { UAR_KB_PENDING, UAR_KB_READY, UAR_KB_FAILED };
extern const char *const uar_kb_state_names[]; /* "pending", "ready", "failed" */

struct uar_kb_document {
	uar_str collection, id; /* letters, digits, . _ - / */
	uar_str title, source;	/* source: where it came from, a path or an address; may be empty */
	uar_str media_type;	/* empty: text/plain */
	uar_str bytes;		/* as they came: UTF-8, but for application/pdf */
	uar_str labels;		/* words with a space between two; may be empty */
	int64_t updated_us;
	bool watched; /* it is a file of the watched folder, which goes when the file does */
	/* out, of lists */
	int64_t row, size, chunks;
	char sha256[UAR_SHA256_TEXT + 1];
	enum uar_kb_state state;
	uar_str error; /* why it failed */
};
enum uar_kb_change { UAR_KB_CREATED, UAR_KB_UPDATED, UAR_KB_UNCHANGED };
struct uar_kb_result {
	enum uar_kb_change change;
	int64_t row;
	bool indexed;	      /* it can be found; else it is pending */
	size_t chunks;	      /* of the document, when it is indexed */
	size_t written, kept; /* passages that are new, that stayed */
};
/* Keeps a document, and indexes it when that needs no other program and no provider and is short.
 * The same document again changes nothing. UAR_EINVALID: names or text that cannot be;
 * UAR_ETOOBIG. */
UAR_MUST_CHECK uar_err uar_kb_put(struct uar_kb *kb, const struct uar_owner *owner,
				  const struct uar_kb_document *d, struct uar_kb_result *out,
				  struct uar_error *error);
/* The document, its passages, vectors and relations. */
UAR_MUST_CHECK uar_err uar_kb_remove(struct uar_kb *kb, const struct uar_kb_place *place,
				     uar_str id, struct uar_error *error);

/* All documents of a collection, its relations and its policy. An empty name: of every collection
 * of the owner, and what agents remember for them. One that is interrupted is done again. */
UAR_MUST_CHECK uar_err uar_kb_clear(struct uar_kb *kb, const struct uar_kb_place *place,
				    int64_t *out_documents, struct uar_error *error);

struct uar_kb_documents {
	struct uar_kb_document *at;
	size_t n; /* at most UAR_LIMIT_KB_PAGE */
};
struct uar_kb_page {
	struct uar_kb_place place;
	uar_str after; /* the id of the last one before */
	uar_str id;    /* not empty: that one alone */
	struct uar_arena *arena;
};
/* By id, without their texts. An unknown collection is empty. */
UAR_MUST_CHECK uar_err uar_kb_list(struct uar_kb *kb, const struct uar_kb_page *page,
				   struct uar_kb_documents *out, struct uar_error *error);

struct uar_kb_collection {
	uar_str name;
	int64_t documents, chunks, pending, failed;
	uar_str embedding; /* the model of its vectors */
	uar_str policy;	   /* JSON object, or empty */
};
struct uar_kb_collections {
	struct uar_kb_collection *at;
	size_t n;
};
UAR_MUST_CHECK uar_err uar_kb_collections(struct uar_kb *kb, const struct uar_owner *owner,
					  struct uar_arena *arena, struct uar_kb_collections *out,
					  struct uar_error *error);
/* Embedding and policy of a collection. Another embedding makes its documents pending. An empty
 * one leaves what there is, and so do members that the policy does not have. */
UAR_MUST_CHECK uar_err uar_kb_set_collection(struct uar_kb *kb, const struct uar_owner *owner,
					     const struct uar_kb_collection *c,
					     struct uar_error *error);

/* --- search ------------------------------------------------------------------------------- */

enum uar_kb_mode { UAR_KB_HYBRID, UAR_KB_KEYWORD, UAR_KB_VECTOR, UAR_KB_MODE_COUNT };
extern const char *const uar_kb_mode_names[UAR_KB_MODE_COUNT]; /* "hybrid", ... */

struct uar_kb_vector {
	uar_str model;
	const float *at; /* of length 1 */
	size_t n;
};
struct uar_kb_query {
	struct uar_owner owner;
	const uar_str *collections; /* none: nothing is found */
	size_t collection_count;
	uar_str text;
	enum uar_kb_mode mode;
	size_t k;	     /* passages at most */
	uar_str deny_labels; /* words: passages of documents that have one are left out */
	/* The text by other embedders than the built-in one, as collections need them. A
	 * collection whose model is not among them is searched by words alone. */
	const struct uar_kb_vector *vectors;
	size_t vector_count;
	uar_str only_model; /* not empty: vectors of other models do not count */
	bool expand;	    /* with passages of documents that relations lead to */
};
struct uar_kb_hit {
	int64_t chunk;
	uar_str collection, document, title, source, heading, text;
	uar_str sha256; /* of heading and text: names the passage, also in an index made anew */
	int64_t position, line, page; /* position: in its document, from 0 on */
	double score;		      /* larger is better; of one search alone */
	double keyword, similarity;   /* what it is made of; 0: not found that way */
	bool related;		      /* found through a relation */
};
struct uar_kb_hits {
	struct uar_kb_hit *at; /* the best first */
	size_t n;
	bool partial; /* a collection has more vectors than are kept in memory, or not all yet */
	bool loading; /* uar_kb_load_more brings further ones */
	uar_str mismatch; /* why a search for both could not compare vectors; empty: it could */
};
UAR_MUST_CHECK uar_err uar_kb_search(struct uar_kb *kb, const struct uar_kb_query *q,
				     struct uar_arena *arena, struct uar_kb_hits *out,
				     struct uar_error *error);
/* Reads a further slice of the vectors that searches have begun to need. Blocks like a search. */
UAR_MUST_CHECK uar_err uar_kb_load_more(struct uar_kb *kb, bool *out_more);
/* Passages of a document in their order, at most UAR_LIMIT_KB_PAGE. */
struct uar_kb_reading {
	struct uar_kb_place place;
	uar_str document;
	uar_str sha256; /* not empty: the one of that digest */
	int64_t chunk;	/* not 0: the one of that number */
	int64_t from;	/* the position of the first one */
	bool by_policy; /* nothing of a document whose labels the collection denies */
};
UAR_MUST_CHECK uar_err uar_kb_passages(struct uar_kb *kb, const struct uar_kb_reading *r,
				       struct uar_arena *arena, struct uar_kb_hits *out,
				       struct uar_error *error);
/* Where a passage is read over HTTP, as citations name it. */
#define UAR_KB_PATH (6 * UAR_LIMIT_KB_NAME + UAR_SHA256_TEXT + 64)
void uar_kb_passage_path(const struct uar_kb_hit *h, char out[UAR_KB_PATH]);
/* The models that the vectors of these collections are of, but for the built-in one. */
UAR_MUST_CHECK uar_err uar_kb_models(struct uar_kb *kb, const struct uar_kb_query *q,
				     struct uar_arena *arena, uar_str *out, size_t *out_n);

/* --- relations ------------------------------------------------------------------------------ */

struct uar_kb_relation {
	uar_str from, kind, to;
	uar_str document; /* where it was read; may be empty */
	uar_str by;	  /* who says so: "api", a run */
	int64_t at_us;
};
struct uar_kb_relations {
	struct uar_kb_relation *at;
	size_t n;
};
UAR_MUST_CHECK uar_err uar_kb_relate(struct uar_kb *kb, const struct uar_kb_place *place,
				     const struct uar_kb_relations *r, struct uar_error *error);
struct uar_kb_walk {
	struct uar_kb_place place;
	uar_str entity;
	int depth;	/* steps from the entity, 1 to 3 */
	bool by_policy; /* without what documents say whose labels the collection denies */
};
/* Relations of an entity and of those that it leads to. */
UAR_MUST_CHECK uar_err uar_kb_neighbours(struct uar_kb *kb, const struct uar_kb_walk *walk,
					 struct uar_arena *arena, struct uar_kb_relations *out,
					 struct uar_error *error);

/* --- what an agent remembers ------------------------------------------------------------------ */

struct uar_kb_memory {
	uar_str scope;	  /* "conversation", "user", "agent" */
	uar_str scope_id; /* the conversation or the agent; empty: the user */
	uar_str key, value;
	uar_str source;	    /* the run that put it */
	int64_t updated_us; /* now, where one is put */
	int64_t expires_us; /* 0: never */
};
struct uar_kb_memories {
	struct uar_kb_memory *at;
	size_t n; /* at most UAR_LIMIT_KB_PAGE */
};
UAR_MUST_CHECK uar_err uar_kb_remember(struct uar_kb *kb, const struct uar_owner *owner,
				       const struct uar_kb_memory *m, struct uar_error *error);
struct uar_kb_recall {
	struct uar_owner owner;
	uar_str scope, scope_id, key; /* each may be empty: any */
	int64_t now_us;
	struct uar_arena *arena;
};
UAR_MUST_CHECK uar_err uar_kb_recall(struct uar_kb *kb, const struct uar_kb_recall *r,
				     struct uar_kb_memories *out, struct uar_error *error);
/* *out_n: how many there were. */
UAR_MUST_CHECK uar_err uar_kb_forget(struct uar_kb *kb, const struct uar_kb_recall *r,
				     int64_t *out_n, struct uar_error *error);

/* --- the index -------------------------------------------------------------------------------- */

/* A document that is not indexed as it is; UAR_ENOTFOUND: there is none. */
struct uar_kb_pending {
	int64_t row;
	uar_str owner; /* as uar_kb_owner_text says it */
	uar_str collection, id, media_type;
	uar_str embedding;
	uar_str raw; /* what a program has to read first; empty: the text is known */
};
struct uar_kb_after {
	int64_t row;
	const char *silent; /* documents of this embedding are looked for until they have words */
};
UAR_MUST_CHECK uar_err uar_kb_next_pending(struct uar_kb *kb, const struct uar_kb_after *after,
					   struct uar_arena *arena, struct uar_kb_pending *out,
					   struct uar_error *error);
UAR_MUST_CHECK uar_err uar_kb_set_text(struct uar_kb *kb, int64_t row, uar_str text,
				       struct uar_error *error);
UAR_MUST_CHECK uar_err uar_kb_set_failed(struct uar_kb *kb, int64_t row, uar_str why,
					 struct uar_error *error);
/* Passages of the document without a vector of that model: their digests and texts. `total`: how
 * many passages it has. */
struct uar_kb_missing {
	uar_str *text;
	char (*sha256)[UAR_SHA256_TEXT + 1];
	size_t n, total, lacking;
};
UAR_MUST_CHECK uar_err uar_kb_missing(struct uar_kb *kb, const struct uar_kb_pending *p,
				      struct uar_arena *arena, struct uar_kb_missing *out,
				      struct uar_error *error);
/* UAR_EINVALID: a vector of zeros, or of another length than those before it. */
UAR_MUST_CHECK uar_err uar_kb_save_vector(struct uar_kb *kb, uar_str model, const char *sha256,
					  const struct uar_kb_vector *v, struct uar_error *error);
/* Writes the passages of the document without vectors: words find it while those are to come. It
 * stays pending. One whose passages are there is left as it is. */
UAR_MUST_CHECK uar_err uar_kb_index_words(struct uar_kb *kb, int64_t row, struct uar_error *error);
/* Documents whose text is known and whose vectors failed are pending again. */
UAR_MUST_CHECK uar_err uar_kb_retry_failed(struct uar_kb *kb, struct uar_error *error);
/* Writes the passages of the document. */
UAR_MUST_CHECK uar_err uar_kb_index(struct uar_kb *kb, int64_t row, struct uar_kb_result *out,
				    struct uar_error *error);
/* Forgets the index and makes it anew from the documents; those that need a program or a provider
 * are pending then. */
UAR_MUST_CHECK uar_err uar_kb_rebuild(struct uar_kb *kb, struct uar_error *error);

struct uar_kb_report {
	int64_t documents, pending, failed, chunks, vectors;
	char sha256[UAR_SHA256_TEXT + 1]; /* of all passages: what a rebuild must bring again */
	char damage[200];		  /* empty: none was found */
	char failures[600];		  /* the first documents that failed, and why */
};
/* Cuts each document again and compares; asks SQLite whether its files are whole. */
UAR_MUST_CHECK uar_err uar_kb_check(struct uar_kb *kb, struct uar_kb_report *out,
				    struct uar_error *error);

#endif
