/* validate.c - the rules of a log; validate.h names them. */
#include "core/validate_int.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"
#include "core/core.h"

/* A run; kept when it is over, as nothing may follow. */
struct seen_run {
	char id[UAR_LIMIT_ID_BYTES + 1];
	struct uar_run *live; /* its state; NULL: its turn or its session is over */
	uint64_t last;	      /* run_sequence */
	int queued, started, ended;
	int open; /* tool calls and questions */
	bool broken;
	char status[24];
};

/* A turn, a tool call, a question or a model call: has it begun, how often has it ended? */
struct seen_part {
	struct seen_part *next; /* of all, to be freed */
	int begun, ended;
	bool done; /* of an item of a job: it was completed */
	size_t key_bytes;
	char key[];
};

struct part_set {
	struct uar_map map;
	struct seen_part *all;
};

struct id_set { /* hashes of event ids */
	uint64_t *slots;
	size_t cap, used;
};

struct uar_validator {
	uar_violation_fn *bad;
	void *ctx;
	struct uar_validated counts;
	struct uar_arena scratch;
	struct uar_map runs;
	struct seen_run **all_runs;
	size_t run_count, run_room;
	size_t first_run;	   /* of the session under way */
	struct part_set questions; /* of all sessions: their rows come last */
	struct seen_tasks tasks;
	/* of the session under way */
	struct uar_session session;
	char session_id[UAR_LIMIT_ID_BYTES + 1];
	char owner[3][UAR_LIMIT_ID_BYTES + 1]; /* tenant, workspace, user */
	struct part_set parts;
	struct id_set ids;
	/* the event under way */
	const struct uar_event *ev;
	struct seen_run *run;
};

/* --- telling -------------------------------------------------------------------------- */

static void broken(struct uar_validator *v, const char *rule, const char *fmt, ...)
	UAR_PRINTF(3, 4);
static void broken(struct uar_validator *v, const char *rule, const char *fmt, ...)
{
	const struct uar_event *ev = v->ev;
	struct uar_violation w = { .rule = rule };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w.text, sizeof w.text, fmt, ap);
	va_end(ap);
	v->counts.violations++;
	snprintf(w.session_id, sizeof w.session_id, "%s", v->session_id);
	if (v->run) {
		snprintf(w.run_id, sizeof w.run_id, "%s", v->run->id);
		v->run->broken = true;
	}
	if (ev) {
		snprintf(w.type, sizeof w.type, "%.*s", UAR_FMT(uar_event_type(ev)));
		snprintf(w.event_id, sizeof w.event_id, "%.*s", UAR_FMT(ev->event_id));
		w.sequence = ev->sequence;
	}
	v->bad(v->ctx, &w);
}

/* --- event ids ------------------------------------------------------------------------ */

static uint64_t hash_id(uar_str s)
{
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (unsigned char)s.p[i]) * 1099511628211u;
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9u;
	h ^= h >> 32;
	return h ? h : 1;
}

static bool id_put(struct id_set *s, uint64_t h)
{
	for (size_t i = h & (s->cap - 1);; i = (i + 1) & (s->cap - 1)) {
		if (s->slots[i] == h)
			return false;
		if (!s->slots[i]) {
			s->slots[i] = h;
			s->used++;
			return true;
		}
	}
}

static uar_err id_grow(struct id_set *s)
{
	struct id_set larger = { .cap = s->cap ? s->cap * 2 : 1024 };

	if (s->cap && s->used < s->cap / 2)
		return UAR_OK;
	larger.slots = uar_zalloc(larger.cap * sizeof *larger.slots);
	if (!larger.slots)
		return UAR_ENOMEM;
	for (size_t i = 0; i < s->cap; i++)
		if (s->slots[i])
			(void)id_put(&larger, s->slots[i]);
	uar_free(s->slots);
	*s = larger;
	return UAR_OK;
}

static uar_err check_event_id(struct uar_validator *v)
{
	uar_err e = id_grow(&v->ids);

	if (!e && !id_put(&v->ids, hash_id(v->ev->event_id)))
		broken(v, "event-id", "an earlier event of the session has the same id");
	return e;
}

/* --- parts: turns, calls, questions ------------------------------------------------ */

enum { PART_KEY = 3 + 2 * UAR_LIMIT_ID_BYTES };

/* The name of a part: its kind, its run where ids are a run's own, its id. */
static uar_str name_part(char key[PART_KEY], char kind, uar_str run_id, uar_str id)
{
	uar_str scope = kind == 't' || kind == 'a' ? run_id : UAR_STR("");
	int n = snprintf(key, PART_KEY, "%c%.*s/%.*s", kind, UAR_FMT(scope), UAR_FMT(id));

	return uar_str_n(key, n < 0 ? 0 : n < PART_KEY ? (size_t)n : PART_KEY - 1);
}

