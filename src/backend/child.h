/* child.h - one supervised program: its pipes, its truth about exits, its lines. */
#ifndef UAR_BACKEND_CHILD_H
#define UAR_BACKEND_CHILD_H

#include <sys/types.h>

#include "backend/int.h"
#include "backend/supervisor.h"

struct uab_spawn {
	const char *supervisor;
	const char *cwd;   /* NULL: the host's */
	char *const *argv; /* program first; looked up on PATH of envp */
	char *const *envp;
	int grace_ms;	    /* for what is left when the program has ended */
	const char *cgroup; /* in which one is made for it; NULL, "": it gets none */
};

enum { UAB_CGROUP_PATH = 1024 };

struct uab_child {
	int in, out, err; /* our ends, non-blocking; -1 when closed */
	int control, pidfd;
	pid_t pid, root;
	bool started, failed, exited, empty;
	bool lost;		      /* the supervisor is gone and has not said "empty" */
	bool grouped;		      /* every process of it is, or was, in `cgroup` */
	char cgroup[UAB_CGROUP_PATH]; /* empty: none */
	int status;		      /* wait status once exited */
	int phase, failed_errno;      /* once failed */
};

/* 0 or an errno. The calling thread must live until uab_child_reap. */
int uab_child_spawn(struct uab_child *c, const struct uab_spawn *spec);
/* Reads what the supervisor has to say; call when `control` is readable. */
void uab_child_control(struct uab_child *c);
void uab_child_tell(struct uab_child *c, enum uab_sup_type what);
/* Call when the supervisor is lost. Kills what is left in the control group, until that time, and
 * sets `empty` if nothing is left. Without a group it does nothing. */
void uab_child_sweep(struct uab_child *c, int64_t until_us);
/* The text of an error when the supervisor is lost and `empty` is false. */
#define UAB_LOST                                                                                   \
	"termination failed: the supervisor was killed, and processes that detached themselves "   \
	"may survive"
/* Closes everything and waits for the supervisor to be gone. */
void uab_child_reap(struct uab_child *c);
void uab_close(int *fd);
/* Where the supervisor is; NULL when it is nowhere. Writes into `path`. */
const char *uab_supervisor_path(uaa_str configured, char *path, size_t size);

/* cgroup.c */
/* Where groups of runs are made: as configured, else that of this process; empty: nowhere. */
void uab_cgroup_parent(uaa_str configured, char out[UAB_CGROUP_PATH]);
void uab_cgroup_make(const char *parent, char out[UAB_CGROUP_PATH]); /* empty: not possible */
/* Kills its processes until there are none. False: some are left at that time. */
bool uab_cgroup_sweep(const char *group, int64_t until_us);
/* Removes the group now. A group that still has a process is removed once it is empty. */
void uab_cgroup_remove(char group[UAB_CGROUP_PATH]);
/* Removes those of this process that were not empty before and are now. */
void uab_cgroup_tidy(void);

/* Splits bytes into lines at LF. Lines longer than `max` are counted, not kept. */
struct uab_lines {
	struct uar_buf buf;
	size_t max;
	uint64_t skipping;			    /* bytes of the line that is too long, so far */
	void (*line)(void *ctx, char *p, size_t n); /* without LF and one CR; may be edited */
	void (*too_long)(void *ctx, uint64_t bytes);
	void *ctx;
};
void uab_lines_init(struct uab_lines *l, size_t max);
void uab_lines_feed(struct uab_lines *l, char *p, size_t n);
/* The end: what is left without LF, if anything, is a line too. */
void uab_lines_end(struct uab_lines *l);
void uab_lines_fini(struct uab_lines *l);

#endif
