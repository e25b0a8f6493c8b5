/* create.c - a request for a run becomes a command, after what it needs is known.
 *
 * Long input goes to the blob store first; a named conversation is looked up,
 * so that the run joins its session; then the engine decides. */
#include "base/sha256.h"
#include "engine/limits.h"
#include "engine/create_int.h"

void rt_creation_finish(struct creation *c, uar_err e, const struct uar_error *error)
{
	struct uar_run_create *op = c->op;

	op->err = e;
	if (error && error != &op->error)
		op->error = *error;
	op->error.code = e;
	rt_op_end(&c->under_way);
	rt_creation_end(c);
	op->done(op);
}

static void drop(struct rt_op *under_way)
{
	struct creation *c = UAR_OWNER(under_way, struct creation, under_way);

	uar_unpost(c->rt->o.sched, &c->place_later);
	if (c->request.look)
		c->request.forget(c->request.look);
	rt_creation_end(c);
}

static uar_str own_id(struct creation *c, int which)
{
	uar_uuid_next(&c->rt->ids, c->ids[which]);
	return uar_str_n(c->ids[which], UAR_UUID_TEXT);
}

/* The same again, but for what belongs to the request. */
static struct uar_run_what retry_what(const struct creation *c)
{
	struct uar_run_what what = c->op->parent->what;

	what.attempt++;
	if (uar_run_rare(c->op->parent)->later.blob[0]) {
		what.message = uar_run_message_preview(c->op->parent);
		what.message_blob = uar_run_message_blob(c->op->parent);
		what.message_bytes = uar_run_rare(c->op->parent)->later.bytes;
	}
	what.idempotency_key = c->op->idempotency_key;
	return what;
}

/* What the workers said, and what belongs to the request. */
static struct uar_run_what first_what(const struct creation *c)
{
	const struct uar_run_create *op = c->op;
	struct uar_run_what what = c->request.what;

	what.message = uar_str_utf8_prefix(op->message, UAR_LIMIT_PREVIEW_BYTES);
	what.message_bytes = (int64_t)op->message.n;
	what.message_blob = c->has_blob ? uar_str_c(c->put.sha256) : UAR_STR_NONE;
	what.idempotency_key = op->idempotency_key;
	if (c->has_inputs) {
		what.inputs = uar_str_utf8_prefix(op->inputs, UAR_LIMIT_PREVIEW_BYTES);
		what.inputs_bytes = (int64_t)op->inputs.n;
		what.inputs_blob = uar_str_c(c->put_inputs.sha256);
	}
	what.permit = op->permit;
	if (op->timeout_us)
		what.timeout_us = op->timeout_us;
	else if (!what.timeout_us)
		what.timeout_us = c->rt->o.run_timeout_us;
	return what;
}

static void row_ready(struct uar_runs_query *q)
{
	struct creation *c = UAR_OWNER(q, struct creation, row);
	struct uar_error error = q->error;
	uar_err e = q->err;

	if (!e) {
		const char *status = uar_status_record_parse(q->rows[0].status);

		c->op->existed = true;
		c->op->status = status ? status : "queued";
	}
	uar_store_query_fini(q);
	rt_creation_finish(c, e, &error);
}

/* The key is taken: by the same request, then its run is the answer. */
void rt_creation_resolve(struct creation *c, const struct uar_key_row *taken)
{
	struct uar_run_create *op = c->op;
	uar_err e = UAR_EKEYREUSED;

	if (!uar_str_eq(taken->fingerprint, op->fingerprint)) {
		uar_error_set(&op->error, e, "%s", uar_err_text(e));
		rt_creation_finish(c, e, &op->error);
		return;
	}
	snprintf(op->run_id, sizeof op->run_id, "%.*s", UAR_FMT(taken->made));
	c->row = (struct uar_runs_query){
		.owner = op->owner,
		.run_id = uar_str_c(op->run_id),
		.limit = 1,
		.done = row_ready,
	};
	e = c->rt->o.store->ops->runs(c->rt->o.store, &c->row);
	if (e)
		rt_creation_finish(c, e, NULL);
}

/* --- a request that would be refused: was it not, once? -------------------------- */

static void key_known(struct uar_key_query *q)
{
	struct creation *c = UAR_OWNER(q, struct creation, known);
	struct uar_key_row taken = { q->scope, q->key, uar_str_c(q->fingerprint),
				     uar_str_c(q->made) };

	if (!q->err) {
		c->op->error = (struct uar_error){ 0 };
		rt_creation_resolve(c, &taken);
	} else if (q->err == UAR_ENOTFOUND) {
		rt_creation_finish(c, c->refused, &c->op->error);
	} else {
		rt_creation_finish(c, q->err, &q->error);
	}
}

