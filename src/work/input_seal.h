/* input_seal.h - inputs of a run that are secret: recorded as "<redacted>", their real values
 * sealed beside them.
 *
 * The member "$sealed" of the recorded inputs holds the real values of all members that hide
 * something, sealed for the run's owner: it outlives the process, and nobody else can open it. */
#ifndef UAR_WORK_INPUT_SEAL_H
#define UAR_WORK_INPUT_SEAL_H

#include "json/json.h"
#include "work/work_int.h"

#define UAR_SEALED_INPUT "$sealed"

/* The inputs with the real values: `inputs` itself when nothing is sealed. Strings are the
 * arena's. UAR_ECORRUPT: it was sealed under another key or for somebody else. */
UAR_MUST_CHECK uar_err rt_inputs_open(const struct uar_runtime *rt, const struct uar_owner *owner,
				      const struct uar_json *inputs, struct uar_arena *arena,
				      const struct uar_json **out);
/* Writes the inputs as they are recorded. UAR_ESKIP: they hide nothing, and nothing is written.
 * `schema` may be NULL. */
struct inputs_ask {
	const struct uar_owner *owner;
	const struct uar_json *inputs, *schema;
};
UAR_MUST_CHECK uar_err rt_inputs_seal(const struct uar_runtime *rt, const struct inputs_ask *ask,
				      struct uar_buf *out);

#endif
