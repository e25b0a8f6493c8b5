/* control_history.c - what a fork or a rollback has to know of a turn and of what followed it.
 *
 * The session is the command's meanwhile: no turn begins or ends. The turn is found among the
 * runs of the thread, its place in the log by its first event, and what ran after it by reading
 * the log from there on. */
#include "engine/control_int.h"
#include "engine/limits.h"
#include "event/limits.h"

struct id_list {
	struct uar_buf text; /* JSON strings with commas between them */
	size_t count;
};

struct turn_load {
	struct rt_control *c;
	struct uar_turn_facts facts;
	struct uar_thread_query taken;
	struct uar_runs_query runs;
	struct uar_read read;
	struct id_list turns, calls, artifacts;
	bool asked, done;
	bool any;   /* no turn was named: the one that ended last */
	bool began; /* the turn has, at the place of the log that is read */
	char newest[UAR_LIMIT_ID_BYTES + 1]; /* the turn that ended last */
	char turn_id[UAR_LIMIT_ID_BYTES + 1], run_id[UAR_LIMIT_ID_BYTES + 1];
	char before[UAR_LIMIT_ID_BYTES + 1];
};

static void look_for_turn(struct turn_load *l);

static bool needs_turn(const struct rt_control *c)
{
	enum uar_control_kind kind = c->in.kind;

	return kind == UAR_CTL_FORK_THREAD || kind == UAR_CTL_ROLLBACK_THREAD ||
	       (kind == UAR_CTL_SPAWN_SUBAGENT &&
		!rt_thread_at_work(c->agg, c->in.spawn_subagent.thread_id));
}

static void free_lists(struct turn_load *l)
{
	uar_buf_fini(&l->turns.text);
	uar_buf_fini(&l->calls.text);
	uar_buf_fini(&l->artifacts.text);
}

static void clear_lists(struct turn_load *l)
{
	struct id_list *all[] = { &l->turns, &l->calls, &l->artifacts };

	free_lists(l);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		*all[i] = (struct id_list){ .text = uar_buf_make(UAR_LIMIT_EVENT_BYTES) };
}

void rt_control_turn_forget(struct rt_control *c)
{
	struct turn_load *l = c->turn;

	c->turn = NULL;
	c->in.turn = NULL;
	if (!l)
		return;
	uar_store_query_fini(&l->runs);
	uar_store_read_fini(&l->read);
	free_lists(l);
	uar_free(l);
}

static void ready(struct turn_load *l, bool found)
{
	l->done = true;
	l->c->in.turn = found || l->facts.thread_taken ? &l->facts : NULL;
	rt_control_decide(l->c);
}

/* --- what followed it ------------------------------------------------------------------------ */

static uar_err add_id(struct id_list *list, uar_str id, struct uar_error *error)
{
	if (list->count == UAR_LIMIT_ROLLBACK_IDS)
		return uar_error_set(error, UAR_ETOOBIG,
				     "one rollback takes back at most %d turns, calls or artifacts",
				     UAR_LIMIT_ROLLBACK_IDS);
	uar_buf_printf(&list->text, "%s\"%.*s\"", list->count ? "," : "", UAR_FMT(id));
	list->count++;
	return list->text.err;
}

/* Whether the JSON array of strings has that one. */
static bool is_among(const struct uar_json *array, uar_str id)
{
	const struct uar_json *j = array && array->kind == UAR_JSON_ARRAY ? array->first : NULL;

	while (j && !uar_str_eq(uar_json_str(j, UAR_STR("")), id))
		j = j->next;
	return j != NULL;
}

/* The next id of the list from *at on; none: an empty one. */
static uar_str next_id(const struct id_list *list, size_t *at)
{
	uar_str text = uar_buf_str(&list->text);
	size_t begin = *at;

	while (begin < text.n && text.p[begin] != '"')
		begin++;
	if (begin == text.n)
		return UAR_STR_NONE;
	for (*at = ++begin; text.p[*at] != '"';)
		++*at;
	return uar_str_n(text.p + begin, (*at)++ - begin);
}

