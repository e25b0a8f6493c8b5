/* agent_feed.c - one request after the other, and the file between them. */
#include "app/agent_feed.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/registry.h"
#include "app/limits.h"
#include "base/alloc.h"
#include "base/file.h"
#include "json/jw.h"
#include "json/limits.h"

enum { ETAG = 256, HEADER = 1200 };

struct uar_agent_feed {
	struct uar_agent_feed_options o;
	struct uar_arena arena; /* of its strings */
	struct uar_timer timer;
	struct uar_call *call; /* NULL: none is under way */
	struct uar_buf body;
	char etag[ETAG];     /* of the answer that counts; empty: none */
	char new_etag[ETAG]; /* of the one that comes */
};

static void log_trouble(const struct uar_agent_feed *f, const char *reason)
{
	uar_log(f->o.log, UAR_LOG_WARN, "agents.url_failed", { "url", uar_str_c(f->o.url) },
		{ "reason", uar_str_c(reason) });
}

/* --- the file ------------------------------------------------------------------------------ */

static uar_err write_cache_text(const struct uar_agent_feed *f, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "url", f->o.url);
	uar_jw_cstr(&w, "etag", f->etag);
	uar_jw_str(&w, "body", uar_buf_str(&f->body));
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static bool write_all(int fd, uar_str text)
{
	while (text.n) {
		ssize_t n = write(fd, text.p, text.n);

		if (n <= 0)
			return false;
		text = uar_str_from(text, (size_t)n);
	}
	return fsync(fd) == 0;
}

