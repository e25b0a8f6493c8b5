/* host.c - the plugins of a folder, places at them, and which process takes whom. */
#include "json/limits.h"
#include "loop/limits.h"
#include "plugin/limits.h"
#include "plugin/plugin_int.h"

enum { BACKOFF_US = 100000, BACKOFF_MAX_US = 30000000, BACKOFF_STEPS = 9 };

static struct uar_plugin_host *host_of(struct uar_entries *base)
{
	return (struct uar_plugin_host *)(void *)base;
}

static struct uar_sched *sched_of(const struct plugin *p)
{
	return uar_loop_sched(p->host->o.loop);
}

static struct plugin *find_plugin(struct uar_plugin_host *h, uar_str id)
{
	UAR_LIST_EACH (it, &h->plugins) {
		struct plugin *p = UAR_OWNER(it, struct plugin, node);

		if (uar_str_eq(p->m.id, id))
			return p;
	}
	return NULL;
}

static uar_err find_entry(struct uar_entries *base, uar_str plugin_id, uar_str entry_id,
			  struct uar_manifest_entry **out, struct uar_error *error)
{
	struct plugin *p = find_plugin(host_of(base), plugin_id);
	struct uar_manifest_entry *entry = p ? uar_manifest_entry(&p->m, entry_id) : NULL;

	if (!p)
		return uar_error_set(error, UAR_ENOTFOUND, "no plugin is named \"%.*s\"",
				     UAR_FMT(uar_str_utf8_prefix(plugin_id, 128)));
	if (!entry)
		return uar_error_set(error, UAR_ENOTFOUND, "plugin %.*s has no entry \"%.*s\"",
				     UAR_FMT(plugin_id),
				     UAR_FMT(uar_str_utf8_prefix(entry_id, 128)));
	*out = entry;
	return UAR_OK;
}

static uar_err host_find(struct uar_entries *base, uar_str plugin_id, uar_str entry_id,
			 struct uar_entry_info *out, struct uar_error *error)
{
	struct uar_manifest_entry *entry;
	uar_err e = find_entry(base, plugin_id, entry_id, &entry, error);

	if (!e)
		*out = entry->info;
	return e;
}

static uar_err host_check(struct uar_entries *base, uar_str plugin_id, uar_str entry_id,
			  const struct uar_json *args, struct uar_error *error)
{
	struct uar_manifest_entry *entry;
	struct uar_error found = { 0 };
	struct uar_arena scratch;
	uar_err e = find_entry(base, plugin_id, entry_id, &entry, error);

	if (e || !entry->args)
		return e;
	uar_arena_init(&scratch, 0);
	e = uar_schema_validate(entry->args, args, &scratch, &found);
	uar_arena_fini(&scratch);
	if (!e)
		return UAR_OK;
	uar_error_where(error, "/args%s", found.where);
	return uar_error_set(error, e, "%s", uar_error_text(&found));
}

static void host_each(struct uar_entries *base,
		      void (*fn)(void *ctx, const struct uar_entry_info *info), void *ctx)
{
	UAR_LIST_EACH (it, &host_of(base)->plugins) {
		struct plugin *p = UAR_OWNER(it, struct plugin, node);

		for (size_t i = 0; i < p->m.entry_count; i++)
			fn(ctx, &p->m.entries[i].info);
	}
}

/* --- places ------------------------------------------------------------------------ */

static bool has_place(const struct plugin *p)
{
	return p->granted < p->m.concurrency * p->m.processes;
}

/* Does a process wait for it, beyond those that others will use? A library has none to wait
 * for. */
static bool is_warm(const struct plugin *p)
{
	uint32_t room = 0, promised = p->warm;

	UAR_LIST_EACH (it, &p->processes)
		room += process_room(UAR_OWNER(it, struct process, node));
	UAR_LIST_EACH (it, &p->calls)
		promised++;
	return p->library || room > promised;
}

static void take_place(struct plugin *p, struct uar_entry_slot *slot)
{
	slot->granted = true;
	slot->cold = !is_warm(p);
	p->granted++;
	p->warm += !slot->cold;
}

static uar_err host_ask(struct uar_entries *base, uar_str plugin_id, uar_str entry_id,
			struct uar_entry_slot *slot)
{
	struct plugin *p = find_plugin(host_of(base), plugin_id);

