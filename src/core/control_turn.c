/* control_turn.c - turns: submitted to a thread, interrupted. */
#include "core/control_int.h"
#include "core/limits.h"

enum { UPLOAD_ID = 24 }; /* hex digits of the id of an upload */

/* --- what a turn says ------------------------------------------------------------------------ */

static uar_err wrong_part(struct uar_error *error, size_t i, const char *member, const char *why)
{
	uar_error_where(error, "/input/%zu/%s", i, member);
	return uar_error_set(error, UAR_EINVALID, "\"%s\" %s", member, why);
}

static uar_err add_text_part(const struct uar_json *part, size_t i, struct uar_buf *out,
			     struct uar_error *error)
{
	const struct uar_json *text = uar_json_get(part, UAR_STR("text"));

	if (!text || text->kind != UAR_JSON_STRING)
		return wrong_part(error, i, "text", "must be a string");
	uar_buf_add_str(out, uar_json_str(text, UAR_STR("")));
	return UAR_OK;
}

static uar_err add_value_part(const struct uar_json *part, size_t i, const char *member,
			      struct uar_buf *out, struct uar_error *error)
{
	const struct uar_json *value = uar_json_get(part, uar_str_c(member));

	if (!value)
		return wrong_part(error, i, member, "is required");
	uar_json_write(out, value);
	return UAR_OK;
}

/* Bytes are named as the server names them: blob://SHA256 in events, and the blob_url of an
 * upload. */
bool uar_turn_ref(uar_str ref, struct uar_turn_file *f)
{
	uar_str rest, word;

	if (uar_str_starts(ref, UAR_STR("blob://"))) {
		f->id = uar_str_from(ref, sizeof "blob://" - 1);
		return f->id.n == 64 && uar_str_is_hex(f->id);
	}
	if (!uar_str_starts(ref, UAR_STR("/runs/")))
		return false;
	f->run_id = uar_str_cut(uar_str_from(ref, sizeof "/runs/" - 1), '/', &rest);
	word = uar_str_cut(rest, '/', &f->id);
	return uar_str_is_id(f->run_id) && uar_str_is(word, "blobs") && f->id.n == UPLOAD_ID &&
	       uar_str_is_hex(f->id);
}

static uar_err add_file_part(const struct uar_json *part, size_t i, struct uar_buf *out,
			     struct uar_error *error)
{
	uar_str ref = uar_json_text(part, "ref");
	uar_str name = uar_json_str(uar_json_get(part, UAR_STR("name")), UAR_STR("file"));

	if (!ref.n)
		return wrong_part(error, i, "ref", "is required");
	if (!uar_turn_ref(ref, &(struct uar_turn_file){ .part = i }))
		return wrong_part(error, i, "ref",
				  "must be blob:// and the SHA-256 of stored bytes, or the "
				  "blob_url of an upload");
	uar_buf_printf(out, "[%.*s: %.*s]", UAR_FMT(name), UAR_FMT(ref));
	return UAR_OK;
}

/* Workers are given text: other parts are written as they are read best. */
static uar_err add_part(const struct uar_json *part, size_t i, struct uar_buf *out,
			struct uar_error *error)
{
	uar_str type = uar_json_text(part, "type");

	if (i)
		uar_buf_add_str(out, UAR_STR("\n\n"));
	if (uar_str_is(type, "text"))
		return add_text_part(part, i, out, error);
	if (uar_str_is(type, "json"))
		return add_value_part(part, i, "data", out, error);
	if (uar_str_is(type, "form"))
		return add_value_part(part, i, "values", out, error);
	if (uar_str_is(type, "file"))
		return add_file_part(part, i, out, error);
	return wrong_part(error, i, "type", "must be one of text, json, file, form");
}

static uar_err join_parts(uar_str input, struct uar_arena *arena, uar_str *out,
			  struct uar_error *error)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_TURN_BYTES);
	const struct uar_json *parts = NULL, *part;
	uar_err e = uar_json_parse(input, NULL, arena, &parts, error);
	size_t i = 0;

	for (part = e ? NULL : parts->first; part && !e; part = part->next)
		e = add_part(part, i++, &text, error);
	e = e ? e : text.err;
	if (!e) {
		*out = uar_arena_str(arena, uar_buf_str(&text));
		e = out->p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(&text);
	return e;
}

