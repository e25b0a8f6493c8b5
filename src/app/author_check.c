/* author_check.c - `uar plugin check`: is a plugin right? Without a server.
 *
 * The same host as in the server loads the manifest and starts the program, so
 * what passes here works there. With an entry one run is executed; its items are
 * printed instead of stored. */
#include <signal.h>
#include <stdarg.h>

#include "app/author.h"
#include "app/limits.h"
#include "app/text.h"
#include "plugin/plugin.h"

struct check {
	struct uar_cli *cli;
	struct uar_loop *loop;
	struct uar_plugin_host *host;
	struct uar_entries *port;
	bool json, over, good, loaded, failed;
	char code[UAR_LIMIT_ID_BYTES + 1]; /* of what was wrong first, for --json */
	struct uar_buf report;		   /* JSON, or lines */
	struct uar_jw w;
	const struct uar_json *told; /* entries that the program has; NULL: it did not say */
	struct uar_entry_call *call;
	struct uar_entry_slot slot;
	unsigned items;
};

static void line(struct check *c, const char *what, const char *fmt, ...) UAR_PRINTF(3, 4);
static void line(struct check *c, const char *what, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (c->json)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	uar_buf_printf(&c->report, "%-9s ", what);
	uar_text_clean(&c->report, uar_str_c(text), false);
	uar_buf_add_char(&c->report, '\n');
}

static void show_note(void *ctx, const struct uar_plugin_note *n)
{
	struct check *c = ctx;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_LOG_LINE);

	uar_text_clean(&b, n->text, false);
	fprintf(c->cli->err, "%s: %s\n", n->what, b.p ? b.p : "");
	uar_buf_fini(&b);
}

static void wrong(struct check *c, uar_str code)
{
	c->good = false;
	if (!c->code[0])
		snprintf(c->code, sizeof c->code, "%.*s",
			 UAR_FMT(uar_str_utf8_prefix(code, sizeof c->code - 1)));
}

static void problem(struct check *c, const char *what, const struct uar_error *error)
{
	wrong(c, uar_str_c(uar_err_token(error->code)));
	line(c, what, "%s%s%s", error->where, error->where[0] ? ": " : "", uar_error_text(error));
	if (!c->json)
		return;
	uar_jw_obj(&c->w, "error");
	uar_jw_cstr(&c->w, "what", what);
	uar_jw_cstr(&c->w, "where", error->where);
	uar_jw_cstr(&c->w, "message", uar_error_text(error));
	uar_jw_close(&c->w);
}

/* --- hello ------------------------------------------------------------------------ */

static bool told_entry(const struct uar_json *list, uar_str id)
{
	for (const struct uar_json *e = uar_json_at(list, 0); e; e = e->next)
		if (uar_str_eq(uar_json_str(e, UAR_STR("")), id))
			return true;
	return false;
}

static void show_entry(void *ctx, const struct uar_entry_info *info)
{
	struct check *c = ctx;
	bool good = !c->told || told_entry(c->told, info->entry_id);
	bool known = c->told || c->loaded;

	if (!good)
		wrong(c, uar_str_c(uar_err_token(UAR_ENOTFOUND)));
	line(c, "entry", "%.*s: %s", UAR_FMT(info->entry_id),
	     !good   ? "the program does not have it"
	     : known ? "ok"
		     : "the program did not say which entries it has");
	if (!c->json)
		return;
	uar_jw_obj(&c->w, NULL);
	uar_jw_str(&c->w, "id", info->entry_id);
	uar_jw_bool(&c->w, "ok", good);
	uar_jw_close(&c->w);
}

static void show_entries(struct check *c)
{
	if (c->json)
		uar_jw_arr(&c->w, "entries");
	c->port->ops->each(c->port, show_entry, c);
	if (c->json)
		uar_jw_close(&c->w);
}

