/* prompt.c - gathers messages and their parts in two rows. */
#include "work/prompt.h"

#include "base/alloc.h"

enum { FIRST_ROOM = 8 };

/* Room for one more of `size` bytes each; NULL: no memory. */
static void *grow_row(void *at, size_t count, size_t *room, size_t size)
{
	size_t wanted = *room ? *room * 2 : FIRST_ROOM;
	void *longer;

	if (count < *room)
		return at;
	longer = uar_realloc(at, wanted * size);
	if (longer)
		*room = wanted;
	return longer;
}

void rt_prompt_begin(struct prompt *p, enum uar_model_role role)
{
	struct uar_model_message *row =
		p->err ? NULL : grow_row(p->messages, p->count, &p->room, sizeof *row);

	if (!row) {
		p->err = UAR_ENOMEM;
		return;
	}
	p->messages = row;
	row[p->count++] = (struct uar_model_message){ .role = role };
}

void rt_prompt_add(struct prompt *p, const struct uar_model_part *part)
{
	struct uar_model_part *row =
		p->err ? NULL : grow_row(p->parts, p->part_count, &p->part_room, sizeof *row);

	if (!row) {
		p->err = UAR_ENOMEM;
		return;
	}
	p->parts = row;
	row[p->part_count++] = *part;
	p->messages[p->count - 1].part_count++;
}

void rt_prompt_text(struct prompt *p, enum uar_model_role role, uar_str text)
{
	struct uar_model_part part = uar_model_text_part(text);

	rt_prompt_begin(p, role);
	rt_prompt_add(p, &part);
}

void rt_prompt_remove(struct prompt *p, size_t at, size_t count)
{
	if (p->err)
		return;
	memmove(p->messages + at, p->messages + at + count,
		(p->count - at - count) * sizeof *p->messages);
	memmove(p->parts + at, p->parts + at + count,
		(p->part_count - at - count) * sizeof *p->parts);
	p->count -= count;
	p->part_count -= count;
}

uar_err rt_prompt_end(struct prompt *p)
{
	const struct uar_model_part *at = p->parts;

	for (size_t i = 0; i < p->count && !p->err; i++) {
		p->messages[i].parts = at;
		at += p->messages[i].part_count;
	}
	return p->err;
}

void rt_prompt_fini(struct prompt *p)
{
	uar_free(p->messages);
	uar_free(p->parts);
	*p = (struct prompt){ 0 };
}

/* Its frame is not counted as bytes of the prompt. */
static size_t write_part(const struct uar_model_part *part, struct uar_buf *all)
{
	size_t frame = 0;

	if (part->kind != UAR_PART_TEXT && part->kind != UAR_PART_RESULT) {
		uar_buf_add_char(all, 0);
		uar_buf_add_str(all, part->name);
		uar_buf_add_char(all, 0);
		frame = 2;
	}
	uar_buf_add_str(all, part->url);
	uar_buf_add_str(all, part->text);
	return frame;
}

size_t rt_prompt_write(const struct prompt *p, struct uar_buf *all)
{
	size_t frame = 0;

	for (size_t i = 0; i < p->count; i++) {
		const struct uar_model_message *m = &p->messages[i];

		uar_buf_add_char(all, (char)('0' + m->role));
		for (size_t k = 0; k < m->part_count; k++)
			frame += write_part(&m->parts[k], all);
		uar_buf_add_char(all, 0);
		frame += 2;
	}
	return frame;
}
