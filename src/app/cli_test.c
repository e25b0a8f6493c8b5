/* cli_test.c - command lines in, output and exit status out. */
#include "test.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/cli.h"
#include "app/datadir.h"
#include "cli_run.h"

#define RUN_ENV(ENV, ...)                                                                          \
	uar_with((struct uar_cli){ .env = (ENV) }, (char *[16]){ "uar", __VA_ARGS__ })

TEST(bare_and_help_list_every_verb, "")
{
	static const char *const names[] = {
#define V(NAME, MIN, MAX, OPTIONS, SETTINGS, USAGE, DOC) #NAME,
#include "app/cli.def"
#undef V
	};
	struct run bare = RUN(), help = RUN("help"), dashes = RUN("--help");

	CHECK_INT(bare.status, 0);
	CHECK_STR(uar_str_c(bare.out), help.out);
	CHECK_STR(uar_str_c(dashes.out), help.out);
	CHECK(has(help.out, "0 fine, 1 failed, 2 wrong command line;"));
	CHECK(has(help.out, "3 canceled, 4 timeout; 130 "));
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct run a = RUN("help", (char *)names[i]);
		struct run b = RUN((char *)names[i], "--help");

		CHECK(has(help.out, names[i]));
		CHECK_INT(a.status, 0);
		CHECK_INT(b.status, 0);
		CHECK_STR(uar_str_c(a.out), b.out);
		CHECK(has(a.out, "usage: uar "));
		over(&a);
		over(&b);
	}
	over(&bare);
	over(&help);
	over(&dashes);
}

TEST(unknown_verbs_suggest_the_nearest, "")
{
	struct run r = RUN("confgi");

	CHECK_INT(r.status, 2);
	CHECK(has(r.err, "did you mean `uar config`?"));
	over(&r);
	r = RUN("frobnicate");
	CHECK_INT(r.status, 2);
	CHECK(has(r.err, "`uar help` lists them"));
	over(&r);
	r = RUN("help", "verison");
	CHECK_INT(r.status, 2);
	CHECK(has(r.err, "did you mean `uar version`?"));
	over(&r);
}

TEST(version_in_both_forms, "")
{
	struct run r = RUN("version");

	CHECK_STR(uar_str_c(r.out), "uar " UAR_VERSION "\n");
	over(&r);
	r = RUN("version", "--json");
	CHECK_STR(uar_str_c(r.out), "{\"name\":\"uar\",\"version\":\"" UAR_VERSION "\"}\n");
	over(&r);
	r = RUN("--version");
	CHECK_STR(uar_str_c(r.out), "uar " UAR_VERSION "\n");
	over(&r);
}

