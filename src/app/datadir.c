/* datadir.c - token and address of the server, kept in the data directory. */
#include "app/datadir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "app/limits.h"
#include "base/alloc.h"
#include "base/file.h"
#include "store/limits.h"

enum { SMALL_FILE = 4096, TOKEN_BYTES = 32 };

static uar_err fail_errno(struct uar_error *error, const char *what, const char *path, int e)
{
	char reason[80];

	return uar_error_set(error,
			     e == ENOENT		 ? UAR_ENOTFOUND
			     : e == ENOSPC || e == EFBIG ? UAR_EDISKFULL
							 : UAR_EIO,
			     "cannot %s %s: %s", what, path, strerror_r(e, reason, sizeof reason));
}

static uar_err join(char out[PATH_MAX], const char *data, const char *name, struct uar_error *error)
{
	if (snprintf(out, PATH_MAX, "%s/%s", data, name) >= PATH_MAX)
		return uar_error_set(error, UAR_ECONFIG,
				     "the path of the data directory is too "
				     "long");
	return UAR_OK;
}

uar_err uar_datadir_create(const char *data, struct uar_error *error)
{
	char path[PATH_MAX];
	struct stat st;
	size_t n = strlen(data);

	if (n == 0 || n >= sizeof path)
		return uar_error_set(error, UAR_ECONFIG, "the path of the data directory is %s",
				     n ? "too long" : "empty");
	memcpy(path, data, n + 1);
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0777) && errno != EEXIST && errno != EISDIR && errno != EROFS)
			return fail_errno(error, "create", path, errno);
		*p = '/';
	}
	if (mkdir(path, 0700) && errno != EEXIST)
		return fail_errno(error, "create", path, errno);
	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return fail_errno(error, "use", path, ENOTDIR);
	return UAR_OK;
}

/* --- what tools see ------------------------------------------------------------ */

/* As the kernel would find it: what is not there yet stays as it is written. */
static bool find_real(const char *path, char out[PATH_MAX])
{
	char part[PATH_MAX], rest[PATH_MAX] = "", longer[PATH_MAX];
	char *cut;

	if (snprintf(part, sizeof part, "%s%s", *path == '/' ? "" : "./", path) >= PATH_MAX)
		return false;
	while (!realpath(part, out)) {
		cut = strrchr(part, '/');
		if (errno != ENOENT || !cut || !strcmp(cut, "/..") ||
		    snprintf(longer, sizeof longer, "%s%s", cut, rest) >= PATH_MAX)
			return false;
		memcpy(rest, longer, sizeof rest);
		cut[cut == part] = '\0';
	}
	if (!strcmp(out, "/"))
		*out = '\0';
	return snprintf(longer, sizeof longer, "%s%s", out, rest) < PATH_MAX &&
	       memcpy(out, longer, PATH_MAX);
}

