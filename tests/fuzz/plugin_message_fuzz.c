/* plugin_message_fuzz.c - lines of plugins: whatever is accepted keeps its bounds. */
#include <stdlib.h>

#include "event/limits.h"
#include "plugin/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uar_error error = { 0 };
	struct uar_arena arena;
	struct uar_message m;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_message_read(uar_str_n((const char *)data, size), &arena, &m, &error);
	if (!e && m.kind == UAR_MESSAGE_PROGRESS && (m.progress.value > 1 || m.progress.step < -1))
		abort();
	if (!e && m.kind == UAR_MESSAGE_EXPORT &&
	    (m.export.type.n == 0 || m.raw.n > UAR_LIMIT_EXPORT_BYTES || !m.run_id.n))
		abort();
	if (!e && m.kind == UAR_MESSAGE_REPLY && !m.id)
		abort();
	uar_arena_fini(&arena);
	return 0;
}
