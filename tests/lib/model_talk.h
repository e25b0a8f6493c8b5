/* model_talk.h - messages of a conversation with a model, as initializers of automatic ones. */
#ifndef UAR_TEST_MODEL_TALK_H
#define UAR_TEST_MODEL_TALK_H

#include "model/model.h"

#define TALK_STR(T)                                                                                \
	{                                                                                          \
		T, sizeof(T) - 1                                                                   \
	}
#define TALK_PART(...)                                                                             \
	(const struct uar_model_part[])                                                            \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define TALK(ROLE, N, ...)                                                                         \
	{                                                                                          \
		UAR_MODEL_##ROLE, TALK_PART(__VA_ARGS__), N                                        \
	}
#define TALK_TEXT(T)                                                                               \
	{                                                                                          \
		.kind = UAR_PART_TEXT, .text = TALK_STR(T)                                         \
	}
#define TALK_CALL(ID, NAME, ARGUMENTS)                                                             \
	{                                                                                          \
		.kind = UAR_PART_CALL, .id = TALK_STR(ID), .name = TALK_STR(NAME),                 \
		.text = TALK_STR(ARGUMENTS)                                                        \
	}
#define TALK_RESULT(ID, T)                                                                         \
	{                                                                                          \
		.kind = UAR_PART_RESULT, .id = TALK_STR(ID), .text = TALK_STR(T)                   \
	}
/* One text of that role. */
#define SAYS(ROLE, T)	 TALK(ROLE, 1, TALK_TEXT(T))
#define RESULT_OF(ID, T) TALK(TOOL, 1, TALK_RESULT(ID, T))

#endif
