/* a2ui_check.c - is an interface that a model has made fit to be shown? */
#include "event/a2ui.h"

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

static uar_str text_member(const struct uar_json *j, const char *key)
{
	return uar_json_str(member(j, key), UAR_STR(""));
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

/* --- code in data -------------------------------------------------------------------------------
 */

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

static uar_err check_strings(struct checking *c, const struct uar_json *j)
{
	uar_err e = UAR_OK;

	if (j->kind == UAR_JSON_STRING && is_executable(j->text))
		return refuse(c, "", "code in its data", j->text);
	if (j->kind != UAR_JSON_ARRAY && j->kind != UAR_JSON_OBJECT)
		return UAR_OK;
	for (const struct uar_json *m = j->count ? j->first : NULL; m && !e; m = m->next)
		e = check_strings(c, m);
	return e;
}

/* --- components ----------------------------------------------------------------------------------
 */

static uar_err check_url(struct checking *c, const struct uar_json *component)
{
	const struct uar_json *call = member(member(component, "action"), "functionCall");
	uar_str url = text_member(member(call, "args"), "url");

	if (!uar_str_is(text_member(call, "call"), "openUrl") ||
	    uar_str_starts(url, UAR_STR("https://")) || uar_str_starts(url, UAR_STR("http://")))
		return UAR_OK;
	return refuse(c, "/updateComponents", "openUrl takes an http address", url);
}

static bool is_repeated(const struct uar_json *list, const struct uar_json *component)
{
	for (const struct uar_json *o = list->first; o != component; o = o->next)
		if (uar_str_eq(text_member(o, "id"), text_member(component, "id")))
			return true;
	return false;
}

static uar_err add_component(struct checking *c, const struct uar_json *list,
			     const struct uar_json *j)
{
	uar_str id = text_member(j, "id");
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

/* --- the tree
 * --------------------------------------------------------------------------------------- */

static uar_err walk(struct checking *c, uar_str id, unsigned depth);

static uar_err walk_list(struct checking *c, const struct uar_json *children, unsigned depth)
{
	uar_err e = UAR_OK;

	if (!children)
		return UAR_OK;
	if (children->kind == UAR_JSON_OBJECT)
		return walk(c, text_member(children, "componentId"), depth);
	for (const struct uar_json *j = children->count ? children->first : NULL; j && !e;
	     j = j->next)
		e = walk(c,
			 j->kind == UAR_JSON_OBJECT ? text_member(j, "child")
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
		if (text_member(p->json, single[i]).n)
			e = walk(c, text_member(p->json, single[i]), depth + 1);
	if (!e)
		e = walk_list(c, member(p->json, "children"), depth + 1);
	if (!e)
		e = walk_list(c, member(p->json, "tabs"), depth + 1);
	p->walk = DONE;
	return e;
}

/* --- messages
 * ------------------------------------------------------------------------------------------ */

static uar_err check_surface(struct checking *c, const struct uar_json *body)
{
	uar_str surface = text_member(body, "surfaceId");

	if (!surface.n)
		return refuse(c, "", "a message without surfaceId", UAR_STR(""));
	if (c->surface.n && !uar_str_eq(surface, c->surface))
		return refuse(c, "", "messages of one surface", surface);
	c->surface = surface;
	return UAR_OK;
}

static uar_err check_message(struct checking *c, const struct uar_json *m)
{
	static const char *const keys[] = { "createSurface", "updateComponents",
					    "updateDataModel" };
	uar_str version = text_member(m, "version");
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
	if (member(m, "createSurface")) {
		if (c->created || !uar_a2ui_knows_catalog(text_member(body, "catalogId")))
			return refuse(c, "/createSurface", "one surface of the basic catalog",
				      text_member(body, "catalogId"));
		c->created = true;
		return UAR_OK;
	}
	if (!c->created)
		return refuse(c, "", "createSurface comes first", UAR_STR(""));
	return member(m, "updateComponents") ? add_components(c, body) : UAR_OK;
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
