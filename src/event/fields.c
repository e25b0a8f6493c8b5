/* fields.c - copies, writes and reads structs by their tables. */
#include "event/fields.h"

#include "base/clock.h"
#include "event/limits.h"

static const void *member(const void *object, const struct uar_field *f)
{
	return (const char *)object + f->offset;
}

static bool is_string(const struct uar_field *f)
{
	return f->kind <= UAR_F_ANY;
}

static bool is_json(const struct uar_field *f)
{
	return f->kind == UAR_F_OBJ || f->kind == UAR_F_ARR || f->kind == UAR_F_ANY;
}

static size_t size_of(const struct uar_field *f)
{
	switch (f->kind) {
	case UAR_F_INT:
	case UAR_F_TIME: return sizeof(int64_t);
	case UAR_F_NUM: return sizeof(double);
	case UAR_F_BOOL: return sizeof(bool);
	default: return sizeof(uar_str);
	}
}

static size_t max_of(const struct uar_field *f)
{
	return f->max ? f->max : UAR_LIMIT_FIELD_BYTES;
}

bool uar_fields_copy(const struct uar_fields *f, struct uar_arena *arena, const void *from,
		     void *to)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct uar_field *field = &f->at[i];
		void *target = (char *)to + field->offset;

		if (!is_string(field)) {
			memcpy(target, member(from, field), size_of(field));
			continue;
		}
		*(uar_str *)target = uar_arena_str(arena, *(const uar_str *)member(from, field));
		if (!((uar_str *)target)->p)
			return false;
	}
	return true;
}

uar_err uar_fields_fit(const struct uar_fields *f, const void *from, struct uar_error *error)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct uar_field *field = &f->at[i];

		if (!is_string(field) || ((const uar_str *)member(from, field))->n <= max_of(field))
			continue;
		uar_error_where(error, "/%s", field->name);
		return uar_error_set(error, UAR_ETOOBIG, "\"%s\" must be at most %zu bytes long",
				     field->name, max_of(field));
	}
	return UAR_OK;
}

/* --- writing ---------------------------------------------------------------------- */

static void write_string(struct uar_jw *w, const struct uar_field *f, uar_str s)
{
	if (!s.n)
		return;
	if (is_json(f))
		uar_jw_raw(w, f->name, s);
	else
		uar_jw_str(w, f->name, s);
}

static void write_int(struct uar_jw *w, const struct uar_field *f, int64_t v)
{
	if (!v)
		return;
	if (f->kind == UAR_F_TIME)
		uar_jw_time(w, f->name, v);
	else
		uar_jw_int(w, f->name, v);
}

void uar_fields_write(struct uar_jw *w, const struct uar_fields *f, const void *from)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct uar_field *field = &f->at[i];
		const void *value = member(from, field);

		switch (field->kind) {
		case UAR_F_INT:
		case UAR_F_TIME: write_int(w, field, *(const int64_t *)value); break;
		case UAR_F_NUM:
			if (*(const double *)value != 0)
				uar_jw_double(w, field->name, *(const double *)value);
			break;
		case UAR_F_BOOL:
			if (*(const bool *)value)
				uar_jw_bool(w, field->name, true);
			break;
		default: write_string(w, field, *(const uar_str *)value);
		}
	}
}

/* --- reading ------------------------------------------------------------------------ */

static uar_err wrong(const struct uar_field *f, struct uar_error *error, const char *want)
{
	uar_error_where(error, "/%s", f->name);
	return uar_error_set(error, UAR_EINVALID, "\"%s\" must be %s", f->name, want);
}

static bool has_word(const char *words, uar_str s)
{
	for (const char *p = words; *p;) {
		size_t n = strcspn(p, " ");

		if (s.n == n && !memcmp(p, s.p, n))
			return true;
		p += n;
		p += strspn(p, " ");
	}
	return false;
}

