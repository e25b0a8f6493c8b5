/* tool_world.h - a runtime whose model and tools the test plays by hand.
 *
 *	tool_world_open(&w);
 *	tool_world_ask(&w, "question");             until the model is called
 *	tool_world_says(&w, "text", "look {}\nput {\"a\":1}");   it ends; a call a line
 *	tool_world_ends(&w, "look", true, "{\"n\":1}");          a tool at work ends
 *
 * Tools: look, peek, see, stare (read only), put (idempotent), send (once), write (once,
 * and somebody has to allow it), login (once, requires user and password), confirm (the client
 * answers it), secret (no agent may use it). */
#ifndef UAR_TEST_TOOL_WORLD_H
#define UAR_TEST_TOOL_WORLD_H

#include "stage.h"
#include "tool/tool.h"

enum { TOOL_WORLD_CALLS = 16, TOOL_WORLD_TEXT = 1 << 16 };

struct uar_tool_call {
	struct uar_tool_events events;
	bool at_work, cancelled;
	char name[32], key[300];
	uar_str input; /* its own */
};

struct tool_world {
	struct uar_pump pump;
	struct uar_store *store;
	struct uar_runtime *rt;
	struct uar_model model;
	struct uar_model_events says; /* of the call under way */
	bool called;		      /* it is; its end and the pump clear it */
	size_t calls, told_tools;
	const struct uar_model_part *parts; /* what the next answer wants back; NULL: nothing */
	size_t part_count;
	char told[TOOL_WORLD_TEXT]; /* what the model was told last */
	struct uar_tools tools;
	struct uar_tool_call at[TOOL_WORLD_CALLS];
	struct uar_seal_key seal;
	size_t started; /* tool calls so far, in all lives */
	bool refuse;	/* start fails */
	bool waits;	/* what is started has not begun: it can be withdrawn */
	struct uar_run_create op;
	struct uar_run_answer_op answer;
	struct uar_run_cancel_op cancel;
	bool created, answered, cancelled;
};

void tool_world_open(struct tool_world *w);
void tool_world_close(struct tool_world *w);
/* The process dies, and a new one goes on with what was durable. */
void tool_world_die(struct tool_world *w);
/* The same after it was asked to stop. */
void tool_world_restart(struct tool_world *w);
void tool_world_ask(struct tool_world *w, const char *message);
void tool_world_says(struct tool_world *w, const char *text, const char *calls);
/* The tool of that name that is at work ends; output may be NULL. A failure's output
 * is "category: message". */
void tool_world_ends(struct tool_world *w, const char *name, bool ok, const char *output);
/* How many of that name are at work. */
size_t tool_world_busy(const struct tool_world *w, const char *name);
uar_err tool_world_answer(struct tool_world *w, int number, enum uar_verdict verdict,
			  const char *reason);
/* Submits values, JSON text. */
uar_err tool_world_submit(struct tool_world *w, int number, const char *values);
/* What the tool of that name that is at work was started with. */
uar_str tool_world_input(const struct tool_world *w, const char *name);
void tool_world_cancel(struct tool_world *w);
/* The facts of the run that concern models, tools and questions, in a row. The same
 * buffer each time. */
const char *tool_world_log(struct tool_world *w);
/* The payload, or the refs, of the nth event of that class (from 0); "" when there is none. */
const char *tool_world_fact(struct tool_world *w, enum uar_event_class cls, size_t n);
const char *tool_world_refs(struct tool_world *w, enum uar_event_class cls, size_t n);
const char *tool_world_status(struct tool_world *w);

#endif
