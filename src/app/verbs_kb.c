/* verbs_kb.c - kb: documents in, passages out, the state of the index. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sys/stat.h>

#include "app/cli.h"
#include "app/limits.h"
#include "app/remote.h"
#include "app/text.h"
#include "base/base64.h"
#include "base/file.h"
#include "json/limits.h"
#include "memory/limits.h"
#include "memory/media.h"

enum { SHOWN = 300, DEPTH = 16, LOOK_MS = 300 };

static long long number(const struct uar_json *j, const char *key)
{
	return (long long)uar_json_int(uar_json_get(j, uar_str_c(key)), 0);
}

/* "/api/kb/COLLECTION" + `rest` + an escaped name. */
static struct uar_buf path_of(const char *collection, const char *rest, const char *name)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_URI_BYTES);

	uar_buf_add_str(&b, UAR_STR("/api/kb/"));
	uar_api_escape(&b, uar_str_c(collection));
	uar_buf_add_str(&b, uar_str_c(rest));
	uar_api_escape(&b, uar_str_c(name));
	return b;
}

/* --- add ------------------------------------------------------------------------------------- */

struct adding {
	struct uar_cli *cli;
	const char *collection;
	size_t changed, same, pending, skipped; /* skipped: links in folders */
	int status;
};

/* Path or address as the name of a document: letters, digits, . _ - / */
static void put_name(struct uar_jw *w, const char *path)
{
	char name[UAR_LIMIT_KB_NAME + 1];
	size_t n = 0;

	while (*path == '/' || (path[0] == '.' && (path[1] == '/' || path[1] == '.')))
		path++;
	if (strlen(path) > UAR_LIMIT_KB_NAME)
		path += strlen(path) - UAR_LIMIT_KB_NAME;
	for (; *path; path++) {
		bool good = (*path >= '0' && *path <= '9') || (*path >= 'a' && *path <= 'z') ||
			    (*path >= 'A' && *path <= 'Z') || strchr("._-/", *path);

		name[n++] = good ? *path : '_';
	}
	uar_jw_str(w, "document_id", uar_str_n(name, n));
}

static void note_added(struct adding *x, const char *what, uar_err e, const struct uar_error *error,
		       const struct uar_remote_answer *a)
{
	struct uar_buf line = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	uar_str state = uar_json_text(a->root, "state");

	if (e) {
		x->status = uar_cli_fail(x->cli, UAR_EXIT_FAILED, "%s: %s", what,
					 uar_error_text(error));
		uar_buf_fini(&line);
		return;
	}
	x->changed += !uar_str_is(uar_json_text(a->root, "change"), "unchanged");
	x->same += uar_str_is(uar_json_text(a->root, "change"), "unchanged");
	x->pending += uar_str_is(state, "pending");
	if (x->cli->args->option[UAR_OPT_JSON]) {
		uar_buf_printf(&line, "%.*s\n", UAR_FMT(uar_buf_str(&a->text)));
	} else {
		uar_text_clean(&line, uar_str_c(what), false);
		uar_buf_printf(&line, ": %.*s%s%.*s\n", UAR_FMT(uar_json_text(a->root, "change")),
			       state.n ? ", " : "", UAR_FMT(state));
	}
	if (uar_cli_write(x->cli, &line))
		x->status = UAR_EXIT_FAILED;
	uar_buf_fini(&line);
}

static void send_document(struct adding *x, const char *what, struct uar_buf *body)
{
	struct uar_buf path = path_of(x->collection, "/documents", "");
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e = body->err ? body->err : path.err;

	if (!e)
		e = uar_remote_ask(x->cli,
				   &(struct uar_api_request){ .method = "PUT",
							      .path = path.p,
							      .body = uar_buf_str(body) },
				   &a, &error);
	error.code = e;
	note_added(x, what, e, &error, &a);
	uar_remote_answer_fini(&a);
	uar_buf_fini(&path);
}

static void add_url(struct adding *x, const char *url)
{
	struct uar_buf body = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_jw w = uar_jw_begin(&body);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "url", url);
	uar_jw_close(&w);
	body.err = uar_jw_end(&w);
	send_document(x, url, &body);
	uar_buf_fini(&body);
}

