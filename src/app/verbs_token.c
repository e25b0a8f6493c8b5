/* verbs_token.c - token: keys for people and programs, made, listed and revoked. */
#include "app/cli.h"
#include "app/limits.h"
#include "app/remote.h"
#include "app/text.h"
#include "json/limits.h"

#define KEYS "/api/admin/credentials"

/* "USER", "TENANT/USER" or "TENANT/WORKSPACE/USER". */
static void put_owner(struct uar_jw *w, const char *word)
{
	uar_str rest, first = uar_str_cut(uar_str_c(word), '/', &rest), second, user;

	if (!strchr(word, '/')) {
		uar_jw_str(w, "user", first);
		return;
	}
	uar_jw_str(w, "tenant", first);
	second = uar_str_cut(rest, '/', &user);
	if (user.n)
		uar_jw_str(w, "workspace", second);
	uar_jw_str(w, "user", user.n ? user : second);
}

static uar_err put_expiry(struct uar_jw *w, const char *text, struct uar_error *error)
{
	int64_t us;

	if (!text)
		return UAR_OK;
	if (!uar_config_read_duration(uar_str_c(text), &us) || us < 1000000)
		return uar_error_set(error, UAR_EINVALID,
				     "--expires takes a number with s, m, h or d, at least 1s; "
				     "\"%.40s\" is not one",
				     text);
	uar_jw_int(w, "expires_seconds", us / 1000000);
	return UAR_OK;
}

static void put_scopes(struct uar_jw *w, const char *text)
{
	uar_str words = uar_str_c(text ? text : "");

	if (!text)
		return;
	uar_jw_arr(w, "scopes");
	while (words.n)
		uar_jw_str(w, NULL, uar_str_trim(uar_str_cut(words, ',', &words)));
	uar_jw_close(w);
}

static uar_err ask(struct uar_cli *cli, struct uar_api_request r, struct uar_remote_answer *a)
{
	struct uar_error error = { 0 };
	uar_err e = uar_remote_ask(cli, &r, a, &error);

	if (e)
		(void)uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error);
	return e;
}

static int tell(struct uar_cli *cli, struct uar_buf *text, const struct uar_remote_answer *a)
{
	if (cli->args->option[UAR_OPT_JSON]) {
		uar_buf_clear(text);
		uar_buf_printf(text, "%.*s\n", UAR_FMT(uar_buf_str(&a->text)));
	}
	return uar_cli_write(cli, text);
}

static int new_key(struct uar_cli *cli)
{
	const struct uar_args *args = cli->args;
	struct uar_buf body = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_remote_answer a = { .root = NULL };
	struct uar_jw w = uar_jw_begin(&body);
	struct uar_error error = { 0 };
	int status;
	uar_err e;

	uar_jw_obj(&w, NULL);
	put_owner(&w, args->word[1]);
	put_scopes(&w, args->option[UAR_OPT_SCOPES]);
	if (args->option[UAR_OPT_LABEL])
		uar_jw_cstr(&w, "label", args->option[UAR_OPT_LABEL]);
	e = put_expiry(&w, args->option[UAR_OPT_EXPIRES], &error);
	uar_jw_close(&w);
	body.err = uar_jw_end(&w);
	if (e) {
		status = uar_cli_fail_with(cli, UAR_EXIT_USAGE, e, &error);
	} else if (ask(cli,
		       (struct uar_api_request){
			       .method = "POST", .path = KEYS, .body = uar_buf_str(&body) },
		       &a)) {
		status = UAR_EXIT_FAILED;
	} else {
		/* The token alone on standard output, so that it can go into a file. */
		uar_buf_printf(&text, "%.*s\n", UAR_FMT(uar_json_text(a.root, "token")));
		status = tell(cli, &text, &a);
	}
	uar_remote_answer_fini(&a);
	uar_buf_fini(&text);
	uar_buf_fini(&body);
	return status;
}