static uar_err check_string(const struct uar_field *f, uar_str s, struct uar_error *error)
{
	char want[64];

	if (s.n > max_of(f)) {
		snprintf(want, sizeof want, "at most %zu bytes long", max_of(f));
		wrong(f, error, want);
		return uar_error_set(error, UAR_ETOOBIG, "\"%s\" must be %s", f->name, want);
	}
	if (f->kind == UAR_F_ID && !uar_str_is_id(s)) {
		snprintf(want, sizeof want, "1 to %d visible ASCII characters", UAR_LIMIT_ID_BYTES);
		return wrong(f, error, want);
	}
	if (f->kind != UAR_F_WORD || has_word(f->words, s))
		return UAR_OK;
	uar_error_where(error, "/%s", f->name);
	return uar_error_set(error, UAR_EINVALID, "\"%s\" must be one of: %s", f->name, f->words);
}

static uar_err read_string(const struct uar_field *f, const struct uar_json *j, uar_str *out,
			   struct uar_error *error)
{
	uar_err e;

	if (j->kind != UAR_JSON_STRING)
		return wrong(f, error, "a string");
	e = check_string(f, j->text, error);
	if (!e)
		*out = j->text;
	return e;
}

static uar_err read_json(const struct uar_field *f, const struct uar_json *j,
			 struct uar_arena *arena, uar_str *out, struct uar_error *error)
{
	struct uar_buf text = uar_buf_make(max_of(f));
	uar_err e = UAR_OK;

	if (f->kind == UAR_F_OBJ && j->kind != UAR_JSON_OBJECT)
		e = wrong(f, error, "an object");
	else if (f->kind == UAR_F_ARR && j->kind != UAR_JSON_ARRAY)
		e = wrong(f, error, "an array");
	if (e)
		return e;
	uar_json_write(&text, j);
	e = text.err;
	if (e == UAR_ETOOBIG)
		e = check_string(f, uar_str_n("", max_of(f) + 1), error);
	if (!e) {
		*out = uar_arena_str(arena, uar_buf_str(&text));
		e = out->p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(&text);
	return e;
}

static uar_err read_time(const struct uar_field *f, const struct uar_json *j, int64_t *out,
			 struct uar_error *error)
{
	if (j->kind != UAR_JSON_STRING || uar_time_parse(j->text, out))
		return wrong(f, error, "a time such as 2026-01-31T12:00:00Z");
	return UAR_OK;
}

static uar_err read_number(const struct uar_field *f, const struct uar_json *j, double *out,
			   struct uar_error *error)
{
	if (j->kind != UAR_JSON_INT && j->kind != UAR_JSON_DOUBLE)
		return wrong(f, error, "a number");
	*out = uar_json_double(j, 0);
	return UAR_OK;
}

static uar_err read_member(const struct uar_field *f, const struct uar_json *j,
			   struct uar_arena *arena, void *target, struct uar_error *error)
{
	switch (f->kind) {
	case UAR_F_STR:
	case UAR_F_ID:
	case UAR_F_WORD: return read_string(f, j, target, error);
	case UAR_F_OBJ:
	case UAR_F_ARR:
	case UAR_F_ANY: return read_json(f, j, arena, target, error);
	case UAR_F_TIME: return read_time(f, j, target, error);
	case UAR_F_NUM: return read_number(f, j, target, error);
	case UAR_F_INT:
		if (j->kind != UAR_JSON_INT)
			return wrong(f, error, "a whole number");
		*(int64_t *)target = j->i;
		return UAR_OK;
	case UAR_F_BOOL:
		if (j->kind != UAR_JSON_BOOL)
			return wrong(f, error, "true or false");
		*(bool *)target = j->b;
		return UAR_OK;
	}
	return UAR_EINTERNAL;
}

static const struct uar_field *find_field(const struct uar_fields *f, uar_str name)
{
	for (size_t i = 0; i < f->count; i++)
		if (uar_str_is(name, f->at[i].name))
			return &f->at[i];
	return NULL;
}

static uar_err refuse_unknown(uar_str key, struct uar_error *error)
{
	uar_str shown = uar_str_utf8_prefix(key, UAR_LIMIT_ID_BYTES);

	uar_error_where(error, "/%.*s", UAR_FMT(shown));
	return uar_error_set(error, UAR_EINVALID, "there is no member \"%.*s\"", UAR_FMT(shown));
}

uar_err uar_fields_read(const struct uar_fields *f, const struct uar_json *object,
			struct uar_arena *arena, void *out, uint64_t *out_given,
			struct uar_error *error)
{
	uint64_t given = 0;

