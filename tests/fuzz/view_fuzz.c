/* view_fuzz.c - any bytes as a snapshot of a session: what is read is written, and reads back
 * as the same bytes. */
#include <stdlib.h>

#include "core/view.h"
#include "json/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct uar_buf write_view(const struct uar_sview *v)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);

	if (uar_sview_write(v, &b))
		abort();
	return b;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uar_sview first, second;
	struct uar_buf a, b;

	uar_sview_init(&first);
	uar_sview_init(&second);
	if (!uar_sview_read(&first, uar_str_n((const char *)data, size), NULL)) {
		a = write_view(&first);
		if (uar_sview_read(&second, uar_buf_str(&a), NULL))
			abort();
		b = write_view(&second);
		if (!uar_str_eq(uar_buf_str(&a), uar_buf_str(&b)))
			abort();
		uar_buf_fini(&a);
		uar_buf_fini(&b);
	}
	uar_sview_fini(&first);
	uar_sview_fini(&second);
	return 0;
}
