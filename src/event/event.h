/* event.h - the normalized event: envelope, classes, checks, text form.
 *
 * event.def declares every class once; names, required ids, docs, TypeScript
 * types and the check at append derive from its rows. */
#ifndef UAR_EVENT_EVENT_H
#define UAR_EVENT_EVENT_H

#include "base/rand.h"
#include "json/jw.h"

enum uar_id {
#define I(NAME, FIELD) UAR_ID_##NAME,
#include "event/ids.def"
#undef I
	UAR_ID_COUNT
};
#define UAR_ID_BIT(ID) (1u << (ID))
const char *uar_id_field(enum uar_id id); /* "session_id" */

/* What the rows of event.def ask for; each set contains the one it builds on. */
#define UAR_IDS_RUNTIME                                                                            \
	(UAR_ID_BIT(UAR_ID_RUNTIME) | UAR_ID_BIT(UAR_ID_TENANT) | UAR_ID_BIT(UAR_ID_WORKSPACE) |   \
	 UAR_ID_BIT(UAR_ID_USER))
#define UAR_IDS_SESSION (UAR_IDS_RUNTIME | UAR_ID_BIT(UAR_ID_SESSION))
#define UAR_IDS_THREAD	(UAR_IDS_SESSION | UAR_ID_BIT(UAR_ID_THREAD))
#define UAR_IDS_TURN	(UAR_IDS_THREAD | UAR_ID_BIT(UAR_ID_TURN))
#define UAR_IDS_TASK	(UAR_IDS_SESSION | UAR_ID_BIT(UAR_ID_TASK))
#define UAR_IDS_RUN	(UAR_IDS_TASK | UAR_ID_BIT(UAR_ID_RUN) | UAR_ID_BIT(UAR_ID_ATTEMPT))
#define UAR_IDS_CALL                                                                               \
	(UAR_IDS_TURN | UAR_IDS_RUN | UAR_ID_BIT(UAR_ID_STEP) | UAR_ID_BIT(UAR_ID_TOOL_CALL))

enum uar_event_class {
#define X(NAME, TYPE, IDS, MODELS, DOC) UAR_EV_##NAME,
#include "event/event.def"
#undef X
	UAR_EV_VENDOR, /* "vendor.<name>.*": any object as payload */
	UAR_EV_COUNT
};

struct uar_event;
struct uar_event_info {
	const char *type;	 /* "session.created" */
	uint32_t ids;		 /* UAR_ID_BIT set that must be there */
	const char *read_models; /* that it changes, by name; "": the payload names them */
	const char *doc;
};
extern const struct uar_event_info uar_event_info[UAR_EV_COUNT];
/* Class of a type name; UAR_EV_COUNT when it is neither standard nor vendor. */
enum uar_event_class uar_event_class_of(uar_str type);
/* The type as it is written: of the class, or the vendor's own. */
uar_str uar_event_type(const struct uar_event *ev);
/* The JSON Schema of a class's payload, as text; empty for vendor classes. */
uar_str uar_event_schema(enum uar_event_class cls);

#define UAR_EVENT_SCHEMA_VERSION "1.0"

/* All strings are borrowed. Immutable once appended. */
struct uar_event {
	enum uar_event_class cls;
	uar_str type; /* set for vendor classes; else may be empty */
	uar_str event_id;
	int64_t time_us;
	uint64_t sequence;     /* within the session, from 1 */
	uint64_t run_sequence; /* within the run, from 1; 0: not of a run */
	uar_str ids[UAR_ID_COUNT];
	uar_str payload; /* JSON object text */
	uar_str refs;	 /* JSON object text, or empty */
	/* The payload as somebody has read it already, or NULL; a copy of the event
	 * that does not keep it clears it. */
	const struct uar_json *tree;
};

/* Nothing of a run follows but its task, its turn and its thread. */
/* May it be the trace id of an event? Callers may name a trace otherwise; then it is not. */
static inline bool uar_event_is_trace(uar_str id)
{
	return id.n == 32 && uar_str_is_hex(id);
}

static inline bool uar_event_ends_run(const struct uar_event *ev)
{
	return ev->cls == UAR_EV_TASK_ATTEMPT_COMPLETED || ev->cls == UAR_EV_TASK_ATTEMPT_FAILED;
}

/* The payload's tree: the one that is there, if it is of this text, or read into
 * `arena`. */
UAR_MUST_CHECK uar_err uar_event_payload(const struct uar_event *ev, struct uar_arena *arena,
					 const struct uar_json **out, struct uar_error *error);

/* A message joined a turn, or took the place of its first one: "op" is added or replaced;
 * "input_parts" and input_ref are as in turn.submitted. */
#define UAR_EV_TYPE_TURN_INPUT "vendor.uar.turn.input"
bool uar_event_is_turn_input(const struct uar_event *ev);
/* The sha256 of the blob that a ref of the event names; empty: it has no such ref, or one
 * to something else. */
UAR_MUST_CHECK uar_err uar_event_blob(const struct uar_event *ev, const char *ref,
				      struct uar_arena *arena, uar_str *out);

/* Refuses an event
 *   - that lacks an id of its class, or one that another of its ids belongs to
 *     (a turn without its thread), or has an id that is not one;
 *   - whose payload is no object or breaks the schema of its class;
 *   - whose refs are not `x_ref`: "scheme://...", `x_refs`: [...];
 *   - that is larger than UAR_LIMIT_EVENT_BYTES in any written form.
 * error->where: "type#/payload/pointer". Sequences may still be 0.
 * `scratch` may be reset afterwards. Thread-safe; the schema of a class is
 * compiled on first use, which is why UAR_ENOMEM is possible at any time. */
UAR_MUST_CHECK uar_err uar_event_check(const struct uar_event *ev, struct uar_arena *scratch,
				       struct uar_error *error);
/* The same for one that follows `before`, which has passed: an id that is the very
 * same string is not looked at again. */
UAR_MUST_CHECK uar_err uar_event_check_next(const struct uar_event *ev,
					    const struct uar_event *before,
					    struct uar_arena *scratch, struct uar_error *error);

/* The envelope as one JSON object. What is in `omit` (UAR_ID_BITs, UAR_OMIT_TIME)
 * is left out: the store keeps that once a row, not once an event. */
#define UAR_OMIT_TIME UAR_ID_BIT(UAR_ID_COUNT)
void uar_event_write(struct uar_jw *w, const char *key, const struct uar_event *ev, uint32_t omit);
/* The same without sequence, run_sequence, schema_version and runtime_id, which
 * the store knows from its row. */
void uar_event_write_stored(struct uar_jw *w, const struct uar_event *ev, uint32_t omit);
/* Reads either form. `base` gives the ids and the time that were omitted (NULL:
 * none); payload and refs keep their text. Unknown members are ignored, sequences that are not
 * there are 0. UAR_ECORRUPT when it is no event, UAR_ENEWER when it has another
 * major schema version. The ids are not judged: that is uar_event_check. `out`
 * borrows from the tree, its text, `base` and `arena`. */
UAR_MUST_CHECK uar_err uar_event_read(const struct uar_json *j, const struct uar_event *base,
				      struct uar_arena *arena, struct uar_event *out,
				      struct uar_error *error);

#endif
