/* library.c - plugins that are shared objects: loading, calls as jobs, what comes of them. */
#include "json/limits.h"
#include "plugin/library_int.h"
#include "plugin/limits.h"

#include <dlfcn.h>
#include <unistd.h>

enum {
	/* of struct uarp_plugin, in the first header that had UARP_ABI */
	FIRST_SIZE = offsetof(struct uarp_plugin, close) + sizeof(void (*)(void)),
};

static struct library *library_of(const struct uar_entry_call *c)
{
	return c->plugin->library;
}

/* --- loading -------------------------------------------------------------------------- */

/* Opening and closing may happen on different threads. The loader has a lock of its own for
 * that, which TSan does not see: with this one it can follow. */
static pthread_mutex_t loader = PTHREAD_MUTEX_INITIALIZER;

static void *object_open(const char *path)
{
	void *object;

	pthread_mutex_lock(&loader);
	object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	pthread_mutex_unlock(&loader);
	return object;
}

static void object_close(void *object)
{
	pthread_mutex_lock(&loader);
	dlclose(object);
	pthread_mutex_unlock(&loader);
}

static const struct uarp_entry *find_entry(const struct uarp_plugin *api, uar_str id)
{
	for (const struct uarp_entry *x = api->entries; x && x->id; x++)
		if (uar_str_is(id, x->id))
			return x;
	return NULL;
}

static uar_err check_api(const struct uar_manifest *m, const struct uarp_plugin *api,
			 struct uar_error *error)
{
	uar_error_where(error, "/library");
	if (!api)
		return uar_error_set(error, UAR_EINVALID,
				     "%s exports no uarp_plugin: does it say UARP_PLUGIN(entries)?",
				     m->library);
	if (api->abi != UARP_ABI || api->size < FIRST_SIZE)
		return uar_error_set(error, UAR_EINVALID,
				     "%s was built for version %u of the interface, this is %u",
				     m->library, api->abi, UARP_ABI);
	for (size_t i = 0; i < m->entry_count; i++)
		if (!find_entry(api, m->entries[i].info.entry_id)) {
			uar_error_where(error, "/entries/%zu/id", i);
			return uar_error_set(error, UAR_EINVALID, "%s has no entry \"%.*s\"",
					     m->library, UAR_FMT(m->entries[i].info.entry_id));
		}
	return UAR_OK;
}

static uar_err load(struct library *l, const struct uar_manifest *m, struct uar_error *error)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_URI_BYTES);
	uar_err e;

	uar_buf_printf(&path, "%s/%s", m->dir, m->library);
	e = path.err;
	l->object = e ? NULL : object_open(path.p);
	uar_buf_fini(&path);
	if (e)
		return e;
	if (!l->object) {
		uar_error_where(error, "/library");
		return uar_error_set(error, UAR_EINVALID, "it cannot be loaded: %s", dlerror());
	}
	e = check_api(m, dlsym(l->object, "uarp_plugin"), error);
	if (e)
		return e;
	l->api = dlsym(l->object, "uarp_plugin");
	if (l->api->open && l->api->open()) {
		l->api = NULL;
		return uar_error_set(error, UAR_EINVALID, "%s refused to be opened", m->library);
	}
	uar_error_where(error, "%s", "");
	return UAR_OK;
}

void library_free(struct library *l)
{
	if (l->api && l->api->close)
		l->api->close();
	if (l->object)
		object_close(l->object);
	pthread_cond_destroy(&l->work);
	pthread_cond_destroy(&l->quiet);
	pthread_mutex_destroy(&l->lock);
	uar_free(l);
}

/* --- jobs ------------------------------------------------------------------------------- */

void job_free(struct job *j)
{
	if (!j)
		return;
	pthread_cond_destroy(&j->told);
	if (j->report.pending)
		uar_arena_fini(&j->report.arena);
	uar_arena_fini(&j->arena);
	uar_free(j);
}

static const char *copy(struct uar_arena *a, uar_str s)
{
	return s.n ? uar_arena_str(a, s).p : NULL;
}

static void monotonic(pthread_cond_t *c)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(c, &attributes);
	pthread_condattr_destroy(&attributes);
}

static struct job *job_make(struct library *l, const struct uar_entry_request *r)
{
	struct job *j = uar_zalloc(sizeof *j);

