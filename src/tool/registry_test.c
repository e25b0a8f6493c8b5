/* registry_test.c - several sources behind one registry, and what changes while calls go on. */
#include "test.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "loop/loop.h"
#include "tool/limits.h"
#include "tool/registry.h"

enum { MOST = 4 };

/* A source whose calls end when the test says so. */
struct fake {
	struct uar_tools base;
	struct uar_tool tools[MOST];
	size_t count;
	struct uar_tool_events events; /* of its one call */
	bool at_work, cancelled, destroyed;
	char started[64];
};

struct heard {
	struct uar_loop *loop;
	unsigned dones;
	bool ok;
	char category[32], message[300], output[200];
};

static struct fake *fake_of(struct uar_tools *t)
{
	return (struct fake *)(void *)t;
}

static const struct uar_tool *fake_at(struct uar_tools *t, size_t index)
{
	return index < fake_of(t)->count ? &fake_of(t)->tools[index] : NULL;
}

static uar_err fake_start(struct uar_tools *t, const struct uar_tool_request *r,
			  const struct uar_tool_events *events, struct uar_tool_call **out,
			  struct uar_error *error)
{
	struct fake *f = fake_of(t);

	(void)error;
	f->events = *events;
	f->at_work = true;
	snprintf(f->started, sizeof f->started, "%.*s", UAR_FMT(r->tool->tool_id));
	*out = (struct uar_tool_call *)(void *)f;
	return UAR_OK;
}

static void fake_cancel(struct uar_tools *t, struct uar_tool_call *call)
{
	(void)call;
	fake_of(t)->at_work = false;
	fake_of(t)->cancelled = true;
}

static bool fake_withdraw(struct uar_tools *t, struct uar_tool_call *call)
{
	fake_cancel(t, call);
	return true;
}

static void fake_destroy(struct uar_tools *t)
{
	fake_of(t)->destroyed = true;
}

static const struct uar_tools_ops fake_ops = {
	.abi = 1,
	.size = sizeof(struct uar_tools_ops),
	.destroy = fake_destroy,
	.at = fake_at,
	.start = fake_start,
	.cancel = fake_cancel,
	.withdraw = fake_withdraw,
};

static void fake_init(struct fake *f)
{
	*f = (struct fake){ .base.ops = &fake_ops };
}

static struct uar_tool *fake_add(struct fake *f, const char *tool_id)
{
	struct uar_tool *t = &f->tools[f->count++];

	*t = (struct uar_tool){ .tool_id = uar_str_c(tool_id),
				.name = uar_str_c(tool_id),
				.description = UAR_STR("does something"),
				.version = UAR_STR("1"),
				.transport = UAR_STR("mcp"),
				.input_schema = UAR_STR("{\"type\":\"object\"}"),
				.tags = UAR_STR("[]"),
				.effect = UAR_TOOL_ONCE,
				.timeout_us = 1000000 };
	return t;
}

static void on_done(void *ctx, const struct uar_tool_result *r)
{
	struct heard *h = ctx;

	h->dones++;
	uar_loop_stop(h->loop);
	h->ok = r->ok;
	snprintf(h->category, sizeof h->category, "%.*s", UAR_FMT(r->category));
	snprintf(h->message, sizeof h->message, "%.*s", UAR_FMT(r->message));
	snprintf(h->output, sizeof h->output, "%.*s", UAR_FMT(r->output));
}

struct scene {
	struct uar_loop *loop;
	struct uar_tools *registry;
	struct fake one, two;
	struct heard heard;
	struct uar_tool_call *call;
};

static bool scene_init(struct scene *s)
{
	*s = (struct scene){ 0 };
	fake_init(&s->one);
	fake_init(&s->two);
	fake_add(&s->one, "a:first");
	fake_add(&s->one, "a:second");
	fake_add(&s->two, "b:first");
	if (!CHECK(uar_loop_create(&uar_clock_system, &s->loop) == UAR_OK))
		return false;
	s->heard.loop = s->loop;
	return CHECK(uar_tool_registry_create(uar_loop_sched(s->loop), NULL, &s->registry) ==
		     UAR_OK) &&
	       CHECK(uar_tool_registry_add(s->registry, &s->one.base, NULL) == UAR_OK) &&
	       CHECK(uar_tool_registry_add(s->registry, &s->two.base, NULL) == UAR_OK);
}

