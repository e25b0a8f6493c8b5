/* definition.h - an agent definition: read, checked against the published schema, named by
 * the digest of what it says. Data alone; what it says is done elsewhere. */
#ifndef UAR_AGENT_DEFINITION_H
#define UAR_AGENT_DEFINITION_H

#include "base/sha256.h"
#include "event/agent.h"
#include "json/json.h"

struct uar_definition_rule {
	uar_str kind, tool; /* empty: any; tool may hold '*' */
	enum uar_verdict verdict;
};

struct uar_definition_policy { /* policy.approvals of a program */
	enum uar_verdict fallback;
	struct uar_definition_rule *rules;
	size_t rule_count;
	int64_t timeout_us; /* 0: questions wait */
};

/* How to start the program. Empty strings: the program's own default. */
struct uar_definition_backend {
	uar_str program, model, working_dir, home;
	uar_str approval_policy, sandbox_mode, transport, inherit_env;
	uar_str *args, *add_dirs, *pass_env;
	size_t arg_count, add_dir_count, pass_env_count;
	uar_str (*env)[2];
	size_t env_count;
	int64_t start_us, idle_us;
	bool allow_working_dir, can_resume, can_fork, report_hooks;
};

struct uar_definition_model {
	uar_str provider, model; /* both empty: the server's default */
};

struct uar_definition_routing { /* policy.provider */
	struct uar_definition_model chosen;
	struct uar_definition_model *fallbacks;
	size_t fallback_count;
	const struct uar_json *rules; /* the whole object, with the rest; NULL: absent */
};

struct uar_definition_tools { /* policy.tools: patterns with a space between two */
	uar_str allow, deny, ask;
	int64_t max_concurrent;
	bool linked; /* on_failure: the failure of a call cancels the others of its answer */
};

struct uar_definition_prompt {
	uar_str system, template;
	uar_str *instructions;
	size_t instruction_count;
	const struct uar_json *variables; /* NULL: none */
};

struct uar_definition_output { /* policy.output; empty, 0: free */
	uar_str format, language;
	int64_t max_characters;
};

struct uar_definition_schemas { /* NULL: any value */
	const struct uar_json *inputs, *outputs, *state;
};

enum uar_protocol { UAR_PROTOCOL_AG_UI, UAR_PROTOCOL_A2UI, UAR_PROTOCOL_A2A, UAR_PROTOCOL_COUNT };

/* Strings live in the arena and end with 0. */
struct uar_definition {
	struct uar_arena arena;
	struct uar_agent_info info;
	struct uar_definition_backend backend;
	struct uar_definition_policy policy;
	struct uar_definition_routing routing;
	struct uar_definition_tools tools;
	struct uar_definition_prompt prompt;
	struct uar_definition_output output;
	struct uar_definition_schemas schemas;
	struct {
		bool conversation; /* earlier turns of the thread are told to the model */
		int64_t max_turns; /* so many of them; 0: all that fit */
	} memory;
	bool protocols_off[UAR_PROTOCOL_COUNT];
	uar_str text;		     /* canonical JSON of the whole */
	const struct uar_json *json; /* of that text: subtrees that have no member above */
	char revision[UAR_SHA256_TEXT + 1];
};

uar_str uar_definition_schema(void);
/* Every definition that is read is given to `check`, too: it judges what other rooms understand.
 * Set before the first is read. error->where: a pointer. */
typedef uar_err uar_definition_check_fn(const struct uar_definition *d, struct uar_error *error);
void uar_definition_also_check(uar_definition_check_fn *check);
/* JSON. error->where: a pointer into the definition. Fini is needed on success only. */
UAR_MUST_CHECK uar_err uar_definition_read(uar_str text, struct uar_definition *out,
					   struct uar_error *error);
/* A file in one of the formats of source.h. error->where: "FILE:LINE /pointer". */
UAR_MUST_CHECK uar_err uar_definition_read_file(const char *file, uar_str text,
						struct uar_definition *out,
						struct uar_error *error);
UAR_MUST_CHECK uar_err uar_definition_load(const char *path, struct uar_definition *out,
					   struct uar_error *error);
void uar_definition_fini(struct uar_definition *d);

/* May an adapter serve runs of the agent? */
bool uar_definition_allows(const struct uar_definition *d, enum uar_protocol p);
/* May runs of the agent ask people for values? */
bool uar_definition_asks_forms(const struct uar_definition *d);
/* May they send the client there? Only where ui.navigation says so. */
bool uar_definition_navigates(const struct uar_definition *d, uar_str target);
/* May they make artifacts of that type? */
bool uar_definition_makes(const struct uar_definition *d, uar_str artifact_type);
/* '*' in the pattern stands for anything. */
bool uar_pattern_fits(uar_str pattern, uar_str s);
/* A member that is there and has no effect in this version: its pointer and why. False: there
 * are not so many. */
struct uar_definition_inactive {
	const char *pointer, *why;
};
bool uar_definition_inactive(const struct uar_definition *d, size_t index,
			     struct uar_definition_inactive *out);

/* What the policy says about a question: of the rules that fit, deny beats ask beats allow;
 * *out_rule names what decided it, 0-based, -1: the default. */
enum uar_verdict uar_definition_judge(const struct uar_definition_policy *p, uar_str kind,
				      uar_str tool, int *out_rule);

#endif
