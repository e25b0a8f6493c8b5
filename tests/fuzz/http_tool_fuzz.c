/* http_tool_fuzz.c - a declaration of an HTTP tool, a line end, and arguments: a request, or a
 * reason. And a document of OpenAPI: tools, or a reason. */
#include <stdlib.h>

#include "json/limits.h"
#include "tool/exchange.h"
#include "tool/http_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_spec(uar_str spec, uar_str args)
{
	struct uar_arena arena = { 0 };
	const struct uar_json *j = NULL, *a = NULL;
	struct uar_error error = { 0 };
	struct uar_http_filled f = { .url = { 0 } };
	struct uar_http_spec s;

	if (!uar_json_parse(spec, NULL, &arena, &j, NULL) && j->kind == UAR_JSON_OBJECT &&
	    !uar_json_parse(args, NULL, &arena, &a, NULL) && a->kind == UAR_JSON_OBJECT &&
	    !uar_http_spec_read(j, &arena, &s, &error)) {
		uar_err e = uar_http_fill(&s, a, &(struct uar_secrets_ask){ 0 }, &f, &error);

		/* The host is the definition's, whatever the arguments say. */
		if (!e && memcmp(f.url.p, s.url.p, 7) != 0)
			abort();
		uar_http_filled_fini(&f);
	}
	uar_arena_fini(&arena);
}

/* What is taken out of a document can be read as the document can. */
static void try_document(uar_str text)
{
	struct uar_arena arena = { 0 };
	struct uar_openapi_options o = { .base_url = UAR_STR("https://x.example") };
	struct uar_http_spec *specs = NULL;
	struct uar_buf entry = uar_buf_make(UAR_LIMIT_JSON_BYTES);
	const struct uar_json *j = NULL;
	struct uar_error error = { 0 };
	size_t all = 0, taken = 0;

	if (uar_json_parse(text, NULL, &arena, &o.document, NULL) ||
	    uar_openapi_read(&o, &arena, &specs, &all, &error) || !all ||
	    uar_openapi_import(&o, UAR_STR(""), &entry, &error))
		goto out;
	if (uar_json_parse(uar_buf_str(&entry), NULL, &arena, &j, NULL))
		abort();
	o.document = uar_json_get(j, UAR_STR("document"));
	if (uar_openapi_read(&o, &arena, &specs, &taken, &error) || taken != all)
		abort();
out:
	uar_buf_fini(&entry);
	uar_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uar_str rest, all = uar_str_n((const char *)data, size),
		      spec = uar_str_cut(all, '\n', &rest);
	struct uar_buf out = uar_buf_make(4096);

	try_spec(spec, rest);
	try_document(all);
	(void)!uar_url_resolve(UAR_STR("https://a.example/b/c?d"), all, &out);
	uar_buf_fini(&out);
	return 0;
}
