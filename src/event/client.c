/* client.c - ids of calls that clients execute. */
#include "event/client.h"

enum { TAIL = 12 };

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool uar_client_call_run(uar_str call_id, uar_str *out_run_id)
{
	size_t n = call_id.n;

	if (n < TAIL + 2 || call_id.p[n - TAIL - 1] != '.')
		return false;
	for (size_t i = n - TAIL; i < n; i++)
		if (!is_hex(call_id.p[i]))
			return false;
	*out_run_id = uar_str_n(call_id.p, n - TAIL - 1);
	return uar_str_is_id(*out_run_id);
}
