/* reply_int.h - what reads the answer of a provider; for files of model/ alone.
 *
 * wire.c talks to the client and the scheduler; the rest here is pure: bytes
 * of an answer in, pieces of text and a verdict out. What a dialect adds is
 * what its events mean (struct uar_dialect). */
#ifndef UAR_MODEL_REPLY_INT_H
#define UAR_MODEL_REPLY_INT_H

#include "base/sse.h"
#include "json/jw.h"
#include "model/limits.h"
#include "model/model.h"

enum uar_reply_kind { UAR_REPLY_TEXT, UAR_REPLY_REASONING };

/* How it ended, when it did not end well. */
struct uar_reply_verdict {
	enum uar_model_failure failure; /* NONE: no complaint */
	bool retryable;
	size_t message_n;
	char message[UAR_LIMIT_MODEL_MESSAGE];
};

/* Sets the verdict unless there is one. The message is cut, its control
 * characters and whatever looks like a key (`secret` above all) are taken out. */
void uar_reply_fail(struct uar_reply_verdict *v, enum uar_model_failure failure, bool retryable,
		    uar_str secret, uar_str message);
/* An error object: a whole body {"error":{...}}, or what is inside. `status` is
 * that of the answer. */
void uar_reply_fail_json(struct uar_reply_verdict *v, const struct uar_json *j, int status,
			 uar_str secret);
/* A call that ended without a complete answer, as the client reports it. */
void uar_reply_fail_transport(struct uar_reply_verdict *v, uar_err e, uar_str secret,
			      const char *reason);

/* Halves of a surrogate pair at the edges of a string; 0: none. */
struct uar_reply_halves {
	uint32_t high; /* a string ends with it */
	uint32_t low;  /* a string starts with it */
};
/* Copies JSON text, putting U+FFFD for ill-formed UTF-8 and for lone surrogates. */
void uar_reply_repair(uar_str json, struct uar_buf *out, struct uar_reply_halves *halves);

/* Memory that all answers of one model use in turn. */
struct uar_reply_scratch {
	struct uar_arena arena;
	struct uar_buf repaired;
};
void uar_reply_scratch_init(struct uar_reply_scratch *s);
void uar_reply_scratch_fini(struct uar_reply_scratch *s);
/* Parses into the scratch arena; the tree lives until the next parse. Text that
 * is not quite UTF-8 is repaired first. */
UAR_MUST_CHECK uar_err uar_reply_parse(struct uar_reply_scratch *s, uar_str text,
				       struct uar_reply_halves *halves,
				       const struct uar_json **out);

/* What an event of a stream had around its text; no bytes: nothing is kept. */
struct uar_reply_mould {
	size_t before, after; /* bytes on either side */
	size_t name_n;	      /* of the event's name */
	char name[32];
	char bytes[UAR_LIMIT_MODEL_MOULD];
};
/* Is the event of this mould? Then it says what that one said, with another text. */
bool uar_reply_mould_fits(const struct uar_reply_mould *m, const struct uar_sse_event *ev,
			  uar_str *out_text);
/* From an event that is valid JSON, and one string of it as it was read. */
void uar_reply_mould_make(struct uar_reply_mould *m, const struct uar_sse_event *ev, uar_str text);

/* Two halves as UTF-8. */
void uar_reply_pair(uint32_t high, uint32_t low, char out[4]);

/* What the model asks to be done, as far as it has come. */
struct uar_reply_call {
	int64_t index;
	size_t id_n, name_n;
	char id[UAR_LIMIT_ID_BYTES], name[UAR_LIMIT_ID_BYTES];
	struct uar_buf arguments;
	uint32_t high; /* first half of a pair at their end */
};
struct uar_reply_calls {
	size_t count, bytes;
	struct uar_reply_call at[UAR_LIMIT_MODEL_CALLS];
	struct uar_model_tool_call list[UAR_LIMIT_MODEL_CALLS]; /* of them, at the end */
};
struct uar_reply;
/* A further call; NULL: the verdict says why not. */
struct uar_reply_call *uar_reply_call_add(struct uar_reply *a, int64_t index);
/* An id that cannot be used gets one of ours at the end. */
void uar_reply_call_id(struct uar_reply_call *call, uar_str id);
void uar_reply_call_name(struct uar_reply *a, struct uar_reply_call *call, uar_str name);
/* A piece of its arguments: a string, or an object when it is all of them. */
void uar_reply_call_arguments(struct uar_reply *a, struct uar_reply_call *call,
			      const struct uar_json *j);
/* The answer is complete: fills `list` or sets the verdict. */
void uar_reply_calls_end(struct uar_reply *a);
void uar_reply_calls_destroy(struct uar_reply_calls *c);

/* A block of an answer whose provider may want it back. */
struct uar_reply_block {
	struct uar_list node;
	enum uar_model_part_kind kind;
	int64_t index;
	int form;	       /* OPAQUE: the dialect's own */
	size_t call;	       /* CALL: which one */
	struct uar_buf text;   /* TEXT: as it was said. OPAQUE: what of it came as text */
	struct uar_buf opaque; /* OPAQUE: the block as JSON, whole once it is sealed */
	struct uar_buf seal;   /* OPAQUE: a further string of it that came in pieces */
};
struct uar_reply_blocks {
	struct uar_list list;
	size_t count, bytes;	      /* bytes: of opaque ones */
	bool keep;		      /* one of them is opaque */
	struct uar_model_part *parts; /* all of them, at the end, when one is to be kept */
};
/* A further block; NULL: the verdict says why not. */
struct uar_reply_block *uar_reply_block_add(struct uar_reply *a, enum uar_model_part_kind kind,
					    int64_t index);
