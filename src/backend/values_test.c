/* values_test.c - the values of extensions: the bad ones start nothing, the good ones
 * reach the command line. */
#include "backend/record_test.h"

#include <sys/stat.h>

TEST(U22_U23_P13_S12_R01_R02_D01_D02_D03_D04_bad_values_start_nothing, "LIB-18 CAP-02 CAP-03")
{
	static const struct {
		enum which who;
		const char *key, *value, *key2, *value2;
		uaa_status status;
		const char *message; /* or the capability */
	} cases[] = {
		{ CLAUDE, NI, "1", NULL, NULL, UAA_E_INVALID_REQUEST, NI " must be a boolean" },
		{ CLAUDE, EXT, "\"x\"", NULL, NULL, UAA_E_INVALID_REQUEST,
		  EXT " must be a boolean" },
		{ CLAUDE, MOD, "\"  \"", NULL, NULL, UAA_E_INVALID_REQUEST, "invalid " MOD },
		{ CLAUDE, MOD, "7", NULL, NULL, UAA_E_INVALID_REQUEST, "invalid " MOD },
		{ CLAUDE, MOD, "\"\"", NI, "7", UAA_E_INVALID_REQUEST, "invalid " MOD },
		{ CLAUDE, DIR_, "[]", NULL, NULL, UAA_E_INVALID_REQUEST, "invalid " DIR_ },
		{ CLAUDE, DIR_, "{}", NULL, NULL, UAA_E_INVALID_REQUEST, "invalid " DIR_ ".dirs" },
		{ CLAUDE, DIR_, "{\"dirs\":[]}", NULL, NULL, UAA_E_INVALID_REQUEST,
		  "invalid " DIR_ ".dirs" },
		{ CLAUDE, DIR_, "{\"dirs\":[\"/\"],\"x\":1}", NULL, NULL, UAA_E_INVALID_REQUEST,
		  "invalid " DIR_ },
		{ CLAUDE, DIR_, "{\"dirs\":[\"/\",\"/no/such/SECRET\"]}", NULL, NULL,
		  UAA_E_INVALID_REQUEST, "invalid " DIR_ ".dirs[1]" },
		{ CLAUDE, DIR_, "{\"dirs\":[\"/etc/passwd\"]}", NULL, NULL, UAA_E_INVALID_REQUEST,
		  "invalid " DIR_ ".dirs[0]" },
		{ CLAUDE, DIR_, "{\"dirs\":[\" \"]}", NULL, NULL, UAA_E_INVALID_REQUEST,
		  "invalid " DIR_ ".dirs[0]" },
		{ CLAUDE, DIR_, "{\"dirs\":[\"~\"]}", NULL, NULL, UAA_E_INVALID_REQUEST,
		  "invalid " DIR_ ".dirs[0]" },
		{ CLAUDE, RES, "{\"selector\":\"first\"}", NULL, NULL, UAA_E_INVALID_REQUEST,
		  "invalid " RES },
		{ CLAUDE, RES, "{\"selector\":\"last\",\"id\":\"x\"}", NULL, NULL,
		  UAA_E_INVALID_REQUEST, "invalid " RES },
		{ CLAUDE, RES, "{\"selector\":\"id\"}", NULL, NULL, UAA_E_INVALID_REQUEST,
		  "invalid " RES },
		{ CLAUDE, FRK, "{\"selector\":\"id\",\"id\":\" \"}", NULL, NULL,
		  UAA_E_INVALID_REQUEST, "invalid " FRK },
		{ CLAUDE, RES, "{\"selector\":\"last\"}", FRK, "{\"selector\":\"last\"}",
		  UAA_E_INVALID_REQUEST, RES " excludes " FRK },
		{ CLAUDE, EXT, "true", NI, "false", UAA_E_INVALID_REQUEST, EXT " requires " NI },
		{ CODEX_APP, EXT, "true", BOX, "\"read-only\"", UAA_E_INVALID_REQUEST,
		  EXT " excludes backend exec options" },
		{ CODEX_APP, POL, "\"sometimes\"", NULL, NULL, UAA_E_INVALID_REQUEST,
		  "invalid " POL },
		{ CODEX_APP, POL, "\"on-request\"", NULL, NULL, UAA_E_INVALID_REQUEST,
		  POL " must be never when non-interactive" },
		{ CODEX_APP, BOX, "\"none\"", NULL, NULL, UAA_E_INVALID_REQUEST, "invalid " BOX },
		{ CLAUDE, POL, "\"never\"", NULL, NULL, UAA_E_UNSUPPORTED_CAPABILITY, POL },
		{ CLAUDE, NI, "7", "agent_api.nope", "1", UAA_E_UNSUPPORTED_CAPABILITY,
		  "agent_api.nope" },
		{ CODEX_APP, "agent_api.run", "1", NULL, NULL, UAA_E_UNSUPPORTED_CAPABILITY,
		  "agent_api.run" },
		{ CODEX_APP, "backend.claude_code.x", "1", NULL, NULL, UAA_E_UNSUPPORTED_CAPABILITY,
		  "backend.claude_code.x" },
	};
	struct uar_buf b = uar_buf_make(65536);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char record[600];
		uaa_request *r = ask("hi");
		struct seen *s;

		snprintf(record, sizeof record, "%s", uar_test_dir());
		with(r, cases[i].key, cases[i].value);
		if (cases[i].key2)
			with(r, cases[i].key2, cases[i].value2);
		s = run_on(recorder(cases[i].who, "result", record), r);
		CHECK_MSG(s->status == cases[i].status, "case %zu: status %d", i, (int)s->status);
		CHECK_STR(uab_str(cases[i].status == UAA_E_INVALID_REQUEST
					  ? uaa_error_message(s->error)
					  : uaa_error_capability(s->error)),
			  cases[i].message);
		CHECK_INT(recorded(record, "argv", &b).n, 0);
		seen_fini(s);
	}
	uar_buf_fini(&b);
}

