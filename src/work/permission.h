/* permission.h - who has a say about a call: the operator's configuration, the agent's
 * definition, rules of its session and thread, guardrails and hooks. core/permission.c decides. */
#ifndef UAR_WORK_PERMISSION_H
#define UAR_WORK_PERMISSION_H

#include "core/permission.h"
#include "work/grants.h"
#include "work/toolset.h"

/* `permissions` of the configuration. */
struct uar_host_policy {
	struct uar_arena arena;
	const struct uar_json *root;   /* the setting */
	enum uar_permission_mode mode; /* NONE: default */
	uint32_t allowed;	       /* bits of modes that loosen and may be used */
	bool unattended;
	const struct uar_json *rules; /* NULL: none */
};

/* A call, and what is known of it. */
struct permission_ask {
	const struct uar_host_policy *host;	 /* NULL: none */
	const struct uar_definition *definition; /* NULL: none */
	const struct grants *stored;		 /* NULL: none */
	struct uar_run_permit own;		 /* what the run itself asks for */
	const struct toolset *set;
	const struct uar_tool *tool;
	uar_str agent_id;
	uar_str input; /* JSON text of the arguments */
	uar_str grant; /* that covers it, or empty */
	bool allowed;  /* by a person */
	bool failed;   /* the tool has failed in this run */
	bool bare;     /* somebody else does it: rules and hooks alone have a say */
	enum uar_rail rail;
	uar_str rail_reason;
	const struct uar_permission_say *hook; /* NULL: none had a say */
};
/* May a run or a session choose the mode? */
bool rt_permission_allows(const struct uar_workers *w, enum uar_permission_mode mode);
/* Is nobody there who could be asked? */
bool rt_permission_unattended(const struct permission_ask *a);
/* Does anybody but the tools themselves have a say? Then grants may be needed. */
bool rt_permission_is_governed(const struct live_run *r);
/* Strings of *out live in the arena or as long as what was asked. */
UAR_MUST_CHECK uar_err rt_permission_decide(const struct permission_ask *a, struct uar_arena *arena,
					    struct uar_permission *out);
/* The decision as events show it: a JSON object. */
UAR_MUST_CHECK uar_err rt_permission_write(const struct permission_ask *a,
					   const struct uar_permission *p, struct uar_buf *out);
/* What the arguments are on, as one safe line: ": notes/a.txt"; empty when nothing says it. */
void rt_call_subject(uar_str args, bool in_folder, size_t size, char *out);

#endif
