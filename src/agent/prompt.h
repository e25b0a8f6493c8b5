/* prompt.h - the prompt of an agent, section by section, from the definition and the run's
 * inputs. Pure: equal inputs give equal bytes. */
#ifndef UAR_AGENT_PROMPT_H
#define UAR_AGENT_PROMPT_H

#include "agent/definition.h"
#include "base/buf.h"

/* {{NAME}} in a text. `value` is called for each; it writes to `out` and returns an error for a
 * name that it does not know. error->where is left alone. */
typedef uar_err uar_template_fn(void *ctx, uar_str name, struct uar_buf *out);
UAR_MUST_CHECK uar_err uar_template_render(uar_str text, uar_template_fn *value, void *ctx,
					   struct uar_buf *out, struct uar_error *error);

#endif
