/* tool_sample.h - what a tool at work asks the model of the run, if a person allows it. */
#ifndef UAR_WORK_TOOL_SAMPLE_H
#define UAR_WORK_TOOL_SAMPLE_H

#include "work/tool_loop_int.h"

/* The question; `about` has the messages as the protocol writes them. */
void rt_sample_ask(struct place *p, const struct uar_tool_question *q);
/* It was allowed: the model is called, and the tool told what it says. */
void rt_sample_begin(struct place *p);
/* Nobody waits for it any more. A call under way is recorded as given up, unless the run is over.
 * Without one nothing happens. */
void rt_sample_drop(struct place *p, bool recorded);

#endif
