/* attachment.c - images and files that clients send with a message. */
#include "proto/attachment.h"

static bool is_base64(uar_str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=",
			    s.p[i]) ||
		    !s.p[i])
			return false;
	return s.n > 0 && s.n % 4 == 0;
}

bool uar_attachment_take_url(struct uar_attachment *a, uar_str url)
{
	uar_str data, head;

	if (uar_str_starts(url, UAR_STR("https://")) || uar_str_starts(url, UAR_STR("http://"))) {
		a->url = url;
		return true;
	}
	if (!uar_str_starts(url, UAR_STR("data:")))
		return false;
	head = uar_str_cut(uar_str_from(url, 5), ',', &data);
	a->media_type = uar_str_cut(head, ';', &head);
	a->data = data;
	return uar_str_is(head, "base64") && uar_attachment_is_usable(a);
}

bool uar_attachment_is_usable(const struct uar_attachment *a)
{
	if (a->url.n)
		return uar_str_starts(a->url, UAR_STR("https://")) ||
		       uar_str_starts(a->url, UAR_STR("http://"));
	return a->media_type.n && is_base64(a->data);
}

void uar_attachment_put(struct uar_jw *w, const struct uar_attachment *a)
{
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "type", a->image ? "image" : "file");
	if (a->url.n)
		uar_jw_str(w, "url", a->url);
	else
		uar_jw_str(w, "data", a->data);
	if (a->media_type.n)
		uar_jw_str(w, "media_type", a->media_type);
	if (a->name.n)
		uar_jw_str(w, "name", a->name);
	uar_jw_close(w);
}
