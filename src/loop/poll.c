/* poll.c - uv_poll_t, freed when libuv lets it go. */
#include "loop/poll.h"

#include <uv.h>

#include "base/alloc.h"

struct uar_poll {
	uv_poll_t handle;
	uar_poll_fn *fn;
	void *ctx;
};

static void on_event(uv_poll_t *handle, int status, int events)
{
	struct uar_poll *p = handle->data;

	(void)status, (void)events;
	p->fn(p->ctx);
}

static void on_closed(uv_handle_t *handle)
{
	uar_free(handle->data);
}

uar_err uar_poll_start(struct uar_loop *l, int fd, uar_poll_fn *fn, void *ctx,
		       struct uar_poll **out)
{
	struct uar_poll *p = uar_zalloc(sizeof *p);
	int number;

	if (!p)
		return UAR_ENOMEM;
	p->fn = fn;
	p->ctx = ctx;
	p->handle.data = p;
	number = uv_poll_init(uar_loop_uv(l), &p->handle, fd);
	if (number) {
		uar_free(p);
		return uar_loop_err(number);
	}
	number = uv_poll_start(&p->handle, UV_READABLE, on_event);
	if (number) {
		uv_close((uv_handle_t *)&p->handle, on_closed);
		return uar_loop_err(number);
	}
	*out = p;
	return UAR_OK;
}

void uar_poll_pause(struct uar_poll *p, bool paused)
{
	if (paused)
		uv_poll_stop(&p->handle);
	else
		(void)uv_poll_start(&p->handle, UV_READABLE, on_event);
}

void uar_poll_stop(struct uar_poll *p)
{
	if (p)
		uv_close((uv_handle_t *)&p->handle, on_closed);
}
