/* a2a_list_tasks.c - tasks of a page as they stand, with what the client wants to see of each.
 *
 * One after the other is folded from its events. A page that has become long enough ends early. */
#include "gate/a2a_int.h"
#include "gate/limits.h"
#include "proto/limits.h"
#include "read/stream.h"

struct whole {
	struct a2a_call *k;
	struct uar_stream *stream; /* of the task at work; NULL: none */
	void *state;		   /* likewise, of the dialect */
	struct uar_dialect_options options;
	size_t at;
	bool any;
};

static void end_task(struct whole *w)
{
	uar_stream_close(w->stream);
	w->stream = NULL;
	if (w->state)
		uar_a2a.end(w->state);
	uar_free(w->state);
	w->state = NULL;
}

static void free_whole(struct whole *w)
{
	struct call *c = w->k->c;

	end_task(w);
	c->gone = NULL;
	c->hurry = NULL;
	uar_free(w);
}

static void give_up(struct whole *w, uar_err e, const struct uar_error *error)
{
	struct a2a_call *k = w->k;

	free_whole(w);
	uar_buf_fini(&k->page.out);
	gate_problem(k->c, e, error);
}

static void on_gone(struct call *c)
{
	struct whole *w = c->op;

	uar_buf_fini(&w->k->page.out);
	free_whole(w);
	gate_call_free(c);
}

static void on_hurry(struct call *c)
{
	give_up(c->op, UAR_EDRAINING, NULL);
}

static uar_err on_opened(void *ctx)
{
	(void)ctx;
	return UAR_OK;
}

static uar_err on_events(void *ctx, const struct uar_event *ev, size_t n)
{
	struct whole *w = ctx;
	struct uar_arena *scratch = &w->k->c->g->scratch;
	uar_err e = UAR_OK;

	for (size_t i = 0; i < n && !e; i++) {
		struct uar_buf out = uar_buf_make(UAR_LIMIT_VIEW_FRAMES);
		struct uar_frames frames = { .out = &out };

		uar_arena_reset(scratch);
		e = uar_a2a.encode(w->state, &ev[i], scratch, &frames);
		uar_buf_fini(&out);
	}
	return e;
}

static void next(struct whole *w);

static void on_end(void *ctx, uar_err why, const struct uar_error *error)
{
	struct whole *w = ctx;
	struct uar_buf *out = &w->k->page.out;
	uar_err e = why;
	int status;

	w->stream = NULL;
	if (!e) {
		if (w->any)
			uar_buf_add_char(out, ',');
		w->any = true;
		e = uar_a2a.answer(w->state, out, &status);
		e = e ? e : out->err;
	}
	end_task(w);
	w->at++;
	if (e && e != UAR_ENOTFOUND) /* one that was evicted meanwhile is no task any more */
		give_up(w, e, why ? error : NULL);
	else
		next(w);
}

static uar_err begin(struct whole *w)
{
	struct a2a_call *k = w->k;
	struct uar_stream_options o = { .owner = k->c->owner,
					.run_id = k->page.ids[w->at],
					.stored = true,
					.sink = { on_opened, on_events, on_end, w } };
	uar_err e;

	w->options = (struct uar_dialect_options){ .old_peer = k->old,
						   .history_length = k->history_length,
						   .without_artifacts = !k->page.artifacts };
	w->state = uar_zalloc(uar_a2a.state_size);
	e = w->state ? uar_a2a.begin(w->state, &w->options) : UAR_ENOMEM;
	return e ? e : uar_stream_open(k->c->g->o.reader, &o, &w->stream);
}

static void next(struct whole *w)
{
	struct a2a_call *k = w->k;
	struct a2a_page *page = &k->page;
	bool enough = page->out.n > UAR_LIMIT_A2A_LIST_ENOUGH;
	uar_err e;

	if (w->at == page->count || enough) {
		if (w->at < page->count)
			page->next = page->ids[w->at - 1];
		free_whole(w);
		gate_a2a_answer_page(k);
		return;
	}
	e = begin(w);
	if (e)
		give_up(w, e, NULL);
}

void gate_a2a_list_whole(struct a2a_call *k)
{
	struct whole *w = k->c->g->draining ? NULL : uar_zalloc(sizeof *w);

	if (!w) {
		uar_buf_fini(&k->page.out);
		gate_problem(k->c, k->c->g->draining ? UAR_EDRAINING : UAR_ENOMEM, NULL);
		return;
	}
	w->k = k;
	k->c->op = w;
	k->c->gone = on_gone;
	k->c->hurry = on_hurry;
	next(w);
}