	if (!j)
		return NULL;
	uar_arena_init(&j->arena, UAR_LIMIT_LIBRARY_RUN);
	monotonic(&j->told);
	j->base.ops = &job_ops;
	j->library = l;
	j->error = "";
	j->fn = find_entry(l->api, r->entry_id)->fn;
	j->info = (struct uarp_info){
		.size = sizeof j->info,
		.attempt = (int32_t)r->attempt,
		.run_id = copy(&j->arena, r->run_id),
		.entry_id = copy(&j->arena, r->entry_id),
		.root_run_id = copy(&j->arena, r->root_run_id.n ? r->root_run_id : r->run_id),
		.parent_run_id = copy(&j->arena, r->parent_run_id),
		.task_id = copy(&j->arena, r->task_id),
		.trace_id = copy(&j->arena, r->trace_id),
		.args = copy(&j->arena, r->args.n ? r->args : UAR_STR("{}")),
		.timeout_seconds = (double)r->timeout_us / 1e6,
		.restarted = r->restarted,
	};
	uar_list_init(&j->queued);
	uar_list_init(&j->news);
	if (j->info.run_id && j->info.entry_id && j->info.root_run_id && j->info.args)
		return j;
	job_free(j);
	return NULL;
}

void library_post(struct library *l, struct job *j)
{
	if (uar_list_empty(&j->news))
		uar_list_add_last(&l->inbox, &j->news);
	if (l->posted)
		return;
	l->posted = true;
	uar_post_remote(l->sched, &l->task);
}

/* --- news, on the loop ------------------------------------------------------------------------ */

static void answer(struct job *j, uar_err e)
{
	struct library *l = j->library;

	pthread_mutex_lock(&l->lock);
	if (j->mail) {
		j->mail->result = e;
		j->mail->answered = true;
		pthread_cond_broadcast(&j->told);
	}
	pthread_mutex_unlock(&l->lock);
}

static void on_mail(struct job *j, const struct uar_message *m)
{
	struct uar_entry_call *c = j->call;

	if (!c || (m->kind != UAR_MESSAGE_LOG && !c->heard)) {
		answer(j, UAR_ESTATE);
	} else if (m->kind == UAR_MESSAGE_UPLOAD) {
		c->events.uploaded(c->events.ctx, &m->piece, 1);
	} else if (m->kind == UAR_MESSAGE_EXPORT) {
		c->events.exported(c->events.ctx, &m->export, m->raw, 1);
	} else {
		plugin_says(c->plugin, m->level, "plugin.log", c, m->text);
		answer(j, UAR_OK);
	}
}

static void on_report(struct job *j, struct job_report *r)
{
	struct uar_entry_call *c = j->call;

	if (r->pending && c && c->heard)
		c->events.progress(c->events.ctx, &r->progress);
	if (r->pending)
		uar_arena_fini(&r->arena);
}

static void on_returned(struct job *j)
{
	struct uar_entry_call *c = j->call;
	char why[UAR_LIMIT_ERROR_TEXT];

	if (c) {
		c->job = NULL;
		if (j->end.end.how == UAR_ENTRY_HOW_FINISHED &&
		    call_check_result(c, j->end.value, why, sizeof why))
			call_break(c, UAR_EINVALID, why);
		else
			call_end(c, &j->end.end);
	}
	job_free(j);
}

/* What a job has to tell. */
struct news {
	struct job *job;
	const struct uar_message *mail;
	struct job_report report;
	bool over;
};

/* Its link and its news are taken in one hold of the lock: a job that has returned is in no list
 * then, and nothing puts it into one again. */
static bool take_news(struct library *l, struct uar_list *from, struct news *out)
{
	bool any;

	*out = (struct news){ 0 };
	pthread_mutex_lock(&l->lock);
	any = !uar_list_empty(from);
	if (any) {
		struct job *j = UAR_OWNER(from->next, struct job, news);

		uar_list_remove(&j->news);
		out->job = j;
		out->report = j->report;
		j->report.pending = false;
		if (j->mail && !j->mail->taken && !j->mail->answered) {
			out->mail = j->mail->message;
			j->mail->taken = true;
		}
		out->over = j->state == JOB_RETURNED;
	}
	pthread_mutex_unlock(&l->lock);
	return any;
}

