/* book.c - one sorted row of entries. */
#include "skill/book_int.h"

#include "base/alloc.h"
#include "json/limits.h"

enum { FIRST_ROOM = 16, OWNER_KEY = 3 * (UAR_LIMIT_ID_BYTES + 1) };

/* --- entries ------------------------------------------------------------------------------- */

struct uar_skill_entry *uar_skill_entry_take(struct uar_skill *s)
{
	struct uar_skill_entry *e = uar_zalloc(sizeof *e);

	if (!e)
		return NULL;
	e->refs = 1;
	e->skill = *s;
	return e;
}

struct uar_skill_entry *uar_skill_entry_ref(struct uar_skill_entry *e)
{
	e->refs++;
	return e;
}

void uar_skill_entry_unref(struct uar_skill_entry *e)
{
	if (!e || --e->refs)
		return;
	uar_skill_fini(&e->skill);
	uar_free(e);
}

struct uar_skill_entry *uar_skill_entry_of(const struct uar_skill *s)
{
	return (struct uar_skill_entry *)((char *)s - offsetof(struct uar_skill_entry, skill));
}

static bool same_owner(const struct uar_owner *a, const struct uar_owner *b)
{
	return uar_str_eq(a->tenant, b->tenant) && uar_str_eq(a->workspace, b->workspace) &&
	       uar_str_eq(a->user, b->user);
}

bool uar_skill_entry_shows(const struct uar_skill_entry *e, const struct uar_owner *owner)
{
	return e->skill.origin != UAR_SKILL_USER || same_owner(&e->owner, owner);
}

/* --- the row -------------------------------------------------------------------------------- */

static int compare(const struct uar_skill_entry *a, const struct uar_skill_entry *b)
{
	int d = uar_str_cmp(a->skill.skill_id, b->skill.skill_id);

	if (!d)
		d = (int)a->skill.origin - (int)b->skill.origin;
	if (!d)
		d = uar_str_cmp(a->owner.tenant, b->owner.tenant);
	if (!d)
		d = uar_str_cmp(a->owner.workspace, b->owner.workspace);
	return d ? d : uar_str_cmp(a->owner.user, b->owner.user);
}

uar_err skill_book_add(struct uar_skill_book *b, struct uar_skill_entry *e)
{
	size_t room = b->room ? b->room * 2 : FIRST_ROOM, i = b->count;
	struct uar_skill_entry **longer;

	if (b->count == UAR_LIMIT_SKILLS)
		return UAR_ETOOBIG;
	if (b->count == b->room) {
		longer = uar_realloc(b->at, room * sizeof(struct uar_skill_entry *));
		if (!longer)
			return UAR_ENOMEM;
		b->at = longer;
		b->room = room;
	}
	for (; i > 0 && compare(b->at[i - 1], e) > 0; i--)
		b->at[i] = b->at[i - 1];
	b->at[i] = uar_skill_entry_ref(e);
	b->count++;
	return UAR_OK;
}

void skill_book_remove(struct uar_skill_book *b, size_t index)
{
	struct uar_skill_entry *gone = b->at[index];

	memmove(b->at + index, b->at + index + 1,
		(b->count - index - 1) * sizeof(struct uar_skill_entry *));
	b->count--;
	uar_skill_entry_unref(gone);
}

void skill_book_tell(const struct uar_skill_book *b, const struct uar_skill_note *n)
{
	if (b->note)
		b->note(b->ctx, n);
}

struct uar_skill_entry *uar_skill_book_at(const struct uar_skill_book *b, size_t index)
{
	return index < b->count ? b->at[index] : NULL;
}

/* Of entries with one id that of the first source counts. */
struct uar_skill_entry *uar_skill_book_find(const struct uar_skill_book *b,
					    const struct uar_owner *owner, uar_str id)
{
	for (size_t i = 0; i < b->count; i++)
		if (uar_str_eq(b->at[i]->skill.skill_id, id) &&
		    uar_skill_entry_shows(b->at[i], owner))
			return b->at[i];
	return NULL;
}

