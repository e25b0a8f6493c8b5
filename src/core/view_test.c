/* view_test.c - a snapshot and the events behind it give the bytes of the fold from the first
 * event, whatever the events and wherever the cut. */
#include "core/view.h"

#include "test.h"

enum { EVENTS = 4000, TEXT = 512 };

struct script {
	struct uar_rand_seeded seeded;
	struct uar_rand rand;
	struct uar_arena arena;
	struct uar_event events[EVENTS];
};

static uint64_t below(struct script *s, uint64_t n)
{
	return uar_rand_below(&s->rand, n);
}

static uar_str text(struct script *s, const char *kind, uint64_t n)
{
	return uar_arena_printf(&s->arena, "%s-%llu", kind, (unsigned long long)n);
}

/* Payloads with places for a small number, a number and a small number again. */
static const struct {
	enum uar_event_class cls;
	const char *payload;
	const char *refs;
} kinds[] = {
	{ UAR_EV_SESSION_UPDATED, "{\"changed\":[\"title\"],\"title\":\"title %d\"}", "" },
	{ UAR_EV_THREAD_STARTED, "{\"origin\":\"new\",\"conversation_id\":\"c%d\"}", "" },
	{ UAR_EV_THREAD_UPDATED,
	  "{\"status\":\"idle\",\"active_turn_id\":null,\"changed\":[\"title\"],\"title\":\"t%d\"}",
	  "" },
	{ UAR_EV_TURN_SUBMITTED,
	  "{\"status\":\"queued\",\"source\":\"api\",\"input_parts\":[{\"type\":\"text\","
	  "\"preview\":"
	  "\"question %d \\u00fc\",\"bytes\":9}]}",
	  "{\"input_ref\":\"input://x/0\"}" },
	{ UAR_EV_TURN_STARTED, "{\"status\":\"running\",\"agent_id\":\"a%d\"}", "" },
	{ UAR_EV_TASK_CREATED,
	  "{\"objective\":\"o%d\",\"status\":\"accepted\",\"implicit\":true,\"visibility\":"
	  "\"hidden\"}",
	  "" },
	{ UAR_EV_TASK_QUEUED, "{\"status\":\"queued\",\"agent_id\":\"a%d\"}", "" },
	{ UAR_EV_TASK_ATTEMPT_STARTED, "{\"attempt\":%d,\"status\":\"running\"}", "" },
	{ UAR_EV_TASK_PROGRESS, "{\"progress\":0.%d,\"phase\":\"working\"}", "" },
	{ UAR_EV_TASK_WAITING, "{\"status\":\"waiting_input\",\"waiting_on\":{\"n\":%d}}", "" },
	{ UAR_EV_TASK_BLOCKED, "{\"status\":\"blocked\",\"blockers\":[{\"n\":%d}]}", "" },
	{ UAR_EV_TASK_COMPLETED,
	  "{\"status\":\"completed\",\"attempt\":%d,\"delivery_state\":\"delivered\"}", "" },
	{ UAR_EV_TASK_DEPENDENCY_UPDATED,
	  "{\"op\":\"linked\",\"edge\":{\"kind\":\"blocks\",\"source_id\":\"s%d\",\"target_id\":"
	  "\"t\","
	  "\"status\":\"active\"}}",
	  "" },
	{ UAR_EV_MODEL_REQUESTED, "{\"model\":\"m%d\"}", "" },
	{ UAR_EV_MODEL_DELTA,
	  "{\"message_id\":\"m%d\",\"kind\":\"text\",\"text\":\"w\\u00f6rter \"}", "" },
	{ UAR_EV_TOOL_STARTED, "{\"tool_name\":\"tool%d\",\"status\":\"running\"}", "" },
	{ UAR_EV_TOOL_RESULT, "{\"tool_name\":\"tool%d\",\"status\":\"completed\"}",
	  "{\"output_ref\":\"blob://x\"}" },
	{ UAR_EV_TOOL_FAILED,
	  "{\"tool_name\":\"tool%d\",\"status\":\"failed\",\"failure_category\":\"timeout\","
	  "\"message\":\"late\"}",
	  "" },
	{ UAR_EV_ACTION_REQUIRED,
	  "{\"action_type\":\"form\",\"prompt\":\"p%d\",\"decisions\":[\"allow\"]}", "" },
	{ UAR_EV_ACTION_RESOLVED, "{\"result\":\"allow\",\"waited_ms\":%d,\"status\":\"resolved\"}",
	  "" },
	{ UAR_EV_SUBAGENT_SPAWNED,
	  "{\"child_thread_id\":\"t\",\"role\":\"r%d\",\"status\":\"spawned\"}", "" },
	{ UAR_EV_SUBAGENT_STATUS, "{\"status\":\"running\",\"reason\":\"r%d\"}",
	  "{\"last_message_ref\":\"message://x\"}" },
	{ UAR_EV_SUBAGENT_COMPLETED,
	  "{\"status\":\"completed\",\"summary_preview\":\"s%d\",\"duration_ms\":1}",
	  "{\"output_ref\":\"message://y\"}" },
	{ UAR_EV_JOB_CREATED, "{\"job_kind\":\"batch\",\"item_count\":%d,\"status\":\"created\"}",
	  "" },
	{ UAR_EV_JOB_PROGRESS, "{\"counts\":{\"completed\":%d},\"cursor\":\"1\",\"progress\":0.5}",
	  "" },
	{ UAR_EV_JOB_ITEM_STARTED,
	  "{\"index\":%d,\"attempt\":1,\"assigned_thread_id\":\"t\",\"status\":\"running\"}", "" },
	{ UAR_EV_JOB_ITEM_FAILED,
	  "{\"index\":%d,\"attempt\":1,\"failure_category\":\"execution\",\"retryable\":true,"
	  "\"status\":\"failed\"}",
	  "" },
	{ UAR_EV_ARTIFACT_CHANGED,
	  "{\"op\":\"created\",\"artifact_type\":\"html\",\"title\":\"x\",\"version\":%d,"
	  "\"status\":"
	  "\"ready\",\"bytes\":3,\"sha256\":\"\",\"issue_count\":1}",
	  "{\"read_ref\":\"blob://y\",\"diff_ref\":\"blob://z\"}" },
	{ UAR_EV_CONTEXT_RESOLVED,
	  "{\"items\":[{\"kind\":\"memory\",\"ref\":\"r%d\"}],\"omissions\":[],\"missing\":[]}",
	  "" },
	{ UAR_EV_TOOL_CATALOG_RESOLVED,
	  "{\"inventory_id\":\"i%d\",\"caller\":\"model\",\"mode\":\"default\",\"count\":1,"
	  "\"tools\":"
	  "[{\"tool_id\":\"a\"}],\"excluded\":[]}",
	  "" },
	{ UAR_EV_PROCESS_STARTED, "{\"command_summary\":\"ls %d\"}", "" },
	{ UAR_EV_PROCESS_COMPLETED, "{\"exit_code\":%d}", "" },
	{ UAR_EV_OUTPUT_SPILLED, "{\"total_bytes\":%d,\"media_type\":\"text/plain\"}",
	  "{\"output_ref\":\"blob://o\"}" },
	{ UAR_EV_EVIDENCE_CHANGED, "{\"kind\":\"replay\",\"status\":\"ready\",\"n\":%d}", "" },
	{ UAR_EV_RUNTIME_WARNING, "{\"code\":\"W%d\",\"message\":\"m\",\"component\":\"c\"}", "" },
	{ UAR_EV_QUEUE_CHANGED,
	  "{\"op\":\"reordered\",\"order\":[\"turn-%d\",\"turn-1\"],\"length\":2,\"policy\":{}}",
	  "" },
	{ UAR_EV_TASK_ATTEMPT_FAILED,
	  "{\"attempt\":%d,\"status\":\"lost\",\"error\":{\"code\":\"LOST\",\"message\":\"gone\"}}",
	  "" },
	{ UAR_EV_TURN_FAILED,
	  "{\"status\":\"failed\",\"message\":\"m%d\",\"error\":{\"code\":\"X\"}}", "" },
	{ UAR_EV_TURN_COMPLETED,
	  "{\"status\":\"completed\",\"finish_reason\":\"stop\",\"usage\":{\"input_tokens\":%d}}",
	  "" },
	{ UAR_EV_HISTORY_ROLLBACK_COMPLETED,
	  "{\"status\":\"completed\",\"removed_turn_ids\":[\"turn-%d\"],\"surviving_baseline\":"
	  "{\"turn_id\":\"turn-0\"}}",
	  "" },
	{ UAR_EV_TASK_PROFILE_RESOLVED, "{\"kind\":\"chat\",\"context_tokens_estimate\":%d}", "" },
	{ UAR_EV_ROUTING_CANDIDATES_RESOLVED, "{\"candidate_count\":%d,\"excluded\":[]}", "" },
	{ UAR_EV_ROUTING_DECIDED,
	  "{\"routing_mode\":\"fallback\",\"decision_reason\":\"r%d\",\"selected\":{\"provider\":"
	  "\"a\",\"model\":\"m\"},\"fallback_chain\":[]}",
	  "" },
	{ UAR_EV_ROUTING_FALLBACK_APPLIED, "{\"reason\":\"r%d\",\"to\":{\"provider\":\"b\"}}", "" },
	{ UAR_EV_COST_RECORDED, "{\"currency\":\"USD\",\"amount\":%d,\"cumulative\":{\"run\":1}}",
	  "" },
	{ UAR_EV_QUOTA_LOW, "{\"quota_name\":\"run.tokens\",\"remaining\":%d}", "" },
	{ UAR_EV_RATE_LIMIT_HIT, "{\"limit_name\":\"requests\",\"retry_after_ms\":%d}", "" },
	{ UAR_EV_SNAPSHOT_UPDATED, "{\"through_sequence\":%d}", "" },
};

