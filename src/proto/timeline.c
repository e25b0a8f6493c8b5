/* timeline.c - events of a run folded into spans.
 *
 * A model call, a tool, a question, a wait, a child agent and a process have a beginning and
 * an end in the log; an artifact or an error is a span without a length. Pieces of text are
 * counted, never read, so that a run of many pieces costs little. */
#include "proto/timeline.h"

#include "proto/limits.h"

struct span {
	const char *kind, *state;
	uar_str name, detail, key; /* key: tool_call_id, action_id, ... */
	uint64_t first, last;	   /* run_sequence; last 0: still open */
	int64_t first_us, last_us;
	int64_t input_tokens, output_tokens, ttft_ms;
	double cost;
	struct span *next;
};

struct timeline {
	struct uar_arena arena;
	uar_str run_id;
	struct span *first, **end;
	struct span *model; /* the one that was asked last */
	size_t count, left_out;
	uint64_t of[UAR_EV_COUNT];
	uint64_t events, last;
	int64_t first_us, last_us;
	bool over;
};

/* What one event is folded with. */
struct fold {
	struct timeline *t;
	const struct uar_event *ev;
	const struct uar_json *p; /* its payload */
};

static uar_err begin(void *state, const struct uar_dialect_options *o)
{
	struct timeline *t = state;

	(void)o;
	t->end = &t->first;
	uar_arena_init(&t->arena, UAR_LIMIT_TIMELINE_BYTES);
	return UAR_OK;
}

static void end(void *state)
{
	struct timeline *t = state;

	uar_arena_fini(&t->arena);
}

/* --- spans ---------------------------------------------------------------------------- */

static uar_str text(const struct fold *f, const char *key)
{
	return uar_json_text(f->p, key);
}

static uar_err keep(struct timeline *t, uar_str from, uar_str *out)
{
	if (!from.n)
		return UAR_OK;
	*out = uar_arena_str(&t->arena, uar_str_utf8_prefix(from, UAR_LIMIT_TIMELINE_TEXT));
	return out->p ? UAR_OK : UAR_ENOMEM;
}

/* NULL with UAR_OK: there are too many; it is counted. */
static uar_err open_span(struct fold *f, const char *kind, uar_str name, uar_str detail,
			 struct span **out)
{
	struct timeline *t = f->t;
	struct span *s;
	uar_err e;

	*out = NULL;
	if (t->count >= UAR_LIMIT_TIMELINE_SPANS) {
		t->left_out++;
		return UAR_OK;
	}
	s = uar_arena_alloc(&t->arena, sizeof *s);
	if (!s)
		return UAR_ENOMEM;
	*s = (struct span){ .kind = kind,
			    .state = "open",
			    .first = f->ev->run_sequence,
			    .first_us = f->ev->time_us,
			    .ttft_ms = -1 };
	e = keep(t, name, &s->name);
	if (!e)
		e = keep(t, detail, &s->detail);
	if (e)
		return e;
	*t->end = s;
	t->end = &s->next;
	t->count++;
	*out = s;
	return UAR_OK;
}

static void close_span(const struct fold *f, struct span *s, const char *state)
{
	s->state = state;
	s->last = f->ev->run_sequence;
	s->last_us = f->ev->time_us;
}

static uar_err open_keyed(struct fold *f, const char *kind, enum uar_id id, uar_str name,
			  uar_str detail)
{
	struct span *s;
	uar_err e = open_span(f, kind, name, detail, &s);

	return e || !s ? e : keep(f->t, f->ev->ids[id], &s->key);
}

static struct span *find_open(const struct timeline *t, const char *kind, uar_str key)
{
	struct span *found = NULL;

	for (struct span *s = t->first; s; s = s->next)
		if (!s->last && strcmp(s->kind, kind) == 0 &&
		    uar_str_eq(s->key, uar_str_utf8_prefix(key, UAR_LIMIT_TIMELINE_TEXT)))
			found = s;
	return found;
}

/* A point in time. */
static uar_err mark(struct fold *f, const char *kind, uar_str name, uar_str detail,
		    const char *state)
{
	struct span *s;
	uar_err e = open_span(f, kind, name, detail, &s);

	if (!e && s)
		close_span(f, s, state);
	return e;
}

/* --- events --------------------------------------------------------------------------- */