static void scene_fini(struct scene *s)
{
	uar_tools_destroy(s->registry);
	uar_loop_destroy(s->loop);
}

static uar_err scene_start(struct scene *s, const char *tool_id, const char *input)
{
	struct uar_tool_events events = { .done = on_done, .ctx = &s->heard };
	struct uar_tool_request r = { .tool = uar_tools_find(s->registry, NULL, uar_str_c(tool_id)),
				      .input = uar_str_c(input) };

	return s->registry->ops->start(s->registry, &r, &events, &s->call, NULL);
}

TEST(sources_are_one_list, "TOOL-02")
{
	struct scene s;
	const struct uar_tool *t;
	size_t n = 0;

	REQUIRE(scene_init(&s));
	while ((t = s.registry->ops->at(s.registry, n))) {
		CHECK(uar_tools_by_model_name(s.registry, NULL, t->model_name) == t);
		n++;
	}
	CHECK_INT(n, 3);
	CHECK(scene_start(&s, "b:first", "{}") == UAR_OK);
	CHECK_STR(uar_str_c(s.two.started), "b:first");
	CHECK(!s.one.at_work);
	s.two.events.done(s.two.events.ctx, &(struct uar_tool_result){ .ok = true });
	CHECK_INT(s.heard.dones, 1);
	scene_fini(&s);
	CHECK(s.one.destroyed && s.two.destroyed);
}

TEST(a_change_has_a_new_generation, "")
{
	struct scene s;
	const struct uar_tool *kept, *old;
	uint64_t before;

	REQUIRE(scene_init(&s));
	before = uar_tools_generation(s.registry);
	kept = uar_tools_find(s.registry, NULL, UAR_STR("a:first"));
	old = uar_tools_find(s.registry, NULL, UAR_STR("a:second"));
	uar_tools_hold(s.registry, old);
	s.one.tools[1].description = UAR_STR("does something else");
	fake_add(&s.one, "a:third");
	CHECK(uar_tool_registry_changed(s.registry, &s.one.base, NULL) == UAR_OK);
	CHECK(uar_tools_generation(s.registry) > before);
	CHECK(uar_tools_find(s.registry, NULL, UAR_STR("a:first")) == kept);
	CHECK(uar_tools_find(s.registry, NULL, UAR_STR("a:second")) != old);
	CHECK_STR(old->description, "does something"); /* it is held */
	CHECK(uar_tools_find(s.registry, NULL, UAR_STR("a:third")) != NULL);
	uar_tools_let_go(s.registry, old);
	scene_fini(&s);
}

TEST(a_source_that_goes_takes_only_its_own_tools_along, "")
{
	struct scene s;

	REQUIRE(scene_init(&s));
	REQUIRE(scene_start(&s, "a:first", "{}") == UAR_OK);
	uar_tool_registry_remove(s.registry, &s.one.base);
	CHECK(s.one.destroyed && s.one.cancelled);
	CHECK_INT(s.heard.dones, 0); /* not inside the call */
	uar_loop_run(s.loop);
	CHECK_INT(s.heard.dones, 1);
	CHECK(!s.heard.ok);
	CHECK_STR(uar_str_c(s.heard.category), "dependency");
	CHECK(uar_tools_find(s.registry, NULL, UAR_STR("a:first")) == NULL);
	CHECK(uar_tools_find(s.registry, NULL, UAR_STR("b:first")) != NULL);
	scene_fini(&s);
}

