/* parts.h - the parts of an answer as a document, for the log: what one provider said with one
 * model, or the images and files that a tool brought (without provider and model).
 *
 *	{"provider":"claude","model":"m","parts":[
 *	  {"type":"opaque","dialect":"anthropic","block":{...}},
 *	  {"type":"image","media_type":"image/png","data":"BASE64"},
 *	  {"type":"text","text":"..."},{"type":"call","id":"...","name":"...","arguments":"..."}]}
 *
 * A block keeps its members and strings to the letter; blanks between them may change. */
#ifndef UAR_MODEL_PARTS_H
#define UAR_MODEL_PARTS_H

#include "base/arena.h"
#include "base/buf.h"
#include "model/model.h"

struct uar_model_said {
	uar_str provider, model;
	const struct uar_model_part *parts;
	size_t part_count;
};

UAR_MUST_CHECK uar_err uar_model_parts_write(const struct uar_model_said *said,
					     struct uar_buf *out);
/* Into the arena, strings included. UAR_ECORRUPT: it is no such document. */
UAR_MUST_CHECK uar_err uar_model_parts_read(uar_str json, struct uar_arena *a,
					    struct uar_model_said *out);

#endif
