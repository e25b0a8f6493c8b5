/* push_test.c - notifications arrive in order until they are taken, whatever the receivers and the
 * process do meanwhile; one receiver never holds up another. */
#include "mail/push_int.h"

#include "base/alloc.h"
#include "leap.h"
#include "memory_store.h"
#include "stage.h"
#include "test.h"

enum { POSTS = 8000, CROWD = UAR_LIMIT_PUSH_SENDERS + 100, MANY = 3 * UAR_LIMIT_PUSH_FLIGHTS };

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };
static const struct uar_owner another = { UAR_STR("t"), UAR_STR("w"), UAR_STR("v") };

/* Receivers: an address that contains "down" fails, others take it. */
struct fake {
	struct uar_pushes base;
	struct uar_sched *sched;
	struct {
		struct uar_push_post *post; /* NULL: it is over */
		struct uar_task task;
		char url[32], what[24];
		bool taken;
	} at[POSTS];
	size_t count, out, most_out;
	bool mended; /* none is down any more */
	bool silent; /* those that are down say nothing */
};

struct world {
	struct leap leap;
	struct uar_pump pump;
	struct uar_store *store;
	struct uar_model *model;
	struct uar_runtime *rt;
	struct uar_stage_parts parts;
	struct fake *fake;
	uint64_t keep_runs;
};

static struct fake *at_work; /* tasks have no context */

static void answer(struct uar_task *t)
{
	struct fake *f = at_work;
	size_t i = 0;

	while (&f->at[i].task != t)
		i++;
	f->at[i].taken = f->at[i].post->taken = f->mended || !strstr(f->at[i].url, "down");
	snprintf(f->at[i].post->reason, sizeof f->at[i].post->reason, "because");
	f->out--;
	struct uar_push_post *post = f->at[i].post;

	f->at[i].post = NULL;
	post->done(post);
}

/* "task", "statusUpdate WORKING", ... */
static void note_what(char *out, size_t size, uar_str body)
{
	uar_str state = UAR_STR("\"state\":\"TASK_STATE_");
	size_t end = uar_str_find(uar_str_from(body, 2), '"');
	uar_str rest = body;

	while (rest.n && !uar_str_starts(rest, state))
		rest = uar_str_from(rest, 1);
	rest = rest.n ? uar_str_from(rest, state.n) : UAR_STR("\"");
	snprintf(out, size, "%.*s %.*s", (int)end, body.p + 2, (int)uar_str_find(rest, '"'),
		 rest.p);
}

static uar_err check(struct uar_pushes *base, uar_str url, struct uar_error *error)
{
	(void)base;
	return url.n ? UAR_OK : uar_error_set(error, UAR_EINVALID, "no address");
}

static uar_err post_one(struct uar_pushes *base, struct uar_push_post *post)
{
	struct fake *f = UAR_OWNER(base, struct fake, base);
	size_t i = f->count++;

	CHECK(i < POSTS);
	snprintf(f->at[i].url, sizeof f->at[i].url, "%.*s", UAR_FMT(post->url));
	note_what(f->at[i].what, sizeof f->at[i].what, post->body);
	f->at[i].post = post;
	f->at[i].task.fn = answer;
	f->out++;
	f->most_out = f->out > f->most_out ? f->out : f->most_out;
	if (f->mended || !f->silent || !strstr(f->at[i].url, "down"))
		uar_post(f->sched, &f->at[i].task);
	return UAR_OK;
}

static void cancel(struct uar_pushes *base, struct uar_push_post *post)
{
	struct fake *f = UAR_OWNER(base, struct fake, base);

	for (size_t i = 0; i < f->count; i++)
		if (f->at[i].post == post) {
			uar_unpost(f->sched, &f->at[i].task);
			f->at[i].post = NULL;
			f->out--;
		}
}

static const struct uar_pushes_ops ops = {
	.abi = 1, .size = sizeof ops, .check = check, .post = post_one, .cancel = cancel
};

static const struct uar_seal_key seal = { "a key that outlives the process" };

/* No notification is looked for. */
static void rise_silently(struct world *w)
{
	w->rt = uar_stage_rise(&w->pump, (struct uar_stage_options){ .parts = &w->parts,
								     .store = w->store,
								     .seal = &seal,
								     .keep_runs = w->keep_runs,
								     .scripted = w->model,
								     .pushes = &w->fake->base });
}

