/* view.c - items of a view: found, made, dropped; its snapshot; the walk of an event. */
#include "core/limits.h"
#include "core/view_int.h"
#include "event/limits.h"

#define ITEM_FIELD(NAME, KIND, MEMBER)                                                             \
	{ NAME, UAR_F_##KIND, false, offsetof(struct uar_sview_item, MEMBER), 0, NULL, NULL },
#define VIEW(KIND, NAME, MAX, DOC)                                                                 \
	static const struct uar_field NAME##_view_fields[] = {                                     \
		ITEM_FIELD("key", STR, key) ITEM_FIELD("open", BOOL, open)                         \
			ITEM_FIELD("sequence", INT, sequence)
#define F(VIEW, TYPE, NAME, MAX, DOC)                                                              \
	{ #NAME, UAR_F_##TYPE, false, offsetof(struct uar_sview_##VIEW, NAME), MAX, NULL, DOC },
#define END(KIND, NAME)                                                                            \
	}                                                                                          \
	;
#include "core/view.def"

const struct uar_sview_info uar_sview_info[UAR_SVIEW_COUNT] = {
#define VIEW(KIND, NAME, MAX, DOC)                                                                 \
	[UAR_SVIEW_##KIND] = { #NAME,                                                              \
			       sizeof(struct uar_sview_##NAME),                                    \
			       MAX,                                                                \
			       { NAME##_view_fields, ARRAY_LEN(NAME##_view_fields) } },
#include "core/view.def"
};

void uar_sview_init(struct uar_sview *v)
{
	*v = (struct uar_sview){ .through = 0 };
	uar_arena_init(&v->arena, 0);
	uar_arena_init(&v->scratch, 0);
}

void uar_sview_fini(struct uar_sview *v)
{
	uar_arena_fini(&v->arena);
	uar_arena_fini(&v->scratch);
}

/* --- items ----------------------------------------------------------------------------------- */

static void *at(const struct uar_sview *v, enum uar_sview_kind kind, size_t i)
{
	return v->lists[kind].items + i * uar_sview_info[kind].size;
}

const void *view_at(const struct uar_sview *v, enum uar_sview_kind kind, size_t i)
{
	return at(v, kind, i);
}

void *view_find(const struct uar_sview *v, enum uar_sview_kind kind, uar_str key)
{
	for (size_t i = v->lists[kind].count; i-- > 0;) {
		struct uar_sview_item *item = at(v, kind, i);

		if (uar_str_eq(item->key, key))
			return item;
	}
	return NULL;
}

static bool make_room(struct uar_sview *v, enum uar_sview_kind kind)
{
	const struct uar_sview_info *info = &uar_sview_info[kind];
	struct uar_sview_list *l = &v->lists[kind];
	size_t room = l->room ? l->room * 2 : 4;
	char *items;

	if (l->count < l->room)
		return true;
	room = room < info->max ? room : info->max;
	items = uar_arena_alloc(&v->arena, room * info->size);
	if (!items)
		return false;
	if (l->count)
		memcpy(items, l->items, l->count * info->size);
	l->items = items;
	l->room = room;
	return true;
}

static void drop_at(struct uar_sview *v, enum uar_sview_kind kind, size_t gone)
{
	struct uar_sview_list *l = &v->lists[kind];
	size_t size = uar_sview_info[kind].size;

	l->count--;
	memmove(l->items + gone * size, l->items + (gone + 1) * size, (l->count - gone) * size);
	l->omitted++;
}

void view_drop(struct uar_sview *v, enum uar_sview_kind kind, const void *item)
{
	drop_at(v, kind,
		(size_t)((const char *)item - v->lists[kind].items) / uar_sview_info[kind].size);
}

/* Of turns that wait, the one that runs last; none waits: the oldest. */
static size_t last_to_run(const struct uar_sview *v)
{
	const struct uar_sview_turn *last = NULL;
	size_t gone = 0;

	for (size_t i = 0; i < v->lists[UAR_SVIEW_TURN].count; i++) {
		const struct uar_sview_turn *t = at(v, UAR_SVIEW_TURN, i);

		if (t->started_at || (last && t->rank < last->rank))
			continue;
		last = t;
		gone = i;
	}
	return gone;
}

/* The oldest closed item makes room, or else the oldest one; of a queue the end. */
static void drop_oldest(struct uar_sview *v, enum uar_sview_kind kind)
{
	size_t gone = 0;

	while (gone < v->lists[kind].count && ((struct uar_sview_item *)at(v, kind, gone))->open)
		gone++;
	if (gone == v->lists[kind].count)
		gone = kind == UAR_SVIEW_TURN ? last_to_run(v) : 0;
	drop_at(v, kind, gone);
}

static void *add_item(struct uar_sview *v, enum uar_sview_kind kind)
{
	struct uar_sview_list *l = &v->lists[kind];

	if (l->count == uar_sview_info[kind].max)
		drop_oldest(v, kind);
	if (!make_room(v, kind)) {
		v->err = UAR_ENOMEM;
		return NULL;
	}
	return memset(at(v, kind, l->count++), 0, uar_sview_info[kind].size);
}

void *view_item(struct fold_step *s, enum uar_sview_kind kind, uar_str key)
{
	struct uar_sview_item *item = view_find(s->v, kind, key);

	if (s->v->err)
		return NULL;
	if (!item) {
		item = add_item(s->v, kind);
		if (!item)
			return NULL;
		view_keep(s->v, &item->key, key, UAR_LIMIT_FIELD_BYTES);
	}
	item->sequence = (int64_t)s->ev->sequence;
	return s->v->err ? NULL : item;
}

void *view_named(struct fold_step *s, enum uar_sview_kind kind, enum uar_id id)
{
	return s->ev->ids[id].n ? view_item(s, kind, s->ev->ids[id]) : NULL;
}

struct uar_sview_shell *view_shell(struct fold_step *s)
{
	return view_item(s, UAR_SVIEW_SHELL, s->ev->ids[UAR_ID_SESSION]);
}

/* --- members --------------------------------------------------------------------------------- */

void view_keep(struct uar_sview *v, uar_str *to, uar_str text, size_t max)
{
	uar_str cut = uar_str_utf8_prefix(text, max);

	if (uar_str_eq(*to, cut) || v->err)
		return;
	*to = cut.n ? uar_arena_str(&v->arena, cut) : UAR_STR_NONE;
	if (cut.n && !to->p)
		v->err = UAR_ENOMEM;
}

uar_str view_str(const struct fold_step *s, const char *name)
{
	return uar_json_str(uar_json_get(s->p, uar_str_c(name)), UAR_STR_NONE);
}

int64_t view_int(const struct fold_step *s, const char *name, int64_t fallback)
{
	return uar_json_int(uar_json_get(s->p, uar_str_c(name)), fallback);
}

bool view_bool(const struct fold_step *s, const char *name)
{
	return uar_json_bool(uar_json_get(s->p, uar_str_c(name)), false);
}

void view_take(struct fold_step *s, uar_str *to, const char *name, size_t max)
{
	const struct uar_json *j = uar_json_get(s->p, uar_str_c(name));

	if (j && j->kind == UAR_JSON_STRING)
		view_keep(s->v, to, j->text, max);
}

void view_take_json(struct fold_step *s, uar_str *to, const char *name, size_t max)
{
	const struct uar_json *j = uar_json_get(s->p, uar_str_c(name));
	bool fits = j && (j->kind == UAR_JSON_OBJECT || j->kind == UAR_JSON_ARRAY) &&
		    j->text.n <= max && j->count;

	if (j)
		view_keep(s->v, to, fits ? j->text : UAR_STR_NONE, max);
}

uar_str view_ref(struct fold_step *s, const char *name)
{
	const struct uar_json *refs = NULL;

	if (!s->ev->refs.n || uar_json_parse(s->ev->refs, NULL, &s->v->scratch, &refs, NULL))
		return UAR_STR_NONE;
	return uar_json_str(uar_json_get(refs, uar_str_c(name)), UAR_STR_NONE);
}

void view_place(struct fold_step *s, uar_str *thread_id, uar_str *turn_id, uar_str *run_id)
{
	view_keep(s->v, thread_id, s->ev->ids[UAR_ID_THREAD], UAR_LIMIT_ID_BYTES);
	view_keep(s->v, turn_id, s->ev->ids[UAR_ID_TURN], UAR_LIMIT_ID_BYTES);
	view_keep(s->v, run_id, s->ev->ids[UAR_ID_RUN], UAR_LIMIT_ID_BYTES);
}

/* --- fold ------------------------------------------------------------------------------------ */

static view_fold_fn *const folds[] = {
	view_fold_session, view_fold_thread,	 view_fold_turn,    view_fold_step,
	view_fold_sandbox, view_fold_work,	 view_fold_task,    view_fold_material,
	view_fold_routing, view_fold_permission, view_fold_channel, view_fold_fanout,
};

/* Texts that were replaced stay in the arena: from time to time what is left moves to a new
 * one. */
static void move_to_new_arena(struct uar_sview *v)
{
	struct uar_arena fresh;
	struct uar_sview_list lists[UAR_SVIEW_COUNT];
	bool ok = true;

	uar_arena_init(&fresh, 0);
	memcpy(lists, v->lists, sizeof lists);
	for (int k = 0; k < UAR_SVIEW_COUNT && ok; k++) {
		size_t size = uar_sview_info[k].size;

		lists[k].items =
			lists[k].room ? uar_arena_alloc(&fresh, lists[k].room * size) : NULL;
		ok = !lists[k].room || lists[k].items;
		for (size_t i = 0; i < lists[k].count && ok; i++)
			ok = uar_fields_copy(&uar_sview_info[k].fields, &fresh,
					     at(v, (enum uar_sview_kind)k, i),
					     lists[k].items + i * size);
	}
	if (!ok) {
		uar_arena_fini(&fresh);
		return; /* later, when there is memory again */
	}
	uar_arena_fini(&v->arena);
	v->arena = fresh;
	memcpy(v->lists, lists, sizeof lists);
}

uar_err uar_sview_fold(struct uar_sview *v, const struct uar_event *ev)
{
	struct fold_step s = { .v = v, .ev = ev };

	if (v->err)
		return v->err;
	if (ev->sequence != v->through + 1)
		return UAR_ECORRUPT;
	uar_arena_reset(&v->scratch);
	v->err = uar_event_payload(ev, &v->scratch, &s.p, NULL);
	for (size_t i = 0; i < ARRAY_LEN(folds) && !v->err; i++)
		folds[i](&s);
	v->through = ev->sequence;
	if (!v->err && v->arena.used > UAR_LIMIT_VIEW_MEMORY)
		move_to_new_arena(v);
	return v->err;
}

/* --- snapshots ------------------------------------------------------------------------------- */

static void write_list(struct uar_jw *w, const struct uar_sview *v, enum uar_sview_kind kind)
{
	const struct uar_sview_list *l = &v->lists[kind];

	if (!l->count && !l->omitted)
		return;
	uar_jw_obj(w, uar_sview_info[kind].name);
	uar_jw_int(w, "omitted", l->omitted);
	uar_jw_arr(w, "items");
	for (size_t i = 0; i < l->count; i++) {
		uar_jw_obj(w, NULL);
		uar_fields_write(w, &uar_sview_info[kind].fields, at(v, kind, i));
		uar_jw_close(w);
	}
	uar_jw_close(w);
	uar_jw_close(w);
}

uar_err uar_sview_write(const struct uar_sview *v, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);

	if (v->err)
		return v->err;
	uar_jw_obj(&w, NULL);
	uar_jw_int(&w, "version", UAR_SVIEW_VERSION);
	uar_jw_u64(&w, "through", v->through);
	for (int k = 0; k < UAR_SVIEW_COUNT; k++)
		write_list(&w, v, (enum uar_sview_kind)k);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static uar_err read_list(struct uar_sview *v, enum uar_sview_kind kind, const struct uar_json *list,
			 struct uar_error *error)
{
	const struct uar_json *items = uar_json_get(list, UAR_STR("items"));
	const struct uar_sview_info *info = &uar_sview_info[kind];
	uar_err e = UAR_OK;

	if (!items || items->kind != UAR_JSON_ARRAY || items->count > info->max)
		return UAR_ECORRUPT;
	v->lists[kind].omitted = uar_json_int(uar_json_get(list, UAR_STR("omitted")), 0);
	for (const struct uar_json *j = items->first; j && !e; j = j->next) {
		void *item = add_item(v, kind);

		e = item ? uar_fields_read(&info->fields, j, &v->arena, item, NULL, error)
			 : UAR_ENOMEM;
	}
	return e == UAR_ENOMEM || !e ? e : UAR_ECORRUPT;
}

uar_err uar_sview_read(struct uar_sview *v, uar_str json, struct uar_error *error)
{
	const struct uar_json *root = NULL;
	uar_str text = uar_arena_str(&v->arena, json); /* the tree borrows from it */
	uar_err e = text.p ? uar_json_parse(text, NULL, &v->arena, &root, error) : UAR_ENOMEM;
	int64_t through;

	if (e)
		return e == UAR_ENOMEM ? e : UAR_ECORRUPT;
	if (uar_json_int(uar_json_get(root, UAR_STR("version")), 0) != UAR_SVIEW_VERSION)
		return UAR_ENEWER;
	through = uar_json_int(uar_json_get(root, UAR_STR("through")), -1);
	if (through < 0)
		return UAR_ECORRUPT;
	v->through = (uint64_t)through;
	for (int k = 0; k < UAR_SVIEW_COUNT && !e; k++) {
		const struct uar_json *list = uar_json_get(root, uar_str_c(uar_sview_info[k].name));

		e = list ? read_list(v, (enum uar_sview_kind)k, list, error) : UAR_OK;
	}
	return e;
}
