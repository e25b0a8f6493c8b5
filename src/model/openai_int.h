/* openai_int.h - what OpenAI's two dialects share; for files of model/ alone. */
#ifndef UAR_MODEL_OPENAI_INT_H
#define UAR_MODEL_OPENAI_INT_H

#include "model/reply_int.h"

void uar_openai_write_chat(struct uar_jw *w, const struct uar_model_request *r, bool legacy);
void uar_openai_write_responses(struct uar_jw *w, const struct uar_model_request *r, bool legacy);

#endif