static void make_event(struct script *s, size_t i)
{
	size_t k = i ? below(s, ARRAY_LEN(kinds)) : 0;
	uint64_t turn = below(s, 3) + i / 20;
	char payload[TEXT];
	struct uar_event *e = &s->events[i];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(payload, sizeof payload, kinds[k].payload, (int)below(s, 200));
#pragma GCC diagnostic pop
	*e = (struct uar_event){
		.cls = kinds[k].cls,
		.event_id = text(s, "event", i),
		.time_us = 1800000000000000 + (int64_t)i,
		.sequence = i + 1,
		.payload = uar_arena_str(&s->arena, uar_str_c(payload)),
		.refs = uar_str_c(kinds[k].refs),
	};
	e->ids[UAR_ID_SESSION] = UAR_STR("session");
	e->ids[UAR_ID_THREAD] = text(s, "thread", below(s, 80));
	e->ids[UAR_ID_TURN] = text(s, "turn", turn);
	e->ids[UAR_ID_TASK] = text(s, "task", turn);
	e->ids[UAR_ID_RUN] = text(s, "run", turn);
	e->ids[UAR_ID_TOOL_CALL] = text(s, "call", below(s, 40) + i / 10);
	e->ids[UAR_ID_ACTION] = text(s, "action", below(s, 40) + i / 10);
	e->ids[UAR_ID_ARTIFACT] = text(s, "artifact", below(s, 20));
	e->ids[UAR_ID_SUBAGENT] = text(s, "subagent", below(s, 200));
	e->ids[UAR_ID_JOB] = text(s, "job", below(s, 40));
	e->ids[UAR_ID_JOB_ITEM] = text(s, "item", below(s, 100));
	e->ids[UAR_ID_PROCESS] = text(s, "process", below(s, 50));
	e->ids[UAR_ID_EVIDENCE] = text(s, "evidence", below(s, 50));
}

