/* rounds_facts.c - what the log says of single calls: begun, asked about, answered, ended. */
#include "work/rounds_int.h"

#include "event/sizes.h"

uar_err rt_rounds_own(struct rounds_load *l, uar_str s, uar_str *out)
{
	*out = s.n ? uar_arena_str(&l->rounds->arena, s) : UAR_STR("");
	return out->p ? UAR_OK : UAR_ENOMEM;
}

struct fact *rt_rounds_find(struct rounds_load *l, uar_str id)
{
	/* The newest first: it is the one that is still spoken of. */
	for (struct uar_list *it = l->facts.prev; it != &l->facts; it = it->prev)
		if (uar_str_eq(UAR_OWNER(it, struct fact, node)->c.id, id))
			return UAR_OWNER(it, struct fact, node);
	return NULL;
}

static struct fact *fact_of(struct rounds_load *l, uar_str id)
{
	struct fact *f = rt_rounds_find(l, id);

	if (f)
		return f;
	f = uar_arena_alloc(&l->rounds->arena, sizeof *f);
	if (!f)
		return NULL;
	*f = (struct fact){ .c = { .told = UAR_STR("") } };
	if (rt_rounds_own(l, id, &f->c.id))
		return NULL;
	uar_list_init(&f->node);
	uar_list_add_last(&l->facts, &f->node);
	return f;
}

static int64_t action_number(const struct uar_event *ev)
{
	uar_str run_id;
	int64_t number = 0;

	return uar_action_parse(ev->ids[UAR_ID_ACTION], &run_id, &number) ? number : 0;
}

/* The sha256 that a ref of the event names, in out; empty: it has no such ref. */
uar_err rt_rounds_blob(const struct uar_event *ev, const char *ref, struct uar_arena *scratch,
		       char out[65])
{
	uar_str sha256;
	uar_err e = uar_event_blob(ev, ref, scratch, &sha256);

	if (!e)
		snprintf(out, 65, "%.*s", UAR_FMT(sha256));
	return e;
}

/* It is executed from here on: an earlier permission is used up. */
uar_err rt_rounds_note_begun(struct rounds_load *l, const struct uar_event *ev,
			     const struct uar_json *p)
{
	struct fact *f = fact_of(l, ev->ids[UAR_ID_TOOL_CALL]);

	if (!f)
		return UAR_ENOMEM;
	if (ev->cls == UAR_EV_TOOL_STARTED)
		f->c.effect = uar_tool_effect_parse(uar_json_text(p, "effect"));
	else if (!uar_json_bool(uar_json_get(p, UAR_STR("again")), false))
		return UAR_OK; /* news of it */
	f->c.repeats += ev->cls == UAR_EV_TOOL_PROGRESS && !f->c.allowed;
	f->c.started = true;
	f->c.allowed = f->c.denied = false;
	return UAR_OK;
}

uar_err rt_rounds_note_asked(struct rounds_load *l, const struct uar_event *ev,
			     const struct uar_json *p)
{
	uar_str id = uar_json_text(uar_json_get(p, UAR_STR("scope")), "tool_call_id");
	struct fact *f = id.n ? fact_of(l, id) : NULL;
	enum uar_action_type type = uar_action_type_parse(uar_json_text(p, "action_type"));
	uar_str kind = uar_json_text(uar_json_get(p, UAR_STR("scope")), "kind");

	if (!f)
		return id.n ? UAR_ENOMEM : UAR_OK;
	if (uar_str_is(kind, "elicitation") || uar_str_is(kind, "login") ||
	    uar_str_is(kind, "sampling"))
		return UAR_OK; /* asked by the tool at work: its arguments are what they are */
	if (type < UAR_ACTION_TYPE_COUNT && uar_action_info[type].input)
		f->c.form = action_number(ev);
	else
		f->c.action = action_number(ev);
	return UAR_OK;
}

/* The values that somebody gave, or where they lie. */
static uar_err note_values(struct rounds_load *l, struct fact *f, const struct uar_event *ev,
			   const struct uar_json *p, struct uar_arena *scratch)
{
	const struct uar_json *values = uar_json_get(p, UAR_STR("payload"));
	struct uar_buf text = uar_buf_make(UAR_LIMIT_EVENT_BYTES * 2);
	uar_err e;

	f->c.filled = uar_str_is(uar_json_text(p, "result"), "answer");
	f->c.declined = !f->c.filled;
	if (values)
		uar_json_write(&text, values);
	e = text.err;
	if (!e)
		e = rt_rounds_own(l, values ? uar_buf_str(&text) : UAR_STR("{}"), &f->c.values);
	uar_buf_fini(&text);
	f->c.real = f->c.values;
	if (!e)
		e = rt_rounds_blob(ev, "payload_ref", scratch, f->c.values_blob);
	if (!e)
		e = rt_rounds_blob(ev, "sealed_ref", scratch, f->c.sealed);
	return e ? e : rt_rounds_own(l, uar_json_text(p, "reason"), &f->c.reason);
}

uar_err rt_rounds_note_answered(struct rounds_load *l, const struct uar_event *ev,
				const struct uar_json *p, struct uar_arena *scratch)
{
	int64_t number = action_number(ev);

	for (struct uar_list *it = l->facts.prev; it != &l->facts; it = it->prev) {
		struct fact *f = UAR_OWNER(it, struct fact, node);

		if (f->c.form == number)
			return note_values(l, f, ev, p, scratch);
		if (f->c.action != number)
			continue;
		f->c.allowed = uar_str_is(uar_json_text(p, "result"), "allow");
		f->c.denied = !f->c.allowed;
		f->c.repeats = 0;
		return rt_rounds_own(l, uar_json_text(p, "reason"), &f->c.reason);
	}
	return UAR_OK;
}

bool rt_rounds_was_executed(uar_str category)
{
	static const char *const all[] = { "execution", "timeout", "dependency",
					   "sandbox_violation", "result_too_large" };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (uar_str_is(category, all[i]))
			return true;
	return false;
}

uar_err rt_rounds_note_ended(struct rounds_load *l, const struct uar_event *ev,
			     const struct uar_json *p, struct uar_arena *scratch)
{
	struct fact *f = fact_of(l, ev->ids[UAR_ID_TOOL_CALL]);
	struct uar_buf out = uar_buf_make(UAR_LIMIT_EVENT_BYTES * 2);
	uar_err e;

	if (!f)
		return UAR_ENOMEM;
	f->c.ended = true;
	f->c.failed = ev->cls == UAR_EV_TOOL_FAILED;
	f->c.broke = f->c.failed && rt_rounds_was_executed(uar_json_text(p, "failure_category"));
	if (l->exact && !f->c.failed && uar_json_get(p, UAR_STR("preview")))
		uar_json_write(&out, uar_json_get(p, UAR_STR("preview")));
	else
		rt_rounds_write_end(&out, ev, p);
	f->c.told_bytes = uar_json_int(uar_json_get(p, UAR_STR("output_bytes")), (int64_t)out.n);
	e = out.err;
	if (!e)
		e = rt_rounds_blob(ev, "output_ref", scratch, f->c.blob);
	if (!e)
		e = rt_rounds_blob(ev, "parts_ref", scratch, f->c.media.blob);
	if (!e)
		e = rt_rounds_own(l, uar_buf_str(&out), &f->c.told);
	uar_buf_fini(&out);
	return e;
}