/* Both as find_real() has them. */
static bool is_within(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	while (n && dir[n - 1] == '/')
		n--;
	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

uar_err uar_datadir_apart(const char *data, const char *dir, struct uar_error *error)
{
	char home[PATH_MAX], own[PATH_MAX], there[PATH_MAX];
	uar_err e;

	if (!find_real(data, home) || !find_real(dir, there))
		return uar_error_set(error, UAR_ECONFIG, "tools_files_dir cannot be resolved (%s)",
				     dir);
	e = join(own, home, "files", error);
	if (e || (!is_within(home, there) && (!is_within(there, home) || is_within(there, own))))
		return e;
	return uar_error_set(error, UAR_ECONFIG,
			     "tools_files_dir would show the data directory, and with it the "
			     "token, to models: name one beside it (%s)",
			     dir);
}

/* --- regular files ------------------------------------------------------------- */

/* What a start opens, here and in the store. */
static const char *const opened[] = {
	"token", "server.json", "reserve",    "lock",		"uar.db",   "uar.db-wal",
	"swept", "swept.tmp",	"uar.db-shm", "uar.db-journal", "seal.key", UAR_DATADIR_PORT
};

uar_err uar_datadir_regular(const char *data, struct uar_error *error)
{
	char path[PATH_MAX];
	struct stat st;
	uar_err e = UAR_OK;

	for (size_t i = 0; !e && i < ARRAY_LEN(opened); i++) {
		e = join(path, data, opened[i], error);
		if (!e && stat(path, &st) == 0 && !S_ISREG(st.st_mode))
			e = uar_error_set(error, UAR_ECONFIG, "%s is not a regular file", path);
	}
	return e;
}

/* --- small files --------------------------------------------------------------- */

/* Between the name of a file and six letters or digits while it is written. */
#define TEMPORARY ".new-"

static bool is_temporary(const char *name)
{
	static const char *const written[] = { "token" TEMPORARY, "server.json" TEMPORARY,
					       "seal.key" TEMPORARY, UAR_DATADIR_PORT TEMPORARY };
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

	for (size_t i = 0; i < ARRAY_LEN(written); i++) {
		size_t n = strlen(written[i]);

		if (strncmp(name, written[i], n) == 0)
			return strlen(name) == n + 6 && strspn(name + n, letters) == 6;
	}
	return false;
}

void uar_datadir_sweep(const char *data)
{
	DIR *dir = opendir(data);
	struct dirent *d;
	struct stat st;

	while (dir && (d = readdir(dir)))
		if (is_temporary(d->d_name) &&
		    fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			unlinkat(dirfd(dir), d->d_name, 0);
	if (dir)
		closedir(dir);
}

static int write_all(int fd, uar_str text)
{
	while (text.n) {
		ssize_t n = write(fd, text.p, text.n);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		text = uar_str_from(text, (size_t)n);
	}
	return fsync(fd) ? errno : 0;
}

/* `only_new`: UAR_EEXISTS when the file is there already, and it stays as it is. */
static uar_err write_file(const char *path, uar_str text, bool only_new, struct uar_error *error)
{
	char temporary[PATH_MAX + 16];
	int fd, e;

	snprintf(temporary, sizeof temporary, "%s" TEMPORARY "XXXXXX", path);
	fd = mkostemp(temporary, O_CLOEXEC); /* 0600 */
	if (fd < 0)
		return fail_errno(error, "write", path, errno);
	e = write_all(fd, text);
	close(fd);
	if (!e && only_new)
		e = link(temporary, path) ? errno : 0;
	else if (!e)
		e = rename(temporary, path) ? errno : 0;
	if (e || only_new)
		unlink(temporary);
	if (e == EEXIST)
		return UAR_EEXISTS;
	return e ? fail_errno(error, "write", path, e) : UAR_OK;
}

/* As much as `out` may hold. */
static uar_err read_small(const char *path, struct uar_buf *out, struct stat *st,
			  struct uar_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), e = 0;
	bool regular;
	char *room;
	ssize_t n;

	if (fd < 0)
		return fail_errno(error, "read", path, errno);
	regular = fstat(fd, st) == 0 && S_ISREG(st->st_mode);
	room = uar_buf_reserve(out, out->max);
	n = regular && room ? read(fd, room, out->max) : 0;
	if (n < 0)
		e = errno;
	close(fd);
	if (!regular)
		return uar_error_set(error, UAR_ECONFIG, "%s is not a regular file", path);
	if (e)
		return fail_errno(error, "read", path, e);
	out->n += (size_t)n;
	return out->err;
}

/* --- token ------------------------------------------------------------------------ */
static uar_err read_token(const char *path, struct uar_buf *out, struct uar_error *error)
{
	struct uar_buf text = uar_buf_make(SMALL_FILE);
	struct stat st = { 0 };
	uar_str token, rest;
	uar_err e = read_small(path, &text, &st, error);

	token = uar_str_cut(uar_str_cut(uar_buf_str(&text), '\n', &rest), '\r', &rest);
	if (!e && (st.st_mode & 077))
		e = uar_error_set(error, UAR_EFORBIDDEN,
				  "%s can be read by others; make it private (chmod 600) or "
				  "remove it to get a new one",
				  path);
	else if (!e && !uar_str_is_id(token))
		e = uar_error_set(error, UAR_ECONFIG, "%s does not hold a token", path);
	if (!e)
		uar_buf_add_str(out, token);
	if (text.p)
		explicit_bzero(text.p, text.n);
	uar_buf_fini(&text);
	return e ? e : out->err;
}

static uar_err make_token(const char *path, const struct uar_rand *rand, struct uar_error *error)
{
	unsigned char raw[TOKEN_BYTES];
	char text[2 * TOKEN_BYTES + 1];
	uar_err e;

	rand->fill(rand->ctx, raw, sizeof raw);
	uar_hex(raw, sizeof raw, text);
	text[2 * TOKEN_BYTES] = '\n';
	e = write_file(path, uar_str_n(text, sizeof text), true, error);
	/* Somebody was faster: theirs holds, and they may have swept what was ours. */
	return e == UAR_EEXISTS || e == UAR_ENOTFOUND ? UAR_OK : e;
}

uar_err uar_datadir_token(const struct uar_config *c, const struct uar_rand *rand,
			  struct uar_buf *out, struct uar_error *error)
{
	char path[PATH_MAX];
	uar_err e;

	if (*c->token) {
		uar_buf_add_str(out, uar_str_c(c->token));
		return out->err;
	}
	e = join(path, c->data, "token", error);
	if (e)
		return e;
	e = read_token(path, out, error);
	if (e != UAR_ENOTFOUND || !rand)
		return e;
	e = make_token(path, rand, error);
	return e ? e : read_token(path, out, error);
}

/* --- seal.key ---------------------------------------------------------------------- */

static bool take_key(uar_str hex, struct uar_seal_key *out)
{
	static const char digits[] = "0123456789abcdef";
	size_t n = sizeof out->bytes;
	bool ok = hex.n == 2 * n;

	for (size_t i = 0; ok && i < n; i++) {
		const char *high = memchr(digits, hex.p[2 * i], sizeof digits - 1);
		const char *low = memchr(digits, hex.p[2 * i + 1], sizeof digits - 1);

		ok = high && low;
		if (ok)
			out->bytes[i] = (unsigned char)((high - digits) << 4 | (low - digits));
	}
	return ok;
}

uar_err uar_datadir_seal(const char *data, const struct uar_rand *rand, struct uar_seal_key *out,
			 struct uar_error *error)
{
	struct uar_buf text = uar_buf_make(SMALL_FILE);
	char path[PATH_MAX];
	uar_err e = join(path, data, "seal.key", error);

	_Static_assert(TOKEN_BYTES == sizeof out->bytes, "a key is made as a token is");
	if (!e)
		e = read_token(path, &text, error);
	if (e == UAR_ENOTFOUND) {
		e = make_token(path, rand, error);
		e = e ? e : read_token(path, &text, error);
	}
	if (!e && !take_key(uar_buf_str(&text), out))
		e = uar_error_set(error, UAR_ECONFIG, "%s does not hold a key", path);
	if (text.p)
		explicit_bzero(text.p, text.n);
	uar_buf_fini(&text);
	return e;
}

/* --- other small files --------------------------------------------------------------- */

uar_err uar_datadir_keep(const char *data, const char *name, uar_str text, struct uar_error *error)
{
	char path[PATH_MAX];
	uar_err e = join(path, data, name, error);

	if (e || text.p)
		return e ? e : write_file(path, text, false, error);
	return unlink(path) && errno != ENOENT ? fail_errno(error, "remove", path, errno) : UAR_OK;
}

uar_err uar_datadir_kept(const char *data, const char *name, struct uar_buf *out,
			 struct uar_error *error)
{
	char path[PATH_MAX];
	uar_err e = join(path, data, name, error);

	return e ? e : uar_file_read(path, out, error);
}

/* --- server.json -------------------------------------------------------------------- */
uar_err uar_datadir_announce(const char *data, const struct uar_server_info *info,
			     const struct uar_clock *clock, struct uar_error *error)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_SERVER_FILE);
	struct uar_jw w = uar_jw_begin(&text);
	char path[PATH_MAX];
	uar_err e;

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "url", info->url);
	uar_jw_int(&w, "pid", info->pid);
	uar_jw_cstr(&w, "version", UAR_VERSION);
	uar_jw_time(&w, "started_at", uar_clock_wall(clock));
	if (info->passing)
		uar_jw_bool(&w, "passing", true);
	if (info->passing && info->again.n)
		uar_jw_put_raw(&w, UAR_STR("again"), info->again);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	uar_buf_add_char(&text, '\n');
	if (!e)
		e = join(path, data, "server.json", error);
	if (!e)
		e = write_file(path, uar_buf_str(&text), false, error);
	uar_buf_fini(&text);
	return e;
}

