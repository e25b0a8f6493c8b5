/* a2ui_catalog.c - is a component what A2UI's basic catalog says of its type? */
#include "event/a2ui.h"

/* A value of the kinds up to ANY may also be bound to data, or the result of a function. */
enum kind {
	TEXT,
	TRUTH,
	AMOUNT,
	STRINGS,
	ANY,
	WORD,
	ICON,
	STRING,
	BOOL,
	NUMBER,
	CHILDREN,
	TABS,
	OPTIONS,
	ACTION,
	CHECKS
};

struct property {
	const char *component, *member;
	bool needed;
	enum kind kind;
	const char *words;
};

static const struct property properties[] = {
#define P(COMPONENT, MEMBER, NEEDED, KIND, WORDS) { COMPONENT, MEMBER, NEEDED, KIND, WORDS },
#include "event/a2ui_catalog.def"
#undef P
};

static const struct {
	const char *name, *returns, *needs, *takes; /* arguments: a space between two */
} functions[] = {
	{ "required", "boolean", "value", "value" },
	{ "regex", "boolean", "value pattern", "value pattern" },
	{ "length", "boolean", "value", "value min max" },
	{ "numeric", "boolean", "value", "value min max" },
	{ "email", "boolean", "value", "value" },
	{ "formatString", "string", "value", "value" },
	{ "formatNumber", "string", "value", "value decimals grouping" },
	{ "formatCurrency", "string", "value currency", "value currency decimals grouping" },
	{ "formatDate", "string", "value format", "value format" },
	{ "pluralize", "string", "value other", "value zero one two few many other" },
	{ "openUrl", "void", "url", "url" },
	{ "and", "boolean", "values", "values" },
	{ "or", "boolean", "values", "values" },
	{ "not", "boolean", "value", "value" },
};

static const struct uar_json *member(const struct uar_json *j, const char *key)
{
	return uar_json_get(j, uar_str_c(key));
}

static bool is_string(const struct uar_json *j)
{
	return j && j->kind == UAR_JSON_STRING;
}

static bool is_number(const struct uar_json *j)
{
	return j && (j->kind == UAR_JSON_INT || j->kind == UAR_JSON_DOUBLE);
}

static bool has_word(const char *words, uar_str word)
{
	uar_str rest = uar_str_c(words);

	while (rest.n)
		if (uar_str_eq(uar_str_cut(rest, ' ', &rest), word))
			return word.n > 0;
	return false;
}

/* An object that has nothing but these members. */
static bool has_only(const struct uar_json *j, const char *members)
{
	if (!j || j->kind != UAR_JSON_OBJECT)
		return false;
	for (const struct uar_json *m = uar_json_first(j); m; m = m->next)
		if (!has_word(members, m->key))
			return false;
	return true;
}

/* --- values that may be bound --------------------------------------------------------------- */

static bool is_list(const struct uar_json *j, bool (*fits)(const struct uar_json *j),
		    uint32_t least)
{
	if (!j || j->kind != UAR_JSON_ARRAY || j->count < least)
		return false;
	for (const struct uar_json *m = uar_json_first(j); m; m = m->next)
		if (!fits(m))
			return false;
	return true;
}

static bool has_all(const struct uar_json *j, const char *members)
{
	uar_str rest = uar_str_c(members);

	while (rest.n)
		if (!uar_json_get(j, uar_str_cut(rest, ' ', &rest)))
			return false;
	return true;
}

static bool is_dynamic(const struct uar_json *j, enum kind kind);

static bool is_truth(const struct uar_json *j)
{
	return is_dynamic(j, TRUTH);
}

/* `returns`: what the result has to be; NULL: anything. */
static bool is_call(const struct uar_json *j, const char *returns)
{
	const struct uar_json *args = member(j, "args"), *type = member(j, "returnType");
	size_t i = 0;

	if (!has_only(j, "call args returnType") || !args)
		return false;
	while (i < ARRAY_LEN(functions) && !uar_str_is(uar_json_text(j, "call"), functions[i].name))
		i++;
	if (i == ARRAY_LEN(functions) || !has_only(args, functions[i].takes) ||
	    !has_all(args, functions[i].needs))
		return false;
	if (type && !uar_str_is(uar_json_str(type, UAR_STR("")), functions[i].returns))
		return false;
	if (returns && strcmp(functions[i].returns, returns) != 0)
		return false;
	return !member(args, "values") || is_list(member(args, "values"), is_truth, 2);
}

static bool is_binding(const struct uar_json *j)
{
	return has_only(j, "path") && is_string(member(j, "path"));
}

static bool is_dynamic(const struct uar_json *j, enum kind kind)
{
	static const char *const returns[] = {
		[TEXT] = "string", [TRUTH] = "boolean", [AMOUNT] = "number", [STRINGS] = "array"
	};

	if (is_binding(j) || is_call(j, kind == ANY ? NULL : returns[kind]))
		return true;
	switch (kind) {
	case TEXT: return is_string(j);
	case TRUTH: return j->kind == UAR_JSON_BOOL;
	case AMOUNT: return is_number(j);
	case STRINGS: return is_list(j, is_string, 0);
	default: return j->kind != UAR_JSON_NULL && j->kind != UAR_JSON_OBJECT;
	}
}

