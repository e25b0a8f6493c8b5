/* openai_int.h - the parts of the OpenAI dialect; for files of model/ alone.
 *
 * openai.c talks to the client and the scheduler; the rest here is pure: bytes
 * of an answer in, pieces of text and a verdict out. */
#ifndef UAR_MODEL_OPENAI_INT_H
#define UAR_MODEL_OPENAI_INT_H

#include "base/sse.h"
#include "json/json.h"
#include "model/model.h"

enum uar_openai_kind { UAR_OPENAI_TEXT, UAR_OPENAI_REASONING };

/* How it ended, when it did not end well. */
struct uar_openai_verdict {
	enum uar_model_failure failure; /* NONE: no complaint */
	bool retryable;
	size_t message_n;
	char message[UAR_LIMIT_MODEL_MESSAGE];
};

/* Sets the verdict unless there is one. The message is cut, its control
 * characters and whatever looks like a key (`secret` above all) are taken out. */
void uar_openai_fail(struct uar_openai_verdict *v, enum uar_model_failure failure, bool retryable,
		     uar_str secret, uar_str message);
/* An error object: a whole body {"error":{...}}, or what is inside. `status` is
 * that of the answer. */
void uar_openai_fail_json(struct uar_openai_verdict *v, const struct uar_json *j, int status,
			  uar_str secret);
/* A call that ended without a complete answer, as the client reports it. */
void uar_openai_fail_transport(struct uar_openai_verdict *v, uar_err e, uar_str secret,
			       const char *reason);

/* Halves of a surrogate pair at the edges of a string; 0: none. */
struct uar_openai_halves {
	uint32_t high; /* a string ends with it */
	uint32_t low;  /* a string starts with it */
};
/* Copies JSON text, putting U+FFFD for ill-formed UTF-8 and for lone surrogates. */
void uar_openai_repair(uar_str json, struct uar_buf *out, struct uar_openai_halves *halves);

/* Memory that all answers of one model use in turn. */
struct uar_openai_scratch {
	struct uar_arena arena;
	struct uar_buf repaired;
};
void uar_openai_scratch_init(struct uar_openai_scratch *s);
void uar_openai_scratch_fini(struct uar_openai_scratch *s);
/* Parses into the scratch arena; the tree lives until the next parse. Text that
 * is not quite UTF-8 is repaired first. */
UAR_MUST_CHECK uar_err uar_openai_parse(struct uar_openai_scratch *s, uar_str text,
					struct uar_openai_halves *halves,
					const struct uar_json **out);

/* What an event of a stream had around its text; no bytes: nothing is kept. */
struct uar_openai_mould {
	size_t before, after; /* bytes on either side */
	char bytes[UAR_LIMIT_MODEL_MOULD];
};
/* Is the event of this mould? Then it says what that one said, with another text. */
bool uar_openai_mould_fits(const struct uar_openai_mould *m, uar_str event, uar_str *out_text);
/* From an event that is valid JSON, and one string of it as it was read. */
void uar_openai_mould_make(struct uar_openai_mould *m, uar_str event, uar_str text);

/* Two halves as UTF-8. */
void uar_openai_pair(uint32_t high, uint32_t low, char out[4]);

/* What the model asks to be done, as far as it has come. */
struct uar_openai_call {
	int64_t index;
	size_t id_n, name_n;
	char id[UAR_LIMIT_ID_BYTES], name[UAR_LIMIT_ID_BYTES];
	struct uar_buf arguments;
	uint32_t high; /* first half of a pair at their end */
};
struct uar_openai_calls {
	size_t count, bytes;
	struct uar_openai_call at[UAR_LIMIT_MODEL_CALLS];
	struct uar_model_tool_call list[UAR_LIMIT_MODEL_CALLS]; /* of them, at the end */
};
struct uar_openai_answer;
/* The member `tool_calls` of a delta or message. */
void uar_openai_calls_take(struct uar_openai_answer *a, const struct uar_json *calls);
/* The answer is complete: fills `list` or sets the verdict. */
void uar_openai_calls_end(struct uar_openai_answer *a);
void uar_openai_calls_destroy(struct uar_openai_calls *c);

/* The body of a 2xx answer, cut anywhere: a stream of chunks or, from proxies
 * that do not stream, one completion. */
struct uar_openai_answer {
	struct uar_openai_scratch *scratch;
	uar_str secret;
	/* Non-empty, well-formed UTF-8. */
	void (*piece)(void *ctx, enum uar_openai_kind kind, uar_str text);
	void *ctx;
	enum uar_openai_form {
		UAR_OPENAI_NOTHING,
		UAR_OPENAI_STREAM,
		UAR_OPENAI_WHOLE,
		UAR_OPENAI_FOREIGN,
	} form;
	struct uar_sse_parser sse;
	struct uar_buf whole;
	bool finished;			 /* a finish_reason came */
	bool closed;			 /* [DONE] came: nothing follows */
	size_t events, output;		 /* seen; bytes of text and of calls that came */
	size_t asked;			 /* messages of the request: part of ids of ours */
	struct uar_openai_calls *calls;	 /* NULL: none */
	struct uar_openai_halves halves; /* of the event at hand */
	uint32_t high;			 /* first half of a pair, waiting for the second */
	enum uar_openai_kind high_kind;
	struct {	       /* what the event at hand has brought */
		size_t pieces; /* of text and of calls */
		uar_str text;  /* the last one */
		enum uar_openai_kind kind;
	} brought;
	struct uar_openai_mould mould; /* of the last event, if it brought text alone */
	struct uar_openai_verdict verdict;
	struct uar_model_usage usage;
	char stop_reason[32], model[UAR_LIMIT_MODEL_NAME];
	size_t stop_reason_n, model_n;
};

/* scratch, secret, asked, piece and ctx are set by the caller before. */
void uar_openai_answer_init(struct uar_openai_answer *a);
void uar_openai_answer_fini(struct uar_openai_answer *a);
/* An error: the verdict is set and nothing more is wanted. */
UAR_MUST_CHECK uar_err uar_openai_answer_feed(struct uar_openai_answer *a, uar_str bytes);
/* No more bytes: hands over what is left and settles the verdict. */
void uar_openai_answer_end(struct uar_openai_answer *a, uar_err transport, const char *reason);

#endif
