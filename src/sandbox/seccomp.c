/* seccomp.c - system calls: the filter, written instruction by instruction. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/confine_int.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "the sandbox knows no system call numbers of this machine"
#endif

enum { X32_BIT = 0x40000000 };

static const struct call_info calls[] = {
#define SEEN(NAME, ACCESS, DIR, PATH, FLAGS)                                                       \
	{ __NR_##NAME, #NAME, CALL_##ACCESS, DIR, PATH, FLAGS },
#define META(NAME, DIR, PATH) { __NR_##NAME, #NAME, CALL_META, DIR, PATH, -1 },
#include "sandbox/syscall.def"
#define DENY(NAME) { __NR_##NAME, #NAME, CALL_DENY, -1, -1, -1 },
#define MUTE(NAME) { __NR_##NAME, #NAME, CALL_MUTE, -1, -1, -1 },
#include "sandbox/syscall.def"
	{ __NR_socket, "socket", CALL_SOCKET, -1, -1, -1 },
	{ __NR_clone, "clone", CALL_FORK, -1, -1, -1 },
#ifdef __NR_fork
	{ __NR_fork, "fork", CALL_FORK, -1, -1, -1 },
	{ __NR_vfork, "vfork", CALL_FORK, -1, -1, -1 },
#endif
};

const struct call_info *uar_call_find(int nr)
{
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (calls[i].nr == nr)
			return &calls[i];
	return NULL;
}

struct filter {
	struct sock_filter at[UAR_LIMIT_SANDBOX_FILTER];
	unsigned short n;
	bool full;
};

static void add(struct filter *f, struct sock_filter i)
{
	if (f->n == UAR_LIMIT_SANDBOX_FILTER)
		f->full = true;
	else
		f->at[f->n++] = i;
}

static void load(struct filter *f, size_t offset)
{
	add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

static void answer(struct filter *f, unsigned value)
{
	add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, value));
}

/* When the loaded word is `k`: answer so. */
static void when(struct filter *f, unsigned k, unsigned value)
{
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, 0, 1));
	answer(f, value);
}

static unsigned refused(int number)
{
	return SECCOMP_RET_ERRNO | ((unsigned)number & SECCOMP_RET_DATA);
}

/* The low half of an argument. */
static size_t arg(int i)
{
	return offsetof(struct seccomp_data, args) + (size_t)i * sizeof(uint64_t);
}

/* clone: new namespaces are refused; clone3 hides its flags in memory, so the C library is made
 * to use clone instead. */
static void add_clone(struct filter *f)
{
	unsigned spaces = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
			  CLONE_NEWNET | CLONE_NEWCGROUP;

#ifdef __NR_clone3
	when(f, __NR_clone3, refused(ENOSYS));
#endif
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 0, 4));
	load(f, arg(0));
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, spaces, 0, 1));
	answer(f, refused(EPERM));
	load(f, offsetof(struct seccomp_data, nr));
}

/* Input must not be put into a terminal that others read. */
static void add_ioctl(struct filter *f)
{
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_ioctl, 0, 4));
	load(f, arg(1));
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCSTI, 0, 1));
	answer(f, refused(EPERM));
	load(f, offsetof(struct seccomp_data, nr));
}

/* Does the profile restrict it? */
static bool is_restricted(const struct call_info *c, const struct uar_sandbox *s)
{
	if (c->access == CALL_SOCKET)
		return !s->network;
	if (c->access == CALL_FORK)
		return s->limits.processes != 0;
	return c->access == CALL_DENY || c->access == CALL_MUTE ||
	       s->mode != UAR_SANDBOX_FULL_ACCESS;
}

/* What is answered to a system call of the table; 0: it passes. Without a listener what Landlock
 * decides passes on to it. */
static unsigned verdict(const struct call_info *c, const struct uar_sandbox *s, bool told)
{
	if (!is_restricted(c, s))
		return 0;
	if (c->access == CALL_MUTE)
		return refused(EPERM);
	if (told)
		return SECCOMP_RET_USER_NOTIF;
	if (c->access == CALL_SOCKET)
		return refused(EACCES);
	return c->access == CALL_DENY ? refused(EPERM) : 0;
}

static void build(struct filter *f, const struct uar_sandbox *s, bool told)
{
	load(f, offsetof(struct seccomp_data, arch));
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
	answer(f, SECCOMP_RET_KILL_PROCESS);
	load(f, offsetof(struct seccomp_data, nr));
#if defined(__x86_64__)
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1));
	answer(f, SECCOMP_RET_KILL_PROCESS);
#endif
	add_clone(f);
	add_ioctl(f);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		unsigned v = verdict(&calls[i], s, told);

		if (v)
			when(f, (unsigned)calls[i].nr, v);
	}
	answer(f, SECCOMP_RET_ALLOW);
}

static int install(struct filter *f, unsigned flags)
{
	struct sock_fprog program = { .len = f->n, .filter = f->at };

	return (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

int uar_confine_calls(const struct uar_sandbox *s, const struct uar_sandbox_probe *p, bool *out_ok)
{
	struct filter f = { .n = 0 };
	int listener = -1;

	build(&f, s, p->notify);
	if (f.full) {
		*out_ok = false;
		return -1;
	}
	if (p->notify)
		listener = install(&f, SECCOMP_FILTER_FLAG_NEW_LISTENER);
	*out_ok = p->notify ? listener >= 0 : install(&f, 0) == 0;
	return listener;
}
