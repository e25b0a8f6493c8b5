/* story.h - a run told command by command, the way the shell does it.
 *
 * Decides on copies, keeps them when the engine agreed, and remembers every
 * event, so that a test can look at the whole log. Clock and ids repeat. Inline,
 * because fuzz targets use it too. */
#ifndef UAR_TEST_STORY_H
#define UAR_TEST_STORY_H

#include "base/alloc.h"
#include "core/core.h"
#include "event/sizes.h"

enum { STORY_EVENTS = 4096 };
#define STORY_SHA256 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct story {
	struct uar_clock clock;
	struct uar_rand_seeded seeded;
	struct uar_rand rand;
	struct uar_uuid ids;
	int64_t now_us;
	struct uar_arena arena; /* of every event ever made */
	struct uar_buf buf;
	struct uar_session s;
	struct uar_run r;
	struct uar_event *log;
	size_t count;
	size_t last;		/* where the events of the last command begin */
	struct uar_decision d;	/* of the last command */
	struct uar_error error; /* why it was refused */
};

static inline int64_t story_now(void *ctx)
{
	return ((struct story *)ctx)->now_us;
}

static inline void story_init(struct story *t, uint64_t seed)
{
	static const struct uar_owner owner = { UAR_STR("acme"), UAR_STR("main"), UAR_STR("ann") };

	*t = (struct story){ .now_us = 1700000000000000 };
	t->clock = (struct uar_clock){ story_now, story_now, t };
	t->rand = uar_rand_seed(&t->seeded, seed);
	uar_uuid_init(&t->ids, &t->clock, &t->rand);
	uar_arena_init(&t->arena, 0);
	t->buf = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	t->log = uar_alloc(STORY_EVENTS * sizeof *t->log);
	uar_session_init(&t->s, &owner, UAR_STR("0190b4a0-0000-7000-8000-000000000001"),
			 UAR_STR("0190b4a0-0000-7000-8000-000000000002"));
	uar_run_init(&t->r);
}

static inline void story_fini(struct story *t)
{
	uar_run_fini(&t->r);
	uar_arena_fini(&t->arena);
	uar_buf_fini(&t->buf);
	uar_free(t->log);
}

/* One command a millisecond. Whatever is refused or fails changes nothing. */
static inline uar_err story_tell(struct story *t, const struct uar_command *c)
{
	struct uar_core_env env = { t->now_us += 1000, &t->ids, &t->arena, &t->buf, NULL, NULL };
	struct uar_session s = t->s;
	struct uar_run r;
	bool made = t->r.turn != UAR_TURN_NONE;
	uar_err e;

	t->d = (struct uar_decision){ 0 };
	t->error = (struct uar_error){ 0 };
	uar_run_init(&r);
	e = uar_run_copy(&r, &t->r);
	if (!e)
		e = uar_core_decide(&env, &s, &r, c, &t->d, &t->error);
	if (!e && t->count + t->d.event_count > STORY_EVENTS)
		e = UAR_ETOOBIG;
	if (e) {
		if (made)
			uar_run_copy_fini(&r);
		else
			uar_run_fini(&r);
		return e;
	}
	t->s = s;
	uar_run_take(&t->r, &r);
	uar_run_copy_fini(&r);
	t->last = t->count;
	if (t->d.event_count)
		memcpy(t->log + t->count, t->d.events, t->d.event_count * sizeof *t->log);
	t->count += t->d.event_count;
	return UAR_OK;
}

static inline struct uar_command story_create(enum uar_entry entry, bool wait)
{
	bool llm = entry == UAR_ENTRY_LLM || uar_entry_is_backend(entry);
	struct uar_command c = { .kind = UAR_CMD_CREATE };

	c.create = (struct uar_create){
		.run_id = UAR_STR("0190b4a0-0000-7000-8000-000000000003"),
		.turn_id = UAR_STR("0190b4a0-0000-7000-8000-000000000004"),
		.task_id = UAR_STR("0190b4a0-0000-7000-8000-000000000005"),
		.thread_id = UAR_STR("talk"),
		.new_session = true,
		.new_thread = true,
		.wait = wait,
		.what = { .entry = entry,
			  .agent_id = UAR_STR("helper"),
			  .plugin_id = UAR_STR("uar.agent"),
			  .entry_id = UAR_STR("helper"),
			  .provider = llm ? UAR_STR("scripted") : UAR_STR_NONE,
			  .model = llm ? UAR_STR("m-1") : UAR_STR_NONE,
			  .instructions = llm ? UAR_STR("Be kind.") : UAR_STR_NONE,
			  .message = UAR_STR("Hello \xc3\xa4 \"there\""),
			  .inputs = UAR_STR("{\"depth\":3}"),
			  .idempotency_key = UAR_STR("key-1"),
			  .message_bytes = 16,
			  .timeout_us = 5000000,
			  .restart = uar_entry_is_backend(entry) ? UAR_RESTART_FAIL
								 : UAR_RESTART_RETRY },
		.trace_id = UAR_STR("0123456789abcdef0123456789abcdef"),
		.source = UAR_STR("api"),
		.context = UAR_STR("{\"files\":[\"a\"]}"),
	};
	return c;
}

