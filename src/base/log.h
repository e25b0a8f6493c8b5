/* log.h - structured log lines for operators; nothing ever parses their text.
 *
 * One line per call: time, level, "room.what", then key=value fields (or one
 * JSON object a line). Only runtime/, gate/ and app/ log, once per error. */
#ifndef UAR_BASE_LOG_H
#define UAR_BASE_LOG_H

#include "base/clock.h"

enum uar_log_level { UAR_LOG_DEBUG, UAR_LOG_INFO, UAR_LOG_WARN, UAR_LOG_ERROR, UAR_LOG_OFF };

struct uar_log {
	const struct uar_clock *clock;
	enum uar_log_level level; /* lines below it are dropped */
	bool json;
	int fd;
};

struct uar_log_field {
	const char *key;
	uar_str value;
};

/* uar_log(log, UAR_LOG_INFO, "run.created", { "run_id", id }, { "agent", a }) */
#define uar_log(LOG, LEVEL, WHAT, ...)                                                             \
	uar_log_write((LOG), (LEVEL), (WHAT),                                                      \
		      (const struct uar_log_field[]){ __VA_ARGS__, { NULL, { NULL, 0 } } })
/* Fields end with a NULL key; one without a value is left out. NULL log drops the
 * line. Safe from any thread. */
void uar_log_write(const struct uar_log *log, enum uar_log_level level, const char *what,
		   const struct uar_log_field *fields);
UAR_MUST_CHECK uar_err uar_log_level_parse(uar_str s, enum uar_log_level *out);

#endif
