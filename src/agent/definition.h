/* definition.h - an agent definition: read from its file, checked against the
 * published schema. Data alone; what it says is done elsewhere. */
#ifndef UAR_AGENT_DEFINITION_H
#define UAR_AGENT_DEFINITION_H

#include "event/agent.h"
#include "json/json.h"

struct uar_definition_rule {
	uar_str kind, tool; /* empty: any; tool may hold '*' */
	enum uar_verdict verdict;
};

struct uar_definition_policy {
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

/* Strings live in the arena and end with 0. */
struct uar_definition {
	struct uar_arena arena;
	struct uar_agent_info info;
	struct uar_definition_backend backend;
	struct uar_definition_policy policy;
};

uar_str uar_definition_schema(void);
/* error->where: a pointer into the definition. Fini is needed on success only. */
UAR_MUST_CHECK uar_err uar_definition_read(uar_str text, struct uar_definition *out,
					   struct uar_error *error);
UAR_MUST_CHECK uar_err uar_definition_load(const char *path, struct uar_definition *out,
					   struct uar_error *error);
void uar_definition_fini(struct uar_definition *d);

/* What the policy says about a question; *out_rule names what decided it, 0-based,
 * -1: the default. */
enum uar_verdict uar_definition_judge(const struct uar_definition_policy *p, uar_str kind,
				      uar_str tool, int *out_rule);

#endif
