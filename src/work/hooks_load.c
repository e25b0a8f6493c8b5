/* hooks_load.c - what hooks of a run have answered, read from its log. */
#include "json/limits.h"
#include "work/hooks_int.h"

struct hooks_load {
	struct rt_op under_way;
	struct uar_read read;
	struct uar_blob_get get;
	struct agg *agg;     /* held: the read borrows its strings */
	struct hooks *hooks; /* NULL: cancelled */
	struct hook_fact *fetching;
	enum hook_blob part;
	hooks_ready_fn *ready;
	void *ctx;
	char run_id[UAR_LIMIT_ID_BYTES + 1];
};

static void drop(struct rt_op *under_way)
{
	uar_free(UAR_OWNER(under_way, struct hooks_load, under_way));
}

static void finish(struct hooks_load *l, uar_err e)
{
	struct agg *a = l->agg;

	if (l->hooks) {
		l->hooks->load = NULL;
		l->ready(l->ctx, e);
	}
	rt_op_end(&l->under_way);
	uar_store_read_fini(&l->read);
	uar_free(l);
	rt_agg_drop(a);
}

struct hook_fact *rt_hooks_new_fact(struct hooks *h, enum uar_hook_point point, uar_str id,
				    uar_str subject)
{
	struct hook_fact *f = uar_arena_alloc(&h->arena, sizeof *f);

	if (!f)
		return NULL;
	*f = (struct hook_fact){ .point = point, .reason = UAR_STR("") };
	f->id = uar_arena_str(&h->arena, id);
	f->subject = subject.n ? uar_arena_str(&h->arena, subject) : UAR_STR("");
	uar_list_init(&f->node);
	return f->id.p && f->subject.p ? f : NULL;
}

/* "blob://SHA256", alone or first in a list. */
static void take_blob(const struct uar_json *refs, const char *key, char out[65])
{
	const struct uar_json *ref = uar_json_get(refs, uar_str_c(key));
	enum { LEAD = sizeof "blob://" - 1 };

	if (ref && ref->kind == UAR_JSON_ARRAY)
		ref = ref->first;
	if (ref && ref->kind == UAR_JSON_STRING && ref->text.n == LEAD + 64)
		snprintf(out, 65, "%.*s", UAR_FMT(uar_str_from(ref->text, LEAD)));
}

static uar_err take(struct hooks *h, const struct uar_event *ev, struct uar_arena *scratch)
{
	bool failed = ev->cls == UAR_EV_HOOK_FAILED;
	const struct uar_json *p = NULL, *refs = NULL;
	uar_str call;
	enum uar_hook_point point;
	struct hook_fact *f;
	uar_err e;

	if (!failed && ev->cls != UAR_EV_HOOK_COMPLETED)
		return UAR_OK;
	e = uar_event_payload(ev, scratch, &p, NULL);
	if (!e && ev->refs.n)
		e = uar_json_parse(ev->refs, NULL, scratch, &refs, NULL);
	point = e ? UAR_HOOK_COUNT : uar_hook_point_parse(uar_json_text(p, "hook_point"));
	if (e || point == UAR_HOOK_COUNT)
		return e;
	call = uar_json_text(p, "tool_call_id");
	f = rt_hooks_new_fact(h, point, uar_json_text(p, "hook_id"),
			      call.n ? call : ev->ids[UAR_ID_MODEL_REQUEST]);
	if (!f)
		return UAR_ENOMEM;
	f->outcome = failed ? uar_str_is(uar_json_text(p, "failure_behavior"), "fail_open")
				      ? UAR_HOOK_CONTINUE
				      : UAR_HOOK_BLOCK
			    : uar_hook_outcome_parse(uar_json_text(p, "outcome"));
	if (f->outcome == UAR_HOOK_OUTCOME_COUNT)
		f->outcome = UAR_HOOK_BLOCK;
	f->reason = uar_arena_str(&h->arena,
				  failed ? UAR_STR("the hook failed") : uar_json_text(p, "reason"));
	f->suppress = uar_json_bool(uar_json_get(p, UAR_STR("suppress_output")), false);
	take_blob(refs, "updated_input_ref", f->blob[HOOK_INPUT]);
	take_blob(refs, "updated_tool_output_ref", f->blob[HOOK_OUTPUT]);
	take_blob(refs, "additional_context_refs", f->blob[HOOK_CONTEXT]);
	uar_list_add_last(&h->facts, &f->node);
	return f->reason.p ? UAR_OK : UAR_ENOMEM;
}