static void put_line(struct uar_buf *out, const struct uar_json *k)
{
	const struct uar_json *scopes = uar_json_get(k, UAR_STR("scopes"));
	const char *comma = "";

	uar_buf_printf(out, "%.*s\t%.*s\t%.*s/%.*s\t", UAR_FMT(uar_json_text(k, "credential_id")),
		       UAR_FMT(uar_json_text(k, "status")), UAR_FMT(uar_json_text(k, "tenant")),
		       UAR_FMT(uar_json_text(k, "user")));
	for (const struct uar_json *s = uar_json_first(scopes); s; s = s->next) {
		uar_buf_printf(out, "%s%.*s", comma, UAR_FMT(uar_json_str(s, UAR_STR(""))));
		comma = ",";
	}
	uar_buf_add_char(out, '\t');
	uar_text_clean(out, uar_json_text(k, "label"), false);
	uar_buf_add_char(out, '\n');
}

/* The cursor is what the server wrote: it may have to be escaped. */
static uar_err list_page(struct uar_cli *cli, struct uar_buf *next, struct uar_buf *text)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_URI_BYTES);
	struct uar_remote_answer a = { .root = NULL };
	uar_err e;

	uar_buf_add_str(&path, UAR_STR(KEYS "?limit=500"));
	if (next->n) {
		uar_buf_add_str(&path, UAR_STR("&cursor="));
		uar_api_escape(&path, uar_buf_str(next));
	}
	uar_buf_clear(next);
	e = path.err ? path.err
		     : ask(cli, (struct uar_api_request){ .method = "GET", .path = path.p }, &a);
	if (!e && cli->args->option[UAR_OPT_JSON]) {
		uar_buf_printf(text, "%.*s\n", UAR_FMT(uar_buf_str(&a.text)));
	} else if (!e) {
		const struct uar_json *k = uar_json_get(a.root, UAR_STR("credentials"));

		for (k = uar_json_first(k); k; k = k->next)
			put_line(text, k);
	}
	if (!e)
		uar_buf_add_str(next, uar_json_text(a.root, "next_cursor"));
	uar_remote_answer_fini(&a);
	uar_buf_fini(&path);
	return e;
}

static int list_keys(struct uar_cli *cli)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	struct uar_buf next = uar_buf_make(UAR_LIMIT_URI_BYTES);
	int status = UAR_EXIT_OK;

	do {
		uar_buf_clear(&text);
		status = list_page(cli, &next, &text) ? UAR_EXIT_FAILED : uar_cli_write(cli, &text);
	} while (!status && next.n && !next.err);
	uar_buf_fini(&next);
	uar_buf_fini(&text);
	return status;
}

/* The whole token will do, too. */
static int revoke_key(struct uar_cli *cli)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_URI_BYTES);
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_remote_answer a = { .root = NULL };
	uar_str id = uar_str_c(cli->args->word[1]), rest;
	int status = UAR_EXIT_FAILED;

	if (uar_str_starts(id, UAR_STR("uar_")))
		id = uar_str_cut(uar_str_from(id, 4), '_', &rest);
	uar_buf_add_str(&path, UAR_STR(KEYS "/"));
	uar_api_escape(&path, id);
	if (!path.err &&
	    !ask(cli, (struct uar_api_request){ .method = "DELETE", .path = path.p }, &a)) {
		uar_buf_printf(&text, "%.*s is revoked\n",
			       UAR_FMT(uar_json_text(a.root, "credential_id")));
		status = tell(cli, &text, &a);
	}
	uar_remote_answer_fini(&a);
	uar_buf_fini(&text);
	uar_buf_fini(&path);
	return status;
}

int uar_verb_token(struct uar_cli *cli)
{
	const char *verb = cli->args->word[0];

	if (strcmp(verb, "new") == 0 && cli->args->words == 2)
		return new_key(cli);
	if (strcmp(verb, "list") == 0 && cli->args->words == 1)
		return list_keys(cli);
	if (strcmp(verb, "revoke") == 0 && cli->args->words == 2)
		return revoke_key(cli);
	return uar_cli_fail(cli, UAR_EXIT_USAGE,
			    "uar token new [TENANT/]USER, uar token list or uar token revoke KEY");
}
