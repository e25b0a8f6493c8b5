/* checker.c - invariants over the disk's contents.
 *
 * The disk is read directly, past the queue of the world; tasks that were posted
 * before the answer run before it, as they would have anyway. */
#include "sim/checker.h"

#include <stdarg.h>

#include "base/alloc.h"
#include "core/core.h"
#include "event/limits.h"

void sim_checker_init(struct sim_checker *k, struct sim_world *w, const struct uar_owner *owner)
{
	*k = (struct sim_checker){ .w = w, .owner = *owner };
	k->seen = uar_zalloc(SIM_EVENTS * sizeof *k->seen);
	if (!k->seen)
		abort();
}

void sim_checker_fini(struct sim_checker *k)
{
	uar_free(k->seen);
}

void sim_checker_broken(struct sim_checker *k, const char *fmt, ...)
{
	va_list ap;

	if (k->problem[0])
		return;
	va_start(ap, fmt);
	vsnprintf(k->problem, sizeof k->problem, fmt, ap);
	va_end(ap);
}

void sim_checker_created(struct sim_checker *k, const char *run_id, const char *key)
{
	sim_checker_created_by(k, &k->owner, run_id, key);
}

void sim_checker_created_by(struct sim_checker *k, const struct uar_owner *owner,
			    const char *run_id, const char *key)
{
	for (size_t i = 0; i < k->known_count; i++) {
		struct sim_known *known = &k->known[i];
		bool same_key = key[0] && known->owner == owner && strcmp(known->key, key) == 0;
		bool same_run = strcmp(known->run_id, run_id) == 0;

		if (same_key && !same_run && k->keep) {
			known->replaced = true; /* the disk tells whether it was allowed to */
			continue;
		}
		if (same_key != same_run && (same_key || known->key[0]))
			sim_checker_broken(k, "I6: key %s made %s and %s", key, known->run_id,
					   run_id);
		if (same_run)
			return;
	}
	if (k->known_count == SIM_RUNS)
		return;
	k->known[k->known_count].owner = owner;
	snprintf(k->known[k->known_count].run_id, sizeof k->known[0].run_id, "%s", run_id);
	snprintf(k->known[k->known_count].key, sizeof k->known[0].key, "%s", key);
	k->known_count++;
}

void sim_checker_saw(struct sim_checker *k, const struct uar_event *ev)
{
	struct sim_seen *s = &k->seen[k->seen_count % SIM_EVENTS];

	k->seen_count++;
	snprintf(s->run_id, sizeof s->run_id, "%.*s", UAR_FMT(ev->ids[UAR_ID_RUN]));
	snprintf(s->event_id, sizeof s->event_id, "%.*s", UAR_FMT(ev->event_id));
	s->run_sequence = ev->run_sequence;
}

/* --- reading the disk --------------------------------------------------------------- */

struct one_read {
	struct uar_read r;
	bool done;
};

static void read_done(struct uar_read *r)
{
	UAR_OWNER(r, struct one_read, r)->done = true;
}

/* The run's own events, or those of its session. */
static void read_disk(struct sim_checker *k, struct one_read *o, const struct sim_known *known,
		      bool session, uint64_t after)
{
	struct uar_store *disk = k->w->disk;

	o->done = false;
	o->r = (struct uar_read){
		.owner = *known->owner,
		.after = after,
		.limit = UAR_LIMIT_READ_PAGE,
		.done = read_done,
	};
	if (session)
		o->r.session_id = uar_str_c(known->session_id);
	else
		o->r.run_id = uar_str_c(known->run_id);
	if (disk->ops->read(disk, &o->r))
		abort();
	while (!o->done && sim_run_task(k->w))
		;
}

/* --- one run ------------------------------------------------------------------------ */

enum { SIM_RUN_ITEMS = 64 };

struct run_facts {
	uint64_t last;
	int terminals;
	const char *status;
	int open_tools;
	char said[UAR_UUID_TEXT + 1]; /* the last message */
	int64_t said_bytes;
	struct sim_ledger ledger;
	bool result; /* the last event is what the run returned: its end must follow */
	size_t item_count;
	char items[SIM_RUN_ITEMS][UAR_UUID_TEXT + 1]; /* ids */
	unsigned contents[SIM_RUN_ITEMS];	      /* their numbers; 0: a long one */
};

