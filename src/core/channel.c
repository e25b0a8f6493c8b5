/* channel.c - messages over a channel: facts of a session that has no run.
 *
 * An inbox is such a session. Its state is its last sequence and nothing else, so
 * there is no table to ask: whatever was checked outside is a fact here. */
#include "core/emit.h"

static const char *const result_names[] = {
	[UAR_MESSAGE_EFFECT_NONE] = "",
	[UAR_MESSAGE_EFFECT_REQUESTED] = "requested",
	[UAR_MESSAGE_EFFECT_OVER] = "over",
	[UAR_MESSAGE_EFFECT_UNKNOWN] = "unknown",
};

const char *uar_message_effect_name(enum uar_message_effect e)
{
	return result_names[e];
}

enum uar_message_effect uar_message_effect_parse(uar_str name)
{
	size_t i = ARRAY_LEN(result_names);

	while (--i && !uar_str_is(name, result_names[i]))
		;
	return (enum uar_message_effect)i;
}

static void opened(struct emit *e, const struct uar_message *m)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_cstr(w, "source", m->source ? m->source : "a2a");
	if (m->agent_id.n)
		uar_jw_str(w, "agent_id", m->agent_id);
	uar_jw_time(w, "created_at", e->env->now_us);
	uar_jw_obj(w, "metadata");
	uar_jw_close(w);
	uar_emit(e, UAR_EV_SESSION_CREATED, EMIT_SESSION);
}

static void put_effect(struct uar_jw *w, const struct uar_message *m)
{
	if (m->effect == UAR_MESSAGE_EFFECT_NONE)
		return;
	uar_jw_obj(w, "effect");
	uar_jw_cstr(w, "kind", "cancel");
	uar_jw_str(w, "run_id", m->run_id);
	uar_jw_cstr(w, "result", uar_message_effect_name(m->effect));
	uar_jw_close(w);
}

static void passed(struct emit *e, const struct uar_message *m)
{
	struct uar_jw *w = uar_emit_begin(e);

	uar_jw_str(w, "message_id", m->message_id);
	uar_jw_cstr(w, "direction", m->out ? "out" : "in");
	uar_jw_cstr(w, "kind", m->kind);
	uar_jw_str(w, "preview", m->preview);
	uar_jw_int(w, "bytes", m->bytes);
	if (m->native_ids.n)
		uar_jw_raw(w, "native_ids", m->native_ids);
	put_effect(w, m);
	if (m->content.n)
		uar_jw_raw(w, "content", m->content);
	if (m->blob.n)
		uar_emit_refer(e, "content_ref", m->blob);
	uar_emit_name(e, UAR_ID_CHANNEL, m->channel_id);
	uar_emit(e, UAR_EV_CHANNEL_MESSAGE, EMIT_SESSION);
}

uar_err uar_core_message(const struct uar_core_env *env, struct uar_session *s,
			 const struct uar_message *m, struct uar_decision *out,
			 struct uar_error *error)
{
	struct uar_run none; /* the engine folds runs, too; this one stays as it is */
	struct emit e = { .env = env, .s = s, .r = &none, .d = out, .error = error };

	uar_run_init(&none);
	if (s->sequence == 0)
		opened(&e, m);
	passed(&e, m);
	uar_run_fini(&none);
	return e.err;
}
