/* definition_store.c - one change after the other: read, keep the text, append, take over. */
#include "work/definition_store_int.h"

#include "agent/registry.h"
#include "work/limits.h"
#include "core/registry.h"

static uar_err begin_change(struct uar_workers *w);

static struct uar_definition_change *change_at_work(const struct uar_workers *w)
{
	return UAR_OWNER(w->changes.queue.next, struct uar_definition_change, node);
}

static void free_writer(struct definition_writer *d)
{
	if (d->has_new)
		d->kind->fini(d);
	uar_arena_fini(&d->arena);
	uar_buf_fini(&d->buf);
	uar_free(d);
}

static void drop_writer(struct rt_op *op)
{
	free_writer(UAR_OWNER(op, struct definition_writer, under_way));
}

static void answer_change(struct uar_workers *w, uar_err e, const struct uar_error *error)
{
	struct uar_definition_change *op = change_at_work(w);

	uar_list_remove(&op->node);
	w->changes.count--;
	op->err = e;
	if (error && error->text[0])
		op->error = *error;
	op->error.code = e;
	op->done(op);
}

/* The change is over; the next one begins. */
static void end_change(struct definition_writer *d, uar_err e, const struct uar_error *error)
{
	struct uar_workers *w = d->w;
	struct uar_error own = error ? *error : (struct uar_error){ 0 };

	rt_op_end(&d->under_way);
	free_writer(d);
	answer_change(w, e, &own);
	while (!uar_list_empty(&w->changes.queue)) {
		e = begin_change(w);
		if (!e)
			return;
		answer_change(w, e, NULL);
	}
}

/* --- the append ------------------------------------------------------------------------------ */

static void take_over(struct definition_writer *d, struct uar_definition_change *op)
{
	int64_t now = uar_clock_wall(rt_sched(d->w->rt)->clock);

	/* After an error it is there with the next start. */
	if (d->kind->take)
		uar_runtime_note_failure(d->w->rt, d->kind->take(d, op, now));
}

static uar_err look_for_session(struct definition_writer *d);

static void change_appended(struct uar_append *a)
{
	struct definition_writer *d = UAR_OWNER(a, struct definition_writer, append);
	struct uar_definition_change *op = change_at_work(d->w);
	struct uar_error error = a->error;
	uar_err e = a->err;
	struct rt_key k;

	if (e == UAR_ECONFLICT && ++d->tries < UAR_LIMIT_DEFINITION_TRIES) {
		e = look_for_session(d);
		if (!e)
			return;
	}
	if (!e) {
		rt_publish(d->w->rt, rt_key(&k, &op->owner, UAR_STR(UAR_REGISTRY_SESSION)), a);
		take_over(d, op);
	}
	end_change(d, e, &error);
}

static uar_err pack_rows(struct definition_writer *d, struct uar_definition_change *op, int64_t now)
{
	uar_str revision = uar_str_c(op->revision);
	struct uar_row_definition row = {
		.row = { .kind = UAR_ROW_DEFINITION,
			 .id = uar_str_c(d->id),
			 .status = !op->text.p	    ? UAR_STR("removed")
				   : d->kind->noted ? UAR_STR("noted")
						    : UAR_STR("active"),
			 .created_us = now,
			 .updated_us = now },
		.version = op->version,
		.revision = revision,
	};
	struct uar_row_revision version = {
		.row = { .kind = UAR_ROW_REVISION,
			 .parent = uar_str_c(d->id),
			 .status = op->text.p ? UAR_STR("put") : UAR_STR("removed"),
			 .rank = -op->version,
			 .created_us = now,
			 .updated_us = now,
			 .fresh = true },
		.version = op->version,
		.revision = revision,
	};
	uar_err e;

	snprintf(d->version_id, sizeof d->version_id, "%s:%lld", d->id, (long long)op->version);
	version.row.id = uar_str_c(d->version_id);
	e = uar_row_pack(&row, &d->arena, &op->error);
	if (!e)
		e = uar_row_pack(&version, &d->arena, &op->error);
	d->rows[0] = row.row;
	d->rows[1] = version.row;
	d->row_count = 2;
	if (!e && d->kind->add_row)
		e = d->kind->add_row(d, op, now);
	return e;
}

