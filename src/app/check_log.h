/* check_log.h - `uar check --log` and `--url`: do the events of a store or a server keep the
 * rules of core/validate.h? */
#ifndef UAR_APP_CHECK_LOG_H
#define UAR_APP_CHECK_LOG_H

#include "app/cli.h"
#include "core/validate.h"

/* Counts, and the first violation. */
struct uar_log_check {
	struct uar_validator *validator;
	struct uar_violation first;
	struct uar_validated counts;
};
UAR_MUST_CHECK uar_err uar_log_check_init(struct uar_log_check *k);
void uar_log_check_fini(struct uar_log_check *k);
/* What was looked at goes to `notes`; the first violation to `problems`. */
void uar_log_check_report(const struct uar_log_check *k, struct uar_buf *notes,
			  struct uar_buf *problems);

/* Every session of a server: the verb with --url. */
int uar_log_check_server(struct uar_cli *cli);

#endif
