/* verbs_export.c - export: what a run has made, in a terminal or in a file. */
#include <errno.h>
#include <unistd.h>

#include "app/cli.h"
#include "app/evidence.h"
#include "app/limits.h"
#include "app/remote.h"
#include "app/text.h"
#include "gate/limits.h"
#include "http/limits.h"

enum { PIECE = 4194304 }; /* bytes of content that are asked for at once */

/* --- the list ----------------------------------------------------------------------- */

struct listing {
	struct uar_cli *cli;
	const char *run_id;
	const char *want; /* an id, or a number from 1; NULL: all */
	uint64_t number;  /* of the item at hand, from 1 */
	/* the one that was wanted */
	bool found;
	char item_id[UAR_LIMIT_ID_BYTES + 1];
	char url[1024]; /* of an item whose bytes are elsewhere */
	bool text;	/* fit for a terminal */
	uint64_t bytes;
};

/* Bytes are not for eyes: says how to get them. */
static void put_bytes(const struct listing *l, struct uar_buf *out, const struct uar_json *item)
{
	uar_str label = uar_json_text(item, "label");

	uar_buf_printf(out, "[%lld bytes] ",
		       (long long)uar_json_int(uar_json_get(item, UAR_STR("bytes")), 0));
	uar_text_brief(out, label.n ? label : uar_json_text(item, "mime"), 80);
	uar_buf_printf(out, "  (uar export %s %llu -o FILE)", l->run_id,
		       (unsigned long long)l->number);
}

static bool is_here(const struct uar_json *item)
{
	return uar_str_starts(uar_json_text(item, "binary_url"), UAR_STR("/runs/"));
}

static void put_item(const struct listing *l, struct uar_buf *out, const struct uar_json *item)
{
	uar_str type = uar_json_text(item, "type");

	if (l->cli->args->option[UAR_OPT_JSON])
		uar_json_write(out, item);
	else if (uar_str_is(type, "binary") || is_here(item))
		put_bytes(l, out, item);
	else
		uar_text_value(out, uar_json_get(item, type));
	uar_buf_add_char(out, '\n');
}

static bool is_wanted(const struct listing *l, const struct uar_json *item)
{
	uint64_t number;

	if (uar_str_is(uar_json_text(item, "export_item_id"), l->want))
		return true;
	return uar_str_u64(uar_str_c(l->want), &number) == UAR_OK && number == l->number;
}

static void take_item(struct listing *l, const struct uar_json *item)
{
	uar_str type = uar_json_text(item, "type"), url = uar_json_text(item, "url");
	struct uar_buf clean = uar_buf_make(sizeof l->url);

	if (!url.n && !is_here(item))
		url = uar_json_text(item, "binary_url");
	l->found = true;
	l->bytes = (uint64_t)uar_json_int(uar_json_get(item, UAR_STR("bytes")), 0);
	l->text = uar_str_is(type, "text") || uar_str_is(type, "json");
	snprintf(l->item_id, sizeof l->item_id, "%.*s",
		 UAR_FMT(uar_json_text(item, "export_item_id")));
	uar_text_brief(&clean, url, sizeof l->url - 8);
	snprintf(l->url, sizeof l->url, "%.*s", UAR_FMT(uar_buf_str(&clean)));
	uar_buf_fini(&clean);
}

/* A page of items; `after` becomes where the next one begins, or empty. */
static uar_err show_page(struct listing *l, const char *path, struct uar_buf *after,
			 struct uar_error *error)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	struct uar_remote_answer a = { .root = NULL };
	uar_err e = uar_remote_ask(
		l->cli, &(struct uar_api_request){ .method = "GET", .path = path }, &a, error);
	const struct uar_json *item =
		e ? NULL : uar_json_at(uar_json_get(a.root, UAR_STR("items")), 0);

	uar_buf_clear(after);
	for (; item && !l->found; item = item->next) {
		l->number++;
		if (!l->want)
			put_item(l, &text, item);
		else if (is_wanted(l, item))
			take_item(l, item);
	}
	if (!e)
		uar_buf_add_str(after, uar_json_text(a.root, "next_after"));
	if (!e)
		e = uar_cli_write(l->cli, &text) == UAR_EXIT_OK ? after->err : UAR_EIO;
	uar_remote_answer_fini(&a);
	uar_buf_fini(&text);
	return e;
}