static void add_file(struct adding *x, const char *path)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_KB_DOCUMENT), coded = { 0 };
	struct uar_buf body = uar_buf_make((size_t)UAR_LIMIT_KB_DOCUMENT * 2);
	struct uar_jw w = uar_jw_begin(&body);
	struct uar_error error = { 0 };
	struct uar_remote_answer none = { .root = NULL };
	uar_err e = uar_file_read(path, &text, &error);
	uar_str bytes = text.n ? uar_buf_str(&text) : UAR_STR("");

	coded = uar_buf_make((size_t)UAR_LIMIT_KB_DOCUMENT * 2);
	uar_jw_obj(&w, NULL);
	put_name(&w, path);
	uar_jw_cstr(&w, "source", path);
	uar_jw_str(&w, "media_type", uar_media_type_of(uar_str_c(path)));
	if (uar_utf8_valid(bytes)) {
		uar_jw_str(&w, "text", bytes);
	} else {
		uar_base64_encode(&coded, bytes);
		uar_jw_str(&w, "content", uar_buf_str(&coded));
	}
	uar_jw_close(&w);
	if (!e)
		e = uar_jw_end(&w);
	error.code = e;
	if (e)
		note_added(x, path, e, &error, &none);
	else
		send_document(x, path, &body);
	uar_buf_fini(&text);
	uar_buf_fini(&coded);
	uar_buf_fini(&body);
}

static void add_path(struct adding *x, const char *path, int depth);

static int is_visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* By name; what is hidden is left out, and so are links, which may lead out of the folder, and what
 * cannot be read as text or PDF. */
static void add_folder(struct adding *x, const char *path, int depth)
{
	struct dirent **names = NULL;
	int n = depth < DEPTH ? scandir(path, &names, is_visible, alphasort) : 0;

	for (int i = 0; i < n; i++) {
		struct uar_buf below = uar_buf_make(UAR_LIMIT_URI_BYTES);
		struct stat st;

		uar_buf_printf(&below, "%s/%s", path, names[i]->d_name);
		if (!below.err && !lstat(below.p, &st)) {
			x->skipped += S_ISLNK(st.st_mode);
			if (S_ISDIR(st.st_mode) ||
			    (S_ISREG(st.st_mode) && uar_media_is_read(uar_buf_str(&below))))
				add_path(x, below.p, depth + 1);
		}
		uar_buf_fini(&below);
		free(names[i]);
	}
	free(names);
	if (n < 0)
		x->status = uar_cli_fail(x->cli, UAR_EXIT_FAILED, "%s: %s", path, strerror(errno));
}

static void add_path(struct adding *x, const char *path, int depth)
{
	struct stat st;

	if (!strncmp(path, "http://", 7) || !strncmp(path, "https://", 8))
		add_url(x, path);
	else if (stat(path, &st))
		x->status = uar_cli_fail(x->cli, UAR_EXIT_FAILED, "%s: %s", path, strerror(errno));
	else if (S_ISDIR(st.st_mode))
		add_folder(x, path, depth);
	else
		add_file(x, path);
}

/* --- how far the index is with what was added --- */

struct progress {
	long long pending, failed, done, total;
	char document[UAR_LIMIT_KB_NAME + 1];
};

static uar_err ask_progress(struct adding *x, struct progress *out, struct uar_error *error)
{
	struct uar_remote_answer a = { .root = NULL };
	uar_err e = uar_remote_ask(
		x->cli, &(struct uar_api_request){ .method = "GET", .path = "/api/kb" }, &a, error);
	const struct uar_json *index = e ? NULL : uar_json_get(a.root, UAR_STR("index"));
	const struct uar_json *list = e ? NULL : uar_json_get(a.root, UAR_STR("collections"));

	*out = (struct progress){ .done = number(index, "passages_done"),
				  .total = number(index, "passages_total") };
	snprintf(out->document, sizeof out->document, "%.*s",
		 UAR_FMT(uar_json_text(index, "document_id")));
	for (const struct uar_json *j = uar_json_at(list, 0); j; j = j->next)
		if (uar_str_is(uar_json_text(j, "collection"), x->collection)) {
			out->pending = number(j, "pending");
			out->failed = number(j, "failed");
		}
	uar_remote_answer_fini(&a);
	return e;
}

static void say_progress(const struct progress *p)
{
	if (p->document[0] && p->total)
		fprintf(stderr, "%s: %lld of %lld passages; documents to go: %lld\n", p->document,
			p->done, p->total, p->pending);
	else
		fprintf(stderr, "documents to go: %lld\n", p->pending);
}

/* Until all of the collection can be found. The server does that by itself: who stops waiting loses
 * nothing. */
