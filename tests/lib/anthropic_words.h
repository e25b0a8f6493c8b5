/* anthropic_words.h - pieces of an answer in Anthropic's dialect, for tests of its reader. */
#ifndef UAR_TEST_ANTHROPIC_WORDS_H
#define UAR_TEST_ANTHROPIC_WORDS_H

#define EVENT(TYPE, REST) "event: " TYPE "\ndata: {\"type\":\"" TYPE "\"" REST "}\n\n"
#define MESSAGE                                                                                    \
	EVENT("message_start", ",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":"     \
			       "\"assistant\",\"model\":\"real-1\",\"content\":[],"                \
			       "\"stop_reason\":null,\"usage\":{\"input_tokens\":10,"              \
			       "\"cache_creation_input_tokens\":3,\"cache_read_input_tokens\":4,"  \
			       "\"output_tokens\":1}}")
#define PING	      EVENT("ping", "")
#define BLOCK(I, J)   EVENT("content_block_start", ",\"index\":" I ",\"content_block\":" J)
#define PIECE(I, J)   EVENT("content_block_delta", ",\"index\":" I ",\"delta\":" J)
#define UNBLOCK(I)    EVENT("content_block_stop", ",\"index\":" I)
#define TEXT(I)	      BLOCK(I, "{\"type\":\"text\",\"text\":\"\"}")
#define SAID(I, T)    PIECE(I, "{\"type\":\"text_delta\",\"text\":\"" T "\"}")
#define THINKING(I)   BLOCK(I, "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}")
#define THOUGHT(I, T) PIECE(I, "{\"type\":\"thinking_delta\",\"thinking\":\"" T "\"}")
#define SIGNED(I, S)  PIECE(I, "{\"type\":\"signature_delta\",\"signature\":\"" S "\"}")
#define USE(I, ID, NAME)                                                                           \
	BLOCK(I, "{\"type\":\"tool_use\",\"id\":\"" ID "\",\"name\":\"" NAME "\",\"input\":{}}")
#define INPUT(I, T) PIECE(I, "{\"type\":\"input_json_delta\",\"partial_json\":\"" T "\"}")
#define STOP(REASON)                                                                               \
	EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"" REASON                             \
			       "\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":12}")
#define END EVENT("message_stop", "")

#endif