static void read_usage(const struct fold *f, struct span *s)
{
	const struct uar_json *usage = uar_json_get(f->p, UAR_STR("usage"));

	s->input_tokens = uar_json_int(uar_json_get(usage, UAR_STR("input_tokens")), 0);
	s->output_tokens = uar_json_int(uar_json_get(usage, UAR_STR("output_tokens")), 0);
	s->ttft_ms = uar_json_int(uar_json_get(f->p, UAR_STR("ttft_ms")), -1);
}

static uar_str error_code(const struct fold *f)
{
	const struct uar_json *error = uar_json_get(f->p, UAR_STR("error"));

	return uar_json_text(error, "code");
}

/* A call that a stop of the server cut off ends with the event before; the time until now is
 * the server's absence. */
static uar_err restarted(struct fold *f)
{
	struct timeline *t = f->t;
	struct span *s, *cut = t->model;
	uar_err e = open_span(f, "restart", UAR_STR("Server restarted"), UAR_STR(""), &s);

	if (cut) {
		cut->state = "superseded";
		cut->last = f->ev->run_sequence;
		cut->last_us = t->last_us;
	}
	if (e || !s)
		return e;
	s->first_us = t->last_us;
	close_span(f, s, "ended");
	return UAR_OK;
}

static uar_err model_event(struct fold *f)
{
	struct timeline *t = f->t;
	uar_err e = UAR_OK;

	switch (f->ev->cls) {
	case UAR_EV_MODEL_REQUESTED:
		return open_span(f, "model", text(f, "model"), text(f, "provider"), &t->model);
	case UAR_EV_MODEL_COMPLETED:
		if (t->model) {
			close_span(f, t->model, "ended");
			read_usage(f, t->model);
		}
		return UAR_OK;
	case UAR_EV_MODEL_FAILED:
		if (uar_str_is(error_code(f), "LOST"))
			return restarted(f);
		if (t->model) {
			close_span(f, t->model, "failed");
			read_usage(f, t->model);
			e = keep(t, text(f, "message"), &t->model->detail);
		}
		return e;
	default: /* cost.recorded */
		if (t->model)
			t->model->cost += uar_json_double(uar_json_get(f->p, UAR_STR("amount")), 0);
		return UAR_OK;
	}
}

/* Arguments as the event shows them. */
static uar_str raw(const struct fold *f, const char *key)
{
	const struct uar_json *j = uar_json_get(f->p, uar_str_c(key));

	return j ? j->text : UAR_STR("");
}

static uar_err tool_event(struct fold *f)
{
	struct span *s;
	uar_str status;
	uar_err e = UAR_OK;

	if (f->ev->cls == UAR_EV_TOOL_STARTED)
		return open_keyed(f, "tool", UAR_ID_TOOL_CALL, text(f, "tool_name"),
				  raw(f, "safe_args"));
	s = find_open(f->t, "tool", f->ev->ids[UAR_ID_TOOL_CALL]);
	if (!s) { /* refused before it began */
		e = open_keyed(f, "tool", UAR_ID_TOOL_CALL, text(f, "tool_name"), UAR_STR(""));
		s = e ? NULL : find_open(f->t, "tool", f->ev->ids[UAR_ID_TOOL_CALL]);
	}
	if (!s)
		return e;
	status = text(f, "status");
	if (f->ev->cls == UAR_EV_TOOL_RESULT)
		close_span(f, s, "ended");
	else
		close_span(f, s,
			   uar_str_is(status, "denied")	     ? "denied"
			   : uar_str_is(status, "cancelled") ? "cut"
							     : "failed");
	return f->ev->cls == UAR_EV_TOOL_RESULT ? UAR_OK
						: keep(f->t, text(f, "message"), &s->detail);
}

static uar_err ask_event(struct fold *f)
{
	struct span *s;

	if (f->ev->cls == UAR_EV_ACTION_REQUIRED)
		return open_keyed(f, "ask", UAR_ID_ACTION,
				  text(f, "tool_name").n ? text(f, "tool_name")
							 : text(f, "action_type"),
				  text(f, "prompt"));
	s = find_open(f->t, "ask", f->ev->ids[UAR_ID_ACTION]);
	if (!s)
		return UAR_OK;
	close_span(f, s,
		   uar_str_is(text(f, "result"), "deny")      ? "denied"
		   : uar_str_is(text(f, "result"), "timeout") ? "failed"
		   : uar_str_is(text(f, "result"), "cancel")  ? "cut"
							      : "ended");
	return UAR_OK;
}

