/* a2ui_field.c - properties of a JSON Schema as fields of a form, with checks and data. */
#include "proto/a2ui_int.h"

#include "event/sizes.h"

enum {
	FORM_DEPTH = 4,	      /* objects in objects that become cards; deeper ones are JSON text */
	LONG_TEXT = 200,      /* from this maxLength on a field has several lines */
	SLIDER_SPAN = 100,    /* a number within such bounds is a slider */
	FILTERED_CHOICES = 8, /* more choices can be searched */
	FIELD_ID = 200,	      /* bytes of the id of a field's component */
};

/* A property of the form. */
struct field {
	const struct uar_json *schema;
	uar_str name;
	char id[FIELD_ID], path[FIELD_ID];
	bool required;
	unsigned depth;
};

enum field_kind {
	FIELD_TEXT,
	FIELD_LONG_TEXT,
	FIELD_SECRET,
	FIELD_NUMBER,
	FIELD_SLIDER,
	FIELD_BOX,
	FIELD_CHOICE,
	FIELD_CHOICES,
	FIELD_TIME,
	FIELD_GROUP,
	FIELD_FIXED,
	FIELD_LINES, /* a list of strings, one in a line */
	FIELD_JSON,  /* whatever has no field of its own */
};

static const struct uar_json *member(const struct uar_json *j, const char *key)
{
	return uar_json_get(j, uar_str_c(key));
}

/* --- what a schema means -------------------------------------------------------------------- */

static enum field_kind kind_of_text(const struct uar_json *schema)
{
	uar_str format = uar_json_text(schema, "format");

	if (uar_json_bool(member(schema, "writeOnly"), false) || uar_str_is(format, "password"))
		return FIELD_SECRET;
	if (uar_str_is(format, "date") || uar_str_is(format, "time") ||
	    uar_str_is(format, "date-time"))
		return FIELD_TIME;
	if (uar_json_int(member(schema, "maxLength"), 0) > LONG_TEXT ||
	    uar_str_is(format, "textarea") || uar_str_is(format, "markdown"))
		return FIELD_LONG_TEXT;
	return FIELD_TEXT;
}

static enum field_kind kind_of_number(const struct uar_json *schema)
{
	const struct uar_json *min = member(schema, "minimum"), *max = member(schema, "maximum");

	return min && max && uar_json_double(max, 0) - uar_json_double(min, 0) <= SLIDER_SPAN
		       ? FIELD_SLIDER
		       : FIELD_NUMBER;
}

/* The list of choices: strings, or objects with const and title; NULL: none. */
static const struct uar_json *choices_of(const struct uar_json *schema)
{
	const struct uar_json *list = member(schema, "enum");

	if (!list)
		list = member(schema, "oneOf");
	if (!list || list->kind != UAR_JSON_ARRAY || !list->count)
		return NULL;
	for (const struct uar_json *c = list->first; c; c = c->next)
		if (c->kind != UAR_JSON_STRING &&
		    (c->kind != UAR_JSON_OBJECT || !uar_json_text(c, "const").n))
			return NULL;
	return list;
}

static enum field_kind kind_of_list(const struct uar_json *schema)
{
	const struct uar_json *items = member(schema, "items");

	if (choices_of(items))
		return FIELD_CHOICES;
	return uar_str_is(uar_json_text(items, "type"), "string") ? FIELD_LINES : FIELD_JSON;
}

static enum field_kind kind_of(const struct uar_json *schema, unsigned depth)
{
	uar_str type = uar_json_text(schema, "type");

	if (uar_json_bool(member(schema, "readOnly"), false) ||
	    (member(schema, "const") && !uar_str_is(type, "boolean")))
		return FIELD_FIXED;
	if (choices_of(schema))
		return FIELD_CHOICE;
	if (uar_str_is(type, "string"))
		return kind_of_text(schema);
	if (uar_str_is(type, "integer") || uar_str_is(type, "number"))
		return kind_of_number(schema);
	if (uar_str_is(type, "boolean"))
		return FIELD_BOX;
	if (uar_str_is(type, "array"))
		return kind_of_list(schema);
	if (uar_str_is(type, "object") && member(schema, "properties") && depth < FORM_DEPTH)
		return FIELD_GROUP;
	return FIELD_JSON;
}

