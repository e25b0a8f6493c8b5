/* openai_words.h - pieces of a provider's answer, for the tests of its readers. */
#ifndef UAR_TEST_OPENAI_WORDS_H
#define UAR_TEST_OPENAI_WORDS_H

#define DELTA(T) "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" T "\"}}]}\n\n"
#define THOUGHT(T)                                                                                 \
	"data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"" T "\"}}]}\n\n"
#define STOP "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
/* Pieces of calls, and the end of an answer that asks for them. */
#define CALL(J)	    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[" J "]}}]}\n\n"
#define PIECE(I, A) CALL("{\"index\":" I ",\"function\":{\"arguments\":\"" A "\"}}")
#define BEGIN(I, ID, NAME)                                                                         \
	CALL("{\"index\":" I ",\"id\":\"" ID                                                       \
	     "\",\"type\":\"function\",\"function\":{\"name\":\"" NAME "\",\"arguments\":\"\"}}")
#define END(REASON)                                                                                \
	"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" REASON "\"}]}\n\n"
#define USAGE                                                                                      \
	"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2,"            \
	"\"total_tokens\":9}}\n\n"
#define DONE "data: [DONE]\n\n"
#ifndef KEY
#define KEY "sk-test-0123456789abcdef"
#endif

#endif
