/* batch_abort.c - a batch that cannot be appended: its copies are thrown away, and
 * each of its commands is answered, kept for another try, or decided again alone. */
#include "engine/batch.h"

static void answer_each(struct uar_list *cmds, uar_err e, const struct uar_error *error)
{
	while (!uar_list_empty(cmds)) {
		struct cmd *c = UAR_OWNER(cmds->next, struct cmd, node);

		uar_list_remove(&c->node);
		rt_cmd_answer(c, e, error);
	}
}

/* What the worker said after something that is lost; whoever waits for it is told. */
static void drop_output(struct live_run *r, uar_err e, const struct uar_error *error)
{
	struct uar_list dropped;

	uar_list_init(&dropped);
	UAR_LIST_EACH (it, &r->agg->queue) {
		struct cmd *c = UAR_OWNER(it, struct cmd, node);

		if (c->run == r && c->from_worker && rt_is_output(c->c.kind))
			rt_cmd_move(c, &dropped);
	}
	answer_each(&dropped, e, error);
}

/* A worker's command that can never be appended would otherwise be lost in
 * silence: the run fails instead, and says why; in plainer words when it was the
 * failure itself that cannot be appended. */
static void fail_run(struct live_run *r, uar_err e, const struct uar_error *error, bool plain)
{
	rt_log_run(r, UAR_LOG_ERROR, "run.append_refused", uar_error_text(error));
	drop_output(r, e, error);
	if (plain && r->plain) {
		rt_run_quarantine(r, e); /* there is no way to end it: the next start tries again */
		return;
	}
	if (plain) {
		rt_owe(r, OWED(UAR_CMD_FAIL));
		r->plain = true;
		r->lost = UAR_EINTERNAL;
		return;
	}
	if (r->lost) { /* the failure of that may have been among what was dropped */
		rt_owe(r, OWED(UAR_CMD_FAIL));
		return;
	}
	rt_send_fail(r, e, "execution", uar_error_text(error));
	r->lost = e;
}

/* The session was made in memory with a number that is no longer its last. Who
 * waits to begin here would find the same: all look it up anew. */
static void refuse_creates(struct agg *a)
{
	struct uar_list *it = a->queue.next;

	while (it != &a->queue) {
		struct cmd *c = UAR_OWNER(it, struct cmd, node);

		it = it->next;
		if (c->c.kind != UAR_CMD_CREATE)
			continue;
		rt_run_over(c->run, UAR_ECONFLICT); /* with all that waits for it */
		it = a->queue.next;
	}
}

static void put_back(struct agg *a, struct uar_list *kept)
{
	UAR_LIST_EACH (it, kept) {
		a->queued++;
		a->queued_bytes += rt_cmd_bytes(UAR_OWNER(it, struct cmd, node));
	}
	uar_list_move_all(&a->queue, kept);
	uar_list_move_all(kept, &a->queue);
}

/* The store or the engine found fault with what one of the commands says, not with
 * the moment. */
static bool blames_content(uar_err e)
{
	return !rt_worth_retrying(e) && e != UAR_EIO && e != UAR_ESYNC && e != UAR_EUNKNOWN &&
	       e != UAR_EDRAINING && e != UAR_ECONFLICT && e != UAR_EEXISTS;
}

/* One bad command takes no good one with it: all are decided again, one by one. */
static bool try_singly(struct batch *b, uar_err e)
{
	struct agg *a = b->agg;
	size_t n = 0;

	if (!b->run->committed || !blames_content(e))
		return false;
	UAR_LIST_EACH (it, &b->cmds)
		n++;
	if (n < 2)
		return false;
	put_back(a, &b->cmds);
	a->careful = n;
	return true;
}

/* Somebody has to do something before it passes. */
static bool may_last(uar_err e)
{
	return e == UAR_EDISKFULL || e == UAR_EHELD || e == UAR_ECLOCK;
}

/* Who asked and waits behind what cannot be written for long gets the same answer: it may be
 * the wish to stop the run that fills the disk. */