/* --- fields --------------------------------------------------------------------------------- */

static bool is_required(const struct uar_json *object, uar_str name)
{
	const struct uar_json *list = member(object, "required");

	for (const struct uar_json *r = list && list->count ? list->first : NULL; r; r = r->next)
		if (uar_str_eq(uar_json_str(r, UAR_STR("")), name))
			return true;
	return false;
}

/* Ids have letters, digits and '_'; a pointer escapes '~' and '/'. */
static bool name_field(struct field *f, const struct field *parent)
{
	size_t i = (size_t)snprintf(f->id, sizeof f->id, "%s_", parent ? parent->id : "f");
	size_t p =
		(size_t)snprintf(f->path, sizeof f->path, "%s/", parent ? parent->path : "/form");

	for (size_t k = 0; k < f->name.n; k++) {
		unsigned char c = (unsigned char)f->name.p[k];
		bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');

		if (i + 2 >= sizeof f->id || p + 3 >= sizeof f->path)
			return false;
		f->id[i++] = plain ? (char)c : '_';
		if (c == '~' || c == '/') {
			f->path[p++] = '~';
			c = c == '~' ? '0' : '1';
		}
		f->path[p++] = (char)c;
	}
	f->id[i] = f->path[p] = 0;
	return true;
}

/* False: its name is too long for a component. */
static bool make_field(struct field *f, const struct uar_json *object,
		       const struct uar_json *schema, const struct field *parent)
{
	*f = (struct field){ .schema = schema,
			     .name = schema->key,
			     .required = is_required(object, schema->key),
			     .depth = parent ? parent->depth + 1 : 0 };
	return name_field(f, parent);
}

static const struct uar_json *first_property(const struct uar_json *object)
{
	const struct uar_json *properties = member(object, "properties");

	return properties && properties->kind == UAR_JSON_OBJECT && properties->count
		       ? properties->first
		       : NULL;
}

/* --- checks --------------------------------------------------------------------------------- */

/* {"call": name, "args": {"value": {"path"}, ...; the arguments are left open. */
static void open_check(struct uar_jw *w, const char *key, const char *call, const char *path)
{
	uar_jw_obj(w, key);
	uar_jw_cstr(w, "call", call);
	uar_jw_obj(w, "args");
	a2ui_path(w, "value", uar_str_c(path));
}

static void close_check(struct uar_jw *w)
{
	uar_jw_close(w);
	uar_jw_cstr(w, "returnType", "boolean");
	uar_jw_close(w);
}

/* What may be left out is checked when it is there. */
static void open_condition(struct uar_jw *w, const struct field *f)
{
	uar_jw_obj(w, NULL);
	if (f->required)
		return;
	uar_jw_obj(w, "condition");
	uar_jw_cstr(w, "call", "or");
	uar_jw_obj(w, "args");
	uar_jw_arr(w, "values");
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "call", "not");
	uar_jw_obj(w, "args");
	open_check(w, "value", "required", f->path);
	close_check(w);
	close_check(w);
}

static void close_condition(struct uar_jw *w, const struct field *f, const char *message)
{
	close_check(w);
	if (!f->required) {
		uar_jw_close(w);
		close_check(w);
	}
	uar_jw_cstr(w, "message", message);
	uar_jw_close(w);
}

static void put_bound(struct uar_jw *w, const char *key, const struct uar_json *number)
{
	if (number)
		uar_jw_double(w, key, uar_json_double(number, 0));
}

static void put_required(struct uar_jw *w, const struct field *f)
{
	uar_jw_obj(w, NULL);
	open_check(w, "condition", "required", f->path);
	close_check(w);
	uar_jw_cstr(w, "message", "is required");
	uar_jw_close(w);
}