static void on_hello(void *ctx, const struct uar_json *hello, const char *why)
{
	struct check *c = ctx;
	uar_str sdk = uar_json_str(uar_json_get(hello, UAR_STR("sdk")), UAR_STR("none"));
	struct uar_error error = { .code = UAR_ECHILD };

	c->over = true;
	uar_loop_stop(c->loop);
	if (!hello) {
		uar_error_set(&error, UAR_ECHILD, "%s", why);
		problem(c, "program", &error);
		return;
	}
	c->told = uar_json_get(hello, UAR_STR("entries"));
	line(c, "program", "ok: it answered hello, sdk %.*s",
	     UAR_FMT(uar_str_utf8_prefix(sdk, 40)));
	if (c->json)
		uar_jw_str(&c->w, "sdk", sdk);
	show_entries(c);
	c->told = NULL; /* was borrowed */
}

static void say_hello(struct check *c)
{
	struct uar_plugin_probe probe = { on_hello, c };
	struct uar_error error = { 0 };
	uar_err e = uar_plugin_host_probe(c->host, &probe, &error);

	if (e == UAR_ESKIP) {
		c->loaded = true;
		line(c, "library", "ok: it is loaded");
		show_entries(c);
		return;
	}
	if (e) {
		error.code = e;
		problem(c, "program", &error);
		return;
	}
	while (!c->over)
		uar_loop_run(c->loop);
}

/* --- one run ------------------------------------------------------------------------- */

static void on_progress(void *ctx, const struct uar_progress *p)
{
	struct check *c = ctx;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);

	if (p->value >= 0)
		uar_buf_printf(&b, "%3.0f%%  ", p->value * 100);
	uar_text_clean(&b, p->stage, false);
	if (p->stage.n)
		uar_buf_add_str(&b, UAR_STR("  "));
	uar_text_clean(&b, p->message, false);
	fprintf(c->cli->err, "progress: %s\n", b.p ? b.p : "");
	uar_buf_fini(&b);
}

static void on_exported(void *ctx, const struct uar_export *x, uar_str raw, uint64_t ticket)
{
	struct check *c = ctx;
	char id[32];

	snprintf(id, sizeof id, "item-%u", ++c->items);
	if (raw.n || x->upload.n)
		line(c, "exported", "%.*s %.*s", UAR_FMT(x->type), UAR_FMT(x->mime));
	else
		line(c, "exported", "%.*s %.*s", UAR_FMT(x->type),
		     UAR_FMT(uar_str_utf8_prefix(x->content, 400)));
	c->port->ops->answer(c->call,
			     &(struct uar_entry_answer){ .ticket = ticket, .id = uar_str_c(id) });
}

static void on_uploaded(void *ctx, const struct uar_piece *p, uint64_t ticket)
{
	struct check *c = ctx;

	(void)p; /* the item that names it is what counts */
	c->port->ops->answer(c->call, &(struct uar_entry_answer){ .ticket = ticket });
}

static void on_done(void *ctx, const struct uar_entry_end *end)
{
	struct check *c = ctx;

	c->over = true;
	c->call = NULL;
	c->failed = end->how != UAR_ENTRY_HOW_FINISHED;
	if (c->failed)
		wrong(c, end->code);
	uar_loop_stop(c->loop);
	if (end->how == UAR_ENTRY_HOW_FINISHED)
		line(c, "result", "%.*s", UAR_FMT(uar_str_utf8_prefix(end->result, 400)));
	else
		line(c, "failed", "%.*s: %.*s", UAR_FMT(end->code),
		     UAR_FMT(uar_str_utf8_prefix(end->message, 400)));
	if (!c->json)
		return;
	uar_jw_obj(&c->w, "run");
	uar_jw_int(&c->w, "items", c->items);
	if (end->how == UAR_ENTRY_HOW_FINISHED)
		uar_jw_raw(&c->w, "result", end->result.n ? end->result : UAR_STR("null"));
	else
		uar_jw_str(&c->w, "code", end->code);
	uar_jw_str(&c->w, "message", end->message);
	uar_jw_close(&c->w);
}

static void on_ready(struct uar_entry_slot *slot)
{
	(void)slot; /* there is always a place */
}

