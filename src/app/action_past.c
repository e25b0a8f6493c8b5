/* action_past.c - what a run has asked before, and what it was told, as its stream has it. */
#include "app/action.h"
#include "app/text.h"

enum { LISTED = 16 };

static void copy(char *out, size_t size, uar_str s)
{
	snprintf(out, size, "%.*s", UAR_FMT(uar_str_utf8_prefix(s, size - 1)));
}

static void on_question(struct uar_action_past *p, uar_str id, const struct uar_json *data)
{
	p->count++;
	if (p->count <= LISTED) {
		uar_text_brief(&p->list, id, UAR_LIMIT_ID_BYTES);
		uar_buf_add_str(&p->list, UAR_STR("  "));
		uar_text_brief(&p->list, uar_json_text(data, "title"), 200);
		uar_buf_add_char(&p->list, '\n');
	}
	if (p->wanted ? uar_str_is(id, p->wanted) : p->count == 1)
		copy(p->action_id, sizeof p->action_id, id);
}

static bool on_event(void *ctx, uar_str text)
{
	struct uar_action_past *p = ctx;
	const struct uar_json *event, *data;
	struct uar_arena a;
	uar_str id;

	uar_arena_init(&a, 0);
	if (uar_json_parse(text, NULL, &a, &event, NULL) == UAR_OK) {
		data = uar_json_get(event, UAR_STR("data"));
		id = uar_json_text(data, "action_id");
		if (id.n && uar_str_is(uar_json_text(data, "status"), "pending"))
			on_question(p, id, data);
		else if (id.n && uar_str_is(id, p->action_id)) {
			copy(p->decision, sizeof p->decision, uar_json_text(data, "decision"));
			copy(p->source, sizeof p->source, uar_json_text(data, "source"));
		}
	}
	uar_arena_fini(&a);
	return true;
}

uar_err uar_action_past(struct uar_cli *cli, uar_str run_id, struct uar_action_past *p,
			struct uar_error *error)
{
	struct uar_remote_follow f = { .run_id = run_id, .show = on_event, .ctx = p };
	uar_err e = uar_remote_follow(cli, &f, error);

	if (!e && p->count > LISTED)
		uar_buf_printf(&p->list, "and %zu more\n", p->count - LISTED);
	if (!p->wanted && p->count > 1)
		p->action_id[0] = '\0';
	return e ? e : p->list.err;
}
