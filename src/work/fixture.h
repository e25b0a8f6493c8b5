/* fixture.h - a recorded stream on its way to somebody, line by line.
 *
 * The one replayer of runs and of plain replays. The file is read off the loop;
 * at its own pace a line waits for its "at_ms", counted from the beginning or,
 * when it goes on behind a line, from that one; otherwise lines follow as fast
 * as they are taken. */
#ifndef UAR_WORK_FIXTURE_H
#define UAR_WORK_FIXTURE_H

#include "work/fixture_file.h"

struct uar_fixture;

struct uar_fixture_sink {
	/* The file is there and has the line to go on behind. Once, first; an error
	 * ends the replay with it. */
	uar_err (*opened)(void *ctx);
	/* A line and what it says, valid inside the call. UAR_EBUSY: it was not
	 * taken, uar_fixture_resume follows. Any other error ends the replay. */
	uar_err (*line)(void *ctx, uint64_t number, uar_str text, const struct uar_json *line);
	/* Nothing more comes and the replay is gone. UAR_OK: that was the last line. */
	void (*end)(void *ctx, uar_err why, const struct uar_error *error);
	void *ctx;
};

struct uar_fixture_options {
	struct uar_sched *sched;
	const char *dir; /* borrowed as long as the scheduler lives */
	uar_str name;
	uint64_t after; /* lines that were taken before; UAR_ECURSOR when there are fewer */
	bool paced;
	bool whole; /* all lines are looked at before the first; UAR_ECORRUPT if one is bad */
	struct uar_fixture_sink sink;
};
UAR_MUST_CHECK uar_err uar_fixture_open(const struct uar_fixture_options *o,
					struct uar_fixture **out);
void uar_fixture_resume(struct uar_fixture *f);
/* No callback follows; NULL is fine. Not from inside one. */
void uar_fixture_close(struct uar_fixture *f);

#endif
