/* guard_fuzz.c - what an operator may allow: reading it never goes astray, and it never allows
 * loopback unless an address or a network says so. */
#include <stdlib.h>

#include "loop/guard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned char loopback[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };
	char *text = malloc(size + 1);
	const char *entry = text;
	struct uar_guard *g = NULL;

	memcpy(text, size ? (const char *)data : "", size);
	text[size] = 0;
	(void)uar_guard_is_entry(uar_str_n(text, size));
	if (!uar_guard_create(&entry, 1, &g, NULL)) {
		bool digits = strpbrk(text, "0123456789:") != NULL;

		if (!digits && uar_guard_passes(g, loopback, 80))
			abort();
		(void)uar_guard_passes_name(g, uar_str_n(text, size));
	}
	uar_guard_destroy(g);
	free(text);
	return 0;
}
