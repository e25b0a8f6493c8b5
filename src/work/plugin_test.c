/* plugin_test.c - the worker of plugins over a host that the test plays: items and
 * reports on their way, and what is left when the server goes in the middle. */
#include "engine/engine.h"

#include "stage.h"
#include "core/sizes.h"
#include "memory_store.h"
#include "test.h"

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };

enum { LONG_ITEM = 8000, FLOOD = 1000, LIMIT_US = 60000000, RETRY_US = 1000000 };

/* The host: one entry, one call, and a memory of what was asked of it. */
struct host {
	struct uar_entries port;
	struct uar_entry_events events;
	bool started, paused;
	size_t answers, refused, cancels, stops;
};

static struct host *host_of(struct uar_entry_call *c)
{
	return (struct host *)(void *)c;
}

static uar_err host_find(struct uar_entries *h, uar_str plugin_id, uar_str entry_id,
			 struct uar_entry_info *out, struct uar_error *error)
{
	(void)h, (void)error;
	*out = (struct uar_entry_info){ .plugin_id = plugin_id, .entry_id = entry_id };
	return UAR_OK;
}

static uar_err host_check(struct uar_entries *h, uar_str plugin_id, uar_str entry_id,
			  const struct uar_json *args, struct uar_error *error)
{
	(void)h, (void)plugin_id, (void)entry_id, (void)args, (void)error;
	return UAR_OK;
}

static uar_err host_ask(struct uar_entries *h, uar_str plugin_id, uar_str entry_id,
			struct uar_entry_slot *slot)
{
	(void)plugin_id, (void)entry_id;
	slot->plugin = h;
	slot->granted = true;
	return UAR_OK;
}

static void host_leave(struct uar_entries *h, struct uar_entry_slot *slot)
{
	(void)h;
	slot->plugin = NULL;
}

static uar_err host_start(struct uar_entries *h, struct uar_entry_slot *slot,
			  const struct uar_entry_request *r, const struct uar_entry_events *events,
			  struct uar_entry_call **out, struct uar_error *error)
{
	struct host *host = (struct host *)(void *)h;

	(void)r, (void)error;
	slot->plugin = NULL;
	slot->granted = false;
	host->events = *events;
	host->started = true;
	*out = (struct uar_entry_call *)(void *)h;
	return UAR_OK;
}

static void host_cancel(struct uar_entry_call *c, uar_str reason)
{
	(void)reason;
	host_of(c)->cancels++;
}

static void host_stop(struct uar_entry_call *c, uar_str reason)
{
	(void)reason;
	host_of(c)->stops++;
}

static void host_answer(struct uar_entry_call *c, const struct uar_entry_answer *a)
{
	host_of(c)->answers++;
	host_of(c)->refused += a->err != UAR_OK;
}

static void host_pause(struct uar_entry_call *c, bool paused)
{
	CHECK(host_of(c)->paused != paused);
	host_of(c)->paused = paused;
}

static const struct uar_entries_ops host_ops = {
	.abi = 1,
	.size = sizeof host_ops,
	.find = host_find,
	.check = host_check,
	.ask = host_ask,
	.leave = host_leave,
	.start = host_start,
	.cancel = host_cancel,
	.stop = host_stop,
	.answer = host_answer,
	.pause = host_pause,
};

struct world {
	struct uar_pump pump;
	struct uar_clock clock;
	int64_t now_us;
	struct uar_store *store;
	struct uar_model *model;
	struct uar_runtime *rt;
	struct host host;
	struct uar_run_create op;
	struct uar_watch watch;
	size_t items, ends, time_outs, cancels;
	bool created;
};

static int64_t now(void *ctx)
{
	return ((struct world *)ctx)->now_us;
}

static void on_commit(void *ctx, const struct uar_commit *c)
{
	struct world *w = ctx;

	for (size_t i = 0; i < c->event_count; i++) {
		w->items += c->events[i].cls == UAR_EV_ARTIFACT_CHANGED;
		w->ends += c->events[i].cls == UAR_EV_TASK_ATTEMPT_COMPLETED;
		w->time_outs += c->events[i].cls == UAR_EV_TASK_TIMED_OUT;
		w->cancels += c->events[i].cls == UAR_EV_TASK_CANCELLED;
	}
}

static void on_created(struct uar_run_create *op)
{
	UAR_OWNER(op, struct world, op)->created = true;
}

static void settle(struct world *w)
{
	while (uar_pump_turn(&w->pump))
		;
}

static void rise(struct world *w)
{
	w->host = (struct host){ .port = { &host_ops } };
	w->rt = uar_stage_rise(&w->pump, (struct uar_stage_options){ .store = w->store,
								     .scripted = w->model,
								     .entries = &w->host.port,
								     .export_progress = true });
	w->watch = (struct uar_watch){ .fn = on_commit, .ctx = w };
	uar_runtime_watch(w->rt, &w->watch);
}

