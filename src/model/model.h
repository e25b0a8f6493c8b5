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

struct uar_model_message {
	enum uar_model_role role;
	uar_str text;
	const struct uar_model_tool_call *calls; /* ASSISTANT: what it asked for */
	size_t call_count;
	uar_str call_id; /* TOOL: the call that `text` answers */
};

struct uar_model_request {
	uar_str model; /* the provider's name of it */
	const struct uar_model_message *messages;
	size_t message_count;
	const struct uar_model_tool *tools;
	size_t tool_count;
	int64_t idle_timeout_us; /* no token for so long ends the call; 0: default */
};

struct uar_model_usage {
	int64_t input_tokens, output_tokens, total_tokens; /* -1: not reported */
};

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
	uar_str stop_reason; /* "stop", "length", "tool_calls"; when completed */
	const struct uar_model_tool_call *calls; /* what it wants done before it goes on */
	size_t call_count;
	uar_str actual_model; /* as reported; may be empty */
	struct uar_model_usage usage;
	int64_t retry_after_us; /* what the provider asks to wait; 0: it said nothing */
};

struct uar_model_events {
	void (*text)(void *ctx, uar_str delta);	     /* never empty, whole UTF-8 */
	void (*reasoning)(void *ctx, uar_str delta); /* likewise */
	void (*done)(void *ctx, const struct uar_model_result *result);
	void *ctx;
};

struct uar_model;
struct uar_model_call;
struct uar_model_ops {
	uint32_t abi, size;
	const char *provider; /* "openai", "scripted" */
	void (*destroy)(struct uar_model *m);
	uar_err (*start)(struct uar_model *m, const struct uar_model_request *r,
			 const struct uar_model_events *events, struct uar_model_call **out,
			 struct uar_error *error);
	void (*cancel)(struct uar_model *m,
		       struct uar_model_call *call); /* upstream closed at once */
	void (*pause)(struct uar_model *m, struct uar_model_call *call, bool paused);
};
struct uar_model {
	const struct uar_model_ops *ops;
};
/* Calls under way end without callbacks. NULL is fine. Not from inside a callback. */
void uar_model_destroy(struct uar_model *m);

struct uar_client;
struct uar_model_openai_options {
	struct uar_client *client;
	const char *base_url; /* "https://api.openai.com/v1"; /chat/completions is appended */
	const char *api_key;  /* NULL or empty: no Authorization header */
};
UAR_MUST_CHECK uar_err uar_model_openai_create(const struct uar_model_openai_options *o,
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

#endif
