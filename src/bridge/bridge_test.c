/* bridge_test.c - recorded agents, replayed by the fake CLI, as the runtime hears them. */
#include "bridge/bridge.h"

#include "test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

extern char **environ;

struct scene {
	char dir[64];
	struct uar_registry *registry;
	struct uar_loop *loop;
	struct uar_bridge *bridge;
	struct uar_agents *port;
	struct uar_agent_call *call;
	struct uar_buf heard;
	enum uar_verdict verdict; /* answer to what is asked */
	size_t pause_after;	  /* so many callbacks; 0: never */
	size_t count;
	bool done, cancel_on_ask;
};

static void heard(struct scene *s)
{
	if (s->call && ++s->count == s->pause_after)
		s->port->ops->pause(s->call, true), uar_loop_stop(s->loop);
}

static void on_text(void *ctx, uar_str delta)
{
	struct scene *s = ctx;

	uar_buf_printf(&s->heard, "\"%.*s\" ", UAR_FMT(delta));
	heard(s);
}

static void on_tool(void *ctx, const struct uar_tool_report *t)
{
	struct scene *s = ctx;

	CHECK(uar_str_is_id(t->call_id));
	uar_buf_printf(&s->heard, "%c%.*s%s ", "+~=!"[t->step],
		       UAR_FMT(t->name.n ? t->name : t->kind), t -> denied ? "(denied)" : "");
	heard(s);
}

static void on_note(void *ctx, const struct uar_note *n)
{
	static const char *const names[] = { "phase", "plan", "warning", "limit", "denied", "cut" };
	struct scene *s = ctx;

	uar_buf_printf(&s->heard, "%s%s%.*s ", names[n->kind], n->code.n ? ":" : "",
		       UAR_FMT(n->code));
	heard(s);
}

static void on_session(void *ctx, uar_str id)
{
	struct scene *s = ctx;

	uar_buf_printf(&s->heard, "session%s ", id.n > 8 ? "" : "?");
	heard(s);
}

static void on_ask(void *ctx, const struct uar_ask *a)
{
	struct scene *s = ctx;

	uar_buf_printf(&s->heard, "ask:%.*s:%s ", UAR_FMT(a->kind),
		       a->verdict == UAR_VERDICT_ASK	 ? "person"
		       : a->verdict == UAR_VERDICT_ALLOW ? "allow"
							 : "deny");
	CHECK(a->prompt.n && a->input.n && a->input_bytes == (int64_t)a->input.n);
	if (s->cancel_on_ask) {
		s->port->ops->cancel(s->call);
		return;
	}
	CHECK_INT(s->port->ops->respond(s->call, a->id,
					a->verdict == UAR_VERDICT_ASK ? s->verdict : a->verdict),
		  UAR_OK);
	CHECK_INT(s->port->ops->respond(s->call, a->id, UAR_VERDICT_DENY), UAR_ENOTFOUND);
}

static void on_done(void *ctx, const struct uar_agent_end *end)
{
	struct scene *s = ctx;

	s->call = NULL;
	s->done = true;
	if (end->how == UAR_AGENT_BROKE)
		uar_buf_printf(&s->heard, "broke:%.*s", UAR_FMT(end->code));
	else
		uar_buf_printf(&s->heard, "%s",
			       end->how == UAR_AGENT_FINISHED ? "finished" : "stopped");
	if (end->how == UAR_AGENT_FINISHED && end->input_tokens < 0)
		uar_buf_printf(&s->heard, " without usage");
	uar_loop_stop(s->loop);
}

static void write_definition(struct scene *s, const char *entry, const char *script)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof path, "%s/x.json", s->dir);
	f = fopen(path, "w");
	REQUIRE(f != NULL);
	fprintf(f,
		"{\"version\":\"1.0\",\"kind\":\"agent\",\"id\":\"x\",\"runtime\":{\"entry\":"
		"\"backend.%s\",\"backend\":{\"program\":\"%s\",\"working_dir\":\"%s\",\"env\":{"
		"\"FAKE_DO\":\"%s\"}%s}}}",
		entry, uar_test_built("fake-cli"), s->dir, script,
		strcmp(entry, "codex") ? "" : ",\"transport\":\"app-server\"");
	fclose(f);
}

static void no_note(void *ctx, const struct uar_registry_note *n)
{
	struct scene *s = ctx;

	if (strcmp(n->what, "agent.loaded") != 0)
		uar_buf_printf(&s->heard, "%s: %.*s", n->what, UAR_FMT(n->text));
}

