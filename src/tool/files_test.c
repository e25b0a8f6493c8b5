/* files_test.c - fs.* tools: what they do, and every way out of their directory. */
#include "test.h"
#include "tooled.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "tool/internal_int.h"
#include "tool/limits.h"

/* A directory of files with another one beside it that must not be reached. */
struct world {
	struct tooled f;
	char base[400], files[420], secret[420];
};

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (CHECK(f != NULL)) {
		fputs(text, f);
		fclose(f);
	}
}

static const char *inside(struct world *w, const char *name)
{
	static char path[2][1000];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof path[turn], "%s/%s", w->files, name);
	return path[turn];
}

static bool set_up(struct world *w)
{
	static int number;

	snprintf(w->base, sizeof w->base, "%s/w%d", uar_test_dir(), number++);
	snprintf(w->files, sizeof w->files, "%s/files", w->base);
	snprintf(w->secret, sizeof w->secret, "%s/secret", w->base);
	if (!CHECK(mkdir(w->base, 0700) == 0))
		return false;
	put(w->secret, "SECRET");
	return tooled_init(&w->f, w->files);
}

static void tear_down(struct world *w)
{
	struct uar_buf b = uar_buf_make(100);

	CHECK(uar_file_read(w->secret, &b, NULL) == UAR_OK); /* still there, still the same */
	CHECK_STR(uar_buf_str(&b), "SECRET");
	uar_buf_fini(&b);
	tooled_fini(&w->f);
}

static void check_file(const char *path, const char *text)
{
	struct uar_buf b = uar_buf_make(1 << 20);

	CHECK(uar_file_read(path, &b, NULL) == UAR_OK);
	CHECK_STR(uar_buf_str(&b), text);
	uar_buf_fini(&b);
}

static int entries_of(struct world *w)
{
	struct uar_arena arena = { 0 };
	const struct uar_json *j;
	int n = -1;

	if (tooled_call(&w->f, "internal:fs.list", "{}") &&
	    CHECK(uar_json_parse(uar_buf_str(&w->f.output), NULL, &arena, &j, NULL) == UAR_OK))
		n = (int)uar_json_get(j, UAR_STR("entries"))->count;
	uar_arena_fini(&arena);
	return n;
}

/* --- what is short ------------------------------------------------------------------- */

/* The lowest number that a new descriptor would get. */
static rlim_t next_descriptor(void)
{
	int fd = dup(0);

	close(fd);
	return (rlim_t)fd;
}

/* Whichever of the descriptors that a call needs is the one too many. */
TEST(a_tool_without_descriptors_may_be_tried_again, "")
{
	static const char *const calls[][2] = {
		{ "internal:fs.list", "{}" },
		{ "internal:fs.read", "{\"path\":\"a\"}" },
		{ "internal:fs.write", "{\"path\":\"a\",\"text\":\"2\"}" },
	};
	struct rlimit old, less;
	struct world w;

	REQUIRE(set_up(&w));
	CHECK(tooled_call(&w.f, calls[2][0], "{\"path\":\"a\",\"text\":\"1\"}"));
	REQUIRE(getrlimit(RLIMIT_NOFILE, &old) == 0);
	less = old;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		for (rlim_t more = 0; more < 2; more++) {
			less.rlim_cur = next_descriptor() + more;
			REQUIRE(setrlimit(RLIMIT_NOFILE, &less) == 0);
			CHECK(tooled_fails(&w.f, calls[i][0], calls[i][1], "execution",
					   "Too many open files"));
			CHECK_INT(w.f.retryable, true);
			REQUIRE(setrlimit(RLIMIT_NOFILE, &old) == 0);
		}
	check_file(inside(&w, "a"), "1");
	tear_down(&w);
}

/* --- what they do ----------------------------------------------------------------- */

