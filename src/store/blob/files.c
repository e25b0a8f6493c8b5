/* files.c - content-addressed bytes beside the database.
 *
 * blobs/ab/cdef... is named after the SHA-256 of its bytes. A blob is written
 * to blobs/tmp under a random name, synced, renamed and its directory synced
 * before anybody is told, so a name always stands for whole bytes. Paths are
 * made from checked hex digits below a directory handle, never from input. */
#include "store/blob/files_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/sha256.h"
#include "loop/limits.h"

uar_err bf_fail(struct uar_error *error, uar_err code, const char *what)
{
	int no = errno;

	if (no == ENOSPC || no == EDQUOT || no == EFBIG)
		code = UAR_EDISKFULL;
	else if (no == EMFILE || no == ENFILE)
		code = UAR_EFDS;
	return uar_error_set(error, code, "blob: %s: %s", what, strerror(no));
}

/* Makes what is not there. */
static uar_err open_blobs(int dir_fd, int *out_fd, struct uar_error *error)
{
	uar_err e;
	int fd;

	if (mkdirat(dir_fd, "blobs", 0700) && errno != EEXIST)
		return bf_fail(error, UAR_EIO, "mkdir blobs");
	fd = openat(dir_fd, "blobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return bf_fail(error, UAR_EIO, "open blobs");
	if (mkdirat(fd, "tmp", 0700) && errno != EEXIST) {
		e = bf_fail(error, UAR_EIO, "mkdir blobs/tmp");
		close(fd);
		return e;
	}
	*out_fd = fd;
	return UAR_OK;
}

/* What a crash left half written was never acknowledged. */
static void clear_tmp(int blobs_fd)
{
	int fd = openat(blobs_fd, "tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *tmp = fd < 0 ? NULL : fdopendir(fd); /* which takes it, or not */
	struct dirent *d;

	if (!tmp && fd >= 0)
		close(fd);
	while (tmp && (d = readdir(tmp)))
		if (d->d_name[0] != '.')
			unlinkat(fd, d->d_name, 0);
	if (tmp)
		closedir(tmp);
}

/* A directory that was removed has no entries, and gets none. */
static bool is_missing(int blobs_fd)
{
	return faccessat(blobs_fd, "tmp", F_OK, 0) && errno == ENOENT;
}

/* The descriptor keeps its number, and no one needs a lock to use it: what is under way in the
 * removed directory finds nothing there, or nothing in the new one, and fails. */
static uar_err remake(struct bf *b, struct uar_error *error)
{
	int fd;
	uar_err e = open_blobs(b->dir_fd, &fd, error);

	if (e)
		return e;
	if (fsync(fd) || fsync(b->dir_fd))
		e = bf_fail(error, UAR_ESYNC, "fsync of blobs");
	else if (dup3(fd, b->fd, O_CLOEXEC) < 0)
		e = bf_fail(error, UAR_EIO, "dup");
	close(fd);
	return e;
}

static void tell_missing(struct bf *b, uar_err e, const struct uar_error *error)
{
	if (!e)
		uar_log(b->log, UAR_LOG_ERROR, "store.blobs_remade",
			{ "text", UAR_STR("blobs/ was removed under the server, and is made anew; "
					  "uar check names what is lost") });
	else if (!b->stages.blobs_missing)
		uar_log(b->log, UAR_LOG_ERROR, "store.blobs_missing",
			{ "detail", uar_str_c(uar_error_text(error)) });
	b->stages.blobs_missing = e != UAR_OK;
}

/* Who removes blobs/ loses what was in it; what comes now need not be lost. */
uar_err bf_need_dir(struct bf *b, struct uar_error *error)
{
	uar_err e = UAR_OK;

	if (!is_missing(b->fd))
		return UAR_OK;
	pthread_mutex_lock(&b->stages.naming);
	if (is_missing(b->fd)) { /* still: another reader may have made it */
		e = remake(b, error);
		tell_missing(b, e, error);
	}
	pthread_mutex_unlock(&b->stages.naming);
	return e;
}

struct path {
	char dir[3];   /* "ab" */
	char name[66]; /* "ab/cdef..." */
};

static struct path path_of(const char sha256[65])
{
	struct path p;

	snprintf(p.dir, sizeof p.dir, "%.2s", sha256);
	snprintf(p.name, sizeof p.name, "%.2s/%.62s", sha256, sha256 + 2);
	return p;
}

bool bf_has(struct uar_blobs *base, const char sha256[65])
{
	struct path p = path_of(sha256);

	return faccessat(bf_of(base)->fd, p.name, F_OK, 0) == 0;
}

/* Opens the directory of a blob, which is synced by it. */
static int open_dir(int blobs_fd, const struct path *p)
{
	return openat(blobs_fd, p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Its name is durable. Whatever fails here, nothing about the disk can be trusted any more. */
static uar_err sync_name(int blobs_fd, int dir_fd, struct uar_error *error)
{
	return fsync(dir_fd) || fsync(blobs_fd)
		       ? uar_error_set(error, UAR_ESYNC, "blob: fsync of the directory: %s",
				       strerror(errno))
		       : UAR_OK;
}

static int write_all(int fd, uar_str bytes)
{
	while (bytes.n) {
		ssize_t n = write(fd, bytes.p, bytes.n > 1 << 20 ? 1 << 20 : bytes.n);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		bytes = uar_str_from(bytes, (size_t)n);
	}
	return 0;
}

/* The hash of a file's bytes; false when it cannot be read. */
static bool hash_fd(int fd, char out[65], uint64_t *out_size)
{
	struct uar_sha256 sum;
	char *chunk = uar_alloc(65536);
	uint64_t size = 0;
	ssize_t n = -1;

	uar_sha256_init(&sum);
	while (chunk && (n = pread(fd, chunk, 65536, (off_t)size)) > 0) {
		uar_sha256_add(&sum, uar_str_n(chunk, (size_t)n));
		size += (uint64_t)n;
	}
	uar_free(chunk);
	if (n)
		return false;
	uar_sha256_end(&sum, out);
	*out_size = size;
	return true;
}

/* Whole bytes that are there are synced anyway: whoever wrote them may not have come that
 * far yet. */
static uar_err sync_found(int blobs_fd, int fd, const struct path *p, struct uar_error *error)
{
	int dir_fd = open_dir(blobs_fd, p);
	uar_err e;

	if (dir_fd < 0)
		return bf_fail(error, UAR_EIO, "open directory");
	e = fsync(fd) ? uar_error_set(error, UAR_ESYNC, "blob: fsync: %s", strerror(errno))
		      : sync_name(blobs_fd, dir_fd, error);
	close(dir_fd);
	return e;
}

/* UAR_ENOTFOUND: it is not there, or not whole, and is to be written. */
static uar_err have(int blobs_fd, const struct path *p, const char sha256[65],
		    struct uar_error *error)
{
	int fd = openat(blobs_fd, p->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char found[65];
	uint64_t size;
	uar_err e = UAR_ENOTFOUND;

	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? bf_fail(error, UAR_EIO, "open")
							  : UAR_ENOTFOUND;
	if (hash_fd(fd, found, &size) && !memcmp(found, sha256, 64))
		e = sync_found(blobs_fd, fd, p, error);
	close(fd);
	return e;
}

static uar_err write_temp(int blobs_fd, const char *temp, uar_str bytes, struct uar_error *error)
{
	int fd = openat(blobs_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	uar_err e = UAR_OK;

	if (fd < 0)
		return bf_fail(error, UAR_EIO, "create");
	if (write_all(fd, bytes))
		e = bf_fail(error, UAR_EIO, "write");
	else if (fsync(fd))
		e = bf_fail(error, UAR_ESYNC, "fsync");
	if (close(fd) && !e)
		e = bf_fail(error, UAR_EIO, "close");
	return e;
}

/* The directory is opened first: without a descriptor there is no name. After that the name
 * stays, also when it cannot be synced: it stands for whole bytes, and may have stood for them
 * before. */
static uar_err publish(int blobs_fd, const char *temp, const struct path *p,
		       struct uar_error *error)
{
	uar_err e;
	int dir_fd;

	if (mkdirat(blobs_fd, p->dir, 0700) && errno != EEXIST)
		return bf_fail(error, UAR_EIO, "mkdir");
	dir_fd = open_dir(blobs_fd, p);
	if (dir_fd < 0)
		return bf_fail(error, UAR_EIO, "open directory");
	e = renameat(blobs_fd, temp, blobs_fd, p->name) ? bf_fail(error, UAR_EIO, "rename")
							: sync_name(blobs_fd, dir_fd, error);
	close(dir_fd);
	return e;
}

void bf_unlink(int blobs_fd, const char sha256[65])
{
	struct path p = path_of(sha256);

	unlinkat(blobs_fd, p.name, 0);
}

static uar_err put(struct bf *b, uar_str bytes, const char sha256[65], struct uar_error *error)
{
	struct path p = path_of(sha256);
	uar_err e = have(b->fd, &p, sha256, error);
	char temp[32];

	if (e != UAR_ENOTFOUND)
		return e;
	snprintf(temp, sizeof temp, "tmp/%016llx",
		 (unsigned long long)uar_rand_u64(&uar_rand_system));
	e = write_temp(b->fd, temp, bytes, error);
	if (!e)
		e = publish(b->fd, temp, &p, error);
	if (e)
		unlinkat(b->fd, temp, 0);
	return e;
}

static uar_err put_blob(struct uar_blobs *base, uar_str bytes, char out_sha256[65],
			struct uar_error *error)
{
	struct bf *b = bf_of(base);
	char sha256[65];
	uar_err e = bf_need_dir(b, error);

	if (!e && bytes.n > UAR_LIMIT_BLOB_BYTES)
		e = uar_error_set(error, UAR_ETOOBIG, "a blob of %zu bytes", bytes.n);
	if (e)
		return e;
	uar_sha256_hex(bytes, sha256);
	bf_kept_add(&b->kept, sha256);
	e = put(b, bytes, sha256, error);
	if (!e)
		memcpy(out_sha256, sha256, sizeof sha256);
	return e;
}

uar_err bf_adopt(int blobs_fd, const char *temp, int fd, const char sha256[65],
		 struct uar_error *error)
{
	struct path p = path_of(sha256);
	uar_err e = have(blobs_fd, &p, sha256, error);

	if (e && e != UAR_ENOTFOUND)
		return e;
	if (!e)
		return unlinkat(blobs_fd, temp, 0) ? bf_fail(error, UAR_EIO, "unlink") : UAR_OK;
	if (fsync(fd))
		return bf_fail(error, UAR_ESYNC, "fsync");
	return publish(blobs_fd, temp, &p, error);
}

static uar_err read_range(int fd, struct uar_blob_get *g, struct uar_error *error)
{
	size_t left = g->total > g->offset ? (size_t)(g->total - g->offset) : 0, got = 0;
	char *p;

	if (left > g->limit)
		left = g->limit;
	p = uar_arena_bytes(&g->arena, left + 1);
	if (!p)
		return uar_error_set(error, UAR_ENOMEM, "%s", uar_err_text(UAR_ENOMEM));
	while (got < left) {
		ssize_t n = pread(fd, p + got, left - got, (off_t)(g->offset + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return bf_fail(error, UAR_EIO, "read");
		if (n == 0)
			return uar_error_set(error, UAR_ECORRUPT, "blob %s was cut", g->sha256);
		got += (size_t)n;
	}
	p[got] = 0;
	g->bytes = uar_str_n(p, got);
	return UAR_OK;
}

uar_err bf_read(int fd, struct uar_blob_get *g, struct uar_error *error)
{
	char found[65];
	struct stat st;
	uar_err e;

	if (fstat(fd, &st))
		return bf_fail(error, UAR_EIO, "stat");
	g->total = (uint64_t)st.st_size;
	e = read_range(fd, g, error);
	if (!e && g->bytes.n == g->total) {
		uar_sha256_hex(g->bytes, found);
		if (memcmp(found, g->sha256, 64) != 0)
			e = uar_error_set(error, UAR_ECORRUPT, "blob %s is damaged", g->sha256);
	}
	if (e)
		g->bytes = UAR_STR_NONE;
	return e;
}

static uar_err get_blob(struct uar_blobs *base, struct uar_blob_get *g, struct uar_error *error)
{
	struct bf *b = bf_of(base);
	struct path p;
	uar_err e;
	int fd;

	if (g->stage)
		return bf_stage_get(b, g, error);
	p = path_of(g->sha256);
	fd = openat(b->fd, p.name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT
			       ? uar_error_set(error, UAR_ENOTFOUND, "no blob %s", g->sha256)
			       : bf_fail(error, UAR_EIO, "open");
	e = bf_read(fd, g, error);
	close(fd);
	return e;
}

static void verify_one(int dir_fd, const char *dir, const char *name,
		       void (*bad)(void *ctx, const char *what), void *ctx)
{
	char want[65], found[65], what[400];
	uint64_t size;
	int fd;

	snprintf(want, sizeof want, "%.2s%.62s", dir, name);
	if (strlen(name) != 62 || !uar_store_is_sha256(want)) {
		snprintf(what, sizeof what, "blobs/%s/%s is not a blob", dir, name);
		bad(ctx, what);
		return;
	}
	fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || !hash_fd(fd, found, &size) || strcmp(found, want) != 0) {
		snprintf(what, sizeof what, "blob %s is damaged", want);
		bad(ctx, what);
	}
	if (fd >= 0)
		close(fd);
}

static uar_err verify_dir(int blobs_fd, const char *name, void (*bad)(void *ctx, const char *what),
			  void *ctx, struct uar_error *error)
{
	int fd = openat(blobs_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return bf_fail(error, UAR_EIO, name);
	}
	while ((d = readdir(dir)))
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			verify_one(dirfd(dir), name, d->d_name, bad, ctx);
	closedir(dir);
	return UAR_OK;
}

static uar_err verify(struct uar_blobs *base, void (*bad)(void *ctx, const char *what), void *ctx,
		      struct uar_error *error)
{
	int blobs_fd = bf_of(base)->fd,
	    fd = blobs_fd < 0 ? -1 : openat(blobs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	uar_err e = UAR_OK;
	struct dirent *d;

	if (blobs_fd < 0)
		return UAR_OK;
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return bf_fail(error, UAR_EIO, "blobs");
	}
	while (!e && (d = readdir(dir)))
		if (d->d_name[0] != '.' && strcmp(d->d_name, "tmp") && strcmp(d->d_name, "up"))
			e = verify_dir(blobs_fd, d->d_name, bad, ctx, error);
	closedir(dir);
	return e;
}

/* --- life ------------------------------------------------------------------------------------ */

static void destroy(struct uar_blobs *base)
{
	struct bf *b = bf_of(base);

	bf_kept_fini(&b->kept);
	bf_stages_fini(&b->stages);
	if (b->fd >= 0)
		close(b->fd);
	uar_free(b);
}

static const struct uar_blobs_ops ops = {
	.abi = 1,
	.size = sizeof ops,
	.destroy = destroy,
	.put = put_blob,
	.get = get_blob,
	.upload = bf_upload,
	.has = bf_has,
	.sweep_begin = bf_sweep_begin,
	.sweep_one = bf_sweep_one,
	.sweep_end = bf_sweep_end,
	.stages_open = bf_stages_open,
	.run_ended = bf_run_ended,
	.unstage = bf_unstage,
	.verify = verify,
};

static struct bf *make(int dir_fd)
{
	struct bf *b = uar_zalloc(sizeof *b);

	if (!b)
		return NULL;
	b->base.ops = &ops;
	b->dir_fd = dir_fd;
	b->fd = -1;
	bf_kept_init(&b->kept);
	bf_stages_init(&b->stages);
	return b;
}

uar_err uar_blob_files_open(const struct uar_blob_files *o, struct uar_blobs **out,
			    struct uar_error *error)
{
	struct bf *b = make(o->dir_fd);
	uar_err e;

	if (!b)
		return uar_error_set(error, UAR_ENOMEM, "%s", uar_err_text(UAR_ENOMEM));
	b->log = o->log;
	b->upload_max = o->upload_max;
	e = open_blobs(o->dir_fd, &b->fd, error);
	if (e) {
		destroy(&b->base);
		return e;
	}
	clear_tmp(b->fd);
	*out = &b->base;
	return UAR_OK;
}

uar_err uar_blob_files_inspect(int dir_fd, struct uar_blobs **out, struct uar_error *error)
{
	struct bf *b = make(dir_fd);
	uar_err e;

	if (!b)
		return uar_error_set(error, UAR_ENOMEM, "%s", uar_err_text(UAR_ENOMEM));
	b->fd = openat(dir_fd, "blobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (b->fd < 0 && errno != ENOENT) { /* whoever misses one says so */
		e = uar_error_set(error, UAR_EIO, "blobs: %s", strerror(errno));
		destroy(&b->base);
		return e;
	}
	*out = &b->base;
	return UAR_OK;
}
