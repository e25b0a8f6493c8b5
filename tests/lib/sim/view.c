/* view.c - the read models of a session: a fold that goes through snapshots again and again gives
 * the bytes of the fold from the first event. */
#include "core/view.h"
#include "event/limits.h"
#include "sim/checker.h"

enum { SNAPSHOT_EVERY = 16 };

struct folds {
	struct sim_checker *k;
	struct uar_sview whole, stored;
};

static void write_view(struct folds *f, const struct uar_sview *v, struct uar_buf *out)
{
	*out = uar_buf_make(UAR_LIMIT_ROW_BYTES);
	if (uar_sview_write(v, out))
		sim_checker_broken(f->k, "a view cannot be written");
}

/* The view goes to a snapshot and comes back. */
static void store_view(struct folds *f)
{
	struct uar_buf text;

	write_view(f, &f->stored, &text);
	uar_sview_fini(&f->stored);
	uar_sview_init(&f->stored);
	if (uar_sview_read(&f->stored, uar_buf_str(&text), NULL))
		sim_checker_broken(f->k, "a snapshot cannot be read");
	uar_buf_fini(&text);
}

static void fold_event(struct folds *f, const struct uar_event *ev)
{
	if (uar_sview_fold(&f->whole, ev) || uar_sview_fold(&f->stored, ev))
		sim_checker_broken(f->k, "event %llu cannot be folded",
				   (unsigned long long)ev->sequence);
	if (ev->sequence % SNAPSHOT_EVERY == 0)
		store_view(f);
}

static void compare(struct folds *f, uar_str session_id)
{
	struct uar_buf a, b;

	write_view(f, &f->whole, &a);
	write_view(f, &f->stored, &b);
	if (!uar_str_eq(uar_buf_str(&a), uar_buf_str(&b)))
		sim_checker_broken(f->k, "snapshots of %.*s disagree with its log",
				   UAR_FMT(session_id));
	uar_buf_fini(&a);
	uar_buf_fini(&b);
}

struct view_read {
	struct uar_read r;
	bool done;
};

static void view_read_done(struct uar_read *r)
{
	UAR_OWNER(r, struct view_read, r)->done = true;
}

void sim_checker_view(struct sim_checker *k, const struct uar_owner *owner, uar_str session_id)
{
	struct uar_store *disk = k->w->disk;
	struct folds f = { .k = k };
	bool more = true;

	uar_sview_init(&f.whole);
	uar_sview_init(&f.stored);
	while (more && !k->problem[0]) {
		struct view_read one = { .r = { .owner = *owner,
						.session_id = session_id,
						.after = f.whole.through,
						.limit = UAR_LIMIT_READ_PAGE,
						.done = view_read_done } };

		if (disk->ops->read(disk, &one.r))
			abort();
		while (!one.done && sim_run_task(k->w))
			;
		for (size_t i = 0; i < one.r.event_count; i++)
			fold_event(&f, &one.r.events[i]);
		more = one.r.more && one.r.event_count;
		uar_store_read_fini(&one.r);
	}
	if (!k->problem[0])
		compare(&f, session_id);
	uar_sview_fini(&f.whole);
	uar_sview_fini(&f.stored);
}
