/* content.h - how the bytes of an export item are labelled. Pure. */
#ifndef UAR_GATE_CONTENT_H
#define UAR_GATE_CONTENT_H

#include "base/buf.h"

/* The Content-Type: the item's own when it is one, else what its type suggests. */
void gate_content_type(struct uar_buf *out, uar_str item_type, uar_str mime);
/* The Content-Disposition: only what a browser cannot execute is shown in place. */
void gate_content_disposition(struct uar_buf *out, uar_str content_type, uar_str label, uar_str id);
/* Does an If-None-Match or If-Range list name the tag? Weak ones never do. */
bool gate_tag_matches(uar_str list, uar_str tag);

#endif