static void rise(struct world *w)
{
	rise_silently(w);
	uar_push_recover(w->parts.mailer);
}

static void open_keeping(struct world *w, uint64_t keep_runs)
{
	*w = (struct world){ .fake = uar_zalloc(sizeof *w->fake), .keep_runs = keep_runs };
	at_work = w->fake;
	w->fake->base.ops = &ops;
	w->fake->sched = &w->pump.sched;
	uar_stage_open(&w->pump, &w->store, &w->model);
	leap_init(&w->leap);
	w->pump.sched.clock = &w->leap.clock;
	rise(w);
}

static void open_world(struct world *w)
{
	open_keeping(w, 0);
}

static void close_world(struct world *w)
{
	uar_stage_close(&w->pump, w->store, w->rt, w->model);
	uar_free(w->fake);
}

static void die(struct world *w, size_t keep)
{
	uar_stage_die(&w->pump, w->store, w->rt, keep, &w->model);
	CHECK_INT(w->fake->out, 0);
}

struct guest {
	struct uar_run_create op;
	struct uar_push_op push;
	bool done;
};

static void created(struct uar_run_create *op)
{
	UAR_OWNER(op, struct guest, op)->done = true;
}

static void pushed(struct uar_push_op *op)
{
	((struct guest *)op->ctx)->done = true;
}

static void create(struct world *w, struct guest *g)
{
	*g = (struct guest){ .op = { .owner = g->op.owner.user.n ? g->op.owner : owner,
				     .agent_id = UAR_STR("echo"),
				     .message = UAR_STR("hello"),
				     .done = created } };
	CHECK_INT(uar_runtime_create_run(w->rt, &g->op), UAR_OK);
	uar_pump_until(&w->pump, &g->done);
	CHECK_INT(g->op.err, UAR_OK);
}

static void do_push(struct world *w, struct guest *g)
{
	CHECK_INT(uar_push(w->parts.mailer, &g->push), UAR_OK);
	uar_pump_until(&w->pump, &g->done);
	CHECK_INT(g->push.err, UAR_OK);
}

static void set(struct world *w, struct guest *g, const char *url)
{
	g->done = false;
	g->push = (struct uar_push_op){ .what = UAR_PUSH_SET,
					.owner = g->op.owner,
					.run_id = uar_str_c(g->op.run_id),
					.push = { .id = UAR_STR("c"), .url = uar_str_c(url) },
					.done = pushed,
					.ctx = g };
	do_push(w, g);
}

/* As a client does when the run is over. */
static void set_late(struct world *w, struct guest *g, const char *id, const char *url)
{
	g->done = false;
	g->push = (struct uar_push_op){ .what = UAR_PUSH_SET,
					.owner = g->op.owner,
					.run_id = uar_str_c(g->op.run_id),
					.push = { .id = uar_str_c(id), .url = uar_str_c(url) },
					.after = 1000000,
					.over = true,
					.done = pushed,
					.ctx = g };
	do_push(w, g);
}

/* What the receiver at the address has taken, as one text. */
static const char *taken(const struct world *w, const char *url)
{
	static char text[4096];
	size_t n = 0;

	text[0] = 0;
	for (size_t i = 0; i < w->fake->count; i++)
		if (w->fake->at[i].taken && strcmp(w->fake->at[i].url, url) == 0)
			n += (size_t)snprintf(text + n, sizeof text - n, "%s;",
					      w->fake->at[i].what);
	return text;
}

static size_t tries(const struct world *w, const char *url)
{
	size_t n = 0;

	for (size_t i = 0; i < w->fake->count; i++)
		n += strcmp(w->fake->at[i].url, url) == 0;
	return n;
}

static void settle(struct world *w, int leaps)
{
	for (int i = 0; i < leaps; i++) {
		uar_stage_settle(&w->pump);
		leap_ahead(&w->leap, &w->pump.sched, 800000000);
	}
	uar_stage_settle(&w->pump);
}

static const char ALL[] = "task SUBMITTED;statusUpdate WORKING;artifactUpdate ;"
			  "statusUpdate COMPLETED;";