struct uar_skill_entry *uar_skill_book_known(const struct uar_skill_book *b, uar_str revision)
{
	for (size_t i = 0; i < b->count; i++)
		if (uar_str_is(revision, b->at[i]->skill.revision))
			return b->at[i];
	return NULL;
}

const struct uar_skill_broken *uar_skill_book_broken_at(const struct uar_skill_book *b,
							size_t index)
{
	return index < b->broken_count ? &b->broken[index] : NULL;
}

const char *uar_skill_book_dir(const struct uar_skill_book *b)
{
	return b->dir.n ? b->dir.p : "";
}

/* --- an owner's own ------------------------------------------------------------------------- */

uar_err uar_skill_book_may_put(const struct uar_skill_book *b, const struct uar_owner *owner,
			       uar_str id, struct uar_error *error)
{
	bool known = false;

	for (size_t i = 0; i < b->count; i++) {
		const struct uar_skill *s = &b->at[i]->skill;

		if (!uar_str_eq(s->skill_id, id))
			continue;
		if (s->origin == UAR_SKILL_USER) {
			known |= same_owner(&b->at[i]->owner, owner);
			continue;
		}
		return uar_error_set(error, UAR_EEXISTS,
				     s->origin == UAR_SKILL_BUILTIN
					     ? "the skill \"%.*s\" is part of the program; choose "
					       "another id"
					     : "the skill \"%.*s\" is in the skills directory; "
					       "choose another id",
				     UAR_FMT(id));
	}
	if (!known && b->count >= UAR_LIMIT_SKILLS)
		return uar_error_set(error, UAR_ETOOBIG,
				     "there are %d skills already; remove one first",
				     UAR_LIMIT_SKILLS);
	return UAR_OK;
}

void uar_skill_book_drop(struct uar_skill_book *b, const struct uar_owner *owner, uar_str id)
{
	for (size_t i = 0; i < b->count; i++)
		if (b->at[i]->skill.origin == UAR_SKILL_USER &&
		    uar_str_eq(b->at[i]->skill.skill_id, id) &&
		    same_owner(&b->at[i]->owner, owner)) {
			skill_book_remove(b, i);
			return;
		}
}

uar_err uar_skill_book_put(struct uar_skill_book *b, const struct uar_owner *owner,
			   struct uar_skill *take, int64_t version, int64_t updated_us)
{
	struct uar_owner own;
	struct uar_skill_entry *e;
	uar_err err;

	if (!uar_owner_copy(&take->arena, owner, &own))
		return UAR_ENOMEM;
	take->origin = UAR_SKILL_USER;
	e = uar_skill_entry_take(take);
	if (!e)
		return UAR_ENOMEM;
	e->owner = own;
	e->version = version;
	e->updated_us = updated_us;
	e->stored = true;
	uar_skill_book_drop(b, owner, take->skill_id);
	err = skill_book_add(b, e);
	if (err)
		uar_free(e); /* the skill stays the caller's */
	else
		uar_skill_entry_unref(e);
	return err;
}

/* --- counts --------------------------------------------------------------------------------- */

struct counted {
	struct uar_skill_count count;
	uar_str key;
	char text[];
};

static uar_str write_key(const struct uar_owner *o, uar_str id,
			 char out[OWNER_KEY + UAR_LIMIT_ID_BYTES])
{
	int n = snprintf(out, OWNER_KEY + UAR_LIMIT_ID_BYTES, "%.*s\n%.*s\n%.*s\n%.*s",
			 UAR_FMT(o->tenant), UAR_FMT(o->workspace), UAR_FMT(o->user), UAR_FMT(id));

	return uar_str_n(out, n < OWNER_KEY + UAR_LIMIT_ID_BYTES ? (size_t)n : 0);
}

struct uar_skill_count *uar_skill_book_count(const struct uar_skill_book *b,
					     const struct uar_owner *owner, uar_str id)
{
	char text[OWNER_KEY + UAR_LIMIT_ID_BYTES];
	struct counted *c = uar_map_get(&b->counts, write_key(owner, id, text));

	return c ? &c->count : NULL;
}