/* A copy of what can be asked for again: when it cannot be kept, the next start asks. */
static void keep_answer(const struct uar_agent_feed *f)
{
	struct uar_buf text = uar_buf_make(2 * (size_t)UAR_LIMIT_AGENT_FEED_BYTES);
	struct uar_buf path = uar_buf_make(UAR_LIMIT_URI_BYTES);
	int fd = -1;
	bool good;

	uar_buf_printf(&path, "%s.new", f->o.cache);
	if (!write_cache_text(f, &text) && !path.err)
		fd = open(path.p, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	good = fd >= 0 && write_all(fd, uar_buf_str(&text));
	if (fd >= 0)
		good = close(fd) == 0 && good;
	if (!good || rename(path.p, f->o.cache))
		log_trouble(f, "its answer could not be kept on disk");
	uar_buf_fini(&text);
	uar_buf_fini(&path);
}

static void read_cache(struct uar_agent_feed *f)
{
	struct uar_buf text = uar_buf_make(2 * (size_t)UAR_LIMIT_AGENT_FEED_BYTES);
	struct uar_error error = { 0 };
	const struct uar_json *j = NULL;
	struct uar_arena arena;
	uar_str body, etag;

	uar_arena_init(&arena, 0);
	if (!uar_file_read(f->o.cache, &text, &error) &&
	    !uar_json_parse(uar_buf_str(&text), NULL, &arena, &j, NULL) &&
	    uar_str_is(uar_json_text(j, "url"), f->o.url)) {
		body = uar_json_text(j, "body");
		etag = uar_json_text(j, "etag");
		if (!uar_registry_read_url(f->o.registry, f->o.url, body, &error) && etag.n < ETAG)
			snprintf(f->etag, sizeof f->etag, "%.*s", UAR_FMT(etag));
	}
	uar_arena_fini(&arena);
	uar_buf_fini(&text);
}

/* --- the request --------------------------------------------------------------------------- */

static void on_header(void *ctx, uar_str name, uar_str value)
{
	struct uar_agent_feed *f = ctx;

	if (uar_str_eq_nocase(name, UAR_STR("etag")) && value.n < ETAG && uar_str_is_visible(value))
		snprintf(f->new_etag, sizeof f->new_etag, "%.*s", UAR_FMT(value));
}

static uar_err on_data(void *ctx, uar_str bytes)
{
	struct uar_agent_feed *f = ctx;

	uar_buf_add_str(&f->body, bytes);
	return f->body.err;
}

static void take_answer(struct uar_agent_feed *f)
{
	struct uar_error error = { 0 };

	if (uar_registry_read_url(f->o.registry, f->o.url, uar_buf_str(&f->body), &error)) {
		log_trouble(f, uar_error_text(&error));
		return;
	}
	memcpy(f->etag, f->new_etag, sizeof f->etag);
	keep_answer(f);
	f->o.changed(f->o.ctx);
}

static void ask_later(struct uar_agent_feed *f);

static void on_done(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	struct uar_agent_feed *f = ctx;
	char text[64];

	(void)body;
	f->call = NULL;
	snprintf(text, sizeof text, "it answers with status %d", status);
	if (!e && status == 200)
		take_answer(f);
	else if (e || status != 304)
		log_trouble(f, e ? reason : text);
	ask_later(f);
}

static uar_err ask(struct uar_agent_feed *f, struct uar_error *error)
{
	char match[ETAG + 32], auth[HEADER];
	const char *headers[4] = { "Accept: application/json" };
	size_t n = 1;
	struct uar_call_options o = { .method = "GET",
				      .url = f->o.url,
				      .headers = headers,
				      .header = on_header,
				      .data = on_data,
				      .done = on_done,
				      .ctx = f };

	if (f->etag[0]) {
		snprintf(match, sizeof match, "If-None-Match: %s", f->etag);
		headers[n++] = match;
	}
	if (f->o.token[0]) {
		snprintf(auth, sizeof auth, "Authorization: Bearer %s", f->o.token);
		headers[n++] = auth;
	}
	uar_buf_clear(&f->body);
	f->new_etag[0] = 0;
	return uar_client_call(f->o.client, &o, &f->call, error);
}

static void on_time(struct uar_timer *t)
{
	struct uar_agent_feed *f = UAR_OWNER(t, struct uar_agent_feed, timer);
	struct uar_error error = { 0 };
	uar_err e = ask(f, &error);

	if (e) {
		error.code = e;
		log_trouble(f, uar_error_text(&error));
		ask_later(f);
	}
}

static void ask_later(struct uar_agent_feed *f)
{
	f->timer.fn = on_time;
	if (uar_timer_set(uar_loop_sched(f->o.loop), &f->timer, f->o.every_us))
		log_trouble(f, "out of memory: it is not asked any more");
}

/* --- life ------------------------------------------------------------------------------------ */

static bool own_strings(struct uar_agent_feed *f)
{
	const char **strings[] = { &f->o.url, &f->o.token, &f->o.cache };

	for (size_t i = 0; i < ARRAY_LEN(strings); i++) {
		*strings[i] = uar_arena_str(&f->arena, uar_str_c(*strings[i])).p;
		if (!*strings[i])
			return false;
	}
	return true;
}

uar_err uar_agent_feed_create(const struct uar_agent_feed_options *o, struct uar_agent_feed **out)
{
	struct uar_agent_feed *f = uar_zalloc(sizeof *f);

	if (!f)
		return UAR_ENOMEM;
	f->o = *o;
	f->body = uar_buf_make(UAR_LIMIT_AGENT_FEED_BYTES);
	f->timer.fn = on_time;
	uar_arena_init(&f->arena, 0);
	if (!own_strings(f) || uar_timer_set(uar_loop_sched(o->loop), &f->timer, 0)) {
		uar_agent_feed_destroy(f);
		return UAR_ENOMEM;
	}
	read_cache(f);
	*out = f;
	return UAR_OK;
}

void uar_agent_feed_destroy(struct uar_agent_feed *f)
{
	if (!f)
		return;
	if (f->call)
		uar_call_cancel(f->call);
	uar_timer_stop(uar_loop_sched(f->o.loop), &f->timer);
	uar_buf_fini(&f->body);
	uar_arena_fini(&f->arena);
	uar_free(f);
}
