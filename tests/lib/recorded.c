/* recorded.c - reads recordings of runs, and compares files. */
#include "recorded.h"

#include "base/file.h"
#include "test.h"

const char *const recorded_names[] = {
	"hello", "tools", "failure",   "demo",	     "rounds",
	"allow", "deny",  "cancelled", "superseded", "cancelled_while_asked",
	NULL
};

static void read_file(const char *path, struct uar_buf *out)
{
	struct uar_error error = { 0 };

	CHECK_MSG(!uar_file_read(path, out, &error), "%s: %s", path, error.text);
}

void recorded_open(struct recorded *r, const char *name)
{
	char path[128];

	*r = (struct recorded){ .log = uar_buf_make(RECORDED_MOST) };
	uar_arena_init(&r->arena, 0);
	snprintf(path, sizeof path, "fixtures/ag_ui/%s.jsonl", name);
	read_file(path, &r->log);
	r->rest = uar_buf_str(&r->log);
}

bool recorded_next(struct recorded *r, struct uar_event *out)
{
	const struct uar_json *j = NULL;
	uar_str line = uar_str_cut(r->rest, '\n', &r->rest);

	return line.n && CHECK(!uar_json_parse(line, NULL, &r->arena, &j, NULL)) &&
	       CHECK(!uar_event_read(j, NULL, &r->arena, out, NULL));
}

void recorded_close(struct recorded *r)
{
	uar_arena_fini(&r->arena);
	uar_buf_fini(&r->log);
}

void recorded_compare(const char *folder, const char *name, const char *ending,
		      const struct uar_buf *got)
{
	struct uar_buf want = uar_buf_make(RECORDED_MOST);
	char path[128];
	FILE *f;

	snprintf(path, sizeof path, "fixtures/%s/%s.%s", folder, name, ending);
	if (getenv("UAR_TEST_WRITE")) {
		f = fopen(path, "wb");
		CHECK(f && fwrite(got->p, 1, got->n, f) == got->n && !fclose(f));
	}
	read_file(path, &want);
	CHECK_MSG(uar_str_eq(uar_buf_str(got), uar_buf_str(&want)), "%s differs", path);
	uar_buf_fini(&want);
}
