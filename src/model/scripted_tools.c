/* scripted_tools.c - the script that asks for tools: the user's message is its score.
 *
 * A line `tool NAME {json}` is a call, a line `then` begins the next round. The rounds
 * that are behind it are seen in the conversation, so nothing is remembered. */
#include "model/scripted_int.h"

#include "base/buf.h"
#include "event/sizes.h"
#include "model/limits.h"

enum {
	RESULT_BYTES = 280, /* of a result that is quoted */
	SAID_BYTES = 65536,
};

/* --- the conversation --------------------------------------------------------------- */

struct talk {
	const struct uar_model_request *r;
	uar_str score;	  /* the last user message */
	size_t after;	  /* index of what follows it */
	unsigned rounds;  /* since then */
	unsigned earlier; /* before */
};

static struct talk talk_of(const struct uar_model_request *r)
{
	struct talk t = { .r = r, .score = UAR_STR("") };

	for (size_t i = 0; i < r->message_count; i++) {
		const struct uar_model_message *m = &r->messages[i];

		if (m->role == UAR_MODEL_USER) {
			t.score = uar_model_text_of(m);
			t.after = i + 1;
			t.earlier += t.rounds;
			t.rounds = 0;
		} else if (m->role == UAR_MODEL_ASSISTANT &&
			   uar_model_find_part(m, UAR_PART_CALL)) {
			t.rounds++;
		}
	}
	return t;
}

static uar_str next_line(uar_str *rest)
{
	uar_str line = uar_str_cut(*rest, '\n', rest);

	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	return uar_str_trim(line);
}

static bool is_call(uar_str line)
{
	return uar_str_starts(line, UAR_STR("tool ")) && line.n > 5;
}

/* The lines of one round, counted from 0; false: there are not so many. Rounds that
 * call nothing do not count. */
static bool find_round(uar_str score, unsigned wanted, uar_str *out)
{
	unsigned round = 0;
	bool calls = false;
	uar_str rest = score, begin = score;

	while (rest.n) {
		uar_str line = next_line(&rest);

		calls |= is_call(line);
		if (rest.n && !uar_str_is(line, "then"))
			continue;
		if (calls && round == wanted) {
			*out = uar_str_n(begin.p, begin.n - rest.n);
			return true;
		}
		round += calls;
		calls = false;
		begin = rest;
	}
	return false;
}

/* --- calls ---------------------------------------------------------------------------- */

/* "fs.read" and "internal:fs.read" as tools are called on wires. */
static uar_str wire_name(struct uar_arena *a, uar_str name)
{
	char *p = uar_arena_bytes(a, 2 * name.n + 1);
	size_t n = 0;

	for (size_t i = 0; p && i < name.n; i++) {
		char c = name.p[i];

		p[n++] = c == '.' || c == ':' || c == ' ' ? '_' : c;
		if (c == ':')
			p[n++] = '_';
	}
	return uar_str_n(p, n);
}

/* The tool that is meant; as written when there is none. */
static uar_str find_tool(struct uar_arena *a, const struct uar_model_request *r, uar_str written,
			 bool *out_found)
{
	uar_str name = wire_name(a, written);

	for (size_t i = 0; name.p && i < r->tool_count; i++) {
		uar_str tool = r->tools[i].name;
		bool ends = tool.n > name.n + 2 && uar_str_ends(tool, name) &&
			    memcmp(tool.p + tool.n - name.n - 2, "__", 2) == 0;

		*out_found = uar_str_eq(tool, name) || ends;
		if (*out_found)
			return tool;
	}
	*out_found = false;
	return written;
}

static bool add_call(struct uar_scripted_plan *p, struct uar_model_tool_call *calls, unsigned round,
		     uar_str name, uar_str arguments)
{
	struct uar_model_tool_call *c = &calls[p->call_count++];

	c->id = uar_arena_printf(&p->arena, "call_%u_%zu", round, p->call_count);
	c->name = uar_arena_str(&p->arena, name);
	c->arguments = uar_arena_str(&p->arena, arguments.n ? arguments : UAR_STR("{}"));
	return c->id.p && c->name.p && c->arguments.p;
}

