/* order.c - the order of a conversation: turns begin in the order in which they were
 * submitted, one at a time, and nobody waits for one that is over. */
#include "event/limits.h"
#include "sim/checker.h"

enum { TURNS = 256 };

struct turn {
	char run_id[UAR_UUID_TEXT + 1];
	char thread_id[UAR_LIMIT_ID_BYTES + 1];
	bool started, ended;
};

struct order {
	struct sim_checker *k;
	struct turn turns[TURNS];
	size_t count;
	uint64_t last;
};

static struct turn *turn_of(struct order *o, uar_str run_id)
{
	for (size_t i = 0; i < o->count; i++)
		if (uar_str_is(run_id, o->turns[i].run_id))
			return &o->turns[i];
	return NULL;
}

static void submitted(struct order *o, const struct uar_event *ev)
{
	struct turn *t = &o->turns[o->count];

	if (o->count == TURNS)
		return;
	*t = (struct turn){ .started = false };
	snprintf(t->run_id, sizeof t->run_id, "%.*s", UAR_FMT(ev->ids[UAR_ID_RUN]));
	snprintf(t->thread_id, sizeof t->thread_id, "%.*s", UAR_FMT(ev->ids[UAR_ID_THREAD]));
	o->count++;
}

static void started(struct order *o, struct turn *t)
{
	for (struct turn *before = o->turns; before < t; before++)
		if (!before->ended && strcmp(before->thread_id, t->thread_id) == 0)
			sim_checker_broken(o->k, "%s began before %s, which %s", t->run_id,
					   before->run_id,
					   before->started ? "is at work" : "waits longer");
	t->started = true;
}

static void look_at(struct order *o, const struct uar_event *ev)
{
	struct turn *t = turn_of(o, ev->ids[UAR_ID_RUN]);

	if (ev->sequence != o->last + 1)
		sim_checker_broken(o->k, "I2: %llu follows %llu in a session",
				   (unsigned long long)ev->sequence, (unsigned long long)o->last);
	o->last = ev->sequence;
	if (ev->cls == UAR_EV_TURN_SUBMITTED)
		submitted(o, ev);
	if (t && ev->cls == UAR_EV_TURN_STARTED)
		started(o, t);
	if (t && (ev->cls == UAR_EV_TURN_COMPLETED || ev->cls == UAR_EV_TURN_FAILED))
		t->ended = true;
}

struct one_read {
	struct uar_read r;
	bool done;
};

static void read_done(struct uar_read *r)
{
	UAR_OWNER(r, struct one_read, r)->done = true;
}

void sim_checker_order(struct sim_checker *k, const struct uar_owner *owner, uar_str session_id)
{
	struct uar_store *disk = k->w->disk;
	struct order o = { .k = k };
	bool more = true;

	while (more) {
		struct one_read one = { .r = { .owner = *owner,
					       .session_id = session_id,
					       .after = o.last,
					       .limit = UAR_LIMIT_READ_PAGE,
					       .done = read_done } };

		if (disk->ops->read(disk, &one.r))
			abort();
		while (!one.done && sim_run_task(k->w))
			;
		for (size_t i = 0; i < one.r.event_count; i++)
			look_at(&o, &one.r.events[i]);
		more = one.r.more && one.r.event_count;
		uar_store_read_fini(&one.r);
	}
}
