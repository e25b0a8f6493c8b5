/* flow_int.h - what the files of flow/ share. */
#ifndef UAR_FLOW_FLOW_INT_H
#define UAR_FLOW_FLOW_INT_H

#include "flow/flow.h"

/* "text"; UAR_FLOW_VALUE_COUNT names. */
extern const char *const uar_flow_value_names[UAR_FLOW_VALUE_COUNT];
/* What comes out of a port of a node by its settings; UAR_FLOW_NO: it has no such port. */
enum uar_flow_value uar_flow_port_type(const struct uar_json *inputs, const struct uar_flow_node *n,
				       uar_str port);
/* Of a member of the settings; empty: it is not there. */
uar_str uar_flow_setting(const struct uar_json *config, const char *name);

/* --- templates (template.c) ----------------------------------------------------------------- */

/* The pointer of the next "{{...}}" of a text. *before: what stands before it, *rest: what stands
 * behind. False: there is none, *before is all of it. */
bool uar_flow_cut_pointer(uar_str text, uar_str *before, uar_str *pointer, uar_str *rest);
/* Where pointers of templates lead. */
struct uar_flow_scope {
	const struct uar_flow *flow;
	const struct uar_flow_step *step; /* values of nodes */
	const struct uar_json *in, *inputs;
	const struct uar_json *item; /* of a loop; NULL: none */
	int64_t index;
};
/* NULL: nothing is there. The arena holds what is made. */
const struct uar_json *uar_flow_find(const struct uar_flow_scope *s, uar_str pointer,
				     struct uar_arena *arena);
/* The value that a port of a node gave; NULL: none. */
const struct uar_json *uar_flow_port_value(const struct uar_flow_scope *s, size_t node,
					   uar_str port);
/* A template with its values in place. */
UAR_MUST_CHECK uar_err uar_flow_fill(const struct uar_flow_scope *s, const struct uar_json *t,
				     struct uar_arena *arena, const struct uar_json **out);
/* The same as JSON text. */
UAR_MUST_CHECK uar_err uar_flow_fill_text(const struct uar_flow_scope *s, const struct uar_json *t,
					  struct uar_arena *arena, uar_str *out);
/* Does the value pass the tests of a condition? */
bool uar_flow_decide(const struct uar_flow_scope *s, const struct uar_json *config,
		     struct uar_arena *arena);

#endif
