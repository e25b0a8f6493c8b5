/* reply_write.c - values of requests that several dialects write. */
#include "model/limits.h"
#include "model/reply_int.h"

void uar_reply_write_object(struct uar_jw *w, const char *key, uar_str arguments)
{
	static const struct uar_json_limits limits = { .foreign = true };
	const struct uar_json *j = NULL;
	struct uar_arena scratch;
	uar_err e;

	uar_arena_init(&scratch, 0);
	e = uar_json_parse(arguments, &limits, &scratch, &j, NULL);
	if (!e && j->kind == UAR_JSON_OBJECT) {
		uar_jw_tree(w, key, j);
	} else {
		uar_jw_obj(w, key);
		if (uar_str_trim(arguments).n)
			uar_jw_str(w, "invalid_json", arguments);
		uar_jw_close(w);
	}
	uar_arena_fini(&scratch);
}

void uar_reply_write_url(struct uar_jw *w, const char *key, const struct uar_model_part *p)
{
	struct uar_buf url;

	if (!p->text.n) {
		uar_jw_str(w, key, p->url);
		return;
	}
	url = uar_buf_make(UAR_LIMIT_MODEL_REQUEST);
	uar_buf_add_str(&url, UAR_STR("data:"));
	uar_buf_add_str(&url, p->media_type);
	uar_buf_add_str(&url, UAR_STR(";base64,"));
	uar_buf_add_str(&url, p->text);
	if (url.err)
		w->out->err = url.err;
	else
		uar_jw_str(w, key, uar_buf_str(&url));
	uar_buf_fini(&url);
}
