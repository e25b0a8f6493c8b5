/* content.h - how the bytes of an export item are labelled. Pure. */
#ifndef UAR_GATE_CONTENT_H
#define UAR_GATE_CONTENT_H

#include "base/buf.h"
#include "http/http.h"

/* The Content-Type: the item's own when it is one, else what its type suggests. */
void gate_content_type(struct uar_buf *out, uar_str item_type, uar_str mime);
/* The Content-Disposition: only what a browser cannot execute is shown in place. */
void gate_content_disposition(struct uar_buf *out, uar_str content_type, uar_str label, uar_str id);
/* The Content-Range; NULL: of a part that there is not. */
enum { GATE_CONTENT_SPAN = 80 };
void gate_content_span(const struct uar_http_range *part, uint64_t total,
		       char out[GATE_CONTENT_SPAN]);
/* Does an If-None-Match or If-Range list name the tag? Weak ones never do. */
bool gate_tag_matches(uar_str list, uar_str tag);

#endif
