/* entries.c - workers outside the process, as the seed wants them: they report, hand
 * over items, return something, fail, crash, obey a cancel or do not. Places are few,
 * so runs wait for them. Every item has a content of its own, so that one that is
 * lost or doubled is found out. */
#include "sim/world.h"

#include "base/alloc.h"

enum { PLACES = 2, LONG_ITEM = 5000 };

struct uar_entry_call {
	struct sim_world *w;
	size_t index; /* in w->host.calls */
	struct uar_entry_events events;
	char run_id[UAR_UUID_TEXT + 1];
	unsigned left; /* things it does before it ends */
	int64_t sent;  /* bytes of an upload that is under way */
	bool paused, cancelled;
	bool once;  /* its work must not be repeated */
	bool told;  /* that a worker is ready for it */
	bool begun; /* the worker knows of the run */
};

static struct sim_world *world_of(struct uar_entries *h)
{
	return UAR_OWNER(h, struct sim_world, host.base);
}

static uar_err find(struct uar_entries *h, uar_str plugin_id, uar_str entry_id,
		    struct uar_entry_info *out, struct uar_error *error)
{
	(void)h;
	if (!uar_str_is(plugin_id, "sim"))
		return uar_error_set(error, UAR_ENOTFOUND, "no such plugin");
	*out = (struct uar_entry_info){ .plugin_id = UAR_STR("sim"),
					.entry_id = uar_str_is(entry_id, "once") ? UAR_STR("once")
										 : UAR_STR("work"),
					.restart_fails = uar_str_is(entry_id, "once"),
					.concurrency = PLACES };
	return UAR_OK;
}

static uar_err check(struct uar_entries *h, uar_str plugin_id, uar_str entry_id,
		     const struct uar_json *args, struct uar_error *error)
{
	(void)h, (void)plugin_id, (void)entry_id, (void)args, (void)error;
	return UAR_OK;
}

static void each(struct uar_entries *h, void (*fn)(void *ctx, const struct uar_entry_info *info),
		 void *ctx)
{
	(void)h, (void)fn, (void)ctx;
}

static uar_err ask(struct uar_entries *h, uar_str plugin_id, uar_str entry_id,
		   struct uar_entry_slot *slot)
{
	struct sim_world *w = world_of(h);

	(void)plugin_id, (void)entry_id;
	slot->plugin = w;
	slot->granted = w->host.places_taken < PLACES && uar_list_empty(&w->host.slots);
	if (slot->granted) {
		slot->cold = sim_below(w, 2);
		w->host.places_taken++;
		uar_list_init(&slot->node);
		return UAR_OK;
	}
	uar_list_add_last(&w->host.slots, &slot->node);
	return UAR_EBUSY;
}

static void leave(struct uar_entries *h, struct uar_entry_slot *slot)
{
	struct sim_world *w = world_of(h);

	if (!slot->plugin)
		return;
	slot->plugin = NULL;
	uar_list_remove(&slot->node);
	if (slot->granted)
		w->host.places_taken--;
	slot->granted = false;
}

/* Work that must not be repeated is given out once. */
static void begin(struct uar_entry_call *c)
{
	struct sim_world *w = c->w;

	if (!c->told || c->begun)
		return;
	c->begun = true;
	for (size_t i = 0; c->once && i < w->host.once_count; i++)
		if (strcmp(c->run_id, w->host.once[i]) == 0)
			w->host.started_twice = true;
	if (c->once && w->host.once_count < SIM_ONCE)
		snprintf(w->host.once[w->host.once_count++], sizeof w->host.once[0], "%s",
			 c->run_id);
}

static uar_err start(struct uar_entries *h, struct uar_entry_slot *slot,
		     const struct uar_entry_request *r, const struct uar_entry_events *events,
		     struct uar_entry_call **out, struct uar_error *error)
{
	struct sim_world *w = world_of(h);
	struct uar_entry_call *c;

	if (w->host.call_count == SIM_CALLS)
		return uar_error_set(error, UAR_EBUSY, "too many calls at once");
	c = uar_zalloc(sizeof *c);
	if (!c)
		return UAR_ENOMEM;
	slot->plugin = NULL; /* the place goes with the call */
	slot->granted = false;
	c->once = uar_str_is(r->entry_id, "once");
	c->w = w;
	c->events = *events;
	snprintf(c->run_id, sizeof c->run_id, "%.*s", UAR_FMT(r->run_id));
	c->left = (unsigned)sim_below(w, 12);
	c->index = w->host.call_count;
	w->host.calls[w->host.call_count++] = c;
	*out = c;
	return UAR_OK;
}

static void forget(struct uar_entry_call *c)
{
	struct sim_world *w = c->w;

	w->host.calls[c->index] = w->host.calls[--w->host.call_count];
	w->host.calls[c->index]->index = c->index;
	w->host.places_taken--;
	uar_free(c);
}

static void cancel(struct uar_entry_call *c, uar_str reason)
{
	(void)reason;
	c->cancelled = true;
	c->paused = false;
	c->left = (unsigned)sim_below(c->w, 3);
}

static void stop(struct uar_entry_call *c, uar_str reason)
{
	(void)reason;
	forget(c);
}