	if (!p || !uar_manifest_entry(&p->m, entry_id))
		return UAR_ENOTFOUND;
	if (p->waiting >= UAR_LIMIT_PLUGIN_WAITING)
		return UAR_ERATELIMIT;
	slot->plugin = p;
	slot->granted = false;
	if (has_place(p) && uar_list_empty(&p->slots)) {
		take_place(p, slot);
		return UAR_OK;
	}
	uar_list_add_last(&p->slots, &slot->node);
	p->waiting++;
	p->host->stats.waiting++;
	return UAR_EBUSY;
}

static void grant(struct plugin *p)
{
	while (has_place(p) && !uar_list_empty(&p->slots)) {
		struct uar_entry_slot *slot = UAR_OWNER(p->slots.next, struct uar_entry_slot, node);

		uar_list_remove(&slot->node);
		p->waiting--;
		p->host->stats.waiting--;
		take_place(p, slot);
		slot->ready(slot);
	}
}

static void host_leave(struct uar_entries *base, struct uar_entry_slot *slot)
{
	struct plugin *p = slot->plugin;

	(void)base;
	if (!p)
		return;
	slot->plugin = NULL;
	if (slot->granted) {
		slot->granted = false;
		p->warm -= !slot->cold;
		p->granted--;
		grant(p);
		plugin_less_used(p);
		return;
	}
	uar_list_remove(&slot->node);
	p->waiting--;
	p->host->stats.waiting--;
}

/* --- processes ------------------------------------------------------------------------ */

static struct process *with_room(struct plugin *p)
{
	UAR_LIST_EACH (it, &p->processes) {
		struct process *s = UAR_OWNER(it, struct process, node);

		if (process_has_room(s))
			return s;
	}
	return NULL;
}

/* Processes that can take runs; those on their way out do not count. One that has
 * closed its output does: how it ended decides how soon the next one may start. */
static uint32_t useful(const struct plugin *p)
{
	uint32_t n = 0;

	UAR_LIST_EACH (it, &p->processes) {
		enum process_state state = UAR_OWNER(it, struct process, node)->state;

		n += state <= PROCESS_READY || state == PROCESS_CLOSED;
	}
	return n;
}

static void back_off(struct plugin *p)
{
	unsigned step = p->failures < BACKOFF_STEPS ? p->failures : BACKOFF_STEPS;
	int64_t wait = p->failures ? (int64_t)BACKOFF_US << (step - 1) : 0;

	if (wait > BACKOFF_MAX_US)
		wait = BACKOFF_MAX_US;
	p->not_before_us = uar_clock_mono(sched_of(p)->clock) + wait;
}

static void break_waiting(struct plugin *p, const char *why)
{
	while (!uar_list_empty(&p->calls))
		call_break(UAR_OWNER(p->calls.next, struct uar_entry_call, node), UAR_ECHILD, why);
}

/* True: there is one more process, for that call. */
static bool start_process(struct plugin *p, const struct uar_entry_call *c)
{
	int64_t wait = p->not_before_us - uar_clock_mono(sched_of(p)->clock);
	struct uar_error error = { 0 };
	uar_err e;

	if (useful(p) >= p->m.processes)
		return false;
	if (wait > 0 && uar_timer_set(sched_of(p), &p->backoff, wait) == UAR_OK)
		return false;
	e = process_start(p, c, &error);
	if (!e)
		return true;
	error.code = e;
	plugin_note(p, UAR_LOG_ERROR, "plugin.not_started", NULL,
		    uar_str_c(uar_error_text(&error)));
	p->failures++;
	back_off(p);
	break_waiting(p, uar_error_text(&error));
	return false;
}

void plugin_pump(struct plugin *p)
{
	/* Calls of a library are at work as soon as they are there. */
	while (!p->library && !uar_list_empty(&p->calls)) {
		struct uar_entry_call *c = UAR_OWNER(p->calls.next, struct uar_entry_call, node);
		struct process *s = with_room(p);

		if (s)
			process_take(s, c);
		else if (!start_process(p, c))
			break;
	}
	grant(p);
}

void plugin_process_over(struct plugin *p, bool good)
{
	p->failures = good ? 0 : p->failures + 1;
	if (!good)
		p->host->stats.crashed++;
	back_off(p);
	plugin_pump(p);
	plugin_less_used(p);
}

static void backoff_over(struct uar_timer *t)
{
	plugin_pump(UAR_OWNER(t, struct plugin, backoff));
}

static uar_err host_start(struct uar_entries *base, struct uar_entry_slot *slot,
			  const struct uar_entry_request *r, const struct uar_entry_events *events,
			  struct uar_entry_call **out, struct uar_error *error)
{
	struct plugin *p = slot->plugin;
	struct uar_error why = { .code = UAR_OK };
	struct uar_entry_call *c;
	uar_err e = call_make(p, r, events, &c, &why);