static bool list_has(const struct id_list *list, uar_str id)
{
	size_t at = 0;
	uar_str there = next_id(list, &at);

	while (there.n && !uar_str_eq(there, id))
		there = next_id(list, &at);
	return there.n > 0;
}

static uar_err drop_ids(struct id_list *list, const struct uar_json *gone, struct uar_error *error)
{
	struct id_list left = { .text = uar_buf_make(UAR_LIMIT_EVENT_BYTES) };
	size_t at = 0;
	uar_err e = UAR_OK;

	for (uar_str id = next_id(list, &at); id.n && !e; id = next_id(list, &at))
		if (!is_among(gone, id))
			e = add_id(&left, id, error);
	uar_buf_fini(&list->text);
	*list = left;
	return e;
}

/* An earlier rollback: what it took back is not taken back again, and it may have been the turn
 * itself. */
static uar_err note_rollback(struct turn_load *l, const struct uar_event *ev)
{
	struct uar_error *error = &l->c->op->error;
	const struct uar_json *p = NULL, *turns, *affected, *left;
	uar_err e = uar_event_payload(ev, &l->read.arena, &p, NULL);

	if (e)
		return e;
	turns = uar_json_get(p, UAR_STR("removed_turn_ids"));
	affected = uar_json_get(p, UAR_STR("affected"));
	left = uar_json_get(uar_json_get(p, UAR_STR("surviving_baseline")), UAR_STR("turn_id"));
	if (is_among(turns, uar_str_c(l->newest)))
		l->newest[0] = 0;
	if (is_among(turns, uar_str_c(l->turn_id))) {
		l->facts.removed = true;
		if (l->any && left)
			snprintf(l->newest, sizeof l->newest, "%.*s",
				 UAR_FMT(uar_json_str(left, UAR_STR(""))));
	}
	e = drop_ids(&l->turns, turns, error);
	if (!e)
		e = drop_ids(&l->calls, uar_json_get(affected, UAR_STR("tool_call_ids")), error);
	if (!e)
		e = drop_ids(&l->artifacts, uar_json_get(affected, UAR_STR("artifact_ids")), error);
	return e;
}

/* A turn began or ended. Those that did so after the turn itself began follow it, whenever they
 * were submitted. */
static uar_err note_turn(struct turn_load *l, const struct uar_event *ev)
{
	uar_str id = ev->ids[UAR_ID_TURN];

	if (uar_str_is(ev->ids[UAR_ID_RUN], l->run_id)) {
		l->began = true;
		return UAR_OK;
	}
	if (!l->began || uar_str_is(id, l->turn_id))
		return UAR_OK;
	if (ev->cls != UAR_EV_TURN_STARTED)
		snprintf(l->newest, sizeof l->newest, "%.*s", UAR_FMT(id));
	if (l->c->in.kind != UAR_CTL_ROLLBACK_THREAD || list_has(&l->turns, id))
		return UAR_OK;
	return add_id(&l->turns, id, &l->c->op->error);
}

static uar_err note_event(struct turn_load *l, const struct uar_event *ev)
{
	struct uar_error *error = &l->c->op->error;
	bool later = l->c->in.kind == UAR_CTL_ROLLBACK_THREAD && l->turns.count &&
		     !uar_str_is(ev->ids[UAR_ID_RUN], l->run_id);

	switch (ev->cls) {
	case UAR_EV_HISTORY_ROLLBACK_STARTED:
	case UAR_EV_HISTORY_ROLLBACK_COMPLETED: return note_rollback(l, ev);
	case UAR_EV_CONTEXT_COMPACTION_COMPLETED: l->facts.condensed = true; return UAR_OK;
	case UAR_EV_TURN_STARTED:
	case UAR_EV_TURN_COMPLETED:
	case UAR_EV_TURN_FAILED: return note_turn(l, ev);
	case UAR_EV_TOOL_STARTED:
		return later ? add_id(&l->calls, ev->ids[UAR_ID_TOOL_CALL], error) : UAR_OK;
	case UAR_EV_ARTIFACT_CHANGED:
		return later ? add_id(&l->artifacts, ev->ids[UAR_ID_ARTIFACT], error) : UAR_OK;
	default: return UAR_OK; /* nothing that counts here */
	}
}

