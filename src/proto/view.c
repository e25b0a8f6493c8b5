/* view.c - the fold of a run that stateful dialects share. */
#include "proto/view_int.h"
#include "event/sizes.h"
#include "proto/limits.h"

struct uar_view_phase {
	uar_str name;
	unsigned count;
	struct uar_view_phase *next;
};

void uar_view_init(struct uar_view *v)
{
	*v = (struct uar_view){ .cited = uar_buf_make(UAR_LIMIT_VIEW_TEXT),
				.state = uar_buf_make(UAR_LIMIT_VIEW_TEXT) };
	uar_arena_init(&v->arena, UAR_LIMIT_VIEW_BYTES);
}

static void free_message(struct uar_view_message *m)
{
	for (struct uar_view_call *c = m->calls; c; c = c->next)
		uar_buf_fini(&c->args);
	uar_buf_fini(&m->text);
	uar_buf_fini(&m->cited);
}

void uar_view_fini(struct uar_view *v)
{
	for (struct uar_view_message *m = v->first; m; m = m->next)
		free_message(m);
	uar_buf_fini(&v->cited);
	uar_buf_fini(&v->state);
	uar_arena_fini(&v->arena);
}

/* --- reading ---------------------------------------------------------------------- */

const struct uar_json *view_member(const struct view_fold *f, const char *key)
{
	return uar_json_get(f->p, uar_str_c(key));
}

uar_str view_text(const struct view_fold *f, const char *key)
{
	return uar_json_str(view_member(f, key), UAR_STR(""));
}

uar_err view_tell(const struct view_fold *f, struct uar_view_change change)
{
	return f->v->changed(f->v->ctx, &change);
}

uar_err view_tell_kind(const struct view_fold *f, enum uar_view_change_kind kind)
{
	return view_tell(f, (struct uar_view_change){ .kind = kind });
}

uar_err view_keep_str(struct uar_view *v, uar_str s, uar_str *out)
{
	*out = uar_arena_str(&v->arena, s);
	return out->p ? UAR_OK : UAR_ENOMEM;
}

/* JSON text of a value for as long as the view lives; NULL leaves it empty. */
uar_err view_keep_json(struct view_fold *f, const struct uar_json *j, uar_str *out)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EVENT_BYTES * 2);
	uar_err e = UAR_OK;

	if (j) {
		uar_json_write(&b, j);
		e = b.err ? b.err : view_keep_str(f->v, uar_buf_str(&b), out);
	}
	uar_buf_fini(&b);
	return e;
}

/* --- what is kept ------------------------------------------------------------------- */

/* Text beyond the limit is not kept: the reader has it, a snapshot would lack it. */
uar_err view_keep_text(struct uar_view *v, struct uar_buf *to, uar_str text)
{
	if (v->cut || v->bytes + text.n > UAR_LIMIT_VIEW_TEXT) {
		v->cut = true;
		return UAR_OK;
	}
	v->bytes += text.n;
	uar_buf_add_str(to, text);
	return to->err;
}

uar_err view_set_text(struct uar_view *v, struct uar_buf *to, uar_str text)
{
	v->bytes -= to->n;
	uar_buf_clear(to);
	return view_keep_text(v, to, text);
}

struct uar_view_message *view_make_message(struct uar_view *v, enum uar_view_kind kind, uar_str id)
{
	struct uar_view_message *m = uar_arena_alloc(&v->arena, sizeof *m);

	if (!m)
		return NULL;
	m->kind = kind;
	m->text = uar_buf_make(UAR_LIMIT_VIEW_TEXT);
	m->cited = uar_buf_make(UAR_LIMIT_VIEW_TEXT);
	return view_keep_str(v, id, &m->id) ? NULL : m;
}

/* Behind `at`; NULL: as the last one. */
void view_insert_message(struct uar_view *v, struct uar_view_message *at,
			 struct uar_view_message *m)
{
	if (!at)
		at = v->last;
	if (at) {
		m->next = at->next;
		at->next = m;
	} else {
		v->first = m;
	}
	if (v->last == at)
		v->last = m;
}

static void remove_message(struct uar_view *v, struct uar_view_message **at)
{
	struct uar_view_message *m = *at;

	*at = m->next;
	if (v->parent == m)
		v->parent = NULL;
	v->bytes -= m->text.n;
	free_message(m);
	v->last = v->first;
	while (v->last && v->last->next)
		v->last = v->last->next;
}

struct uar_view_message *view_find_message(const struct uar_view *v, uar_str id)
{
	struct uar_view_message *m = v->first;

	while (m && !uar_str_eq(m->id, id))
		m = m->next;
	return m;
}

/* --- messages that grow --------------------------------------------------------------- */