	(void)base;
	why.code = e;
	if (e)
		return uar_error_set(error, e, "the run cannot be given to the plugin: %.200s",
				     uar_error_text(&why));
	slot->plugin = NULL;
	slot->granted = false;
	p->warm -= !slot->cold;
	p->host->stats.running++;
	uar_list_add_last(&p->calls, &c->node);
	*out = c;
	/* Later: a process that cannot be started breaks the call, and not inside here. */
	if (!p->library && uar_timer_set(sched_of(p), &p->backoff, 0))
		plugin_pump(p);
	return UAR_OK;
}

/* --- life -------------------------------------------------------------------------------- */

static const struct uar_entries_ops ops = {
	.abi = 1,
	.size = sizeof ops,
	.find = host_find,
	.check = host_check,
	.each = host_each,
	.ask = host_ask,
	.leave = host_leave,
	.start = host_start,
	.cancel = call_cancel,
	.stop = call_stop,
	.answer = call_answer,
	.pause = call_pause,
	.begin = call_begin,
};

static uar_err check_new(struct uar_plugin_host *h, const struct plugin *p,
			 const struct plugin *instead, struct uar_error *error)
{
	const struct plugin *same = find_plugin(h, p->m.id);

	if (instead && instead->library)
		return uar_error_set(error, UAR_ESTATE,
				     "a library is replaced when the server starts again");
	if (same && same != instead)
		return uar_error_set(error, UAR_EEXISTS,
				     "another plugin, whose folder comes first by name, has the id "
				     "%.*s",
				     UAR_FMT(p->m.id));
	if (!instead && h->plugin_count >= UAR_LIMIT_PLUGINS)
		return uar_error_set(error, UAR_ETOOBIG, "more than %d plugins", UAR_LIMIT_PLUGINS);
	return UAR_OK;
}

uar_err plugin_make(struct uar_plugin_host *h, const char *dir, const struct plugin *instead,
		    struct plugin **out, struct uar_error *error)
{
	struct plugin *p = uar_zalloc(sizeof *p);
	uar_err e = p ? uar_manifest_load(dir, &p->m, error) : UAR_ENOMEM;

	if (!e) {
		p->host = h;
		e = check_new(h, p, instead, error);
		if (!e && p->m.library)
			e = library_open(p, error);
	}
	if (e) {
		if (p && p->m.id.p)
			uar_manifest_fini(&p->m);
		uar_free(p);
		return e;
	}
	p->backoff.fn = backoff_over;
	uar_list_init(&p->slots);
	uar_list_init(&p->processes);
	uar_list_init(&p->calls);
	*out = p;
	return UAR_OK;
}

/* By id: lists of plugins are read by people. */
void plugin_insert(struct plugin *p)
{
	struct uar_plugin_host *h = p->host;
	struct uar_list *next = h->plugins.next;

	while (next != &h->plugins &&
	       uar_str_cmp(UAR_OWNER(next, struct plugin, node)->m.id, p->m.id) < 0)
		next = next->next;
	uar_list_add_last(next, &p->node); /* before it */
	h->plugin_count++;
}

void plugin_withdraw(struct plugin *p)
{
	p->withdrawn = true;
	uar_list_remove(&p->node);
	uar_list_add_last(&p->host->withdrawn, &p->node);
	p->host->plugin_count--;
	UAR_LIST_EACH (it, &p->processes)
		process_withdraw(UAR_OWNER(it, struct process, node));
	plugin_less_used(p);
}

void plugin_release_slots(struct plugin *p)
{
	while (!uar_list_empty(&p->slots)) {
		struct uar_entry_slot *slot = UAR_OWNER(p->slots.next, struct uar_entry_slot, node);

		uar_list_remove(&slot->node);
		p->waiting--;
		p->host->stats.waiting--;
		slot->plugin = NULL;
		slot->ready(slot); /* not granted: asks again */
	}
	plugin_less_used(p);
}

/* Later: whoever uses it now may still look at it. */
void plugin_less_used(struct plugin *p)
{
	struct uar_plugin_host *h = p->host;

	if (p->withdrawn && uar_timer_set(sched_of(p), &h->reap, 0))
		plugin_note(p, UAR_LOG_ERROR, "plugin.no_timer", NULL, UAR_STR(""));
}

