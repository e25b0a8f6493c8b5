/* schema_meta.c - finds the documents of the standard by their URI and reads them
 * when a schema refers to one. The text is data: metaschema/, taken in as it is. */
#include "json/schema_int.h"

#include "base/embed.h"

#define DRAFT "https://json-schema.org/draft/2020-12/"
#define META  "src/json/metaschema/"

UAR_EMBED(uar_schema_meta_schema, META "schema.json");
UAR_EMBED(uar_schema_meta_core, META "core.json");
UAR_EMBED(uar_schema_meta_applicator, META "applicator.json");
UAR_EMBED(uar_schema_meta_unevaluated, META "unevaluated.json");
UAR_EMBED(uar_schema_meta_validation, META "validation.json");
UAR_EMBED(uar_schema_meta_meta_data, META "meta-data.json");
UAR_EMBED(uar_schema_meta_format_annotation, META "format-annotation.json");
UAR_EMBED(uar_schema_meta_format_assertion, META "format-assertion.json");
UAR_EMBED(uar_schema_meta_content, META "content.json");

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
