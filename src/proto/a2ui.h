/* a2ui.h - a run as A2UI messages, version 0.9: surfaces, components and their data.
 *
 * The run has one surface, "run-RUN", whose sections are added as they are needed; each
 * open question has one of its own, "action-ACTION" or "form-ACTION", which goes away with
 * the answer. Text is sent again as a whole whenever it has grown by a part of itself, so
 * that the bytes of a long answer stay proportional to its length. */
#ifndef UAR_PROTO_A2UI_H
#define UAR_PROTO_A2UI_H

#include "proto/dialect.h"

#define UAR_A2UI_VERSION "v0.9"
#define UAR_A2UI_CATALOG "https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json"

extern const struct uar_dialect uar_a2ui;

/* Is it one of the names of the basic catalog? */
bool uar_a2ui_knows_catalog(uar_str id);

/* What a client does. Strings are of the tree. */
enum uar_a2ui_verb {
	UAR_A2UI_RESOLVE, /* decision about an action */
	UAR_A2UI_SUBMIT,  /* values of a form */
	UAR_A2UI_CANCEL,  /* of a form */
	UAR_A2UI_ERROR,	  /* it could not show something: code, message */
};
struct uar_a2ui_input {
	enum uar_a2ui_verb verb;
	uar_str action_id, decision;
	const struct uar_json *values; /* SUBMIT */
	uar_str code, message;	       /* ERROR */
};
/* One message of a client; `model` is the data of its surfaces, or NULL. */
UAR_MUST_CHECK uar_err uar_a2ui_read(const struct uar_json *message, const struct uar_json *model,
				     struct uar_a2ui_input *out, struct uar_error *error);
/* Values of a form as its fields hold them become values of its JSON Schema: numbers from
 * text, one choice from a list, nothing from empty text. */
void uar_a2ui_coerce(const struct uar_json *schema, const struct uar_json *values,
		     struct uar_jw *out);

/* Are these messages an interface that may be shown: one surface, known components, unique
 * ids, a root, no code in its data? `json`: a message or a list of them. */
UAR_MUST_CHECK uar_err uar_a2ui_check(const struct uar_json *json, struct uar_error *error);

#endif
