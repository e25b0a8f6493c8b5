/* stage.c - bytes of runs that are not over: uploaded, and no event refers to them yet.
 *
 * blobs/up/RUN/ID.SHA256: RUN is a hash of owner and run, so a look-up with another owner
 * finds nothing; the hash in the name saves reading the file to know what it is. A file
 * comes from blobs/tmp, whole and synced. A blob that is made of one is a second link to
 * it, so that this one can go with its run, whoever refers to the other. What a run has
 * here is removed when the run's end is committed, or, if that was missed, by the next
 * start: there is nothing to be counted and nothing to be remembered. */
#include "store/blob/files_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/sha256.h"
#include "store/limits.h"

enum { DIR_TEXT = 3 + 64, FILE_TEXT = UAR_STAGE_ID + 1 + 64 };

/* The directory of a run, below blobs. */
struct place {
	char path[DIR_TEXT + 1]; /* "up/" and 64 hex digits */
};

static uar_err place_of(const struct uar_owner *o, uar_str run_id, struct place *out)
{
	struct uar_arena scratch;
	uar_str key;

	uar_arena_init(&scratch, 0);
	key = uar_store_key(&scratch, o, run_id);
	memcpy(out->path, "up/", 3);
	if (key.p)
		uar_sha256_hex(key, out->path + 3);
	uar_arena_fini(&scratch);
	return key.p ? UAR_OK : UAR_ENOMEM;
}

