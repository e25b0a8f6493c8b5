/* remote_test.c - the client verbs against a server made of prepared answers. */
#include "test.h"

#include <stdlib.h>

#include "app/datadir.h"
#include "app/remote.h"
#include "cli_run.h"
#include "prepared.h"

/* --- the client itself ---------------------------------------------------------------- */
static uar_err call(const char *url, struct uar_buf *out, struct uar_error *error)
{
	struct uar_api api;
	uar_err e = uar_api_init(&api, uar_str_c(url), UAR_STR("tok"), error);

	if (e)
		return e;
	return uar_api_call(&api, &(struct uar_api_request){ .method = "GET", .path = "/x" }, out,
			    error);
}

TEST(a_chunked_answer_in_any_pieces, "")
{
	static const char answer[] =
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n3\r\n:1}\r\n"
		"0\r\n\r\n";

	for (size_t piece = 1; piece < sizeof answer; piece += 7) {
		struct uar_prepared *s = START({ answer, piece });
		struct uar_buf out = uar_buf_make(1000);
		struct uar_error error = { 0 };

		CHECK_INT(call(s->url, &out, &error), UAR_OK);
		CHECK_STR(uar_buf_str(&out), "{\"a\":1}");
		CHECK(uar_prepared_finish(s));
		CHECK(has(s->asked[0], "GET /x HTTP/1.1\r\nHost: localhost\r\n"));
		CHECK(has(s->asked[0], "Authorization: Bearer tok\r\n"));
		uar_buf_fini(&out);
		uar_prepared_destroy(s);
	}
}

TEST(tcp_with_a_prefix, "")
{
	struct uar_prepared *s =
		uar_prepared_start(&(struct uar_prepared_answer){ OK("{}"), 0 }, 1, true);
	char url[300];
	struct uar_buf out = uar_buf_make(1000);
	struct uar_error error = { 0 };

	snprintf(url, sizeof url, "%s/base/", s->url);
	CHECK_INT(call(url, &out, &error), UAR_OK);
	CHECK(uar_prepared_finish(s));
	CHECK(has(s->asked[0], "GET /base/x HTTP/1.1\r\nHost: 127.0.0.1:"));
	uar_buf_fini(&out);
	uar_prepared_destroy(s);
}

TEST(a_cut_answer_is_an_error, "")
{
	struct uar_prepared *s = START({ "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", 0 });
	struct uar_buf out = uar_buf_make(1000);
	struct uar_error error = { 0 };

	CHECK_INT(call(s->url, &out, &error), UAR_EEOF);
	CHECK(uar_prepared_finish(s));
	uar_buf_fini(&out);
	uar_prepared_destroy(s);
}

TEST(an_answer_larger_than_its_limit_is_refused, "")
{
	struct uar_prepared *s = START({ OK("0123456789"), 0 });
	struct uar_buf out = uar_buf_make(5);
	struct uar_error error = { 0 };

	CHECK_INT(call(s->url, &out, &error), UAR_ETOOBIG);
	CHECK(uar_prepared_finish(s));
	uar_buf_fini(&out);
	uar_prepared_destroy(s);
}

TEST(urls_that_are_none, "")
{
	static const char *const bad[] = { "",
					   "127.0.0.1:80",
					   "http://",
					   "http://:80",
					   "http://h:0",
					   "http://h:99999",
					   "https://h",
					   "ftp://h",
					   "unix:",
					   "unix:/a%",
					   "unix:/a%2",
					   "unix:/a%zz",
					   "unix:/a%00b",
					   "http://u:p@h:1",
					   "http://h h",
					   "http://[::1",
					   "http://[::1]x:1" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct uar_api api;
		struct uar_error error = { 0 };

		CHECK_MSG(uar_api_init(&api, uar_str_c(bad[i]), UAR_STR(""), &error) ==
				  UAR_EINVALID,
			  "%s was taken", bad[i]);
	}
	struct uar_api api;
	REQUIRE(uar_api_init(&api, UAR_STR("http://[::1]:8080/p"), UAR_STR(""), NULL) == UAR_OK);
	CHECK_STR(uar_str_c(api.host), "::1");
	CHECK_STR(uar_str_c(api.port), "8080");
	CHECK_STR(uar_str_c(api.prefix), "/p");
	CHECK(api.local);
}