static uar_err add_only(struct uar_plugin_host *h, const char *dir, struct uar_error *error)
{
	struct plugin *p;
	uar_err e = plugin_make(h, dir, NULL, &p, error);

	if (!e)
		plugin_insert(p);
	return e;
}

static void reap_withdrawn(struct uar_timer *t);

uar_err uar_plugin_host_create(const struct uar_plugin_host_options *o,
			       struct uar_plugin_host **out, struct uar_error *error)
{
	struct uar_plugin_host *h = uar_zalloc(sizeof *h);
	uar_err e;

	if (!h)
		return UAR_ENOMEM;
	h->base.ops = &ops;
	h->o = *o;
	if (!h->o.upload_max)
		h->o.upload_max = UAR_LIMIT_BLOB_BYTES;
	h->buf = uar_buf_make(UAR_LIMIT_JSON_BYTES * 2 + 4096);
	h->reap.fn = reap_withdrawn;
	uar_list_init(&h->plugins);
	uar_list_init(&h->withdrawn);
	uar_list_init(&h->folders.list);
	h->o.dir = h->o.only = NULL; /* were borrowed */
	e = o->only  ? add_only(h, o->only, error)
	    : o->dir ? folders_init(h, o->dir, error)
		     : UAR_OK;
	if (e) {
		uar_plugin_host_destroy(h);
		return e;
	}
	*out = h;
	return UAR_OK;
}

static void free_calls(struct uar_list *calls)
{
	UAR_LIST_EACH (it, calls)
		call_free(UAR_OWNER(it, struct uar_entry_call, node));
}

static void free_plugin(struct plugin *p)
{
	uar_timer_stop(sched_of(p), &p->backoff);
	uar_timer_stop(sched_of(p), &p->log.timer);
	UAR_LIST_EACH (it, &p->processes) {
		struct process *s = UAR_OWNER(it, struct process, node);

		free_calls(&s->calls);
		process_free(s);
	}
	library_close(p);
	free_calls(&p->calls);
	uar_manifest_fini(&p->m);
	uar_free(p);
}

static void reap_withdrawn(struct uar_timer *t)
{
	struct uar_plugin_host *h = UAR_OWNER(t, struct uar_plugin_host, reap);

	UAR_LIST_EACH (it, &h->withdrawn) {
		struct plugin *p = UAR_OWNER(it, struct plugin, node);

		if (p->granted || p->waiting || !uar_list_empty(&p->processes))
			continue;
		uar_list_remove(&p->node);
		free_plugin(p);
	}
}

void uar_plugin_host_destroy(struct uar_plugin_host *h)
{
	if (!h)
		return;
	folders_fini(h);
	uar_timer_stop(uar_loop_sched(h->o.loop), &h->reap);
	UAR_LIST_EACH (it, &h->plugins) /* all at once: their graces do not add up */
		library_stop(UAR_OWNER(it, struct plugin, node));
	UAR_LIST_EACH (it, &h->plugins)
		free_plugin(UAR_OWNER(it, struct plugin, node));
	UAR_LIST_EACH (it, &h->withdrawn)
		free_plugin(UAR_OWNER(it, struct plugin, node));
	uar_buf_fini(&h->buf);
	uar_free(h);
}

void plugin_probed(struct plugin *p, const struct uar_json *hello, const char *why)
{
	struct uar_plugin_probe probe = p->host->probe;

	p->host->probe.said = NULL;
	if (probe.said)
		probe.said(probe.ctx, hello, why);
}

uar_err uar_plugin_host_probe(struct uar_plugin_host *h, const struct uar_plugin_probe *probe,
			      struct uar_error *error)
{
	struct plugin *p = UAR_OWNER(h->plugins.next, struct plugin, node);
	uar_err e;

	if (uar_list_empty(&h->plugins))
		return uar_error_set(error, UAR_ENOTFOUND, "there is no plugin");
	if (p->library)
		return UAR_ESKIP;
	e = process_start(p, NULL, error);
	if (!e)
		h->probe = *probe;
	return e;
}

struct uar_entries *uar_plugin_host_entries(struct uar_plugin_host *h)
{
	return &h->base;
}

void uar_plugin_host_stats(const struct uar_plugin_host *h, struct uar_plugin_stats *out)
{
	*out = h->stats;
	out->plugins = h->plugin_count;
	UAR_LIST_EACH (it, &h->plugins) {
		struct plugin *p = UAR_OWNER(it, struct plugin, node);

		if (p->library)
			library_count(p->library, out);
	}
}
