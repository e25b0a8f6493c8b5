/* probe.c - what the kernel offers for a sandbox. */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/sandbox.h"

enum { CREATE_RULESET = 444, VERSION = 1 };

static bool has_action(uint32_t action)
{
	return syscall(__NR_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

struct uar_sandbox_probe uar_sandbox_probe(void)
{
	long abi = syscall(CREATE_RULESET, NULL, 0, VERSION);

	return (struct uar_sandbox_probe){
		.landlock = abi > 0 ? (int)abi : 0,
		.seccomp = has_action(SECCOMP_RET_KILL_PROCESS),
		.notify = has_action(SECCOMP_RET_USER_NOTIF),
	};
}
