/* chunk.h - a document is cut into passages that can be found and cited. Pure. */
#ifndef UAR_MEMORY_CHUNK_H
#define UAR_MEMORY_CHUNK_H

#include "base/buf.h"
#include "memory/limits.h"

struct uar_chunk {
	uar_str text;	 /* of the document, without blank ends */
	uar_str heading; /* the last heading before it, or empty */
	size_t line;	 /* of its first line, from 1 */
	size_t page;	 /* of a document with form feeds, from 1 */
};
/* What the lines of a text mean. */
enum uar_chunk_kind {
	UAR_CHUNK_TEXT,	    /* nothing but lines */
	UAR_CHUNK_MARKDOWN, /* "# Title" is a heading */
	UAR_CHUNK_CODE,	    /* a line that begins at the left and opens a block is one */
};
/* UAR_OK goes on; an error ends the cutting and is returned. */
typedef uar_err uar_chunk_fn(void *ctx, const struct uar_chunk *c);
/* Cuts at headings, then between paragraphs, then between lines, then anywhere between characters.
 */
UAR_MUST_CHECK uar_err uar_chunk_text(uar_str text, enum uar_chunk_kind kind, uar_chunk_fn *fn,
				      void *ctx);

/* HTML without tags, scripts and styles; entities are decoded. */
void uar_html_text(uar_str html, struct uar_buf *out);

#endif