/* The key's run is the answer even when its plugin, its agent or its fixture is
 * gone since, or takes other arguments now. */
uar_err rt_creation_ask_key(struct creation *c, uar_err refused)
{
	struct uar_store *store = c->rt->o.store;

	c->refused = refused;
	c->known = (struct uar_key_query){
		.owner = c->op->owner,
		.scope = UAR_STR("runs"),
		.key = c->op->idempotency_key,
		.done = key_known,
	};
	return store->ops->key(store, &c->known);
}

static void created(struct cmd *cmd, uar_err e, const struct uar_error *error,
		    const struct uar_run *run)
{
	struct creation *c = cmd->ctx;

	if (e == UAR_EEXISTS) {
		rt_creation_resolve(c, &cmd->taken);
	} else if (e == UAR_ECONFLICT && ++c->tries < UAR_LIMIT_CREATE_TRIES) {
		/* Not from in here: the session with the old number is still in memory. */
		uar_post(c->rt->o.sched, &c->place_later);
	} else {
		if (!e) {
			c->op->status = uar_status_record(run->status);
			c->rt->stats.created++;
			uar_log(c->rt->o.log, UAR_LOG_DEBUG, "run.created",
				{ "run_id", run->id.run_id }, { "plugin_id", run->what.plugin_id },
				{ "entry_id", run->what.entry_id },
				{ "trace_id", run->id.trace_id });
		}
		rt_creation_finish(c, e, error);
	}
}

/* The plugin has no place free, or no process that is ready. Behind another turn it is asked
 * when that is over. */
static bool must_wait(struct live_run *r, const struct uar_run_what *what)
{
	return what->entry == UAR_ENTRY_PLUGIN &&
	       (rt_thread_active(r->agg, uar_str_c(r->thread_id)) != r ||
		!rt_worker_may_begin(r, what->plugin_id, what->entry_id));
}

static struct uar_create command_of(struct creation *c, struct live_run *r, bool new_session,
				    bool new_thread)
{
	const struct uar_run_create *op = c->op;
	struct uar_run_what what = op->parent ? retry_what(c) : first_what(c);

	return (struct uar_create){
		.run_id = uar_str_c(r->run_id),
		.turn_id = op->turn_id.n ? op->turn_id : own_id(c, 1),
		.task_id = op->task_id.n ? op->task_id : own_id(c, 2),
		.thread_id = uar_str_c(r->thread_id),
		.new_session = new_session,
		.new_thread = new_thread,
		.task_given = op->parent ? op->parent->id.task_given : op->task_id.n > 0,
		.wait = must_wait(r, &what),
		.what = what,
		.root_run_id = op->parent ? op->parent->id.root_run_id : UAR_STR_NONE,
		.parent_run_id = op->parent ? op->parent->id.run_id : UAR_STR_NONE,
		.trace_id = op->trace_id,
		.source = op->said.source		   ? uar_str_c(op->said.source)
			  : what.entry == UAR_ENTRY_PLUGIN ? UAR_STR("plugin")
							   : UAR_STR("api"),
		.context = op->context,
		.metadata = op->said.metadata,
	};
}

static uar_err submit(struct creation *c, struct agg *a, bool new_session, bool new_thread)
{
	struct live_run *r = NULL;
	struct cmd *cmd = NULL;
	uar_err e = c->rt->stats.live_runs < UAR_LIMIT_RUNS_LIVE ? UAR_OK : UAR_EBUSY;

	if (!e)
		e = rt_run_make(a, own_id(c, 0), uar_str_c(c->thread_id), &r);
	if (!e) {
		cmd = rt_cmd_make(r, UAR_CMD_CREATE);
		e = cmd ? UAR_OK : UAR_ENOMEM;
	}
	if (!e) {
		r->first_of_thread = new_thread;
		memcpy(c->op->run_id, r->run_id, sizeof r->run_id);
		cmd->c.create = command_of(c, r, new_session, new_thread);
		cmd->done = created;
		cmd->ctx = c;
		if (c->op->idempotency_key.n) {
			c->key = (struct uar_key_row){ UAR_STR("runs"), c->op->idempotency_key,
						       c->op->fingerprint, uar_str_c(r->run_id) };
			cmd->key = &c->key;
		}
		e = rt_cmd_send(cmd);
	}
	if (e) {
		rt_cmd_free(cmd);
		if (r)
			rt_run_free(r);
	}
	return e;
}

void rt_creation_adopt(struct creation *c)
{
	rt_op_end(&c->under_way);
}

void rt_creation_end(struct creation *c)
{
	uar_buf_fini(&c->request.inputs);
	uar_free(c);
}

const struct uar_key_row *rt_creation_key(struct creation *c)
{
	if (!c->op->idempotency_key.n)
		return NULL;
	c->key = (struct uar_key_row){ UAR_STR("runs"), c->op->idempotency_key, c->op->fingerprint,
				       uar_str_c(c->ids[0]) };
	return &c->key;
}

