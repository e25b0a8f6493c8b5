/* files.c - fs.list, fs.read, fs.write, fs.edit and fs.delete inside one directory.
 *
 * The kernel holds the fence: every path is resolved by openat2 beneath the directory,
 * so that neither ".." nor a symbolic link nor a race with somebody who moves things
 * about leads out of it. Without that call there are no files. What a path names is
 * looked at after it is opened, without waiting, never before. */
#include "tool/internal_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tool/limits.h"

enum { TRIES = 8, AROUND_PIECE = 256, AROUND_ENTRY = 2048 };

/* --- the fence ----------------------------------------------------------------------- */

static bool may_pass(int number)
{
	return number == ENOSPC || number == EDQUOT || number == EMFILE || number == ENFILE;
}

/* Why the system refused, in the words of tool.failed. */
static void failed(struct uar_tool_job *j, int number, uar_str path)
{
	static const struct {
		int number;
		const char *category, *text;
		bool retryable;
	} reasons[] = {
		{ EXDEV, "sandbox_violation", "leads out of the directory", false },
		{ ELOOP, "sandbox_violation", "is or goes through a symbolic link", false },
		{ ENOENT, "value_invalid", "there is no such file", false },
		{ ENOTDIR, "value_invalid", "goes through something that is no directory", false },
		{ EISDIR, "value_invalid", "is a directory", false },
		{ ENXIO, "value_invalid", "is not a file", false },
		{ ENAMETOOLONG, "value_invalid", "is too long", false },
		{ EACCES, "execution", "may not be touched by this program", false },
		{ EAGAIN, "execution", "is being moved about", true },
		{ ENOSYS, "setup_missing", "this system cannot fence files in (openat2)", false },
	};
	char reason[80];

	path = uar_str_utf8_prefix(path, 120);
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
		if (reasons[i].number != number)
			continue;
		j->retryable = reasons[i].retryable;
		uar_tool_fail(j, reasons[i].category, "\"%.*s\": %s", UAR_FMT(path),
			      reasons[i].text);
		return;
	}
	j->retryable = may_pass(number);
	uar_tool_fail(j, "execution", "\"%.*s\": %s", UAR_FMT(path),
		      strerror_r(number, reason, sizeof reason));
}

/* The path of the arguments, if it can name anything inside. */
static bool take_path(struct uar_tool_job *j, char out[UAR_LIMIT_TOOL_PATH + 1])
{
	uar_str path = uar_json_str(uar_json_get(j->input, UAR_STR("path")), UAR_STR("."));

	if (path.n == 0 || path.n > UAR_LIMIT_TOOL_PATH) {
		failed(j, path.n ? ENAMETOOLONG : ENOENT, path);
		return false;
	}
	for (size_t i = 0; i < path.n; i++) {
		if ((unsigned char)path.p[i] >= 0x20 && path.p[i] != 0x7f)
			continue;
		uar_tool_fail(j, "value_invalid", "a path has no control characters");
		return false;
	}
	for (uar_str rest = path; rest.n;)
		if (path.p[0] == '/' || uar_str_is(uar_str_cut(rest, '/', &rest), "..")) {
			failed(j, EXDEV, path);
			return false;
		}
	memcpy(out, path.p, path.n);
	out[path.n] = 0;
	return true;
}

/* A descriptor, or the negative reason. */
int uar_tool_open_beneath(int dir, const char *path, uint64_t flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	long fd = -1;

	for (int i = 0; i < TRIES && fd < 0; i++) {
		fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
		if (fd < 0 && errno != EAGAIN && errno != EINTR)
			break;
	}
	return fd < 0 ? -errno : (int)fd;
}

