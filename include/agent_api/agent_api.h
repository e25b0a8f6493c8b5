/* agent_api.h - one way to run any coding agent from C or C++.
 *
 * A program links libagent_api, registers the backends it wants in a gateway,
 * and starts runs. A run is an event stream plus a completion. Nothing else is
 * needed: no server, no event loop, no signal handler.
 *
 *	uaa_gateway *gw = uaa_gateway_new();
 *	uaa_backend *be = uaa_claude_code_backend_new(NULL);
 *	uaa_gateway_register(gw, be, NULL);
 *	uaa_gateway_run(gw, kind, request, &run, &error);
 *	uaa_run_collect(run, on_event, ctx, &result, &error);
 *
 * THE ELEVEN ITEMS OF THE CONTRACT
 *	AgentWrapperBackend       uaa_backend (+ uaa_backend_ops to write one)
 *	AgentWrapperCapabilities  uaa_caps
 *	AgentWrapperCompletion    uaa_completion
 *	AgentWrapperError         uaa_error (+ uaa_status, its five kinds)
 *	AgentWrapperEvent         uaa_event
 *	AgentWrapperEventKind     uaa_event_kind
 *	AgentWrapperGateway       uaa_gateway
 *	AgentWrapperKind          uaa_kind
 *	AgentWrapperRunHandle     uaa_run
 *	AgentWrapperRunRequest    uaa_request
 *	AgentWrapperRunResult     uaa_run_result
 *
 * OWNERSHIP  What a `_new` function or an out parameter gives is the caller's,
 *	to be given back with the matching `_unref`, which accepts NULL. What a
 *	getter gives is borrowed until its owner is unref'd. Inputs are copied
 *	before the call returns. Out parameters are written on success only.
 * ERRORS  A status is returned; the optional `uaa_error **` (NULL is fine) gets
 *	the details when the status is one of the five UAA_E_ kinds of the
 *	contract, or UAA_E_ARG, whose message names the argument. Messages are safe
 *	to show and to log: they never contain output of a backend, values of a
 *	request, paths or provider text.
 * NULL  Every function accepts NULL wherever it takes a pointer. A getter then gives
 *	the neutral value (absent, 0, false, -1, UAA_EV_UNKNOWN, UAA_CAUSE_UNKNOWN), a
 *	function without result does nothing, and one that cannot do without the value
 *	returns UAA_E_ARG or NULL. NULL as an error means that there was no memory for one.
 * THREADS  Any function may be called from any thread, with these exceptions:
 *	uaa_gateway_register must not run beside other calls on that gateway, a
 *	uaa_request is used by one thread at a time, one thread at a time calls
 *	uaa_run_next on a run, and an object must not be used after its last unref.
 * PROCESS  The library never changes the environment, the working directory,
 *	signal dispositions or the signal mask of the host process, and reaps only
 *	the one child (the supervisor) that each run starts. It must not be
 *	unloaded while runs are alive (it is linked with -z nodelete). Every
 *	process of a run dies when the run ends, is cancelled or the host dies.
 *	If the supervisor itself is killed, the same holds where a control group
 *	could be made for the run; else processes that detached themselves may
 *	survive, and the run's last event and its error say so (of a run that was
 *	cancelled, which has no events any more, its error alone).
 * ABI  Types are opaque, enum values are never reused, structures that the
 *	caller fills start with struct_size and grow at the end only; begin with the
 *	UAA_..._INIT of their type. One that is larger than the library knows is taken
 *	when the rest is zero, and refused otherwise. Treat event kinds you do not know
 *	as UAA_EV_UNKNOWN. `pkg-config --variable=abi_version agent_api` says
 *	MAJOR.MINOR of what is installed. */
#ifndef AGENT_API_AGENT_API_H
#define AGENT_API_AGENT_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define UAA_API __attribute__((visibility("default")))
#else
#define UAA_API
#endif

#define UAA_ABI_MAJOR 1
#define UAA_ABI_MINOR 3

/* What a call says. 1..5 are the contract's errors; 100 and up exist in C only. */
typedef enum uaa_status {
	UAA_OK = 0,
	UAA_E_UNKNOWN_BACKEND = 1,	  /* no backend registered for that kind */
	UAA_E_UNSUPPORTED_CAPABILITY = 2, /* the backend does not offer that operation */
	UAA_E_INVALID_AGENT_KIND = 3,	  /* not a well-formed kind */
	UAA_E_INVALID_REQUEST = 4,	  /* a value of the request is wrong */
	UAA_E_BACKEND = 5,		  /* the run itself failed */
	UAA_AGAIN = 100,		  /* nothing yet (time-out of the call passed) */
	UAA_EOS = 101,			  /* the event stream has ended */
	UAA_E_NOMEM = 102,		  /* out of memory */
	UAA_E_ARG = 103			  /* NULL or nonsense where a value is required */
} uaa_status;

