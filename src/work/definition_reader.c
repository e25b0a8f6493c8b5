/* definition_reader.c - definitions of the database: all of an owner at a start, one version, or
 * the list of versions. */
#include "agent/limits.h"
#include "agent/registry.h"
#include "event/limits.h"
#include "work/definition_store_int.h"
#include "work/limits.h"

/* --- at a start -------------------------------------------------------------------------- */

struct definition_loader {
	struct rt_op under_way;
	struct uar_list node; /* in changes.loaders, until it is begun */
	struct uar_workers *w;
	struct uar_owner owner;
	struct uar_arena own;	/* of the owner */
	enum uar_row_kind kind; /* of the rows that are read now */
	struct uar_rows_query page;
	size_t at; /* row of the page whose blob is read */
	struct uar_row_definition row;
	struct uar_arena arena; /* of that row */
	struct uar_blob_get blob;
	uar_str after;
};

static void free_loader(struct definition_loader *l)
{
	uar_list_remove(&l->node);
	uar_arena_fini(&l->own);
	uar_arena_fini(&l->arena);
	uar_free(l);
}

static void drop_loader(struct rt_op *op)
{
	free_loader(UAR_OWNER(op, struct definition_loader, under_way));
}

static void begin_loading(struct uar_workers *w);

static void end_loading(struct definition_loader *l)
{
	struct uar_workers *w = l->w;

	rt_op_end(&l->under_way);
	free_loader(l);
	w->changes.loading--;
	w->changes.at_work--;
	uar_workers_agents_changed(w);
	rt_skill_tally_wake(w);
	begin_loading(w);
}

static void log_unread(const struct definition_loader *l, uar_err e, uar_str id)
{
	uar_log(rt_log(l->w->rt), UAR_LOG_ERROR, "agent.unread", { "agent_id", id },
		{ "reason", uar_str_c(uar_err_text(e)) });
}

static uar_err read_page(struct definition_loader *l);
static void next_row(struct definition_loader *l);

static uar_err take_agent(struct definition_loader *l, uar_str text)
{
	struct uar_error error = { 0 };
	struct uar_definition def;
	uar_err e = uar_definition_read(text, &def, &error);

	return e ? e
		 : uar_registry_put(l->w->o.registry, &l->owner, &def, l->row.version,
				    l->row.row.updated_us);
}

static bool is_skill(const struct definition_loader *l)
{
	return uar_str_starts(l->row.row.id, uar_str_c(rt_kept_skill.prefix));
}

static void loaded_text(struct uar_blob_get *get)
{
	struct definition_loader *l = UAR_OWNER(get, struct definition_loader, blob);
	uar_err e = get->err;

	if (!e && is_skill(l))
		e = rt_skill_load(l->w, &l->owner, &l->row, get->bytes);
	else if (!e && uar_str_starts(l->row.row.id, uar_str_c(rt_kept_mcp.prefix)))
		e = rt_mcp_load(l->w, &l->owner, &l->row, get->bytes);
	else if (!e)
		e = take_agent(l, get->bytes);
	if (e)
		log_unread(l, e, l->row.row.id);
	uar_store_blob_get_fini(get);
	l->at++;
	next_row(l);
}

static uar_err fetch_text(struct uar_workers *w, struct uar_blob_get *get, uar_str revision)
{
	struct uar_store *store = rt_store(w->rt);

	if (revision.n != sizeof get->sha256 - 1)
		return UAR_ECORRUPT;
	memcpy(get->sha256, revision.p, revision.n);
	get->limit = UAR_LIMIT_AGENT_DEFINITION;
	return store->ops->blob_get(store, get);
}

