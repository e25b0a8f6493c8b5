/* map_test.c - the recorded streams of real CLIs through the dialects, whole, cut
 * into two at many places, and truncated; the outcome and the events of each. */
#include "backend/cli_test.h"

#include "backend/acp.h"
#include "backend/child.h"
#include "backend/claude.h"
#include "backend/codex.h"
#include "loop/limits.h"

/* --- a world that only remembers --- */

struct world {
	struct seen seen;
	struct uab_port port;
	uaa_kind *kind;
	union {
		struct uab_map map;
		struct uab_claude claude;
		struct uab_codex_exec exec;
	} * m;
	struct uar_arena arena;
	uint64_t digest;
};

static bool keep(void *ctx, struct uaa_event *ev)
{
	struct world *w = ctx;
	uar_str parts[] = { uab_str(ev->channel), uab_str(ev->text), uab_str(ev->message),
			    uab_str(ev->data) };

	w->digest = w->digest * 31 + (uint64_t)ev->kind;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		w->digest = uar_str_hash(parts[i], w->digest);
	if (w->seen.n < (int)ARRAY_LEN(w->seen.ev))
		w->seen.ev[w->seen.n++] = ev;
	else
		uaa_event_unref(ev);
	return true;
}

static void on_emit(void *ctx, const uaa_event_spec *s, bool last)
{
	struct world *w = ctx;

	(void)last;
	uab_event_make(w->kind, s, true, keep, w);
}

static void on_send(void *ctx, uar_str bytes)
{
	(void)ctx, (void)bytes;
}

static bool on_ask(void *ctx, const struct uab_ask *a)
{
	(void)ctx, (void)a;
	return false;
}

static struct world *world_new(bool codex)
{
	struct world *w = calloc(1, sizeof *w);

	w->m = calloc(1, sizeof *w->m);
	w->port = (struct uab_port){ w, on_emit, on_send, on_ask };
	uaa_kind_new(uaa_str_c(codex ? "codex" : "claude_code"), &w->kind, NULL);
	uar_arena_init(&w->arena, 0);
	uab_map_init(&w->m->map, codex ? &uab_codex_exec_dialect : &uab_claude_oneshot, &w->port,
		     codex ? "codex" : "claude_code");
	if (codex)
		w->m->exec.fresh = true;
	return w;
}

static void world_free(struct world *w)
{
	for (int i = 0; i < w->seen.n; i++)
		uaa_event_unref(w->seen.ev[i]);
	uab_map_fini(&w->m->map);
	uar_arena_fini(&w->arena);
	uaa_kind_unref(w->kind);
	free(w->m);
	free(w);
}

static void line(void *ctx, char *p, size_t n)
{
	struct world *w = ctx;

	uab_map_line(&w->m->map, p, n, &w->arena);
}

static void too_long(void *ctx, uint64_t bytes)
{
	struct world *w = ctx;

	uab_map_too_long(&w->m->map, bytes);
}

/* The first `n` bytes in two pieces, then the end. */
static struct world *feed(bool codex, uar_str text, size_t cut, size_t n)
{
	struct world *w = world_new(codex);
	struct uab_lines l;
	char *copy = malloc(n + 1);

	memcpy(copy, text.p, n);
	uab_lines_init(&l, UAR_LIMIT_AGENT_LINE);
	l.line = line;
	l.too_long = too_long;
	l.ctx = w;
	uab_lines_feed(&l, copy, cut < n ? cut : n);
	uab_lines_feed(&l, copy + (cut < n ? cut : n), cut < n ? n - cut : 0);
	uab_lines_end(&l);
	uab_lines_fini(&l);
	free(copy);
	return w;
}

static uar_str slurp(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *p = malloc(1 << 20);
	size_t n = f ? fread(p, 1, 1 << 20, f) : 0;

	CHECK_MSG(f != NULL, "no fixture %s", path);
	if (f)
		fclose(f);
	return uar_str_n(p, n);
}

