/* machine.h - the state machines as data: statuses, inputs, moves.
 *
 * Each machine is one .def table. A move that is not in its table does not
 * exist: decide refuses the command, fold reports damage. */
#ifndef UAR_CORE_MACHINE_H
#define UAR_CORE_MACHINE_H

#include "base/str.h"

enum uar_status {
#define S(NAME, TEXT, RECORD, TERMINAL) UAR_STATUS_##NAME,
#include "core/status.def"
#undef S
	UAR_STATUS_COUNT
};
const char *uar_status_text(enum uar_status s);	  /* "cancelled" */
const char *uar_status_record(enum uar_status s); /* "canceled" */
bool uar_status_terminal(enum uar_status s);
bool uar_status_waits(enum uar_status s); /* for an answer of somebody; COUNT is fine */
/* UAR_STATUS_COUNT when no status has that text. */
enum uar_status uar_status_parse(uar_str text);
/* The record's word itself, NULL when it is none: "canceled" is one. */
const char *uar_status_record_parse(uar_str record);

enum uar_run_input {
	UAR_IN_START,
	UAR_IN_BEGIN, /* the same for what ends in the same append: no worker is needed */
	UAR_IN_PREPARED,
	UAR_IN_OUTPUT, /* it has begun to answer */
	UAR_IN_STEP,   /* more of what has begun */
	UAR_IN_PROGRESS,
	UAR_IN_EXPORT,
	UAR_IN_NOTE,
	UAR_IN_TOOLS, /* the model asks for tools before it goes on */
	UAR_IN_TOOL,  /* a step of one of them */
	UAR_IN_TOOL_OVER,
	UAR_IN_FINISHED,
	UAR_IN_FAILED,
	UAR_IN_REPEAT,	       /* the model failed and is called again after a wait */
	UAR_IN_UNREACHED,      /* the same: it cannot be reached, or has no capacity */
	UAR_IN_PEER_LOST,      /* the same of a peer */
	UAR_IN_PEER,	       /* news of the task that a peer has */
	UAR_IN_PLANNED,	       /* a workflow makes its next calls */
	UAR_IN_PLAN_WAITS,     /* it waits for a time */
	UAR_IN_CANCEL_PEER,    /* a cancel while nobody is at work: the peer has to hear it */
	UAR_IN_RECOVER_CANCEL, /* the same after a restart */
	UAR_IN_NEXT_MODEL,     /* the model failed and another one takes over */
	UAR_IN_DUE,	       /* a wait is over */
	UAR_IN_STAGED,	       /* a call that helps the answer has ended: the next one follows */
	UAR_IN_STEER,	       /* a message joins the turn */
	UAR_IN_STEERED,	       /* one has joined that the request which is ready does not have */
	UAR_IN_EDIT,	       /* a turn that waits gets another message */
	UAR_IN_CANCEL,
	UAR_IN_STOPPED,
	UAR_IN_TIMEOUT,
	UAR_IN_ASK_PERMISSION,
	UAR_IN_ASK_INPUT,
	UAR_IN_VERDICT,	      /* a policy has decided: nobody is asked */
	UAR_IN_ANSWERED,      /* the last question that was open */
	UAR_IN_ANSWERED_PART, /* one of several */
	UAR_IN_RECOVER,
	UAR_IN_CUT_OFF,	     /* the same in the middle of a model call */
	UAR_IN_RECOVER_WAIT, /* the same while it waits for a model */
	UAR_IN_LOST,
	UAR_IN_COUNT
};

/* What the shell must do once the facts are durable. That a run which is over needs no
 * worker is told by its status. */
enum uar_effect {
	UAR_DO_NONE,
	UAR_DO_START_ENTRY, /* (re)start the worker of the run, from where its state says */
	UAR_DO_CALL_MODEL,  /* issue the model call that was just recorded */
	UAR_DO_NEXT_ROUND,  /* begin the worker anew: it finds in the log what is to be done */
	UAR_DO_STOP_ENTRY,  /* stop the worker; it ends the run, or UAR_IN_STOPPED does */
	UAR_DO_WAIT,	    /* free the worker; UAR_CMD_DUE follows at call.due_us */
	UAR_DO_PARK,	    /* the run waits for somebody: free its worker */
	UAR_DO_COUNT
};

struct uar_move {
	bool legal;
	enum uar_status to;
	enum uar_effect effect;
};
struct uar_move uar_run_move(enum uar_status from, enum uar_run_input on);

enum uar_turn_state { UAR_TURN_NONE, UAR_TURN_ACCEPTED, UAR_TURN_RUNNING, UAR_TURN_ENDED };
enum uar_turn_input {
	UAR_TURN_ON_SUBMITTED,
	UAR_TURN_ON_STARTED,
	UAR_TURN_ON_COMPLETED,
	UAR_TURN_ON_FAILED
};
/* Moves *state; false and unchanged when the table has no such move. */
bool uar_turn_move(enum uar_turn_state *state, enum uar_turn_input on);

enum uar_task_state {
	UAR_TASK_NONE,
	UAR_TASK_ACCEPTED,
	UAR_TASK_QUEUED,
	UAR_TASK_RUNNING,
	UAR_TASK_WAITING,
	UAR_TASK_RETRYING,
	UAR_TASK_CANCELLING,
	UAR_TASK_ENDED
};
enum uar_task_input {
	UAR_TASK_ON_CREATED,
	UAR_TASK_ON_QUEUED,
	UAR_TASK_ON_STARTED,
	UAR_TASK_ON_PROGRESS,
	UAR_TASK_ON_WAITING,
	UAR_TASK_ON_RESUMED,
	UAR_TASK_ON_RETRYING,
	UAR_TASK_ON_CANCEL_REQUESTED,
	UAR_TASK_ON_COMPLETED,
	UAR_TASK_ON_FAILED,
	UAR_TASK_ON_TIMED_OUT,
	UAR_TASK_ON_LOST,
	UAR_TASK_ON_CANCELLED
};
bool uar_task_move(enum uar_task_state *state, enum uar_task_input on);

#endif
