/* skill_store.c - skills that owners keep in the database, and the vectors of their meaning. */
#include "base/base64.h"
#include "skill/book.h"
#include "skill/embed.h"
#include "work/definition_store_int.h"

#define EMBEDDING "uar-hash-256"

static uar_err read_skill(struct definition_writer *d, struct uar_definition_change *op)
{
	uar_err e = uar_skill_read(op->text, &d->skill, &op->error);

	if (e)
		return e;
	d->has_new = true;
	d->text = d->skill.text;
	d->revision = d->skill.revision;
	if (!uar_str_eq(d->skill.skill_id, op->id)) {
		uar_error_where(&op->error, "/skill_id");
		return uar_error_set(&op->error, UAR_EINVALID,
				     "it must be \"%.*s\", as in the path", UAR_FMT(op->id));
	}
	if (d->skill.folder.n) {
		uar_error_where(&op->error, "/metadata/folder");
		return uar_error_set(&op->error, UAR_EINVALID,
				     "only a skill of the skills directory has a folder");
	}
	return uar_skill_book_may_put(d->w->o.skills, &op->owner, op->id, &op->error);
}

/* A vector of numbers, the same bytes on every machine. */
static void write_vector(const float *v, struct uar_buf *out)
{
	for (size_t i = 0; i < UAR_EMBED_DIMENSIONS; i++) {
		uint32_t bits;

		memcpy(&bits, &v[i], sizeof bits);
		for (int shift = 0; shift < 32; shift += 8)
			uar_buf_add_char(out, (char)(bits >> shift & 0xff));
	}
}

static uar_err add_vector(struct definition_writer *d, struct uar_definition_change *op,
			  int64_t now)
{
	const float *v = op->text.p ? uar_skill_embedding(&d->skill) : NULL;
	struct uar_buf bytes = uar_buf_make(UAR_EMBED_DIMENSIONS * 4 + 1);
	struct uar_buf text = uar_buf_make(UAR_EMBED_DIMENSIONS * 8);
	struct uar_row_skill_vector row = {
		.row = { .kind = UAR_ROW_SKILL_VECTOR,
			 .id = op->id,
			 .status = UAR_STR("active"),
			 .created_us = now,
			 .updated_us = now,
			 .removed = !v },
		.revision = uar_str_c(op->revision),
		.embedding = UAR_STR(EMBEDDING),
		.dimensions = UAR_EMBED_DIMENSIONS,
	};
	uar_err e;

	if (v)
		write_vector(v, &bytes);
	uar_base64_encode(&text, uar_buf_str(&bytes));
	row.vector = uar_arena_str(&d->arena, uar_buf_str(&text));
	e = bytes.err || text.err || !row.vector.p ? UAR_ENOMEM
						   : uar_row_pack(&row, &d->arena, &op->error);
	d->rows[d->row_count++] = row.row;
	uar_buf_fini(&bytes);
	uar_buf_fini(&text);
	return e;
}

static uar_err take_skill(struct definition_writer *d, struct uar_definition_change *op,
			  int64_t now)
{
	uar_err e = UAR_OK;

	if (op->text.p) {
		e = uar_skill_book_put(d->w->o.skills, &op->owner, &d->skill, op->version, now);
		d->has_new = e != UAR_OK;
	} else {
		uar_skill_book_drop(d->w->o.skills, &op->owner, op->id);
	}
	return e;
}

static void fini_skill(struct definition_writer *d)
{
	uar_skill_fini(&d->skill);
}

const struct kept_kind rt_kept_skill = { .name = "skill",
					 .prefix = "skill:",
					 .read = read_skill,
					 .add_row = add_vector,
					 .take = take_skill,
					 .fini = fini_skill };

/* --- at a start ------------------------------------------------------------------------------ */

uar_err rt_skill_load(struct uar_workers *w, const struct uar_owner *owner,
		      const struct uar_row_definition *row, uar_str text)
{
	struct uar_error error = { 0 };
	struct uar_skill s;
	uar_err e = w->o.skills ? uar_skill_read(text, &s, &error) : UAR_ENOTIMPL;

	if (e)
		return e;
	e = uar_skill_book_put(w->o.skills, owner, &s, row->version, row->row.updated_us);
	if (e)
		uar_skill_fini(&s);
	return e;
}

/* Nothing is counted before all of them are read. */
void rt_skill_load_metric(struct uar_workers *w, const struct uar_owner *owner,
			  const struct uar_row *row)
{
	struct uar_row_skill_metric m;
	struct uar_skill_count *c;
	struct uar_error error;
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_row_unpack(row, &arena, &m, sizeof m, &error);
	c = e ? NULL : uar_skill_book_counted(w->o.skills, owner, row->id);
	if (c) {
		c->successes += m.successes;
		c->failures += m.failures;
	} else {
		uar_log(rt_log(w->rt), UAR_LOG_ERROR, "skill.metric_unread",
			{ "skill_id", row->id });
	}
	uar_arena_fini(&arena);
}
