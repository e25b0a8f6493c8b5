/* sibling.h - the calls of one answer when one of them fails.
 *
 * A definition may say that they belong together (policy.tools.on_failure). Then the failure of one
 * ends those that have not begun and those that only read. What may have changed something goes on
 * to its end: what came of it is a fact. Pure. */
#ifndef UAR_CORE_SIBLING_H
#define UAR_CORE_SIBLING_H

#include <stdbool.h>

struct uar_sibling_facts {
	bool linked;	/* the definition says that they belong together */
	bool failed;	/* another call of the same answer has failed */
	bool begun;	/* it may have been executed, also before a restart */
	bool read_only; /* it changes nothing */
};
/* Is it cancelled because of the other one? */
bool uar_core_sibling_cancelled(const struct uar_sibling_facts *f);

#endif
