/* gateway.c - backends by kind, and the checks that stand before every run. */
#include "backend/int.h"
#include "backend/limits.h"

struct uaa_backend {
	atomic_int refs;
	uaa_backend_ops ops;
	void *self;
	uaa_kind *kind;
};

struct uaa_gateway {
	atomic_int refs;
	uaa_backend *backends[UAR_LIMIT_AGENT_BACKENDS];
	size_t n;
};

/* --- backends --- */

uaa_backend *uaa_backend_new(const uaa_backend_ops *ops, void *self)
{
	const size_t least = offsetof(uaa_backend_ops, run_control);
	uaa_backend_ops own;
	uaa_backend *b = NULL;

	if (!ops || !uab_take_struct(&own, sizeof own, ops, least) ||
	    own.abi >> 16 != UAA_ABI_MAJOR || !own.kind || !own.caps || !own.run)
		return NULL;
	b = uar_zalloc(sizeof *b);
	if (!b)
		return NULL;
	b->ops = own;
	b->self = self;
	b->refs = 1;
	if (uaa_kind_new(ops->kind(self), &b->kind, NULL)) {
		uar_free(b);
		return NULL;
	}
	return b;
}

uaa_str uaa_backend_kind(const uaa_backend *b)
{
	return b ? b->kind->id : UAB_NONE;
}

const uaa_caps *uaa_backend_caps(const uaa_backend *b)
{
	return b ? b->ops.caps(b->self) : NULL;
}

uaa_backend *uaa_backend_ref(uaa_backend *b)
{
	if (b)
		atomic_fetch_add(&b->refs, 1);
	return b;
}

void uaa_backend_unref(uaa_backend *b)
{
	if (!b || atomic_fetch_sub(&b->refs, 1) != 1)
		return;
	if (b->ops.destroy)
		b->ops.destroy(b->self);
	uaa_kind_unref(b->kind);
	uar_free(b);
}

static bool can(const uaa_backend *b, const char *capability)
{
	return uaa_caps_contains(uaa_backend_caps(b), uaa_str_c(capability));
}

static uaa_status unsupported(const uaa_backend *b, const char *capability, uaa_error **error)
{
	return uab_fail(error, UAA_E_UNSUPPORTED_CAPABILITY, uab_str(b->kind->id),
			uar_str_c(capability));
}

uaa_status uaa_backend_run(uaa_backend *b, const uaa_request *request, uaa_run **out,
			   uaa_error **error)
{
	uaa_status s;

	if (!b || !request || !out)
		return uab_wrong(error, !b	   ? "backend is NULL"
					: !request ? "request is NULL"
						   : "out is NULL");
	s = uab_request_gate(request, uab_str(b->kind->id), uaa_backend_caps(b), error);
	return s ? s : b->ops.run(b->self, request, out, error);
}

static uaa_status run_control(uaa_backend *b, const uaa_request *request, uaa_controlled_run *out,
			      uaa_error **error)
{
	uaa_run *run = NULL;
	uaa_status s;

	if (!can(b, "agent_api.control.cancel.v1"))
		return unsupported(b, "agent_api.control.cancel.v1", error);
	s = uab_request_gate(request, uab_str(b->kind->id), uaa_backend_caps(b), error);
	if (s)
		return s;
	if (b->ops.run_control)
		return b->ops.run_control(b->self, request, out, error);
	s = b->ops.run(b->self, request, &run, error);
	if (s)
		return s;
	*out = (uaa_controlled_run){ run, uab_cancel_new(run) };
	return UAA_OK;
}

/* --- the gateway --- */

uaa_gateway *uaa_gateway_new(void)
{
	uaa_gateway *g = uar_zalloc(sizeof *g);

	if (g)
		g->refs = 1;
	return g;
}

uaa_gateway *uaa_gateway_ref(uaa_gateway *g)
{
	if (g)
		atomic_fetch_add(&g->refs, 1);
	return g;
}

void uaa_gateway_unref(uaa_gateway *g)
{
	if (!g || atomic_fetch_sub(&g->refs, 1) != 1)
		return;
	for (size_t i = 0; i < g->n; i++)
		uaa_backend_unref(g->backends[i]);
	uar_free(g);
}

