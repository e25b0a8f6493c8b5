/* stage_test.c - bytes of a run that is not over, in both stores. */
#include "store/world_test.h"

#include <dirent.h>
#include <glob.h>
#include <sys/stat.h>

#include "base/sha256.h"
#include "store/limits.h"
#include "store/store_int.h"

static const char first_id[] = "0123456789abcdef01234567", other_id[] = "fedcba9876543210fedcba98";

static struct uar_stage stage_of(const struct uar_facts *f, const char *id)
{
	return (struct uar_stage){ f->owner, uar_str_c(f->run), uar_str_c(id) };
}

static uar_err put(struct world *w, const struct uar_stage *g, const char *bytes)
{
	struct uar_upload_op op = { .bytes = uar_str_c(bytes), .finish = true, .stage = g };

	return upload_step(w, &op);
}

static uar_err get(struct world *w, const struct uar_stage *g, const char *want)
{
	struct uar_blob_get b = { .limit = 1 << 20, .stage = g };
	char sha256[65];
	uar_err e = uar_facts_get(&w->pump, w->store, &b);

	uar_sha256_hex(uar_str_c(want), sha256);
	if (!e) {
		CHECK_STR(b.bytes, want);
		CHECK_STR(uar_str_c(b.sha256), sha256);
		CHECK_INT(b.total, strlen(want));
	}
	uar_store_blob_get_fini(&b);
	return e;
}

static uar_err get_blob(struct world *w, const char *sha256)
{
	struct uar_blob_get b = { .limit = 1 << 20 };
	uar_err e;

	snprintf(b.sha256, sizeof b.sha256, "%s", sha256);
	e = uar_facts_get(&w->pump, w->store, &b);
	uar_store_blob_get_fini(&b);
	return e;
}

static uar_err adopt(struct world *w, const struct uar_stage *g, struct uar_upload_op *op)
{
	*op = (struct uar_upload_op){ .stage = g, .adopt = true };
	return upload_step(w, op);
}

BOTH(staged_bytes_are_their_runs_own, "EXP-21")
{
	struct uar_facts f;
	struct uar_stage g, foreign, elsewhere, other;

	REQUIRE(begin(w, &f, 1) == UAR_OK);
	g = foreign = elsewhere = stage_of(&f, first_id);
	other = stage_of(&f, other_id);
	foreign.owner = uar_facts_stranger;
	elsewhere.run_id = UAR_STR("nobody");
	CHECK_INT(get(w, &g, ""), UAR_ENOTFOUND);
	CHECK_INT(put(w, &g, "these"), UAR_OK);
	CHECK_INT(put(w, &other, ""), UAR_OK);
	CHECK_INT(get(w, &g, "these"), UAR_OK);
	CHECK_INT(get(w, &other, ""), UAR_OK);
	CHECK_INT(put(w, &g, "these"), UAR_OK);
	CHECK_INT(put(w, &g, "those"), UAR_EEXISTS);
	CHECK_INT(get(w, &g, "these"), UAR_OK);
	CHECK_INT(get(w, &foreign, ""), UAR_ENOTFOUND);
	CHECK_INT(put(w, &foreign, "these"), UAR_ENOTFOUND);
	CHECK_INT(get(w, &elsewhere, ""), UAR_ENOTFOUND);
	CHECK_INT(put(w, &elsewhere, "these"), UAR_ENOTFOUND);
	g.id = UAR_STR("../../../../etc/passwd..");
	CHECK_INT(get(w, &g, ""), UAR_ENOTFOUND);
	if (w->sqlite)
		CHECK_INT(put(w, &g, "these"), UAR_ENOTFOUND);
	uar_facts_fini(&f);
}

