/* model.h - a provider of model output, behind one port.
 *
 * Callbacks fire from the loop, in order, never inside start; `done` comes
 * exactly once and last, and not at all after cancel. */
#ifndef UAR_MODEL_MODEL_H
#define UAR_MODEL_MODEL_H

#include "base/sched.h"
#include "base/str.h"

enum uar_model_role { UAR_MODEL_SYSTEM, UAR_MODEL_USER, UAR_MODEL_ASSISTANT, UAR_MODEL_TOOL };

/* A tool that the model may ask for. */
struct uar_model_tool {
	uar_str name;	     /* [a-zA-Z0-9_-]+ */
	uar_str description, /* for the model */
		parameters;  /* JSON Schema text of its arguments */
};

/* What the model asks for, or has asked for. */
struct uar_model_tool_call {
	uar_str id;	   /* the provider's, unique in a conversation */
	uar_str name;	   /* of the tool, as the model wrote it */
	uar_str arguments; /* as the model wrote them: perhaps no JSON */
};

enum uar_model_part_kind {
	UAR_PART_TEXT,
	UAR_PART_IMAGE,
	UAR_PART_FILE,
	UAR_PART_CALL,	    /* ASSISTANT: a tool call */
	UAR_PART_RESULT,    /* TOOL: what a call brought */
	UAR_PART_REASONING, /* ASSISTANT: shown to people, not given back to providers */
	UAR_PART_OPAQUE,    /* ASSISTANT: a provider's block, given back to it unmodified */
};

/* A piece of a message. All strings are borrowed. */
struct uar_model_part {
	enum uar_model_part_kind kind;
	bool cache;  /* hint: the prompt up to and with this part will be sent again soon */
	bool failed; /* RESULT: the tool failed */
	/* TEXT, REASONING, RESULT: the text. CALL: the arguments. OPAQUE: the block as JSON.
	 * IMAGE, FILE: its bytes in base64; empty: `url` or `id` says where they are. */
	uar_str text;
	uar_str id;   /* CALL, RESULT: the provider's id of the call; FILE: of a file it has */
	uar_str name; /* CALL: the tool; FILE: its name; OPAQUE: the dialect it is of */
	uar_str media_type; /* IMAGE, FILE */
	uar_str url;	    /* IMAGE, FILE: http or https */
};
static inline struct uar_model_part uar_model_text_part(uar_str text)
{
	return (struct uar_model_part){ .kind = UAR_PART_TEXT, .text = text };
}

struct uar_model_message {
	enum uar_model_role role;
	const struct uar_model_part *parts;
	size_t part_count;
};
/* The first part of that kind; NULL: there is none. */
const struct uar_model_part *uar_model_find_part(const struct uar_model_message *m,
						 enum uar_model_part_kind kind);
/* The text of the first TEXT or RESULT part, or an empty one. */
uar_str uar_model_text_of(const struct uar_model_message *m);

enum uar_model_effort { /* how much the model shall reason */
			UAR_EFFORT_DEFAULT,
			UAR_EFFORT_NONE,
			UAR_EFFORT_MINIMAL,
			UAR_EFFORT_LOW,
			UAR_EFFORT_MEDIUM,
			UAR_EFFORT_HIGH,
			UAR_EFFORT_MAX,
			UAR_EFFORT_COUNT,
};
extern const char *const uar_model_effort_names[UAR_EFFORT_COUNT]; /* "default", "none", ... */

struct uar_model_tool_choice {
	enum { UAR_CHOICE_AUTO, UAR_CHOICE_NONE, UAR_CHOICE_ANY, UAR_CHOICE_TOOL } kind;
	uar_str name;	    /* TOOL */
	bool one_at_a_time; /* no calls in parallel */
};

struct uar_model_output { /* the answer is JSON of this schema */
	uar_str name;	  /* [a-zA-Z0-9_-]+; empty: "answer" */
	uar_str schema;	  /* JSON Schema text; empty: the answer is free text */
	bool strict;
	bool by_tool; /* the model cannot do so itself: ask for it as the input of a tool */
};

struct uar_model_request {
	uar_str model; /* the provider's name of it */
	const struct uar_model_message *messages;
	size_t message_count;
	const struct uar_model_tool *tools;
	size_t tool_count;
	struct uar_model_tool_choice tool_choice;
	struct uar_model_output output;
	int64_t max_tokens; /* of the answer; 0: the provider's default */
	enum uar_model_effort effort;
	bool reasons;		 /* the model does: ask for what it must be given back */
	int64_t thinking_tokens; /* > 0: a model that wants a budget of tokens instead of an effort
				  */
	uar_str cache_key;	 /* hint: requests with the same key begin alike; or empty */
	int64_t connect_timeout_us; /* no connection for so long; 0: default 10 s */
	int64_t first_timeout_us;   /* no byte of an answer for so long; 0: that of tokens */
	int64_t idle_timeout_us;    /* no token for so long ends the call; 0: default 60 s */
};

struct uar_model_usage { /* -1: not reported */
	int64_t input_tokens, output_tokens, total_tokens;
	int64_t cached_tokens, cache_write_tokens; /* part of input_tokens */
	int64_t reasoning_tokens;		   /* part of output_tokens */
};
#define UAR_MODEL_USAGE_NONE ((struct uar_model_usage){ -1, -1, -1, -1, -1, -1 })

