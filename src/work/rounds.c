/* rounds.c - events of a run become rounds: what was said, asked for, and found out.
 *
 * First the log is gone through and each call's facts are noted by its id; then the
 * lists of calls and the outputs that lie apart are fetched. */
#include "work/rounds.h"

#include "event/limits.h"
#include "json/limits.h"
#include "model/parts.h"
#include "tool/limits.h"
#include "work/limits.h"

/* What the log says of one call. */
struct fact {
	struct uar_list node;
	struct round_call c;
};

/* One round, while it is read. */
struct draft {
	struct uar_list node;
	struct round round;
	uar_str list;  /* JSON array of its calls */
	bool plain;    /* it has none: an answer that a message came behind */
	char blob[65]; /* that holds it instead; empty: none */
};

struct rounds_load {
	struct rt_op under_way;
	struct uar_read read;
	struct uar_blob_get get;
	struct agg *agg;      /* held: the read borrows its strings */
	struct live_run *run; /* NULL: cancelled */
	struct rounds *rounds;
	struct uar_list drafts, facts;
	size_t draft_count;
	struct uar_buf said; /* by the model in the round that is read */
	uint64_t said_total;
	bool helps; /* the call that is read: to plan or to condense */
	struct draft *fetching_list;
	struct round_call *fetching;
	struct round *fetching_raw;
	struct round_call *fetching_values;
	struct round_input *fetching_input;
	struct round_media *fetching_media;
	rounds_ready_fn *ready;
	void *ctx;
	char run_id[UAR_LIMIT_ID_BYTES + 1];
};

void rt_rounds_free(struct rounds *s)
{
	if (!s)
		return;
	uar_arena_fini(&s->arena);
	uar_free(s);
}

static void free_load(struct rounds_load *l)
{
	rt_rounds_free(l->rounds);
	uar_buf_fini(&l->said);
	uar_free(l);
}

static void drop(struct rt_op *under_way)
{
	free_load(UAR_OWNER(under_way, struct rounds_load, under_way));
}

static void finish(struct rounds_load *l, uar_err e, const struct uar_error *error)
{
	struct agg *a = l->agg;
	struct rounds *s = l->rounds;

	if (l->run && !e)
		l->rounds = NULL;
	if (l->run)
		l->ready(l->ctx, e, error, e ? NULL : s);
	rt_op_end(&l->under_way);
	uar_store_read_fini(&l->read);
	free_load(l);
	rt_agg_drop(a);
}

/* --- facts -------------------------------------------------------------------------- */

static uar_err own(struct rounds_load *l, uar_str s, uar_str *out)
{
	*out = s.n ? uar_arena_str(&l->rounds->arena, s) : UAR_STR("");
	return out->p ? UAR_OK : UAR_ENOMEM;
}

/* A text of which there may be more says so itself. */
static uar_err part_of(struct rounds_load *l, uar_str text, uint64_t total, uar_str *out)
{
	if (total <= text.n)
		return own(l, text, out);
	*out = uar_arena_printf(&l->rounds->arena, "%.*s\n[the first %zu of %llu bytes]",
				UAR_FMT(text), text.n, (unsigned long long)total);
	return out->p ? UAR_OK : UAR_ENOMEM;
}

static struct fact *find_fact(struct rounds_load *l, uar_str id)
{
	/* The newest first: it is the one that is still spoken of. */
	for (struct uar_list *it = l->facts.prev; it != &l->facts; it = it->prev)
		if (uar_str_eq(UAR_OWNER(it, struct fact, node)->c.id, id))
			return UAR_OWNER(it, struct fact, node);
	return NULL;
}

static struct fact *fact_of(struct rounds_load *l, uar_str id)
{
	struct fact *f = find_fact(l, id);

	if (f)
		return f;
	f = uar_arena_alloc(&l->rounds->arena, sizeof *f);
	if (!f)
		return NULL;
	*f = (struct fact){ .c = { .told = UAR_STR("") } };
	if (own(l, id, &f->c.id))
		return NULL;
	uar_list_init(&f->node);
	uar_list_add_last(&l->facts, &f->node);
	return f;
}

static uar_str text_of(const struct uar_json *p, const char *key)
{
	return uar_json_str(uar_json_get(p, uar_str_c(key)), UAR_STR(""));
}

