/* validate.h - checks a log against the rules that every log keeps.
 *
 * The events of a session come in the order of their sequence, one session after the other.
 * Each rule has a short name, which a violation carries:
 *
 *	schema     an event lacks an id of its class, or its payload breaks the schema
 *	sequence   sequences of a session, and of a run, have no gap and no repetition
 *	event-id   no two events of a session have the same id
 *	turn       turn.submitted comes before everything else of its turn; one end per turn
 *	attempt    a run is queued once, starts at most once, ends at most once; then only the
 *	           end of its task and its turn follows
 *	tool       a tool call starts once and ends at most once, before its run ends
 *	action     a question is asked once and answered at most once, before its run ends
 *	model      a model call is requested once and ends at most once
 *	subagent   a child agent is spawned once, before anything else is said of it
 *	job        a job is created once; an item is at work once at a time, and completed once
 *	fold       the event cannot follow the state that the events before it lead to
 *	row        the stored record of a run, a task or a question says something else than
 *	           its events
 *
 * Pure: it reads events and keeps what it needs on the heap. */
#ifndef UAR_CORE_VALIDATE_H
#define UAR_CORE_VALIDATE_H

#include "event/event.h"
#include "event/record.h"
#include "event/row.h"

enum { UAR_VIOLATION_TEXT = 400 };

struct uar_violation {
	const char *rule;
	char text[UAR_VIOLATION_TEXT];
	char type[80], event_id[UAR_LIMIT_ID_BYTES + 1];
	char session_id[UAR_LIMIT_ID_BYTES + 1], run_id[UAR_LIMIT_ID_BYTES + 1];
	uint64_t sequence; /* 0: it is about a record, not an event */
};

struct uar_validator;
/* `bad` is called for each violation. After the first one of a run, other events of that run are
 * counted and not judged: they would only repeat it. */
typedef void uar_violation_fn(void *ctx, const struct uar_violation *v);
UAR_MUST_CHECK uar_err uar_validator_create(uar_violation_fn *bad, void *ctx,
					    struct uar_validator **out);
void uar_validator_destroy(struct uar_validator *v); /* NULL is fine */
/* The events of a session, from its first one on. UAR_ENOMEM is the only error. */
UAR_MUST_CHECK uar_err uar_validator_event(struct uar_validator *v, const struct uar_event *ev);
/* The stored record of a run whose events have all come. */
void uar_validator_row(struct uar_validator *v, const struct uar_run_row *row);
/* The stored record of a question; one of a run whose events are gone is not judged. */
void uar_validator_question(struct uar_validator *v, const struct uar_row *row);
/* The stored record of a task. While an attempt is alive it follows the log and is not judged. */
void uar_validator_task(struct uar_validator *v, const struct uar_row *row);

struct uar_validated {
	uint64_t events, sessions, runs, tool_calls, actions, violations;
};
struct uar_validated uar_validator_counts(const struct uar_validator *v);

#endif