static void open_scene(struct scene *s, const char *entry, const char *script)
{
	struct uar_bridge_options o = { .env = environ, .note = no_note, .ctx = s };
	struct uar_registry_options registry = { .note = no_note, .ctx = s };
	struct uar_error error = { 0 };

	*s = (struct scene){ .verdict = UAR_VERDICT_ALLOW };
	setenv("AGENT_API_SUPERVISOR", uar_test_built("agent-api-supervisor"), 1);
	snprintf(s->dir, sizeof s->dir, "/tmp/uar-bridge-XXXXXX");
	REQUIRE(mkdtemp(s->dir) != NULL);
	s->heard = uar_buf_make(1 << 20);
	write_definition(s, entry, script);
	REQUIRE(uar_loop_create(&uar_clock_system, &s->loop) == UAR_OK);
	o.loop = s->loop;
	REQUIRE(uar_registry_create(&registry, &s->registry) == UAR_OK);
	REQUIRE(uar_registry_read_dir(s->registry, s->dir, &error) == UAR_OK);
	o.registry = s->registry;
	REQUIRE(uar_bridge_create(&o, &s->bridge) == UAR_OK);
	s->port = uar_bridge_agents(s->bridge);
}

static void close_scene(struct scene *s)
{
	char path[128];

	uar_bridge_destroy(s->bridge);
	uar_registry_destroy(s->registry);
	uar_loop_destroy(s->loop);
	snprintf(path, sizeof path, "%s/x.json", s->dir);
	unlink(path);
	rmdir(s->dir);
	uar_buf_fini(&s->heard);
}

static void begin(struct scene *s)
{
	struct uar_agent_events events = {
		on_text, on_tool, on_note, on_session, on_ask, on_done, s
	};
	struct uar_agent_request r = { .agent_id = UAR_STR("x"), .prompt = UAR_STR("hi") };
	struct uar_error error = { 0 };
	uar_err e = s->port->ops->start(s->port, &r, &events, &s->call, &error);

	CHECK_MSG(!e, "%s", error.text);
}

static void play(struct scene *s)
{
	begin(s);
	while (!s->done)
		uar_loop_run(s->loop);
}

static const char *replay(const char *how, const char *name)
{
	static char script[1400];
	char cwd[1024];

	CHECK(getcwd(cwd, sizeof cwd) != NULL);
	snprintf(script, sizeof script, "%s %s/tests/fixtures/backend/%s", how, cwd, name);
	return script;
}

#define CODEX_BEGINS "phase:backend warning:BACKEND_WARNING session warning:BACKEND_WARNING "
#define ANNOUNCED    "\"I will \" \"run a c\" \"ommand.\" "
#define ANSWERED     "\"The com\" \"mand fi\" \"nished.\" "

