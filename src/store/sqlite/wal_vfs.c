/* wal_vfs.c - gathers adjacent writes to the write-ahead log. */
#include "store/sqlite/wal_vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"

/* The Unix layer writes at most 131071 bytes at a time. */
enum { GATHER = 122880, NAME = 64, LAYERS = 8 };

struct layer {
	sqlite3_vfs vfs;
	sqlite3_vfs *base;
	char name[NAME];
};

struct wal_file {
	sqlite3_file file;
	const char *path;
	char *bytes; /* not written yet, from `at` on; NULL: never gathered */
	int n;
	sqlite3_int64 at;
	sqlite3_file real[]; /* the file of the layer below */
};

static struct wal_file *of(sqlite3_file *f)
{
	return (struct wal_file *)(void *)f;
}

/* SQLite leaves no gaps in its log: a place behind the end means that another program has cut it
 * short. A write there would make it long again, with zeros for what was acknowledged. */
static bool is_cut(const struct wal_file *f, sqlite3_int64 at)
{
	struct statx now;

	return f->path && statx(AT_FDCWD, f->path, 0, STATX_SIZE, &now) == 0 &&
	       now.stx_mask & STATX_SIZE && (uint64_t)at > now.stx_size;
}

/* To SQLite a full disk is ENOSPC alone, and at a commit it forgets the errno of the rest: a
 * quota, or the limit for the size of a file. */
static int put(struct wal_file *f, const void *in, int n, sqlite3_int64 at)
{
	int rc;

	if (is_cut(f, at)) {
		errno = 0; /* no disk is full */
		return SQLITE_IOERR_WRITE;
	}
	rc = f->real->pMethods->xWrite(f->real, in, n, at);
	return rc == SQLITE_IOERR_WRITE && (errno == EDQUOT || errno == EFBIG) ? SQLITE_FULL : rc;
}

static int flush(struct wal_file *f)
{
	int n = f->n;

	f->n = 0;
	return n ? put(f, f->bytes, n, f->at) : SQLITE_OK;
}

static int wal_close(sqlite3_file *file)
{
	struct wal_file *f = of(file);
	int rc = flush(f), closed = f->real->pMethods->xClose(f->real);

	uar_free(f->bytes);
	f->bytes = NULL;
	return rc ? rc : closed;
}

static int wal_read(sqlite3_file *file, void *out, int n, sqlite3_int64 at)
{
	struct wal_file *f = of(file);
	int rc = flush(f);

	return rc ? rc : f->real->pMethods->xRead(f->real, out, n, at);
}

static int wal_write(sqlite3_file *file, const void *in, int n, sqlite3_int64 at)
{
	struct wal_file *f = of(file);
	int rc = SQLITE_OK;

	if (!f->bytes)
		f->bytes = uar_alloc(GATHER);
	if (f->n && (at != f->at + f->n || n > GATHER - f->n))
		rc = flush(f);
	if (rc)
		return rc;
	if (!f->bytes || n > GATHER)
		return put(f, in, n, at);
	if (f->n == 0)
		f->at = at;
	memcpy(f->bytes + f->n, in, (size_t)n);
	f->n += n;
	return SQLITE_OK;
}

static int wal_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	struct wal_file *f = of(file);
	int rc = flush(f);

	return rc ? rc : f->real->pMethods->xTruncate(f->real, size);
}

static int wal_sync(sqlite3_file *file, int flags)
{
	struct wal_file *f = of(file);
	int rc = flush(f);

	return rc ? rc : f->real->pMethods->xSync(f->real, flags);
}

static int wal_size(sqlite3_file *file, sqlite3_int64 *out)
{
	struct wal_file *f = of(file);
	int rc = flush(f);

	return rc ? rc : f->real->pMethods->xFileSize(f->real, out);
}

/* SQLite locks the database file, not this one; passed on all the same. */
static int wal_lock(sqlite3_file *file, int level)
{
	return of(file)->real->pMethods->xLock(of(file)->real, level);
}

static int wal_unlock(sqlite3_file *file, int level)
{
	return of(file)->real->pMethods->xUnlock(of(file)->real, level);
}

static int wal_check_lock(sqlite3_file *file, int *out)
{
	return of(file)->real->pMethods->xCheckReservedLock(of(file)->real, out);
}

static int wal_control(sqlite3_file *file, int op, void *arg)
{
	struct wal_file *f = of(file);
	int rc = flush(f);

	return rc ? rc : f->real->pMethods->xFileControl(f->real, op, arg);
}

static int wal_sector(sqlite3_file *file)
{
	return of(file)->real->pMethods->xSectorSize(of(file)->real);
}

static int wal_device(sqlite3_file *file)
{
	return of(file)->real->pMethods->xDeviceCharacteristics(of(file)->real);
}

static const sqlite3_io_methods wal_methods = {
	.iVersion = 1,
	.xClose = wal_close,
	.xRead = wal_read,
	.xWrite = wal_write,
	.xTruncate = wal_truncate,
	.xSync = wal_sync,
	.xFileSize = wal_size,
	.xLock = wal_lock,
	.xUnlock = wal_unlock,
	.xCheckReservedLock = wal_check_lock,
	.xFileControl = wal_control,
	.xSectorSize = wal_sector,
	.xDeviceCharacteristics = wal_device,
};

/* Only the log is wrapped; every other file is the lower layer's own. */
static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
		     int *out_flags)
{
	struct layer *l = (struct layer *)(void *)vfs;
	struct wal_file *f = of(file);
	int rc;

	if (!(flags & SQLITE_OPEN_WAL))
		return l->base->xOpen(l->base, name, file, flags, out_flags);
	memset(f, 0, sizeof *f);
	f->path = name; /* stays in place until the file is closed */
	rc = l->base->xOpen(l->base, name, f->real, flags, out_flags);
	if (f->real->pMethods)
		f->file.pMethods = &wal_methods;
	return rc;
}

static bool add_layer(struct layer *l, sqlite3_vfs *base)
{
	snprintf(l->name, sizeof l->name, "uar-%s", base->zName);
	l->base = base;
	l->vfs = *base; /* all but xOpen is the lower layer's: it never sees our files */
	l->vfs.pNext = NULL;
	l->vfs.zName = l->name;
	l->vfs.szOsFile = (int)sizeof(struct wal_file) + base->szOsFile;
	l->vfs.xOpen = open_file;
	return sqlite3_vfs_register(&l->vfs, 0) == SQLITE_OK;
}

const char *sq_wal_vfs(const char *base)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct layer layers[LAYERS];
	static size_t count;
	sqlite3_vfs *real = sqlite3_vfs_find(base);
	const char *name = NULL;

	if (!real)
		return base; /* opening will say that there is none */
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < count && !name; i++)
		if (layers[i].base == real)
			name = layers[i].name;
	if (!name && count < LAYERS && add_layer(&layers[count], real))
		name = layers[count++].name;
	pthread_mutex_unlock(&lock);
	return name;
}
