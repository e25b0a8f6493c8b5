/* item_cursor.c - a reader of one run's items may begin behind an item it knows by
 * its id: the log is searched for it, since only the log has the order. */
#include "event/limits.h"
#include "gate/gate_int.h"
#include "proto/exports.h"

struct search {
	struct uar_events_read read;
	struct call *c;
	uar_str run_id, item_id;
	uint64_t after;
};

static uar_err ask(struct search *s);

static bool found(struct search *s)
{
	struct uar_arena scratch;
	bool hit = false;

	uar_arena_init(&scratch, 0);
	for (size_t i = 0; i < s->read.event_count && !hit; i++) {
		struct uar_export_item x;

		s->after = s->read.events[i].run_sequence;
		hit = !uar_export_item_read(&s->read.events[i], &scratch, &x) &&
		      uar_str_eq(x.id, s->item_id);
		uar_arena_reset(&scratch);
	}
	uar_arena_fini(&scratch);
	return hit;
}

static void page_ready(struct uar_events_read *r)
{
	struct search *s = UAR_OWNER(r, struct search, read);
	struct uar_error error = r->error;
	uar_err e = r->err;
	bool here = !e && found(s), more = !e && !here && r->more;

	uar_events_read_fini(r);
	if (more)
		e = ask(s);
	if (more && !e)
		return;
	if (!e && !here)
		e = UAR_ECURSOR; /* no item of this run has that id */
	if (e || !s->c->r)
		gate_problem(s->c, e, &error); /* of one who left: frees the call */
	else
		gate_stream_exports(s->c, s->run_id, s->after);
}

static uar_err ask(struct search *s)
{

	s->read = (struct uar_events_read){ .owner = s->c->owner,
					    .run_id = s->run_id,
					    .after = s->after,
					    .limit = UAR_LIMIT_READ_PAGE,
					    .done = page_ready };
	return uar_reader_events(s->c->g->o.reader, &s->read);
}

void gate_stream_after_item(struct call *c, uar_str run_id, uar_str item_id)
{
	struct search *s = uar_arena_alloc(&c->arena, sizeof *s);
	uar_err e = UAR_ENOMEM;

	if (s) {
		*s = (struct search){ .c = c, .run_id = run_id, .item_id = item_id };
		c->op = s;
		e = ask(s);
	}
	if (e)
		gate_problem(c, e, NULL);
}
