/* row.h - rows: what the store keeps beside the log so that it can be found, listed and
 * loaded without folding. Written in the append of the events that they follow from.
 *
 * row.def declares the kinds. A row in use is its kind's struct (struct uar_row_task: the
 * columns that every row has, then its own members); on its way to and from the store it is
 * a struct uar_row with the members as JSON in `body`. */
#ifndef UAR_EVENT_ROW_H
#define UAR_EVENT_ROW_H

#include "event/fields.h"
#include "event/record.h"

enum uar_row_kind {
#define ROW(KIND, NAME, PARENT, TAG, DOC) UAR_ROW_##KIND,
#include "event/row.def"
	UAR_ROW_COUNT
};

struct uar_row {
	enum uar_row_kind kind;
	uar_str id;	     /* unique below its owner and kind */
	uar_str session_id;  /* of the append that wrote it; filled by reads */
	uar_str parent, tag; /* filters; row.def says of what; may be empty */
	uar_str status;	     /* a word of the kind */
	bool open;	     /* something is still to happen: its session is listed at a start */
	int64_t due_us;	     /* when; 0: not by time */
	int64_t rank;	     /* its place among rows of the same parent */
	int64_t created_us, updated_us;
	uar_str body; /* JSON object of the kind's members */
	/* In an append: */
	bool fresh;   /* there must not be such a row yet: UAR_ECONFLICT */
	bool removed; /* it goes; what is gone already is fine */
	bool foreign; /* with removed: it may be of another session */
	/* Filled by reads: */
	struct uar_owner owner;
	uint64_t through; /* sequence of the last event of the append that wrote it */
};

#define ROW(KIND, NAME, PARENT, TAG, DOC)                                                          \
	struct uar_row_##NAME {                                                                    \
		struct uar_row row;
#define F(ROW, TYPE, NAME, MAX, DOC) UAR_F_C_##TYPE NAME;
#define W(ROW, NAME, WORDS, DOC)     uar_str NAME;
#define END(KIND, NAME)                                                                            \
	}                                                                                          \
	;
#include "event/row.def"

struct uar_row_info {
	const char *name; /* "task" */
	const char *parent, *tag, *doc;
	struct uar_fields fields;
	size_t size; /* of its struct */
};
extern const struct uar_row_info uar_row_info[UAR_ROW_COUNT];
enum uar_row_kind uar_row_kind_of(uar_str name); /* UAR_ROW_COUNT: there is none */

/* `typed` is the struct of its row.kind. Writes the members to row.body, in the arena. */
UAR_MUST_CHECK uar_err uar_row_pack(void *typed, struct uar_arena *arena, struct uar_error *error);
/* Fills the struct of row->kind, which is `size` bytes: the columns and the members. Strings
 * are borrowed from the row or live in the arena. UAR_ECORRUPT: the body is not what the
 * kind declares. */
UAR_MUST_CHECK uar_err uar_row_unpack(const struct uar_row *row, struct uar_arena *arena,
				      void *typed, size_t size, struct uar_error *error);
/* A copy of columns and members, with its strings in the arena. */
UAR_MUST_CHECK bool uar_row_copy_typed(struct uar_arena *arena, const void *from, void *to);
/* A copy of the columns and the body. */
UAR_MUST_CHECK bool uar_row_copy(struct uar_arena *arena, const struct uar_row *in,
				 struct uar_row *out);

#endif
