/* ticket_fuzz.c - upload ids as they come: none is ours, whatever its bytes. */
#include "gate/ticket.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };
	struct gate_ticket_key key = { UAR_STR("a secret"), &owner };
	struct gate_ticket got;
	struct uar_arena a;

	uar_arena_init(&a, 0);
	if (gate_ticket_read(key, &a, uar_str_n((const char *)data, size), &got) == UAR_OK)
		abort();
	uar_arena_fini(&a);
	return 0;
}