void uar_datadir_retract(const char *data, const struct uar_server_info *info)
{
	struct uar_server_info left = { .passing = true, .again = info->again };
	char path[PATH_MAX];

	if (info->passing && uar_datadir_announce(data, &left, &uar_clock_system, NULL) == UAR_OK)
		return;
	if (join(path, data, "server.json", NULL) == UAR_OK)
		unlink(path);
}

static uar_err read_server(uar_str text, struct uar_server_info *out, struct uar_error *error)
{
	struct {
		uar_str url;
		int64_t pid;
		bool passing;
	} found = { .pid = 0 };
	static const struct uar_json_field fields[] = {
		{ "url", UAR_FIELD_STR, true, 0 },
		{ "pid", UAR_FIELD_INT, false, sizeof(uar_str) },
		{ "passing", UAR_FIELD_BOOL, false, sizeof(uar_str) + sizeof(int64_t) },
	};
	struct uar_arena a;
	const struct uar_json *root;
	uar_err e;

	uar_arena_init(&a, 0);
	e = uar_json_parse(text, NULL, &a, &root, error);
	if (!e)
		e = uar_json_read(root, fields, ARRAY_LEN(fields), false, &found, error);
	if (!e && found.url.n >= sizeof out->url)
		e = uar_error_set(error, UAR_ETOOBIG, "the url is too long");
	if (!e) {
		snprintf(out->url, sizeof out->url, "%.*s", UAR_FMT(found.url));
		out->pid = found.pid;
		out->passing = found.passing;
	}
	uar_arena_fini(&a);
	return e;
}

