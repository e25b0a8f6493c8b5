/* verbs_models.c - uar models: what each configured provider offers, and whether it answers.
 *
 * Needs no server: the providers are made as a server makes them, and asked one after the other. */
#include "app/cli.h"
#include "app/limits.h"
#include "app/serve_int.h"
#include "app/text.h"
#include "base/alloc.h"
#include "model/list.h"

struct asking {
	struct uar_cli *cli;
	struct server s; /* its providers alone */
	struct uar_buf out;
	struct uar_jw w;
	bool json, good;
	const char *provider; /* asked just now */
	struct uar_buf said;  /* by a model that is tried */
	int64_t begun_us;
};

/* --- lists ------------------------------------------------------------------------------- */

static void put_problem(struct asking *a, const struct uar_models_listed *r)
{
	const char *why = r->reason && *r->reason ? r->reason : uar_err_text(r->err);

	a->good = false;
	if (a->json) {
		uar_jw_cstr(&a->w, "status", "failed");
		uar_jw_int(&a->w, "http_status", r->status);
		uar_jw_cstr(&a->w, "message", why);
	} else if (r->status) {
		uar_buf_printf(&a->out, "%s: failed: it answers with status %d\n", a->provider,
			       r->status);
	} else {
		uar_buf_printf(&a->out, "%s: failed: %s\n", a->provider, why);
	}
}

static void put_names(struct asking *a, const struct uar_models_listed *r)
{
	if (a->json) {
		uar_jw_cstr(&a->w, "status", "ok");
		uar_jw_arr(&a->w, "models");
	} else {
		uar_buf_printf(&a->out, "%s: ok, %zu models\n", a->provider, r->count);
	}
	for (size_t i = 0; i < r->count; i++) {
		if (a->json) {
			uar_jw_str(&a->w, NULL, r->names[i]);
			continue;
		}
		uar_buf_printf(&a->out, "  %s/", a->provider);
		uar_text_clean(&a->out, r->names[i], false);
		uar_buf_add_char(&a->out, '\n');
	}
	if (a->json)
		uar_jw_close(&a->w);
}

static void on_listed(void *ctx, const struct uar_models_listed *r)
{
	struct asking *a = ctx;

	if (r->err)
		put_problem(a, r);
	else
		put_names(a, r);
	uar_loop_stop(a->s.loop);
}

static void list_provider(struct asking *a, struct uar_model *m)
{
	struct uar_error error = { 0 };
	struct uar_models_listed refused = { 0 };

	a->provider = m->provider;
	if (a->json) {
		uar_jw_obj(&a->w, NULL);
		uar_jw_cstr(&a->w, "provider", m->provider);
	}
	refused.err = uar_model_list(m, on_listed, a, &error);
	refused.reason = error.text;
	if (!refused.err)
		uar_loop_run(a->s.loop);
	else
		put_problem(a, &refused);
	if (a->json)
		uar_jw_close(&a->w);
}

/* --- a model that is tried ------------------------------------------------------------------ */

static void on_text(void *ctx, uar_str delta)
{
	struct asking *a = ctx;

	uar_buf_add_str(&a->said, uar_str_utf8_prefix(delta, UAR_LIMIT_ERROR_TEXT - a->said.n));
}

static void on_reasoning(void *ctx, uar_str delta)
{
	(void)ctx, (void)delta;
}

static void put_tried(struct asking *a, const struct uar_model_result *m, int64_t took_ms)
{
	uar_jw_cstr(&a->w, "status", m->failure ? "failed" : "ok");
	uar_jw_int(&a->w, "took_ms", took_ms);
	if (m->failure) {
		uar_jw_cstr(&a->w, "failure_category", uar_model_failure_name(m->failure));
		uar_jw_str(&a->w, "message", m->message);
	} else {
		uar_jw_str(&a->w, "answer", uar_buf_str(&a->said));
	}
}

static void on_done(void *ctx, const struct uar_model_result *m)
{
	struct asking *a = ctx;
	int64_t took_ms = (uar_clock_mono(a->cli->clock) - a->begun_us) / 1000;
	uar_str text = m->failure ? m->message : uar_str_trim(uar_buf_str(&a->said));

	a->good = !m->failure;
	if (a->json) {
		put_tried(a, m, took_ms);
	} else {
		uar_buf_printf(&a->out, "%s: %s after %lld ms: ", a->cli->args->word[0],
			       m->failure ? "failed" : "ok", (long long)took_ms);
		uar_text_clean(&a->out, text, false);
		uar_buf_add_char(&a->out, '\n');
	}
	uar_loop_stop(a->s.loop);
}

