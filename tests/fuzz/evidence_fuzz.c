/* evidence_fuzz.c - a file that claims to be evidence: whatever is in it, the check ends. */
#include "evidence/evidence.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uar_evidence_report report;
	struct uar_error error = { 0 };

	(void)!uar_evidence_verify(uar_str_n((const char *)data, size), &report, &error);
	return 0;
}
