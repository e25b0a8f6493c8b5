/* skills.c - skills over HTTP: lists, searches, versions, changes, and what a message activates. */
#include "agent/registry.h"
#include "gate/kept.h"
#include "gate/limits.h"
#include "skill/book.h"
#include "work/skill_trial.h"

static struct uar_skill_book *book_of(struct call *c)
{
	struct uar_skill_book *b = uar_workers_skills(c->g->o.work);

	if (!b)
		gate_problem(c, UAR_ENOTIMPL, NULL);
	return b;
}

/* --- what is shown of a skill --------------------------------------------------------------- */

static void put_metrics(struct uar_jw *w, const struct uar_skill_count *n)
{
	uar_jw_obj(w, "metrics");
	uar_jw_int(w, "successes", n ? n->successes : 0);
	uar_jw_int(w, "failures", n ? n->failures : 0);
	uar_jw_close(w);
}

static void put_skill(struct call *c, struct uar_jw *w, const struct uar_skill_entry *e)
{
	const struct uar_skill *s = &e->skill;
	const struct uar_skill_book *b = uar_workers_skills(c->g->o.work);

	uar_jw_str(w, "skill_id", s->skill_id);
	uar_jw_str(w, "version", s->version);
	uar_jw_str(w, "title", s->title);
	uar_jw_str(w, "description", s->description);
	uar_jw_bool(w, "enabled", s->enabled);
	uar_jw_cstr(w, "origin", uar_skill_origin_text(s->origin));
	uar_jw_cstr(w, "revision", s->revision);
	if (e->folder[0])
		uar_jw_cstr(w, "folder", e->folder);
	if (e->version)
		uar_jw_int(w, "stored_version", e->version);
	if (e->updated_us)
		uar_jw_time(w, "updated_at", e->updated_us);
	put_metrics(w, uar_skill_book_count(b, &c->owner, s->skill_id));
}

/* --- lists ------------------------------------------------------------------------------------ */

static void put_broken(struct uar_jw *w, const struct uar_skill_book *b)
{
	const struct uar_skill_broken *k;

	uar_jw_arr(w, "broken");
	for (size_t i = 0; (k = uar_skill_book_broken_at(b, i)); i++) {
		uar_jw_obj(w, NULL);
		uar_jw_cstr(w, "folder", k->folder);
		uar_jw_cstr(w, "error", k->text);
		uar_jw_cstr(w, "skill_id", k->skill_id[0] ? k->skill_id : NULL);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static void put_all(struct call *c, struct uar_jw *w, const struct uar_skill_book *b)
{
	const struct uar_skill_entry *e;

	for (size_t i = 0; (e = uar_skill_book_at(b, i)); i++) {
		if (uar_skill_book_find(b, &c->owner, e->skill.skill_id) != e)
			continue;
		uar_jw_obj(w, NULL);
		put_skill(c, w, e);
		uar_jw_close(w);
	}
}

/* The best first, whatever a gate would say. */
static uar_err put_found(struct call *c, struct uar_jw *w, const struct uar_skill_book *b,
			 uar_str query)
{
	struct uar_skill_matches *m = uar_arena_alloc(&c->arena, sizeof *m);
	struct uar_skill_request r = { .message = query,
				       .tenant = c->owner.tenant,
				       .workspace = c->owner.workspace };
	uar_err e = m ? uar_skill_book_match(b, &c->owner, &r, m) : UAR_ENOMEM;

	for (size_t i = 0; !e && i < m->n; i++) {
		uar_jw_obj(w, NULL);
		put_skill(c, w, uar_skill_entry_of(m->at[i].skill));
		uar_jw_double(w, "score", m->at[i].score);
		uar_jw_double(w, "similarity", m->at[i].similarity);
		uar_jw_cstr(w, "method", uar_skill_method(&m->at[i]));
		uar_jw_close(w);
	}
	return e;
}

void gate_list_skills(struct call *c)
{
	const struct uar_skill_book *book = book_of(c);
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SKILLS_ANSWER);
	struct uar_jw w = uar_jw_begin(&b);
	uar_str query = UAR_STR_NONE;
	uar_err e = UAR_OK;

	if (!book)
		return;
	e = gate_query_str(c, "q", &query);
	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "skills");
	if (!e && query.n)
		e = put_found(c, &w, book, query);
	else
		put_all(c, &w, book);
	uar_jw_close(&w);
	put_broken(&w, book);
	uar_jw_close(&w);
	if (!e) {
		gate_answer_json(c, 200, &b, &w);
		return;
	}
	uar_buf_fini(&b);
	gate_problem(c, e, NULL);
}

/* --- one of them ---------------------------------------------------------------------------- */

