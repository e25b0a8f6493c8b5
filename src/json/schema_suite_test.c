/* schema_suite_test.c - the public JSON Schema suite for 2020-12, read from a folder
 * that is not part of the tree: $UAR_JSON_SCHEMA_SUITE, by default
 * ../shared/json-schema-test-suite. Every required test must pass; the optional
 * ones are run and counted per file, and printed. */
#include <dirent.h>
#include <sys/stat.h>

#include "json/schema.h"
#include "test.h"

enum { MAX_REMOTES = 256 };

static struct uar_arena files; /* texts and trees live to the end */
static struct uar_schema_resource remotes[MAX_REMOTES];
static size_t remote_count;

static const char *folder(void)
{
	const char *env = getenv("UAR_JSON_SCHEMA_SUITE");

	return env ? env : "../shared/json-schema-test-suite";
}

static const struct uar_json *read_json(const char *path)
{
	struct uar_json_limits l = { .depth = 256, .foreign = true };
	struct uar_buf b = uar_buf_make(1 << 24);
	const struct uar_json *j = NULL;
	FILE *f = fopen(path, "rb");
	size_t n;
	uar_str text;

	if (!f)
		return NULL;
	do {
		char *at = uar_buf_reserve(&b, 65536);

		n = at ? fread(at, 1, 65536, f) : 0;
		b.n += n;
	} while (n);
	fclose(f);
	text = uar_arena_str(&files, uar_buf_str(&b));
	uar_buf_fini(&b);
	return uar_json_parse(text, &l, &files, &j, NULL) ? NULL : j;
}

/* Every file below `path` as a document named `uri`. */
static void load_remotes(const char *path, const char *uri)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	struct stat st;

	while (dir && (entry = readdir(dir))) {
		uar_str file = uar_arena_printf(&files, "%s/%s", path, entry->d_name);
		uar_str name = uar_arena_printf(&files, "%s/%s", uri, entry->d_name);

		if (entry->d_name[0] == '.' || stat(file.p, &st) != 0)
			continue;
		if (S_ISDIR(st.st_mode))
			load_remotes(file.p, name.p);
		else if (remote_count < MAX_REMOTES)
			remotes[remote_count++] =
				(struct uar_schema_resource){ name.p, read_json(file.p) };
	}
	if (dir)
		closedir(dir);
}

struct tally {
	unsigned passed, failed;
};

static void run_group(const char *file, const struct uar_json *group, bool required, bool formats,
		      struct tally *t)
{
	struct uar_schema_options o = { .resources = remotes,
					.resource_count = remote_count,
					.check_formats = formats };
	const char *title =
		uar_arena_str(&files, uar_json_str(uar_json_get(group, UAR_STR("description")),
						   UAR_STR("")))
			.p;
	const struct uar_json *tests = uar_json_get(group, UAR_STR("tests"));
	struct uar_schema *s = NULL;
	struct uar_error error = { 0 };
	struct uar_arena scratch;
	uar_err e = uar_schema_create(uar_json_get(group, UAR_STR("schema")), &o, &s, &error);

	uar_arena_init(&scratch, 0);
	for (const struct uar_json *c = tests ? tests->first : NULL; c; c = c->next) {
		bool want = uar_json_bool(uar_json_get(c, UAR_STR("valid")), false), good;
		uar_str name = uar_json_str(uar_json_get(c, UAR_STR("description")), UAR_STR(""));
		uar_err v = e;

		if (!e)
			v = uar_schema_validate(s, uar_json_get(c, UAR_STR("data")), &scratch,
						&error);
		good = want ? v == UAR_OK : v == UAR_ESCHEMA;
		t->passed += good;
		t->failed += !good;
		if (!good && required)
			uar_test_fail(__FILE__, __LINE__, "%s: %s: %.*s: %s %s", file, title,
				      UAR_FMT(name), uar_err_name(v), error.text);
		else if (!good && getenv("UAR_VERBOSE"))
			printf("  failed %s: %s: %.*s: %s %s\n", file, title, UAR_FMT(name),
			       uar_err_name(v), error.text);
		uar_arena_reset(&scratch);
	}
	uar_arena_fini(&scratch);
	uar_schema_destroy(s);
}

static struct tally run_folder(const char *sub, bool required, bool formats)
{
	uar_str path = uar_arena_printf(&files, "%s/tests/draft2020-12%s", folder(), sub);
	DIR *dir = opendir(path.p);
	struct tally all = { 0 };
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		uar_str file = uar_arena_printf(&files, "%s/%s", path.p, entry->d_name);
		const struct uar_json *groups;
		struct tally t = { 0 };

		if (!uar_str_ends(file, UAR_STR(".json")))
			continue;
		groups = read_json(file.p);
		CHECK_MSG(groups, "%s cannot be read", file.p);
		for (const struct uar_json *g = groups ? groups->first : NULL; g; g = g->next)
			run_group(entry->d_name, g, required, formats, &t);
		if (!required)
			printf("  %s/%s: %u passed, %u failed\n", sub + 1, entry->d_name, t.passed,
			       t.failed);
		all.passed += t.passed;
		all.failed += t.failed;
	}
	if (dir)
		closedir(dir);
	return all;
}

static bool load_suite(void)
{
	if (remote_count)
		return true;
	load_remotes(uar_arena_printf(&files, "%s/remotes", folder()).p, "http://localhost:1234");
	if (!remote_count)
		uar_test_skip("no suite in %s", folder());
	return remote_count;
}

TEST(required_tests_of_the_suite, "BLD-09")
{
	struct tally t;

	if (!load_suite())
		return;
	t = run_folder("", true, false);
	printf("  required: %u passed, %u failed\n", t.passed, t.failed);
	CHECK_INT(t.failed, 0);
	CHECK(t.passed > 1000);
}

TEST(optional_tests_of_the_suite, "")
{
	struct tally t, f;

	if (!load_suite())
		return;
	t = run_folder("/optional", false, false);
	f = run_folder("/optional/format", false, true);
	printf("  optional: %u passed, %u failed\n", t.passed + f.passed, t.failed + f.failed);
	uar_arena_fini(&files);
}
