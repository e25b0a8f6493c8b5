/* push_send.c - sends a task's notifications to one configuration: the run in the dialect of A2A.
 *
 * A sender folds the run from its first event on and posts what lies behind its cursor; the next
 * frame leaves when the receiver has taken the last one and that is durable. A bounded number work
 * at once (push_places.c). The fold stays in memory for a while, for the next commit. */
#include "mail/push_int.h"

#include "event/limits.h"
#include "proto/limits.h"

static void sender_continue(struct push_sender *s);

static void sender_read_dropped(struct rt_op *under_way)
{
	(void)under_way; /* the sender goes with the mailer */
}

struct push_sender *rt_push_find(const struct push_task *t, uar_str config_id)
{
	UAR_LIST_EACH (it, (struct uar_list *)&t->senders) {
		struct push_sender *s = UAR_OWNER(it, struct push_sender, node);

		if (!s->gone && uar_str_eq(s->to.id, config_id))
			return s;
	}
	return NULL;
}

/* --- places ----------------------------------------------------------------------------------- */

static bool is_working(const struct push_sender *s)
{
	return s->state == PUSH_READING || s->state == PUSH_POSTING || s->state == PUSH_NOTING;
}

static void leave_place(struct push_sender *s)
{
	uar_list_remove(&s->place);
	s->task->ml->push.idle_count -= s->state == PUSH_IDLE;
	if (is_working(s))
		rt_push_place_free(s);
}

static void forget_fold(struct push_sender *s)
{
	if (s->fold.state)
		uar_a2a.end(s->fold.state);
	uar_free(s->fold.state);
	s->fold.state = NULL;
	if (s->fold.paged)
		uar_store_read_fini(&s->fold.page);
	s->fold.paged = s->fold.ended = false;
	s->fold.last = 0;
	s->fold.rest = UAR_STR_NONE;
	uar_buf_fini(&s->fold.frames);
	s->fold.frames = uar_buf_make(UAR_LIMIT_VIEW_FRAMES);
	uar_arena_reset(&s->fold.scratch);
}

void rt_push_free(struct push_sender *s)
{
	struct uar_mailer *ml = s->task->ml;

	if (s->state == PUSH_POSTING)
		ml->push.port->ops->cancel(ml->push.port, &s->post);
	leave_place(s);
	rt_push_lane_leave(s);
	uar_timer_stop(rt_sched(ml->rt), &s->timer);
	uar_list_remove(&s->node);
	ml->push.senders--;
	forget_fold(s);
	s->task->complete = false;
	uar_buf_fini(&s->fold.frames);
	uar_arena_fini(&s->fold.scratch);
	uar_arena_fini(&s->own);
	uar_free(s);
}

/* The one that is idle for the longest time makes room. */
static void keep_few(struct uar_mailer *ml)
{
	while (ml->push.idle_count > UAR_LIMIT_PUSH_KEPT) {
		struct push_sender *s = UAR_OWNER(ml->push.idle.next, struct push_sender, place);
		struct push_task *t = s->task;

		rt_push_free(s);
		rt_push_rest(t);
	}
}

static void set_idle(struct push_sender *s)
{
	struct uar_mailer *ml = s->task->ml;

	leave_place(s);
	s->state = PUSH_IDLE;
	ml->push.idle_count++;
	uar_list_add_last(&ml->push.idle, &s->place);
	keep_few(ml);
}

static void set_ready(struct push_sender *s)
{
	leave_place(s);
	s->state = PUSH_READY;
	rt_push_ready(s);
}

/* It waits for no place: how long is up to its timer. */
static void set_waiting(struct push_sender *s)
{
	leave_place(s);
	s->state = PUSH_WAITING;
	rt_push_wait(s);
	forget_fold(s);
}

/* What is freed stays a row, which a scan finds when there is room again. */
static void make_room(struct uar_mailer *ml)
{
	struct push_sender *s;

	while (rt_push_load(ml) > UAR_LIMIT_PUSH_SENDERS && (s = rt_push_surplus(ml))) {
		struct push_task *t = s->task;

		ml->push.left = true;
		rt_push_free(s);
		rt_push_rest(t);
	}
}

