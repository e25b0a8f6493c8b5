/* a2ui.h - interfaces that models make: lists of A2UI messages, of version 0.9 and its basic
 * catalog. */
#ifndef UAR_EVENT_A2UI_H
#define UAR_EVENT_A2UI_H

#include "json/json.h"

#define UAR_A2UI_VERSION  "v0.9"
#define UAR_A2UI_CATALOG  "https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json"
#define UAR_A2UI_ARTIFACT "a2ui" /* the type of an artifact that is one */

/* Is it one of the names of the basic catalog? */
bool uar_a2ui_knows_catalog(uar_str id);

/* A name that means something else to JavaScript: no client may keep data under it. */
bool uar_a2ui_is_unsafe(uar_str name);
/* Has an object in there a member of such a name? */
bool uar_a2ui_has_unsafe(const struct uar_json *json);

/* Are these messages an interface that may be shown: one surface, components as the catalog has
 * them, unique ids, a root, no code in its data? `json`: a list of messages. */
UAR_MUST_CHECK uar_err uar_a2ui_check(const struct uar_json *json, struct uar_error *error);
/* The same of text. *out is of `arena` and borrows from the text. */
UAR_MUST_CHECK uar_err uar_a2ui_check_text(uar_str text, struct uar_arena *arena,
					   const struct uar_json **out, struct uar_error *error);
/* a2ui_catalog.c: has the component the members that its type takes, and those that it needs?
 * UAR_ESCHEMA: error says what is wrong, without a place. */
UAR_MUST_CHECK uar_err uar_a2ui_check_component(const struct uar_json *component,
						struct uar_error *error);

#endif