/* Until the plugin has its run. */
static void open_world(struct world *w)
{
	*w = (struct world){ .now_us = 1800000000000000 };
	uar_stage_open(&w->pump, &w->store, &w->model);
	w->clock = (struct uar_clock){ now, now, w };
	w->pump.sched.clock = &w->clock;
	rise(w);
	w->op = (struct uar_run_create){ .owner = owner,
					 .plugin_id = UAR_STR("p"),
					 .entry_id = UAR_STR("e"),
					 .message = UAR_STR("{}"),
					 .timeout_us = LIMIT_US,
					 .done = on_created };
	CHECK_INT(uar_runtime_create_run(w->rt, &w->op), UAR_OK);
	settle(w);
	CHECK(w->created && w->host.started);
}

/* The store first, as a server does whose time to stop is over. */
static void close_world(struct world *w)
{
	uar_store_destroy(w->store);
	uar_runtime_destroy(w->rt);
	uar_model_destroy(w->model);
	CHECK(!uar_pump_turn(&w->pump));
	uar_pump_fini(&w->pump);
}

static void export(struct world *w, uar_str content, uint64_t ticket)
{
	struct uar_export x = { .type = UAR_STR("text"), .content = content };

	w->host.events.exported(w->host.events.ctx, &x, UAR_STR(""), ticket);
}

static void upload(struct world *w)
{
	struct uar_piece p = { UAR_STR("up"), 0, UAR_STR("some bytes") };

	w->host.events.uploaded(w->host.events.ctx, &p, 1);
}

static void export_upload(struct world *w)
{
	struct uar_export x = { .type = UAR_STR("binary_url"),
				.upload = UAR_STR("up"),
				.bytes = -1 };

	w->host.events.exported(w->host.events.ctx, &x, UAR_STR(""), 2);
}

static void on_staged(struct uar_upload_op *op)
{
	CHECK_INT(op->err, UAR_OK);
}

/* As if somebody had uploaded over HTTP, then exports its address. */
static void export_staged(struct world *w, const char *id, uint64_t ticket)
{
	char url[200];
	struct uar_export x = { .type = UAR_STR("binary_url") };

	snprintf(url, sizeof url, "http://here/runs/%s/blobs/%s", w->op.run_id, id);
	x.content = uar_str_c(url);
	w->host.events.exported(w->host.events.ctx, &x, UAR_STR(""), ticket);
}

static void stage(struct world *w, const char *id)
{
	struct uar_stage g = { owner, uar_str_c(w->op.run_id), uar_str_c(id) };
	struct uar_upload_op op = {
		.bytes = UAR_STR("some bytes"), .finish = true, .stage = &g, .done = on_staged
	};

	CHECK_INT(w->store->ops->upload(w->store, &op), UAR_OK);
	settle(w);
}

static void report(struct world *w, double value)
{
	struct uar_progress p = { .value = value, .eta_seconds = -1, .step = -1, .step_total = -1 };

	w->host.events.progress(w->host.events.ctx, &p);
}

static void finish(struct world *w)
{
	struct uar_entry_end end = { .how = UAR_ENTRY_HOW_FINISHED };

	w->host.events.done(w->host.events.ctx, &end);
}

/* --- tests ------------------------------------------------------------------------- */

TEST(a_report_that_waits_for_the_end_becomes_an_item_before_it, "")
{
	struct world w;

	open_world(&w);
	report(&w, 0.1);
	w.now_us += 450000;
	report(&w, 0.2);
	w.now_us += 90000;
	report(&w, 0.3); /* too soon after the last one, and late for an item */
	finish(&w);
	settle(&w);
	CHECK_INT(w.items, 2);
	CHECK_INT(w.ends, 1);
	close_world(&w);
}

static void drained(void *ctx)
{
	*(bool *)ctx = true;
}

TEST(a_stop_in_the_middle_of_an_upload_leaves_nothing_behind, "")
{
	for (unsigned stage = 0; stage < 8; stage++) {
		bool done = false;
		struct world w;

		open_world(&w);
		upload(&w);
		if (stage & 1)
			settle(&w);
		if (stage & 2)
			export_upload(&w);
		if (stage & 4)
			uar_runtime_drain(w.rt, drained, &done);
		close_world(&w);
		CHECK(!done);
	}
}

