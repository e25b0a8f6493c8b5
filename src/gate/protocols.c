/* protocols.c - which dialects an agent's definition allows. */
#include "agent/registry.h"
#include "gate/gate_int.h"

uar_err gate_check_protocol(const struct call *c, uar_str agent_id, enum uar_protocol protocol,
			    struct uar_error *error)
{
	static const char *const names[UAR_PROTOCOL_COUNT] = { [UAR_PROTOCOL_AG_UI] = "ag_ui",
							       [UAR_PROTOCOL_A2UI] = "a2ui",
							       [UAR_PROTOCOL_A2A] = "a2a" };
	const struct uar_agent *a = uar_workers_agent(c->g->o.work, &c->owner, agent_id);

	if (!a || !a->definition || uar_definition_allows(&a->definition->def, protocol))
		return UAR_OK;
	return uar_error_set(error, UAR_EFORBIDDEN,
			     "the definition of \"%.*s\" has runtime.protocols.%s.enabled: false",
			     UAR_FMT(agent_id), names[protocol]);
}

/* --- runs that are there ------------------------------------------------------------------ */

struct protocol_look {
	struct uar_run_list known;
	struct call *c;
	enum uar_protocol protocol;
	gate_allowed_fn *then;
	void *ctx;
};

static void go_on(struct protocol_look *k, uar_str agent_id)
{
	struct uar_error error = { 0 };
	uar_err e = gate_check_protocol(k->c, agent_id, k->protocol, &error);

	if (e)
		gate_problem(k->c, e, &error);
	else
		k->then(k->c, k->ctx);
}

static void found_run(struct uar_run_list *q)
{
	struct protocol_look *k = UAR_OWNER(q, struct protocol_look, known);
	struct uar_run_list mine = *q; /* the call goes away with the answer */
	struct uar_error error = q->error;

	k->c->op = NULL;
	if (mine.err || !k->c->r)
		gate_problem(k->c, mine.err, &error);
	else
		go_on(k, mine.rows[0].agent_id);
	uar_run_list_fini(&mine);
}

/* Without definitions every agent allows all of them. */
void gate_with_protocol(struct call *c, enum uar_protocol protocol, gate_allowed_fn *then,
			void *ctx)
{
	struct protocol_look *k = uar_arena_alloc(&c->arena, sizeof *k);
	const struct uar_run_row *recent;
	uar_err e = UAR_OK;

	if (!uar_workers_registry(c->g->o.work)) {
		then(c, ctx);
		return;
	}
	if (!k) {
		gate_problem(c, UAR_ENOMEM, NULL);
		return;
	}
	k->c = c;
	k->protocol = protocol;
	k->then = then;
	k->ctx = ctx;
	if (uar_reader_recent_run(c->g->o.reader, &c->owner, c->params[0], &recent)) {
		go_on(k, recent->agent_id);
		return;
	}
	k->known = (struct uar_run_list){
		.owner = c->owner, .run_id = c->params[0], .limit = 1, .done = found_run
	};
	c->op = k;
	e = uar_reader_runs(c->g->o.reader, &k->known);
	if (e)
		gate_problem(c, e, NULL);
}