static int open_dir(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* --- what there is ------------------------------------------------------------------------ */

void bf_stages_init(struct bf_stages *st)
{
	pthread_mutex_init(&st->naming, NULL);
	pthread_mutex_init(&st->lock, NULL);
	uar_map_init(&st->runs, 0x5354u);
}

void bf_stages_fini(struct bf_stages *st)
{
	uar_store_hashes_fini(&st->runs);
	pthread_mutex_destroy(&st->lock);
	pthread_mutex_destroy(&st->naming);
}

static uar_err remember(struct bf_stages *st, const char *name)
{
	uar_err e;

	pthread_mutex_lock(&st->lock);
	e = uar_store_hash_add(&st->runs, name);
	pthread_mutex_unlock(&st->lock);
	return e;
}

static bool forget(struct bf_stages *st, const char *name)
{
	char *own;

	pthread_mutex_lock(&st->lock);
	own = uar_map_remove(&st->runs, uar_str_n(name, 64));
	pthread_mutex_unlock(&st->lock);
	uar_free(own);
	return own != NULL;
}

/* The file of that id in the directory, and how many there are. UAR_ENOTFOUND: there is none;
 * whatever else keeps it from being read is not absence. */
static uar_err find(int dir_fd, uar_str id, char out_sha256[65], size_t *out_count,
		    struct uar_error *error)
{
	int fd = open_dir(dir_fd, ".");
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;
	uar_err e = UAR_ENOTFOUND;

	*out_count = 0;
	while (dir && (errno = 0, d = readdir(dir))) {
		*out_count += d->d_name[0] != '.';
		if (strlen(d->d_name) != FILE_TEXT || memcmp(d->d_name, id.p, UAR_STAGE_ID) != 0)
			continue;
		snprintf(out_sha256, 65, "%s", d->d_name + UAR_STAGE_ID + 1);
		e = UAR_OK;
	}
	if (errno)
		e = bf_fail(error, UAR_EIO, "read directory");
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	return e;
}

static void name_of(uar_str id, const char sha256[65], char out[FILE_TEXT + 1])
{
	snprintf(out, FILE_TEXT + 1, "%.*s.%.64s", UAR_STAGE_ID, id.p, sha256);
}

/* Ids are made by us and come back from outside. */
static bool is_id(uar_str id)
{
	return id.n == UAR_STAGE_ID && uar_str_is_hex(id);
}

static uar_err open_fail(struct uar_error *error)
{
	return errno == ENOENT ? UAR_ENOTFOUND : bf_fail(error, UAR_EIO, "open");
}

/* An open file of it, and its hash. */
static uar_err open_staged(struct bf *b, const struct uar_stage *g, struct place *out_place,
			   char out_sha256[65], int *out_fd, struct uar_error *error)
{
	char name[FILE_TEXT + 1];
	size_t count;
	uar_err e = is_id(g->id) ? place_of(&g->owner, g->run_id, out_place) : UAR_ENOTFOUND;
	int dir_fd = e ? -1 : open_dir(b->fd, out_place->path), fd = -1;

	if (e)
		return e;
	if (dir_fd < 0)
		return open_fail(error);
	e = find(dir_fd, g->id, out_sha256, &count, error);
	if (!e) {
		name_of(g->id, out_sha256, name);
		fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	}
	if (!e && fd < 0)
		e = open_fail(error);
	close(dir_fd);
	*out_fd = fd;
	return e;
}

uar_err bf_stage_get(struct bf *b, struct uar_blob_get *g, struct uar_error *error)
{
	struct place p;
	int fd = -1;
	uar_err e = open_staged(b, g->stage, &p, g->sha256, &fd, error);

	if (e)
		return error->code ? e : uar_error_set(error, e, "%s", uar_err_text(e));
	e = bf_read(fd, g, error);
	close(fd);
	return e;
}

uar_err bf_stage_adopt(struct bf *b, struct uar_upload_op *op)
{
	char temp[32], from[DIR_TEXT + FILE_TEXT + 2], name[FILE_TEXT + 1];
	struct place p;
	struct stat st;
	int fd = -1;
	uar_err e = open_staged(b, op->stage, &p, op->sha256, &fd, &op->error);

	if (e)
		return e;
	name_of(op->stage->id, op->sha256, name);
	snprintf(from, sizeof from, "%s/%s", p.path, name);
	snprintf(temp, sizeof temp, "tmp/%016llx",
		 (unsigned long long)uar_rand_u64(&uar_rand_system));
	bf_kept_add(&b->kept, op->sha256);
	if (fstat(fd, &st) || linkat(b->fd, from, b->fd, temp, 0))
		e = bf_fail(&op->error, UAR_EIO, "link");
	else
		e = bf_adopt(b->fd, temp, fd, op->sha256, &op->error);
	if (e)
		unlinkat(b->fd, temp, 0);
	op->total = e ? 0 : (uint64_t)st.st_size;
	close(fd);
	return e;
}

/* --- what comes ----------------------------------------------------------------------------- */

static uar_err make_dir(struct bf *b, const struct place *p, int *out_fd, struct uar_error *error)
{
	int fd;

	if ((mkdirat(b->fd, "up", 0700) && errno != EEXIST) ||
	    (mkdirat(b->fd, p->path, 0700) && errno != EEXIST))
		return bf_fail(error, UAR_EIO, "mkdir");
	fd = open_dir(b->fd, p->path);
	if (fd < 0)
		return bf_fail(error, UAR_EIO, "open");
	*out_fd = fd;
	return UAR_OK;
}

/* The directories above are synced as well: they may be new. */
static uar_err sync_dirs(struct bf *b, int dir_fd, struct uar_error *error)
{
	int up = open_dir(b->fd, "up");
	uar_err e = UAR_OK;

	if (up < 0)
		return bf_fail(error, UAR_EIO, "open");
	if (fsync(dir_fd) || fsync(up) || fsync(b->fd))
		e = uar_error_set(error, UAR_ESYNC, "blob: fsync of the directory: %s",
				  strerror(errno));
	close(up);
	return e;
}

/* One at a time: of two that bring other bytes for one id, the first counts. */
static uar_err give_name(struct bf *b, int dir_fd, const struct uar_stage *g,
			 const struct bf_written *w, struct uar_error *error)
{
	char name[FILE_TEXT + 1], there[65];
	size_t count;
	uar_err e = find(dir_fd, g->id, there, &count, error);

	if (e && e != UAR_ENOTFOUND)
		return e;
	if (!e) {
		if (strcmp(there, w->sha256) != 0)
			return uar_error_set(error, UAR_EEXISTS,
					     "the upload is complete and has other bytes");
		return unlinkat(b->fd, w->temp, 0) ? bf_fail(error, UAR_EIO, "unlink") : UAR_OK;
	}
	if (count >= UAR_LIMIT_RUN_STAGED)
		return uar_error_set(error, UAR_ERATELIMIT, "a run has at most %d uploads",
				     UAR_LIMIT_RUN_STAGED);
	name_of(g->id, w->sha256, name);
	return renameat(b->fd, w->temp, dir_fd, name) ? bf_fail(error, UAR_EIO, "rename") : UAR_OK;
}

static void clear(struct bf *b, const char *name)
{
	struct place p;
	struct dirent *d;
	DIR *dir;
	int fd;

	snprintf(p.path, sizeof p.path, "up/%.64s", name);
	pthread_mutex_lock(&b->stages.naming);
	fd = open_dir(b->fd, p.path);
	dir = fd < 0 ? NULL : fdopendir(fd);
	while (dir && (d = readdir(dir)))
		if (d->d_name[0] != '.')
			unlinkat(dirfd(dir), d->d_name, 0);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	unlinkat(b->fd, p.path, AT_REMOVEDIR);
	pthread_mutex_unlock(&b->stages.naming);
}

static uar_err put(struct bf *b, const struct place *p, const struct uar_stage *g,
		   const struct bf_written *w, struct uar_error *error)
{
	int dir_fd = -1;
	uar_err e = remember(&b->stages, p->path + 3);

	if (e)
		return e;
	pthread_mutex_lock(&b->stages.naming);
	e = make_dir(b, p, &dir_fd, error);
	if (!e)
		e = give_name(b, dir_fd, g, w, error);
	pthread_mutex_unlock(&b->stages.naming);
	/* Also what was there before: whoever wrote it may not have come that far. */
	if (!e)
		e = sync_dirs(b, dir_fd, error);
	if (dir_fd >= 0)
		close(dir_fd);
	return e;
}

uar_err bf_stage_put(struct bf *b, const struct uar_stage *g, const struct bf_written *w,
		     const struct uar_blob_runs *runs, struct uar_error *error)
{
	struct place p;
	uar_err e =
		is_id(g->id) ? runs->check(runs->ctx, &g->owner, g->run_id, error) : UAR_ENOTFOUND;

	if (!e && fsync(w->fd))
		return bf_fail(error, UAR_ESYNC, "fsync");
	if (!e)
		e = place_of(&g->owner, g->run_id, &p);
	if (!e)
		e = put(b, &p, g, w, error);
	if (e)
		return e;
	/* Its end may have been committed meanwhile, and what it had cleared before this. A
	 * run that cannot be read just now keeps what it has. */
	e = runs->check(runs->ctx, &g->owner, g->run_id, error);
	if (e == UAR_ESTATE || e == UAR_ENOTFOUND) {
		forget(&b->stages, p.path + 3);
		clear(b, p.path + 3);
	}
	return e;
}

/* --- what goes ------------------------------------------------------------------------------- */

bool bf_run_ended(struct uar_blobs *base, const struct uar_owner *o, uar_str run_id,
		  char out_name[65])
{
	struct bf_stages *st = &bf_of(base)->stages;
	struct place p;
	size_t count;

	pthread_mutex_lock(&st->lock);
	count = st->runs.used;
	pthread_mutex_unlock(&st->lock);
	if (!count || place_of(o, run_id, &p) || !forget(st, p.path + 3))
		return false;
	memcpy(out_name, p.path + 3, 65);
	return true;
}

void bf_unstage(struct uar_blobs *base, const char name[65])
{
	clear(bf_of(base), name);
}

struct opening {
	struct uar_map live;
	uar_err err;
};

static void each_live(void *ctx, const struct uar_run_row *row)
{
	struct opening *o = ctx;
	struct place p;

	if (!o->err)
		o->err = place_of(&row->owner, row->run_id, &p);
	if (!o->err)
		o->err = uar_store_hash_add(&o->live, p.path + 3);
}

static uar_err open_each(struct bf *b, DIR *dir, const struct uar_map *live)
{
	struct dirent *d;
	uar_err e = UAR_OK;

	while (!e && (d = readdir(dir))) {
		if (strlen(d->d_name) != 64 || !uar_store_is_sha256(d->d_name))
			continue;
		if (uar_map_get(live, uar_str_n(d->d_name, 64)))
			e = remember(&b->stages, d->d_name);
		else
			clear(b, d->d_name);
	}
	return e;
}

uar_err bf_stages_open(struct uar_blobs *base, const struct uar_blob_runs *runs,
		       struct uar_error *error)
{
	struct bf *b = bf_of(base);
	int fd = open_dir(b->fd, "up");
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct opening o = { .err = UAR_OK };
	uar_err e;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return UAR_OK; /* nobody has ever uploaded */
	}
	uar_map_init(&o.live, 0x5355u);
	e = runs->each_live(runs->ctx, each_live, &o, error);
	if (!e)
		e = o.err;
	if (!e)
		e = open_each(b, dir, &o.live);
	uar_store_hashes_fini(&o.live);
	closedir(dir);
	return e;
}