/* The part that `kind` and the ids name, made if it is new. */
static uar_err find_part(struct uar_validator *v, char kind, uar_str id, struct seen_part **out)
{
	char key[PART_KEY];
	uar_str text = name_part(key, kind, v->ev->ids[UAR_ID_RUN], id);
	struct part_set *set = kind == 'a' ? &v->questions : &v->parts;
	struct seen_part *p = uar_map_get(&set->map, text);
	uar_err e;

	*out = p;
	if (p)
		return UAR_OK;
	p = uar_zalloc(sizeof *p + text.n);
	if (!p)
		return UAR_ENOMEM;
	memcpy(p->key, text.p, text.n);
	p->key_bytes = text.n;
	e = uar_map_put(&set->map, uar_str_n(p->key, text.n), p);
	if (e) {
		uar_free(p);
		return e;
	}
	p->next = set->all;
	set->all = p;
	*out = p;
	return UAR_OK;
}

static void clear_set(struct part_set *set)
{
	while (set->all) {
		struct seen_part *p = set->all;

		set->all = p->next;
		uar_free(p);
	}
	uar_map_fini(&set->map);
	uar_map_init(&set->map, 0);
}

static void clear_parts(struct uar_validator *v)
{
	clear_set(&v->parts);
	uar_free(v->ids.slots);
	v->ids = (struct id_set){ .cap = 0 };
}

static void begin_part(struct uar_validator *v, struct seen_part *p, const char *rule)
{
	if (p->begun++)
		broken(v, rule, "it has begun before");
}

static void end_part(struct uar_validator *v, struct seen_part *p, const char *rule)
{
	if (!p->begun)
		broken(v, rule, "it ends and has not begun");
	else if (p->ended)
		broken(v, rule, "it has ended before");
	p->ended++;
}

/* --- the rules -------------------------------------------------------------------------- */

static uar_err check_turn(struct uar_validator *v)
{
	enum uar_event_class cls = v->ev->cls;
	struct seen_part *turn;
	uar_err e;

	if (!v->ev->ids[UAR_ID_TURN].n)
		return UAR_OK;
	e = find_part(v, 'T', v->ev->ids[UAR_ID_TURN], &turn);
	if (e)
		return e;
	if (cls == UAR_EV_TURN_SUBMITTED)
		turn->begun++; /* each attempt at a turn submits it */
	else if (!turn->begun && v->run)
		broken(v, "turn", "its turn was not submitted before");
	return UAR_OK;
}

/* Things that begin once and end at most once. */
static const struct lifecycle {
	enum uar_event_class begin, end, other_end;
	enum uar_id id;
	char kind;
	const char *rule;
	bool closes; /* none may be open when its run ends */
} lifecycles[] = {
	{ UAR_EV_TOOL_STARTED, UAR_EV_TOOL_RESULT, UAR_EV_TOOL_FAILED, UAR_ID_TOOL_CALL, 't',
	  "tool", true },
	{ UAR_EV_ACTION_REQUIRED, UAR_EV_ACTION_RESOLVED, UAR_EV_ACTION_RESOLVED, UAR_ID_ACTION,
	  'a', "action", true },
	{ UAR_EV_MODEL_REQUESTED, UAR_EV_MODEL_COMPLETED, UAR_EV_MODEL_FAILED, UAR_ID_MODEL_REQUEST,
	  'm', "model", false },
};

static uar_err check_lifecycle(struct uar_validator *v, const struct lifecycle *l)
{
	enum uar_event_class cls = v->ev->cls;
	struct seen_part *part;
	uar_err e;

	if (cls != l->begin && cls != l->end && cls != l->other_end)
		return UAR_OK;
	e = find_part(v, l->kind, v->ev->ids[l->id], &part);
	if (e)
		return e;
	if (cls == l->begin)
		begin_part(v, part, l->rule);
	else
		end_part(v, part, l->rule);
	v->counts.tool_calls += cls == UAR_EV_TOOL_STARTED;
	v->counts.actions += cls == UAR_EV_ACTION_REQUIRED;
	if (v->run && l->closes)
		v->run->open += cls == l->begin ? 1 : -1;
	return UAR_OK;
}

static uar_err check_lifecycles(struct uar_validator *v)
{
	uar_err e = UAR_OK;

	for (size_t i = 0; i < ARRAY_LEN(lifecycles) && !e; i++)
		e = check_lifecycle(v, &lifecycles[i]);
	return e;
}

