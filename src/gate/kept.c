/* kept.c - versions and changes of what owners keep in the database. */
#include "gate/kept.h"

#include "gate/limits.h"

struct kind {
	enum uar_kept what;
	const char *name, *all;		 /* one, and all that are read at the start */
	const char *id, *version, *text; /* members of answers */
	size_t bytes;			 /* of one */
};

static const struct kind kinds[] = {
	[GATE_KEPT_AGENT] = {
		.what = UAR_KEPT_AGENT,
		.name = "agent",
		.all = "definitions",
		.id = "agent_id",
		.version = "version",
		.text = "definition",
		.bytes = UAR_LIMIT_SYSTEM_ANSWER_BYTES,
	},
	[GATE_KEPT_WORKFLOW] = {
		.what = UAR_KEPT_AGENT,
		.name = "workflow",
		.all = "definitions",
		.id = "workflow_id",
		.version = "version",
		.text = "definition",
		.bytes = UAR_LIMIT_SYSTEM_ANSWER_BYTES,
	},
	[GATE_KEPT_SKILL] = {
		.what = UAR_KEPT_SKILL,
		.name = "skill",
		.all = "skills",
		.id = "skill_id",
		.version = "stored_version",
		.text = "skill",
		.bytes = UAR_LIMIT_SKILLS_ANSWER,
	},
	[GATE_KEPT_MCP] = { .what = UAR_KEPT_MCP },
};

/* In the arena of the call. */
struct kept_lookup {
	struct uar_definition_lookup op;
	const struct kind *kind;
};
struct kept_change {
	struct uar_definition_change op;
	const struct kind *kind;
};

void gate_answer_not_kept(struct call *c, enum gate_kept what)
{
	const struct kind *kind = &kinds[what];
	struct uar_error error = { 0 };
	uar_err e = uar_error_set(&error, UAR_ENOTFOUND, "no %s is named \"%.*s\"", kind->name,
				  (int)(c->params[0].n < 64 ? c->params[0].n : 64), c->params[0].p);

	if (!uar_workers_definitions_loaded(c->g->o.work))
		e = uar_error_set(&error, UAR_EBUSY, "%s are being read", kind->all);
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
	const struct kind *kind = UAR_OWNER(op, struct kept_lookup, op)->kind;
	struct uar_buf b = uar_buf_make(kind->bytes);
	struct uar_jw w = uar_jw_begin(&b);

	if (op->err) {
		gate_problem(c, op->err, &op->error);
		return;
	}
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, kind->id, op->id);
	if (op->version) {
		uar_jw_int(&w, kind->version, op->version);
		uar_jw_raw(&w, kind->text, op->text);
	} else {
		put_versions(&w, op, kind->version);
	}
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}

void gate_look_up_kept(struct call *c, enum gate_kept what, int64_t version)
{
	struct kept_lookup *k = uar_arena_alloc(&c->arena, sizeof *k);
	uar_err e = UAR_ENOMEM;

	if (k) {
		*k = (struct kept_lookup){ .kind = &kinds[what],
					   .op = { .owner = c->owner,
						   .what = kinds[what].what,
						   .id = c->params[0],
						   .version = version,
						   .done = looked_up,
						   .ctx = c } };
		c->op = &k->op;
		e = uar_workers_look_up_definition(c->g->o.work, &k->op);
	}
	if (e)
		gate_problem(c, e, NULL);
}

/* --- changes -------------------------------------------------------------------------------- */

void gate_answer_kept_change(struct uar_definition_change *op)
{
	struct call *c = op->ctx;
	const struct kind *kind = UAR_OWNER(op, struct kept_change, op)->kind;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_KEPT_ANSWER);
	struct uar_jw w = uar_jw_begin(&b);

	if (op->err) {
		gate_problem(c, op->err, &op->error);
		return;
	}
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, kind->id, op->id);
	uar_jw_int(&w, kind->version, op->version);
	uar_jw_cstr(&w, "revision", op->revision[0] ? op->revision : NULL);
	uar_jw_bool(&w, "changed", !op->unchanged);
	uar_jw_close(&w);
	gate_answer_json(c, op->text.p && op->created ? 201 : 200, &b, &w);
}

static void change(struct call *c, enum gate_kept what, uar_str text, gate_kept_fn *done)
{
	struct kept_change *k = uar_arena_alloc(&c->arena, sizeof *k);
	uar_err e = UAR_ENOMEM;

	if (k) {
		*k = (struct kept_change){ .kind = &kinds[what],
					   .op = { .owner = c->owner,
						   .what = kinds[what].what,
						   .id = c->params[0],
						   .text = text,
						   .done = done,
						   .ctx = c } };
		c->op = &k->op; /* it is in the memory of the call, which the peer must not end */
		e = uar_workers_change_definition(c->g->o.work, &k->op);
	}
	if (e)
		gate_problem(c, e, k ? &k->op.error : NULL);
}

void gate_put_kept(struct call *c, enum gate_kept what, gate_kept_fn *done)
{
	uar_str text = UAR_STR_NONE;
	uar_err e = gate_text_of(c, c->body, &text);

	if (e)
		gate_problem(c, e, NULL);
	else
		change(c, what, text, done);
}

void gate_remove_kept(struct call *c, enum gate_kept what, gate_kept_fn *done)
{
	change(c, what, UAR_STR_NONE, done);
}