TEST(files_are_written_listed_read_and_deleted, "")
{
	struct world w;
	struct stat st;

	REQUIRE(set_up(&w));
	REQUIRE(tooled_call(&w.f, "internal:fs.list", "{}")); /* makes the directory */
	CHECK_STR(uar_buf_str(&w.f.output), "{\"entries\":[],\"truncated\":false}");
	CHECK(stat(w.files, &st) == 0 && (st.st_mode & 0777) == 0700);
	CHECK(tooled_call(&w.f, "internal:fs.write",
			  "{\"path\":\"notes/day/1.txt\",\"text\":\"Gr\xc3\xbc\xc3\x9f\\n\"}"));
	CHECK_STR(uar_buf_str(&w.f.output), "{\"bytes\":7}");
	check_file(inside(&w, "notes/day/1.txt"), "Gr\xc3\xbc\xc3\x9f\n");
	CHECK(tooled_call(&w.f, "internal:fs.write", "{\"path\":\"b\",\"text\":\"\"}"));
	CHECK(tooled_call(&w.f, "internal:fs.list", "{\"path\":\"./\"}"));
	CHECK_STR(
		uar_buf_str(&w.f.output),
		"{\"entries\":[{\"name\":\"b\",\"type\":\"file\",\"bytes\":0},{\"name\":\"notes\","
		"\"type\":\"directory\"}],\"truncated\":false}");
	CHECK(tooled_call(&w.f, "internal:fs.read", "{\"path\":\"notes/day/1.txt\"}"));
	CHECK_STR(uar_buf_str(&w.f.output), "{\"text\":\"Gr\xc3\xbc\xc3\x9f\\n\",\"offset\":0,"
					    "\"next_offset\":null,\"bytes\":7}");
	CHECK(tooled_call(&w.f, "internal:fs.read", "{\"path\":\"b\"}")); /* empty, and says so */
	CHECK_STR(uar_buf_str(&w.f.output),
		  "{\"text\":\"\",\"offset\":0,\"next_offset\":null,\"bytes\":0}");
	CHECK(tooled_call(&w.f, "internal:fs.delete", "{\"path\":\"b\"}"));
	CHECK_STR(uar_buf_str(&w.f.output), "{}");
	CHECK(access(inside(&w, "b"), F_OK) != 0);
	CHECK(tooled_fails(&w.f, "internal:fs.delete", "{\"path\":\"b\"}", "value_invalid",
			   "no such"));
	CHECK(!w.f.retryable);
	tear_down(&w);
}

TEST(a_written_file_is_replaced_whole_and_twice_is_once, "")
{
	struct world w;
	struct stat st;

	REQUIRE(set_up(&w));
	REQUIRE(tooled_call(&w.f, "internal:fs.write", "{\"path\":\"a\",\"text\":\"long text\"}"));
	REQUIRE(chmod(inside(&w, "a"), 0640) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(tooled_call(&w.f, "internal:fs.write", "{\"path\":\"a\",\"text\":\"new\"}"));
	check_file(inside(&w, "a"), "new");
	CHECK(stat(inside(&w, "a"), &st) == 0 && (st.st_mode & 0777) == 0640);
	CHECK_INT(entries_of(&w), 1); /* and nothing beside it */
	tear_down(&w);
}

TEST(what_a_killed_server_left_is_neither_shown_nor_kept, "")
{
	static const char *const names[] = { ".uar-0123456789abcdef", ".uar-0123456789abcdeg",
					     ".uar-0123456789abcde" };
	const struct timespec old[2] = { { 1000000000, 0 }, { 1000000000, 0 } };
	struct world w;
	int fd;

	REQUIRE(set_up(&w));
	REQUIRE(tooled_call(&w.f, "internal:fs.list", "{}"));
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		put(inside(&w, names[i]), "half");
		REQUIRE(utimensat(AT_FDCWD, inside(&w, names[i]), old, 0) == 0);
	}
	fd = open(inside(&w, names[0]), O_RDONLY | O_CLOEXEC);
	REQUIRE(fd >= 0 && flock(fd, LOCK_EX) == 0);
	CHECK_INT(entries_of(&w), 2);			/* who has other names made them */
	CHECK(access(inside(&w, names[0]), F_OK) == 0); /* somebody is writing it */
	close(fd);
	put(inside(&w, names[0]), "just now");
	CHECK_INT(entries_of(&w), 2);
	CHECK(access(inside(&w, names[0]), F_OK) == 0);
	REQUIRE(utimensat(AT_FDCWD, inside(&w, names[0]), old, 0) == 0);
	CHECK_INT(entries_of(&w), 2);
	CHECK(access(inside(&w, names[0]), F_OK) != 0);
	CHECK(access(inside(&w, names[1]), F_OK) == 0 && access(inside(&w, names[2]), F_OK) == 0);
	CHECK(tooled_fails(&w.f, "internal:fs.write",
			   "{\"path\":\"d/.uar-0123456789abcdef\",\"text\":\"mine\"}",
			   "value_invalid", "for unfinished files"));
	tear_down(&w);
}