/* --- what each recording means --- */

static const struct expected {
	const char *file, *error; /* NULL: success */
	const char *text, *final; /* NULL: not looked at; "" and NULL final: absent */
	int calls, results;	  /* -1: not looked at */
	bool open;		  /* nothing decided at the end of the stream */
} table[] = {
	{ "claude_code/hello.jsonl", NULL, "hello", "hello", 0, 0, false },
	{ "claude_code/hello_stdin_prompt.jsonl", NULL, "hello", "hello", 0, 0, false },
	{ "claude_code/tool_call.jsonl", NULL, "I will run a command.The command finished.",
	  "The command finished.", 1, 1, false },
	{ "claude_code/tool_call_partial.jsonl", NULL, "I will run a command.The command finished.",
	  "The command finished.", 1, 1, false },
	{ "claude_code/tool_fail.jsonl", NULL, "The command finished.", "The command finished.", 1,
	  1, false },
	{ "claude_code/tool_denied.jsonl", NULL, NULL, NULL, 1, 1, false },
	{ "claude_code/thinking_partial.jsonl", NULL, "hello", "hello", 0, 0, false },
	{ "claude_code/big_text.jsonl", NULL, NULL, NULL, 0, 0, false },
	{ "claude_code/background_tool.jsonl", NULL, NULL, NULL, 1, 1, false },
	{ "claude_code/unicode.jsonl", NULL,
	  "h\xC3\xA9llo \xF0\x9F\x92\x96 \xE2\x80\xA8 line \xEF\xBF\xBD? end", NULL, 0, 0, false },
	{ "claude_code/error_400.jsonl", "provider error: http=400", "", NULL, 0, 0, false },
	{ "claude_code/error_401.jsonl", "authentication failed", "", NULL, 0, 0, false },
	{ "claude_code/error_404_model.jsonl", "model rejected by runtime (details redacted)", "",
	  NULL, 0, 0, false },
	{ "claude_code/error_500_retries.jsonl", "provider error: http=500", "", NULL, 0, 0,
	  false },
	{ "claude_code/stream_cut.jsonl", NULL, NULL, NULL, 0, 0, false },
	{ "claude_code/max_turns.jsonl", "max turns reached", NULL, NULL, -1, -1, false },
	{ "claude_code/session_first.jsonl", NULL, "hello", "hello", 0, 0, false },
	{ "claude_code/resume_id.jsonl", NULL, "hello", "hello", 0, 0, false },
	{ "claude_code/resume_last.jsonl", NULL, "hello", "hello", 0, 0, false },
	{ "claude_code/fork_id.jsonl", NULL, "hello", "hello", 0, 0, false },
	{ "claude_code/resume_id_not_found.jsonl", "no session found", "", NULL, 0, 0, false },
	{ "claude_code/cancel_sigint_stream.jsonl",
	  "claude_code backend error: turn failed (details redacted)", NULL, NULL, 0, 0, false },
	{ "claude_code/cancel_sigint_tool.jsonl",
	  "claude_code backend error: turn failed (details redacted)", NULL, NULL, 1, 1, false },
	{ "claude_code/cancel_sigint_waiting.jsonl", NULL, NULL, NULL, 0, 0, true },
	{ "claude_code/cancel_sigkill_tool.jsonl", NULL, NULL, NULL, 1, 0, true },
	{ "claude_code/cancel_sigterm_stream.jsonl", NULL, NULL, NULL, 0, 0, true },
	{ "claude_code/cancel_sigterm_tool.jsonl", NULL, NULL, NULL, -1, -1, true },
	{ "claude_code/cancel_sigterm_waiting.jsonl", NULL, NULL, NULL, 0, 0, true },
	{ "claude_code/truncated_slow_reader.jsonl", NULL, NULL, NULL, -1, -1, true },
	{ "codex/hello.jsonl", NULL, "hello", "hello", 0, 0, false },
	{ "codex/tool_call.jsonl", NULL, "I will run a command.The command finished.",
	  "The command finished.", 1, 1, false },
	{ "codex/tool_fail.jsonl", NULL, "The command finished.", "The command finished.", 1, 1,
	  false },
	{ "codex/file_change.jsonl", NULL, "The command finished.", NULL, 1, 1, false },
	{ "codex/file_change_denied_readonly.jsonl", NULL, NULL, NULL, -1, -1, false },
	{ "codex/mcp_tool_call.jsonl", NULL, "The command finished.", NULL, 1, 1, false },
	{ "codex/background_tool.jsonl", NULL, NULL, NULL, 1, 1, false },
	{ "codex/unicode.jsonl", NULL, "h\xC3\xA9llo \xF0\x9F\x92\x96 \xE2\x80\xA8 line end", NULL,
	  0, 0, false },
	{ "codex/big_text.jsonl", NULL, NULL, NULL, 0, 0, false },
	{ "codex/error_400.jsonl", "codex backend error: turn failed (details redacted)", "", NULL,
	  0, 0, false },
	{ "codex/error_401.jsonl", "authentication failed", "", NULL, 0, 0, false },
	{ "codex/error_404_model.jsonl", "codex backend error: turn failed (details redacted)", "",
	  NULL, 0, 0, false },
	{ "codex/error_500.jsonl", "codex backend error: turn failed (details redacted)", "", NULL,
	  0, 0, false },
	{ "codex/rate_limited.jsonl", "codex backend error: turn failed (details redacted)", "",
	  NULL, 0, 0, false },
	{ "codex/stream_cut_reconnect.jsonl", "codex backend error: turn failed (details redacted)",
	  NULL, NULL, 0, 0, false },
	{ "codex/resume_id.jsonl", NULL, "hello", "hello", 0, 0, false },
	{ "codex/fork_id.jsonl", NULL, "hello", "hello", 0, 0, false },
	{ "codex/cancel_sigint_stream.jsonl", NULL, NULL, NULL, 0, 0, true },
	{ "codex/cancel_sigkill_tool.jsonl", NULL, NULL, NULL, 1, 0, true },
	{ "codex/cancel_sigterm_tool.jsonl", NULL, NULL, NULL, 1, 0, true },
};

