/* watch.c - inotify by way of libuv. */
#include "loop/watch.h"

#include <uv.h>

#include "base/alloc.h"

struct uar_dir_watch {
	uv_fs_event_t event;
	void (*changed)(void *ctx);
	void *ctx;
};

static void on_event(uv_fs_event_t *event, const char *name, int events, int status)
{
	struct uar_dir_watch *w = event->data;

	(void)name, (void)events, (void)status;
	if (w->changed)
		w->changed(w->ctx);
}

static void on_closed(uv_handle_t *h)
{
	uar_free(h->data);
}

uar_err uar_dir_watch_create(struct uar_loop *l, const char *dir, void (*changed)(void *ctx),
			     void *ctx, struct uar_dir_watch **out)
{
	struct uar_dir_watch *w = uar_zalloc(sizeof *w);

	if (!w)
		return UAR_ENOMEM;
	w->changed = changed;
	w->ctx = ctx;
	uv_fs_event_init(uar_loop_uv(l), &w->event);
	w->event.data = w;
	if (uv_fs_event_start(&w->event, on_event, dir, 0)) {
		uar_dir_watch_destroy(w);
		return UAR_EIO;
	}
	uv_unref((uv_handle_t *)&w->event);
	*out = w;
	return UAR_OK;
}

void uar_dir_watch_destroy(struct uar_dir_watch *w)
{
	if (!w)
		return;
	w->changed = NULL;
	uv_close((uv_handle_t *)&w->event, on_closed);
}
