/* known.c - what the writer knows without asking the tables: what it has used lately,
 * and which ids cannot be there yet.
 *
 * Ids that UAR makes count up with the time, and exactly one connection writes:
 * one that sorts behind the last of its kind is new. Only ids that begin with '0'
 * count, as all of UAR's own will for ages; whoever chooses others pays the usual
 * look. A mistake can only be a look too many: what is remembered never goes
 * down before the tables are read again. */
#include "store/sqlite/sqlite_int.h"

#include "base/alloc.h"

/* --- what was used lately --- */
void sq_cache_init(struct sq_cache *c)
{
	uar_map_init(&c->map, 0x5354u);
	uar_list_init(&c->lru);
	c->count = 0;
}

void sq_cache_clear(struct sq_cache *c)
{
	UAR_LIST_EACH (it, &c->lru)
		uar_free(it);
	uar_map_fini(&c->map);
	sq_cache_init(c);
}

void *sq_cache_get(struct sq_cache *c, uar_str key)
{
	struct uar_list *node = uar_map_get(&c->map, key);

	if (node) {
		uar_list_remove(node);
		uar_list_add_last(&c->lru, node);
	}
	return node;
}

uar_err sq_cache_put(struct sq_cache *c, uar_str key, struct uar_list *node)
{
	uar_err e = uar_map_put(&c->map, key, node);

	if (e)
		return e;
	uar_list_add_last(&c->lru, node);
	c->count++;
	return UAR_OK;
}

void sq_cache_drop(struct sq_cache *c, uar_str key)
{
	struct uar_list *node = uar_map_remove(&c->map, key);

	if (!node)
		return;
	uar_list_remove(node);
	uar_free(node);
	c->count--;
}

/* --- what cannot be there --- */
static bool counts(uar_str id)
{
	return id.n && id.p[0] == '0';
}

bool sq_is_new(const struct sq_top *top, uar_str id)
{
	return counts(id) && uar_str_cmp(id, uar_str_n(top->text, top->n)) > 0;
}

void sq_top_add(struct sq_top *top, uar_str id)
{
	if (!sq_is_new(top, id) || id.n > sizeof top->text)
		return; /* such a long one is no id */
	memcpy(top->text, id.p, id.n);
	top->n = id.n;
}

uar_err sq_top_load(struct sq_conn *c, enum sq_id id, int64_t oid, struct sq_top *out,
		    struct uar_error *error)
{
	struct sq_val of = SQ_I(oid);
	sqlite3_stmt *st;
	uar_err e = sq_first(c, id, &of, oid ? 1 : 0, &st, error);

	out->n = 0;
	if (e)
		return e == UAR_ENOTFOUND ? UAR_OK : e;
	sq_top_add(out, sq_text(st, 0));
	sq_done(st);
	return UAR_OK;
}

/* The owner's part of the key, which ends where the session's id begins. */
static uar_str owner_key(const struct sq_op *op)
{
	return uar_str_n(op->session_key.p, op->session_key.n - op->session_id.n);
}

int64_t sq_owner_known(const struct sq_owner_last *last, const struct sq_op *op)
{
	return last->oid && uar_str_eq(uar_buf_str(&last->key), owner_key(op)) ? last->oid : 0;
}

uar_err sq_owner_load(struct sq_conn *c, const struct sq_op *op, int64_t oid,
		      struct sq_owner_last *last, struct uar_error *error)
{
	uar_err e;

	last->oid = 0;
	uar_buf_clear(&last->key);
	uar_buf_add_str(&last->key, owner_key(op));
	if (last->key.err)
		return uar_error_set(error, last->key.err, "the key of an owner");
	e = sq_top_load(c, SQ_THREAD_TOP, oid, &last->thread, error);
	if (!e)
		last->oid = oid;
	return e;
}