static bool is_codex(const struct expected *e)
{
	return e->file[0] == 'c' && e->file[1] == 'o';
}

static void check_outcome(const struct expected *e, struct world *w)
{
	struct uab_map *m = &w->m->map;
	struct uar_buf text = uar_buf_make(1 << 20);

	CHECK_MSG(m->outcome == (e->open    ? UAB_OPEN
				 : e->error ? UAB_FAILED
					    : UAB_DONE),
		  "%s: outcome %d (%s)", e->file, (int)m->outcome, m->error);
	if (e->error)
		CHECK_STR(uar_str_c(m->error), e->error);
	if (e->text)
		CHECK_STR(all_text(&w->seen, &text), e->text);
	if (e->final)
		CHECK_STR(uar_buf_str(&m->final), e->final);
	CHECK_MSG(!e->error || !m->has_final, "%s: a failed run has a final text", e->file);
	if (e->calls >= 0)
		CHECK_MSG(count(&w->seen, UAA_EV_TOOL_CALL, NULL) == e->calls, "%s: %d calls",
			  e->file, count(&w->seen, UAA_EV_TOOL_CALL, NULL));
	if (e->results >= 0)
		CHECK_MSG(count(&w->seen, UAA_EV_TOOL_RESULT, NULL) == e->results, "%s: %d results",
			  e->file, count(&w->seen, UAA_EV_TOOL_RESULT, NULL));
	CHECK_MSG(with_session(&w->seen, NULL) == (strstr(e->file, "not_found") ? 0 : 1),
		  "%s: session told %d times", e->file, with_session(&w->seen, NULL));
	uar_buf_fini(&text);
}