/* Why a run failed, as far as it is known; its message says the same in words. Later
 * versions may know more. */
typedef enum uaa_cause {
	UAA_CAUSE_UNKNOWN = 0,
	UAA_CAUSE_CANCELLED = 1,
	UAA_CAUSE_TIMEOUT = 2,	   /* the run's, or a silence that lasted too long */
	UAA_CAUSE_AUTH = 3,	   /* the provider does not accept the credentials */
	UAA_CAUSE_RATE = 4,	   /* the provider asks to slow down */
	UAA_CAUSE_MODEL = 5,	   /* the model was refused */
	UAA_CAUSE_CONTEXT = 6,	   /* too much for the model */
	UAA_CAUSE_TURNS = 7,	   /* as many turns as it may take */
	UAA_CAUSE_PROVIDER = 8,	   /* another failure of the provider */
	UAA_CAUSE_TURN = 9,	   /* the agent says that it failed, and not why */
	UAA_CAUSE_NO_SESSION = 10, /* what was to be continued is not there */
	UAA_CAUSE_SESSION_IN_USE = 11,
	UAA_CAUSE_NO_PROGRAM = 12,   /* the program was not found */
	UAA_CAUSE_NO_DIRECTORY = 13, /* its working directory cannot be entered */
	/* since minor 3 */
	UAA_CAUSE_CRASH = 14,	   /* the program ended without its last word: uaa_error_exited */
	UAA_CAUSE_TERMINATION = 15 /* processes of the run may still be there */
} uaa_cause;

typedef enum uaa_event_kind {
	UAA_EV_TEXT_OUTPUT = 1, /* text: set, message: absent */
	UAA_EV_TOOL_CALL = 2,	/* text: absent */
	UAA_EV_TOOL_RESULT = 3, /* text: absent */
	UAA_EV_STATUS = 4,	/* message: normally set, text: absent */
	UAA_EV_ERROR = 5,	/* message: set and safe to show, text: absent */
	UAA_EV_UNKNOWN = 6	/* something the backend could not classify */
} uaa_event_kind;

/* Text that is lent. ptr NULL means absent; otherwise ptr[len] is 0, but len is
 * what counts: text may contain NUL. As an input ptr need not be terminated. */
typedef struct uaa_str {
	const char *ptr;
	size_t len;
} uaa_str;

/* The value to begin with: its size is set, the rest is zero. */
#ifdef __cplusplus
#define UAA_INIT(TYPE)                                                                             \
	([] {                                                                                      \
		TYPE value{};                                                                      \
		value.struct_size = sizeof value;                                                  \
		return value;                                                                      \
	}())
#else
#define UAA_INIT(TYPE)                                                                             \
	{                                                                                          \
		.struct_size = sizeof(TYPE)                                                        \
	}
#endif
#define UAA_CODEX_CONFIG_INIT	    UAA_INIT(uaa_codex_config)
#define UAA_CLAUDE_CODE_CONFIG_INIT UAA_INIT(uaa_claude_code_config)
#define UAA_ACP_CONFIG_INIT	    UAA_INIT(uaa_acp_config)
#define UAA_PROCESS_OPTIONS_INIT    UAA_INIT(uaa_process_options)
#define UAA_MCP_REQUEST_INIT	    UAA_INIT(uaa_mcp_request)
#define UAA_BACKEND_OPS_INIT	    UAA_INIT(uaa_backend_ops)
#define UAA_PRODUCER_HOOKS_INIT	    UAA_INIT(uaa_producer_hooks)

typedef struct uaa_gateway uaa_gateway;
typedef struct uaa_backend uaa_backend;
typedef struct uaa_request uaa_request;
typedef struct uaa_run uaa_run;
typedef struct uaa_cancel uaa_cancel;
typedef struct uaa_event uaa_event;
typedef struct uaa_completion uaa_completion;
typedef struct uaa_error uaa_error;
typedef struct uaa_caps uaa_caps;
typedef struct uaa_kind uaa_kind;

/* What a whole run gave. */
typedef struct uaa_run_result {
	uaa_completion *completion; /* owned: uaa_completion_unref */
} uaa_run_result;

