/* agui_resume.c - answers to interrupts of an AG-UI run, then the run from there on.
 *
 * An interrupt is an action: the first answer counts, whichever door it comes through, and
 * the same answer again changes nothing. The client's next AG-UI run goes on with the same
 * run of UAR. */
#include "core/sizes.h"
#include "event/limits.h"
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "proto/agui.h"
#include "proto/agui_input.h"
#include "read/actions.h"

struct resuming {
	struct call *c;
	const struct uar_json *next; /* the entry that is answered next; NULL: none */
	const struct uar_json *actions;
	struct uar_actions_op read;
	struct uar_run_answer_op op;
	struct uar_run_list known;
	struct gate_resume o;
	bool create_after; /* the user has said something new */
	uar_str run_id;
};

static void answer_next(struct resuming *k);

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
		if (uar_str_eq(uar_json_text(a, "action_id"), id))
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
	bool left = uar_str_is(uar_json_text(entry, "status"), "cancelled");

	if (!offers(action, "submit"))
		return approved && !left ? UAR_STR("allow") : UAR_STR("deny");
	*out_values = left ? NULL : payload;
	if (!left)
		return UAR_STR("submit");
	return offers(action, "cancel") ? UAR_STR("cancel") : UAR_STR("decline");
}

static void show_run(struct resuming *k)
{
	if (!k->c->r)
		gate_call_free(k->c);
	else if (k->create_after)
		k->o.create(k->c, k->o.ctx);
	else
		gate_stream_view(k->c, k->run_id, &k->o.view);
}

/* Entries about interrupts that are not there are passed over. */
static void answer_next(struct resuming *k)
{
	const struct uar_json *action = NULL, *entry = NULL;
	uar_err e;

	while (k->next && !action) {
		entry = k->next;
		k->next = entry->next;
		action = find_action(k, uar_json_text(entry, "interruptId"));
	}
	if (!action) {
		show_run(k);
		return;
	}
	k->op = (struct uar_run_answer_op){ .owner = k->c->owner,
					    .action_id = uar_json_text(entry, "interruptId"),
					    .continues_as = k->create_after
								    ? UAR_STR_NONE
								    : k->o.view.options.run_name,
					    .done = answered,
					    .ctx = k };
	k->op.decision = choose_decision(action, entry, &k->op.values);
	k->o.view.after_action = k->op.action_id;
	e = gate_give_answer(k->c, &k->op);
	if (e)
		gate_problem(k->c, e, &k->op.error);
}

static uar_err refuse_unknown(struct uar_error *error)
{
	uar_error_where(error, "/resume/0/interruptId");
	return uar_error_set(error, UAR_ENOTFOUND, "there is no such interrupt");
}

/* What the responseSchema of a decision allows, no more. */
static uar_err check_payload(const struct uar_json *action, const struct uar_json *entry, size_t i,
			     struct uar_error *error)
{
	const struct uar_json *payload = uar_json_get(entry, UAR_STR("payload"));
	const struct uar_json *approved = uar_json_get(payload, UAR_STR("approved"));
	const struct uar_json *edited = uar_json_get(payload, UAR_STR("editedArgs"));

	if (offers(action, "submit") || uar_str_is(uar_json_text(entry, "status"), "cancelled"))
		return UAR_OK;
	if (edited && edited->kind != UAR_JSON_NULL) {
		uar_error_where(error, "/resume/%zu/payload/editedArgs", i);
		return uar_error_set(error, UAR_EINVALID,
				     "arguments cannot be changed here: approve them as they "
				     "are, or deny them and say what to do instead");
	}
	if (approved && approved->kind == UAR_JSON_BOOL)
		return UAR_OK;
	uar_error_where(error, "/resume/%zu/payload/approved", i);
	return uar_error_set(error, UAR_EINVALID, "approved is true or false");
}