/* --- child agents and jobs ------------------------------------------------------------------- */

/* What one event makes, and others speak of. */
static const struct made_thing {
	enum uar_id id;
	enum uar_event_class made;
	const char *rule;
} things[UAR_EV_COUNT] = {
#define SUBAGENT(CLS) [CLS] = { UAR_ID_SUBAGENT, UAR_EV_SUBAGENT_SPAWNED, "subagent" }
#define JOB(CLS)      [CLS] = { UAR_ID_JOB, UAR_EV_JOB_CREATED, "job" }
	SUBAGENT(UAR_EV_SUBAGENT_SPAWNED),
	SUBAGENT(UAR_EV_SUBAGENT_STATUS),
	SUBAGENT(UAR_EV_SUBAGENT_INPUT),
	SUBAGENT(UAR_EV_SUBAGENT_COMPLETED),
	SUBAGENT(UAR_EV_SUBAGENT_FAILED),
	SUBAGENT(UAR_EV_SUBAGENT_CLOSED),
	JOB(UAR_EV_JOB_CREATED),
	JOB(UAR_EV_JOB_STARTED),
	JOB(UAR_EV_JOB_PROGRESS),
	JOB(UAR_EV_JOB_COMPLETED),
	JOB(UAR_EV_JOB_FAILED),
	JOB(UAR_EV_JOB_CANCELLED),
	JOB(UAR_EV_JOB_ITEM_STARTED),
	JOB(UAR_EV_JOB_ITEM_COMPLETED),
	JOB(UAR_EV_JOB_ITEM_FAILED),
#undef SUBAGENT
#undef JOB
};

static uar_err check_made(struct uar_validator *v, const struct made_thing *t)
{
	struct seen_part *p;
	uar_err e = find_part(v, t->rule[0], v->ev->ids[t->id], &p);

	if (e)
		return e;
	if (v->ev->cls == t->made)
		begin_part(v, p, t->rule);
	else if (!p->begun)
		broken(v, t->rule, "nothing has made it before");
	return UAR_OK;
}

static uar_err check_item(struct uar_validator *v)
{
	struct seen_part *p;
	uar_err e = find_part(v, 'i', v->ev->ids[UAR_ID_JOB_ITEM], &p);
	bool starts = v->ev->cls == UAR_EV_JOB_ITEM_STARTED;

	if (e)
		return e;
	if (starts && (p->begun > p->ended || p->done))
		broken(v, "job", "the item is at work already, or is completed");
	else if (!starts && p->ended >= p->begun)
		broken(v, "job", "the item ends and is not at work");
	p->begun += starts;
	p->ended += !starts;
	p->done |= v->ev->cls == UAR_EV_JOB_ITEM_COMPLETED;
	return UAR_OK;
}

static uar_err check_fanout(struct uar_validator *v)
{
	enum uar_event_class cls = v->ev->cls;
	bool known = cls < UAR_EV_COUNT && things[cls].rule;
	uar_err e = known ? check_made(v, &things[cls]) : UAR_OK;

	if (!e && known && v->ev->ids[UAR_ID_JOB_ITEM].n)
		e = check_item(v);
	return e;
}

/* What may carry the id of a run that is over. */
static bool may_follow_end(enum uar_event_class cls)
{
	return cls == UAR_EV_TASK_COMPLETED || cls == UAR_EV_TASK_FAILED ||
	       cls == UAR_EV_TASK_CANCELLED || cls == UAR_EV_TASK_TIMED_OUT ||
	       cls == UAR_EV_TASK_LOST || cls == UAR_EV_TASK_ARCHIVED ||
	       cls == UAR_EV_TURN_COMPLETED || cls == UAR_EV_TURN_FAILED ||
	       cls == UAR_EV_EVIDENCE_CHANGED || cls == UAR_EV_OUTPUT_EXPIRED ||
	       cls == UAR_EV_SNAPSHOT_UPDATED || cls == UAR_EV_SNAPSHOT_REPAIRED;
}

static bool ends_turn(enum uar_event_class cls)
{
	return cls == UAR_EV_TURN_COMPLETED || cls == UAR_EV_TURN_FAILED;
}

static void check_attempt(struct uar_validator *v, struct seen_run *r)
{
	enum uar_event_class cls = v->ev->cls;

	if (r->ended && !may_follow_end(cls))
		broken(v, "attempt", "its run is over");
	r->queued += cls == UAR_EV_TASK_QUEUED;
	r->started += cls == UAR_EV_TASK_ATTEMPT_STARTED;
	r->ended += uar_event_ends_run(v->ev);
	if (r->queued > 1)
		broken(v, "attempt", "its run was queued before");
	else if (r->started > 1)
		broken(v, "attempt", "its run has started before");
	else if (r->ended > 1)
		broken(v, "attempt", "its run has ended before");
	if (uar_event_ends_run(v->ev) && r->open)
		broken(v, "attempt", "its run ends while %d tool calls or questions are open",
		       r->open);
}