TEST(text_is_read_piece_by_piece, "")
{
	static const char *const pieces[] = { "ab\xe2\x82\xac", "\xe2\x82\xac\xe2\x82\xac", "c" };
	struct world w;
	int64_t offset = 0;
	char input[100];

	REQUIRE(set_up(&w) && CHECK(mkdir(w.files, 0700) == 0));
	put(inside(&w, "t"), "ab\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
			     "c");
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		struct uar_arena arena = { 0 };
		const struct uar_json *j = NULL;

		snprintf(input, sizeof input, "{\"path\":\"t\",\"limit\":6,\"offset\":%d}",
			 (int)offset);
		if (!tooled_call(&w.f, "internal:fs.read", input))
			break;
		CHECK(uar_json_parse(uar_buf_str(&w.f.output), NULL, &arena, &j, NULL) == UAR_OK);
		CHECK_STR(uar_json_str(uar_json_get(j, UAR_STR("text")), UAR_STR("")), pieces[i]);
		offset = uar_json_int(uar_json_get(j, UAR_STR("next_offset")), -1);
		uar_arena_fini(&arena);
	}
	CHECK_INT(offset, -1);
	CHECK(tooled_call(&w.f, "internal:fs.read", "{\"path\":\"t\",\"offset\":4000}"));
	CHECK_STR(uar_buf_str(&w.f.output),
		  "{\"text\":\"\",\"offset\":4000,\"next_offset\":null,\"bytes\":12}");
	CHECK(tooled_fails(&w.f, "internal:fs.read", "{\"path\":\"t\",\"offset\":3}",
			   "value_invalid", "from that offset"));
	tear_down(&w);
}

TEST(what_is_not_text_is_refused, "")
{
	struct world w;

	REQUIRE(set_up(&w) && CHECK(mkdir(w.files, 0700) == 0));
	put(inside(&w, "bin"), "\xff\xfe");
	CHECK(tooled_fails(&w.f, "internal:fs.read", "{\"path\":\"bin\"}", "value_invalid",
			   "UTF-8"));
	put(inside(&w, "cut"), "a\xe2\x82");
	CHECK(tooled_fails(&w.f, "internal:fs.read", "{\"path\":\"cut\"}", "value_invalid",
			   "UTF-8"));
	put(inside(&w, "nul"), "");
	CHECK(truncate(inside(&w, "nul"), 5) == 0);
	CHECK(tooled_fails(&w.f, "internal:fs.read", "{\"path\":\"nul\"}", "value_invalid",
			   "UTF-8"));
	tear_down(&w);
}

TEST(results_are_bounded, "")
{
	struct world w;
	FILE *f;
	char name[256];

	REQUIRE(set_up(&w) && CHECK(mkdir(w.files, 0700) == 0));
	f = fopen(inside(&w, "big"), "w");
	REQUIRE(f != NULL);
	for (int i = 0; i < UAR_LIMIT_TOOL_READ; i++)
		fputc('\x01', f); /* six bytes each in JSON */
	fclose(f);
	CHECK(tooled_call(&w.f, "internal:fs.read", "{\"path\":\"big\"}"));
	CHECK(w.f.output.n <= UAR_LIMIT_TOOL_TOLD); /* the model sees where it goes on */
	CHECK(w.f.output.n > UAR_LIMIT_TOOL_TOLD - 512);
	CHECK(strstr(w.f.output.p, "\"next_offset\":1") != NULL);
	CHECK(tooled_call(&w.f, "internal:fs.read", "{\"path\":\"big\",\"offset\":65000}"));
	CHECK(strstr(w.f.output.p, "\"next_offset\":null") != NULL);
	REQUIRE(truncate(inside(&w, "big"), 0) == 0 && truncate(inside(&w, "big"), 1LL << 40) == 0);
	CHECK(tooled_fails(&w.f, "internal:fs.read", "{\"path\":\"big\"}", "value_invalid",
			   "UTF-8"));
	for (int i = 0; i < UAR_LIMIT_TOOL_ENTRIES + 5; i++) {
		snprintf(name, sizeof name, "f%04d", i);
		put(inside(&w, name), "");
	}
	CHECK_INT(entries_of(&w), UAR_LIMIT_TOOL_ENTRIES);
	CHECK(strstr(w.f.output.p, "\"truncated\":true") != NULL);
	for (int i = 0; i < 400; i++) {
		snprintf(name, sizeof name, "%0240d", i);
		put(inside(&w, name), "");
	}
	CHECK(entries_of(&w) < 400);
	CHECK(w.f.output.n <= UAR_LIMIT_TOOL_TOLD);
	CHECK(strstr(w.f.output.p, "\"truncated\":true") != NULL);
	CHECK(!tooled_try(&w.f, "internal:fs.read", "{\"path\":\"big\",\"limit\":65537}"));
	CHECK(!tooled_try(&w.f, "internal:fs.read", "{\"path\":\"big\",\"offset\":-1}"));
	tear_down(&w);
}

