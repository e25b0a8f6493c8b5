/* channels.c - the `runs` and `export` channels: what changed, for those who watch.
 *
 * Each commit leaves its notices in a ring that all readers share, from the moment
 * the first one came: cursors of before cannot exist. A reader is a
 * place in the ring. One that is slow skips notices that a later one of the same
 * run in the same status makes stale; one that falls out of the ring is told so
 * and cut, and recovers by reading records. Notices of other owners are never
 * shown. Export items of one run are followed in the log instead, and so never
 * missed. */
#include "gate/channels_int.h"
#include "gate/cursor.h"
#include "proto/exports.h"

/* --- readers ------------------------------------------------------------------------ */

static struct notice *notice_at(struct channel *ch, uint64_t number)
{
	return &ch->ring[number % UAR_LIMIT_CHANNEL_RING];
}

static bool has_status(const struct notice *n, uar_str status)
{
	return uar_str_is(status, GATE_WAITING) ? n->waits : uar_str_is(status, n->status);
}

bool gate_channel_wants(const struct reader *r, const struct notice *n)
{
	return r->of == n->of && (!r->run_id.n || uar_str_is(r->run_id, n->run_id)) &&
	       (!r->task_id.n || uar_str_is(r->task_id, n->task_id)) &&
	       (!r->plugin_id.n || uar_str_is(r->plugin_id, n->plugin_id)) &&
	       (!r->status.n || has_status(n, r->status));
}

/* A change of status is never skipped, nor is that the run is new or gone. */
static bool is_stale(struct channel *ch, const struct notice *n)
{
	for (uint64_t i = n->number + 1; n->status && !n->added && i <= ch->head; i++) {
		const struct notice *later = notice_at(ch, i);

		if (later->of == n->of && later->run_hash == n->run_hash &&
		    strcmp(later->run_id, n->run_id) == 0)
			return later->status == n->status && later->waits == n->waits &&
			       !later->gone;
	}
	return false;
}

static void drop_reader(struct gate_stream *base)
{
	struct reader *r = UAR_OWNER(base, struct reader, base);

	gate_stream_forget(base);
	gate_channel_forget(r);
	uar_list_remove(&r->node);
	uar_arena_fini(&r->arena);
	uar_free(r);
}

/* Says why and ends, once there is room for it; a reader that takes nothing at all
 * is cut by the HTTP server. */
void gate_channel_cut(struct reader *r)
{
	struct uar_frame *bye = uar_frame_create(UAR_STR(
		"event: lagged\ndata: {\"code\":\"LAGGED\",\"message\":\"the reader fell too far "
		"behind\"}\n\n"));
	uar_err e = bye ? uar_http_stream_send(r->base.http, bye) : UAR_OK;

	r->lagged = true;
	uar_frame_unref(bye);
	if (e)
		return; /* on_writable or on_closed follows */
	uar_log(r->base.g->o.log, UAR_LOG_DEBUG, "channel.lagged",
		{ "channel", uar_str_c(r->channel->name) });
	uar_http_stream_end(r->base.http);
	drop_reader(&r->base);
}

void gate_channel_feed(struct reader *r)
{
	struct channel *ch = r->channel;

	if (r->lagged) {
		gate_channel_cut(r);
		return;
	}
	if (r->resync && !gate_channel_resync(r))
		return;
	while (r->seen < ch->head) {
		struct notice *n = notice_at(ch, r->seen + 1);

		if (n->number != r->seen + 1) {
			gate_channel_cut(r);
			return;
		}
		if (gate_channel_wants(r, n) && !is_stale(ch, n) &&
		    uar_http_stream_send(r->base.http, n->frame))
			return; /* full: on_writable goes on; gone: on_closed follows */
		r->seen++;
	}
}

static void on_writable(void *ctx)
{
	gate_channel_feed(ctx);
}

static void on_closed(void *ctx)
{
	drop_reader(ctx);
}

/* --- notices ---------------------------------------------------------------------------- */

