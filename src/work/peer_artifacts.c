/* peer_artifacts.c - the parts of a peer's artifacts, described and put aside one after the other.
 */
#include "work/peer_artifacts.h"

#include "base/sha256.h"
#include "event/sizes.h"
#include "work/aside.h"
#include "work/spill.h"
#include "work/tool_echo.h"

struct peer_keeping {
	struct uar_runtime *rt;
	struct uar_task task; /* the first step */
	struct aside *aside;  /* of the part at hand */
	struct uar_arena arena;
	struct uar_remote_part *parts;
	size_t count, at;
	struct uar_buf json;
	struct uar_jw w;
	peer_kept_fn *done;
	void *ctx;
};

void rt_peer_artifacts_cancel(struct peer_keeping *k)
{
	if (!k)
		return;
	uar_unpost(rt_sched(k->rt), &k->task);
	rt_aside_cancel(k->aside);
	uar_arena_fini(&k->arena);
	uar_buf_fini(&k->json);
	uar_free(k);
}

static const struct {
	const char *type, *mime;
} kinds[] = {
	[UAR_REMOTE_TEXT] = { "markdown", "text/plain" },
	[UAR_REMOTE_DATA] = { "json", "application/json" },
	[UAR_REMOTE_FILE] = { "file", "application/octet-stream" },
	[UAR_REMOTE_LINK] = { "link", "text/uri-list" },
};

static void describe(struct peer_keeping *k, uar_str sha256, bool is_blob)
{
	const struct uar_remote_part *p = &k->parts[k->at];
	uar_str shown = p->kind == UAR_REMOTE_FILE && !uar_utf8_valid(p->content)
				? UAR_STR("")
				: rt_spill_beginning(p->content);
	struct uar_jw *w = &k->w;

	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "type", kinds[p->kind].type);
	uar_jw_str(w, "title", uar_str_utf8_prefix(p->title.n ? p->title : p->artifact_id, 120));
	uar_jw_str(w, "mime",
		   p->mime.n && p->kind != UAR_REMOTE_LINK ? uar_str_utf8_prefix(p->mime, 120)
							   : uar_str_c(kinds[p->kind].mime));
	uar_jw_int(w, "bytes", (int64_t)p->content.n);
	uar_jw_str(w, "sha256", sha256);
	uar_jw_str(w, "preview", shown);
	uar_jw_bool(w, "is_blob", is_blob);
	uar_jw_obj(w, "metadata");
	uar_jw_str(w, "remote_artifact_id", uar_str_utf8_prefix(p->artifact_id, 256));
	uar_jw_cstr(w, "native_protocol", "a2a");
	uar_jw_close(w);
	uar_jw_close(w);
}

static void finish(struct peer_keeping *k, uar_err e)
{
	peer_kept_fn *done = k->done;
	void *ctx = k->ctx;
	struct uar_buf json;

	if (!e) {
		uar_jw_close(&k->w);
		e = uar_jw_end(&k->w);
	}
	json = k->json; /* outlives it */
	k->json = (struct uar_buf){ 0 };
	rt_peer_artifacts_cancel(k);
	done(ctx, e, e ? UAR_STR_NONE : uar_buf_str(&json));
	uar_buf_fini(&json);
}

static void go_on(struct peer_keeping *k);

static void stored(void *ctx, uar_err e, uar_str sha256)
{
	struct peer_keeping *k = ctx;

	k->aside = NULL;
	if (e) {
		finish(k, e);
		return;
	}
	describe(k, sha256, true);
	k->at++;
	go_on(k);
}

/* Bytes that are no text are never in an event. */
static bool fits(const struct uar_remote_part *p)
{
	return uar_utf8_valid(p->content) && rt_spill_beginning(p->content).n == p->content.n;
}

static void go_on(struct peer_keeping *k)
{
	uar_err e = UAR_OK;

	for (; k->at < k->count; k->at++) {
		uar_str content = k->parts[k->at].content;
		char sha256[UAR_SHA256_TEXT + 1];

		if (!fits(&k->parts[k->at])) {
			e = rt_aside_begin(k->rt, content, stored, k, &k->aside);
			if (!e)
				return;
			break;
		}
		uar_sha256_hex(content, sha256);
		describe(k, uar_str_c(sha256), false);
	}
	finish(k, e);
}

static void on_task(struct uar_task *t)
{
	go_on(UAR_OWNER(t, struct peer_keeping, task));
}

/* As it is recorded: without the values of secrets. Data stays JSON. */
static uar_err copy_text(struct peer_keeping *k, const struct uar_secrets_used *secrets,
			 bool is_json, uar_str *text)
{
	struct uar_buf b = uar_buf_make(4 * text->n + 64);
	size_t count = 0;
	uar_err e = UAR_OK;

	if (!secrets->values.n || !uar_utf8_valid(*text)) {
		*text = uar_arena_str(&k->arena, *text);
		return text->p ? UAR_OK : UAR_ENOMEM;
	}
	if (is_json)
		e = rt_echo_hide(secrets, *text, &b, &count);
	else
		uar_secrets_hide(secrets, *text, &b);
	e = e ? e : b.err;
	if (!e) {
		*text = uar_arena_str(&k->arena, uar_buf_str(&b));
		e = text->p ? UAR_OK : UAR_ENOMEM;
	}
	uar_buf_fini(&b);
	return e;
}

static uar_err copy_parts(struct peer_keeping *k, const struct peer_delivery *d)
{
	size_t count = d->view->part_count;
	uar_err e = UAR_OK;

	k->parts = uar_arena_alloc(&k->arena, (count + 1) * sizeof *k->parts);
	if (!k->parts)
		return UAR_ENOMEM;
	for (size_t i = 0; i < count && !e; i++) {
		struct uar_remote_part *to = &k->parts[i];
		uar_str *const texts[] = { &to->artifact_id, &to->title, &to->mime, &to->content };

		*to = d->view->parts[i];
		for (size_t t = 0; t < ARRAY_LEN(texts) && !e; t++)
			e = copy_text(k, d->secrets,
				      texts[t] == &to->content && to->kind == UAR_REMOTE_DATA,
				      texts[t]);
	}
	k->count = count;
	return e;
}

uar_err rt_peer_artifacts_keep(struct live_run *r, const struct peer_delivery *d,
			       peer_kept_fn *done, void *ctx, struct peer_keeping **out)
{
	struct peer_keeping *k = uar_zalloc(sizeof *k);
	uar_err e;

	if (!k)
		return UAR_ENOMEM;
	k->rt = rt_engine(r);
	uar_arena_init(&k->arena, 0);
	k->json = uar_buf_make((d->view->part_count + 1) * UAR_LIMIT_EVENT_BYTES);
	k->w = uar_jw_begin(&k->json);
	uar_jw_arr(&k->w, NULL);
	k->done = done;
	k->ctx = ctx;
	k->task = (struct uar_task){ .fn = on_task };
	e = copy_parts(k, d);
	if (e) {
		uar_arena_fini(&k->arena);
		uar_buf_fini(&k->json);
		uar_free(k);
		return e;
	}
	uar_post(rt_sched(k->rt), &k->task);
	*out = k;
	return UAR_OK;
}