struct uar_skill_count *uar_skill_book_counted(struct uar_skill_book *b,
					       const struct uar_owner *owner, uar_str id)
{
	char text[OWNER_KEY + UAR_LIMIT_ID_BYTES];
	uar_str key = write_key(owner, id, text);
	struct counted *c = uar_map_get(&b->counts, key);

	if (c)
		return &c->count;
	if (!key.n || b->count_count == UAR_LIMIT_SKILL_COUNTS)
		return NULL;
	c = uar_zalloc(sizeof *c + key.n);
	if (!c)
		return NULL;
	memcpy(c->text, key.p, key.n);
	c->key = uar_str_n(c->text, key.n);
	if (uar_map_put(&b->counts, c->key, c)) {
		uar_free(c);
		return NULL;
	}
	b->count_count++;
	return &c->count;
}

/* --- matching ------------------------------------------------------------------------------- */

/* The row is sorted, so that of equal ids the first source comes first. */
static size_t list_offers(const struct uar_skill_book *b, const struct uar_owner *owner,
			  struct uar_skill_offer *out)
{
	size_t n = 0;

	for (size_t i = 0; i < b->count; i++) {
		struct uar_skill_entry *e = b->at[i];
		const struct uar_skill_count *c;

		if (!uar_skill_entry_shows(e, owner) ||
		    (n && uar_str_eq(out[n - 1].skill->skill_id, e->skill.skill_id)))
			continue;
		c = b->count_count ? uar_skill_book_count(b, owner, e->skill.skill_id) : NULL;
		out[n++] = (struct uar_skill_offer){ &e->skill, e->updated_us, c ? c->successes : 0,
						     c ? c->failures : 0 };
	}
	return n;
}

uar_err uar_skill_book_match(const struct uar_skill_book *b, const struct uar_owner *owner,
			     const struct uar_skill_request *r, struct uar_skill_matches *out)
{
	struct uar_skill_offer *offers = uar_alloc((b->count + 1) * sizeof *offers);

	if (!offers)
		return UAR_ENOMEM;
	uar_skill_match(r, offers, list_offers(b, owner, offers), out);
	uar_free(offers);
	return UAR_OK;
}

/* --- life ----------------------------------------------------------------------------------- */

static uar_err add_builtin(struct uar_skill_book *b, uar_str text)
{
	struct uar_skill_entry *e;
	struct uar_skill s;
	uar_err err = uar_skill_read_markdown(text, &s, NULL);

	if (err)
		return err;
	s.origin = UAR_SKILL_BUILTIN;
	e = uar_skill_entry_take(&s);
	if (!e) {
		uar_skill_fini(&s);
		return UAR_ENOMEM;
	}
	err = skill_book_add(b, e);
	uar_skill_entry_unref(e);
	return err;
}

uar_err uar_skill_book_create(void (*note)(void *ctx, const struct uar_skill_note *n), void *ctx,
			      struct uar_skill_book **out)
{
	struct uar_skill_book *b = uar_zalloc(sizeof *b);
	uar_err e = UAR_OK;
	uar_str text;

	if (!b)
		return UAR_ENOMEM;
	b->note = note;
	b->ctx = ctx;
	b->dir = uar_buf_make(UAR_LIMIT_URI_BYTES);
	uar_map_init(&b->counts, 0);
	b->broken = uar_zalloc(UAR_LIMIT_SKILLS_BROKEN * sizeof *b->broken);
	if (!b->broken)
		e = UAR_ENOMEM;
	for (size_t i = 0; !e && uar_skill_builtin(i, &text); i++)
		e = add_builtin(b, text);
	if (e)
		uar_skill_book_destroy(b);
	else
		*out = b;
	return e;
}

void uar_skill_book_destroy(struct uar_skill_book *b)
{
	struct counted *c;
	size_t at = 0;

	if (!b)
		return;
	for (size_t i = 0; i < b->count; i++)
		uar_skill_entry_unref(b->at[i]);
	while ((c = uar_map_next(&b->counts, &at)))
		uar_free(c);
	uar_map_fini(&b->counts);
	uar_buf_fini(&b->dir);
	uar_free(b->at);
	uar_free(b->broken);
	uar_free(b);
}