/* An item that the worker was told is safe. */
static void answer(struct uar_entry_call *c, const struct uar_entry_answer *a)
{
	struct sim_world *w = c->w;
	struct sim_item *it = &w->host.items[w->host.item_count % SIM_ITEMS];

	if (a->err || !a->id.n || w->dead || w->host.item_count >= SIM_ITEMS)
		return;
	w->host.item_count++;
	snprintf(it->run_id, sizeof it->run_id, "%s", c->run_id);
	snprintf(it->id, sizeof it->id, "%.*s", UAR_FMT(a->id));
}

static void pause_call(struct uar_entry_call *c, bool paused)
{
	c->paused = paused;
}

static const struct uar_entries_ops ops = { 1,	    sizeof ops, find,  check,  each,
					    ask,    leave,	start, cancel, stop,
					    answer, pause_call, begin };

/* --- what a worker does ---------------------------------------------------------------- */

static void report(struct uar_entry_call *c)
{
	struct uar_progress p = { .value = (double)sim_below(c->w, 100) / 100,
				  .eta_seconds = -1,
				  .step = (int64_t)sim_below(c->w, 5),
				  .step_total = 5,
				  .stage = UAR_STR("at work") };

	c->events.progress(c->events.ctx, &p);
}

static void hand_over(struct uar_entry_call *c)
{
	struct sim_world *w = c->w;
	bool is_long = sim_below(w, 4) == 0;
	char content[LONG_ITEM + 32];
	struct uar_export x = { .type = UAR_STR("text"), .label = UAR_STR("item") };
	int n = snprintf(content, sizeof content, "item %u ", ++w->host.item_number);

	if (is_long) {
		memset(content + n, 'x', LONG_ITEM);
		n += LONG_ITEM;
	}
	x.content = uar_str_n(content, (size_t)n);
	c->events.exported(c->events.ctx, &x, UAR_STR(""),
			   sim_below(w, 3) ? w->host.item_number : 0);
}

/* Bytes in pieces, then the item that consists of them; or the pieces are left. */
static void upload(struct uar_entry_call *c)
{
	struct sim_world *w = c->w;
	char bytes[100];
	struct uar_piece p = { .name = UAR_STR("up"), .offset = c->sent };
	struct uar_export x = { .type = UAR_STR("binary_url"),
				.label = UAR_STR("item"),
				.upload = UAR_STR("up"),
				.bytes = sim_below(w, 2) ? -1 : c->sent };

	if (c->sent && sim_below(w, 3) == 0) {
		c->sent = 0;
		c->events.exported(c->events.ctx, &x, UAR_STR(""), ++w->host.item_number);
		return;
	}
	memset(bytes, 'u', sizeof bytes);
	p.bytes = uar_str_n(bytes, 1 + (size_t)sim_below(w, sizeof bytes));
	c->sent += (int64_t)p.bytes.n;
	c->events.uploaded(c->events.ctx, &p, ++w->host.item_number);
}

static void end_call(struct uar_entry_call *c)
{
	struct sim_world *w = c->w;
	struct uar_entry_events events = c->events;
	struct uar_entry_end end = { .how = UAR_ENTRY_HOW_FINISHED };
	char result[LONG_ITEM + 32];
	uint64_t choice = sim_below(w, 8);
	int n = snprintf(result, sizeof result, "\"result %u ", ++w->host.item_number);

	if (choice == 0 || (!c->begun && !c->cancelled)) {
		end.how = UAR_ENTRY_HOW_BROKE;
		end.code = UAR_STR("PLUGIN_ERROR");
		end.message = UAR_STR("the seed wants a failure");
		end.details = UAR_STR("{\"exit\":11}");
	} else if (c->cancelled && choice < 5) {
		end.how = UAR_ENTRY_HOW_STOPPED;
	} else if (choice < 6) {
		if (choice == 5) {
			memset(result + n, 'r', LONG_ITEM);
			n += LONG_ITEM;
		}
		result[n++] = '"';
		end.result = uar_str_n(result, (size_t)n);
	}
	forget(c);
	events.done(events.ctx, &end);
}

static bool give_place(struct sim_world *w)
{
	struct uar_entry_slot *slot;

	if (w->host.places_taken >= PLACES || uar_list_empty(&w->host.slots))
		return false;
	slot = UAR_OWNER(w->host.slots.next, struct uar_entry_slot, node);
	uar_list_remove(&slot->node);
	w->host.places_taken++;
	slot->granted = true;
	slot->cold = sim_below(w, 2);
	slot->ready(slot);
	return true;
}

bool sim_entries_step(struct sim_world *w)
{
	struct uar_entry_call *c;

	if (give_place(w))
		return true;
	if (!w->host.call_count)
		return false;
	c = w->host.calls[sim_below(w, w->host.call_count)];
	if (c->paused || (c->told && !c->begun && !c->cancelled))
		return false;
	if (!c->told && !c->cancelled && sim_below(w, 8)) {
		c->told = true;
		c->events.ready(c->events.ctx);
		return true;
	}
	if (!c->left || !c->begun) { /* or it never starts */
		end_call(c);
		return true;
	}
	c->left--;
	switch (sim_below(w, 4)) {
	case 0: hand_over(c); break;
	case 1: upload(c); break;
	default: report(c); break;
	}
	return true;
}

bool sim_entries_idle(const struct sim_world *w)
{
	return !w->host.call_count &&
	       (uar_list_empty(&w->host.slots) || w->host.places_taken >= PLACES);
}

void sim_entries_init(struct sim_world *w)
{
	w->host.base.ops = &ops;
	uar_list_init(&w->host.slots);
}
