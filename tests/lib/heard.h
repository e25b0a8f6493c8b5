/* heard.h - records what a model call says; may cancel or pause it while it does. */
#ifndef UAR_TEST_HEARD_H
#define UAR_TEST_HEARD_H

#include "base/buf.h"
#include "loop/loop.h"
#include "model/model.h"

struct heard {
	struct uar_model *model;
	struct uar_loop *loop; /* stopped at the end of the call, and when cancelled */
	struct uar_model_call *call;
	struct uar_buf text, reasoning, message;
	struct uar_buf calls; /* "ID NAME ARGUMENTS" a line */
	struct uar_buf parts; /* "KIND NAME TEXT" a line, KIND as a number */
	unsigned texts, thoughts, dones;
	struct uar_model_result result; /* without its strings */
	char stop[40], name[140], request_id[140];
	bool cancel_on_text, cancel_on_reasoning, pause_on_text;
	struct uar_timer resume;
	const char *awaited;   /* once this is the whole text, ... */
	struct uar_task *then; /* ... the task is posted; NULL: none */
};

void heard_init(struct heard *h, struct uar_model *m, struct uar_loop *l);
void heard_fini(struct heard *h);
struct uar_model_events heard_events(struct heard *h);
/* Starts a call and checks that nothing fires inside. */
uar_err heard_start(struct heard *h, const struct uar_model_request *r);
/* The same with "Hello" as conversation; false and a failed check on error. */
bool heard_hello(struct heard *h, const char *model, int64_t idle_us);
/* After so long checks that a paused call said one text and no more, and resumes it. */
void heard_resume_after(struct heard *h, int64_t us);

#endif
