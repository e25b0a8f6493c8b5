/* book.h - the skills that agents may use: those of the program, of a directory, of owners.
 *
 * Entries are immutable and referenced: what holds one keeps it across every change. A folder
 * whose SKILL.md is broken is told, and what it said before stays. An id belongs to one source:
 * the program's come first, then those of the directory, then an owner's own. */
#ifndef UAR_SKILL_BOOK_H
#define UAR_SKILL_BOOK_H

#include "base/log.h"
#include "event/record.h"
#include "skill/match.h"

struct uar_skill_entry {
	unsigned refs;
	struct uar_skill skill;
	struct uar_owner owner;			 /* USER: whose it is; in skill.arena */
	char folder[UAR_LIMIT_SKILL_FOLDER + 1]; /* FILE: its name in the directory; else empty */
	char sha256[UAR_SHA256_TEXT + 1];	 /* FILE: of the bytes of SKILL.md */
	int64_t updated_us;			 /* 0: not known */
	int64_t version;			 /* USER: 1 is the first; else 0 */
	bool stored;				 /* its text is a durable blob; set by its user */
};
/* A new entry with one reference that takes the skill; NULL: no memory, the skill is still the
 * caller's. */
struct uar_skill_entry *uar_skill_entry_take(struct uar_skill *s);
struct uar_skill_entry *uar_skill_entry_ref(struct uar_skill_entry *e);
void uar_skill_entry_unref(struct uar_skill_entry *e); /* NULL is fine */

/* A folder whose skill is wrong. */
struct uar_skill_broken {
	char folder[UAR_LIMIT_SKILL_FOLDER + 1];
	char sha256[UAR_SHA256_TEXT + 1];      /* of its bytes; it is told once */
	char skill_id[UAR_LIMIT_SKILL_ID + 1]; /* of the earlier one that stays; or empty */
	char text[UAR_LIMIT_ERROR_WHERE + UAR_LIMIT_ERROR_TEXT + 2];
};

struct uar_skill_note {
	enum uar_log_level level;
	const char *what; /* "skill.loaded", "skill.refused", "skill.removed" */
	const char *folder;
	uar_str text;
};

/* How runs ended that an owner made with a skill. */
struct uar_skill_count {
	int64_t successes, failures;
};

struct uar_skill_book;
/* With the skills of the program. `note` may be NULL. */
UAR_MUST_CHECK uar_err uar_skill_book_create(void (*note)(void *ctx,
							  const struct uar_skill_note *n),
					     void *ctx, struct uar_skill_book **out);
void uar_skill_book_destroy(struct uar_skill_book *b); /* NULL is fine */

/* Reads the folders of the directory that have a SKILL.md; it need not exist. On an error
 * everything stays as it was. */
UAR_MUST_CHECK uar_err uar_skill_book_read_dir(struct uar_skill_book *b, const char *dir,
					       struct uar_error *error);
/* The directory that was read last; empty: none was. */
const char *uar_skill_book_dir(const struct uar_skill_book *b);
/* May the owner have a skill of this id? UAR_EEXISTS: another source has it. */
UAR_MUST_CHECK uar_err uar_skill_book_may_put(const struct uar_skill_book *b,
					      const struct uar_owner *owner, uar_str id,
					      struct uar_error *error);
/* Takes an owner's skill in place of the earlier one; on an error it is still the caller's. */
UAR_MUST_CHECK uar_err uar_skill_book_put(struct uar_skill_book *b, const struct uar_owner *owner,
					  struct uar_skill *take, int64_t version,
					  int64_t updated_us);
void uar_skill_book_drop(struct uar_skill_book *b, const struct uar_owner *owner, uar_str id);

/* Borrowed until the next change; NULL: the owner has none of this id. */
struct uar_skill_entry *uar_skill_book_find(const struct uar_skill_book *b,
					    const struct uar_owner *owner, uar_str id);
/* Of any owner, by the digest of its text. */
struct uar_skill_entry *uar_skill_book_known(const struct uar_skill_book *b, uar_str revision);
/* In the order of their ids, whoever's they are; NULL past the end. */
struct uar_skill_entry *uar_skill_book_at(const struct uar_skill_book *b, size_t index);
bool uar_skill_entry_shows(const struct uar_skill_entry *e, const struct uar_owner *owner);
const struct uar_skill_broken *uar_skill_book_broken_at(const struct uar_skill_book *b,
							size_t index);

/* What is counted of an owner's runs with a skill; NULL: nothing so far. */
struct uar_skill_count *uar_skill_book_count(const struct uar_skill_book *b,
					     const struct uar_owner *owner, uar_str id);
/* The same, made when it is not there; NULL: no memory, or too many. */
struct uar_skill_count *uar_skill_book_counted(struct uar_skill_book *b,
					       const struct uar_owner *owner, uar_str id);

/* Matches a request with the owner's skills. UAR_ENOMEM. */
UAR_MUST_CHECK uar_err uar_skill_book_match(const struct uar_skill_book *b,
					    const struct uar_owner *owner,
					    const struct uar_skill_request *r,
					    struct uar_skill_matches *out);
/* The entry of a skill that a match has named. */
struct uar_skill_entry *uar_skill_entry_of(const struct uar_skill *s);

#endif
