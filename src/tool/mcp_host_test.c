/* mcp_host_test.c - whose a server is. */
#include "test.h"

#include "base/buf.h"
#include "loop/loop.h"
#include "mcp/client.h"
#include "tool/mcp_host.h"
#include "tool/registry.h"

static const struct uar_owner ann = { UAR_STR("t"), UAR_STR("w"), UAR_STR("ann") };
static const struct uar_owner bob = { UAR_STR("t"), UAR_STR("w"), UAR_STR("bob") };

struct world {
	struct uar_loop *loop;
	struct uar_tools *registry;
	struct uar_mcp_host *host;
	char keys[8][80];
	size_t loads, drops;
};

static void on_load(void *ctx, const char *key, struct uar_buf *out)
{
	struct world *w = ctx;

	(void)out;
	if (w->loads < 8)
		snprintf(w->keys[w->loads++], sizeof w->keys[0], "%s", key);
}

static void on_keep(void *ctx, const char *key, uar_str tokens)
{
	struct world *w = ctx;

	w->drops += !tokens.n && strcmp(key, w->keys[0]) == 0;
}

static void on_changed(void *ctx, const struct uar_mcp_hosted *h)
{
	(void)ctx;
	(void)h;
}

static bool world_init(struct world *w)
{
	struct uar_mcp_host_options o = {
		.load = on_load, .keep = on_keep, .changed = on_changed, .ctx = w
	};

	*w = (struct world){ 0 };
	if (!CHECK(uar_loop_create(&uar_clock_system, &w->loop) == UAR_OK) ||
	    !CHECK(uar_tool_registry_create(uar_loop_sched(w->loop), NULL, &w->registry) == UAR_OK))
		return false;
	o.loop = w->loop;
	o.registry = w->registry;
	return CHECK(uar_mcp_host_create(&o, &w->host) == UAR_OK);
}

static void world_fini(struct world *w)
{
	uar_mcp_host_destroy(w->host);
	uar_tools_destroy(w->registry);
	uar_loop_destroy(w->loop);
}

static uar_err put(struct world *w, const struct uar_owner *owner, enum uar_mcp_origin origin)
{
	struct uar_mcp_put p = { .name = UAR_STR("notes"),
				 .text = UAR_STR("{\"url\":\"https://mcp.example/mcp\"}"),
				 .origin = origin,
				 .agent_id = UAR_STR("") };

	if (owner)
		p.owner = *owner;
	return uar_mcp_host_put(w->host, &p, NULL);
}

TEST(owners_share_no_connection_and_no_token, "")
{
	struct uar_mcp_hosted *of_ann, *of_bob;
	struct world w;

	if (!world_init(&w))
		return;
	CHECK(put(&w, &ann, UAR_MCP_OF_DATABASE) == UAR_OK);
	CHECK(put(&w, &bob, UAR_MCP_OF_DATABASE) == UAR_OK);
	of_ann = uar_mcp_host_find(w.host, &ann, UAR_STR("notes"));
	of_bob = uar_mcp_host_find(w.host, &bob, UAR_STR("notes"));
	if (CHECK(of_ann && of_bob && of_ann != of_bob))
		CHECK(uar_mcp_hosted_client(of_ann) != uar_mcp_hosted_client(of_bob));
	CHECK(uar_mcp_host_find(w.host, NULL, UAR_STR("notes")) == NULL);
	if (CHECK(w.loads == 2))
		CHECK(strcmp(w.keys[0], w.keys[1]) != 0);
	CHECK(put(&w, NULL, UAR_MCP_OF_SETTINGS) == UAR_EEXISTS);
	uar_mcp_host_drop(w.host, UAR_MCP_OF_DATABASE, &ann, UAR_STR("notes"));
	CHECK_INT((int)w.drops, 1);
	CHECK(uar_mcp_host_find(w.host, &ann, UAR_STR("notes")) == NULL);
	CHECK(uar_mcp_host_find(w.host, &bob, UAR_STR("notes")) == of_bob);
	world_fini(&w);
}

TEST(what_is_for_everybody_keeps_its_name, "")
{
	struct world w;

	if (!world_init(&w))
		return;
	CHECK(put(&w, NULL, UAR_MCP_OF_SETTINGS) == UAR_OK);
	CHECK(put(&w, &ann, UAR_MCP_OF_DATABASE) == UAR_EEXISTS);
	CHECK(uar_mcp_host_find(w.host, &bob, UAR_STR("notes")) != NULL);
	world_fini(&w);
}