uar_err view_close_message(struct view_fold *f)
{
	struct uar_view_message *m = f->v->open;

	if (!m)
		return UAR_OK;
	f->v->open = NULL;
	if (m->kind == UAR_VIEW_TEXT && f->v->cited.n) {
		uar_buf_add_str(&m->cited, uar_buf_str(&f->v->cited));
		uar_buf_clear(&f->v->cited);
		if (m->cited.err)
			return m->cited.err;
	}
	return view_tell(f,
			 (struct uar_view_change){ .kind = UAR_VIEW_MESSAGE_ENDED, .message = m });
}

/* The id of the next piece of a message of the log. */
static uar_str name_piece(struct view_fold *f, enum uar_view_kind kind, uar_str source)
{
	unsigned n = 1;

	for (const struct uar_view_message *m = f->v->first; m; m = m->next)
		n += m->kind == kind && uar_str_eq(m->source_id, source);
	if (kind == UAR_VIEW_REASONING)
		return uar_arena_printf(f->scratch, "%.*s.r%u", UAR_FMT(source), n);
	return n == 1 ? source : uar_arena_printf(f->scratch, "%.*s.%u", UAR_FMT(source), n);
}

static uar_err open_message(struct view_fold *f, enum uar_view_kind kind, uar_str source)
{
	uar_str id = name_piece(f, kind, source);
	struct uar_view_message *m = id.p ? view_make_message(f->v, kind, id) : NULL;
	uar_err e = m ? view_keep_str(f->v, source, &m->source_id) : UAR_ENOMEM;

	if (e)
		return e;
	view_insert_message(f->v, NULL, m);
	f->v->open = m;
	if (kind == UAR_VIEW_TEXT)
		f->v->parent = m;
	return view_tell(
		f, (struct uar_view_change){ .kind = UAR_VIEW_MESSAGE_STARTED, .message = m });
}

static uar_err grow_message(struct view_fold *f, enum uar_view_kind kind, uar_str text)
{
	uar_str source = view_text(f, "message_id");
	struct uar_view_message *m = f->v->open;
	uar_err e = UAR_OK;

	if (!text.n)
		return UAR_OK;
	if (m && (m->kind != kind || !uar_str_eq(m->source_id, source)))
		e = view_close_message(f);
	if (!e && !f->v->open)
		e = open_message(f, kind, source);
	if (!e)
		e = view_keep_text(f->v, &f->v->open->text, text);
	if (e)
		return e;
	return view_tell(f, (struct uar_view_change){ .kind = UAR_VIEW_MESSAGE_GREW,
						      .message = f->v->open,
						      .text = text });
}

static uar_err fold_delta(struct view_fold *f)
{
	const struct uar_json *json = view_member(f, "json");
	uar_err e = grow_message(f, UAR_VIEW_TEXT, view_text(f, "text"));

	if (e || !json)
		return e;
	return view_tell(f, (struct uar_view_change){ .kind = UAR_VIEW_NOTED,
						      .json = json,
						      .text = UAR_STR("structured") });
}

static uar_err fold_reasoning(struct view_fold *f)
{
	return grow_message(f, UAR_VIEW_REASONING, view_text(f, "text"));
}

/* --- the run ------------------------------------------------------------------------------ */

static uar_err fold_input(struct view_fold *f)
{
	const struct uar_json *part = uar_json_at(view_member(f, "input_parts"), 0);
	uar_str text = uar_json_text(part, "preview");
	uar_str key = view_text(f, "idempotency_key");
	struct uar_view_message *m;
	uar_err e = UAR_OK;

	if (uar_str_starts(key, UAR_STR(UAR_VIEW_NAMED)))
		e = view_keep_str(f->v, uar_str_from(key, strlen(UAR_VIEW_NAMED)), &f->v->named);
	if (!e)
		e = view_fold_client_state(f);
	if (e || !text.n)
		return e;
	m = view_make_message(f->v, UAR_VIEW_USER, f->ev->ids[UAR_ID_TURN]);
	if (!m)
		return UAR_ENOMEM;
	view_insert_message(f->v, NULL, m);
	return view_keep_text(f->v, &m->text, text);
}

static uar_err fold_queued(struct view_fold *f)
{
	uar_str thread = f->ev->ids[UAR_ID_THREAD];
	uar_err e = view_keep_str(f->v, f->ev->ids[UAR_ID_RUN], &f->v->run_id);

	if (!e)
		e = view_keep_str(f->v, thread.n ? thread : f->ev->ids[UAR_ID_SESSION],
				  &f->v->thread_id);
	return e ? e : view_tell_kind(f, UAR_VIEW_STARTED);
}

static uar_err finish_step(struct view_fold *f)
{
	uar_str step = f->v->step;

	if (!step.n)
		return UAR_OK;
	f->v->step = f->v->phase = UAR_STR_NONE;
	return view_tell(f,
			 (struct uar_view_change){ .kind = UAR_VIEW_STEP_FINISHED, .text = step });
}