static int64_t action_number(const struct uar_event *ev)
{
	uar_str run_id;
	int64_t number = 0;

	return uar_action_parse(ev->ids[UAR_ID_ACTION], &run_id, &number) ? number : 0;
}

/* The sha256 that a ref of the event names, in out; empty: it has no such ref. */
static uar_err blob_of(const struct uar_event *ev, const char *ref, struct uar_arena *scratch,
		       char out[65])
{
	uar_str sha256;
	uar_err e = uar_event_blob(ev, ref, scratch, &sha256);

	if (!e)
		snprintf(out, 65, "%.*s", UAR_FMT(sha256));
	return e;
}

/* It is executed from here on: an earlier permission is used up. */
static uar_err note_begun(struct rounds_load *l, const struct uar_event *ev,
			  const struct uar_json *p)
{
	struct fact *f = fact_of(l, ev->ids[UAR_ID_TOOL_CALL]);

	if (!f)
		return UAR_ENOMEM;
	if (ev->cls == UAR_EV_TOOL_STARTED)
		f->c.effect = uar_tool_effect_parse(text_of(p, "effect"));
	else if (!uar_json_bool(uar_json_get(p, UAR_STR("again")), false))
		return UAR_OK; /* news of it */
	f->c.repeats += ev->cls == UAR_EV_TOOL_PROGRESS && !f->c.allowed;
	f->c.started = true;
	f->c.allowed = f->c.denied = false;
	return UAR_OK;
}

static uar_err note_asked(struct rounds_load *l, const struct uar_event *ev,
			  const struct uar_json *p)
{
	uar_str id = text_of(uar_json_get(p, UAR_STR("scope")), "tool_call_id");
	struct fact *f = id.n ? fact_of(l, id) : NULL;

	enum uar_action_type type = uar_action_type_parse(text_of(p, "action_type"));
	uar_str kind = text_of(uar_json_get(p, UAR_STR("scope")), "kind");

	if (!f)
		return id.n ? UAR_ENOMEM : UAR_OK;
	if (uar_str_is(kind, "elicitation") || uar_str_is(kind, "login") ||
	    uar_str_is(kind, "sampling"))
		return UAR_OK; /* asked by the tool at work: its arguments are what they are */
	if (type < UAR_ACTION_TYPE_COUNT && uar_action_info[type].input)
		f->c.form = action_number(ev);
	else
		f->c.action = action_number(ev);
	return UAR_OK;
}

/* The values that somebody gave, or where they lie. */
static uar_err note_values(struct rounds_load *l, struct fact *f, const struct uar_event *ev,
			   const struct uar_json *p, struct uar_arena *scratch)
{
	const struct uar_json *values = uar_json_get(p, UAR_STR("payload"));
	struct uar_buf text = uar_buf_make(UAR_LIMIT_EVENT_BYTES * 2);
	uar_err e;

	f->c.filled = uar_str_is(text_of(p, "result"), "answer");
	f->c.declined = !f->c.filled;
	if (values)
		uar_json_write(&text, values);
	e = text.err;
	if (!e)
		e = own(l, values ? uar_buf_str(&text) : UAR_STR("{}"), &f->c.values);
	uar_buf_fini(&text);
	f->c.real = f->c.values;
	if (!e)
		e = blob_of(ev, "payload_ref", scratch, f->c.values_blob);
	if (!e)
		e = blob_of(ev, "sealed_ref", scratch, f->c.sealed);
	return e ? e : own(l, text_of(p, "reason"), &f->c.reason);
}

static uar_err note_answered(struct rounds_load *l, const struct uar_event *ev,
			     const struct uar_json *p, struct uar_arena *scratch)
{
	int64_t number = action_number(ev);

	for (struct uar_list *it = l->facts.prev; it != &l->facts; it = it->prev) {
		struct fact *f = UAR_OWNER(it, struct fact, node);

		if (f->c.form == number)
			return note_values(l, f, ev, p, scratch);
		if (f->c.action != number)
			continue;
		f->c.allowed = uar_str_is(text_of(p, "result"), "allow");
		f->c.denied = !f->c.allowed;
		f->c.repeats = 0;
		return own(l, text_of(p, "reason"), &f->c.reason);
	}
	return UAR_OK;
}

