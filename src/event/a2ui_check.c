/* a2ui_check.c - is an interface that a model has made fit to be shown? */
#include "event/a2ui.h"

#include <ctype.h>

#include "base/map.h"
#include "json/jw.h"

/* What is known of one component while the rest is read. */
struct part {
	const struct uar_json *json;
	enum { UNSEEN, OPEN, DONE } walk;
};

struct checking {
	struct uar_error *error;
	struct uar_arena arena;
	struct uar_map parts; /* id -> struct part */
	uar_str surface;
	size_t count;
	bool created;
};

enum { TREE_DEPTH = 64 };

static const struct uar_json *member(const struct uar_json *j, const char *key)
{
	return uar_json_get(j, uar_str_c(key));
}

static uar_err refuse(struct checking *c, const char *where, const char *why, uar_str what)
{
	uar_error_where(c->error, "/%zu%s", c->count, where);
	return uar_error_set(c->error, UAR_ESCHEMA, "%s%s%.*s", why, what.n ? ": " : "",
			     UAR_FMT(uar_str_utf8_prefix(what, 80)));
}

bool uar_a2ui_knows_catalog(uar_str id)
{
	static const char *const names[] = {
		UAR_A2UI_CATALOG,
		"https://a2ui.org/specification/v0_9/basic_catalog.json",
		"https://a2ui.org/specification/v0_9_1/catalogs/basic/catalog.json",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (uar_str_is(id, names[i]))
			return true;
	return false;
}

/* --- code in data --------------------------------------------------------------------------- */

static bool has_part(uar_str text, const char *part)
{
	size_t n = strlen(part);

	for (size_t i = 0; i + n <= text.n; i++)
		if (uar_str_eq_nocase(uar_str_n(text.p + i, n), uar_str_c(part)))
			return true;
	return false;
}

static bool is_executable(uar_str text)
{
	static const char *const parts[] = {
		"<script", "javascript:", "<iframe",	  "<object",	    "<embed",	"onerror=",
		"onload=", "onclick=",	  "onmouseover=", "data:text/html", "vbscript:"
	};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (has_part(text, parts[i]))
			return true;
	return false;
}

bool uar_a2ui_is_unsafe(uar_str name)
{
	return uar_str_is(name, "__proto__") || uar_str_is(name, "constructor") ||
	       uar_str_is(name, "prototype");
}

bool uar_a2ui_has_unsafe(const struct uar_json *json)
{
	const struct uar_json *m = uar_json_first(json);

	for (; m; m = m->next)
		if ((json->kind == UAR_JSON_OBJECT && uar_a2ui_is_unsafe(m->key)) ||
		    uar_a2ui_has_unsafe(m))
			return true;
	return false;
}

/* Where data is kept or bound: "/a/b", or "b" inside of a list. */
static bool is_unsafe_path(uar_str path)
{
	while (path.n)
		if (uar_a2ui_is_unsafe(uar_str_cut(path, '/', &path)))
			return true;
	return false;
}

static uar_err check_strings(struct checking *c, const struct uar_json *j)
{
	bool object = j->kind == UAR_JSON_OBJECT;
	uar_err e = UAR_OK;

	if (j->kind == UAR_JSON_STRING && is_executable(j->text))
		return refuse(c, "", "code in its data", j->text);
	if (j->kind != UAR_JSON_ARRAY && !object)
		return UAR_OK;
	for (const struct uar_json *m = j->count ? j->first : NULL; m && !e; m = m->next) {
		if (object && uar_a2ui_is_unsafe(m->key))
			return refuse(c, "", "a name that data must not have", m->key);
		if (object && uar_str_is(m->key, "path") && m->kind == UAR_JSON_STRING &&
		    is_unsafe_path(m->text))
			return refuse(c, "", "a path that data must not have", m->text);
		e = check_strings(c, m);
	}
	return e;
}

/* --- components ----------------------------------------------------------------------------- */

static bool is_address(uar_str text)
{
	return uar_str_starts(text, UAR_STR("https://")) ||
	       uar_str_starts(text, UAR_STR("http://"));
}

static uar_err check_url(struct checking *c, const struct uar_json *component)
{
	const struct uar_json *call = member(member(component, "action"), "functionCall");
	uar_str url = uar_json_text(member(call, "args"), "url");

	if (!uar_str_is(uar_json_text(call, "call"), "openUrl") || is_address(url))
		return UAR_OK;
	return refuse(c, "/updateComponents", "openUrl takes an http address", url);
}

static bool is_repeated(const struct uar_json *list, const struct uar_json *component)
{
	for (const struct uar_json *o = list->first; o != component; o = o->next)
		if (uar_str_eq(uar_json_text(o, "id"), uar_json_text(component, "id")))
			return true;
	return false;
}

static uar_err add_component(struct checking *c, const struct uar_json *list,
			     const struct uar_json *j)
{
	uar_str id = uar_json_text(j, "id");
	struct part *p = id.n ? uar_map_get(&c->parts, id) : NULL;
	uar_err e;

	if (!id.n)
		return refuse(c, "/updateComponents", "a component without an id", UAR_STR(""));
	if (is_repeated(list, j))
		return refuse(c, "/updateComponents", "an id twice", id);
	e = uar_a2ui_check_component(j, c->error);
	if (e)
		uar_error_where(c->error, "/%zu/updateComponents/%.*s", c->count,
				UAR_FMT(uar_str_utf8_prefix(id, 40)));
	else
		e = check_url(c, j);
	if (e)
		return e;
	if (p) {
		p->json = j;
		return UAR_OK;
	}
	p = uar_arena_alloc(&c->arena, sizeof *p);
	if (!p)
		return UAR_ENOMEM;
	p->json = j;
	return uar_map_put(&c->parts, id, p);
}

static uar_err add_components(struct checking *c, const struct uar_json *update)
{
	const struct uar_json *list = member(update, "components");
	uar_err e = UAR_OK;

	if (!list || list->kind != UAR_JSON_ARRAY || !list->count)
		return refuse(c, "/updateComponents/components", "a list of components",
			      UAR_STR(""));
	for (const struct uar_json *j = list->first; j && !e; j = j->next)
		e = add_component(c, list, j);
	return e;
}

/* --- the tree ------------------------------------------------------------------------------- */

static uar_err walk(struct checking *c, uar_str id, unsigned depth);

static uar_err walk_list(struct checking *c, const struct uar_json *children, unsigned depth)
{
	uar_err e = UAR_OK;

	if (!children)
		return UAR_OK;
	if (children->kind == UAR_JSON_OBJECT)
		return walk(c, uar_json_text(children, "componentId"), depth);
	for (const struct uar_json *j = children->count ? children->first : NULL; j && !e;
	     j = j->next)
		e = walk(c,
			 j->kind == UAR_JSON_OBJECT ? uar_json_text(j, "child")
						    : uar_json_str(j, UAR_STR("")),
			 depth);
	return e;
}

static uar_err walk(struct checking *c, uar_str id, unsigned depth)
{
	static const char *const single[] = { "child", "trigger", "content" };
	struct part *p = id.n ? uar_map_get(&c->parts, id) : NULL;
	uar_err e = UAR_OK;

	if (!p)
		return refuse(c, "", "a component that is not there", id);
	if (p->walk == OPEN || depth > TREE_DEPTH)
		return refuse(c, "", "a component inside of itself", id);
	if (p->walk == DONE)
		return UAR_OK;
	p->walk = OPEN;
	for (size_t i = 0; i < ARRAY_LEN(single) && !e; i++)
		if (uar_json_text(p->json, single[i]).n)
			e = walk(c, uar_json_text(p->json, single[i]), depth + 1);
	if (!e)
		e = walk_list(c, member(p->json, "children"), depth + 1);
	if (!e)
		e = walk_list(c, member(p->json, "tabs"), depth + 1);
	p->walk = DONE;
	return e;
}

/* --- messages ------------------------------------------------------------------------------- */

static uar_err check_surface(struct checking *c, const struct uar_json *body)
{
	uar_str surface = uar_json_text(body, "surfaceId");

	if (!surface.n)
		return refuse(c, "", "a message without surfaceId", UAR_STR(""));
	if (c->surface.n && !uar_str_eq(surface, c->surface))
		return refuse(c, "", "messages of one surface", surface);
	c->surface = surface;
	return UAR_OK;
}

/* The members that a message has, and no other. */
static const struct uar_json *find_other(const struct uar_json *body, const char *const *names)
{
	for (const struct uar_json *m = uar_json_first(body); m; m = m->next) {
		size_t i = 0;

		while (names[i] && !uar_str_is(m->key, names[i]))
			i++;
		if (!names[i])
			return m;
	}
	return NULL;
}

static bool is_colour(uar_str text)
{
	bool good = text.n == strlen("#rrggbb") && text.p[0] == '#';

	for (size_t i = 1; good && i < text.n; i++)
		good = isxdigit((unsigned char)text.p[i]);
	return good;
}

/* What the catalog says of a theme; other members of it are free. */
static uar_err check_theme(struct checking *c, const struct uar_json *theme)
{
	const struct uar_json *colour = member(theme, "primaryColor"),
			      *icon = member(theme, "iconUrl"),
			      *name = member(theme, "agentDisplayName");

	if (theme && theme->kind != UAR_JSON_OBJECT)
		return refuse(c, "/createSurface/theme", "a theme is an object", UAR_STR(""));
	if (colour && !is_colour(uar_json_str(colour, UAR_STR(""))))
		return refuse(c, "/createSurface/theme/primaryColor", "a colour like #1a2b3c",
			      uar_json_str(colour, UAR_STR("")));
	if (icon && !is_address(uar_json_str(icon, UAR_STR(""))))
		return refuse(c, "/createSurface/theme/iconUrl", "an http address",
			      uar_json_str(icon, UAR_STR("")));
	if (name && name->kind != UAR_JSON_STRING)
		return refuse(c, "/createSurface/theme/agentDisplayName", "text", UAR_STR(""));
	return UAR_OK;
}

static uar_err check_create(struct checking *c, const struct uar_json *body)
{
	static const char *const names[] = { "surfaceId", "catalogId", "theme", "sendDataModel",
					     NULL };
	const struct uar_json *sends = member(body, "sendDataModel");
	const struct uar_json *other = find_other(body, names);

	if (c->created || !uar_a2ui_knows_catalog(uar_json_text(body, "catalogId")))
		return refuse(c, "/createSurface", "one surface of the basic catalog",
			      uar_json_text(body, "catalogId"));
	c->created = true;
	if (other)
		return refuse(c, "/createSurface", "an unknown member", other->key);
	if (sends && sends->kind != UAR_JSON_BOOL)
		return refuse(c, "/createSurface/sendDataModel", "true or false", UAR_STR(""));
	return check_theme(c, member(body, "theme"));
}

/* A JSON Pointer: "" or "/a/b", where "~" stands before 0 or 1 only. */
static bool is_pointer(const struct uar_json *path)
{
	uar_str text = uar_json_str(path, UAR_STR("x"));

	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] == '~' &&
		    (i + 1 == text.n || (text.p[i + 1] != '0' && text.p[i + 1] != '1')))
			return false;
	return !text.n || text.p[0] == '/';
}