void rt_push_pump(struct uar_mailer *ml)
{
	struct push_sender *s;

	if (ml->push.pumping)
		return;
	ml->push.pumping = true;
	make_room(ml);
	while (!ml->push.stopped && (s = rt_push_next(ml))) {
		s->state = PUSH_READING;
		sender_continue(s);
	}
	ml->push.pumping = false;
	rt_push_scan_on(ml);
}

/* --- what goes wrong -------------------------------------------------------------------------- */

static void sender_retry(struct uar_timer *t)
{
	struct push_sender *s = UAR_OWNER(t, struct push_sender, timer);

	set_ready(s);
	rt_push_pump(s->task->ml);
}

/* Longer each time, and not all receivers at one moment. */
static void sender_retry_later(struct push_sender *s, int64_t asked_us)
{
	struct uar_mailer *ml = s->task->ml;
	unsigned n = s->tries ? s->tries - 1 : 0;
	const int64_t most_us = UAR_LIMIT_PUSH_RETRY_MAX_SECONDS * 1000000LL,
		      most_asked_us = UAR_LIMIT_PUSH_RETRY_ASKED_SECONDS * 1000000LL;
	int64_t us = (UAR_LIMIT_PUSH_RETRY_MS * 1000LL) << (n < 12 ? n : 12);

	us = us > most_us ? most_us : us;
	us += (int64_t)(uar_rand_u64(rt_rand(ml->rt)) % (uint64_t)(us / 4));
	asked_us = asked_us > most_asked_us ? most_asked_us : asked_us;
	set_waiting(s);
	if (ml->push.stopped)
		return;
	if (uar_timer_set(rt_sched(ml->rt), &s->timer, us < asked_us ? asked_us : us)) {
		struct push_task *t = s->task;

		rt_push_free(s); /* its task's next commit brings another one */
		rt_push_rest(t);
	}
	rt_push_pump(ml);
}

static bool sender_enter_op(struct push_sender *s, enum uar_push_what what,
			    void (*done)(struct uar_push_op *))
{
	s->op = (struct uar_push_op){ .what = what,
				      .id = s->to.id,
				      .sequence = s->fold.last,
				      .frame = s->fold.k,
				      .done = done };
	s->noting = !rt_push_enter(s->task, &s->op);
	return s->noting;
}

/* The configuration is closed, by this sender or by another caller. */
static void sender_close_stored(struct uar_push_op *op)
{
	struct push_sender *s = UAR_OWNER(op, struct push_sender, op);
	struct uar_mailer *ml = s->task->ml;

	s->noting = false;
	if (op->err && !s->gone) {
		sender_retry_later(s, 0);
		return;
	}
	rt_push_free(s); /* its task is at work, and rests afterwards */
	rt_push_pump(ml);
}

static void sender_close(struct push_sender *s, enum uar_push_what what, const char *reason)
{
	if (reason)
		uar_log(rt_log(s->task->ml->rt), UAR_LOG_WARN, "a2a.push_dropped",
			{ "run_id", s->task->run_id }, { "config_id", s->to.id },
			{ "reason", uar_str_c(reason) });
	if (!sender_enter_op(s, what, sender_close_stored)) {
		sender_retry_later(s, 0);
		return;
	}
	s->op.reason = reason ? uar_arena_str(&s->own, uar_str_c(reason)) : UAR_STR("");
	if (is_working(s))
		s->state = PUSH_NOTING;
}

/* The receiver did not take it. */
static void sender_post_failed(struct push_sender *s, const char *reason, int64_t asked_us)
{
	struct uar_mailer *ml = s->task->ml;

	rt_push_taken(s, false);
	s->tries++;
	if (s->tries >= UAR_LIMIT_PUSH_FAILURES) {
		sender_close(s, UAR_PUSH_DROP, reason);
		return;
	}
	uar_log(rt_log(ml->rt), s->tries > 1 ? UAR_LOG_DEBUG : UAR_LOG_WARN, "a2a.push_not_taken",
		{ "run_id", s->task->run_id }, { "config_id", s->to.id },
		{ "reason", uar_str_c(reason) });
	sender_retry_later(s, asked_us);
}

/* --- one notification ------------------------------------------------------------------------- */

