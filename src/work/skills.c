/* skills.c - the skills of a run: texts kept before they are used, read again after a restart. */
#include "work/skills.h"

#include "event/sizes.h"
#include "json/jw.h"
#include "work/definitions.h"

#define SKILL_TOOLS "internal:skill."
#define READ_TOOL   SKILL_TOOLS "read"
#define RUN_TOOL    SKILL_TOOLS "run"

struct skill_load {
	struct rt_op under_way;
	struct skills_ask ask; /* .ready NULL: cancelled */
	struct uar_workers *w;
	struct skill_set *set;
	size_t at;
	bool choose;
	struct uar_blob_put put;
	struct uar_blob_get get;
};

/* --- the set ------------------------------------------------------------------------------ */

static struct skill_set *make_set(void)
{
	struct skill_set *s = uar_zalloc(sizeof *s);

	if (!s)
		return NULL;
	s->facts = uar_buf_make(UAR_LIMIT_EVENT_BYTES / 2);
	s->narrowed = uar_buf_make(UAR_LIMIT_EVENT_BYTES / 8);
	uar_arena_init(&s->arena, 0);
	return s;
}

void rt_skills_free(struct skill_set *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++)
		uar_skill_entry_unref(s->at[i].entry);
	uar_buf_fini(&s->facts);
	uar_buf_fini(&s->narrowed);
	uar_arena_fini(&s->arena);
	uar_free(s);
}

static uar_err write_narrowed(struct skill_set *s)
{
	struct uar_jw w = uar_jw_begin(&s->narrowed);
	bool any = false;

	uar_jw_arr(&w, NULL);
	for (size_t i = 0; i < s->count; i++) {
		const struct uar_skill *k = &s->at[i].entry->skill;
		char name[UAR_LIMIT_SKILL_ID + 8];

		if (!k->allow.n && !k->deny.n)
			continue;
		any = true;
		snprintf(name, sizeof name, "skill:%.*s", UAR_FMT(k->skill_id));
		uar_jw_cstr(&w, NULL, name);
	}
	uar_jw_close(&w);
	if (uar_jw_end(&w))
		return UAR_ENOMEM;
	if (!any)
		uar_buf_clear(&s->narrowed);
	return UAR_OK;
}

