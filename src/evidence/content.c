/* content.c - what a document says, computed from its timeline. */
#include "evidence/evidence_int.h"

#include "event/sizes.h"
#include "evidence/limits.h"

/* A view keeps parts of events as text: they are written in one way before. */
uar_err ev_view_fold(struct uar_sview *v, const struct uar_json *event, struct uar_arena *scratch)
{
	struct uar_buf text = uar_buf_make(2 * (size_t)UAR_LIMIT_EVENT_BYTES);
	const struct uar_json *j = NULL;
	struct uar_event ev;
	uar_err e;

	uar_json_write(&text, event);
	e = text.err ? text.err : uar_json_parse(uar_buf_str(&text), NULL, scratch, &j, NULL);
	if (!e)
		e = uar_event_read(j, NULL, scratch, &ev, NULL);
	if (!e && ev.sequence <= v->through)
		e = UAR_ECORRUPT;
	if (!e) {
		v->through = ev.sequence - 1; /* what is between the two is of another scope */
		e = uar_sview_fold(v, &ev);
	}
	uar_buf_fini(&text);
	return e;
}

uar_err ev_threads_write(const struct uar_sview *v, struct uar_buf *out)
{
	const struct uar_sview_show show = { .view = v };
	struct uar_jw w = uar_jw_begin(out);
	const struct uar_sview_list *l = &v->lists[UAR_SVIEW_THREAD];

	uar_jw_arr(&w, NULL);
	for (size_t i = 0; i < l->count; i++) {
		const struct uar_sview_thread *t =
			(const struct uar_sview_thread *)(const void *)(l->items + i * sizeof *t);

		uar_sview_write_thread(&w, NULL, &show, t->item.key);
	}
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static uar_str make_ref(struct uar_evidence *x, const char *scheme)
{
	const struct uar_evidence_scope *s = &x->scope;
	unsigned long long at = x->sums.to;

	if (s->turn_id.n)
		return uar_arena_printf(&x->arena, "%s://%.*s/%.*s/%.*s@%llu", scheme,
					UAR_FMT(s->session_id), UAR_FMT(x->thread_id),
					UAR_FMT(s->turn_id), at);
	if (s->thread_id.n)
		return uar_arena_printf(&x->arena, "%s://%.*s/%.*s@%llu", scheme,
					UAR_FMT(s->session_id), UAR_FMT(s->thread_id), at);
	if (s->task_id.n)
		return uar_arena_printf(&x->arena, "%s://%.*s/tasks/%.*s@%llu", scheme,
					UAR_FMT(s->session_id), UAR_FMT(s->task_id), at);
	return uar_arena_printf(&x->arena, "%s://%.*s@%llu", scheme, UAR_FMT(s->session_id), at);
}

static void put_list(struct uar_evidence *x, struct uar_jw *w, const char *key,
		     enum ev_section section)
{
	uar_jw_raw(w, key, ev_list_text(&x->lists[section]));
}

static void put_head(struct uar_evidence *x, struct uar_jw *w, const struct uar_evidence_facts *f)
{
	uar_jw_cstr(w, "kind", uar_evidence_kind_name(x->kind));
	uar_jw_raw(w, "scope", x->scope_text);
	uar_jw_cstr(w, "status", f->open ? "partial" : "ready");
	uar_jw_obj(w, "refs");
	uar_jw_str(w, "pack_ref", f->pack);
	uar_jw_str(w, "replay_ref", f->replay);
	uar_jw_str(w, "review_ref", f->review);
	uar_jw_close(w);
	uar_jw_obj(w, "facts");
	uar_jw_u64(w, "events", x->sums.events);
	uar_jw_u64(w, "from_sequence", x->sums.from);
	uar_jw_u64(w, "to_sequence", x->sums.to);
	uar_jw_cstr(w, "chain_head", x->chain.link);
	uar_jw_u64(w, "events_with_hidden_values", x->sums.hidden);
	uar_jw_close(w);
}

/* --- a pack ---------------------------------------------------------------------------------- */

static void put_summary(struct uar_evidence *x, struct uar_jw *w)
{
	const struct ev_sums *s = &x->sums;

	uar_jw_obj(w, "runtime_summary");
	uar_jw_str(w, "runtime_id", x->runtime_id);
	uar_jw_cstr(w, "event_schema_version", UAR_EVENT_SCHEMA_VERSION);
	uar_jw_time(w, "first_at", s->first_us);
	uar_jw_time(w, "last_at", s->last_us);
	uar_jw_obj(w, "tool_calls");
	uar_jw_u64(w, "succeeded", s->tools_ok);
	uar_jw_u64(w, "failed", s->tools_failed);
	uar_jw_u64(w, "denied", s->tools_denied);
	uar_jw_close(w);
	uar_jw_close(w);
}

static void put_correlation(struct uar_evidence *x, struct uar_jw *w)
{
	char key[64];

	uar_jw_obj(w, "runtime_correlation");
	for (size_t i = 0; i < UAR_ID_COUNT; i++)
		if (x->ids[i].text.n > 1) {
			snprintf(key, sizeof key, "%ss", uar_id_field((enum uar_id)i));
			uar_jw_raw(w, key, ev_list_text(&x->ids[i]));
		}
	uar_jw_close(w);
}

static uar_err put_threads(struct uar_evidence *x, struct uar_jw *w, const char *key)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EVIDENCE_BYTES);
	uar_err e = ev_threads_write(&x->view, &b);

	if (!e)
		uar_jw_raw(w, key, uar_buf_str(&b));
	uar_buf_fini(&b);
	return e;
}

