/* process_output.c - what the log has of the output of a process, as bytes.
 *
 * The output is a number of events of its run, which the log keeps in their order; so the bytes are
 * the same while the process runs, when it has ended and after a restart. */
#include "base/base64.h"
#include "event/limits.h"
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "tool/limits.h"

struct output {
	struct call *c;
	struct uar_events_read read;
	uint64_t after;
	uar_str stream; /* that is wanted; empty: all */
	struct uar_buf bytes;
	bool reading, found, ended;
};

static void free_output(struct output *o)
{
	if (o->reading)
		uar_events_read_fini(&o->read);
	o->reading = false;
	uar_buf_fini(&o->bytes);
}

static void drop(struct call *c)
{
	free_output(c->op);
}

static void fail(struct output *o, uar_err e, const struct uar_error *error)
{
	struct uar_error copy = error ? *error : (struct uar_error){ 0 };
	struct call *c = o->c;

	free_output(o);
	gate_problem(c, e, &copy);
}

static void answer(struct output *o)
{
	struct call *c = o->c;
	struct uar_buf bytes = o->bytes;
	struct uar_error error = { 0 };

	if (!o->found) {
		fail(o,
		     uar_error_set(&error, UAR_ENOTFOUND, "the run has started no process %.*s",
				   UAR_FMT(uar_str_utf8_prefix(c->params[1], 64))),
		     &error);
		return;
	}
	o->bytes = uar_buf_make(0);
	free_output(o);
	gate_answer_type(c, 200, "application/octet-stream", uar_buf_str(&bytes));
	uar_buf_fini(&bytes);
}

static uar_err take_bytes(struct output *o, const struct uar_event *ev, struct uar_arena *scratch)
{
	const struct uar_json *p = NULL;
	uar_err e = uar_event_payload(ev, scratch, &p, NULL);
	uar_str stream = uar_json_text(p, "stream");
	const struct uar_json *data = uar_json_get(p, UAR_STR("data"));
	uar_str bytes = uar_json_text(p, "text");

	if (e || (o->stream.n && !uar_str_eq(o->stream, stream)))
		return e;
	if (data)
		e = uar_base64_decode(scratch, uar_json_str(data, UAR_STR("")), &bytes);
	if (!e)
		uar_buf_add_str(&o->bytes, bytes);
	return e ? e : o->bytes.err;
}

static uar_err take(struct output *o, const struct uar_event *ev)
{
	struct uar_arena scratch;
	uar_err e = UAR_OK;

	o->after = ev->run_sequence;
	if (!uar_str_eq(ev->ids[UAR_ID_PROCESS], o->c->params[1]))
		return UAR_OK;
	o->found = true;
	o->ended = ev->cls == UAR_EV_PROCESS_COMPLETED || ev->cls == UAR_EV_PROCESS_FAILED ||
		   ev->cls == UAR_EV_PROCESS_TERMINATED;
	if (ev->cls != UAR_EV_PROCESS_OUTPUT)
		return UAR_OK;
	uar_arena_init(&scratch, 0);
	e = take_bytes(o, ev, &scratch);
	uar_arena_fini(&scratch);
	return e;
}

static uar_err read_page(struct output *o);

static void page_ready(struct uar_events_read *r)
{
	struct output *o = UAR_OWNER(r, struct output, read);
	bool more = r->more;
	uar_err e = r->err;

	for (size_t i = 0; i < r->event_count && !e && !o->ended; i++)
		e = take(o, &r->events[i]);
	if (e) {
		fail(o, e, &r->error);
		return;
	}
	if (!more || o->ended) {
		answer(o);
		return;
	}
	uar_events_read_fini(r);
	o->reading = false;
	e = read_page(o);
	if (e)
		fail(o, e, NULL);
}

static uar_err read_page(struct output *o)
{
	uar_err e;

	o->read = (struct uar_events_read){
		.owner = o->c->owner,
		.run_id = o->c->params[0],
		.after = o->after,
		.limit = UAR_LIMIT_READ_PAGE,
		.done = page_ready,
	};
	e = uar_reader_events(o->c->g->o.reader, &o->read);
	o->reading = !e;
	return e;
}

static uar_err decode(struct output *o, struct uar_error *error)
{
	uar_err e = gate_query_str(o->c, "stream", &o->stream);

	if (e || !o->stream.n)
		return e;
	if (!uar_str_is(o->stream, "stdout") && !uar_str_is(o->stream, "stderr")) {
		uar_error_where(error, "?stream");
		return uar_error_set(error, UAR_EINVALID, "stream is stdout or stderr");
	}
	o->stream = uar_arena_str(&o->c->arena, o->stream);
	return o->stream.p ? UAR_OK : UAR_ENOMEM;
}

void gate_process_output(struct call *c)
{
	struct output *o = uar_arena_alloc(&c->arena, sizeof *o);
	struct uar_error error = { 0 };
	uar_err e = UAR_ENOMEM;

	if (o) {
		*o = (struct output){ .c = c, .stream = UAR_STR("") };
		o->bytes = uar_buf_make((size_t)UAR_LIMIT_PROCESS_PIECES * UAR_LIMIT_PROCESS_PIECE +
					1);
		e = decode(o, &error);
	}
	if (!e) {
		c->op = o;
		c->drop = drop;
		e = read_page(o);
	}
	if (e && o)
		free_output(o);
	if (e)
		gate_problem(c, e, &error);
}
