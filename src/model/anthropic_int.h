/* anthropic_int.h - the two halves of Anthropic's dialect; for files of model/ alone. */
#ifndef UAR_MODEL_ANTHROPIC_INT_H
#define UAR_MODEL_ANTHROPIC_INT_H

#include "model/reply_int.h"

void uar_anthropic_write(struct uar_jw *w, const struct uar_model_request *r, bool legacy);

#endif