bool rt_rounds_was_executed(uar_str category)
{
	static const char *const all[] = { "execution", "timeout", "dependency",
					   "sandbox_violation", "result_too_large" };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (uar_str_is(category, all[i]))
			return true;
	return false;
}

static uar_err note_ended(struct rounds_load *l, const struct uar_event *ev,
			  const struct uar_json *p, struct uar_arena *scratch)
{
	struct fact *f = fact_of(l, ev->ids[UAR_ID_TOOL_CALL]);
	struct uar_buf out = uar_buf_make(UAR_LIMIT_EVENT_BYTES * 2);
	uar_err e;

	if (!f)
		return UAR_ENOMEM;
	f->c.ended = true;
	f->c.failed = ev->cls == UAR_EV_TOOL_FAILED;
	f->c.broke = f->c.failed && rt_rounds_was_executed(text_of(p, "failure_category"));
	rt_rounds_write_end(&out, ev, p);
	f->c.told_bytes = uar_json_int(uar_json_get(p, UAR_STR("output_bytes")), (int64_t)out.n);
	e = out.err;
	if (!e)
		e = blob_of(ev, "output_ref", scratch, f->c.blob);
	if (!e)
		e = blob_of(ev, "parts_ref", scratch, f->c.media.blob);
	if (!e)
		e = own(l, uar_buf_str(&out), &f->c.told);
	uar_buf_fini(&out);
	return e;
}

/* --- rounds ------------------------------------------------------------------------- */

static void note_said(struct rounds_load *l, uar_str text)
{
	if (l->said_total == l->said.n) /* nothing is missing before it */
		uar_buf_add_str(&l->said,
				uar_str_utf8_prefix(text, UAR_LIMIT_TOOL_TOLD - l->said.n));
	l->said_total += text.n;
}

/* Another provider, or another model of it, does not understand its blocks. */
static bool is_same_model(const struct rounds_load *l, const struct uar_json *p)
{
	const struct uar_run *state = rt_state(l->run);

	return uar_str_eq(text_of(p, "provider"), uar_run_provider(state)) &&
	       uar_str_eq(text_of(p, "model"), uar_run_model(state));
}

static uar_err note_round(struct rounds_load *l, const struct uar_event *ev,
			  const struct uar_json *p, struct uar_arena *scratch)
{
	const struct uar_json *list = uar_json_get(p, UAR_STR("tool_calls"));
	bool plain = uar_json_int(uar_json_get(p, UAR_STR("tool_call_count")), 0) <= 0;
	struct draft *d;
	uar_err e;

	if (plain && (l->helps || !rt_rounds_has_new_input(l->rounds)))
		return UAR_OK;
	d = uar_arena_alloc(&l->rounds->arena, sizeof *d);
	if (!d)
		return UAR_ENOMEM;
	*d = (struct draft){ .plain = plain };
	uar_list_init(&d->node);
	e = blob_of(ev, "tool_calls_ref", scratch, d->blob);
	if (!e && is_same_model(l, p))
		e = blob_of(ev, "raw_ref", scratch, d->round.raw);
	if (!e)
		e = part_of(l, uar_buf_str(&l->said), l->said_total, &d->round.text);
	if (!e)
		e = own(l, list ? list->text : UAR_STR(""), &d->list);
	uar_list_add_last(&l->drafts, &d->node);
	l->draft_count++;
	return e;
}

static bool counts(enum uar_event_class cls)
{
	switch (cls) {
	case UAR_EV_MODEL_REQUESTED:
	case UAR_EV_MODEL_DELTA:
	case UAR_EV_MODEL_COMPLETED:
	case UAR_EV_TOOL_STARTED:
	case UAR_EV_TOOL_PROGRESS:
	case UAR_EV_TOOL_RESULT:
	case UAR_EV_TOOL_FAILED:
	case UAR_EV_ACTION_REQUIRED:
	case UAR_EV_ACTION_RESOLVED: return true;
	default: return false; /* nothing that a round consists of */
	}
}

