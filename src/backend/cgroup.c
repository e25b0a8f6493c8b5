/* cgroup.c - a control group (version 2) for each run, where one may be made.
 *
 * The supervisor finds every process of a run as long as it lives. If somebody kills it, the
 * processes that had detached themselves are nobody's; a group still knows them. It is made below
 * the group of the host, the supervisor enters it before it starts anything, and it goes when the
 * run is over. Where it cannot be made the run does without. One that still has a process then,
 * which nothing could kill, is remembered, and goes when the next one is made or a backend ends. */
#include "backend/child.h"
#include "backend/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 4096, LOOK_US = 5000 };

/* The rest of the line of /proc/self/cgroup that begins with "0::". */
static bool own_group(char out[UAB_CGROUP_PATH])
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[LINE_BYTES];
	bool found = false;

	while (f && !found && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		found = strncmp(line, "0::", 3) == 0 && strlen(line + 3) < UAB_CGROUP_PATH;
		if (found)
			snprintf(out, UAB_CGROUP_PATH, "%.*s", UAB_CGROUP_PATH - 1, line + 3);
	}
	if (f)
		fclose(f);
	return found && !strstr(out, "/.."); /* seen from another namespace */
}

/* Where the hierarchy is mounted as a whole: "ID PARENT MAJ:MIN / POINT ... - cgroup2 ..." */
static bool mount_point(char out[UAB_CGROUP_PATH])
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[LINE_BYTES], root[256], point[512];
	bool found = false;

	while (f && !found && fgets(line, sizeof line, f))
		found = strstr(line, " - cgroup2 ") &&
			sscanf(line, "%*d %*d %*s %255s %511s", root, point) == 2 &&
			!strcmp(root, "/") && !strchr(point, '\\');
	if (f)
		fclose(f);
	if (found)
		snprintf(out, UAB_CGROUP_PATH, "%s", point);
	return found;
}

static bool default_parent(char out[UAB_CGROUP_PATH])
{
	char group[UAB_CGROUP_PATH], point[UAB_CGROUP_PATH];
	int n;

	if (!own_group(group) || !mount_point(point))
		return false;
	n = snprintf(out, UAB_CGROUP_PATH, "%s%s", point, strcmp(group, "/") ? group : "");
	return n > 0 && n < UAB_CGROUP_PATH;
}

void uab_cgroup_parent(uaa_str configured, char out[UAB_CGROUP_PATH])
{
	out[0] = 0;
	if (!configured.ptr)
		(void)(default_parent(out) || (out[0] = 0));
	else if (configured.len < UAB_CGROUP_PATH)
		snprintf(out, UAB_CGROUP_PATH, "%.*s", (int)configured.len, configured.ptr);
}

/* --- groups that could not be removed -------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	char *path[UAR_LIMIT_AGENT_GROUPS_LEFT];
	size_t count;
} left = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* With more than are remembered, or without memory, it stays. */
static void remember(const char *group)
{
	char *path;

	pthread_mutex_lock(&left.lock);
	path = left.count < UAR_LIMIT_AGENT_GROUPS_LEFT ? uar_strdup_n(group, strlen(group)) : NULL;
	if (path)
		left.path[left.count++] = path;
	pthread_mutex_unlock(&left.lock);
}

void uab_cgroup_tidy(void)
{
	size_t kept = 0;

	pthread_mutex_lock(&left.lock);
	for (size_t i = 0; i < left.count; i++) {
		if (rmdir(left.path[i]) && errno != ENOENT)
			left.path[kept++] = left.path[i];
		else
			uar_free(left.path[i]);
	}
	left.count = kept;
	pthread_mutex_unlock(&left.lock);
}

/* --- the group of a run ---------------------------------------------------------------------- */

void uab_cgroup_make(const char *parent, char out[UAB_CGROUP_PATH])
{
	static atomic_uint number;
	int n;

	out[0] = 0;
	if (!parent || !parent[0])
		return;
	uab_cgroup_tidy();
	n = snprintf(out, UAB_CGROUP_PATH, "%s/agent-api-%ld-%u", parent, (long)getpid(),
		     atomic_fetch_add(&number, 1));
	if (n < 0 || n >= UAB_CGROUP_PATH || mkdir(out, 0755))
		out[0] = 0;
}

static int open_in(const char *group, const char *name, int flags)
{
	char path[UAB_CGROUP_PATH + 32];

	snprintf(path, sizeof path, "%s/%s", group, name);
	return open(path, flags | O_CLOEXEC);
}

/* Kernels before 5.14 have no such file; there each process is killed by its number. */
static void kill_members(const char *group)
{
	int fd = open_in(group, "cgroup.kill", O_WRONLY);
	FILE *f;
	long pid;

	if (fd >= 0) {
		ssize_t n = write(fd, "1", 1);

		close(fd);
		if (n == 1)
			return;
	}
	fd = open_in(group, "cgroup.procs", O_RDONLY);
	f = fd >= 0 ? fdopen(fd, "r") : NULL;
	while (f && fscanf(f, "%ld", &pid) == 1)
		if (pid > 1)
			kill((pid_t)pid, SIGKILL);
	if (f)
		fclose(f);
}

static bool is_empty(const char *group)
{
	int fd = open_in(group, "cgroup.events", O_RDONLY);
	char text[256];
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return strstr(text, "populated 0") != NULL;
}

bool uab_cgroup_sweep(const char *group, int64_t until_us)
{
	const struct timespec pause = { 0, LOOK_US * 1000 };

	while (!is_empty(group)) {
		kill_members(group);
		if (uab_now_us() >= until_us)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

void uab_cgroup_remove(char group[UAB_CGROUP_PATH])
{
	if (group[0] && rmdir(group) && errno != ENOENT) /* the supervisor may have done it */
		remember(group);
	group[0] = 0;
}
