/* fixture.c - replays a file that a worker thread has read. */
#include "work/fixture.h"

#include "base/alloc.h"

struct uar_fixture {
	struct uar_fixture_options o;
	struct uar_fixture_job *job; /* NULL: the text is here */
	struct uar_timer wait;
	struct uar_task next;
	char *text;
	uar_str rest;
	uint64_t line;	   /* the last one taken */
	int64_t origin_us; /* monotonic moment of at_ms 0 */
	bool blocked;	   /* the sink is full */
};

static void free_fixture(struct uar_fixture *f)
{
	uar_fixture_job_forget(f->job);
	uar_timer_stop(f->o.sched, &f->wait);
	uar_unpost(f->o.sched, &f->next);
	uar_free(f->text);
	uar_free(f);
}

static void end(struct uar_fixture *f, uar_err why, const struct uar_error *error)
{
	struct uar_fixture_sink sink = f->o.sink;

	free_fixture(f);
	sink.end(sink.ctx, why, error);
}

static int64_t moment(const struct uar_json *line)
{
	int64_t ms = uar_json_int(uar_json_get(line, UAR_STR("at_ms")), 0);

	return ms < 0 || ms > INT64_MAX / 2000 ? 0 : ms * 1000;
}

/* Microseconds until the line is due; 0 when it is, or the pace is full. */
static int64_t due_in(const struct uar_fixture *f, const struct uar_json *line)
{
	int64_t due = f->origin_us + moment(line), now = uar_clock_mono(f->o.sched->clock);

	return f->o.paced && due > now ? due - now : 0;
}

enum step { STEP_ON, STEP_WAIT, STEP_END };

/* Hands the next line over. STEP_END: the replay ends with *out_why. */
static enum step step(struct uar_fixture *f, struct uar_arena *arena, uar_err *out_why,
		      struct uar_error *error)
{
	uar_str before = f->rest, text;
	const struct uar_json *line;
	int64_t wait;

	*out_why = UAR_OK;
	if (!uar_fixture_line(&f->rest, &text))
		return STEP_END;
	*out_why = uar_fixture_parse(text, arena, &line, error);
	if (*out_why)
		return STEP_END;
	wait = due_in(f, line);
	if (wait)
		*out_why = uar_timer_set(f->o.sched, &f->wait, wait);
	else
		*out_why = f->o.sink.line(f->o.sink.ctx, f->line + 1, text, line);
	f->blocked = *out_why == UAR_EBUSY;
	if (*out_why && !f->blocked)
		return STEP_END;
	if (wait || f->blocked) {
		f->rest = before;
		return STEP_WAIT;
	}
	f->line++;
	return STEP_ON;
}

static void run_lines(struct uar_fixture *f)
{
	struct uar_error error = { 0 };
	struct uar_arena arena;
	enum step at;
	uar_err why;

	uar_arena_init(&arena, 0);
	do {
		uar_arena_reset(&arena);
		at = step(f, &arena, &why, &error);
	} while (at == STEP_ON);
	uar_arena_fini(&arena);
	if (at == STEP_END)
		end(f, why, &error);
}

static void on_wait_over(struct uar_timer *t)
{
	run_lines(UAR_OWNER(t, struct uar_fixture, wait));
}

static void on_next(struct uar_task *t)
{
	run_lines(UAR_OWNER(t, struct uar_fixture, next));
}

/* The pace goes on from the last line instead of racing to catch up. */
static uar_err skip_taken(struct uar_fixture *f)
{
	struct uar_arena arena;
	const struct uar_json *line;
	uar_str text = UAR_STR("");

	while (f->line < f->o.after && uar_fixture_line(&f->rest, &text))
		f->line++;
	if (f->line < f->o.after)
		return UAR_ECURSOR;
	uar_arena_init(&arena, 0);
	if (f->line && uar_fixture_parse(text, &arena, &line, NULL) == UAR_OK)
		f->origin_us -= moment(line);
	uar_arena_fini(&arena);
	return UAR_OK;
}

static void on_loaded(struct uar_fixture_job *job)
{
	struct uar_fixture *f = job->ctx;
	uar_err e = job->err;

	f->job = NULL;
	if (e) {
		end(f, e, &job->error);
		return;
	}
	f->text = job->text;
	job->text = NULL;
	f->rest = uar_str_n(f->text, job->size);
	f->origin_us = uar_clock_mono(f->o.sched->clock);
	e = skip_taken(f);
	if (!e)
		e = f->o.sink.opened(f->o.sink.ctx);
	if (e)
		end(f, e, NULL);
	else
		run_lines(f);
}

uar_err uar_fixture_open(const struct uar_fixture_options *o, struct uar_fixture **out)
{
	struct uar_fixture *f = uar_zalloc(sizeof *f);
	uar_err e;

	if (!f)
		return UAR_ENOMEM;
	f->o = *o;
	f->wait.fn = on_wait_over;
	f->next.fn = on_next;
	f->job = uar_fixture_job_make(UAR_FIXTURE_LOAD, o->dir, o->name);
	e = f->job ? UAR_OK : UAR_ENOMEM;
	if (!e) {
		f->job->done = on_loaded;
		f->job->ctx = f;
		f->job->whole = o->whole;
		e = uar_fixture_job_begin(o->sched, f->job);
	}
	if (e) {
		uar_free(f);
		return e;
	}
	*out = f;
	return UAR_OK;
}

void uar_fixture_resume(struct uar_fixture *f)
{
	if (!f->blocked)
		return;
	f->blocked = false;
	uar_post(f->o.sched, &f->next);
}

void uar_fixture_close(struct uar_fixture *f)
{
	if (f)
		free_fixture(f);
}
