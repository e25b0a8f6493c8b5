/* page.c - the page of UAR itself: files that are part of the program (page.def),
 * each as it is and compressed.
 *
 * Nothing in them is secret and nothing depends on who asks; the page gets its
 * token by the one-time link. It may run its own script and style, talk to its
 * own server, and nothing else: no inline code, no frame, no foreign address. */
#include "base/embed.h"
#include "base/sha256.h"
#include "gate/gate_int.h"

#ifndef UAR_PAGE_GZ /* where make puts the same files, compressed */
#define UAR_PAGE_GZ "build/web"
#endif

#define SCRIPT "text/javascript; charset=utf-8"
#define F(NAME, FILE, TYPE)                                                                        \
	UAR_EMBED(uar_page_##NAME, "web/page/" FILE);                                              \
	UAR_EMBED(uar_page_##NAME##_gz, UAR_PAGE_GZ "/" FILE ".gz");
F(html, "page.html", "")
#include "gate/page.def"
#undef F

struct file {
	const char *name, *type;
	const char *plain, *plain_end, *gzip, *gzip_end;
};
#define FILE_OF(NAME, FILE, TYPE)                                                                  \
	{                                                                                          \
		FILE, TYPE, uar_page_##NAME, uar_page_##NAME##_end, uar_page_##NAME##_gz,          \
			uar_page_##NAME##_gz_end                                                   \
	}
static const struct file html = FILE_OF(html, "page.html", "text/html; charset=utf-8");
static const struct file files[] = {
#define F(NAME, FILE, TYPE) FILE_OF(NAME, FILE, TYPE),
#include "gate/page.def"
#undef F
};

#define POLICY                                                                                     \
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "            \
	"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "             \
	"require-trusted-types-for 'script'; trusted-types 'none'"

static bool has_tag(uar_str list, uar_str tag)
{
	while (list.n) {
		uar_str one = uar_str_trim(uar_str_cut(list, ',', &list));

		if (uar_str_starts(one, UAR_STR("W/"))) /* a proxy that compresses weakens it */
			one = uar_str_from(one, 2);
		if (uar_str_eq(one, tag) || uar_str_is(one, "*"))
			return true;
	}
	return false;
}

/* "gzip", with any weight but zero. */
static bool takes_gzip(uar_str list)
{
	while (list.n) {
		uar_str weight, one = uar_str_cut(list, ',', &list);

		one = uar_str_trim(uar_str_cut(one, ';', &weight));
		if (!uar_str_eq_nocase(one, UAR_STR("gzip")))
			continue;
		weight = uar_str_trim(weight);
		while (weight.n && uar_str_find(UAR_STR("0."), weight.p[weight.n - 1]) < 2)
			weight.n--;
		return !uar_str_eq_nocase(weight, UAR_STR("q="));
	}
	return false;
}

static void answer_file(struct call *c, const struct file *f)
{
	char hex[UAR_SHA256_TEXT + 1], tag[UAR_SHA256_TEXT + 3];
	struct uar_http_request *r = c->r;
	bool gzip = takes_gzip(uar_http_header(r, "accept-encoding")), known;
	uar_str body = gzip ? uar_str_n(f->gzip, (size_t)(f->gzip_end - f->gzip))
			    : uar_str_n(f->plain, (size_t)(f->plain_end - f->plain));

	uar_sha256_hex(body, hex);
	snprintf(tag, sizeof tag, "\"%.32s\"", hex);
	known = has_tag(uar_http_header(r, "if-none-match"), uar_str_c(tag));
	const struct uar_http_header headers[] = {
		{ UAR_STR("ETag"), uar_str_c(tag) },
		{ UAR_STR("Vary"), UAR_STR("Accept-Encoding") },
		{ UAR_STR("Cache-Control"), UAR_STR("no-cache") },
		{ UAR_STR("Content-Security-Policy"), UAR_STR(POLICY) },
		{ UAR_STR("X-Frame-Options"), UAR_STR("DENY") },
		{ UAR_STR("Referrer-Policy"), UAR_STR("no-referrer") },
		{ UAR_STR("Cross-Origin-Opener-Policy"), UAR_STR("same-origin") },
		{ UAR_STR("Cross-Origin-Resource-Policy"), UAR_STR("same-origin") },
		{ UAR_STR("Content-Encoding"), UAR_STR("gzip") }, /* last: left out without */
	};
	gate_call_free(c);
	uar_http_respond(r, &(struct uar_http_response){
				    .status = known ? 304 : 200,
				    .content_type = known ? NULL : f->type,
				    .body = known ? UAR_STR("") : body,
				    .headers = headers,
				    .header_count = ARRAY_LEN(headers) - !(gzip && !known),
			    });
}

void gate_page_html(struct call *c)
{
	answer_file(c, &html);
}

void gate_page_file(struct call *c)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (uar_str_is(c->params[0], files[i].name)) {
			answer_file(c, &files[i]);
			return;
		}
	gate_problem(c, UAR_ENOTFOUND, NULL);
}
