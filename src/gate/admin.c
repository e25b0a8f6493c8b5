/* admin.c - what the owner of a server looks at: its storage, its settings and its log.
 *
 * Lines of the log come from any thread into a ring (base/log.h); while somebody reads, a
 * timer brings what is new. A reader that is slow misses lines that the ring has lost, never
 * more, and its stream holds no memory for them. */
#include "gate/gate_int.h"
#include "gate/limits.h"

#include <ftw.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* --- storage -------------------------------------------------------------------------- */

struct sizes {
	uint64_t database, log, blobs, other, files;
	uint64_t free_bytes, total_bytes;
	bool whole; /* every file was counted */
};

struct storage {
	struct uar_work work;
	struct call *c; /* NULL: the gate is gone */
	struct sizes s;
	char dir[];
};

static _Thread_local struct sizes *counting;

static int count_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	const char *name = path + at->base;
	uint64_t n = (uint64_t)st->st_blocks * 512;

	if (kind != FTW_F)
		return 0;
	if (++counting->files > UAR_LIMIT_STORAGE_FILES) {
		counting->whole = false;
		return 1;
	}
	if (strcmp(name, "uar.db") == 0)
		counting->database += n;
	else if (strncmp(name, "uar.db-", 7) == 0)
		counting->log += n;
	else if (strstr(path, "/blobs/"))
		counting->blobs += n;
	else
		counting->other += n;
	return 0;
}

static void measure(struct uar_work *w)
{
	struct storage *m = UAR_OWNER(w, struct storage, work);
	struct statvfs v;

	m->s.whole = true;
	counting = &m->s;
	if (nftw(m->dir, count_file, 16, FTW_PHYS | FTW_MOUNT) < 0)
		m->s.whole = false;
	counting = NULL;
	if (statvfs(m->dir, &v) == 0) {
		m->s.free_bytes = (uint64_t)v.f_bavail * v.f_frsize;
		m->s.total_bytes = (uint64_t)v.f_blocks * v.f_frsize;
	}
}

static void put_health(struct uar_jw *w, const struct uar_reader_stats *s)
{
	static const char *const words[] = { [UAR_STORAGE_FINE] = "fine",
					     [UAR_STORAGE_FULL] = "full",
					     [UAR_STORAGE_DAMAGED] = "damaged",
					     [UAR_STORAGE_BROKEN] = "broken" };

	uar_jw_cstr(w, "health", words[s->health]);
	uar_jw_u64(w, "commits", s->commits);
	uar_jw_u64(w, "appends", s->appends);
	uar_jw_u64(w, "reads", s->reads);
	uar_jw_u64(w, "queued", s->queued);
	uar_jw_double(w, "commit_ms_mean",
		      s->commits ? (double)s->commit_us_total / 1e3 / (double)s->commits : 0);
	uar_jw_double(w, "commit_ms_max", (double)s->commit_us_max / 1e3);
}

static void measured(struct uar_work *work)
{
	struct storage *m = UAR_OWNER(work, struct storage, work);
	struct uar_buf b = uar_buf_make(4096);
	struct uar_jw w = uar_jw_begin(&b);
	struct uar_reader_stats stats;

	if (m->c) {
		uar_reader_stats(m->c->g->o.reader, &stats);
		uar_jw_obj(&w, NULL);
		uar_jw_cstr(&w, "data_dir", m->dir);
		uar_jw_u64(&w, "database_bytes", m->s.database);
		uar_jw_u64(&w, "write_ahead_bytes", m->s.log);
		uar_jw_u64(&w, "blob_bytes", m->s.blobs);
		uar_jw_u64(&w, "other_bytes", m->s.other);
		uar_jw_u64(&w, "files", m->s.files);
		uar_jw_bool(&w, "complete", m->s.whole);
		uar_jw_u64(&w, "free_bytes", m->s.free_bytes);
		uar_jw_u64(&w, "total_bytes", m->s.total_bytes);
		put_health(&w, &stats);
		uar_jw_close(&w);
		b.err = uar_jw_end(&w);
		gate_answer(m->c, 200, &b);
	}
	uar_buf_fini(&b);
	uar_free(m);
}

static void forget_call(struct call *c)
{
	struct storage *m = c->op;

	m->c = NULL;
}

void gate_admin_storage(struct call *c)
{
	const char *dir = c->g->o.data_dir ? c->g->o.data_dir : ".";
	size_t n = strlen(dir) + 1;
	struct storage *m = uar_zalloc(sizeof *m + n);
	uar_err e = UAR_ENOMEM;

	if (m) {
		m->c = c;
		memcpy(m->dir, dir, n);
		m->work.work = measure;
		m->work.done = measured;
		e = uar_work_begin(c->g->o.sched, &m->work);
	}
	if (e) {
		uar_free(m);
		gate_problem(c, e, NULL);
		return;
	}
	c->op = m;
	c->drop = forget_call;
}

/* --- settings ------------------------------------------------------------------------- */