	if (!object || object->kind != UAR_JSON_OBJECT)
		return uar_error_set(error, UAR_EINVALID, "an object is expected");
	for (const struct uar_json *j = object->first; j; j = j->next) {
		const struct uar_field *field = find_field(f, j->key);
		uar_err e;

		if (!field)
			return refuse_unknown(j->key, error);
		if (j->kind == UAR_JSON_NULL && field->kind != UAR_F_ANY)
			continue;
		e = read_member(field, j, arena, (char *)out + field->offset, error);
		if (e)
			return e;
		given |= UINT64_C(1) << (field - f->at);
	}
	for (size_t i = 0; i < f->count; i++)
		if (f->at[i].required && !(given >> i & 1))
			return wrong(&f->at[i], error, "given");
	if (out_given)
		*out_given = given;
	return UAR_OK;
}

/* --- JSON Schema ---------------------------------------------------------------------- */

static const char *const json_types[] = {
	[UAR_F_STR] = "string",	  [UAR_F_ID] = "string",   [UAR_F_WORD] = "string",
	[UAR_F_OBJ] = "object",	  [UAR_F_ARR] = "array",   [UAR_F_ANY] = NULL,
	[UAR_F_INT] = "integer",  [UAR_F_TIME] = "string", [UAR_F_NUM] = "number",
	[UAR_F_BOOL] = "boolean",
};

static void write_words(struct uar_jw *w, const char *words)
{
	uar_jw_arr(w, "enum");
	for (const char *p = words; *p;) {
		size_t n = strcspn(p, " ");

		uar_jw_str(w, NULL, uar_str_n(p, n));
		p += n;
		p += strspn(p, " ");
	}
	uar_jw_close(w);
}

static void write_member_schema(struct uar_jw *w, const struct uar_field *f)
{
	uar_jw_obj(w, f->name);
	if (json_types[f->kind])
		uar_jw_cstr(w, "type", json_types[f->kind]);
	if (f->kind == UAR_F_TIME)
		uar_jw_cstr(w, "format", "date-time");
	if (f->kind == UAR_F_ID) {
		uar_jw_int(w, "minLength", 1);
		uar_jw_int(w, "maxLength", UAR_LIMIT_ID_BYTES);
	}
	if (f->kind == UAR_F_STR)
		uar_jw_int(w, "maxLength", (int64_t)max_of(f));
	if (f->kind == UAR_F_WORD)
		write_words(w, f->words);
	if (f->doc)
		uar_jw_cstr(w, "description", f->doc);
	uar_jw_close(w);
}

void uar_fields_schema(struct uar_jw *w, const char *key, const struct uar_fields *f)
{
	bool any = false;

	uar_jw_obj(w, key);
	uar_jw_cstr(w, "type", "object");
	uar_jw_obj(w, "properties");
	for (size_t i = 0; i < f->count; i++) {
		write_member_schema(w, &f->at[i]);
		any |= f->at[i].required;
	}
	uar_jw_close(w);
	if (any) {
		uar_jw_arr(w, "required");
		for (size_t i = 0; i < f->count; i++)
			if (f->at[i].required)
				uar_jw_cstr(w, NULL, f->at[i].name);
		uar_jw_close(w);
	}
	uar_jw_bool(w, "additionalProperties", false);
	uar_jw_close(w);
}
