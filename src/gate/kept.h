/* kept.h - what an owner keeps in the database, over HTTP: agents, skills and MCP servers. The path
 * names the one; each function answers. */
#ifndef UAR_GATE_KEPT_H
#define UAR_GATE_KEPT_H

#include "gate/gate_int.h"
#include "work/definition_store.h"

enum gate_kept { GATE_KEPT_AGENT, GATE_KEPT_WORKFLOW, GATE_KEPT_SKILL, GATE_KEPT_MCP };

typedef void gate_kept_fn(struct uar_definition_change *op);

/* Stores the body under the id in the path, or removes what is there. Calls `done`, which answers.
 */
void gate_put_kept(struct call *c, enum gate_kept what, gate_kept_fn *done);
void gate_remove_kept(struct call *c, enum gate_kept what, gate_kept_fn *done);

/* For agents, workflows and skills: */
gate_kept_fn gate_answer_kept_change; /* answers with the version that is in force */
/* Answers with one version, or with 0 with the list of versions. */
void gate_look_up_kept(struct call *c, enum gate_kept what, int64_t version);
/* Answers that nothing of that name is stored, or that stored definitions are still being loaded.
 */
void gate_answer_not_kept(struct call *c, enum gate_kept what);

#endif
