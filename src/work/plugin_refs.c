/* plugin_refs.c - writes the ids of a run's result; stores them when they are many. */
#include "work/plugin_refs.h"

#include "base/sha256.h"
#include "core/limits.h"
#include "event/limits.h"

/* Outlives the worker when that is stopped while the store is at work. */
struct refs_store {
	struct rt_op under_way;
	struct uar_blob_put put;
	struct uar_buf ids;
	struct refs_set *set; /* NULL: cancelled */
};

/* Writes the first `most` ids as a JSON array; returns how many there are. */
static size_t write_ids(struct uar_buf *out, const struct refs_source *from, size_t most)
{
	struct uar_jw w = uar_jw_begin(out);
	const struct uar_json *named = uar_json_at(from->named, 0);
	uar_str id = from->result_id;
	size_t n = 0;

	uar_jw_arr(&w, NULL);
	if (id.n && n++ < most)
		uar_jw_str(&w, NULL, id);
	for (; named; named = named->next)
		if (n++ < most)
			uar_jw_str(&w, NULL, named->text);
	for (size_t i = 0; !from->named && from->all; i++) {
		id = rt_export_id(from->exports, i);
		if (!id.n)
			break;
		if (n++ < most)
			uar_jw_str(&w, NULL, id);
	}
	uar_jw_close(&w);
	if (!out->err)
		out->err = uar_jw_end(&w);
	return n;
}

static void free_store(struct refs_store *st)
{
	uar_buf_fini(&st->ids);
	uar_free(st);
}

static void drop_store(struct rt_op *under_way)
{
	free_store(UAR_OWNER(under_way, struct refs_store, under_way));
}

static void ids_stored(struct uar_blob_put *put)
{
	struct refs_store *st = UAR_OWNER(put, struct refs_store, put);
	struct refs_set *set = st->set;
	uar_err e = put->err;

	if (set) {
		set->store = NULL;
		set->refs.blob = uar_arena_str(set->arena, uar_str_c(put->sha256));
		if (!e && !set->refs.blob.p)
			e = UAR_ENOMEM;
	}
	rt_op_end(&st->under_way);
	free_store(st);
	if (set)
		set->done(set->ctx, e);
}

static uar_err store_ids(struct refs_set *s, const struct refs_source *from)
{
	struct uar_runtime *rt = rt_engine(from->exports->run);
	struct refs_store *st = uar_zalloc(sizeof *st);
	uar_err e;

	if (!st)
		return UAR_ENOMEM;
	st->set = s;
	st->ids = uar_buf_make(UAR_LIMIT_PLUGIN_LINE);
	write_ids(&st->ids, from, SIZE_MAX);
	st->put = (struct uar_blob_put){ .bytes = uar_buf_str(&st->ids), .done = ids_stored };
	e = st->ids.err ? st->ids.err : rt_store(rt)->ops->blob_put(rt_store(rt), &st->put);
	if (e) {
		free_store(st);
		return e;
	}
	rt_op_begin(rt, &st->under_way, drop_store);
	s->store = st;
	return UAR_EBUSY;
}

uar_err rt_refs_begin(struct refs_set *s, const struct refs_source *from)
{
	struct uar_buf first = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	size_t n = write_ids(&first, from, UAR_LIMIT_RESULT_REFS);
	uar_err e = first.err;

	s->refs = (struct uar_result_refs){ .count = (int64_t)n };
	s->refs.ids = uar_arena_str(s->arena, uar_buf_str(&first));
	uar_buf_fini(&first);
	if (e || !s->refs.ids.p)
		return e ? e : UAR_ENOMEM;
	return n > UAR_LIMIT_RESULT_REFS ? store_ids(s, from) : UAR_OK;
}

void rt_refs_cancel(struct refs_set *s)
{
	if (s->store)
		s->store->set = NULL;
	s->store = NULL;
}
