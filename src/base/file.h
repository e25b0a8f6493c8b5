/* file.h - a file that somebody else wrote, read whole and within bounds. */
#ifndef UAR_BASE_FILE_H
#define UAR_BASE_FILE_H

#include "base/buf.h"

/* Appends a regular file of at most what `out` may hold. Nothing can make it wait: a
 * FIFO or a device is not a file (UAR_EINVALID). UAR_ENOTFOUND, UAR_ETOOBIG, UAR_EIO;
 * the text of `error` is the reason alone, without the path. */
UAR_MUST_CHECK uar_err uar_file_read(const char *path, struct uar_buf *out,
				     struct uar_error *error);

#endif