/* Each of them, in order; one whose acknowledgement was not stored may come twice. */
static void check_complete(const char *text)
{
	CHECK(strstr(text, "artifactUpdate ;statusUpdate COMPLETED;"));
	CHECK(strncmp(text, "task SUBMITTED;", 15) == 0);
	CHECK(strlen(text) < sizeof ALL + 32);
}

TEST(a_task_is_told_in_order, "A2A-10")
{
	struct world w;
	struct guest g = { 0 };

	open_world(&w);
	create(&w, &g);
	set(&w, &g, "http://a");
	settle(&w, 1);
	CHECK_STR(uar_str_c(taken(&w, "http://a")), ALL);
	close_world(&w);
}

TEST(a_receiver_that_never_takes_it_is_dropped, "A2A-10")
{
	struct world w;
	struct guest g = { 0 };

	open_world(&w);
	create(&w, &g);
	set(&w, &g, "http://down");
	settle(&w, 2 * UAR_LIMIT_PUSH_FAILURES);
	CHECK_INT(tries(&w, "http://down"), UAR_LIMIT_PUSH_FAILURES);
	die(&w, SIZE_MAX);
	rise(&w);
	settle(&w, 4);
	CHECK_INT(tries(&w, "http://down"), UAR_LIMIT_PUSH_FAILURES); /* and stays so */
	w.fake->mended = true;
	set(&w, &g, "http://down");
	settle(&w, 4);
	CHECK_STR(uar_str_c(taken(&w, "http://down")), ALL); /* until it is set again */
	close_world(&w);
}

TEST(one_set_again_after_the_end_goes_on_where_it_stood, "A2A-10")
{
	struct world w;
	struct guest g = { 0 };

	open_world(&w);
	create(&w, &g);
	set(&w, &g, "http://down");
	settle(&w, 1);
	set_late(&w, &g, "c", "http://a");
	settle(&w, 1);
	CHECK_STR(uar_str_c(taken(&w, "http://a")), ALL);
	set_late(&w, &g, "c", "http://b");   /* nothing is left, */
	set_late(&w, &g, "new", "http://c"); /* a new one gets only later events */
	settle(&w, 1);
	CHECK_STR(uar_str_c(taken(&w, "http://b")), "");
	CHECK_STR(uar_str_c(taken(&w, "http://c")), "");
	close_world(&w);
}

TEST(one_that_was_dropped_and_is_set_again_goes_on_after_a_crash, "A2A-10")
{
	for (size_t keep = 0; keep < 3; keep++) {
		struct world w;
		struct guest g = { 0 };

		open_world(&w);
		create(&w, &g);
		set(&w, &g, "http://down");
		settle(&w, 2 * UAR_LIMIT_PUSH_FAILURES);
		CHECK_INT(tries(&w, "http://down"), UAR_LIMIT_PUSH_FAILURES);
		set_late(&w, &g, "c", "http://a");
		die(&w, keep);
		rise(&w);
		settle(&w, 2);
		CHECK(strstr(taken(&w, "http://a"), ALL + strlen("task SUBMITTED;")));
		CHECK_INT(tries(&w, "http://down"), UAR_LIMIT_PUSH_FAILURES);
		close_world(&w);
	}
}

/* The process dies after each number of turns, and with each number of appends on the disk. */
TEST(nothing_is_lost_when_the_process_dies, "A2A-10")
{
	for (int turns = 0; turns < 60; turns++) {
		struct world w;
		struct guest g = { 0 };

		open_world(&w);
		create(&w, &g);
		set(&w, &g, "http://a");
		for (int i = 0; i < turns; i++)
			(void)uar_pump_turn(&w.pump);
		die(&w, (size_t)(turns % 3));
		rise(&w);
		settle(&w, 4);
		check_complete(taken(&w, "http://a"));
		die(&w, SIZE_MAX);
		w.fake->count = 0;
		rise(&w);
		settle(&w, 4);
		CHECK_INT(w.fake->count, 0); /* what was taken is not told again */
		close_world(&w);
	}
}