static void check_seen(struct sim_checker *k, const struct uar_event *ev)
{
	size_t n = k->seen_count < SIM_EVENTS ? k->seen_count : SIM_EVENTS;

	for (size_t i = 0; i < n; i++)
		if (k->seen[i].run_sequence == ev->run_sequence &&
		    uar_str_is(ev->ids[UAR_ID_RUN], k->seen[i].run_id) &&
		    !uar_str_is(ev->event_id, k->seen[i].event_id))
			sim_checker_broken(k, "I7: event %llu of %s was another one",
					   (unsigned long long)ev->run_sequence, k->seen[i].run_id);
}

/* Whatever a reader was shown must be on the disk by then. */
static void check_stored(struct sim_checker *k, const char *run_id, uint64_t last)
{
	size_t n = k->seen_count < SIM_EVENTS ? k->seen_count : SIM_EVENTS;

	for (size_t i = 0; i < n; i++)
		if (k->seen[i].run_sequence > last && strcmp(k->seen[i].run_id, run_id) == 0)
			sim_checker_broken(k, "I7: event %llu of %s was shown and is not stored",
					   (unsigned long long)k->seen[i].run_sequence, run_id);
}

static bool ends_run(enum uar_event_class cls)
{
	return cls == UAR_EV_TASK_ATTEMPT_COMPLETED || cls == UAR_EV_TASK_ATTEMPT_FAILED;
}

static bool has_item(const struct run_facts *f, uar_str id)
{
	for (size_t i = 0; i < f->item_count; i++)
		if (uar_str_is(id, f->items[i]))
			return true;
	return false;
}

/* The number that its worker gave to an item: no two are the same. */
static unsigned number_of(const struct uar_json *payload)
{
	uar_str text = uar_json_str(uar_json_get(payload, UAR_STR("preview")), UAR_STR(""));
	unsigned n = 0;

	while (text.n && (*text.p < '0' || *text.p > '9'))
		text = uar_str_from(text, 1);
	for (; text.n && *text.p >= '0' && *text.p <= '9'; text = uar_str_from(text, 1))
		n = n * 10 + (unsigned)(*text.p - '0');
	return n;
}

static void check_item(struct sim_checker *k, struct run_facts *f, const struct uar_event *ev,
		       const struct uar_json *payload)
{
	uar_str type = uar_json_str(uar_json_get(payload, UAR_STR("artifact_type")), UAR_STR(""));
	unsigned n = number_of(payload);

	if (!uar_str_starts(type, UAR_STR("export.")) || f->item_count == SIM_RUN_ITEMS)
		return;
	if (has_item(f, ev->ids[UAR_ID_ARTIFACT]))
		sim_checker_broken(k, "item %.*s twice", UAR_FMT(ev->ids[UAR_ID_ARTIFACT]));
	for (size_t i = 0; n && i < f->item_count; i++)
		if (f->contents[i] == n)
			sim_checker_broken(k, "item number %u twice", n);
	f->contents[f->item_count] = n;
	snprintf(f->items[f->item_count++], sizeof f->items[0], "%.*s",
		 UAR_FMT(ev->ids[UAR_ID_ARTIFACT]));
	f->result = uar_str_is(uar_json_str(uar_json_get(payload, UAR_STR("role")), UAR_STR("")),
			       "result");
}

static void check_said(struct run_facts *f, const struct uar_json *payload)
{
	uar_str id = uar_json_str(uar_json_get(payload, UAR_STR("message_id")), UAR_STR(""));
	uar_str text = uar_json_str(uar_json_get(payload, UAR_STR("text")), UAR_STR(""));

	if (!uar_str_is(id, f->said))
		f->said_bytes = 0;
	f->said_bytes += (int64_t)text.n;
	snprintf(f->said, sizeof f->said, "%.*s", UAR_FMT(id));
}

/* An agent's result is all of its last message. */
static bool is_answer(const struct run_facts *f, const struct uar_json *payload, uar_str id)
{
	const struct uar_json *answer = uar_json_get(payload, UAR_STR("answer"));

	return uar_str_is(id, f->said) &&
	       uar_json_int(uar_json_get(answer, UAR_STR("bytes")), -1) == f->said_bytes;
}

/* What the end names as the result was exported before, by this run. */
static void check_refs(struct sim_checker *k, const struct run_facts *f, const struct uar_event *ev,
		       const struct uar_json *payload)
{
	const struct uar_json *refs = uar_json_get(payload, UAR_STR("result_refs"));

	for (const struct uar_json *id = uar_json_at(refs, 0); id; id = id->next)
		if (f->item_count < SIM_RUN_ITEMS && !has_item(f, id->text) &&
		    !is_answer(f, payload, id->text))
			sim_checker_broken(k, "%.*s ended with %.*s, which it did not export",
					   UAR_FMT(ev->ids[UAR_ID_RUN]), UAR_FMT(id->text));
	if (f->open_tools)
		sim_checker_broken(k, "I4: %.*s ended with %d tools open",
				   UAR_FMT(ev->ids[UAR_ID_RUN]), f->open_tools);
}