TEST(wrong_command_lines_exit_with_2, "")
{
	static const struct {
		char *argv[5];
		const char *want;
	} cases[] = {
		{ { "uar", "version", "x" }, "does not know what to do with \"x\"" },
		{ { "uar", "version", "--jsn" }, "did you mean --json?" },
		{ { "uar", "version", "-z" }, "has no option -z" },
		{ { "uar", "logs", "--follow=1" }, "--follow takes no value but true or false" },
		{ { "uar", "version", "--model", "x" }, "does not take the setting --model" },
		{ { "uar", "config", "--model" }, "--model needs a value" },
		{ { "uar", "config", "--config" }, "--config needs a value" },
		{ { "uar", "config", "-c" }, "--config needs a value" },
		{ { "uar", "config", "--heartbeat-second", "x" },
		  "did you mean --heartbeat-seconds?" },
		{ { "uar", "serve", "--listen", "127.0.0.1" }, "expected IPV4:PORT, localhost:" },
		{ { "uar", "serve", "--listen=foo.invalid:80" }, "expected IPV4:PORT, localhost:" },
		{ { "uar", "health", "--url", "foo" }, "foo is not a server's URL" },
		{ { "uar", "runs", "--limit", "x" }, "--limit" },
		{ { "uar", "serve", "--port", "80" }, "no option --port, did you mean --listen?" },
		{ { "uar", "health", "--host", "h" }, "did you mean --url?" },
		{ { "uar", "serve", "--heartbeat=3" }, "did you mean --heartbeat-seconds?" },
		{ { "uar", "serve", "--data-directory", "d" }, "did you mean --data?" },
		{ { "uar", "serve", "--level", "d" }, "did you mean --log-level?" },
		{ { "uar", "runs", "--idem", "d" }, "has no option --idem\n" },
		{ { "uar", "run", "--idem", "d" }, "did you mean --idempotency-key?" },
		{ { "uar", "vers" }, "did you mean `uar version`?" },
		{ { "uar", "config", "--", "--json" }, "does not know what to do with \"--json\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r = uar_with((struct uar_cli){ .in = NULL }, cases[i].argv);

		CHECK_INT(r.status, 2);
		CHECK(has(r.err, cases[i].want));
		CHECK_INT(r.out_n, 0);
		over(&r);
	}
}

TEST(json_tells_what_is_wrong_with_the_command_line, "")
{
	static const struct {
		char *argv[6];
		const char *want; /* NULL: --json was not asked for */
	} cases[] = {
		{ { "uar", "runs", "--json", "--nope" }, "`uar runs` has no option --nope" },
		{ { "uar", "runs", "--nope", "--json" }, "`uar runs` has no option --nope" },
		{ { "uar", "show", "--json" }, "usage: uar show RUN" },
		{ { "uar", "show", "--json=true" }, "usage: uar show RUN" },
		{ { "uar", "runs", "--json=1" }, "--json takes no value but true or false" },
		{ { "uar", "runs", "--nope", "--json=false" }, NULL },
		{ { "uar", "config", "--json", "--model" }, "--model needs a value" },
		{ { "uar", "help", "--json" }, "`uar help` has no option --json" },
		{ { "uar", "frob", "--json" }, "there is no verb \"frob\"; `uar help` lists them" },
		{ { "uar", "runs", "--nope", "--", "--json" }, NULL },
		{ { "uar", "runs", "--nope" }, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct run r = uar_with((struct uar_cli){ .in = NULL }, cases[i].argv);
		struct uar_buf want = uar_buf_make(1000);
		struct uar_jw w = uar_jw_begin(&want);

		CHECK_INT(r.status, 2);
		if (cases[i].want) {
			uar_jw_obj(&w, NULL);
			uar_jw_cstr(&w, "error", cases[i].want);
			uar_jw_cstr(&w, "code", "VALIDATION_ERROR");
			uar_jw_close(&w);
			CHECK_INT(uar_jw_end(&w), UAR_OK);
			uar_buf_add_char(&want, '\n');
			CHECK(has(r.err, cases[i].want));
			CHECK_STR(uar_str_c(r.out), want.p);
		} else {
			CHECK_INT(r.out_n, 0);
		}
		over(&r);
		uar_buf_fini(&want);
	}
}

TEST(a_mistyped_secret_flag_does_not_show_the_secret, "")
{
	struct run r = RUN("config", "--tokne=hunter2");

	CHECK_INT(r.status, 2);
	CHECK(has(r.err, "did you mean --token?"));
	CHECK(!strstr(r.err, "hunter2"));
	over(&r);
}

TEST(config_shows_values_and_sources, "CFG-04")
{
	static char *const env[] = { "HOME=/nonexistent", "UAR_MODEL=m1", NULL };
	struct run r = RUN_ENV(env, "config", "--log-json", "--readers=5", "--token", "hunter2");

	CHECK_INT(r.status, 0);
	CHECK(has(r.out, "UAR_MODEL\n"));
	CHECK(has(r.out, "--readers\n"));
	CHECK(has(r.out, "--log-json\n"));
	CHECK(has(r.out, "<set>"));
	CHECK(!strstr(r.out, "hunter2"));
	over(&r);
	r = RUN_ENV(env, "config", "--json", "--log-json=false", "--log-json", "true",
		    "--model=m2");
	CHECK_INT(r.status, 0);
	CHECK(has(r.out, "\"log_json\":{\"value\":true,\"source\":\"flag\""));
	CHECK(has(r.out, "\"model\":{\"value\":\"m2\""));
	CHECK(has(r.out, "\"heartbeat_seconds\":{\"value\":15,"));
	over(&r);
	r = RUN_ENV(env, "config", "--readers", "many");
	CHECK_INT(r.status, 2);
	CHECK(has(r.err, "uar: --readers: readers: \"many\" is not valid, expected a number"));
	over(&r);
}

TEST(check_looks_and_touches_nothing, "CFG-04")
{
	char data[400], file[420];
	struct stat st;
	struct run r;
	FILE *f;

	snprintf(data, sizeof data, "%s/a/b", uar_test_dir());
	r = RUN("check", "--data", data);
	CHECK_INT(r.status, 0);
	CHECK(has(r.out, "will be created"));
	CHECK(stat(data, &st) != 0);
	over(&r);
	r = RUN("check", "--data", "/dev/null");
	CHECK_INT(r.status, 1);
	CHECK(has(r.err, "Not a directory"));
	over(&r);
	REQUIRE(uar_datadir_create(data, NULL) == UAR_OK);
	r = RUN("check", "--data", data, "--fixtures-dir", "/nonexistent");
	CHECK_INT(r.status, 1);
	CHECK(has(r.err, "/nonexistent: No such file"));
	over(&r);
	snprintf(file, sizeof file, "%s/config.json", data);
	f = fopen(file, "w");
	REQUIRE(f && fputs("{\"token\": \"x\"}", f) >= 0 && fclose(f) == 0);
	REQUIRE(chmod(file, 0644) == 0);
	r = RUN("check", "--data", data);
	CHECK_INT(r.status, 0);
	CHECK(has(r.out, "holds token and is open to other users"));
	over(&r);
}

/* --- the data directory ------------------------------------------------------------ */
TEST(tools_see_nothing_of_the_data_directory, "")
{
	static const struct {
		const char *dir;
		bool good;
	} cases[] = {
		{ "d/files", true },
		{ "d/files/", true },
		{ "d/files/sub/x", true },
		{ "beside", true },
		{ "dd", true },
		{ "not/there/yet", true },
		{ "d", false },
		{ "d/", false },
		{ ".", false },
		{ "d/..", false },
		{ "d/plugins", false },
		{ "d/filesystem", false },
		{ "d/files/..", false },
		{ "beside/up", false },
		{ "beside/in", false },
		{ "dd/../d", false },
		{ "beside/own", true },
		{ "beside/../d/./", false },
		{ "d/token/x", false },
		{ "not/there/../../d", false },
	};
	char base[300], data[400], path[500], before[PATH_MAX];
	struct uar_error error = { 0 };

	snprintf(base, sizeof base, "%s", uar_test_dir());
	snprintf(data, sizeof data, "%s/d", base);
	REQUIRE(uar_datadir_create(data, &error) == UAR_OK);
	snprintf(path, sizeof path, "%s/beside", base);
	REQUIRE(uar_datadir_create(path, &error) == UAR_OK);
	REQUIRE(getcwd(before, sizeof before) && chdir(path) == 0);
	REQUIRE(symlink("..", "up") == 0 && symlink("../d/agents", "in") == 0);
	REQUIRE(symlink("../d/files", "own") == 0);
	REQUIRE(chdir("..") == 0);
	REQUIRE(mkdir("dd", 0700) == 0 && mkdir("d/files", 0700) == 0 &&
		mkdir("d/agents", 0700) == 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uar_err want = cases[i].good ? UAR_OK : UAR_ECONFIG;

		snprintf(path, sizeof path, "%s/%s", base, cases[i].dir);
		CHECK_MSG(uar_datadir_apart(data, path, &error) == want, "%s", cases[i].dir);
		CHECK_MSG(uar_datadir_apart("d", cases[i].dir, &error) == want, "%s", cases[i].dir);
	}
	CHECK_INT(uar_datadir_apart(data, "/", &error), UAR_ECONFIG);
	CHECK_INT(uar_datadir_apart(data, "/dev/null/x", &error), UAR_ECONFIG);
	CHECK(chdir(before) == 0);
}

TEST(a_token_is_made_once_and_kept_private, "")
{
	char data[400], path[420];
	struct uar_config c = { .token = "" };
	struct uar_buf a = uar_buf_make(1000), b = uar_buf_make(1000);
	struct uar_error error = { 0 };
	struct stat st;

	snprintf(data, sizeof data, "%s/d", uar_test_dir());
	snprintf(path, sizeof path, "%s/token", data);
	c.data = data;
	REQUIRE(uar_datadir_create(data, &error) == UAR_OK);
	CHECK(stat(data, &st) == 0 && (st.st_mode & 0777) == 0700);
	CHECK_INT(uar_datadir_token(&c, NULL, &a, &error), UAR_ENOTFOUND);
	REQUIRE(uar_datadir_token(&c, &uar_rand_system, &a, &error) == UAR_OK);
	CHECK_INT(a.n, 64);
	CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
	REQUIRE(uar_datadir_token(&c, &uar_rand_system, &b, &error) == UAR_OK);
	CHECK(uar_str_eq(uar_buf_str(&a), uar_buf_str(&b)));
	REQUIRE(chmod(path, 0640) == 0);
	CHECK_INT(uar_datadir_token(&c, &uar_rand_system, &b, &error), UAR_EFORBIDDEN);
	uar_buf_clear(&b);
	c.token = "given";
	CHECK_INT(uar_datadir_token(&c, NULL, &b, &error), UAR_OK);
	CHECK_STR(uar_buf_str(&b), "given");
	uar_buf_fini(&a);
	uar_buf_fini(&b);
}

TEST(a_server_announces_itself, "")
{
	const char *data = uar_test_dir();
	struct uar_server_info in = { .url = "http://127.0.0.1:4711", .pid = 17 }, out;
	struct uar_error error = { 0 };

	CHECK_INT(uar_datadir_server(data, &out, &error), UAR_ENOTFOUND);
	REQUIRE(uar_datadir_announce(data, &in, &uar_clock_system, &error) == UAR_OK);
	REQUIRE(uar_datadir_server(data, &out, &error) == UAR_OK);
	CHECK_STR(uar_str_c(out.url), in.url);
	CHECK_INT(out.pid, 17);
	CHECK(!uar_datadir_passing(data));
	uar_datadir_retract(data, &in);
	CHECK_INT(uar_datadir_server(data, &out, &error), UAR_ENOTFOUND);
	CHECK(!uar_datadir_passing(data));
}

TEST(a_server_that_leaves_by_itself_is_remembered, "")
{
	const char *data = uar_test_dir();
	struct uar_server_info in = { .url = "unix:/x", .pid = 17, .passing = true }, out;
	struct uar_error error = { 0 };

	REQUIRE(uar_datadir_announce(data, &in, &uar_clock_system, &error) == UAR_OK);
	REQUIRE(uar_datadir_server(data, &out, &error) == UAR_OK);
	CHECK(out.passing && uar_datadir_passing(data));
	uar_datadir_retract(data, &in);
	CHECK_INT(uar_datadir_server(data, &out, &error), UAR_ENOTFOUND);
	CHECK(uar_datadir_passing(data));
}
