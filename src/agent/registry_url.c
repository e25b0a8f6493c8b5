/* registry_url.c - definitions that a registry service lists. */
#include "agent/registry_int.h"

static void refuse_item(struct uar_registry *r, const char *url, size_t index,
			const struct uar_error *error)
{
	struct uar_registry_broken b = { .text = "" };

	snprintf(b.file, sizeof b.file, "%s", url);
	snprintf(b.text, sizeof b.text, "/agents/%zu%s: %s", index, error->where,
		 uar_error_text(error));
	uar_registry_note_broken(r, &b);
	uar_registry_tell(r, UAR_LOG_WARN, "agent.refused", url, uar_str_c(b.text));
}

static uar_err add_item(struct uar_registry *r, const struct uar_json *item,
			struct uar_error *error)
{
	struct uar_definition def;
	struct uar_registered *entry;
	uar_err e = uar_definition_read(item->text, &def, error);

	if (!e)
		e = uar_registered_take(&def, &entry);
	if (e)
		return e;
	entry->source = UAR_AGENT_FROM_URL;
	if (uar_str_starts(entry->def.info.entry, UAR_STR("backend.")))
		e = uar_error_set(error, UAR_EFORBIDDEN,
				  "a registry may not start programs; write a file instead");
	if (!e)
		e = uar_registry_is_free(r, UAR_AGENT_FROM_URL, entry->def.info.agent_id, error);
	if (!e)
		e = uar_registry_add(r, entry);
	uar_registered_unref(entry);
	return e;
}

static void remove_all(struct uar_registry *r)
{
	for (size_t i = r->count; i-- > 0;)
		if (r->at[i]->source == UAR_AGENT_FROM_URL)
			uar_registry_remove(r, i);
}

uar_err uar_registry_read_url(struct uar_registry *r, const char *url, uar_str body,
			      struct uar_error *error)
{
	const struct uar_json *j, *agents = NULL;
	struct uar_arena arena;
	size_t index = 0;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(body, NULL, &arena, &j, error);
	if (!e) {
		agents = uar_json_get(j, UAR_STR("agents"));
		if (!agents || agents->kind != UAR_JSON_ARRAY)
			e = uar_error_set(error, UAR_ESCHEMA, "it has no list `agents`");
	}
	if (!e) {
		remove_all(r);
		uar_registry_forget_broken(r, url);
	}
	for (const struct uar_json *i = e ? NULL : uar_json_at(agents, 0); i; i = i->next) {
		struct uar_error why = { 0 };

		why.code = add_item(r, i, &why);
		if (why.code)
			refuse_item(r, url, index, &why);
		index++;
	}
	uar_arena_fini(&arena);
	return e;
}
