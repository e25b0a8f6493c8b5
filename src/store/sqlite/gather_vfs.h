/* gather_vfs.h - a VFS that lets adjacent writes leave as one.
 *
 * SQLite writes every frame of its write-ahead log with two system calls, and a
 * checkpoint every page of the database with one. This layer gathers adjacent writes
 * to either file in memory and hands them on before anything could notice: at a sync,
 * a read, a size, a truncation, before a lock is given up, at a close.
 *
 * Nobody misses what is still in memory. Readers look for a commit's frames only after
 * its sync, and take the pages of a checkpoint from the log until the checkpoint is
 * published, which is after its sync. So with synchronous=FULL the order on disk and the
 * order of events is unchanged.
 *
 * A write may fail later than SQLite asked for it, but not later than the sync behind
 * it, which then fails with the error of the write: the commit is refused as if its last
 * frame had failed; the checkpoint is not published, and the log still has every page.
 * A checkpoint that SQLite gives up before its sync is not published either, so what
 * becomes of its pages then, at the unlock, is all the same. */
#ifndef UAR_STORE_SQLITE_GATHER_VFS_H
#define UAR_STORE_SQLITE_GATHER_VFS_H

#include "base/err.h"

/* Registers "uar-BASE" over the VFS named `base` (NULL: the default) once and
 * returns its name; NULL when out of memory. Thread-safe. */
const char *sq_gather_vfs(const char *base);

#endif
