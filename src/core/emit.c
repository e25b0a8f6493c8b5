/* emit.c - payload text into the arena, ids and sequence numbers onto the event. */
#include "core/emit.h"

/* Most batches are a token, the next larger ones begin a short run or end it. */
enum { FIRST_ROOM = 1, CREATE_ROOM = 16, FIRST_ROWS = 2 };

struct uar_jw *uar_emit_begin(struct emit *e)
{
	uar_buf_clear(e->env->buf);
	e->w = uar_jw_begin(e->env->buf);
	uar_jw_obj(&e->w, NULL);
	if (e->line)
		uar_jw_int(&e->w, "fixture_line", e->line);
	return &e->w;
}

struct uar_jw *uar_emit_thread_change(struct emit *e, const char *what, const char *more)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "status", "running");
	uar_jw_str(w, "active_turn_id", e->r->id.turn_id);
	uar_jw_arr(w, "changed");
	uar_jw_cstr(w, NULL, what);
	if (more)
		uar_jw_cstr(w, NULL, more);
	uar_jw_close(w);
	return w;
}

static void put_scope(const struct emit *e, struct uar_event *ev, enum emit_scope scope)
{
	const struct uar_session *s = e->s;
	const struct uar_run_ids *id = &e->r->id;

	ev->ids[UAR_ID_RUNTIME] = s->runtime_id;
	ev->ids[UAR_ID_TENANT] = s->owner.tenant;
	ev->ids[UAR_ID_WORKSPACE] = s->owner.workspace;
	ev->ids[UAR_ID_USER] = s->owner.user;
	ev->ids[UAR_ID_SESSION] = s->session_id;
	if (scope >= EMIT_THREAD)
		ev->ids[UAR_ID_THREAD] = id->thread_id;
	if (scope < EMIT_RUN)
		return;
	ev->ids[UAR_ID_TURN] = id->turn_id;
	ev->ids[UAR_ID_TASK] = id->task_id;
	ev->ids[UAR_ID_RUN] = id->run_id;
	ev->ids[UAR_ID_ATTEMPT] = id->run_id;
	if (uar_event_is_trace(id->trace_id))
		ev->ids[UAR_ID_TRACE] = id->trace_id;
	ev->run_sequence = e->r->run_sequence + 1;
}

void uar_emit_name(struct emit *e, enum uar_id id, uar_str text)
{
	if (!text.n)
		return;
	e->extra[id] = text;
	e->named |= UAR_ID_BIT(id);
}

static void put_extra(struct emit *e, struct uar_event *ev)
{
	for (; e->named; e->named &= e->named - 1) {
		int id = __builtin_ctz(e->named);

		ev->ids[id] = e->extra[id];
	}
	ev->refs = e->refs;
	e->refs = UAR_STR_NONE;
}

uar_str uar_emit_id(struct emit *e)
{
	char *text = uar_arena_bytes(e->env->arena, UAR_UUID_TEXT + 1);

	if (!text) {
		e->err = e->err ? e->err : UAR_ENOMEM;
		return UAR_STR_NONE;
	}
	uar_uuid_next(e->env->ids, text);
	return uar_str_n(text, UAR_UUID_TEXT);
}

uar_str uar_emit_own(struct emit *e, const char *id)
{
	uar_str own = id[0] ? uar_arena_str(e->env->arena, uar_str_c(id)) : UAR_STR_NONE;

	if (id[0] && !own.p && !e->err)
		e->err = UAR_ENOMEM;
	return own;
}

uar_str uar_emit_wrap(struct emit *e, uar_str before, uar_str text, uar_str after)
{
	char *p = uar_arena_bytes(e->env->arena, before.n + text.n + after.n);

	if (!p) {
		e->err = e->err ? e->err : UAR_ENOMEM;
		return UAR_STR_NONE;
	}
	memcpy(p, before.p, before.n);
	if (text.n)
		memcpy(p + before.n, text.p, text.n);
	if (after.n)
		memcpy(p + before.n + text.n, after.p, after.n);
	return uar_str_n(p, before.n + text.n + after.n);
}

void uar_emit_refs(struct emit *e, uar_str refs)
{
	e->refs = refs;
	if (!refs.p && !e->err)
		e->err = UAR_ENOMEM;
}

void uar_emit_refer(struct emit *e, const char *ref, uar_str sha256)
{
	uar_emit_refs(e, uar_arena_printf(e->env->arena, "{\"%s\":\"blob://%.*s\"}", ref,
					  UAR_FMT(sha256)));
}

static uar_err finish_payload(struct emit *e, uar_str *out)
{
	uar_err err;

	uar_jw_close(&e->w);
	err = uar_jw_end(&e->w);
	if (err)
		return err;
	*out = uar_arena_str(e->env->arena, uar_buf_str(e->env->buf));
	return out->p ? UAR_OK : UAR_ENOMEM;
}

/* Room for one more event; grows in the arena. */
static struct uar_event *next_slot(struct emit *e)
{
	struct uar_decision *d = e->d;
	size_t room = !d->event_room		    ? FIRST_ROOM
		      : d->event_room < CREATE_ROOM ? CREATE_ROOM
						    : d->event_room * 2;
	struct uar_event *events;

	if (d->event_count < d->event_room)
		return &d->events[d->event_count];
	events = room > UAR_DECISION_EVENTS ? NULL
					    : uar_arena_room(e->env->arena, room * sizeof *events);
	if (!events) {
		e->err = room > UAR_DECISION_EVENTS ? UAR_ETOOBIG : UAR_ENOMEM;
		return NULL;
	}
	if (d->event_count)
		memcpy(events, d->events, d->event_count * sizeof *events);
	d->events = events;
	d->event_room = room;
	return &d->events[d->event_count];
}

