/* registry.c - one row of entries; look-ups go through it in the order of the sources. */
#include "agent/registry_int.h"

#include "base/alloc.h"
#include "json/json.h"

enum { FIRST_ROOM = 16 };

const char *const uar_agent_source_names[] = { "file", "database", "url" };

/* --- entries --------------------------------------------------------------------------- */

uar_err uar_registered_take(struct uar_definition *def, struct uar_registered **out)
{
	struct uar_registered *r = uar_zalloc(sizeof *r);

	if (!r) {
		uar_definition_fini(def);
		return UAR_ENOMEM;
	}
	r->refs = 1;
	r->def = *def;
	*out = r;
	return UAR_OK;
}

struct uar_registered *uar_registered_ref(struct uar_registered *r)
{
	r->refs++;
	return r;
}

void uar_registered_unref(struct uar_registered *r)
{
	if (!r || --r->refs)
		return;
	uar_definition_fini(&r->def);
	uar_free(r);
}

/* --- life --------------------------------------------------------------------------------- */

uar_err uar_registry_create(const struct uar_registry_options *o, struct uar_registry **out)
{
	struct uar_registry *r = uar_zalloc(sizeof *r);

	if (!r)
		return UAR_ENOMEM;
	r->o = *o;
	r->generation = 1;
	r->broken = uar_zalloc(UAR_LIMIT_AGENTS_BROKEN * sizeof *r->broken);
	if (!r->broken) {
		uar_free(r);
		return UAR_ENOMEM;
	}
	*out = r;
	return UAR_OK;
}

void uar_registry_destroy(struct uar_registry *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->count; i++)
		uar_registered_unref(r->at[i]);
	uar_free(r->at);
	uar_free(r->broken);
	uar_free(r);
}

uint64_t uar_registry_generation(const struct uar_registry *r)
{
	return r->generation;
}

uar_err uar_registry_add(struct uar_registry *r, struct uar_registered *entry)
{
	size_t room = r->room ? r->room * 2 : FIRST_ROOM;
	struct uar_registered **longer;

	if (r->count == UAR_LIMIT_AGENTS)
		return UAR_ETOOBIG;
	if (r->count == r->room) {
		longer = uar_realloc(r->at, room * sizeof(struct uar_registered *));
		if (!longer)
			return UAR_ENOMEM;
		r->at = longer;
		r->room = room;
	}
	r->at[r->count++] = uar_registered_ref(entry);
	r->generation++;
	return UAR_OK;
}

void uar_registry_remove(struct uar_registry *r, size_t index)
{
	struct uar_registered *gone = r->at[index];

	memmove(r->at + index, r->at + index + 1,
		(r->count - index - 1) * sizeof(struct uar_registered *));
	r->count--;
	r->generation++;
	uar_registered_unref(gone);
}

void uar_registry_tell(const struct uar_registry *r, enum uar_log_level level, const char *what,
		       const char *file, uar_str text)
{
	struct uar_registry_note n = { level, what, file, text };

	if (r->o.note)
		r->o.note(r->o.ctx, &n);
}

/* --- what is broken --------------------------------------------------------------------------- */

void uar_registry_forget_broken(struct uar_registry *r, const char *file)
{
	for (size_t i = 0; i < r->broken_count;)
		if (!strcmp(r->broken[i].file, file))
			r->broken[i] = r->broken[--r->broken_count];
		else
			i++;
}

void uar_registry_note_broken(struct uar_registry *r, const struct uar_registry_broken *b)
{
	if (r->broken_count < UAR_LIMIT_AGENTS_BROKEN)
		r->broken[r->broken_count++] = *b;
}

const struct uar_registry_broken *uar_registry_broken_at(const struct uar_registry *r, size_t index)
{
	return index < r->broken_count ? &r->broken[index] : NULL;
}

/* --- look-ups ------------------------------------------------------------------------------- */