static void follow(struct adding *x)
{
	struct progress before = { .pending = -1 }, now;
	struct uar_error error = { 0 };
	int quiet = 0;

	for (; quiet < UAR_LIMIT_CLI_KB_LOOKS; quiet++) {
		uar_err e = ask_progress(x, &now, &error);

		if (e) {
			error.code = e;
			x->status = uar_cli_fail_with(x->cli, UAR_EXIT_FAILED, e, &error);
			return;
		}
		if (!now.pending)
			break;
		if (before.pending != now.pending || before.done != now.done ||
		    strcmp(before.document, now.document) != 0) {
			say_progress(&now);
			quiet = 0;
		}
		before = now;
		(void)poll(NULL, 0, LOOK_MS);
	}
	if (now.pending)
		fprintf(stderr, "still to go: %lld; the server goes on by itself\n", now.pending);
	if (now.failed)
		fprintf(stderr, "failed: %lld; `uar kb list %s` says why\n", now.failed,
			x->collection);
}

static int add(struct uar_cli *cli)
{
	const struct uar_args *args = cli->args;
	struct adding x = { .cli = cli, .collection = args->word[1], .status = UAR_EXIT_OK };
	struct uar_buf line = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);

	for (size_t i = 2; i < (size_t)args->words; i++)
		add_path(&x, args->word[i], 0);
	if (x.pending && !args->option[UAR_OPT_JSON])
		follow(&x);
	if (!args->option[UAR_OPT_JSON]) {
		uar_buf_printf(&line, "%zu added or changed, %zu as before\n", x.changed, x.same);
		if (x.skipped)
			uar_buf_printf(&line, "%zu symbolic links skipped; name a file to add it\n",
				       x.skipped);
		if (uar_cli_write(cli, &line))
			x.status = UAR_EXIT_FAILED;
	}
	uar_buf_fini(&line);
	return x.status;
}

/* --- list, search ---------------------------------------------------------------------------- */

static void put_collections(struct uar_buf *out, const struct uar_json *root)
{
	const struct uar_json *list = uar_json_get(root, UAR_STR("collections"));

	for (const struct uar_json *j = uar_json_at(list, 0); j; j = j->next)
		uar_buf_printf(out,
			       "%.*s  %lld documents, %lld passages, %lld pending, %lld failed  "
			       "%.*s\n",
			       UAR_FMT(uar_json_text(j, "collection")), number(j, "documents"),
			       number(j, "passages"), number(j, "pending"), number(j, "failed"),
			       UAR_FMT(uar_json_text(j, "embedding")));
}

static void put_documents(struct uar_buf *out, const struct uar_json *root)
{
	const struct uar_json *list = uar_json_get(root, UAR_STR("documents"));

	for (const struct uar_json *j = uar_json_at(list, 0); j; j = j->next) {
		uar_buf_printf(out, "%.*s  %.*s  %lld bytes, %lld passages  ",
			       UAR_FMT(uar_json_text(j, "document_id")),
			       UAR_FMT(uar_json_text(j, "state")), number(j, "bytes"),
			       number(j, "passages"));
		uar_text_brief(out,
			       uar_json_text(j, "error").n ? uar_json_text(j, "error")
							   : uar_json_text(j, "title"),
			       SHOWN);
		uar_buf_add_char(out, '\n');
	}
	if (uar_json_bool(uar_json_get(root, UAR_STR("more")), false))
		uar_buf_add_str(out, UAR_STR("... and more\n"));
}

static int list(struct uar_cli *cli)
{
	const struct uar_args *args = cli->args;
	struct uar_buf path;
	int status;

	if (args->words == 1)
		return uar_remote_show(
			cli, &(struct uar_api_request){ .method = "GET", .path = "/api/kb" },
			put_collections);
	path = path_of(args->word[1], "/documents", "");
	status = path.err ? UAR_EXIT_FAILED
			  : uar_remote_show(
				    cli,
				    &(struct uar_api_request){ .method = "GET", .path = path.p },
				    put_documents);
	uar_buf_fini(&path);
	return status;
}

static void put_passages(struct uar_buf *out, const struct uar_json *root)
{
	const struct uar_json *list = uar_json_get(root, UAR_STR("passages"));

	for (const struct uar_json *j = uar_json_at(list, 0); j; j = j->next) {
		uar_buf_printf(out, "%.4f  %.*s, page %lld, line %lld: ",
			       uar_json_double(uar_json_get(j, UAR_STR("score")), 0),
			       UAR_FMT(uar_json_text(j, "document_id")), number(j, "page"),
			       number(j, "line"));
		uar_text_brief(out, uar_json_text(j, "text"), SHOWN);
		uar_buf_add_char(out, '\n');
	}
}

