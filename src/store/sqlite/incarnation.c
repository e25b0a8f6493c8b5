/* incarnation.c - which history is this? Asked once, when a store is opened.
 *
 * A file that was copied, restored from an older copy, or whose log has lost its end goes on as a
 * new incarnation: clients that know the old history must not take its cursors for places in
 * this one. */
#include "store/sqlite/sqlite_int.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

uar_err sq_log_sum_at(struct sq_conn *c, int64_t pos, int64_t *out, struct uar_error *error)
{
	sqlite3_stmt *st;
	uar_err e = sq_first(c, SQ_LOG_SUM, SQ_VALS(SQ_I(pos)), &st, error);

	*out = -1;
	if (e == UAR_ENOTFOUND)
		return UAR_OK;
	if (e)
		return e;
	*out = sqlite3_column_int64(st, 0);
	sq_done(st);
	return UAR_OK;
}

/* Where the log ends. */
static uar_err read_end(struct sq_conn *c, struct sq_mark *out, struct uar_error *error)
{
	sqlite3_stmt *st;
	int64_t sum = 0;
	uar_err e = sq_first(c, SQ_HEAD, NULL, 0, &st, error);

	if (e == UAR_ENOTFOUND)
		return uar_error_set(error, UAR_ECORRUPT, "uar.db has no head");
	if (e)
		return e;
	out->pos = sqlite3_column_int64(st, 0);
	sq_done(st);
	e = out->pos ? sq_log_sum_at(c, out->pos, &sum, error) : UAR_OK;
	out->sum = (uint32_t)sum;
	return e;
}

static uar_err read_stored(struct sq_conn *c, struct sq_mark *out, struct uar_error *error)
{
	sqlite3_stmt *st;
	uar_err e = sq_first(c, SQ_MARK, NULL, 0, &st, error);

	if (e)
		return e == UAR_ENOTFOUND ? UAR_OK : e;
	if (sq_mark_read(sq_text(st, 0), out))
		*out = (struct sq_mark){ 0 }; /* it is written anew */
	sq_done(st);
	return UAR_OK;
}

static uar_err read_view(struct sq_store *s, struct sq_mark_view *v, struct uar_error *error)
{
	struct sq_conn *c = &s->writer.conn;
	int64_t sum = 0;
	uar_err e = sq_mark_load(s->dir_fd, &v->file, &v->moved, error);

	if (e == UAR_ECORRUPT) {
		uar_log(s->log, UAR_LOG_WARN, "store.mark_damaged",
			{ "detail", uar_str_c(error->text) });
		*error = (struct uar_error){ 0 };
		e = UAR_OK;
	}
	if (!e)
		e = read_stored(c, &v->stored, error);
	if (!e)
		e = read_end(c, &v->here, error);
	if (!e && v->file.pos > 0 && v->file.pos <= v->here.pos) {
		e = sq_log_sum_at(c, v->file.pos, &sum, error);
		v->row_differs = sum != (int64_t)v->file.sum;
	}
	sq_mark_place(s->writer.hold.db_fd, &v->here);
	return e;
}

static void report_history(const struct sq_store *s, enum sq_history h,
			   const struct sq_mark_view *v)
{
	static const struct {
		const char *event, *text;
		enum uar_log_level level;
	} rows[] = {
		[SQ_COPIED] = { "store.copied", "uar.db is a copy of the file that it was",
				UAR_LOG_WARN },
		[SQ_CUT] = { "store.tail_missing",
			     "acknowledged facts are missing: the end of uar.db-wal is gone, or an "
			     "older copy was restored",
			     UAR_LOG_ERROR },
		[SQ_OTHER] = { "store.other_history",
			       "the log is another one than was acknowledged: another copy was "
			       "restored",
			       UAR_LOG_ERROR },
		[SQ_PUT_BACK] = { "store.put_back",
				  "an earlier copy was restored into the same files",
				  UAR_LOG_WARN },
	};
	char known[24], here[24], now[24];

	snprintf(known, sizeof known, "%lld", (long long)v->file.pos);
	snprintf(here, sizeof here, "%lld", (long long)v->here.pos);
	snprintf(now, sizeof now, "%llu", (unsigned long long)v->here.incarnation);
	uar_log(s->log, rows[h].level, rows[h].event, { "detail", uar_str_c(rows[h].text) },
		{ "acknowledged", uar_str_c(known) }, { "position", uar_str_c(here) },
		{ "incarnation", uar_str_c(now) });
}

