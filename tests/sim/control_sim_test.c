/* control_sim_test.c - commands of the control plane from a seed, and a process that dies now
 * and then. A command is repeated with its key until it is answered. In the end every event
 * that an answer named is stored, the log of every session keeps its rules, and a snapshot of its
 * read models with the events behind it is byte for byte the fold from the first event. */
#include "stage.h"
#include "test.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/sha256.h"
#include "core/validate.h"
#include "core/view.h"
#include "engine/control.h"
#include "event/limits.h"
#include "json/limits.h"
#include "sim/world.h"

enum { CLIENTS = 4, COMMANDS = 60, TASKS = 6, THREADS = 2, SESSIONS = 256, NAMED = 4096 };
enum { SETTLE_STEPS = 200000 };

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };

struct life;
struct client {
	struct life *l;
	struct uar_control_op op;
	struct uar_control in;
	struct uar_arena arena;
	bool asked, busy; /* asked: it has a command that is not answered yet */
	char json[400];
	enum uar_control_kind kind;
	char outcome_id[UAR_SHA256_TEXT + 1];
};

struct life {
	struct sim_world w;
	bool parks;	 /* sessions in which all waits leave memory, */
	unsigned parked; /* runs that were seen there */
	struct uar_runtime *rt;
	struct client clients[CLIENTS];
	unsigned commands, kills, answered, refused;
	char sessions[SESSIONS][UAR_LIMIT_ID_BYTES + 1];
	size_t session_count;
	char named[NAMED][UAR_UUID_TEXT + 1]; /* ids of events in answers */
	size_t named_count, found;
	char problem[600];
};

static void broken(struct life *l, const char *what, const char *detail)
{
	if (!l->problem[0])
		snprintf(l->problem, sizeof l->problem, "%s: %s", what, detail);
}

static void begin(struct life *l)
{
	struct uar_stage_options o = { .sched = &l->w.sched,
				       .store = &l->w.store,
				       .rand = &l->w.rand,
				       .scripted = &l->w.model,
				       .provider = &l->w.model,
				       .provider_model = "sim",
				       .park = l->parks,
				       .tools = &l->w.tools.base };

	CHECK_INT(uar_stage_create(&o, &l->rt), UAR_OK);
	CHECK_INT(uar_runtime_recover(l->rt, NULL), UAR_OK);
}

/* --- commands --------------------------------------------------------------------------- */