static uar_err take(struct rounds_load *l, const struct uar_event *ev, struct uar_arena *scratch)
{
	const struct uar_json *p = NULL;
	uar_err e = counts(ev->cls) ? uar_event_payload(ev, scratch, &p, NULL) : UAR_OK;

	if (e)
		return e;
	switch (ev->cls) {
	case UAR_EV_MODEL_REQUESTED:
		uar_buf_clear(&l->said);
		l->said_total = 0;
		l->helps = !uar_str_is(text_of(p, "role"), uar_call_role_name(UAR_ROLE_EXECUTE));
		if (!l->helps)
			rt_rounds_place_inputs(l->rounds, l->draft_count);
		return UAR_OK;
	case UAR_EV_VENDOR:
		return uar_event_is_turn_input(ev) ? rt_rounds_note_input(l->rounds, ev, scratch)
						   : UAR_OK;
	case UAR_EV_MODEL_DELTA: note_said(l, text_of(p, "text")); return l->said.err;
	case UAR_EV_MODEL_COMPLETED: return note_round(l, ev, p, scratch);
	case UAR_EV_TOOL_STARTED:
	case UAR_EV_TOOL_PROGRESS: return note_begun(l, ev, p);
	case UAR_EV_TOOL_RESULT:
	case UAR_EV_TOOL_FAILED: return note_ended(l, ev, p, scratch);
	case UAR_EV_ACTION_REQUIRED: return note_asked(l, ev, p);
	case UAR_EV_ACTION_RESOLVED: return note_answered(l, ev, p, scratch);
	default: return UAR_OK;
	}
}

/* --- calls and facts come together ---------------------------------------------------- */

static uar_err join_call(struct rounds_load *l, const struct uar_json *j, struct round_call *c)
{
	struct fact *f = find_fact(l, text_of(j, "id"));
	uar_err e = UAR_OK;

	*c = f ? f->c : (struct round_call){ .told = UAR_STR(""), .reason = UAR_STR("") };
	if (!f)
		e = own(l, text_of(j, "id"), &c->id);
	if (!e)
		e = own(l, text_of(j, "provider_id"), &c->provider_id);
	if (!e)
		e = own(l, text_of(j, "name"), &c->name);
	return e ? e : own(l, text_of(j, "arguments"), &c->args);
}

static uar_err join(struct rounds_load *l, struct draft *d, uar_str list)
{
	const struct uar_json *j = NULL, *at;
	struct round *r = &d->round;
	struct uar_arena scratch;
	uar_err e;

	uar_arena_init(&scratch, 0);
	e = uar_json_parse(list, NULL, &scratch, &j, NULL);
	if (!e && (j->kind != UAR_JSON_ARRAY || !j->count))
		e = UAR_ECORRUPT;
	if (!e) {
		r->calls = uar_arena_alloc(&l->rounds->arena, j->count * sizeof *r->calls);
		e = r->calls ? UAR_OK : UAR_ENOMEM;
	}
	for (at = e ? NULL : uar_json_first(j); at && !e; at = at->next)
		e = join_call(l, at, &r->calls[r->call_count++]);
	uar_arena_fini(&scratch);
	return e;
}

/* --- what lies apart -------------------------------------------------------------------- */

static void fetch_next(struct rounds_load *l);

static uar_err gather(struct rounds_load *l)
{
	struct rounds *s = l->rounds;

	s->at = uar_arena_alloc(&s->arena, (l->draft_count + 1) * sizeof *s->at);
	if (!s->at)
		return UAR_ENOMEM;
	UAR_LIST_EACH (it, &l->drafts)
		s->at[s->count++] = UAR_OWNER(it, struct draft, node)->round;
	rt_rounds_place_inputs(s, s->count);
	return s->count || s->input_count ? UAR_OK : UAR_ECORRUPT;
}

static uar_err read_parts(struct rounds_load *l, struct round *r, uar_str json)
{
	struct uar_model_said said;
	uar_err e = uar_model_parts_read(json, &l->rounds->arena, &said);

	if (e)
		return e;
	r->raw[0] = 0;
	r->parts = said.parts;
	r->part_count = said.part_count;
	return UAR_OK;
}

/* What was sealed under a key that is gone is asked for again. */
static uar_err unseal_values(struct rounds_load *l, struct round_call *c, uar_str bytes)
{
	struct uar_buf plain = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	char about[UAR_ACTION_TEXT + 1];
	uar_err e;

	uar_action_id(uar_str_c(l->run_id), c->form, about);
	e = uar_unseal(rt_seal(rt_agg_engine(l->agg)), bytes, uar_str_c(about), &plain);
	c->sealed[0] = 0;
	if (e == UAR_ECORRUPT) {
		c->filled = false;
		e = UAR_OK;
	} else if (!e) {
		e = own(l, uar_buf_str(&plain), &c->real);
	}
	uar_buf_fini(&plain);
	return e;
}

