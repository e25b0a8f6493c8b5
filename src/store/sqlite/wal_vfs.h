/* wal_vfs.h - a VFS that lets the frames of one commit leave in one write.
 *
 * SQLite writes every frame of its write-ahead log with two system calls. This
 * layer gathers adjacent writes to that one file in memory and hands them on
 * before anything could notice: at a sync, a read, a size, a truncation, a
 * close. Readers look for a commit's frames only after its sync, so with
 * synchronous=FULL the order on disk and the order of events is unchanged. */
#ifndef UAR_STORE_SQLITE_WAL_VFS_H
#define UAR_STORE_SQLITE_WAL_VFS_H

#include "base/err.h"

/* Registers "uar-BASE" over the VFS named `base` (NULL: the default) once and
 * returns its name; NULL when out of memory. Thread-safe. */
const char *sq_wal_vfs(const char *base);

#endif