uar_err uar_turn_files(uar_str input, struct uar_arena *arena, const struct uar_turn_file **out,
		       struct uar_error *error)
{
	const struct uar_json *parts = NULL, *part;
	uar_err e = input.n ? uar_json_parse(input, NULL, arena, &parts, error) : UAR_OK;
	size_t i = 0, count = 0;

	*out = NULL;
	for (part = parts ? parts->first : NULL; part && !e; part = part->next, i++) {
		uar_str ref = uar_json_text(part, "ref");
		struct uar_turn_file found = { .part = i }, *f;

		if (!uar_str_is(uar_json_text(part, "type"), "file") || !uar_turn_ref(ref, &found))
			continue;
		if (++count > UAR_LIMIT_TURN_FILES) {
			uar_error_where(error, "/input/%zu", i);
			return uar_error_set(error, UAR_EINVALID, "a turn has at most %d files",
					     UAR_LIMIT_TURN_FILES);
		}
		f = uar_arena_alloc(arena, sizeof *f);
		if (!f)
			return UAR_ENOMEM;
		*f = found;
		f->next = *out;
		*out = f;
	}
	return e;
}

uar_err uar_turn_message(uar_str message, uar_str input, struct uar_arena *arena, uar_str *out,
			 struct uar_error *error)
{
	uar_err e = UAR_OK;

	*out = message;
	if (message.n && input.n) {
		uar_error_where(error, "/input");
		return uar_error_set(error, UAR_EINVALID,
				     "give \"message\" or \"input\", not both");
	}
	if (input.n)
		e = join_parts(input, arena, out, error);
	if (!e && !out->n) {
		uar_error_where(error, "/message");
		return uar_error_set(error, UAR_EINVALID, "\"message\" or \"input\" is required");
	}
	return e;
}

/* --- runs ------------------------------------------------------------------------------------ */

void ctl_decide_run(struct ctl *c, int which, const struct uar_command *command)
{
	struct uar_run *run = which == UAR_CONTROL_FRESH ? c->in->fresh : c->in->target;

	if (c->e.err || c->waits)
		return;
	c->e.err = uar_core_decide(c->e.env, c->e.s, run, command, &c->u->d, c->e.error);
	c->u->moved = which;
}

/* --- submit_turn ----------------------------------------------------------------------------- */

static void put_id(struct uar_jw *w, const char *key, uar_str id)
{
	if (id.n)
		uar_jw_str(w, key, id);
}

void uar_turn_write(struct uar_jw *w, const struct uar_turn_place *t)
{
	uar_jw_cstr(w, "status", t->status);
	put_id(w, "session_id", t->session_id);
	put_id(w, "thread_id", t->thread_id);
	put_id(w, "turn_id", t->turn_id);
	put_id(w, "task_id", t->task_id);
	put_id(w, "run_id", t->run_id);
	put_id(w, "agent_id", t->agent_id);
	if (t->position)
		uar_jw_u64(w, "position", t->position);
	else
		uar_jw_null(w, "position");
	uar_jw_bool(w, "existed", t->existed);
	if (t->steered)
		uar_jw_bool(w, "steered", true);
}

static void tell_turn(struct ctl *c, size_t position)
{
	const struct uar_create *create = c->in->create;
	struct uar_turn_place place = {
		.status = position ? "queued" : "accepted",
		.session_id = c->e.s->session_id,
		.thread_id = create->thread_id,
		.turn_id = create->turn_id,
		.task_id = create->task_id,
		.run_id = create->run_id,
		.agent_id = create->what.agent_id,
		.position = position,
	};
	struct uar_jw *w = ctl_result(c);

	uar_turn_write(w, &place);
	ctl_result_end(c);
}

static void ask_to_stop(struct ctl *c, uar_str reason)
{
	struct uar_command cancel = { .kind = UAR_CMD_CANCEL, .text = reason };

	ctl_decide_run(c, UAR_CONTROL_TARGET, &cancel);
}

static bool is_stopping(const struct uar_run *r)
{
	return r->status == UAR_STATUS_CANCELLING;
}

