/* push.c - notifications of a task: facts of a session that has no run. */
#include "core/push.h"

#include "core/emit.h"

static void opened(struct emit *e)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "source", "a2a");
	uar_jw_time(w, "created_at", e->env->now_us);
	uar_jw_obj(w, "metadata");
	uar_jw_close(w);
	uar_emit(e, UAR_EV_SESSION_CREATED, EMIT_SESSION);
}

uar_err uar_core_push(const struct uar_core_env *env, struct uar_session *s,
		      const struct uar_push_fact *f, struct uar_decision *out,
		      struct uar_error *error)
{
	struct uar_run none; /* the engine folds runs, too; this one stays as it is */
	struct emit e = { .env = env, .s = s, .r = &none, .d = out, .error = error };
	struct uar_jw *w;

	uar_run_init(&none);
	if (s->sequence == 0)
		opened(&e);
	w = uar_emit_begin(&e);
	uar_jw_cstr(w, "change", f->change);
	uar_jw_str(w, "run", f->run_id);
	uar_jw_str(w, "config_id", f->config_id);
	if (f->sequence) {
		uar_jw_u64(w, "run_sequence", f->sequence);
		uar_jw_int(w, "frame", f->frame);
	}
	if (f->reason.n)
		uar_jw_str(w, "reason", f->reason);
	uar_emit_vendor(&e, "vendor.uar.push.changed", EMIT_SESSION);
	uar_run_fini(&none);
	return e.err;
}