/* A run with the handle to cancel it by; both owned. */
typedef struct uaa_controlled_run {
	uaa_run *run;
	uaa_cancel *cancel;
} uaa_controlled_run;

/* Bounds of the envelope, in bytes of UTF-8. */
enum {
	UAA_MAX_CHANNEL = 128,	  /* longer: the channel is absent */
	UAA_MAX_TEXT = 65536,	  /* longer: split into several events */
	UAA_MAX_MESSAGE = 4096,	  /* longer: cut, with the suffix "…(truncated)" */
	UAA_MAX_DATA = 65536,	  /* larger: replaced by {"dropped":{"reason":"oversize"}} */
	UAA_MAX_SESSION_ID = 1024 /* longer: counts as unknown */
};

/* The version of this interface that was built: (major << 16) | minor. */
UAA_API uint32_t uaa_abi_version(void);

/* "UAA_E_ARG"; of a number that is none a text that says so. Since minor 3. */
UAA_API const char *uaa_status_name(uaa_status status);

/* A uaa_str of a C string (NULL: absent). */
UAA_API uaa_str uaa_str_c(const char *text);

/* Frees memory that a function of this library says is freed with it. */
UAA_API void uaa_free(void *memory);

/* --- kinds ---------------------------------------------------------------- */

/* Makes a kind from its id, which must match ^[a-z][a-z0-9_]*$ and have at most
 * 128 bytes. UAA_E_INVALID_AGENT_KIND otherwise. */
UAA_API uaa_status uaa_kind_new(uaa_str id, uaa_kind **out, uaa_error **error);
/* The id, unchanged. */
UAA_API uaa_str uaa_kind_str(const uaa_kind *kind);
/* Kinds compare, order and hash by their id, bytewise: <0, 0, >0. */
UAA_API int uaa_kind_compare(const uaa_kind *a, const uaa_kind *b);
UAA_API uint64_t uaa_kind_hash(const uaa_kind *kind);
UAA_API uaa_kind *uaa_kind_ref(uaa_kind *kind);
UAA_API void uaa_kind_unref(uaa_kind *kind);

/* --- capabilities --------------------------------------------------------- */

/* An ordered set of capability ids. Membership is exact: no id implies another. */
UAA_API uaa_caps *uaa_caps_new(void);
/* Adds an id; adding it twice changes nothing. Only before the set is shared.
 * UAA_E_ARG for an id that is not `agent_api.x` or `backend.<kind>.x`. */
UAA_API uaa_status uaa_caps_add(uaa_caps *caps, uaa_str id);
UAA_API bool uaa_caps_contains(const uaa_caps *caps, uaa_str id);
UAA_API size_t uaa_caps_count(const uaa_caps *caps);
/* The ids in bytewise order; absent past the end. */
UAA_API uaa_str uaa_caps_at(const uaa_caps *caps, size_t index);
UAA_API uaa_caps *uaa_caps_ref(uaa_caps *caps);
UAA_API void uaa_caps_unref(uaa_caps *caps);

/* --- errors --------------------------------------------------------------- */

/* Which of the five kinds it is; UAA_E_NOMEM for NULL. */
UAA_API uaa_status uaa_error_code(const uaa_error *error);
/* Of UAA_E_BACKEND; UAA_CAUSE_UNKNOWN for the others and for NULL. */
UAA_API uaa_cause uaa_error_cause(const uaa_error *error);
/* How the agent's program ended, as far as that is known: at most one is true. Since minor 3. */
UAA_API bool uaa_error_exited(const uaa_error *error, int *out_code);
UAA_API bool uaa_error_signaled(const uaa_error *error, int *out_signal);
/* What the agent itself said about its failure, or else the end of its stderr, at most
 * UAA_MAX_MESSAGE bytes of UTF-8. NOT safe to show to others: it may hold provider text, paths and
 * secrets. Absent unless uaa_process_options.keep_words asked for it. Since minor 3. */
UAA_API uaa_str uaa_error_words(const uaa_error *error);
/* Names, separated by ", ", of variables of the host that look like credentials or addresses of
 * providers and that UAA_ENV_ALLOWLIST kept from the agent; absent when there are none. Since
 * minor 3. */
UAA_API uaa_str uaa_error_withheld(const uaa_error *error);
/* The fields of its kind; absent for the others: agent_kind (unknown backend,
 * unsupported capability), capability (unsupported capability), message (the rest). */
