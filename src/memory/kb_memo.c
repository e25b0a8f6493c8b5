/* kb_memo.c - what agents remember: a value by scope and key, as long as it is to be kept. */
#include "memory/kb_int.h"

static uar_err check_memory(const struct uar_kb_memory *m, struct uar_error *error)
{
	bool user = uar_str_is(m->scope, "user");

	if (!user && !uar_str_is(m->scope, "conversation") && !uar_str_is(m->scope, "agent"))
		return uar_error_set(error, UAR_EINVALID, "a scope is conversation, user or agent");
	if (!user && !m->scope_id.n)
		return uar_error_set(error, UAR_EINVALID, "there is no %.*s to remember it for",
				     UAR_FMT(m->scope));
	if (!m->key.n || m->key.n > UAR_LIMIT_KB_MEMORY_KEY)
		return uar_error_set(error, UAR_EINVALID, "a key has 1 to %d bytes",
				     UAR_LIMIT_KB_MEMORY_KEY);
	if (m->value.n > UAR_LIMIT_KB_MEMORY_VALUE)
		return uar_error_set(error, UAR_ETOOBIG, "a value has at most %d bytes",
				     UAR_LIMIT_KB_MEMORY_VALUE);
	return UAR_OK;
}

uar_err uar_kb_remember(struct uar_kb *kb, const struct uar_owner *owner,
			const struct uar_kb_memory *m, struct uar_error *error)
{
	struct uar_arena arena;
	sqlite3_stmt *st = NULL;
	uar_str by[] = { UAR_STR_NONE, m->scope, m->scope_id, m->key, m->value, m->source };
	uar_err e = check_memory(m, error);

	if (e)
		return e;
	uar_arena_init(&arena, 0);
	by[0] = kb_owner(owner, &arena);
	pthread_mutex_lock(&kb->lock);
	e = by[0].p ? kb_prepare(kb,
				 "INSERT OR REPLACE INTO memories VALUES (?1, ?2, ?3, ?4, ?5, ?6,"
				 " ?7, ?8)",
				 &st, error)
		    : UAR_ENOMEM;
	if (!e) {
		kb_bind_texts(st, by, ARRAY_LEN(by));
		sqlite3_bind_int64(st, 7, m->updated_us);
		sqlite3_bind_int64(st, 8, m->expires_us);
		e = kb_run(kb, st, error);
	}
	if (!e)
		e = kb_do(kb,
			  &(struct kb_do){ "DELETE FROM memories WHERE expires > 0 AND expires <="
					   " ?1",
					   NULL, 0, m->updated_us },
			  error);
	pthread_mutex_unlock(&kb->lock);
	uar_arena_fini(&arena);
	return e;
}

#define WHERE                                                                                      \
	" WHERE owner = ?1 AND (?2 = '' OR scope = ?2) AND (?3 = '' OR scope_id = ?3)"             \
	" AND (?4 = '' OR key = ?4)"

uar_err uar_kb_recall(struct uar_kb *kb, const struct uar_kb_recall *r, struct uar_kb_memories *out,
		      struct uar_error *error)
{
	struct uar_kb_memory *list = uar_arena_alloc(r->arena, UAR_LIMIT_KB_PAGE * sizeof *list);
	uar_str by[] = { kb_owner(&r->owner, r->arena), r->scope, r->scope_id, r->key };
	sqlite3_stmt *st = NULL;
	size_t n = 0;
	uar_err e;

	kb = kb->reader;
	pthread_mutex_lock(&kb->lock);
	e = list && by[0].p ? kb_prepare(kb,
					 "SELECT scope, scope_id, key, value, source, updated,"
					 " expires FROM memories" WHERE
					 " AND (expires = 0 OR expires > ?5) ORDER BY scope,"
					 " scope_id, key LIMIT ?6",
					 &st, error)
			    : UAR_ENOMEM;
	if (!e) {
		kb_bind_texts(st, by, ARRAY_LEN(by));
		sqlite3_bind_int64(st, 5, r->now_us);
		sqlite3_bind_int(st, 6, UAR_LIMIT_KB_PAGE);
	}
	while (!e && n < UAR_LIMIT_KB_PAGE && kb_step(kb, st, &e, error)) {
		struct uar_kb_memory *m = &list[n++];
		uar_str *const to[] = { &m->scope, &m->scope_id, &m->key, &m->value, &m->source };

		m->updated_us = sqlite3_column_int64(st, 5);
		m->expires_us = sqlite3_column_int64(st, 6);
		e = kb_copy_texts(st, to, ARRAY_LEN(to), r->arena);
	}
	sqlite3_finalize(st);
	pthread_mutex_unlock(&kb->lock);
	*out = (struct uar_kb_memories){ list, n };
	return e;
}

uar_err uar_kb_forget(struct uar_kb *kb, const struct uar_kb_recall *r, int64_t *out_n,
		      struct uar_error *error)
{
	uar_str by[] = { kb_owner(&r->owner, r->arena), r->scope, r->scope_id, r->key };
	uar_err e;

	pthread_mutex_lock(&kb->lock);
	e = by[0].p ? kb_do(kb, &(struct kb_do){ "DELETE FROM memories" WHERE, by, 4, 0 }, error)
		    : UAR_ENOMEM;
	if (!e)
		*out_n = sqlite3_changes64(kb->db);
	pthread_mutex_unlock(&kb->lock);
	return e;
}