/* The directory itself, made on first use. Negative: it is told. */
int uar_tool_open_root(struct uar_tool_job *j)
{
	char reason[80];
	int fd, number;

	if (mkdir(j->files_dir, 0700) == 0 || errno == EEXIST) {
		fd = open(j->files_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			return fd;
	}
	number = errno;
	j->retryable = may_pass(number);
	uar_tool_fail(j, j->retryable ? "execution" : "setup_missing",
		      "the directory for files cannot be used: %s",
		      strerror_r(number, reason, sizeof reason));
	return -1;
}

/* What the arguments name, open; its path in `path`. Negative: it is told. */
int uar_tool_open_named(struct uar_tool_job *j, uint64_t flags, char path[UAR_LIMIT_TOOL_PATH + 1])
{
	int root, fd;

	if (!take_path(j, path))
		return -1;
	root = uar_tool_open_root(j);
	if (root < 0)
		return -1;
	fd = uar_tool_open_beneath(root, path, flags);
	if (fd < 0)
		failed(j, -fd, uar_str_c(path));
	close(root);
	return fd;
}

void uar_tool_end_output(struct uar_tool_job *j, struct uar_jw *w)
{
	if (uar_jw_end(w) && !j->out.err)
		uar_tool_fail(j, "execution", "the result cannot be written");
}

/* --- fs.list --------------------------------------------------------------------------- */

struct found {
	uar_str name;
	const char *type;
	int64_t bytes; /* of a file */
};

static int by_name(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return uar_str_cmp(x->name, y->name);
}

static const char *type_of(mode_t mode)
{
	if (S_ISREG(mode))
		return "file";
	if (S_ISDIR(mode))
		return "directory";
	return S_ISLNK(mode) ? "symlink" : "other";
}

struct listing {
	struct uar_arena arena;
	struct found *found; /* UAR_LIMIT_TOOL_ENTRIES of them */
	size_t count;
	bool truncated;
};

static bool add_found(struct listing *l, const char *name, const struct stat *st)
{
	uar_str copy = uar_arena_str(&l->arena, uar_str_c(name));

	l->found[l->count++] = (struct found){
		.name = copy,
		.type = type_of(st->st_mode),
		.bytes = S_ISREG(st->st_mode) ? (int64_t)st->st_size : -1,
	};
	return copy.p != NULL;
}

/* What vanishes meanwhile is not there, nor is what is being written. False: no memory. */
static bool read_dir(const struct uar_tool_job *j, DIR *dir, struct listing *l)
{
	struct stat st;

	l->found = uar_arena_alloc(&l->arena, UAR_LIMIT_TOOL_ENTRIES * sizeof *l->found);
	for (const struct dirent *d; l->found && (d = readdir(dir));) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 ||
		    fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (uar_tool_is_temporary(uar_str_c(d->d_name))) {
			uar_tool_sweep(j, dirfd(dir), d->d_name);
			continue;
		}
		l->truncated = l->count == UAR_LIMIT_TOOL_ENTRIES;
		if (l->truncated)
			break;
		if (!add_found(l, d->d_name, &st))
			return false;
	}
	return l->found != NULL;
}

static void write_listing(struct uar_tool_job *j, const struct listing *l)
{
	struct uar_jw w = uar_jw_begin(&j->out);
	bool truncated = l->truncated;

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "entries");
	for (size_t i = 0; i < l->count; i++) {
		if (j->out.n > UAR_LIMIT_TOOL_TOLD - AROUND_ENTRY) {
			truncated = true; /* a model sees that it is */
			break;
		}
		uar_jw_obj(&w, NULL);
		uar_jw_str(&w, "name", l->found[i].name);
		uar_jw_cstr(&w, "type", l->found[i].type);
		if (l->found[i].bytes >= 0)
			uar_jw_int(&w, "bytes", l->found[i].bytes);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	uar_jw_bool(&w, "truncated", truncated);
	uar_jw_close(&w);
	uar_tool_end_output(j, &w);
}

void uar_tool_fs_list(struct uar_tool_job *j)
{
	char path[UAR_LIMIT_TOOL_PATH + 1];
	struct listing l = { 0 };
	int fd = uar_tool_open_named(j, O_RDONLY | O_DIRECTORY | O_NONBLOCK, path);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		if (fd >= 0)
			close(fd);
		uar_tool_fail(j, "execution", "out of memory"); /* unless a reason was told */
		return;
	}
	if (read_dir(j, dir, &l)) {
		qsort(l.found, l.count, sizeof *l.found, by_name);
		write_listing(j, &l);
	} else {
		uar_tool_fail(j, "execution", "out of memory");
	}
	closedir(dir);
	uar_arena_fini(&l.arena);
}

