/* book_int.h - what book.c and book_dir.c share. */
#ifndef UAR_SKILL_BOOK_INT_H
#define UAR_SKILL_BOOK_INT_H

#include "base/map.h"
#include "skill/book.h"

struct uar_skill_book {
	void (*note)(void *ctx, const struct uar_skill_note *n);
	void *ctx;
	struct uar_skill_entry **at; /* sorted by id, those of equal ids by owner */
	size_t count, room;
	struct uar_skill_broken *broken;
	size_t broken_count;
	struct uar_map counts; /* of struct counted */
	size_t count_count;
	struct uar_buf dir;
};

/* References it. */
UAR_MUST_CHECK uar_err skill_book_add(struct uar_skill_book *b, struct uar_skill_entry *e);
void skill_book_remove(struct uar_skill_book *b, size_t index);
void skill_book_tell(const struct uar_skill_book *b, const struct uar_skill_note *n);

#endif
