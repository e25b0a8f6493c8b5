/* agent_check.c - a definition while it is written: what is wrong with it and where, and what a
 * model would be told. Nothing is kept. */
#include "agent/definition.h"
#include "agent/limits.h"
#include "agent/prompt.h"
#include "agent/source.h"
#include "gate/gate_int.h"
#include "gate/limits.h"

struct check_body {
	uar_str text, format;
};

/* "definition.yaml:LINE[:COLUMN][ /pointer]" of uar_definition_read_file. */
static void put_place(struct uar_jw *w, uar_str where)
{
	uar_str rest, pointer, line;
	uint64_t number = 0;

	uar_str_cut(where, ':', &rest);
	line = uar_str_cut(rest, ' ', &pointer);
	if (uar_str_u64(uar_str_cut(line, ':', &rest), &number) == UAR_OK && number)
		uar_jw_u64(w, "line", number);
	else
		uar_jw_null(w, "line");
	uar_jw_str(w, "pointer", pointer.n ? pointer : UAR_STR(""));
}

static void put_problem(struct uar_jw *w, uar_err e, const struct uar_error *error)
{
	uar_jw_bool(w, "good", false);
	uar_jw_arr(w, "problems");
	uar_jw_obj(w, NULL);
	put_place(w, uar_str_c(error->where));
	uar_jw_cstr(w, "message", error->text[0] ? error->text : uar_err_text(e));
	uar_jw_close(w);
	uar_jw_close(w);
}

static void put_inactive(struct uar_jw *w, const struct uar_definition *d)
{
	struct uar_definition_inactive row;

	uar_jw_arr(w, "inactive");
	for (size_t i = 0; uar_definition_inactive(d, i, &row); i++) {
		uar_jw_obj(w, NULL);
		uar_jw_cstr(w, "pointer", row.pointer);
		uar_jw_cstr(w, "why", row.why);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

/* Variables that a run must bring stand for themselves: <NAME>. */
static uar_err fill_variables(const struct uar_definition *d, struct uar_arena *arena,
			      const struct uar_json **out)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_AGENT_DEFINITION);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e;

	uar_jw_obj(&w, NULL);
	for (const struct uar_json *v = uar_json_first(d->prompt.variables); v; v = v->next)
		if (!uar_json_get(v, UAR_STR("default"))) {
			uar_jw_key(&w, v->key);
			uar_jw_str(&w, NULL, uar_arena_printf(arena, "<%.*s>", UAR_FMT(v->key)));
		}
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	if (!e)
		e = uar_json_parse_copy(uar_buf_str(&b), NULL, arena, out, NULL);
	uar_buf_fini(&b);
	return e;
}

/* As a run is told it that brings nothing but a message. Skills, tools and memory come with a run.
 */
static void put_prompt(struct uar_jw *w, struct call *c, const struct uar_definition *d)
{
	struct uar_prompt_inputs in = { .def = d, .message = UAR_STR("<message>") };
	struct uar_prompt_text text = { 0 };
	struct uar_error error = { 0 };
	uar_err e = fill_variables(d, &c->arena, &in.values);

	if (!e)
		e = uar_prompt_assemble(&in, &text, &error);
	if (e) {
		uar_jw_null(w, "prompt");
	} else {
		uar_jw_obj(w, "prompt");
		uar_jw_str(w, "system", uar_buf_str(&text.system));
		uar_jw_str(w, "message", uar_buf_str(&text.message));
		uar_jw_close(w);
	}
	uar_prompt_fini(&text);
}

static void put_good(struct uar_jw *w, struct call *c, const struct uar_definition *d)
{
	uar_jw_bool(w, "good", true);
	uar_jw_arr(w, "problems");
	uar_jw_close(w);
	uar_jw_str(w, "agent_id", d->info.agent_id);
	uar_jw_cstr(w, "revision", d->revision);
	put_inactive(w, d);
	uar_jw_tree(w, "definition", d->json);
	if (uar_str_is(d->info.entry, "llm.chat"))
		put_prompt(w, c, d);
	else
		uar_jw_null(w, "prompt");
}

static void answer(struct call *c, const struct check_body *in)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SYSTEM_ANSWER_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	bool yaml = uar_str_is(in->format, "yaml");
	struct uar_error error = { 0 };
	struct uar_definition d;
	uar_err e = uar_definition_read_file(yaml ? "definition.yaml" : "definition.json", in->text,
					     &d, &error);

	uar_jw_obj(&w, NULL);
	if (e)
		put_problem(&w, e, &error);
	else
		put_good(&w, c, &d);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	if (!e)
		uar_definition_fini(&d);
	if (e == UAR_ENOMEM)
		gate_problem(c, e, NULL);
	else
		gate_answer(c, 200, &b);
	uar_buf_fini(&b);
}

void gate_check_agent(struct call *c)
{
	static const struct uar_json_field fields[] = {
		{ "text", UAR_FIELD_STR, true, offsetof(struct check_body, text) },
		{ "format", UAR_FIELD_STR, false, offsetof(struct check_body, format) },
	};
	struct check_body in = { .format = UAR_STR("json") };
	struct uar_error error = { 0 };
	uar_err e = uar_json_read(c->body, fields, ARRAY_LEN(fields), true, &in, &error);

	if (!e && !uar_str_is(in.format, "json") && !uar_str_is(in.format, "yaml")) {
		e = uar_error_set(&error, UAR_EINVALID, "one of json and yaml");
		uar_error_where(&error, "/format");
	}
	if (e)
		gate_problem(c, e, &error);
	else
		answer(c, &in);
}