BOTH(an_adopted_blob_stays_when_its_run_is_over, "EXP-21")
{
	struct uar_upload_op op;
	struct uar_run_row row;
	struct uar_facts f;
	struct uar_stage g;

	REQUIRE(begin(w, &f, 1) == UAR_OK);
	g = stage_of(&f, first_id);
	CHECK_INT(adopt(w, &g, &op), UAR_ENOTFOUND);
	CHECK_INT(put(w, &g, "these"), UAR_OK);
	if (w->sqlite) {
		char sum[65];

		uar_sha256_hex(UAR_STR("these"), sum);
		CHECK_INT(get_blob(w, sum), UAR_ENOTFOUND);
	}
	CHECK_INT(adopt(w, &g, &op), UAR_OK);
	CHECK_INT(op.total, 5);
	CHECK_INT(adopt(w, &g, &op), UAR_OK);
	CHECK_INT(get(w, &g, "these"), UAR_OK);
	row = uar_facts_row(&f, "succeeded", true);
	CHECK_INT(set_row(w, &f, &row), UAR_OK);
	CHECK_INT(put(w, &g, "these"), UAR_ESTATE);
	CHECK_INT(get_blob(w, op.sha256), UAR_OK);
	uar_facts_fini(&f);
}

/* --- files ------------------------------------------------------------------------------ */

static size_t entries(const char *dir, const char *below)
{
	char path[4096];
	struct dirent *d;
	size_t n = 0;
	DIR *at;

	snprintf(path, sizeof path, "%s/blobs/%s", dir, below);
	at = opendir(path);
	while (at && (d = readdir(at)))
		n += d->d_name[0] != '.';
	if (at)
		closedir(at);
	return n;
}

static void open_in(struct world *w, const char *dir)
{
	struct uar_store_options o = { .sched = &w->pump.sched, .dir = dir };
	struct uar_error error = { 0 };

	uar_pump_init(&w->pump);
	w->sqlite = true;
	if (uar_store_sqlite_create(&o, &w->store, &error)) {
		printf("  %s\n", error.text);
		exit(1);
	}
}

static void stray(void *ctx, const char *what)
{
	(void)ctx;
	CHECK_STR(uar_str_c(what), "");
}

TEST(what_a_run_has_staged_goes_with_it, "EXP-21")
{
	const char *dir = uar_test_dir();
	struct uar_facts f, goes_on;
	struct uar_run_row row;
	struct uar_stage g, h;
	struct world w;

	open_in(&w, dir);
	REQUIRE(begin(&w, &f, 1) == UAR_OK && begin(&w, &goes_on, 2) == UAR_OK);
	g = stage_of(&f, first_id);
	h = stage_of(&goes_on, first_id);
	CHECK_INT(put(&w, &g, "these"), UAR_OK);
	CHECK_INT(put(&w, &h, "those"), UAR_OK);
	CHECK_INT(entries(dir, "up"), 2);
	row = uar_facts_row(&f, "succeeded", true);
	CHECK_INT(set_row(&w, &f, &row), UAR_OK);
	close_world(&w); /* waits for what goes on */
	CHECK_INT(entries(dir, "up"), 1);
	CHECK_INT(entries(dir, "tmp"), 0);
	CHECK_INT(uar_store_sqlite_verify(dir, stray, NULL, NULL), UAR_OK);
	/* Who goes on after a start has what it had, until it is over. */
	open_in(&w, dir);
	CHECK_INT(get(&w, &g, ""), UAR_ENOTFOUND);
	CHECK_INT(get(&w, &h, "those"), UAR_OK);
	row = uar_facts_row(&goes_on, "failed", true);
	CHECK_INT(set_row(&w, &goes_on, &row), UAR_OK);
	close_world(&w);
	CHECK_INT(entries(dir, "up"), 0);
	uar_facts_fini(&f);
	uar_facts_fini(&goes_on);
}