/* --- ways out ----------------------------------------------------------------------- */

static const char *const all[] = { "internal:fs.list", "internal:fs.read", "internal:fs.write",
				   "internal:fs.delete" };

static void refuse_all(struct world *w, const char *path, const char *category)
{
	char input[3000];

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		bool writes = strstr(all[i], "write") != NULL;

		snprintf(input, sizeof input, "{\"path\":\"%s\"%s}", path,
			 writes ? ",\"text\":\"x\"" : "");
		CHECK(tooled_fails(&w->f, all[i], input, category, ""));
		CHECK_MSG(!strstr(w->f.message.p, "SECRET"), "%s %s", all[i], path);
	}
}

TEST(paths_that_lead_out_are_refused, "")
{
	static const struct {
		const char *path, *category;
	} cases[] = {
		{ "../secret", "sandbox_violation" },	{ "a/../../secret", "sandbox_violation" },
		{ "a/..", "sandbox_violation" },	{ "..", "sandbox_violation" },
		{ "./../secret", "sandbox_violation" }, { "/etc/passwd", "sandbox_violation" },
		{ "/", "sandbox_violation" },		{ "//secret", "sandbox_violation" },
		{ "a\\u0001b", "value_invalid" },	{ "a\\nb", "value_invalid" },
		{ "\\u007f", "value_invalid" },
	};
	struct world w;

	REQUIRE(set_up(&w));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		refuse_all(&w, cases[i].path, cases[i].category);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		CHECK(!tooled_try(&w.f, all[i], "{\"path\":\"a\\u0000b\",\"text\":\"\"}"));
		CHECK(!tooled_try(&w.f, all[i], "{\"path\":\"\",\"text\":\"\"}"));
	}
	CHECK_INT(entries_of(&w), 0);
	tear_down(&w);
}

TEST(long_names_are_refused, "")
{
	static char name[UAR_LIMIT_TOOL_PATH + 2], input[sizeof name + 20];
	struct world w;

	REQUIRE(set_up(&w));
	memset(name, 'n', 256);
	refuse_all(&w, name, "value_invalid");
	for (size_t i = 0; i + 1 < sizeof name; i++)
		name[i] = i % 2 ? '/' : 'n';
	snprintf(input, sizeof input, "{\"path\":\"%s\"}", name);
	CHECK(!tooled_try(&w.f, "internal:fs.list", input));
	tear_down(&w);
}

TEST(links_that_lead_out_are_refused, "")
{
	static const struct {
		const char *target, *name;
	} links[] = {
		{ "../secret", "up" },		{ "..", "parent" },	     { "/", "root" },
		{ "/proc/self/root", "magic" }, { "/proc/self/cwd", "cwd" }, { "loop", "loop" },
	};
	struct world w;
	char absolute[420];

	REQUIRE(set_up(&w) && CHECK(mkdir(w.files, 0700) == 0));
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		REQUIRE(symlink(links[i].target, inside(&w, links[i].name)) == 0);
	snprintf(absolute, sizeof absolute, "%s", w.secret);
	REQUIRE(symlink(absolute, inside(&w, "abs")) == 0);
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		char input[200];

		snprintf(input, sizeof input, "{\"path\":\"%s\"}", links[i].name);
		CHECK(tooled_fails(&w.f, "internal:fs.read", input, "sandbox_violation", ""));
		CHECK(tooled_fails(&w.f, "internal:fs.list", input, "sandbox_violation", ""));
		snprintf(input, sizeof input, "{\"path\":\"%s\",\"text\":\"x\"}", links[i].name);
		CHECK(tooled_fails(&w.f, "internal:fs.write", input, "sandbox_violation", "link"));
	}
	refuse_all(&w, "parent/secret", "sandbox_violation");
	refuse_all(&w, "root/etc/passwd", "sandbox_violation");
	refuse_all(&w, "magic/etc", "sandbox_violation");
	CHECK(tooled_fails(&w.f, "internal:fs.read", "{\"path\":\"abs\"}", "sandbox_violation",
			   ""));
	CHECK(tooled_call(&w.f, "internal:fs.delete", "{\"path\":\"abs\"}")); /* the link alone */
	CHECK(access(w.secret, F_OK) == 0);
	REQUIRE(symlink("t", inside(&w, "in")) == 0);
	put(inside(&w, "t"), "text");
	CHECK(tooled_call(&w.f, "internal:fs.read", "{\"path\":\"in\"}")); /* stays inside */
	tear_down(&w);
}