static void fold_run(struct uar_validator *v, struct seen_run *r)
{
	struct uar_error why = { 0 };

	if (!r->live)
		return;
	if (uar_core_fold(&v->session, r->live, v->ev, &v->scratch, &why))
		broken(v, "fold", "%s", why.text);
	else
		snprintf(r->status, sizeof r->status, "%s", uar_status_record(r->live->status));
}

static void check_sequence(struct uar_validator *v)
{
	const struct uar_event *ev = v->ev;
	uint64_t *last = v->run ? &v->run->last : NULL;

	if (ev->sequence != v->session.sequence + 1)
		broken(v, "sequence", "%llu follows %llu in the session",
		       (unsigned long long)ev->sequence, (unsigned long long)v->session.sequence);
	if (last && ev->run_sequence != *last + 1)
		broken(v, "sequence", "%llu follows %llu in the run",
		       (unsigned long long)ev->run_sequence, (unsigned long long)*last);
	if (last)
		*last = ev->run_sequence;
}

static void check_schema(struct uar_validator *v)
{
	struct uar_error why = { 0 };

	if (uar_event_check(v->ev, &v->scratch, &why))
		broken(v, "schema", "%s: %s", why.where, why.text);
}

/* --- runs --------------------------------------------------------------------------------- */

static uar_err keep_run(struct uar_validator *v, struct seen_run *r)
{
	size_t room = v->run_room ? v->run_room * 2 : 64;
	struct seen_run **all = v->all_runs;

	if (v->run_count == v->run_room) {
		all = uar_realloc(all, room * sizeof *all);
		if (!all)
			return UAR_ENOMEM;
		v->all_runs = all;
		v->run_room = room;
	}
	v->all_runs[v->run_count++] = r;
	return UAR_OK;
}

static void drop_live(struct seen_run *r)
{
	if (r->live)
		uar_run_fini(r->live);
	uar_free(r->live);
	r->live = NULL;
}

static void free_run(struct seen_run *r)
{
	drop_live(r);
	uar_free(r);
}

static uar_err make_run(struct uar_validator *v, uar_str id)
{
	struct seen_run *r = uar_zalloc(sizeof *r);
	uar_err e = r ? UAR_OK : UAR_ENOMEM;

	if (e)
		return e;
	snprintf(r->id, sizeof r->id, "%.*s", UAR_FMT(id));
	r->live = uar_alloc(sizeof *r->live);
	if (!r->live)
		e = UAR_ENOMEM;
	else
		uar_run_init(r->live);
	if (!e)
		e = uar_map_put(&v->runs, uar_str_c(r->id), r);
	if (!e) {
		e = keep_run(v, r);
		if (e)
			uar_map_remove(&v->runs, uar_str_c(r->id));
	}
	if (e) {
		free_run(r);
		return e;
	}
	v->counts.runs++;
	v->run = r;
	return UAR_OK;
}

/* A run's own events carry its number in it; others only name it. */
static uar_err find_run(struct uar_validator *v)
{
	uar_str id = v->ev->ids[UAR_ID_RUN];

	v->run = NULL;
	if (!id.n || !v->ev->run_sequence)
		return UAR_OK;
	v->run = uar_map_get(&v->runs, id);
	return v->run ? UAR_OK : make_run(v, id);
}

/* Two owners may have sessions of the same name. */
static bool same_session(const struct uar_validator *v, const struct uar_event *ev)
{
	return uar_str_is(ev->ids[UAR_ID_SESSION], v->session_id) &&
	       uar_str_is(ev->ids[UAR_ID_TENANT], v->owner[0]) &&
	       uar_str_is(ev->ids[UAR_ID_WORKSPACE], v->owner[1]) &&
	       uar_str_is(ev->ids[UAR_ID_USER], v->owner[2]);
}

static void begin_session(struct uar_validator *v, const uar_str ids[UAR_ID_COUNT])
{
	static const enum uar_id owner[] = { UAR_ID_TENANT, UAR_ID_WORKSPACE, UAR_ID_USER };

	clear_parts(v);
	for (size_t i = v->first_run; i < v->run_count; i++)
		drop_live(v->all_runs[i]);
	v->first_run = v->run_count;
	snprintf(v->session_id, sizeof v->session_id, "%.*s", UAR_FMT(ids[UAR_ID_SESSION]));
	for (size_t i = 0; i < ARRAY_LEN(owner); i++)
		snprintf(v->owner[i], sizeof v->owner[i], "%.*s", UAR_FMT(ids[owner[i]]));
	v->session = (struct uar_session){ .sequence = 0 };
	v->counts.sessions++;
}