TEST(U10_U11_U12_U13_U14_S06_S07_S08_recordings, "LIB-39 LIB-40 LIB-41 LIB-42 LIB-43 LIB-21 LIB-22")
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		uar_str text = slurp(fixture(table[i].file));
		struct world *w = feed(is_codex(&table[i]), text, text.n, text.n);

		for (int k = 0; k < w->seen.n; k++)
			check_event(w->seen.ev[k]);
		check_outcome(&table[i], w);
		world_free(w);
		free((char *)text.p);
	}
}

TEST(every_cut_gives_the_same_events, "")
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		uar_str text = slurp(fixture(table[i].file));
		bool codex = is_codex(&table[i]);
		struct world *whole = feed(codex, text, text.n, text.n);
		/* small ones at every byte, large ones at some hundred */
		size_t step = text.n < 3000 ? 1 : text.n / 300;

		for (size_t cut = 0; cut <= text.n; cut += step) {
			struct world *w = feed(codex, text, cut, text.n);

			if (w->digest != whole->digest)
				uar_test_fail(__FILE__, __LINE__, "%s cut at %zu differs",
					      table[i].file, cut);
			world_free(w);
		}
		world_free(whole);
		free((char *)text.p);
	}
}

/* Success needs the whole terminal record: no shorter prefix may have it. */
TEST(P16_a_truncated_stream_is_never_a_success, "LIB-22")
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		uar_str text = slurp(fixture(table[i].file));
		size_t n = text.n, step = n / 100 + 1;

		while (n && text.p[n - 1] == '\n')
			n--;
		for (size_t cut = 0; !table[i].open && cut<n; cut += n - cut> 80 ? step : 1) {
			struct world *w = feed(is_codex(&table[i]), text, cut, cut);

			if (table[i].error && w->m->map.has_final && w->m->map.outcome != UAB_OPEN)
				uar_test_fail(__FILE__, __LINE__, "%s: a final text of an error",
					      table[i].file);
			if (w->m->map.outcome == UAB_DONE && !strstr(table[i].file, "background"))
				uar_test_fail(__FILE__, __LINE__,
					      "%s: success after %zu of %zu bytes", table[i].file,
					      cut, n);
			world_free(w);
		}
		free((char *)text.p);
	}
}

/* --- single messages --- */

static struct world *one(bool codex, const char *text)
{
	return feed(codex, uar_str_c(text), 0, strlen(text));
}

