/* config_test.c - every source, every form, every way to be wrong. */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "app/args.h"
#include "app/limits.h"
#include "base/log.h"
#include "http/limits.h"
#include "work/limits.h"

struct fixture {
	struct uar_config_set *set;
	struct uar_buf problems;
	uar_err e;
};

static void load(struct fixture *f, const struct uar_config_input *in)
{
	f->problems = uar_buf_make(UAR_LIMIT_CONFIG_PROBLEMS);
	f->set = NULL;
	f->e = uar_config_load(in, &f->set, &f->problems);
}

static void done(struct fixture *f)
{
	uar_config_destroy(f->set);
	uar_buf_fini(&f->problems);
}

static bool says(const struct fixture *f, const char *part)
{
	bool found = f->problems.n && strstr(f->problems.p, part);

	if (!found)
		printf("  problems: %s\n", f->problems.n ? f->problems.p : "(none)");
	return found;
}

static struct uar_config_flag flag(const char *key, const char *value)
{
	struct uar_config_flag f = { .value = value };

	f.row = uar_config_find(uar_str_c(key), &f.in_file);
	return f;
}

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (!f || fputs(text, f) < 0 || fclose(f))
		abort();
}

static const char *file_with(const char *text)
{
	static char path[400];

	snprintf(path, sizeof path, "%s/c.json", uar_test_dir());
	write_text(path, text);
	return path;
}

/* Loads one configuration file with nothing around it. */
static void load_file(struct fixture *f, const char *text)
{
	static char *const env[] = { "HOME=/h", NULL };

	load(f, &(struct uar_config_input){ .env = env, .file = file_with(text) });
}

TEST(defaults_are_valid_and_complete, "CFG-04")
{
	static char *const env[] = { "HOME=/home/x", NULL };
	struct fixture f;

	load(&f, &(struct uar_config_input){ .env = env });
	REQUIRE(f.e == UAR_OK);
	CHECK_STR(uar_str_c(f.set->value.listen), "127.0.0.1:0");
	CHECK_STR(uar_str_c(f.set->value.data), "/home/x/.local/share/uar");
	CHECK_INT(f.set->value.heartbeat_us, 15000000);
	CHECK_INT(f.set->value.run_timeout_us, 300000000);
	CHECK_INT(f.set->value.max_connections, UAR_LIMIT_HTTP_CONNECTIONS);
	CHECK_INT(f.set->value.max_body_bytes, UAR_LIMIT_HTTP_BODY);
	CHECK_INT(f.set->value.cancel_terminal, UAR_CONFIG_CANCEL_ERROR);
	CHECK_INT(f.set->value.log_level, UAR_LOG_INFO);
	CHECK_INT(f.set->value.allowed_hosts.count, 0);
	for (size_t i = 0; i < UAR_CONFIG_COUNT; i++)
		CHECK_STR(uar_str_c(f.set->origin[i].where), "default");
	done(&f);
}

TEST(names_of_enums_match_their_constants, "")
{
	static const char *const levels[] = { "debug", "info", "warn", "error", "off" };
	struct fixture f;

	for (int i = 0; i <= UAR_LOG_OFF; i++) {
		struct uar_config_flag flags[] = { flag("log-level", levels[i]),
						   flag("cancel-terminal", "done"),
						   flag("data", "/d") };

		load(&f, &(struct uar_config_input){ .flags = flags, .flag_count = 3 });
		REQUIRE(f.e == UAR_OK);
		CHECK_INT(f.set->value.log_level, i);
		CHECK_INT(f.set->value.cancel_terminal, UAR_CONFIG_CANCEL_DONE);
		done(&f);
	}
}

