/* row.c - the kinds of rows, from row.def. */
#include "event/row.h"

/* One table of members for each kind, then the table of kinds. */
#define ROW(KIND, NAME, PARENT, TAG, DOC) static const struct uar_field NAME##_fields[] = {
#define F(ROW, TYPE, NAME, MAX, DOC)                                                               \
	{ #NAME, UAR_F_##TYPE, false, offsetof(struct uar_row_##ROW, NAME), MAX, NULL, DOC },
#define W(ROW, NAME, WORDS, DOC)                                                                   \
	{ #NAME, UAR_F_WORD, false, offsetof(struct uar_row_##ROW, NAME), 0, WORDS, DOC },
#define END(KIND, NAME)                                                                            \
	}                                                                                          \
	;
#include "event/limits.h"
#include "event/row.def"

const struct uar_row_info uar_row_info[UAR_ROW_COUNT] = {
#define ROW(KIND, NAME, PARENT, TAG, DOC)                                                          \
	[UAR_ROW_##KIND] = { #NAME,                                                                \
			     PARENT,                                                               \
			     TAG,                                                                  \
			     DOC,                                                                  \
			     { NAME##_fields, ARRAY_LEN(NAME##_fields) },                          \
			     sizeof(struct uar_row_##NAME) },
#include "event/row.def"
};

enum uar_row_kind uar_row_kind_of(uar_str name)
{
	int k = 0;

	while (k < UAR_ROW_COUNT && !uar_str_is(name, uar_row_info[k].name))
		k++;
	return (enum uar_row_kind)k;
}

uar_err uar_row_pack(void *typed, struct uar_arena *arena, struct uar_error *error)
{
	struct uar_row *row = typed;
	struct uar_buf text = uar_buf_make(UAR_LIMIT_ROW_BYTES);
	struct uar_jw w = uar_jw_begin(&text);
	uar_err e = uar_fields_fit(&uar_row_info[row->kind].fields, typed, error);

	if (e)
		return e;
	uar_jw_obj(&w, NULL);
	uar_fields_write(&w, &uar_row_info[row->kind].fields, typed);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	if (e) {
		uar_error_set(error, e, "the row of %s %.*s has more than %d bytes",
			      uar_row_info[row->kind].name, UAR_FMT(row->id), UAR_LIMIT_ROW_BYTES);
	} else {
		row->body = uar_arena_str(arena, uar_buf_str(&text));
		e = row->body.p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(&text);
	return e;
}

uar_err uar_row_unpack(const struct uar_row *row, struct uar_arena *arena, void *typed, size_t size,
		       struct uar_error *error)
{
	const struct uar_row_info *info = &uar_row_info[row->kind];
	const struct uar_json *body;
	uar_err e;

	if (size != info->size)
		return uar_error_set(error, UAR_EINTERNAL, "a row of %s is read as another",
				     info->name);
	memset(typed, 0, size);
	e = uar_json_parse(row->body, NULL, arena, &body, error);
	if (!e)
		e = uar_fields_read(&info->fields, body, arena, typed, NULL, error);
	*(struct uar_row *)typed = *row;
	return !e || e == UAR_ENOMEM ? e : UAR_ECORRUPT;
}

static bool copy_columns(struct uar_arena *arena, const struct uar_row *in, struct uar_row *out)
{
	uar_str *const strings[] = { &out->id, &out->session_id, &out->parent, &out->tag,
				     &out->status };

	*out = *in;
	return uar_arena_strs(arena, strings, ARRAY_LEN(strings)) &&
	       (!in->owner.tenant.n || uar_owner_copy(arena, &in->owner, &out->owner));
}

bool uar_row_copy(struct uar_arena *arena, const struct uar_row *in, struct uar_row *out)
{
	if (!copy_columns(arena, in, out))
		return false;
	out->body = uar_arena_str(arena, in->body);
	return out->body.p != NULL;
}

bool uar_row_copy_typed(struct uar_arena *arena, const void *from, void *to)
{
	const struct uar_row *in = from;
	struct uar_row columns;

	if (!copy_columns(arena, in, &columns) ||
	    !uar_fields_copy(&uar_row_info[in->kind].fields, arena, from, to))
		return false;
	columns.body = UAR_STR_NONE;
	*(struct uar_row *)to = columns;
	return true;
}