static uar_err put_pack(struct uar_evidence *x, struct uar_jw *w)
{
	put_summary(x, w);
	put_list(x, w, "attempts", EV_ATTEMPTS);
	put_list(x, w, "tool_calls", EV_TOOLS);
	put_list(x, w, "failures", EV_FAILURES);
	put_list(x, w, "actions", EV_ACTIONS);
	put_list(x, w, "artifacts", EV_ARTIFACTS);
	put_list(x, w, "context", EV_CONTEXT);
	put_list(x, w, "governance", EV_GOVERNANCE);
	put_list(x, w, "outputs", EV_OUTPUTS);
	put_list(x, w, "notes", EV_NOTES);
	put_correlation(x, w);
	return put_threads(x, w, "thread_read_models");
}

/* --- a replay case --------------------------------------------------------------------------- */

static void put_determinism(struct uar_evidence *x, struct uar_jw *w)
{
	bool models = x->ids[UAR_ID_MODEL_REQUEST].text.n > 1;
	bool tools = x->sums.tools_ok + x->sums.tools_failed > 0;

	uar_jw_obj(w, "determinism");
	uar_jw_cstr(w, "read_models", "deterministic");
	uar_jw_cstr(w, "execution", models || tools ? "non_deterministic" : "deterministic");
	uar_jw_cstr(w, "reason",
		    models  ? "a model was asked: the same question may be answered otherwise"
		    : tools ? "a tool was called: what it touches may have changed"
			    : "nothing outside the runtime took part");
	uar_jw_close(w);
}

static uar_err put_expected(struct uar_evidence *x, struct uar_jw *w)
{
	struct uar_buf view = uar_buf_make(UAR_LIMIT_EVIDENCE_BYTES);
	char sha256[UAR_SHA256_TEXT + 1];
	uar_err e = uar_sview_write(&x->view, &view);

	uar_jw_obj(w, "expected");
	put_list(x, w, "assertions", EV_ENDS);
	if (!e) {
		uar_sha256_hex(uar_buf_str(&view), sha256);
		uar_jw_int(w, "view_version", UAR_SVIEW_VERSION);
		uar_jw_cstr(w, "view_sha256", sha256);
		e = put_threads(x, w, "thread_read_models");
	}
	uar_jw_close(w);
	uar_buf_fini(&view);
	return e;
}

static uar_err put_replay(struct uar_evidence *x, struct uar_jw *w)
{
	put_list(x, w, "inputs", EV_INPUTS);
	put_list(x, w, "context", EV_CONTEXT);
	put_list(x, w, "tool_inventory", EV_INVENTORY);
	put_determinism(x, w);
	uar_jw_arr(w, "review_instructions");
	uar_jw_cstr(w, NULL,
		    "Fold the events of the timeline in their order: the read models must "
		    "equal expected.thread_read_models. uar verify does this.");
	uar_jw_cstr(w, NULL,
		    "To execute it again, submit inputs with their options, and compare "
		    "how it ends with expected.assertions.");
	uar_jw_cstr(w, NULL,
		    "Texts of models differ between executions when determinism.execution "
		    "says so: compare statuses, not words.");
	uar_jw_close(w);
	return put_expected(x, w);
}

/* --- a review -------------------------------------------------------------------------------- */

static uar_err put_review(struct uar_evidence *x, struct uar_jw *w)
{
	put_list(x, w, "ends", EV_ENDS);
	put_list(x, w, "failures", EV_FAILURES);
	put_list(x, w, "decisions", EV_ACTIONS);
	put_list(x, w, "governance", EV_GOVERNANCE);
	put_list(x, w, "artifacts", EV_ARTIFACTS);
	put_list(x, w, "notes", EV_NOTES);
	uar_jw_arr(w, "review_instructions");
	uar_jw_cstr(w, NULL,
		    "Each fact names its sequence and event_id; the timeline has its link. "
		    "The pack of refs.pack_ref has the same links with the events.");
	uar_jw_cstr(w, NULL, "A verdict is the reviewer's: nothing here is one.");
	uar_jw_close(w);
	return UAR_OK;
}

uar_err ev_content_write(struct uar_evidence *x, struct uar_buf *out,
			 struct uar_evidence_facts *facts)
{
	struct uar_jw w = uar_jw_begin(out);
	uar_err e;

	facts->pack = make_ref(x, "evidence");
	facts->replay = make_ref(x, "replay");
	facts->review = make_ref(x, "review");
	if (!facts->pack.p || !facts->replay.p || !facts->review.p)
		return UAR_ENOMEM;
	uar_jw_obj(&w, NULL);
	put_head(x, &w, facts);
	e = x->kind == UAR_EVIDENCE_PACK     ? put_pack(x, &w)
	    : x->kind == UAR_EVIDENCE_REPLAY ? put_replay(x, &w)
					     : put_review(x, &w);
	put_list(x, &w, "verification_outcomes", EV_OUTCOMES);
	ev_signals_write(x, &w, "signals");
	put_list(x, &w, "known_gaps", EV_GAPS);
	uar_jw_close(&w);
	facts->outcomes = ev_list_text(&x->lists[EV_OUTCOMES]);
	facts->gaps = ev_list_text(&x->lists[EV_GAPS]);
	facts->notes = ev_list_text(&x->lists[EV_NOTES]);
	facts->trace_ids = ev_list_text(&x->ids[UAR_ID_TRACE]);
	return e ? e : uar_jw_end(&w);
}