static void sender_cursor_stored(struct uar_push_op *op)
{
	struct push_sender *s = UAR_OWNER(op, struct push_sender, op);

	if (s->gone) {
		sender_close_stored(op);
		return;
	}
	s->noting = false;
	if (op->err) {
		sender_retry_later(
			s,
			0); /* it is sent again: the next one may not leave before this is stored */
		return;
	}
	s->sequence = op->sequence;
	s->frame = op->frame;
	s->state = PUSH_READING;
	s->tries = 0;
	if (s->task->ml->push.stopped)
		set_waiting(s);
	else
		sender_continue(s);
}

static void sender_post_done(struct uar_push_post *post)
{
	struct push_sender *s = UAR_OWNER(post, struct push_sender, post);
	struct uar_mailer *ml = s->task->ml;

	s->state = PUSH_READING;
	if (!post->taken) {
		sender_post_failed(s, post->reason, post->retry_after_us);
		return;
	}
	rt_push_taken(s, true);
	if (sender_enter_op(s, UAR_PUSH_TOLD, sender_cursor_stored))
		s->state = PUSH_NOTING;
	else
		sender_retry_later(s, 0);
	rt_push_pump(ml); /* the receiver may have more places now */
}

static void sender_post_frame(struct push_sender *s, uar_str json)
{
	struct uar_pushes *port = s->task->ml->push.port;
	uar_err e;

	s->post = (struct uar_push_post){
		.url = s->to.url,
		.body = json,
		.content_type =
			s->to.old ? UAR_STR("application/json") : UAR_STR("application/a2a+json"),
		.authorization = s->authorization,
		.token = s->to.token,
		.done = sender_post_done,
	};
	e = port->ops->post(port, &s->post);
	if (e)
		sender_post_failed(s, uar_err_text(e), 0);
	else
		s->state = PUSH_POSTING;
}

/* --- the run ---------------------------------------------------------------------------------- */

static bool is_told(const struct push_sender *s)
{
	return s->fold.last < s->sequence || (s->fold.last == s->sequence && s->fold.k <= s->frame);
}

/* True: a frame of the last event is on its way. */
static bool sender_post_next(struct push_sender *s)
{
	uar_str json;

	while (uar_frame_next(&s->fold.rest, &json)) {
		s->fold.k++;
		if (is_told(s))
			continue;
		sender_post_frame(s, json);
		return true;
	}
	return false;
}

static uar_err fold_next(struct push_sender *s)
{
	const struct uar_event *ev = &s->fold.page.events[s->fold.at++];
	struct uar_frames frames = { .out = &s->fold.frames, .run_sequence = ev->run_sequence };
	uar_err e;

	uar_buf_clear(&s->fold.frames);
	uar_arena_reset(&s->fold.scratch);
	e = uar_a2a.encode(s->fold.state, ev, &s->fold.scratch, &frames);
	s->fold.rest = e ? UAR_STR_NONE : uar_buf_str(&s->fold.frames);
	s->fold.k = 0;
	s->fold.last = ev->run_sequence;
	s->fold.ended |= uar_event_ends_run(ev);
	return e;
}

static void sender_page_ready(struct uar_read *r)
{
	struct push_sender *s = UAR_OWNER(r, struct push_sender, fold.page);
	struct push_task *t = s->task;
	struct uar_mailer *ml = t->ml;
	uar_err e = r->err;

	rt_op_end(&s->under_way);
	s->fold.paged = !e;
	s->fold.at = 0;
	if (e)
		uar_store_read_fini(r);
	if (e == UAR_ENOTFOUND) /* the run was evicted meanwhile */
		rt_push_watch(t, false);
	if (s->gone || e == UAR_ENOTFOUND) {
		rt_push_free(s);
		rt_push_rest(t);
		rt_push_pump(ml);
	} else if (ml->push.stopped) {
		set_waiting(s);
	} else if (e == UAR_ECORRUPT) {
		sender_close(s, UAR_PUSH_DROP, "the stored events of the task are damaged");
	} else if (e) {
		sender_retry_later(s, 0);
	} else {
		sender_continue(s);
	}
}

static uar_err begin_fold(struct push_sender *s)
{
	if (s->fold.state)
		return UAR_OK;
	s->fold.state = uar_zalloc(uar_a2a.state_size);
	s->fold.options = (struct uar_dialect_options){ .old_peer = s->to.old,
							.history_length = -1,
							.notices = true };
	return s->fold.state ? uar_a2a.begin(s->fold.state, &s->fold.options) : UAR_ENOMEM;
}

