/* exports.h - export items as JSON: whole for lists, without content for the channel. */
#ifndef UAR_PROTO_EXPORTS_H
#define UAR_PROTO_EXPORTS_H

#include "event/event.h"
#include "proto/limits.h"

/* An event that is an export item, taken apart. Borrows from the event and the arena. */
struct uar_export_item {
	const struct uar_event *ev;
	const struct uar_json *p; /* payload */
	uar_str id;
	uar_str type;	 /* "text" */
	uar_str content; /* as the event has it; empty when it is in the blob */
	uar_str blob;	 /* sha256, or empty */
	uar_str blob_id; /* of an upload over HTTP, or empty */
	bool result;	 /* what the entry returned */
	bool upload;	 /* the blob is what its binary_url stands for */
	bool answer;	 /* what an agent said: its text is in earlier events */
};
/* Is the blob of that item what its binary_url stands for: an upload, or a large result? */
bool uar_export_is_served(const struct uar_json *payload);
/* UAR_ESKIP: the event is no export item. */
UAR_MUST_CHECK uar_err uar_export_item_read(const struct uar_event *ev, struct uar_arena *arena,
					    struct uar_export_item *out);
/* The text of an agent's last message, gathered from the run's events in order. */
struct uar_answer_text {
	struct uar_buf text; /* at most UAR_LIMIT_ANSWER_BYTES, cut between characters */
	char message_id[UAR_UUID_TEXT + 1];
	bool cut;
};
void uar_answer_text_init(struct uar_answer_text *a);
void uar_answer_text_fini(struct uar_answer_text *a);
UAR_MUST_CHECK uar_err uar_answer_text_feed(struct uar_answer_text *a, const struct uar_event *ev,
					    struct uar_arena *scratch);
/* `bytes`: those of the blob or the answer, when it is one. */
void uar_export_item_write(struct uar_jw *w, const char *key, const struct uar_export_item *x,
			   uar_str bytes);
/* Where the server shows the bytes of an uploaded item. */
void uar_export_item_url(struct uar_jw *w, const char *key, const struct uar_event *ev);
/* Ids and metadata: what the channel tells. */
void uar_export_item_notice(struct uar_jw *w, const char *key, const struct uar_export_item *x);

#endif