TEST(schemas_are_checked_on_both_sides, "TOOL-06")
{
	struct scene s;
	struct uar_tool *t;

	REQUIRE(scene_init(&s));
	t = fake_add(&s.two, "b:strict");
	t->input_schema = UAR_STR("{\"type\":\"object\",\"required\":[\"x\"]}");
	t->output_schema = UAR_STR("{\"type\":\"object\",\"required\":[\"y\"]}");
	REQUIRE(uar_tool_registry_changed(s.registry, &s.two.base, NULL) == UAR_OK);
	CHECK_INT(scene_start(&s, "b:strict", "{}"), UAR_ESCHEMA);
	CHECK(!s.two.at_work);
	REQUIRE(scene_start(&s, "b:strict", "{\"x\":1}") == UAR_OK);
	s.two.events.done(s.two.events.ctx,
			  &(struct uar_tool_result){ .ok = true, .output = UAR_STR("{\"z\":1}") });
	CHECK(!s.heard.ok);
	CHECK_STR(uar_str_c(s.heard.category), "execution");
	CHECK(strstr(s.heard.message, "it was executed") != NULL);
	REQUIRE(scene_start(&s, "b:strict", "{\"x\":1}") == UAR_OK);
	s.two.events.done(s.two.events.ctx,
			  &(struct uar_tool_result){ .ok = true, .output = UAR_STR("{\"y\":1}") });
	CHECK(s.heard.ok);
	scene_fini(&s);
}

TEST(parts_alone_are_a_result, "")
{
	static const struct uar_tool_part parts[] = {
		{ .kind = UAR_TOOL_TEXT, .text = UAR_STR("a picture") },
		{ .kind = UAR_TOOL_IMAGE,
		  .bytes = UAR_STR("abc"),
		  .media_type = UAR_STR("image/png") },
	};
	struct scene s;

	REQUIRE(scene_init(&s));
	REQUIRE(scene_start(&s, "a:first", "{}") == UAR_OK);
	s.one.events.done(s.one.events.ctx,
			  &(struct uar_tool_result){ .ok = true, .parts = parts, .part_count = 2 });
	CHECK(s.heard.ok);
	CHECK_STR(uar_str_c(s.heard.output),
		  "{\"parts\":[{\"type\":\"text\",\"text\":\"a picture\"},{\"type\":\"image\","
		  "\"media_type\":\"image/png\",\"bytes\":3,\"data\":\"YWJj\"}]}");
	scene_fini(&s);
}

TEST(a_tool_with_a_broken_schema_is_unavailable, "")
{
	struct scene s;
	const struct uar_tool *t;

	REQUIRE(scene_init(&s));
	fake_add(&s.two, "b:broken")->input_schema = UAR_STR("{\"type\":7}");
	REQUIRE(uar_tool_registry_changed(s.registry, &s.two.base, NULL) == UAR_OK);
	t = uar_tools_find(s.registry, NULL, UAR_STR("b:broken"));
	REQUIRE(t != NULL);
	CHECK_INT(t->state, UAR_TOOL_UNAVAILABLE);
	CHECK(uar_str_starts(t->state_reason, UAR_STR("its input schema cannot be used")));
	CHECK(uar_tools_find(s.registry, NULL, UAR_STR("b:first"))->state == UAR_TOOL_AVAILABLE);
	scene_fini(&s);
}

TEST(cancelled_calls_are_forgotten, "")
{
	struct scene s;

	REQUIRE(scene_init(&s));
	REQUIRE(scene_start(&s, "a:first", "{}") == UAR_OK);
	s.registry->ops->cancel(s.registry, s.call);
	CHECK(s.one.cancelled);
	REQUIRE(scene_start(&s, "b:first", "{}") == UAR_OK);
	CHECK(s.registry->ops->withdraw(s.registry, s.call));
	REQUIRE(scene_start(&s, "b:first", "{}") == UAR_OK);
	scene_fini(&s); /* one is under way */
	CHECK_INT(s.heard.dones, 0);
}

