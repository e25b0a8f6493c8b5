/* sections.c - lists of facts, ids that join them, and which signals are there. */
#include "evidence/evidence_int.h"

#include "evidence/limits.h"

void ev_list_begin(struct ev_list *l)
{
	l->text = uar_buf_make(UAR_LIMIT_EVIDENCE_SECTION);
	l->w = uar_jw_begin(&l->text);
	uar_jw_arr(&l->w, NULL);
}

uar_str ev_list_text(struct ev_list *l)
{
	if (l->w.depth)
		uar_jw_close(&l->w);
	return uar_buf_str(&l->text);
}

/* --- facts ----------------------------------------------------------------------------------- */

static const struct {
	enum ev_section section;
	enum uar_event_class cls;
	const char *members;
} rows[] = {
#define S(SECTION, CLASS, MEMBERS) { EV_##SECTION, UAR_EV_##CLASS, MEMBERS },
#include "evidence/section.def"
};

static const struct {
	const char *family;
	enum ev_section section;
} families[] = {
#define F(FAMILY, SECTION) { FAMILY, EV_##SECTION },
#include "evidence/section.def"
};

static void put_ids(struct uar_jw *w, const struct uar_event *ev)
{
	static const enum uar_id ids[] = { UAR_ID_TURN,	     UAR_ID_TASK,     UAR_ID_RUN,
					   UAR_ID_TOOL_CALL, UAR_ID_ACTION,   UAR_ID_ARTIFACT,
					   UAR_ID_PROCESS,   UAR_ID_SUBAGENT, UAR_ID_MODEL_REQUEST,
					   UAR_ID_TRACE };

	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		if (ev->ids[ids[i]].n)
			uar_jw_str(w, uar_id_field(ids[i]), ev->ids[ids[i]]);
}

static struct uar_jw *begin_fact(struct uar_evidence *x, enum ev_section section,
				 const struct uar_event *ev)
{
	struct uar_jw *w = &x->lists[section].w;

	uar_jw_obj(w, NULL);
	uar_jw_u64(w, "sequence", ev->sequence);
	uar_jw_str(w, "event_id", ev->event_id);
	uar_jw_str(w, "type", uar_event_type(ev));
	put_ids(w, ev);
	return w;
}

static void end_fact(struct uar_jw *w, const struct uar_event *ev)
{
	if (ev->refs.n)
		uar_jw_raw(w, "refs", ev->refs);
	uar_jw_close(w);
}

/* How the call ended: what nobody allowed is no success, whatever was reported later. */
static const char *outcome_of(const struct uar_evidence *x, const struct uar_event *ev,
			      const struct uar_json *p)
{
	bool denied = uar_map_get(&x->denied, ev->ids[UAR_ID_TOOL_CALL]) != NULL;
	uar_str status = uar_json_text(p, "status");

	if (ev->cls == UAR_EV_TOOL_STARTED)
		return "started";
	if (denied || uar_str_is(status, "denied"))
		return "denied";
	return ev->cls == UAR_EV_TOOL_RESULT ? "succeeded" : "failed";
}

static bool is_tool_end(enum uar_event_class cls)
{
	return cls == UAR_EV_TOOL_RESULT || cls == UAR_EV_TOOL_FAILED;
}

static void put_members(struct uar_jw *w, const struct uar_json *p, const char *members)
{
	uar_str rest = uar_str_c(members);
	char name[64];

	while (rest.n) {
		uar_str word = uar_str_cut(rest, ' ', &rest);
		const struct uar_json *j = uar_json_get(p, word);

		snprintf(name, sizeof name, "%.*s", UAR_FMT(word));
		if (j)
			uar_jw_tree(w, name, j);
	}
}

static void add_rows(struct uar_evidence *x, const struct uar_event *ev, const struct uar_json *p)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct uar_jw *w;

		if (rows[i].cls != ev->cls)
			continue;
		w = begin_fact(x, rows[i].section, ev);
		if (ev->cls == UAR_EV_TOOL_STARTED || is_tool_end(ev->cls))
			uar_jw_cstr(w, "outcome", outcome_of(x, ev, p));
		put_members(w, p, rows[i].members);
		end_fact(w, ev);
	}
	for (size_t i = 0; i < ARRAY_LEN(families); i++)
		if (uar_str_starts(uar_event_type(ev), uar_str_c(families[i].family))) {
			struct uar_jw *w = begin_fact(x, families[i].section, ev);

			uar_jw_tree(w, "payload", p);
			end_fact(w, ev);
		}
}

