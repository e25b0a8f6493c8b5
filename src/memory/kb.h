/* kb.h - knowledge: documents, their passages, vectors and relations, by owner and collection.
 *
 * One SQLite file, knowledge.db, beside the log. A document is there whole or not at all; its
 * passages, their words (FTS5) and vectors are written in the same transaction. What is here can
 * be made again from the documents (uar_kb_rebuild).
 *
 * Every call blocks and may be made from any thread; calls take turns. Strings of results live in
 * the arena that the caller gives. */
#ifndef UAR_MEMORY_KB_H
#define UAR_MEMORY_KB_H

#include "base/arena.h"
#include "event/record.h"
#include "memory/limits.h"

struct uar_kb;
UAR_MUST_CHECK uar_err uar_kb_open(const char *dir, struct uar_kb **out, struct uar_error *error);
void uar_kb_close(struct uar_kb *kb); /* NULL is fine */

struct uar_kb_place {
	struct uar_owner owner;
	uar_str collection;
};

struct uar_kb_document {
	uar_str collection, id; /* letters, digits, . _ - / */
	uar_str title, source;	/* source: where it came from, a path or an address; may be empty */
	uar_str media_type;	/* text/plain, text/markdown, text/html; empty: text/plain */
	uar_str text;
	uar_str labels; /* words with a space between two; may be empty */
	int64_t updated_us;
	/* out, of lists */
	int64_t bytes, chunks;
	char sha256[65];
};
enum uar_kb_change { UAR_KB_CREATED, UAR_KB_UPDATED, UAR_KB_UNCHANGED };
struct uar_kb_result {
	enum uar_kb_change change;
	size_t chunks; /* written */
};
/* The same document again changes nothing. UAR_EINVALID: names or text that cannot be;
 * UAR_ETOOBIG. */
UAR_MUST_CHECK uar_err uar_kb_put(struct uar_kb *kb, const struct uar_owner *owner,
				  const struct uar_kb_document *d, struct uar_kb_result *out,
				  struct uar_error *error);
UAR_MUST_CHECK uar_err uar_kb_remove(struct uar_kb *kb, const struct uar_kb_place *place,
				     uar_str id, struct uar_error *error);

struct uar_kb_documents {
	struct uar_kb_document *at;
	size_t n; /* at most UAR_LIMIT_KB_PAGE */
};
struct uar_kb_page {
	struct uar_kb_place place;
	uar_str after; /* the id of the last one before */
	struct uar_arena *arena;
};
/* By id, without their texts. An unknown collection is empty. */
UAR_MUST_CHECK uar_err uar_kb_list(struct uar_kb *kb, const struct uar_kb_page *page,
				   struct uar_kb_documents *out, struct uar_error *error);

struct uar_kb_collection {
	uar_str name;
	int64_t documents, chunks;
};
struct uar_kb_collections {
	struct uar_kb_collection *at;
	size_t n;
};
UAR_MUST_CHECK uar_err uar_kb_collections(struct uar_kb *kb, const struct uar_owner *owner,
					  struct uar_arena *arena, struct uar_kb_collections *out,
					  struct uar_error *error);

enum uar_kb_mode { UAR_KB_HYBRID, UAR_KB_KEYWORD, UAR_KB_VECTOR };
struct uar_kb_query {
	struct uar_owner owner;
	const uar_str *collections; /* none: nothing is found */
	size_t collection_count;
	uar_str text;
	enum uar_kb_mode mode;
	size_t k;	     /* passages at most */
	uar_str deny_labels; /* words: passages of documents that have one are left out */
};
struct uar_kb_hit {
	int64_t chunk;
	uar_str collection, document, title, source, heading, text;
	int64_t line, page;
	double score;		    /* larger is better; of one search alone */
	double keyword, similarity; /* what it is made of; 0: not found that way */
};
struct uar_kb_hits {
	struct uar_kb_hit *at; /* the best first */
	size_t n;
};
UAR_MUST_CHECK uar_err uar_kb_search(struct uar_kb *kb, const struct uar_kb_query *q,
				     struct uar_arena *arena, struct uar_kb_hits *out,
				     struct uar_error *error);

struct uar_kb_relation {
	uar_str from, kind, to;
	uar_str document; /* where it was read; may be empty */
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
	int depth; /* steps from the entity, 1 to 3 */
};
/* Relations of an entity and of those that it leads to. */
UAR_MUST_CHECK uar_err uar_kb_neighbours(struct uar_kb *kb, const struct uar_kb_walk *walk,
					 struct uar_arena *arena, struct uar_kb_relations *out,
					 struct uar_error *error);

/* Cuts every document anew. */
UAR_MUST_CHECK uar_err uar_kb_rebuild(struct uar_kb *kb, struct uar_error *error);

#endif
