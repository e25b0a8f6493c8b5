/* agui_connect.c - a thread for an AG-UI client that comes back: its messages, then its last run.
 *
 * The runs before the last one are folded for their messages, one after the other; the last one
 * is a stream that joins at its last event. A thread that is not there has no messages. */
#include "gate/cursor.h"
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "proto/agui.h"
#include "proto/limits.h"
#include "read/sessions.h"
#include "read/stream.h"

struct connecting {
	struct call *c;
	struct uar_session_op thread;
	const struct uar_json *turn; /* the one whose run comes next; NULL: none */
	uar_str run_id;		     /* of the run that is folded, then of the last one */
	struct uar_run_list known;
	struct uar_stream *stream;
	void *state;
	struct uar_buf history;
	struct gate_view view;
	uar_str thread_id, run_name;
};

static void fold_next(struct connecting *k);

/* --- the answer ------------------------------------------------------------------------------ */

static void release(struct connecting *k)
{
	uar_stream_close(k->stream);
	k->stream = NULL;
	if (k->state)
		uar_agui.end(k->state);
	uar_free(k->state);
	k->state = NULL;
}

static void drop_connecting(struct call *c)
{
	struct connecting *k = c->op;

	release(k);
	uar_buf_fini(&k->history);
}

static void on_gone(struct call *c)
{
	drop_connecting(c);
	gate_call_free(c);
}

static void fail(struct connecting *k, uar_err e, const struct uar_error *error)
{
	struct call *c = k->c;

	c->gone = NULL;
	c->hurry = NULL;
	c->drop = NULL;
	release(k);
	uar_buf_fini(&k->history);
	gate_problem(c, e, error);
}

static void on_hurry(struct call *c)
{
	fail(c->op, UAR_EDRAINING, NULL);
}

static uar_err keep_history(struct connecting *k)
{
	uar_str kept = uar_arena_str(&k->c->arena, uar_buf_str(&k->history));

	uar_buf_fini(&k->history);
	k->c->gone = NULL;
	k->c->hurry = NULL;
	k->c->drop = NULL;
	k->view.options.history = kept;
	k->view.options.earlier = true;
	return kept.p ? UAR_OK : UAR_ENOMEM;
}

/* Nothing is under way: the messages are all that there is. */
static void answer_rest(struct connecting *k)
{
	struct call *c = k->c;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_AGUI_HISTORY * 2);
	struct uar_buf proto = uar_buf_make(UAR_LIMIT_AGUI_HISTORY * 2);
	uar_err e = keep_history(k);

	if (!e)
		e = uar_agui_write_rest(k->thread_id, k->run_name, k->view.options.history, &b);
	if (!e && k->view.proto)
		e = uar_agui_proto_frames(uar_buf_str(&b), &c->g->scratch, &proto);
	if (e || !c->r)
		gate_problem(c, e, NULL);
	else if (k->view.proto)
		gate_answer_type(c, 200, UAR_AGUI_PROTO, uar_buf_str(&proto));
	else
		gate_answer_type(c, 200, "text/event-stream; charset=utf-8", uar_buf_str(&b));
	uar_buf_fini(&b);
	uar_buf_fini(&proto);
}

static void stream_last(struct uar_run_list *q)
{
	struct connecting *k = UAR_OWNER(q, struct connecting, known);
	struct call *c = k->c;
	struct uar_error error = q->error;
	uar_err e = q->err;

	if (!e)
		k->view.cursor = (struct uar_cursor){ q->rows[0].last_run_sequence, UINT32_MAX };
	uar_run_list_fini(q);
	if (e == UAR_ENOTFOUND) { /* it is not kept any more */
		answer_rest(k);
		return;
	}
	if (e) {
		fail(k, e, &error);
		return;
	}
	e = keep_history(k);
	if (e || !c->r)
		gate_problem(c, e, NULL); /* of one who left: frees the call */
	else
		gate_stream_view(c, k->run_id, &k->view);
}

static void show_last(struct connecting *k)
{
	uar_err e;

	k->c->gone = NULL; /* it is freed when the look-up has ended */
	k->c->hurry = NULL;
	k->known = (struct uar_run_list){
		.owner = k->c->owner, .run_id = k->run_id, .limit = 1, .done = stream_last
	};
	e = uar_reader_runs(k->c->g->o.reader, &k->known);
	if (e)
		fail(k, e, NULL);
}

/* --- runs before the last one --------------------------------------------------------------- */

static uar_err on_opened(void *ctx)
{
	(void)ctx;
	return UAR_OK;
}

static uar_err on_events(void *ctx, const struct uar_event *ev, size_t n)
{
	struct connecting *k = ctx;
	struct uar_arena *scratch = &k->c->g->scratch;
	struct uar_buf out = uar_buf_make(UAR_LIMIT_VIEW_FRAMES);
	uar_err e = UAR_OK;

	for (size_t i = 0; i < n && !e; i++) {
		struct uar_frames frames = { .out = &out };

		uar_buf_clear(&out);
		uar_arena_reset(scratch);
		e = uar_agui.encode(k->state, &ev[i], scratch, &frames);
	}
	uar_buf_fini(&out);
	return e;
}