/* The append of each acknowledgement fails once. */
TEST(an_acknowledgement_that_is_not_stored_is_no_acknowledgement, "A2A-10")
{
	static const char *const want[] = {
		"task SUBMITTED;task SUBMITTED;statusUpdate WORKING;artifactUpdate ;"
		"statusUpdate COMPLETED;",
		"task SUBMITTED;statusUpdate WORKING;statusUpdate WORKING;artifactUpdate ;"
		"statusUpdate COMPLETED;",
		"task SUBMITTED;statusUpdate WORKING;artifactUpdate ;artifactUpdate ;"
		"statusUpdate COMPLETED;",
		"task SUBMITTED;statusUpdate WORKING;artifactUpdate ;statusUpdate COMPLETED;"
		"statusUpdate COMPLETED;",
	};

	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		struct world w;
		struct guest g = { 0 };

		open_world(&w);
		create(&w, &g);
		settle(&w, 0);
		set(&w, &g, "http://a");
		while (w.fake->count <= i)
			(void)uar_pump_turn(&w.pump);
		uar_store_memory_fail_next(w.store, UAR_EDISKFULL);
		settle(&w, 2);
		CHECK_STR(uar_str_c(taken(&w, "http://a")), want[i]);
		close_world(&w);
	}
}

/* Those that were silent are answered. */
static void speak(struct world *w)
{
	w->fake->silent = false;
	for (size_t i = 0; i < w->fake->count; i++)
		if (w->fake->at[i].post && strstr(w->fake->at[i].url, "down"))
			uar_post(w->fake->sched, &w->fake->at[i].task);
}

/* Guests with an address each, which begins with the text. */
static void crowd(struct world *w, struct guest *g, char url[][32], size_t n, const char *begins)
{
	for (size_t i = 0; i < n; i++) {
		create(w, &g[i]);
		snprintf(url[i], sizeof url[i], "%s%zu", begins, i);
		set(w, &g[i], url[i]);
	}
	settle(w, 0);
}

TEST(a_receiver_that_hangs_holds_up_no_other, "A2A-10")
{
	static struct guest g[MANY + 2];
	static char url[MANY][32];
	struct world w;

	open_world(&w);
	w.fake->silent = true;
	crowd(&w, g, url, MANY, "http://down/");
	CHECK_INT(w.fake->out, 1);
	create(&w, &g[MANY]);
	set(&w, &g[MANY], "http://a");
	g[MANY + 1].op.owner = another;
	create(&w, &g[MANY + 1]);
	set(&w, &g[MANY + 1], "http://down:81");
	settle(&w, 0);
	CHECK_STR(uar_str_c(taken(&w, "http://a")), ALL);
	CHECK_INT(w.fake->out, 2);
	CHECK_INT(tries(&w, "http://down:81"), 1);
	speak(&w);
	settle(&w, 0);
	for (size_t i = 0; i < MANY; i++)
		CHECK_INT(tries(&w, url[i]), 1);
	CHECK(w.fake->most_out <= 3);
	w.fake->mended = true;
	settle(&w, 1);
	for (size_t i = 0; i < MANY; i++)
		CHECK_STR(uar_str_c(taken(&w, url[i])), ALL);
	CHECK(w.fake->most_out <= UAR_LIMIT_PUSH_OF_LANE + 1);
	close_world(&w);
}

TEST(a_receiver_has_more_places_while_it_takes_what_comes, "A2A-10")
{
	static struct guest g[MANY];
	static char url[MANY][32];
	struct world w;

	open_world(&w);
	w.fake->silent = true;
	crowd(&w, g, url, MANY, "http://down/");
	w.fake->mended = true;
	speak(&w);
	while (w.fake->out < UAR_LIMIT_PUSH_OF_LANE)
		(void)uar_pump_turn(&w.pump);
	w.fake->mended = false;
	w.fake->silent = true;
	settle(&w, 1);
	CHECK_INT(w.fake->most_out, UAR_LIMIT_PUSH_OF_LANE);
	CHECK_INT(w.fake->out, 1);
	close_world(&w);
}

/* Notifications that hang take `part` of the places; one more, of the last guest, is taken. */
static void check_part(struct world *w, struct guest *g, char (*url)[32], size_t part)
{
	CHECK_INT(w->fake->out, part);
	create(w, &g[MANY]);
	set(w, &g[MANY], "http://other");
	settle(w, 0);
	CHECK_STR(uar_str_c(taken(w, "http://other")), ALL);
	speak(w);
	settle(w, 0);
	for (size_t i = 0; i < MANY; i++)
		CHECK_INT(tries(w, url[i]), 1);
	CHECK_INT(w->fake->most_out, part + 1);
}

