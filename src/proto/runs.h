/* runs.h - the run record as JSON: one run, as lists and look-ups show it. */
#ifndef UAR_PROTO_RUNS_H
#define UAR_PROTO_RUNS_H

#include "event/record.h"
#include "json/jw.h"

/* Times are seconds since 1970 as numbers; absent facts are null. */
void uar_runs_write(struct uar_jw *w, const char *key, const struct uar_run_row *row);

#endif
