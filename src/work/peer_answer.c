/* peer_answer.c - reads the questions of a run, and their answers, from its log. */
#include "work/peer_answer.h"

#include "event/limits.h"
#include "json/limits.h"

struct peer_answers_load {
	struct rt_op under_way;
	struct agg *agg;      /* held */
	struct live_run *run; /* NULL: cancelled */
	struct uar_read read;
	struct uar_blob_get get;
	struct peer_answers a;
	peer_answers_fn *done;
	void *ctx;
	char run_id[UAR_LIMIT_ID_BYTES + 1];
};

static void free_load(struct peer_answers_load *l)
{
	uar_arena_fini(&l->a.arena);
	uar_free(l);
}

static void drop(struct rt_op *under_way)
{
	free_load(UAR_OWNER(under_way, struct peer_answers_load, under_way));
}

static void finish(struct peer_answers_load *l, uar_err e)
{
	struct agg *agg = l->agg;

	if (l->run)
		l->done(l->ctx, e, &l->a);
	rt_op_end(&l->under_way);
	free_load(l);
	rt_agg_drop(agg);
}

static uar_err own(struct peer_answers_load *l, uar_str s, uar_str *out)
{
	*out = uar_arena_str(&l->a.arena, s);
	return out->p ? UAR_OK : UAR_ENOMEM;
}

static int64_t number_of(const struct uar_event *ev)
{
	int64_t number = 0;
	uar_str run_id;

	return uar_action_parse(ev->ids[UAR_ID_ACTION], &run_id, &number) ? number : 0;
}

static void note_asked(struct peer_answers_load *l, const struct uar_event *ev,
		       const struct uar_json *p)
{
	const struct uar_json *scope = uar_json_get(p, UAR_STR("scope"));
	uar_str kind = uar_json_text(scope, "kind");

	if (uar_str_is(kind, UAR_PEER_ASK_AGAIN)) {
		l->a.again_number = number_of(ev);
		l->a.again_answered = false;
		return;
	}
	l->a.number = number_of(ev);
	l->a.answered = false;
	l->a.auth = uar_str_is(kind, UAR_PEER_ASK_AUTH);
	l->a.text = !uar_json_bool(uar_json_pointer(p, UAR_STR("/scope/input/schema")), false);
}

static uar_err blob_of(const struct uar_event *ev, const char *ref, struct uar_arena *scratch,
		       char out[UAR_SHA256_TEXT + 1])
{
	uar_str blob = UAR_STR_NONE;
	uar_err e = uar_event_blob(ev, ref, scratch, &blob);

	snprintf(out, UAR_SHA256_TEXT + 1, "%.*s", UAR_FMT(blob));
	return e;
}

static uar_err note_values(struct peer_answers_load *l, const struct uar_event *ev,
			   const struct uar_json *p, struct uar_arena *scratch)
{
	const struct uar_json *values = uar_json_get(p, UAR_STR("payload"));
	struct uar_buf text = uar_buf_make(2 * (size_t)UAR_LIMIT_JSON_BYTES);
	uar_err e;

	if (values)
		uar_json_write(&text, values);
	e = text.err;
	if (!e)
		e = own(l, uar_buf_str(&text), &l->a.values);
	uar_buf_fini(&text);
	if (!e)
		e = blob_of(ev, "payload_ref", scratch, l->a.values_blob);
	return e ? e : blob_of(ev, "sealed_ref", scratch, l->a.sealed);
}

static uar_err note_answered(struct peer_answers_load *l, const struct uar_event *ev,
			     const struct uar_json *p, struct uar_arena *scratch)
{
	uar_err e;

	if (number_of(ev) == l->a.again_number) {
		l->a.again_answered = true;
		l->a.again_allowed = uar_str_is(uar_json_text(p, "result"), "allow");
		return UAR_OK;
	}
	l->a.answered = true;
	e = own(l, uar_json_text(p, "decision"), &l->a.decision);
	if (!e)
		e = own(l, uar_json_text(p, "reason"), &l->a.reason);
	return e ? e : note_values(l, ev, p, scratch);
}

static uar_err take(struct peer_answers_load *l, const struct uar_event *ev,
		    struct uar_arena *scratch)
{
	const struct uar_json *p = NULL;
	uar_err e;