/* What agents that are programs say; the others say nothing more. */
static inline void story_report(struct uar_command *c)
{
	switch (c->kind) {
	case UAR_CMD_TOOL:
		c->tool = (struct uar_tool_report){ .call_id = UAR_STR("call-1"),
						    .name = UAR_STR("Bash"),
						    .kind = UAR_STR("file_change"),
						    .has_exit = true,
						    .stdout_bytes = 12 };
		break;
	case UAR_CMD_NOTE:
		c->note = (struct uar_note){ .kind = UAR_NOTE_WARNING,
					     .code = UAR_STR("RETRYING"),
					     .text = UAR_STR("again") };
		break;
	case UAR_CMD_SESSION: c->text = UAR_STR("session-7"); break;
	case UAR_CMD_ASK:
		c->ask = (struct uar_ask){ .number = 1,
					   .id = UAR_STR("ask-1"),
					   .kind = UAR_STR("command"),
					   .tool_name = UAR_STR("Bash"),
					   .call_id = UAR_STR("call-1"),
					   .prompt = UAR_STR("Bash: rm -r x"),
					   .input = UAR_STR("{\"command\":\"rm -r x\"}"),
					   .input_bytes = 21,
					   .timeout_us = 9000000 };
		break;
	case UAR_CMD_ANSWER:
		c->answer = (struct uar_answer){ .number = 1,
						 .verdict = UAR_VERDICT_ALLOW,
						 .source = UAR_ANSWER_RESPOND,
						 .reason = UAR_STR("fine") };
		break;
	default: break;
	}
}

#define STORY_CATALOG                                                                              \
	"[{\"tool_id\":\"internal:look\",\"name\":\"look\",\"description\":\"Looks.\","            \
	"\"transport\":\"internal\",\"version\":\"1\",\"policy\":\"ask\",\"runtime_owner\":"       \
	"\"uar\","                                                                                 \
	"\"capabilities\":[],\"is_read_only\":false,\"is_concurrency_safe\":false,"                \
	"\"is_destructive\":true,\"interrupt_behavior\":\"cancel\",\"tags\":[\"a\"]}]"

/* What a model asks for, and what becomes of it. */
static inline void story_tool(struct uar_command *c)
{
	switch (c->kind) {
	case UAR_CMD_MODEL_CALLS:
		c->model = (struct uar_model_end){
			.stop_reason = UAR_STR("tool_calls"),
			.input_tokens = 10,
			.output_tokens = 20,
			.total_tokens = 30,
			.call_count = 1,
			.catalog = UAR_STR(STORY_CATALOG),
			.tool_count = 1,
			.calls = UAR_STR(
				"[{\"id\":\"own-1\",\"provider_id\":\"p\",\"name\":\"look\","
				"\"arguments\":\"{}\"}]"),
		};
		break;
	case UAR_CMD_TOOL_BEGIN:
		c->begin = (struct uar_tool_begin){ .call_id = UAR_STR("own-1"),
						    .tool_id = UAR_STR("internal:look"),
						    .name = UAR_STR("look"),
						    .version = UAR_STR("1"),
						    .transport = UAR_STR("internal"),
						    .effect = "once",
						    .policy = "allowed",
						    .args = UAR_STR("{\"at\":1}"),
						    .args_bytes = 8,
						    .args_json = true };
		break;
	case UAR_CMD_TOOL_NEWS:
		c->news = (struct uar_tool_news){ UAR_STR("own-1"), UAR_STR("\"half\"") };
		break;
	case UAR_CMD_TOOL_OVER:
		c->over = (struct uar_tool_over){ .call_id = UAR_STR("own-1"),
						  .ok = true,
						  .output = UAR_STR("{\"seen\":1}"),
						  .output_bytes = 10 };
		break;
	default: break;
	}
}

