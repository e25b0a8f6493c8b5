/* build_test.c - the library as others get it: its header in C11 and C++17, its
 * symbols, every choice of backends, and the example of the manual. */
#include "backend/cli_test.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* A shell command in the source directory; its output is shown when it fails. */
static bool sh(const char *fmt, ...) UAR_PRINTF(1, 2);

static bool sh(const char *fmt, ...)
{
	char cmd[8000];
	va_list ap;
	pid_t pid;
	int status = -1;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof cmd, fmt, ap);
	va_end(ap);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", cmd, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	if (status)
		printf("  failed: %s\n", cmd);
	return status == 0;
}

static bool plain_build(void)
{
	if (UAR_TEST_SANITIZED)
		uar_test_skip("sanitized objects do not link into plain programs");
	else if (!sh("command -v cc >/dev/null && command -v nm >/dev/null"))
		uar_test_skip("no C compiler at hand");
	else
		return true;
	return false;
}

TEST(U02_the_header_stands_alone, "LIB-23 LIB-24 LIB-45")
{
	if (!sh("command -v cc >/dev/null")) {
		uar_test_skip("no C compiler at hand");
		return;
	}
	CHECK(sh("cc -std=c11 -Wall -Wextra -pedantic -Werror -fsyntax-only -x c "
		 "include/agent_api/agent_api.h"));
	CHECK(sh("! grep -nE '#include [<\"]' include/agent_api/agent_api.h | "
		 "grep -vE 'stdbool|stddef|stdint'"));
	/* its own names, and of others' types only those of the three headers above */
	CHECK(sh("! sed -E 's,/\\*.*\\*/,,; s,/\\*.*,,; /^[ \t]*\\*/d' "
		 "include/agent_api/agent_api.h | "
		 "grep -oE '\\b(struct|enum|union) +[a-z_0-9]+|\\b[a-z_0-9]+_t\\b|\\b(uab|uar)_.*' "
		 "| "
		 "grep -vE '^(struct|enum|union) +uaa_|^(size|int64|uint32|uint64)_t$'"));
	if (sh("command -v c++ >/dev/null"))
		CHECK(sh("c++ -std=c++17 -Wall -Wextra -pedantic -Werror -fsyntax-only -x c++ "
			 "include/agent_api/agent_api.h"));
}

TEST(only_the_interface_is_exported, "")
{
	if (!plain_build())
		return;
	CHECK(sh("! nm -D --defined-only %s | grep -vE ' (uaa_|UAA_1)'",
		 uar_test_built("libagent_api.so")));
	CHECK(sh("! nm -g --defined-only %s | grep -E ' [A-Z] ' | grep -v ' uaa_'",
		 uar_test_built("libagent_api.a")));
	CHECK(sh("! readelf -d %s | grep NEEDED | grep -vE "
		 "'libc\\.|libpthread|libdl|libm\\.|ld-linux'",
		 uar_test_built("libagent_api.so")));
	CHECK(sh("readelf -d %s | grep -q 'SONAME.*libagent_api.so.1]'",
		 uar_test_built("libagent_api.so")));
	CHECK(sh("readelf -V %s | grep -q UAA_1", uar_test_built("libagent_api.so")));
}

/* What the header declares and what the library has are the same names. */
TEST(the_header_is_the_export_list, "LIB-24")
{
	char dir[600];

	if (!plain_build())
		return;
	snprintf(dir, sizeof dir, "%s", uar_test_dir());
	CHECK(sh("grep -oE '^UAA_API.*|^\t.*uaa_[a-z_]+\\(' include/agent_api/agent_api.h | "
		 "grep '^UAA_API' | grep -oE 'uaa_[a-z0-9_]+\\(' | tr -d '(' | sort -u > %s/h && "
		 "nm -D --defined-only %s | grep -oE 'uaa_[a-z0-9_]+' | sort -u > %s/so && "
		 "diff %s/h %s/so",
		 dir, uar_test_built("libagent_api.so"), dir, dir, dir));
}