/* The message joins the active turn, whose model is told it with its next call. */
static void steer_turn(struct ctl *c)
{
	const struct uar_create *new = c->in->create;
	struct uar_run *r = c->in->target;
	struct uar_command steer = { .kind = UAR_CMD_STEER };
	struct uar_turn_place place = { .status = "accepted", .steered = true };

	if (!r || !uar_run_takes_input(r)) {
		ctl_refuse(c, UAR_ESTATE, "/policy",
			   "the active turn takes no further input: use enqueue or interrupt");
		return;
	}
	if (!uar_str_eq(new->what.agent_id, r->what.agent_id)) {
		ctl_refuse(c, UAR_ESTATE, "/agent_id", "the active turn is answered by %.*s",
			   UAR_FMT(r->what.agent_id));
		return;
	}
	if (new->what.model_chosen && !(uar_str_eq(new->what.provider, uar_run_provider(r)) &&
					uar_str_eq(new->what.model, uar_run_model(r)))) {
		ctl_refuse(c, UAR_ESTATE, "/options/model",
			   "the active turn is answered by %.*s/%.*s", UAR_FMT(uar_run_provider(r)),
			   UAR_FMT(uar_run_model(r)));
		return;
	}
	if (uar_run_rare(r)->later.given >= UAR_LIMIT_TURN_INPUTS) {
		ctl_refuse(c, UAR_ESTATE, "/policy", "the active turn has taken %d messages",
			   UAR_LIMIT_TURN_INPUTS);
		return;
	}
	steer.input = (struct uar_message_text){ new->what.message, new->what.message_blob,
						 new->what.message_bytes };
	ctl_decide_run(c, UAR_CONTROL_TARGET, &steer);
	if (c->e.err || c->waits)
		return;
	place.session_id = c->e.s->session_id;
	place.thread_id = r->id.thread_id;
	place.turn_id = r->id.turn_id;
	place.task_id = r->id.task_id;
	place.run_id = r->id.run_id;
	place.agent_id = r->what.agent_id;
	uar_turn_write(ctl_result(c), &place);
	ctl_result_end(c);
}

void ctl_submit_turn(struct ctl *c)
{
	uar_str policy = c->in->submit_turn.policy;
	bool waits = uar_queue_waits(c->in->queue) || c->in->create->wait;
	bool interrupts = uar_str_is(policy, "interrupt");
	struct uar_command create = { .kind = UAR_CMD_CREATE, .create = *c->in->create };
	size_t position = waits ? (c->in->queue ? c->in->queue->length : 0) + 1 : 0;

	create.create.parent_thread_id = c->in->parent_thread_id;
	create.create.what.budgets = c->in->budgets;
	if (waits && uar_str_is(policy, "reject")) {
		ctl_refuse(c, UAR_ESTATE, "/policy", "the thread is at another turn");
		return;
	}
	if (waits && uar_str_is(policy, "steer")) {
		steer_turn(c);
		return;
	}
	if (interrupts && c->in->target && !is_stopping(c->in->target)) {
		ask_to_stop(c, UAR_STR("interrupted by another turn"));
		c->u->again = true;
		return;
	}
	if (interrupts && waits) {
		ctl_place_first(c, c->in->create->run_id);
		create.create.first = true;
		position = 1;
	}
	ctl_decide_run(c, UAR_CONTROL_FRESH, &create);
	if (!c->e.err && !c->waits)
		tell_turn(c, position);
}

/* --- interrupt_turn -------------------------------------------------------------------------- */

static void tell_interrupted(struct ctl *c, const char *status, uar_str turn_id)
{
	struct uar_jw *w = ctl_result(c);
	uar_str earlier = c->in->earlier;

	uar_jw_cstr(w, "status", status);
	uar_jw_str(w, "session_id", c->e.s->session_id);
	put_id(w, "thread_id", c->in->thread_id);
	if (turn_id.n)
		uar_jw_raw(w, "turn_ids",
			   uar_arena_printf(c->e.env->arena, "[%.*s\"%.*s\"]", UAR_FMT(earlier),
					    UAR_FMT(turn_id)));
	else
		uar_jw_raw(w, "turn_ids", UAR_STR("[]"));
	ctl_result_end(c);
}

void ctl_interrupt_turn(struct ctl *c)
{
	const struct uar_ctl_interrupt_turn *in = &c->in->interrupt_turn;
	const struct uar_run *r = c->in->target;

	if (!r || is_stopping(r) || (in->turn_id.n && !uar_str_eq(in->turn_id, r->id.turn_id))) {
		tell_interrupted(c, "no_op", UAR_STR_NONE);
		return;
	}
	c->u->again = c->in->more_targets;
	ask_to_stop(c, in->reason);
	if (!c->e.err)
		tell_interrupted(c, "accepted", r->id.turn_id);
}