	if (ev->cls != UAR_EV_ACTION_REQUIRED && ev->cls != UAR_EV_ACTION_RESOLVED)
		return UAR_OK;
	e = uar_event_payload(ev, scratch, &p, NULL);
	if (e)
		return e;
	if (ev->cls == UAR_EV_ACTION_RESOLVED)
		return note_answered(l, ev, p, scratch);
	note_asked(l, ev, p);
	return UAR_OK;
}

/* --- what lies apart ------------------------------------------------------------------------- */

static uar_err unseal(struct peer_answers_load *l, uar_str bytes)
{
	struct uar_buf plain = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	char about[UAR_ACTION_TEXT + 1];
	uar_err e;

	uar_action_id(uar_str_c(l->run_id), l->a.number, about);
	e = uar_unseal(rt_seal(rt_agg_engine(l->agg)), bytes, uar_str_c(about), &plain);
	if (!e)
		e = own(l, uar_buf_str(&plain), &l->a.values);
	if (plain.p)
		explicit_bzero(plain.p, plain.cap);
	uar_buf_fini(&plain);
	return e;
}

static void fetched(struct uar_blob_get *get)
{
	struct peer_answers_load *l = UAR_OWNER(get, struct peer_answers_load, get);
	uar_err e = get->err;

	if (!e && l->a.sealed[0])
		e = unseal(l, get->bytes);
	else if (!e)
		e = own(l, get->bytes, &l->a.values);
	uar_store_blob_get_fini(get);
	finish(l, e);
}

/* The values that were hidden count, else those of the event or of a blob. */
static void fetch_values(struct peer_answers_load *l)
{
	struct uar_store *store = rt_store(rt_agg_engine(l->agg));
	const char *blob = l->a.sealed[0] ? l->a.sealed : l->a.values_blob;
	uar_err e = UAR_OK;

	if (l->run && blob[0]) {
		l->get = (struct uar_blob_get){ .limit = 2 * (size_t)UAR_LIMIT_JSON_BYTES,
						.done = fetched };
		memcpy(l->get.sha256, blob, sizeof l->get.sha256);
		e = store->ops->blob_get(store, &l->get);
		if (!e)
			return;
	}
	finish(l, e);
}

static void page_ready(struct uar_read *r);

static uar_err read_page(struct peer_answers_load *l, uint64_t after)
{
	struct uar_store *store = rt_store(rt_agg_engine(l->agg));

	l->read = (struct uar_read){ .owner = rt_agg_session(l->agg)->owner,
				     .run_id = uar_str_c(l->run_id),
				     .after = after,
				     .limit = UAR_LIMIT_READ_PAGE,
				     .done = page_ready };
	return store->ops->read(store, &l->read);
}

static void page_ready(struct uar_read *r)
{
	struct peer_answers_load *l = UAR_OWNER(r, struct peer_answers_load, read);
	uar_err e = r->err;
	bool more = r->more && l->run;
	uint64_t last = 0;

	for (size_t i = 0; i < r->event_count && !e; i++) {
		e = take(l, &r->events[i], &r->arena);
		last = r->events[i].run_sequence;
	}
	uar_store_read_fini(r);
	if (!e && more)
		e = read_page(l, last);
	if (e)
		finish(l, e);
	else if (!more)
		fetch_values(l);
}

uar_err rt_peer_answers_load(struct live_run *r, peer_answers_fn *done, void *ctx,
			     struct peer_answers_load **out)
{
	struct peer_answers_load *l = uar_zalloc(sizeof *l);
	uar_err e;

	if (!l)
		return UAR_ENOMEM;
	uar_arena_init(&l->a.arena, 0);
	l->a.values = l->a.decision = l->a.reason = UAR_STR("");
	l->agg = rt_agg(r);
	l->run = r;
	l->done = done;
	l->ctx = ctx;
	snprintf(l->run_id, sizeof l->run_id, "%s", rt_run_id(r));
	e = read_page(l, 0);
	if (e) {
		free_load(l);
		return e;
	}
	rt_agg_hold(l->agg);
	rt_op_begin(rt_engine(r), &l->under_way, drop);
	*out = l;
	return UAR_OK;
}

void rt_peer_answers_cancel(struct peer_answers_load *l)
{
	if (l)
		l->run = NULL;
}
