/* facts.c - sessions, runs and events made up for tests of the store. */
#include "facts.h"

#include "test.h"
#include "event/limits.h"

const struct uar_owner uar_facts_owner = { { "acme", 4 }, { "main", 4 }, { "ann", 3 } };
const struct uar_owner uar_facts_stranger = { { "acme", 4 }, { "main", 4 }, { "bob", 3 } };

void uar_facts_init(struct uar_facts *f, const struct uar_store *s, uint64_t number)
{
	unsigned long long n = number;

	*f = (struct uar_facts){ .owner = uar_facts_owner, .number = number };
	snprintf(f->runtime, sizeof f->runtime, "%s", s->runtime_id);
	snprintf(f->session, sizeof f->session, "01900000-0000-7000-8000-%012llx", n);
	snprintf(f->thread, sizeof f->thread, "01900000-0001-7000-8000-%012llx", n);
	snprintf(f->turn, sizeof f->turn, "01900000-0002-7000-8000-%012llx", n);
	snprintf(f->task, sizeof f->task, "01900000-0003-7000-8000-%012llx", n);
	snprintf(f->run, sizeof f->run, "01900000-0004-7000-8000-%012llx", n);
}

void uar_facts_fini(struct uar_facts *f)
{
	uar_arena_fini(&f->arena);
}

static struct uar_event make(struct uar_facts *f, enum uar_event_class cls, uar_str payload)
{
	struct uar_event ev = { .cls = cls,
				.time_us = 1700000000000000 + (int64_t)f->made,
				.sequence = ++f->seq,
				.payload = payload };

	ev.event_id =
		uar_arena_printf(&f->arena, "01900000-%04x-7000-8000-%012llx",
				 (unsigned)(f->number & 0xffff), (unsigned long long)++f->made);
	ev.ids[UAR_ID_RUNTIME] = uar_str_c(f->runtime);
	ev.ids[UAR_ID_TENANT] = f->owner.tenant;
	ev.ids[UAR_ID_WORKSPACE] = f->owner.workspace;
	ev.ids[UAR_ID_USER] = f->owner.user;
	ev.ids[UAR_ID_SESSION] = uar_str_c(f->session);
	return ev;
}

size_t uar_facts_opening(struct uar_facts *f, struct uar_event out[3])
{
	out[0] = make(f, UAR_EV_SESSION_CREATED,
		      UAR_STR("{\"source\":\"api\",\"created_at\":\"2026-01-02T03:04:05.000006Z\","
			      "\"metadata\":{}}"));
	out[1] = make(f, UAR_EV_THREAD_STARTED,
		      UAR_STR("{\"origin\":\"new\",\"conversation_id\":\"c\"}"));
	out[1].ids[UAR_ID_THREAD] = uar_str_c(f->thread);
	out[2] = make(f, UAR_EV_TURN_SUBMITTED,
		      UAR_STR("{\"status\":\"accepted\",\"source\":\"api\",\"input_parts\":[]}"));
	out[2].ids[UAR_ID_THREAD] = uar_str_c(f->thread);
	out[2].ids[UAR_ID_TURN] = uar_str_c(f->turn);
	return 3;
}

struct uar_event uar_facts_delta(struct uar_facts *f, const char *text)
{
	struct uar_event ev = make(f, UAR_EV_MODEL_DELTA, UAR_STR_NONE);

	ev.payload = uar_arena_printf(&f->arena,
				      "{\"message_id\":\"m1\",\"index\":%llu,\"kind\":\"text\","
				      "\"text\":\"%s\"}",
				      (unsigned long long)f->run_seq, text);
	ev.run_sequence = ++f->run_seq;
	ev.ids[UAR_ID_THREAD] = uar_str_c(f->thread);
	ev.ids[UAR_ID_TURN] = uar_str_c(f->turn);
	ev.ids[UAR_ID_TASK] = uar_str_c(f->task);
	ev.ids[UAR_ID_RUN] = ev.ids[UAR_ID_ATTEMPT] = uar_str_c(f->run);
	return ev;
}

struct uar_run_row uar_facts_row(const struct uar_facts *f, const char *status, bool terminal)
{
	return (struct uar_run_row){
		.owner = f->owner,
		.run_id = uar_str_c(f->run),
		.session_id = uar_str_c(f->session),
		.thread_id = uar_str_c(f->thread),
		.turn_id = uar_str_c(f->turn),
		.task_id = uar_str_c(f->task),
		.plugin_id = UAR_STR("core"),
		.entry_id = UAR_STR("llm.chat"),
		.agent_id = UAR_STR("default"),
		.root_run_id = uar_str_c(f->run),
		.status = uar_str_c(status),
		.terminal = terminal,
		.attempt = 1,
		.created_us = 1700000000000000,
		.updated_us = 1700000000000001,
		.started_us = 1700000000000001,
		.detail = UAR_STR("{\"title\":\"t\"}"),
	};
}

