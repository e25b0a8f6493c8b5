/* claude.h - Claude Code's stream-json, one-shot and as a dialogue. */
#ifndef UAR_BACKEND_CLAUDE_H
#define UAR_BACKEND_CLAUDE_H

#include "backend/map.h"

struct uab_claude {
	struct uab_map map;
	uar_str prompt;	       /* dialogue only: sent after the greeting */
	char message_id[128];  /* of the message that is being streamed */
	char stream_tool[128]; /* tool block that is being streamed */
	bool streaming, block_streamed;
	enum uab_cause cause; /* what an error message of the API said by type */
	unsigned asks;
};

extern const struct uab_dialect uab_claude_oneshot, uab_claude_dialogue;

#endif
