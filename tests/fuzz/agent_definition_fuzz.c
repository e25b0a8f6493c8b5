/* agent_definition_fuzz.c - agent definitions: whatever is accepted is complete. */
#include <stdlib.h>

#include "agent/definition.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uar_error error = { 0 };
	struct uar_definition d;
	int rule;

	if (uar_definition_read(uar_str_n((const char *)data, size), &d, &error))
		return 0;
	if (!d.info.agent_id.n || !d.info.kind.n || !d.info.entry.n || d.info.timeout_us <= 0)
		abort();
	if (d.info.needs_working_dir != (d.backend.working_dir.n == 0))
		abort();
	uar_definition_judge(&d.policy, UAR_STR("tool"), d.info.agent_id, &rule);
	if (rule < -1 || rule >= (int)d.policy.rule_count)
		abort();
	uar_definition_fini(&d);
	return 0;
}
