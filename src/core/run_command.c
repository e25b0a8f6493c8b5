/* run_command.c - which strings a command of a run has. */
#include "core/core.h"

enum { STRINGS = 20 };

/* Offsets; 0, which is that of the kind, ends a list. */
static const uint16_t strings_of[UAR_CMD_COUNT][STRINGS + 1] = {
/* clang-format off */
#define RUN_CMD(KIND, DOC) [UAR_CMD_##KIND] = {
#define S(MEMBER) offsetof(struct uar_command, MEMBER),
#define RUN_END(KIND) 0 },
/* clang-format on */
#include "core/run_command.def"
};

bool uar_command_own(struct uar_command *c, struct uar_arena *arena)
{
	for (const uint16_t *at = strings_of[c->kind]; *at; at++) {
		uar_str *s = (uar_str *)(void *)((char *)c + *at);
		uar_str own = uar_arena_str(arena, *s);

		if (!own.p)
			return false;
		*s = own;
	}
	return true;
}