void gate_list_skill_versions(struct call *c)
{
	gate_look_up_kept(c, GATE_KEPT_SKILL, 0);
}

static void put_embedding(struct uar_jw *w, const struct uar_skill *s)
{
	const float *v = uar_skill_embedding(s);

	uar_jw_arr(w, "embedding");
	for (size_t i = 0; v && i < UAR_LIMIT_EMBED_DIMENSIONS; i++)
		uar_jw_double(w, NULL, (double)v[i]);
	uar_jw_close(w);
}

static void answer_skill(struct call *c, const struct uar_skill_entry *e, bool embedding)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SKILLS_ANSWER);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	put_skill(c, &w, e);
	uar_jw_raw(&w, "skill", e->skill.text);
	if (embedding)
		put_embedding(&w, &e->skill);
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}

void gate_get_skill(struct call *c)
{
	const struct uar_skill_book *book = book_of(c);
	const struct uar_skill_entry *entry;
	struct uar_error error = { 0 };
	uint64_t version = 0;
	bool embedding = false;
	uar_err e;

	if (!book)
		return;
	e = gate_query_u64(c, "version", 0, &version, &error);
	if (!e)
		e = gate_query_flag(c, "embedding", &embedding, &error);
	entry = uar_skill_book_find(book, &c->owner, c->params[0]);
	if (e)
		gate_problem(c, e, &error);
	else if (version)
		gate_look_up_kept(c, GATE_KEPT_SKILL, (int64_t)(version & INT64_MAX));
	else if (entry)
		answer_skill(c, entry, embedding);
	else
		gate_answer_not_kept(c, GATE_KEPT_SKILL);
}

/* --- changes ---------------------------------------------------------------------------------- */

void gate_put_skill(struct call *c)
{
	gate_put_kept(c, GATE_KEPT_SKILL, gate_answer_kept_change);
}

void gate_remove_skill(struct call *c)
{
	const struct uar_skill_book *book = book_of(c);
	const struct uar_skill_entry *entry;
	struct uar_error error = { 0 };

	if (!book)
		return;
	entry = uar_skill_book_find(book, &c->owner, c->params[0]);
	if (!entry || entry->skill.origin == UAR_SKILL_USER) {
		gate_remove_kept(c, GATE_KEPT_SKILL, gate_answer_kept_change);
		return;
	}
	gate_problem(c,
		     uar_error_set(&error, UAR_EFORBIDDEN,
				   entry->skill.origin == UAR_SKILL_BUILTIN
					   ? "the skill \"%.*s\" is part of the program"
					   : "the skill \"%.*s\" is a folder of the skills "
					     "directory: remove it there",
				   UAR_FMT(entry->skill.skill_id)),
		     &error);
}

/* --- a trial ---------------------------------------------------------------------------------- */

struct trial_body {
	uar_str message, agent_id;
};

static uar_err read_trial(struct call *c, struct uar_skill_trial *out, struct uar_error *error)
{
	static const struct uar_json_field fields[] = {
		{ "message", UAR_FIELD_STR, true, offsetof(struct trial_body, message) },
		{ "agent_id", UAR_FIELD_STR, false, offsetof(struct trial_body, agent_id) },
	};
	struct trial_body in = { .agent_id = UAR_STR("") };
	const struct uar_agent *a;
	uar_err e = uar_json_read(c->body, fields, ARRAY_LEN(fields), true, &in, error);

	out->owner = &c->owner;
	out->message = in.message;
	if (e || !in.agent_id.n)
		return e;
	a = uar_workers_agent(c->g->o.work, &c->owner, in.agent_id);
	if (a && a->definition) {
		out->agent = a->definition;
		return UAR_OK;
	}
	uar_error_where(error, "/agent_id");
	return uar_error_set(error, UAR_ENOTFOUND,
			     a ? "the agent \"%.*s\" has no definition and uses no skills"
			       : "no agent is named \"%.*s\"",
			     (int)(in.agent_id.n < 64 ? in.agent_id.n : 64), in.agent_id.p);
}

void gate_try_skills(struct call *c)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SKILLS_ANSWER);
	struct uar_jw w = uar_jw_begin(&b);
	struct uar_skill_trial trial = { 0 };
	struct uar_error error = { 0 };
	uar_err e;

	if (!book_of(c))
		return;
	e = read_trial(c, &trial, &error);
	uar_jw_obj(&w, NULL);
	if (!e)
		e = uar_workers_try_skills(c->g->o.work, &trial, &w, &error);
	uar_jw_close(&w);
	if (!e) {
		gate_answer_json(c, 200, &b, &w);
		return;
	}
	uar_buf_fini(&b);
	gate_problem(c, e, &error);
}
