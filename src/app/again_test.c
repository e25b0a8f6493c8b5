/* again_test.c - what is kept of a server's settings, and what becomes of it. */
#include "test.h"

#include <unistd.h>

#include "app/again.h"
#include "app/datadir.h"
#include "app/limits.h"

struct fixture {
	const char *data;
	struct uar_config_set *set;
	struct uar_buf problems, kept;
	struct uar_args args;
	struct uar_arena arena;
	struct uar_again plan;
	struct uar_error error;
	uar_err e;
};

static struct uar_config_flag flag(const char *key, const char *value)
{
	struct uar_config_flag f = { .value = value };

	f.row = uar_config_find(uar_str_c(key), &f.in_file);
	return f;
}

static void load(struct fixture *f, const struct uar_config_input *in)
{
	uar_config_destroy(f->set);
	f->set = NULL;
	REQUIRE(uar_config_load(in, &f->set, &f->problems) == UAR_OK);
}

static void begin(struct fixture *f)
{
	memset(f, 0, sizeof *f);
	f->data = uar_test_dir();
	f->problems = uar_buf_make(UAR_LIMIT_CONFIG_PROBLEMS);
	f->kept = uar_buf_make(UAR_LIMIT_SERVER_FILE);
	uar_arena_init(&f->arena, 0);
}

static void done(struct fixture *f)
{
	uar_config_destroy(f->set);
	uar_buf_fini(&f->problems);
	uar_buf_fini(&f->kept);
	uar_arena_fini(&f->arena);
}

/* A server with this input was here and has left. */
static void was_here(struct fixture *f, const struct uar_config_input *in)
{
	struct uar_server_info info = { .pid = 1, .passing = true };

	load(f, in);
	uar_buf_clear(&f->kept);
	REQUIRE(uar_again_put(f->set, &f->kept) == UAR_OK);
	info.again = uar_buf_str(&f->kept);
	REQUIRE(uar_datadir_announce(f->data, &info, &uar_clock_system, NULL) == UAR_OK);
	uar_datadir_retract(f->data, &info);
}

/* Somebody with this environment and token needs one now. */
static void needed(struct fixture *f, char *const *env, const char *token, bool own)
{
	struct uar_config_flag flags[] = { flag("data", f->data), flag("token", token) };
	struct uar_cli cli = { .env = env, .args = &f->args };

	load(f, &(struct uar_config_input){
			.flags = flags, .flag_count = 2, .env = env, .client = true });
	cli.config = f->set;
	f->plan = (struct uar_again){ 0 };
	uar_error_clear(&f->error);
	f->e = uar_again_plan(&cli, "2s", own, &f->arena, &f->plan, &f->error);
}

static bool has(const char *const *list, const char *word)
{
	for (; list && *list; list++)
		if (!strcmp(*list, word))
			return true;
	return false;
}

TEST(without_a_server_before_one_is_started_that_leaves_soon, "")
{
	static char *const env[] = { "HOME=/h", NULL };
	struct fixture f;

	begin(&f);
	needed(&f, env, "", false);
	REQUIRE(f.e == UAR_OK);
	CHECK(has(f.plan.argv, "--idle-exit-seconds") && has(f.plan.argv, "2s"));
	CHECK(has(f.plan.env, "HOME=/h"));
	done(&f);
}

TEST(flags_and_environment_of_a_server_come_back_with_it, "")
{
	static char *const then[] = { "HOME=/h", "UAR_USER=u", "UAR_LOG_LEVEL=warn", NULL };
	static char *const now[] = { "HOME=/h", "UAR_LOG_LEVEL=error", "UAR_TENANT=other", NULL };
	struct uar_config_flag flags[] = { flag("data", "/elsewhere"), flag("tenant", "t=1"),
					   flag("idle-exit-seconds", "90s"),
					   flag("allowed-hosts", "a.example,b.example") };
	struct fixture f;

	begin(&f);
	was_here(&f, &(struct uar_config_input){ .flags = flags, .flag_count = 4, .env = then });
	needed(&f, now, "", false);
	REQUIRE(f.e == UAR_OK);
	CHECK(has(f.plan.argv, "--tenant=t=1"));
	CHECK(has(f.plan.argv, "--idle-exit-seconds=90s"));
	CHECK(!has(f.plan.argv, "2s"));
	CHECK(has(f.plan.argv, f.data) && !has(f.plan.argv, "--data=/elsewhere"));
	CHECK(has(f.plan.argv, "--allowed-hosts=a.example, b.example"));
	CHECK(has(f.plan.env, "UAR_USER=u"));
	/* The caller's own environment is nearer. */
	CHECK(has(f.plan.env, "UAR_LOG_LEVEL=error") && !has(f.plan.env, "UAR_LOG_LEVEL=warn"));
	needed(&f, now, "", true);
	REQUIRE(f.e == UAR_OK);
	CHECK(has(f.plan.argv, "--tenant=t=1"));
	CHECK(!has(f.plan.env, "UAR_USER=u"));
	done(&f);
}