static uar_err set_stored(struct sq_conn *c, const struct sq_mark *m, struct uar_error *error)
{
	char text[SQ_MARK_TEXT + 1];

	sq_mark_write(m, text);
	return sq_run(c, SQ_MARK_SET, SQ_VALS(SQ_T(uar_str_n(text, SQ_MARK_TEXT))), error);
}

enum { MARK_FLAGS = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK };

static bool write_mark_to(struct sq_mark_file *f, int fd, const struct sq_mark *here)
{
	f->fd = fd;
	f->acked = *here;
	f->acked.of_mark = true;
	f->written = -1;
	if (fd >= 0)
		sq_mark_place(fd, &f->acked);
	return fd >= 0 && sq_mark_flush(f);
}

/* Writes the mark to uar.mark.new, then renames it: uar.mark is never incomplete. */
static bool replace_mark_file(struct sq_store *s, const struct sq_mark *here)
{
	struct sq_mark_file *f = &s->writer.mark;
	int fd = openat(s->dir_fd, "uar.mark.new", MARK_FLAGS | O_CREAT | O_TRUNC, 0600), why;

	if (write_mark_to(f, fd, here) &&
	    !renameat(s->dir_fd, "uar.mark.new", s->dir_fd, "uar.mark"))
		return true;
	why = errno;
	if (fd >= 0) {
		close(fd);
		unlinkat(s->dir_fd, "uar.mark.new", 0);
	}
	f->fd = -1;
	errno = why;
	return false;
}

/* On a full disk the old mark is kept, unless the incarnation is new: the next start would not
 * notice that one. */
static uar_err keep_mark(struct sq_store *s, const struct sq_mark_view *v, bool is_new,
			 struct uar_error *error)
{
	struct stat st;
	uar_err e = UAR_OK;

	if (is_new || !v->stored.incarnation)
		e = set_stored(&s->writer.conn, &v->here, error);
	if (e == UAR_EDISKFULL && !is_new) {
		*error = (struct uar_error){ 0 };
		return UAR_OK;
	}
	if (e)
		return e;
	if (!fstatat(s->dir_fd, "uar.mark", &st, AT_SYMLINK_NOFOLLOW) && !S_ISREG(st.st_mode))
		return uar_error_set(error, UAR_EIO, "uar.mark: not a regular file");
	if (replace_mark_file(s, &v->here))
		return UAR_OK;
	if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG)
		return uar_error_set(error, UAR_EIO, "uar.mark: %s", strerror(errno));
	if (is_new)
		return uar_error_set(error, UAR_EDISKFULL, "uar.mark: %s", strerror(errno));
	(void)write_mark_to(&s->writer.mark, openat(s->dir_fd, "uar.mark", MARK_FLAGS), &v->here);
	return UAR_OK;
}

bool sq_mark_flush(struct sq_mark_file *f)
{
	char text[SQ_MARK_TEXT + 1];
	ssize_t n;

	f->at = uar_clock_mono(&uar_clock_system);
	if (f->fd < 0 || f->written == f->acked.pos)
		return true;
	f->written = f->acked.pos;
	sq_mark_write(&f->acked, text);
	n = pwrite(f->fd, text, SQ_MARK_TEXT, 0);
	if (n >= 0 && n < SQ_MARK_TEXT)
		errno = ENOSPC;
	return n == SQ_MARK_TEXT;
}

uar_err sq_incarnation_open(struct sq_store *s, struct uar_error *error)
{
	struct sq_mark_view v = { .row_differs = false };
	enum sq_history h;
	uar_err e = read_view(s, &v, error);

	if (e)
		return e;
	h = sq_mark_compare(&v);
	if (h != SQ_SAME)
		v.here.incarnation = sq_mark_next(&v, uar_clock_wall(&uar_clock_system));
	else
		v.here.incarnation = v.stored.incarnation ? v.stored.incarnation
				     : v.file.incarnation ? v.file.incarnation
							  : 1;
	if (h != SQ_SAME)
		report_history(s, h, &v);
	e = keep_mark(s, &v, h != SQ_SAME, error);
	s->base.incarnation = v.here.incarnation;
	return e;
}