struct about {
	const struct watcher *of;
	uar_str run_id, task_id, plugin_id;
	const char *status;
	bool added, gone, waits;
};

static struct about about_run(const struct watcher *of, const struct uar_run *run,
			      const char *status)
{
	return (struct about){ of,
			       run->id.run_id,
			       run->id.task_given ? run->id.task_id : UAR_STR_NONE,
			       run->what.plugin_id,
			       status,
			       false,
			       false,
			       uar_status_waits(run->status) };
}

static void add_notice(struct channel *ch, const struct about *a)
{
	struct uar_buf *b = &ch->g->buf; /* holds the whole frame */
	struct notice *n = notice_at(ch, ch->head + 1);
	struct uar_frame *frame = b->err ? NULL : uar_frame_create(uar_buf_str(b));

	uar_frame_unref(n->frame);
	*n = (struct notice){
		.number = ++ch->head,
		.of = a->of,
		.frame = frame,
		.status = a->status,
		.added = a->added,
		.gone = a->gone,
		.waits = a->waits,
	};
	snprintf(n->run_id, sizeof n->run_id, "%.*s", UAR_FMT(a->run_id));
	snprintf(n->task_id, sizeof n->task_id, "%.*s", UAR_FMT(a->task_id));
	snprintf(n->plugin_id, sizeof n->plugin_id, "%.*s", UAR_FMT(a->plugin_id));
	n->run_hash = uar_str_hash(a->run_id, 0);
	if (!frame)
		n->number = 0; /* readers notice the hole and are cut */
	UAR_LIST_EACH (it, &ch->readers)
		gate_channel_feed(UAR_OWNER(it, struct reader, node));
}

static struct uar_jw begin_named(struct channel *ch, const char *name, uint64_t number)
{
	struct uar_buf *b = &ch->g->buf;

	uar_buf_clear(b);
	uar_buf_printf(b, "event: %s\n", name);
	if (number)
		uar_buf_printf(b, "id: %s-%llu\n", ch->boot, (unsigned long long)number);
	uar_buf_add_str(b, UAR_STR("data: "));
	return uar_jw_begin(b);
}

static struct uar_jw begin_frame(struct channel *ch, uint64_t number)
{
	return begin_named(ch, ch->name, number);
}

static void end_frame(struct channel *ch, struct uar_jw *w)
{
	uar_err e = uar_jw_end(w);

	uar_buf_add_str(&ch->g->buf, UAR_STR("\n\n"));
	if (e)
		ch->g->buf.err = e;
}

static void note_run(struct channel *ch, const struct watcher *of, const struct uar_commit *c)
{
	const struct uar_run *run = c->run;
	const char *status = uar_status_record(run->status);
	struct about about = about_run(of, run, status);
	struct uar_jw w = begin_frame(ch, ch->head + 1);

	about.added = c->added;
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "op", c->added ? "add" : "change");
	uar_jw_str(&w, "run_id", run->id.run_id);
	uar_jw_cstr(&w, "status", status);
	if (uar_run_progress(run) >= 0)
		uar_jw_double(&w, "progress", uar_run_progress(run));
	else
		uar_jw_null(&w, "progress");
	uar_jw_seconds(&w, "updated_at", run->at.updated_us);
	uar_jw_str_or_null(&w, "stage", uar_run_stage(run));
	uar_jw_cstr(&w, "engine_status", uar_status_text(run->status));
	uar_jw_str_or_null(&w, "message", uar_str_c(uar_run_rare(run)->progress.message));
	uar_jw_str_or_null(&w, "task_id", run->id.task_given ? run->id.task_id : UAR_STR_NONE);
	uar_jw_str(&w, "plugin_id", run->what.plugin_id);
	uar_jw_str(&w, "entry_id", run->what.entry_id);
	uar_jw_str(&w, "root_run_id", run->id.root_run_id);
	uar_jw_int(&w, "attempt", run->what.attempt);
	uar_jw_close(&w);
	end_frame(ch, &w);
	add_notice(ch, &about);
}

