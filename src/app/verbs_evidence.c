/* verbs_evidence.c - export evidence, replay, review; verify. */
#include "app/evidence.h"

#include <errno.h>
#include <unistd.h>

#include "app/limits.h"
#include "app/remote.h"
#include "base/file.h"
#include "event/sizes.h"
#include "evidence/evidence.h"
#include "evidence/limits.h"
#include "http/limits.h"

bool uar_export_is_evidence(const char *word)
{
	return !strcmp(word, "evidence") || !strcmp(word, "replay") || !strcmp(word, "review");
}

/* --- export ---------------------------------------------------------------------------------- */

/* The scope as the input of the command; UAR_EINVALID: none was given. */
static uar_err write_scope(const struct uar_cli *cli, struct uar_buf *out)
{
	static const struct {
		const char *member;
		enum uar_opt option;
	} rows[] = { { "session_id", UAR_OPT_SESSION },
		     { "thread_id", UAR_OPT_THREAD },
		     { "turn_id", UAR_OPT_TURN },
		     { "task_id", UAR_OPT_TASK } };
	struct uar_jw w = uar_jw_begin(out);
	size_t n = 0;
	uar_err e;

	uar_jw_obj(&w, NULL);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (cli->args->option[rows[i].option]) {
			uar_jw_cstr(&w, rows[i].member, cli->args->option[rows[i].option]);
			n++;
		}
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	return e ? e : n ? UAR_OK : UAR_EINVALID;
}

static uar_err fetch(struct uar_cli *cli, uar_str input, struct uar_remote_answer *a,
		     struct uar_error *error)
{
	struct uar_remote_answer made = { .root = NULL };
	struct uar_buf path = uar_buf_make(UAR_LIMIT_HTTP_TARGET);
	uar_err e;

	uar_buf_printf(&path, "/api/control/export_%s", cli->args->word[0]);
	e = uar_remote_ask(
		cli, &(struct uar_api_request){ .method = "POST", .path = path.p, .body = input },
		&made, error);
	if (!e) {
		uar_buf_clear(&path);
		uar_buf_add_str(&path, UAR_STR("/api/evidence/"));
		uar_api_escape(&path, uar_json_str(uar_json_pointer(made.root,
								    UAR_STR("/result/evidence_id")),
						   UAR_STR("")));
		e = path.err ? path.err
			     : uar_remote_ask(
				       cli,
				       &(struct uar_api_request){ .method = "GET", .path = path.p },
				       a, error);
	}
	uar_remote_answer_fini(&made);
	uar_buf_fini(&path);
	return e;
}

/* The file is there whole or as it was before. */
static uar_err save(const char *name, uar_str text, struct uar_error *error)
{
	char part[4096];
	FILE *to;
	bool fine;

	if (snprintf(part, sizeof part, "%s.part", name) >= (int)sizeof part)
		return uar_error_set(error, UAR_ETOOBIG, "the file's name is too long");
	to = fopen(part, "we");
	if (!to)
		return uar_error_set(error, UAR_EIO, "%s: %s", part, strerror(errno));
	fine = fwrite(text.p, 1, text.n, to) == text.n;
	fine = !fclose(to) && fine;
	if (fine && !rename(part, name))
		return UAR_OK;
	(void)uar_error_set(error, UAR_EIO, "%s: %s", name, strerror(errno));
	unlink(part);
	return UAR_EIO;
}

int uar_export_evidence(struct uar_cli *cli)
{
	const char *file = cli->args->option[UAR_OPT_OUTPUT];
	struct uar_buf input = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e = write_scope(cli, &input);
	int status = UAR_EXIT_OK;

	if (e == UAR_EINVALID || cli->args->words > 1) {
		uar_buf_fini(&input);
		return uar_cli_fail(cli, UAR_EXIT_USAGE,
				    "of what? uar export %s --session ID, --thread ID, --thread ID "
				    "--turn ID, or --task ID",
				    cli->args->word[0]);
	}
	if (!e)
		e = fetch(cli, uar_buf_str(&input), &a, &error);
	if (!e && file)
		e = save(file, uar_buf_str(&a.text), &error);
	if (e)
		status = uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error);
	else if (!file)
		status = uar_cli_write(cli, &a.text);
	else
		fprintf(cli->out, "%.*s\n", UAR_FMT(uar_json_text(a.root, "evidence_id")));
	uar_remote_answer_fini(&a);
	uar_buf_fini(&input);
	return status;
}

/* --- verify ---------------------------------------------------------------------------------- */

static int tell(struct uar_cli *cli, const struct uar_evidence_report *r)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_jw w = uar_jw_begin(&text);
	int status;

	if (cli->args->option[UAR_OPT_JSON]) {
		uar_jw_obj(&w, NULL);
		uar_jw_bool(&w, "ok", true);
		uar_jw_cstr(&w, "kind", r->kind);
		uar_jw_cstr(&w, "evidence_id", r->evidence_id);
		uar_jw_cstr(&w, "sha256", r->sha256);
		uar_jw_u64(&w, "events", r->events);
		uar_jw_bool(&w, "replayed", r->replayed);
		uar_jw_close(&w);
		text.err = uar_jw_end(&w);
		uar_buf_add_char(&text, '\n');
	} else {
		uar_buf_printf(&text, "%s\n%s of %llu events, sha256 %s%s\nok\n", r->evidence_id,
			       r->kind, (unsigned long long)r->events, r->sha256,
			       r->replayed ? ", its events fold into the same read models" : "");
	}
	status = uar_cli_write(cli, &text);
	uar_buf_fini(&text);
	return status;
}

int uar_verb_verify(struct uar_cli *cli)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_EVIDENCE_BYTES);
	struct uar_evidence_report report;
	struct uar_error error = { 0 };
	uar_err e = uar_file_read(cli->args->word[0], &text, &error);
	int status;

	if (!e)
		e = uar_evidence_verify(uar_buf_str(&text), &report, &error);
	status = e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error) : tell(cli, &report);
	uar_buf_fini(&text);
	return status;
}
