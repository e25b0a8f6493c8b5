/* tool.h - the port to tools that UAR executes itself.
 *
 * A tool is a function from a JSON object to a JSON value, described by a row that
 * lists and models are shown. What a call may do to the world is declared: it
 * decides whether somebody is asked before it runs, and whether it may be repeated
 * when it is not known how far it came.
 *
 * Callbacks fire from the loop, never inside start; `done` exactly once and last, and
 * not at all after cancel. Strings of callbacks are borrowed. */
#ifndef UAR_TOOL_TOOL_H
#define UAR_TOOL_TOOL_H

#include "base/sched.h"
#include "base/str.h"
#include "event/action.h"
#include "event/sizes.h"
#include "event/record.h"

struct uar_json;

enum uar_tool_effect {
	UAR_TOOL_READ_ONLY,  /* changes nothing: free to run and to repeat */
	UAR_TOOL_IDEMPOTENT, /* twice is as good as once, with the same key */
	UAR_TOOL_ONCE,	     /* must not be repeated without being asked for */
};

/* May it be called at all, whatever the agent's policy says? */
enum uar_tool_state {
	UAR_TOOL_AVAILABLE,
	UAR_TOOL_SANDBOXED,   /* it is, and cannot leave a fence */
	UAR_TOOL_DENIED,      /* switched off for everybody */
	UAR_TOOL_UNAVAILABLE, /* something that it needs is missing; state_reason says what */
};

/* Who brings the result of a call. */
enum uar_tool_by {
	UAR_TOOL_BY_START,    /* uar_tools_ops.start */
	UAR_TOOL_BY_FORM,     /* a person: the arguments are a form (`title`, `schema`) */
	UAR_TOOL_BY_CLIENT,   /* the client of the run, which answers an action */
	UAR_TOOL_BY_ARTIFACT, /* the run keeps what the arguments say as an artifact */
	UAR_TOOL_BY_SEARCH,   /* the run looks among the tools that it has and has not told of */
	UAR_TOOL_BY_NAVIGATE, /* whoever shows the run goes where the arguments say */
};

/* Strings end with 0 and live as long as the tool: that of a registry whose tools change until
 * they do, or longer while it is held (uar_tools_hold). */
struct uar_tool {
	uar_str tool_id;    /* "internal:time.now" */
	uar_str name;	    /* "time.now" */
	uar_str model_name; /* what models call it: [a-zA-Z0-9_-]+, unique */
	uar_str description, version;
	uar_str transport;		     /* "internal", "http", "mcp", "client" */
	uar_str input_schema, output_schema; /* JSON Schema texts; output may be empty */
	uar_str tags;			     /* JSON array of strings */
	/* Each of these four may be empty. */
	uar_str auth;	       /* JSON: what credentials it needs, by name, never their value */
	uar_str capabilities;  /* JSON array of strings, such as "network" */
	uar_str runtime_owner; /* who executes it; empty: UAR itself */
	uar_str state_reason;
	uar_str own_of; /* the agent whose definition brings it along; empty: for every agent */
	struct uar_owner owner; /* for whom alone it is there; no tenant: for everybody */
	enum uar_tool_state state;
	enum uar_tool_effect effect;
	bool destructive; /* what it undoes cannot be brought back */
	bool ask;	  /* somebody has to allow each call */
	bool may_ask;	  /* a call may ask for something: it runs alone */
	enum uar_tool_by by;
	int64_t timeout_us;
};

/* For whom a tool is called. */
struct uar_tool_caller {
	struct uar_owner owner;
	uar_str agent_id, conversation_id; /* empty: none */
	const struct uar_json *memory;	   /* that member of its definition; NULL: none */
	const struct uar_json *agents; /* policy.agents of it: whom it may start; NULL: nobody */
};

struct uar_tool_request {
	const struct uar_tool *tool;
	uar_str input;	/* JSON text that uar_tools_ops.check accepted; copied */
	uar_str key;	/* names the call: the same one again means the same effect */
	uar_str run_id; /* whose call it is; empty: nobody's. What hangs is counted by it */
	const struct uar_tool_caller *caller; /* for the call of start; NULL: not known */
	uar_str sandbox, process_id; /* that were recorded for the process it starts; empty: none */
};

enum uar_tool_part_kind { UAR_TOOL_TEXT, UAR_TOOL_IMAGE, UAR_TOOL_FILE };

/* A piece of what a tool brought that is no JSON. */
struct uar_tool_part {
	enum uar_tool_part_kind kind;
	uar_str text;		  /* TEXT */
	uar_str bytes;		  /* IMAGE, FILE: themselves; empty: `url` says where they are */
	uar_str media_type, name; /* IMAGE, FILE; name may be empty */
	uar_str url;
};

struct uar_tool_result {
	bool ok;
	uar_str output;		   /* JSON text; empty: nothing, or the parts alone */
	uar_str category, message; /* of a failure: failure_category of tool.failed */
	bool retryable;
	const struct uar_tool_part *parts; /* besides the output, in order */
	size_t part_count;
	size_t secrets; /* values of secrets that were hidden in output or message */
};