uar_err uar_datadir_server_text(const char *data, struct uar_buf *out, struct uar_error *error)
{
	char path[PATH_MAX];
	struct stat st;
	uar_err e = join(path, data, "server.json", error);

	return e ? e : read_small(path, out, &st, error);
}

static uar_err last_server(const char *data, struct uar_server_info *out, struct uar_error *error)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_SERVER_FILE);
	struct uar_error inner = { 0 };
	uar_err e = uar_datadir_server_text(data, &text, error);

	if (!e) {
		e = read_server(text.n ? uar_buf_str(&text) : UAR_STR(""), out, &inner);
		if (e)
			uar_error_set(error, e, "%s/server.json: %s", data, uar_error_text(&inner));
	}
	uar_buf_fini(&text);
	return e;
}

uar_err uar_datadir_server(const char *data, struct uar_server_info *out, struct uar_error *error)
{
	struct uar_server_info found = { .pid = 0 };
	uar_err e = last_server(data, &found, error);

	if (!e && !found.url[0])
		return uar_error_set(error, UAR_ENOTFOUND, "the server has left");
	if (!e)
		*out = found;
	return e;
}

bool uar_datadir_passing(const char *data)
{
	struct uar_server_info found = { .pid = 0 };
	struct uar_error unheard = { 0 };

	return last_server(data, &found, &unheard) == UAR_OK && found.passing;
}

/* --- space ------------------------------------------------------------------------------ */

/* Truly allocated, not a hole. */
void uar_datadir_reserve(const char *data)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	if (join(path, data, "reserve", NULL))
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size != UAR_LIMIT_START_SPACE) {
		if (posix_fallocate(fd, 0, UAR_LIMIT_START_SPACE))
			unlink(path);
	}
	close(fd);
}

bool uar_datadir_release(const char *data)
{
	char path[PATH_MAX];

	return join(path, data, "reserve", NULL) == UAR_OK && unlink(path) == 0;
}

bool uar_datadir_full(const char *data)
{
	struct statvfs fs;

	return statvfs(data, &fs) == 0 && fs.f_blocks > 0 &&
	       (uint64_t)fs.f_bavail * fs.f_frsize < UAR_LIMIT_START_SPACE;
}

