/* skill_copy.c - a folder is copied beside its place, under a name that is not read, and renamed.
 */
#include "app/skill_copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/limits.h"
#include "base/buf.h"
#include "base/file.h"
#include "json/limits.h"
#include "skill/skill.h"

enum { PIECE = 65536, PATH = UAR_LIMIT_URI_BYTES, DEPTH = 16 };

struct copying {
	size_t files;
	uint64_t bytes;
	struct uar_error *error;
};

static uar_err fail(struct uar_error *error, const char *path)
{
	return uar_error_set(error, errno == EEXIST ? UAR_EEXISTS : UAR_EIO, "%.400s: %s", path,
			     strerror(errno));
}

static uar_err write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return UAR_EIO;
		p += done;
		n -= (size_t)done;
	}
	return UAR_OK;
}

static uar_err copy_bytes(struct copying *c, int in, int out, const char *path)
{
	char piece[PIECE];
	ssize_t n;

	while ((n = read(in, piece, sizeof piece)) > 0) {
		c->bytes += (uint64_t)n;
		if (c->bytes > UAR_LIMIT_SKILL_ADD_BYTES)
			return uar_error_set(c->error, UAR_ETOOBIG,
					     "a skill that is added has at most %d bytes",
					     UAR_LIMIT_SKILL_ADD_BYTES);
		if (write_all(out, piece, (size_t)n))
			return fail(c->error, path);
	}
	return n < 0 || fsync(out) ? fail(c->error, path) : UAR_OK;
}

static uar_err copy_file(struct copying *c, int from, int to, const char *name)
{
	int in = openat(from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), out;
	struct stat st;
	uar_err e;

	if (in < 0 || fstat(in, &st)) {
		e = fail(c->error, name);
		if (in >= 0)
			close(in);
		return e;
	}
	if (!S_ISREG(st.st_mode) || ++c->files > UAR_LIMIT_SKILL_ADD_FILES) {
		close(in);
		return uar_error_set(c->error, UAR_EINVALID,
				     S_ISREG(st.st_mode)
					     ? "%.200s: too many files for one skill"
					     : "%.200s: only folders and regular files are copied",
				     name);
	}
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st.st_mode & 0700);
	e = out < 0 ? fail(c->error, name) : copy_bytes(c, in, out, name);
	close(in);
	if (out >= 0)
		close(out);
	return e;
}

static uar_err copy_folder(struct copying *c, int from, int to, int depth);

static uar_err copy_entry(struct copying *c, int from, int to, const char *name, int depth)
{
	int in, out;
	struct stat st;
	uar_err e;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW))
		return fail(c->error, name);
	if (!S_ISDIR(st.st_mode))
		return copy_file(c, from, to, name);
	if (depth == DEPTH)
		return uar_error_set(c->error, UAR_EDEPTH, "%.200s: the folders are too deep",
				     name);
	if (mkdirat(to, name, 0700))
		return fail(c->error, name);
	in = openat(from, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	out = openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	e = in < 0 || out < 0 ? fail(c->error, name) : copy_folder(c, in, out, depth + 1);
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return e;
}

/* Hidden entries, such as those of git, are no part of a skill. */
static uar_err copy_folder(struct copying *c, int from, int to, int depth)
{
	DIR *d = fdopendir(dup(from));
	struct dirent *entry;
	uar_err e = UAR_OK;

	if (!d)
		return fail(c->error, "the folder");
	while (!e && (entry = readdir(d)))
		if (entry->d_name[0] != '.')
			e = copy_entry(c, from, to, entry->d_name, depth);
	closedir(d);
	return e;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static void remove_all(const char *path)
{
	(void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Makes the hidden folder; the caller fills it. */
static uar_err begin(const char *dir, const char *name, char hidden[PATH], char place[PATH],
		     struct uar_error *error)
{
	struct stat st;

	snprintf(hidden, PATH, "%s/.new-%s", dir, name);
	snprintf(place, PATH, "%s/%s", dir, name);
	if (!lstat(place, &st))
		return uar_error_set(error, UAR_EEXISTS, "%.400s: it is there already", place);
	remove_all(hidden);
	return mkdir(hidden, 0700) ? fail(error, hidden) : UAR_OK;
}

static uar_err end(uar_err e, const char *hidden, const char *place, struct uar_error *error)
{
	if (!e && rename(hidden, place))
		e = fail(error, place);
	if (e)
		remove_all(hidden);
	return e;
}

uar_err uar_skill_write_new(const char *dir, const char *name, uar_str text,
			    struct uar_error *error)
{
	char hidden[PATH], place[PATH];
	uar_err e = begin(dir, name, hidden, place, error);
	int folder, fd = -1;

	if (e)
		return e;
	folder = open(hidden, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder >= 0)
		fd = openat(folder, "SKILL.md", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write_all(fd, text.p, text.n) || fsync(fd))
		e = fail(error, hidden);
	if (fd >= 0)
		close(fd);
	if (folder >= 0)
		close(folder);
	return end(e, hidden, place, error);
}

/* The folder without a slash at its end, or that of the SKILL.md file. */
static uar_err name_folder(const char *from, char out[PATH], struct uar_error *error)
{
	uar_str path = uar_str_c(from);

	if (uar_str_ends(path, UAR_STR("/SKILL.md")))
		path.n -= sizeof "/SKILL.md" - 1;
	else if (uar_str_is(path, "SKILL.md"))
		path = UAR_STR(".");
	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	if (path.n + sizeof "/SKILL.md" >= PATH)
		return uar_error_set(error, UAR_ETOOBIG, "the path is too long");
	snprintf(out, PATH, "%.*s", UAR_FMT(path));
	return UAR_OK;
}

/* What the skill is called, if its file is right. */
static uar_err read_id(const char *folder, char out_id[UAR_LIMIT_SKILL_ID + 1],
		       struct uar_error *error)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_SKILL_BYTES);
	char path[PATH + sizeof "/SKILL.md"], *real = realpath(folder, NULL);
	const char *name = real ? strrchr(real, '/') + 1 : folder;
	struct uar_skill s;
	uar_err e;

	snprintf(path, sizeof path, "%s/SKILL.md", folder);
	e = uar_file_read(path, &text, error);
	if (!e)
		e = uar_skill_read_folder(uar_str_c(name), uar_buf_str(&text), &s, error);
	if (!e) {
		snprintf(out_id, UAR_LIMIT_SKILL_ID + 1, "%.*s", UAR_FMT(s.skill_id));
		uar_skill_fini(&s);
	}
	uar_buf_fini(&text);
	free(real); /* realpath's */
	return e;
}

uar_err uar_skill_copy(const char *from, const char *dir, char out_id[UAR_LIMIT_SKILL_ID + 1],
		       struct uar_error *error)
{
	struct copying c = { .error = error };
	char folder[PATH], hidden[PATH], place[PATH];
	uar_err e = name_folder(from, folder, error);
	int in, out;

	if (!e)
		e = read_id(folder, out_id, error);
	if (!e)
		e = begin(dir, out_id, hidden, place, error);
	if (e)
		return e;
	in = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	out = open(hidden, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	e = in < 0 || out < 0 ? fail(error, folder) : copy_folder(&c, in, out, 0);
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return end(e, hidden, place, error);
}
