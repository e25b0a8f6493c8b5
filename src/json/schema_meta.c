/* schema_meta.c - finds the documents of the standard by their URI and reads them
 * when a schema refers to one. The text is data: metaschema/, taken in as it is. */
#include "json/schema_int.h"

#define DRAFT "https://json-schema.org/draft/2020-12/"

/* The file NAME as a C string `SYMBOL`; paths are relative to the root of the tree. */
#define EMBED(SYMBOL, NAME)                                                                        \
	__asm__(".section .rodata\n"                                                               \
		".hidden " #SYMBOL "\n.global " #SYMBOL "\n" #SYMBOL ":\n"                         \
		".incbin \"src/json/metaschema/" NAME "\"\n.byte 0\n"                              \
		".previous\n");                                                                    \
	extern const char SYMBOL[]

EMBED(uar_schema_meta_schema, "schema.json");
EMBED(uar_schema_meta_core, "core.json");
EMBED(uar_schema_meta_applicator, "applicator.json");
EMBED(uar_schema_meta_unevaluated, "unevaluated.json");
EMBED(uar_schema_meta_validation, "validation.json");
EMBED(uar_schema_meta_meta_data, "meta-data.json");
EMBED(uar_schema_meta_format_annotation, "format-annotation.json");
EMBED(uar_schema_meta_format_assertion, "format-assertion.json");
EMBED(uar_schema_meta_content, "content.json");

static const struct {
	const char *uri, *text;
} documents[] = {
	{ DRAFT "schema", uar_schema_meta_schema },
	{ DRAFT "meta/core", uar_schema_meta_core },
	{ DRAFT "meta/applicator", uar_schema_meta_applicator },
	{ DRAFT "meta/unevaluated", uar_schema_meta_unevaluated },
	{ DRAFT "meta/validation", uar_schema_meta_validation },
	{ DRAFT "meta/meta-data", uar_schema_meta_meta_data },
	{ DRAFT "meta/format-annotation", uar_schema_meta_format_annotation },
	{ DRAFT "meta/format-assertion", uar_schema_meta_format_assertion },
	{ DRAFT "meta/content", uar_schema_meta_content },
};

uar_err uar_schema_builtin(struct uar_schema_builder *b, uar_str uri, const struct uar_json **out)
{
	*out = NULL;
	for (size_t i = 0; i < ARRAY_LEN(documents); i++)
		if (uar_str_is(uri, documents[i].uri))
			return uar_json_parse(uar_str_c(documents[i].text), NULL, &b->schema->arena,
					      out, b->error);
	return UAR_OK;
}
