/* fixture_file.c - reading recorded streams. */
#include "work/fixture_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "work/limits.h"

static const char suffix[] = ".jsonl";

bool uar_fixture_name_valid(uar_str name)
{
	if (name.n == 0 || name.n > UAR_LIMIT_FIXTURE_NAME)
		return false;
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
			return false;
	}
	return true;
}

bool uar_fixture_line(uar_str *rest, uar_str *out_line)
{
	while (rest->n) {
		uar_str line = uar_str_cut(*rest, '\n', rest);

		if (line.n && line.p[line.n - 1] == '\r')
			line.n--;
		if (line.n) {
			*out_line = line;
			return true;
		}
	}
	return false;
}

uar_err uar_fixture_parse(uar_str line, struct uar_arena *arena, const struct uar_json **out,
			  struct uar_error *error)
{
	const struct uar_json *j, *data;
	uar_err e = uar_json_parse(line, NULL, arena, &j, error);

	if (e)
		return e;
	data = uar_json_get(j, UAR_STR("data"));
	if (!uar_json_text(j, "type").n || !data || data->kind != UAR_JSON_OBJECT)
		return uar_error_set(error, UAR_EINVALID,
				     "a fixture line is {\"type\": string, \"data\": object}");
	*out = j;
	return UAR_OK;
}

/* --- on a worker thread -------------------------------------------------------- */

static uar_err cannot_read(struct uar_fixture_job *j, int why)
{
	char reason[80];

	if (why == ENOENT || why == ENOTDIR || why == ELOOP)
		return uar_error_set(&j->error, UAR_ENOTFOUND, "no fixture is named \"%s\"",
				     j->name);
	return uar_error_set(&j->error, UAR_EIO, "fixture \"%s\": %s", j->name,
			     strerror_r(why, reason, sizeof reason));
}

/* -1 with j->err: there is no such file, or none that is ours to read. */
static int open_file(struct uar_fixture_job *j)
{
	char path[4096];
	struct stat st;
	int fd, n = snprintf(path, sizeof path, "%s/%s%s", j->dir ? j->dir : "", j->name, suffix);

	if (!j->dir || !j->name[0] || n >= (int)sizeof path) {
		j->err = cannot_read(j, ENOENT);
		return -1;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0) {
		j->err = cannot_read(j, errno);
		return -1;
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		j->err = cannot_read(j, ENOENT);
	else if (st.st_size > UAR_LIMIT_FIXTURE_BYTES)
		j->err = uar_error_set(&j->error, UAR_ETOOBIG, "fixture \"%s\" is too large",
				       j->name);
	else
		return fd;
	close(fd);
	return -1;
}

static void read_all(struct uar_fixture_job *j, int fd)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_FIXTURE_BYTES);
	char block[16384];
	ssize_t n;

	while ((n = read(fd, block, sizeof block)) > 0 && !b.err)
		uar_buf_add(&b, block, (size_t)n);
	if (n < 0)
		j->err = cannot_read(j, errno);
	else if (b.err)
		j->err = b.err;
	else
		j->text = uar_buf_take(&b, &j->size);
	uar_buf_fini(&b);
}

/* As an editor counts them. */
static size_t line_number(const struct uar_fixture_job *j, const char *at)
{
	size_t n = 1;

	for (const char *p = j->text; p < at; p++)
		n += *p == '\n';
	return n;
}

static void check_lines(struct uar_fixture_job *j)
{
	uar_str rest = uar_str_n(j->text, j->size), line;
	struct uar_error why = { 0 };
	const struct uar_json *ignored;

	while (!j->err && uar_fixture_line(&rest, &line)) {
		uar_arena_reset(&j->arena);
		j->err = uar_fixture_parse(line, &j->arena, &ignored, &why);
		if (j->err && j->err != UAR_ENOMEM)
			j->err = uar_error_set(&j->error, UAR_ECORRUPT,
					       "fixture \"%s\", line %zu: %s", j->name,
					       line_number(j, line.p), why.text);
	}
}

static int by_name(const void *a, const void *b)
{
	return uar_str_cmp(*(const uar_str *)a, *(const uar_str *)b);
}

static void take_name(struct uar_fixture_job *j, const char *file)
{
	uar_str name = uar_str_c(file), copy;

	if (!uar_str_ends(name, uar_str_c(suffix)))
		return;
	name.n -= sizeof suffix - 1;
	if (!uar_fixture_name_valid(name))
		return;
	copy = uar_arena_str(&j->arena, name);
	if (copy.p)
		j->names[j->name_count++] = copy;
	else
		j->err = UAR_ENOMEM;
}

/* What open_file() would open. A link is none. */
static bool is_file(DIR *d, const struct dirent *entry)
{
	struct stat st;

	return uar_str_ends(uar_str_c(entry->d_name), uar_str_c(suffix)) &&
	       fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode);
}

/* A folder that is not there has none. */
static void list(struct uar_fixture_job *j)
{
	DIR *d = j->dir ? opendir(j->dir) : NULL;
	struct dirent *entry;

	j->names = uar_arena_alloc(&j->arena, UAR_LIMIT_FIXTURES * sizeof *j->names);
	if (!j->names)
		j->err = UAR_ENOMEM;
	while (d && !j->err && j->name_count < UAR_LIMIT_FIXTURES && (entry = readdir(d)))
		if (is_file(d, entry))
			take_name(j, entry->d_name);
	if (d)
		closedir(d);
	if (!j->err)
		qsort(j->names, j->name_count, sizeof *j->names, by_name);
}

static void work(struct uar_work *w)
{
	struct uar_fixture_job *j = UAR_OWNER(w, struct uar_fixture_job, work);
	int fd;

	if (j->task == UAR_FIXTURE_LIST) {
		list(j);
		return;
	}
	fd = open_file(j);
	if (fd < 0)
		return;
	if (j->task == UAR_FIXTURE_LOAD)
		read_all(j, fd);
	close(fd);
	if (j->whole && !j->err)
		check_lines(j);
}

/* --- on the loop ------------------------------------------------------------------ */

static void free_job(struct uar_fixture_job *j)
{
	uar_free(j->text);
	uar_arena_fini(&j->arena);
	uar_free(j);
}

static void done(struct uar_work *w)
{
	struct uar_fixture_job *j = UAR_OWNER(w, struct uar_fixture_job, work);

	j->error.code = j->err;
	if (j->done)
		j->done(j);
	free_job(j);
}

struct uar_fixture_job *uar_fixture_job_make(enum uar_fixture_task task, const char *dir,
					     uar_str name)
{
	struct uar_fixture_job *j = uar_zalloc(sizeof *j);

	if (!j)
		return NULL;
	j->task = task;
	j->dir = dir;
	if (uar_fixture_name_valid(name)) /* one that is not names nothing */
		snprintf(j->name, sizeof j->name, "%.*s", UAR_FMT(name));
	j->work.work = work;
	j->work.done = done;
	uar_arena_init(&j->arena, 0);
	return j;
}

uar_err uar_fixture_job_begin(struct uar_sched *sched, struct uar_fixture_job *job)
{
	uar_err e = uar_work_begin(sched, &job->work);

	if (e)
		free_job(job);
	return e;
}

void uar_fixture_job_forget(struct uar_fixture_job *job)
{
	if (job)
		job->done = NULL;
}