TEST(nothing_but_files_is_read_and_nothing_waits, "")
{
	static const char *const names[] = { "fifo", "socket", "folder" };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct world w;
	char input[100];
	int s;

	REQUIRE(set_up(&w) && CHECK(mkdir(w.files, 0700) == 0));
	REQUIRE(mkfifo(inside(&w, "fifo"), 0600) == 0);
	REQUIRE(mkdir(inside(&w, "folder"), 0700) == 0);
	REQUIRE(mkfifo(inside(&w, "folder/x"), 0600) == 0);
	s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof address.sun_path, "socket");
	REQUIRE(s >= 0 && chdir(w.files) == 0); /* its path would be too long */
	REQUIRE(bind(s, (struct sockaddr *)&address, sizeof address) == 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(input, sizeof input, "{\"path\":\"%s\"}", names[i]);
		CHECK(tooled_fails(&w.f, "internal:fs.read", input, "value_invalid", "is "));
		snprintf(input, sizeof input, "{\"path\":\"%s\",\"text\":\"x\"}", names[i]);
		CHECK(tooled_fails(&w.f, "internal:fs.write", input, "value_invalid", "is "));
	}
	CHECK(tooled_fails(&w.f, "internal:fs.list", "{\"path\":\"fifo\"}", "value_invalid",
			   "no directory"));
	CHECK(tooled_fails(&w.f, "internal:fs.delete", "{\"path\":\"folder\"}", "value_invalid",
			   "is a directory"));
	CHECK(tooled_fails(&w.f, "internal:fs.read", "{\"path\":\"fifo/x\"}", "value_invalid",
			   "no directory"));
	CHECK(tooled_call(&w.f, "internal:fs.list", "{}"));
	CHECK(strstr(w.f.output.p, "{\"name\":\"fifo\",\"type\":\"other\"}") != NULL);
	CHECK(chdir("/") == 0);
	close(s);
	tear_down(&w);
}

/* --- a race --------------------------------------------------------------------------- */

struct racer {
	char folder[460], link[460];
	atomic_bool stop;
	atomic_uint turns;
};

static bool swap(const struct racer *r)
{
	return renameat2(AT_FDCWD, r->folder, AT_FDCWD, r->link, RENAME_EXCHANGE) == 0;
}

/* "d" is now a folder with a file, now a link to where the secret is. */
static void *race(void *ctx)
{
	struct racer *r = ctx;

	while (!atomic_load(&r->stop))
		atomic_fetch_add(&r->turns, swap(r));
	return NULL;
}

TEST(who_moves_things_about_gets_nobody_out, "")
{
	static const char *const inputs[] = { "{\"path\":\"d/secret\"}",
					      "{\"path\":\"d/secret\",\"text\":\"inside\"}" };
	struct world w;
	struct racer r = { .stop = false };
	pthread_t thread;

	REQUIRE(set_up(&w) && CHECK(mkdir(w.files, 0700) == 0));
	snprintf(r.folder, sizeof r.folder, "%s/d", w.files);
	snprintf(r.link, sizeof r.link, "%s/l", w.files);
	REQUIRE(mkdir(r.folder, 0700) == 0);
	put(inside(&w, "d/secret"), "inside");
	REQUIRE(symlink(w.base, r.link) == 0);
	if (!swap(&r)) {
		uar_test_skip("this file system cannot swap names");
		tear_down(&w);
		return;
	}
	REQUIRE(pthread_create(&thread, NULL, race, &r) == 0);
	while (atomic_load(&r.turns) == 0)
		sched_yield();
	for (int i = 0; i < 200; i++) {
		CHECK(tooled_try(&w.f, i % 3 ? "internal:fs.read" : "internal:fs.write",
				 inputs[i % 3 == 0]));
		CHECK_MSG(!w.f.ok || !strstr(w.f.output.p, "SECRET"), "round %d", i);
	}
	atomic_store(&r.stop, true);
	pthread_join(thread, NULL);
	tear_down(&w);
}

