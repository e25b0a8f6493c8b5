/* sandbox_fuzz.c - what comes from outside into the sandbox room: command lines, frames of the
 * helper, profiles. */
#include <stdlib.h>

#include "json/json.h"
#include "sandbox/command.h"
#include "sandbox/helper.h"
#include "sandbox/sandbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void read_frames(uar_str in)
{
	uar_str bytes;
	size_t used;
	char what;

	while ((used = uar_frame_read(in, &what, &bytes)) > 0 && used != UAR_FRAME_BROKEN) {
		must(used == UAR_FRAME_HEAD + bytes.n && used <= in.n);
		in = uar_str_from(in, used);
	}
}

static void read_profile(uar_str in, struct uar_arena *arena)
{
	const struct uar_json *j;
	struct uar_sandbox s;
	char id[UAR_SANDBOX_ID + 1];

	if (uar_json_parse(in, NULL, arena, &j, NULL) || uar_sandbox_read(j, &s, NULL))
		return;
	must(s.read_count <= UAR_LIMIT_SANDBOX_ROOTS && s.cwd.p[0] == '/');
	must(!uar_sandbox_id(&s, id) && strlen(id) == UAR_SANDBOX_ID);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uar_str in = uar_str_n((const char *)data, size);
	struct uar_command_line line;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (!uar_command_read_line(in, &arena, &line)) {
		must(line.count <= UAR_LIMIT_COMMAND_PARTS);
		must(line.summary.n <= UAR_LIMIT_COMMAND_SUMMARY);
	}
	read_frames(in);
	read_profile(in, &arena);
	uar_arena_fini(&arena);
	return 0;
}