/* A wait for a person is the question's span. */
static uar_err wait_event(struct fold *f)
{
	struct span *s = find_open(f->t, "wait", UAR_STR(""));
	bool opens = f->ev->cls == UAR_EV_TASK_QUEUED ||
		     (f->ev->cls == UAR_EV_TASK_WAITING &&
		      uar_str_is(text(f, "status"), "waiting_resource"));

	if (s)
		close_span(f, s, "ended");
	if (!opens)
		return UAR_OK;
	return open_span(
		f, "wait", f->ev->cls == UAR_EV_TASK_QUEUED ? UAR_STR("Queued") : UAR_STR("Waits"),
		f->ev->cls == UAR_EV_TASK_QUEUED ? text(f, "reason") : raw(f, "waiting_on"), &s);
}

static uar_err child_event(struct fold *f)
{
	bool process =
		f->ev->cls == UAR_EV_PROCESS_STARTED || f->ev->cls == UAR_EV_PROCESS_COMPLETED ||
		f->ev->cls == UAR_EV_PROCESS_FAILED || f->ev->cls == UAR_EV_PROCESS_TERMINATED;
	const char *kind = process ? "process" : "sub";
	enum uar_id id = process ? UAR_ID_PROCESS : UAR_ID_SUBAGENT;
	struct span *s;

	if (f->ev->cls == UAR_EV_PROCESS_STARTED)
		return open_keyed(f, kind, id, text(f, "command_summary"), text(f, "cwd"));
	if (f->ev->cls == UAR_EV_SUBAGENT_SPAWNED)
		return open_keyed(f, kind, id,
				  text(f, "nickname").n ? text(f, "nickname") : text(f, "role"),
				  text(f, "role"));
	s = find_open(f->t, kind, f->ev->ids[id]);
	if (s)
		close_span(f, s,
			   f->ev->cls == UAR_EV_PROCESS_FAILED ||
					   f->ev->cls == UAR_EV_SUBAGENT_FAILED
				   ? "failed"
				   : "ended");
	return UAR_OK;
}

/* What is open when the run ends was cut off; of a lost run it may have happened. */
static uar_err over(struct fold *f)
{
	bool lost = uar_str_is(text(f, "status"), "lost");

	f->t->over = true;
	for (struct span *s = f->t->first; s; s = s->next)
		if (!s->last)
			close_span(f, s,
				   lost && strcmp(s->kind, "tool") == 0 ? "uncertain" : "cut");
	if (f->ev->cls == UAR_EV_TASK_ATTEMPT_COMPLETED)
		return UAR_OK;
	return mark(f, "error", error_code(f), text(f, "message"), "failed");
}

static uar_err note_event(struct fold *f)
{
	switch (f->ev->cls) {
	case UAR_EV_ARTIFACT_CHANGED:
		return mark(f, "artifact", text(f, "title").n ? text(f, "title") : text(f, "kind"),
			    text(f, "change"), "ended");
	case UAR_EV_RUNTIME_ERROR:
	case UAR_EV_RUNTIME_WARNING:
		return mark(f, "error", text(f, "code"), text(f, "message"), "failed");
	default: return over(f);
	}
}

typedef uar_err fold_fn(struct fold *f);

/* NULL: it is counted alone. */
static fold_fn *const folders[UAR_EV_COUNT] = {
	[UAR_EV_MODEL_REQUESTED] = model_event,
	[UAR_EV_MODEL_COMPLETED] = model_event,
	[UAR_EV_MODEL_FAILED] = model_event,
	[UAR_EV_COST_RECORDED] = model_event,
	[UAR_EV_TOOL_STARTED] = tool_event,
	[UAR_EV_TOOL_RESULT] = tool_event,
	[UAR_EV_TOOL_FAILED] = tool_event,
	[UAR_EV_ACTION_REQUIRED] = ask_event,
	[UAR_EV_ACTION_RESOLVED] = ask_event,
	[UAR_EV_TASK_QUEUED] = wait_event,
	[UAR_EV_TASK_ATTEMPT_STARTED] = wait_event,
	[UAR_EV_TASK_WAITING] = wait_event,
	[UAR_EV_TASK_RESUMED] = wait_event,
	[UAR_EV_SUBAGENT_SPAWNED] = child_event,
	[UAR_EV_SUBAGENT_COMPLETED] = child_event,
	[UAR_EV_SUBAGENT_FAILED] = child_event,
	[UAR_EV_SUBAGENT_CLOSED] = child_event,
	[UAR_EV_PROCESS_STARTED] = child_event,
	[UAR_EV_PROCESS_COMPLETED] = child_event,
	[UAR_EV_PROCESS_FAILED] = child_event,
	[UAR_EV_PROCESS_TERMINATED] = child_event,
	[UAR_EV_ARTIFACT_CHANGED] = note_event,
	[UAR_EV_RUNTIME_ERROR] = note_event,
	[UAR_EV_RUNTIME_WARNING] = note_event,
	[UAR_EV_TASK_ATTEMPT_COMPLETED] = note_event,
	[UAR_EV_TASK_ATTEMPT_FAILED] = note_event,
};

