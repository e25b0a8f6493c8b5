/* internal_int.h - what the functions behind internal tools see; for files of tool/ alone. */
#ifndef UAR_TOOL_INTERNAL_INT_H
#define UAR_TOOL_INTERNAL_INT_H

#include <sys/types.h>

#include "json/jw.h"
#include "tool/limits.h"
#include "tool/tool.h"

/* One execution. It belongs to whoever runs it: nothing in it is shared with another
 * thread while the function is at work. */
struct uar_tool_job {
	/* Asked right before the first change that the call is for. False: the call was given up,
	 * and must not change anything any more. True: from here on nobody can give it up. */
	bool (*may_change)(struct uar_tool_job *j);
	const struct uar_json *input; /* as the schema wants it */
	uar_str key;		      /* of the request */
	const char *files_dir, *skills_dir;
	int64_t now_us;	      /* wall clock at the start */
	struct uar_buf out;   /* JSON; bounded by UAR_LIMIT_TOOL_OUTPUT */
	const char *category; /* of the failure; NULL: none */
	bool retryable;
	struct uar_error error; /* its text */
};

typedef void uar_tool_fn(struct uar_tool_job *j);

/* Why it failed; the first reason stays. */
void uar_tool_fail(struct uar_tool_job *j, const char *category, const char *fmt, ...)
	UAR_PRINTF(3, 4);

/* files.c: behind the fence. Negative: the reason, of open_root and open_named one that is told. */
int uar_tool_open_root(struct uar_tool_job *j);
int uar_tool_open_beneath(int dir, const char *path, uint64_t flags);
int uar_tool_open_named(struct uar_tool_job *j, uint64_t flags, char path[UAR_LIMIT_TOOL_PATH + 1]);
ssize_t uar_tool_read_at(int fd, char *to, size_t n, off_t offset);
/* The text without a character that is cut at its end; p NULL: it is none. */
uar_str uar_tool_whole_text(uar_str bytes, bool more);
void uar_tool_end_output(struct uar_tool_job *j, struct uar_jw *w);

/* A file of a folder that is to hold a text. */
struct uar_tool_file {
	int dir;
	const char *name;
	uar_str text;
	mode_t mode;
};
/* Old text or new, also after a crash. 0, or the reason as a number of the system. */
int uar_tool_replace(struct uar_tool_job *j, const struct uar_tool_file *f);
/* Is it a name under which a file is written that will replace another? */
bool uar_tool_is_temporary(uar_str name);
/* Removes such a file when nobody is writing it any more. */
void uar_tool_sweep(const struct uar_tool_job *j, int dir, const char *name);

/* The value of an arithmetic expression; finite. UAR_EINVALID, UAR_EDEPTH, UAR_ENUMBER,
 * UAR_ETOOBIG, UAR_ENOMEM; error->where is the character, counted from 1. */
UAR_MUST_CHECK uar_err uar_calc_evaluate(uar_str text, double *out, struct uar_error *error);

/* One of each row of internal.def. */
#define T(FN, NAME, EFFECT, DESTRUCTIVE, ASK, FILES, DESCRIPTION, TAGS, INPUT, OUTPUT)             \
	uar_tool_fn uar_tool_##FN;
#include "tool/internal.def"
#undef T

#endif
