/* entry_fixture.c - replays a recorded stream as a run.
 *
 * Deterministic: the same file gives the same events. After a restart it goes on
 * behind the last line that is in the log. */
#include "work/fixture.h"
#include "work/limits.h"
#include "work/spill.h"

struct fixture {
	struct worker base;
	struct uar_fixture *replay; /* NULL: over */
	bool held;		    /* the session has no room */
	struct spill *spill;	    /* a line whose long value is being stored */
	uint64_t sent;		    /* the last line that was, once it was stored */
	struct uar_timer again;	    /* when it could not be stored */
};

static uar_err on_opened(void *ctx)
{
	(void)ctx;
	return UAR_OK;
}

/* What came behind the line has waited for it. */
static void spilled(void *ctx, uar_err e, const struct uar_replay *replay, uar_str line)
{
	struct fixture *f = ctx;
	struct uar_sched *sched = rt_sched(rt_engine(f->base.run));
	struct uar_replay r = *replay;

	f->spill = NULL;
	if (e && rt_worth_retrying(e) && !uar_timer_set(sched, &f->again, UAR_RETRY_US))
		return;
	if (e) {
		rt_send_fail(f->base.run, e, "execution", uar_err_text(e));
		return;
	}
	r.line = (int64_t)++f->sent;
	f->held = !rt_send_line(f->base.run, line, &r);
	uar_fixture_resume(f->replay);
}

static void on_again(struct uar_timer *t)
{
	uar_fixture_resume(UAR_OWNER(t, struct fixture, again)->replay);
}

/* A line with a long value is refused until that is stored and the line sent. */
static uar_err on_line(void *ctx, uint64_t number, uar_str text, const struct uar_json *line)
{
	struct fixture *f = ctx;
	struct uar_replay plain = { .line = (int64_t)number };
	uar_err e;

	if (number == f->sent)
		return UAR_OK;
	if (f->held || f->spill)
		return UAR_EBUSY;
	if (!rt_spill_of(line)) {
		f->held = !rt_send_line(f->base.run, text, &plain);
		return UAR_OK;
	}
	f->sent = number - 1;
	e = rt_spill_begin(rt_engine(f->base.run), line, spilled, f, &f->spill);
	if (e && !rt_worth_retrying(e))
		return e;
	if (e)
		e = uar_timer_set(rt_sched(rt_engine(f->base.run)), &f->again, UAR_RETRY_US);
	return e ? e : UAR_EBUSY;
}

static void on_end(void *ctx, uar_err why, const struct uar_error *error)
{
	static const struct uar_command finish = { .kind = UAR_CMD_FINISH };
	struct fixture *f = ctx;

	f->replay = NULL;
	if (why)
		rt_send_fail(f->base.run, why, "execution",
			     error && error->text[0] ? error->text : uar_err_text(why));
	else
		rt_send(f->base.run, &finish);
}

static uar_err fixture_start(struct worker *w, struct uar_error *error)
{
	struct fixture *f = (struct fixture *)w;
	const struct uar_json *inputs = NULL;
	struct uar_fixture_options o = {
		.sched = rt_sched(rt_engine(w->run)),
		.dir = rt_work(w->run)->o.fixtures_dir,
		.after = (uint64_t)rt_state(w->run)->replayed,
		.sink = { on_opened, on_line, on_end, f },
	};
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(rt_state(w->run)->what.inputs, NULL, &arena, &inputs, error);
	if (!e)
		e = rt_fixture_inputs(inputs, &o.name, &o.paced, error);
	if (!e)
		e = uar_fixture_open(&o, &f->replay);
	uar_arena_fini(&arena);
	return e;
}

static void fixture_call_model(struct worker *w)
{
	(void)w;
}

static void fixture_flow(struct worker *w)
{
	struct fixture *f = (struct fixture *)w;

	if (!f->held)
		return;
	f->held = false;
	if (f->replay)
		uar_fixture_resume(f->replay);
}

static void fixture_stop(struct worker *w)
{
	struct fixture *f = (struct fixture *)w;

	uar_timer_stop(rt_sched(rt_engine(w->run)), &f->again);
	rt_spill_cancel(f->spill);
	uar_fixture_close(f->replay);
	uar_free(f);
}

static const struct worker_ops fixture_ops = { "fixture",    fixture_start, fixture_call_model,
					       fixture_flow, fixture_stop,  NULL,
					       NULL,	     NULL,	    NULL };

uar_err rt_fixture_make(struct live_run *r, struct worker **out)
{
	struct fixture *f = uar_zalloc(sizeof *f);

	(void)r;
	if (!f)
		return UAR_ENOMEM;
	f->base.ops = &fixture_ops;
	f->again.fn = on_again;
	*out = &f->base;
	return UAR_OK;
}

uar_err rt_fixture_inputs(const struct uar_json *inputs, uar_str *out_name, bool *out_paced,
			  struct uar_error *error)
{
	const struct uar_json *name = uar_json_get(inputs, UAR_STR("fixture"));
	const struct uar_json *pace = uar_json_get(inputs, UAR_STR("pace"));
	uar_str text = uar_json_str(pace, UAR_STR("recorded"));

	*out_name = uar_json_str(name, UAR_STR(""));
	*out_paced = uar_str_is(text, "recorded");
	if (!uar_fixture_name_valid(*out_name)) {
		uar_error_where(error, "/inputs/fixture");
		return uar_error_set(error, UAR_EINVALID,
				     "the name of a fixture: 1 to %d of a-z 0-9 - _",
				     UAR_LIMIT_FIXTURE_NAME);
	}
	if ((pace && pace->kind != UAR_JSON_STRING) || (!*out_paced && !uar_str_is(text, "full"))) {
		uar_error_where(error, "/inputs/pace");
		return uar_error_set(error, UAR_EINVALID, "the pace is recorded or full");
	}
	return UAR_OK;
}