TEST(xdg_data_home_beats_home, "")
{
	static char *const env[] = { "HOME=/h", "XDG_DATA_HOME=/x", NULL };
	static char *const relative[] = { "HOME=/h", "XDG_DATA_HOME=x", NULL };
	struct fixture f;

	load(&f, &(struct uar_config_input){ .env = env });
	REQUIRE(f.e == UAR_OK);
	CHECK_STR(uar_str_c(f.set->value.data), "/x/uar");
	done(&f);
	load(&f, &(struct uar_config_input){ .env = relative });
	REQUIRE(f.e == UAR_OK);
	CHECK_STR(uar_str_c(f.set->value.data), "/h/.local/share/uar");
	done(&f);
	load(&f, &(struct uar_config_input){ .env = NULL });
	CHECK_INT(f.e, UAR_ECONFIG);
	CHECK(says(&f, "HOME"));
	done(&f);
}

/* One setting given by all sources, the strongest taken away one by one. */
TEST(precedence_is_flag_env_alias_file_default, "CFG-04")
{
	static char *const env[] = { "HOME=/h", "UAR_OPENAI_BASE_URL=http://env",
				     "OPENAI_BASE_URL=http://alias", NULL };
	const char *path = file_with("{\"openai_base_url\": \"http://file\"}");
	struct uar_config_flag one = flag("openai-base-url", "http://flag");
	static const char *const want[] = { "http://flag", "http://env", "http://alias",
					    "http://file", "" };
	static const char *const where[] = { "--openai-base-url", "UAR_OPENAI_BASE_URL",
					     "OPENAI_BASE_URL", NULL, "default" };
	char *const less[] = { "HOME=/h", "OPENAI_BASE_URL=http://alias", NULL };
	char *const none[] = { "HOME=/h", "OPENAI_BASE_URL=", NULL };

	for (int i = 0; i < 5; i++) {
		struct fixture f;
		size_t row = (size_t)(one.row - uar_config_rows);

		load(&f, &(struct uar_config_input){ .flags = &one,
						     .flag_count = i == 0,
						     .env = i < 2    ? env
							    : i == 2 ? less
								     : none,
						     .file = i < 4 ? path : NULL });
		REQUIRE(f.e == UAR_OK);
		CHECK_STR(uar_str_c(f.set->value.openai_base_url), want[i]);
		if (where[i])
			CHECK_STR(uar_str_c(f.set->origin[row].where), where[i]);
		CHECK_INT(f.set->origin[row].source, i == 0   ? UAR_CONFIG_FROM_FLAG
						     : i <= 2 ? UAR_CONFIG_FROM_ENV
						     : i == 3 ? UAR_CONFIG_FROM_FILE
							      : UAR_CONFIG_FROM_DEFAULT);
		done(&f);
	}
}

TEST(the_last_flag_wins, "")
{
	struct uar_config_flag flags[] = { flag("model", "a"), flag("model", "b"),
					   flag("data", "/d") };
	struct fixture f;

	load(&f, &(struct uar_config_input){ .flags = flags, .flag_count = 3 });
	REQUIRE(f.e == UAR_OK);
	CHECK_STR(uar_str_c(f.set->value.model), "b");
	done(&f);
}

TEST(every_type_reads_from_the_file, "CFG-04")
{
	struct fixture f;

	load_file(&f, "{\"$schema\": \"x\", \"listen\": \"[::1]:80\", \"readers\": 7,\n"
		      " \"log_json\": true, \"log_level\": \"warn\", \"heartbeat_seconds\": 2.5,\n"
		      " \"run_timeout_seconds\": \"2h\", \"drain_seconds\": 0,\n"
		      " \"allowed_hosts\": [\"a.example\", \"b.example:8080\"],\n"
		      " \"allowed_origins\": [], \"token\": \"s3cret\"}");
	REQUIRE(f.e == UAR_OK);
	CHECK_STR(uar_str_c(f.set->value.listen), "[::1]:80");
	CHECK_INT(f.set->value.readers, 7);
	CHECK(f.set->value.log_json);
	CHECK_INT(f.set->value.log_level, UAR_LOG_WARN);
	CHECK_INT(f.set->value.heartbeat_us, 2500000);
	CHECK_INT(f.set->value.run_timeout_us, 7200000000LL);
	CHECK_INT(f.set->value.drain_us, 0);
	REQUIRE(f.set->value.allowed_hosts.count == 2);
	CHECK_STR(uar_str_c(f.set->value.allowed_hosts.items[1]), "b.example:8080");
	CHECK_STR(uar_str_c(f.set->value.token), "s3cret");
	CHECK(f.set->file != NULL);
	done(&f);
}

