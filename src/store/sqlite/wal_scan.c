/* wal_scan.c - reads a write-ahead log as SQLite does, and what is behind its end.
 *
 * Each frame has a sum over itself and the sum of the frame before, and the salts of its
 * log; those of earlier logs, which the file still holds further on, have others. SQLite
 * ends at the first frame that is not right. A commit is acknowledged after its frames
 * are synced, and the next one is written after that; one that a killed process had not
 * synced is, before anybody goes on from it (sq_wal_sync). So with a disk that keeps its word
 * at most one transaction is behind that end, in any part and order, and its commit frame
 * is its last. Leftovers of transactions that were rolled back may follow; nothing was
 * ever written on top of them.
 *
 * Hence the rule: there is damage if behind the break two frames in a row have the salts
 * of this log and are right, each upon the stored sum of the one before it, and the
 * first of them is a commit. The second was written by somebody who went on from that
 * commit, so it was complete and told of. One broken frame does not hide it: the sum
 * that is stored with a frame is all that the next one needs.
 *
 * The head is synced before the first frame and lies in one sector, so it is never torn.
 * Behind one that is broken the first frame says whose salts count. These frames may be of
 * an earlier log, and folded in, if a new log had got a head and no frame yet: that moment
 * is short, so they are taken for what they most likely are.
 *
 * A start scans, too, not `uar check` alone: SQLite would write over the commits behind the
 * damage, which until then can be saved by hand (docs/recovery.md). */
#include "store/sqlite/wal_scan.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

enum {
	MAGIC = 0x377f0682, /* | 1: sums are big-endian */
	PAGE = 4096,	    /* ours, should the head not know */
	CHUNK = 1 << 18,
};

static uint32_t be32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return be32toh(v);
}

static inline void add_words(bool big, uint32_t sum[2], const uint8_t *p, size_t n)
{
	uint32_t a = sum[0], b = sum[1];

	for (size_t i = 0; i + 8 <= n; i += 8) {
		uint32_t v[2];

		memcpy(v, p + i, sizeof v);
		a = (a + (big ? be32toh(v[0]) : le32toh(v[0]))) + b;
		b = (b + (big ? be32toh(v[1]) : le32toh(v[1]))) + a;
	}
	sum[0] = a;
	sum[1] = b;
}

/* Two loops, so that none asks for the order each time. */
static void add_sum(bool big, uint32_t sum[2], const uint8_t *p, size_t n)
{
	if (big)
		add_words(true, sum, p, n);
	else
		add_words(false, sum, p, n);
}

static bool is_page_size(uint32_t n)
{
	return n >= 512 && n <= 65536 && (n & (n - 1)) == 0;
}

void sq_wal_begin(struct sq_wal_scan *s, const uint8_t head[SQ_WAL_HEAD])
{
	uint32_t magic = be32(head), page = be32(head + 8), sum[2] = { 0, 0 };
	bool fine = (magic & ~1u) == MAGIC && is_page_size(page);

	*s = (struct sq_wal_scan){ .prev = { be32(head + 24), be32(head + 28) } };
	s->big = magic & 1;
	memcpy(s->salts, head + 16, sizeof s->salts);
	add_sum(s->big, sum, head, 24);
	fine = fine && sum[0] == s->prev[0] && sum[1] == s->prev[1];
	s->frame_bytes = SQ_WAL_FRAME_HEAD + (fine ? page : PAGE);
	s->head_broken = s->broken = !fine;
	if (!fine)
		s->big = __BYTE_ORDER == __BIG_ENDIAN;
}

/* Upon the sum that is stored with the one before it. */
static bool is_right(const struct sq_wal_scan *s, const uint8_t *frame)
{
	uint32_t sum[2] = { s->prev[0], s->prev[1] };

	if (memcmp(frame + 8, s->salts, sizeof s->salts) != 0 || !be32(frame))
		return false;
	add_sum(s->big, sum, frame, 8);
	add_sum(s->big, sum, frame + SQ_WAL_FRAME_HEAD, s->frame_bytes - SQ_WAL_FRAME_HEAD);
	return sum[0] == be32(frame + 16) && sum[1] == be32(frame + 20);
}