static int search(struct uar_cli *cli)
{
	const struct uar_args *args = cli->args;
	struct uar_buf path = path_of(args->word[1], "/search", "");
	struct uar_buf words = uar_buf_make(UAR_LIMIT_KB_QUERY);
	struct uar_buf body = uar_buf_make(UAR_LIMIT_CLI_OUTPUT);
	struct uar_jw w = uar_jw_begin(&body);
	uar_err e;
	int status;

	for (size_t i = 2; i < (size_t)args->words; i++)
		uar_buf_printf(&words, "%s%s", i > 2 ? " " : "", args->word[i]);
	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "query", uar_buf_str(&words));
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	if (!e)
		e = path.err ? path.err : words.err;
	status = e ? uar_cli_fail_as(cli, UAR_EXIT_FAILED, e, "%s", uar_err_text(e))
		   : uar_remote_show(cli,
				     &(struct uar_api_request){ .method = "POST",
								.path = path.p,
								.body = uar_buf_str(&body) },
				     put_passages);
	uar_buf_fini(&path);
	uar_buf_fini(&words);
	uar_buf_fini(&body);
	return status;
}

/* --- the rest --------------------------------------------------------------------------------- */

static void put_removed(struct uar_buf *out, const struct uar_json *root)
{
	uar_buf_printf(out, "removed %lld documents\n", number(root, "documents_removed"));
}

static void put_done(struct uar_buf *out, const struct uar_json *root)
{
	(void)root;
	uar_buf_add_str(out, UAR_STR("done\n"));
}

static void put_check(struct uar_buf *out, const struct uar_json *root)
{
	if (uar_json_text(root, "damage").n)
		uar_buf_printf(out, "damaged: %.*s; make it anew with `uar kb rebuild`\n",
			       UAR_FMT(uar_json_text(root, "damage")));
	else
		uar_buf_add_str(out, UAR_STR("the index is what the documents make it\n"));
	if (uar_json_text(root, "failures").n) {
		uar_buf_add_str(out, UAR_STR("failed: "));
		uar_text_clean(out, uar_json_text(root, "failures"), false);
		uar_buf_add_char(out, '\n');
	}
	uar_buf_printf(out, "%lld documents, %lld pending, %lld failed, %lld passages\n",
		       number(root, "documents"), number(root, "pending"), number(root, "failed"),
		       number(root, "passages"));
}

static int delete (struct uar_cli *cli)
{
	const struct uar_args *args = cli->args;
	bool one = args->words == 3;
	struct uar_buf path =
		path_of(args->word[1], one ? "/documents/" : "", one ? args->word[2] : "");
	struct uar_api_request r = { .method = "DELETE", .path = path.p };
	int status =
		path.err ? UAR_EXIT_FAILED : uar_remote_show(cli, &r, one ? put_done : put_removed);

	uar_buf_fini(&path);
	return status;
}

static int check(struct uar_cli *cli)
{
	return uar_remote_show(
		cli, &(struct uar_api_request){ .method = "POST", .path = "/api/kb-index/check" },
		put_check);
}

static int rebuild(struct uar_cli *cli)
{
	return uar_remote_show(
		cli, &(struct uar_api_request){ .method = "POST", .path = "/api/kb-index/rebuild" },
		put_done);
}

static int forget(struct uar_cli *cli)
{
	return uar_remote_show(cli,
			       &(struct uar_api_request){ .method = "DELETE", .path = "/api/kb" },
			       put_removed);
}

int uar_verb_kb(struct uar_cli *cli)
{
	static const struct {
		const char *what;
		size_t min, max; /* words, with that one */
		int (*fn)(struct uar_cli *cli);
	} all[] = {
		{ "add", 3, UAR_LIMIT_CLI_WORDS, add },
		{ "list", 1, 2, list },
		{ "search", 3, UAR_LIMIT_CLI_WORDS, search },
		{ "remove", 2, 3, delete },
		{ "check", 1, 1, check },
		{ "rebuild", 1, 1, rebuild },
		{ "forget", 1, 1, forget },
	};
	size_t words = (size_t)cli->args->words;

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (!strcmp(cli->args->word[0], all[i].what) && words >= all[i].min &&
		    words <= all[i].max)
			return all[i].fn(cli);
	return uar_cli_fail(cli, UAR_EXIT_USAGE, "see `uar help kb`");
}