static struct uar_view_phase *find_phase(struct uar_view *v, uar_str name)
{
	struct uar_view_phase *p = v->phases;

	while (p && !uar_str_eq(p->name, name))
		p = p->next;
	if (p)
		return p;
	p = uar_arena_alloc(&v->arena, sizeof *p);
	if (!p || view_keep_str(v, name, &p->name))
		return NULL;
	p->next = v->phases;
	v->phases = p;
	return p;
}

static uar_err start_step(struct view_fold *f, uar_str phase)
{
	struct uar_view_phase *p = find_phase(f->v, phase);

	if (!p)
		return UAR_ENOMEM;
	f->v->phase = p->name;
	f->v->step = ++p->count == 1 ? p->name
				     : uar_arena_printf(&f->v->arena, "%.*s#%u", UAR_FMT(p->name),
							p->count);
	if (!f->v->step.p)
		return UAR_ENOMEM;
	return view_tell(
		f, (struct uar_view_change){ .kind = UAR_VIEW_STEP_STARTED, .text = f->v->step });
}

/* The text of a model call that was cut off comes again as another message. What it
 * thought stays: no snapshot could take it back from a reader. */
static uar_err supersede_message(struct view_fold *f, uar_str source)
{
	struct uar_view_message **at = &f->v->first;
	bool found = false;
	uar_err e = view_close_message(f);

	while (*at && !e) {
		if ((*at)->kind == UAR_VIEW_TEXT && !(*at)->calls &&
		    uar_str_eq((*at)->source_id, source)) {
			remove_message(f->v, at);
			found = true;
		} else {
			at = &(*at)->next;
		}
	}
	if (e || !found)
		return e;
	return view_tell_kind(f, UAR_VIEW_SUPERSEDED);
}

static uar_err fold_status(struct view_fold *f)
{
	const struct uar_json *metadata = view_member(f, "metadata");
	uar_str phase = view_text(f, "phase");
	uar_str old = uar_json_text(metadata, "superseded_message_id");
	uar_err e = UAR_OK;

	if (phase.n && !uar_str_eq(phase, f->v->phase)) {
		e = view_close_message(f);
		if (!e)
			e = finish_step(f);
		if (!e)
			e = start_step(f, phase);
	}
	if (!e && old.n)
		return supersede_message(f, old);
	if (e || !metadata)
		return e;
	if (uar_json_get(metadata, UAR_STR("skill")))
		return view_tell(f, (struct uar_view_change){
					    .kind = UAR_VIEW_NOTED,
					    .json = uar_json_get(metadata, UAR_STR("skill")),
					    .text = UAR_STR("skill_activated") });
	return view_tell(f, (struct uar_view_change){ .kind = UAR_VIEW_NOTED,
						      .json = f->p,
						      .text = UAR_STR("meta") });
}

/* --- model calls ----------------------------------------------------------------------------- */

static uar_err fold_requested(struct view_fold *f)
{
	f->v->parent = NULL;
	return view_close_message(f);
}

static struct uar_view_usage *find_usage(struct view_fold *f)
{
	uar_str provider = view_text(f, "provider"), model = view_text(f, "model");
	struct uar_view_usage **at = &f->v->usage;

	for (; *at; at = &(*at)->next)
		if (uar_str_eq((*at)->provider, provider) && uar_str_eq((*at)->model, model))
			return *at;
	*at = uar_arena_alloc(&f->v->arena, sizeof **at);
	if (!*at || view_keep_str(f->v, provider, &(*at)->provider) ||
	    view_keep_str(f->v, model, &(*at)->model))
		return NULL;
	(*at)->cached = -1;
	return *at;
}

static uar_err fold_model_end(struct view_fold *f)
{
	const struct uar_json *usage = view_member(f, "usage");
	struct uar_view_usage *u = usage ? find_usage(f) : NULL;
	int64_t cached;

	if (usage && !u)
		return UAR_ENOMEM;
	if (u) {
		u->input += uar_json_int(uar_json_get(usage, UAR_STR("input_tokens")), 0);
		u->output += uar_json_int(uar_json_get(usage, UAR_STR("output_tokens")), 0);
		u->total += uar_json_int(uar_json_get(usage, UAR_STR("total_tokens")), 0);
		cached = uar_json_int(uar_json_get(usage, UAR_STR("cached_tokens")), -1);
		if (cached >= 0)
			u->cached = cached + (u->cached > 0 ? u->cached : 0);
	}
	return view_close_message(f);
}

/* --- the end, and notes --------------------------------------------------------------------- */