void rt_creation_taken(struct creation *c, const struct uar_key_row *taken)
{
	snprintf(c->known.fingerprint, sizeof c->known.fingerprint, "%.*s",
		 UAR_FMT(taken->fingerprint));
	snprintf(c->known.made, sizeof c->known.made, "%.*s", UAR_FMT(taken->made));
}

uar_str rt_creation_run_id(struct creation *c)
{
	return own_id(c, 0);
}

struct uar_create rt_creation_command(struct creation *c, struct live_run *r, bool new_session,
				      bool new_thread)
{
	r->first_of_thread = new_thread;
	return command_of(c, r, new_session, new_thread);
}

bool rt_creation_stands_apart(const struct creation *c)
{
	return c->op->parent && c->op->plugin_id.n;
}

static void go_on(struct creation *c, uar_err refused);
static void join(struct creation *c, uar_str session_id, uint64_t sequence, bool is_new);

static void session_awake(struct rt_waker *w, uar_err e)
{
	struct creation *c = UAR_OWNER(w, struct creation, waker);

	if (e)
		rt_creation_finish(c, e, NULL);
	else if (rt_agg_find(c->rt, &c->op->owner, uar_str_c(c->session_id)))
		join(c, uar_str_c(c->session_id), 0, false);
	else
		rt_creation_place(c); /* nothing waits there any more */
}

/* Runs of it wait outside of memory: the new one comes behind them. */
static bool wait_for_session(struct creation *c, uar_str session_id, uar_err *e)
{
	c->waker.fn = session_awake;
	if (session_id.p != c->session_id)
		snprintf(c->session_id, sizeof c->session_id, "%.*s", UAR_FMT(session_id));
	return rt_wake(c->rt, &c->op->owner, session_id, &c->waker, e);
}

static void join(struct creation *c, uar_str session_id, uint64_t sequence, bool is_new)
{
	struct agg *a;
	uar_err e = UAR_OK;

	if (!is_new && wait_for_session(c, session_id, &e))
		return;
	if (e) {
		rt_creation_finish(c, e, NULL);
		return;
	}
	a = is_new ? NULL : rt_agg_find(c->rt, &c->op->owner, session_id);
	if (a && c->answer_first) {
		e = rt_thread_answered(a, uar_str_c(c->thread_id), &c->op->error);
		if (e) {
			go_on(c, e);
			return;
		}
	}
	if (rt_creation_stands_apart(c))
		uar_uuid_next(&c->rt->ids, c->thread_id);
	c->looked.sequence = sequence;
	if (!a)
		e = rt_agg_open(c->rt, &c->op->owner, session_id, &c->looked, &a);
	if (!e) {
		rt_agg_hold(a);
		rt_threads_need(a);
		e = submit(c, a, is_new, is_new || rt_creation_stands_apart(c));
		rt_agg_drop(a);
	}
	if (e)
		rt_creation_finish(c, e, NULL);
}

/* A run of that conversation is in memory: its session is the right one. */
static struct agg *live_conversation(const struct creation *c)
{
	struct rt_key k;
	struct live_run *r =
		uar_map_get(&c->rt->threads, rt_key(&k, &c->op->owner, uar_str_c(c->thread_id)));

	return r ? r->agg : NULL;
}

static void found_thread(struct uar_thread_query *q)
{
	struct creation *c = UAR_OWNER(q, struct creation, query);
	struct agg *live = live_conversation(c);

	if (live)
		join(c, live->state.session_id, 0, false);
	else if (q->err == UAR_OK)
		join(c, uar_str_c(q->found_session), q->last_sequence, false);
	else if (q->err == UAR_ENOTFOUND)
		join(c, own_id(c, 3), 0, true);
	else
		rt_creation_finish(c, q->err, &q->error);
}

void rt_creation_place(struct creation *c)
{
	struct uar_run_create *op = c->op;
	struct agg *live;
	uar_err e;

	c->looked.since = c->rt->left.count;
	if (!op->conversation_id.n) {
		uar_uuid_next(&c->rt->ids, c->thread_id);
		join(c, own_id(c, 3), 0, true);
		return;
	}
	snprintf(c->thread_id, sizeof c->thread_id, "%.*s", UAR_FMT(op->conversation_id));
	live = live_conversation(c);
	if (live) {
		join(c, live->state.session_id, 0, false);
		return;
	}
	c->query = (struct uar_thread_query){
		.owner = op->owner,
		.thread_id = uar_str_c(c->thread_id),
		.done = found_thread,
	};
	e = c->rt->o.store->ops->thread(c->rt->o.store, &c->query);
	if (e)
		rt_creation_finish(c, e, NULL);
}