TEST(what_was_missed_is_cleared_at_the_next_start, "EXP-21")
{
	const char *dir = uar_test_dir();
	char path[4096], run[65];
	struct uar_run_row row;
	struct uar_facts f;
	struct uar_stage g;
	struct world w;
	FILE *file;

	open_in(&w, dir);
	REQUIRE(begin(&w, &f, 1) == UAR_OK);
	g = stage_of(&f, first_id);
	CHECK_INT(put(&w, &g, "these"), UAR_OK);
	row = uar_facts_row(&f, "succeeded", true);
	CHECK_INT(set_row(&w, &f, &row), UAR_OK);
	close_world(&w);
	/* As if the server had been killed before it came to that. */
	uar_sha256_hex(UAR_STR("some run"), run);
	snprintf(path, sizeof path, "%s/blobs/up/%s", dir, run);
	REQUIRE(mkdir(path, 0700) == 0);
	snprintf(path, sizeof path, "%s/blobs/up/%s/%s.%s", dir, run, other_id, run);
	file = fopen(path, "w");
	REQUIRE(file != NULL);
	fputs("left behind", file);
	fclose(file);
	snprintf(path, sizeof path, "%s/blobs/tmp/0123456789abcdef", dir);
	file = fopen(path, "w");
	REQUIRE(file != NULL);
	fclose(file);
	open_in(&w, dir);
	CHECK_INT(entries(dir, "up"), 0);
	CHECK_INT(entries(dir, "tmp"), 0);
	close_world(&w);
	uar_facts_fini(&f);
}

static size_t staged_files(const char *dir)
{
	char pattern[500];
	glob_t found = { 0 };
	size_t n;

	snprintf(pattern, sizeof pattern, "%s/blobs/up/*/*", dir);
	n = glob(pattern, 0, NULL, &found) ? 0 : found.gl_pathc;
	globfree(&found);
	return n;
}

/* What cannot be looked at for want of descriptors is not absent. */
TEST(no_descriptor_is_no_absence, "EXP-21")
{
	struct uar_upload_op op, other = { .bytes = UAR_STR("those") };
	struct rlimit before;
	struct uar_facts f;
	struct uar_stage g;
	struct world w;
	char dir[400];
	uar_err e, adopts;

	snprintf(dir, sizeof dir, "%s", uar_test_dir());
	open_in(&w, dir);
	REQUIRE(begin(&w, &f, 1) == UAR_OK);
	g = stage_of(&f, first_id);
	CHECK_INT(put(&w, &g, "these"), UAR_OK);
	for (rlim_t n = 0; n < 2; n++) { /* its directory, and what is in it */
		before = leave_free(n);
		e = get(&w, &g, "");
		adopts = adopt(&w, &g, &op);
		setrlimit(RLIMIT_NOFILE, &before);
		CHECK_INT(e, UAR_EFDS);
		CHECK_INT(adopts, UAR_EFDS);
	}
	other.stage = &g;
	CHECK_INT(upload_step(&w, &other), UAR_OK);
	other.bytes = UAR_STR("");
	other.finish = true;
	before = leave_free(1);
	e = upload_step(&w, &other);
	setrlimit(RLIMIT_NOFILE, &before);
	CHECK_INT(e, UAR_EFDS);
	CHECK_INT(staged_files(dir), 1);
	CHECK_INT(get(&w, &g, "these"), UAR_OK);
	CHECK_INT(put(&w, &g, "those"), UAR_EEXISTS);
	CHECK_INT(put(&w, &g, "these"), UAR_OK);
	CHECK_INT(adopt(&w, &g, &op), UAR_OK);
	close_world(&w);
	uar_facts_fini(&f);
}

BOTH(a_run_stages_so_many_and_no_more, "EXP-21")
{
	struct uar_facts f;
	char id[UAR_STAGE_ID + 1];
	uar_err e = UAR_OK;

	REQUIRE(begin(w, &f, 1) == UAR_OK);
	for (int i = 0; i <= UAR_LIMIT_RUN_STAGED && !e; i++) {
		struct uar_stage g;

		snprintf(id, sizeof id, "%024x", (unsigned)i);
		g = stage_of(&f, id);
		e = put(w, &g, "x");
		CHECK_INT(e, i < UAR_LIMIT_RUN_STAGED ? UAR_OK : UAR_ERATELIMIT);
	}
	uar_facts_fini(&f);
}