static void sender_read_page(struct push_sender *s)
{
	struct uar_store *store = rt_store(s->task->ml->rt);
	uar_err e = begin_fold(s);

	s->again = false;
	s->fold.page = (struct uar_read){ .owner = s->task->owner,
					  .run_id = s->task->run_id,
					  .after = s->fold.last,
					  .limit = UAR_LIMIT_READ_PAGE,
					  .done = sender_page_ready };
	if (!e)
		e = store->ops->read(store, &s->fold.page);
	if (e)
		sender_retry_later(s, 0);
	else
		rt_op_begin(s->task->ml->rt, &s->under_way, sender_read_dropped);
}

/* Goes on until something has to be waited for. */
static void sender_continue(struct push_sender *s)
{
	uar_err e = UAR_OK;
	bool more;

	if (!s->fold.state) {
		sender_read_page(s);
		return;
	}
	while (!e) {
		if (sender_post_next(s))
			return;
		if (!s->fold.paged || s->fold.at == s->fold.page.event_count)
			break;
		e = fold_next(s);
	}
	more = s->fold.paged && s->fold.page.more;
	if (s->fold.paged)
		uar_store_read_fini(&s->fold.page);
	s->fold.paged = false;
	if (e == UAR_ENOMEM)
		sender_retry_later(s, 0);
	else if (e)
		sender_close(s, UAR_PUSH_DROP, "the task is too large for a notification");
	else if (s->fold.ended)
		sender_close(s, UAR_PUSH_END, NULL);
	else if (more || s->again)
		sender_read_page(s);
	else {
		struct uar_mailer *ml = s->task->ml;

		set_idle(s);
		rt_push_pump(ml);
	}
}

/* --- life ------------------------------------------------------------------------------------- */

void rt_push_poke(struct push_sender *s)
{
	s->again = true;
	if (s->state == PUSH_IDLE)
		set_ready(s);
}

void rt_push_halt(struct push_sender *s)
{
	struct uar_mailer *ml = s->task->ml;

	uar_timer_stop(rt_sched(ml->rt), &s->timer);
	if (s->state == PUSH_POSTING) {
		ml->push.port->ops->cancel(ml->push.port, &s->post);
		set_waiting(s);
	}
}

/* An operation of its own that waits is taken back; one that is at work ends first. */
void rt_push_kill(struct push_sender *s)
{
	if (s->noting && s->task->queue.next != &s->op.node) {
		uar_list_remove(&s->op.node);
		s->task->waiting--;
		s->noting = false;
	}
	s->gone = true;
	if (s->state != PUSH_READING && !s->noting)
		rt_push_free(s);
}

uar_err rt_push_sender(struct push_task *t, const struct uar_row_push *row)
{
	struct push_sender *s = uar_zalloc(sizeof *s);
	uar_err e;

	if (!s)
		return UAR_ENOMEM;
	s->task = t;
	s->state = PUSH_WAITING;
	s->timer.fn = sender_retry;
	s->sequence = (uint64_t)row->sequence;
	s->frame = row->frame;
	s->fold.frames = uar_buf_make(UAR_LIMIT_VIEW_FRAMES);
	uar_list_init(&s->place);
	uar_list_init(&s->under_way.node);
	uar_list_add_last(&t->senders, &s->node);
	t->ml->push.senders++;
	e = rt_push_unseal(t, row, &s->own, &s->to);
	if (e != UAR_ENOMEM)
		s->to.id = uar_arena_str(&s->own, row->config_id);
	if (!e && s->to.scheme.n && s->to.credentials.n)
		s->authorization = uar_arena_printf(&s->own, "%.*s %.*s", UAR_FMT(s->to.scheme),
						    UAR_FMT(s->to.credentials));
	if (e != UAR_ENOMEM && rt_push_lane_enter(s))
		e = UAR_ENOMEM;
	if (e == UAR_ENOMEM || !s->to.id.p || (s->to.credentials.n && !s->authorization.p)) {
		rt_push_free(s);
		return UAR_ENOMEM;
	}
	if (e)
		sender_close(s, UAR_PUSH_DROP,
			     "its address cannot be read: it was sealed with another key");
	else
		set_ready(s);
	return UAR_OK;
}