TEST(a_registry_above_another_has_the_tools_of_both, "")
{
	struct uar_tools *above = NULL;
	struct fake own;
	struct scene s;

	REQUIRE(scene_init(&s));
	fake_init(&own);
	fake_add(&own, "c:own");
	REQUIRE(uar_tool_registry_create(uar_loop_sched(s.loop), s.registry, &above) == UAR_OK);
	REQUIRE(uar_tool_registry_add(above, &own.base, NULL) == UAR_OK);
	CHECK(uar_tools_find(above, NULL, UAR_STR("c:own")) &&
	      uar_tools_find(above, NULL, UAR_STR("a:first")));
	CHECK(!uar_tools_find(s.registry, NULL, UAR_STR("c:own")));
	CHECK(above->ops->at(above, 3) && !above->ops->at(above, 4));
	for (size_t i = 0; i < 2; i++) {
		struct uar_tool_events events = { .done = on_done, .ctx = &s.heard };
		struct uar_tool_request r = { .tool = above->ops->at(above, i),
					      .input = UAR_STR("{}") };

		CHECK(above->ops->start(above, &r, &events, &s.call, NULL) == UAR_OK);
		above->ops->cancel(above, s.call);
	}
	CHECK(own.cancelled && s.one.cancelled);
	uar_tools_destroy(above);
	scene_fini(&s);
}

TEST(two_owners_have_tools_of_the_same_name, "")
{
	const struct uar_owner ann = { UAR_STR("t"), UAR_STR("w"), UAR_STR("ann") };
	const struct uar_owner bob = { UAR_STR("t"), UAR_STR("w"), UAR_STR("bob") };
	const struct uar_tool *of_ann, *of_bob;
	struct fake first, second;
	struct scene s;

	if (!scene_init(&s))
		return;
	fake_init(&first);
	fake_init(&second);
	fake_add(&first, "mcp:notes/add")->owner = ann;
	fake_add(&second, "mcp:notes/add")->owner = bob;
	CHECK(uar_tool_registry_add(s.registry, &first.base, NULL) == UAR_OK);
	CHECK(uar_tool_registry_add(s.registry, &second.base, NULL) == UAR_OK);
	of_ann = uar_tools_find(s.registry, &ann, UAR_STR("mcp:notes/add"));
	of_bob = uar_tools_by_model_name(s.registry, &bob, UAR_STR("mcp__notes_add"));
	CHECK(of_ann && of_bob && of_ann != of_bob);
	CHECK(uar_tools_by_model_name(s.registry, &ann, UAR_STR("mcp__notes_add")) == of_ann);
	CHECK(!uar_tools_find(s.registry, NULL, UAR_STR("mcp:notes/add")));
	CHECK(uar_tools_find(s.registry, &bob, UAR_STR("a:first")) != NULL);
	if (of_bob) {
		struct uar_tool_events events = { .done = on_done, .ctx = &s.heard };
		struct uar_tool_request r = { .tool = of_bob, .input = UAR_STR("{}") };
		struct uar_tool_call *call = NULL;

		CHECK(s.registry->ops->start(s.registry, &r, &events, &call, NULL) == UAR_OK);
		CHECK(second.at_work && !first.at_work);
		s.registry->ops->cancel(s.registry, call);
	}
	uar_tool_registry_remove(s.registry, &first.base);
	CHECK(!uar_tools_find(s.registry, &ann, UAR_STR("mcp:notes/add")));
	CHECK(uar_tools_find(s.registry, &bob, UAR_STR("mcp:notes/add")) == of_bob);
	scene_fini(&s);
}

TEST(nothing_is_lost_without_memory, "")
{
	bool done = false;

	for (unsigned long n = 1; !done; n++) {
		struct scene s = { 0 };

		fake_init(&s.one);
		fake_add(&s.one, "a:first");
		fake_add(&s.one, "a:second");
		REQUIRE(uar_loop_create(&uar_clock_system, &s.loop) == UAR_OK);
		uar_test_fail_alloc(n);
		done = uar_tool_registry_create(uar_loop_sched(s.loop), NULL, &s.registry) ==
			       UAR_OK &&
		       uar_tool_registry_add(s.registry, &s.one.base, NULL) == UAR_OK &&
		       scene_start(&s, "a:first", "{}") == UAR_OK;
		uar_test_fail_alloc(0);
		scene_fini(&s);
	}
}
