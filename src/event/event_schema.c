/* event_schema.c - payload schemas compiled when the first event of a class is checked.
 *
 * Compiling all of them at start would cost every short-lived program; a
 * schema that failed to compile for want of memory is tried again. What was
 * made never changes, so readers need one acquire load. */
#include "event/event_int.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"

#define BASE_URI "uar://event/"

struct compiled {
	struct uar_arena arena; /* the parsed document */
	const struct uar_json *document;
	struct uar_schema *schema;
	struct uar_schema_resource common;
};

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static struct compiled *common; /* under `making`; its document alone */
static _Atomic(struct compiled *) slots[UAR_EV_VENDOR];

static void destroy(struct compiled *c)
{
	if (!c)
		return;
	uar_schema_destroy(c->schema);
	uar_arena_fini(&c->arena);
	uar_free(c);
}

static uar_err parse(uar_str text, struct compiled **out, struct uar_error *error)
{
	struct compiled *c = uar_zalloc(sizeof *c);
	uar_err e;

	if (!c)
		return uar_error_set(error, UAR_ENOMEM, "no memory for a payload schema");
	uar_arena_init(&c->arena, 0);
	e = uar_json_parse(text, NULL, &c->arena, &c->document, error);
	if (e) {
		destroy(c);
		return e;
	}
	*out = c;
	return UAR_OK;
}

static uar_err compile(struct compiled *c, enum uar_event_class cls, struct uar_error *error)
{
	uar_str uri = uar_arena_printf(&c->arena, BASE_URI "%s.json", uar_event_info[cls].type);
	struct uar_schema_options options = { .resources = &c->common,
					      .resource_count = 1,
					      .base_uri = uri.p,
					      .check_formats = true };

	if (!uri.p)
		return uar_error_set(error, UAR_ENOMEM, "no memory for a payload schema");
	c->common = (struct uar_schema_resource){ BASE_URI "common.json", common->document };
	return uar_schema_create(c->document, &options, &c->schema, error);
}

/* With `making` held. */
static uar_err make(enum uar_event_class cls, struct compiled **out, struct uar_error *error)
{
	uar_err e = common ? UAR_OK : parse(uar_event_schema_common(), &common, error);

	if (!e)
		e = parse(uar_event_schema(cls), out, error);
	if (e)
		return e;
	e = compile(*out, cls, error);
	if (e)
		destroy(*out);
	return e;
}

uar_err uar_event_schema_get(enum uar_event_class cls, const struct uar_schema **out,
			     struct uar_error *error)
{
	struct compiled *c = atomic_load_explicit(&slots[cls], memory_order_acquire);
	uar_err e = UAR_OK;

	if (!c) {
		pthread_mutex_lock(&making);
		c = atomic_load_explicit(&slots[cls], memory_order_relaxed);
		if (!c && !(e = make(cls, &c, error)))
			atomic_store_explicit(&slots[cls], c, memory_order_release);
		pthread_mutex_unlock(&making);
	}
	if (!e)
		*out = c->schema;
	return e;
}

void uar_event_schema_forget(void)
{
	pthread_mutex_lock(&making);
	for (size_t i = 0; i < UAR_EV_VENDOR; i++)
		destroy(atomic_exchange(&slots[i], NULL));
	destroy(common);
	common = NULL;
	pthread_mutex_unlock(&making);
}