static const char gateway_only[] =
	"#include <agent_api/agent_api.h>\n"
	"#include <string.h>\n"
	"static uaa_str kind(void *s) { (void)s; return uaa_str_c(\"own\"); }\n"
	"static const uaa_caps *caps(void *s) { return s; }\n"
	"static uaa_status run(void *s, const uaa_request *r, uaa_run **out, uaa_error **e)\n"
	"{ uaa_producer *p; uaa_event_spec t = { UAA_EV_TEXT_OUTPUT };\n"
	"  (void)s; (void)r; (void)e; t.text = uaa_str_c(\"hi\");\n"
	"  if (uaa_run_new(kind(s), 0, 0, out, &p)) return UAA_E_NOMEM;\n"
	"  uaa_producer_emit(p, &t); uaa_producer_succeed(p, 0, t.text, uaa_str_c(0));\n"
	"  uaa_producer_unref(p); return UAA_OK; }\n"
	"static void heard(void *n, const uaa_event *e)\n"
	"{ *(int *)n += uaa_event_get_kind(e) == UAA_EV_TEXT_OUTPUT; }\n"
	"int main(int argc, char **argv)\n"
	"{ static const char *const names[] = { \"codex\", \"claude_code\", \"acp\" };\n"
	"  for (int i = 1; i < argc; i++)\n"
	"    if (uaa_has_backend(uaa_str_c(names[i - 1])) != (*argv[i] == '1')) return 10 + i;\n"
	"  uaa_controlled_run cr; uaa_error *why = 0; int n = 0; uaa_caps *c = uaa_caps_new(); "
	"uaa_backend_ops ops = { sizeof ops };\n"
	"  uaa_gateway *g = uaa_gateway_new(); uaa_backend *b; uaa_kind *k; uaa_run *r;\n"
	"  uaa_request *q = uaa_request_new(); uaa_run_result res = { 0 };\n"
	"  uaa_caps_add(c, uaa_str_c(\"agent_api.run\"));\n"
	"  uaa_caps_add(c, uaa_str_c(\"agent_api.events\"));\n"
	"  ops.abi = uaa_abi_version(); ops.kind = kind; ops.caps = caps; ops.run = run;\n"
	"  b = uaa_backend_new(&ops, c); if (uaa_gateway_register(g, b, 0)) return 1;\n"
	"  uaa_kind_new(uaa_str_c(\"own\"), &k, 0); uaa_request_set_prompt(q, uaa_str_c(\"x\"));\n"
	"  if (uaa_gateway_run(g, k, q, &r, 0)) return 2;\n"
	"  if (uaa_run_collect(r, heard, &n, &res, 0) || n != 1) return 3;\n"
	"  if (uaa_gateway_run_control(g, k, q, &cr, &why) != uaa_error_code(why)) return 5;\n"
	"  if (!uaa_caps_contains(uaa_backend_caps(b), uaa_str_c(\"agent_api.run\"))) return 6;\n"
	"  uaa_error_unref(why);\n"
	"  if (strcmp(uaa_completion_final_text(res.completion).ptr, \"hi\")) return 4;\n"
	"  uaa_completion_unref(res.completion); uaa_run_unref(r); uaa_request_unref(q);\n"
	"  uaa_kind_unref(k); uaa_gateway_unref(g); uaa_backend_unref(b); uaa_caps_unref(c);\n"
	"  return 0; }\n";

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	CHECK(f && fputs(text, f) >= 0);
	if (f)
		fclose(f);
}

