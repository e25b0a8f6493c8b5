/* page.c - the page of UAR itself: three files that are part of the program,
 * each as it is and compressed.
 *
 * Nothing in them is secret and nothing depends on who asks; the page gets its
 * token by the one-time link. It may run its own script and style, talk to its
 * own server, and nothing else: no inline code, no frame, no foreign address. */
#include "base/sha256.h"
#include "gate/gate_int.h"

#define EMBED(NAME, PATH)                                                                          \
	__asm__(".pushsection .rodata\n"                                                           \
		".globl uar_page_" #NAME "\n"                                                      \
		".hidden uar_page_" #NAME "\n"                                                     \
		"uar_page_" #NAME ":\n"                                                            \
		".incbin \"" PATH "\"\n"                                                           \
		".globl uar_page_" #NAME "_end\n"                                                  \
		".hidden uar_page_" #NAME "_end\n"                                                 \
		"uar_page_" #NAME "_end:\n"                                                        \
		".byte 0\n"                                                                        \
		".popsection\n");                                                                  \
	extern const char uar_page_##NAME[] __attribute__((visibility("hidden")));                 \
	extern const char uar_page_##NAME##_end[] __attribute__((visibility("hidden")))

#ifndef UAR_PAGE_GZ /* where make puts the same files, compressed */
#define UAR_PAGE_GZ "build/web"
#endif

EMBED(html, "web/page/page.html");
EMBED(js, "web/page/page.js");
EMBED(css, "web/page/page.css");
EMBED(html_gz, UAR_PAGE_GZ "/page.html.gz");
EMBED(js_gz, UAR_PAGE_GZ "/page.js.gz");
EMBED(css_gz, UAR_PAGE_GZ "/page.css.gz");

struct file {
	const char *type;
	uar_str plain, gzip;
};
#define FILE_OF(NAME, TYPE)                                                                        \
	(struct file)                                                                              \
	{                                                                                          \
		TYPE,                                                                              \
			uar_str_n(uar_page_##NAME,                                                 \
				  (size_t)(uar_page_##NAME##_end - uar_page_##NAME)),              \
			uar_str_n(uar_page_##NAME##_gz,                                            \
				  (size_t)(uar_page_##NAME##_gz_end - uar_page_##NAME##_gz))       \
	}

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

static void answer_file(struct call *c, struct file f)
{
	char hex[UAR_SHA256_TEXT + 1], tag[UAR_SHA256_TEXT + 3];
	struct uar_http_request *r = c->r;
	bool gzip = takes_gzip(uar_http_header(r, "accept-encoding")), known;
	uar_str body = gzip ? f.gzip : f.plain;

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
				    .content_type = known ? NULL : f.type,
				    .body = known ? UAR_STR("") : body,
				    .headers = headers,
				    .header_count = ARRAY_LEN(headers) - !(gzip && !known),
			    });
}

void gate_page_html(struct call *c)
{
	answer_file(c, FILE_OF(html, "text/html; charset=utf-8"));
}

void gate_page_js(struct call *c)
{
	answer_file(c, FILE_OF(js, "text/javascript; charset=utf-8"));
}

void gate_page_css(struct call *c)
{
	answer_file(c, FILE_OF(css, "text/css; charset=utf-8"));
}
