/* record.h - the read model of a run and the owner of a thing: what the store
 * keeps beside the log and the protocols show. */
#ifndef UAR_EVENT_RECORD_H
#define UAR_EVENT_RECORD_H

#include "base/arena.h"

/* Who owns a thing; part of every look-up. Comes from the credential only. */
struct uar_owner {
	uar_str tenant, workspace, user;
};

/* Agents are entries of this plugin, which is UAR itself. */
#define UAR_AGENT_PLUGIN "uar.agent"

/* What a run waits for; "held": it needs more than its events to go on, a program for example. */
#define UAR_WAITS_PERMISSION	  "permission"
#define UAR_WAITS_INPUT		  "input"
#define UAR_WAITS_HELD_PERMISSION "held_permission"
#define UAR_WAITS_HELD_INPUT	  "held_input"

/* What lists of runs show, filter and sort by. */
struct uar_run_listed {
	uar_str title;	     /* beginning of the message */
	uar_str error_code;  /* of a run that failed */
	uar_str waits;	     /* what it is parked for: one of UAR_WAITS_; empty: nothing */
	int64_t due_us;	     /* when it has to be looked at; 0: not by time */
	int64_t rank;	     /* place in the queue of its thread; 0: by age */
	int64_t cost_micros; /* millionths of a dollar */
	int64_t input_tokens, output_tokens;
};

/* The read model of one run: what lists, filters and records need. */
struct uar_run_row {
	struct uar_owner owner;
	uar_str run_id, session_id, thread_id, turn_id, task_id;
	uar_str plugin_id, entry_id, agent_id;
	uar_str root_run_id, parent_run_id; /* parent may be empty */
	uar_str status;			    /* word of the run record, "canceled" */
	bool terminal;			    /* never changes once true */
	int64_t attempt;
	int64_t created_us, updated_us, started_us, finished_us; /* 0: not yet */
	struct uar_run_listed listed;
	uar_str detail;		    /* JSON object, shown as it is: whatever else the record has */
	uint64_t last_run_sequence; /* filled by reads, as is the next */
	bool evicted;		    /* no longer retained: nobody is shown it */
};

/* By what lists of runs are sorted and bounded; run_column.def. */
enum uar_run_column {
#define C(NAME, WORD, UNIT, SQL) UAR_RUN_COLUMN_##NAME,
#include "event/run_column.def"
#undef C
	UAR_RUN_COLUMN_COUNT
};
enum uar_run_unit {
	UAR_RUN_UNIT_TIME,
	UAR_RUN_UNIT_SECONDS,
	UAR_RUN_UNIT_DOLLARS,
	UAR_RUN_UNIT_COUNT,
	UAR_RUN_UNIT_TEXT,
};
struct uar_run_column_info {
	const char *word;
	enum uar_run_unit unit;
	const char *sql;
};
extern const struct uar_run_column_info uar_run_column_info[UAR_RUN_COLUMN_COUNT];

struct uar_run_bound {
	bool given;
	int64_t value;
};
/* What a list of runs is asked for beyond what its runs have in common. All zero: nothing, and
 * the newest come first. */
struct uar_run_find {
	uar_str search;	    /* words of titles and messages; empty: any */
	uar_str error_code; /* empty: any */
	/* Words of which the run has one, ended by NULL; NULL: any. Static. */
	const char *const *status, *const *waits;
	struct uar_run_bound min[UAR_RUN_COLUMN_COUNT], max[UAR_RUN_COLUMN_COUNT];
	bool sorted; /* by: */
	enum uar_run_column sort;
	bool ascending;
	bool count; /* of all that match, on every page */
};
bool uar_run_find_any(const struct uar_run_find *f);

bool uar_owner_eq(const struct uar_owner *a, const struct uar_owner *b);
/* A copy with its strings in the arena; false when there is no memory. */
UAR_MUST_CHECK bool uar_owner_copy(struct uar_arena *arena, const struct uar_owner *in,
				   struct uar_owner *out);
UAR_MUST_CHECK bool uar_run_row_copy(struct uar_arena *arena, const struct uar_run_row *in,
				     struct uar_run_row *out);

#endif