static uar_err take_values(struct rounds_load *l, struct round_call *c, uar_str bytes)
{
	uar_err e;

	if (!c->values_blob[0])
		return unseal_values(l, c, bytes);
	c->values_blob[0] = 0;
	e = own(l, bytes, &c->values);
	c->real = c->values;
	return e;
}

/* A list of calls, or all parts of an answer: JSON, or sealed when an argument is a secret. */
static uar_err read_said(struct rounds_load *l, uar_str bytes)
{
	struct uar_buf plain = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	bool sealed = bytes.n && bytes.p[0] != '[' && bytes.p[0] != '{';
	uar_str json = bytes;
	uar_err e = UAR_OK;

	if (sealed) {
		e = uar_unseal(rt_seal(rt_agg_engine(l->agg)), bytes, uar_str_c(l->run_id), &plain);
		json = e ? UAR_STR("") : uar_arena_str(&l->rounds->arena, uar_buf_str(&plain));
		e = e || json.p ? e : UAR_ENOMEM;
	}
	if (!e && l->fetching_list) {
		l->fetching_list->blob[0] = 0;
		e = join(l, l->fetching_list, json);
	} else if (!e) {
		e = read_parts(l, l->fetching_raw, json);
	}
	uar_buf_fini(&plain);
	return e;
}

static void fetched(struct uar_blob_get *get)
{
	struct rounds_load *l = UAR_OWNER(get, struct rounds_load, get);
	uar_err e = get->err;

	if (!e && (l->fetching_list || l->fetching_raw)) {
		e = read_said(l, get->bytes);
	} else if (!e && l->fetching_values) {
		e = take_values(l, l->fetching_values, get->bytes);
	} else if (!e && l->fetching_input) {
		l->fetching_input->blob[0] = 0;
		e = rt_rounds_complete_input(l->rounds, l->fetching_input, get->bytes);
	} else if (!e && l->fetching_media) {
		e = rt_rounds_take_media(l->rounds, l->fetching_media, get->bytes);
	} else if (!e) {
		l->fetching->blob[0] = 0;
		e = part_of(l, uar_str_utf8_prefix(get->bytes, UAR_LIMIT_TOOL_TOLD), get->total,
			    &l->fetching->told);
	}
	uar_store_blob_get_fini(get);
	l->fetching_list = NULL;
	l->fetching_raw = NULL;
	l->fetching_values = NULL;
	l->fetching_input = NULL;
	l->fetching_media = NULL;
	l->fetching = NULL;
	if (e || !l->run)
		finish(l, e, NULL);
	else
		fetch_next(l);
}

static uar_err fetch(struct rounds_load *l, const char *sha256, size_t limit)
{
	struct uar_store *store = rt_store(rt_agg_engine(l->agg));

	l->get = (struct uar_blob_get){ .limit = limit, .done = fetched };
	memcpy(l->get.sha256, sha256, sizeof l->get.sha256);
	return store->ops->blob_get(store, &l->get);
}

/* A list that is in its event needs no fetching. */
static uar_err next_list(struct rounds_load *l, bool *out_fetching)
{
	uar_err e = UAR_OK;

	*out_fetching = false;
	UAR_LIST_EACH (it, &l->drafts) {
		struct draft *d = UAR_OWNER(it, struct draft, node);

		if (d->round.calls || d->plain || e)
			continue;
		if (d->blob[0]) {
			l->fetching_list = d;
			*out_fetching = true;
			return fetch(l, d->blob, UAR_LIMIT_JSON_BYTES);
		}
		e = join(l, d, d->list);
	}
	return e;
}

static struct round_call *next_output(const struct rounds *s)
{
	for (size_t i = 0; i < s->count; i++)
		for (size_t k = 0; k < s->at[i].call_count; k++)
			if (s->at[i].calls[k].blob[0])
				return &s->at[i].calls[k];
	return NULL;
}

static struct round *next_raw(const struct rounds *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->at[i].raw[0])
			return &s->at[i];
	return NULL;
}