UAA_API uaa_str uaa_error_agent_kind(const uaa_error *error);
UAA_API uaa_str uaa_error_capability(const uaa_error *error);
UAA_API uaa_str uaa_error_message(const uaa_error *error);
/* One line for a person, in which control characters are written as \u00xx:
 *	unknown backend: <kind>
 *	unsupported capability for <kind>: <capability>
 *	invalid agent kind: <message>
 *	invalid request: <message>
 *	backend error: <message>
 *	invalid argument: <message> */
UAA_API uaa_str uaa_error_display(const uaa_error *error);
UAA_API uaa_error *uaa_error_ref(uaa_error *error);
UAA_API void uaa_error_unref(uaa_error *error);
/* For writers of backends. `agent_kind` and `capability` or `message` as the
 * code demands; a message longer than UAA_MAX_MESSAGE is cut. NULL when out of memory. */
UAA_API uaa_error *uaa_error_new(uaa_status code, uaa_str agent_kind,
				 uaa_str capability_or_message);

/* --- requests ------------------------------------------------------------- */

/* An empty request: no prompt, nothing else set. */
UAA_API uaa_request *uaa_request_new(void);
UAA_API void uaa_request_unref(uaa_request *request);
/* A second one with the same values; NULL when out of memory. Since minor 3. */
UAA_API uaa_request *uaa_request_copy(const uaa_request *request);
/* Setters copy. UAA_E_ARG for ill-formed UTF-8, an environment name that is
 * empty or contains '=' or NUL, or text that is not JSON; UAA_E_NOMEM. */
UAA_API uaa_status uaa_request_set_prompt(uaa_request *request, uaa_str prompt);
/* Relative to the working directory of the host when the run starts. */
UAA_API uaa_status uaa_request_set_working_dir(uaa_request *request, uaa_str dir);
/* Wall clock from the start of the run; 0: explicitly none. Never set: the
 * backend's default, and if that has none either, none. */
UAA_API uaa_status uaa_request_set_timeout_ms(uaa_request *request, int64_t ms);
/* For the backend's processes only; wins over the backend's env key by key. */
UAA_API uaa_status uaa_request_set_env(uaa_request *request, uaa_str name, uaa_str value);
/* An option: a namespaced key and its JSON value. Keys that the backend's
 * capabilities do not contain make the run fail with UAA_E_UNSUPPORTED_CAPABILITY. */
UAA_API uaa_status uaa_request_set_extension_json(uaa_request *request, uaa_str key, uaa_str json);
/* Getters, for writers of backends. Both maps are in bytewise order of their keys. */
UAA_API uaa_str uaa_request_prompt(const uaa_request *request);
UAA_API uaa_str uaa_request_working_dir(const uaa_request *request);
UAA_API bool uaa_request_timeout_ms(const uaa_request *request, int64_t *out_ms);
UAA_API size_t uaa_request_env_count(const uaa_request *request);
UAA_API bool uaa_request_env_at(const uaa_request *request, size_t index, uaa_str *out_name,
				uaa_str *out_value);
UAA_API size_t uaa_request_extension_count(const uaa_request *request);
UAA_API bool uaa_request_extension_at(const uaa_request *request, size_t index, uaa_str *out_key,
				      uaa_str *out_json);
/* The value of one extension key, absent when it is not set. */
UAA_API uaa_str uaa_request_extension(const uaa_request *request, uaa_str key);

/* --- gateway -------------------------------------------------------------- */

/* An empty gateway. */
UAA_API uaa_gateway *uaa_gateway_new(void);
UAA_API uaa_gateway *uaa_gateway_ref(uaa_gateway *gateway);
UAA_API void uaa_gateway_unref(uaa_gateway *gateway);
/* Adds a backend and takes its own reference. UAA_E_INVALID_REQUEST when one of
 * that kind is there already (which stays) or when its capabilities lack
 * agent_api.run or agent_api.events. */
UAA_API uaa_status uaa_gateway_register(uaa_gateway *gateway, uaa_backend *backend,
					uaa_error **error);
/* A new reference to the backend of that kind, or NULL. */
UAA_API uaa_backend *uaa_gateway_backend(uaa_gateway *gateway, const uaa_kind *kind);
/* Finds the backend (UAA_E_UNKNOWN_BACKEND before anything else), checks the
 * request and starts the run. The checks come in this order, all before any
 * process is started: prompt not blank; every extension key in the capabilities
 * (in order of the keys); the model; the other values; contradictions.
 * What goes wrong after that is told by the run itself. */
