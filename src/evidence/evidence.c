/* evidence.c - one event after the other becomes a document. */
#include "evidence/evidence_int.h"

#include "base/alloc.h"
#include "core/redact.h"
#include "event/sizes.h"
#include "evidence/limits.h"

const char *uar_evidence_kind_name(enum uar_evidence_kind kind)
{
	static const char *const names[] = {
		[UAR_EVIDENCE_PACK] = "evidence",
		[UAR_EVIDENCE_REPLAY] = "replay",
		[UAR_EVIDENCE_REVIEW] = "review",
	};

	return names[kind];
}

static const char *scope_level(const struct uar_evidence_scope *s)
{
	return s->turn_id.n	? "turn"
	       : s->thread_id.n ? "thread"
	       : s->task_id.n	? "task"
				: "session";
}

void uar_evidence_write_scope(struct uar_jw *w, const char *key,
			      const struct uar_evidence_scope *scope)
{
	uar_jw_obj(w, key);
	uar_jw_cstr(w, "level", scope_level(scope));
	uar_jw_str(w, "session_id", scope->session_id);
	if (scope->task_id.n)
		uar_jw_str(w, "task_id", scope->task_id);
	if (scope->thread_id.n)
		uar_jw_str(w, "thread_id", scope->thread_id);
	if (scope->turn_id.n)
		uar_jw_str(w, "turn_id", scope->turn_id);
	uar_jw_close(w);
}

/* --- life ------------------------------------------------------------------------------------ */

static uar_err keep_scope(struct uar_evidence *x, const struct uar_evidence_scope *scope)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e;

	x->scope = (struct uar_evidence_scope){
		.session_id = uar_arena_str(&x->arena, scope->session_id),
		.thread_id = uar_arena_str(&x->arena, scope->thread_id),
		.turn_id = uar_arena_str(&x->arena, scope->turn_id),
		.task_id = uar_arena_str(&x->arena, scope->task_id),
	};
	uar_evidence_write_scope(&w, NULL, scope); /* its members are in canonical order */
	e = uar_jw_end(&w);
	x->scope_text = uar_arena_str(&x->arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	if (e)
		return e;
	return x->scope.session_id.p && x->scope.thread_id.p && x->scope.turn_id.p &&
			       x->scope.task_id.p && x->scope_text.p
		       ? UAR_OK
		       : UAR_ENOMEM;
}

uar_err uar_evidence_create(enum uar_evidence_kind kind, const struct uar_evidence_scope *scope,
			    struct uar_evidence **out)
{
	struct uar_evidence *x = uar_zalloc(sizeof *x);
	uar_err e;

	if (!x)
		return UAR_ENOMEM;
	x->kind = kind;
	uar_arena_init(&x->arena, 0);
	uar_arena_init(&x->scratch, 0);
	uar_sview_init(&x->view);
	uar_map_init(&x->known, 0);
	uar_map_init(&x->denied, 0);
	for (size_t i = 0; i < EV_SECTIONS; i++)
		ev_list_begin(&x->lists[i]);
	for (size_t i = 0; i < UAR_ID_COUNT; i++)
		ev_list_begin(&x->ids[i]);
	e = keep_scope(x, scope);
	if (!e)
		e = ev_chain_begin(&x->chain, x->scope_text);
	if (e)
		uar_evidence_destroy(x);
	else
		*out = x;
	return e;
}

void uar_evidence_destroy(struct uar_evidence *x)
{
	if (!x)
		return;
	for (size_t i = 0; i < EV_SECTIONS; i++)
		uar_buf_fini(&x->lists[i].text);
	for (size_t i = 0; i < UAR_ID_COUNT; i++)
		uar_buf_fini(&x->ids[i].text);
	uar_buf_fini(&x->chain.text);
	uar_map_fini(&x->known);
	uar_map_fini(&x->denied);
	uar_sview_fini(&x->view);
	uar_arena_fini(&x->arena);
	uar_arena_fini(&x->scratch);
	uar_free(x);
}

/* --- events ---------------------------------------------------------------------------------- */

static bool is_bookkeeping(enum uar_event_class cls)
{
	return cls == UAR_EV_EVIDENCE_CHANGED || cls == UAR_EV_SNAPSHOT_UPDATED ||
	       cls == UAR_EV_SNAPSHOT_REPAIRED || cls == UAR_EV_HISTORY_WINDOW_LOADED;
}

static bool is_of(uar_str wanted, uar_str id)
{
	return !wanted.n || uar_str_eq(wanted, id);
}

static bool is_in_scope(const struct uar_evidence *x, const struct uar_event *ev)
{
	return !is_bookkeeping(ev->cls) && is_of(x->scope.thread_id, ev->ids[UAR_ID_THREAD]) &&
	       is_of(x->scope.turn_id, ev->ids[UAR_ID_TURN]) &&
	       is_of(x->scope.task_id, ev->ids[UAR_ID_TASK]);
}