/* An invalid value: this message, and no process. */
static void check_refused(enum which who, const char *key, const char *value, const char *message)
{
	struct uar_buf b = uar_buf_make(65536);
	uaa_request *r = ask("hi");
	char record[600];
	struct seen *s;

	snprintf(record, sizeof record, "%s", uar_test_dir());
	with(r, key, value);
	s = run_on(recorder(who, "stdin\nresult", record), r);
	CHECK_MSG(s->status == UAA_E_INVALID_REQUEST, "%s %.200s: status %d", key, value,
		  (int)s->status);
	CHECK_STR(uab_str(uaa_error_message(s->error)), message);
	CHECK_INT(recorded(record, "argv", &b).n, 0);
	seen_fini(s);
	uar_buf_fini(&b);
}

TEST(R01_selectors_are_closed_objects, "CAP-03")
{
	static const char *const bad[] = {
		"7",
		"\"last\"",
		"[]",
		"{}",
		"{\"selector\":7}",
		"{\"selector\":\"Last\"}",
		"{\"selector\":\"last\",\"x\":1}",
		"{\"selector\":\"last\",\"id\":null}",
		"{\"id\":\"x\"}",
		"{\"selector\":\"id\"}",
		"{\"selector\":\"id\",\"id\":\"\"}",
		"{\"selector\":\"id\",\"id\":\" \\t\"}",
		"{\"selector\":\"id\",\"id\":7}",
		"{\"selector\":\"id\",\"id\":null}",
		"{\"selector\":\"id\",\"id\":\"x\",\"y\":1}",
		"{\"selector\":\"id\",\"x\":\"y\"}",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		for (int codex = 0; codex < 2; codex++) {
			check_refused(codex ? CODEX_EXEC : CLAUDE, RES, bad[i], "invalid " RES);
			check_refused(codex ? CODEX_EXEC : CLAUDE, FRK, bad[i], "invalid " FRK);
		}
}

/* Bytes after trimming; the value is never repeated. */
TEST(U22_model_names_have_128_bytes_at_most, "CAP-03")
{
	char json[200], d[600];
	struct uar_buf b = uar_buf_make(1 << 16);

	for (int n = 128; n <= 129; n++) {
		int at = snprintf(json, sizeof json, "\" ");

		for (int i = 0; i < n / 2; i++)
			at += snprintf(json + at, sizeof json - (size_t)at, "\xC3\xA9");
		snprintf(json + at, sizeof json - (size_t)at, "%s\\n\"", n % 2 ? "x" : "");
		if (n == 128) {
			uaa_request *r = ask("hi");

			snprintf(d, sizeof d, "%s", uar_test_dir());
			with(r, MOD, json);
			json[at] = 0;
			CHECK(has_pair(args_of(CLAUDE, r, d, &b), "--model", json + 2));
		} else {
			check_refused(CLAUDE, MOD, json, "invalid " MOD);
		}
	}
	uar_buf_fini(&b);
}

/* {"dirs":[X,X,...]} */
static const char *dirs_of(const char *entry, int n)
{
	static char json[20000];
	size_t at = (size_t)snprintf(json, sizeof json, "{\"dirs\":[");

	for (int i = 0; i < n; i++)
		at += (size_t)snprintf(json + at, sizeof json - at, "%s%s", i ? "," : "", entry);
	snprintf(json + at, sizeof json - at, "]}");
	return json;
}

/* "/././." of that many bytes: a long name of the root. */
static const char *long_root(size_t n)
{
	static char text[1100];

	for (size_t i = 0; i < n; i++)
		text[i + 1] = i % 2 ? '.' : '/';
	text[0] = text[n + 1] = '"';
	text[n + 2] = 0;
	return text;
}

TEST(D02_D03_D04_directories_are_checked, "CAP-03")
{
	check_refused(CLAUDE, DIR_, "{\"dirs\":\"/\"}", "invalid " DIR_ ".dirs");
	check_refused(CLAUDE, DIR_, "{\"dirs\":{}}", "invalid " DIR_ ".dirs");
	check_refused(CLAUDE, DIR_, "{\"dirs\":[7]}", "invalid " DIR_ ".dirs[0]");
	check_refused(CLAUDE, DIR_, "{\"dirs\":[\"/\",null]}", "invalid " DIR_ ".dirs[1]");
	check_refused(CLAUDE, DIR_, "{\"dirs\":[\"\"]}", "invalid " DIR_ ".dirs[0]");
	check_refused(CLAUDE, DIR_, "{\"dirs\":[\"$HOME\"]}", "invalid " DIR_ ".dirs[0]");
	check_refused(CLAUDE, DIR_, "{\"dirs\":[\"${HOME}/\"]}", "invalid " DIR_ ".dirs[0]");
	check_refused(CLAUDE, DIR_, "{\"dirs\":[\"~/\"]}", "invalid " DIR_ ".dirs[0]");
	check_refused(CLAUDE, DIR_, dirs_of("\"/\"", 17), "invalid " DIR_ ".dirs");
	check_refused(CLAUDE, DIR_, dirs_of(long_root(1025), 1), "invalid " DIR_ ".dirs[0]");
}

/* --- what reaches the process --- */

TEST(D05_D06_D07_D08_options_reach_the_command_line, "")
{
	char d[600], sub[700], json[2000];
	struct uar_buf b = uar_buf_make(1 << 16);
	uaa_request *r = ask("hi");
	uar_str argv;

	snprintf(d, sizeof d, "%s", uar_test_dir());
	snprintf(sub, sizeof sub, "%s/sub", d);
	mkdir(sub, 0755);
	uaa_request_set_working_dir(r, uaa_str_c(d));
	snprintf(json, sizeof json, "{\"dirs\":[\"sub\",\"./sub/../sub/.\",\" / \",\"%s\"]}", sub);
	with(r, DIR_, json);
	with(r, MOD, "\"\xE2\x80\x83 some-model \"");
	argv = args_of(CLAUDE, r, d, &b);
	CHECK(has_pair(argv, "--model", "some-model"));
	CHECK(has_pair(argv, "--add-dir", sub) && has_pair(argv, sub, "/") &&
	      has_pair(argv, "/", "--verbose")); /* duplicates are gone, order is kept */
	CHECK(!has_line(argv, "hi"));		 /* the prompt goes by stdin */

	snprintf(d, sizeof d, "%s", uar_test_dir());
	r = ask("hi");
	with(r, DIR_, "{\"dirs\":[\"/\",\"/tmp\"]}");
	with(r, MOD, "\"m\"");
	with(r, BOX, "\"read-only\"");
	argv = args_of(CODEX_EXEC, r, d, &b);
	CHECK(has_pair(argv, "--add-dir", "/") && has_pair(argv, "--add-dir", "/tmp"));
	CHECK(has_pair(argv, "--model", "m") && has_pair(argv, "--sandbox", "read-only"));
	uar_buf_fini(&b);
}

TEST(D02_D03_as_many_and_as_long_as_allowed, "")
{
	char d[600];
	struct uar_buf b = uar_buf_make(1 << 16);
	uaa_request *r = ask("hi");

	snprintf(d, sizeof d, "%s", uar_test_dir());
	with(r, DIR_, dirs_of("\"/\"", 16));
	CHECK(has_pair(args_of(CLAUDE, r, d, &b), "--add-dir", "/"));
	r = ask("hi");
	with(r, DIR_, dirs_of(long_root(1024), 1));
	snprintf(d, sizeof d, "%s", uar_test_dir());
	CHECK(has_pair(args_of(CLAUDE, r, d, &b), "--add-dir", "/"));
	uar_buf_fini(&b);
}

/* A link is its own name, and ".." is taken off the name, not the place it leads to. */
TEST(D06_links_are_not_followed, "")
{
	char d[600], far[600], link[700], json[2200];
	struct uar_buf b = uar_buf_make(1 << 16);
	uaa_request *r = ask("hi");
	uar_str argv;

	snprintf(d, sizeof d, "%s", uar_test_dir());
	snprintf(far, sizeof far, "%s", uar_test_dir());
	snprintf(link, sizeof link, "%s/link", d);
	REQUIRE(symlink(far, link) == 0);
	uaa_request_set_working_dir(r, uaa_str_c(d));
	snprintf(json, sizeof json,
		 "{\"dirs\":[\"link\",\"link/..\",\"%s\",\"../../../../../../..\"]}", far);
	with(r, DIR_, json);
	argv = args_of(CLAUDE, r, d, &b);
	CHECK(has_pair(argv, "--add-dir", link) && has_pair(argv, link, d) &&
	      has_pair(argv, d, far) && has_pair(argv, far, "/"));
	uar_buf_fini(&b);
}

/* A relative directory is seen from the host's, and others from there. */
TEST(D05_relative_to_a_relative_directory, "LIB-54")
{
	char d[600], here[2000], cwd[2100], lib[2200];
	struct uar_buf b = uar_buf_make(1 << 16);
	uaa_request *r = ask("hi");

	snprintf(d, sizeof d, "%s", uar_test_dir());
	REQUIRE(getcwd(here, sizeof here));
	snprintf(cwd, sizeof cwd, "%s/tests", here);
	snprintf(lib, sizeof lib, "%s/lib", cwd);
	uaa_request_set_working_dir(r, uaa_str_c("tests"));
	with(r, DIR_, "{\"dirs\":[\"lib\"]}");
	CHECK(has_pair(args_of(CLAUDE, r, d, &b), "--add-dir", lib));
	CHECK(has_line(recorded(d, "cwd", &b), cwd));
	uar_buf_fini(&b);
}
