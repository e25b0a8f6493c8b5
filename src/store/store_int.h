/* store_int.h - what the implementations of the store port share. */
#ifndef UAR_STORE_STORE_INT_H
#define UAR_STORE_STORE_INT_H

#include "base/map.h"
#include "loop/done.h"
#include "store/store.h"

/* All of an append that can be judged without looking at what is stored:
 * sequences without gaps, one owner, one session, one run at most, and every
 * event by its class. `scratch` is used and reset. */
UAR_MUST_CHECK uar_err uar_store_check(const struct uar_append *a, const char *runtime_id,
				       struct uar_arena *scratch, struct uar_error *error);
/* The run an append belongs to; empty when it has none. */
uar_str uar_store_append_run(const struct uar_append *a);
bool uar_owner_is_valid(const struct uar_owner *o);
/* The part of a read, list or look-up that is wrong whatever is stored. */
UAR_MUST_CHECK uar_err uar_store_check_read(const struct uar_read *r);
UAR_MUST_CHECK uar_err uar_store_check_runs(const struct uar_runs_query *q);
UAR_MUST_CHECK uar_err uar_store_check_rows(const struct uar_rows_query *q);
UAR_MUST_CHECK uar_err uar_store_check_thread(const struct uar_thread_query *q);
/* UAR_ENOTFOUND, and what is not there: the run, or without one the session. */
uar_err uar_store_missing(uar_str run_id, uar_str session_id, struct uar_error *error);
bool uar_store_is_sha256(const char sha256[65]); /* 64 lower-case hex digits */
/* "tenant US workspace US user US id": ids are visible ASCII, so it is unique. */
enum { UAR_STORE_KEY_BYTES = 4 * (UAR_LIMIT_ID_BYTES + 1) };
uar_str uar_store_key(struct uar_arena *arena, const struct uar_owner *o, uar_str id);
/* A copy in the arena; false when there is no memory. */
bool uar_store_copy_key(struct uar_arena *arena, const struct uar_key_row *in,
			struct uar_key_row *out);
bool uar_store_copy_rows(struct uar_arena *arena, const struct uar_row *in, size_t n,
			 struct uar_row **out);
/* The cursor of a list of rows: the value that it is ordered by, and the id. The second
 * reads what the first wrote; false: it is none. */
uar_str uar_store_rows_cursor(struct uar_arena *arena, enum uar_rows_order order,
			      const struct uar_row *last);
UAR_MUST_CHECK bool uar_store_rows_cursor_read(uar_str text, int64_t *out_value, uar_str *out_id);
/* Sets of hashes: 64 hex digits each. */
UAR_MUST_CHECK uar_err uar_store_hash_add(struct uar_map *map, const char *sha256);
void uar_store_hashes_fini(struct uar_map *map);
bool uar_store_copy_ids(struct uar_arena *arena, const uar_str *in, size_t n, uar_str **out);

#endif