/* The agent of the run counts, whatever agent the address names. */
static uar_err check_run(const struct resuming *k, const struct uar_json *action,
			 struct uar_error *error)
{
	if (k->o.thread_id.n &&
	    !uar_str_eq(uar_json_text(action, "conversation_id"), k->o.thread_id)) {
		uar_error_where(error, "/threadId");
		return uar_error_set(error, UAR_EINVALID, "the interrupt is of another thread");
	}
	return gate_check_protocol(k->c, uar_json_text(action, "agent_id"), UAR_PROTOCOL_AG_UI,
				   error);
}

/* Nothing is answered before all entries are found to be good. */
static uar_err check_entries(const struct resuming *k, struct uar_error *error)
{
	bool any = false;
	size_t i = 0;
	uar_err e = UAR_OK;

	for (const struct uar_json *entry = k->next; entry && !e; entry = entry->next, i++) {
		const struct uar_json *action = find_action(k, uar_json_text(entry, "interruptId"));

		if (!action)
			continue;
		any = true;
		e = check_run(k, action, error);
		if (!e)
			e = check_payload(action, entry, i, error);
	}
	return e || any ? e : refuse_unknown(error);
}

/* --- what the user says besides ------------------------------------------------------------- */

/* A client without the messages of the server sends the one of the run again, or a new one. */
static void found_run(struct uar_run_list *q)
{
	struct resuming *k = UAR_OWNER(q, struct resuming, known);
	struct uar_error error = q->error;
	uar_err e = q->err;

	if (!e) {
		uar_str ignored, line = uar_str_cut(k->o.message, '\n', &ignored);

		line = uar_str_utf8_prefix(line, UAR_LIMIT_TITLE_BYTES);
		k->create_after = !uar_str_eq(line, q->rows[0].listed.title);
	}
	uar_run_list_fini(q);
	if (e)
		gate_problem(k->c, e, &error);
	else
		answer_next(k);
}

static uar_err look_up_run(struct resuming *k)
{
	k->known = (struct uar_run_list){
		.owner = k->c->owner, .run_id = k->run_id, .limit = 1, .done = found_run
	};
	return uar_reader_runs(k->c->g->o.reader, &k->known);
}

static void begin_answers(struct resuming *k)
{
	const struct uar_json *action = NULL;
	enum uar_agui_last last;
	uar_err e = UAR_OK;

	for (const struct uar_json *entry = k->next; entry && !action; entry = entry->next)
		action = find_action(k, uar_json_text(entry, "interruptId"));
	last = uar_agui_last_message(k->c->body, uar_json_text(action, "tool_call_id"));
	k->create_after = last == UAR_AGUI_AFTER_CALL && k->o.message.n;
	if (last == UAR_AGUI_ALONE && k->o.message.n)
		e = look_up_run(k);
	else
		answer_next(k);
	if (e)
		gate_problem(k->c, e, NULL);
}

static void read_done(struct uar_actions_op *op)
{
	struct resuming *k = op->ctx;
	struct uar_error error = op->error;
	uar_err e = op->err;

	if (!e)
		e = uar_json_parse_copy(uar_buf_str(&op->json), NULL, &k->c->arena, &k->actions,
					NULL);
	uar_buf_fini(&op->json);
	if (!e)
		e = check_entries(k, &error);
	if (e)
		gate_problem(k->c, e, &error);
	else
		begin_answers(k);
}

/* The run of the first entry that may be an interrupt of ours. */
static uar_err find_run(struct resuming *k, struct uar_error *error)
{
	int64_t number;

	for (const struct uar_json *entry = k->next; entry; entry = entry->next)
		if (uar_action_parse(uar_json_text(entry, "interruptId"), &k->run_id, &number))
			return UAR_OK;
	return refuse_unknown(error);
}

void gate_agui_resume(struct call *c, const struct gate_resume *o)
{
	struct resuming *k = uar_arena_alloc(&c->arena, sizeof *k);
	struct uar_error error = { 0 };
	uar_err e = k ? UAR_OK : UAR_ENOMEM;

	if (!e) {
		*k = (struct resuming){ .c = c, .next = o->entries->first, .o = *o };
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