static uar_err start(struct check *c, uar_str plugin_id, const char *entry, struct uar_error *error)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_MESSAGE);
	struct uar_entry_events events = { .progress = on_progress,
					   .exported = on_exported,
					   .uploaded = on_uploaded,
					   .done = on_done,
					   .ctx = c };
	struct uar_entry_request r = { .run_id = UAR_STR("check-1"),
				       .root_run_id = UAR_STR("check-1"),
				       .entry_id = uar_str_c(entry),
				       .attempt = 1 };
	const struct uar_json *args;
	struct uar_arena arena;
	uar_err e = uar_cli_args_text(c->cli, &text, error);

	r.args = uar_buf_str(&text);
	uar_arena_init(&arena, 0);
	uar_error_where(error, "/args");
	if (!e)
		e = uar_json_parse(r.args, NULL, &arena, &args, error);
	if (!e) {
		uar_error_where(error, "%s", "");
		e = c->port->ops->check(c->port, plugin_id, r.entry_id, args, error);
	}
	if (!e)
		e = c->port->ops->ask(c->port, plugin_id, r.entry_id, &c->slot);
	if (!e)
		e = c->port->ops->start(c->port, &c->slot, &r, &events, &c->call, error);
	uar_arena_fini(&arena);
	uar_buf_fini(&text);
	return e;
}

static void execute(struct check *c, uar_str plugin_id, const char *entry)
{
	struct uar_error error = { 0 };
	uar_err e;

	c->slot.ready = on_ready;
	c->over = false;
	e = start(c, plugin_id, entry, &error);
	error.code = e;
	if (e)
		problem(c, "run", &error);
	while (!e && !c->over)
		uar_loop_run(c->loop);
}

/* --- the whole -------------------------------------------------------------------------- */

static void first_entry(void *ctx, const struct uar_entry_info *info)
{
	*(struct uar_entry_info *)ctx = *info;
}

static void examine(struct check *c, const char *entry)
{
	struct uar_entry_info info = { .concurrency = 0 };

	c->port = uar_plugin_host_entries(c->host);
	c->port->ops->each(c->port, first_entry, &info);
	line(c, "manifest", "ok: %.*s %.*s", UAR_FMT(info.plugin_id), UAR_FMT(info.version));
	if (c->json) {
		uar_jw_str(&c->w, "plugin_id", info.plugin_id);
		uar_jw_str(&c->w, "version", info.version);
	}
	say_hello(c);
	if (entry && c->good)
		execute(c, info.plugin_id, entry);
}

static int finish(struct check *c)
{
	int status;

	if (c->json) {
		if (!c->good)
			uar_jw_cstr(&c->w, "code", c->code);
		uar_jw_bool(&c->w, "ok", c->good);
		uar_jw_close(&c->w);
		if (uar_jw_end(&c->w) == UAR_OK)
			uar_buf_add_char(&c->report, '\n');
	} else {
		uar_buf_add_str(&c->report, c->good	? UAR_STR("ok\n")
					    : c->failed ? UAR_STR("the run failed\n")
							: UAR_STR("not usable\n"));
	}
	status = uar_cli_write(c->cli, &c->report);
	uar_plugin_host_destroy(c->host);
	uar_loop_destroy(c->loop);
	uar_buf_fini(&c->report);
	return status == UAR_EXIT_OK && !c->good ? UAR_EXIT_FAILED : status;
}

int uar_author_check(struct uar_cli *cli, const char *folder, const char *entry)
{
	struct check c = { .cli = cli,
			   .json = cli->args->option[UAR_OPT_JSON],
			   .good = true,
			   .report = uar_buf_make(UAR_LIMIT_CLI_ANSWER) };
	struct uar_plugin_host_options o = {
		.only = folder, .env = cli->env, .note = show_note, .ctx = &c
	};
	struct uar_error error = { 0 };
	uar_err e = uar_loop_create(cli->clock, &c.loop);

	signal(SIGPIPE, SIG_IGN); /* a program that has left is told by its status */
	c.w = uar_jw_begin(&c.report);
	if (c.json)
		uar_jw_obj(&c.w, NULL);
	o.loop = c.loop;
	if (!e)
		e = uar_plugin_host_create(&o, &c.host, &error);
	error.code = e;
	if (e)
		problem(&c, "manifest", &error);
	else
		examine(&c, entry);
	return finish(&c);
}
