/* render.c - one function per kind of event; see render.h. */
#include "app/render.h"

#include "app/limits.h"
#include "app/text.h"

enum { BRIEF = 160 };

static void write_out(FILE *to, const struct uar_buf *b)
{
	if (b->n)
		fwrite(b->p, 1, b->n, to);
	fflush(to);
}

void uar_render_rest(struct uar_render *r)
{
	FILE *to = r->open == UAR_RENDER_REASONING ? r->notes : r->text;

	if (r->bar)
		fputs("\r\x1b[K", r->notes);
	r->bar = false;
	if (r->open != UAR_RENDER_START && r->midline) {
		fputc('\n', to);
		fflush(to);
	}
	r->open = UAR_RENDER_START;
	r->midline = false;
}

/* --- flowing text --------------------------------------------------------------- */
static void flow(struct uar_render *r, uar_str delta, bool reasoning)
{
	struct uar_buf b = uar_buf_make(4 * UAR_LIMIT_CLI_LINE);
	enum uar_text_style style = reasoning ? UAR_STYLE_DIM : UAR_STYLE_NONE;
	bool colour = reasoning ? r->notes_colour : r->text_colour;
	int kind = reasoning ? UAR_RENDER_REASONING : UAR_RENDER_TEXT;

	if (delta.n == 0)
		return;
	if ((int)r->open != kind) {
		uar_render_rest(r);
		if (reasoning && !colour)
			uar_buf_add_str(&b, UAR_STR("[thinking] "));
	}
	uar_buf_printf(&b, "%s", uar_text_on(style, colour));
	uar_text_clean(&b, delta, true);
	uar_buf_printf(&b, "%s", uar_text_off(style, colour));
	write_out(reasoning ? r->notes : r->text, &b);
	uar_buf_fini(&b);
	r->open = reasoning ? UAR_RENDER_REASONING : UAR_RENDER_TEXT;
	r->midline = delta.p[delta.n - 1] != '\n';
}

static void show_chat(struct uar_render *r, const struct uar_json *data)
{
	flow(r, uar_json_text(data, "text_delta"), false);
}

static void show_reasoning(struct uar_render *r, const struct uar_json *data)
{
	flow(r, uar_json_text(data, "text_delta"), true);
}

/* --- one-liners -------------------------------------------------------------------- */
/* A value in brief: a string as it is, anything else as JSON. */
static void put_value(struct uar_buf *b, const struct uar_json *j)
{
	struct uar_buf whole = uar_buf_make(UAR_LIMIT_CLI_LINE);

	if (j && j->kind == UAR_JSON_STRING) {
		uar_text_brief(b, j->text, BRIEF);
	} else if (j) {
		uar_json_write(&whole, j);
		uar_text_brief(b, uar_buf_str(&whole), BRIEF);
	}
	uar_buf_fini(&whole);
}

static void note(struct uar_render *r, enum uar_text_style style, const struct uar_buf *line)
{
	uar_render_rest(r);
	fprintf(r->notes, "%s%.*s%s\n", uar_text_on(style, r->notes_colour),
		UAR_FMT(uar_buf_str(line)), uar_text_off(style, r->notes_colour));
	fflush(r->notes);
	r->lines++;
}

static void remember_tool(struct uar_render *r, const struct uar_json *data)
{
	unsigned at = r->tools_next++ % ARRAY_LEN(r->tools);
	struct uar_buf b = uar_buf_make(sizeof r->tools[0].name);

	uar_text_brief(&b, uar_json_text(data, "tool"), sizeof r->tools[0].name - 4);
	snprintf(r->tools[at].call_id, sizeof r->tools[at].call_id, "%.*s",
		 UAR_FMT(uar_json_text(data, "tool_call_id")));
	snprintf(r->tools[at].name, sizeof r->tools[at].name, "%.*s", UAR_FMT(uar_buf_str(&b)));
	r->tools[at].since_us = uar_clock_mono(r->clock);
	uar_buf_fini(&b);
}

/* Several may be at work at once. */
static void put_tool(const struct uar_render *r, struct uar_buf *b, uar_str call_id)
{
	for (size_t i = 0; i < ARRAY_LEN(r->tools); i++) {
		double ms;

		if (!call_id.n || !uar_str_is(call_id, r->tools[i].call_id))
			continue;
		ms = (double)(uar_clock_mono(r->clock) - r->tools[i].since_us) / 1000;
		uar_buf_printf(b, "%s, %.*f %s: ", r->tools[i].name, ms < 1000 ? 0 : 1,
			       ms < 1000 ? ms : ms / 1000, ms < 1000 ? "ms" : "s");
		return;
	}
}