static void on_inbox(struct uar_task *t)
{
	struct library *l = UAR_OWNER(t, struct library, task);
	struct uar_list jobs;
	struct news n;

	uar_list_init(&jobs);
	pthread_mutex_lock(&l->lock);
	l->posted = false;
	uar_list_move_all(&l->inbox, &jobs);
	pthread_mutex_unlock(&l->lock);
	while (take_news(l, &jobs, &n)) {
		on_report(n.job, &n.report);
		if (n.mail)
			on_mail(n.job, n.mail);
		if (n.over)
			on_returned(n.job);
	}
}

/* --- calls ------------------------------------------------------------------------------------ */

/* It did not come back in time: the run ends without it. */
static void write_off(struct uar_entry_call *c)
{
	struct uar_entry_end stopped = { .how = UAR_ENTRY_HOW_STOPPED,
					 .code = UAR_STR("CANCELED") };
	struct library *l = library_of(c);
	struct job *j = c->job;
	enum job_state state;

	pthread_mutex_lock(&l->lock);
	state = j->state;
	if (state == JOB_RUNNING) {
		j->lost = true;
		l->pool.lost++;
	} else if (state == JOB_QUEUED) {
		uar_list_remove(&j->queued);
		l->pool.queued--;
	}
	pthread_mutex_unlock(&l->lock);
	if (state == JOB_RETURNED)
		return; /* the news is on its way */
	j->call = NULL;
	c->job = NULL;
	if (state == JOB_RUNNING) {
		answer(j, UAR_ESTATE);
		c->plugin->host->stats.ever_lost++;
		plugin_note(c->plugin, UAR_LOG_WARN, "plugin.ignored_cancel", c,
			    UAR_STR("its thread is written off until it returns"));
	} else {
		job_free(j);
	}
	call_end(c, &stopped);
}

/* It was queued when it was cancelled, and a thread took it before this: the handler
 * has its grace, like any other. */
static bool taken_meanwhile(struct uar_entry_call *c)
{
	struct library *l = library_of(c);
	bool running;

	if (c->graced)
		return false;
	c->graced = true;
	pthread_mutex_lock(&l->lock);
	running = c->job->state == JOB_RUNNING;
	pthread_mutex_unlock(&l->lock);
	return running &&
	       uar_timer_set(l->sched, &c->grace, c->plugin->m.cancel_grace_us) == UAR_OK;
}

static void on_grace_over(struct uar_timer *t)
{
	struct uar_entry_call *c = UAR_OWNER(t, struct uar_entry_call, grace);

	if (!taken_meanwhile(c))
		write_off(c);
}

void library_cancel(struct uar_entry_call *c, uar_str reason)
{
	struct library *l = library_of(c);
	struct job *j = c->job;
	int64_t grace = c->plugin->m.cancel_grace_us;

	if (c->state == CALL_CANCELLING)
		return;
	c->state = CALL_CANCELLING;
	pthread_mutex_lock(&l->lock);
	c->graced = j->state != JOB_QUEUED;
	if (!c->graced)
		grace = 0; /* later, not inside the call that asked */
	snprintf(j->reason, sizeof j->reason, "%.*s",
		 UAR_FMT(uar_str_utf8_prefix(reason, sizeof j->reason - 1)));
	atomic_store_explicit(&j->cancelled, true, memory_order_release);
	pthread_cond_broadcast(&j->told);
	pthread_mutex_unlock(&l->lock);
	if (uar_timer_set(uar_loop_sched(c->plugin->host->o.loop), &c->grace, grace))
		plugin_note(c->plugin, UAR_LOG_ERROR, "plugin.no_timer", c, UAR_STR(""));
}

/* Nobody listens any more: what the thread waits for will not come. */
void library_deaf(struct uar_entry_call *c)
{
	if (c->job)
		answer(c->job, UAR_ESTATE);
}

void library_answer(struct uar_entry_call *c, const struct uar_entry_answer *a)
{
	if (!c->job)
		return;
	if (!a->err)
		snprintf(c->job->export_id, sizeof c->job->export_id, "%.*s", UAR_FMT(a->id));
	answer(c->job, a->err);
}

