/* a2ui.h - a run as A2UI messages, version 0.9: surfaces, components and their data.
 *
 * The run has one surface, "run-RUN", whose sections are added as they are needed; each
 * open question has one of its own, "action-ACTION" or "form-ACTION", which goes away with
 * the answer. Text is sent again as a whole whenever it has grown by a part of itself, so
 * that the bytes of a long answer stay proportional to its length. */
#ifndef UAR_PROTO_A2UI_H
#define UAR_PROTO_A2UI_H

#include "event/a2ui.h"
#include "proto/dialect.h"

extern const struct uar_dialect uar_a2ui;

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

/* Writes the messages of an interface that is fit to be shown, as elements of an array: of that
 * surface, and of that catalog unless it is empty. */
struct uar_jw;
void uar_a2ui_put_made(struct uar_jw *w, const struct uar_json *list, uar_str surface,
		       uar_str catalog);

#endif
