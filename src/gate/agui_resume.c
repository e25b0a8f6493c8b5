/* agui_resume.c - answers to interrupts of an AG-UI run, then the run from there on.
 *
 * An interrupt is an action: the first answer counts, whichever door it comes through, and
 * the same answer again changes nothing. The client's next AG-UI run goes on with the same
 * run of UAR. */
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "proto/agui.h"
#include "read/actions.h"

struct resuming {
	struct call *c;
	const struct uar_json *next; /* the entry that is answered next; NULL: none */
	const struct uar_json *actions;
	struct uar_actions_op read;
	struct uar_run_answer_op op;
	struct gate_view view;
	uar_str run_id;
};

static void answer_next(struct resuming *k);

static uar_str text_member(const struct uar_json *j, const char *key)
{
	return uar_json_str(uar_json_get(j, uar_str_c(key)), UAR_STR(""));
}

/* Answered by somebody else, or before: the run goes on all the same. */
static void answered(struct uar_run_answer_op *op)
{
	struct resuming *k = op->ctx;

	if (op->err && op->err != UAR_ERESOLVED)
		gate_problem(k->c, op->err, &op->error);
	else
		answer_next(k);
}

static const struct uar_json *find_action(const struct resuming *k, uar_str id)
{
	const struct uar_json *list = uar_json_get(k->actions, UAR_STR("actions"));

	for (const struct uar_json *a = list && list->count ? list->first : NULL; a; a = a->next)
		if (uar_str_eq(text_member(a, "action_id"), id))
			return a;
	return NULL;
}

static bool offers(const struct uar_json *action, const char *decision)
{
	const struct uar_json *list = uar_json_get(action, UAR_STR("decisions"));

	for (const struct uar_json *d = list && list->count ? list->first : NULL; d; d = d->next)
		if (uar_str_is(uar_json_str(d, UAR_STR("")), decision))
			return true;
	return false;
}

/* {"approved": bool} decides about what is asked to be allowed; a form gets its values. */
static uar_str choose_decision(const struct uar_json *action, const struct uar_json *entry,
			       const struct uar_json **out_values)
{
	const struct uar_json *payload = uar_json_get(entry, UAR_STR("payload"));
	bool approved = uar_json_bool(uar_json_get(payload, UAR_STR("approved")), false);
	bool left = uar_str_is(text_member(entry, "status"), "cancelled");

	if (!offers(action, "submit"))
		return approved && !left ? UAR_STR("allow") : UAR_STR("deny");
	*out_values = left ? NULL : payload;
	if (!left)
		return UAR_STR("submit");
	return offers(action, "cancel") ? UAR_STR("cancel") : UAR_STR("decline");
}

static void show_run(struct resuming *k)
{
	if (k->c->r)
		gate_stream_view(k->c, k->run_id, &k->view);
	else
		gate_call_free(k->c);
}

/* Entries about interrupts that are not there are passed over. */
static void answer_next(struct resuming *k)
{
	const struct uar_json *action = NULL, *entry = NULL;
	uar_err e;

	while (k->next && !action) {
		entry = k->next;
		k->next = entry->next;
		action = find_action(k, text_member(entry, "interruptId"));
	}
	if (!action) {
		show_run(k);
		return;
	}
	k->op = (struct uar_run_answer_op){ .owner = k->c->owner,
					    .action_id = text_member(entry, "interruptId"),
					    .continues_as = k->view.options.run_name,
					    .done = answered,
					    .ctx = k };
	k->op.decision = choose_decision(action, entry, &k->op.values);
	k->view.after_action = k->op.action_id;
	e = uar_runtime_answer(k->c->g->o.runtime, &k->op);
	if (e)
		gate_problem(k->c, e, &k->op.error);
}

static void read_done(struct uar_actions_op *op)
{
	struct resuming *k = op->ctx;
	struct uar_error error = op->error;
	uar_err e = op->err;
	uar_str text = UAR_STR_NONE;

	if (!e)
		text = uar_arena_str(&k->c->arena, uar_buf_str(&op->json));
	uar_buf_fini(&op->json);
	if (!e)
		e = text.p ? uar_json_parse(text, NULL, &k->c->arena, &k->actions, NULL)
			   : UAR_ENOMEM;
	if (!e && !find_action(k, text_member(k->next, "interruptId"))) {
		uar_error_where(&error, "/resume/0/interruptId");
		e = uar_error_set(&error, UAR_ENOTFOUND, "there is no such interrupt");
	}
	if (e)
		gate_problem(k->c, e, &error);
	else
		answer_next(k);
}

static uar_err find_run(struct resuming *k, struct uar_error *error)
{
	int64_t number;

	if (uar_action_parse(text_member(k->next, "interruptId"), &k->run_id, &number))
		return UAR_OK;
	uar_error_where(error, "/resume/0/interruptId");
	return uar_error_set(error, UAR_ENOTFOUND, "there is no such interrupt");
}

void gate_agui_resume(struct call *c, const struct uar_json *resume, const struct gate_view *view)
{
	struct resuming *k = uar_arena_alloc(&c->arena, sizeof *k);
	struct uar_error error = { 0 };
	uar_err e = k ? UAR_OK : UAR_ENOMEM;

	if (!e) {
		*k = (struct resuming){ .c = c, .next = resume->first, .view = *view };
		e = find_run(k, &error);
	}
	if (!e) {
		k->read = (struct uar_actions_op){ .owner = c->owner,
						   .run_id = k->run_id,
						   .status = UAR_STR("any"),
						   .limit = UAR_LIMIT_LIST_PAGE,
						   .done = read_done,
						   .ctx = k };
		c->op = k;
		e = uar_read_actions(c->g->o.reader, &k->read, &error);
	}
	if (e)
		gate_problem(c, e, &error);
}
