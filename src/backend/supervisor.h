/* supervisor.h - what the library and the supervisor say to each other.
 *
 * The supervisor is started as
 *	agent-api-supervisor CWD PARENT_PID GRACE_MS CGROUP PROGRAM [ARG...]
 * with the program's stdin, stdout and stderr as 0, 1, 2 and a SOCK_SEQPACKET
 * socket as 3. It starts the program, owns everything the program starts, and
 * exits when nothing of it is left. CGROUP is the directory of a control group that it enters
 * first and removes last; empty: none. When the socket closes, the host is gone and
 * everything is killed. */
#ifndef UAR_BACKEND_SUPERVISOR_H
#define UAR_BACKEND_SUPERVISOR_H

#include <stdint.h>

enum uab_sup_type {
	/* to the library */
	UAB_SUP_STARTED = 1, /* a: pid */
	UAB_SUP_FAILED = 2,  /* a: enum uab_sup_phase, b: errno */
	UAB_SUP_EXITED = 3,  /* a: wait status of the program */
	UAB_SUP_EMPTY = 4,   /* no process of the tree is left */
	UAB_SUP_GROUPED = 5, /* it is in the group, and has started nothing before */
	/* to the supervisor */
	UAB_SUP_TERM = 10, /* SIGTERM to the program */
	UAB_SUP_KILL = 11, /* kill everything */
};

enum uab_sup_phase { UAB_PHASE_FORK = 1, UAB_PHASE_CHDIR = 2, UAB_PHASE_EXEC = 3 };

struct uab_sup_msg {
	int32_t type, a, b;
};

int uab_supervisor_main(int argc, char **argv);

#endif
