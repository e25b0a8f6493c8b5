/* verbs_agent.h - what `uar check` asks about agent definitions. */
#ifndef UAR_APP_VERBS_AGENT_H
#define UAR_APP_VERBS_AGENT_H

#include "base/buf.h"

struct uar_config;
/* The directory of definitions that the settings name. */
void uar_agents_dir(const struct uar_config *c, struct uar_buf *out);
/* Reads all of its files: a line of `problems` for each that is wrong. */
void uar_agents_check(const struct uar_config *c, struct uar_buf *notes, struct uar_buf *problems);

#endif
