/* control_tree.c - applies a command to the tasks below its task, as `propagation` asks.
 *
 * A large tree takes several appends. The place to continue from is a row, the intent, so that a
 * start can continue. It lists the tasks whose children were not all visited. */
#include "core/control_int.h"

#include "core/limits.h"
#include "event/limits.h"
#include "json/json.h"

struct place {
	uar_str id, cursor; /* children of that task behind the cursor */
};

struct walk {
	struct ctl *c;
	const struct ctl_propagation *p;
	struct uar_row_intent *intent; /* NULL: there is none */
	struct place at[UAR_LIMIT_TASK_PLACES];
	size_t count, changed, pages;
	bool deep;
};

/* --- where it stands ------------------------------------------------------------------------- */

static void push(struct walk *w, uar_str id, uar_str cursor)
{
	if (w->count == UAR_LIMIT_TASK_PLACES)
		ctl_refuse(w->c, UAR_ETOOBIG, "/propagation",
			   "the tree of tasks is too large: give the command for parts of it");
	else
		w->at[w->count++] = (struct place){ id, cursor };
}

static bool goes_on(const struct walk *w)
{
	return w->intent && w->intent->row.open && uar_str_is(w->intent->verb, w->p->verb);
}

static void take_places(struct walk *w)
{
	const struct uar_json *list = NULL;
	struct ctl *c = w->c;

	c->e.err = uar_json_parse(w->intent->targets, NULL, c->e.env->arena, &list, c->e.error);
	for (const struct uar_json *j = uar_json_first(list); j && j->next && !c->e.err;
	     j = j->next->next)
		push(w, uar_json_str(j, UAR_STR_NONE), uar_json_str(j->next, UAR_STR_NONE));
}

static uar_str places_text(struct walk *w)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_ROW_BYTES);
	struct uar_jw j = uar_jw_begin(&text);
	uar_str out = UAR_STR_NONE;

	uar_jw_arr(&j, NULL);
	for (size_t i = 0; i < w->count; i++) {
		uar_jw_str(&j, NULL, w->at[i].id);
		uar_jw_str(&j, NULL, w->at[i].cursor);
	}
	uar_jw_close(&j);
	if (!uar_jw_end(&j))
		out = uar_arena_str(w->c->e.env->arena, uar_buf_str(&text));
	uar_buf_fini(&text);
	return ctl_print(w->c, out);
}

static void keep_intent(struct walk *w)
{
	struct ctl *c = w->c;
	struct uar_row_intent *i = w->intent ? ctl_change(c, w->intent)
					     : ctl_new_row(c, UAR_ROW_INTENT, w->p->task_id);

	if (!i)
		return;
	i->row.status = UAR_STR("pending");
	i->row.parent = w->p->task_id;
	i->row.open = true;
	i->verb = uar_str_c(w->p->verb);
	i->reason = w->p->reason;
	i->propagation = w->deep ? UAR_STR("all") : UAR_STR("children");
	i->finished += (int64_t)w->changed;
	i->targets = places_text(w);
	c->u->again = true;
}

static void end_intent(struct walk *w)
{
	if (!goes_on(w))
		return;
	ctl_change(w->c, w->intent);
	w->intent->row.status = UAR_STR("done");
	w->intent->row.open = false;
	w->intent->finished += (int64_t)w->changed;
	w->intent->targets = UAR_STR_NONE;
	if (!w->c->u->d.event_count)
		ctl_note_command(w->c);
}

/* --- the way --------------------------------------------------------------------------------- */

static const struct uar_loaded *page_of(struct walk *w, const struct place *p)
{
	const struct uar_need need = { .kind = UAR_ROW_TASK,
				       .parent = p->id,
				       .after = p->cursor,
				       .limit = UAR_LIMIT_TASK_STEP };

	return ctl_load(w->c, &need);
}

/* The next pages are asked for at once. */
static void ask_ahead(struct walk *w)
{
	for (size_t i = w->count; i > 0 && w->c->u->need_count < UAR_CONTROL_NEEDS; i--)
		page_of(w, &w->at[i - 1]);
}

static void change_row(struct walk *w, const struct uar_row *row)
{
	const struct uar_row_task seen = { .row = *row };
	size_t before = w->c->u->d.event_count;
	struct uar_row_task *t = ctl_task_over(&seen) ? NULL : ctl_row_of(w->c, row);

	if (t)
		w->p->change(w->c, t, w->p->reason);
	w->changed += w->c->u->d.event_count != before;
}

static void visit(struct walk *w, const struct uar_loaded *page)
{
	if (page->next.n)
		w->at[w->count - 1].cursor = page->next;
	else
		w->count--;
	for (size_t i = 0; i < page->count && !w->c->e.err; i++) {
		change_row(w, &page->rows[i]);
		if (w->deep)
			push(w, page->rows[i].id, UAR_STR_NONE);
	}
}

static void walk(struct walk *w)
{
	struct ctl *c = w->c;

	while (w->count && !c->e.err && (w->p->at_once || w->changed < UAR_LIMIT_TASK_STEP)) {
		const struct uar_loaded *page = page_of(w, &w->at[w->count - 1]);

		if (++w->pages > UAR_LIMIT_TASK_PAGES)
			ctl_refuse(c, UAR_ETOOBIG, "/propagation",
				   "the tree of tasks is too large: give the command for parts of "
				   "it");
		if (!page) {
			ask_ahead(w);
			return;
		}
		visit(w, page);
	}
	if (c->e.err)
		return;
	if (w->count)
		keep_intent(w);
	else
		end_intent(w);
}

void ctl_propagate(struct ctl *c, const struct ctl_propagation *p)
{
	struct walk *w;

	if (!p->propagation.n || uar_str_is(p->propagation, "none") || c->e.err)
		return;
	w = uar_arena_alloc(c->e.env->arena, sizeof *w);
	if (!w) {
		ctl_fail(c, UAR_ENOMEM);
		return;
	}
	w->c = c;
	w->p = p;
	w->intent = p->at_once ? NULL : ctl_row(c, UAR_ROW_INTENT, p->task_id);
	w->deep = uar_str_is(goes_on(w) ? w->intent->propagation : p->propagation, "all");
	if (c->waits)
		return;
	if (goes_on(w))
		take_places(w);
	else
		push(w, p->task_id, UAR_STR_NONE);
	walk(w);
}
