/* confine_int.h - what the files of the helper share. */
#ifndef UAR_SANDBOX_CONFINE_INT_H
#define UAR_SANDBOX_CONFINE_INT_H

#include <sys/types.h>

#include "sandbox/sandbox.h"

/* Where it failed, and why: errno. */
struct confine_error {
	char stage[24]; /* "spawn", "sandbox" */
	char what[48];
	int number;
};
/* Applies the boundary to the calling process, which is about to exec. *out_notify: the
 * listener of its filter, -1: there is none. */
bool uar_confine_self(const struct uar_sandbox *s, int *out_notify, struct confine_error *error);
/* landlock.c. False: errno says why. */
bool uar_confine_files(const struct uar_sandbox *s, int abi);
/* seccomp.c. The listener; -1 with *out_ok: none was asked for. */
int uar_confine_calls(const struct uar_sandbox *s, const struct uar_sandbox_probe *p, bool *out_ok);
/* The files of devices that every command may read and write. */
extern const uar_str uar_confine_devices[];
extern const size_t uar_confine_device_count;

/* monitor.c - is told of system calls of the command. */
struct monitor;
typedef void monitor_fn(const char *kind, uar_str target, const char *attempted);
/* NULL: out of memory. Paths of the profile are resolved now. `root`: its descendants count. */
struct monitor *uar_monitor_create(int listener, const struct uar_sandbox *s, pid_t root,
				   pid_t self, monitor_fn *report);
void uar_monitor_handle(struct monitor *m); /* the listener is readable */

/* What the helper is told of a system call. */
enum call_access {
	CALL_READ,
	CALL_WRITE,
	CALL_OPEN,
	CALL_META,
	CALL_SOCKET,
	CALL_FORK,
	CALL_DENY,
	CALL_MUTE,
};
struct call_info {
	int nr;
	const char *name;
	enum call_access access;
	int dir, path, flags; /* arguments; -1: none */
};
const struct call_info *uar_call_find(int nr); /* NULL: it is none of them */

#endif