/* --- fs.read --------------------------------------------------------------------------- */

/* Up to `n` bytes from there; negative: the reason. */
ssize_t uar_tool_read_at(int fd, char *to, size_t n, off_t offset)
{
	size_t have = 0;

	while (have < n) {
		ssize_t got = pread(fd, to + have, n - have, offset + (off_t)have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

/* The text without a character that is cut at its end; p NULL: it is none. */
uar_str uar_tool_whole_text(uar_str bytes, bool more)
{
	for (int cut = 0; cut < 4 && bytes.n; cut++, bytes.n--) {
		if (uar_utf8_valid(bytes))
			break;
		if (!more || cut == 3)
			return UAR_STR_NONE;
	}
	return memchr(bytes.p, 0, bytes.n) ? UAR_STR_NONE : bytes;
}

static void write_piece(struct uar_tool_job *j, uar_str all, int64_t offset, int64_t size)
{
	struct uar_jw w = uar_jw_begin(&j->out);
	/* So much of it that a model is told the whole result. */
	uar_str text = uar_jw_fitting(all, UAR_LIMIT_TOOL_TOLD - AROUND_PIECE);
	int64_t next = offset + (int64_t)text.n;

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "text", text);
	uar_jw_int(&w, "offset", offset);
	if (next < size)
		uar_jw_int(&w, "next_offset", next);
	else
		uar_jw_null(&w, "next_offset");
	uar_jw_int(&w, "bytes", size);
	uar_jw_close(&w);
	uar_tool_end_output(j, &w);
}

static void read_open(struct uar_tool_job *j, int fd, uar_str path)
{
	int64_t offset = uar_json_int(uar_json_get(j->input, UAR_STR("offset")), 0);
	int64_t limit = uar_json_int(uar_json_get(j->input, UAR_STR("limit")), UAR_LIMIT_TOOL_READ);
	struct stat st = { 0 };
	char *bytes;
	ssize_t n;
	uar_str text;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		failed(j, S_ISDIR(st.st_mode) ? EISDIR : ENXIO, path);
		return;
	}
	bytes = uar_alloc((size_t)limit);
	n = bytes ? uar_tool_read_at(fd, bytes, (size_t)limit, (off_t)offset) : -ENOMEM;
	if (n < 0) {
		failed(j, (int)-n, path);
	} else {
		text = uar_tool_whole_text(uar_str_n(bytes, (size_t)n),
					   offset + n < (int64_t)st.st_size);
		if (text.p)
			write_piece(j, text, offset, (int64_t)st.st_size);
		else
			uar_tool_fail(j, "value_invalid", "\"%.*s\": is not text in UTF-8%s",
				      UAR_FMT(uar_str_utf8_prefix(path, 120)),
				      offset ? " from that offset on" : "");
	}
	uar_free(bytes);
}

void uar_tool_fs_read(struct uar_tool_job *j)
{
	char path[UAR_LIMIT_TOOL_PATH + 1];
	int fd = uar_tool_open_named(j, O_RDONLY | O_NONBLOCK | O_NOCTTY, path);

	if (fd < 0)
		return;
	read_open(j, fd, uar_str_c(path));
	close(fd);
}

/* The same fence around the folder of a skill; it is never made. */
void uar_tool_skill_read(struct uar_tool_job *j)
{
	uar_str folder = uar_json_text(j->input, "folder");
	char dir[UAR_LIMIT_TOOL_PATH * 4];
	struct stat st;

	if (snprintf(dir, sizeof dir, "%s/%.*s", j->skills_dir, UAR_FMT(folder)) >=
		    (int)sizeof dir ||
	    memchr(folder.p, '/', folder.n) || stat(dir, &st) || !S_ISDIR(st.st_mode)) {
		uar_tool_fail(j, "value_invalid", "there is no skill in a folder \"%.*s\"",
			      UAR_FMT(uar_str_utf8_prefix(folder, 120)));
		return;
	}
	j->files_dir = dir;
	uar_tool_fs_read(j);
}

/* --- fs.write and fs.delete ------------------------------------------------------------- */

/* A name in a directory: what is changed is an entry of it, never what a link leads to. */
struct place {
	int dir;
	const char *name;
	char path[UAR_LIMIT_TOOL_PATH + 1], folder[UAR_LIMIT_TOOL_PATH + 1];
};

/* A folder after the other, each beneath the one before. */
static int make_folders(int root, char *folder)
{
	int at = uar_tool_open_beneath(root, ".", O_RDONLY | O_DIRECTORY);

	for (char *name = folder, *end; at >= 0 && name; name = end) {
		int next;

		end = strchr(name, '/');
		if (end)
			*end++ = 0;
		if (name[0] == 0)
			continue;
		if (mkdirat(at, name, 0700) && errno != EEXIST)
			next = -errno;
		else
			next = uar_tool_open_beneath(at, name, O_RDONLY | O_DIRECTORY);
		if (next >= 0)
			fsync(at); /* best effort: the file's own folder is what counts */
		close(at);
		at = next;
	}
	return at;
}

static bool open_place(struct uar_tool_job *j, bool make, struct place *p)
{
	char *slash;
	int root;

	if (!take_path(j, p->path))
		return false;
	memcpy(p->folder, p->path, sizeof p->folder);
	slash = strrchr(p->folder, '/');
	p->name = slash ? p->path + (slash - p->folder) + 1 : p->path;
	if (p->name[0] == 0 || strcmp(p->name, ".") == 0) {
		failed(j, EISDIR, uar_str_c(p->path));
		return false;
	}
	if (make && uar_tool_is_temporary(uar_str_c(p->name))) {
		uar_tool_fail(j, "value_invalid", "%s: names of this form are for unfinished files",
			      p->path);
		return false;
	}
	if (slash)
		*slash = 0;
	else
		memcpy(p->folder, ".", 2);
	root = uar_tool_open_root(j);
	if (root < 0)
		return false;
	p->dir = uar_tool_open_beneath(root, p->folder, O_RDONLY | O_DIRECTORY);
	if (p->dir == -ENOENT && make)
		p->dir = j->may_change(j) ? make_folders(root, p->folder) : -ECANCELED;
	close(root);
	if (p->dir < 0)
		failed(j, -p->dir, uar_str_c(p->path));
	return p->dir >= 0;
}

/* 0, or the reason why an entry of that kind is not written over. */
static int unfit(mode_t mode)
{
	if (S_ISREG(mode))
		return 0;
	if (S_ISDIR(mode))
		return EISDIR;
	return S_ISLNK(mode) ? ELOOP : ENXIO;
}

static void write_place(struct uar_tool_job *j, const struct place *p)
{
	uar_str text = uar_json_text(j->input, "text");
	struct uar_jw w = uar_jw_begin(&j->out);
	struct uar_tool_file file = { p->dir, p->name, text, 0600 };
	struct stat st;
	int e = 0;

	if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		e = unfit(st.st_mode);
		file.mode = st.st_mode & 0777;
	}
	if (!e)
		e = uar_tool_replace(j, &file);
	if (e) {
		failed(j, e, uar_str_c(p->path));
		return;
	}
	uar_jw_obj(&w, NULL);
	uar_jw_int(&w, "bytes", (int64_t)text.n);
	uar_jw_close(&w);
	uar_tool_end_output(j, &w);
}

