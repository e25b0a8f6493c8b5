/* definition_request.c - inputs against schemas, and the definition kept before the run. */
#include "work/definition_request.h"

#include "agent/prompt.h"
#include "core/redact.h"
#include "json/schema.h"

/* --- inputs ---------------------------------------------------------------------------- */

/* All inputs in one object, as the caller wrote them. */
static uar_err join_inputs(const struct uar_run_create *op, struct uar_arena *arena,
			   const struct uar_json **out)
{
	struct uar_json *all = uar_arena_alloc(arena, sizeof *all);
	struct uar_json *message = uar_arena_alloc(arena, sizeof *message);
	const struct uar_json *rest = NULL;
	uar_err e = op->inputs.n ? uar_json_parse(op->inputs, NULL, arena, &rest, NULL) : UAR_OK;

	if (e || !all || !message)
		return e ? e : UAR_ENOMEM;
	*message = (struct uar_json){ .kind = UAR_JSON_STRING,
				      .key = UAR_STR("message"),
				      .text = op->message,
				      .next = uar_json_first(rest) };
	*all = (struct uar_json){ .kind = UAR_JSON_OBJECT,
				  .count = (rest ? rest->count : 0) + (op->message.n > 0),
				  .first = op->message.n ? message : message->next };
	*out = all;
	return UAR_OK;
}

static uar_err check_value(const struct uar_json *schema, const struct uar_json *value,
			   const char *root, struct uar_error *error)
{
	char where[UAR_LIMIT_ERROR_WHERE];
	struct uar_schema *s = NULL;
	struct uar_arena scratch;
	uar_err e = uar_schema_create(schema, NULL, &s, error);

	uar_arena_init(&scratch, 0);
	if (!e)
		e = uar_schema_validate(s, value, &scratch, error);
	uar_arena_fini(&scratch);
	uar_schema_destroy(s);
	if (e) {
		memcpy(where, error->where, sizeof where);
		uar_error_where(error, "%s%.140s", root, where);
	}
	return e;
}

/* "attachments" and what clients add are ours: schemas of people do not know them. */
static const struct uar_json *without_ours(const struct uar_json *all, struct uar_arena *arena)
{
	struct uar_json *copy = uar_arena_alloc(arena, sizeof *copy), *last = NULL;

	if (!copy)
		return NULL;
	*copy = (struct uar_json){ .kind = UAR_JSON_OBJECT };
	for (const struct uar_json *m = uar_json_first(all); m; m = m->next) {
		struct uar_json *own;

		if (uar_str_is(m->key, "attachments") || uar_str_starts(m->key, UAR_STR("$")))
			continue;
		own = uar_arena_alloc(arena, sizeof *own);
		if (!own)
			return NULL;
		*own = *m;
		own->next = NULL;
		if (last)
			last->next = own;
		else
			copy->first = own;
		last = own;
		copy->count++;
	}
	return copy;
}

static uar_err check_state(const struct uar_definition *d, const struct uar_run_create *op,
			   struct uar_arena *arena, struct uar_error *error)
{
	const struct uar_json *context = NULL, *state;
	uar_err e =
		op->context.n ? uar_json_parse(op->context, NULL, arena, &context, NULL) : UAR_OK;

	state = uar_json_get(context, UAR_STR("state"));
	if (e || !d->schemas.state || !state)
		return e;
	return check_value(d->schemas.state, state, "/context/state", error);
}

/* The message is what is said, and shown wherever a conversation is: it cannot be hidden. Other
 * inputs are sealed (input_seal.h). */
static uar_err check_recordable(const struct uar_definition *d, uar_str text,
				struct uar_error *error)
{
	struct uar_json message = { .kind = UAR_JSON_STRING,
				    .key = UAR_STR("message"),
				    .text = text };
	struct uar_json alone = { .kind = UAR_JSON_OBJECT, .count = 1, .first = &message };

	if (!text.n || !uar_redacts(&alone, d->schemas.inputs))
		return UAR_OK;
	uar_error_where(error, "/inputs/message");
	return uar_error_set(error, UAR_EINVALID,
			     "the message is recorded and cannot be secret: mark another input in "
			     "schemas.inputs, or let the agent ask with a form");
}

static uar_err check_inputs(const struct uar_definition *d, struct uar_run_create *op,
			    struct uar_arena *arena)
{
	const struct uar_json *all = NULL, *theirs = NULL;
	uar_err e = join_inputs(op, arena, &all);

	if (!e) {
		theirs = without_ours(all, arena);
		e = theirs ? UAR_OK : UAR_ENOMEM;
	}
	if (!e && d->schemas.inputs)
		e = check_value(d->schemas.inputs, theirs, "/inputs", &op->error);
	if (!e)
		e = check_recordable(d, op->message, &op->error);
	if (!e)
		e = uar_prompt_check(d, all, &op->error);
	return e ? e : check_state(d, op, arena, &op->error);
}

uar_err rt_definition_check(const struct uar_definition *d, struct uar_run_create *op)
{
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = check_inputs(d, op, &arena);
	uar_arena_fini(&arena);
	return e;
}

/* --- the blob ------------------------------------------------------------------------------ */

struct keeping_definition {
	struct rt_op under_way;
	struct uar_blob_put put;
	struct uar_registered *entry;
	struct rt_request *q; /* NULL: forgotten */
};

static void free_keeping(struct keeping_definition *k)
{
	uar_registered_unref(k->entry);
	uar_free(k);
}

static void drop_keeping(struct rt_op *op)
{
	free_keeping(UAR_OWNER(op, struct keeping_definition, under_way));
}

static void kept(struct uar_blob_put *put)
{
	struct keeping_definition *k = UAR_OWNER(put, struct keeping_definition, put);

	if (!put->err)
		k->entry->stored = true;
	if (k->q) {
		k->q->look = NULL;
		if (put->err)
			k->q->op->error = put->error;
		k->q->looked(k->q, put->err);
	}
	rt_op_end(&k->under_way);
	free_keeping(k);
}

static void forget_keeping(void *look)
{
	((struct keeping_definition *)look)->q = NULL;
}

uar_err rt_definition_look(struct uar_workers *w, struct rt_request *q)
{
	struct uar_registered *entry = rt_definition_known(w, q->what.definition);
	struct uar_store *store = rt_store(w->rt);
	struct keeping_definition *k;
	uar_err e;

	if (!entry)
		return UAR_ECONFLICT; /* nothing changes between the check and this */
	if (entry->stored)
		return UAR_ESKIP;
	k = uar_zalloc(sizeof *k);
	if (!k)
		return UAR_ENOMEM;
	k->entry = uar_registered_ref(entry);
	k->q = q;
	k->put.bytes = entry->def.text;
	k->put.done = kept;
	e = store->ops->blob_put(store, &k->put);
	if (e) {
		free_keeping(k);
		return e;
	}
	rt_op_begin(w->rt, &k->under_way, drop_keeping);
	q->look = k;
	q->forget = forget_keeping;
	return UAR_OK;
}