static uar_str list_text(struct rt_control *c, const struct id_list *list)
{
	return uar_arena_printf(&c->rows, "[%.*s]", UAR_FMT(uar_buf_str(&list->text)));
}

static void all_read(struct turn_load *l)
{
	struct rt_control *c = l->c;

	if (l->any && l->newest[0]) { /* it ran later, or is what a rollback left */
		memcpy(l->turn_id, l->newest, sizeof l->turn_id);
		l->began = false;
		l->facts = (struct uar_turn_facts){ .thread_taken = l->facts.thread_taken };
		l->any = false;
		l->before[0] = 0;
		clear_lists(l);
		look_for_turn(l);
		return;
	}
	l->facts.turn_id = uar_str_c(l->turn_id);
	l->facts.later_turns = list_text(c, &l->turns);
	l->facts.tool_calls = list_text(c, &l->calls);
	l->facts.artifacts = list_text(c, &l->artifacts);
	if (!l->facts.later_turns.p || !l->facts.tool_calls.p || !l->facts.artifacts.p)
		rt_control_finish(c, UAR_ENOMEM, NULL);
	else
		ready(l, true);
}

static void page_ready(struct uar_read *read);

static uar_err read_after(struct turn_load *l, uint64_t after)
{
	struct uar_store *store = l->c->rt->o.store;

	l->read = (struct uar_read){
		.owner = l->c->in.owner,
		.session_id = l->c->agg->state.session_id,
		.after = after,
		.limit = UAR_LIMIT_READ_PAGE,
		.done = page_ready,
	};
	return store->ops->read(store, &l->read);
}

static void page_ready(struct uar_read *read)
{
	struct turn_load *l = UAR_OWNER(read, struct turn_load, read);
	struct rt_control *c = l->c;
	uar_err e = read->err;
	uint64_t last = 0;
	bool more = read->more;

	if (e)
		c->op->error = read->error;
	for (size_t i = 0; i < read->event_count && !e; i++) {
		last = read->events[i].sequence;
		if (uar_str_eq(read->events[i].ids[UAR_ID_THREAD], c->in.fork_thread.thread_id))
			e = note_event(l, &read->events[i]);
	}
	uar_store_read_fini(read);
	if (!e && more)
		e = read_after(l, last);
	if (e)
		rt_control_finish(c, e, &c->op->error);
	else if (!more)
		all_read(l);
}

/* --- the turn -------------------------------------------------------------------------------- */

static void first_event(struct uar_read *read)
{
	struct turn_load *l = UAR_OWNER(read, struct turn_load, read);
	struct rt_control *c = l->c;
	const struct uar_json *p = NULL;
	uar_err e = read->err;

	if (!e && !read->event_count)
		e = UAR_ECORRUPT;
	if (!e)
		e = uar_event_payload(&read->events[0], &read->arena, &p, NULL);
	if (!e) {
		uar_str entry = uar_json_text(uar_json_get(p, UAR_STR("options")), "entry");

		l->facts.own_history = uar_entry_is_backend(uar_entry_parse(entry));
		l->facts.sequence = read->events[0].sequence;
	}
	uar_store_read_fini(read);
	clear_lists(l);
	if (!e)
		e = read_after(l, l->facts.sequence);
	if (e)
		rt_control_finish(c, e, NULL);
}

static uar_err read_first(struct turn_load *l)
{
	struct uar_store *store = l->c->rt->o.store;

	l->read = (struct uar_read){
		.owner = l->c->in.owner,
		.run_id = uar_str_c(l->run_id),
		.limit = 1,
		.done = first_event,
	};
	return store->ops->read(store, &l->read);
}

