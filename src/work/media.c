/* media.c - parts of tool results: kept, read again, and told within limits. */
#include "work/media.h"

#include "base/base64.h"
#include "model/parts.h"
#include "work/limits.h"
#include "work/rounds.h"

static struct uar_model_part part_of(const struct uar_tool_part *p, uar_str base64)
{
	static const enum uar_model_part_kind kinds[] = { [UAR_TOOL_TEXT] = UAR_PART_TEXT,
							  [UAR_TOOL_IMAGE] = UAR_PART_IMAGE,
							  [UAR_TOOL_FILE] = UAR_PART_FILE };

	return (struct uar_model_part){ .kind = kinds[p->kind],
					.text = p->kind == UAR_TOOL_TEXT ? p->text : base64,
					.media_type = p->media_type,
					.name = p->name,
					.url = p->url };
}

uar_err rt_media_write(const struct uar_tool_result *r, struct uar_buf *out)
{
	struct uar_model_part *parts = uar_alloc((r->part_count + 1) * sizeof *parts);
	struct uar_model_said said = { .provider = UAR_STR(""),
				       .model = UAR_STR(""),
				       .parts = parts,
				       .part_count = r->part_count };
	struct uar_arena arena;
	uar_err e = parts ? UAR_OK : UAR_ENOMEM;

	uar_arena_init(&arena, 0);
	for (size_t i = 0; i < r->part_count && !e; i++) {
		struct uar_buf base64 = uar_buf_make(UAR_LIMIT_TOOL_PARTS);

		uar_base64_encode(&base64, r->parts[i].bytes);
		parts[i] = part_of(&r->parts[i], uar_arena_str(&arena, uar_buf_str(&base64)));
		e = base64.err;
		uar_buf_fini(&base64);
	}
	if (!e)
		e = uar_model_parts_write(&said, out);
	uar_arena_fini(&arena);
	uar_free(parts);
	return e;
}

/* --- rounds --------------------------------------------------------------------------------- */

/* The newest first: what is older than the limit reaches stays where it is. */
struct round_media *rt_rounds_next_media(const struct rounds *s)
{
	for (size_t i = s->count; i-- > 0;)
		for (size_t k = s->at[i].call_count; k-- > 0;)
			if (s->at[i].calls[k].media.blob[0])
				return &s->at[i].calls[k].media;
	return NULL;
}

static size_t bytes_of(const struct round_media *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->count; i++)
		n += m->parts[i].text.n;
	return n;
}

static size_t bytes_read(const struct rounds *s)
{
	size_t total = 0;

	for (size_t i = 0; i < s->count; i++)
		for (size_t k = 0; k < s->at[i].call_count; k++)
			total += bytes_of(&s->at[i].calls[k].media);
	return total;
}

static void leave_out_rest(const struct rounds *s)
{
	struct round_media *m;

	while ((m = rt_rounds_next_media(s)))
		m->blob[0] = 0;
}

uar_err rt_rounds_take_media(struct rounds *s, struct round_media *m, uar_str json)
{
	struct uar_model_said said;
	uar_err e = uar_model_parts_read(json, &s->arena, &said);

	if (e)
		return e;
	m->blob[0] = 0;
	m->parts = said.parts;
	m->count = said.part_count;
	if (bytes_read(s) <= UAR_LIMIT_ROUNDS_MEDIA)
		return UAR_OK;
	m->count = 0;
	leave_out_rest(s);
	return UAR_OK;
}

/* --- told ------------------------------------------------------------------------------------- */

void rt_media_fit(struct prompt *p, bool images, bool files)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct uar_model_message *m = &p->messages[i];

		for (size_t k = 0; m->role == UAR_MODEL_TOOL && k < m->part_count; k++) {
			struct uar_model_part *part = &p->parts[(size_t)(m->parts - p->parts) + k];

			if ((part->kind == UAR_PART_IMAGE && !images) ||
			    (part->kind == UAR_PART_FILE && !files))
				*part = uar_model_text_part(
					part->kind == UAR_PART_IMAGE
						? UAR_STR("[an image that this model cannot see]")
						: UAR_STR("[a file that this model cannot read]"));
		}
	}
}
