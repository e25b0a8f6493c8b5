/* toy_test.h - a backend that only records, for the tests of the contract. */
#ifndef UAR_BACKEND_TOY_TEST_H
#define UAR_BACKEND_TOY_TEST_H

#include "test.h"

#include <stdatomic.h>

#include "backend/int.h"

struct fake {
	const char *kind;
	uaa_caps *caps;
	atomic_int runs, cancels, closes, destroyed;
	uaa_producer *producer; /* of the newest run; the test drives it */
};

static uaa_str fake_kind(void *self)
{
	return uaa_str_c(((struct fake *)self)->kind);
}

static const uaa_caps *fake_caps(void *self)
{
	return ((struct fake *)self)->caps;
}

static void fake_cancel(void *ctx)
{
	atomic_fetch_add(&((struct fake *)ctx)->cancels, 1);
}

static void fake_closed(void *ctx)
{
	atomic_fetch_add(&((struct fake *)ctx)->closes, 1);
}

static uaa_status fake_run(void *self, const uaa_request *request, uaa_run **out, uaa_error **error)
{
	static const uaa_producer_hooks hooks = { sizeof hooks, fake_cancel, fake_closed };
	struct fake *f = self;

	(void)request, (void)error;
	atomic_fetch_add(&f->runs, 1);
	return uaa_run_new(uaa_str_c(f->kind), &hooks, f, out, &f->producer);
}

static void fake_destroy(void *self)
{
	atomic_fetch_add(&((struct fake *)self)->destroyed, 1);
}

static const uaa_backend_ops fake_ops = {
	.struct_size = sizeof fake_ops,
	.abi = (uint32_t)UAA_ABI_MAJOR << 16,
	.kind = fake_kind,
	.caps = fake_caps,
	.run = fake_run,
	.destroy = fake_destroy,
};

struct world {
	struct fake fake;
	uaa_gateway *gw;
	uaa_kind *kind;
	uaa_request *req;
};

static inline void world_init(struct world *w, const char *extra)
{
	uaa_backend *b;

	*w = (struct world){ .fake.kind = "toy" };
	w->fake.caps = uaa_caps_new();
	uaa_caps_add(w->fake.caps, uaa_str_c("agent_api.run"));
	uaa_caps_add(w->fake.caps, uaa_str_c("agent_api.events"));
	if (extra)
		uaa_caps_add(w->fake.caps, uaa_str_c(extra));
	b = uaa_backend_new(&fake_ops, &w->fake);
	w->gw = uaa_gateway_new();
	CHECK(uaa_gateway_register(w->gw, b, NULL) == UAA_OK);
	uaa_backend_unref(b);
	uaa_kind_new(uaa_str_c("toy"), &w->kind, NULL);
	w->req = uaa_request_new();
	uaa_request_set_prompt(w->req, uaa_str_c("hello"));
}

static inline void world_fini(struct world *w)
{
	uaa_gateway_unref(w->gw);
	CHECK_INT(w->fake.destroyed, 1);
	uaa_kind_unref(w->kind);
	uaa_request_unref(w->req);
	uaa_caps_unref(w->fake.caps);
}

static inline uaa_run *start(struct world *w)
{
	uaa_run *run = NULL;

	CHECK(uaa_gateway_run(w->gw, w->kind, w->req, &run, NULL) == UAA_OK);
	return run;
}

static inline void say(struct fake *f, const char *text)
{
	uaa_event_spec s = { .kind = UAA_EV_TEXT_OUTPUT,
			     .channel = UAB_STR("assistant"),
			     .text = uaa_str_c(text) };

	uaa_producer_emit(f->producer, &s);
}

static inline void succeed(struct fake *f, int wait_status)
{
	uaa_producer_succeed(f->producer, wait_status, UAB_STR("bye"), UAB_NONE);
	uaa_producer_unref(f->producer);
}

#endif
