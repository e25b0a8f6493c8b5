/* remote.c - the road from a verb to its server and back. */
#include "app/remote.h"

#include <errno.h>

#include "app/datadir.h"
#include "app/limits.h"
#include "http/limits.h"

enum { LIVE_MS = 500, BACKOFF_MAX_MS = 3000 };

/* --- finding ------------------------------------------------------------------- */
static const char *given_url(const struct uar_cli *cli)
{
	const char *url = cli->args->option[UAR_OPT_URL];

	return url ? url : uar_config_env(cli->env, "UAR_URL");
}

uar_err uar_remote_find(const struct uar_cli *cli, struct uar_api *out, struct uar_error *error)
{
	const struct uar_config *c = &cli->config->value;
	struct uar_server_info info = { .pid = 0 };
	const char *url = given_url(cli);
	struct uar_buf token = uar_buf_make(sizeof out->token);
	struct uar_api api;
	uar_err e = url ? UAR_OK : uar_datadir_server(c->data, &info, error);

	if (e == UAR_ENOTFOUND)
		return uar_error_set(error, UAR_ENET,
				     "no server is running on %s; start one with `uar serve`, or "
				     "name one with --url",
				     c->data);
	if (!e)
		e = uar_api_init(&api, uar_str_c(url ? url : info.url), uar_str_c(c->token), error);
	if (!e && !*c->token && (!url || api.local)) {
		e = uar_datadir_token(c, NULL, &token, error);
		if (e == UAR_ENOTFOUND)
			e = UAR_OK; /* the server will say whether it needs one */
		else if (!e)
			e = uar_api_init(&api, uar_str_c(url ? url : info.url), uar_buf_str(&token),
					 error);
	}
	uar_buf_fini(&token);
	if (!e) {
		*out = api;
		out->beside = cli->beside;
	}
	return e;
}

/* --- asking ---------------------------------------------------------------------- */
void uar_remote_answer_fini(struct uar_remote_answer *a)
{
	uar_buf_fini(&a->text);
	uar_arena_fini(&a->arena);
}

uar_err uar_remote_ask(const struct uar_cli *cli, const struct uar_api_request *r,
		       struct uar_remote_answer *a, struct uar_error *error)
{
	struct uar_error inner = { 0 };
	struct uar_api api;
	uar_err e;

	a->text = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	uar_arena_init(&a->arena, 0);
	a->root = NULL;
	e = uar_remote_find(cli, &api, error);
	if (!e)
		e = uar_api_call(&api, r, &a->text, error);
	if (e)
		return e;
	e = uar_json_parse(a->text.n ? uar_buf_str(&a->text) : UAR_STR(""), NULL, &a->arena,
			   &a->root, &inner);
	return e ? uar_error_set(error, e, "the answer of %s is not JSON: %s", api.url,
				 uar_error_text(&inner))
		 : UAR_OK;
}

int uar_remote_show(struct uar_cli *cli, const struct uar_api_request *r, uar_remote_put_fn *put)
{
	struct uar_buf out = uar_buf_make(UAR_LIMIT_CLI_ANSWER);
	struct uar_remote_answer a = { .root = NULL };
	struct uar_error error = { 0 };
	uar_err e = uar_remote_ask(cli, r, &a, &error);
	int status;

	if (!e && cli->args->option[UAR_OPT_JSON])
		uar_buf_printf(&out, "%.*s\n", UAR_FMT(uar_buf_str(&a.text)));
	else if (!e)
		put(&out, a.root);
	status = e ? uar_cli_fail_with(cli, UAR_EXIT_FAILED, e, &error) : uar_cli_write(cli, &out);
	uar_remote_answer_fini(&a);
	uar_buf_fini(&out);
	return status;
}

/* Could it be the beginning of an id that servers make up? */
static bool is_short(uar_str word)
{
	size_t n = 0;

	while (n < word.n && uar_str_find(UAR_STR("0123456789abcdef-"), word.p[n]) < 17)
		n++;
	return word.n >= 4 && word.n < UAR_UUID_TEXT && n == word.n;
}