static void put_text_checks(struct uar_jw *w, const struct field *f)
{
	const struct uar_json *min = member(f->schema, "minLength");
	const struct uar_json *max = member(f->schema, "maxLength");
	uar_str pattern = uar_json_text(f->schema, "pattern");
	const char *key = f->required ? "condition" : NULL;

	if (uar_str_is(uar_json_text(f->schema, "format"), "email")) {
		open_condition(w, f);
		open_check(w, key, "email", f->path);
		close_condition(w, f, "is not an e-mail address");
	}
	if (pattern.n) {
		open_condition(w, f);
		open_check(w, key, "regex", f->path);
		uar_jw_str(w, "pattern", pattern);
		close_condition(w, f, "does not have the expected form");
	}
	if (min || max) {
		open_condition(w, f);
		open_check(w, key, "length", f->path);
		put_bound(w, "min", min);
		put_bound(w, "max", max);
		close_condition(w, f, "is too short or too long");
	}
}

static void put_number_check(struct uar_jw *w, const struct field *f)
{
	open_condition(w, f);
	open_check(w, f->required ? "condition" : NULL, "numeric", f->path);
	put_bound(w, "min", member(f->schema, "minimum"));
	put_bound(w, "max", member(f->schema, "maximum"));
	close_condition(w, f, "is not a number in the allowed range");
}

/* A box that has to be ticked is checked by itself: false counts as given. */
static void put_box_check(struct uar_jw *w, const struct field *f)
{
	if (!uar_json_bool(member(f->schema, "const"), false))
		return;
	uar_jw_obj(w, NULL);
	a2ui_path(w, "condition", uar_str_c(f->path));
	uar_jw_cstr(w, "message", "has to be accepted");
	uar_jw_close(w);
}

static bool has_number_check(const struct field *f)
{
	return member(f->schema, "minimum") || member(f->schema, "maximum");
}

static bool has_checks(const struct field *f, enum field_kind kind)
{
	if (kind == FIELD_BOX)
		return uar_json_bool(member(f->schema, "const"), false);
	return f->required || member(f->schema, "pattern") || member(f->schema, "minLength") ||
	       member(f->schema, "maxLength") || has_number_check(f) ||
	       uar_str_is(uar_json_text(f->schema, "format"), "email");
}

static void put_checks(struct uar_jw *w, const struct field *f, enum field_kind kind)
{
	if (!has_checks(f, kind))
		return;
	uar_jw_arr(w, "checks");
	if (f->required && kind != FIELD_BOX)
		put_required(w, f);
	if (kind == FIELD_TEXT || kind == FIELD_LONG_TEXT || kind == FIELD_SECRET)
		put_text_checks(w, f);
	else if (kind == FIELD_NUMBER && has_number_check(f))
		put_number_check(w, f);
	else if (kind == FIELD_BOX)
		put_box_check(w, f);
	uar_jw_close(w);
}

/* --- components of a field ------------------------------------------------------------------ */

static uar_str title_of(const struct uar_json *schema, uar_str name)
{
	uar_str title = uar_json_text(schema, "title");

	return title.n ? title : name;
}

static void put_label(struct uar_jw *w, const struct field *f)
{
	char label[FIELD_ID];
	int n = snprintf(label, sizeof label, "%.*s%s",
			 UAR_FMT(uar_str_utf8_prefix(title_of(f->schema, f->name), FIELD_ID - 8)),
			 f->required ? " *" : "");

	uar_jw_str(w, "label", uar_str_n(label, (size_t)n));
}

static void put_options(struct uar_jw *w, const struct uar_json *choices)
{
	uar_jw_arr(w, "options");
	for (const struct uar_json *c = choices->first; c; c = c->next) {
		uar_str value = c->kind == UAR_JSON_STRING ? c->text : uar_json_text(c, "const");

		uar_jw_obj(w, NULL);
		uar_jw_str(w, "label", c->kind == UAR_JSON_STRING ? value : title_of(c, value));
		uar_jw_str(w, "value", value);
		uar_jw_close(w);
	}
	uar_jw_close(w);
}

static void put_picker(struct uar_jw *w, const struct field *f, enum field_kind kind)
{
	bool several = kind == FIELD_CHOICES;
	const struct uar_json *choices =
		choices_of(several ? member(f->schema, "items") : f->schema);

	put_options(w, choices);
	uar_jw_cstr(w, "variant", several ? "multipleSelection" : "mutuallyExclusive");
	if (several)
		uar_jw_cstr(w, "displayStyle", "chips");
	if (choices->count > FILTERED_CHOICES)
		uar_jw_bool(w, "filterable", true);
}