static void show_tool_start(struct uar_render *r, const struct uar_json *data)
{
	struct uar_buf b = uar_buf_make(4096);

	if (r->clock)
		remember_tool(r, data);
	uar_buf_add_str(&b, UAR_STR("> "));
	uar_text_brief(&b, uar_json_text(data, "tool"), BRIEF);
	uar_buf_add_char(&b, ' ');
	put_value(&b, uar_json_get(data, UAR_STR("input")));
	note(r, UAR_STYLE_CYAN, &b);
	uar_buf_fini(&b);
}

static void show_tool_end(struct uar_render *r, const struct uar_json *data)
{
	struct uar_buf b = uar_buf_make(4096);
	bool ok = uar_json_bool(uar_json_get(data, UAR_STR("ok")), true);

	uar_buf_printf(&b, "< %s ", ok ? "ok" : "failed");
	if (r->clock)
		put_tool(r, &b, uar_json_text(data, "tool_call_id"));
	put_value(&b, uar_json_get(data, UAR_STR("output")));
	note(r, ok ? UAR_STYLE_DIM : UAR_STYLE_RED, &b);
	uar_buf_fini(&b);
}

static void show_citation(struct uar_render *r, const struct uar_json *data)
{
	const struct uar_json *sources = uar_json_get(data, UAR_STR("sources"));
	struct uar_buf b = uar_buf_make(4096);

	for (const struct uar_json *s = uar_json_at(sources, 0); s; s = s->next) {
		uar_buf_clear(&b);
		uar_buf_add_str(&b, UAR_STR("[source] "));
		uar_text_brief(&b, uar_json_text(s, "title"), BRIEF);
		uar_buf_add_char(&b, ' ');
		uar_text_brief(&b, uar_json_text(s, "url"), BRIEF);
		note(r, UAR_STYLE_DIM, &b);
	}
	uar_buf_fini(&b);
}

static void show_memory(struct uar_render *r, const struct uar_json *data)
{
	const struct uar_json *items = uar_json_get(data, UAR_STR("items"));
	struct uar_buf b = uar_buf_make(4096);

	uar_buf_printf(&b, "[memory] %u recalled",
		       items && items->kind == UAR_JSON_ARRAY ? (unsigned)items->count : 0);
	note(r, UAR_STYLE_DIM, &b);
	uar_buf_fini(&b);
}

/* An export: its label, and its text as far as the event has it. */
static void put_export(struct uar_buf *b, uar_str type, const struct uar_json *data)
{
	const struct uar_json *artifact = uar_json_get(data, UAR_STR("artifact"));
	const struct uar_json *content = uar_json_get(artifact, UAR_STR("content"));
	uar_str text = uar_json_str(content, UAR_STR("")), title = uar_json_text(artifact, "title");
	bool lines = uar_str_find(text, '\n') < text.n;

	uar_buf_add_char(b, '[');
	uar_text_brief(b, type, BRIEF);
	uar_buf_add_str(b, UAR_STR("] "));
	uar_text_brief(b, title, BRIEF);
	if (title.n && text.n)
		uar_buf_add_str(b, lines ? UAR_STR(":\n") : UAR_STR(": "));
	uar_text_clean(b, text, true);
	if (!uar_json_bool(uar_json_get(artifact, UAR_STR("truncated")), false))
		return;
	uar_buf_add_str(b, text.n ? UAR_STR("...  (uar export ") : UAR_STR("  (uar export "));
	uar_text_brief(b, uar_json_text(data, "run_id"), UAR_LIMIT_ID_BYTES);
	uar_buf_add_char(b, ')');
}

static void show_artifact(struct uar_render *r, const struct uar_json *data)
{
	static const char lead[] = "export.";
	const struct uar_json *artifact = uar_json_get(data, UAR_STR("artifact"));
	struct uar_buf b = uar_buf_make(16384);
	uar_str type = uar_json_text(artifact, "artifact_type");

	if (uar_str_starts(type, uar_str_c(lead))) {
		put_export(&b, uar_str_from(type, sizeof lead - 1), data);
	} else {
		uar_buf_add_str(&b, UAR_STR("[artifact] "));
		uar_text_brief(&b, type, BRIEF);
		uar_buf_add_char(&b, ' ');
		uar_text_brief(&b, uar_json_text(artifact, "title"), BRIEF);
	}
	note(r, UAR_STYLE_CYAN, &b);
	uar_buf_fini(&b);
}

