/* past.h - what was said in a conversation, as of a place in its session's log.
 *
 * Built from events, one after the other, and kept for the next turn, so that a
 * turn reads what is new and not the whole log again. Within named limits: the
 * oldest goes first, long texts are cut, and both are counted, so that a turn can
 * say what its model was not told. */
#ifndef UAR_WORK_PAST_H
#define UAR_WORK_PAST_H

#include "work/limits.h"
#include "work/prompt.h"
#include "work/work_int.h"

struct past_message {
	struct uar_list node;
	enum uar_model_role role;
	bool began;			/* its turn is at work, or was */
	bool ended;			/* its turn is over: it may be forgotten */
	bool summary;			/* of all that was said before it; never forgotten */
	char run_id[UAR_UUID_TEXT + 1]; /* whose turn it belongs to */
	char turn_id[UAR_UUID_TEXT + 1];
	char blob[65];	   /* text is its beginning only; empty: it is whole */
	uar_str text;	   /* its own */
	uint64_t total;	   /* bytes of the text as it was said */
	uint64_t tools;	   /* calls of tools that led to it, which are not told */
	uint64_t sequence; /* of the first event of its turn; 0: it belongs to none */
};

struct past {
	struct uar_list node; /* in the cache, least recently used first */
	struct uar_list said; /* of struct past_message: each answer behind its question,
			       * turns as they began, then those that wait */
	size_t count, bytes;  /* of ended turns */
	size_t memory;	      /* bytes of all texts */
	uint64_t upto;	      /* sequence of the last event that it knows */
	struct uar_buf answer;
	uint64_t answer_total;		 /* bytes of the answer, those cut off included */
	uint64_t answer_tools;		 /* calls of tools so far */
	uint64_t dropped, dropped_bytes; /* messages that were forgotten */
	struct uar_buf artifacts;	 /* ids of what the conversation made, a line each */
	size_t most;			 /* bytes that a turn is told; 0: all */
	uar_str key;
	char text[]; /* of key */
};

/* Of r's thread: the one that was kept, or a new one that knows nothing. NULL: no
 * memory. It is the caller's until it is kept or freed. */
struct past *rt_past_take(struct live_run *r);
/* Gives it back for the next turn; NULL is fine. */
void rt_past_keep(struct past_cache *c, struct past *p);
void rt_past_free(struct past *p); /* NULL is fine */
/* One event of the thread. An error leaves it of no use. */
UAR_MUST_CHECK uar_err rt_past_add(struct past *p, const struct uar_event *ev,
				   struct uar_arena *scratch);
/* The turns behind the one whose first event that is no longer count; if it was forgotten, those
 * that were asked behind that sequence. */
void rt_past_roll_back(struct past *p, uint64_t sequence);
/* The whole text of a message whose beginning was known, up to the limit. */
UAR_MUST_CHECK uar_err rt_past_complete(struct past *p, struct past_message *m, uar_str text,
					uint64_t total);
/* The message before `after` (NULL: the last one) that was said before r's turn and
 * is no earlier try at it. NULL: there is none. */
struct past_message *rt_past_before(const struct past *p, const struct live_run *r,
				    const struct past_message *after);
/* What r's model is told, oldest first; at most UAR_LIMIT_HISTORY_MESSAGES. */
void rt_past_collect(const struct past *p, const struct live_run *r, struct prompt *out);
/* JSON array of what it is not told; nothing is written when it is told everything. */
void rt_past_omissions(const struct past *p, const struct live_run *r, struct uar_buf *out);

/* --- compaction: past_cut.c --- */

/* The messages from the oldest one to `last` can be condensed, so that at most `keep` bytes stay
 * as they are. NULL: there is nothing to condense. */
const struct past_message *rt_past_cut(const struct past *p, const struct live_run *r, size_t keep);
/* What they say, for the model that condenses them; at most `most` bytes, the newest. */
void rt_past_write(const struct past *p, const struct past_message *last, size_t most,
		   struct uar_buf *out);
/* JSON array of the ids of their turns. */
void rt_past_turns(struct uar_jw *w, const char *key, const struct past *p,
		   const struct past_message *last);
size_t rt_past_bytes(const struct past *p, const struct past_message *last);

#endif