static uar_err show_items(struct listing *l, struct uar_error *error)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_HTTP_TARGET);
	struct uar_buf after = uar_buf_make(UAR_LIMIT_ID_BYTES);
	uar_err e;

	do {
		uar_buf_clear(&path);
		uar_buf_add_str(&path, UAR_STR("/runs/"));
		uar_api_escape(&path, uar_str_c(l->run_id));
		uar_buf_printf(&path, "/export?limit=%d%s%.*s", UAR_LIMIT_EXPORT_PAGE,
			       after.n ? "&after=" : "", UAR_FMT(uar_buf_str(&after)));
		e = path.err ? path.err : show_page(l, path.p, &after, error);
	} while (!e && after.n && !l->found);
	uar_buf_fini(&after);
	uar_buf_fini(&path);
	return e;
}

/* --- the bytes ------------------------------------------------------------------------ */

/* Piece by piece: an upload may be larger than memory. */
static uar_err copy_content(const struct listing *l, FILE *to, struct uar_error *error)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_HTTP_TARGET);
	struct uar_buf piece = uar_buf_make(PIECE + 1);
	struct uar_api_request r = { .method = "GET", .span = PIECE };
	struct uar_api api;
	uar_err e = uar_remote_find(l->cli, &api, error);

	uar_buf_add_str(&path, UAR_STR("/runs/"));
	uar_api_escape(&path, uar_str_c(l->run_id));
	uar_buf_printf(&path, "/export/%s/content", l->item_id);
	r.path = path.p;
	if (!e)
		e = path.err;
	while (!e && r.offset < l->bytes) {
		uar_buf_clear(&piece);
		e = uar_api_call(&api, &r, &piece, error);
		if (!e && !piece.n)
			e = uar_error_set(error, UAR_EEOF, "the content ends too early");
		if (!e && fwrite(piece.p, 1, piece.n, to) != piece.n)
			e = uar_error_set(error, UAR_EIO, "cannot write: %s", strerror(errno));
		r.offset += piece.n;
	}
	if (!e && fflush(to))
		e = uar_error_set(error, UAR_EIO, "cannot write: %s", strerror(errno));
	uar_buf_fini(&piece);
	uar_buf_fini(&path);
	return e;
}

/* The file is there whole or as it was before. */
static uar_err save(const struct listing *l, const char *name, struct uar_error *error)
{
	char part[4096];
	FILE *to;
	uar_err e;

	if (snprintf(part, sizeof part, "%s.part", name) >= (int)sizeof part)
		return uar_error_set(error, UAR_ETOOBIG, "the file's name is too long");
	to = fopen(part, "we");
	if (!to)
		return uar_error_set(error, UAR_EIO, "%s: %s", part, strerror(errno));
	e = copy_content(l, to, error);
	if (fclose(to) && !e)
		e = uar_error_set(error, UAR_EIO, "%s: %s", part, strerror(errno));
	if (!e && rename(part, name))
		e = uar_error_set(error, UAR_EIO, "%s: %s", name, strerror(errno));
	if (e)
		unlink(part);
	return e;
}

static uar_err get_item(const struct listing *l, struct uar_error *error)
{
	const char *file = l->cli->args->option[UAR_OPT_OUTPUT];

	if (!l->found)
		return uar_error_set(error, UAR_ENOTFOUND, "the run has no item %.60s", l->want);
	if (l->url[0] && file)
		return uar_error_set(error, UAR_EINVALID, "its bytes are elsewhere: %s", l->url);
	if (l->url[0])
		return fprintf(l->cli->out, "%s\n", l->url) < 0 || fflush(l->cli->out) ? UAR_EIO
										       : UAR_OK;
	if (file)
		return save(l, file, error);
	if (l->cli->out_tty && !l->text)
		return uar_error_set(error, UAR_EINVALID,
				     "bytes are not for a terminal: name a file with --output");
	return copy_content(l, l->cli->out, error);
}

int uar_verb_export(struct uar_cli *cli)
{
	const struct uar_args *args = cli->args;
	char run_id[UAR_LIMIT_ID_BYTES + 1];
	struct listing l = { .cli = cli,
			     .run_id = run_id,
			     .want = args->words > 1 ? args->word[1] : NULL };
	struct uar_error error = { 0 };
	uar_err e;

	if (uar_export_is_evidence(args->word[0]))
		return uar_export_evidence(cli);
	if (args->option[UAR_OPT_OUTPUT] && !l.want)
		return uar_cli_fail(cli, UAR_EXIT_USAGE, "which item? uar export RUN ITEM -o FILE");
	e = uar_remote_run_id(cli, args->word[0], run_id, &error);
	if (!e)
		e = show_items(&l, &error);
	if (!e && l.want)
		e = get_item(&l, &error);
	return e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error) : UAR_EXIT_OK;
}