static void end_page(struct definition_loader *l)
{
	bool more = l->page.more;
	uar_err e = UAR_OK;

	l->after = more ? uar_arena_str(&l->own, l->page.next) : UAR_STR("");
	uar_store_rows_fini(&l->page);
	if (!more && l->kind != UAR_ROW_SKILL_USE && l->w->o.skills) {
		l->kind = l->kind == UAR_ROW_DEFINITION ? UAR_ROW_SKILL_METRIC : UAR_ROW_SKILL_USE;
		more = true;
	}
	if (more)
		e = l->after.p ? read_page(l) : UAR_ENOMEM;
	if (e)
		log_unread(l, e, UAR_STR("*"));
	if (e || !more)
		end_loading(l);
}

static void next_row(struct definition_loader *l)
{
	while (l->at < l->page.row_count) {
		struct uar_error error;
		uar_err e;

		uar_arena_reset(&l->arena);
		e = uar_row_unpack(&l->page.rows[l->at], &l->arena, &l->row, sizeof l->row, &error);
		l->blob = (struct uar_blob_get){ .done = loaded_text };
		if (!e)
			e = fetch_text(l->w, &l->blob, l->row.revision);
		if (!e)
			return;
		log_unread(l, e, l->page.rows[l->at].id);
		l->at++;
	}
	end_page(l);
}

static void page_ready(struct uar_rows_query *q)
{
	struct definition_loader *l = UAR_OWNER(q, struct definition_loader, page);

	if (q->err) {
		log_unread(l, q->err, UAR_STR("*"));
		uar_store_rows_fini(q);
		end_loading(l);
		return;
	}
	l->at = 0;
	if (l->kind != UAR_ROW_DEFINITION) {
		for (size_t i = 0; i < q->row_count; i++)
			(l->kind == UAR_ROW_SKILL_METRIC
				 ? rt_skill_load_metric
				 : rt_skill_load_use)(l->w, &l->owner, &q->rows[i]);
		end_page(l);
		return;
	}
	next_row(l);
}

static uar_err read_page(struct definition_loader *l)
{
	struct uar_store *store = rt_store(l->w->rt);

	l->page = (struct uar_rows_query){ .owner = l->owner,
					   .kind = l->kind,
					   .status = UAR_STR("active"),
					   .after = l->after,
					   .limit = UAR_LIMIT_LIST_PAGE,
					   .done = page_ready };
	return store->ops->rows(store, &l->page);
}

void uar_workers_load_definitions(struct uar_workers *w, const struct uar_owner *owner)
{
	struct definition_loader *l = w->o.registry ? uar_zalloc(sizeof *l) : NULL;

	if (!l)
		return;
	l->w = w;
	l->kind = UAR_ROW_DEFINITION;
	uar_arena_init(&l->own, 0);
	uar_arena_init(&l->arena, 0);
	uar_list_init(&l->node);
	if (!uar_owner_copy(&l->own, owner, &l->owner)) {
		free_loader(l);
		return;
	}
	w->changes.loading++;
	uar_list_add_last(&w->changes.loaders, &l->node);
	rt_op_begin(w->rt, &l->under_way, drop_loader);
	begin_loading(w);
}

/* A few owners at a time. */
static void begin_loading(struct uar_workers *w)
{
	while (w->changes.at_work < UAR_LIMIT_DEFINITION_LOADS &&
	       !uar_list_empty(&w->changes.loaders)) {
		struct definition_loader *l =
			UAR_OWNER(w->changes.loaders.next, struct definition_loader, node);

		uar_list_remove(&l->node);
		if (!read_page(l)) {
			w->changes.at_work++;
			continue;
		}
		log_unread(l, UAR_EBUSY, UAR_STR("*"));
		rt_op_end(&l->under_way);
		free_loader(l);
		w->changes.loading--;
	}
}

bool uar_workers_definitions_loaded(const struct uar_workers *w)
{
	return w->changes.loading == 0;
}

/* --- versions ------------------------------------------------------------------------------ */

struct definition_look {
	struct rt_op under_way;
	struct uar_workers *w;
	struct uar_definition_lookup *op; /* NULL: nobody waits */
	struct uar_rows_query rows;
	struct uar_blob_get blob;
	struct uar_arena arena;
	char kept[KEPT_ID], id[KEPT_ID + 24];
};