TEST(recorded_agents_are_told_in_order, "")
{
	static const struct {
		const char *entry, *how, *name;
		enum uar_verdict verdict;
		const char *want;
	} cases[] = {
		{ "claude_code", "dialogue", "claude_code/dialogue_permission_allow.dialogue.jsonl",
		  UAR_VERDICT_ALLOW,
		  "session phase:backend +Write ask:tool:person =Write \"The command finished.\" "
		  "finished" },
		{ "claude_code", "dialogue", "claude_code/dialogue_permission_deny.dialogue.jsonl",
		  UAR_VERDICT_DENY,
		  "session phase:backend +Write ask:tool:person !Write(denied) "
		  "\"The command finished.\" finished" },
		{ "codex", "dialogue", "codex/app_server_approval_accept.dialogue.jsonl",
		  UAR_VERDICT_ALLOW,
		  CODEX_BEGINS "phase:reasoning " ANNOUNCED "+command_execution ask:command:person "
			       "=command_execution limit " ANSWERED "limit finished" },
		{ "codex", "dialogue", "codex/app_server_approval_decline.dialogue.jsonl",
		  UAR_VERDICT_DENY,
		  CODEX_BEGINS "phase:reasoning " ANNOUNCED "+command_execution ask:command:person "
			       "!command_execution(denied) limit " ANSWERED "limit finished" },
		{ "codex", "dialogue", "codex/app_server_tool_call.dialogue.jsonl",
		  UAR_VERDICT_ALLOW,
		  CODEX_BEGINS "phase:reasoning " ANNOUNCED
			       "+command_execution =command_execution limit " ANSWERED
			       "limit finished" },
		{ "codex", "dialogue", "codex/app_server_error_401.dialogue.jsonl",
		  UAR_VERDICT_ALLOW, CODEX_BEGINS "broke:PROVIDER_ERROR" },
		{ "acp", "dialogue", "acp/claude_permission_allow.dialogue.jsonl",
		  UAR_VERDICT_ALLOW,
		  "phase:backend session +Write ask:tool:person =Write " ANSWERED "finished" },
		{ "acp", "dialogue", "acp/claude_tool_call.dialogue.jsonl", UAR_VERDICT_ALLOW,
		  "phase:backend session " ANNOUNCED "+Bash =Bash " ANSWERED "finished" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct scene s;

		open_scene(&s, cases[i].entry, replay(cases[i].how, cases[i].name));
		s.verdict = cases[i].verdict;
		play(&s);
		CHECK_STR(uar_buf_str(&s.heard), cases[i].want);
		close_scene(&s);
	}
}

#define TALK                                                                                       \
	"expect initialize\\nline {\\\"type\\\":\\\"control_response\\\",\\\"response\\\":{"       \
	"\\\"subtype\\\":\\\"success\\\",\\\"request_id\\\":\\\"init1\\\",\\\"response\\\":{}}}"   \
	"\\nexpect user\\n"
#define ASK                                                                                        \
	"line "                                                                                    \
	"{\\\"type\\\":\\\"control_request\\\",\\\"request_id\\\":\\\"r1\\\",\\\"request\\\":{"    \
	"\\\"subtype\\\":\\\"can_use_tool\\\",\\\"tool_name\\\":\\\"Bash\\\",\\\"input\\\":{"      \
	"\\\"command\\\":\\\"ls\\\"}}}\\n"

TEST(a_cancel_is_done_when_the_processes_are_gone, "")
{
	struct scene s;

	open_scene(&s, "claude_code", TALK ASK "escape\\nhang");
	s.cancel_on_ask = true;
	play(&s);
	CHECK_STR(uar_buf_str(&s.heard), "ask:tool:person stopped");
	close_scene(&s);
}

TEST(what_is_held_back_comes_later_and_whole, "")
{
	struct scene s;
	size_t quotes = 0;

	open_scene(&s, "claude_code", TALK "burst 5000\\nresult");
	s.pause_after = 100;
	begin(&s);
	uar_loop_run(s.loop);
	CHECK_INT(s.count, 100);
	s.port->ops->pause(s.call, false);
	while (!s.done)
		uar_loop_run(s.loop);
	for (size_t i = 0; i < s.heard.n; i++)
		quotes += s.heard.p[i] == '"';
	CHECK_INT(quotes, 10000);
	CHECK(uar_str_ends(uar_buf_str(&s.heard), UAR_STR("\"4999\" finished without usage")));
	close_scene(&s);
}

TEST(an_id_that_events_cannot_carry_gets_another_name, "")
{
	static const char use[] =
		"line {\\\"type\\\":\\\"assistant\\\",\\\"message\\\":{\\\"id\\\":\\\"m\\\","
		"\\\"content\\\":[{\\\"type\\\":\\\"tool_use\\\",\\\"id\\\":\\\"a b \xc3\xa4\\\","
		"\\\"name\\\":\\\"Bash\\\",\\\"input\\\":{}}]}}\\n";
	char script[2000];
	struct scene s;

	snprintf(script, sizeof script, "%s%sresult", TALK, use);
	open_scene(&s, "claude_code", script);
	play(&s);
	CHECK_STR(uar_buf_str(&s.heard), "+Bash !Bash finished without usage");
	close_scene(&s);
}

TEST(errors_that_end_nothing_are_warnings, "")
{
	struct scene s;

	open_scene(&s, "claude_code", TALK "line not json\\nresult");
	play(&s);
	CHECK_STR(uar_buf_str(&s.heard), "warning:BACKEND_ERROR cut finished without usage");
	close_scene(&s);
	open_scene(&s, "claude_code", TALK "exit 3");
	play(&s);
	CHECK_STR(uar_buf_str(&s.heard), "broke:TRANSPORT_ERROR");
	close_scene(&s);
}

TEST(who_is_stopped_says_nothing_more, "")
{
	struct scene s;

	open_scene(&s, "claude_code", TALK ASK "ignoreterm\\nhang");
	begin(&s);
	s.port->ops->stop(s.call); /* destroy waits for its processes */
	s.call = NULL;
	CHECK_INT(s.heard.n, 0);
	close_scene(&s);
	open_scene(&s, "claude_code", TALK "hang");
	begin(&s);
	close_scene(&s); /* with a call that nobody has ended */
}

TEST(a_definition_that_is_wrong_is_named, "")
{
	struct scene s;

	open_scene(&s, "nonsense", "");
	CHECK(uar_str_starts(uar_buf_str(&s.heard), UAR_STR("agent.refused: ")));
	CHECK(strstr(s.heard.p, ".json:1 /runtime/entry"));
	CHECK(s.port->ops->at(s.port, 0) == NULL);
	close_scene(&s);
}