/* UAR_ENOTFOUND: none. */
static uar_err only_one(const struct uar_json *runs, const char *word,
			char out[UAR_LIMIT_ID_BYTES + 1], struct uar_error *error)
{
	const struct uar_json *first = uar_json_at(runs, 0);
	uar_str id = uar_json_text(first, "run_id");

	if (first && first->next)
		return uar_error_set(error, UAR_EINVALID,
				     "several runs begin with %s: say more of its id", word);
	if (!uar_str_is_id(id))
		return UAR_ENOTFOUND;
	snprintf(out, UAR_LIMIT_ID_BYTES + 1, "%.*s", UAR_FMT(id));
	return UAR_OK;
}

/* The run that was made last. */
static uar_err find_last(const struct uar_cli *cli, char out[UAR_LIMIT_ID_BYTES + 1],
			 struct uar_error *error)
{
	struct uar_api_request ask = { .method = "GET", .path = "/api/runs?limit=1" };
	struct uar_remote_answer a = { .root = NULL };
	uar_err e = uar_remote_ask(cli, &ask, &a, error);
	const struct uar_json *run = uar_json_at(uar_json_get(a.root, UAR_STR("runs")), 0);
	uar_str id = uar_json_text(run, "run_id");

	if (!e && !uar_str_is_id(id))
		e = uar_error_set(error, UAR_ENOTFOUND, "there is no run yet");
	if (!e)
		snprintf(out, UAR_LIMIT_ID_BYTES + 1, "%.*s", UAR_FMT(id));
	uar_remote_answer_fini(&a);
	return e;
}

uar_err uar_remote_run_id(const struct uar_cli *cli, const char *word,
			  char out[UAR_LIMIT_ID_BYTES + 1], struct uar_error *error)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_HTTP_TARGET);
	struct uar_remote_answer a = { .root = NULL };
	uar_err e;

	if (!uar_str_is_id(uar_str_c(word)))
		return uar_error_set(error, UAR_EINVALID,
				     "that cannot be the id of a run: those are 1 to %d visible "
				     "ASCII characters",
				     UAR_LIMIT_ID_BYTES);
	if (!strcmp(word, "last"))
		return find_last(cli, out, error);
	if (!is_short(uar_str_c(word))) {
		snprintf(out, UAR_LIMIT_ID_BYTES + 1, "%s", word);
		return UAR_OK;
	}
	uar_buf_printf(&path, "/api/runs?limit=2&prefix=%s", word);
	e = path.err;
	if (!e)
		e = uar_remote_ask(cli,
				   &(struct uar_api_request){ .method = "GET", .path = path.p }, &a,
				   error);
	if (!e)
		e = only_one(uar_json_get(a.root, UAR_STR("runs")), word, out, error);
	if (e == UAR_ENOTFOUND) {
		snprintf(out, UAR_LIMIT_ID_BYTES + 1, "%s", word);
		e = UAR_OK;
	}
	uar_remote_answer_fini(&a);
	uar_buf_fini(&path);
	return e;
}

void uar_remote_run_path(struct uar_buf *out, uar_str run_id, const char *rest)
{
	uar_buf_add_str(out, UAR_STR("/api/runs/"));
	uar_api_escape(out, run_id);
	uar_buf_add_str(out, uar_str_c(rest));
}

uar_err uar_remote_record(const struct uar_cli *cli, uar_str run_id, struct uar_remote_answer *a,
			  struct uar_error *error)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_HTTP_TARGET);
	uar_err e;

	uar_remote_run_path(&path, run_id, "");
	if (path.err) {
		memset(a, 0, sizeof *a);
		return uar_error_set(error, path.err, "the run's name is too long");
	}
	e = uar_remote_ask(cli, &(struct uar_api_request){ .method = "GET", .path = path.p }, a,
			   error);
	uar_buf_fini(&path);
	return e;
}

bool uar_remote_is_terminal(uar_str status)
{
	return uar_str_is(status, "succeeded") || uar_str_is(status, "failed") ||
	       uar_str_is(status, "canceled") || uar_str_is(status, "timeout");
}

