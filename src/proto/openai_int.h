/* openai_int.h - what the encoders of the OpenAI API share. */
#ifndef UAR_PROTO_OPENAI_INT_H
#define UAR_PROTO_OPENAI_INT_H

#include "proto/openai.h"
#include "proto/view.h"

/* One run for one reader. */
struct openai {
	struct uar_view view;
	struct uar_dialect_options o;
	struct uar_frames *out; /* while an event is encoded */
	struct uar_jw w;
	int64_t created_us;	   /* of the run's first event */
	int64_t number;		   /* of the next frame */
	size_t frame_start;	   /* where the one that is open begins in the buffer */
	struct openai_item *items; /* responses: in the order in which they began */
	int64_t item_count;
	const struct uar_view_message *told; /* the last one of earlier requests; NULL: none */
	bool begun, over;
	bool hidden; /* `store: false` */
	/* A run gives a response for each time that it hands calls over, and one at its end. */
	int64_t part, shown; /* how many are over; which one this is, from 0 */
	bool handed;	     /* this one ended so */
	bool folding;	     /* chat: nothing is told before the event `o.fold_until` */
};

/* The id of the response that is shown: PREFIX RUN, further ones have a number behind it. */
void openai_put_id(const struct openai *a, struct uar_jw *w, const char *prefix);
bool openai_hands_over(const struct openai *a, const struct uar_view_change *c);

/* The first message that this request shows. */
const struct uar_view_message *openai_first(const struct openai *a);

uar_err openai_begin(void *state, const struct uar_dialect_options *o);
uar_err openai_encode(struct openai *a, const struct uar_event *ev, struct uar_arena *scratch,
		      struct uar_frames *out, uar_view_fn *changed);
void openai_end(void *state);

/* The tools that the client has to execute before the run goes on. */
bool openai_waits_for_client(const struct openai *a);
bool openai_is_client_call(const struct openai *a, const struct uar_view_call *call);
/* "stop", "length", "tool_calls", "content_filter" */
const char *openai_finish_reason(const struct openai *a);
/* A comment for people who read the bytes: what the run waits for. */
uar_err openai_put_waiting(struct openai *a);
/* What a text rests on, and where it says so. */
struct openai_cite {
	const struct uar_json *source;
	int64_t start, end; /* in characters of the text */
};
struct openai_cites {
	struct openai_cite *at; /* at most UAR_LIMIT_OPENAI_CITES */
	size_t n;
	int64_t end; /* characters of the text; 0 without sources */
};
UAR_MUST_CHECK uar_err openai_find_cites(const struct uar_view_message *m, struct uar_arena *arena,
					 struct openai_cites *out);
void openai_put_cite(struct uar_jw *w, const char *key, const struct openai_cite *c);
/* In the shape of chat completions; `before`: characters of the texts in front of this one. */
void openai_put_chat_cite(struct uar_jw *w, const struct openai_cite *c, int64_t before);
/* The sum of all models. */
struct uar_view_usage openai_usage(const struct openai *a);
int openai_failure_status(const struct openai *a);
/* The error object of a run that failed, as the value of `key`. */
void openai_put_failure(struct openai *a, struct uar_jw *w, const char *key);

#endif