TEST(the_data_directory_may_hold_the_file, "CFG-04")
{
	const char *dir = uar_test_dir();
	char path[400], env_data[400];
	char *const env[] = { env_data, NULL };
	struct fixture f;

	snprintf(env_data, sizeof env_data, "UAR_DATA=%s", dir);
	snprintf(path, sizeof path, "%s/config.json", dir);
	write_text(path, "{\"model\": \"m\"}");
	load(&f, &(struct uar_config_input){ .env = env });
	REQUIRE(f.e == UAR_OK);
	CHECK_STR(uar_str_c(f.set->value.model), "m");
	CHECK_STR(uar_str_c(f.set->file), path);
	done(&f);
	write_text(path, "{\"data\": \"/elsewhere\"}");
	load(&f, &(struct uar_config_input){ .env = env });
	CHECK_INT(f.e, UAR_ECONFIG);
	CHECK(says(&f, "cannot move it"));
	done(&f);
}

TEST(a_named_file_replaces_that_of_the_data_directory, "")
{
	const char *dir = uar_test_dir();
	char path[400], env_file[500];
	char *const env[] = { env_file, "UAR_URL=http://x", "UAR_TEST_ANYTHING=1", "HOME=/h",
			      NULL };
	struct uar_config_flag one = flag("data", dir);
	struct fixture f;

	snprintf(path, sizeof path, "%s/config.json", dir);
	write_text(path, "not even JSON");
	snprintf(env_file, sizeof env_file, "UAR_CONFIG=%s", file_with("{\"model\": \"n\"}"));
	load(&f, &(struct uar_config_input){ .env = env, .flags = &one, .flag_count = 1 });
	REQUIRE(f.e == UAR_OK);
	CHECK_STR(uar_str_c(f.set->value.model), "n");
	done(&f);
}

