/* permission.h - may a call be made? Every source has its say, and the strictest holds: deny beats
 * ask beats allow.
 *
 * Pure: the shell supplies what is known of the call and what the sources say. A mode is what
 * holds where nobody else has decided: its ask is answered by an allow of a rule or a hook, any
 * other ask by a person or a grant alone, and a deny by nothing. */
#ifndef UAR_CORE_PERMISSION_H
#define UAR_CORE_PERMISSION_H

#include "core/sizes.h"
#include "json/json.h"
#include "json/jw.h"

enum uar_permission_mode {
	UAR_MODE_NONE, /* none is set */
#define MODE(NAME, TEXT, READ, WRITE, NETWORK, DESTRUCTIVE, CAUTIOUS, FAILED, LOOSENS, DOC)        \
	UAR_MODE_##NAME,
#include "core/permission.def"
	UAR_MODE_COUNT
};
enum uar_permission_source {
#define SOURCE(NAME, TEXT, EVENT, LIFTS, DOC) UAR_PERMIT_BY_##NAME,
#include "core/permission.def"
	UAR_PERMIT_BY_COUNT
};
enum uar_permission_verdict { UAR_SAYS_NOTHING, UAR_SAYS_ALLOW, UAR_SAYS_ASK, UAR_SAYS_DENY };

const char *uar_permission_mode_name(enum uar_permission_mode m); /* "on_request" */
/* UAR_MODE_NONE: there is no such mode. */
enum uar_permission_mode uar_permission_mode_parse(uar_str name);
bool uar_permission_mode_loosens(enum uar_permission_mode m);
const char *uar_permission_verdict_name(enum uar_permission_verdict v); /* "ask" */
enum uar_permission_verdict uar_permission_verdict_parse(uar_str name);

/* What a source says of a call. */
struct uar_permission_say {
	enum uar_permission_source source;
	enum uar_permission_verdict verdict;
	uar_str rule;	/* which of its rules: "host:rules/0" */
	uar_str reason; /* or empty */
};

/* The call itself. */
struct uar_permission_call {
	bool read_only, network, destructive;
	bool cautious; /* the tool wants each call to be allowed */
	bool failed;   /* it has failed in this run */
};

struct uar_permission_facts {
	enum uar_permission_mode mode;
	bool unattended; /* nobody can be asked */
	struct uar_permission_call call;
	struct uar_permission_say says[UAR_LIMIT_PERMISSION_SAYS];
	size_t count;
	uar_str grant; /* that covers the call, or empty */
	bool allowed;  /* by a person, this very call */
};

struct uar_permission {
	enum uar_permission_verdict verdict; /* ALLOW, ASK or DENY */
	enum uar_permission_source source;
	uar_str reason;
	struct uar_permission_facts facts; /* with what the mode, the grant and the person say */
	size_t by;			   /* of facts.says: what decided */
};

/* Adds what a source says; beyond the limit the last place is the strictest of the rest. */
void uar_permission_add(struct uar_permission_facts *f, struct uar_permission_say say);
void uar_permission_decide(const struct uar_permission_facts *f, struct uar_permission *out);

/* The mode of a call: the first that is set of the run's own, its thread's, its session's, its
 * definition's and the host's; one that loosens and that the host does not allow is none. */
struct uar_permission_modes {
	enum uar_permission_mode run, thread, session, definition, host;
	uint32_t allowed; /* bits of the modes that loosen and may be used */
};
enum uar_permission_mode uar_permission_effective(const struct uar_permission_modes *m);

/* What a request for a run says. */
struct uar_run_permit {
	enum uar_permission_mode mode; /* its own; NONE: that of its thread */
	bool unattended;	       /* nobody can be asked */
};
UAR_MUST_CHECK uar_err uar_run_permit_read(uar_str mode, bool interactive,
					   struct uar_run_permit *out, struct uar_error *error);

/* As the options of turn.submitted say it. */
struct uar_run_permit uar_run_permit_of(const struct uar_json *options);

/* Rules: [{"tool","class","agent","decision","reason"}]. Does a pattern name the tool? */
struct uar_permission_match {
	bool (*tool)(void *ctx, uar_str pattern);
	bool (*agent)(void *ctx, uar_str pattern);
	void *ctx;
	struct uar_permission_call call;
};
struct uar_permission_list {
	enum uar_permission_source source;
	const struct uar_json *rules; /* NULL: none */
	const char *name;	      /* in rule refs: "host:rules" */
};
/* Adds what each rule that fits says. The list and the arena live as long as the facts. */
UAR_MUST_CHECK uar_err uar_permission_add_rules(struct uar_permission_facts *f,
						const struct uar_permission_list *list,
						const struct uar_permission_match *match,
						struct uar_arena *arena);
/* Are they rules? error->where points into the list. */
UAR_MUST_CHECK uar_err uar_permission_check_rules(const struct uar_json *rules,
						  struct uar_error *error);
/* "destructive", "network", "write" or "read": the first that the call is. */
const char *uar_permission_class(const struct uar_permission_call *call);

/* Members of permission.evaluated from `decision` to `overridden`, with `destructive` and, when it
 * is, `impact` and `rollback_advice`. */
struct uar_permission_about {
	uar_str impact, rollback_advice;
};
void uar_permission_write(struct uar_jw *w, const struct uar_permission *p,
			  const struct uar_permission_about *about);

#endif