/* The event without its secrets, its payload read. */
static uar_err hide_secrets(struct uar_evidence *x, struct uar_event *ev,
			    const struct uar_json **payload)
{
	struct uar_buf b = uar_buf_make(2 * (size_t)UAR_LIMIT_EVENT_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e = uar_event_payload(ev, &x->scratch, payload, NULL);

	if (!e && uar_redacts(*payload, NULL)) {
		x->sums.hidden++;
		(void)uar_redact(&w, NULL, *payload, NULL);
		e = uar_jw_end(&w);
		ev->payload = uar_arena_str(&x->scratch, uar_buf_str(&b));
		ev->tree = NULL;
		if (!e)
			e = ev->payload.p
				    ? uar_json_parse(ev->payload, NULL, &x->scratch, payload, NULL)
				    : UAR_ENOMEM;
	}
	uar_buf_fini(&b);
	return e;
}

static void note_place(struct uar_evidence *x, const struct uar_event *ev)
{
	struct ev_sums *s = &x->sums;

	if (!s->events) {
		s->from = ev->sequence;
		s->first_us = ev->time_us;
		x->runtime_id = uar_arena_str(&x->arena, ev->ids[UAR_ID_RUNTIME]);
	}
	if (!x->thread_id.n && ev->ids[UAR_ID_THREAD].n)
		x->thread_id = uar_arena_str(&x->arena, ev->ids[UAR_ID_THREAD]);
	s->to = ev->sequence;
	s->last_us = ev->time_us;
	s->events++;
}

/* A line of the timeline. A review refers to the event, the others have it. */
static uar_err write_line(struct uar_evidence *x, const struct uar_event *ev, uar_str text,
			  struct uar_buf *out)
{
	struct uar_jw w;

	if (x->sums.events == 1)
		uar_buf_add_str(
			out, UAR_STR("{\"format\":\"" UAR_EVIDENCE_FORMAT "\",\"timeline\":[\n"));
	else
		uar_buf_add_str(out, UAR_STR(",\n"));
	w = uar_jw_begin(out);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "link", x->chain.link);
	if (x->kind == UAR_EVIDENCE_REVIEW) {
		uar_jw_u64(&w, "sequence", ev->sequence);
		uar_jw_str(&w, "event_id", ev->event_id);
		uar_jw_str(&w, "type", uar_event_type(ev));
	} else {
		uar_jw_raw(&w, "event", text);
	}
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static uar_err fold_event(struct uar_evidence *x, struct uar_event *ev, struct uar_buf *out)
{
	struct uar_buf text = uar_buf_make(2 * (size_t)UAR_LIMIT_EVENT_BYTES);
	struct uar_jw w = uar_jw_begin(&text);
	const struct uar_json *payload = NULL, *tree = NULL;
	size_t before = out->n;
	uar_err e = hide_secrets(x, ev, &payload);

	if (!e) {
		uar_event_write(&w, NULL, ev, 0);
		e = uar_jw_end(&w);
	}
	if (!e)
		e = uar_json_parse(uar_buf_str(&text), NULL, &x->scratch, &tree, NULL);
	if (!e)
		e = ev_chain_add(&x->chain, tree);
	if (!e)
		e = ev_view_fold(&x->view, tree, &x->scratch);
	note_place(x, ev);
	if (!e)
		e = ev_sections_add(x, ev, payload);
	if (!e)
		e = write_line(x, ev, uar_buf_str(&text), out);
	x->bytes += out->n - before;
	uar_buf_fini(&text);
	return e;
}

uar_err uar_evidence_add(struct uar_evidence *x, const struct uar_event *ev, struct uar_buf *out)
{
	struct uar_event own = *ev;
	uar_err e;

	if (!is_in_scope(x, ev))
		return UAR_OK;
	if (x->sums.events == UAR_LIMIT_EVIDENCE_EVENTS)
		return UAR_ETOOBIG;
	own.tree = NULL;
	e = fold_event(x, &own, out);
	uar_arena_reset(&x->scratch);
	return e ? e : x->bytes > UAR_LIMIT_EVIDENCE_BYTES ? UAR_ETOOBIG : UAR_OK;
}

/* --- the end --------------------------------------------------------------------------------- */

static uar_err digest(struct uar_evidence *x, uar_str content, struct uar_evidence_facts *facts)
{
	struct uar_arena arena;
	const struct uar_json *tree = NULL;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(content, NULL, &arena, &tree, NULL);
	if (!e)
		e = ev_content_digest(x->chain.link, tree, facts->sha256);
	uar_arena_fini(&arena);
	if (!e)
		ev_evidence_id(x->kind, x->scope_text, facts->sha256, facts->evidence_id);
	return e;
}

uar_err uar_evidence_end(struct uar_evidence *x, struct uar_buf *out,
			 struct uar_evidence_facts *facts)
{
	struct uar_buf content = uar_buf_make(UAR_LIMIT_EVIDENCE_BYTES);
	uar_err e;

	if (!x->sums.events)
		return UAR_ENOTFOUND;
	*facts = (struct uar_evidence_facts){ .events = x->sums.events,
					      .open = ev_signals_open(x),
					      .scope = x->scope_text };
	if (x->scope.thread_id.n || x->scope.turn_id.n || x->scope.task_id.n)
		facts->thread_id = x->thread_id;
	memcpy(facts->head, x->chain.link, sizeof facts->head);
	e = ev_content_write(x, &content, facts);
	if (!e)
		e = digest(x, uar_buf_str(&content), facts);
	if (!e && x->bytes + content.n > UAR_LIMIT_EVIDENCE_BYTES - 1024)
		e = UAR_ETOOBIG;
	if (!e) {
		uar_buf_add_str(out, UAR_STR("\n],\n\"content\":"));
		uar_buf_add_str(out, uar_buf_str(&content));
		uar_buf_printf(
			out, ",\n\"chain_head\":\"%s\",\"sha256\":\"%s\",\"evidence_id\":\"%s\"}\n",
			facts->head, facts->sha256, facts->evidence_id);
		e = out->err;
	}
	uar_buf_fini(&content);
	return e;
}