TEST(S09_what_is_not_known_is_unknown, "")
{
	struct world *w =
		one(false, "{\"type\":\"from_the_future\",\"x\":\"SECRET\"}\n"
			   "{\"type\":\"system\",\"subtype\":\"SECRET!\"}\n{}\n"
			   "{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":["
			   "{\"type\":\"hologram\",\"text\":\"SECRET\"}]}}\n"
			   "{\"type\":7}\n");

	CHECK_INT(count(&w->seen, UAA_EV_UNKNOWN, NULL), 5);
	CHECK_INT(w->seen.n, 5);
	for (int i = 0; i < w->seen.n; i++)
		check_event(w->seen.ev[i]);
	world_free(w);
	w = one(true, "{\"type\":\"later.kind\"}\n{\"type\":\"item.completed\",\"item\":{\"type\":"
		      "\"new\",\"text\":\"SECRET\"}}\n{\"x\":\"SECRET\"}\n");
	CHECK_INT(count(&w->seen, UAA_EV_UNKNOWN, NULL), 3);
	CHECK_INT(w->seen.n, 3);
	for (int i = 0; i < w->seen.n; i++)
		check_event(w->seen.ev[i]);
	world_free(w);
}

/* Everything a tool was given or gave, and everything a CLI remarks, says SECRET. */
TEST(S06_S08_payload_stays_out, "LIB-41 LIB-43")
{
	static const char *const streams[] = {
		"{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[{\"type\":\"tool_"
		"use\","
		"\"id\":\"t\",\"name\":\"Bash\",\"input\":{\"command\":\"SECRET\"}},"
		"{\"type\":\"thinking\",\"thinking\":\"SECRET\"}]}}\n"
		"{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_"
		"id\":"
		"\"t\",\"content\":\"SECRET\"}]},\"tool_use_result\":{\"stdout\":\"SECRET\","
		"\"stderr\":"
		"\"SECRET\"}}\n"
		"{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_"
		"id\":"
		"\"u\",\"is_error\":true,\"content\":[{\"type\":\"text\",\"text\":\"SECRET\"}]}]}}"
		"\n"
		"{\"type\":\"user\",\"message\":{\"content\":\"SECRET\"}}\n"
		"{\"type\":\"system\",\"subtype\":\"api_retry\",\"error\":\"SECRET\",\"message\":"
		"\"SECRET\"}\n"
		"{\"type\":\"system\",\"subtype\":\"informational\",\"content\":\"SECRET\"}\n"
		"{\"type\":\"system\",\"subtype\":\"permission_denied\",\"message\":\"SECRET\"}\n"
		"{\"type\":\"system\",\"subtype\":\"other_name\",\"error\":\"SECRET\",\"text\":"
		"\"SECRET\"}\n"
		"{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"x\":\"SECRET\"}}\n",
		"{\"type\":\"item.started\",\"item\":{\"id\":\"t\",\"type\":\"command_execution\","
		"\"command\":\"SECRET\"}}\n"
		"{\"type\":\"item.completed\",\"item\":{\"id\":\"t\",\"type\":\"command_"
		"execution\","
		"\"command\":\"SECRET\",\"aggregated_output\":\"SECRET\",\"exit_code\":0}}\n"
		"{\"type\":\"item.completed\",\"item\":{\"id\":\"f\",\"type\":\"file_change\","
		"\"changes\":[{\"path\":\"SECRET\",\"kind\":\"add\"}]}}\n"
		"{\"type\":\"item.completed\",\"item\":{\"id\":\"c\",\"type\":\"mcp_tool_call\","
		"\"tool\":\"t\",\"arguments\":{\"a\":\"SECRET\"},\"error\":{\"message\":\"SECRET\"}"
		","
		"\"result\":{\"content\":[{\"text\":\"SECRET\"}]}}}\n"
		"{\"type\":\"item.completed\",\"item\":{\"id\":\"s\",\"type\":\"web_search\","
		"\"query\":\"SECRET\"}}\n"
		"{\"type\":\"item.completed\",\"item\":{\"id\":\"r\",\"type\":\"reasoning\","
		"\"text\":\"SECRET\"}}\n"
		"{\"type\":\"item.completed\",\"item\":{\"id\":\"l\",\"type\":\"todo_list\","
		"\"items\":[{\"text\":\"SECRET\"}]}}\n"
		"{\"type\":\"item.completed\",\"item\":{\"id\":\"e\",\"type\":\"error\","
		"\"message\":\"SECRET\"}}\n"
		"{\"type\":\"error\",\"message\":\"SECRET\"}\n",
	};

	for (int i = 0; i < 2; i++) {
		struct world *w = one(i, streams[i]);

		CHECK(count(&w->seen, UAA_EV_TOOL_CALL, NULL) >= 1);
		CHECK_INT(count(&w->seen, UAA_EV_TOOL_RESULT, NULL), i ? 4 : 2);
		CHECK_INT(count(&w->seen, UAA_EV_TEXT_OUTPUT, NULL), 0);
		for (int k = 0; k < w->seen.n; k++)
			check_event(w->seen.ev[k]);
		world_free(w);
	}
}

/* A name so long that the facet is too large: the whole of it is replaced. */
TEST(S04_a_facet_too_large_is_replaced, "LIB-43")
{
	static char text[70100];

	for (int n = 60000; n <= 70000; n += 10000) {
		int at = snprintf(text, sizeof text,
				  "{\"type\":\"item.started\",\"item\":{\"id\":\"t\",\"type\":"
				  "\"mcp_tool_call\",\"tool\":\"");
		struct world *w;

		memset(text + at, 'x', (size_t)(n - at));
		snprintf(text + n, sizeof text - (size_t)n, "\"}}\n");
		w = one(true, text);
		CHECK_INT(w->seen.n, 1);
		if (n == 60000)
			check_event(w->seen.ev[0]);
		else
			CHECK_STR(uab_str(uaa_event_data_json(w->seen.ev[0])),
				  "{\"dropped\":{\"reason\":\"oversize\"}}");
		world_free(w);
	}
}

TEST(H01_H03_session_ids, "")
{
	static char text[4096];
	struct world *w;

	w = one(true, "{\"type\":\"thread.started\",\"thread_id\":\"  \"}\n"
		      "{\"type\":\"thread.started\",\"thread_id\":\" a \"}\n"
		      "{\"type\":\"thread.started\",\"thread_id\":\"b\"}\n");
	CHECK_INT(with_session(&w->seen, "a"), 1);
	CHECK_STR(uar_str_c(w->m->map.session), "a");
	world_free(w);
	for (int n = 1024; n <= 1025; n++) {
		int at = snprintf(text, sizeof text,
				  "{\"type\":\"thread.started\",\"thread_id\":\"");
		struct uar_buf twice = uar_buf_make(8192), data = uar_buf_make(8192);

		memset(text + at, 'x', (size_t)n);
		snprintf(text + at + n, sizeof text - (size_t)(at + n), "\"}\n");
		uar_buf_printf(&twice, "%s%s", text, text);
		w = feed(true, uar_buf_str(&twice), 0, twice.n);
		CHECK_INT(with_session(&w->seen, NULL), n == 1024);
		CHECK_INT(count(&w->seen, UAA_EV_STATUS, "session id too long"), n == 1025);
		/* whole in both places or in none */
		CHECK(uab_completion_data(&w->m->map, &data) == (n == 1024));
		text[at + n] = 0;
		if (n == 1024) {
			CHECK_INT(with_session(&w->seen, text + at), 1);
			CHECK(contains(uab_pub(uar_buf_str(&data)), text + at));
		}
		uar_buf_fini(&data);
		uar_buf_fini(&twice);
		world_free(w);
	}
}

TEST(open_tool_calls_are_closed_at_the_end, "")
{
	struct world *w = one(true, "{\"type\":\"item.started\",\"item\":{\"id\":\"i1\",\"type\":"
				    "\"command_execution\"}}\n{\"type\":\"turn.completed\"}\n");

	CHECK_INT(count(&w->seen, UAA_EV_TOOL_CALL, NULL), 1);
	CHECK_INT(count(&w->seen, UAA_EV_TOOL_RESULT, NULL), 1);
	CHECK(contains(uaa_event_data_json(w->seen.ev[1]), "\"status\":\"unknown\""));
	world_free(w);
}

TEST(lone_surrogates_do_not_break_a_line, "")
{
	struct world *w = one(true, "{\"type\":\"item.completed\",\"item\":{\"type\":"
				    "\"agent_message\",\"text\":\"a\\ud83d!\"}}\n");
	struct uar_buf b = uar_buf_make(100);

	CHECK_STR(all_text(&w->seen, &b), "a\xEF\xBF\xBD!");
	uar_buf_fini(&b);
	world_free(w);
}

TEST(subagents_do_not_speak_for_the_agent, "")
{
	struct world *w =
		one(false, "{\"type\":\"assistant\",\"parent_tool_use_id\":\"t\",\"message\":{"
			   "\"id\":\"m\",\"content\":[{\"type\":\"text\",\"text\":\"inner\"}]}}\n");

	CHECK_INT(count(&w->seen, UAA_EV_TEXT_OUTPUT, NULL), 0);
	world_free(w);
}