void uar_tool_fs_write(struct uar_tool_job *j)
{
	struct place p;

	if (!open_place(j, true, &p))
		return;
	write_place(j, &p);
	close(p.dir);
}

/* --- fs.edit ---------------------------------------------------------------------------- */

/* The whole file as text; false: it is told. */
static bool read_whole(struct uar_tool_job *j, int fd, uar_str path, struct uar_buf *out)
{
	struct stat st = { 0 };
	ssize_t n = -ENXIO;
	char *room;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		failed(j, S_ISDIR(st.st_mode) ? EISDIR : ENXIO, path);
		return false;
	}
	if (st.st_size > UAR_LIMIT_TOOL_EDIT) {
		uar_tool_fail(j, "value_invalid", "the file is larger than %d bytes",
			      UAR_LIMIT_TOOL_EDIT);
		return false;
	}
	room = uar_buf_reserve(out, (size_t)st.st_size + 1);
	n = room ? uar_tool_read_at(fd, room, (size_t)st.st_size, 0) : -ENOMEM;
	if (n < 0) {
		failed(j, (int)-n, path);
		return false;
	}
	out->n = (size_t)n;
	if (uar_tool_whole_text(uar_buf_str(out), false).p)
		return true;
	uar_tool_fail(j, "value_invalid", "the file is no text in UTF-8");
	return false;
}

