/* agent_openapi.c - `uar agent openapi`: a service's OpenAPI document becomes tools of a
 * definition.
 *
 * What is printed holds the part of the document that the tools need. So it is part of the
 * definition's revision: a run keeps it, and nothing is fetched when a run begins. */
#include "app/agent_openapi.h"

#include "agent/source.h"
#include "app/limits.h"
#include "app/text.h"
#include "base/file.h"
#include "json/limits.h"
#include "tool/exchange.h"
#include "tool/http_source.h"

struct taking {
	struct uar_cli *cli;
	struct uar_arena arena;
	struct uar_buf text;  /* of the document as it was found */
	struct uar_buf entry; /* of it, JSON */
	struct uar_error *error;
	uar_str url; /* where it was found; empty: in a file */
	struct uar_loop *loop;
	uar_err fetched;
};

/* --- the document --------------------------------------------------------------------------- */

static void on_fetched(void *ctx, const struct uar_exchange *x)
{
	struct taking *t = ctx;
	struct uar_exchange_answer a = uar_exchange_answer(x);

	t->fetched = a.err;
	if (a.err)
		(void)uar_error_set(t->error, a.err, "%s", a.reason);
	else if (a.status != 200)
		t->fetched = uar_error_set(t->error, UAR_ENOTFOUND, "it answers with status %d",
					   a.status);
	if (!t->fetched) {
		uar_buf_add_str(&t->text, a.body);
		t->url = uar_arena_str(&t->arena, a.url);
		t->fetched = t->url.p ? t->text.err : UAR_ENOMEM;
	}
	uar_loop_stop(t->loop);
}

static uar_err fetch(struct taking *t, const char *url)
{
	struct uar_client *client = NULL;
	struct uar_exchange *x = NULL;
	struct uar_exchange_options o = { .method = "GET",
					  .url = url,
					  .max_bytes = UAR_LIMIT_JSON_BYTES,
					  .own = true,
					  .done = on_fetched,
					  .ctx = t };
	uar_err e = uar_loop_create(t->cli->clock, &t->loop);

	if (!e)
		e = uar_client_create(t->loop, t->cli->config->value.ca_file, &client);
	o.client = client;
	if (!e)
		e = uar_exchange_begin(&o, &x, t->error);
	if (!e) {
		uar_loop_run(t->loop);
		e = t->fetched;
	}
	uar_client_destroy(client);
	if (t->loop)
		uar_loop_destroy(t->loop);
	return e;
}

static bool is_url(const char *place)
{
	uar_str s = uar_str_c(place);

	return uar_str_starts(s, UAR_STR("https://")) || uar_str_starts(s, UAR_STR("http://"));
}

/* JSON, or YAML as definitions are written. */
static uar_err read_document(struct taking *t, const char *place, const struct uar_json **out)
{
	struct uar_buf json = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	uar_err e = is_url(place) ? fetch(t, place) : uar_file_read(place, &t->text, t->error);
	uar_str text = uar_str_trim(uar_buf_str(&t->text));
	bool is_json = uar_str_starts(text, UAR_STR("{"));

	if (!e)
		e = uar_source_read(is_json ? UAR_STR(".json") : UAR_STR(".yaml"), text, &json,
				    t->error);
	if (!e)
		e = uar_json_parse_copy(uar_buf_str(&json), NULL, &t->arena, out, t->error);
	uar_buf_fini(&json);
	return e;
}

/* --- what becomes of it --------------------------------------------------------------------- */

/* The patterns behind the place of the document; NULL: there are none. */
static uar_err read_patterns(struct taking *t, const struct uar_json **out)
{
	const struct uar_args *args = t->cli->args;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e;

	*out = NULL;
	if (args->words <= 2)
		return UAR_OK;
	uar_jw_arr(&w, NULL);
	for (size_t i = 2; i < args->words; i++)
		uar_jw_cstr(&w, NULL, args->word[i]);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	if (!e)
		e = uar_json_parse_copy(uar_buf_str(&b), NULL, &t->arena, out, t->error);
	uar_buf_fini(&b);
	return e;
}

/* As a server would read it: the tools that come of it. */
static uar_err list_tools(struct taking *t, const struct uar_json **entry, struct uar_buf *ids)
{
	struct uar_buf list = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	const struct uar_json *all = NULL;
	struct uar_tools *source = NULL;
	struct uar_http_tools_options o = { .sched = NULL };
	const struct uar_tool *tool;
	uar_err e;

	uar_buf_printf(&list, "[%.*s]", UAR_FMT(uar_buf_str(&t->entry)));
	e = list.err;
	if (!e)
		e = uar_json_parse_copy(uar_buf_str(&list), NULL, &t->arena, &all, t->error);
	o.openapi = all;
	if (!e)
		e = uar_http_tools_create(&o, &source, t->error);
	for (size_t i = 0; !e && (tool = source->ops->at(source, i)); i++) {
		uar_buf_printf(ids, "%s", i ? ", " : "");
		uar_text_clean(ids, tool->tool_id, false);
	}
	uar_tools_destroy(source);
	uar_buf_fini(&list);
	*entry = uar_json_at(all, 0);
	return e;
}

/* JSON is YAML, too. */
static void put_yaml(const struct uar_json *entry, uar_str ids, struct uar_buf *out)
{
	uar_buf_add_str(out, UAR_STR("# Tools: "));
	uar_buf_add_str(out, ids);
	uar_buf_add_str(out, UAR_STR("\n# An agent has them when its policy.tools allows them: "
				     "allow: [\"http:*\"]\ntools:\n  openapi:\n    - base_url: "));
	uar_json_write(out, uar_json_get(entry, UAR_STR("base_url")));
	uar_buf_add_str(out, UAR_STR("\n      # headers: {Authorization: \"Bearer "
				     "${secret:NAME}\"}\n      document: "));
	uar_json_write(out, uar_json_get(entry, UAR_STR("document")));
	uar_buf_add_char(out, '\n');
}

static uar_err take(struct taking *t, const char *place, struct uar_buf *out)
{
	struct uar_openapi_options o = { .base_url = UAR_STR("") };
	struct uar_buf ids = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	const struct uar_json *entry = NULL;
	uar_err e = read_document(t, place, &o.document);

	if (!e)
		e = read_patterns(t, &o.only);
	if (!e)
		e = uar_openapi_import(&o, t->url, &t->entry, t->error);
	if (!e)
		e = list_tools(t, &entry, &ids);
	if (!e && t->cli->args->option[UAR_OPT_JSON])
		uar_buf_add_str(out, uar_buf_str(&t->entry));
	else if (!e)
		put_yaml(entry, uar_buf_str(&ids), out);
	uar_buf_fini(&ids);
	return e ? e : out->err;
}

int uar_agent_openapi(struct uar_cli *cli)
{
	const char *place = cli->args->word[1];
	struct uar_error error = { 0 };
	struct taking t = { .cli = cli, .error = &error };
	struct uar_buf out = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	int status;
	uar_err e;

	t.text = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	t.entry = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	e = take(&t, place, &out);
	if (e)
		status = uar_cli_fail_as(cli, UAR_EXIT_FAILED, e, "%s%s%s: %s", place,
					 error.where[0] ? " " : "", error.where,
					 error.text[0] ? error.text : uar_err_text(e));
	else
		status = uar_cli_write(cli, &out);
	uar_buf_fini(&out);
	uar_buf_fini(&t.text);
	uar_buf_fini(&t.entry);
	uar_arena_fini(&t.arena);
	return status;
}
