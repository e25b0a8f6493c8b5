/* form.h - forms in a terminal: fields of a JSON Schema are asked for, one after the other. */
#ifndef UAR_APP_FORM_H
#define UAR_APP_FORM_H

#include <stdio.h>

#include "json/jw.h"

/* Where a person sits. */
struct uar_form_io {
	FILE *in, *out;
};

/* Writes what a person typed for a member, as its schema wants it: "3" is a number for an
 * integer, a text for a string. UAR_EINVALID, and why. `schema` may be NULL: JSON, else text. */
UAR_MUST_CHECK uar_err uar_form_value(struct uar_jw *w, uar_str key, const struct uar_json *schema,
				      uar_str typed, struct uar_error *error);
/* Asks for every property and writes an object. UAR_ECANCELED: the person has left. */
UAR_MUST_CHECK uar_err uar_form_fill(const struct uar_form_io *io, const struct uar_json *schema,
				     struct uar_buf *out);
/* One line without its end; secrets are not echoed. False: there is none, or a signal came; the
 * terminal is as before when that acts. */
bool uar_form_line(const struct uar_form_io *io, bool secret, char *line, size_t size);

#endif
