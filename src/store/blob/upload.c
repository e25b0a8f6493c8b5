/* upload.c - a blob that arrives in pieces: written and hashed as they come.
 *
 * The file has a name below blobs/tmp until it is whole; then it is synced and
 * gets the name of its hash. An upload that is dropped takes its file with it,
 * also after the store is gone. */
#include "store/blob/files_int.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/sha256.h"

struct upload {
	struct uar_upload base; /* first */
	int blobs_fd, fd;	/* its own */
	struct uar_sha256 sum;
	uint64_t total;
	char temp[32];
};

static struct upload *upload_of(struct uar_upload *base)
{
	return (struct upload *)(void *)base;
}

static void close_all(struct upload *u)
{
	if (u->fd >= 0)
		close(u->fd);
	if (u->blobs_fd >= 0)
		close(u->blobs_fd);
	uar_free(u);
}

static void drop(struct uar_upload *base)
{
	struct upload *u = upload_of(base);

	if (u->fd >= 0)
		unlinkat(u->blobs_fd, u->temp, 0);
	close_all(u);
}

static uar_err begin(int blobs_fd, struct uar_upload **out, struct uar_error *error)
{
	struct upload *u = uar_zalloc(sizeof *u);
	uar_err e = UAR_OK;

	if (!u)
		return UAR_ENOMEM;
	u->base.drop = drop;
	u->fd = -1;
	u->blobs_fd = fcntl(blobs_fd, F_DUPFD_CLOEXEC, 3);
	snprintf(u->temp, sizeof u->temp, "tmp/%016llx",
		 (unsigned long long)uar_rand_u64(&uar_rand_system));
	uar_sha256_init(&u->sum);
	if (u->blobs_fd < 0) {
		e = bf_fail(error, UAR_EIO, "dup");
	} else {
		u->fd = openat(u->blobs_fd, u->temp,
			       O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		e = u->fd < 0 ? bf_fail(error, UAR_EIO, "create") : UAR_OK;
	}
	if (e) {
		drop(&u->base);
		return e;
	}
	*out = &u->base;
	return UAR_OK;
}

static uar_err append(struct upload *u, uar_str bytes, uint64_t most, struct uar_error *error)
{
	if (bytes.n > most - u->total)
		return uar_error_set(error, UAR_ETOOBIG, "more than %llu bytes",
				     (unsigned long long)most);
	uar_sha256_add(&u->sum, bytes);
	u->total += bytes.n;
	while (bytes.n) {
		ssize_t n = write(u->fd, bytes.p, bytes.n);

		if (n < 0 && errno != EINTR)
			return bf_fail(error, UAR_EIO, "write");
		bytes = uar_str_from(bytes, n < 0 ? 0 : (size_t)n);
	}
	return UAR_OK;
}

static uar_err finish(struct bf *b, struct upload *u, struct uar_upload_op *op,
		      const struct uar_blob_runs *runs)
{
	char *out_sha256 = op->sha256;

	uar_sha256_end(&u->sum, out_sha256);
	if (op->expect.n && !uar_str_is(op->expect, out_sha256))
		return uar_error_set(&op->error, UAR_EINVALID, "the bytes have another sha256");
	if (op->stage)
		return bf_stage_put(b, op->stage,
				    &(struct bf_written){ u->temp, out_sha256, u->fd }, runs,
				    &op->error);
	bf_kept_add(&b->kept, out_sha256);
	return bf_adopt(u->blobs_fd, u->temp, u->fd, out_sha256, &op->error);
}

static uar_err step(struct bf *b, struct uar_upload_op *op, const struct uar_blob_runs *runs)
{
	struct upload *u;
	uar_err e = op->upload ? UAR_OK : begin(b->fd, &op->upload, &op->error);

	if (!e)
		e = append(upload_of(op->upload), op->bytes, b->upload_max, &op->error);
	if (!e && op->finish)
		e = finish(b, upload_of(op->upload), op, runs);
	u = op->upload ? upload_of(op->upload) : NULL;
	op->total = u ? u->total : 0;
	if (!e && !op->finish)
		return UAR_OK;
	op->upload = NULL;
	if (u && e)
		drop(&u->base);
	else if (u)
		close_all(u);
	return e;
}

uar_err bf_upload(struct uar_blobs *base, struct uar_upload_op *op,
		  const struct uar_blob_runs *runs)
{
	struct bf *b = bf_of(base);
	uar_err e = op->upload ? UAR_OK : bf_need_dir(b, &op->error);

	if (!e)
		e = op->adopt ? bf_stage_adopt(b, op) : step(b, op, runs);
	if (e && !op->error.code)
		uar_error_set(&op->error, e, "%s", uar_err_text(e));
	return e;
}
