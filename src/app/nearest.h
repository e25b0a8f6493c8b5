/* nearest.h - finds the name that somebody meant who wrote one that is none.
 *
 * A mistyped name is near, so is one of which a beginning or a whole word was given or to
 * which one was added, and that which other servers call so (the W rows of config.def). */
#ifndef UAR_APP_NEAREST_H
#define UAR_APP_NEAREST_H

#include "base/str.h"

struct uar_nearest {
	uar_str name;	  /* as given */
	const char *best; /* NULL: none is near */
	size_t cost;	  /* of the best, or what none may reach */
};

void uar_nearest_init(struct uar_nearest *n, uar_str name);
/* '-' and '_' are alike. Of two that are equally near the first stays. */
void uar_nearest_consider(struct uar_nearest *n, const char *candidate);

#endif