static uar_err append_change(struct definition_writer *d)
{
	struct uar_definition_change *op = change_at_work(d->w);
	struct uar_registry_change facts = { d->kind->name,	      op->id,	   op->version,
					     uar_str_c(op->revision), !op->text.p, d->tools };
	struct uar_session s = d->state;
	struct uar_decision decision = { 0 };
	struct uar_core_env env = {
		.now_us = uar_clock_wall(rt_sched(d->w->rt)->clock),
		.ids = rt_ids(d->w->rt),
		.arena = &d->arena,
		.buf = &d->buf,
	};
	uar_err e;

	uar_arena_reset(&d->arena);
	e = uar_core_registry(&env, &s, &facts, &decision, &op->error);
	if (!e)
		e = pack_rows(d, op, env.now_us);
	if (e)
		return e;
	d->append = (struct uar_append){
		.owner = op->owner,
		.session_id = d->state.session_id,
		.after = d->state.sequence,
		.events = decision.events,
		.event_count = decision.event_count,
		.rows = d->rows,
		.row_count = d->row_count,
		.done = change_appended,
	};
	e = rt_append(d->w->rt, &d->append);
	if (e)
		op->error = d->append.error;
	return e;
}

static void session_found(struct uar_thread_query *q)
{
	struct definition_writer *d = UAR_OWNER(q, struct definition_writer, session);
	struct uar_definition_change *op = change_at_work(d->w);
	uar_err e = q->err == UAR_ENOTFOUND ? UAR_OK : q->err;

	if (e)
		op->error = q->error;
	d->state.sequence = q->err ? 0 : q->last_sequence;
	if (!e)
		e = append_change(d);
	if (e)
		end_change(d, e, &op->error);
}

static uar_err look_for_session(struct definition_writer *d)
{
	struct uar_definition_change *op = change_at_work(d->w);
	struct uar_store *store = rt_store(d->w->rt);

	uar_session_init(&d->state, &op->owner, uar_str_c(store->runtime_id),
			 UAR_STR(UAR_REGISTRY_SESSION));
	d->session = (struct uar_thread_query){ .owner = op->owner,
						.session_id = UAR_STR(UAR_REGISTRY_SESSION),
						.done = session_found };
	return store->ops->thread(store, &d->session);
}

/* --- before it ------------------------------------------------------------------------------ */

static void text_kept(struct uar_blob_put *put)
{
	struct definition_writer *d = UAR_OWNER(put, struct definition_writer, blob);
	uar_err e = put->err ? put->err : look_for_session(d);

	if (e)
		end_change(d, e, &put->error);
}

static uar_err go_on_put(struct definition_writer *d, struct uar_definition_change *op)
{
	struct uar_store *store = rt_store(d->w->rt);

	snprintf(op->revision, sizeof op->revision, "%s", d->revision);
	d->blob = (struct uar_blob_put){ .bytes = d->text, .done = text_kept };
	return store->ops->blob_put(store, &d->blob);
}

/* What the row says of the definition so far. */
static uar_err read_row(struct definition_writer *d, struct uar_rows_query *q,
			struct uar_definition_change *op)
{
	struct uar_row_definition row;
	uar_err e = uar_row_unpack(&q->rows[0], &d->arena, &row, sizeof row, &op->error);

	if (e)
		return e;
	d->version = row.version;
	d->active = uar_str_is(row.row.status, "active");
	op->unchanged = d->active && d->has_new && uar_str_is(row.revision, d->revision);
	return UAR_OK;
}

static uar_err go_on(struct definition_writer *d, struct uar_definition_change *op)
{
	op->created = !d->active;
	op->version = d->version + !op->unchanged;
	if (op->unchanged) {
		snprintf(op->revision, sizeof op->revision, "%s", d->revision);
		return UAR_ESKIP;
	}
	if (op->text.p)
		return go_on_put(d, op);
	if (!d->active)
		return uar_error_set(&op->error, UAR_ENOTFOUND,
				     "no %s \"%.*s\" is defined in the database", d->kind->name,
				     UAR_FMT(op->id));
	return look_for_session(d);
}

static void row_found(struct uar_rows_query *q)
{
	struct definition_writer *d = UAR_OWNER(q, struct definition_writer, row);
	struct uar_definition_change *op = change_at_work(d->w);
	uar_err e = q->err == UAR_ENOTFOUND ? UAR_OK : q->err;

	if (e)
		op->error = q->error;
	if (!e && !q->err)
		e = read_row(d, q, op);
	if (!e)
		e = go_on(d, op);
	uar_store_rows_fini(q);
	if (e)
		end_change(d, e == UAR_ESKIP ? UAR_OK : e, &op->error);
}