static uar_err fold_end(struct view_fold *f)
{
	uar_str code = uar_json_str(uar_json_get(view_member(f, "error"), UAR_STR("code")),
				    UAR_STR("INTERNAL"));
	uar_err e = view_close_message(f);

	if (!e)
		e = view_close_calls(f);
	if (!e)
		e = finish_step(f);
	if (!e)
		e = view_keep_str(f->v, code, &f->v->end_code);
	if (!e)
		e = view_keep_str(f->v, view_text(f, "message"), &f->v->end_message);
	if (!e)
		e = view_keep_str(f->v, view_text(f, "finish_reason"), &f->v->finish_reason);
	if (e)
		return e;
	f->v->waiting = false;
	f->v->end = f->ev->cls == UAR_EV_TASK_ATTEMPT_COMPLETED	      ? UAR_VIEW_DONE
		    : uar_str_is(view_text(f, "status"), "cancelled") ? UAR_VIEW_CANCELLED
								      : UAR_VIEW_FAILED;
	return view_tell_kind(f, UAR_VIEW_ENDED);
}

static uar_err tell_note(struct view_fold *f, const char *name)
{
	return view_tell(f, (struct uar_view_change){ .kind = UAR_VIEW_NOTED,
						      .json = f->p,
						      .text = uar_str_c(name) });
}

static uar_err fold_warning(struct view_fold *f)
{
	bool preview = uar_str_is(view_text(f, "code"), "ARTIFACT_PREVIEW_ERROR");

	return tell_note(f, preview ? "artifact.error" : "warning");
}

static uar_err fold_progress(struct view_fold *f)
{
	return tell_note(f, "progress");
}

static uar_err fold_cancel(struct view_fold *f)
{
	return tell_note(f, "cancel_requested");
}

static uar_err fold_limit(struct view_fold *f)
{
	return tell_note(f, uar_event_info[f->ev->cls].type);
}

static uar_err (*const rules[UAR_EV_COUNT])(struct view_fold *f) = {
	[UAR_EV_TURN_SUBMITTED] = fold_input,
	[UAR_EV_TASK_QUEUED] = fold_queued,
	[UAR_EV_RUN_STATUS] = fold_status,
	[UAR_EV_MODEL_REQUESTED] = fold_requested,
	[UAR_EV_MODEL_DELTA] = fold_delta,
	[UAR_EV_REASONING_DELTA] = fold_reasoning,
	[UAR_EV_MODEL_COMPLETED] = fold_model_end,
	[UAR_EV_MODEL_FAILED] = fold_model_end,
	[UAR_EV_TOOL_STARTED] = view_fold_tool_started,
	[UAR_EV_TOOL_ARGS] = view_fold_tool_args,
	[UAR_EV_TOOL_PROGRESS] = view_fold_tool_progress,
	[UAR_EV_TOOL_RESULT] = view_fold_tool_end,
	[UAR_EV_TOOL_FAILED] = view_fold_tool_end,
	[UAR_EV_ARTIFACT_CHANGED] = view_fold_artifact,
	[UAR_EV_CONTEXT_RESOLVED] = view_fold_context,
	[UAR_EV_ACTION_REQUIRED] = view_fold_asked,
	[UAR_EV_ACTION_RESOLVED] = view_fold_answered,
	[UAR_EV_TASK_WAITING] = view_fold_waiting,
	[UAR_EV_TASK_RESUMED] = view_fold_resumed,
	[UAR_EV_RUNTIME_WARNING] = fold_warning,
	[UAR_EV_TASK_PROGRESS] = fold_progress,
	[UAR_EV_TASK_CANCEL_REQUESTED] = fold_cancel,
	[UAR_EV_LIMIT_CHANGED] = fold_limit,
	[UAR_EV_RATE_LIMIT_HIT] = fold_limit,
	[UAR_EV_QUOTA_LOW] = fold_limit,
	[UAR_EV_QUOTA_BLOCKED] = fold_limit,
	[UAR_EV_COST_RECORDED] = fold_limit,
	[UAR_EV_ROUTING_FALLBACK_APPLIED] = fold_limit,
	[UAR_EV_TASK_ATTEMPT_COMPLETED] = fold_end,
	[UAR_EV_TASK_ATTEMPT_FAILED] = fold_end,
};

bool uar_view_reads(const struct uar_event *ev)
{
	return rules[ev->cls] && ev->run_sequence;
}

uar_err uar_view_apply(struct uar_view *v, const struct uar_event *ev, struct uar_arena *scratch,
		       uar_view_fn *changed, void *ctx)
{
	struct view_fold f = { .v = v, .ev = ev, .scratch = scratch };
	uar_err e;

	if (!uar_view_reads(ev) || v->end)
		return UAR_OK;
	e = uar_event_payload(ev, scratch, &f.p, NULL);
	if (e)
		return e;
	v->changed = changed;
	v->ctx = ctx;
	e = rules[ev->cls](&f);
	v->changed = NULL;
	return e;
}