/* The newest of that index; NULL: there is none. */
struct uar_reply_block *uar_reply_block_find(const struct uar_reply *a, int64_t index);
/* Bytes that belong to an opaque block, counted against the limit of all. */
void uar_reply_block_put(struct uar_reply *a, struct uar_buf *to, uar_str bytes);
/* The answer is complete and has its calls: makes `parts`, when anything is to be kept. */
void uar_reply_blocks_end(struct uar_reply *a);
void uar_reply_blocks_fini(struct uar_reply_blocks *b);

/* What is special about the API of a kind of providers. */
struct uar_dialect {
	const char *name;      /* as in uar_model_dialect_names */
	const char *path;      /* put behind the base URL */
	const char *list_path; /* of its models, likewise */
	const char *key_header;
	const char *const *headers; /* sent with each request, NULL-terminated */
	/* The body of a request, an object that is open already. */
	void (*write)(struct uar_jw *w, const struct uar_model_request *r, bool legacy);
	/* An event of a stream. An error: the verdict is set. */
	uar_err (*event)(struct uar_reply *a, const struct uar_json *j);
	/* An answer that was not streamed. */
	uar_err (*whole)(struct uar_reply *a, const struct uar_json *j);
	/* The answer is complete; NULL: there is nothing to add. */
	void (*end)(struct uar_reply *a);
};
extern const struct uar_dialect uar_dialect_openai_chat, uar_dialect_openai_responses,
	uar_dialect_anthropic;

/* The body of a 2xx answer, cut anywhere: a stream of events or, from proxies
 * that do not stream, one object. */
struct uar_reply {
	const struct uar_dialect *dialect;
	struct uar_reply_scratch *scratch;
	uar_str secret;
	/* Non-empty, well-formed UTF-8. */
	void (*piece)(void *ctx, enum uar_reply_kind kind, uar_str text);
	void *ctx;
	enum uar_reply_form {
		UAR_REPLY_NOTHING,
		UAR_REPLY_STREAM,
		UAR_REPLY_WHOLE,
		UAR_REPLY_FOREIGN,
	} form;
	struct uar_sse_parser sse;
	struct uar_buf whole;
	bool finished;		     /* the reason of its end came */
	bool closed;		     /* nothing follows */
	size_t events, output;	     /* seen; bytes of text and of calls that came */
	struct {		     /* of the request */
		size_t messages;     /* part of ids of ours */
		uar_str output_tool; /* whose input is the answer; or empty */
	} asked;
	struct uar_reply_calls *calls; /* NULL: none */
	struct uar_reply_blocks blocks;
	int64_t sequence; /* of the last event, where they have numbers; 0: none */
	struct uar_reply_text {
		struct uar_reply_halves halves; /* of the event at hand */
		uint32_t high;			/* first half of a pair, waiting for the second */
		enum uar_reply_kind high_kind;
		struct uar_buf *copy; /* of the block that is being said; NULL: none */
	} text;
	struct {	       /* what the event at hand has brought */
		size_t pieces; /* of text and of calls */
		uar_str text;  /* the last one */
		enum uar_reply_kind kind;
	} brought;
	struct uar_reply_mould mould; /* of the last event, if it brought text alone */
	struct uar_reply_verdict verdict;
	struct uar_model_usage usage;
	char stop_reason[32], model[UAR_LIMIT_MODEL_NAME];
	size_t stop_reason_n, model_n;
};

/* dialect, scratch, secret, asked, piece and ctx are set by the caller before. */
void uar_reply_init(struct uar_reply *a);
void uar_reply_fini(struct uar_reply *a);
/* An error: the verdict is set and nothing more is wanted. */
UAR_MUST_CHECK uar_err uar_reply_feed(struct uar_reply *a, uar_str bytes);
/* No more bytes: hands over what is left and settles the verdict. */
void uar_reply_end(struct uar_reply *a, uar_err transport, const char *reason);

/* For dialects. */
/* A string of the event at hand, if it is one. */
void uar_reply_say(struct uar_reply *a, enum uar_reply_kind kind, const struct uar_json *j);
/* From here on text belongs to another block, which `copy` (or NULL) keeps. */
void uar_reply_turn(struct uar_reply *a, struct uar_buf *copy);
uar_err uar_reply_broken(struct uar_reply *a, const char *message);	/* a retryable failure */
void uar_reply_model(struct uar_reply *a, const struct uar_json *name); /* the first one counts */
void uar_reply_stop(struct uar_reply *a, uar_str reason);
/* A count of tokens, or what was known before. */
int64_t uar_reply_count(const struct uar_json *usage, const char *name, int64_t before);
/* Arguments that a model wrote, for providers that want an object: what is none becomes the
 * member "invalid_json" of one. */
void uar_reply_write_object(struct uar_jw *w, const char *key, uar_str arguments);
/* "data:MEDIA;base64,BYTES" of an image or a file, or its address. */
void uar_reply_write_url(struct uar_jw *w, const char *key, const struct uar_model_part *p);

#endif
