/* know_fetch.c - a page of the web becomes a document. */
#include "loop/client.h"
#include "memory/know_int.h"

static uar_err on_bytes(void *ctx, uar_str bytes)
{
	struct uar_know_page *p = ctx;

	uar_buf_add_str(&p->bytes, bytes);
	return p->bytes.err;
}

static void on_header(void *ctx, uar_str name, uar_str value)
{
	struct uar_know_page *p = ctx;

	if (!uar_str_eq_nocase(name, UAR_STR("content-type")))
		return;
	value.n = uar_str_find(value, ';');
	snprintf(p->media_type, sizeof p->media_type, "%.*s", UAR_FMT(uar_str_trim(value)));
}

static void on_end(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	struct uar_know_page *p = ctx;

	(void)body;
	if (e)
		p->err = uar_error_set(&p->error, e == UAR_ETOOBIG ? e : UAR_ENET,
				       "the page could not be fetched: %s",
				       reason ? reason : uar_err_text(e));
	else if (status < 200 || status >= 300)
		p->err = uar_error_set(&p->error, UAR_ENET, "the page answered with status %d",
				       status);
	p->done(p);
}

void uar_know_page_free(struct uar_know_page *p)
{
	if (!p)
		return;
	uar_buf_fini(&p->bytes);
	uar_free(p);
}

uar_err uar_know_fetch(struct uar_knowledge *k, uar_str url, void (*done)(struct uar_know_page *p),
		       void *ctx, struct uar_error *error)
{
	static const char *const headers[] = { "Accept: text/html, text/plain, text/markdown, "
					       "application/pdf",
					       NULL };
	struct uar_know_page *p;
	struct uar_call *call;
	struct uar_call_options o = { .method = "GET",
				      .url = url.p,
				      .headers = headers,
				      .guarded = true,
				      .header = on_header,
				      .data = on_bytes,
				      .done = on_end };
	uar_err e;

	if (!k->o.client)
		return uar_error_set(error, UAR_ENOTIMPL, "this server fetches no pages");
	p = uar_zalloc(sizeof *p);
	if (!p)
		return UAR_ENOMEM;
	p->k = k;
	p->done = done;
	p->ctx = ctx;
	p->bytes = uar_buf_make(UAR_LIMIT_KB_FETCH);
	o.ctx = p;
	e = uar_client_call(k->o.client, &o, &call, error);
	if (e)
		uar_know_page_free(p);
	return e;
}
