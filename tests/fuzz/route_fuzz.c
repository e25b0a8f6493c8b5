/* route_fuzz.c - paths and host names as they come: a route is found or not, and
 * a path that is known allows at least one method. */
#include <stdlib.h>

#include "gate/gate_int.h"

/* Parameters are whole segments of the path. */
static void check_params(uar_str path, const uar_str *params)
{
	for (size_t i = 0; i < ROUTE_PARAMS; i++)
		if (params[i].n &&
		    (params[i].p < path.p || params[i].p + params[i].n > path.p + path.n ||
		     uar_str_find(params[i], '/') < params[i].n))
			abort();
}

static void check_access(uar_str text)
{
	static const struct uar_gate gate = { .o = { .token = "token" } };
	struct uar_http_request r = {
		.fields = { [UAR_HTTP_HOST] = text, [UAR_HTTP_ORIGIN] = text },
	};

	if (gate_check_host(&gate, &r, NULL) == UAR_OK && text.n > sizeof "localhost:" + 20)
		abort(); /* no name of ours is that long, leading zeros of a port included */
	if (gate_check_origin(&gate, &r, NULL) == UAR_OK && text.n)
		abort(); /* an origin is never the host itself */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uar_str text = uar_str_n((const char *)data, size);
	struct gate_routes routes;
	bool known = false, found = false;

	if (gate_routes_init(&routes))
		abort();
	for (int m = 0; m < UAR_HTTP_METHOD_COUNT; m++) {
		uar_str params[ROUTE_PARAMS] = { 0 };

		if (!gate_route(&routes, (enum uar_http_method)m, text, params, &known))
			continue;
		found = true;
		check_params(text, params);
	}
	if (known != found || (known && (!size || data[0] != '/')))
		abort();
	gate_routes_fini(&routes);
	check_access(text);
	return 0;
}
