/* blocks.h - the fenced blocks of an answer: what a reader would take out of it and keep.
 *
 * A block begins with a line of three or more ` or ~ and the name of its language, and
 * ends with such a line of the same kind, at least as long. Text comes in pieces, cut
 * anywhere. Only blocks that name a language count; one that never ends is none. */
#ifndef UAR_AGENT_BLOCKS_H
#define UAR_AGENT_BLOCKS_H

#include "agent/limits.h"
#include "base/buf.h"
#include "base/str.h"

enum { UAR_BLOCK_LANGUAGE = 32, UAR_BLOCK_TITLE = 80, UAR_BLOCK_LINE = 128 };

struct uar_block {
	char language[UAR_BLOCK_LANGUAGE]; /* lower case */
	char title[UAR_BLOCK_TITLE];	   /* what else the first line says; or empty */
	struct uar_buf text;
};

struct uar_blocks {
	struct uar_block *at; /* UAR_LIMIT_ANSWER_BLOCKS, once there is one */
	size_t count;	      /* whole ones */
	size_t dropped;	      /* that were too many or too long */
	/* of the line at hand */
	char line[UAR_BLOCK_LINE]; /* its beginning */
	size_t line_n;		   /* of all of it */
	/* of the block at hand */
	char fence; /* '`' or '~'; 0: outside */
	size_t fence_n;
	struct uar_block *open; /* NULL: it is not kept */
};

void uar_blocks_init(struct uar_blocks *b);
void uar_blocks_fini(struct uar_blocks *b);
void uar_blocks_feed(struct uar_blocks *b, uar_str text);
void uar_blocks_end(struct uar_blocks *b); /* the last line needs no line end */

/* What kind of artifact it is: "html", "mermaid", "code"; and its media type. */
const char *uar_block_type(const struct uar_block *b);
const char *uar_block_mime(const struct uar_block *b);

/* Of text of such an artifact; either may be empty. */
const char *uar_artifact_mime(uar_str type, uar_str language);

#endif