/* The word of a record, as notices have it: one for as long as the process lives. */
static const char *status_word(uar_str record)
{
	for (int i = 0; i < UAR_STATUS_COUNT; i++)
		if (uar_str_is(record, uar_status_record((enum uar_status)i)))
			return uar_status_record((enum uar_status)i);
	return "";
}

/* What a row tells of a run that nobody will be shown again. */
static void note_gone(struct channel *ch, const struct watcher *of, const struct uar_run_row *row)
{
	const struct uar_json *detail = NULL;
	struct about about = { .of = of,
			       .run_id = row->run_id,
			       .plugin_id = row->plugin_id,
			       .status = status_word(row->status),
			       .gone = true };
	struct uar_jw w;

	uar_arena_reset(&ch->g->scratch);
	if (!uar_json_parse(row->detail, NULL, &ch->g->scratch, &detail, NULL))
		about.task_id =
			uar_json_str(uar_json_get(detail, UAR_STR("task_id")), UAR_STR_NONE);
	w = begin_frame(ch, ch->head + 1);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "op", "del");
	uar_jw_str(&w, "run_id", row->run_id);
	uar_jw_cstr(&w, "status", about.status);
	uar_jw_null(&w, "progress");
	uar_jw_seconds(&w, "updated_at", row->updated_us);
	uar_jw_str_or_null(&w, "task_id", about.task_id);
	uar_jw_str(&w, "plugin_id", row->plugin_id);
	uar_jw_str(&w, "entry_id", row->entry_id);
	uar_jw_str(&w, "root_run_id", row->root_run_id);
	uar_jw_int(&w, "attempt", row->attempt);
	uar_jw_close(&w);
	end_frame(ch, &w);
	add_notice(ch, &about);
}

static void put_member(struct uar_jw *w, const char *key, const struct uar_json *detail)
{
	const struct uar_json *value = uar_json_get(detail, uar_str_c(key));

	if (value)
		uar_jw_tree(w, key, value);
	else
		uar_jw_null(w, key);
}

/* The state of a run as its row has it, in the shape of note_run. */
void gate_channel_write_row(struct channel *ch, const char *name, const char *op, uint64_t number,
			    const struct uar_run_row *row)
{
	static const char *const members[] = { "stage", "engine_status", "message", "task_id" };
	const struct uar_json *detail = NULL;
	struct uar_jw w;

	uar_arena_reset(&ch->g->scratch);
	if (uar_json_parse(row->detail, NULL, &ch->g->scratch, &detail, NULL))
		detail = NULL;
	w = begin_named(ch, name, number);
	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "op", op);
	uar_jw_str(&w, "run_id", row->run_id);
	uar_jw_str(&w, "status", row->status);
	put_member(&w, "progress", detail);
	uar_jw_seconds(&w, "updated_at", row->updated_us);
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		put_member(&w, members[i], detail);
	uar_jw_str(&w, "plugin_id", row->plugin_id);
	uar_jw_str(&w, "entry_id", row->entry_id);
	uar_jw_str(&w, "root_run_id", row->root_run_id.n ? row->root_run_id : row->run_id);
	uar_jw_int(&w, "attempt", row->attempt);
	uar_jw_close(&w);
	end_frame(ch, &w);
}

void gate_channel_describe(struct channel *ch, const struct uar_run_row *row, struct notice *out)
{
	const struct uar_json *detail = NULL;

	*out = (struct notice){ .status = status_word(row->status),
				.waits = row->listed.waits.n > 0 };
	uar_arena_reset(&ch->g->scratch);
	if (uar_json_parse(row->detail, NULL, &ch->g->scratch, &detail, NULL))
		detail = NULL;
	snprintf(out->run_id, sizeof out->run_id, "%.*s", UAR_FMT(row->run_id));
	snprintf(out->task_id, sizeof out->task_id, "%.*s",
		 UAR_FMT(uar_json_text(detail, "task_id")));
	snprintf(out->plugin_id, sizeof out->plugin_id, "%.*s", UAR_FMT(row->plugin_id));
}