/* A plausible command of each kind but CREATE and REPLAY. */
static inline struct uar_command story_command(enum uar_command_kind kind)
{
	struct uar_command c = { .kind = kind };

	if (kind == UAR_CMD_STEER || kind == UAR_CMD_EDIT)
		c.input = (struct uar_message_text){ .text = UAR_STR("more"), .bytes = 4 };

	switch (kind) {
	case UAR_CMD_PREPARED:
		c.prepared = (struct uar_prepared){
			.message_count = 2,
			.prompt_sha256 = UAR_STR(STORY_SHA256),
			.prompt_bytes = 50,
			.omissions = UAR_STR("[{\"ref\":\"thread://talk\",\"reason\":\"old\"}]"),
			.tool_count = 1,
		};
		break;
	case UAR_CMD_TEXT: c.text = UAR_STR("some text"); break;
	case UAR_CMD_REASONING: c.text = UAR_STR("a thought"); break;
	case UAR_CMD_CANCEL: c.text = UAR_STR("enough"); break;
	case UAR_CMD_MODEL_DONE:
		c.model = (struct uar_model_end){ .actual_model = UAR_STR("m-1-x"),
						  .stop_reason = UAR_STR("stop"),
						  .input_tokens = 10,
						  .output_tokens = 20,
						  .total_tokens = 30 };
		break;
	case UAR_CMD_MODEL_FAILED:
		c.model = (struct uar_model_end){ .category = UAR_STR("network"),
						  .message = UAR_STR("gone"),
						  .retryable = true,
						  .http_status = 502,
						  .input_tokens = -1,
						  .output_tokens = -1,
						  .total_tokens = -1 };
		break;
	case UAR_CMD_PROGRESS:
		c.progress = (struct uar_progress){ .value = 0.5,
						    .eta_seconds = 2,
						    .step = 1,
						    .step_total = 2,
						    .stage = UAR_STR("half"),
						    .message = UAR_STR("on the way"),
						    .metrics = UAR_STR("{\"n\":1}") };
		break;
	case UAR_CMD_EXPORT:
		c.export = (struct uar_export){ .id = UAR_STR("item-1"),
						.type = UAR_STR("text"),
						.content = UAR_STR("for people"),
						.sha256 = UAR_STR(STORY_SHA256),
						.bytes = 10 };
		break;
	case UAR_CMD_LOST:
		c.fail = (struct uar_failure){ UAR_STR("LOST"), UAR_STR("unreadable"),
					       UAR_STR("lost"), true };
		break;
	case UAR_CMD_FINISH: c.result_refs.ids = UAR_STR("[\"item-1\"]"); break;
	case UAR_CMD_FAIL:
		c.details = UAR_STR("{\"more\":true}");
		c.fail = (struct uar_failure){ UAR_STR("INTERNAL"), UAR_STR("it broke"),
					       UAR_STR("execution"), false };
		break;
	default:
		story_tool(&c);
		story_report(&c);
		break;
	}
	return c;
}

static inline uar_err story_do(struct story *t, enum uar_command_kind kind)
{
	struct uar_command c = story_command(kind);
	const struct uar_run_rare *rare = uar_run_rare(&t->r);

	/* What depends on what was said before. */
	if (kind == UAR_CMD_ASK)
		c.ask.number = rare->actions.count + 1;
	if (kind == UAR_CMD_ANSWER && rare->actions.open_count)
		c.answer.number = rare->actions.open[rare->actions.open_count - 1].number;
	if (kind == UAR_CMD_TOOL && rare->tools.open_count)
		c.tool.step = rare->tools.calls % 2 ? UAR_TOOL_ENDS : UAR_TOOL_BREAKS;
	return story_tell(t, &c);
}

static inline uar_err story_begin(struct story *t, enum uar_entry entry, bool wait)
{
	struct uar_command c = story_create(entry, wait);

	return story_tell(t, &c);
}

/* One line of a fixture. */
static inline uar_err story_replay(struct story *t, uar_str json, int64_t line)
{
	struct uar_command c = { .kind = UAR_CMD_REPLAY, .replay = { .line = line } };
	uar_err e = uar_json_parse(json, NULL, &t->arena, &c.replay.event, &t->error);

	return e ? e : story_tell(t, &c);
}

#endif