UAA_API uaa_status uaa_gateway_run(uaa_gateway *gateway, const uaa_kind *kind,
				   const uaa_request *request, uaa_run **out, uaa_error **error);
/* The same with a handle to cancel by. UAA_E_UNSUPPORTED_CAPABILITY when the
 * backend lacks agent_api.control.cancel.v1. */
UAA_API uaa_status uaa_gateway_run_control(uaa_gateway *gateway, const uaa_kind *kind,
					   const uaa_request *request, uaa_controlled_run *out,
					   uaa_error **error);

/* --- runs ----------------------------------------------------------------- */

/* A descriptor to poll for reading. It is readable when uaa_run_next would give
 * an event or UAA_EOS, or when the completion has resolved. Only poll it; it
 * belongs to the run. -1 when the system is out of descriptors. */
UAA_API int uaa_run_fd(uaa_run *run);
/* The next event in the order the backend made them. Waits up to timeout_ms
 * (0: not at all, <0: without limit). UAA_OK, UAA_AGAIN or UAA_EOS. */
UAA_API uaa_status uaa_run_next(uaa_run *run, int timeout_ms, uaa_event **out);
/* No more events are wanted: the rest is dropped and the completion no longer
 * waits for them to be read. The backend goes on. Idempotent. */
UAA_API void uaa_run_close_events(uaa_run *run);
/* The result. Resolves once, not before the backend's processes are gone and
 * the caller has received UAA_EOS (or closed the events); so without reading or
 * closing the events this waits by design. UAA_AGAIN until then; UAA_OK and a
 * completion when the backend saw its agent finish; otherwise UAA_E_BACKEND (or
 * another of the five) and an error. Every call gives the same object. */
UAA_API uaa_status uaa_run_wait(uaa_run *run, int timeout_ms, uaa_completion **out,
				uaa_error **error);
/* Reads all events (on_event may be NULL; the event is lent) and waits. */
UAA_API uaa_status uaa_run_collect(uaa_run *run,
				   void (*on_event)(void *ctx, const uaa_event *event), void *ctx,
				   uaa_run_result *out, uaa_error **error);
UAA_API uaa_run *uaa_run_ref(uaa_run *run);
/* Dropping the last reference of a run that has not resolved is a hint to
 * cancel it: its processes are stopped in the background. Never blocks. */
UAA_API void uaa_run_unref(uaa_run *run);

/* Stops the run: no further event is delivered, buffered ones are dropped, the
 * stream ends now, the processes are stopped (politely, then by force), and the
 * completion resolves as backend error "cancelled" when they are gone, or
 * "termination failed" when they could not be stopped. Idempotent; nothing
 * happens once the completion has resolved. Works after the run was unref'd. */
UAA_API void uaa_cancel_request(uaa_cancel *cancel);
UAA_API uaa_cancel *uaa_cancel_ref(uaa_cancel *cancel);
UAA_API void uaa_cancel_unref(uaa_cancel *cancel);

/* Answers to "approval required". Such a Status event exists only when the run
 * has agent_api.exec.non_interactive=false and the backend offers
 * agent_api.control.respond.v1. Its data is
 *	{"schema":"agent_api.control.respond.v1","approval":{"id":s,"kind":s,
 *	 "tool_name":s|null,"tool_use_id":s|null}}
 * An approval that is not answered in time (approval_ms) is denied. */
typedef enum uaa_decision {
	UAA_DECISION_ALLOW = 1,
	UAA_DECISION_ALLOW_FOR_SESSION = 2, /* this and its like; ALLOW where unknown */
	UAA_DECISION_DENY = 3
} uaa_decision;
/* UAA_E_INVALID_REQUEST for an approval that is unknown or answered already. */
UAA_API uaa_status uaa_run_respond(uaa_run *run, uaa_str approval_id, uaa_decision decision,
				   uaa_error **error);
/* What is to be approved, as JSON text of the backend's own shape. It is the one
 * call that hands out the backend's payload, on purpose and only here: show it to
 * the person who decides, do not log it. Free with uaa_free. UAA_E_INVALID_REQUEST
 * as above. */
UAA_API uaa_status uaa_run_approval_input(uaa_run *run, uaa_str approval_id, char **out_json,
					  size_t *out_len, uaa_error **error);

/* --- events --------------------------------------------------------------- */