static void show_error(struct uar_render *r, const struct uar_json *data)
{
	struct uar_buf b = uar_buf_make(4096);

	uar_buf_add_str(&b, UAR_STR("error: "));
	uar_text_brief(&b, uar_json_text(data, "code"), BRIEF);
	uar_buf_add_str(&b, UAR_STR(": "));
	uar_text_brief(&b, uar_json_text(data, "message"), 4 * BRIEF);
	note(r, UAR_STYLE_RED, &b);
	uar_buf_fini(&b);
}

static void show_start(struct uar_render *r, const struct uar_json *data)
{
	struct uar_buf b = uar_buf_make(4096);

	uar_buf_add_str(&b, UAR_STR("run "));
	uar_text_brief(&b, uar_json_text(data, "run_id"), BRIEF);
	uar_buf_add_str(&b, UAR_STR(" of "));
	uar_text_brief(&b, uar_json_text(data, "agent_id"), BRIEF);
	if (r->frame)
		note(r, UAR_STYLE_DIM, &b);
	uar_buf_fini(&b);
}

/* What was said may look complete, and is not. */
static void show_cut(struct uar_render *r, uar_str reason)
{
	static const struct {
		const char *reason, *text;
	} cuts[] = {
		{ "length", "the model came to the limit of its output" },
		{ "max_tokens", "the model came to the limit of its output" },
		{ "content_filter", "the provider holds back the rest" },
	};
	struct uar_buf b = uar_buf_make(128);

	for (size_t i = 0; i < ARRAY_LEN(cuts); i++)
		if (uar_str_is(reason, cuts[i].reason)) {
			uar_buf_printf(&b, "[cut] %s (%s)", cuts[i].text, cuts[i].reason);
			note(r, UAR_STYLE_YELLOW, &b);
		}
	uar_buf_fini(&b);
}

static void show_done(struct uar_render *r, const struct uar_json *data)
{
	struct uar_buf b = uar_buf_make(64);

	uar_render_rest(r);
	show_cut(r, uar_json_text(data, "finish_reason"));
	uar_buf_add_str(&b, UAR_STR("done"));
	if (r->frame)
		note(r, UAR_STYLE_DIM, &b);
	uar_buf_fini(&b);
}

static void show_progress(struct uar_render *r, const struct uar_json *p)
{
	double value = uar_json_double(uar_json_get(p, UAR_STR("progress")), -1);
	struct uar_buf b = uar_buf_make(1024);
	uar_str phase = uar_json_text(p, "phase");

	uar_render_rest(r);
	if (value >= 0)
		uar_buf_printf(&b, "[%3.0f%%] ", value * 100);
	else if (r->steps)
		uar_buf_add_str(&b, UAR_STR("[status] "));
	uar_text_brief(&b, phase, 30);
	if (phase.n)
		uar_buf_add_char(&b, ' ');
	uar_text_brief(&b, uar_json_text(p, "message"), r->steps ? BRIEF : 60);
	if (r->steps) {
		note(r, UAR_STYLE_DIM, &b);
	} else {
		fprintf(r->notes, "%.*s", UAR_FMT(uar_buf_str(&b)));
		fflush(r->notes);
		r->bar = true;
	}
	uar_buf_fini(&b);
}

static void remember_question(struct uar_render *r, uar_str action_id, uar_str title)
{
	unsigned at = r->asked_next++ % ARRAY_LEN(r->asked);
	struct uar_buf b = uar_buf_make(sizeof r->asked[0].title);

	uar_text_brief(&b, title, BRIEF);
	snprintf(r->asked[at].action_id, sizeof r->asked[at].action_id, "%.*s", UAR_FMT(action_id));
	snprintf(r->asked[at].title, sizeof r->asked[at].title, "%.*s", UAR_FMT(uar_buf_str(&b)));
	uar_buf_fini(&b);
}

/* What was asked, or its number when that was before we began to read. */
static void put_question(const struct uar_render *r, struct uar_buf *b, uar_str action_id)
{
	for (size_t i = 0; i < ARRAY_LEN(r->asked); i++)
		if (uar_str_is(action_id, r->asked[i].action_id)) {
			uar_buf_add_str(b, uar_str_c(r->asked[i].title));
			return;
		}
	uar_buf_add_str(b, UAR_STR("question "));
	uar_text_brief(b, uar_str_from(action_id, uar_str_find(action_id, '.') + 1), 20);
}

