/* fixtures.c - recorded streams as they are, for clients that are being built. */
#include "gate/gate_int.h"
#include "proto/a2ui.h"
#include "proto/agui.h"
#include "proto/normalized_read.h"
#include "proto/openai.h"
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
	gate_answer_json(c, 200, &b, &w);
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
	struct gate_view view;	    /* its dialect is NULL: lines as they are, or chunks */
	void *state;		    /* the dialect's */
	bool chunks, joined;
};

static void free_replay(struct replay *p)
{
	uar_fixture_close(p->replay);
	if (p->state)
		p->view.dialect->end(p->state);
	uar_free(p->state);
	uar_free(p);
}

static void drop_replay(struct gate_stream *base)
{
	gate_stream_forget(base);
	free_replay(UAR_OWNER(base, struct replay, base));
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

/* --- in another dialect, as a run with these events would be shown ------------------ */

static uar_err encode_events(struct replay *p, const struct uar_event *ev, size_t n,
			     struct uar_frames *frames)
{
	uar_err e = UAR_OK;

	for (size_t i = 0; i < n && !e; i++) {
		e = p->chunks ? uar_chunk_encode(&ev[i], 1, &p->base.g->scratch, frames->out)
			      : p->view.dialect->encode(p->state, &ev[i], &p->base.g->scratch,
							frames);
		if (p->chunks && e == UAR_ESKIP)
			e = UAR_OK;
	}
	return e;
}

/* What lies before the cursor is folded; the reader is then told the state at it. */
static uar_err encode_line(struct replay *p, const struct uar_json *line, uint64_t number,
			   struct uar_buf *out)
{
	struct uar_event ev[UAR_NORMALIZED_EVENTS];
	struct uar_frames told = { .out = out }, frames = { .out = out, .run_sequence = number };
	bool join = false;
	size_t n = 0;
	uar_err e;

	uar_arena_reset(&p->base.g->scratch);
	e = uar_normalized_read(line, number, &p->base.g->scratch, ev, &n);
	if (e || !n)
		return e;
	if (!p->joined)
		join = number > p->view.cursor.run_sequence || uar_event_ends_run(&ev[n - 1]);
	if (join && !p->chunks)
		e = p->view.dialect->join(p->state, &told);
	p->joined |= join;
	if (!e)
		e = encode_events(p, ev, n, &frames);
	if (!p->joined)
		uar_buf_clear(out);
	return e;
}

static struct uar_frame *dialect_frame(struct replay *p, const struct uar_json *line,
				       uint64_t number, uar_err *out_err)
{
	struct uar_buf out = uar_buf_make(2 * UAR_LIMIT_FIXTURE_BYTES);
	struct uar_frame *frame = NULL;

	*out_err = encode_line(p, line, number, &out);
	if (!*out_err && out.n) {
		frame = uar_frame_create(uar_buf_str(&out));
		*out_err = frame ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(&out);
	return frame;
}

static uar_err on_line(void *ctx, uint64_t number, uar_str text, const struct uar_json *line)
{
	struct replay *p = ctx;
	struct uar_frame *frame;
	uar_err e = uar_http_stream_room(p->base.http);

	(void)text;
	if (e)
		return e;
	if (p->view.dialect || p->chunks) {
		frame = dialect_frame(p, line, number, &e);
	} else {
		frame = frame_of(line, number);
		e = frame ? UAR_OK : UAR_ENOMEM;
	}
	if (frame)
		e = uar_http_stream_send(p->base.http, frame);
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
		free_replay(p);
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

static uar_err read_dialect(struct call *c, struct replay *p, struct uar_error *error)
{
	static const struct {
		const char *name;
		const struct uar_dialect *dialect;
	} known[] = { { "normalized", NULL },
		      { "chunks", NULL },
		      { "ag-ui", &uar_agui },
		      { "a2ui", &uar_a2ui },
		      { "openai-chat", &uar_openai_chat },
		      { "openai-responses", &uar_openai_responses } };
	uar_str name = UAR_STR_NONE;
	uar_err e = gate_query_str(c, "dialect", &name);

	if (e || !name.p)
		return e;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (uar_str_is(name, known[i].name)) {
			p->chunks = i == 1;
			p->view.dialect = known[i].dialect;
			p->view.options.model = UAR_STR("fixture");
			return UAR_OK;
		}
	uar_error_where(error, "?dialect");
	return uar_error_set(error, UAR_EINVALID,
			     "normalized, chunks, ag-ui, a2ui, openai-chat or openai-responses");
}

/* A dialect folds the recording from its first line on. */
static uar_err read_replay(struct call *c, struct replay *p, struct uar_fixture_options *o,
			   struct uar_error *error)
{
	uar_err e = read_dialect(c, p, error);

	if (!e)
		e = read_pace(c, &o->paced, error);
	if (e)
		return e;
	if (!p->view.dialect && !p->chunks)
		return gate_line_cursor(c, &o->after, error);
	e = gate_view_cursor(c, 1, &p->view.cursor, error);
	p->joined = !p->view.cursor.run_sequence;
	if (e || p->chunks)
		return e;
	p->state = uar_zalloc(p->view.dialect->state_size);
	return p->state ? p->view.dialect->begin(p->state, &p->view.options) : UAR_ENOMEM;
}

static uar_err open_replay(struct call *c, struct uar_error *error)
{
	struct uar_fixture_options o = { .sched = c->g->o.sched,
					 .dir = c->g->o.fixtures_dir,
					 .name = c->params[0],
					 .whole = true };
	struct replay *p = uar_zalloc(sizeof *p);
	uar_err e;

	if (!p)
		return UAR_ENOMEM;
	uar_list_init(&p->base.node);
	p->base.g = c->g;
	p->base.drop = drop_replay;
	p->call = c;
	o.sink = (struct uar_fixture_sink){ on_opened, on_line, on_end, p };
	e = read_replay(c, p, &o, error);
	if (!e)
		e = uar_fixture_open(&o, &p->replay);
	if (e) {
		free_replay(p);
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
