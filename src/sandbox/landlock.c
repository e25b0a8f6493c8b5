/* landlock.c - files: what is below the roots of the profile, and nothing else.
 *
 * The numbers are the kernel's ABI; headers of older systems lack the newer ones. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/confine_int.h"

enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446, RULE_PATH = 1, VERSION = 1 };

enum {
	FS_EXECUTE = 1 << 0,
	FS_WRITE_FILE = 1 << 1,
	FS_READ_FILE = 1 << 2,
	FS_READ_DIR = 1 << 3,
	FS_REFER = 1 << 13,
	FS_TRUNCATE = 1 << 14,
	FS_IOCTL_DEV = 1 << 15,
	FS_ALL_1 = (1 << 13) - 1, /* of the first ABI */
	FS_READ = FS_EXECUTE | FS_READ_FILE | FS_READ_DIR,
	FS_OF_FILE = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
	SCOPE_ALL = 3, /* abstract sockets, signals */
};

struct ruleset_attr {
	uint64_t fs, net, scoped;
};
struct path_attr {
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed));

const uar_str uar_confine_devices[] = { UAR_STR("/dev/null"),	 UAR_STR("/dev/zero"),
					UAR_STR("/dev/full"),	 UAR_STR("/dev/random"),
					UAR_STR("/dev/urandom"), UAR_STR("/dev/tty"),
					UAR_STR("/dev/pts") };
const size_t uar_confine_device_count = ARRAY_LEN(uar_confine_devices);

static uint64_t handled(int abi)
{
	uint64_t all = FS_ALL_1;

	if (abi >= 2)
		all |= FS_REFER;
	if (abi >= 3)
		all |= FS_TRUNCATE;
	if (abi >= 5)
		all |= FS_IOCTL_DEV;
	return all;
}

/* A root that is not there allows nothing. */
static bool allow(int ruleset, uar_str path, uint64_t access)
{
	char text[UAR_LIMIT_SANDBOX_PATH];
	struct path_attr rule = { .allowed = access };
	struct stat st;
	bool ok;

	memcpy(text, path.p, path.n);
	text[path.n] = 0;
	rule.fd = open(text, O_PATH | O_CLOEXEC);
	if (rule.fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES;
	if (fstat(rule.fd, &st) == 0 && !S_ISDIR(st.st_mode))
		rule.allowed &= FS_OF_FILE;
	ok = syscall(ADD_RULE, ruleset, RULE_PATH, &rule, 0) == 0;
	close(rule.fd);
	return ok;
}

static bool allow_all(int ruleset, const struct uar_sandbox *s, uint64_t all)
{
	bool ok = true;

	for (size_t i = 0; i < s->read_count && ok; i++)
		ok = allow(ruleset, s->read_roots[i], FS_READ);
	for (size_t i = 0; i < s->write_count && ok; i++)
		ok = allow(ruleset, s->write_roots[i], all & ~(uint64_t)FS_IOCTL_DEV);
	for (size_t i = 0; i < uar_confine_device_count && ok; i++)
		ok = allow(ruleset, uar_confine_devices[i],
			   all & (FS_READ_FILE | FS_READ_DIR | FS_WRITE_FILE | FS_TRUNCATE |
				  FS_IOCTL_DEV));
	return ok;
}

bool uar_confine_files(const struct uar_sandbox *s, int abi)
{
	struct ruleset_attr attr = { .fs = handled(abi), .scoped = abi >= 6 ? SCOPE_ALL : 0 };
	/* An older kernel refuses members that it does not know. */
	size_t size = abi >= 6 ? sizeof attr : sizeof attr.fs;
	int ruleset = (int)syscall(CREATE_RULESET, &attr, size, 0);
	bool ok;

	if (ruleset < 0)
		return false;
	ok = allow_all(ruleset, s, attr.fs) && syscall(RESTRICT_SELF, ruleset, 0) == 0;
	close(ruleset);
	return ok;
}
