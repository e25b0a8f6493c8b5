/* sweep.c - blobs that nothing but evicted runs refers to are unlinked.
 *
 * The log is read once, a part each step: a blob that an evicted run refers to is
 * doubtful, one that anything else refers to is wanted, as is the question of a turn,
 * which its conversation remembers. Then what is doubtful and not wanted goes. An event
 * that is not in the log yet can only refer to a blob that was put in this life; those
 * are remembered and stay (../blob/kept.c). There is no mark in the database: a sweep that is
 * cut off is begun again. Once all is done the file `swept` says how many runs were
 * evicted by then, so that the next start need not read the log for nothing. */
#include "store/sqlite/sqlite_int.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"

enum { STEP_ROWS = 1024, STEP_BLOBS = 256 };

static const char mark_name[] = "swept", mark_temp[] = "swept.tmp";

/* --- the mark ---------------------------------------------------------------------------- */

static int64_t read_mark(int dir_fd)
{
	int fd = openat(dir_fd, mark_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char text[32];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
	uint64_t v = 0;

	if (fd >= 0)
		close(fd);
	return n > 0 && uar_str_u64(uar_str_n(text, (size_t)n), &v) == UAR_OK ? (int64_t)v : -1;
}

/* Not synced: without it the log is read once more. */
static void write_mark(int dir_fd, int64_t evicted)
{
	int fd = openat(dir_fd, mark_temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
			0600);
	char text[32];
	int n = snprintf(text, sizeof text, "%lld", (long long)evicted);
	bool good = fd >= 0 && write(fd, text, (size_t)n) == n;

	if (fd >= 0)
		close(fd);
	if (good && renameat(dir_fd, mark_temp, dir_fd, mark_name) == 0)
		return;
	unlinkat(dir_fd, mark_temp, 0);
}

/* --- steps ------------------------------------------------------------------------------- */

static uar_err begin(struct sq_reader *rd, struct sq_sweep *w, struct uar_error *error)
{
	sqlite3_stmt *st;
	uar_err e = sq_first(&rd->conn, SQ_SWEEP_BEGIN, NULL, 0, &st, error);

	if (e)
		return e;
	w->evicted = sqlite3_column_int64(st, 0);
	w->last = sqlite3_column_int64(st, 1);
	sq_done(st);
	w->begun = true;
	if (!w->evicted || w->evicted == read_mark(rd->pool->store->dir_fd))
		w->last = w->pos = 0;
	return UAR_OK;
}

static uar_err note_blobs(struct uar_map *map, uar_str event)
{
	static const char lead[] = "blob://";
	const char *p = event.p, *end = event.p + event.n;
	char sha256[65] = "";
	uar_err e = UAR_OK;

	while (!e && (p = memmem(p, (size_t)(end - p), lead, sizeof lead - 1))) {
		p += sizeof lead - 1;
		if (end - p < 64)
			break;
		memcpy(sha256, p, 64);
		if (uar_store_is_sha256(sha256))
			e = uar_store_hash_add(map, sha256);
	}
	return e;
}

static uar_err scan(struct sq_reader *rd, struct sq_sweep *w, struct uar_error *error)
{
	int64_t upto = w->pos + STEP_ROWS < w->last ? w->pos + STEP_ROWS : w->last;
	sqlite3_stmt *st =
		sq_bind(&rd->conn, SQ_SWEEP_ROWS, SQ_VALS(SQ_I(w->pos), SQ_I(upto)), error);
	uar_err e = st ? UAR_OK : error->code;
	int rc = SQLITE_DONE;

	while (!e && (rc = sqlite3_step(st)) == SQLITE_ROW)
		e = note_blobs(sqlite3_column_int(st, 0) ? &w->doubtful : &w->wanted,
			       sq_text(st, 1));
	if (!e && rc != SQLITE_DONE)
		e = sq_fail(&rd->conn, rc, error);
	sq_done(st);
	w->pos = upto;
	return e;
}

/* True: there are more. */
static bool unlink_some(struct sq_store *s, uint64_t *removed)
{
	struct sq_sweep *w = &s->sweep;
	const char *sha256;
	int n = 0;

	while (n < STEP_BLOBS && (sha256 = uar_map_next(&w->doubtful, &w->at))) {
		enum uar_blob_swept did = uar_map_get(&w->wanted, uar_str_n(sha256, 64))
						  ? UAR_BLOB_ABSENT
						  : s->blobs->ops->sweep_one(s->blobs, sha256);

		w->skipped |= did == UAR_BLOB_STAYS;
		n += did == UAR_BLOB_REMOVED;
	}
	*removed += (uint64_t)n;
	return n == STEP_BLOBS;
}

void sq_sweep_init(struct sq_sweep *w)
{
	*w = (struct sq_sweep){ 0 };
	uar_map_init(&w->wanted, 0x5341u);
	uar_map_init(&w->doubtful, 0x5342u);
}

void sq_sweep_fini(struct sq_sweep *w)
{
	uar_store_hashes_fini(&w->wanted);
	uar_store_hashes_fini(&w->doubtful);
}

void sq_sweep_end(struct sq_store *s, bool good)
{
	struct sq_sweep *w = &s->sweep;

	if (good && w->evicted && !w->skipped)
		write_mark(s->dir_fd, w->evicted);
	sq_sweep_fini(w);
	sq_sweep_init(w);
	w->begun = true;
	s->blobs->ops->sweep_end(s->blobs);
}

void sq_sweep_step(struct sq_reader *rd, struct uar_sweep *op)
{
	struct sq_store *s = rd->pool->store;
	struct sq_sweep *w = &s->sweep;
	uar_err e = UAR_OK;

	op->error = (struct uar_error){ 0 };
	op->more = true;
	if (!w->begun)
		e = begin(rd, w, &op->error);
	else if (w->pos < w->last)
		e = scan(rd, w, &op->error);
	else
		op->more = unlink_some(s, &op->removed);
	if (e && !op->error.code)
		uar_error_set(&op->error, e, "%s", uar_err_text(e));
	op->err = e;
	op->more = op->more && !e;
	if (!op->more)
		sq_sweep_end(s, !e);
}
