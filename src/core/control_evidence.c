/* control_evidence.c - the fact that a document was exported from the log (evidence.changed). */
#include "core/control_int.h"
#include "core/limits.h"

/* The first items of a list, as many as an event has room for, and how many there are. */
static void put_first(struct ctl *c, struct uar_jw *w, const char *key, uar_str list)
{
	const struct uar_json *j = NULL;
	size_t room = UAR_LIMIT_EVIDENCE_ITEMS;
	uar_err e = uar_json_parse(list, NULL, c->e.env->arena, &j, NULL);

	if (e)
		ctl_fail(c, e);
	uar_jw_arr(w, key);
	for (const struct uar_json *i = uar_json_first(j); i && room >= i->text.n + 8;
	     i = i->next) {
		uar_jw_tree(w, NULL, i);
		room -= i->text.n + 8;
	}
	uar_jw_close(w);
}

static void tell(struct ctl *c, const struct uar_ctl_record_evidence *in)
{
	struct uar_jw *w = uar_emit_begin(&c->e);

	uar_jw_str(w, "kind", in->evidence_kind);
	uar_jw_str(w, "status", in->status);
	uar_jw_raw(w, "scope", in->scope);
	put_first(c, w, "verification_outcomes", in->verification_outcomes);
	put_first(c, w, "known_gaps", in->known_gaps);
	put_first(c, w, "trace_ids", in->trace_ids);
	put_first(c, w, "notes", in->notes);
	uar_jw_str(w, "sha256", in->sha256);
	uar_jw_str(w, "chain_head", in->chain_head);
	uar_jw_int(w, "events", in->events);
	uar_jw_int(w, "bytes", in->bytes);
	uar_emit_refs(&c->e, in->refs);
	uar_emit_name(&c->e, UAR_ID_EVIDENCE, in->evidence_id);
	if (in->thread_id.n)
		uar_emit_name(&c->e, UAR_ID_THREAD, in->thread_id);
	if (in->turn_id.n)
		uar_emit_name(&c->e, UAR_ID_TURN, in->turn_id);
	if (in->task_id.n)
		uar_emit_name(&c->e, UAR_ID_TASK, in->task_id);
	uar_emit(&c->e, UAR_EV_EVIDENCE_CHANGED, EMIT_SESSION);
}

static void answer(struct ctl *c, const struct uar_ctl_record_evidence *in, bool existed)
{
	struct uar_jw *w = ctl_result(c);

	uar_jw_str(w, "evidence_id", in->evidence_id);
	uar_jw_str(w, "kind", in->evidence_kind);
	uar_jw_str(w, "status", in->status);
	uar_jw_raw(w, "scope", in->scope);
	uar_jw_str(w, "sha256", in->sha256);
	uar_jw_str(w, "chain_head", in->chain_head);
	uar_jw_int(w, "events", in->events);
	uar_jw_int(w, "bytes", in->bytes);
	uar_jw_raw(w, "refs", in->refs);
	put_first(c, w, "known_gaps", in->known_gaps);
	uar_jw_bool(w, "existed", existed);
	ctl_result_end(c);
}

/* The same document once more is no change. */
void ctl_record_evidence(struct ctl *c)
{
	const struct uar_ctl_record_evidence *in = &c->in->record_evidence;
	struct uar_row_evidence *row = ctl_row(c, UAR_ROW_EVIDENCE, in->evidence_id);
	bool existed = row && uar_str_eq(row->blob, in->blob);

	if (c->waits)
		return;
	if (!existed) {
		row = row ? ctl_change(c, row) : ctl_new_row(c, UAR_ROW_EVIDENCE, in->evidence_id);
		if (!row)
			return;
		row->row.status = UAR_STR("current");
		row->row.parent = in->session_id;
		row->row.tag = in->evidence_kind;
		row->sha256 = in->sha256;
		row->blob = in->blob;
		row->bytes = in->bytes;
		tell(c, in);
	}
	answer(c, in, existed);
}
