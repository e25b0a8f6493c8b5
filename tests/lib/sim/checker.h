/* checker.h - what must be true of the log, of answers and of streams, always. */
#ifndef UAR_SIM_CHECKER_H
#define UAR_SIM_CHECKER_H

#include "core/core.h"
#include "sim/world.h"

enum { SIM_RUNS = 256, SIM_EVENTS = 8192, SIM_PROBLEM = 256 };

/* A run that somebody was told about. */
struct sim_known {
	const struct uar_owner *owner;
	char run_id[UAR_LIMIT_ID_BYTES + 1];
	char key[32];			    /* idempotency key, or empty */
	char session_id[UAR_UUID_TEXT + 1]; /* once it was read */
	bool ended;
	char end_status[16];
	bool gone;     /* evicted: it never comes back */
	bool replaced; /* its key has made another run: it must be gone */
};

/* A fact somebody has seen: it may never change or go away. */
struct sim_seen {
	char run_id[UAR_UUID_TEXT + 1];
	char event_id[UAR_UUID_TEXT + 1];
	uint64_t run_sequence;
};

/* A call of a tool, as the log has it so far; ledger.c. */
struct sim_entry {
	char id[UAR_UUID_TEXT + 1];
	unsigned marks; /* how often it says that it is executed */
	int64_t action; /* the last question about it */
	bool once, ended, result, allowed, denied;
};

enum { SIM_LEDGER = 64 };

struct sim_ledger {
	struct sim_entry at[SIM_LEDGER];
	size_t count;
	int64_t wanted, begun, ended;
};

struct sim_checker {
	struct sim_world *w;
	struct uar_owner owner; /* of runs that somebody was told about without saying whose */
	struct sim_known known[SIM_RUNS];
	size_t known_count;
	struct sim_seen *seen;
	size_t seen_count;
	uint64_t keep;	    /* ended runs of an owner that are kept; 0: all */
	uint64_t evicted;   /* runs that were found to be gone */
	uint64_t *happened; /* events of each class in runs that are over; NULL: not counted */
	char problem[SIM_PROBLEM]; /* the first broken invariant, empty: none */
};

void sim_checker_init(struct sim_checker *k, struct sim_world *w, const struct uar_owner *owner);
void sim_checker_fini(struct sim_checker *k);
void sim_checker_broken(struct sim_checker *k, const char *fmt, ...) UAR_PRINTF(2, 3);
/* A create was answered: the run is promised from now on. */
void sim_checker_created(struct sim_checker *k, const char *run_id, const char *key);
void sim_checker_created_by(struct sim_checker *k, const struct uar_owner *owner,
			    const char *run_id, const char *key);
/* A stream delivered the event. */
void sim_checker_saw(struct sim_checker *k, const struct uar_event *ev);
/* Reads the whole log of each known run from the disk and checks it. `ended`:
 * every run must be over by now. */
void sim_checker_check(struct sim_checker *k, bool ended);
/* ledger.c */
void sim_ledger_event(struct sim_checker *k, struct sim_ledger *l, const struct uar_event *ev,
		      const struct uar_json *payload);
void sim_ledger_check(struct sim_checker *k, const struct sim_ledger *l, const char *run_id);
/* order.c: the turns of a session's conversations took turns. */
/* view.c: snapshots of a session and the rest of its log equal the fold from zero. */
void sim_checker_view(struct sim_checker *k, const struct uar_owner *owner, uar_str session_id);
void sim_checker_order(struct sim_checker *k, const struct uar_owner *owner, uar_str session_id);

#endif