/* What is down is more than the places that there are. */
TEST(owners_have_a_part_of_the_places_each, "A2A-10")
{
	static struct guest g[MANY + 1];
	static char url[MANY][32];
	struct world w;

	open_world(&w);
	w.fake->silent = true;
	crowd(&w, g, url, MANY, "http://down");
	g[MANY].op.owner = another;
	check_part(&w, g, url, UAR_LIMIT_PUSH_OF_OWNER);
	close_world(&w);
}

/* A host that is down for everybody. */
TEST(a_receiver_has_a_part_of_the_places, "A2A-10")
{
	static struct guest g[MANY + 1];
	static char url[MANY][32], user[MANY][8];
	struct world w;

	open_world(&w);
	w.fake->silent = true;
	for (size_t i = 0; i < MANY; i++) {
		snprintf(user[i], sizeof user[i], "u%zu", i);
		g[i].op.owner = owner;
		g[i].op.owner.user = uar_str_c(user[i]);
	}
	crowd(&w, g, url, MANY, "http://down/");
	check_part(&w, g, url, UAR_LIMIT_PUSH_TO_RECEIVER);
	close_world(&w);
}

/* One address of a host hangs, the one that came last does not. */
TEST(a_host_that_takes_nothing_is_tried_with_the_newest, "A2A-10")
{
	static struct guest g[MANY + 1];
	static char url[MANY][32];
	struct world w;

	open_world(&w);
	w.fake->silent = true;
	crowd(&w, g, url, MANY, "http://host/down/");
	create(&w, &g[MANY]);
	set(&w, &g[MANY], "http://host/a");
	settle(&w, 0);
	CHECK_INT(tries(&w, "http://host/a"), 0);
	CHECK_INT(w.fake->out, 1);
	speak(&w);
	w.fake->silent = true;
	settle(&w, 0);
	CHECK_STR(uar_str_c(taken(&w, "http://host/a")), ALL);
	close_world(&w);
}

/* Configurations wait on the disk when memory has no room; others are sent meanwhile. */
TEST(what_waits_for_a_receiver_needs_bounded_memory, "A2A-10")
{
	static struct guest g[CROWD + 1];
	static char url[CROWD][32];
	struct world w;

	open_world(&w);
	w.fake->silent = true;
	crowd(&w, g, url, CROWD, "http://down/");
	CHECK_INT(w.parts.mailer->push.senders, UAR_LIMIT_PUSH_SENDERS);
	CHECK_INT(w.parts.mailer->push.tasks.used, UAR_LIMIT_PUSH_SENDERS);
	die(&w, SIZE_MAX);
	rise(&w);
	settle(&w, 0);
	CHECK_INT(w.parts.mailer->push.senders, UAR_LIMIT_PUSH_SENDERS);
	CHECK(w.parts.mailer->push.left);
	g[CROWD].op.owner = another;
	create(&w, &g[CROWD]);
	set(&w, &g[CROWD], "http://a");
	settle(&w, 0);
	CHECK_STR(uar_str_c(taken(&w, "http://a")), ALL);
	CHECK(w.parts.mailer->push.senders <= UAR_LIMIT_PUSH_SENDERS);
	w.fake->mended = true;
	speak(&w);
	settle(&w, 1);
	for (size_t i = 0; i < CROWD; i++)
		CHECK_STR(uar_str_c(taken(&w, url[i])), ALL);
	CHECK(!w.parts.mailer->push.left);
	close_world(&w);
}

TEST(a_receiver_is_a_scheme_a_host_and_a_port, "A2A-10")
{
	static const struct {
		const char *url;
		size_t receivers; /* so far */
	} cases[] = {
		{ "http://host/down", 1 },	{ "http://HOST:80/down", 1 },
		{ "http://host?down", 1 },	{ "https://host/down", 2 },
		{ "https://Host:443/down", 2 }, { "http://host:443/down", 3 },
		{ "http://other/down", 4 },
	};
	static struct guest g[ARRAY_LEN(cases)];
	struct world w;

	open_world(&w);
	w.fake->silent = true;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		create(&w, &g[i]);
		set(&w, &g[i], cases[i].url);
		settle(&w, 0);
		CHECK_INT(w.fake->out, cases[i].receivers);
	}
	close_world(&w);
}

