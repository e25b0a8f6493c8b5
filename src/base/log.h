/* log.h - structured log lines for operators; nothing ever parses their text.
 *
 * One line per call: time, level, "room.what", then key=value fields (or one
 * JSON object a line). Only engine/, work/, read/, mail/, gate/ and app/ log, once per error. */
#ifndef UAR_BASE_LOG_H
#define UAR_BASE_LOG_H

#include <pthread.h>

#include "base/clock.h"

enum uar_log_level { UAR_LOG_DEBUG, UAR_LOG_INFO, UAR_LOG_WARN, UAR_LOG_ERROR, UAR_LOG_OFF };

/* The newest lines, for those who look at a running server. */
struct uar_log_ring {
	char *line[UAR_LIMIT_LOG_KEPT]; /* of number k at k % UAR_LIMIT_LOG_KEPT; may be NULL */
	uint64_t last;			/* number of the newest, from 1; 0: none yet */
};

/* Where the lines go. Nobody ever waits for its reader: a line that cannot be written at once
 * is dropped, and before the next one that can be, a line says how many were. */
struct uar_log_out {
	pthread_mutex_t lock;
	int fd;
	bool owned;  /* fd was opened here */
	bool socket; /* fd is one */
	bool asks;   /* fd may block: it is asked first */
	bool torn;   /* the last line is there in part */
	uint64_t lost;
	struct uar_log_ring *kept; /* NULL: none are kept */
};
/* Only the descriptor is borrowed: the flags that it shares with others stay as they are. */
void uar_log_out_init(struct uar_log_out *o, int fd);
void uar_log_out_fini(struct uar_log_out *o);
/* Keeps the newest lines from here on; without memory it does not. */
void uar_log_out_keep(struct uar_log_out *o);
/* The oldest kept line after this number, without its line end, and its own number; 0: there is
 * none. A number that no line has had yet counts as 0. From any thread. */
uint64_t uar_log_out_next(struct uar_log_out *o, uint64_t after, char out[UAR_LIMIT_LOG_LINE]);

struct uar_log {
	const struct uar_clock *clock;
	enum uar_log_level level; /* lines below it are dropped */
	bool json;
	struct uar_log_out *out;
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