static void put_times(struct uar_jw *w, const struct field *f)
{
	uar_str format = uar_json_text(f->schema, "format");

	uar_jw_bool(w, "enableDate", !uar_str_is(format, "time"));
	uar_jw_bool(w, "enableTime", !uar_str_is(format, "date"));
}

/* Members besides id, label, value and checks. */
static void put_members(struct uar_jw *w, const struct field *f, enum field_kind kind)
{
	switch (kind) {
	case FIELD_LONG_TEXT:
	case FIELD_LINES:
	case FIELD_JSON: uar_jw_cstr(w, "variant", "longText"); break;
	case FIELD_SECRET: uar_jw_cstr(w, "variant", "obscured"); break;
	case FIELD_NUMBER: uar_jw_cstr(w, "variant", "number"); break;
	case FIELD_TEXT: uar_jw_cstr(w, "variant", "shortText"); break;
	case FIELD_SLIDER:
		put_bound(w, "min", member(f->schema, "minimum"));
		put_bound(w, "max", member(f->schema, "maximum"));
		break;
	case FIELD_CHOICE:
	case FIELD_CHOICES: put_picker(w, f, kind); break;
	case FIELD_TIME: put_times(w, f); break;
	case FIELD_BOX:
	case FIELD_GROUP:
	case FIELD_FIXED: break;
	}
}

static const char *component_of(enum field_kind kind)
{
	switch (kind) {
	case FIELD_SLIDER: return "Slider";
	case FIELD_BOX: return "CheckBox";
	case FIELD_CHOICE:
	case FIELD_CHOICES: return "ChoicePicker";
	case FIELD_TIME: return "DateTimeInput";
	default: return "TextField";
	}
}

static void put_input(struct uar_jw *w, const struct field *f, enum field_kind kind)
{
	a2ui_component(w, uar_str_c(f->id), component_of(kind));
	put_label(w, f);
	a2ui_path(w, "value", uar_str_c(f->path));
	put_members(w, f, kind);
	put_checks(w, f, kind);
	uar_jw_close(w);
}

static uar_str help_id(const struct field *f, char out[FIELD_ID + 8])
{
	int n = snprintf(out, FIELD_ID + 8, "%s_help", f->id);

	return uar_str_n(out, (size_t)n);
}

/* The ids of the properties of an object, in their order. */
static void put_children(struct uar_jw *w, const struct uar_json *object,
			 const struct field *parent)
{
	char help[FIELD_ID + 8];

	for (const struct uar_json *p = first_property(object); p; p = p->next) {
		struct field f;

		if (!make_field(&f, object, p, parent))
			continue;
		uar_jw_cstr(w, NULL, f.id);
		if (uar_json_text(p, "description").n)
			uar_jw_str(w, NULL, help_id(&f, help));
	}
}

static void put_fields(struct uar_jw *w, const struct uar_json *object, const struct field *parent);

static void put_group(struct uar_jw *w, const struct field *f)
{
	char body[FIELD_ID + 8], title[FIELD_ID + 8];

	snprintf(body, sizeof body, "%s_body", f->id);
	snprintf(title, sizeof title, "%s_title", f->id);
	a2ui_component(w, uar_str_c(f->id), "Card");
	uar_jw_cstr(w, "child", body);
	uar_jw_close(w);
	a2ui_component(w, uar_str_c(body), "Column");
	uar_jw_arr(w, "children");
	uar_jw_cstr(w, NULL, title);
	put_children(w, f->schema, f);
	uar_jw_close(w);
	uar_jw_close(w);
	a2ui_text(w, uar_str_c(title), title_of(f->schema, f->name), "h5");
	put_fields(w, f->schema, f);
}

/* A literal keeps the reader from changing it. */
static void put_fixed(struct uar_jw *w, const struct field *f)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	const struct uar_json *value = member(f->schema, "const");

	if (!value)
		value = member(f->schema, "default");
	uar_buf_add_str(&b, title_of(f->schema, f->name));
	uar_buf_add_str(&b, UAR_STR(": "));
	if (value && value->kind == UAR_JSON_STRING)
		uar_buf_add_str(&b, value->text);
	else if (value)
		uar_json_write(&b, value);
	a2ui_text(w, uar_str_c(f->id), uar_buf_str(&b), NULL);
	uar_buf_fini(&b);
}

