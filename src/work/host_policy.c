/* host_policy.c - the operator changes the permissions while the server runs.
 *
 * The change is recorded before it applies to a call. If it cannot be recorded it applies all the
 * same: a full disk must not allow what the operator forbids. */
#include "json/limits.h"
#include "work/permission.h"
#include "work/registry_append.h"

struct policy_change {
	struct rt_op under_way;
	struct uar_workers *w;
	struct uar_host_policy *policy; /* ours until it is in force */
	uint64_t number;
	struct registry_append append;
	char version[UAR_SHA256_TEXT + 1];
};

static void free_policy_change(struct policy_change *c)
{
	uar_host_policy_destroy(c->policy);
	rt_registry_append_fini(&c->append);
	uar_free(c);
}

static void drop_policy_change(struct rt_op *op)
{
	free_policy_change(UAR_OWNER(op, struct policy_change, under_way));
}

static void put_in_force(struct uar_workers *w, struct uar_host_policy *policy)
{
	uar_host_policy_destroy(w->policy.own);
	w->policy.own = policy;
	w->o.permissions = policy;
}

static uar_err decide_policy_change(struct registry_append *a, const struct uar_core_env *env,
				    struct uar_session *s, struct uar_decision *out)
{
	struct policy_change *c = UAR_OWNER(a, struct policy_change, append);
	const struct uar_host_policy *now = c->w->o.permissions;
	const struct uar_host_policy_facts facts = { .before = now ? now->root : NULL,
						     .after = c->policy->root,
						     .version = uar_str_c(c->version) };

	return uar_core_host_policy(env, s, &facts, out, &a->error);
}

static void policy_changed(struct registry_append *a, uar_err e)
{
	struct policy_change *c = UAR_OWNER(a, struct policy_change, append);
	struct uar_workers *w = c->w;

	if (e && e != UAR_ESKIP)
		uar_log(rt_log(w->rt), UAR_LOG_WARN, "policy.not_recorded",
			{ "reason", uar_str_c(uar_err_text(e)) });
	if (c->number > w->policy.in_force) { /* no later one was faster */
		w->policy.in_force = c->number;
		put_in_force(w, c->policy);
		c->policy = NULL;
	}
	rt_op_end(&c->under_way);
	free_policy_change(c);
}

void uar_workers_change_policy(struct uar_workers *w, struct uar_host_policy *taken)
{
	struct policy_change *c = uar_zalloc(sizeof *c);
	struct uar_buf text = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_err e = UAR_ENOMEM;

	if (!c) {
		w->policy.in_force = ++w->policy.asked; /* earlier ones come too late */
		put_in_force(w, taken);
		return;
	}
	c->w = w;
	c->policy = taken;
	c->number = ++w->policy.asked;
	uar_json_write(&text, taken->root);
	uar_sha256_hex(uar_buf_str(&text), c->version);
	rt_registry_append_init(&c->append, w->rt, &w->o.owner);
	c->append.decide = decide_policy_change;
	c->append.done = policy_changed;
	e = text.err ? text.err : rt_registry_append(&c->append);
	uar_buf_fini(&text);
	rt_op_begin(w->rt, &c->under_way, drop_policy_change);
	if (e)
		policy_changed(&c->append, e);
}

void rt_host_policy_fini(struct uar_workers *w)
{
	uar_host_policy_destroy(w->policy.own);
}