/* As make spells it: dependencies are recorded relative to the source directory. */
static const char *build_dir(void)
{
	static char path[1200];
	char cwd[1024];
	size_t n;

	snprintf(path, sizeof path, "%s", uar_test_built("x"));
	path[strlen(path) - 2] = 0;
	n = getcwd(cwd, sizeof cwd) ? strlen(cwd) : 0;
	return strncmp(path, cwd, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

#define CHANGED "kind codex_run claude_run acp_run"

/* make builds the files that the options change; the rest is as built. The program touches
 * each of the public items through the one header. */
TEST(U01_U03_U04_every_choice_of_backends_builds, "LIB-38 LIB-44")
{
	static const char *const names[] = { "codex", "claude_code", "acp" };
	static const int choices[][3] = {
		{ 0, 0, 0 }, { 1, 0, 0 }, { 0, 1, 0 }, { 1, 1, 0 }, { 0, 0, 1 }
	};
	char dir[600], at[1400];

	if (!plain_build())
		return;
	snprintf(dir, sizeof dir, "%s", uar_test_dir());
	write_file(strcat_path(dir, "main.c"), gateway_only);
	/* nothing else looks at the options */
	CHECK(sh(
		"test \"$(grep -lE '^#.*AGENT_API_(CODEX|CLAUDE_CODE|ACP)' src/backend/*.c "
		"| xargs -n1 basename -s .c | sort | xargs)\" = \"acp_run claude_run codex_run\""));
	for (size_t i = 0; i < ARRAY_LEN(choices); i++) {
		const int *c = choices[i];

		snprintf(at, sizeof at, "%s/agent_api/%d%d%d/src/backend", dir, c[0], c[1], c[2]);
		REQUIRE(sh("env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s BUILD=%s "
			   "AGENT_API_CODEX=%d AGENT_API_CLAUDE_CODE=%d AGENT_API_ACP=%d "
			   "$(printf '%s/%%s.o ' " CHANGED ") >/dev/null",
			   dir, c[0], c[1], c[2], at));
		REQUIRE(sh(
			"cc -o %s/t -Iinclude %s/main.c %s/*.o $(find %s/111/src -name '*.o' | "
			"grep -vE '/(kind|codex_run|claude_run|acp_run)\\.o') -lpthread -ldl -lm",
			dir, dir, at, uar_test_built("agent_api")));
		CHECK(sh("%s/t %d %d %d", dir, c[0], c[1], c[2]));
		for (int k = 0; k < 3; k++)
			CHECK(sh("%s nm %s/%s_run.o | grep -q 'T uaa_%s_backend_new'",
				 c[k] ? "" : "!", at, k == 1 ? "claude" : names[k], names[k]));
	}
}

/* The first C block of the manual, as a file. */
static int extract_example(const char *to)
{
	FILE *in = fopen("docs/agent-api.md", "r"), *out = fopen(to, "w");
	char line[1000];
	bool inside = false;
	int lines = 0;

	while (in && out && fgets(line, sizeof line, in)) {
		if (inside && strncmp(line, "```", 3) == 0)
			break;
		if (inside) {
			fputs(line, out);
			lines++;
		} else {
			inside = strcmp(line, "```c\n") == 0;
		}
	}
	if (in)
		fclose(in);
	if (out)
		fclose(out);
	return lines;
}

TEST(the_example_of_the_manual_works, "LIB-38")
{
	char dir[600], src[700];
	int lines;

	if (!plain_build())
		return;
	snprintf(dir, sizeof dir, "%s", uar_test_dir());
	snprintf(src, sizeof src, "%s/example.c", dir);
	lines = extract_example(src);
	CHECK_MSG(lines > 20 && lines <= 60, "the example has %d lines", lines);
	REQUIRE(sh("cc -std=c11 -Wall -Wextra -Werror -Wno-missing-field-initializers -Iinclude "
		   "-o %s/example %s %s -lpthread -ldl -lm",
		   dir, src, uar_test_built("libagent_api.a")));
	REQUIRE(sh("cc -std=c11 -Iinclude -o %s/shared %s -L%s -lagent_api", dir, src,
		   uar_test_built("")));
	if (sh("command -v c++ >/dev/null"))
		CHECK(sh("c++ -std=c++17 -x c++ -Iinclude -fsyntax-only %s", src));
	CHECK(sh("printf '#!/bin/sh\\nexec cat %s\\n' > %s/claude && chmod +x %s/claude",
		 fixture("claude_code/hello.jsonl"), dir, dir));
	for (int i = 0; i < 2; i++)
		CHECK(sh("AGENT_API_SUPERVISOR=%s LD_LIBRARY_PATH=%s %s/%s hi %s/claude 2>%s/err | "
			 "grep -qx hello && grep -qx 'final: hello' %s/err",
			 uar_test_built("agent-api-supervisor"), uar_test_built(""), dir,
			 i ? "shared" : "example", dir, dir, dir));
}

TEST(it_installs_and_is_found, "")
{
	char dir[600], src[700];

	if (!plain_build())
		return;
	snprintf(dir, sizeof dir, "%s", uar_test_dir());
	snprintf(src, sizeof src, "%s/main.c", dir);
	write_file(src, gateway_only);
	REQUIRE(sh("env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s install-agent-api BUILD=%s "
		   "PREFIX=%s/usr >/dev/null",
		   build_dir(), dir));
	CHECK(access(strcat_path(dir, "usr/libexec/agent-api-supervisor"), X_OK) == 0);
	if (!sh("command -v pkg-config >/dev/null"))
		return;
	CHECK(sh("PKG_CONFIG_PATH=%s/usr/lib/pkgconfig; export PKG_CONFIG_PATH; "
		 "cc -o %s/t %s $(pkg-config --cflags --libs agent_api) && "
		 "LD_LIBRARY_PATH=%s/usr/lib %s/t",
		 dir, dir, src, dir, dir));
	CHECK(sh("test \"$(PKG_CONFIG_PATH=%s/usr/lib/pkgconfig pkg-config "
		 "--variable=abi_version agent_api)\" = %d.%d",
		 dir, UAA_ABI_MAJOR, UAA_ABI_MINOR));
}

TEST(every_init_compiles_in_both_languages, "")
{
	static const char source[] =
		"#include <agent_api/agent_api.h>\n"
		"int main(void)\n"
		"{ uaa_codex_config a = UAA_CODEX_CONFIG_INIT; uaa_acp_config c = "
		"UAA_ACP_CONFIG_INIT;\n"
		"  uaa_claude_code_config b = UAA_CLAUDE_CODE_CONFIG_INIT;\n"
		"  uaa_process_options d = UAA_PROCESS_OPTIONS_INIT;\n"
		"  uaa_mcp_request e = UAA_MCP_REQUEST_INIT; uaa_backend_ops f = "
		"UAA_BACKEND_OPS_INIT;\n"
		"  uaa_producer_hooks g = UAA_PRODUCER_HOOKS_INIT;\n"
		"  return !(a.struct_size && b.struct_size && c.struct_size && d.struct_size &&\n"
		"           e.struct_size && f.struct_size && g.struct_size && !a.process); }\n";
	char path[700];

	snprintf(path, sizeof path, "%s/init.c", uar_test_dir());
	write_file(path, source);
	CHECK(sh("cc -std=c11 -Wall -Wextra -Werror -Iinclude -o %s.out %s && %s.out", path, path,
		 path));
	CHECK(sh("c++ -x c++ -std=c++11 -Wall -Wextra -Werror -Iinclude -o %s.out %s && %s.out",
		 path, path, path));
}
