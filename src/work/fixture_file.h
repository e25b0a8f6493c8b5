/* fixture_file.h - recorded streams on disk: one normalized event a line.
 *
 * A line is {"type","data"} and may carry "at_ms", its moment in the recording.
 * Files are read by worker threads; the loop never waits for them. */
#ifndef UAR_WORK_FIXTURE_FILE_H
#define UAR_WORK_FIXTURE_FILE_H

#include "base/sched.h"
#include "json/json.h"
#include "work/limits.h"

/* 1 to 64 characters of a-z, 0-9, '-' and '_': never a path. */
bool uar_fixture_name_valid(uar_str name);
/* Cuts the next non-empty line off *rest; false at the end. */
bool uar_fixture_line(uar_str *rest, uar_str *out_line);
/* Checks one line: an object with a type and an object as data. */
UAR_MUST_CHECK uar_err uar_fixture_parse(uar_str line, struct uar_arena *arena,
					 const struct uar_json **out, struct uar_error *error);

enum uar_fixture_task {
	UAR_FIXTURE_LIST, /* the names of all */
	UAR_FIXTURE_FIND, /* whether there is one of that name */
	UAR_FIXTURE_LOAD, /* its text */
};

struct uar_fixture_job {
	struct uar_work work;
	/* in */
	enum uar_fixture_task task;
	const char *dir; /* borrowed until done; NULL: there are no fixtures */
	char name[UAR_LIMIT_FIXTURE_NAME + 1];
	bool whole; /* LOAD: a line that is bad is an error here */
	/* On the loop; the job is freed when it returns. NULL: nobody wants to know. */
	void (*done)(struct uar_fixture_job *job);
	void *ctx;
	/* out */
	uar_err err; /* ENOTFOUND, ETOOBIG, EIO, ECORRUPT */
	struct uar_error error;
	char *text; /* LOAD: `done` may take it, and sets it to NULL then */
	size_t size;
	uar_str *names; /* LIST: sorted */
	size_t name_count;
	struct uar_arena arena; /* owns them */
};
/* NULL: out of memory. */
struct uar_fixture_job *uar_fixture_job_make(enum uar_fixture_task task, const char *dir,
					     uar_str name);
/* Takes the job; on an error it is freed and `done` not called. */
UAR_MUST_CHECK uar_err uar_fixture_job_begin(struct uar_sched *sched, struct uar_fixture_job *job);
/* `done` will not be called; NULL is fine. */
void uar_fixture_job_forget(struct uar_fixture_job *job);

#endif