static const struct uar_run_row *turn_among(const struct turn_load *l)
{
	for (size_t i = 0; i < l->runs.row_count; i++) {
		const struct uar_run_row *row = &l->runs.rows[i];

		if (l->any ? row->terminal : uar_str_is(row->turn_id, l->turn_id))
			return row;
	}
	return NULL;
}

static void runs_listed(struct uar_runs_query *q)
{
	struct turn_load *l = UAR_OWNER(q, struct turn_load, runs);
	struct rt_control *c = l->c;
	const struct uar_run_row *row = q->err ? NULL : turn_among(l);
	bool more = !q->err && q->more && q->row_count;
	uar_err e = q->err;

	if (row) {
		snprintf(l->turn_id, sizeof l->turn_id, "%.*s", UAR_FMT(row->turn_id));
		snprintf(l->run_id, sizeof l->run_id, "%.*s", UAR_FMT(row->run_id));
		l->facts.over = row->terminal;
	} else if (more) {
		snprintf(l->before, sizeof l->before, "%.*s",
			 UAR_FMT(q->rows[q->row_count - 1].run_id));
	}
	uar_store_query_fini(q);
	if (row)
		e = read_first(l);
	else if (more)
		look_for_turn(l);
	else if (!e)
		ready(l, false);
	if (e)
		rt_control_finish(c, e, NULL);
}

static void look_for_turn(struct turn_load *l)
{
	struct uar_store *store = l->c->rt->o.store;
	uar_err e;

	l->runs = (struct uar_runs_query){
		.owner = l->c->in.owner,
		.thread_id = l->c->in.fork_thread.thread_id,
		.before = uar_str_c(l->before),
		.limit = UAR_LIMIT_LIST_PAGE,
		.done = runs_listed,
	};
	e = store->ops->runs(store, &l->runs);
	if (e)
		rt_control_finish(l->c, e, NULL);
}

static void thread_looked_up(struct uar_thread_query *q)
{
	struct turn_load *l = UAR_OWNER(q, struct turn_load, taken);

	if (q->err && q->err != UAR_ENOTFOUND) {
		rt_control_finish(l->c, q->err, &q->error);
		return;
	}
	l->facts.thread_taken = !q->err;
	look_for_turn(l);
}

static void begin_load(struct turn_load *l)
{
	struct uar_store *store = l->c->rt->o.store;
	uar_str fork = uar_control_str(&l->c->in, "new_thread_id");
	uar_err e;

	if (!fork.n) {
		look_for_turn(l);
		return;
	}
	l->taken = (struct uar_thread_query){
		.owner = l->c->in.owner,
		.thread_id = fork,
		.done = thread_looked_up,
	};
	e = store->ops->thread(store, &l->taken);
	if (e)
		rt_control_finish(l->c, e, NULL);
}

bool rt_control_turn_load(struct rt_control *c)
{
	uar_str turn_id = uar_control_str(&c->in, "turn_id");
	struct turn_load *l;

	if (!needs_turn(c) || (c->turn && c->turn->done))
		return false;
	l = uar_zalloc(sizeof *l);
	if (!l) {
		rt_control_finish(c, UAR_ENOMEM, NULL);
		return true;
	}
	l->c = c;
	l->any = !turn_id.n;
	snprintf(l->turn_id, sizeof l->turn_id, "%.*s", UAR_FMT(turn_id));
	c->turn = l;
	begin_load(l);
	return true;
}

_Static_assert(offsetof(struct uar_ctl_fork_thread, thread_id) ==
		       offsetof(struct uar_ctl_rollback_thread, thread_id),
	       "both are read through the one");
_Static_assert(offsetof(struct uar_ctl_spawn_subagent, thread_id) ==
		       offsetof(struct uar_ctl_rollback_thread, thread_id),
	       "as is this one");
