/* view.h - one run folded for readers: messages, calls, steps, usage, open questions.
 *
 * Pure: events of one run in, in the order of their run_sequence, from the first one.
 * The fold reports each change while it happens, so that an encoder can frame a
 * message's start, content and end, which the log does not hold. Encoders of several
 * dialects share it. */
#ifndef UAR_PROTO_VIEW_H
#define UAR_PROTO_VIEW_H

#include "event/event.h"

enum uar_view_kind {
	UAR_VIEW_USER,
	UAR_VIEW_TEXT, /* of the assistant; holds tool calls */
	UAR_VIEW_REASONING,
	UAR_VIEW_RESULT, /* of a tool call */
	UAR_VIEW_ACTIVITY,
};

struct uar_view_call {
	uar_str id, name;
	struct uar_buf args; /* JSON text */
	bool complete;	     /* nothing of the arguments follows */
	bool ended;	     /* has a result */
	bool client;	     /* the client executes it: an action asks for its result */
	struct uar_view_call *next;
};

/* A piece of text between two other things is a message of its own: the first of a
 * message_id of the log has that id, further ones have a number behind it. */
struct uar_view_message {
	enum uar_view_kind kind;
	uar_str id, source_id;	     /* on the wire; in the log */
	uar_str activity_type;	     /* of an activity */
	struct uar_buf text;	     /* content; of an activity its JSON object */
	struct uar_buf cited;	     /* sources: elements of a JSON array, a comma between two */
	bool bare;		     /* made for tool calls: has no text, and never will */
	struct uar_view_call *calls; /* of TEXT, in their order */
	struct uar_view_call *call;  /* of RESULT: what it answers */
	uar_str error, code;	     /* of RESULT: why the call failed */
	struct uar_view_message *next;
};

struct uar_view_action {
	uar_str id, type, prompt, call_id, expires_at;
	uar_str schema, decisions; /* JSON text, or empty */
	uar_str input;		   /* JSON text: what it is about, or empty */
	struct uar_view_action *next;
};

struct uar_view_usage {
	uar_str provider, model;
	int64_t input, output, total, cached; /* cached -1: not reported */
	struct uar_view_usage *next;
};

enum uar_view_change_kind {
	UAR_VIEW_STARTED,	  /* the run is known by its ids */
	UAR_VIEW_STEP_STARTED,	  /* text: its name */
	UAR_VIEW_STEP_FINISHED,	  /* likewise */
	UAR_VIEW_MESSAGE_STARTED, /* message: TEXT or REASONING */
	UAR_VIEW_MESSAGE_GREW,	  /* text: by this */
	UAR_VIEW_MESSAGE_ENDED,
	UAR_VIEW_CALL_STARTED,	   /* call, message: that it belongs to */
	UAR_VIEW_CALL_ARGS,	   /* text: further JSON text of the arguments */
	UAR_VIEW_CALL_COMPLETE,	   /* all arguments are there */
	UAR_VIEW_CALL_ENDED,	   /* message: the result; text: what it is */
	UAR_VIEW_ACTIVITY_CHANGED, /* message; text: its content; first: it is new */
	UAR_VIEW_CITED,		   /* json: the sources */
	UAR_VIEW_STATE_CHANGED,	   /* text: a JSON Patch; first: it is told whole */
	UAR_VIEW_SUPERSEDED,	   /* messages were taken back */
	UAR_VIEW_ASKED,		   /* action */
	UAR_VIEW_ANSWERED,	   /* action */
	UAR_VIEW_WAITING,	   /* the run rests until its actions are answered */
	UAR_VIEW_RESUMED,
	UAR_VIEW_NOTED, /* text: a name; json: what is noted */
	UAR_VIEW_ENDED, /* view->end */
};

struct uar_view_change {
	enum uar_view_change_kind kind;
	const struct uar_view_message *message;
	const struct uar_view_call *call;
	const struct uar_view_action *action;
	const struct uar_json *json;
	uar_str text;
	bool first;
};
typedef uar_err uar_view_fn(void *ctx, const struct uar_view_change *change);

enum uar_view_end { UAR_VIEW_LIVE, UAR_VIEW_DONE, UAR_VIEW_CANCELLED, UAR_VIEW_FAILED };

struct uar_view {
	struct uar_arena arena;
	uar_str run_id, thread_id;
	uar_str named;	   /* what an AG-UI client calls the run; empty: nothing */
	uar_str continued; /* and what the one that answered calls it from there on; likewise */
	struct uar_view_message *first, *last;
	struct uar_view_message *open;	 /* TEXT or REASONING that grows; NULL: none */
	struct uar_view_message *parent; /* TEXT that the next tool calls belong to */
	struct uar_buf cited;		 /* sources for the next text */
	struct uar_buf state; /* that the run shares with its client: JSON text; empty: none */
	uar_str step, phase;  /* empty: none */
	struct uar_view_phase *phases;
	struct uar_view_action *actions; /* open ones, in their order */
	struct uar_view_usage *usage; /* by provider and model; an encoder may zero what it told */
	size_t bytes;		      /* of text that is kept */
	bool waiting;
	bool cut; /* more than UAR_LIMIT_VIEW_TEXT: `first` no longer has all of it */
	enum uar_view_end end;
	uar_str end_code, end_message, finish_reason;
	uar_view_fn *changed; /* while an event is folded */
	void *ctx;
};

/* The idempotency key of a run that an AG-UI client has named: this and the name. */
#define UAR_VIEW_NAMED "ag-ui:"

void uar_view_init(struct uar_view *v);
void uar_view_fini(struct uar_view *v);
UAR_MUST_CHECK uar_err uar_view_set_state(struct uar_view *v,
					  uar_str json); /* before the first event */
/* Folds the next event of the run and tells `changed` of each step. An error of
 * `changed`, or UAR_ENOMEM, ends it: the view is of no use then. */
UAR_MUST_CHECK uar_err uar_view_apply(struct uar_view *v, const struct uar_event *ev,
				      struct uar_arena *scratch, uar_view_fn *changed, void *ctx);
/* False: an event of this class changes nothing, whatever it holds. */
bool uar_view_reads(const struct uar_event *ev);

#endif