/* Threads that never come back are tolerated up to a number. */
static bool worn_out(struct library *l, struct uar_error *error)
{
	uint32_t lost;

	pthread_mutex_lock(&l->lock);
	lost = l->pool.lost;
	pthread_mutex_unlock(&l->lock);
	if (lost < UAR_LIMIT_LIBRARY_LOST)
		return false;
	uar_error_set(error, UAR_EBUSY,
		      "%u runs of this library ignored their cancel and have not returned: it "
		      "takes no more until they do",
		      lost);
	return true;
}

uar_err library_start(struct uar_entry_call *c, const struct uar_entry_request *r,
		      struct uar_error *error)
{
	struct library *l = library_of(c);
	struct job *j;

	if (worn_out(l, error))
		return UAR_EBUSY;
	j = job_make(l, r);
	if (!j)
		return UAR_ENOMEM;
	j->call = c;
	c->job = j;
	c->grace.fn = on_grace_over;
	c->state = CALL_RUNNING;
	if (pool_submit(l, j))
		return UAR_OK;
	c->job = NULL;
	job_free(j);
	return UAR_ENOMEM;
}

/* --- life ------------------------------------------------------------------------------------- */

uar_err library_open(struct plugin *p, struct uar_error *error)
{
	struct library *l = uar_zalloc(sizeof *l);
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	uar_err e;

	if (!l)
		return UAR_ENOMEM;
	l->plugin = p;
	l->sched = uar_loop_sched(p->host->o.loop);
	l->pool.max = p->m.concurrency;
	l->pool.quick =
		processors > 0 && processors < l->pool.max ? (uint32_t)processors : l->pool.max;
	l->stall.fn = pool_stalled;
	l->users = 1;
	l->task.fn = on_inbox;
	pthread_mutex_init(&l->lock, NULL);
	monotonic(&l->work);
	monotonic(&l->quiet);
	uar_list_init(&l->queue);
	uar_list_init(&l->inbox);
	e = load(l, &p->m, error);
	if (e) {
		library_free(l);
		return e;
	}
	p->library = l;
	return UAR_OK;
}

/* Under the lock. Jobs that nobody executes any more are freed; the threads of the
 * others free them when they come back. */
static void drop_jobs(struct library *l)
{
	UAR_LIST_EACH (it, &l->queue) {
		uar_list_remove(it);
		job_free(UAR_OWNER(it, struct job, queued));
	}
	UAR_LIST_EACH (it, &l->inbox) {
		struct job *j = UAR_OWNER(it, struct job, news);

		uar_list_remove(&j->news);
		if (j->state == JOB_RETURNED)
			job_free(j);
	}
}

static void tell_to_stop(struct uar_entry_call *c)
{
	struct job *j = c->job;

	if (!j || j->state == JOB_QUEUED)
		return;
	atomic_store_explicit(&j->cancelled, true, memory_order_release);
	if (j->mail) {
		j->mail->result = UAR_ESTATE;
		j->mail->answered = true;
	}
	pthread_cond_broadcast(&j->told);
}

static struct timespec in_us(int64_t us)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += us / 1000000;
	t.tv_nsec += us % 1000000 * 1000;
	if (t.tv_nsec >= 1000000000L) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000L;
	}
	return t;
}

void library_stop(struct plugin *p)
{
	struct library *l = p->library;

	if (!l)
		return;
	uar_timer_stop(l->sched, &l->stall);
	pthread_mutex_lock(&l->lock);
	l->until = in_us(p->m.cancel_grace_us);
	l->closed = true;
	UAR_LIST_EACH (it, &p->calls)
		tell_to_stop(UAR_OWNER(it, struct uar_entry_call, node));
	drop_jobs(l);
	pthread_cond_broadcast(&l->work);
	pthread_mutex_unlock(&l->lock);
}

void library_close(struct plugin *p)
{
	struct library *l = p->library;
	bool last;
	int late = 0;

	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	while (pool_live(l) > 0 && !late)
		late = pthread_cond_timedwait(&l->quiet, &l->lock, &l->until);
	uar_unpost(l->sched, &l->task); /* before the library may be gone */
	last = --l->users == 0;
	pthread_mutex_unlock(&l->lock);
	p->library = NULL;
	if (last)
		library_free(l);
}

void library_count(struct library *l, struct uar_plugin_stats *out)
{
	pthread_mutex_lock(&l->lock);
	out->threads += l->pool.threads;
	out->lost += l->pool.lost;
	pthread_mutex_unlock(&l->lock);
}