/* Of skills that were chosen before only what the run's state keeps is known. */
static uar_err write_kept_facts(struct skill_set *s)
{
	struct uar_jw w = uar_jw_begin(&s->facts);

	uar_jw_arr(&w, NULL);
	for (size_t i = 0; i < s->count; i++) {
		const struct uar_skill *k = &s->at[i].entry->skill;

		uar_jw_obj(&w, NULL);
		uar_jw_str(&w, "skill_id", k->skill_id);
		uar_jw_str(&w, "version", k->version);
		uar_jw_double(&w, "score", s->at[i].score);
		uar_jw_cstr(&w, "revision", k->revision);
		uar_jw_str(&w, "title", k->title);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static uar_err take_matches(struct skill_set *s, const struct uar_skill_matches *m)
{
	struct uar_jw w = uar_jw_begin(&s->facts);

	uar_jw_arr(&w, NULL);
	for (size_t i = 0; i < m->active; i++) {
		s->at[s->count].entry = uar_skill_entry_ref(uar_skill_entry_of(m->at[i].skill));
		s->at[s->count++].score = m->at[i].score;
		uar_jw_obj(&w, NULL);
		rt_skills_write_candidate(&w, &m->at[i]);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

/* --- loading ------------------------------------------------------------------------------- */

static uar_err advance(struct skill_load *l);

static void end_load(struct skill_load *l, uar_err e)
{
	if (e)
		rt_skills_free(l->set);
	else
		*l->ask.out = l->set;
	l->ask.ready(l->ask.ctx, e);
	rt_op_end(&l->under_way);
	uar_free(l);
}

static void go_on(struct skill_load *l, uar_err e)
{
	if (!l->ask.ready) {
		rt_skills_free(l->set);
		rt_op_end(&l->under_way);
		uar_free(l);
		return;
	}
	if (!e)
		e = advance(l);
	if (e)
		end_load(l, e == UAR_ESKIP ? UAR_OK : e);
}

static void text_kept(struct uar_blob_put *put)
{
	struct skill_load *l = UAR_OWNER(put, struct skill_load, put);

	if (!put->err)
		l->set->at[l->at++].entry->stored = true;
	go_on(l, put->err);
}

static uar_err read_text(struct skill_load *l)
{
	struct uar_skill_entry *entry;
	struct uar_skill s;
	uar_err e = l->get.err ? l->get.err : uar_skill_read(l->get.bytes, &s, NULL);

	if (e)
		return e;
	entry = uar_skill_entry_take(&s);
	if (!entry) {
		uar_skill_fini(&s);
		return UAR_ENOMEM;
	}
	entry->stored = true;
	l->set->at[l->at++].entry = entry;
	l->set->count = l->at;
	return UAR_OK;
}

static void text_read(struct uar_blob_get *get)
{
	struct skill_load *l = UAR_OWNER(get, struct skill_load, get);
	uar_err e = l->ask.ready ? read_text(l) : UAR_OK;

	uar_store_blob_get_fini(get);
	go_on(l, e);
}

static uar_err keep_next(struct skill_load *l)
{
	struct uar_store *store = rt_store(l->w->rt);

	while (l->at < l->set->count && l->set->at[l->at].entry->stored)
		l->at++;
	if (l->at == l->set->count)
		return write_narrowed(l->set) ? UAR_ENOMEM : UAR_ESKIP;
	l->put = (struct uar_blob_put){ .bytes = l->set->at[l->at].entry->skill.text,
					.done = text_kept };
	return store->ops->blob_put(store, &l->put);
}

static uar_err read_next(struct skill_load *l)
{
	const struct uar_run_skills *names = &uar_run_rare(rt_state(l->ask.run))->skills;
	struct uar_store *store = rt_store(l->w->rt);
	uar_err e;

	for (; l->at < names->count; l->at++) {
		uar_str revision = uar_str_c(names->at[l->at].revision);
		struct uar_skill_entry *known = uar_skill_book_known(l->w->o.skills, revision);

		l->set->at[l->at].score = names->at[l->at].score;
		if (!known && revision.n != sizeof l->get.sha256 - 1)
			return UAR_ECORRUPT;
		if (!known) {
			l->get = (struct uar_blob_get){ .limit = UAR_LIMIT_SKILL_BYTES,
							.done = text_read };
			memcpy(l->get.sha256, revision.p, revision.n);
			return store->ops->blob_get(store, &l->get);
		}
		l->set->at[l->at].entry = uar_skill_entry_ref(known);
		l->set->count = l->at + 1;
	}
	e = write_kept_facts(l->set);
	if (!e)
		e = write_narrowed(l->set);
	return e ? e : UAR_ESKIP;
}

static uar_err advance(struct skill_load *l)
{
	return l->choose ? keep_next(l) : read_next(l);
}

static void drop_load(struct rt_op *op)
{
	struct skill_load *l = UAR_OWNER(op, struct skill_load, under_way);

	rt_skills_free(l->set);
	uar_free(l);
}

/* Takes the set. */
static uar_err begin_load(const struct skills_ask *ask, struct skill_set *set, bool choose,
			  struct skill_load **out)
{
	struct skill_load *l = uar_zalloc(sizeof *l);
	uar_err e;

	if (!l) {
		rt_skills_free(set);
		return UAR_ENOMEM;
	}
	l->ask = *ask;
	l->w = rt_work(ask->run);
	l->set = set;
	l->choose = choose;
	e = advance(l);
	if (!e) {
		rt_op_begin(l->w->rt, &l->under_way, drop_load);
		*out = l;
		return UAR_OK;
	}
	if (e == UAR_ESKIP)
		*ask->out = set;
	else
		rt_skills_free(set);
	uar_free(l);
	return e;
}

/* Agents that say nothing of skills use none: they change what a model is told and may do. */
static bool wants_skills(const struct live_run *r)
{
	const struct uar_definition *d = rt_definition(r);

	return rt_work(r)->o.skills && d &&
	       uar_json_pointer(d->json, UAR_STR("/policy/skills")) != NULL;
}

static uar_err choose_set(const struct skills_ask *ask, struct skill_set *set)
{
	const struct uar_definition *d = rt_definition(ask->run);
	const struct uar_run *state = rt_state(ask->run);
	struct uar_skill_matches *m = uar_zalloc(sizeof *m);
	struct toolset tools = rt_toolset_of(ask->run);
	struct skills_match match = { .w = rt_work(ask->run),
				      .owner = &rt_agg_session(rt_agg(ask->run))->owner,
				      .def = d,
				      .tools = &tools,
				      .provider = d->routing.chosen.provider,
				      .model = d->routing.chosen.model,
				      .message = ask->message };
	uar_err e = m ? UAR_OK : UAR_ENOMEM;

	if (uar_run_model(state).n) {
		match.provider = uar_run_provider(state);
		match.model = uar_run_model(state);
	}
	if (!e)
		e = rt_skills_match(&match, &set->arena, m);
	if (!e)
		e = take_matches(set, m);
	uar_free(m);
	return e;
}

uar_err rt_skills_choose(const struct skills_ask *ask, struct skill_load **out)
{
	struct skill_set *set;
	uar_err e;

	if (!wants_skills(ask->run))
		return UAR_ESKIP;
	set = make_set();
	if (!set)
		return UAR_ENOMEM;
	e = choose_set(ask, set);
	if (!e && set->count)
		return begin_load(ask, set, true, out);
	rt_skills_free(set);
	return e ? e : UAR_ESKIP;
}

uar_err rt_skills_resume(const struct skills_ask *ask, struct skill_load **out)
{
	struct skill_set *set;

	if (!uar_run_rare(rt_state(ask->run))->skills.count || !rt_work(ask->run)->o.skills)
		return UAR_ESKIP;
	set = make_set();
	return set ? begin_load(ask, set, false, out) : UAR_ENOMEM;
}

void rt_skills_cancel(struct skill_load *l)
{
	if (l)
		l->ask.ready = NULL;
}

/* --- what they mean -------------------------------------------------------------------------- */

static bool is_own_tool(uar_str tool_id)
{
	return uar_str_starts(tool_id, UAR_STR(SKILL_TOOLS));
}

bool rt_skills_show(const struct skill_set *s, uar_str tool_id)
{
	if (!is_own_tool(tool_id))
		return true;
	for (size_t i = 0; s && i < s->count; i++)
		if (s->at[i].entry->skill.folder.n)
			return true;
	return false;
}

bool rt_skills_reach(const struct skill_set *s, uar_str tool_id, uar_str input)
{
	const struct uar_json *j = NULL;
	struct uar_arena arena;
	uar_str folder;
	bool reached = false;

	if (!is_own_tool(tool_id))
		return true;
	uar_arena_init(&arena, 0);
	if (!uar_json_parse(input, NULL, &arena, &j, NULL)) {
		folder = uar_json_text(j, "folder");
		for (size_t i = 0; s && i < s->count; i++)
			reached |= folder.n && uar_str_eq(s->at[i].entry->skill.folder, folder);
	}
	uar_arena_fini(&arena);
	return reached;
}

/* The files of skills stay there whatever others allow, unless one denies them. */
bool rt_skills_allow(const struct skill_set *s, uar_str tool_id)
{
	for (size_t i = 0; s && i < s->count; i++) {
		const struct uar_skill *k = &s->at[i].entry->skill;
		struct uar_skill denies = { .deny = k->deny };

		if (!uar_skill_allows(is_own_tool(tool_id) ? &denies : k, tool_id))
			return false;
	}
	return true;
}

void rt_skills_write_key(const struct skill_set *s, struct uar_buf *out)
{
	for (size_t i = 0; i < s->count; i++)
		uar_buf_printf(out, "\n%s", s->at[i].entry->skill.revision);
}

uar_str rt_skills_narrowed(const struct skill_set *s)
{
	return uar_buf_str(&s->narrowed);
}

void rt_skills_tell(const struct skill_set *s, struct uar_prepared *out)
{
	out->skills = uar_buf_str(&s->facts);
	out->narrowed_by = uar_buf_str(&s->narrowed);
}

/* --- the prompt ------------------------------------------------------------------------------- */

static void put_tools(struct uar_buf *out, const struct uar_skill *k, const struct toolset *tools)
{
	bool any = false;

	for (size_t i = 0; i < k->preferred_tools.n; i++) {
		if (!rt_toolset_offers(tools, k->preferred_tools.at[i]))
			continue;
		uar_buf_add_str(out, any ? UAR_STR(", ") : UAR_STR("\npreferred_tools: "));
		uar_buf_add_str(out, k->preferred_tools.at[i]);
		any = true;
	}
	for (const struct uar_json *t = uar_json_first(k->templates); t; t = t->next) {
		if (!rt_toolset_offers(tools, t->key))
			continue;
		uar_buf_printf(out, "\nCall %.*s like this: ", UAR_FMT(t->key));
		uar_json_write(out, t);
	}
	if (k->folder.n && rt_toolset_offers(tools, UAR_STR(READ_TOOL)))
		uar_buf_printf(out,
			       "\nFiles that this skill names are read with the tool skill.read: "
			       "folder \"%.*s\" and the path of the file in it.",
			       UAR_FMT(k->folder));
	if (k->folder.n && rt_toolset_offers(tools, UAR_STR(RUN_TOOL)))
		uar_buf_add_str(out, UAR_STR(" Its scripts are run with the tool skill.run."));
}

/* The texts live in the set, which is not changed otherwise. */
size_t rt_skills_pieces(const struct skill_set *s, const struct toolset *tools,
			struct uar_prompt_piece out[UAR_LIMIT_RUN_SKILLS])
{
	struct uar_arena *arena = (struct uar_arena *)&s->arena;

	for (size_t i = 0; i < s->count; i++) {
		const struct uar_skill *k = &s->at[i].entry->skill;
		struct uar_buf text = uar_buf_make(2 * (size_t)UAR_LIMIT_SKILL_BYTES);

		uar_buf_add_str(&text, k->overlay);
		put_tools(&text, k, tools);
		out[i] = (struct uar_prompt_piece){
			k->skill_id,
			text.err ? UAR_STR_NONE : uar_arena_str(arena, uar_buf_str(&text))
		};
		if (!out[i].text.p)
			out[i].text = k->overlay;
		uar_buf_fini(&text);
	}
	return s->count;
}

/* --- answers -------------------------------------------------------------------------------- */

static void put_rules(struct uar_buf *out, const struct uar_skill *k)
{
	for (const struct uar_json *r = uar_json_at(k->post, 0); r; r = r->next) {
		uar_str message = uar_json_text(r, "message");

		uar_buf_add_str(out, UAR_STR("\n- "));
		if (message.n)
			uar_buf_add_str(out, message);
		else
			uar_json_write(out, r);
	}
}

void rt_skills_remind(const struct skill_set *s, struct prompt *p)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_SKILL_BYTES);
	uar_str kept;

	uar_buf_add_str(&text, UAR_STR("These rules apply to the answer:"));
	for (size_t i = 0; i < s->count; i++)
		put_rules(&text, &s->at[i].entry->skill);
	kept = uar_arena_str((struct uar_arena *)&s->arena, uar_buf_str(&text));
	if (rt_skills_check_answers(s) && kept.p && !text.err)
		rt_prompt_text(p, UAR_MODEL_USER, kept);
	uar_buf_fini(&text);
}

bool rt_skills_check_answers(const struct skill_set *s)
{
	for (size_t i = 0; s && i < s->count; i++)
		if (uar_json_at(s->at[i].entry->skill.post, 0))
			return true;
	return false;
}

uar_err rt_skills_check_answer(const struct skill_set *s, uar_str answer, struct uar_error *error)
{
	uar_err e = UAR_OK;

	for (size_t i = 0; s && i < s->count && !e; i++)
		e = uar_skill_check_answer(&s->at[i].entry->skill, answer, error);
	return e;
}
