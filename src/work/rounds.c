/* rounds.c - events of a run become rounds: what was said, asked for, and found out.
 *
 * First the log is gone through and each call's facts are noted by its id; then the
 * lists of calls and the outputs that lie apart are fetched. */
#include "work/rounds_int.h"

#include "json/limits.h"
#include "model/parts.h"
#include "tool/limits.h"
#include "work/limits.h"

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

/* --- rounds ------------------------------------------------------------------------- */

/* A text of which there may be more says so itself. */
static uar_err part_of(struct rounds_load *l, uar_str text, uint64_t total, uar_str *out)
{
	if (total <= text.n)
		return rt_rounds_own(l, text, out);
	*out = uar_arena_printf(&l->rounds->arena, "%.*s\n[the first %zu of %llu bytes]",
				UAR_FMT(text), text.n, (unsigned long long)total);
	return out->p ? UAR_OK : UAR_ENOMEM;
}

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

	return uar_str_eq(uar_json_text(p, "provider"), uar_run_provider(state)) &&
	       uar_str_eq(uar_json_text(p, "model"), uar_run_model(state));
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
	e = rt_rounds_blob(ev, "tool_calls_ref", scratch, d->blob);
	if (!e && is_same_model(l, p))
		e = rt_rounds_blob(ev, "raw_ref", scratch, d->round.raw);
	if (!e)
		e = part_of(l, uar_buf_str(&l->said), l->said_total, &d->round.text);
	if (!e)
		e = rt_rounds_own(l, list ? list->text : UAR_STR(""), &d->list);
	uar_list_add_last(&l->drafts, &d->node);
	l->draft_count++;
	return e;
}

/* A plan of a workflow: what it calls, and when it was made. */
static uar_err note_plan(struct rounds_load *l, const struct uar_event *ev,
			 const struct uar_json *p, struct uar_arena *scratch)
{
	const struct uar_json *plan =
		uar_json_get(uar_json_get(p, UAR_STR("metadata")), UAR_STR("workflow"));
	const struct uar_json *list = uar_json_get(plan, UAR_STR("tool_calls"));
	struct draft *d;
	uar_err e;

	if (!l->exact || !plan)
		return UAR_OK;
	d = uar_arena_alloc(&l->rounds->arena, sizeof *d);
	if (!d)
		return UAR_ENOMEM;
	*d = (struct draft){ .round = { .text = UAR_STR("") } };
	uar_list_init(&d->node);
	e = rt_rounds_blob(ev, "tool_calls_ref", scratch, d->blob);
	if (!e)
		e = rt_rounds_own(l, list ? list->text : UAR_STR(""), &d->list);
	l->rounds->made_us = uar_json_int(uar_json_get(plan, UAR_STR("made_us")), 0);
	uar_list_add_last(&l->drafts, &d->node);
	l->draft_count++;
	return e;
}

static bool counts(enum uar_event_class cls)
{
	switch (cls) {
	case UAR_EV_MODEL_REQUESTED:
	case UAR_EV_RUN_STATUS:
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

/* What a model says, or a plan instead of one. */
static uar_err take_said(struct rounds_load *l, const struct uar_event *ev,
			 const struct uar_json *p, struct uar_arena *scratch)
{
	switch (ev->cls) {
	case UAR_EV_MODEL_REQUESTED:
		uar_buf_clear(&l->said);
		l->said_total = 0;
		l->helps =
			!uar_str_is(uar_json_text(p, "role"), uar_call_role_name(UAR_ROLE_EXECUTE));
		if (!l->helps)
			rt_rounds_place_inputs(l->rounds, l->draft_count);
		return UAR_OK;
	case UAR_EV_RUN_STATUS: return note_plan(l, ev, p, scratch);
	case UAR_EV_MODEL_DELTA: note_said(l, uar_json_text(p, "text")); return l->said.err;
	case UAR_EV_MODEL_COMPLETED: return note_round(l, ev, p, scratch);
	default: return UAR_OK;
	}
}

static uar_err take(struct rounds_load *l, const struct uar_event *ev, struct uar_arena *scratch)
{
	const struct uar_json *p = NULL;
	bool mine = counts(ev->cls) && (l->exact || ev->cls != UAR_EV_RUN_STATUS);
	uar_err e = mine ? uar_event_payload(ev, scratch, &p, NULL) : UAR_OK;

	if (e)
		return e;
	switch (ev->cls) {
	case UAR_EV_VENDOR:
		return uar_event_is_turn_input(ev) ? rt_rounds_note_input(l->rounds, ev, scratch)
						   : UAR_OK;
	case UAR_EV_TOOL_STARTED:
	case UAR_EV_TOOL_PROGRESS: return rt_rounds_note_begun(l, ev, p);
	case UAR_EV_TOOL_RESULT:
	case UAR_EV_TOOL_FAILED: return rt_rounds_note_ended(l, ev, p, scratch);
	case UAR_EV_ACTION_REQUIRED: return rt_rounds_note_asked(l, ev, p);
	case UAR_EV_ACTION_RESOLVED: return rt_rounds_note_answered(l, ev, p, scratch);
	default: return take_said(l, ev, p, scratch);
	}
}

/* --- calls and facts come together ---------------------------------------------------- */

static uar_err join_call(struct rounds_load *l, const struct uar_json *j, struct round_call *c)
{
	struct fact *f = rt_rounds_find(l, uar_json_text(j, "id"));
	uar_err e = UAR_OK;

	*c = f ? f->c : (struct round_call){ .told = UAR_STR(""), .reason = UAR_STR("") };
	if (!f)
		e = rt_rounds_own(l, uar_json_text(j, "id"), &c->id);
	if (!e)
		e = rt_rounds_own(l, uar_json_text(j, "provider_id"), &c->provider_id);
	if (!e)
		e = rt_rounds_own(l, uar_json_text(j, "name"), &c->name);
	if (!e)
		e = rt_rounds_own(l, uar_json_text(j, "arguments"), &c->args);
	if (l->exact && !c->name.n) { /* there is nothing to call: it is what it says */
		c->started = c->ended = true;
		c->told = c->args;
	}
	return e;
}

static uar_err join(struct rounds_load *l, struct draft *d, uar_str list)
{
	const struct uar_json *j = NULL, *at;
	struct round *r = &d->round;
	struct uar_arena scratch;
	uar_err e;

	uar_arena_init(&scratch, 0);
	e = uar_json_parse(list, NULL, &scratch, &j, NULL);
	if (!e && (j->kind != UAR_JSON_ARRAY || (!j->count && !l->exact)))
		e = UAR_ECORRUPT;
	if (!e) {
		r->calls = uar_arena_alloc(&l->rounds->arena, (j->count + 1) * sizeof *r->calls);
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
		e = rt_rounds_own(l, uar_buf_str(&plain), &c->real);
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
	e = rt_rounds_own(l, bytes, &c->values);
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
		e = l->exact ? rt_rounds_own(l, get->bytes, &l->fetching->told)
			     : part_of(l, uar_str_utf8_prefix(get->bytes, UAR_LIMIT_TOOL_TOLD),
				       get->total, &l->fetching->told);
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
		return fetch(l, l->fetching->blob,
			     l->exact ? UAR_LIMIT_TOOL_OUTPUT : UAR_LIMIT_TOOL_TOLD);
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
	return l->exact ? UAR_OK : rt_rounds_fit(l->rounds);
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
		l->exact = rt_state(r)->what.entry == UAR_ENTRY_WORKFLOW;
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