static uar_err fold(struct emit *e, const struct uar_event *ev)
{
	struct uar_arena *scratch = e->env->scratch ? e->env->scratch : e->env->arena;

	if (e->env->scratch)
		uar_arena_reset(scratch);
	return uar_core_fold(e->s, e->r, ev, scratch, e->error);
}

void uar_emit(struct emit *e, enum uar_event_class cls, enum emit_scope scope)
{
	struct uar_event *ev = e->err ? NULL : next_slot(e);

	if (!ev)
		return;
	*ev = (struct uar_event){
		.cls = cls,
		.time_us = e->env->now_us,
		.sequence = e->s->sequence + 1,
		.type = e->vendor,
	};
	put_scope(e, ev, scope);
	put_extra(e, ev);
	ev->event_id = uar_emit_id(e);
	if (!e->err)
		e->err = finish_payload(e, &ev->payload);
	if (!e->err)
		e->err = uar_event_payload(ev, e->env->arena, &ev->tree, e->error);
	if (!e->err)
		e->err = fold(e, ev);
	if (!e->err)
		e->d->event_count++;
}

void uar_emit_vendor(struct emit *e, const char *type, enum emit_scope scope)
{
	e->vendor = uar_str_c(type);
	uar_emit(e, UAR_EV_VENDOR, scope);
	e->vendor = UAR_STR_NONE;
}

void uar_emit_effect(struct emit *e, enum uar_effect effect)
{
	if (e->err || effect == UAR_DO_NONE)
		return;
	if (e->d->effect_count == UAR_DECISION_EFFECTS)
		e->err = UAR_ETOOBIG;
	else
		e->d->effects[e->d->effect_count++] = effect;
}

/* The place of a row; NULL: there is no room. */
static struct uar_row *row_slot(struct emit *e, const struct uar_row *row)
{
	struct uar_decision *d = e->d;
	size_t room = d->row_room ? d->row_room * 2 : FIRST_ROWS;
	struct uar_row *rows;

	for (size_t i = 0; i < d->row_count; i++)
		if (d->rows[i].kind == row->kind && uar_str_eq(d->rows[i].id, row->id))
			return &d->rows[i];
	if (d->row_count < d->row_room)
		return &d->rows[d->row_count++];
	if (room > UAR_LIMIT_APPEND_ROWS) {
		e->err = UAR_ETOOBIG;
		return NULL;
	}
	rows = uar_arena_room(e->env->arena, room * sizeof *rows);
	if (!rows) {
		e->err = UAR_ENOMEM;
		return NULL;
	}
	if (d->row_count)
		memcpy(rows, d->rows, d->row_count * sizeof *rows);
	d->rows = rows;
	d->row_room = room;
	return &d->rows[d->row_count++];
}

/* The strings of the columns live as long as the batch. */
static bool own_columns(struct emit *e, struct uar_row *row)
{
	uar_str *columns[] = { &row->id, &row->session_id, &row->parent, &row->tag, &row->status };

	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		if (columns[i]->n) {
			*columns[i] = uar_arena_str(e->env->arena, *columns[i]);
			if (!columns[i]->p)
				return false;
		}
	return true;
}

void uar_emit_row(struct emit *e, void *typed)
{
	struct uar_row *row = typed, *slot;

	if (!e->err)
		e->err = uar_row_pack(typed, e->env->arena, e->error);
	if (!e->err && !own_columns(e, row))
		e->err = UAR_ENOMEM;
	slot = e->err ? NULL : row_slot(e, row);
	if (slot)
		*slot = *row;
}

void uar_emit_trace(struct uar_jw *w, uar_str trace_id)
{
	if (trace_id.n && !uar_event_is_trace(trace_id))
		uar_jw_str(w, "trace_id", trace_id);
}

void uar_emit_error(struct uar_jw *w, const char *key, const struct uar_failure *f, uar_str details)
{
	uar_jw_obj(w, key);
	uar_jw_str(w, "code", f->code);
	uar_jw_str(w, "message", f->message);
	uar_jw_str(w, "failure_category", f->category);
	uar_jw_bool(w, "retryable", f->retryable);
	if (details.n)
		uar_jw_raw(w, "details", details);
	uar_jw_close(w);
}

void uar_emit_who(struct uar_jw *w, const char *key, const char *type, uar_str id)
{
	uar_jw_obj(w, key);
	uar_jw_cstr(w, "type", type);
	if (id.n)
		uar_jw_str(w, "id", id);
	uar_jw_close(w);
}

void uar_emit_usage(struct uar_jw *w, const struct uar_run *r)
{
	if (!r->call.calls)
		return;
	uar_jw_obj(w, "usage");
	uar_jw_int(w, "input_tokens", r->call.input_tokens);
	uar_jw_int(w, "output_tokens", r->call.output_tokens);
	uar_jw_int(w, "total_tokens", r->call.input_tokens + r->call.output_tokens);
	if (r->call.estimated)
		uar_jw_bool(w, "estimated", true);
	uar_jw_close(w);
}

void uar_emit_status(struct emit *e, const char *phase, enum uar_status status, const char *title)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "phase", phase);
	uar_jw_cstr(w, "status", uar_status_text(status));
	uar_jw_cstr(w, "title", title);
	uar_emit(e, UAR_EV_RUN_STATUS, EMIT_RUN);
}
