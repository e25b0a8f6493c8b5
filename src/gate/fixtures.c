/* fixtures.c - recorded streams as they are, for clients that are being built. */
#include "gate/gate_int.h"
#include "work/fixture.h"
#include "work/limits.h"

/* --- the list ------------------------------------------------------------------- */

static void answer_list(struct call *c, const struct uar_fixture_job *job)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_FIXTURES * (UAR_LIMIT_FIXTURE_NAME + 4) + 64);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "fixtures");
	for (size_t i = 0; i < job->name_count; i++)
		uar_jw_str(&w, NULL, job->names[i]);
	uar_jw_close(&w);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	gate_answer(c, 200, &b);
	uar_buf_fini(&b);
}

static void listed(struct uar_fixture_job *job)
{
	struct call *c = job->ctx;

	if (job->err)
		gate_problem(c, job->err, &job->error);
	else
		answer_list(c, job);
}

static void forget_list(struct call *c)
{
	uar_fixture_job_forget(c->op);
	gate_call_free(c);
}

void gate_list_fixtures(struct call *c)
{
	struct uar_fixture_job *job =
		uar_fixture_job_make(UAR_FIXTURE_LIST, c->g->o.fixtures_dir, UAR_STR_NONE);
	uar_err e = UAR_ENOMEM;

	if (job) {
		job->done = listed;
		job->ctx = c;
		e = uar_fixture_job_begin(c->g->o.sched, job);
	}
	if (e) {
		gate_problem(c, e, NULL);
		return;
	}
	c->op = job;
	c->gone = forget_list;
}

/* --- a replay on its way: nothing of it is stored, so it starts anew each time ----- */

struct replay {
	struct gate_stream base;
	struct call *call;	    /* until the answer has begun */
	struct uar_fixture *replay; /* NULL: over */
};

static void drop_replay(struct gate_stream *base)
{
	struct replay *p = UAR_OWNER(base, struct replay, base);

	gate_stream_forget(base);
	uar_fixture_close(p->replay);
	uar_free(p);
}

static void on_writable(void *ctx)
{
	struct replay *p = ctx;

	if (p->replay)
		uar_fixture_resume(p->replay);
}

static void on_closed(void *ctx)
{
	drop_replay(ctx);
}

static uar_err on_opened(void *ctx)
{
	struct replay *p = ctx;
	struct uar_http_stream_events events = { on_writable, on_closed, p };
	uar_err e = gate_stream_open(&p->base, p->call, &events);

	if (!e || e == UAR_ESKIP)
		p->call = NULL;
	return e;
}

/* A line may be as long as its file, which is more than an event of the log has. */
static struct uar_frame *frame_of(const struct uar_json *line, uint64_t number)
{
	struct uar_buf text = uar_buf_make(2 * UAR_LIMIT_FIXTURE_BYTES);
	struct uar_frame *frame;
	struct uar_jw w;
	uar_err e;

	uar_buf_printf(&text, "event: event\nid: %llu\ndata: ", (unsigned long long)number);
	w = uar_jw_begin(&text);
	uar_jw_obj(&w, NULL);
	uar_jw_tree(&w, "type", uar_json_get(line, UAR_STR("type")));
	uar_jw_tree(&w, "data", uar_json_get(line, UAR_STR("data")));
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	uar_buf_add_str(&text, UAR_STR("\n\n"));
	frame = e || text.err ? NULL : uar_frame_create(uar_buf_str(&text));
	uar_buf_fini(&text);
	return frame;
}

static uar_err on_line(void *ctx, uint64_t number, uar_str text, const struct uar_json *line)
{
	struct replay *p = ctx;
	struct uar_frame *frame = frame_of(line, number);
	uar_err e = frame ? uar_http_stream_send(p->base.http, frame) : UAR_ENOMEM;

	(void)text;
	uar_frame_unref(frame);
	return e;
}

/* The peer's end (UAR_EEOF) is told by on_closed as well; that one frees. */
static void on_end(void *ctx, uar_err why, const struct uar_error *error)
{
	struct replay *p = ctx;
	struct call *c = p->call;

	p->replay = NULL;
	if (c) {
		uar_free(p);
		gate_problem(c, why, error);
		return;
	}
	if (why == UAR_EEOF)
		return;
	gate_stream_finish(&p->base, why, error);
	drop_replay(&p->base);
}

static void on_gone(struct call *c)
{
	struct replay *p = c->op;

	gate_call_free(c);
	drop_replay(&p->base);
}

static uar_err read_pace(struct call *c, bool *out_paced, struct uar_error *error)
{
	uar_str pace = UAR_STR_NONE;
	uar_err e = gate_query_str(c, "pace", &pace);

	*out_paced = uar_str_is(pace, "recorded");
	if (e || *out_paced || !pace.p || uar_str_is(pace, "full"))
		return e;
	uar_error_where(error, "?pace");
	return uar_error_set(error, UAR_EINVALID, "the pace is recorded or full");
}

static uar_err open_replay(struct call *c, struct uar_error *error)
{
	struct uar_fixture_options o = { .sched = c->g->o.sched,
					 .dir = c->g->o.fixtures_dir,
					 .name = c->params[0],
					 .whole = true };
	uar_err e = gate_line_cursor(c, &o.after, error);
	struct replay *p;

	if (!e)
		e = read_pace(c, &o.paced, error);
	if (e)
		return e;
	p = uar_zalloc(sizeof *p);
	if (!p)
		return UAR_ENOMEM;
	uar_list_init(&p->base.node);
	p->base.g = c->g;
	p->base.drop = drop_replay;
	p->call = c;
	o.sink = (struct uar_fixture_sink){ on_opened, on_line, on_end, p };
	e = uar_fixture_open(&o, &p->replay);
	if (e) {
		uar_free(p);
		return e;
	}
	c->op = p;
	c->gone = on_gone;
	return UAR_OK;
}

void gate_stream_fixture(struct call *c)
{
	struct uar_error error = { 0 };
	uar_err e = c->g->draining ? UAR_EDRAINING : open_replay(c, &error);

	if (e)
		gate_problem(c, e, &error);
}
