/* parts.c - writes and reads the parts of an answer. */
#include "model/parts.h"

#include "json/jw.h"

static void write_part(struct uar_jw *w, const struct uar_model_part *p)
{
	uar_jw_obj(w, NULL);
	switch (p->kind) {
	case UAR_PART_OPAQUE:
		uar_jw_cstr(w, "type", "opaque");
		uar_jw_str(w, "dialect", p->name);
		uar_jw_raw(w, "block", p->text);
		break;
	case UAR_PART_CALL:
		uar_jw_cstr(w, "type", "call");
		uar_jw_str(w, "id", p->id);
		uar_jw_str(w, "name", p->name);
		uar_jw_str(w, "arguments", p->text);
		break;
	case UAR_PART_IMAGE:
	case UAR_PART_FILE:
		uar_jw_cstr(w, "type", p->kind == UAR_PART_IMAGE ? "image" : "file");
		uar_jw_str(w, "media_type", p->media_type);
		uar_jw_str(w, "name", p->name);
		uar_jw_str(w, p->text.n ? "data" : "url", p->text.n ? p->text : p->url);
		break;
	case UAR_PART_TEXT:
	case UAR_PART_REASONING:
	case UAR_PART_RESULT:
		uar_jw_cstr(w, "type", p->kind == UAR_PART_REASONING ? "reasoning" : "text");
		uar_jw_str(w, "text", p->text);
		break;
	}
	uar_jw_close(w);
}

uar_err uar_model_parts_write(const struct uar_model_said *said, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "provider", said->provider);
	uar_jw_str(&w, "model", said->model);
	uar_jw_arr(&w, "parts");
	for (size_t i = 0; i < said->part_count; i++)
		write_part(&w, &said->parts[i]);
	uar_jw_close(&w);
	uar_jw_close(&w);
	return uar_jw_end(&w);
}

static bool read_part(const struct uar_json *j, struct uar_model_part *out)
{
	const struct uar_json *block = uar_json_get(j, UAR_STR("block"));
	uar_str type = uar_json_text(j, "type");

	*out = uar_model_text_part(uar_json_text(j, "text"));
	if (uar_str_is(type, "reasoning")) {
		out->kind = UAR_PART_REASONING;
	} else if (uar_str_is(type, "call")) {
		*out = (struct uar_model_part){ .kind = UAR_PART_CALL,
						.id = uar_json_text(j, "id"),
						.name = uar_json_text(j, "name"),
						.text = uar_json_text(j, "arguments") };
	} else if (uar_str_is(type, "image") || uar_str_is(type, "file")) {
		*out = (struct uar_model_part){ .kind = uar_str_is(type, "image") ? UAR_PART_IMAGE
										  : UAR_PART_FILE,
						.media_type = uar_json_text(j, "media_type"),
						.name = uar_json_text(j, "name"),
						.text = uar_json_text(j, "data"),
						.url = uar_json_text(j, "url") };
	} else if (uar_str_is(type, "opaque") && block && block->kind == UAR_JSON_OBJECT) {
		*out = (struct uar_model_part){ .kind = UAR_PART_OPAQUE,
						.name = uar_json_text(j, "dialect"),
						.text = block->text };
	} else {
		return uar_str_is(type, "text");
	}
	return true;
}

uar_err uar_model_parts_read(uar_str json, struct uar_arena *a, struct uar_model_said *out)
{
	static const struct uar_json_limits limits = { .foreign = true };
	const struct uar_json *root = NULL, *list;
	struct uar_model_part *parts;
	size_t n = 0;
	uar_err e = uar_json_parse_copy(json, &limits, a, &root, NULL);

	if (e)
		return e == UAR_ENOMEM ? e : UAR_ECORRUPT;
	list = uar_json_get(root, UAR_STR("parts"));
	if (!list || list->kind != UAR_JSON_ARRAY)
		return UAR_ECORRUPT;
	parts = uar_arena_alloc(a, (list->count + 1) * sizeof *parts);
	if (!parts)
		return UAR_ENOMEM;
	for (const struct uar_json *j = list->first; j; j = j->next)
		if (!read_part(j, &parts[n++]))
			return UAR_ECORRUPT;
	*out = (struct uar_model_said){ .provider = uar_json_text(root, "provider"),
					.model = uar_json_text(root, "model"),
					.parts = parts,
					.part_count = n };
	return UAR_OK;
}
