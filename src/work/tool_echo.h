/* tool_echo.h - sensitive arguments that a tool gives back: hidden before its result is recorded.
 */
#ifndef UAR_WORK_TOOL_ECHO_H
#define UAR_WORK_TOOL_ECHO_H

#include "base/buf.h"
#include "tool/secret.h"

/* Notes the values of `args` that the schema or their names hide (core/redact.h). Fini in any
 * case. */
UAR_MUST_CHECK uar_err rt_echo_note(uar_str input_schema, uar_str args,
				    struct uar_secrets_used *used);
/* Appends the text without them, and adds to *count how many there were. JSON stays JSON. */
UAR_MUST_CHECK uar_err rt_echo_hide(const struct uar_secrets_used *used, uar_str text,
				    struct uar_buf *out, size_t *count);

#endif
