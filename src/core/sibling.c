/* sibling.c - what the failure of a call means for the others of its answer. */
#include "core/sibling.h"

bool uar_core_sibling_cancelled(const struct uar_sibling_facts *f)
{
	return f->linked && f->failed && (!f->begun || f->read_only);
}