TEST(paths_are_kept_whole_and_the_configuration_file_too, "")
{
	static char *const env[] = { "HOME=/h", NULL };
	struct uar_config_flag flags[] = { flag("fixtures-dir", "some/where"),
					   flag("plugins-dir", "/there"), flag("listen", "unix:s"),
					   flag("idle-exit-seconds", "1s") };
	char here[300], want[800], file[400];
	FILE *out;
	struct fixture f;

	snprintf(file, sizeof file, "%s/c.json", uar_test_dir());
	out = fopen(file, "w");
	REQUIRE(out && fputs("{\"workspace\":\"w\"}", out) >= 0 && fclose(out) == 0);
	REQUIRE(getcwd(here, sizeof here));
	begin(&f);
	was_here(&f, &(struct uar_config_input){
			     .flags = flags, .flag_count = 4, .env = env, .file = file });
	needed(&f, env, "", false);
	REQUIRE(f.e == UAR_OK);
	snprintf(want, sizeof want, "--fixtures-dir=%s/some/where", here);
	CHECK(has(f.plan.argv, want));
	snprintf(want, sizeof want, "--listen=unix:%s/s", here);
	CHECK(has(f.plan.argv, want));
	snprintf(want, sizeof want, "--config=%s", file);
	CHECK(has(f.plan.argv, want));
	CHECK(has(f.plan.argv, "--plugins-dir=/there"));
	CHECK(!has(f.plan.argv, "--workspace=w")); /* the file says so itself */
	f.args.option[UAR_OPT_CONFIG] = "mine.json";
	needed(&f, env, "", false);
	REQUIRE(f.e == UAR_OK);
	CHECK(has(f.plan.argv, "mine.json") && !has(f.plan.argv, want));
	done(&f);
}

TEST(a_secret_is_not_kept_and_has_to_be_there_again, "")
{
	static char *const then[] = { "HOME=/h", "OPENAI_API_KEY=hush", NULL };
	static char *const now[] = { "HOME=/h", NULL };
	struct uar_config_flag flags[] = { flag("model", "m"), flag("idle-exit-seconds", "1s"),
					   flag("token", "sesame") };
	struct fixture f;

	begin(&f);
	was_here(&f, &(struct uar_config_input){ .flags = flags, .flag_count = 3, .env = then });
	CHECK(!strstr(f.kept.p, "hush") && !strstr(f.kept.p, "sesame"));
	needed(&f, now, "sesame", false);
	CHECK_INT(f.e, UAR_ECONFIG);
	CHECK(strstr(f.error.text, "openai_api_key") && strstr(f.error.text, "UAR_OPENAI_API_KEY"));
	needed(&f, then, "", false);
	CHECK_INT(f.e, UAR_ECONFIG);
	CHECK(strstr(f.error.text, "given token"));
	needed(&f, then, "sesame", false);
	REQUIRE(f.e == UAR_OK);
	CHECK(has(f.plan.env, "UAR_TOKEN=sesame"));
	needed(&f, now, "sesame", true); /* its own environment counts */
	CHECK_INT(f.e, UAR_OK);
	/* A key that nothing would have used is not missed. */
	was_here(&f,
		 &(struct uar_config_input){ .flags = flags + 1, .flag_count = 1, .env = then });
	needed(&f, now, "", false);
	CHECK_INT(f.e, UAR_OK);
	done(&f);
}

TEST(a_secret_in_a_file_is_named_by_its_file, "")
{
	char path[400], want[450];
	char *env[] = { "HOME=/h", NULL };
	struct uar_config_flag flags[2];
	FILE *out;
	struct fixture f;

	snprintf(path, sizeof path, "%s/secret", uar_test_dir());
	out = fopen(path, "w");
	REQUIRE(out && fputs("sesame\n", out) >= 0 && fclose(out) == 0);
	flags[0] = flag("token-file", path);
	flags[1] = flag("idle-exit-seconds", "1s");
	begin(&f);
	was_here(&f, &(struct uar_config_input){ .flags = flags, .flag_count = 2, .env = env });
	needed(&f, env, "", false);
	REQUIRE(f.e == UAR_OK);
	snprintf(want, sizeof want, "--token-file=%s", path);
	CHECK(has(f.plan.argv, want));
	done(&f);
}

TEST(what_was_too_much_to_be_kept_is_refused, "")
{
	static char *const env[] = { "HOME=/h", NULL };
	struct uar_server_info info = { .pid = 1, .passing = true, .again = UAR_STR("null") };
	struct fixture f;

	begin(&f);
	REQUIRE(uar_datadir_announce(f.data, &info, &uar_clock_system, NULL) == UAR_OK);
	needed(&f, env, "", false);
	CHECK_INT(f.e, UAR_ECONFIG);
	done(&f);
}
