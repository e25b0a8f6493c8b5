/* process.h - what is told of a process that a tool has started. */
#ifndef UAR_EVENT_PROCESS_H
#define UAR_EVENT_PROCESS_H

#include "base/str.h"

/* News of a process. */
enum uar_process_kind {
	UAR_PROCESS_OUTPUT,
	UAR_PROCESS_INPUT,
	UAR_PROCESS_COMPLETED,
	UAR_PROCESS_FAILED,
	UAR_PROCESS_TERMINATED,
	UAR_PROCESS_VIOLATION,
};
struct uar_process_news {
	enum uar_process_kind kind;
	uar_str process_id;
	/* OUTPUT: bytes of a stream, as text or in base64. INPUT: its beginning. */
	uar_str stream, text;
	int64_t offset, bytes;
	bool base64, truncated;
	bool end; /* INPUT: standard input ends with it */
	/* COMPLETED, FAILED, TERMINATED; -1: none */
	int64_t exit_code, signal, stdout_bytes, stderr_bytes;
	uar_str stage, code, message, category; /* FAILED */
	uar_str reason, by_type, by;		/* TERMINATED; INPUT: by */
	bool escalated;
	uar_str target, attempted, violation; /* VIOLATION: `violation` is its kind */
};

#endif
