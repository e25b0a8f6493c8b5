/* mark.c - the text of a mark, its place, and what a comparison means. */
#include "store/sqlite/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/crc32c.h"

static const char magic[] = "uar-mark-"; /* "1 " with the place of uar.db, "2 " of itself */
enum { SUMMED = SQ_MARK_TEXT - 9 };	 /* before the sum of the text itself */

void sq_mark_write(const struct sq_mark *m, char out[SQ_MARK_TEXT + 1])
{
	snprintf(out, SQ_MARK_TEXT + 1,
		 "%s%c %016" PRIx64 " %016" PRIx64 " %08" PRIx32 " %016" PRIx64 " %016" PRIx64
		 " %016" PRIx64 " ",
		 magic, m->of_mark ? '2' : '1', m->incarnation, (uint64_t)m->pos, m->sum, m->device,
		 m->inode, (uint64_t)m->born_us);
	snprintf(out + SUMMED, 10, "%08" PRIx32 "\n", uar_crc32c(0, out, SUMMED));
}

/* The next `digits` hex digits, and behind them a space, or at last the end of the line. */
static bool take_hex(uar_str *rest, size_t digits, uint64_t *out)
{
	static const char hex[] = "0123456789abcdef";
	uint64_t v = 0;

	if (rest->n < digits + 1 || rest->p[digits] != (rest->n == digits + 1 ? '\n' : ' '))
		return false;
	for (size_t i = 0; i < digits; i++) {
		const char *at = memchr(hex, rest->p[i], 16);

		if (!at)
			return false;
		v = v << 4 | (uint64_t)(at - hex);
	}
	*out = v;
	*rest = uar_str_n(rest->p + digits + 1, rest->n - digits - 1);
	return true;
}

uar_err sq_mark_read(uar_str text, struct sq_mark *out)
{
	static const size_t digits[] = { 16, 16, 8, 16, 16, 16, 8 };
	uint64_t v[7];
	uar_str rest;
	char kind;

	if (text.n != SQ_MARK_TEXT || memcmp(text.p, magic, sizeof magic - 1) != 0)
		return UAR_ECORRUPT;
	kind = text.p[sizeof magic - 1];
	if ((kind != '1' && kind != '2') || text.p[sizeof magic] != ' ')
		return UAR_ECORRUPT;
	rest = uar_str_from(text, sizeof magic + 1);
	for (size_t i = 0; i < 7; i++)
		if (!take_hex(&rest, digits[i], &v[i]))
			return UAR_ECORRUPT;
	if (v[6] != uar_crc32c(0, text.p, SUMMED) || !v[0] || v[0] > INT64_MAX || v[1] > INT64_MAX)
		return UAR_ECORRUPT;
	*out = (struct sq_mark){ v[0], (int64_t)v[1], (uint32_t)v[2], v[3],
				 v[4], (int64_t)v[5], kind == '2' };
	return UAR_OK;
}

void sq_mark_place(int fd, struct sq_mark *out)
{
	struct statx x;
	struct stat st;

	out->born_us = 0;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &x) == 0) {
		out->device = makedev(x.stx_dev_major, x.stx_dev_minor);
		out->inode = x.stx_ino;
		if (x.stx_mask & STATX_BTIME)
			out->born_us = x.stx_btime.tv_sec * 1000000 + x.stx_btime.tv_nsec / 1000;
	} else if (fstat(fd, &st) == 0) { /* some sandboxes know no other */
		out->device = st.st_dev;
		out->inode = st.st_ino;
	}
}

bool sq_mark_same_place(const struct sq_mark *a, const struct sq_mark *b)
{
	bool both_born = a->born_us && b->born_us;

	if (a->inode != b->inode || (both_born && a->born_us != b->born_us))
		return false;
	return both_born || a->device == b->device;
}

static bool is_blank(const char *p, ssize_t n)
{
	while (n > 0 && p[n - 1] == 0)
		n--;
	return n == 0;
}

uar_err sq_mark_load(int dir_fd, struct sq_mark *out, bool *out_moved, struct uar_error *error)
{
	char text[SQ_MARK_TEXT + 1];
	struct sq_mark at = { 0 }, m = { 0 };
	int fd = openat(dir_fd, "uar.mark", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
	int why = errno;

	if (fd >= 0) {
		sq_mark_place(fd, &at);
		close(fd);
	}
	if (n < 0 && (fd >= 0 || why != ENOENT))
		return uar_error_set(error, UAR_EIO, "uar.mark: %s", strerror(why));
	if (n > 0 && !is_blank(text, n) && sq_mark_read(uar_str_n(text, (size_t)n), &m))
		return uar_error_set(error, UAR_ECORRUPT, "uar.mark is damaged");
	*out = m;
	if (out_moved)
		*out_moved = m.of_mark && !sq_mark_same_place(&m, &at);
	return UAR_OK;
}

enum sq_history sq_mark_compare(const struct sq_mark_view *v)
{
	const struct sq_mark *known[] = { &v->stored, &v->file };

	for (size_t i = 0; i < 2; i++)
		if (known[i]->incarnation && !known[i]->of_mark &&
		    !sq_mark_same_place(known[i], &v->here))
			return SQ_COPIED;
	if (!v->file.incarnation)
		return SQ_SAME;
	if (v->file.pos > v->here.pos)
		return SQ_CUT;
	if (v->stored.incarnation && v->file.incarnation > v->stored.incarnation)
		return SQ_OTHER;
	if (v->row_differs)
		return SQ_OTHER;
	return v->moved ? SQ_PUT_BACK : SQ_SAME;
}

uint64_t sq_mark_next(const struct sq_mark_view *v, int64_t wall_us)
{
	uint64_t now = wall_us > 0 ? (uint64_t)wall_us / 1000000 : 0;
	uint64_t last = v->stored.incarnation > v->file.incarnation ? v->stored.incarnation
								    : v->file.incarnation;

	last = last ? last : 1;
	return now > last ? now : last + 1;
}
