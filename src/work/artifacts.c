/* artifacts.c - the blocks of an answer, described and put aside one after the other. */
#include "work/artifacts.h"

#include "agent/limits.h"
#include "base/sha256.h"
#include "event/sizes.h"
#include "work/aside.h"
#include "work/spill.h"

struct keeping {
	struct uar_runtime *rt;
	struct uar_task task; /* the first step */
	struct aside *aside;  /* of the block at hand */
	struct uar_blocks blocks;
	size_t at;
	struct uar_buf json;
	struct uar_jw w;
	kept_fn *done;
	void *ctx;
};

void rt_artifacts_cancel(struct keeping *k)
{
	if (!k)
		return;
	uar_unpost(rt_sched(k->rt), &k->task);
	rt_aside_cancel(k->aside);
	uar_blocks_fini(&k->blocks);
	uar_buf_fini(&k->json);
	uar_free(k);
}

static void describe(struct keeping *k, uar_str sha256, bool is_blob)
{
	const struct uar_block *b = &k->blocks.at[k->at];
	struct uar_jw *w = &k->w;
	char title[UAR_BLOCK_TITLE];

	snprintf(title, sizeof title, "%s %zu", b->language, k->at + 1);
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "type", uar_block_type(b));
	uar_jw_cstr(w, "title", b->title[0] ? b->title : title);
	uar_jw_cstr(w, "language", b->language);
	uar_jw_cstr(w, "mime", uar_block_mime(b));
	uar_jw_int(w, "bytes", (int64_t)b->text.n);
	uar_jw_str(w, "sha256", sha256);
	uar_jw_str(w, "preview", rt_spill_beginning(uar_buf_str(&b->text)));
	uar_jw_bool(w, "is_blob", is_blob);
	uar_jw_close(w);
}

static void finish(struct keeping *k)
{
	kept_fn *done = k->done;
	void *ctx = k->ctx;
	struct uar_buf json;
	uar_err e;

	uar_jw_close(&k->w);
	e = uar_jw_end(&k->w);
	json = k->json; /* outlives it */
	k->json = (struct uar_buf){ 0 };
	rt_artifacts_cancel(k);
	done(ctx, e ? UAR_STR_NONE : uar_buf_str(&json));
	uar_buf_fini(&json);
}

static void go_on(struct keeping *k);

static void stored(void *ctx, uar_err e, uar_str sha256)
{
	struct keeping *k = ctx;

	k->aside = NULL;
	if (!e)
		describe(k, sha256, true);
	k->at++;
	go_on(k);
}

/* One that cannot be put aside is left out. */
static void go_on(struct keeping *k)
{
	for (; k->at < k->blocks.count; k->at++) {
		uar_str text = uar_buf_str(&k->blocks.at[k->at].text);
		char sha256[UAR_SHA256_TEXT + 1];

		if (rt_spill_beginning(text).n == text.n) {
			uar_sha256_hex(text, sha256);
			describe(k, uar_str_c(sha256), false);
		} else if (rt_aside_begin(k->rt, text, stored, k, &k->aside) == UAR_OK) {
			return;
		}
	}
	finish(k);
}

static void on_task(struct uar_task *t)
{
	go_on(UAR_OWNER(t, struct keeping, task));
}

uar_err rt_artifacts_keep(struct live_run *r, struct uar_blocks *blocks, kept_fn *done, void *ctx,
			  struct keeping **out)
{
	struct keeping *k = uar_zalloc(sizeof *k);

	if (!k)
		return UAR_ENOMEM;
	k->rt = rt_engine(r);
	k->blocks = *blocks;
	uar_blocks_init(blocks);
	k->json = uar_buf_make(UAR_LIMIT_ANSWER_BLOCKS * UAR_LIMIT_EVENT_BYTES);
	k->w = uar_jw_begin(&k->json);
	uar_jw_arr(&k->w, NULL);
	k->done = done;
	k->ctx = ctx;
	k->task = (struct uar_task){ .fn = on_task };
	uar_post(rt_sched(k->rt), &k->task);
	*out = k;
	return UAR_OK;
}
