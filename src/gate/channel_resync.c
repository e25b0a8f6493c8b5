/* channel_resync.c - a reader of a channel whose cursor is older than what the channel keeps.
 *
 * It is told so first, with the cursor that it asked for and the one that is used instead. Then it
 * gets the record of every run as it is, then what changed behind the cursor that is used. Only the
 * last frame of it has an id: a reader that is cut off before begins again. The channel of exports
 * has no records: items are read from their runs. */
#include "event/limits.h"
#include "gate/channels_int.h"

struct resyncing {
	struct uar_run_list q;
	struct reader *r; /* NULL: it left */
	size_t at;	  /* the row that is sent next */
	bool here;	  /* the page is there */
	char before[UAR_LIMIT_ID_BYTES + 1];
};

static void go_on(struct resyncing *k);

static void free_resyncing(struct resyncing *k)
{
	if (k->here)
		uar_run_list_fini(&k->q);
	uar_free(k);
}

/* The page that is asked for comes all the same. */
void gate_channel_forget(struct reader *r)
{
	struct resyncing *k = r->look;

	r->look = NULL;
	if (!k)
		return;
	k->r = NULL;
	if (k->here)
		free_resyncing(k);
}

/* UAR_EBUSY: it takes nothing now. */
static uar_err send_text(struct reader *r, const struct uar_buf *b)
{
	struct uar_frame *frame = b->err ? NULL : uar_frame_create(uar_buf_str(b));
	uar_err e = frame ? uar_http_stream_send(r->base.http, frame) : UAR_ENOMEM;

	uar_frame_unref(frame);
	return e;
}

static void put_cursors(struct uar_jw *w, const struct reader *r)
{
	char used[64];

	snprintf(used, sizeof used, "%s-%llu", r->channel->boot, (unsigned long long)r->seen);
	uar_jw_cstr(w, "requested", r->requested);
	uar_jw_cstr(w, "used", used);
}

/* `last`: everything that was told so far counts. */
static uar_err tell(struct reader *r, bool last)
{
	struct channel *ch = r->channel;
	struct uar_buf *b = &ch->g->buf;
	struct uar_jw w;
	uar_err e;

	uar_buf_clear(b);
	uar_buf_printf(b, "event: %s\n", last ? "resynced" : "resync");
	if (last || ch != ch->g->runs)
		uar_buf_printf(b, "id: %s-%llu\n", ch->boot, (unsigned long long)r->seen);
	uar_buf_add_str(b, UAR_STR("data: "));
	w = uar_jw_begin(b);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "code", last ? "RESYNCED" : "RESYNC");
	put_cursors(&w, r);
	if (!last)
		uar_jw_cstr(&w, "message",
			    ch == ch->g->runs
				    ? "the cursor is not known here any more: the runs as they are "
				      "follow, then what changes"
				    : "the cursor is not known here any more: read the items "
				      "again; what changes from now on follows");
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	uar_buf_add_str(b, UAR_STR("\n\n"));
	return e ? e : send_text(r, b);
}

/* --- the runs as they are ------------------------------------------------------------------- */

static uar_err send_row(struct resyncing *k, const struct uar_run_row *row)
{
	struct reader *r = k->r;
	struct notice n;

	gate_channel_describe(r->channel, row, &n);
	n.of = r->of;
	if (!gate_channel_wants(r, &n))
		return UAR_OK;
	gate_channel_write_row(r->channel, "snapshot", "snapshot", 0, row);
	return send_text(r, &r->channel->g->buf);
}

static void page_read(struct uar_run_list *q)
{
	struct resyncing *k = UAR_OWNER(q, struct resyncing, q);

	k->here = true;
	k->at = 0;
	if (!k->r)
		free_resyncing(k);
	else if (q->err && q->err != UAR_ENOTFOUND) /* the run may have been removed meanwhile */
		gate_channel_cut(k->r);		    /* it comes back */
	else
		go_on(k);
}

static void ask_page(struct resyncing *k)
{
	k->here = false;
	k->q = (struct uar_run_list){ .owner = k->r->of->owner,
				      .run_id = k->r->run_id,
				      .before = uar_str_c(k->before),
				      .limit = UAR_LIMIT_LIST_PAGE,
				      .done = page_read };
	if (uar_reader_runs(k->r->channel->g->o.reader, &k->q)) {
		k->here = true; /* nothing comes */
		gate_channel_cut(k->r);
	}
}

static void end_page(struct resyncing *k)
{
	struct reader *r = k->r;

	if (k->q.more && k->q.row_count) {
		snprintf(k->before, sizeof k->before, "%.*s",
			 UAR_FMT(k->q.rows[k->q.row_count - 1].run_id));
		uar_run_list_fini(&k->q);
		ask_page(k);
		return;
	}
	if (tell(r, true))
		return; /* when it has room again */
	r->resync = false;
	gate_channel_forget(r);
	gate_channel_feed(r);
}

static void go_on(struct resyncing *k)
{
	while (k->at < k->q.row_count) {
		if (send_row(k, &k->q.rows[k->at]))
			return; /* when it has room again */
		k->at++;
	}
	end_page(k);
}

bool gate_channel_resync(struct reader *r)
{
	if (r->look) {
		if (r->look->here)
			go_on(r->look);
		return false;
	}
	if (tell(r, false))
		return false;
	if (r->channel != r->channel->g->runs) {
		r->resync = false;
		return true;
	}
	r->look = uar_zalloc(sizeof *r->look);
	if (!r->look) {
		gate_channel_cut(r);
		return false;
	}
	r->look->r = r;
	ask_page(r->look);
	return false;
}