static uar_err try_model(struct asking *a, const char *name, struct uar_error *error)
{
	struct uar_model_part part = uar_model_text_part(UAR_STR("Answer with the word OK."));
	struct uar_model_message message = { UAR_MODEL_USER, &part, 1 };
	struct uar_model_request request = { .messages = &message, .message_count = 1 };
	struct uar_model_events events = { on_text, on_reasoning, on_done, a };
	struct uar_model_call *call;
	struct uar_model_target t;
	uar_err e = uar_models_resolve(a->s.models, uar_str_c(name), &t, error);

	if (e)
		return e;
	request.model = t.name;
	request.idle_timeout_us = a->s.config->value.model_idle_timeout_us;
	uar_models_fit(&t.row, &request);
	a->begun_us = uar_clock_mono(a->cli->clock);
	a->said = uar_buf_make(UAR_LIMIT_ERROR_TEXT + 1);
	if (a->json)
		uar_jw_cstr(&a->w, "model", name);
	e = t.model->ops->start(t.model, &request, &events, &call, error);
	if (!e)
		uar_loop_run(a->s.loop);
	uar_buf_fini(&a->said);
	return e;
}

/* --- the verb ------------------------------------------------------------------------------- */

static uar_err list_all(struct asking *a, const char *only, struct uar_error *error)
{
	size_t asked = 0;

	if (a->json)
		uar_jw_arr(&a->w, "providers");
	for (size_t i = 0; i < uar_models_count(a->s.models); i++) {
		struct uar_model *m = uar_models_at(a->s.models, i);

		if (strcmp(m->provider, "scripted") == 0 ||
		    (only && strcmp(m->provider, only) != 0))
			continue;
		list_provider(a, m);
		asked++;
	}
	if (a->json)
		uar_jw_close(&a->w);
	if (only && !asked)
		return uar_error_set(error, UAR_ENOTFOUND,
				     "there is no provider %.40s: see `uar config`", only);
	if (!asked && !a->json)
		uar_buf_printf(
			&a->out,
			"No provider is configured: agents use the scripted model. Set UAR_MODEL "
			"and a key or OLLAMA_HOST, or `providers`.\n");
	return UAR_OK;
}

static uar_err ask(struct asking *a, struct uar_error *error)
{
	const char *word = a->cli->args->words ? a->cli->args->word[0] : NULL;
	uar_err e = uar_loop_create(a->cli->clock, &a->s.loop);

	if (!e)
		e = uar_server_make_providers(&a->s, error);
	if (e)
		return e;
	return word && strchr(word, '/') ? try_model(a, word, error) : list_all(a, word, error);
}

static void free_asking(struct asking *a)
{
	uar_models_destroy(a->s.models);
	uar_arena_fini(&a->s.routing.arena);
	uar_client_destroy(a->s.net.client);
	if (a->s.loop)
		uar_loop_destroy(a->s.loop);
	uar_buf_fini(&a->out);
	uar_free(a);
}

int uar_verb_models(struct uar_cli *cli)
{
	struct asking *a = uar_zalloc(sizeof *a);
	struct uar_error error = { 0 };
	int status = UAR_EXIT_OK;
	uar_err e;

	if (!a)
		return uar_cli_fail_as(cli, UAR_EXIT_FAILED, UAR_ENOMEM, "out of memory");
	a->cli = cli;
	a->json = cli->args->option[UAR_OPT_JSON];
	a->good = true;
	a->out = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	a->w = uar_jw_begin(&a->out);
	a->s.config = cli->config;
	a->s.log = (struct uar_log){ .clock = cli->clock, .level = UAR_LOG_OFF };
	if (a->json)
		uar_jw_obj(&a->w, NULL);
	e = ask(a, &error);
	if (a->json) {
		uar_jw_close(&a->w);
		if (uar_jw_end(&a->w) == UAR_OK)
			uar_buf_add_char(&a->out, '\n');
	}
	if (e)
		status = uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error);
	else
		status = uar_cli_write(cli, &a->out);
	if (!status && !a->good)
		status = UAR_EXIT_FAILED;
	free_asking(a);
	return status;
}
