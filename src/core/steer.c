/* steer.c - input that comes after its turn was submitted: a turn that waits gets another message,
 * one that is at work takes further messages before its next model call. */
#include "core/emit.h"

uar_str uar_run_message_blob(const struct uar_run *r)
{
	const char *later = uar_run_rare(r)->later.blob;

	return later[0] ? uar_str_c(later) : r->what.message_blob;
}

uar_str uar_run_message_preview(const struct uar_run *r)
{
	const struct uar_run_later *later = &uar_run_rare(r)->later;

	return later->blob[0] ? uar_str_c(later->preview) : r->what.message;
}

bool uar_run_takes_input(const struct uar_run *r)
{
	return r->what.entry == UAR_ENTRY_LLM && !uar_run_is_ensemble(r) &&
	       uar_run_move(r->status, UAR_IN_STEER).legal;
}

/* A message has joined the turn that the prepared call does not know. */
bool uar_core_must_steer(const struct uar_run *r, const struct uar_prepared *p)
{
	bool answers = p->role == UAR_ROLE_EXECUTE || p->role == UAR_ROLE_CANDIDATE;

	return answers && p->steered < uar_run_rare(r)->later.given;
}

bool uar_core_untold(const struct uar_run *r)
{
	const struct uar_run_later *later = &uar_run_rare(r)->later;

	return later->given > later->told;
}

void uar_core_turn_input(struct emit *e, const char *op, const struct uar_message_text *in)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "op", op);
	uar_jw_arr(w, "input_parts");
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "type", "text");
	uar_jw_str(w, "preview", in->text);
	uar_jw_int(w, "bytes", in->bytes);
	uar_jw_close(w);
	uar_jw_close(w);
	if (in->blob.n)
		uar_emit_refer(e, "input_ref", in->blob);
	uar_emit_vendor(e, UAR_EV_TYPE_TURN_INPUT, EMIT_RUN);
}

uar_err uar_core_fold_turn_input(struct uar_run *r, const struct uar_event *ev,
				 const struct uar_json *p, struct uar_arena *scratch)
{
	const struct uar_json *part = uar_json_at(uar_json_get(p, UAR_STR("input_parts")), 0);
	struct uar_run_rare *rare = uar_core_change_rare(r);
	uar_str blob = UAR_STR_NONE;
	uar_err e = rare ? uar_event_blob(ev, "input_ref", scratch, &blob) : UAR_ENOMEM;

	if (e)
		return e;
	if (uar_str_is(uar_json_text(p, "op"), "added")) {
		rare->later.given++;
		return UAR_OK;
	}
	uar_core_keep(rare->later.blob, sizeof rare->later.blob, blob);
	uar_core_keep(rare->later.preview, sizeof rare->later.preview,
		      uar_json_text(part, "preview"));
	rare->later.bytes = uar_json_int(uar_json_get(part, UAR_STR("bytes")), 0);
	r->row_changed = true;
	return UAR_OK;
}
