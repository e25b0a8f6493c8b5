/* tool_form.h - values that a tool needs and a person can give: the form that asks for them,
 * and the arguments with its answer. */
#ifndef UAR_WORK_TOOL_FORM_H
#define UAR_WORK_TOOL_FORM_H

#include "base/buf.h"
#include "tool/tool.h"

/* The JSON Schema of the members that the tool requires and `args` lacks. `names`: they, in a
 * row. UAR_ESKIP: nothing is missing, or a person could not give it. */
UAR_MUST_CHECK uar_err rt_form_missing(uar_str input_schema, uar_str args, struct uar_buf *schema,
				       struct uar_buf *names);
/* The form that the arguments of ui.form.request describe: its JSON Schema and title. UAR_EINVALID,
 * with error->where: the schema is none, or not of an object. */
UAR_MUST_CHECK uar_err rt_form_asked(uar_str args, struct uar_buf *schema, struct uar_buf *title,
				     struct uar_error *error);
/* The members of `args` and of `values`, where both have one that of `values`. */
UAR_MUST_CHECK uar_err rt_form_merge(uar_str args, uar_str values, struct uar_buf *out);
/* `args` as they are recorded. UAR_ESKIP: as they are, nothing is hidden, or they are no JSON. */
UAR_MUST_CHECK uar_err rt_form_hides(uar_str input_schema, uar_str args, struct uar_buf *out);

#endif