/* A question that waits, or how it was answered. */
static void show_action(struct uar_render *r, const struct uar_json *data)
{
	struct uar_buf b = uar_buf_make(4096);
	uar_str title = uar_json_text(data, "title"), id = uar_json_text(data, "action_id");

	if (title.n) {
		remember_question(r, id, title);
		uar_buf_add_str(&b, UAR_STR("[asks] "));
		uar_text_brief(&b, title, BRIEF);
		if (!r->alone) {
			uar_buf_add_str(&b, UAR_STR("  (uar approve "));
			uar_text_brief(&b, uar_json_text(data, "run_id"), UAR_LIMIT_ID_BYTES);
			uar_buf_add_char(&b, ' ');
			uar_text_brief(&b, uar_str_from(id, uar_str_find(id, '.') + 1), 20);
			uar_buf_add_char(&b, ')');
		}
	} else {
		uar_buf_add_str(&b, UAR_STR("[answered] "));
		uar_text_brief(&b, uar_json_text(data, "decision"), 40);
		uar_buf_add_str(&b, UAR_STR(": "));
		put_question(r, &b, id);
	}
	note(r, UAR_STYLE_YELLOW, &b);
	uar_buf_fini(&b);
}

static void show_form(struct uar_render *r, const struct uar_json *data)
{
	struct uar_buf b = uar_buf_make(4096);
	uar_str title = uar_json_text(data, "title"), id = uar_json_text(data, "form_id");

	remember_question(r, id, title);
	uar_buf_add_str(&b, UAR_STR("[asks] "));
	uar_text_brief(&b, title, BRIEF);
	uar_buf_add_str(&b, UAR_STR("  (uar answer "));
	uar_text_brief(&b, uar_json_text(data, "run_id"), UAR_LIMIT_ID_BYTES);
	uar_buf_add_char(&b, ' ');
	uar_text_brief(&b, uar_str_from(id, uar_str_find(id, '.') + 1), 20);
	uar_buf_add_char(&b, ')');
	note(r, UAR_STYLE_YELLOW, &b);
	uar_buf_fini(&b);
}

static void show_navigate(struct uar_render *r, const struct uar_json *data)
{
	struct uar_buf b = uar_buf_make(4096);

	uar_buf_add_str(&b, UAR_STR("[shows] "));
	uar_text_brief(&b, uar_json_text(data, "target"), BRIEF);
	note(r, UAR_STYLE_DIM, &b);
	uar_buf_fini(&b);
}

/* What was printed cannot be taken back, so the reader is told where it counts again. */
static void show_meta(struct uar_render *r, const struct uar_json *data)
{
	const struct uar_json *progress = uar_json_get(data, UAR_STR("progress"));
	const struct uar_json *metadata = uar_json_get(data, UAR_STR("metadata"));
	struct uar_buf b = uar_buf_make(128);

	if (progress && (r->live || r->steps))
		show_progress(r, progress);
	if (uar_json_text(data, "action_id").n)
		show_action(r, data);
	uar_buf_add_str(&b, UAR_STR("[restarted] the answer begins again"));
	if (uar_json_get(metadata, UAR_STR("superseded_bytes")))
		note(r, UAR_STYLE_DIM, &b);
	uar_buf_fini(&b);
}

static void show_nothing(struct uar_render *r, const struct uar_json *data)
{
	(void)r, (void)data;
}

static const struct {
	const char *type;
	void (*show)(struct uar_render *r, const struct uar_json *data);
} kinds[] = {
	{ "ChatDelta", show_chat },	  { "ReasoningDelta", show_reasoning },
	{ "ui.form.request", show_form }, { "ui.navigate", show_navigate },
	{ "ToolStart", show_tool_start }, { "ToolDelta", show_nothing },
	{ "ToolEnd", show_tool_end },	  { "Citation", show_citation },
	{ "MemoryRecall", show_memory },  { "Artifact", show_artifact },
	{ "Error", show_error },	  { "RunStart", show_start },
	{ "RunDone", show_done },	  { "meta", show_meta },
};

void uar_render_event(struct uar_render *r, const struct uar_json *event)
{
	uar_str type = uar_json_text(event, "type");
	struct uar_buf b = uar_buf_make(4096);

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (uar_str_is(type, kinds[i].type)) {
			kinds[i].show(r, uar_json_get(event, UAR_STR("data")));
			return;
		}
	uar_buf_add_str(&b, UAR_STR("["));
	uar_text_brief(&b, type.n ? type : UAR_STR("event"), BRIEF);
	uar_buf_add_str(&b, UAR_STR("] "));
	put_value(&b, type.n ? uar_json_get(event, UAR_STR("data")) : event);
	note(r, UAR_STYLE_DIM, &b);
	uar_buf_fini(&b);
}
