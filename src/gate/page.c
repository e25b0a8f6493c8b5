/* page.c - the page of UAR itself: files that are part of the program (web/dist, listed in
 * page_files.def by the Makefile), each of them compressed. Every browser takes that; for who
 * does not a file is unpacked once and kept.
 *
 * Nothing in them is secret and nothing depends on who asks; the page gets its
 * token by the one-time link. It may run its own script and style, talk to its
 * own server, and nothing else: no inline code, no foreign address. The one frame it
 * may have is frame.html, where artifacts are shown: an origin of its own, without network.
 *
 * A view has a path below /ui, so that a link opens it again. All of them get the same
 * HTML, once for each depth: its addresses are relative, as a proxy may add a prefix. */
#define ZLIB_CONST /* what it reads it does not change */
#include <zlib.h>

#include "base/embed.h"
#include "base/sha256.h"
#include "gate/gate_int.h"
#include "gate/limits.h"

#ifndef UAR_PAGE_GZ /* where make puts the compressed files */
#define UAR_PAGE_GZ "build/web"
#endif

#define F(NAME, FILE, TYPE) UAR_EMBED(uar_page_##NAME, UAR_PAGE_GZ "/" FILE ".gz");
#define VIEW(NAME, FILE)    F(NAME, FILE, HTML)
#include "gate/page_files.def"
#undef VIEW
#undef F

#define HTML   "text/html; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"
#define STYLE  "text/css; charset=utf-8"

struct file {
	const char *name, *type;
	const char *gzip, *gzip_end;
};
#define FILE_OF(NAME, FILE, TYPE) { FILE, TYPE, uar_page_##NAME, uar_page_##NAME##_end },
static const struct file views[] = {
/* by depth below the root */
#define F(NAME, FILE, TYPE)
#define VIEW(NAME, FILE) FILE_OF(NAME, FILE, HTML)
#include "gate/page_files.def"
#undef VIEW
#undef F
};
static const struct file files[] = {
#define F(NAME, FILE, TYPE) FILE_OF(NAME, FILE, TYPE)
#define VIEW(NAME, FILE)
#include "gate/page_files.def"
#undef VIEW
#undef F
};

#define POLICY                                                                                     \
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "            \
	"img-src 'self' data: blob:; font-src 'self'; frame-src 'self'; base-uri 'none'; "         \
	"form-action 'none'; frame-ancestors 'none'; "                                             \
	"require-trusted-types-for 'script'; trusted-types 'none'"
/* What an artifact may do: run its own code in a frame that has no origin and reaches no one. */
#define FRAME_POLICY                                                                               \
	"sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; "    \
	"style-src 'unsafe-inline'; img-src data: blob:; font-src data:; media-src data: blob:; "  \
	"connect-src 'none'; frame-src 'none'; worker-src 'none'; base-uri 'none'; "               \
	"form-action 'none'; frame-ancestors 'self'; webrtc 'block'"

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

/* Views and the frame have the same name in every version, the others a hash in theirs. */
static void write_tag(const struct file *f, uar_str body, bool gzip, char *out, size_t size)
{
	char hex[UAR_SHA256_TEXT + 1];

	if (strcmp(f->type, HTML) != 0) {
		snprintf(out, size, "\"%s%s\"", f->name, gzip ? ".gz" : "");
		return;
	}
	uar_sha256_hex(body, hex);
	snprintf(out, size, "\"%.32s\"", hex);
}

/* --- for who does not take gzip ---------------------------------------------------- */

struct gate_page {
	char *plain[ARRAY_LEN(views) + ARRAY_LEN(files)]; /* NULL: nobody has asked for it */
};

void gate_page_destroy(struct gate_page *p)
{
	for (size_t i = 0; p && i < ARRAY_LEN(p->plain); i++)
		uar_free(p->plain[i]);
	uar_free(p);
}

