/* registry_keep.c - the last good text of each file of the directory, so that a file which is
 * broken leaves what it said before, also after a restart.
 *
 * They are copies: when one cannot be kept, or is not there any more, nothing but that is lost. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/registry_int.h"
#include "base/buf.h"
#include "base/file.h"

enum { PATH_BYTES = 4096 };

static bool path_of(const struct uar_registry *r, const char *file, const char *more,
		    char out[PATH_BYTES])
{
	int n = r->o.keep_dir ? snprintf(out, PATH_BYTES, "%s/%s%s", r->o.keep_dir, file, more)
			      : -1;

	return n > 0 && n < PATH_BYTES;
}

uar_err uar_registry_kept(const struct uar_registry *r, const char *file, struct uar_buf *out)
{
	struct uar_error error = { 0 };
	char path[PATH_BYTES];

	return path_of(r, file, "", path) ? uar_file_read(path, out, &error) : UAR_ENOTFOUND;
}

static bool is_kept(const struct uar_registry *r, const char *file, uar_str text)
{
	struct uar_buf kept = uar_buf_make(UAR_LIMIT_AGENT_DEFINITION);
	bool same = !uar_registry_kept(r, file, &kept) && uar_str_eq(uar_buf_str(&kept), text);

	uar_buf_fini(&kept);
	return same;
}

static bool write_new(const char *path, uar_str text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool good = fd >= 0;

	while (good && text.n) {
		ssize_t n = write(fd, text.p, text.n);

		good = n > 0 || (n < 0 && errno == EINTR);
		text = uar_str_from(text, n > 0 ? (size_t)n : 0);
	}
	good = good && fsync(fd) == 0;
	return fd >= 0 && close(fd) == 0 && good;
}

void uar_registry_keep(const struct uar_registry *r, const char *file, uar_str text)
{
	char path[PATH_BYTES], new_path[PATH_BYTES];

	if (!path_of(r, file, "", path) || !path_of(r, file, ".new", new_path) ||
	    is_kept(r, file, text))
		return;
	mkdir(r->o.keep_dir, 0700);
	if (!write_new(new_path, text) || rename(new_path, path))
		uar_registry_tell(r, UAR_LOG_WARN, "agent.not_kept", file,
				  UAR_STR("if the file is broken at the next start, its agent is "
					  "not there"));
}

static int is_file(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static bool is_named(struct dirent **names, int n, const char *file)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(names[i]->d_name, file))
			return true;
	return false;
}

void uar_registry_keep_only(const struct uar_registry *r, struct dirent **names, int n)
{
	struct dirent **kept = NULL;
	int count = r->o.keep_dir ? scandir(r->o.keep_dir, &kept, is_file, NULL) : 0;
	char path[PATH_BYTES];

	for (int i = 0; i < count; i++) {
		if (!is_named(names, n, kept[i]->d_name) && path_of(r, kept[i]->d_name, "", path))
			unlink(path);
		free(kept[i]); /* scandir's */
	}
	free(kept);
}