TEST(the_place_of_one_that_is_removed_is_free, "A2A-10")
{
	struct world w;
	struct guest g[2] = { 0 };

	open_world(&w);
	w.fake->silent = true;
	for (size_t i = 0; i < ARRAY_LEN(g); i++) {
		create(&w, &g[i]);
		set(&w, &g[i], i ? "http://host/a" : "http://host/down");
	}
	settle(&w, 0);
	CHECK_INT(tries(&w, "http://host/a"), 0);
	g[0].done = false;
	g[0].push = (struct uar_push_op){ .what = UAR_PUSH_REMOVE,
					  .owner = owner,
					  .run_id = uar_str_c(g[0].op.run_id),
					  .id = UAR_STR("c"),
					  .done = pushed,
					  .ctx = &g[0] };
	do_push(&w, &g[0]);
	settle(&w, 0);
	CHECK_STR(uar_str_c(taken(&w, "http://host/a")), ALL);
	close_world(&w);
}

static void rows_done(struct uar_rows_query *q)
{
	q->limit = 0; /* a sign for count_rows() */
}

/* Configurations of the guest's task that are stored. */
static size_t count_rows(struct world *w, const struct guest *g)
{
	struct uar_rows_query q = { .owner = owner,
				    .kind = UAR_ROW_PUSH,
				    .parent = uar_str_c(g->op.run_id),
				    .limit = UAR_LIMIT_PUSH_CONFIGS,
				    .done = rows_done };
	size_t n;

	CHECK_INT(w->store->ops->rows(w->store, &q), UAR_OK);
	while (q.limit)
		(void)uar_pump_turn(&w->pump);
	CHECK_INT(q.err, UAR_OK);
	n = q.row_count;
	uar_store_rows_fini(&q);
	return n;
}

/* A sealed address does not outlive its run, whenever the process dies. */
TEST(configurations_go_with_a_run_that_is_evicted, "A2A-10")
{
	for (int turns = 0; turns < 60; turns++) {
		const char *url = turns % 2 ? "http://a" : "http://down";
		struct guest g[4] = { { .done = false } };
		struct world w;

		open_world(&w);
		for (size_t i = 0; i < ARRAY_LEN(g); i++) {
			create(&w, &g[i]);
			set(&w, &g[i], url);
		}
		settle(&w, 0);
		die(&w, SIZE_MAX);
		w.keep_runs = 2;
		rise(&w);
		for (int i = 0; i < turns / 2; i++)
			(void)uar_pump_turn(&w.pump);
		die(&w, (size_t)(turns / 2 % 3));
		rise(&w);
		settle(&w, 1);
		for (size_t i = 0; i < ARRAY_LEN(g); i++)
			CHECK_INT(count_rows(&w, &g[i]), i >= 2);
		close_world(&w);
	}
}

/* Its receiver has not answered yet, or is tried again later. */
TEST(a_run_that_is_evicted_is_told_no_more, "A2A-10")
{
	for (int silent = 0; silent < 2; silent++) {
		struct guest g[2] = { { .done = false } };
		struct world w;
		size_t before;

		open_keeping(&w, 1);
		w.fake->silent = silent;
		create(&w, &g[0]);
		set(&w, &g[0], "http://down");
		settle(&w, 0);
		CHECK_INT(w.parts.mailer->push.tasks.used, 1);
		before = w.fake->count;
		create(&w, &g[1]);
		settle(&w, 0);
		CHECK_INT(w.parts.mailer->push.tasks.used, 0);
		CHECK_INT(w.parts.mailer->push.watched.count, 0);
		CHECK_INT(w.fake->out, 0);
		settle(&w, 4);
		CHECK_INT(w.fake->count, before);
		close_world(&w);
	}
}

static unsigned long asked, refused;

static int refuse(void *ctx)
{
	(void)ctx;
	return ++asked == refused;
}