/* How long a file is unpacked stands in its last four bytes. */
static size_t plain_size(const struct file *f)
{
	const unsigned char *end = (const unsigned char *)f->gzip_end;

	return end[-4] | (size_t)end[-3] << 8 | (size_t)end[-2] << 16 | (size_t)end[-1] << 24;
}

static char *unpack(const struct file *f)
{
	char *out = uar_alloc(plain_size(f) + 1);
	z_stream z = { .next_in = (const Bytef *)f->gzip,
		       .avail_in = (uInt)(f->gzip_end - f->gzip),
		       .next_out = (Bytef *)out,
		       .avail_out = (uInt)plain_size(f) };
	bool good = out && inflateInit2(&z, 16 + MAX_WBITS) == Z_OK; /* 16: with gzip's head */

	if (good) {
		good = inflate(&z, Z_FINISH) == Z_STREAM_END && !z.avail_out;
		inflateEnd(&z);
	}
	if (!good) {
		uar_free(out);
		return NULL;
	}
	return out;
}

/* The file as it is; no pointer: out of memory. */
static uar_str plain_of(struct uar_gate *g, const struct file *f)
{
	bool view = f >= views && f < views + ARRAY_LEN(views);
	struct gate_page *page = g->downloads.page;
	char **kept;

	if (!page)
		page = g->downloads.page = uar_zalloc(sizeof *page);
	if (!page)
		return (uar_str){ 0 };
	kept = &page->plain[view ? f - views : (long)ARRAY_LEN(views) + (f - files)];
	if (!*kept)
		*kept = unpack(f);
	return *kept ? uar_str_n(*kept, plain_size(f)) : (uar_str){ 0 };
}

static void answer_file(struct call *c, const struct file *f)
{
	char tag[UAR_LIMIT_PAGE_TAG];
	struct uar_http_request *r = c->r;
	bool gzip = takes_gzip(uar_http_header(r, "accept-encoding")), known;
	bool html = strcmp(f->type, HTML) == 0,
	     frame = html && f >= files && f < files + ARRAY_LEN(files);
	uar_str body =
		gzip ? uar_str_n(f->gzip, (size_t)(f->gzip_end - f->gzip)) : plain_of(c->g, f);

	if (!body.p) {
		gate_problem(c, UAR_ENOMEM, NULL);
		return;
	}
	write_tag(f, body, gzip, tag, sizeof tag);
	known = has_tag(uar_http_header(r, "if-none-match"), uar_str_c(tag));
	const struct uar_http_header headers[] = {
		{ UAR_STR("ETag"), uar_str_c(tag) },
		{ UAR_STR("Vary"), UAR_STR("Accept-Encoding") },
		{ UAR_STR("Cache-Control"),
		  html ? UAR_STR("no-cache") : UAR_STR("public, max-age=31536000, immutable") },
		{ UAR_STR("Content-Security-Policy"),
		  frame ? UAR_STR(FRAME_POLICY) : UAR_STR(POLICY) },
		{ UAR_STR("X-Frame-Options"), frame ? UAR_STR("SAMEORIGIN") : UAR_STR("DENY") },
		{ UAR_STR("Referrer-Policy"), UAR_STR("no-referrer") },
		{ UAR_STR("X-DNS-Prefetch-Control"), UAR_STR("off") },
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

/* The HTML of a view; its addresses fit the depth of the path. */
void gate_page_view(struct call *c)
{
	uar_str path = c->r->path;
	size_t depth = 0;

	for (size_t i = 1; i < path.n; i++)
		depth += path.p[i] == '/';
	answer_file(c, &views[depth < ARRAY_LEN(views) ? depth : ARRAY_LEN(views) - 1]);
}

void gate_page_file(struct call *c)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (uar_str_is(c->params[0], files[i].name + strlen("page/"))) {
			answer_file(c, &files[i]);
			return;
		}
	gate_problem(c, UAR_ENOTFOUND, NULL);
}