/* How often it was found and replaced. */
static size_t replace_text(uar_str text, uar_str old, uar_str new, struct uar_buf *out)
{
	size_t n = 0, from = 0;

	for (size_t i = 0; i + old.n <= text.n;) {
		if (memcmp(text.p + i, old.p, old.n) != 0) {
			i++;
			continue;
		}
		uar_buf_add(out, text.p + from, i - from);
		uar_buf_add_str(out, new);
		i += old.n;
		from = i;
		n++;
	}
	uar_buf_add_str(out, uar_str_from(text, from));
	return n;
}

static void edit_text(struct uar_tool_job *j, const struct place *p, uar_str text, mode_t mode)
{
	uar_str old = uar_json_text(j->input, "old");
	uar_str new = uar_json_text(j->input, "new");
	bool all = uar_json_bool(uar_json_get(j->input, UAR_STR("all")), false);
	struct uar_buf out = uar_buf_make(2 * UAR_LIMIT_TOOL_EDIT);
	size_t n = replace_text(text, old, new, &out);
	struct uar_jw w = uar_jw_begin(&j->out);
	struct uar_tool_file file = { p->dir, p->name, uar_buf_str(&out), mode & 0777 };
	int e = 0;

	if (!n || (n > 1 && !all))
		uar_tool_fail(j, "value_invalid",
			      n ? "the text is there %zu times: give more of it, "
				  "or set all"
				: "the text is not in the file (%zu times)",
			      n);
	else if (out.err)
		uar_tool_fail(j, "value_invalid", "the file would get too large");
	else if ((e = uar_tool_replace(j, &file)))
		failed(j, e, uar_str_c(p->path));
	if (!j->category) {
		uar_jw_obj(&w, NULL);
		uar_jw_int(&w, "replaced", (int64_t)n);
		uar_jw_int(&w, "bytes", (int64_t)out.n);
		uar_jw_close(&w);
		uar_tool_end_output(j, &w);
	}
	uar_buf_fini(&out);
}

void uar_tool_fs_edit(struct uar_tool_job *j)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_TOOL_EDIT + 1);
	struct stat st = { 0 };
	struct place p;
	int fd;

	if (!open_place(j, false, &p))
		return;
	fd = uar_tool_open_beneath(p.dir, p.name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	if (fd < 0) {
		failed(j, -fd, uar_str_c(p.path));
	} else {
		if (read_whole(j, fd, uar_str_c(p.path), &text) && !fstat(fd, &st))
			edit_text(j, &p, uar_buf_str(&text), st.st_mode);
		close(fd);
	}
	uar_buf_fini(&text);
	close(p.dir);
}

void uar_tool_fs_delete(struct uar_tool_job *j)
{
	struct place p;
	struct stat st;
	int e;

	if (!open_place(j, false, &p))
		return;
	e = fstatat(p.dir, p.name, &st, AT_SYMLINK_NOFOLLOW) ? errno : 0;
	if (!e && S_ISDIR(st.st_mode))
		e = EISDIR;
	if (!e && !j->may_change(j))
		e = ECANCELED;
	if (!e && unlinkat(p.dir, p.name, 0))
		e = errno;
	if (!e && fsync(p.dir))
		e = errno;
	if (e)
		failed(j, e, uar_str_c(p.path));
	else
		uar_buf_add_str(&j->out, UAR_STR("{}"));
	close(p.dir);
}