static uar_err encode(void *state, const struct uar_event *ev, struct uar_arena *scratch,
		      struct uar_frames *out)
{
	struct timeline *t = state;
	struct fold f = { t, ev, NULL };
	fold_fn *fold = folders[ev->cls];
	uar_err e = UAR_OK;

	(void)out;
	if (!t->run_id.n)
		e = keep(t, ev->ids[UAR_ID_RUN], &t->run_id);
	t->of[ev->cls]++;
	t->events++;
	if (!t->first_us)
		t->first_us = ev->time_us;
	if (fold && !e)
		e = uar_event_payload(ev, scratch, &f.p, NULL);
	if (fold && !e)
		e = fold(&f);
	t->last = ev->run_sequence;
	t->last_us = ev->time_us;
	return e;
}

/* --- writing -------------------------------------------------------------------------- */

static void put_span(struct uar_jw *w, const struct span *s)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "kind", s->kind);
	uar_jw_cstr(w, "state", s->state);
	uar_jw_str(w, "name", s->name);
	if (s->detail.n)
		uar_jw_str(w, "detail", s->detail);
	if (s->key.n)
		uar_jw_str(w, "key", s->key);
	uar_jw_u64(w, "first", s->first);
	uar_jw_seconds(w, "first_at", s->first_us);
	if (s->last) {
		uar_jw_u64(w, "last", s->last);
		uar_jw_seconds(w, "last_at", s->last_us);
	} else {
		uar_jw_null(w, "last");
		uar_jw_null(w, "last_at");
	}
	if (strcmp(s->kind, "model") == 0) {
		uar_jw_int(w, "input_tokens", s->input_tokens);
		uar_jw_int(w, "output_tokens", s->output_tokens);
		uar_jw_double(w, "cost", s->cost);
		if (s->ttft_ms >= 0)
			uar_jw_int(w, "ttft_ms", s->ttft_ms);
	}
	uar_jw_close(w);
}

static uar_err answer(void *state, struct uar_buf *out, int *out_status)
{
	const struct timeline *t = state;
	struct uar_jw w = uar_jw_begin(out);

	*out_status = 200;
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "run_id", t->run_id);
	uar_jw_u64(&w, "events", t->events);
	uar_jw_u64(&w, "last", t->last);
	uar_jw_seconds(&w, "first_at", t->first_us);
	uar_jw_seconds(&w, "last_at", t->last_us);
	uar_jw_bool(&w, "over", t->over);
	uar_jw_obj(&w, "types");
	for (size_t i = 0; i < UAR_EV_COUNT; i++)
		if (t->of[i])
			uar_jw_u64(&w, i == UAR_EV_VENDOR ? "vendor" : uar_event_info[i].type,
				   t->of[i]);
	uar_jw_close(&w);
	uar_jw_arr(&w, "spans");
	for (const struct span *s = t->first; s; s = s->next)
		put_span(&w, s);
	uar_jw_close(&w);
	uar_jw_u64(&w, "left_out", t->left_out);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static uar_err nothing(void *state, struct uar_frames *out)
{
	(void)state;
	(void)out;
	return UAR_OK;
}

const struct uar_dialect uar_timeline = {
	.name = "timeline",
	.state_size = sizeof(struct timeline),
	.begin = begin,
	.encode = encode,
	.join = nothing,
	.leave = nothing,
	.answer = answer,
	.end = end,
};
