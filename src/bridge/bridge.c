/* bridge.c - birth and death of the host. */
#include "bridge/bridge_int.h"

/* Longer than the library takes to give up on a process. */
enum { LAST_WAIT_MS = 20000 };

uar_err uar_bridge_create(const struct uar_bridge_options *o, struct uar_bridge **out)
{
	struct uar_bridge *b = uar_zalloc(sizeof *b);
	uar_err e;

	if (!b)
		return UAR_ENOMEM;
	b->o = *o;
	b->port.ops = &bridge_ops;
	uar_list_init(&b->calls);
	uar_list_init(&b->dying);
	e = bridge_load(b, NULL, &b->set);
	if (e)
		uar_bridge_destroy(b);
	else
		*out = b;
	return e;
}

uar_err uar_bridge_reload(struct uar_bridge *b, void (*changed)(void *ctx), void *ctx)
{
	struct bridge_set *old = b->set, *next;
	uar_err e = bridge_load(b, old, &next);

	if (e)
		return e;
	b->set = next;
	changed(ctx);
	bridge_set_destroy(old);
	return UAR_OK;
}

struct uar_agents *uar_bridge_agents(struct uar_bridge *b)
{
	return &b->port;
}

static void end_all(struct uar_list *calls)
{
	UAR_LIST_EACH (it, calls) {
		struct uar_agent_call *c = UAR_OWNER(it, struct uar_agent_call, node);

		uaa_cancel_request(c->cancel);
		uaa_run_close_events(c->run);
	}
}

static void wait_all(struct uar_list *calls)
{
	UAR_LIST_EACH (it, calls) {
		struct uar_agent_call *c = UAR_OWNER(it, struct uar_agent_call, node);
		uaa_completion *completion = NULL;
		uaa_error *error = NULL;

		(void)uaa_run_wait(c->run, LAST_WAIT_MS, &completion, &error);
		uaa_completion_unref(completion);
		uaa_error_unref(error);
		bridge_call_free(c);
	}
}

void uar_bridge_destroy(struct uar_bridge *b)
{
	if (!b)
		return;
	end_all(&b->calls); /* all at once, then one after the other */
	end_all(&b->dying);
	wait_all(&b->calls);
	wait_all(&b->dying);
	bridge_set_destroy(b->set);
	uar_free(b);
}
