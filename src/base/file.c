/* file.c - open without waiting, look what it is, then read. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 16384 };

static uar_err failed(int number, struct uar_error *error)
{
	char reason[80];

	return uar_error_set(error, number == ENOENT ? UAR_ENOTFOUND : UAR_EIO, "%s",
			     strerror_r(number, reason, sizeof reason));
}

static uar_err read_all(int fd, struct uar_buf *out, struct uar_error *error)
{
	char piece[PIECE];
	ssize_t n = 1;

	while (n && !out->err) {
		n = read(fd, piece, sizeof piece);
		if (n > 0)
			uar_buf_add(out, piece, (size_t)n);
		else if (n < 0 && errno != EINTR)
			return failed(errno, error);
	}
	return out->err ? uar_error_set(error, out->err, "%s", uar_err_text(out->err)) : UAR_OK;
}

uar_err uar_file_read(const char *path, struct uar_buf *out, struct uar_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	uar_err e;

	if (fd < 0)
		return failed(errno, error);
	if (fstat(fd, &st))
		e = failed(errno, error);
	else if (!S_ISREG(st.st_mode))
		e = uar_error_set(error, UAR_EINVALID, "not a file");
	else
		e = read_all(fd, out, error);
	close(fd);
	return e;
}