/* The token of the data directory goes to this machine alone. */
TEST(a_name_that_begins_like_loopback_is_not_local, "")
{
	static const struct {
		const char *url;
		bool local;
	} cases[] = {
		{ "http://127.0.0.1:1", true },
		{ "http://127.1.2.3", true },
		{ "http://localhost:1/p", true },
		{ "http://[::1]", true },
		{ "unix:/tmp/s", true },
		{ "http://127.evil.example", false },
		{ "http://localhost.evil", false },
		{ "http://192.0.2.7", false },
		{ "http://[::2]", false },
		{ "http://0.0.0.0", false },
	};
	struct uar_api api;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		REQUIRE(uar_api_init(&api, uar_str_c(cases[i].url), UAR_STR(""), NULL) == UAR_OK);
		CHECK_MSG(api.local == cases[i].local, "%s", cases[i].url);
	}
}

TEST(any_path_of_a_socket_is_taken, "")
{
	static const struct {
		const char *url, *path, *shown;
	} cases[] = {
		{ "unix:/tmp/s", "/tmp/s", "unix:/tmp/s" },
		{ "unix:/da%20ta/%c3%A4%25", "/da ta/\xc3\xa4%", "unix:/da%20ta/%C3%A4%25" },
		{ "unix:/da ta/\xff\x1b'?#", "/da ta/\xff\x1b'?#",
		  "unix:/da%20ta/%FF%1B%27%3F%23" },
	};
	struct uar_buf path = uar_buf_make(200), url = uar_buf_make(400);
	struct uar_api api;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		REQUIRE(uar_api_init(&api, uar_str_c(cases[i].url), UAR_STR(""), NULL) == UAR_OK);
		CHECK_STR(uar_str_c(api.unix_path), cases[i].path);
		CHECK_STR(uar_str_c(api.url), cases[i].shown);
	}
	for (size_t n = 1; n <= 108; n++) { /* 107 is the longest that can be bound */
		uar_buf_add_char(&path, '\x80');
		uar_buf_clear(&url);
		uar_api_socket_url(&url, uar_buf_str(&path));
		CHECK(uar_api_init(&api, uar_buf_str(&url), UAR_STR(""), NULL) ==
		      (n < 108 ? UAR_OK : UAR_EINVALID));
		if (n < 108)
			CHECK_STR(uar_buf_str(&path), api.unix_path);
	}
	uar_buf_fini(&path);
	uar_buf_fini(&url);
}

/* --- finding a server -------------------------------------------------------------------- */
TEST(no_server_is_said_clearly, "")
{
	char *data = (char *)uar_test_dir();
	struct uar_server_info gone = { .pid = 1 };
	struct run r = RUN("runs", "--data", data);

	CHECK_INT(r.status, 1);
	CHECK(has(r.err, "no server is running on "));
	CHECK(has(r.err, "start one with `uar serve`"));
	over(&r);
	snprintf(gone.url, sizeof gone.url, "unix:%.200s/gone", data);
	REQUIRE(uar_datadir_announce(data, &gone, &uar_clock_system, NULL) == UAR_OK);
	r = RUN("health", "--data", data);
	CHECK_INT(r.status, 1);
	CHECK(has(r.err, "no server is running at unix:"));
	over(&r);
}

