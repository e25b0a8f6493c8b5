/* command.c - commands on their way to the engine: made, merged, bounded. */
#include "core/limits.h"
#include "engine/engine_int.h"
#include "engine/limits.h"

static struct cmd *take(struct uar_runtime *rt)
{
	struct cmd *c;

	if (!rt->cmds.count) {
		c = uar_alloc(sizeof *c);
		if (c)
			c->text = uar_buf_make(UAR_LIMIT_RUN_PENDING_BYTES);
		return c;
	}
	c = UAR_OWNER(rt->cmds.list.prev, struct cmd, node);
	uar_list_remove(&c->node);
	rt->cmds.count--;
	return c;
}

struct cmd *rt_cmd_make(struct live_run *r, enum uar_command_kind kind)
{
	struct cmd *c = take(r->agg->rt);

	if (!c)
		return NULL;
	_Static_assert(offsetof(struct cmd, error) + sizeof c->error + _Alignof(struct cmd) >
			       sizeof *c,
		       "what follows the error would not be cleared");
	memset(&c->run, 0, offsetof(struct cmd, error) - offsetof(struct cmd, run));
	uar_error_clear(&c->error);
	uar_list_init(&c->node);
	c->rt = r->agg->rt;
	c->run = r;
	c->c.kind = kind;
	uar_arena_init(&c->own, UAR_LIMIT_RUN_PENDING_BYTES);
	return c;
}

static void destroy(struct cmd *c)
{
	uar_buf_fini(&c->text);
	uar_free(c);
}

void rt_cmd_free(struct cmd *c)
{
	if (!c)
		return;
	uar_arena_fini(&c->own);
	if (c->rt->cmds.count == UAR_LIMIT_SPARE_COMMANDS ||
	    c->text.cap > UAR_LIMIT_SPARE_COMMAND_BYTES) {
		destroy(c);
		return;
	}
	uar_buf_clear(&c->text);
	uar_list_init(&c->node);
	uar_list_add_last(&c->rt->cmds.list, &c->node);
	c->rt->cmds.count++;
}

void rt_cmd_answer(struct cmd *c, uar_err e, const struct uar_error *error)
{
	const struct uar_run *state = c->run ? &c->run->state : NULL;

	if (c->done)
		c->done(c, e, error, state);
	rt_cmd_free(c);
}

void rt_cmd_free_spare(struct uar_runtime *rt)
{
	UAR_LIST_EACH (it, &rt->cmds.list) {
		uar_list_remove(it);
		destroy(UAR_OWNER(it, struct cmd, node));
	}
	rt->cmds.count = 0;
}

/* Its strings are there before it waits, and stay: what is added is what is taken off. */
size_t rt_cmd_bytes(const struct cmd *c)
{
	return c->text.n + c->own.used;
}

static void enqueue(struct cmd *c)
{
	struct agg *a = c->run->agg;

	uar_list_add_last(&a->queue, &c->node);
	a->queued++;
	a->queued_bytes += rt_cmd_bytes(c);
	a->rt->stats.commands++;
	rt_agg_kick(a);
}

void rt_cmd_move(struct cmd *c, struct uar_list *to)
{
	struct agg *a = c->run->agg;

	uar_list_remove(&c->node);
	uar_list_add_last(to, &c->node);
	a->queued--;
	a->queued_bytes -= rt_cmd_bytes(c);
}

uar_err rt_cmd_send(struct cmd *c)
{
	if (c->run->agg->rt->draining)
		return UAR_EDRAINING;
	if (c->run->agg->queued >= UAR_LIMIT_RUN_PENDING)
		return UAR_EBUSY;
	enqueue(c);
	return UAR_OK;
}

/* The last waiting command of the session, when it is text of the same kind. */
static struct cmd *mergeable(struct live_run *r, enum uar_command_kind kind, size_t more)
{
	struct agg *a = r->agg;
	struct cmd *last;

	if (uar_list_empty(&a->queue))
		return NULL;
	last = UAR_OWNER(a->queue.prev, struct cmd, node);
	if (last->run != r || last->c.kind != kind || last->text.n + more > UAR_LIMIT_DELTA_COMMAND)
		return NULL;
	return last;
}

/* Who is told that there is none will hear when there is. */
bool rt_has_room(struct agg *a)
{
	bool room = a->queued_bytes < UAR_LIMIT_RUN_PENDING_BYTES / 2 &&
		    a->queued < UAR_LIMIT_RUN_PENDING / 2;

	a->held |= !room;
	return room;
}

/* A part of the output is gone, and nobody may take the rest for the whole: the
 * run fails. Its worker is not stopped here, because it is the worker that calls. */
void rt_lose(struct live_run *r, uar_err why)
{
	if (r->lost)
		return;
	r->lost = why;
	rt_log_run(r, UAR_LOG_ERROR, "run.output_lost", uar_err_text(why));
	rt_owe(r, OWED(UAR_CMD_FAIL));
}

/* Adds to a waiting command; what it gathered before stays good. */
static uar_err gather(struct cmd *c, uar_str text)
{
	uar_err e;

	uar_buf_add_str(&c->text, text);
	e = c->text.err;
	c->text.err = UAR_OK;
	return e;
}

static bool send_new(struct live_run *r, struct cmd *c, uar_str text)
{
	uar_err e = c ? gather(c, text) : UAR_ENOMEM;

	if (e) {
		rt_cmd_free(c);
		rt_lose(r, e);
		return false;
	}
	c->from_worker = true;
	enqueue(c);
	return true;
}

