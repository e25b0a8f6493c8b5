/* run_rows.h - every row of the run's table, for tests that walk them. */
#ifndef UAR_TEST_RUN_ROWS_H
#define UAR_TEST_RUN_ROWS_H

#include "core/machine.h"

static const struct row {
	enum uar_status from;
	enum uar_run_input on;
	enum uar_status to;
	enum uar_effect effect;
} rows[] = {
#define T(FROM, ON, TO, EFFECT)                                                                    \
	{ UAR_STATUS_##FROM, UAR_IN_##ON, UAR_STATUS_##TO, UAR_DO_##EFFECT },
#include "core/run.def"
#undef T
};

#endif