/* --- outcomes -------------------------------------------------------------------------------- */

static void add_outcome(struct uar_evidence *x, uar_str name, uar_str status, uint64_t sequence)
{
	struct uar_jw *w = &x->lists[EV_OUTCOMES].w;

	uar_jw_obj(w, NULL);
	uar_jw_str(w, "name", name);
	uar_jw_str(w, "status", status);
	uar_jw_u64(w, "sequence", sequence);
	uar_jw_close(w);
}

static void add_outcomes(struct uar_evidence *x, const struct uar_event *ev,
			 const struct uar_json *p)
{
	const struct uar_json *a = uar_json_first(uar_json_get(p, UAR_STR("acceptance")));

	if (ev->cls == UAR_EV_TASK_COMPLETED)
		for (; a; a = a->next) {
			uar_str id = uar_json_text(a, "id");

			add_outcome(x,
				    uar_arena_printf(&x->scratch, "acceptance:%.*s", UAR_FMT(id)),
				    uar_json_str(uar_json_get(a, UAR_STR("status")),
						 UAR_STR("unknown")),
				    ev->sequence);
		}
	if (ev->cls == UAR_EV_ARTIFACT_CHANGED) {
		int64_t issues = uar_json_int(uar_json_get(p, UAR_STR("issue_count")), 0);

		add_outcome(x,
			    uar_arena_printf(&x->scratch, "artifact:%.*s",
					     UAR_FMT(ev->ids[UAR_ID_ARTIFACT])),
			    issues ? UAR_STR("issues") : UAR_STR("no_issues"), ev->sequence);
	}
}

static void count_tool(struct uar_evidence *x, const struct uar_event *ev, const struct uar_json *p)
{
	const char *outcome = outcome_of(x, ev, p);

	if (!strcmp(outcome, "succeeded"))
		x->sums.tools_ok++;
	else if (!strcmp(outcome, "denied"))
		x->sums.tools_denied++;
	else
		x->sums.tools_failed++;
}

/* --- ids ------------------------------------------------------------------------------------- */

static bool is_correlated(enum uar_id id)
{
	return id != UAR_ID_RUNTIME && id != UAR_ID_TENANT && id != UAR_ID_WORKSPACE &&
	       id != UAR_ID_USER && id != UAR_ID_STEP && id != UAR_ID_ATTEMPT &&
	       id != UAR_ID_SPAN && id != UAR_ID_CAUSATION && id != UAR_ID_EVIDENCE;
}

static uar_err add_id(struct uar_evidence *x, enum uar_id id, uar_str text)
{
	uar_str key = uar_arena_printf(&x->scratch, "%d:%.*s", (int)id, UAR_FMT(text));
	uar_err e;

	if (!key.p)
		return UAR_ENOMEM;
	if (uar_map_get(&x->known, key))
		return UAR_OK;
	if (x->id_count++ == UAR_LIMIT_EVIDENCE_IDS)
		return UAR_ETOOBIG;
	key = uar_arena_str(&x->arena, key);
	e = key.p ? uar_map_put(&x->known, key, x) : UAR_ENOMEM;
	uar_jw_str(&x->ids[id].w, NULL, text);
	return e ? e : x->ids[id].text.err;
}

static uar_err add_ids(struct uar_evidence *x, const struct uar_event *ev)
{
	uar_err e = UAR_OK;

	for (size_t i = 0; i < UAR_ID_COUNT && !e; i++)
		if (ev->ids[i].n && is_correlated((enum uar_id)i))
			e = add_id(x, (enum uar_id)i, ev->ids[i]);
	return e;
}