TEST(json_is_printed_also_when_there_is_no_server, "")
{
	static char *const verbs[][5] = {
		{ "uar", "health" },
		{ "uar", "agents" },
		{ "uar", "run", "echo", "x" },
		{ "uar", "plugins" },
		{ "uar", "trigger", "p", "e" },
		{ "uar", "retry", "r" },
		{ "uar", "runs" },
		{ "uar", "ps" },
		{ "uar", "show", "r" },
		{ "uar", "logs", "r" },
		{ "uar", "export", "r" },
		{ "uar", "cancel", "r" },
		{ "uar", "approve", "r" },
		{ "uar", "approve" },
	};

	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		char *argv[10] = { NULL };
		struct run r;
		size_t n = 0;

		for (; n < 5 && verbs[i][n]; n++)
			argv[n] = verbs[i][n];
		argv[n++] = "--json";
		argv[n++] = "--url=unix:/nonexistent/s";
		r = uar_with((struct uar_cli){ .in = NULL }, argv);
		CHECK_INT(r.status, 1);
		CHECK(has(r.out, "\"error\":\"no server is running at unix:"));
		CHECK(has(r.out, "\"code\":\"TRANSPORT_ERROR\"}\n"));
		CHECK_MSG(strchr(r.out, '\n') == r.out + r.out_n - 1, "%s: %s", argv[1], r.out);
		CHECK(has(r.err, "uar: no server is running at"));
		over(&r);
	}
	struct run none = RUN("health", "--json", "--data", (char *)uar_test_dir());

	CHECK_INT(none.status, 1);
	CHECK(has(none.out, "{\"error\":\"no server is running on "));
	over(&none);
	none = RUN("runs", "--json", "--limit", "x");
	CHECK_INT(none.status, 2);
	CHECK_STR(uar_str_c(none.out), "{\"error\":\"--limit takes a number from 1 to 500\","
				       "\"code\":\"VALIDATION_ERROR\"}\n");
	over(&none);
}

TEST(the_data_directory_names_server_and_token, "")
{
	char data[300];
	struct uar_prepared *s = START({ OK("{\"runs\":[],\"next_before\":null}"), 0 });
	struct uar_server_info info = { .pid = 1 };
	struct uar_config c = { .token = "", .data = data };
	struct uar_buf token = uar_buf_make(1000);
	struct run r;

	snprintf(data, sizeof data, "%s", uar_test_dir());
	snprintf(info.url, sizeof info.url, "%s", s->url);
	REQUIRE(uar_datadir_token(&c, &uar_rand_system, &token, NULL) == UAR_OK);
	REQUIRE(uar_datadir_announce(data, &info, &uar_clock_system, NULL) == UAR_OK);
	r = RUN("runs", "--data", data);
	CHECK_INT(r.status, 0);
	CHECK_STR(uar_str_c(r.out), "no runs\n");
	CHECK(uar_prepared_finish(s));
	CHECK(has(s->asked[0], token.p));
	over(&r);
	uar_buf_fini(&token);
	uar_prepared_destroy(s);
}

TEST(the_local_token_is_not_sent_elsewhere, "")
{
	const char *data = uar_test_dir();
	struct uar_config c = { .token = "", .data = data };
	struct uar_buf token = uar_buf_make(1000);
	char *words[] = { "http://192.0.2.1:1", "http://127.0.0.1:1" };
	struct uar_args args = { .words = 0 };
	struct uar_config_set set = { .value = c };
	struct uar_cli cli = { .env = NULL, .args = &args, .config = &set };
	struct uar_api api;

	REQUIRE(uar_datadir_token(&c, &uar_rand_system, &token, NULL) == UAR_OK);
	args.option[UAR_OPT_URL] = words[0];
	REQUIRE(uar_remote_find(&cli, &api, NULL) == UAR_OK);
	CHECK_STR(uar_str_c(api.token), "");
	args.option[UAR_OPT_URL] = words[1];
	REQUIRE(uar_remote_find(&cli, &api, NULL) == UAR_OK);
	CHECK_STR(uar_str_c(api.token), token.p);
	set.value.token = "given";
	args.option[UAR_OPT_URL] = words[0];
	REQUIRE(uar_remote_find(&cli, &api, NULL) == UAR_OK);
	CHECK_STR(uar_str_c(api.token), "given");
	uar_buf_fini(&token);
}

TEST(environment_names_the_server, "")
{
	struct uar_prepared *s = START({ OK("{}"), 0 }, { OK("{}"), 0 });
	char url[300];
	char *const variables[] = { "HOME=/nonexistent", url, "UAR_TOKEN=envtoken", NULL };
	struct run r;

	snprintf(url, sizeof url, "UAR_URL=%s", s->url);
	r = uar_with((struct uar_cli){ .env = variables }, (char *[]){ "uar", "health", NULL });
	CHECK_INT(r.status, 0);
	CHECK(has(r.out, "alive, ready\n"));
	CHECK(uar_prepared_finish(s));
	CHECK(has(s->asked[0], "GET /health "));
	CHECK(has(s->asked[1], "GET /ready "));
	CHECK(has(s->asked[1], "Bearer envtoken\r\n"));
	over(&r);
	uar_prepared_destroy(s);
}