static struct uar_registered *find_of(const struct uar_registry *r, enum uar_agent_source source,
				      const struct uar_owner *owner, uar_str id)
{
	for (size_t i = 0; i < r->count; i++) {
		struct uar_registered *e = r->at[i];

		if (e->source == source && uar_str_eq(e->def.info.agent_id, id) &&
		    (source != UAR_AGENT_FROM_DATABASE || uar_owner_eq(&e->owner, owner)))
			return e;
	}
	return NULL;
}

struct uar_registered *uar_registry_find(const struct uar_registry *r,
					 const struct uar_owner *owner, uar_str id)
{
	struct uar_registered *found = NULL;

	for (int s = 0; s < UAR_AGENT_SOURCE_COUNT && !found; s++)
		if (owner || s != UAR_AGENT_FROM_DATABASE)
			found = find_of(r, (enum uar_agent_source)s, owner, id);
	return found;
}

struct uar_registered *uar_registry_own(const struct uar_registry *r, const struct uar_owner *owner,
					uar_str id)
{
	return find_of(r, UAR_AGENT_FROM_DATABASE, owner, id);
}

struct uar_registered *uar_registry_at(const struct uar_registry *r, size_t index)
{
	return index < r->count ? r->at[index] : NULL;
}

bool uar_registry_shows(const struct uar_registry *r, const struct uar_owner *owner,
			const struct uar_registered *entry)
{
	return uar_registry_find(r, owner, entry->def.info.agent_id) == entry;
}

uar_err uar_registry_is_free(const struct uar_registry *r, enum uar_agent_source source, uar_str id,
			     struct uar_error *error)
{
	const struct uar_registered *other = find_of(r, UAR_AGENT_FROM_FILE, NULL, id);

	if (r->o.taken && r->o.taken(id))
		return uar_error_set(error, UAR_EEXISTS,
				     "an agent %.*s is part of the program; choose another id",
				     UAR_FMT(id));
	if (other)
		return uar_error_set(error, UAR_EEXISTS,
				     "there is an agent %.*s already, in %.100s", UAR_FMT(id),
				     other->file);
	if (source == UAR_AGENT_FROM_URL && find_of(r, source, NULL, id))
		return uar_error_set(error, UAR_EEXISTS, "there is an agent %.*s already",
				     UAR_FMT(id));
	return UAR_OK;
}

/* --- the database --------------------------------------------------------------------------- */

uar_err uar_registry_may_put(const struct uar_registry *r, const struct uar_owner *owner,
			     uar_str id, struct uar_error *error)
{
	uar_err e = uar_registry_is_free(r, UAR_AGENT_FROM_DATABASE, id, error);

	if (!e && r->count == UAR_LIMIT_AGENTS && !uar_registry_own(r, owner, id))
		e = uar_error_set(error, UAR_ETOOBIG, "%d agents are defined already",
				  UAR_LIMIT_AGENTS);
	return e;
}

void uar_registry_drop(struct uar_registry *r, const struct uar_owner *owner, uar_str id)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->at[i] == uar_registry_own(r, owner, id)) {
			uar_registry_remove(r, i);
			return;
		}
}

static uar_err replace_own(struct uar_registry *r, struct uar_registered *entry)
{
	const struct uar_registered *old =
		uar_registry_own(r, &entry->owner, entry->def.info.agent_id);

	for (size_t i = 0; old && i < r->count; i++)
		if (r->at[i] == old) {
			uar_registered_unref(r->at[i]);
			r->at[i] = uar_registered_ref(entry);
			r->generation++;
			return UAR_OK;
		}
	return uar_registry_add(r, entry);
}

uar_err uar_registry_put(struct uar_registry *r, const struct uar_owner *owner,
			 struct uar_definition *take, int64_t version, int64_t updated_us)
{
	struct uar_registered *entry;
	uar_err e = uar_registered_take(take, &entry);

	if (e)
		return e;
	entry->source = UAR_AGENT_FROM_DATABASE;
	entry->version = version;
	entry->updated_us = updated_us;
	entry->stored = true;
	e = uar_owner_copy(&entry->def.arena, owner, &entry->owner) ? replace_own(r, entry)
								    : UAR_ENOMEM;
	uar_registered_unref(entry);
	return e;
}
