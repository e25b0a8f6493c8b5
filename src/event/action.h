/* action.h - questions to people and programs, and their answers.
 *
 * An action has a type, the decisions that answer it, a JSON Schema for the values of the
 * answer, and a time at which it expires. It is answered once. */
#ifndef UAR_EVENT_ACTION_H
#define UAR_EVENT_ACTION_H

#include "base/str.h"

enum uar_action_type {
#define A(TYPE, TEXT, KIND, WAITS, OFFERED, OTHERWISE) UAR_ACTION_##TYPE,
#include "event/action.def"
	UAR_ACTION_TYPE_COUNT
};

enum uar_verdict {
	UAR_VERDICT_ASK, /* nobody has decided */
#define D(NAME, TEXT, RESULT, OUTCOME, GRANT, VALUES, LABEL) UAR_VERDICT_##NAME,
#include "event/action.def"
	UAR_VERDICT_COUNT
};
#define UAR_VERDICT_BIT(NAME) (1u << UAR_VERDICT_##NAME)

struct uar_action_info {
	const char *text; /* "tool_permission" */
	const char *kind; /* "allow_or_deny" */
	bool input;	  /* the run waits for input, not for a permission */
	uint32_t offered; /* bits 1 << verdict */
	enum uar_verdict otherwise;
};
extern const struct uar_action_info uar_action_info[UAR_ACTION_TYPE_COUNT];
/* UAR_ACTION_TYPE_COUNT: no type has that name. */
enum uar_action_type uar_action_type_parse(uar_str text);
/* A right or a credential is missing, and not something that an answer could say. */
bool uar_action_needs_right(enum uar_action_type t);

struct uar_verdict_info {
	const char *text; /* "allow_for_session" */
	const char *result, *outcome, *grant, *label;
	bool values; /* the answer may carry some */
};
extern const struct uar_verdict_info uar_verdict_info[UAR_VERDICT_COUNT];
/* UAR_VERDICT_ASK: no decision has that name. */
enum uar_verdict uar_verdict_parse(uar_str text);

/* A run needs an answer before it goes on. */
struct uar_ask {
	int64_t number;		  /* counts from 1 in a run */
	uar_str id;		  /* the program's name for it */
	uar_str kind;		  /* "command", "file_change", "tool", "permissions", "input" */
	uar_str tool_name;	  /* or empty */
	uar_str call_id;	  /* of the tool call, or empty */
	uar_str prompt;		  /* one line for a person */
	uar_str input;		  /* JSON text: what exactly, or the beginning of it */
	int64_t input_bytes;	  /* of the whole */
	uar_str whole;		  /* all of it when `input` is only the beginning, or empty */
	uar_str blob;		  /* sha256 under which that is kept, or empty */
	enum uar_verdict verdict; /* of the definition's policy; ASK: a person's */
	uar_str rule;		  /* which rule said so; empty when ASK */
	int64_t timeout_us;	  /* it expires when so much time has passed; 0: it waits */
	enum uar_action_type type;
	uint32_t offered; /* bits of the decisions that answer it; 0: those of its type */
	/* JSON Schema of the answer's values: the text, or the sha256 of the blob that holds it;
	 * both empty: the answer carries no values. */
	uar_str schema, schema_blob;
	/* Of a tool that UAR executes itself: */
	uar_str tool_id;      /* empty: it is a program that asks */
	uar_str tool_version; /* that a grant holds for; empty: any */
	uar_str args_sha256;  /* digest of the arguments, which a grant compares; or empty */
	/* Further calls that are asked for in the same append, of the same type and for tools of
	 * the same kind: JSON [{"call_id","tool_id","tool_name","input"}], or empty. */
	uar_str more;
	uar_str permission; /* JSON object: the decision that somebody has to be asked; or empty */
	uar_str changed_blob; /* sha256 of the arguments that a hook made; or empty */
	bool repeat;	      /* it was begun before, and may have happened */
	bool destructive;     /* what it undoes cannot be brought back */
};

enum uar_answer_source { UAR_ANSWER_RESPOND, UAR_ANSWER_TIMEOUT, UAR_ANSWER_WITHDRAWN };
struct uar_answer {
	int64_t number;
	enum uar_verdict verdict;
	enum uar_answer_source source;
	uar_str reason;
	uar_str channel_id;   /* over which it came; or empty */
	uar_str continues_as; /* what the client calls the run from here on; or empty */
	/* The values as they are recorded: JSON text, or the sha256 of the blob that holds it. */
	uar_str values, values_blob;
	uar_str sealed; /* sha256 of the sealed blob with the real values; empty: nothing was hidden
			 */
	uar_str digest; /* of the whole answer: tells the same answer from another one */
	/* The real values, for a worker that waits in memory; never recorded. JSON text or empty.
	 */
	uar_str real;
};

#endif
