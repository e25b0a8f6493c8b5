/* content_label.c - types, names and tags of content that a plugin made.
 *
 * What a plugin says about its bytes is not trusted: a type that is none becomes
 * octets, a name is cut down to harmless letters, and everything that a browser
 * could run is offered for download. */
#include "gate/content.h"

enum { NAME_MAX_BYTES = 100 };

static bool is_token_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr("!#$&^_.+-", c));
}

static bool is_token(uar_str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_token_char(s.p[i]))
			return false;
	return s.n > 0;
}

/* type/subtype, then perhaps one parameter. */
static bool is_mime(uar_str s)
{
	uar_str parameter = UAR_STR_NONE, subtype = UAR_STR_NONE, value = UAR_STR_NONE;
	uar_str media = uar_str_trim(uar_str_cut(s, ';', &parameter));
	uar_str type = uar_str_cut(media, '/', &subtype), name;

	if (!is_token(type) || !is_token(subtype))
		return false;
	parameter = uar_str_trim(parameter);
	if (!parameter.n)
		return true;
	name = uar_str_cut(parameter, '=', &value);
	return is_token(name) && is_token(value);
}

void gate_content_type(struct uar_buf *out, uar_str item_type, uar_str mime)
{
	bool text = uar_str_is(item_type, "text");

	if (is_mime(mime))
		uar_buf_add_str(out, mime);
	else if (text)
		uar_buf_add_str(out, UAR_STR("text/plain"));
	else if (uar_str_is(item_type, "json"))
		uar_buf_add_str(out, UAR_STR("application/json"));
	else
		uar_buf_add_str(out, UAR_STR("application/octet-stream"));
	if (text && uar_str_find(uar_buf_str(out), ';') == out->n)
		uar_buf_add_str(out, UAR_STR("; charset=utf-8"));
}

static bool is_harmless(uar_str content_type)
{
	static const char *const harmless[] = {
		"text/plain", "application/json", "image/png",	"image/jpeg", "image/gif",
		"image/webp", "image/avif",	  "audio/mpeg", "audio/ogg",  "audio/wav",
		"audio/webm", "video/mp4",	  "video/webm", "video/ogg",
	};
	uar_str rest, media = uar_str_trim(uar_str_cut(content_type, ';', &rest));

	for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
		if (uar_str_eq_nocase(media, uar_str_c(harmless[i])))
			return true;
	return false;
}

static bool is_name_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr("._-", c));
}

void gate_content_disposition(struct uar_buf *out, uar_str content_type, uar_str label, uar_str id)
{
	uar_str name = label.n ? uar_str_utf8_prefix(label, NAME_MAX_BYTES) : id;

	uar_buf_add_str(out, is_harmless(content_type) ? UAR_STR("inline") : UAR_STR("attachment"));
	uar_buf_add_str(out, UAR_STR("; filename=\""));
	for (size_t i = 0; i < name.n; i++)
		uar_buf_add_char(out, is_name_char(name.p[i]) && !(i == 0 && name.p[0] == '.')
					      ? name.p[i]
					      : '_');
	uar_buf_add_char(out, '"');
}

void gate_content_span(const struct uar_http_range *part, uint64_t total,
		       char out[GATE_CONTENT_SPAN])
{
	unsigned long long all = total, first = part ? part->first : 0,
			   last = part ? first + part->count - 1 : 0;

	if (part)
		snprintf(out, GATE_CONTENT_SPAN, "bytes %llu-%llu/%llu", first, last, all);
	else
		snprintf(out, GATE_CONTENT_SPAN, "bytes */%llu", all);
}

bool gate_tag_matches(uar_str list, uar_str tag)
{
	while (list.n) {
		uar_str one = uar_str_trim(uar_str_cut(list, ',', &list));

		if (uar_str_is(one, "*") || uar_str_eq(one, tag))
			return true;
	}
	return false;
}