static void note_export(struct channel *ch, const struct watcher *of, const struct uar_commit *c,
			const struct uar_event *ev)
{
	struct about about = about_run(of, c->run, NULL);
	struct uar_export_item item;
	struct uar_jw w;

	uar_arena_reset(&ch->g->scratch);
	if (uar_export_item_read(ev, &ch->g->scratch, &item))
		return;
	w = begin_frame(ch, ch->head + 1);
	uar_export_item_notice(&w, NULL, &item);
	end_frame(ch, &w);
	add_notice(ch, &about);
}

static const struct watcher *find_watcher(const struct channel *ch, const struct uar_owner *owner)
{
	UAR_LIST_EACH (it, &ch->watchers) {
		const struct watcher *w = UAR_OWNER(it, struct watcher, node);

		if (uar_owner_eq(&w->owner, owner))
			return w;
	}
	return NULL;
}

static void on_commit(void *ctx, const struct uar_commit *c)
{
	struct uar_gate *g = ctx;
	const struct watcher *of = find_watcher(g->exports, c->owner);

	gate_numbers_count(g->numbers, c);
	for (size_t i = 0; i < c->event_count && of; i++)
		if (c->events[i].cls == UAR_EV_ARTIFACT_CHANGED ||
		    (c->events[i].cls == UAR_EV_TASK_ATTEMPT_COMPLETED &&
		     c->run->what.entry != UAR_ENTRY_PLUGIN))
			note_export(g->exports, of, c, &c->events[i]);
	of = c->changed ? find_watcher(g->runs, c->owner) : NULL;
	if (of)
		note_run(g->runs, of, c);
}

static void on_gone(void *ctx, const struct uar_run_row *row)
{
	struct uar_gate *g = ctx;
	const struct watcher *of = find_watcher(g->runs, &row->owner);

	if (of)
		note_gone(g->runs, of, row);
}

/* --- opening -------------------------------------------------------------------------------- */

/* Was such a text ever given as a cursor, by any process? */
static bool is_cursor(uar_str boot, uar_str number, uint64_t *out)
{
	for (size_t i = 0; i < boot.n; i++)
		if (!strchr("0123456789abcdef", boot.p[i]))
			return false;
	return boot.n == BOOT && uar_str_u64(number, out) == UAR_OK;
}

/* Sets r->seen to what "BOOT-NUMBER" names; to the head when nothing is asked for. Of a cursor
 * of an earlier process, or of a notice that is too long ago, nobody knows what came after it:
 * the reader is told to read the records and follows from the head. */
static uar_err read_cursor(struct call *c, struct reader *r)
{
	uar_str text = c->r->fields[UAR_HTTP_LAST_EVENT_ID], boot, number = UAR_STR_NONE;
	struct channel *ch = r->channel;
	uint64_t n = 0;
	uar_err e = text.n ? UAR_OK : gate_query_str(c, "after", &text);

	r->seen = ch->head;
	if (e || !text.n)
		return e;
	boot = uar_str_cut(text, '-', &number);
	if (!is_cursor(boot, number, &n) || (uar_str_is(boot, ch->boot) && n > ch->head))
		return UAR_ECURSOR;
	r->resync = !uar_str_is(boot, ch->boot) ||
		    (n < ch->head && notice_at(ch, n + 1)->number != n + 1);
	if (!r->resync)
		r->seen = n;
	else
		snprintf(r->requested, sizeof r->requested, "%.*s", UAR_FMT(text));
	return UAR_OK;
}

static uar_err read_filters(struct call *c, struct reader *r, struct uar_error *error)
{
	struct {
		const char *name;
		uar_str *to;
	} filters[] = { { "run_id", &r->run_id },
			{ "task_id", &r->task_id },
			{ "plugin_id", &r->plugin_id },
			{ "status", &r->status } };
	uar_err e = UAR_OK;

	for (size_t i = 0; i < ARRAY_LEN(filters) && !e; i++) {
		uar_str text;

		e = gate_query_str(c, filters[i].name, &text);
		if (!e && text.n) {
			*filters[i].to = uar_arena_str(&r->arena, text);
			e = filters[i].to->p ? UAR_OK : UAR_ENOMEM;
		}
	}
	return e ? e : gate_check_status(r->status, error);
}