UAA_API uaa_event_kind uaa_event_get_kind(const uaa_event *event);
UAA_API uaa_str uaa_event_agent_kind(const uaa_event *event);
UAA_API uaa_str uaa_event_channel(const uaa_event *event);
UAA_API uaa_str uaa_event_text(const uaa_event *event);
UAA_API uaa_str uaa_event_message(const uaa_event *event);
/* Compact JSON text, absent when the event has no data. */
UAA_API uaa_str uaa_event_data_json(const uaa_event *event);
UAA_API uaa_event *uaa_event_ref(uaa_event *event);
UAA_API void uaa_event_unref(uaa_event *event);

/* --- completions ---------------------------------------------------------- */

/* How the backend's process ended: exactly one of the two is true. */
UAA_API bool uaa_completion_exited(const uaa_completion *completion, int *out_code);
UAA_API bool uaa_completion_signaled(const uaa_completion *completion, int *out_signal);
/* The agent's last complete message; absent when it cannot be told for certain. */
UAA_API uaa_str uaa_completion_final_text(const uaa_completion *completion);
/* Compact JSON text or absent. */
UAA_API uaa_str uaa_completion_data_json(const uaa_completion *completion);
UAA_API uaa_completion *uaa_completion_ref(uaa_completion *completion);
UAA_API void uaa_completion_unref(uaa_completion *completion);

/* --- management of MCP servers (no run) ----------------------------------- */

typedef enum uaa_mcp_op {
	UAA_MCP_LIST = 0,  /* agent_api.tools.mcp.list.v1 */
	UAA_MCP_GET = 1,   /* agent_api.tools.mcp.get.v1 */
	UAA_MCP_ADD = 2,   /* agent_api.tools.mcp.add.v1, by configuration only */
	UAA_MCP_REMOVE = 3 /* agent_api.tools.mcp.remove.v1, by configuration only */
} uaa_mcp_op;

typedef struct uaa_env_pair {
	uaa_str name, value;
} uaa_env_pair;

/* Zeroed = absent. `name` for all but list; for add either `command` (program
 * first) or `url`. timeout_ms 0 fails at once, <0 is none. */
typedef struct uaa_mcp_request {
	size_t struct_size;
	uaa_mcp_op op;
	uaa_str name;
	const uaa_str *command;
	size_t command_count;
	const uaa_env_pair *server_env; /* of the server that is added */
	size_t server_env_count;
	uaa_str url;		      /* absolute http or https */
	uaa_str bearer_token_env_var; /* a name, never expanded */
	uaa_str working_dir;
	int64_t timeout_ms;
	const uaa_env_pair *env; /* of the CLI's own process */
	size_t env_count;
} uaa_mcp_request;

typedef struct uaa_mcp_result uaa_mcp_result;
/* Any exit status is a result. stdout and stderr are decoded as UTF-8 with
 * U+FFFD for what is not, and cut at 65,536 bytes with the suffix. */
UAA_API bool uaa_mcp_result_exited(const uaa_mcp_result *result, int *out_code);
UAA_API bool uaa_mcp_result_signaled(const uaa_mcp_result *result, int *out_signal);
UAA_API uaa_str uaa_mcp_result_stdout(const uaa_mcp_result *result, bool *out_truncated);
UAA_API uaa_str uaa_mcp_result_stderr(const uaa_mcp_result *result, bool *out_truncated);
UAA_API void uaa_mcp_result_unref(uaa_mcp_result *result);
/* UAA_E_UNKNOWN_BACKEND, then UAA_E_UNSUPPORTED_CAPABILITY, then the values. UAA_E_BACKEND when the
 * call itself failed: uaa_error_cause says why. */
UAA_API uaa_status uaa_gateway_mcp(uaa_gateway *gateway, const uaa_kind *kind,
				   const uaa_mcp_request *request, uaa_mcp_result **out,
				   uaa_error **error);

/* --- backends ------------------------------------------------------------- */

/* The functions of a backend that somebody writes. struct_size and abi (use
 * uaa_abi_version()) come first. kind and caps must always give the same
 * answer. run is called with a request whose prompt and keys have been checked;
 * it checks values, makes a run with uaa_run_new and returns. run_control may be
 * NULL: cancel handles are then made from what run gives, when the capabilities
 * contain agent_api.control.cancel.v1. mcp may be NULL. destroy may be NULL and
 * is called once, when the last reference goes. All may be called from any thread. */
