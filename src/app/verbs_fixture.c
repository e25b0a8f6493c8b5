/* verbs_fixture.c - a run as a recording that can be replayed.
 *
 * One normalized event a line, under the name of no run. What only concerns the run that was
 * recorded, such as questions and their answers, is left out; that text was taken back is not. */
#include "app/cli.h"
#include "app/limits.h"
#include "app/remote.h"
#include "json/jw.h"
#include "json/limits.h"

static void write_line(FILE *out, const struct uar_json *event)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	struct uar_jw w = uar_jw_begin(&b);
	const struct uar_json *data = uar_json_get(event, UAR_STR("data"));

	uar_jw_obj(&w, NULL);
	uar_jw_tree(&w, "type", uar_json_get(event, UAR_STR("type")));
	uar_jw_obj(&w, "data");
	uar_jw_cstr(&w, "run_id", "fixture");
	for (const struct uar_json *m = data && data->count ? data->first : NULL; m; m = m->next) {
		if (uar_str_is(m->key, "run_id"))
			continue;
		uar_jw_key(&w, m->key);
		uar_jw_tree(&w, NULL, m);
	}
	uar_jw_close(&w);
	uar_jw_close(&w);
	if (!uar_jw_end(&w))
		fprintf(out, "%.*s\n", UAR_FMT(uar_buf_str(&b)));
	uar_buf_fini(&b);
}

static bool is_recorded(const struct uar_json *event)
{
	const struct uar_json *data = uar_json_get(event, UAR_STR("data"));
	const struct uar_json *metadata = uar_json_get(data, UAR_STR("metadata"));

	return !uar_str_is(uar_json_text(event, "type"), "meta") ||
	       uar_json_get(metadata, UAR_STR("superseded_bytes"));
}

static bool show_line(void *ctx, uar_str data)
{
	struct uar_cli *cli = ctx;
	const struct uar_json *event = NULL;
	struct uar_arena a;

	uar_arena_init(&a, 0);
	if (!uar_json_parse(data, NULL, &a, &event, NULL) && is_recorded(event))
		write_line(cli->out, event);
	uar_arena_fini(&a);
	return !ferror(cli->out);
}

int uar_verb_fixture(struct uar_cli *cli)
{
	char run_id[UAR_LIMIT_ID_BYTES + 1];
	struct uar_remote_follow f = { .to_the_end = true, .show = show_line, .ctx = cli };
	struct uar_error error = { 0 };
	uar_err e;

	if (strcmp(cli->args->word[0], "record") != 0)
		return uar_cli_fail(cli, UAR_EXIT_USAGE, "uar fixture record RUN");
	e = uar_remote_run_id(cli, cli->args->word[1], run_id, &error);
	if (!e) {
		f.run_id = uar_str_c(run_id);
		e = uar_remote_follow(cli, &f, &error);
	}
	return e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error) : UAR_EXIT_OK;
}