static void free_look(struct definition_look *l)
{
	uar_arena_fini(&l->arena);
	uar_free(l);
}

static void drop_look(struct rt_op *op)
{
	free_look(UAR_OWNER(op, struct definition_look, under_way));
}

static void end_look(struct definition_look *l, uar_err e)
{
	l->op->err = e;
	l->op->error.code = e;
	l->op->done(l->op);
	rt_op_end(&l->under_way);
	free_look(l);
}

static void version_read(struct uar_blob_get *get)
{
	struct definition_look *l = UAR_OWNER(get, struct definition_look, blob);

	l->op->text = get->bytes;
	l->op->err = get->err;
	l->op->error = get->error;
	l->op->done(l->op);
	uar_store_blob_get_fini(get);
	rt_op_end(&l->under_way);
	free_look(l);
}

static uar_err look_at_version(struct definition_look *l)
{
	struct uar_row_revision row;
	uar_err e = uar_row_unpack(&l->rows.rows[0], &l->arena, &row, sizeof row, &l->op->error);

	if (e)
		return e;
	if (!row.revision.n)
		return uar_error_set(&l->op->error, UAR_ENOTFOUND,
				     "it was removed with this version");
	l->blob = (struct uar_blob_get){ .done = version_read };
	return fetch_text(l->w, &l->blob, row.revision);
}

static uar_err list_versions(struct definition_look *l)
{
	struct uar_definition_version *out =
		uar_arena_alloc(&l->arena, (l->rows.row_count + 1) * sizeof *out);

	if (!out)
		return UAR_ENOMEM;
	for (size_t i = 0; i < l->rows.row_count; i++) {
		struct uar_row_revision row;
		uar_err e = uar_row_unpack(&l->rows.rows[i], &l->arena, &row, sizeof row,
					   &l->op->error);

		if (e)
			return e;
		out[i].version = row.version;
		out[i].created_us = row.row.created_us;
		snprintf(out[i].revision, sizeof out[i].revision, "%.*s", UAR_FMT(row.revision));
	}
	l->op->versions = out;
	l->op->count = l->rows.row_count;
	l->op->more = l->rows.more;
	return l->op->count ? UAR_OK : UAR_ENOTFOUND;
}

static void versions_ready(struct uar_rows_query *q)
{
	struct definition_look *l = UAR_OWNER(q, struct definition_look, rows);
	bool one = l->op->version > 0;
	uar_err e = q->err;

	if (e)
		l->op->error = q->error;
	else
		e = one ? look_at_version(l) : list_versions(l);
	uar_store_rows_fini(q);
	if (e || !one)
		end_look(l, e);
}

uar_err uar_workers_look_up_definition(struct uar_workers *w, struct uar_definition_lookup *op)
{
	struct uar_store *store = rt_store(w->rt);
	struct definition_look *l = uar_zalloc(sizeof *l);
	uar_err e;

	if (!l)
		return UAR_ENOMEM;
	l->w = w;
	l->op = op;
	uar_arena_init(&l->arena, 0);
	snprintf(l->kept, sizeof l->kept, "%s%.*s",
		 op->what == UAR_KEPT_SKILL ? rt_kept_skill.prefix : "", UAR_FMT(op->id));
	snprintf(l->id, sizeof l->id, "%s:%lld", l->kept, (long long)op->version);
	l->rows = (struct uar_rows_query){ .owner = op->owner,
					   .kind = UAR_ROW_REVISION,
					   .limit = UAR_LIMIT_LIST_PAGE,
					   .done = versions_ready };
	if (op->version > 0) {
		l->rows.id = uar_str_c(l->id);
	} else {
		l->rows.parent = uar_str_c(l->kept);
		l->rows.order = UAR_ROWS_RANK;
	}
	e = store->ops->rows(store, &l->rows);
	if (e)
		free_look(l);
	else
		rt_op_begin(w->rt, &l->under_way, drop_look);
	return e;
}