/* --- following ---------------------------------------------------------------------- */
struct follower {
	const struct uar_remote_follow *want;
	struct uar_cli *cli;
	uint64_t last;				/* number of the last event shown */
	char cursor[UAR_LIMIT_CURSOR_TEXT + 1]; /* its id, as the server wrote it */
	bool terminal;				/* an event that ends a run was seen */
	bool progress;				/* something new since the last connection began */
	bool unwanted;				/* the reader of our output is gone */
	bool lost;				/* the server is away, and that was said */
	bool over;				/* the run had ended before the connection began */
};

/* A stream that is only silent for long is taken up again without a word. */
static void say_lost(struct follower *f, uar_err e)
{
	bool busy = e == UAR_EBUSY || e == UAR_ERATELIMIT;

	if (f->lost || !e || e == UAR_ETIMEOUT)
		return;
	f->lost = true;
	uar_cli_fail(f->cli, UAR_EXIT_OK, "the server is %s; trying again ...",
		     busy ? "busy" : "gone");
	fflush(f->cli->err);
}

static void say_back(void *ctx)
{
	struct follower *f = ctx;

	if (!f->lost)
		return;
	f->lost = false;
	uar_cli_fail(f->cli, UAR_EXIT_OK, "the server is back");
	fflush(f->cli->err);
}

static bool ends_a_run(uar_str data)
{
	struct uar_arena a;
	const struct uar_json *root = NULL;
	uar_str type;
	bool ends = false;

	uar_arena_init(&a, 0);
	if (uar_json_parse(data, NULL, &a, &root, NULL) == UAR_OK) {
		type = uar_json_text(root, "type");
		ends = uar_str_is(type, "RunDone") || uar_str_is(type, "Error");
	}
	uar_arena_fini(&a);
	return ends;
}

/* "NUMBER" or "INCARNATION-NUMBER"; false: it is neither. */
static bool number_of(uar_str id, uint64_t *out)
{
	size_t dash = uar_str_find(id, '-');
	uar_str number = dash < id.n ? uar_str_n(id.p + dash + 1, id.n - dash - 1) : id;

	return id.n <= UAR_LIMIT_CURSOR_TEXT && uar_str_u64(number, out) == UAR_OK;
}

/* The server was restored from an older copy: what was shown may never have happened in it. */
static void start_again(struct follower *f)
{
	if (f->cursor[0])
		uar_cli_fail(f->cli, UAR_EXIT_OK,
			     "the server was restored from another copy; the run is shown again");
	f->last = f->cursor[0] ? 0 : f->want->after;
	f->cursor[0] = 0;
}

static uar_err take_event(void *ctx, const struct uar_sse_event *ev)
{
	struct follower *f = ctx;
	uint64_t number = 0;

	if (uar_str_is(ev->event, "resync"))
		start_again(f);
	if (ev->event.n && !uar_str_is(ev->event, "event"))
		return UAR_OK; /* a ping, or a frame of a later version */
	if (ev->id.n && number_of(ev->id, &number)) {
		if (number <= f->last)
			return UAR_OK; /* told twice after a reconnect */
		f->last = number;
		snprintf(f->cursor, sizeof f->cursor, "%.*s", UAR_FMT(ev->id));
	}
	f->progress = true;
	f->terminal = ends_a_run(ev->data);
	if (f->want->show(f->want->ctx, ev->data))
		return UAR_OK;
	uar_cli_output_failed(f->cli);
	f->unwanted = true;
	return UAR_ESKIP;
}

static uar_err connect_once(struct follower *f, bool live, struct uar_error *error)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_HTTP_TARGET);
	char last[UAR_LIMIT_CURSOR_TEXT + 1] = "";
	struct uar_api_request r = { .method = "GET", .opened = say_back };
	struct uar_api api;
	uar_err e = uar_remote_find(f->cli, &api, error);

	if (e)
		return e;
	if (live && !f->want->to_the_end)
		api.stream_ms = LIVE_MS;
	uar_remote_run_path(&path, f->want->run_id,
			    f->want->progress ? "/stream?meta=1" : "/stream");
	if (f->cursor[0])
		snprintf(last, sizeof last, "%s", f->cursor);
	else if (f->last)
		snprintf(last, sizeof last, "%llu", (unsigned long long)f->last);
	if (last[0])
		uar_buf_printf(&path, "%cafter=%s", f->want->progress ? '&' : '?', last);
	r.path = path.p;
	r.last_event_id = uar_str_c(last);
	e = path.err ? path.err : uar_api_stream(&api, &r, take_event, f, error);
	uar_buf_fini(&path);
	return e;
}