static uar_err ask(struct uar_scripted_plan *p, const struct talk *t, uar_str lines)
{
	struct uar_model_tool_call *calls =
		uar_arena_alloc(&p->arena, UAR_LIMIT_MODEL_CALLS * sizeof *calls);
	bool found;

	p->calls = calls;
	while (calls && lines.n && p->call_count < UAR_LIMIT_MODEL_CALLS) {
		uar_str line = next_line(&lines), arguments, name;

		if (!is_call(line))
			continue;
		name = uar_str_cut(uar_str_trim(uar_str_from(line, 5)), ' ', &arguments);
		name = find_tool(&p->arena, t->r, name, &found);
		if (!add_call(p, calls, t->earlier + t->rounds + 1, name, uar_str_trim(arguments)))
			return UAR_ENOMEM;
	}
	return calls ? UAR_OK : UAR_ENOMEM;
}

static void say_calls(const struct uar_scripted_plan *p, struct uar_buf *b)
{
	uar_buf_add_str(b, UAR_STR("I will use "));
	for (size_t i = 0; i < p->call_count; i++) {
		if (i)
			uar_buf_add_str(b,
					i + 1 < p->call_count ? UAR_STR(", ") : UAR_STR(" and "));
		uar_buf_add_str(b, uar_str_utf8_prefix(p->calls[i].name, UAR_LIMIT_TOOL_NAME));
	}
	uar_buf_add_str(b, UAR_STR(". "));
}

/* --- the answer ------------------------------------------------------------------------- */

static uar_str name_of_call(const struct talk *t, uar_str id)
{
	for (size_t i = t->after; i < t->r->message_count; i++) {
		const struct uar_model_message *m = &t->r->messages[i];

		for (size_t k = 0; k < m->part_count; k++)
			if (m->parts[k].kind == UAR_PART_CALL && uar_str_eq(m->parts[k].id, id))
				return m->parts[k].name;
	}
	return UAR_STR("A tool");
}

static void say_result(const struct talk *t, const struct uar_model_part *p, struct uar_buf *b)
{
	uar_str cut = uar_str_utf8_prefix(p->text, RESULT_BYTES);

	uar_buf_add_str(b, uar_str_utf8_prefix(name_of_call(t, p->id), UAR_LIMIT_TOOL_NAME));
	uar_buf_add_str(b, UAR_STR(" said: "));
	uar_buf_add_str(b, uar_utf8_valid(cut) ? cut : UAR_STR("?"));
	uar_buf_add_str(b, cut.n < p->text.n ? UAR_STR("...\n") : UAR_STR("\n"));
}

static void say_results(const struct talk *t, struct uar_buf *b)
{
	for (size_t i = t->after; i < t->r->message_count; i++) {
		const struct uar_model_message *m = &t->r->messages[i];

		for (size_t k = 0; k < m->part_count; k++)
			if (m->parts[k].kind == UAR_PART_RESULT)
				say_result(t, &m->parts[k], b);
	}
	if (b->n == 0)
		uar_buf_add_str(b, UAR_STR("I have no tool for that. "));
}

uar_err uar_scripted_plan_make(struct uar_scripted_plan *p, const struct uar_model_request *r)
{
	struct talk t = talk_of(r);
	struct uar_buf said = uar_buf_make(SAID_BYTES);
	uar_str lines;
	uar_err e = UAR_OK;
	bool found = true;

	if (!find_round(t.score, t.rounds, &lines)) {
		bool silent = t.rounds == 0; /* its message names no tool */

		lines = silent ? UAR_STR("tool time.now") : UAR_STR("");
		if (silent)
			find_tool(&p->arena, r, UAR_STR("time.now"), &found);
	}
	if (lines.n && found)
		e = ask(p, &t, lines);
	p->later = t.rounds > 0;
	if (p->call_count)
		say_calls(p, &said);
	else
		say_results(&t, &said);
	p->said = uar_arena_str(&p->arena, uar_buf_str(&said));
	if (!e && (said.err == UAR_ENOMEM || !p->said.p))
		e = UAR_ENOMEM;
	uar_buf_fini(&said);
	return e;
}

void uar_scripted_plan_fini(struct uar_scripted_plan *p)
{
	uar_arena_fini(&p->arena);
}