static uar_err check_rules(struct uar_validator *v)
{
	uar_err e;

	check_schema(v);
	check_sequence(v);
	e = check_event_id(v);
	if (!e)
		e = check_turn(v);
	if (!e)
		e = check_lifecycles(v);
	if (!e)
		e = check_fanout(v);
	if (!e)
		e = validate_task_event(&v->tasks, v->ev, &v->scratch);
	if (!e && v->run) {
		check_attempt(v, v->run);
		fold_run(v, v->run);
	}
	return e;
}

uar_err uar_validator_event(struct uar_validator *v, const struct uar_event *ev)
{
	uar_err e;

	v->ev = ev;
	v->counts.events++;
	if (!same_session(v, ev))
		begin_session(v, ev->ids);
	e = find_run(v);
	if (!e && !(v->run && v->run->broken))
		e = check_rules(v);
	v->session.sequence = ev->sequence;
	if (v->run && v->run->ended && ends_turn(ev->cls))
		drop_live(v->run); /* its state is no longer needed */
	uar_arena_reset(&v->scratch);
	v->run = NULL;
	v->ev = NULL;
	return e;
}

void uar_validator_row(struct uar_validator *v, const struct uar_run_row *row)
{
	struct seen_run *r = uar_map_get(&v->runs, row->run_id);

	v->run = r;
	snprintf(v->session_id, sizeof v->session_id, "%.*s", UAR_FMT(row->session_id));
	if (!r)
		broken(v, "row", "run %.*s has a record and no events", UAR_FMT(row->run_id));
	else if (!r->broken && !uar_str_is(row->status, r->status))
		broken(v, "row", "its record says %.*s, its events lead to %s",
		       UAR_FMT(row->status), r->status);
	v->run = NULL;
}

void uar_validator_question(struct uar_validator *v, const struct uar_row *row)
{
	char key[PART_KEY];
	const struct seen_part *p =
		uar_map_get(&v->questions.map, name_part(key, 'a', row->parent, row->id));

	v->run = uar_map_get(&v->runs, row->parent);
	snprintf(v->session_id, sizeof v->session_id, "%.*s", UAR_FMT(row->session_id));
	if (v->run && !v->run->broken && !p)
		broken(v, "row", "question %.*s has a record and no events", UAR_FMT(row->id));
	else if (v->run && !v->run->broken && row->open != !p->ended)
		broken(v, "row", "the record of question %.*s says %.*s, its events say that %s",
		       UAR_FMT(row->id), UAR_FMT(row->status),
		       p->ended ? "it is over" : "it waits");
	v->run = NULL;
}

void uar_validator_task(struct uar_validator *v, const struct uar_row *row)
{
	const char *status = row->open ? NULL : validate_task_status(&v->tasks, row);

	snprintf(v->session_id, sizeof v->session_id, "%.*s", UAR_FMT(row->session_id));
	if (status && !uar_str_is(row->status, status))
		broken(v, "row", "the record of task %.*s says %.*s, its events lead to %s",
		       UAR_FMT(row->id), UAR_FMT(row->status), status);
}

/* --- life ----------------------------------------------------------------------------------- */

uar_err uar_validator_create(uar_violation_fn *bad, void *ctx, struct uar_validator **out)
{
	struct uar_validator *v = uar_zalloc(sizeof *v);

	if (!v)
		return UAR_ENOMEM;
	v->bad = bad;
	v->ctx = ctx;
	uar_arena_init(&v->scratch, 0);
	uar_map_init(&v->runs, 0);
	uar_map_init(&v->parts.map, 0);
	uar_map_init(&v->questions.map, 0);
	uar_map_init(&v->tasks.map, 0);
	*out = v;
	return UAR_OK;
}

void uar_validator_destroy(struct uar_validator *v)
{
	if (!v)
		return;
	clear_parts(v);
	clear_set(&v->questions);
	for (size_t i = 0; i < v->run_count; i++)
		free_run(v->all_runs[i]);
	uar_free(v->all_runs);
	uar_map_fini(&v->runs);
	uar_map_fini(&v->parts.map);
	uar_map_fini(&v->questions.map);
	validate_tasks_fini(&v->tasks);
	uar_arena_fini(&v->scratch);
	uar_free(v);
}

struct uar_validated uar_validator_counts(const struct uar_validator *v)
{
	return v->counts;
}