/* What does not fit begins the history anew: the last messages are shown, not the first. */
static uar_err add_messages(struct connecting *k)
{
	size_t before = k->history.n;
	uar_err e = uar_agui_write_messages(k->state, &k->history);

	if (e != UAR_ETOOBIG && k->history.err != UAR_ETOOBIG)
		return e;
	uar_buf_fini(&k->history);
	k->history = uar_buf_make(UAR_LIMIT_AGUI_HISTORY);
	if (!before)
		return UAR_OK;
	e = uar_agui_write_messages(k->state, &k->history);
	return e;
}

static void on_end(void *ctx, uar_err why, const struct uar_error *error)
{
	struct connecting *k = ctx;
	uar_err e = why;

	k->stream = NULL;
	if (!e)
		e = add_messages(k);
	release(k);
	if (e && e != UAR_ENOTFOUND) /* one that is not kept any more is passed over */
		fail(k, e, why ? error : NULL);
	else
		fold_next(k);
}

static uar_err open_run(struct connecting *k)
{
	struct uar_dialect_options none = { 0 };
	struct uar_stream_options o = { .owner = k->c->owner, .run_id = k->run_id, .stored = true };
	uar_err e;

	k->state = uar_zalloc(uar_agui.state_size);
	e = k->state ? uar_agui.begin(k->state, &none) : UAR_ENOMEM;
	o.sink = (struct uar_stream_sink){ on_opened, on_events, on_end, k };
	return e ? e : uar_stream_open(k->c->g->o.reader, &o, &k->stream);
}

/* A turn that was taken back is not shown. */
static const struct uar_json *next_turn(const struct uar_json *turn)
{
	while (turn && (!uar_json_text(turn, "run_id").n ||
			uar_json_bool(uar_json_get(turn, UAR_STR("removed")), false)))
		turn = turn->next;
	return turn;
}

static void fold_next(struct connecting *k)
{
	const struct uar_json *turn = k->turn;
	uar_err e;

	k->run_id = uar_json_text(turn, "run_id");
	k->turn = next_turn(turn->next);
	if (!k->turn) {
		show_last(k);
		return;
	}
	k->c->gone = on_gone;
	k->c->hurry = on_hurry;
	e = open_run(k);
	if (e)
		fail(k, e, NULL);
}

/* --- the thread ----------------------------------------------------------------------------- */

static const struct uar_json *first_turn(const struct uar_json *thread)
{
	const struct uar_json *list = uar_json_get(thread, UAR_STR("turns"));
	const struct uar_json *at = uar_json_first(list);

	for (size_t left = list ? list->count : 0; at && left > UAR_LIMIT_AGUI_HISTORY_RUNS; left--)
		at = at->next;
	return next_turn(at);
}

/* The agents of the turns count, whatever agent the address names. */
static uar_err check_turns(const struct connecting *k, struct uar_error *error)
{
	uar_err e = UAR_OK;

	for (const struct uar_json *t = k->turn; t && !e; t = next_turn(t->next))
		e = gate_check_protocol(k->c, uar_json_text(t, "agent_id"), UAR_PROTOCOL_AG_UI,
					error);
	return e;
}

static void thread_read(struct uar_session_op *op)
{
	struct connecting *k = op->ctx;
	struct uar_error error = op->error;
	const struct uar_json *json = NULL;
	uar_err e = op->err;

	if (!e)
		e = uar_json_parse_copy(uar_buf_str(&op->json), NULL, &k->c->arena, &json, NULL);
	uar_buf_fini(&op->json);
	if (e && e != UAR_ENOTFOUND) {
		fail(k, e, &error);
		return;
	}
	k->turn = first_turn(uar_json_get(json, UAR_STR("thread")));
	e = check_turns(k, &error);
	if (e) {
		fail(k, e, &error);
		return;
	}
	if (!k->c->r)
		fail(k, UAR_EEOF, NULL); /* frees the call */
	else if (k->turn)
		fold_next(k);
	else
		answer_rest(k);
}

static uar_err decode_connect(struct call *c, struct connecting *k, struct uar_error *error)
{
	uar_str version = uar_json_text(c->body, "protocolVersion");
	uar_err e = gate_check_protocol(c, c->params[0], UAR_PROTOCOL_AG_UI, error);

	k->c = c;
	k->history = uar_buf_make(UAR_LIMIT_AGUI_HISTORY);
	k->thread_id = uar_json_text(c->body, "threadId");
	k->run_name = uar_json_text(c->body, "runId");
	if (!e && !uar_str_is_id(k->thread_id)) {
		uar_error_where(error, "/threadId");
		e = uar_error_set(error, UAR_EINVALID, "threadId: the thread to connect to");
	}
	if (!k->run_name.n)
		k->run_name = k->thread_id;
	k->view = (struct gate_view){ .dialect = &uar_agui,
				      .one_segment = true,
				      .proto = gate_accepts_proto(c),
				      .options = { .old_peer = !uar_str_starts(version,
									       UAR_STR("1.")) } };
	return e;
}

void gate_agui_connect(struct call *c)
{
	struct connecting *k = uar_arena_alloc(&c->arena, sizeof *k);
	struct uar_error error = { 0 };
	uar_err e = k ? decode_connect(c, k, &error) : UAR_ENOMEM;

	if (!e) {
		k->thread = (struct uar_session_op){ .owner = c->owner,
						     .thread_id = k->thread_id,
						     .put_cursor = gate_cursor_put,
						     .done = thread_read,
						     .ctx = k };
		c->op = k;
		c->drop = drop_connecting;
		e = uar_read_session(c->g->o.reader, &k->thread);
	}
	if (e) {
		c->drop = NULL;
		gate_problem(c, e, &error);
	}
}
