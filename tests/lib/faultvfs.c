/* faultvfs.c - an SQLite VFS that fails on demand. */
#include "faultvfs.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

enum { SECTOR = 512, PATH = 600 };

/* What a write or truncate replaced. */
struct undo {
	struct undo *next;
	char path[PATH];
	sqlite3_int64 at, old_size;
	int n;	    /* bytes that were written; 0: a truncate */
	int before; /* bytes that were there before */
	unsigned char old[];
};

struct file {
	sqlite3_file base;
	char path[PATH];
	sqlite3_file *real; /* behind this struct */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sqlite3_vfs vfs, *under;
static sqlite3_io_methods methods;
static enum uar_fault_kind kind;
static unsigned long fail_at, count;
static bool always, happened;
static struct undo *undos; /* newest first */

static struct file *file_of(sqlite3_file *f)
{
	return (struct file *)f;
}

enum op { OP_WRITE, OP_SYNC, OP_TRUNCATE, OP_NAME };

/* Does this operation fail? */
static bool fails(enum op op)
{
	bool fail = false;

	pthread_mutex_lock(&lock);
	if (kind != UAR_FAULT_NONE && !(kind == UAR_FAULT_SYNC && op != OP_SYNC) &&
	    !(kind == UAR_FAULT_FULL && op != OP_WRITE) &&
	    !(kind != UAR_FAULT_KILL && op == OP_NAME)) {
		count++;
		fail = count == fail_at || (count > fail_at && (always || kind == UAR_FAULT_POWER));
		happened = happened || fail;
	}
	pthread_mutex_unlock(&lock);
	if (fail && kind == UAR_FAULT_KILL)
		raise(SIGKILL);
	return fail;
}

static void remember(struct file *f, sqlite3_int64 at, int n)
{
	struct undo *u = calloc(1, sizeof *u + (size_t)n);
	sqlite3_int64 size = 0;

	f->real->pMethods->xFileSize(f->real, &size);
	u->at = at;
	u->n = n;
	u->old_size = size;
	snprintf(u->path, sizeof u->path, "%s", f->path);
	if (at < size) {
		u->before = size - at < n ? (int)(size - at) : n;
		f->real->pMethods->xRead(f->real, u->old, u->before, at);
	}
	pthread_mutex_lock(&lock);
	u->next = undos;
	undos = u;
	pthread_mutex_unlock(&lock);
}

static void forget(const char *path)
{
	pthread_mutex_lock(&lock);
	for (struct undo **u = &undos; *u;) {
		struct undo *one = *u;

		if (path && strcmp(one->path, path) != 0) {
			u = &one->next;
			continue;
		}
		*u = one->next;
		free(one);
	}
	pthread_mutex_unlock(&lock);
}

static int f_write(sqlite3_file *file, const void *p, int n, sqlite3_int64 at)
{
	struct file *f = file_of(file);

	if (fails(OP_WRITE))
		return kind == UAR_FAULT_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
	remember(f, at, n);
	return f->real->pMethods->xWrite(f->real, p, n, at);
}

static int f_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	struct file *f = file_of(file);

	if (fails(OP_TRUNCATE))
		return SQLITE_IOERR_TRUNCATE;
	return f->real->pMethods->xTruncate(f->real, size);
}

static int f_sync(sqlite3_file *file, int flags)
{
	struct file *f = file_of(file);

	if (fails(OP_SYNC))
		return SQLITE_IOERR_FSYNC;
	forget(f->path);
	return f->real->pMethods->xSync(f->real, flags);
}

static int f_close(sqlite3_file *file)
{
	struct file *f = file_of(file);
	int rc = f->real->pMethods ? f->real->pMethods->xClose(f->real) : SQLITE_OK;

	return rc;
}

#define PASS(NAME, ARGS, CALL)                                                                     \
	static int f_##NAME ARGS                                                                   \
	{                                                                                          \
		sqlite3_file *r = file_of(file)->real;                                             \
		return r->pMethods->x##NAME CALL;                                                  \
	}
PASS(Read, (sqlite3_file * file, void *p, int n, sqlite3_int64 at), (r, p, n, at))
PASS(FileSize, (sqlite3_file * file, sqlite3_int64 *out), (r, out))
PASS(Lock, (sqlite3_file * file, int how), (r, how))
PASS(Unlock, (sqlite3_file * file, int how), (r, how))
PASS(CheckReservedLock, (sqlite3_file * file, int *out), (r, out))
PASS(FileControl, (sqlite3_file * file, int op, void *arg), (r, op, arg))
PASS(SectorSize, (sqlite3_file * file), (r))
PASS(DeviceCharacteristics, (sqlite3_file * file), (r))
PASS(ShmMap, (sqlite3_file * file, int page, int size, int extend, void volatile **out),
     (r, page, size, extend, out))