static uar_err is_live(struct uar_cli *cli, uar_str run_id, bool *out, struct uar_error *error)
{
	struct uar_remote_answer a;
	uar_err e = uar_remote_record(cli, run_id, &a, error);

	if (!e)
		*out = !uar_remote_is_terminal(uar_json_text(a.root, "status"));
	uar_remote_answer_fini(&a);
	return e;
}

static bool may_come_back(uar_err e)
{
	return e == UAR_ENET || e == UAR_EEOF || e == UAR_ETIMEOUT || e == UAR_EBUSY ||
	       e == UAR_ERATELIMIT;
}

/* After progress at once, then slower and slower. false: wait no longer. */
static bool pause_before(struct uar_cli *cli, unsigned attempt)
{
	unsigned ms = attempt < 2 ? 0 : 50u << (attempt < 8 ? attempt : 8);

	ms = ms > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : ms;
	if (cli->pause) {
		cli->pause(cli->pause_ctx, ms);
		return true;
	}
	return uar_beside_wait(cli->beside, -1, 0, (int)ms) != ECANCELED;
}

/* The server is gone: whoever can may bring it back, which is better than waiting. */
static uar_err bring_back(struct follower *f, uar_err e, struct uar_error *error)
{
	bool gone = e == UAR_ENET || e == UAR_EEOF;

	return gone && f->want->revive ? f->want->revive(f->want->ctx, error) : UAR_OK;
}

/* The stream has ended in order, but not with an end of the run: does the run go on? It may have
 * ended since; then its end is asked for. True: there is nothing more to wait for. */
static bool no_more(struct follower *f, uar_err *out, struct uar_error *error)
{
	bool live, was_over = f->over;

	*out = is_live(f->cli, f->want->run_id, &live, error);
	if (*out)
		return !may_come_back(*out);
	f->over = !live;
	if (live)
		return !f->want->to_the_end;
	if (f->last == f->want->after)
		return true; /* the run has nothing behind the cursor */
	if (was_over)
		*out = uar_error_set(error, UAR_ECORRUPT, "the stream lacks the run's end");
	return was_over;
}

/* One connection to its end: true when there is nothing more to wait for. */
static bool attempt(struct follower *f, uar_err *out, struct uar_error *error)
{
	bool live = true;
	uar_err e = UAR_OK;

	f->progress = false;
	if (!f->want->to_the_end)
		e = is_live(f->cli, f->want->run_id, &live, error);
	f->over |= !live;
	if (!e)
		e = connect_once(f, live, error);
	if (f->unwanted || f->terminal || (!f->want->to_the_end && live && e == UAR_ETIMEOUT)) {
		*out = UAR_OK;
		return true;
	}
	if (!e)
		return no_more(f, out, error);
	*out = e;
	return !may_come_back(e);
}

uar_err uar_remote_follow(struct uar_cli *cli, const struct uar_remote_follow *want,
			  struct uar_error *error)
{
	struct follower f = { .want = want, .cli = cli, .last = want->after };
	bool ever = want->patient;
	uar_err e = UAR_OK, not_back;

	for (unsigned n = 1; n <= UAR_LIMIT_CLI_RECONNECTS; n++) {
		if (attempt(&f, &e, error))
			return e;
		ever |= f.progress || !e;
		if (!ever)
			return e; /* it never worked: say so at once */
		if (f.progress)
			n = 1;
		say_lost(&f, e);
		if (!pause_before(cli, n))
			return uar_error_set(error, UAR_ECANCELED, "interrupted");
		not_back = bring_back(&f, e, error);
		if (not_back)
			return not_back;
	}
	return e ? e : uar_error_set(error, UAR_EEOF, "the stream ends before the run does");
}
