/* prompt.h - the messages of a request to a model, while they are gathered.
 *
 * Texts are borrowed. The first error sticks: callers add freely and look at `err` at the end. */
#ifndef UAR_WORK_PROMPT_H
#define UAR_WORK_PROMPT_H

#include "model/model.h"

struct prompt { /* zeroed before first use */
	struct uar_model_message *messages;
	struct uar_model_part *parts; /* of all messages, in order */
	size_t count, room, part_count, part_room;
	uar_err err;
};

/* A message without parts; those that follow are its own. */
void rt_prompt_begin(struct prompt *p, enum uar_model_role role);
void rt_prompt_add(struct prompt *p, const struct uar_model_part *part);
/* A message that is one text. */
void rt_prompt_text(struct prompt *p, enum uar_model_role role, uar_str text);
/* Takes `count` messages of one part each out, the first of them at `at`. Every message before
 * them has one part, too. */
void rt_prompt_remove(struct prompt *p, size_t at, size_t count);
/* No further ones: the messages know their parts. */
UAR_MUST_CHECK uar_err rt_prompt_end(struct prompt *p);
void rt_prompt_fini(struct prompt *p);

/* All messages in a row, each with its role before and a zero behind it. The bytes of that frame.
 */
size_t rt_prompt_write(const struct prompt *p, struct uar_buf *all);

#endif
