/* map.h - from the words of one CLI to events. Pure: what a dialect wants done
 * goes through its port, so that a test or a fuzzer can be the world.
 *
 * A dialect is fed whole messages and says when the agent has finished (done) or
 * failed; there is no other source of success. It never forwards text that is
 * not the agent's own answer: messages are fixed, data is metadata. */
#ifndef UAR_BACKEND_MAP_H
#define UAR_BACKEND_MAP_H

#include "backend/int.h"
#include "backend/limits.h"

struct uab_map;

/* Somebody has to approve something. */
struct uab_ask {
	char id[160];	   /* ours, unique in the run */
	char wire_id[160]; /* the CLI's, as JSON text */
	const char *kind;  /* "command", "file_change", "tool", "permissions", "input" */
	char tool_name[128], tool_use_id[128];
	uar_str input; /* JSON; borrowed while asking, owned by the table afterwards */
	uar_str extra; /* likewise: what the answer needs besides */
};

struct uab_port {
	void *ctx;
	void (*emit)(void *ctx, const uaa_event_spec *s, bool last);
	void (*send)(void *ctx, uar_str bytes);		   /* to the CLI's stdin */
	bool (*ask)(void *ctx, const struct uab_ask *ask); /* false: nobody to ask */
};

struct uab_dialect {
	const char *name;
	bool dialogue; /* it answers: a start deadline holds, stdin stays open */
	void (*begin)(struct uab_map *m);
	void (*message)(struct uab_map *m, const struct uar_json *j);
	bool (*interrupt)(struct uab_map *m); /* a polite cancel was sent */
	void (*answer)(struct uab_map *m, const struct uab_ask *ask, uaa_decision d);
	/* The process is gone and nothing was decided: look at how it ended. */
	void (*ended)(struct uab_map *m, int wait_status, uar_str stderr_text);
};

enum uab_outcome { UAB_OPEN, UAB_DONE, UAB_FAILED };

struct uab_tool {
	char id[128], name[128];
	const char *kind;
	bool open;
};

/* A hook that has begun, for how long it takes. */
struct uab_hook {
	char id[128];
	const char *point;
	int64_t began_us;
};

struct uab_usage {
	bool known;
	int64_t input, cached, output, reasoning;
	bool has_cost;
	double cost;
};

struct uab_map {
	const struct uab_dialect *dialect;
	const struct uab_port *port;
	const char *kind;  /* agent kind */
	bool interactive;  /* approvals may be asked for */
	bool model_given;  /* a refusal of the model is the request's fault */
	bool resume_by_id; /* which of the two not-found texts holds */
	enum uab_outcome outcome;
	bool heard;	 /* at least one message */
	char error[512]; /* when failed */
	uaa_cause cause;
	struct uar_buf words; /* the agent's own about its failure; never in an event */
	bool has_final;
	struct uar_buf final;
	char session[UAA_MAX_SESSION_ID + 1];
	char turn[128];
	bool session_told, session_warned, version_told;
	unsigned complained; /* one bit for each cause of a bad line */
	struct uab_usage usage;
	struct uab_tool tools[UAR_LIMIT_AGENT_TOOLS];
	size_t tool_count;
	int64_t delta_at_us; /* last coalesced delta */
	struct uab_hook hooks[UAR_LIMIT_AGENT_HOOKS];
	size_t hook_count;
};

void uab_map_init(struct uab_map *m, const struct uab_dialect *d, const struct uab_port *port,
		  const char *kind);
void uab_map_fini(struct uab_map *m);

/* A line as it came; parses, complains or maps. `scratch` is reset. */
void uab_map_line(struct uab_map *m, char *p, size_t n, struct uar_arena *scratch);
void uab_map_too_long(struct uab_map *m, uint64_t bytes);

void uab_status(struct uab_map *m, const char *message);
void uab_unknown(struct uab_map *m);
void uab_text(struct uab_map *m, uar_str text);
void uab_final_set(struct uab_map *m, uar_str text);
void uab_final_add(struct uab_map *m, uar_str text);
void uab_final_clear(struct uab_map *m);
/* The session became known: one Status carries it. */
void uab_session(struct uab_map *m, uar_str id, const char *message);
void uab_version(struct uab_map *m, uar_str version);

/* Tools. `id` is the CLI's. Counts that are not known are 0. */
struct uab_tool_event {
	uar_str id, item_id;
	uar_str name;	  /* empty: what the start said */
	const char *kind; /* NULL: what the start said */
	int64_t stdout_bytes, stderr_bytes, diff_bytes, result_bytes;
	bool has_exit;
	int64_t exit_code;
};
void uab_tool_start(struct uab_map *m, const struct uab_tool_event *t);
void uab_tool_delta(struct uab_map *m, const struct uab_tool_event *t); /* a few a second */
void uab_tool_end(struct uab_map *m, const struct uab_tool_event *t, bool failed);
bool uab_tool_known(const struct uab_map *m, uar_str id);

/* Hooks: programs that the CLI itself calls at certain points (hook.c). A point is known
 * by the name that either CLI gives it; of others only that there was one is told. */
enum uab_hook_end { UAB_HOOK_CONTINUES, UAB_HOOK_BLOCKS, UAB_HOOK_FAILS };
void uab_hook_started(struct uab_map *m, uar_str id, uar_str point);
/* duration_ms -1: the CLI does not say; it is measured. */
void uab_hook_ended(struct uab_map *m, uar_str id, enum uab_hook_end how, int64_t duration_ms);

/* Asks when the run is interactive, else (or when nobody can be asked) denies. */
void uab_ask(struct uab_map *m, struct uab_ask *ask);

/* What a dialect does with a message of that name: `on`, else the status is told, else
 * nothing. Names that no row has are told as unknown. */
struct uab_handler {
	uar_str name;
	void (*on)(struct uab_map *m, const struct uar_json *j);
	const char *status;
};
void uab_dispatch(struct uab_map *m, const struct uab_handler *rows, size_t count, uar_str name,
		  const struct uar_json *j);

/* The end, once: success, or failure with its one Error event. */
void uab_done(struct uab_map *m);
void uab_failed(struct uab_map *m, const char *fmt, ...) UAR_PRINTF(2, 3);
void uab_failed_as(struct uab_map *m, uaa_cause cause, const char *fmt, ...) UAR_PRINTF(3, 4);
/* By typed cause only. */
enum uab_cause {
	UAB_CAUSE_OTHER,
	UAB_CAUSE_AUTH,
	UAB_CAUSE_MODEL,
	UAB_CAUSE_RATE,
	UAB_CAUSE_TURNS,
	UAB_CAUSE_CONTEXT,
	UAB_CAUSE_SERVER,
};
void uab_failed_cause(struct uab_map *m, enum uab_cause cause, int64_t http);
void uab_not_found(struct uab_map *m);
/* What the agent says about its failure; the last one counts. */
void uab_words(struct uab_map *m, uar_str text);
/* The common end of a process without a last word. */
void uab_exit_failure(struct uab_map *m, int wait_status);
/* {"schema":...,"session":...,"usage":...} or nothing known: false. */
bool uab_completion_data(const struct uab_map *m, struct uar_buf *out);

/* Helpers of the dialects. */
uar_str uab_get_str(const struct uar_json *j, const char *key);
const struct uar_json *uab_get(const struct uar_json *j, const char *key);
void uab_put(char *to, size_t size, uar_str s); /* empty when it does not fit */
/* Sends one JSON message and LF. */
void uab_send(struct uab_map *m, struct uar_buf *json);

#endif
