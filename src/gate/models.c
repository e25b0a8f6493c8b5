/* models.c - the providers of models: what is configured, how their calls went, whether one
 * answers. */
#include "gate/gate_int.h"
#include "gate/health.h"
#include "gate/limits.h"
#include "work/providers.h"

struct listing {
	const struct health *health;
	const struct uar_workers *work;
};

static void put_used(void *ctx, struct uar_jw *w, uar_str provider)
{
	const struct listing *l = ctx;
	const struct health_row *row;

	uar_jw_arr(w, "models");
	for (size_t i = 0; (row = gate_health_at(l->health, i)); i++) {
		if (!uar_str_is(provider, row->provider))
			continue;
		uar_jw_obj(w, NULL);
		uar_jw_cstr(w, "model", row->model);
		uar_workers_write_model(l->work, w, provider, uar_str_c(row->model));
		gate_health_write(row, w);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

void gate_list_models(struct call *c)
{
	struct listing l = { gate_numbers_health(c->g->numbers), c->g->o.work };
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SYSTEM_ANSWER_BYTES);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_workers_write_providers(l.work, &w, put_used, &l);
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}

/* --- whether one answers -------------------------------------------------------------------- */

struct checking {
	struct uar_provider_check op;
	struct call *c;
	int64_t begun_us;
};

static void checked(struct uar_provider_check *op)
{
	struct checking *k = op->ctx;
	struct call *c = k->c;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SYSTEM_ANSWER_BYTES);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "provider", op->provider);
	uar_jw_cstr(&w, "status", op->good ? "ok" : "failed");
	uar_jw_int(&w, "took_ms", (uar_clock_mono(c->g->o.sched->clock) - k->begun_us) / 1000);
	if (!op->good) {
		uar_jw_int(&w, "http_status", op->http_status);
		uar_jw_cstr(&w, "message",
			    op->reason	      ? op->reason
			    : op->http_status ? "it answers with an error"
					      : "it does not answer");
	}
	uar_jw_arr(&w, "models");
	for (size_t i = 0; op->good && i < op->count; i++)
		uar_jw_str(&w, NULL, op->names[i]);
	uar_jw_close(&w);
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}

void gate_check_models(struct call *c)
{
	static const struct uar_json_field fields[] = {
		{ "provider", UAR_FIELD_STR, true, offsetof(struct uar_provider_check, provider) },
	};
	struct checking *k = uar_arena_alloc(&c->arena, sizeof *k);
	struct uar_error error = { 0 };
	uar_err e = UAR_ENOMEM;

	if (k) {
		*k = (struct checking){ .c = c, .begun_us = uar_clock_mono(c->g->o.sched->clock) };
		k->op.done = checked;
		k->op.ctx = k;
		c->op = k; /* it is in the memory of the call, which the peer must not end */
		e = uar_json_read(c->body, fields, ARRAY_LEN(fields), true, &k->op, &error);
	}
	if (!e)
		e = uar_workers_check_provider(c->g->o.work, &k->op, &error);
	if (e)
		gate_problem(c, e, &error);
}