typedef struct uaa_backend_ops {
	size_t struct_size;
	uint32_t abi;
	uaa_str (*kind)(void *self);
	const uaa_caps *(*caps)(void *self);
	uaa_status (*run)(void *self, const uaa_request *request, uaa_run **out, uaa_error **error);
	uaa_status (*run_control)(void *self, const uaa_request *request, uaa_controlled_run *out,
				  uaa_error **error);
	uaa_status (*mcp)(void *self, const uaa_mcp_request *request, uaa_mcp_result **out,
			  uaa_error **error);
	void (*destroy)(void *self);
} uaa_backend_ops;

/* NULL when out of memory or when the ops are unusable (wrong abi, no kind, caps
 * or run, a kind that is not well formed); self is then still the caller's. */
UAA_API uaa_backend *uaa_backend_new(const uaa_backend_ops *ops, void *self);
UAA_API uaa_str uaa_backend_kind(const uaa_backend *backend);
UAA_API const uaa_caps *uaa_backend_caps(const uaa_backend *backend);
/* Like uaa_gateway_run without the look-up. */
UAA_API uaa_status uaa_backend_run(uaa_backend *backend, const uaa_request *request, uaa_run **out,
				   uaa_error **error);
UAA_API uaa_backend *uaa_backend_ref(uaa_backend *backend);
UAA_API void uaa_backend_unref(uaa_backend *backend);

/* The other end of a run, for writers of backends. */
typedef struct uaa_producer uaa_producer;

typedef struct uaa_event_spec {
	uaa_event_kind kind;
	uaa_str channel, text, message;
	uaa_str data_json;
} uaa_event_spec;

/* Called at most once each and never after the producer has finished, with a
 * lock held: they must only take note (set a flag, wake a thread). */
typedef struct uaa_producer_hooks {
	size_t struct_size;
	void (*cancel)(void *ctx);	  /* cancel was asked for, or the run dropped */
	void (*events_closed)(void *ctx); /* nobody reads the events any more */
} uaa_producer_hooks;

UAA_API uaa_status uaa_run_new(uaa_str kind, const uaa_producer_hooks *hooks, void *ctx,
			       uaa_run **out, uaa_producer **out_producer);
/* Emits one event (several when text is split) and applies all bounds and the
 * rules of its kind. Never loses an event: beyond a bound of memory the queue
 * continues in an unlinked file, and only when that is impossible the call
 * waits for the reader. UAA_EOS: nobody listens any more (not an error). */
UAA_API uaa_status uaa_producer_emit(uaa_producer *producer, const uaa_event_spec *event);
/* Ends the run; call exactly one of the three, once, after the process is gone.
 * `wait_status` is as waitpid gives it. */
UAA_API void uaa_producer_succeed(uaa_producer *producer, int wait_status, uaa_str final_text,
				  uaa_str data_json);
UAA_API void uaa_producer_fail(uaa_producer *producer, uaa_str message);
/* The same, and uaa_error_cause says why. */
UAA_API void uaa_producer_fail_as(uaa_producer *producer, uaa_cause cause, uaa_str message);
/* Gives the producer's reference back (fails the run if it was not ended). */
UAA_API void uaa_producer_unref(uaa_producer *producer);

/* --- backends that come with the library ---------------------------------- */

/* Which variables the child inherits from the host: the usual harmless ones plus
 * those that belong to its CLI (default), all of them, or none. */
enum { UAA_ENV_ALLOWLIST = 0, UAA_ENV_ALL = 1, UAA_ENV_NONE = 2 };

/* For who looks for the reason of a failure: what passes between the library and the agent's
 * program, unredacted. `run` only tells runs apart. Since minor 3. */
typedef enum uaa_trace_kind {
	UAA_TRACE_START = 1, /* a word of its command line, program first; one call each */
	UAA_TRACE_STDIN = 2, /* bytes as they are written, read and read */
	UAA_TRACE_STDOUT = 3,
	UAA_TRACE_STDERR = 4,
	UAA_TRACE_END = 5 /* "exit 1", "signal 9", "spawn failed", "lost" */
} uaa_trace_kind;
typedef struct uaa_trace {
	size_t struct_size;
	uaa_trace_kind kind;
	uaa_str agent_kind;
	const uaa_run *run;
	uaa_str bytes;
} uaa_trace;
/* Called on the run's own thread, which waits for it; everything is lent. It must not call
 * functions of this library on that run. */
typedef void uaa_trace_fn(void *ctx, const uaa_trace *trace);