/* Values that calls of the last round are executed with. */
static uar_err next_values(struct rounds_load *l, bool *out_fetching)
{
	const struct round *last = &l->rounds->at[l->rounds->count - 1];

	for (size_t i = 0; i < last->call_count; i++) {
		struct round_call *c = &last->calls[i];

		if (c->ended || (!c->values_blob[0] && !c->sealed[0]))
			continue;
		l->fetching_values = c;
		*out_fetching = true;
		return fetch(l, c->values_blob[0] ? c->values_blob : c->sealed,
			     2 * (size_t)UAR_LIMIT_JSON_BYTES);
	}
	return UAR_OK;
}

/* What the model is told besides; a round that goes on needs none of it yet. */
static uar_err next_told(struct rounds_load *l, bool *out_fetching)
{
	*out_fetching = true;
	l->fetching = next_output(l->rounds);
	if (l->fetching)
		return fetch(l, l->fetching->blob, UAR_LIMIT_TOOL_TOLD);
	l->fetching_raw = next_raw(l->rounds);
	if (l->fetching_raw)
		return fetch(l, l->fetching_raw->raw, UAR_LIMIT_JSON_BYTES);
	l->fetching_input = rt_rounds_cut_input(l->rounds);
	if (l->fetching_input)
		return fetch(l, l->fetching_input->blob, UAR_LIMIT_HTTP_BODY);
	l->fetching_media = rt_rounds_next_media(l->rounds);
	if (l->fetching_media)
		return fetch(l, l->fetching_media->blob, UAR_LIMIT_TOOL_PARTS);
	*out_fetching = false;
	return rt_rounds_fit(l->rounds);
}

static void fetch_next(struct rounds_load *l)
{
	bool fetching = false;
	uar_err e = l->rounds->at ? UAR_OK : next_list(l, &fetching);

	if (!e && fetching)
		return;
	if (!e && !l->rounds->at)
		e = gather(l);
	if (!e)
		e = rt_rounds_unfinished(l->rounds) ? next_values(l, &fetching)
						    : next_told(l, &fetching);
	if (e || !fetching)
		finish(l, e, NULL);
}

/* --- the log ------------------------------------------------------------------------------ */

static void page_ready(struct uar_read *r);

static uar_err read_page(struct rounds_load *l, uint64_t after)
{
	l->read = (struct uar_read){ .run_id = uar_str_c(l->run_id),
				     .after = after,
				     .done = page_ready };
	return rt_read_run(l->agg, &l->read);
}

static void page_ready(struct uar_read *r)
{
	struct rounds_load *l = UAR_OWNER(r, struct rounds_load, read);
	uar_err e = r->err;
	uint64_t last = 0;

	if (!l->run) {
		finish(l, e, NULL);
		return;
	}
	for (size_t i = 0; i < r->event_count && !e; i++) {
		e = take(l, &r->events[i], &r->arena);
		last = r->events[i].run_sequence;
	}
	if (e) {
		finish(l, e, r->err ? &r->error : NULL);
	} else if (r->more) {
		uar_store_read_fini(r);
		e = read_page(l, last);
		if (e)
			finish(l, e, NULL);
	} else {
		fetch_next(l);
	}
}

uar_err rt_rounds_load(struct live_run *r, rounds_ready_fn *ready, void *ctx,
		       struct rounds_load **out)
{
	struct rounds_load *l = uar_zalloc(sizeof *l);
	uar_err e = UAR_ENOMEM;

	if (!l)
		return UAR_ENOMEM;
	l->rounds = uar_zalloc(sizeof *l->rounds);
	if (l->rounds) {
		uar_arena_init(&l->rounds->arena, 0);
		uar_list_init(&l->drafts);
		uar_list_init(&l->facts);
		l->said = uar_buf_make(UAR_LIMIT_TOOL_TOLD);
		l->agg = rt_agg(r);
		l->run = r;
		l->ready = ready;
		l->ctx = ctx;
		memcpy(l->run_id, rt_run_id(r), sizeof l->run_id);
		e = read_page(l, 0);
	}
	if (e) {
		free_load(l);
		return e;
	}
	rt_agg_hold(rt_agg(r));
	rt_op_begin(rt_engine(r), &l->under_way, drop);
	*out = l;
	return UAR_OK;
}

void rt_rounds_cancel(struct rounds_load *l)
{
	if (l)
		l->run = NULL;
}