/* --- agents -------------------------------------------------------------------------------- */

/* An owner may not make the server start programs. */
static uar_err read_agent(struct definition_writer *d, struct uar_definition_change *op)
{
	const struct uar_agent_info *info = &d->def.info;
	uar_err e = uar_definition_read(op->text, &d->def, &op->error);

	if (e)
		return e;
	d->has_new = true;
	d->text = d->def.text;
	d->revision = d->def.revision;
	if (!uar_str_eq(info->agent_id, op->id)) {
		uar_error_where(&op->error, "/id");
		return uar_error_set(&op->error, UAR_EINVALID,
				     "it must be \"%.*s\", as in the path", UAR_FMT(op->id));
	}
	if (uar_str_find(op->id, ':') < op->id.n) { /* such rows are of other kinds */
		uar_error_where(&op->error, "/id");
		return uar_error_set(&op->error, UAR_EINVALID,
				     "the id of an agent in the database has no ':'");
	}
	if (uar_str_starts(info->entry, UAR_STR("backend."))) {
		uar_error_where(&op->error, "/runtime/entry");
		return uar_error_set(&op->error, UAR_EFORBIDDEN,
				     "programs are defined by files of the agents directory alone");
	}
	e = rt_mcp_may_bring(d->w, &d->def, &op->error);
	return e ? e : uar_registry_may_put(d->w->o.registry, &op->owner, op->id, &op->error);
}

static uar_err take_agent(struct definition_writer *d, struct uar_definition_change *op,
			  int64_t now)
{
	struct uar_registry *r = d->w->o.registry;
	uar_err e = UAR_OK;

	if (op->text.p) {
		d->has_new = false;
		e = uar_registry_put(r, &op->owner, &d->def, op->version, now);
	} else {
		uar_registry_drop(r, &op->owner, op->id);
	}
	uar_workers_agents_changed(d->w);
	return e;
}

static void fini_agent(struct definition_writer *d)
{
	uar_definition_fini(&d->def);
}

static const struct kept_kind kept_agent = {
	.name = "agent", .prefix = "", .read = read_agent, .take = take_agent, .fini = fini_agent
};

/* --- the queue ------------------------------------------------------------------------------ */

static uar_err begin_change(struct uar_workers *w)
{
	static const struct kept_kind *const kinds[] = { [UAR_KEPT_AGENT] = &kept_agent,
							 [UAR_KEPT_SKILL] = &rt_kept_skill,
							 [UAR_KEPT_MCP] = &rt_kept_mcp,
							 [UAR_KEPT_MCP_TOOLS] =
								 &rt_kept_mcp_tools };
	struct uar_definition_change *op = change_at_work(w);
	struct uar_store *store = rt_store(w->rt);
	struct definition_writer *d = uar_zalloc(sizeof *d);
	uar_err e;

	if (!d)
		return UAR_ENOMEM;
	d->w = w;
	d->kind = kinds[op->what];
	snprintf(d->id, sizeof d->id, "%s%.*s", d->kind->prefix, UAR_FMT(op->id));
	d->buf = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	uar_arena_init(&d->arena, 0);
	e = op->text.p ? d->kind->read(d, op) : UAR_OK;
	d->row = (struct uar_rows_query){ .owner = op->owner,
					  .kind = UAR_ROW_DEFINITION,
					  .id = uar_str_c(d->id),
					  .limit = 1,
					  .done = row_found };
	if (!e)
		e = store->ops->rows(store, &d->row);
	if (e)
		free_writer(d);
	else
		rt_op_begin(w->rt, &d->under_way, drop_writer);
	return e;
}

uar_err uar_workers_change_definition(struct uar_workers *w, struct uar_definition_change *op)
{
	const void *places[] = { [UAR_KEPT_AGENT] = w->o.registry,
				 [UAR_KEPT_SKILL] = w->o.skills,
				 [UAR_KEPT_MCP] = w->o.mcp,
				 [UAR_KEPT_MCP_TOOLS] = w->o.mcp };
	uar_err e = UAR_OK;

	if (!places[op->what])
		return UAR_ENOTIMPL;
	if (w->changes.count == UAR_LIMIT_DEFINITION_CHANGES)
		return UAR_EBUSY;
	uar_list_add_last(&w->changes.queue, &op->node);
	if (w->changes.count++ == 0)
		e = begin_change(w);
	if (e) {
		uar_list_remove(&op->node);
		w->changes.count--;
	}
	return e;
}