static void put_fields(struct uar_jw *w, const struct uar_json *object, const struct field *parent)
{
	char help[FIELD_ID + 8];

	for (const struct uar_json *p = first_property(object); p; p = p->next) {
		struct field f;
		enum field_kind kind;

		if (!make_field(&f, object, p, parent))
			continue;
		kind = kind_of(p, f.depth);
		if (kind == FIELD_GROUP)
			put_group(w, &f);
		else if (kind == FIELD_FIXED)
			put_fixed(w, &f);
		else
			put_input(w, &f, kind);
		if (uar_json_text(p, "description").n)
			a2ui_text(w, help_id(&f, help), uar_json_text(p, "description"), "caption");
	}
}

/* --- the data of a form --------------------------------------------------------------------- */

static void put_values(struct uar_jw *w, const struct uar_json *object, unsigned depth);

/* One choice is a list with one element, or none. */
static void put_choice_value(struct uar_jw *w, const struct uar_json *value)
{
	if (value && value->kind == UAR_JSON_ARRAY) {
		uar_jw_tree(w, NULL, value);
		return;
	}
	uar_jw_arr(w, NULL);
	if (value && value->kind == UAR_JSON_STRING)
		uar_jw_str(w, NULL, value->text);
	uar_jw_close(w);
}

static void put_text_value(struct uar_jw *w, const struct uar_json *value)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EVENT_BYTES);

	if (value && value->kind != UAR_JSON_STRING)
		uar_json_write(&b, value);
	uar_jw_str(w, NULL,
		   value && value->kind == UAR_JSON_STRING ? value->text : uar_buf_str(&b));
	uar_buf_fini(&b);
}

static void put_fixed_value(struct uar_jw *w, const struct uar_json *schema)
{
	const struct uar_json *value = member(schema, "const");

	if (!value)
		value = member(schema, "default");
	if (value)
		uar_jw_tree(w, NULL, value);
	else
		uar_jw_cstr(w, NULL, "");
}

/* Every path that is bound exists, in the shape that its component wants. */
static void put_value(struct uar_jw *w, const struct uar_json *schema, unsigned depth)
{
	const struct uar_json *value = member(schema, "default");

	switch (kind_of(schema, depth)) {
	case FIELD_GROUP: put_values(w, schema, depth + 1); break;
	case FIELD_BOX: uar_jw_bool(w, NULL, uar_json_bool(value, false)); break;
	case FIELD_SLIDER: put_bound(w, NULL, value ? value : member(schema, "minimum")); break;
	case FIELD_CHOICE:
	case FIELD_CHOICES: put_choice_value(w, value); break;
	case FIELD_FIXED: put_fixed_value(w, schema); break;
	default: put_text_value(w, value);
	}
}

static void put_values(struct uar_jw *w, const struct uar_json *object, unsigned depth)
{
	uar_jw_obj(w, NULL);
	for (const struct uar_json *p = first_property(object); p; p = p->next) {
		uar_jw_key(w, p->key);
		put_value(w, p, depth);
	}
	uar_jw_close(w);
}

/* --- the whole form --------------------------------------------------------------------- */

void a2ui_put_field_ids(struct uar_jw *w, const struct uar_json *schema)
{
	put_children(w, schema, NULL);
}

void a2ui_put_fields(struct uar_jw *w, const struct uar_json *schema)
{
	put_fields(w, schema, NULL);
}

void a2ui_put_field_values(struct uar_jw *w, const struct uar_json *schema)
{
	put_values(w, schema, 0);
}

void a2ui_put_field_checks(struct uar_jw *w, const struct uar_json *schema)
{
	for (const struct uar_json *p = first_property(schema); p; p = p->next) {
		struct field f;
		enum field_kind kind = kind_of(p, 0);

		if (make_field(&f, schema, p, NULL) && f.required && kind != FIELD_GROUP &&
		    kind != FIELD_FIXED && kind != FIELD_BOX)
			put_required(w, &f);
	}
}