static void check_work(struct sim_checker *k, struct run_facts *f, const struct uar_event *ev)
{
	const struct uar_json *payload = NULL;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (uar_json_parse(ev->payload, NULL, &arena, &payload, NULL))
		sim_checker_broken(k, "a payload does not parse");
	if (f->result && !ends_run(ev->cls))
		sim_checker_broken(k, "%s stands between a result and the end of %.*s",
				   uar_event_info[ev->cls].type, UAR_FMT(ev->ids[UAR_ID_RUN]));
	f->result = false;
	f->open_tools += ev->cls == UAR_EV_TOOL_STARTED;
	f->open_tools -= ev->cls == UAR_EV_TOOL_RESULT || ev->cls == UAR_EV_TOOL_FAILED;
	sim_ledger_event(k, &f->ledger, ev, payload);
	if (ev->cls == UAR_EV_ARTIFACT_CHANGED)
		check_item(k, f, ev, payload);
	if (ev->cls == UAR_EV_MODEL_DELTA)
		check_said(f, payload);
	if (ends_run(ev->cls))
		check_refs(k, f, ev, payload);
	uar_arena_fini(&arena);
}

/* An item whose worker was told that it is safe is there. */
static void check_promised(struct sim_checker *k, const struct run_facts *f, const char *run_id)
{
	for (size_t i = 0; i < k->w->host.item_count && f->item_count < SIM_RUN_ITEMS; i++)
		if (strcmp(k->w->host.items[i].run_id, run_id) == 0 &&
		    !has_item(f, uar_str_c(k->w->host.items[i].id)))
			sim_checker_broken(k, "I1: item %s of %s is gone", k->w->host.items[i].id,
					   run_id);
}

static bool may_follow_end(enum uar_event_class cls)
{
	return cls == UAR_EV_TASK_COMPLETED || cls == UAR_EV_TASK_FAILED ||
	       cls == UAR_EV_TASK_CANCELLED || cls == UAR_EV_TASK_TIMED_OUT ||
	       cls == UAR_EV_TASK_LOST || cls == UAR_EV_TURN_COMPLETED || cls == UAR_EV_TURN_FAILED;
}

static void check_event(struct sim_checker *k, struct run_facts *f, const struct uar_event *ev)
{
	if (ev->run_sequence != f->last + 1)
		sim_checker_broken(k, "I2: %llu follows %llu in %.*s",
				   (unsigned long long)ev->run_sequence,
				   (unsigned long long)f->last, UAR_FMT(ev->ids[UAR_ID_RUN]));
	f->last = ev->run_sequence;
	if (f->terminals && !may_follow_end(ev->cls))
		sim_checker_broken(k, "I4: %s follows the end of %.*s",
				   uar_event_info[ev->cls].type, UAR_FMT(ev->ids[UAR_ID_RUN]));
	if (ev->cls == UAR_EV_TASK_ATTEMPT_COMPLETED || ev->cls == UAR_EV_TASK_ATTEMPT_FAILED) {
		f->terminals++;
		f->status = uar_event_info[ev->cls].type;
	}
	if (f->terminals > 1)
		sim_checker_broken(k, "I3: %.*s ended twice", UAR_FMT(ev->ids[UAR_ID_RUN]));
	check_seen(k, ev);
}

/* The log of a run folds without complaint: the tables agree with what was written. */
static void check_fold(struct sim_checker *k, struct uar_session *s, struct uar_run *run,
		       const struct uar_event *ev)
{
	struct uar_error error = { 0 };
	struct uar_arena scratch;

	uar_arena_init(&scratch, 0);
	if (uar_core_fold(s, run, ev, &scratch, &error))
		sim_checker_broken(k, "fold: %s", error.text);
	uar_arena_fini(&scratch);
}

/* What a read of the run says about its retention. True: its session tells the rest. */
static bool check_gone(struct sim_checker *k, struct sim_known *known, uar_err e)
{
	if (e && (e != UAR_ENOTFOUND || !k->keep))
		sim_checker_broken(k, "I1: %s is gone: %s", known->run_id, uar_err_text(e));
	if (!e && known->gone)
		sim_checker_broken(k, "I14: %s was evicted and is back", known->run_id);
	if (!e && known->replaced)
		sim_checker_broken(k, "I6: the key of %s made another run", known->run_id);
	if (e && !known->gone)
		k->evicted++;
	known->gone = known->gone || e;
	return e != UAR_OK;
}