static void place_or_tell(struct creation *c)
{
	if (c->op->ready)
		c->op->ready(c->op, c);
	else if (c->op->task_id.n && !c->task_known)
		rt_creation_find_task(c);
	else
		rt_creation_place(c);
}

static void blob_stored(struct uar_blob_put *put)
{
	struct creation *c = UAR_OWNER(put, struct creation, put);

	if (put->err) {
		rt_creation_finish(c, put->err, &put->error);
		return;
	}
	c->has_blob = true;
	place_or_tell(c);
}

/* rt_creation_place() may finish with an error, which must not happen inside the call. */
static void place_task(struct uar_task *t)
{
	place_or_tell(UAR_OWNER(t, struct creation, place_later));
}

static uar_err store_message(struct creation *c);

static void inputs_stored(struct uar_blob_put *put)
{
	struct creation *c = UAR_OWNER(put, struct creation, put_inputs);
	uar_err e = put->err;

	c->has_inputs = !e;
	if (!e)
		e = store_message(c);
	if (e)
		rt_creation_finish(c, e, &put->error);
}

/* What is too long for an event is kept before it. */
static uar_err store_message(struct creation *c)
{
	struct uar_store *store = c->rt->o.store;

	if (!c->has_inputs && !c->op->parent && !c->op->plugin_id.n &&
	    c->op->inputs.n > UAR_LIMIT_PREVIEW_BYTES) {
		c->put_inputs =
			(struct uar_blob_put){ .bytes = c->op->inputs, .done = inputs_stored };
		return store->ops->blob_put(store, &c->put_inputs);
	}
	if (c->op->message.n <= UAR_LIMIT_PREVIEW_BYTES) {
		uar_post(c->rt->o.sched, &c->place_later);
		return UAR_OK;
	}
	c->put = (struct uar_blob_put){ .bytes = c->op->message, .done = blob_stored };
	return store->ops->blob_put(store, &c->put);
}

/* --- what takes time to be looked for ------------------------------------------------ */

/* c->op->error says why it is refused. */
static void go_on(struct creation *c, uar_err refused)
{
	uar_err e = refused;

	if (!refused)
		e = store_message(c);
	else if (c->op->idempotency_key.n && !rt_creation_ask_key(c, refused))
		return;
	if (e)
		rt_creation_finish(c, e, &c->op->error);
}

static void looked(struct rt_request *q, uar_err e)
{
	go_on(UAR_OWNER(q, struct creation, request), e);
}

static uar_err look(struct creation *c)
{
	struct rt_workers *workers = c->rt->workers;
	uar_err e = c->op->parent ? UAR_ESKIP : workers->ops->look(workers, &c->request);

	return e == UAR_ESKIP ? store_message(c) : e;
}

/* --- the request ------------------------------------------------------------------- */

static uar_err check(struct creation *c)
{
	struct rt_workers *workers = c->rt->workers;
	struct uar_run_create *op = c->op;

	if (op->conversation_id.n && !uar_str_is_id(op->conversation_id)) {
		uar_error_where(&op->error, "/conversation_id");
		return uar_error_set(&op->error, UAR_EINVALID,
				     "conversation_id: 1 to %d visible ASCII characters",
				     UAR_LIMIT_ID_BYTES);
	}
	return workers->ops->check(workers, &c->request);
}

static struct creation *make_creation(struct uar_runtime *rt, struct uar_run_create *op)
{
	struct creation *c = uar_alloc(sizeof *c);

	if (!c)
		return NULL;
	memset(c, 0, offsetof(struct creation, put));
	c->rt = rt;
	c->op = op;
	c->place_later.fn = place_task;
	c->request = (struct rt_request){ .op = op, .looked = looked };
	return c;
}

static uar_err create_run(struct uar_runtime *rt, struct uar_run_create *op, bool answer_first)
{
	struct creation *c;
	uar_err e = rt_takes_new(rt);

	if (e)
		return e;
	c = make_creation(rt, op);
	if (!c)
		return UAR_ENOMEM;
	c->answer_first = answer_first;
	e = rt_check_quota(rt, op);
	e = e ? e : check(c);
	if (!e) {
		e = look(c);
	} else if (op->idempotency_key.n && (e = rt_creation_ask_key(c, e))) {
		op->error = (struct uar_error){ 0 }; /* it tells of another failure */
	}
	if (e)
		rt_creation_end(c);
	else
		rt_op_begin(rt, &c->under_way, drop);
	return e;
}

uar_err uar_runtime_create_run(struct uar_runtime *rt, struct uar_run_create *op)
{
	return create_run(rt, op, false);
}

uar_err uar_runtime_create_turn(struct uar_runtime *rt, struct uar_run_create *op)
{
	return create_run(rt, op, true);
}