static uar_err check_data(struct checking *c, const struct uar_json *body)
{
	static const char *const names[] = { "surfaceId", "path", "value", NULL };
	const struct uar_json *path = member(body, "path"), *value = member(body, "value");
	const struct uar_json *other = find_other(body, names);
	uar_str whole = uar_json_text(body, "path");

	if (other)
		return refuse(c, "/updateDataModel", "an unknown member", other->key);
	if (path && !is_pointer(path))
		return refuse(c, "/updateDataModel/path", "a JSON Pointer like /items/0", whole);
	if ((!whole.n || uar_str_is(whole, "/")) && value && value->kind != UAR_JSON_OBJECT)
		return refuse(c, "/updateDataModel/value", "the whole data is an object",
			      UAR_STR(""));
	return UAR_OK;
}

static uar_err check_message(struct checking *c, const struct uar_json *m)
{
	static const char *const keys[] = { "createSurface", "updateComponents",
					    "updateDataModel" };
	uar_str version = uar_json_text(m, "version");
	const struct uar_json *body = NULL;
	uar_err e;

	for (size_t i = 0; i < ARRAY_LEN(keys) && !body; i++)
		body = member(m, keys[i]);
	if (!uar_str_is(version, UAR_A2UI_VERSION) && !uar_str_is(version, "v0.9.1"))
		return refuse(c, "/version", "v0.9", version);
	if (!body || m->count != 2)
		return refuse(c, "", "one of createSurface, updateComponents, updateDataModel",
			      UAR_STR(""));
	e = check_surface(c, body);
	if (!e)
		e = check_strings(c, body);
	if (e)
		return e;
	if (member(m, "createSurface"))
		return check_create(c, body);
	if (!c->created)
		return refuse(c, "", "createSurface comes first", UAR_STR(""));
	return member(m, "updateComponents") ? add_components(c, body) : check_data(c, body);
}

static uar_err check_messages(struct checking *c, const struct uar_json *list)
{
	uar_err e = UAR_OK;

	for (const struct uar_json *m = list->count ? list->first : NULL; m && !e; m = m->next) {
		e = check_message(c, m);
		c->count++;
	}
	if (e)
		return e;
	if (!uar_map_get(&c->parts, UAR_STR("root")))
		return refuse(c, "", "no component with the id root", UAR_STR(""));
	return walk(c, UAR_STR("root"), 0);
}

uar_err uar_a2ui_check(const struct uar_json *json, struct uar_error *error)
{
	struct checking c = { .error = error };
	uar_err e;

	if (!json || json->kind != UAR_JSON_ARRAY) {
		return uar_error_set(error, UAR_ESCHEMA, "a list of A2UI messages");
	}
	uar_arena_init(&c.arena, 0);
	e = check_messages(&c, json);
	uar_map_fini(&c.parts);
	uar_arena_fini(&c.arena);
	return e;
}

uar_err uar_a2ui_check_text(uar_str text, struct uar_arena *arena, const struct uar_json **out,
			    struct uar_error *error)
{
	uar_err e = uar_json_parse(text, NULL, arena, out, error);

	return e ? e : uar_a2ui_check(*out, error);
}