/* `status`: where it stands, now that every run must be over; NULL: it need not be. */
static void check_end(struct sim_checker *k, const struct sim_known *known,
		      const struct run_facts *f, const char *status)
{
	check_stored(k, known->run_id, f->last);
	check_promised(k, f, known->run_id);
	sim_ledger_check(k, &f->ledger, known->run_id);
	if (f->result)
		sim_checker_broken(k, "%s has a result and no end", known->run_id);
	if (known->gone && f->terminals != 1)
		sim_checker_broken(k, "I14: %s was evicted before its end", known->run_id);
	if (status && f->terminals != 1)
		sim_checker_broken(k, "I13: %s is still %s", known->run_id, status);
}

static void check_run(struct sim_checker *k, struct sim_known *known, bool ended)
{
	uint64_t after = 0;
	bool session = false;
	struct run_facts f = { 0 };
	struct uar_session s = { .owner = *known->owner };
	struct uar_run run;
	struct one_read o;
	bool more = true;

	uar_run_init(&run);
	while (more) {
		read_disk(k, &o, known, session, session ? after : f.last);
		if (!session && check_gone(k, known, o.r.err)) {
			uar_store_read_fini(&o.r);
			if (!known->session_id[0] || k->problem[0]) {
				uar_run_fini(&run);
				return; /* nobody looked at it while it was there */
			}
			session = true;
			continue;
		}
		for (size_t i = 0; i < o.r.event_count; i++) {
			after = o.r.events[i].sequence;
			if (!uar_str_is(o.r.events[i].ids[UAR_ID_RUN], known->run_id))
				continue;
			check_event(k, &f, &o.r.events[i]);
			check_work(k, &f, &o.r.events[i]);
			if (ended && k->happened)
				k->happened[o.r.events[i].cls]++;
			check_fold(k, &s, &run, &o.r.events[i]);
		}
		if (o.r.event_count)
			snprintf(known->session_id, sizeof known->session_id, "%.*s",
				 UAR_FMT(o.r.events[0].ids[UAR_ID_SESSION]));
		more = o.r.more;
		uar_store_read_fini(&o.r);
	}
	check_end(k, known, &f, ended ? uar_status_text(run.status) : NULL);
	uar_run_fini(&run);
}

struct one_query {
	struct uar_runs_query q;
	bool done;
};

static void query_done(struct uar_runs_query *q)
{
	UAR_OWNER(q, struct one_query, q)->done = true;
}

static size_t count_runs(struct sim_checker *k, const struct uar_owner *owner, uint64_t beyond)
{
	struct uar_store *disk = k->w->disk;
	struct one_query o = { .q = { .owner = *owner,
				      .beyond = beyond,
				      .limit = UAR_LIMIT_LIST_PAGE,
				      .done = query_done } };
	size_t n;

	if (disk->ops->runs(disk, &o.q))
		abort();
	while (!o.done && sim_run_task(k->w))
		;
	n = o.q.row_count;
	uar_store_query_fini(&o.q);
	return n;
}

/* All runs are over: no owner has more than are kept, and less only if there were. */
static void check_kept(struct sim_checker *k, const struct sim_known *known)
{
	size_t there = count_runs(k, known->owner, 0);

	if (there > k->keep || count_runs(k, known->owner, k->keep))
		sim_checker_broken(k, "I14: %zu runs are kept", there);
	if (known->gone && there < k->keep)
		sim_checker_broken(k, "I14: %zu runs are left, and %s is gone", there,
				   known->run_id);
}

static bool first_of_session(const struct sim_checker *k, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (strcmp(k->known[i].session_id, k->known[index].session_id) == 0)
			return false;
	return true;
}

void sim_checker_check(struct sim_checker *k, bool ended)
{
	for (size_t i = 0; i < k->known_count && !k->problem[0]; i++)
		check_run(k, &k->known[i], ended);
	for (size_t i = 0; i < k->known_count && ended && !k->problem[0]; i++)
		if (k->known[i].session_id[0] && first_of_session(k, i)) {
			uar_str session_id = uar_str_c(k->known[i].session_id);

			sim_checker_order(k, k->known[i].owner, session_id);
			sim_checker_view(k, k->known[i].owner, session_id);
		}
	for (size_t i = 0; i < k->known_count && ended && k->keep && !k->problem[0]; i++)
		check_kept(k, &k->known[i]);
	if (k->w->host.started_twice)
		sim_checker_broken(k, "I5: work that must not be repeated was");
}