static void fold(struct uar_sview *v, const struct script *s, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		CHECK_INT(uar_sview_fold(v, &s->events[i]), UAR_OK);
}

static struct uar_buf bytes_of(const struct uar_sview *v)
{
	struct uar_buf b = uar_buf_make(1 << 20);

	CHECK_INT(uar_sview_write(v, &b), UAR_OK);
	return b;
}

static void check_cut(const struct script *s, size_t cut, uar_str want)
{
	struct uar_sview before, after;
	struct uar_buf snapshot, got, again;

	uar_sview_init(&before);
	uar_sview_init(&after);
	fold(&before, s, 0, cut);
	snapshot = bytes_of(&before);
	CHECK_INT(uar_sview_read(&after, uar_buf_str(&snapshot), NULL), UAR_OK);
	again = bytes_of(&after);
	CHECK(uar_str_eq(uar_buf_str(&again), uar_buf_str(&snapshot)));
	fold(&after, s, cut, EVENTS);
	got = bytes_of(&after);
	CHECK_MSG(uar_str_eq(uar_buf_str(&got), want), "cut at %zu", cut);
	uar_buf_fini(&again);
	uar_buf_fini(&snapshot);
	uar_buf_fini(&got);
	uar_sview_fini(&before);
	uar_sview_fini(&after);
}

