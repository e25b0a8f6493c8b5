/* media.h - images and files that tools bring, on their way to the model. */
#ifndef UAR_WORK_MEDIA_H
#define UAR_WORK_MEDIA_H

#include "tool/tool.h"
#include "work/prompt.h"
#include "work/work_int.h"

/* The parts of a result as a document (model/parts.h). */
UAR_MUST_CHECK uar_err rt_media_write(const struct uar_tool_result *r, struct uar_buf *out);
/* What the model cannot take is named instead, where a tool brought it. */
void rt_media_fit(struct prompt *p, bool images, bool files);

#endif