/* --- verbs that ask once ------------------------------------------------------------------- */
TEST(health_fails_while_not_ready, "")
{
	struct uar_prepared *s =
		START({ OK("{}"), 0 },
		      { PROBLEM("503 Service Unavailable",
				"{\"code\":\"UNAVAILABLE\",\"detail\":\"shutting down\"}"),
			0 });
	struct run r = RUN("health", "--url", s->url, "--json");

	CHECK_INT(r.status, 1);
	CHECK(has(r.out, "\"alive\":true,\"ready\":false,\"error\":\"UNAVAILABLE: shutting down\","
			 "\"code\":\"UNAVAILABLE\"}\n"));
	CHECK(strchr(r.out, '\n') == r.out + r.out_n - 1);
	CHECK(has(r.err, "uar: UNAVAILABLE: shutting down\n"));
	CHECK(uar_prepared_finish(s));
	over(&r);
	uar_prepared_destroy(s);
}

static const char runs[] =
	OK("{\"runs\":[{\"run_id\":\"r1\",\"agent_id\":\"echo\",\"status\":\"succeeded\","
	   "\"created_at\":1.5,\"started_at\":2.0,\"finished_at\":4.5,\"error\":null},"
	   "{\"run_id\":\"r2\",\"agent_id\":\"e\\u001b[31mvil\",\"status\":\"failed\","
	   "\"created_at\":1.5,\"error\":{\"code\":\"X\",\"message\":\"line\\nbreak\"}}],"
	   "\"next_before\":\"c 1\"}");

TEST(runs_as_a_table_and_as_json, "")
{
	struct uar_prepared *s = START({ runs, 0 }, { runs, 9 });
	struct run r = RUN("runs", "--url", s->url, "-n", "2", "--status=failed", "-a", "a&b");

	CHECK_INT(r.status, 0);
	CHECK(has(r.out, "RUN  "));
	CHECK(has(r.out, "2.5s"));
	CHECK(has(r.out, "e?[31mvil"));
	CHECK(has(r.out, "line break\n"));
	CHECK(has(r.out, "more: uar runs --before c 1\n"));
	CHECK(!strchr(r.out, '\033'));
	over(&r);
	r = uar_with((struct uar_cli){ .out_tty = true },
		     (char *[]){ "uar", "runs", "--url", s->url, "--json", NULL });
	CHECK_STR(uar_str_n(r.out, 9), "{\"runs\":[");
	CHECK(r.out_n && r.out[r.out_n - 1] == '\n');
	over(&r);
	CHECK(uar_prepared_finish(s));
	CHECK(has(s->asked[0], "GET /api/runs?limit=2&status=failed&agent_id=a%26b HTTP/1.1\r\n"));
	CHECK(has(s->asked[1], "GET /api/runs HTTP/1.1\r\n"));
	uar_prepared_destroy(s);
}

TEST(agents_as_a_table_and_as_json, "")
{
	static const char agents[] = OK("{\"agents\":[{\"agent_id\":\"echo\",\"title\":\"Echo\","
					"\"description\":\"Says\\u001b it\\nagain.\"}]}");
	struct uar_prepared *s = START({ agents, 0 }, { agents, 0 });
	struct run r = RUN("agents", "--url", s->url);

	CHECK_INT(r.status, 0);
	CHECK_STR(uar_str_c(r.out), "echo                  Says? it again.\n");
	over(&r);
	r = RUN("agents", "--url", s->url, "--json");
	CHECK_STR(uar_str_n(r.out, 11), "{\"agents\":[");
	over(&r);
	CHECK(uar_prepared_finish(s));
	CHECK(has(s->asked[0], "GET /api/agents HTTP/1.1\r\n"));
	uar_prepared_destroy(s);
}

TEST(colours_are_for_terminals_without_no_color, "")
{
	static char *const plain[] = { "HOME=/nonexistent", "TERM=xterm", "NO_COLOR=1", NULL };
	struct uar_prepared *s = START({ runs, 0 }, { runs, 0 });
	char *argv[] = { "uar", "runs", "--url", s->url, NULL };
	struct run r = uar_with((struct uar_cli){ .out_tty = true }, argv);

	CHECK(has(r.out, "\033[32msucceeded\033[0m"));
	CHECK(has(r.out, "\033[31mfailed\033[0m"));
	over(&r);
	r = uar_with((struct uar_cli){ .out_tty = true, .env = plain }, argv);
	CHECK(!strchr(r.out, '\033'));
	over(&r);
	CHECK(uar_prepared_finish(s));
	uar_prepared_destroy(s);
}

