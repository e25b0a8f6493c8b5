/* faultvfs.h - an SQLite VFS that fails, and that can lose power.
 *
 * Registered under the name "fault" on top of the default one. It counts the
 * operations that change files (write, sync, truncate) while it is armed and
 * fails the chosen one. Of every write it keeps what was there before until the
 * file is synced, so a power loss can take unsynced writes back, each sector by
 * itself as a disk would. One store at a time. */
#ifndef UAR_TEST_FAULTVFS_H
#define UAR_TEST_FAULTVFS_H

#include "base/rand.h"

enum uar_fault_kind {
	UAR_FAULT_NONE,
	UAR_FAULT_EIO,	 /* the operation fails with an I/O error */
	UAR_FAULT_FULL,	 /* a write fails with "no space"; syncs and truncates pass */
	UAR_FAULT_SYNC,	 /* the n-th sync fails; writes and truncates pass and are not counted */
	UAR_FAULT_POWER, /* nothing reaches the disk any more */
	UAR_FAULT_KILL,	 /* the process is killed before it; opening and removing count, too */
};

const char *uar_fault_vfs(void); /* its name; registers it on first use */
/* Fails operation `n` from now on (1: the next), and all later ones if `always`. */
void uar_fault_arm(enum uar_fault_kind kind, unsigned long n, bool always);
void uar_fault_disarm(void);
bool uar_fault_happened(void);
unsigned long uar_fault_count(void); /* operations since it was armed */
/* After the store is closed: takes back a random part of what was never synced. */
void uar_fault_power_loss(const struct uar_rand *rand);

#endif