static uaa_backend *lookup(const uaa_gateway *g, uar_str kind)
{
	for (size_t i = 0; i < g->n; i++)
		if (uar_str_eq(uab_str(g->backends[i]->kind->id), kind))
			return g->backends[i];
	return NULL;
}

uaa_status uaa_gateway_register(uaa_gateway *g, uaa_backend *b, uaa_error **error)
{
	if (!g || !b)
		return uab_wrong(error, !g ? "gateway is NULL" : "backend is NULL");
	if (lookup(g, uab_str(b->kind->id)))
		return uab_invalid(error, "a backend of this kind is already registered");
	if (!can(b, "agent_api.run") || !can(b, "agent_api.events"))
		return uab_invalid(error, "backend lacks agent_api.run or agent_api.events");
	if (g->n == UAR_LIMIT_AGENT_BACKENDS)
		return uab_invalid(error, "too many backends");
	g->backends[g->n++] = uaa_backend_ref(b);
	return UAA_OK;
}

uaa_backend *uaa_gateway_backend(uaa_gateway *g, const uaa_kind *kind)
{
	return g && kind ? uaa_backend_ref(lookup(g, uab_str(kind->id))) : NULL;
}

/* A borrowed backend, or NULL and the first error of every call. */
static uaa_backend *resolve(const uaa_gateway *g, const uaa_kind *kind, uaa_status *out_status,
			    uaa_error **error)
{
	uaa_backend *b = g && kind ? lookup(g, uab_str(kind->id)) : NULL;

	if (!b && g && kind)
		*out_status =
			uab_fail(error, UAA_E_UNKNOWN_BACKEND, uab_str(kind->id), UAR_STR_NONE);
	else if (!b)
		*out_status = uab_wrong(error, !g ? "gateway is NULL" : "kind is NULL");
	return b;
}

uaa_status uaa_gateway_run(uaa_gateway *g, const uaa_kind *kind, const uaa_request *request,
			   uaa_run **out, uaa_error **error)
{
	uaa_status s = UAA_OK;
	uaa_backend *b = resolve(g, kind, &s, error);

	return b ? uaa_backend_run(b, request, out, error) : s;
}

uaa_status uaa_gateway_run_control(uaa_gateway *g, const uaa_kind *kind, const uaa_request *request,
				   uaa_controlled_run *out, uaa_error **error)
{
	uaa_status s = UAA_OK;
	uaa_backend *b = resolve(g, kind, &s, error);

	if (!b)
		return s;
	if (!request || !out)
		return uab_wrong(error, !request ? "request is NULL" : "out is NULL");
	return run_control(b, request, out, error);
}

/* A list that is said to have members is there. */
static bool lists_ok(const uaa_mcp_request *r)
{
	return (r->command || !r->command_count) && (r->server_env || !r->server_env_count) &&
	       (r->env || !r->env_count);
}

uaa_status uaa_gateway_mcp(uaa_gateway *g, const uaa_kind *kind, const uaa_mcp_request *request,
			   uaa_mcp_result **out, uaa_error **error)
{
	static const char *const ids[] = { "agent_api.tools.mcp.list.v1",
					   "agent_api.tools.mcp.get.v1",
					   "agent_api.tools.mcp.add.v1",
					   "agent_api.tools.mcp.remove.v1" };
	uaa_status s = UAA_OK;
	uaa_backend *b = resolve(g, kind, &s, error);
	uaa_mcp_request own;

	if (!b)
		return s;
	if (!request || !out)
		return uab_wrong(error, !request ? "request is NULL" : "out is NULL");
	if (!uab_take_struct(&own, sizeof own, request, sizeof own))
		return uab_wrong(error, "request is of a version that is not known");
	if ((unsigned)own.op >= ARRAY_LEN(ids))
		return uab_wrong(error, "op of the request is not known");
	if (!lists_ok(&own))
		return uab_wrong(error, "a list of the request is NULL and has members");
	if (!b->ops.mcp || !can(b, ids[own.op]))
		return unsupported(b, ids[own.op], error);
	own.struct_size = sizeof own;
	return b->ops.mcp(b->self, &own, out, error);
}
