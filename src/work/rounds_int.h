/* rounds_int.h - what rounds.c and rounds_facts.c share. */
#ifndef UAR_WORK_ROUNDS_INT_H
#define UAR_WORK_ROUNDS_INT_H

#include "work/rounds.h"

/* What the log says of one call. */
struct fact {
	struct uar_list node;
	struct round_call c;
};

/* One round, while it is read. */
struct draft {
	struct uar_list node;
	struct round round;
	uar_str list;  /* JSON array of its calls */
	bool plain;    /* it has none: an answer that a message came behind */
	char blob[65]; /* that holds it instead; empty: none */
};

struct rounds_load {
	struct rt_op under_way;
	struct uar_read read;
	struct uar_blob_get get;
	struct agg *agg;      /* held: the read borrows its strings */
	struct live_run *run; /* NULL: cancelled */
	struct rounds *rounds;
	struct uar_list drafts, facts;
	size_t draft_count;
	struct uar_buf said; /* by the model in the round that is read */
	uint64_t said_total;
	bool helps; /* the call that is read: to plan or to condense */
	bool exact; /* a workflow's: results are as they were, and its plans are rounds */
	struct draft *fetching_list;
	struct round_call *fetching;
	struct round *fetching_raw;
	struct round_call *fetching_values;
	struct round_input *fetching_input;
	struct round_media *fetching_media;
	rounds_ready_fn *ready;
	void *ctx;
	char run_id[UAR_LIMIT_ID_BYTES + 1];
};

/* Copies into the memory of the rounds. */
UAR_MUST_CHECK uar_err rt_rounds_own(struct rounds_load *l, uar_str s, uar_str *out);
/* What is known of the call; NULL: nothing. */
struct fact *rt_rounds_find(struct rounds_load *l, uar_str id);
/* The sha256 that a ref of the event names, in out; empty: it has no such ref. */
UAR_MUST_CHECK uar_err rt_rounds_blob(const struct uar_event *ev, const char *ref,
				      struct uar_arena *scratch, char out[65]);
UAR_MUST_CHECK uar_err rt_rounds_note_begun(struct rounds_load *l, const struct uar_event *ev,
					    const struct uar_json *p);
UAR_MUST_CHECK uar_err rt_rounds_note_asked(struct rounds_load *l, const struct uar_event *ev,
					    const struct uar_json *p);
UAR_MUST_CHECK uar_err rt_rounds_note_answered(struct rounds_load *l, const struct uar_event *ev,
					       const struct uar_json *p, struct uar_arena *scratch);
UAR_MUST_CHECK uar_err rt_rounds_note_ended(struct rounds_load *l, const struct uar_event *ev,
					    const struct uar_json *p, struct uar_arena *scratch);

#endif
