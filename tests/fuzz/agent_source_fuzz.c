/* agent_source_fuzz.c - definitions as files: YAML, JSON with comments, and lines of errors. */
#include <stdlib.h>

#include "agent/definition.h"
#include "agent/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const files[] = { "a.json", "a.yaml" };
	struct uar_error error = { 0 };
	struct uar_definition d, again;
	uar_str text = { (const char *)data + 1, size - 1 };

	if (size < 1)
		return 0;
	if (uar_definition_read_file(files[data[0] & 1], text, &d, &error))
		return 0;
	if (uar_definition_read(d.text, &again, &error))
		abort();
	if (memcmp(d.revision, again.revision, sizeof d.revision))
		abort();
	uar_definition_fini(&again);
	uar_definition_fini(&d);
	return 0;
}
