/* a2a_peer_fuzz.c - what an agent elsewhere may say: a card, and lines of events of one task.
 * Whatever they are, a task that is over stays so, and nothing is longer than its limit. */
#include "peer/a2a_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void read_card(uar_str text)
{
	struct uar_error error = { 0 };
	struct uar_arena arena;
	struct a2a_card card;

	uar_arena_init(&arena, 0);
	if (!a2a_card_read(text, UAR_STR("https://a.example/card.json"), NULL, &arena, &card,
			   &error))
		must(uar_str_starts(card.url, UAR_STR("https://")));
	uar_arena_fini(&arena);
}

static void take(struct a2a_task *t, uar_str line)
{
	struct uar_json_limits limits = { .foreign = true };
	enum uar_remote_state before = t->state;
	const struct uar_json *j = NULL;
	struct uar_remote_view v;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (!uar_json_parse(line, &limits, &arena, &j, NULL) &&
	    !a2a_task_take(t, j, UAR_STR("m"))) {
		must(!a2a_task_view(t, &v));
		must(!uar_remote_over(before) || v.state == before || !v.task_id.n);
		must(v.text.n <= UAR_LIMIT_PEER_TEXT);
		must(v.part_count <= UAR_LIMIT_PEER_PARTS + UAR_LIMIT_PEER_ARTIFACTS);
	}
	uar_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uar_str rest = uar_str_n((const char *)data, size);
	struct a2a_task t;

	read_card(rest);
	a2a_task_init(&t);
	while (rest.n)
		take(&t, uar_str_cut(rest, '\n', &rest));
	a2a_task_fini(&t);
	return 0;
}
