/* plugin_scene.c - a host, one plugin and its calls, for tests. */
#include "plugin_scene.h"

#include <string.h>
#include <sys/stat.h>

#include "test.h"

static void on_note(void *ctx, const struct uar_plugin_note *n)
{
	struct scene *s = ctx;

	uar_buf_printf(&s->notes, "%s %.*s\n", n->what, UAR_FMT(n->text));
	uar_loop_stop(s->loop);
}

static void on_progress(void *ctx, const struct uar_progress *p)
{
	struct call *c = ctx;

	c->progress = p->value;
	c->reports++;
	uar_loop_stop(c->scene->loop);
}

static void on_exported(void *ctx, const struct uar_export *x, uar_str raw, uint64_t ticket)
{
	struct call *c = ctx;

	(void)raw;
	c->exports++;
	snprintf(c->exported, sizeof c->exported, "%.*s", UAR_FMT(x->content));
	c->held = ticket;
	if (c->hold)
		uar_loop_stop(c->scene->loop);
	else
		c->scene->port->ops->answer(
			c->call,
			&(struct uar_entry_answer){ .ticket = ticket, .id = UAR_STR("item") });
}

static void on_done(void *ctx, const struct uar_entry_end *end)
{
	struct call *c = ctx;

	CHECK(!c->done);
	c->done = true;
	c->call = NULL;
	c->how = end->how;
	c->retryable = end->retryable;
	c->refs = end->refs ? end->refs->count : 0;
	snprintf(c->code, sizeof c->code, "%.*s", UAR_FMT(end->code));
	snprintf(c->message, sizeof c->message, "%.*s", UAR_FMT(end->message));
	snprintf(c->result, sizeof c->result, "%.*s", UAR_FMT(end->result));
	c->scene->over++;
	uar_loop_stop(c->scene->loop);
}

struct uar_entry_events scene_events(struct call *c)
{
	return (struct uar_entry_events){
		.progress = on_progress, .exported = on_exported, .done = on_done, .ctx = c
	};
}

bool scene_begin(struct scene *s)
{
	static int number;
	char path[300];

	*s = (struct scene){ .notes = uar_buf_make(1 << 20) };
	snprintf(s->dir, sizeof s->dir, "%s/%d", uar_test_dir(), ++number);
	snprintf(path, sizeof path, "%s/p", s->dir);
	return CHECK(mkdir(s->dir, 0700) == 0 && mkdir(path, 0700) == 0);
}

bool scene_file(const struct scene *s, const char *name, const char *text)
{
	char path[400];
	FILE *f;

	snprintf(path, sizeof path, "%s/p/%s", s->dir, name);
	f = fopen(path, "we");
	return CHECK_MSG(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s", path);
}

bool scene_host(struct scene *s, char **env)
{
	struct uar_plugin_host_options o = { .dir = s->dir, .env = env, .note = on_note, .ctx = s };
	struct uar_error error = { 0 };

	leap_init(&s->time);
	if (!CHECK(uar_loop_create(&s->time.clock, &s->loop) == UAR_OK))
		return false;
	o.loop = s->loop;
	if (!CHECK_MSG(uar_plugin_host_create(&o, &s->host, &error) == UAR_OK, "%s", error.text))
		return false;
	s->port = uar_plugin_host_entries(s->host);
	return CHECK_MSG(!s->notes.n, "%s", s->notes.p);
}

void scene_end(struct scene *s)
{
	uar_plugin_host_destroy(s->host);
	uar_loop_destroy(s->loop);
	uar_buf_fini(&s->notes);
}

void until_done(struct scene *s, int i)
{
	while (!s->calls[i].done)
		uar_loop_run(s->loop);
}

void until_progress(struct scene *s, int i)
{
	while (!s->calls[i].reports)
		uar_loop_run(s->loop);
}

static void on_later(struct uar_timer *t)
{
	uar_loop_stop(UAR_OWNER(t, struct scene, later)->loop);
}

void scene_later(struct scene *s, int seconds)
{
	s->later.fn = on_later;
	leap_ahead(&s->time, uar_loop_sched(s->loop), seconds * (int64_t)1000000);
	CHECK(uar_timer_set(uar_loop_sched(s->loop), &s->later, 0) == UAR_OK);
	while (s->later.heap_index)
		uar_loop_run(s->loop);
}