void gate_admin_settings(struct call *c)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_SYSTEM_ANSWER_BYTES);
	uar_err e = UAR_ENOTIMPL;

	if (c->g->o.told.settings)
		e = c->g->o.told.settings(c->g->o.told.ctx, &b);
	if (e)
		gate_problem(c, e, NULL);
	else
		gate_answer(c, 200, &b);
	uar_buf_fini(&b);
}

/* --- the live log --------------------------------------------------------------------- */

enum { LOOK_US = 250000 };

struct gate_log {
	struct uar_gate *g;
	struct uar_list readers; /* of struct log_reader */
	size_t count;
	struct uar_timer timer; /* set while there are readers */
};

struct log_reader {
	struct gate_stream base;
	struct uar_list node; /* in gate_log.readers */
	struct gate_log *log;
	uint64_t last; /* number of the line that was sent last */
};

void gate_log_destroy(struct gate_log *l)
{
	if (!l)
		return;
	uar_timer_stop(l->g->o.sched, &l->timer);
	uar_free(l);
}

static void drop_reader(struct gate_stream *base)
{
	struct log_reader *r = UAR_OWNER(base, struct log_reader, base);

	gate_stream_forget(base);
	uar_list_remove(&r->node);
	r->log->count--;
	uar_free(r);
}

static void on_closed(void *ctx)
{
	struct log_reader *r = ctx;

	drop_reader(&r->base);
}

static uar_err put_line(struct uar_buf *b, uint64_t number, const char *line)
{
	struct uar_jw w;
	uar_err e;

	uar_buf_printf(b, "event: line\nid: %llu\ndata: ", (unsigned long long)number);
	w = uar_jw_begin(b);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "line", line);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	uar_buf_add_str(b, UAR_STR("\n\n"));
	return e ? e : b->err;
}

/* What the reader has no room for comes later, if the ring still has it. */
static void feed(struct log_reader *r)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_LOG_LINE * 8);
	char line[UAR_LIMIT_LOG_LINE];
	uint64_t n;
	uar_err e = UAR_OK;

	while (!e && !uar_http_stream_room(r->base.http) &&
	       (n = uar_log_out_next(r->log->g->o.log->out, r->last, line)) != 0) {
		struct uar_frame *frame;

		uar_buf_clear(&b);
		e = put_line(&b, n, line);
		frame = e ? NULL : uar_frame_create(uar_buf_str(&b));
		e = frame ? uar_http_stream_send(r->base.http, frame) : UAR_ENOMEM;
		uar_frame_unref(frame);
		if (!e) {
			r->last = n;
			r->base.taken = true;
		}
	}
	uar_buf_fini(&b);
}

static void on_writable(void *ctx)
{
	feed(ctx);
}

static void look(struct uar_timer *t)
{
	struct gate_log *l = UAR_OWNER(t, struct gate_log, timer);
	struct uar_list *next;

	for (struct uar_list *it = l->readers.next; it != &l->readers; it = next) {
		next = it->next;
		feed(UAR_OWNER(it, struct log_reader, node));
	}
	if (l->count && uar_timer_set(l->g->o.sched, t, LOOK_US))
		uar_log(l->g->o.log, UAR_LOG_WARN, "log.not_followed",
			{ "detail", UAR_STR("out of memory") });
}

static uar_err need_log(struct uar_gate *g)
{
	if (g->log)
		return UAR_OK;
	g->log = uar_zalloc(sizeof *g->log);
	if (!g->log)
		return UAR_ENOMEM;
	g->log->g = g;
	g->log->timer.fn = look;
	uar_list_init(&g->log->readers);
	return UAR_OK;
}

static uar_err open_log(struct call *c, struct uar_error *error)
{
	struct uar_gate *g = c->g;
	struct uar_http_stream_events events = { on_writable, on_closed, NULL };
	struct log_reader *r;
	uint64_t after = 0;
	uar_err e = g->draining ? UAR_EDRAINING : need_log(g);

	if (!e)
		e = gate_line_cursor(c, &after, error);
	if (!e && g->log->count >= UAR_LIMIT_LOG_READERS)
		e = uar_error_set(error, UAR_EBUSY, "at most %d readers of the log at once",
				  UAR_LIMIT_LOG_READERS);
	r = e ? NULL : uar_zalloc(sizeof *r);
	if (!r)
		return e ? e : UAR_ENOMEM;
	uar_list_init(&r->base.node);
	r->base.g = g;
	r->base.drop = drop_reader;
	r->log = g->log;
	r->last = after;
	events.ctx = r;
	e = gate_stream_open(&r->base, c, &events);
	if (e) {
		uar_free(r);
		return e;
	}
	uar_list_add_last(&g->log->readers, &r->node);
	g->log->count++;
	feed(r);
	if (g->log->count == 1 && uar_timer_set(g->o.sched, &g->log->timer, LOOK_US))
		uar_log(g->o.log, UAR_LOG_WARN, "log.not_followed",
			{ "detail", UAR_STR("out of memory") });
	return UAR_OK;
}

void gate_admin_log(struct call *c)
{
	struct uar_error error = { 0 };
	uar_err e = open_log(c, &error);

	if (e && e != UAR_ESKIP)
		gate_problem(c, e, &error);
}