static bool send_piece(struct live_run *r, enum uar_command_kind kind, uar_str text)
{
	struct agg *a = r->agg;
	struct cmd *c = mergeable(r, kind, text.n);
	uar_err e;

	if (!c)
		return send_new(r, rt_cmd_make(r, kind), text);
	e = gather(c, text);
	if (e) {
		rt_lose(r, e);
		return false;
	}
	a->queued_bytes += text.n;
	a->rt->stats.merged++;
	return true;
}

bool rt_send_text(struct live_run *r, enum uar_command_kind kind, uar_str text)
{
	while (text.n && !r->lost) {
		uar_str piece = uar_str_utf8_prefix(text, UAR_LIMIT_DELTA_COMMAND);

		if (!send_piece(r, kind, piece))
			return false;
		text = uar_str_from(text, piece.n);
	}
	return !r->lost && rt_has_room(r->agg);
}

/* --- what a run is owed ----------------------------------------------------------- */

void rt_owe(struct live_run *r, uint64_t owed)
{
	if (!r->owed)
		uar_list_add_last(&r->agg->owing, &r->owed_node);
	r->owed |= owed;
	rt_agg_later(r->agg);
}

/* Commands that consist of their kind can be made later; of the others what they
 * said is gone. */
static void owe_command(struct live_run *r, const struct uar_command *c)
{
	uar_runtime_note_failure(r->agg->rt, UAR_ENOMEM);
	if (c->kind == UAR_CMD_FINISH && (c->export.id.n || c->result_refs.ids.n)) {
		rt_lose(r, UAR_ENOMEM); /* its result is gone */
		return;
	}
	switch (c->kind) {
	case UAR_CMD_START:
	case UAR_CMD_FINISH:
	case UAR_CMD_CANCEL:
	case UAR_CMD_STOPPED:
	case UAR_CMD_TIMEOUT:
	case UAR_CMD_DUE:
	case UAR_CMD_RECOVER: rt_owe(r, OWED(c->kind)); break;
	default: rt_lose(r, UAR_ENOMEM); break;
	}
}

bool rt_is_output(enum uar_command_kind kind)
{
	return kind >= UAR_CMD_PREPARED && kind <= UAR_CMD_FAIL;
}

static void tell_worker(struct cmd *c, uar_err e, const struct uar_error *error,
			const struct uar_run *run)
{
	struct rt_sent sent = { c->run, run, &c->c, e, c->ctx };

	(void)error;
	c->sent(&sent);
}

bool rt_send_asked(struct live_run *r, const struct uar_command *command, rt_sent_fn *done,
		   void *ctx)
{
	struct cmd *c = rt_cmd_make(r, command->kind);

	if (c) {
		c->c = *command;
		c->from_worker = true;
		c->done = done ? tell_worker : NULL;
		c->sent = done;
		c->ctx = ctx;
	}
	if (!c || !uar_command_own(&c->c, &c->own)) {
		rt_cmd_free(c);
		return false;
	}
	enqueue(c);
	return true;
}

void rt_send(struct live_run *r, const struct uar_command *command)
{
	if (r->lost && rt_is_output(command->kind))
		return; /* after a loss it has nothing more to say that counts */
	if (!rt_send_asked(r, command, NULL, NULL))
		owe_command(r, command);
}

static bool pay_command(struct live_run *r, enum uar_command_kind kind)
{
	struct cmd *c = rt_cmd_make(r, kind);

	if (!c)
		return false;
	c->from_worker = true;
	if (kind == UAR_CMD_FAIL)
		c->c.fail =
			(struct uar_failure){ uar_str_c(uar_err_token(r->lost)),
					      uar_str_c(uar_err_text(r->lost)),
					      UAR_STR("execution"), uar_err_retryable(r->lost) };
	enqueue(c);
	return true;
}

static void pay_run(struct live_run *r)
{
	if (r->owed & OWED_DEADLINE) {
		r->owed &= ~OWED_DEADLINE;
		rt_deadline_arm(r);
	}
	for (unsigned kind = 0; kind < UAR_CMD_COUNT; kind++)
		if ((r->owed & OWED(kind)) && pay_command(r, (enum uar_command_kind)kind))
			r->owed &= ~OWED(kind);
	if (r->owed)
		rt_agg_later(r->agg);
	else
		uar_list_remove(&r->owed_node);
}

void rt_pay(struct agg *a)
{
	UAR_LIST_EACH (it, &a->owing)
		pay_run(UAR_OWNER(it, struct live_run, owed_node));
}

void rt_send_fail(struct live_run *r, uar_err e, const char *category, const char *why)
{
	struct uar_command c = { .kind = UAR_CMD_FAIL };

	c.fail = (struct uar_failure){ uar_str_c(uar_err_token(e)), uar_str_c(why),
				       uar_str_c(category), uar_err_retryable(e) };
	rt_send(r, &c);
}

bool rt_send_line(struct live_run *r, uar_str json, const struct uar_replay *replay)
{
	struct cmd *c;

	if (r->lost)
		return false;
	c = rt_cmd_make(r, UAR_CMD_REPLAY);
	if (c)
		c->c.replay = *replay;
	if (c && !uar_command_own(&c->c, &c->own)) {
		rt_cmd_free(c);
		c = NULL;
	}
	return send_new(r, c, json) && rt_has_room(r->agg);
}