TEST(an_upload_over_http_becomes_an_item_in_its_turn, "EXP-21")
{
	static const char id[] = "0123456789abcdef01234567", none[] = "fedcba9876543210fedcba98";
	struct world w;

	open_world(&w);
	stage(&w, id);
	export_staged(&w, id, 1);
	export(&w, UAR_STR("short"), 2);
	export_staged(&w, none, 3); /* refused */
	export_staged(&w, id, 4);
	finish(&w);
	settle(&w);
	CHECK_INT(w.items, 3);
	CHECK_INT(w.ends, 1);
	close_world(&w);
	for (unsigned turns = 0; turns < 4; turns++) {
		open_world(&w);
		stage(&w, id);
		export_staged(&w, id, 1);
		if (turns & 1)
			finish(&w);
		if (turns & 2)
			uar_pump_turn(&w.pump);
		close_world(&w);
	}
}

TEST(a_plugin_that_does_not_wait_for_its_items_is_held_back, "")
{
	static char content[LONG_ITEM];
	struct world w;
	size_t sent = 0;

	memset(content, 'x', sizeof content);
	open_world(&w);
	while (sent < FLOOD && !w.host.paused) {
		export(&w, uar_str_n(content, sizeof content), 0);
		sent++;
	}
	CHECK(w.host.paused);
	settle(&w);
	CHECK(!w.host.paused);
	CHECK_INT(w.items, sent);
	finish(&w);
	settle(&w);
	CHECK_INT(w.ends, 1);
	close_world(&w);
}

TEST(a_restart_does_not_extend_the_time_of_a_run, "RUN-49")
{
	struct world w;

	open_world(&w);
	w.now_us += LIMIT_US / 2;
	settle(&w);
	uar_stage_die(&w.pump, w.store, w.rt, 0, &w.model);
	rise(&w);
	settle(&w);
	CHECK(w.host.started); /* it goes on */
	w.now_us += LIMIT_US / 2 - 1000;
	settle(&w);
	CHECK_INT(w.time_outs, 0);
	w.now_us += 1000;
	settle(&w);
	CHECK_INT(w.time_outs, 1);
	CHECK_INT(w.host.stops, 1);
	close_world(&w);
}

/* --- a full disk -------------------------------------------------------------------- */

static void settle_while(struct world *w, uar_err refused)
{
	do
		uar_store_memory_fail_next(w->store, refused);
	while (uar_pump_turn(&w->pump));
}

static void settle_without_space(struct world *w)
{
	settle_while(w, UAR_EDISKFULL);
}

/* Until the log is asked again, and can take what waits. */
static void space_again(struct world *w)
{
	uar_store_memory_fail_next(w->store, UAR_OK);
	w->now_us += RETRY_US;
	settle(w);
}

TEST(a_time_limit_ends_the_work_though_the_disk_is_full, "")
{
	struct world w;

	open_world(&w);
	w.now_us += LIMIT_US;
	settle_without_space(&w);
	CHECK_INT(w.host.stops, 1);
	CHECK_INT(w.time_outs, 0);
	space_again(&w);
	CHECK_INT(w.time_outs, 1);
	CHECK_INT(w.host.stops, 1);
	close_world(&w);
}

TEST(a_server_that_stops_ends_the_work_though_the_disk_is_full, "")
{
	struct uar_entry_end end = { .how = UAR_ENTRY_HOW_STOPPED };
	struct world w;

	open_world(&w);
	uar_runtime_cancel_all(w.rt, UAR_STR("the server stops"));
	settle_without_space(&w);
	CHECK_INT(w.host.cancels, 1);
	w.host.events.done(w.host.events.ctx, &end);
	settle_without_space(&w);
	CHECK_INT(w.cancels, 0);
	space_again(&w);
	CHECK_INT(w.cancels, 1);
	close_world(&w);
}

static void on_cancelled(struct uar_run_cancel_op *op)
{
	*(bool *)op->ctx = true;
}

/* A full disk: the work is stopped all the same, and that is recorded later. */
static void cancel_behind_much(uar_err refused, int stops)
{
	bool answered = false;
	struct uar_run_cancel_op op = { .owner = owner, .done = on_cancelled, .ctx = &answered };
	struct world w;
	size_t sent = 0;

	open_world(&w);
	op.run_id = uar_str_c(w.op.run_id);
	while (sent < FLOOD && !w.host.paused) { /* more than one append takes */
		export(&w, UAR_STR("x"), 0);
		sent++;
	}
	CHECK(sent > UAR_LIMIT_DECISION_EVENTS / 2);
	CHECK_INT(uar_runtime_cancel_run(w.rt, &op), UAR_OK);
	settle_while(&w, refused);
	CHECK(answered);
	CHECK_INT(op.err, refused);
	CHECK_INT(w.host.cancels, stops);
	finish(&w);
	space_again(&w);
	CHECK_INT(w.items, sent);
	CHECK_INT(w.cancels, stops);
	close_world(&w);
}

TEST(who_waits_behind_much_that_cannot_be_written_is_answered, "")
{
	cancel_behind_much(UAR_EDISKFULL, 1);
	cancel_behind_much(UAR_EHELD, 0);
	cancel_behind_much(UAR_ECLOCK, 0);
}
