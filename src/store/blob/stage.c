/* stage.c - bytes of runs that are not over: uploaded, and no event refers to them yet.
 *
 * blobs/up/RUN/ID.SHA256: RUN is a hash of owner and run, so a look-up with another owner
 * finds nothing; the hash in the name saves reading the file to know what it is. A file
 * comes from blobs/tmp, whole and synced. A blob that is made of one is a second link to
 * it, so that this one can go with its run, whoever refers to the other. What a run has
 * here is removed when the run's end is committed, or, if that was missed, by the next
 * start: there is nothing to be counted and nothing to be remembered. */
#include "store/sqlite/sqlite_int.h"

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

void sq_stages_init(struct sq_stages *st)
{
	pthread_mutex_init(&st->naming, NULL);
	pthread_mutex_init(&st->lock, NULL);
	uar_map_init(&st->runs, 0x5354u);
	uar_list_init(&st->clearing);
}

void sq_stages_fini(struct sq_stages *st)
{
	while (!uar_list_empty(&st->clearing)) {
		struct sq_unstage *u = UAR_OWNER(st->clearing.next, struct sq_unstage, node);

		uar_list_remove(&u->node);
		uar_free(u);
	}
	sq_hashes_fini(&st->runs);
	pthread_mutex_destroy(&st->lock);
	pthread_mutex_destroy(&st->naming);
}

static uar_err remember(struct sq_stages *st, const char *name)
{
	uar_err e;

	pthread_mutex_lock(&st->lock);
	e = sq_hash_add(&st->runs, name);
	pthread_mutex_unlock(&st->lock);
	return e;
}

static bool forget(struct sq_stages *st, const char *name)
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
		e = sq_blob_fail(error, UAR_EIO, "read directory");
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
	return errno == ENOENT ? UAR_ENOTFOUND : sq_blob_fail(error, UAR_EIO, "open");
}

