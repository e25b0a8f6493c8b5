/* address_fuzz.c - what was read lies in the text, and means the same when it is written again. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
	if (!good)
		abort();
}

static bool inside(uar_str part, uar_str whole)
{
	return part.n > 0 && part.p >= whole.p && part.p + part.n <= whole.p + whole.n;
}

static void write_again(const struct uar_address *a)
{
	bool v6 = a->kind == UAR_ADDRESS_IPV6;
	char host[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN + 16];
	struct uar_address b;

	must(inet_ntop(v6 ? AF_INET6 : AF_INET, v6 ? a->ip : a->ip + 12, host, sizeof host));
	snprintf(text, sizeof text, v6 ? "[%s]:%u" : "%s:%u", host, (unsigned)a->port);
	must(uar_address_read_bound(uar_str_c(text), &b) && b.kind == a->kind &&
	     b.port == a->port && memcmp(a->ip, b.ip, sizeof b.ip) == 0);
	must(uar_address_is_local(a) == uar_address_is_local(&b) &&
	     uar_address_is_any(a) == uar_address_is_any(&b));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1); /* reads past it are seen */
	uar_str text = uar_str_n(copy, size);
	struct uar_address a;

	memcpy(copy, size ? (const char *)data : "", size);
	if (uar_address_read_host(text, &a)) {
		must(a.kind != UAR_ADDRESS_UNIX && inside(uar_address_bare(&a), text));
		must(!(uar_address_is_local(&a) && uar_address_is_any(&a)));
		if (uar_address_is_ip(&a))
			write_again(&a);
	}
	if (uar_address_read_bound(text, &a)) {
		must(uar_address_is_ip(&a) || a.kind == UAR_ADDRESS_UNIX);
		must(a.kind != UAR_ADDRESS_UNIX || a.host.n < UAR_SOCKET_PATH);
	}
	free(copy);
	return 0;
}
