/* drive.h - the thread behind a run: processes, deadlines, cancel, the end.
 *
 * A backend makes a job; its body runs on the run's own thread and drives one
 * process after another. Nothing the consumer does or omits stops that thread
 * from draining pipes and keeping deadlines. */
#ifndef UAR_BACKEND_DRIVE_H
#define UAR_BACKEND_DRIVE_H

#include "backend/child.h"
#include "backend/map.h"
#include "loop/sizes.h"

struct uab_times {
	int64_t interrupt_us, terminate_us, kill_us, after_us, start_us, approval_us, idle_us;
	uint64_t line_bytes, queue_bytes, spill_bytes;
};
/* Defaults for what is zero. */
struct uab_times uab_times_of(const uaa_process_options *o);

/* What a failure can be explained by, for who asked for it. */
struct uab_insight {
	uaa_trace_fn *trace; /* NULL: nobody */
	void *trace_ctx;
	bool keep_words;
	uar_str withheld; /* names of variables; the backend's */
};

struct uab_pending {
	struct uab_ask ask;
	char *input, *extra; /* owned */
	int64_t deadline_us;
	bool used, answered;
	uaa_decision decision;
};

struct uab_drive {
	uaa_run *run;
	uaa_producer *producer;
	struct uab_times t;
	struct uab_insight insight;
	const char *supervisor; /* NULL: not found */
	const char *cgroup;	/* as of struct uab_spawn */
	int64_t deadline_us;	/* of the whole run; 0 none */
	int wake;		/* eventfd */
	bool nomem;		/* an event could not be made */
	const char *stuck;	/* what is said of a tree that may not be gone; NULL: it is */
	int status;		/* wait status of the last process */
	bool has_status;
	struct uab_port port; /* what the dialects get */
	struct uab_child child;
	struct uar_buf input;  /* waits for the child's stdin */
	bool close_input;      /* when it has been written */
	struct uar_buf errors; /* the last bytes of the child's stderr, for the words of an error */
	struct uab_lines lines;
	struct uar_arena scratch;
	pthread_mutex_t mu; /* guards pending; a leaf: nothing is called with it held */
	struct uab_pending pending[UAR_LIMIT_AGENT_ASKS];
};

struct uab_job {
	uaa_str kind;
	struct uab_times t;
	struct uab_insight insight; /* borrowed until destroy */
	const char *supervisor, *cgroup;
	int64_t timeout_ms; /* <= 0 none */
	bool respond;	    /* approvals can be answered */
	/* Leaves its result in the map it gives back; NULL: out of memory. */
	struct uab_map *(*body)(struct uab_drive *d, void *ctx);
	void (*destroy)(void *ctx); /* also when the start fails */
	void *ctx;
};

/* Starts the thread. Takes job->ctx in every case. */
uaa_status uab_drive_start(const struct uab_job *job, uaa_run **out, uaa_error **error);

/* Inside a body: runs one process to its end with this dialect; `input` is
 * written to its stdin first. Afterwards map->outcome is decided unless the run
 * was cancelled. */
void uab_drive_process(struct uab_drive *d, const struct uab_spawn *spec, struct uab_map *map,
		       uar_str input);
void uab_trace(const struct uab_drive *d, uaa_trace_kind kind, uar_str bytes);
bool uab_drive_over(struct uab_drive *d); /* cancelled or out of time */

#endif