/* What a call needs of a person while it is under way; one at a time. */
struct uar_tool_question {
	enum uar_action_type type;
	uar_str kind;	    /* "elicitation", "login"; "sampling": the model of the run is asked */
	uar_str prompt;	    /* one line */
	uar_str schema;	    /* JSON Schema of the values; empty: there are none */
	uar_str about;	    /* JSON object that is shown with it; or empty */
	int64_t timeout_us; /* after which it expires; 0: like any other */
};
struct uar_tool_answer {
	enum uar_verdict verdict;
	uar_str values; /* JSON object; or empty */
	uar_str reason; /* why not, for who asked; or empty */
};

struct uar_tool_events {
	void (*progress)(void *ctx, uar_str json); /* may be NULL */
	void (*done)(void *ctx, const struct uar_tool_result *result);
	void *ctx;
	/* NULL: nobody can be asked. uar_tools_ops.answer follows, unless it is over before. */
	void (*asked)(void *ctx, const struct uar_tool_question *q);
	void (*unasked)(void *ctx, bool settled); /* it is not open any more, elsewhere settled */
};

struct uar_tools;     /* a registry of them, or a source for one (registry.h) */
struct uar_tool_call; /* one under way */
struct uar_tools_ops {
	uint32_t abi, size;
	void (*destroy)(struct uar_tools *t); /* calls under way end without callbacks */
	const struct uar_tool *(*at)(struct uar_tools *t, size_t index); /* NULL past the end */
	/* Is it JSON, an object, and what the tool's schema asks for? error->where points into
	 * the input. UAR_EINVALID: not JSON; UAR_ESCHEMA: the schema refuses it. */
	uar_err (*check)(struct uar_tools *t, const struct uar_tool *tool, uar_str input,
			 struct uar_error *error);
	uar_err (*start)(struct uar_tools *t, const struct uar_tool_request *r,
			 const struct uar_tool_events *events, struct uar_tool_call **out,
			 struct uar_error *error);
	/* What is changing something on a worker is finished there, unheard; what has not begun
	 * to will not. */
	void (*cancel)(struct uar_tools *t, struct uar_tool_call *call);
	/* Cancels what has changed nothing so far, and it never will. False: it has, or is about
	 * to, and `done` will tell. */
	bool (*withdraw)(struct uar_tools *t, struct uar_tool_call *call);
	/* NULL, all three: its tools never change. Another number means that they have. */
	uint64_t (*generation)(struct uar_tools *t);
	void (*hold)(struct uar_tools *t, const struct uar_tool *tool);
	void (*let_go)(struct uar_tools *t, const struct uar_tool *tool);
	/* What a person says to the question that is open; NULL: none ever is. */
	void (*answer)(struct uar_tools *t, struct uar_tool_call *call,
		       const struct uar_tool_answer *a);
};
struct uar_tools {
	const struct uar_tools_ops *ops;
};
void uar_tools_destroy(struct uar_tools *t); /* NULL is fine */
uint64_t uar_tools_generation(struct uar_tools *t);
/* Keeps a tool in place, also when it leaves the registry, until it is let go. NULL is fine. */
void uar_tools_hold(struct uar_tools *t, const struct uar_tool *tool);
void uar_tools_let_go(struct uar_tools *t, const struct uar_tool *tool);
/* Is the tool there for that owner? NULL: for everybody. */
bool uar_tool_is_for(const struct uar_tool *t, const struct uar_owner *owner);
/* Among those that are there for the owner; NULL: unknown. */
const struct uar_tool *uar_tools_find(struct uar_tools *t, const struct uar_owner *owner,
				      uar_str tool_id);
const struct uar_tool *uar_tools_by_model_name(struct uar_tools *t, const struct uar_owner *owner,
					       uar_str name);
const char *uar_tool_effect_name(enum uar_tool_effect e); /* "once" */
enum uar_tool_effect uar_tool_effect_parse(uar_str name); /* what is not known is done once */
/* Members of an object: what is declared of a tool and what follows from it. `policy`: allowed,
 * ask, denied, sandboxed or unavailable. */
struct uar_jw;
void uar_tool_write_rules(struct uar_jw *w, const struct uar_tool *t, const char *policy);
/* Does a pattern of a policy name the tool? "internal:fs.*": '*' stands for any text. */
bool uar_tool_matches(const struct uar_tool *tool, uar_str pattern);
/* What models call the tool of that id: ':' becomes "__", whatever a name must not have
 * '_'. Of two ids that would be called the same the later one gets a number. */
void uar_tool_name_for_models(uar_str tool_id, bool (*taken)(void *ctx, uar_str name), void *ctx,
			      char out[UAR_LIMIT_TOOL_NAME + 1]);

/* The tools that are part of the program (docs/tools.md). */
struct uar_internal_tools_options {
	struct uar_sched *sched;
	const char *files_dir; /* what the fs.* tools see; NULL: there are none of them */
	/* Whose calls see that directory; each other user has one of its own, OTHERS_DIR and a
	 * hash. NULL: all calls do. */
	const struct uar_owner *owner; /* copied */
	const char *others_dir;
	const char *skills_dir; /* what skill.read sees; NULL: there is no such tool */
};
UAR_MUST_CHECK uar_err uar_internal_tools_create(const struct uar_internal_tools_options *o,
						 struct uar_tools **out, struct uar_error *error);

#endif