static void play(uint64_t seed)
{
	static struct script s;
	struct uar_sview whole;
	struct uar_buf want;

	s = (struct script){ .arena = { 0 } };
	uar_arena_init(&s.arena, 0);
	s.rand = uar_rand_seed(&s.seeded, seed);
	for (size_t i = 0; i < EVENTS; i++)
		make_event(&s, i);
	uar_sview_init(&whole);
	fold(&whole, &s, 0, EVENTS);
	want = bytes_of(&whole);
	CHECK_MSG(want.n < 900000, "%zu bytes", want.n);
	for (int i = 0; i < 4; i++)
		check_cut(&s, below(&s, EVENTS), uar_buf_str(&want));
	uar_buf_fini(&want);
	uar_sview_fini(&whole);
	uar_arena_fini(&s.arena);
}

TEST(a_snapshot_and_the_rest_equal_the_fold_from_zero, "SNAP-16 SNAP-17")
{
	for (uint64_t seed = 1; seed <= 5; seed++)
		play(seed);
}

TEST(a_gap_is_refused_and_changes_nothing, "STAT-16")
{
	struct uar_event ev = { .cls = UAR_EV_SESSION_CREATED,
				.sequence = 1,
				.payload = UAR_STR("{\"source\":\"api\"}") };
	struct uar_sview v;

	ev.ids[UAR_ID_SESSION] = UAR_STR("s");
	uar_sview_init(&v);
	CHECK_INT(uar_sview_fold(&v, &ev), UAR_OK);
	ev.sequence = 3;
	CHECK_INT(uar_sview_fold(&v, &ev), UAR_ECORRUPT);
	CHECK_INT(v.through, 1);
	CHECK_INT(v.err, UAR_OK);
	uar_sview_fini(&v);
}

TEST(what_is_no_snapshot_is_refused, "")
{
	static const struct {
		const char *json;
		uar_err want;
	} cases[] = {
		{ "", UAR_ECORRUPT },
		{ "{}", UAR_ENEWER },
		{ "{\"version\":1,\"through\":1}", UAR_ENEWER },
		{ "{\"version\":9}", UAR_ECORRUPT },
		{ "{\"version\":9,\"through\":1,\"thread\":{}}", UAR_ECORRUPT },
		{ "{\"version\":9,\"through\":1,\"thread\":{\"items\":[{\"colour\":1}]}}",
		  UAR_ECORRUPT },
		{ "{\"version\":9,\"through\":1,\"shell\":{\"items\":[{},{}]}}", UAR_ECORRUPT },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_sview v;

		uar_sview_init(&v);
		CHECK_INT(uar_sview_read(&v, uar_str_c(cases[i].json), NULL), cases[i].want);
		uar_sview_fini(&v);
	}
}