PASS(ShmLock, (sqlite3_file * file, int at, int n, int flags), (r, at, n, flags))
PASS(ShmUnmap, (sqlite3_file * file, int remove_it), (r, remove_it))

static void f_ShmBarrier(sqlite3_file *file)
{
	file_of(file)->real->pMethods->xShmBarrier(file_of(file)->real);
}

static int v_open(sqlite3_vfs *v, const char *path, sqlite3_file *file, int flags, int *out)
{
	struct file *f = file_of(file);
	int rc;

	(void)v;
	fails(OP_NAME);
	f->real = (sqlite3_file *)(f + 1);
	snprintf(f->path, sizeof f->path, "%s", path ? path : "");
	rc = under->xOpen(under, path, f->real, flags, out);
	f->base.pMethods = rc ? NULL : &methods;
	return rc;
}

static int v_delete(sqlite3_vfs *v, const char *path, int sync_dir)
{
	(void)v;
	fails(OP_NAME);
	if (kind == UAR_FAULT_POWER && uar_fault_happened())
		return SQLITE_IOERR_DELETE;
	return under->xDelete(under, path, sync_dir);
}

static void init_methods(void)
{
	methods = (sqlite3_io_methods){
		.iVersion = 2,
		.xClose = f_close,
		.xRead = f_Read,
		.xWrite = f_write,
		.xTruncate = f_truncate,
		.xSync = f_sync,
		.xFileSize = f_FileSize,
		.xLock = f_Lock,
		.xUnlock = f_Unlock,
		.xCheckReservedLock = f_CheckReservedLock,
		.xFileControl = f_FileControl,
		.xSectorSize = f_SectorSize,
		.xDeviceCharacteristics = f_DeviceCharacteristics,
		.xShmMap = f_ShmMap,
		.xShmLock = f_ShmLock,
		.xShmBarrier = f_ShmBarrier,
		.xShmUnmap = f_ShmUnmap,
	};
}

const char *uar_fault_vfs(void)
{
	if (!under) {
		under = sqlite3_vfs_find(NULL);
		vfs = *under;
		vfs.zName = "fault";
		vfs.szOsFile = (int)sizeof(struct file) + under->szOsFile;
		vfs.xOpen = v_open;
		vfs.xDelete = v_delete;
		vfs.pNext = NULL;
		init_methods();
		sqlite3_vfs_register(&vfs, 0);
	}
	return "fault";
}

void uar_fault_arm(enum uar_fault_kind what, unsigned long n, bool for_ever)
{
	pthread_mutex_lock(&lock);
	kind = what;
	fail_at = n;
	count = 0;
	always = for_ever;
	happened = false;
	pthread_mutex_unlock(&lock);
}

void uar_fault_disarm(void)
{
	pthread_mutex_lock(&lock);
	kind = UAR_FAULT_NONE;
	pthread_mutex_unlock(&lock);
}

bool uar_fault_happened(void)
{
	bool h;

	pthread_mutex_lock(&lock);
	h = happened;
	pthread_mutex_unlock(&lock);
	return h;
}

unsigned long uar_fault_count(void)
{
	unsigned long n;

	pthread_mutex_lock(&lock);
	n = count;
	pthread_mutex_unlock(&lock);
	return n;
}

/* Newest first: what was there before comes back, sector by sector or not at all. */
static void take_back(const struct undo *u, const struct uar_rand *rand)
{
	int fd = open(u->path, O_RDWR);

	if (fd < 0)
		return;
	for (int at = 0; at < u->before; at += SECTOR) {
		int n = u->before - at < SECTOR ? u->before - at : SECTOR;

		if (uar_rand_below(rand, 2) && pwrite(fd, u->old + at, (size_t)n, u->at + at) != n)
			abort();
	}
	if (u->before < u->n && uar_rand_below(rand, 2) && ftruncate(fd, u->old_size))
		abort();
	close(fd);
}

void uar_fault_power_loss(const struct uar_rand *rand)
{
	for (struct undo *u = undos; u; u = u->next)
		take_back(u, rand);
	forget(NULL);
}
