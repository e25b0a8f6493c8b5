/* responses_words.h - pieces of an answer in OpenAI's Responses dialect, for tests of its reader.
 */
#ifndef UAR_TEST_RESPONSES_WORDS_H
#define UAR_TEST_RESPONSES_WORDS_H

#define EVENT(TYPE, REST)                                                                          \
	"event: response." TYPE "\ndata: {\"type\":\"response." TYPE "\"" REST "}\n\n"
#define CREATED                                                                                    \
	EVENT("created", ",\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"status\":"    \
			 "\"in_progress\",\"model\":\"real-1\",\"output\":[]}")
#define ITEM(I, J)     EVENT("output_item.added", ",\"output_index\":" I ",\"item\":" J)
#define ITEM_END(I, J) EVENT("output_item.done", ",\"output_index\":" I ",\"item\":" J)
#define TEXT(I)                                                                                    \
	ITEM(I, "{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[]}")
#define SAID(I, T)                                                                                 \
	EVENT("output_text.delta",                                                                 \
	      ",\"output_index\":" I ",\"content_index\":0,\"delta\":\"" T "\"")
#define TEXT_END(I, T)                                                                             \
	ITEM_END(I, "{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":["  \
		    "{\"type\":\"output_text\",\"text\":\"" T "\"}]}")
#define THINKING(I) ITEM(I, "{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[]}")
#define THOUGHT(I, T)                                                                              \
	EVENT("reasoning_summary_text.delta",                                                      \
	      ",\"output_index\":" I ",\"summary_index\":0,\"delta\":\"" T "\"")
#define SEALED                                                                                     \
	"{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\","         \
	"\"text\":\"hm\"}],\"encrypted_content\":\"gAAA/=\"}"
#define CALL(ID, NAME, ARGUMENTS)                                                                  \
	"{\"id\":\"fc_1\",\"type\":\"function_call\",\"call_id\":\"" ID "\",\"name\":\"" NAME      \
	"\",\"arguments\":\"" ARGUMENTS "\"}"
#define INPUT(I, T)                                                                                \
	EVENT("function_call_arguments.delta", ",\"output_index\":" I ",\"delta\":\"" T "\"")
#define USAGE                                                                                      \
	"\"usage\":{\"input_tokens\":10,\"input_tokens_details\":{\"cached_tokens\":4},"           \
	"\"output_tokens\":5,\"output_tokens_details\":{\"reasoning_tokens\":2},"                  \
	"\"total_tokens\":15}"
#define COMPLETED                                                                                  \
	EVENT("completed",                                                                         \
	      ",\"response\":{\"status\":\"completed\",\"error\":null,\"output\":[]," USAGE "}")
#define INCOMPLETE(REASON)                                                                         \
	EVENT("incomplete", ",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":{"    \
			    "\"reason\":\"" REASON "\"},\"output\":[]}")

#endif