/* Limits and times of the machinery; zero = the default in brackets. */
typedef struct uaa_process_options {
	size_t struct_size;
	uaa_str supervisor;	 /* path of agent-api-supervisor [found beside the library] */
	int64_t interrupt_ms;	 /* from a polite cancel to SIGTERM [2000] */
	int64_t terminate_ms;	 /* from SIGTERM to killing the tree [3000] */
	int64_t kill_ms;	 /* until "termination failed" [10000] */
	int64_t after_result_ms; /* a process may stay after its last word [10000] */
	int64_t start_ms;	 /* for the first answer of a dialogue [60000] */
	int64_t approval_ms;	 /* for an answer to an approval [300000] */
	int64_t idle_ms;	 /* without any output: time-out [none] */
	uint64_t line_bytes;	 /* longest line of the CLI [16 MiB] */
	uint64_t queue_bytes;	 /* events in memory before they go to a file [1 MiB] */
	uint64_t spill_bytes;	 /* events in that file before the CLI has to wait [4 GiB] */
	/* since minor 3 */
	uaa_trace_fn *trace; /* hears what passes [nobody] */
	void *trace_ctx;
	uaa_str cgroup;	 /* directory of a control group (version 2) in which each run gets one
			  * [that of the host, where it may be written]; empty: none */
	bool keep_words; /* errors have uaa_error_words [no] */
} uaa_process_options;

/* All configurations: UAA_..._CONFIG_INIT is the defaults.
 * Everything is copied. NULL from a constructor: out of memory, a config of
 * unknown size, a number that names nothing, or a value that is not UTF-8. The
 * env list is on top of what is inherited (read once, here). default_timeout_ms: <= 0 is none. */

/* OpenAI Codex. Kind "codex". */
enum { UAA_CODEX_AUTO = 0, UAA_CODEX_APP_SERVER = 1, UAA_CODEX_EXEC = 2 };
typedef struct uaa_codex_config {
	size_t struct_size;
	uaa_str binary;	    /* ["codex" on PATH] */
	uaa_str codex_home; /* CODEX_HOME of the child */
	int64_t default_timeout_ms;
	uaa_str default_working_dir;
	const uaa_env_pair *env;
	size_t env_count;
	uint32_t inherit_env;
	uint32_t transport; /* AUTO: app-server, and exec --json where there is none */
	bool allow_external_sandbox_exec;
	bool allow_mcp_write;
	const uaa_process_options *process;
} uaa_codex_config;

/* Claude Code. Kind "claude_code". */
typedef struct uaa_claude_code_config {
	size_t struct_size;
	uaa_str binary; /* ["claude" on PATH] */
	int64_t default_timeout_ms;
	uaa_str default_working_dir;
	const uaa_env_pair *env;
	size_t env_count;
	uint32_t inherit_env;
	uaa_str claude_home;	 /* CLAUDE_CONFIG_DIR of the child */
	uaa_str permission_mode; /* of non-interactive runs: "default" (what would need a
				  * question is denied), "acceptEdits", "dontAsk", "plan",
				  * "bypassPermissions" */
	bool allow_external_sandbox_exec;
	bool allow_mcp_write;
	const uaa_process_options *process;
	bool report_hooks; /* since minor 2: Status events tell of the user's hooks; needs a CLI
			    * that knows --include-hook-events */
} uaa_claude_code_config;

/* Any agent that speaks the Agent Client Protocol. */
typedef struct uaa_acp_config {
	size_t struct_size;
	uaa_str kind;	/* ["acp"] */
	uaa_str binary; /* required */
	const uaa_str *args;
	size_t arg_count;
	int64_t default_timeout_ms;
	uaa_str default_working_dir;
	const uaa_env_pair *env;
	size_t env_count;
	uint32_t inherit_env;
	bool can_resume;   /* advertise agent_api.session.resume.v1 */
	bool can_fork;	   /* advertise agent_api.session.fork.v1 */
	bool can_add_dirs; /* advertise agent_api.exec.add_dirs.v1 */
	const uaa_process_options *process;
} uaa_acp_config;

/* Each exists only in a library built with that backend (AGENT_API_CODEX,
 * AGENT_API_CLAUDE_CODE, AGENT_API_ACP); see uaa_has_backend. config may be NULL
 * for the first two. */
UAA_API uaa_backend *uaa_codex_backend_new(const uaa_codex_config *config);
UAA_API uaa_backend *uaa_claude_code_backend_new(const uaa_claude_code_config *config);
UAA_API uaa_backend *uaa_acp_backend_new(const uaa_acp_config *config);
/* Was the library built with "codex", "claude_code" or "acp"? */
UAA_API bool uaa_has_backend(uaa_str name);

#ifdef __cplusplus
}
#endif
#endif