/* --- the system ------------------------------------------------------------------------- */

/* openat2 answers that it does not exist. */
static bool forbid_openat2(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_LEN(code), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int refused_without_fence(struct world *w)
{
	struct uar_tool_job j = { .files_dir = w->files, .out = uar_buf_make(1000) };
	int status = 0;

	if (!forbid_openat2())
		return 2;
	uar_tool_fs_list(&j);
	status = j.category && strcmp(j.category, "setup_missing") == 0 ? 0 : 1;
	uar_buf_fini(&j.out);
	return status;
}

/* What a child finds: 0 is fine, 2 that it cannot be tried here. */
static void check_in_child(struct world *w, int (*fn)(struct world *w))
{
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		_exit(fn(w));
	REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		uar_test_skip("this system takes no filter of system calls");
	else
		CHECK_INT(WEXITSTATUS(status), 0);
}

TEST(without_the_fence_there_are_no_files, "")
{
	struct world w;

	REQUIRE(set_up(&w));
	check_in_child(&w, refused_without_fence);
	tear_down(&w);
}

/* As in a file system that knows no files without a name. */
static bool forbid_tmpfile(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_LEN(code), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static bool always(struct uar_tool_job *j)
{
	(void)j;
	return true;
}

static int written_without_tmpfile(struct world *w)
{
	struct uar_tool_job j = { .may_change = always, .key = UAR_STR("run/call") };
	struct uar_tool_file file = { -1, "a", UAR_STR("one"), 0600 };

	if (!forbid_tmpfile())
		return 2;
	file.dir = open(w->files, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (file.dir < 0 || openat(file.dir, ".", O_TMPFILE | O_WRONLY, 0600) >= 0 ||
	    uar_tool_replace(&j, &file))
		return 1;
	file.text = UAR_STR("two");
	return uar_tool_replace(&j, &file) ? 1 : 0;
}

TEST(files_are_replaced_also_where_each_has_a_name, "")
{
	struct world w;

	REQUIRE(set_up(&w));
	REQUIRE(tooled_call(&w.f, "internal:fs.list", "{}")); /* makes the directory */
	check_in_child(&w, written_without_tmpfile);
	if (access(inside(&w, "a"), F_OK) == 0)
		check_file(inside(&w, "a"), "two");
	CHECK(entries_of(&w) <= 1);
	tear_down(&w);
}

TEST(a_directory_that_cannot_be_used_is_told, "")
{
	struct tooled f;
	char path[500];

	snprintf(path, sizeof path, "%s/no/such/place", uar_test_dir());
	REQUIRE(tooled_init(&f, path));
	CHECK(tooled_fails(&f, "internal:fs.list", "{}", "setup_missing", "cannot be used"));
	tooled_fini(&f);
	REQUIRE(tooled_init(&f, NULL));
	CHECK(uar_tools_find(f.tools, NULL, UAR_STR("internal:fs.list")) == NULL);
	tooled_fini(&f);
}

TEST(no_memory_is_no_result, "")
{
	struct world w;
	bool done = false;

	REQUIRE(set_up(&w) && CHECK(mkdir(w.files, 0700) == 0));
	put(inside(&w, "t"), "text");
	for (size_t i = 0; i < 2; i++, done = false)
		for (unsigned long n = 1; !done; n++) {
			struct uar_tool_job j = { .files_dir = w.files, .out = uar_buf_make(1000) };
			struct uar_arena arena = { 0 };

			CHECK(uar_json_parse(UAR_STR("{\"path\":\"t\"}"), NULL, &arena, &j.input,
					     NULL) == UAR_OK);
			uar_test_fail_alloc(n);
			if (i) {
				uar_tool_fs_read(&j);
			} else {
				j.input = NULL;
				uar_tool_fs_list(&j);
			}
			uar_test_fail_alloc(0);
			done = !j.category && !j.out.err;
			uar_buf_fini(&j.out);
			uar_arena_fini(&arena);
		}
	tear_down(&w);
}