/* Once, at each place where memory is asked for. */
TEST(a_notification_outlives_a_shortage_of_memory, "A2A-10")
{
	for (refused = 1; refused < 2000; refused++) {
		struct world w;
		struct guest g = { 0 };
		uar_err e;

		open_world(&w);
		create(&w, &g);
		settle(&w, 0);
		g.done = false;
		g.push = (struct uar_push_op){ .what = UAR_PUSH_SET,
					       .owner = owner,
					       .run_id = uar_str_c(g.op.run_id),
					       .push = { .id = UAR_STR("c"),
							 .url = UAR_STR("http://a") },
					       .done = pushed,
					       .ctx = &g };
		asked = 0;
		uar_alloc_set_hook(refuse, NULL);
		e = uar_push(w.parts.mailer, &g.push);
		if (!e) {
			uar_pump_until(&w.pump, &g.done);
			e = g.push.err;
		}
		uar_stage_settle(&w.pump);
		uar_alloc_set_hook(NULL, NULL);
		if (e) {
			CHECK_INT(e, UAR_ENOMEM);
			set(&w, &g, "http://a");
		}
		settle(&w, 4);
		CHECK(strstr(taken(&w, "http://a"), "artifactUpdate ;statusUpdate COMPLETED;"));
		close_world(&w);
		if (asked < refused)
			break; /* all of them had their turn */
	}
	CHECK(asked < refused);
}

/* Once, at each place where a start asks for memory. */
TEST(a_start_finds_each_task_in_spite_of_a_shortage_of_memory, "A2A-10")
{
	for (refused = 1; refused < 2000; refused++) {
		struct guest g[2] = { { .done = false } };
		struct world w;

		open_world(&w);
		for (size_t i = 0; i < ARRAY_LEN(g); i++) {
			create(&w, &g[i]);
			set(&w, &g[i], i ? "http://down" : "http://down:81");
		}
		settle(&w, 0);
		die(&w, SIZE_MAX);
		w.fake->mended = true;
		rise_silently(&w);
		asked = 0;
		uar_alloc_set_hook(refuse, NULL);
		uar_push_recover(w.parts.mailer);
		uar_stage_settle(&w.pump);
		uar_alloc_set_hook(NULL, NULL);
		settle(&w, 4);
		check_complete(taken(&w, "http://down"));
		check_complete(taken(&w, "http://down:81"));
		close_world(&w);
		if (asked < refused)
			break;
	}
	CHECK(asked < refused);
}

static uar_err refuse_sessions(struct uar_store *store, struct uar_sessions_query *q)
{
	(void)store;
	(void)q;
	return UAR_EBUSY;
}

TEST(a_start_waits_for_a_store_that_is_busy, "A2A-10")
{
	struct world w;
	struct guest g = { 0 };
	const struct uar_store_ops *real;
	struct uar_store_ops busy;

	open_world(&w);
	create(&w, &g);
	set(&w, &g, "http://down");
	settle(&w, 0);
	die(&w, SIZE_MAX);
	w.fake->mended = true;
	rise_silently(&w);
	real = w.store->ops;
	busy = *real;
	busy.sessions = refuse_sessions;
	w.store->ops = &busy;
	uar_push_recover(w.parts.mailer);
	uar_stage_settle(&w.pump);
	w.store->ops = real;
	settle(&w, 2);
	CHECK_STR(uar_str_c(taken(&w, "http://down")), ALL);
	close_world(&w);
}

TEST(a_task_has_so_many_configurations, "A2A-10")
{
	static char id[UAR_LIMIT_PUSH_CONFIGS + 1][8];
	struct world w;
	struct guest g = { 0 };

	open_world(&w);
	create(&w, &g);
	for (size_t i = 0; i <= UAR_LIMIT_PUSH_CONFIGS; i++) {
		snprintf(id[i], sizeof id[i], "c%zu", i);
		g.done = false;
		g.push = (struct uar_push_op){ .what = UAR_PUSH_SET,
					       .owner = owner,
					       .run_id = uar_str_c(g.op.run_id),
					       .push = { .id = uar_str_c(id[i]),
							 .url = UAR_STR("http://a") },
					       .done = pushed,
					       .ctx = &g };
		CHECK_INT(uar_push(w.parts.mailer, &g.push), UAR_OK);
		uar_pump_until(&w.pump, &g.done);
		CHECK_INT(g.push.err, i < UAR_LIMIT_PUSH_CONFIGS ? UAR_OK : UAR_ETOOBIG);
	}
	close_world(&w);
}