/* Shows the row as its last notice would have, if the filters let it through, and ends. */
static void show_ended(struct reader *r, const struct uar_run_row *row)
{
	struct channel *ch = r->channel;
	struct uar_frame *frame;
	struct notice n;

	gate_channel_describe(ch, row, &n);
	n.of = r->of;
	gate_channel_write_row(ch, ch->name, "change", ch->head, row);
	frame = gate_channel_wants(r, &n) && !ch->g->buf.err
			? uar_frame_create(uar_buf_str(&ch->g->buf))
			: NULL;
	if (frame && uar_http_stream_send(r->base.http, frame))
		uar_log(ch->g->o.log, UAR_LOG_WARN, "channel.state_lost",
			{ "run_id", row->run_id });
	uar_frame_unref(frame);
	uar_http_stream_end(r->base.http);
	drop_reader(&r->base);
}

/* From now on notices of this owner are kept. */
static uar_err add_watcher(struct channel *ch, const struct uar_owner *owner,
			   const struct watcher **out)
{
	struct watcher *w;

	*out = find_watcher(ch, owner);
	if (*out)
		return UAR_OK;
	if (ch->watcher_count == UAR_LIMIT_CHANNEL_OWNERS)
		return UAR_EBUSY;
	w = uar_zalloc(sizeof *w);
	if (!w || !uar_owner_copy(&w->arena, owner, &w->owner)) {
		uar_free(w);
		return UAR_ENOMEM;
	}
	uar_list_add_last(&ch->watchers, &w->node);
	ch->watcher_count++;
	*out = w;
	return UAR_OK;
}

/* ended: the run that alone is asked for, if it is over; NULL: there may be more to tell. */
static uar_err open_reader(struct call *c, struct channel *ch, const struct uar_run_row *ended,
			   struct uar_error *error)
{
	struct reader *r = uar_zalloc(sizeof *r);
	struct uar_http_stream_events events = { on_writable, on_closed, r };
	uar_err e;

	if (!r)
		return UAR_ENOMEM;
	r->channel = ch;
	r->base.drop = drop_reader;
	uar_list_init(&r->base.node);
	uar_list_init(&r->node);
	uar_arena_init(&r->arena, 0);
	e = read_filters(c, r, error);
	if (!e)
		e = read_cursor(c, r);
	if (!e)
		e = add_watcher(ch, &c->owner, &r->of);
	if (!e)
		e = gate_stream_open(&r->base, c, &events);
	if (e) {
		uar_arena_fini(&r->arena);
		uar_free(r);
		return e;
	}
	if (ended) {
		show_ended(r, ended);
		return UAR_OK;
	}
	uar_list_add_last(&ch->readers, &r->node);
	gate_channel_feed(r);
	return UAR_OK;
}

static void open_channel(struct call *c, struct channel *ch, const struct uar_run_row *row)
{
	const struct uar_run_row *ended = row && row->terminal ? row : NULL;
	struct uar_error error = { 0 };
	uar_err e;

	e = c->g->draining ? UAR_EDRAINING : open_reader(c, ch, ended, &error);
	if (e && e != UAR_ESKIP)
		gate_problem(c, e, &error);
}

/* A run that is not there, or over, would be waited for in vain. */
struct lookup {
	struct uar_run_list q;
	struct call *c;
};

static void looked_up(struct uar_run_list *q)
{
	struct call *c = UAR_OWNER(q, struct lookup, q)->c;
	struct uar_run_list mine = *q; /* the call goes away with the answer */
	const struct uar_run_row *row;

	if (mine.err || !c->r) {
		gate_problem(c, mine.err, &mine.error); /* of one who left: frees the call */
	} else {
		/* It may have ended since the store was asked. */
		if (!uar_reader_recent_run(c->g->o.reader, &c->owner, mine.run_id, &row))
			row = &mine.rows[0];
		open_channel(c, c->g->runs, row);
	}
	uar_run_list_fini(&mine);
}

