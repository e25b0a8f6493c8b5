/* announce.c - URLs and words; prints nothing. See announce.h. */
#include "app/announce.h"

#include <stdio.h>
#include <unistd.h>

#include "app/api_client.h"
#include "app/text.h"
#include "json/jw.h"
#include "json/limits.h"

uar_err uar_announce_url(const char *address, const char *socket, char *out, size_t size)
{
	struct uar_buf url = uar_buf_make(size - 1);
	uar_err e;

	if (socket)
		uar_api_socket_url(&url, uar_str_c(socket));
	else
		uar_buf_printf(&url, "http://%s", address);
	e = url.err;
	if (!e)
		snprintf(out, size, "%.*s", UAR_FMT(uar_buf_str(&url)));
	uar_buf_fini(&url);
	return e;
}

uar_err uar_announce_json(const struct uar_announcement *a, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);
	uar_err e;

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "url", a->url);
	if (a->socket)
		uar_jw_null(&w, "link"); /* no browser opens a socket file */
	else
		uar_jw_cstr(&w, "link", a->link);
	uar_jw_str(&w, "token", a->token);
	uar_jw_cstr(&w, "data", a->data);
	uar_jw_int(&w, "pid", getpid());
	uar_jw_cstr(&w, "version", UAR_VERSION);
	if (a->full)
		uar_jw_bool(&w, "disk_full", true);
	uar_jw_close(&w);
	e = uar_jw_end(&w);
	uar_buf_add_char(out, '\n');
	return e ? e : out->err;
}

/* What curl needs to know, to be pasted into a shell. */
static uar_err put_call(struct uar_buf *out, const struct uar_announcement *a)
{
	struct uar_buf token = uar_buf_make(UAR_LIMIT_URI_BYTES);
	uar_err e;

	uar_buf_printf(&token, "%s/token", a->data);
	uar_buf_add_str(out, UAR_STR("  call      curl --unix-socket "));
	uar_text_shell(out, uar_str_c(a->socket));
	uar_buf_add_str(out, UAR_STR(" -H \"Authorization: Bearer $(cat "));
	uar_text_shell(out, uar_buf_str(&token));
	uar_buf_add_str(out, UAR_STR(")\" http://localhost/api/runs\n"));
	e = token.err;
	uar_buf_fini(&token);
	return e;
}

uar_err uar_announce_text(const struct uar_announcement *a, struct uar_buf *out)
{
	uar_err e = UAR_OK;

	uar_buf_printf(out, "UAR %s is running.\n\n", UAR_VERSION);
	if (a->socket)
		e = put_call(out, a);
	else
		uar_buf_printf(out, "  open      %s\n", a->link);
	uar_buf_add_str(out, UAR_STR("  data      "));
	uar_text_clean(out, uar_str_c(a->data), false);
	uar_buf_add_str(out, UAR_STR("\n  try       "));
	uar_text_shell(out, uar_str_c(a->program));
	uar_buf_add_str(out, UAR_STR(" run demo \"hello\""));
	if (a->data_by_flag) {
		uar_buf_add_str(out, UAR_STR(" --data "));
		uar_text_shell(out, uar_str_c(a->data));
	}
	if (a->full)
		uar_buf_printf(out, "\n  disk      full: %s", a->full);
	uar_buf_printf(out, "\n\n%sCtrl-C stops; runs go on at the next start.\n",
		       a->socket ? "" : "The link works once. ");
	return e ? e : out->err;
}