void sq_wal_frame(struct sq_wal_scan *s, const uint8_t *frame)
{
	bool right;

	if (s->at++ == 0 && s->head_broken)
		memcpy(s->salts, frame + 8, sizeof s->salts);
	right = is_right(s, frame);
	if (s->broken) {
		s->commits += right && s->after_commit;
		s->after_commit = right && be32(frame + 4) != 0;
	} else if (!right) {
		s->broken = true;
		s->first = s->at;
	} else {
		s->held += be32(frame + 4) != 0;
	}
	s->prev[0] = be32(frame + 16);
	s->prev[1] = be32(frame + 20);
}

/* As much as there is, up to n; negative: an error. */
static ssize_t read_all(int fd, uint8_t *p, size_t n, off_t at)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = pread(fd, p + got, n - got, at + (off_t)got);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -1;
		if (r == 0)
			break;
		got += (size_t)r;
	}
	return (ssize_t)got;
}

static bool read_frames(int fd, struct sq_wal_scan *s, uint8_t *chunk)
{
	size_t want = CHUNK / s->frame_bytes * s->frame_bytes;
	off_t at = SQ_WAL_HEAD;
	ssize_t n;

	do {
		n = read_all(fd, chunk, want, at);
		for (ssize_t i = 0; i + (ssize_t)s->frame_bytes <= n; i += (ssize_t)s->frame_bytes)
			sq_wal_frame(s, chunk + i);
		at += n;
	} while (n == (ssize_t)want);
	return n >= 0;
}

static uar_err read_log(int fd, struct sq_wal_scan *s, struct uar_error *error)
{
	uint8_t *chunk = uar_alloc(CHUNK);
	ssize_t n = chunk ? read_all(fd, chunk, SQ_WAL_HEAD, 0) : 0;
	uar_err e = chunk ? UAR_OK : UAR_ENOMEM;

	if (n == SQ_WAL_HEAD) {
		sq_wal_begin(s, chunk);
		n = read_frames(fd, s, chunk) ? 0 : -1;
	}
	if (n < 0)
		e = UAR_EIO;
	if (e)
		uar_error_set(error, e, "uar.db-wal: %s",
			      e == UAR_EIO ? strerror(errno) : uar_err_text(e));
	uar_free(chunk);
	return e;
}

uar_err sq_wal_scan(int dir_fd, struct sq_wal_scan *out, struct uar_error *error)
{
	int fd = openat(dir_fd, "uar.db-wal", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct sq_wal_scan s = { 0 };
	uar_err e;

	if (fd < 0 && errno != ENOENT)
		return uar_error_set(error, UAR_EIO, "uar.db-wal: %s", strerror(errno));
	e = fd < 0 ? UAR_OK : read_log(fd, &s, error);
	if (fd >= 0)
		close(fd);
	if (!e)
		*out = s;
	return e;
}

uar_err sq_wal_sync(int dir_fd, struct uar_error *error)
{
	int fd = openat(dir_fd, "uar.db-wal", O_RDONLY | O_CLOEXEC | O_NONBLOCK), e = 0;

	if (fd < 0 && errno != ENOENT)
		return uar_error_set(error, UAR_EIO, "uar.db-wal: %s", strerror(errno));
	if (fd >= 0) {
		e = fdatasync(fd) ? errno : 0;
		close(fd);
	}
	return e ? uar_error_set(error, UAR_ESYNC, "uar.db-wal: %s", strerror(e)) : UAR_OK;
}

void sq_wal_tell(const struct sq_wal_scan *s, char out[SQ_WAL_TEXT])
{
	char what[48] = "its head";

	if (s->first)
		snprintf(what, sizeof what, "frame %llu", (unsigned long long)s->first);
	snprintf(out, SQ_WAL_TEXT,
		 "uar.db-wal: %s is damaged, with at least %llu commit%s behind it", what,
		 (unsigned long long)s->commits, s->commits == 1 ? "" : "s");
}