/* --- wrong values ---------------------------------------------------------------- */
TEST(every_bad_value_is_refused_with_its_form, "CFG-04")
{
	static const struct {
		const char *key, *value, *expected;
	} cases[] = {
		{ "listen", "", "IPV4:PORT" },
		{ "listen", "localhost", "IPV4:PORT" },
		{ "listen", ":80", "IPV4:PORT" },
		{ "listen", "127.0.0.1:65536", "IPV4:PORT" },
		{ "listen", "127.0.0.1:-1", "IPV4:PORT" },
		{ "listen", "host.example:80", "IPV4:PORT, localhost:PORT" },
		{ "listen", "[127.0.0.1]:80", "IPV4:PORT" },
		{ "listen", "[:1]:80", "[IPV6]:PORT" },
		{ "listen", "::1:80", "IPV4:PORT" },
		{ "listen", "[]:80", "IPV4:PORT" },
		{ "listen", "a b:80", "IPV4:PORT" },
		{ "listen", "unix:", "unix:PATH" },
		{ "data", "a\nb", "a path" },
		{ "data", "\xff", "a path" },
		{ "token", "two words", "visible ASCII" },
		{ "log-level", "loud", "one of debug, info, warn, error, off" },
		{ "log-level", "", "one of debug" },
		{ "log-level", "debug|info", "one of debug" },
		{ "log-json", "maybe", "true or false" },
		{ "openai-base-url", "ftp://x", "http://HOST" },
		{ "openai-base-url", "http://", "http://HOST" },
		{ "openai-base-url", "http://user:pw@host", "http://HOST" },
		{ "openai-base-url", "http://x/?q", "http://HOST" },
		{ "readers", "0", "from 1 to 64" },
		{ "readers", "65", "from 1 to 64" },
		{ "readers", "2.0", "from 1 to 64" },
		{ "readers", "-1", "from 1 to 64" },
		{ "readers", "1e1", "from 1 to 64" },
		{ "readers", "99999999999999999999", "from 1 to 64" },
		{ "max-connections", "@HTTP_BODY", "from 1 to" },
		{ "heartbeat-seconds", "", "seconds" },
		{ "heartbeat-seconds", "10 s", "seconds" },
		{ "heartbeat-seconds", "1.", "seconds" },
		{ "heartbeat-seconds", ".", "seconds" },
		{ "heartbeat-seconds", ".s", "seconds" },
		{ "heartbeat-seconds", "1.0000001", "seconds" },
		{ "heartbeat-seconds", "99ms", "from 100ms to 10m" },
		{ "heartbeat-seconds", "601", "from 100ms to 10m" },
		{ "heartbeat-seconds", "1w", "ms, s, m, h or d" },
		{ "heartbeat-seconds", "9223372036854775807d", "seconds" },
		{ "cancel-terminal", "Error", "one of error, done" },
		{ "allowed-hosts", "*", "host names" },
		{ "allowed-hosts", "a,,b", "host names" },
		{ "allowed-hosts", "http://a", "host names" },
		{ "allowed-origins", "*", "SCHEME://HOST" },
		{ "allowed-origins", "https://a/path", "SCHEME://HOST" },
		{ "allowed-origins", "a.example", "SCHEME://HOST" },
		{ "tenant", "", "visible ASCII" },
		{ "tenant", "a b", "visible ASCII" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_config_flag flags[] = { flag("data", "/d"),
						   flag(cases[i].key, cases[i].value) };
		char where[80];
		struct fixture f;

		load(&f, &(struct uar_config_input){ .flags = flags, .flag_count = 2 });
		CHECK_MSG(f.e == UAR_EINVALID, "%s=%s was taken", cases[i].key, cases[i].value);
		snprintf(where, sizeof where, "--%s: ", cases[i].key);
		CHECK(says(&f, where));
		CHECK(says(&f, cases[i].expected));
		done(&f);
	}
}

TEST(good_forms_are_taken, "")
{
	static const struct {
		const char *key, *value, *shown;
	} cases[] = {
		{ "listen", "0.0.0.0:8080", "0.0.0.0:8080" },
		{ "listen", "localhost:0", "localhost:0" },
		{ "listen", "[::1]:80", "[::1]:80" },
		{ "listen", "unix:/run/uar.sock", "unix:/run/uar.sock" },
		{ "heartbeat-seconds", "100ms", "100ms" },
		{ "heartbeat-seconds", "0.25", "250ms" },
		{ "heartbeat-seconds", "1.000001s", "1.000001s" },
		{ "heartbeat-seconds", "10m", "10m" },
		{ "run-timeout-seconds", "1.5h", "90m" },
		{ "run-timeout-seconds", ".5h", "30m" },
		{ "heartbeat-seconds", ".5", "500ms" },
		{ "run-timeout-seconds", "30d", "30d" },
		{ "drain-seconds", "0", "0s" },
		{ "log-json", "on", "true" },
		{ "allowed-hosts", " a.example , b.example ", "a.example, b.example" },
		{ "allowed-origins", "tauri://localhost", "tauri://localhost" },
		{ "openai-base-url", "https://host/v1", "https://host/v1" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_config_flag flags[] = { flag("data", "/d"),
						   flag(cases[i].key, cases[i].value) };
		struct uar_buf shown = uar_buf_make(1000);
		struct fixture f;

		load(&f, &(struct uar_config_input){ .flags = flags, .flag_count = 2 });
		if (CHECK_MSG(f.e == UAR_OK, "%s=%s refused: %s", cases[i].key, cases[i].value,
			      f.problems.n ? f.problems.p : "")) {
			uar_config_format(flags[1].row, &f.set->value, &shown);
			CHECK_STR(uar_buf_str(&shown), cases[i].shown);
		}
		uar_buf_fini(&shown);
		done(&f);
	}
}

TEST(the_file_is_strict_and_points_at_the_place, "CFG-04")
{
	static const struct {
		const char *text;
		const char *want[2];
	} cases[] = {
		{ "", { "c.json:" } },
		{ "[]", { "expected one JSON object" } },
		{ "{\"model\": \"a\",\n  \"modle\": \"b\"}",
		  { "c.json:2:3: ", "\"modle\", did you mean \"model\"?" } },
		{ "{\"log-level\": \"info\"}", { "did you mean \"log_level\"?" } },
		{ "{\"heartbeat\": 3}", { "\"heartbeat\", did you mean \"heartbeat_seconds\"?" } },
		{ "{\"api_key\": 3}", { "did you mean \"openai_api_key\"?" } },
		{ "{\"timeout\": 3}", { "did you mean \"run_timeout_seconds\"?" } },
		{ "{\"port\": 3}", { "did you mean \"listen\"?" } },
		{ "{\"zzzzzzzzzzzz\": 1}", { "there is no setting \"zzzzzzzzzzzz\"\n" } },
		{ "{\n\n\t\"readers\": \"2\"}", { "c.json:3:2: readers: found a JSON string" } },
		{ "{\"readers\": 1.5}", { "found a JSON" } },
		{ "{\"log_json\": \"true\"}", { "expected true or false" } },
		{ "{\"model\": null}", { "found a JSON null" } },
		{ "{\"model\": {}}", { "found a JSON object" } },
		{ "{\"allowed_hosts\": \"a\"}", { "found a JSON string" } },
		{ "{\"allowed_hosts\": [1]}", { "an item is a" } },
		{ "{\"allowed_hosts\": [\"a\", \"*\"]}", { "\"*\" is not valid" } },
		{ "{\"model\": \"a\", \"model\": \"b\"}", { "c.json:1:" } },
		{ "{\"heartbeat_seconds\": -1}", { "c.json:1:2: heartbeat_seconds" } },
		{ "{\"mod\\u0065l\": 1}", { "c.json: model: found a JSON" } },
		{ "{\"token_file\": 1}", { "path of a file" } },
		{ "{\"token_file\": \"/nonexistent/x\"}", { "cannot read /nonexistent/x" } },
		{ "{\"model\": \"x\"", { "c.json:1:" } },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct fixture f;

		load_file(&f, cases[i].text);
		CHECK_MSG(f.e == UAR_ECONFIG, "%s was taken", cases[i].text);
		for (int k = 0; k < 2; k++)
			if (cases[i].want[k])
				CHECK_MSG(says(&f, cases[i].want[k]), "%s: %s", cases[i].text,
					  cases[i].want[k]);
		done(&f);
	}
}

TEST(a_file_that_cannot_be_read_is_named, "CFG-04")
{
	struct fixture f;

	load(&f, &(struct uar_config_input){ .file = "/nonexistent/c.json" });
	CHECK_INT(f.e, UAR_ECONFIG);
	CHECK(says(&f, "cannot read /nonexistent/c.json: No such file"));
	done(&f);
	load(&f, &(struct uar_config_input){ .file = "/" });
	CHECK(says(&f, "cannot read /: not a file"));
	done(&f);
}

TEST(unknown_variables_are_warnings_unless_strict, "")
{
	static char *const env[] = { "HOME=/h",	   "UAR_LOG_LEVLE=info", "UAR_XYZZY_PLUGH=1",
				     "UAR_USER=u", "NOT_OURS=1",	 "UAR_SECRET_KEY=s",
				     NULL };
	static const char text[] =
		"UAR_LOG_LEVLE: there is no such setting, did you mean UAR_LOG_LEVEL?\n"
		"UAR_XYZZY_PLUGH: there is no such setting\n";
	static char *const bad[] = { "UAR_DTA=/d", NULL };
	struct fixture f;

	load(&f, &(struct uar_config_input){ .env = env });
	REQUIRE(f.e == UAR_OK);
	CHECK_INT(f.problems.n, 0);
	CHECK_STR(uar_str_c(f.set->warnings), text);
	CHECK_STR(uar_str_c(f.set->value.user), "u");
	done(&f);
	load(&f, &(struct uar_config_input){ .env = env, .strict = true });
	CHECK_INT(f.e, UAR_ECONFIG);
	CHECK_STR(uar_buf_str(&f.problems), text);
	done(&f);
	load(&f, &(struct uar_config_input){ .env = bad });
	CHECK_INT(f.e, UAR_ECONFIG);
	CHECK(says(&f, "name one with --data\nUAR_DTA: there is no such setting, did you mean "
		       "UAR_DATA?\n"));
	done(&f);
}

TEST(an_empty_variable_counts_as_absent, "")
{
	static char *const env[] = { "HOME=/h", "UAR_X=", "UAR_LOG_LEVLE=", "UAR_USER=", NULL };
	struct fixture f;

	load(&f, &(struct uar_config_input){ .env = env, .strict = true });
	CHECK_INT(f.problems.n, 0);
	REQUIRE(f.e == UAR_OK);
	CHECK_STR(uar_str_c(f.set->warnings), "");
	done(&f);
}

/* Of services named uar and uar-web, one of them with a named port. */
TEST(variables_of_service_links_are_passed_over, "")
{
	static char *const env[] = { "HOME=/h",
				     "UAR_PORT=tcp://10.0.0.1:8080",
				     "UAR_SERVICE_HOST=10.0.0.1",
				     "UAR_SERVICE_PORT=8080",
				     "UAR_SERVICE_PORT_HTTP=8080",
				     "UAR_PORT_8080_TCP=tcp://10.0.0.1:8080",
				     "UAR_PORT_8080_TCP_PROTO=tcp",
				     "UAR_PORT_8080_TCP_PORT=8080",
				     "UAR_PORT_8080_TCP_ADDR=10.0.0.1",
				     "UAR_WEB_PORT=udp://10.0.0.2:53",
				     "UAR_WEB_SERVICE_HOST=10.0.0.2",
				     "UAR_WEB_PORT_53_UDP_ADDR=10.0.0.2",
				     "UAR_RUN_ID=r",
				     NULL };
	static char *const own[] = { "HOME=/h",
				     "UAR_PORT=8080",
				     "UAR_PORT_X_TCP=1",
				     "UAR_SERVICE_HOSTS=h",
				     "UAR_PORT_8080_TCP_ADDRESS=a",
				     NULL };
	struct fixture f;

	load(&f, &(struct uar_config_input){ .env = env, .strict = true });
	CHECK_INT(f.e, UAR_OK);
	done(&f);
	load(&f, &(struct uar_config_input){ .env = own, .strict = true });
	CHECK_INT(f.e, UAR_ECONFIG);
	CHECK(says(&f, "UAR_PORT: there is no such setting, did you mean UAR_LISTEN?"));
	CHECK(says(&f, "UAR_PORT_X_TCP: there"));
	CHECK(says(&f, "UAR_SERVICE_HOSTS: there"));
	CHECK(says(&f, "UAR_PORT_8080_TCP_ADDRESS: there"));
	done(&f);
}

TEST(all_problems_are_told_at_once, "")
{
	static char *const env[] = { "HOME=/h", "UAR_READERS=none", NULL };
	struct uar_config_flag one = flag("log-level", "loud");
	struct fixture f;

	load(&f, &(struct uar_config_input){ .env = env,
					     .flags = &one,
					     .flag_count = 1,
					     .file = file_with("{\"user\": 3}") });
	CHECK_INT(f.e, UAR_EINVALID);
	CHECK(says(&f, "user: found"));
	CHECK(says(&f, "UAR_READERS: readers"));
	CHECK(says(&f, "--log-level: log_level"));
	done(&f);
}

/* --- secrets ------------------------------------------------------------------------ */
TEST(secrets_are_never_shown, "SEC-03")
{
	static char *const env[] = { "HOME=/h", "OPENAI_API_KEY=hunter2", NULL };
	struct uar_buf out = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_config_flag good = flag("token", "hunter2"), bad = flag("token", "hunter2 x");
	struct fixture f;

	load(&f, &(struct uar_config_input){ .env = env, .flags = &good, .flag_count = 1 });
	REQUIRE(f.e == UAR_OK);
	uar_config_print(f.set, &out);
	uar_config_print_json(f.set, &out);
	CHECK(out.err == UAR_OK && strstr(out.p, "<set>"));
	CHECK(strstr(out.p, "\"token\":{\"set\":true,\"source\":\"flag\""));
	CHECK(!strstr(out.p, "hunter2"));
	done(&f);
	load(&f, &(struct uar_config_input){ .env = env, .flags = &bad, .flag_count = 1 });
	CHECK_INT(f.e, UAR_EINVALID);
	CHECK(!strstr(f.problems.p, "hunter2"));
	done(&f);
	load_file(&f, "{\"token\": \"hunter2\\n\", \"openai_api_key\": [\"hunter2\"]}");
	CHECK_INT(f.e, UAR_ECONFIG);
	CHECK(!strstr(f.problems.p, "hunter2"));
	done(&f);
	uar_buf_fini(&out);
}

TEST(secrets_may_come_from_files, "")
{
	char path[400], variable[500], text[500];
	char *const env[] = { "HOME=/h", variable, NULL };
	struct fixture f;

	snprintf(path, sizeof path, "%s/key", uar_test_dir());
	write_text(path, "s3cret\r\n");
	snprintf(variable, sizeof variable, "UAR_OPENAI_API_KEY_FILE=%s", path);
	struct uar_config_flag one = flag("token-file", path);
	CHECK(one.row && one.in_file);
	CHECK(!uar_config_find(UAR_STR("model_file"), &(bool){ false }));
	load(&f, &(struct uar_config_input){ .env = env, .flags = &one, .flag_count = 1 });
	REQUIRE(f.e == UAR_OK);
	CHECK_STR(uar_str_c(f.set->value.token), "s3cret");
	CHECK_STR(uar_str_c(f.set->value.openai_api_key), "s3cret");
	done(&f);
	snprintf(text, sizeof text, "{\"token_file\": \"%s\"}", path);
	load_file(&f, text);
	REQUIRE(f.e == UAR_OK);
	CHECK_STR(uar_str_c(f.set->value.token), "s3cret");
	done(&f);
}

/* --- reload --------------------------------------------------------------------------- */
static const char *fate(const struct uar_config_changes *c, const char *key)
{
	for (size_t i = 0; i < c->count; i++)
		if (!strcmp(c->of[i].row->key, key))
			return c->of[i].applied ? "applied" : "kept";
	return "same";
}

TEST(reload_takes_what_it_may_and_names_the_rest, "")
{
	char path[400];
	static char *const env[] = { "HOME=/h", NULL };
	struct uar_config_changes changes;
	struct uar_config_set *next = NULL;
	struct fixture f;

	snprintf(path, sizeof path, "%s",
		 file_with("{\"log_level\": \"info\", \"readers\": 3,"
			   " \"token\": \"a\", \"model\": \"m\","
			   " \"allowed_hosts\": [\"x\", \"y\"]}"));
	load(&f, &(struct uar_config_input){ .env = env, .file = path });
	REQUIRE(f.e == UAR_OK);
	write_text(path, "{\"log_level\": \"debug\", \"readers\": 4, \"token\": \"b\","
			 " \"model\": \"m\", \"heartbeat_seconds\": 1, \"allowed_hosts\": []}");
	REQUIRE(uar_config_reload(f.set, &next, &changes, &f.problems) == UAR_OK);
	CHECK_STR(uar_str_c(fate(&changes, "log_level")), "applied");
	CHECK_STR(uar_str_c(fate(&changes, "heartbeat_seconds")), "applied");
	CHECK_STR(uar_str_c(fate(&changes, "readers")), "kept");
	CHECK_STR(uar_str_c(fate(&changes, "token")), "kept");
	CHECK_STR(uar_str_c(fate(&changes, "allowed_hosts")), "kept");
	CHECK_STR(uar_str_c(fate(&changes, "model")), "same");
	CHECK_INT(changes.count, 5);
	CHECK_INT(next->value.log_level, UAR_LOG_DEBUG);
	CHECK_INT(next->value.heartbeat_us, 1000000);
	CHECK_INT(next->value.readers, 3);
	CHECK_STR(uar_str_c(next->value.token), "a");
	CHECK_INT(next->value.allowed_hosts.count, 2);
	CHECK_INT(f.set->value.log_level, UAR_LOG_INFO);
	uar_config_destroy(next);
	done(&f);
}

TEST(a_bad_file_on_reload_changes_nothing, "")
{
	char path[400];
	static char *const env[] = { "HOME=/h", NULL };
	struct uar_config_changes changes = { .count = 99 };
	struct uar_config_set *next = NULL;
	struct fixture f;

	snprintf(path, sizeof path, "%s", file_with("{}"));
	load(&f, &(struct uar_config_input){ .env = env, .file = path });
	REQUIRE(f.e == UAR_OK);
	write_text(path, "{\"log_level\": \"loud\"}");
	CHECK_INT(uar_config_reload(f.set, &next, &changes, &f.problems), UAR_ECONFIG);
	CHECK(next == NULL && changes.count == 99);
	CHECK(says(&f, "log_level"));
	CHECK_INT(f.set->value.log_level, UAR_LOG_INFO);
	done(&f);
}

/* --- the table itself -------------------------------------------------------------------- */
TEST(rows_are_well_formed, "")
{
	for (size_t i = 0; i < UAR_CONFIG_COUNT; i++) {
		const struct uar_config_row *row = &uar_config_rows[i];
		size_t end = strlen(row->doc);

		CHECK_MSG(uar_config_find(uar_str_c(row->key), NULL) == row, "%s twice", row->key);
		CHECK_MSG(end && row->doc[end - 1] == '.', "%s: doc is no sentence", row->key);
		CHECK_MSG(strspn(row->key, "abcdefghijklmnopqrstuvwxyz0123456789_") ==
				  strlen(row->key),
			  "%s: key", row->key);
		if (row->type == UAR_CONFIG_DURATION)
			CHECK_MSG(uar_str_ends(uar_str_c(row->key), UAR_STR("_seconds")), "%s",
				  row->key);
		if (row->type == UAR_CONFIG_INT || row->type == UAR_CONFIG_DURATION)
			CHECK_MSG(strstr(row->form, "..") != NULL, "%s: no range", row->key);
	}
}

/* A word that is a setting itself would never be looked up. */
TEST(words_of_other_servers_lead_to_names_that_are_there, "")
{
	static const char *const words[][2] = {
#define W(WORD, NAME) { WORD, NAME },
#include "app/config.def"
#undef W
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		bool option = false;

		for (size_t k = 0; k < UAR_OPT_COUNT; k++)
			option |= !strcmp(uar_opt_rows[k].name, words[i][1]);
		CHECK_MSG(option || uar_config_find(uar_str_c(words[i][1]), NULL), "%s",
			  words[i][1]);
		CHECK_MSG(!uar_config_find(uar_str_c(words[i][0]), NULL), "%s", words[i][0]);
	}
}

TEST(help_names_every_setting, "")
{
	struct uar_buf out = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);

	uar_config_print_help(&out);
	REQUIRE(out.err == UAR_OK);
	for (size_t i = 0; i < UAR_CONFIG_COUNT; i++)
		CHECK_MSG(strstr(out.p, uar_config_rows[i].key) != NULL, "%s",
			  uar_config_rows[i].key);
	uar_buf_fini(&out);
}

TEST(running_out_of_memory_anywhere_is_survived, "")
{
	static char *const env[] = { "HOME=/h", "UAR_MODEL=m", NULL };
	char path[400];
	struct uar_config_flag one = flag("allowed-hosts", "a,b");

	snprintf(path, sizeof path, "%s", file_with("{\"readers\": 3, \"tenant\": \"t\"}"));
	for (unsigned long n = 1;; n++) {
		struct fixture f;
		bool hit;

		uar_test_fail_alloc(n);
		load(&f, &(struct uar_config_input){
				 .env = env, .flags = &one, .flag_count = 1, .file = path });
		hit = uar_test_alloc_failed();
		uar_test_fail_alloc(0);
		CHECK_MSG(hit ? f.e != UAR_OK : f.e == UAR_OK, "allocation %lu: %s", n,
			  uar_err_name(f.e));
		done(&f);
		if (!hit)
			break;
	}
}