static uar_err note_denied(struct uar_evidence *x, const struct uar_event *ev,
			   const struct uar_json *p)
{
	uar_str result = uar_json_text(p, "result");
	uar_str call = ev->ids[UAR_ID_TOOL_CALL];

	if (ev->cls != UAR_EV_ACTION_RESOLVED || !call.n || uar_str_is(result, "allow") ||
	    uar_str_is(result, "edit") || uar_str_is(result, "answer") ||
	    uar_map_get(&x->denied, call))
		return UAR_OK;
	call = uar_arena_str(&x->arena, call);
	return call.p ? uar_map_put(&x->denied, call, x) : UAR_ENOMEM;
}

/* --- signals --------------------------------------------------------------------------------- */

enum source { HERE, NONE };

static const struct {
	const char *name, *family;
	enum uar_event_class begins, ends, ends_too;
	enum source source;
} signals[] = {
#define G(NAME, FAMILY, BEGINS, ENDS, ENDS_TOO, SOURCE)                                            \
	{ NAME, FAMILY, UAR_EV_##BEGINS, UAR_EV_##ENDS, UAR_EV_##ENDS_TOO, SOURCE },
#include "evidence/signal.def"
};
_Static_assert(ARRAY_LEN(signals) <= EV_SIGNALS_MAX, "EV_SIGNALS_MAX");

static void count_signals(struct uar_evidence *x, const struct uar_event *ev)
{
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		x->signals[i].seen +=
			uar_str_starts(uar_event_type(ev), uar_str_c(signals[i].family));
		x->signals[i].begun += ev->cls == signals[i].begins;
		x->signals[i].ended += ev->cls == signals[i].ends || ev->cls == signals[i].ends_too;
	}
}

bool ev_signals_open(const struct uar_evidence *x)
{
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		if (x->signals[i].begun > x->signals[i].ended)
			return true;
	return false;
}

static void add_gap(struct uar_evidence *x, const char *signal, uar_str reason)
{
	struct uar_jw *w = &x->lists[EV_GAPS].w;

	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "signal", signal);
	uar_jw_str(w, "reason", reason);
	uar_jw_close(w);
}

static void write_signal(struct uar_evidence *x, struct uar_jw *w, size_t i)
{
	const struct ev_counts *n = &x->signals[i];
	const char *state = signals[i].source == NONE ? "unsupported" : "not_applicable";

	if (n->begun > n->ended) {
		state = "missing_correlation";
		add_gap(x, signals[i].name,
			uar_arena_printf(&x->scratch, "%llu of %llu that began have no end",
					 (unsigned long long)(n->begun - n->ended),
					 (unsigned long long)n->begun));
	} else if (n->seen) {
		state = "exported";
	}
	uar_jw_cstr(w, signals[i].name, state);
}

void ev_signals_write(struct uar_evidence *x, struct uar_jw *w, const char *key)
{
	bool traced = x->ids[UAR_ID_TRACE].text.n > 1;

	uar_jw_obj(w, key);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		write_signal(x, w, i);
	uar_jw_cstr(w, "traces", traced ? "exported" : "not_applicable");
	if (x->sums.unpriced) {
		uar_jw_cstr(w, "model_usage", "missing_correlation");
		add_gap(x, "model_usage",
			uar_arena_printf(&x->scratch, "%llu model requests ended without usage",
					 (unsigned long long)x->sums.unpriced));
	} else {
		uar_jw_cstr(w, "model_usage",
			    x->ids[UAR_ID_MODEL_REQUEST].text.n > 1 ? "exported"
								    : "not_applicable");
	}
	uar_jw_close(w);
}

/* --- all of it ------------------------------------------------------------------------------- */

uar_err ev_sections_add(struct uar_evidence *x, const struct uar_event *ev,
			const struct uar_json *p)
{
	uar_err e = note_denied(x, ev, p);

	if (!e)
		e = add_ids(x, ev);
	if (e)
		return e;
	count_signals(x, ev);
	if (is_tool_end(ev->cls))
		count_tool(x, ev, p);
	if (ev->cls == UAR_EV_MODEL_COMPLETED && !uar_json_first(uar_json_get(p, UAR_STR("usage"))))
		x->sums.unpriced++;
	add_rows(x, ev, p);
	add_outcomes(x, ev, p);
	for (size_t i = 0; i < EV_SECTIONS && !e; i++)
		e = x->lists[i].text.err ? x->lists[i].text.err : x->lists[i].w.err;
	return e;
}
