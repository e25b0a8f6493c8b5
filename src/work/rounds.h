/* rounds.h - what a run's model asked for and what came of it, read from the log.
 *
 * The log is the only memory of it: whoever goes on with a run, in the next round,
 * after an answer or after a restart, reads the same rounds. */
#ifndef UAR_WORK_ROUNDS_H
#define UAR_WORK_ROUNDS_H

#include "work/prompt.h"
#include "work/toolset.h"

struct round_call {
	uar_str id;	     /* ours */
	uar_str provider_id; /* the model's name for it */
	uar_str name, args;  /* as the model wrote them */
	bool started, ended, failed;
	bool allowed, denied; /* by somebody, since it was last executed */
	struct {
		bool broke;			  /* it was executed, and failed */
		int64_t told_bytes;		  /* of what it brought, whole */
		bool hooked;			  /* what hooks made of its arguments is in them */
		uar_str changed_by, changed_blob; /* the hook that did, and what it wrote */
	};
	int repeats;			  /* unasked, after stops of the server */
	int64_t action;			  /* number of the last question about it; 0: none */
	int64_t form;			  /* number of the last that asked for values; 0: none */
	bool filled, declined;		  /* they were given, or not */
	bool for_client;		  /* it is asked for when the others are over */
	uar_str values;			  /* as they are recorded; JSON */
	uar_str real;			  /* as they were given: for the execution alone */
	char values_blob[65], sealed[65]; /* blobs that hold them; empty: none */
	uar_str reason;			  /* that was given with the answer, or empty */
	enum uar_tool_effect effect;	  /* recorded when it started */
	uar_str told;			  /* what the model is told of its end */
	char blob[65];			  /* of which that is the beginning; empty: it is whole */
	struct round_media {
		char blob[65]; /* that has them; empty: there are none, or they are read */
		const struct uar_model_part *parts;
		size_t count;
	} media; /* images and files that it brought */
};

struct round {
	uar_str text; /* what the model said with it */
	struct round_call *calls;
	size_t call_count;
	char raw[65]; /* blob of all its parts; empty: text and calls say it all, or they are read
		       */
	const struct uar_model_part *parts; /* the answer as its provider wants it back */
	size_t part_count;
};

/* A message that joined the turn. */
struct round_input {
	uar_str text;
	char blob[65]; /* of which that is the beginning; empty: it is whole */
	size_t before; /* the round that knows it first; may be the one to come */
};

struct rounds {
	struct uar_arena arena;
	struct round *at; /* at least one, or an input */
	size_t count;
	struct round_input *inputs; /* UAR_LIMIT_TURN_INPUTS at most */
	size_t input_count, inputs_placed;
	int64_t made_us; /* workflow.run: when the last round was planned */
};

void rt_rounds_free(struct rounds *s); /* NULL is fine */
/* Is a call of the last round not over? */
bool rt_rounds_unfinished(const struct rounds *s);
/* rounds_input.c */
UAR_MUST_CHECK uar_err rt_rounds_note_input(struct rounds *s, const struct uar_event *ev,
					    struct uar_arena *scratch);
/* A model call is told all that came so far, behind so many rounds. */
void rt_rounds_place_inputs(struct rounds *s, size_t rounds);
bool rt_rounds_has_new_input(const struct rounds *s);		 /* that no call was told */
struct round_input *rt_rounds_cut_input(const struct rounds *s); /* one to be fetched; or NULL */
UAR_MUST_CHECK uar_err rt_rounds_complete_input(struct rounds *s, struct round_input *in,
						uar_str text);
/* rounds_tell.c: as the model is told of the end of a call. */
void rt_rounds_write_end(struct uar_buf *out, const struct uar_event *ev, const struct uar_json *p);
/* A failure, likewise. */
void rt_rounds_write_failure(struct uar_buf *out, uar_str category, uar_str message,
			     bool retryable);
/* Is it the category of a call that was executed and failed? */
bool rt_rounds_was_executed(uar_str category);
/* Leaves out what is too long to be told. */
UAR_MUST_CHECK uar_err rt_rounds_fit(struct rounds *s);
/* The next one whose images and files are to be fetched; NULL: none. And what was fetched. */
struct round_media *rt_rounds_next_media(const struct rounds *s);
UAR_MUST_CHECK uar_err rt_rounds_take_media(struct rounds *s, struct round_media *m, uar_str json);
/* Messages that tell the model of them. */
void rt_rounds_tell(const struct rounds *s, struct prompt *out);

struct rounds_load;
/* s is the receiver's; NULL with an error. Outputs are whole when no call is unfinished. */
typedef void rounds_ready_fn(void *ctx, uar_err e, const struct uar_error *error, struct rounds *s);
/* `ready` fires later, unless cancelled. */
UAR_MUST_CHECK uar_err rt_rounds_load(struct live_run *r, rounds_ready_fn *ready, void *ctx,
				      struct rounds_load **out);
void rt_rounds_cancel(struct rounds_load *l); /* NULL is fine */

#endif
