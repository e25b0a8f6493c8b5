/* fixtures.c - recorded streams as they are, for clients that are being built. */
#include "gate/gate_int.h"
#include "base/sse.h"
#include "runtime/fixture_file.h"

enum { LIST_BYTES = 262144 };

void gate_list_fixtures(struct call *c)
{
	struct uar_buf b = uar_buf_make(LIST_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	uar_str *names;
	size_t n;
	uar_err e = uar_fixture_list(c->g->o.fixtures_dir, &c->arena, &names, &n);

	if (e) {
		gate_problem(c, e, NULL);
		return;
	}
	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "fixtures");
	for (size_t i = 0; i < n; i++)
		uar_jw_str(&w, NULL, names[i]);
	uar_jw_close(&w);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	gate_answer(c, 200, &b);
	uar_buf_fini(&b);
}

/* A replay on its way: nothing of it is stored, so it starts anew each time. */
struct replay {
	struct uar_gate *g;
	struct uar_http_stream *http;
	struct uar_timer wait;
	uar_str text, rest;
	uint64_t line;
	int64_t origin_us;
	bool paced;
};

static void finish(struct replay *p)
{
	uar_timer_stop(p->g->o.sched, &p->wait);
	if (p->http)
		uar_http_stream_end(p->http);
	uar_free((char *)p->text.p);
	uar_free(p);
}

static int64_t due_in(const struct replay *p, const struct uar_json *j)
{
	int64_t at_us = uar_json_int(uar_json_get(j, UAR_STR("at_ms")), 0) * 1000;
	int64_t now = uar_clock_mono(p->g->o.sched->clock);

	return p->paced && p->origin_us + at_us > now ? p->origin_us + at_us - now : 0;
}

static struct uar_frame *frame_of(struct uar_gate *g, const struct uar_json *j, uint64_t line)
{
	struct uar_buf json = uar_buf_make(UAR_LIMIT_FIXTURE_BYTES);
	struct uar_jw w = uar_jw_begin(&json);
	struct uar_frame *frame = NULL;
	char id[24];

	uar_jw_obj(&w, NULL);
	uar_jw_tree(&w, "type", uar_json_get(j, UAR_STR("type")));
	uar_jw_tree(&w, "data", uar_json_get(j, UAR_STR("data")));
	uar_jw_close(&w);
	snprintf(id, sizeof id, "%llu", (unsigned long long)line);
	uar_buf_clear(&g->buf);
	if (uar_jw_end(&w) == UAR_OK) {
		uar_sse_put(&g->buf, UAR_STR("event"), uar_str_c(id), uar_buf_str(&json));
		frame = g->buf.err ? NULL : uar_frame_create(uar_buf_str(&g->buf));
	}
	uar_buf_fini(&json);
	return frame;
}

enum step { STEP_ON, STEP_WAIT, STEP_END };

static enum step send_line(struct replay *p, struct uar_arena *arena)
{
	uar_str before = p->rest, line;
	const struct uar_json *j;
	struct uar_frame *frame;
	int64_t wait;
	uar_err e;

	if (!uar_fixture_line(&p->rest, &line) || uar_fixture_parse(line, arena, &j, NULL))
		return STEP_END;
	wait = due_in(p, j);
	frame = wait ? NULL : frame_of(p->g, j, p->line + 1);
	e = frame ? uar_http_stream_send(p->http, frame) : UAR_OK;
	uar_frame_unref(frame);
	if (wait || e == UAR_EBUSY) {
		p->rest = before;
		return wait && uar_timer_set(p->g->o.sched, &p->wait, wait) ? STEP_END : STEP_WAIT;
	}
	p->line++;
	return e == UAR_EEOF ? STEP_WAIT : frame ? STEP_ON : STEP_END;
}

static void run_lines(struct replay *p)
{
	enum step step;

	do {
		struct uar_arena arena;

		uar_arena_init(&arena, 0);
		step = send_line(p, &arena);
		uar_arena_fini(&arena);
	} while (step == STEP_ON);
	if (step == STEP_END)
		finish(p);
}

static void on_wait_over(struct uar_timer *t)
{
	run_lines(UAR_OWNER(t, struct replay, wait));
}

static void on_writable(void *ctx)
{
	run_lines(ctx);
}

static void on_closed(void *ctx)
{
	struct replay *p = ctx;

	p->http = NULL;
	finish(p);
}

/* Lines up to the cursor are passed over; more than there are is an error. */
static uar_err skip_to(struct replay *p, uint64_t after)
{
	uar_str line;

	while (p->line < after) {
		if (!uar_fixture_line(&p->rest, &line))
			return UAR_ECURSOR;
		p->line++;
	}
	return UAR_OK;
}

static uar_err prepare(struct call *c, struct replay *p, struct uar_error *error)
{
	uar_str header = uar_http_header(c->r, "last-event-id"), pace;
	uint64_t after = 0;
	uar_err e = uar_fixture_load(c->g->o.fixtures_dir, c->params[0], &p->text, error);

	p->rest = p->text;
	if (!e)
		e = gate_query_u64(c, "after", 0, &after, error);
	if (!e && header.n && uar_str_u64(header, &after))
		e = UAR_ECURSOR;
	if (!e)
		e = gate_query_str(c, "pace", &pace);
	if (!e)
		e = skip_to(p, after);
	p->paced = !e && uar_str_is(pace, "recorded");
	return e;
}

void gate_stream_fixture(struct call *c)
{
	struct replay *p = uar_zalloc(sizeof *p);
	struct uar_error error = { 0 };
	uar_err e = p ? UAR_OK : UAR_ENOMEM;

	if (!e) {
		p->g = c->g;
		p->wait.fn = on_wait_over;
		p->origin_us = uar_clock_mono(c->g->o.sched->clock);
		e = c->g->draining ? UAR_EDRAINING : prepare(c, p, &error);
	}
	if (!e)
		e = uar_http_stream_begin(
			c->r, "text/event-stream; charset=utf-8",
			&(struct uar_http_stream_events){ on_writable, on_closed, p }, &p->http);
	if (e) {
		if (p)
			uar_free((char *)p->text.p);
		uar_free(p);
		gate_problem(c, e, &error);
		return;
	}
	gate_call_free(c);
	run_lines(p);
}