/* --- other values --------------------------------------------------------------------------- */

static bool is_check(const struct uar_json *j)
{
	return has_only(j, "condition message") && has_all(j, "condition message") &&
	       is_truth(member(j, "condition")) && is_string(member(j, "message"));
}

static bool is_tab(const struct uar_json *j)
{
	return has_only(j, "title child") && has_all(j, "title child") &&
	       is_dynamic(member(j, "title"), TEXT) && is_string(member(j, "child"));
}

static bool is_option(const struct uar_json *j)
{
	return has_only(j, "label value") && has_all(j, "label value") &&
	       is_dynamic(member(j, "label"), TEXT) && is_string(member(j, "value"));
}

static bool is_event(const struct uar_json *j)
{
	const struct uar_json *context = member(j, "context");

	if (!has_only(j, "name context") || !is_string(member(j, "name")))
		return false;
	if (context && context->kind != UAR_JSON_OBJECT)
		return false;
	for (const struct uar_json *m = uar_json_first(context); m; m = m->next)
		if (!is_dynamic(m, ANY))
			return false;
	return true;
}

static bool is_action(const struct uar_json *j)
{
	if (has_only(j, "event") && j->count)
		return is_event(member(j, "event"));
	return has_only(j, "functionCall") && j->count && is_call(member(j, "functionCall"), NULL);
}

static bool are_children(const struct uar_json *j)
{
	if (j->kind == UAR_JSON_ARRAY)
		return is_list(j, is_string, 0);
	return has_only(j, "componentId path") && is_string(member(j, "componentId")) &&
	       is_string(member(j, "path"));
}

static bool is_icon(const struct uar_json *j, const char *words)
{
	if (is_string(j))
		return has_word(words, j->text);
	return is_binding(j) || (has_only(j, "svgPath") && is_string(member(j, "svgPath")));
}

static bool fits(const struct property *p, const struct uar_json *j)
{
	if (p->kind <= ANY)
		return is_dynamic(j, p->kind);
	switch (p->kind) {
	case WORD: return is_string(j) && has_word(p->words, j->text);
	case ICON: return is_icon(j, p->words);
	case STRING: return is_string(j);
	case BOOL: return j->kind == UAR_JSON_BOOL;
	case NUMBER: return is_number(j);
	case CHILDREN: return are_children(j);
	case TABS: return is_list(j, is_tab, 1);
	case OPTIONS: return is_list(j, is_option, 0);
	case ACTION: return is_action(j);
	case CHECKS: return is_list(j, is_check, 0);
	default: return false;
	}
}

/* --- components ----------------------------------------------------------------------------- */

static uar_err refuse(struct uar_error *error, uar_str type, const char *why, uar_str what)
{
	return uar_error_set(error, UAR_ESCHEMA, "%.*s %s %.*s",
			     UAR_FMT(uar_str_utf8_prefix(type, 40)), why,
			     UAR_FMT(uar_str_utf8_prefix(what, 40)));
}

/* What every component may have. */
static bool is_common(const struct uar_json *m)
{
	if (uar_str_is(m->key, "accessibility"))
		return has_only(m, "label description");
	if (uar_str_is(m->key, "weight"))
		return is_number(m);
	return uar_str_is(m->key, "id") || uar_str_is(m->key, "component");
}

static const struct property *find_property(uar_str type, uar_str name)
{
	for (size_t i = 0; i < ARRAY_LEN(properties); i++)
		if (uar_str_is(type, properties[i].component) &&
		    uar_str_is(name, properties[i].member))
			return &properties[i];
	return NULL;
}

static uar_err check_needed(const struct uar_json *component, uar_str type, struct uar_error *error)
{
	bool known = false;

	for (size_t i = 0; i < ARRAY_LEN(properties); i++) {
		const struct property *p = &properties[i];

		if (!uar_str_is(type, p->component))
			continue;
		known = true;
		if (p->needed && !member(component, p->member))
			return refuse(error, type, "lacks its", uar_str_c(p->member));
	}
	return known ? UAR_OK
		     : uar_error_set(error, UAR_ESCHEMA,
				     "not a component of the basic catalog: %.*s",
				     UAR_FMT(uar_str_utf8_prefix(type, 40)));
}

uar_err uar_a2ui_check_component(const struct uar_json *component, struct uar_error *error)
{
	uar_str type = uar_json_text(component, "component");
	uar_err e = check_needed(component, type, error);

	for (const struct uar_json *m = uar_json_first(component); m && !e; m = m->next) {
		const struct property *p = find_property(type, m->key);

		if (!p && !is_common(m))
			e = refuse(error, type, "does not take", m->key);
		else if (p && !fits(p, m))
			e = refuse(error, type, "has a wrong", m->key);
	}
	return e;
}
