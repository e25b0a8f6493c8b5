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

/* What lists of runs show, filter and sort by. */
struct uar_run_listed {
	uar_str title;	     /* beginning of the message */
	uar_str error_code;  /* of a run that failed */
	uar_str waits;	     /* what it is parked for: "permission", "input"; empty: nothing */
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

bool uar_owner_eq(const struct uar_owner *a, const struct uar_owner *b);
/* A copy with its strings in the arena; false when there is no memory. */
UAR_MUST_CHECK bool uar_owner_copy(struct uar_arena *arena, const struct uar_owner *in,
				   struct uar_owner *out);
UAR_MUST_CHECK bool uar_run_row_copy(struct uar_arena *arena, const struct uar_run_row *in,
				     struct uar_run_row *out);

#endif
