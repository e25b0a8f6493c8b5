/* confine.c - the steps from a plain child to a confined one, in their order. */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/confine_int.h"

enum { LAST_CAPABILITY = 63 };

static bool fail(struct confine_error *e, const char *what)
{
	e->number = errno;
	memcpy(e->stage, "sandbox", sizeof "sandbox");
	snprintf(e->what, sizeof e->what, "%s", what);
	return false;
}

static bool set_limit(int which, int64_t value)
{
	struct rlimit r = { .rlim_cur = (rlim_t)value, .rlim_max = (rlim_t)value };
	struct rlimit now;

	if (!value)
		return true;
	if (getrlimit((__rlimit_resource_t)which, &now) == 0 && now.rlim_max < r.rlim_max)
		r.rlim_cur = r.rlim_max = now.rlim_max;
	return setrlimit((__rlimit_resource_t)which, &r) == 0;
}

static bool set_limits(const struct uar_sandbox_limits *l)
{
	struct rlimit none = { 0, 0 };

	return setrlimit(RLIMIT_CORE, &none) == 0 && set_limit(RLIMIT_CPU, l->cpu_s) &&
	       set_limit(RLIMIT_AS, l->memory_bytes) && set_limit(RLIMIT_NOFILE, l->files);
}

/* A server that runs as root must not lend its powers. */
static bool drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	for (int c = 0; c <= LAST_CAPABILITY; c++)
		if (prctl(PR_CAPBSET_DROP, c, 0, 0, 0) && errno != EINVAL && errno != EPERM)
			return false;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &head, none) == 0;
}

bool uar_confine_self(const struct uar_sandbox *s, int *out_notify, struct confine_error *error)
{
	struct uar_sandbox_probe probe = uar_sandbox_probe();
	struct uar_sandbox_gaps gaps;
	char cwd[UAR_LIMIT_SANDBOX_PATH];
	bool ok;

	memcpy(cwd, s->cwd.p, s->cwd.n);
	cwd[s->cwd.n] = 0;
	if (uar_sandbox_check(s, &probe, &gaps, NULL)) {
		errno = ENOSYS;
		return fail(error, "the kernel lacks what the profile needs");
	}
	if (chdir(cwd))
		return fail(error, "working directory");
	if (!set_limits(&s->limits))
		return fail(error, "resource limits");
	if (!drop_capabilities())
		return fail(error, "capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return fail(error, "no_new_privs");
	if (s->mode != UAR_SANDBOX_FULL_ACCESS && !uar_confine_files(s, probe.landlock))
		return fail(error, "Landlock");
	*out_notify = uar_confine_calls(s, &probe, &ok);
	if (!ok)
		return fail(error, "seccomp filter");
	return true;
}