static uar_err look_up(struct call *c, uar_str run_id)
{
	struct lookup *l = uar_arena_alloc(&c->arena, sizeof *l);

	if (!l)
		return UAR_ENOMEM;
	l->c = c;
	l->q = (struct uar_run_list){
		.owner = c->owner, .run_id = run_id, .limit = 1, .done = looked_up
	};
	c->op = l;
	return uar_reader_runs(c->g->o.reader, &l->q);
}

/* A name of the query for as long as the call lives. */
static uar_err query_name(struct call *c, const char *name, uar_str *out)
{
	uar_str text = UAR_STR_NONE;
	uar_err e = gate_query_str(c, name, &text);

	*out = e || !text.n ? UAR_STR_NONE : uar_arena_str(&c->arena, text);
	return e ? e : text.n && !out->p ? UAR_ENOMEM : UAR_OK;
}

void gate_channel_runs(struct call *c)
{
	const struct uar_run_row *recent = NULL;
	uar_str run_id;
	uar_err e = query_name(c, "run_id", &run_id);

	if (!e && run_id.n && !uar_reader_recent_run(c->g->o.reader, &c->owner, run_id, &recent)) {
		e = look_up(c, run_id);
		if (!e)
			return;
	}
	if (e)
		gate_problem(c, e, NULL);
	else
		open_channel(c, c->g->runs, recent);
}

void gate_channel_export(struct call *c)
{
	bool resumes = c->r->fields[UAR_HTTP_LAST_EVENT_ID].n > 0;
	uar_str run_id, after;
	uint64_t number;
	uar_err e = query_name(c, "run_id", &run_id);

	if (!e)
		e = query_name(c, "after", &after);
	if (e)
		gate_problem(c, e, NULL);
	else if (!run_id.n)
		open_channel(c, c->g->exports, NULL);
	else if (!resumes && after.n && uar_str_is_id(after) &&
		 gate_cursor_parse(after, gate_incarnation(c->g), &number) == UAR_ECURSOR)
		gate_stream_after_item(c, run_id, after);
	else
		gate_stream_events(c, run_id, GATE_EXPORTS);
}

/* --- life ------------------------------------------------------------------------------------- */

static struct channel *make_channel(struct uar_gate *g, const char *name)
{
	struct channel *ch = uar_zalloc(sizeof *ch);

	if (!ch)
		return NULL;
	ch->name = name;
	ch->g = g;
	uar_list_init(&ch->readers);
	uar_list_init(&ch->watchers);
	snprintf(ch->boot, sizeof ch->boot, "%08llx",
		 (unsigned long long)(uar_rand_u64(g->o.rand) & 0xffffffffu));
	return ch;
}

uar_err gate_channels_init(struct uar_gate *g)
{
	g->runs = make_channel(g, "runs");
	g->exports = make_channel(g, "export");
	if (!g->runs || !g->exports)
		return UAR_ENOMEM;
	g->watch.fn = on_commit;
	g->watch.gone = on_gone;
	g->watch.ctx = g;
	uar_runtime_watch(g->o.runtime, &g->watch);
	return UAR_OK;
}

static void free_channel(struct channel *ch)
{
	if (!ch)
		return;
	for (size_t i = 0; i < UAR_LIMIT_CHANNEL_RING; i++)
		uar_frame_unref(ch->ring[i].frame);
	UAR_LIST_EACH (it, &ch->watchers) {
		struct watcher *w = UAR_OWNER(it, struct watcher, node);

		uar_arena_fini(&w->arena);
		uar_free(w);
	}
	uar_free(ch);
}

void gate_channels_fini(struct uar_gate *g)
{
	uar_runtime_unwatch(&g->watch);
	free_channel(g->runs);
	free_channel(g->exports);
	g->runs = g->exports = NULL;
}