/* --- waiting ------------------------------------------------------------------- */
/* Each operation gets a place to note that it is done, beside it. */
#define WAIT(NAME, STRUCT, OP)                                                                     \
	struct waiting_##NAME {                                                                    \
		struct STRUCT *op;                                                                 \
		bool done;                                                                         \
	};                                                                                         \
	static __thread struct waiting_##NAME wait_##NAME;                                         \
	static void NAME##_done(struct STRUCT *op)                                                 \
	{                                                                                          \
		CHECK(op == wait_##NAME.op);                                                       \
		wait_##NAME.done = true;                                                           \
	}                                                                                          \
	uar_err uar_facts_##NAME(struct uar_pump *p, struct uar_store *s, struct STRUCT *op)       \
	{                                                                                          \
		uar_err e;                                                                         \
                                                                                                   \
		wait_##NAME = (struct waiting_##NAME){ op, false };                                \
		op->done = NAME##_done;                                                            \
		e = s->ops->OP(s, op);                                                             \
		if (e)                                                                             \
			return e;                                                                  \
		CHECK(!wait_##NAME.done); /* never inside the call */                              \
		uar_pump_until(p, &wait_##NAME.done);                                              \
		return op->err;                                                                    \
	}

WAIT(append, uar_append, append)
WAIT(read, uar_read, read)
WAIT(runs, uar_runs_query, runs)
WAIT(thread, uar_thread_query, thread)
WAIT(key, uar_key_query, key)
WAIT(put, uar_blob_put, blob_put)
WAIT(get, uar_blob_get, blob_get)

static void drained(void *ctx)
{
	*(bool *)ctx = true;
}

void uar_facts_drain(struct uar_pump *p, struct uar_store *s)
{
	bool done = false;

	s->ops->drain(s, drained, &done);
	CHECK(!done);
	uar_pump_until(p, &done);
}

uar_err uar_facts_begin(struct uar_pump *p, struct uar_store *s, struct uar_facts *f)
{
	struct uar_event ev[3];
	struct uar_run_row row = uar_facts_row(f, "queued", false);
	struct uar_append a = { .owner = f->owner,
				.session_id = uar_str_c(f->session),
				.after = f->seq,
				.events = ev,
				.run = &row };

	a.event_count = uar_facts_opening(f, ev);
	return uar_facts_append(p, s, &a);
}

uar_err uar_facts_go_on(struct uar_pump *p, struct uar_store *s, struct uar_facts *f, size_t n)
{
	struct uar_append a = { .owner = f->owner,
				.session_id = uar_str_c(f->session),
				.after = f->seq,
				.event_count = n };
	struct uar_event *ev = uar_arena_alloc(&f->arena, n * sizeof *ev);

	for (size_t i = 0; i < n; i++)
		ev[i] = uar_facts_delta(f, "hello");
	a.events = ev;
	return uar_facts_append(p, s, &a);
}

static bool same_event(const struct uar_event *a, const struct uar_event *b)
{
	bool same = a->cls == b->cls && a->sequence == b->sequence &&
		    a->run_sequence == b->run_sequence && a->time_us == b->time_us &&
		    uar_str_eq(a->event_id, b->event_id) && uar_str_eq(a->payload, b->payload) &&
		    uar_str_eq(a->refs, b->refs);

	for (size_t i = 0; i < UAR_ID_COUNT; i++)
		same = same && uar_str_eq(a->ids[i], b->ids[i]);
	return same;
}

bool uar_facts_all_there(struct uar_pump *p, struct uar_store *s, const struct uar_facts *f)
{
	struct uar_facts again = *f; /* a test may have named things otherwise */
	struct uar_event opening[3];
	uint64_t at = 0;
	bool good = true, more = true;

	again.seq = again.run_seq = again.made = 0;
	uar_arena_init(&again.arena, 0);
	uar_facts_opening(&again, opening);
	while (more && good) {
		struct uar_read r = { .owner = f->owner,
				      .session_id = uar_str_c(f->session),
				      .after = at,
				      .limit = UAR_LIMIT_READ_PAGE };

		good = uar_facts_read(p, s, &r) == UAR_OK;
		for (size_t i = 0; i < r.event_count && good; i++) {
			struct uar_event want =
				at + i < 3 ? opening[at + i] : uar_facts_delta(&again, "hello");

			good = same_event(&r.events[i], &want);
		}
		at += r.event_count;
		more = r.more;
		uar_store_read_fini(&r);
	}
	uar_facts_fini(&again);
	return CHECK(good) && CHECK(at == f->seq);
}
