/* runs_test.c - the record of a run, byte by byte. */
#include "proto/runs.h"

#include "test.h"

static struct uar_run_row row_of(const char *status, const char *detail)
{
	return (struct uar_run_row){
		.run_id = UAR_STR("r-1"),
		.session_id = UAR_STR("s-1"),
		.thread_id = UAR_STR("t-1"),
		.plugin_id = UAR_STR("uar.agent"),
		.entry_id = UAR_STR("echo"),
		.agent_id = UAR_STR("echo"),
		.root_run_id = UAR_STR("r-1"),
		.status = uar_str_c(status),
		.attempt = 1,
		.created_us = 1731700000123456,
		.updated_us = 1731700001000000,
		.detail = uar_str_c(detail),
	};
}

static void check_record(const struct uar_run_row *row, const char *want)
{
	struct uar_buf b = uar_buf_make(65536);
	struct uar_jw w = uar_jw_begin(&b);

	uar_runs_write(&w, NULL, row);
	CHECK_INT(uar_jw_end(&w), UAR_OK);
	CHECK_STR(uar_buf_str(&b), want);
	uar_buf_fini(&b);
}

#define HEAD(STATUS, ROOT, PARENT)                                                                 \
	"{\"run_id\":\"r-1\",\"plugin_id\":\"uar.agent\",\"entry_id\":\"echo\","                   \
	"\"agent_id\":\"echo\",\"status\":\"" STATUS "\",\"session_id\":\"s-1\","                  \
	"\"conversation_id\":\"t-1\",\"turn_id\":null,\"root_run_id\":\"" ROOT                     \
	"\",\"parent_run_id\":" PARENT ","
#define LISTED ",\"title\":null,\"duration\":null,\"cost\":0,\"tokens\":0"
#define TIMES  "\"created_at\":1731700000.123456,\"updated_at\":1731700001.000000"

TEST(a_fresh_record_has_its_columns_and_nulls, "RUN-23 RUN-25 RUN-27")
{
	struct uar_run_row row = row_of("queued", "");

	check_record(&row, HEAD("queued", "r-1",
				"null") "\"attempt\":1," TIMES
					",\"started_at\":null,\"finished_at\":null" LISTED "}");
	row.root_run_id = UAR_STR_NONE;
	check_record(&row, HEAD("queued", "r-1",
				"null") "\"attempt\":1," TIMES
					",\"started_at\":null,\"finished_at\":null" LISTED "}");
	row.root_run_id = UAR_STR("r-0");
	row.parent_run_id = UAR_STR("r-0");
	row.attempt = 2;
	check_record(&row, HEAD("queued", "r-0",
				"\"r-0\"") "\"attempt\":2," TIMES
					   ",\"started_at\":null,\"finished_at\":null" LISTED "}");
}

TEST(times_and_details_are_shown_as_they_are, "RUN-24 RUN-27 RUN-28 RUN-29")
{
	struct uar_run_row row =
		row_of("canceled",
		       "{\"task_id\":null,\"trace_id\":\"x\",\"idempotency_key\":\"k \xc3\xa4\","
		       "\"progress\":null,\"cancel_requested\":true,\"cancel_reason\":\"a\\\"b\","
		       "\"cancel_requested_at\":1731700000.5,\"error\":{\"code\":\"CANCELED\"},"
		       "\"result_refs\":[]}");

	row.started_us = 1731700000200000;
	row.finished_us = 1731700001000001;
	check_record(
		&row,
		HEAD("canceled", "r-1",
		     "null") "\"attempt\":1," TIMES
			     ",\"started_at\":1731700000.200000,\"finished_at\":1731700001.000001,"
			     "\"title\":null,\"duration\":0.800001,\"cost\":0,\"tokens\":0,"
			     "\"task_id\":null,\"trace_id\":\"x\",\"idempotency_key\":\"k "
			     "\xc3\xa4\","
			     "\"progress\":null,\"cancel_requested\":true,\"cancel_reason\":"
			     "\"a\\\"b\","
			     "\"cancel_requested_at\":1731700000.5,\"error\":{\"code\":"
			     "\"CANCELED\"},"
			     "\"result_refs\":[]}");
}

TEST(an_agent_is_null_when_there_is_none, "")
{
	struct uar_run_row row = row_of("running", "{\"n\":12345678901234567890}");
	struct uar_buf b = uar_buf_make(65536);
	struct uar_jw w = uar_jw_begin(&b);

	row.agent_id = UAR_STR_NONE;
	uar_jw_obj(&w, NULL);
	uar_runs_write(&w, "run", &row);
	uar_jw_close(&w);
	CHECK_INT(uar_jw_end(&w), UAR_OK);
	CHECK(strstr(b.p, "{\"run\":{\"run_id\"") == b.p);
	CHECK(strstr(b.p, "\"agent_id\":null") && strstr(b.p, "\"n\":12345678901234567890}}"));
	uar_buf_fini(&b);
}

TEST(a_detail_that_is_no_object_is_left_out, "")
{
	static const char *const odd[] = { "[1]", "{\"a\":", "\"x\"", "null" };

	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		struct uar_run_row row = row_of("queued", odd[i]);

		check_record(&row,
			     HEAD("queued", "r-1",
				  "null") "\"attempt\":1," TIMES
					  ",\"started_at\":null,\"finished_at\":null" LISTED "}");
	}
}