/* --- texts that lie apart ------------------------------------------------------------------- */

static void fetch_next(struct hooks_load *l);

static void fetched(struct uar_blob_get *get)
{
	struct hooks_load *l = UAR_OWNER(get, struct hooks_load, get);
	uar_err e = get->err;

	if (!e && l->hooks) {
		uar_str *to = &l->fetching->text[l->part];

		*to = uar_arena_str(&l->hooks->arena, get->bytes);
		e = to->p ? UAR_OK : UAR_ENOMEM;
	}
	uar_store_blob_get_fini(get);
	if (e || !l->hooks)
		finish(l, e);
	else
		fetch_next(l);
}

static bool find_next(struct hooks_load *l)
{
	UAR_LIST_EACH (it, &l->hooks->facts) {
		struct hook_fact *f = UAR_OWNER(it, struct hook_fact, node);

		for (int i = 0; i < HOOK_AUDIT; i++)
			if (f->blob[i][0] && !f->text[i].p) {
				l->fetching = f;
				l->part = (enum hook_blob)i;
				return true;
			}
	}
	return false;
}

static void fetch_next(struct hooks_load *l)
{
	struct uar_store *store = rt_store(rt_agg_engine(l->agg));
	uar_err e;

	if (!find_next(l)) {
		finish(l, UAR_OK);
		return;
	}
	l->get = (struct uar_blob_get){ .limit = UAR_LIMIT_JSON_BYTES, .done = fetched };
	memcpy(l->get.sha256, l->fetching->blob[l->part], sizeof l->get.sha256);
	e = store->ops->blob_get(store, &l->get);
	if (e)
		finish(l, e);
}

/* --- the log -------------------------------------------------------------------------------- */

static void page_ready(struct uar_read *r);

static uar_err read_page(struct hooks_load *l, uint64_t after)
{
	l->read = (struct uar_read){ .run_id = uar_str_c(l->run_id),
				     .after = after,
				     .done = page_ready };
	return rt_read_run(l->agg, &l->read);
}

static void page_ready(struct uar_read *r)
{
	/* A session begins with itself, maybe its policy, and its thread. */
	enum { FIRST = 4 };
	struct hooks_load *l = UAR_OWNER(r, struct hooks_load, read);
	uar_err e = r->err;
	uint64_t last = 0;

	for (size_t i = 0; i < r->event_count && !e && l->hooks; i++) {
		if (r->events[i].run_sequence == 1)
			l->hooks->first_run = r->events[i].sequence <= FIRST;
		e = take(l->hooks, &r->events[i], &r->arena);
		last = r->events[i].run_sequence;
	}
	if (e || !l->hooks) {
		finish(l, e);
	} else if (r->more) {
		uar_store_read_fini(r);
		e = read_page(l, last);
		if (e)
			finish(l, e);
	} else {
		fetch_next(l);
	}
}

uar_err rt_hooks_open(struct live_run *r, hooks_ready_fn *ready, void *ctx, struct hooks **out)
{
	struct hooks_load *l = uar_zalloc(sizeof *l);
	struct hooks *h = uar_zalloc(sizeof *h);
	uar_err e = l && h ? UAR_OK : UAR_ENOMEM;

	if (!e) {
		uar_arena_init(&h->arena, 0);
		uar_arena_init(&h->now.arena, 0);
		uar_list_init(&h->facts);
		h->run = r;
		h->load = l;
		l->hooks = h;
		l->agg = rt_agg(r);
		l->ready = ready;
		l->ctx = ctx;
		snprintf(l->run_id, sizeof l->run_id, "%s", rt_run_id(r));
		e = read_page(l, 0);
	}
	if (e) {
		uar_free(l);
		uar_free(h);
		return e;
	}
	rt_agg_hold(l->agg);
	rt_op_begin(rt_engine(r), &l->under_way, drop);
	*out = h;
	return UAR_OK;
}

void rt_hooks_load_cancel(struct hooks_load *l)
{
	if (l)
		l->hooks = NULL;
}
