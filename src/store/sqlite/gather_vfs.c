/* gather_vfs.c - gathers adjacent writes to the database and its log. */
#include "store/sqlite/gather_vfs.h"

#include <pthread.h>
#include <sqlite3.h>
#include <string.h>

#include "base/alloc.h"

/* The Unix layer writes at most 131071 bytes at a time. */
enum { GATHER = 122880, NAME = 64, LAYERS = 8 };

struct layer {
	sqlite3_vfs vfs;
	sqlite3_vfs *base;
	char name[NAME];
};

struct gathered {
	sqlite3_file file;
	char *bytes; /* not written yet, from `at` on; NULL: never gathered */
	int n;
	sqlite3_int64 at;
	sqlite3_file real[]; /* the file of the layer below */
};

static struct gathered *of(sqlite3_file *f)
{
	return (struct gathered *)(void *)f;
}

static int flush(struct gathered *f)
{
	int n = f->n;

	f->n = 0;
	return n ? f->real->pMethods->xWrite(f->real, f->bytes, n, f->at) : SQLITE_OK;
}

static int g_close(sqlite3_file *file)
{
	struct gathered *f = of(file);
	int rc = flush(f), closed = f->real->pMethods->xClose(f->real);

	uar_free(f->bytes);
	f->bytes = NULL;
	return rc ? rc : closed;
}

static int g_read(sqlite3_file *file, void *out, int n, sqlite3_int64 at)
{
	struct gathered *f = of(file);
	int rc = flush(f);

	return rc ? rc : f->real->pMethods->xRead(f->real, out, n, at);
}

static int g_write(sqlite3_file *file, const void *in, int n, sqlite3_int64 at)
{
	struct gathered *f = of(file);
	int rc = SQLITE_OK;

	if (!f->bytes)
		f->bytes = uar_alloc(GATHER);
	if (f->n && (at != f->at + f->n || n > GATHER - f->n))
		rc = flush(f);
	if (rc)
		return rc;
	if (!f->bytes || n > GATHER)
		return f->real->pMethods->xWrite(f->real, in, n, at);
	if (f->n == 0)
		f->at = at;
	memcpy(f->bytes + f->n, in, (size_t)n);
	f->n += n;
	return SQLITE_OK;
}

static int g_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	struct gathered *f = of(file);
	int rc = flush(f);

	return rc ? rc : f->real->pMethods->xTruncate(f->real, size);
}

static int g_sync(sqlite3_file *file, int flags)
{
	struct gathered *f = of(file);
	int rc = flush(f);

	return rc ? rc : f->real->pMethods->xSync(f->real, flags);
}

static int g_size(sqlite3_file *file, sqlite3_int64 *out)
{
	struct gathered *f = of(file);
	int rc = flush(f);

	return rc ? rc : f->real->pMethods->xFileSize(f->real, out);
}

static int g_lock(sqlite3_file *file, int level)
{
	return of(file)->real->pMethods->xLock(of(file)->real, level);
}

static int g_unlock(sqlite3_file *file, int level)
{
	struct gathered *f = of(file);
	int rc = flush(f), unlocked = f->real->pMethods->xUnlock(f->real, level);

	return rc ? rc : unlocked;
}

static int g_check_lock(sqlite3_file *file, int *out)
{
	return of(file)->real->pMethods->xCheckReservedLock(of(file)->real, out);
}

/* Nothing is handed on here: a control reads nothing of the file, and SQLite ignores what
 * most of them return, as that at the end of a checkpoint, so a failure would be lost. */
static int g_control(sqlite3_file *file, int op, void *arg)
{
	return of(file)->real->pMethods->xFileControl(of(file)->real, op, arg);
}

static int g_sector(sqlite3_file *file)
{
	return of(file)->real->pMethods->xSectorSize(of(file)->real);
}

static int g_device(sqlite3_file *file)
{
	return of(file)->real->pMethods->xDeviceCharacteristics(of(file)->real);
}

static int g_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **out)
{
	return of(file)->real->pMethods->xShmMap(of(file)->real, page, size, extend, out);
}

/* A checkpoint that was given up ends here: its pages are of no account. */
static int g_shm_lock(sqlite3_file *file, int at, int n, int flags)
{
	struct gathered *f = of(file);

	if (flags & SQLITE_SHM_UNLOCK)
		(void)flush(f);
	return f->real->pMethods->xShmLock(f->real, at, n, flags);
}

static void g_shm_barrier(sqlite3_file *file)
{
	of(file)->real->pMethods->xShmBarrier(of(file)->real);
}

static int g_shm_unmap(sqlite3_file *file, int remove_it)
{
	return of(file)->real->pMethods->xShmUnmap(of(file)->real, remove_it);
}

/* Version 2: memory maps, which would read past us, are never used. */
static const sqlite3_io_methods methods = {
	.iVersion = 2,
	.xClose = g_close,
	.xRead = g_read,
	.xWrite = g_write,
	.xTruncate = g_truncate,
	.xSync = g_sync,
	.xFileSize = g_size,
	.xLock = g_lock,
	.xUnlock = g_unlock,
	.xCheckReservedLock = g_check_lock,
	.xFileControl = g_control,
	.xSectorSize = g_sector,
	.xDeviceCharacteristics = g_device,
	.xShmMap = g_shm_map,
	.xShmLock = g_shm_lock,
	.xShmBarrier = g_shm_barrier,
	.xShmUnmap = g_shm_unmap,
};

/* The database and its log are wrapped; every other file is the lower layer's own. */
static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
		     int *out_flags)
{
	struct layer *l = (struct layer *)(void *)vfs;
	struct gathered *f = of(file);
	int rc;

	if (!(flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_DB)))
		return l->base->xOpen(l->base, name, file, flags, out_flags);
	memset(f, 0, sizeof *f);
	rc = l->base->xOpen(l->base, name, f->real, flags, out_flags);
	if (f->real->pMethods)
		f->file.pMethods = &methods;
	return rc;
}

static bool add_layer(struct layer *l, sqlite3_vfs *base)
{
	snprintf(l->name, sizeof l->name, "uar-%s", base->zName);
	l->base = base;
	l->vfs = *base; /* all but xOpen is the lower layer's: it never sees our files */
	l->vfs.pNext = NULL;
	l->vfs.zName = l->name;
	l->vfs.szOsFile = (int)sizeof(struct gathered) + base->szOsFile;
	l->vfs.xOpen = open_file;
	return sqlite3_vfs_register(&l->vfs, 0) == SQLITE_OK;
}

const char *sq_gather_vfs(const char *base)
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
