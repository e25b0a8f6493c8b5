/* attachment.h - images and files that clients of any dialect send with a message. */
#ifndef UAR_PROTO_ATTACHMENT_H
#define UAR_PROTO_ATTACHMENT_H

#include "json/jw.h"

/* What is said where no text comes with them. */
#define UAR_ATTACHED "(see what is attached)"

struct uar_attachment {
	bool image;	    /* else a file */
	uar_str data;	    /* base64, or */
	uar_str url;	    /* http or https */
	uar_str media_type; /* of data */
	uar_str name;	    /* or empty */
};
/* Takes "data:MEDIA;base64,DATA" or an http address. False: it is neither, or holds nothing. */
bool uar_attachment_take_url(struct uar_attachment *a, uar_str url);
/* Can a model be given it? */
bool uar_attachment_is_usable(const struct uar_attachment *a);
/* As the inputs of a run have it: one element of `attachments`. */
void uar_attachment_put(struct uar_jw *w, const struct uar_attachment *a);

#endif