enum uar_model_failure { /* failure_category of model.failed */
			 UAR_MODEL_FAIL_NONE,
			 UAR_MODEL_FAIL_PROVIDER, /* provider_error */
			 UAR_MODEL_FAIL_LIMIT,
			 UAR_MODEL_FAIL_TIMEOUT,
			 UAR_MODEL_FAIL_NETWORK,
			 UAR_MODEL_FAIL_AUTH,
			 UAR_MODEL_FAIL_INVALID, /* invalid_request */
};
const char *uar_model_failure_name(enum uar_model_failure f);

struct uar_model_result {
	enum uar_model_failure failure; /* NONE: it completed */
	bool retryable;
	int http_status;     /* 0: none */
	uar_str message;     /* redacted: no key, no raw provider body beyond its error message */
	uar_str stop_reason; /* "stop", "length", "tool_calls", "content_filter", or as reported */
	const struct uar_model_tool_call *calls; /* what it wants done before it goes on */
	size_t call_count;
	/* The whole answer in order, when a block of it must go back unmodified in the next
	 * request; none: text and calls say it all. */
	const struct uar_model_part *parts;
	size_t part_count;
	uar_str actual_model; /* as reported; may be empty */
	uar_str request_id;   /* the provider's, for its support; may be empty */
	struct uar_model_usage usage;
	int64_t retry_after_us; /* what the provider asks to wait; 0: it said nothing */
};

struct uar_model_events {
	void (*text)(void *ctx, uar_str delta);	     /* never empty, whole UTF-8 */
	void (*reasoning)(void *ctx, uar_str delta); /* likewise */
	void (*done)(void *ctx, const struct uar_model_result *result);
	void *ctx;
};

/* Texts become vectors. */
struct uar_model_embedded {
	uar_err err;
	bool retryable;
	const char *reason; /* of a failure; "" else */
	const float *at;    /* n vectors of `dims` numbers, in the order of the texts */
	size_t n, dims;
};
struct uar_model_embed {
	uar_str model;	       /* the provider's name of it */
	const uar_str *inputs; /* copied */
	size_t n;	       /* at most UAR_LIMIT_MODEL_EMBEDDED */
	void (*done)(void *ctx, const struct uar_model_embedded *r);
	void *ctx;
};

struct uar_model;
struct uar_model_call;
struct uar_model_ops {
	uint32_t abi, size;
	void (*destroy)(struct uar_model *m);
	uar_err (*start)(struct uar_model *m, const struct uar_model_request *r,
			 const struct uar_model_events *events, struct uar_model_call **out,
			 struct uar_error *error);
	void (*cancel)(struct uar_model *m,
		       struct uar_model_call *call); /* upstream closed at once */
	void (*pause)(struct uar_model *m, struct uar_model_call *call, bool paused);
	/* NULL: it has no embeddings. As uar_model_embed. */
	uar_err (*embed)(struct uar_model *m, const struct uar_model_embed *r,
			 struct uar_error *error);
};
struct uar_model {
	const struct uar_model_ops *ops;
	const char *provider; /* its name: "scripted", "openai", or that of a configured one */
};
/* `done` is called once, later; not at all once the provider is destroyed. UAR_ENOTIMPL: the
 * provider has no embeddings. */
UAR_MUST_CHECK uar_err uar_model_embed(struct uar_model *m, const struct uar_model_embed *r,
				       struct uar_error *error);
/* Calls under way end without callbacks. NULL is fine. Not from inside a callback. */
void uar_model_destroy(struct uar_model *m);

enum uar_model_dialect {
	UAR_DIALECT_OPENAI_CHAT,      /* POST BASE/chat/completions */
	UAR_DIALECT_OPENAI_RESPONSES, /* POST BASE/responses */
	UAR_DIALECT_ANTHROPIC,	      /* POST BASE/v1/messages */
	UAR_DIALECT_COUNT,
};
extern const char *const uar_model_dialect_names[UAR_DIALECT_COUNT]; /* "openai_chat", ... */

struct uar_client;
struct uar_model_wire_options {
	struct uar_client *client;
	enum uar_model_dialect dialect;
	const char *provider; /* its name; copied, as all strings are */
	/* "https://api.openai.com/v1"; the path of the dialect is put behind it, before a query */
	const char *base_url;
	const char *api_key;	    /* NULL or empty: none is sent */
	const char *key_header;	    /* NULL: the dialect's; "api-key" sends it as it is */
	const char *const *headers; /* "Name: value", NULL-terminated; NULL: none */
};
UAR_MUST_CHECK uar_err uar_model_wire_create(const struct uar_model_wire_options *o,
					     struct uar_model **out, struct uar_error *error);

/* A model that needs no network: what it says is a pure function of the
 * conversation and of the model name ("scripted", "scripted-slow",
 * "scripted-reasoning", "scripted-fail", "scripted-long:N", "scripted-stall",
 * "scripted-tools", see docs/models.md). start refuses other names with UAR_EINVALID. */
struct uar_model_scripted_options {
	struct uar_sched *sched;
	int64_t token_us; /* pause between tokens of "scripted"; 0: none */
};
UAR_MUST_CHECK uar_err uar_model_scripted_create(const struct uar_model_scripted_options *o,
						 struct uar_model **out);
/* Is there such a name? */
UAR_MUST_CHECK uar_err uar_model_scripted_check(uar_str name, struct uar_error *error);

#endif