bool uar_datadir_open_to_others(const char *data)
{
	struct stat st;

	return stat(data, &st) == 0 && (st.st_mode & 022);
}

/* --- check ---------------------------------------------------------------------------- */
static void note_errno(struct uar_buf *out, const char *path, int e)
{
	char reason[80];

	uar_buf_printf(out, "%s: %s\n", path, strerror_r(e, reason, sizeof reason));
}

/* A directory that is not there yet can be made when its nearest parent allows it. */
static void check_parent(const char *data, struct uar_buf *notes, struct uar_buf *problems)
{
	char path[PATH_MAX];
	char *slash;

	snprintf(path, sizeof path, "%s", data);
	do {
		slash = strrchr(path, '/');
		if (!slash)
			snprintf(path, sizeof path, ".");
		else if (slash == path)
			path[1] = '\0';
		else
			*slash = '\0';
	} while (slash && slash != path && access(path, F_OK) && errno == ENOENT);
	if (access(path, W_OK | X_OK))
		note_errno(problems, path, errno);
	else
		uar_buf_printf(notes, "%s does not exist yet and will be created\n", data);
}

static void check_inside(const struct uar_config *c, struct uar_buf *problems)
{
	struct uar_buf token = uar_buf_make(SMALL_FILE);
	struct uar_error error = { 0 };
	struct uar_server_info info;
	uar_err e = uar_datadir_regular(c->data, &error);

	if (e) {
		uar_buf_printf(problems, "%s\n", uar_error_text(&error));
		return;
	}
	e = uar_datadir_token(c, NULL, &token, &error);
	if (e && e != UAR_ENOTFOUND)
		uar_buf_printf(problems, "%s\n", uar_error_text(&error));
	uar_buf_fini(&token);
	e = uar_datadir_server(c->data, &info, &error);
	if (e && e != UAR_ENOTFOUND)
		uar_buf_printf(problems, "%s\n", uar_error_text(&error));
}

bool uar_datadir_read_only(const char *data)
{
	return access(data, F_OK) == 0 && access(data, W_OK) != 0;
}

static void note_closed(const char *data, int e, struct uar_buf *notes)
{
	char reason[80];

	uar_buf_printf(notes, "%s cannot be written, and a server has to: %s\n", data,
		       strerror_r(e, reason, sizeof reason));
}

static void check_directory(const struct uar_config *c, struct uar_buf *notes,
			    struct uar_buf *problems)
{
	struct stat st;

	if (stat(c->data, &st) && errno == ENOENT)
		check_parent(c->data, notes, problems);
	else if (stat(c->data, &st))
		note_errno(problems, c->data, errno);
	else if (!S_ISDIR(st.st_mode))
		uar_buf_printf(problems, "%s: not a directory\n", c->data);
	else if (access(c->data, R_OK | X_OK))
		note_errno(problems, c->data, errno);
	else {
		if (access(c->data, W_OK))
			note_closed(c->data, errno, notes);
		else if (st.st_mode & 077)
			uar_buf_printf(notes, "%s %s other users (chmod 700 closes it)\n", c->data,
				       st.st_mode & 022 ? "can be written by" : "is open to");
		check_inside(c, problems);
	}
}

uar_err uar_datadir_check(const struct uar_config *c, struct uar_buf *notes,
			  struct uar_buf *problems)
{
	struct uar_error error = { 0 };
	struct stat st;

	check_directory(c, notes, problems);
	if (*c->fixtures_dir && stat(c->fixtures_dir, &st))
		note_errno(problems, c->fixtures_dir, errno);
	else if (*c->fixtures_dir && !S_ISDIR(st.st_mode))
		uar_buf_printf(problems, "%s: not a directory\n", c->fixtures_dir);
	if (c->tools && *c->tools_files_dir &&
	    uar_datadir_apart(c->data, c->tools_files_dir, &error))
		uar_buf_printf(problems, "%s\n", uar_error_text(&error));
	return problems->n || problems->err ? UAR_ECONFIG : UAR_OK;
}