TEST(show_and_problem_answers, "")
{
	struct uar_prepared *s =
		START({ OK("{\"run_id\":\"r1\",\"status\":\"running\",\"created_at\":0.5,"
			   "\"error\":null,\"progress\":0.25,\"result_refs\":[]}"),
			0 },
		      { PROBLEM("404 Not Found", "{\"code\":\"NOT_FOUND\",\"detail\":\"no such "
						 "run\\u009b\"}"),
			0 },
		      { "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", 0 },
		      { PROBLEM("500 Oops", "<html>"), 0 }, { OK("not json"), 0 });
	struct run r = RUN("show", "a/b", "--url", s->url);

	CHECK_INT(r.status, 0);
	CHECK(has(r.out, "status                running\n"));
	CHECK(has(r.out, "created_at            1970-01-01T00:00:00.500000Z  ("));
	CHECK(has(r.out, "progress              0.25\n"));
	CHECK(!strstr(r.out, "error"));
	over(&r);
	r = RUN("show", "x", "--url", s->url);
	CHECK_INT(r.status, 1);
	CHECK_STR(uar_str_c(r.err), "uar: NOT_FOUND: no such run?\n");
	over(&r);
	r = RUN("show", "x", "--url", s->url);
	CHECK(has(r.err, "status 401: a valid token is required"));
	over(&r);
	r = RUN("show", "x", "--url", s->url);
	CHECK(has(r.err, "answered with status 500\n"));
	over(&r);
	r = RUN("show", "x", "--url", s->url);
	CHECK(has(r.err, "is not JSON"));
	over(&r);
	CHECK(uar_prepared_finish(s));
	CHECK(has(s->asked[0], "GET /api/runs/a%2Fb HTTP/1.1\r\n"));
	uar_prepared_destroy(s);
}

TEST(json_names_the_code_that_the_server_named, "")
{
	struct uar_prepared *s =
		START({ PROBLEM("409 Conflict", "{\"code\":\"ACTION_RESOLVED\"}"), 0 },
		      { PROBLEM("409 Conflict", "{\"code\":\"NEVER_HEARD_OF\"}"), 0 });
	struct run r = RUN("show", "x", "--url", s->url, "--json");

	CHECK_STR(uar_str_c(r.out),
		  "{\"error\":\"ACTION_RESOLVED\",\"code\":\"ACTION_RESOLVED\"}\n");
	over(&r);
	r = RUN("show", "x", "--url", s->url, "--json");
	CHECK_STR(uar_str_c(r.out), "{\"error\":\"NEVER_HEARD_OF\",\"code\":\"CONFLICT\"}\n");
	over(&r);
	CHECK(uar_prepared_finish(s));
	uar_prepared_destroy(s);
}

TEST(cancel_sends_the_reason, "")
{
	struct uar_prepared *s =
		START({ OK("{\"run_id\":\"r\",\"status\":\"cancel_requested\"}"), 0 },
		      { OK("{\"run_id\":\"r\",\"status\":\"canceled\"}"), 0 });
	struct run r = RUN("cancel", "r", "--url", s->url, "--reason", "too \"slow\"");

	CHECK_INT(r.status, 0);
	CHECK_STR(uar_str_c(r.out), "r  cancel_requested\n");
	over(&r);
	r = RUN("cancel", "r", "--url", s->url, "--json");
	CHECK_STR(uar_str_c(r.out), "{\"run_id\":\"r\",\"status\":\"canceled\"}\n");
	over(&r);
	CHECK(uar_prepared_finish(s));
	CHECK(has(s->asked[0], "POST /api/runs/r/cancel HTTP/1.1\r\n"));
	CHECK(has(s->asked[0], "\r\n\r\n{\"reason\":\"too \\\"slow\\\"\"}"));
	CHECK(has(s->asked[1], "\r\n\r\n{}"));
	uar_prepared_destroy(s);
}