/* An open file of it, and its hash. */
static uar_err open_staged(struct sq_store *s, const struct uar_stage *g, struct place *out_place,
			   char out_sha256[65], int *out_fd, struct uar_error *error)
{
	char name[FILE_TEXT + 1];
	size_t count;
	uar_err e = is_id(g->id) ? place_of(&g->owner, g->run_id, out_place) : UAR_ENOTFOUND;
	int dir_fd = e ? -1 : open_dir(s->blobs_fd, out_place->path), fd = -1;

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

uar_err sq_stage_get(struct sq_store *s, struct uar_blob_get *b, struct uar_error *error)
{
	struct place p;
	int fd = -1;
	uar_err e = open_staged(s, b->stage, &p, b->sha256, &fd, error);

	if (e)
		return error->code ? e : uar_error_set(error, e, "%s", uar_err_text(e));
	e = sq_blob_read(fd, b, error);
	close(fd);
	return e;
}

static uar_err adopt(struct sq_store *s, struct uar_upload_op *op)
{
	char temp[32], from[DIR_TEXT + FILE_TEXT + 2], name[FILE_TEXT + 1];
	struct place p;
	struct stat st;
	int fd = -1;
	uar_err e = open_staged(s, op->stage, &p, op->sha256, &fd, &op->error);

	if (e)
		return e;
	name_of(op->stage->id, op->sha256, name);
	snprintf(from, sizeof from, "%s/%s", p.path, name);
	snprintf(temp, sizeof temp, "tmp/%016llx",
		 (unsigned long long)uar_rand_u64(&uar_rand_system));
	sq_kept_add(&s->kept, op->sha256);
	if (fstat(fd, &st) || linkat(s->blobs_fd, from, s->blobs_fd, temp, 0))
		e = sq_blob_fail(&op->error, UAR_EIO, "link");
	else
		e = sq_blob_adopt(s->blobs_fd, temp, fd, op->sha256, &op->error);
	if (e)
		unlinkat(s->blobs_fd, temp, 0);
	op->total = e ? 0 : (uint64_t)st.st_size;
	close(fd);
	return e;
}

void sq_stage_adopt(struct sq_store *s, struct uar_upload_op *op)
{
	op->err = adopt(s, op);
	if (op->err && !op->error.code)
		uar_error_set(&op->error, op->err, "%s", uar_err_text(op->err));
}

/* --- what comes ----------------------------------------------------------------------------- */

static uar_err make_dir(struct sq_store *s, const struct place *p, int *out_fd,
			struct uar_error *error)
{
	int fd;

	if ((mkdirat(s->blobs_fd, "up", 0700) && errno != EEXIST) ||
	    (mkdirat(s->blobs_fd, p->path, 0700) && errno != EEXIST))
		return sq_blob_fail(error, UAR_EIO, "mkdir");
	fd = open_dir(s->blobs_fd, p->path);
	if (fd < 0)
		return sq_blob_fail(error, UAR_EIO, "open");
	*out_fd = fd;
	return UAR_OK;
}

/* The directories above are synced as well: they may be new. */
static uar_err sync_dirs(struct sq_store *s, int dir_fd, struct uar_error *error)
{
	int up = open_dir(s->blobs_fd, "up");
	uar_err e = UAR_OK;

	if (up < 0)
		return sq_blob_fail(error, UAR_EIO, "open");
	if (fsync(dir_fd) || fsync(up) || fsync(s->blobs_fd))
		e = uar_error_set(error, UAR_ESYNC, "blob: fsync of the directory: %s",
				  strerror(errno));
	close(up);
	return e;
}

/* One at a time: of two that bring other bytes for one id, the first counts. */
static uar_err give_name(struct sq_store *s, int dir_fd, const struct uar_stage *g,
			 const char *temp, const char sha256[65], struct uar_error *error)
{
	char name[FILE_TEXT + 1], there[65];
	size_t count;
	uar_err e = find(dir_fd, g->id, there, &count, error);

	if (e && e != UAR_ENOTFOUND)
		return e;
	if (!e) {
		if (strcmp(there, sha256) != 0)
			return uar_error_set(error, UAR_EEXISTS,
					     "the upload is complete and has other bytes");
		return unlinkat(s->blobs_fd, temp, 0) ? sq_blob_fail(error, UAR_EIO, "unlink")
						      : UAR_OK;
	}
	if (count >= UAR_LIMIT_RUN_STAGED)
		return uar_error_set(error, UAR_ERATELIMIT, "a run has at most %d uploads",
				     UAR_LIMIT_RUN_STAGED);
	name_of(g->id, sha256, name);
	return renameat(s->blobs_fd, temp, dir_fd, name) ? sq_blob_fail(error, UAR_EIO, "rename")
							 : UAR_OK;
}

static void clear(struct sq_store *s, const char *name)
{
	struct place p;
	struct dirent *d;
	DIR *dir;
	int fd;

	snprintf(p.path, sizeof p.path, "up/%.64s", name);
	pthread_mutex_lock(&s->stages.naming);
	fd = open_dir(s->blobs_fd, p.path);
	dir = fd < 0 ? NULL : fdopendir(fd);
	while (dir && (d = readdir(dir)))
		if (d->d_name[0] != '.')
			unlinkat(dirfd(dir), d->d_name, 0);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	unlinkat(s->blobs_fd, p.path, AT_REMOVEDIR);
	pthread_mutex_unlock(&s->stages.naming);
}

static uar_err check_run(struct sq_reader *rd, const struct uar_stage *g, struct uar_error *error)
{
	const struct uar_owner *o = &g->owner;
	sqlite3_stmt *st;
	int64_t oid = 0;
	bool over;
	uar_err e =
		sq_first(&rd->conn, SQ_OWNER,
			 SQ_VALS(SQ_T(o->tenant), SQ_T(o->workspace), SQ_T(o->user)), &st, error);

	if (!e) {
		oid = sqlite3_column_int64(st, 0);
		sq_done(st);
		e = sq_first(&rd->conn, SQ_RUN, SQ_VALS(SQ_I(oid), SQ_T(g->run_id)), &st, error);
	}
	if (e)
		return e;
	over = sqlite3_column_int(st, 6) != 0;
	sq_done(st);
	return over ? uar_error_set(error, UAR_ESTATE, "the run is over") : UAR_OK;
}

static uar_err put(struct sq_store *s, const struct place *p, const struct uar_stage *g,
		   const char *temp, const char sha256[65], struct uar_error *error)
{
	int dir_fd = -1;
	uar_err e = remember(&s->stages, p->path + 3);

	if (e)
		return e;
	pthread_mutex_lock(&s->stages.naming);
	e = make_dir(s, p, &dir_fd, error);
	if (!e)
		e = give_name(s, dir_fd, g, temp, sha256, error);
	pthread_mutex_unlock(&s->stages.naming);
	/* Also what was there before: whoever wrote it may not have come that far. */
	if (!e)
		e = sync_dirs(s, dir_fd, error);
	if (dir_fd >= 0)
		close(dir_fd);
	return e;
}

uar_err sq_stage_put(struct sq_reader *rd, const struct uar_stage *g, const char *temp, int fd,
		     const char sha256[65], struct uar_error *error)
{
	struct sq_store *s = rd->pool->store;
	struct place p;
	uar_err e = is_id(g->id) ? check_run(rd, g, error) : UAR_ENOTFOUND;

	if (!e && fsync(fd))
		return sq_blob_fail(error, UAR_ESYNC, "fsync");
	if (!e)
		e = place_of(&g->owner, g->run_id, &p);
	if (!e)
		e = put(s, &p, g, temp, sha256, error);
	if (e)
		return e;
	/* Its end may have been committed meanwhile, and what it had cleared before this. A
	 * run that cannot be read just now keeps what it has. */
	e = check_run(rd, g, error);
	if (e == UAR_ESTATE || e == UAR_ENOTFOUND) {
		forget(&s->stages, p.path + 3);
		clear(s, p.path + 3);
	}
	return e;
}

/* --- what goes ------------------------------------------------------------------------------- */

struct sq_unstage *sq_stage_ended(struct sq_stages *st, const struct uar_owner *o, uar_str run_id)
{
	struct sq_unstage *u = NULL;
	struct place p;
	size_t count;

	pthread_mutex_lock(&st->lock);
	count = st->runs.used;
	pthread_mutex_unlock(&st->lock);
	if (!count || place_of(o, run_id, &p) || !forget(st, p.path + 3))
		return NULL;
	u = uar_zalloc(sizeof *u);
	if (!u)
		return NULL;
	memcpy(u->name, p.path + 3, sizeof u->name);
	uar_list_add_last(&st->clearing, &u->node);
	return u;
}

void sq_stage_clear(struct sq_reader *rd, struct sq_unstage *u)
{
	clear(rd->pool->store, u->name);
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
		o->err = sq_hash_add(&o->live, p.path + 3);
}

static uar_err open_each(struct sq_store *s, DIR *dir, const struct uar_map *live)
{
	struct dirent *d;
	uar_err e = UAR_OK;

	while (!e && (d = readdir(dir))) {
		if (strlen(d->d_name) != 64 || !uar_store_is_sha256(d->d_name))
			continue;
		if (uar_map_get(live, uar_str_n(d->d_name, 64)))
			e = remember(&s->stages, d->d_name);
		else
			clear(s, d->d_name);
	}
	return e;
}

uar_err sq_stages_open(struct sq_store *s, struct uar_error *error)
{
	int fd = open_dir(s->blobs_fd, "up");
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct opening o = { .err = UAR_OK };
	uar_err e;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return UAR_OK; /* nobody has ever uploaded */
	}
	uar_map_init(&o.live, 0x5355u);
	e = sq_query_live(&s->writer.conn, &(struct sq_live){ each_live, &o, s->log }, error);
	if (!e)
		e = o.err;
	if (!e)
		e = open_each(s, dir, &o.live);
	sq_hashes_fini(&o.live);
	closedir(dir);
	return e;
}