static const struct {
	const char *name, *format; /* numbers: a task, another one, a thread, any number */
} templates[] = {
	{ "create_task", "{\"task_id\":\"t%1$u\",\"objective\":\"o\",\"agent_id\":\"echo\","
			 "\"input\":{\"message\":\"m\"}}" },
	{ "create_task",
	  "{\"task_id\":\"t%1$u\",\"objective\":\"o\",\"parent_task_id\":\"t%2$u\"}" },
	{ "update_task", "{\"task_id\":\"t%1$u\",\"title\":\"n%4$u\"}" },
	{ "append_task_progress", "{\"task_id\":\"t%1$u\",\"progress\":0.%4$u}" },
	{ "start_task",
	  "{\"task_id\":\"t%1$u\",\"agent_id\":\"echo\",\"input\":{\"message\":\"m\"}}" },
	{ "retry_task", "{\"task_id\":\"t%1$u\"}" },
	{ "pause_task", "{\"task_id\":\"t%1$u\",\"propagation\":\"children\"}" },
	{ "resume_task", "{\"task_id\":\"t%1$u\",\"propagation\":\"all\"}" },
	{ "cancel_task", "{\"task_id\":\"t%1$u\",\"propagation\":\"all\"}" },
	{ "complete_task", "{\"task_id\":\"t%1$u\"}" },
	{ "fail_task", "{\"task_id\":\"t%1$u\",\"message\":\"no\"}" },
	{ "link_tasks", "{\"from\":\"t%1$u\",\"to\":\"t%2$u\",\"kind\":\"blocks\"}" },
	{ "unlink_tasks", "{\"from\":\"t%1$u\",\"to\":\"t%2$u\",\"kind\":\"blocks\"}" },
	{ "submit_turn", "{\"agent_id\":\"echo\",\"message\":\"m%4$u\",\"thread_id\":\"c%3$u\"}" },
	{ "submit_turn", "{\"agent_id\":\"assistant\",\"message\":\"m\",\"thread_id\":\"c%3$u\"}" },
	{ "submit_turn", "{\"agent_id\":\"echo\",\"message\":\"m\",\"thread_id\":\"c%3$u\","
			 "\"policy\":\"interrupt\"}" },
	{ "submit_turn", "{\"agent_id\":\"echo\",\"message\":\"m\",\"thread_id\":\"c%3$u\","
			 "\"turn_id\":\"u%4$u\"}" },
	{ "promote_queued_turn", "{\"thread_id\":\"c%3$u\",\"queued_turn_id\":\"u%4$u\"}" },
	{ "edit_queued_turn", "{\"thread_id\":\"c%3$u\",\"queued_turn_id\":\"u%4$u\","
			      "\"message\":\"n\"}" },
	{ "remove_queued_turn", "{\"thread_id\":\"c%3$u\",\"queued_turn_id\":\"u%4$u\"}" },
	{ "rollback_thread", "{\"thread_id\":\"c%3$u\",\"turn_id\":\"u%4$u\"}" },
	{ "fork_thread", "{\"thread_id\":\"c%3$u\",\"new_thread_id\":\"f%4$u\"}" },
	{ "update_thread", "{\"thread_id\":\"c%3$u\",\"title\":\"n%4$u\"}" },
	{ "pause_queue", "{\"thread_id\":\"c%3$u\"}" },
	{ "resume_queue", "{\"thread_id\":\"c%3$u\"}" },
	{ "resume_thread", "{\"thread_id\":\"c%3$u\"}" },
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void choose(struct life *l, struct client *c)
{
	size_t i = sim_below(&l->w, ARRAY_LEN(templates));
	unsigned numbers[] = { (unsigned)sim_below(&l->w, TASKS), (unsigned)sim_below(&l->w, TASKS),
			       (unsigned)sim_below(&l->w, THREADS),
			       (unsigned)sim_below(&l->w, 10) };
	char key[32];

	snprintf(c->json, sizeof c->json, templates[i].format, numbers[0], numbers[1], numbers[2],
		 numbers[3]);
	c->kind = uar_control_kind_of(uar_str_c(templates[i].name));
	snprintf(key, sizeof key, "key %u", l->commands++);
	uar_sha256_hex(uar_str_c(key), c->outcome_id);
	c->asked = true;
}
#pragma GCC diagnostic pop

static void remember_session(struct life *l, uar_str id)
{
	for (size_t i = 0; i < l->session_count; i++)
		if (uar_str_is(id, l->sessions[i]))
			return;
	if (id.n && l->session_count < SESSIONS)
		snprintf(l->sessions[l->session_count++], sizeof l->sessions[0], "%.*s",
			 UAR_FMT(id));
}

static void remember_events(struct life *l, const struct uar_control_op *op)
{
	for (size_t i = 0; i < op->event_count && l->named_count < NAMED; i++)
		snprintf(l->named[l->named_count++], sizeof l->named[0], "%.*s",
			 UAR_FMT(op->events[i].event_id));
}

/* The world is dead: whatever this says, the command is repeated. */
static void answered(struct uar_control_op *op)
{
	struct client *c = op->ctx;
	struct life *l = c->l;

	c->busy = false;
	if (l->w.dead)
		return;
	if (op->err == UAR_EBUSY || op->err == UAR_EDRAINING)
		return;
	c->asked = false;
	if (op->err) {
		l->refused++;
		if (op->err == UAR_EINTERNAL || op->err == UAR_ECORRUPT)
			broken(l, c->json, uar_error_text(&op->error));
		return;
	}
	l->answered++;
	remember_session(l, op->session_id);
	remember_events(l, op);
}

static void send(struct life *l, struct client *c)
{
	const struct uar_json *j;
	struct uar_error error = { 0 };

	uar_arena_reset(&c->arena);
	CHECK_INT(uar_json_parse(uar_str_c(c->json), NULL, &c->arena, &j, NULL), UAR_OK);
	if (uar_control_read(c->kind, j, &c->arena, &c->in, &error)) {
		broken(l, c->json, error.text);
		c->asked = false;
		return;
	}
	c->in.owner = owner;
	c->in.outcome_id = uar_str_c(c->outcome_id);
	c->in.fingerprint = uar_str_c(c->outcome_id);
	c->op = (struct uar_control_op){ .in = &c->in, .done = answered, .ctx = c };
	c->busy = uar_runtime_control(l->rt, &c->op) == UAR_OK;
}

static bool any_busy(const struct life *l)
{
	for (size_t i = 0; i < CLIENTS; i++)
		if (l->clients[i].busy)
			return true;
	return false;
}

static void die_and_rise(struct life *l)
{
	l->kills++;
	sim_kill(&l->w);
	while (any_busy(l) || sim_store_pending(&l->w) || !uar_list_empty(&l->w.tasks))
		sim_step(&l->w);
	uar_runtime_destroy(l->rt);
	sim_reborn(&l->w);
	begin(l);
}

/* --- afterwards ---------------------------------------------------------------------------- */

static void on_violation(void *ctx, const struct uar_violation *v)
{
	char text[500];

	snprintf(text, sizeof text, "%s: %.200s (%s, sequence %llu of %.60s)", v->rule, v->text,
		 v->type, (unsigned long long)v->sequence, v->session_id);
	broken(ctx, "rule", text);
}

struct one_read {
	struct uar_read r;
	bool done;
};

static void read_done(struct uar_read *r)
{
	UAR_OWNER(r, struct one_read, r)->done = true;
}

static void look_for(struct life *l, const struct uar_event *ev)
{
	for (size_t i = 0; i < l->named_count; i++)
		l->found += uar_str_is(ev->event_id, l->named[i]);
}

/* The read models of a session: folded at one go, and through snapshots. */
struct views {
	struct uar_sview whole, pieces;
};

static void write_view(const struct uar_sview *v, struct uar_buf *out)
{
	*out = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	CHECK_INT(uar_sview_write(v, out), UAR_OK);
}

static void go_through_snapshot(struct uar_sview *v)
{
	struct uar_buf snapshot;

	write_view(v, &snapshot);
	uar_sview_fini(v);
	uar_sview_init(v);
	CHECK_INT(uar_sview_read(v, uar_buf_str(&snapshot), NULL), UAR_OK);
	uar_buf_fini(&snapshot);
}

static void fold_both(struct life *l, struct views *both, const struct uar_event *ev)
{
	CHECK_INT(uar_sview_fold(&both->whole, ev), UAR_OK);
	CHECK_INT(uar_sview_fold(&both->pieces, ev), UAR_OK);
	if (sim_below(&l->w, 16) == 0)
		go_through_snapshot(&both->pieces);
}

static void compare_views(struct life *l, struct views *both, const char *session_id)
{
	struct uar_buf whole, pieces;

	write_view(&both->whole, &whole);
	write_view(&both->pieces, &pieces);
	if (!uar_str_eq(uar_buf_str(&whole), uar_buf_str(&pieces)))
		broken(l, "a snapshot and the rest differ from the fold from zero", session_id);
	uar_buf_fini(&whole);
	uar_buf_fini(&pieces);
	uar_sview_fini(&both->whole);
	uar_sview_fini(&both->pieces);
}

static void check_session(struct life *l, struct uar_validator *v, const char *session_id)
{
	struct uar_store *disk = l->w.disk;
	struct views both;
	uint64_t after = 0;
	bool more = true;

	uar_sview_init(&both.whole);
	uar_sview_init(&both.pieces);
	while (more) {
		struct one_read o = { .r = { .owner = owner,
					     .session_id = uar_str_c(session_id),
					     .after = after,
					     .limit = UAR_LIMIT_READ_PAGE,
					     .done = read_done } };

		if (disk->ops->read(disk, &o.r))
			abort();
		while (!o.done && sim_run_task(&l->w))
			;
		for (size_t i = 0; i < o.r.event_count; i++) {
			CHECK_INT(uar_validator_event(v, &o.r.events[i]), UAR_OK);
			look_for(l, &o.r.events[i]);
			fold_both(l, &both, &o.r.events[i]);
			after = o.r.events[i].sequence;
		}
		more = o.r.more && o.r.event_count;
		uar_store_read_fini(&o.r);
	}
	compare_views(l, &both, session_id);
}

static void check_logs(struct life *l)
{
	struct uar_validator *v = NULL;

	REQUIRE(uar_validator_create(on_violation, l, &v) == UAR_OK);
	for (size_t i = 0; i < l->session_count; i++)
		check_session(l, v, l->sessions[i]);
	uar_validator_destroy(v);
	if (l->found != l->named_count)
		broken(l, "events", "an answer named an event that is not stored once");
}

static bool settled(const struct life *l)
{
	for (size_t i = 0; i < CLIENTS; i++)
		if (l->clients[i].busy || l->clients[i].asked)
			return false;
	return l->commands >= COMMANDS;
}

static void step_client(struct life *l)
{
	struct client *c = &l->clients[sim_below(&l->w, CLIENTS)];

	if (!c->busy && !c->asked && l->commands < COMMANDS)
		choose(l, c);
	if (!c->busy && c->asked && uar_runtime_ready(l->rt))
		send(l, c);
}

static void count_parked(struct life *l)
{
	struct uar_runtime_stats stats;

	uar_runtime_stats(l->rt, &stats);
	if (stats.parked > l->parked)
		l->parked = (unsigned)stats.parked;
}

static bool live(uint64_t seed, unsigned counts[4])
{
	struct life *l = uar_zalloc(sizeof *l);
	bool good;

	sim_world_init(&l->w, seed);
	l->parks = sim_below(&l->w, 2) == 0;
	begin(l);
	for (size_t i = 0; i < CLIENTS; i++) {
		l->clients[i].l = l;
		uar_arena_init(&l->clients[i].arena, 0);
	}
	for (unsigned step = 0; step < SETTLE_STEPS && !settled(l) && !l->problem[0]; step++) {
		step_client(l);
		if (sim_below(&l->w, 300) == 0)
			die_and_rise(l);
		sim_step(&l->w);
		count_parked(l);
	}
	if (!settled(l))
		broken(l, "commands", "not all were answered");
	check_logs(l);
	good = CHECK_MSG(!l->problem[0], "seed %llu: %s", (unsigned long long)seed, l->problem);
	counts[0] += l->kills;
	counts[1] += l->answered;
	counts[2] += (unsigned)l->named_count;
	counts[3] += l->parked;
	sim_kill(&l->w);
	while (sim_store_pending(&l->w) || !uar_list_empty(&l->w.tasks))
		sim_step(&l->w);
	uar_runtime_destroy(l->rt);
	sim_world_fini(&l->w);
	for (size_t i = 0; i < CLIENTS; i++)
		uar_arena_fini(&l->clients[i].arena);
	uar_free(l);
	return good;
}

TEST(commands_of_the_control_plane_survive_any_kill, "")
{
	const char *one = getenv("UAR_TEST_SEED"), *many = getenv("UAR_TEST_SEEDS");
	unsigned long count = one ? 1 : many ? strtoul(many, NULL, 10) : 1000;
	uint64_t seed = one ? strtoull(one, NULL, 10) : 1;
	unsigned counts[4] = { 0 };

	for (unsigned long i = 0; i < count && live(seed + i, counts); i++)
		;
	printf("# %lu seeds, %u kills, %u commands answered, %u events named, %u runs out of "
	       "memory\n",
	       count, counts[0], counts[1], counts[2], counts[3]);
	CHECK(counts[1] > count * 10);
	CHECK(one || counts[3] > 0);
}