static void refuse_askers(struct agg *a, uar_err e, const struct uar_error *error)
{
	struct uar_list asked;

	uar_list_init(&asked);
	UAR_LIST_EACH (it, &a->queue) {
		struct cmd *c = UAR_OWNER(it, struct cmd, node);

		if (!c->from_worker && c->run->committed)
			rt_cmd_move(c, &asked);
	}
	answer_each(&asked, e, error);
}

/* What was decided upon one that has failed can only fail, too: creates are decided again. Where
 * the session itself is not what it was taken for, they are refused together once the last is
 * back, as they would join it again as long as it stays in memory. */
static bool wait_for_row(struct batch *b, uar_err e)
{
	struct rt_row *row = &b->agg->row;

	if (e != UAR_ECONFLICT) {
		row->broken |= row->count > 0;
		return false;
	}
	if (b->run->committed || (!row->broken && !row->count))
		return false;
	row->conflict |= !row->broken;
	row->broken = true;
	return true;
}

/* In the order in which they came, in front of creates that came later and of commands to runs
 * that do not exist yet. What a run that exists has to say stays in front of them. */
static void put_creates_back(struct agg *a)
{
	struct uar_list after;

	uar_list_init(&after);
	UAR_LIST_EACH (it, &a->queue)
		if (!uar_list_empty(&after) || !UAR_OWNER(it, struct cmd, node)->run->committed) {
			uar_list_remove(it);
			uar_list_add_last(&after, it);
		}
	UAR_LIST_EACH (it, &a->row.again) {
		a->queued++;
		a->queued_bytes += rt_cmd_bytes(UAR_OWNER(it, struct cmd, node));
	}
	uar_list_move_all(&a->row.again, &a->queue);
	uar_list_move_all(&after, &a->queue);
}

void rt_batch_leave(struct batch *b)
{
	struct agg *a = b->agg;

	if (uar_list_empty(&b->node))
		return;
	uar_list_remove(&b->node);
	a->row.count--;
	a->rt->in_flight--;
}

void rt_batch_mend_row(struct agg *a)
{
	if (a->row.count || !a->row.broken)
		return;
	a->row.broken = false;
	put_creates_back(a);
	if (a->row.conflict)
		refuse_creates(a);
	a->row.conflict = false;
}

static void abort_batch(struct batch *b, uar_err e, const struct uar_error *error)
{
	struct agg *a = b->agg;
	struct live_run *r = b->run;
	bool made = r->committed, lost = false, plain = false;
	struct uar_list kept;

	uar_runtime_note_failure(a->rt, e);
	if (try_singly(b, e))
		return;
	uar_list_init(&kept);
	if (!made)
		uar_run_fini(&b->r);
	UAR_LIST_EACH (it, &b->cmds) {
		struct cmd *c = UAR_OWNER(it, struct cmd, node);

		uar_list_remove(&c->node);
		if (c->from_worker && rt_worth_retrying(e)) {
			uar_list_add_last(&kept, &c->node);
			continue;
		}
		lost |= c->from_worker && e != UAR_EDRAINING;
		plain |= c->from_worker && (c->c.kind == UAR_CMD_FAIL || c->c.kind == UAR_CMD_LOST);
		rt_cmd_answer(c, e, error);
	}
	if (!made && e == UAR_ECONFLICT)
		refuse_creates(a);
	if (!made)
		rt_run_over(r, e);
	else if (lost)
		fail_run(r, e, error, plain);
	if (uar_list_empty(&kept))
		return;
	put_back(a, &kept);
	rt_agg_later(a);
	if (may_last(e))
		refuse_askers(a, e, error);
}

void rt_batch_abort(struct batch *b, uar_err e, const struct uar_error *error)
{
	rt_batch_leave(b);
	rt_account_follow(b->run, &b->run->state);
	rt_account_written(b->run, false);
	if (!wait_for_row(b, e)) {
		abort_batch(b, e, error);
		return;
	}
	uar_run_fini(&b->r);
	uar_list_move_all(&b->cmds, &b->agg->row.again);
}
