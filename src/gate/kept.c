/* kept.c - versions and changes of what owners keep in the database. */
#include "gate/kept.h"

#include "gate/limits.h"

struct answer_names {
	const char *name, *all;		 /* one, and all that are read at the start */
	const char *id, *version, *text; /* members of answers */
	size_t bytes;			 /* of one */
};

/* The same handlers serve agents and, by another path, those that are workflows. */
static const struct answer_names *names_of(const struct call *c, enum uar_kept what)
{
	static const struct answer_names skill = {
		.name = "skill",
		.all = "skills",
		.id = "skill_id",
		.version = "stored_version",
		.text = "skill",
		.bytes = UAR_LIMIT_SKILLS_ANSWER,
	};
	static const struct answer_names agent = {
		.name = "agent",
		.all = "definitions",
		.id = "agent_id",
		.version = "version",
		.text = "definition",
		.bytes = UAR_LIMIT_SYSTEM_ANSWER_BYTES,
	};
	static const struct answer_names workflow = {
		.name = "workflow",
		.all = "definitions",
		.id = "workflow_id",
		.version = "version",
		.text = "definition",
		.bytes = UAR_LIMIT_SYSTEM_ANSWER_BYTES,
	};

	if (what == UAR_KEPT_SKILL)
		return &skill;
	return strstr(c->route->path, "/workflows/") ? &workflow : &agent;
}

void gate_answer_not_kept(struct call *c, enum uar_kept what)
{
	const struct answer_names *names = names_of(c, what);
	struct uar_error error = { 0 };
	uar_err e = uar_error_set(&error, UAR_ENOTFOUND, "no %s is named \"%.*s\"", names->name,
				  (int)(c->params[0].n < 64 ? c->params[0].n : 64), c->params[0].p);

	if (!uar_workers_definitions_loaded(c->g->o.work))
		e = uar_error_set(&error, UAR_EBUSY, "%s are being read", names->all);
	gate_problem(c, e, &error);
}

/* --- versions ------------------------------------------------------------------------------- */

static void put_versions(struct uar_jw *w, const struct uar_definition_lookup *op,
			 const char *member)
{
	uar_jw_arr(w, "versions");
	for (size_t i = 0; i < op->count; i++) {
		const struct uar_definition_version *v = &op->versions[i];

		uar_jw_obj(w, NULL);
		uar_jw_int(w, member, v->version);
		uar_jw_cstr(w, "change", v->revision[0] ? "put" : "removed");
		uar_jw_cstr(w, "revision", v->revision[0] ? v->revision : NULL);
		uar_jw_time(w, "at", v->created_us);
		uar_jw_close(w);
	}
	uar_jw_close(w);
	uar_jw_bool(w, "more", op->more);
}

static void looked_up(struct uar_definition_lookup *op)
{
	struct call *c = op->ctx;
	const struct answer_names *names = names_of(c, op->what);
	struct uar_buf b = uar_buf_make(names->bytes);
	struct uar_jw w = uar_jw_begin(&b);

	if (op->err) {
		gate_problem(c, op->err, &op->error);
		return;
	}
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, names->id, op->id);
	if (op->version) {
		uar_jw_int(&w, names->version, op->version);
		uar_jw_raw(&w, names->text, op->text);
	} else {
		put_versions(&w, op, names->version);
	}
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}

void gate_look_up_kept(struct call *c, enum uar_kept what, int64_t version)
{
	struct uar_definition_lookup *op = uar_arena_alloc(&c->arena, sizeof *op);
	uar_err e = UAR_ENOMEM;

	if (op) {
		*op = (struct uar_definition_lookup){ .owner = c->owner,
						      .what = what,
						      .id = c->params[0],
						      .version = version,
						      .done = looked_up,
						      .ctx = c };
		c->op = op;
		e = uar_workers_look_up_definition(c->g->o.work, op);
	}
	if (e)
		gate_problem(c, e, NULL);
}

/* --- changes -------------------------------------------------------------------------------- */

void gate_answer_kept_change(struct uar_definition_change *op)
{
	struct call *c = op->ctx;
	const struct answer_names *names = names_of(c, op->what);
	struct uar_buf b = uar_buf_make(UAR_LIMIT_KEPT_ANSWER);
	struct uar_jw w = uar_jw_begin(&b);

	if (op->err) {
		gate_problem(c, op->err, &op->error);
		return;
	}
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, names->id, op->id);
	uar_jw_int(&w, names->version, op->version);
	uar_jw_cstr(&w, "revision", op->revision[0] ? op->revision : NULL);
	uar_jw_bool(&w, "changed", !op->unchanged);
	uar_jw_close(&w);
	gate_answer_json(c, op->text.p && op->created ? 201 : 200, &b, &w);
}

static void change(struct call *c, const struct uar_definition_change *what)
{
	struct uar_definition_change *op = uar_arena_alloc(&c->arena, sizeof *op);
	uar_err e = UAR_ENOMEM;

	if (op) {
		*op = *what;
		op->owner = c->owner;
		op->id = c->params[0];
		op->ctx = c;
		c->op = op; /* it is in the memory of the call, which the peer must not end */
		e = uar_workers_change_definition(c->g->o.work, op);
	}
	if (e)
		gate_problem(c, e, op ? &op->error : NULL);
}

void gate_put_kept(struct call *c, enum uar_kept what, gate_kept_fn *done)
{
	struct uar_definition_change put = { .what = what, .done = done };
	uar_err e = gate_text_of(c, c->body, &put.text);

	if (e)
		gate_problem(c, e, NULL);
	else
		change(c, &put);
}

void gate_remove_kept(struct call *c, enum uar_kept what, gate_kept_fn *done)
{
	change(c, &(struct uar_definition_change){ .what = what, .done = done });
}
